"""The Spark engine on a real Spark: everything that a result says is what the local engine says."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plar
from plar.engines import SparkEngine
from plar.engines.spark import block_files, column_blocks, column_groups, columns_layout, granulate, session
from plar.engines.spark.rows_layout import RowsEvaluation
from plar.errors import Given
from plar.options import ReadOptions
from support import oracle
from support.comparing import facts
from support.environment import QUICK_START, TESTS, TIC_TAC_TOE, TURNS, nightly, no_spark, with_support
from support.real import HERE, granules
from support.strategies import Sample, tables

pytestmark = pytest.mark.skipif(no_spark() is not None, reason=str(no_spark()))
MEASURES = list(oracle.MEASURES)
LAYOUTS = ["columns", "rows"]


def same(data: Any, engine: SparkEngine, **options: Any) -> plar.Reduct:
    on_spark = plar.reduce(data, engine=engine, **options)
    assert on_spark.engine == "spark"
    assert facts(on_spark) == facts(plar.reduce(data, engine="local", **options))
    return on_spark


@pytest.mark.parametrize("name", HERE if TURNS > 1 else HERE[::3])
def test_real_tables(spark: Any, name: str) -> None:
    table, place = granules(name), HERE.index(name)
    ways = [("columns", MEASURES[place % 4]), ("rows", MEASURES[(place + 1) % 4])]
    for layout, measure in ways if TURNS > 1 else ways[place % 2 :][:1]:
        with shipped(spark, layout=layout, partitions=2) as engine:
            same(table, engine, measure=measure)


@contextmanager
def shipped(spark: Any, **options: Any) -> Iterator[SparkEngine]:
    with SparkEngine(session=spark, **options) as engine:
        yield engine


@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=2 * TURNS)
@given(sample=tables(), measure=st.sampled_from(oracle.MEASURES), partitions=st.sampled_from([1, 2, 5]))
def test_any_table(spark: Any, layout: str, sample: Sample, measure: str, partitions: int) -> None:
    with shipped(spark, layout=layout, partitions=partitions) as engine:
        same(plar.granulate(sample.frame(), **sample.roles), engine, measure=measure)


def small_table() -> plar.Granules:
    rng = np.random.default_rng(3)
    return plar.granulate(rng.integers(0, 3, (120, 6)), y=rng.integers(0, 3, 120))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_own_measure(spark: Any, layout: str) -> None:
    def minority(counts: Any) -> Any:
        return counts.sum() - counts.max()

    own = plar.Measure("minority", minority, normaliser=lambda n: n, drop_pure=True)
    table = small_table()
    if layout == "columns":  # in lanes, which know only our own measures
        X = np.random.default_rng(9).integers(0, 3, (7_000, 20))
        table = plar.granulate(X, y=(X[:, 2] + X[:, 5] * X[:, 7]) % 3)
    with shipped(spark, layout=layout, partitions=2) as engine:
        same(table, engine, measure=own, max_attributes=2)


@pytest.mark.parametrize("layout", LAYOUTS if TURNS > 1 else ["rows"])
def test_options(spark: Any, layout: str) -> None:
    table = small_table()
    with shipped(spark, layout=layout, partitions=2) as engine:
        same(table, engine, include=["x5"], tolerance=0.3, minimal=True)
        for ask in (plar.significance, plar.theta):
            assert ask(table, ["x1", "x4"], engine=engine) == ask(table, ["x1", "x4"])
        assert plar.core(table, epsilon=0.1, measure="LCE", engine=engine) == plar.core(
            table, epsilon=0.1, measure="LCE"
        )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_merging_proportional_classes_changes_nothing_and_nearly_proportional_ones_do(spark: Any, layout: str) -> None:
    # the classes of U/C with counts (1000, 1001), (2000, 2002) and (1001, 1002)
    table = plar.granulate(
        {
            "b": [0, 0, 0, 0, 1, 1],
            "a": [0, 0, 1, 1, 2, 2],
            "w": [1000, 1001, 2000, 2002, 1001, 1002],
            "d": [0, 1] * 3,
        },
        "d",
        weights="w",
    )
    with shipped(spark, layout=layout, partitions=3) as engine:
        assert same(table, engine).attributes == ("b",)


@pytest.mark.parametrize("layout", LAYOUTS if TURNS > 1 else ["rows"])
@nightly
def test_more_columns_than_rows(spark: Any, layout: str) -> None:
    rng = np.random.default_rng(4)
    with shipped(spark, layout=layout, partitions=2) as engine:
        table = plar.granulate(rng.integers(0, 2, (12, 200)), y=rng.integers(0, 3, 12))
        assert same(table, engine).attributes


@pytest.mark.filterwarnings("ignore:The numbers of:plar.PlarWarning")
@pytest.mark.parametrize("layout", LAYOUTS if TURNS > 1 else ["columns"])
def test_lanes_and_many_values(spark: Any, layout: str) -> None:
    rng = np.random.default_rng(5)
    n = 9_000 if layout == "columns" else 3_000
    X = np.column_stack([rng.integers(0, 4, (n, 20)), rng.integers(0, 5_000, n), rng.integers(0, 300, n)])
    y = (X[:, 3] + X[:, 7] * X[:, 11] + (rng.random(n) < 0.1)) % 5
    with shipped(spark, layout=layout, partitions=3) as engine:
        same(plar.granulate(X, y=y), engine, measure="CCE", max_attributes=2)


@pytest.mark.filterwarnings("ignore:The numbers of:plar.PlarWarning")
@pytest.mark.parametrize("on_many_cores", [False, True])
def test_large_blocks_are_divided_among_the_tasks(
    spark: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, on_many_cores: bool
) -> None:
    def minority(counts: Any) -> Any:
        return counts.sum() - counts.max()

    monkeypatch.setattr(column_blocks, "_MAX_ROWS_ON_OFFER", 0)  # as if the columns were large
    if on_many_cores:
        monkeypatch.setattr(column_groups, "_MANY_CORES", 1)
        monkeypatch.setattr(column_groups, "_MIN_ROWS_PER_CORE", 1)
    rng = np.random.default_rng(6)
    n = 9_000
    X = np.column_stack([rng.integers(0, 4, (n, 140)), rng.integers(0, 5_000, n), rng.integers(0, 300, n)])
    y = (X[:, 3] + X[:, 7] * X[:, 11] + (rng.random(n) < 0.1)) % 5
    path = tmp_path / "table.parquet"
    pl.DataFrame(X).with_columns(d=y).write_parquet(path)
    granules = plar.granulate(path, "d")
    own = plar.Measure("minority", minority, normaliser=lambda n: n, drop_pure=True)
    with shipped(spark, layout="columns") as engine:
        opened: Any = engine.open(granules, plar.measures.SCE)
        dealt = opened._shipped.shares
        assert len(dealt) == (2 if on_many_cores else 1) * spark.sparkContext.defaultParallelism
        assert any(share.high - share.low < share.of for shares in dealt for share in shares)
        work = [sum((share.high - share.low) / share.of for share in shares) for shares in dealt]
        assert work == pytest.approx(
            [5 * size / (8 if on_many_cores else 2) for size in ([3, 3, 1, 1] if on_many_cores else [1, 1])]
        )
        for measure in ("CCE", "PR", own):
            same(granules, engine, measure=measure, max_attributes=2)
        same(path, engine, decision="d", max_attributes=2)


@nightly
def test_a_huge_class_stays_where_it_is(spark: Any) -> None:
    rng = np.random.default_rng(6)
    X = rng.integers(0, 2, (400, 9))
    X[:, 0] = np.where(np.arange(400) < 300, 0, np.arange(400))  # one class of 300 rows, 100 of one
    X[:, 1] = np.arange(400) % 20
    y = rng.integers(0, 2, 400)
    table = plar.granulate(X, y=y)
    with shipped(spark, layout="rows", partitions=4) as engine:
        here, there = plar.engines.LocalEngine().open(table, plar.measures.SCE), engine.open(table, plar.measures.SCE)
        assert isinstance(there, RowsEvaluation)
        homes = []
        for a in (0, 2, 1, 3):
            rest = [b for b in range(9) if b != a]
            assert there.with_each(rest) == here.with_each(rest)
            assert there.select(a) == here.select(a)
            assert there.unsettled_objects == here.unsettled_objects
            homes.append((len(there._whole), bool(there._spread)))
        assert homes[0] == (1, True)  # a class of more than a quarter of all rows does not move
        assert not homes[-1][1]  # but falls apart in the end


@nightly
def test_empty_partitions(spark: Any) -> None:
    frame = pl.DataFrame({"a": [1, 2, 1], "b": ["x", "x", "y"], "d": [True, False, True]})
    rows = spark.createDataFrame(frame.rows(), frame.columns).repartition(4)
    with shipped(spark, partitions=4) as engine:
        assert facts(plar.reduce(rows, "d", engine=engine)) == facts(plar.reduce(frame, "d"))
    with shipped(spark, layout="rows", partitions=4) as engine:
        same(plar.granulate(frame, "d"), engine, max_attributes=1)


TYPED = {
    "a.b": [1, 2, 2, 3, 3, 3, 1, 2],
    "A": ["x", "y", None, "x", "y", " x", "x", ""],
    "a": [0.5, float("nan"), 0.0, -0.0, None, 0.5, 1e300, 0.0],
    "when": [date(2026, 1, 1 + i % 3) for i in range(8)],
    "w": [1, 2, 3, 0, 1, 1, 2, 1],
    "d`": [True, False, None, True, False, True, True, False],
}
SCHEMA = "`a.b` int, `A` string, a double, when date, w int, `d``` boolean"


@pytest.mark.filterwarnings("ignore:The decision is missing:plar.PlarWarning")
def test_spark_dataframe(spark: Any) -> None:
    rows = spark.createDataFrame(list(zip(*TYPED.values(), strict=True)), SCHEMA).repartition(3)
    frame = pl.DataFrame(TYPED)
    for options in ({}, {"weights": "w"}, {"missing": "drop"}, {"na": "x", "conditions": ["A", "a.b"]}):
        reduct = plar.reduce(rows, "d`", max_attributes=2, **options)
        assert reduct.engine == "spark"
        assert facts(reduct) == facts(plar.reduce(frame, "d`", max_attributes=2, **options))
    assert reduct.transform(rows).columns == ["a.b", "A", "d`"]
    selected = [(row[0], row[1], row[5]) for row in rows.collect()]
    assert sorted(map(str, selected)) == sorted(str(tuple(row)) for row in reduct.transform(rows).collect())


COLLATIONS = ["UTF8_LCASE", "UTF8_BINARY_RTRIM", "UNICODE_CI"]
TEXT_TYPES = ["string", *(f"string collate {name}" for name in COLLATIONS), "char(4)", "varchar(4)"]


@pytest.fixture
def text_types(spark: Any) -> Iterator[list[str]]:
    """The types of text that this Spark has."""
    import pyspark

    preserved = "spark.sql.preserveCharVarcharTypeInfo"
    if int(pyspark.__version__.partition(".")[0]) < 4:
        yield ["string"]
        return
    spark.conf.set(preserved, "true")
    yield TEXT_TYPES
    spark.conf.unset(preserved)


def test_text_compares_by_its_characters_whatever_its_type(spark: Any, text_types: list[str]) -> None:
    cells = product(["a", "A", "a ", "?", None], ["x", "X"], ["y", "Y"])
    local = pl.DataFrame(list(cells), schema=["a", "b", "d"], orient="row")
    ways: list[dict[str, Any]] = [{}, {"na": "A", "missing": "drop"}]
    expected = [plar.granulate(local, "d", **options).fingerprint() for options in ways]
    for kind in text_types:
        rows = spark.createDataFrame(local.rows(), f"a {kind}, b {kind}, d {kind}").repartition(2)
        granules = [plar.granulate(rows, "d", **options) for options in ways]
        assert [there.fingerprint() for there in granules] == expected, kind


def test_bins_of_text_compare_by_its_characters(spark: Any, text_types: list[str], tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,d\n1,0\ngone,1\n3,1\n")
    reduct = plar.reduce(path, "d", bins={"a": [1.5]}, na="gone")
    for kind in text_types:
        rows = spark.createDataFrame([("1", 0), ("gone", 1), ("3", 1)], f"a {kind}, d int")
        assert [row.a for row in reduct.transform(rows, output="bins").collect()] == [0, None, 1]
        assert reduct.transform(rows).schema == rows.schema
        other = spark.createDataFrame([("Gone", 1)], f"a {kind}, d int")
        with pytest.raises(Exception, match="'a' is cut into bins, but holds a non-number: Gone"):
            reduct.transform(other, output="bins").collect()


@pytest.mark.filterwarnings("ignore:The decision is missing:plar.PlarWarning")
def test_granules_stay_on_the_cluster_for_all_measures(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # dictionaries of more than 2 values do not fit this driver
    monkeypatch.setattr(granulate, "MAX_VALUES_OF_PART", 2)
    rows = spark.createDataFrame(list(zip(*TYPED.values(), strict=True)), SCHEMA).repartition(3)
    on_cluster: Any = plar.granulate(rows, "d`", engine=SparkEngine(session=spark, layout="columns"))
    frame = pl.DataFrame(TYPED)
    assert (len(on_cluster), on_cluster.n_objects, on_cluster.n_decisions) == (8, 8, 3)
    for measure in ("SCE", "LCE"):
        assert facts(plar.reduce(on_cluster, measure=measure)) == facts(plar.reduce(frame, "d`", measure=measure))
    coarse = plar.reduce(on_cluster, conditions=["A", "w"], engine=SparkEngine(session=spark, layout="rows"))
    assert facts(coarse) == facts(plar.reduce(frame, "d`", conditions=["A", "w"]))
    assert "8 distinct of 8 rows" in repr(on_cluster)
    on_cluster.unpersist()


def test_files_that_spark_reads(spark: Any, tmp_path: Path) -> None:
    frame = pl.read_csv(TIC_TAC_TOE).gather_every(16)
    here = plar.granulate(frame, "x_wins")
    engine = SparkEngine(session=spark, layout="columns")
    text = tmp_path / "t.csv"
    quoted = [",".join(f'"{v}"' if i % 7 == 0 else f" {v} " for v in row) for i, row in enumerate(frame.rows())]
    text.write_text("\n".join([",".join(frame.columns), *quoted]))
    frame.write_parquet(tmp_path / "t.parquet")
    frame.write_ndjson(tmp_path / "t.ndjson")
    many = tmp_path / "many"
    many.mkdir()
    for k in range(3):
        frame[20 * k : 20 * k + 20].write_csv(many / f"{k}.csv")
    assert len(frame) == 60
    for path in (text, tmp_path / "t.parquet", tmp_path / "t.ndjson", many, f"file://{many}/*.csv"):
        on_cluster: Any = plar.granulate(path, "x_wins", engine=engine)
        for fact in ("conditions", "decision", "cardinalities", "n_decisions", "n_objects"):
            assert getattr(on_cluster, fact) == getattr(here, fact), (path, fact)
        assert len(on_cluster) == len(here)
        on_cluster.unpersist()
    reduct = plar.reduce(text, "x_wins", engine=engine, max_attributes=2)
    assert facts(reduct) == facts(plar.reduce(frame, "x_wins", max_attributes=2))
    bare = tmp_path / "bare.data"
    bare.write_text("\n".join(";".join(row) for row in frame.rows()))
    core = plar.core(engine.read(bare, ReadOptions(header=False)), -1, engine=engine)
    assert core == tuple(f"x{frame.columns.index(name)}" for name in plar.core(frame, "x_wins"))
    blanks = tmp_path / "blanks.txt"
    blanks.write_text("a  b d\n1  x 0\n2  x 1\n")
    assert plar.reduce(blanks, "d", engine=engine).attributes == ("a",)  # read here, shipped out


def test_one_iteration_is_at_most_two_jobs_and_no_shuffle(spark: Any) -> None:
    table = plar.granulate(TIC_TAC_TOE, "x_wins")
    context, store = spark.sparkContext, spark.sparkContext._jsc.sc().statusStore()
    for layout in LAYOUTS:
        with shipped(spark, layout=layout, partitions=3) as engine:
            evaluation = engine.open(table, plar.measures.SCE)
            evaluation.select(4, 0, 8)
            evaluation.with_each([1])  # the repartition of the rows layout
            context.setJobGroup(f"test {layout}", "one iteration")
            evaluation.with_each([1, 2, 3, 5, 6, 7])
            evaluation.select(2)
            context.setLocalProperty("spark.jobGroup.id", None)
            tracker = context.statusTracker()
            jobs = tracker.getJobIdsForGroup(f"test {layout}")
            assert 1 <= len(jobs) <= 2
            stages = {stage for job in jobs for stage in tracker.getJobInfo(job).stageIds}
            ran = [store.lastStageAttempt(stage) for stage in stages]
            assert sum(s.shuffleWriteBytes() for s in ran if str(s.status()) == "COMPLETE") == 0


def test_a_given_session_is_left_as_it_was(spark: Any) -> None:
    from pyspark import SparkFiles

    rows = spark.createDataFrame([(1, 0), (2, 1)], "a int, d int")
    assert rows.count() == 2
    before = dict(spark.sparkContext.getConf().getAll()), spark.conf.get("spark.sql.shuffle.partitions")
    cached = spark.sparkContext._jsc.getPersistentRDDs().size()
    files = set(Path(SparkFiles.getRootDirectory()).iterdir())
    assert plar.reduce(rows, "d").attributes == ("a",)
    for layout in ("auto", "columns"):
        with SparkEngine(session=spark, layout=layout) as engine:
            plar.reduce({"a": [1, 2], "d": [0, 1]}, "d", engine=engine)
    assert rows.count() == 2
    assert (dict(spark.sparkContext.getConf().getAll()), spark.conf.get("spark.sql.shuffle.partitions")) == before
    assert spark.sparkContext._jsc.getPersistentRDDs().size() <= cached  # Spark itself drops what nobody holds
    assert set(Path(SparkFiles.getRootDirectory()).iterdir()) == files


def test_nothing_stays_when_the_columns_cannot_be_laid_out(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark import SparkFiles

    def full(block: Any, token: str) -> Any:
        stored = block_files.store(block, token)
        if isinstance(block, block_files.StoredBlock) and block.share.task:
            raise OSError("No space left on device")
        return stored

    monkeypatch.setattr(columns_layout, "store", full)
    rows = spark.createDataFrame([(i % 7, i % 5, i % 3, i % 2) for i in range(70)], "a int, b int, c int, d int")
    cached = spark.sparkContext._jsc.getPersistentRDDs().size()
    files = set(Path(SparkFiles.getRootDirectory()).iterdir())
    with shipped(spark, layout="columns") as engine, pytest.raises(plar.PlarError, match="lay the columns out"):
        plar.reduce(rows, "d", engine=engine)
    assert spark.sparkContext._jsc.getPersistentRDDs().size() <= cached
    assert set(Path(SparkFiles.getRootDirectory()).iterdir()) == files


def test_blocks_that_an_executor_does_not_see_are_broadcast(spark: Any) -> None:
    from plar.engines.spark.shipped_columns import ShippedEvaluation

    table = plar.granulate(TIC_TAC_TOE, "x_wins")
    here = plar.engines.LocalEngine().open(table, plar.measures.SCE)
    with shipped(spark, layout="columns") as engine:
        there = engine.open(table, plar.measures.SCE)
        assert isinstance(there, ShippedEvaluation)
        rest = list(range(len(table.conditions)))
        assert there.with_each(rest) == here.with_each(rest)
        for file in there._shipped._files:  # as if this disk were another machine's
            Path(file.path).unlink()
        there.select(4)
        here.select(4)
        for _ in range(2):
            assert there.with_each(rest) == here.with_each(rest)


def test_blocks_that_are_lost_twice_are_an_error(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A candidate whose column nobody scores would seem to have the least Θ."""
    from plar.engines.spark.shipped_columns import ShippedEvaluation

    with shipped(spark, layout="columns") as engine:
        evaluation = engine.open(plar.granulate(TIC_TAC_TOE, "x_wins"), plar.measures.SCE)
        assert isinstance(evaluation, ShippedEvaluation)
        blocks = evaluation._shipped
        for file in blocks._files:
            Path(file.path).unlink()
        monkeypatch.setattr(blocks, "remade", lambda: blocks.stored)
        with pytest.raises(plar.PlarError, match="does not see its columns"):
            evaluation.with_each([0, 1, 2])


