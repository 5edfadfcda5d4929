"""Tested rules are those of the documented search, in exact fractions."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plar
from plar.options import RuleOptions
from plar.rule_search.coded_table import CodedTable
from plar.rule_search.row_sets import RowSets
from plar.rule_search.tested import TestedRules
from support.environment import TURNS
from support.rule_tables import RuleSample, any_rule_tables, as_condition, as_rules
from support.rules import Limits, RuleTable, beats_chance, statistics, unmatched, without_idle

LIMITS = st.fixed_dictionaries(
    {
        "alpha": st.sampled_from([0.05, 0.05, 0.5, 0.99, 0.001]),
        "min_support": st.sampled_from([1, 1, 2, 5]),
        "max_conditions": st.sampled_from([None, None, 1, 2]),
    }
)


def check_numbers(result: plar.Rules, table: RuleTable) -> None:
    """Compare what a result says of its rules, and of the table, with the definitions."""
    rules = as_rules(result)
    assert result.decisions == tuple(table.decisions)
    assert result.class_sizes == tuple(map(table.size, table.decisions.values()))
    assert result.n_objects == table.size(table.everything)
    assert result.unmatched == unmatched(table, rules)
    for ours, theirs in zip(result, rules, strict=True):
        expected = statistics(table, theirs)
        assert (ours.counts, ours.support) == (expected["counts"], expected["support"])
        assert ours.confidence == pytest.approx(float(expected["confidence"]), rel=1e-14)
        assert ours.coverage == pytest.approx(float(expected["coverage"]), rel=1e-14)
        assert ours.lift == pytest.approx(float(expected["lift"]), rel=1e-14)


@settings(max_examples=300 * TURNS)
@given(any_rule_tables(max_rows=300, max_weight=6), LIMITS)
def test_rules_are_those_of_the_oracle(sample: RuleSample, limits: dict[str, Any]) -> None:
    result = sample.find(**limits)
    table = sample.oracle_table(result)
    expected = beats_chance(table, Limits(**limits))
    rules = as_rules(result)
    assert [(rule.conditions, rule.decision) for rule in rules] == [(e.conditions, e.decision) for e in expected]
    assert [rule.p_value for rule in rules] == [pytest.approx(rule.p_value, rel=1e-9) for rule in expected]
    check_numbers(result, table)
    assert result.complete
    assert result.certificate is None


@pytest.mark.parametrize(
    ("n_rows", "n_hits", "n_values", "n_decisions"),
    [(80, 1, 2, 2), (16, 2, 3, 2), (10, 3, 3, 2), (120, 1, 2, 3), (240, 1, 4, 3), (16, 3, 7, 4)],
)
def test_a_p_value_of_exactly_alpha_is_small_enough(n_rows: int, n_hits: int, n_values: int, n_decisions: int) -> None:
    """Twenty to one, whichever way the logarithm of the tail is rounded."""
    assert math.comb(n_rows, n_hits) == 20 * n_values * n_decisions
    others = range(n_rows - n_hits)
    values = ["b"] * n_hits + [f"v{i % (n_values - 1)}" for i in others]
    decisions = ["y"] * n_hits + [f"n{i % (n_decisions - 1)}" for i in others]
    result = plar.rules({"a": values, "d": decisions}, "d", alpha=0.05)
    [rule] = [rule for rule in result if rule.decision == "y"]
    assert as_rules([rule])[0].conditions == (("a", "=", "b"),)
    assert rule.p_value == pytest.approx(0.05, rel=1e-12)
    assert not [rule for rule in plar.rules({"a": values, "d": decisions}, "d", alpha=0.0499) if rule.decision == "y"]


def test_a_p_value_of_exactly_alpha_is_small_enough_for_a_second_condition() -> None:
    """Of the 16 rows with s = 1, C(16, 2) = 120 ways to choose two, and six conditions tell them apart."""
    of_others = ["v1", "v2", "v3", "v4", "v5"] * 3
    values = ["b", "b", *of_others[:14], *["b"] * 384]
    table = {"s": [1] * 16 + [0] * 384, "a": values, "d": ["y"] * 2 + ["n"] * 398}
    [rule] = [rule for rule in plar.rules(table, "d", alpha=0.05) if rule.decision == "y"]
    assert as_rules([rule])[0].conditions == (("s", "=", 1), ("a", "=", "b"))
    assert rule.p_value == pytest.approx(0.05, rel=1e-12)


def test_of_equal_tails_the_larger_support_is_taken() -> None:
    """For half of the rows, all eight of one value are as unlikely as none of eight of another one."""
    decisions = ["y"] * 20 + ["n"] * 20
    table = {
        "a": ["p"] * 8 + ["q"] * 6 + ["r"] * 6 + ["q"] * 10 + ["r"] * 10,
        "b": ["s"] * 32 + ["t"] * 8,
        "d": decisions,
    }
    of_y = [rule for rule in plar.rules(table, "d", max_conditions=1) if rule.decision == "y"]
    assert [(rule.conditions, rule.counts) for rule in of_y] == [((plar.Condition("b", "=", "s"),), (12, 20))]


@settings(max_examples=150 * TURNS)
@given(any_rule_tables(max_rows=150, max_weight=6), st.randoms(use_true_random=False))
def test_idle_conditions_are_dropped_in_turn(sample: RuleSample, pick: random.Random) -> None:
    """Of any conditions that some row of the decision meets."""
    granules = sample.granulate()
    table = CodedTable.of(granules)
    expected = sample.oracle_table(granules)
    row = pick.randrange(len(table))
    met = [number for number, condition in enumerate(table.conditions) if table.matches(condition)[row]]
    numbers = tuple(pick.sample(met, min(len(met), pick.randint(1, 6))))
    if not numbers:
        return
    conditions = [as_condition(table.condition(table.conditions[number])) for number in numbers]
    decision = int(table.decisions[row])
    of_decision = list(expected.decisions.values())[decision]
    needed = TestedRules(table, decision, RuleOptions(), RowSets(table))._without_idle(numbers)
    left = [as_condition(table.condition(table.conditions[number])) for number in needed]
    assert left == without_idle(expected, of_decision, conditions)


def test_a_condition_may_become_idle_when_another_one_goes() -> None:
    columns = {"a": [1, 1, 0, 0, 1], "b": [1, 1, 1, 0, 1], "c": [1, 0, 1, 1, 1], "d": [0, 0, 0, 1, 1]}
    table = CodedTable.of(plar.granulate(columns, "d"))
    asked = [plar.Condition(name, "=", 1) for name in "abc"]
    numbers = [[table.condition(coded) for coded in table.conditions].index(condition) for condition in asked]
    search = TestedRules(table, 1, RuleOptions(), RowSets(table))
    assert search._without_idle(tuple(numbers)) == (numbers[2],)  # first b goes, then a, which was needed with b


def test_the_rule_of_a_table_of_one_class() -> None:
    table = {"a": [1, 2, 3], "d": ["y"] * 3}
    [rule] = plar.rules(table, "d")
    assert (rule.conditions, rule.counts, rule.p_value) == ((), (3,), None)
    assert len(plar.rules(table, "d", min_support=3)) == 1
    assert len(plar.rules(table, "d", min_support=4)) == 0
    assert plar.rules(table, "d", min_support=4).predict({"a": [5]}).tolist() == ["y"]


def test_sets_of_rows_that_are_given_up_are_looked_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pick = random.Random(6)
    columns = {f"a{i}": [pick.randrange(40) for _ in range(500)] for i in range(5)}
    decisions = [(a > 20) + (b > 30) * (a > 10) for a, b in zip(columns["a0"], columns["a1"], strict=True)]
    table = {**columns, "d": decisions}
    expected = plar.rules(table, "d", bins="quantile:20")
    assert len(expected) > 3
    monkeypatch.setattr("plar.rule_search.row_sets._LEAST_BYTES", 0)
    assert tuple(plar.rules(table, "d", bins="quantile:20")) == tuple(expected)
