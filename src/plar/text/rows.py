"""Coded rows: distinct ones kept once while that pays, then columns, with all rows in the order of the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from plar.coding.codes import Column
from plar.coding.consumable_columns import GIVE_BACK, give_back_memory
from plar.coding.factorize import mix
from plar.jit import jit
from plar.parallel import in_threads
from plar.partition import smallest_codes

__all__ = ["Block", "Lut", "Rows", "Window", "groups_of", "longer", "narrow", "type_of"]

Words: TypeAlias = NDArray[np.uint64]
Index: TypeAlias = NDArray[np.uint32]
Counts: TypeAlias = NDArray[np.int64]
#: final codes of a thread's codes, column after column, and where each column begins
Lut: TypeAlias = tuple[Index, Words]

#: bytes that the distinct rows of all threads may take, and of one thread at the least, before they are put away
_WINDOW, _LEAST_WINDOW = 1 << 28, 1 << 25
#: distinct rows that a thread keeps at the least
_FEWEST = 1024
#: rows of which some must be equal, and the share of distinct rows up to which it pays to look for equal ones
_TRIED, _DISTINCT = 1 << 14, 0.75
#: columns that are kept side by side where there are many
_SIDE_BY_SIDE, _MANY_COLUMNS = 16, 64

#: rows that are looked for together
_TOGETHER = 32
_ZERO, _ONE, _HALF, _LOW = np.uint64(0), np.uint64(1), np.uint64(32), np.uint64(0xFFFFFFFF)


def groups_of(n_columns: int) -> list[slice]:
    """Columns that are kept in one matrix, so that it can be freed when their codes are final.

    Examples
    --------
    >>> groups_of(2)
    [slice(0, 1, None), slice(1, 2, None)]
    """
    width = _SIDE_BY_SIDE if n_columns > _MANY_COLUMNS else 1
    return [slice(low, min(low + width, n_columns)) for low in range(0, n_columns, width)]


def type_of(n_codes: int) -> np.dtype[np.unsignedinteger]:
    """Return the smallest type for so many codes."""
    return np.dtype(np.min_scalar_type(max(n_codes - 1, 0)))


def longer(array: NDArray[Any], kept: int, size: int) -> NDArray[Any]:
    """Copy an array to one that has room for more."""
    grown = np.empty((size, *array.shape[1:]), array.dtype)
    grown[:kept] = array[:kept]
    return grown


@dataclass(slots=True)
class Block:
    """Rows as codes of one thread's dictionary, columns in groups; with `counts` where equal rows are put together."""

    parts: list[NDArray[np.unsignedinteger]]
    size: int = 0
    #: chunk, first row in this block, rows
    runs: list[tuple[int, int, int]] = field(default_factory=list)
    counts: Counts | None = None


