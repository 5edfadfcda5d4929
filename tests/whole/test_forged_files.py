"""Results, checkpoints, proofs and granules that somebody has written by hand: read rightly, or refused in one line."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import plar
from plar.engines import SparkEngine
from plar.granules import granule_files
from plar.results.approximations import from_dict as approximations_from_dict
from plar.results.check import from_dict as check_from_dict
from plar.results.reduct import from_dict
from plar.results.report.pages import page
from plar.results.rules import from_dict as rules_from_dict
from plar.search.checkpoint_file import Data, _data_differences
from support.checkpoints import read_records, read_search, write_records, write_search

ODD: list[Any] = [
    None,
    True,
    -1,
    10**400,
    1.5,
    float("nan"),
    float("inf"),
    "x",
    [],
    [[]],
    {},
    {"a": {"b": [1]}},
    [None],
]
TABLE = {"a": [0, 0, 1, 1, 2], "b": [0.5, 1.5, 0.5, 1.5, 2.5], "c": [0, 1, 1, 0, 0], "d": [0, 1, 1, 0, 1]}
OPTIONS: dict[str, Any] = {"include": ["c"], "bins": {"b": [1.0, 2.0]}, "na": ["?"]}


def places(node: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every part of what JSON holds."""
    yield way
    for key in node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
        yield from places(node[key], (*way, key))


def forged(node: Any, way: tuple[Any, ...], value: Any) -> Any:
    """A copy with another value in one place."""
    if not way:
        return value
    made = copy.deepcopy(node)
    inner = made
    for key in way[:-1]:
        inner = inner[key]
    inner[way[-1]] = value
    return made


def test_forged_results() -> None:
    saved = json.loads(json.dumps(plar.reduce(TABLE, "d", **OPTIONS).to_dict()))
    accepted = 0
    for way in places(saved):
        for value in ODD:
            try:
                reduct = from_dict(forged(saved, way, value))
            except plar.TableError:
                continue
            accepted += 1
            assert str(reduct), (way, value)
            assert reduct._repr_html_(), (way, value)
            assert page(reduct), (way, value)
    assert 0 < accepted < 1000


#: rules of every kind of condition, about numbers, dates, text and what is missing
RULED: dict[str, Any] = {
    "x": [None if i % 13 == 0 else i / 10 for i in range(120)],
    "day": [date.fromordinal(738_000 + 7 * i % 120) for i in range(120)],
    "word": ["u", "v", None] * 40,
    "d": [["p", "q", "r"][(i > 50) + (i % 3 == 0)] for i in range(120)],
}


@pytest.mark.parametrize("kind", ["tested", "certain"])
def test_forged_rules(kind: str) -> None:
    """Either refused in one line, or rules that can be shown, written as SQL, saved, and that predict."""
    rules = plar.rules(RULED, "d", kind=kind, alpha=0.5, max_conditions=2)
    asked = {condition.operator for rule in rules for condition in rule.conditions}
    assert asked == {"=", "<=", ">"}
    saved = json.loads(json.dumps(replace(rules, rules=rules.rules[:3]).to_dict()))
    assert {"x", "word"} <= {condition["column"] for rule in saved["rules"] for condition in rule["conditions"]}
    new = {name: values[:7] for name, values in RULED.items()}
    accepted = 0
    for way in places(saved):
        for value in [*ODD, "p", "=", "<=", ">", "word", "x", "2024-01-02", 2, 2**60]:
            taken = outcome(partial(rules_from_dict, forged(saved, way, value)))
            if taken is not None:
                accepted += 1
                works(taken, new, (way, value))
    assert 0 < accepted < 2000


def outcome(call: Callable[[], Any]) -> Any:
    """What a call returns; None if it is refused in one line."""
    try:
        return call()
    except plar.PlarError as error:
        said = str(error)
    assert said.isprintable()
    return None


