"""Bytes of text to dictionary codes: one loop that knows separators, quotes, comments, blank lines and ragged rows.

A dictionary is kept for all columns together. Fields of at most one byte are looked up in a table, `short`; all others
by hashing, fields of up to eight bytes by their bytes, longer ones by a hash and then a comparison.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from plar.grouping.factorize import mix
from plar.input.text.dictionary import COLUMN, SPREAD, Entries, find_entry, word_of
from plar.input.text.distinct import Bytes, Counts, Index, Words, eight_bytes, matches
from plar.runtime.jit import jit

#: roles of a byte outside quotes
SEPARATOR, LINE_END, COMMENT, QUOTE, BLANK = np.uint8(1), np.uint8(2), np.uint8(4), np.uint8(8), np.uint8(16)
#: bytes that end a field without quotes
_STOP = np.uint8(7)
#: where a byte may be: at the start of a field or after a closing quote, in a field without quotes, or in quotes
FRESH, PLAIN, WITHIN = 0, 1, 2
#: how `tokenize` ended: everything read, no room for another row, or a faulty row; the last is found before
DONE, ROOM, RAGGED, STRAY, UNCLOSED, LONE_CR = 0, 1, 2, 3, 4, 5
#: in `short`, an empty field
EMPTY = np.uint64(256)

_ZERO, _ONE, _EIGHT = np.uint64(0), np.uint64(1), np.uint64(8)
_CR, _LF, _BACKSLASH = np.uint8(13), np.uint8(10), np.uint8(92)
_NONE = np.uint32(0xFFFFFFFF)
_EACH = np.uint64(0x0101010101010101)


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
    ends: Words = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Tabulate the bytes for the kernels."""
        kinds = np.zeros(256, np.uint8)
        for marks, kind in [(" \t", BLANK), ("\n", LINE_END), (self.quotes, QUOTE), (self.comment, COMMENT)]:
            kinds[list(marks.encode())] |= kind
        if not self.runs:
            kinds[ord(self.separator)] = 0
        kinds[list(b" \t" if self.runs else self.separator.encode())] |= SEPARATOR
        ends = (self.separator + "\n" + ("\t" if self.runs else self.comment or "\n")).encode()
        object.__setattr__(self, "kinds", kinds)
        object.__setattr__(self, "ends", np.array([end * 0x0101010101010101 for end in ends], np.uint64))

    @property
    def runs(self) -> bool:
        """Whether a run of blanks counts as one separator."""
        return self.separator == " "

    @property
    def multiline(self) -> bool:
        """Whether a value in quotes may hold line ends."""
        return not self.runs and not self.padded


@jit
def scan_rows(data: Bytes, end: np.uint64, kinds: Bytes, state: int) -> tuple[int, np.uint64, np.uint64]:
    """The state at the end of data that begin in a given one, and where its first and last rows end, 0 if none does.

    Within quotes, quotes are doubled.
    """
    i, first, last = _ZERO, _ZERO, _ZERO
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
            first, last = first or i, i
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


@jit
def _find_lone_cr(data: Bytes, end: np.uint64, kinds: Bytes, padded: bool, multiline: bool) -> np.uint64:
    i, fresh = _ZERO, True
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


