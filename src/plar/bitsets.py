"""Sets of small numbers as bits of 64-bit words."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from plar.jit import inlined, jit

Bits: TypeAlias = NDArray[np.uint64]


def as_bits(holds: NDArray[np.bool_]) -> Bits:
    """Rows of truth values as words, a row each.

    >>> as_bits(np.arange(66) == [[2], [65]]).tolist()
    [[4, 0], [0, 2]]
    """
    words = np.zeros((len(holds), max(1, -(-holds.shape[1] // 64)) * 8), np.uint8)
    packed = np.packbits(holds, axis=1, bitorder="little")
    words[:, : packed.shape[1]] = packed
    return words.view("<u8").astype(np.uint64)


@jit
def count_bits(word: np.uint64) -> np.uint64:
    """How many bits of a word are set."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@inlined
def take_first(sets: Bits, row: int) -> np.int64:
    """Remove the smallest number from the set in a row, and return it; -1 if the set is empty."""
    found, one = np.int64(-1), np.uint64(1)
    for w in range(sets.shape[1]):
        word = sets[row, w]
        if word:
            bit = word & (~word + one)
            sets[row, w] ^= bit
            found = w * 64 + np.int64(count_bits(bit - one))
            break
    return found


@inlined
def narrowest(of_clause: Bits, unhit: Bits, free: Bits, row: int) -> np.int64:
    """Of the clauses not hit yet, the first with the fewest free attributes; -1 if all are hit."""
    best, fewest, one = np.int64(-1), np.uint64(0xFFFFFFFF), np.uint64(1)
    for w in range(unhit.shape[1]):
        word = unhit[row, w]
        while word:
            bit = word & (~word + one)
            word ^= bit
            clause = w * 64 + np.int64(count_bits(bit - one))
            n = np.uint64(0)
            for v in range(free.shape[1]):
                n += count_bits(of_clause[clause, v] & free[row, v])
            if n < fewest:
                best, fewest = clause, n
    return best
