"""`plar.select` on Spark: the same selection as here, by one job for each pass over the candidates."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import plar
from plar.engines import SparkEngine
from plar.engines.spark import column_blocks
from plar.engines.spark import stratification as stratification_module
from support.checkpoints import read_records
from support.selection import facts

LAYOUTS = ("columns", "rows")


def planted(n: int = 400, k: int = 12) -> pl.DataFrame:
    """Several columns are selected in both parts."""
    pick = random.Random(7)
    columns = {f"a{j}": [pick.randrange(3) for _ in range(n)] for j in range(k)}
    for j in range(4):
        columns[f"b{j}"] = [v if pick.random() < 0.6 else pick.randrange(3) for v in columns[f"a{j}"]]
    told = [sum(columns[f"a{j}"][i] for j in range(4)) for i in range(n)]
    columns["t"] = [t // 2 if pick.random() < 0.9 else 5 for t in told]
    return pl.DataFrame(columns)


@pytest.fixture(scope="module")
def here() -> plar.Selection:
    selection = plar.select(planted(), "t")
    assert len(selection.steps) >= 4
    return selection


def on_cluster(spark: Any) -> Any:
    """The rows of the table in several partitions."""
    frame = planted()
    return spark.createDataFrame(frame.rows(), frame.columns).repartition(3)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_shipped_and_on_the_cluster(
    spark: Any, layout: str, here: plar.Selection, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SparkEngine(session=spark, layout=layout, partitions=3) as engine:
        assert facts(plar.select(planted(), "t", engine=engine)) == facts(here)
        rows = on_cluster(spark)
        for given in ("each", "all"):
            expected = plar.select(planted(), "t", given=given, include=["a9"], max_columns=4)
            selection = plar.select(rows, "t", given=given, include=["a9"], max_columns=4, engine=engine)
            assert facts(selection) == facts(expected)
        # as if the table were large
        monkeypatch.setattr(stratification_module, "_MAX_CELLS_KEPT", 0)
        monkeypatch.setattr(stratification_module, "MAX_CELLS_AT_ONCE", 3 * 400)
        assert facts(plar.select(rows, "t", engine=engine)) == facts(here)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_large_columns_are_divided_among_the_tasks(
    spark: Any, layout: str, here: plar.Selection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(column_blocks, "_MAX_ROWS_ON_OFFER", 0)
    with SparkEngine(session=spark, layout=layout) as engine:
        assert facts(plar.select(on_cluster(spark), "t", engine=engine)) == facts(here)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_one_job_for_each_pass_and_no_shuffle(spark: Any, tmp_path: Path, layout: str, here: plar.Selection) -> None:
    path = tmp_path / "c.checkpoint"
    plar.select(planted(), "t", checkpoint=path)
    n_passes = sum("pass" in record for record in read_records(path))
    # the first pass, those of the first part, of which the last finds nothing, and one beside each column
    n_of_first_part = sum(step.given == here.columns[:i] for i, step in enumerate(here.steps))
    assert n_passes == 1 + n_of_first_part + len(here.columns)

    context = spark.sparkContext

    def count_jobs(phase: str, done: int, total: int) -> None:
        if phase == "select":  # the table is read, and columns are laid out
            context.setJobGroup(f"select {layout}", "select")

    with SparkEngine(session=spark, layout=layout) as engine:
        try:
            selection = plar.select(on_cluster(spark), "t", engine=engine, progress=count_jobs)
        finally:
            context.setLocalProperty("spark.jobGroup.id", None)
    assert facts(selection) == facts(here)
    tracker = context.statusTracker()
    jobs = tracker.getJobIdsForGroup(f"select {layout}")
    assert len(jobs) == n_passes + 1  # the last one counts the classes of the target, for the result
    store = context._jsc.sc().statusStore()
    stages = [store.lastStageAttempt(stage) for job in jobs for stage in tracker.getJobInfo(job).stageIds]
    assert sum(stage.shuffleWriteBytes() for stage in stages if str(stage.status()) == "COMPLETE") == 0


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("error", [None, KeyboardInterrupt, ZeroDivisionError])
def test_nothing_stays_persisted(spark: Any, layout: str, error: type[BaseException] | None) -> None:
    rows = on_cluster(spark)
    rows.count()
    before = spark.sparkContext._jsc.getPersistentRDDs().size()

    def fail(step: Any) -> None:
        if error is not None:
            raise error

    def select() -> None:
        with SparkEngine(session=spark, layout=layout) as engine:
            plar.select(rows, "t", engine=engine, on_step=fail, max_columns=2)

    if error is None:
        select()
    else:
        expected = plar.Interrupted if error is KeyboardInterrupt else error
        with pytest.raises(expected):
            select()
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == before
