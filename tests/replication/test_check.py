"""`plar.check` against brute force, on thousands of pairs of tables: what stands, why not, and what would mend it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plar
from plar.coding.shown_values import shown_value
from plar.results.check import CheckedColumn, NeverSeen
from support import oracle
from support.check import (
    Pair,
    decisions_of,
    mending,
    new_combinations,
    new_values,
    pairs,
    stands,
    telling_apart,
    witnesses,
)
from support.comparing import close
from support.environment import TURNS
from support.strategies import DECISION, Sample, large_tables

#: what a check says, but for what depends on the machine
_TIMES = ("seconds", "engine", "source")


def facts_of(check: plar.Check) -> dict[str, Any]:
    return {name: value for name, value in check.to_dict().items() if name not in _TIMES}


def reduce_old(pair: Pair, measure: str, **options: Any) -> plar.Reduct:
    return plar.reduce(pair.old.frame(), measure=measure, **pair.old.roles, **options)


@pytest.mark.parametrize("measure", oracle.MEASURES)
@settings(max_examples=150 * TURNS)
@given(pair=pairs(), data=st.data())
def test_what_stands_and_what_mends_it(engine: Any, measure: str, pair: Pair, data: st.DataObject) -> None:
    limit = data.draw(st.none() | st.integers(1, len(pair.old.conditions)))
    old = reduce_old(pair, measure, max_attributes=limit)
    check = plar.check(old, pair.new.frame(), engine=engine)

    table = pair.new_table()
    there = [name for name in old.attributes if name in pair.common]
    preserves = stands(table, there, measure)
    assert check.preserves is preserves
    assert check.stands is (preserves and len(there) == len(old.attributes))
    assert (check.conditions, check.gone) == (pair.common, pair.gone)
    assert [one.column for one in check.columns] == list(old.attributes)
    assert [one.column for one in check.columns if one.state == "gone"] == [a for a in old.attributes if a in pair.gone]
    theta_all = oracle.theta_int(table, table.conditions, measure)
    theta = oracle.theta_int(table, there, measure)
    assert close([check.theta or 0.0, check.theta_all or 0.0], [theta, theta_all], table, measure)
    assert check.n_rows == table.n_objects
    assert check.n_combinations == len(oracle.partition(table, there))
    assert check.preserved_then is stands(pair.old.table(), old.attributes, measure)
    _check_witness(check, table, there, measure)
    _check_mending(check, table, there, measure)


def _check_witness(check: plar.Check, table: oracle.Table, there: list[str], measure: str) -> None:
    """Two rows of the table that agree in R and have to be told apart, and what does."""
    if check.preserves:
        assert check.witness is None
        return
    witness = check.witness
    assert witness is not None
    valid = witnesses(table, there, measure)
    assert frozenset((witness.row, witness.other)) in valid
    assert witness.columns == telling_apart(table, witness.row, witness.other)
    for row, decisions in ((witness.row, witness.decisions), (witness.other, witness.other_decisions)):
        assert dict(decisions) == {shown_value(d): n for d, n in decisions_of(table, row).items()}
    apart = [set(telling_apart(table, *pair)) for pair in valid if len(pair) == 2]
    assert not any(columns < set(witness.columns) for columns in apart)


def _check_mending(check: plar.Check, table: oracle.Table, there: list[str], measure: str) -> None:
    """The fewest columns, and of several such sets the first by position."""
    if check.preserves:
        assert check.mending is None
        return
    assert check.mending is not None
    fewest = mending(table, there, measure)
    places = {name: a for a, name in enumerate(table.conditions)}
    first = min(sorted(places[name] for name in names) for names in fewest)
    assert [places[name] for name in check.mending.columns] == first
    assert check.mending.is_fewest


@pytest.mark.parametrize("measure", oracle.MEASURES)
@given(pair=pairs(), data=st.data())
def test_order_of_rows_and_granules_change_nothing(measure: str, pair: Pair, data: st.DataObject) -> None:
    old = reduce_old(pair, measure)
    check = plar.check(old, pair.new.frame())
    rows = data.draw(st.permutations(range(len(pair.new))))
    shuffled = plar.check(old, pair.new.take(rows).frame())
    assert facts_of(shuffled) == facts_of(check)
    granules = plar.granulate(pair.new.frame(), **pair.new.roles)
    by_granules = facts_of(plar.check(old, granules))
    assert {**by_granules, "settings": None} == {**facts_of(check), "settings": None}


@given(pair=pairs(), by_granules=st.booleans())
def test_what_was_never_seen(pair: Pair, by_granules: bool) -> None:
    old = reduce_old(pair, "SCE")
    seen: Any = pair.old.frame()
    if by_granules:
        seen = plar.granulate(seen, **pair.old.roles)
        if old.attributes:
            seen = seen.coarsen(old.attributes)
    check = plar.check(old, pair.new.frame(), seen=seen)
    old_table, table = pair.old.table(), pair.new_table()
    there = [name for name in old.attributes if name in pair.common]
    for one in check.columns:
        if one.column in there:
            assert_news(one.new_values, new_values(old_table, table, one.column))
    if there:
        assert_news(check.new_combinations, new_combinations(old_table, table, there))
        decided: Counter[Any] = Counter()
        for decision, weight in zip(table.decisions, table.weights, strict=True):
            if decision not in old_table.decisions:
                decided[decision] += weight
        assert_news(check.new_decisions, decided)


def assert_news(news: NeverSeen | None, expected: Counter[Any]) -> None:
    assert news is not None
    assert (news.n, news.n_rows) == (len(expected), sum(expected.values()))
    assert len(news.examples) == min(news.n, 5)


# ------------------------------------------------------------------------------------------ p-values


def p_value_by_reduce(rows: Any, roles: dict[str, Any], one: CheckedColumn, check: plar.Check) -> float | None:
    """The p-value of a search that holds the columns before and has no other candidate; None if it needs none."""
    reduct = plar.reduce(
        rows,
        **roles,
        conditions=[*one.given, one.column],
        include=one.given,
        start="empty",
        measure=check.measure or "SCE",
        alpha=check.alpha,
        bins={name: list(points) for name, points in check.cuts.items() if name in (*one.given, one.column)} or None,
    )
    if reduct.steps:
        return reduct.steps[0].p_value
    return reduct.rejected.get(one.column)


def p_value_by_select(rows: Any, roles: dict[str, Any], one: CheckedColumn, selection: plar.Selection) -> float:
    """The same by the search that predicts."""
    again = plar.select(
        rows,
        roles["decision"],
        weights=roles.get("weights"),
        conditions=[*one.given, one.column],
        include=one.given,
        keep=[one.column],
        given="all",
        alpha=selection.alpha,
        target_type=selection.target_type,
        bins={name: list(selection.cuts[name]) for name in (*one.given, one.column) if name in selection.cuts} or None,
    )
    if again.steps:
        return again.steps[0].adjusted
    if one.column in again.left_out:  # constant
        return 1.0
    return again.rejected[one.column].p_value


@pytest.mark.parametrize("measure", oracle.MEASURES)
@given(pair=pairs(), alpha=st.sampled_from([0.01, 0.05, 0.5]))
def test_p_values_are_those_of_reduce_to_the_bit(measure: str, pair: Pair, alpha: float) -> None:
    old = reduce_old(pair, measure)
    check = plar.check(old, pair.new.frame(), alpha=alpha)
    names = [one.column for one in check.columns if one.state == "there"]
    for place, one in enumerate(one for one in check.columns if one.state == "there"):
        assert one.given == tuple(names[:place])
        expected = p_value_by_reduce(pair.new.frame(), pair.new.roles, one, check)
        assert one.p_value is not None
        assert one.replicates is (one.p_value <= alpha)
        if expected is not None:
            assert one.p_value == expected


@given(pair=pairs(large_tables(200)), given=st.sampled_from(["each", "all"]), alpha=st.sampled_from([0.05, 0.9]))
def test_p_values_are_those_of_select_to_the_bit(engine: Any, pair: Pair, given: str, alpha: float) -> None:
    assert_checked_by_select(
        pair, plar.select(pair.old.frame(), DECISION, **weights_of(pair), given=given, alpha=alpha), engine
    )


@given(pair=pairs(large_tables(100)), alpha=st.sampled_from([0.05, 0.9]), data=st.data())
def test_p_values_of_numbers_are_those_of_select_to_the_bit(pair: Pair, alpha: float, data: st.DataObject) -> None:
    include = data.draw(st.lists(st.sampled_from(pair.old.conditions), max_size=1))
    options: dict[str, Any] = {"target_type": "numbers", "alpha": alpha, "include": include}
    assert_checked_by_select(pair, plar.select(pair.old.frame(), DECISION, **weights_of(pair), **options), "local")


def weights_of(pair: Pair) -> dict[str, Any]:
    return {"weights": pair.old.weights}


def assert_checked_by_select(pair: Pair, selection: plar.Selection, engine: Any) -> None:
    steps = {step.column: step for step in selection.steps}
    there = [name for name in selection.columns if name in pair.common]
    if not there:
        if selection.columns:
            with pytest.raises(plar.TableError, match="none of the columns of the selection"):
                plar.check(selection, pair.new.frame())
        return
    check = plar.check(selection, pair.new.frame(), engine=engine)
    for one in check.columns:
        if one.column not in there:
            assert (one.state, one.p_value, one.replicates) == ("gone", None, False)
            continue
        if one.column in steps:
            assert one.given == tuple(name for name in steps[one.column].given if name in there)
        expected = p_value_by_select(pair.new.frame(), pair.new.roles, one, selection)
        assert one.p_value == expected
        assert one.replicates is (expected <= selection.alpha)
    assert check.stands is all(one.replicates for one in check.columns if one.column in steps)


@given(sample=large_tables(150), given=st.sampled_from(["each", "all"]))
def test_on_the_same_rows_the_gains_are_the_same(sample: Sample, given: str) -> None:
    selection = plar.select(sample.frame(), DECISION, weights=sample.weights, given=given, alpha=0.5)
    if selection.columns:
        for one in plar.check(selection, sample.frame()).columns:
            assert one.gain == pytest.approx(one.gain_then, rel=1e-12, abs=1e-300)
    reduct = plar.reduce(sample.frame(), **sample.roles)
    check = plar.check(reduct, sample.frame())
    assert (check.stands, check.theta, check.theta_all) == (True, reduct.theta, reduct.theta_all)
    for one in check.columns:
        if one.gain_then is not None:
            assert one.gain == one.gain_then
