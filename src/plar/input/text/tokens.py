"""Bytes of text to dictionary codes: one loop that knows separators, quotes, comments, blank lines and ragged rows.

A dictionary is kept for all columns together. Fields of at most one byte are looked up in a table, `short`;
all others by hashing, fields of up to eight bytes by their bytes, longer ones by a hash and then a
comparison.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from plar.grouping.factorize import Bytes, mix
from plar.grouping.partition import Index, U64Array
from plar.input.text.dialect import BLANK, COMMENT, LINE_END, QUOTE, SEPARATOR, ByteRoles
from plar.input.text.dictionary import (
    META_COLUMN_SHIFT,
    META_LENGTH_SHIFT,
    META_QUOTED,
    SPREAD,
    Entries,
    find_entry,
    word_of,
)
from plar.input.text.distinct import bytes_before, eight_bytes, matches, n_bytes_in
from plar.input.text.quotes import closing_quote, end_after_quote, skip_blanks, unescape
from plar.runtime.jit import borrowing, inlined

#: bytes that end a field without quotes
_STOP = SEPARATOR | LINE_END | COMMENT

#: how `tokenize` ended: everything is read
DONE = 0
#: no place for another row
FULL = 1
#: a row with another number of fields
RAGGED = 2
#: text after a closing quote
STRAY = 3
#: a quote that is not closed
UNCLOSED = 4
#: a CR that ends no line, which `quotes.lone_cr` finds before
LONE_CR = 5

#: in `Tables.short`, an empty field
EMPTY = np.uint64(256)
#: in place of a column: a field that is not coded
UNWANTED = np.uint32(0xFFFFFFFF)

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_TWO = np.uint64(2)
_EIGHT = np.uint64(8)
_LF = np.uint8(ord("\n"))
_CR = np.uint8(ord("\r"))


class Tables(NamedTuple):
    """What `tokenize` looks values up in, and adds new ones to, for all columns that are coded."""

    #: by byte, or EMPTY, and column: the code + 1 of a field of at most one byte, 0 if it is new
    short: Index
    #: of all values; `slots` finds those that are not in `short`
    slots: Index
    entries: Entries
    arena: Bytes
    #: how many codes each column has
    n_codes: Index


class CodedSoFar(NamedTuple):
    """How far the rows of a chunk are coded, and why no further."""

    #: where the next row begins, and its line
    position: int
    line: int
    #: entries of the dictionary, and bytes of its arena
    n_entries: int
    n_bytes: int
    #: rows that the last call wrote
    n_rows: int = 0
    #: fields of the row at fault
    n_fields: int = 0
    outcome: int = FULL


class _CodedRow(NamedTuple):
    """What `_code_row` made of a row."""

    #: where its line ends
    end: np.uint64
    n_fields: np.uint64
    #: line ends within its fields
    n_breaks: np.uint64
    #: of the dictionary
    n_entries: np.uint64
    n_bytes: np.uint64
    #: DONE, or what is wrong
    outcome: int


class _Value(NamedTuple):
    """A field without its quotes and escapes; one that had escapes is in the free part of the arena."""

    start: np.uint64
    length: np.uint64
    #: its `word_of`, if that is known already
    word: np.uint64
    has_word: bool
    escaped: bool
    #: META_QUOTED if it was quoted in an ARFF file, else 0
    flag: np.uint64


@borrowing
def tokenize(
    data: Bytes,
    end: np.uint64,
    chunk: np.uint64,
    roles: ByteRoles,
    wanted: Index,
    tables: Tables,
    rows: Index,
    lines: Index,
    progress: CodedSoFar,
) -> CodedSoFar:
    """Code the rows of a chunk until its end, until `rows` or the dictionary is full, or until a row is faulty.

    The data are whole rows, each with a line end, and without a lone CR. `wanted` has for each field of a
    row its place among the columns that are coded, or UNWANTED. The codes and the line of each row go into
    `rows` and `lines`.
    """
    kinds = roles.kinds
    n_columns = np.uint64(len(tables.n_codes))
    position = np.uint64(progress.position)
    line = np.uint64(progress.line)
    n_entries = np.uint64(progress.n_entries)
    n_bytes = np.uint64(progress.n_bytes)
    n_rows = _ZERO
    n_fields = _ZERO
    outcome = DONE
    while position < end:
        if (kinds[data[position]] & (BLANK | LINE_END | COMMENT)) or data[position] == _CR:
            after = _after_empty_line(data, position, kinds)
            if after != position:
                position = after
                line += _ONE
                continue
        if n_rows == np.uint64(len(rows)) or n_entries + n_columns > np.uint64(len(tables.entries)):
            outcome = FULL
            break
        first = (chunk << np.uint64(32)) | line
        row = _code_row(data, position, end, first, roles, wanted, tables, n_entries, n_bytes, rows, n_rows)
        n_fields = row.n_fields
        n_entries = row.n_entries
        n_bytes = row.n_bytes
        outcome = row.outcome
        if outcome == DONE and n_fields != np.uint64(len(wanted)):
            outcome = RAGGED
        if outcome != DONE:
            break
        lines[n_rows] = line
        n_rows += _ONE
        position = row.end + _ONE
        line += row.n_breaks + _ONE
    return CodedSoFar(
        int(position),
        int(line),
        int(n_entries),
        int(n_bytes),
        int(n_rows),
        int(n_fields),
        outcome,
    )


@inlined
def _code_row(
    data: Bytes,
    start: np.uint64,
    end: np.uint64,
    first: np.uint64,
    roles: ByteRoles,
    wanted: Index,
    tables: Tables,
    n_entries: np.uint64,
    n_bytes: np.uint64,
    rows: Index,
    row: np.uint64,
) -> _CodedRow:
    """Code one row, whose chunk and line are `first`."""
    kinds, ends, runs, padded = roles
    short = tables.short
    n_wanted = np.uint64(len(wanted))
    separator = np.uint8(ends[0])
    i = start
    j = _ZERO
    n_breaks = _ZERO
    outcome = DONE
    while True:
        if runs or padded:
            i = skip_blanks(data, i, kinds)
            if runs and j > _ZERO and (data[i] == _LF or data[i] == _CR):
                i = _line_end(data, i)
                break
        # a field of one byte, the most frequent one
        if data[i + _ONE] == separator and kinds[data[i]] == 0 and j < n_wanted and wanted[j] != UNWANTED:
            code_plus_1 = short[np.uint64(data[i]), np.uint64(wanted[j])]
            if code_plus_1 != 0:
                rows[row, np.uint64(wanted[j])] = code_plus_1 - np.uint32(1)
                j += _ONE
                i += _TWO
                continue
        start_of_value = i
        word = _ZERO
        has_word = False
        escaped = False
        quoted = bool(kinds[data[i]] & QUOTE)
        if quoted:
            start_of_value += _ONE
            close, n_escapes, n_within = closing_quote(data, start_of_value, end, data[i], runs, padded)
            if close == end:
                outcome = UNCLOSED
                break
            n_breaks += n_within
            length = close - start_of_value
            escaped = bool(n_escapes)
            if escaped:
                length = unescape(data, start_of_value, close, data[i], kinds, padded, tables.arena, n_bytes)
                start_of_value = n_bytes
            i = end_after_quote(data, close + _ONE, kinds, padded)
            if kinds[data[i]] & _STOP == 0:
                outcome = STRAY
                break
        else:
            i, word, has_word = _end_of_plain(data, start_of_value, kinds, ends)
            length = i - start_of_value
            if data[i] == _LF:
                while length and data[start_of_value + length - _ONE] == _CR:
                    length -= _ONE
                    has_word = False
        if j < n_wanted and wanted[j] != UNWANTED:
            column = np.uint64(wanted[j])
            flag = META_QUOTED if quoted and padded else _ZERO
            value = _Value(start_of_value, length, word, has_word, escaped, flag)
            code, n_entries, n_bytes = _code_value(data, value, column, first, tables, n_entries, n_bytes)
            rows[row, column] = code
        j += _ONE
        if kinds[data[i]] & SEPARATOR:
            i += _ONE
            continue
        i = _line_end(data, i)  # after a comment
        break
    return _CodedRow(i, j, n_breaks, n_entries, n_bytes, outcome)


@inlined
def _code_value(
    data: Bytes,
    value: _Value,
    column: np.uint64,
    first: np.uint64,
    tables: Tables,
    n_entries: np.uint64,
    n_bytes: np.uint64,
) -> tuple[np.uint32, np.uint64, np.uint64]:
    """Code of a value, and the entries and bytes of the dictionary, to which it is added if it is new."""
    short, slots, entries, arena, n_codes = tables
    start, length, word, has_word, escaped, flag = value
    meta = (column << META_COLUMN_SHIFT) | (length << META_LENGTH_SHIFT) | flag
    # a variable for either array would count references, which costs more than all the rest
    if escaped:
        word = word_of(arena, start, length)
    elif not has_word:
        word = word_of(data, start, length)
    is_short = length < _TWO and flag == _ZERO
    if is_short:
        place = word if length else EMPTY  # in `short`
        code_plus_1 = short[place, column]
        is_new = code_plus_1 == 0
        code = code_plus_1 - np.uint32(1)
    else:
        # most are found at once; a function call with all arrays would cost more
        place = mix(word ^ (meta * SPREAD)) & (np.uint64(len(slots)) - _ONE)  # in `slots`
        entry_plus_1 = slots[place]
        if (
            entry_plus_1 == 0
            or entries[entry_plus_1 - np.uint32(1)].word != word
            or entries[entry_plus_1 - np.uint32(1)].meta != meta
            or length > _EIGHT
        ):
            if escaped:
                place, entry_plus_1 = find_entry(arena, start, word, meta, slots, entries, arena)
            else:
                place, entry_plus_1 = find_entry(data, start, word, meta, slots, entries, arena)
        is_new = entry_plus_1 == 0
        code = np.uint32(0) if is_new else np.uint32(entries[entry_plus_1 - np.uint32(1)].code)
    if is_new:
        if not escaped:
            for n in range(length):
                arena[n_bytes + n] = data[start + n]
        code = n_codes[column]
        entries[n_entries].word = word
        entries[n_entries].meta = meta
        entries[n_entries].place = n_bytes
        entries[n_entries].first = first
        entries[n_entries].code = code
        n_codes[column] += np.uint32(1)
        n_entries += _ONE
        n_bytes += length
        if is_short:
            short[place, column] = n_codes[column]
        else:
            slots[place] = n_entries
    return code, n_entries, n_bytes


@borrowing
def _line_end(data: Bytes, start: np.uint64) -> np.uint64:
    """The first line end."""
    i = start
    while data[i] != _LF:
        i += _ONE
    return i


@borrowing
def _after_empty_line(data: Bytes, start: np.uint64, kinds: Bytes) -> np.uint64:
    """What follows a line that is blank or a comment; its start if it is neither, and so a row."""
    i = start
    while (kinds[data[i]] & BLANK) or data[i] == _CR:
        i += _ONE
    if kinds[data[i]] & COMMENT:
        i = _line_end(data, i)
    return i + _ONE if data[i] == _LF else start


@borrowing
def _end_of_plain(data: Bytes, start: np.uint64, kinds: Bytes, ends: U64Array) -> tuple[np.uint64, np.uint64, bool]:
    """Where a field without quotes ends; and, if it has fewer than eight bytes, these as a word."""
    eight = eight_bytes(data, start)
    stops = matches(eight, ends[0]) | matches(eight, ends[1]) | matches(eight, ends[2])
    if stops:
        before = bytes_before(stops)
        return start + n_bytes_in(before), eight & before, True
    i = start + _EIGHT
    while kinds[data[i]] & _STOP == 0:
        i += _ONE
    return i, _ZERO, False
