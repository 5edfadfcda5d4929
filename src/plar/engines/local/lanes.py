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

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numba import carray, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from plar.grouping.partition import Codes, Index, Ints, U64Array
from plar.runtime.jit import jit
from plar.runtime.parallel import ThreadTeam

LANES = 64
#: lanes pay off from here on
_MIN_COLUMNS = 12
_MIN_CELLS = 1 << 17
#: rows that a thread lays out at a time
_ROWS_PER_TASK = 1 << 14
#: beyond this many values, tables per class are cheaper than one-hot counting
MAX_VALUES = 32

#: rows of 64 bytes, one for each lane
LaneMatrix: TypeAlias = NDArray[np.uint8]
#: byte counters of a pass over a block
ByteCounters: TypeAlias = tuple[LaneMatrix, LaneMatrix, LaneMatrix]

_ONE = np.uint64(1)
_FOUR = np.uint64(4)
_W = np.uint64(LANES)
#: a byte counts up to here
MAX_BYTE = np.uint64(255)
#: segments of more weight than this are never compared in pairs
MAX_PAIR_WEIGHT = np.uint64(96)


def aligned(n_rows: int) -> LaneMatrix:
    """Allocate rows of 64 bytes, each within one cache line: across two, every access takes twice as long."""
    memory = np.empty((n_rows + 1) * LANES, np.uint8)
    skip = -memory.ctypes.data % LANES
    return memory[skip : skip + n_rows * LANES].reshape(n_rows, LANES)


def byte_counters() -> ByteCounters:
    """Allocate the byte counters for a pass over a block."""
    return aligned(MAX_VALUES), aligned(int(MAX_PAIR_WEIGHT)), aligned(1)


