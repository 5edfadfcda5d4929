"""The local engine: numba kernels, threads without the GIL.

Rows are ordered by class of U/R, then by decision. Classes that no refinement can change are dropped. Columns of few
values are kept as blocks of 64 lanes, whose rows a pass brings into that order; the others are gathered column by
column.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar

import numpy as np

from plar.engines.base import Engine, GranuleSet, LeaveOneOut
from plar.engines.job_progress import JobCounter, Watch
from plar.engines.local import kernels, lanes
from plar.engines.local.scoring import Pass, Scorer
from plar.granules.consumable_columns import ConsumableColumns
from plar.granules.granules import Granules
from plar.grouping.partition import (
    Codes,
    Index,
    Runs,
    Split,
    find_runs,
    in_halves,
    in_order,
    joined,
    leaving_out_each,
    split,
)
from plar.input.tables import DecisionTable
from plar.measures import OWN, PURE, Measure
from plar.runtime.parallel import check_jobs, threads, usable_cores
from plar.uncertainty.labels import Labels, label_granules
from plar.uncertainty.strata import CrossTab, Strata, by_decision

T = TypeVar("T")
#: below this many cells a pass is not worth several threads
_SHARED = 1 << 20


@dataclass(frozen=True, slots=True)
class LocalEngine(Engine):
    """One machine, all its cores.

    Parameters
    ----------
    n_jobs : int, optional
        Threads, also for reading text; by default, or with -1, all that this process may use. Results do not depend on
        it.
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
        # the order of U/R and the counts along it; columns as lanes, and one block per thread to permute them into
        lanes_held = len(blocks) + min(len(blocks), 2 * self._jobs)
        need = len(granules) * (160 + lanes.LANES * lanes_held)
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
    left: int


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
        #: tells the threads to stop early
        self._stopped = False
        self._granules = granules
        self._measure = measure
        self._scorer = Scorer(measure, granules.n_objects, granules.n_decisions)
        self._labels = labels or label_granules(granules, measure)
        self.consistent = self._labels.consistent
        self.theta_all = self._scorer.total_of_all(granules, self._labels)
        #: U/∅ and U/R
        self._root = self._now = self._one_class()
        #: Θ(D|R), and the objects in classes of U/R of more than one label
        self.theta, self.unsettled = self._theta_of(self._root), self._mixed(self._root)
        self._strata = Strata(granules, self._labels)
        #: Θ(D|R∪{a}) of the candidates for the current R, as far as known
        self._known: dict[int, int] = {}
        #: runs of U/R, once it has been scored
        self._runs: Runs | None = None
        #: a user's θ is evaluated column by column
        self._use_lanes = False if measure.kind == OWN else use_lanes
        self._blocks: list[lanes.Block] | None = None
        #: buffers for rows of a block in the order of U/R, one per thread
        self._rooms: SimpleQueue[lanes.Rows] = SimpleQueue()
        self._n_jobs = n_jobs
        #: its threads stop with the evaluation
        self._pool: ThreadPoolExecutor | None = None

    @property
    def unsettled_objects(self) -> int:
        """Objects in classes of U/R that are not settled."""
        if self._measure.kind == OWN:  # a user's measure has no labels: its equality is by value
            return 0 if self.theta == self.theta_all else max(1, self.unsettled)
        return self.unsettled

    @property
    def value_all(self) -> float:
        """Θ(D|C) as a number."""
        return self._labels.value(self._granules, self._measure, self.theta_all)

    def leave_one_out(self, attributes: Sequence[int] | None = None) -> list[LeaveOneOut]:
        """Θ(D|B∖{a}) for every a of B, by divide and conquer: |B| log |B| refinements of shrinking partitions."""
        if attributes is None:
            attributes = range(len(self._granules.cardinalities))
        halves = in_halves(attributes, self._granules.cardinalities)
        n = len(attributes)
        tally, cells = JobCounter(self.watch, n, n), n * len(self._root.order)
        try:
            found = self._in_threads(lambda half: self.leave_out(halves[half], halves[1 - half], tally), (0, 1), cells)
        except BaseException:  # also Ctrl-C, which only reaches this thread
            self._stopped = True
            raise
        theta_of = found[0] | found[1]
        if self._measure.kind == OWN:
            theta_of = {a: (theta, theta == self.theta_all) for a, (theta, _) in theta_of.items()}
        return [
            LeaveOneOut(self.theta_all if equal else theta, equal) for theta, equal in (theta_of[a] for a in attributes)
        ]

    def leave_out(
        self, attributes: Sequence[int], others: Sequence[int], tally: JobCounter | None = None
    ) -> dict[int, tuple[int, bool]]:
        """Σ θ over the classes of U/(B∖{a}) and whether they are settled, for every a; B has the others, too."""
        tally = tally or JobCounter(None, 0, 0)
        found: dict[int, tuple[int, bool]] = {}
        start = self._refined(self._root, others)
        groups = leaving_out_each(attributes, start, self._refined, lambda p: self._stopped or not len(p.order))
        for group, partition in groups:
            found |= dict.fromkeys(group, (self._theta_of(partition), not self._mixed(partition)))
            tally.add(len(group))
        return found

    def with_each(self, candidates: Sequence[int]) -> list[int]:
        """Θ(D|R∪{a}) for every candidate."""
        thetas = dict.fromkeys(candidates, self._now.left)
        if len(self._now.order):
            for attribute, theta in self._scored(set(candidates)):
                thetas[attribute] += theta
        self._known = thetas
        return [thetas[a] for a in candidates]

    def _scored(self, wanted: set[int]) -> Iterable[tuple[int, int]]:
        # parts of Θ(D|R∪{a}), to be added up by attribute
        now, g = self._now, self._granules
        if self._blocks is None:
            self._blocks = self._laid_out()
        in_lanes = {a for block in self._blocks for a in block.attributes}
        columns = [a for a in wanted if a not in in_lanes]
        blocks = [block for block in self._blocks if not wanted.isdisjoint(block.attributes)]
        cells = len(now.order) * (len(columns) + lanes.LANES * len(blocks))
        over = Pass(self._scorer, g.decision_codes, g.counts, now.order, now.starts)
        self._runs = over.runs
        parts = over.ranges(len(columns) + len(blocks), 1 if cells < _SHARED else self._n_jobs)

        def score(task: tuple[int | lanes.Block, slice]) -> list[tuple[int, int]]:
            held, part = task
            if not isinstance(held, lanes.Block):
                return [(held, over.column(*self._column(held), part))]
            try:
                room = self._rooms.get_nowait()
            except Empty:
                room = lanes.aligned(over.room)
            thetas = over.block(held.rows, held.n_values, room, part)
            self._rooms.put(room)
            return [(a, theta) for a, theta in zip(held.attributes, thetas, strict=False) if a in wanted]

        tasks = [(held, part) for held in (*columns, *blocks) for part in parts]
        tally, least = JobCounter(self.watch, len(tasks), len(wanted)), (math.inf, -1)

        def note(scores: list[tuple[int, int]]) -> None:
            # a task knows the whole Θ of its candidates only if it covers all rows
            nonlocal least
            best = None
            if self.watch and len(parts) == 1:
                least = min([least, *((theta, a) for a, theta in scores)])
                best = g.conditions[least[1]], self._measure.value(now.left + int(least[0]), g.n_objects)
            tally.add(1, best)

        done = self._in_threads(score, tasks, cells, note)
        return chain.from_iterable(done)

    def _laid_out(self) -> list[lanes.Block]:
        g, n_values = self._granules, self._granules.cardinalities
        groups, _ = lanes.lane_groups(n_values, len(g), self._use_lanes)
        tally = JobCounter(self.watch, len(groups), len(groups) * lanes.LANES)
        cells = len(groups) * lanes.LANES * len(g)

        def lay_out(group: Sequence[int]) -> lanes.Block:
            rows = lanes.as_rows([g.columns[a] for a in group], self._in_threads if len(groups) == 1 else None)
            if isinstance(g.columns, ConsumableColumns):  # columns for this search only
                g.columns.lay_out(group, rows)
            return lanes.Block(group, max(n_values[a] for a in group), rows)

        return self._in_threads(lay_out, groups, cells, lambda _: tally.add(1))

    def select(self, *attributes: int) -> int:
        """R ← R ∪ {a, …}; returns Θ(D|R)."""
        self._now = self._refined(self._now, attributes)
        self._strata.select(*attributes)
        known = self._known.get(attributes[0]) if len(attributes) == 1 else None
        self.theta = self._theta_of(self._now) if known is None else known
        self.unsettled, self._known, self._runs = self._mixed(self._now), {}, None
        return self.theta

    def cross_tabs(self, candidates: Sequence[int]) -> Iterable[CrossTab]:
        """A table of each candidate's values against the decisions."""
        if self._measure.kind in (PURE, OWN) and not self.consistent:  # these drop other classes
            return self._strata.cross_tabs(candidates)
        order, runs, columns = self._now.order, self._found_runs(), map(self._column, candidates)
        return (CrossTab(in_order(codes, order), n_values, runs) for codes, n_values in columns)

    def _found_runs(self) -> Runs:
        now, g = self._now, self._granules
        self._runs = self._runs or find_runs(g.decision_codes, g.counts, now.order, now.starts)
        return self._runs

    def _column(self, attribute: int) -> tuple[Codes, int]:
        return self._granules.columns[attribute], len(self._granules.dictionaries[attribute])

    def _one_class(self) -> _Partition:
        g, leaves = self._granules, self._labels.leaves
        order = by_decision(g.decision_codes)
        whole = np.array([0, len(order)], np.uint32)
        if (leaves == leaves[0]).all():
            return _Partition(order[:0], whole[:1], self._sum(order, whole))
        return _Partition(order, whole, 0)

    def _refined(self, partition: _Partition, attributes: Sequence[int]) -> _Partition:
        for group in joined(map(self._column, attributes)):
            if self._stopped or not len(partition.order):
                break
            after = split(group, self._labels.leaves, partition.order, partition.starts)
            left = partition.left + self._theta_of_gone(after)
            partition = _Partition(after.order, after.starts, left)
        return partition

    def _mixed(self, partition: _Partition) -> int:
        # Objects in classes of more than one label; every class here has more than one leaf key.
        if self._labels.labels is self._labels.leaves:
            return self._weight(partition.order)
        return kernels.mixed_objects(self._labels.labels, self._granules.counts, partition.order, partition.starts)

    def _theta_of_gone(self, after: Split) -> int:
        # in a consistent table all dropped classes are pure
        if self.consistent and self._measure.kind != OWN:
            return -self._weight(after.gone) if self._measure.kind == PURE else 0
        return self._sum(after.gone, after.gone_starts)

    def _weight(self, rows: Index) -> int:
        g = self._granules
        return len(rows) if g.n_objects == len(g) else int(g.counts[rows].sum())

    def _theta_of(self, partition: _Partition) -> int:
        return partition.left + self._sum(partition.order, partition.starts)

    def _sum(self, order: Index, starts: Index) -> int:
        # Σ θ(E) over the classes of a partition
        return self._scorer.total(self._granules.decision_codes, self._granules.counts, order, starts)

    def _in_threads(
        self,
        function: Callable[[Any], T],
        tasks: Sequence[Any],
        cells: int,
        note: Callable[[T], None] = lambda _: None,
    ) -> list[T]:
        started, own, noted = list[Future[T]](), deque[T](), 0
        if self._n_jobs > 1 and len(tasks) > 1 and cells >= _SHARED:
            self._pool = self._pool or ThreadPoolExecutor(self._n_jobs - 1)
            started = [self._pool.submit(function, task) for task in tasks]
        try:
            # this thread works too, from the last task on: to wait for another takes as long as a small task
            while len(own) < len(tasks) and (not started or started[-1 - len(own)].cancel()):
                own.appendleft(function(tasks[-1 - len(own)]))
                note(own[0])
                while noted < len(started) - len(own) and started[noted].done():
                    note(started[noted].result())
                    noted += 1
            others = [future.result() for future in started[: len(tasks) - len(own)]]
            for one in others[noted:]:
                note(one)
            return [*others, *own]
        finally:
            for future in started:
                future.cancel()
