"""Granules on disk, and how plar writes any file: beside its place, then renamed, so whole or not at all."""

from __future__ import annotations

import errno
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from plar.coding.codes import Column
from plar.coding.series import encode_series
from plar.errors import TableError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["read_columns", "replacing", "write_columns"]

_Columns: TypeAlias = tuple[list[tuple[str, Column]], list[tuple[str, Column]], NDArray[np.int64]]
_KEY = "plar"
_REFUSED = (errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EROFS)
_VERSION = 1


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary file in the folder of `path`; it takes the place of `path` if all goes well."""
    target = Path(path)
    if target.is_dir():
        raise TableError(f"Cannot write {str(target)!r}: it is a directory. Name a file in it.")
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
        os.close(handle)
    except OSError as error:
        raise TableError(f"Cannot write {str(target)!r}: {error.strerror}. Choose another place.") from None
    temporary = Path(name)
    try:
        yield temporary
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)  # mkstemp's files are the owner's alone
        temporary.replace(target)
    except OSError as error:
        if error.errno in _REFUSED:
            reason = error.strerror
            raise TableError(f"Cannot write {str(target)!r}: {reason}. Choose another place.") from None
        raise  # the disk is full or broken: not the user's input
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


def _series(name: str, values: Sequence[Any]) -> pl.Series:
    """Distinct values as a Series: of one type where polars has it, else as text, else as numbers."""
    import polars as pl

    with suppress(TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        series = pl.Series(name, list(values), strict=True)
        if series.dtype != pl.Object and not series.dtype.is_nested() and series.n_unique() == len(values):
            return series
    written = [None if v is None else f"{type(v).__name__} {v!r}" for v in values]
    if len(set(written)) == len(values):
        return pl.Series(name, written, dtype=pl.String)
    return pl.Series(name, [None if v is None else code for code, v in enumerate(values)], dtype=pl.Int64)


def write_columns(
    path: str | os.PathLike[str],
    conditions: Sequence[tuple[str, Column]],
    decision: Sequence[tuple[str, Column]],
    counts: NDArray[np.int64],
) -> None:
    """Write coded columns and counts as Parquet, with the roles as metadata."""
    import polars as pl

    columns, count = [*conditions, *decision], "count"
    while count in dict(columns):
        count += "_"
    roles = {
        "version": _VERSION,
        "conditions": [name for name, _ in conditions],
        "decision": [name for name, _ in decision],
        "count": count,
    }
    values = [_series(name, column.values).gather(column.codes) for name, column in columns]
    frame = pl.DataFrame([*values, pl.Series(count, counts)])
    with replacing(path) as temporary:
        frame.write_parquet(temporary, metadata={_KEY: json.dumps(roles)})


def read_columns(path: str | os.PathLike[str]) -> _Columns | None:
    """Conditions, decision and counts that `write_columns` wrote; None for any other file."""
    import polars as pl

    broken = (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException)
    place = Path(path)
    if not _is_parquet(place):
        return None
    try:
        written = pl.read_parquet_metadata(place).get(_KEY)
        if written is None:
            return None
        frame = pl.read_parquet(place, glob=False, hive_partitioning=False)
    except broken:
        raise TableError(f"The Parquet file {str(place)!r} is damaged. Make it again.") from None
    try:
        return _columns(frame, json.loads(written))
    except (KeyError, TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise TableError(f"The granule file {str(place)!r} is damaged ({error}). Make it again.") from None


def _is_parquet(path: Path) -> bool:
    if not path.is_file():  # nor opened: reading a pipe would take from it
        return False
    with suppress(OSError), path.open("rb") as file:
        return file.read(4) == b"PAR1"
    return False


def _columns(frame: pl.DataFrame, roles: dict[str, Any]) -> _Columns:
    if roles["version"] != _VERSION:
        raise ValueError(f"version {roles['version']}, this plar knows {_VERSION}")
    counts = frame[roles["count"]].cast(int).to_numpy()
    if len(counts) == 0 or counts.min() < 1:
        raise ValueError("counts below 1")
    conditions, decision = (
        [(name, encode_series(frame[name])) for name in roles[role]] for role in ("conditions", "decision")
    )
    if not decision:
        raise ValueError("no decision")
    return conditions, decision, counts.astype(np.int64)
