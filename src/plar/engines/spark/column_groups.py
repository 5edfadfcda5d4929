"""Columns in groups that are stored together, and what each task scores of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from plar.engines.local import lanes
from plar.engines.spark.pieces import Cardinalities

#: from so many cores on, not all work is assigned in advance
_MANY_CORES = 8
#: rows of groups for each core that take several times as long as starting a task
_MIN_ROWS_PER_CORE = 1 << 20


class Group(NamedTuple):
    """Attributes whose columns are stored together: in lanes where that pays, else column by column."""

    number: int
    attributes: tuple[int, ...]
    n_values: tuple[int, ...]
    in_lanes: bool


class Share(NamedTuple):
    """What a task scores of a group: all classes of U/R, or those from `low` to `high`, in `of`-ths of the rows."""

    task: int
    group: Group
    low: int = 0
    high: int = 1
    of: int = 1


def column_groups(coding: Cardinalities, n_rows: int, cores: int) -> list[Group]:
    """Divide the columns into groups: those of few values in lanes, the others one by one."""
    in_lanes, others = lanes.lane_groups(coding.cardinalities, n_rows)
    # enough groups of single columns to keep every core busy
    size = max(1, min(lanes.LANES, -(-len(others) // cores)))
    one_by_one = [others[i : i + size] for i in range(0, len(others), size)]
    return [
        Group(number, tuple(attributes), tuple(coding.cardinalities[a] for a in attributes), number < len(in_lanes))
        for number, attributes in enumerate(in_lanes + one_by_one)
    ]


def task_sizes(n_groups: int, n_rows: int, cores: int, *, divide: bool) -> list[int]:
    """How much of the work each task gets, in proportion; where `divide`, a group may be divided among tasks."""
    # every task that has a part of a group holds all of it, so a group is divided among few
    most = n_groups * 2 if divide else n_groups
    n_tasks = min(cores, most) or 1
    is_much = n_groups >= 2 * cores and n_groups * n_rows >= cores * _MIN_ROWS_PER_CORE
    if cores < _MANY_CORES or not is_much:
        return [1] * n_tasks
    # the slowest of many cores is far behind the others: a quarter of much work is for those that are done first
    return [3] * n_tasks + [1] * n_tasks


def shares_of_tasks(groups: list[Group], sizes: Sequence[int], *, divide: bool) -> list[list[Share]]:
    """Assign groups to tasks in proportion to their sizes; groups are divided for that if wished.

    >>> five = [Group(i, (i,), (2,), False) for i in range(5)]
    >>> for shares in shares_of_tasks(five, [1, 1], divide=True):
    ...     print([(share.group.number, share.low, share.high, share.of) for share in shares])
    [(0, 0, 2, 2), (2, 0, 2, 2), (4, 0, 1, 2)]
    [(4, 1, 2, 2), (1, 0, 2, 2), (3, 0, 2, 2)]
    """
    n_tasks = len(sizes)
    if not divide:
        return [[Share(task, group) for group in groups[task::n_tasks]] for task in range(n_tasks)]
    # a line of groups, cheap and expensive ones mixed, is cut into one stretch per task
    line = [group for i in range(n_tasks) for group in groups[i::n_tasks]]
    total = sum(sizes)
    shares_by_task = []
    for task, (begin, end) in enumerate(pairwise([0, *accumulate(sizes)])):
        shares = []
        for i, group in enumerate(line):
            # in `total`-ths of a group, the stretch goes from begin·len(line) to end·len(line)
            low = min(max(begin * len(line) - i * total, 0), total)
            high = min(max(end * len(line) - i * total, 0), total)
            if low < high:
                shares.append(Share(task, group, low, high, total))
        shares_by_task.append(shares)
    return shares_by_task
