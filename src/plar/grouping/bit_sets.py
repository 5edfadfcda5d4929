"""Sets as bits of words: 64 members a word, the first as the lowest bit."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Words: TypeAlias = NDArray[np.uint64]

_BITS = 64


def as_words(members: NDArray[np.bool_]) -> Words:
    """Truth values along the last axis as words, at least one; the bits beyond the last value are 0.

    >>> as_words(np.array([True, False, True])).tolist()
    [5]
    """
    n_members = members.shape[-1]
    n_words = max(1, -(-n_members // _BITS))
    packed = np.zeros((*members.shape[:-1], n_words * 8), np.uint8)
    packed[..., : -(-n_members // 8)] = np.packbits(members, axis=-1, bitorder="little")
    return packed.view("<u8").astype(np.uint64, copy=False)


def as_truth(words: Words, n_members: int) -> NDArray[np.bool_]:
    """Undo `as_words`.

    >>> as_truth(np.array([5], np.uint64), 3).tolist()
    [True, False, True]
    """
    as_bytes = np.ascontiguousarray(words.astype("<u8", copy=False)).view(np.uint8)
    return np.unpackbits(as_bytes, axis=-1, bitorder="little", count=n_members).view(np.bool_)
