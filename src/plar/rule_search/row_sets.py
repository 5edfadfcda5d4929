"""The rows that conditions match, as sets of bits: what a rule matches is the intersection of a few of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Lock
from typing import NamedTuple

import numpy as np

from plar.grouping.bit_sets import Words, as_words
from plar.rule_search.coded_table import CodedCondition, CodedTable, Rows
from plar.rule_search.kernels import count_rows, count_without_each, rows_of

#: sets that are kept, in bytes, if the table itself is smaller
_LEAST_BYTES = 1 << 24


class Share(NamedTuple):
    """How many rows there are of a decision, the hits, among some rows; each by its weight."""

    n_hits: int
    n_rows: int


class RowSets:
    """The rows that each condition of a table matches, looked up when they are first asked for.

    Threads share them. Those asked for first are given up when they take more memory than the table.

    Parameters
    ----------
    table : CodedTable
    """

    def __init__(self, table: CodedTable) -> None:
        self._table = table
        self._number_of = {condition: number for number, condition in enumerate(table.conditions)}
        self._is_weighted = bool((table.weights != 1).any())
        self._set_of: dict[int, Words] = {}
        self._n_bytes = 0
        self._most_bytes = max(_LEAST_BYTES, sum(block.codes.nbytes for block in table.blocks))
        self._lock = Lock()

    def numbers(self, conditions: Iterable[CodedCondition]) -> list[int]:
        """The numbers of conditions, which are their places in `CodedTable.conditions`."""
        return [self._number_of[condition] for condition in conditions]

    def of_condition(self, number: int) -> Words:
        """The rows that meet a condition, given by its number."""
        rows = self._set_of.get(number)
        if rows is None:
            rows = as_words(self._table.matches(self._table.conditions[number]))
            self._keep(number, rows)
        return rows

    def _keep(self, number: int, rows: Words) -> None:
        with self._lock:
            if number in self._set_of:
                return
            self._set_of[number] = rows
            self._n_bytes += rows.nbytes
            while self._n_bytes > self._most_bytes and len(self._set_of) > 1:
                oldest = next(iter(self._set_of))
                self._n_bytes -= self._set_of.pop(oldest).nbytes

    def matching(self, numbers: Sequence[int]) -> Words:
        """The rows that meet all of some conditions."""
        if not numbers:
            return as_words(np.ones(len(self._table), np.bool_))
        rows = self.of_condition(numbers[0]).copy()
        for number in numbers[1:]:
            rows &= self.of_condition(number)
        return rows

    def rows(self, members: Words) -> Rows:
        """The numbers of the rows of a set."""
        numbers: Rows = rows_of(members)
        return numbers

    def count(self, members: Words, of_decision: Words) -> Share:
        """Count the rows of a set."""
        n_hits, n_rows = count_rows(members, of_decision, self._table.weights, self._is_weighted)
        return Share(int(n_hits), int(n_rows))

    def count_without_each(self, numbers: Sequence[int], of_decision: Words) -> list[Share]:
        """For each of several conditions, count the rows that meet all others."""
        sets = np.stack([self.of_condition(number) for number in numbers])
        counts = count_without_each(sets, of_decision, self._table.weights, self._is_weighted)
        return [Share(n_hits, n_rows) for n_hits, n_rows in counts.tolist()]
