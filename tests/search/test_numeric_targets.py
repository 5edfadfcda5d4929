"""`plar.select` for targets of numbers: the rule on every engine, what a target is taken for, what is found."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plar
from plar.coding.times import times_as_numbers
from support.environment import TURNS
from support.selection import assert_by_the_rule, facts
from support.strategies import Sample, tables

Columns = dict[str, list[Any]]


def planted(n: int = 300, seed: int = 0) -> Columns:
    """Numbers that follow two causes, with a noisy copy of one of them, noise, and weights."""
    pick = random.Random(seed)
    columns: Columns = {name: [pick.randrange(4) for _ in range(n)] for name in ("a", "b")}
    columns["copy"] = [value if pick.random() < 0.7 else pick.randrange(4) for value in columns["a"]]
    columns |= {f"noise{i}": [pick.randrange(3) for _ in range(n)] for i in range(4)}
    columns["t"] = [2 * a + b + pick.gauss(0, 1) for a, b in zip(columns["a"], columns["b"], strict=True)]
    return columns


# --------------------------------------------------------------------------------------------------------- the rule


def lightly_weighted(sample: Sample) -> Sample:
    """The same table with weights that are small: next to huge ones, small ones say too little to compare."""
    weights: list[Any] = [int(str(weight)) % 5 for weight in sample.columns.get("w", ())]
    return (
        Sample({**sample.columns, "w": weights}) if any(weights) else Sample({**sample.columns, "w": [1] * len(sample)})
    )


@settings(max_examples=60 * TURNS)
@given(sample=tables().map(lightly_weighted), alpha=st.sampled_from([0.01, 0.05, 0.3, 0.9]), data=st.data())
def test_by_the_rule(engine: Any, sample: Sample, alpha: float, data: st.DataObject) -> None:
    include = data.draw(st.lists(st.sampled_from(sample.conditions), max_size=2, unique=True))
    limit = data.draw(st.none() | st.integers(max(len(include), 1), 4))
    kind = data.draw(st.sampled_from(["each", "each", "all"]))
    rule: dict[str, Any] = {"alpha": alpha, "given": kind, "include": include, "max_columns": limit}
    selection = plar.select(
        sample.frame(),
        "d",
        weights="w",
        **rule,
        bins=None,
        keep=list(sample.conditions),
        target_type="numbers",
        engine=engine,
    )
    assert_by_the_rule(selection, sample, ranked=True, **rule)
    assert selection.target_type == "numbers"
    assert selection.n_classes is None


@pytest.mark.parametrize("seed", range(4 * TURNS))
def test_by_the_rule_on_tables_in_which_much_is_selected(engine: Any, seed: int) -> None:
    columns = planted(150, seed)
    columns["d"] = columns.pop("t")
    if seed % 2:
        columns["d"] = [max(round(value), 4) for value in columns["d"]]
        columns["w"] = [random.Random(seed + i).randrange(4) for i in range(150)]
    for alpha in (0.05, 0.5):
        selection = plar.select(
            columns,
            "d",
            weights="w" if seed % 2 else None,
            bins=None,
            alpha=alpha,
            target_type="numbers",
            engine=engine,
        )
        assert_by_the_rule(selection, Sample(columns), alpha=alpha, ranked=True)
        assert {"a", "b"} <= set(selection.columns)


def test_order_threads_weights_and_scale_do_not_matter() -> None:
    columns = planted(300, 3)
    first = plar.select(columns, "t", n_jobs=1)
    assert len(first.steps) >= 2
    assert facts(plar.select(columns, "t", n_jobs=2)) == facts(first)
    conditions = {name: values for name, values in columns.items() if name != "t"}
    order = list(range(300))
    random.Random(4).shuffle(order)
    mixed: Columns = {name: [f"v{7919 * (values[i] + 1) % 9973}" for i in order] for name, values in conditions.items()}
    mixed["t"] = [np.sinh(columns["t"][i]) for i in order]
    other_names = facts(plar.select(mixed, "t"))
    assert {**other_names, "by_values": None} == {**facts(first), "by_values": None}
    twice = pl.concat([pl.DataFrame(columns)] * 2)
    weighted = pl.DataFrame(columns).with_columns(w=pl.lit(2))
    by_weights = plar.select(weighted, "t", weights="w")
    assert by_weights.steps
    assert [(s.column, s.p_value, s.excess) for s in by_weights.steps] == [
        (s.column, s.p_value, s.excess) for s in plar.select(twice, "t").steps
    ]


@pytest.mark.parametrize("layout", ["columns", "rows"])
def test_spark(spark: Any, layout: str) -> None:
    from plar.engines import SparkEngine

    for columns in (planted(120, 1), {**planted(120, 1), "t": [round(t) for t in planted(120, 1)["t"]]}):
        here = plar.select(columns, "t", target_type="numbers", alpha=0.5)
        assert here.steps
        rows = spark.createDataFrame(list(zip(*columns.values(), strict=True)), list(columns))
        with SparkEngine(session=spark, layout=layout, partitions=3) as on_spark:
            granules = plar.granulate(columns, "t", bins="auto")
            assert facts(plar.select(granules, target_type="numbers", alpha=0.5, engine=on_spark)) == facts(here)
            there = plar.select(rows, "t", target_type="numbers", alpha=0.5, engine=on_spark)
        assert facts(there) == facts(here)


# ----------------------------------------------------------------------------------------- what the target is taken for


def kind_of(data: Any, **options: Any) -> str:
    options = {"bins": None, **options}
    return plar.select(data, **options).target_type


N = 80
A = [i * 7 % 3 for i in range(N)]

#: values of the target, and what they are taken for
KINDS: dict[str, tuple[list[Any], str]] = {
    "fractions": ([i / 7 for i in range(N)], "numbers"),
    "few_fractions": ([i % 20 / 7 for i in range(N)], "classes"),
    "21_numbers": ([i % 20 if i % 40 else 1000 for i in range(N)], "numbers"),
    "codes_from_0": ([i % 26 for i in range(N)], "classes"),
    "codes_from_1": ([1 + i % 26 for i in range(N)], "classes"),
    "codes_from_2": ([2 + i % 26 for i in range(N)], "numbers"),
    "rare_codes": ([i % 30 for i in range(N)], "numbers"),
    "text": ([f"v{i}" for i in range(N)], "classes"),
    "some_text": (["many", *map(str, range(1, N))], "classes"),
    "bools": ([bool(i % 2) for i in range(N)], "classes"),
    "dates": ([dt.date(2024, 1, 1) + dt.timedelta(days=i * i % 50) for i in range(N)], "numbers"),
    "times": ([dt.datetime(2024, 1, 1, 12, 30) + dt.timedelta(minutes=i) for i in range(N)], "numbers"),
    "durations": ([dt.timedelta(seconds=i - 5) for i in range(N)], "numbers"),
}


def ways_in(values: list[Any], folder: Path) -> dict[str, Callable[[], str]]:
    """A table with this target, in every kind that can hold it."""
    columns = {"a": A, "t": values}
    ways: dict[str, Callable[[], str]] = {"mapping": lambda: kind_of(columns, target="t")}
    frame = pl.DataFrame(columns) if len(set(map(type, values))) == 1 else pl.DataFrame({"a": A, "t": map(str, values)})
    frame.write_parquet(folder / "t.parquet")
    ways["polars"] = lambda: kind_of(frame, target="t")
    ways["lazy"] = lambda: kind_of(frame.lazy(), target="t")
    ways["pandas"] = lambda: kind_of(pd.DataFrame(columns), target="t")
    ways["parquet"] = lambda: kind_of(folder / "t.parquet", target="t")
    ways["y"] = lambda: kind_of({"a": A}, y=values)
    ways["granules"] = lambda: kind_of(plar.granulate(frame, "t"))
    plar.granulate(frame, "t").save(folder / "granules.parquet")
    ways["granule file"] = lambda: kind_of(folder / "granules.parquet")
    if frame["t"].dtype != pl.Duration:
        frame.write_csv(folder / "t.csv")
        ways["csv"] = lambda: kind_of(folder / "t.csv", target="t")
        as_text = frame.select("a", pl.col("t").cast(pl.String))
        ways["text in a frame"] = lambda: kind_of(as_text, target="t")
    return ways


@pytest.mark.filterwarnings("ignore:The decision .* different numbers:plar.PlarWarning")
@pytest.mark.filterwarnings("ignore:The target .* is different in every row:plar.PlarWarning")
@pytest.mark.parametrize("name", KINDS)
def test_the_kind_of_the_target(name: str, tmp_path: Path) -> None:
    """The same on every way in; without one value of each kind of number, text that writes it counts as it."""
    values, expected = KINDS[name]
    assert {way: kind() for way, kind in ways_in(values, tmp_path).items()} == dict.fromkeys(
        ways_in(values, tmp_path), expected
    )


@pytest.mark.filterwarnings("ignore:The target .* is different in every row:plar.PlarWarning")
def test_more_kinds() -> None:
    many = [i / 7 for i in range(N)]
    assert kind_of(np.column_stack([A, many]), target=1) == "numbers"
    assert kind_of({"a": A, "t": many}, target="t", target_type="classes") == "classes"
    assert kind_of({"a": A, "t": A}, target="t", target_type="numbers") == "numbers"
    assert kind_of({"a": A, "t": many}, target="t", target_bins="quantile:3") == "classes"
    assert kind_of({"a": A, "t": [None, *many[1:]]}, target="t") == "numbers"
    assert kind_of({"a": A, "t": [2**60 + i for i in range(N)]}, target="t") == "numbers"


def test_numbers_of_which_most_rows_have_their_own_are_no_classes() -> None:
    few = [float(i // 2) for i in range(22)]
    assert kind_of({"a": A[:22], "t": few}, target="t") == "classes"
    assert kind_of({"a": A[:22], "t": [*few[:21], 99.0]}, target="t") == "numbers"
    assert kind_of({"a": A[:11], "t": [*range(10), 9]}, target="t") == "classes"  # ten are classes in any case
    assert kind_of({"a": A[:22], "t": [i % 12 for i in range(22)]}, target="t") == "classes"  # and so are codes
    assert kind_of({"a": A[:20], "t": [i % 12 + 1 for i in range(20)]}, target="t") == "classes"
    assert kind_of({"a": A[:22], "t": [i % 12 + 5 for i in range(22)]}, target="t") == "numbers"


def test_times_to_the_hour_are_times() -> None:
    hours = np.datetime64("2020-01-01T05") + np.random.default_rng(0).permutation(N) * np.timedelta64(1, "h")
    target = (hours > np.sort(hours)[N // 2]).astype(int)
    for times in (hours, [str(hour) for hour in hours], [str(hour).replace("T", " ") for hour in hours]):
        assert kind_of({"a": A, "t": times}, target="t") == "numbers"
        selection = plar.select({"when": times, "t": target}, "t")
        assert (selection.columns, selection.left_out) == (("when",), {})


def test_categories_are_classes() -> None:
    """Whatever they are called."""
    numbers = [10 * i % 270 for i in range(N)]
    texts = list(map(str, numbers))
    for values in (numbers, texts):
        assert kind_of({"a": A, "t": values}, target="t") == "numbers"
        frame = pd.DataFrame({"a": A, "t": pd.Series(values, dtype="category")})
        assert kind_of(frame, target="t") == "classes"
        assert kind_of({"a": A, "t": frame["t"]}, target="t") == "classes"
        assert kind_of({"a": A}, y=frame["t"]) == "classes"
        assert kind_of(frame, target="t", target_type="numbers") == "numbers"
    categorical = pl.DataFrame({"a": A, "t": texts}, schema_overrides={"t": pl.Categorical})
    assert kind_of(categorical, target="t") == "classes"
    assert kind_of(categorical.lazy(), target="t") == "classes"
    assert kind_of({"a": A}, y=categorical["t"].cast(pl.Enum(sorted(set(texts))))) == "classes"


def test_numbers_that_text_writes_are_compared_as_numbers(tmp_path: Path) -> None:
    columns = planted(200, 2)
    columns["t"] = [round(value, 1) for value in columns["t"]]
    expected = facts(plar.select(columns, "t"))
    written = {**columns, "t": [f"{value:.2f}" if i % 2 else f"{value}" for i, value in enumerate(columns["t"])]}
    path = tmp_path / "t.csv"
    pl.DataFrame(written).write_csv(path)
    assert facts(plar.select(path, "t")) == expected
    comma = {**written, "t": [text.replace(".", ",") for text in written["t"]]}
    assert facts(plar.select(comma, "t", decimal=",")) == expected


def test_times_are_in_their_order() -> None:
    texts = ["1999-12", "2000-01-01", "2000-01-01T00:00:00.000000001", "2000-01-01 00:30+00:30", "2000-01-01T00:00:01Z"]
    numbers = times_as_numbers(texts)
    assert numbers is not None
    assert [numbers[i] - numbers[1] for i in range(1, 5)] == [0, 10**9, 0, 10**18]
    assert times_as_numbers(["PT1.5S", "-PT3S"]) == [15 * 10**17, -3 * 10**18]
    assert times_as_numbers(["12:30", "12:30:00.5"]) == [45_000 * 10**18, 45_000 * 10**18 + 5 * 10**17]
    for texts in (["2000-13-01"], ["2000-01-01", "PT1S"], ["x"], ["1:30"]):
        assert times_as_numbers(texts) is None


@pytest.mark.parametrize(
    ("target", "options", "said"),
    [
        (["x", *range(1, N)], {"target_type": "numbers"}, "holds 'x', which is not a number"),
        ([True, False] * (N // 2), {"target_type": "numbers"}, "which is not a number"),
        ([None, *range(200, 199 + N)], {"missing_decision": "value"}, "have no rank"),
        ([i / 7 for i in range(N)], {"target_type": "numbers", "target_bins": "quantile:3"}, "Leave one of them out"),
        ([i / 7 for i in range(N)], {"target": ["t", "a"]}, "2 targets are given"),
    ],
)
def test_refused_in_one_line(target: list[Any], options: dict[str, Any], said: str) -> None:
    with pytest.raises(plar.PlarError, match=said) as refused:
        plar.select({"a": A, "b": A, "t": target}, **{"target": "t", **options})
    assert "\n" not in str(refused.value)


# ------------------------------------------------------------------------------------------------------ what is found


def test_what_was_planted() -> None:
    selection = plar.select(planted(seed=1), "t")
    assert set(selection.columns) == {"a", "b"}
    assert selection.rejected["copy"].given == ("a",)
    assert all(selection.rejected[f"noise{i}"].given == () for i in range(4))
    assert 0.6 < selection.alone["a"] < 1


def test_a_column_that_says_everything() -> None:
    numbers = [i % 40 for i in range(200)]
    selection = plar.select({"same": numbers, "t": [value**3 for value in numbers]}, "t", bins=None)
    assert selection.steps[0].share == pytest.approx(1 - 39 / 199)


def test_diabetes() -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    selection = plar.select(datasets.load_diabetes(as_frame=True).frame, "target")
    assert selection.target_type == "numbers"
    assert set(selection.columns[:2]) == {"bmi", "s5"}


@pytest.mark.parametrize("seed", range(2))
def test_friedmans_function(seed: int) -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    x, y = datasets.make_friedman1(1000, 40, noise=1.0, random_state=seed)
    chosen = set(plar.select(x, y=y).columns)
    causes = {f"x{j}" for j in range(5)}
    assert len(chosen & causes) >= 4
    assert len(chosen - causes) <= 1


def test_noise_is_seldom_selected() -> None:
    n_selecting = 0
    for seed in range(60):
        pick = np.random.default_rng(seed)
        n_selecting += bool(plar.select(pick.normal(size=(200, 10)), y=pick.normal(size=200)).columns)
    assert n_selecting <= 9
