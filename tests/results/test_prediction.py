"""predict, predict_proba and explain against plain Python, for every kind of table that the rules may meet."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plar
from plar.options import TextKwargs
from plar.results.prediction import PredictedTable
from plar.results.rules import as_array
from plar.runtime.parallel import threads
from support.rule_samples import Table, as_plain, random_table, rows_of


def check(rules: plar.Rules, data: Any, rows: list[dict[str, Any]], mark: str = ".") -> None:
    """Predictions, probabilities and explanations are the oracle's."""
    right = as_plain(rules)
    decisions = [right.decision(row, mark) for row in rows]
    predictions = rules.predict(data)
    assert predictions.tolist() == [rules.decisions[number] for number in decisions]

    shares = rules.predict_proba(data)
    assert shares.shape == (len(rows), len(rules.decisions))
    assert shares.argmax(axis=1).tolist() == decisions
    assert np.allclose(shares.sum(axis=1), 1, rtol=0, atol=1e-12)
    for of_row, row in zip(shares.tolist(), rows, strict=True):
        assert of_row == pytest.approx(right.shares(row, mark), rel=1e-12, abs=0)

    lines = rules.explain(data)
    matching = [right.matching(row, mark) for row in rows]
    expected = [(i, number) for i, numbers in enumerate(matching) for number in [None, *numbers]]
    assert lines.select("row", "rule").rows() == expected
    scores = lines.group_by("row").agg(pl.col("adds").sum()).sort("row")["adds"]
    for score, row, decision in zip(scores, rows, decisions, strict=True):
        assert round(score * 1e6) == right.scores(row, mark)[decision]


KINDS: dict[str, Callable[[Table, Path], Any]] = {
    "dict": lambda table, _: table,
    "pandas": lambda table, _: pd.DataFrame({name: pd.Series(column, dtype=object) for name, column in table.items()}),
    "pandas types": lambda table, _: pl.DataFrame(table).to_pandas(),
    "pandas nullable": lambda table, _: pd.DataFrame(table).convert_dtypes(),
    "polars": lambda table, _: pl.DataFrame(table),
    "lazy": lambda table, _: pl.LazyFrame(table),
    "arrow": lambda table, _: pl.DataFrame(table).to_arrow(),
    "categories": lambda table, _: pl.DataFrame(table).with_columns(pl.col("colour").cast(pl.Categorical)),
    "csv": lambda table, folder: _written(pl.DataFrame(table), folder / "t.csv"),
    "parquet": lambda table, folder: _written(pl.DataFrame(table), folder / "t.parquet"),
    "ndjson": lambda table, folder: _written(pl.DataFrame(table), folder / "t.ndjson"),
    "read_table": lambda table, folder: plar.read_table(_written(pl.DataFrame(table), folder / "t.csv"), "d"),
}


def _written(frame: pl.DataFrame, path: Path) -> Path:
    if path.suffix == ".csv":
        frame.write_csv(path)
    elif path.suffix == ".parquet":
        frame.write_parquet(path)
    else:
        frame.write_ndjson(path)
    return path


@pytest.mark.filterwarnings("ignore::plar.PlarWarning")
@settings(max_examples=6)
@given(seed=st.integers(0, 2**32 - 1), rule_kind=st.sampled_from(["tested", "certain", "possible"]))
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table(tmp_path_factory: pytest.TempPathFactory, kind: str, seed: int, rule_kind: str) -> None:
    """Found in a table of one kind, the rules predict the same in every other."""
    training = random_table(seed, 120)
    rules = plar.rules(training, "d", kind=rule_kind, alpha=0.5)
    new = random_table(seed + 1, 40)
    check(rules, KINDS[kind](new, tmp_path_factory.mktemp("new")), rows_of(new))


@pytest.mark.filterwarnings("ignore::plar.PlarWarning")
@settings(max_examples=4)
@given(st.integers(0, 2**32 - 1))
@pytest.mark.parametrize("found_in", ["csv", "pandas types", "parquet"])
def test_rules_of_every_kind_of_table(tmp_path_factory: pytest.TempPathFactory, found_in: str, seed: int) -> None:
    """And those of every kind of table predict the same of dicts."""
    folder = tmp_path_factory.mktemp("training")
    rules = plar.rules(KINDS[found_in](random_table(seed, 120), folder), "d", kind="possible")
    new = random_table(seed + 1, 40)
    check(rules, new, rows_of(new))
    check(rules, KINDS[found_in](new, folder), rows_of(new))