def mapped_by_workers(spark: Any) -> list[int]:
    """How many files of plar's two workers have in memory; both look at once."""

    def look(_: Any) -> list[int]:
        return [len(set(re.findall(r"/plar-\S+", Path("/proc/self/maps").read_text())))]

    return list(spark.sparkContext.parallelize(range(2), 2).barrier().mapPartitions(look).collect())


def test_neither_workers_nor_the_driver_keep_anything_of_a_step(spark: Any) -> None:
    rng = np.random.default_rng(2)
    table = plar.granulate(rng.integers(0, 3, (3_000, 200)), y=rng.integers(0, 3, 3_000))
    broadcasts = Path(spark.sparkContext._temp_dir)
    before = set(broadcasts.iterdir())
    with shipped(spark, layout="columns") as engine:
        evaluation = engine.open(table, plar.measures.SCE)
        opened = set(broadcasts.iterdir())
        assert len(opened - before) == 1  # the decisions and counts
        for a in (0, 1):
            evaluation.with_each(list(range(2, 200)))
            evaluation.select(a)
        assert mapped_by_workers(spark) == [0, 0]
        assert set(broadcasts.iterdir()) == opened
    assert set(broadcasts.iterdir()) <= before


def test_the_clause_finder_leaves_no_broadcast(spark: Any) -> None:
    cells = [(0, 0, 1, 0), (0, 1, 0, 1), (1, 0, 0, 1), (1, 1, 1, 2)]
    rows = spark.createDataFrame(cells, "a int, b int, c int, d int").coalesce(1)
    folder = Path(spark.sparkContext._temp_dir)
    engine = SparkEngine(session=spark, layout="rows", partitions=1)
    with plar.granulate(rows, "d", engine=engine) as on_cluster:  # type: ignore[attr-defined]
        before = set(folder.iterdir())
        assert plar.reduce(on_cluster, search="smallest", engine=engine).attributes == ("a", "b")
        with pytest.raises(plar.ParameterError, match="in every reduct"):
            plar.reduce(on_cluster, search="smallest", exclude=["a", "b"], engine=engine)
        assert set(folder.iterdir()) <= before


