"""The local engine: numba kernels, threads without the GIL.

Rows stand class of U/R by class, decision by decision. Classes that no refinement can change leave for good.
Columns of few values are also kept as blocks of 64 lanes, physically in that order, so that a pass is sequential;
the others are gathered column by column.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numba
import numpy as np
from numpy.typing import NDArray

from plar.engines import kernels, lanes
from plar.engines.base import Inner
from plar.errors import TableError
from plar.granules import Granules
from plar.measures import OWN, PURE, Measure, f_table, log_anchors
from plar.partition import Index, Split, distinct, joined, split

__all__ = ["LocalEngine", "LocalEvaluation"]

T = TypeVar("T")
#: runs a function over tasks that read so many cells in all
InThreads: TypeAlias = Callable[[Callable[[Any], T], Sequence[Any], int], list[T]]
#: below this many cells a pass is too short to share
_SHARED = 1 << 20
#: blocks of lanes pay from here on
_LANE_COLUMNS, _LANE_CELLS = 12, 1 << 17


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """One machine, all its cores.

    Parameters
    ----------
    n_jobs : int, optional
        Threads; by default as many as this process may use. The result does not depend on it.
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
        if self.n_jobs is not None and self.n_jobs < 1:
            raise TableError(f"n_jobs must be 1 or more, or None for all cores. Got {self.n_jobs} instead.")

    def open(self, granules: Granules, measure: Measure) -> LocalEvaluation:
        """Hold the granules ready for one search."""
        return LocalEvaluation(granules, measure, self.n_jobs or _usable_cores(), self.lanes)


class _Partition(NamedTuple):
    """A partition of some rows; each class stands decision by decision, and none is left that cannot change."""

    order: Index
    starts: Index
    #: where each row stood in the partition that this one refines
    places: Index
    #: objects that the rows stand for
    objects: int
    #: Θ of the classes that have left
    left: int


