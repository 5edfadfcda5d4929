"""`Approximations.mark` against the definitions: which rows are certain, and which decisions are possible."""

from __future__ import annotations

import datetime as dt
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import plar
from support.approximations import answer, random_question

SEEDS = st.lists(st.integers(0, 2**40), min_size=25, max_size=25)
TABLE = {
    "a": [0, 0, 1, 1, 2],
    "t": ["u", "u", "v", None, "u"],
    "d": ["p", "q", "q", "q", "p"],
}
MARKS = [("undecided", "p | q"), ("undecided", "p | q"), ("certain", "q"), ("certain", "q"), ("certain", "p")]

pytestmark = pytest.mark.filterwarnings("ignore::plar.PlarWarning")


def marks(marked: pl.DataFrame) -> list[tuple[Any, Any]]:
    return marked.select("approximation", "possible_decisions").rows()


def expected_marks(possible: list[list[str] | None]) -> list[tuple[Any, Any]]:
    return [
        (None, None) if one is None else ("certain" if len(one) == 1 else "undecided", " | ".join(one))
        for one in possible
    ]


@given(SEEDS)
def test_random_tables(seeds: list[int]) -> None:
    for seed in seeds:
        question = random_question(seed)
        frame = pl.DataFrame(question.columns, strict=False)
        result = plar.approximations(question.columns, **question.options)
        marked = result.mark(question.columns)
        assert marks(marked) == expected_marks(answer(question).possible)
        # the rows are in their order, and their values as they were
        assert marked.drop("approximation", "possible_decisions").equals(frame)
        counted = [row for row, judged in enumerate(marked["approximation"]) if judged == "undecided"]
        weights = question.columns[question.weights] if question.weights else [1] * len(frame)
        assert sum(weights[row] for row in counted) == result.n_undecided


@given(SEEDS)
def test_other_rows_are_judged_by_themselves(seeds: list[int]) -> None:
    for seed in seeds[:10]:
        question = random_question(seed)
        result = plar.approximations(question.columns, **question.options)
        if not result.n_objects:
            continue  # where nothing was cut, nothing is known of cut points
        rows = list(range(0, len(question.columns["d"]), 2))
        some = question.take(rows)
        assert marks(result.mark(some.columns)) == expected_marks(answer(some).possible)


def test_cut_points_are_those_of_the_result() -> None:
    table = {"x": [float(i) for i in range(40)], "d": ["p"] * 20 + ["q"] * 20}
    result = plar.approximations(table, "d", bins="quantile:2")
    assert result.cuts == {"x": (19.0,)}
    # by quantiles of their own each of these rows would have a bin of its own
    assert marks(result.mark({"x": [30, 31], "d": ["p", "q"]})) == [("undecided", "p | q")] * 2
    # numbers in text are cut as well
    assert marks(result.mark({"x": ["3", " 30"], "d": ["p", "q"]})) == [("certain", "p"), ("certain", "q")]
    with pytest.raises(plar.TableError, match="'x' cannot be cut into bins: it holds 'much'"):
        result.mark({"x": ["much", "3"], "d": ["p", "q"]})


def test_a_decision_that_was_cut() -> None:
    result = plar.approximations({"a": [0, 0, 1], "d": [1.0, 2.0, None]}, "d", decision_bins=[1.5])
    marked = result.mark({"a": [0, 0, 1, 2], "d": [0.0, 9.0, None, 9.0]})
    assert marked["possible_decisions"].to_list() == ["≤ 1.5 | > 1.5", "≤ 1.5 | > 1.5", "missing", "> 1.5"]


def test_times_in_a_decision_keep_their_intervals(tmp_path: Path) -> None:
    days = [dt.date(2024, 1, day) for day in range(1, 9)]
    table = {"a": [0] * 4 + [1] * 4, "d": days}
    result = plar.approximations(table, "d", decision_bins="quantile:2")
    result.save(tmp_path / "a.json")
    texts = {"≤ 2024-01-04", "> 2024-01-04"}
    assert {one.label for one in result.by_decision} == texts
    assert set(plar.load(tmp_path / "a.json").mark(table)["possible_decisions"]) == texts