def works(rules: plar.Rules, new: Any, where: Any) -> None:
    """Everything that can be asked of rules has an answer; a table may be refused in one line."""
    assert str(rules), where
    assert all(map(str, rules)), where
    assert len(rules.to_frame()) == len(rules), where
    for dialect in ("ansi", "sqlite", "spark"):
        assert rules.to_sql("t", dialect), where
    text = json.dumps(rules.to_dict())
    assert json.dumps(rules_from_dict(json.loads(text)).to_dict()) == text, where
    shares = outcome(partial(rules.predict_proba, new))
    if shares is not None:
        assert len(rules.predict(new)) == len(shares) == 7, where
        assert rules.explain(new)["row"].n_unique() == 7, where
        assert abs(shares.sum(axis=1) - 1).max() < 1e-9, where


def test_rules_that_contradict_themselves() -> None:
    """Each field by itself would do."""
    saved = json.loads(json.dumps(plar.rules(RULED, "d").to_dict()))
    ordered = next(
        (i, j)
        for i, rule in enumerate(saved["rules"])
        for j, condition in enumerate(rule["conditions"])
        if condition["column"] == "x"
    )
    place = ("rules", ordered[0], "conditions")
    both = [
        {"column": "x", "operator": "<=", "value": 1.0},
        {"column": "x", "operator": "=", "value": "red"},
    ]
    times = [
        {"column": "x", "operator": "<=", "value": "2024-01-02"},
        {"column": "x", "operator": ">", "value": "12:30:00"},
    ]
    for conditions in (both, times):
        with pytest.raises(plar.TableError, match="'rules' is missing or does not fit"):
            rules_from_dict(forged(saved, place, conditions))
    big = 10**400
    huge = {**saved, "n_objects": 3 * big, "class_sizes": [big] * 3, "unmatched": [0] * 3, "rules": []}
    with pytest.raises(plar.TableError, match="'n_objects' is missing or does not fit"):
        rules_from_dict(huge)
    assert rules_from_dict({**saved, "rules": []}).predict(RULED).tolist() == ["q"] * 120


def test_forged_approximations() -> None:
    """Either refused in one line, or approximations that can be shown, saved, and that mark a table, or say why not."""
    table = {"x": [0.5, 0.5, 2.0, None, 2.0, 0.5], "t": ["u", "u", "v", "v", "u", "u"], "d": [1, 2, 1, 2, 1, 5]}
    result = plar.approximations(table, "d", bins={"x": [1.0]}, decision_bins=[1.5, 3.0])
    assert result.largest()
    saved = json.loads(json.dumps(result.to_dict()))
    accepted = 0
    for way in places(saved):
        for value in ODD:
            taken = outcome(partial(approximations_from_dict, forged(saved, way, value)))
            if taken is None:
                continue
            accepted += 1
            assert str(taken), (way, value)
            assert taken._repr_html_(), (way, value)
            assert len(taken.contradictions(None)) == len(taken.largest_contradictions), (way, value)
            assert len(taken.to_frame()) == len(taken.by_decision), (way, value)
            text = json.dumps(taken.to_dict())
            assert json.dumps(approximations_from_dict(json.loads(text)).to_dict()) == text, (way, value)
            marked = outcome(partial(taken.mark, table))
            assert marked is None or len(marked) == 6, (way, value)
    assert 0 < accepted < 1000


@pytest.mark.parametrize("kind", ["reduct", "selection"])
def test_forged_checks(kind: str) -> None:
    """Either refused in one line, or a check that can be shown, written as a page, and saved."""
    table = {"x": [0.5, 0.5, 2.0, 3.0] * 10, "t": ["u", "v"] * 20, "d": ["p", "q"] * 20}
    new = {**table, "t": ["u", "w"] * 20, "d": ["p", "q", "q", "q"] * 10}
    if kind == "reduct":
        check = plar.check(plar.reduce(table, "d", conditions=["t", "x"], bins={"x": [1.0]}), new, seen=table)
    else:
        check = plar.check(plar.select(table, "d"), new, seen=table)
    saved = json.loads(json.dumps(check.to_dict()))
    accepted = 0
    for way in places(saved):
        for value in ODD:
            taken = outcome(partial(check_from_dict, forged(saved, way, value)))
            if taken is None:
                continue
            accepted += 1
            assert str(taken), (way, value)
            assert repr(taken), (way, value)
            assert taken._repr_html_(), (way, value)
            assert len(taken.to_frame()) == len(taken.columns), (way, value)
            assert taken.report(), (way, value)
            text = json.dumps(taken.to_dict())
            assert json.dumps(check_from_dict(json.loads(text)).to_dict()) == text, (way, value)
    assert 0 < accepted < 1000


