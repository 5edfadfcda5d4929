"""The rows layout: a piece is some granules with all columns, for tables with too many class ids to broadcast.

Classes of U/R that lie whole in one piece are evaluated there, and their Θ is added up. Classes that are *spread* over
pieces are numbered, and every piece sends its counts of (class, value, decision) to where they are added up. At first
everything is spread; once most rows are in classes small enough, those rows are moved, class by class, and from then
on they never move again, for classes only split. A class that stays too large keeps sending counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from plar.engines.base import Inner
from plar.engines.local import LocalEvaluation
from plar.engines.spark.core import leave_one_out
from plar.engines.spark.granulate import itself, together
from plar.engines.spark.jobs import JobProgress, Tell, Watch, run_watched
from plar.engines.spark.pieces import Coding, Piece, as_granules, dealt, hashes
from plar.engines.spark.session import explained
from plar.engines.spark.spread_classes import (
    Now,
    Survey,
    added_up,
    class_records,
    in_order,
    numbered,
    spread_survey,
    tables,
)
from plar.labels import label_granules
from plar.measures import ENTROPY, OWN, Measure
from plar.partition import Array
from plar.spark_calls import spark_call

if TYPE_CHECKING:
    from pyspark import RDD

    from plar.engines.spark.handle import SparkGranules

__all__ = ["RowsEvaluation"]

#: for every class its values of R
Keys: TypeAlias = tuple[tuple[int, ...], ...]


class RowsEvaluation:
    """U/R on the cluster; see `plar.engines.base.Evaluation`."""

    @spark_call
    def __init__(self, held: SparkGranules, measure: Measure, watch: Watch | None) -> None:
        self._held, self._measure, self.watch = held, measure, watch
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
        self._surveyed()

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

    @spark_call
    def without_each(self, attributes: Sequence[int] | None = None) -> list[Inner]:
        """Θ(D|B∖{a}) for every a of B."""
        if attributes is None:
            return leave_one_out(self._held, self._measure, self.theta_all)
        # Θ(D|B) = Θ(D|C), so the granules of B alone are enough
        coarse = self._held.coarsen([self._held.conditions[a] for a in attributes])
        with explained("evaluate the reduct"):
            facts = coarse.pieces.flatMap(partial(_facts, coding=coarse.coding, measure=self._measure)).collect()
        inner = leave_one_out(coarse, self._measure, sum(theta for theta, _, _ in facts))
        return [Inner(self.theta_all, True) if found.equal else found for found in inner]

    @spark_call
    def with_each(self, candidates: Sequence[int]) -> list[int]:
        """Θ(D|R∪{a}) for every candidate, in one job."""
        found, now = self._surveyed(), self._now
        parts = [rdd.map(partial(_whole_scores, candidates=tuple(candidates), now=now)) for rdd in self._whole]
        if self._spread is not None:
            counted = partial(tables, now=now, candidates=tuple(candidates), n_classes=found.n_spread, n=self._n)
            cells = self._spread.zip(self._numbers()).flatMap(counted)
            parts.append(cells.partitionBy(self._n, itself).mapPartitions(partial(added_up, now=now)))
        thetas = dict.fromkeys(candidates, 0)
        job = self._held.pieces.context.union(parts) if len(parts) > 1 else parts[0]
        with explained("score the candidates"):
            done = run_watched(job, _as_it_is, range(job.getNumPartitions()), self._reporter(len(candidates)))
        for scores in done:
            for a, theta in scores:
                thetas[a] += theta
        self._known = thetas
        return [thetas[a] for a in candidates]

    @spark_call
    def select(self, *attributes: int) -> int:
        """R ← R ∪ {a, …}; returns Θ(D|R)."""
        self._selected += attributes
        self._survey = None
        self._known = {}
        self._move(self._surveyed())
        return self.theta

    def _reporter(self, candidates: int) -> Tell | None:
        watch = self.watch
        if watch is None:
            return None
        # no task knows the whole Θ of a candidate
        return lambda done, total, best, left: watch(JobProgress(done, total, candidates, None, left))

    @property
    def _n(self) -> int:
        return len(self._held.sizes)

    @property
    def _now(self) -> Now:
        return Now(self._coding, self._measure, self._held.n_objects, tuple(self._selected))

    def _surveyed(self) -> Survey:
        if self._survey is None:
            now = self._now
            parts = [rdd.map(partial(_whole_survey, now=now)) for rdd in self._whole]
            if self._spread is not None:
                records = self._spread.mapPartitionsWithIndex(partial(class_records, now=now, n=self._n))
                survey = partial(spread_survey, now=now, share=self._share)
                parts.append(records.partitionBy(self._n, itself).mapPartitions(survey))
            with explained("refine the classes"):
                found: list[Survey] = self._held.pieces.context.union(parts).collect()
            self._survey = Survey(
                theta=sum(f.theta for f in found),
                objects=sum(f.objects for f in found),
                spread=sum(f.spread for f in found),
                huge=sum(f.huge for f in found),
                huge_keys=tuple(key for f in found for key in f.huge_keys),
                n_spread=sum(f.n_spread for f in found),
            )
        return self._survey

    def _move(self, found: Survey) -> None:
        """Move the classes that fit, if they hold most of the rows, each to one piece."""
        if self._spread is None or 2 * found.huge > found.spread:
            return
        from pyspark import StorageLevel

        store = StorageLevel.MEMORY_AND_DISK
        now, keys = self._now, found.huge_keys
        moved = self._spread.flatMap(partial(_movers, now=now, huge_keys=keys, n=self._n)).partitionBy(self._n, itself)
        self._whole.append(moved.mapPartitions(partial(together, coding=self._coding)).persist(store))
        stayers = self._spread.map(partial(_stayers, now=now, huge_keys=keys))
        self._spread = stayers.persist(store) if found.huge else None
        self._held.moved += [self._whole[-1], *([self._spread] if self._spread is not None else [])]

    def _numbers(self) -> RDD[Any]:
        """For every spread piece, the numbers of its classes, the same wherever a class is."""
        assert self._spread is not None
        described = partial(class_records, now=self._now, n=self._n, labelled=False)
        records = self._spread.mapPartitionsWithIndex(described).partitionBy(self._n, itself)
        answers = records.mapPartitionsWithIndex(partial(numbered, now=self._now))
        return answers.partitionBy(self._spread.getNumPartitions(), itself).mapPartitions(in_order)


# -- tasks on whole classes --------------------------------------------------------------------------------


def _evaluation(piece: Piece, now: Now) -> LocalEvaluation:
    evaluation = LocalEvaluation(as_granules(piece, now.coding), now.measure)
    if now.selected:
        evaluation.select(*now.selected)
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


def _whole_survey(piece: Piece, now: Now) -> Survey:
    if not piece.n_rows:
        return Survey(0, 0)
    evaluation = _evaluation(piece, now)
    return Survey(evaluation.theta, evaluation.unsettled)


def _whole_scores(piece: Piece, now: Now, candidates: tuple[int, ...]) -> list[tuple[int, int]]:
    if not piece.n_rows:
        return []
    thetas = _evaluation(piece, now).with_each(candidates)
    return list(zip(candidates, thetas, strict=True))


def _as_it_is(records: Iterable[Any]) -> Iterable[Any]:
    return records


# -- moving ------------------------------------------------------------------------------------------------


def _stays(piece: Piece, now: Now, huge_keys: Keys) -> Array:
    """Which rows are in a class that is too large to move."""
    stays = np.zeros(piece.n_rows, np.bool_)
    for key in huge_keys:
        same = np.ones(piece.n_rows, np.bool_)
        for a, value in zip(now.selected, key, strict=True):
            same &= piece.column(now.coding, a) == value
        stays |= same
    return stays


def _movers(piece: Piece, now: Now, huge_keys: Keys, n: int) -> Iterator[tuple[int, Piece]]:
    some = piece.rows(~_stays(piece, now, huge_keys))
    for bucket, rows in dealt(hashes(some, now.coding, now.selected), n):
        yield bucket, some.rows(rows)


def _stayers(piece: Piece, now: Now, huge_keys: Keys) -> Piece:
    return piece.rows(_stays(piece, now, huge_keys))
