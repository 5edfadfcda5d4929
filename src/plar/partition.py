"""Partitions U/B of the rows of a table, made by refinement: one attribute at a time splits every class.

A partition is two arrays: `order`, the rows class by class, and `starts`, where each class begins in `order`
(one more entry than classes). A refinement costs O(rows) whatever the number of values, keeps the order of the rows
within a class, and sets aside the classes that need no further one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from plar.jit import jit

__all__ = ["Array", "Codes", "Index", "Split", "distinct", "smallest_codes", "split"]

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


class Split(NamedTuple):
    """A refined partition, and what left it."""

    #: rows that stay, class by class, and where each class begins
    order: Index
    starts: Index
    #: where each row that stays stood before
    places: Index
    #: the same for the classes that left
    gone: Index
    gone_starts: Index


def split(column: Codes, n_values: int, keys: Index, order: Index, starts: Index) -> Split:
    """Split every class by the column's values; new classes whose rows share one key leave.

    Parameters
    ----------
    column : (n,) array
        Codes by row, below `n_values`.
    keys : (n,) array of uint32
        By row. Every class given must hold at least two keys.
    order, starts
        The partition.

    Examples
    --------
    >>> order, starts = np.arange(4, dtype=np.uint32), np.array([0, 4], np.uint32)
    >>> keys = np.array([5, 6, 7, 6], np.uint32)
    >>> after = split(np.array([1, 0, 1, 0], np.uint8), 2, keys, order, starts)
    >>> after.order.tolist(), after.gone.tolist()
    ([0, 2], [1, 3])
    """
    n, classes = len(order), len(starts) - 1
    new_order, places = np.empty(2 * n, np.uint32), np.empty(2 * n, np.uint32)
    new_starts, gone_starts = np.empty(n + n_values + 1, np.uint32), np.empty(n + n_values + 1, np.uint32)
    kept, classes, left = _split(
        column, n_values, keys, order, starts, new_order, places, new_starts, gone_starts
    )
    return Split(
        new_order[:kept],
        new_starts[: classes + 1],
        places[:kept],
        new_order[n : 2 * n - kept],
        gone_starts[: left + 1],
    )


@jit
def _split(
    column: Codes,
    n_values: int,
    keys: Index,
    order: Index,
    starts: Index,
    new_order: Index,
    places: Index,
    new_starts: Index,
    gone_starts: Index,
) -> tuple[int, int, int]:
    # Most classes are small and most branches on them unforeseeable, so there are few: a new class leaves if its
    # least and largest keys are equal, and then its rows go to the second half of the arrays.
    one, two = np.uint64(1), np.uint64(2)
    few = n_values <= 16
    slots = np.zeros(n_values, np.uint32)
    least, largest = np.full(n_values, 0xFFFFFFFF, np.uint32), np.zeros(n_values, np.uint32)
    met = np.arange(n_values).astype(np.uint32)
    codes = np.empty(len(order), column.dtype)
    half = np.uint64(len(order))
    kept, classes, gone, left = np.uint64(0), np.uint64(0), half, np.uint64(0)
    for c in range(np.uint64(len(starts)) - one):
        low, high = np.uint64(starts[c]), np.uint64(starts[c + one])
        if high - low == two:
            # the commonest class by far: its two rows stay together, or each leaves alone
            a, b = np.uint64(order[low]), np.uint64(order[low + one])
            stays = column[a] == column[b]
            target = kept if stays else gone
            new_order[target], new_order[target + one] = a, b
            places[target], places[target + one] = low, low + one
            new_starts[classes] = kept
            gone_starts[left], gone_starts[left + one] = gone - half, gone - half + one
            kept += two if stays else np.uint64(0)
            classes += np.uint64(stays)
            gone += np.uint64(0) if stays else two
            left += np.uint64(0) if stays else two
            continue
        n_met = np.uint64(n_values) if few else np.uint64(0)
        for i in range(low, high):
            row = np.uint64(order[i])
            v = np.uint64(column[row])
            codes[i - low] = v
            if not few and slots[v] == 0:
                met[n_met] = v
                n_met += one
            slots[v] += np.uint32(1)
            least[v] = min(least[v], keys[row])
            largest[v] = max(largest[v], keys[row])
        for t in range(n_met):
            v = np.uint64(met[t])
            size = np.uint64(slots[v])
            stays, leaves = least[v] < largest[v], least[v] == largest[v]
            new_starts[classes], gone_starts[left] = kept, gone - half
            slots[v] = kept if stays else gone
            kept += size if stays else np.uint64(0)
            gone += size if leaves else np.uint64(0)
            classes += np.uint64(stays)
            left += np.uint64(leaves)
        for i in range(low, high):
            v = np.uint64(codes[i - low])
            place = np.uint64(slots[v])
            new_order[place] = order[i]
            places[place] = i
            slots[v] = place + one
        for t in range(n_met):
            v = np.uint64(met[t])
            slots[v], least[v], largest[v] = 0, 0xFFFFFFFF, 0
    new_starts[classes], gone_starts[left] = kept, gone - half
    return int(kept), int(classes), int(left)


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
        All rows, class by class; those that are alone first.

    Examples
    --------
    >>> order, starts = distinct([(np.array([0, 1, 0], np.uint8), 2)], 3)
    >>> sorted(sorted(c.tolist()) for c in np.split(order, starts[1:-1]))
    [[0, 2], [1]]
    """
    rows = np.arange(n_rows, dtype=np.uint32)
    order, starts = rows, np.array([0, n_rows] if n_rows else [0], np.uint32)
    alone = []
    for column, n_values in columns:
        if len(order) < 2:
            break
        if n_values > 1:
            order, starts, _, gone, _ = split(column, n_values, rows, order, starts)
            alone.append(gone)
    singles = np.concatenate([*alone, order[:0]])
    n_singles = np.uint32(len(singles))
    every = np.concatenate([singles, order])
    return every, np.concatenate([np.arange(n_singles, dtype=np.uint32), starts + n_singles])
