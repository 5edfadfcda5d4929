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

from plar.engines.cuda.kernels import DeviceArray, add_f, grid, kernel
from plar.engines.cuda.sorting import THREADS, Sorter
from plar.engines.local.kernels import F, as_int
from plar.granules.granules import Granules
from plar.grouping.partition import Array
from plar.measures import PURE
from plar.uncertainty.labels import Labels

_LOW = np.int64(0xFFFFFFFF)
_32 = np.int64(32)

#: blocks of `_judge`: few, since all threads add to the same addresses
_N_JUDGES = 128

# What `_judge` counts, and where:
#: rows, classes and runs that stay
_ROWS = 0
_CLASSES = 1
_RUNS = 2
#: objects that are not settled
_UNSETTLED = 3
#: Θ of the classes that stay, in three words
_THETA_KEPT = 4
#: Θ of the classes that are dropped, in three words
_THETA_DROPPED = 7
#: rows of the largest class that stays
_LARGEST = 10
_N_COUNTS = 11

# Several arrays are passed as one, since the time of a launch grows with the number of its arguments.
# Rows of the array of the new order:
#: its rows
_ROW = 0
#: where classes begin
_START = 1
#: where runs begin
_RUN = 2

# Rows of the array of sums before each place:
#: of marks where classes and runs begin
_MARKS = 0
#: of objects
_OBJECTS = 1

# Rows of the array of flags of the classes:
#: whether it stays, since it has several drop keys
_STAYS = 0
#: whether it has several labels
_IS_UNSETTLED = 1


class DeviceCodes(NamedTuple):
    """Where the codes of a column are: row i at ``array[i * stride + first]``."""

    array: DeviceArray
    stride: int
    first: int
    n_values: int


class DevicePartition(NamedTuple):
    """A partition on the device of the rows that can still change Θ; see `plar.engines.local.engine`."""

    #: rows, class by class, decision by decision, and how many objects each stands for
    order: DeviceArray
    weights: DeviceArray
    #: the class and the run (part of a class with one decision) at each place of `order`
    class_of: DeviceArray
    run_of: DeviceArray
    #: where each class and each run begins, with a sentinel
    starts: DeviceArray
    runs: DeviceArray
    #: rows of the largest class
    largest: int
    #: objects in classes of more than one label
    unsettled: int
    #: Θ of the dropped classes, and of all
    theta_dropped: int
    theta: int

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.order)

    @property
    def rows(self) -> tuple[DeviceArray, DeviceArray, DeviceArray, DeviceArray]:
        """What a kernel needs to know of the rows: their order, weights, classes and runs."""
        return self.order, self.weights, self.class_of, self.run_of

    @property
    def segments(self) -> tuple[DeviceArray, ...]:
        """The same, and where classes and runs begin."""
        return (*self.rows, self.starts, self.runs)


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
    keys: Array, places: Array, order: Array, by_row: Any, layout: Array, marked: Array, flags: Array, totals: Array
) -> None:
    # marks: whether a class (low half) and a run (high half) begin here
    decisions, counts = by_row
    rows = layout[_ROW]
    marks = marked[_MARKS]
    objects = marked[_OBJECTS]
    i = cuda.grid(1)
    n = len(order)
    if i < n:
        row = order[places[i]]
        begins = i == 0 or keys[i] != keys[i - 1]
        decides = begins or decisions[row] != decisions[order[places[i - 1]]]
        rows[i] = row
        marks[i] = np.int64(begins) + (np.int64(decides) << _32)
        objects[i] = counts[row]
        flags[0, i] = 0
        flags[1, i] = 0
    elif i == n:
        marks[i] = 0
        objects[i] = 0
        for k in range(_N_COUNTS):
            totals[k] = 0