@intrinsic  # type: ignore[untyped-decorator]
def _pointer(_: Any, address: Any) -> Any:
    def cast(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.CPointer(types.uint8)(types.uint64), cast


@jit
def _swap(words: U64Array, apart: np.uint64, mask: np.uint64) -> None:
    # each of eight words swaps bytes with the one this far away
    shift = np.uint64(8) * apart
    for half in range(_FOUR):
        i = (half // apart) * np.uint64(2) * apart + half % apart
        changed = ((words[i] >> shift) ^ words[i + apart]) & mask
        words[i] ^= changed << shift
        words[i + apart] ^= changed


@jit
def _interleave(addresses: U64Array, strides: U64Array, rows: U64Array) -> None:
    # some rows at a time, so that their part of all columns stays in a fast cache; columns an odd number of cache lines
    # apart do not compete for the same cache sets
    rows_at_once = np.uint64(512)
    tile = np.zeros((LANES, 576), np.uint8)
    words = tile.view(np.uint64)
    turned = np.empty(8, np.uint64)
    eight = np.uint64(8)
    n = np.uint64(len(rows))
    for begin in range(np.uint64(0), n, rows_at_once):
        m = min(rows_at_once, n - begin)
        for k in range(np.uint64(len(addresses))):
            stride = strides[k]
            column = carray(_pointer(addresses[k] + begin * stride), int(m * stride))
            lane = tile[k]
            if stride == _ONE:
                for i in range(m):
                    lane[i] = column[i]
            else:
                for i in range(m):
                    lane[i] = column[i * stride]
        # 8 × 8 bytes at a time are transposed in eight words: swap halves, then quarters, then bytes
        for i in range(np.uint64(0), m, eight):
            for g in range(eight):
                for r in range(eight):
                    turned[r] = words[g * eight + r, i // eight]
                _swap(turned, _FOUR, np.uint64(0xFFFFFFFF))
                _swap(turned, np.uint64(2), np.uint64(0x0000FFFF0000FFFF))
                _swap(turned, _ONE, np.uint64(0x00FF00FF00FF00FF))
                for r in range(min(eight, m - i)):
                    rows[begin + i + r, g] = turned[r]


def as_rows(columns: Sequence[Codes], team: ThreadTeam | None = None) -> LaneMatrix:
    """Turn up to 64 columns of few values into rows of 64 lanes; lanes beyond them hold zeros.

    Rows are shared among the threads of a team, if one is given.
    """
    byte_columns = [column.astype(np.uint8, copy=False) for column in columns]
    rows = aligned(len(byte_columns[0]))
    addresses = np.array([column.__array_interface__["data"][0] for column in byte_columns], np.uint64)
    strides = np.array([column.strides[0] for column in byte_columns]).astype(np.uint64)

    def fill(low: int) -> None:
        part = rows[low : low + _ROWS_PER_TASK]
        _interleave(addresses + np.uint64(low) * strides, strides, part.view(np.uint64))

    team = team or ThreadTeam(1)
    team.run(fill, range(0, len(rows), _ROWS_PER_TASK), rows.size)
    return rows


class LaneBlock(NamedTuple):
    """Up to 64 attributes, a lane each; rows are in the order of the granules."""

    attributes: Sequence[int]
    n_values: int
    rows: LaneMatrix


def lane_groups(n_values: Sequence[int], n_rows: int, wanted: bool | None = None) -> tuple[list[list[int]], list[int]]:
    """Attributes that share a block of lanes, by default where it pays, and the others.

    Examples
    --------
    >>> lane_groups([2, 3, 50], n_rows=10, wanted=True)
    ([[0, 1]], [2])
    """
    few = [a for a, n in enumerate(n_values) if n <= MAX_VALUES]
    if wanted is None:
        wanted = len(few) >= _MIN_COLUMNS and len(few) * n_rows >= _MIN_CELLS
    # attributes with similar numbers of values share a block, since the largest determines its time
    few = sorted(few, key=n_values.__getitem__) if wanted else []
    others = sorted(set(range(len(n_values))).difference(few))
    return [few[i : i + LANES] for i in range(0, len(few), LANES)], others


@jit
def permute_words(words: U64Array, perm: Index, out: U64Array) -> None:
    """Copy row perm[i] of a block to place i of another, both seen as words."""
    # All loads before all stores, in words: only then does the compiler move a row with one instruction.
    for i in range(np.uint64(len(perm))):
        source = words[np.uint64(perm[i])]
        target = out[i]
        a, b, c, d = source[0], source[1], source[2], source[3]
        e, f, g, h = source[4], source[5], source[6], source[7]
        target[0], target[1], target[2], target[3] = a, b, c, d
        target[4], target[5], target[6], target[7] = e, f, g, h


@jit
def count_short(
    x: LaneMatrix, weights: Ints, low: np.uint64, high: np.uint64, n_values: np.uint64, counts: LaneMatrix
) -> None:
    """Count the weight of the rows by value and lane, where the whole weight fits a byte."""
    # Four rows at a time, so that counts are loaded and stored once for the four; every step is cast to a byte, or else
    # the compiler widens it.
    zero = np.uint8(0)
    for v in range(n_values):
        count = counts[v]
        for k in range(_W):
            count[k] = 0
    i = low
    while i + _FOUR <= high:
        x0 = x[i]
        x1 = x[i + _ONE]
        x2 = x[i + np.uint64(2)]
        x3 = x[i + np.uint64(3)]
        w0 = np.uint8(weights[i])
        w1 = np.uint8(weights[i + _ONE])
        w2 = np.uint8(weights[i + np.uint64(2)])
        w3 = np.uint8(weights[i + np.uint64(3)])
        for v in range(n_values):
            value = np.uint8(v)
            count = counts[v]
            for k in range(_W):
                n = count[k]
                n = np.uint8(n + (w0 if x0[k] == value else zero))
                n = np.uint8(n + (w1 if x1[k] == value else zero))
                n = np.uint8(n + (w2 if x2[k] == value else zero))
                n = np.uint8(n + (w3 if x3[k] == value else zero))
                count[k] = n
        i += _FOUR
    while i < high:
        x0 = x[i]
        w0 = np.uint8(weights[i])
        for v in range(n_values):
            value = np.uint8(v)
            count = counts[v]
            for k in range(_W):
                count[k] = np.uint8(count[k] + (w0 if x0[k] == value else zero))
        i += _ONE


@jit
def count_long(
    x: LaneMatrix, weights: Ints, low: np.uint64, high: np.uint64, n_values: np.uint64, counts: LaneMatrix, wide: Ints
) -> None:
    """Add counts as `count_short` makes them, for any weight: in stretches that fit a byte, heavy rows one by one."""
    i = low
    while i < high:
        weight = np.uint64(0)
        end = i
        while end < high and weight + np.uint64(weights[end]) <= MAX_BYTE:
            weight += np.uint64(weights[end])
            end += _ONE
        if end <= i + _ONE:
            row = x[i]
            for k in range(_W):
                wide[np.uint64(row[k]), k] += weights[i]
            i += _ONE
            continue
        count_short(x, weights, i, end, n_values, counts)
        for v in range(n_values):
            count = counts[v]
            sums = wide[v]
            for k in range(_W):
                sums[k] += count[k]
        i = end


@jit
def count_pairs(
    x: LaneMatrix, weights: Ints, low: np.uint64, high: np.uint64, before_row: LaneMatrix, histogram: LaneMatrix
) -> None:
    """Count by lane how many units of weight have t ≥ 1 equals before them."""
    zero = np.uint8(0)
    unit = np.uint8(1)
    before = np.uint64(weights[low])
    for t in range(_ONE, before):
        bin_ = histogram[t]
        for k in range(_W):
            bin_[k] += unit
    equals = before_row[0]
    for i in range(low + _ONE, high):
        row = x[i]
        other = x[low]
        w0 = np.uint8(weights[low])
        for k in range(_W):
            equals[k] = w0 if row[k] == other[k] else zero
        j = low + _ONE
        while j + _FOUR <= i:
            x0 = x[j]
            x1 = x[j + _ONE]
            x2 = x[j + np.uint64(2)]
            x3 = x[j + np.uint64(3)]
            w0 = np.uint8(weights[j])
            w1 = np.uint8(weights[j + _ONE])
            w2 = np.uint8(weights[j + np.uint64(2)])
            w3 = np.uint8(weights[j + np.uint64(3)])
            for k in range(_W):
                n = equals[k]
                n = np.uint8(n + (w0 if x0[k] == row[k] else zero))
                n = np.uint8(n + (w1 if x1[k] == row[k] else zero))
                n = np.uint8(n + (w2 if x2[k] == row[k] else zero))
                n = np.uint8(n + (w3 if x3[k] == row[k] else zero))
                equals[k] = n
            j += _FOUR
        while j < i:
            other = x[j]
            w0 = np.uint8(weights[j])
            for k in range(_W):
                equals[k] = np.uint8(equals[k] + (w0 if row[k] == other[k] else zero))
            j += _ONE
        weight = np.uint8(weights[i])
        after = before + np.uint64(weight)
        if weight == unit:
            for t in range(_ONE, after):
                bin_ = histogram[t]
                level = np.uint8(t)
                for k in range(_W):
                    bin_[k] += np.uint8(equals[k] == level)
        else:
            for t in range(_ONE, after):
                bin_ = histogram[t]
                level = np.uint8(t)
                for k in range(_W):
                    bin_[k] += np.uint8(np.uint8(level - equals[k]) < weight)
        before = after


@jit
def pairs_are_cheaper(rows: np.uint64, weight: np.uint64, n_values: np.uint64) -> np.bool_:
    """Whether counting pairs is faster for a segment."""
    # Picoseconds per cell as measured: pairs 100 + 10·(rows + weight), one-hot values·(15 + 350/rows).
    if weight > MAX_PAIR_WEIGHT:
        return np.bool_(False)
    pairs = rows * (np.uint64(100) + np.uint64(10) * (rows + weight))
    return pairs < n_values * (np.uint64(15) * rows + np.uint64(350))
