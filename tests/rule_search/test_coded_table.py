"""A table as the search reads it: which conditions there are, in which order, and which rows meet them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings

import plar
from plar.rule_search.coded_table import CodedTable
from plar.rule_search.row_sets import RowSets
from support.environment import TURNS
from support.rule_tables import RuleSample, any_rule_tables, as_condition
from support.rules import LOWEST


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


def test_the_only_bin_is_told_from_what_is_missing() -> None:
    granules = plar.granulate({"a": [-math.inf, 1.0, None], "d": ["y", "y", "n"]}, "d", bins={"a": [5.0]})
    table = CodedTable.of(granules)
    conditions = [table.condition(coded) for coded in table.conditions]
    assert conditions == [plar.Condition("a", "=", None), plar.Condition("a", ">", LOWEST)]
    assert [len(table.matching([coded])) for coded in table.conditions] == [1, 1]  # the two numbers are one row


def test_no_more_sets_of_rows_are_kept_than_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plar.rule_search.row_sets._LEAST_BYTES", 0)
    granules = plar.granulate({"a": [*range(300)] * 2, "b": [0, 1] * 300, "d": [0, 0, 1] * 200}, "d")
    table = CodedTable.of(granules)
    row_sets = RowSets(table)
    for number in [*range(len(table.conditions)), 0]:
        members = row_sets.of_condition(number)
        assert row_sets.rows(members).tolist() == np.flatnonzero(table.matches(table.conditions[number])).tolist()
    n_bytes = sum(of_condition.nbytes for of_condition in row_sets._set_of.values())
    assert 0 < n_bytes <= sum(block.codes.nbytes for block in table.blocks)
