"""Numbers into bins: the cuts by hand and by brute force, and one answer for every format and engine."""

from __future__ import annotations

import math
import os
import sys
import threading
import warnings
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import plar
from plar import bins
from plar.bins import Rule, find_cuts
from plar.errors import ParameterError
from plar.options import ReadOptions
from support.environment import nightly
from support.real import paper
from support.tables import as_table

# -- oracles: plain Python, nothing of plar ----------------------------------------------------------------


def ent(labels: Sequence[Any]) -> float:
    return -sum(c / len(labels) * math.log2(c / len(labels)) for c in Counter(labels).values())


class Borderline(Exception):
    """Rounding decides, so that this oracle cannot."""


def mdlp(rows: list[tuple[float, Any]]) -> list[float]:
    """Fayyad and Irani, from their formulas: rows sorted by value, the best boundary, the MDL criterion, both sides."""
    rows = sorted(rows, key=lambda row: row[0])
    values = sorted({x for x, _ in rows})
    classes = {x: {d for y, d in rows if y == x} for x in values}
    labels = [d for _, d in rows]
    n, best = len(rows), None
    for a, b in pairwise(values):
        if len(classes[a] | classes[b]) == 1:
            continue
        left, right = [d for x, d in rows if x <= a], [d for x, d in rows if x > a]
        e = len(left) / n * ent(left) + len(right) / n * ent(right)
        if best is None or e < best[0] - 1e-9:
            best = e, a, b, left, right
    if best is None:
        return []
    e, a, b, left, right = best
    k, k1, k2 = len(set(labels)), len(set(left)), len(set(right))
    delta = math.log2(3**k - 2) - (k * ent(labels) - k1 * ent(left) - k2 * ent(right))
    margin = ent(labels) - e - math.log2(n - 1) / n - delta / n
    if abs(margin) < 1e-9:
        raise Borderline
    if margin < 0:
        return []
    below, above = [row for row in rows if row[0] <= a], [row for row in rows if row[0] > a]
    return [*mdlp(below), (a + b) / 2, *mdlp(above)]


def binned(column: Sequence[float | None], cuts: Sequence[float]) -> list[int | None]:
    return [None if x is None or x != x else bisect_left(cuts, x) for x in column]


# -- where to cut ------------------------------------------------------------------------------------------

numbers = st.sampled_from([-2.5, -1.0, -0.0, 0.0, 0.1, 0.25, 1.0, 1.5, 3.0, 1e9]) | st.integers(-3, 6).map(float)


def cut(rule: Rule, values: Any, labels: Any = None) -> tuple[float, ...]:
    found = np.array(values, float)
    return find_cuts(rule, found, np.ones(len(found), np.int64), None if labels is None else np.array(labels))


@given(st.lists(numbers, min_size=1, max_size=40), st.sampled_from([2, 4, 8, 16]))
def test_quantiles_are_those_of_the_inverted_cdf(values: list[float], k: int) -> None:
    exact = np.quantile(values, [j / k for j in range(1, k)], method="inverted_cdf")
    assert cut(Rule("quantile", k), values) == tuple(sorted({q + 0.0 for q in exact.tolist()} - {max(values)}))


def test_quantiles_of_weights() -> None:
    # cumulated 1, 7, 8, 10 of n = 10: 10/3 and 20/3 are reached at the second value both
    assert find_cuts(Rule("quantile", 3), np.array([1.0, 2.0, 3.0, 4.0]), np.array([1, 6, 1, 2])) == (2.0,)
    assert find_cuts(Rule("quantile", 65536), np.array([1.0, 2.0, 3.0]), np.array([2, 1, 1])) == (1.0, 2.0)


def test_widths() -> None:
    assert cut(Rule("width", 4), [0.0, 1.0, 8.0]) == (2.0, 4.0, 6.0)
    assert cut(Rule("width", 4), [5.0, 5.0]) == ()
    top = np.finfo(float).max
    assert cut(Rule("width", 2), [-top, top]) == (0.0,)
    assert len(cut(Rule("width", 11), [5.38817008745942e307, top])) == 10  # the last step was rounded beyond it
    tiny = np.nextafter(1.0, 2.0)
    assert cut(Rule("width", 8), [1.0, tiny]) == (1.0,)


@pytest.mark.parametrize("method", ["quantile", "width", "mdlp"])
def test_infinity_is_no_cut(method: str) -> None:
    values = [-math.inf, 1.0, 2.0, 3.0, 4.0, math.inf, math.nan]
    labels = [0, 0, 0, 1, 1, 1, 0]
    inner = cut(Rule(method, 2), values[1:5] * 5, labels[1:5] * 5)
    assert cut(Rule(method, 2), values * 5, labels * 5) == inner
    assert len(inner) == 1
    assert bins.place(np.array(values), inner).tolist() == [0, 0, 0, 1, 1, 1, -1]


