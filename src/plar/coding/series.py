"""Dictionary codes of polars columns: text by its hash, everything of fixed width by its bits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from plar.coding.codes import Column, encode_distinct, encode_objects, encode_values, factorized
from plar.coding.threads import check_threads
from plar.coding.times import spelled_clock, spelled_times
from plar.errors import TableError
from plar.partition import Array, Index, smallest_codes

if TYPE_CHECKING:
    import polars as pl

__all__ = ["encode_series", "encode_strings", "named", "not_flat"]


_FEW = 1000  # rows up to which a dictionary is faster than what it takes to ask polars


def _first_rows(codes: Array, n_values: int) -> Index:
    first = np.empty(n_values, np.uint32)
    first[codes[::-1]] = np.arange(len(codes), dtype=np.uint32)[::-1]
    return first


def encode_strings(series: pl.Series) -> tuple[Array, list[str | None]]:
    """Codes of a String column and its distinct values, by hash; what the hashes say is then checked.

    Examples
    --------
    >>> import polars as pl
    >>> codes, values = encode_strings(pl.Series(["b", "a", "b", None]))
    >>> codes.tolist(), values
    ([0, 1, 0, 2], ['b', 'a', None])
    """
    if len(series) <= _FEW:
        cells = series.to_list()
        distinct = list(dict.fromkeys(cells))
        places = {value: code for code, value in enumerate(distinct)}
        return np.array(list(map(places.__getitem__, cells)), np.uint32), distinct
    codes, first = factorized(series.hash().to_numpy())
    values = series.gather(first)
    if series.eq_missing(values.gather(codes)).all():
        return codes, values.to_list()
    return _encode_collisions(series)


def _encode_collisions(series: pl.Series) -> tuple[Array, list[str | None]]:
    """Codes of strings of which some share a hash."""
    import polars as pl

    values = series.unique()
    known = values.drop_nulls()
    codes = series.cast(pl.Enum(known)).to_physical().cast(pl.UInt32).fill_null(len(known))
    return codes.to_numpy(), [*known.to_list(), *([None] if len(known) < len(values) else [])]


def named(*names: str) -> pl.Expr:
    """Columns by their very names; `polars.col` takes ``*`` and ``^…$`` for patterns."""
    import polars as pl

    if any(name == "*" or (name[:1] == "^" and name[-1:] == "$") for name in names):
        return pl.selectors.by_name(*names).as_expr()
    return pl.col(list(names)) if len(names) > 1 else pl.col(*names)


def not_flat(name: str, dtype: object) -> TableError:
    """Say that lists and structs are no values."""
    return TableError(f"Column {name!r} holds {dtype}. Only flat values compare: unnest it, or drop it.")


def encode_series(series: pl.Series, na: Iterable[str] = (), *, text: bool = False) -> Column:
    """Code a polars Series of any flat type.

    Parameters
    ----------
    series : polars.Series
    na : iterable of str
        Spellings of the missing value, for text.
    text : bool
        The values are as written in a text file: blanks around them do not count, and empty is missing.

    Examples
    --------
    >>> import polars as pl
    >>> column = encode_series(pl.Series(["a", " a", "", "?"]), na=["?"], text=True)
    >>> [column.values[code] for code in column.codes]
    ['a', 'a', None, None]
    """
    import polars as pl

    check_threads()
    spellings, dtype = frozenset(na), series.dtype
    if dtype.is_nested():
        raise not_flat(series.name, dtype)
    if dtype == pl.Object:
        return encode_objects(series.to_list(), spellings, name=series.name)
    if dtype == pl.Null or not len(series):
        return Column(np.zeros(len(series), np.uint8), [None] if len(series) else [])
    if dtype == pl.String or (len(series) <= _FEW and (dtype.is_integer() or dtype == pl.Boolean)):
        codes, values = encode_strings(series)
        return encode_distinct(codes, values, na=spellings, trim=text)
    if dtype == pl.Binary or dtype.is_decimal() or dtype in (pl.Int128, pl.UInt128):
        written = series.bin.encode("hex") if dtype == pl.Binary else series.cast(pl.String)
        codes, values = encode_strings(written)
        return encode_distinct(codes, series.gather(_first_rows(codes, len(values))).to_list(), na=spellings)
    # polars plans a query for `to_physical`, which takes longer than to code a column
    numbers = series if dtype.is_numeric() else series.cast(pl.UInt8) if dtype == pl.Boolean else series.to_physical()
    null = numbers.is_null().to_numpy() if numbers.null_count() else None
    column = encode_values(numbers.drop_nulls().to_numpy() if null is not None else numbers.to_numpy())
    found = list(column.values) if dtype.is_numeric() else _values(series.drop_nulls(), column)
    present, merged = column.codes, False
    if null is not None:
        merged = None in found  # NaN is missing, too
        missing = found.index(None) if merged else len(found)
        found = found if merged else [*found, None]
        present = smallest_codes(np.full(len(series), missing, np.uint32), len(found))
        present[~null] = column.codes
    if dtype in (pl.Categorical, pl.Enum):
        return encode_distinct(present, found, na=spellings, trim=text)
    return Column(present, found, merged)


def _values(series: pl.Series, column: Column) -> list[Any]:
    """Values of the codes of a column without nulls."""
    import polars as pl

    dtype = series.dtype
    if dtype == pl.Time:
        return list(map(spelled_clock, column.values))
    if dtype.is_temporal():
        unit = f"{'m8' if dtype == pl.Duration else 'M8'}[{getattr(dtype, 'time_unit', 'D')}]"
        return spelled_times(column.values, np.dtype(unit), "Z" if getattr(dtype, "time_zone", None) else "")
    return series.gather(_first_rows(column.codes, len(column.values))).to_list()
