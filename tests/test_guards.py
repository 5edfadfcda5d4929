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
from real import EVERYBODYS, PAPERS, granules, paper

import plar
from plar.bins import Rule, find_cuts
from plar.sklearn import ReductSelector, RelevantSelector

RNG = np.random.default_rng(0)
N = 120
FEW = {"a": RNG.integers(0, 3, N), "b": RNG.integers(0, 3, N)}
PRICE = np.round(RNG.normal(100, 20, N) + 40 * FEW["a"], 1)
IDS: dict[str, Any] = {
    "id": np.arange(N),
    "customer": [f"C-{i:04}" for i in range(N)],
    "uuid": [str(uuid.UUID(int=int(RNG.integers(1, 1 << 62)))) for _ in range(N)],
    "time": [dt.datetime(2026, 1, 1) + dt.timedelta(minutes=7 * i) for i in range(N)],
    "day": [dt.date(2026, 1, 1) + dt.timedelta(days=i) for i in range(N)],
    "Unnamed: 0": np.arange(N),
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
    assert message.startswith(f"Nearly every row has a value of its own in '{name}': such a column identifies the rows")
    assert f"drop={name!r}" in message
    assert message.endswith("or take only columns that beat chance, alpha=0.05.")
    assert "bins" not in message
    assert plar.reduce(data, "d", alpha=0.05).attributes == ("a", "b")
    assert plar.reduce(data, "d", drop=name).attributes == ("a", "b")


def test_many_ids_and_measurements() -> None:
    table = {**{f"m{j}": RNG.normal(size=N) for j in range(7)}, "d": FEW["a"]}
    with pytest.warns(plar.PlarWarning) as caught:
        plar.reduce(table, "d")
    message = told(caught)
    assert "in 'm0', 'm1', 'm2', 'm3', 'm4' and 2 more columns: such" in message
    assert "Cut numbers into bins, bins='mdlp'; leave them out" in message
    # an id stays one where others are cut
    with pytest.warns(plar.PlarWarning, match=r"in 'id'.*drop='id'"):
        plar.reduce({**table, "id": IDS["customer"]}, "d", bins="mdlp")
    plar.reduce(table, "d", bins="mdlp")
    plar.reduce(pl.DataFrame({**table, "d": FEW["a"]}).head(49), "d")


@pytest.mark.parametrize("header", ["", "Unnamed: 0", "index"])
def test_an_index_without_a_name(header: str, tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text(f"{header},a,d\n" + "".join(f"{i},{i % 2},{i % 2}\n" for i in range(10)))
    with pytest.warns(plar.PlarWarning, match="Nearly every row has a value of its own in '") as caught:
        plar.reduce(file, "d")
    assert f"'{header or 'x0'}'" in told(caught)
    file.write_text("name,a,d\n" + "".join(f"{i},{i % 2},{i % 2}\n" for i in range(10)))
    plar.reduce(file, "d")
    plar.reduce(np.array([[i, i % 2, i % 2] for i in range(10)]), 2)


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
    assert found.n_classes == 3
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
        ({"decision_bins": 4}, "decision_bins=4 does not say how to cut.*pass 'quantile:4'; .* 'width:4'[.]$"),
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
    many, ids = (str(warning.message) for warning in caught)
    assert many.startswith("The decision 'price' holds 1")
    assert "value of its own in 'x': such" in ids
    assert "bins='mdlp'" in ids
    with pytest.warns(plar.PlarWarning, match="The decision 'price' holds"):
        plar.granulate(frame, "price")
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
    assert second.startswith("Warning: Nearly every row has a value of its own in 'id'")
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
    from plar.report.reproduce import python_call

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
