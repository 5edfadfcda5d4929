"""Reading options are said once: every way in has their names and defaults, and they mean the same everywhere."""

from __future__ import annotations

import datetime
import inspect
import json
import os
import shlex
import subprocess
import sys
import threading
from dataclasses import fields
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import plar
from plar.cli.options import CheckReading, TableOptions
from plar.coding.column_names import check_names, resolve_all
from plar.engines import as_engine
from plar.options import CheckOptions, FormatKwargs, ReadingKwargs, ReadOptions, RunOptions, SearchOptions
from plar.results.report.reproduce import python_call, shell_command
from support.signatures import default_of, options_of

READING = {field.name: field.default for field in fields(ReadOptions)}


FUNCTIONS = [
    *("reduce", "relevant", "reducts", "approximations", "core", "theta", "significance", "granulate", "read_table"),
    "verify",
]
#: how every function runs
RUNNING = {"engine", "n_jobs", "memory_limit", "verbose", "progress"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_have_the_options_of_reading(name: str) -> None:
    function = getattr(plar, name)
    assert READING.keys() - {"y"} <= {*options_of(function)}
    for option, parameter in inspect.signature(function).parameters.items():
        if option in READING:
            assert parameter.default == READING[option]


def test_select_has_the_options_of_reading_and_says_target() -> None:
    others = {"y", "decision", "decision_bins"}
    assert (READING.keys() - others) | {"target", "target_bins"} <= {*options_of(plar.select)}
    with pytest.raises(TypeError, match=r"select\(\) got .* 'decision_bins'\. Did you mean 'target_bins'\?"):
        plar.select({"a": [1, 2], "d": [0, 1]}, "d", decision_bins="quantile:2")
    settings = plar.select({"a": [1, 2, 1, 2], "d": [0, 1, 0, 1]}, "d").settings
    assert settings["bins"] == "auto"
    assert settings["missing_decision"] == "drop"


@pytest.mark.parametrize("name", ["select", "check", *(name for name in FUNCTIONS if name != "read_table")])
def test_functions_run_alike(name: str) -> None:
    function = getattr(plar, name)
    assert {*options_of(function)} >= RUNNING
    for option in RUNNING:
        assert default_of(function, option) == default_of(plar.reduce, option)


def test_the_options_by_keyword_are_those_of_reading() -> None:
    assert [*ReadingKwargs.__annotations__] == [name for name in READING if name not in ("decision", "y")]


def test_a_check_has_the_options_of_reading_that_choose_and_cut_no_columns() -> None:
    beside = ("decision", "y", "conditions", "drop", "bins", "decision_bins")
    assert {*FormatKwargs.__annotations__} == {name for name in READING if name not in beside}
    assert FormatKwargs.__annotations__.items() <= ReadingKwargs.__annotations__.items()
    in_shell = {"header" if field.name == "no_header" else field.name for field in fields(CheckReading)}
    assert in_shell == {*FormatKwargs.__annotations__}
    assert {field.name for field in fields(CheckOptions)} <= inspect.signature(plar.check).parameters.keys()


def test_reduce_has_every_option() -> None:
    declared = [ReadOptions, SearchOptions, RunOptions]
    defaults = {field.name: field.default for kind in declared for field in fields(kind)}
    parameters = inspect.signature(plar.reduce).parameters
    assert {name: parameters[name].default for name in defaults} == defaults
    assert parameters.keys() - defaults.keys() == {"data", "measure", "verbose", "progress", "on_step"}


def test_unknown_options_are_refused_as_python_does() -> None:
    with pytest.raises(
        TypeError, match=r"core\(\) got an unexpected keyword argument 'sepaator'. Did you mean 'separator'\?"
    ):
        plar.core({"a": [1], "d": [1]}, "d", sepaator=",")  # type: ignore[call-arg]


def test_the_shell_has_the_options_of_reading() -> None:
    known = {field.name: field.default for field in fields(TableOptions)}
    known["header"] = not known.pop("no_header")
    assert known.keys() - {"file", "format"} == READING.keys() - {"y"}
    assert {key: known[key] or None for key in known if key in READING} == {
        key: value or None for key, value in READING.items() if key != "y"
    }


def test_selectors_have_the_options_that_make_sense_for_them() -> None:
    sklearn = pytest.importorskip("plar.sklearn")
    parameters = inspect.signature(sklearn.ReductSelector).parameters
    shared = READING.keys() & parameters.keys()
    assert shared == {"missing", "na", "bins", "decision_bins", "numeric"}
    assert all(parameters[key].default == READING[key] for key in shared)
    selecting = options_of(plar.select)
    selector = inspect.signature(sklearn.FeatureSelector).parameters
    assert {*selector} - {"output"} == {*selecting} & {*selector}
    reading = {"missing", "na", "bins", "numeric"}
    for name in selector.keys() - reading - {"output"}:
        assert selector[name].default == default_of(plar.select, name)
    assert reading == READING.keys() & selector.keys()
    assert {name: selector[name].default for name in reading} == {name: READING[name] for name in reading} | {
        "bins": "auto"
    }
    by_folds = inspect.signature(sklearn.FeatureSelectorCV).parameters
    assert by_folds.keys() - selector.keys() == {"estimator", "cv", "scoring", "min_columns"}
    assert {name: by_folds[name].default for name in selector} == {
        name: parameter.default for name, parameter in selector.items()
    }
    classifier = inspect.signature(sklearn.RuleClassifier).parameters
    assert {*classifier} <= {*options_of(plar.rules)}
    assert {name: classifier[name].default for name in reading} == {name: selector[name].default for name in reading}
    for name in classifier.keys() - reading:
        assert classifier[name].default == default_of(plar.rules, name)
    spark = pytest.importorskip("plar.spark")
    parameters = inspect.signature(spark.ReductSelector).parameters
    shared = READING.keys() & parameters.keys()
    assert shared == {"missing", "na", "bins"}
    assert all(parameters[key].default == READING[key] for key in shared)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoding": "latin-0"}, "Unknown encoding 'latin-0'"),
        ({"separator": ",,"}, "must be one ASCII character"),
        ({"decimal": ";"}, "'decimal' parameter must be"),
        ({"conditions": {"a"}}, "as a set, which is unordered"),
        ({"minimal": "no"}, "'minimal' parameter must be True or False. Got 'no'"),
        ({"equivalent": None}, "'equivalent' parameter must be True or False"),
        ({"header": np.array([True, False])}, "'header' parameter must be True or False"),
    ],
)
def test_what_makes_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(plar.ParameterError, match=message):
        plar.reduce({"a": [1, 2], "d": [0, 1]}, "d", **options)


