"""Granules on disk, and how plar writes any file: beside its place, then renamed, so whole or not at all."""

from __future__ import annotations

import errno
import glob
import json
import mmap
import os
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from plar.coding.codes import Column
from plar.coding.series import encode_series
from plar.coding.threads import check_threads
from plar.errors import TableError, reason_of

if TYPE_CHECKING:
    import polars as pl

__all__ = ["checksum", "find_files", "holds_granules", "read_columns", "remove_strays", "replacing", "write_columns"]

#: conditions, decision, counts, the names of all columns of the table, the cut points of those cut into bins,
#: and whether the values are as written
_Columns: TypeAlias = tuple[
    list[tuple[str, Column]],
    list[tuple[str, Column]],
    NDArray[np.int64],
    tuple[str, ...],
    dict[str, tuple[float, ...]],
    bool,
]
_KEY = "plar"
_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
_REFUSED = (errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EROFS)
#: files of version 1 have no checksum
_VERSION = 2
#: in place of a checksum while the file is hashed that will hold it
_UNSEALED = "0" * 32


def find_files(path: str | os.PathLike[str]) -> list[Path]:
    """Files that a path, a glob, or a folder of Parquet files names, sorted."""
    text = os.fspath(path)
    if not text:
        raise TableError("The path is empty. Name a file.")
    place = Path(text).expanduser()
    if place.is_dir():
        return _parts(place)
    if place.exists():
        return [place]
    if any(mark in text for mark in "*?["):
        found = sorted(Path(p) for p in glob.glob(str(place), recursive=True) if Path(p).is_file())
        if found:
            return found
        raise TableError(f"No file matches {text!r}. Check the folder and the pattern.")
    raise TableError(f"No such file: {text!r}. Check the path.")


def _parts(folder: Path) -> list[Path]:
    """The files of a table that Spark and others write as a folder; what begins with . or _ is about them."""
    inside = sorted(p for p in folder.iterdir() if not p.name.startswith((".", "_")))
    parts = [p for p in inside if p.is_file() and p.suffix.lower() == ".parquet"]
    if parts and len(parts) == len(inside):
        return parts
    if any(p.is_dir() and "=" in p.name for p in inside):
        raise TableError(
            f"{str(folder)!r} is divided by {next(p.name for p in inside if '=' in p.name).partition('=')[0]!r}, and "
            f"its files lack that column. Name one part, or read it into a frame: polars.scan_parquet({str(folder)!r})."
        )
    raise TableError(
        f"{str(folder)!r} is a directory, and not one of Parquet files alone. Name a file, or a glob such as "
        f"{os.path.join(folder, '*.csv')!r}."
    )


def _disk_full(error: BaseException) -> int | None:
    """Number of the error that says that the disk takes no more; polars has it in its message only."""
    written = re.search(r"\(os error (\d+)\)", str(error))
    number = getattr(error, "errno", None) or (int(written[1]) if written else None)
    return number if number in _FULL else None


@contextmanager
def replacing(path: str | os.PathLike[str], *, durable: bool = False) -> Iterator[Path]:
    """Yield a temporary file in the folder of `path`; it takes the place of `path` if all goes well.

    What is `durable` is on the disk when this returns, and the old file or the new one whatever happens before.
    """
    target = Path(path)
    if target.is_dir():
        raise TableError(f"Cannot write {str(target)!r}: it is a directory. Name a file in it.")
    try:
        temporary = target.parent / f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.part"
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))  # less what the umask takes
    except OSError as error:
        raise TableError(f"Cannot write {str(target)!r}: {error.strerror}. Choose another place.") from None
    try:
        yield temporary
        if durable:
            _sync(temporary)
        temporary.replace(target)
        if durable:
            _sync(target.parent)
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _REFUSED:
            raise TableError(f"Cannot write {str(target)!r}: {error.strerror}. Choose another place.") from None
        full = _disk_full(error)
        if full is None:
            raise
        # the machine's fault, not that of the user's input
        raise OSError(full, f"Cannot write ({os.strerror(full)})", str(target)) from None
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


def remove_strays(path: Path) -> None:
    """Remove what processes that are no more were writing in place of `path`."""
    mark = re.compile(re.escape(f".{path.name}.") + r"(\d+)-[0-9a-f]{8}\.part")
    for file in path.parent.iterdir():
        found = mark.fullmatch(file.name)
        if found and not _is_alive(int(found[1])):
            with suppress(OSError):
                file.unlink()


