"""The query of rules, run in SQLite, DuckDB and Spark: the same predictions as `predict`."""

from __future__ import annotations

import datetime as dt
import math
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plar
from plar.matching.condition import LOWEST
from plar.results.rules import make_rule
from support.rule_samples import Table, random_table, rows_of

#: a name as hostile as databases allow
ODD_NAME = """it's "a" `t`; --é"""


def in_sqlite(query: str, table: Table, name: str = "t") -> list[dict[str, Any]]:
    """The rows of a query; dates are text in SQLite, and truth values numbers."""
    columns = ", ".join(f'"{column.replace(chr(34), 2 * chr(34))}"' for column in table)
    marks = ", ".join("?" * len(table))
    quoted = name.replace('"', '""')
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(f'CREATE TABLE "{quoted}" ({columns})')
        rows = [
            [value.isoformat() if isinstance(value, (dt.date, dt.time)) else value for value in row]
            for row in zip(*table.values(), strict=True)
        ]
        database.executemany(f'INSERT INTO "{quoted}" VALUES ({marks})', rows)
        answer = database.execute(query)
        names = [description[0] for description in answer.description]
        return [dict(zip(names, row, strict=True)) for row in answer]


def in_duckdb(query: str, table: Table, name: str = "t") -> list[dict[str, Any]]:
    """The same, with types of columns."""
    with closing(duckdb.connect()) as database:
        database.register("table_in_memory", pl.DataFrame(table).to_arrow())
        quoted = name.replace('"', '""')
        database.execute(f'CREATE TABLE "{quoted}" AS SELECT * FROM table_in_memory')
        answer = database.execute(query)
        names = [description[0] for description in answer.description]
        return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]


DATABASES = {"sqlite": in_sqlite, "duckdb": in_duckdb}
Run = Callable[..., list[dict[str, Any]]]


def with_rule(rules: plar.Rules, conditions: list[plar.Condition], evidence: list[int]) -> plar.Rules:
    """The same, but with this one rule."""
    counts = [0] * len(evidence)
    rule = make_rule(conditions, 0, counts, None, evidence, rules.decisions, rules.class_sizes)
    return replace(rules, rules=(rule,))


def check(rules: plar.Rules, table: Table, run: Run, dialect: str = "ansi", name: str = "t") -> None:
    """The query predicts what `predict` does, from scores that are those of the oracle, and returns the table."""
    answer = run(rules.to_sql(name, dialect), table, name)
    assert [row["prediction"] for row in answer] == rules.predict(table).tolist()
    shares = np.array([[row[f"score_{i}"] for i in range(len(rules.decisions))] for row in answer], float)
    shares = np.exp((shares - shares.max(axis=1, keepdims=True)) / 1e6)
    assert np.allclose(shares / shares.sum(axis=1, keepdims=True), rules.predict_proba(table), rtol=1e-9, atol=0)
    for row, original in zip(answer, rows_of(table), strict=True):
        assert list(row)[: len(table)] == list(table)
        for column, value in original.items():
            if not isinstance(value, (dt.date, dt.time)):
                assert row[column] == value


@pytest.mark.filterwarnings("ignore::plar.PlarWarning")
@settings(max_examples=10)
@given(seed=st.integers(0, 2**32 - 1), kind=st.sampled_from(["tested", "certain", "possible"]))
@pytest.mark.parametrize(("database", "dialect"), [("sqlite", "ansi"), ("sqlite", "sqlite"), ("duckdb", "ansi")])
def test_random_tables(database: str, dialect: str, seed: int, kind: str) -> None:
    """With text, numbers, truth values, dates, times of day and NULL."""
    training = random_table(seed, 120)
    if database == "sqlite":  # where the texts of 12:30 and 12:30:00 differ
        training = {name: column for name, column in training.items() if name != "clock"}
    rules = plar.rules(training, "d", kind=kind, alpha=0.5)
    new = {name: column for name, column in random_table(seed + 1, 40).items() if name in training}
    check(rules, new, DATABASES[database], dialect)


