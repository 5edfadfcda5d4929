"""The local engine: numba kernels, threads without the GIL.

Rows stand class of U/R by class, decision by decision. Classes that no refinement can change are dropped.
Columns of few values are kept as blocks of 64 lanes, whose rows a pass brings into that order; the others are gathered
column by column.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, NamedTuple, TypeVar

import numpy as np

from plar.coding.consumable_columns import ConsumableColumns
from plar.engines import halving, kernels, lanes
from plar.engines.base import Engine, Inner
from plar.engines.blocks import Block, Blocks, lane_groups
from plar.engines.progress_hooks import Tally, Watch
from plar.engines.scoring import Pass, Scorer
from plar.errors import ParameterError
from plar.granules import Granules
from plar.labels import Labels, label_granules
from plar.measures import OWN, PURE, Measure
from plar.parallel import usable_cores
from plar.partition import Codes, Index, Split, joined, split

__all__ = ["LocalEngine", "LocalEvaluation"]

T = TypeVar("T")
#: below this many cells a pass is too short to share
_SHARED = 1 << 20


@dataclass(frozen=True, slots=True)
class LocalEngine(Engine):
    """One machine, all its cores.

    Parameters
    ----------
    n_jobs : int, optional
        Threads; by default, or with -1, as many as this process may use. The result does not depend on it.
    lanes : bool, optional
        Whether columns of few values are evaluated 64 at a time; by default where it pays.
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
        jobs = self.n_jobs
        if jobs is not None and (not isinstance(jobs, Integral) or isinstance(jobs, bool) or (jobs < 1 and jobs != -1)):
            raise ParameterError(f"n_jobs must be 1 or more, or None or -1 for all cores. Got {jobs!r} instead.")

    def open(self, granules: Granules, measure: Measure, watch: Watch | None = None) -> LocalEvaluation:
        """Prepare the granules for one search."""
        return LocalEvaluation(granules, measure, self._jobs, self.lanes, watch=watch or self.watch)

    def memory_need(self, granules: Granules) -> int:
        """Bytes that an evaluation takes beside the granules, as measured.

        Examples
        --------
        >>> import plar
        >>> plar.engines.LocalEngine(n_jobs=1).memory_need(plar.granulate({"a": [0, 1], "d": [0, 1]}, "d"))
        320
        """
        blocks, _ = lane_groups(granules.cardinalities, len(granules), self.lanes)
        # the order of U/R and what is counted along it; columns as lanes, and for each thread one more to move them to
        lanes_held = len(blocks) + min(len(blocks), 2 * self._jobs)
        need = len(granules) * (160 + lanes.LANES * lanes_held)
        if isinstance(granules.columns, ConsumableColumns):  # whose columns go as their lanes come
            need -= sum(granules.columns[a].nbytes for block in blocks for a in block)
        return need

    @property
    def _jobs(self) -> int:
        return usable_cores() if self.n_jobs in (None, -1) else int(self.n_jobs or 1)


