"""Sums of floats without rounding, which therefore do not depend on the order of their terms.

A sum is a whole number in words of 32 bits, each in a 64-bit integer with room for the carries of 2^31 terms.
"""

from __future__ import annotations

import numpy as np

from plar.grouping.partition import Ints
from plar.runtime.jit import borrowing

_WORD_BITS = 32
_MASK = (1 << _WORD_BITS) - 1
#: the last bits of a float, before which its exponent is written
_MANTISSA_BITS = 52
_MANTISSA = (1 << _MANTISSA_BITS) - 1
_EXPONENT_OF_ONE = 1023
#: terms below 2^-256 are left out
_FRACTION_BITS = 256 + _MANTISSA_BITS
_FIRST_PLACE = _FRACTION_BITS - _MANTISSA_BITS - _EXPONENT_OF_ONE
#: sums may be up to 2^96
_N_WORDS = (_FRACTION_BITS + 96) // _WORD_BITS + 1


def exact_sums(*shape: int) -> Ints:
    """Make an array of sums, all 0.

    >>> sums = exact_sums(2)
    >>> for term in (1e20, 1.0, 1e-20):
    ...     add_exactly(sums[1], term)
    >>> total_of(sums[0]), total_of(sums[1])
    (0.0, 1e+20)
    """
    return np.zeros((*shape, _N_WORDS), np.int64)


def total_of(words: Ints) -> float:
    """The float next to a sum."""
    total = 0
    for word in words[::-1].tolist():
        total = (total << _WORD_BITS) + word
    return total / (1 << _FRACTION_BITS)


@borrowing
def add_exactly(words: Ints, term: float) -> None:
    """Add a term, which is not negative, to a sum."""
    # the term is a whole number, of which the first bit is not written, times 2^place / 2^_FRACTION_BITS
    bits = np.float64(term).view(np.int64)
    place = (bits >> _MANTISSA_BITS) + _FIRST_PLACE
    if place < 0:
        return
    whole = (bits & _MANTISSA) | (1 << _MANTISSA_BITS)
    word = place // _WORD_BITS
    shift = place % _WORD_BITS
    words[word] += (whole << shift) & _MASK
    words[word + 1] += (whole >> (_WORD_BITS - shift)) & _MASK
    words[word + 2] += (whole >> _WORD_BITS) >> (_WORD_BITS - shift)
