"""The columns of a table on the GPU: blocks of few-valued columns as lanes, others column by column.

All blocks stay on the device if they fit. Those that do not are sent again for every pass, into two buffers
in turn, so that one is filled while the other is in use.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import cuda
from numba.core import config

from plar.engines.cuda.kernels import LANES_PER_WORD, DeviceArray, grid, interleave
from plar.engines.cuda.partition import DeviceCodes
from plar.errors import EngineUnavailable
from plar.granules.granules import Granules
from plar.grouping.partition import Array
from plar.runtime.parallel import ThreadTeam

_THREADS_PER_BLOCK = 4 if config.ENABLE_CUDASIM else 128
#: columns go through page-locked memory in portions of about this many bytes
_PORTION_BYTES = 1 << 24
#: threads that copy them there
_N_FETCHERS = 8
#: lanes share a block if their numbers of values fall between the same two of these: counters are for the largest
_VALUE_LIMITS = (4, 8, 16)
#: rows of at least `_MIN_ALIGNED_WORDS` words are aligned to memory sectors of `_SECTOR_WORDS`
_SECTOR_WORDS = 8
_MIN_ALIGNED_WORDS = 32


@dataclass(slots=True, eq=False)
class DeviceBlock:
    """Some attributes that are evaluated together."""

    attributes: Array
    #: the most values of one of them
    n_values: int
    #: of the codes
    dtype: np.dtype[Any]
    #: words of a row of lanes; 0 if the columns lie one after the other
    stride: int
    #: bytes of its array
    nbytes: int
    #: None if it is not kept on the device
    data: DeviceArray | None = None

    @property
    def element_type(self) -> np.dtype[Any]:
        """Type of the elements of its array."""
        return np.dtype(np.uint32) if self.stride else self.dtype


class DeviceColumns:
    """All columns, on the device as far as they fit `memory` bytes; those over `max_values` are not lanes."""

    def __init__(self, granules: Granules, max_values: int, memory: float) -> None:
        self._granules = granules
        self._n_rows = len(granules)
        self._n_values = granules.cardinalities
        self._team = ThreadTeam(_N_FETCHERS)
        blocks = self._grouped(max_values, None)
        bytes_left = memory
        if sum(block.nbytes for block in blocks) > memory:
            blocks = self._grouped(max_values, max(int(memory) // 8, 1))
            needed = 2 * max(block.nbytes for block in blocks)
            bytes_left = memory - needed
            if bytes_left < 0:
                raise EngineUnavailable(
                    f"The engine 'cuda' needs at least {-(-needed // 2**20)} MB of GPU memory for the columns of "
                    f"{self._n_rows} granules, and may use {int(memory) / 2**20:.0f} MB. Use the engine 'local'."
                )
        self._place_of = {a: (block, place) for block in blocks for place, a in enumerate(block.attributes.tolist())}
        self._blocks = sorted(blocks, key=lambda block: block.stride == 0)
        #: two of each, so that one is filled while the other is sent
        self._streams = [cuda.stream() for _ in range(2)]
        portions = [self._columns_per_portion(block) * self._n_rows * block.dtype.itemsize for block in blocks]
        portion_bytes = max(portions, default=1)
        self._pinned = [cuda.pinned_array(portion_bytes, np.uint8) for _ in range(2)]
        self._staged = [cuda.device_array(portion_bytes, np.uint8) for _ in range(2)]
        self._next_turn = 0
        for block in blocks:
            if block.nbytes <= bytes_left:
                bytes_left -= block.nbytes
                block.data = cuda.device_array(block.nbytes // block.element_type.itemsize, block.element_type)
                self._send(block, block.data)
        #: where blocks that are not kept take turns
        self._turns: list[DeviceArray] = []
        largest = max((block.nbytes for block in blocks if block.data is None), default=0)
        if largest:
            self._turns = [cuda.device_array(largest, np.uint8) for _ in range(2)]

    def _grouped(self, max_values: int, max_bytes: int | None) -> list[DeviceBlock]:
        """Blocks of at most this many bytes, but at least a word of lanes or a column."""
        n_values = self._n_values
        columns = self._granules.columns
        # by band of numbers of values, None beyond lanes
        groups: dict[tuple[int | None, np.dtype[Any]], list[int]] = {}
        for a, n in enumerate(n_values):
            if n <= max_values:
                n_limits_below = sum(n > limit for limit in _VALUE_LIMITS)
                groups.setdefault((n_limits_below, np.dtype(np.uint8)), []).append(a)
            else:
                groups.setdefault((None, columns[a].dtype), []).append(a)
        blocks = []
        for (band, dtype), group in groups.items():
            in_lanes = band is not None
            width = len(group)
            if max_bytes is not None:
                width = max(1, max_bytes // (self._n_rows * dtype.itemsize))
            if in_lanes:
                width = -(-width // LANES_PER_WORD) * LANES_PER_WORD
            for i in range(0, len(group), width):
                attributes = np.array(group[i : i + width])
                stride = _row_words(len(attributes)) if in_lanes else 0
                row_bytes = stride * LANES_PER_WORD if in_lanes else len(attributes) * dtype.itemsize
                most = max(n_values[a] for a in attributes)
                blocks.append(DeviceBlock(attributes, most, dtype, stride, self._n_rows * row_bytes))
        return blocks

    def codes(self, attribute: int) -> DeviceCodes:
        """Where one column is on the device; sent there if it is not kept."""
        block, place = self._place_of[attribute]
        n_values = self._n_values[attribute]
        if block.data is None:
            column = np.ascontiguousarray(self._granules.columns[attribute])
            return DeviceCodes(cuda.to_device(column), 1, 0, n_values)
        if block.stride:
            return DeviceCodes(block.data.view(np.uint8), LANES_PER_WORD * block.stride, place, n_values)
        return DeviceCodes(block.data, 1, place * self._n_rows, n_values)

    def passes(self) -> Iterator[tuple[DeviceBlock, DeviceArray, Any]]:
        """Every block, lanes first, its data, and the stream to compute on."""
        for block in self._blocks:
            if block.data is not None:
                yield block, block.data, 0
        away = [block for block in self._blocks if block.data is None]
        if not away:
            return
        compute = cuda.stream()
        sent = cuda.event()
        done = [cuda.event() for _ in range(2)]
        for i, block in enumerate(away):
            turn = i % 2
            if i >= 2:
                done[turn].synchronize()
            data = self._turns[turn][: block.nbytes].view(block.element_type)
            self._send(block, data)
            for stream in self._streams:
                sent.record(stream)
                sent.wait(compute)
            yield block, data, compute
            done[turn].record(compute)
        compute.synchronize()

    def _columns_per_portion(self, block: DeviceBlock) -> int:
        """How many columns are sent at a time: whole words of lanes."""
        width = max(1, _PORTION_BYTES // (self._n_rows * block.dtype.itemsize))
        return min(-(-width // LANES_PER_WORD), -(-len(block.attributes) // LANES_PER_WORD)) * LANES_PER_WORD

    def _send(self, block: DeviceBlock, data: DeviceArray) -> None:
        """Send columns portion by portion: threads gather them in page-locked memory; lanes are made on the device."""
        n = self._n_rows
        width = self._columns_per_portion(block)
        for first in range(0, len(block.attributes), width):
            turn = self._next_turn
            self._next_turn = 1 - turn
            stream = self._streams[turn]
            stream.synchronize()
            attributes = block.attributes[first : first + width]
            flat = self._pinned[turn][: len(attributes) * n * block.dtype.itemsize].view(block.dtype)
            self._fetch(attributes, flat.reshape(len(attributes), n))
            if block.stride:
                self._staged[turn][: len(flat)].copy_to_device(flat, stream=stream)
                launch = (*grid(n * -(-len(attributes) // LANES_PER_WORD), _THREADS_PER_BLOCK), stream)
                interleave[launch](self._staged[turn], n, len(attributes), data, block.stride, first // LANES_PER_WORD)
            else:
                data[first * n : first * n + len(flat)].copy_to_device(flat, stream=stream)

    def _fetch(self, attributes: Array, portion: Array) -> None:
        """Copy columns to the rows of a portion, each thread its share of them."""
        columns = self._granules.columns

        def fetch(first: int) -> None:
            for k in range(first, len(attributes), _N_FETCHERS):
                portion[k] = columns[attributes[k]]

        self._team.run(fetch, range(min(_N_FETCHERS, len(attributes))))


def _row_words(n_lanes: int) -> int:
    """Words of a row of so many lanes; a long row begins at a memory sector."""
    words = -(-n_lanes // LANES_PER_WORD)
    if words < _MIN_ALIGNED_WORDS:
        return words
    return -(-words // _SECTOR_WORDS) * _SECTOR_WORDS
