"""From polars frames to granules: a streaming group-by for narrow tables, coding by columns for wide ones.

Either way the memory follows the granules (or the codes), not the text of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from plar.coding.codes import Column, encode_distinct, take_codes
from plar.coding.series import encode_series, encode_strings, named, not_flat
from plar.coding.weights import BadWeight, check_labels, row_weights, whole_counts
from plar.errors import TableError
from plar.granules import Granules
from plar.partition import Array, smallest_codes
from plar.reading.source import Misread, Source
from plar.reading.weights import first_bad_weight, is_bad, text_weight, weight_of
from plar.roles import Roles

if TYPE_CHECKING:
    import polars as pl

__all__ = ["granulate_source"]

_WIDE = 200  # grouping by more columns than this is slower than coding each
_WORD = 63  # bits of several columns that share a grouping key
_ODD, _LEN, _BAD = "\0odd", "\0len", "\0bad"


def granulate_source(source: Source, roles: Roles) -> Granules:
    """Make granules of a source; a reading that turns out wrong gives way to a more careful one."""
    if odd := next((name for name in source.names if name in (_ODD, _LEN, _BAD) or name.startswith("\0word")), None):
        raise TableError(f"The name {odd!r} of a column is one that plar uses itself. Rename it.")
    while True:
        try:
            return _granulate(source, roles)
        except Misread:
            if source.careful is None:
                raise
            source = source.careful
        except BadWeight as error:
            raise (text_weight(source, roles.weights) if roles.weights is not None else None) or error from None


def _granulate(source: Source, roles: Roles) -> Granules:
    granulate = _grouped if _groupable(source, roles) else _row_by_row
    if source.doubt is None:
        return granulate(source, roles)
    with ThreadPoolExecutor(1) as pool:  # beside the reading, it costs no time
        wrong = pool.submit(source.doubt)
        granules = granulate(source, roles)
        if wrong.result():
            raise Misread("values are spelled in several ways")
    return granules


def _groupable(source: Source, roles: Roles) -> bool:
    """Whether polars can group the rows, and fast."""
    import polars as pl

    schema = source.frame.collect_schema()
    for name in roles.used:
        if schema[name].is_nested():
            raise not_flat(name, schema[name])
    return roles.labels is None and len(roles.used) <= _WIDE and pl.Object not in schema.values()


def _assemble(columns: list[Column], counts: NDArray[np.int64], roles: Roles, grouped: bool) -> Granules:
    """Make granules; `columns` is emptied, so that each column can be freed when it is replaced."""
    decision = [columns.pop() for _ in roles.decision][::-1] if roles.labels is None else [roles.labels]
    columns.reverse()
    conditions = ((name, columns.pop()) for name in roles.conditions)
    return Granules.from_columns(
        conditions, zip(roles.decision, decision, strict=True), counts, missing=roles.missing, grouped=grouped
    )


# -- grouping ----------------------------------------------------------------------------------------------


def _grouped(source: Source, roles: Roles) -> Granules:
    import polars as pl

    used = roles.used
    words = _Words(source, used, (*roles.na, *source.na))
    flag = _flag(source, {*used, roles.weights})
    keys = [*words.keys(), *(named(name) for name in used if name not in words.places), *flag]
    aggregates = [pl.len().alias(_LEN)]
    if roles.weights is not None:
        weight = weight_of(source, roles.weights)
        aggregates = [weight.fill_null(0.0).sum().alias(_LEN), is_bad(weight).sum().alias(_BAD)]
    groups = source.collect(source.frame.group_by(keys).agg(aggregates))
    if not len(groups):
        raise source.no_rows()
    odd = bool(flag) and bool(groups[_ODD].any())
    if source.ragged is not None and odd:
        raise source.find_ragged()
    columns = []
    for name in used:
        if name in words.places:
            columns.append(words.column(name, groups))
        else:
            columns.append(encode_series(groups[name], (*roles.na, *source.na), text=source.text))
            _check_plain(source, columns[-1])
    if source.texts and not flag:
        last = source.names[-1]
        odd = bool(groups[_BAD].sum()) if last == roles.weights else words.has_null(last, groups)
    blank = source.audit() if source.texts and odd else 0
    counts = _counts(groups, source, roles, blank)
    if blank and roles.weights is None:
        counts = _less_blank(columns, counts, blank)
        if not counts.any():
            raise source.no_rows()
    return _assemble(columns, counts, roles, grouped=not flag)


def _flag(source: Source, used: set[str | None]) -> list[pl.Expr]:
    """Mark rows of a wrong length, where the columns used would not show them."""
    import polars as pl

    if source.ragged is not None:
        return [pl.col(source.ragged).alias(_ODD)]
    if not source.texts or used >= set(source.names):
        return []
    # naming all columns makes polars parse them all, which alone makes it refuse rows that are too long
    gap = named(source.names[-1]).is_null() | pl.all_horizontal(named(*source.names).is_null())
    return [gap.alias(_ODD)]


def _check_plain(source: Source, column: Column) -> None:
    marks = source.suspect
    if marks and any(mark in value for value in column.values if isinstance(value, str) for mark in marks):
        raise Misread("the values hold quotes or comments")


def _counts(groups: pl.DataFrame, source: Source, roles: Roles, blank: int) -> NDArray[np.int64]:
    if roles.weights is None:
        return groups[_LEN].cast(int).to_numpy().astype(np.int64)
    if groups[_BAD].sum() != blank:
        raise first_bad_weight(source, roles.weights)
    if not groups[_LEN].sum() and len(groups) == 1 and blank:
        raise source.no_rows()
    return whole_counts(groups[_LEN].to_numpy())


def _less_blank(columns: list[Column], counts: NDArray[np.int64], blank: int) -> NDArray[np.int64]:
    """Take the blank lines, which polars reads as rows without values, off the count of such rows."""
    lacking = _without_values(columns)
    counts = counts.copy()
    left = int(counts[lacking].sum()) - blank
    counts[lacking] = 0
    if left > 0:
        counts[np.flatnonzero(lacking)[0]] = left
    return counts


def _without_values(columns: Sequence[Column]) -> NDArray[np.bool_]:
    lacking = np.ones(len(columns[0].codes), np.bool_)
    for column in columns:
        code = column.missing
        lacking &= column.codes == (len(column.values) if code is None else code)
    return lacking


class _Words:
    """Columns of few known values, packed as bit fields into a few 64-bit grouping keys.

    Grouping by one integer is faster than by many columns, and the codes come back by shifting.
    """

    def __init__(self, source: Source, used: Sequence[str], na: tuple[str, ...]) -> None:
        import polars as pl

        self.values: dict[str, list[Any]] = {}
        self.places: dict[str, tuple[str, int, int]] = {}  # word, shift, bits
        self.na = na
        schema = source.frame.collect_schema()
        for name in used:
            dtype = schema[name]
            if dtype == pl.Boolean:
                self.values[name] = list(source.booleans.get(name, (False, True)))
            elif isinstance(dtype, pl.Enum) and len(dtype.categories) < 1 << 16:
                self.values[name] = dtype.categories.to_list()
        if len(self.values) < 2:
            return
        word, shift = 0, 0
        for name, values in self.values.items():
            bits = len(values).bit_length()  # one more value than known: missing
            if shift + bits > _WORD:
                word, shift = word + 1, 0
            self.places[name] = (f"\0word{word}", shift, bits)
            shift += bits

    def keys(self) -> list[pl.Expr]:
        """Return the packed keys."""
        import polars as pl

        words: dict[str, pl.Expr] = {}
        for name, (word, shift, _) in self.places.items():
            code = named(name).to_physical().cast(pl.UInt64).fill_null(len(self.values[name])) * (1 << shift)
            words[word] = words[word] + code if word in words else code
        return [code.alias(word) for word, code in words.items()]

    def codes(self, name: str, groups: pl.DataFrame) -> Array:
        """Unpack the codes of a column."""
        word, shift, bits = self.places[name]
        codes: Array = (groups[word].to_numpy() >> np.uint64(shift)) & np.uint64((1 << bits) - 1)
        return codes

    def has_null(self, name: str, groups: pl.DataFrame) -> bool:
        """Whether polars found no value at all in some row."""
        if name not in self.places:
            return groups[name].null_count() > 0
        return bool((self.codes(name, groups) == len(self.values[name])).any())

    def column(self, name: str, groups: pl.DataFrame) -> Column:
        """Unpack a column from the grouped keys."""
        values = [None if value in self.na else value for value in self.values[name]]
        codes = self.codes(name, groups)
        column = take_codes(Column(codes, [*values, None]), smallest_codes(codes, len(values) + 1))
        if sum(value is None for value in column.values) > 1:
            merged = dict.fromkeys(column.values)
            places = {value: code for code, value in enumerate(merged)}
            lut = np.array([places[value] for value in column.values], np.uint32)
            return Column(smallest_codes(lut[column.codes], len(places)), list(places), merged=True)
        return column


# -- column by column --------------------------------------------------------------------------------------


def _row_by_row(source: Source, roles: Roles) -> Granules:
    """Code every column of every row, then find the equal rows."""
    columns, odd = _code_text(source, roles.read, roles)
    blank = source.audit() if source.texts and odd else 0
    counts = np.ones(len(columns[0].codes), np.int64)
    if blank:
        counts = _drop_blank(columns, counts, blank, roles)
    return _finish(columns, counts, roles)


def _finish(columns: list[Column], counts: NDArray[np.int64], roles: Roles) -> Granules:
    """Add labels and weights to the rows that count, and find the equal ones."""
    if roles.labels is not None:
        rows = int(np.count_nonzero(counts))
        check_labels(roles.labels, rows)
        if rows < len(counts):
            columns = [take_codes(column, column.codes[counts > 0]) for column in columns]
            counts = counts[counts > 0]
    if roles.weights is not None:
        counts = row_weights(columns.pop(), counts)
    return _assemble(columns, counts, roles, grouped=False)


def _drop_blank(columns: list[Column], counts: NDArray[np.int64], blank: int, roles: Roles) -> NDArray[np.int64]:
    lacking = _without_values(columns)
    if roles.labels is not None and np.count_nonzero(lacking) != blank:
        raise TableError(f"{blank} blank lines beside rows without values. Remove the blank lines.")
    counts = counts.copy()
    counts[np.flatnonzero(lacking)[:blank]] = 0
    return counts


class _Growing:
    """Codes of one text column, batch after batch."""

    def __init__(self) -> None:
        self.places: dict[str | None, int] = {}
        self.parts: list[Array] = []

    def add(self, series: pl.Series) -> None:
        codes, values = encode_strings(series.fill_null("") if series.null_count() else series)
        places = self.places
        new = [value for value in values if value not in places]
        places.update(zip(new, range(len(places), len(places) + len(new)), strict=True))
        lut = np.array(list(map(places.__getitem__, values)), np.uint32)
        self.parts.append(smallest_codes(lut[codes], len(places)))

    def finish(self, source: Source, na: tuple[str, ...]) -> Column:
        codes = np.concatenate(self.parts)
        self.parts.clear()
        column = encode_distinct(codes, self.places, na=(*na, *source.na), trim=True)
        _check_plain(source, column)
        return column


def _code_text(source: Source, names: Sequence[str], roles: Roles) -> tuple[list[Column], bool]:
    """Code text in one pass; also says whether some row may have a wrong length."""
    growing = [_Growing() for _ in names]
    odd = False
    flag = _flag(source, set())
    for batch in source.batches([*(source.written(name) for name in names), *flag], len(names)):
        odd = odd or bool(batch[_ODD].any())
        if odd and source.ragged is not None:
            raise source.find_ragged()
        for name, column in zip(names, growing, strict=True):
            column.add(batch[name])
    if not growing[0].parts:
        raise source.no_rows()
    return [column.finish(source, roles.na) for column in growing], odd
