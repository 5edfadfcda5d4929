"""Values in quotes: where they end, what they hold without escapes, and which line ends lie outside them."""

from __future__ import annotations

import numpy as np

from plar.grouping.factorize import Bytes
from plar.input.text.dialect import BLANK, COMMENT, LINE_END, QUOTE, SEPARATOR, Dialect
from plar.runtime.jit import borrowing

#: where a byte may be: at the start of a field or after a closing quote
FRESH = 0
#: in a field without quotes
PLAIN = 1
#: in quotes
WITHIN = 2

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_TWO = np.uint64(2)
_LF = np.uint8(ord("\n"))
_CR = np.uint8(ord("\r"))
_PERCENT = np.uint8(ord("%"))
_BACKSLASH = np.uint8(ord("\\"))


@borrowing
def closing_quote(
    data: Bytes, start: np.uint64, end: np.uint64, mark: np.uint8, runs: bool, padded: bool
) -> tuple[np.uint64, np.uint64, np.uint64]:
    """Where the quote is that closes a value, `end` if there is none; and the value's escapes and line ends."""
    i = start
    n_escapes = _ZERO
    n_breaks = _ZERO
    while i < end:
        byte = data[i]
        if padded and byte == _BACKSLASH and data[i + _ONE] != _LF:
            n_escapes += _ONE
            i += _TWO
        elif byte == mark:
            if padded or data[i + _ONE] != mark:
                return i, n_escapes, n_breaks
            n_escapes += _ONE
            i += _TWO
        elif byte == _LF and (runs or padded):  # a value does not hold line ends
            break
        else:
            n_breaks += np.uint64(byte == _LF)
            i += _ONE
    return end, n_escapes, n_breaks


@borrowing
def unescape(
    data: Bytes,
    start: np.uint64,
    close: np.uint64,
    mark: np.uint8,
    kinds: Bytes,
    padded: bool,
    arena: Bytes,
    to: np.uint64,
) -> np.uint64:
    """Write a value without its escapes to a place in the arena; return its length."""
    i = start
    place = to
    while i < close:
        if data[i] == mark and not padded:
            i += _ONE
        elif padded and data[i] == _BACKSLASH:
            after = data[i + _ONE]
            if after in (_BACKSLASH, _PERCENT) or kinds[after] & QUOTE:
                i += _ONE
        arena[place] = data[i]
        place += _ONE
        i += _ONE
    return place - to


@borrowing
def end_after_quote(data: Bytes, start: np.uint64, kinds: Bytes, padded: bool) -> np.uint64:
    """Where a field ends whose closing quote is just before."""
    i = start
    if padded:
        i = skip_blanks(data, i, kinds)
    while data[i] == _CR:
        i += _ONE
    return i


@borrowing
def skip_blanks(data: Bytes, start: np.uint64, kinds: Bytes) -> np.uint64:
    """The first byte that is not blank."""
    i = start
    while kinds[data[i]] & BLANK:
        i += _ONE
    return i


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