def test_the_daemon_has_one_thread_when_it_forks() -> None:
    script = """
import os, sys
from plar import spark_daemon
spark_daemon._without_zips()
from plar.engines.spark.warm import load_kernels
load_kernels()
import pyspark.daemon, pyspark.worker
print(len(os.listdir("/proc/self/task")), [name for name in ("polars", "pyarrow", "pandas") if name in sys.modules])
"""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, timeout=300)
    assert ran.stdout == "1 []\n", ran.stderr


def test_watch_is_told(spark: Any) -> None:
    seen: list[Any] = []
    rng = np.random.default_rng(8)
    table = plar.granulate(rng.integers(0, 4, (2_000, 500)), y=rng.integers(0, 3, 2_000))
    with shipped(spark, watch=seen.append, partitions=4) as engine:
        same(table, engine, max_attributes=1)
    assert all(0 <= job.done <= job.total <= 4 for job in seen)
    assert {job.candidates for job in seen} <= {500}


# -- what goes wrong ---------------------------------------------------------------------------------------


def test_bad_rows_are_one_line(spark: Any) -> None:
    rows = spark.createDataFrame([(1, 0, -1), (2, 1, 3)], "a int, d int, w int")
    with pytest.raises(plar.TableError, match=r"The weight in column 'w' is -1\. Weights are whole numbers"):
        plar.reduce(rows, "d", weights="w")
    with pytest.raises(plar.TableError, match=r"Missing values in 'a' \(2\)\. Pass missing="):
        plar.reduce(spark.createDataFrame([(None, 0), (None, 1), (3, 1)], "a int, d int"), "d", missing="error")
    with pytest.raises(plar.TableError, match=r"No row is left"):
        plar.reduce(spark.createDataFrame([], "a int, d int"), "d")
    with pytest.raises(plar.TableError, match=r"No row is left"):
        plar.reduce(spark.createDataFrame([(None, 0)], "a int, d int"), "d", missing="drop")
    with pytest.raises(plar.TableError, match=r"Column 'a' holds array<int>\. Only flat values compare"):
        plar.reduce(spark.createDataFrame([([1], 0)], "a array<int>, d int"), "d")
    with pytest.raises(plar.TableError, match=r"y= cannot be given separately"):
        plar.reduce(rows, y=[0, 1])
    with pytest.raises(plar.TableError, match=r"on a Spark cluster\. Use engine='spark'"):
        plar.reduce(rows, "d", engine="local")
    with pytest.raises(plar.UnknownNameError, match=r"Unknown column 'b'\. Choose one of: a, d, w"):
        plar.reduce(rows, "d", include="b")


