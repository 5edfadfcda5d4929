"""Dictionary codes: one column of values → dense codes in the smallest type, and the value of each code.

Equality is settled here, on the few distinct values and never cell by cell: trimming, missing values and
their spellings map a dictionary, and codes that became equal are merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plar.errors import TableError
from plar.jit import jit
from plar.limits import check_memory
from plar.partition import Array, Codes, Index, smallest_codes

__all__ = [
    "Column",
    "combine",
    "encode_distinct",
    "encode_matrix",
    "encode_objects",
    "encode_values",
    "factorize",
    "factorize_bits",
    "mix",
    "take_codes",
    "union",
]

_LUT = 1 << 16  # ranges up to here are coded through a table, wider ones by hashing
_MANY = 1 << 14  # from here on the values take memory that counts
_BLOCK_BYTES = 1 << 24  # columns of a matrix are copied and coded this much at a time


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One coded column: ``values[codes[i]]`` is the value of row i, None when it is missing.

    Parameters
    ----------
    codes : (n,) array
        Dense: every code below ``len(values)`` occurs.
    values : sequence
        The distinct values.
    merged : bool
        Whether values that differ in the source became equal here (trimmed, or spellings of missing), so that
        rows that were distinct may not be any more.
    """

    codes: Codes
    values: Sequence[Any]
    merged: bool = False

    @property
    def missing(self) -> int | None:
        """Code of the missing value, if it occurs."""
        return next((code for code, value in enumerate(self.values) if value is None), None)


@jit
def _lut16(values: NDArray[np.uint16], lut: Index, codes: Index, first: Index) -> int:
    # lut, zeroed, holds code + 1 of the values seen
    made = np.uint32(0)
    for i in range(np.uint64(len(values))):
        v = np.uint64(values[i])
        if lut[v] == 0:
            first[made] = i
            made += np.uint32(1)
            lut[v] = made
        codes[i] = lut[v] - np.uint32(1)
    return int(made)


