"""Quartiles for quantities, nothing for categories: `bins="auto"` by hand, by its definition, and in every table."""

from __future__ import annotations

import json
import math
import random
import warnings
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import plar
from plar import bins
from plar.bins import Rule, find_cuts
from plar.engines import SparkEngine
from plar.sklearn import ReductSelector, RelevantSelector
from support.auto_bins import auto_cuts, frequent_values, sizes_of
from support.comparing import facts
from support.environment import TURNS
from support.shell import run

Cuts = tuple[float, ...]


def cuts_of(numbers: Sequence[float], weights: Sequence[int] | None = None) -> Cuts:
    counts = np.ones(len(numbers), np.int64) if weights is None else np.array(weights, np.int64)
    return find_cuts(Rule("auto"), np.array(numbers, float), counts)


# -- by hand -----------------------------------------------------------------------------------------------


def test_twelve_values_are_categories_and_thirteen_are_not() -> None:
    assert cuts_of(range(12)) == ()
    assert cuts_of([*range(12)] * 100) == ()
    # of 13 objects, 4, 7 and 10 are the first that are at least 3.25, 6.5 and 9.75
    assert cuts_of(range(13)) == (3.0, 6.0, 9.0)


def test_what_is_no_finite_number_or_has_no_weight_is_not_counted() -> None:
    assert cuts_of([*range(12), math.nan, math.inf, -math.inf]) == ()
    assert cuts_of([*range(12), -0.0]) == ()
    assert cuts_of(range(13), [1] * 12 + [0]) == ()
    assert cuts_of([*range(13), math.nan, math.inf, math.inf, -math.inf]) == (3.0, 6.0, 9.0)


def test_many_zeros_below_amounts() -> None:
    """60 zeros and the numbers 1 … 40: the quartiles are 0, 0 and 15, and zero is a bin of its own."""
    assert cuts_of([0] * 60 + [*range(1, 41)]) == (0.0, 15.0)


def test_many_zeros_between_losses_and_gains() -> None:
    """-10 … -1, 30 zeros, 1 … 20, of n = 60: the quartiles 0, 0 and 5; -1 is the value below zero."""
    assert cuts_of([*range(-10, 0), *[0] * 30, *range(1, 21)]) == (-1.0, 0.0, 5.0)


def test_many_at_the_top() -> None:
    """1 … 20 and 80 times 99: all quartiles are 99, and the only cut is below it."""
    assert cuts_of([*range(1, 21), *[99] * 80]) == (20.0,)


def test_exactly_a_quarter_is_no_bin_of_its_own() -> None:
    # 4 of 16 objects are 5: the quartiles end after 4, 8 and 12 objects, the first of which is the value 3
    numbers = [0, 1, 2, 3, 4, *[5] * 4, *range(6, 13)]
    assert len(numbers) == 16
    assert cuts_of(numbers) == (3.0, 5.0, 8.0)
    # 5 of 17: the first that are at least 4.25, 8.5 and 12.75 objects end at 4, 5 and 8, and 4 is below 5
    assert cuts_of([*numbers, 5]) == (4.0, 5.0, 8.0)
    # 5 of 17, if the quartile below is not the value below
    assert cuts_of([0, 1, 2, 3, 4, 4.5, *[5] * 5, *range(6, 12)]) == (4.0, 4.5, 5.0, 7.0)


def test_three_frequent_values_are_the_most_bins() -> None:
    """Three values of 26 % each, with others below, between and above: they are bins, and so are the four gaps."""
    numbers = [0, 1, 2, 10, 11, 12, 13, 20, 21, 22, 23, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40]
    weights = [2, 2, 26, 1, 1, 1, 26, 1, 1, 1, 26, *[1] * 11]
    assert sum(weights) == 99
    assert cuts_of(numbers, weights) == (1.0, 2.0, 12.0, 13.0, 22.0, 23.0)


# -- by the definition -------------------------------------------------------------------------------------


