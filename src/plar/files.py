"""Files: found by path, glob or folder, in the format of their suffix, and written completely or not at all."""

from __future__ import annotations

import atexit
import errno
import glob
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from stat import S_ISREG
from typing import IO, NamedTuple

from plar.errors import ParameterError, TableError

_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
_REFUSED = (errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EROFS, errno.ENAMETOOLONG)
#: formats by suffix. Text is one row per line, also under the UCI repository's suffixes; .dat is KEEL's or text, as its
#: first line shows; .json is one array of objects, or one object per line
SUFFIXES = {
    **dict.fromkeys((".csv", ".tsv", ".tab", ".txt", ".data", ".all", ".trn", ".tst", ".train", ".test"), "text"),
    **{".dat": "dat", ".arff": "arff", ".ndjson": "ndjson", ".jsonl": "ndjson", ".json": "json", ".xlsx": "excel"},
    **{".parquet": "parquet", ".arrow": "ipc", ".feather": "ipc", ".ipc": "ipc"},
}
#: suffixes that plar can also write
WRITTEN = (".csv", ".tsv", ".txt", ".ndjson", ".jsonl", ".parquet", ".arrow", ".feather", ".ipc")
_PACKED = (".gz", ".zst")
#: bytes at each end of a file that tell whether it was written anew
_END = 1 << 12
#: formats that may be compressed
_PACKABLE = ("text", "dat", "arff", "ndjson")