def test_mdlp_by_hand() -> None:
    """Values 1, 2, 3, 4, ten objects each; 1 and 2 are all of class 0, 3 and 4 of class 1.

    The only boundary is between 2 and 3. N = 40, Ent(S) = 1 bit, both sides are pure, so the gain is 1.
    Δ = log2(3² - 2) - (2·1 - 0 - 0) = 2.807 - 2 = 0.807; the price is (log2 39 + 0.807) / 40 = (5.285 + 0.807) / 40 =
    0.152 < 1: cut at 2.5. The sides hold one class each, and no boundary.
    """
    assert cut(Rule("mdlp"), [1, 2, 3, 4] * 10, [0, 0, 1, 1] * 10) == (2.5,)


def test_mdlp_refuses_by_hand() -> None:
    """Values 1 … 4, one object each, of the classes 0, 1, 0, 1.

    Cutting after 1 (or before 4) leaves entropies 0 and Ent(1/3) = 0.918: the gain is 1 - 3/4·0.918 = 0.311.
    Cutting in the middle gains 0. For 0.311: Δ = 2.807 - (2·1 - 1·0 - 2·0.918) = 2.644; the price is
    (log2 3 + 2.644) / 4 = (1.585 + 2.644) / 4 = 1.057 > 0.311, so there is no cut.
    """
    assert cut(Rule("mdlp"), [1, 2, 3, 4], [0, 1, 0, 1]) == ()


def test_mdlp_takes_the_smallest_of_equal_cuts() -> None:
    # 20 of class 0, 20 of class 1, 20 of class 0: after the first value or before the last, by symmetry the same
    values, labels = [1.0] * 20 + [2.0] * 20 + [3.0] * 20, [0] * 20 + [1] * 20 + [0] * 20
    assert cut(Rule("mdlp"), values, labels) == (1.5, 2.5)
    assert mdlp(list(zip(values, labels, strict=True))) == [1.5, 2.5]


def test_a_cut_between_neighbours_stays_below_the_upper() -> None:
    upper = np.nextafter(1.0, 2.0)
    (found,) = cut(Rule("mdlp"), [1.0] * 20 + [upper] * 20, [0] * 20 + [1] * 20)
    assert found == 1.0
    assert bins.place(np.array([1.0, upper]), (found,)).tolist() == [0, 1]


def test_mdlp_of_iris() -> None:
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    found = [cut(Rule("mdlp"), column, y) for column in X.T]
    assert found == [tuple(mdlp(list(zip(column.tolist(), y.tolist(), strict=True)))) for column in X.T]
    assert [[round(c, 2) for c in cuts] for cuts in found] == [[5.55, 6.15], [2.95, 3.35], [2.45, 4.75], [0.8, 1.75]]


@given(st.data())
@settings(max_examples=200)
def test_mdlp_is_the_brute_force(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 60))
    values = data.draw(st.lists(st.integers(0, data.draw(st.integers(1, 12))), min_size=n, max_size=n))
    noise = data.draw(st.lists(st.integers(0, 9), min_size=n, max_size=n))
    labels = [x // 3 if r else r for x, r in zip(values, noise, strict=True)]
    rows = list(zip(map(float, values), labels, strict=True))
    try:
        expected = mdlp(rows)
    except Borderline:
        assume(False)
    assert cut(Rule("mdlp"), values, labels) == tuple(expected)


def test_mdlp_of_many_values_and_classes() -> None:
    rng = np.random.default_rng(0)
    values, labels = rng.permutation(50_000).astype(float), np.zeros(50_000, int)
    labels = (values // 2500).astype(int)
    assert cut(Rule("mdlp"), values, labels) == tuple(2500.0 * j - 0.5 for j in range(1, 20))


# -- what is asked for -------------------------------------------------------------------------------------

TABLE = {"a": [0.5, 1.5, 2.5, 3.5], "t": ["x", "x", "y", "y"], "d": [0, 0, 1, 1]}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("kmeans", "Unknown bins 'kmeans'. Choose one of: auto, auto:k, quantile:k, width:k, mdlp."),
        ("quantile", "needs a number of bins from 2 to 65536, such as 'quantile:10'"),
        ("width:1", "needs a number of bins from 2 to 65536, such as 'width:10'"),
        ("width:2.5", "needs a number of bins"),
        ("mdlp:3", "Unknown bins 'mdlp:3'"),
        (2.5, "The 'bins' parameter must be one of auto, auto:k, quantile:k, width:k, mdlp, or a mapping"),
        (4, "bins=4 does not say how to cut. For 4 bins of about equally many rows, pass 'quantile:4'; for"),
        ("4", "bins='4' does not say how to cut. For 4 bins of about equally many rows, pass 'quantile:4'; for"),
        (1, "bins=1 does not say how to cut. For 10 bins"),
        ({"a": "20"}, "bins='20' does not say how to cut. For 20 bins of about equally many rows, pass 'quantile:20'"),
        ({"a": "x"}, "Unknown bins 'x'"),
        ({"b": "mdlp"}, "Unknown column of bins 'b'"),
        ({9: "mdlp"}, "Unknown column of bins 9"),
        ({"d": "mdlp"}, "'d' is the decision, which bins= does not cut. Use decision_bins=."),
        ({"a": "mdlp", 0: "mdlp"}, "'a' is given twice"),
        ({"a": [2, 1]}, "Cut points are finite numbers in ascending order"),
        ({"a": [1, math.inf]}, "Cut points are finite numbers in ascending order"),
        ({"a": ["1"]}, "Cut points are finite numbers in ascending order"),
        ({"a": 3}, "bins=3 does not say how to cut. For 3 bins"),
        ({"a": 3.5}, "Cut points are finite numbers in ascending order"),
        ({"t": "mdlp"}, "Column 't' cannot be cut into bins: it holds 'x', which is not a number"),
    ],
)
@pytest.mark.parametrize("kind", [dict, pl.DataFrame])
def test_bad_specs(kind: Any, spec: Any, message: str) -> None:
    with pytest.raises(plar.PlarError) as error:
        plar.reduce(kind(TABLE), "d", bins=spec)
    assert isinstance(error.value, ValueError)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_column_outside_the_conditions_cannot_be_cut() -> None:
    with pytest.raises(plar.UnknownNameError, match="Unknown column of bins 'a'"):
        plar.reduce(TABLE, "d", conditions=["t"], bins={"a": "mdlp"})


