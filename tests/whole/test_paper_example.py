"""The paper's worked example, every figure by hand."""

from __future__ import annotations

from fractions import Fraction
from math import log
from typing import Any

import pytest

import plar

TABLE = {
    "a1": [0, 0, 0, 0, 0, 0, 1, 1],
    "a2": [0, 0, 0, 1, 1, 1, 0, 1],
    "D": ["Y", "Y", "N", "Y", "Y", "Y", "N", "Y"],
}

#: Θ(D|B) for B = ∅, {a1}, {a2}, {a1, a2}
SUBSETS: list[tuple[str, ...]] = [(), ("a1",), ("a2",), ("a1", "a2")]
THETA: dict[str, list[Fraction | float]] = {
    "PR": [Fraction(0), Fraction(0), Fraction(-4, 8), Fraction(-5, 8)],
    "SCE": [0.5623351446, 0.5112077018, 0.3465735903, 0.2386928131],
    "LCE": [Fraction(24, 64), Fraction(12, 64), Fraction(8, 64), Fraction(4, 64)],
    "CCE": [Fraction(33, 56), Fraction(21, 112), Fraction(5, 56), Fraction(1, 32)],
}
EXACT_TO = {"PR": 0.0, "SCE": 3e-10, "LCE": 1e-15, "CCE": 1e-15}
CASES = [
    pytest.param(measure, subset, float(value), id=f"{measure}-{'+'.join(subset) or 'none'}")
    for measure, values in THETA.items()
    for subset, value in zip(SUBSETS, values, strict=True)
]


@pytest.mark.parametrize(("measure", "subset", "value"), CASES)
def test_theta(engine: Any, measure: str, subset: tuple[str, ...], value: float) -> None:
    theta = plar.theta(TABLE, subset, decision="D", measure=measure, engine=engine)
    assert theta == pytest.approx(value, rel=0, abs=EXACT_TO[measure])


def test_entropy_in_nats() -> None:
    """−(2/8 ln 2/3 + 1/8 ln 1/3): in U/{a1,a2} only {x1, x2, x3} is mixed."""
    by_hand = -(2 * log(2 / 3) + log(1 / 3)) / 8
    assert plar.theta(TABLE, ["a1", "a2"], decision="D", measure="SCE") == pytest.approx(by_hand, abs=3e-10)


@pytest.mark.parametrize("measure", list(THETA))
def test_significance(engine: Any, measure: str) -> None:
    none, a1, a2, both = (float(value) for value in THETA[measure])
    expected = {
        (): {"a1": none - a1, "a2": none - a2},
        ("a1",): {"a1": none - a1, "a2": a1 - both},
        ("a2",): {"a1": a2 - both, "a2": none - a2},
        ("a1", "a2"): {"a1": a2 - both, "a2": a1 - both},
    }
    for subset, values in expected.items():
        significances = plar.significance(TABLE, subset, decision="D", measure=measure, engine=engine)
        assert significances == pytest.approx(values, rel=0, abs=1e-9)


@pytest.mark.parametrize("measure", list(THETA))
def test_core_and_reduct(engine: Any, measure: str) -> None:
    assert plar.core(TABLE, decision="D", measure=measure, engine=engine) == ("a1", "a2")
    reduct = plar.reduce(TABLE, decision="D", measure=measure, engine=engine)
    assert reduct.attributes == reduct.core == ("a1", "a2")
    assert reduct.steps == ()
    assert reduct.theta == reduct.theta_all == pytest.approx(float(THETA[measure][3]), abs=1e-9)
    assert reduct.complete
    assert not reduct.consistent
    assert reduct.certificate.preserved
    assert reduct.certificate.minimal
    assert reduct.certificate.redundant == ()


def test_greedy_from_nothing(engine: Any) -> None:
    """With ε above every inner significance the core is empty, and greed takes a2 first."""
    reduct = plar.reduce(TABLE, decision="D", measure="LCE", engine=engine, epsilon=0.5)
    assert reduct.core == ()
    assert reduct.attributes == ("a2", "a1")
    assert [step.theta for step in reduct.steps] == [8 / 64, 4 / 64]
    assert [step.significance for step in reduct.steps] == [16 / 64, 4 / 64]
    assert [step.candidates for step in reduct.steps] == [{"a1": 12 / 64, "a2": 16 / 64}, {"a1": 4 / 64}]
    assert [step.active for step in reduct.steps] == [4, 0]  # {x4, x5, x6, x8} is pure from the first step on


def test_granules() -> None:
    granules = plar.granulate(TABLE, decision="D")
    assert len(granules) == 5
    assert granules.n_objects == 8
    assert sorted(granules.counts.tolist()) == [1, 1, 1, 2, 3]
    reduct = plar.reduce(TABLE, decision="D")
    assert (reduct.n_objects, reduct.n_granules) == (8, 5)


def test_coarsing() -> None:
    coarse = plar.granulate(TABLE, decision="D").coarsen(["a2"])
    assert sorted(coarse.counts.tolist()) == [2, 2, 4]
