"""The Spark engine against the paper's way, the local engine and Spark itself, in one run on local[2].

    python benchmarks/spark.py              # all rows (make bench)
    python benchmarks/spark.py gisette kdd99

Figures go to .bench/spark.json.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from operator import add
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import polars as pl
from bars import AS_OTHERS_DO, HERE, data_folder, report, run, weka_file

import plar
from plar import datasets
from plar.engines import LocalEngine, SparkEngine
from plar.measures import SCE, exact_log

SESSION: list[SparkEngine] = []


def session() -> Any:
    """One session for all rows."""
    if not SESSION:
        SESSION.append(SparkEngine(master="local[2]", conf=AS_OTHERS_DO))
    return SESSION[0].spark()


def taken(function: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = function()
    return time.perf_counter() - began, result


# --- the paper's way ------------------------------------------------------------------------------------------


def paper_theta(rows: Any, by: tuple[int, ...]) -> int:
    """One job for one candidate: map to (values, decision), reduceByKey, then Θ from the counts."""
    counts = rows.map(lambda row: ((bytes(row[0][a] for a in by), row[1]), row[2])).reduceByKey(add, 2)
    sizes: dict[bytes, int] = {}
    total = 0
    for (key, _), n in (cells := counts.collect()):
        sizes[key] = sizes.get(key, 0) + n
    for (key, _), n in cells:
        total += n * (exact_log(sizes[key]) - exact_log(n))
    return total


def gisette() -> None:
    x, y = datasets.gisette_like()
    granules = plar.granulate(x, y=y)
    engine = SparkEngine(session=session(), layout="columns")
    evaluation = engine.open(granules, SCE)
    candidates = list(range(len(granules.conditions)))
    first = int(np.argmin(evaluation.with_each(candidates)))
    evaluation.select(first)
    times: list[float] = []
    thetas: list[int] = []
    for _ in range(3):
        seconds, thetas = taken(lambda: evaluation.with_each(candidates))
        times.append(seconds)
    fetching, _ = taken(lambda: evaluation.select(int(np.argmin(thetas))))
    rows = [(x[i].tobytes(), int(y[i]), 1) for i in range(len(x))]
    cached = session().sparkContext.parallelize(rows, 2).cache()
    cached.count()
    some = candidates[1 :: len(candidates) // 50][:50]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda a: paper_theta(cached, (first, a)), some[:8]))
        seconds, results = taken(lambda: list(pool.map(lambda a: paper_theta(cached, (first, a)), some)))
    # the integers of SCE differ from the sum over counts by nothing
    assert results == [thetas[a] for a in some]
    cached.unpersist()
    engine.close()
    report("Gisette shape, SCE, one iteration : a job per candidate, 8 at once (50, extrapolated)",
           min(times) + fetching, seconds * len(candidates) / len(some), 1000, at_least=True)  # fmt: skip


# --- against the local engine ---------------------------------------------------------------------------------


def five_iterations(evaluation: Any, candidates: list[int]) -> tuple[list[float], list[int]]:
    times, chosen = [], []
    for _ in range(5):
        began = time.perf_counter()
        thetas = evaluation.with_each([a for a in candidates if a not in chosen])
        chosen.append([a for a in candidates if a not in chosen][int(np.argmin(thetas))])
        evaluation.select(chosen[-1])
        times.append(time.perf_counter() - began)
    return times, chosen


def sdss() -> None:
    x, y = datasets.sdss_like()
    granules = plar.granulate(x, y=y)
    del x
    candidates = list(range(len(granules.conditions)))
    there = LocalEngine().open(granules, SCE)
    there.with_each([0])  # lays the table out
    local, expected = five_iterations(there, candidates)
    del there
    copying, _ = taken(lambda: disk_and_back(granules.columns))
    with SparkEngine(session=session(), layout="columns") as engine:
        session().sparkContext.parallelize(range(2), 2).count()  # starts the workers
        opening, evaluation = taken(lambda: engine.open(granules, SCE))
        core, inner = taken(evaluation.leave_one_out)
        assert all(without.equal for without in inner)
        first, chosen = five_iterations(evaluation, candidates)
        ours, again = five_iterations(engine.open(granules, SCE), candidates)
        assert chosen == again == expected
    report("SDSS shape, shipped : one copy of its bytes to disk and back", opening, copying, 10)
    report("SDSS shape, core : one step", core, mean(ours), 3)
    report("SDSS shape, mean of five steps, first search in a session : second", mean(first), mean(ours), 1.5)
    report("SDSS shape, mean of five steps : local engine", mean(ours), mean(local), 3)


def disk_and_back(columns: Any) -> None:
    """Write arrays to files, and read them."""
    with tempfile.TemporaryDirectory(dir=HERE) as folder:
        for number, column in enumerate(columns):
            np.save(Path(folder, f"{number}.npy"), column)
        for number in range(len(columns)):
            np.load(Path(folder, f"{number}.npy"))


# --- jobs and bytes, by Spark's own account -------------------------------------------------------------------


@contextmanager
def counted(name: str) -> Iterator[list[int]]:
    """Jobs and shuffled bytes of a block of code."""
    context = session().sparkContext
    job_counts: list[int] = []
    context.setJobGroup(name, name)
    yield job_counts
    context.setLocalProperty("spark.jobGroup.id", None)
    jobs = context.statusTracker().getJobIdsForGroup(name)
    stages = {stage for job in jobs for stage in context.statusTracker().getJobInfo(job).stageIds}
    store = context._jsc.sc().statusStore()
    ran = [attempt for attempt in map(store.lastStageAttempt, stages) if str(attempt.status()) == "COMPLETE"]
    job_counts += [len(jobs), sum(a.shuffleWriteBytes() + a.shuffleReadBytes() for a in ran)]


def jobs() -> None:
    x, y = datasets.sdss_like(40_000, 300)
    granules = plar.granulate(x, y=y)
    expected = LocalEngine().open(granules, SCE)
    for layout in ("columns", "rows"):
        with SparkEngine(session=session(), layout=layout, partitions=8) as engine:
            evaluation, chosen = engine.open(granules, SCE), []
            counts = []
            for step in range(5):
                rest = [a for a in range(300) if a not in chosen]
                with counted(f"{layout} {step}") as job_counts:
                    thetas = evaluation.with_each(rest)
                    chosen.append(rest[int(np.argmin(thetas))])
                    evaluation.select(chosen[-1])
                counts.append(tuple(job_counts))
            if layout == "columns":
                reference = list(chosen)
                expected.select(*reference)
            assert chosen == reference
            assert evaluation.theta == expected.theta
        print(f"      {layout}: jobs and shuffled bytes of five iterations: {counts}")
        report(f"{layout} layout, jobs of an iteration, at most : 2", max(n for n, _ in counts), 2, 1, "")
        after = counts if layout == "columns" else counts[-2:]
        report(f"{layout} layout, shuffled bytes of an iteration{', moved' if layout == 'rows' else ''} : 1",
               max(size for _, size in after), 1, 0, "B")  # fmt: skip


# --- whole tables from Parquet --------------------------------------------------------------------------------


def parquet(name: str, make: Callable[[], pl.LazyFrame]) -> str:
    path = HERE / f"{name}.parquet"
    if not path.exists():
        part = path.with_suffix(".part")
        make().sink_parquet(part)
        part.rename(path)
    return str(path)


def end_to_end(name: str, path: str, repeat: int) -> None:
    spark = session()

    def group() -> int:
        frame = spark.read.parquet(path)
        return int(frame.groupBy(*frame.columns).count().count())

    def ours() -> plar.Reduct:
        return plar.reduce(path, -1, engine=SparkEngine(session=spark))

    expected = plar.reduce(path, -1)
    n = group()
    reduct = ours()
    assert (reduct.attributes, reduct.n_granules, reduct.theta) == (expected.attributes, n, expected.theta)
    theirs, mine = [], []
    for _ in range(repeat):  # taking turns, so that both meet the same noise
        theirs.append(taken(group)[0])
        mine.append(taken(ours)[0])
    alone, _ = taken(lambda: plar.reduce(path, -1))
    report(
        f"{name} from Parquet, end to end ({alone:.1f} s locally) : groupBy all and count", min(mine), min(theirs), 0.7
    )


def kdd99() -> None:
    source = data_folder() / "kddcup.data_10_percent.gz"
    end_to_end("KDD99 10 %", parquet("kdd99", lambda: pl.scan_csv(source, has_header=False, infer_schema=False)), 4)


def weka15360() -> None:
    def table() -> pl.LazyFrame:
        read = plar.read_table(weka_file(), -1)
        frame: pl.DataFrame = read.select(read.conditions)
        return frame.lazy()

    end_to_end("WEKA15360", parquet("weka15360", table), 1)


def wide() -> None:
    x, y = datasets.random_table(100_000, 2_000, values=8, classes=4, seed=1)
    frame = pl.DataFrame(x, schema=[f"c{j}" for j in range(2_000)]).with_columns(d=pl.Series(y))
    paths = HERE / "spark_wide.parquet", HERE / "spark_wide.csv"
    frame.write_parquet(paths[0])
    frame.write_csv(paths[1])
    for path in paths:
        expected = plar.reduce(path, "d")
        assert plar.reduce(path, "d", engine=SparkEngine(session=session())).attributes == expected.attributes
        times = [[taken(lambda: plar.reduce(path, "d", engine=engine))[0]  # noqa: B023 - called at once
                  for engine in (SparkEngine(session=session()), "local")] for _ in range(3)]  # fmt: skip
        ours, local = map(min, zip(*times, strict=True))
        report(f"100,000 × 2,000 from {path.suffix}, end to end : local engine", ours, local, 5)
        path.unlink()


# --- the driver's memory --------------------------------------------------------------------------------------

DRIVER = """
import json, sys
from pathlib import Path
import plar
from plar.engines import SparkEngine

