"""How strongly each of many candidates is associated with the decision: one pass over their columns, in threads.

Where the cells of class, decision and value are few beside the rows, they are counted in the order that the columns
have; otherwise each column is first brought into the order of the classes. Either way the result is that of
`plar.chance.association.association`, to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from plar.chance.association import (
    GAINED,
    INVERSES,
    N_SUMS,
    Association,
    ClassBuffers,
    add_large_class,
    add_moments_of_each,
    add_small_class,
    add_term,
    associations_of,
    class_buffers,
    deviation_of,
    sort_first,
    varies,
)
from plar.grouping.partition import Codes, Index, Ints, take_in_order
from plar.runtime.jit import jit
from plar.runtime.parallel import in_threads, usable_cores
from plar.uncertainty.strata import StratifiedRows

#: a candidate: its codes by row, and how many there may be
CodedColumn: TypeAlias = tuple[Codes, int]

#: to count so many takes as long as other work on one cell
_COUNTED_PER_CELL = 64
#: rows of several candidates that a thread counts in one go, and those that it first brings into the order of classes
_ROWS_COUNTED_TOGETHER = 1 << 20
_ROWS_ORDERED_TOGETHER = 1 << 18
#: a thread takes several such groups at a time, because handing over a task takes time, if each core gets so many tasks
_MOST_GROUPS_PER_TASK = 16
_TASKS_PER_CORE = 8
#: what takes how long: to count a row in any order, to add up a cell, and a row that is brought into another order
_ROW_COST = 1
_CELL_COST = 4
_ORDERED_ROW_COST = 8
#: cells that 16 bits number
_MAX_CELLS = 1 << 16
#: candidates are counted together up to so many cells, if there are as many rows for each
_MAX_CELLS_TOGETHER = 1 << 12
_ROWS_PER_CELL = 16
#: rows whose cells are computed at a time
_ROWS_AT_ONCE = 1 << 11
#: up to this many cells, four tables take turns, since adding to the same cell twice in a row takes longer
_MAX_CELLS_IN_TURN = 1 << 10


def associations(columns: Sequence[CodedColumn], rows: StratifiedRows) -> list[Association]:
    """Measure how each of several candidates goes with the decision; several at a time, in threads.

    Examples
    --------
    >>> import plar
    >>> from plar.uncertainty.strata import Strata
    >>> strata = Strata(plar.granulate({"a": [0, 1, 1], "b": [0, 1, 2], "d": [0, 1, 1]}, "d"))
    >>> [measured.mean for measured in associations([strata.column(0), strata.column(1)], strata.rows(()))]
    [0.6666666666666666, 0.0]
    """
    if not columns:
        return []
    sums = np.zeros((len(columns), N_SUMS, 2), np.int64)
    n_rows = len(columns[0][0])
    most_values = _most_values_to_count(rows, n_rows)
    counted = [i for i, (_, n_values) in enumerate(columns) if n_values <= most_values]
    ordered = [i for i, (_, n_values) in enumerate(columns) if n_values > most_values]
    numbered = _numbered(rows, n_rows if counted else 0)

    def measure(task: tuple[bool, list[Sequence[int]]]) -> None:
        are_counted, groups = task
        for candidates in groups:
            of_group = [columns[i] for i in candidates]
            sums[candidates] = _sums_of_counted(of_group, numbered) if are_counted else _sums_of_ordered(of_group, rows)

    tasks = [(True, groups) for groups in _tasks(counted, _ROWS_COUNTED_TOGETHER // n_rows)]
    tasks += [(False, groups) for groups in _tasks(ordered, _ROWS_ORDERED_TOGETHER // n_rows)]
    for _ in in_threads(measure, tasks, (len(counted) // _COUNTED_PER_CELL + len(ordered)) * n_rows):
        pass
    return associations_of(sums)


def _most_values_to_count(rows: StratifiedRows, n_rows: int) -> int:
    """Up to how many values it is faster to count the cells in the order of the columns."""
    most_cells = (_ORDERED_ROW_COST * len(rows.order) - _ROW_COST * n_rows) // _CELL_COST
    return min(most_cells, _MAX_CELLS) // len(rows.runs.begins)


def _tasks(candidates: Sequence[int], n_together: int) -> list[list[Sequence[int]]]:
    """Groups of candidates, and these in tasks."""
    n = max(1, n_together)
    groups = [candidates[first : first + n] for first in range(0, len(candidates), n)]
    per_task = min(_MOST_GROUPS_PER_TASK, len(groups) // (_TASKS_PER_CORE * usable_cores()))
    m = max(1, per_task)
    return [groups[first : first + m] for first in range(0, len(groups), m)]


class _NumberedRows(NamedTuple):
    """Rows in the order of the columns, each with the number of its run."""

    #: rows of no class have a number of their own, after all others
    run_of: NDArray[np.uint16]
    #: numbers of objects; empty if all are 1
    weights: Ints
    #: the first run of each class, with a final end
    first: Index


def _numbered(rows: StratifiedRows, n_rows: int) -> _NumberedRows:
    order, runs, _ = rows
    weights = np.empty(0, np.int64)
    if n_rows == 0:
        return _NumberedRows(np.empty(0, np.uint16), weights, runs.first)
    sizes = np.diff(runs.begins)
    run_of = np.full(n_rows, len(sizes), np.uint16)
    run_of[order] = np.repeat(np.arange(len(sizes), dtype=np.uint16), sizes)
    if (runs.weights != 1).any():
        weights = np.zeros(n_rows, np.int64)
        weights[order] = runs.weights
    return _NumberedRows(run_of, weights, runs.first)


def _sums_of_counted(columns: Sequence[CodedColumn], rows: _NumberedRows) -> Ints:
    """Fixed-point sums of candidates whose cells are counted in the order of the columns."""
    is_byte = all(codes.dtype == np.uint8 for codes, _ in columns)
    values = np.empty((len(columns), len(rows.run_of)), np.uint8 if is_byte else np.uint32)
    for i, (codes, _) in enumerate(columns):
        values[i] = codes
    n_values = np.array([of_column for _, of_column in columns], np.int64)
    sums = np.zeros((len(columns), N_SUMS, 2), np.int64)
    _count_each(values, n_values, rows, _buffers_of_cells(rows, int(n_values.max())), INVERSES, sums)
    return sums


def _buffers_of_cells(rows: _NumberedRows, n_values: int) -> ClassBuffers:
    most_decisions = int(np.diff(rows.first).max(initial=0)) + 1
    by_value, of_decision, squares = np.zeros((3, n_values), np.int64)
    present = np.empty(n_values, np.uint32)
    sizes = np.empty(n_values, np.int64)
    return ClassBuffers(by_value, of_decision, squares, present, sizes, np.empty(most_decisions, np.int64))


def _sums_of_ordered(columns: Sequence[CodedColumn], rows: StratifiedRows) -> Ints:
    """Fixed-point sums of candidates that are brought into the order of the classes."""
    order, runs, _ = rows
    values = np.empty((len(columns), len(order)), np.uint32)
    for i, (codes, _) in enumerate(columns):
        take_in_order(codes, order, values[i])
    sums = np.zeros((len(columns), N_SUMS, 2), np.int64)
    most_values = max(n_values for _, n_values in columns)
    add_moments_of_each(values, runs, class_buffers(runs, most_values), INVERSES, sums)
    return sums


# -- kernels ---------------------------------------------------------------------------------------------------


@jit
def _count_each(
    columns: Codes, n_values: Ints, rows: _NumberedRows, buffers: ClassBuffers, inverses: Ints, sums: Ints
) -> None:
    """Add up the moments of candidates whose codes are the rows of an array."""
    # neighbours are counted together, as one column of all combinations of their values, as long as these are few
    n_runs = np.int64(rows.first[len(rows.first) - 1]) + 1
    most_together = min(_MAX_CELLS_TOGETHER, len(rows.run_of) // _ROWS_PER_CELL)
    most_cells = max(n_runs * n_values.max(), most_together)
    cells = np.zeros(most_cells + 3 * min(most_cells, _MAX_CELLS_IN_TURN), np.int64)
    cells_of_one = np.zeros(n_runs * n_values.max(), np.int64)
    begin = np.int64(0)
    while begin < len(columns):
        n_together = n_values[begin]
        end = begin + 1
        while end < len(columns) and n_runs * n_together * n_values[end] <= most_together:
            n_together *= n_values[end]
            end += 1
        _count_cells(columns[begin:end], n_values[begin:end], n_runs * n_together, rows, cells)
        after = n_together
        for i in range(begin, end):
            before = n_together // after
            after //= n_values[i]
            _sum_cells(cells, n_runs * before, n_values[i], after, n_runs, cells_of_one)
            _add_moments_of_cells(cells_of_one, n_values[i], rows.first, buffers, inverses, sums[i])
        cells[: n_runs * n_together] = 0
        begin = end


@jit
def _count_cells(columns: Codes, n_values: Ints, n_cells: np.int64, rows: _NumberedRows, cells: Ints) -> None:
    """Count the objects of each run and combination of values."""
    run_of = rows.run_of
    weights = rows.weights
    cell_of = np.empty(_ROWS_AT_ONCE, np.uint16)
    n = np.uint64(columns.shape[1])
    one = np.uint64(1)
    four = np.uint64(4)
    # where the tables begin that take turns
    second = np.uint64(n_cells if n_cells <= _MAX_CELLS_IN_TURN else 0)
    third = second + second
    fourth = third + second
    for begin in range(np.uint64(0), n, np.uint64(_ROWS_AT_ONCE)):
        m = min(n - begin, np.uint64(_ROWS_AT_ONCE))
        for i in range(m):
            cell_of[i] = run_of[begin + i]
        for c in range(len(columns)):
            codes = columns[c]
            width = np.uint16(n_values[c])
            for i in range(m):
                cell_of[i] = np.uint16(np.uint16(cell_of[i] * width) + np.uint16(codes[begin + i]))
        if len(weights) > 0:
            for i in range(m):
                cells[np.uint64(cell_of[i])] += weights[begin + i]
            continue
        row = np.uint64(0)
        while row + four <= m:
            cells[np.uint64(cell_of[row])] += 1
            cells[second + np.uint64(cell_of[row + one])] += 1
            cells[third + np.uint64(cell_of[row + np.uint64(2)])] += 1
            cells[fourth + np.uint64(cell_of[row + np.uint64(3)])] += 1
            row += four
        while row < m:
            cells[np.uint64(cell_of[row])] += 1
            row += one
    for at in range(second):
        cells[at] += cells[second + at] + cells[third + at] + cells[fourth + at]
        cells[second + at] = 0
        cells[third + at] = 0
        cells[fourth + at] = 0


@jit
def _sum_cells(
    cells: Ints, n_before: np.int64, n_values: np.int64, n_after: np.int64, n_runs: np.int64, cells_of_one: Ints
) -> None:
    """Add up the cells of one of the columns that were counted together."""
    cells_of_one[: n_runs * n_values] = 0
    n_of_run = n_before // n_runs
    at = 0
    for before in range(n_before):
        run = before // n_of_run
        for v in range(n_values):
            total = np.int64(0)
            for _ in range(n_after):
                total += cells[at]
                at += 1
            cells_of_one[run * n_values + v] += total


@jit
def _add_moments_of_cells(
    cells: Ints, n_values: np.int64, first: Index, buffers: ClassBuffers, inverses: Ints, sums: Ints
) -> None:
    """Add up the statistic, mean and variance of all classes."""
    by_value = buffers.by_value
    squares = buffers.squares
    present = buffers.present
    sizes = buffers.sizes
    decided = buffers.decided
    for c in range(len(first) - 1):
        low = np.int64(first[c])
        n_decisions = np.int64(first[c + 1]) - low
        if n_decisions < 2:
            continue
        of_class = cells[low * n_values : (low + n_decisions) * n_values]
        n = 0
        for j in range(n_decisions):
            n_decided = 0
            for v in range(n_values):
                k = of_class[j * n_values + v]
                by_value[v] += k
                squares[v] += k * k
                n_decided += k
            decided[j] = n_decided
            n += n_decided
        n_present = 0
        for v in range(n_values):
            if by_value[v] > 0:
                present[n_present] = v
                n_present += 1
        if varies(n_present, n_decisions, n, buffers):
            if n < len(inverses):
                add_small_class(n_present, n_decisions, n, buffers, inverses, sums)
            else:
                for t in range(n_present):
                    sizes[t] = by_value[present[t]]
                _add_statistic_of_cells(of_class, n_values, n_decisions, n, buffers, sums)
                sort_first(sizes, n_present)
                sort_first(decided, n_decisions)
                add_large_class(sizes, n_present, decided, n_decisions, np.float64(n), sums)
        for v in range(n_values):
            by_value[v] = 0
            squares[v] = 0


@jit
def _add_statistic_of_cells(
    cells: Ints, n_values: np.int64, n_decisions: np.int64, n: int, buffers: ClassBuffers, sums: Ints
) -> None:
    # the terms of `plar.chance.association`
    by_value = buffers.by_value
    decided = buffers.decided
    square = np.float64(n) * np.float64(n)
    for j in range(n_decisions):
        n_decided = decided[j]
        rest = n
        for v in range(n_values):
            k = cells[j * n_values + v]
            if k > 0:
                size = by_value[v]
                rest -= size
                deviation = deviation_of(k, size, n_decided, n)
                add_term(sums, GAINED, deviation * deviation / square / np.float64(size))
        add_term(sums, GAINED, np.float64(n_decided) * np.float64(n_decided) / square * np.float64(rest))
