"""Which rows meet which conditions, and what the rules that match them add up to, against plain Python."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import plar
from plar.coding.codes import encode_objects
from plar.coding.missing import MissingSpellings
from plar.matching.condition import LOWEST, Condition
from plar.matching.matcher import RuleMatcher
from plar.matching.value_groups import group_values
from support import rule_prediction as oracle

USUAL = MissingSpellings.of(None)
#: what columns compared by equality may hold and ask for, in several types
ODD = ["x", "1", "1.0", "0.5", "0,5", "True", "false", "1e3", "Inf", "2024-01-02", "2024-01-02T00:00:00", "12:30",
       "12:30:00", "é", "", "NA", None, True, False, 0, 1, 2, 0.5, 1000, -0.0, 1e300, math.inf, 2**60]  # fmt: skip
NUMBERS = [-math.inf, -2.5, -1, 0, 0.1 + 0.2, 0.3, 1, 7, 2**53 + 1, 1e300, math.inf, None, math.nan, "2", "0.30", ""]
CUTS = [-2.5, 0.0, 0.3, 0.1 + 0.2, 1.0, 2.0, 1e300]


def holding(column: str, conditions: list[Condition], values: list[Any], decimal: str = ".") -> list[list[bool]]:
    """Which conditions each value meets."""
    coded = encode_objects(values, USUAL)
    grouped = group_values(column, conditions, coded.values, decimal)
    rows: list[list[bool]] = grouped.holds[grouped.group_of[coded.codes]].tolist()
    return rows


def expected(conditions: list[Condition], values: list[Any], decimal: str = ".") -> list[list[bool]]:
    """The same, one by one."""
    asked = [condition.value for condition in conditions if condition.operator == "="]
    return [
        [oracle.meets(value, condition.operator, condition.value, asked, decimal) for condition in conditions]
        for value in values
    ]


def distinct(values: list[Any]) -> list[Any]:
    """Without values that are equal to earlier ones, as True is to 1."""
    return list(dict.fromkeys(values))


@given(st.lists(st.sampled_from([v for v in ODD if v not in ("", "NA")]), min_size=1, max_size=6), st.booleans())
def test_equality_across_types(asked: list[Any], comma: bool) -> None:
    asked = [str(value).lower() if value == math.inf else value for value in distinct(asked)]
    conditions = [Condition("a", "=", value) for value in distinct(asked)]
    decimal = "," if comma else "."
    assert holding("a", conditions, ODD, decimal) == expected(conditions, ODD, decimal)


@given(st.lists(st.tuples(st.sampled_from(["<=", ">"]), st.sampled_from([*CUTS, LOWEST])), min_size=1, max_size=6))
def test_numbers_by_size(asked: list[tuple[str, float]]) -> None:
    conditions = [Condition("a", *pair) for pair in asked if pair != ("<=", LOWEST)]
    conditions.append(Condition("a", "=", None))
    assert holding("a", conditions, NUMBERS) == expected(conditions, NUMBERS)


def test_a_value_that_is_asked_for_as_it_is_means_nothing_else() -> None:
    conditions = [Condition("a", "=", "1"), Condition("a", "=", 1)]
    assert holding("a", conditions, ["1", 1, "1.0"]) == [[True, False], [False, True], [False, True]]
    assert holding("a", [Condition("a", "=", "1.0"), Condition("a", "=", "1.00")], [1, "1"]) == [
        [True, True],
        [False, False],
    ]


def test_dates_as_other_libraries_hold_them() -> None:
    conditions = [Condition("a", "=", "2024-01-02"), Condition("a", "=", "12:30")]
    values = [dt.date(2024, 1, 2), dt.datetime(2024, 1, 2), "2024-01-02 00:00:00", dt.datetime(2024, 1, 2, 1)]
    assert [row[0] for row in holding("a", conditions, values)] == [True, True, True, False]
    assert holding("a", conditions, [dt.time(12, 30)]) == [[False, True]]


def test_times_by_size() -> None:
    conditions = [Condition("a", "<=", "2024-01-02"), Condition("a", ">", "2024-01-02T12:00:00")]
    values = [dt.date(2024, 1, 2), dt.datetime(2024, 1, 2, 12), dt.datetime(2024, 1, 2, 12, 0, 1), None]
    assert holding("a", conditions, values) == expected(conditions, values)
    assert holding("a", conditions, values) == [[True, False], [False, False], [False, True], [False, False]]


@pytest.mark.parametrize(
    ("asked", "values", "said"),
    [
        (2.0, [1, "x"], "it holds 'x', which is not a number"),
        (2.0, [True], "it holds True, which is not a number"),
        (2.0, [None, dt.date(2024, 1, 2)], "it holds '2024-01-02', which is not a number"),
        (2.0, ["inf"], "it holds 'inf', which is not a number"),
        (2.0, ["1,5"], "it holds '1,5', which is not a number"),
        ("2024-01-02", [5], "it holds 5, which is not a point in time"),
        ("2024-01-02", [dt.date(2024, 1, 2), "soon"], "it holds 'soon', which is not a point in time"),
        ("2024-01-02", [dt.time(1)], "it holds '01:00:00', which is not a point in time"),
        ("12:30:00", [dt.date(2024, 1, 2)], "it holds '2024-01-02', which is not a time of day"),
        ("PT5S", [dt.time(1)], "it holds '01:00:00', which is not a duration"),
    ],
)
def test_what_cannot_be_compared_by_size(asked: Any, values: list[Any], said: str) -> None:
    with pytest.raises(plar.TableError, match=said) as caught:
        holding("a\n", [Condition("a\n", "<=", asked)], values)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith("Correct it, or leave it empty if it is missing.")


def test_whether_there_is_a_value_at_all() -> None:
    """Of any kind: the column was not cut anywhere."""
    conditions = [Condition("a", ">", LOWEST), Condition("a", "=", None)]
    for value in ("x", -math.inf, dt.date(2024, 1, 2), True):
        assert holding("a", conditions, [value, None]) == [[True, False], [False, True]]


@pytest.mark.parametrize(
    ("operator", "value", "is_valid"),
    [
        ("=", "x", True),
        ("=", None, True),
        ("<=", 2, True),
        ("<=", 2.5, True),
        (">", "2024-01-02", True),
        (">", None, False),
        (">", "x", False),
        (">", True, False),
        ("<=", 10**400, False),
        (">=", 2.5, False),
    ],
)
def test_conditions_that_can_be_looked_up(operator: str, value: Any, is_valid: bool) -> None:
    assert Condition("a", operator, value).is_valid == is_valid


RULES = st.lists(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2)), max_size=3), min_size=0, max_size=4
) | st.builds(
    lambda seed: [
        [("abc"[j], int(v)) for j, v in enumerate(row) if v < 3]
        for row in np.random.default_rng(seed).integers(0, 5, (200, 3))
    ],
    st.integers(0, 2**32 - 1),
)


@given(RULES, st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_rules_and_scores(rules: list[list[tuple[str, int]]], seed: int, n_decisions: int) -> None:
    """Also of more rules than a word has bits."""
    draw = np.random.default_rng(seed)
    conditions = [[Condition(column, "=", value) for column, value in dict(rule).items()] for rule in rules]
    n_rows = int(draw.integers(0, 50))
    table = {name: draw.integers(0, 3, n_rows).tolist() for name in "abc"}
    evidence = draw.integers(-(10**7), 10**7, (len(rules), n_decisions))
    prior = draw.integers(-(10**7), 10**7, n_decisions)

    matcher = RuleMatcher(conditions)
    columns = [encode_objects(table[name]) for name in matcher.columns]
    coded = matcher.code(columns, n_rows, ".")
    matches = {row: matching.tolist() for row, matching in matcher.matches(coded)}
    scores = [row.tolist() for part in matcher.scores(coded, prior, evidence) for row in part]

    right = {
        row: [i for i, rule in enumerate(conditions) if all(table[c.column][row] == c.value for c in rule)]
        for row in range(n_rows)
    }
    assert matches == right
    assert scores == [(prior + evidence[matching].sum(axis=0)).tolist() for matching in right.values()]


def test_many_rows_in_threads() -> None:
    n_rows = 100_000
    values = np.random.default_rng(0).integers(0, 4, n_rows)
    matcher = RuleMatcher([[Condition("a", "=", 1)], [], [Condition("a", "=", 2)]])
    coded = matcher.code([encode_objects(values.tolist())], n_rows, ".")
    evidence = np.array([[1, 0], [0, 10], [100, 0]])
    scores = np.concatenate([*matcher.scores(coded, np.zeros(2, np.int64), evidence)])
    assert (scores[:, 0] == (values == 1) + 100 * (values == 2)).all()
    assert (scores[:, 1] == 10).all()
    for row, matching in matcher.matches(coded):
        if row % 10_007 == 0:
            assert matching.tolist() == [[1], [0, 1], [1, 2], [1]][values[row]]
