"""Partitions U/B of the rows of a table, made by refinement: one attribute at a time splits every class.

A partition is two arrays: `order`, the rows class by class, and `starts`, where each class begins in `order`
(one more entry than classes). A refinement costs O(rows) whatever the number of values, keeps the order of the rows
within a class, and sets aside the classes that need no further refinement.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from plar.runtime.jit import jit

T = TypeVar("T")
Array: TypeAlias = NDArray[Any]
Index: TypeAlias = NDArray[np.uint32]
Ints: TypeAlias = NDArray[np.int64]
#: dictionary codes of one column, in the smallest unsigned type that holds them
Codes: TypeAlias = NDArray[np.unsignedinteger[Any]]


def smallest_codes(codes: Array, n_values: int) -> Codes:
    """Store dictionary codes in the smallest of uint8, uint16 and uint32."""
    return np.ascontiguousarray(codes, dtype=np.min_scalar_type(max(n_values - 1, 0)))


class Split(NamedTuple):
    """A refined partition, and the classes that were dropped from it."""

    #: rows that stay, class by class, and where each class begins
    order: Index
    starts: Index
    #: the same for the dropped classes
    gone: Index
    gone_starts: Index


def byte_groups(columns: Iterable[tuple[T, int]]) -> Iterator[list[tuple[T, int]]]:
    """Group columns so that the combined values of a group still fit a byte: one pass splits by all of them.

    Columns of one value split nothing and are left out.

    Examples
    --------
    >>> [len(group) for group in byte_groups([("few", 4)] * 6 + [("many", 300), ("two", 2)])]
    [4, 2, 1, 1]
    """
    group: list[tuple[T, int]] = []
    for column, n_values in columns:
        if n_values < 2:
            continue
        if group and n_values * math.prod(of_column for _, of_column in group) > 256:
            yield group
            group = []
        group.append((column, n_values))
    if group:
        yield group


def split(group: Sequence[tuple[Codes, int]], keys: Index, order: Index, starts: Index) -> Split:
    """Split every class by some columns, given as (codes by row, number of codes); classes with one key are dropped.

    Keys are by row; every class given must hold at least two.

    Examples
    --------
    >>> order, starts = np.arange(4, dtype=np.uint32), np.array([0, 4], np.uint32)
    >>> after = split([(np.array([1, 0, 1, 0], np.uint8), 2)], np.array([5, 6, 7, 6], np.uint32), order, starts)
    >>> after.order.tolist(), after.gone.tolist()
    ([0, 2], [1, 3])
    """
    n, n_values = len(order), math.prod(of_column for _, of_column in group)
    codes = smallest_codes(np.zeros(n, np.uint8), n_values)
    for column, of_column in group:
        _append(codes, of_column, column, order)
    new_order = np.empty(2 * n, np.uint32)
    new_starts, gone_starts = np.empty(n + n_values + 1, np.uint32), np.empty(n + n_values + 1, np.uint32)
    kept, classes, left = refine(codes, n_values, keys, order, starts, (new_order, new_starts, gone_starts))
    return Split(new_order[:kept], new_starts[: classes + 1], new_order[n : 2 * n - kept], gone_starts[: left + 1])


def in_order(column: Array, order: Index, dtype: Any = np.uint32) -> Array:
    """Take a column in the order of the rows of a partition.

    >>> in_order(np.array([7, 8, 9], np.uint8), np.array([2, 0], np.uint32)).tolist()
    [9, 7]
    """
    taken = np.empty(len(order), dtype)
    _gather(column, order, taken)
    return taken


@jit
def _gather(column: Array, order: Index, taken: Array) -> None:
    for i in range(np.uint64(len(order))):
        taken[i] = column[order[i]]


@jit
def _append(codes: Codes, n_values: int, column: Codes, order: Index) -> None:
    # codes, in the order of the partition, with those of one more column
    for i in range(np.uint64(len(order))):
        codes[i] = codes[i] * n_values + column[order[i]]


@jit
def refine(
    codes: Codes, n_values: int, keys: Index, order: Index, starts: Index, refined: tuple[Index, Index, Index]
) -> tuple[int, int, int]:
    """Split every class by codes in the order of the partition; the kernel of `split`."""
    # Most classes are small and branches on them unpredictable, so there are few: a new class is dropped if its
    # smallest and largest keys are equal, and then its rows go to the second half of the arrays.
    new_order, new_starts, gone_starts = refined
    one, two, values = np.uint64(1), np.uint64(2), np.uint64(n_values)
    slots = np.zeros(n_values, np.uint32)
    least, largest = np.full(n_values, 0xFFFFFFFF, np.uint32), np.zeros(n_values, np.uint32)
    met = np.empty(n_values, np.uint32)
    half = np.uint64(len(order))
    kept, classes, gone, left = np.uint64(0), np.uint64(0), half, np.uint64(0)
    for c in range(np.uint64(len(starts)) - one):
        low, high = np.uint64(starts[c]), np.uint64(starts[c + one])
        if high - low == two:
            # by far the most common class: its two rows stay together, or both are dropped
            a, b = np.uint64(order[low]), np.uint64(order[low + one])
            stays = codes[low] == codes[low + one]
            target = kept if stays else gone
            new_order[target], new_order[target + one] = a, b
            new_starts[classes] = kept
            gone_starts[left], gone_starts[left + one] = gone - half, gone - half + one
            kept += two if stays else np.uint64(0)
            classes += np.uint64(stays)
            gone += np.uint64(0) if stays else two
            left += np.uint64(0) if stays else two
            continue
        # with few values loop over all of them, else over those that occur
        few = values <= np.uint64(16) or values <= high - low
        if few:
            for t in range(values):
                met[t] = t
        n_met = values if few else np.uint64(0)
        for i in range(low, high):
            v, key = np.uint64(codes[i]), keys[order[i]]
            if not few and slots[v] == 0:
                met[n_met] = v
                n_met += one
            slots[v] += np.uint32(1)
            least[v] = min(least[v], key)
            largest[v] = max(largest[v], key)
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
            v = np.uint64(codes[i])
            place = np.uint64(slots[v])
            new_order[place] = order[i]
            slots[v] = place + one
        for t in range(n_met):
            v = np.uint64(met[t])
            slots[v], least[v], largest[v] = 0, 0xFFFFFFFF, 0
    new_starts[classes], gone_starts[left] = kept, gone - half
    return int(kept), int(classes), int(left)


def distinct(
    columns: Iterable[tuple[Codes, int]], n_rows: int, rows: Index | None = None, starts: Index | None = None
) -> tuple[Index, Index]:
    """Partition rows by all columns together: equal rows share a class, in which they keep the order of `rows`.

    With `starts`, refine the partition that an earlier call returned.

    The rows that are alone in their class come first. They are not looked at again, so high-entropy tables
    take a few columns and no hashing.

    Examples
    --------
    >>> order, starts = distinct([(np.array([0, 1, 0], np.uint8), 2)], 3)
    >>> sorted(sorted(c.tolist()) for c in np.split(order, starts[1:-1]))
    [[0, 2], [1]]
    """
    keys = np.arange(n_rows, dtype=np.uint32)
    order = keys if rows is None else rows
    if starts is None:
        starts = np.array([0, n_rows] if n_rows else [0], np.uint32)
    n_alone = np.uint32((np.diff(starts) == 1).sum())
    alone, order, starts = [order[:n_alone]], order[n_alone:], starts[n_alone:] - n_alone
    for group in byte_groups(columns):
        if len(order) < 2:
            break
        order, starts, gone, _ = split(group, keys, order, starts)
        alone.append(gone)
    singles = np.concatenate([*alone, order[:0]])
    n_singles = np.uint32(len(singles))
    every = np.concatenate([singles, order])
    return every, np.concatenate([np.arange(n_singles, dtype=np.uint32), starts + n_singles])


def count_distinct(columns: Iterable[tuple[Codes, int]], n_rows: int) -> int:
    """How many rows differ by all columns together.

    Examples
    --------
    >>> count_distinct([(np.array([0, 1, 0], np.uint8), 2)], 3)
    2
    """
    return len(distinct(columns, n_rows)[1]) - 1


class Runs(NamedTuple):
    """Rows of a partition whose classes stand decision by decision: a run is the rows of a class with one decision."""

    #: numbers of objects, in the order of the partition
    weights: Ints
    #: where each run begins, and the first run of each class, both with a final end
    begins: Index
    first: Index


def find_runs(decisions: Index, counts: Ints, order: Index, starts: Index) -> Runs:
    """Find the runs; decisions and counts are by row.

    >>> decisions, order = np.array([0, 1, 0], np.uint32), np.array([0, 2, 1], np.uint32)
    >>> runs = find_runs(decisions, np.array([5, 6, 7]), order, np.array([0, 3], np.uint32))
    >>> runs.weights.tolist(), runs.begins.tolist(), runs.first.tolist()
    ([5, 7, 6], [0, 2, 3], [0, 2])
    """
    begins, first = np.empty(len(order) + 1, np.uint32), np.empty(len(starts), np.uint32)
    n = _find_runs(decisions, order, starts, begins, first)
    return Runs(weights_in_order(counts, order), begins[: n + 1], first)


def weights_in_order(counts: Ints, order: Index) -> Ints:
    """Take the counts of rows in the order of a partition; they are often all 1, in any order.

    >>> weights_in_order(np.array([5, 6, 7]), np.array([2, 0], np.uint32)).tolist()
    [7, 5]
    """
    if (counts == 1).all():
        return counts[: len(order)]
    return in_order(counts, order, np.int64)


@jit
def _find_runs(decisions: Index, order: Index, starts: Index, runs: Index, class_runs: Index) -> int:
    made, one = np.uint64(0), np.uint64(1)
    for c in range(np.uint64(len(starts)) - one):
        class_runs[c] = made
        low, high = np.uint64(starts[c]), np.uint64(starts[c + one])
        last = np.uint32(0xFFFFFFFF)
        for i in range(low, high):
            decision = decisions[np.uint64(order[i])]
            runs[made] = i
            made += np.uint64(decision != last)
            last = decision
    class_runs[len(starts) - 1] = made
    runs[made] = starts[len(starts) - 1]
    return int(made)


def class_numbers(order: Index, starts: Index) -> NDArray[np.uint64]:
    """Give every row the number of its class."""
    numbers = np.empty(len(order), np.uint64)
    numbers[order] = np.repeat(np.arange(len(starts) - 1, dtype=np.uint64), np.diff(starts))
    return numbers


def in_halves(attributes: Iterable[int], n_values: Sequence[int]) -> tuple[list[int], list[int]]:
    """Divide attributes into two halves, each with the many-valued ones first: they shrink a partition fastest."""
    falling = sorted(attributes, key=lambda a: -n_values[a])
    return falling[0::2], falling[1::2]


def leaving_out_each(
    attributes: Sequence[int], partition: T, refine: Callable[[T, Sequence[int]], T], is_final: Callable[[T], bool]
) -> Iterator[tuple[Sequence[int], T]]:
    """Yield groups of attributes, which cover all of them, with the partition without any single one of the group.

    `partition` is U/(B∖attributes). Halving takes |B| log |B| refinements. Once no attribute can change a
    partition, its attributes stay one group.

    Examples
    --------
    >>> found = leaving_out_each("abc", "", lambda partition, others: partition + "".join(others), lambda _: False)
    >>> [(a, "".join(sorted(others))) for a, others in found]
    [('a', 'bc'), ('c', 'ab'), ('b', 'ac')]
    """
    if len(attributes) < 2 or is_final(partition):
        yield attributes, partition
        return
    halves = attributes[0::2], attributes[1::2]
    for left_out, others in (halves, halves[::-1]):
        yield from leaving_out_each(left_out, refine(partition, others), refine, is_final)
