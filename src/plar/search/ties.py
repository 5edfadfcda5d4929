"""The tie rule: all attributes tie whose Θ is within a bound of the smallest one; the first in the table is taken."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush


def tied(theta_of: Mapping[int, int], bound: int) -> list[int]:
    """The attributes whose Θ is within the bound of the smallest, in their order."""
    largest = min(theta_of.values()) + bound
    return [a for a, theta in theta_of.items() if theta <= largest]


def best_first(theta_of: Mapping[int, int], bound: int) -> list[int]:
    """The attributes from best to worst: each is the first in the table of those that tie with the best one left.

    >>> best_first({0: 7, 1: 5, 2: 6}, bound=1)
    [1, 0, 2]
    """
    by_theta = sorted(theta_of, key=theta_of.__getitem__)
    ranked: list[int] = []
    taken = set[int]()
    ties: list[int] = []
    n_entered = 0
    for best in by_theta:
        # what ties stays tied until it is taken, since the smallest Θ left only grows
        while best not in taken:
            while n_entered < len(by_theta) and theta_of[by_theta[n_entered]] <= theta_of[best] + bound:
                heappush(ties, by_theta[n_entered])
                n_entered += 1
            first = heappop(ties)
            taken.add(first)
            ranked.append(first)
    return ranked