def test_numpy() -> None:
    draw = np.random.default_rng(0)
    training = draw.integers(0, 3, (200, 4))
    training[:, 3] = training[:, 0] ^ (training[:, 1] > 1)
    rules = plar.rules(training, -1)
    assert rules.attributes == ("x0", "x1", "x2")
    for new in (draw.integers(0, 4, (50, 3)), draw.integers(0, 4, (50, 3)).astype(np.float32), training):
        check(rules, new, [{f"x{j}": value.item() for j, value in enumerate(row)} for row in new])
    new = np.where(draw.random((50, 3)) < 0.2, np.nan, draw.integers(0, 4, (50, 3)))
    check(rules, new, [{f"x{j}": value for j, value in enumerate(row.tolist())} for row in new])


def test_a_decimal_comma(tmp_path: Path) -> None:
    numbers = [f"{i // 10},{i % 10}" for i in range(100)]
    lines = [f"{number};{'low' if i < 52 else 'high'}" for i, number in enumerate(numbers)]
    path = tmp_path / "t.csv"
    path.write_text("n;d\n" + "\n".join(lines))
    rules = plar.rules(path, "d", decimal=",")
    assert {c.value for rule in rules for c in rule.conditions} <= {4.9, 5.9}
    new = tmp_path / "new.csv"
    new.write_text("n;m\n4,95;1\n0,1;2\n9,9;3\n;4\n")
    check(rules, new, [{"n": "4,95"}, {"n": "0,1"}, {"n": "9,9"}, {"n": None}], mark=",")
    check(rules, {"n": [4.95, 0.1, 9.9, math.nan]}, [{"n": 4.95}, {"n": 0.1}, {"n": 9.9}, {"n": None}])
    with pytest.raises(plar.TableError, match=r"'4\.95', which is not a number"):
        rules.predict({"n": ["4.95"]})
    # a table that was opened is read as it was opened
    new.write_text("n;m\n4.95;1\n0.1;2\n")
    check(rules, plar.read_table(new, "m"), [{"n": 4.95}, {"n": 0.1}])


def test_rows_that_are_written_in_another_way(tmp_path: Path) -> None:
    numbers = [i / 10 for i in range(100)]
    rules = plar.rules({"n": numbers, "d": ["low" if number < 5.2 else "high" for number in numbers]}, "d")
    path = tmp_path / "new.csv"
    path.write_text("n;m\n2,95;ä\n9,9;ö\n-9;ü\n", "latin-1")
    reading: TextKwargs = {"decimal": ",", "encoding": "latin-1", "na": "-9"}
    right = rules.predict({"n": [2.95, 9.9, None]}).tolist()
    assert right[:2] == ["low", "high"]
    assert rules.predict(path, **reading).tolist() == right
    assert rules.predict_proba(path, **reading).tolist() == rules.predict_proba({"n": [2.95, 9.9, None]}).tolist()
    assert rules.explain(path, **reading)["prediction"].to_list()[0] == "low"
    with pytest.raises(plar.TableError, match="'2,95', which is not a number"):
        rules.predict(path, encoding="latin-1")
    path.write_text("9.9|1\n0.1|2\n")
    of_x0 = plar.rules({"x0": numbers, "d": ["low" if number < 5.2 else "high" for number in numbers]}, "d")
    assert of_x0.predict(path, header=False, separator="|").tolist() == ["high", "low"]
    # the options of the rules hold unless others are given
    texts = [str(number).replace(".", ",") for number in numbers]
    with_comma = plar.rules({"n": texts, "d": [number < 5 for number in numbers]}, "d", decimal=",")
    assert with_comma.predict({"n": ["0.5", "9.5"]}, decimal=".").tolist() == [True, False]
    with pytest.raises(TypeError, match=r"Unexpected keyword argument 'bins'\. Rows are read by: header, separator"):
        rules.predict(path, bins="auto")  # type: ignore[call-arg]
    opened = plar.read_table(path, 1, header=False, separator="|")
    with pytest.raises(plar.ParameterError, match=r"open already\. Leave decimal= out, or pass it to read_table"):
        of_x0.predict(opened, decimal=",")


