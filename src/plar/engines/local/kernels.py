"""Kernels of the local engine: Θ of every candidate from rows ordered by class, then by decision.

A *run* is the part of a class with one decision. Θ(D|R∪{a}) is a sum over the cells (class, value of a) and
(run, value of a). Sums are kept in three 64-bit words, low to high of weights 1, 2^32 and 2^64, so that no sum
overflows below 2^40 objects and none depends on the order of addition. Every index is unsigned: a signed one
costs a wrap-around check.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from plar.grouping.partition import Index, Ints, U64Array
from plar.measures import ENTROPY, PAIRS, PURE
from plar.runtime.jit import jit

#: a sum in three words, low to high, of weights 1, 2^32 and 2^64; or several such sums, a row each
Sum3: TypeAlias = NDArray[np.int64]
#: a number of 128 bits, high word first
Pair: TypeAlias = tuple[np.uint64, np.uint64]
#: a convex measure's f: its kind, its table, and the logarithms for beyond the table
F: TypeAlias = tuple[int, Ints, U64Array]
_ONE = np.uint64(1)
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
#: 1, 1/2, …, 1/13 in units of 2^-120, each as a high and a low word
_INVERSES = tuple((np.uint64((1 << 120) // k >> 64), np.uint64((1 << 120) // k % (1 << 64))) for k in range(1, 14))


def as_int(sum3: Sequence[int] | Sum3) -> int:
    """Put the three words of a sum together."""
    return int(sum3[0]) + (int(sum3[1]) << 32) + (int(sum3[2]) << 64)


@jit
def multiply(a: np.uint64, b: np.uint64) -> Pair:
    """64 × 64 → 128 bits from 32-bit halves, since neither numba nor CUDA's dialect of it has wider integers."""
    a0 = a & _LOW
    a1 = a >> _32
    b0 = b & _LOW
    b1 = b >> _32
    low = a0 * b0
    middle = a1 * b0 + (low >> _32)
    cross = a0 * b1 + (middle & _LOW)
    return a1 * b1 + (middle >> _32) + (cross >> _32), (cross << _32) | (low & _LOW)


@jit
def _plus(a: Pair, b: Pair) -> Pair:
    low = a[1] + b[1]
    return a[0] + b[0] + np.uint64(low < a[1]), low


@jit
def _minus(a: Pair, b: Pair) -> Pair:
    return a[0] - b[0] - np.uint64(a[1] < b[1]), a[1] - b[1]


@jit
def _times(a: Pair, b: Pair) -> Pair:
    # a·b in units of 2^-120, for factors up to 1; the error is below 2^-111
    high, low = multiply(a[0], b[0])
    middle = _plus(multiply(a[0], b[1]), multiply(a[1], b[0]))
    eight = np.uint64(8)
    rest = np.uint64(56)
    shifted = (high << eight) | (low >> rest), low << eight
    return _plus(shifted, (middle[0] >> rest, (middle[0] << eight) | (middle[1] >> rest)))


