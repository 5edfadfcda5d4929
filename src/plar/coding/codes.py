"""Dictionary codes: one column of values → dense codes in the smallest type, and the value of each code.

Equality is decided here, on the few distinct values and never cell by cell: trimming, missing values and
their spellings apply to the dictionary, and codes that become equal are merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import partial
from heapq import nlargest, nsmallest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plar.coding.missing import NO_SPELLINGS, MissingSpellings
from plar.coding.times import spelled_time, spelled_times
from plar.errors import TableError
from plar.grouping.factorize import Places, dense, factorized, gather, narrow_floats, narrow_integers
from plar.grouping.partition import Array, Codes, Index, smallest_codes
from plar.runtime.jit import jit
from plar.runtime.limits import check_memory_used
from plar.runtime.parallel import in_threads, usable_cores

_MANY_VALUES = 1 << 14  # from here on their memory matters
_COLUMNS_PER_BLOCK = 512  # columns of a matrix that a thread codes at a time
_BYTES_PER_BLOCK = 1 << 24  # columns of numbers that a thread hashes at a time
_SAMPLE_ROWS = 64  # rows from which the range of a column is guessed
#: rows read at a time: of row-major integers, of row-major floats, of columns
_ROW_TILE = 16
_FLOAT_ROW_TILE = 256
_COLUMN_TILE = 4096
_MAX_WHOLE_FLOAT = 1 << 30  # larger floats are not checked for whole numbers


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One coded column: ``values[codes[i]]`` is the value of row i, None when it is missing.

    Codes are dense: each below ``len(values)`` occurs. `merged` says whether values that differ in the source
    became equal here (trimmed, or spellings of missing), so that distinct rows may have become equal.
    """

    codes: Codes
    values: Sequence[Any]
    merged: bool = False

    @property
    def missing(self) -> int | None:
        """Code of the missing value, if it occurs."""
        return next((code for code, value in enumerate(self.values) if value is None), None)


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN or another library's missing value."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:  # pandas.NA has no truth value
        return True


