"""A table as the search for rules reads it: values numbered in their order, and all conditions that a rule may have.

A condition says that a column has one value; or, of a column that was cut into bins, that it is at most a cut point, or
above one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from plar.bins import Cuts
from plar.coding.shown_values import value_order
from plar.coding.times import TimeCuts, spelled_seconds
from plar.granules.granules import Granules
from plar.grouping.partition import Codes, Index
from plar.matching.condition import LOWEST, OPERATORS, Condition, ConditionValue, plain_value
from plar.uncertainty.approximation import sum_by_decision

Rows: TypeAlias = NDArray[np.uint32]
Counts: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]

#: operators by their numbers, which are their places in `OPERATORS`
EQUAL: Final = 0
AT_MOST: Final = 1
ABOVE: Final = 2


class CodedCondition(NamedTuple):
    """A condition by numbers.

    `rank` is that of the value, or of the last value at or below the cut point: -1 for the condition that there is a
    number at all.
    """

    column: int
    operator: int
    rank: int


class Block(NamedTuple):
    """Columns of codes of one width, row by row."""

    codes: NDArray[np.unsignedinteger[Any]]
    #: which columns of the table they are
    columns: NDArray[np.int64]
    #: the number of the first value of each
    first_values: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class CodedTable:
    """The distinct rows of a table, with values of each column numbered from 0 on in their order; missing is the last.

    Parameters
    ----------
    names : tuple of str
        The columns.
    blocks : tuple of Block
    place_of : tuple of (int, int)
        The block of each column, and its place there.
    values : tuple of lists
        The values of each column in their order: numbers of bins where it is cut.
    first_values : (n_columns + 1,) array
        Values of all columns are numbered one column after another: where each begins.
    n_present : (n_columns,) array
        How many values of each column are not missing.
    cut_points : tuple of lists
        The cut point after each value of each column, if there is one.
    is_cut : (n_columns,) array
        Whether a column was cut into bins; of its values, only what is missing can be asked for.
    ends_at_cut : (n_values,) array
        Whether a cut point follows a value.
    decisions : (n_rows,) array
        The decision of each row, numbered in the order of the decisions.
    decision_values : list of tuples
        The values that they stand for, one for each decision column.
    weights : (n_rows,) array
        How many rows of the table each row stands for.
    conditions : list of CodedCondition
        All that a rule may have, in the order in which ties are broken.
    """

    names: tuple[str, ...]
    blocks: tuple[Block, ...]
    place_of: tuple[tuple[int, int], ...]
    values: tuple[list[Any], ...]
    cut_points: tuple[list[ConditionValue], ...]
    first_values: NDArray[np.int64]
    n_present: NDArray[np.int64]
    is_cut: Mask
    ends_at_cut: Mask
    decisions: Index
    decision_values: list[tuple[Any, ...]]
    weights: Counts
    conditions: list[CodedCondition]

    @staticmethod
    def of(granules: Granules) -> CodedTable:
        """Number the values of granules."""
        columns: list[_OrderedColumn] = []
        for name, codes, values in zip(granules.conditions, granules.columns, granules.dictionaries, strict=True):
            if name in granules.cuts:
                columns.append(_of_bins(codes, values, granules.cuts[name]))
            else:
                columns.append(_of_values(codes, values))
        first_values = np.cumsum([0, *(len(column.values) for column in columns)])
        conditions = [
            CodedCondition(number, operator, rank)
            for number, column in enumerate(columns)
            for operator, rank in _conditions(column)
        ]
        blocks, place_of = _blocks([column.codes for column in columns], first_values, len(granules))
        decisions, decision_values = _decisions_in_order(granules)
        return CodedTable(
            names=granules.conditions,
            blocks=blocks,
            place_of=place_of,
            values=tuple(column.values for column in columns),
            cut_points=tuple(column.cut_points for column in columns),
            first_values=first_values,
            n_present=np.array([column.n_present for column in columns], np.int64),
            is_cut=np.array([column.is_cut for column in columns], np.bool_),
            ends_at_cut=np.array([point is not None for column in columns for point in column.cut_points], np.bool_),
            decisions=decisions,
            decision_values=decision_values,
            weights=granules.counts,
            conditions=conditions,
        )

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def n_decisions(self) -> int:
        """Number of different decisions."""
        return len(self.decision_values)

    @property
    def n_values(self) -> int:
        """Number of values of all columns together."""
        return int(self.first_values[-1])

    def all_rows(self) -> Rows:
        """The numbers of all rows."""
        return np.arange(len(self), dtype=np.uint32)

    def matches(self, condition: CodedCondition, rows: Rows | None = None) -> Mask:
        """Whether each row, or each of some rows, meets a condition."""
        block, place = self.place_of[condition.column]
        codes = self.blocks[block].codes[:, place]
        return self.is_met(condition, codes if rows is None else codes[rows])

    def is_met(self, condition: CodedCondition, codes: NDArray[np.integer[Any]]) -> Mask:
        """Whether each of some values of its column, given by their numbers, meets a condition."""
        is_met: Mask
        if condition.operator == EQUAL:
            is_met = codes == condition.rank
        elif condition.operator == AT_MOST:
            is_met = codes <= condition.rank
        else:
            is_met = codes < self.n_present[condition.column]
            if condition.rank >= 0:
                is_met &= codes > condition.rank
        return is_met

    def condition(self, coded: CodedCondition) -> Condition:
        """A condition as people read it."""
        if coded.operator == EQUAL:
            value = plain_value(self.values[coded.column][coded.rank])
        elif coded.rank < 0:
            value = LOWEST
        else:
            value = plain_value(self.cut_points[coded.column][coded.rank])
        return Condition(self.names[coded.column], OPERATORS[coded.operator], value)

    def matching(self, conditions: Sequence[CodedCondition], rows: Rows | None = None) -> Rows:
        """The rows, all or among some, that meet all conditions."""
        remaining = self.all_rows() if rows is None else rows
        for condition in conditions:
            remaining = remaining[self.matches(condition, remaining)]
        return remaining

    def counts_by_decision(self, rows: Rows) -> Counts:
        """How many of some rows, by their weight, have each decision."""
        return sum_by_decision(self.decisions[rows], self.weights[rows], self.n_decisions)


class _OrderedColumn(NamedTuple):
    """A column whose codes follow the order of its values, missing last."""

    codes: Codes
    values: list[Any]
    #: the cut point after each value, if there is one
    cut_points: list[ConditionValue]
    is_cut: bool

    @property
    def n_present(self) -> int:
        """How many values are not missing."""
        return len(self.values) - (None in self.values[-1:])


def _of_bins(codes: Codes, values: Sequence[Any], cuts: Cuts) -> _OrderedColumn:
    """A column that was cut: there is a cut point after each bin but the last."""
    codes, bins = _in_order(codes, values)
    present = [number for number in bins if number is not None]
    cut_points: list[ConditionValue] = [None] * len(bins)
    for rank, number in enumerate(present[:-1]):
        cut_points[rank] = _shown_cut(cuts, number)
    return _OrderedColumn(codes, bins, cut_points, is_cut=True)


def _shown_cut(cuts: Cuts, number: int) -> ConditionValue:
    """A cut point in the user's units: a time, or a number."""
    point = cuts[number]
    time = spelled_seconds(point, cuts.kind) if isinstance(cuts, TimeCuts) else None
    return point if time is None else time