@jit
def _log_near(n: np.uint64, s: np.uint64, anchor: Pair, ln2: Pair) -> np.uint64:
    # L(n) = round(2^32·ln n) for 512 ≤ n ≤ 2^40 by integers alone, so that every machine agrees.
    # In units of 2^-120: n = q·2^s·(1 + r) with 512 ≤ q < 1024, r < 2^-9;
    # ln n = ln q + s·ln 2 + r·(1 − r·(1/2 − r·(1/3 − …))).
    q = n >> s
    rest = n - (q << s)
    digits = np.uint64(20)
    r = np.uint64(0), np.uint64(0)
    for _ in range(6):
        rest <<= digits
        r = (r[0] << digits) | (r[1] >> np.uint64(44)), (r[1] << digits) | (rest // (q << s))
        rest %= q << s
    series = _INVERSES[12]
    for k in range(11, -1, -1):
        series = _minus(_INVERSES[k], _times(r, series))
    total = _plus(anchor, _times(r, series))
    twos = multiply(s, ln2[1])
    total = _plus(total, (s * ln2[0] + twos[0], twos[1]))
    return (total[0] + (_ONE << np.uint64(23))) >> np.uint64(24)


@jit
def _f_beyond_table(kind: int, n: np.uint64, log: np.uint64) -> Pair:
    if kind == ENTROPY:
        return multiply(n, log)
    if kind == PAIRS:
        return multiply(n, n - _ONE)
    square_high, square_low = multiply(n, n)
    high, low = multiply(square_low, n - _ONE)
    return high + square_high * (n - _ONE), low


def plain_add_f(f: F, n: np.uint64, sign: int, sum3: Sum3, first: int) -> None:
    """sum3[first : first + 3] += sign · f(n), to be compiled for the CPU and the GPU."""
    kind, table, anchors = f
    if n < np.uint64(len(table)):
        tabled = np.uint64(table[n])
        sum3[first] += sign * np.int64(tabled & _LOW)
        sum3[first + 1] += sign * np.int64(tabled >> _32)
        return
    s = np.uint64(0)
    log = _ONE
    if kind == ENTROPY:
        while (n >> s) >= np.uint64(1024):
            s += _ONE
        q = (n >> s) - np.uint64(511)
        log = np.uint64(_log_near(n, s, (anchors[q, 0], anchors[q, 1]), (anchors[0, 0], anchors[0, 1])))
    high, low = _f_beyond_table(kind, n, log)
    sum3[first] += sign * np.int64(np.uint64(low) & _LOW)
    sum3[first + 1] += sign * np.int64(np.uint64(low) >> _32)
    sum3[first + 2] += sign * np.int64(np.uint64(high))


add_f = jit(plain_add_f)


@jit
def weight_of(weights: Ints, low: np.uint64, high: np.uint64) -> np.uint64:
    """Add up the weights of some rows."""
    total = np.uint64(0)
    for i in range(low, high):
        total += np.uint64(weights[i])
    return total


@jit
def partition_theta(f: F, decisions: Index, counts: Ints, order: Index, starts: Index, sum3: Sum3) -> None:
    """Add the Θ of a partition whose classes are ordered by decision."""
    kind = f[0]
    table = f[1]
    lower = np.int64(0)
    upper = np.int64(0)
    for c in range(np.uint64(len(starts)) - _ONE):
        low = np.uint64(starts[c])
        high = np.uint64(starts[c + _ONE])
        size = np.uint64(0)
        for i in range(low, high):
            size += np.uint64(counts[order[i]])
        # most classes are this small; calling add_f for each of them would take five times as long
        tabled = kind != PURE and size < np.uint64(len(table))
        theta = table[size] if tabled else np.int64(0)
        run = np.uint64(0)
        pure = True
        last = decisions[order[low]]
        for i in range(low, high):
            row = np.uint64(order[i])
            if decisions[row] != last:
                if tabled:
                    theta -= table[run]
                elif kind:
                    add_f(f, run, -1, sum3, 0)
                run = np.uint64(0)
                pure = False
                last = decisions[row]
            run += np.uint64(counts[row])
        if tabled:
            theta -= table[run]
            lower += theta & np.int64(_LOW)
            upper += theta >> np.int64(32)
        elif kind:
            add_f(f, run, -1, sum3, 0)
            add_f(f, size, 1, sum3, 0)
        elif pure:
            sum3[0] -= np.int64(size)
    sum3[0] += lower
    sum3[1] += upper


@jit
def count_unsettled_objects(labels: Index, counts: Ints, order: Index, starts: Index) -> int:
    """Count the objects in classes of more than one label."""
    objects = np.int64(0)
    for c in range(np.uint64(len(starts)) - _ONE):
        low = np.uint64(starts[c])
        high = np.uint64(starts[c + _ONE])
        label = labels[order[low]]
        size = np.int64(0)
        unsettled = False
        for i in range(low, high):
            row = np.uint64(order[i])
            unsettled |= labels[row] != label
            size += counts[row]
        objects += size if unsettled else np.int64(0)
    return int(objects)


@jit
def add_pure(values: Index, weights: Ints, runs: Index, class_runs: Index, n_values: int, sum3: Sum3) -> None:
    """Add Θ(D|R∪{a}) for PR: minus the weight of the cells (class, value) that lie in one run."""
    # Runs and classes are numbered from 1 through the whole pass, so that nothing is cleared between classes.
    last_run = np.zeros(n_values, np.uint32)
    impure_in = np.zeros(n_values, np.uint32)
    pure = np.int64(0)
    for c in range(np.uint64(len(class_runs)) - _ONE):
        first = np.uint64(class_runs[c])
        last = np.uint64(class_runs[c + _ONE])
        number = np.uint32(c + _ONE)
        for run in range(first, last):
            for i in range(np.uint64(runs[run]), np.uint64(runs[run + _ONE])):
                v = np.uint64(values[i])
                seen = np.uint64(last_run[v])
                if seen > first and seen != run + _ONE:
                    impure_in[v] = number
                last_run[v] = run + _ONE
        for i in range(np.uint64(runs[first]), np.uint64(runs[last])):
            if impure_in[np.uint64(values[i])] != number:
                pure += weights[i]
    sum3[0] -= pure


@jit
def add_cells(f: F, values: Index, weights: Ints, runs: Index, class_runs: Index, n_values: int, sum3: Sum3) -> None:
    """Add Θ(D|R∪{a}): Σ f over the cells (class, value) − Σ f over the cells (run, value)."""
    table = f[1]
    # A row of weight w that meets a count n adds f(n + w) − f(n), without a branch. A class of s rows costs O(s) for
    # any number of values.
    in_run = np.zeros(n_values, np.int64)
    in_class = np.zeros(n_values, np.int64)
    for c in range(np.uint64(len(class_runs)) - _ONE):
        first = np.uint64(class_runs[c])
        last = np.uint64(class_runs[c + _ONE])
        low = np.uint64(runs[first])
        high = np.uint64(runs[last])
        if weight_of(weights, low, high) < np.uint64(len(table)):
            theta = np.int64(0)
            for run in range(first, last):
                start = np.uint64(runs[run])
                end = np.uint64(runs[run + _ONE])
                for i in range(start, end):
                    v = np.uint64(values[i])
                    w = np.uint64(weights[i])
                    d = np.uint64(in_run[v])
                    e = np.uint64(in_class[v])
                    theta += table[e + w] - table[e] - table[d + w] + table[d]
                    in_run[v] = d + w
                    in_class[v] = e + w
                for i in range(start, end):
                    in_run[np.uint64(values[i])] = 0
            sum3[0] += np.int64(np.uint64(theta) & _LOW)
            sum3[1] += np.int64(np.uint64(theta) >> _32)
        else:
            for run in range(first, last):
                start = np.uint64(runs[run])
                end = np.uint64(runs[run + _ONE])
                for i in range(start, end):
                    in_run[np.uint64(values[i])] += weights[i]
                    in_class[np.uint64(values[i])] += weights[i]
                for i in range(start, end):
                    v = np.uint64(values[i])
                    add_f(f, np.uint64(in_run[v]), -1, sum3, 0)
                    in_run[v] = 0
            for i in range(low, high):
                v = np.uint64(values[i])
                add_f(f, np.uint64(in_class[v]), 1, sum3, 0)
                in_class[v] = 0
        for i in range(low, high):
            in_class[np.uint64(values[i])] = 0
