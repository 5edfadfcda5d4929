"""How often the conditions of a coded table hold among some rows, kept up to date as rows come and go."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from plar.rule_search.coded_table import CodedTable, Counts, Mask, Rows
from plar.rule_search.kernels import add_rows, count_conditions


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
        np.add.at(self.totals, kinds[rows], sign * table.weights[rows])

    def keep(self, rows: Rows, is_kept: Mask, kinds: NDArray[np.uint8]) -> None:
        """Of the rows that are counted, keep some: the fewer of those that go and those that stay are looked at."""
        n_kept = int(np.count_nonzero(is_kept))
        if 2 * n_kept < len(rows):
            self.clear()
            self.add(rows[is_kept], kinds)
        else:
            self.add(rows[~is_kept], kinds, -1)

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