def test_a_separator_is_for_text(tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": ["x", "y"] * 20, "d": [0, 1] * 20})
    frame.write_csv(tmp_path / "t.csv", separator="|")
    frame.write_parquet(tmp_path / "t.parquet")
    rules = plar.rules(tmp_path / "t.csv", "d", separator="|")
    for name in ("t.csv", "t.parquet"):
        assert rules.predict(tmp_path / name).tolist() == ["0", "1"] * 20


def test_numbers_that_text_wrote_in_another_way() -> None:
    rules = plar.rules({"a": ["1.0", "2.50"] * 20, "d": [0, 1] * 20}, "d")
    assert rules.predict({"a": [1, 2.5, 1.0]}).tolist() == [0, 1, 0]
    rules = plar.rules({"a": [1.0, 2.5] * 20, "d": [0, 1] * 20}, "d")
    assert rules.predict({"a": ["1", "2.50", "01"]}).tolist() == [0, 1, 0]
    rules = plar.rules({"a": [True, False] * 20, "d": [0, 1] * 20}, "d")
    assert rules.predict({"a": ["True", "false", "1", "FALSE"]}).tolist() == [0, 1, 0, 1]


def test_ties_go_to_the_first_decision() -> None:
    rules = plar.rules({"a": ["x", "y"] * 20, "d": ["p", "q"] * 20}, "d")
    assert rules.prior[0] == rules.prior[1]
    assert rules.predict({"a": ["z", None]}).tolist() == ["p", "p"]
    assert rules.predict_proba({"a": ["z"]}).tolist() == [[0.5, 0.5]]


def test_no_rules_and_rules_without_conditions() -> None:
    noise = plar.rules({"a": [0, 1] * 8, "d": [0, 0, 0, 1] * 4}, "d")
    assert (len(noise), noise.predict({"b": ["u", "v"]}).tolist()) == (0, [0, 0])
    assert noise.explain({"b": ["u"]}).rows() == [(0, "0", None, "", "", None, None, noise.prior[0] / 1e6)]
    one = plar.rules({"a": [0, 1], "d": ["only", "only"]}, "d")
    assert (len(one), one[0].conditions) == (1, ())
    assert one.predict(pl.DataFrame({"z": [None, 3]})).tolist() == ["only", "only"]
    assert one.predict_proba({"z": [1]}).tolist() == [[1.0]]
    check(one, {"z": [1, 2]}, [{}, {}])


def test_hundreds_of_rules() -> None:
    draw = np.random.default_rng(0)
    table = {f"a{j}": draw.integers(0, 4, 400).tolist() for j in range(6)}
    table["d"] = draw.integers(0, 12, 400).tolist()
    rules = plar.rules(table, "d", kind="certain")
    assert len(rules) > 128
    new = {f"a{j}": draw.integers(0, 5, 60).tolist() for j in range(6)}
    check(rules, new, rows_of(new))


def test_an_empty_table() -> None:
    rules = plar.rules({"a": ["x", "y"] * 20, "d": ["p", "q"] * 20}, "d")
    tables: list[Any] = [{"a": []}, pl.DataFrame({"a": []}), pl.DataFrame(schema={"a": pl.Int8})]
    for empty in tables:
        assert rules.predict(empty).shape == (0,)
        assert rules.predict_proba(empty).shape == (0, 2)
        assert rules.explain(empty).shape == (0, 8)


def test_the_order_of_rows_and_columns() -> None:
    table = random_table(3, 200)
    rules = plar.rules(table, "d", alpha=0.5)
    new = pl.DataFrame(random_table(4, 50))
    expected = rules.predict(new).tolist()
    order = np.random.default_rng(0).permutation(50)
    shuffled = new[order].select(reversed(new.columns)).with_columns(more=pl.lit("z")).drop("d")
    assert rules.predict(shuffled).tolist() == [expected[i] for i in order]


def test_saved_and_loaded(tmp_path: Path) -> None:
    for kind in ("tested", "certain", "possible"):
        rules = plar.rules(random_table(5, 200), "d", kind=kind, alpha=0.5)
        rules.save(tmp_path / "r.json")
        loaded = plar.load(tmp_path / "r.json")
        assert loaded == rules
        new = random_table(6, 60)
        assert loaded.predict(new).tolist() == rules.predict(new).tolist()
        assert (loaded.predict_proba(new) == rules.predict_proba(new)).all()
        assert loaded.explain(new).equals(rules.explain(new))


def test_threads() -> None:
    rules = plar.rules(random_table(7, 200), "d", alpha=0.5)
    new = pl.concat([pl.DataFrame(random_table(8, 500))] * 100)
    outcomes = []
    for n_threads in (1, 2):
        with threads(n_threads):
            outcomes.append((rules.predict(new).tolist(), rules.predict_proba(new).tolist()))
    assert outcomes[0] == outcomes[1]


def test_columns_that_are_not_there() -> None:
    rules = plar.rules({"a": ["x", "y"] * 20, "d": [0, 1] * 20}, "d")
    for ask in (rules.predict, rules.predict_proba, rules.explain, lambda data: PredictedTable(rules, data)):
        with pytest.raises(plar.TableError) as caught:
            ask({"b": [1], "c\n": [2]})
        assert str(caught.value) == "The table lacks columns that the rules look at: a. It has: b, c\\n."
    granules = plar.granulate({"a": ["x", "y"] * 20, "d": [0, 1] * 20}, "d")
    with pytest.raises(plar.TableError, match="distinct rows with their counts"):
        rules.predict(granules)
    with pytest.raises(plar.TableError, match="Cannot take int as a table"):
        rules.predict(3)


@pytest.mark.parametrize(
    ("decisions", "kind"),
    [
        (["p", "q"], "U"),
        ([1, 2], "i"),
        ([0.5, 2.0], "f"),
        ([False, True], "b"),
        ([1, 2.5, "x"], "O"),
        ([2**70, 1], "O"),
        (["p", "q\0"], "O"),
        ([None, "q"], "O"),
        ([dt.date(2024, 1, 1), dt.date(2024, 1, 2)], "U"),
    ],
)
def test_the_type_of_predictions(decisions: list[Any], kind: str) -> None:
    table = {"a": list(range(len(decisions))) * 20, "d": decisions * 20}
    rules = plar.rules(table, "d", missing_decision="value")
    predictions = rules.predict(table)
    assert predictions.dtype.kind == kind
    shown = [value.isoformat() if isinstance(value, dt.date) else value for value in decisions]
    assert predictions.tolist() == shown * 20
    assert list(map(type, predictions.tolist())) == list(map(type, shown * 20))


def test_as_array_of_no_or_several_types() -> None:
    assert as_array([]).dtype == object
    assert as_array([1, True]).tolist() == [1, True]


def test_a_decision_in_bins() -> None:
    """Predictions are intervals, and so is what they are compared with."""
    x = [i / 10 for i in range(100)]
    table = {"x": x, "d": [2 * value for value in x]}
    rules = plar.rules(table, "d", decision_bins=[5.0, 12.0])
    assert rules.decisions == ("≤ 5", "(5, 12]", "> 12")
    predicted = PredictedTable(rules, table)
    assert predicted.n_known == 100
    assert predicted.n_right > 85
    assert PredictedTable(rules, {"x": [1.0, 2.0], "d": ["≤ 5", "> 12"]}).n_right == 1

    day = dt.date(2024, 1, 1)
    dated = {"x": x, "d": [day + dt.timedelta(days=i) for i in range(100)]}
    rules = plar.rules(dated, "d", decision_bins="quantile:3")
    assert rules.decisions[0] == "≤ 2024-02-03"
    assert PredictedTable(rules, dated).n_right > 85


def test_a_predicted_table(tmp_path: Path) -> None:
    rules = plar.rules({"a": ["x", "y"] * 20, "d": ["p", "q"] * 20}, "d")
    frame = pl.DataFrame({"a": ["y", "x", None, "x"], "d": ["q", "q", None, "zzz"], "prediction": [1, 2, 3, 4]})
    predicted = PredictedTable(rules, frame)
    assert (predicted.n_known, predicted.n_right) == (3, 1)
    predicted.sink(tmp_path / "p.parquet")
    written = pl.read_parquet(tmp_path / "p.parquet")
    assert written.columns == ["a", "d", "prediction", "prediction_", "probability"]
    assert written.select(frame.columns).equals(frame)
    assert written["prediction_"].to_list() == ["q", "p", "p", "p"]
    assert written["probability"].to_list() == rules.predict_proba(frame).max(axis=1).tolist()
    assert PredictedTable(rules, frame.drop("d")).n_known == 0


def test_explain_says_it_in_words() -> None:
    rules = plar.rules({"a": [i / 10 for i in range(100)], "d": ["low"] * 50 + ["high"] * 50}, "d")
    lines = rules.explain({"a": [0.05, None]})
    assert lines["text"].to_list() == ["", "a ≤ 4.9", ""]
    assert lines["says"].to_list() == ["", "low", ""]
    assert lines["prediction"].to_list() == ["low", "low", "high"]
    assert lines["support"].to_list() == [None, 50, None]


def test_weights_count() -> None:
    """As if every row was there as often."""
    table: Table = {"a": ["x", "y", "z"] * 10, "d": ["p", "q", "p"] * 10, "w": [1, 2, 3] * 10}
    weighted = plar.rules(table, "d", weights="w")
    repeated = {name: [v for v, w in zip(table[name], table["w"], strict=True) for _ in range(w)] for name in "ad"}
    plain = plar.rules(repeated, "d")
    assert (weighted.rules, weighted.class_sizes) == (plain.rules, plain.class_sizes)
    assert replace(weighted, settings=plain.settings, seconds={}).prior == plain.prior
