"""Columns that carry the same information: equal up to the names of their values, so U/{a} = U/{b}."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from plar.coding.factorize import mix
from plar.jit import jit
from plar.partition import Codes

#: columns of more values are not compared: on a cluster their classes would have to travel
MOST_VALUES = 1 << 16


@jit
def _add_rows(codes: Codes, first_row: np.uint64, sums: NDArray[np.uint64]) -> None:
    for i in range(np.uint64(len(codes))):
        sums[codes[i]] += mix(first_row + i)


def class_sums(
    columns: Iterable[tuple[int, Codes, int]], first_row: int = 1
) -> Iterator[tuple[int, NDArray[np.uint64]]]:
    """For every column (its number, codes and cardinality) the sums of the hashes of the rows of each class of U/{a}.

    Sums of several pieces, whose rows are numbered from another `first_row` each, add up.
    """
    for a, codes, n_values in columns:
        sums = np.zeros(n_values, np.uint64)
        _add_rows(codes, np.uint64(first_row), sums)
        yield a, sums


def alike(sums: Iterable[tuple[int, NDArray[np.uint64]]]) -> list[list[int]]:
    """Groups of columns whose classes have the same sums: they are equal, or a hash collision."""
    groups: dict[bytes, list[int]] = {}
    for a, classes in sums:
        groups.setdefault(blake2b(np.sort(classes).tobytes(), digest_size=16).digest(), []).append(a)
    return [group for group in groups.values() if len(group) > 1]


def translation(a: Codes, b: Codes, n_values: int) -> NDArray[np.int64] | None:
    """The code of b for every code of a, −1 for those that do not occur; None where b is no function of a."""
    book = np.full(n_values, -1, np.int64)
    book[a] = b
    return book if bool((book[a] == b).all()) else None


def agreeing(books: Iterable[NDArray[np.int64] | None]) -> bool:
    """Whether translations of several pieces make one."""
    whole: NDArray[np.int64] | None = None
    for book in books:
        if book is None:
            return False
        both = (whole >= 0) & (book >= 0) if whole is not None else np.zeros(len(book), np.bool_)
        if whole is not None and (whole[both] != book[both]).any():
            return False
        whole = book if whole is None else np.maximum(whole, book)
    return True


def settled(groups: Sequence[Sequence[int]], equal: Mapping[tuple[int, int], bool]) -> list[list[int]]:
    """The groups without what proved different from their first column, where still more than one is left."""
    kept = [[group[0], *(b for b in group[1:] if equal[group[0], b])] for group in groups]
    return sorted(group for group in kept if len(group) > 1)
