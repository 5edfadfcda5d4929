"""Whether an attribute beats chance: the test against all permutations, the search that uses it, on every engine."""

from __future__ import annotations

import itertools
import json
import math
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, reduce
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plar
from plar import baselines
from plar.chance import draws
from plar.chance.association import association
from plar.chance.p_value import _drawn, _margins_of, adjusted_p_value
from plar.engines import LocalEngine
from plar.measures import as_measure
from plar.search.ties import best_first
from plar.uncertainty.strata import CrossTab
from support import oracle
from support.checkpoints import begun
from support.checkpoints import table as text_table
from support.comparing import facts
from support.cross_tabs import as_table, table_of
from support.environment import TURNS, nightly, with_support
from support.law_of_w import (
    Cells,
    Law,
    gain,
    law_by_margins,
    law_by_permutations,
    law_of_sum,
    law_that_counts,
    moments,
    tables_of,
    textbook,
)
from support.strategies import Sample, tables

# ids are there to be refused, and decisions of many values are at the edge
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*different in nearly every row:plar.PlarWarning"),
    pytest.mark.filterwarnings("ignore:The decision .* different numbers:plar.PlarWarning"),
]


def random_class(pick: random.Random, most: int) -> Cells:
    """A small class of any kind, pure ones, constant ones and those of one object too."""
    n, n_values, n_decisions = pick.randint(1, most), pick.randint(1, 4), pick.randint(1, 3)
    return Counter((pick.randrange(n_values), pick.randrange(n_decisions)) for _ in range(n))


# -------------------------------------------------------------------------------------------------- W and its moments


@pytest.mark.parametrize("seed", range(4 * TURNS))
def test_moments_over_all_permutations(seed: int) -> None:
    pick = random.Random(seed)
    for _ in range(10):
        classes = [random_class(pick, 6) for _ in range(pick.randint(1, 3))]
        laws = [law_by_permutations(cells) for cells in classes]
        law = reduce(law_of_sum, map(law_that_counts, laws))
        counted = [gain(cells) for cells, of_class in zip(classes, laws, strict=True) if len(of_class) > 1]
        expected = float(sum(counted)), *map(float, moments(law))
        assert tuple(association(as_table(classes, pick))) == pytest.approx(expected, rel=1e-12, abs=1e-12)
        for cells, of_class in zip(classes, laws, strict=True):
            assert law_by_margins(cells) == of_class
            assert textbook(cells)[1:] == moments(law_that_counts(of_class))


#: numbers of objects around which the kernels change, and the largest
SIZES = [2, 3, 4, 5, 60, 4095, 4096, 4097, 10**5, 2**26 + 1, 10**9, 2**33 - 1, 2**40 - 7, 2**40]


