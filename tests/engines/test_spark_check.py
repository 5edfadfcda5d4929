"""`plar.check` and `Reduct.update` on Spark: the same as here to the bit, wherever the rows are, and from granules."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import polars as pl
import pytest

import plar
from plar.engines import SparkEngine
from support.comparing import facts as facts_of_reduct

LAYOUTS = ("auto", "driver", "columns", "rows")
SCHEMA = "a0 long, a1 long, a2 long, t string, x double, day date, w long, d string"

pytestmark = pytest.mark.filterwarnings("ignore::plar.PlarWarning")


def month(seed: int, n: int = 240) -> pl.DataFrame:
    """Rows whose decision follows from two columns, in later months less so; with missing values and new ones."""
    pick = random.Random(seed)
    columns: dict[str, list[Any]] = {f"a{j}": [pick.randrange(3) for _ in range(n)] for j in range(3)}
    columns["t"] = [pick.choice(["u", "v", None, f"month {seed}"]) for _ in range(n)]
    columns["x"] = [pick.gauss(seed / 4, 1) for _ in range(n)]
    columns["day"] = [dt.date(2024, seed, 1 + pick.randrange(27)) for _ in range(n)]
    columns["w"] = [pick.choice([0, 1, 2]) for _ in range(n)]
    columns["d"] = [
        pick.choice("pqr") if pick.random() < seed / 20 else "pqr"[(a + (0 if x < 0 else 1)) % 3]
        for a, x in zip(columns["a0"], columns["x"], strict=True)
    ]
    return pl.DataFrame(columns)


JANUARY = month(1)
FEBRUARY = month(2)
#: without a column of the reduct, and without another
LACKING = FEBRUARY.drop("x", "a2")


def results() -> dict[str, Any]:
    """Old results of every kind."""
    cut: dict[str, Any] = {"bins": {"x": "quantile:3", "day": "quantile:2"}, "weights": "w"}
    return {
        "reduct": plar.reduce(JANUARY, "d", **cut),
        "part": plar.reduce(JANUARY, "d", measure="PR", max_attributes=3, **cut),
        "selection": plar.select(JANUARY, "d", weights="w", alpha=0.5),
        "numbers": plar.select(JANUARY.drop("d"), "x", target_type="numbers", alpha=0.9, include=["a0"]),
    }


def facts(check: plar.Check) -> dict[str, Any]:
    """All that a check says, but for what depends on the machine."""
    return {name: value for name, value in check.to_dict().items() if name not in ("seconds", "engine", "source")}


def on_cluster(spark: Any, frame: pl.DataFrame) -> Any:
    schema = ", ".join(part for part in SCHEMA.split(", ") if part.split()[0] in frame.columns)
    names = [part.split()[0] for part in schema.split(", ")]
    return spark.createDataFrame(frame.select(names).rows(), schema).repartition(3)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_same_as_here(spark: Any, layout: str) -> None:
    old = results()
    with SparkEngine(session=spark, layout=layout, partitions=3) as engine:
        for new in (FEBRUARY, LACKING):
            rows = on_cluster(spark, new)
            for kind, result in old.items():
                if kind == "numbers" and "x" not in new.columns:
                    continue
                here = plar.check(result, new)
                there = plar.check(result, rows, engine=engine)
                assert there.engine == "spark"
                assert facts(there) == facts(here), kind
    assert not plar.check(old["part"], FEBRUARY).preserves
    assert old["selection"].columns
    assert old["numbers"].steps


@pytest.mark.parametrize("layout", LAYOUTS)
def test_granules_on_the_cluster_are_checked_where_they_are(spark: Any, layout: str) -> None:
    reduct = results()["part"]
    cut: dict[str, Any] = {"bins": {name: list(points) for name, points in reduct.cuts.items()}, "weights": "w"}
    here = facts(plar.check(reduct, plar.granulate(FEBRUARY, "d", **cut)))
    with SparkEngine(session=spark, layout=layout, partitions=3) as engine:
        granules = plar.granulate(on_cluster(spark, FEBRUARY), "d", engine=engine, **cut)
        there = plar.check(reduct, granules, engine=engine)
        assert facts(there) == here
        updated = reduct.update(granules, engine=engine)
        assert facts_of_reduct(updated) == facts_of_reduct(reduct.update(FEBRUARY))


def test_what_was_seen_may_be_anywhere(spark: Any) -> None:
    old = results()
    old_rows = on_cluster(spark, JANUARY)
    with SparkEngine(session=spark, partitions=3) as engine:
        for kind in ("reduct", "selection"):
            here = facts(plar.check(old[kind], FEBRUARY, seen=JANUARY))
            assert here["new_combinations"]["n"]
            for seen in (JANUARY, old_rows):
                assert facts(plar.check(old[kind], on_cluster(spark, FEBRUARY), seen=seen, engine=engine)) == here
            assert facts(plar.check(old[kind], FEBRUARY, seen=old_rows)) == here


def test_an_update_on_the_cluster(spark: Any) -> None:
    for kind in ("reduct", "part"):
        old = results()[kind]
        for new in (FEBRUARY, LACKING):
            here = old.update(new)
            with SparkEngine(session=spark, partitions=3) as engine:
                there = old.update(on_cluster(spark, new), engine=engine)
            assert there.change == here.change
            assert facts_of_reduct(there) == facts_of_reduct(here)
