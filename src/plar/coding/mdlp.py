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

from plar.jit import jit
from plar.partition import Array

__all__ = ["mdlp_splits"]

Counts: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
#: c·ln c is looked up for counts below
_TABLED = 1 << 16
_NONE = 1 << 62


@lru_cache(maxsize=1)
def _table(below: int) -> Floats:
    numbers = np.arange(below, dtype=np.float64)
    return numbers * np.log(np.maximum(numbers, 1.0))


def mdlp_splits(at: Array, classes: Array, counts: Counts) -> NDArray[np.int64]:
    """Values above which to cut, as ranks, ascending.

    Parameters
    ----------
    at : (n,) array of int
        Rank of the value of each entry; every rank from 0 on occurs. Entries below 0 do not count.
    classes : (n,) array of int
        Its class, from 0 on.
    counts : (n,) array of int64
        How many objects have both.

    Examples
    --------
    >>> rank = np.repeat(np.arange(8), 10)
    >>> mdlp_splits(rank, (rank >= 3).astype(int), np.ones(80, np.int64)).tolist()
    [2]
    """
    logs = _table(min(1 << int(counts.sum()).bit_length(), _TABLED))
    return _splits(at.astype(np.int64), classes.astype(np.int64), counts, logs)


@jit
def _log(count: int, logs: Floats) -> float:
    return float(logs[count]) if count < len(logs) else count * math.log(count)


@jit
def _sorted(by: Counts, order: Counts, n: int) -> Counts:
    # stable, by counting: keys are below n, and those of -1 are left out
    starts = np.zeros(n + 1, np.int64)
    kept = 0
    for i in order:
        if by[i] >= 0:
            starts[by[i] + 1] += 1
            kept += 1
    for v in range(n):
        starts[v + 1] += starts[v]
    after = np.empty(kept, np.int64)
    for i in order:
        if by[i] >= 0:
            after[starts[by[i]]] = i
            starts[by[i]] += 1
    return after


@jit
def _splits(at: Counts, classes: Counts, counts: Counts, logs: Floats) -> Counts:
    n_classes, n_values = classes.max() + 1, at.max() + 1
    order = _sorted(at, _sorted(classes, np.arange(len(at)), n_classes), n_values)
    # entries, by value, then class: the class and how many objects; and where those of each value begin
    own, size, first = np.empty_like(order), np.zeros_like(order), np.empty(n_values + 1, np.int64)
    made, last, total = 0, -1, np.int64(0)
    for i in order:
        if at[i] != last:
            last = at[i]
            first[last] = made
        elif own[made - 1] == classes[i]:
            made -= 1
        own[made] = classes[i]
        size[made] += counts[i]
        total += counts[i]
        made += 1
    first[n_values] = made
    scale = 2.0 ** (52 - math.ceil(math.log2(total * math.log(total) + 2)))
    found, n_found = np.empty(n_values, np.int64), 0
    todo = [(0, n_values)]
    whole, left = np.zeros(n_classes, np.int64), np.zeros(n_classes, np.int64)
    while len(todo):
        low, high = todo.pop()
        cut = _best(own, size, first, low, high, scale, logs, whole, left)
        if cut >= 0:
            found[n_found] = cut
            n_found += 1
            todo.append((low, cut + 1))
            todo.append((cut + 1, high))
    return np.sort(found[:n_found])


@jit
def _rounded(count: int, scale: float, logs: Floats) -> int:
    return int(np.rint(_log(count, logs) * scale))


@jit
def _best(
    own: Counts,
    size: Counts,
    first: Counts,
    low: int,
    high: int,
    scale: float,
    logs: Floats,
    whole: Counts,
    left: Counts,
) -> int:
    """Value among ranks low … high-1 above which to cut, if it pays, else -1."""
    # The sums of c·ln c that make the entropies are of integers, each rounded alone, so that no order changes them.
    begin, end = first[low], first[high]
    for e in range(begin, end):
        whole[own[e]] = left[own[e]] = 0
    n, k = 0, 0
    for e in range(begin, end):
        k += whole[own[e]] == 0
        whole[own[e]] += size[e]
        n += size[e]
    if k < 2:
        return -1
    beyond, inside, n_left = 0, 0, 0
    for e in range(begin, end):
        if left[own[e]] == 0:
            beyond += _rounded(whole[own[e]], scale, logs)
            left[own[e]] = 1
    for e in range(begin, end):
        left[own[e]] = 0
    entropies = np.empty(high - low - 1, np.int64)
    least = _NONE
    for value in range(low, high - 1):
        for e in range(first[value], first[value + 1]):
            c, after = left[own[e]], left[own[e]] + size[e]
            inside += _rounded(after, scale, logs) - _rounded(c, scale, logs)
            beyond += _rounded(whole[own[e]] - after, scale, logs) - _rounded(whole[own[e]] - c, scale, logs)
            left[own[e]] = after
            n_left += size[e]
        # no cut within a run of values of one and the same class can be best
        a, b, c = first[value], first[value + 1], first[value + 2]
        if b - a == 1 and c - b == 1 and own[a] == own[b]:
            entropies[value - low] = _NONE
            continue
        entropy = _rounded(n_left, scale, logs) - inside + _rounded(n - n_left, scale, logs) - beyond
        entropies[value - low] = entropy
        least = min(least, entropy)
    # what differs by rounding alone is as good
    best = -1
    for value in range(low, high - 1):
        if entropies[value - low] <= least + 6 * (k + 1) and entropies[value - low] < _NONE:
            best = value
            break
    if best < 0:
        return best
    for e in range(begin, end):
        left[own[e]] = 0
    for e in range(begin, first[best + 1]):
        left[own[e]] += size[e]
    return best if _pays(own[begin:end], whole, left, logs) else -1


@jit
def _pays(own: Counts, whole: Counts, left: Counts, logs: Floats) -> bool:
    """Whether the split of these class counts gains more bits than it takes to describe; spoils `whole`."""
    # Gain > log2(N-1)/N + Δ/N, Δ = log2(3^k - 2) - (k·Ent(S) - k1·Ent(S1) - k2·Ent(S2)); here all is times N.
    # n·Ent = n·ln n - Σ c·ln c, whose sum is as if exact, in two words, so that no order changes it.
    n, k, high, low = np.zeros(3, np.int64), np.zeros(3, np.int64), np.zeros(3), np.zeros(3)
    parts = np.empty(3, np.int64)
    for e in range(len(own)):
        parts[0], parts[1] = whole[own[e]], left[own[e]]
        parts[2] = parts[0] - parts[1]
        whole[own[e]] = left[own[e]] = 0
        for p in range(3):
            if parts[p]:
                n[p] += parts[p]
                k[p] += 1
                _add(high, low, p, -_log(parts[p], logs))
    for p in range(3):
        _add(high, low, p, n[p] * math.log(n[p]))
    bits = (high + low) / math.log(2.0)
    power = 1.0
    for _ in range(min(k[0], 40)):
        power *= 3.0
    described = k[0] * math.log2(3.0) + math.log2(1 - 2 / power if k[0] < 40 else 1.0)
    each = k * bits / n
    return bool(bits[0] - bits[1] - bits[2] > math.log2(n[0] - 1.0) + described - (each[0] - each[1] - each[2]))


@jit
def _add(high: Floats, low: Floats, p: int, term: float) -> None:
    total = high[p] + term
    shifted = total - high[p]
    low[p] += (high[p] - (total - shifted)) + (term - shifted)
    high[p] = total