def test_errors_of_tasks_keep_their_options(spark: Any) -> None:
    message = ("Pass ", Given("encoding", "latin-1"), " or ", Given("na"), ".")

    def fail(_: Any) -> Any:
        with session.errors_in_parts():
            raise plar.TableError(*message)

    rows = spark.range(1)
    with session.quiet():
        runs = rows.rdd.map(fail).collect, rows.mapInArrow(fail, "a int").collect
    for run in runs:
        with pytest.raises(plar.TableError) as caught, session.explained("fail"):
            run()
        assert caught.value.message == message


class Harmful:
    """A pickle that writes a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_values_that_look_like_errors_of_tasks_run_no_code(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "ran"
    for data in (pickle.dumps(Harmful(path)), b'["annotations", []]', b"[]", b"1"):
        value = f"x\nplar-error:{b64encode(data).decode()}\n"
        rows = spark.createDataFrame([(value,)], "a string").selectExpr("raise_error(a)")
        with pytest.raises(plar.PlarError, match="Spark could not fail"), session.explained("fail"):
            rows.collect()
        assert not path.exists()


def test_bad_files_are_one_line(spark: Any, tmp_path: Path) -> None:
    engine = SparkEngine(session=spark)
    with pytest.raises(plar.TableError, match=r"No such file: .*nothing\.csv"):
        plar.reduce(tmp_path / "nothing.csv", "d", engine=engine)
    short = tmp_path / "short.csv"
    short.write_text("a,b,d\n1,2,3\n1,2\n")
    with pytest.raises(plar.PlarError, match=r"^[^\n]*$"):
        plar.reduce(short, "d", engine=engine)


def test_bad_options_are_one_line() -> None:
    with pytest.raises(plar.UnknownNameError, match=r"Unknown layout .diagonal.\. Choose one of: auto, driver, "):
        SparkEngine(layout="diagonal")
    with pytest.raises(plar.ParameterError, match=r"'partitions' .* None or an integer of at least 1\. Got 0"):
        SparkEngine(partitions=0)
    with pytest.raises(plar.ParameterError, match=r"spark://host:7077"):
        SparkEngine(master="spark://host").open(plar.granulate({"a": [1], "d": [0]}, "d"), plar.measures.PR)
    with pytest.raises(
        plar.EngineUnavailable, match=r"master 'spark://127\.0\.0\.1:9' does not answer \(Connection ref"
    ):
        session.start_session("spark://127.0.0.1:9", {})


def test_no_java_on_the_command_line(tmp_path: Path) -> None:
    failed = plar_command("core", str(TIC_TAC_TOE), "-d", "x_wins", "--engine", "spark", JAVA_HOME=str(tmp_path))
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr.startswith("Error: The engine 'spark' needs Java 17 or newer and JAVA_HOME is")
    assert failed.stderr.endswith("Ready here: local.\n")
    assert failed.stderr.count("\n") == 1


JAVA_TOO_OLD = """
import sys
from pathlib import Path
import plar
java = Path(sys.argv[1], "bin", "java")
for printed in ("", "openjdk version 11.0.2 2019-01-15"):
    if printed:
        java.parent.mkdir()
        java.write_text(f"#!/bin/sh\\necho '{printed}' | sed 's/11.0.2/\\"11.0.2\\"/' >&2\\n")
        java.chmod(0o755)
    try:
        plar.reduce({"a": [1], "d": [0]}, "d", engine="spark")
    except plar.EngineUnavailable as error:
        print(error)
