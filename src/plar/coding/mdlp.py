"""Entropy splits under the minimum description length: where the decision changes along a sorted column.

References
----------
U. M. Fayyad, K. B. Irani: Multi-Interval Discretization of Continuous-Valued Attributes for Classification Learning,
IJCAI 1993, 1022-1027.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from plar.grouping.partition import Array
from plar.runtime.jit import jit

Ints: TypeAlias = NDArray[np.int64]
#: c·ln c is looked up for counts below this
_TABLE_SIZE = 1 << 16
_NO_CUT = 1 << 62

# n·Ent = n·ln n - Σ c·ln c. Every c·ln c is rounded to an integer, in units in which the largest takes 52 bits, so that
# an entropy does not depend on the order of summation.


@lru_cache(maxsize=1)
def _table(total: int) -> tuple[Ints, float]:
    """c·ln c of small counts, and the units in which it is an integer."""
    scale = 2.0 ** (52 - math.ceil(math.log2(total * math.log(total) + 2)))
    numbers = np.arange(min(total + 1, _TABLE_SIZE), dtype=np.float64)
    return np.rint(numbers * np.log(np.maximum(numbers, 1.0)) * scale).astype(np.int64), scale


def mdlp_splits(at: Array, classes: Array, counts: Ints) -> Ints:
    """Values above which to cut, as ranks, ascending; entries are a value's rank, a class and their count."""
    n_decisions = int(classes.max()) + 1
    pairs, places = np.unique(at * n_decisions + classes, return_inverse=True)
    size = np.bincount(places, counts).astype(np.int64)  # exact: floats are up to 2^53
    ranks, own = np.divmod(pairs, n_decisions)
    first = np.searchsorted(ranks, np.arange(ranks[-1] + 2))
    return _splits(own, size, first, n_decisions, *_table(int(size.sum())))


@jit
def _weighed(count: int, table: Ints, scale: float) -> int:
    return int(table[count]) if count < len(table) else int(np.rint(count * math.log(count) * scale))


@jit
def _splits(own: Ints, size: Ints, first: Ints, n_decisions: int, table: Ints, scale: float) -> Ints:
    n_values = len(first) - 1
    cuts = np.empty(n_values, np.int64)
    n_cuts = 0
    todo = [(0, n_values)]
    whole, left = np.zeros(n_decisions, np.int64), np.zeros(n_decisions, np.int64)
    while len(todo):
        low, high = todo.pop()
        cut = _best(own, size, first, low, high, table, scale, whole, left)
        if cut >= 0:
            cuts[n_cuts] = cut
            n_cuts += 1
            todo.append((low, cut + 1))
            todo.append((cut + 1, high))
    return np.sort(cuts[:n_cuts])


@jit
def _best(
    own: Ints, size: Ints, first: Ints, low: int, high: int, table: Ints, scale: float, whole: Ints, left: Ints
) -> int:
    """The rank in low … high-1 above which to cut; -1 if no cut pays."""
    begin, end = first[low], first[high]
    for e in range(begin, end):
        whole[own[e]] = left[own[e]] = 0
    # Σ c·ln c of the classes left and right of the cut
    n, k, n_left, inside, beyond = 0, 0, 0, 0, 0
    for e in range(begin, end):
        c = whole[own[e]]
        whole[own[e]] += size[e]
        beyond += _weighed(c + size[e], table, scale) - _weighed(c, table, scale)
        k += c == 0
        n += size[e]
    if k < 2 or high - low < 2:
        return -1
    entropies = np.full(high - low - 1, _NO_CUT, np.int64)
    for value in range(low, high - 1):
        for e in range(first[value], first[value + 1]):
            c, after, all_of_it = left[own[e]], left[own[e]] + size[e], whole[own[e]]
            inside += _weighed(after, table, scale) - _weighed(c, table, scale)
            beyond += _weighed(all_of_it - after, table, scale) - _weighed(all_of_it - c, table, scale)
            left[own[e]] = after
            n_left += size[e]
        # no cut within a run of values of one and the same class can be best
        a, b, c = first[value], first[value + 1], first[value + 2]
        if b - a > 1 or c - b > 1 or own[a] != own[b]:
            sums = _weighed(n_left, table, scale) + _weighed(n - n_left, table, scale)
            entropies[value - low] = sums - inside - beyond
    # the first of those that differ only by rounding
    least = entropies.min()
    best = low + int(np.argmax(entropies <= least + 6 * (k + 1)))
    for e in range(begin, end):
        left[own[e]] = 0
    for e in range(begin, first[best + 1]):
        left[own[e]] += size[e]
    return best if least < _NO_CUT and _pays(own[begin:end], whole, left, table, scale) else -1


@jit
def _pays(own: Ints, whole: Ints, left: Ints, table: Ints, scale: float) -> bool:
    """Whether the split of these class counts gains more bits than it takes to describe; overwrites `whole`."""
    # Gain > log2(N-1)/N + Δ/N, Δ = log2(3^k - 2) - (k·Ent(S) - k1·Ent(S1) - k2·Ent(S2)); here all is times N.
    n, k, sums, parts = np.zeros(3, np.int64), np.zeros(3, np.int64), np.zeros(3, np.int64), np.empty(3, np.int64)
    for e in range(len(own)):
        parts[0], parts[1] = whole[own[e]], left[own[e]]
        parts[2] = parts[0] - parts[1]
        whole[own[e]] = left[own[e]] = 0
        for p in range(3):
            n[p] += parts[p]
            k[p] += parts[p] > 0
            sums[p] += _weighed(parts[p], table, scale)
    bits = np.empty(3)
    for p in range(3):
        bits[p] = (_weighed(n[p], table, scale) - sums[p]) / (scale * math.log(2.0))
    described = k[0] * math.log2(3.0) + math.log2(1 - 2 * 3.0 ** -float(k[0]))
    each = k * bits / n
    return bool(bits[0] - bits[1] - bits[2] > math.log2(n[0] - 1.0) + described - (each[0] - each[1] - each[2]))
