"""The cheapest set that hits all clauses."""

from __future__ import annotations

from itertools import combinations

import pytest

from plar.reduct_search.hitting_sets import HittingSets


def test_clauses_that_cannot_be_hit_do_not_keep_the_search_busy() -> None:
    """Not even when time is up, and only some of many clauses are looked at."""
    pairs = list(combinations(range(30), 2))
    last = tuple(range(30, 34))
    clauses = HittingSets([1] * 34, [*pairs, last])
    solution = clauses.cheapest(frozenset(), frozenset(last), deadline=0.0)
    assert (solution.attributes, solution.tree.unhit) == (None, len(pairs))
    with pytest.raises(ValueError, match="hits some clause"):
        clauses.greedy(frozenset(), frozenset(last))
    with pytest.raises(ValueError, match="hits some clause"):
        HittingSets([1, 1], [()]).greedy(frozenset(), frozenset())