def test_bad_decimal() -> None:
    with pytest.raises(ParameterError, match=r"'decimal' parameter must be '\.' or ','. Got ';'"):
        as_table(TABLE, "d", bins="mdlp", decimal=";")


def test_mappings_name_columns_in_all_ways() -> None:
    specs: list[Any] = [{"a": [1, 3]}, {0: [1, 3]}, {-3: np.array([1.0, 3.0]), "t": None}]
    for spec in specs:
        found = plar.reduce(TABLE, "d", bins=spec)
        assert found.cuts == {"a": (1.0, 3.0)}
        assert found.cardinalities == {"a": 3, "t": 2}
    frame = pd.DataFrame({2021: [0.5, 1.5], 0: [1, 2], "d": [0, 1]})
    assert plar.reduce(frame, "d", bins={2021: [1.0]}).cuts == {"2021": (1.0,)}


def test_settings_and_json(tmp_path: Path) -> None:
    found = plar.reduce(TABLE, "d", bins={"a": [1, 3]})
    assert found.settings["bins"] == {"a": [1.0, 3.0]}
    found.save(tmp_path / "r.json")
    assert plar.load(tmp_path / "r.json") == found
    assert plar.load(tmp_path / "r.json").cuts == {"a": (1.0, 3.0)}
    assert plar.reduce(TABLE, "d").cuts == {}
    assert plar.reduce(as_table(TABLE, "d", bins="mdlp")).settings["bins"] == "mdlp"


def test_cuts_can_be_given_again() -> None:
    table = {**TABLE, "u": [1.0, 2.0, 1.0, 2.0]}
    for kind in (dict, pl.DataFrame):
        first = plar.reduce(kind(table), "d", bins="mdlp")
        assert first.cuts == {"a": (2.0,), "u": ()}
        again = plar.reduce(kind(table), "d", bins=first.cuts)
        assert (again.cuts, again.cardinalities) == (first.cuts, {"a": 2, "t": 2, "u": 1})


def test_a_table_keeps_its_bins() -> None:
    table = as_table(TABLE, "d", bins={"a": "mdlp"})
    assert plar.reduce(table, bins={0: "mdlp"}) is not None
    with pytest.raises(plar.TableError, match="made with another bins"):
        plar.reduce(table, bins="mdlp")


# -- one answer --------------------------------------------------------------------------------------------


@st.composite
def numeric_tables(draw: st.DrawFn) -> dict[str, list[Any]]:
    n = draw(st.integers(1, 40))
    # text and bits tell 0 from -0 where it is not cut
    column = st.lists(st.none() | numbers.map(lambda x: x + 0.0), min_size=n, max_size=n)
    floats = {f"a{j}": draw(column) for j in range(draw(st.integers(1, 3)))}
    whole = draw(st.lists(st.integers(0, 9), min_size=n, max_size=n))
    text = draw(st.lists(st.sampled_from(["x", "y", "1"]), min_size=n, max_size=n))
    # not all of it are numbers, so that text stays text in a file as well
    decision = [(0 if v is None else int(v > 0)) for v in floats["a0"]]
    return {**floats, "n": whole, "t": ["x", *text[1:]], "d": decision}


