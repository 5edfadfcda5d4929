"""Θ of the 64 candidates of a block at once, from the counts of `lanes.py`."""

from __future__ import annotations

import numpy as np

from plar.engines.local.kernels import F, Sum3, add_f, multiply, weight_of
from plar.engines.local.lanes import (
    LANES,
    MAX_BYTE,
    MAX_PAIR_WEIGHT,
    MAX_VALUES,
    ByteCounters,
    LaneMatrix,
    count_long,
    count_pairs,
    count_short,
    pairs_are_cheaper,
    permute_words,
)
from plar.grouping.partition import Index, Ints
from plar.measures import PURE
from plar.runtime.jit import jit

_ONE = np.uint64(1)
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_W = np.uint64(LANES)
#: rows that are permuted at a time, so that they are still in the core's cache when they are counted
CHUNK = 1 << 13
#: a lane's running sum is moved to its three words before it exceeds this
_MAX_SUM = np.int64(1) << np.int64(62)


@jit
def _spill(sums: Ints | LaneMatrix, sign: int, sums3: Sum3) -> None:
    for k in range(_W):
        sums3[k, 0] += sign * np.int64(np.uint64(sums[k]) & _LOW)
        sums3[k, 1] += sign * np.int64(np.uint64(sums[k]) >> _32)
        sums[k] = 0


@jit
def _add_cells(
    f: F,
    x: LaneMatrix,
    weights: Ints,
    segments: Index,
    sign: int,
    n_values: np.uint64,
    sums3: Sum3,
    counters: ByteCounters,
) -> None:
    # Add sign · Σ f(weight) over the cells (segment, value), for each lane.
    table, (counts, histogram, equals) = f[1], counters
    histogram[:] = 0
    wide = np.zeros((MAX_VALUES, LANES), np.int64)
    totals = np.zeros((int(MAX_PAIR_WEIGHT), LANES), np.int64)
    sums = np.zeros(LANES, np.int64)
    # cells of one weight that are the same in every lane, in two words
    single_low = np.int64(0)
    single_high = np.int64(0)
    headroom = _MAX_SUM
    bytes_left = MAX_BYTE
    top = _ONE
    for s in range(np.uint64(len(segments)) - _ONE):
        low = np.uint64(segments[s])
        high = np.uint64(segments[s + _ONE])
        weight = weight_of(weights, low, high)
        if high - low == _ONE and weight < np.uint64(len(table)):
            # one cell, the same in every lane
            single_low += table[weight]
            if single_low > _MAX_SUM:
                single_high += single_low >> np.int64(32)
                single_low &= np.int64(_LOW)
            continue
        if pairs_are_cheaper(high - low, weight, n_values):
            if weight > bytes_left:
                for t in range(_ONE, top):
                    bin_ = histogram[t]
                    total = totals[t]
                    for k in range(_W):
                        total[k] += bin_[k]
                        bin_[k] = 0
                bytes_left = MAX_BYTE
            bytes_left -= weight
            top = max(top, weight)
            count_pairs(x, weights, low, high, equals, histogram)
        elif weight < np.uint64(len(table)):
            # f is convex and f(0) = 0, so the sum over the values is at most f of the whole.
            bound = table[weight]
            if bound > headroom:
                _spill(sums, sign, sums3)
                headroom = _MAX_SUM
            headroom -= bound
            if weight <= MAX_BYTE:
                count_short(x, weights, low, high, n_values, counts)
                for v in range(n_values):
                    count = counts[v]
                    for k in range(_W):
                        sums[k] += table[np.uint64(count[k])]
            else:
                wide[:n_values] = 0
                count_long(x, weights, low, high, n_values, counts, wide)
                for v in range(n_values):
                    long_count = wide[v]
                    for k in range(_W):
                        sums[k] += table[np.uint64(long_count[k])]
        else:
            wide[:n_values] = 0
            count_long(x, weights, low, high, n_values, counts, wide)
            for v in range(n_values):
                for k in range(_W):
                    add_f(f, np.uint64(wide[v, k]), sign, sums3[k], 0)
    _spill(sums, sign, sums3)
    for t in range(_ONE, top):
        bin_ = histogram[t]
        total = totals[t]
        step = np.uint64(table[t + _ONE] - table[t])
        for k in range(_W):
            high_word, low_word = multiply(np.uint64(total[k] + np.int64(bin_[k])), step)
            sums3[k, 0] += sign * np.int64(low_word & _LOW)
            sums3[k, 1] += sign * np.int64(low_word >> _32)
            sums3[k, 2] += sign * np.int64(high_word)
    for k in range(_W):
        sums3[k, 0] += sign * (single_low & np.int64(_LOW))
        sums3[k, 1] += sign * (single_high + (single_low >> np.int64(32)))


