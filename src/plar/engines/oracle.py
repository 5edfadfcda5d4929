"""Which sets of attributes preserve Θ(D|C), and why others do not: the basis of the smallest and all reducts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from plar.clauses import ClauseFinder, Found
from plar.coding.fingerprint import plain, written
from plar.granules import Granules
from plar.labels import label_granules
from plar.measures import Measure
from plar.parallel import in_threads
from plar.partition import Codes, Index, distinct

#: a set of attributes, and the order in which others are added to it while it does not preserve Θ
Question = tuple[Collection[int], Sequence[int]]


class Answer(NamedTuple):
    """A clause, with the values of two rows that differ in exactly its attributes, as JSON holds them."""

    attributes: tuple[int, ...]
    row: tuple[Any, ...]
    other: tuple[Any, ...]


class Oracle(Protocol):
    """Answers about many sets at once; they depend neither on the order of the rows nor on where these are."""

    def assume(self, attributes: Collection[int]) -> None:
        """Prepare for sets that hold these attributes."""

    def preserve(self, sets: Sequence[Collection[int]]) -> list[bool]:
        """Whether each of the sets preserves Θ."""

    def find(self, questions: Sequence[Question]) -> list[Answer | None]:
        """For each set a clause that it does not hit, None if it preserves Θ."""

    def decisions(self, rows: Sequence[Sequence[bytes]]) -> list[dict[int, int]]:
        """How many objects of each decision have the values of a row, as `written` spells them, in all attributes."""


class LocalOracle:
    """The oracle of granules on this machine."""

    def __init__(self, granules: Granules, measure: Measure) -> None:
        self._granules = granules
        self._finder = ClauseFinder(granules.coded, label_granules(granules, measure).labels, self._rank)

    def _rank(self, attribute: int, codes: Sequence[int]) -> list[bytes]:
        return [written(self._granules.dictionaries[attribute][code]) for code in codes]

    def assume(self, attributes: Collection[int]) -> None:
        """Prepare for sets that hold these attributes."""
        self._finder.assume(attributes)

    def preserve(self, sets: Sequence[Collection[int]]) -> list[bool]:
        """Whether each of the sets preserves Θ."""
        return list(in_threads(self._finder.preserves, sets, len(self._granules)))

    def find(self, questions: Sequence[Question]) -> list[Answer | None]:
        """For each set a clause that it does not hit, None if it preserves Θ."""
        found = in_threads(lambda question: self._finder.find(*question), questions, len(self._granules))
        return [None if one is None else with_values(one, self._granules.dictionaries) for one in found]

    def decisions(self, rows: Sequence[Sequence[bytes]]) -> list[dict[int, int]]:
        """How many objects of each decision have the values of a row."""
        g = self._granules
        return decisions_of(g.coded, g.classes, g.counts, encoded(rows, g.dictionaries))


def with_values(found: Found, values: Sequence[Sequence[Any]]) -> Answer:
    """A clause with the values of its rows in place of their codes."""
    one, other = (tuple(plain(values[a][code]) for a, code in enumerate(codes)) for codes in found.rows)
    return Answer(found.clause, one, other)


def encoded(rows: Sequence[Sequence[bytes]], values: Sequence[Sequence[Any]]) -> NDArray[np.int64]:
    """Codes of rows whose values are spelled; -1 for values that do not occur."""
    codes = np.full((len(values), len(rows)), -1, np.int64)
    for a, known in enumerate(values):
        wanted = {row[a] for row in rows}
        code_of = {spelled: code for code, value in enumerate(known) if (spelled := written(value)) in wanted}
        codes[a] = [code_of.get(row[a], -1) for row in rows]
    return codes


def decisions_of(
    columns: Sequence[tuple[Codes, int]], classes: Index, counts: NDArray[np.int64], rows: NDArray[np.int64]
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
                found[asked] = dict(zip(classes[there].tolist(), counts[there].tolist(), strict=True))
    return found
