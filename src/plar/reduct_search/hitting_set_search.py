"""Searches for sets that hit all clauses, compiled: one within a cost, and all minimal ones of a size.

Sets of clauses and of attributes are bits of 64-bit words. Both searches are depth-first: a set grows by the
attributes of one clause, the one with the fewest among those not hit yet.

References
----------
K. Murakami, T. Uno: Efficient algorithms for dualizing large-scale hypergraphs (2014).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from plar.runtime.jit import inlined, jit

Bits: TypeAlias = NDArray[np.uint64]

_ZERO = np.uint64(0)
_ONE = np.uint64(1)

#: sets per batch
_BATCH = 1 << 11
#: nodes after which a search gives up, or returns a batch as it is
_NODES = 1 << 16
#: what `search_within` returns instead of a number of attributes
NO_SET = -1
TOO_MANY_NODES = -2
#: places in `SetSearch.position`
_DEPTH = 0
_ENTERED = 1
_LARGER = 2


class SetSearch(NamedTuple):
    """Where the search for minimal sets stands, so that it can go on with the next batch; arrays by depth."""

    #: clauses not hit yet
    unhit: Bits
    #: by depth and member: the clauses that only this member hits
    critical: Bits
    #: attributes that the set may still grow by
    free: Bits
    #: attributes of the chosen clause that are still to be tried
    untried: Bits
    #: the attribute chosen
    chosen: NDArray[np.int32]
    #: the depth, -1 at the end; whether its node was entered; whether larger sets may be minimal
    position: NDArray[np.int64]


def as_bits(holds: NDArray[np.bool_]) -> Bits:
    """Truth values along the last axis as words.

    >>> as_bits(np.arange(66) == [[2], [65]]).tolist()
    [[4, 0], [0, 2]]
    """
    packed = np.packbits(holds, axis=-1, bitorder="little")
    words = np.zeros((*holds.shape[:-1], max(1, -(-holds.shape[-1] // 64)) * 8), np.uint8)
    words[..., : packed.shape[-1]] = packed
    return words.view("<u8").astype(np.uint64)


def minimal_hitting_sets(holds: NDArray[np.bool_], size: int) -> Iterator[tuple[NDArray[np.int32], bool]]:
    """List the minimal sets of exactly `size` attributes that hit all clauses, in batches: MMCS of Murakami and Uno.

    `holds` has a row per clause and a column per attribute. Each set is a sorted row of attributes; the order
    of the sets depends only on the clauses. A batch may be empty, so that the caller can check the time. It
    comes with whether larger sets may be minimal, as far as the search has come: False with the last batch
    means that none is.

    Examples
    --------
    >>> clauses = np.array([[True, True, False], [False, True, True]])
    >>> [(sets.tolist(), larger) for sets, larger in minimal_hitting_sets(clauses, size=2)]
    [([[0, 2]], False)]
    """
    n_clauses, n_attributes = holds.shape
    of_clause = as_bits(holds)
    of_attribute = as_bits(holds.T)
    clause_words = of_attribute.shape[1]
    attribute_words = of_clause.shape[1]
    depths = size + 2
    search = SetSearch(
        unhit=np.zeros((depths, clause_words), np.uint64),
        critical=np.zeros((depths, size + 1, clause_words), np.uint64),
        free=np.zeros((depths, attribute_words), np.uint64),
        untried=np.zeros((depths, attribute_words), np.uint64),
        chosen=np.zeros(depths, np.int32),
        position=np.zeros(3, np.int64),
    )
    search.unhit[0] = as_bits(np.ones(n_clauses, np.bool_))
    search.free[0] = as_bits(np.ones(n_attributes, np.bool_))
    while search.position[_DEPTH] >= 0:
        batch = np.empty((_BATCH, size), np.int32)
        n_sets = _next_sets(of_clause, of_attribute, size, search, batch)
        yield np.sort(batch[:n_sets], axis=1), bool(search.position[_LARGER])


# -- kernels ---------------------------------------------------------------------------------------------------


@jit
def _count_bits(word: np.uint64) -> np.uint64:
    """How many bits of a word are set."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@inlined
def _count_common(sets: Bits, row: int | np.int64, others: Bits, other_row: int | np.int64) -> np.uint64:
    """How many numbers two sets, each a row, have in common."""
    n = np.uint64(0)
    for w in range(sets.shape[1]):
        n += _count_bits(sets[row, w] & others[other_row, w])
    return n


@inlined
def _take_first(sets: Bits, row: int) -> np.int64:
    """Remove the smallest number from the set in a row, and return it; -1 if the set is empty."""
    first = np.int64(-1)
    for w in range(sets.shape[1]):
        word = sets[row, w]
        if word:
            bit = word & (~word + _ONE)
            sets[row, w] ^= bit
            first = w * 64 + np.int64(_count_bits(bit - _ONE))
            break
    return first


