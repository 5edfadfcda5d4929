"""The exact law of B, the statistic of ranks, by its definition: imports nothing from plar."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from support.law_of_w import Cells, Law

#: the rank of each number, as a share of all objects
Ridits = Mapping[Any, Fraction]


def ridits_of(classes: Iterable[Cells]) -> Ridits:
    """The share of all objects with a smaller number, plus half of those with the same."""
    n_of = Counter[Any]()
    for cells in classes:
        for (_, number), n in cells.items():
            n_of[number] += n
    n_objects = sum(n_of.values())
    return {
        number: (sum((n for other, n in n_of.items() if other < number), Fraction(0)) + Fraction(n_equal, 2))
        / n_objects
        for number, n_equal in n_of.items()
    }


def deviations(cells: Cells, ridits: Ridits) -> dict[Any, Fraction]:
    """How far each number's rank is from the mean of the class."""
    n_objects = sum(cells.values())
    total = sum((ridits[number] * n for (_, number), n in cells.items()), Fraction(0))
    return {number: ridits[number] - total / n_objects for (_, number), n in cells.items() if n}


def explained(cells: Cells, ridits: Ridits) -> Fraction:
    """B of one class, as it is defined."""
    deviation = deviations(cells, ridits)
    sizes = Counter[Any]()
    totals: dict[Any, Fraction] = defaultdict(Fraction)
    for (value, number), n in cells.items():
        if n:
            sizes[value] += n
            totals[value] += n * deviation[number]
    return sum((total * total / sizes[value] for value, total in totals.items()), Fraction(0))


def squares(cells: Cells, ridits: Ridits) -> Fraction:
    """m₂: the most that B could be."""
    if not sum(cells.values()):
        return Fraction(0)
    deviation = deviations(cells, ridits)
    return sum((n * deviation[number] ** 2 for (_, number), n in cells.items() if n), Fraction(0))


def law_by_permutations(cells: Cells, ridits: Ridits) -> Law:
    """How likely each B of a class is, where all ways to match values and numbers are as likely."""
    values = [v for (v, _), n in cells.items() for _ in range(n)]
    numbers = [d for (_, d), n in cells.items() for _ in range(n)]
    tables = Counter(tuple(sorted(zip(values, order, strict=True))) for order in itertools.permutations(numbers))
    law: dict[Fraction, Fraction] = defaultdict(Fraction)
    for pairs, n in tables.items():
        law[explained(Counter(pairs), ridits)] += Fraction(n, math.factorial(len(values)))
    return law


def textbook(cells: Cells, ridits: Ridits) -> tuple[Fraction, Fraction, Fraction]:
    """B, mean and variance of one class by the closed form in fractions; 0 if B cannot vary."""
    nothing = Fraction(0), Fraction(0), Fraction(0)
    N = sum(cells.values())
    sizes = Counter[Any]()
    for (value, _), n in cells.items():
        sizes[value] += n
    V = sum(n > 0 for n in sizes.values())
    if V < 2:
        return nothing
    deviation = deviations(cells, ridits)
    m2 = squares(cells, ridits)
    m4 = sum((n * deviation[number] ** 4 for (_, number), n in cells.items() if n), Fraction(0))
    t, sigma2 = V - 1, m2 / (N - 1)
    g = sum((Fraction(1, n) for n in sizes.values() if n), Fraction(0)) - Fraction(V * V, N)
    variance = 2 * sigma2**2 * Fraction(t * (N - V), N + 1)
    if N > 3:
        K = m4 / (N - 1) - 3 * m2**2 / (N * (N + 1))
        variance += (N * (N + 1) * g - 2 * t * (N - V)) * K / ((N - 2) * (N - 3))
    if variance == 0:
        return nothing
    return explained(cells, ridits), t * sigma2, variance