specs = st.sampled_from(["auto", "mdlp", "quantile:3", "quantile:10", "width:4", {"a0": "mdlp", "n": [2, 5]}])


def kinds(table: dict[str, list[Any]], folder: Path) -> dict[str, Any]:
    frame = pl.DataFrame(table, schema_overrides={name: pl.Float64 for name in table if name[0] == "a"})
    frame.write_csv(folder / "t.csv")
    frame.write_parquet(folder / "t.parquet")
    return {
        "mapping": table,
        "pandas": pd.DataFrame(table),
        "nullable": pd.DataFrame(table).convert_dtypes(),
        "object": pd.DataFrame(table, dtype=object),
        "polars": frame,
        "lazy": frame.lazy(),
        "arrow": frame.to_arrow(),
        "numpy": np.array([*zip(*table.values(), strict=True)], object),
        "csv": folder / "t.csv",
        "parquet": folder / "t.parquet",
    }


def answer(data: Any, **options: Any) -> tuple[Any, ...]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", plar.PlarWarning)
        found = plar.reduce(data, measure="LCE", **options)
    cuts = list(found.cuts.values())
    chosen = [found.conditions.index(a) for a in found.attributes]
    return cuts, chosen, found.theta, found.theta_all, found.n_granules, list(found.cardinalities.values())


@given(numeric_tables(), specs, st.sampled_from(["value", "drop"]))
def test_all_formats_agree(tmp_path_factory: pytest.TempPathFactory, table: Any, spec: Any, missing: str) -> None:
    full = [i for i, row in enumerate(zip(*table.values(), strict=True)) if None not in row]
    assume(missing == "value" or full)
    found = {}
    for name, data in kinds(table, tmp_path_factory.mktemp("bins")).items():
        asked = {{"a0": 0, "n": -3}[c]: r for c, r in spec.items()} if isinstance(spec, dict) else spec
        found[name] = answer(data, decision=-1, bins=asked, missing=missing)
    plain = {name: column for name, column in table.items() if name != "d"}
    found["labels"] = answer(plain, y=table["d"], bins=spec, missing=missing)
    found["polars labels"] = answer(pl.DataFrame(plain, strict=False), y=table["d"], bins=spec, missing=missing)
    granules = plar.granulate(table, "d")
    if missing == "value":  # else text of numbers alone may be left, and granules do not know text from numbers in text
        found["granules"] = answer(granules, bins=spec)
    assert {name: a for name, a in found.items() if a != found["mapping"]} == {}

    rows = range(len(table["d"])) if missing == "value" else full
    kept = {name: [column[i] for i in rows] for name, column in table.items()}
    assert answer(kept, decision="d", bins=spec) == found["mapping"]
    cuts = plar.granulate(kept, "d", bins=spec).cuts
    by_hand = {name: binned(column, cuts[name]) if name in cuts else column for name, column in kept.items()}
    assert answer(by_hand, decision="d")[1:] == found["mapping"][1:]
    for name, points in cuts.items():
        if "mdlp" in (spec if isinstance(spec, str) else spec.get(name, "")):
            known = [(x, d) for x, d in zip(kept[name], kept["d"], strict=True) if x is not None]
            with suppress(Borderline):
                assert list(points) == mdlp(known)


@given(numeric_tables(), specs, st.randoms(use_true_random=False))
def test_weights_are_multiplicities_and_order_does_not_matter(table: Any, spec: Any, pick: Any) -> None:
    n = len(table["d"])
    weights = [1, *(pick.randrange(4) for _ in range(n - 1))]
    repeated = [i for i in range(n) for _ in range(weights[i])]
    pick.shuffle(repeated)
    long = {name: [column[i] for i in repeated] for name, column in table.items()}
    weighted = {**table, "w": weights}
    expected = answer(long, decision="d", bins=spec)
    assert answer(weighted, decision="d", weights="w", bins=spec) == expected
    frame = pl.DataFrame(weighted, strict=False)
    assert answer(frame, decision="d", weights="w", bins=spec) == expected
    assert answer(plar.granulate(frame, "d", weights="w"), bins=spec) == expected


def test_several_decisions_are_one() -> None:
    rng = np.random.default_rng(1)
    x = rng.random(300)
    table = {"x": x, "d": (x > 0.3).astype(int), "e": (x > 0.6).astype(int)}
    found = plar.reduce(table, ["d", "e"], bins="mdlp")
    assert found.cuts == plar.reduce(pl.DataFrame(table), ["d", "e"], bins="mdlp").cuts
    joint = {"x": x, "d": table["d"] * 2 + table["e"]}
    assert found.cuts == plar.reduce(joint, "d", bins="mdlp").cuts
    assert len(found.cuts["x"]) == 2


