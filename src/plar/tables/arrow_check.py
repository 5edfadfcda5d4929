"""A look at an Arrow file before polars reads it.

Polars trusts the sizes that such a file states: one flipped bit makes it ask for any amount of memory, and the process
die. So every batch, buffer and unpacked size is first held against what the file can hold. The names below are those of
the format's own definition, https://arrow.apache.org/docs/format/Columnar.html.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from plar.errors import TableError

__all__ = ["check_arrow"]

_MAGIC = b"ARROW1"
_DICTIONARY, _RECORD = 2, 3
_MOST_PACKED = (256, 33_000)  # bytes that LZ4 and Zstandard can make of one
_SPARE = 1 << 12


class _Damaged(ValueError):
    """What the file says of itself cannot be."""


class _File:
    """Bytes of a file, read where they are asked for; not mapped, because it may be cut short meanwhile."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._size = file.seek(0, 2)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, part: slice) -> bytes:
        start, stop, _ = part.indices(self._size)
        self._file.seek(start)
        return self._file.read(max(0, stop - start))

    def unpack(self, kind: str, at: int) -> tuple[int, ...]:
        """Numbers from a place on."""
        return struct.unpack(kind, self[at : at + struct.calcsize(kind)])


def check_arrow(path: Path) -> None:
    """Refuse an Arrow file whose parts do not lie in it."""
    try:
        with path.open("rb") as file:
            _check(_File(file))
    except (ValueError, struct.error) as error:
        reason = str(error) if isinstance(error, _Damaged) else "it ends too early"
        raise TableError(
            f"Cannot read {str(path)!r}: {reason}. The file is damaged or not what its name says."
        ) from None


def _check(data: _File) -> None:
    if data[:6] != _MAGIC:
        raise _Damaged("it does not begin as an Arrow file does")
    if data[-6:] != _MAGIC:
        raise _Damaged("it does not end as an Arrow file does, so a part of it may be missing")
    end = len(data) - 10
    start = end - _number(data, "<i", end)
    if not 8 <= start < end:
        raise _Damaged("its footer does not lie in it")
    footer = start + _number(data, "<I", start)
    for slot in (2, 3):  # dictionaries, recordBatches
        for offset, described, body in _blocks(data, _field(data, footer, slot)):
            if offset < 8 or described < 0 or body < 0 or offset + described + body > start:
                raise _Damaged("its batches do not lie in it")
            _check_batch(data, offset, offset + described, body)


def _check_batch(data: _File, message: int, first: int, body: int) -> None:
    """Check the message of a batch, whose `body` bytes begin at `first`."""
    message += 8 if data[message : message + 4] == b"\xff\xff\xff\xff" else 4
    table = message + _number(data, "<I", message)
    kind = _number(data, "<B", _field(data, table, 1))
    batch = _table(data, _field(data, table, 2))
    if kind == _DICTIONARY:
        batch = _table(data, _field(data, batch, 1))
    elif kind != _RECORD:
        raise _Damaged("a batch is none")
    buffers = _pairs(data, _field(data, batch, 2))
    nodes = _pairs(data, _field(data, batch, 1))
    length = _field(data, batch, 0)
    rows = _number(data, "<q", length) if length else 0
    if rows < 0 or (nodes < 0).any() or (nodes[:, 1] > nodes[:, 0]).any() or (buffers < 0).any():
        raise _Damaged("a batch has impossible lengths")
    if (buffers > body).any() or (buffers.sum(axis=1) > body).any():
        raise _Damaged("its buffers do not lie in it")
    packed = _field(data, batch, 3)
    if packed:
        codec = _field(data, _table(data, packed), 0)
        most = _MOST_PACKED[_number(data, "<b", codec) == 1 if codec else 0]
        for offset, size in buffers[buffers[:, 1] > 0].tolist():
            unpacked = _number(data, "<q", first + offset)
            if unpacked < -1 or unpacked > most * size + _SPARE:
                raise _Damaged("a buffer states an impossible size")


# -- FlatBuffers: https://flatbuffers.dev/internals ----------------------------------------------------------


def _number(data: _File, kind: str, at: int) -> int:
    if at <= 0:  # struct would count from the end, and what is not there is at 0
        raise _Damaged("its description is broken")
    return data.unpack(kind, at)[0]


def _table(data: _File, at: int) -> int:
    return at + _number(data, "<I", at)


def _field(data: _File, table: int, slot: int) -> int:
    """Place of a field of a table, 0 where it is not there."""
    known = table - _number(data, "<i", table)
    if 4 + 2 * slot >= _number(data, "<H", known):
        return 0
    offset = _number(data, "<H", known + 4 + 2 * slot)
    return table + offset if offset else 0


def _vector(data: _File, at: int, size: int) -> tuple[int, int]:
    """Place and length of a vector of structs of `size` bytes."""
    if not at:
        return 0, 0
    place = _table(data, at)
    count = _number(data, "<I", place)
    if place + 4 + count * size > len(data):
        raise _Damaged("a list is longer than the file")
    return place + 4, count


def _pairs(data: _File, at: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    place, count = _vector(data, at, 16)
    return np.frombuffer(data[place : place + 16 * count], "<i8").reshape(-1, 2)


def _blocks(data: _File, at: int) -> Iterator[tuple[int, int, int]]:
    place, count = _vector(data, at, 24)
    for i in range(count):
        offset, described, body = data.unpack("<qixxxxq", place + 24 * i)
        yield offset, described, body