class LocalEvaluation:
    """U/R and the Θ of every way to refine it; see `plar.engines.base.Evaluation`."""

    def __init__(self, granules: Granules, measure: Measure, n_jobs: int, use_lanes: bool | None) -> None:
        self._granules = granules
        self._coded = granules.coded
        self._measure = measure
        self._n_jobs = n_jobs
        #: its threads end with the evaluation
        self._pool: ThreadPoolExecutor | None = None
        self._own = _own_kernel(measure.theta) if measure.kind == OWN else None
        self._table = f_table(measure.kind, granules.n_objects)
        self._anchors = log_anchors() if granules.n_objects >= len(self._table) else np.zeros((1, 2), np.uint64)
        self._label_rows()
        #: U/∅
        self._root = self._one_class()
        self._now = self._root
        #: Θ(D|R∪{a}) of the candidates for the present R, as far as they are known
        self._known: dict[int, int] = {}
        self.theta = self._theta_of(self._now)
        self._selected: set[int] = set()
        self._use_lanes = use_lanes
        self._blocks: _Blocks | None = None

    def _label_rows(self) -> None:
        # Merging classes of U/C leaves Θ unchanged exactly when they carry one label; a class of U/R whose rows
        # share a leaf key has the same integer θ however it is refined. A pure class of U/C is one granule.
        g, kind = self._granules, self._measure.kind
        order, starts = distinct(self._coded, len(g))
        sizes = np.diff(starts)
        atom_of = np.empty(len(g), np.uint32)
        atom_of[order] = np.repeat(np.arange(len(sizes), dtype=np.uint32), sizes)
        impure = np.repeat(sizes > 1, sizes)
        rows = order[impure]
        self.consistent = not len(rows)
        self.theta_all = self._sum(rows, np.append(0, np.cumsum(sizes[sizes > 1])).astype(np.uint32))
        if kind == PURE:
            self.theta_all -= int(g.counts[order[~impure]].sum())
        elif kind == OWN:
            self.theta_all = self._sum(order, starts)
        base = np.uint32(g.n_classes)
        leaves = g.classes.astype(np.uint32)
        if kind == OWN and not self._measure.drop_pure:
            leaves = atom_of
        elif kind == PURE:
            leaves[rows] = base
        else:
            leaves[rows] = base + atom_of[rows]
        self._leaves = self._labels = leaves
        if self._measure.name == "SCE" and kind != OWN and len(rows):
            self._labels = leaves.copy()
            self._labels[rows] = base + _proportions(g, rows, sizes[sizes > 1])

    @property
    def active(self) -> int:
        """Objects in classes of U/R that are not settled."""
        now = self._now
        if self._own is not None:  # a user's measure has no labels: its equality is by value
            return 0 if self.theta == self.theta_all else max(1, now.objects)
        if self._labels is self._leaves:
            return now.objects
        return kernels.mixed_objects(self._labels, self._granules.counts, now.order, now.starts)

    def without_each(self, attributes: Sequence[int] | None = None) -> list[Inner]:
        """Θ(D|B∖{a}) for every a of B, by divide and conquer: |B| log |B| refinements of melting partitions."""
        if attributes is None:
            attributes = range(len(self._granules.columns))
        found: dict[int, Inner] = {}
        # Many-valued attributes first: they melt the partition fastest.
        falling = sorted(attributes, key=lambda a: -self._coded[a][1])
        if len(falling) < 2:
            self._leave_out(falling, self._root, found)
        else:
            halves = falling[0::2], falling[1::2]
            self._in_threads(
                lambda half: self._leave_out(halves[half], self._refined(self._root, halves[1 - half]), found),
                (0, 1),
                len(self._root.order) * len(falling),
            )
        return [found[a] for a in attributes]

    def _leave_out(self, attributes: Sequence[int], partition: _Partition, found: dict[int, Inner]) -> None:
        # `partition` is refined by all attributes but these
        if not len(partition.order) or (self._labels is not self._leaves and self._is_settled(partition)):
            found |= dict.fromkeys(attributes, Inner(self.theta_all, True))
        elif len(attributes) == 1:
            theta = self._theta_of(partition)
            found[attributes[0]] = Inner(theta, theta == self.theta_all if self._own else False)
        elif attributes:
            halves = attributes[0::2], attributes[1::2]
            for left_out, others in (halves, halves[::-1]):
                self._leave_out(left_out, self._refined(partition, others), found)

    def _is_settled(self, partition: _Partition) -> bool:
        return not kernels.mixed_objects(self._labels, self._granules.counts, partition.order, partition.starts)

    def with_each(self, candidates: Sequence[int]) -> list[int]:
        """Θ(D|R∪{a}) for every candidate."""
        now, g = self._now, self._granules
        thetas = dict.fromkeys(candidates, now.left)
        if not len(now.order):
            return list(thetas.values())
        if self._own is not None:
            found = self._in_threads(self._own_with, candidates, len(now.order) * len(candidates))
            return [now.left + theta for theta in found]
        weights = np.empty(len(now.order), np.int64)
        runs, class_runs = np.empty(len(now.order) + 1, np.uint32), np.empty(len(now.starts), np.uint32)
        n_runs = kernels.find_runs(g.classes, g.counts, now.order, now.starts, weights, runs, class_runs)
        runs = runs[: n_runs + 1]
        if self._blocks is None:
            self._blocks = _Blocks(g, now.order, self._use_lanes, self._in_threads)
        wanted = set(candidates)
        columns = [a for a in candidates if a not in self._blocks.attributes]
        blocks = self._blocks.up_to_date(wanted, self._selected, self._in_threads)
        cells = len(now.order) * (len(columns) + lanes.LANES * len(blocks))
        parts = _class_ranges(now.starts, 1 if cells < _SHARED else self._n_jobs, len(columns) + len(blocks))

        def one_column(task: tuple[int, slice]) -> tuple[int, int]:
            a, part = task
            words = np.zeros(3, np.int64)
            values = g.columns[a][now.order].astype(np.uint32, copy=False)
            n_values = self._coded[a][1]
            inner = class_runs[part]
            if self._measure.kind == PURE:
                kernels.add_pure(values, weights, runs, inner, n_values, words)
            else:
                kernels.add_cells(
                    self._measure.kind, values, weights, runs, inner, n_values, self._table, self._anchors, words
                )
            return a, kernels.add_words(words)

        def one_block(task: tuple[_Block, slice]) -> list[tuple[int, int]]:
            block, part = task
            words = np.zeros((lanes.LANES, 3), np.int64)
            rows, n_values, inner = block.rows, np.uint64(block.n_values), class_runs[part]
            if self._measure.kind == PURE:
                lanes.add_pure(rows, weights, runs, inner, n_values, words, *lanes.scratch())
            else:
                of_classes, of_runs = now.starts[part], runs[inner[0] : int(inner[-1]) + 1]
                for segments, sign in ((of_classes, 1), (of_runs, -1)):
                    lanes.add_cells(
                        self._measure.kind,
                        rows,
                        weights,
                        segments,
                        sign,
                        n_values,
                        self._table,
                        self._anchors,
                        words,
                        *lanes.scratch(),
                    )
            return [(a, kernels.add_words(w)) for a, w in zip(block.attributes, words, strict=False) if a in wanted]

        for a, theta in self._in_threads(one_column, [(a, p) for a in columns for p in parts], cells):
            thetas[a] += theta
        for found_in in self._in_threads(one_block, [(b, p) for b in blocks for p in parts], cells):
            for a, theta in found_in:
                thetas[a] += theta
        self._known = thetas
        return [thetas[a] for a in candidates]

    def select(self, attribute: int) -> int:
        """R ← R ∪ {a}; returns Θ(D|R)."""
        before, self._now = self._now, self._refined(self._now, [attribute])
        self._selected.add(attribute)
        known = self._known.get(attribute)
        self.theta = self._theta_of(self._now) if known is None else known
        self._known = {}
        if self._blocks is not None and self._now is not before:
            self._blocks.moved(self._now.places)
        return self.theta

    def _one_class(self) -> _Partition:
        order = _by_decision(self._granules)
        whole = np.array([0, len(order)], np.uint32)
        if (self._leaves == self._leaves[0]).all():
            return _Partition(order[:0], whole[:1], order[:0], 0, self._sum(order, whole))
        return _Partition(order, whole, order, self._granules.n_objects, 0)

    def _refined(self, partition: _Partition, attributes: Iterable[int]) -> _Partition:
        for group in joined([self._coded[a] for a in attributes]):
            if not len(partition.order):
                break
            after = split(group, self._leaves, partition.order, partition.starts)
            objects = partition.objects - int(self._granules.counts[after.gone].sum())
            left = partition.left + self._sum_of_gone(after)
            partition = _Partition(after.order, after.starts, after.places, objects, left)
        return partition

    def _sum_of_gone(self, after: Split) -> int:
        # Σ θ(E) over the classes that left; in a consistent table all are pure, and that is 0 but for PR
        if self.consistent and self._own is None:
            return -int(self._granules.counts[after.gone].sum()) if self._measure.kind == PURE else 0
        return self._sum(after.gone, after.gone_starts)

    def _theta_of(self, partition: _Partition) -> int:
        return partition.left + self._sum(partition.order, partition.starts)

    def _sum(self, order: Index, starts: Index) -> int:
        # Σ θ(E) over the classes of a partition
        g, words = self._granules, np.zeros(3, np.int64)
        if self._own is not None:
            self._own(g.classes, g.counts, order, starts, np.zeros(g.n_classes, np.int64), words)
        else:
            kernels.partition_theta(
                self._measure.kind, g.classes, g.counts, order, starts, self._table, self._anchors, words
            )
        return kernels.add_words(words)

    def _own_with(self, attribute: int) -> int:
        return self._theta_of(self._refined(self._now, [attribute])) - self._now.left

    def _in_threads(self, function: Callable[[Any], T], tasks: Sequence[Any], cells: int) -> list[T]:
        if self._n_jobs == 1 or len(tasks) < 2 or cells < _SHARED:
            return [function(task) for task in tasks]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._n_jobs)
        return list(self._pool.map(function, tasks))


