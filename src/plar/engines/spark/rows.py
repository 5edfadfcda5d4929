"""The rows layout: a piece is some granules with all columns, for tables with too many class ids to broadcast.

Classes of U/R that are whole in one piece are evaluated there, and their Θ is summed. For classes *spread* over pieces,
every piece sends its counts of (class, value, decision) to a task that sums them. At first everything is spread; once a
class has no more rows than a task's share, its rows are moved to one piece and never move again, since classes only
split. The classes that are still spread are few, and the driver knows them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyspark import RDD, StorageLevel

from plar.engines.base import Inner
from plar.engines.local import LocalEvaluation
from plar.engines.progress_hooks import Watch
from plar.engines.scoring import Scorer
from plar.engines.spark.core import leave_one_out
from plar.engines.spark.pieces import Coding, Hashes, Piece, as_granules, dealt, dealt_out, gathered, hashes
from plar.engines.spark.session import explained, run_watched
from plar.labels import label_granules
from plar.measures import ENTROPY, OWN, PURE, Measure
from plar.partition import Array, Index, distinct, find_runs, split
from plar.spark_calls import spark_call
from plar.strata import Table

if TYPE_CHECKING:
    from plar.engines.spark.handle import SparkGranules


#: buckets, by hash of the class, in which rows are counted to find the classes that are too large to move
_BUCKETS = 1 << 14
#: a candidate with at most this many spread cells is summed in one task
_FEW_CELLS = 1 << 14


class Now(NamedTuple):
    """What a task needs to know besides its piece."""

    coding: Coding
    measure: Measure
    n_objects: int
    #: R
    selected: tuple[int, ...]

    def scorer(self) -> Scorer:
        """The scorer that sums θ."""
        return Scorer(self.measure, self.n_objects, self.coding.n_classes)


class Spread(NamedTuple):
    """The classes of U/R in one piece."""

    #: by class: its values on R, and its label, valid in all pieces; None for a class with several labels
    keys: list[tuple[int, ...]]
    labels: list[Any]
    #: counts by class and decision
    of_class: Index
    decisions: Index
    weights: NDArray[np.int64]


class RowsEvaluation:
    """U/R on the cluster; see `plar.engines.base.Evaluation`."""

    @spark_call
    def __init__(self, held: SparkGranules, measure: Measure, watch: Watch | None) -> None:
        self._held, self._measure, self.watch = held, measure, watch
        with explained("evaluate the conditions"):
            facts = held.pieces.flatMap(partial(_facts, coding=held.coding, measure=measure)).collect()
        self.theta_all = sum(theta for theta, _, _ in facts)
        self.consistent = all(consistent for _, consistent, _ in facts)
        self._entropy = math.fsum(part for _, _, parts in facts for part in parts)
        self._n = len(held.sizes)
        #: pieces whose classes of U/R are whole, and pieces whose classes are spread
        self._whole: list[RDD[Piece]] = [held.pieces] if self._n == 1 else []
        self._spread: RDD[Piece] | None = None if self._n == 1 else held.pieces
        self._now = Now(held.coding, measure, held.n_objects, ())
        self._survey()

    @property
    def value_all(self) -> float:
        """Θ(D|C) as a number."""
        if self._measure.kind != ENTROPY or self.consistent:
            return self._measure.value(self.theta_all, self._held.n_objects)
        return self._entropy / self._held.n_objects

    @property
    def active(self) -> int:
        """Objects in classes of U/R that are not settled."""
        if self._measure.kind == OWN:
            return 0 if self.theta == self.theta_all else max(1, self._unsettled)
        return self._unsettled

    @spark_call
    def without_each(self, attributes: Sequence[int] | None = None) -> list[Inner]:
        """Θ(D|B∖{a}) for every a of B."""
        if attributes is None:
            return leave_one_out(self._held, self._measure, self.theta_all)
        # Θ(D|B) = Θ(D|C), so the granules of B are enough
        coarse = self._held.coarsen([self._held.conditions[a] for a in attributes])
        with explained("evaluate the reduct"):
            facts = coarse.pieces.flatMap(partial(_facts, coding=coarse.coding, measure=self._measure)).collect()
        inner = leave_one_out(coarse, self._measure, sum(theta for theta, _, _ in facts))
        return [Inner(self.theta_all, True) if found.equal else found for found in inner]

    @spark_call
    def with_each(self, candidates: Sequence[int]) -> list[int]:
        """Θ(D|R∪{a}) for every candidate, in one job."""
        now, wanted = self._now, tuple(candidates)
        parts = [rdd.map(partial(_whole_scores, now=now, candidates=wanted)) for rdd in self._whole]
        if self._spread is not None:
            cells = self._spread.flatMap(partial(_tables, now=now, numbers=self._numbers, candidates=wanted, n=self._n))
            parts.append(cells.partitionBy(self._n, int).mapPartitions(partial(_added_up, now=now)))
        job = self._held.pieces.context.union(parts)
        with explained("score the candidates"):
            done = run_watched(job, list, range(job.getNumPartitions()), self.watch, len(wanted))
        thetas = dict.fromkeys(candidates, 0)
        for scores in done:
            for a, theta in scores:
                thetas[a] += theta
        return [thetas[a] for a in candidates]

    @spark_call
    def tables(self, candidates: Sequence[int]) -> Iterable[Table]:
        """Cross-tabulate each candidate with the decisions, on the cluster, in one job."""
        now, wanted = self._now, tuple(candidates)
        parts = [rdd.map(partial(_whole_tables, now=now, candidates=wanted)) for rdd in self._whole]
        if self._spread is not None:
            count = partial(_tables, now=now, numbers=self._numbers, candidates=wanted, n=1)
            parts.append(self._spread.map(lambda piece: (0, [cells for _, cells in count(piece)])))
        with explained("test the candidates"):
            found = self._held.pieces.context.union(parts).collect()
        return [_one_table(a, found, len(self._numbers), now.coding.cardinalities[a]) for a in candidates]

    @spark_call
    def select(self, *attributes: int) -> int:
        """R ← R ∪ {a, …}; returns Θ(D|R)."""
        self._now = self._now._replace(selected=(*self._now.selected, *attributes))
        self._move()
        self._survey()
        return self.theta

    def _survey(self) -> None:
        """Compute Θ(D|R), the number of unsettled objects, and the spread classes."""
        parts: list[RDD[Any]] = [rdd.map(partial(_whole_survey, now=self._now)) for rdd in self._whole]
        if self._spread is not None:
            parts.append(self._spread.mapPartitionsWithIndex(partial(_describe, now=self._now)))
        with explained("refine the classes"):
            found = self._held.pieces.context.union(parts).collect()
        spread = [part for part in found if isinstance(part, Spread)]
        whole = [part for part in found if not isinstance(part, Spread)]
        theta, unsettled, self._numbers = _merge_spread(spread, self._now) if spread else (0, 0, {})
        self.theta: int = theta + sum(theta for theta, _ in whole)
        self._unsettled: int = unsettled + sum(unsettled for _, unsettled in whole)

    def _move(self) -> None:
        """Move each class that fits to one piece; a larger class would give a task more than its share."""
        if self._spread is None:
            return
        now, share = self._now, -(-len(self._held) // self._n)
        with explained("refine the classes"):
            counted = self._spread.map(lambda piece: np.bincount(_buckets(piece, now), minlength=_BUCKETS))
            rows = counted.reduce(add)
        large = rows > share
        if not rows[~large].any():
            return
        movers = self._spread.flatMap(partial(_movers, now=now, large=large, n=self._n))
        self._whole.append(gathered(movers, now.coding, self._n))
        stayers = self._spread.map(lambda piece: piece.rows(large[_buckets(piece, now)]))
        self._spread = stayers if large.any() else None
        for rdd in (self._whole[-1], *([self._spread] if self._spread is not None else [])):
            self._held.moved.append(rdd.persist(StorageLevel.MEMORY_AND_DISK))


# -- tasks on whole classes --------------------------------------------------------------------------------


def _evaluation(piece: Piece, now: Now) -> LocalEvaluation:
    evaluation = LocalEvaluation(as_granules(piece, now.coding), now.measure)
    if now.selected:
        evaluation.select(*now.selected)
    return evaluation


def _facts(piece: Piece, coding: Coding, measure: Measure) -> Iterator[tuple[int, bool, list[float]]]:
    """Θ(D|C) of a piece, whether it is consistent, and its entropy as an exact sum."""
    if piece.n_rows:
        granules = as_granules(piece, coding)
        labels = label_granules(granules, measure)
        evaluation = LocalEvaluation(granules, measure, labels=labels)
        terms = labels.entropy_terms(granules.counts).tolist() if measure.kind == ENTROPY else []
        yield evaluation.theta_all, evaluation.consistent, _exact_parts(terms)


def _exact_parts(terms: list[float]) -> list[float]:
    """A few floats with the same exact sum as many."""
    parts: list[float] = []
    while rest := math.fsum([*terms, *(-part for part in parts)]):
        parts.append(rest)
    return parts


def _whole_survey(piece: Piece, now: Now) -> tuple[int, int]:
    if not piece.n_rows:
        return 0, 0
    evaluation = _evaluation(piece, now)
    return evaluation.theta, evaluation.unsettled


def _whole_scores(piece: Piece, now: Now, candidates: tuple[int, ...]) -> list[tuple[int, int]]:
    thetas = _evaluation(piece, now).with_each(candidates) if piece.n_rows else []
    return list(zip(candidates, thetas, strict=False))


def _whole_tables(piece: Piece, now: Now, candidates: tuple[int, ...]) -> tuple[int, list[Any]]:
    """Count the classes of a piece, and (class, value, decision) for every candidate."""
    if not piece.n_rows:
        return 0, []
    order, starts, _ = _classes(piece, now)
    return len(starts) - 1, [(a, *_cells(piece, now, a, order, starts)) for a in candidates]


def _one_table(candidate: int, parts: Sequence[tuple[int, list[Any]]], n_spread: int, n_values: int) -> Table:
    """Combine the counts of one candidate; the numbers of spread classes are the same in all pieces."""
    found, first = [], n_spread
    for n_classes, tables in parts:
        for a, classes, *cells in tables:
            if a == candidate:
                found.append((classes + np.uint32(first if n_classes else 0), *cells))
        first += n_classes
    nothing = (np.empty(0, np.uint32),) * 3 + (np.empty(0, np.int64),)
    classes, values, decisions, counts = (np.concatenate(column) for column in zip(nothing, *found, strict=True))
    order = np.lexsort((decisions, classes)).astype(np.uint32)
    starts = np.append(np.flatnonzero(np.diff(classes[order].astype(np.int64), prepend=-1)), len(order)).astype(
        np.uint32
    )
    return Table.of(values, decisions, counts, order, starts, n_values)


# -- tasks on spread classes -------------------------------------------------------------------------------


def _describe(p: int, pieces: Iterable[Piece], now: Now) -> Iterator[Spread]:
    """Describe the classes of a piece to the driver."""
    for piece in pieces:
        if piece.n_rows:
            order, starts, keys = _classes(piece, now)
            labels = _class_labels(p, piece, now, order, starts)
            yield Spread(keys, labels, *_runs(piece, order, starts))


def _classes(piece: Piece, now: Now) -> tuple[Index, Index, list[tuple[int, ...]]]:
    """U/R in a piece, each class ordered by decision, and the values of every class."""
    by_decision = np.argsort(piece.classes, kind="stable").astype(np.uint32)
    order, starts = distinct(piece.coded(now.coding, now.selected), piece.n_rows, by_decision)
    firsts = order[starts[:-1]]
    values = [piece.column(now.coding, a)[firsts].tolist() for a in now.selected]
    return order, starts, list(zip(*values, strict=True)) if values else [()] * len(firsts)


def _class_labels(p: int, piece: Piece, now: Now, order: Index, starts: Index) -> list[Any]:
    found = label_granules(as_granules(piece, now.coding), now.measure)
    labels, firsts, base = found.labels[order], starts[:-1].astype(np.intp), now.coding.n_classes

    def known_to_all(label: int) -> Any:
        if label < base or now.measure.kind == PURE:
            return label
        # a class of U/C is never in two pieces
        return found.proportions[label - base] if now.measure.kind == ENTROPY else (p, label)

    least, largest = np.minimum.reduceat(labels, firsts).tolist(), np.maximum.reduceat(labels, firsts).tolist()
    return [known_to_all(a) if a == b else None for a, b in zip(least, largest, strict=True)]


def _runs(piece: Piece, order: Index, starts: Index) -> tuple[Index, Index, NDArray[np.int64]]:
    """Counts by class and decision: class number, decision, count."""
    weights, runs, class_runs = find_runs(piece.classes, piece.counts, order, starts)
    firsts = runs[:-1].astype(np.intp)
    of_class = np.repeat(np.arange(len(starts) - 1, dtype=np.uint32), np.diff(class_runs))
    return of_class, piece.classes[order[firsts]], np.add.reduceat(weights, firsts)


def _merge_spread(parts: Sequence[Spread], now: Now) -> tuple[int, int, dict[tuple[int, ...], int]]:
    """Θ of the spread classes, the number of objects in unsettled ones, and a number for each class by its values."""
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
    """Σ θ over classes whose counts come in parts; `cells` together identify the class."""
    order = np.lexsort((decisions, *cells))
    new = np.zeros(len(order), np.bool_)
    new[:1] = True
    for cell in cells:
        new[1:] |= np.diff(cell[order].astype(np.int64)) != 0
    starts = np.append(np.flatnonzero(new), len(order)).astype(np.uint32)
    return scorer.total(decisions, weights, order.astype(np.uint32), starts)


def _tables(
    piece: Piece, now: Now, numbers: dict[tuple[int, ...], int], candidates: tuple[int, ...], n: int
) -> Iterator[tuple[int, Any]]:
    """Count (class, value, decision) for every candidate, and send the counts to the task that sums them."""
    coding = now.coding
    if not piece.n_rows:
        return
    order, starts, keys = _classes(piece, now)
    numbered = np.array([numbers[key] for key in keys], np.uint32)
    for a in candidates:
        n_values = coding.cardinalities[a]
        cells = _cells(piece, now, a, order, starts)
        cells = numbered[cells[0]], *cells[1:]
        if len(numbers) * n_values * coding.n_classes <= _FEW_CELLS:
            yield a % n, (a, *cells)
        else:
            number: Hashes = cells[0].astype(np.uint64) * np.uint64(n_values) + cells[1] + np.uint64(a)
            for bucket, some in dealt(number, n):
                yield bucket, (a, *(cell[some] for cell in cells))


def _cells(piece: Piece, now: Now, attribute: int, order: Index, starts: Index) -> tuple[Index, Index, Index, Any]:
    """Count (class, value, decision) in a piece: the four columns of a table."""
    class_of = np.empty(piece.n_rows, np.uint32)
    class_of[order] = np.repeat(np.arange(len(starts) - 1, dtype=np.uint32), np.diff(starts))
    rows, codes = np.arange(piece.n_rows, dtype=np.uint32), piece.column(now.coding, attribute)
    after = split([(codes, now.coding.cardinalities[attribute])], rows, order, starts)
    refined = np.concatenate([after.order, after.gone])
    bounds = np.concatenate([after.starts[:-1], after.gone_starts + np.uint32(len(after.order))])
    of_cell, decisions, weights = _runs(piece, refined, bounds)
    firsts = refined[bounds[:-1]][of_cell]
    return class_of[firsts], codes[firsts].astype(np.uint32), decisions, weights


def _added_up(records: Iterable[tuple[int, Any]], now: Now) -> Iterator[list[tuple[int, int]]]:
    """Sum the counts of every candidate, and compute its Θ."""
    parts: dict[int, list[Any]] = {}
    for _, (a, *cells) in records:
        parts.setdefault(a, []).append(cells)
    scorer, scores = now.scorer(), []
    for a, found in parts.items():
        classes, values, decisions, weights = (np.concatenate(column) for column in zip(*found, strict=True))
        scores.append((a, _theta_of_cells(scorer, decisions, weights, values, classes)))
    yield scores


# -- moving ------------------------------------------------------------------------------------------------


def _buckets(piece: Piece, now: Now) -> NDArray[np.intp]:
    return (hashes(piece, now.coding, now.selected) % np.uint64(_BUCKETS)).astype(np.intp)


def _movers(piece: Piece, now: Now, large: Array, n: int) -> Iterator[tuple[int, Piece]]:
    some = piece.rows(~large[_buckets(piece, now)])
    yield from dealt_out(some, now.coding, n, now.selected)
