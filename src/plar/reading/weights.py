"""Weights: a column of whole numbers, which says how many objects each row stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plar.coding.series import named
from plar.coding.weights import BadWeight, whole
from plar.errors import TableError
from plar.reading.source import Source
from plar.reading.text import text_rows

if TYPE_CHECKING:
    import polars as pl

__all__ = ["first_bad_weight", "is_bad", "text_weight", "weight_of"]


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
            if len(row) == text.fields and whole(row[place]) is None:
                return BadWeight(row[place].strip() or None, f"{str(text.path)!r}, line {line},")
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
