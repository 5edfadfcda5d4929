"""Certain and possible rules keep what they promise, and their certificate says what a look at all rows says."""

from __future__ import annotations

import random
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plar.rule_search.certificate import certify, concepts_of
from plar.rule_search.coded_rule import CodedRule
from plar.rule_search.coded_table import CodedTable
from support.environment import TURNS
from support.rule_tables import RuleSample, any_rule_tables, as_condition, as_rules
from support.rules import Rule, Verdict, judge

pytestmark = [
    pytest.mark.filterwarnings("ignore:.* different in nearly every row:plar.PlarWarning"),
    pytest.mark.filterwarnings("ignore:The decision is missing in some rows:plar.PlarWarning"),
]

KINDS = ("certain", "possible")
#: what the certificate says of rules without limits
KEPT = asdict(Verdict(True, True, True, True))
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
        assert asdict(result.certificate) == KEPT
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


@settings(max_examples=150 * TURNS)
@given(any_rule_tables(), st.randoms(use_true_random=False))
def test_the_certificate_of_any_rules_is_what_all_rows_say(sample: RuleSample, pick: random.Random) -> None:
    granules = sample.granulate()
    table = CodedTable.of(granules)
    oracle_table = sample.oracle_table(granules)
    for kind in KINDS:
        rules = [random_rule(table, pick) for _ in range(pick.randrange(5))]
        verdict = judge(oracle_table, [as_rule(table, rule) for rule in rules], kind)
        certificate = certify(table, concepts_of(granules, table, kind), rules)
        assert certificate.complete is verdict.complete
        assert certificate.consistent is verdict.consistent
        assert certificate.rules_needed is verdict.rules_needed
        if verdict.consistent:  # of a rule that is wrong anyway no condition is needed
            assert certificate.conditions_needed is verdict.conditions_needed


def random_rule(table: CodedTable, pick: random.Random) -> CodedRule:
    """Any rule, right or wrong."""
    n_conditions = min(len(table.conditions), pick.randrange(4))
    conditions = tuple(pick.sample(table.conditions, n_conditions))
    counts = table.counts_by_decision(table.matching(conditions))
    return CodedRule(conditions, pick.randrange(table.n_decisions), tuple(counts.tolist()))


def as_rule(table: CodedTable, rule: CodedRule) -> Rule:
    """A rule as the oracle writes it."""
    conditions = tuple(as_condition(table.condition(coded)) for coded in rule.conditions)
    return Rule(conditions, table.decision_values[rule.decision][0])
