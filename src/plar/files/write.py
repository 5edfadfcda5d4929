"""Files to write: completely or not at all, with the old file in place until the new one is complete."""

from __future__ import annotations

import errno
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path

from plar.errors import ParameterError, TableError
from plar.files.find import known_format, suffix_of

_DISK_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
_PLACE_REFUSED = (
    errno.EACCES,
    errno.EPERM,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EROFS,
    errno.ENAMETOOLONG,
)
#: suffixes of tables that plar can write
WRITTEN = (".csv", ".tsv", ".txt", ".ndjson", ".jsonl", ".parquet", ".arrow", ".feather", ".ipc")


def output_format(path: Path) -> str:
    """Name of the format of a file to write."""
    kind = known_format(path)
    if kind is None or suffix_of(path)[0] not in WRITTEN:
        choices = " ".join(WRITTEN)
        raise TableError(f"Unknown output format of {str(path)!r}. Choose one of: {choices} (text also .gz .zst).")
    return kind


def as_path(path: object) -> Path:
    """Convert to a path; anything else is a ParameterError."""
    try:
        return Path(path)  # type: ignore[arg-type]
    except TypeError:
        raise ParameterError(f"A path must be text or a path object. Got {path!r} instead.") from None


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
        os.lstat(_temporary_name(target))  # fails in the same way as creating it, if the name is too long
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


def _temporary_name(target: Path) -> Path:
    """A new name in the folder of `target`; the process number tells a person whose file it is."""
    return target.parent / f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.part"


@contextmanager
def replacing(path: str | os.PathLike[str], *, durable: bool = False) -> Iterator[Path]:
    """Yield a temporary file in the folder of `path`; it replaces `path` if all goes well.

    A link is followed, and a replaced file keeps its permissions. A `durable` file is on disk when this returns;
    after a crash before that, `path` is either the old file or the new one. A process that is killed leaves its
    temporary file behind.
    """
    target = Path(os.path.realpath(path) if os.path.islink(path) else path)
    _refuse_folder(target)
    temporary = _temporary_name(target)
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))  # minus the umask
        with suppress(FileNotFoundError):
            os.chmod(temporary, target.stat().st_mode & 0o777)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TableError(f"Cannot write {str(path)!r:.200}: {reason}. Choose another place.") from None
    try:
        with _clear_errors(target):
            yield temporary
            if durable:
                _sync(temporary)
            temporary.replace(target)
            if durable:
                _sync(target.parent)
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


def write_from(path: Path, position: int, text: bytes, size: int) -> bool:
    """Replace what a file has from a position on; it is on disk when this returns.

    What stands before the position is never touched, whatever happens. If the file has not this size, somebody
    else has written to it: then nothing is written, and the answer is False.
    """
    with _clear_errors(path), path.open("r+b") as file:
        if os.fstat(file.fileno()).st_size != size:
            return False
        file.truncate(position)
        file.seek(position)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    return True


@contextmanager
def _clear_errors(target: Path) -> Iterator[None]:
    """Say plainly that the place cannot be written, or that the disk is full."""
    try:
        yield
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _PLACE_REFUSED:
            raise TableError(f"Cannot write {str(target)!r}: {error.strerror}. Choose another place.") from None
        number = _system_error(error)
        if number not in _DISK_FULL:
            raise
        # a fault of the machine, not of the user's input
        raise OSError(number, f"Cannot write ({os.strerror(number)})", str(target)) from None


def _system_error(error: Exception) -> int | None:
    """The number of the system's error, also of one that polars writes into its message."""
    if isinstance(error, OSError) and error.errno:
        return error.errno
    code = re.search(r"\(os error (\d+)\)", str(error))
    return int(code[1]) if code else None


def _sync(path: Path) -> None:
    """Wait until a file, or a folder's list of files, is on disk."""
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
