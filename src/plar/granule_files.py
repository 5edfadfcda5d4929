"""Granules on disk: Parquet with a column per attribute and decision, and one of counts; the roles are metadata."""

from __future__ import annotations

import json
import os
from ast import literal_eval
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plar.coding.codes import Column
from plar.coding.fingerprint import fingerprint_of
from plar.coding.series import check_threads, encode_series
from plar.errors import TableError, reason_of
from plar.files import checksum, replacing

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Stored", "holds_granules", "read_granules", "write_granules"]

_KEY = "plar"
_VERSION = 3
#: values of columns of several types are written with their type before them; these are read back as they were
_SPELLED = ("int", "float", "bool", "str", "bytes")


class Stored(NamedTuple):
    """What a granule file holds; fields as of `Granules`."""

    conditions: Sequence[tuple[str, Column]]
    decision: Sequence[tuple[str, Column]]
    counts: NDArray[np.int64]
    names: Sequence[str]
    cuts: Mapping[str, tuple[float, ...]]
    text: bool


def _series(name: str, values: Sequence[Any]) -> tuple[pl.Series, bool]:
    """Distinct values as a Series, of one type where polars has it; else as text, which is then said."""
    import polars as pl

    with suppress(TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        series = pl.Series(name, list(values), strict=True)
        if series.dtype != pl.Object and not series.dtype.is_nested() and series.n_unique() == len(values):
            return series, False
    with suppress(OverflowError):
        numbers = [v if v is None else float(v) for v in values if v is None or type(v) in (int, float)]
        if numbers == list(values):  # whole ones stay what they are
            return pl.Series(name, numbers, dtype=pl.Float64), False
    written = [None if v is None else f"{type(v).__name__} {v!r}" for v in values]
    if len(set(written)) == len(values):
        return pl.Series(name, written, dtype=pl.String), True
    return pl.Series(name, [None if v is None else code for code, v in enumerate(values)], dtype=pl.Int64), False


def _coded(series: pl.Series, spelled: bool) -> Column:
    """Code what a file holds, values that are spelled as they were before; of other types as written."""

    def value(written: str | None) -> Any:
        kind, _, text = (written or "").partition(" ")
        return written if kind not in _SPELLED else float(text) if kind == "float" else literal_eval(text)

    column = encode_series(series)
    return Column(column.codes, [value(written) for written in column.values]) if spelled else column


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
    coded, series_of = [], []
    for (name, column), (series, spelled) in zip(columns, values, strict=True):
        found = _coded(series, spelled)  # as it will be read
        coded.append((name, Column(found.codes[column.codes], found.values)))
        series_of.append(series.gather(column.codes))
    roles["checksum"] = _seal(roles, coded, stored.counts)
    frame = pl.DataFrame([*series_of, pl.Series(count, stored.counts)])
    with replacing(path) as temporary:
        frame.write_parquet(temporary, metadata={_KEY: json.dumps(roles)})


def _seal(roles: Mapping[str, Any], columns: Sequence[tuple[str, Column]], counts: NDArray[np.int64]) -> str:
    """Checksum of what a file holds: the roles, and the rows in any order."""
    rows = fingerprint_of([(column.codes, [(name, column.values)]) for name, column in columns], counts)
    said = {key: value for key, value in roles.items() if key != "checksum"}
    return checksum(json.dumps([said, list(rows), len(counts)], sort_keys=True).encode())


def read_granules(path: Path) -> Stored:
    """What `write_granules` wrote."""
    import polars as pl

    try:
        roles = json.loads(_metadata(path) or "")
        if roles["version"] != _VERSION:
            raise ValueError(f"version {roles['version']}, this plar knows {_VERSION}")
        frame = pl.read_parquet(path, glob=False, hive_partitioning=False)
        counted = frame[roles["count"]].cast(int)
        if not len(counted) or counted.null_count() or int(counted.min() or 0) < 1:
            raise ValueError("counts below 1")
        conditions, decision = (
            [(name, _coded(frame[name], name in roles["spelled"])) for name in roles[role]]
            for role in ("conditions", "decision")
        )
        cuts = {name: tuple(map(float, points)) for name, points in roles["cuts"].items()}
        counts = counted.to_numpy().astype(np.int64)
        if roles["checksum"] != _seal(roles, [*conditions, *decision], counts):
            raise ValueError("it is not as it was written")
        return Stored(conditions, decision, counts, tuple(roles["names"]), cuts, roles["text"])
    except (
        *(OSError, KeyError, TypeError, ValueError, AttributeError, SyntaxError, RecursionError, OverflowError),
        pl.exceptions.PolarsError,
        pl.exceptions.PanicException,
    ) as error:
        raise TableError(f"The granule file {str(path)!r} is damaged ({reason_of(error)}). Make it again.") from None


def holds_granules(path: Path) -> bool:
    """Whether `write_granules` wrote a file."""
    return _metadata(path) is not None


def _metadata(path: Path) -> str | None:
    """What `write_granules` notes in a file; None for any other file."""
    if not path.is_file():  # nor opened: reading a pipe would take from it
        return None
    with suppress(OSError), path.open("rb") as file:
        if file.read(4) != b"PAR1":
            return None
    import polars as pl  # which takes as long as all of a short run, and text does not need it

    check_threads()
    try:
        return pl.read_parquet_metadata(path).get(_KEY)
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        if path.suffix.lower() != ".parquet":  # it may be anything, which is said where it is read
            return None
        raise TableError(f"Cannot read the Parquet file {str(path)!r}: it is damaged. Make it again.") from None
