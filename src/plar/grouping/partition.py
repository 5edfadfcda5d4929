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
U64Array: TypeAlias = NDArray[np.uint64]
#: dictionary codes of one column, in the smallest unsigned type that holds them
Codes: TypeAlias = NDArray[np.unsignedinteger[Any]]

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_TWO = np.uint64(2)


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
    n = len(order)
    n_values = math.prod(of_column for _, of_column in group)
    codes = smallest_codes(np.zeros(n, np.uint8), n_values)
    for column, of_column in group:
        _append(codes, of_column, column, order)
    new_order = np.empty(2 * n, np.uint32)
    new_starts = np.empty(n + n_values + 1, np.uint32)
    gone_starts = np.empty(n + n_values + 1, np.uint32)
    refined = (new_order, new_starts, gone_starts)
    n_rows_kept, n_classes_kept, n_classes_gone = refine(codes, n_values, keys, order, starts, refined)
    return Split(
        order=new_order[:n_rows_kept],
        starts=new_starts[: n_classes_kept + 1],
        gone=new_order[n : 2 * n - n_rows_kept],
        gone_starts=gone_starts[: n_classes_gone + 1],
    )


def in_order(column: Array, order: Index, dtype: Any = np.uint32) -> Array:
    """Take a column in the order of the rows of a partition.

    >>> in_order(np.array([7, 8, 9], np.uint8), np.array([2, 0], np.uint32)).tolist()
    [9, 7]
    """
    taken = np.empty(len(order), dtype)
    take_in_order(column, order, taken)
    return taken


@jit
def take_in_order(column: Array, order: Index, taken: Array) -> None:
    """Write a column into an array, in the order of the rows of a partition."""
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
    """The kernel of `split`, for codes in the order of the partition.

    Returns how many rows and how many classes are kept, and how many classes are dropped.
    """
    # Most classes are small and branches on them unpredictable, so there are few: a new class is dropped if its
    # smallest and largest keys are equal, and then its rows go to the second half of the arrays.
    new_order, new_starts, gone_starts = refined
    n_codes = np.uint64(n_values)
    half = np.uint64(len(order))
    #: by value: how many rows of the class have it, then where the next of them goes; and their extreme keys
    slots = np.zeros(n_values, np.uint32)
    least = np.full(n_values, 0xFFFFFFFF, np.uint32)
    largest = np.zeros(n_values, np.uint32)
    #: the values that are looked at in a class
    values = np.empty(n_values, np.uint32)
    n_rows_kept = _ZERO
    n_classes_kept = _ZERO
    n_classes_gone = _ZERO
    gone_end = half  # where the dropped rows end so far
    for c in range(np.uint64(len(starts)) - _ONE):
        low = np.uint64(starts[c])
        high = np.uint64(starts[c + _ONE])
        if high - low == _TWO:
            # by far the most common class: its two rows stay together, or both are dropped
            stays = codes[low] == codes[low + _ONE]
            target = n_rows_kept if stays else gone_end
            new_order[target] = order[low]
            new_order[target + _ONE] = order[low + _ONE]
            new_starts[n_classes_kept] = n_rows_kept
            gone_starts[n_classes_gone] = gone_end - half
            gone_starts[n_classes_gone + _ONE] = gone_end - half + _ONE
            n_rows_kept += _TWO if stays else _ZERO
            n_classes_kept += np.uint64(stays)
            gone_end += _ZERO if stays else _TWO
            n_classes_gone += _ZERO if stays else _TWO
            continue
        # with few values loop over all of them, else over those that occur
        takes_all = n_codes <= np.uint64(16) or n_codes <= high - low
        if takes_all:
            for t in range(n_codes):
                values[t] = t
        n_taken = n_codes if takes_all else _ZERO
        for i in range(low, high):
            v = np.uint64(codes[i])
            key = keys[order[i]]
            if not takes_all and slots[v] == 0:
                values[n_taken] = v
                n_taken += _ONE
            slots[v] += np.uint32(1)
            least[v] = min(least[v], key)
            largest[v] = max(largest[v], key)
        for t in range(n_taken):
            v = np.uint64(values[t])
            size = np.uint64(slots[v])
            stays = least[v] < largest[v]
            leaves = least[v] == largest[v]  # a value that does not occur neither stays nor leaves
            new_starts[n_classes_kept] = n_rows_kept
            gone_starts[n_classes_gone] = gone_end - half
            slots[v] = n_rows_kept if stays else gone_end
            n_rows_kept += size if stays else _ZERO
            gone_end += size if leaves else _ZERO
            n_classes_kept += np.uint64(stays)
            n_classes_gone += np.uint64(leaves)
        for i in range(low, high):
            v = np.uint64(codes[i])
            place = np.uint64(slots[v])
            new_order[place] = order[i]
            slots[v] = place + _ONE
        for t in range(n_taken):
            v = np.uint64(values[t])
            slots[v] = 0
            least[v] = 0xFFFFFFFF
            largest[v] = 0
    new_starts[n_classes_kept] = n_rows_kept
    gone_starts[n_classes_gone] = gone_end - half
    return int(n_rows_kept), int(n_classes_kept), int(n_classes_gone)


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
    alone = [order[:n_alone]]
    order = order[n_alone:]
    starts = starts[n_alone:] - n_alone
    for group in byte_groups(columns):
        if len(order) < 2:
            break
        order, starts, gone, _ = split(group, keys, order, starts)
        alone.append(gone)
    singles = np.concatenate([*alone, order[:0]])
    n_singles = np.uint32(len(singles))
    all_rows = np.concatenate([singles, order])
    all_starts = np.concatenate([np.arange(n_singles, dtype=np.uint32), starts + n_singles])
    return all_rows, all_starts


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
    begins = np.empty(len(order) + 1, np.uint32)
    first = np.empty(len(starts), np.uint32)
    n_runs = _find_runs(decisions, order, starts, begins, first)
    return Runs(weights_in_order(counts, order), begins[: n_runs + 1], first)


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
    n_runs = _ZERO
    for c in range(np.uint64(len(starts)) - _ONE):
        class_runs[c] = n_runs
        low = np.uint64(starts[c])
        high = np.uint64(starts[c + _ONE])
        last = np.uint32(0xFFFFFFFF)
        for i in range(low, high):
            decision = decisions[np.uint64(order[i])]
            runs[n_runs] = i
            n_runs += np.uint64(decision != last)
            last = decision
    class_runs[len(starts) - 1] = n_runs
    runs[n_runs] = starts[len(starts) - 1]
    return int(n_runs)


def class_numbers(order: Index, starts: Index) -> U64Array:
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
    >>> groups = leaving_out_each("abc", "", lambda partition, others: partition + "".join(others), lambda _: False)
    >>> [(a, "".join(sorted(others))) for a, others in groups]
    [('a', 'bc'), ('c', 'ab'), ('b', 'ac')]
    """
    if len(attributes) < 2 or is_final(partition):
        yield attributes, partition
        return
    halves = attributes[0::2], attributes[1::2]
    for left_out, others in (halves, halves[::-1]):
        yield from leaving_out_each(left_out, refine(partition, others), refine, is_final)