class _Block:
    """Up to 64 attributes of few values, a lane each."""

    __slots__ = ("attributes", "n_values", "rows")

    def __init__(self, attributes: Sequence[int], n_values: int, rows: lanes.Block) -> None:
        self.attributes = attributes
        self.n_values = n_values
        self.rows = rows


class _Blocks:
    """The blocks of lanes, brought into the order of U/R before they are read."""

    def __init__(self, granules: Granules, order: Index, wanted: bool | None, in_threads: InThreads[Any]) -> None:
        #: where each row of the present order stands in the blocks; None if the blocks are in that order
        self._places: Index | None = order
        few = [a for a, n in enumerate(granules.cardinalities) if n <= lanes.MAX_VALUES]
        if wanted is None:
            wanted = len(few) >= _LANE_COLUMNS and len(few) * len(order) >= _LANE_CELLS
        few = sorted(few, key=lambda a: granules.cardinalities[a]) if wanted else []
        groups = [few[i : i + lanes.LANES] for i in range(0, len(few), lanes.LANES)]

        def build(group: Sequence[int]) -> _Block:
            rows = lanes.aligned(len(granules))
            lanes.interleave(np.stack([granules.columns[a] for a in group]), rows)
            return _Block(group, max(granules.cardinalities[a] for a in group), rows)

        self._blocks: list[_Block] = in_threads(build, groups, len(few) * len(granules))
        self.attributes = frozenset(few)
        #: memory to move the next block to, as much as there are threads
        self._spare: SimpleQueue[lanes.Block] = SimpleQueue()

    def moved(self, places: Index) -> None:
        """Note that row i of the new order is row places[i] of the last one."""
        self._places = places if self._places is None else self._places[places]

    def up_to_date(self, wanted: Set[int], selected: Set[int], in_threads: InThreads[Any]) -> list[_Block]:
        """Bring the blocks into the present order, but for those that are all selected; give the wanted ones."""
        self._blocks = [b for b in self._blocks if not selected.issuperset(b.attributes)]
        found = [b for b in self._blocks if not wanted.isdisjoint(b.attributes)]
        places, self._places = self._places, None
        if places is None:
            return found

        def move(block: _Block) -> None:
            try:
                out = self._spare.get_nowait()
            except Empty:
                out = lanes.aligned(len(places))
            target = out[: len(places)]
            lanes.permute(block.rows, places, target)
            block.rows, old = target, block.rows
            self._spare.put(old)

        in_threads(move, self._blocks, len(places) * lanes.LANES * len(self._blocks))
        return found


