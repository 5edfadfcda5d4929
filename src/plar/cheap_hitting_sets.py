"""Whether a set of at most some cost hits all clauses: a search on bits, without a linear program."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from plar.bitsets import Bits, count_bits, narrowest, take_first
from plar.jit import jit


@jit
def search(
    of_clause: Bits,
    of_attribute: Bits,
    costs: NDArray[np.int64],
    budget: int,
    unhit: Bits,
    free: Bits,
    most_nodes: int,
    chosen: NDArray[np.int64],
) -> int:
    """Find attributes that hit all clauses within a cost: how many were chosen, -1 if none do, -2 if unknown.

    `unhit` and `free` have a row for each depth, of which the first is given: the clauses not hit yet, and the
    attributes that may be chosen. An attribute that was tried is not free for those tried after it.
    """
    one, zero = np.uint64(1), np.uint64(0)
    left = np.zeros_like(free)
    spent = np.zeros(len(free), np.int64)
    depth, nodes, entered = 0, 0, False
    while depth >= 0:
        if not entered:
            nodes += 1
            if nodes > most_nodes:
                return -2
            best, n_unhit = narrowest(of_clause, unhit, free, depth), zero
            if best < 0:
                return depth
            for w in range(unhit.shape[1]):
                n_unhit += count_bits(unhit[depth, w])
            # the remaining budget must pay for all clauses, at the rate of the attribute that hits most for its cost
            rest, pays = budget - spent[depth], False
            for v in range(free.shape[1]):
                word = free[depth, v]
                while word and not pays:
                    bit = word & (~word + one)
                    word ^= bit
                    a = v * 64 + np.int64(count_bits(bit - one))
                    hits = zero
                    for w in range(unhit.shape[1]):
                        hits += count_bits(unhit[depth, w] & of_attribute[a, w])
                    pays = costs[a] <= rest and np.int64(hits) * rest >= np.int64(n_unhit) * costs[a]
            for v in range(free.shape[1]):
                left[depth, v] = of_clause[best, v] & free[depth, v] if pays else zero
            entered = True
        a = take_first(left, depth)
        if a < 0:
            depth -= 1
            continue
        free[depth, a >> 6] &= ~(one << np.uint64(a & 63))
        if spent[depth] + costs[a] > budget:
            continue
        chosen[depth] = a
        spent[depth + 1] = spent[depth] + costs[a]
        for w in range(unhit.shape[1]):
            unhit[depth + 1, w] = unhit[depth, w] & ~of_attribute[a, w]
        for v in range(free.shape[1]):
            free[depth + 1, v] = free[depth, v]
        depth += 1
        entered = False
    return -1
