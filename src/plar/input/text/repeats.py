"""Repeated rows: each distinct row is kept once, and a line that was read before is not coded again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plar.grouping.factorize import Bytes
from plar.grouping.partition import Index, Ints, U64Array
from plar.input.text.distinct import PADDING, Distinct, find_lines, hash_rows

#: among this many rows some must be equal for it to pay to look for equal ones
_ROWS_ON_TRIAL = 1 << 14
#: up to this share of distinct rows it pays
_MAX_DISTINCT_SHARE = 0.75
#: bytes of a chunk, added at once
_CHUNK_BYTES = 1 << 20
#: in place of a row: a line that is blank or a comment
_NO_ROW = 0xFFFFFFFF
#: more codes take more than a byte each
_CODES_IN_A_BYTE = 256


class NewLines(NamedTuple):
    """The lines of a chunk that were not read before."""

    data: Bytes
    #: how many bytes of the data they are
    end: int
    #: the number of each in its chunk, from 1 on; and finally how many lines the chunk has
    numbers: Index


class Repeats:
    """Distinct rows of codes, with their counts and first places; up to this many bytes of rows, and of lines.

    If rows are `whole_lines`, all fields of which are coded, then rows of different lines are not compared,
    as long as lines are kept: hardly any are equal.
    """

    def __init__(self, width: int, max_bytes: int, whole_lines: bool) -> None:
        self._max_bytes = max_bytes
        self._whole_lines = whole_lines
        #: whether no two rows are equal
        self.distinct = True
        self._rows = _DistinctRows(width, max_bytes)
        self._lines = _DistinctLines(max_bytes)
        #: rows, with their repetitions
        self._n_seen = 0
        #: chunk, its first new row, its new rows
        self._runs: list[tuple[int, int, int]] = []

    @property
    def full(self) -> bool:
        """Whether the rows should be taken, to start over."""
        return self._rows.n_bytes >= self._max_bytes

    def is_worthwhile(self) -> bool:
        """Whether to continue: some rows were equal to others, and many by the time the limit of bytes is reached."""
        if self.full:
            return self._rows.n_rows < _MAX_DISTINCT_SHARE * self._n_seen
        return self._n_seen < _ROWS_ON_TRIAL or self._rows.n_rows < self._n_seen

    def new_lines(self, data: Bytes, end: int) -> NewLines | None:
        """Return the lines of a chunk that were not read before; None if that does not pay."""
        if not self._lines.lookups_pay:
            return None
        new = self._lines.add(data, end)
        n_lines = int(new.numbers[-1])
        n_repeated = n_lines - (len(new.numbers) - 1)
        self._n_seen += n_repeated
        self._lines.weigh_lookups(n_lines, n_repeated, self._n_seen)
        return new

    def add(self, rows: Index, lines: Index | None, chunk: int, n_codes: int) -> None:
        """Add rows, of at most this many codes; `lines`: the new line that each comes from, if any."""
        if n_codes > _CODES_IN_A_BYTE:
            self._rows.widen(self.distinct)
        n_before = self._rows.n_rows
        compare = lines is None or not (self._whole_lines and self._lines.keeps_chunk)
        self.distinct = self.distinct and compare
        numbers = self._rows.add(rows, compare)
        n_new = self._rows.n_rows - n_before
        if n_new:
            self._runs.append((chunk, n_before, n_new))
        self._n_seen += len(rows)
        if lines is not None:
            self._lines.assign(lines, numbers)

    def take(self) -> tuple[NDArray[np.unsignedinteger], Ints, list[tuple[int, int, int]]]:
        """Return the distinct rows, their counts, and (chunk, first row, rows) of their first places; start over."""
        rows = self._rows.codes
        counts = self._rows.counts()
        self._lines.add_repetitions(counts)
        runs = self._runs
        self._rows.clear()
        self._lines.clear()
        self._n_seen = 0
        self._runs = []
        return rows, counts.astype(np.int64), runs


class _DistinctRows:
    """Distinct rows of codes, kept as strings of bytes."""

    def __init__(self, width: int, max_bytes: int) -> None:
        self._width = width
        self._max_bytes = max_bytes
        self._type: np.dtype[np.unsignedinteger] = np.dtype(np.uint8)
        self.clear()

    def clear(self) -> None:
        self._strings = Distinct(self._max_bytes + _CHUNK_BYTES)
        #: how often rows were repeated before `widen` moved them
        self._repetitions: U64Array = np.empty(0, np.uint64)

    @property
    def n_rows(self) -> int:
        return self._strings.n_strings

    @property
    def n_bytes(self) -> int:
        return self._strings.n_bytes

    @property
    def codes(self) -> NDArray[np.unsignedinteger]:
        return self._strings.arena[: self._strings.n_bytes].view(self._type).reshape(-1, self._width)

    def counts(self) -> U64Array:
        """How often each row was added."""
        counts = self._strings.counts
        counts[: len(self._repetitions)] += self._repetitions
        return counts

    def add(self, rows: NDArray[np.unsignedinteger], compare: bool) -> Index:
        """Keep rows and return their numbers; if they are to be compared, only those that are not kept yet."""
        row_bytes = self._width * self._type.itemsize
        strings = np.empty(len(rows) * row_bytes + PADDING, np.uint8)
        strings[:-PADDING].view(self._type).reshape(rows.shape)[...] = rows
        if not compare:
            return self._strings.append(strings, len(rows))
        hashes = np.empty(len(rows), np.uint64)
        hash_rows(strings, np.uint64(row_bytes), hashes)
        bounds = np.arange(len(rows) + 1, dtype=np.uint64) * np.uint64(row_bytes)
        numbers, _ = self._strings.add(strings, bounds, hashes)
        return numbers

    def widen(self, compare: bool) -> None:
        """Store codes in more than one byte from now on, and those of the rows that are kept already."""
        if self._type.itemsize > 1:
            return
        rows = self.codes
        repetitions = self._strings.counts - np.uint64(1)
        self._type = np.dtype(np.uint32)
        self.clear()
        self._repetitions = repetitions
        self.add(rows, compare)


class _DistinctLines:
    """Distinct lines, and the rows that they became."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        #: whether it pays to look lines up
        self.lookups_pay = True
        #: where the lines of a chunk end, and their hashes
        self._buffer: U64Array = np.empty((2, 0), np.uint64)
        self.clear()

    def clear(self) -> None:
        self._strings = Distinct(self._max_bytes + _CHUNK_BYTES)
        #: whether those of the current chunk are kept
        self.keeps_chunk = True
        #: the row of each line that is kept, chunk by chunk
        self._rows_by_chunk: list[Index] = []
        #: the row of each new line of the current chunk
        self._rows: Index = np.empty(0, np.uint32)

    def add(self, data: Bytes, end: int) -> NewLines:
        """Return the lines of a chunk that are not kept yet, and keep them, unless there are too many already."""
        if self._buffer.shape[1] <= end:
            self._buffer = np.empty((2, end + 1), np.uint64)
        bounds, hashes = self._buffer
        n_lines = find_lines(data, np.uint64(end), bounds, hashes)
        begin = self._strings.n_bytes
        self.keeps_chunk = begin < self._max_bytes
        _, new = self._strings.add(data, bounds[: n_lines + 1], hashes, self.keeps_chunk)
        self._rows = np.full(len(new), _NO_ROW, np.uint32)
        if self.keeps_chunk:
            self._rows_by_chunk.append(self._rows)
        n_bytes = int((bounds[new + np.uint32(1)] - bounds[new]).sum())
        numbers = np.append(new + np.uint32(1), np.uint32(n_lines))
        return NewLines(self._strings.arena[begin:], n_bytes, numbers)

    def weigh_lookups(self, n_lines: int, n_repeated: int, n_seen: int) -> None:
        """Decide whether to look lines up from now on, by those of a chunk and by how many repeated rows there are."""
        if self.keeps_chunk:
            self.lookups_pay = self._strings.n_strings < _ROWS_ON_TRIAL or n_seen > 0
        else:
            self.lookups_pay = n_repeated >= (1 - _MAX_DISTINCT_SHARE) * n_lines

    def assign(self, lines: Index, rows: Index) -> None:
        """Note the rows that some new lines of the current chunk became, given by their numbers from 1 on."""
        self._rows[lines - np.uint32(1)] = rows

    def add_repetitions(self, counts: U64Array) -> None:
        """Add to the counts of rows how often their lines were repeated."""
        if not self._rows_by_chunk:
            return
        rows = np.concatenate(self._rows_by_chunk)
        repetitions = self._strings.counts - np.uint64(1)
        are_rows = rows != _NO_ROW
        np.add.at(counts, rows[are_rows], repetitions[are_rows])