def test_theta_takes_the_decision_by_name_only() -> None:
    with pytest.raises(TypeError):
        plar.theta({"a": [0, 1], "d": [0, 1]}, "d", ["a"])  # type: ignore[call-arg]


def test_whole_numbers_are_labels_in_every_option() -> None:
    frame = pd.DataFrame({2021: [1, 2, 3], 0: [1, 1, 2], 5: [0, 1, 1]})
    assert "0" in plar.reduce(frame, 5, include=[0]).attributes
    assert plar.theta(frame, [0], decision=5) == plar.theta(frame, ["0"], decision=5)
    assert plar.significance(frame, [2021], decision=5).keys() == {"2021", "0"}


def test_transform_reads_as_the_fit_did(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("0;1,5;x\n1;2,5;y\n2;?;y\n3;4,5;x\n")
    reduct = plar.reduce(
        path, -1, header=False, separator=";", decimal=",", na="?", bins={1: [2.0]}, include=[1], weights=None
    )
    assert reduct.transform(path, output="bins").rows() == [
        ("0", 0, "x"),
        ("1", 1, "y"),
        ("2", None, "y"),
        ("3", 1, "x"),
    ]
    assert reduct.settings["bins"] == {"x1": [2.0]}
    scope: dict[str, Any] = {}
    exec(python_call(reduct), scope)
    assert scope["r"].attributes == reduct.attributes
    command = shell_command(reduct)
    assert command is not None
    assert "--no-header --separator ';' --decimal , --na '?' --bins x1=2.0" in command


def test_na_counts_where_bins_are_applied() -> None:
    frame = pd.DataFrame({"a": [0.5, "?", 3.0, 9], "d": [0, 1, 1, 0]})
    reduct = plar.reduce(frame, "d", na="?", bins={"a": [1.0]}, include=["a"])
    assert reduct.transform(frame, output="bins")["a"].isna().tolist() == [False, True, False, False]
    sklearn = pytest.importorskip("plar.sklearn")
    selector = sklearn.ReductSelector(na="?", bins={"a": [1.0]}, include=["a"], output="bins").fit(
        frame[["a"]], frame["d"]
    )
    assert selector.transform(frame[["a"]])[:, 0].tolist()[0] == 0


def test_a_number_in_na_counts_where_bins_are_applied(tmp_path: Path) -> None:
    numbers = [-999, 1, 5, -999]
    frame = pd.DataFrame({"a": numbers, "d": list("xyyx")})
    reduct = plar.reduce(frame, "d", na=-999.0, bins={"a": [2.0]}, include=["a"])
    assert (reduct.missing, reduct.cuts) == ({"a": 2}, {"a": (2.0,)})
    reduct.save(tmp_path / "r.json")
    again = plar.load(tmp_path / "r.json")
    assert again == reduct
    expected = [None, 0, 1, None]
    tables: list[Any] = [frame, pl.DataFrame(frame), pl.DataFrame(frame).to_arrow(), pl.DataFrame(frame).lazy()]
    tables += [{"a": np.array(numbers, kind), "d": frame["d"]} for kind in ("i2", "i8", "f4", "O")]
    for kind in ("Int64", "Float32", object, "category"):
        tables.append(frame.assign(a=frame["a"].astype(kind)))
    for table in tables:
        cut = again.transform(table, output="bins")
        column = (cut.collect() if isinstance(cut, pl.LazyFrame) else cut)["a"]
        values = column.to_pylist() if hasattr(column, "to_pylist") else list(column)
        assert [None if value is None or value != value else value for value in values] == expected, type(table)
    path = tmp_path / "t.csv"
    path.write_text("a;d\n-999,00;x\n1;y\n5;y\n-9,99e2;x\n")
    from_text = plar.reduce(path, "d", na=-999, decimal=",", bins={"a": [2.0]}, include=["a"])
    assert from_text.missing == {"a": 2}
    assert from_text.transform(path, output="bins")["a"].to_list() == expected
    sklearn = pytest.importorskip("plar.sklearn")
    for kind in ("i4", "f8"):
        X = np.array([numbers, numbers], kind).T
        selector = sklearn.ReductSelector(na=-999, bins={0: [2.0]}, include=[0], output="bins").fit(X, list("xyyx"))
        np.testing.assert_array_equal(selector.transform(X)[:, 0], [np.nan, 0, 1, np.nan])


@pytest.mark.parametrize(
    ("na", "said", "missing"),
    [
        (None, "", {"a": 1, "b": 1}),
        ((), "--na none", {"b": 1}),
        ("?", "--na '?'", {"a": 2, "b": 1}),
        (-999, "--na -999", {"a": 1, "b": 3}),
        (["?", -999.0, "it's"], "--na '?' --na -999.0 --na 'it'\"'\"'s'", {"a": 2, "b": 3}),
        ("none", None, {"a": 2, "b": 1}),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore:One number is written")
def test_what_means_missing_can_be_reproduced(
    tmp_path: Path, na: Any, said: str | None, missing: dict[str, int]
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b,d\nNA,-999,x\n?,-999.0,y\nnone,,x\nz,1,y\n")
    reduct = plar.reduce(path, "d", na=na)
    assert reduct.missing == missing
    reduct.save(tmp_path / "r.json")
    assert plar.load(tmp_path / "r.json").settings["na"] == reduct.settings["na"]
    scope: dict[str, Any] = {}
    exec(python_call(reduct), scope)
    assert scope["r"].missing == missing
    command = shell_command(reduct)
    if said is None:  # --na none has another meaning
        assert command is None
        return
    assert command is not None
    assert command.endswith(f"--measure SCE {said}".strip())
    code, out, _ = shell(tmp_path, *shlex.split(command)[1:], "--json")
    assert (code, json.loads(out)["missing"]) == (0, missing)


def test_numbers_written_in_several_ways(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('"a,b",c,d\n1,1,x\n2,1,y\n01,1,x\n1.0,1,x\n')
    with pytest.warns(plar.PlarWarning, match=r"several ways in 'a,b', such as '1' and '01'.*numeric='a,b'"):
        plain = plar.granulate(path, "d")
    assert plain.cardinalities == (4, 1)
    for data in (path, pl.read_csv(path, infer_schema=False), plain):
        assert plar.granulate(data, "d", numeric="a,b").cardinalities == (2, 1)
    path.write_text("a,d\n9007199254740992,x\n9007199254740993,y\n9007199254740993.0,y\n")
    assert list(plar.granulate(path, "d", numeric=0).dictionaries[0]) == [2**53, 2**53 + 1]
    path.write_text('"a,b",d\n1,x\n2,y\n')
    with pytest.raises(plar.TableError, match="'d' is to compare as numbers, but holds 'x'"):
        plar.granulate(path, "d", numeric=["a,b", "d"])


def test_masked_arrays_and_sets_are_refused() -> None:
    masked = np.ma.array([1, 2], mask=[False, True])
    cases: list[tuple[Any, dict[str, Any]]] = [
        ({"a": masked, "d": [0, 1]}, {"decision": "d"}),
        ({"a": [1, 2]}, {"y": masked}),
    ]
    for data, options in cases:
        with pytest.raises(plar.TableError, match="masked array"):
            plar.reduce(data, **options)
    with pytest.raises(plar.TableError, match="is one set, which has no rows"):
        plar.reduce({"a": {1, 2}, "d": [0, 1]}, "d")
    sklearn = pytest.importorskip("plar.sklearn")
    for X, y in [(np.ma.array([[1], [2]], mask=[[False], [True]]), [0, 1]), ([[1], [2]], masked)]:
        with pytest.raises(plar.TableError, match="masked array"):
            sklearn.ReductSelector().fit(X, y)


# -- files ---------------------------------------------------------------------------------------------------


def test_names_of_files_are_no_patterns(tmp_path: Path) -> None:
    (tmp_path / "a[1].ndjson").write_text('{"a":1,"d":0}\n{"a":2,"d":1}\n')
    (tmp_path / "a1.ndjson").write_text('{"a":7,"d":7}\n')
    assert plar.granulate(tmp_path / "a[1].ndjson", "d").dictionaries == ([1, 2],)
    pl.DataFrame({"a": [1, 2], "d": [0, 1]}).write_parquet(tmp_path / "x.jsonl.parquet")
    assert plar.reduce(tmp_path / "x.jsonl.parquet", "d").attributes == ("a",)


_TIME = datetime.datetime(2020, 1, 1, 0, 0, 0, 1500)


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pl.Series([_TIME]).cast(pl.Datetime("us")), pl.Series([_TIME]).cast(pl.Datetime("ms"))),
        (pl.Series([_TIME]).dt.replace_time_zone("UTC"), pl.Series([_TIME]).dt.replace_time_zone("Europe/Rome")),
        (pl.Series([2**53 + 1]), pl.Series([1.5])),
        (pl.Series(["1.5"]).cast(pl.Decimal(10, 2)), pl.Series([1.5])),
    ],
)
def test_files_of_other_types_are_not_cast_with_loss(tmp_path: Path, one: Any, other: Any, suffix: str) -> None:
    for name, series in (("t1", one), ("t2", other)):
        frame = pl.DataFrame({"a": series, "d": [1]})
        frame.write_parquet(tmp_path / f"{name}.parquet")
        frame.write_ipc(tmp_path / f"{name}.arrow")
    with pytest.raises(plar.TableError, match=r"Column 'a' is .* in '.*t2\.\w+' and .* in '.*t1\.\w+'"):
        plar.granulate(tmp_path / f"t*.{suffix}", "d")


def test_files_of_other_types_are_read_where_nothing_is_lost(tmp_path: Path) -> None:
    for i, series in enumerate([pl.Series([3, 4]), pl.Series([3.0, None]), pl.Series([3, 5], dtype=pl.UInt8)]):
        pl.DataFrame({"a": series, "d": [0, 1]}).write_parquet(tmp_path / f"n{i}.parquet")
    assert set(plar.granulate(tmp_path / "n*.parquet", "d").dictionaries[0]) == {3.0, 4.0, 5.0, None}
    kinds: list[Any] = [pl.Enum(["x", "y"]), pl.Enum(["y", "z"]), pl.String]
    for i, dtype in enumerate(kinds):
        pl.DataFrame({"a": pl.Series(["y"], dtype=dtype), "d": [0]}).write_parquet(tmp_path / f"e{i}.parquet")
    assert plar.granulate(tmp_path / "e*.parquet", "d").n_objects == 3
    (tmp_path / "big.ndjson").write_text('{"a":9007199254740993,"d":0}\n{"a":1.5,"d":1}\n')
    with pytest.raises(plar.TableError, match="line 2: column 'a' has fractions, and 9007199254740993"):
        plar.granulate(tmp_path / "big.ndjson", "d")


def test_folders_that_are_divided_keep_their_columns(tmp_path: Path) -> None:
    for year, kind in [(2020, "a"), (2021, "b")]:
        folder = tmp_path / "h" / f"year={year}" / f"kind={kind}"
        folder.mkdir(parents=True)
        pl.DataFrame({"a": [1, 2], "d": [0, year]}).write_parquet(folder / "p.parquet")
    for path in (tmp_path / "h", tmp_path / "h/year=*/kind=*/*.parquet", tmp_path / "h/**/*.parquet"):
        table = plar.read_table(path, "d")
        assert table.names == ("a", "d", "year", "kind")
        assert table.select(["year", "kind"]).rows()[2] == (2021, "b", 0)
    assert plar.read_table(folder / "p.parquet", "d").names == ("a", "d")


def test_json_arrays_and_excel(tmp_path: Path) -> None:
    for text in ('[{"a":1,"d":"x"},\n {"a":2,"d":"y"}]', '{"a":1,"d":"x"}\n{"a":2,"d":"y"}\n'):
        (tmp_path / "t.json").write_text(text)
        assert plar.granulate(tmp_path / "t.json", "d").dictionaries == ([1, 2],)
    (tmp_path / "t.json").write_text('[{"a":1},{"a":"x"}]')
    with pytest.raises(plar.TableError, match="object 2: column 'a' has text after a number"):
        plar.granulate(tmp_path / "t.json", "a")
    try:
        import fastexcel  # type: ignore[import-not-found] # noqa: F401
    except ImportError:
        (tmp_path / "t.xlsx").write_bytes(b"PK")
        with pytest.raises(plar.TableError, match=r"needs fastexcel, .*plar\[excel\]"):
            plar.granulate(tmp_path / "t.xlsx", "d")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are POSIX's")
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_pipe_is_read_once(tmp_path: Path, suffix: str) -> None:
    frame = pl.DataFrame({"a": [1, 1], "b": [2, 3], "d": ["x", "y"]})
    (frame.write_csv if suffix == "csv" else frame.write_parquet)(tmp_path / "whole")
    os.mkfifo(tmp_path / f"t.{suffix}")
    whole = (tmp_path / "whole").read_bytes()
    writer = threading.Thread(target=(tmp_path / f"t.{suffix}").write_bytes, args=(whole,))
    writer.start()
    assert plar.reduce(tmp_path / f"t.{suffix}", "d").attributes == ("b",)
    writer.join()


# -- the shell -----------------------------------------------------------------------------------------------


def shell(folder: Path, *words: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "plar", *words], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_columns_with_commas_and_outputs_in_the_shell(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('"a,b",c,e,d\n1,1,1,x\n2,1,1,y\n')
    assert shell(tmp_path, "core", "t.csv", "-d", "d", "--conditions", "a,b", "--conditions", "c,e")[1] == "a,b\n"
    assert shell(tmp_path, "theta", "t.csv", "-d", "-1", "-a", "a,b", "-a", "1,e")[1] == "0.0\n"
    same = shell(tmp_path, "reduce", "t.csv", "-d", "d", "--checkpoint", "X.csv", "-o", "X.csv")
    assert same[0] == 2
    assert "both name 'X.csv'" in same[2]
    long = shell(tmp_path, "reduce", "t.csv", "-d", "d", "-o", "x" * 250 + ".csv")
    assert (long[0], long[1]) == (2, "")
    assert "File name too long" in long[2]


def test_granule_files_keep_their_source(tmp_path: Path) -> None:
    path = tmp_path / "g.parquet"
    plar.granulate({"a": [0.5, 1.5, 2.5], "d": [0, 0, 1]}, "d").save(path)
    reduct = plar.reduce(path, bins={0: [1.0]})
    assert (reduct.source, reduct.settings["bins"]) == (str(path), {"a": [1.0]})


def test_outputs_keep_permissions_and_links(tmp_path: Path) -> None:
    table = plar.read_table("examples/tic_tac_toe.csv", "x_wins")
    (tmp_path / "real.csv").touch(0o600)
    (tmp_path / "link.csv").symlink_to("real.csv")
    table.sink(["top_left"], tmp_path / "link.csv")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "real.csv").stat().st_size > 0


def test_granules_of_several_types_merge_as_in_memory(tmp_path: Path) -> None:
    values = [1, "1", None, 2.5, True, b"x"]
    granules = plar.granulate({"a": values, "d": [*range(6)]}, "d")
    granules.save(tmp_path / "g.parquet")
    again = plar.Granules.open(tmp_path / "g.parquet")
    assert len(granules.merge(again)) == len(granules)
    assert again.fingerprint() == granules.fingerprint()


def test_the_first_of_several_late_options_is_named() -> None:
    granules = plar.granulate({"a": [0, 1], "d": [0, 1]}, "d")
    late: dict[str, Any] = {"y": [0, 1], "na": "?", "weights": "a", "decision_bins": "width:2"}
    for first, second in combinations(late, 2):
        with pytest.raises(plar.TableError, match=f"so {first}= comes too late"):
            plar.reduce(granules, **{second: late[second], first: late[first]})


class Counted(str):
    """A name that counts how often it is compared."""

    __slots__ = ()
    comparisons = 0

    def __eq__(self, other: object) -> bool:
        Counted.comparisons += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_names_are_looked_up_and_not_searched() -> None:
    n = 2_000
    names = [Counted(f"c{j}") for j in range(n)]
    Counted.comparisons = 0
    with pytest.raises(plar.TableError, match="twice"):
        check_names([*names, *names], "the table")
    with pytest.raises(plar.TableError, match=r"'c1999' is given twice"):
        resolve_all(names, [*names, names[-1]], "column")
    assert Counted.comparisons < 20 * n


def test_spark_takes_no_threads_of_this_machine() -> None:
    with pytest.raises(plar.ParameterError, match=r"n_jobs= sets the threads of this machine, .*local\[2\]"):
        plar.reduce({"a": [0, 1], "d": [0, 1]}, "d", engine="spark", n_jobs=2)
    for engine in ("local", "spark", "cuda"):
        with pytest.raises(plar.ParameterError, match="'n_jobs' parameter must be None or -1"):
            as_engine(engine, n_jobs=0)
    for words, message in (
        (["-j", "2", "--master", "local[2]"], "--jobs is for this machine, but --master is 'local[2]'"),
        (["-j", "0"], "--jobs must be -1 for all cores, or 1 or more. Got 0 instead."),
    ):
        code, _, errors = shell(Path(), "core", "t.csv", "-d", "d", "-e", "spark", *words)
        assert code == 2
        assert message in errors


@pytest.mark.parametrize("na", [b"?", bytearray(b"?"), {"?": 1}])
def test_bytes_and_mappings_are_no_spellings(na: Any) -> None:
    with pytest.raises(plar.ParameterError, match="na= takes texts and numbers"):
        plar.reduce({"a": [63, 1], "d": [0, 1]}, "d", na=na)


def test_a_label_of_one_column_counts_once() -> None:
    frame = pd.DataFrame({("a", "x"): [0, 1, 0, 1], ("a", "y"): [0, 0, 1, 1], ("d", ""): [0, 1, 1, 0]})
    reduct = plar.reduce(frame, ("d", ""), include=("a", "x"), max_attributes=1)
    assert reduct.attributes == ("('a', 'x')",)
    with pytest.raises(plar.ParameterError, match="include= alone has 2 columns"):
        plar.reduce({"a": [0, 1], "b": [0, 1], "d": [0, 1]}, "d", include=("a", "b"), max_attributes=1)


# -- rows without a decision -----------------------------------------------------------------------------------

LACKING: dict[str, list[Any]] = {
    "a": ["u", "u", "v", "v", "u", None],
    "n": [1.5, 2.5, 3.5, 4.5, 5.5, 6.5],
    "w": [1, 2, 1, 3, 2, 1],
    "d": [10.0, 20.0, 10.0, None, None, 20.0],
}
PRESENT = {name: [column[i] for i in (0, 1, 2, 5)] for name, column in LACKING.items()}


@pytest.mark.parametrize("kind", ["mapping", "pandas", "polars", "csv", "parquet", "granules", "y"])
@pytest.mark.parametrize(
    "options",
    [{}, {"weights": "w"}, {"decision_bins": "quantile:2"}, {"bins": "quantile:2"}, {"bins": {"n": "mdlp"}}],
    ids=str,
)
def test_rows_without_a_decision_are_dropped(tmp_path: Path, kind: str, options: dict[str, Any]) -> None:
    expected = plar.granulate(PRESENT, "d", **options)
    data: Any = LACKING
    asked: dict[str, Any] = {"decision": "d", **options}
    if kind == "pandas":
        data = pd.DataFrame(LACKING)
    elif kind == "polars":
        data = pl.DataFrame(LACKING)
    elif kind in ("csv", "parquet"):
        data = tmp_path / f"t.{kind}"
        frame = pl.DataFrame(LACKING)
        (frame.write_csv if kind == "csv" else frame.write_parquet)(data)
        if kind == "csv":
            pl.DataFrame(PRESENT).write_csv(tmp_path / "present.csv")
            expected = plar.granulate(tmp_path / "present.csv", "d", **options)
    elif kind == "granules":
        if options.keys() & {"weights", "decision_bins", "bins"}:
            pytest.skip("these come too late for granules, or count the values of all rows")
        data = plar.granulate(LACKING, "d")
        asked = {}
    elif kind == "y":
        data = {name: column for name, column in LACKING.items() if name != "d"}
        asked = {"y": pd.Series(LACKING["d"], name="d"), **options}
    granules = plar.granulate(data, missing_decision="drop", **asked)
    assert granules.n_objects == expected.n_objects
    assert granules.cuts == expected.cuts
    assert granules.fingerprint() == expected.fingerprint()
    with pytest.raises(plar.TableError, match=r"Missing values in 'd' \(\d\)\. Pass missing_decision='value' or"):
        plar.granulate(data, missing_decision="error", **asked)


def test_rows_without_a_decision_are_warned_of(tmp_path: Path) -> None:
    table = {"a": ["u", "u", "v"] * 9, "d": ["p", "q", None] * 9}
    said = r"missing in some rows \(9 rows without 'd'\).*missing_decision='drop'"
    for function in (plar.reduce, plar.relevant, plar.reducts, plar.core):
        with pytest.warns(plar.PlarWarning, match=said):
            function(table, "d")
        function(table, "d", missing_decision="drop")
        function(table, "d", missing="drop")
    (tmp_path / "t.csv").write_text("a,d\nu,p\nv,\nw,q\n")
    _, _, errors = shell(tmp_path, "reduce", "t.csv", "-d", "d")
    assert "(1 row without 'd')" in errors
    assert "--missing-decision drop" in errors
    assert shell(tmp_path, "reduce", "t.csv", "-d", "d", "--missing-decision", "drop")[2] == ""
    with pytest.raises(plar.ParameterError, match="'missing_decision' parameter must be one of: value, drop, error"):
        plar.reduce(table, "d", missing_decision="ignore")


def test_the_stricter_rule_for_missing_values_counts() -> None:
    table = {"a": ["u", None, "v"], "d": ["p", "q", None]}
    counted = {
        (missing, decision): plar.granulate(table, "d", missing=missing, missing_decision=decision).n_objects
        for missing in ("value", "drop")
        for decision in ("value", "drop")
    }
    assert counted == {("value", "value"): 3, ("value", "drop"): 2, ("drop", "value"): 1, ("drop", "drop"): 1}
    with pytest.raises(plar.TableError, match=r"in 'a' \(1\), 'd' \(1\)\. Pass missing='value'"):
        plar.granulate(table, "d", missing="error")
    with pytest.raises(plar.TableError, match=r"in 'd' \(1\)\. Pass missing_decision='value'"):
        plar.granulate(table, "d", missing="drop", missing_decision="error")
    nothing = {"a": [1, 2], "d": [None, None], "w": [0, 0]}
    remedies: list[tuple[dict[str, Any], str]] = [
        ({"missing_decision": "drop"}, "Pass missing_decision='value'"),
        ({"missing": "drop"}, "Pass missing='value'"),
        ({"weights": "w"}, "All weights are 0"),
    ]
    for options, remedy in remedies:
        with pytest.raises(plar.TableError, match=remedy):
            plar.granulate(nothing, "d", **options)


def test_rows_without_a_decision_on_spark(spark: Any) -> None:
    rows = spark.createDataFrame(list(zip(*LACKING.values(), strict=True)), "a string, n double, w int, d double")
    for options in ({}, {"weights": "w"}, {"decision_bins": "quantile:2", "bins": {"n": "mdlp"}}):
        there = plar.granulate(rows, "d", missing_decision="drop", **options)
        assert there.fingerprint() == plar.granulate(PRESENT, "d", **options).fingerprint()
    with pytest.raises(plar.TableError, match=r"in 'd' \(2\)\. Pass missing_decision="):
        plar.granulate(rows, "d", missing_decision="error")
    with pytest.warns(plar.PlarWarning, match="2 rows without 'd'"):
        plar.reduce(rows, "d")
