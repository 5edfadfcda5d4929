"""Lanes and tables agree, to the last bit, over the whole range of class sizes, weights and numbers of values."""

from __future__ import annotations

import numpy as np
import pytest

from plar.engines import LocalEngine
from plar.engines.local import lane_sums
from plar.engines.local.lanes import aligned, as_rows, permute_words
from plar.granules.granules import Granules
from plar.measures import MEASURES


def table(n: int, n_classes: int, largest_weight: int, n_values: int, n_decisions: int, seed: int) -> Granules:
    """Make 70 columns, so that one block is full and one is not, and an attribute that cuts rows into classes."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, n_values, n).astype(np.uint8) for _ in range(70)]
    cut = (rng.permutation(n) % n_classes).astype(np.uint32)
    decisions = rng.integers(0, n_decisions, n).astype(np.uint32)
    counts = rng.integers(1, largest_weight + 1, n)
    names = tuple(f"x{j}" for j in range(71))
    values = (range(n_values),) * 70 + (range(n_classes),)
    decided = (range(n_decisions),)
    return Granules(names, (*columns, cut), values, ("d",), decisions, decided, counts, int(counts.sum()))


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("n_classes", [1, 7, 100, 500, 2_000])
@pytest.mark.parametrize(
    ("largest_weight", "n_values", "n_decisions"),
    [(1, 8, 17), (4, 8, 3), (1, 2, 2), (300, 5, 4), (1 << 16, 32, 6), (1 << 28, 3, 2)],
)
def test_lanes_and_tables_agree(
    measure: str, n_classes: int, largest_weight: int, n_values: int, n_decisions: int
) -> None:
    granules = table(4_000, n_classes, largest_weight, n_values, n_decisions, seed=n_classes)
    by_lanes, by_tables = (LocalEngine(2, lanes).open(granules, MEASURES[measure]) for lanes in (True, False))
    for step in (70, 3, 69):
        assert by_lanes.select(step) == by_tables.select(step)
        candidates = [a for a in range(70) if a not in (3, 69)]
        assert by_lanes.with_each(candidates) == by_tables.with_each(candidates)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(("n_classes", "largest_weight", "n_decisions"), [(1, 1, 2), (2, 300, 3), (40, 1, 500)])
def test_classes_and_runs_of_more_rows_than_a_chunk(
    measure: str, n_classes: int, largest_weight: int, n_decisions: int
) -> None:
    granules = table(3 * lane_sums.CHUNK, n_classes, largest_weight, 5, n_decisions, seed=n_classes)
    by_lanes, by_tables = (LocalEngine(2, lanes).open(granules, MEASURES[measure]) for lanes in (True, False))
    assert by_lanes.with_each(range(70)) == by_tables.with_each(range(70))
    assert by_lanes.select(70) == by_tables.select(70)
    assert by_lanes.with_each(range(70)) == by_tables.with_each(range(70))


@pytest.mark.parametrize("n", [1, 7, 64, 65, 1_000])
def test_blocks_hold_their_columns_in_any_order(n: int) -> None:
    rng = np.random.default_rng(n)
    columns, moved = rng.integers(0, 256, (64, n), np.uint8), aligned(n)
    block = as_rows(list(columns))
    assert (block == columns.T).all()
    assert (as_rows(list(np.asfortranarray(columns)[:9])) == np.where(np.arange(64) < 9, block, 0)).all()
    order = rng.permutation(n).astype(np.uint32)
    permute_words(block.view(np.uint64), order, moved.view(np.uint64))
    assert (moved == block[order]).all()