def test_rules_execute_nothing(tmp_path: Path) -> None:
    """Names and values are text, wherever they come out."""
    path = tmp_path / "r.json"
    mark = tmp_path / "mark"
    code = f"__import__('pathlib').Path({str(mark)!r}).touch()"
    column = f"{{{code}}}"
    rules = plar.rules({column: [code, "y"] * 20, "d": [f"{{{{{code}}}}}", "q"] * 20}, "d")
    rules.save(path)
    loaded = plar.load(path)
    works(loaded, {column: [code] * 7}, None)
    assert not mark.exists()


def refused(path: Path, table: Any, **options: Any) -> None:
    """The checkpoint is called damaged, and stays as it is."""
    before = path.read_bytes()
    with pytest.raises(plar.TableError, match=r"is damaged.* delete it to start over\.$") as caught:
        plar.reduce(table, "d", checkpoint=path, **options)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == before


def test_forged_checkpoints(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    table = {**TABLE, "a2": [0, 1, 2, 0, 1]}
    right = plar.reduce(table, "d", measure="PR", max_attributes=2, checkpoint=path, **OPTIONS)
    records = read_records(path)
    assert [[*record] for record in records] == [["search"], ["core"], ["step"]]
    for way in places(records):
        if not way:
            continue
        for value in ODD:
            write_records(path, forged(records, way, value))
            try:
                reduct = plar.reduce(table, "d", measure="PR", max_attributes=2, checkpoint=path, **OPTIONS)
            except plar.TableError:
                continue
            assert set(reduct.attributes) <= set(right.conditions), (way, value)
            assert len(set(reduct.attributes)) == len(reduct.attributes), (way, value)
            assert reduct.settings == right.settings, (way, value)
            assert str(reduct), (way, value)


#: the decision is the exclusive or of a and b; c is a copy of neither, and not needed
XOR = {"a": [0, 0, 1, 1] * 2, "b": [0, 1, 0, 1] * 2, "c": [0] * 4 + [1] * 4, "d": [0, 1, 1, 0] * 2}
#: rows 0 and 1 differ in b, rows 0 and 4 only in c, which need not be told apart
CLAUSES: dict[str, Any] = {
    "need not be separated": [[2], [0, 0, 0], [0, 0, 1]],
    "not in the table": [[2], [0, 0, 0], [0, 0, 2]],
    "differ in another column": [[2], [0, 0, 0], [0, 1, 0]],
    "differ in more columns": [[2], [0, 0, 0], [0, 1, 1]],
    "do not differ": [[2], [0, 0, 0], [0, 0, 0]],
    "empty": [[], [0, 0, 0], [0, 0, 0]],
    "unsorted": [[2, 1], [0, 0, 0], [0, 1, 1]],
    "twice in one": [[1, 1], [0, 0, 0], [0, 1, 0]],
    "given already": [[1], [0, 0, 0], [0, 1, 0]],
    "negative": [[-1], [0, 0, 0], [0, 0, 1]],
    "beyond the columns": [[3], [0, 0, 0], [0, 0, 1]],
    "short": [[2], [0, 0], [0, 1]],
    "text": [[2], "000", "001"],
}


@pytest.mark.parametrize("clause", CLAUSES.values(), ids=CLAUSES)
def test_forged_clauses(tmp_path: Path, clause: Any) -> None:
    """A clause (c) would prove that three columns are needed; an empty one could never be hit."""
    path = tmp_path / "c.json"
    right = plar.reduce(XOR, "d", search="smallest", checkpoint=path)
    assert right.bounds == (2, 2)
    state = read_search(path)
    assert sorted(attributes for attributes, _, _ in state["clauses"]) == [[0], [1]]
    state["clauses"].append(clause)
    write_search(path, state)
    refused(path, XOR, search="smallest")


@pytest.mark.parametrize("measure", ["PR", "SCE", "LCE", "CCE"])
def test_right_clauses_are_taken(tmp_path: Path, measure: str) -> None:
    """Of values of all kinds, also where rows that are equal have different decisions."""
    path = tmp_path / "c.json"
    table = {
        "a": [1, 1, 2.5, None, "x", "x", True, date(2020, 1, 2)],
        "b": [b"y", b"y", 0, 0, 1, 1, 2**70, float("inf")],
        "c": [0, 0, 1, 1, 0, 1, 0, 1],
        "d": [0, 1, 0, 1, 0, 1, 0, 1],
    }
    whole = plar.reduce(table, "d", search="smallest", measure=measure, checkpoint=path)
    assert read_search(path)["clauses"]
    again = plar.reduce(table, "d", search="smallest", measure=measure, checkpoint=path)
    assert (again.attributes, again.bounds, again.proof) == (whole.attributes, whole.bounds, whole.proof)


def test_a_forged_core_of_the_smallest_reduct(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    plar.reduce(XOR, "d", search="smallest", checkpoint=path)
    state = read_search(path)
    effect = state["theta_without"][0]
    assert effect is not None
    for inner in ([effect, effect, effect], [None, effect, None]):
        write_search(path, {**state, "theta_without": inner})
        refused(path, XOR, search="smallest")


#: all bits are needed; only the first has no copy, so it is the core, and the others take a step each
BITS = {f"a{j}": [i >> j & 1 for i in range(16)] for j in range(4)}
STEPPED: dict[str, Any] = {**BITS, **{f"b{j}": BITS[f"a{j}"] for j in (1, 2, 3)}, "d": [i % 7 % 3 for i in range(16)]}


def test_forged_effects_of_leaving_a_column_out(tmp_path: Path) -> None:
    """The search would begin with columns that it takes again later."""
    for measure in ("PR", "SCE", "LCE", "CCE"):
        path = tmp_path / f"{measure}.json"
        right = plar.reduce(STEPPED, "d", measure=measure, checkpoint=path)
        state = read_search(path)
        assert (right.core, len(state["steps"])) == (("a0",), 3)
        names = list(right.conditions)
        taken = [names.index(step.attribute) for step in right.steps]
        worst = max(theta for theta in [*state["theta_without"], state["theta_all"]] if theta is not None)
        for theta in (worst + 1, state["theta_all"] + 1, state["theta_all"], state["theta_all"] - 1, 10**30, -(10**30)):
            write_search(path, forged(state, ("theta_without", taken[-1]), theta))
            refused(path, STEPPED, measure=measure)


def _swapped(steps: list[Any]) -> None:
    steps[0], steps[1] = steps[1], steps[0]


STEPS: dict[str, Callable[[list[Any]], Any]] = {
    "a step twice": lambda steps: steps.append(steps[-1]),
    "in another order": _swapped,
    "one left out": lambda steps: steps.pop(0),
    "another column": lambda steps: steps[0].update(attribute=steps[1]["attribute"]),
    "not the first tie": lambda steps: steps[0].update(ties=[*steps[0]["candidates"]][::-1]),
    "no tie": lambda steps: steps[0].update(ties=[]),
    "a tie twice": lambda steps: steps[0].update(ties=steps[0]["ties"] * 2),
    "a candidate less": lambda steps: steps[0]["candidates"].popitem(),
    "a candidate more": lambda steps: steps[1].update(candidates=steps[0]["candidates"]),
    "a core column among the candidates": lambda steps: steps[0]["candidates"].update(a0=0.0),
    "more rows undecided": lambda steps: steps[-1].update(active=steps[0]["active"] + 1),
    "more rows than there are": lambda steps: steps[0].update(active=17),
    "fewer than no rows": lambda steps: steps[0].update(active=-1),
    "done before": lambda steps: steps[0].update(active=0),
    "not done": lambda steps: steps[-1].update(active=steps[-2]["active"]),
    "Θ rises": lambda steps: steps[0].update(theta=steps[-1]["theta"] - 0.1),
    "another Θ": lambda steps: steps[-1].update(theta=steps[-1]["theta"] - 0.1),
    "no p-value": lambda steps: steps[0].update(p_value=None),
    "a p-value above 1": lambda steps: steps[0].update(p_value=1.5),
    "a negative p-value": lambda steps: steps[0].update(p_value=-0.5),
    "negative seconds": lambda steps: steps[0].update(seconds=-1.0),
}


@pytest.mark.parametrize("change", STEPS.values(), ids=STEPS)
def test_forged_steps(tmp_path: Path, change: Callable[[list[Any]], Any]) -> None:
    path = tmp_path / "c.json"
    right = plar.reduce(STEPPED, "d", checkpoint=path)
    assert (right.core, len(right.steps)) == (("a0",), 3)
    state = read_search(path)
    change(state["steps"])
    write_search(path, state)
    with pytest.raises(plar.TableError, match=r"is damaged|does not fit: Θ is"):
        plar.reduce(STEPPED, "d", checkpoint=path)


def test_forged_options_and_limits(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    right = plar.reduce(STEPPED, "d", checkpoint=path)
    state = read_search(path)
    # a description that leaves something out is of another run
    for name in state["options"]:
        write_search(path, {**state, "options": {k: v for k, v in state["options"].items() if k != name}})
        if state["options"][name] is None:
            plar.reduce(STEPPED, "d", checkpoint=path)
        else:
            with pytest.raises(plar.TableError, match=f"is of another run: {name} None there"):
                plar.reduce(STEPPED, "d", checkpoint=path)
    # more columns than asked for, and steps no better than chance
    most = len(right.attributes) - 1
    write_search(path, {**state, "options": {**state["options"], "max_attributes": most}})
    refused(path, STEPPED, max_attributes=most)
    write_search(path, {**state, "options": {**state["options"], "alpha": 1e-30, "start": "core"}})
    refused(path, STEPPED, alpha=1e-30, start="core")
    # steps in the search for the smallest reduct, and clauses in the greedy one
    write_search(path, {**state, "options": {**state["options"], "search": "smallest"}})
    refused(path, STEPPED, search="smallest")
    write_search(path, {**state, "clauses": [[[0], [0] * 7, [1, *[0] * 6]]]})
    refused(path, STEPPED)


class CountedName(str):
    """A name that counts how often it is hashed."""

    __slots__ = ()
    hashed = 0

    def __hash__(self) -> int:
        CountedName.hashed += 1
        return super().__hash__()


def test_columns_are_compared_once_each() -> None:
    """When a run resumes: not each with all others."""
    counts = []
    for n in (100, 200):
        names = tuple(CountedName(f"x{j}") for j in range(n))
        data = Data(objects=1, granules=1, conditions=names, decision=("d",), cuts={}, values="")
        CountedName.hashed = 0
        assert _data_differences(data, data) == []
        counts.append(CountedName.hashed)
    assert counts[1] == 2 * counts[0] <= 2000


EITHER = {"a": [0, 0, 1, 1], "b": [0, 0, 1, 1], "c": [0, 1, 0, 1], "d": [0, 0, 1, 1]}


def proof_of_either() -> plar.Proof:
    """That a alone suffices, as b would, and nothing less."""
    proof = plar.reduce(EITHER, "d", search="smallest").proof
    assert proof is not None
    assert (proof.attributes, proof.clauses[0].attributes) == (("a",), ("a", "b"))
    return proof


def minority(counts: Any) -> Any:
    return counts.sum() - counts.max()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        # either column costs 1.5, yet these weights would prove that every set costs at least 2
        (
            {"costs": {"a": 1.5, "b": 1.5}, "attributes": ("a", "b"), "cost": 3, "lower_bound": 2}
            | {"tree": ({"scale": 2, "weights": [[0, 3]]},)},
            "'costs' is missing or does not fit",
        ),
        ({"costs": {"a": True}}, "'costs' is missing or does not fit"),
        ({"costs": {"a": 0}, "cost": 0, "lower_bound": 0}, "It must be from 1 to 1,000,000"),
        ({"costs": {"c": 10**6 + 1}}, "It must be from 1 to 1,000,000"),
        ({"measure": plar.Measure("SCE", minority, lambda n: n)}, "The proof is not as plar.reduce makes it"),
        ({"measure": "minority"}, "The measure of the proof is 'minority'. It must be one of PR, SCE, LCE, CCE"),
        ({"measure": "sce"}, "The measure of the proof is 'sce'"),
        ({"cost": 1.0}, "'cost' is missing or does not fit"),
        ({"lower_bound": 2}, "its columns cost 1, and all sets at least 2"),
        ({"lower_bound": -1}, "its columns cost 1, and all sets at least -1"),
        ({"tree": ({"attribute": ["a"]},)}, "Node 0 of the proof names"),
        ({"tree": [[]]}, "'tree' is missing or does not fit"),
        ({"clauses": ({"attributes": ("a",)},)}, "'row' is missing or does not fit"),
    ],
)
def test_proofs_made_in_python(changes: dict[str, Any], said: str) -> None:
    """They are checked as strictly as a file."""
    with pytest.raises(plar.ProofError, match=said) as caught:
        plar.verify(replace(proof_of_either(), **changes), EITHER)
    assert "\n" not in str(caught.value)


def test_every_field_of_a_proof_made_in_python() -> None:
    right = proof_of_either()
    assert plar.verify(right, EITHER)
    for field in fields(right):
        for value in [*ODD, {1}, object(), minority, ["a", "a"], ("a", "x")]:
            proof = replace(right, **{field.name: value})
            try:
                plar.verify(proof, EITHER)
            except plar.PlarError:
                continue
            # a list is as good as a tuple, and one more constraint that the set obeys is as true
            assert list(value) == list(getattr(right, field.name)), (field.name, value)


@pytest.mark.parametrize("text", ["[" * 990 + "]" * 990, '{"a":' * 990 + "1" + "}" * 990, "[]", "3", '"x"', "null"])
def test_nested_and_other_json(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    for written in (text, f'{{"plar_checkpoint":5}}\n{text}\n{text}\n'):
        path.write_text(written)
        with pytest.raises(plar.TableError):
            plar.load(path)
        with pytest.raises(plar.TableError):
            plar.reduce(TABLE, "d", checkpoint=path)


@pytest.mark.parametrize(
    "options",
    [
        {"tolerance": 10**400},
        {"epsilon": 10**400},
        {"checkpoint": b"x"},
        {"checkpoint": 3},
        {"on_step": 3},
        {"progress": True},
        {"memory_limit": 10**400},
        {"memory_limit": "9" * 400},
        {"time_limit": 10**400},
        {"time_limit": "soon"},
        {"max_attributes": 0},
        {"n_jobs": 0},
        {"engine": 3},
        {"measure": 3},
    ],
)
def test_parameters_of_no_sense(options: dict[str, Any]) -> None:
    with pytest.raises(plar.ParameterError) as caught:
        plar.reduce(TABLE, "d", **options)
    assert isinstance(caught.value, ValueError)
    assert not isinstance(caught.value, plar.TableError)


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("conf", 3, "must be a mapping of settings, such as .* Got 3 instead"),
        ("conf", {"spark.ui.enabled": None}, "must give settings by name, .* Got 'spark.ui.enabled': None instead"),
        ("conf", {1: "x"}, "must give settings by name, .* Got 1: 'x' instead"),
        ("master", 3, "must be None or an address, .* Got 3 instead"),
        ("session", "local", "must be None or a SparkSession. Got 'local' instead"),
        ("watch", 3, "must be None or a function. Got 3 instead"),
        ("partitions", "2", "must be None or an integer of at least 1. Got '2' instead"),
    ],
)
def test_options_of_spark_that_are_none(option: str, value: Any, said: str) -> None:
    with pytest.raises(plar.ParameterError, match=f"'{option}' parameter {said}"):
        SparkEngine(**{option: value})


