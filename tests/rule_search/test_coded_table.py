"""A table as the search reads it: which conditions there are, in which order, and which rows meet them."""

from __future__ import annotations

from hypothesis import given, settings

from plar.rule_search.coded_table import CodedTable
from support.environment import TURNS
from support.rule_tables import RuleSample, any_rule_tables, as_condition


@settings(max_examples=150 * TURNS)
@given(any_rule_tables())
def test_conditions_are_those_of_the_oracle(sample: RuleSample) -> None:
    granules = sample.granulate()
    table = CodedTable.of(granules)
    expected = sample.oracle_table(granules)
    assert [as_condition(table.condition(coded)) for coded in table.conditions] == list(expected.candidates)
    assert [decision for (decision,) in table.decision_values] == list(expected.decisions)
    for coded, rows in zip(table.conditions, expected.candidates.values(), strict=True):
        counts = table.counts_by_decision(table.matching([coded]))
        assert counts.tolist() == [expected.size(rows & of_decision) for of_decision in expected.decisions.values()]
