"""Granules on disk: Parquet with a column per attribute and decision, and one of counts; the roles are metadata."""

from __future__ import annotations

import json
import os
from ast import literal_eval
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plar.coding.codes import Column, encode_distinct
from plar.coding.fingerprint import fingerprint_of
from plar.coding.series import encode_series
from plar.coding.threads import check_threads
from plar.errors import TableError, reason_of
from plar.files import check_name, checksum, replacing

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Stored", "holds_granules", "read_granules", "write_granules"]

_KEY = "plar"
#: files of version 1 have no checksum, those of version 2 one of the file's bytes, those of 3 one of what they hold,
#: where times are no text yet
_VERSION = 4
#: values of columns of several types are written with their type before them
_SPELLED: dict[str, Callable[[str], Any]] = {
    "int": int,
    "float": float,
    "bool": "True".__eq__,
    "str": literal_eval,
    "bytes": literal_eval,
    "tuple": literal_eval,
    "complex": complex,
    "Decimal": lambda text: Decimal(text[9:-2]),
}


class Stored(NamedTuple):
    """What a granule file holds.

    Parameters
    ----------
    conditions, decision : sequence of (name, Column)
    counts : (n,) array of int64
    names : sequence of str
        All columns of the table.
    cuts : mapping of str to tuple of float
        Cut points of those cut into bins.
    text : bool
        Whether the values are as written in a text file.
    """

    conditions: Sequence[tuple[str, Column]]
    decision: Sequence[tuple[str, Column]]
    counts: NDArray[np.int64]
    names: Sequence[str]
    cuts: Mapping[str, tuple[float, ...]]
    text: bool


def _series(name: str, values: Sequence[Any]) -> tuple[pl.Series, bool]:
    """Distinct values as a Series, of one type where polars has it; else as text, which is then said."""
    import polars as pl

    polars_says = pl.exceptions.PolarsError, pl.exceptions.PanicException
    with suppress(TypeError, ValueError, ArithmeticError, RuntimeError, *polars_says):
        series = pl.Series(name, list(values), strict=True)
        if series.dtype != pl.Object and not series.dtype.is_nested() and series.to_list() == list(values):
            return series, False
    if all(v is None or (type(v) in (int, float) and _is_exact(v)) for v in values):
        return pl.Series(name, [None if v is None else float(v) for v in values], dtype=pl.Float64), False
    return pl.Series(name, [_spelling(name, value) for value in values], dtype=pl.String), True


def _spelling(name: str, value: Any) -> str | None:
    """A value with its type before it."""
    if value is None:
        return None
    kind = type(value).__name__
    with suppress(KeyError, ValueError, SyntaxError, ArithmeticError, RecursionError):
        if _SPELLED[kind](repr(value)) == value:
            return f"{kind} {value!r}"
    raise TableError(f"Column {name!r} holds values of the type {kind}, which no file can. Turn them into text first.")


def _is_exact(number: float) -> bool:
    """Whether a number stays what it is as a float."""
    with suppress(OverflowError):
        return float(number) == number
    return False


def _spelled(column: Column) -> Column:
    """Values as they were before they were spelled; of types that have no spelling of their own, as written."""

    def value(written: str | None) -> Any:
        kind, _, text = (written or "").partition(" ")
        return written if written is None or kind not in _SPELLED else _SPELLED[kind](text)

    return encode_distinct(column.codes, map(value, column.values), na=())


def write_granules(path: str | os.PathLike[str], stored: Stored) -> None:
    """Write granules, whole or not at all."""
    import polars as pl

    check_threads()
    columns, count = [*stored.conditions, *stored.decision], "count"
    while count in dict(columns):
        count += "_"
    try:
        values = [_series(name, column.values) for name, column in columns]
    except UnicodeEncodeError:
        raise TableError("A name holds half a character (a lone surrogate), which no file can. Rename it.") from None
    roles = {
        "version": _VERSION,
        "conditions": [name for name, _ in stored.conditions],
        "decision": [name for name, _ in stored.decision],
        "count": count,
        "names": list(stored.names),
        "cuts": dict(stored.cuts),
        "text": stored.text,
        "spelled": [name for (name, _), (_, spelled) in zip(columns, values, strict=True) if spelled],
    }
    coded = []
    for (name, column), (series, spelled) in zip(columns, values, strict=True):
        found = encode_series(series)  # as it will be read
        coded.append((name, Column(found.codes[column.codes], (_spelled(found) if spelled else found).values)))
    roles["checksum"] = _seal(roles, coded, stored.counts)
    series_of = zip((series for series, _ in values), (column.codes for _, column in columns), strict=True)
    frame = pl.DataFrame([*(series.gather(codes) for series, codes in series_of), pl.Series(count, stored.counts)])
    with replacing(path) as temporary:
        check_name(temporary)
        frame.write_parquet(temporary, metadata={_KEY: json.dumps(roles)})


