"""Coded rows: distinct ones while that pays, then columns, with all rows in file order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from plar.coding.codes import Column
from plar.coding.consumable_columns import give_back_memory
from plar.jit import jit
from plar.parallel import in_threads
from plar.partition import smallest_codes
from plar.text.distinct import Counts, Index, Words

#: final codes of a thread's codes, column after column, and where each column begins
Lut: TypeAlias = tuple[Index, Words]

#: columns kept in one matrix if there are many
_SIDE_BY_SIDE, _MANY_COLUMNS = 16, 64

_ZERO = np.uint64(0)


def groups_of(n_columns: int) -> list[slice]:
    """Columns that are kept in one matrix, so that it can be freed when their codes are final.

    >>> groups_of(2)
    [slice(0, 1, None), slice(1, 2, None)]
    """
    width = _SIDE_BY_SIDE if n_columns > _MANY_COLUMNS else 1
    return [slice(low, min(low + width, n_columns)) for low in range(0, n_columns, width)]


def type_of(n_codes: int) -> np.dtype[np.unsignedinteger]:
    """Return the smallest type for this many codes."""
    return np.dtype(np.min_scalar_type(max(n_codes - 1, 0)))


@dataclass(slots=True)
class Block:
    """Rows as codes of one thread's dictionary, columns in groups; with `counts` if equal rows are merged."""

    parts: list[NDArray[np.unsignedinteger]]
    size: int = 0
    #: chunk, first row in this block, rows
    runs: list[tuple[int, int, int]] = field(default_factory=list)
    counts: Counts | None = None


class Rows:
    """The rows of all threads, and their places in the order of the files."""

    def __init__(self, blocks: Sequence[Sequence[Block]]) -> None:
        self._blocks = [(w, block) for w, own in enumerate(blocks) for block in own]
        self.n_rows = sum(block.size for _, block in self._blocks)
        self.distinct = len(self._blocks) == 1 and self._blocks[0][1].counts is not None
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
            out = np.empty((len(own), self.n_rows), np.min_scalar_type(max(most - 1, 0)))
            for (w, block), runs in zip(self._blocks, self._runs, strict=True):
                lut, offsets = luts[w]
                _place_codes(block.parts[number], runs, lut, offsets[group], out)
                block.parts[number] = np.empty((0, 0), np.uint8)
            for j, codes in zip(range(group.start, group.stop), out, strict=True):
                values = columns[j].values
                found[j] = Column(smallest_codes(codes, len(values)), values, columns[j].merged)
            return out.nbytes

        tasks = list(enumerate(groups_of(len(columns))))
        freed = 0
        for size in in_threads(lambda task: assemble(*task), tasks, self.n_rows * len(columns) // len(tasks)):
            freed = give_back_memory(freed + size)
        return found

    def counts(self) -> NDArray[np.int64]:
        """How many rows each one stands for."""
        counts = np.ones(self.n_rows, np.int64)
        for (_, block), runs in zip(self._blocks, self._runs, strict=True):
            if block.counts is not None:
                for start, to, size in runs.tolist():
                    counts[to : to + size] = block.counts[start : start + size]
        return counts


# -- kernels ---------------------------------------------------------------------------------------------------


@jit
def narrow(rows: NDArray[np.unsignedinteger], n_rows: int, low: int, out: NDArray[np.unsignedinteger], at: int) -> None:
    """Transpose columns from `low` on, as many as `out` has, so that each is contiguous, from place `at` on."""
    n, width, tile = np.uint64(n_rows), np.uint64(len(out)), np.uint64(64)
    first, begin = np.uint64(low), np.uint64(at)
    for r0 in range(_ZERO, n, tile):
        r1 = min(r0 + tile, n)
        for j in range(width):
            for r in range(r0, r1):
                out[j, begin + r] = rows[r, first + j]


@jit
def _place_codes(
    part: NDArray[np.unsignedinteger], runs: Counts, lut: Index, offsets: Words, out: NDArray[np.unsignedinteger]
) -> None:
    """Write runs of rows, given as (from, to, how many), where they belong, with their final codes."""
    for j in range(np.uint64(len(part))):
        low = offsets[j]
        for k in range(np.uint64(len(runs))):
            begin, to = np.uint64(runs[k, 0]), np.uint64(runs[k, 1])
            for i in range(np.uint64(runs[k, 2])):
                out[j, to + i] = lut[low + np.uint64(part[j, begin + i])]