class _Partition(NamedTuple):
    """A partition of some rows; each class stands decision by decision, and none is left that cannot change."""

    order: Index
    starts: Index
    #: the rows that have left since then
    gone: Index
    #: Θ of the classes that have left
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
        #: asks the threads to end early
        self._stopped = False
        self._granules = granules
        self._measure = measure
        self._scorer = Scorer(measure, granules.n_objects, granules.n_classes)
        self._labels = labels or label_granules(granules, measure)
        self.consistent = self._labels.consistent
        self.theta_all = self._scorer.total_of_all(granules, self._labels)
        #: U/∅
        self._root = self._one_class()
        #: U/R, and the objects in it
        self._now, self._objects = self._root, self._weight(self._root.order)
        self.theta = self._theta_of(self._now)
        #: Θ(D|R∪{a}) of the candidates for the present R, as far as they are known
        self._known: dict[int, int] = {}
        #: a user's θ is evaluated column by column
        self._use_lanes = False if measure.kind == OWN else use_lanes
        self._blocks: Blocks | None = None
        self._n_jobs = n_jobs
        #: its threads end with the evaluation
        self._pool: ThreadPoolExecutor | None = None

    @property
    def active(self) -> int:
        """Objects in classes of U/R that are not settled."""
        if self._measure.kind == OWN:  # a user's measure has no labels: its equality is by value
            return 0 if self.theta == self.theta_all else max(1, self.unsettled)
        return self.unsettled

    @property
    def unsettled(self) -> int:
        """Objects in classes of U/R of more than one label."""
        return self._objects if self._labels.labels is self._labels.leaves else self._mixed(self._now)

    @property
    def value_all(self) -> float:
        """Θ(D|C) as a number."""
        return self._labels.value(self._granules, self._measure, self.theta_all)

    def without_each(self, attributes: Sequence[int] | None = None) -> list[Inner]:
        """Θ(D|B∖{a}) for every a of B, by divide and conquer: |B| log |B| refinements of melting partitions."""
        if attributes is None:
            attributes = range(len(self._granules.cardinalities))
        halves = halving.in_halves(attributes, self._granules.cardinalities)
        work = len(attributes) + sum(halving.n_refinements(len(half)) for half in halves)
        tally = Tally(self.watch, work, len(attributes)) if self.watch else None
        try:
            found = self._in_threads(
                lambda half: self.leave_out(halves[half], halves[1 - half], tally),
                (0, 1),
                len(self._root.order) * len(attributes),
            )
        except BaseException:  # also Ctrl-C, which reaches this thread alone
            self._stopped = True
            raise
        theta_of = found[0] | found[1]
        return [self._inner(*theta_of[a]) for a in attributes]

    def _inner(self, theta: int, equal: bool) -> Inner:
        equal = theta == self.theta_all if self._measure.kind == OWN else equal
        return Inner(self.theta_all if equal else theta, equal)

    def leave_out(
        self, attributes: Sequence[int], others: Sequence[int], tally: Tally | None = None
    ) -> dict[int, tuple[int, bool]]:
        """Σ θ over the classes of U/(B∖{a}) and whether they are settled, for every a; B has the others, too."""
        found: dict[int, tuple[int, bool]] = {}
        start = self._refined(self._root, others, tally)
        groups = halving.without_each(attributes, start, lambda p, more: self._refined(p, more, tally), self._is_final)
        for group, partition in groups:
            found |= dict.fromkeys(group, (self._theta_of(partition), self._is_settled(partition)))
            if tally and len(group) > 1:
                tally.add(halving.n_refinements(len(group)))
        return found

    def _is_final(self, partition: _Partition) -> bool:
        return self._stopped or not len(partition.order)

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
            self._blocks = Blocks(g, self._use_lanes, self._arrange)
        held = self._blocks
        columns, blocks = [a for a in wanted if a not in held.attributes], held.wanted(wanted)
        cells = len(now.order) * (len(columns) + lanes.LANES * len(blocks))
        over = Pass(self._scorer, g.classes, g.counts, now.order, now.starts)
        parts = over.ranges(len(columns) + len(blocks), 1 if cells < _SHARED else self._n_jobs)

        def column_part(task: tuple[int, slice]) -> list[tuple[int, int]]:
            attribute, part = task
            return [(attribute, over.column(*self._column(attribute), part))]

        def block_part(task: tuple[Block, slice]) -> list[tuple[int, int]]:
            block, part = task
            starts = now.starts[part]
            with held.ordered(block, now.order, int(starts[0]), int(starts[-1])) as rows:
                thetas = over.block(rows, block.n_values, part)
            return [(a, theta) for a, theta in zip(block.attributes, thetas, strict=False) if a in wanted]

        note = self._noting(len(parts) * (len(columns) + len(blocks)), len(wanted), whole=len(parts) == 1)
        done = self._in_threads(column_part, [(a, part) for a in columns for part in parts], cells, note)
        done += self._in_threads(block_part, [(b, part) for b in blocks for part in parts], cells, note)
        return (score for scores in done for score in scores)

    def _noting(self, n_tasks: int, candidates: int, *, whole: bool) -> Callable[[list[tuple[int, int]]], None] | None:
        # a task knows the whole Θ of its candidates only if it covers all rows
        if self.watch is None:
            return None
        tally, least = Tally(self.watch, n_tasks, candidates), (math.inf, -1)

        def note(scores: list[tuple[int, int]]) -> None:
            nonlocal least
            best = None
            if whole:
                least = min([least, *((theta, a) for a, theta in scores)])
                theta = self._measure.value(self._now.left + int(least[0]), self._granules.n_objects)
                best = self._granules.conditions[least[1]], theta
            tally.add(1, best)

        return note

    def select(self, *attributes: int) -> int:
        """R ← R ∪ {a, …}; returns Θ(D|R)."""
        for attribute in attributes:
            before, self._now = self._now, self._refined(self._now, [attribute])
            if self._now is not before:
                self._objects -= self._weight(self._now.gone)
        known = self._known.get(attributes[0]) if len(attributes) == 1 else None
        self.theta = self._theta_of(self._now) if known is None else known
        self._known = {}
        return self.theta

    def _column(self, attribute: int) -> tuple[Codes, int]:
        return self._granules.columns[attribute], len(self._granules.dictionaries[attribute])

    def _one_class(self) -> _Partition:
        order, leaves = _by_decision(self._granules), self._labels.leaves
        whole = np.array([0, len(order)], np.uint32)
        if (leaves == leaves[0]).all():
            return _Partition(order[:0], whole[:1], order, self._sum(order, whole))
        return _Partition(order, whole, order[:0], 0)

    def _refined(self, partition: _Partition, attributes: Sequence[int], tally: Tally | None = None) -> _Partition:
        for group in joined(map(self._column, attributes)):
            if self._stopped or not len(partition.order):
                break
            after = split(group, self._labels.leaves, partition.order, partition.starts)
            left = partition.left + self._theta_of_gone(after)
            partition = _Partition(after.order, after.starts, after.gone, left)
        if tally:
            tally.add(len(attributes))
        return partition

    def _is_settled(self, partition: _Partition) -> bool:
        # every class left has more than one leaf key, and so more than one label, but under SCE
        several = self._labels.labels is not self._labels.leaves
        return not len(partition.order) or (several and not self._mixed(partition))

    def _mixed(self, partition: _Partition) -> int:
        # objects in classes of more than one label
        counts = self._granules.counts
        return kernels.mixed_objects(self._labels.labels, counts, partition.order, partition.starts)

    def _theta_of_gone(self, after: Split) -> int:
        # in a consistent table all classes that leave are pure
        if self.consistent and self._measure.kind != OWN:
            return -self._weight(after.gone) if self._measure.kind == PURE else 0
        return self._sum(after.gone, after.gone_starts)

    def _weight(self, rows: Index) -> int:
        return int(self._granules.counts[rows].sum())

    def _theta_of(self, partition: _Partition) -> int:
        return partition.left + self._sum(partition.order, partition.starts)

    def _sum(self, order: Index, starts: Index) -> int:
        # Σ θ(E) over the classes of a partition
        return self._scorer.total(self._granules.classes, self._granules.counts, order, starts)

    def _arrange(self, function: Callable[[Any], T], blocks: Sequence[Any], cells: int) -> list[T]:
        tally = Tally(self.watch, len(blocks), len(blocks) * lanes.LANES) if self.watch else None
        return self._in_threads(function, blocks, cells, (lambda _: tally.add(1)) if tally else None)

    def _in_threads(
        self, function: Callable[[Any], T], tasks: Sequence[Any], cells: int, note: Callable[[T], None] | None = None
    ) -> list[T]:
        if self._n_jobs == 1 or len(tasks) < 2 or cells < _SHARED:
            done: Iterable[T] = map(function, tasks)
        else:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._n_jobs)
            done = self._pool.map(function, tasks)
        if note is None:
            return list(done)
        found = []
        for one in done:
            note(one)
            found.append(one)
        return found


def _by_decision(granules: Granules) -> Index:
    # numpy sorts 16-bit keys in linear time
    keys = granules.classes.astype(np.uint16) if granules.n_classes <= 1 << 16 else granules.classes
    return np.argsort(keys, kind="stable").astype(np.uint32)
