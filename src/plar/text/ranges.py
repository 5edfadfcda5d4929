"""Find where a text file can be split into parts of whole rows, by scanning its byte ranges independently.

Whether a line end is the end of a row depends on all quotes before it. So a range is scanned from every state that it
may begin in, all at once, and the scans are combined afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plar.errors import TableError
from plar.files import suffix_of
from plar.jit import jit
from plar.text.chunks import built_upon_ascii
from plar.text.dialect import Dialect, Header
from plar.text.distinct import Bytes, Counts
from plar.text.tokens import LINE_END, QUOTE, SEPARATOR

#: where a byte may be: at the start of a field, in an unquoted field, in quotes, after a closing quote
_FRESH, _PLAIN, _QUOTED, _CLOSED = range(4)
_OTHER, _SEPARATOR, _QUOTE, _LINE_END = range(4)
#: the state after a byte of each of these classes
_NEXT = {
    _FRESH: (_PLAIN, _FRESH, _QUOTED, _FRESH),
    _PLAIN: (_PLAIN, _FRESH, _PLAIN, _FRESH),
    _QUOTED: (_QUOTED, _QUOTED, _CLOSED, _QUOTED),
    _CLOSED: (_PLAIN, _FRESH, _QUOTED, _FRESH),
}
_UNKNOWN = -1


class Scan(NamedTuple):
    """What scanning a range of bytes found, for each of the four states it may begin in."""

    #: the state in which it ends
    states: tuple[int, ...]
    #: bytes and lines up to the end of its first row, -1 if no row ends in it
    row_ends: tuple[int, ...]
    row_lines: tuple[int, ...]
    #: line ends in the whole range
    lines: int


def can_be_divided(path: Path, encoding: str) -> bool:
    """Whether a file can be read from any byte on: it is not compressed, and its line ends are single bytes."""
    return not suffix_of(path)[1] and built_upon_ascii(encoding)


def scan_range(path: Path, low: int, high: int, dialect: Dialect) -> Scan:
    """Scan a byte range of a file."""
    try:
        with path.open("rb") as file:
            file.seek(low)
            data = file.read(high - low)
    except OSError as error:
        raise TableError(f"Cannot read {str(path)!r}: {error.strerror}. Check the file and its permissions.") from None
    if len(data) < high - low:
        raise TableError(f"Cannot read {str(path)!r}: it became shorter while it was being read. Check the file.")
    return scan(data, dialect)


def scan(data: bytes, dialect: Dialect) -> Scan:
    r"""Scan bytes from anywhere in a file.

    >>> found = scan(b'x"\n1,2\n', Dialect(","))
    >>> found.row_ends[_PLAIN], found.row_ends[_QUOTED], found.lines
    (3, 3, 2)
    >>> scan(b'a\nb",c\n', Dialect(",")).row_ends[_QUOTED]
    7
    """
    kinds = dialect.marks.kinds
    classes = np.zeros(256, np.uint8)
    classes[(kinds & SEPARATOR) != 0] = _SEPARATOR
    classes[(kinds & LINE_END) != 0] = _LINE_END
    if dialect.multiline:
        classes[(kinds & QUOTE) != 0] = _QUOTE
    if dialect.multiline and data.find(dialect.quotes[:1].encode()) >= 0:
        ends, lines = np.full(4, _UNKNOWN, np.int64), np.full(4, _UNKNOWN, np.int64)
        packed, n_lines = _scan(np.frombuffer(data, np.uint8), classes, _TABLE, ends, lines)
        states = tuple(int(packed) >> 2 * state & 3 for state in range(4))
        return Scan(states, tuple(ends.tolist()), tuple(lines.tolist()), int(n_lines))
    # no quote opens or closes, so quoted text stays quoted
    last = _FRESH if data and classes[data[-1]] in (_SEPARATOR, _LINE_END) else _PLAIN
    end = data.find(b"\n") + 1 or _UNKNOWN
    outside = (last if data else _FRESH, last if data else _PLAIN, _QUOTED, last if data else _CLOSED)
    row_ends = (end, end, _UNKNOWN, end)
    return Scan(outside, row_ends, tuple(min(end, 1) for end in row_ends), data.count(b"\n"))


def divided(header: Header, scans: Sequence[tuple[int, int, Scan]]) -> list[Header]:
    """Headers of the parts of a file: where each begins, at which line, and where it ends.

    `scans` are (low, high, scan) of consecutive ranges, from the first row to the end of the file.
    """
    begins, lines, state = [(header.size, header.lines)], header.lines, _FRESH
    for number, (low, _, found) in enumerate(scans):
        end = found.row_ends[state]
        if number and end != _UNKNOWN and low + end < scans[-1][1]:
            begins.append((low + end, lines + found.row_lines[state]))
        state, lines = found.states[state], lines + found.lines
    ends = [begin for begin, _ in begins[1:]] + [scans[-1][1]]
    return [replace(header, size=at, lines=line, end=end) for (at, line), end in zip(begins, ends, strict=True)]


def _packed_table() -> NDArray[np.uint8]:
    """The next states of all four, two bits each in one byte, indexed by the class of the byte read and the states."""
    table = np.zeros((4, 256), np.uint8)
    for kind in range(4):
        for packed in range(256):
            states = [_NEXT[packed >> 2 * s & 3][kind] for s in range(4)]
            table[kind, packed] = sum(state << 2 * s for s, state in enumerate(states))
    return table


_TABLE = _packed_table()


@jit
def _scan(
    data: Bytes, classes: Bytes, table: NDArray[np.uint8], ends: Counts, row_lines: Counts
) -> tuple[np.uint8, np.uint64]:
    packed, lines, unknown = np.uint8(0b11100100), np.uint64(0), 4
    for i in range(np.uint64(len(data))):
        kind = classes[data[i]]
        if kind == 3:
            lines += np.uint64(1)
            if unknown:
                for state in range(4):
                    if ends[state] < 0 and (packed >> np.uint8(2 * state)) & np.uint8(3) != 2:
                        ends[state], row_lines[state] = i + np.uint64(1), lines
                        unknown -= 1
        packed = table[kind, packed]
    return packed, lines
