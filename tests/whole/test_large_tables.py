"""Tables of unusual size, whose reducts are known by how they are made."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import plar
from support import oracle
from support.comparing import assert_agrees


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_hundred_thousand_columns(tmp_path: Path, suffix: str) -> None:
    n = 100_000
    rows = np.arange(50)
    table = np.zeros((50, n + 1), np.uint8)
    table[:, 5] = table[:, 60_000] = rows % 2
    table[:, 50_000] = rows // 2 % 5
    table[:, n] = rows % 10
    frame = pl.DataFrame(table, schema=[*(f"c{j}" for j in range(n)), "d"])
    path = tmp_path / f"wide{suffix}"
    frame.write_csv(path) if suffix == ".csv" else frame.write_parquet(path)
    reduct = plar.reduce(path, "d", equivalent=True)
    assert (reduct.core, reduct.attributes) == (("c50000",), ("c50000", "c5"))
    assert reduct.steps[0].ties == ("c5", "c60000")
    assert reduct.certificate.minimal
    assert len(str(reduct)) < 2000
    assert ("c5", "c60000") in (reduct.equivalent or ())
    if suffix == ".parquet":
        reduct.save(tmp_path / "r.json")
        assert plar.load(tmp_path / "r.json") == reduct
        assert reduct.transform(path).columns == ["c5", "c50000", "d"]


def test_a_million_values_in_several_columns() -> None:
    n = 1_000_000
    row = np.arange(n)
    table = {"low": row % 2, "first": row * 7919 % n, "second": row[::-1] + 2**40, "third": row / 3, "d": row // 2 % 2}
    with pytest.warns(plar.PlarWarning, match="'first' is different in nearly every row"):
        reduct = plar.reduce(table, "d", measure="LCE")
    # every other column tells d; `low` halves the classes, and so the pairs that d parts
    assert (reduct.core, reduct.attributes, reduct.theta) == ((), ("first",), 0.0)
    assert reduct.steps[0].ties == ("first", "second", "third")
    assert reduct.steps[0].candidates["low"] == 0.25
    assert (reduct.n_granules, reduct.n_decisions) == (n, 2)
    assert list(reduct.cardinalities.values()) == [2, n, n, n]


@pytest.mark.parametrize("measure", oracle.MEASURES)
def test_counts_beyond_32_bits(measure: str) -> None:
    columns = {
        "a": [0, 0, 1, 1, 2, 2],
        "b": [0, 1, 0, 1, 0, 1],
        "d": [0, 1, 1, 0, 0, 0],
        "w": [2**33, 2**33 + 1, 2**32 - 1, 2**38, 3, 2**39],
    }
    table = oracle.table(columns, "d", "w")
    assert table.n_objects > 2**39
    reduct = plar.reduce(columns, "d", weights="w", measure=measure)
    assert_agrees(reduct, oracle.search(table, measure), table, measure)
    assert reduct.core == ("a", "b")


def test_ten_thousand_decisions() -> None:
    row = np.arange(30_000)
    table = {"a": row % 100, "noise": row // 10_000, "b": row // 100 % 100, "d": row % 10_000}
    with pytest.warns(plar.PlarWarning, match="The decision 'd' holds 10,000 different numbers"):
        reduct = plar.reduce(table, "d")
    assert (reduct.core, reduct.attributes, reduct.theta) == (("a", "b"), ("a", "b"), 0.0)
    assert reduct.n_decisions == 10_000
    # of the hundred decisions that `a` leaves open each is as frequent
    assert plar.theta(table, ["a"], decision="d") == pytest.approx(math.log(100), rel=1e-9)
    assert plar.theta(table, [], decision="d", measure="LCE") == pytest.approx(1 - 1 / 10_000, rel=1e-12)
