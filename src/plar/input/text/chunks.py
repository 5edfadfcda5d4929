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
from typing import Any, cast

import numpy as np

from plar.errors import TableError
from plar.files.find import Stamp, check_unchanged, cut_short, stamp_of, suffix_of
from plar.input.text.distinct import SPARE, Bytes
from plar.input.text.tokens import FRESH, Dialect, scan_rows
from plar.runtime.limits import check_memory_used

#: longest row in bytes: enough for a header of some million names
MAX_LINE = 1 << 26
_ZSTD, _GZIP = b"\x28\xb5\x2f\xfd", b"\x1f\x8b"
#: what a frame of zstd that holds no data begins with, after one byte from 0x50 to 0x5f
_SKIPPABLE = b"\x2a\x4d\x18"
_CHUNK = 1 << 20
_HEAD = 1 << 16


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
        raise TableError(f"{str(path)!r} is not {encoding}: {error}. Pass the right encoding=.") from None
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

    def readinto(self, room: Any) -> int:
        unread = max(0, self._size - self.tell())
        n = super().readinto(memoryview(room)[:unread])
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
        self._text, self._left = io.TextIOWrapper(file, encoding, newline=""), b""

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        self._left = self._left or self._text.read(_HEAD).encode("utf-8", "surrogatepass")
        n = min(len(room), len(self._left))
        room[:n], self._left = self._left[:n], self._left[n:]
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
    return head + file.read(min(max(_HEAD, 3 * len(head)), MAX_LINE - len(head)))


@dataclass(slots=True)
class Chunk:
    """Whole rows of one file, in a buffer that is reused."""

    room: bytearray
    data: Bytes
    end: int = 0
    number: int = 0
    file: int = 0

    @staticmethod
    def of(size: int) -> Chunk:
        """Allocate a chunk of this many bytes."""
        room = bytearray(size + SPARE)
        return Chunk(room, np.frombuffer(room, np.uint8))


class Chunks:
    """Deals out the rows of files, each given with its start, end and stamp; one file is open at a time."""

    def __init__(
        self, files: Sequence[tuple[Path, int, int | None, Stamp | None]], dialect: Dialect, encoding: str
    ) -> None:
        self._files, self._dialect, self._encoding = files, dialect, encoding
        self._lock, self._number, self._at = Lock(), 0, 0
        #: of the current file: bytes after the last whole row, and how many are still unread
        self._left, self._unread = b"", 0
        self._open, self._file = ExitStack(), cast(Any, None)
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
                filled = self._read(chunk or Chunk.of(_CHUNK))
                if filled is not None:
                    filled.number, filled.file = self._number, self._at
                    self._number += 1
                    return filled
                self._open.close()
                self._at, self._file = self._at + 1, None
            return None

    def _read(self, chunk: Chunk) -> Chunk | None:
        check_memory_used("Reading the table")
        if self._file is None:
            path, begin, stop, stamp = self._files[self._at]
            if stamp is not None:
                check_unchanged(path, stamp)
            self._file = self._open.enter_context(open_bytes(path, self._encoding, stamp))
            if self._file.seekable():
                self._file.seek(begin)
            else:
                self._file.read(begin)
            self._unread = sys.maxsize if stop is None else stop - begin
        while True:
            held = self._left
            if len(held) * 2 > len(chunk.room) - SPARE:
                if len(held) >= MAX_LINE:
                    raise too_long(self._files[self._at][0])
                chunk = Chunk.of(min(4 * len(held), MAX_LINE))
            chunk.room[: len(held)] = held
            room = memoryview(chunk.room)[len(held) : len(chunk.room) - SPARE]
            got = self._file.readinto(room[: self._unread])
            self._unread -= got
            n = len(held) + got
            if not n:
                return None
            if got < len(room):  # the end of the file
                if chunk.room[n - 1] != 10:
                    self._check_last_row()
                    chunk.room[n] = 10
                    n += 1
                end = n
            else:
                end = self._row_end(chunk, n)
            chunk.end, self._left = end, bytes(memoryview(chunk.room)[end:n])
            if end:
                return chunk

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
        if not self._dialect.multiline or chunk.room.find(quote, 0, n) < 0:
            return chunk.room.rfind(b"\n", 0, n) + 1
        return int(scan_rows(chunk.data, np.uint64(n), self._dialect.kinds, FRESH)[2])
