"""`plar.rules` of tables on a cluster: the same rules as here; and predictions that the cluster's tasks make."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import plar
from plar.engines import SparkEngine
from plar.engines.spark import engine as engine_module
from support.environment import TIC_TAC_TOE, no_spark
from support.rule_samples import Table, random_table

pytestmark = [
    pytest.mark.skipif(no_spark() is not None, reason=str(no_spark())),
    pytest.mark.filterwarnings("ignore::plar.PlarWarning"),
]


def facts(rules: plar.Rules) -> Any:
    """What rules say, without how long it took, and where."""
    said = json.loads(json.dumps(rules.to_dict()))
    for name in ("seconds", "engine", "source"):
        del said[name]
    return said


def table_of(seed: int, n_rows: int = 200) -> Table:
    """A random table without times of day, which Spark has none of."""
    return {name: column for name, column in random_table(seed, n_rows).items() if name != "clock"}


def on_cluster(spark: Any, table: Table) -> Any:
    """The rows of a table in several partitions."""
    return spark.createDataFrame(pl.DataFrame(table).to_arrow()).repartition(3)


@pytest.mark.parametrize("kind", ["tested", "certain", "possible"])
def test_the_same_rules_of_a_frame(spark: Any, kind: str) -> None:
    table = table_of(1)
    here = plar.rules(table, "d", kind=kind, alpha=0.5)
    there = plar.rules(on_cluster(spark, table), "d", kind=kind, alpha=0.5)
    assert there.engine == "spark"
    assert len(there) > 3
    assert facts(there) == facts(here)


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_the_same_rules_of_a_path(spark: Any, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    frame = pl.DataFrame(table_of(2))
    frame.write_csv(path) if name.endswith("csv") else frame.write_parquet(path)
    here = plar.rules(path, "d", alpha=0.5)
    with SparkEngine(session=spark) as engine:
        assert facts(plar.rules(path, "d", alpha=0.5, engine=engine)) == facts(here)


@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_granules_that_stay_on_the_cluster_come_if_they_are_small(
    spark: Any, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = plar.rules(TIC_TAC_TOE, "x_wins", kind="certain")
    few = plar.rules(TIC_TAC_TOE, "x_wins", kind="possible", attributes=["middle_middle", "top_left"])
    frame = spark.createDataFrame(pl.read_csv(TIC_TAC_TOE, infer_schema=False).to_arrow()).repartition(3)
    n_persisted = spark.sparkContext._jsc.getPersistentRDDs().size()
    with SparkEngine(session=spark, layout=layout, partitions=3) as engine:
        assert facts(plar.rules(frame, "x_wins", kind="certain", engine=engine)) == facts(here)
        granules: Any = plar.granulate(frame, "x_wins", engine=engine)
        with granules:
            assert not isinstance(granules, plar.Granules)
            assert plar.rules(granules, kind="certain").rules == here.rules
            monkeypatch.setattr(engine_module, "_MAX_BYTES_ON_DRIVER", 3 * 200)
            with pytest.raises(plar.TableError) as caught:
                plar.rules(granules, kind="certain", engine=engine)
            assert str(caught.value) == (
                "Rules are searched on this machine, and the 958 distinct rows of 9 columns are too many for it. "
                "Select columns first, with plar.select or plar.reduce, and pass attributes=."
            )
            # few columns have few different rows, and these come
            for data in (granules, frame):
                there = plar.rules(
                    data, "x_wins", kind="possible", attributes=["middle_middle", "top_left"], engine=engine
                )
                assert there.rules == few.rules
            assert plar.reduce(granules, engine=engine).attributes  # they are still there
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == n_persisted


def predicted(frame: Any, name: str) -> list[Any]:
    """A column by the number of the row."""
    return [row[name] for row in sorted(frame.collect(), key=lambda row: row["number"])]


def test_predictions_where_the_rows_are(spark: Any) -> None:
    rules = plar.rules(table_of(3), "d", kind="possible")
    new: Table = {**table_of(4, 100), "number": list(range(100))}
    frame = on_cluster(spark, new)
    n_persisted = spark.sparkContext._jsc.getPersistentRDDs().size()
    predictions = rules.predict(frame)
    assert [(field.name, field.dataType.typeName()) for field in predictions.schema.fields[-2:]] == [
        ("number", "long"),
        ("prediction", "string"),
    ]
    assert predictions.columns == [*frame.columns, "prediction"]
    assert predicted(predictions, "prediction") == rules.predict(new).tolist()
    assert predicted(rules.predict_proba(frame), "probability") == rules.predict_proba(new).tolist()
    # all other columns are as they were
    assert sorted(map(repr, predictions.drop("prediction").collect())) == sorted(map(repr, frame.collect()))
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == n_persisted


def test_nothing_is_computed_before_it_is_asked_for(spark: Any) -> None:
    """The driver starts no job: rows stay where they are."""
    rules = plar.rules(table_of(3), "d", alpha=0.5)
    frame = on_cluster(spark, table_of(4, 100))
    context = spark.sparkContext
    context.setJobGroup("predict", "predict")
    try:
        predictions = rules.predict(frame)
        rules.predict_proba(frame)
        assert list(context.statusTracker().getJobIdsForGroup("predict")) == []
        assert predictions.count() == 100
        assert context.statusTracker().getJobIdsForGroup("predict")
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)


def test_rules_found_on_the_cluster_predict_here_and_there(spark: Any, tmp_path: Path) -> None:
    """Dates, times, truth values, decimals and what is missing mean the same."""
    n_rows = 120
    start = dt.datetime(2024, 1, 1, 12, 30)
    table: Table = {
        "when": [start + dt.timedelta(hours=7 * i) for i in range(n_rows)],
        "month": [dt.date(2024, 1 + i % 3, 1) for i in range(n_rows)],
        "price": [Decimal(f"{i % 4}.50") for i in range(n_rows)],
        "flag": [None if i % 7 == 0 else i % 2 == 0 for i in range(n_rows)],
        "word": [["u", "v", None][i % 3] for i in range(n_rows)],
    }
    table["d"] = [f"{(i > 60) + (i % 3 == 1)}" for i in range(n_rows)]
    frame = on_cluster(spark, {**table, "number": list(range(n_rows))})
    for kind in ("tested", "possible"):
        rules = plar.rules(frame, "d", kind=kind, drop=["number"])
        assert {"when", "month"} <= {condition.column for rule in rules for condition in rule.conditions}
        assert facts(rules)["rules"] == facts(plar.rules(table, "d", kind=kind))["rules"]
        rules.save(tmp_path / "r.json")
        for either in (rules, plar.load(tmp_path / "r.json")):
            assert predicted(either.predict(frame), "prediction") == either.predict(table).tolist()


@pytest.mark.parametrize(
    ("decisions", "kind"),
    [
        (["p", "q"], "string"),
        ([1, 2], "long"),
        ([0.5, 2.0], "double"),
        ([False, True], "boolean"),
        ([None, "q"], "string"),
        ([None, 3], "long"),
        ([dt.date(2024, 1, 1), dt.date(2024, 1, 2)], "string"),
    ],
)
def test_the_type_of_predictions(spark: Any, decisions: list[Any], kind: str) -> None:
    table: Table = {"a": ["x", "y"] * 20, "d": decisions * 20}
    rules = plar.rules(table, "d", missing_decision="value")
    frame = on_cluster(spark, {"a": ["y", "x", None], "number": [0, 1, 2]})
    predictions = rules.predict(frame)
    assert predictions.schema["prediction"].dataType.typeName() == kind
    assert predicted(predictions, "prediction") == rules.predict({"a": ["y", "x", None]}).tolist()


def test_decisions_of_several_types_and_beyond_longs(spark: Any) -> None:
    rules = plar.rules({"a": ["x", "y"] * 20, "d": [2**70, 1] * 20}, "d")
    frame = on_cluster(spark, {"a": ["y", "x"], "number": [0, 1]})
    assert predicted(rules.predict(frame), "prediction") == ["1", str(2**70)]


def test_odd_frames(spark: Any) -> None:
    rules = plar.rules({"a b.c": ["x", "y"] * 20, "d": ["p", "q"] * 20}, "d")
    taken = on_cluster(spark, {"a b.c": ["y", "x"], "prediction": [1, 2], "number": [0, 1]})
    assert rules.predict(taken).columns == ["a b.c", "prediction", "number", "prediction_"]
    assert predicted(rules.predict(taken), "prediction_") == ["q", "p"]
    empty = taken.filter("number > 5")
    assert rules.predict(empty).collect() == rules.predict_proba(empty).collect() == []
    nested = spark.sql(
        "SELECT 'x' AS `a b.c`, array(1, 2) AS l, map('k', 1) AS m, 1 AS number, timestamp'2024-01-01' t"
    )
    [row] = rules.predict(nested).collect()
    assert (row["l"], row["m"], row["prediction"]) == ([1, 2], {"k": 1}, "p")
    none = replace(rules, rules=())
    assert predicted(none.predict(nested), "prediction") == ["p"]
    with pytest.raises(plar.TableError, match=r"lacks columns that the rules look at: a b\.c\. It has: number"):
        rules.predict(on_cluster(spark, {"number": [1]}))
    with pytest.raises(plar.TableError, match=r"explain shows single rows"):
        rules.explain(taken)
