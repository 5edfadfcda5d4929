"""Sets of small numbers as bits of 64-bit words."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from plar.jit import jit

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
