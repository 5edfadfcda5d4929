"""Which sets of attributes preserve Θ(D|C), and why others do not: the basis of the smallest and all reducts.

Two rows of different labels make a *clause*, the attributes in which they differ: a set preserves Θ if and only if it
holds an attribute of every clause. Clauses are found without a matrix of all pairs of rows. For a set B that does not
preserve, rows of different labels stay together in U/B. Adding attributes to B, in some order, as long as such rows
stay together, ends in a largest set that does not preserve; the attributes beside it are a clause, and no part of them
is one.

Of all sets that do not preserve, that one comes first in the given order. So parts of a table that hold whole classes
of U/B can search independently, and the first of their results is that of the table; it does not depend on the order
of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from plar.granules.fingerprint import plain, written
from plar.granules.granules import Granules
from plar.grouping.partition import Codes, Index, Ints, distinct, joined, refine, split
from plar.measures import Measure
from plar.runtime.jit import jit
from plar.runtime.parallel import in_threads
from plar.uncertainty.labels import label_granules

#: tables of up to this many cells are searched in one kernel
_SMALL = 1 << 23

#: a set of attributes, and the order in which others are added to it while it does not preserve Θ
Question: TypeAlias = tuple[Collection[int], Sequence[int]]
#: a partition of the rows not yet separated from rows of other labels: their order, and where classes begin
Mixed: TypeAlias = tuple[Index, Index]


class FoundClause(NamedTuple):
    """A clause, and two rows of different labels that differ in exactly its attributes.

    The rows are given by their values, as JSON holds them; within this package first by their codes.
    """

    attributes: tuple[int, ...]
    row: tuple[Any, ...]
    other: tuple[Any, ...]


class ClauseFinder(Protocol):
    """Answers about many sets at once; they depend neither on the order of the rows nor on where these are."""

    def assume(self, attributes: Collection[int]) -> None:
        """Prepare for sets that hold these attributes."""

    def preserve(self, sets: Sequence[Collection[int]]) -> list[bool]:
        """Whether each of the sets preserves Θ."""

    def find(self, questions: Sequence[Question]) -> list[FoundClause | None]:
        """For each set a clause that it does not hit, None if it preserves Θ."""

    def decisions(self, rows: Sequence[Sequence[bytes]]) -> list[dict[int, int]]:
        """How many objects of each decision have the values of a row, as `written` spells them, in all attributes."""


def with_values(found: FoundClause, values: Sequence[Sequence[Any]]) -> FoundClause:
    """A clause with the values of its rows in place of their codes."""
    one, other = (tuple(plain(values[a][code]) for a, code in enumerate(codes)) for codes in (found.row, found.other))
    return FoundClause(found.attributes, one, other)


def encoded(rows: Sequence[Sequence[bytes]], values: Sequence[Sequence[Any]]) -> NDArray[np.int64]:
    """Codes of rows whose values are spelled; -1 for values that do not occur."""
    codes = np.full((len(values), len(rows)), -1, np.int64)
    for a, known in enumerate(values):
        wanted = {row[a] for row in rows}
        code_of = {spelled: code for code, value in enumerate(known) if (spelled := written(value)) in wanted}
        codes[a] = [code_of.get(row[a], -1) for row in rows]
    return codes


def decisions_of(
    columns: Sequence[tuple[Codes, int]], decision_codes: Index, counts: NDArray[np.int64], rows: NDArray[np.int64]
) -> list[dict[int, int]]:
    """How many objects of each decision equal each of the rows, given as codes by attribute."""
    n, found = len(counts), [dict[int, int]() for _ in rows.T]
    known = np.flatnonzero((rows >= 0).all(axis=0))
    # the rows asked for are appended to those of the table, and share a class with their equals
    both = [(np.concatenate([codes, rows[a, known].astype(codes.dtype)]), k) for a, (codes, k) in enumerate(columns)]
    order, starts = distinct(both, n + len(known))
    for low, high in pairwise(starts.tolist()):
        met = order[low:high]
        if high - low > 1 and met[-1] >= n:
            there = met[met < n]
            for asked in known[met[met >= n] - n].tolist():
                found[asked] = dict(zip(decision_codes[there].tolist(), counts[there].tolist(), strict=True))
    return found


class RowClauseFinder:
    """Rows of one machine or task: which sets of attributes preserve Θ, and why others do not.

    Parameters
    ----------
    columns : sequence of (codes, number of codes)
        Of each attribute, by row.
    labels : array by row
        Of the classes of U/C; see `plar.uncertainty.labels`.
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
        common = frozenset(attributes)
        self._start, self._common = self._refined(*self._beginning(common)), common

    def preserves(self, attributes: Iterable[int]) -> bool:
        """Whether a set separates all rows of different labels."""
        mixed, others = self._beginning(attributes)
        if self._matrix is not None and len(mixed[0]):
            return bool(self._grown(mixed, others, first_only=True)[1])
        return not len(self._refined(mixed, others)[0])

    def find_clause(self, attributes: Iterable[int], order: Sequence[int]) -> FoundClause | None:
        """A clause that a set does not hit, by the order in which others are added to it; None if it preserves Θ."""
        held = set(attributes)
        mixed = self._refined(*self._beginning(held))
        if not len(mixed[0]):
            return None
        mixed, clause = self._grown(mixed, [a for a in order if a not in held])
        return FoundClause(tuple(sorted(clause)), *self._witnesses(mixed))

    def _beginning(self, attributes: Iterable[int]) -> tuple[Mixed, list[int]]:
        """A partition by some attributes of a set, and the others, those of many values first: they shrink it most."""
        wanted = set(attributes)
        start, known = (self._start, self._common) if self._common <= wanted else (self._root, frozenset[int]())
        return start, sorted(wanted - known, key=lambda a: (-self._columns[a][1], a))

    def _refined(self, mixed: Mixed, attributes: Iterable[int]) -> Mixed:
        order, starts = mixed
        for group in joined(self._columns[a] for a in attributes):
            if not len(order):
                break
            order, starts, _, _ = split(group, self._labels, order, starts)
        return order, starts

    def _grown(self, mixed: Mixed, order: Sequence[int], *, first_only: bool = False) -> tuple[Mixed, list[int]]:
        """Refine by one attribute after another, except those that would leave nothing mixed; return these."""
        if self._matrix is not None:
            left_out, each = np.zeros(len(self._columns), np.bool_), np.array(order, np.int64)
            mixed = _grow(self._matrix, self._n_values, each, self._labels, *mixed, left_out, first_only)
            return mixed, np.flatnonzero(left_out).tolist()
        clause = []
        for a in order:
            after = self._refined(mixed, [a])
            if len(after[0]):
                mixed = after
            else:
                clause.append(a)
        return mixed, clause

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