def _by_decision(granules: Granules) -> Index:
    # numpy sorts 16-bit keys in linear time
    keys = granules.classes.astype(np.uint16) if granules.n_classes <= 1 << 16 else granules.classes
    return np.argsort(keys, kind="stable").astype(np.uint32)


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _proportions(granules: Granules, rows: Index, sizes: NDArray[Any]) -> Index:
    """Number the impure classes of U/C so that proportional decision counts share a number, for each row."""
    ends = np.cumsum(sizes.astype(np.intp))
    begins = np.append(0, ends[:-1])
    divisors = np.repeat(np.gcd.reduceat(granules.counts[rows], begins), sizes)
    sorted_rows = np.lexsort((granules.classes[rows], np.repeat(np.arange(len(sizes)), sizes)))
    keys = np.stack([granules.classes[rows].astype(np.int64), granules.counts[rows] // divisors], axis=1)[sorted_rows]
    seen: dict[bytes, int] = {}
    numbers = [seen.setdefault(keys[b:e].tobytes(), len(seen)) for b, e in zip(begins, ends, strict=True)]
    return np.repeat(np.array(numbers, np.uint32), sizes)


def _class_ranges(starts: Index, n_jobs: int, n_tasks: int) -> list[slice]:
    """Cut the classes into ranges of about equally many rows, so that there are tasks for every thread."""
    parts = 1 if n_tasks >= 2 * n_jobs else -(-2 * n_jobs // max(n_tasks, 1))
    cuts = np.searchsorted(starts, np.linspace(0, int(starts[-1]), parts + 1))
    cuts = np.unique(np.concatenate([[0], cuts[1:-1], [len(starts) - 1]]))
    return [slice(int(a), int(b) + 1) for a, b in zip(cuts[:-1], cuts[1:], strict=True)]


@lru_cache(maxsize=64)
def _own_kernel(function: Callable[..., Any]) -> Callable[..., None]:
    """Compile the sum of a user's θ over the classes of a partition."""
    theta = function if hasattr(function, "py_func") else numba.njit(function)

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
