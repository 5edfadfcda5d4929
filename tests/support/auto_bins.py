"""What `bins="auto"` means, from its definition: plain Python, exact numbers, nothing from plar."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

QUARTER = Fraction(1, 4)
MOST_CATEGORIES = 12


def sizes_of(numbers: Iterable[float | None], weights: Iterable[int]) -> Counter[float]:
    """How many objects have each finite number."""
    sizes = Counter[float]()
    for number, weight in zip(numbers, weights, strict=True):
        if number is not None and math.isfinite(number) and weight > 0:
            sizes[float(number)] += weight
    return sizes


def frequent_values(sizes: Counter[float]) -> list[float]:
    """Values that more than a quarter of the objects have."""
    return [value for value, size in sizes.items() if Fraction(size, sizes.total()) > QUARTER]


def quartiles(sizes: Counter[float]) -> list[float]:
    """For each quarter the smallest value such that at least so many objects have it or a smaller one."""
    points = []
    for share in (QUARTER, 2 * QUARTER, 3 * QUARTER):
        n_objects = 0
        for value in sorted(sizes):
            n_objects += sizes[value]
            if n_objects >= share * sizes.total():
                points.append(value)
                break
    return points


def auto_cuts(numbers: Iterable[float | None], weights: Iterable[int]) -> tuple[float, ...] | None:
    """The cut points of a column; None if it is not cut."""
    sizes = sizes_of(numbers, weights)
    if len(sizes) <= MOST_CATEGORIES:
        return None
    points = set(quartiles(sizes))
    for value in frequent_values(sizes):
        smaller = [other for other in sizes if other < value]
        if smaller:
            points.add(max(smaller))
        points.add(value)
    points.discard(max(sizes))
    return tuple(sorted(points))
