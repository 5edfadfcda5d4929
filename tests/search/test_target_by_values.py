"""The target by the values of the selected columns: counted row by row, on every engine and layout."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from statistics import quantiles
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plar
from support.selection import facts
from support.strategies import Sample, tables

Shares = dict[str, tuple[int, dict[str, float]]]


def counted(values: Sequence[Any], target: Sequence[Any], weights: Sequence[Any]) -> Shares:
    """Rows and shares of the classes by value."""
    cells = Counter[tuple[Any, Any]]()
    for value, label, weight in zip(values, target, weights, strict=True):
        cells[shown(value), shown(label)] += weight
    rows = Counter[str]()
    for (value, _), n in cells.items():
        rows[value] += n
    classes = {label for (_, label), n in cells.items() if n}
    return {value: (n, {label: cells[value, label] / n for label in classes}) for value, n in rows.items() if n}


def shown(value: Any) -> str:
    return "missing" if value is None or value != value else str(value)


def said(frame: pl.DataFrame) -> Shares:
    return {row.pop("value"): (row.pop("rows"), row) for row in frame.to_dicts()}


@pytest.mark.filterwarnings("ignore:The target 'd' is the same in every row")
@settings(max_examples=40)
@given(sample=tables(), data=st.data())
def test_as_counted_row_by_row(engine: Any, sample: Sample, data: st.DataObject) -> None:
    include = data.draw(st.lists(st.sampled_from(sample.conditions), min_size=1, max_size=2, unique=True))
    selection = plar.select(
        sample.frame(),
        target=sample.roles["decision"],
        weights=sample.roles["weights"],
        include=include,
        bins=None,
        missing_decision="value",
        max_columns=len(include),
        target_type="classes",
        engine=engine,
    )
    target = sample.columns["d"]
    weights = sample.columns.get("w", [1] * len(sample))
    for name in include:
        expected = counted(sample.columns[name], target, weights)
        if selection.n_classes == 1:
            assert selection.shares(name).is_empty()
        elif len(expected) <= 50 and len(set(target)) <= 10:
            assert said(selection.shares(name)) == expected


def many_values(n: int = 3000) -> dict[str, list[Any]]:
    """A column of 80 values of different frequency, one of 70 equally frequent ones, and 15 classes."""
    pick = random.Random(0)
    rare = [min(int(pick.expovariate(0.05)), 79) for _ in range(n)]
    return {
        "falling": [f"v{value}" for value in rare],
        "even": [f"w{i % 75}" for i in range(n)],
        "t": [f"class {(value // 6) if pick.random() < 0.8 else pick.randrange(14)}" for value in rare],
    }


def test_only_the_most_frequent_values_and_classes() -> None:
    columns = many_values()
    selection = plar.select(columns, "t", include=["even"])
    for name in ("falling", "even"):
        by_value = selection.by_values[name]
        sizes = Counter(columns[name])
        names = [line.value for line in by_value.values[:-1]]
        assert len(names) == 50
        assert by_value.n_others == len(sizes) - 50
        assert by_value.values[-1].value == f"{len(sizes) - 50} other values"
        assert sum(line.rows for line in by_value.values) == 3000
        assert names == sorted(names)
        best = sorted(sizes, key=lambda value: (-sizes[value], value))[:50]
        assert set(names) == set(best)
        assert all(sum(line.numbers) == pytest.approx(1) for line in by_value.values)  # type: ignore[arg-type]
    classes = Counter(columns["t"])
    shown_classes = sorted(sorted(classes, key=lambda label: (-classes[label], label))[:9])
    assert selection.shares("even").columns == ["value", "rows", *shown_classes, f"{len(classes) - 9} others"]


def test_intervals_are_in_the_units_of_the_data() -> None:
    numbers = np.arange(400) / 8
    columns = {"x": np.where(numbers == 3, np.nan, numbers), "t": (numbers > 20).astype(int)}
    selection = plar.select(columns, "t", bins={"x": [7.875, 14.5]})
    assert selection.shares("x").rows() == [
        ("≤ 7.875", 63, 1.0, 0.0),
        ("(7.875, 14.5]", 53, 1.0, 0.0),
        ("> 14.5", 283, 44 / 283, 239 / 283),
        ("missing", 1, 1.0, 0.0),
    ]


def test_numbers_are_in_their_order() -> None:
    values = [2, 10, 9, 1] * 50
    for data in (values, list(map(float, values)), list(map(str, values))):
        selection = plar.select({"a": data, "t": [value > 5 for value in values]}, "t")
        assert selection.shares("a")["value"].to_list() == ["1", "2", "9", "10"]
        assert selection.shares("a").columns == ["value", "rows", "False", "True"]


@pytest.mark.filterwarnings("ignore:The target 't' is the same in every row")
@settings(max_examples=60)
@given(
    rows=st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from([-2.5, 0.0, 1.0, 1e300, 7.25]), st.integers(1, 4)),
        min_size=1,
        max_size=30,
    )
)
def test_quartiles_of_a_target_of_numbers(rows: list[tuple[int, float, int]]) -> None:
    """Between two numbers in proportion, as `statistics` has them with its inclusive method."""
    values, numbers, weights = map(list, zip(*rows, strict=True))
    table = {"a": values, "t": numbers, "w": weights}
    selection = plar.select(table, "t", weights="w", include=["a"], max_columns=1, target_type="numbers")
    by_value = selection.by_values["a"]
    if len(set(numbers)) == 1:
        assert by_value.values == ()
        return
    assert by_value.heads == ("lower quartile", "median", "upper quartile")
    for line in by_value.values:
        repeated = [number for value, number, weight in rows if str(value) == line.value for _ in range(weight)]
        assert line.rows == len(repeated)
        expected = quantiles(repeated, n=4, method="inclusive") if len(repeated) > 1 else repeated * 3
        assert line.numbers == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_numbers_that_differ_less_than_floats_can_say() -> None:
    target = [2**60 + i // 8 for i in range(400)]
    selection = plar.select({"a": [i // 100 for i in range(400)], "t": target}, "t")
    assert selection.target_type == "numbers"
    assert selection.shares("a")["median"].to_list() == [float(2**60)] * 4


@pytest.mark.parametrize("layout", ["columns", "rows"])
def test_the_same_on_spark(spark: Any, monkeypatch: pytest.MonkeyPatch, layout: str) -> None:
    """Also where values, and classes, are too many for the driver."""
    from plar.engines import SparkEngine
    from plar.engines.spark import granulate

    columns = many_values()
    columns["x"] = [i * 0.37 % 11 for i in range(3000)]
    columns["y"] = [x * 3 + i % 7 for i, x in enumerate(columns["x"])]
    expected = [plar.select(columns, target, include=["even", "x"]) for target in ("t", "y")]
    frame = spark.createDataFrame(pl.DataFrame(columns).rows(), list(columns))
    for most in (granulate.MAX_VALUES_ON_DRIVER, 3):
        monkeypatch.setattr(granulate, "MAX_VALUES_ON_DRIVER", most)
        monkeypatch.setattr(granulate, "MAX_VALUES_OF_PART", most)
        with SparkEngine(session=spark, layout=layout, partitions=3) as engine:
            for target, of_target in zip(("t", "y"), expected, strict=True):
                selection = plar.select(frame, target, include=["even", "x"], engine=engine)
                assert facts(selection) == facts(of_target)
