"""Files that the tasks of a cluster read: the same granules as on this machine, or the same one line."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import fsspec
import numpy as np
import polars as pl
import pytest

import plar
from plar.engines import SparkEngine
from plar.engines.spark import file_parts, granulate
from plar.input.tables.remote import RemoteFiles
from plar.input.tables.source import ColumnChoice
from plar.input.tables.spark import SharedFiles
from plar.input.tables.table import open_source, selectable
from plar.options import ReadOptions
from support.comparing import facts
from support.environment import no_spark

pytestmark = pytest.mark.skipif(no_spark() is not None, reason=str(no_spark()))
RNG = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of some hundred bytes, so that small files are divided too."""
    monkeypatch.setattr(file_parts, "_MIN_PART_BYTES", 200)


def frame(n: int = 400) -> pl.DataFrame:
    x = RNG.integers(0, 5, (n, 4))
    columns = {f"c{j}": [f"v{v}" for v in x[:, j]] for j in range(3)}
    return pl.DataFrame(columns | {"n": x[:, 3], "d": (x[:, 0] * x[:, 1] + x[:, 3]) % 3})


def engine_of(spark: Any, layout: str = "columns") -> SparkEngine:
    return SparkEngine(session=spark, layout=layout)


def same(spark: Any, path: Any, decision: Any = "d", **options: Any) -> None:
    for layout in ("driver", "columns"):
        reduct = plar.reduce(path, decision, engine=engine_of(spark, layout), **options)
        assert facts(reduct) == facts(plar.reduce(path, decision, **options)), layout


def test_every_format(spark: Any, tmp_path: Path) -> None:
    table = frame()
    table.write_csv(tmp_path / "t.csv")
    table.write_parquet(tmp_path / "t.parquet", row_group_size=50)
    table.write_ipc(tmp_path / "t.arrow", record_batch_size=50)
    table.write_ndjson(tmp_path / "t.ndjson")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes()))
    lines = ["@relation t", *(f"@attribute {name} string" for name in table.columns), "@data"]
    (tmp_path / "t.arff").write_text("\n".join([*lines, *(",".join(map(str, row)) for row in table.rows())]))
    expected: dict[bool, Any] = {}
    for path in sorted(tmp_path.iterdir()):
        text = path.suffix in (".arff", ".csv", ".gz")
        there = plar.reduce(path, "d", engine=engine_of(spark, "driver"))
        assert facts(there) == facts(plar.reduce(path, "d")), path
        expected.setdefault(text, facts(there))
        assert facts(there) == expected[text], path


