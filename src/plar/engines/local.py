"""The local engine: numba kernels, threads without the GIL.

Rows stand class of U/R by class, decision by decision. Classes that no refinement can change leave for good. Columns of
few values are kept as blocks of 64 lanes, physically in that order, so that a pass is sequential; the others are
gathered column by column.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from numbers import Integral
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np

from plar.engines import kernels, lane_sums, lanes
from plar.engines.base import Inner
from plar.engines.blocks import Block, Blocks
from plar.errors import TableError
from plar.granules import Granules
from plar.labels import label_granules
from plar.measures import OWN, PURE, Measure, f_table, log_anchors
from plar.partition import Index, Split, joined, split

__all__ = ["LocalEngine", "LocalEvaluation"]

T = TypeVar("T")
#: below this many cells a pass is too short to share
_SHARED = 1 << 20


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """One machine, all its cores.

    Parameters
    ----------
    n_jobs : int, optional
        Threads; by default, or with -1, as many as this process may use. The result does not depend on it.
    lanes : bool, optional
        Whether columns of few values are evaluated 64 at a time; by default where it pays.

    Examples
    --------
    >>> import plar
    >>> plar.reduce({"a": [0, 1], "d": [0, 1]}, "d", engine=plar.engines.LocalEngine(n_jobs=1)).attributes
    ('a',)
    """

    n_jobs: int | None = None
    lanes: bool | None = None
    name = "local"

    def __post_init__(self) -> None:
        jobs = self.n_jobs
        if jobs is not None and (not isinstance(jobs, Integral) or isinstance(jobs, bool) or (jobs < 1 and jobs != -1)):
            raise TableError(f"n_jobs must be 1 or more, or None or -1 for all cores. Got {jobs!r} instead.")

    def open(self, granules: Granules, measure: Measure) -> LocalEvaluation:
        """Hold the granules ready for one search."""
        jobs = _usable_cores() if self.n_jobs in (None, -1) else int(self.n_jobs or 1)
        return LocalEvaluation(granules, measure, jobs, self.lanes)


class _Partition(NamedTuple):
    """A partition of some rows; each class stands decision by decision, and none is left that cannot change."""

    order: Index
    starts: Index
    #: where each row stood in the partition that this one refines
    places: Index
    #: the rows that have left since then
    gone: Index
    #: Θ of the classes that have left
    left: int


class LocalEvaluation:
    """U/R and the Θ of every way to refine it; see `plar.engines.base.Evaluation`."""

    def __init__(self, granules: Granules, measure: Measure, n_jobs: int, use_lanes: bool | None) -> None:
        self._granules = granules
        self._coded = granules.coded
        self._kind = measure.kind
        self._own = _own_kernel(measure.name, measure.theta) if measure.kind == OWN else None
        self._table = f_table(measure.kind, granules.n_objects)
        self._anchors = log_anchors() if granules.n_objects >= len(self._table) else np.zeros((1, 2), np.uint64)
        self._labels = label_granules(granules, measure)
        self.consistent = self._labels.consistent
        self.theta_all = self._theta_of_all()
        #: U/∅
        self._root = self._one_class()
        #: U/R, and the objects in it
        self._now, self._objects = self._root, self._weight(self._root.order)
        self.theta = self._theta_of(self._now)
        self._selected: set[int] = set()
        #: Θ(D|R∪{a}) of the candidates for the present R, as far as they are known
        self._known: dict[int, int] = {}
        self._use_lanes = use_lanes
        self._blocks: Blocks | None = None
        self._n_jobs = n_jobs
        #: its threads end with the evaluation
        self._pool: ThreadPoolExecutor | None = None

    @property
    def active(self) -> int:
        """Objects in classes of U/R that are not settled."""
        if self._own is not None:  # a user's measure has no labels: its equality is by value
            return 0 if self.theta == self.theta_all else max(1, self._objects)
        # a class of more than one leaf key has more than one label, but under SCE
        return self._objects if self._labels.labels is self._labels.leaves else self._unsettled(self._now)

    def without_each(self, attributes: Sequence[int] | None = None) -> list[Inner]:
        """Θ(D|B∖{a}) for every a of B, by divide and conquer: |B| log |B| refinements of melting partitions."""
        if attributes is None:
            attributes = range(len(self._coded))
        found: dict[int, Inner] = {}
        # Many-valued attributes first: they melt the partition fastest.
        falling = sorted(attributes, key=lambda a: -self._coded[a][1])
        halves = falling[0::2], falling[1::2]

        def leave_out(half: int) -> None:
            self._leave_out(halves[half], self._refined(self._root, halves[1 - half]), found)

        self._in_threads(leave_out, (0, 1), len(self._root.order) * len(falling))
        return [found[a] for a in attributes]

    def _leave_out(self, attributes: Sequence[int], partition: _Partition, found: dict[int, Inner]) -> None:
        # `partition` is refined by all of B but these
        if self._is_settled(partition):
            found |= dict.fromkeys(attributes, Inner(self.theta_all, True))
        elif len(attributes) == 1:
            theta = self._theta_of(partition)
            found[attributes[0]] = Inner(theta, self._own is not None and theta == self.theta_all)
        elif attributes:
            halves = attributes[0::2], attributes[1::2]
            for left_out, others in (halves, halves[::-1]):
                self._leave_out(left_out, self._refined(partition, others), found)

    def with_each(self, candidates: Sequence[int]) -> list[int]:
        """Θ(D|R∪{a}) for every candidate."""
        now = self._now
        thetas = dict.fromkeys(candidates, now.left)
        if self._own is not None:
            found = self._in_threads(self._own_theta_with, candidates, len(now.order) * len(candidates))
            thetas = dict(zip(candidates, found, strict=True))
        elif len(now.order):
            for attribute, theta in self._scored(set(candidates)):
                thetas[attribute] += theta
        self._known = thetas
        return [thetas[a] for a in candidates]

    def _scored(self, wanted: set[int]) -> Iterable[tuple[int, int]]:
        # parts of Θ(D|R∪{a}), to be added up by attribute
        now, g = self._now, self._granules
        if self._blocks is None:
            self._blocks = Blocks(g, now.order, self._use_lanes, self._in_threads)
        columns = [a for a in wanted if a not in self._blocks.attributes]
        blocks = self._blocks.up_to_date(wanted, self._selected, self._in_threads)
        cells = len(now.order) * (len(columns) + lanes.LANES * len(blocks))
        parts = _class_ranges(now.starts, 1 if cells < _SHARED else self._n_jobs, len(columns) + len(blocks))
        weights = np.empty(len(now.order), np.int64)
        runs, class_runs = np.empty(len(now.order) + 1, np.uint32), np.empty(len(now.starts), np.uint32)
        n_runs = kernels.find_runs(g.classes, g.counts, now.order, now.starts, weights, runs, class_runs)
        runs, rows_a_run = runs[: n_runs + 1], np.uint64(len(now.order) // n_runs)

        def column_part(task: tuple[int, slice]) -> list[tuple[int, int]]:
            attribute, part = task
            column, n_values = self._coded[attribute]
            values, words = column[now.order].astype(np.uint32, copy=False), np.zeros(3, np.int64)
            if self._kind == PURE:
                kernels.add_pure(values, weights, runs, class_runs[part], n_values, words)
            else:
                rows = values, weights, runs, class_runs[part]
                kernels.add_cells(self._kind, *rows, n_values, self._table, self._anchors, words)
            return [(attribute, kernels.add_words(words))]

        def block_part(task: tuple[Block, slice]) -> list[tuple[int, int]]:
            block, part = task
            n_values, words = np.uint64(block.n_values), np.zeros((lanes.LANES, 3), np.int64)
            inner, room = class_runs[part], lanes.scratch()
            if self._kind == PURE:
                lane_sums.add_pure(block.rows, weights, runs, inner, n_values, words, *room)
            elif not lanes.pairs_are_cheaper(rows_a_run, rows_a_run, n_values):
                rows = block.rows, weights, runs, inner
                lane_sums.add_nested(self._kind, *rows, n_values, self._table, self._anchors, words, *room[:2])
            else:
                for segments, sign in ((now.starts[part], 1), (runs[inner[0] : int(inner[-1]) + 1], -1)):
                    segmented = block.rows, weights, segments, sign
                    lane_sums.add_cells(self._kind, *segmented, n_values, self._table, self._anchors, words, *room)
            each = zip(block.attributes, words, strict=False)
            return [(a, kernels.add_words(w)) for a, w in each if a in wanted]

        done = self._in_threads(column_part, [(a, part) for a in columns for part in parts], cells)
        done += self._in_threads(block_part, [(b, part) for b in blocks for part in parts], cells)
        return (score for scores in done for score in scores)

    def select(self, attribute: int) -> int:
        """R ← R ∪ {a}; returns Θ(D|R)."""
        before, self._now = self._now, self._refined(self._now, [attribute])
        if self._now is not before:
            self._objects -= self._weight(self._now.gone)
            if self._blocks is not None:
                self._blocks.moved(self._now.places)
        known = self._known.get(attribute)
        self.theta = self._theta_of(self._now) if known is None else known
        self._known = {}
        self._selected.add(attribute)
        return self.theta

    def _one_class(self) -> _Partition:
        order, leaves = _by_decision(self._granules), self._labels.leaves
        whole = np.array([0, len(order)], np.uint32)
        if (leaves == leaves[0]).all():
            return _Partition(order[:0], whole[:1], order[:0], order, self._sum(order, whole))
        return _Partition(order, whole, order, order[:0], 0)

    def _refined(self, partition: _Partition, attributes: Iterable[int]) -> _Partition:
        for group in joined(self._coded[a] for a in attributes):
            if not len(partition.order):
                break
            after = split(group, self._labels.leaves, partition.order, partition.starts)
            left = partition.left + self._theta_of_gone(after)
            partition = _Partition(after.order, after.starts, after.places, after.gone, left)
        return partition

    def _is_settled(self, partition: _Partition) -> bool:
        if not len(partition.order):
            return True
        return self._labels.labels is not self._labels.leaves and not self._unsettled(partition)

    def _unsettled(self, partition: _Partition) -> int:
        # objects in classes of more than one label
        counts = self._granules.counts
        return kernels.mixed_objects(self._labels.labels, counts, partition.order, partition.starts)

    def _theta_of_all(self) -> int:
        found = self._labels
        if self._own is not None:
            return self._sum(found.order, found.starts)
        theta = self._sum(found.order[found.n_pure :], found.starts[found.n_pure :] - np.uint32(found.n_pure))
        if self._kind == PURE:
            theta -= self._weight(found.order[: found.n_pure])
        return theta

    def _theta_of_gone(self, after: Split) -> int:
        # in a consistent table all classes that leave are pure
        if self.consistent and self._own is None:
            return -self._weight(after.gone) if self._kind == PURE else 0
        return self._sum(after.gone, after.gone_starts)

    def _weight(self, rows: Index) -> int:
        return int(self._granules.counts[rows].sum())

    def _theta_of(self, partition: _Partition) -> int:
        return partition.left + self._sum(partition.order, partition.starts)

    def _own_theta_with(self, attribute: int) -> int:
        return self._theta_of(self._refined(self._now, [attribute]))

    def _sum(self, order: Index, starts: Index) -> int:
        # Σ θ(E) over the classes of a partition
        g, words = self._granules, np.zeros(3, np.int64)
        if self._own is not None:
            self._own(g.classes, g.counts, order, starts, np.zeros(g.n_classes, np.int64), words)
        else:
            rows = g.classes, g.counts, order, starts
            kernels.partition_theta(self._kind, *rows, self._table, self._anchors, words)
        return kernels.add_words(words)

    def _in_threads(self, function: Callable[[Any], T], tasks: Sequence[Any], cells: int) -> list[T]:
        if self._n_jobs == 1 or len(tasks) < 2 or cells < _SHARED:
            return [function(task) for task in tasks]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._n_jobs)
        return list(self._pool.map(function, tasks))


def _by_decision(granules: Granules) -> Index:
    # numpy sorts 16-bit keys in linear time
    keys = granules.classes.astype(np.uint16) if granules.n_classes <= 1 << 16 else granules.classes
    return np.argsort(keys, kind="stable").astype(np.uint32)


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _class_ranges(starts: Index, n_jobs: int, n_tasks: int) -> list[slice]:
    """Cut the classes into ranges of about equally many rows, so that there are tasks for every thread."""
    parts = 1 if n_tasks >= 2 * n_jobs else -(-2 * n_jobs // max(n_tasks, 1))
    cuts = np.searchsorted(starts, np.linspace(0, int(starts[-1]), parts + 1))
    cuts = np.unique(np.concatenate([[0], cuts[1:-1], [len(starts) - 1]]))
    return [slice(int(low), int(high) + 1) for low, high in pairwise(cuts)]


@lru_cache(maxsize=64)
def _own_kernel(name: str, function: Callable[..., Any]) -> Callable[..., None]:
    """Compile the sum of a user's θ over the classes of a partition."""
    theta: Any = function if hasattr(function, "py_func") else numba.njit(function)
    try:
        theta.compile((numba.int64[::1],))
    except numba.core.errors.NumbaError as error:
        reason = next((line for line in str(error).splitlines() if line.strip()), "no reason given").strip()
        raise TableError(f"numba cannot compile the θ of measure {name!r}: {reason}") from error
    returned = theta.nopython_signatures[-1].return_type
    if not isinstance(returned, (numba.types.Integer, numba.types.Boolean)):
        raise TableError(
            f"The θ of measure {name!r} must return a whole number. It returns {returned}; scale it and round, and "
            "let the normaliser take the scale away."
        )

    def add(classes: Index, counts: Any, order: Index, starts: Index, tally: Any, words: Any) -> None:
        for c in range(len(starts) - 1):
            for i in range(starts[c], starts[c + 1]):
                tally[classes[order[i]]] += counts[order[i]]
            value = np.int64(theta(tally))
            words[0] += value & 0xFFFFFFFF
            words[1] += value >> 32
            for i in range(starts[c], starts[c + 1]):
                tally[classes[order[i]]] = 0

    compiled: Callable[..., None] = numba.njit(nogil=True)(add)
    return compiled
