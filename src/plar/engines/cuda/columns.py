"""The columns of a table on the GPU: blocks of few-valued columns as lanes, others column by column.

All blocks stay on the device if they fit. Those that do not are sent again for every pass, into two places in turn, so
that one is filled while the other is computed with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numba import cuda
from numba.core import config

from plar.engines.cuda.kernels import LANES, Device, grid, interleave
from plar.engines.cuda.partition import Codes
from plar.errors import EngineUnavailable
from plar.granules import Granules
from plar.partition import Array

__all__ = ["Asked", "Block", "Columns"]

_THREADS = 16 if config.ENABLE_CUDASIM else 128
#: columns go through page-locked memory in portions of about so many bytes
_PORTION = 1 << 24
#: threads that bring them there
_FETCHERS = 8
#: lanes share a block if their numbers of values fall between the same two of these: counters are for the largest
_STEPS = (4, 8, 16)
#: rows of this many words and more begin where a memory sector does
_SECTOR_WORDS, _LONG_ROW = 8, 32


@dataclass(slots=True, eq=False)
class Block:
    """Some attributes that are evaluated together.

    Parameters
    ----------
    attributes : array of int
    n_values : int
        The most values of one of them.
    kind : numpy dtype
        Of the codes.
    stride : int
        Words of a row of lanes; 0 if the columns lie one after the other.
    data : device array or None
        None if it does not stay on the device.
    """

    attributes: Array
    n_values: int
    kind: Any
    stride: int
    data: Device | None = None

    def size(self, n: int) -> int:
        """Elements of its array for n rows."""
        return n * (self.stride or len(self.attributes))

    def nbytes(self, n: int) -> int:
        """Bytes of its array."""
        return self.size(n) * (LANES if self.stride else int(self.kind.itemsize))

    def empty(self, n: int) -> Device:
        """Room for it on the device."""
        return cuda.device_array(self.size(n), np.uint32 if self.stride else self.kind)


class Asked:
    """The candidates of one pass. If they are most attributes, all lanes are computed, and the list is read later."""

    def __init__(self, candidates: Sequence[int], n_attributes: int) -> None:
        self._candidates, self._n_attributes = candidates, n_attributes
        self._most = 2 * len(candidates) > n_attributes

    @cached_property
    def attributes(self) -> Array:
        """The candidates, in their order."""
        return np.fromiter(self._candidates, np.intp, len(self._candidates))

    @cached_property
    def mask(self) -> Array:
        """By attribute, whether it is one of them."""
        mask = np.zeros(self._n_attributes, np.bool_)
        mask[self.attributes] = True
        return mask

    def concern(self, block: Block) -> bool:
        """Tell whether the block is to be computed."""
        return (self._most and block.stride > 0) or bool(self.mask[block.attributes].any())

    def words(self, block: Block) -> Array:
        """Which words of a block of lanes are to be computed."""
        words = -(-len(block.attributes) // LANES)
        if self._most:
            return np.arange(words, dtype=np.uint32)
        lanes = np.zeros(words * LANES, np.bool_)
        lanes[: len(block.attributes)] = self.mask[block.attributes]
        return np.flatnonzero(lanes.reshape(-1, LANES).any(axis=1)).astype(np.uint32)


class Columns:
    """All columns of some granules, on the device as far as `memory` bytes go.

    Parameters
    ----------
    granules : Granules
    most_values : int
        Columns of more values than this are no lanes.
    memory : int
        What the columns may take on the device.
    """

    def __init__(self, granules: Granules, most_values: int, memory: float) -> None:
        self._granules, self._n, self._n_values = granules, len(granules), granules.cardinalities
        #: two of each, so that one is filled while the other is sent
        self._streams = [cuda.stream() for _ in range(2)]
        self._pinned: list[Any] = []
        self._staged: list[Device] = []
        self._next = 0
        self._pool = ThreadPoolExecutor(_FETCHERS)
        blocks, room = self._grouped(most_values, None), memory
        if sum(b.nbytes(self._n) for b in blocks) > memory:
            blocks = self._grouped(most_values, max(int(memory) // 8, 1))
            needed = 2 * max(b.nbytes(self._n) for b in blocks)
            room = memory - needed
            if room < 0:
                raise EngineUnavailable(
                    f"The engine 'cuda' needs at least {-(-needed // 2**20)} MB of GPU memory for the columns of "
                    f"{self._n} granules, and may use {int(memory) / 2**20:.0f} MB. Use the engine 'local'."
                )
        self._where = {a: (block, place) for block in blocks for place, a in enumerate(block.attributes.tolist())}
        self._blocks = sorted(blocks, key=lambda block: block.stride == 0)
        for block in blocks:
            if block.nbytes(self._n) <= room:
                room -= block.nbytes(self._n)
                block.data = block.empty(self._n)
                self._send(block, block.data)
        self._spare: list[Device] = []

    def _grouped(self, most_values: int, most_bytes: int | None) -> list[Block]:
        # blocks of at most so many bytes, but never of less than a word of lanes or a column
        n_values, columns = self._n_values, self._granules.columns
        groups: dict[tuple[int, Any], list[int]] = {}
        for a, values in enumerate(n_values):
            step = sum(values > limit for limit in _STEPS) if values <= most_values else -1
            groups.setdefault((step, np.dtype(np.uint8) if step >= 0 else columns[a].dtype), []).append(a)
        blocks = []
        for (step, kind), group in groups.items():
            width = len(group) if most_bytes is None else max(1, most_bytes // (self._n * kind.itemsize))
            if step >= 0:
                width = -(-width // LANES) * LANES
            for i in range(0, len(group), width):
                part = group[i : i + width]
                stride = 0
                if step >= 0:
                    words = -(-len(part) // LANES)
                    stride = -(-words // _SECTOR_WORDS) * _SECTOR_WORDS if words >= _LONG_ROW else words
                blocks.append(Block(np.array(part), max(n_values[a] for a in part), kind, stride))
        return blocks

    def codes(self, attribute: int) -> Codes:
        """Where one column is on the device; sent there if it did not stay."""
        block, place = self._where[attribute]
        n_values = self._n_values[attribute]
        if block.data is None:
            column = np.ascontiguousarray(self._granules.columns[attribute])
            return Codes(cuda.to_device(column), 1, 0, n_values)
        if block.stride:
            return Codes(block.data.view(np.uint8), LANES * block.stride, place, n_values)
        return Codes(block.data, 1, place * self._n, n_values)

    def passes(self, asked: Asked) -> Iterator[tuple[Block, Device, Any]]:
        """Every block that is to be computed, lanes first, its data, and the stream to compute with it on."""
        for block in self._blocks:
            if block.data is not None and asked.concern(block):
                yield block, block.data, 0
        away = [b for b in self._blocks if b.data is None and asked.concern(b)]
        if not away:
            return
        compute, sent, done = cuda.stream(), cuda.event(), [cuda.event() for _ in range(2)]
        bytes_needed = max(b.nbytes(self._n) for b in self._blocks if b.data is None)
        if not self._spare:
            self._spare = [cuda.device_array(bytes_needed, np.uint8) for _ in range(2)]
        for i, block in enumerate(away):
            if i >= len(done):
                done[i % 2].synchronize()
            data = self._spare[i % 2][: block.nbytes(self._n)].view(np.uint32 if block.stride else block.kind)
            self._send(block, data)
            for stream in self._streams:
                sent.record(stream)
                sent.wait(compute)
            yield block, data, compute
            done[i % 2].record(compute)
        compute.synchronize()

    def _send(self, block: Block, data: Device) -> None:
        # portion by portion: gathered by threads into page-locked memory, sent, and on the device made lanes of
        n, columns = self._n, self._granules.columns
        width = max(1, _PORTION // (n * block.kind.itemsize))
        if block.stride:
            width = -(-width // LANES) * LANES
        width = min(width, -(-len(block.attributes) // LANES) * LANES)
        self._make_room(width * n * block.kind.itemsize, staged=block.stride > 0)
        for first in range(0, len(block.attributes), width):
            turn, self._next = self._next, 1 - self._next
            stream = self._streams[turn]
            stream.synchronize()
            part = block.attributes[first : first + width]
            portion = self._pinned[turn][: len(part) * n * block.kind.itemsize].view(block.kind).reshape(len(part), n)

            def fetch(k: int, portion: Any = portion, part: Array = part) -> None:
                for j in range(k, len(part), _FETCHERS):
                    portion[j] = columns[part[j]]

            list(self._pool.map(fetch, range(min(_FETCHERS, len(part)))))
            flat = portion.reshape(-1)
            if block.stride:
                words = -(-len(part) // LANES)
                staged = self._staged[turn][: len(flat)]
                staged.copy_to_device(flat, stream=stream)
                launch = (*grid(n * words, _THREADS), stream)
                interleave[launch](self._staged[turn], n, len(part), data, block.stride, first // LANES)
            else:
                data[first * n : first * n + len(flat)].copy_to_device(flat, stream=stream)

    def _make_room(self, nbytes: int, staged: bool) -> None:
        # grows to the largest portion
        if not self._pinned or len(self._pinned[0]) < nbytes:
            for stream in self._streams:
                stream.synchronize()
            self._pinned = [cuda.pinned_array(nbytes, np.uint8) for _ in range(2)]
        if staged and (not self._staged or len(self._staged[0]) < nbytes):
            for stream in self._streams:
                stream.synchronize()
            self._staged = [cuda.device_array(nbytes, np.uint8) for _ in range(2)]
