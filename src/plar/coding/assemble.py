"""Coded columns → distinct rows: apply weights and the policy for missing values, then merge equal rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from plar.coding.codes import Column, take_rows
from plar.coding.row_limit import MAX_OBJECTS
from plar.errors import AllRowsDropped, Given, NoRows, TableError
from plar.grouping.partition import Codes, distinct
from plar.runtime.parallel import in_threads

Counts: TypeAlias = NDArray[np.int64]


class BadWeight(TableError):
    """A weight is not a whole number from 0 on."""

    def __init__(self, value: object, where: str) -> None:
        super().__init__(f"The weight in {where} is {value!r}. Weights are whole numbers: 0, 1, 2, …")
        self.value = value


def check_objects(n_objects: float) -> None:
    """Refuse more objects than can be counted exactly."""
    if n_objects > MAX_OBJECTS:
        raise TableError(
            f"The weights add up to {int(n_objects)} rows, above the limit {MAX_OBJECTS}. Scale them down."
        )


def whole(value: Any) -> float | None:
    """A weight as a number; None if it is not whole."""
    try:
        number = float(value) if not isinstance(value, str) or "_" not in value else -1.0
        return number if number >= 0 and number == int(number) else None
    except (TypeError, ValueError, OverflowError):
        return None


def row_weights(column: Column, counts: Counts) -> Counts:
    """Multiply the counts of rows by their weights."""
    numbers = np.zeros(len(column.values))
    for code, value in enumerate(column.values):
        number = whole(value)
        if number is None:
            rows = (column.codes == code) & (counts > 0)
            if rows.any():
                raise BadWeight(value, f"row {int(rows.argmax()) + 1}")
        numbers[code] = number or 0.0
    weights = numbers[column.codes] * counts
    check_objects(float(weights.sum()))
    if not weights.any():
        raise NoRows("All weights are 0, so no row is left. Check the weights.")
    return weights.astype(np.int64)  # exact, since floats are up to 2^53


def missing_values(counts: Mapping[str, int], option: str = "missing") -> TableError:
    """The error for missing values, by column, where an option refuses them."""
    names = ", ".join(f"{name!r} ({n})" for name, n in list(counts.items())[:10])
    if len(counts) > 10:
        names += f" and {len(counts) - 10} more columns"
    return TableError(
        f"Missing values in {names}. Pass ",
        Given(option, "value"),
        " or ",
        Given(option, "drop"),
        ", or clean the table.",
    )


def drop_missing(columns: Iterable[Column], policy: str, counts: Counts) -> None:
    """Set the counts of rows to 0 that are dropped for a missing value."""
    if policy != "drop":
        return
    for column in columns:
        if column.missing is not None:
            counts[column.codes == column.missing] = 0


def count_missing(columns: Sequence[Column], counts: Counts | None = None) -> int:
    """How many objects have no value in some of these columns; `counts` says how many each row stands for."""
    lacking = np.zeros(len(columns[0].codes), np.bool_)
    for column in columns:
        if column.missing is not None:
            lacking |= column.codes == column.missing
    return int(lacking.sum() if counts is None else counts[lacking].sum())


def rows_to_keep(named: list[tuple[str, Column]], counts: Counts, policies: Sequence[str]) -> NDArray[np.bool_]:
    """Which rows count and are not dropped for a missing value; raises where missing values are an error."""
    keep = counts > 0
    refused: dict[str, int] = {}
    for (name, column), policy in zip(named, policies, strict=True):
        if policy == "value" or column.missing is None:
            continue
        lacking = column.codes == column.missing
        n_objects = int(counts[lacking].sum())
        if policy == "error" and n_objects:
            refused[name] = n_objects
        keep &= ~lacking
    if refused:
        raise missing_values(refused, "missing" if policies[0] == "error" else "missing_decision")
    return keep


def merge_equal_rows(
    named: list[tuple[str, Column]],
    n_conditions: int,
    counts: Counts | None = None,
    *,
    policies: Sequence[str] | None = None,
    grouped: bool = False,
) -> tuple[Counts, bool | None]:
    """Keep each distinct row of coded columns once, in place; return how many objects each stands for.

    Also returned: whether rows that agree on the conditions, the first columns, agree on the decision; None
    if not checked. `counts` says how many objects each given row stands for (default: one), `policies` what
    happens to rows where a column has a missing value (default: it is a value), and `grouped` that the rows
    are known to be distinct, except for what `Column.merged` says.

    >>> named = [("a", Column(np.array([0, 1, 0], np.uint8), ["x", "y"]))]
    >>> merge_equal_rows(named, 1), named[0][1].codes.tolist()
    ((array([2, 1]), True), [0, 1])
    """
    n_rows = len(named[-1][1].codes)
    if not n_rows:
        raise NoRows("The table has no rows. Add some.")
    counts = np.ones(n_rows, np.int64) if counts is None else counts
    keep = rows_to_keep(named, counts, policies or ["value"] * len(named))
    if not keep.all():
        # some columns at a time, so that there is never a second copy of the table
        rows = np.flatnonzero(keep)
        taken = in_threads(lambda column: take_rows(column, rows), (column for _, column in named), len(rows))
        for j, ((name, _), column) in enumerate(zip(named, taken, strict=True)):
            named[j] = name, column
        counts = counts[rows]
    if not len(counts):
        raise AllRowsDropped("missing" if policies and policies[0] == "drop" else "missing_decision")
    if grouped and not any(column.merged for _, column in named):
        return counts, None
    columns = [(column.codes, len(column.values)) for _, column in named]
    first, counts, consistent = merge_equal(columns[:n_conditions][::-1], columns[n_conditions:], counts)
    if first is not None:
        first_codes = in_threads(lambda column: column.codes[first], (column for _, column in named), len(first))
        for j, ((name, column), codes) in enumerate(zip(named, first_codes, strict=True)):
            named[j] = name, Column(codes, column.values, column.merged)
    return counts, consistent


def merge_equal(
    conditions: Iterable[tuple[Codes, int]], decision: Iterable[tuple[Codes, int]], counts: Counts
) -> tuple[NDArray[np.intp] | None, Counts, bool]:
    """The first of equal rows, in table order, the sums of their counts, and whether the table is consistent.

    Counts are positive. The first is None if no two rows are equal.
    """
    order, starts = distinct(conditions, len(counts))
    n_combinations = len(starts)
    order, starts = distinct(decision, len(counts), order, starts)
    consistent = len(starts) == n_combinations
    if len(starts) - 1 == len(counts):
        return None, counts, consistent
    begins = starts[:-1].astype(np.intp)
    totals = np.zeros_like(counts)
    totals[order[begins]] = np.add.reduceat(counts[order], begins)
    first = np.flatnonzero(totals)
    return first, totals[first], consistent
