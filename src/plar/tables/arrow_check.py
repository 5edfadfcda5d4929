"""A look at a packed Arrow file before polars reads it: one that states a size it cannot hold would end the process.

Names are those of https://arrow.apache.org/docs/format/Columnar.html and https://flatbuffers.dev/internals.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

from plar.errors import TableError

__all__ = ["check_arrow"]

_DICTIONARY = 2
_MOST_PACKED = (256, 33_000)  # bytes that LZ4 and Zstandard can make of one
_SPARE = 1 << 12


def check_arrow(path: Path) -> None:
    """Refuse a file with a buffer that states an impossible size unpacked: polars asks for as much memory."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            damaged = _overstates(data)
        except (struct.error, ValueError):  # polars finds out itself
            damaged = False
    if damaged:
        raise TableError(
            f"Cannot read {str(path)!r}: a buffer states an impossible size. "
            "The file is damaged or not what its name says."
        )


def _overstates(data: mmap.mmap) -> bool:
    end = len(data) - 10
    footer = _follow(data, end - _number(data, "<i", end))
    for slot in (2, 3):  # dictionaries, recordBatches
        blocks, n_blocks = _vector(data, _field(data, footer, slot))
        for block in range(blocks, blocks + 24 * n_blocks, 24):
            offset, described, _ = struct.unpack_from("<qixxxxq", data, block)
            message = _follow(data, offset + (8 if data[offset : offset + 4] == b"\xff\xff\xff\xff" else 4))
            batch = _follow(data, _field(data, message, 2))
            if _number(data, "<B", _field(data, message, 1)) == _DICTIONARY:
                batch = _follow(data, _field(data, batch, 1))
            packed = _field(data, batch, 3)
            if not packed:
                continue
            codec = _field(data, _follow(data, packed), 0)
            most = _MOST_PACKED[_number(data, "<b", codec) == 1 if codec else 0]
            buffers, n_buffers = _vector(data, _field(data, batch, 2))
            for at, size in struct.iter_unpack("<qq", data[buffers : buffers + 16 * n_buffers]):
                if size > 0 and not -1 <= _number(data, "<q", offset + described + at) <= most * size + _SPARE:
                    return True
    return False


def _number(data: mmap.mmap, kind: str, at: int) -> int:
    return int(struct.unpack_from(kind, data, at)[0])


def _follow(data: mmap.mmap, at: int) -> int:
    return at + _number(data, "<I", at)


def _field(data: mmap.mmap, table: int, slot: int) -> int:
    """Place of a field of a table, 0 where it is not there."""
    known = table - _number(data, "<i", table)
    if 4 + 2 * slot >= _number(data, "<H", known):
        return 0
    offset = _number(data, "<H", known + 4 + 2 * slot)
    return table + offset if offset else 0


def _vector(data: mmap.mmap, at: int) -> tuple[int, int]:
    """Where the entries of a vector begin, and how many there are."""
    place = _follow(data, at) if at else 0
    return place + 4, _number(data, "<I", place) if at else 0