def _seal(roles: Mapping[str, Any], columns: Sequence[tuple[str, Column]], counts: NDArray[np.int64]) -> str:
    """Checksum of what a file holds: the roles, and the rows in any order."""
    rows = fingerprint_of([(column.codes, [(name, column.values)]) for name, column in columns], counts)
    said = {key: value for key, value in roles.items() if key != "checksum"}
    return checksum(json.dumps([said, list(rows), len(counts)], sort_keys=True).encode())


def read_granules(path: Path) -> Stored | None:
    """What `write_granules` wrote; None for any other file."""
    import polars as pl

    written = _metadata(path)
    if written is None:
        return None
    try:
        roles = json.loads(written)
        if roles["version"] not in range(1, _VERSION + 1):
            raise ValueError(f"version {roles['version']}, this plar knows 1 to {_VERSION}")
        stored = _stored(pl.read_parquet(path, glob=False, hive_partitioning=False), roles)
        if roles["version"] == _VERSION:
            columns = [*stored.conditions, *stored.decision]
            if roles["checksum"] != _seal(roles, columns, stored.counts):
                raise ValueError("it is not as it was written")
        return stored
    except (
        *(OSError, KeyError, TypeError, ValueError, AttributeError, SyntaxError, RecursionError, ArithmeticError),
        MemoryError,  # of Python's parser, whose room is small
        pl.exceptions.PolarsError,
        pl.exceptions.PanicException,
    ) as error:
        raise TableError(f"The granule file {str(path)!r} is damaged ({reason_of(error)}). Make it again.") from None


def _stored(frame: pl.DataFrame, roles: Mapping[str, Any]) -> Stored:
    given, listed = [*roles["conditions"], *roles["decision"]], roles.get("names", ())
    if not all(isinstance(name, str) for name in (*given, *listed, roles["count"])) or len({*given}) < len(given):
        raise ValueError("its columns are not told by their names")
    counted = frame[roles["count"]]
    if not counted.dtype.is_integer() or not len(counted) or counted.null_count() or int(counted.min() or 0) < 1:
        raise ValueError("counts below 1")
    spelled = set(roles.get("spelled", ()))
    conditions, decision = (
        [(name, _coded(frame[name], name in spelled)) for name in roles[role]] for role in ("conditions", "decision")
    )
    if not decision:
        raise ValueError("no decision")
    cuts = {name: tuple(map(float, points)) for name, points in roles.get("cuts", {}).items()}
    counts = counted.cast(int).to_numpy().astype(np.int64)
    return Stored(conditions, decision, counts, tuple(listed), cuts, roles.get("text") is True)


def _coded(series: pl.Series, spelled: bool) -> Column:
    column = encode_series(series)
    return _spelled(column) if spelled else column


def holds_granules(path: Path) -> bool:
    """Whether `write_granules` wrote a file."""
    return _metadata(path) is not None


def _metadata(path: Path) -> str | None:
    """What `write_granules` notes in a file; None for any other file."""
    if not _is_parquet(path):
        return None
    import polars as pl  # which takes as long as all of a short run, and text does not need it

    check_threads()
    check_name(path)
    try:
        return pl.read_parquet_metadata(path).get(_KEY)
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        if path.suffix.lower() != ".parquet":  # it may be anything, which is said where it is read
            return None
        raise TableError(f"Cannot read the Parquet file {str(path)!r}: it is damaged. Make it again.") from None


def _is_parquet(path: Path) -> bool:
    if not path.is_file():  # nor opened: reading a pipe would take from it
        return False
    with suppress(OSError), path.open("rb") as file:
        return file.read(4) == b"PAR1"
    return False
