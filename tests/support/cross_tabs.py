"""Cross tables as engines have them, made of counts by class."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plar.grouping.partition import Array, smallest_codes
from plar.uncertainty.ranks import ranks_of
from plar.uncertainty.strata import CrossTab
from support import oracle
from support.law_of_w import Cells


def as_table(classes: Iterable[Cells], pick: random.Random | None = None, *, ranked: bool = False) -> CrossTab:
    """Rows as an engine would have them; with `pick` cells come in pieces, and all orders and codes are random.

    `ranked` says that decisions are numbers, to be compared by their ranks.
    """
    each = [[(v, d, n) for (v, d), n in cells.items() if n] for cells in classes]
    values, decisions = ({row[i]: 0 for rows in each for row in rows} for i in (0, 1))
    for codes in (values, decisions):
        numbers = list(range(len(codes)))
        if pick:
            pick.shuffle(numbers)
        codes.update(zip(codes, numbers, strict=True))
    if pick:
        pick.shuffle(each)
        each = [[part for row in rows for part in in_pieces(row, pick)] for rows in each]
    coded = [[(values[v], decisions[d], n) for v, d, n in rows] for rows in each]
    places = list(range(sum(map(len, coded))))
    if pick:
        pick.shuffle(places)
    cells = np.zeros((len(places), 3), np.int64)
    order: list[int] = []
    for rows in coded:
        mine = [places.pop() for _ in rows]
        cells[mine] = rows
        order += sorted(mine, key=lambda place: cells[place, 1])
    starts = np.cumsum([0, *map(len, coded)])
    if ranked:
        return _with_ranks(cells, np.array(sorted(decisions, key=decisions.__getitem__)), starts, order, len(values))
    return CrossTab.of(
        smallest_codes(cells[:, 0], len(values)),
        cells[:, 1].astype(np.uint32),
        cells[:, 2].copy(),
        np.array(order, np.uint32),
        starts.astype(np.uint32),
        max(len(values), 1),
    )


def _with_ranks(
    cells: NDArray[np.int64], numbers: Array, starts: NDArray[np.int64], order: list[int], n_values: int
) -> CrossTab:
    """The same with ranks in place of decisions."""
    ranks = ranks_of(numbers, np.bincount(cells[:, 1], cells[:, 2], len(numbers)).astype(np.int64))
    places = ranks.places[cells[:, 1]]
    for low, high in pairwise(starts.tolist()):
        order[low:high] = sorted(order[low:high], key=lambda row: places[row])
    return CrossTab.of(
        smallest_codes(cells[:, 0], n_values),
        places,
        cells[:, 2].copy(),
        np.array(order, np.uint32),
        starts.astype(np.uint32),
        max(n_values, 1),
        ranks,
    )


def in_pieces(row: tuple[Any, Any, int], pick: random.Random) -> list[tuple[Any, Any, int]]:
    value, decision, n = row
    first = pick.randint(1, n)
    return [(value, decision, part) for part in (first, n - first) if part]


def classes_of(table: oracle.Table, chosen: Sequence[str], candidate: str) -> list[Cells]:
    """How a candidate meets the decision within the classes of U/R: counts by value and decision, of each class."""
    places = [table.conditions.index(a) for a in chosen]
    place = table.conditions.index(candidate)
    classes: dict[Any, Counter[Any]] = defaultdict(Counter)
    for row, decision, weight in zip(table.rows, table.decisions, table.weights, strict=True):
        classes[tuple(row[j] for j in places)][row[place], decision] += weight
    return list(classes.values())


def table_of(table: oracle.Table, chosen: Sequence[str], candidate: str) -> CrossTab:
    """The same as an engine has it."""
    return as_table(classes_of(table, chosen, candidate))