def _of_values(codes: Codes, values: Sequence[Any]) -> _OrderedColumn:
    """A column whose values are only equal or not."""
    codes, ordered = _in_order(codes, values)
    return _OrderedColumn(codes, ordered, [None] * len(ordered), is_cut=False)


def _conditions(column: _OrderedColumn) -> list[tuple[int, int]]:
    """All conditions on a column by operator and rank, in the order in which ties are broken."""
    first = column.n_present if column.is_cut else 0
    equal = [(EQUAL, rank) for rank in range(first, len(column.values))]
    cuts = [rank for rank, point in enumerate(column.cut_points) if point is not None]
    at_most = [(AT_MOST, rank) for rank in cuts]
    above = [(ABOVE, rank) for rank in cuts]
    if column.is_cut and not cuts and equal and first:
        above = [(ABOVE, -1)]  # no cut point tells the only bin from what is missing
    return [*equal, *at_most, *above]


def _in_order(codes: Codes, values: Sequence[Any]) -> tuple[Codes, list[Any]]:
    """Codes and values in the order that people expect; what is missing is last."""
    order = sorted(range(len(values)), key=lambda code: value_order(values[code]))
    rank_of = np.empty(len(values), codes.dtype)
    rank_of[order] = np.arange(len(values), dtype=codes.dtype)
    return rank_of[codes], [values[code] for code in order]


def _decisions_in_order(granules: Granules) -> tuple[Index, list[tuple[Any, ...]]]:
    """The decision of each row, and the decisions in the order that people expect."""
    values = list(zip(*granules.decision_values, strict=True))
    order = sorted(range(len(values)), key=lambda code: tuple(map(value_order, values[code])))
    rank_of = np.empty(len(values), np.uint32)
    rank_of[order] = np.arange(len(values), dtype=np.uint32)
    return rank_of[granules.decision_codes], [values[code] for code in order]


def _blocks(
    columns: list[Codes], first_values: NDArray[np.int64], n_rows: int
) -> tuple[tuple[Block, ...], tuple[tuple[int, int], ...]]:
    """Columns of each width side by side, and where each column went; the list of columns is emptied."""
    by_width: dict[int, list[int]] = {}
    for column, codes in enumerate(columns):
        by_width.setdefault(codes.dtype.itemsize, []).append(column)
    blocks: list[Block] = []
    place_of = [(0, 0)] * len(columns)
    for number, members in enumerate(by_width.values()):
        side_by_side = np.empty((n_rows, len(members)), columns[members[0]].dtype)
        for place, column in enumerate(members):
            side_by_side[:, place] = columns[column]
            columns[column] = columns[column][:0]
            place_of[column] = (number, place)
        blocks.append(Block(side_by_side, np.array(members, np.int64), first_values[members]))
    return tuple(blocks), tuple(place_of)
