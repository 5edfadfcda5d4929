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

from plar.engines.base import LeaveOneOut
from plar.engines.job_progress import Watch
from plar.engines.local.engine import LocalEvaluation
from plar.engines.local.scoring import Scorer
from plar.engines.spark.core import leave_one_out
from plar.engines.spark.partitions import (
    Cardinalities,
    GranulePartition,
    Hashes,
    as_granules,
    bucket_rows,
    concat_buckets,
    hashes,
    split_by_hash,
)
from plar.engines.spark.session import explained, run_watched
from plar.grouping.factorize import factorized
from plar.grouping.partition import Array, Index, class_numbers, distinct, smallest_codes
from plar.measures import ENTROPY, OWN, PURE, Measure
from plar.runtime.spark_calls import spark_call
from plar.uncertainty.labels import label_granules
from plar.uncertainty.strata import CrossTab

if TYPE_CHECKING:
    from plar.engines.spark.spark_granules import SparkGranules


#: buckets, by hash of the class, in which rows are counted to find the classes that are too large to move
_BUCKETS = 1 << 14
#: a candidate with at most this many spread cells is summed in one task
_FEW_CELLS = 1 << 14


class TaskState(NamedTuple):
    """What a task needs to know besides its piece."""

    coding: Cardinalities
    measure: Measure
    n_objects: int
    #: R
    selected: tuple[int, ...]
    #: a number for each spread class of U/R, by its values on R
    numbers: dict[tuple[int, ...], int]

    def scorer(self) -> Scorer:
        """The scorer that sums θ."""
        return Scorer(self.measure, self.n_objects, self.coding.n_decisions)


class SplitClasses(NamedTuple):
    """The classes of U/R in one piece."""

    #: by class: its values on R, and its label, valid in all pieces; None for a class with several labels
    keys: list[tuple[int, ...]]
    labels: list[Any]
    #: counts by class and decision
    of_class: Hashes
    decisions: Index
    weights: NDArray[np.int64]


