"""Which sets of attributes preserve Θ(D|C), and why others do not: the basis of the smallest and all reducts.

Two rows of different labels make a *clause*, the attributes in which they differ: a set preserves Θ if and
only if it holds an attribute of every clause. Clauses are found without a matrix of all pairs of rows. For a
set B that does not preserve, rows of different labels stay together in U/B. Adding attributes to B, in some
order, as long as such rows stay together, ends in a largest set that does not preserve; the attributes beside
it are a clause, and no part of them is one.

Of all sets that do not preserve, that one comes first in the given order. So parts of a table that hold whole
classes of U/B can search independently, and the first of their results is that of the table; it does not
depend on the order of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from plar.granules.fingerprint import spell, to_json
from plar.granules.granules import Granules
from plar.grouping.partition import Codes, Index, Ints, byte_groups, distinct, refine, split
from plar.measures import Measure
from plar.runtime.jit import jit
from plar.runtime.parallel import in_threads
from plar.uncertainty.labels import label_granules

#: tables of up to this many cells are searched in one kernel
_MAX_MATRIX_CELLS = 1 << 23
#: so many rows tell of most sets that they do not preserve Θ
_FIRST_ROWS = 1 << 8
#: batches of sets that threads are asked about, since one set may take microseconds
_MAX_BATCHES = 64
#: columns by which the rows are sorted out that may equal one of those asked for
_MAX_SIFTING = 32

#: a set of attributes, and the order in which others are added to it while it does not preserve Θ
ClauseQuestion: TypeAlias = tuple[Collection[int], Sequence[int]]


class UnsettledRows(NamedTuple):
    """A partition of the rows that are not yet separated from rows of other labels."""

    #: the rows, class by class, and where each class begins
    order: Index
    starts: Index


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

    def find(self, questions: Sequence[ClauseQuestion]) -> list[FoundClause | None]:
        """For each set a clause that it does not hit, None if it preserves Θ."""

    def decisions(self, rows: Sequence[Sequence[bytes]]) -> list[dict[int, int]]:
        """How many objects of each decision have the values of a row, as `written` spells them, in all attributes."""


def with_values(clause: FoundClause, values: Sequence[Sequence[Any]]) -> FoundClause:
    """A clause with the values of its rows in place of their codes."""

    def decode(row: Sequence[int]) -> tuple[Any, ...]:
        return tuple(to_json(values[a][code]) for a, code in enumerate(row))

    return FoundClause(clause.attributes, decode(clause.row), decode(clause.other))


def encoded(rows: Sequence[Sequence[bytes]], values: Sequence[Sequence[Any]]) -> NDArray[np.int64]:
    """Codes of rows whose values are spelled, by attribute; -1 for values that do not occur."""
    codes = np.full((len(values), len(rows)), -1, np.int64)
    for a, values_of_column in enumerate(values):
        wanted = {row[a] for row in rows}
        code_of: dict[bytes, int] = {}
        for code, value in enumerate(values_of_column):
            spelling = spell(value)
            if spelling in wanted:
                code_of[spelling] = code
        codes[a] = [code_of.get(row[a], -1) for row in rows]
    return codes


def decisions_of(
    columns: Sequence[tuple[Codes, int]], decision_codes: Index, counts: NDArray[np.int64], rows: NDArray[np.int64]
) -> list[dict[int, int]]:
    """How many objects of each decision equal each of the rows, given as codes by attribute."""
    objects_of: list[dict[int, int]] = [{} for _ in range(rows.shape[1])]
    possible = np.flatnonzero((rows >= 0).all(axis=0))
    sifted = _sifted(columns, len(counts), rows[:, possible])
    n_granules = len(sifted)
    # the rows asked for are appended to those of the table, and share a class with their equals
    appended = (
        (np.concatenate([codes[sifted], rows[a, possible].astype(codes.dtype)]), n_values)
        for a, (codes, n_values) in enumerate(columns)
    )
    order, starts = distinct(appended, n_granules + len(possible))
    for low, high in pairwise(starts.tolist()):
        equals = order[low:high]
        if high - low > 1 and equals[-1] >= n_granules:
            granules = sifted[equals[equals < n_granules]]
            objects = dict(zip(decision_codes[granules].tolist(), counts[granules].tolist(), strict=True))
            for number in possible[equals[equals >= n_granules] - n_granules].tolist():
                objects_of[number] = dict(objects)
    return objects_of


def _sifted(columns: Sequence[tuple[Codes, int]], n_granules: int, rows: NDArray[np.int64]) -> NDArray[np.intp]:
    """Granules that may equal some rows, those among them that do: in the first columns each has a value of one."""
    sifted = np.arange(n_granules)
    for (codes, n_values), codes_of_rows in zip(columns[:_MAX_SIFTING], rows, strict=False):
        if len(sifted) <= len(codes_of_rows):
            break
        occurs = np.zeros(n_values, np.bool_)
        occurs[codes_of_rows] = True
        sifted = sifted[occurs[codes[sifted]]]
    return sifted


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
        self._columns = columns
        self._labels = labels
        self._rank = rank
        self._root = _all_rows(labels)
        #: for a small table, which is asked about thousands of sets
        self._matrix: Index | None = None
        if columns and len(columns) * len(labels) <= _MAX_MATRIX_CELLS:
            self._matrix = np.array([codes for codes, _ in columns], np.uint32)
        self._n_values = np.array([n for _, n in columns], np.int64)
        #: attributes that all sets hold, and the rows that they leave unsettled
        self._common: frozenset[int] = frozenset()
        self._start = self._root
        #: the first of these
        self._first_unsettled = _first_of(self._start)

    def assume(self, attributes: Iterable[int]) -> None:
        """Refine once by attributes that all further sets hold."""
        common = frozenset(attributes)
        self._start = self._refined(*self._beginning(common))
        self._first_unsettled = _first_of(self._start)
        self._common = common

    def preserves(self, attributes: Iterable[int]) -> bool:
        """Whether a set separates all rows of different labels."""
        unsettled, others = self._beginning(attributes)
        if self._matrix is not None and len(unsettled.order):
            _, clause = self._grown(unsettled, others, first_only=True)
            return bool(clause)
        if len(unsettled.order) > 2 * _FIRST_ROWS:
            first = self._first_unsettled if unsettled is self._start else _first_of(unsettled)
            if len(self._refined(first, others).order):
                return False
        return not len(self._refined(unsettled, others).order)

    def find_clause(self, attributes: Iterable[int], order: Sequence[int]) -> FoundClause | None:
        """A clause that a set does not hit, by the order in which others are added to it; None if it preserves Θ."""
        members = set(attributes)
        unsettled = self._refined(*self._beginning(members))
        if not len(unsettled.order):
            return None
        unsettled, clause = self._grown(unsettled, [a for a in order if a not in members])
        row, other = self._witnesses(unsettled)
        return FoundClause(tuple(sorted(clause)), row, other)

    def _beginning(self, attributes: Iterable[int]) -> tuple[UnsettledRows, list[int]]:
        """A partition by some attributes of a set, and the others, those of many values first: they shrink it most."""
        others = set(attributes)
        start = self._root
        if self._common <= others:
            start = self._start
            others -= self._common
        return start, sorted(others, key=lambda a: (-self._columns[a][1], a))

    def _refined(self, unsettled: UnsettledRows, attributes: Iterable[int]) -> UnsettledRows:
        for group in byte_groups(self._columns[a] for a in attributes):
            if not len(unsettled.order):
                break
            after = split(group, self._labels, unsettled.order, unsettled.starts)
            unsettled = UnsettledRows(after.order, after.starts)
        return unsettled

    def _grown(
        self, unsettled: UnsettledRows, order: Sequence[int], *, first_only: bool = False
    ) -> tuple[UnsettledRows, list[int]]:
        """Refine by one attribute after another, except those that would leave nothing unsettled; return these."""
        if self._matrix is not None:
            left_out = np.zeros(len(self._columns), np.bool_)
            attributes = np.array(order, np.int64)
            grown = _grow(self._matrix, self._n_values, attributes, self._labels, *unsettled, left_out, first_only)
            return UnsettledRows(*grown), np.flatnonzero(left_out).tolist()
        clause = []
        for a in order:
            after = self._refined(unsettled, [a])
            if len(after.order):
                unsettled = after
            else:
                clause.append(a)
        return unsettled, clause

    def _witnesses(self, unsettled: UnsettledRows) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Two rows of different labels in one class: the first of all by its values, and the first of its partners."""
        order, starts = unsettled
        row = self._first(order)
        place = int(np.flatnonzero(order == row)[0])
        c = int(np.searchsorted(starts, place, side="right")) - 1
        members = order[starts[c] : starts[c + 1]]
        other = self._first(members[self._labels[members] != self._labels[row]])
        return self._codes_of(row), self._codes_of(other)

    def _codes_of(self, row: int) -> tuple[int, ...]:
        return tuple(int(codes[row]) for codes, _ in self._columns)

    def _first(self, rows: Index) -> int:
        """The first of some rows in the order of their values."""
        for a, (codes, _) in enumerate(self._columns):
            if len(rows) == 1:
                break
            present = np.unique(codes[rows])
            if len(present) > 1:
                ranks = self._rank(a, present.tolist())
                least = present[min(range(len(present)), key=ranks.__getitem__)]
                rows = rows[codes[rows] == least]
        return int(rows[0])


