"""Every option has its effect in every way in: the functions, the shell, scikit-learn and Spark ML.

An option has an effect if what comes out with it differs from what comes out without it; what is left out of the
comparison are the seconds, and the settings, which repeat an option also if it is otherwise ignored. The lists of
options come from the signatures, so that a new option without a case here fails.
"""

from __future__ import annotations

import csv
import inspect
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import typer
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

import plar
import plar.sklearn
from plar.cli import app
from plar.cli.options import TextReading
from plar.engines import Engine, LocalEngine
from support.signatures import options_of

Options = dict[str, Any]
Table = dict[str, list[Any]]

# -- the tables ----------------------------------------------------------------------------------------------


def _searched() -> Table:
    """d is x xor y; x2 is a copy of x, and z says something about d, so that the greedy search begins with it."""
    rows = range(64)
    x = [i & 1 for i in rows]
    y = [i >> 1 & 1 for i in rows]
    d = [a ^ b for a, b in zip(x, y, strict=True)]
    z = [value if i % 4 else 1 - value for i, value in enumerate(d)]
    return {"z": z, "x": x, "x2": x, "y": y, "d": d}


SEARCHED = _searched()


def _grid() -> Table:
    """d is the cell of a grid, x and y its place; z is its quarter, found first and not needed in the end."""
    cells = [(x, y) for x in range(4) for y in range(4)] * 10
    columns = ("z", "x", "y", "d")
    rows = [(x // 2 * 2 + y // 2, x, y, 4 * x + y) for x, y in cells]
    return dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True))


@dataclass
class Case:
    """A table (a text is a file as it is), what is asked of it without the option, and the option's value."""

    value: Any
    table: Table | str = field(default_factory=lambda: SEARCHED)
    base: Options = field(default_factory=dict)
    attributes: tuple[Any, ...] = ("x",)


def _read(value: Any, x: Iterable[Any], d: Iterable[Any] = ("p", "q"), **more: Iterable[Any]) -> Case:
    """A case of reading: every row twenty times, so that what differs is not by chance."""
    columns = {"x": x, **more, "d": d}
    return Case(value, {name: list(column) * 20 for name, column in columns.items()})


def _decided(value: Any, x: Iterable[Any], d: Iterable[Any]) -> Case:
    """A case of reading after which there is one decision left, so that Θ(D|∅) is 0."""
    return replace(_read(value, x, d), attributes=())


def _file(value: Any, text: str, **base: Any) -> Case:
    return Case(value, text, {"decision": -1, **base}, attributes=(0,))


