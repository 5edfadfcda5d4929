"""Classes of U/R that lie in several pieces: numbered alike everywhere, their counts added up where they meet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plar.engines import kernels
from plar.engines.scoring import Scorer
from plar.engines.spark.pieces import Coding, Hashes, Piece, as_granules, dealt, hashes
from plar.labels import label_granules
from plar.measures import ENTROPY, PURE, Measure
from plar.partition import Array, Index, distinct, split

__all__ = ["Now", "Survey", "added_up", "class_records", "in_order", "numbered", "spread_survey", "tables"]

#: a candidate whose spread cells are at most this many is added up in one task
_FEW_CELLS = 1 << 16
#: counts are sent in parcels of about this many
_PARCEL = 1 << 20
#: label of a class that has several
_MIXED = -1


class Now(NamedTuple):
    """What a task has to know beside its piece."""

    coding: Coding
    measure: Measure
    n_objects: int
    #: R
    selected: tuple[int, ...]


class Survey(NamedTuple):
    """What is known of U/R."""

    theta: int
    #: objects in classes that are not settled
    objects: int
    #: rows in spread classes, and those of them in classes too large to move
    spread: int = 0
    huge: int = 0
    #: the values of R, by class, of the latter; and how many classes are spread
    huge_keys: tuple[tuple[int, ...], ...] = ()
    n_spread: int = 0


class Records(NamedTuple):
    """Classes of U/R of one piece that are known to one task."""

    piece: int
    #: which classes of the piece
    places: Index
    #: the value of every attribute of R, a column per class
    keys: NDArray[np.uint32]
    rows: Array
    #: label, or `_MIXED`; labels that mean the same in all pieces only by their name are listed with it
    labels: NDArray[np.int64]
    named: dict[int, bytes]
    #: counts by class, as its place here, and decision
    of_class: Index
    decisions: Index
    weights: NDArray[np.int64]


def class_records(
    p: int, pieces: Iterable[Piece], now: Now, n: int, labelled: bool = True
) -> Iterator[tuple[int, Records]]:
    """Describe the classes of a piece, each to the task that its values choose."""
    coding, selected = now.coding, now.selected
    for piece in pieces:
        if not piece.n_rows:
            continue
        order, starts = _classes(piece, coding, selected)
        firsts = order[starts[:-1]]
        keys = np.empty((len(selected), len(firsts)), np.uint32)
        for r, a in enumerate(selected):
            keys[r] = piece.column(coding, a)[firsts]
        labels, names = (
            _class_labels(p, piece, now, order, starts) if labelled else (np.zeros(len(firsts), np.int64), {})
        )
        runs = _runs(piece, order, starts)
        for bucket, places in dealt(hashes(piece, coding, selected)[firsts], n):
            here = np.zeros(len(firsts), np.bool_)
            here[places] = True
            chosen = here[runs[0]]
            position = (np.cumsum(here) - 1).astype(np.uint32)
            places = np.flatnonzero(here).astype(np.uint32)
            some = labels[places]
            named = {label: names[label] for label in np.unique(some).tolist() if label in names}
            sizes = np.diff(starts)[places]
            counts = position[runs[0][chosen]], runs[1][chosen], runs[2][chosen]
            yield bucket, Records(p, places, keys[:, places], sizes, some, named, *counts)


def _classes(piece: Piece, coding: Coding, selected: Sequence[int]) -> tuple[Index, Index]:
    """U/R in a piece; each class decision by decision."""
    by_decision = np.argsort(piece.classes, kind="stable").astype(np.uint32)
    return distinct(piece.coded(coding, selected), piece.n_rows, by_decision)


def _class_labels(
    p: int, piece: Piece, now: Now, order: Index, starts: Index
) -> tuple[NDArray[np.int64], dict[int, bytes]]:
    """One label per class, and the names of those that other pieces number differently."""
    coding, measure = now.coding, now.measure
    found = label_granules(as_granules(piece, coding), measure)
    labels = found.labels[order].astype(np.int64)
    names: dict[int, bytes] = {}
    if measure.kind == ENTROPY:
        names = {coding.n_classes + number: name for number, name in enumerate(found.proportions)}
    elif measure.kind != PURE:
        labels[labels >= coding.n_classes] += p << 32  # classes of U/C are never in two pieces
    firsts = starts[:-1].astype(np.intp)
    least, largest = np.minimum.reduceat(labels, firsts), np.maximum.reduceat(labels, firsts)
    return np.where(least == largest, least, _MIXED), names


def _runs(piece: Piece, order: Index, starts: Index) -> tuple[Index, Index, NDArray[np.int64]]:
    """Counts by class and decision: number of the class, decision, count."""
    weights = np.empty(len(order), np.int64)
    runs, class_runs = np.empty(len(order) + 1, np.uint32), np.empty(len(starts), np.uint32)
    n_runs = kernels.find_runs(piece.classes, piece.counts, order, starts, weights, runs, class_runs)
    firsts = runs[:n_runs].astype(np.intp)
    of_class = np.repeat(np.arange(len(starts) - 1, dtype=np.uint32), np.diff(class_runs))
    return of_class, piece.classes[order[firsts]], np.add.reduceat(weights, firsts)


class _Met:
    """Records of the same classes from several pieces, put together."""

    def __init__(self, records: Sequence[Records], now: Now) -> None:
        keys = np.concatenate([r.keys for r in records], axis=1)
        columns = [(keys[r], now.coding.cardinalities[a]) for r, a in enumerate(now.selected)]
        self.order, self.starts = distinct(columns, keys.shape[1])
        self.keys = keys
        self.n_classes = len(self.starts) - 1
        #: number of the class of every entry
        self.numbers = np.empty(keys.shape[1], np.uint32)
        self.numbers[self.order] = np.repeat(np.arange(self.n_classes, dtype=np.uint32), np.diff(self.starts))

    def by_class(self, ufunc: Any, values: Array) -> Array:
        """Put together what is known of each class."""
        return np.asarray(ufunc.reduceat(values[self.order], self.starts[:-1].astype(np.intp)))


def spread_survey(records: Iterable[tuple[int, Records]], now: Now, share: int) -> Iterator[Survey]:
    """Θ of the classes that meet here, which of them are settled, and which have more rows than a task's share."""
    coding = now.coding
    parts = [part for _, part in records]
    if not parts:
        return
    met = _Met(parts, now)
    rows = met.by_class(np.add, np.concatenate([r.rows for r in parts]).astype(np.int64))
    labels = _same_names(parts, coding.n_classes)
    least, largest = met.by_class(np.minimum, labels), met.by_class(np.maximum, labels)
    mixed = (least != largest) | (least == _MIXED)
    lows = np.cumsum([0, *(len(r.places) for r in parts)])
    groups = np.concatenate([met.numbers[low + r.of_class] for low, r in zip(lows, parts, strict=False)])
    decisions, weights = np.concatenate([r.decisions for r in parts]), np.concatenate([r.weights for r in parts])
    objects = np.zeros(met.n_classes, np.int64)
    np.add.at(objects, groups, weights)
    theta = _theta_of_cells(Scorer(now.measure, now.n_objects, coding.n_classes), decisions, weights, groups)
    large = rows > share
    firsts = met.order[met.starts[:-1]][large]
    huge_keys = tuple(tuple(key) for key in met.keys[:, firsts].T.tolist())
    yield Survey(theta, int(objects[mixed].sum()), int(rows.sum()), int(rows[large].sum()), huge_keys, met.n_classes)


