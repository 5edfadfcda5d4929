"""The local engine: numba kernels, threads without the GIL.

Rows are ordered by class of U/R, then by decision. Classes that no refinement can change are dropped. Columns
of few values are kept as blocks of 64 lanes, whose rows a pass brings into that order; the others are
gathered column by column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from queue import Empty, SimpleQueue
from typing import NamedTuple, TypeAlias

import numpy as np

from plar.chance.association import Association
from plar.chance.statistic import associations_within
from plar.engines.base import Engine, GranuleSet, LeaveOneOut
from plar.engines.job_progress import JobCounter, Watch
from plar.engines.local import kernels, lanes
from plar.engines.local.scoring import CandidatePass, Scorer
from plar.granules.consumable_columns import ConsumableColumns
from plar.granules.granules import Granules
from plar.grouping.partition import (
    Codes,
    Index,
    Runs,
    Split,
    byte_groups,
    find_runs,
    in_halves,
    in_order,
    leaving_out_each,
    split,
)
from plar.input.tables import DecisionTable
from plar.measures import OWN, PURE, Measure
from plar.runtime.parallel import ThreadTeam, check_jobs, threads, usable_cores
from plar.uncertainty.labels import Labels, label_granules
from plar.uncertainty.strata import CrossTab, Strata, by_decision

#: below this many cells a pass is not worth several threads
_MIN_SHARED_CELLS = 1 << 20

#: what a task scores: an attribute or a block, and a range of the classes
ScoringTask: TypeAlias = tuple[int | lanes.LaneBlock, slice]
#: attributes, and the parts of their Θ that a task found
Scores: TypeAlias = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class LocalEngine(Engine):
    """One machine, all its cores.

    Parameters
    ----------
    n_jobs : int, optional
        Threads, also for reading text; by default, or with -1, all that this process may use. Results do not
        depend on it.
    lanes : bool, optional
        Whether columns of few values are evaluated 64 at a time; by default where it pays off.
    watch : function of a JobProgress, optional
        Called with the progress of each pass over the candidates.

    Examples
    --------
    >>> import plar
    >>> plar.reduce({"a": [0, 1], "d": [0, 1]}, "d", engine=plar.engines.LocalEngine(n_jobs=1)).attributes
    ('a',)
    """

    n_jobs: int | None = None
    lanes: bool | None = None
    watch: Watch | None = field(default=None, compare=False, repr=False)
    name = "local"

    def __post_init__(self) -> None:
        check_jobs(self.n_jobs)

    def open(self, granules: Granules, measure: Measure, watch: Watch | None = None) -> LocalEvaluation:
        """Prepare the granules for one search."""
        return LocalEvaluation(granules, measure, self._jobs, self.lanes, watch=watch or self.watch)

    def memory_need(self, granules: Granules) -> int:
        """Bytes that an evaluation needs beside the granules, as measured."""
        blocks, _ = lanes.lane_groups(granules.cardinalities, len(granules), self.lanes)
        # the order of U/R and the counts along it; columns as lanes, and buffers to permute them into
        n_lane_matrices = len(blocks) + min(len(blocks), 2 * self._jobs)
        need = len(granules) * (160 + lanes.LANES * n_lane_matrices)
        if isinstance(granules.columns, ConsumableColumns):  # columns are freed as their lanes are made
            need -= sum(granules.columns[a].nbytes for block in blocks for a in block)
        return need

    def granulate(self, table: DecisionTable) -> GranuleSet:
        """Granulate a table with this many threads; polars, which reads typed files, has its own."""
        with threads(self.n_jobs):
            return table.granulate()

    @property
    def _jobs(self) -> int:
        with threads(self.n_jobs):
            return usable_cores()


class _Partition(NamedTuple):
    """A partition of some rows; each class is ordered by decision, and classes that cannot change are dropped."""

    order: Index
    starts: Index
    #: Θ of the classes that were dropped
    theta_dropped: int


class LocalEvaluation:
    """U/R and the Θ of every way to refine it; see `plar.engines.base.Evaluation`."""

    def __init__(
        self,
        granules: Granules,
        measure: Measure,
        n_jobs: int = 1,
        use_lanes: bool | None = None,
        labels: Labels | None = None,
        watch: Watch | None = None,
    ) -> None:
        self.watch = watch
        self._granules = granules
        self._measure = measure
        self._scorer = Scorer(measure, granules.n_objects, granules.n_decisions)
        self._labels = labels or label_granules(granules, measure)
        self.consistent = self._labels.consistent
        self.theta_all = self._scorer.total_of_all(granules, self._labels)
        #: tells the threads to stop early
        self._stopped = False
        self._n_jobs = n_jobs
        #: its threads stop with the evaluation
        self._team = ThreadTeam(n_jobs, _MIN_SHARED_CELLS)
        #: U/∅ and U/R
        self._root = self._one_class()
        self._now = self._root
        #: Θ(D|R), and the objects in classes of U/R of more than one label
        self.theta = self._theta_of(self._root)
        self.unsettled = self._unsettled_in(self._root)
        self._strata = Strata(granules, self._labels)
        #: Θ(D|R∪{a}) of the candidates that were scored for the current R
        self._theta_with: dict[int, int] = {}
        #: runs of U/R, once it has been scored
        self._runs: Runs | None = None
        #: a user's θ is evaluated column by column
        self._use_lanes = False if measure.kind == OWN else use_lanes
        self._blocks: list[lanes.LaneBlock] | None = None
        #: buffers for rows of a block in the order of U/R, one per thread
        self._buffers: SimpleQueue[lanes.LaneMatrix] = SimpleQueue()

    @property
    def unsettled_objects(self) -> int:
        """Objects in classes of U/R that are not settled."""
        if self._measure.kind != OWN:
            return self.unsettled
        if self.theta == self.theta_all:  # a user's measure has no labels: its equality is by value
            return 0
        return max(1, self.unsettled)

    @property
    def value_all(self) -> float:
        """Θ(D|C) as a number."""
        return self._labels.value(self._granules, self._measure, self.theta_all)

    def leave_one_out(self, attributes: Sequence[int] | None = None) -> list[LeaveOneOut]:
        """Θ(D|B∖{a}) for every a of B, by divide and conquer: |B| log |B| refinements of shrinking partitions."""
        if attributes is None:
            attributes = range(len(self._granules.cardinalities))
        n = len(attributes)
        first, second = in_halves(attributes, self._granules.cardinalities)
        counter = JobCounter(self.watch, n, n)

        def leave_out(halves: tuple[list[int], list[int]]) -> dict[int, tuple[int, bool]]:
            return self.leave_out(*halves, counter)

        try:
            results = self._team.run(leave_out, [(first, second), (second, first)], n * len(self._root.order))
        except BaseException:  # also Ctrl-C, which only reaches this thread
            self._stopped = True
            raise
        result_of = results[0] | results[1]
        return [self._judged(*result_of[a]) for a in attributes]

    def _judged(self, theta: int, settled: bool) -> LeaveOneOut:
        equal = theta == self.theta_all if self._measure.kind == OWN else settled
        return LeaveOneOut(self.theta_all if equal else theta, equal)

    def leave_out(
        self, attributes: Sequence[int], others: Sequence[int], counter: JobCounter | None = None
    ) -> dict[int, tuple[int, bool]]:
        """Σ θ over the classes of U/(B∖{a}) and whether they are settled, for every a; B has the others, too."""
        counter = counter or JobCounter(None, 0, 0)
        result_of: dict[int, tuple[int, bool]] = {}
        start = self._refined(self._root, others)
        for group, partition in leaving_out_each(attributes, start, self._refined, self._is_final):
            result = self._theta_of(partition), not self._unsettled_in(partition)
            result_of.update(dict.fromkeys(group, result))
            counter.add(len(group))
        return result_of

    def _is_final(self, partition: _Partition) -> bool:
        return self._stopped or not len(partition.order)

    def with_each(self, candidates: Sequence[int]) -> list[int]:
        """Θ(D|R∪{a}) for every candidate."""
        thetas = dict.fromkeys(candidates, self._now.theta_dropped)
        if len(self._now.order):
            for attribute, theta in self._scored(set(candidates)):
                thetas[attribute] += theta
        self._theta_with = thetas
        return [thetas[a] for a in candidates]

    def _scored(self, wanted: set[int]) -> Iterable[tuple[int, int]]:
        """Parts of Θ(D|R∪{a}), to be added up by attribute."""
        if self._blocks is None:
            self._blocks = self._laid_out()
        in_lanes = {a for block in self._blocks for a in block.attributes}
        columns = [a for a in wanted if a not in in_lanes]
        blocks = [block for block in self._blocks if not wanted.isdisjoint(block.attributes)]
        now = self._now
        scoring = CandidatePass(
            self._scorer, self._granules.decision_codes, self._granules.counts, now.order, now.starts
        )
        self._runs = scoring.runs
        cells = len(now.order) * (len(columns) + lanes.LANES * len(blocks))
        ranges = scoring.ranges(len(columns) + len(blocks), 1 if cells < _MIN_SHARED_CELLS else self._n_jobs)
        all_scored: list[int | lanes.LaneBlock] = [*columns, *blocks]
        tasks: list[ScoringTask] = [(scored, part) for scored in all_scored for part in ranges]

        def score(task: ScoringTask) -> Scores:
            scored, part = task
            if isinstance(scored, lanes.LaneBlock):
                with self._buffer(scoring.buffer_rows) as buffer:
                    thetas = scoring.block(scored.rows, scored.n_values, buffer, part)
                return [(a, theta) for a, theta in zip(scored.attributes, thetas, strict=False) if a in wanted]
            return [(scored, scoring.column(*self._column(scored), part))]

        counter = JobCounter(self.watch, len(tasks), len(wanted))
        # a task knows the whole Θ of its candidates only if it covers all rows
        shows_best = self.watch is not None and len(ranges) == 1
        best: tuple[int, int] | None = None

        def note(scores: Scores) -> None:
            nonlocal best
            if not shows_best:
                counter.add(1)
                return
            thetas = [(theta, a) for a, theta in scores]
            best = min(thetas if best is None else [best, *thetas])
            counter.add(1, self._named(*best))

        all_scores = self._team.run(score, tasks, cells, note)
        return chain.from_iterable(all_scores)

    def _named(self, theta: int, attribute: int) -> tuple[str, float]:
        """The best candidate so far, as it is reported, from its Θ over the classes that were not dropped."""
        value = self._measure.value(self._now.theta_dropped + theta, self._granules.n_objects)
        return self._granules.conditions[attribute], value

    @contextmanager
    def _buffer(self, n_rows: int) -> Iterator[lanes.LaneMatrix]:
        """A buffer that no other thread has now."""
        try:
            buffer = self._buffers.get_nowait()
        except Empty:
            buffer = lanes.aligned(n_rows)
        yield buffer
        self._buffers.put(buffer)

    def _laid_out(self) -> list[lanes.LaneBlock]:
        granules = self._granules
        n_values = granules.cardinalities
        groups, _ = lanes.lane_groups(n_values, len(granules), self._use_lanes)
        counter = JobCounter(self.watch, len(groups), len(groups) * lanes.LANES)

        def lay_out(group: Sequence[int]) -> lanes.LaneBlock:
            rows = lanes.as_rows([granules.columns[a] for a in group], self._team)
            if isinstance(granules.columns, ConsumableColumns):  # columns for this search only
                granules.columns.lay_out(group, rows)
            return lanes.LaneBlock(group, max(n_values[a] for a in group), rows)

        def note(_: lanes.LaneBlock) -> None:
            counter.add(1)

        return self._team.run(lay_out, groups, len(groups) * lanes.LANES * len(granules), note)

    def select(self, *attributes: int) -> int:
        """R ← R ∪ {a, …}; returns Θ(D|R)."""
        self._now = self._refined(self._now, attributes)
        self._strata.select(*attributes)
        if len(attributes) == 1 and attributes[0] in self._theta_with:
            self.theta = self._theta_with[attributes[0]]
        else:
            self.theta = self._theta_of(self._now)
        self.unsettled = self._unsettled_in(self._now)
        self._theta_with = {}
        self._runs = None
        return self.theta

    def associations(self, candidates: Sequence[int]) -> list[Association]:
        """How strongly each candidate is associated with the decision, in one pass over them."""
        with threads(self._n_jobs):
            return associations_within(self._strata, candidates)

    def cross_tabs(self, candidates: Sequence[int]) -> Iterable[CrossTab]:
        """A table of each candidate's values against the decisions."""
        if self._measure.kind in (PURE, OWN) and not self.consistent:  # these drop other classes
            return self._strata.cross_tabs(candidates)
        order = self._now.order
        runs = self._runs_of_r()
        columns = map(self._column, candidates)
        return (CrossTab(in_order(codes, order), n_values, runs) for codes, n_values in columns)

    def _runs_of_r(self) -> Runs:
        if self._runs is None:
            granules = self._granules
            self._runs = find_runs(granules.decision_codes, granules.counts, self._now.order, self._now.starts)
        return self._runs

    def _column(self, attribute: int) -> tuple[Codes, int]:
        return self._granules.columns[attribute], len(self._granules.dictionaries[attribute])

    def _one_class(self) -> _Partition:
        drop_keys = self._labels.drop_keys
        order = by_decision(self._granules.decision_codes)
        whole = np.array([0, len(order)], np.uint32)
        if (drop_keys == drop_keys[0]).all():
            return _Partition(order[:0], whole[:1], self._sum(order, whole))
        return _Partition(order, whole, 0)

    def _refined(self, partition: _Partition, attributes: Sequence[int]) -> _Partition:
        for group in byte_groups(map(self._column, attributes)):
            if self._stopped or not len(partition.order):
                break
            after = split(group, self._labels.drop_keys, partition.order, partition.starts)
            theta_dropped = partition.theta_dropped + self._theta_of_dropped(after)
            partition = _Partition(after.order, after.starts, theta_dropped)
        return partition

    def _unsettled_in(self, partition: _Partition) -> int:
        """Objects in classes of more than one label."""
        if self._labels.labels is self._labels.drop_keys:  # every class here has more than one of them
            return self._weight(partition.order)
        return kernels.count_unsettled_objects(
            self._labels.labels, self._granules.counts, partition.order, partition.starts
        )

    def _theta_of_dropped(self, after: Split) -> int:
        # in a consistent table all dropped classes are pure
        if self.consistent and self._measure.kind != OWN:
            return -self._weight(after.gone) if self._measure.kind == PURE else 0
        return self._sum(after.gone, after.gone_starts)

    def _weight(self, rows: Index) -> int:
        granules = self._granules
        return len(rows) if granules.n_objects == len(granules) else int(granules.counts[rows].sum())

    def _theta_of(self, partition: _Partition) -> int:
        return partition.theta_dropped + self._sum(partition.order, partition.starts)

    def _sum(self, order: Index, starts: Index) -> int:
        """Σ θ(E) over the classes of a partition."""
        return self._scorer.total(self._granules.decision_codes, self._granules.counts, order, starts)