def sample_of(values: Iterable[Any], n: int = 1000) -> list[Any]:
    """Up to `n` of some different values, whatever their order: those that sort first, and those that sort last."""
    every = list(values)
    if len(every) <= n:
        return every
    try:
        return [*nsmallest(n // 2, every), *nlargest(n // 2, every)]
    except TypeError:  # values of several types
        return [*nsmallest(n // 2, every, key=repr), *nlargest(n // 2, every, key=repr)]


def encode_distinct(
    codes: Array, values: Iterable[Any], *, na: MissingSpellings = NO_SPELLINGS, trim: bool = False
) -> Column:
    """Decide which of the distinct values are equal, and merge their codes."""
    values = list(values)
    if len(values) >= _MANY_VALUES:
        check_memory_used("Coding the columns")
    kinds = set(map(type, values))
    if kinds == {bool} or (kinds == {int} and na.numbers.isdisjoint(values)):
        return Column(smallest_codes(codes, len(values)), values)
    if kinds == {str}:
        # the common case, without a loop: there may be thousands of columns with thousands of values
        values = list(map(str.strip, values)) if trim else values
        texts = set(values)
    else:
        values = [value.strip() if trim and isinstance(value, str) else value for value in values]
        texts = {value for value in values if isinstance(value, str)}
    absent = na.among(texts)
    if trim and "" in texts:
        absent.add("")
    if len(texts) == len(values) and not absent:
        return Column(smallest_codes(codes, len(values)), values)
    merged: list[Any] = []
    times = set[str]()
    for value in values:
        if isinstance(value, str):
            value = None if value in absent else value
        elif is_missing(value) or na.has(value):
            value = None
        else:
            value = spelled_time(value.item() if isinstance(value, np.generic) else value)
            if isinstance(value, str):
                times.add(value)
        merged.append(value)
    if not times.isdisjoint(texts):
        both = min(times & texts)
        raise TableError(f"A column holds {both!r} as a time and as text. Write all of it in one type.")
    return recode(codes, merged)


def recode(codes: Array, values: Iterable[Any]) -> Column:
    """Merge codes whose values are equal."""
    places: dict[Any, int] = {}
    lut = np.array([places.setdefault(value, len(places)) for value in values], np.uint32)
    merged = len(places) < len(lut)
    return Column(smallest_codes(lut[codes] if merged else codes, len(places)), list(places), merged)


def take_rows(column: Column, rows: NDArray[np.intp]) -> Column:
    """Keep some rows of a column, and only the values that still occur."""
    codes = np.empty(len(rows), column.codes.dtype)
    used = np.zeros(len(column.values), np.bool_)
    _take(column.codes, rows, codes, used)
    if used.all():
        return Column(codes, column.values, column.merged)
    lut = (np.cumsum(used) - 1).astype(np.uint32)
    values = [value for value, occurs in zip(column.values, used, strict=True) if occurs]
    return Column(smallest_codes(lut[codes], len(values)), values, column.merged)


@jit
def _take(codes: Codes, rows: NDArray[np.intp], taken: Codes, used: NDArray[np.bool_]) -> None:
    for i in range(np.uint64(len(rows))):
        code = codes[rows[i]]
        taken[i] = code
        used[code] = True


def joint_codes(columns: Sequence[Column]) -> tuple[Index, tuple[list[Any], ...]]:
    """Combine several columns: a code for each combination that occurs, and its value in each column."""
    joint = columns[0].codes.astype(np.uint32)
    first = first_rows(joint, len(columns[0].values))
    for column in columns[1:]:
        keys = joint.astype(np.uint64) * np.uint64(len(column.values)) + column.codes
        joint, first = factorized(keys)
    return joint, tuple([column.values[c] for c in column.codes[first]] for column in columns)


def concat_columns(parts: Sequence[Column]) -> Column:
    """Concatenate columns."""
    places: dict[Any, int] = {}
    luts = [np.array([places.setdefault(value, len(places)) for value in part.values], np.uint32) for part in parts]
    taken = [smallest_codes(lut, len(places))[part.codes] for lut, part in zip(luts, parts, strict=True)]
    return Column(np.concatenate(taken), list(places), merged=True)


def encode_objects(values: Iterable[Any], na: MissingSpellings = NO_SPELLINGS, *, name: str = "") -> Column:
    """Code values of any hashable types, equal if Python says so."""
    seen: dict[Any, int] = {}
    try:
        codes = np.fromiter((seen.setdefault(v, len(seen)) for v in values), np.uint32)
    except TypeError as error:
        raise TableError(
            f"Column {name!r} holds values that cannot be compared ({error}). Turn them into text first."
        ) from None
    return encode_distinct(codes, seen, na=na)


def first_rows(codes: Array, n_values: int) -> Index:
    """The row where each code appears first."""
    first = np.empty(n_values, np.uint32)
    first[codes[::-1]] = np.arange(len(codes), dtype=np.uint32)[::-1]
    return first


def _is_number(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "biu" or (dtype.kind == "f" and dtype.itemsize <= 8)


def encode_values(values: Array, na: MissingSpellings = NO_SPELLINGS, *, name: str = "") -> Column:
    """Code a 1-D numpy array: numbers by value (NaN equals NaN, -0.0 equals 0.0), the rest by equality."""
    if _is_number(values.dtype):
        return _encode_present(values[None, :], na, np.zeros(1, np.uint64))[0]
    if values.dtype.kind in "mM":
        dtype = values.dtype.newbyteorder("=")
        column = encode_values(values.astype(dtype).view(np.int64))
        return Column(column.codes, spelled_times(column.values, dtype))
    if values.dtype.kind == "V":
        raise TableError(f"Column {name!r} has the structured type {values.dtype}. Pass plain columns.")
    return encode_objects(values.tolist(), na, name=name)


def encode_matrix(matrix: Array, columns: Sequence[int], na: MissingSpellings = NO_SPELLINGS) -> Iterator[Column]:
    """Code columns of a 2-D array, blocks of them in threads, so that little memory is needed beside the codes."""
    if not _is_number(matrix.dtype):
        yield from in_threads(lambda j: encode_values(matrix[:, j], na, name=f"x{j}"), columns, len(matrix))
        return
    # a row of a block in C order spans at least some cache lines, and there is a block for each thread
    width = min(max(-(-len(columns) // (2 * usable_cores())), 64), _COLUMNS_PER_BLOCK)
    blocks = [np.array(columns[low : low + width], np.uint64) for low in range(0, len(columns), width)]
    for block in in_threads(partial(_encode_present, matrix.T, na), blocks, len(matrix) * width):
        yield from block


def _encode_present(columns: Array, na: MissingSpellings, chosen: Places) -> list[Column]:
    """Code some of the columns, given as the rows of a matrix of numbers; those that mean missing become None."""
    coded = _encode_numbers(columns, chosen)
    if not na.numbers or columns.dtype.kind == "b":
        return coded
    absent = na.floats(columns.dtype) if columns.dtype.kind == "f" else na.numbers
    return [column if absent.isdisjoint(column.values) else _without(column, absent) for column in coded]


def _without(column: Column, absent: Set[Any]) -> Column:
    return recode(column.codes, (None if value in absent else value for value in column.values))


def _encode_numbers(columns: Array, chosen: Places) -> list[Column]:
    """Code some of the columns: in a byte if they are whole numbers close together, else by hashing."""
    dtype = columns.dtype
    if not columns.shape[1]:
        return [Column(np.empty(0, np.uint8), []) for _ in chosen]
    if dtype.kind == "b":
        as_bytes = _encode_numbers(columns.view(np.uint8), chosen)
        return [Column(column.codes, list(map(bool, column.values))) for column in as_bytes]
    is_half = dtype.kind == "f" and dtype.itemsize == 2
    if is_half or not dtype.isnative:
        copied = columns[chosen].astype(np.float32 if is_half else dtype.newbyteorder("="))
        return _encode_numbers(copied, np.arange(len(chosen), dtype=np.uint64))
    tile = _tile(columns)
    coded, is_wide = _encode_narrow(columns, chosen, tile)
    wide_places = np.flatnonzero(is_wide)
    step = max(1, _BYTES_PER_BLOCK // (8 * columns.shape[1]))
    for begin in range(0, len(wide_places), step):
        places = wide_places[begin : begin + step]
        for place, column in zip(places, _hash_numbers(columns, chosen[places], tile), strict=True):
            coded[place] = column
    return coded


def _tile(columns: Array) -> np.uint64:
    """How many rows are read at a time, by how the matrix lies in memory."""
    if columns.strides[1] == columns.dtype.itemsize:
        return np.uint64(_COLUMN_TILE)
    return np.uint64(_FLOAT_ROW_TILE if columns.dtype.kind == "f" else _ROW_TILE)


def _encode_narrow(columns: Array, chosen: Places, tile: np.uint64) -> tuple[list[Column], NDArray[np.bool_]]:
    """Code the columns as far as they fit into a byte, and say which do not."""
    dtype = columns.dtype
    n_rows = columns.shape[1]
    lowest, is_wide = _windows(columns[chosen, :_SAMPLE_ROWS])
    codes = np.empty((len(chosen), n_rows), np.uint8)
    occurs = np.zeros((len(chosen), 256), np.bool_)
    narrow = narrow_floats if dtype.kind == "f" else narrow_integers
    narrow(columns, chosen, lowest, codes, is_wide, tile)
    dense(codes, is_wide, occurs)
    coded = [Column(codes[i], _values(np.flatnonzero(occurs[i]), lowest[i], dtype)) for i in range(len(chosen))]
    return coded, is_wide


def _windows(sample: Array) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """The start of the range of 256 values that each column may fit, by a sample, and the columns that do not fit."""
    dtype = sample.dtype
    if dtype.itemsize == 1:  # numbers that begin with 0 are dense sooner; others fit too
        low = np.where(sample.min(axis=1) < 0, np.iinfo(dtype).min, 0)
        return _as_words(low), np.zeros(len(sample), np.bool_)
    if dtype.kind == "f":
        smallest = _zero_if_nan(np.fmin.reduce(sample, axis=1))
        largest = _zero_if_nan(np.fmax.reduce(sample, axis=1))
        are_whole = ((np.floor(sample) == sample) | np.isnan(sample)).all(axis=1)
        is_wide = ~are_whole | (np.maximum(-smallest, largest) > _MAX_WHOLE_FLOAT)
        lowest = _as_words(np.where(is_wide, 0, smallest))
        highest = _as_words(np.where(is_wide, 0, largest))
    else:
        lowest = _as_words(sample.min(axis=1))
        highest = _as_words(sample.max(axis=1))
        is_wide = np.zeros(len(sample), np.bool_)
    spare = np.uint64(254) - (highest - lowest)
    starts = np.where((lowest <= highest) & (highest < 255), np.uint64(0), lowest - spare // np.uint64(2))
    return starts, is_wide | (highest - lowest > np.uint64(254))


def _zero_if_nan(numbers: Array) -> NDArray[np.float64]:
    return np.where(np.isnan(numbers), 0, numbers).astype(np.float64)


def _as_words(numbers: Array) -> NDArray[np.uint64]:
    """Whole numbers as the words of 64 bits in which differences wrap around."""
    return numbers.astype(np.int64).view(np.uint64)


def _values(above: NDArray[np.intp], low: np.uint64, dtype: np.dtype[Any]) -> list[Any]:
    """Values of the bytes that occur."""
    whole = above.astype(np.uint64) + low
    signed = whole if dtype.kind == "u" else whole.view(np.int64)
    values: list[Any] = (signed.astype(np.float64) if dtype.kind == "f" else signed).tolist()
    if dtype.kind == "f" and values and above[-1] == 255:
        values[-1] = None
    return values


def _hash_numbers(columns: Array, chosen: Places, tile: np.uint64) -> Iterator[Column]:
    kind = columns.dtype.kind
    numbers: Array = np.empty((len(chosen), columns.shape[1]), np.float64 if kind == "f" else np.uint64)
    gather(columns, chosen, numbers, tile)
    if kind == "f":
        numbers += 0.0  # -0.0 + 0.0 is 0.0
        numbers[np.isnan(numbers)] = np.nan  # canonical
    for row in numbers:
        codes, first = factorized(row.view(np.uint64))
        if len(first) >= _MANY_VALUES:
            check_memory_used("Coding the columns")
        distinct = row[first]
        values = (distinct.view(np.int64) if kind == "i" else distinct).tolist()
        for place in np.flatnonzero(distinct != distinct):
            values[place] = None
        yield Column(smallest_codes(codes, len(values)), values)