@kernel
def _find_segments(n: int, drop_keys: Array, labels: Array, layout: Array, marked: Array, flags: Array) -> None:
    # After the prefix sums: where classes and runs begin, which classes hold several drop keys, which several labels.
    rows = layout[_ROW]
    starts = layout[_START]
    runs = layout[_RUN]
    marks = marked[_MARKS]
    i = cuda.grid(1)
    if i < n:
        before = marks[i]
        after = marks[i + 1]
        c = (after & _LOW) - 1
        r = (after >> _32) - 1
        if (after & _LOW) > (before & _LOW):
            starts[c] = i
        else:
            if drop_keys[rows[i]] != drop_keys[rows[i - 1]]:
                flags[_STAYS, c] = 1
            if labels[rows[i]] != labels[rows[i - 1]]:
                flags[_IS_UNSETTLED, c] = 1
        if (after >> _32) > (before >> _32):
            runs[r] = i
    elif i == n:
        starts[marks[n] & _LOW] = n
        runs[marks[n] >> _32] = n


@kernel
def _judge(f: F, n: int, layout: Array, marked: Array, flags: Array, kept_marks: Array, totals: Array) -> None:
    # Step i takes row, class and run number i. θ of a class of one run is 0, except for PR.
    kind = f[0]
    starts = layout[_START]
    runs = layout[_RUN]
    stays_of = flags[_STAYS]
    marks = marked[_MARKS]
    objects = marked[_OBJECTS]
    counts = cuda.local.array(_N_COUNTS, np.int64)
    for k in range(_N_COUNTS):
        counts[k] = 0
    for i in range(cuda.grid(1), n + 1, cuda.gridsize(1)):
        if i == n:
            kept_marks[0, i] = 0
            kept_marks[1, i] = 0
            break
        before = marks[i]
        after = marks[i + 1]
        stays = np.int64(stays_of[(after & _LOW) - 1])
        begins = (after & _LOW) - (before & _LOW)
        decides = (after >> _32) - (before >> _32)
        kept_marks[0, i] = stays + ((stays * begins) << _32)
        kept_marks[1, i] = stays * decides
        counts[_ROWS] += stays
        counts[_CLASSES] += stays * begins
        counts[_RUNS] += stays * decides
        if i < (marks[n] & _LOW):
            low = np.int64(starts[i])
            high = np.int64(starts[i + 1])
            size = objects[high] - objects[low]
            one_run = (marks[high] >> _32) - (marks[low] >> _32) == 1
            target = _THETA_KEPT if stays_of[i] != 0 else _THETA_DROPPED
            if stays_of[i] != 0:
                counts[_LARGEST] = max(counts[_LARGEST], high - low)
            if flags[_IS_UNSETTLED, i] != 0:
                counts[_UNSETTLED] += size
            if kind == PURE and one_run:
                counts[target] -= size
            elif kind != PURE and not one_run:
                add_f(f, np.uint64(size), 1, counts, target)
        if kind != PURE and i < (marks[n] >> _32):
            low = np.int64(runs[i])
            high = np.int64(runs[i + 1])
            c = (marks[low + 1] & _LOW) - 1
            target = _THETA_KEPT if stays_of[c] != 0 else _THETA_DROPPED
            if (marks[starts[c + 1]] >> _32) - (marks[starts[c]] >> _32) > 1:
                add_f(f, np.uint64(objects[high] - objects[low]), -1, counts, target)
    for k in range(_LARGEST):
        if counts[k] != 0:
            cuda.atomic.add(totals, k, counts[k])
    cuda.atomic.max(totals, _LARGEST, counts[_LARGEST])


@kernel
def _keep(n: int, layout: Array, marked: Array, kept_sums: Array, weights: Array, memory: Array) -> None:
    # memory: order, class_of, run_of, starts and runs of the new partition, one after another
    i = cuda.grid(1)
    n_rows = len(weights)
    n_classes = kept_sums[0, n] >> _32
    starts = 3 * n_rows
    runs = 3 * n_rows + n_classes + 1
    if i < n:
        before = kept_sums[0, i]
        after = kept_sums[0, i + 1]
        place = before & _LOW
        if (after & _LOW) > place:
            c = (after >> _32) - 1
            r = kept_sums[1, i + 1] - 1
            memory[place] = layout[_ROW, i]
            memory[n_rows + place] = c
            memory[2 * n_rows + place] = r
            weights[place] = marked[_OBJECTS, i + 1] - marked[_OBJECTS, i]
            if (after >> _32) > (before >> _32):
                memory[starts + c] = place
            if kept_sums[1, i + 1] > kept_sums[1, i]:
                memory[runs + r] = place
    elif i == n:
        memory[starts + n_classes] = n_rows
        memory[runs + kept_sums[1, n]] = n_rows


