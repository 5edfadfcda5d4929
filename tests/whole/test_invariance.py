"""What must not change the answer: the order of rows, threads, names of values, the kind of input."""

from __future__ import annotations

import random
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import plar
from support import oracle
from support.comparing import facts
from support.strategies import DECISION, WEIGHTS, Column, Sample, large_tables, tables, unweighted_tables

measures = st.sampled_from(oracle.MEASURES)


def reduced(sample: Sample, measure: str, **options: Any) -> dict[str, Any]:
    return facts(plar.reduce(sample.frame(), measure=measure, **sample.roles, **options))


@given(sample=tables(), measure=measures, seed=st.integers(0, 2**32))
def test_row_order(engine: Any, sample: Sample, measure: str, seed: int) -> None:
    shuffled = sample.take(random.Random(seed).sample(range(len(sample)), len(sample)))
    assert reduced(shuffled, measure, engine=engine) == reduced(sample, measure, engine=engine)


@given(sample=tables(), measure=measures)
def test_threads(sample: Sample, measure: str) -> None:
    one, two, seven = (reduced(sample, measure, n_jobs=n) for n in (1, 2, 7))
    assert one == two == seven


@pytest.mark.parametrize("lanes", [False, True])
@pytest.mark.parametrize("measure", oracle.MEASURES)
def test_threads_on_a_larger_table(measure: str, lanes: bool) -> None:
    rng = np.random.default_rng(5)
    X = rng.integers(0, 4, (5_000, 30)).astype(np.uint8)
    y = (X[:, 3] + X[:, 7] * X[:, 11] + (rng.random(5_000) < 0.1)) % 5

    def on(n: int) -> dict[str, Any]:
        return facts(plar.reduce(X, y=y, measure=measure, engine=plar.engines.LocalEngine(n_jobs=n, lanes=lanes)))

    assert on(1) == on(2) == on(7)


@given(sample=tables(), measure=measures)
def test_engines_agree(engine: Any, sample: Sample, measure: str) -> None:
    assert reduced(sample, measure, engine=engine) == reduced(sample, measure)


def rename(column: Column, pick: random.Random) -> Column:
    """Give every value, missing too, another name of another type."""
    values = list(dict.fromkeys(column))
    places = pick.sample(range(len(values)), len(values))
    kinds: list[Column] = [
        [f"value {i}" for i in places],
        [i * 1_000_003 - 7 for i in places],
        [i / 7 for i in places],
    ]
    fresh = pick.choice(kinds)
    names: dict[Hashable, Hashable] = dict(zip(values, fresh, strict=True))
    return [names[value] for value in column]


@given(sample=tables(), measure=measures, seed=st.integers(0, 2**32))
def test_renamed_values(engine: Any, sample: Sample, measure: str, seed: int) -> None:
    pick = random.Random(seed)
    renamed = Sample({name: list(c) if name == WEIGHTS else rename(c, pick) for name, c in sample.columns.items()})
    actual, expected = (reduced(one, measure, engine=engine) for one in (renamed, sample))
    actual["missing"] = expected["missing"]  # which got a name like any other value
    assert actual == expected


@given(sample=unweighted_tables(), measure=measures, seed=st.integers(0, 2**32))
def test_duplicated_rows_as_weights(engine: Any, sample: Sample, measure: str, seed: int) -> None:
    pick = random.Random(seed)
    weights: list[Hashable] = [pick.randrange(4) for _ in range(len(sample))]
    weights[0] = 1
    weighted = Sample({**sample.columns, WEIGHTS: weights})
    repeated = sample.take([i for i, w in enumerate(weights) for _ in range(int(str(w)))])
    assert reduced(weighted, measure, engine=engine) == reduced(repeated, measure, engine=engine)


@given(sample=tables(), measure=measures)
def test_pandas_polars_and_arrow(sample: Sample, measure: str) -> None:
    frame = sample.frame()
    expected = reduced(sample, measure)
    # pandas has no nullable int64 by default: via Arrow its floats hold NaN where polars holds null
    for data in (frame.to_pandas(), frame.to_arrow(), frame.lazy(), sample.columns):
        assert facts(plar.reduce(data, measure=measure, **sample.roles)) == expected


@given(sample=large_tables(), measure=measures)
def test_numpy(sample: Sample, measure: str) -> None:
    columns = {name: sample.columns[name] for name in sample.conditions}
    codes = {name: [list(dict.fromkeys(c)).index(v) for v in c] for name, c in columns.items()}
    X = np.array(list(codes.values()), np.int64).T
    y = np.array(sample.columns[DECISION])
    names = {f"x{j}": c for j, c in enumerate(columns.values())}
    expected = facts(plar.reduce(pl.DataFrame({**names, "y": y}), decision="y", measure=measure))
    for array in (X, np.asfortranarray(X), X.astype(np.float32), X.astype(str), X.astype(object)):
        actual = facts(plar.reduce(array, y=y, measure=measure))
        actual["decision"] = expected["decision"] = None  # labels beside the data have no column name
        actual["missing"] = expected["missing"]  # which got a code like any other value
        assert actual == expected
    assert facts(plar.reduce(X, y=y.tolist(), measure=measure))["attributes"] == expected["attributes"]
    joined = facts(plar.reduce(np.column_stack([X, y]), decision=-1, measure=measure))
    assert joined["attributes"] == expected["attributes"]


@given(sample=tables(), measure=measures)
def test_granules_in_place_of_the_table(engine: Any, sample: Sample, measure: str) -> None:
    granules = plar.granulate(sample.frame(), **sample.roles)
    assert facts(plar.reduce(granules, measure=measure, engine=engine)) == reduced(sample, measure, engine=engine)
    half = sample.conditions[: len(sample.conditions) // 2 + 1]
    on_half = reduced(sample, measure, conditions=half)
    assert facts(plar.reduce(granules, measure=measure, conditions=half)) == on_half
    assert facts(plar.reduce(granules.coarsen(half), measure=measure)) == on_half


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(sample=tables(), measure=measures)
def test_result_survives_saving(tmp_path: Path, sample: Sample, measure: str) -> None:
    reduct = plar.reduce(sample.frame(), measure=measure, **sample.roles)
    reduct.save(tmp_path / "r.json")
    loaded = plar.load(tmp_path / "r.json")
    assert loaded == reduct
    assert loaded.to_dict() == reduct.to_dict()
