"""All minimal sets that hit some clauses, up to a size: algorithm MMCS of Murakami and Uno, a batch at a time.

Sets of clauses and of attributes are bits of 64-bit words. A set S grows by an attribute of a clause that it does not
hit yet. Each member must stay *critical*, the only one that hits some clause; otherwise no superset of S is minimal.

References
----------
K. Murakami, T. Uno: Efficient algorithms for dualizing large-scale hypergraphs (2014).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

import numpy as np
from numpy.typing import NDArray

from plar.bitsets import Bits, as_bits, narrowest, take_first
from plar.jit import jit

#: sets per batch, and nodes of the search after which a batch is returned as it is
_BATCH, _NODES = 1 << 11, 1 << 16


class Enumeration:
    """The minimal hitting sets of exactly `size` attributes, in an order that depends only on the clauses.

    Examples
    --------
    >>> found = Enumeration([{0, 1}, {1, 2}], n=3, size=2)
    >>> [sets.tolist() for sets in found.batches()], found.is_last
    ([[[0, 2]]], True)
    """

    def __init__(self, clauses: Sequence[Set[int]], n: int, size: int) -> None:
        holds = np.zeros((len(clauses), n), np.bool_)
        for row, clause in zip(holds, clauses, strict=True):
            row[sorted(clause)] = True
        self._of_clause, self._of_attribute = as_bits(holds), as_bits(holds.T)
        self._size = size
        #: whether no larger set is minimal; known at the end
        self.is_last = False

    def batches(self) -> Iterator[NDArray[np.int32]]:
        """The sets as sorted rows of attributes; a batch may be empty, so that the caller can check the time."""
        size, words, width = self._size, self._of_attribute.shape[1], self._of_clause.shape[1]
        # by depth: clauses not hit yet, those for which each member is critical, attributes to grow by and to try
        unhit, critical = np.zeros((size + 2, words), np.uint64), np.zeros((size + 2, size + 1, words), np.uint64)
        free, left = np.zeros((size + 2, width), np.uint64), np.zeros((size + 2, width), np.uint64)
        unhit[0], free[0] = (
            as_bits(np.ones((1, len(bits)), np.bool_))[0] for bits in (self._of_clause, self._of_attribute)
        )
        chosen, state = np.zeros(size + 2, np.int32), np.zeros(3, np.int64)
        while state[0] >= 0:
            found = np.empty((_BATCH, size), np.int32)
            n = _next_sets(self._of_clause, self._of_attribute, size, unhit, critical, free, left, chosen, state, found)
            yield np.sort(found[:n], axis=1)
        self.is_last = not state[2]


@jit
def _next_sets(
    of_clause: Bits,
    of_attribute: Bits,
    size: int,
    unhit: Bits,
    critical: Bits,
    free: Bits,
    left: Bits,
    chosen: NDArray[np.int32],
    state: NDArray[np.int64],
    found: NDArray[np.int32],
) -> int:
    # runs until the batch is full, or depth is -1, when all sets have been seen; state: depth, whether its node was
    # entered, whether a set would have to be larger
    one, zero = np.uint64(1), np.uint64(0)
    n_found, depth, entered = 0, state[0], state[1] == 1
    nodes = 0
    while depth >= 0 and n_found < len(found) and nodes < _NODES:
        grows = True
        if not entered:
            nodes += 1
            entered = True
            best = narrowest(of_clause, unhit, free, depth)
            grows = bool(best >= 0 and depth < size)
            if grows:
                for v in range(free.shape[1]):
                    left[depth, v] = of_clause[best, v] & free[depth, v]
                    free[depth, v] &= ~of_clause[best, v]
            elif best >= 0:
                state[2] = 1
            elif depth == size:
                for i in range(size):
                    found[n_found, i] = chosen[i]
                n_found += 1
        a = take_first(left, depth) if grows else np.int64(-1)
        if a < 0:
            depth -= 1
            if depth >= 0:
                a = chosen[depth]
                free[depth, a >> 6] |= one << np.uint64(a & 63)
            continue
        below = depth + 1
        minimal = True
        for i in range(depth):
            some = zero
            for w in range(unhit.shape[1]):
                rest = critical[depth, i, w] & ~of_attribute[a, w]
                critical[below, i, w] = rest
                some |= rest
            if some == zero:
                minimal = False
                break
        if not minimal:
            continue  # nor is any further set with it: do not grow by it again
        for w in range(unhit.shape[1]):
            critical[below, depth, w] = unhit[depth, w] & of_attribute[a, w]
            unhit[below, w] = unhit[depth, w] & ~of_attribute[a, w]
        for v in range(free.shape[1]):
            free[below, v] = free[depth, v]
        chosen[depth] = a
        depth = below
        entered = False
    state[0], state[1] = depth, 1 if entered else 0
    return n_found