def _is_alive(process: int) -> bool:
    if os.name == "nt":  # where one can only be asked by ending it
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _sync(path: Path) -> None:
    if os.name == "nt" and path.is_dir():  # there folders cannot be opened
        return
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _series(name: str, values: Sequence[Any]) -> pl.Series:
    """Distinct values as a Series: of one type where polars has it, else as text, else as numbers."""
    import polars as pl

    with suppress(TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        series = pl.Series(name, list(values), strict=True)
        if series.dtype != pl.Object and not series.dtype.is_nested() and series.n_unique() == len(values):
            return series
    if all(v is None or (type(v) in (int, float) and _is_exact(v)) for v in values):
        return pl.Series(name, [None if v is None else float(v) for v in values], dtype=pl.Float64)
    written = [None if v is None else f"{type(v).__name__} {v!r}" for v in values]
    if len(set(written)) == len(values):
        return pl.Series(name, written, dtype=pl.String)
    return pl.Series(name, [None if v is None else code for code, v in enumerate(values)], dtype=pl.Int64)


def _is_exact(number: float) -> bool:
    """Whether a number stays what it is as a float."""
    with suppress(OverflowError):
        return float(number) == number
    return False


def write_columns(
    path: str | os.PathLike[str],
    conditions: Sequence[tuple[str, Column]],
    decision: Sequence[tuple[str, Column]],
    counts: NDArray[np.int64],
    names: Sequence[str],
    cuts: Mapping[str, tuple[float, ...]],
    text: bool,
) -> None:
    """Write coded columns and counts as Parquet; roles, names of the table, cuts and `text` are metadata."""
    import polars as pl

    check_threads()
    columns, count = [*conditions, *decision], "count"
    while count in dict(columns):
        count += "_"
    roles = {
        "version": _VERSION,
        "conditions": [name for name, _ in conditions],
        "decision": [name for name, _ in decision],
        "count": count,
        "names": list(names),
        "cuts": dict(cuts),
        "text": text,
        "checksum": _UNSEALED,
    }
    try:
        values = [_series(name, column.values).gather(column.codes) for name, column in columns]
    except UnicodeEncodeError:
        raise TableError("A name holds half a character (a lone surrogate), which no file can. Rename it.") from None
    frame = pl.DataFrame([*values, pl.Series(count, counts)])
    with replacing(path) as temporary:
        frame.write_parquet(temporary, metadata={_KEY: json.dumps(roles)})
        _seal(temporary)


def read_columns(path: str | os.PathLike[str]) -> _Columns | None:
    """Conditions, decision, counts, names, cuts and `text`, as `write_columns` wrote them; None for any other file."""
    import polars as pl

    place = Path(path)
    written = _metadata(place)
    if written is None:
        return None
    try:
        roles = json.loads(written)
        if roles["version"] not in (1, _VERSION):
            raise ValueError(f"version {roles['version']}, this plar knows 1 and {_VERSION}")
        if roles["version"] > 1 and roles["checksum"] != _hash(place, str(roles["checksum"])):
            raise ValueError("it is not as it was written")
        return _columns(pl.read_parquet(place, glob=False, hive_partitioning=False), roles)
    except (OSError, KeyError, TypeError, ValueError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        reason = reason_of(error)
        raise TableError(f"The granule file {str(place)!r} is damaged ({reason}). Make it again.") from None


def checksum(text: bytes) -> str:
    """Hash what is kept, so that damage shows.

    Examples
    --------
    >>> checksum(b"as it was") == checksum(b"as it is")
    False
    """
    return blake2b(text, digest_size=16).hexdigest()


def _seal(path: Path) -> None:
    """Put the checksum of a file into its metadata, where there is room for it."""
    found = _hash(path, _UNSEALED)
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as data:
        at = data.rfind(_UNSEALED.encode())
        data[at : at + len(found)] = found.encode()


def _hash(path: Path, seal: str) -> str:
    """Hash a file as it was before it was sealed."""
    found = blake2b(digest_size=16)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = data.rfind(seal.encode())
        with memoryview(data) as whole:
            for part in (whole[:at], _UNSEALED.encode(), whole[at + len(_UNSEALED) :]):
                found.update(part)
                if isinstance(part, memoryview):
                    part.release()
    return found.hexdigest()


def holds_granules(path: Path) -> bool:
    """Whether `write_columns` wrote a file."""
    return _metadata(path) is not None


def _metadata(path: Path) -> str | None:
    """What `write_columns` notes in a file; None for any other file."""
    import polars as pl

    if not _is_parquet(path):
        return None
    check_threads()
    try:
        return pl.read_parquet_metadata(path).get(_KEY)
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        raise TableError(f"Cannot read the Parquet file {str(path)!r}: it is damaged. Make it again.") from None


def _is_parquet(path: Path) -> bool:
    if not path.is_file():  # nor opened: reading a pipe would take from it
        return False
    with suppress(OSError), path.open("rb") as file:
        return file.read(4) == b"PAR1"
    return False


def _columns(frame: pl.DataFrame, roles: dict[str, Any]) -> _Columns:
    counts = frame[roles["count"]].cast(int).to_numpy()
    if len(counts) == 0 or counts.min() < 1:
        raise ValueError("counts below 1")
    conditions, decision = (
        [(name, encode_series(frame[name])) for name in roles[role]] for role in ("conditions", "decision")
    )
    if not decision:
        raise ValueError("no decision")
    cuts = {name: tuple(map(float, points)) for name, points in roles.get("cuts", {}).items()}
    return conditions, decision, counts.astype(np.int64), tuple(roles.get("names", ())), cuts, roles.get("text") is True
