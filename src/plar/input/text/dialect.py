"""How the fields of a text are separated, and, before they are read, where its rows end and which CRs end no line."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from plar.grouping.factorize import Bytes
from plar.grouping.partition import U64Array
from plar.runtime.jit import borrowing

#: roles of a byte outside quotes: one bit each
SEPARATOR = np.uint8(1)
LINE_END = np.uint8(2)
COMMENT = np.uint8(4)
QUOTE = np.uint8(8)
BLANK = np.uint8(16)

#: where a byte may be: at the start of a field or after a closing quote
FRESH = 0
#: in a field without quotes
PLAIN = 1
#: in quotes
WITHIN = 2

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_LF = np.uint8(ord("\n"))
_CR = np.uint8(ord("\r"))
_BACKSLASH = np.uint8(ord("\\"))


@dataclass(frozen=True, slots=True)
class Dialect:
    """How fields are separated."""

    #: one ASCII character; a blank means any run of blanks and tabs
    separator: str
    #: characters that may quote a value
    quotes: str = '"'
    #: what begins a comment, which extends to the end of the line; empty: no comments
    comment: str = ""
    #: as in ARFF: blanks may surround quotes, and a backslash escapes within them. Otherwise quotes are doubled
    padded: bool = False
    #: how a missing value is written, outside quotes
    missing: tuple[str, ...] = ()
    #: the role of each byte outside quotes
    kinds: Bytes = field(init=False, repr=False, compare=False)
    #: the bytes that end a field, each eight times in a word
    ends: U64Array = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Tabulate the bytes for the kernels."""
        kinds = np.zeros(256, np.uint8)
        for marks, kind in [(" \t", BLANK), ("\n", LINE_END), (self.quotes, QUOTE), (self.comment, COMMENT)]:
            kinds[list(marks.encode())] |= kind
        if self.runs:
            kinds[list(b" \t")] |= SEPARATOR
            third_end = "\t"
        else:
            kinds[ord(self.separator)] = SEPARATOR  # even if it is a tab, which is a blank otherwise
            third_end = self.comment or "\n"
        ends = [ord(end) * 0x0101010101010101 for end in (self.separator, "\n", third_end)]
        object.__setattr__(self, "kinds", kinds)
        object.__setattr__(self, "ends", np.array(ends, np.uint64))

    @property
    def runs(self) -> bool:
        """Whether a run of blanks counts as one separator."""
        return self.separator == " "

    @property
    def multiline(self) -> bool:
        """Whether a value in quotes may hold line ends."""
        return not self.runs and not self.padded


@borrowing
def scan_rows(data: Bytes, end: np.uint64, kinds: Bytes, state: int) -> tuple[int, np.uint64, np.uint64]:
    """The state at the end of data that begin in a given one, and where its first and last rows end, 0 if none does.

    Within quotes, quotes are doubled.
    """
    i = _ZERO
    first = _ZERO
    last = _ZERO
    while i < end:
        if state == WITHIN:
            while i < end and not kinds[data[i]] & QUOTE:
                i += _ONE
            if i < end:
                state = FRESH  # a doubled quote closes and reopens
                i += _ONE
            continue
        kind = kinds[data[i]]
        i += _ONE
        if state == FRESH and kind & QUOTE:
            state = WITHIN
            continue
        state = FRESH if kind & (SEPARATOR | LINE_END) else PLAIN
        if kind & LINE_END:
            first = first or i
            last = i
    return state, first, last


def lone_cr(data: Bytes, end: int, dialect: Dialect) -> int:
    r"""Position of the first CR in whole rows that is neither in quotes nor part of a line end; -1 if there is none.

    As in Python's csv module, several CRs may precede the LF of a line end.

    >>> rows = np.frombuffer(b'1,"a\rb"\r\n2\r,x\n', np.uint8)
    >>> lone_cr(rows, len(rows), Dialect(","))
    10
    """
    # a quick look that decides for all but odd files
    if not ((data[: end - 1] == _CR) & (data[1:end] != _LF)).any():
        return -1
    position = int(_find_lone_cr(data, np.uint64(end), dialect.kinds, dialect.padded, dialect.multiline))
    return -1 if position == end else position


@borrowing
def _find_lone_cr(data: Bytes, end: np.uint64, kinds: Bytes, padded: bool, multiline: bool) -> np.uint64:
    i = _ZERO
    fresh = True
    while i < end:
        kind = kinds[data[i]]
        if fresh and kind & QUOTE:
            mark = data[i]
            i += _ONE
            while i < end and data[i] != mark and (multiline or data[i] != _LF):
                i += np.uint64(2) if padded and data[i] == _BACKSLASH and data[i + _ONE] != _LF else _ONE
            i += _ONE  # a doubled quote closes and reopens
            continue
        if kind & COMMENT:
            while data[i] != _LF:
                i += _ONE
        if data[i] == _CR:
            after = i
            while data[after] == _CR:
                after += _ONE
            if data[after] != _LF:
                return i
            i = after
            continue
        if kind & (SEPARATOR | LINE_END | COMMENT):
            fresh = True
        elif not (padded and kind & BLANK):
            fresh = False
        i += _ONE
    return end


class ByteRoles(NamedTuple):
    """A dialect as the kernels take it; see `Dialect`."""

    kinds: Bytes
    ends: U64Array
    runs: bool
    padded: bool
