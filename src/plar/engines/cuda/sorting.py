"""Prefix sums and a stable radix sort on the GPU."""

from __future__ import annotations

import numpy as np
from numba import cuda
from numba.core import config

from plar.engines.cuda.kernels import DeviceArray, device, kernel
from plar.grouping.partition import Array

#: threads per block of these kernels; the simulator runs each of them as a Python thread
THREADS = 4 if config.ENABLE_CUDASIM else 128
#: prefix sums go in chunks, a block each, with at least so many numbers for each thread
_MAX_CHUNKS = 1024
_MIN_NUMBERS_PER_THREAD = 16
#: bits that the sort takes at a time
_DIGIT_BITS = 8
_N_DIGITS = 1 << _DIGIT_BITS
#: rows that a block sorts
_TILE_ROWS = 4 * THREADS


@kernel
def _sum_chunks(values: Array, n: int, chunk: int, sums: Array) -> None:
    shared = cuda.shared.array(THREADS, np.int64)
    block = cuda.blockIdx.x
    which = cuda.blockIdx.y
    t = cuda.threadIdx.x
    total = np.int64(0)
    for i in range(block * chunk + t, min((block + 1) * chunk, n), THREADS):
        total += values[which, i]
    shared[t] = total
    cuda.syncthreads()
    if t == 0:
        for j in range(1, THREADS):
            total += shared[j]
        sums[which, block] = total


@kernel
def _scan_chunks(values: Array, n: int, chunk: int, sums: Array) -> None:
    # values[i] becomes the sum of all before it
    before = cuda.shared.array(THREADS, np.int64)
    within = cuda.shared.array(THREADS, np.int64)
    block = cuda.blockIdx.x
    which = cuda.blockIdx.y
    t = cuda.threadIdx.x
    part = chunk // THREADS
    low = block * chunk + t * part
    high = min(low + part, n)
    total = np.int64(0)
    for j in range(t, block, THREADS):
        total += sums[which, j]
    before[t] = total
    total = np.int64(0)
    for i in range(low, high):
        total += values[which, i]
    within[t] = total
    cuda.syncthreads()
    if t == 0:
        running = np.int64(0)
        for j in range(THREADS):
            running += before[j]
        for j in range(THREADS):
            of_thread = within[j]
            within[j] = running
            running += of_thread
    cuda.syncthreads()
    running = within[t]
    for i in range(low, high):
        value = values[which, i]
        values[which, i] = running
        running += value


@device
def _digit(key: np.uint64, shift: int, digits: int) -> np.int64:
    return np.int64((key >> np.uint64(shift)) & np.uint64(digits - 1))


@kernel
def _count_digits(keys: Array, n: int, shift: int, digits: int, tiles: int, counts: Array) -> None:
    seen = cuda.shared.array(_N_DIGITS, np.int32)
    tile = cuda.blockIdx.x
    t = cuda.threadIdx.x
    for digit in range(t, digits, THREADS):
        seen[digit] = 0
    cuda.syncthreads()
    for i in range(tile * _TILE_ROWS + t, min((tile + 1) * _TILE_ROWS, n), THREADS):
        cuda.atomic.add(seen, _digit(keys[i], shift, digits), 1)
    cuda.syncthreads()
    for digit in range(t, digits, THREADS):
        counts[0, digit * tiles + tile] = seen[digit]


@kernel
def _move_by_digit(
    keys: Array, places: Array, n: int, shift: int, digits: int, tiles: int, counts: Array, new_keys: Array,
    new_places: Array,
) -> None:  # fmt: skip
    # the rank of a row among equals in the tile is counted one by one: a tile is small
    of_row = cuda.shared.array(_TILE_ROWS, np.int32)
    tile = cuda.blockIdx.x
    t = cuda.threadIdx.x
    first = tile * _TILE_ROWS
    rows = min(_TILE_ROWS, n - first)
    for i in range(t, rows, THREADS):
        of_row[i] = _digit(keys[first + i], shift, digits)
    cuda.syncthreads()
    for i in range(t, rows, THREADS):
        digit = of_row[i]
        rank = np.int64(0)
        for j in range(i):
            rank += of_row[j] == digit
        target = counts[0, digit * tiles + tile] + rank
        new_keys[target] = keys[first + i]
        new_places[target] = places[first + i]


class Sorter:
    """Sorts up to n keys with their original places; holds the working memory."""

    def __init__(self, n: int) -> None:
        self._keys = [cuda.device_array(n, np.uint64) for _ in range(2)]
        self._places = [cuda.device_array(n, np.uint32) for _ in range(2)]
        self._digit_counts = cuda.device_array((1, _N_DIGITS * -(-n // _TILE_ROWS)), np.int64)
        self._sums = cuda.device_array((2, _MAX_CHUNKS), np.int64)

    def buffers(self) -> tuple[DeviceArray, DeviceArray]:
        """Where to write the keys and places to be sorted."""
        return self._keys[0], self._places[0]

    def sorted(self, n: int, bits: int) -> tuple[DeviceArray, DeviceArray]:
        """Sort the first n keys by their lowest bits."""
        # stable, from the lowest digit up
        tiles = -(-n // _TILE_ROWS)
        for shift in range(0, bits, _DIGIT_BITS):
            digits = 1 << min(_DIGIT_BITS, bits - shift)
            keys, new_keys = self._keys
            places, new_places = self._places
            sizes = n, shift, digits, tiles
            _count_digits[tiles, THREADS](keys, *sizes, self._digit_counts)
            self.scan(self._digit_counts, digits * tiles)
            _move_by_digit[tiles, THREADS](keys, places, *sizes, self._digit_counts, new_keys, new_places)
            self._keys.reverse()
            self._places.reverse()
        return self.buffers()

    def scan(self, values: DeviceArray, n: int) -> None:
        """Turn the first n numbers of each row into the sums of all before them, in place."""
        chunk = THREADS * max(_MIN_NUMBERS_PER_THREAD, -(-n // (_MAX_CHUNKS * THREADS)))
        launch = (-(-n // chunk), len(values)), THREADS
        _sum_chunks[launch](values, n, chunk, self._sums)
        _scan_chunks[launch](values, n, chunk, self._sums)
