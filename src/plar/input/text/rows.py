"""Coded rows: each thread codes chunks of the files, and all its rows become columns, in the order of the files."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from plar.coding.assemble import Counts
from plar.coding.codes import Column
from plar.granules.consumable_columns import give_back_memory
from plar.grouping.factorize import Bytes
from plar.grouping.partition import Codes, Index, Ints, U64Array, smallest_codes
from plar.input.text import tokens
from plar.input.text.chunks import Chunk
from plar.input.text.dialect import ByteRoles, Dialect
from plar.input.text.dictionary import Dictionary
from plar.input.text.quotes import lone_cr
from plar.input.text.repeats import NewLines, Repeats
from plar.input.text.tokens import FULL, CodedSoFar, Tables
from plar.runtime.jit import jit
from plar.runtime.parallel import in_threads

#: final codes of a thread's codes, column after column, and where each column begins
Lut: TypeAlias = tuple[Index, U64Array]

#: up to this many columns each has a matrix of its own
_FEW_COLUMNS = 64
#: columns kept in one matrix, if there are more
_COLUMNS_PER_MATRIX = 16
#: cells coded at a time
_CELLS_PER_CALL = 1 << 19
#: rows coded at a time at least, however many columns there are
_MIN_ROWS_PER_CALL = 64
#: cells of a block of rows
_CELLS_PER_BLOCK = 1 << 23
#: bytes that the distinct rows of all threads together may use before they are stored
_DISTINCT_BYTES = 1 << 28
#: bytes that those of one thread may use at least
_MIN_DISTINCT_BYTES = 1 << 25
#: bytes that a new dictionary has for values
_ARENA_BYTES = 1 << 16
_LOWER_HALF = np.uint64(0xFFFFFFFF)
_ZERO = np.uint64(0)


def _groups_of(n_columns: int) -> list[slice]:
    """Columns that are kept in one matrix, so that it can be freed when their codes are final.

    >>> _groups_of(2)
    [slice(0, 1, None), slice(1, 2, None)]
    """
    width = _COLUMNS_PER_MATRIX if n_columns > _FEW_COLUMNS else 1
    return [slice(low, min(low + width, n_columns)) for low in range(0, n_columns, width)]


def _type_of(n_codes: int) -> np.dtype[np.unsignedinteger]:
    """Return the smallest type for this many codes."""
    return np.dtype(np.min_scalar_type(max(n_codes - 1, 0)))


@dataclass(slots=True)
class TextBlock:
    """Rows as codes of one thread's dictionary, columns in groups; with `counts` if repeated rows are merged."""

    parts: list[Codes]
    size: int = 0
    #: whether no two rows are equal
    distinct: bool = False
    #: chunk, first row in this block, rows
    runs: list[tuple[int, int, int]] = field(default_factory=list)
    counts: Counts | None = None

    def can_hold(self, n_rows: int, types: Sequence[np.dtype[np.unsignedinteger]]) -> bool:
        """Whether so many more rows fit in, with codes of these types."""
        if self.size + n_rows > self.parts[0].shape[1]:
            return False
        return all(part.dtype == code_type for part, code_type in zip(self.parts, types, strict=True))


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
        n_columns = len(wanted)
        self._dialect = dialect
        self._roles = ByteRoles(dialect.kinds, dialect.ends, dialect.runs, dialect.padded)
        self._wanted = np.full(n_fields, tokens.UNWANTED, np.uint32)
        self._wanted[wanted] = np.arange(n_columns, dtype=np.uint32)
        self._short = np.zeros((257, n_columns), np.uint32)
        self.n_codes = np.zeros(n_columns, np.uint32)
        self.dictionary = Dictionary.of(max(1024, 2 * n_columns), _ARENA_BYTES)
        self._rows = np.empty((max(_MIN_ROWS_PER_CALL, _CELLS_PER_CALL // n_columns), n_columns), np.uint32)
        self._lines = np.empty(len(self._rows), np.uint32)
        self._repeats: Repeats | None = None
        if group:
            max_bytes = max(_DISTINCT_BYTES // n_jobs, _MIN_DISTINCT_BYTES)
            self._repeats = Repeats(n_columns, max_bytes, whole_lines=n_columns == n_fields)
        self._groups = _groups_of(n_columns)
        self._open: TextBlock | None = None
        self.blocks: list[TextBlock] = []
        self.fault: Fault | None = None
        #: file and lines of each chunk
        self.lines: dict[int, tuple[int, int]] = {}

    def learn(self, other: Worker) -> None:
        """Start with what another worker knows, so that both give the same codes to the same values."""
        self.dictionary, self._short, self.n_codes = deepcopy((other.dictionary, other._short, other.n_codes))

    def read(self, chunk: Chunk) -> bool:
        """Code the rows of a chunk; return whether it has a fault."""
        if chunk.buffer.find(b"\r", 0, chunk.end) >= 0 and self._has_lone_cr(chunk):
            return True
        n_entries_before = self.dictionary.n_entries
        new = self._new_lines(chunk)
        if new is None:
            progress = self._code(chunk.data, chunk.end, chunk.number, by_line=False)
            fault_line = progress.line
            n_lines = progress.line - 1
        else:
            progress = self._code(new.data, new.end, chunk.number, by_line=True)
            # the tokenizer has only counted new lines
            firsts = self.dictionary.entries["first"][n_entries_before : self.dictionary.n_entries]
            new_lines = firsts & _LOWER_HALF
            firsts[:] = np.uint64(chunk.number << 32) | new.numbers[new_lines - np.uint64(1)]
            fault_line = int(new.numbers[progress.line - 1])
            n_lines = int(new.numbers[-1])
        self.lines[chunk.number] = chunk.file, n_lines
        if progress.outcome != tokens.DONE:
            self.fault = Fault(chunk.number, fault_line, progress.outcome, progress.n_fields)
            return True
        if self._repeats is not None:
            is_worthwhile = self._repeats.is_worthwhile()
            if self._repeats.full or not is_worthwhile:
                self.finish()
            if not is_worthwhile:
                self._repeats = None
        return False

    def _new_lines(self, chunk: Chunk) -> NewLines | None:
        """The lines of a chunk that were not read before; None if all are to be coded."""
        if self._repeats is None:
            return None
        quotes = self._dialect.quotes.encode()
        if self._dialect.multiline and chunk.buffer.find(quotes, 0, chunk.end) >= 0:  # a row may be several lines
            return None
        return self._repeats.new_lines(chunk.data, chunk.end)

    def _code(self, data: Bytes, end: int, chunk: int, *, by_line: bool) -> CodedSoFar:
        """Code whole rows and store them, until their end or a fault; `by_line`: each is one of the new lines."""
        dictionary = self.dictionary
        progress = CodedSoFar(0, 1, dictionary.n_entries, dictionary.n_bytes)
        while progress.outcome == FULL:
            dictionary.reserve(len(self.n_codes), end - progress.position)
            progress = tokens.tokenize(
                data,
                np.uint64(end),
                np.uint64(chunk),
                self._roles,
                self._wanted,
                self._tables(),
                self._rows,
                self._lines,
                progress,
            )
            dictionary.n_entries = progress.n_entries
            dictionary.n_bytes = progress.n_bytes
            rows = self._rows[: progress.n_rows]
            if self._repeats is not None:
                lines = self._lines[: progress.n_rows] if by_line else None
                self._repeats.add(rows, lines, chunk, int(self.n_codes.max()))
            elif len(rows):
                self._append(rows, chunk)
        return progress

    def _tables(self) -> Tables:
        """What the tokenizer fills; not kept, since `reserve` replaces large arrays by larger ones."""
        dictionary = self.dictionary
        return Tables(self._short, dictionary.slots, dictionary.entries, dictionary.arena, self.n_codes)

    def _has_lone_cr(self, chunk: Chunk) -> bool:
        """Whether a CR that ends no line is in a field without quotes, which is a fault."""
        position = lone_cr(chunk.data, chunk.end, self._dialect)
        if position < 0:
            return False
        line = chunk.buffer.count(b"\n", 0, position) + 1
        self.lines[chunk.number] = chunk.file, line
        self.fault = Fault(chunk.number, line, tokens.LONE_CR, 0)
        return True

    def _append(self, rows: Codes, chunk: int) -> None:
        """Put rows into the open block, or into a new one if it is full or its types have become too small."""
        types = [_type_of(int(self.n_codes[group].max())) for group in self._groups]
        block = self._open
        if block is None or not block.can_hold(len(rows), types):
            size = max(len(rows), _CELLS_PER_BLOCK // len(self.n_codes))
            parts = [
                np.empty((group.stop - group.start, size), code_type)
                for group, code_type in zip(self._groups, types, strict=True)
            ]
            block = TextBlock(parts)
            self.blocks.append(block)
            self._open = block
        for group, part in zip(self._groups, block.parts, strict=True):
            _narrow(rows, group.start, part, block.size)
        block.runs.append((chunk, block.size, len(rows)))
        block.size += len(rows)

    def final_codes(self, final: Index) -> Lut:
        """Make a table of final codes, given for every entry, by column and code."""
        dictionary = self.dictionary
        offsets = np.zeros(len(self.n_codes) + 1, np.uint64)
        np.cumsum(self.n_codes, out=offsets[1:])
        lut = np.empty(dictionary.n_entries, np.uint32)
        codes = dictionary.entries["code"][: dictionary.n_entries]
        lut[offsets[dictionary.columns] + codes] = final
        return lut, offsets

    def finish(self) -> None:
        """Store the distinct rows, in a block of their own."""
        if self._repeats is None:
            return
        rows, counts, runs = self._repeats.take()
        if not len(rows):
            return
        self._open = None
        self._append(rows, -1)
        block = self.blocks[-1]
        block.counts = counts
        block.runs = runs
        block.distinct = self._repeats.distinct
        self._open = None


class Rows:
    """The rows of all threads, and their places in the order of the files."""

    def __init__(self, blocks: Sequence[Sequence[TextBlock]]) -> None:
        #: each with the number of its worker
        self._blocks = [(worker, block) for worker, of_worker in enumerate(blocks) for block in of_worker]
        self.n_rows = sum(block.size for _, block in self._blocks)
        self.distinct = len(self._blocks) == 1 and self._blocks[0][1].distinct
        # a chunk is read by one thread, into consecutive blocks
        in_file_order = sorted(
            (chunk, number, start, n_rows)
            for number, (_, block) in enumerate(self._blocks)
            for chunk, start, n_rows in block.runs
        )
        moves: list[list[tuple[int, int, int]]] = [[] for _ in self._blocks]
        to = 0
        for _, number, start, n_rows in in_file_order:
            moves[number].append((start, to, n_rows))
            to += n_rows
        #: of each block: from where, to where, and how many rows
        self._moves = [np.array(of_block, np.int64).reshape(-1, 3) for of_block in moves]

    def columns(self, columns: Sequence[Column], luts: Sequence[Lut]) -> list[Column]:
        """Give every column its codes; blocks are freed once they are no longer needed."""
        coded = list(columns)

        def assemble(task: tuple[int, slice]) -> int:
            """Code a group of columns, and return how many bytes that took."""
            number, group = task
            n_values = max(len(column.values) for column in columns[group])
            codes = np.empty((group.stop - group.start, self.n_rows), _type_of(n_values))
            for (worker, block), moves in zip(self._blocks, self._moves, strict=True):
                lut, offsets = luts[worker]
                _place_codes(block.parts[number], moves, lut, offsets[group], codes)
                block.parts[number] = np.empty((0, 0), np.uint8)
            for j, of_column in zip(range(group.start, group.stop), codes, strict=True):
                values = columns[j].values
                coded[j] = Column(smallest_codes(of_column, len(values)), values, columns[j].merged)
            return codes.nbytes

        tasks = list(enumerate(_groups_of(len(columns))))
        freed = 0
        for size in in_threads(assemble, tasks, self.n_rows * len(columns) // len(tasks)):
            freed = give_back_memory(freed + size)
        return coded

    def counts(self) -> Counts:
        """How many rows each one stands for."""
        counts = np.ones(self.n_rows, np.int64)
        for (_, block), moves in zip(self._blocks, self._moves, strict=True):
            if block.counts is not None:
                for start, to, n_rows in moves.tolist():
                    counts[to : to + n_rows] = block.counts[start : start + n_rows]
        return counts


# -- kernels ---------------------------------------------------------------------------------------------------


@jit
def _narrow(rows: Codes, low: int, out: Codes, at: int) -> None:
    """Transpose columns from `low` on, as many as `out` has, so that each is contiguous, from place `at` on."""
    n_rows = np.uint64(len(rows))
    n_columns = np.uint64(len(out))
    first = np.uint64(low)
    begin = np.uint64(at)
    tile = np.uint64(64)
    for r0 in range(_ZERO, n_rows, tile):
        r1 = min(r0 + tile, n_rows)
        for j in range(n_columns):
            for r in range(r0, r1):
                out[j, begin + r] = rows[r, first + j]


@jit
def _place_codes(part: Codes, moves: Ints, lut: Index, offsets: U64Array, out: Codes) -> None:
    """Write runs of rows, given as (from, to, how many), where they belong, with their final codes."""
    for j in range(np.uint64(len(part))):
        low = offsets[j]
        for k in range(np.uint64(len(moves))):
            begin = np.uint64(moves[k, 0])
            to = np.uint64(moves[k, 1])
            for i in range(np.uint64(moves[k, 2])):
                out[j, to + i] = lut[low + np.uint64(part[j, begin + i])]
