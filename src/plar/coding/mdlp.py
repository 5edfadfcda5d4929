"""Entropy splits under the minimum description length: where the decision changes along a sorted column.

References
----------
U. M. Fayyad, K. B. Irani: Multi-Interval Discretization of Continuous-Valued Attributes for Classification Learning,
IJCAI 1993, 1022-1027.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from plar.grouping.partition import Array, Ints
from plar.runtime.jit import jit

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


def mdlp_splits(ranks: Array, decisions: Array, counts: Ints) -> Ints:
    """Values above which to cut, as ranks, ascending; entries are a value's rank, a decision and their count."""
    n_decisions = int(decisions.max()) + 1
    pairs, pair_numbers = np.unique(ranks * n_decisions + decisions, return_inverse=True)
    size_of_entry = np.bincount(pair_numbers, counts).astype(np.int64)  # exact: floats are up to 2^53
    rank_of_entry, decision_of_entry = np.divmod(pairs, n_decisions)
    first_entry = np.searchsorted(rank_of_entry, np.arange(rank_of_entry[-1] + 2))
    table, scale = _table(int(size_of_entry.sum()))
    return _splits(decision_of_entry, size_of_entry, first_entry, n_decisions, table, scale)


@jit
def _weighed(count: int, table: Ints, scale: float) -> int:
    return int(table[count]) if count < len(table) else int(np.rint(count * math.log(count) * scale))


# In these kernels the entries are the different pairs of a value and a decision, value by value: `first_entry` has for
# each value, by its rank, where its entries begin, and a final end.


@jit
def _splits(
    decision_of_entry: Ints, size_of_entry: Ints, first_entry: Ints, n_decisions: int, table: Ints, scale: float
) -> Ints:
    n_values = len(first_entry) - 1
    cuts = np.empty(n_values, np.int64)
    n_cuts = 0
    todo = [(0, n_values)]
    counts = np.zeros(n_decisions, np.int64)
    left_counts = np.zeros(n_decisions, np.int64)
    while len(todo):
        low, high = todo.pop()
        cut = _best(decision_of_entry, size_of_entry, first_entry, low, high, table, scale, counts, left_counts)
        if cut >= 0:
            cuts[n_cuts] = cut
            n_cuts += 1
            todo.append((low, cut + 1))
            todo.append((cut + 1, high))
    return np.sort(cuts[:n_cuts])


@jit
def _best(
    decision_of_entry: Ints,
    size_of_entry: Ints,
    first_entry: Ints,
    low: int,
    high: int,
    table: Ints,
    scale: float,
    counts: Ints,
    left_counts: Ints,
) -> int:
    """The rank in low … high-1 above which to cut; -1 if no cut pays. The counts by decision are working memory."""
    begin = first_entry[low]
    end = first_entry[high]
    for e in range(begin, end):
        decision = decision_of_entry[e]
        counts[decision] = 0
        left_counts[decision] = 0
    n_objects = 0
    n_decisions = 0
    # Σ c·ln c of the decision counts left and right of the cut, which begins at the left end
    left_sum = 0
    right_sum = 0
    for e in range(begin, end):
        decision = decision_of_entry[e]
        count = counts[decision]
        counts[decision] += size_of_entry[e]
        right_sum += _weighed(count + size_of_entry[e], table, scale) - _weighed(count, table, scale)
        n_decisions += count == 0
        n_objects += size_of_entry[e]
    if n_decisions < 2 or high - low < 2:
        return -1
    entropies = np.full(high - low - 1, _NO_CUT, np.int64)
    n_left = 0
    for value in range(low, high - 1):
        for e in range(first_entry[value], first_entry[value + 1]):
            decision = decision_of_entry[e]
            before = left_counts[decision]
            after = before + size_of_entry[e]
            count = counts[decision]
            left_sum += _weighed(after, table, scale) - _weighed(before, table, scale)
            right_sum += _weighed(count - after, table, scale) - _weighed(count - before, table, scale)
            left_counts[decision] = after
            n_left += size_of_entry[e]
        # no cut within a run of values of one and the same decision can be best
        entry = first_entry[value]
        next_entry = first_entry[value + 1]
        has_several = next_entry - entry > 1
        next_has_several = first_entry[value + 2] - next_entry > 1
        if has_several or next_has_several or decision_of_entry[entry] != decision_of_entry[next_entry]:
            sums = _weighed(n_left, table, scale) + _weighed(n_objects - n_left, table, scale)
            entropies[value - low] = sums - left_sum - right_sum
    # the first of those that differ only by rounding
    least = entropies.min()
    best = low + int(np.argmax(entropies <= least + 6 * (n_decisions + 1)))
    for e in range(begin, end):
        left_counts[decision_of_entry[e]] = 0
    for e in range(begin, first_entry[best + 1]):
        left_counts[decision_of_entry[e]] += size_of_entry[e]
    if least < _NO_CUT and _pays(decision_of_entry[begin:end], counts, left_counts, table, scale):
        return best
    return -1


@jit
def _pays(decision_of_entry: Ints, counts: Ints, left_counts: Ints, table: Ints, scale: float) -> bool:
    """Whether the split of these decision counts gains more bits than it takes to describe; sets the counts to 0."""
    # Gain > log2(N-1)/N + Δ/N, Δ = log2(3^k - 2) - (k·Ent(S) - k1·Ent(S1) - k2·Ent(S2)); here all is times N.
    # The arrays are of S, S1 and S2: the whole, the part left of the cut and the part right of it.
    n = np.zeros(3, np.int64)
    k = np.zeros(3, np.int64)
    sums = np.zeros(3, np.int64)
    count_in = np.empty(3, np.int64)
    for e in range(len(decision_of_entry)):
        decision = decision_of_entry[e]
        count_in[0] = counts[decision]
        count_in[1] = left_counts[decision]
        count_in[2] = count_in[0] - count_in[1]
        counts[decision] = 0
        left_counts[decision] = 0
        for p in range(3):
            n[p] += count_in[p]
            k[p] += count_in[p] > 0
            sums[p] += _weighed(count_in[p], table, scale)
    bits = np.empty(3)
    for p in range(3):
        bits[p] = (_weighed(n[p], table, scale) - sums[p]) / (scale * math.log(2.0))
    described = k[0] * math.log2(3.0) + math.log2(1 - 2 * 3.0 ** -float(k[0]))
    each = k * bits / n
    return bool(bits[0] - bits[1] - bits[2] > math.log2(n[0] - 1.0) + described - (each[0] - each[1] - each[2]))
