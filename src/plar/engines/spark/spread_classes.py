"""Classes of U/R that lie in several pieces: the driver numbers them, tasks count in them, and the counts meet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plar.engines import kernels
from plar.engines.scoring import Scorer
from plar.engines.spark.pieces import Coding, Hashes, Piece, as_granules, dealt
from plar.labels import label_granules
from plar.measures import ENTROPY, PURE, Measure
from plar.partition import Array, Index, distinct, split

__all__ = ["Now", "Spread", "added_up", "describe", "put_together", "tables"]

#: a candidate whose spread cells are at most this many is added up in one task
_FEW_CELLS = 1 << 16
#: counts are sent in parcels of about this many
_PARCEL = 1 << 20


class Now(NamedTuple):
    """What a task has to know beside its piece."""

    coding: Coding
    measure: Measure
    n_objects: int
    #: R
    selected: tuple[int, ...]

    def scorer(self) -> Scorer:
        """Adds θ up."""
        return Scorer(self.measure, self.n_objects, self.coding.n_classes)


class Spread(NamedTuple):
    """The classes of U/R in one piece."""

    #: by class: its values of R, and its label, which means the same in all pieces; None for a class of several
    keys: list[tuple[int, ...]]
    labels: list[Any]
    #: counts by class and decision
    of_class: Index
    decisions: Index
    weights: NDArray[np.int64]


def describe(p: int, pieces: Iterable[Piece], now: Now) -> Iterator[Spread]:
    """Tell the driver the classes of a piece."""
    for piece in pieces:
        if piece.n_rows:
            order, starts = _classes(piece, now)
            labels = _class_labels(p, piece, now, order, starts)
            yield Spread(_keys(piece, now, order, starts), labels, *_runs(piece, order, starts))


def _classes(piece: Piece, now: Now) -> tuple[Index, Index]:
    """U/R in a piece; each class decision by decision."""
    by_decision = np.argsort(piece.classes, kind="stable").astype(np.uint32)
    return distinct(piece.coded(now.coding, now.selected), piece.n_rows, by_decision)


def _keys(piece: Piece, now: Now, order: Index, starts: Index) -> list[tuple[int, ...]]:
    firsts = order[starts[:-1]]
    values = [piece.column(now.coding, a)[firsts].tolist() for a in now.selected]
    return list(zip(*values, strict=True)) if values else [()] * len(firsts)


def _class_labels(p: int, piece: Piece, now: Now, order: Index, starts: Index) -> list[Any]:
    found = label_granules(as_granules(piece, now.coding), now.measure)
    labels, firsts, base = found.labels[order], starts[:-1].astype(np.intp), now.coding.n_classes

    def known_to_all(label: int) -> Any:
        if label < base or now.measure.kind == PURE:
            return label
        # classes of U/C are never in two pieces
        return found.proportions[label - base] if now.measure.kind == ENTROPY else (p, label)

    least, largest = np.minimum.reduceat(labels, firsts).tolist(), np.maximum.reduceat(labels, firsts).tolist()
    return [known_to_all(a) if a == b else None for a, b in zip(least, largest, strict=True)]


def _runs(piece: Piece, order: Index, starts: Index) -> tuple[Index, Index, NDArray[np.int64]]:
    """Counts by class and decision: number of the class, decision, count."""
    weights = np.empty(len(order), np.int64)
    runs, class_runs = np.empty(len(order) + 1, np.uint32), np.empty(len(starts), np.uint32)
    n_runs = kernels.find_runs(piece.classes, piece.counts, order, starts, weights, runs, class_runs)
    firsts = runs[:n_runs].astype(np.intp)
    of_class = np.repeat(np.arange(len(starts) - 1, dtype=np.uint32), np.diff(class_runs))
    return of_class, piece.classes[order[firsts]], np.add.reduceat(weights, firsts)


def put_together(parts: Sequence[Spread], now: Now) -> tuple[int, int, dict[tuple[int, ...], int]]:
    """Θ of the spread classes, the objects in those that are not settled, and a number for each, by its values."""
    numbers: dict[tuple[int, ...], int] = {}
    labels: dict[int, set[Any]] = {}
    groups = []
    for part in parts:
        mine = np.array([numbers.setdefault(key, len(numbers)) for key in part.keys], np.uint32)
        groups.append(mine[part.of_class])
        for number, label in zip(mine.tolist(), part.labels, strict=True):
            labels.setdefault(number, set()).add(label)
    of_class = np.concatenate(groups)
    decisions, weights = (np.concatenate([part[i] for part in parts]) for i in (-2, -1))
    objects = np.zeros(len(numbers), np.int64)
    np.add.at(objects, of_class, weights)
    unsettled = sum(int(objects[c]) for c, found in labels.items() if len(found) > 1 or None in found)
    return _theta_of_cells(now.scorer(), decisions, weights, of_class), unsettled, numbers


def _theta_of_cells(scorer: Scorer, decisions: Index, weights: NDArray[np.int64], *cells: Array) -> int:
    """Σ θ over classes whose counts come in parts: `cells` together name the class."""
    order = np.lexsort((decisions, *cells))
    new = np.zeros(len(order), np.bool_)
    new[:1] = True
    for cell in cells:
        new[1:] |= np.diff(cell[order].astype(np.int64)) != 0
    starts = np.append(np.flatnonzero(new), len(order)).astype(np.uint32)
    return scorer.total(decisions, weights, order.astype(np.uint32), starts)


def tables(
    piece: Piece, now: Now, numbers: dict[tuple[int, ...], int], candidates: tuple[int, ...], n: int
) -> Iterator[tuple[int, Any]]:
    """Count (class, value, decision) for every candidate, and send the counts to where they are added up."""
    coding = now.coding
    if not piece.n_rows:
        return
    order, starts = _classes(piece, now)
    known = [numbers[key] for key in _keys(piece, now, order, starts)]
    class_of = np.empty(piece.n_rows, np.uint32)
    class_of[order] = np.repeat(np.array(known, np.uint32), np.diff(starts))
    rows = np.arange(piece.n_rows, dtype=np.uint32)
    parcels: list[list[Any]] = [[] for _ in range(n)]
    held = 0
    for a in candidates:
        codes, n_values = piece.column(coding, a), coding.cardinalities[a]
        after = split([(codes, n_values)], rows, order, starts)
        refined = np.concatenate([after.order, after.gone])
        bounds = np.concatenate([after.starts[:-1], after.gone_starts + np.uint32(len(after.order))])
        of_cell, decisions, weights = _runs(piece, refined, bounds)
        firsts = refined[bounds[:-1]][of_cell]
        cells = class_of[firsts], codes[firsts].astype(np.uint32), decisions, weights
        if len(numbers) * n_values * coding.n_classes <= _FEW_CELLS:
            parcels[a % n].append((a, *cells))
        else:
            number: Hashes = cells[0].astype(np.uint64) * np.uint64(n_values) + cells[1] + np.uint64(a)
            for bucket, some in dealt(number, n):
                parcels[bucket].append((a, *(cell[some] for cell in cells)))
        held += len(weights)
        if held > _PARCEL:
            yield from ((bucket, parcel) for bucket, parcel in enumerate(parcels) if parcel)
            parcels, held = [[] for _ in range(n)], 0
    yield from ((bucket, parcel) for bucket, parcel in enumerate(parcels) if parcel)


def added_up(records: Iterable[tuple[int, Any]], now: Now) -> Iterator[list[tuple[int, int]]]:
    """Add up the counts of every candidate, and its Θ."""
    parts: dict[int, list[Any]] = {}
    for _, parcel in records:
        for a, *cells in parcel:
            parts.setdefault(a, []).append(cells)
    scorer, scores = now.scorer(), []
    for a, found in parts.items():
        classes, values, decisions, weights = (np.concatenate(column) for column in zip(*found, strict=True))
        scores.append((a, _theta_of_cells(scorer, decisions, weights, values, classes)))
    yield scores