"""


def test_java_missing_or_too_old(tmp_path: Path) -> None:
    # in a process of its own: where a JVM runs already, no Java is looked for
    command = [sys.executable, "-c", JAVA_TOO_OLD, str(tmp_path)]
    environment = {**os.environ, "JAVA_HOME": str(tmp_path)}
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=200)
    missing, old = ran.stdout.splitlines()
    assert re.search(r"needs Java 17 or newer and JAVA_HOME is .* no bin/java; install", missing)
    assert re.search(r"needs Java 17 or newer and .* is Java 11; install", old)


def plar_command(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "plar", *words]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=200)


def quick_start() -> list[str]:
    return [word for key, value in QUICK_START.items() for word in ("--conf", f"{key}={value}")]


def test_command_line(tmp_path: Path) -> None:
    import json

    reduced = tmp_path / "reduced.parquet"
    words = ["reduce", str(TIC_TAC_TOE), "-d", "x_wins", "--json", "--max-attributes", "1", *quick_start()]
    there = plar_command(*words, "--engine", "spark", "--master", "local[1]", "-o", str(reduced))
    assert there.returncode == 0, there.stderr
    assert there.stderr == f"Wrote {reduced}.\n"  # and not a word from Spark
    result = json.loads(there.stdout)
    assert result["attributes"] == list(plar.reduce(TIC_TAC_TOE, "x_wins", max_attributes=1).attributes)
    assert pl.read_parquet(reduced / "*.parquet").shape == (958, 2)


def python_without_plar() -> Path:
    bare = Path(sys.base_prefix, "bin", "python3")
    if subprocess.run([bare, "-I", "-c", "import plar"], capture_output=True, cwd="/").returncode == 0:
        pytest.skip(f"{bare} has plar installed")
    return bare


@nightly
def test_executors_without_plar() -> None:
    bare = python_without_plar()
    words = ["core", str(TIC_TAC_TOE), "-d", "x_wins", "--engine", "spark", "--conf", f"spark.pyspark.python={bare}"]
    failed = plar_command(*words, *quick_start(), PYTHONPATH="")
    assert failed.returncode == 1
    assert failed.stdout == ""
    assert failed.stderr.startswith("Error: The Spark executors have no 'plar'. Install plar")
    assert failed.stderr.count("\n") == 1


USERS_SESSION = """
import sys
sys.path.insert(0, sys.argv[1])
from pyspark.sql import SparkSession
import plar
from plar.engines import SparkEngine
from plar.spark import ReductSelector
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
rows = spark.range(2).selectExpr("id AS a", "id AS label")
local = {"a": [1, 2, 3], "label": [0, 1, 0]}
for call in (
    lambda: plar.reduce(rows, "label"),
    lambda: ReductSelector().fit(rows),
    lambda: plar.core(sys.argv[2], "x_wins", engine="spark"),
    lambda: plar.core(local, "label", engine=SparkEngine(session=spark, layout="columns")),
    lambda: plar.baselines.spark_ar(local, "label", session=spark),
):
    try:
        call()
    except plar.EngineUnavailable as error:
        print(error)