@jit
def _fill(
    block: LaneMatrix,
    order: Index,
    low: np.uint64,
    high: np.uint64,
    filled: tuple[np.uint64, np.uint64],
    buffer: LaneMatrix,
) -> tuple[np.uint64, np.uint64]:
    # make sure that rows low to high, at most a chunk of them, are in the buffer; returns which are
    if high <= filled[1]:
        return filled
    end = min(low + np.uint64(CHUNK), np.uint64(len(order)))
    permute_words(block.view(np.uint64), order[low:end], buffer.view(np.uint64))
    return low, end


@jit
def _add_nested(
    f: F,
    block: LaneMatrix,
    order: Index,
    weights: Ints,
    runs: Index,
    class_runs: Index,
    n_values: np.uint64,
    sums3: Sum3,
    counters: ByteCounters,
    x: LaneMatrix,
) -> None:
    # Add Θ(D|R∪{a}) for each lane in one pass, for large runs: their counts add up to those of their class.
    table, (counts, in_short_class, _) = f[1], counters
    in_run = np.zeros((MAX_VALUES, LANES), np.int64)
    in_class = np.zeros((MAX_VALUES, LANES), np.int64)
    sums = np.zeros(LANES, np.int64)
    headroom = _MAX_SUM
    filled = (np.uint64(0), np.uint64(0))
    for c in range(np.uint64(len(class_runs)) - _ONE):
        first = np.uint64(class_runs[c])
        last = np.uint64(class_runs[c + _ONE])
        weight = weight_of(weights, np.uint64(runs[first]), np.uint64(runs[last]))
        tabled = weight < np.uint64(len(table))
        if tabled:
            if table[weight] > headroom:
                _spill(sums, 1, sums3)
                headroom = _MAX_SUM
            headroom -= table[weight]
        short = tabled and weight <= MAX_BYTE
        if short:
            in_short_class[:n_values] = 0
        else:
            in_class[:n_values] = 0
        for run in range(first, last):
            low = np.uint64(runs[run])
            high = np.uint64(runs[run + _ONE])
            if short:
                filled = _fill(block, order, low, high, filled, x)
                count_short(x, weights[filled[0] :], low - filled[0], high - filled[0], n_values, counts)
                for v in range(n_values):
                    count = counts[v]
                    whole = in_short_class[v]
                    for k in range(_W):
                        whole[k] = np.uint8(whole[k] + count[k])
                    for k in range(_W):
                        sums[k] -= table[np.uint64(count[k])]
                continue
            in_run[:n_values] = 0
            for begin in range(low, high, np.uint64(CHUNK)):
                end = min(begin + np.uint64(CHUNK), high)
                filled = _fill(block, order, np.uint64(begin), end, filled, x)
                count_long(x, weights[filled[0] :], begin - filled[0], end - filled[0], n_values, counts, in_run)
            for v in range(n_values):
                long_count = in_run[v]
                long_whole = in_class[v]
                for k in range(_W):
                    long_whole[k] += long_count[k]
                if tabled:
                    for k in range(_W):
                        sums[k] -= table[np.uint64(long_count[k])]
                else:
                    for k in range(_W):
                        add_f(f, np.uint64(long_count[k]), -1, sums3[k], 0)
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
                    add_f(f, np.uint64(in_class[v, k]), 1, sums3[k], 0)
    _spill(sums, 1, sums3)