def test_paths_of_no_sense() -> None:
    reduct = plar.reduce(TABLE, "d")
    for path in (b"x", 3):
        with pytest.raises(plar.ParameterError, match="path must be text"):
            plar.load(path)  # type: ignore[arg-type]
        with pytest.raises(plar.ParameterError, match="path must be text"):
            reduct.save(path)  # type: ignore[arg-type]


def _forge(path: Path, frame: pl.DataFrame, roles: Any) -> None:
    frame.write_parquet(path, metadata={"plar": roles if isinstance(roles, str) else json.dumps(roles)})


def _taken(path: Path) -> bool:
    """Whether granules of a file are read and reduced; else they are refused in one line."""
    try:
        granules = plar.granulate(path)
        assert str(plar.reduce(granules))
        granules.merge(granules).save(path.with_name("again.parquet"))
        plar.granulate(path.with_name("again.parquet"))
    except plar.PlarError:
        return False
    return True


@pytest.mark.filterwarnings("ignore:The decision is missing:plar.PlarWarning")
@pytest.mark.parametrize("checked", [False, True])
def test_forged_granules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checked: bool) -> None:
    """Also with the right checksum, which whoever forges can compute."""
    path = tmp_path / "g.parquet"
    plar.granulate({**TABLE, "e": [1, "x", None, 2.5, b"y"]}, "d", bins={"b": [1.0, 2.0]}).save(path)
    frame = pl.read_parquet(path)
    roles = json.loads(pl.read_parquet_metadata(path)["plar"])
    assert roles["spelled"] == ["e"]
    if not checked:
        monkeypatch.setattr(granule_files, "_checksum", lambda *_: roles["checksum"])
    forge, taken = tmp_path / "forged.parquet", 0
    for way in places(roles):
        for value in [*ODD, "e", ["a", "a"], ["a", "b", "c", "d", "e", "count"]]:
            _forge(forge, frame, forged(roles, way, value))
            taken += _taken(forge)
    for text in ("", "[" * 5000, "nonsense", '{"version": 1}', "null", "[]"):
        _forge(forge, frame, text)
        assert not _taken(forge)
    assert taken < 300
    if checked:
        return
    odd_counts: list[pl.Series] = [
        pl.Series([1, None, 1, 1, 1]),
        pl.Series([1, -1, 1, 1, 1]),
        pl.Series([0, 1, 1, 1, 1]),
        pl.Series([1.5] * 5),
        pl.Series([float("nan"), 1, 1, 1, 1]),
        pl.Series([1e300] * 5),
        pl.Series([2**62] * 5),
        pl.Series(["1", "2", "x", "1", "1"]),
        pl.Series([[1]] * 5),
        pl.Series([{"x": 1}] * 5),
        pl.Series([None] * 5),
        pl.Series([2**100] * 5, dtype=pl.Int128),
        pl.Series([b"1"] * 5),
    ]
    for counts in odd_counts:
        _forge(forge, frame.with_columns(counts.alias("count")), roles)
        assert not _taken(forge), counts
    texts = ["int x", "float", "str 'a", "bytes b", "Decimal Decimal('x')", "tuple (1", "complex q", "Decimal", "bool",
             "str " + "-" * 99_999 + "1", "str " + "(" * 300, "int " + "9" * 5000, "Odd x", "tuple ([],)"]  # fmt: skip
    for text in texts:
        _forge(forge, frame.with_columns(pl.Series("e", [text, "int 1", "int 2", None, "str 'x'"])), roles)
        _taken(forge)
    for column in odd_counts:
        for name in ("a", "d", "e"):
            _forge(forge, frame.with_columns(column.alias(name)), roles)
            _taken(forge)
    _forge(forge, frame.head(0), roles)
    assert not _taken(forge)
    _forge(forge, frame.select("a"), roles)
    assert not _taken(forge)
