"""Θ of the 64 candidates of a block at once, from the counts of `lanes.py`."""

from __future__ import annotations

import numpy as np

from plar.engines.local.kernels import F, Words, add_f, multiply, weight_of
from plar.engines.local.lanes import (
    BYTE,
    LANES,
    MAX_VALUES,
    PAIR_WEIGHT,
    Room,
    Rows,
    count_long,
    count_pairs,
    count_short,
    pairs_are_cheaper,
    permute_words,
)
from plar.grouping.partition import Index
from plar.measures import PURE
from plar.runtime.jit import jit

_ONE = np.uint64(1)
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_W = np.uint64(LANES)
#: rows that are permuted at a time, so that they are still in the core's cache when they are counted
CHUNK = 1 << 13
#: a lane's running sum is flushed before it can overflow
_ROOM = np.int64(1) << np.int64(62)


@jit
def _spill(sums: Words | Rows, sign: int, words: Words) -> None:
    for k in range(_W):
        words[k, 0] += sign * np.int64(np.uint64(sums[k]) & _LOW)
        words[k, 1] += sign * np.int64(np.uint64(sums[k]) >> _32)
        sums[k] = 0


@jit
def _add_cells(
    f: F, x: Rows, weights: Words, segments: Index, sign: int, n_values: np.uint64, words: Words, scratch: Room
) -> None:
    # Add sign · Σ f(weight) over the cells (segment, value), for each lane.
    table, (counts, histogram, equals) = f[1], scratch
    histogram[:] = 0
    wide = np.zeros((MAX_VALUES, LANES), np.int64)
    totals = np.zeros((int(PAIR_WEIGHT), LANES), np.int64)
    sums = np.zeros(LANES, np.int64)
    single, alone = np.int64(0), np.int64(0)
    room, bytes_left, top = _ROOM, BYTE, _ONE
    for s in range(np.uint64(len(segments)) - _ONE):
        low, high = np.uint64(segments[s]), np.uint64(segments[s + _ONE])
        weight = weight_of(weights, low, high)
        if high - low == _ONE and weight < np.uint64(len(table)):
            # one cell, the same in every lane
            single += table[weight]
            if single > _ROOM:
                alone += single >> np.int64(32)
                single &= np.int64(_LOW)
            continue
        if pairs_are_cheaper(high - low, weight, n_values):
            if weight > bytes_left:
                for t in range(_ONE, top):
                    bin_, total = histogram[t], totals[t]
                    for k in range(_W):
                        total[k] += bin_[k]
                        bin_[k] = 0
                bytes_left = BYTE
            bytes_left -= weight
            top = max(top, weight)
            count_pairs(x, weights, low, high, equals, histogram)
        elif weight < np.uint64(len(table)):
            # f is convex and f(0) = 0, so the sum over the values is at most f of the whole.
            bound = table[weight]
            if bound > room:
                _spill(sums, sign, words)
                room = _ROOM
            room -= bound
            if weight <= BYTE:
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
                    add_f(f, np.uint64(wide[v, k]), sign, words[k], 0)
    _spill(sums, sign, words)
    for t in range(_ONE, top):
        bin_, total = histogram[t], totals[t]
        step = np.uint64(table[t + _ONE] - table[t])
        for k in range(_W):
            high_word, low_word = multiply(np.uint64(total[k] + np.int64(bin_[k])), step)
            words[k, 0] += sign * np.int64(low_word & _LOW)
            words[k, 1] += sign * np.int64(low_word >> _32)
            words[k, 2] += sign * np.int64(high_word)
    for k in range(_W):
        words[k, 0] += sign * (single & np.int64(_LOW))
        words[k, 1] += sign * (alone + (single >> np.int64(32)))


@jit
def _fill(
    block: Rows, order: Index, low: np.uint64, high: np.uint64, filled: tuple[np.uint64, np.uint64], room: Rows
) -> tuple[np.uint64, np.uint64]:
    # make sure that rows low to high, at most a chunk of them, are in the room; returns which are
    if high <= filled[1]:
        return filled
    end = min(low + np.uint64(CHUNK), np.uint64(len(order)))
    permute_words(block.view(np.uint64), order[low:end], room.view(np.uint64))
    return low, end