def test_numbers_of_all_types() -> None:
    from decimal import Decimal

    whole = [1, 2, 2**60, 2**60 + 1]
    frame = pl.DataFrame(
        {
            "dec": pl.Series([Decimal("0.1"), Decimal("0.3"), None, Decimal("12345678901234567.89")]),
            "i": pl.Series(whole, dtype=pl.Int64),
            "u": pl.Series(whole, dtype=pl.Int128),
            "f": pl.Series([0.1, 0.2, math.nan, None], dtype=pl.Float32),
            "b": [True, False, True, False],
            "d": [0, 0, 1, 1],
        }
    )
    found = plar.granulate(frame, "d", bins="quantile:9")
    assert set(found.cuts) == {"dec", "i", "u", "f"}
    assert found.cuts == plar.granulate(frame.to_dict(as_series=False), "d", bins="quantile:9").cuts
    assert found.cuts["dec"] == (0.1, 0.3)
    assert found.cuts["i"] == found.cuts["u"] == (1.0, 2.0)
    assert plar.granulate({"x": [1, 10**400, -(10**400)], "d": [0, 1, 1]}, "d", bins={"x": [5]}).cardinalities == (2,)


# -- text --------------------------------------------------------------------------------------------------


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def test_text_that_is_written_as_numbers(tmp_path: Path) -> None:
    file = write(tmp_path / "t.csv", "a,b,d", " 1.0 ,+.5,x", "1e0,5.,x", "2,1E1,y", ",?,y")
    found = plar.granulate(plar.read_table(file, "d", na="?", bins={"a": [1], "b": [0.5, 7]}))
    found_values = {name: set(values) for name, values in zip(found.conditions, found.dictionaries, strict=True)}
    assert found_values == {"a": {0, 1, None}, "b": {0, 1, 2, None}}
    assert found.n_missing == {"a": 1, "b": 1}


@pytest.mark.parametrize("odd", ["inf", "1_0", "0x1", "1d", "1e999", "--1", "1,5"])
def test_text_that_is_no_number(tmp_path: Path, odd: str) -> None:
    file = write(tmp_path / "t.csv", "a;d", "1;x", f"{odd};x", "2;y")
    with pytest.raises(plar.TableError, match="Column 'a' cannot be cut into bins: it holds"):
        plar.granulate(plar.read_table(file, "d", bins={"a": "mdlp"}))
    with pytest.warns(plar.PlarWarning, match="Compared as text, because not all values are numbers: 'a'"):
        assert plar.granulate(plar.read_table(file, "d", bins="mdlp")).cuts == {}
    assert plar.granulate(plar.read_table(file, "d", bins="mdlp", na=odd)).cuts == {"a": (1.5,)}


def test_decimal_commas(tmp_path: Path) -> None:
    lines = ["a;d", "0,5;x", "1,5;x", "2,5;y", "3,5;y"]
    file = write(tmp_path / "t.csv", *lines)
    found = plar.reduce(plar.read_table(file, "d", bins="quantile:2", decimal=","))
    assert found.cuts == {"a": (1.5,)}
    assert found.settings["decimal"] == ","
    assert found.transform(file, output="bins")["a"].to_list() == [0, 0, 1, 1]
    with pytest.warns(plar.PlarWarning, match=r"'a' \('0,5'\)\. If commas are decimal marks, pass decimal=','"):
        plar.reduce(file, "d", bins="mdlp")
    with pytest.raises(plar.TableError, match=r"'0,5', which is not a number. Pass decimal=','"):
        plar.reduce(file, "d", bins={"a": "mdlp"})
    mixed = write(tmp_path / "u.csv", *lines, "1.000,5;y")
    with pytest.raises(plar.TableError, match=r"'1\.000,5'"):
        plar.reduce(plar.read_table(mixed, "d", bins={"a": "mdlp"}, decimal=","))


def test_words_among_words_need_no_warning(tmp_path: Path) -> None:
    file = write(tmp_path / "t.csv", "a,d", "x,0", "y,0", "1,1")
    assert plar.reduce(file, "d", bins="mdlp").cuts == {}


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("labels", [False, True])
def test_spellings_of_missing_mean_values_not_bins(tmp_path: Path, wide: bool, labels: bool) -> None:
    """na='0' is a number in the file; bin 0 is not missing."""
    width = 250 if wide else 2
    names = [*(f"a{j}" for j in range(width)), "c", "d"]
    rows = [[str(v)] * width + ["u", str(v > 2)] for v in (0, 1, 2, 3, 4)]
    file = write(tmp_path / "t.csv", ",".join(names), *map(",".join, rows[:2]), "", *map(",".join, rows[2:]))
    roles: dict[str, Any] = {"decision": "d"}
    if labels:
        roles = {"y": [row[-1] for row in rows], "conditions": names[:-1]}
    found = plar.granulate(as_table(file, **roles, bins="quantile:2", na="0"))
    assert found.n_missing["a0"] == 1
    assert set(found.cuts.values()) == {(2.0,)}
    assert sorted(found.dictionaries[0], key=str) == [0, 1, None]
    assert found.n_objects == 5