class Window:
    """Distinct rows, how often each was seen, and where first."""

    def __init__(self, width: int, n_jobs: int) -> None:
        self._width, self._bytes = width, max(_WINDOW // n_jobs, _LEAST_WINDOW)
        self._kept = np.empty((0, width), np.uint8)
        pick = np.random.Generator(np.random.PCG64(7))
        self._factors = pick.integers(0, 1 << 63, width, np.uint64) * np.uint64(2) + np.uint64(1)
        self._clear()

    @property
    def _most(self) -> int:
        return max(_FEWEST, self._bytes // (self._width * self._kept.itemsize))

    def _clear(self) -> None:
        self.made, self._seen, size = 0, 0, min(self._most, 1 << 12)
        self._kept = np.empty((size, self._width), self._kept.dtype)
        self._hashes, self._chunks = np.empty(size, np.uint64), np.empty(size, np.uint32)
        self._counts = np.empty(size, np.int64)
        self._slots = np.zeros(1 << (2 * size - 1).bit_length(), np.uint64)

    def add(self, rows: Index, first: int, last: int, chunk: int, n_codes: int) -> int:
        """Add rows, of at most so many codes, until there is no room for more; returns the first that was not added."""
        began = first
        if n_codes > 256 and self._kept.itemsize == 1:
            self._kept = self._kept.astype(np.uint32)
        while True:
            until, made, _ = _group_rows(
                rows,
                first,
                last,
                np.uint32(chunk),
                self._factors,
                self._slots,
                self._hashes,
                self._kept,
                self._counts,
                self._chunks,
                self.made,
            )
            first, self.made = int(until), int(made)
            if first == last or self.made >= self._most:
                self._seen += first - began
                return first
            self._grow(min(self._most, 4 * self.made))

    def _grow(self, size: int) -> None:
        for name in ("_kept", "_hashes", "_counts", "_chunks"):
            setattr(self, name, longer(getattr(self, name), self.made, size))
        self._slots = np.zeros(1 << (2 * size - 1).bit_length(), np.uint64)
        _refill(self._slots, self._hashes, self.made)

    def pays(self) -> bool:
        """Whether it pays to go on: some rows were equal to others, and many when there is no room for more."""
        if self.made < self._most:
            return self._seen < _TRIED or self.made < self._seen
        return self.made < _DISTINCT * self._seen

    def take(self) -> tuple[NDArray[np.unsignedinteger], Counts, Index]:
        """Return the distinct rows with their counts and the chunks where they were seen first, and begin anew."""
        taken = self._kept[: self.made], self._counts[: self.made], self._chunks[: self.made]
        self._clear()
        return taken


class Rows:
    """The rows of all threads, and where each goes: in the order of the files."""

    def __init__(self, blocks: Sequence[Sequence[Block]]) -> None:
        self._blocks = [(w, block) for w, own in enumerate(blocks) for block in own]
        self.n_rows = sum(block.size for _, block in self._blocks)
        self.distinct = len(self._blocks) == 1 and self._blocks[0][1].counts is not None
        # a chunk is read by one thread, into one block after the other
        every = [(*run, b) for b, (_, block) in enumerate(self._blocks) for run in block.runs]
        runs: list[list[tuple[int, int, int]]] = [[] for _ in self._blocks]
        to = 0
        for _, start, size, b in sorted(every, key=lambda run: (run[0], run[3], run[1])):
            runs[b].append((start, to, size))
            to += size
        self._runs = [np.array(some, np.int64).reshape(-1, 3) for some in runs]

    def columns(self, columns: Sequence[Column], luts: Sequence[Lut]) -> list[Column]:
        """Give every column its codes; blocks are freed as they are not needed any more."""
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
            freed += size
            if freed >= GIVE_BACK:
                freed = 0
                give_back_memory()
        return found

    def counts(self) -> NDArray[np.int64]:
        """For how many rows each one stands."""
        counts = np.ones(self.n_rows, np.int64)
        for (_, block), runs in zip(self._blocks, self._runs, strict=True):
            if block.counts is not None:
                for start, to, size in runs.tolist():
                    counts[to : to + size] = block.counts[start : start + size]
        return counts


# -- kernels ---------------------------------------------------------------------------------------------------


@jit
def _group_rows(
    rows: Index,
    first: int,
    last: int,
    chunk: np.uint32,
    factors: Words,
    slots: Words,
    hashes: Words,
    kept: NDArray[np.unsignedinteger],
    counts: Counts,
    chunks: Index,
    made: int,
) -> tuple[np.int64, np.int64, np.uint64]:
    """Add rows to those that are kept, each distinct one once; returns the row where room ended, and how many are kept.

    The third that is returned only keeps the compiler from leaving out what asks the memory beforehand.
    A slot holds the upper half of a row's hash, and its place plus one; `chunks` says where each was seen first.
    """
    mask = np.uint64(len(slots)) - _ONE
    width, room = np.uint64(rows.shape[1]), np.uint64(len(kept))
    n, end, touched = np.uint64(made), np.uint64(last), _ZERO
    found = np.empty(_TOGETHER, np.uint64)
    for begin in range(np.uint64(first), end, np.uint64(_TOGETHER)):
        stop = min(begin + np.uint64(_TOGETHER), end)
        # memory is slow to answer, so it is asked for all of these rows before any of them is looked for
        for r in range(begin, stop):
            total = _ZERO
            for j in range(width):
                total += (np.uint64(rows[r, j]) + _ONE) * factors[j]
            found[r - begin] = mix(total)
            touched ^= slots[found[r - begin] & mask]
        for r in range(begin, stop):
            slot = slots[found[r - begin] & mask]
            if slot != 0:
                touched ^= np.uint64(kept[(slot & _LOW) - _ONE, 0]) ^ np.uint64(counts[(slot & _LOW) - _ONE])
        for r in range(begin, stop):
            own = found[r - begin]
            at = own & mask
            g = _ZERO
            while slots[at] != 0:
                if slots[at] >> _HALF == own >> _HALF:
                    g = (slots[at] & _LOW) - _ONE
                    other = np.uint32(0)
                    for j in range(width):
                        other |= np.uint32(kept[g, j]) ^ rows[r, j]
                    if other == 0:
                        break
                at = (at + _ONE) & mask
            if slots[at] == 0:
                if n == room:
                    return np.int64(r), np.int64(n), touched
                for j in range(width):
                    kept[n, j] = rows[r, j]
                hashes[n], counts[n], chunks[n] = own, 0, chunk
                g = n
                n += _ONE
                slots[at] = (own >> _HALF << _HALF) | n
            counts[g] += 1
    return np.int64(last), np.int64(n), touched


@jit
def _refill(slots: Words, hashes: Words, made: int) -> None:
    """Put kept rows into emptied slots."""
    mask = np.uint64(len(slots)) - _ONE
    for g in range(np.uint64(made)):
        at = hashes[g] & mask
        while slots[at] != 0:
            at = (at + _ONE) & mask
        slots[at] = (hashes[g] >> _HALF << _HALF) | (g + _ONE)


@jit
def narrow(rows: NDArray[np.unsignedinteger], n_rows: int, low: int, out: NDArray[np.unsignedinteger], at: int) -> None:
    """Turn columns from `low` on, as many as `out` has, so that each one is contiguous, from place `at` on."""
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
