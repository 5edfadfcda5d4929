"""Clauses: why a set of attributes does not preserve Θ(D|C), found without a matrix of all pairs of rows.

Two rows of different labels make a *clause*, the attributes in which they differ: a set preserves Θ if and only if it
holds an attribute of every clause. For a set B that does not preserve, rows of different labels stay together in U/B.
Adding attributes to B, in some order, as long as such rows stay together, ends in a largest set that does not preserve;
the attributes beside it are a clause, and no part of them is one.

Of all sets that do not preserve, that one comes first in the given order. So parts of a table that hold whole classes
of U/B can search independently, and the first of their results is that of the table; it does not depend on the order
of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from plar.jit import jit
from plar.partition import Codes, Index, Ints, joined, refine, split

#: tables of up to this many cells are searched in one kernel
_SMALL = 1 << 23

#: a partition of the rows not yet separated from rows of other labels: their order, and where classes begin
Mixed: TypeAlias = tuple[Index, Index]
Flags: TypeAlias = NDArray[np.bool_]


class Found(NamedTuple):
    """A clause and two rows that prove it, as codes of all attributes."""

    clause: tuple[int, ...]
    rows: tuple[tuple[int, ...], tuple[int, ...]]


class ClauseFinder:
    """Rows of one machine or task: which sets of attributes preserve Θ, and why others do not.

    Parameters
    ----------
    columns : sequence of (codes, number of codes)
        Of each attribute, by row.
    labels : array by row
        Of the classes of U/C; see `plar.labels`.
    rank : function of (attribute, codes)
        The ranks of some codes in an order that depends only on the values.
    """

    def __init__(
        self, columns: Sequence[tuple[Codes, int]], labels: Index, rank: Callable[[int, Sequence[int]], Sequence[Any]]
    ) -> None:
        self._columns, self._labels, self._rank = columns, labels, rank
        several = bool((labels != labels[:1]).any())
        self._root: Mixed = (
            np.arange(len(labels) if several else 0, dtype=np.uint32),
            np.array([0, len(labels)][: 1 + several], np.uint32),
        )
        #: for a small table, which is asked about thousands of sets
        small = len(columns) * len(labels) <= _SMALL
        self._matrix = np.array([codes for codes, _ in columns], np.uint32) if small and len(columns) else None
        self._n_values = np.array([n for _, n in columns], np.int64)
        #: attributes that all sets hold, and the rows that they leave mixed
        self._common: frozenset[int] = frozenset()
        self._start = self._root

    def assume(self, attributes: Iterable[int]) -> None:
        """Refine once by attributes that all further sets hold."""
        self._common = frozenset(attributes)
        self._start = self._refined(self._root, self._common)

    def preserves(self, attributes: Iterable[int]) -> bool:
        """Whether a set separates all rows of different labels."""
        if self._matrix is None:
            return not len(self._mixed(attributes)[0])
        falling = np.array(sorted(attributes, key=self._falling), np.int64)
        order, starts = self._root
        return not len(order) or bool(_separates(self._matrix, self._n_values, falling, self._labels, order, starts))

    def find(self, attributes: Iterable[int], order: Sequence[int]) -> Found | None:
        """A clause that a set does not hit, by the order in which others are added to it; None if it preserves Θ."""
        held = set(attributes)
        mixed = self._mixed(held)
        if not len(mixed[0]):
            return None
        mixed, clause = self._grown(mixed, [a for a in order if a not in held])
        return Found(tuple(sorted(clause)), self._witnesses(mixed))

    def _grown(self, mixed: Mixed, order: Sequence[int]) -> tuple[Mixed, list[int]]:
        """Refine by one attribute after another, except those that would leave nothing mixed; return these."""
        if self._matrix is not None:
            left_out, each = np.zeros(len(self._columns), np.bool_), np.array(order, np.int64)
            mixed = _grow(self._matrix, self._n_values, each, self._labels, *mixed, left_out)
            return mixed, np.flatnonzero(left_out).tolist()
        clause = []
        for a in order:
            after = self._refined(mixed, [a])
            if len(after[0]):
                mixed = after
            else:
                clause.append(a)
        return mixed, clause

    def _mixed(self, attributes: Iterable[int]) -> Mixed:
        wanted = set(attributes)
        if self._common <= wanted:
            return self._refined(self._start, wanted - self._common)
        return self._refined(self._root, wanted)

    def _refined(self, mixed: Mixed, attributes: Iterable[int]) -> Mixed:
        order, starts = mixed
        for group in joined(self._columns[a] for a in sorted(attributes, key=self._falling)):
            if not len(order):
                break
            order, starts, _, _ = split(group, self._labels, order, starts)
        return order, starts

    def _falling(self, attribute: int) -> tuple[int, int]:
        return -self._columns[attribute][1], attribute  # many values shrink a partition fastest

    def _witnesses(self, mixed: Mixed) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Two rows of different labels in one class: the first of all by its values, and the first of its partners."""
        order, starts = mixed
        one = self._first(order)
        place = int(np.flatnonzero(order == one)[0])
        c = int(np.searchsorted(starts, place, side="right"))
        beside = order[starts[c - 1] : starts[c]]
        other = self._first(beside[self._labels[beside] != self._labels[one]])
        first, second = (tuple(int(codes[row]) for codes, _ in self._columns) for row in (one, other))
        return first, second

    def _first(self, rows: Index) -> int:
        for a, (codes, _) in enumerate(self._columns):
            if len(rows) == 1:
                break
            present = np.unique(codes[rows])
            if len(present) > 1:
                ranks = self._rank(a, present.tolist())
                least = present[min(range(len(present)), key=ranks.__getitem__)]
                rows = rows[codes[rows] == least]
        return int(rows[0])


@jit
def _refined_by(column: Index, n_values: int, labels: Index, order: Index, starts: Index) -> Mixed:
    """What stays mixed when one more column is known."""
    n = len(order)
    codes, rows = np.empty(n, np.uint32), np.empty(2 * n, np.uint32)
    for i in range(np.uint64(n)):
        codes[i] = column[order[i]]
    begins = np.empty(n + n_values + 1, np.uint32)
    kept, classes, _ = refine(codes, n_values, labels, order, starts, (rows, begins, np.empty_like(begins)))
    return rows[:kept], begins[: classes + 1]


@jit
def _grow(
    matrix: Index, n_values: Ints, attributes: Ints, labels: Index, order: Index, starts: Index, left_out: Flags
) -> Mixed:
    for a in attributes:
        rows, begins = _refined_by(matrix[a], n_values[a], labels, order, starts)
        if len(rows):
            order, starts = rows, begins
        else:
            left_out[a] = True
    return order, starts


@jit
def _separates(matrix: Index, n_values: Ints, attributes: Ints, labels: Index, order: Index, starts: Index) -> bool:
    """Whether attributes separate all rows of different labels: refine by one after another."""
    for a in attributes:
        order, starts = _refined_by(matrix[a], n_values[a], labels, order, starts)
        if len(order) == 0:
            return True
    return False