class RowsEvaluation:
    """U/R on the cluster; see `plar.engines.base.Evaluation`."""

    @spark_call
    def __init__(self, held: SparkGranules, measure: Measure, watch: Watch | None) -> None:
        self._held, self._measure, self.watch = held, measure, watch
        pieces = _not_empty(held.pieces)
        with explained("evaluate the conditions"):
            facts = pieces.map(partial(_facts, coding=held.coding, measure=measure)).collect()
        self.theta_all = sum(theta for theta, _, _ in facts)
        self.consistent = all(consistent for _, consistent, _ in facts)
        self._entropy = math.fsum(part for _, _, parts in facts for part in parts)
        self._n = len(held.sizes)
        #: pieces whose classes of U/R are whole, and those, if any, whose classes are spread
        self._whole: list[RDD[GranulePartition]] = [pieces] if self._n == 1 else []
        self._spread: list[RDD[GranulePartition]] = [] if self._n == 1 else [pieces]
        self._now = TaskState(held.coding, measure, held.n_objects, (), {})
        self._survey()

    @property
    def value_all(self) -> float:
        """Θ(D|C) as a number."""
        if self._measure.kind != ENTROPY or self.consistent:
            return self._measure.value(self.theta_all, self._held.n_objects)
        return self._entropy / self._held.n_objects

    @property
    def unsettled_objects(self) -> int:
        """Objects in classes of U/R that are not settled."""
        if self._measure.kind == OWN:
            return 0 if self.theta == self.theta_all else max(1, self._unsettled)
        return self._unsettled

    @spark_call
    def leave_one_out(self, attributes: Sequence[int] | None = None) -> list[LeaveOneOut]:
        """Θ(D|B∖{a}) for every a of B."""
        if attributes is None:
            return leave_one_out(self._held, self._measure, self.theta_all)
        # Θ(D|B) = Θ(D|C), so the granules of B are enough
        coarse = self._held.coarsen([self._held.conditions[a] for a in attributes])
        find = partial(_facts, coding=coarse.coding, measure=self._measure)
        with explained("evaluate the reduct"):
            facts = _not_empty(coarse.pieces).map(find).collect()
        inner = leave_one_out(coarse, self._measure, sum(theta for theta, _, _ in facts))
        return [LeaveOneOut(self.theta_all, True) if found.equal else found for found in inner]

    @spark_call
    def with_each(self, candidates: Sequence[int]) -> list[int]:
        """Θ(D|R∪{a}) for every candidate, in one job."""
        now, wanted, n = self._now, tuple(candidates), self._n
        parts: list[RDD[Any]] = [rdd.flatMap(partial(_scores, now=now, candidates=wanted)) for rdd in self._whole]
        count = partial(_cells, now=now, candidates=wanted, n=n)
        for rdd in self._spread:
            cells = rdd.mapPartitionsWithIndex(count).partitionBy(n, int).values()
            parts.append(cells.mapPartitions(partial(_scores_of_cells, now=now)))
        job = self._held.pieces.context.union(parts)
        with explained("score the candidates"):
            done = run_watched(job, list, range(job.getNumPartitions()), self.watch, len(wanted))
        thetas = dict.fromkeys(candidates, 0)
        for a, theta in done:
            thetas[a] += theta
        return [thetas[a] for a in candidates]

    @spark_call
    def cross_tabs(self, candidates: Sequence[int]) -> Iterable[CrossTab]:
        """Cross-tabulate each candidate with the decisions, on the cluster, in one job."""
        count = partial(_cells, now=self._now, candidates=tuple(candidates), n=1)
        job = self._held.pieces.context.union([*self._whole, *self._spread]).mapPartitionsWithIndex(count)
        with explained("test the candidates"):
            found = dict(_by_candidate(job.values().collect()))
        tables = []
        for a in candidates:
            classes, values, decisions, counts = found[a]
            partition = _partition(decisions, classes)
            tables.append(CrossTab.of(values, decisions, counts, *partition, self._now.coding.cardinalities[a]))
        return tables

    @spark_call
    def select(self, *attributes: int) -> int:
        """R ← R ∪ {a, …}; returns Θ(D|R)."""
        self._now = self._now._replace(selected=(*self._now.selected, *attributes), numbers={})
        self._move()
        self._survey()
        return self.theta

    def _survey(self) -> None:
        """Compute Θ(D|R), the number of unsettled objects, and the spread classes."""
        parts: list[RDD[Any]] = [rdd.map(partial(_survey_whole, now=self._now)) for rdd in self._whole]
        parts += [rdd.mapPartitionsWithIndex(partial(_describe, now=self._now)) for rdd in self._spread]
        with explained("refine the classes"):
            found = self._held.pieces.context.union(parts).collect()
        spread = [part for part in found if isinstance(part, SplitClasses)]
        whole = [part for part in found if not isinstance(part, SplitClasses)]
        theta, unsettled, numbers = _merge_spread(spread, self._now) if spread else (0, 0, {})
        self._now = self._now._replace(numbers=numbers)
        self.theta: int = theta + sum(theta for theta, _ in whole)
        self._unsettled: int = unsettled + sum(unsettled for _, unsettled in whole)

    def _move(self) -> None:
        """Move each class that fits to one piece; a larger class would give a task more than its share."""
        if not self._spread:
            return
        now, n, [spread] = self._now, self._n, self._spread
        share = -(-len(self._held) // n)
        with explained("refine the classes"):
            counted = spread.map(lambda piece: np.bincount(_buckets(piece, now), minlength=_BUCKETS))
            rows = counted.reduce(add)
        large = rows > share
        if not rows[~large].any():
            return
        movers = spread.map(lambda piece: piece.rows(~large[_buckets(piece, now)]))
        records = movers.flatMap(lambda piece: split_by_hash(piece, now.coding, n, now.selected))
        moved = _not_empty(concat_buckets(records, now.coding, n))
        stayers = _not_empty(spread.map(lambda piece: piece.rows(large[_buckets(piece, now)])))
        self._whole.append(moved)
        self._spread = [stayers] if large.any() else []
        for rdd in (moved, *self._spread):
            self._held.moved.append(rdd.persist(StorageLevel.MEMORY_AND_DISK))


def _not_empty(pieces: RDD[GranulePartition]) -> RDD[GranulePartition]:
    return pieces.filter(lambda piece: piece.n_rows > 0)


# -- tasks on whole classes --------------------------------------------------------------------------------


def _evaluation(piece: GranulePartition, now: TaskState) -> LocalEvaluation:
    evaluation = LocalEvaluation(as_granules(piece, now.coding), now.measure)
    evaluation.select(*now.selected)
    return evaluation


def _facts(piece: GranulePartition, coding: Cardinalities, measure: Measure) -> tuple[int, bool, list[float]]:
    """Θ(D|C) of a piece, whether it is consistent, and its entropy as an exact sum."""
    granules = as_granules(piece, coding)
    labels = label_granules(granules, measure)
    theta = Scorer(measure, granules.n_objects, granules.n_decisions).total_of_all(granules, labels)
    terms = labels.entropy_terms(granules.counts).tolist() if measure.kind == ENTROPY else []
    return theta, labels.consistent, _exact_parts(terms)


def _exact_parts(terms: list[float]) -> list[float]:
    """A few floats with the same exact sum as many."""
    parts: list[float] = []
    while rest := math.fsum([*terms, *(-part for part in parts)]):
        parts.append(rest)
    return parts


def _survey_whole(piece: GranulePartition, now: TaskState) -> tuple[int, int]:
    evaluation = _evaluation(piece, now)
    return evaluation.theta, evaluation.unsettled


def _scores(piece: GranulePartition, now: TaskState, candidates: tuple[int, ...]) -> Iterable[tuple[int, int]]:
    return zip(candidates, _evaluation(piece, now).with_each(candidates), strict=True)


# -- tasks on spread classes -------------------------------------------------------------------------------


def _describe(p: int, pieces: Iterable[GranulePartition], now: TaskState) -> Iterator[SplitClasses]:
    """Describe the classes of a piece to the driver."""
    for piece in pieces:
        class_of, keys = _classes(piece, now)
        labels = _class_labels(p, piece, now, class_of, len(keys))
        first, counts = _counted(piece, now, class_of)
        yield SplitClasses(keys, labels, class_of[first], piece.decision_codes[first], counts)


def _classes(piece: GranulePartition, now: TaskState) -> tuple[Hashes, list[tuple[int, ...]]]:
    """U/R in a piece: the class of every row, and the values of every class."""
    order, starts = distinct(piece.coded(now.coding, now.selected), piece.n_rows)
    firsts = order[starts[:-1]]
    values = [piece.column(now.coding, a)[firsts].tolist() for a in now.selected]
    return class_numbers(order, starts), list(zip(*values, strict=True)) if values else [()] * len(firsts)


def _class_labels(p: int, piece: GranulePartition, now: TaskState, class_of: Hashes, n: int) -> list[Any]:
    found = label_granules(as_granules(piece, now.coding), now.measure)
    least, largest = np.full(n, np.iinfo(np.uint32).max, np.uint32), np.zeros(n, np.uint32)
    np.minimum.at(least, class_of, found.labels)
    np.maximum.at(largest, class_of, found.labels)
    base = now.coding.n_decisions

    def known_to_all(label: int) -> Any:
        if label < base or now.measure.kind == PURE:
            return label
        # a class of U/C is never in two pieces
        return found.proportions[label - base] if now.measure.kind == ENTROPY else (p, label)

    return [known_to_all(a) if a == b else None for a, b in zip(least.tolist(), largest.tolist(), strict=True)]


def _counted(piece: GranulePartition, now: TaskState, class_of: Array) -> tuple[Index, NDArray[np.int64]]:
    """The first row of every decision in every class, and the number of objects."""
    cells, first = factorized(class_of.astype(np.uint64) * np.uint64(now.coding.n_decisions) + piece.decision_codes)
    return first, np.bincount(cells, piece.counts, len(first)).astype(np.int64)


def _merge_spread(parts: Sequence[SplitClasses], now: TaskState) -> tuple[int, int, dict[tuple[int, ...], int]]:
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
    return now.scorer().total(decisions, weights, *_partition(decisions, of_class)), unsettled, numbers


def _partition(decisions: Index, *cells: Array) -> tuple[Index, Index]:
    """Partition counts that come in parts: `cells` together identify the class, which is ordered by decision."""
    order = np.lexsort((decisions, *cells))
    new = np.zeros(len(order), np.bool_)
    new[:1] = True
    for cell in cells:
        new[1:] |= np.diff(cell[order].astype(np.int64)) != 0
    return order.astype(np.uint32), np.append(np.flatnonzero(new), len(order)).astype(np.uint32)


def _cells(
    p: int, pieces: Iterable[GranulePartition], now: TaskState, candidates: tuple[int, ...], n: int
) -> Iterator[tuple[int, Any]]:
    """Count (class, value, decision) for every candidate, and send the counts to the task that sums them."""
    coding, numbers = now.coding, now.numbers
    for piece in pieces:
        class_of, keys = _classes(piece, now)
        # the classes of this piece alone have no number known to all
        numbered = np.array([numbers.get(key, ((p + 1) << 32) + i) for i, key in enumerate(keys)], np.uint64)
        numbered = smallest_codes(numbered, int(numbered.max()) + 1)
        for a in candidates:
            codes, n_values = piece.column(coding, a), coding.cardinalities[a]
            pairs, _ = factorized(class_of * np.uint64(n_values) + codes)
            first, counts = _counted(piece, now, pairs)
            cells = numbered[class_of[first]], codes[first].astype(np.uint32), piece.decision_codes[first], counts
            if len(numbers) * n_values * coding.n_decisions <= _FEW_CELLS:
                yield a % n, (a, *cells)
            else:
                number: Hashes = cells[0].astype(np.uint64) * np.uint64(n_values) + cells[1] + np.uint64(a)
                for bucket, some in bucket_rows(number, n):
                    yield bucket, (a, *(cell[some] for cell in cells))


def _by_candidate(cells: Iterable[tuple[Any, ...]]) -> Iterator[tuple[int, list[Array]]]:
    """Join the cells of every candidate: class, value, decision, count."""
    parts: dict[int, list[Any]] = {}
    for a, *own in cells:
        parts.setdefault(a, []).append(own)
    for a, found in parts.items():
        yield a, [np.concatenate(column) for column in zip(*found, strict=True)]


def _scores_of_cells(cells: Iterable[tuple[Any, ...]], now: TaskState) -> Iterator[tuple[int, int]]:
    """Sum the counts of every candidate, and compute its Θ."""
    scorer = now.scorer()
    for a, (classes, values, decisions, counts) in _by_candidate(cells):
        yield a, scorer.total(decisions, counts, *_partition(decisions, values, classes))


# -- moving ------------------------------------------------------------------------------------------------


def _buckets(piece: GranulePartition, now: TaskState) -> NDArray[np.intp]:
    return (hashes(piece, now.coding, now.selected) % np.uint64(_BUCKETS)).astype(np.intp)