@inlined
def _narrowest(of_clause: Bits, unhit: Bits, free: Bits, row: int) -> np.int64:
    """Of the clauses not hit yet, the first with the fewest free attributes; -1 if all are hit."""
    best = np.int64(-1)
    fewest = np.uint64(0xFFFFFFFF)
    for w in range(unhit.shape[1]):
        word = unhit[row, w]
        while word:
            bit = word & (~word + _ONE)
            word ^= bit
            clause = w * 64 + np.int64(_count_bits(bit - _ONE))
            n = _count_common(of_clause, clause, free, row)
            if n < fewest:
                best = clause
                fewest = n
    return best


@jit
def search_within(
    of_clause: Bits,
    of_attribute: Bits,
    costs: NDArray[np.int64],
    budget: int,
    unhit: Bits,
    free: Bits,
    chosen: NDArray[np.int64],
) -> int:
    """Find attributes that hit all clauses within a cost: how many were chosen, or NO_SET, or TOO_MANY_NODES.

    `unhit` and `free` have a row for each depth, of which the first is given: the clauses not hit yet, and the
    attributes that may be chosen. An attribute that was tried is not free for those tried after it.
    """
    left = np.zeros_like(free)
    spent = np.zeros(len(free), np.int64)
    depth = 0
    nodes = 0
    entered = False
    while depth >= 0:
        if not entered:
            nodes += 1
            if nodes > _NODES:
                return TOO_MANY_NODES
            best = _narrowest(of_clause, unhit, free, depth)
            if best < 0:
                return depth
            # the remaining budget must pay for all clauses, at the rate of the attribute that hits most for its cost
            n_unhit = np.int64(_count_common(unhit, depth, unhit, depth))
            rest = budget - spent[depth]
            pays = False
            for v in range(free.shape[1]):
                word = free[depth, v]
                while word and not pays:
                    bit = word & (~word + _ONE)
                    word ^= bit
                    a = v * 64 + np.int64(_count_bits(bit - _ONE))
                    hits = np.int64(_count_common(unhit, depth, of_attribute, a))
                    pays = costs[a] <= rest and hits * rest >= n_unhit * costs[a]
            for v in range(free.shape[1]):
                left[depth, v] = of_clause[best, v] & free[depth, v] if pays else _ZERO
            entered = True
        a = _take_first(left, depth)
        if a < 0:
            depth -= 1
            continue
        free[depth, a >> 6] &= ~(_ONE << np.uint64(a & 63))
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
    return NO_SET


@jit
def _next_sets(
    of_clause: Bits,
    of_attribute: Bits,
    size: int,
    search: SetSearch,
    batch: NDArray[np.int32],
) -> int:
    """Fill a batch with minimal sets, and return how many: until it is full, many nodes were seen, or depth is -1.

    Each member of a set must stay *critical*, the only one that hits some clause; otherwise no superset is minimal.
    The set of a node is `chosen[:depth]`. The automaton:

                  all clauses hit, or depth = size
        enter ──────────────────────────────────────────> go back: depth − 1, its attribute is free again
          ^ │                                               │   ^
          │ │ choose the narrowest clause not hit:          │   │ none left
          │ │ its free attributes are untried, not free     v   │
          │ └─────────────────────────────────────────> try the next untried attribute <─┐
          │                                                 │   │                        │
          └──── take it: depth + 1 ─────────────────────────┘   └── a member would not ──┘
                                                                    stay critical
    """
    unhit = search.unhit
    critical = search.critical
    free = search.free
    untried = search.untried
    chosen = search.chosen
    depth = search.position[_DEPTH]
    entered = search.position[_ENTERED] == 1
    n_sets = 0
    nodes = 0
    while depth >= 0 and n_sets < len(batch) and nodes < _NODES:
        grows = True
        if not entered:
            nodes += 1
            entered = True
            best = _narrowest(of_clause, unhit, free, depth)
            grows = bool(best >= 0 and depth < size)
            if grows:
                for v in range(free.shape[1]):
                    untried[depth, v] = of_clause[best, v] & free[depth, v]
                    free[depth, v] &= ~of_clause[best, v]
            elif best >= 0:
                search.position[_LARGER] = 1
            elif depth == size:
                for i in range(size):
                    batch[n_sets, i] = chosen[i]
                n_sets += 1
        a = _take_first(untried, depth) if grows else np.int64(-1)
        if a < 0:
            depth -= 1
            if depth >= 0:
                a = chosen[depth]
                free[depth, a >> 6] |= _ONE << np.uint64(a & 63)
            continue
        below = depth + 1
        minimal = True
        for i in range(depth):
            still_critical = _ZERO
            for w in range(unhit.shape[1]):
                rest = critical[depth, i, w] & ~of_attribute[a, w]
                critical[below, i, w] = rest
                still_critical |= rest
            if still_critical == _ZERO:
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
    search.position[_DEPTH] = depth
    search.position[_ENTERED] = 1 if entered else 0
    return n_sets
