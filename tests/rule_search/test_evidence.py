"""What rules add to a prediction is fitted as documented, and together they say what each says of its rows."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plar
from support.environment import TURNS
from support.rule_tables import RuleSample, any_rule_tables, as_rules
from support.rules import evidence

pytestmark = [
    pytest.mark.filterwarnings("ignore:.* different in nearly every row:plar.PlarWarning"),
    pytest.mark.filterwarnings("ignore:The decision is missing in some rows:plar.PlarWarning"),
]


@settings(max_examples=100 * TURNS)
@given(any_rule_tables(max_weight=6), st.sampled_from(["tested", "certain", "possible"]))
def test_evidence_is_that_of_the_oracle(sample: RuleSample, kind: str) -> None:
    result = sample.find(kind=kind, alpha=0.5)
    expected = evidence(sample.oracle_table(result), as_rules(result), n_rounds=5)
    for rule, units in zip(result, expected, strict=True):
        assert rule.evidence == pytest.approx(units, abs=20)  # each of five rounds is rounded


def test_predictions_agree_with_what_each_rule_says_of_its_rows() -> None:
    """Rules that overlap: added up without a fit they would be far too sure."""
    pick = random.Random(2)
    causes = [pick.randrange(2) for _ in range(600)]
    columns = {f"a{i}": [c if pick.random() < 0.95 else 1 - c for c in causes] for i in range(6)}
    decisions = ["y" if pick.random() < (0.8 if cause else 0.2) else "n" for cause in causes]
    rules = plar.rules({**columns, "d": decisions}, "d")
    assert len(rules) > 2
    shares = rules.predict_proba(columns)
    for rule in rules:
        met = [[value == c.value for value in columns[c.column]] for c in rule.conditions]
        rows = [row for row, of_row in enumerate(zip(*met, strict=True)) if all(of_row)]
        observed = [n / rule.n_matched for n in rule.counts]
        assert shares[rows].mean(axis=0).tolist() == pytest.approx(observed, abs=0.03)
