"""Kernels of the CUDA engine: Θ of every candidate from rows ordered by class, then by decision.

As in the local engine, Θ(D|R∪{a}) is a sum over the cells (class, value of a) minus one over the cells (run,
value of a). Columns of few values lie row by row, four candidates in a 32-bit word (*lanes*). A thread takes
one word of a *piece*, which is a stretch of whole classes, and counts in its own part of shared memory: no
two threads share a counter, so nothing is atomic and nothing waits. A class of more rows than a piece is cut;
what its parts counted is added up in device memory, and f is applied to it afterwards. Columns of many values
are counted in `hashing`.

Rows are fetched through `order`: a row of many lanes is long, so fetching is as fast as reading on, and nothing is
moved when U/R is refined. Every index is unsigned, as a signed one costs a wrap-around check.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import numba
import numpy as np
from numba import cuda

from plar.engines.local.kernels import F, plain_add_f
from plar.grouping.partition import Array

#: an array on the device
DeviceArray: TypeAlias = Any

U = np.uint64
#: candidates in a word
LANES_PER_WORD = 4
#: words of the sums of all of them
_SUM_WORDS = 3 * LANES_PER_WORD
#: the stride of a thread's counters: each warp has one bank per thread, so that no two threads need the same bank
_WARP_THREADS = 32

_0, _1, _2, _4, _5, _8, _31, _255 = map(U, (0, 1, 2, 4, 5, 8, 31, 255))
#: from the counters of a value to those of the next
_VALUE = U(LANES_PER_WORD * _WARP_THREADS)
#: from the counter of a lane to that of the next
_LANE = U(_WARP_THREADS)
#: classes of up to this many rows are compared row by row
_PAIRED_ROWS = 4
#: rows of a long run fetched at a time
_BATCH_ROWS = 8


def kernel(function: Callable[..., None]) -> Any:
    """Compile a kernel at its first launch; later processes load it from numba's cache."""
    return cuda.jit(cache=True)(function)


def device(function: Callable[..., Any]) -> Any:
    """Compile a function that kernels call."""
    return cuda.jit(device=True)(function)


#: the local engine's own
add_f = device(plain_add_f)