@pytest.mark.parametrize("database", DATABASES)
@settings(max_examples=5)
@given(st.integers(0, 2**32 - 1))
def test_numbers_at_their_cut_points(database: str, seed: int) -> None:
    """To the last bit."""
    pick = random.Random(seed)
    points = sorted({pick.gauss(0, 1) * 10 ** pick.randrange(-12, 13) for _ in range(60)} | {0.1 + 0.2, 0.3, 1 / 3})
    table: Table = {"x": points, "d": [int(i >= len(points) // 2) for i in range(len(points))]}
    rules = plar.rules(table, "d", kind="possible", bins={"x": points[:-1]})
    near = [nearby for x in points for nearby in (x, math.nextafter(x, math.inf), math.nextafter(x, -math.inf))]
    check(rules, {"x": near}, DATABASES[database])
    check(with_rule(rules, [plar.Condition("x", "<=", points[7])], [7, -7]), {"x": near}, DATABASES[database])


@pytest.mark.parametrize("database", DATABASES)
def test_odd_names_and_values(database: str) -> None:
    texts = ["it's", '"', "`", "\\", "é\n", "'; DROP TABLE t; --", "%s", ":x", "${HOME}", "?", "\\'", "a\\"]
    table: Table = {ODD_NAME: texts * 6, "d": [f"{i}'{text}" for i, text in enumerate(texts)] * 6}
    rules = plar.rules(table, "d")
    assert len(rules) == len(texts)
    check(rules, table, DATABASES[database], name=ODD_NAME)
    check(rules, {ODD_NAME: [None, "x", *texts]}, DATABASES[database])


@pytest.mark.parametrize("database", DATABASES)
def test_names_that_are_taken(database: str) -> None:
    table: Table = {
        "score_0": ["x", "y"] * 20,
        "Score_1": ["x", "x"] * 20,
        "PREDICTION": [*range(40)],
        "rows_with_scores": [3] * 40,
        "d": ["p", "q"] * 20,
    }
    rules = plar.rules(table, "d")
    assert (rules.attributes, [*rules.left_out]) == (("score_0", "Score_1", "rows_with_scores"), ["PREDICTION"])
    answer = DATABASES[database](rules.to_sql(), table)
    assert list(answer[0]) == [*table, "score_0_", "score_1_", "prediction_"]
    assert [row["prediction_"] for row in answer] == rules.predict(table).tolist()


@pytest.mark.parametrize("database", DATABASES)
@pytest.mark.parametrize(
    "decisions", [["p", None], [1, 2], [0.1 + 0.2, 0.3], [1.0, 1e-7], [True, False], [None, 2**40], ["only", "only"]]
)
def test_decisions_of_every_type(database: str, decisions: list[Any]) -> None:
    table: Table = {"a": ["x", "y"] * 20, "d": decisions * 20}
    rules = plar.rules(table, "d", missing_decision="value")
    check(rules, {"a": ["x", "y", "z", None]}, DATABASES[database])


@pytest.mark.parametrize("database", DATABASES)
def test_a_tie_goes_to_the_first_decision(database: str) -> None:
    rules = plar.rules({"a": ["x", "y", "z"] * 20, "d": ["p", "q", "r"] * 20}, "d")
    answer = DATABASES[database](rules.to_sql(), {"a": ["-"]})
    assert (answer[0]["prediction"], answer[0]["score_0"]) == ("p", answer[0]["score_2"])


@pytest.mark.parametrize("database", DATABASES)
def test_no_rules_and_a_rule_without_conditions(database: str) -> None:
    noise = plar.rules({"a": [0, 1] * 8, "d": [0, 0, 0, 1] * 4}, "d")
    assert len(noise) == 0
    check(noise, {"b": [1, None]}, DATABASES[database])
    check(with_rule(noise, [], [-900_000, 900_000]), {"b": [1, None]}, DATABASES[database])


@pytest.mark.parametrize("database", DATABASES)
def test_whether_there_is_a_value(database: str) -> None:
    """Of a column that was cut nowhere, and may hold dates."""
    days = [dt.date(2024, 1, 1), None, dt.date(1900, 1, 1)]
    rules = plar.rules({"a": [0, 1] * 8, "d": ["p", "q"] * 8}, "d")
    rules = with_rule(rules, [plar.Condition("day", ">", LOWEST)], [-7, 7])
    assert rules.predict({"day": days}).tolist() == ["q", "p", "q"]
    check(rules, {"day": days}, DATABASES[database])
    check(rules, {"day": [-math.inf, 0.0, None]}, DATABASES[database])


@pytest.mark.parametrize(("database", "dialect"), [("sqlite", "ansi"), ("sqlite", "sqlite"), ("duckdb", "ansi")])
def test_many_rules_and_classes(database: str, dialect: str) -> None:
    """Databases limit how deep expressions are."""
    table = many_rows(n_decisions=3)
    rules = plar.rules(table, "d", kind="certain")
    assert len(rules) > 250
    check(rules, {name: column[:40] for name, column in table.items()}, DATABASES[database], dialect)
    table = {"a": list(range(150)) * 4, "d": [f"c{i}" for i in range(150)] * 4}
    rules = plar.rules(table, "d", bins=None, kind="certain")
    assert (len(rules), len(rules.decisions)) == (150, 150)
    some = replace(rules, rules=rules.rules[::30])
    check(some, {"a": [0, 30, 60, 7, None]}, DATABASES[database], dialect)


def many_rows(n_decisions: int) -> Table:
    """A table of noise, of which every few rows need a rule of their own."""
    draw = np.random.default_rng(0)
    table: Table = {f"a{j}": draw.integers(0, 4, 700).tolist() for j in range(6)}
    table["d"] = draw.integers(0, n_decisions, 700).tolist()
    return table


def test_a_dialect_that_is_not_known() -> None:
    rules = plar.rules({"a": ["x", "y"] * 20, "d": ["p", "q"] * 20}, "d")
    with pytest.raises(plar.UnknownNameError, match=r"Unknown dialect 'oracle'\. Choose one of: ansi, sqlite, spark\."):
        rules.to_sql(dialect="oracle")


# -- Spark ---------------------------------------------------------------------------------------------------------


def on_spark(spark: Any) -> Run:
    """Run queries on a view of the table."""

    def run(query: str, table: Table, name: str = "t") -> list[dict[str, Any]]:
        frame = pl.DataFrame(table)
        view = spark.createDataFrame(frame.to_arrow())
        view.createOrReplaceTempView(name)
        try:
            return [row.asDict() for row in spark.sql(query).collect()]
        finally:
            spark.catalog.dropTempView(name)

    return run


@pytest.mark.filterwarnings("ignore::plar.PlarWarning")
@pytest.mark.parametrize("kind", ["tested", "possible"])
def test_random_tables_on_spark(spark: Any, kind: str) -> None:
    def without_clock(table: Table) -> Table:  # Spark has no times of day
        return {name: column for name, column in table.items() if name != "clock"}

    rules = plar.rules(without_clock(random_table(1, 120)), "d", kind=kind, alpha=0.5)
    check(rules, without_clock(random_table(2, 60)), on_spark(spark), "spark")


def test_odd_names_and_values_on_spark(spark: Any) -> None:
    texts = ["it's", '"', "`", "\\", "é\n", "%s", ":x", "${spark.app.name}", "\\'", "a\\", "{}", "\\u0041"]
    name = "it's a `t`; --é"
    table: Table = {name: texts * 6, "d": [f"{i}'{text}" for i, text in enumerate(texts)] * 6}
    rules = plar.rules(table, "d")
    check(rules, table, on_spark(spark), "spark")


def test_numbers_at_their_cut_points_on_spark(spark: Any) -> None:
    pick = random.Random(0)
    points = sorted({pick.gauss(0, 1) * 10 ** pick.randrange(-12, 13) for _ in range(40)} | {0.1 + 0.2, 0.3, 1 / 3})
    rules = plar.rules({"x": points, "d": [i % 2 for i in range(43)]}, "d", kind="possible", bins={"x": points[:-1]})
    assert len(rules) > 15
    near = [nearby for x in points for nearby in (x, math.nextafter(x, math.inf), math.nextafter(x, -math.inf))]
    check(rules, {"x": near}, on_spark(spark), "spark")


def test_many_rules_on_spark(spark: Any) -> None:
    table = many_rows(n_decisions=2)
    rules = plar.rules(table, "d", kind="certain")
    assert len(rules) > 100
    check(rules, {name: column[:40] for name, column in table.items()}, on_spark(spark), "spark")