def balanced(n: int, pick: random.Random) -> Cells:
    shape = [(v, d) for v in range(pick.randint(2, 5)) for d in range(pick.randint(2, 4))]
    cells = {cell: n // len(shape) for cell in shape}
    for _ in range(10):  # as far from chance as chance goes
        a, b = pick.sample(shape, 2)
        moved = min(cells[a], pick.randint(0, math.isqrt(n)))
        cells[a], cells[b] = cells[a] - moved, cells[b] + moved
    return cells | {(0, 0): cells[0, 0] + n - sum(cells.values())}


def nearly_pure(n: int, pick: random.Random) -> Cells:
    other = pick.randint(1, min(3, n - 1))
    first = (n - other) // 4
    return {(0, 0): first, (1, 0): n - other - first, (pick.randrange(2), 1): other}


def rare_cells(n: int, pick: random.Random) -> Cells:
    cells = Counter({(v, d): 1 for v in range(pick.randint(1, 6)) for d in range(pick.randint(1, 3)) if v or d})
    cells[9, 9] = max(1, n - sum(cells.values()))
    return cells


def ids(n: int, pick: random.Random) -> Cells:
    """A value for each object, but for those that a weight would stand for."""
    alone = min(n, 500, max(1, n - pick.randint(0, 3)))
    cells = {(v, pick.randrange(3)): 1 for v in range(alone)}
    return cells | ({(alone, 0): n - alone} if n > alone else {})


@pytest.mark.parametrize("kind", [balanced, nearly_pure, rare_cells, ids])
@pytest.mark.parametrize("n", SIZES)
def test_moments_of_any_number_of_objects(kind: Callable[[int, random.Random], Cells], n: int) -> None:
    pick = random.Random(n)
    for _ in range(6 * TURNS):
        cells = kind(n, pick)
        expected = textbook(cells)
        found = association(as_table([cells], pick))
        deviation = math.sqrt(expected[2])
        assert found.statistic == pytest.approx(float(expected[0]), rel=1e-15, abs=1e-6 * deviation)
        assert found.mean == pytest.approx(float(expected[1]), rel=1e-15, abs=1e-6 * deviation)
        assert found.variance == pytest.approx(float(expected[2]), rel=1e-6, abs=0)


@pytest.mark.parametrize("size", [2, 6, 22, 43, 86, 258, 2048, 50_000, 2**35])
def test_a_statistic_that_hardly_varies(size: int) -> None:
    """One object of its own among values of one size, or nearly: wherever it falls W is the same, or nearly."""
    for n_values in (2, 5, 7, 10):
        for more in range(2):
            cells = {(v, 0): size for v in range(n_values)} | {(0, 0): size - 1 + more, (0, 1): 1}
            assert adjusted_p_value(as_table([cells]), 1) > 0.05


def test_classes_add_up() -> None:
    pick = random.Random(5)
    classes = [kind(n, pick) for kind in (balanced, nearly_pure, rare_cells, ids) for n in (2, 5, 4096, 4097, 10**9)]
    each = [textbook(cells) for cells in classes]
    expected = [float(sum(terms)) for terms in zip(*each, strict=True)]
    assert tuple(association(as_table(classes, pick))) == pytest.approx(expected, rel=1e-9)


# ------------------------------------------------------------------------------------------------- the same to the bit


@pytest.mark.parametrize("seed", range(3 * TURNS))
def test_no_order_and_no_codes_matter(seed: int) -> None:
    pick = random.Random(seed)
    for most in (9, 40, 400):
        classes = [random_class(pick, most) for _ in range(pick.randint(1, 5))]
        if most == 400:
            classes += [ids(700, pick), balanced(9_999, pick), rare_cells(2**39, pick)]
        first = as_table(classes)
        for _ in range(5):
            other = as_table(classes, pick)
            assert association(other) == association(first)
            assert adjusted_p_value(other, 3) == adjusted_p_value(first, 3)
            if most < 400 and association(first).variance > 0:
                drawn = [
                    _drawn(_margins_of(table), association(first).mean, 1, 1.0, math.inf) for table in (first, other)
                ]
                assert drawn[0] == drawn[1]


def planted(n: int, k: int, seed: int, noise: float = 0.1) -> dict[str, list[Any]]:
    """Columns of several values, of which two tell the decision, and an id."""
    rng = np.random.default_rng(seed)
    cells = {f"c{j}": rng.integers(0, 2 + j % 4, n).tolist() for j in range(k)}
    told = (np.array(cells["c1"]) + 2 * np.array(cells[f"c{k - 1}"]) > 3) ^ (rng.random(n) < noise)
    return {**cells, "id": list(range(n)), "d": told.astype(int).tolist()}


@pytest.mark.parametrize("alpha", [None, 0.05])
def test_rows_names_and_threads_do_not_matter(alpha: float | None) -> None:
    """With classes of so many values that draws take several threads."""
    rng = np.random.default_rng(11)
    columns = planted(400, 5, 11)
    del columns["id"]
    columns["many"] = [(v * 30 + w) % 61 for v, w in zip(columns["d"], rng.integers(0, 55, 400).tolist(), strict=True)]
    call: dict[str, Any] = {"decision": "d", "alpha": alpha, "start": "empty", "max_attributes": 3}
    first = plar.reduce(columns, n_jobs=1, **call)
    assert any(0 < p < 1 for p in [*(step.p_value or 0 for step in first.steps), *first.rejected.values()])
    assert facts(plar.reduce(columns, n_jobs=2, **call)) == facts(first)
    rows = rng.permutation(400)
    mixed = {name: [f"{7919 * (column[i] + 1) % 9973}" for i in rows] for name, column in columns.items()}
    assert facts(plar.reduce(mixed, n_jobs=2, **call)) == facts(first)


# ----------------------------------------------------------------------------------------------------------- the draws


def sampling_error(p: float) -> float:
    """How far ten thousand draws may be off; they are always the same, so that this fails never or always."""
    return 4 * math.sqrt(p * (1 - p) / 10_000) + 1e-4


def tail(law: Law, statistic: Fraction) -> float:
    return float(sum(p for w, p in law.items() if w >= statistic))


#: margins by value and by decision of classes that are drawn
DRAWN: list[list[tuple[tuple[int, ...], tuple[int, ...]]]] = [
    [((5, 5), (5, 5))],
    [((3, 7), (4, 6))],
    [((40, 23), (30, 33))],
    [((100, 20), (109, 11))],
    [((7, 12, 20), (30, 9))],
    [((13, 17), (3, 12, 15))],
    [((4, 5, 3), (6, 2, 4))],
    [((9, 13), (11, 11)), ((3, 30), (30, 3)), ((2, 2), (1, 3))],
]


@pytest.mark.parametrize("each", DRAWN)
def test_draws_follow_the_exact_law(
    each: list[tuple[tuple[int, ...], tuple[int, ...]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every W that is possible, those that equal it counted."""
    monkeypatch.setattr(draws, "_MIN_DRAWS", 10_000)
    classes = [next(iter(as_cells(*one))) for one in each]
    law = reduce(law_of_sum, [law_that_counts(law_by_margins(cells)) for cells in classes])
    table = as_table(classes)
    possible = sorted(law)
    for statistic in possible[:: 1 + len(possible) // 40] + possible[-3:]:
        exact = tail(law, statistic)
        found = _drawn(_margins_of(table), float(statistic), 1, 1.0, math.inf)
        assert found == pytest.approx(exact, abs=sampling_error(exact))
    # ten thousand draws, or until it is clear
    likely = min(possible, key=lambda w: abs(tail(law, w) - 0.5))
    assert _drawn(_margins_of(table), float(likely), 1, 0.05, math.inf) == pytest.approx(tail(law, likely), rel=0.25)
    assert _drawn(_margins_of(table), float(likely), 1_000, 0.05, math.inf) > 100


def as_cells(sizes: Sequence[int], decided: Sequence[int]) -> Iterable[Cells]:
    """All tables of these margins."""
    for found in tables_of(tuple(sizes), tuple(decided)):
        yield {(v, j): n for v, row in enumerate(found) for j, n in enumerate(row)}


def rare(n: int, n_positive: int, size: int, both: int) -> Cells:
    """Objects of which few are positive; so many of a value, and so many of them."""
    rest = n - size - n_positive + both
    return {(0, 0): rest, (0, 1): n_positive - both, (1, 0): size - both, (1, 1): both}


def rare_tail(n: int, n_positive: int, size: int, both: int) -> float:
    """How likely as many are both, or as far from what is expected."""
    expected = Fraction(size * n_positive, n)
    far = [k for k in range(n_positive + 1) if abs(k - expected) >= abs(both - expected)]
    ways = sum(math.comb(size, k) * math.comb(n - size, n_positive - k) for k in far)
    return float(Fraction(ways, math.comb(n, n_positive)))


@pytest.mark.parametrize(
    ("n", "n_positive", "size", "both"),
    [
        (10_000, 20, 1_000, 6),
        (10**6, 6, 100_000, 3),
        (10**6, 30, 20_000, 4),
        (73_222_528, 8, 36_384_433, 7),
        (79_649_379, 4, 36_725_617, 4),
        (10**9, 3, 333_653_824, 3),
        (2**33, 40, 2**25 + 1, 2),
        (10**10, 3, 686_139_939, 2),
        (2**40, 12, 2**37, 5),
        (2**40, 50, 2**33, 2),
    ],
)
def test_rare_decisions_among_many_objects(n: int, n_positive: int, size: int, both: int) -> None:
    exact = rare_tail(n, n_positive, size, both)
    table = as_table([rare(n, n_positive, size, both)])
    statistic = association(table).statistic
    assert _drawn(_margins_of(table), 0.999 * statistic, 1, 1.0, math.inf) == pytest.approx(
        exact, abs=sampling_error(exact)
    )
    # what equals it has reached it
    assert _drawn(_margins_of(table), statistic, 1, 1.0, math.inf) == pytest.approx(exact, abs=sampling_error(exact))
    least = math.ceil(0.08 / exact)
    assert adjusted_p_value(table, least) > 0.05


@pytest.mark.parametrize("n_classes", [1, 2])
def test_the_bound_holds(n_classes: int) -> None:
    """No W of a 2 × 2 table, or of two of them, is likelier than the bound says, where it could matter."""
    compared = 0
    for n in range(4, 29 if n_classes == 1 else 17, n_classes):
        for size, positive in itertools.combinations_with_replacement(range(1, n // 2 + 1), 2):
            law = reduce(law_of_sum, [law_by_margins(rare(n, positive, size, 0))] * n_classes)
            for both in itertools.combinations_with_replacement(range(size + 1), n_classes):
                classes = [rare(n, positive, size, k) for k in both]
                exact = tail(law, sum(map(gain, classes), Fraction(0)))
                if exact <= 0.05:
                    compared += 1
                    assert adjusted_p_value(as_table(classes), 1, level=1.0) >= exact  # at this level the bound decides
    assert compared > 500


@pytest.mark.parametrize(("n", "size", "positive"), [(4, 2, 2), (5, 2, 2), (6, 3, 1), (9, 1, 3), (40, 1, 1)])
def test_the_bound_holds_over_many_classes(n: int, size: int, positive: int) -> None:
    """Where W is all but normal, the bound is at its closest."""
    each = [rare(n, positive, size, both) for both in range(min(size, positive) + 1)]
    most, least = max(each, key=gain), min(each, key=gain)
    law = reduce(law_of_sum, [law_by_margins(most)] * 60)
    for extreme in range(61):
        classes = [most] * extreme + [least] * (60 - extreme)
        exact = tail(law, sum(map(gain, classes), Fraction(0)))
        if exact <= 0.05:
            assert adjusted_p_value(as_table(classes), 1, level=1.0) >= exact


def test_what_beats_chance_is_rare_indeed() -> None:
    """Every table of some margins: the exact tail of those that beat chance is as small as is said, sampling apart."""
    beat = 0
    for sizes, decided in [((5, 9), (6, 8)), ((3, 20), (20, 3)), ((12, 12, 6), (15, 15)), ((8, 8), (5, 5, 6))]:
        law = law_by_margins(next(iter(as_cells(sizes, decided))))
        for cells in as_cells(sizes, decided):
            found, exact = adjusted_p_value(as_table([cells]), 2), 2 * tail(law, gain(cells))
            if found <= 0.05:
                beat += 1
                assert exact <= 0.065
            elif exact <= 0.02:
                assert found <= 0.2
    assert beat > 20


# ----------------------------------------------------------------------------------------------------------- edge cases


@pytest.mark.parametrize(
    "classes",
    [
        [],
        [{(0, 0): 1}],
        [{(0, 0): 1, (1, 1): 1}],
        [{(0, 0): 1, (1, 0): 1}],
        [{(0, 0): 7, (0, 1): 9}],
        [{(0, 0): 7, (1, 0): 9}],
        [{(v, v % 3): 1 for v in range(50)}],
        [{(v, v % 3): 1 for v in range(4500)}],
        [{(v % 3, v): 1 for v in range(50)}],
        [{(v % 3, v): 1 for v in range(4500)}],
        [{(v, d): 2**37 for v in range(2) for d in range(4)}],
        [{(v, d): 3 for v in range(2) for d in range(4)}],
    ],
)
def test_nothing_to_tell(classes: list[Cells]) -> None:
    """No class, no choice, no difference: p is 1."""
    assert adjusted_p_value(as_table(classes), 1) == 1.0
    assert adjusted_p_value(as_table([*classes, *classes]), 1_000) == 1_000.0


def test_as_many_objects_as_there_may_be() -> None:
    half = 2**39
    assert adjusted_p_value(as_table([{(0, 0): half, (1, 1): half}]), 100) == 0.0
    # a difference of so many standard deviations
    for n, k, least, most in [(2**40, 1.5, 0.13, 0.14), (10**9, 3.0, 0.001, 0.004), (2**40, 8.0, 1e-15, 1e-6)]:
        quarter, moved = n // 4, round(k * math.sqrt(n) / 4)
        cells = {(0, 0): quarter + moved, (0, 1): quarter - moved, (1, 0): quarter - moved, (1, 1): quarter + moved}
        assert least <= adjusted_p_value(as_table([cells]), 1) <= most


@pytest.mark.parametrize("measure", oracle.MEASURES)
@pytest.mark.parametrize(
    ("columns", "selected"),
    [
        ({"a": [0, 1, 0, 1], "d": [1, 1, 1, 1]}, ()),
        ({"a": [0], "d": [1]}, ()),
        ({"a": [0, 1], "d": [0, 1]}, ()),
        ({"a": [0, 0, 0], "b": [1, 1, 1], "d": [0, 1, 1]}, ()),
        ({"a": list(range(30)), "d": [0, 1] * 15}, ()),
        ({"a": [0, 1] * 15, "d": list(range(30))}, ()),
        ({"a": [0, 1, 1], "d": [0, 1, 0], "w": [2**39, 2**39 - 9, 1]}, ("a",)),
        ({"a": [0, 1, 0, 1], "d": [0, 1, 1, 0], "w": [2**38] * 4}, ()),
    ],
)
def test_tables_at_the_edge(measure: str, columns: dict[str, list[int]], selected: tuple[str, ...]) -> None:
    roles: dict[str, Any] = {"decision": "d", "weights": "w" if "w" in columns else None}
    found = plar.reduce(columns, measure=measure, alpha=0.05, **roles)
    assert (found.attributes, found.complete) == (selected, True)
    assert set(found.rejected.values()) <= {1.0}
    whole = plar.reduce(columns, measure=measure, **roles, start="empty")
    assert all(step.p_value == 1.0 for step in whole.steps if step.attribute not in selected)
    assert whole.n_beyond_chance == len(selected)


def test_as_many_objects_by_other_counts() -> None:
    granules = plar.granulate({"a": [0, 1, 0, 1], "b": [0, 0, 1, 1], "d": [0, 1, 0, 1]}, "d")
    large = granules.with_counts([2**38] * 4)
    found = plar.reduce(large, alpha=0.001)
    assert (found.n_objects, found.attributes, found.steps[0].p_value) == (2**40, ("a",), 0.0)
    few = plar.reduce(granules, alpha=0.05)
    assert few.attributes == ()
    assert few.complete


# ----------------------------------------------------------------------------------------------------------- the search


@dataclass
class Chosen:
    """What the rule gives: R, ties and p-values of the steps, p-values of those left, whether it ended by the rule."""

    attributes: list[str]
    ties: list[tuple[str, ...]]
    p_values: list[float]
    rejected: dict[str, float]
    complete: bool


def chosen_by_the_rule(
    table: oracle.Table,
    measure: str,
    alpha: float,
    include: Sequence[str] = (),
    begin: str = "empty",
    max_attributes: int | None = None,
) -> Chosen:
    """Try the first in the table of those that tie with the best one left, until one beats chance."""
    C = table.conditions
    core = oracle.core(table, measure) if begin == "core" else ()
    R = oracle.start(table, core, include, measure, max_attributes)
    bound = oracle.tie_bound(table, measure)
    each_ties: list[tuple[str, ...]] = []
    p_values: list[float] = []
    while not oracle.equal(table, R, C, measure):
        if len(R) == max_attributes:
            return Chosen(R, each_ties, p_values, {}, False)
        candidates = {a: oracle.theta_int(table, [*R, a], measure) for a in C if a not in R}
        left = dict(candidates)
        tested: dict[str, float] = {}
        while left:
            least = min(left.values())
            ties = tuple(a for a, theta in left.items() if theta - least <= bound)
            first = ties[0]
            tested[first] = min(adjusted_p_value(table_of(table, R, first), len(candidates), alpha), 1.0)
            if tested[first] <= alpha:
                R.append(first)
                each_ties.append(ties)
                p_values.append(tested[first])
                break
            del left[first]
        else:
            return Chosen(R, each_ties, p_values, tested, True)
    return Chosen(R, each_ties, p_values, {}, True)


def assert_by_the_rule(reduct: plar.Reduct, table: oracle.Table, measure: str, **options: Any) -> None:
    expected = chosen_by_the_rule(table, measure, **options)
    assert reduct.attributes == tuple(expected.attributes)
    assert [step.p_value for step in reduct.steps] == expected.p_values
    assert [step.attribute for step in reduct.steps] == expected.attributes[-len(reduct.steps) or len(table.rows[0]) :]
    assert reduct.rejected == expected.rejected
    assert reduct.complete is expected.complete
    assert reduct.core == oracle.core(table, measure)
    assert reduct.certificate.preserved is oracle.equal(table, reduct.attributes, table.conditions, measure)
    assert reduct.n_combinations == len(oracle.partition(table, reduct.attributes))
    assert reduct.n_beyond_chance == len(reduct.steps)
    assert [step.ties for step in reduct.steps] == expected.ties


@pytest.mark.parametrize("measure", oracle.MEASURES)
@settings(max_examples=15 * TURNS)
@given(sample=tables(), alpha=st.sampled_from([0.01, 0.05, 0.3, 0.9]), data=st.data())
def test_search_by_the_rule(engine: Any, measure: str, sample: Sample, alpha: float, data: st.DataObject) -> None:
    include = data.draw(st.lists(st.sampled_from(sample.conditions), max_size=1))
    limit = data.draw(st.none() | st.integers(1, 3))
    begin = data.draw(st.sampled_from(["empty", "core"]))
    call: dict[str, Any] = {"alpha": alpha, "include": include, "max_attributes": limit}
    start = data.draw(st.sampled_from([None, "empty"])) if begin == "empty" else begin
    found = plar.reduce(sample.frame(), measure=measure, engine=engine, start=start, **sample.roles, **call)
    assert_by_the_rule(found, sample.table(), measure, begin=begin, **call)


def equal_but_for_rounding() -> dict[str, list[Any]]:
    """A table in which a and b leave the same entropy, four classes (1, 1) and one (4, 4), but other integers."""
    d = [i % 2 for i in range(408)]
    return {
        "id": list(range(408)),
        "a": [*d[:400], *(10 + i // 2 for i in range(8))],
        "b": [*d[:400], *[10] * 8],
        "c": [*d[:400], *[10] * 8],
        "d": d,
    }


def test_ties_are_those_of_the_entropy_not_of_its_rounding(engine: Any) -> None:
    columns = equal_but_for_rounding()
    table = Sample(columns).table()
    assert oracle.sce_equal_by_products(table, ["a"], ["b"])
    assert oracle.theta_int(table, ["a"], "SCE") > oracle.theta_int(table, ["b"], "SCE")
    found = plar.reduce(columns, "d", alpha=0.05, engine=engine)
    assert_by_the_rule(found, table, "SCE", alpha=0.05)
    assert (found.steps[0].attribute, found.steps[0].ties) == ("a", ("a", "b", "c"))
    assert found.steps[0].ties == plar.reduce(columns, "d", drop="id", engine=engine).steps[0].ties
    # in another order, another one is the first
    other = {name: columns[name] for name in ("c", "b", "id", "a", "d")}
    assert plar.reduce(other, "d", alpha=0.05, engine=engine).steps[0].ties == ("c", "b", "a")


def test_order_of_testing_by_the_definition() -> None:
    """Among many candidates, with ties that reach further than one bound."""
    pick = random.Random(6)
    for _ in range(300 * TURNS):
        bound = pick.choice([0, 1, 5])
        left = {a: pick.randrange(30) for a in range(pick.randrange(1, 40))}
        theta_of = dict(left)
        expected = []
        while left:
            expected.append(next(a for a, theta in left.items() if theta <= min(left.values()) + bound))
            del left[expected[-1]]
        assert best_first(theta_of, bound) == expected


@cache
def known() -> Sample:
    """A table in which two columns beat chance, a copy of one stands beside it, and the id is the reduct."""
    columns = planted(150, 6, 5, noise=0.05)
    return Sample({"copy": columns["c5"], **columns})


@pytest.mark.parametrize("measure", oracle.MEASURES)
def test_what_was_planted(measure: str) -> None:
    table, frame = known().table(), known().frame()
    found = plar.reduce(frame, "d", measure=measure, alpha=0.05)
    assert_by_the_rule(found, table, measure, alpha=0.05)
    assert set(found.attributes) == {"copy", "c1"}
    assert {"c5", "id"} <= found.rejected.keys()
    assert min(found.rejected.values()) > 0.05
    assert found.settings["alpha"] == 0.05
    assert found.settings["start"] == "empty"
    # one and the same attribute, though another is taken first
    held = plar.reduce(frame, "d", measure=measure, alpha=0.05, include=["c0"])
    assert held.attributes[0] == "c0"
    assert "c0" not in [step.attribute for step in held.steps]
    assert_by_the_rule(held, table, measure, alpha=0.05, include=["c0"])
    stopped = plar.reduce(frame, "d", measure=measure, alpha=0.05, max_attributes=1)
    assert (stopped.complete, len(stopped.attributes), stopped.rejected) == (False, 1, {})
    assert plar.reduce(frame, "d", measure=measure).n_beyond_chance == 0  # the id, which is chance


def test_a_core_that_is_chance() -> None:
    """The core is reported, and taken only where that is asked for."""
    table = Sample({name: column for name, column in known().columns.items() if name not in ("copy", "id")})
    found = plar.reduce(table.frame(), "d", alpha=0.05)
    assert set(found.attributes) == {"c1", "c5"}
    assert len(found.core) > 3
    taken = plar.reduce(table.frame(), "d", alpha=0.05, start="core")
    assert taken.attributes[: len(found.core)] == taken.core == found.core
    assert taken.settings["start"] == "core"
    assert_by_the_rule(taken, table.table(), "SCE", alpha=0.05, begin="core")
    plain = plar.reduce(table.frame(), "d", start="empty")
    assert plain.attributes == tuple(step.attribute for step in plain.steps)
    assert (plain.steps[0].attribute, plain.steps[0].p_value) == (found.steps[0].attribute, found.steps[0].p_value)


@pytest.mark.parametrize("seconds", [0, 1e-9])
def test_out_of_time(seconds: float) -> None:
    found = plar.reduce(known().frame(), "d", alpha=0.05, time_limit=seconds)
    assert (found.complete, found.attributes, found.rejected) == (False, (), {})


def test_out_of_time_while_candidates_are_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("plar.search.greedy.perf_counter", lambda: now[0])
    monkeypatch.setattr("plar.session.session.perf_counter", lambda: now[0])

    def late(*args: Any, **kwargs: Any) -> float:
        now[0] += 10.0
        return adjusted_p_value(*args, **kwargs)

    monkeypatch.setattr("plar.search.greedy.adjusted_p_value", late)
    # the id, a copy of it, then what beats chance
    found = plar.reduce(known().frame(), "d", alpha=0.05, time_limit=5)
    assert (found.complete, found.attributes, found.rejected) == (False, (), {})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        *(({"alpha": alpha}, "'alpha' parameter") for alpha in (0, 1, -0.1, 1.5, math.nan, math.inf, "much", [0.05])),
        *(({"start": start}, "'start' parameter") for start in ("", "Core", "full", 0, True)),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], said: str) -> None:
    with pytest.raises(plar.ParameterError, match=said) as refused:
        plar.reduce({"a": [0, 1], "d": [0, 1]}, "d", **options)
    assert "\n" not in str(refused.value)


# --------------------------------------------------------------------------------------------------------- every engine


@cache
def inconsistent(seed: int, n: int = 160) -> Sample:
    """Few values and many rows: where a0 is 0, classes of U/C hold several decisions, and PR lets them go early."""
    pick = random.Random(seed)
    columns: dict[str, list[Any]] = {f"a{j}": [pick.randrange(2 + j % 2) for _ in range(n)] for j in range(4)}
    noisy = [a == 0 and pick.random() < 0.8 for a in columns["a0"]]
    columns["d"] = [pick.randrange(3) if odd else a for odd, a in zip(noisy, columns["a1"], strict=True)]
    columns["w"] = [pick.choice([1, 1, 1, 2]) for _ in range(n)]
    return Sample(columns)


def p_values(evaluation: Any, n: int, selected: Sequence[int]) -> list[list[float]]:
    """Of all candidates, for R empty, of one attribute, of two…; to the last bit."""
    found = []
    for k in range(len(selected) + 1):
        left = [a for a in range(n) if a not in selected[:k]]
        tables = list(evaluation.cross_tabs(left))
        found.append([adjusted_p_value(table, len(left)) for table in tables])
        assert evaluation.associations(left) == [association(table) for table in tables]
        if k < len(selected):
            evaluation.select(selected[k])
    return found


def expected_p_values(sample: Sample, selected: Sequence[int]) -> list[list[float]]:
    table, names = sample.table(), sample.conditions
    found = []
    for k in range(len(selected) + 1):
        left = [a for a in range(len(names)) if a not in selected[:k]]
        R = [names[a] for a in selected[:k]]
        found.append([adjusted_p_value(table_of(table, R, names[a]), len(left)) for a in left])
    return found


@pytest.mark.parametrize("measure", oracle.MEASURES)
def test_p_values_do_not_depend_on_engine_and_measure(engine: Any, measure: str) -> None:
    for sample, order in [(inconsistent(1), [0, 1, 3]), (known(), [3, 2]), (inconsistent(2, 12), [0, 1])]:
        granules = plar.granulate(sample.frame(), **sample.roles)
        found = p_values(engine.open(granules, as_measure(measure)), len(sample.conditions), order)
        assert found == expected_p_values(sample, order)
    several = plar.granulate(inconsistent(1).frame(), **inconsistent(1).roles)
    evaluation = engine.open(several, as_measure(measure))
    evaluation.select(1, 3)
    assert p_values(evaluation, 4, [])[0][0] == adjusted_p_value(
        table_of(inconsistent(1).table(), ["a1", "a3"], "a0"), 4
    )


def test_p_values_under_a_measure_of_ones_own() -> None:
    own = plar.Measure("minority", lambda counts: counts.sum() - counts.max(), lambda n: n)
    sample = inconsistent(1)
    granules = plar.granulate(sample.frame(), **sample.roles)
    found = p_values(LocalEngine(n_jobs=1).open(granules, own), 4, [0, 1, 3])
    assert found == expected_p_values(sample, [0, 1, 3])


@pytest.mark.parametrize("measure", oracle.MEASURES)
@pytest.mark.parametrize("alpha", [None, 0.05])
def test_engines_agree(engine: Any, measure: str, alpha: float | None) -> None:
    for sample in (known(), inconsistent(1)):
        call = {**sample.roles, "measure": measure, "alpha": alpha}
        assert facts(plar.reduce(sample.frame(), engine=engine, **call)) == facts(plar.reduce(sample.frame(), **call))


@pytest.mark.parametrize("layout", ["columns", "rows"])
def test_spark(spark: Any, layout: str) -> None:
    from plar.engines import SparkEngine

    sample = inconsistent(1)
    granules = plar.granulate(sample.frame(), **sample.roles)
    narrow = granules.coarsen(["a0", "a1"])
    with SparkEngine(session=spark, layout=layout, partitions=3) as on_spark:
        for measure in oracle.MEASURES if TURNS > 1 else ("PR",):
            evaluation = on_spark.open(granules, as_measure(measure))
            assert p_values(evaluation, len(sample.conditions), [0, 1]) == expected_p_values(sample, [0, 1])
        for alpha in (None, 0.05) if TURNS > 1 else (0.05,) if layout == "columns" else ():
            expected = facts(plar.reduce(narrow, alpha=alpha))
            assert facts(plar.reduce(narrow, alpha=alpha, engine=on_spark)) == expected


@nightly
def test_spark_in_one_piece(spark: Any) -> None:
    from plar.engines import SparkEngine

    sample = inconsistent(3, 60)
    granules = plar.granulate(sample.frame(), **sample.roles)
    with SparkEngine(session=spark, layout="rows", partitions=1) as on_spark:
        evaluation = on_spark.open(granules, as_measure("CCE"))
        assert p_values(evaluation, len(sample.conditions), [1]) == expected_p_values(sample, [1])


@pytest.mark.parametrize("system", [baselines.har, baselines.fspa])
@pytest.mark.parametrize("measure", ["PR", "SCE"])
def test_the_papers_systems(system: Callable[..., plar.Reduct], measure: str) -> None:
    sample = inconsistent(3, 60)
    for alpha in (None, 0.05):
        call = {**sample.roles, "measure": measure, "alpha": alpha}
        assert facts(system(sample.frame(), **call)) == facts(plar.reduce(sample.frame(), **call))


@nightly
def test_the_papers_systems_on_spark(spark: Any) -> None:
    sample = inconsistent(3, 60)
    granules = plar.granulate(sample.frame(), **sample.roles).coarsen(["a1", "a3"])
    found = baselines.plar_paper(granules, session=spark, measure="PR", alpha=0.05)
    assert facts(found) == facts(plar.reduce(granules, measure="PR", alpha=0.05))


#: run where numba simulates a GPU; a simulated kernel takes its time
ON_CUDA = """
import json, sys
import plar, test_chance
from plar.engines import CudaEngine
from plar.measures import as_measure
from support.simulated_cuda import SIMULATED, run_block, simulator
if SIMULATED:
    simulator.BlockManager.run = run_block
sample = test_chance.inconsistent(4, 24)
granules = plar.granulate(sample.frame(), **sample.roles)
found = [test_chance.p_values(CudaEngine().open(granules, as_measure(m)), 4, [0, 1]) for m in ("PR", "LCE")]
reduct = plar.reduce(granules, engine=CudaEngine(), alpha=0.3, max_attributes=2)
print(json.dumps([found, test_chance.facts(reduct)]))
"""


def test_simulated_cuda() -> None:
    environment = with_support("chance", NUMBA_ENABLE_CUDASIM="1")
    done = subprocess.run([sys.executable, "-c", ON_CUDA], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found, reduct = json.loads(done.stdout.splitlines()[-1])
    sample = inconsistent(4, 24)
    assert found == [expected_p_values(sample, [0, 1])] * 2
    here = plar.reduce(sample.frame(), alpha=0.3, max_attributes=2, **sample.roles)
    assert reduct == json.loads(json.dumps(facts(here)))


# ----------------------------------------------------------------------------------------------- checkpoints and files


@pytest.mark.parametrize("options", [{"alpha": 0.3}, {"alpha": 0.3, "include": ["c2"], "measure": "LCE"}, {}])
def test_goes_on_after_any_step(tmp_path: Path, options: dict[str, Any]) -> None:
    whole = plar.reduce(text_table(), "d", **options)
    assert len(whole.steps) >= 2
    for done in range(len(whole.steps)):
        path = tmp_path / f"{done}.json"
        begun(path, done, **options)
        assert facts(plar.reduce(text_table(), "d", checkpoint=path, **options)) == facts(whole)
        # and once more, from the file of a search that has ended
        assert facts(plar.reduce(text_table(), "d", checkpoint=path, **options)) == facts(whole)


@pytest.mark.parametrize(
    ("first", "then", "said"),
    [
        ({}, {"alpha": 0.05}, "alpha None there, 0.05 now"),
        ({"start": "empty"}, {"alpha": 0.05}, "alpha None there, 0.05 now"),
        ({"alpha": 0.05}, {}, "alpha 0.05 there, None now"),
        ({"alpha": 0.05}, {"alpha": 0.01}, "alpha 0.05 there, 0.01 now"),
        ({"alpha": 0.05}, {"alpha": 0.05, "start": "core"}, "start 'empty' there, 'core' now"),
    ],
)
def test_a_checkpoint_of_another_level(tmp_path: Path, first: dict[str, Any], then: dict[str, Any], said: str) -> None:
    path = tmp_path / "c.json"
    begun(path, 1, **first)
    before = path.read_bytes()
    with pytest.raises(plar.TableError, match=said):
        plar.reduce(text_table(), "d", checkpoint=path, **then)
    assert path.read_bytes() == before
    if then == {"alpha": 0.05}:  # what is meant by default may be said
        plar.reduce(text_table(), "d", checkpoint=tmp_path / "new.json", **then)
        plar.reduce(text_table(), "d", checkpoint=tmp_path / "new.json", **then, start="empty")


def test_saved_and_read_again(tmp_path: Path) -> None:
    for alpha in (None, 0.05):
        found = plar.reduce(known().frame(), "d", alpha=alpha)
        found.save(tmp_path / "r.json")
        again = plar.load(tmp_path / "r.json")
        assert again == found
        assert [step.p_value for step in again.steps] == [step.p_value for step in found.steps]
        assert (again.rejected, again.n_combinations) == (found.rejected, found.n_combinations)


def test_results_of_earlier_versions(tmp_path: Path) -> None:
    from plar.results.reduct import from_dict

    found = plar.reduce(text_table(), "d")
    said = found.to_dict()
    for name in ("rejected", "n_combinations"):
        del said[name]
    for name in ("alpha", "start"):
        del said["settings"][name]
    for step in said["steps"]:
        del step["p_value"]
    (tmp_path / "r.json").write_text(json.dumps(said))
    for old in (from_dict(said), plar.load(tmp_path / "r.json")):
        assert old.attributes == found.attributes
        assert [step.p_value for step in old.steps] == [None] * len(found.steps)
        assert (old.rejected, old.n_combinations, old.objects_per_combination) == ({}, None, None)
        assert old.n_beyond_chance is None
        assert "Reduct" in repr(old)
        assert str(old)
        old.save(tmp_path / "new.json")
        assert plar.load(tmp_path / "new.json") == old


def test_how_many_steps_beat_chance() -> None:
    columns = {name: column for name, column in known().columns.items() if name not in ("copy", "id")}
    found = plar.reduce(columns, "d", start="empty")
    beaten = [step.p_value is not None and step.p_value <= 0.05 for step in found.steps]
    assert found.n_beyond_chance == beaten.index(False) == 2
    assert found.objects_per_combination == found.n_objects / oracle_combinations(columns, found.attributes)
    assert plar.reduce({"a": [0, 0], "d": [1, 1]}, "d").objects_per_combination == 2.0


def oracle_combinations(columns: Mapping[str, Sequence[Any]], names: Sequence[str]) -> int:
    return len(set(zip(*(columns[name] for name in names), strict=True)))


# -------------------------------------------------------------------------------------------------------- other counts


@settings(max_examples=30 * TURNS)
@given(sample=tables(), seed=st.integers(0, 2**32), measure=st.sampled_from(oracle.MEASURES))
def test_other_counts_are_repeated_rows(sample: Sample, seed: int, measure: str) -> None:
    pick = random.Random(seed)
    granules = plar.granulate(sample.frame(), **sample.roles)
    counts = [pick.choice([0, 0, 1, 2, 5]) for _ in range(len(granules))]
    counts[pick.randrange(len(counts))] = 1
    rows = [i for i, n in enumerate(counts) for _ in range(n)]
    coded = zip(granules.conditions, granules.columns, granules.dictionaries, strict=True)
    cells = {name: [values[code] for code in codes[rows].tolist()] for name, codes, values in coded}
    values = granules.decision_values[0]
    repeated = plar.granulate(
        pl.DataFrame({**cells, "d": [values[c] for c in granules.decision_codes[rows].tolist()]}), "d"
    )
    changed = granules.with_counts(counts)
    assert (changed.n_objects, len(changed)) == (sum(counts), sum(n > 0 for n in counts))
    assert (changed.cardinalities, changed.n_decisions) == (repeated.cardinalities, repeated.n_decisions)
    assert changed.fingerprint() == repeated.fingerprint()
    assert [sorted(map(repr, d)) for d in changed.dictionaries] == [sorted(map(repr, d)) for d in repeated.dictionaries]
    for alpha in (None, 0.3):
        call: dict[str, Any] = {"measure": measure, "alpha": alpha}
        assert facts(plar.reduce(changed, **call)) == facts(plar.reduce(repeated, **call))


def test_counts_of_zero_take_values_with_them() -> None:
    columns = {"a": ["x", "y", "z"], "b": [1, 1, 2], "d": ["yes", "no", "maybe"]}
    granules = plar.granulate(columns, "d")
    changed = granules.with_counts(np.array([2, 3, 0], np.uint8))
    assert (changed.n_objects, changed.cardinalities, changed.n_decisions) == (5, (2, 1), 2)
    assert "z" not in changed.dictionaries[0]
    assert "maybe" not in changed.decision_values[0]
    assert (len(granules), granules.n_objects) == (3, 3)
    assert granules.with_counts([True, False, True]).n_objects == 2


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ([1, 2], "takes 3 whole numbers from 0 on, one per granule. Got int64 of shape"),
        ([[1, 2, 3]], "takes 3 whole numbers"),
        (7, "takes 3 whole numbers"),
        ([1, -1, 2], "takes 3 whole numbers"),
        ([1.0, 2.0, 3.0], "takes 3 whole numbers.* Got float64"),
        (["1", "2", "3"], "takes 3 whole numbers"),
        ([None, 1, 2], "takes 3 whole numbers"),
        (None, "takes 3 whole numbers"),
        ([0, 0, 0], "All counts are 0"),
        ([2**39, 2**39, 1], "above the limit"),
        (np.full(3, 2**63, np.uint64), "above the limit"),
    ],
)
def test_counts_that_make_no_sense(counts: Any, said: str) -> None:
    granules = plar.granulate({"a": ["x", "y", "z"], "d": [0, 1, 1]}, "d")
    with pytest.raises(plar.TableError, match=said) as refused:
        granules.with_counts(counts)
    assert "\n" not in str(refused.value)


# --------------------------------------------------------------------------------------------------- noise and signal


def test_noise_is_seldom_selected() -> None:
    selected = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, rng.integers(2, 6, 20), (100, 20))
        found = plar.reduce(X, y=rng.integers(0, 2 + seed % 3, 100), alpha=0.05)
        assert found.complete
        selected += bool(found.attributes)
    assert selected <= 8


def test_rare_values_and_rare_decisions_are_seldom_selected() -> None:
    """The tail of the gamma distribution alone would select in a fifth of such tables."""
    selected = 0
    for seed in range(25):
        rng = np.random.default_rng(seed)
        X = rng.permuted(np.tile(np.arange(1000) < 20, (300, 1)), axis=1).T
        selected += bool(plar.reduce(X, y=np.arange(1000) < 20, alpha=0.05).attributes)
    assert selected <= 4


@pytest.mark.parametrize("measure", oracle.MEASURES)
def test_a_planted_decision_is_found_without_the_id(measure: str) -> None:
    rng = np.random.default_rng(8)
    bits = rng.integers(0, 2, (1000, 30))
    told = (bits[:, 3:28:5].sum(axis=1) > 2) ^ (rng.random(1000) < 0.03)
    X = np.column_stack([np.arange(1000), bits])
    found = plar.reduce(X, y=told, measure=measure, alpha=0.05)
    assert set(found.attributes) == {"x4", "x9", "x14", "x19", "x24"}
    assert found.attributes == tuple(step.attribute for step in found.steps)
    assert found.rejected["x0"] == 1.0
    assert found.complete
    assert not found.certificate.preserved
    assert plar.reduce(X, y=told, measure=measure).attributes == ("x0",)


def test_many_classes_of_hardly_any_variance() -> None:
    """Their variances are added up apart, in words that must not overflow."""
    sizes, copies = (100, 110), 3_000
    values = np.tile(np.array([0, 1, 1], np.uint8), copies)
    decisions = np.tile(np.array([0, 0, 1], np.uint32), copies)
    counts = np.tile(np.array([sizes[0], sizes[1] - 1, 1]), copies)
    order, starts = np.arange(3 * copies, dtype=np.uint32), np.arange(0, 3 * copies + 1, 3, dtype=np.uint32)
    one = association(CrossTab.of(values[:3], decisions[:3], counts[:3], order[:3], starts[:2], 2))
    all_of_them = association(CrossTab.of(values, decisions, counts, order, starts, 2))
    assert 0 < one.variance < 2.0**-20
    assert all_of_them == pytest.approx([copies * number for number in one], rel=1e-12)
