"""Partitions on the GPU: from a stable sort and prefix sums to the refinement of U/R, all on the device.

Rows stand class by class, decision by decision, as in the local engine. To refine, rows are sorted by (class, value),
stably, so that decisions stay together; new classes whose rows share one leaf key are left out. Only sizes and sums
come back to the host.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numba import cuda

from plar.engines.cuda.kernels import Device, add_f, grid, kernel
from plar.engines.cuda.sorting import THREADS, Sorter
from plar.engines.kernels import add_words
from plar.partition import Array

__all__ = ["Codes", "Partition", "Refinery"]


_LOW = np.int64(0xFFFFFFFF)
_32 = np.int64(32)

#: blocks of `_judge`: few, since all threads add to the same places
_JUDGES = 128
#: what `_judge` counts: objects that stay, objects not settled, rows of the largest class that stays, Θ of the classes
#: that stay and of those that leave in three words each; then rows, classes and runs that stay
_OBJECTS, _UNSETTLED, _LARGEST, _KEPT, _GONE, _ROWS, _CLASSES, _RUNS = 0, 1, 2, 3, 6, 9, 10, 11
_FACTS = 12


class Codes(NamedTuple):
    """Where the codes of a column lie: row i at ``array[i * stride + first]``."""

    array: Device
    stride: int
    first: int
    n_values: int


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """A partition on the device of the rows that can still change Θ; see `plar.engines.local`.

    Parameters
    ----------
    order : (rows,) device array
        Rows, class by class, decision by decision.
    weights : (rows,) device array
        How many objects each of them stands for.
    class_of, run_of : (rows,) device arrays
        The class and the run (part of a class with one decision) at each place of `order`.
    starts, runs : device arrays
        Where each class and each run begins, with a sentinel.
    rows, classes, n_runs, largest, objects : int
        How many of them; `largest` is the most rows of a class.
    unsettled : int
        Objects in classes of more than one label.
    left, theta : int
        Θ of the classes that have left, and of all.
    """

    order: Device
    weights: Device
    class_of: Device
    run_of: Device
    starts: Device
    runs: Device
    rows: int
    classes: int
    n_runs: int
    largest: int
    objects: int
    unsettled: int
    left: int
    theta: int


@kernel
def _begin_keys(
    class_of: Array, n: int, order: Array, codes: Array, stride: int, first: int, n_values: int, keys: Array,
    places: Array,
) -> None:  # fmt: skip
    i = cuda.grid(1)
    if i < n:
        code = np.uint64(codes[np.int64(order[i]) * stride + first])
        keys[i] = np.uint64(class_of[i]) * np.uint64(n_values) + code
        places[i] = i


@kernel
def _append_codes(keys: Array, n: int, order: Array, codes: Array, stride: int, first: int, n_values: int) -> None:
    i = cuda.grid(1)
    if i < n:
        code = np.uint64(codes[np.int64(order[i]) * stride + first])
        keys[i] = keys[i] * np.uint64(n_values) + code


@kernel
def _mark(
    keys: Array,
    places: Array,
    n: int,
    order: Array,
    decisions: Array,
    counts: Array,
    rows: Array,
    marks: Array,
    weights: Array,
    mixed: Array,
    unequal: Array,
    facts: Array,
) -> None:
    # marks: whether a class (low half) and a run (high half) begin here
    i = cuda.grid(1)
    if i < n:
        row = order[places[i]]
        begins = i == 0 or keys[i] != keys[i - 1]
        decides = begins or decisions[row] != decisions[order[places[i - 1]]]
        rows[i] = row
        marks[i] = np.int64(begins) + (np.int64(decides) << _32)
        weights[i] = counts[row]
        mixed[i] = 0
        unequal[i] = 0
    elif i == n:
        marks[i] = 0
        weights[i] = 0
        for k in range(_FACTS):
            facts[k] = 0


@kernel
def _find_segments(
    rows: Array,
    n: int,
    marks: Array,
    leaves: Array,
    labels: Array,
    starts: Array,
    runs: Array,
    mixed: Array,
    unequal: Array,
) -> None:
    # After the prefix sums: where classes and runs begin, which classes hold several leaf keys, which several labels.
    i = cuda.grid(1)
    if i < n:
        before, after = marks[i], marks[i + 1]
        c, r = (after & _LOW) - 1, (after >> _32) - 1
        if (after & _LOW) > (before & _LOW):
            starts[c] = i
        else:
            if leaves[rows[i]] != leaves[rows[i - 1]]:
                mixed[c] = 1
            if labels[rows[i]] != labels[rows[i - 1]]:
                unequal[c] = 1
        if (after >> _32) > (before >> _32):
            runs[r] = i
    elif i == n:
        starts[marks[n] & _LOW] = n
        runs[marks[n] >> _32] = n


@kernel
def _judge(
    kind: int,
    n: int,
    marks: Array,
    weights: Array,
    starts: Array,
    runs: Array,
    mixed: Array,
    unequal: Array,
    table: Array,
    anchors: Array,
    kept_rows: Array,
    kept_runs: Array,
    facts: Array,
) -> None:
    # Step i takes row, class and run number i. θ of a class of one run is 0, but for PR.
    found = cuda.local.array(_ROWS, np.int64)
    for k in range(_ROWS):
        found[k] = 0
    for i in range(cuda.grid(1), n + 1, cuda.gridsize(1)):
        if i == n:
            kept_rows[i] = 0
            kept_runs[i] = 0
            break
        before, after = marks[i], marks[i + 1]
        stays = np.int64(mixed[(after & _LOW) - 1])
        begins, decides = (after & _LOW) - (before & _LOW), (after >> _32) - (before >> _32)
        kept_rows[i] = stays + ((stays * begins) << _32)
        kept_runs[i] = stays * decides
        if i < (marks[n] & _LOW):
            low, high = np.int64(starts[i]), np.int64(starts[i + 1])
            size = weights[high] - weights[low]
            one_run = (marks[high] >> _32) - (marks[low] >> _32) == 1
            target = _KEPT if mixed[i] != 0 else _GONE
            if mixed[i] != 0:
                found[_OBJECTS] += size
                found[_LARGEST] = max(found[_LARGEST], high - low)
            if unequal[i] != 0:
                found[_UNSETTLED] += size
            if kind == 0 and one_run:
                found[target] -= size
            elif kind != 0 and not one_run:
                add_f(kind, np.uint64(size), 1, table, anchors, found, target)
        if kind != 0 and i < (marks[n] >> _32):
            low, high = np.int64(runs[i]), np.int64(runs[i + 1])
            c = (marks[low + 1] & _LOW) - 1
            target = _KEPT if mixed[c] != 0 else _GONE
            if (marks[starts[c + 1]] >> _32) - (marks[starts[c]] >> _32) > 1:
                add_f(kind, np.uint64(weights[high] - weights[low]), -1, table, anchors, found, target)
    for k in range(_ROWS):
        if k == _LARGEST:
            cuda.atomic.max(facts, k, found[k])
        elif found[k] != 0:
            cuda.atomic.add(facts, k, found[k])


@kernel
def _tell_sizes(n: int, kept_rows: Array, kept_runs: Array, facts: Array) -> None:
    facts[_ROWS] = kept_rows[n] & _LOW
    facts[_CLASSES] = kept_rows[n] >> _32
    facts[_RUNS] = kept_runs[n]


@kernel
def _keep(
    rows: Array,
    n: int,
    objects: Array,
    kept_rows: Array,
    kept_runs: Array,
    order: Array,
    weights: Array,
    class_of: Array,
    run_of: Array,
    starts: Array,
    runs: Array,
) -> None:
    i = cuda.grid(1)
    if i < n:
        before, after = kept_rows[i], kept_rows[i + 1]
        place = before & _LOW
        if (after & _LOW) > place:
            c, r = (after >> _32) - 1, kept_runs[i + 1] - 1
            order[place] = rows[i]
            weights[place] = objects[i + 1] - objects[i]
            class_of[place] = c
            run_of[place] = r
            if (after >> _32) > (before >> _32):
                starts[c] = place
            if kept_runs[i + 1] > kept_runs[i]:
                runs[r] = place
    elif i == n:
        starts[kept_rows[n] >> _32] = kept_rows[n] & _LOW
        runs[kept_runs[n]] = kept_rows[n] & _LOW


class Refinery:
    """Refines partitions of some granules; holds what does not change, and memory to work in.

    Parameters
    ----------
    n : int
        Rows of the largest partition.
    counter : numpy type
        Of weights.
    kind : int
        Of the measure.
    decisions, counts, leaves, labels, table, anchors : arrays
        By row, and f of the measure; they go to the device.
    """

    def __init__(
        self,
        n: int,
        counter: Any,
        kind: int,
        *,
        decisions: Array,
        counts: Array,
        leaves: Array,
        labels: Array,
        table: Device,
        anchors: Device,
    ) -> None:
        self._counter, self._kind = counter, kind
        self._decisions, self._counts = cuda.to_device(decisions), cuda.to_device(counts)
        self._leaves = cuda.to_device(leaves)
        self._labels = self._leaves if labels is leaves else cuda.to_device(labels)
        self._table, self._anchors = table, anchors
        self._sorter = Sorter(n)
        self._rows, self._starts, self._runs = (cuda.device_array(n + 1, np.uint32) for _ in range(3))
        self._mixed, self._unequal = (cuda.device_array(n, np.uint8) for _ in range(2))
        #: pairs of arrays whose prefix sums are taken together
        self._marked, self._kept = (cuda.device_array(2 * (n + 1), np.int64) for _ in range(2))
        self._marks, self._objects = self._marked[: n + 1], self._marked[n + 1 :]
        self._kept_rows, self._kept_runs = self._kept[: n + 1], self._kept[n + 1 :]
        self._facts = cuda.device_array(_FACTS, np.int64)

    def start(self, order: Array) -> Partition:
        """Put one class on the device; the rows are given decision by decision."""
        n = len(order)
        nothing, whole = np.zeros(n, np.uint32), np.array([0, n], np.uint32)
        # a refinement by a column of one value finds the runs and all that is to be counted
        return self.refine(
            Partition(
                order=cuda.to_device(order),
                weights=cuda.to_device(nothing),
                class_of=cuda.to_device(nothing),
                run_of=cuda.to_device(nothing),
                starts=cuda.to_device(whole),
                runs=cuda.to_device(whole),
                rows=n,
                classes=1,
                n_runs=1,
                largest=n,
                objects=0,
                unsettled=0,
                left=0,
                theta=0,
            ),
            [Codes(cuda.to_device(nothing), 1, 0, 1)],
        )

    def refine(self, partition: Partition, columns: Sequence[Codes]) -> Partition:
        """Split every class by the values of some columns together."""
        n = partition.rows
        head, *tail = columns
        _begin_keys[grid(n, THREADS)](partition.class_of, n, partition.order, *head, *self._sorter.room())
        for codes in tail:
            _append_codes[grid(n, THREADS)](self._sorter.room()[0], n, partition.order, *codes)
        distinct = partition.classes * math.prod(codes.n_values for codes in columns)
        keys, places = self._sorter.sorted(n, (distinct - 1).bit_length())
        every = grid(n + 1, THREADS)
        found = self._rows, n
        flags = self._mixed, self._unequal
        segments = self._starts, self._runs
        by_row = partition.order, self._decisions, self._counts
        _mark[every](keys, places, n, *by_row, self._rows, self._marks, self._objects, *flags, self._facts)
        self._sorter.scan(self._marked, n + 1, 2)
        _find_segments[every](*found, self._marks, self._leaves, self._labels, *segments, *flags)
        f = self._table, self._anchors
        kept = self._kept_rows, self._kept_runs
        some = min(every[0], _JUDGES), THREADS
        _judge[some](self._kind, n, self._marks, self._objects, *segments, *flags, *f, *kept, self._facts)
        self._sorter.scan(self._kept, n + 1, 2)
        _tell_sizes[1, 1](n, *kept, self._facts)
        facts = self._facts.copy_to_host()
        rows, classes, runs = (int(facts[place]) for place in (_ROWS, _CLASSES, _RUNS))
        left = partition.left + add_words(facts[_GONE : _GONE + 3])
        # allocating takes longer than many a kernel: one piece for all but the weights
        memory = cuda.device_array(3 * rows + classes + runs + 2, np.uint32)
        ends = np.cumsum([rows, rows, rows, classes + 1, runs + 1]).tolist()
        order, class_of, run_of, starts, run_starts = (memory[i:j] for i, j in pairwise([0, *ends]))
        after = Partition(
            order=order,
            weights=cuda.device_array(rows, self._counter),
            class_of=class_of,
            run_of=run_of,
            starts=starts,
            runs=run_starts,
            rows=rows,
            classes=classes,
            n_runs=runs,
            largest=int(facts[_LARGEST]),
            objects=int(facts[_OBJECTS]),
            unsettled=int(facts[_UNSETTLED]),
            left=left,
            theta=left + add_words(facts[_KEPT : _KEPT + 3]),
        )
        if rows:
            target = after.order, after.weights, after.class_of, after.run_of, after.starts, after.runs
            _keep[every](*found, self._objects, *kept, *target)
        return after