def check(numbers: Sequence[float | None], weights: Sequence[int]) -> None:
    """Compare a column with the oracle, and with what the rule promises."""
    cuts = cuts_of([math.nan if number is None else number for number in numbers], weights)
    assert cuts == (auto_cuts(numbers, weights) or ())
    sizes = sizes_of(numbers, weights)
    if len(sizes) <= 12:
        return
    values_of = defaultdict[int, set[float]](set)
    for value in sizes:
        values_of[bisect_left(cuts, value)].add(value)
    frequent = frequent_values(sizes)
    assert all(values_of[bisect_left(cuts, value)] == {value} for value in frequent)
    assert len(values_of) == len(cuts) + 1
    assert 2 <= len(values_of) <= 4 + len(frequent) <= 7
    assert frequent or len(values_of) == 4
    assert set(cuts) <= set(sizes)


@pytest.mark.parametrize("seed", range(4 * TURNS))
def test_random_columns(seed: int) -> None:
    pick = random.Random(seed)
    n_cut = 0
    for _ in range(1000):
        n_values = pick.choice([1, 2, 5, 11, 12, 13, 14, 16, 25, 60])
        width = pick.choice([0.001, 1.0, 1e6, 1e300])
        pool: list[float | None] = [pick.choice([pick.gauss(0, width), pick.randint(-9, 9)]) for _ in range(n_values)]
        pool += pick.choices([0.0, -0.0, None, math.nan, math.inf, -math.inf], k=pick.randrange(4))
        chosen = pool + pick.choices(pool, k=pick.randrange(20))
        heavy = pick.sample(range(len(chosen)), min(len(chosen), pick.randrange(4)))
        weights = [pick.choice([0, 1, 1, 1, 2, 3]) for _ in chosen]
        for place in heavy:
            weights[place] = pick.choice([len(chosen) // 3, len(chosen), 2**36])
        check(chosen, weights)
        n_cut += auto_cuts(chosen, weights) is not None
    assert 200 < n_cut < 800


weighted_numbers = st.tuples(
    st.integers(-20, 20).map(float) | st.floats() | st.none(),
    st.integers(0, 3) | st.sampled_from([10, 11, 12, 13, 40]),
)


@given(st.lists(weighted_numbers, min_size=1, max_size=60))
@settings(max_examples=500 * TURNS)
def test_columns_of_hypothesis(column: list[tuple[float | None, int]]) -> None:
    check([number for number, _ in column], [weight for _, weight in column])


@given(st.lists(weighted_numbers, min_size=13, max_size=60), st.randoms(use_true_random=False))
def test_order_and_repetition_do_not_matter(column: list[tuple[float | None, int]], pick: Any) -> None:
    numbers = [math.nan if number is None else number for number, _ in column]
    weights = [weight for _, weight in column]
    repeated = [number for number, weight in zip(numbers, weights, strict=True) for _ in range(weight)]
    pick.shuffle(repeated)
    assert cuts_of(repeated) == cuts_of(numbers, weights)


# -- in tables ---------------------------------------------------------------------------------------------


@st.composite
def tables(draw: st.DrawFn) -> dict[str, list[Any]]:
    """Columns around the limit of 12 values: two of floats, one of integers, one of text, and weights."""
    pick = random.Random(draw(st.integers(0, 2**32)))
    n = draw(st.integers(20, 60))
    columns: dict[str, list[Any]] = {}
    for name in ("a0", "a1"):
        pool = [pick.randint(-40, 40) / 4 for _ in range(draw(st.sampled_from([8, 16, 30])))]
        rare = draw(st.sampled_from([0.0, 0.5, 0.8]))
        columns[name] = [None if pick.random() < 0.1 else pick.choice(pool) for _ in range(n)]
        columns[name] = [0.25 if pick.random() < rare else number for number in columns[name]]
    n_whole = draw(st.sampled_from([12, 20]))
    columns["n"] = [pick.randrange(n_whole) for _ in range(n)]
    # not all of it are numbers, so that text stays text in a file as well
    columns["t"] = ["x", *(pick.choice("xy1") for _ in range(n - 1))]
    columns["d"] = [int((number or 0) > pick.choice([0, 1])) for number in columns["a0"]]
    columns["w"] = [1, *(pick.randrange(4) for _ in range(n - 1))]
    return columns


def kinds(table: dict[str, list[Any]], folder: Path) -> dict[str, Any]:
    frame = pl.DataFrame(table, schema_overrides={"a0": pl.Float64, "a1": pl.Float64})
    frame.write_csv(folder / "t.csv")
    frame.write_csv(folder / "t.tsv", separator="\t")
    frame.write_parquet(folder / "t.parquet")
    frame.write_ipc(folder / "t.arrow")
    frame.write_ndjson(folder / "t.ndjson")
    return {
        "mapping": table,
        "pandas": pd.DataFrame(table),
        "nullable": pd.DataFrame(table).convert_dtypes(),
        "polars": frame,
        "lazy": frame.lazy(),
        "arrow": frame.to_arrow(),
        "shuffled": frame.sample(fraction=1, shuffle=True, seed=3),
        "granules": plar.granulate(table, "d", weights="w"),
        **{path.name: path for path in sorted(folder.iterdir())},
    }


def answer(data: Any, roles: dict[str, Any], spec: Any, engine: Any = "auto") -> tuple[Any, ...]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", plar.PlarWarning)
        reduct = plar.reduce(data, measure="LCE", bins=spec, engine=engine, **roles)
    return reduct.cuts, reduct.attributes, reduct.theta, reduct.theta_all, reduct.n_granules, reduct.cardinalities


def expected_cuts(table: dict[str, list[Any]], names: Sequence[str]) -> dict[str, Cuts]:
    columns = {name: auto_cuts(table[name], table["w"]) for name in names}
    return {name: points for name, points in columns.items() if points is not None}


@given(tables(), st.sampled_from(["auto", {"a0": "auto", "n": "auto"}, {"a1": [0.0], "n": "auto"}]))
def test_every_table_is_cut_alike(tmp_path_factory: pytest.TempPathFactory, table: Any, spec: Any) -> None:
    roles = {"decision": "d", "weights": "w"}
    answers = {}
    for kind, data in kinds(table, tmp_path_factory.mktemp("auto")).items():
        answers[kind] = answer(data, {} if kind == "granules" else roles, spec)
    assert {kind: of_kind for kind, of_kind in answers.items() if of_kind != answers["mapping"]} == {}

    named = ["a0", "a1", "n"] if spec == "auto" else [name for name, rule in spec.items() if rule == "auto"]
    cuts = expected_cuts(table, named)
    if "a1" in spec:
        cuts["a1"] = (0.0,)
    assert answers["mapping"][0] == cuts

    by_hand = dict(table)
    for name, points in answers["mapping"][0].items():
        by_hand[name] = [None if number is None else bisect_left(points, number) for number in table[name]]
    assert answer(by_hand, roles, None)[1:] == answers["mapping"][1:]


@given(tables())
@settings(max_examples=20 * TURNS)
def test_rows_dropped_for_a_missing_value_are_not_counted(table: Any) -> None:
    # the whole rows are at least one
    for name in ("a0", "a1"):
        table[name][0] = 0.5
    rows = [i for i, numbers in enumerate(zip(table["a0"], table["a1"], strict=True)) if None not in numbers]
    whole = {name: [column[i] for i in rows] for name, column in table.items()}
    roles = {"decision": "d", "weights": "w"}
    assert answer(table, {**roles, "missing": "drop"}, "auto") == answer(whole, roles, "auto")
    assert answer(whole, roles, "auto")[0] == expected_cuts(whole, ["a0", "a1", "n"])


#: a quantity with many zeros, a quantity, a category, and a number that only names a category
MIXED: dict[str, list[Any]] = {
    "paid": [0.0] * 60 + [float(i) for i in range(1, 41)],
    "age": [20 + (7 * i) % 50 for i in range(100)],
    "rooms": [1 + i % 12 for i in range(100)],
    "odd": [None if i % 9 == 0 else i % 2 for i in range(100)],
    "city": ["x" if i % 3 else "y" for i in range(100)],
}
MIXED["d"] = [int(paid > 0) + rooms % 3 for paid, rooms in zip(MIXED["paid"], MIXED["rooms"], strict=True)]
MIXED_CUTS = {"paid": (0.0, 15.0), "age": (32.0, 44.0, 57.0)}


def test_few_values_stay_values() -> None:
    granules = plar.granulate(MIXED, "d", bins="auto")
    assert granules.cuts == MIXED_CUTS
    values = dict(zip(granules.conditions, granules.dictionaries, strict=True))
    assert set(values["rooms"]) == set(range(1, 13))
    assert set(values["odd"]) == {None, 0, 1}
    assert set(values["paid"]) == {0, 1, 2}
    assert granules.n_missing == {"odd": 12}


def test_a_name_in_the_mapping_is_cut_only_if_it_is_a_quantity() -> None:
    named = plar.granulate(MIXED, "d", bins={"rooms": "auto", "paid": "auto", "age": "quantile:2"})
    assert named.cuts == {"paid": (0.0, 15.0), "age": (44.0,)}
    with pytest.raises(plar.TableError, match="Column 'city' cannot be cut into bins: it holds 'x'"):
        plar.granulate(MIXED, "d", bins={"city": "auto"})


def test_several_values_never_become_one() -> None:
    wide = [2**60 + i for i in range(20)]  # one number as doubles, which are what is cut
    table = {"same": [7] * 20, "two": [1, 2] * 10, "wide": wide, "top": [*range(13), *[99] * 7], "d": [0, 1] * 10}
    granules = plar.granulate(table, "d", bins="auto")
    assert dict(zip(granules.conditions, granules.cardinalities, strict=True)) == {
        "same": 1,
        "two": 2,
        "wide": 20,
        "top": 4,
    }
    assert granules.cuts == {"top": (4.0, 9.0, 12.0)}


# -- text --------------------------------------------------------------------------------------------------


def test_text_is_cut_as_numbers_or_stays_text(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    lines = [f"{i / 2},{'?' if i == 3 else i % 5},{i % 2}" for i in range(40)]
    path.write_text("\n".join(["x;c;d", *lines]).replace(",", ";").replace(".", ","))
    granules = plar.granulate(path, "d", bins="auto", decimal=",", na="?")
    assert granules.cuts == {"x": (4.5, 9.5, 14.5)}
    assert set(granules.dictionaries[1]) == {"0", "1", "2", "3", "4", None}


@pytest.mark.parametrize("on_spark", [False, True])
def test_one_number_in_several_spellings(on_spark: bool, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    engine: Any = SparkEngine(session=request.getfixturevalue("spark")) if on_spark else "local"
    path = tmp_path / "t.csv"
    path.write_text("x,c,d\n" + "".join(f"{i}{'.0' * (i % 2)},{['1', '1.0', '2'][i % 3]},{i % 2}\n" for i in range(40)))
    for spec in ("auto", {"c": "auto"}):
        with pytest.warns(plar.PlarWarning, match=r"written in several ways in 'c', such as .* pass numeric='c'"):
            granules: Any = plar.granulate(path, "d", bins=spec, engine=engine, drop=["x"] if spec != "auto" else [])
        assert granules.cardinalities[-1] == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compared: Any = plar.granulate(path, "d", bins="auto", engine=engine, numeric="c")
        assert compared.cardinalities[-1] == 2
        assert plar.granulate(path, "d", bins="mdlp", engine=engine).cardinalities[-1] <= 2


def test_words_are_named_where_quantities_are_not_cut_for_them(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,c,d\n" + "".join(f"{i if i else 'none'},{i % 5 if i else 'none'},{i % 2}\n" for i in range(40)))
    with pytest.warns(
        plar.PlarWarning, match=r"are numbers: 'x' \('none'\)\. If a value means missing, list it in na="
    ):
        assert plar.granulate(path, "d", bins="auto").cuts == {}
    commas = tmp_path / "u.csv"
    commas.write_text("x;d\n" + "".join(f"{i},5;{i % 2}\n" for i in range(40)))
    with pytest.warns(plar.PlarWarning, match=r"'x' \('0,5'\)\. If commas are decimal marks, pass decimal=',"):
        assert plar.granulate(commas, "d", bins="auto").cuts == {}


# -- what is asked for -------------------------------------------------------------------------------------


def test_auto_cuts_no_decision_and_has_a_number_of_bins() -> None:
    assert plar.granulate(MIXED, "d", bins="auto:4").cuts == plar.granulate(MIXED, "d", bins="auto").cuts
    with pytest.raises(plar.ParameterError, match=r"bins='auto:1' needs a number of bins from 2 .* auto:k, quantile"):
        plar.reduce(MIXED, "d", bins="auto:1")
    with pytest.raises(plar.ParameterError, match=r"decision_bins='auto' cuts only .*\. Choose quantile:k, width:k or"):
        plar.reduce(MIXED, "d", decision_bins="auto")


def test_auto_has_not_seen_the_target() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reduct = plar.reduce(MIXED, "d", bins="auto", alpha=0.05)
    assert "The p-values are for the binned columns." in str(reduct)
    shuffled = {**MIXED, "d": random.Random(1).sample(MIXED["d"], 100)}
    assert plar.granulate(shuffled, "d", bins="auto").cuts == MIXED_CUTS


# -- the result --------------------------------------------------------------------------------------------


def test_results_keep_and_apply_the_cuts(tmp_path: Path) -> None:
    reduct = plar.reduce(MIXED, "d", bins="auto", include=["paid", "rooms"])
    reduct.save(tmp_path / "r.json")
    again = plar.load(tmp_path / "r.json")
    assert again == reduct
    assert again.cuts == MIXED_CUTS
    assert again.settings["bins"] == "auto"
    new = {**MIXED, "paid": [-1.0, 0.0, 0.5, 15.0, 15.5] * 20, "rooms": [99] * 100}
    out = again.transform(new, output="bins")
    assert out["paid"][:5] == [0, 0, 1, 1, 2]
    assert out["rooms"] == [99] * 100
    assert again.transform(new)["paid"] == new["paid"]
    assert "≤ 0 | 0 to 15 | > 15" in str(reduct)
    assert "≤ 0" in str(reduct.report())
    assert facts(plar.reduce(MIXED, "d", bins=reduct.cuts, include=["paid", "rooms"])) == facts(reduct)


def test_granules_and_proofs_keep_the_cuts(tmp_path: Path) -> None:
    granules = plar.granulate(MIXED, "d", bins="auto")
    granules.save(tmp_path / "g.parquet")
    saved = plar.Granules.open(tmp_path / "g.parquet")
    assert saved.cuts == MIXED_CUTS
    assert facts(plar.reduce(saved)) == facts(plar.reduce(MIXED, "d", bins="auto"))
    with pytest.raises(plar.TableError, match="'paid' is already cut into bins"):
        plar.reduce(saved, bins={"paid": "auto"})
    assert plar.granulate(saved, bins="auto").cuts == MIXED_CUTS
    other = plar.granulate({**MIXED, "rooms": [*range(100)]}, "d", bins="auto")
    with pytest.raises(plar.TableError, match=r"cut at different points cannot be merged: \['rooms'\]"):
        granules.merge(other)
    proof = plar.reduce(MIXED, "d", bins="auto", search="smallest").proof
    assert proof is not None
    assert plar.verify(proof, MIXED)
    assert plar.verify(proof, MIXED, bins="auto")
    with pytest.raises(plar.PlarError, match="its cut points differ"):
        plar.verify(proof, MIXED, bins="quantile:4")


def printed(*words: str) -> str:
    done = run(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_in_the_shell(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    pl.DataFrame(MIXED).write_csv(path)
    result = json.loads(printed("reduce", str(path), "-d", "d", "--bins", "auto", "--json"))
    assert result["settings"]["bins"] == "auto"
    assert {name: tuple(points) for name, points in result["cuts"].items()} == MIXED_CUTS
    by_column = ("--bins", "paid=auto", "--bins", "rooms=auto", "--bins", "age=30,40")
    result = json.loads(printed("reduce", str(path), "-d", "d", *by_column, "--json"))
    assert result["settings"]["bins"] == {"paid": "auto", "rooms": "auto", "age": [30.0, 40.0]}
    assert result["cuts"] == {"paid": [0.0, 15.0], "age": [30.0, 40.0]}
    assert "Cut numbers into bins: auto, quantile:10," in " ".join(printed("reduce", "--help").split())


# -- engines and estimators --------------------------------------------------------------------------------


def test_every_engine_gives_the_same(engine: Any) -> None:
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    expected = {f"x{j}": auto_cuts(column, [1] * len(y)) for j, column in enumerate(X.T.tolist())}
    reduct = plar.reduce(X, y=y, bins="auto", engine=engine)
    assert reduct.cuts == expected
    assert facts(reduct) == facts(plar.reduce(X, y=y, bins="auto"))


@pytest.mark.parametrize("partitions", [1, 7])
@pytest.mark.parametrize("spec", ["auto", {"paid": "auto", "rooms": "auto", "odd": "auto"}])
@pytest.mark.parametrize("layout", ["driver", "columns", "rows"])
def test_spark_gives_the_same(spark: Any, tmp_path: Path, layout: str, spec: Any, partitions: int) -> None:
    weighted = {**MIXED, "w": [i % 4 for i in range(100)]}
    roles = {"decision": "d", "weights": "w"}
    expected = answer(weighted, roles, spec)
    assert expected[0] == expected_cuts(weighted, ["paid", "age"] if spec == "auto" else ["paid"])
    engine = SparkEngine(session=spark, layout=layout)
    frame = pl.DataFrame(weighted)
    frame.write_csv(tmp_path / "t.csv")
    rows = spark.createDataFrame(frame.to_arrow()).repartition(partitions)
    assert answer(rows, roles, spec, engine) == expected
    if partitions == 1:
        assert answer(tmp_path / "t.csv", roles, spec, engine) == expected


def test_spark_ml(spark: Any) -> None:
    from plar.spark import ReductSelector as OnSpark

    frame = spark.createDataFrame(pl.DataFrame(MIXED).to_arrow())
    model = OnSpark(labelCol="d", bins="auto", include=["paid", "rooms"], output="bins", outputCol="v").fit(frame)
    expected = plar.reduce(MIXED, "d", bins="auto", include=["paid", "rooms"])
    assert facts(model.reduct) == facts(expected)
    rows = model.transform(frame).select("paid", "rooms").collect()
    binned = expected.transform(MIXED, output="bins")
    assert sorted(map(tuple, rows)) == sorted(zip(binned["paid"], binned["rooms"], strict=True))


@pytest.mark.parametrize("selector", [ReductSelector, RelevantSelector])
@pytest.mark.parametrize("kind", ["pandas", "polars", "numpy"])
def test_scikit_learn(selector: Any, kind: str) -> None:
    names = ["paid", "age", "rooms"]
    frame = pd.DataFrame({name: MIXED[name] for name in names})
    X: Any = {"pandas": frame, "polars": pl.DataFrame(frame), "numpy": frame.to_numpy(float)}[kind]
    fitted = clone(selector(bins="auto", include=[0, 1, 2], output="bins")).fit(X, MIXED["d"])
    assert list(fitted.reduct_.cuts.values()) == [*MIXED_CUTS.values()]
    out = np.asarray(fitted.transform(X), float)
    for j, name in enumerate(names):
        expected = bins.apply(MIXED[name], MIXED_CUTS[name]) if name in MIXED_CUTS else MIXED[name]
        assert out[:, j].tolist() == expected
    assert not hasattr(ReductSelector(bins="auto"), "partial_fit")
