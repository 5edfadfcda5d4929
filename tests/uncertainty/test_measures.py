"""Values of the four measures, and measures of the user's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import plar
from plar.engines.local.kernels import add_f, as_int
from plar.measures import ENTROPY, PAIRS, TRIPLES, exact_log, f_of, f_table, log_anchors
from support import oracle
from support.comparing import assert_agrees
from support.strategies import Sample, options, tables

Counts = NDArray[np.int64]


def own_lce(counts: Counts) -> int:
    size = counts.sum()
    total = 0
    for d in counts:
        total += d * (size - d)
    return total


def minority(counts: Counts) -> int:
    """How many objects of the class are not of its most frequent decision."""
    return int(counts.sum() - counts.max())


def square_of_minority(counts: Counts) -> int:
    """Grows faster than the class, as LCE does, but depends on the largest count alone."""
    outside = counts.sum() - counts.max()
    return int(outside * outside)


OWN_LCE = plar.Measure("own LCE", own_lce, lambda n: n * n, drop_pure=True)
MINORITY = plar.Measure("minority", minority, lambda n: n, drop_pure=True)
KEEPING = plar.Measure("minority, nothing dropped", minority, lambda n: n, drop_pure=False)
SQUARE = plar.Measure("square", square_of_minority, lambda n: n * n, drop_pure=True)

small_weights = tables().filter(lambda sample: sample.table().n_objects < 2**31)


@given(sample=small_weights)
def test_liang_rewritten_by_the_user(engine: Any, sample: Sample) -> None:
    frame = sample.frame()
    ours = plar.reduce(frame, measure="LCE", engine=engine, **sample.roles)
    theirs = plar.reduce(frame, measure=OWN_LCE, engine=engine, **sample.roles)
    assert theirs.measure == "own LCE"
    assert (theirs.core, theirs.attributes, theirs.certificate) == (
        ours.core,
        ours.attributes,
        ours.certificate,
    )
    assert (theirs.theta, theirs.theta_all) == (ours.theta, ours.theta_all)
    traces = [[(s.attribute, s.theta, s.significance, s.ties, s.candidates) for s in r.steps] for r in (ours, theirs)]
    assert traces[0] == traces[1]


def plain_minority(counts: tuple[int, ...]) -> int:
    return sum(counts) - max(counts)


def plain_square(counts: tuple[int, ...]) -> int:
    return (sum(counts) - max(counts)) ** 2


@pytest.mark.parametrize(
    ("own", "plain"),
    [
        pytest.param(MINORITY, oracle.Custom(plain_minority, lambda n: n), id="minority"),
        pytest.param(KEEPING, oracle.Custom(plain_minority, lambda n: n), id="minority-keeping"),
        pytest.param(SQUARE, oracle.Custom(plain_square, lambda n: n * n), id="square"),
    ],
)
@given(sample=small_weights, data=st.data())
def test_own_measure_by_value(
    engine: Any, own: plar.Measure, plain: oracle.Custom, sample: Sample, data: st.DataObject
) -> None:
    table = sample.table()
    chosen = data.draw(st.just({}) | options(sample.conditions))
    reduct = plar.reduce(sample.frame(), measure=own, engine=engine, **sample.roles, **chosen)
    assert_agrees(reduct, oracle.search(table, plain, **chosen), table, plain)


@given(n=st.integers(1, 2**40))
def test_logarithm_is_correctly_rounded(n: int) -> None:
    assert exact_log(n) == oracle.fixed_log(n)


@pytest.mark.parametrize("n", [2**20 + 1, 2**40, 1_530_785, 67_281_773, 68_724_654_771, 625_491_412_648])
def test_kernels_round_the_logarithm_as_the_host_does(n: int) -> None:
    """Beyond the table; in the last four 2^32·ln n lies within 2^-21 of a half."""
    words = np.zeros(3, np.int64)
    add_f((ENTROPY, np.zeros(1, np.int64), log_anchors()), np.uint64(n), 1, words, 0)
    assert as_int(words) == n * oracle.fixed_log(n)


def test_tables_hold_the_definition() -> None:
    n = range(5_001)
    expected = {
        ENTROPY: [k * oracle.fixed_log(max(k, 1)) for k in n],
        PAIRS: [k * (k - 1) for k in n],
        TRIPLES: [k * k * (k - 1) for k in n],
    }
    for kind, values in expected.items():
        assert f_table(kind, n[-1]).tolist() == [f_of(kind, k) for k in n] == values


def test_unknown_measure() -> None:
    with pytest.raises(plar.UnknownNameError, match=r"Unknown measure 'gini'\. Choose one of: PR, SCE, LCE, CCE\."):
        plar.reduce({"a": [0, 1], "d": [0, 1]}, decision="d", measure="gini")