@jit
def factorize(keys: NDArray[np.uint64], codes: Index) -> Index:
    """Write the code of every key, in order of appearance, and return the row where each was seen first."""
    # Open addressing; a slot holds code + 1.
    one = np.uint64(1)
    size = np.uint64(1024)
    slots = np.zeros(size, np.uint32)
    first = np.empty(512, np.uint32)
    made = np.uint64(0)
    for i in range(np.uint64(len(keys))):
        key = keys[i]
        at = mix(key) & (size - one)
        while slots[at] != 0 and keys[first[slots[at] - np.uint32(1)]] != key:
            at = (at + one) & (size - one)
        if slots[at] == 0:
            if made == np.uint64(len(first)):
                size *= np.uint64(4)
                slots = np.zeros(size, np.uint32)
                grown = np.empty(size // np.uint64(2), np.uint32)
                for c in range(made):
                    grown[c] = first[c]
                    at = mix(keys[first[c]]) & (size - one)
                    while slots[at] != 0:
                        at = (at + one) & (size - one)
                    slots[at] = c + one
                first = grown
                at = mix(key) & (size - one)
                while slots[at] != 0:
                    at = (at + one) & (size - one)
            first[made] = i
            made += one
            slots[at] = made
        codes[i] = slots[at] - np.uint32(1)
    return first[:made].copy()


@jit
def mix(key: np.uint64) -> np.uint64:
    """Scatter the bits of a key, by the finaliser of MurmurHash3: neighbours land far apart."""
    key ^= key >> np.uint64(33)
    key *= np.uint64(0xFF51AFD7ED558CCD)
    key ^= key >> np.uint64(33)
    key *= np.uint64(0xC4CEB9FE1A85EC53)
    return key ^ (key >> np.uint64(33))


@jit
def _transpose8(block: NDArray[np.uint8], out: NDArray[np.uint8]) -> None:
    # tiles of 64 × 64 bytes: one cache line a row on either side, all in L1
    tile = np.uint64(64)
    n, k = np.uint64(block.shape[0]), np.uint64(block.shape[1])
    for i0 in range(np.uint64(0), n, tile):
        i1 = min(i0 + tile, n)
        for j0 in range(np.uint64(0), k, tile):
            for j in range(j0, min(j0 + tile, k)):
                for i in range(i0, i1):
                    out[j, i] = block[i, j]


@jit
def _recode8(columns: NDArray[np.uint8], seen: NDArray[np.uint8]) -> None:
    # Marks the bytes that each column has and makes its codes dense, in place.
    n = np.uint64(columns.shape[1])
    lut = np.empty(256, np.uint8)
    for j in range(np.uint64(columns.shape[0])):
        column = columns[j]
        top = np.uint8(0)
        for i in range(n):
            top = max(top, column[i])
        if top < 64:  # one bit per value: the compiler makes it SIMD
            bits = np.uint64(0)
            for i in range(n):
                bits |= np.uint64(1) << np.uint64(column[i])
            for v in range(np.uint64(64)):
                seen[j, v] = (bits >> v) & np.uint64(1)
        else:
            for i in range(n):
                seen[j, column[i]] = 1
        made = np.uint64(0)
        for v in range(np.uint64(256)):
            lut[v] = made
            made += np.uint64(seen[j, v])
        if made <= np.uint64(top):
            for i in range(n):
                column[i] = lut[column[i]]


def factorize_bits(values: Array) -> tuple[Index, Index]:
    """Codes and first rows of a fixed-width numeric array, equal when the bits are."""
    values = np.ascontiguousarray(values, values.dtype.newbyteorder("="))  # views below take native order
    codes = np.empty(len(values), np.uint32)
    if values.dtype.kind in "iu" and len(values):
        low, high = int(values.min()), int(values.max())
        if high - low < _LUT:
            # unsigned differences wrap around to the right value whatever the signs
            unsigned = values.view(f"u{values.dtype.itemsize}")
            short = (unsigned - np.array(low, values.dtype).view(unsigned.dtype)).astype(np.uint16)
            first = np.empty(high - low + 1, np.uint32)
            made = _lut16(short, np.zeros(_LUT, np.uint32), codes, first)
            return codes, first[:made]
    if values.dtype.kind == "f":
        wide = values.astype(np.float64) + 0.0  # -0.0 + 0.0 is 0.0
        keys = wide.view(np.uint64)
    else:
        keys = values.astype(np.int64 if values.dtype.kind == "i" else np.uint64).view(np.uint64)
    return codes, factorize(keys, codes)


def _is_missing(value: Any) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:  # pandas.NA has no truth value
        return True


def encode_distinct(codes: Array, values: Iterable[Any], *, na: Iterable[str], trim: bool = False) -> Column:
    """Settle what is equal among the distinct values, and merge the codes of equal ones.

    Examples
    --------
    >>> column = encode_distinct(np.array([0, 1, 2]), ["a", " a", "?"], na=["?"], trim=True)
    >>> column.codes.tolist(), column.values
    ([0, 0, 1], ['a', None])
    """
    na, values = frozenset(na), list(values)
    if len(values) >= _MANY:
        check_memory("Coding the columns")
    kinds = set(map(type, values))
    if kinds == {str}:
        # the common case without a loop: thousands of columns may have thousands of values each
        values = list(map(str.strip, values)) if trim else values
        seen = set(values)
        if len(seen) == len(values) and seen.isdisjoint(na) and not (trim and "" in seen):
            return Column(smallest_codes(codes, len(values)), values)
    elif kinds in ({int}, {bool}):
        return Column(smallest_codes(codes, len(values)), values)
    merged: dict[Any, int] = {}
    lut = []
    for value in values:
        if isinstance(value, str):
            value = value.strip() if trim else value
            if value in na or (trim and not value):
                value = None
        elif _is_missing(value):
            value = None
        lut.append(merged.setdefault(value, len(merged)))
    if len(merged) < len(values):
        codes = np.array(lut, np.uint32)[codes]
    return Column(smallest_codes(codes, len(merged)), list(merged), len(merged) < len(values))


def take_codes(column: Column, codes: Codes) -> Column:
    """Keep some rows of a column, given by their codes, and only the values that still occur."""
    used = np.bincount(codes, minlength=len(column.values)) > 0
    if used.all():
        return Column(codes, column.values, column.merged)
    lut = (np.cumsum(used) - 1).astype(np.uint32)
    values = [value for value, kept in zip(column.values, used, strict=True) if kept]
    return Column(smallest_codes(lut[codes], len(values)), values, column.merged)


def combine(columns: Sequence[Column]) -> tuple[Index, tuple[list[Any], ...]]:
    """Take several columns as one: a code for each combination that occurs, and its value in each column.

    Examples
    --------
    >>> a = encode_values(np.array([0, 0, 1]))
    >>> b = encode_values(np.array(["x", "y", "x"]))
    >>> codes, values = combine([a, b])
    >>> codes.tolist(), values
    ([0, 1, 2], ([0, 0, 1], ['x', 'y', 'x']))
    """
    joint = columns[0].codes.astype(np.uint32)
    first = np.empty(len(columns[0].values), np.uint32)
    rows = np.arange(len(joint), dtype=np.uint32)
    first[joint[::-1]] = rows[::-1]
    for column in columns[1:]:
        keys = joint.astype(np.uint64) * np.uint64(len(column.values)) + column.codes
        joint = np.empty(len(keys), np.uint32)
        first = factorize(keys, joint)
    return joint, tuple([column.values[c] for c in column.codes[first]] for column in columns)


def union(a: Codes, a_values: Sequence[Any], b: Codes, b_values: Sequence[Any]) -> tuple[Codes, list[Any]]:
    """Put two coded columns under each other, over the union of their values.

    Examples
    --------
    >>> codes, values = union(np.array([0, 1]), ["x", "y"], np.array([0, 1]), ["y", "z"])
    >>> codes.tolist(), values
    ([0, 1, 1, 2], ['x', 'y', 'z'])
    """
    places = {value: code for code, value in enumerate(a_values)}
    lut = np.array([places.setdefault(value, len(places)) for value in b_values], np.uint32)
    return smallest_codes(np.concatenate([a.astype(np.uint32), lut[b]]), len(places)), list(places)


def encode_objects(values: Iterable[Any], na: Iterable[str] = (), *, name: str = "") -> Column:
    """Code values of any hashable types, equal when Python says so.

    Examples
    --------
    >>> column = encode_objects([1, "a", 1.0, None])
    >>> column.codes.tolist(), column.values
    ([0, 1, 0, 2], [1, 'a', None])
    """
    seen: dict[Any, int] = {}
    try:
        codes = np.fromiter((seen.setdefault(v, len(seen)) for v in values), np.uint32)
    except TypeError as error:
        raise TableError(
            f"Column {name!r} holds values that cannot be compared ({error}). Turn them into text first."
        ) from None
    return encode_distinct(codes, seen, na=frozenset(na))


def encode_values(values: Array, na: Iterable[str] = (), *, name: str = "") -> Column:
    """Code a 1-D numpy array: numbers by value (NaN equals NaN, -0.0 equals 0.0), the rest by equality.

    Examples
    --------
    >>> column = encode_values(np.array([0.5, np.nan, 0.5]))
    >>> column.codes.tolist(), column.values
    ([0, 1, 0], [0.5, None])
    """
    kind = values.dtype.kind
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    if kind == "b":
        values, kind = values.view(np.uint8), "u"
        column = encode_values(values)
        return Column(column.codes, [bool(v) for v in column.values])
    if kind in "mM":
        codes, first = factorize_bits(values.view(np.int64))
        distinct = values[first]
        named = [None if np.isnat(v) else str(v) for v in distinct]
        return encode_distinct(codes, named, na=frozenset())
    if kind in "iu" or (kind == "f" and values.dtype.itemsize <= 8):
        codes, first = factorize_bits(values)
        return encode_distinct(codes, (values[first] + 0 if kind == "f" else values[first]).tolist(), na=frozenset())
    if kind == "V":
        raise TableError(f"Column {name!r} has the structured type {values.dtype}. Pass plain columns.")
    return encode_objects(values.tolist(), na, name=name)


def _encode_bytes(block: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Code a block of columns of bytes; also says which bytes each column has."""
    n, k = block.shape
    seen, coded = np.zeros((k, 256), np.uint8), np.empty((k, n), np.uint8)
    if block.strides[0] == 1:
        coded[:] = block.T
    else:
        _transpose8(block, coded)
    _recode8(coded, seen)
    return coded, seen


def encode_matrix(matrix: Array, columns: Sequence[int], na: Iterable[str] = ()) -> Iterator[Column]:
    """Code columns of a 2-D array, a block at a time, so that little is held beside the codes.

    Examples
    --------
    >>> [c.codes.tolist() for c in encode_matrix(np.array([[7, 1], [9, 1]]), [0, 1])]
    [[0, 1], [0, 0]]
    """
    n = len(matrix)
    small = matrix.dtype.itemsize == 1 and matrix.dtype.kind in "biu"
    width = 512 if small else max(1, _BLOCK_BYTES // max(1, n * matrix.dtype.itemsize))
    for low in range(0, len(columns), width):
        chosen = list(columns[low : low + width])
        adjacent = chosen == list(range(chosen[0], chosen[0] + len(chosen)))
        block = matrix[:, chosen[0] : chosen[0] + len(chosen)] if adjacent else matrix[:, chosen]
        if small:
            coded, seen = _encode_bytes(block.view(np.uint8))
            for codes, present in zip(coded, seen, strict=True):
                values = np.flatnonzero(present).astype(np.uint8).view(matrix.dtype)
                yield Column(codes, values.tolist())
        else:
            turned = np.ascontiguousarray(block.T)
            for j, values in zip(chosen, turned, strict=True):
                yield encode_values(values, na, name=f"x{j}")
