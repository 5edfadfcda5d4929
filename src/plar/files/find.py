"""Files to read: found by path, glob or folder, in the format of their suffix, and unchanged while they are read."""

from __future__ import annotations

import atexit
import glob
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG
from typing import IO, NamedTuple

from plar.errors import Given, TableError

#: formats by suffix. Text is one row per line, also under the UCI repository's suffixes; .dat is KEEL's or text, as its
#: first line shows; .json is one array of objects, or one object per line
SUFFIXES = {
    ".csv": "text",
    ".tsv": "text",
    ".tab": "text",
    ".txt": "text",
    ".data": "text",
    ".all": "text",
    ".trn": "text",
    ".tst": "text",
    ".train": "text",
    ".test": "text",
    ".dat": "dat",
    ".arff": "arff",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".json": "json",
    ".xlsx": "excel",
    ".parquet": "parquet",
    ".arrow": "ipc",
    ".feather": "ipc",
    ".ipc": "ipc",
}
_COMPRESSIONS = (".gz", ".zst")
#: formats that may be compressed
_COMPRESSIBLE_FORMATS = ("text", "dat", "arff", "ndjson")
#: bytes at each end of a file that tell whether it was written anew
_END_BYTES = 1 << 12

#: what reads formats that plar does not
_OTHER_READERS = {
    ".xls": "pandas.read_excel(…)",
    ".xlsb": "pandas.read_excel(…)",
    ".xlsm": "pandas.read_excel(…)",
    ".ods": "pandas.read_excel(…)",
    ".h5": "pandas.read_hdf(…)",
    ".hdf": "pandas.read_hdf(…)",
    ".hdf5": "pandas.read_hdf(…)",
    ".pkl": "pandas.read_pickle(…)",
    ".pickle": "pandas.read_pickle(…)",
    ".sav": "pandas.read_spss(…)",
    ".zsav": "pandas.read_spss(…)",
    ".sas7bdat": "pandas.read_sas(…)",
    ".xpt": "pandas.read_sas(…)",
    ".npy": "numpy.load(…)",
    ".npz": "numpy.load(…)",
    ".db": "pandas.read_sql(…)",
    ".sqlite": "pandas.read_sql(…)",
    ".sqlite3": "pandas.read_sql(…)",
    ".dta": "pandas.read_stata(…)",
    ".orc": "pandas.read_orc(…)",
    ".xml": "pandas.read_xml(…)",
    ".html": "pandas.read_html(…)",
    ".avro": "polars.read_avro(…)",
    ".mat": "scipy.io.loadmat(…)",
}
_SAVE_FROM_R = "Save it from R, with write.csv(…) or arrow::write_parquet(…)."
_UNPACK = "Unpack it first."
_DECOMPRESS = "Decompress it first; text may be .gz or .zst."
#: what to do about others
_REMEDIES = {
    ".rds": _SAVE_FROM_R,
    ".rdata": _SAVE_FROM_R,
    ".rda": _SAVE_FROM_R,
    ".zip": _UNPACK,
    ".7z": _UNPACK,
    ".tar": _UNPACK,
    ".tgz": _UNPACK,
    ".rar": _UNPACK,
    ".bz2": _DECOMPRESS,
    ".xz": _DECOMPRESS,
    ".lz4": _DECOMPRESS,
    ".br": _DECOMPRESS,
}


def find_files(path: str | os.PathLike[str]) -> list[Path]:
    """Files that a path, a glob, or a folder of files in a known format stands for, sorted."""
    text = os.fspath(path)
    if not text:
        raise TableError("The path is empty. Name a file.")
    try:
        place = expanded(text)
        if place.is_dir():
            return _parts(place)
        if place.exists():
            return [place]
    except TableError:
        raise
    except (OSError, ValueError) as error:  # too long, or contains a NUL
        reason = getattr(error, "strerror", None) or error
        raise TableError(f"Cannot look for {text!r:.200}: {reason}.") from None
    if "://" in text:
        raise _elsewhere(text)
    if any(mark in text for mark in "*?["):
        matches = map(Path, glob.glob(str(place), recursive=True))
        files = sorted(match for match in matches if match.is_file())
        if files:
            return files
        raise TableError(f"No file matches {text!r}. Check the folder and the pattern.")
    raise TableError(f"No such file: {text!r}. Check the path.")


def _elsewhere(address: str) -> TableError:
    """The error for an address where a path is needed."""
    if address.startswith("file://"):
        return TableError(f"{address!r} is an address. Pass the path without file://.")
    return TableError(
        f"{address!r} is on another file system, which only Spark reads. Pass ",
        Given("engine", "spark"),
        ", or copy it to this machine.",
    )


def expanded(path: str | os.PathLike[str]) -> Path:
    """The path, with ~ expanded unless a file has that exact name."""
    place = Path(path)
    with suppress(RuntimeError):  # no such user: it is a file name, such as ~.csv
        return place if place.exists() else place.expanduser()
    return place


def shown_files(files: Sequence[Path]) -> str:
    """Names of files, for messages."""
    names = [repr(str(file)) for file in files[:3]]
    if len(files) > 3:
        names.append("…")
    return ", ".join(names)


