"""How often the conditions of a coded table hold among some rows, kept up to date as rows come and go."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from plar.rule_search.coded_table import CodedCondition, CodedTable, Counts, Mask, Rows
from plar.rule_search.kernels import add_rows, add_totals, count_conditions, mark_present


class ConditionCounts:
    """Counts of every condition of a table among some rows, for each kind of row.

    Parameters
    ----------
    table : CodedTable
    n_kinds : int
    """

    def __init__(self, table: CodedTable, n_kinds: int) -> None:
        self._table = table
        #: rows by value and kind
        self._of_values = np.zeros((table.n_values, n_kinds), np.int64)
        #: rows by condition and kind, as of the last look
        self._of_conditions = np.zeros((len(table.conditions), n_kinds), np.int64)
        #: rows by kind, each by its weight
        self.totals = np.zeros(n_kinds, np.int64)

    def copy_from(self, other: ConditionCounts) -> None:
        """Count the rows that another counts."""
        self._of_values[:] = other._of_values
        self.totals[:] = other.totals

    def clear(self) -> None:
        """Count no rows."""
        self._of_values[:] = 0
        self.totals[:] = 0

    def add(self, rows: Rows, kinds: NDArray[np.uint8], sign: int = 1) -> None:
        """Count more rows, whose kinds are given for all rows of the table; with the sign -1, take them out."""
        table = self._table
        for block in table.blocks:
            add_rows(block.codes, block.first_values, rows, table.weights, kinds, sign, self._of_values)
        add_totals(rows, table.weights, kinds, sign, self.totals)

    def keep(self, rows: Rows, is_kept: Mask, kinds: NDArray[np.uint8]) -> None:
        """Of the rows that are counted, keep some: the fewer of those that go and those that stay are looked at."""
        n_kept = int(np.count_nonzero(is_kept))
        if 2 * n_kept < len(rows):
            self.clear()
            self.add(rows[is_kept], kinds)
        else:
            self.add(rows[~is_kept], kinds, -1)

    def of_present(self, rows: Rows, n_possible: NDArray[np.int64]) -> Counts:
        """Among some rows, how many different values meet each condition; `n_possible` bounds those of each column."""
        self.clear()
        for block in self._table.blocks:
            mark_present(block.codes, block.first_values, rows, n_possible[block.columns], self._of_values[:, 0])
        return self.of_conditions()

    def of_columns(self) -> Counts:
        """The sum of what is counted for the values of each column."""
        return np.add.reduceat(self._of_values[:, 0], self._table.first_values[:-1])

    def of_conditions(self) -> Counts:
        """How often each condition of the table holds; valid until the next call."""
        table = self._table
        count_conditions(
            self._of_values,
            table.first_values,
            table.n_present,
            table.is_cut,
            table.ends_at_cut,
            self._of_conditions,
        )
        return self._of_conditions


class Candidates:
    """How many conditions of a table tell some of its rows apart.

    Parameters
    ----------
    table : CodedTable
    """

    def __init__(self, table: CodedTable) -> None:
        self._table = table
        self._column_of = np.array([condition.column for condition in table.conditions], np.intp)
        self._present = ConditionCounts(table, 1)

    def count(self, rows: Rows, conditions: Sequence[CodedCondition]) -> int:
        """Count those that hold for some but not all of the rows that meet some conditions."""
        if not len(self._table.conditions):
            return 0
        of_conditions = self._present.of_present(rows, self._n_possible(conditions))[:, 0]
        of_columns = self._present.of_columns()[self._column_of]
        return int(((of_conditions > 0) & (of_conditions < of_columns)).sum())

    def _n_possible(self, conditions: Sequence[CodedCondition]) -> NDArray[np.int64]:
        """How many values of each column meet the conditions on it."""
        table = self._table
        n_possible = np.diff(table.first_values)
        for column in {condition.column for condition in conditions}:
            ranks = np.arange(n_possible[column])
            is_possible = np.ones(len(ranks), np.bool_)
            for condition in conditions:
                if condition.column == column:
                    is_possible &= table.is_met(condition, ranks)
            n_possible[column] = is_possible.sum()
        return n_possible
