"""Partitions on the GPU: from a stable sort and prefix sums to the refinement of U/R, all on the device.

Rows are ordered by class, then by decision, as in the local engine. To refine, rows are sorted by (class, value),
stably, so that decisions stay together; new classes whose rows share one leaf key are dropped. Only sizes and sums
come back to the host.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numba import cuda

from plar.engines.cuda.kernels import Device, add_f, grid, kernel
from plar.engines.cuda.sorting import THREADS, Sorter
from plar.engines.local.kernels import F, add_words
from plar.granules.granules import Granules
from plar.grouping.partition import Array
from plar.uncertainty.labels import Labels

_LOW = np.int64(0xFFFFFFFF)
_32 = np.int64(32)

#: blocks of `_judge`: few, since all threads add to the same addresses
_JUDGES = 128
#: what `_judge` counts: rows, classes and runs that stay, objects not settled, Θ of the classes that stay and of those
#: that leave in three words each, rows of the largest class that stays
_ROWS, _CLASSES, _RUNS, _UNSETTLED, _KEPT, _GONE, _LARGEST = 0, 1, 2, 3, 4, 7, 10
_FACTS = 11
#: several arrays in one, since the time of a launch grows with the number of its arguments
_ROW, _START, _RUN = 0, 1, 2
_OBJECTS = 1
_MIXED, _UNEQUAL = 0, 1


class Codes(NamedTuple):
    """Where the codes of a column are: row i at ``array[i * stride + first]``."""

    array: Device
    stride: int
    first: int
    n_values: int


class Partition(NamedTuple):
    """A partition on the device of the rows that can still change Θ; see `plar.engines.local.engine`."""

    #: rows, class by class, decision by decision, and how many objects each stands for
    order: Device
    weights: Device
    #: the class and the run (part of a class with one decision) at each place of `order`
    class_of: Device
    run_of: Device
    #: where each class and each run begins, with a sentinel
    starts: Device
    runs: Device
    #: rows of the largest class
    largest: int
    #: objects in classes of more than one label
    unsettled: int
    #: Θ of the dropped classes, and of all
    left: int
    theta: int

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.order)


@kernel
def _append_codes(
    before: Array, order: Array, codes: Array, stride: int, first: int, n_values: int, keys: Array, places: Array
) -> None:
    # keys by class, or by class and some columns, with the codes of one more column
    i = cuda.grid(1)
    if i < len(order):
        code = np.uint64(codes[np.int64(order[i]) * stride + first])
        keys[i] = np.uint64(before[i]) * np.uint64(n_values) + code
        places[i] = i


@kernel
def _mark(
    keys: Array, places: Array, order: Array, by_row: Any, found: Array, marked: Array, flags: Array, facts: Array
) -> None:
    # marks: whether a class (low half) and a run (high half) begin here
    decisions, counts = by_row
    rows, marks, weights = found[_ROW], marked[0], marked[_OBJECTS]
    i, n = cuda.grid(1), len(order)
    if i < n:
        row = order[places[i]]
        begins = i == 0 or keys[i] != keys[i - 1]
        decides = begins or decisions[row] != decisions[order[places[i - 1]]]
        rows[i] = row
        marks[i] = np.int64(begins) + (np.int64(decides) << _32)
        weights[i] = counts[row]
        flags[0, i] = 0
        flags[1, i] = 0
    elif i == n:
        marks[i] = 0
        weights[i] = 0
        for k in range(_FACTS):
            facts[k] = 0


@kernel
def _find_segments(n: int, leaves: Array, labels: Array, found: Array, marked: Array, flags: Array) -> None:
    # After the prefix sums: where classes and runs begin, which classes hold several leaf keys, which several labels.
    rows, starts, runs, marks = found[_ROW], found[_START], found[_RUN], marked[0]
    i = cuda.grid(1)
    if i < n:
        before, after = marks[i], marks[i + 1]
        c, r = (after & _LOW) - 1, (after >> _32) - 1
        if (after & _LOW) > (before & _LOW):
            starts[c] = i
        else:
            if leaves[rows[i]] != leaves[rows[i - 1]]:
                flags[_MIXED, c] = 1
            if labels[rows[i]] != labels[rows[i - 1]]:
                flags[_UNEQUAL, c] = 1
        if (after >> _32) > (before >> _32):
            runs[r] = i
    elif i == n:
        starts[marks[n] & _LOW] = n
        runs[marks[n] >> _32] = n


@kernel
def _judge(f: F, n: int, found: Array, marked: Array, flags: Array, kept: Array, facts: Array) -> None:
    # Step i takes row, class and run number i. θ of a class of one run is 0, except for PR.
    kind = f[0]
    starts, runs, marks, weights, mixed = found[_START], found[_RUN], marked[0], marked[_OBJECTS], flags[_MIXED]
    own = cuda.local.array(_FACTS, np.int64)
    for k in range(_FACTS):
        own[k] = 0
    for i in range(cuda.grid(1), n + 1, cuda.gridsize(1)):
        if i == n:
            kept[0, i] = 0
            kept[1, i] = 0
            break
        before, after = marks[i], marks[i + 1]
        stays = np.int64(mixed[(after & _LOW) - 1])
        begins, decides = (after & _LOW) - (before & _LOW), (after >> _32) - (before >> _32)
        kept[0, i] = stays + ((stays * begins) << _32)
        kept[1, i] = stays * decides
        own[_ROWS] += stays
        own[_CLASSES] += stays * begins
        own[_RUNS] += stays * decides
        if i < (marks[n] & _LOW):
            low, high = np.int64(starts[i]), np.int64(starts[i + 1])
            size = weights[high] - weights[low]
            one_run = (marks[high] >> _32) - (marks[low] >> _32) == 1
            target = _KEPT if mixed[i] != 0 else _GONE
            if mixed[i] != 0:
                own[_LARGEST] = max(own[_LARGEST], high - low)
            if flags[_UNEQUAL, i] != 0:
                own[_UNSETTLED] += size
            if kind == 0 and one_run:
                own[target] -= size
            elif kind != 0 and not one_run:
                add_f(f, np.uint64(size), 1, own, target)
        if kind != 0 and i < (marks[n] >> _32):
            low, high = np.int64(runs[i]), np.int64(runs[i + 1])
            c = (marks[low + 1] & _LOW) - 1
            target = _KEPT if mixed[c] != 0 else _GONE
            if (marks[starts[c + 1]] >> _32) - (marks[starts[c]] >> _32) > 1:
                add_f(f, np.uint64(weights[high] - weights[low]), -1, own, target)
    for k in range(_LARGEST):
        if own[k] != 0:
            cuda.atomic.add(facts, k, own[k])
    cuda.atomic.max(facts, _LARGEST, own[_LARGEST])


@kernel
def _keep(n: int, found: Array, marked: Array, kept: Array, weights: Array, memory: Array) -> None:
    # memory: order, class_of, run_of, starts and runs of the new partition, one after another
    i, n_rows, n_classes = cuda.grid(1), len(weights), kept[0, n] >> _32
    starts, runs = 3 * n_rows, 3 * n_rows + n_classes + 1
    if i < n:
        before, after = kept[0, i], kept[0, i + 1]
        place = before & _LOW
        if (after & _LOW) > place:
            c, r = (after >> _32) - 1, kept[1, i + 1] - 1
            memory[place] = found[_ROW, i]
            memory[n_rows + place] = c
            memory[2 * n_rows + place] = r
            weights[place] = marked[_OBJECTS, i + 1] - marked[_OBJECTS, i]
            if (after >> _32) > (before >> _32):
                memory[starts + c] = place
            if kept[1, i + 1] > kept[1, i]:
                memory[runs + r] = place
    elif i == n:
        memory[starts + n_classes] = n_rows
        memory[runs + kept[1, n]] = n_rows


class Refinery:
    """Refines partitions of some granules; holds what does not change, and working memory.

    The arrays of f are on the device; weights are of the numpy type `counter`.
    """

    def __init__(self, granules: Granules, labels: Labels, f: F, counter: Any) -> None:
        n = len(granules)
        self._f, self._counter = f, counter
        self._by_row = cuda.to_device(granules.decision_codes), cuda.to_device(granules.counts)
        leaves = cuda.to_device(labels.leaves)
        self._labels = leaves, leaves if labels.labels is labels.leaves else cuda.to_device(labels.labels)
        self._sorter = Sorter(n)
        #: rows in the new order, where classes and runs begin; marks and objects before each row; what is known of
        #: classes; which rows, classes and runs stay
        self._found = cuda.device_array((3, n + 1), np.uint32)
        self._marked, self._kept = (cuda.device_array((2, n + 1), np.int64) for _ in range(2))
        self._flags = cuda.device_array((2, n), np.uint8)
        self._facts = cuda.device_array(_FACTS, np.int64)

    def start(self, order: Array) -> Partition:
        """Put one class on the device; the rows are given decision by decision."""
        nothing, whole = (cuda.to_device(a) for a in (np.zeros(len(order), np.uint32), np.zeros(2, np.uint32)))
        one = Partition(cuda.to_device(order), nothing, nothing, nothing, whole, whole, 0, 0, 0, 0)
        # refining by a column of one value finds the runs and all counts
        return self.refine(one, [Codes(nothing, 1, 0, 1)])

    def refine(self, partition: Partition, columns: Sequence[Codes]) -> Partition:
        """Split every class by the values of some columns together."""
        n, order, before = partition.rows, partition.order, partition.class_of
        for codes in columns:
            _append_codes[grid(n, THREADS)](before, order, *codes, *self._sorter.room())
            before = self._sorter.room()[0]
        distinct = (len(partition.starts) - 1) * math.prod(codes.n_values for codes in columns)
        keys, places = self._sorter.sorted(n, (distinct - 1).bit_length())
        every, work = grid(n + 1, THREADS), (self._found, self._marked, self._flags)
        _mark[every](keys, places, order, self._by_row, *work, self._facts)
        self._sorter.scan(self._marked, n + 1)
        _find_segments[every](n, *self._labels, *work)
        _judge[min(every[0], _JUDGES), THREADS](self._f, n, *work, self._kept, self._facts)
        self._sorter.scan(self._kept, n + 1)
        facts = self._facts.copy_to_host()
        rows, classes, runs = facts[:_UNSETTLED].tolist()
        left = partition.left + add_words(facts[_GONE : _GONE + 3])
        theta = left + add_words(facts[_KEPT : _KEPT + 3])
        # allocation takes longer than many kernels: one piece for all but the weights
        memory = cuda.device_array(3 * rows + classes + runs + 2, np.uint32)
        weights = cuda.device_array(rows, self._counter)
        if rows:
            _keep[every](n, self._found, self._marked, self._kept, weights, memory)
        ends = np.cumsum([0, rows, rows, rows, classes + 1, runs + 1]).tolist()
        order, class_of, run_of, starts, run_starts = (memory[i:j] for i, j in pairwise(ends))
        largest, unsettled = int(facts[_LARGEST]), int(facts[_UNSETTLED])
        return Partition(order, weights, class_of, run_of, starts, run_starts, largest, unsettled, left, theta)