@jit
def _add_unmatched(
    x: LaneMatrix, weights: Ints, runs: Index, first: np.uint64, last: np.uint64, pure: LaneMatrix, matched: LaneMatrix
) -> None:
    # pure[k] += weight of the rows of a class that equal no row of another run in lane k
    zero = np.uint8(0)
    match = matched[0]
    total = pure[0]
    low = np.uint64(runs[first])
    high = np.uint64(runs[last])
    for run in range(first, last):
        start = np.uint64(runs[run])
        end = np.uint64(runs[run + _ONE])
        for i in range(start, end):
            row = x[i]
            weight = np.uint8(weights[i])
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
def _add_pure(
    x: LaneMatrix,
    weights: Ints,
    runs: Index,
    class_runs: Index,
    n_values: np.uint64,
    sums3: Sum3,
    counters: ByteCounters,
) -> None:
    # Add Θ(D|R∪{a}) for PR and each lane: a cell (class, value) is pure if one run has all of its weight.
    counts, in_short_class, pure = counters
    in_class = np.zeros((MAX_VALUES, LANES), np.int64)
    in_run = np.zeros((MAX_VALUES, LANES), np.int64)
    matched = in_short_class[-1:]
    zero = np.uint8(0)
    pure[:] = 0
    bytes_left = MAX_BYTE
    for c in range(np.uint64(len(class_runs)) - _ONE):
        first = np.uint64(class_runs[c])
        last = np.uint64(class_runs[c + _ONE])
        low = np.uint64(runs[first])
        high = np.uint64(runs[last])
        weight = weight_of(weights, low, high)
        if weight > MAX_BYTE:
            in_class[:n_values] = 0
            count_long(x, weights, low, high, n_values, counts, in_class)
            for run in range(first, last):
                in_run[:n_values] = 0
                count_long(x, weights, np.uint64(runs[run]), np.uint64(runs[run + _ONE]), n_values, counts, in_run)
                for v in range(n_values):
                    for k in range(_W):
                        if in_run[v, k] == in_class[v, k]:
                            sums3[k, 0] -= in_run[v, k]
            continue
        if weight > bytes_left:
            _spill(pure[0], -1, sums3)
            bytes_left = MAX_BYTE
        bytes_left -= weight
        if high - low <= np.uint64(2) * n_values:
            _add_unmatched(x, weights, runs, first, last, pure, matched)
            continue
        count_short(x, weights, low, high, n_values, in_short_class)
        total = pure[0]
        for run in range(first, last):
            count_short(x, weights, np.uint64(runs[run]), np.uint64(runs[run + _ONE]), n_values, counts)
            for v in range(n_values):
                count = counts[v]
                whole = in_short_class[v]
                for k in range(_W):
                    total[k] = np.uint8(total[k] + (count[k] if count[k] == whole[k] else zero))
    _spill(pure[0], -1, sums3)


@jit
def add_block(
    f: F,
    block: LaneMatrix,
    order: Index,
    starts: Index,
    weights: Ints,
    runs: Index,
    class_runs: Index,
    n_values: int,
    sums3: Sum3,
    counters: ByteCounters,
    buffer: LaneMatrix,
) -> None:
    """Add Θ(D|R∪{a}) for each lane, over the classes from `starts`; the rows of a block are in any order."""
    values = np.uint64(n_values)
    n_classes = np.uint64(len(starts)) - _ONE
    run_rows = np.uint64(len(order) // max(len(runs) - 1, 1))  # on average
    if f[0] != PURE and not pairs_are_cheaper(run_rows, run_rows, values):
        _add_nested(f, block, order[: starts[n_classes]], weights, runs, class_runs, values, sums3, counters, buffer)
        return
    first = np.uint64(0)
    while first < n_classes:  # as many classes as fit a chunk, at least one
        low = starts[first]
        last = first + _ONE
        while last < n_classes and starts[last + _ONE] - low <= np.uint32(CHUNK):
            last += _ONE
        permute_words(block.view(np.uint64), order[low : starts[last]], buffer.view(np.uint64))
        chunk_weights = weights[low : starts[last]]
        chunk_runs = runs[class_runs[first] : class_runs[last] + _ONE] - low
        if f[0] == PURE:
            chunk_class_runs = class_runs[first : last + _ONE] - class_runs[first]
            _add_pure(buffer, chunk_weights, chunk_runs, chunk_class_runs, values, sums3, counters)
        else:
            _add_cells(f, buffer, chunk_weights, starts[first : last + _ONE] - low, 1, values, sums3, counters)
            _add_cells(f, buffer, chunk_weights, chunk_runs, -1, values, sums3, counters)
        first = last
