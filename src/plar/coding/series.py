"""Dictionary codes of one column of any library; polars columns by hash if text, by bits if of fixed width."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from plar.coding.codes import Column, encode_distinct, encode_objects, encode_values, first_rows
from plar.coding.missing import NO_SPELLINGS, MissingSpellings
from plar.coding.times import spelled_times
from plar.errors import EngineFailed, TableError
from plar.grouping.factorize import factorized
from plar.grouping.partition import Array, smallest_codes
from plar.runtime.lazy_polars import pl

_FEW_ROWS = 1000  # up to this many rows a dictionary is faster than a call of polars

#: whether plar has used polars in this process
_used = False
#: whether it had in the parent that this process was forked from, whose threads are gone
_lost = False


def check_threads() -> None:
    """Note that polars is about to be used; refuse if this process was forked after plar had used it."""
    global _used
    if _lost:
        raise EngineFailed(
            "This process was forked from one that had used polars, whose threads it lacks, so it would wait forever. "
            "Start processes with the method 'spawn' or 'forkserver', or give them granules made before."
        )
    _used = True


def _forked() -> None:
    global _lost
    _lost = _used


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def encode_strings(series: pl.Series) -> tuple[Array, list[str | None]]:
    """Codes of a String column and its distinct values, by hash, then verified."""
    if len(series) > _FEW_ROWS:
        codes, first = factorized(series.hash().to_numpy())
        values = series.gather(first)
        if series.eq_missing(values.gather(codes)).all():
            return codes, values.to_list()
    # few rows, or a hash collision
    cells = series.to_list()
    distinct = list(dict.fromkeys(cells))
    places = {value: code for code, value in enumerate(distinct)}
    return np.array(list(map(places.__getitem__, cells)), np.uint32), distinct


def named(*names: str) -> pl.Expr:
    """Columns by their literal names; `polars.col` takes ``*`` and ``^…$`` as patterns."""
    if any(name == "*" or (name[:1] == "^" and name[-1:] == "$") for name in names):
        return pl.selectors.by_name(*names).as_expr()
    return pl.col(list(names)) if len(names) > 1 else pl.col(*names)


def not_flat(name: str, dtype: object) -> TableError:
    """The error for lists and structs, which do not compare."""
    return TableError(f"Column {name!r} holds {dtype}. Only flat values compare: unnest it, or drop it.")


def encode_series(series: pl.Series, na: MissingSpellings = NO_SPELLINGS, *, text: bool = False) -> Column:
    """Code a polars Series of any flat type; as `text`, blanks around values are trimmed and empty is missing."""
    check_threads()
    dtype = series.dtype
    if dtype.is_nested():
        raise not_flat(series.name, dtype)
    if dtype == pl.Object:
        return encode_objects(series.to_list(), na, name=series.name)
    if dtype == pl.Null or not len(series):
        return Column(np.zeros(len(series), np.uint8), [None] if len(series) else [])
    if dtype in (pl.Categorical, pl.Enum):
        series = series.cast(pl.String)
    if series.dtype == pl.String or (len(series) <= _FEW_ROWS and (dtype.is_integer() or dtype == pl.Boolean)):
        codes, values = encode_strings(series)
        return encode_distinct(codes, values, na=na, trim=text)
    if dtype == pl.Binary:
        return _encode_as_text(series, series.bin.encode("hex"), na)
    if dtype.is_decimal() or dtype in (pl.Int128, pl.UInt128):
        return _encode_as_text(series, series.cast(pl.String), na)
    return _encode_physical(series, na)


def _encode_as_text(series: pl.Series, written: pl.Series, na: MissingSpellings) -> Column:
    """Code values that compare as they are written."""
    codes, distinct = encode_strings(written)
    values = series.gather(first_rows(codes, len(distinct))).to_list()
    return encode_distinct(codes, values, na=na)


def _encode_physical(series: pl.Series, na: MissingSpellings) -> Column:
    """Code values of fixed width by the numbers that polars stores for them."""
    dtype = series.dtype
    if dtype.is_numeric():
        numbers = series
    elif dtype == pl.Boolean:  # polars plans a query for `to_physical`, which takes longer than coding a column
        numbers = series.cast(pl.UInt8)
    else:
        numbers = series.to_physical()
    present = numbers.drop_nulls() if numbers.null_count() else numbers
    column = encode_values(present.to_numpy(), na if dtype.is_numeric() else NO_SPELLINGS)
    values = _values_of_numbers(series, column)
    if len(present) == len(series):
        return Column(column.codes, values, column.merged)
    merged = column.merged
    if None in values:  # NaN, or a number that means missing
        merged = True
    else:
        values.append(None)
    codes = smallest_codes(np.full(len(series), values.index(None), np.uint32), len(values))
    codes[numbers.is_not_null().to_numpy()] = column.codes
    return Column(codes, values, merged)


def _values_of_numbers(series: pl.Series, column: Column) -> list[Any]:
    """The values that the numbers in a coded column stand for."""
    dtype = series.dtype
    numbers = list(column.values)
    if dtype.is_numeric():
        return numbers
    if dtype == pl.Time:
        return [str(time)[11:] for time in spelled_times(numbers, np.dtype("M8[ns]"))]
    if dtype == pl.Duration:
        return list(spelled_times(numbers, np.dtype(f"m8[{getattr(dtype, 'time_unit', 'D')}]")))
    if dtype.is_temporal():
        zone = "Z" if getattr(dtype, "time_zone", None) else ""
        return list(spelled_times(numbers, np.dtype(f"M8[{getattr(dtype, 'time_unit', 'D')}]"), zone))
    return series.drop_nulls().gather(first_rows(column.codes, len(numbers))).to_list()


def encode_column(values: Any, na: MissingSpellings, name: str, *, text: bool = False) -> Column:
    """Code one column of any library; `text` as in `encode_series`."""
    root = type(values).__module__.partition(".")[0]
    if root == "pandas" and hasattr(values, "factorize"):
        return _encode_pandas(values, na, name)
    if root == "polars" or hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_c_stream__"):
        return encode_series(_as_series(values, name), na, text=text)
    if isinstance(values, np.ndarray):
        return encode_values(values, na, name=name)
    return encode_objects(values, na, name=name)


def _as_series(values: Any, name: str) -> pl.Series:
    try:
        return pl.Series(name, values)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, TypeError, ValueError):
        kind = getattr(values, "type", type(values).__name__)
        raise TableError(f"Column {name!r} holds {kind}, which polars does not know. Cast it, or drop it.") from None


def _encode_pandas(series: Any, na: MissingSpellings, name: str) -> Column:
    if isinstance(series.dtype, np.dtype) and (series.dtype.kind in "biufmM" or not series.dtype.isnative):
        return encode_values(series.to_numpy(), na, name=name)
    if hasattr(series.dtype, "pyarrow_dtype"):
        return encode_series(_as_series(series.array.__arrow_array__(), name), na)
    try:
        codes, values = series.factorize()
    except TypeError:
        return encode_objects(series, na, name=name)  # raises for values that cannot be compared
    lacking = codes < 0
    distinct = list(values)
    if lacking.any():
        codes = np.where(lacking, len(distinct), codes)
        distinct.append(None)
    return encode_distinct(codes, distinct, na=na)


def is_categorical(values: Any) -> bool:
    """Whether a column is categorical by its type in pandas or polars.

    >>> import pandas as pd
    >>> is_categorical(pd.Series([7, 8], dtype="category")), is_categorical(["7", "8"])
    (True, False)
    """
    kind = str(getattr(values, "dtype", "")).partition("(")[0]
    return kind in ("category", "Categorical", "Enum")
