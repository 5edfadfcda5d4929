"""Values of every type: a rule matches, when it is looked up in the table again, the rows that it was found in."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plar
from support.environment import TURNS
from support.every_input import tables

pytestmark = [
    pytest.mark.filterwarnings("ignore:.* different in nearly every row:plar.PlarWarning"),
    pytest.mark.filterwarnings("ignore:Compared as text, because not all values are numbers:plar.PlarWarning"),
]


@settings(max_examples=60 * TURNS)
@given(tables(), st.sampled_from(["certain", "possible"]), st.sampled_from([None, "auto:10", "width:3"]), st.data())
def test_rules_match_the_rows_that_they_were_found_in(
    columns: dict[str, list[Any]], kind: str, bins: str | None, data: st.DataObject
) -> None:
    n_rows = len(columns["x0"])
    decisions = data.draw(st.lists(st.sampled_from(["n", "y", "z"]), min_size=n_rows, max_size=n_rows))
    rules = plar.rules({**columns, "d": decisions}, "d", kind=kind, bins=bins)
    explained = rules.explain(columns)
    matched = Counter(
        (rule, decisions[row]) for rule, row in explained.select("rule", "row").iter_rows() if rule is not None
    )
    for number, rule in enumerate(rules):
        assert tuple(matched[number, decision] for decision in rules.decisions) == rule.counts
