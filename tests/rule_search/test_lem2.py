"""Certain and possible rules are those that LEM2 finds, step by step."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.environment import TURNS
from support.rule_tables import RuleSample, any_rule_tables, as_rules
from support.rules import Limits, lem2

pytestmark = [
    pytest.mark.filterwarnings("ignore:.* different in nearly every row:plar.PlarWarning"),
    pytest.mark.filterwarnings("ignore:The decision is missing in some rows:plar.PlarWarning"),
]


@settings(max_examples=250 * TURNS)
@given(any_rule_tables(max_rows=120), st.sampled_from([1, 1, 2, 4]), st.sampled_from([None, None, 1, 2]))
def test_rules_are_those_of_the_oracle(sample: RuleSample, min_support: int, max_conditions: Any) -> None:
    for kind in ("certain", "possible"):
        result = sample.find(kind=kind, min_support=min_support, max_conditions=max_conditions)
        expected = lem2(sample.oracle_table(result), kind, Limits(min_support, max_conditions))
        assert as_rules(result) == expected