@pytest.mark.parametrize("kind", ["mapping", "polars", "lazy", "pandas", "arrow", "csv", "parquet", "ndjson", "table"])
def test_every_kind_of_table(kind: str, tmp_path: Path) -> None:
    frame = pl.DataFrame(TABLE)
    frame.write_csv(tmp_path / "t.csv")
    frame.write_parquet(tmp_path / "t.parquet")
    frame.write_ndjson(tmp_path / "t.ndjson")
    data = {
        "mapping": TABLE,
        "polars": frame,
        "lazy": frame.lazy(),
        "pandas": frame.to_pandas(),
        "arrow": frame.to_arrow(),
        "table": plar.read_table(tmp_path / "t.parquet", "d"),
    }.get(kind, tmp_path / f"t.{kind}")
    marked = plar.approximations(TABLE, "d", attributes=["a"]).mark(data)
    assert isinstance(marked, pl.DataFrame)
    assert marks(marked) == MARKS
    before = pl.read_csv(tmp_path / "t.csv", infer_schema=False) if kind == "csv" else frame
    assert marked.drop("approximation", "possible_decisions").equals(before)


def test_a_matrix() -> None:
    matrix = np.array([[0, 0, 1], [0, 0, 2], [1, 0, 1]])
    marked = plar.approximations(matrix, -1).mark(matrix)
    assert marks(marked) == [("undecided", "1 | 2")] * 2 + [("certain", "1")]


def test_text_files_keep_what_is_written(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('a;b;d\n1;" x";p\n01;x ;q\n;NA;q\n')
    result = plar.approximations(path, "d", numeric=["a"])
    marked = result.mark(path)
    assert marked.rows() == [
        ("1", " x", "p", "undecided", "p | q"),
        ("01", "x ", "q", "undecided", "p | q"),
        (None, "NA", "q", "certain", "q"),
    ]


def test_names_of_the_new_columns_are_free() -> None:
    table = {"approximation": [0, 0], "possible_decisions": ["u", "u"], "possible_decisions_": [1, 1], "d": [1, 2]}
    marked = plar.approximations(table, "d").mark(table)
    assert marked.columns == [*table, "approximation_", "possible_decisions__"]
    assert marked["possible_decisions__"].to_list() == ["1 | 2", "1 | 2"]


def test_labels_beside_the_table() -> None:
    columns = {"a": [0, 0, 1]}
    result = plar.approximations(columns, y=["p", "q", "q"])
    marked = result.mark(columns, y=["p", "q", "q"])
    assert marked.columns == ["a", "approximation", "possible_decisions"]
    assert marks(marked) == [("undecided", "p | q"), ("undecided", "p | q"), ("certain", "q")]
    with pytest.raises(plar.TableError, match=r"lacks columns of the approximations: y\..* Pass the labels as y="):
        result.mark(columns)
    with pytest.raises(plar.TableError, match="y has 2 labels for 3 rows"):
        result.mark(columns, y=["p", "q"])


def test_other_values_of_the_decision() -> None:
    table = {"a": [0, 0, 0, 0, 0, 0], "d": [2, 10, 1.5, None, math.nan, -3]}
    marked = plar.approximations(table, "d").mark(table)
    assert set(marked["possible_decisions"]) == {"-3 | 1.5 | 2 | 10 | missing"}


def test_what_cannot_be_marked(tmp_path: Path) -> None:
    result = plar.approximations(TABLE, "d")
    granules = plar.granulate(TABLE, "d")
    granules.save(tmp_path / "g.parquet")
    for data in (granules, tmp_path / "g.parquet"):
        with pytest.raises(plar.TableError, match=r"distinct rows with their counts\. Pass the table itself"):
            result.mark(data)
    with pytest.raises(plar.TableError, match=r"lacks columns of the approximations: a\. It has: t, d"):
        result.mark({"t": ["u"], "d": ["p"]})
    weighted = plar.approximations({**TABLE, "w": [1] * 5}, "d", weights="w")
    with pytest.raises(plar.UnknownNameError, match="weights column 'w'"):
        weighted.mark(TABLE)
    strict = plar.approximations({"a": [0, 1], "d": [0, 1]}, "d", missing="error")
    with pytest.raises(plar.TableError, match="Missing values in 'a'"):
        strict.mark({"a": [0, None], "d": [0, 1]})


def test_categories_and_numbers_of_pandas() -> None:
    frame = pd.DataFrame({"a": pd.Categorical(["x", "x", "y"]), "n": [1, 1, 2], "d": [True, False, True]})
    marked = plar.approximations(frame, "d").mark(frame)
    assert marked["possible_decisions"].to_list() == ["False | True", "False | True", "True"]
    assert marked["n"].to_list() == [1, 1, 2]