def peak(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024

conf = {"spark.driver.memory": "512m"}
with SparkEngine(master="local-cluster[2,1,1024]", conf=conf, layout="columns") as engine:
    spark = engine.spark()
    reduct = plar.reduce(sys.argv[1], "d", engine=engine)
    jvm = spark.sparkContext._jvm.java.lang
    jvm.System.gc()
    heap = (jvm.Runtime.getRuntime().totalMemory() - jvm.Runtime.getRuntime().freeMemory()) / 2**20
    jvm_peak = peak(jvm.ProcessHandle.current().pid())
    print(json.dumps([peak("self"), heap, jvm_peak, reduct.n_granules, reduct.attributes]))
"""


def driver_memory() -> None:
    rng = np.random.default_rng(1)
    X = rng.integers(0, 4, (20_000, 30)).astype(np.uint8)
    distinct = pl.DataFrame(X).with_columns(d=pl.Series((X[:, 3] + X[:, 7] * X[:, 11]) % 5))
    measured = {}
    for millions in (1, 8):
        path = HERE / f"rows{millions}m.parquet"
        pl.concat([distinct] * (50 * millions)).write_parquet(path, row_group_size=250_000)
        measured[millions] = json.loads(subprocess.check_output([sys.executable, "-c", DRIVER, str(path)], text=True))
        Path(path).unlink()
    (small, small_heap, small_peak, *told), (large, large_heap, large_peak, *same) = measured[1], measured[8]
    assert told == same
    print(f"      driver's JVM: {small_peak:.0f} and {large_peak:.0f} MB at most")
    report("driver's Python, peak: 8 M rows : 1 M rows of the same granules", large, small, 1.1, "MB")
    report("driver's JVM, heap in use: 8 M rows : 1 M rows", large_heap, small_heap, 1.25, "MB")


if __name__ == "__main__":
    run((gisette, jobs, kdd99, wide, sdss, weka15360, driver_memory), "spark.json")
    if SESSION:
        SESSION[0].close()
