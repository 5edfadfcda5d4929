"""Coded columns → distinct rows: the policy for missing values, then equal rows become one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from plar.coding.codes import Column, take_codes
from plar.errors import NoRows, TableError
from plar.partition import Index, distinct

__all__ = ["settle"]


def _thinned(named: list[tuple[str, Column]], keep: NDArray[np.bool_] | Index) -> None:
    """Keep some rows of every column, in place, so that no second copy of the table is ever held."""
    for j, (name, column) in enumerate(named):
        named[j] = name, take_codes(column, column.codes[keep])


def _lacking(named: list[tuple[str, Column]], counts: NDArray[np.int64]) -> list[tuple[str, NDArray[np.bool_], int]]:
    """Columns with missing values: name, rows, number of objects."""
    found = []
    for name, column in named:
        code = column.missing
        if code is not None:
            rows = column.codes == code
            found.append((name, rows, int(counts[rows].sum())))
    return found


def _without_missing(named: list[tuple[str, Column]], counts: NDArray[np.int64], missing: str) -> NDArray[np.int64]:
    lacking = _lacking(named, counts)
    if not lacking:
        return counts
    if missing == "error":
        some = ", ".join(f"{name!r} ({n})" for name, _, n in lacking[:10])
        more = f" and {len(lacking) - 10} more columns" if len(lacking) > 10 else ""
        raise TableError(f"Missing values in {some}{more}. Pass missing='value' or missing='drop', or clean the table.")
    keep = ~np.logical_or.reduce([rows for _, rows, _ in lacking])
    _thinned(named, keep)
    kept: NDArray[np.int64] = counts[keep]
    return kept


def settle(
    named: list[tuple[str, Column]],
    counts: NDArray[np.int64] | None = None,
    *,
    missing: str = "value",
    grouped: bool = False,
) -> NDArray[np.int64]:
    """Leave each distinct row of coded columns once, in place, and return how many objects it stands for.

    Parameters
    ----------
    named : list of (name, Column)
    counts : (n,) array of int64, optional
        How many objects each row stands for; rows with 0 leave. Default: one each.
    missing : {"value", "drop", "error"}
        What happens to rows that lack a value.
    grouped : bool
        The rows are known to be distinct, but for what `Column.merged` says.

    Examples
    --------
    >>> named = [("a", Column(np.array([0, 1, 0], np.uint8), ["x", "y"]))]
    >>> settle(named).tolist(), named[0][1].codes.tolist()
    ([2, 1], [0, 1])
    """
    n_rows = len(named[-1][1].codes)
    counts = np.ones(n_rows, np.int64) if counts is None else counts
    if not counts.all():
        _thinned(named, counts > 0)
        counts = counts[counts > 0]
    if missing != "value":
        counts = _without_missing(named, counts, missing)
    if not len(counts):
        raise NoRows(
            "No row is left: all were dropped for a missing value. Pass missing='value'."
            if n_rows
            else "The table has no rows. Add some."
        )
    if grouped and not any(column.merged for _, column in named):
        return counts
    return _deduplicate(named, counts)


def _deduplicate(named: list[tuple[str, Column]], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Keep the first of equal rows, in table order, and return the counts."""
    coded = [(column.codes, len(column.values)) for _, column in reversed(named)]
    order, starts = distinct(coded, len(counts))
    if len(starts) - 1 == len(counts):
        return counts
    first = order[starts[:-1]]
    summed = np.add.reduceat(counts[order], starts[:-1].astype(np.intp))
    place = np.argsort(first)
    first = first[place]
    del coded  # so that each column is freed as its rows are taken
    for j, (name, column) in enumerate(named):
        named[j] = name, Column(column.codes[first], column.values, column.merged)
    return summed[place]