#: with the option x becomes constant, or another column, or d does, unless it is said otherwise
CASES: dict[str, Case] = {
    # reading
    "decision": Case("d", SEARCHED, {"decision": "z"}),
    "y": Case(["p", "q"] * 32, base={"decision": "y"}),
    "conditions": Case(["z", "y"]),
    "drop": Case(["x", "x2"]),
    "header": _file(False, "x,y,d\n" + "1,1,d\n1,2,e\n" * 20),
    "separator": _file("|", "a|b,d\n" + "1|1,d\n1|2,e\n" * 20),
    "decimal": _file(",", "n;d\n" + "0,5;p\n3,5;q\n" * 20, bins={"n": [2.0]}),
    "encoding": _file("utf-16", "a,d\n" + "1,x\n2,y\n" * 20),
    "numeric": _read(["x"], ["1", "01"]),
    "na": _read(["?"], ["", "?"]),
    "missing": _decided("drop", ["", "u", "v"], ["p", "q", "q"]),
    "missing_decision": _decided("drop", ["u", "v"], ["p", ""]),
    "weights": _read("w", ["u", "u"], w=[1, 2]),
    "bins": _read({"x": [9.0]}, [0.5, 1.5]),
    "decision_bins": _decided([9.0], ["u", "v"], [0.5, 1.5]),
    # the search
    "measure": _read("PR", "uuuvvv", "ppqpqq"),
    "include": Case(["x2"]),
    "epsilon": Case(10.0),
    "tolerance": Case(10.0),
    "max_attributes": Case(1),
    "minimal": Case(True, _grid(), {"start": "empty"}),
    "alpha": Case(0.05),
    "start": Case("empty"),
    "search": Case("smallest", _grid()),
    "costs": Case({"x": 5}, base={"search": "smallest"}),
    "exclude": Case(["x"], base={"search": "smallest"}),
    "limit": Case(1),
    "max_size": Case(1),
    "time_limit": Case(0),
}
#: `plar.relevant` always tests against chance, and begins with nothing
RELEVANT: dict[str, Case] = {
    "alpha": Case(1e-12),
    "include": Case(["y"]),
    "max_attributes": Case(1, _grid()),
    "start": Case("core"),
    "tolerance": Case(10.0, _grid()),
    "epsilon": Case(10.0, base={"start": "core"}),
}
#: `plar.select` has words and defaults of its own
SELECT: dict[str, Case] = {
    "target": CASES["decision"],
    "target_bins": _read([9.0], ["u", "v"], [0.5, 1.5]),
    "target_type": Case("numbers", {"x": [0, 0, 1, 1] * 20, "d": [0, 1, 2, 3] * 20}),
    "missing_decision": _decided("value", ["u", "v"], ["p", ""]),
    "alpha": Case(1e-12),
    "given": Case("all"),
    "max_columns": Case(1, _grid()),
    "exclude": Case(["z"]),
    "keep": Case(["x"], {"x": [*range(40)], "d": ["p", "q"] * 20}),
}
#: `plar.rules` cuts numbers, and leaves rows without a decision out
RULES: dict[str, Case] = {
    "kind": Case("certain"),
    "alpha": Case(1e-12),
    "attributes": Case(["x"]),
    "min_support": Case(25),
    "max_conditions": Case(1, _grid()),
    "missing_decision": _decided("value", ["u", "v"], ["p", ""]),
}
#: and so have scikit-learn's selectors, where numbers are always cut, by columns for an estimator of classes
FEATURES: dict[str, Case] = {
    **SELECT,
    "numeric": replace(CASES["numeric"], base={"bins": None}),
    "target_bins": _read([9.0], ["u", "v"], [0, 1]),
    "output": Case("bins", base={"include": ["x"], "bins": {"x": [-1.0]}}),
    "cv": Case(2),
    "scoring": Case("neg_log_loss"),
    "min_columns": Case(0),
    "estimator": Case(DummyClassifier()),
}
#: what the classifier says otherwise: classes of y are never cut, and numbers always
CLASSIFIER: dict[str, Case] = {
    "kind": Case("certain"),
    "alpha": Case(1e-12),
    "min_support": Case(65),
    "max_conditions": Case(1),
    "numeric": replace(CASES["numeric"], base={"bins": None}),
}
#: options without an effect on the result, each with a test of its own below
BESIDE = {"engine", "n_jobs", "memory_limit", "checkpoint", "verbose", "progress", "on_step", "equivalent"}
#: options of `plar.reduce` that `plar.relevant` refuses
REFUSED = {"search", "costs", "exclude"}


#: what `plar.select` says for words of the others
TARGET_WORDS = {"decision": "target", "decision_bins": "target_bins"}


def _case(entry: str, option: str) -> Case:
    if entry == "select":
        option = TARGET_WORDS.get(option, option)
        return SELECT.get(option) or CASES[option]
    if entry == "rules":
        return RULES.get(option) or CASES[option]
    if "Feature" in entry:
        return FEATURES.get(option) or CASES[option]
    return RELEVANT.get(option, CASES[option]) if "elevant" in entry else CASES[option]


def _base(entry: str, case: Case) -> Options:
    """What is asked without the option, as far as a way in takes it."""
    base: Options = {"decision": "d", **case.base}
    if "search" in base and entry != "reduce":
        del base["search"]
    return base


# -- what comes out ------------------------------------------------------------------------------------------


def _plain(result: Any) -> Any:
    """The result as JSON has it, without the seconds and what only repeats the options."""
    if isinstance(result, Mapping):
        beside = ("seconds", "settings", "source", "measure", "alpha")
        return {name: _plain(value) for name, value in result.items() if name not in beside}
    if isinstance(result, (list, tuple)):
        return [_plain(value) for value in result]
    return result


def _granules(granules: Any) -> Any:
    return granules.n_objects, granules.conditions, granules.cardinalities, repr(granules.fingerprint())


def _selection(selection: plar.Selection) -> Any:
    """What is selected, without what repeats an option."""
    said = selection.to_dict()
    del said["given"]
    return _plain(said)


