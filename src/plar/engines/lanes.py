"""SIMD-lane kernels of the local engine: 64 candidates of few values side by side, a byte each.

A block holds 64 columns row by row, so that one instruction compares or counts a row for all 64 candidates; the
compiler turns the inner loops over lanes into such instructions. Segments (classes or runs) are counted in one
of two ways, whichever costs less for its size:

- *one-hot*: for every value, compare the rows with it and count; then f of each count;
- *pairs*: compare every row with the rows before it in its segment. A row of weight w that has c equals before
  it adds f(c + w) − f(c) = h(c) + … + h(c + w − 1), h(t) = f(t + 1) − f(t); so a histogram of t is all that is
  kept, and f is applied once, at the end.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from plar.engines.kernels import Anchors, Words, add_f, multiply
from plar.jit import jit
from plar.partition import Index

__all__ = [
    "LANES",
    "MAX_VALUES",
    "Rows",
    "add_cells",
    "add_nested",
    "add_pure",
    "aligned",
    "columns_room",
    "interleave",
    "pairs_are_cheaper",
    "permute",
    "scratch",
]

LANES = 64
#: beyond this many values, tables per class are cheaper than one-hot counting
MAX_VALUES = 32

Rows: TypeAlias = NDArray[np.uint8]

_ONE = np.uint64(1)
_FOUR = np.uint64(4)
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_W = np.uint64(LANES)
#: a byte counts up to here
_FULL = np.uint64(255)
#: segments of more weight than this are never compared in pairs
_PAIR_WEIGHT = np.uint64(96)
#: a lane's running sum is put aside before it can overflow
_ROOM = np.int64(1) << np.int64(62)


def aligned(rows: int) -> Rows:
    """Allocate rows of 64 bytes, each in one cache line: across two, every access takes twice the time."""
    memory = np.empty((rows + 1) * LANES, np.uint8)
    skip = -memory.ctypes.data % LANES
    return memory[skip : skip + rows * LANES].reshape(rows, LANES)


def scratch() -> tuple[Rows, Rows, Rows]:
    """Make room for the byte counters of a call of `add_cells` or `add_pure`."""
    return aligned(MAX_VALUES), aligned(int(_PAIR_WEIGHT)), aligned(1)


def columns_room(n_rows: int) -> Rows:
    """Make room for the columns of a block."""
    # an odd number of cache lines apart, so that columns do not contend for the same places of the cache
    return np.zeros((LANES, (-(-n_rows // 64) | 1) * 64), np.uint8)


@jit
def interleave(columns: Rows, block: Rows) -> None:
    """Turn 64 columns, laid out by `columns_room`, into rows of 64 lanes."""
    # some rows at a time, so that their part of all columns stays in the fastest cache
    for i in range(np.uint64(len(block))):
        row = block[i]
        for k in range(_W):
            row[k] = columns[k, i]


@jit
def _permute(words: NDArray[np.uint64], perm: Index, out: NDArray[np.uint64]) -> None:
    for i in range(np.uint64(len(perm))):
        source, target = words[np.uint64(perm[i])], out[i]
        a, b, c, d = source[0], source[1], source[2], source[3]
        e, f, g, h = source[4], source[5], source[6], source[7]
        target[0], target[1], target[2], target[3] = a, b, c, d
        target[4], target[5], target[6], target[7] = e, f, g, h


def permute(block: Rows, perm: Index, out: Rows) -> None:
    """Put row perm[i] of a block at place i of another."""
    # All loads before all stores, in words: only then the compiler moves a row by one instruction.
    _permute(block.view(np.uint64), perm, out.view(np.uint64))


@jit
def _count(x: Rows, weights: Words, low: np.uint64, high: np.uint64, n_values: np.uint64, counts: Rows) -> None:
    # counts[v, k] = weight of the rows with value v in lane k; the whole weight fits a byte. Four rows at a time,
    # so that counts are loaded and stored once for the four; every step is cast to a byte, else the compiler widens.
    zero = np.uint8(0)
    for v in range(n_values):
        count = counts[v]
        for k in range(_W):
            count[k] = 0
    i = low
    while i + _FOUR <= high:
        x0, x1, x2, x3 = x[i], x[i + _ONE], x[i + np.uint64(2)], x[i + np.uint64(3)]
        w0, w1 = np.uint8(weights[i]), np.uint8(weights[i + _ONE])
        w2, w3 = np.uint8(weights[i + np.uint64(2)]), np.uint8(weights[i + np.uint64(3)])
        for v in range(n_values):
            value, count = np.uint8(v), counts[v]
            for k in range(_W):
                n = count[k]
                n = np.uint8(n + (w0 if x0[k] == value else zero))
                n = np.uint8(n + (w1 if x1[k] == value else zero))
                n = np.uint8(n + (w2 if x2[k] == value else zero))
                n = np.uint8(n + (w3 if x3[k] == value else zero))
                count[k] = n
        i += _FOUR
    while i < high:
        x0, w0 = x[i], np.uint8(weights[i])
        for v in range(n_values):
            value, count = np.uint8(v), counts[v]
            for k in range(_W):
                count[k] = np.uint8(count[k] + (w0 if x0[k] == value else zero))
        i += _ONE


@jit
def _count_long(
    x: Rows, weights: Words, low: np.uint64, high: np.uint64, n_values: np.uint64, counts: Rows, wide: Words
) -> None:
    # wide[v, k] as _count does for any weight: stretches whose weight fits a byte, and heavy rows one by one
    wide[:n_values] = 0
    i = low
    while i < high:
        weight, end = np.uint64(0), i
        while end < high and weight + np.uint64(weights[end]) <= _FULL:
            weight += np.uint64(weights[end])
            end += _ONE
        if end <= i + _ONE:
            row = x[i]
            for k in range(_W):
                wide[np.uint64(row[k]), k] += weights[i]
            i += _ONE
            continue
        _count(x, weights, i, end, n_values, counts)
        for v in range(n_values):
            count, sums = counts[v], wide[v]
            for k in range(_W):
                sums[k] += count[k]
        i = end


@jit
def _pairs(x: Rows, weights: Words, low: np.uint64, high: np.uint64, before_row: Rows, histogram: Rows) -> None:
    # histogram[t, k] += how many units of weight have t equals before them, t ≥ 1
    zero, unit = np.uint8(0), np.uint8(1)
    before = np.uint64(weights[low])
    for t in range(_ONE, before):
        bin_ = histogram[t]
        for k in range(_W):
            bin_[k] += unit
    equals = before_row[0]
    for i in range(low + _ONE, high):
        row, other, w0 = x[i], x[low], np.uint8(weights[low])
        for k in range(_W):
            equals[k] = w0 if row[k] == other[k] else zero
        j = low + _ONE
        while j + _FOUR <= i:
            x0, x1, x2, x3 = x[j], x[j + _ONE], x[j + np.uint64(2)], x[j + np.uint64(3)]
            w0, w1 = np.uint8(weights[j]), np.uint8(weights[j + _ONE])
            w2, w3 = np.uint8(weights[j + np.uint64(2)]), np.uint8(weights[j + np.uint64(3)])
            for k in range(_W):
                n = equals[k]
                n = np.uint8(n + (w0 if x0[k] == row[k] else zero))
                n = np.uint8(n + (w1 if x1[k] == row[k] else zero))
                n = np.uint8(n + (w2 if x2[k] == row[k] else zero))
                n = np.uint8(n + (w3 if x3[k] == row[k] else zero))
                equals[k] = n
            j += _FOUR
        while j < i:
            other, w0 = x[j], np.uint8(weights[j])
            for k in range(_W):
                equals[k] = np.uint8(equals[k] + (w0 if row[k] == other[k] else zero))
            j += _ONE
        weight = np.uint8(weights[i])
        after = before + np.uint64(weight)
        if weight == unit:
            for t in range(_ONE, after):
                bin_, level = histogram[t], np.uint8(t)
                for k in range(_W):
                    bin_[k] += np.uint8(equals[k] == level)
        else:
            for t in range(_ONE, after):
                bin_, level = histogram[t], np.uint8(t)
                for k in range(_W):
                    bin_[k] += np.uint8(np.uint8(level - equals[k]) < weight)
        before = after


@jit
def pairs_are_cheaper(rows: np.uint64, weight: np.uint64, n_values: np.uint64) -> np.bool_:
    """Tell how a segment is counted faster."""
    # Picoseconds per cell as measured: pairs 100 + 10·(rows + weight), one-hot values·(15 + 350/rows).
    if weight > _PAIR_WEIGHT:
        return np.bool_(False)
    return rows * (np.uint64(100) + np.uint64(10) * (rows + weight)) < n_values * (
        np.uint64(15) * rows + np.uint64(350)
    )


@jit
def _weight(weights: Words, low: np.uint64, high: np.uint64) -> np.uint64:
    total = np.uint64(0)
    for i in range(low, high):
        total += np.uint64(weights[i])
    return total


@jit
def _spill(sums: Words, sign: int, words: Words) -> None:
    for k in range(_W):
        words[k, 0] += sign * np.int64(np.uint64(sums[k]) & _LOW)
        words[k, 1] += sign * np.int64(np.uint64(sums[k]) >> _32)
        sums[k] = 0


@jit
def add_cells(
    kind: int,
    x: Rows,
    weights: Words,
    segments: Index,
    sign: int,
    n_values: np.uint64,
    table: Words,
    anchors: Anchors,
    words: Words,
    counts: Rows,
    histogram: Rows,
    equals: Rows,
) -> None:
    """Words[k] += sign · Σ over the cells (segment, value) of f(weight of the cell), for each lane k."""
    histogram[:] = 0
    wide = np.zeros((MAX_VALUES, LANES), np.int64)
    totals = np.zeros((int(_PAIR_WEIGHT), LANES), np.int64)
    sums = np.zeros(LANES, np.int64)
    room, bytes_left, top = _ROOM, _FULL, _ONE
    for s in range(np.uint64(len(segments)) - _ONE):
        low, high = np.uint64(segments[s]), np.uint64(segments[s + _ONE])
        weight = _weight(weights, low, high)
        if weight <= _ONE:
            continue
        if pairs_are_cheaper(high - low, weight, n_values):
            if weight > bytes_left:
                for t in range(_ONE, top):
                    bin_, total = histogram[t], totals[t]
                    for k in range(_W):
                        total[k] += bin_[k]
                        bin_[k] = 0
                bytes_left = _FULL
            bytes_left -= weight
            top = max(top, weight)
            _pairs(x, weights, low, high, equals, histogram)
        elif weight < np.uint64(len(table)):
            # f is convex and f(0) = 0, so the sum over the values is at most f of the whole.
            bound = table[weight]
            if bound > room:
                _spill(sums, sign, words)
                room = _ROOM
            room -= bound
            if weight <= _FULL:
                _count(x, weights, low, high, n_values, counts)
                for v in range(n_values):
                    count = counts[v]
                    for k in range(_W):
                        sums[k] += table[np.uint64(count[k])]
            else:
                _count_long(x, weights, low, high, n_values, counts, wide)
                for v in range(n_values):
                    long_count = wide[v]
                    for k in range(_W):
                        sums[k] += table[np.uint64(long_count[k])]
        else:
            _count_long(x, weights, low, high, n_values, counts, wide)
            for v in range(n_values):
                for k in range(_W):
                    add_f(kind, np.uint64(wide[v, k]), sign, table, anchors, words[k])
    _spill(sums, sign, words)
    for t in range(_ONE, top):
        bin_, total = histogram[t], totals[t]
        step = np.uint64(table[t + _ONE] - table[t])
        for k in range(_W):
            high_word, low_word = multiply(np.uint64(total[k] + np.int64(bin_[k])), step)
            words[k, 0] += sign * np.int64(low_word & _LOW)
            words[k, 1] += sign * np.int64(low_word >> _32)
            words[k, 2] += sign * np.int64(high_word)


@jit
def add_nested(
    kind: int,
    x: Rows,
    weights: Words,
    runs: Index,
    class_runs: Index,
    n_values: np.uint64,
    table: Words,
    anchors: Anchors,
    words: Words,
    counts: Rows,
    in_short_class: Rows,
) -> None:
    """Add Θ(D|R∪{a}) for each lane in one pass, for large runs: their counts add up to those of their class."""
    in_run, in_class = np.zeros((MAX_VALUES, LANES), np.int64), np.zeros((MAX_VALUES, LANES), np.int64)
    sums = np.zeros(LANES, np.int64)
    room = _ROOM
    for c in range(np.uint64(len(class_runs)) - _ONE):
        first, last = np.uint64(class_runs[c]), np.uint64(class_runs[c + _ONE])
        weight = _weight(weights, np.uint64(runs[first]), np.uint64(runs[last]))
        tabled = weight < np.uint64(len(table))
        if tabled:
            if table[weight] > room:
                _spill(sums, 1, words)
                room = _ROOM
            room -= table[weight]
        short = tabled and weight <= _FULL
        if short:
            in_short_class[:n_values] = 0
        else:
            in_class[:n_values] = 0
        for run in range(first, last):
            low, high = np.uint64(runs[run]), np.uint64(runs[run + _ONE])
            if short:
                _count(x, weights, low, high, n_values, counts)
                for v in range(n_values):
                    count, whole = counts[v], in_short_class[v]
                    for k in range(_W):
                        whole[k] = np.uint8(whole[k] + count[k])
                    for k in range(_W):
                        sums[k] -= table[np.uint64(count[k])]
                continue
            _count_long(x, weights, low, high, n_values, counts, in_run)
            for v in range(n_values):
                long_count, long_whole = in_run[v], in_class[v]
                for k in range(_W):
                    long_whole[k] += long_count[k]
                if tabled:
                    for k in range(_W):
                        sums[k] -= table[np.uint64(long_count[k])]
                else:
                    for k in range(_W):
                        add_f(kind, np.uint64(long_count[k]), -1, table, anchors, words[k])
        for v in range(n_values):
            if short:
                whole = in_short_class[v]
                for k in range(_W):
                    sums[k] += table[np.uint64(whole[k])]
            elif tabled:
                long_whole = in_class[v]
                for k in range(_W):
                    sums[k] += table[np.uint64(long_whole[k])]
            else:
                for k in range(_W):
                    add_f(kind, np.uint64(in_class[v, k]), 1, table, anchors, words[k])
    _spill(sums, 1, words)


@jit
def _add_unmatched(
    x: Rows, weights: Words, runs: Index, first: np.uint64, last: np.uint64, pure: Rows, matched: Rows
) -> None:
    # pure[k] += weight of the rows of a class that equal no row of another run in lane k
    zero = np.uint8(0)
    match, total = matched[0], pure[0]
    low, high = np.uint64(runs[first]), np.uint64(runs[last])
    for run in range(first, last):
        start, end = np.uint64(runs[run]), np.uint64(runs[run + _ONE])
        for i in range(start, end):
            row, weight = x[i], np.uint8(weights[i])
            for k in range(_W):
                match[k] = 0
            for j in range(low, start):
                other = x[j]
                for k in range(_W):
                    match[k] |= np.uint8(row[k] == other[k])
            for j in range(end, high):
                other = x[j]
                for k in range(_W):
                    match[k] |= np.uint8(row[k] == other[k])
            for k in range(_W):
                total[k] = np.uint8(total[k] + (weight if match[k] == zero else zero))


@jit
def _flush(sums: Rows, words: Words) -> None:
    total = sums[0]
    for k in range(_W):
        words[k, 0] -= total[k]
        total[k] = 0


@jit
def add_pure(
    x: Rows,
    weights: Words,
    runs: Index,
    class_runs: Index,
    n_values: np.uint64,
    words: Words,
    counts: Rows,
    in_short_class: Rows,
    pure: Rows,
) -> None:
    """Words[k] −= weight of the cells (class, value) that lie in one run: the run's count equals the class's."""
    in_class = np.zeros((MAX_VALUES, LANES), np.int64)
    in_run = np.zeros((MAX_VALUES, LANES), np.int64)
    matched = in_short_class[-1:]
    zero = np.uint8(0)
    pure[:] = 0
    bytes_left = _FULL
    for c in range(np.uint64(len(class_runs)) - _ONE):
        first, last = np.uint64(class_runs[c]), np.uint64(class_runs[c + _ONE])
        low, high = np.uint64(runs[first]), np.uint64(runs[last])
        weight = _weight(weights, low, high)
        if weight > _FULL:
            _count_long(x, weights, low, high, n_values, counts, in_class)
            for run in range(first, last):
                _count_long(x, weights, np.uint64(runs[run]), np.uint64(runs[run + _ONE]), n_values, counts, in_run)
                for v in range(n_values):
                    for k in range(_W):
                        if in_run[v, k] == in_class[v, k]:
                            words[k, 0] -= in_run[v, k]
            continue
        if weight > bytes_left:
            _flush(pure, words)
            bytes_left = _FULL
        bytes_left -= weight
        if high - low <= np.uint64(2) * n_values:
            _add_unmatched(x, weights, runs, first, last, pure, matched)
            continue
        _count(x, weights, low, high, n_values, in_short_class)
        total = pure[0]
        for run in range(first, last):
            _count(x, weights, np.uint64(runs[run]), np.uint64(runs[run + _ONE]), n_values, counts)
            for v in range(n_values):
                count, whole = counts[v], in_short_class[v]
                for k in range(_W):
                    total[k] = np.uint8(total[k] + (count[k] if count[k] == whole[k] else zero))
    _flush(pure, words)
