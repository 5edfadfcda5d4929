"""Find where a text file can be split into parts of whole rows, by scanning its byte ranges independently.

Whether a line end is the end of a row depends on all quotes before it. So a range is scanned from every state
that it may begin in, all at once, and the scans are combined afterwards.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from plar.files.find import cut_short
from plar.input.text.chunks import open_bytes
from plar.input.text.dialect import LINE_END, SEPARATOR, Dialect
from plar.input.text.headers import Header
from plar.input.text.quotes import FRESH, PLAIN, WITHIN, scan_rows


class Scan(NamedTuple):
    """What scanning a range of bytes found, for each of the states it may begin in: FRESH, PLAIN, WITHIN."""

    #: the state in which it ends
    states: tuple[int, ...]
    #: bytes and lines up to the end of its first row, 0 if no row ends in it
    row_ends: tuple[int, ...]
    row_lines: tuple[int, ...]
    #: line ends in the whole range
    lines: int


def can_be_divided(path: Path, encoding: str) -> bool:
    """Whether a file can be read from any byte on: it is neither decompressed nor recoded on the way."""
    with open_bytes(path, encoding) as file:
        return isinstance(file.raw, io.BufferedReader)


def scan_range(path: Path, low: int, high: int, dialect: Dialect) -> Scan:
    """Scan a byte range of a file."""
    with open_bytes(path, "utf-8") as file:
        file.seek(low)
        data = file.read(high - low)
    if len(data) < high - low:
        raise cut_short(path)
    return scan(data, dialect)


def scan(data: bytes, dialect: Dialect) -> Scan:
    r"""Scan bytes from anywhere in a file, at least one.

    >>> of_part = scan(b'x"\n1,2\n', Dialect(","))
    >>> of_part.row_ends[PLAIN], of_part.row_ends[WITHIN], of_part.lines
    (3, 3, 2)
    >>> scan(b'a\nb",c\n', Dialect(",")).row_ends[WITHIN]
    7
    """
    kinds = dialect.kinds
    quote = dialect.quotes[:1].encode()
    if dialect.multiline and quote in data:
        array = np.frombuffer(data, np.uint8)
        size = np.uint64(len(data))
        fresh = scan_rows(array, size, kinds, FRESH)
        within = scan_rows(array, size, kinds, WITHIN)
        # these two states differ only in what a quote means
        plain = scan_rows(array, size, kinds, PLAIN) if data.startswith(quote) else fresh
        states = tuple(state for state, _, _ in (fresh, plain, within))
        ends = tuple(int(end) for _, end, _ in (fresh, plain, within))
    else:
        # no quote opens or closes, so quoted text stays quoted
        last = FRESH if kinds[data[-1]] & (SEPARATOR | LINE_END) else PLAIN
        end = data.find(b"\n") + 1
        states = (last, last, WITHIN)
        ends = (end, end, 0)
    return Scan(states, ends, tuple(data.count(b"\n", 0, end) for end in ends), data.count(b"\n"))


def divided(header: Header, scans: Sequence[tuple[int, int, Scan]]) -> list[Header]:
    """Headers of the parts of a file: where each begins, at which line, and where it ends.

    `scans` are (low, high, scan) of consecutive ranges, from the first row to the end of the file.
    """
    begins = [(header.size, header.lines)]
    file_end = scans[-1][1]
    lines = header.lines
    state = FRESH
    for number, (low, _, of_range) in enumerate(scans):
        row_end = of_range.row_ends[state]
        if number and row_end and low + row_end < file_end:
            begins.append((low + row_end, lines + of_range.row_lines[state]))
        lines += of_range.lines
        state = of_range.states[state]
    ends = [begin for begin, _ in begins[1:]] + [file_end]
    return [replace(header, size=at, lines=line, end=end) for (at, line), end in zip(begins, ends, strict=True)]
