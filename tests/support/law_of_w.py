"""The exact law of W, the statistic of the test against chance, by its definition: imports nothing from plar."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

#: numbers of objects of one class, by value and decision
Cells = Mapping[tuple[Any, Any], int]
#: how likely each W is
Law = Mapping[Fraction, Fraction]


def margins(cells: Cells) -> tuple[list[int], list[int]]:
    """Numbers of objects by value, and by decision."""
    sizes, decided = Counter[Any](), Counter[Any]()
    for (value, decision), n in cells.items():
        sizes[value] += n
        decided[decision] += n
    return [n for n in sizes.values() if n], [n for n in decided.values() if n]


def gain(cells: Cells) -> Fraction:
    """W of one class, as it is defined."""
    sizes = Counter[Any]()
    for (value, _), n in cells.items():
        sizes[value] += n
    n_objects = sum(sizes.values())
    within_values = sum((Fraction(n * n, sizes[value]) for (value, _), n in cells.items() if n), Fraction(0))
    overall = sum((Fraction(n * n, n_objects) for n in margins(cells)[1]), Fraction(0))
    return within_values - overall


def law_by_permutations(cells: Cells) -> Law:
    """How likely each W of a class is, where all ways to match values and decisions are as likely."""
    values = [v for (v, _), n in cells.items() for _ in range(n)]
    decisions = [d for (_, d), n in cells.items() for _ in range(n)]
    tables = Counter(tuple(sorted(zip(values, order, strict=True))) for order in itertools.permutations(decisions))
    law: dict[Fraction, Fraction] = defaultdict(Fraction)
    for pairs, n in tables.items():
        law[gain(Counter(pairs))] += Fraction(n, math.factorial(len(values)))
    return law


def law_by_margins(cells: Cells) -> Law:
    """The same for larger classes: every table of these margins, by the hypergeometric law."""
    sizes, decided = margins(cells)
    law: dict[Fraction, Fraction] = defaultdict(Fraction)
    every = math.factorial(sum(sizes))
    for table in tables_of(tuple(sizes), tuple(decided)):
        ways = math.prod(map(math.factorial, [*sizes, *decided]))
        ways //= math.prod(math.factorial(n) for row in table for n in row)
        cells_of_table = {(v, j): n for v, row in enumerate(table) for j, n in enumerate(row)}
        law[gain(cells_of_table)] += Fraction(ways, every)
    return law


def tables_of(sizes: tuple[int, ...], decided: tuple[int, ...]) -> Iterable[tuple[tuple[int, ...], ...]]:
    """All tables of these margins, a row for each value."""
    if len(sizes) == 1:
        yield (decided,)
        return
    for row in itertools.product(*(range(min(sizes[0], n) + 1) for n in decided)):
        if sum(row) == sizes[0]:
            left = tuple(n - k for n, k in zip(decided, row, strict=True))
            yield from ((row, *rest) for rest in tables_of(sizes[1:], left))


def law_of_sum(first: Law, second: Law) -> Law:
    """The law of the sum of two classes, which are independent."""
    law: dict[Fraction, Fraction] = defaultdict(Fraction)
    for (a, p), (b, q) in itertools.product(first.items(), second.items()):
        law[a + b] += p * q
    return law


def law_that_counts(law: Law) -> Law:
    """The law of what a class adds to the test: nothing, if its W is the same however it is matched."""
    return law if len(law) > 1 else {Fraction(0): Fraction(1)}


def moments(law: Law) -> tuple[Fraction, Fraction]:
    """Mean and variance."""
    mean = sum((w * p for w, p in law.items()), Fraction(0))
    return mean, sum(((w - mean) ** 2 * p for w, p in law.items()), Fraction(0))


def textbook(cells: Cells) -> tuple[Fraction, Fraction, Fraction]:
    """W, mean and variance of one class by the closed form, which is exact in fractions only; 0 if W cannot vary."""
    sizes, decided = margins(cells)
    N, V = sum(sizes), len(sizes)
    if V < 2 or len(decided) < 2:
        return Fraction(0), Fraction(0), Fraction(0)
    H = sum((Fraction(1, s) for s in sizes), Fraction(0))
    b2, b3 = sum(n * (n - 1) for n in decided), sum(n * (n - 1) * (n - 2) for n in decided)
    N2, N3, N4 = N * (N - 1), N * (N - 1) * (N - 2), N * (N - 1) * (N - 2) * (N - 3)
    a1, a2, a3 = N - V, V - H, N - 3 * V + 2 * H
    variance = 2 * a2 * Fraction(b2, N2) - (a1 * Fraction(b2, N2)) ** 2
    if N > 2:
        variance += 4 * a3 * Fraction(b3, N3)
    if N > 3:
        variance += (a1 * a1 - 2 * a2 - 4 * a3) * Fraction(b2 * b2 - 2 * b2 - 4 * b3, N4)
    if variance == 0:
        return Fraction(0), Fraction(0), Fraction(0)
    return gain(cells), (V - 1) * (1 - Fraction(b2, N2)), variance