def test_quotes_and_comments_of_arff(tmp_path: Path) -> None:
    head = ["@relation r", "@attribute a numeric", "@attribute b {1,2}", "@attribute d {x,y}", "@data"]
    plain = ["1.5,1,x"] * 5 + ["2.5,2,y"] * 5
    fast = plar.granulate(write(tmp_path / "a.arff", *head, *plain * 300), "d", bins="mdlp")
    careful = plar.granulate(write(tmp_path / "b.arff", *head, *plain * 300, "'1.5',1,x % c"), "d", bins="mdlp")
    assert fast.cuts == careful.cuts == {"a": (2.0,), "b": (1.5,)}
    assert careful.n_objects == 3001


# -- missing -----------------------------------------------------------------------------------------------


def test_missing_is_an_error_where_it_is_asked(tmp_path: Path) -> None:
    table = {"a": [1.0, None, 2.0], "d": [0, 0, 1]}
    for data in (table, pl.DataFrame(table)):
        with pytest.raises(plar.TableError, match=r"Missing values in 'a' \(1\)"):
            plar.reduce(data, "d", bins="mdlp", missing="error")


def test_a_column_without_numbers(tmp_path: Path) -> None:
    table = {"a": [None, None], "b": [1.5, 2.5], "d": [0, 1]}
    for data in (table, pl.DataFrame(table), pl.DataFrame(table, schema_overrides={"a": pl.Float64})):
        found = plar.granulate(data, "d", bins="mdlp")
        assert found.cuts["b"] == (2.0,)
        assert found.cuts.get("a", ()) == ()
        assert found.n_missing == {"a": 2}


# -- granules ----------------------------------------------------------------------------------------------


