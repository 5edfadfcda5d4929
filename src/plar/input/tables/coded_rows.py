"""The rows of a table in codes, row by row: cut, dropped and compared as in its granules, but not merged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from plar.bins import Cuts, Rule, bin_column
from plar.coding.assemble import Counts, row_weights, rows_to_keep
from plar.coding.codes import Column
from plar.coding.missing import NO_SPELLINGS
from plar.errors import NoRows
from plar.grouping.partition import Index, Ints, distinct
from plar.input.roles import Roles
from plar.input.tables.granules import column_as_numbers
from plar.input.tables.source import RowSource


class RowClasses(NamedTuple):
    """Classes of the rows that are not dropped."""

    #: the rows class by class, and where each class begins
    order: Index
    starts: Index
    #: by row; -1 for those that are dropped
    class_of: Ints


class CodedRows(NamedTuple):
    """Some columns and the decision of every row."""

    columns: list[Column]
    decision: list[Column]
    #: by weight; 0 for rows that are dropped
    counts: Counts

    def classes(self) -> RowClasses:
        """The classes of rows that are equal in the columns."""
        n_rows = len(self.counts)
        rows = np.flatnonzero(self.counts).astype(np.uint32)
        starts = np.array([0, len(rows)] if len(rows) else [0], np.uint32)
        coded_columns = [(column.codes, len(column.values)) for column in self.columns]
        order, starts = distinct(coded_columns, n_rows, rows, starts)
        class_of = np.full(n_rows, -1, np.int64)
        class_of[order] = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        return RowClasses(order, starts, class_of)


def code_rows(source: RowSource, roles: Roles, names: Sequence[str], cuts: Mapping[str, Cuts]) -> CodedRows:
    """Code some of the conditions, and the decision; columns with cut points are cut there, whatever the roles say."""
    # where missing values are no values, those of the other conditions matter too
    read_names = tuple(names) if roles.missing == "value" else roles.conditions
    in_table = () if roles.coded_y is not None else roles.decision
    read = [*read_names, *in_table]
    columns = list(source.encode(read, roles.na)) if read else []
    named_columns = list(zip(read_names, columns, strict=False))
    decision = columns[len(read_names) :] if roles.coded_y is None else [roles.coded_y]
    named_decision = list(zip(roles.decision, decision, strict=True))
    counts = _weights(source, roles, n_rows=len(decision[0].codes))
    policies = [roles.missing] * len(named_columns) + [roles.missing_decision] * len(named_decision)
    is_kept = rows_to_keep([*named_columns, *named_decision], counts, policies)
    column_of = dict(named_columns)
    return CodedRows(
        columns=[_compared(column_of[name], name, roles, cuts) for name in names],
        decision=[_compared(column, name, roles, cuts) for name, column in named_decision],
        counts=np.where(is_kept, counts, 0),
    )


def _weights(source: RowSource, roles: Roles, n_rows: int) -> Counts:
    """The weight of each row, which may be 0 for all of them."""
    counts = np.ones(n_rows, np.int64)
    if roles.weights is None:
        return counts
    [weights] = source.encode([roles.weights], NO_SPELLINGS)
    try:
        return row_weights(weights, counts)
    except NoRows:
        return np.zeros_like(counts)


def _compared(column: Column, name: str, roles: Roles, cuts: Mapping[str, Cuts]) -> Column:
    """A column as its values compare: in bins, or as numbers, if it is one of those."""
    if name in cuts:
        n_rows = len(column.codes)
        nothing = np.zeros(n_rows, np.uint32)
        counts = np.ones(n_rows, np.int64)
        column, _ = bin_column(column, name, Rule("cuts", cuts=tuple(cuts[name])), nothing, counts, roles.decimal)
    elif name in roles.numeric:
        column = column_as_numbers(column, name, roles.decimal)
    return column