def test_text_of_every_kind(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = [f'"a\n{i % 3}","x, ""y"" {i % 2}",{i % 5}' for i in range(200)]
    path.write_text("\n".join(["one,two,d", *rows]))
    same(spark, path)
    latin = tmp_path / "latin.txt"
    latin.write_bytes("\n".join(["é;d", *(f"{'äö'[i % 2]};{i % 2}" for i in range(200))]).encode("latin-1"))
    same(spark, latin, encoding="latin-1")
    bare = tmp_path / "bare.data"
    bare.write_text("\n".join(f"{i % 3} {i % 7}  {i % 2}" for i in range(200)))
    same(spark, bare, -1, header=False)
    blank = tmp_path / "blank.csv"
    blank.write_text("a,d\n" + "\n\n".join(f"{i % 4},{i % 2}" for i in range(200)))
    same(spark, blank)


def test_options_of_reading(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    numbers = RNG.normal(size=300).round(2)
    rows = [f"{x},{'?' if i % 17 == 0 else i % 3},{i % 4},{x + i % 2:.1f}" for i, x in enumerate(numbers)]
    path.write_text("\n".join(["x,a,w,d", *rows]))
    for options in (
        {"bins": "quantile:3", "na": "?", "decision_bins": "quantile:3"},
        {"bins": "mdlp", "decision_bins": "quantile:2", "missing": "drop", "na": "?"},
        {"bins": "auto", "decision_bins": "quantile:2", "missing": "drop", "na": "?"},
        {"bins": {"x": [0.0, 1.0]}, "decision_bins": [0.5], "weights": "w"},
        {"bins": {"x": "width:4"}, "decision_bins": "width:3", "weights": "w", "drop": "a"},
    ):
        same(spark, path, **options)
    spelled = tmp_path / "spelled.csv"
    spelled.write_text("\n".join(["a,d", *(f"{['1', '1.0', '2'][i % 3]},{i % 3 == 2}" for i in range(200))]))
    same(spark, spelled, numeric="a")
    with pytest.warns(plar.PlarWarning, match=r"One number is written in several ways in 'a'"):
        plar.reduce(spelled, "d", engine=engine_of(spark))


def test_globs_and_folders(spark: Any, tmp_path: Path) -> None:
    table = frame()
    folder = tmp_path / "parts"
    folder.mkdir()
    for k in range(4):
        table[100 * k : 100 * k + 100].write_csv(folder / f"part-{k}.csv")
    (folder / "_SUCCESS").touch()
    for path in (folder, folder / "*.csv", f"file://{folder}/part-*.csv"):
        there = plar.reduce(path, "d", engine=engine_of(spark))
        assert facts(there) == facts(plar.reduce(folder, "d"))
    hive = tmp_path / "hive"
    for k in range(2):
        (hive / f"year={k}").mkdir(parents=True)
        table[200 * k : 200 * k + 200].write_parquet(hive / f"year={k}" / "t.parquet")
    same(spark, hive)
    (folder / "part-4.csv").write_text("other,d\n1,2\n")
    with pytest.raises(plar.TableError, match=r"part-4\.csv' has different columns from .*part-0\.csv'"):
        plar.reduce(folder, "d", engine=engine_of(spark))
    table.drop("n").write_parquet(hive / "year=0" / "u.parquet")
    with pytest.raises(plar.TableError, match=r"u\.parquet' has different columns"):
        plar.reduce(hive, "d", engine=engine_of(spark))


def test_other_file_systems(spark: Any, tmp_path: Path) -> None:
    table = frame()
    with ZipFile(tmp_path / "t.zip", "w") as archive:
        for k in range(4):
            archive.writestr(f"t/{k}.csv", table[100 * k : 100 * k + 100].write_csv())
    for inside in ("t/*.csv", "t"):
        address = f"zip://{inside}::{tmp_path / 't.zip'}"
        there = plar.reduce(address, "d", engine=engine_of(spark), bins="quantile:3")
        table.write_csv(tmp_path / "t.csv")
        assert facts(there) == facts(plar.reduce(tmp_path / "t.csv", "d", bins="quantile:3"))
    with pytest.raises(plar.TableError, match=r"No file matches 'zip://u\.csv::"):
        plar.reduce(f"zip://u.csv::{tmp_path / 't.zip'}", "d", engine=engine_of(spark))
    with pytest.raises(plar.TableError, match=r"Cannot look for 'nosuch://t\.csv'"):
        plar.reduce("nosuch://t.csv", "d", engine=engine_of(spark))


#: folders of a partitioned table, whose columns are `y/ear`, whole numbers or missing, and `c`, text
FOLDERS = ("y%2Fear=2020/c=a%20b", "y%2Fear=__HIVE_DEFAULT_PARTITION__/c=x", "y%2Fear=-7/c=05")


def write_partitions(folder: Path) -> None:
    """A table as Spark writes it partitioned, with metadata beside it."""
    for k, inside in enumerate(FOLDERS):
        (folder / inside).mkdir(parents=True)
        frame()[100 * k : 100 * k + 100].write_parquet(folder / inside / "t.parquet")
    (folder / "_SUCCESS").touch()
    (folder / "_log").mkdir()
    (folder / "_log" / "t.json").write_text("{}")


@pytest.mark.parametrize(
    "inside", ["h", "h/", "h/*/*/*.parquet", "h/**/t.parquet", "h/*=-7/c=*/t.parquet", f"h/{FOLDERS[0]}/t.parquet"]
)
def test_partitions_on_other_file_systems(tmp_path: Path, inside: str) -> None:
    write_partitions(tmp_path / "h")
    memory = fsspec.filesystem("memory")
    memory.put(f"{tmp_path}/h", f"{tmp_path}/h", recursive=True)
    try:
        remote = RemoteFiles.open(f"memory://{tmp_path}/{inside}", ReadOptions())
        here = selectable(open_source(f"{tmp_path}/{inside}", ReadOptions()))
        every = ColumnChoice(here.names)
        read: pl.DataFrame = remote.select(every)
    finally:
        memory.rm(str(tmp_path), recursive=True)
    assert remote.names == here.names
    assert read.equals(here.select(every))
    assert read.schema == here.select(every).schema
    if inside == "h":
        assert read.schema["y/ear"] == pl.Int64
        assert read.schema["c"] == pl.String
        assert read["y/ear"].unique(maintain_order=True).to_list() == [-7, 2020, None]
        assert read["c"].unique(maintain_order=True).to_list() == ["05", "a b", "x"]


def test_partitions_that_only_some_files_have(tmp_path: Path) -> None:
    memory = fsspec.filesystem("memory")
    write_partitions(tmp_path / "h")
    (tmp_path / "h" / "t.parquet").write_bytes((tmp_path / "h" / FOLDERS[0] / "t.parquet").read_bytes())
    memory.put(f"{tmp_path}/h", f"{tmp_path}/h", recursive=True)
    try:
        with pytest.raises(plar.TableError, match=r"Only some files of 'memory://.*/h' are in a folder y/ear=…"):
            RemoteFiles.open(f"memory://{tmp_path}/h", ReadOptions())
    finally:
        memory.rm(str(tmp_path), recursive=True)


def test_partitions_that_tasks_read_from_other_file_systems(spark: Any, tmp_path: Path) -> None:
    write_partitions(tmp_path / "h")
    with ZipFile(tmp_path / "t.zip", "w") as archive:
        for file in (tmp_path / "h").rglob("*.parquet"):
            archive.write(file, file.relative_to(tmp_path))
    options: dict[str, Any] = {"conditions": ["y/ear", "c", "c0", "n"], "include": ["c"]}
    here = plar.reduce(tmp_path / "h", "d", **options)
    for inside in ("h", "h/*/*/*.parquet"):
        address = f"zip://{inside}::{tmp_path / 't.zip'}"
        there = plar.reduce(address, "d", engine=engine_of(spark), **options)
        assert facts(there) == facts(here)


def test_wide_files_with_and_without_rows_in_common(spark: Any, tmp_path: Path) -> None:
    x = RNG.integers(0, 3, (60, 300))
    names = [f"c{j}" for j in range(300)]
    table = pl.DataFrame(x, schema=names).with_columns(d=pl.Series((x[:, 3] + x[:, 70]) % 3))
    for name, rows in (("apart", table), ("common", pl.concat([table, table[:20]]))):
        path = tmp_path / f"{name}.csv"
        rows.write_csv(path)
        same(spark, path, max_attributes=3)


def test_written_by_the_tasks(spark: Any, tmp_path: Path) -> None:
    table = frame()
    table.write_csv(tmp_path / "t.csv")
    engine = engine_of(spark)
    rows = engine.read(tmp_path / "t.csv", plar.options.ReadOptions("d"))
    assert isinstance(rows, SharedFiles)
    opened = plar.input.tables.table.with_roles(rows, plar.options.ReadOptions("d"))
    opened.sink(["c1", "n"], tmp_path / "out.csv")
    written = pl.read_csv(tmp_path / "out.csv" / "*.csv")
    assert written.equals(table.select("c1", "n", "d"))
    assert (tmp_path / "out.csv" / "_SUCCESS").exists()
    with pytest.raises(plar.TableError, match=r"Cannot write 's3://b/out\.csv' from here\. Name a folder"):
        opened.sink(["c1"], "s3://b/out.csv")
    with pytest.raises(plar.TableError, match=r"out\.csv' already exists"):
        opened.sink(["c1"], tmp_path / "out.csv")
    (tmp_path / "t.csv").unlink()
    with pytest.raises(plar.TableError, match=r"Cannot read '.*t\.csv'"):
        opened.sink(["c1"], tmp_path / "again.csv")
    assert not (tmp_path / "again.csv").exists()


# -- what goes wrong ---------------------------------------------------------------------------------------


def test_faults_are_one_line_that_names_the_file(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["a,b,d", *["1,2,3"] * 300, "1,2", *["1,2,3"] * 300]))
    engines: list[Any] = [engine_of(spark), "local"]
    for engine in engines:
        with pytest.raises(plar.TableError, match=r"^'.*t\.csv', line 302: 2 fields where 3 are expected[^\n]*$"):
            plar.reduce(path, "d", engine=engine)
    damaged = tmp_path / "damaged.parquet"
    frame().write_parquet(damaged, row_group_size=50)
    data = bytearray(damaged.read_bytes())
    data[200:600] = bytes(400)
    damaged.write_bytes(data)
    with pytest.raises(plar.TableError, match=r"^Cannot read '.*damaged\.parquet'[^\n]*$"):
        plar.reduce(damaged, "d", engine=engine_of(spark))
    mixed = tmp_path / "mixed.ndjson"
    mixed.write_text('{"a": 1, "d": 0}\n{"a": "x", "d": 1}\n')
    with pytest.raises(plar.TableError, match=r"mixed\.ndjson', line 2: column 'a' has text after a number"):
        plar.reduce(mixed, "d", engine=engine_of(spark))


def test_a_file_that_disappears(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for suffix in ("csv", "parquet"):
        path = tmp_path / f"t.{suffix}"
        (frame().write_csv if suffix == "csv" else frame().write_parquet)(path)
        engine, divide = engine_of(spark), file_parts.parts_of

        def gone(rows: Any, context: Any, path: Path = path, divide: Any = divide) -> Any:
            divided = divide(rows, context)
            os.unlink(path)
            return divided

        monkeypatch.setattr("plar.engines.spark.engine.parts_of", gone)
        with pytest.raises(plar.TableError, match=rf"^Cannot read '.*t\.{suffix}'[^\n]*No such file[^\n]*$"):
            plar.reduce(path, "d", engine=engine)


@pytest.mark.parametrize("suffix", ["csv", "ndjson"])
def test_a_file_that_becomes_shorter(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    path, divide = tmp_path / f"t.{suffix}", file_parts.parts_of
    table = frame()
    (table.write_csv if suffix == "csv" else table.write_ndjson)(path)
    rows = path.read_bytes().splitlines(keepends=True)

    def shortened(rows_to_read: Any, context: Any) -> Any:
        divided = divide(rows_to_read, context)
        path.write_bytes(b"".join(rows[:200]))
        return divided

    monkeypatch.setattr("plar.engines.spark.engine.parts_of", shortened)
    monkeypatch.setattr(file_parts, "_MIN_PART_BYTES", 1 << 20)  # one part, whose end is that of the file
    with pytest.raises(plar.TableError, match=rf"^Cannot read '.*t\.{suffix}': it became shorter while it was[^\n]*$"):
        plar.reduce(path, "d", engine=engine_of(spark))


def test_nothing_stays_behind(spark: Any, tmp_path: Path) -> None:
    from pyspark import SparkFiles

    path = tmp_path / "t.csv"
    frame().with_columns(w=pl.lit(-1), m=pl.lit(None, pl.String)).write_csv(path)
    context, root = spark.sparkContext, Path(SparkFiles.getRootDirectory())
    cached, files = set(context._jsc.getPersistentRDDs()), set(root.iterdir())
    rows = spark.read.option("header", True).csv(str(path))
    for data in (path, rows):
        for layout in ("columns", "rows", "driver"):
            engine = engine_of(spark, layout)
            bad: list[dict[str, Any]] = [{"weights": "w"}, {"missing": "error"}, {"missing": "drop"}]
            for options in bad:
                with pytest.raises(plar.TableError):
                    plar.reduce(data, "d", engine=engine, **options)
            plar.reduce(data, "d", engine=engine, drop=["w", "m"], max_attributes=1)
    assert set(context._jsc.getPersistentRDDs()) <= cached
    assert set(root.iterdir()) == files


def test_minus_zero_is_zero_in_every_partition(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(granulate, "MAX_VALUES_OF_PART", 2)  # so that values are numbered on the cluster
    values = [0.0, 1.0, 2.0, 3.0, -0.0, 1.0, 2.0, 3.0]
    rows = spark.createDataFrame([(v, i % 2) for i, v in enumerate(values)], "a double, d int").repartition(4)
    on_cluster: Any = plar.granulate(rows, "d", engine=engine_of(spark))
    here = plar.granulate({"a": values, "d": [i % 2 for i in range(8)]}, "d")
    assert on_cluster.cardinalities == here.cardinalities == (4,)
    assert len(on_cluster) == len(here)
    on_cluster.unpersist()


def test_types_that_do_not_compare_are_one_line(spark: Any) -> None:
    for made in ("parse_json('1')", "make_interval(0, 1)", "array(1)", "make_ym_interval(1, 2)"):
        rows = spark.sql(f"SELECT {made} AS a, 1 AS d")
        with pytest.raises(plar.TableError, match=r"^Column 'a' holds [^\n]*\. Only flat values compare[^\n]*$"):
            plar.reduce(rows, "d", engine=engine_of(spark))