@jit
def tokenize(
    data: Bytes,
    end: np.uint64,
    dialect: tuple[Bytes, Words, bool, bool],
    wanted: Index,
    state: Counts,
    chunk: np.uint64,
    short: Index,
    slots: Index,
    entries: Entries,
    n_codes: Index,
    arena: Bytes,
    rows: Index,
    lines: Index,
) -> int:
    """Code the rows of a chunk until its end, or until there is no room for another one; return how it ended.

    The data are whole rows, each with a line end, and without a `lone_cr`. `dialect` has its `kinds`, `ends`, `runs`
    and `padded`; `wanted` for each field of a row its place among the columns that are coded, 2^32 - 1 for those that
    are not; `short` code + 1 of fields of one byte and none. `rows` and `lines` are written. In `state`, in and out:
    where the next row begins, its line, entries and bytes of the dictionary; out: the fields of a row at fault, and how
    many rows there are.
    """
    kinds, ends, runs, padded = dialect
    fields, used = np.uint64(len(wanted)), np.uint64(len(n_codes))
    pos, line = np.uint64(state[0]), np.uint64(state[1])
    made, filled = np.uint64(state[2]), np.uint64(state[3])
    n_rows, ended = _ZERO, DONE
    separator, mask = np.uint8(ends[0]), np.uint64(len(slots)) - _ONE
    j = _ZERO
    while pos < end:
        i = pos
        # blank lines and comment lines are not rows
        first = kinds[data[i]]
        if (first & (BLANK | LINE_END | COMMENT)) or data[i] == _CR:
            while (kinds[data[i]] & BLANK) or data[i] == _CR:
                i += _ONE
            if kinds[data[i]] & COMMENT:
                while data[i] != _LF:
                    i += _ONE
            if data[i] == _LF:
                pos = i + _ONE
                line += _ONE
                continue
            i = pos
        if n_rows == np.uint64(len(rows)) or made + used > np.uint64(len(entries)):
            ended = ROOM
            break
        j = _ZERO
        breaks = _ZERO
        while True:
            if runs or padded:
                while kinds[data[i]] & BLANK:
                    i += _ONE
                if runs and j > _ZERO and (data[i] == _LF or data[i] == _CR):
                    while data[i] != _LF:
                        i += _ONE
                    break
            # a field of one byte, the most frequent one
            if data[i + _ONE] == separator and kinds[data[i]] == 0 and j < fields and wanted[j] != _NONE:
                code = short[np.uint64(data[i]), np.uint64(wanted[j])]
                if code != 0:
                    rows[n_rows, np.uint64(wanted[j])] = code - np.uint32(1)
                    j += _ONE
                    i += np.uint64(2)
                    continue
            start, length, flag, inside, word, known = i, _ZERO, _ZERO, False, _ZERO, False
            if kinds[data[i]] & QUOTE:
                mark = data[i]
                i += _ONE
                start = i
                flag = _ONE if padded else _ZERO
                escaped = _ZERO
                while i < end:
                    b = data[i]
                    if padded and b == _BACKSLASH and data[i + _ONE] != _LF:
                        escaped += _ONE
                        i += np.uint64(2)
                        continue
                    if b == mark:
                        if padded or data[i + _ONE] != mark:
                            break
                        escaped += _ONE
                        i += np.uint64(2)
                        continue
                    if b == _LF:
                        if runs or padded:  # a value does not hold line ends
                            break
                        breaks += _ONE
                    i += _ONE
                if i >= end or data[i] != mark:
                    ended = UNCLOSED
                    break
                length = i - start
                i += _ONE
                if escaped:
                    # the value without its escapes, in the free part of the arena
                    inside, k, to = True, start, filled
                    while k < i - _ONE:
                        if data[k] == mark and not padded:
                            k += _ONE
                        elif padded and data[k] == _BACKSLASH:
                            after = data[k + _ONE]
                            if after == _BACKSLASH or after == np.uint8(37) or kinds[after] & QUOTE:
                                k += _ONE
                        arena[to] = data[k]
                        to += _ONE
                        k += _ONE
                    start, length = filled, to - filled
                if padded:
                    while kinds[data[i]] & BLANK:
                        i += _ONE
                while data[i] == _CR:
                    i += _ONE
                if kinds[data[i]] & _STOP == 0:
                    ended = STRAY
                    break
            else:
                eight = eight_bytes(data, i)
                found = matches(eight, ends[0]) | matches(eight, ends[1]) | matches(eight, ends[2])
                if found:
                    before = ((found & (~found + _ONE)) >> np.uint64(7)) - _ONE
                    word, known = eight & before, True
                    i += ((before & _EACH) * _EACH) >> np.uint64(56)
                else:
                    i += _EIGHT
                    while kinds[data[i]] & _STOP == 0:
                        i += _ONE
                length = i - start
                if data[i] == _LF:
                    while length and data[start + length - _ONE] == _CR:
                        length -= _ONE
                        known = False
            if j < fields and wanted[j] != _NONE:
                column = np.uint64(wanted[j])
                meta = (column << COLUMN) | (length << _ONE) | flag
                # a variable for either array would count references, which costs more than all the rest
                if inside:
                    word = word_of(arena, start, length)
                elif not known:
                    word = word_of(data, start, length)
                brief = length < np.uint64(2) and flag == _ZERO
                if brief:
                    at = word if length else EMPTY
                    found_at = short[at, column]
                    code = found_at - np.uint32(1)
                else:
                    # most are found at once; a function call with all arrays would cost more
                    at = mix(word ^ (meta * SPREAD)) & mask
                    found_at = slots[at]
                    if (
                        found_at == 0
                        or entries[found_at - np.uint32(1)].word != word
                        or entries[found_at - np.uint32(1)].meta != meta
                        or length > _EIGHT
                    ):
                        if inside:
                            at, found_at = find_entry(arena, start, word, meta, slots, entries, arena)
                        else:
                            at, found_at = find_entry(data, start, word, meta, slots, entries, arena)
                    code = np.uint32(entries[found_at - np.uint32(1)].code) if found_at else np.uint32(0)
                if found_at == 0:
                    for n in range(_ZERO if inside else length):  # else it is there already
                        arena[filled + n] = data[start + n]
                    code = n_codes[column]
                    entries[made].word, entries[made].meta = word, meta
                    entries[made].place, entries[made].code = filled, code
                    entries[made].first = (chunk << np.uint64(32)) | line
                    n_codes[column] += np.uint32(1)
                    filled += length
                    made += _ONE
                    if brief:
                        short[at, column] = n_codes[column]
                    else:
                        slots[at] = made
                rows[n_rows, column] = code
            j += _ONE
            if kinds[data[i]] & SEPARATOR:
                i += _ONE
                continue
            while data[i] != _LF:  # a comment
                i += _ONE
            break
        if ended != DONE:
            break
        if j != fields:
            ended = RAGGED
            break
        lines[n_rows] = line
        n_rows += _ONE
        pos = i + _ONE
        line += breaks + _ONE
    state[0], state[1], state[2], state[3], state[4], state[5] = pos, line, made, filled, j, n_rows
    return ended
