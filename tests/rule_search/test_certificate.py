"""Certain and possible rules keep what they promise, and their certificate says what a look at all rows says."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.environment import TURNS
from support.rule_tables import RuleSample, any_rule_tables, as_rules
from support.rules import Verdict, judge, matched_by

pytestmark = [
    pytest.mark.filterwarnings("ignore:.* different in nearly every row:plar.PlarWarning"),
    pytest.mark.filterwarnings("ignore:The decision is missing in some rows:plar.PlarWarning"),
]

KINDS = ("certain", "possible")
LIMITS = st.fixed_dictionaries(
    {"min_support": st.sampled_from([1, 2, 3, 8]), "max_conditions": st.sampled_from([None, 1, 2])}
)


@settings(max_examples=300 * TURNS)
@given(any_rule_tables())
def test_rules_describe_the_approximations_with_nothing_to_spare(sample: RuleSample) -> None:
    for kind in KINDS:
        result = sample.find(kind=kind)
        assert asdict(judge(sample.oracle_table(result), as_rules(result), kind)) == asdict(
            Verdict(True, True, True, True)
        )
        assert result.certificate is not None
        assert asdict(result.certificate) == asdict(Verdict(True, True, True, True))
        assert result.complete


@settings(max_examples=200 * TURNS)
@given(any_rule_tables(), LIMITS)
def test_the_certificate_says_what_limits_cost(sample: RuleSample, limits: dict[str, Any]) -> None:
    for kind in KINDS:
        result = sample.find(kind=kind, **limits)
        verdict = judge(sample.oracle_table(result), as_rules(result), kind)
        assert result.certificate is not None
        assert asdict(result.certificate) == asdict(verdict)
        assert verdict.consistent
        assert verdict.conditions_needed
        assert verdict.rules_needed
        assert all(rule.support >= limits["min_support"] for rule in result)
        assert all(len(rule.conditions) <= (limits["max_conditions"] or 9) for rule in result)
