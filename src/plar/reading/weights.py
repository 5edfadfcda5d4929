"""Weights: a column of whole numbers, which says how many objects each row stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from plar.coding.codes import Column
from plar.coding.series import named
from plar.errors import NoRows, TableError
from plar.granules import MAX_OBJECTS, too_many
from plar.partition import Array
from plar.reading.source import Source
from plar.reading.text import text_rows

if TYPE_CHECKING:
    import polars as pl

__all__ = ["BadWeight", "first_bad_weight", "is_bad", "row_weights", "text_weight", "weight_of", "whole_counts"]


class BadWeight(TableError):
    """A weight is no whole number from 0 on."""

    def __init__(self, value: object, where: str) -> None:
        super().__init__(f"The weight in {where} is {value!r}. Weights are whole numbers: 0, 1, 2, …")
        self.value = value


def whole_counts(weights: Array) -> NDArray[np.int64]:
    """Turn sums of weights into counts, exact because floats are up to 2^53."""
    total = float(weights.sum())
    if total > MAX_OBJECTS:
        raise TableError(too_many(int(total)))
    if not total:
        raise NoRows("All weights are 0, so that no row is left. Check the weights.")
    return weights.astype(np.int64)


def weight_of(source: Source, name: str) -> pl.Expr:
    """Weights as numbers, null where they are none."""
    import polars as pl

    column = named(name)
    dtype = source.frame.collect_schema()[name]
    if source.text or dtype == pl.String:
        column = column.cast(pl.String).str.strip_chars()
    elif not (dtype.is_numeric() or dtype == pl.Boolean):
        raise TableError(f"The weights {name!r} are of type {dtype}. Weights are whole numbers: 0, 1, 2, …")
    return column.cast(pl.Float64, strict=False)


def is_bad(weight: pl.Expr) -> pl.Expr:
    """Whether a weight is no whole number from 0 on."""
    return weight.is_null() | weight.is_nan() | weight.is_infinite() | (weight < 0) | (weight != weight.floor())


def text_weight(source: Source, name: str) -> BadWeight | None:
    """Find the line of the first bad weight; None where polars splits no lines."""
    place = source.names.index(name)
    for text in source.texts:
        for line, row, _ in text_rows(text):
            if len(row) == text.fields and _whole(row[place]) is None:
                return BadWeight(row[place].strip() or None, f"{str(text.path)!r}, line {line},")
    return None


def _whole(value: Any) -> float | None:
    """A weight as a number, None where it is not whole."""
    try:
        number = float(value)
        return number if number >= 0 and number == int(number) else None
    except (TypeError, ValueError, OverflowError):
        return None


def first_bad_weight(source: Source, name: str) -> BadWeight:
    """Find the row of the first bad weight."""
    weight = weight_of(source, name)
    bad = source.collect(
        source.frame.select(named(name).alias("w"), is_bad(weight).alias("bad"))
        .with_row_index("row", 1)
        .filter("bad")
        .head(1)
    )
    return BadWeight(bad["w"][0], f"row {bad['row'][0]}")


def row_weights(column: Column, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Check the distinct weights, and give each row its own."""
    numbers = np.zeros(len(column.values))
    for code, value in enumerate(column.values):
        number = _whole(value)
        if number is None:
            rows = (column.codes == code) & (counts > 0)
            if rows.any():
                raise BadWeight(value, f"row {int(rows.argmax()) + 1}")
        numbers[code] = number or 0.0
    return whole_counts(numbers[column.codes] * (counts > 0))
