"""Monte Carlo p-values whose random numbers follow from the margins alone: the same for everybody, and no seed."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from plar.grouping.factorize import mix
from plar.grouping.partition import Array
from plar.runtime.jit import borrowing, jit
from plar.runtime.parallel import in_threads, usable_cores

#: draws tables from one of some number on, with a key for the random numbers: whether each reaches the statistic
Draw: TypeAlias = Callable[[np.uint64, int, NDArray[np.bool_]], None]

#: the fewest tables to draw
_MIN_DRAWS = 2_000
#: how many of them must reach the statistic to call it chance
_MIN_REACHED = 10
_DRAWS_PER_TASK = 1 << 10


def wanted_draws(n_candidates: int, level: float) -> float:
    """How many tables it takes to tell whether a p-value, times the number of candidates, is at most the level."""
    return max(_MIN_DRAWS, _MIN_REACHED * n_candidates / level)


def drawn_p_value(
    draw: Draw, margins: Array, cost: float, max_cost: float, n_candidates: int, level: float
) -> float | None:
    """The p-value, times the number of candidates; None if tables at this cost each are too few to accept."""
    n_draws = int(min(wanted_draws(n_candidates, level), max_cost / cost))
    enough = int(n_draws * level / n_candidates)
    if enough < 1:
        return None
    key = np.uint64(int.from_bytes(blake2b(margins.tobytes(), digest_size=8).digest(), "little"))

    def drawn(numbers: range) -> NDArray[np.bool_]:
        reached = np.zeros(len(numbers), np.bool_)
        draw(key, numbers.start, reached)
        return reached

    n_drawn = 0
    n_reached = 0
    while n_drawn < n_draws - 1:
        end = min(n_drawn + _DRAWS_PER_TASK * usable_cores(), n_draws - 1)
        firsts = range(n_drawn, end, _DRAWS_PER_TASK)
        tasks = [range(first, min(first + _DRAWS_PER_TASK, end)) for first in firsts]
        reached = np.concatenate(list(in_threads(drawn, tasks, cost * _DRAWS_PER_TASK)))
        hits = np.flatnonzero(reached)
        if n_reached + len(hits) >= enough:
            last_hit = n_drawn + int(hits[enough - n_reached - 1])
            return n_candidates * enough / (last_hit + 1)
        n_drawn = end
        n_reached += len(hits)
    return n_candidates * (n_reached + 1) / n_draws


# -- kernels ---------------------------------------------------------------------------------------------------


@jit
def seeded(key: np.uint64, number: int) -> np.uint64:
    """The state of the random numbers of one table."""
    return mix(key + np.uint64(number))


@borrowing
def uniform(state: NDArray[np.uint64]) -> float:
    """The next random number from 0 to 1."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    return np.float64(mix(state[0]) >> np.uint64(11)) * 2.0**-53