def _select(data: Any, asked: Options) -> Any:
    return _selection(plar.select(data, **{TARGET_WORDS.get(name, name): value for name, value in asked.items()}))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "select": lambda data, case, **asked: _select(data, asked),
    "reduce": lambda data, case, **asked: _plain(plar.reduce(data, **asked).to_dict()),
    "relevant": lambda data, case, **asked: _plain(plar.relevant(data, **asked).to_dict()),
    "reducts": lambda data, case, **asked: _plain(json.loads("".join(plar.reducts(data, **asked).json_lines()))),
    "core": lambda data, case, **asked: plar.core(data, **asked),
    "theta": lambda data, case, **asked: plar.theta(data, case.attributes, **asked),
    "significance": lambda data, case, **asked: plar.significance(data, case.attributes, **asked),
    "approximations": lambda data, case, **asked: _plain(plar.approximations(data, **asked).to_dict()),
    "rules": lambda data, case, **asked: _plain(plar.rules(data, **asked).to_dict()),
    "granulate": lambda data, case, **asked: _granules(plar.granulate(data, **asked)),
    "read_table": lambda data, case, **asked: _granules(plar.read_table(data, **asked).granulate()),
}


def _outcome(call: Callable[[], Any]) -> Any:
    """What a call returns, or the line it is refused with."""
    try:
        return call()
    except plar.PlarError as error:
        return type(error).__name__, str(error)


def _written(folder: Path, table: Table | str, encoding: str = "utf-8") -> Path:
    path = folder / "t.csv"
    if isinstance(table, str):
        path.write_text(table, encoding=encoding)
        return path
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))
    return path


@pytest.mark.filterwarnings("ignore::plar.PlarWarning")
@pytest.mark.parametrize(
    ("entry", "option"),
    [
        (entry, option)
        for entry in FUNCTIONS
        for option in options_of(getattr(plar, entry))
        if option not in BESIDE and (entry, option) != ("select", "decision_bins")
    ]
    + [("rules", "attributes")],
)
def test_functions(tmp_path: Path, entry: str, option: str) -> None:
    case = _case(entry, option)
    path = _written(tmp_path, case.table, encoding=case.value if option == "encoding" else "utf-8")
    base = _base(entry, case)
    asked = {**base, option: case.value}
    if option in ("y", "target"):
        del asked["decision"]
    without = _outcome(lambda: FUNCTIONS[entry](path, case, **base))
    assert _outcome(lambda: FUNCTIONS[entry](path, case, **asked)) != without


@pytest.mark.parametrize("option", sorted(REFUSED))
def test_relevant_refuses_what_it_does_not_take(option: str) -> None:
    with pytest.raises(plar.ParameterError, match=option):
        plar.relevant(SEARCHED, "d", **{option: CASES[option].value})


# -- the shell -----------------------------------------------------------------------------------------------

COMMANDS = {name: command.params for name, command in typer.main.get_command(app).commands.items()}  # type: ignore[attr-defined]
#: options that say what is printed or written, and where; tested in tests/cli and in test_report.py
PRINTED = {"as_json", "sql", "quiet", "verbose", "output", "output_format", "output_bins", "report", "proof"} | {
    *("format", "file")
}
SPARK_ONLY = {"master", "conf"}
TESTED_BELOW = BESIDE | PRINTED | SPARK_ONLY | {"attributes", "reduct", "contradictions"}
#: options that the shell switches off, by what it calls that
SWITCHED_OFF = {"no_header": "header"}


def _words(options: Options) -> Iterator[str]:
    """Options as the shell has them."""
    for name, value in options.items():
        if name == "header":
            yield "--no-header"
        elif value is True:
            yield f"--{name}"
        elif isinstance(value, dict):
            for column, rule in value.items():
                shown = ",".join(map(str, rule)) if isinstance(rule, list) else rule
                yield from (f"--{name}", f"{column}={shown}")
        elif name == "decision_bins":
            yield from ("--decision-bins", ",".join(map(str, value)))
        elif isinstance(value, list):
            for part in value:
                yield from (f"--{name}", str(part))
        else:
            yield from (f"--{name.replace('_', '-')}", str(value))


