"""Kernels from values to dense codes: small ranges through a byte, everything else through a table of keys."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from plar.grouping.partition import Array, Index
from plar.runtime.jit import jit

Bytes: TypeAlias = NDArray[np.uint8]
Flags: TypeAlias = NDArray[np.bool_]
Keys: TypeAlias = NDArray[np.uint64]
Places: TypeAlias = NDArray[np.uint64]

_ONE = np.uint64(1)
#: keys that differ by less than this are looked up without hashing
_NEAR = np.uint64(1 << 16)


@jit
def mix(key: np.uint64) -> np.uint64:
    """Scatter the bits of a key, by the finaliser of MurmurHash3: neighbours land far apart."""
    key ^= key >> np.uint64(33)
    key *= np.uint64(0xFF51AFD7ED558CCD)
    key ^= key >> np.uint64(33)
    key *= np.uint64(0xC4CEB9FE1A85EC53)
    return key ^ (key >> np.uint64(33))


# Loops that grow a table are separate from those that use it: numba counts references to an array in every iteration of
# a loop that may replace it, which takes ten times as long as the rest.


@jit
def _near(keys: Keys, low: np.uint64, slots: Index, codes: Index, first: Index) -> np.uint64:
    # slots, zeroed, hold code + 1 of the keys seen
    n_codes = np.uint32(0)
    for i in range(np.uint64(len(keys))):
        at = keys[i] - low
        if slots[at] == 0:
            first[n_codes] = i
            n_codes += np.uint32(1)
            slots[at] = n_codes
        codes[i] = slots[at] - np.uint32(1)
    return np.uint64(n_codes)


@jit
def _hash(
    keys: Keys, begin: np.uint64, slots: Index, n_codes: np.uint64, codes: Index, first: Index
) -> tuple[np.uint64, np.uint64]:
    # Open addressing; a slot holds code + 1. Ends at the first key that would fill more than half of the slots.
    mask = np.uint64(len(slots)) - _ONE
    for i in range(begin, np.uint64(len(keys))):
        key = keys[i]
        at = mix(key) & mask
        while slots[at] != 0 and keys[first[slots[at] - np.uint32(1)]] != key:
            at = (at + _ONE) & mask
        if slots[at] == 0:
            if n_codes + n_codes > mask:
                return np.uint64(i), n_codes
            first[n_codes] = i
            n_codes += _ONE
            slots[at] = n_codes
        codes[i] = slots[at] - np.uint32(1)
    return np.uint64(len(keys)), n_codes


@jit
def _rehash(keys: Keys, slots: Index, n_codes: np.uint64, first: Index) -> None:
    mask = np.uint64(len(slots)) - _ONE
    for c in range(n_codes):
        at = mix(keys[first[c]]) & mask
        while slots[at] != 0:
            at = (at + _ONE) & mask
        slots[at] = c + _ONE


@jit
def factorized(keys: Keys) -> tuple[Index, Index]:
    """Codes of keys, in order of appearance, and the row where each appears first."""
    codes = np.empty(len(keys), np.uint32)
    first = np.empty(len(keys), np.uint32)
    if len(keys) == 0:
        return codes, first
    # signed or unsigned does not matter: differences wrap around to the same
    low = np.int64(keys[0])
    high = low
    for i in range(np.uint64(len(keys))):
        key = np.int64(keys[i])
        low = min(low, key)
        high = max(high, key)
    reach = np.uint64(high) - np.uint64(low)
    if reach < _NEAR:
        n_codes = _near(keys, np.uint64(low), np.zeros(reach + _ONE, np.uint32), codes, first)
        return codes, first[:n_codes].copy()
    size = np.uint64(1024)
    slots = np.zeros(size, np.uint32)
    begin, n_codes = _hash(keys, np.uint64(0), slots, np.uint64(0), codes, first)
    while begin < np.uint64(len(keys)):
        size *= np.uint64(4)
        slots = np.zeros(size, np.uint32)
        _rehash(keys, slots, n_codes, first)
        begin, n_codes = _hash(keys, begin, slots, n_codes, codes, first)
    return codes, first[:n_codes].copy()


# Below, the columns are the rows of `columns`, at the places `chosen`: those of a matrix in C order are read in tiles,
# row by row of the matrix, those in Fortran order in long runs.


@jit
def narrow_integers(columns: Array, chosen: Places, low: Keys, codes: Bytes, wide: Flags, tile: np.uint64) -> None:
    """Write the values minus `low` as bytes, and mark the columns with values that do not fit."""
    n = np.uint64(columns.shape[1])
    for begin in range(np.uint64(0), n, tile):
        end = min(begin + tile, n)
        for j in range(np.uint64(len(chosen))):
            if wide[j]:
                continue
            column = columns[chosen[j]]
            out = codes[j]
            least = low[j]
            above = np.uint64(0)
            for i in range(begin, end):
                difference = np.uint64(column[i]) - least  # wraps around to the right value for any signs
                above |= difference
                out[i] = np.uint8(difference)
            wide[j] = above > np.uint64(255)


@jit
def narrow_floats(columns: Array, chosen: Places, low: Keys, codes: Bytes, wide: Flags, tile: np.uint64) -> None:
    """The same for whole numbers stored as floats; NaN becomes 255."""
    n = np.uint64(columns.shape[1])
    values = np.empty(tile, np.float64)  # separate loops, or the compiler does not vectorise
    for begin in range(np.uint64(0), n, tile):
        end = min(begin + tile, n)
        for j in range(np.uint64(len(chosen))):
            if wide[j]:
                continue
            column = columns[chosen[j]]
            out = codes[j]
            least = np.int32(low[j])
            for i in range(begin, end):
                values[i - begin] = column[i]
            above = np.uint32(0)
            for i in range(begin, end):
                value = values[i - begin]
                whole = np.int32(value)
                difference = np.uint32(whole - least)
                missing = value != value
                fitting = difference if np.float64(whole) == value else np.uint32(255)
                above = max(above, np.uint32(0) if missing else fitting)
                out[i] = np.uint8(255) if missing else np.uint8(difference)
            wide[j] = above > np.uint32(254)


@jit
def gather(columns: Array, chosen: Places, out: Array, tile: np.uint64) -> None:
    """Copy columns, each to a row of `out`, of its type."""
    n = np.uint64(columns.shape[1])
    for begin in range(np.uint64(0), n, tile):
        end = min(begin + tile, n)
        for j in range(np.uint64(len(chosen))):
            column = columns[chosen[j]]
            row = out[j]
            for i in range(begin, end):
                row[i] = column[i]


@jit
def dense(codes: Bytes, skip: Flags, seen: Flags) -> None:
    """Mark the bytes that each row has, except those to skip, and make its codes dense, in place."""
    n = np.uint64(codes.shape[1])
    lut = np.empty(256, np.uint8)
    for j in range(np.uint64(codes.shape[0])):
        if skip[j]:
            continue
        column = codes[j]
        top = np.uint8(0)
        for i in range(n):
            top = max(top, column[i])
        if top < 64:  # one bit per value: the compiler vectorises it
            bits = np.uint64(0)
            for i in range(n):
                bits |= _ONE << np.uint64(column[i])
            for v in range(np.uint64(64)):
                seen[j, v] = (bits >> v) & _ONE
        else:
            for i in range(n):
                seen[j, column[i]] = True
        n_codes = np.uint64(0)
        for v in range(np.uint64(256)):
            lut[v] = n_codes
            n_codes += np.uint64(seen[j, v])
        if n_codes <= np.uint64(top):
            for i in range(n):
                column[i] = lut[column[i]]