def _first_of(unsettled: UnsettledRows) -> UnsettledRows:
    """The first rows of a partition: if a set leaves rows of different labels together there, it does so in all."""
    order = unsettled.order[:_FIRST_ROWS]
    n_classes = int(np.searchsorted(unsettled.starts, len(order)))
    starts = np.append(unsettled.starts[:n_classes], np.uint32(len(order)))
    return UnsettledRows(order, starts)


def _all_rows(labels: Index) -> UnsettledRows:
    """All rows as one class, or none if all have the same label."""
    if (labels == labels[:1]).all():
        return UnsettledRows(np.arange(0, dtype=np.uint32), np.array([0], np.uint32))
    return UnsettledRows(np.arange(len(labels), dtype=np.uint32), np.array([0, len(labels)], np.uint32))


class LocalClauseFinder(RowClauseFinder):
    """Clauses of granules on this machine."""

    def __init__(self, granules: Granules, measure: Measure) -> None:
        def rank(attribute: int, codes: Sequence[int]) -> list[bytes]:
            return [spell(granules.dictionaries[attribute][code]) for code in codes]

        super().__init__(granules.coded, label_granules(granules, measure).labels, rank)
        self._granules = granules

    def preserve(self, sets: Sequence[Collection[int]]) -> list[bool]:
        """Whether each of the sets preserves Θ."""
        size = 1 + len(sets) // _MAX_BATCHES
        batches = [sets[low : low + size] for low in range(0, len(sets), size)]
        answers = in_threads(lambda batch: list(map(self.preserves, batch)), batches, len(self._granules))
        return [answer for of_batch in answers for answer in of_batch]

    def find(self, questions: Sequence[ClauseQuestion]) -> list[FoundClause | None]:
        """For each set a clause that it does not hit, None if it preserves Θ."""
        return list(in_threads(self._answer, questions, len(self._granules)))

    def _answer(self, question: ClauseQuestion) -> FoundClause | None:
        attributes, order = question
        clause = self.find_clause(attributes, order)
        return None if clause is None else with_values(clause, self._granules.dictionaries)

    def decisions(self, rows: Sequence[Sequence[bytes]]) -> list[dict[int, int]]:
        """How many objects of each decision have the values of a row."""
        g = self._granules
        return decisions_of(g.coded, g.decision_codes, g.counts, encoded(rows, g.dictionaries))


@jit
def _refined_by(column: Index, n_values: int, labels: Index, order: Index, starts: Index) -> tuple[Index, Index]:
    """What stays unsettled when one more column is known."""
    n = len(order)
    codes = np.empty(n, np.uint32)
    rows = np.empty(2 * n, np.uint32)
    for i in range(np.uint64(n)):
        codes[i] = column[order[i]]
    begins = np.empty(n + n_values + 1, np.uint32)
    n_rows, n_classes, _ = refine(codes, n_values, labels, order, starts, (rows, begins, np.empty_like(begins)))
    return rows[:n_rows], begins[: n_classes + 1]


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
) -> tuple[Index, Index]:
    """Refine by attributes except those that would leave nothing unsettled, or stop at the first of these."""
    for a in attributes:
        rows, begins = _refined_by(matrix[a], n_values[a], labels, order, starts)
        if len(rows):
            order = rows
            starts = begins
        else:
            left_out[a] = True
            if first_only:
                break
    return order, starts
