"""Core, greedy search, trace and certificate: everything that `reduce` reports, against the oracle."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import plar
from plar.measures import as_measure
from support import oracle
from support.comparing import assert_agrees, close
from support.strategies import Sample, options, tables


@pytest.mark.parametrize("measure", oracle.MEASURES)
@given(sample=tables(), data=st.data())
def test_primitives_to_the_last_integer(engine: Any, measure: str, sample: Sample, data: st.DataObject) -> None:
    table = sample.table()
    C = table.conditions
    evaluation = engine.open(plar.granulate(sample.frame(), **sample.roles), as_measure(measure))
    assert evaluation.theta_all == oracle.theta_int(table, C, measure)
    for a, found in zip(C, evaluation.leave_one_out(), strict=True):
        rest = [b for b in C if b != a]
        assert found.equal is oracle.equal(table, rest, C, measure)
        # equal entropies may differ in the last place of their rounded logarithms: either integer will do
        assert found.theta == oracle.theta_int(table, rest, measure) or (
            found.equal and found.theta == evaluation.theta_all
        )
    R: list[str] = []
    for a in data.draw(st.permutations(C)):
        candidates = [name for name in C if name not in R]
        found_thetas = evaluation.with_each([C.index(name) for name in candidates])
        assert found_thetas == [oracle.theta_int(table, [*R, name], measure) for name in candidates]
        R.append(a)
        assert evaluation.select(C.index(a)) == evaluation.theta == oracle.theta_int(table, R, measure)
        assert evaluation.unsettled_objects == oracle.active(table, R, measure)


@pytest.mark.parametrize("measure", oracle.MEASURES)
@pytest.mark.parametrize("most", [0, 9, 300, 2**28])
def test_primitives_on_large_classes(engine: Any, measure: str, most: int) -> None:
    """More rows, and more weight, than a byte counts to; more attributes than one block of lanes has."""
    pick = random.Random(most)
    n, names = 1_200, [f"a{j}" for j in range(70)]
    values = [pick.choice([2, 3, 8, 16, 17, 40, 300]) for _ in names]
    columns = {name: [pick.randrange(v) for _ in range(n)] for name, v in zip(names, values, strict=True)}
    columns["d"] = [pick.randrange(4) if pick.random() < 0.3 else columns["a3"][i] % 3 for i in range(n)]
    columns["w"] = [pick.randint(0, most) if most else 1 for _ in range(n)]
    table = oracle.table(columns, "d", "w")
    evaluation = engine.open(plar.granulate(columns, "d", weights="w"), as_measure(measure))
    R: list[str] = []
    for a in sorted(names, key=lambda name: values[names.index(name)])[:40:13]:
        candidates = [name for name in names if name not in R]
        found = evaluation.with_each([names.index(name) for name in candidates])
        assert found == [oracle.theta_int(table, [*R, name], measure) for name in candidates]
        R.append(a)
        assert evaluation.select(names.index(a)) == oracle.theta_int(table, R, measure)
        assert evaluation.unsettled_objects == oracle.active(table, R, measure)


@pytest.mark.parametrize("measure", oracle.MEASURES)
def test_candidates_come_and_go(engine: Any, measure: str) -> None:
    """An engine may not forget an attribute because one call did not ask for it."""
    columns = {"a": [0, 0, 1, 1, 1], "b": list(range(5)), "e": [0, 1, 0, 1, 1], "d": [0, 1, 1, 0, 1]}
    table = oracle.table(columns, "d")
    evaluation = engine.open(plar.granulate(columns, "d"), as_measure(measure))
    for asked in (["a", "b", "e"], ["b"], [], ["e", "a"], ["a"]):
        found = evaluation.with_each([table.conditions.index(name) for name in asked])
        assert found == [oracle.theta_int(table, [name], measure) for name in asked]


@pytest.mark.parametrize("measure", oracle.MEASURES)
@given(sample=tables())
def test_default_search(engine: Any, measure: str, sample: Sample) -> None:
    table = sample.table()
    reduct = plar.reduce(sample.frame(), measure=measure, engine=engine, **sample.roles)
    assert_agrees(reduct, oracle.search(table, measure), table, measure)


@pytest.mark.parametrize("measure", oracle.MEASURES)
@given(sample=tables(), data=st.data())
def test_search_with_options(engine: Any, measure: str, sample: Sample, data: st.DataObject) -> None:
    table = sample.table()
    chosen = data.draw(options(sample.conditions))
    reduct = plar.reduce(sample.frame(), measure=measure, engine=engine, **sample.roles, **chosen)
    assert_agrees(reduct, oracle.search(table, measure, **chosen), table, measure)


@pytest.mark.parametrize("measure", oracle.MEASURES)
@given(sample=tables(), data=st.data())
def test_order_of_conditions(engine: Any, measure: str, sample: Sample, data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(sample.conditions), min_size=1, unique=True))
    table = sample.table(names)
    reduct = plar.reduce(sample.frame(), conditions=names, measure=measure, engine=engine, **sample.roles)
    assert_agrees(reduct, oracle.search(table, measure), table, measure)


@pytest.mark.parametrize("measure", oracle.MEASURES)
@given(sample=tables(), data=st.data())
def test_core_theta_and_significance(engine: Any, measure: str, sample: Sample, data: st.DataObject) -> None:
    table, frame = sample.table(), sample.frame()
    roles = {**sample.roles, "measure": measure, "engine": engine}
    epsilon = data.draw(st.sampled_from([0.0, 1e-12, 0.1, 0.3]))
    assert plar.core(frame, epsilon=epsilon, **roles) == oracle.core(table, measure, epsilon)

    names = data.draw(st.lists(st.sampled_from(sample.conditions), unique=True))
    theta = plar.theta(frame, names, **roles)
    assert close([theta], [oracle.theta_int(table, names, measure)], table, measure)
    found, expected = plar.significance(frame, names, **roles), oracle.significance(table, names, measure)
    assert list(found) == list(expected)
    assert close(list(found.values()), list(expected.values()), table, measure)


@pytest.mark.parametrize("measure", oracle.MEASURES)
@given(sample=tables())
def test_missing_rows_dropped(engine: Any, measure: str, sample: Sample) -> None:
    rows = enumerate(zip(*sample.columns.values(), strict=True))
    table = sample.take([i for i, row in rows if None not in row]).table()
    call = {"measure": measure, "engine": engine, "missing": "drop", **sample.roles}
    if not table.rows:
        with pytest.raises(plar.TableError):
            plar.reduce(sample.frame(), **call)
        return
    assert_agrees(plar.reduce(sample.frame(), **call), oracle.search(table, measure), table, measure)


TRAP = {"a": [0, 0, 1, 1], "b": [0, 0, 0, 0], "d": ["Y", "N", "Y", "N"], "w": [1000, 1001, 1001, 1002]}


def test_nearly_proportional_counts_are_not_equal(engine: Any) -> None:
    """Merging (1000, 1001) with (1001, 1002) changes SCE by 1.2e-10 nats, below any float tolerance."""
    reduct = plar.reduce(TRAP, decision="d", weights="w", measure="SCE", engine=engine)
    assert reduct.core == reduct.attributes == ("a",)
    assert reduct.complete
    assert reduct.certificate.preserved
    assert reduct.certificate.minimal


def test_nearly_proportional_counts_do_not_stop_the_search(engine: Any) -> None:
    # no core: a and its copy c replace each other
    doubled = {"a": TRAP["a"], "c": TRAP["a"], "d": TRAP["d"], "w": TRAP["w"]}
    reduct = plar.reduce(doubled, decision="d", weights="w", measure="SCE", engine=engine)
    assert reduct.core == ()
    assert reduct.attributes == ("a",)
    assert reduct.steps[0].ties == ("a", "c")

    stopped = plar.reduce(doubled, decision="d", weights="w", measure="SCE", engine=engine, tolerance=1e-9)
    assert stopped.attributes == ()
    assert stopped.complete
    assert not stopped.certificate.preserved


def test_proportional_counts_are_equal(engine: Any) -> None:
    table = {"a": [0, 0, 1, 1], "d": ["Y", "N", "Y", "N"], "w": [1000, 1001, 3000, 3003]}
    for measure, attributes in {"PR": (), "SCE": (), "LCE": ("a",), "CCE": ("a",)}.items():
        reduct = plar.reduce(table, decision="d", weights="w", measure=measure, engine=engine)
        assert reduct.attributes == attributes
        assert not reduct.consistent
        assert reduct.complete


@pytest.mark.parametrize("measure", oracle.MEASURES)
def test_one_object(engine: Any, measure: str) -> None:
    reduct = plar.reduce({"a": [1], "d": ["Y"]}, decision="d", measure=measure, engine=engine)
    assert reduct.attributes == reduct.core == ()
    assert reduct.steps == ()
    assert reduct.theta == reduct.theta_all == (-1.0 if measure == "PR" else 0.0)
    assert reduct.complete
    assert reduct.consistent


@pytest.mark.parametrize("measure", oracle.MEASURES)
def test_two_to_the_forty_objects(engine: Any, measure: str) -> None:
    columns: dict[str, list[Any]] = {
        "a": [0, 0, 1, 1, 2, 2],
        "b": [0, 1, 0, 1, 1, 0],
        "c": [0, 0, 0, 0, 0, 1],
        "d": ["Y", "N", "Y", "Y", "N", "Y"],
        "w": [2**39, 2**38 + 1, 2**37 - 1, 2**36, 2**35 + 3, 2**35 - 3],
    }
    table = oracle.table(columns, "d", "w")
    reduct = plar.reduce(columns, decision="d", weights="w", measure=measure, engine=engine, include=["c"])
    assert_agrees(reduct, oracle.search(table, measure, include=["c"]), table, measure)


def test_core_that_does_not_fit(engine: Any) -> None:
    # the decision depends on all of a, b, c; b decides for the most objects, then c
    columns = {
        "a": [0, 1, 0, 0],
        "b": [0, 0, 1, 0],
        "c": [0, 0, 0, 1],
        "e": [0, 0, 0, 0],
        "d": ["N", "Y", "Y", "Y"],
        "w": [50, 1, 9, 5],
    }
    call = {"decision": "d", "weights": "w", "measure": "LCE", "engine": engine}
    reduct = plar.reduce(columns, max_attributes=2, **call)
    assert reduct.core == ("a", "b", "c")
    assert reduct.attributes == ("b", "c")
    assert not reduct.complete
    assert not reduct.certificate.preserved

    held = plar.reduce(columns, max_attributes=2, include=["e"], **call)
    assert held.attributes == ("b", "e")
    assert held.certificate.redundant == ("e",)


def numbered(codes: list[int]) -> tuple[int, ...]:
    """The same partition as numbers in order of appearance, whatever the values are called."""
    seen: dict[int, int] = {}
    return tuple(seen.setdefault(code, len(seen)) for code in codes)


@given(sample=tables(), measure=st.sampled_from(oracle.MEASURES))
def test_columns_that_are_equal_but_for_their_values(sample: Sample, measure: str) -> None:
    granules = plar.granulate(sample.frame(), **sample.roles)
    groups: dict[tuple[int, ...], list[str]] = {}
    for name, codes in zip(granules.conditions, granules.columns, strict=True):
        groups.setdefault(numbered(codes.tolist()), []).append(name)
    expected = tuple(tuple(group) for group in groups.values() if len(group) > 1)
    assert plar.reduce(granules, measure=measure, equivalent=True).equivalent == expected
    assert plar.reduce(granules, measure=measure).equivalent is None