@jit
def _add_nested(
    f: F,
    block: Rows,
    order: Index,
    weights: Words,
    runs: Index,
    class_runs: Index,
    n_values: np.uint64,
    words: Words,
    scratch: Room,
    x: Rows,
) -> None:
    # Add Θ(D|R∪{a}) for each lane in one pass, for large runs: their counts add up to those of their class.
    table, (counts, in_short_class, _) = f[1], scratch
    in_run, in_class = np.zeros((MAX_VALUES, LANES), np.int64), np.zeros((MAX_VALUES, LANES), np.int64)
    sums = np.zeros(LANES, np.int64)
    room, filled = _ROOM, (np.uint64(0), np.uint64(0))
    for c in range(np.uint64(len(class_runs)) - _ONE):
        first, last = np.uint64(class_runs[c]), np.uint64(class_runs[c + _ONE])
        weight = weight_of(weights, np.uint64(runs[first]), np.uint64(runs[last]))
        tabled = weight < np.uint64(len(table))
        if tabled:
            if table[weight] > room:
                _spill(sums, 1, words)
                room = _ROOM
            room -= table[weight]
        short = tabled and weight <= BYTE
        if short:
            in_short_class[:n_values] = 0
        else:
            in_class[:n_values] = 0
        for run in range(first, last):
            low, high = np.uint64(runs[run]), np.uint64(runs[run + _ONE])
            if short:
                filled = _fill(block, order, low, high, filled, x)
                count_short(x, weights[filled[0] :], low - filled[0], high - filled[0], n_values, counts)
                for v in range(n_values):
                    count, whole = counts[v], in_short_class[v]
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
                long_count, long_whole = in_run[v], in_class[v]
                for k in range(_W):
                    long_whole[k] += long_count[k]
                if tabled:
                    for k in range(_W):
                        sums[k] -= table[np.uint64(long_count[k])]
                else:
                    for k in range(_W):
                        add_f(f, np.uint64(long_count[k]), -1, words[k], 0)
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
                    add_f(f, np.uint64(in_class[v, k]), 1, words[k], 0)
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
def _add_pure(
    x: Rows, weights: Words, runs: Index, class_runs: Index, n_values: np.uint64, words: Words, scratch: Room
) -> None:
    # Add Θ(D|R∪{a}) for PR and each lane: a cell (class, value) is pure if one run has all of its weight.
    counts, in_short_class, pure = scratch
    in_class = np.zeros((MAX_VALUES, LANES), np.int64)
    in_run = np.zeros((MAX_VALUES, LANES), np.int64)
    matched = in_short_class[-1:]
    zero = np.uint8(0)
    pure[:] = 0
    bytes_left = BYTE
    for c in range(np.uint64(len(class_runs)) - _ONE):
        first, last = np.uint64(class_runs[c]), np.uint64(class_runs[c + _ONE])
        low, high = np.uint64(runs[first]), np.uint64(runs[last])
        weight = weight_of(weights, low, high)
        if weight > BYTE:
            in_class[:n_values] = 0
            count_long(x, weights, low, high, n_values, counts, in_class)
            for run in range(first, last):
                in_run[:n_values] = 0
                count_long(x, weights, np.uint64(runs[run]), np.uint64(runs[run + _ONE]), n_values, counts, in_run)
                for v in range(n_values):
                    for k in range(_W):
                        if in_run[v, k] == in_class[v, k]:
                            words[k, 0] -= in_run[v, k]
            continue
        if weight > bytes_left:
            _spill(pure[0], -1, words)
            bytes_left = BYTE
        bytes_left -= weight
        if high - low <= np.uint64(2) * n_values:
            _add_unmatched(x, weights, runs, first, last, pure, matched)
            continue
        count_short(x, weights, low, high, n_values, in_short_class)
        total = pure[0]
        for run in range(first, last):
            count_short(x, weights, np.uint64(runs[run]), np.uint64(runs[run + _ONE]), n_values, counts)
            for v in range(n_values):
                count, whole = counts[v], in_short_class[v]
                for k in range(_W):
                    total[k] = np.uint8(total[k] + (count[k] if count[k] == whole[k] else zero))
    _spill(pure[0], -1, words)


@jit
def add_block(
    f: F,
    block: Rows,
    order: Index,
    starts: Index,
    weights: Words,
    runs: Index,
    class_runs: Index,
    n_values: int,
    words: Words,
    scratch: Room,
    room: Rows,
) -> None:
    """Add Θ(D|R∪{a}) for each lane, over the classes from `starts`; the rows of a block are in any order."""
    values, n_classes = np.uint64(n_values), np.uint64(len(starts)) - _ONE
    a_run = np.uint64(len(order) // max(len(runs) - 1, 1))
    if f[0] != PURE and not pairs_are_cheaper(a_run, a_run, values):
        _add_nested(f, block, order[: starts[n_classes]], weights, runs, class_runs, values, words, scratch, room)
        return
    first = np.uint64(0)
    while first < n_classes:  # as many classes as fit a chunk, at least one
        low, last = starts[first], first + _ONE
        while last < n_classes and starts[last + _ONE] - low <= np.uint32(CHUNK):
            last += _ONE
        permute_words(block.view(np.uint64), order[low : starts[last]], room.view(np.uint64))
        own_weights, own_runs = weights[low : starts[last]], runs[class_runs[first] : class_runs[last] + _ONE] - low
        if f[0] == PURE:
            of_class = class_runs[first : last + _ONE] - class_runs[first]
            _add_pure(room, own_weights, own_runs, of_class, values, words, scratch)
        else:
            _add_cells(f, room, own_weights, starts[first : last + _ONE] - low, 1, values, words, scratch)
            _add_cells(f, room, own_weights, own_runs, -1, values, words, scratch)
        first = last
