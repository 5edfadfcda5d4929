"""`plar.approximations` on Spark: the same as here to the bit, wherever the rows are, by few jobs; and `mark`."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest

import plar
from plar.engines import SparkEngine
from plar.engines.spark import granulate
from plar.uncertainty import approximation

LAYOUTS = ("auto", "driver", "columns", "rows")
OPTIONS: list[dict[str, Any]] = [
    {},
    {"weights": "w"},
    {"attributes": ["t", "a1"], "missing": "drop"},
    {"attributes": [], "weights": "w"},
    {"bins": {"f": [0.5]}, "na": ["x"], "attributes": ["f", "t"], "missing_decision": "drop"},
    {"decision": ["d", "a0"], "attributes": ["a2", "s"]},
]

pytestmark = pytest.mark.filterwarnings("ignore::plar.PlarWarning")


def table(n: int = 300) -> pl.DataFrame:
    """Missing values of every kind, both zeros, weights of 0, and many contradictions."""
    pick = random.Random(3)
    columns: dict[str, list[Any]] = {f"a{j}": [pick.randrange(3) for _ in range(n)] for j in range(3)}
    columns["t"] = [pick.choice(["x", "y", "9", "10", None, "NA"]) for _ in range(n)]
    columns["f"] = [pick.choice([0.0, -0.0, 1.5, float("nan"), None]) for _ in range(n)]
    columns["s"] = [pick.choice([dt.date(2024, 1, 1), dt.date(2024, 1, 2)]) for _ in range(n)]
    columns["w"] = [pick.choice([0, 1, 2]) for _ in range(n)]
    columns["d"] = [pick.choice(["p", "q", "q", "r", None]) for _ in range(n)]
    return pl.DataFrame(columns)


def facts(result: plar.Approximations) -> dict[str, Any]:
    return {name: value for name, value in result.to_dict().items() if name not in ("seconds", "engine", "source")}


def asked(data: Any, options: dict[str, Any], **engine: Any) -> plar.Approximations:
    return plar.approximations(data, **{"decision": "d", **options}, **engine)


def in_any_order(rows: Any) -> list[str]:
    return sorted(repr(tuple(row)) for row in rows)


@pytest.fixture(scope="module")
def rows(spark: Any) -> Any:
    """The rows of the table in several partitions."""
    frame = table()
    schema = "a0 long, a1 long, a2 long, t string, f double, s date, w long, d string"
    return spark.createDataFrame(frame.rows(), schema).repartition(3)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_same_as_here(spark: Any, rows: Any, layout: str) -> None:
    with SparkEngine(session=spark, layout=layout, partitions=3) as engine:
        for options in OPTIONS:
            here = asked(table(), options)
            assert here.n_contradictions or options.get("attributes") != []
            there = asked(rows, options, engine=engine)
            assert facts(there) == facts(here)
            assert there.engine == "spark"
            assert facts(asked(table(), options, engine=engine)) == facts(here)


@pytest.mark.parametrize("options", OPTIONS)
def test_rows_are_marked_where_they_are(rows: Any, options: dict[str, Any]) -> None:
    here = asked(table(), options)
    marked = here.mark(rows)
    assert marked.columns == [*rows.columns, "approximation", "possible_decisions"]
    assert marked.schema.fields[: len(rows.columns)] == rows.schema.fields
    assert in_any_order(marked.collect()) == in_any_order(here.mark(table()).rows())


def test_names_that_spark_takes_for_something_else(spark: Any) -> None:
    columns = ["a.b", "A", "a", "key", "decision", "approximation", "d"]
    values = [(1, 2, 3, "k", 0.5, True, "p"), (1, 2, 3, "k", 0.5, True, "q"), (1, 2, 4, "k", 0.5, True, "p")]
    frame = spark.createDataFrame(values, columns)
    result = plar.approximations(frame, "d")
    marked = result.mark(frame)
    assert marked.columns == [*columns, "approximation_", "possible_decisions"]
    judged = [("undecided", "p | q"), ("undecided", "p | q"), ("certain", "p")]
    assert in_any_order(marked.collect()) == in_any_order([*a, *b] for a, b in zip(values, judged, strict=True))


def test_no_rows(spark: Any) -> None:
    frame = spark.createDataFrame([], "a long, d string")
    result = plar.approximations(frame, "d")
    assert (result.n_objects, result.by_decision, result.quality) == (0, (), 1.0)
    assert result.mark(frame).collect() == []


def test_values_that_only_the_cluster_has(spark: Any, rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dictionaries are too long for the driver, and ties of contradictions too many."""
    monkeypatch.setattr(granulate, "MAX_VALUES_OF_PART", 2)
    monkeypatch.setattr(granulate, "MAX_VALUES_ON_DRIVER", 2)
    monkeypatch.setattr(approximation, "_SORTED_AT_ONCE", 0)
    with SparkEngine(session=spark, layout="rows", partitions=3) as engine:
        for options in OPTIONS:
            assert facts(asked(rows, options, engine=engine)) == facts(asked(table(), options))


def _jobs(context: Any, group: str) -> Iterator[int]:
    yield from context.statusTracker().getJobIdsForGroup(group)


@pytest.mark.parametrize(("attributes", "n_jobs"), [(None, 2), (["a0", "t"], 3)])
def test_few_jobs_and_nothing_stays(spark: Any, rows: Any, attributes: list[str] | None, n_jobs: int) -> None:
    context = spark.sparkContext
    before = context._jsc.getPersistentRDDs().size()
    group = f"approximations {n_jobs}"

    def count_jobs(phase: str, done: int, total: int) -> None:
        if phase == "approximate":  # the table is read
            context.setJobGroup(group, group)

    with SparkEngine(session=spark, layout="rows", partitions=3) as engine:
        try:
            result = plar.approximations(rows, "d", attributes=attributes, engine=engine, progress=count_jobs)
        finally:
            context.setLocalProperty("spark.jobGroup.id", None)
    assert result.n_contradictions
    assert len([*_jobs(context, group)]) == n_jobs
    assert context._jsc.getPersistentRDDs().size() == before


def test_granules_on_the_cluster_are_kept(spark: Any, rows: Any) -> None:
    engine = SparkEngine(session=spark, layout="columns", partitions=3)
    granules: Any = plar.granulate(rows, "d", engine=engine)
    with engine, granules:
        for attributes in (None, ["t"], []):
            expected = asked(table(), {"attributes": attributes})
            result = plar.approximations(granules, attributes=attributes, engine=engine)
            assert result.by_decision == expected.by_decision
            assert result.largest_contradictions == expected.largest_contradictions
        with pytest.raises(plar.TableError, match="distinct rows with their counts"):
            result.mark(granules)
    with pytest.raises(plar.TableError, match="released"):
        plar.approximations(granules, engine=SparkEngine(session=spark))
