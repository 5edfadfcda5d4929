"""The rows layout: a piece is some granules with all columns, for tables with too many class ids to broadcast.

Classes of U/R that are whole in one piece are evaluated there, and their Θ is summed. For classes *spread*
over pieces, every piece sends its counts of (class, value, decision) to a task that sums them. At first
everything is spread; once a class has no more rows than a task's share, its rows are moved to one piece and
never move again, since classes only split. The classes that are still spread are few, and the driver knows
them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyspark import RDD, StorageLevel

from plar.engines.base import LeaveOneOut
from plar.engines.job_progress import Watch
from plar.engines.local.engine import LocalEvaluation
from plar.engines.local.scoring import Scorer
from plar.engines.spark.core import leave_one_out
from plar.engines.spark.pieces import (
    Cardinalities,
    Hashes,
    Piece,
    as_granules,
    bucket_rows,
    concat_buckets,
    hashes,
    split_by_hash,
)
from plar.engines.spark.session import explained, run_watched
from plar.grouping.factorize import factorized
from plar.grouping.partition import Array, Codes, Index, Ints, class_numbers, distinct, smallest_codes
from plar.measures import ENTROPY, OWN, PURE, Measure
from plar.runtime.spark_calls import spark_call
from plar.uncertainty.labels import label_granules
from plar.uncertainty.strata import CrossTab

if TYPE_CHECKING:
    from plar.engines.spark.spark_granules import SparkGranules


#: buckets, by hash of the class, in which rows are counted to find the classes that are too large to move
_BUCKETS = 1 << 14
#: a candidate with at most this many spread cells is summed in one task
_MAX_CELLS_IN_ONE_TASK = 1 << 14

#: the values of a class of U/R on R
Key: TypeAlias = tuple[int, ...]
#: a label that is valid in all pieces
Label: TypeAlias = int | bytes | tuple[int, int]


class TaskState(NamedTuple):
    """What a task needs to know besides its piece."""

    coding: Cardinalities
    measure: Measure
    n_objects: int
    #: R
    selected: tuple[int, ...]
    #: a number for each spread class of U/R
    numbers: dict[Key, int]

    def scorer(self) -> Scorer:
        """The scorer that sums θ."""
        return Scorer(self.measure, self.n_objects, self.coding.n_decisions)


class PieceTheta(NamedTuple):
    """Θ(D|C) of a piece, whether it is consistent, and its entropy as a few floats with the same exact sum."""

    theta: int
    is_consistent: bool
    entropy: list[float]


class SettledTheta(NamedTuple):
    """Θ(D|R) of classes of U/R, and how many objects are in those that are not settled."""

    theta: int
    unsettled_objects: int


class SplitClasses(NamedTuple):
    """The classes of U/R in one piece."""

    #: by class; None is the label of a class with several
    keys: list[Key]
    labels: list[Label | None]
    #: counts by class and decision
    class_of: Hashes
    decisions: Index
    counts: Ints


class Cells(NamedTuple):
    """Counts of a candidate by class, value and decision."""

    classes: Codes
    values: Index
    decisions: Index
    counts: Ints

    def rows(self, rows: Index) -> Cells:
        """Select counts by position."""
        return Cells(self.classes[rows], self.values[rows], self.decisions[rows], self.counts[rows])


class RowsEvaluation:
    """U/R on the cluster; see `plar.engines.base.Evaluation`."""

    @spark_call
    def __init__(self, granules: SparkGranules, measure: Measure, watch: Watch | None) -> None:
        self._granules = granules
        self._measure = measure
        self.watch = watch
        pieces = _not_empty(granules.pieces)
        with explained("evaluate the conditions"):
            thetas = pieces.map(partial(_piece_theta, coding=granules.coding, measure=measure)).collect()
        self.theta_all = sum(of_piece.theta for of_piece in thetas)
        self.consistent = all(of_piece.is_consistent for of_piece in thetas)
        self._entropy = math.fsum(term for of_piece in thetas for term in of_piece.entropy)
        self._n_pieces = len(granules.sizes)
        #: pieces whose classes of U/R are whole, and those, if any, whose classes are spread
        self._whole: list[RDD[Piece]] = []
        self._spread: list[RDD[Piece]] = []
        if self._n_pieces == 1:
            self._whole.append(pieces)
        else:
            self._spread.append(pieces)
        self._state = TaskState(granules.coding, measure, granules.n_objects, (), {})
        self._survey()

    @property
    def value_all(self) -> float:
        """Θ(D|C) as a number."""
        if self._measure.kind != ENTROPY or self.consistent:
            return self._measure.value(self.theta_all, self._granules.n_objects)
        return self._entropy / self._granules.n_objects

    @property
    def unsettled_objects(self) -> int:
        """Objects in classes of U/R that are not settled."""
        if self._measure.kind == OWN:
            return 0 if self.theta == self.theta_all else max(1, self._unsettled_objects)
        return self._unsettled_objects

    @spark_call
    def leave_one_out(self, attributes: Sequence[int] | None = None) -> list[LeaveOneOut]:
        """Θ(D|B∖{a}) for every a of B."""
        if attributes is None:
            return leave_one_out(self._granules, self._measure, self.theta_all)
        # Θ(D|B) = Θ(D|C), so the granules of B are enough
        coarse = self._granules.coarsen([self._granules.conditions[a] for a in attributes])
        evaluate = partial(_piece_theta, coding=coarse.coding, measure=self._measure)
        with explained("evaluate the reduct"):
            thetas = _not_empty(coarse.pieces).map(evaluate).collect()
        theta = sum(of_piece.theta for of_piece in thetas)
        without = leave_one_out(coarse, self._measure, theta)
        return [LeaveOneOut(self.theta_all, True) if of_one.equal else of_one for of_one in without]

    @spark_call
    def with_each(self, candidates: Sequence[int]) -> list[int]:
        """Θ(D|R∪{a}) for every candidate, in one job."""
        state = self._state
        wanted = tuple(candidates)
        n = self._n_pieces
        parts: list[RDD[tuple[int, int]]] = []
        for rdd in self._whole:
            parts.append(rdd.flatMap(partial(_scores, state=state, candidates=wanted)))
        for rdd in self._spread:
            cells = rdd.mapPartitionsWithIndex(partial(_cells, state=state, candidates=wanted, n=n))
            summed = cells.partitionBy(n, int).values().mapPartitions(partial(_scores_of_cells, state=state))
            parts.append(summed)
        job = self._granules.pieces.context.union(parts)
        with explained("score the candidates"):
            scores = run_watched(job, list, range(job.getNumPartitions()), self.watch, len(wanted))
        thetas = dict.fromkeys(candidates, 0)
        for a, theta in scores:
            thetas[a] += theta
        return [thetas[a] for a in candidates]

    @spark_call
    def cross_tabs(self, candidates: Sequence[int]) -> Iterable[CrossTab]:
        """Cross-tabulate each candidate with the decisions, on the cluster, in one job."""
        count = partial(_cells, state=self._state, candidates=tuple(candidates), n=1)
        job = self._granules.pieces.context.union([*self._whole, *self._spread]).mapPartitionsWithIndex(count)
        with explained("test the candidates"):
            cells_of = dict(_by_candidate(job.values().collect()))
        tables = []
        for a in candidates:
            cells = cells_of[a]
            order, starts = _partition(cells.decisions, cells.classes)
            n_values = self._state.coding.cardinalities[a]
            tables.append(CrossTab.of(cells.values, cells.decisions, cells.counts, order, starts, n_values))
        return tables

    @spark_call
    def select(self, *attributes: int) -> int:
        """R ← R ∪ {a, …}; returns Θ(D|R)."""
        self._state = self._state._replace(selected=(*self._state.selected, *attributes), numbers={})
        self._move()
        self._survey()
        return self.theta

    def _survey(self) -> None:
        """Compute Θ(D|R), the number of unsettled objects, and the spread classes."""
        state = self._state
        parts: list[RDD[Any]] = [rdd.map(partial(_settled_theta, state=state)) for rdd in self._whole]
        parts += [rdd.mapPartitionsWithIndex(partial(_describe, state=state)) for rdd in self._spread]
        with explained("refine the classes"):
            results = self._granules.pieces.context.union(parts).collect()
        settled = [result for result in results if isinstance(result, SettledTheta)]
        spread = [result for result in results if isinstance(result, SplitClasses)]
        numbers: dict[Key, int] = {}
        if spread:
            of_spread, numbers = _merge_spread(spread, state)
            settled.append(of_spread)
        self._state = state._replace(numbers=numbers)
        self.theta: int = sum(part.theta for part in settled)
        self._unsettled_objects: int = sum(part.unsettled_objects for part in settled)

    def _move(self) -> None:
        """Move each class that fits to one piece; a larger class would give a task more than its share."""
        if not self._spread:
            return
        state = self._state
        n = self._n_pieces
        [spread] = self._spread
        share = -(-len(self._granules) // n)
        with explained("refine the classes"):
            bucket_sizes = spread.map(partial(_bucket_sizes, state=state)).reduce(add)
        is_large = bucket_sizes > share
        if not bucket_sizes[~is_large].any():
            return
        records = spread.flatMap(partial(_movers, state=state, is_large=is_large, n=n))
        moved = _not_empty(concat_buckets(records, state.coding, n))
        stayers = _not_empty(spread.map(partial(_stayers, state=state, is_large=is_large)))
        self._whole.append(moved)
        self._spread = [stayers] if is_large.any() else []
        for rdd in (moved, *self._spread):
            self._granules.moved.append(rdd.persist(StorageLevel.MEMORY_AND_DISK))


def _not_empty(pieces: RDD[Piece]) -> RDD[Piece]:
    return pieces.filter(lambda piece: piece.n_rows > 0)


# -- tasks on whole classes --------------------------------------------------------------------------------


def _evaluation(piece: Piece, state: TaskState) -> LocalEvaluation:
    evaluation = LocalEvaluation(as_granules(piece, state.coding), state.measure)
    evaluation.select(*state.selected)
    return evaluation


def _piece_theta(piece: Piece, coding: Cardinalities, measure: Measure) -> PieceTheta:
    granules = as_granules(piece, coding)
    labels = label_granules(granules, measure)
    theta = Scorer(measure, granules.n_objects, granules.n_decisions).total_of_all(granules, labels)
    terms = labels.entropy_terms(granules.counts).tolist() if measure.kind == ENTROPY else []
    return PieceTheta(theta, labels.consistent, _exact_parts(terms))


def _exact_parts(terms: list[float]) -> list[float]:
    """A few floats with the same exact sum as many."""
    parts: list[float] = []
    while rest := math.fsum([*terms, *(-part for part in parts)]):
        parts.append(rest)
    return parts


def _settled_theta(piece: Piece, state: TaskState) -> SettledTheta:
    evaluation = _evaluation(piece, state)
    return SettledTheta(evaluation.theta, evaluation.unsettled)


def _scores(piece: Piece, state: TaskState, candidates: tuple[int, ...]) -> Iterable[tuple[int, int]]:
    return zip(candidates, _evaluation(piece, state).with_each(candidates), strict=True)


# -- tasks on spread classes -------------------------------------------------------------------------------


def _describe(number: int, pieces: Iterable[Piece], state: TaskState) -> Iterator[SplitClasses]:
    """Describe the classes of a piece to the driver."""
    for piece in pieces:
        class_of, keys = _classes(piece, state)
        labels = _class_labels(number, piece, state, class_of, len(keys))
        first, counts = _counted(piece, state, class_of)
        yield SplitClasses(keys, labels, class_of[first], piece.decision_codes[first], counts)


def _classes(piece: Piece, state: TaskState) -> tuple[Hashes, list[Key]]:
    """U/R in a piece: the class of every row, and the values of every class."""
    order, starts = distinct(piece.coded(state.coding, state.selected), piece.n_rows)
    class_of = class_numbers(order, starts)
    if not state.selected:
        return class_of, [()] * (len(starts) - 1)
    first = order[starts[:-1]]
    values = [piece.column(state.coding, a)[first].tolist() for a in state.selected]
    return class_of, list(zip(*values, strict=True))


def _class_labels(number: int, piece: Piece, state: TaskState, class_of: Hashes, n: int) -> list[Label | None]:
    """The label of each class, valid in all pieces; None for a class with several."""
    labels = label_granules(as_granules(piece, state.coding), state.measure)
    least = np.full(n, np.iinfo(np.uint32).max, np.uint32)
    largest = np.zeros(n, np.uint32)
    np.minimum.at(least, class_of, labels.labels)
    np.maximum.at(largest, class_of, labels.labels)
    n_decisions = state.coding.n_decisions

    def in_all_pieces(label: int) -> Label:
        if label < n_decisions or state.measure.kind == PURE:
            return label
        if state.measure.kind == ENTROPY:
            return labels.proportions[label - n_decisions]
        return number, label  # a class of U/C is never in two pieces

    return [in_all_pieces(a) if a == b else None for a, b in zip(least.tolist(), largest.tolist(), strict=True)]


def _counted(piece: Piece, state: TaskState, class_of: Array) -> tuple[Index, Ints]:
    """The first row of every decision in every class, and the number of objects."""
    keys = class_of.astype(np.uint64) * np.uint64(state.coding.n_decisions) + piece.decision_codes
    cells, first = factorized(keys)
    return first, np.bincount(cells, piece.counts, len(first)).astype(np.int64)


def _merge_spread(parts: Sequence[SplitClasses], state: TaskState) -> tuple[SettledTheta, dict[Key, int]]:
    """Θ of the spread classes and their unsettled objects, and a number for each class."""
    numbers: dict[Key, int] = {}
    labels_of: dict[int, set[Label | None]] = {}
    classes = []
    for part in parts:
        number_of = np.array([numbers.setdefault(key, len(numbers)) for key in part.keys], np.uint32)
        classes.append(number_of[part.class_of])
        for number, label in zip(number_of.tolist(), part.labels, strict=True):
            labels_of.setdefault(number, set()).add(label)
    class_of = np.concatenate(classes)
    decisions = np.concatenate([part.decisions for part in parts])
    counts = np.concatenate([part.counts for part in parts])
    objects = np.zeros(len(numbers), np.int64)
    np.add.at(objects, class_of, counts)
    unsettled = [number for number, labels in labels_of.items() if len(labels) > 1 or None in labels]
    theta = state.scorer().total(decisions, counts, *_partition(decisions, class_of))
    return SettledTheta(theta, sum(int(objects[number]) for number in unsettled)), numbers


def _partition(decisions: Index, *cells: Array) -> tuple[Index, Index]:
    """Partition counts that come in parts: `cells` together identify the class, which is ordered by decision."""
    order = np.lexsort((decisions, *cells))
    begins = np.zeros(len(order), np.bool_)
    begins[:1] = True
    for cell in cells:
        begins[1:] |= np.diff(cell[order].astype(np.int64)) != 0
    return order.astype(np.uint32), np.append(np.flatnonzero(begins), len(order)).astype(np.uint32)


def _cells(
    number: int, pieces: Iterable[Piece], state: TaskState, candidates: tuple[int, ...], n: int
) -> Iterator[tuple[int, tuple[int, Cells]]]:
    """Count (class, value, decision) for every candidate, and send the counts to the task that sums them."""
    coding = state.coding
    for piece in pieces:
        class_of, keys = _classes(piece, state)
        numbers = _numbers_in_all_pieces(number, keys, state)
        for a in candidates:
            codes = piece.column(coding, a)
            n_values = coding.cardinalities[a]
            pairs, _ = factorized(class_of * np.uint64(n_values) + codes)
            first, counts = _counted(piece, state, pairs)
            classes = numbers[class_of[first]]
            values = codes[first].astype(np.uint32)
            cells = Cells(classes, values, piece.decision_codes[first], counts)
            if len(state.numbers) * n_values * coding.n_decisions <= _MAX_CELLS_IN_ONE_TASK:
                yield a % n, (a, cells)
                continue
            pair_hashes: Hashes = classes.astype(np.uint64) * np.uint64(n_values) + values + np.uint64(a)
            for bucket, rows in bucket_rows(pair_hashes, n):
                yield bucket, (a, cells.rows(rows))


def _numbers_in_all_pieces(number: int, keys: list[Key], state: TaskState) -> Codes:
    """The number of each class; the classes of this piece alone get numbers that no other piece uses."""
    of_piece = (number + 1) << 32
    numbers = np.array([state.numbers.get(key, of_piece + i) for i, key in enumerate(keys)], np.uint64)
    return smallest_codes(numbers, int(numbers.max()) + 1)


def _by_candidate(cells: Iterable[tuple[int, Cells]]) -> Iterator[tuple[int, Cells]]:
    """Concatenate the cells of every candidate."""
    parts: dict[int, list[Cells]] = {}
    for a, part in cells:
        parts.setdefault(a, []).append(part)
    for a, of_candidate in parts.items():
        yield a, Cells(*(np.concatenate(column) for column in zip(*of_candidate, strict=True)))


def _scores_of_cells(cells: Iterable[tuple[int, Cells]], state: TaskState) -> Iterator[tuple[int, int]]:
    """Sum the counts of every candidate, and compute its Θ."""
    scorer = state.scorer()
    for a, summed in _by_candidate(cells):
        partition = _partition(summed.decisions, summed.values, summed.classes)
        yield a, scorer.total(summed.decisions, summed.counts, *partition)


# -- moving ------------------------------------------------------------------------------------------------


def _buckets(piece: Piece, state: TaskState) -> NDArray[np.intp]:
    """The bucket of each row, by its class of U/R."""
    return (hashes(piece, state.coding, state.selected) % np.uint64(_BUCKETS)).astype(np.intp)


def _bucket_sizes(piece: Piece, state: TaskState) -> NDArray[np.intp]:
    return np.bincount(_buckets(piece, state), minlength=_BUCKETS)


def _movers(piece: Piece, state: TaskState, is_large: NDArray[np.bool_], n: int) -> Iterator[tuple[int, Piece]]:
    """The rows of classes that fit into one of n pieces, each with the number of that piece."""
    moves = ~is_large[_buckets(piece, state)]
    return split_by_hash(piece.rows(moves), state.coding, n, state.selected)


def _stayers(piece: Piece, state: TaskState, is_large: NDArray[np.bool_]) -> Piece:
    """The rows in buckets that hold more than a task's share."""
    return piece.rows(is_large[_buckets(piece, state)])