"""


def test_a_users_session_whose_workers_lack_plar() -> None:
    source = Path(plar.__file__).parent.parent  # for the driver alone: the workers get PYTHONPATH, too
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"PYSPARK_PYTHON": str(python_without_plar())}
    command = [sys.executable, "-c", USERS_SESSION, str(source), str(TIC_TAC_TOE)]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=200)
    lines = ran.stdout.splitlines()
    assert len(lines) == 5, ran.stderr[-3000:]
    for line in lines:
        assert re.fullmatch(r"The Spark executors have no 'plar'\. Install plar .* to a Python that has it\.", line)


SESSIONS_OF_ITS_OWN = """
import gc, sys, threading
import plar
from plar.engines.spark import engine
from pyspark.sql import SparkSession

def granulated(decision="x_wins"):
    return plar.granulate(sys.argv[1], decision, engine="spark")

def runs():
    return SparkSession.getActiveSession() is not None

small = granulated()
print(type(small).__name__, len(small), runs())

engine._MAX_BYTES_ON_DRIVER = 0  # so that granules stay on the cluster
with granulated() as large:
    print(type(large).__name__, len(large), runs())
print(runs())

def collect():
    gc.collect()
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()

try:
    plar.core(large)
except plar.TableError as error:
    print(error)

coarse = granulated().coarsen(["top_left"])
gc.collect()
print(len(coarse), runs())
other = granulated()  # in the same session
del coarse
collect()
print(len(plar.core(other)), runs())
del other
collect()
print(runs())