def grid(n: int, threads: int) -> tuple[int, int]:
    """Blocks and threads of a launch with a thread for each of n."""
    return -(-n // threads), threads


def shared_bytes(threads: int, n_values: int, counter: Any) -> int:
    """Shared memory of a block of `cells_kernel`: counters of run and class for each lane and value."""
    n_counters = -(-threads // _WARP_THREADS) * _WARP_THREADS * 2 * LANES_PER_WORD * n_values
    return n_counters * int(np.dtype(counter).itemsize)


@kernel
def clear(values: Array, n: int, value: Any) -> None:
    """Set the first n elements to one value."""
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        values[i] = value


@kernel
def interleave(columns: Array, n: int, width: int, x: Array, stride: int, first: int) -> None:
    """Put columns of bytes, one after another, into lanes: words `first` and following of every row."""
    i = cuda.grid(1)
    words = (width + LANES_PER_WORD - 1) // LANES_PER_WORD
    if i < n * words:
        row = i // words
        word = i % words
        packed = np.uint32(0)
        # lanes without a column are zero, since kernels count them too
        for k in range(min(LANES_PER_WORD, width - word * LANES_PER_WORD)):
            packed |= np.uint32(columns[(word * LANES_PER_WORD + k) * n + row]) << np.uint32(8 * k)
        x[row * stride + first + word] = packed


@device
def add_up(sum3: Array, sums: Array, first: U) -> None:
    """Add the three words of a thread's sum to those of a candidate."""
    for k in range(3):
        if sum3[k] != 0:
            cuda.atomic.add(sums, first + U(k), sum3[k])


@device
def _cut(row: U, n: U, piece: U, class_of: Array, starts: Array) -> U:
    # Where a piece begins that should begin at this row: classes of up to a piece's rows are not cut.
    if row >= n:
        return n
    c = U(class_of[row])
    start = U(starts[c])
    return row if U(starts[c + _1]) - start > piece else start


@device
def _fetch(lanes: Any, i: U) -> U:
    # the word of four lanes at a place of the partition
    x, stride, word, order = lanes
    return U(x[order[i] * stride + word])


@device
def _counter(row: U, k: int) -> U:
    # where the counter of lane k is that a row adds to
    return ((row >> U(8 * k)) & _255) * _VALUE + U(k) * _LANE


@device
def _count(size: int, lanes: Any, i: U, weights: Array, counts: Array, at: U) -> None:
    # some rows from place i on, all fetched before the first is counted, so that their loads overlap
    batch = cuda.local.array(_BATCH_ROWS, np.uint64)
    for j in range(size):
        batch[j] = _fetch(lanes, i + U(j))
    for j in range(size):
        for k in range(LANES_PER_WORD):
            counts[at + _counter(batch[j], k)] += weights[i + U(j)]


@device
def _pure_sum(e: Any, n: Any, impure: Any) -> Any:
    # the weight of a cell with that of one more run: it is pure only while one of the two is 0
    if n == 0:
        return e
    return n if e == 0 else impure


@device
def _leave(is_run: bool, modes: Any, f: F, counts: Array, at: U, further: U, lane: int, sums: Array) -> None:
    # Without a divergent branch: the counter of a run is added to that of its class and taken out of the sum;
    # that of a class is added to the sum.
    pure, exact, impure = modes
    table = f[1]
    n = counts[at]
    counts[at] = 0
    if is_run:
        e = counts[at + further]
        counts[at + further] = _pure_sum(e, n, impure) if pure else e + n
    if pure:
        if not is_run:
            sums[3 * lane] -= np.int64(0) if n == impure else np.int64(n)
    elif exact:
        add_f(f, U(n), -1 if is_run else 1, sums, 3 * lane)
    elif is_run:
        sums[3 * lane] -= table[U(n)]
    else:
        sums[3 * lane] += table[U(n)]


@device
def _leave_all(
    is_run: bool, modes: Any, f: F, counts: Array, at: U, n_values: U, lanes: Any, first: U, stop: U, sums: Array
) -> None:
    # all counters of a run or class, or only those that its rows have added to, if they are fewer
    further = n_values * _VALUE
    if (stop - first) * _2 > n_values:
        for v in range(n_values):
            for k in range(LANES_PER_WORD):
                _leave(is_run, modes, f, counts, at + v * _VALUE + U(k) * _LANE, further, k, sums)
    else:
        for j in range(first, stop):
            row = _fetch(lanes, j)
            for k in range(LANES_PER_WORD):
                _leave(is_run, modes, f, counts, at + _counter(row, k), further, k, sums)


@device
def _pair_up(
    pure: bool, table: Array, lanes: Any, weights: Array, run_of: Array, start: U, end: U, sums: Array
) -> None:
    # A class of up to four rows, each compared with those before it: a row of weight w that has weight c of equals
    # before it in the class, d of them in its run, adds f(c + w) − f(c) − f(d + w) + f(d). Absent rows
    # have weight 0.
    rows = cuda.local.array(_PAIRED_ROWS, np.uint64)
    w = cuda.local.array(_PAIRED_ROWS, np.uint64)
    runs = cuda.local.array(_PAIRED_ROWS, np.uint32)
    for j in range(_PAIRED_ROWS):
        at = min(start + U(j), end - _1)
        rows[j] = _fetch(lanes, at)
        w[j] = U(weights[at]) if start + U(j) < end else _0
        if pure:
            runs[j] = run_of[at]
    apart = U(run_of[end - _1]) - U(run_of[start]) == end - start - _1
    for j in range(0 if pure else 1, _PAIRED_ROWS):
        if start + U(j) >= end:
            return
        weight = np.uint32(w[j])  # 32 bits are enough where f has a table
        for k in range(LANES_PER_WORD):
            c = np.uint32(0)
            d = np.uint32(0)
            conflict = False
            value = (rows[j] >> U(8 * k)) & _255
            for i in range(_PAIRED_ROWS):
                same = (rows[i] >> U(8 * k)) & _255 == value
                if pure:
                    conflict |= same and runs[i] != runs[j]
                elif i < j:
                    c = np.uint32(c + (np.uint32(w[i]) if same else np.uint32(0)))
                    if not apart and run_of[start + U(i)] == run_of[start + U(j)]:
                        d = np.uint32(d + (np.uint32(w[i]) if same else np.uint32(0)))
            if pure:
                sums[3 * k] -= np.int64(_0 if conflict else w[j])
            elif apart:
                sums[3 * k] += table[np.uint32(c + weight)] - table[c] - table[weight]
            else:
                sums[3 * k] += table[np.uint32(c + weight)] - table[c] - table[np.uint32(d + weight)] + table[d]


@cache
def cells_kernel(pure: bool, counter: Any, exact: bool) -> Any:
    """Make the kernel that adds Θ(D|R∪{a}) for lanes.

    `pure`: for PR, which counts the weight of cells (class, value) that lie in one run. `counter`: the numpy
    type of weights and counters. `exact`: whether f goes beyond its table and sums beyond 64 bits, in three
    words.
    """
    zero = counter(0)
    impure = counter(np.iinfo(counter).max)
    counter_type = numba.from_dtype(np.dtype(counter))
    modes = pure, exact, impure

    @kernel
    def cells(f: F, block: Any, rows: Any, piece: U, n_values: U, cut: Array, sums: Array) -> None:
        x, stride, n_words = block
        order, weights, class_of, run_of, starts, runs = rows
        table = f[1]
        counts = cuda.shared.array(0, counter_type)
        sum_ = cuda.local.array(_SUM_WORDS, np.int64)
        thread = U(cuda.grid(1))
        n = U(len(order))
        number = thread // n_words
        word = thread % n_words
        i = _cut(number * piece, n, piece, class_of, starts)
        last = _cut((number + _1) * piece, n, piece, class_of, starts)
        if i >= last:
            return
        lanes = (x, stride, word, order)
        t = U(cuda.threadIdx.x)
        # this thread's counters of the current run, and the offset to those of the class
        mine = (t >> _5) * n_values * _2 * _VALUE + (t & _31)
        further = n_values * _VALUE
        for j in range(_2 * n_values * _4):
            counts[mine + j * _LANE] = zero
        for k in range(_SUM_WORDS):
            sum_[k] = 0
        # where the sums of runs begin in `cut`, after those of classes
        parts = ((n + piece - _1) // piece) * n_values * n_words * _4
        c = U(class_of[i])
        r = U(run_of[i])
        while i < last:
            start = U(starts[c])
            end = U(starts[c + _1])
            is_cut = end - start > piece
            stop = min(end, last)
            first = i
            if not exact and end - start <= U(_PAIRED_ROWS):
                _pair_up(pure, table, lanes, weights, run_of, start, end, sum_)
                r = U(run_of[end - _1]) + _1
                i = end
                c += _1
                continue
            # the next row is fetched before the current one is counted
            ahead = _fetch(lanes, i)
            while i < stop:
                run_end = U(runs[r + _1])
                run_stop = min(run_end, stop)
                run_first = i
                if run_stop - i == _1 and not is_cut:
                    row = ahead
                    w = weights[i]
                    i += _1
                    ahead = _fetch(lanes, min(i, n - _1))
                    for k in range(LANES_PER_WORD):
                        a = mine + further + _counter(row, k)
                        if pure:
                            counts[a] = w if counts[a] == zero else impure
                        else:
                            counts[a] += w
                            if exact:
                                add_f(f, U(w), -1, sum_, 3 * k)
                            else:
                                sum_[3 * k] -= table[U(w)]
                    r += _1
                    continue
                while i + _8 <= run_stop:
                    _count(8, lanes, i, weights, counts, mine)
                    i += _8
                while i + _4 <= run_stop:
                    _count(4, lanes, i, weights, counts, mine)
                    i += _4
                while i < run_stop:
                    _count(1, lanes, i, weights, counts, mine)
                    i += _1
                ahead = _fetch(lanes, min(i, n - _1))
                if is_cut:
                    # added up where the class or run began: of those that begin in a piece, at most one of each is cut
                    run_start = U(runs[r])
                    place = start // piece
                    run_place = run_start // piece
                    run_is_cut = (run_end - _1) // piece != run_place
                    for v in range(n_values):
                        for k in range(LANES_PER_WORD):
                            a = mine + v * _VALUE + U(k) * _LANE
                            d = counts[a]
                            cell = ((place * n_values + v) * n_words + word) * _4 + U(k)
                            if d != zero and pure:
                                counts[a] = zero
                                cuda.atomic.add(cut, cell, d)
                                owner = cuda.atomic.cas(cut, parts + cell, zero, counter(r + _1))
                                if owner != zero and owner != counter(r + _1):
                                    cut[parts + cell] = impure
                            elif d != zero and run_is_cut:
                                counts[a] = zero
                                counts[a + further] += d
                                cuda.atomic.add(cut, parts + cell + (run_place - place) * n_values * n_words * _4, d)
                            elif not pure:
                                _leave(True, modes, f, counts, a, further, k, sum_)
                else:
                    _leave_all(True, modes, f, counts, mine, n_values, lanes, run_first, i, sum_)
                r += _1
            if is_cut:
                for v in range(n_values):
                    for k in range(LANES_PER_WORD):
                        a = mine + further + v * _VALUE + U(k) * _LANE
                        e = counts[a]
                        if e != zero:
                            counts[a] = zero
                            place = start // piece
                            cuda.atomic.add(cut, ((place * n_values + v) * n_words + word) * _4 + U(k), e)
            else:
                _leave_all(False, modes, f, counts, mine + further, n_values, lanes, first, stop, sum_)
            c += _1
        for k in range(_SUM_WORDS):
            if exact or k % 3 == 0:
                cuda.atomic.add(sums, word * U(_SUM_WORDS) + U(k), sum_[k])

    return cells


@kernel
def merge(f: F, cut: Array, impure: Any, places: U, n_values: U, lanes: U, sums: Array) -> None:
    """Add what `cells_kernel` has left of classes and runs that were cut."""
    sum3 = cuda.local.array(3, np.int64)
    thread = U(cuda.grid(1))
    place = thread // lanes
    lane = thread % lanes
    if place >= places:
        return
    for k in range(3):
        sum3[k] = 0
    for v in range(n_values):
        cell = (place * n_values + v) * lanes + lane
        whole = cut[cell]
        part = cut[places * n_values * lanes + cell]
        if f[0] != 0:
            add_f(f, U(whole), 1, sum3, 0)
            add_f(f, U(part), -1, sum3, 0)
        elif part != impure:
            sum3[0] -= np.int64(whole)
    add_up(sum3, sums, lane * U(3))
