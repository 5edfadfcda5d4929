"""Repeated rows: each distinct row is kept once, and a line that was read before is not coded again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from plar.input.text.distinct import SPARE, Bytes, Distinct, Index, find_lines, hash_rows

#: among this many rows some must be equal; up to this share of distinct rows it pays to look for equal ones
_TRIED, _DISTINCT = 1 << 14, 0.75
#: bytes of a chunk, added at once
_ROOM = 1 << 20
_NONE = 0xFFFFFFFF


class Repeats:
    """Distinct rows of codes, with their counts and first places; up to this many bytes of rows, and of lines.

    If rows are `whole` lines, all fields of which are coded, then rows of different lines are not compared, as long as
    lines are kept: hardly any are equal.
    """

    def __init__(self, width: int, n_bytes: int, whole: bool) -> None:
        self._width, self._most, self._lines_pay, self._whole = width, n_bytes, True, whole
        #: whether no two rows are equal
        self.distinct = True
        self._type: np.dtype[np.unsignedinteger] = np.dtype(np.uint8)
        #: where the lines of a chunk end, and their hashes
        self._room = np.empty((2, 0), np.uint64)
        self._clear()

    def _clear(self) -> None:
        room = self._most + _ROOM
        self._rows, self._lines, self._seen = Distinct(room), Distinct(room), 0
        #: chunk, its first new row, its new rows
        self._runs: list[tuple[int, int, int]] = []
        #: the row of each line, chunk by chunk, and those of the current chunk
        self._became: list[Index] = []
        self._now, self._keeps_lines = np.empty(0, np.uint32), True
        #: further counts of the rows that were kept as bytes before there were too many codes
        self._counted = np.empty(0, np.uint64)

    @property
    def full(self) -> bool:
        """Whether the rows should be taken, to start over."""
        return self._rows.filled >= self._most

    def pay(self) -> bool:
        """Whether to continue: some rows were equal to others, and many by the time there is no more room."""
        if self.full:
            return self._rows.made < _DISTINCT * self._seen
        return self._seen < _TRIED or self._rows.made < self._seen

    def new_lines(self, data: Bytes, end: int) -> tuple[Bytes, int, Index] | None:
        """Return the lines of a chunk that were not read before, and their numbers; None if that does not pay.

        The last of the numbers is how many lines there are.
        """
        if not self._lines_pay:
            return None
        if self._room.shape[1] <= end:
            self._room = np.empty((2, end + 1), np.uint64)
        bounds, hashes = self._room
        n = find_lines(data, np.uint64(end), bounds, hashes)
        begin, keep = self._lines.filled, self._lines.filled < self._most
        self._keeps_lines = keep
        _, new = self._lines.add(data, bounds[: n + 1], hashes, keep)
        self._now = np.full(len(new), _NONE, np.uint32)
        if keep:
            self._became.append(self._now)
        known = n - len(new)
        self._seen += known
        self._lines_pay = known >= (1 - _DISTINCT) * n if not keep else self._lines.made < _TRIED or self._seen > 0
        size = int((bounds[new + np.uint32(1)] - bounds[new]).sum())
        return self._lines.arena[begin:], size, np.append(new + np.uint32(1), np.uint32(n))

    def add(self, rows: Index, lines: Index | None, chunk: int, n_codes: int) -> None:
        """Add rows, of at most this many codes; `lines`: the new line that each comes from, if any."""
        if n_codes > 256 and self._type.itemsize == 1:
            kept, self._counted = self._kept, self._rows.counts - np.uint64(1)
            self._rows, self._type = Distinct(self._most + _ROOM), np.dtype(np.uint32)
            self._number(kept, self.distinct)
        before, compare = self._rows.made, lines is None or not (self._whole and self._keeps_lines)
        self.distinct = self.distinct and compare
        numbers = self._number(rows, compare)
        if self._rows.made > before:
            self._runs.append((chunk, before, self._rows.made - before))
        self._seen += len(rows)
        if lines is not None:
            self._now[lines - np.uint32(1)] = numbers

    def _number(self, rows: NDArray[np.unsignedinteger], compare: bool) -> Index:
        """Keep rows as bytes, only those that are not kept yet if they are to be compared."""
        size = self._width * self._type.itemsize
        strings = np.empty(len(rows) * size + SPARE, np.uint8)
        strings[:-SPARE].view(self._type).reshape(rows.shape)[...] = rows
        if not compare:
            return self._rows.append(strings, len(rows))
        hashes = np.empty(len(rows), np.uint64)
        hash_rows(strings, np.uint64(size), hashes)
        return self._rows.add(strings, np.arange(len(rows) + 1, dtype=np.uint64) * np.uint64(size), hashes)[0]

    @property
    def _kept(self) -> NDArray[np.unsignedinteger]:
        return self._rows.arena[: self._rows.filled].view(self._type).reshape(-1, self._width)

    def take(self) -> tuple[NDArray[np.unsignedinteger], NDArray[np.int64], list[tuple[int, int, int]]]:
        """Return the distinct rows, their counts, and (chunk, first row, rows) of their first places; start over."""
        counts = self._rows.counts
        counts[: len(self._counted)] += self._counted
        if self._became:
            became, again = np.concatenate(self._became), self._lines.counts - np.uint64(1)
            rows = became != _NONE  # others are blank, or comments
            np.add.at(counts, became[rows], again[rows])
        taken = self._kept, counts.astype(np.int64), self._runs
        self._clear()
        return taken