def _same_names(parts: Sequence[Records], n_classes: int) -> NDArray[np.int64]:
    """Labels that mean the same in all pieces."""
    numbers: dict[bytes, int] = {}
    found = []
    for r in parts:
        labels = r.labels.copy()
        for label, name in r.named.items():
            labels[r.labels == label] = n_classes + numbers.setdefault(name, len(numbers))
        found.append(labels)
    return np.concatenate(found)


def _theta_of_cells(scorer: Scorer, decisions: Index, weights: NDArray[np.int64], *cells: Array) -> int:
    """Σ θ over classes whose counts come in parts: `cells` together name the class."""
    order = np.lexsort((decisions, *cells))
    new = np.zeros(len(order), np.bool_)
    new[:1] = True
    for cell in cells:
        new[1:] |= np.diff(cell[order].astype(np.int64)) != 0
    starts = np.append(np.flatnonzero(new), len(order)).astype(np.uint32)
    return scorer.total(decisions, weights, order.astype(np.uint32), starts)


def numbered(bucket: int, records: Iterable[tuple[int, Records]], now: Now) -> Iterator[tuple[int, Any]]:
    """Send every piece the numbers of its classes."""
    parts = [part for _, part in records]
    if not parts:
        return
    # in an order that the values alone decide, so that all pieces get the same numbers, even if a task runs again
    met = _Met(parts, now)
    firsts = met.order[met.starts[:-1]]
    rank = np.empty(met.n_classes, np.int64)
    rank[np.lexsort(met.keys[:, firsts]) if len(now.selected) else slice(None)] = np.arange(met.n_classes)
    low = 0
    for r in parts:
        numbers = rank[met.numbers[low : low + len(r.places)]] + (bucket << 40)
        low += len(r.places)
        yield r.piece, (r.places, numbers)


def in_order(records: Iterable[tuple[int, Any]]) -> Iterator[NDArray[np.int64]]:
    """The numbers of a piece's classes, by class."""
    parts = [part for _, part in records]
    numbers = np.empty(sum(len(places) for places, _ in parts), np.int64)
    for places, some in parts:
        numbers[places] = some
    yield numbers


def tables(
    joined: tuple[Piece, NDArray[np.int64]], now: Now, candidates: tuple[int, ...], n_classes: int, n: int
) -> Iterator[tuple[int, Any]]:
    """Count (class, value, decision) for every candidate, and send the counts to where they are added up."""
    coding = now.coding
    piece, numbers = joined
    if not piece.n_rows:
        return
    order, starts = _classes(piece, coding, now.selected)
    class_of = np.empty(piece.n_rows, np.int64)
    class_of[order] = np.repeat(numbers, np.diff(starts))
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
        if n_classes * n_values * coding.n_classes <= _FEW_CELLS:
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
    scorer = Scorer(now.measure, now.n_objects, now.coding.n_classes)
    scores = []
    for a, found in parts.items():
        classes, values, decisions, weights = (np.concatenate(column) for column in zip(*found, strict=True))
        scores.append((a, _theta_of_cells(scorer, decisions, weights, values, classes)))
    yield scores
