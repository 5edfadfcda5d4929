"""One thread's share of a text file: its own dictionary, and the rows that it has read."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plar.text import tokens
from plar.text.chunks import Chunk
from plar.text.dialect import Dialect
from plar.text.dictionary import Dictionary
from plar.text.distinct import Index
from plar.text.repeats import Repeats
from plar.text.rows import Block, Lut, groups_of, narrow, type_of

#: cells coded at a time, and the most cells of a block
_AT_ONCE, _BLOCK = 1 << 19, 1 << 23
_FEWEST = 64
#: bytes that the distinct rows of all threads may use, and at least those of one thread, before they are stored
_WINDOW, _LEAST_WINDOW = 1 << 28, 1 << 25
_NONE = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Fault:
    """A row that cannot be read: its chunk, its line there, what is wrong, and how many fields it has."""

    chunk: int
    line: int
    kind: int
    fields: int


class Worker:
    """Codes the wanted fields of chunks, one chunk after another; one of `n_jobs`."""

    def __init__(self, dialect: Dialect, wanted: list[int], n_fields: int, group: bool, n_jobs: int) -> None:
        used = len(wanted)
        self._dialect = dialect
        self._wanted = np.full(n_fields, _NONE, np.uint32)
        self._wanted[wanted] = np.arange(used, dtype=np.uint32)
        self._short = np.zeros((257, used), np.uint32)
        self.n_codes = np.zeros(used, np.uint32)
        self.dictionary = Dictionary.of(max(1024, 2 * used), 1 << 16)
        self._rows = np.empty((max(_FEWEST, _AT_ONCE // used), used), np.uint32)
        self._lines = np.empty(len(self._rows), np.uint32)
        self._repeats = Repeats(used, max(_WINDOW // n_jobs, _LEAST_WINDOW)) if group else None
        self._groups = groups_of(used)
        self._open: Block | None = None
        self.blocks: list[Block] = []
        self.fault: Fault | None = None
        #: file and lines of each chunk
        self.lines: dict[int, tuple[int, int]] = {}

    def learn(self, other: Worker) -> None:
        """Start with what another worker knows, so that both give the same codes to the same values."""
        self.dictionary, self._short, self.n_codes = deepcopy((other.dictionary, other._short, other.n_codes))

    def read(self, chunk: Chunk) -> bool:
        """Code the rows of a chunk; return whether it has a fault."""
        known, dialect, repeats = self.dictionary, self._dialect, self._repeats
        data, end, lines, before = chunk.data, chunk.end, None, known.made
        lines_are_rows = not dialect.multiline or chunk.room.find(dialect.quotes.encode(), 0, end) < 0
        if repeats is not None and lines_are_rows and (new := repeats.new_lines(data, end)):
            data, end, lines = new
        state, ended = np.array([0, 1, known.made, known.filled, 0, 0], np.int64), tokens.ROOM
        while ended == tokens.ROOM:
            known.reserve(len(self.n_codes), end - int(state[0]))
            ended = tokens.tokenize(
                data,
                np.uint64(end),
                dialect.marks,
                self._wanted,
                state,
                np.uint64(chunk.number),
                self._short,
                known.slots,
                known.entries,
                self.n_codes,
                known.arena,
                self._rows,
                self._lines,
            )
            known.made, known.filled, n_rows = int(state[2]), int(state[3]), int(state[5])
            if repeats is not None:
                from_lines = None if lines is None else self._lines[:n_rows]
                repeats.add(self._rows[:n_rows], from_lines, chunk.number, int(self.n_codes.max()))
            elif n_rows:
                self._append(self._rows[:n_rows], chunk.number)
        line, n_lines = int(state[1]), int(state[1]) - 1
        if lines is not None:
            # the tokenizer has only counted new lines
            firsts = known.entries["first"][before : known.made]
            firsts[:] = np.uint64(chunk.number << 32) | lines[(firsts & np.uint64(_NONE)) - np.uint64(1)]
            line, n_lines = int(lines[line - 1]), int(lines[-1])
        self.lines[chunk.number] = chunk.file, n_lines
        if ended > tokens.ROOM:
            self.fault = Fault(chunk.number, line, ended, int(state[4]))
        elif repeats is not None and (repeats.full or not repeats.pay()):
            goes_on = repeats.pay()
            self.finish()
            self._repeats = repeats if goes_on else None
        return self.fault is not None

    def _append(self, rows: NDArray[np.unsignedinteger], chunk: int) -> None:
        """Put rows into the open block, or into a new one if it is full or its types have become too small."""
        types = [type_of(int(self.n_codes[group].max())) for group in self._groups]
        block = self._open
        if (
            block is None
            or block.size + len(rows) > block.parts[0].shape[1]
            or any(part.dtype != kind for part, kind in zip(block.parts, types, strict=True))
        ):
            size = max(len(rows), _BLOCK // len(self.n_codes))
            parts = [
                np.empty((group.stop - group.start, size), kind)
                for group, kind in zip(self._groups, types, strict=True)
            ]
            block = self._open = Block(parts)
            self.blocks.append(block)
        for group, part in zip(self._groups, block.parts, strict=True):
            narrow(rows, len(rows), group.start, part, block.size)
        block.runs.append((chunk, block.size, len(rows)))
        block.size += len(rows)

    def final_codes(self, final: Index) -> Lut:
        """Make a table of final codes, given for every entry, by column and code."""
        known = self.dictionary
        offsets = np.zeros(len(self.n_codes) + 1, np.uint64)
        np.cumsum(self.n_codes, out=offsets[1:])
        lut = np.empty(known.made, np.uint32)
        lut[offsets[known.columns] + known.entries["code"][: known.made]] = final
        return lut, offsets

    def finish(self) -> None:
        """Store the distinct rows."""
        if self._repeats is not None:
            rows, counts, runs = self._repeats.take()
            if len(rows):
                self._open = None
                self._append(rows, -1)
                self.blocks[-1].counts, self.blocks[-1].runs = counts, runs
                self._open = None
