"""A fingerprint of rows with counts: it depends on the values, not on the order of the rows, their codes or place.

Every value has a hash by its column, a row the sum of them, and the whole the sum over the rows of their mixed sums
times their counts. So parts of a table have fingerprints that add up, and equal rows may be counted anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from plar.grouping.factorize import mix
from plar.grouping.partition import Codes
from plar.runtime.jit import jit

#: two sums modulo 2^64
Fingerprint: TypeAlias = tuple[int, int]

#: codes, and the columns that share them: each by its name, with its values by code
CodedColumn: TypeAlias = tuple[Codes, Sequence[tuple[str, Sequence[Any]]]]

_Hashes: TypeAlias = NDArray[np.uint64]
_MODULUS = 1 << 64


def add_fingerprints(parts: Iterable[Fingerprint]) -> Fingerprint:
    """The fingerprint of all parts of a table."""
    first_total = 0
    second_total = 0
    for first, second in parts:
        first_total += first
        second_total += second
    return first_total % _MODULUS, second_total % _MODULUS


def fingerprint_of(columns: Iterable[CodedColumn], counts: NDArray[np.int64]) -> Fingerprint:
    """Fingerprint of rows with their counts."""
    sums = row_hashes(columns, len(counts))
    total = np.zeros(2, np.uint64)
    _add_rows(sums, counts, total)
    return int(total[0]), int(total[1])


def row_hashes(columns: Iterable[CodedColumn], n_rows: int) -> _Hashes:
    """Two hashes of every row, which follow its values alone."""
    sums = np.zeros((n_rows, 2), np.uint64)
    for codes, named_values in columns:
        hashes = [_value_hashes(name, values) for name, values in named_values]
        _add_hashes(codes, sum(hashes[1:], start=hashes[0]), sums)
    return sums


@jit
def _add_hashes(codes: Codes, hashes: _Hashes, sums: _Hashes) -> None:
    for i in range(np.uint64(len(codes))):
        code = codes[i]
        sums[i, 0] += hashes[code, 0]
        sums[i, 1] += hashes[code, 1]


@jit
def _add_rows(sums: _Hashes, counts: NDArray[np.int64], total: _Hashes) -> None:
    for i in range(np.uint64(len(counts))):
        count = np.uint64(counts[i])
        total[0] += mix(sums[i, 0]) * count
        total[1] += mix(sums[i, 1]) * count


def _value_hashes(name: str, values: Sequence[Any]) -> _Hashes:
    key = blake2b(name.encode("utf-8", "surrogatepass")).digest()
    digests = b"".join(blake2b(spell(value), digest_size=16, key=key).digest() for value in values)
    return np.frombuffer(digests, "<u8").astype(np.uint64).reshape(-1, 2)


def spell(value: Any) -> bytes:
    """Spell a value; values that Python calls equal are spelled alike, whatever their types.

    >>> spell("a"), spell(2), spell(2.0), spell(None)
    (b'sa', b'n2/1', b'n2/1', b'')
    """
    if value is None:
        return b""
    if isinstance(value, str):
        return b"s" + value.encode("utf-8", "surrogatepass")
    if type(value) is int:  # which most values are, and the rest takes long
        return b"n%x/1" % value
    number = int(value) if isinstance(value, Integral) else value
    if hasattr(number, "as_integer_ratio"):
        try:
            return "n{:x}/{:x}".format(*number.as_integer_ratio()).encode()
        except (OverflowError, ValueError):  # infinite
            return f"n{float(number)}".encode()
    return f"{type(value).__name__} {value!r}".encode("utf-8", "surrogatepass")


def to_json(value: Any) -> Any:
    """A value as JSON can hold it; other types are spelled out.

    >>> import datetime
    >>> to_json(2), to_json("x"), to_json(datetime.date(2020, 1, 2))
    (2, 'x', {'spelled': 'date datetime.date(2020, 1, 2)'})
    """
    if value is None or type(value) in (str, int, bool) or (type(value) is float and math.isfinite(value)):
        return value
    return {"spelled": spell(value).decode("utf-8", "surrogatepass")}


def spell_json(value: Any) -> bytes:
    """The result of `spell` for a value, from that of `to_json`."""
    if isinstance(value, Mapping):
        return str(value.get("spelled")).encode("utf-8", "surrogatepass")
    return spell(value)


def fingerprint_text(sums: Fingerprint) -> str:
    """A fingerprint as text."""
    return "{:016x}{:016x}".format(*sums)
