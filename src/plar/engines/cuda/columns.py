"""The columns of a table on the GPU: blocks of few-valued columns as lanes, others column by column.

All blocks stay on the device if they fit. Those that do not are sent again for every pass, into two buffers in turn, so
that one is filled while the other is in use.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import cuda
from numba.core import config

from plar.engines.cuda.kernels import LANES, Device, grid, interleave
from plar.engines.cuda.partition import Codes
from plar.errors import EngineUnavailable
from plar.granules.granules import Granules
from plar.grouping.partition import Array

_THREADS = 4 if config.ENABLE_CUDASIM else 128
#: columns go through page-locked memory in portions of about this many bytes
_PORTION = 1 << 24
#: threads that copy them there
_FETCHERS = 8
#: lanes share a block if their numbers of values fall between the same two of these: counters are for the largest
_STEPS = (4, 8, 16)
#: rows of at least this many words are aligned to memory sectors
_SECTOR_WORDS, _LONG_ROW = 8, 32


@dataclass(slots=True, eq=False)
class DeviceBlock:
    """Some attributes that are evaluated together."""

    attributes: Array
    #: the most values of one of them
    n_values: int
    #: dtype of the codes
    kind: Any
    #: words of a row of lanes; 0 if the columns lie one after the other
    stride: int
    #: bytes of its array
    nbytes: int
    #: None if it is not kept on the device
    data: Device | None = None

    @property
    def unit(self) -> Any:
        """Type of the elements of its array."""
        return np.uint32 if self.stride else self.kind


class Columns:
    """All columns, on the device as far as they fit `memory` bytes; those over `most_values` are not lanes."""

    def __init__(self, granules: Granules, most_values: int, memory: float) -> None:
        self._granules, self._n, self._n_values = granules, len(granules), granules.cardinalities
        self._pool = ThreadPoolExecutor(_FETCHERS)
        blocks, room = self._grouped(most_values, None), memory
        if sum(b.nbytes for b in blocks) > memory:
            blocks = self._grouped(most_values, max(int(memory) // 8, 1))
            needed = 2 * max(b.nbytes for b in blocks)
            room = memory - needed
            if room < 0:
                raise EngineUnavailable(
                    f"The engine 'cuda' needs at least {-(-needed // 2**20)} MB of GPU memory for the columns of "
                    f"{self._n} granules, and may use {int(memory) / 2**20:.0f} MB. Use the engine 'local'."
                )
        self._where = {a: (block, place) for block in blocks for place, a in enumerate(block.attributes.tolist())}
        self._blocks = sorted(blocks, key=lambda block: block.stride == 0)
        #: two of each, so that one is filled while the other is sent
        self._streams = [cuda.stream() for _ in range(2)]
        portion = max((self._portion(b) * self._n * b.kind.itemsize for b in blocks), default=1)
        self._pinned = [cuda.pinned_array(portion, np.uint8) for _ in range(2)]
        self._staged = [cuda.device_array(portion, np.uint8) for _ in range(2)]
        self._next = 0
        for block in blocks:
            if block.nbytes <= room:
                room -= block.nbytes
                block.data = cuda.device_array(block.nbytes // np.dtype(block.unit).itemsize, block.unit)
                self._send(block, block.data)
        away = max((b.nbytes for b in blocks if b.data is None), default=0)
        self._spare = [cuda.device_array(away, np.uint8) for _ in range(2)] if away else []

    def _grouped(self, most_values: int, most_bytes: int | None) -> list[DeviceBlock]:
        # blocks of at most this many bytes, but at least a word of lanes or a column
        n, n_values, columns = self._n, self._n_values, self._granules.columns
        groups: dict[tuple[int, Any], list[int]] = {}
        for a, values in enumerate(n_values):
            step = sum(values > limit for limit in _STEPS) if values <= most_values else -1
            groups.setdefault((step, np.dtype(np.uint8) if step >= 0 else columns[a].dtype), []).append(a)
        blocks = []
        for (step, kind), group in groups.items():
            width = len(group) if most_bytes is None else max(1, most_bytes // (n * kind.itemsize))
            if step >= 0:
                width = -(-width // LANES) * LANES
            for i in range(0, len(group), width):
                part = np.array(group[i : i + width])
                words = -(-len(part) // LANES) if step >= 0 else 0
                stride = -(-words // _SECTOR_WORDS) * _SECTOR_WORDS if words >= _LONG_ROW else words
                nbytes = n * (stride * LANES or len(part) * kind.itemsize)
                blocks.append(DeviceBlock(part, max(n_values[a] for a in part), kind, stride, nbytes))
        return blocks

    def codes(self, attribute: int) -> Codes:
        """Where one column is on the device; sent there if it is not kept."""
        block, place = self._where[attribute]
        n_values = self._n_values[attribute]
        if block.data is None:
            column = np.ascontiguousarray(self._granules.columns[attribute])
            return Codes(cuda.to_device(column), 1, 0, n_values)
        if block.stride:
            return Codes(block.data.view(np.uint8), LANES * block.stride, place, n_values)
        return Codes(block.data, 1, place * self._n, n_values)

    def passes(self) -> Iterator[tuple[DeviceBlock, Device, Any]]:
        """Every block, lanes first, its data, and the stream to compute on."""
        for block in self._blocks:
            if block.data is not None:
                yield block, block.data, 0
        away = [b for b in self._blocks if b.data is None]
        if not away:
            return
        compute, sent, done = cuda.stream(), cuda.event(), [cuda.event() for _ in range(2)]
        for i, block in enumerate(away):
            if i >= len(done):
                done[i % 2].synchronize()
            data = self._spare[i % 2][: block.nbytes].view(block.unit)
            self._send(block, data)
            for stream in self._streams:
                sent.record(stream)
                sent.wait(compute)
            yield block, data, compute
            done[i % 2].record(compute)
        compute.synchronize()

    def _portion(self, block: DeviceBlock) -> int:
        # how many columns are sent at a time: whole words of lanes
        width = max(1, _PORTION // (self._n * int(block.kind.itemsize)))
        return min(-(-width // LANES), -(-len(block.attributes) // LANES)) * LANES

    def _send(self, block: DeviceBlock, data: Device) -> None:
        # portion by portion: gathered by threads into page-locked memory, sent, and turned into lanes there
        n, columns, width = self._n, self._granules.columns, self._portion(block)
        for first in range(0, len(block.attributes), width):
            turn, self._next = self._next, 1 - self._next
            stream = self._streams[turn]
            stream.synchronize()
            part = block.attributes[first : first + width]
            flat = self._pinned[turn][: len(part) * n * block.kind.itemsize].view(block.kind)
            portion = flat.reshape(len(part), n)

            def fetch(k: int, portion: Any = portion, part: Array = part) -> None:
                for j in range(k, len(part), _FETCHERS):
                    portion[j] = columns[part[j]]

            list(self._pool.map(fetch, range(min(_FETCHERS, len(part)))))
            if block.stride:
                self._staged[turn][: len(flat)].copy_to_device(flat, stream=stream)
                launch = (*grid(n * -(-len(part) // LANES), _THREADS), stream)
                interleave[launch](self._staged[turn], n, len(part), data, block.stride, first // LANES)
            else:
                data[first * n : first * n + len(flat)].copy_to_device(flat, stream=stream)
