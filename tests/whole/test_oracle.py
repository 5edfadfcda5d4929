"""The oracle against itself, the paper's example and the brute force that came with the data."""

from __future__ import annotations

import csv
import json
import math
from fractions import Fraction
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from hypothesis import assume, given

from support import oracle
from support.real import judged, paper
from support.strategies import Sample, small_tables, tables

TRAP = oracle.table(
    {"a": [0, 0, 1, 1], "d": ["Y", "N", "Y", "N"], "w": [1000, 1001, 1001, 1002]}, decision="d", weights="w"
)


def subsets(conditions: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [s for k in range(len(conditions) + 1) for s in combinations(conditions, k)]


@given(sample=small_tables())
def test_products_and_proportions_decide_alike(sample: Sample) -> None:
    table = sample.table()
    assume(table.n_objects < 20_000)
    C = table.conditions
    for B in subsets(C):
        assert oracle.sce_equal_by_products(table, B, C) == oracle.sce_equal_by_proportion(table, B, C)


@given(sample=tables())
def test_integers_are_the_definition(sample: Sample) -> None:
    table = sample.table()
    C = table.conditions
    for B in [(), C[:1], C[:3], C]:
        for measure in ("PR", "LCE", "CCE"):
            ranked = Fraction(oracle.theta_int(table, B, measure), oracle.normaliser(table, measure))
            assert ranked == oracle.theta_exact(table, B, measure)
        sce = oracle.theta_int(table, B, "SCE") / oracle.normaliser(table, "SCE")
        assert sce == pytest.approx(oracle.theta_float(table, B, "SCE"), abs=2.5e-10)


@given(sample=tables())
def test_a_coarser_partition_is_never_better(sample: Sample) -> None:
    table = sample.table()
    C = table.conditions
    for measure in oracle.MEASURES:
        slack = oracle.tie_bound(table, measure)
        thetas = [oracle.theta_int(table, C[:k], measure) for k in range(len(C) + 1)]
        assert all(coarse >= fine - slack for coarse, fine in pairwise(thetas))


def test_nearly_proportional_is_not_equal() -> None:
    by_integers = oracle.theta_int(TRAP, (), "SCE") - oracle.theta_int(TRAP, ("a",), "SCE")
    assert abs(by_integers) <= oracle.tie_bound(TRAP, "SCE")  # the ranking cannot tell them apart
    assert not oracle.sce_equal_by_products(TRAP, (), ("a",))
    assert not oracle.sce_equal_by_proportion(TRAP, (), ("a",))
    assert oracle.search(TRAP, "SCE").core == ("a",)


def test_logarithm() -> None:
    assert oracle.fixed_log(1) == 0
    assert oracle.fixed_log(2) == 2_977_044_472
    for n in (3, 1000, 2**20 + 1, 2**40):
        assert abs(oracle.fixed_log(n) - 2**32 * math.log(n)) < 0.51


#: the reduct of the example's table and Θ after its first, its middle and its last but one step: the brute force's
EXAMPLES_FIGURES = {
    "PR": ([0, 1, 2, 4, 7, 6, 8, 3], [0.0, -0.22755741127348644, -0.9916492693110647]),
    "SCE": ([4, 0, 8, 2, 6, 1, 7, 3], [0.5848549139673437, 0.39004576049557454, 0.0057882854326509]),
    "LCE": ([4, 1, 7, 3, 5, 0, 8, 2], [0.1470181876822364, 0.004964239172597748, 9.152679773885225e-05]),
    "CCE": ([1, 7, 4, 3, 5, 0, 8, 2], [0.08181225992461065, 0.00013290217503185482, 1.9127857416688036e-07]),
}


@pytest.mark.parametrize("measure", oracle.MEASURES)
def test_the_examples_table(measure: str) -> None:
    table, outcome = judged("tic-tac-toe example", measure)
    reduct, thetas = EXAMPLES_FIGURES[measure]
    assert outcome.core == ()
    assert [table.conditions.index(a) for a in outcome.attributes] == reduct
    norm = oracle.normaliser(table, measure)
    assert [outcome.steps[k].theta / norm for k in (0, 3, 6)] == pytest.approx(thetas, abs=1e-9)
    assert outcome.theta == outcome.theta_all
    assert outcome.consistent


@paper
@pytest.mark.parametrize(
    ("name", "file", "decision", "drop", "complete_rows"),
    [
        ("tic-tac-toe", "tic-tac-toe.data", -1, [], False),
        ("breast", "breast-cancer-wisconsin.data", -1, [0], True),
        ("dermatology", "dermatology.data", -1, [], True),
        ("backup-large", "soybean-large.test", 0, [], False),
    ],
)
def test_small_real_tables(
    data_folder: Path, name: str, file: str, decision: int, drop: list[int], complete_rows: bool
) -> None:
    with (data_folder / file).open() as lines:
        rows = [row for row in csv.reader(lines) if row and not (complete_rows and "?" in row)]
    width = len(rows[0])
    columns = {f"x{j}": [row[j] for row in rows] for j in range(width) if j not in drop}
    table = oracle.table(columns, f"x{decision % width}")
    figures = json.loads((data_folder / "expected.json").read_text())[name]

    for measure in oracle.MEASURES:
        outcome, expected = oracle.search(table, measure), figures[measure]
        assert [table.conditions.index(a) for a in outcome.core] == expected["core"]
        assert [table.conditions.index(a) for a in outcome.attributes] == expected["reduct"]
        norm = oracle.normaliser(table, measure)
        assert [step.theta / norm for step in outcome.steps] == pytest.approx(expected["theta_steps"], abs=1e-9)
        assert outcome.theta_all / norm == pytest.approx(expected["theta_all"], abs=1e-9)
        assert outcome.preserved
        assert outcome.complete