class LocalClauseFinder(RowClauseFinder):
    """The oracle of granules on this machine."""

    def __init__(self, granules: Granules, measure: Measure) -> None:
        def rank(attribute: int, codes: Sequence[int]) -> list[bytes]:
            return [written(granules.dictionaries[attribute][code]) for code in codes]

        super().__init__(granules.coded, label_granules(granules, measure).labels, rank)
        self._granules = granules

    def preserve(self, sets: Sequence[Collection[int]]) -> list[bool]:
        """Whether each of the sets preserves Θ."""
        return list(in_threads(self.preserves, sets, len(self._granules)))

    def find(self, questions: Sequence[Question]) -> list[FoundClause | None]:
        """For each set a clause that it does not hit, None if it preserves Θ."""
        found = in_threads(lambda question: self.find_clause(*question), questions, len(self._granules))
        return [None if one is None else with_values(one, self._granules.dictionaries) for one in found]

    def decisions(self, rows: Sequence[Sequence[bytes]]) -> list[dict[int, int]]:
        """How many objects of each decision have the values of a row."""
        g = self._granules
        return decisions_of(g.coded, g.decision_codes, g.counts, encoded(rows, g.dictionaries))


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
    matrix: Index,
    n_values: Ints,
    attributes: Ints,
    labels: Index,
    order: Index,
    starts: Index,
    left_out: NDArray[np.bool_],
    first_only: bool,
) -> Mixed:
    """Refine by attributes except those that would leave nothing mixed, or stop at the first of these."""
    for a in attributes:
        rows, begins = _refined_by(matrix[a], n_values[a], labels, order, starts)
        if len(rows):
            order, starts = rows, begins
        else:
            left_out[a] = True
            if first_only:
                break
    return order, starts