def check_name(path: Path) -> None:
    """Refuse a name that polars cannot handle."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise TableError(f"The name {str(path)!r} is not UTF-8. Rename it.") from None


def _parts(folder: Path) -> list[Path]:
    """The files of a table that Spark or others wrote as a folder; names that begin with . or _ are metadata."""
    entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith((".", "_")))
    is_partitioned = any(entry.is_dir() and "=" in entry.name for entry in entries)
    if is_partitioned:  # into folders, by the values of some columns
        files = [entry for entry in folder.rglob("*") if entry.is_file()]
        entries = sorted(file for file in files if not re.search(r"(^|[/\\])[._]", str(file.relative_to(folder))))
    if entries and all(entry.is_file() and known_format(entry) is not None for entry in entries):
        return entries
    fault = "not all it holds are files in a known format" if entries else "it holds no files"
    raise TableError(
        f"{str(folder)!r} is a directory, and {fault}. "
        f"Name a file, or a glob such as {os.path.join(folder, '*.csv')!r}."
    )


def suffix_of(path: Path) -> tuple[str, str]:
    """Suffix of the format, and that of the compression after it: .csv and .gz."""
    suffix = path.suffix.lower()
    if suffix in _COMPRESSIONS:
        return path.with_suffix("").suffix.lower(), suffix
    return suffix, ""


def known_format(path: Path) -> str | None:
    """Name of the format of a file; None if its suffix is unknown.

    >>> known_format(Path("t.csv.zst")), known_format(Path("t.parquet.gz")), known_format(Path("breast.data-1"))
    ('text', None, 'text')
    """
    suffix, compression = suffix_of(path)
    kind = "text" if suffix.startswith(".data") else SUFFIXES.get(suffix)
    if compression and kind not in _COMPRESSIBLE_FORMATS:
        return None
    return kind


def format_of(path: Path, *, as_text: bool = False) -> str:
    """Name of the format of a file to read; an unknown suffix may be read `as_text`."""
    kind = known_format(path)
    if kind is not None:
        return kind
    if as_text and suffix_of(path)[0] not in SUFFIXES:
        return "text"
    raise _unknown_format(path)


def _unknown_format(path: Path) -> TableError:
    """The error for a file that plar does not read, with what does."""
    suffix, compression = suffix_of(path)
    if suffix in SUFFIXES:
        return TableError(f"{str(path)!r}: files of {suffix} are not read compressed. Decompress it first.")
    if suffix in _OTHER_READERS:
        reader = _OTHER_READERS[suffix]
        remedy = f"Read it with {reader} and pass what that returns, or save it as .parquet or .csv."
        return TableError(f"plar does not read {suffix} files, such as {str(path)!r}. {remedy}")
    if suffix in _REMEDIES:
        return TableError(f"plar does not read {suffix} files, such as {str(path)!r}. {_REMEDIES[suffix]}")
    shown = f"{suffix}{compression}" or path.name
    return TableError(
        f"Unknown format {shown!r} of {str(path)!r}. Known: {' '.join(SUFFIXES)}, text also .gz .zst. Pass ",
        Given("separator"),
        " to read it as text.",
    )


def first_bytes(path: Path, n: int) -> bytes:
    """The first bytes of a file; one that is empty or cannot be read is refused."""
    try:
        with path.open("rb") as file:
            start = file.read(n)
    except OSError as error:
        raise TableError(f"Cannot read {str(path)!r}: {error.strerror}. Check its permissions.") from None
    if not start:
        raise TableError(f"{str(path)!r} is empty. A table needs a header and rows.")
    return start


class Stamp(NamedTuple):
    """What a file was when it was opened."""

    size: int
    #: time of the last change in nanoseconds; None: not compared, since copies on several machines have other times
    modified: int | None
    #: its first and last bytes, which tell a file that was appended to from one that was written anew
    ends: bytes


def stamp_of(path: Path) -> Stamp | None:
    """The stamp of a file; None if it has no size, such as a device, or cannot be looked at."""
    try:
        status = path.stat()
        if not S_ISREG(status.st_mode) or not status.st_size:  # files that the system makes up claim 0 bytes
            return None
        return Stamp(status.st_size, status.st_mtime_ns, _ends(path, status.st_size))
    except OSError:  # opening the file reports it
        return None


def _ends(path: Path, size: int) -> bytes:
    """The first and last bytes of the part of a file up to a size."""
    with path.open("rb", buffering=0) as file:
        first = file.read(min(size, _END_BYTES))
        file.seek(max(0, size - _END_BYTES))
        last = file.read(min(size, _END_BYTES))
    return first + last


def check_unchanged(path: Path, stamp: Stamp, *, may_grow: bool = True) -> None:
    """Refuse a file that was changed since it was opened; rows may have been appended if it `may_grow`."""
    try:
        status = path.stat()
        if status.st_size < stamp.size:
            raise cut_short(path)
        if status.st_size == stamp.size:
            changed = stamp.modified not in (None, status.st_mtime_ns)
        else:
            changed = not may_grow or _ends(path, stamp.size) != stamp.ends
    except OSError:  # reading the file reports it
        return
    if changed:
        raise TableError(f"Cannot read {str(path)!r}: it was changed after it was opened. Open it again.")


def cut_short(path: Path) -> TableError:
    """The error for a file that another program made shorter."""
    return TableError(f"Cannot read {str(path)!r}: it became shorter while it was being read. Check the file.")


def written_so_far(file: IO[bytes]) -> bytes:
    """All that a file holds; its position, which a process that still writes may share, stays where it is."""
    size = os.fstat(file.fileno()).st_size
    if hasattr(os, "pread"):
        return os.pread(file.fileno(), size, 0)
    file.seek(0)  # Windows
    return file.read(size)


def on_disk(path: Path) -> Path:
    """The file itself; a pipe, which can be read only once, is copied to a file that is removed at exit."""
    if not path.is_fifo():
        return path
    folder = tempfile.mkdtemp(prefix="plar-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    spool = Path(folder, path.name)
    with path.open("rb") as source, spool.open("wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
    return spool
