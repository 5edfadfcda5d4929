"""Partitions U/B of the rows of a table, made by refinement: one attribute at a time splits every class.

A partition is two arrays: `order`, the rows class by class, and `starts`, where each class begins in `order`
(one more entry than classes). A refinement costs O(rows) whatever the number of values.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from plar.jit import jit

__all__ = ["Array", "Codes", "Index", "distinct", "refine", "smallest_codes"]

Array: TypeAlias = NDArray[Any]
Index: TypeAlias = NDArray[np.uint32]
#: dictionary codes of one column, in the smallest unsigned type that holds them
Codes: TypeAlias = NDArray[np.unsignedinteger[Any]]


def smallest_codes(codes: Array, n_values: int) -> Codes:
    """Store dictionary codes in the smallest of uint8, uint16 and uint32.

    Examples
    --------
    >>> smallest_codes(np.array([0, 1, 299]), 300).dtype
    dtype('uint16')
    """
    kind: type[np.unsignedinteger[Any]] = (
        np.uint8 if n_values <= 1 << 8 else np.uint16 if n_values <= 1 << 16 else np.uint32
    )
    return np.ascontiguousarray(codes, dtype=kind)


@jit
def _refine(values: Index, starts: Index, slots: Index, perm: Index, new_starts: Index) -> int:
    # values[i]: the code of the row at place i. Stable: rows of a new class keep their order.
    # slots, zeroed, has one entry per code; only touched ones are used and cleared, so that a class of
    # s rows costs O(s) for any number of codes.
    one = np.uint64(1)
    touched = np.empty(len(slots), np.uint32)
    made = np.uint64(0)
    for c in range(np.uint64(len(starts)) - one):
        low, high = np.uint64(starts[c]), np.uint64(starts[c + one])
        if high - low == one:
            perm[low] = low
            new_starts[made] = low
            made += one
            continue
        n_touched = np.uint64(0)
        for i in range(low, high):
            v = np.uint64(values[i])
            if slots[v] == 0:
                touched[n_touched] = v
                n_touched += one
            slots[v] += np.uint32(1)
        place = low
        for t in range(n_touched):
            v = np.uint64(touched[t])
            size = np.uint64(slots[v])
            new_starts[made] = place
            made += one
            slots[v] = place
            place += size
        for i in range(low, high):
            v = np.uint64(values[i])
            perm[slots[v]] = i
            slots[v] += np.uint32(1)
        for t in range(n_touched):
            slots[np.uint64(touched[t])] = 0
    new_starts[made] = starts[len(starts) - 1]
    return int(made)


def refine(column: Codes, n_values: int, order: Index, starts: Index) -> tuple[Index, Index]:
    """Split every class by the column's values.

    Returns
    -------
    perm : (n,) array
        The new order is ``order[perm]``; within a new class the rows keep their order.
    starts : (k + 1,) array
        Where the new classes begin.

    Examples
    --------
    >>> order, starts = np.arange(4, dtype=np.uint32), np.array([0, 4], np.uint32)
    >>> perm, starts = refine(np.array([1, 0, 1, 0], np.uint8), 2, order, starts)
    >>> perm.tolist(), starts.tolist()
    ([0, 2, 1, 3], [0, 2, 4])
    """
    n = len(order)
    perm, new_starts = np.empty(n, np.uint32), np.empty(n + 1, np.uint32)
    values = column[order].astype(np.uint32, copy=False)
    made = _refine(values, starts, np.zeros(n_values, np.uint32), perm, new_starts)
    return perm, new_starts[: made + 1].copy()


@jit
def _set_singletons_aside(order: Index, starts: Index, alone: Index) -> tuple[int, int, int]:
    # Compacts order and starts in place to the classes of two rows and more; the other rows go to `alone`.
    one = np.uint64(1)
    n_alone, place, classes = np.uint64(0), np.uint64(0), np.uint64(0)
    for c in range(np.uint64(len(starts)) - one):
        low, high = np.uint64(starts[c]), np.uint64(starts[c + one])
        if high - low == one:
            alone[n_alone] = order[low]
            n_alone += one
            continue
        starts[classes] = place
        classes += one
        for i in range(low, high):
            order[place] = order[i]
            place += one
    starts[classes] = place
    return int(n_alone), int(place), int(classes)


def distinct(columns: Iterable[tuple[Codes, int]], n_rows: int) -> tuple[Index, Index]:
    """Partition rows by all columns together: equal rows share a class.

    A row that is alone in its class is done with, so high-entropy tables take a few columns and no hashing.

    Parameters
    ----------
    columns : iterable of (codes, number of codes)
    n_rows : int

    Returns
    -------
    order, starts
        All rows, class by class.

    Examples
    --------
    >>> order, starts = distinct([(np.array([0, 1, 0], np.uint8), 2)], 3)
    >>> sorted(sorted(c.tolist()) for c in np.split(order, starts[1:-1]))
    [[0, 2], [1]]
    """
    order = np.arange(n_rows, dtype=np.uint32)
    starts = np.array([0, n_rows] if n_rows else [0], np.uint32)
    done = np.empty(n_rows, np.uint32)
    n_done = 0
    for column, n_values in columns:
        if not len(order):
            break
        if n_values < 2:
            continue
        perm, starts = refine(column, n_values, order, starts)
        order = order[perm]
        alone, kept, classes = _set_singletons_aside(order, starts, done[n_done:])
        order, starts = order[:kept], starts[: classes + 1]
        n_done += alone
    singles = np.arange(n_done, dtype=np.uint32)
    return np.concatenate([done[:n_done], order]), np.concatenate([singles, starts + np.uint32(n_done)])
