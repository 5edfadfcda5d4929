"""Rows taken out of granules: what is left of each count, or the row that is not there so often."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from plar.coding.codes import Column
from plar.coding.shown_values import shown_value
from plar.errors import NoRows, TableError
from plar.grouping.partition import distinct

#: columns whose values an error names
_SHOWN = 8


def counts_left(
    columns: Sequence[tuple[str, Column]], counts: NDArray[np.int64], taken: NDArray[np.int64]
) -> NDArray[np.int64]:
    """How many objects are left of each granule.

    Parameters
    ----------
    columns : sequence of (str, Column)
        The values of the granules, followed by those of the granules that are taken out.
    counts, taken : arrays
        How many objects the former stand for, and how many are taken out of each of the latter.
    """
    changes = np.concatenate([counts, -taken])
    order, starts = distinct(((column.codes, len(column.values)) for _, column in columns), len(changes))
    begins = starts[:-1].astype(np.intp)
    # equal rows keep their order: a granule comes before what is taken out of it
    totals = np.zeros_like(changes)
    totals[order[begins]] = np.add.reduceat(changes[order], begins)
    if (totals < 0).any():
        raise _not_there(columns, counts, totals)
    left = totals[: len(counts)]
    if not left.any():
        raise NoRows("No row is left: these are all rows. Subtract fewer.")
    return left


def _not_there(
    columns: Sequence[tuple[str, Column]], counts: NDArray[np.int64], totals: NDArray[np.int64]
) -> TableError:
    """The error for the first row that is taken out more often than it is there."""
    rows = np.flatnonzero(totals < 0)
    row = int(rows[0])
    n_there = int(counts[row]) if row < len(counts) else 0
    n_taken = n_there - int(totals[row])
    values = [f"{name} = {shown_value(column.values[column.codes[row]])}" for name, column in _shown(columns)]
    others = f", nor can {len(rows) - 1:,} more" if len(rows) > 1 else ""
    return TableError(
        f"The row with {', '.join(values)} is there {_times(n_there)}, so it cannot be taken out {_times(n_taken)}"
        f"{others}. Subtract only rows that are part of the table."
    )


def _shown(columns: Sequence[tuple[str, Column]]) -> Sequence[tuple[str, Column]]:
    """The first columns, and the last one, which is the decision."""
    return columns if len(columns) <= _SHOWN else [*columns[: _SHOWN - 1], columns[-1]]


def _times(n: int) -> str:
    """How often something is there or happens, in words.

    >>> _times(0), _times(1), _times(3)
    ('0 times', 'once', '3 times')
    """
    return "once" if n == 1 else f"{n:,} times"