#: what reads formats that plar does not
_READERS = {
    **dict.fromkeys((".xls", ".xlsb", ".xlsm", ".ods"), "pandas.read_excel(…)"),
    **dict.fromkeys((".h5", ".hdf", ".hdf5"), "pandas.read_hdf(…)"),
    **dict.fromkeys((".pkl", ".pickle"), "pandas.read_pickle(…)"),
    **dict.fromkeys((".sav", ".zsav"), "pandas.read_spss(…)"),
    **dict.fromkeys((".sas7bdat", ".xpt"), "pandas.read_sas(…)"),
    **dict.fromkeys((".npy", ".npz"), "numpy.load(…)"),
    **dict.fromkeys((".db", ".sqlite", ".sqlite3"), "pandas.read_sql(…)"),
    **{".dta": "pandas.read_stata(…)", ".orc": "pandas.read_orc(…)", ".xml": "pandas.read_xml(…)"},
    **{".html": "pandas.read_html(…)", ".avro": "polars.read_avro(…)", ".mat": "scipy.io.loadmat(…)"},
}
#: what to do about others
_CONVERTERS = {
    **dict.fromkeys((".rds", ".rdata", ".rda"), "Save it from R, with write.csv(…) or arrow::write_parquet(…)."),
    **dict.fromkeys((".zip", ".7z", ".tar", ".tgz", ".rar"), "Unpack it first."),
    **dict.fromkeys((".bz2", ".xz", ".lz4", ".br"), "Decompress it first; text may be .gz or .zst."),
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
        raise TableError(f"Cannot look for {text!r:.200}: {getattr(error, 'strerror', None) or error}.") from None
    if "://" in text:
        raise _elsewhere(text)
    if any(mark in text for mark in "*?["):
        found = sorted(Path(p) for p in glob.glob(str(place), recursive=True) if Path(p).is_file())
        if found:
            return found
        raise TableError(f"No file matches {text!r}. Check the folder and the pattern.")
    raise TableError(f"No such file: {text!r}. Check the path.")


def _elsewhere(address: str) -> TableError:
    """The error for an address where a path is needed."""
    if address.startswith("file://"):
        return TableError(f"{address!r} is an address. Pass the path without file://.")
    return TableError(
        f"{address!r} is on another file system, which only Spark reads. "
        "Pass engine='spark', or copy it to this machine."
    )


def expanded(path: str | os.PathLike[str]) -> Path:
    """The path, with ~ expanded unless a file has that exact name."""
    place = Path(path)
    with suppress(RuntimeError):  # no such user: it is a file name, such as ~.csv
        return place if place.exists() else place.expanduser()
    return place


def shown_files(files: Sequence[Path]) -> str:
    """Names of files, for messages."""
    return ", ".join(repr(str(f)) for f in files[:3]) + (", …" if len(files) > 3 else "")


def check_name(path: Path) -> None:
    """Refuse a name that polars cannot handle."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise TableError(f"The name {str(path)!r} is not UTF-8. Rename it.") from None


def _parts(folder: Path) -> list[Path]:
    """The files of a table that Spark or others wrote as a folder; names that begin with . or _ are metadata."""
    inside = sorted(p for p in folder.iterdir() if not p.name.startswith((".", "_")))
    if any(p.is_dir() and "=" in p.name for p in inside):  # partitioned by the values of some columns
        every = (p for p in folder.rglob("*") if p.is_file())
        inside = sorted(p for p in every if not re.search(r"(^|[/\\])[._]", str(p.relative_to(folder))))
    if inside and all(p.is_file() and known_format(p) is not None for p in inside):
        return inside
    fault = "not all it holds are files in a known format" if inside else "it holds no files"
    raise TableError(
        f"{str(folder)!r} is a directory, and {fault}. "
        f"Name a file, or a glob such as {os.path.join(folder, '*.csv')!r}."
    )


def suffix_of(path: Path) -> tuple[str, str]:
    """Suffix of the format, and that of the compression after it: .csv and .gz."""
    last = path.suffix.lower()
    return (path.with_suffix("").suffix.lower(), last) if last in _PACKED else (last, "")


def known_format(path: Path) -> str | None:
    """Name of the format of a file; None if its suffix is unknown.

    >>> known_format(Path("t.csv.zst")), known_format(Path("t.parquet.gz")), known_format(Path("breast.data-1"))
    ('text', None, 'text')
    """
    suffix, packed = suffix_of(path)
    found = "text" if suffix.startswith(".data") else SUFFIXES.get(suffix)
    return found if found in _PACKABLE or not packed else None


def format_of(path: Path, *, as_text: bool = False) -> str:
    """Name of the format of a file to read; an unknown suffix may be read `as_text`."""
    found = known_format(path)
    if found is None and as_text and suffix_of(path)[0] not in SUFFIXES:
        return "text"
    if found is None:
        raise _unknown_format(path)
    return found


def _unknown_format(path: Path) -> TableError:
    """The error for a file that plar does not read, with what does."""
    suffix, packed = suffix_of(path)
    if suffix in SUFFIXES:
        return TableError(f"{str(path)!r}: files of {suffix} are not read compressed. Decompress it first.")
    if suffix in _READERS:
        how = f"Read it with {_READERS[suffix]} and pass what that returns, or save it as .parquet or .csv."
    elif suffix in _CONVERTERS:
        how = _CONVERTERS[suffix]
    else:
        known = f"{' '.join(SUFFIXES)}, text also .gz .zst"
        shown = f"{suffix}{packed}" or path.name
        return TableError(
            f"Unknown format {shown!r} of {str(path)!r}. Known: {known}. Pass separator= to read it as text."
        )
    return TableError(f"plar does not read {suffix} files, such as {str(path)!r}. {how}")


def output_format(path: Path) -> str:
    """Name of the format of a file to write."""
    found = known_format(path)
    if found is None or suffix_of(path)[0] not in WRITTEN:
        known = " ".join(WRITTEN)
        raise TableError(f"Unknown output format of {str(path)!r}. Choose one of: {known} (text also .gz .zst).")
    return found


def first_bytes(path: Path, n: int) -> bytes:
    """The first bytes of a file; one that is empty or cannot be read is refused."""
    try:
        with path.open("rb") as file:
            found = file.read(n)
    except OSError as error:
        raise TableError(f"Cannot read {str(path)!r}: {error.strerror}. Check its permissions.") from None
    if not found:
        raise TableError(f"{str(path)!r} is empty. A table needs a header and rows.")
    return found


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
        first = file.read(min(size, _END))
        file.seek(max(0, size - _END))
        return first + file.read(min(size, _END))


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


def as_path(given: object) -> Path:
    """Convert to a path; anything else is a ParameterError."""
    try:
        return Path(given)  # type: ignore[arg-type]
    except TypeError:
        raise ParameterError(f"A path must be text or a path object. Got {given!r} instead.") from None


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


def check_place(path: str | os.PathLike[str], inputs: Sequence[Path] = ()) -> None:
    """Refuse a path where no file can be created, or that is one of the inputs."""
    target = Path(path)
    try:
        _refuse_folder(target)
        folder = target.parent
        if not folder.is_dir():
            raise TableError(f"Cannot write {str(target)!r}: there is no folder {str(folder)!r}. Create it first.")
        if not os.access(folder, os.W_OK) or (target.exists() and not os.access(target, os.W_OK)):
            raise TableError(f"Cannot write {str(target)!r}: permission denied. Choose another place.")
        if target.exists() and any(target.samefile(file) for file in inputs if file.exists()):
            raise TableError(f"{str(target)!r} is the input. Choose another name for the output.")
        os.lstat(_beside(target))
    except TableError:
        raise
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TableError(f"Cannot write {str(target)!r:.200}: {reason}. Choose another place.") from None


def _refuse_folder(target: Path) -> None:
    if target.is_dir():
        raise TableError(f"Cannot write {str(target)!r}: it is a directory. Name a file in it.")


def _beside(target: Path) -> Path:
    """A new name in the folder of `target`."""
    return target.parent / f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.part"


@contextmanager
def replacing(path: str | os.PathLike[str], *, durable: bool = False) -> Iterator[Path]:
    """Yield a temporary file in the folder of `path`; it replaces `path` if all goes well.

    A link is followed, and a replaced file keeps its permissions. A `durable` file is on disk when this returns;
    after a crash before that, `path` is either the old file or the new one.
    """
    target = Path(os.path.realpath(path) if os.path.islink(path) else path)
    _refuse_folder(target)
    temporary = _beside(target)
    if not durable:  # durable files are written many times in a run
        remove_strays(target)
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))  # minus the umask
        with suppress(FileNotFoundError):
            os.chmod(temporary, target.stat().st_mode & 0o777)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TableError(f"Cannot write {str(path)!r:.200}: {reason}. Choose another place.") from None
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
        code = re.search(r"\(os error (\d+)\)", str(error))  # as polars writes it
        number = getattr(error, "errno", None) or (int(code[1]) if code else None)
        if number not in _FULL:
            raise
        # a fault of the machine, not of the user's input
        raise OSError(number, f"Cannot write ({os.strerror(number)})", str(target)) from None
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


def remove_strays(path: Path) -> None:
    """Remove temporary files for `path` left behind by dead processes."""
    mark = re.compile(re.escape(f".{path.name}.") + r"(\d+)-[0-9a-f]{8}\.part")
    with suppress(OSError):
        for file in path.parent.iterdir():
            found = mark.fullmatch(file.name)
            if found and not _is_alive(int(found[1])):
                file.unlink()


def _is_alive(process: int) -> bool:
    if os.name == "nt":  # where os.kill would end it
        return True
    try:
        os.kill(process, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)
    return True


def _sync(path: Path) -> None:
    if os.name == "nt" and path.is_dir():  # where folders cannot be opened
        return
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def checksum(text: bytes) -> str:
    """Hash stored text, so that damage is detected."""
    return blake2b(text, digest_size=16).hexdigest()
