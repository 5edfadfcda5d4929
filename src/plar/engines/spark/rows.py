"""The rows layout: a piece is some granules with all columns, for tables whose class ids no broadcast can bear.

Classes of U/R that lie whole in one piece are evaluated there, and their Θ is added up. Classes that are *spread* over
pieces are numbered, and every piece sends its counts of (class, value, decision) to where they are added up. At first
everything is spread; once most rows are in classes small enough, those rows are moved, class by class, and from then
on they never move again, for classes only split. A class that stays too large keeps sending counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plar.engines import kernels
from plar.engines.base import Inner
from plar.engines.local import LocalEvaluation
from plar.engines.scoring import Scorer
from plar.engines.spark.core import leave_one_out
from plar.engines.spark.granulate import itself
from plar.engines.spark.jobs import Watch, run_watched
from plar.engines.spark.pieces import Coding, Hashes, Piece, as_granules, dealt, hashes, joined_pieces
from plar.engines.spark.session import explained
from plar.labels import label_granules
from plar.measures import ENTROPY, OWN, PURE, Measure
from plar.partition import Array, Index, distinct, split

if TYPE_CHECKING:
    from pyspark import RDD

    from plar.engines.spark.held import SparkGranules

__all__ = ["RowsEvaluation"]

#: a candidate whose spread cells are at most this many is added up in one task
_FEW_CELLS = 1 << 16
#: counts are sent in parcels of about this many
_PARCEL = 1 << 20
#: label of a class that has several
_MIXED = -1


class Survey(NamedTuple):
    """What is known of U/R."""

    theta: int
    #: objects in classes that are not settled
    objects: int
    #: rows in spread classes, and those of them in classes too large to move
    spread: int
    huge: int
    #: the values of R, by class, of the latter; and how many classes are spread
    huge_keys: tuple[tuple[int, ...], ...]
    n_spread: int


class RowsEvaluation:
    """U/R on the cluster; see `plar.engines.base.Evaluation`."""

    def __init__(self, held: SparkGranules, measure: Measure, watch: Watch | None) -> None:
        self._held, self._measure, self._watch = held, measure, watch
        self._coding = held.coding
        with explained("evaluate the conditions"):
            facts = held.pieces.flatMap(partial(_facts, coding=held.coding, measure=measure)).collect()
        self.theta_all = sum(theta for theta, _, _ in facts)
        self.consistent = all(consistent for _, consistent, _ in facts)
        self._entropy = math.fsum(part for _, _, parts in facts for part in parts)
        n = len(held.sizes)
        #: pieces whose classes of U/R are whole, and those whose are spread
        self._whole: list[RDD[Piece]] = [held.pieces] if n == 1 else []
        self._spread: RDD[Piece] | None = None if n == 1 else held.pieces
        #: a class of more rows is not moved: it would burden one task with more than its share
        self._share = -(-len(held) // n)
        self._selected: list[int] = []
        self._known: dict[int, int] = {}
        self._survey: Survey | None = None

    @property
    def value_all(self) -> float:
        """Θ(D|C) as a number."""
        if self._measure.kind != ENTROPY or self.consistent:
            return self._measure.value(self.theta_all, self._held.n_objects)
        return self._entropy / self._held.n_objects

    @property
    def theta(self) -> int:
        """Θ(D|R)."""
        return self._surveyed().theta

    @property
    def active(self) -> int:
        """Objects in classes of U/R that are not settled."""
        found = self._surveyed()
        if self._measure.kind == OWN:
            return 0 if found.theta == self.theta_all else max(1, found.objects)
        return found.objects

    def without_each(self, attributes: Sequence[int] | None = None) -> list[Inner]:
        """Θ(D|B∖{a}) for every a of B."""
        if attributes is None:
            return leave_one_out(self._held, self._measure, self.theta_all)
        # Θ(D|B) = Θ(D|C), so that what B alone tells is enough
        coarse = self._held.coarsen([self._held.conditions[a] for a in attributes])
        try:
            with explained("evaluate the reduct"):
                facts = coarse.pieces.flatMap(partial(_facts, coding=coarse.coding, measure=self._measure)).collect()
            inner = leave_one_out(coarse, self._measure, sum(theta for theta, _, _ in facts))
        finally:
            coarse.unpersist()
        return [Inner(self.theta_all, True) if found.equal else found for found in inner]

    def with_each(self, candidates: Sequence[int]) -> list[int]:
        """Θ(D|R∪{a}) for every candidate, in one job."""
        settings = {"coding": self._coding, "measure": self._measure, "selected": tuple(self._selected)}
        found = self._surveyed()
        parts = [rdd.map(partial(_whole_scores, candidates=tuple(candidates), **settings)) for rdd in self._whole]
        if self._spread is not None:
            numbers = self._numbers()
            tables = partial(_tables, candidates=tuple(candidates), n_classes=found.n_spread, n=self._n, **settings)
            cells = self._spread.zip(numbers).flatMap(tables)
            n_objects = self._held.n_objects
            added = partial(_added_up, coding=self._coding, measure=self._measure, n_objects=n_objects)
            parts.append(cells.partitionBy(self._n, itself).mapPartitions(added))
        thetas = dict.fromkeys(candidates, 0)
        job = self._held.pieces.context.union(parts) if len(parts) > 1 else parts[0]
        with explained("score the candidates"):
            done = run_watched(job, _as_it_is, range(job.getNumPartitions()), self._watch)
        for scores in done:
            for a, theta in scores:
                thetas[a] += theta
        self._known = thetas
        return [thetas[a] for a in candidates]

    def select(self, *attributes: int) -> int:
        """R ← R ∪ {a, …}; returns Θ(D|R)."""
        self._selected += attributes
        self._survey = None
        self._known = {}
        self._move(self._surveyed())
        return self.theta

    @property
    def _n(self) -> int:
        return len(self._held.sizes)

    def _surveyed(self) -> Survey:
        if self._survey is None:
            settings = {"coding": self._coding, "measure": self._measure, "selected": tuple(self._selected)}
            parts = [rdd.map(partial(_whole_survey, **settings)) for rdd in self._whole]
            if self._spread is not None:
                records = self._spread.mapPartitionsWithIndex(partial(_class_records, n=self._n, **settings))
                survey = partial(_spread_survey, share=self._share, n_objects=self._held.n_objects, **settings)
                parts.append(records.partitionBy(self._n, itself).mapPartitions(survey))
            with explained("refine the classes"):
                found = self._held.pieces.context.union(parts).collect()
            sums = [sum(column) for column in zip(*((*f[:4], f.n_spread) for f in found), strict=True)]
            huge_keys = tuple(key for survey in found for key in survey.huge_keys)
            self._survey = Survey(*sums[:4], huge_keys, sums[4])
        return self._survey

    def _move(self, found: Survey) -> None:
        """Move the classes that fit, if they hold most of the rows, each to one piece."""
        if self._spread is None or 2 * found.huge > found.spread:
            return
        from pyspark import StorageLevel

        settings = {"coding": self._coding, "selected": tuple(self._selected), "huge_keys": found.huge_keys}
        moved = self._spread.flatMap(partial(_movers, n=self._n, **settings)).partitionBy(self._n, itself)
        self._whole.append(
            moved.mapPartitions(partial(_moved, coding=self._coding)).persist(StorageLevel.MEMORY_AND_DISK)
        )
        self._spread = (
            self._spread.map(partial(_stayers, **settings)).persist(StorageLevel.MEMORY_AND_DISK)
            if found.huge
            else None
        )

    def _numbers(self) -> RDD[Any]:
        """For every spread piece, the numbers of its classes, the same wherever a class is."""
        assert self._spread is not None
        settings = {"coding": self._coding, "measure": None, "selected": tuple(self._selected)}
        records = self._spread.mapPartitionsWithIndex(partial(_class_records, n=self._n, **settings))
        numbered = records.partitionBy(self._n, itself).mapPartitionsWithIndex(partial(_numbered, **settings))
        return numbered.partitionBy(self._spread.getNumPartitions(), itself).mapPartitions(_in_order)


# -- tasks on whole classes --------------------------------------------------------------------------------


def _evaluation(piece: Piece, coding: Coding, measure: Measure, selected: Sequence[int]) -> LocalEvaluation:
    evaluation = LocalEvaluation(as_granules(piece, coding), measure)
    if selected:
        evaluation.select(*selected)
    return evaluation


def _facts(piece: Piece, coding: Coding, measure: Measure) -> Iterator[tuple[int, bool, list[float]]]:
    """Θ(D|C) of a piece, whether it is consistent, and what its entropy sums up to, exactly."""
    if piece.n_rows:
        granules = as_granules(piece, coding)
        labels = label_granules(granules, measure)
        evaluation = LocalEvaluation(granules, measure, labels=labels)
        terms = labels.entropy_terms(granules.counts).tolist() if measure.kind == ENTROPY else []
        yield evaluation.theta_all, evaluation.consistent, _exact_parts(terms)


def _exact_parts(terms: list[float]) -> list[float]:
    """Few floats whose exact sum is that of many."""
    parts: list[float] = []
    while rest := math.fsum([*terms, *(-part for part in parts)]):
        parts.append(rest)
    return parts


def _whole_survey(piece: Piece, coding: Coding, measure: Measure, selected: tuple[int, ...]) -> Survey:
    if not piece.n_rows:
        return Survey(0, 0, 0, 0, (), 0)
    evaluation = _evaluation(piece, coding, measure, selected)
    return Survey(evaluation.theta, evaluation.unsettled, 0, 0, (), 0)


def _whole_scores(
    piece: Piece, coding: Coding, measure: Measure, selected: tuple[int, ...], candidates: tuple[int, ...]
) -> list[tuple[int, int]]:
    if not piece.n_rows:
        return []
    thetas = _evaluation(piece, coding, measure, selected).with_each(candidates)
    return list(zip(candidates, thetas, strict=True))


def _as_it_is(records: Iterable[Any]) -> Iterable[Any]:
    return records


# -- tasks on spread classes -------------------------------------------------------------------------------


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


def _class_records(
    p: int, pieces: Iterable[Piece], coding: Coding, measure: Measure | None, selected: tuple[int, ...], n: int
) -> Iterator[tuple[int, Records]]:
    """Describe the classes of a piece, each to the task that its values choose."""
    for piece in pieces:
        if not piece.n_rows:
            continue
        order, starts = _classes(piece, coding, selected)
        firsts = order[starts[:-1]]
        keys = np.empty((len(selected), len(firsts)), np.uint32)
        for r, a in enumerate(selected):
            keys[r] = piece.column(coding, a)[firsts]
        labels, names = _class_labels(p, piece, coding, measure, order, starts)
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
    p: int, piece: Piece, coding: Coding, measure: Measure | None, order: Index, starts: Index
) -> tuple[NDArray[np.int64], dict[int, bytes]]:
    """One label per class, and the names of those that other pieces number differently."""
    if measure is None:
        return np.zeros(len(starts) - 1, np.int64), {}
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

    def __init__(self, records: Sequence[Records], coding: Coding, selected: Sequence[int]) -> None:
        self.records = records
        keys = np.concatenate([r.keys for r in records], axis=1)
        columns = [(keys[r], coding.cardinalities[a]) for r, a in enumerate(selected)]
        self.order, self.starts = distinct(columns, keys.shape[1])
        self.keys = keys
        self.n_classes = len(self.starts) - 1
        #: number of the class of every entry
        self.numbers = np.empty(keys.shape[1], np.uint32)
        self.numbers[self.order] = np.repeat(np.arange(self.n_classes, dtype=np.uint32), np.diff(self.starts))

    def by_class(self, ufunc: Any, values: Array) -> Array:
        """Put together what is known of each class."""
        return np.asarray(ufunc.reduceat(values[self.order], self.starts[:-1].astype(np.intp)))


def _spread_survey(
    records: Iterable[tuple[int, Records]],
    coding: Coding,
    measure: Measure,
    selected: tuple[int, ...],
    share: int,
    n_objects: int,
) -> Iterator[Survey]:
    parts = [part for _, part in records]
    if not parts:
        return
    met = _Met(parts, coding, selected)
    rows = met.by_class(np.add, np.concatenate([r.rows for r in parts]).astype(np.int64))
    labels = _same_names(parts, coding.n_classes)
    least, largest = met.by_class(np.minimum, labels), met.by_class(np.maximum, labels)
    mixed = (least != largest) | (least == _MIXED)
    lows = np.cumsum([0, *(len(r.places) for r in parts)])
    groups = np.concatenate([met.numbers[low + r.of_class] for low, r in zip(lows, parts, strict=False)])
    decisions, weights = np.concatenate([r.decisions for r in parts]), np.concatenate([r.weights for r in parts])
    objects = np.bincount(groups, weights=None, minlength=met.n_classes) * 0
    np.add.at(objects, groups, weights)
    theta = _theta_of_cells(Scorer(measure, n_objects, coding.n_classes), decisions, weights, groups)
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


def _numbered(
    bucket: int, records: Iterable[tuple[int, Records]], coding: Coding, measure: None, selected: tuple[int, ...]
) -> Iterator[tuple[int, Any]]:
    """Tell every piece the numbers of its classes."""
    parts = [part for _, part in records]
    if not parts:
        return
    # in an order that the values alone decide, so that all pieces are told the same, also by a task that runs again
    met = _Met(parts, coding, selected)
    firsts = met.order[met.starts[:-1]]
    rank = np.empty(met.n_classes, np.int64)
    rank[np.lexsort(met.keys[:, firsts]) if len(selected) else slice(None)] = np.arange(met.n_classes)
    low = 0
    for r in parts:
        numbers = rank[met.numbers[low : low + len(r.places)]] + (bucket << 40)
        low += len(r.places)
        yield r.piece, (r.places, numbers)


def _in_order(records: Iterable[tuple[int, Any]]) -> Iterator[NDArray[np.int64]]:
    parts = [part for _, part in records]
    numbers = np.empty(sum(len(places) for places, _ in parts), np.int64)
    for places, some in parts:
        numbers[places] = some
    yield numbers


def _tables(
    joined: tuple[Piece, NDArray[np.int64]],
    coding: Coding,
    measure: Measure,
    selected: tuple[int, ...],
    candidates: tuple[int, ...],
    n_classes: int,
    n: int,
) -> Iterator[tuple[int, Any]]:
    """Count (class, value, decision) for every candidate, and send the counts to where they are added up."""
    piece, numbers = joined
    if not piece.n_rows:
        return
    order, starts = _classes(piece, coding, selected)
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


def _added_up(
    records: Iterable[tuple[int, Any]], coding: Coding, measure: Measure, n_objects: int
) -> Iterator[list[tuple[int, int]]]:
    """Add up the counts of every candidate, and its Θ."""
    parts: dict[int, list[Any]] = {}
    for _, parcel in records:
        for a, *cells in parcel:
            parts.setdefault(a, []).append(cells)
    scorer = Scorer(measure, n_objects, coding.n_classes)
    scores = []
    for a, found in parts.items():
        classes, values, decisions, weights = (np.concatenate(column) for column in zip(*found, strict=True))
        scores.append((a, _theta_of_cells(scorer, decisions, weights, values, classes)))
    yield scores


# -- moving ------------------------------------------------------------------------------------------------


def _stays(piece: Piece, coding: Coding, selected: Sequence[int], huge_keys: tuple[tuple[int, ...], ...]) -> Array:
    """Which rows are in a class that is too large to move."""
    stays = np.zeros(piece.n_rows, np.bool_)
    for key in huge_keys:
        same = np.ones(piece.n_rows, np.bool_)
        for a, value in zip(selected, key, strict=True):
            same &= piece.column(coding, a) == value
        stays |= same
    return stays


def _movers(
    piece: Piece, coding: Coding, selected: tuple[int, ...], huge_keys: tuple[tuple[int, ...], ...], n: int
) -> Iterator[tuple[int, Piece]]:
    some = piece.rows(~_stays(piece, coding, selected, huge_keys))
    for bucket, rows in dealt(hashes(some, coding, selected), n):
        yield bucket, some.rows(rows)


def _moved(records: Iterable[tuple[int, Piece]], coding: Coding) -> Iterator[Piece]:
    yield joined_pieces([piece for _, piece in records], coding)


def _stayers(piece: Piece, coding: Coding, selected: tuple[int, ...], huge_keys: tuple[tuple[int, ...], ...]) -> Piece:
    return piece.rows(_stays(piece, coding, selected, huge_keys))
