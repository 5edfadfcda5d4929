"""Bytes of text files, decompressed, in chunks of whole rows that any number of threads may request."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from plar.errors import Given, TableError
from plar.files.find import Stamp, check_unchanged, cut_short, stamp_of, suffix_of
from plar.grouping.factorize import Bytes
from plar.input.text.dialect import Dialect
from plar.input.text.distinct import PADDING
from plar.input.text.quotes import FRESH, scan_rows
from plar.runtime.limits import check_memory_used

#: longest row in bytes: enough for a header of some million names
MAX_LINE = 1 << 26
#: what data compressed by zstd and by gzip begin with
_ZSTD = b"\x28\xb5\x2f\xfd"
_GZIP = b"\x1f\x8b"
#: what a frame of zstd that holds no data begins with, after one byte from 0x50 to 0x5f
_SKIPPABLE = b"\x2a\x4d\x18"
_CHUNK_BYTES = 1 << 20
_HEAD_BYTES = 1 << 16


def too_long(path: Path) -> TableError:
    """The error for a line longer than any row of a table."""
    return TableError(
        f"{str(path)!r} has a line of more than {MAX_LINE >> 20} MiB, so it is not a table. "
        "Check what the file holds; a table with that many columns can be passed as an array."
    )


@contextmanager
def open_bytes(path: Path, encoding: str, stamp: Stamp | None = None) -> Iterator[io.BufferedReader]:
    """Open a file to be read once, decompressed, and as UTF-8 if its encoding does not extend ASCII.

    What is appended to it after it had this stamp, or after it is opened, is not read.
    """
    try:
        with _open_whole(path, stamp or stamp_of(path)) as file, _unpacked(file, path) as unpacked:
            # if its encoding extends ASCII, only the distinct values are decoded, later
            yield io.BufferedReader(unpacked if built_upon_ascii(encoding) else _Utf8(unpacked, encoding))
    except TableError:
        raise
    except UnicodeError as error:
        raise TableError(
            f"{str(path)!r} is not {encoding}: {error}. ", "Pass the right ", Given("encoding"), "."
        ) from None
    except Exception as error:
        if not isinstance(error, (OSError, EOFError, zlib.error)) and type(error).__name__ != "ZstdError":
            raise
        reason = getattr(error, "strerror", None) or str(error).rstrip(".")
        raise TableError(f"Cannot read {str(path)!r}: {reason}. Check the file and its permissions.") from None


def _open_whole(path: Path, stamp: Stamp | None) -> io.BufferedReader:
    """Open a file that is read as far as it reached when it had this stamp."""
    return path.open("rb") if stamp is None else io.BufferedReader(_Whole(path, stamp.size))


class _Whole(io.FileIO):
    """A file up to a size; an error if it ends before."""

    def __init__(self, path: Path, size: int) -> None:
        super().__init__(path)
        self._size = size

    def readinto(self, buffer: Any) -> int:
        unread = max(0, self._size - self.tell())
        n = super().readinto(memoryview(buffer)[:unread])
        if unread and not n:
            raise cut_short(Path(os.fsdecode(self.name)))
        return n


def _unpacked(file: io.BufferedReader, path: Path) -> Any:
    """Decompress a file if it is compressed, judging by its first bytes."""
    start = file.peek(4)[:4]
    if start == _ZSTD or begins_without_data(start):
        return _unpacked_zstd(file)
    if start[:2] == _GZIP:
        return gzip.GzipFile(fileobj=file)
    if start and suffix_of(path)[1]:
        raise TableError(f"{str(path)!r} is not compressed as its name says. Rename or compress it.")
    return file


def begins_without_data(start: bytes) -> bool:
    """Whether bytes begin with a frame of zstd that holds no data, as some compressors write first."""
    return start[1:4] == _SKIPPABLE and start[0] >> 4 == 5


def _unpacked_zstd(file: io.BufferedReader) -> Any:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd.ZstdFile(file)


class _Utf8(io.RawIOBase):
    """The contents of a file, recoded to UTF-8."""

    def __init__(self, file: Any, encoding: str) -> None:
        self._text = io.TextIOWrapper(file, encoding, newline="")
        self._unread = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._unread:
            self._unread = self._text.read(_HEAD_BYTES).encode("utf-8", "surrogatepass")
        n = min(len(buffer), len(self._unread))
        buffer[:n] = self._unread[:n]
        self._unread = self._unread[n:]
        return n


def built_upon_ascii(encoding: str) -> bool:
    """Whether separators, quotes and line ends can be found in the raw bytes: UTF-8 and one-byte ASCII supersets.

    >>> built_upon_ascii("latin-1"), built_upon_ascii("utf-16"), built_upon_ascii("shift_jis")
    (True, False, False)
    """
    if codecs.lookup(encoding).name in ("utf-8", "utf-8-sig"):
        return True
    text = bytes(range(256)).decode(encoding, "replace")
    return len(text) == 256 and text[:128] == bytes(range(128)).decode()


def read_head(file: io.BufferedReader, path: Path, head: bytes = b"") -> bytes:
    """Read the first bytes, or more after `head`; fewer, or none, at the end of the file."""
    if len(head) >= MAX_LINE:
        raise too_long(path)
    return head + file.read(min(max(_HEAD_BYTES, 3 * len(head)), MAX_LINE - len(head)))


@dataclass(slots=True)
class Chunk:
    """Whole rows of one file, in a buffer that is reused."""

    buffer: bytearray
    data: Bytes
    end: int = 0
    number: int = 0
    file: int = 0

    @staticmethod
    def of(size: int) -> Chunk:
        """Allocate a chunk of this many bytes."""
        buffer = bytearray(size + PADDING)
        return Chunk(buffer, np.frombuffer(buffer, np.uint8))

    @property
    def size(self) -> int:
        """How many bytes it can hold."""
        return len(self.buffer) - PADDING


class FileRange(NamedTuple):
    """The rows of a file to be read: where they begin and end, and the stamp of the file when its header was read."""

    path: Path
    begin: int
    #: None: with the file
    end: int | None
    stamp: Stamp | None


class Chunks:
    """Deals out the rows of files; one file is open at a time."""

    def __init__(self, files: Sequence[FileRange], dialect: Dialect, encoding: str) -> None:
        self._files = files
        self._dialect = dialect
        self._encoding = encoding
        self._lock = Lock()
        self._n_chunks = 0
        #: the current file: its place among `files`, bytes after its last whole row, and how many are not read yet
        self._at = 0
        self._tail = b""
        self._n_unread = 0
        self._open = ExitStack()
        self._file: io.BufferedReader | None = None
        #: whether to stop dealing out
        self.over = False

    def __enter__(self) -> Chunks:
        return self

    def __exit__(self, *error: Any) -> bool | None:
        return self._open.__exit__(*error)

    def next(self, chunk: Chunk | None) -> Chunk | None:
        """Read the next rows into this chunk, or a larger one; None if there are no more."""
        with self._lock:
            while not self.over and self._at < len(self._files):
                filled = self._read(chunk or Chunk.of(_CHUNK_BYTES))
                if filled is not None:
                    filled.number = self._n_chunks
                    filled.file = self._at
                    self._n_chunks += 1
                    return filled
                self._open.close()
                self._at += 1
                self._file = None
            return None

    def _read(self, chunk: Chunk) -> Chunk | None:
        """Read whole rows of the current file; None if there are no more."""
        check_memory_used("Reading the table")
        if self._file is None:
            self._file = self._open_next()
        while True:
            tail = self._tail
            if 2 * len(tail) > chunk.size:
                if len(tail) >= MAX_LINE:
                    raise too_long(self._files[self._at].path)
                chunk = Chunk.of(min(4 * len(tail), MAX_LINE))
            chunk.buffer[: len(tail)] = tail
            free = memoryview(chunk.buffer)[len(tail) : chunk.size]
            n_read = self._file.readinto(free[: self._n_unread])
            self._n_unread -= n_read
            n = len(tail) + n_read
            if not n:
                return None
            if n_read < len(free):  # the end of the file
                if chunk.buffer[n - 1] != 10:
                    self._check_last_row()
                    chunk.buffer[n] = 10
                    n += 1
                chunk.end = n
            else:
                chunk.end = self._row_end(chunk, n)
            self._tail = bytes(memoryview(chunk.buffer)[chunk.end : n])
            if chunk.end:
                return chunk

    def _open_next(self) -> io.BufferedReader:
        """Open the current file where its rows begin."""
        path, begin, end, stamp = self._files[self._at]
        if stamp is not None:
            check_unchanged(path, stamp)
        file = self._open.enter_context(open_bytes(path, self._encoding, stamp))
        if file.seekable():
            file.seek(begin)
        else:
            file.read(begin)
        self._n_unread = sys.maxsize if end is None else end - begin
        return file

    def _check_last_row(self) -> None:
        """Refuse a file whose last row was still being written when it was opened."""
        path, _, _, stamp = self._files[self._at]
        present = stamp_of(path)
        if stamp is not None and present is not None and present.size > stamp.size:
            raise TableError(
                f"Cannot read {str(path)!r}: it is being written, and its last row was incomplete. "
                "Read it again when it is complete."
            )

    def _row_end(self, chunk: Chunk, n: int) -> int:
        """Where the last whole row ends, 0 if there is none."""
        quote = self._dialect.quotes[:1].encode()
        if not self._dialect.multiline or chunk.buffer.find(quote, 0, n) < 0:
            return chunk.buffer.rfind(b"\n", 0, n) + 1
        return int(scan_rows(chunk.data, np.uint64(n), self._dialect.kinds, FRESH)[2])
