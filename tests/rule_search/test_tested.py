"""Tested rules are those of the documented search, in exact fractions."""

from __future__ import annotations

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
@given(any_rule_tables(max_weight=6), LIMITS)
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
