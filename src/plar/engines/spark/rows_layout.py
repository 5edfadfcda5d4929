"""The rows layout: a piece is some granules with all columns, for tables with too many class ids to broadcast.

Classes of U/R that are whole in one piece are evaluated there, and their Θ is summed. For classes *spread*
over pieces, every piece sends its counts of (class, value, decision) to a task that sums them: `rows_exchange`.
At first everything is spread; once a class has no more rows than a task's share, its rows are moved to one
piece and never move again, since classes only split. The classes that are still spread are few, and the driver
knows them.
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

from plar.chance.association import Association, association
from plar.engines.base import LeaveOneOut
from plar.engines.job_progress import Watch
from plar.engines.local.engine import LocalEvaluation
from plar.engines.local.scoring import Scorer
from plar.engines.spark.core import leave_one_out
from plar.engines.spark.pieces import (
    Cardinalities,
    Piece,
    as_granules,
    concat_buckets,
    hashes,
    split_by_hash,
)
from plar.engines.spark.rows_exchange import (
    Key,
    SettledTheta,
    SplitClasses,
    TaskState,
    by_candidate,
    counted_cells,
    described,
    merge_spread,
    partition_counts,
    scores_of_cells,
)
from plar.engines.spark.session import explained, run_watched
from plar.engines.spark.stratification import MAX_CELLS_AT_ONCE
from plar.measures import ENTROPY, OWN, Measure
from plar.runtime.spark_calls import spark_call
from plar.uncertainty.labels import label_granules
from plar.uncertainty.strata import CrossTab

if TYPE_CHECKING:
    from plar.engines.spark.spark_granules import SparkGranules


#: buckets, by hash of the class, in which rows are counted to find the classes that are too large to move
_BUCKETS = 1 << 14


class PieceTheta(NamedTuple):
    """Θ(D|C) of a piece, whether it is consistent, and its entropy as a few floats with the same exact sum."""

    theta: int
    is_consistent: bool
    entropy: list[float]


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
        #: candidates whose tables the driver takes at a time
        self._n_together = max(1, MAX_CELLS_AT_ONCE // max(1, len(granules)))
        #: of the candidates that were measured last
        self._tables: dict[int, CrossTab] = {}
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
            cells = rdd.mapPartitionsWithIndex(partial(counted_cells, state=state, candidates=wanted, n=n))
            summed = cells.partitionBy(n, int).values().mapPartitions(partial(scores_of_cells, state=state))
            parts.append(summed)
        job = self._granules.pieces.context.union(parts)
        with explained("score the candidates"):
            scores = run_watched(job, list, range(job.getNumPartitions()), self.watch, len(wanted))
        thetas = dict.fromkeys(candidates, 0)
        for a, theta in scores:
            thetas[a] += theta
        return [thetas[a] for a in candidates]

    @spark_call
    def associations(self, candidates: Sequence[int]) -> list[Association]:
        """How strongly each candidate is associated with the decision; a job for every so many cells."""
        measured: list[Association] = []
        self._tables = {}
        for first in range(0, len(candidates), self._n_together):
            part = candidates[first : first + self._n_together]
            self._tables = dict(zip(part, self._counted_tables(part), strict=True))
            measured += map(association, self._tables.values())
        return measured

    @spark_call
    def cross_tabs(self, candidates: Sequence[int]) -> Iterable[CrossTab]:
        """Cross-tabulate each candidate with the decisions; one job counts those that were not measured just now."""
        if all(a in self._tables for a in candidates):
            return [self._tables[a] for a in candidates]
        return self._counted_tables(candidates)

    def _counted_tables(self, candidates: Sequence[int]) -> list[CrossTab]:
        count = partial(counted_cells, state=self._state, candidates=tuple(candidates), n=1)
        job = self._granules.pieces.context.union([*self._whole, *self._spread]).mapPartitionsWithIndex(count)
        with explained("test the candidates"):
            cells_of = dict(by_candidate(job.values().collect()))
        tables = []
        for a in candidates:
            cells = cells_of[a]
            order, starts = partition_counts(cells.decisions, cells.classes)
            n_values = self._state.coding.cardinalities[a]
            tables.append(CrossTab.of(cells.values, cells.decisions, cells.counts, order, starts, n_values))
        return tables

    @spark_call
    def select(self, *attributes: int) -> int:
        """R ← R ∪ {a, …}; returns Θ(D|R)."""
        self._tables = {}
        self._state = self._state._replace(selected=(*self._state.selected, *attributes), numbers={})
        self._move()
        self._survey()
        return self.theta

    def _survey(self) -> None:
        """Compute Θ(D|R), the number of unsettled objects, and the spread classes."""
        state = self._state
        parts: list[RDD[Any]] = [rdd.map(partial(_settled_theta, state=state)) for rdd in self._whole]
        parts += [rdd.mapPartitionsWithIndex(partial(described, state=state)) for rdd in self._spread]
        with explained("refine the classes"):
            results = self._granules.pieces.context.union(parts).collect()
        settled = [result for result in results if isinstance(result, SettledTheta)]
        spread = [result for result in results if isinstance(result, SplitClasses)]
        numbers: dict[Key, int] = {}
        if spread:
            of_spread, numbers = merge_spread(spread, state)
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
