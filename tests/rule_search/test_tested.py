"""Tested rules are those of the documented search, in exact fractions."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plar
from support.environment import TURNS
from support.rule_tables import RuleSample, any_rule_tables, as_rules
from support.rules import Limits, RuleTable, beats_chance, statistics, unmatched

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
