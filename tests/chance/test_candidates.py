"""Many candidates in one pass: each has the association of its own cross table, to the last bit."""

from __future__ import annotations

import random
from typing import Any

import pytest

import plar
from plar.chance import candidates as candidates_module
from plar.chance.association import association
from plar.chance.candidates import associations
from plar.runtime.parallel import threads
from plar.uncertainty.strata import Strata
from support.environment import TURNS


def random_granules(pick: random.Random) -> plar.Granules:
    """Columns of few and many values, of bytes and of more; with and without weights, which may be large."""
    n = pick.choice([4, 40, 400, 6_000])
    n_decisions = pick.choice([1, 2, 3, 20])
    columns: dict[str, list[Any]] = {}
    for j, n_values in enumerate([2, 1, 3, 2, 9, 40, 300, 5_000]):
        most = pick.choice([n_values, 1 + n_values // 2])
        columns[f"c{j}"] = [min(pick.randrange(n_values), pick.randrange(most)) for _ in range(n)]
    columns["d"] = [int(pick.random() ** 3 * n_decisions) for _ in range(n)]
    largest_weight = pick.choice([None, 5, 1 << 26])
    if largest_weight is None:
        return plar.granulate(columns, "d")
    columns["w"] = [pick.randint(1, largest_weight) for _ in range(n)]
    return plar.granulate(columns, "d", weights="w")


@pytest.mark.parametrize("seed", range(12 * TURNS))
def test_those_of_the_cross_tables(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    pick = random.Random(seed)
    strata = Strata(random_granules(pick))
    attributes = list(range(8))
    for within in ((), (0,), (2, 3), (0, 4, 5), (7,)):
        rows = strata.rows(within)
        expected = [association(table) for table in strata.cross_tabs(attributes, within)]
        some = pick.sample(attributes, pick.randint(1, 8))
        columns = [strata.column(a) for a in some]
        assert associations(columns, rows) == [expected[a] for a in some]
        # whichever way is faster, both are right
        for cost in (0, 1 << 30):
            monkeypatch.setattr(candidates_module, "_CELL_COST", max(cost, 1))
            monkeypatch.setattr(candidates_module, "_ROW_COST", cost)
            assert associations(columns, rows) == [expected[a] for a in some]


def test_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks of one candidate each."""
    monkeypatch.setattr(candidates_module, "_ROWS_COUNTED_TOGETHER", 1)
    monkeypatch.setattr(candidates_module, "_ROWS_ORDERED_TOGETHER", 1)
    pick = random.Random(1)
    columns: dict[str, list[int]] = {f"c{j}": [pick.randrange(2 + j**3) for _ in range(9_000)] for j in range(20)}
    columns["d"] = [pick.randrange(3) for _ in range(9_000)]
    strata = Strata(plar.granulate(columns, "d"))
    candidates = [strata.column(a) for a in range(20)]
    with threads(1):
        expected = associations(candidates, strata.rows((0,)))
    with threads(3):
        assert associations(candidates, strata.rows((0,))) == expected


def test_no_candidates() -> None:
    strata = Strata(plar.granulate({"a": [0, 1], "d": [0, 1]}, "d"))
    assert associations([], strata.rows(())) == []