def _shell(entry: str, path: Path, case: Case, options: Options, capsys: pytest.CaptureFixture[str]) -> Any:
    words = [entry, str(path), "--quiet", *_words(options)]
    if entry == "select":
        words = [word.replace("--decision-bins", "--target-bins") for word in words]
        app([*words, "--json"], standalone_mode=False)
        said = json.loads(capsys.readouterr().out)
        del said["given"]
        return _plain(said)
    if entry == "granulate":
        output = path.with_name("granules.parquet")
        app([*words, "-o", str(output)], standalone_mode=False)
        return _granules(plar.Granules.open(output))
    attributes = ["--attributes", ",".join(map(str, case.attributes))]
    app([*words, "--json", *(attributes if entry == "theta" else [])], standalone_mode=False)
    return _plain(json.loads(capsys.readouterr().out))


SHELL = ("select", "reduce", "relevant", "reducts", "approximations", "rules", "core", "theta", "granulate")


@pytest.mark.filterwarnings("ignore::plar.PlarWarning")
@pytest.mark.parametrize(
    ("entry", "option"),
    [
        (entry, SWITCHED_OFF.get(parameter.name, parameter.name))
        for entry in SHELL
        for parameter in COMMANDS[entry]
        if parameter.name not in TESTED_BELOW
    ],
)
def test_commands(tmp_path: Path, entry: str, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    case = _case(entry, option)
    path = _written(tmp_path, case.table, encoding=case.value if option == "encoding" else "utf-8")
    base = _base(entry, case)
    asked = {**base, option: case.value}
    without = _outcome(lambda: _shell(entry, path, case, base, capsys))
    outcome = _outcome(lambda: _shell(entry, path, case, asked, capsys))
    assert outcome != without
    if entry in ("select", "reduce", "relevant", "rules", "approximations"):  # the shell says what the function says
        assert outcome == json.loads(json.dumps(FUNCTIONS[entry](path, case, **asked)))


def test_predict_has_no_options_but_those_of_what_is_read_and_written() -> None:
    """That those of reading have their effect is tested with the command."""
    read = {field.name for field in fields(TextReading)}
    assert {parameter.name for parameter in COMMANDS["predict"]} <= PRINTED | read | {"rules"}


# -- options that change how a result is found, or what is said meanwhile --------------------------------------


class Recording(Engine):
    """The local engine, which notes what is asked of it."""

    name = "recording"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def open(self, granules: Any, measure: Any, watch: Any = None) -> Any:
        self.asked.append("open")
        return LocalEngine().open(granules, measure, watch)

    def approximate(self, granules: Any, attributes: Any, limit: int) -> Any:
        self.asked.append("approximate")
        return super().approximate(granules, attributes, limit)

    def granulate(self, table: Any) -> Any:
        self.asked.append("granulate")
        return super().granulate(table)


@pytest.fixture
def started_threads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The threads that were started to share work, by name."""
    names: list[str] = []
    start = threading.Thread.start

    def noting(thread: threading.Thread) -> None:
        if thread.name.startswith("ThreadPoolExecutor"):
            names.append(thread.name)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", noting)
    return names


@pytest.fixture(scope="module")
def large() -> pd.DataFrame:
    """Enough cells that threads share every part of the work."""
    codes = np.random.default_rng(0).integers(0, 4, (40_000, 60), np.int8)
    frame = pd.DataFrame(codes).add_prefix("c")
    return frame.assign(x=codes[:, 0] // 2, d=codes[:, 0])


@pytest.fixture(scope="module")
def large_file(large: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "t.csv"
    large.to_csv(path, index=False)
    return path


def _functions_with(option: str) -> list[str]:
    return [name for name in FUNCTIONS if option in options_of(getattr(plar, name))]


def _commands_with(parameter: str) -> list[str]:
    return [name for name in SHELL if parameter in [known.name for known in COMMANDS[name]]]


@pytest.mark.parametrize("kind", ["file", "frame", "array"])
@pytest.mark.parametrize("entry", _functions_with("n_jobs"))
def test_jobs_of_functions(
    entry: str, kind: str, large: pd.DataFrame, large_file: Path, started_threads: list[str]
) -> None:
    data: Any = {"file": large_file, "frame": large, "array": large.to_numpy()}[kind]
    case = Case(None, attributes=(-2,))
    base = {"decision": -1} | ({"max_size": 1} if entry == "reducts" else {})
    FUNCTIONS[entry](data, case, n_jobs=1, **base)
    assert started_threads == []
    FUNCTIONS[entry](data, case, n_jobs=2, **base)
    assert started_threads


@pytest.mark.parametrize("entry", _commands_with("n_jobs"))
def test_jobs_of_commands(
    entry: str, large_file: Path, started_threads: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    case = Case(None, attributes=("x",))
    base = {"decision": "d"} | ({"max_size": 1} if entry == "reducts" else {})
    _shell(entry, large_file, case, {**base, "jobs": 1}, capsys)
    assert started_threads == []
    _shell(entry, large_file, case, {**base, "jobs": 2}, capsys)
    assert started_threads


@pytest.mark.parametrize("entry", _functions_with("memory_limit"))
def test_memory_limit_of_functions(entry: str) -> None:
    with pytest.raises(plar.MemoryLimitExceeded, match="the memory limit is 1 MB"):
        FUNCTIONS[entry](SEARCHED, Case(None), decision="d", memory_limit="1MB")


@pytest.mark.parametrize("entry", _commands_with("memory_limit"))
def test_memory_limit_of_commands(tmp_path: Path, entry: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = _written(tmp_path, SEARCHED)
    with pytest.raises(plar.MemoryLimitExceeded, match="the memory limit is 1 MB"):
        _shell(entry, path, Case(None), {"decision": "d", "memory_limit": "1MB"}, capsys)


@pytest.mark.parametrize("entry", _functions_with("engine"))
def test_engine_of_functions(entry: str) -> None:
    engine = Recording()
    FUNCTIONS[entry](SEARCHED, Case(None), decision="d", engine=engine)
    assert engine.asked[0] == "granulate"
    assert ("open" in engine.asked) == (entry not in ("select", "rules", "approximations", "granulate"))
    assert ("approximate" in engine.asked) == (entry == "approximations")


@pytest.mark.parametrize("entry", _commands_with("engine"))
def test_engine_of_commands(tmp_path: Path, entry: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = _written(tmp_path, SEARCHED)
    base = {"decision": "d"}
    with pytest.raises(plar.UnknownNameError, match="Unknown engine 'abacus'"):
        _shell(entry, path, Case(None), {**base, "engine": "abacus"}, capsys)
    for option in ({"master": "local[1]"}, {"conf": ["a=b"]}):
        with pytest.raises(plar.ParameterError, match="settings of Spark"):
            _shell(entry, path, Case(None), {**base, **option}, capsys)


@pytest.mark.parametrize("entry", _functions_with("progress"))
def test_progress_of_functions(entry: str) -> None:
    phases: list[str] = []
    asked: Options = {"decision": "d", "progress": lambda phase, done, total: phases.append(phase)}
    FUNCTIONS[entry](SEARCHED, Case(None), **asked)
    assert phases[:2] == ["read", "granulate"]


@pytest.mark.parametrize("entry", _functions_with("on_step"))
def test_on_step_of_functions(entry: str) -> None:
    steps: list[plar.Step] = []
    FUNCTIONS[entry](SEARCHED, Case(None), decision="d", on_step=steps.append)
    assert steps


@pytest.mark.parametrize("entry", _functions_with("checkpoint"))
def test_checkpoint_of_functions(tmp_path: Path, entry: str) -> None:
    FUNCTIONS[entry](SEARCHED, Case(None), decision="d", checkpoint=tmp_path / "c.json")
    assert (tmp_path / "c.json").exists()


@pytest.mark.parametrize("entry", _commands_with("checkpoint"))
def test_checkpoint_of_commands(tmp_path: Path, entry: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked = {"decision": "d", "checkpoint": tmp_path / "c.json"}
    _shell(entry, _written(tmp_path, SEARCHED), Case(None), asked, capsys)
    assert (tmp_path / "c.json").exists()


@pytest.mark.parametrize("entry", _functions_with("verbose"))
def test_verbose_functions(entry: str, capsys: pytest.CaptureFixture[str]) -> None:
    FUNCTIONS[entry](SEARCHED, Case(None), decision="d")
    assert capsys.readouterr().err == ""
    FUNCTIONS[entry](SEARCHED, Case(None), decision="d", verbose=True)
    assert "rows        64 rows, " in capsys.readouterr().err


@pytest.mark.parametrize("entry", _functions_with("equivalent"))
def test_equivalent_columns(entry: str) -> None:
    for asked in (False, True):
        result = getattr(plar, entry)(SEARCHED, "d", equivalent=asked)
        reduct = result if entry == "reduce" else result.first
        assert reduct.equivalent == ((("x", "x2"),) if asked else None)


# -- plar.verify: what a proof says is read with the options of the proof's table --------------------------------


@pytest.mark.filterwarnings("ignore::plar.PlarWarning")
@pytest.mark.parametrize("way", ["function", "command"])
@pytest.mark.parametrize(
    "option", ["header", "separator", "encoding", "numeric", "na", "missing", "missing_decision", "weights"]
)
def test_verify(tmp_path: Path, option: str, way: str, capsys: pytest.CaptureFixture[str]) -> None:
    case = CASES[option]
    path = _written(tmp_path, case.table, encoding=case.value if option == "encoding" else "utf-8")
    base = _base("reduce", case)
    asked = {option: case.value}
    proof = plar.reduce(path, search="smallest", **{**base, **asked}).proof
    assert proof is not None
    proof.save(tmp_path / "proof.json")

    def verify(options: Options) -> Any:
        if way == "function":
            return plar.verify(proof, path, **options)
        app(["verify", str(tmp_path / "proof.json"), str(path), *_words(options)], standalone_mode=False)
        return "Verified" in capsys.readouterr().out

    assert verify(asked)
    with pytest.raises(plar.PlarError):
        verify({})


# -- scikit-learn ------------------------------------------------------------------------------------------------


def _typed(table: Table) -> Table:
    """The table with None where a field of a file would be empty."""
    return {name: [None if value == "" else value for value in column] for name, column in table.items()}


def _frame(table: Table) -> pd.DataFrame:
    return pd.DataFrame(_typed(table))


SELECTORS = ["ReductSelector", "RelevantSelector", "FeatureSelector", "FeatureSelectorCV"]


def _selector(entry: str, options: Options) -> Any:
    """A selector with these options; if it takes an estimator, with one of the least demands."""
    kind = getattr(plar.sklearn, entry)
    if entry != "FeatureSelectorCV":
        return kind(**options)
    tree = make_pipeline(OneHotEncoder(handle_unknown="ignore"), DecisionTreeClassifier(random_state=0))
    return kind(**{"estimator": tree, "cv": 3, **options})


def _found(selector: Any) -> Any:
    """What a fitted selector says."""
    if hasattr(selector, "relevant_"):
        return _plain(selector.relevant_.to_dict())
    if hasattr(selector, "reduct_"):
        return _plain(selector.reduct_.to_dict())
    curve = {name: scores.tolist() for name, scores in getattr(selector, "cv_results_", {}).items()}
    return _selection(selector.selection_), curve


def _selected(selector: Any, table: Table) -> Any:
    frame = _frame(table)
    selector.fit(frame.drop(columns="d"), frame["d"])
    transformed = selector.transform(frame.drop(columns="d")).tolist() if selector.get_support().any() else []
    return _found(selector), repr(transformed)


def _selectors() -> Iterator[tuple[str, str]]:
    for entry in SELECTORS:
        for option in _selector(entry, {}).get_params(deep=False):
            if option not in ("engine", "n_jobs"):
                yield entry, option


@pytest.mark.filterwarnings("ignore::plar.PlarWarning", "ignore:No feature was selected")
@pytest.mark.parametrize(("entry", "option"), [*_selectors()])
def test_selectors(entry: str, option: str) -> None:
    is_output = option == "output" and "Feature" not in entry
    case = Case("bins", CASES["bins"].table, {"bins": {"x": [1.0]}}) if is_output else _case(entry, option)
    base = {name: value for name, value in case.base.items() if name != "decision"}
    assert isinstance(case.table, dict)
    without = _selected(_selector(entry, base), case.table)
    assert _selected(_selector(entry, {**base, option: case.value}), case.table) != without


@pytest.mark.parametrize("entry", SELECTORS)
@pytest.mark.parametrize("kind", ["frame", "array"])
def test_jobs_of_selectors(entry: str, kind: str, large: pd.DataFrame, started_threads: list[str]) -> None:
    frame = large.drop(columns="d")
    X = frame if kind == "frame" else frame.to_numpy()
    for options in ({"n_jobs": 1}, {"engine": LocalEngine(n_jobs=1)}):
        _selector(entry, options).fit(X, large["d"])
        assert started_threads == []
    _selector(entry, {"n_jobs": 2}).fit(X, large["d"])
    assert started_threads


@pytest.mark.parametrize("entry", SELECTORS)
def test_engine_of_selectors(entry: str) -> None:
    engine = Recording()
    frame = _frame(SEARCHED)
    _selector(entry, {"engine": engine}).fit(frame.drop(columns="d"), frame["d"])
    assert engine.asked[0] == "granulate"
    assert ("open" in engine.asked) == ("Feature" not in entry)


def _classified(options: Options, table: Table) -> Any:
    """What a classifier's rules say, and what it predicts."""
    frame = _frame(table)
    X = frame.drop(columns="d")
    model = plar.sklearn.RuleClassifier(**options).fit(X, frame["d"])
    said = _plain(model.rules_.to_dict())
    del said["rule_kind"]
    return said, model.predict_proba(X).tolist()


@pytest.mark.parametrize(
    "option", [option for option in plar.sklearn.RuleClassifier().get_params() if option not in ("engine", "n_jobs")]
)
def test_options_of_the_classifier(option: str) -> None:
    case = CLASSIFIER.get(option) or CASES[option]
    base = {name: value for name, value in case.base.items() if name != "decision"}
    assert isinstance(case.table, dict)
    without = _classified(base, case.table)
    assert _classified({**base, option: case.value}, case.table) != without


@pytest.mark.parametrize("kind", ["frame", "array"])
def test_jobs_of_the_classifier(kind: str, large: pd.DataFrame, started_threads: list[str]) -> None:
    frame = large.drop(columns="d")
    X = frame if kind == "frame" else frame.to_numpy()
    model = plar.sklearn.RuleClassifier(max_conditions=1, n_jobs=1).fit(X, large["d"])
    model.predict(X)
    plar.sklearn.RuleClassifier(max_conditions=1, engine=LocalEngine(n_jobs=1)).fit(X, large["d"])
    assert started_threads == []
    model.set_params(n_jobs=2).predict(X)
    n_predicting = len(started_threads)
    assert n_predicting
    model.fit(X, large["d"])
    assert len(started_threads) > n_predicting


def test_engine_of_the_classifier() -> None:
    engine = Recording()
    frame = _frame(SEARCHED)
    plar.sklearn.RuleClassifier(engine=engine).fit(frame.drop(columns="d"), frame["d"])
    assert engine.asked == ["granulate"]


# -- Spark ML ----------------------------------------------------------------------------------------------------

#: what the functions call a Param
PARAMS = {
    "labelCol": "decision",
    "inputCols": "conditions",
    "weightCol": "weights",
    "maxAttributes": "max_attributes",
    "missingDecision": "missing_decision",
    "decisionBins": "decision_bins",
    "timeLimit": "time_limit",
}
#: Params that have no effect on the reduct
OF_THE_STAGE = {"outputCol", "output", "layout", "partitions"}


def _on_spark(spark: Any, table: Table) -> Any:
    rows = zip(*_typed(table).values(), strict=True)
    return spark.createDataFrame([*rows], [*table])


@pytest.mark.filterwarnings("ignore::plar.PlarWarning")
def test_stage(spark: Any) -> None:
    from plar.spark import ReductSelector

    spelled = {name: param for param, name in PARAMS.items()}
    for param in inspect.signature(ReductSelector).parameters:
        if param in OF_THE_STAGE:
            continue
        option = PARAMS.get(param, param)
        case = CASES[option]
        assert isinstance(case.table, dict)
        frame = _on_spark(spark, case.table)
        base = {spelled.get(name, name): value for name, value in {"decision": "d", **case.base}.items()}
        value = str(case.value) if option == "time_limit" else case.value
        models = [ReductSelector(**given).fit(frame) for given in (base, {**base, param: value})]
        without, outcome = (_plain(model.reduct.to_dict()) for model in models)
        assert outcome != without, param


def test_params_of_the_stage_itself(spark: Any) -> None:
    from plar.spark import ReductSelector

    frame = _on_spark(spark, {"x": [0.5, 1.5], "d": ["p", "q"]})
    cut = ReductSelector(labelCol="d", bins="width:2", output="bins", outputCol="v").fit(frame)
    rows = cut.transform(frame).select("x", "v").collect()
    assert [(row.x, row.v.toArray().tolist()) for row in rows] == [(0, [0.0]), (1, [1.0])]
    for params, error in (({"layout": "sideways"}, "layout 'sideways'"), ({"partitions": 0}, "'partitions' parameter")):
        with pytest.raises(plar.PlarError, match=error):
            ReductSelector(labelCol="d", **params).fit(frame)
