"""Coded rows: each thread codes chunks of the files, and all its rows become columns, in the order of the files."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from plar.coding.codes import Column
from plar.granules.consumable_columns import give_back_memory
from plar.grouping.partition import Codes, smallest_codes
from plar.input.text import tokens
from plar.input.text.chunks import Chunk
from plar.input.text.dictionary import Dictionary
from plar.input.text.distinct import Counts, Index, Words
from plar.input.text.repeats import Repeats
from plar.input.text.tokens import Dialect
from plar.runtime.jit import jit
from plar.runtime.parallel import in_threads

#: final codes of a thread's codes, column after column, and where each column begins
Lut: TypeAlias = tuple[Index, Words]

#: columns kept in one matrix if there are many
_SIDE_BY_SIDE, _MANY_COLUMNS = 16, 64
#: cells coded at a time, and the most cells of a block
_AT_ONCE, _BLOCK = 1 << 19, 1 << 23
_FEWEST = 64
#: bytes that the distinct rows of all threads may use, and at least those of one thread, before they are stored
_WINDOW, _LEAST_WINDOW = 1 << 28, 1 << 25
_NONE = 0xFFFFFFFF
_ZERO = np.uint64(0)


def _groups_of(n_columns: int) -> list[slice]:
    """Columns that are kept in one matrix, so that it can be freed when their codes are final.

    >>> _groups_of(2)
    [slice(0, 1, None), slice(1, 2, None)]
    """
    width = _SIDE_BY_SIDE if n_columns > _MANY_COLUMNS else 1
    return [slice(low, min(low + width, n_columns)) for low in range(0, n_columns, width)]


def _type_of(n_codes: int) -> np.dtype[np.unsignedinteger]:
    """Return the smallest type for this many codes."""
    return np.dtype(np.min_scalar_type(max(n_codes - 1, 0)))


@dataclass(slots=True)
class Block:
    """Rows as codes of one thread's dictionary, columns in groups; with `counts` if repeated rows are merged."""

    parts: list[Codes]
    size: int = 0
    #: whether no two rows are equal
    distinct: bool = False
    #: chunk, first row in this block, rows
    runs: list[tuple[int, int, int]] = field(default_factory=list)
    counts: Counts | None = None


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
        window = max(_WINDOW // n_jobs, _LEAST_WINDOW)
        self._repeats = Repeats(used, window, used == n_fields) if group else None
        self._groups = _groups_of(used)
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
        if chunk.room.find(b"\r", 0, chunk.end) >= 0 and self._has_lone_cr(chunk):
            return True
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
                (dialect.kinds, dialect.ends, dialect.runs, dialect.padded),
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

    def _has_lone_cr(self, chunk: Chunk) -> bool:
        """Whether a CR that ends no line is in a field without quotes, which is a fault."""
        position = tokens.lone_cr(chunk.data, chunk.end, self._dialect)
        if position >= 0:
            line = chunk.room.count(b"\n", 0, position) + 1
            self.lines[chunk.number] = chunk.file, line
            self.fault = Fault(chunk.number, line, tokens.LONE_CR, 0)
        return position >= 0

    def _append(self, rows: Codes, chunk: int) -> None:
        """Put rows into the open block, or into a new one if it is full or its types have become too small."""
        types = [_type_of(int(self.n_codes[group].max())) for group in self._groups]
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
            _narrow(rows, group.start, part, block.size)
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
                self.blocks[-1].distinct = self._repeats.distinct
                self._open = None


class Rows:
    """The rows of all threads, and their places in the order of the files."""

    def __init__(self, blocks: Sequence[Sequence[Block]]) -> None:
        self._blocks = [(w, block) for w, own in enumerate(blocks) for block in own]
        self.n_rows = sum(block.size for _, block in self._blocks)
        self.distinct = len(self._blocks) == 1 and self._blocks[0][1].distinct
        # a chunk is read by one thread, into consecutive blocks
        every = [(*run, b) for b, (_, block) in enumerate(self._blocks) for run in block.runs]
        runs: list[list[tuple[int, int, int]]] = [[] for _ in self._blocks]
        to = 0
        for _, start, size, b in sorted(every, key=lambda run: (run[0], run[3], run[1])):
            runs[b].append((start, to, size))
            to += size
        self._runs = [np.array(some, np.int64).reshape(-1, 3) for some in runs]

    def columns(self, columns: Sequence[Column], luts: Sequence[Lut]) -> list[Column]:
        """Give every column its codes; blocks are freed once they are no longer needed."""
        found = list(columns)

        def assemble(number: int, group: slice) -> int:
            own = columns[group]
            most = max(len(column.values) for column in own)
            out = np.empty((len(own), self.n_rows), _type_of(most))
            for (w, block), runs in zip(self._blocks, self._runs, strict=True):
                lut, offsets = luts[w]
                _place_codes(block.parts[number], runs, lut, offsets[group], out)
                block.parts[number] = np.empty((0, 0), np.uint8)
            for j, codes in zip(range(group.start, group.stop), out, strict=True):
                values = columns[j].values
                found[j] = Column(smallest_codes(codes, len(values)), values, columns[j].merged)
            return out.nbytes

        tasks = list(enumerate(_groups_of(len(columns))))
        freed = 0
        for size in in_threads(lambda task: assemble(*task), tasks, self.n_rows * len(columns) // len(tasks)):
            freed = give_back_memory(freed + size)
        return found

    def counts(self) -> Counts:
        """How many rows each one stands for."""
        counts = np.ones(self.n_rows, np.int64)
        for (_, block), runs in zip(self._blocks, self._runs, strict=True):
            if block.counts is not None:
                for start, to, size in runs.tolist():
                    counts[to : to + size] = block.counts[start : start + size]
        return counts


# -- kernels ---------------------------------------------------------------------------------------------------


@jit
def _narrow(rows: Codes, low: int, out: Codes, at: int) -> None:
    """Transpose columns from `low` on, as many as `out` has, so that each is contiguous, from place `at` on."""
    n, width, tile = np.uint64(len(rows)), np.uint64(len(out)), np.uint64(64)
    first, begin = np.uint64(low), np.uint64(at)
    for r0 in range(_ZERO, n, tile):
        r1 = min(r0 + tile, n)
        for j in range(width):
            for r in range(r0, r1):
                out[j, begin + r] = rows[r, first + j]


@jit
def _place_codes(part: Codes, runs: Counts, lut: Index, offsets: Words, out: Codes) -> None:
    """Write runs of rows, given as (from, to, how many), where they belong, with their final codes."""
    for j in range(np.uint64(len(part))):
        low = offsets[j]
        for k in range(np.uint64(len(runs))):
            begin, to = np.uint64(runs[k, 0]), np.uint64(runs[k, 1])
            for i in range(np.uint64(runs[k, 2])):
                out[j, to + i] = lut[low + np.uint64(part[j, begin + i])]
