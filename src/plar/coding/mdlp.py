"""Entropy splits under the minimum description length: where the decision changes along a sorted column.

References
----------
U. M. Fayyad, K. B. Irani: Multi-Interval Discretization of Continuous-Valued Attributes for Classification Learning,
IJCAI 1993, 1022-1027.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plar.partition import Array

__all__ = ["mdlp_splits"]


@dataclass(frozen=True, slots=True, eq=False)
class _Entries:
    """How many objects have a value and a class, sorted by value, then class."""

    classes: NDArray[np.int64]
    counts: NDArray[np.int64]
    #: objects of the same class at lower values
    before: NDArray[np.int64]
    #: where the entries of each value begin, and the end
    first: NDArray[np.int64]
    #: whether a cut above each value but the last can be best: not within a run of values of one and the same class
    boundary: NDArray[np.bool_]
    #: one place for every class
    scratch: NDArray[np.int64]
    #: c·ln c is rounded to multiples of 1/scale
    scale: float


def mdlp_splits(at: Array, classes: Array, counts: NDArray[np.int64]) -> NDArray[np.intp]:
    """Values above which to cut, as ranks, ascending.

    Parameters
    ----------
    at : (n,) array of int
        Rank of the value of each entry; every rank from 0 on occurs.
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
    entries = _entries(at, classes, counts)
    todo, found = [(0, len(entries.first) - 1)], []
    while todo:
        low, high = todo.pop()
        cut = _best(entries, low, high)
        if cut is not None:
            found.append(cut)
            todo += [(low, cut + 1), (cut + 1, high)]
    return np.array(sorted(found), np.intp)


def _entries(at: Array, classes: Array, counts: NDArray[np.int64]) -> _Entries:
    order = np.lexsort((classes, at))
    at, classes, counts = at[order], classes[order].astype(np.int64), counts[order]
    new = np.append(True, (at[1:] != at[:-1]) | (classes[1:] != classes[:-1]))
    counts = np.add.reduceat(counts, np.flatnonzero(new))
    at, classes = at[new], classes[new]
    by_class = np.argsort(classes, kind="stable")
    before = np.cumsum(counts[by_class]) - counts[by_class]
    begins = np.append(True, np.diff(classes[by_class]) > 0)
    before -= before[begins][np.cumsum(begins) - 1]
    before[by_class] = before.copy()
    first = np.searchsorted(at, np.arange(int(at[-1]) + 2))
    single = np.diff(first) == 1
    own = classes[first[:-1]]
    n = int(counts.sum())
    bits = math.ceil(math.log2(n * math.log(n) + 2))
    return _Entries(
        classes,
        counts,
        before,
        first,
        ~(single[1:] & single[:-1] & (own[1:] == own[:-1])),
        np.zeros(int(classes.max()) + 1, np.int64),
        2.0 ** (52 - bits),
    )


def _best(entries: _Entries, low: int, high: int) -> int | None:
    """Value among ranks low … high-1 above which to cut, if it pays.

    The sums of c·ln c that make the entropies are of integers, each rounded alone, so that no order changes them.
    """
    begin, end = entries.first[low], entries.first[high]
    classes, counts, scratch = entries.classes[begin:end], entries.counts[begin:end], entries.scratch
    scratch[classes[::-1]] = entries.before[begin:end][::-1]  # where a class comes twice, its first entry stays
    left = entries.before[begin:end] - scratch[classes]
    scratch[classes] = left + counts
    whole = scratch[classes]
    opening = left == 0
    k = int(opening.sum())
    ends = entries.first[low + 1 : high] - begin - 1
    ends = ends[entries.boundary[low : high - 1]]
    if k < 2 or not len(ends):
        return None

    def rounded(c: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.rint(_x_log_x(c) * entries.scale).astype(np.int64)

    # counts change entry by entry, so their sums are running ones
    n_left = np.cumsum(counts)[ends]
    n_right = counts.sum() - n_left
    inside = np.cumsum(rounded(left + counts) - rounded(left))[ends]
    beyond = rounded(whole[opening]).sum() + np.cumsum(rounded(whole - left - counts) - rounded(whole - left))[ends]
    entropy = rounded(n_left) - inside + rounded(n_right) - beyond
    # what differs by rounding alone is as good
    best = int(np.flatnonzero(entropy <= entropy.min() + 6 * (k + 1))[0])

    parent = whole[opening]
    present, upto = classes[opening], int(ends[best]) + 1
    scratch[present] = 0
    scratch[classes[:upto]] = (left + counts)[:upto]
    child = scratch[present]
    if not _pays(parent, child):
        return None
    return low + int(np.flatnonzero(entries.boundary[low : high - 1])[best])


def _pays(parent: NDArray[np.int64], child: NDArray[np.int64]) -> bool:
    """Whether the split of these class counts gains more bits than it takes to describe.

    Gain > log2(N-1)/N + Δ/N, Δ = log2(3^k - 2) - (k·Ent(S) - k1·Ent(S1) - k2·Ent(S2)); here all is times N.
    """
    parts = [counts[counts > 0] for counts in (parent, child, parent - child)]
    sizes = [int(counts.sum()) for counts in parts]
    bits = [_bits(counts, n) for counts, n in zip(parts, sizes, strict=True)]
    whole, one, two = (len(counts) * b / n for counts, b, n in zip(parts, bits, sizes, strict=True))
    k = len(parent)
    described = k * math.log2(3) + math.log2(1 - 2 / 3**k if k < 40 else 1)
    return bits[0] - bits[1] - bits[2] > math.log2(sizes[0] - 1) + described - (whole - one - two)


def _bits(counts: NDArray[np.int64], n: int) -> float:
    """n·Ent of class counts, in bits; the sum is exact, so that their order does not matter."""
    return math.fsum([n * math.log(n), *(-_x_log_x(counts))]) / math.log(2)


def _x_log_x(counts: NDArray[np.int64]) -> NDArray[Any]:
    numbers = counts.astype(np.float64)
    return numbers * np.log(np.maximum(numbers, 1.0))