try:
    granulated("nothing")
except plar.UnknownNameError:
    print(runs())

with plar.engines.SparkEngine(conf=None) as given:
    print(given.spark().sparkContext.master, runs())
"""


def test_a_session_that_was_started_for_granules_stops_with_them() -> None:
    environment = {**os.environ, "MASTER": "local[1]"}
    command = [sys.executable, "-c", SESSIONS_OF_ITS_OWN, str(TIC_TAC_TOE)]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    expected = [
        "Granules 958 False",
        "SparkGranules 958 True",
        "False",
        "These granules were released: unpersist was called. Granulate the table again.",
        "6 True",
        "0 True",
        "False",
        "False",
        "local[1] True",
    ]
    assert ran.stdout.splitlines() == expected, ran.stderr[-3000:]


def test_the_running_session_is_used_and_left_running(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))  # which has none: a running session needs no other
    expected = plar.core(TIC_TAC_TOE, "x_wins")
    assert plar.core(TIC_TAC_TOE, "x_wins", engine="spark") == expected
    assert plar.core(pl.read_csv(TIC_TAC_TOE), "x_wins", engine="spark") == expected
    rows = spark.createDataFrame([(1, 0), (2, 1)], "a int, d int")
    assert plar.reduce(rows, "d").attributes == ("a",)
    for other in (SparkEngine(master="local[1]"), SparkEngine(conf=QUICK_START)):
        with other, pytest.raises(plar.ParameterError, match=r"session on 'local\[2\]' already runs in this process"):
            other.spark()
    assert rows.count() == 2


def test_cluster_of_processes_one_of_which_is_killed() -> None:
    import json

    script = TESTS / "support" / "spark_cluster.py"
    ran = subprocess.run([sys.executable, str(script)], env=with_support(), capture_output=True, text=True, timeout=400)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {"differs": [], "killed": 1}