class Refinery:
    """Refines partitions of some granules; holds what does not change, and working memory.

    The arrays of f are on the device; weights are of the numpy type `counter`.
    """

    def __init__(self, granules: Granules, labels: Labels, f: F, counter: Any) -> None:
        n = len(granules)
        self._f = f
        self._counter = counter
        self._by_row = cuda.to_device(granules.decision_codes), cuda.to_device(granules.counts)
        drop_keys = cuda.to_device(labels.drop_keys)
        self._keys_and_labels = (
            drop_keys,
            drop_keys if labels.labels is labels.drop_keys else cuda.to_device(labels.labels),
        )
        self._sorter = Sorter(n)
        self._layout = cuda.device_array((3, n + 1), np.uint32)
        self._marked = cuda.device_array((2, n + 1), np.int64)
        self._flags = cuda.device_array((2, n), np.uint8)
        #: which rows, classes and runs stay
        self._kept = cuda.device_array((2, n + 1), np.int64)
        self._totals = cuda.device_array(_N_COUNTS, np.int64)

    def start(self, order: Array) -> DevicePartition:
        """Put one class on the device; the rows are given decision by decision."""
        zeros = cuda.to_device(np.zeros(len(order), np.uint32))
        ends = cuda.to_device(np.zeros(2, np.uint32))
        one_class = DevicePartition(
            order=cuda.to_device(order),
            weights=zeros,
            class_of=zeros,
            run_of=zeros,
            starts=ends,
            runs=ends,
            largest=0,
            unsettled=0,
            theta_dropped=0,
            theta=0,
        )
        # refining by a column of one value finds the runs and all counts
        return self.refine(one_class, [DeviceCodes(zeros, 1, 0, 1)])

    def refine(self, partition: DevicePartition, columns: Sequence[DeviceCodes]) -> DevicePartition:
        """Split every class by the values of some columns together."""
        n = partition.n_rows
        keys, places = self._sorted(partition, columns)
        every = grid(n + 1, THREADS)
        work = self._layout, self._marked, self._flags
        _mark[every](keys, places, partition.order, self._by_row, *work, self._totals)
        self._sorter.scan(self._marked, n + 1)
        _find_segments[every](n, *self._keys_and_labels, *work)
        _judge[min(every[0], _N_JUDGES), THREADS](self._f, n, *work, self._kept, self._totals)
        self._sorter.scan(self._kept, n + 1)
        totals = self._totals.copy_to_host()
        n_rows, n_classes, n_runs = totals[:_UNSETTLED].tolist()
        theta_dropped = partition.theta_dropped + as_int(totals[_THETA_DROPPED : _THETA_DROPPED + 3])
        # allocation takes longer than many kernels: one piece for all but the weights
        memory = cuda.device_array(3 * n_rows + n_classes + n_runs + 2, np.uint32)
        weights = cuda.device_array(n_rows, self._counter)
        if n_rows:
            _keep[every](n, self._layout, self._marked, self._kept, weights, memory)
        ends = np.cumsum([0, n_rows, n_rows, n_rows, n_classes + 1, n_runs + 1]).tolist()
        order, class_of, run_of, starts, runs = (memory[low:high] for low, high in pairwise(ends))
        return DevicePartition(
            order=order,
            weights=weights,
            class_of=class_of,
            run_of=run_of,
            starts=starts,
            runs=runs,
            largest=int(totals[_LARGEST]),
            unsettled=int(totals[_UNSETTLED]),
            theta_dropped=theta_dropped,
            theta=theta_dropped + as_int(totals[_THETA_KEPT : _THETA_KEPT + 3]),
        )

    def _sorted(self, partition: DevicePartition, columns: Sequence[DeviceCodes]) -> tuple[DeviceArray, DeviceArray]:
        """Sort the rows by class and values: their keys, and where they were."""
        n = partition.n_rows
        before = partition.class_of
        for codes in columns:
            _append_codes[grid(n, THREADS)](before, partition.order, *codes, *self._sorter.buffers())
            before, _ = self._sorter.buffers()
        n_keys = (len(partition.starts) - 1) * math.prod(codes.n_values for codes in columns)
        return self._sorter.sorted(n, (n_keys - 1).bit_length())