def test_granules_keep_their_cuts(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = {"a": rng.random(200), "b": rng.random(200)}
    table["d"] = (table["a"] > 0.5).astype(int)
    granules = plar.granulate(table, "d", bins="quantile:3")
    granules.save(tmp_path / "g.parquet")
    again = plar.Granules.open(tmp_path / "g.parquet")
    assert again.cuts == granules.cuts
    assert set(again.cuts) == {"a", "b"}
    assert answer(again) == answer(granules) == answer(table, decision="d", bins="quantile:3")
    assert granules.coarsen(["b"]).cuts == {"b": granules.cuts["b"]}
    assert granules.merge(again).cuts == granules.cuts
    other = plar.granulate(table, "d", bins="quantile:4")
    with pytest.raises(plar.TableError, match=r"cut at different points cannot be merged: \['a', 'b'\]"):
        granules.merge(other)
    with pytest.raises(plar.TableError, match="'a' is already cut into bins"):
        plar.reduce(granules, bins={"a": "mdlp"})
    assert plar.granulate(granules, bins="mdlp").cuts == granules.cuts


# -- out ---------------------------------------------------------------------------------------------------


def test_transform_gives_bins_in_the_same_kind(tmp_path: Path) -> None:
    table = {"a": [0.5, None, 2.5, 9.0], "n": [1, 2, 3, 4], "t": ["x", "y", "x", "x"], "d": [0, 0, 1, 1]}
    found = plar.reduce(table, "d", bins={"a": [1.0, 3.0], "n": [2.5]}, include=["a", "n", "t"])
    expected: dict[str, Any] = {"a": [0, None, 1, 2], "n": [0, 0, 1, 1], "t": table["t"], "d": table["d"]}
    assert found.transform(table, output="bins") == expected
    assert found.transform(table) == {name: table[name] for name in expected}
    frame = pl.DataFrame(table)
    assert found.transform(frame, output="bins").to_dict(as_series=False) == expected
    assert found.transform(frame.lazy(), output="bins").collect().to_dict(as_series=False) == expected
    assert found.transform(frame.to_arrow(), output="bins").to_pydict() == expected
    assert isinstance(found.transform(frame.to_arrow(), output="bins"), pa.Table)
    assert found.transform(frame).equals(frame)
    assert found.transform(frame.lazy()).collect().equals(frame)
    assert found.transform(frame.to_arrow()).to_pydict() == table
    with pytest.raises(plar.ParameterError, match="'output' parameter must be 'values' or 'bins'"):
        found.transform(frame, output="numbers")
    pandas = pd.DataFrame(table, index=[4, 3, 2, 1])
    kept = found.transform(pandas, output="bins")
    assert found.transform(pandas).equals(pandas)
    assert kept.index.tolist() == [4, 3, 2, 1]
    assert (kept["a"].dtype, kept["n"].dtype) == (np.float64, np.int64)  # not pd.NA, which numpy does not know
    assert kept["a"].isna().tolist() == [False, True, False, False]
    assert kept["a"].dropna().tolist() == [0, 1, 2]
    assert kept["n"].tolist() == [0, 0, 1, 1]
    assert pandas["a"].iloc[0] == 0.5
    frame.write_csv(tmp_path / "t.csv")
    text = {name: [None if v is None else v if name in "an" else str(v) for v in c] for name, c in expected.items()}
    assert found.transform(tmp_path / "t.csv", output="bins").to_dict(as_series=False) == text
    for data in (table, pandas, frame, frame.to_arrow(), tmp_path / "t.csv"):
        as_table(data, "d").sink(found.attributes, tmp_path / "out.parquet", found.cuts)
        out = pl.read_parquet(tmp_path / "out.parquet")
        assert out.select("a", "n").to_dict(as_series=False) == {"a": expected["a"], "n": expected["n"]}


def test_transform_of_matrices() -> None:
    matrix = np.array([[0.5, 1.0, 0.0], [np.nan, 2.0, 0.0], [2.5, 3.0, 1.0]])
    found = plar.reduce(matrix, -1, bins={0: [1.0], 1: [2.0]}, include=["x0", "x1"])
    assert np.array_equal(
        found.transform(matrix, output="bins"), np.array([[0, 0, 0], [np.nan, 0, 0], [1, 1, 1]]), equal_nan=True
    )
    small = np.array([[5, 1], [9, 0]], np.uint8)
    assert plar.reduce(small, -1, bins={0: [7]}).transform(small, output="bins").tolist() == [[0, 1], [1, 0]]


def test_transform_names_what_is_no_number(tmp_path: Path) -> None:
    found = plar.reduce(TABLE, "d", bins={"a": [2.0]}, include=["a"])
    bad = {"a": ["low", "high"], "d": [0, 1]}
    file = tmp_path / "t.csv"
    pl.DataFrame(bad).write_csv(file)
    for data in (bad, pl.DataFrame(bad), pd.DataFrame(bad), file):
        with pytest.raises(plar.TableError, match=r"cannot be cut into bins: it holds '(low|high)'"):
            found.transform(data, output="bins")


def test_apply_to_one_column() -> None:
    cuts = (1.0, 2.0)
    assert bins.apply(pl.Series("x", [1, None, 5]), cuts).to_list() == [0, None, 2]
    assert bins.apply(pd.Series([1, 5], name="x"), cuts).tolist() == [0, 2]
    assert bins.apply(np.array([1, None, 5], object), cuts).tolist() == [0, None, 2]
    assert bins.apply(np.zeros(2, np.int8), range(200)).dtype == np.int16
    with pytest.raises(plar.TableError, match="Column 'x' cannot be cut into bins: it holds True"):
        bins.apply([True], cuts, "x")


# -- engines and real data ---------------------------------------------------------------------------------


def test_every_engine_gives_the_same(engine: Any) -> None:
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    for spec in ("mdlp", "quantile:4"):
        assert answer(X, y=y, bins=spec, engine=engine) == answer(X, y=y, bins=spec)


@pytest.mark.parametrize(
    ("kind", "spec", "missing"), [("csv", "mdlp", "drop"), ("frame", {"a.b": "width:3", "n": [2.5]}, "value")]
)
def test_spark_gives_the_same(spark: Any, tmp_path: Path, kind: str, spec: Any, missing: str) -> None:
    from plar.engines import SparkEngine

    rng = np.random.default_rng(5)
    n = 200
    a = [None if r < 0.1 else round(x, 2) for r, x in zip(rng.random(n), rng.normal(size=n), strict=True)]
    table = {
        "a.b": a,
        "n": rng.integers(0, 6, n).tolist(),
        "t": rng.choice(["x", "y"], n).tolist(),
        "d": [int((x or 0) > 0.3) for x in a],
        "w": rng.integers(0, 3, n).tolist(),
    }
    engine = SparkEngine(session=spark)
    roles = {"decision": "d", "weights": "w", "missing": missing, "bins": spec}
    frame = pl.DataFrame(table, strict=False)
    frame.write_csv(tmp_path / "t.csv")
    data = tmp_path / "t.csv" if kind == "csv" else spark.createDataFrame(frame.to_arrow())
    assert answer(data, engine=engine, **roles) == answer(table, **roles)


def test_spark_text_and_transform(spark: Any, tmp_path: Path) -> None:
    from plar.engines import SparkEngine

    engine = SparkEngine(session=spark, layout="columns")
    file = write(tmp_path / "t.csv", "a;b;d", " 0,5 ;u;x", "1,5;v;x", "?;w;y", "3,5;1,5;y")
    rows = engine.read(file, ReadOptions())
    table = as_table(rows, "d", bins={"a": [1.0, 2.0]}, decimal=",", na="?")
    found = plar.reduce(table, engine=engine, include=["a"])
    local = plar.reduce(plar.read_table(file, "d", bins={"a": [1.0, 2.0]}, decimal=",", na="?"), include=["a"])
    assert found.cuts == local.cuts == {"a": (1.0, 2.0)}
    assert found.cardinalities == local.cardinalities
    assert found.transform(table, output="bins")["a"].to_list() == [0, 1, None, 2]
    with pytest.raises(plar.TableError, match=r"Column 'b' cannot be cut into bins: it holds"):
        plar.granulate(as_table(rows, "d", bins={"b": "mdlp"}, decimal=","), engine=engine)
    with pytest.warns(plar.PlarWarning, match="Compared as text"):
        granules: Any = plar.granulate(as_table(rows, "d", bins="mdlp", decimal=","), engine=engine)
    assert granules.cuts == {}
    with pytest.raises(plar.TableError, match="Pass bins= when granulating it"):
        plar.reduce(granules, bins="mdlp", engine=engine)
    granules.unpersist()


@nightly
def test_spark_takes_many_cuts_and_warns(spark: Any) -> None:
    from plar.engines import SparkEngine

    engine = SparkEngine(session=spark)
    rng = np.random.default_rng(2)
    table = {"x": rng.random(300), "d": rng.integers(0, 2, 300)}
    frame = spark.createDataFrame(pa.table(table))
    assert answer(frame, decision="d", engine=engine, bins="quantile:250") == answer(
        table, decision="d", bins="quantile:250"
    )
    with pytest.warns(plar.PlarWarning, match="The numbers of 'x' are not cut into bins"):
        plar.reduce(frame, "d", engine=engine)


@pytest.mark.parametrize("spec", ["auto", "mdlp", "quantile:10", "width:10"])
@pytest.mark.parametrize("name", ["wine", pytest.param("shuttle", marks=paper)])
def test_real_numbers(name: str, spec: str, tmp_path: Path) -> None:
    if name == "wine":
        wine = pytest.importorskip("sklearn.datasets", reason="needs scikit-learn, for its tables").load_wine()
        matrix = np.column_stack([wine.data, wine.target])
    else:
        folder = Path(os.environ["PLAR_DATA"])
        matrix = np.vstack([np.loadtxt(folder / f"shuttle.{part}", dtype=int) for part in ("trn", "tst")])
    expected = answer(matrix, decision=-1, bins=spec)
    frame = pl.DataFrame(matrix.astype(float), schema=[f"c{j}" for j in range(matrix.shape[1])])
    frame.write_csv(tmp_path / "t.csv")
    frame.write_parquet(tmp_path / "t.parquet")
    for data in (tmp_path / "t.csv", tmp_path / "t.parquet", frame, plar.granulate(matrix, -1)):
        assert answer(data, decision=-1, bins=spec) == expected
    if spec == "mdlp":
        few = matrix[:400]
        columns = range(matrix.shape[1] - 1)
        rows = {j: [(float(row[j]), int(row[-1])) for row in few] for j in columns}
        assert answer(few, decision=-1, bins=spec)[0] == [tuple(mdlp(rows[j])) for j in columns]


# -- work: on wide tables, what Python does for each column takes most of the time ------------------------------


def python_calls(work: Callable[[], Any]) -> int:
    """Calls of Python functions, in all threads that are started meanwhile."""
    calls = 0

    def count(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    threading.setprofile(count)
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return calls


@pytest.mark.parametrize(("kind", "most"), [("csv", 900), ("parquet", 450), ("pandas", 330)])
def test_the_work_for_one_more_column(kind: str, most: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    calls = []
    for k in (100, 200):
        columns = {f"c{j}": rng.normal(size=200) for j in range(k)}
        frame = pl.DataFrame(columns | {"d": rng.integers(0, 2, 200)})
        data: Any = frame.to_pandas() if kind == "pandas" else tmp_path / f"{k}.{kind}"
        if kind != "pandas":
            frame.write_csv(data) if kind == "csv" else frame.write_parquet(data)
        reduce = partial(plar.reduce, data, "d", bins="mdlp")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", plar.PlarWarning)
            reduce()  # loads and compiles
            calls.append(python_calls(reduce))
    assert (calls[1] - calls[0]) / 100 < most


def test_given_cut_points_cut_numbers_that_a_frame_holds_as_text() -> None:
    written = {"a": ["0.5", "1.5", "2.5", None], "d": [0, 1, 1, 0]}
    numbers = {**written, "a": [0.5, 1.5, 2.5, None]}
    bins = {"a": [1.0, 2.0]}
    assert (
        plar.granulate(written, "d", bins=bins).fingerprint() == plar.granulate(numbers, "d", bins=bins).fingerprint()
    )
    with pytest.raises(plar.TableError, match=r"cannot be cut into bins: it holds '0\.5', which is not a number"):
        plar.granulate(written, "d", bins={"a": "quantile:2"})
