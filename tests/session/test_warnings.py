"""Warnings before a search that means nothing, decisions cut into classes, and outputs in values or bins."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
import uuid
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import plar
from plar.bins import Rule, find_cuts
from plar.coding.index_like import is_index_like, profile_of
from plar.sklearn import ReductSelector, RelevantSelector
from support.real import EVERYBODYS, PAPERS, granules, paper

RNG = np.random.default_rng(0)
N = 120
FEW = {"a": RNG.integers(0, 3, N), "b": RNG.integers(0, 3, N)}
PRICE = np.round(RNG.normal(100, 20, N) + 40 * FEW["a"], 1)
IDS: dict[str, Any] = {
    "id": np.arange(N),
    "customer": [f"C-{i:04}" for i in range(N)],
    "uuid": [str(uuid.UUID(int=int(RNG.integers(1, 1 << 62)))) for _ in range(N)],
    "Unnamed: 0": np.arange(N),
    "case": RNG.permutation(N) + 5000,
    "float": np.arange(1.0, N + 1),
}
NO_IDS: dict[str, Any] = {
    "time": [dt.datetime(2026, 1, 1) + dt.timedelta(minutes=7 * i) for i in range(N)],
    "day": [dt.date(2026, 1, 1) + dt.timedelta(days=i) for i in range(N)],
    "Year": np.arange(1900, 1900 + N),
}


def told(caught: Any) -> str:
    """The only warning."""
    assert len(caught) == 1
    assert caught[0].filename == __file__
    return str(caught[0].message)


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("kind", ["polars", "pandas", "csv", "granules"])
def test_ids(name: str, kind: str, tmp_path: Path) -> None:
    frame = pl.DataFrame({name: IDS[name], **FEW, "d": (FEW["a"] + FEW["b"]) % 2})
    frame.write_csv(tmp_path / "t.csv")
    data: Any = {"polars": frame, "pandas": frame.to_pandas(), "csv": tmp_path / "t.csv"}.get(kind)
    data = plar.granulate(frame, "d") if kind == "granules" else data
    with pytest.warns(plar.PlarWarning) as caught:
        found = plar.reduce(data, "d")
    assert found.attributes == (name,)
    message = told(caught)
    assert message.startswith(f"'{name}' is different in nearly every row: such a column identifies the rows")
    assert message.endswith(f"Leave it out, drop={name!r}.")
    assert plar.reduce(data, "d", drop=name).attributes == ("a", "b")
    # neither bins nor a test against chance hide it
    for how in ({"alpha": 0.05}, {"bins": "quantile:4"}, {"bins": "width:4", "alpha": 0.05}):
        given: dict[str, Any] = dict(how)
        with pytest.warns(plar.PlarWarning) as caught:
            plar.reduce(data, "d", **given)
        assert told(caught) == message


@pytest.mark.parametrize("name", NO_IDS)
@pytest.mark.parametrize("bins", [None, "quantile:4"])
def test_years_and_times_are_no_ids(name: str, bins: str | None, tmp_path: Path) -> None:
    frame = pl.DataFrame({name: NO_IDS[name], **FEW, "d": (FEW["a"] + FEW["b"]) % 2})
    frame.write_csv(tmp_path / "t.csv")
    for data in (frame, frame.to_pandas(), tmp_path / "t.csv"):
        plar.reduce(data, "d", conditions=["a", "b", name], bins=bins, include=["a", "b"])


INDEX_LIKE: dict[str, tuple[str, Any, bool]] = {
    "row names": ("row.names", [f"r{i}" for i in range(90)], True),
    "90 of 100 are enough": ("index", [7 * i for i in range(90)], True),
    "89 of 100 are not": ("index", [7 * i for i in range(89)], False),
    "an index of dates": ("Unnamed: 0", [f"2026-01-01T00:{i // 60:02}:{i % 60:02}" for i in range(100)], True),
    "fractions named as an index": ("index", [i / 7 for i in range(100)], False),
    "from 0": ("anything", range(100), True),
    "from 1, in any order": ("anything", RNG.permutation(100).tolist(), True),
    "from 1, as written": ("anything", [str(i) for i in range(1, 101)], True),
    "from 1, with zeros": ("anything", [f"{i:05}" for i in range(1, 101)], True),
    "from 1, as floats": ("anything", [float(i) for i in range(1, 101)], True),
    "from 1, as written floats": ("anything", [f"{i}.0" for i in range(1, 101)], True),
    "from elsewhere": ("anything", range(500, 600), False),
    "from elsewhere, an id": ("PassengerId", range(500, 600), True),
    "from elsewhere, a number": ("Case No", range(500, 600), True),
    "a gap": ("customer_id", [*range(99), 200], False),
    "one twice": ("id", range(99), False),
    "years": ("Year", range(1914, 2014), False),
    "a year with a number": ("year no", range(1914, 2014), False),
    "pandas in Parquet": ("__index_level_0__", [3 * i for i in range(95)], True),
    "a grid": ("grid", range(500, 600), False),
    "text": ("anything", [f"name {i}" for i in range(90)], True),
    "text that repeats": ("anything", [f"name {i}" for i in range(89)], False),
    "dates": ("anything", [f"{1 + i % 28:02}/{1 + i // 28:02}/2026" for i in range(100)], False),
    "ISO dates": ("anything", [f"2026-{1 + i // 28:02}-{1 + i % 28:02}" for i in range(100)], False),
    "ISO times": ("anything", [f"2026-01-01T00:{i // 60:02}:{i % 60:02}Z" for i in range(100)], False),
    "months": ("anything", [f"{['Jan', 'Feb', 'Mar', 'Apr'][i % 4]} {1900 + i // 4}" for i in range(100)], False),
    "written fractions": ("anything", [f"{i}.5" for i in range(100)], False),
    "written fractions and a word": ("anything", ["n/a", *(f"{i}.5" for i in range(99))], False),
    "numbers and a word": ("anything", ["n/a", *(str(i) for i in range(99))], False),
    "infinity": ("anything", [float("inf"), *map(float, range(99))], False),
    "large numbers": ("id", [10**30 + i for i in range(100)], False),
    "true and false": ("index", [True, False], False),
}


@pytest.mark.parametrize("case", INDEX_LIKE)
def test_what_is_an_index(case: str) -> None:
    name, values, expected = INDEX_LIKE[case]
    assert is_index_like(name, list(values), 100) == expected
    assert is_index_like(name, [*values, None], 100) == expected  # missing is not a value
    assert not is_index_like(name, list(values)[:19], 19)


def test_an_index_without_a_name_may_have_gaps() -> None:
    gaps = [3 * i for i in range(100)]
    assert is_index_like("", gaps, 100, unnamed=True)
    assert not is_index_like("", gaps, 100)
    assert not is_index_like("", gaps, 101, unnamed=True)
    assert not is_index_like("", [i / 2 for i in gaps], 100, unnamed=True)


def test_many_ids() -> None:
    table = {**{f"m{j}": [f"{i} of {j}" for i in range(N)] for j in range(7)}, "d": FEW["a"]}
    with pytest.warns(plar.PlarWarning) as caught:
        plar.reduce(table, "d")
    message = told(caught)
    assert message.startswith("'m0', 'm1', 'm2', 'm3', 'm4' and 2 more columns are different in nearly every row")
    assert message.endswith("Leave them out, drop=['m0', 'm1', 'm2', 'm3', 'm4'] and so on.")
    plar.reduce(pl.DataFrame(table).head(19), "d")


@pytest.mark.parametrize("header", ["", "Unnamed: 0", "index"])
@pytest.mark.parametrize("how", [{}, {"bins": "quantile:4"}, {"bins": "quantile:4", "alpha": 0.05}])
def test_an_index_without_a_name(header: str, how: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    gaps = "".join(f"{3 * i + 7},{i % 2},{i % 2}\n" for i in range(20))
    file.write_text(f"{header},a,d\n{gaps}")
    with pytest.warns(plar.PlarWarning, match=r"different in nearly every row.*drop=") as caught:
        plar.reduce(file, "d", **how)
    assert f"'{header or 'x0'}'" in told(caught)
    file.write_text(f"name,a,d\n{gaps}")
    plar.reduce(file, "d", **how)
    plar.reduce(np.array([[3 * i + 7, i % 2, i % 2] for i in range(20)]), 2, **how)


def test_every_search_and_estimator_warns_of_ids_once() -> None:
    table = {"id": IDS["id"], **FEW, "d": (FEW["a"] + FEW["b"]) % 2}
    X = pd.DataFrame(table).drop(columns="d")
    calls: dict[str, Any] = {
        "reduce": lambda: plar.reduce(table, "d", bins={"id": "quantile:4"}),
        "relevant": lambda: plar.relevant(table, "d", bins={"id": "quantile:4"}),
        "reducts": lambda: plar.reducts(table, "d", bins={"id": "quantile:4"}),
        "core": lambda: plar.core(table, "d", bins={"id": "quantile:4"}),
        "smallest": lambda: plar.reduce(table, "d", bins={"id": "quantile:4"}, search="smallest"),
        "ReductSelector": lambda: ReductSelector(bins={"id": "quantile:4"}).fit(X, table["d"]).transform(X),
        "RelevantSelector": lambda: RelevantSelector(bins={"id": "quantile:4"}).fit(X, table["d"]).transform(X),
        "partial_fit": lambda: ReductSelector(bins={"id": [50.0]}).partial_fit(X, table["d"]).reduct_,
    }
    for name, call in calls.items():
        with pytest.warns(plar.PlarWarning) as caught:
            call()
        assert told(caught).startswith("'id' is different in nearly every row"), name


def test_ids_are_counted_by_rows_and_not_by_weights(tmp_path: Path) -> None:
    frame = pl.DataFrame({"id": IDS["id"], **FEW, "w": RNG.integers(0, 9, N), "d": FEW["a"]})
    frame.write_csv(tmp_path / "t.csv")
    for data in (frame, frame.to_pandas(), tmp_path / "t.csv"):
        each: list[dict[str, Any]] = [{}, {"bins": "quantile:4"}]
        for how in each:
            with pytest.warns(plar.PlarWarning, match="^'id' is different in nearly every row"):
                plar.reduce(data, "d", weights="w", **how)
    X = frame.select("id", "a", "b").to_pandas()
    with pytest.warns(plar.PlarWarning, match="^'id' is different in nearly every row"):
        ReductSelector().fit(X, frame["d"].to_numpy(), sample_weight=frame["w"].to_numpy())
    # as many objects as values, but five times as many rows
    repeated = {"code": np.arange(N) % 24, "a": FEW["a"], "w": np.arange(N) < 24, "d": FEW["b"]}
    assert not plar.granulate(repeated, "d", weights="w").index_like


def test_an_index_is_one_though_rows_are_dropped(tmp_path: Path) -> None:
    frame = pl.DataFrame({"case": IDS["case"], **FEW, "d": FEW["a"]}).with_columns(
        pl.when(pl.col("b") > 0).then(pl.col("b")).alias("b")
    )
    frame.write_csv(tmp_path / "t.csv")
    for data in (frame, tmp_path / "t.csv"):
        for bins in (None, "quantile:4"):
            assert plar.granulate(data, "d", missing="drop", bins=bins).index_like == {"case": "one value per row"}


def test_granules_know_what_was_an_index(tmp_path: Path) -> None:
    table = pl.DataFrame({"number": np.arange(N), "key": IDS["customer"], **FEW, "d": FEW["a"]})
    points = {"number": [30.0, 60.0]}
    whole = plar.granulate(table, "d", bins=points)
    whole.save(tmp_path / "g.parquet")
    opened = plar.Granules.open(tmp_path / "g.parquet")
    mixed = table.sample(fraction=1.0, shuffle=True, seed=1)
    parts = [plar.granulate(part, "d", bins=points) for part in (mixed.head(50), mixed.tail(N - 50))]
    for same in (whole, opened, parts[0].merge(parts[1]), whole.with_counts(whole.counts * 3)):
        assert [*same.index_like] == ["number", "key"]
        assert [*same.coarsen(["a", "key"]).index_like] == ["key"]
    assert [*plar.granulate(plar.granulate(table, "d"), bins="width:3").index_like] == ["number", "key"]
    assert not whole.merge(opened).index_like  # every value twice
    plar.granulate(table, "d", weights="number").save(tmp_path / "w.parquet")
    assert plar.Granules.open(tmp_path / "w.parquet").n_rows == N


@pytest.mark.parametrize("how", [{}, {"weights": "w"}, {"alpha": 0.05}, {"search": "smallest"}])
def test_numbers_that_should_be_cut(how: dict[str, Any], tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    target = rng.integers(0, 2, 2 * N)
    tenths = np.round(9 + rng.normal(size=2 * N) + 3 * target, 1)
    frame = pl.DataFrame({"x": tenths, "y": np.round(rng.normal(9, 1, 2 * N), 1), "w": [5] * 2 * N, "d": target})
    frame.write_csv(tmp_path / "t.csv")
    given = {"include": ["x", "y"], "drop": [] if "weights" in how else ["w"], **how}
    data: Any
    for data in (frame, frame.to_pandas(), tmp_path / "t.csv"):
        with pytest.warns(plar.PlarWarning) as caught:
            found = plar.reduce(data, "d", **given)
        assert found.n_combinations is not None
        assert found.n_combinations > 2 * N / 1.5
        message = told(caught)
        assert message.startswith("The numbers of 'x', 'y' are not cut into bins, and there are fewer than 1.5 rows")
        assert message.endswith("Cut them, bins='quantile:4', and leave out what only identifies the rows.")
        plar.reduce(data, "d", bins="quantile:4", **given)
    if "search" not in how:
        with pytest.warns(plar.PlarWarning) as caught:
            plar.relevant(frame, "d", **given)
        assert told(caught) == message


def test_only_numbers_that_bins_would_cut_are_to_be_cut(tmp_path: Path) -> None:
    fractions = [f"{x:.3f}" for x in np.random.default_rng(2).random(60)]
    table = {"v": fractions, "d": ["a", "b"] * 30}
    plar.reduce(table, "d")  # bins cut no text in tables of types
    pl.DataFrame(table).write_csv(tmp_path / "t.csv")
    with pytest.warns(plar.PlarWarning, match="The numbers of 'v' are not cut into bins"):
        plar.reduce(tmp_path / "t.csv", "d")
    pl.DataFrame({**table, "v": [*fractions[:-1], "odd"]}).write_csv(tmp_path / "t.csv")
    with pytest.warns(plar.PlarWarning, match="Compared as text"):  # and no advice to cut what cannot be cut
        plar.reduce(tmp_path / "t.csv", "d", bins="quantile:4")


def test_numbers_are_not_blamed_for_a_table_that_is_thin_without_them() -> None:
    rng = np.random.default_rng(3)
    flags = {f"f{j}": rng.integers(0, 2, 1000) for j in range(20)}
    table = {"kind": 7 + rng.integers(0, 40, 1000), **flags, "d": rng.integers(0, 2, 1000)}
    found = plar.reduce(table, "d", include=["kind"])
    assert (found.n_combinations or 0) > 900


def test_every_search_and_estimator_warns_of_numbers_once() -> None:
    rng = np.random.default_rng(1)
    X = pd.DataFrame({f"m{j}": rng.normal(size=N) for j in range(3)})
    y = rng.integers(0, 2, N)
    calls: dict[str, Any] = {
        "reduce": lambda: plar.reduce(X, y=y),
        "relevant": lambda: plar.relevant(X, y=y, include=["m0"]),
        "reducts": lambda: plar.reducts(X, y=y),
        "core": lambda: plar.core(X[["m0"]], y=y),
        "ReductSelector": lambda: ReductSelector().fit(X, y).transform(X),
        "RelevantSelector": lambda: RelevantSelector(include=["m0"]).fit(X, y).transform(X),
        "partial_fit": lambda: ReductSelector().partial_fit(X, y).reduct_,
        "numpy": lambda: ReductSelector().fit(X.to_numpy(), y).transform(X.to_numpy()),
    }
    for name, call in calls.items():
        with pytest.warns(plar.PlarWarning) as caught:
            call()
        assert told(caught).startswith(("The numbers of 'm0' are not cut", "The numbers of 'x0' are not cut")), name


def test_only_the_first_column_can_lack_a_name() -> None:
    numbers = list(range(0, 900, 9))
    rest = {"b": [i % 3 for i in range(100)], "d": [i % 2 for i in range(100)]}
    assert plar.granulate({"b": rest["b"], "x1": numbers, "d": rest["d"]}, "d").index_like == {}
    assert [*plar.granulate({"x0": numbers, **rest}, "d").index_like] == ["x0"]


def test_an_index_is_one_in_any_order_of_rows() -> None:
    mixtures: list[list[Any]] = [
        [*(f"key {i}" for i in range(60)), *(f"{i}.5" for i in range(40))],
        [*(f"key {i}" for i in range(1500)), *map(str, range(1501))],
        [*(f"key {i}" for i in range(1500)), *(f"{1000 + i}-01-01" for i in range(1400))],
        [*range(60), *(i + 0.5 for i in range(40))],
        [*range(1500), *(f"key {i}" for i in range(1400))],
    ]
    for values in mixtures:
        assert profile_of(values, len(values)) == profile_of(values[::-1], len(values))


def test_a_decision_is_a_quantity_or_classes() -> None:
    a = np.arange(320) % 3
    mpg = np.round(RNG.normal(20, 6, 32), 1)
    classes: list[Any] = [
        np.arange(32) % 20,
        np.arange(320) % 100,
        1.0 + np.arange(320) % 100,
        [str(1 + i % 50) for i in range(320)],
        [f"level {i % 60}" for i in range(320)],
    ]
    quantities: list[Any] = [
        mpg,
        np.arange(320) % 101,  # more than 100
        2 + np.arange(320) % 50,  # from 2 on
        np.arange(50) % 25,  # two rows each
        [0.5 * (i % 21) for i in range(320)],
        [f"{0.5 * (i % 21)}" for i in range(320)],
    ]
    for decision in classes:
        plar.reduce({"a": a[: len(decision)], "d": decision}, "d")
    with pytest.warns(plar.PlarWarning, match="3 rows without 'd'"):  # and no other warning: missing is not a number
        plar.reduce({"a": a, "d": [None if i < 3 else i % 20 + 0.5 for i in range(320)]}, "d")
    for decision in quantities:
        with pytest.warns(plar.PlarWarning, match=r"The decision 'd' holds \d+ different numbers"):
            plar.reduce({"a": a[: len(decision)], "d": decision}, "d")


@pytest.mark.parametrize("name", [*EVERYBODYS, *(pytest.param(name, marks=paper) for name in PAPERS)])
def test_none_fires_on_real_tables(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plar.reduce(granules(name), max_attributes=1)


@pytest.mark.parametrize("kind", ["mapping", "polars", "pandas", "csv", "granules", "y", "sklearn"])
def test_a_decision_of_many_numbers(kind: str, tmp_path: Path) -> None:
    frame = pl.DataFrame({**FEW, "price": PRICE})
    frame.write_csv(tmp_path / "t.csv")
    X = frame.drop("price").to_pandas()
    calls: dict[str, Any] = {
        "mapping": lambda **more: plar.reduce({**FEW, "price": PRICE}, "price", **more),
        "polars": lambda **more: plar.reduce(frame, "price", **more),
        "pandas": lambda **more: plar.reduce(frame.to_pandas(), "price", **more),
        "csv": lambda **more: plar.reduce(tmp_path / "t.csv", "price", **more),
        "granules": lambda **more: plar.reduce(plar.granulate(frame, "price", **more)),
        "y": lambda **more: plar.reduce(X, y=PRICE, **more),
        "sklearn": lambda **more: ReductSelector(**more).fit(X, PRICE).reduct_,
    }
    name = "y" if kind in ("y", "sklearn") else "price"
    with pytest.warns(plar.PlarWarning, match=rf"decision '{name}' holds 1?\d\d different numbers.*decision_bins="):
        calls[kind]()
    found = calls[kind](decision_bins="quantile:3")
    assert found.n_decisions == 3
    expected = find_cuts(Rule("quantile", 3), PRICE, np.ones(N, np.int64))
    assert found.cuts == {name: expected}
    assert found.theta_all == plar.reduce({**FEW, "d": np.searchsorted(expected, PRICE)}, "d").theta_all
    assert calls[kind](decision_bins=[100.0, 150.0]).cuts == {name: (100.0, 150.0)}
    if kind != "granules":
        assert found.settings["decision_bins"] == "quantile:3"
    with pytest.warns(plar.PlarWarning, match="puts all numbers of the decision '.*' into one class"):
        calls[kind](decision_bins=[1000])


def test_words_of_decisions_are_never_quantities() -> None:
    plar.reduce({"a": np.arange(40) // 4, "d": [f"class {i % 35}" for i in range(40)]}, "d")
    with pytest.warns(plar.PlarWarning, match="holds 40 different numbers"):
        plar.reduce({"a": np.arange(40) // 4, "d": [f"{i}.5" for i in range(40)]}, "d")


def test_a_decision_of_many_times_should_be_cut(tmp_path: Path) -> None:
    days = [dt.date(2026, 1, 1) + dt.timedelta(days=i // 3) for i in range(N)]
    frame = pl.DataFrame({"a": FEW["a"], "b": FEW["b"], "d": days})
    frame.write_csv(tmp_path / "t.csv")
    for data in (frame, frame.to_pandas(), tmp_path / "t.csv", plar.granulate(frame, "d")):
        decision = None if isinstance(data, plar.Granules) else "d"
        for function in (plar.reduce, plar.rules, plar.approximations):
            with pytest.warns(plar.PlarWarning) as caught:
                function(data, decision)
            assert told(caught) == (
                "The decision 'd' holds 40 different dates or times, and each counts as a class of its own. "
                "Cut it into a few classes: decision_bins='quantile:4'."
            )
            if decision:
                function(data, decision, decision_bins="quantile:4")
    few = frame.with_columns(d=pl.lit(days[0]) + pl.duration(days=pl.col("a")))
    plar.rules(few, "d")
    names = frame.with_columns(d=pl.lit("day ") + pl.col("d").cast(pl.String))
    plar.rules(names, "d")


def test_numbers_that_are_declared_to_be_classes_are_no_quantity() -> None:
    a = np.arange(320) // 8
    d = pl.Series((np.arange(320) % 50 * 10).astype(str)).cast(pl.Categorical)
    table = pl.DataFrame({"a": a, "d": d})
    for data in (table, plar.granulate(table, "d")):
        plar.reduce(data, "d")
    plar.reduce({"a": a}, y=d)


def test_decision_bins_come_before_mdlp_and_count_with_missing(tmp_path: Path) -> None:
    table = pl.DataFrame({"x": RNG.normal(size=N) + PRICE / 10, **FEW, "price": PRICE}).with_columns(
        pl.when(pl.col("a") > 0).then(pl.col("a")).alias("a")
    )
    table.write_csv(tmp_path / "t.csv")
    each: list[dict[str, Any]] = [{}, {"missing": "drop"}]
    for options in each:
        given: dict[str, Any] = {"bins": {"x": "mdlp"}, "decision_bins": "quantile:2", **options}
        found = plar.reduce(table, "price", **given)
        kept = table.drop_nulls() if options else table
        (middle,) = found.cuts["price"]
        by_hand = table.with_columns(pl.col("price") > middle)
        assert middle == find_cuts(Rule("quantile", 2), kept["price"].to_numpy(), np.ones(len(kept), np.int64))[0]
        expected = plar.reduce(by_hand, "price", bins={"x": "mdlp"}, **options)
        for data in (table, tmp_path / "t.csv", table.to_pandas(), table.lazy()):
            again = plar.reduce(data, "price", **given)
            assert (again.attributes, again.cuts["x"], again.theta) == (
                expected.attributes, expected.cuts["x"], expected.theta,
            )  # fmt: skip


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"decision_bins": "mdlp"}, "decision_bins='mdlp' would cut the decision by itself"),
        ({"decision_bins": "auto"}, "decision_bins='auto' cuts only the columns that predict the decision. Choose q"),
        (
            {"decision_bins": 4},
            "decision_bins=4 does not say how to cut.*pass 'quantile:4'; .* 'width:4'[.] A cut",
        ),
        ({"decision_bins": "kmeans"}, "Unknown bins 'kmeans'. Choose one of: quantile:k, width:k[.]$"),
        ({"decision_bins": [2, 1]}, "pass such a list, or one of: quantile:k, width:k[.]$"),
        ({"decision_bins": "quantile"}, "needs a number of bins from 2"),
        ({"decision_bins": [2, 1]}, "Cut points are finite numbers in ascending order"),
        ({"decision_bins": "width:3"}, "'d' cannot be cut into bins: it holds 'no', which is not a number"),
    ],
)
def test_decisions_that_cannot_be_cut(options: dict[str, Any], said: str) -> None:
    with pytest.raises(plar.PlarError, match=said):
        plar.reduce({"a": [0, 1], "d": ["no", "yes"]}, "d", **options)


def test_nothing_is_chosen_where_the_bins_found_no_cut() -> None:
    table = {"x": RNG.normal(size=N), "d": RNG.integers(0, 2, N)}
    found = plar.reduce(table, "d", bins="mdlp")
    assert found.cuts == {"x": ()}
    assert "The bins found no cut in any column, so none of them says anything about d." in str(found)
    assert "needed" not in str(found)
    mixed = plar.reduce({**table, "same": ["s"] * N}, "d", bins={"x": "mdlp"})
    assert "none says anything about d; the bins found no cut in 1 column." in str(mixed)


def test_spark_cuts_decisions_and_gives_values_or_bins(spark: Any, tmp_path: Path) -> None:
    from plar.engines import SparkEngine
    from plar.spark import ReductSelector as OnSpark

    table = pl.DataFrame({"x": RNG.normal(size=N) + PRICE / 10, "a": FEW["a"], "price": PRICE})
    frame = spark.createDataFrame(table.to_arrow())
    options: dict[str, Any] = {"bins": {"x": "mdlp"}, "decision_bins": "quantile:2", "include": ["x"]}
    here = plar.reduce(table, "price", **options)
    found = plar.reduce(frame, "price", engine=SparkEngine(session=spark), **options)
    assert (found.attributes, found.cuts, found.theta, found.n_granules) == (
        here.attributes, here.cuts, here.theta, here.n_granules,
    )  # fmt: skip
    with pytest.warns(plar.PlarWarning) as caught:
        plar.reduce(frame, "price", engine=SparkEngine(session=spark), max_attributes=1)
    many, numbers = (str(warning.message) for warning in caught)
    assert many.startswith("The decision 'price' holds 1")
    assert numbers.startswith("The numbers of 'x' are not cut into bins")
    granules = plar.granulate(frame, "price")  # the search warns, as here
    with pytest.warns(plar.PlarWarning, match="The decision 'price' holds"):
        plar.core(granules, conditions=["a"])
    table.write_csv(tmp_path / "t.csv")
    text = plar.reduce(tmp_path / "t.csv", "price", engine=SparkEngine(session=spark), **options)
    assert (text.attributes, text.cuts, text.theta) == (here.attributes, here.cuts, here.theta)
    values, bins = here.transform(table), here.transform(table, output="bins")
    assert [tuple(row) for row in found.transform(frame).collect()] == values.rows()
    assert [tuple(row) for row in found.transform(frame, output="bins").collect()] == bins.rows()
    model = OnSpark(labelCol="price", bins={"x": "mdlp"}, decisionBins="quantile:2", include=["x"]).fit(frame)
    assert model.reduct.cuts == here.cuts
    assert [tuple(row) for row in model.transform(frame).collect()] == values.rows()
    as_bins = model.copy()._set(output="bins")
    assert [tuple(row) for row in as_bins.transform(frame).collect()] == bins.rows()
    assert as_bins.transformSchema(frame.schema) == as_bins.transform(frame).schema


@pytest.mark.parametrize("layout", ["auto", "rows", "columns"])
def test_spark_warns_of_the_same(layout: str, spark: Any, tmp_path: Path) -> None:
    from plar.engines import SparkEngine
    from plar.spark import ReductSelector as OnSpark

    rng = np.random.default_rng(4)
    mixed = rng.permutation(N)
    ids = {"_c0": 3 * mixed + 7, "case": mixed + 5000, "word": [f"w{i}" for i in mixed]}
    table = pl.DataFrame({**ids, "Year": mixed + 1900, **FEW, "x": rng.normal(size=N), "d": FEW["a"]})
    table = table.with_columns(w=pl.Series(rng.integers(1, 5, N)))
    frame = spark.createDataFrame(table.to_arrow()).repartition(3)
    for part in range(3):
        (tmp_path / "t.csv").mkdir(exist_ok=True)
        table[part::3].write_csv(tmp_path / "t.csv" / f"{part}.csv")
    engine = SparkEngine(session=spark, layout=layout)
    for data in (frame, str(tmp_path / "t.csv")):
        each: list[dict[str, Any]] = [{"bins": "quantile:4"}, {"bins": "width:4", "alpha": 0.05}, {"weights": "w"}]
        for how in each:
            dropped = [] if "weights" in how else ["w"]
            with pytest.warns(plar.PlarWarning) as caught:
                plar.reduce(data, "d", engine=engine, drop=["x", *dropped], **how)
            expected = "'_c0', 'case', 'word' are different in nearly every row: such a column identifies the rows"
            assert told(caught).startswith(expected)
        with pytest.warns(plar.PlarWarning) as caught:
            plar.reduce(data, "d", engine=engine, conditions=["x", "a", "b"], include=["x"])
        assert told(caught).startswith("The numbers of 'x' are not cut into bins")
    granules = plar.granulate(frame, "d", engine=engine, bins={"case": [5010.0]}, drop=["w", "x"])
    assert [*granules.index_like] == ["_c0", "case", "word"]
    assert granules.n_rows == N
    assert [*granules.coarsen(["a", "word"]).index_like] == ["word"]
    codes = spark.createDataFrame(pl.DataFrame({"a": np.arange(320) % 3, "d": np.arange(320) % 100}).to_arrow())
    plar.reduce(codes, "d", engine=engine)
    with pytest.warns(plar.PlarWarning, match="The decision 'd' holds 50 different numbers"):
        plar.reduce(codes.where("d < 50").limit(60), "d", engine=engine)
    with pytest.warns(plar.PlarWarning) as caught:
        OnSpark(labelCol="d", inputCols=["case", "a"], bins="quantile:4", layout=layout).fit(frame)
    assert "'case' is different in nearly every row" in str(caught[0].message)
    assert len(caught) == 1


def test_numbers_go_on_as_they_are_and_bins_on_request() -> None:
    from sklearn.datasets import load_wine
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    X, y = load_wine(return_X_y=True, as_frame=True)
    for selector in (ReductSelector, RelevantSelector):
        how: dict[str, Any] = {"bins": "quantile:3"}
        chosen = selector(**how).fit(X, y)
        names = chosen.get_feature_names_out()
        assert (chosen.transform(X) == X[names].to_numpy()).all()
        binned = selector(**how, output="bins").fit(X, y).transform(X)
        assert set(np.unique(binned)) == {0, 1, 2}
        with pytest.raises(plar.ParameterError, match="'output' parameter"):
            selector(output="x").fit(X, y)
    # bins of a column with missing values are numbers for numpy, and no pd.NA
    X.iloc[::7, 0] = np.nan
    encoded = make_pipeline(ReductSelector(bins="mdlp", include=[0], output="bins"), OneHotEncoder())
    assert encoded.fit_transform(X, y).shape[0] == len(X)
    selected = ReductSelector(bins="mdlp", include=[0], output="bins").fit(X, y).transform(X)
    assert selected.dtype == np.float64
    assert np.isnan(selected[::7, 0]).all()


def test_in_the_shell(tmp_path: Path) -> None:
    file, out = tmp_path / "t.csv", tmp_path / "o.csv"
    pl.DataFrame({"id": IDS["id"], "x": PRICE, **FEW, "price": PRICE}).write_csv(file)
    run = [sys.executable, "-m", "plar", "reduce", str(file), "-d", "price"]
    done = subprocess.run([*run, "--json"], capture_output=True, text=True)
    first, second = done.stderr.splitlines()
    assert first.startswith("Warning: The decision 'price' holds 1")
    assert first.endswith("--decision-bins quantile:4.")
    assert second.startswith("Warning: 'id' is different in nearly every row")
    assert second.endswith("Leave it out, --drop id.")
    done = subprocess.run([*run, "--drop", "id", "--decision-bins", "width:3"], capture_output=True, text=True)
    assert done.stderr.startswith("Warning: The numbers of 'x' are not cut into bins")
    assert "Cut them, --bins quantile:4, and leave out" in done.stderr
    words = ["--drop", "id", "--decision-bins", "90,120.5", "--bins", "x=quantile:2", "-o", str(out), "--json"]
    done = subprocess.run([*run, *words], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, f"Wrote {out}.\n")
    found = json.loads(done.stdout)
    assert found["cuts"]["price"] == [90.0, 120.5]
    assert found["settings"]["decision_bins"] == [90.0, 120.5]
    assert "x" in found["attributes"]
    assert pl.read_csv(out)["x"].to_list() == PRICE.tolist()
    done = subprocess.run([*run, *words, "--output-bins"], capture_output=True, text=True)
    assert set(pl.read_csv(out)["x"]) == {0, 1}
    assert pl.read_csv(out)["price"].to_list() == PRICE.tolist()


def test_how_to_reproduce() -> None:
    from plar.results.report.reproduce import python_call

    for given in ("width:3", [100.0, 150.0]):
        call = python_call(plar.reduce({**FEW, "price": PRICE}, "price", decision_bins=given))
        assert f"decision_bins={given!r}" in call


@pytest.mark.parametrize("kind", ["dict", "pandas"])
def test_pandas_keeps_its_types(kind: str) -> None:
    table = pd.DataFrame({"x": [1.5, 2.5, np.nan, 9.0], "d": [0, 0, 1, 1]})
    found = plar.reduce(table, "d", bins={"x": [2.0]}, include=["x"])
    if kind == "dict":
        assert found.transform({"x": [1.5, 9.0]}) == {"x": [1.5, 9.0]}
        assert found.transform({"x": [1.5, 9.0]}, output="bins") == {"x": [0, 1]}
    else:
        assert found.transform(table).equals(table)
        assert found.transform(table, output="bins")["x"].tolist()[:2] == [0.0, 1.0]


def test_granules_and_checkpoints_know_how_the_decision_was_cut(tmp_path: Path) -> None:
    table = {**FEW, "price": PRICE}
    granules = plar.granulate(table, "price", decision_bins="quantile:3")
    granules.save(tmp_path / "g.parquet")
    again = plar.Granules.open(tmp_path / "g.parquet")
    assert again.cuts == granules.cuts == again.coarsen(["a"]).cuts == granules.merge(again).cuts
    with pytest.raises(plar.TableError, match="decision_bins= comes too late"):
        plar.reduce(granules, decision_bins="width:2")
    with pytest.raises(plar.TableError, match="cut at different points"):
        granules.merge(plar.granulate(table, "price", decision_bins="quantile:4"))
    plar.reduce(table, "price", decision_bins="quantile:3", checkpoint=tmp_path / "c.json")
    with pytest.raises(plar.TableError, match="the cuts of 'price'"):
        plar.reduce(table, "price", decision_bins="quantile:4", checkpoint=tmp_path / "c.json")
