"""Whether a candidate beats chance where the decision is a number: B against all permutations, and its p-values."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import reduce

import numpy as np
import pytest

from plar.chance import draws, rank_p_value
from plar.chance.exact_sums import add_exactly, exact_sums, total_of
from plar.chance.p_value import adjusted_p_value, screened_p_value
from plar.chance.rank_association import scored_classes, value_buffers
from plar.chance.statistic import association, impurity
from plar.uncertainty.ranks import ranks_of
from plar.uncertainty.strata import CrossTab, StratifiedRows
from support import law_of_w
from support.cross_tabs import as_table
from support.environment import TURNS
from support.law_of_b import explained, law_by_permutations, ridits_of, squares, textbook
from support.law_of_w import Cells, Law, law_of_sum, law_that_counts, moments


def random_class(pick: random.Random, most: int) -> Cells:
    """A small class of any kind, those of one number, one value or one object too."""
    n, n_values, n_numbers = pick.randint(1, most), pick.randint(1, 4), pick.choice([1, 2, 3, 9])
    return Counter((pick.randrange(n_values), pick.randrange(n_numbers)) for _ in range(n))


def assert_moments(table: CrossTab, expected: tuple[Fraction, Fraction, Fraction]) -> None:
    """To a millionth of a standard deviation, or of the variance."""
    measured = association(table)
    deviation = math.sqrt(expected[2])
    assert measured.statistic == pytest.approx(float(expected[0]), rel=1e-15, abs=1e-6 * deviation)
    assert measured.mean == pytest.approx(float(expected[1]), rel=1e-15, abs=1e-6 * deviation)
    assert measured.variance == pytest.approx(float(expected[2]), rel=1e-6, abs=0)


# --------------------------------------------------------------------------------------------------- ranks and moments


@pytest.mark.parametrize("seed", range(5))
def test_ranks(seed: int) -> None:
    pick = random.Random(seed)
    numbers = [pick.choice([0.5, -3.0, 2.0, 1e300, 7.0, pick.random()]) for _ in range(9)]
    sizes = [pick.choice([1, 5, 2**30, 2**36]) for _ in numbers]
    ranks = ranks_of(np.array(numbers), np.array(sizes))
    classes: list[Cells] = [{(0, number): size} for number, size in zip(numbers, sizes, strict=True)]
    ridits = ridits_of(classes)
    exact = [Fraction(int(score), 2 * sum(sizes)) + Fraction(1, 2) for score in ranks.scores[ranks.places]]
    assert exact == [ridits[number] for number in numbers]
    assert (np.diff(ranks.scores) > 0).all()


@pytest.mark.parametrize("seed", range(4 * TURNS))
def test_moments_over_all_permutations(seed: int) -> None:
    pick = random.Random(seed)
    for _ in range(10):
        classes = [random_class(pick, 7) for _ in range(pick.randint(1, 3))]
        ridits = ridits_of(classes)
        laws = [law_by_permutations(cells, ridits) for cells in classes]
        law = reduce(law_of_sum, map(law_that_counts, laws))
        counted = [explained(cells, ridits) for cells, one in zip(classes, laws, strict=True) if len(one) > 1]
        expected = float(sum(counted)), *map(float, moments(law))
        table = as_table(classes, pick, ranked=True)
        assert tuple(association(table)) == pytest.approx(expected, rel=1e-12, abs=1e-15)
        rows = StratifiedRows(np.empty(0, np.uint32), table.runs, table.scores)
        assert impurity(rows) == pytest.approx(float(sum(squares(cells, ridits) for cells in classes)), abs=1e-15)
        for cells, one in zip(classes, laws, strict=True):
            assert textbook(cells, ridits)[1:] == moments(law_that_counts(one))


SIZES = [3, 4, 5, 60, 4096, 10**5, 2**26 + 1, 2**30 - 3, 2**30 + 5, 2**33 - 1, 2**40 - 7, 2**40]


def spread(n: int, pick: random.Random) -> Cells:
    """Many numbers, ties among them, about as many objects of each."""
    shape = [(v, d) for v in range(pick.randint(2, 5)) for d in range(pick.choice([2, 3, 30]))]
    cells = {cell: n // len(shape) for cell in shape}
    for _ in range(30):
        a, b = pick.sample(shape, 2)
        moved = min(cells[a], pick.randint(0, math.isqrt(n)))
        cells[a], cells[b] = cells[a] - moved, cells[b] + moved
    return cells | {(0, 0): cells[0, 0] + n - sum(cells.values())}


def tied(n: int, pick: random.Random) -> Cells:
    """All but a few objects have one number."""
    few = {(pick.randrange(3), pick.choice([-2, -1, 1, 2])): 1 for _ in range(pick.randint(1, 5))}
    rest = n - len(few)
    return Counter(few) + Counter({(0, 0): rest // 3, (1, 0): rest - rest // 3})


def rare(n: int, pick: random.Random) -> Cells:
    """All but a few objects have one value."""
    cells = Counter({(v, pick.randrange(9)): 1 for v in range(1, pick.randint(2, 6))})
    rest = n - sum(cells.values())
    return (
        cells
        + Counter({(0, d): max(rest // 9, 0) for d in range(8)})
        + Counter({(0, 8): max(rest - 8 * (rest // 9), 0)})
    )


@pytest.mark.parametrize("kind", [spread, tied, rare])
@pytest.mark.parametrize("n", SIZES)
def test_moments_of_any_number_of_objects(kind: Callable[[int, random.Random], Cells], n: int) -> None:
    pick = random.Random(n)
    for _ in range(6 * TURNS):
        cells = kind(n, pick)
        assert_moments(as_table([cells], pick, ranked=True), textbook(cells, ridits_of([cells])))


@pytest.mark.parametrize("seed", range(4))
def test_a_narrow_class_of_a_large_table(seed: int) -> None:
    """A few objects in the midst of very many others, which only they could tell apart."""
    pick = random.Random(seed)
    others: Cells = {(0, -1): 2**39 - 5, (0, 9): 1}
    few = Counter((pick.randrange(3), pick.randrange(5)) for _ in range(9))
    below_and_above: list[Cells] = [{(0, -5): 2**38}, {(0, 99): 2**38}]
    classes = [few, *below_and_above]
    assert_moments(as_table(classes, pick, ranked=True), textbook(few, ridits_of(classes)))
    both = [few, others]
    expected = [sum(terms) for terms in zip(*(textbook(cells, ridits_of(both)) for cells in both), strict=True)]
    assert tuple(association(as_table(both, pick, ranked=True))) == pytest.approx(tuple(map(float, expected)), rel=1e-9)


def test_two_numbers_are_two_classes() -> None:
    """Then B is W, but for a factor, and so has its p-values."""
    pick = random.Random(2)
    for _ in range(50):
        classes = [Counter((pick.randrange(3), pick.randrange(2)) for _ in range(pick.randint(1, 40)))]
        w, b = association(as_table(classes)), association(as_table(classes, ranked=True))
        factor = b.mean / w.mean if w.mean else 0.0
        assert b.statistic == pytest.approx(factor * w.statistic, rel=1e-9, abs=1e-15)
        assert b.variance == pytest.approx(factor**2 * w.variance, rel=1e-9)
        assert screened_p_value(b) == pytest.approx(screened_p_value(w), rel=1e-6)


def test_sums_do_not_round() -> None:
    pick = random.Random(0)
    terms = [math.ldexp(pick.random(), pick.randint(-150, 60)) for _ in range(500)]
    sums = exact_sums()
    for term in pick.sample(terms, len(terms)):
        add_exactly(sums, term)
    assert total_of(sums) == float(sum(map(Fraction, terms)))


@pytest.mark.parametrize("seed", range(3 * TURNS))
def test_no_order_and_no_codes_matter(seed: int) -> None:
    pick = random.Random(seed)
    for most in (9, 40, 400):
        classes = [random_class(pick, most) for _ in range(pick.randint(1, 5))]
        if most == 400:
            classes += [spread(9_999, pick), rare(2**38, pick)]
        first = as_table(classes, ranked=True)
        for _ in range(5):
            other = as_table(classes, pick, ranked=True)
            assert association(other) == association(first)
            assert adjusted_p_value(other, 1, 0.9) == adjusted_p_value(first, 1, 0.9)


# ------------------------------------------------------------------------------------------------------------ p-values


def tail(law: Law, statistic: Fraction) -> float:
    return float(sum((p for b, p in law.items() if b >= statistic), Fraction(0)))


def drawn(table: CrossTab, statistic: float, level: float = 1.0) -> float | None:
    """The third stage alone, for another statistic."""
    assert table.scores is not None
    classes = scored_classes(table.runs, table.scores)
    buffers = value_buffers(classes, table.n_values)
    measured = association(table)._replace(statistic=statistic)
    return rank_p_value.drawn_with(table.values, classes, buffers, measured, 1, level)


#: values of classes, and how many objects have each number
DRAWN: list[list[tuple[tuple[int, ...], tuple[int, ...]]]] = [
    [((3, 4), (1, 1, 1, 1, 1, 1, 1))],
    [((2, 2, 3), (3, 1, 1, 2))],
    [((1, 6), (4, 1, 1, 1))],
    [((4, 3), (5, 1, 1))],  # values are drawn for the two
    [((2, 2), (1, 1, 1, 1)), ((3, 2), (2, 1, 2)), ((1, 4), (3, 1, 1))],
]


@pytest.mark.parametrize("margins", DRAWN)
def test_draws_follow_the_exact_law(
    margins: list[tuple[tuple[int, ...], tuple[int, ...]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every B that is possible, those that equal it counted."""
    monkeypatch.setattr(draws, "_MIN_DRAWS", 10_000)
    classes = [as_cells(*one) for one in margins]
    ridits = ridits_of(classes)
    law = reduce(law_of_sum, [law_that_counts(law_by_permutations(cells, ridits)) for cells in classes])
    table = as_table(classes, ranked=True)
    possible = sorted(law)
    for statistic in possible[:: 1 + len(possible) // 30] + possible[-3:]:
        exact = tail(law, statistic)
        error = 5 * math.sqrt(exact * (1 - exact) / 10_000) + 2e-4
        assert drawn(table, float(statistic)) == pytest.approx(exact, abs=error)
    likely = min(possible, key=lambda b: abs(tail(law, b) - 0.5))
    assert drawn(table, float(likely), 0.05) == pytest.approx(tail(law, likely), rel=0.25)


def as_cells(sizes: tuple[int, ...], n_of_numbers: tuple[int, ...]) -> Cells:
    """Some table of these margins."""
    values = [v for v, n in enumerate(sizes) for _ in range(n)]
    numbers = [d for d, n in enumerate(n_of_numbers) for _ in range(n)]
    return Counter(zip(values, numbers, strict=True))


def bound_of(table: CrossTab) -> float:
    assert table.scores is not None
    classes = scored_classes(table.runs, table.scores)
    return rank_p_value.judged(table.values, classes, value_buffers(classes, table.n_values), association(table)).bound


@pytest.mark.parametrize("seed", range(3 * TURNS))
def test_the_bound_holds(seed: int) -> None:
    """No B of any small class is likelier than the bound says; two numbers in larger classes are compared as well."""
    pick = random.Random(seed)
    for _ in range(12):
        classes = [random_class(pick, 7) for _ in range(pick.randint(1, 2))]
        ridits = ridits_of(classes)
        law = reduce(law_of_sum, [law_that_counts(law_by_permutations(cells, ridits)) for cells in classes])
        if len(law) > 1:
            table = as_table(classes, ranked=True)
            statistic = sum((textbook(cells, ridits)[0] for cells in classes), Fraction(0))
            assert bound_of(table) >= tail(law, statistic)


def test_the_bound_holds_far_in_the_tail() -> None:
    """Of two numbers the exact law is known, by their W."""
    n_below = 0
    for n, size, positive in ((40, 20, 20), (60, 10, 30), (80, 40, 8), (90, 30, 45)):
        for both in range(min(size, positive) + 1):
            cells = {(0, 0): n - size - positive + both, (0, 1): positive - both, (1, 0): size - both, (1, 1): both}
            if min(cells.values()) < 0:
                continue
            law = law_of_w.law_by_margins(cells)
            bound = bound_of(as_table([cells], ranked=True))
            exact = tail(law, law_of_w.gain(cells))
            assert bound >= exact
            n_below += bound < 0.01
    assert n_below > 5


def test_where_rare_values_meet_rare_numbers_tables_are_drawn() -> None:
    """The first stage would be far too small there."""
    pick = np.random.default_rng(0)
    numbers = np.where(np.arange(1000) < 20, 1 + pick.random(1000), 0.0)
    values = np.zeros(1000, int)
    values[[0, 1, 2, *range(500, 517)]] = 1
    cells = Counter(zip(values.tolist(), numbers.tolist(), strict=True))
    table = as_table([cells], ranked=True)
    screened = screened_p_value(association(table))
    # three of twenty, of which two in a hundred are others than 0
    exact = sum(math.comb(20, k) * math.comb(980, 20 - k) for k in range(3, 21)) / math.comb(1000, 20)
    assert screened < 0.2 * exact
    assert adjusted_p_value(table, 1) == pytest.approx(exact, rel=0.6)


def test_strong_and_weak() -> None:
    numbers = list(range(400))
    strong = Counter((number // 100, number) for number in numbers)
    weak = Counter((number % 4, number) for number in numbers)
    assert adjusted_p_value(as_table([strong], ranked=True), 1000) < 1e-6
    assert adjusted_p_value(as_table([weak], ranked=True), 1) > 0.5
    many = Counter((number % 4 + 4 * (number > 240_000), number) for number in range(300_000))
    assert adjusted_p_value(as_table([many], ranked=True), 1000) < 1e-6


@pytest.mark.parametrize(
    "classes",
    [
        [{(0, 5): 9}],
        [{(v, v): 1 for v in range(9)}],
        [{(0, 1): 1, (1, 2): 1}],
        [{(0, d): 3 for d in range(4)}],
        [{(0, 0): 1, (0, 1): 3, (1, 1): 4}],  # sizes are equal: wherever the one falls, it is the same
        [{(0, 0): 1, (1, 0): 2, (1, 1): 3}],  # and wherever the value of its own falls
    ],
)
def test_nothing_to_tell(classes: list[Cells]) -> None:
    table = as_table(classes, ranked=True)
    assert association(table) == (0.0, 0.0, 0.0)
    assert adjusted_p_value(table, 1) == 1.0
