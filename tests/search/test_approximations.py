"""`plar.approximations` against the definitions, and what must not change it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import plar
from plar.search import approximation as search_module
from plar.uncertainty import approximation
from support.approximations import Answer, Question, answer, random_question, shown
from support.environment import TIC_TAC_TOE

#: random tables of each example
TABLES_AT_ONCE = 25
SEEDS = st.lists(st.integers(0, 2**40), min_size=TABLES_AT_ONCE, max_size=TABLES_AT_ONCE)
WEATHER = {
    "outlook": ["sun", "sun", "rain", "rain", "rain", "fog"],
    "wind": ["no", "no", "no", "no", "yes", "yes"],
    "play": ["yes", "yes", "yes", "no", "no", "no"],
}

pytestmark = pytest.mark.filterwarnings("ignore::plar.PlarWarning")


def asked(question: Question, data: Any = None, **options: Any) -> plar.Approximations:
    return plar.approximations(question.columns if data is None else data, **{**question.options, **options})


def check(question: Question, result: plar.Approximations, expected: Answer) -> None:
    """Compare everything that the definitions say."""
    numbers = [(one.n_rows, one.lower, one.upper) for one in result.by_decision]
    assert numbers == list(expected.decisions.values())
    decisions = [shown(question, question.decision, values) for values in expected.decisions]
    assert [one.values for one in result.by_decision] == decisions
    assert all(one.boundary == one.upper - one.lower for one in result.by_decision)
    assert all(one.accuracy == one.lower / one.upper for one in result.by_decision)
    assert result.quality == float(expected.quality)
    assert (result.n_objects, result.n_classes) == (expected.n_objects, expected.n_classes)
    assert result.n_undecided == sum(n_rows for _, n_rows, _ in expected.contradictions)
    assert result.n_contradictions == len(expected.contradictions)
    number_of = {values: number for number, values in enumerate(expected.decisions)}
    assert [(one.values, one.n_rows, dict(one.counts)) for one in result.largest(None)] == [
        (shown(question, question.known, values), n_rows, {number_of[d]: n for d, n in counts.items()})
        for values, n_rows, counts in expected.contradictions
    ]


def facts(result: plar.Approximations) -> dict[str, Any]:
    """All that does not say where it was computed, or when."""
    return {name: value for name, value in result.to_dict().items() if name not in ("seconds", "engine", "source")}


@given(SEEDS)
def test_random_tables(seeds: list[int]) -> None:
    for seed in seeds:
        question = random_question(seed)
        result = asked(question)
        check(question, result, answer(question))
        if result.n_objects:
            reading = {name: value for name, value in question.options.items() if name != "attributes"}
            theta = plar.theta(question.columns, question.known, measure="PR", **reading)
            assert result.quality == -theta


@given(SEEDS)
def test_neither_rows_nor_threads_nor_granules_matter(seeds: list[int]) -> None:
    for seed in seeds[:10]:
        question = random_question(seed)
        n_rows = len(question.columns["d"])
        rows = random.Random(seed).sample(range(n_rows), n_rows)
        expected = facts(asked(question))
        assert facts(asked(question.take(rows), n_jobs=2)) == expected
        if expected["n_objects"]:
            reading = {name: value for name, value in question.options.items() if name != "attributes"}
            granules = plar.granulate(question.columns, **reading)
            result = plar.approximations(granules, attributes=question.attributes)
            assert result.by_decision == asked(question).by_decision
            assert result.largest_contradictions == asked(question).largest_contradictions


@given(SEEDS)
def test_names_of_values_do_not_matter(seeds: list[int]) -> None:
    for seed in seeds[:10]:
        question = random_question(seed)
        if question.cuts or question.missing != "value" or question.missing_decision != "value":
            continue
        renamed = dict(question.columns)
        for name in question.conditions:
            values = sorted({repr(value) for value in renamed[name]} - {"None", "nan", "'NA'"})
            names = dict(zip(values, random.Random(seed).sample(range(100), len(values)), strict=True))
            renamed[name] = [names.get(repr(value)) for value in renamed[name]]
        before = asked(question)
        after = asked(question, renamed)
        assert after.by_decision == before.by_decision
        assert sorted(one.n_rows for one in after.largest(None)) == sorted(one.n_rows for one in before.largest(None))


def test_the_worked_example_of_the_paper() -> None:
    """U/{a1, a2} is {x1 x2 x3}, {x4 x5 x6}, {x7}, {x8}; only the first class has both decisions."""
    table = {
        "a1": [0, 0, 0, 0, 0, 0, 1, 1],
        "a2": [0, 0, 0, 1, 1, 1, 0, 1],
        "D": ["Y", "Y", "N", "Y", "Y", "Y", "N", "Y"],
    }
    result = plar.approximations(table, "D")
    yes = result.decisions["Y"]
    no = result.decisions["N"]
    assert (yes.n_rows, yes.lower, yes.upper, yes.boundary, yes.accuracy) == (6, 4, 7, 3, 4 / 7)
    assert (no.n_rows, no.lower, no.upper, no.boundary, no.accuracy) == (2, 1, 4, 3, 1 / 4)
    assert (result.quality, result.n_undecided, result.n_classes) == (5 / 8, 3, 4)
    assert result.contradictions().rows(named=True) == [{"a1": 0, "a2": 0, "rows": 3, "D = N": 1, "D = Y": 2}]
    by_a1 = plar.approximations(table, "D", attributes=["a1"])
    assert [(one.lower, one.upper) for one in by_a1.by_decision] == [(0, 8), (0, 8)]
    by_a2 = plar.approximations(table, "D", attributes="a2")
    assert [(one.lower, one.upper) for one in by_a2.by_decision] == [(0, 4), (4, 8)]
    none = plar.approximations(table, "D", attributes=[])
    assert (none.n_classes, none.quality, none.largest()[0].values) == (1, 0.0, ())


@pytest.mark.parametrize(
    "data",
    [
        {"a": [], "d": []},
        pl.DataFrame({"a": [], "d": []}),
        pd.DataFrame({"a": [], "d": []}),
        np.empty((0, 2)),
        {"a": [1], "d": [0], "w": [0]},
        {"a": [None], "d": [0]},
    ],
    ids=["mapping", "polars", "pandas", "numpy", "weights", "dropped"],
)
def test_a_table_without_rows(data: Any, tmp_path: Path) -> None:
    options: dict[str, Any] = {"weights": "w"} if "w" in data else {"missing": "drop"}
    result = plar.approximations(data, 1, **options)
    assert (result.by_decision, result.n_objects, result.quality, result.n_contradictions) == ((), 0, 1.0, 0)
    assert len(result.notes) == 1
    assert result.notes[0] in str(result)
    assert result.contradictions().rows() == []
    assert result.to_frame().rows() == []
    marked = result.mark(data)
    assert marked["approximation"].to_list() == marked["possible_decisions"].to_list() == [None] * len(marked)
    result.save(tmp_path / "a.json")
    assert plar.load(tmp_path / "a.json") == result


def test_one_class_is_certain_whatever_the_columns_say() -> None:
    result = plar.approximations({"a": [1, 2, 2], "d": ["x", "x", "x"]}, "d", attributes=[])
    assert result.decisions["x"].lower == result.decisions["x"].upper == 3
    assert (result.quality, result.n_contradictions) == (1.0, 0)


def test_weights_are_counted_exactly() -> None:
    large = 2**39 - 1
    result = plar.approximations(
        {"a": [0, 0, 1, 1], "d": ["x", "y", "x", "x"], "w": [large, 1, large, 0]}, "d", weights="w"
    )
    assert (result.decisions["x"].lower, result.decisions["x"].upper) == (large, 2 * large + 1)
    assert result.contradictions()["rows"].to_list() == [large + 1]


def test_several_decision_columns_are_one() -> None:
    result = plar.approximations({"a": [0, 0, 1], "d": ["x", "x", "y"], "e": [True, False, None]}, ["d", "e"])
    assert list(result.decisions) == [("x", False), ("x", True), ("y", None)]
    assert [one.label for one in result.by_decision] == ["x, False", "x, True", "y, missing"]
    assert result.decisions["y", None].lower == 1
    assert result.contradictions().columns == ["a", "rows", "d, e = x, False", "d, e = x, True"]


def test_every_kind_of_table(tmp_path: Path) -> None:
    frame = pl.DataFrame(WEATHER)
    frame.write_csv(tmp_path / "t.csv")
    frame.write_parquet(tmp_path / "t.parquet")
    expected = facts(plar.approximations(frame, "play"))
    table = plar.read_table(tmp_path / "t.csv", "play")
    kinds = (WEATHER, frame.lazy(), frame.to_pandas(), frame.to_arrow(), tmp_path / "t.parquet", tmp_path / "t.csv")
    for data in (*kinds, plar.granulate(frame, "play")):
        decision = None if isinstance(data, plar.Granules) else "play"
        assert facts(plar.approximations(data, decision)) == expected
    assert facts(plar.approximations(table)) == expected
    assert plar.approximations(frame.drop("play"), y=WEATHER["play"]).quality == expected["quality"]


def test_columns_of_other_results() -> None:
    for result in (
        plar.reduce(TIC_TAC_TOE, "x_wins"),
        plar.relevant(TIC_TAC_TOE, "x_wins"),
        plar.select(TIC_TAC_TOE, "x_wins"),
    ):
        names = result.columns if isinstance(result, plar.Selection) else result.attributes
        approximations = plar.approximations(TIC_TAC_TOE, "x_wins", attributes=result)
        assert set(names) <= set(approximations.attributes)
    assert plar.approximations(TIC_TAC_TOE, "x_wins", attributes=plar.reduce(TIC_TAC_TOE, "x_wins")).quality == 1.0


def test_results_that_chose_no_columns_are_refused() -> None:
    rules = plar.rules(TIC_TAC_TOE, "x_wins", attributes=[0, 1])
    all_reducts = plar.reducts(TIC_TAC_TOE, "x_wins", limit=2)
    for result in (rules, all_reducts, plar.approximations(TIC_TAC_TOE, "x_wins")):
        for function in (plar.rules, plar.approximations):
            given: Any = result
            with pytest.raises(plar.ParameterError) as caught:
                function(TIC_TAC_TOE, "x_wins", attributes=given)
            assert str(caught.value) == (
                "The 'attributes' parameter must be None, a list of columns, a Reduct, a Relevant or a Selection. "
                f"Got {type(result).__name__} instead."
            )
    assert plar.approximations(TIC_TAC_TOE, "x_wins", attributes=all_reducts[0].attributes).quality == 1.0


def test_rows_that_are_left_out_are_told_of() -> None:
    table = {"a": [0, None, 1, 1], "b": [0, 1, None, 1], "d": ["p", "q", None, "p"]}
    result = plar.approximations(table, "d", missing="drop", missing_decision="drop")
    assert result.n_objects == 2
    assert result.notes == (
        "1 row without a target was left out.",
        "1 row with a missing value was left out (option missing).",
    )
    for text in (str(result), result._repr_html_()):
        assert all(note in text for note in result.notes)
    assert plar.approximations({"a": [0, 1], "d": [0, 1]}, "d", missing="drop").notes == ()


def test_blank_values_are_seen() -> None:
    text = str(plar.approximations({"a": [" "] * 3, " ": [""] * 3, "d": ["p", "  ", ""]}, "d", na=()))
    assert "0.000  '  '" in text
    assert "'' 1 · '  ' 1 · p 1" in text
    assert "a = ' ', ' ' = ''" in text


def test_unknown_columns_are_refused() -> None:
    unknown = ((["winds"], "Did you mean 'wind'"), (["play"], "is the decision"), ([7], "Unknown column 7"))
    for attributes, message in unknown:
        with pytest.raises(plar.UnknownNameError, match=message):
            plar.approximations(WEATHER, "play", attributes=attributes)
    with pytest.raises(plar.TableError, match="given twice"):
        plar.approximations(WEATHER, "play", attributes=["wind", "wind"])


@pytest.mark.filterwarnings("error::plar.PlarWarning")
def test_only_columns_that_are_known_are_warned_of() -> None:
    table = {"id": [*range(100)], "a": [0, 1] * 50, "d": [0, 1, 1, 0] * 25}
    with pytest.warns(plar.PlarWarning, match="'id' is different in nearly every row"):
        plar.approximations(table, "d")
    plar.approximations(table, "d", attributes=["a"])


def test_progress_tells_of_the_phases() -> None:
    phases: list[str] = []
    result = plar.approximations(WEATHER, "play", progress=lambda phase, done, total: phases.append(phase))
    assert phases == ["read", "granulate", "approximate"]
    assert list(result.seconds) == phases


# -- contradictions -----------------------------------------------------------------------------------------


@given(st.integers(0, 2**40))
def test_ties_are_decided_column_by_column_as_by_sorting(seed: int) -> None:
    pick = np.random.default_rng(seed)
    columns = {f"a{j}": pick.integers(0, 4, 300) for j in range(4)}
    granules = plar.granulate({**columns, "d": pick.integers(0, 3, 300)}, "d")
    for coarse in (granules, granules.coarsen(["a2", "a0"])):
        everything = approximation.approximate(coarse, 10**6).contradictions
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(approximation, "_SORTED_AT_ONCE", 0)
            for limit in (0, 1, 2, 7, 50, len(everything), 10**6):
                assert approximation.approximate(coarse, limit).contradictions == everything[:limit]


def _with_contradictions(n: int) -> dict[str, list[Any]]:
    return {"a": [i // 2 for i in range(2 * n)], "d": ["x", "y"] * n}


def test_only_the_largest_are_kept(tmp_path: Path) -> None:
    table = _with_contradictions(1500)
    table["a"] += [1499]
    table["d"] += ["x"]
    result = plar.approximations(table, "d")
    assert (result.n_contradictions, len(result.largest_contradictions)) == (1500, 1000)
    assert result.contradictions(3)["a"].to_list() == [1499, 0, 1]
    assert result.contradictions(None)["a"].to_list() == [1499, *range(999)]
    assert len(result.contradictions(1000)) == 1000
    with pytest.raises(plar.ParameterError, match="1,500 contradictions only the 1,000 largest are kept") as caught:
        result.contradictions(1001)
    assert "\n" not in str(caught.value)
    result.save(tmp_path / "a.json")
    assert (tmp_path / "a.json").stat().st_size < 400_000


def test_few_contradictions_of_many_decisions_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {"a": [i // 30 for i in range(1200)], "d": [f"d{i % 30}" for i in range(1200)]}
    assert len(plar.approximations(table, "d").largest(None)) == 40
    for n_counts, n_kept in ((0, 20), (30 * 25, 25)):
        monkeypatch.setattr(search_module, "MAX_COUNTS", n_counts)
        result = plar.approximations(table, "d")
        assert (result.n_contradictions, len(result.largest(None))) == (40, n_kept)
        assert len(result.contradictions()) == 20
        assert "and 30 more" in str(result)


@pytest.mark.parametrize("limit", [-1, True, 1.5, "3"])
def test_limits_that_are_none(limit: Any) -> None:
    result = plar.approximations(WEATHER, "play")
    with pytest.raises(plar.ParameterError, match="The 'limit' parameter must be None or a whole number from 0 on"):
        result.contradictions(limit)


def test_the_frame_of_contradictions() -> None:
    table = {
        "rows": [1, 1, 2, 2, 3, 3, 3],
        "t": ["u", "u", None, None, "v", "v", "v"],
        "x": [0.5, 0.5, 9.0, 9.0, 9.0, 9.0, 9.0],
        "d": ["p", "q", "p", "q", "q", "q", "p"],
    }
    result = plar.approximations(table, "d", bins={"x": [1.0]})
    frame = result.contradictions()
    assert frame.columns == ["rows", "t", "x", "rows_", "d = p", "d = q"]
    assert frame.rows() == [(3, "v", "> 1", 3, 1, 2), (1, "u", "≤ 1", 2, 1, 1), (2, None, "> 1", 2, 1, 1)]
    assert result.contradictions(0).rows() == []
    assert result.contradictions(100).equals(frame)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([0, 0, 1], "1 row (33.3 %) is certain; each of the other 2 equals a row of another decision"),
        ([0, 0, 1, 1], "2 rows (50.0 %) are certain; each of the other 2 equals a row of another decision"),
        ([0, 0], "no row is certain: each equals a row of another decision in these columns"),
        ([0], "every row is certain: rows that are equal in these columns have the same decision"),
    ],
)
def test_what_is_certain_in_words(values: list[int], words: str) -> None:
    result = plar.approximations({"a": values, "d": [0] + [1] * (len(values) - 1)}, "d")
    assert f"\n  {words}\n" in str(result)
    assert f"{words[0].upper()}{words[1:]}." in result._repr_html_()


def test_text_and_notebook() -> None:
    result = plar.approximations(TIC_TAC_TOE, "x_wins", attributes=[0, 1])
    text = str(result)
    assert "approximations of 'x_wins' (2 classes, 958 rows); 2 columns known" in text
    assert "  no row is certain: each equals a row of another decision in these columns\n" in text
    assert "contradictions: 9 of 9 combinations of values, 958 rows; most rows first" in text
    assert max(map(len, text.splitlines())) <= 90
    html = result._repr_html_()
    assert html.count("<tr>") == 3
    odd = plar.approximations({"<b>": [0, 0], "d\n": ["<i>", "\x1b[31m"]}, "d\n")
    assert "<i>" not in odd._repr_html_()
    assert "\x1b" not in str(odd)
    assert repr(odd) == "<Approximations: 2 decisions of 'd\\n', quality 0>"
