"""What the tables of the paper share: the machine, the data at a smaller scale, times, memory and checks."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent))
from bars import AS_OTHERS_DO, HERE, PEER, Skip, data_folder, weka_file
from sampled import Sampled

import plar
from plar import datasets
from plar.baselines.spark import SparkSystem
from plar.engines import SparkEngine

__all__ = [
    "HERE",
    "MEASURES",
    "PEER",
    "Row",
    "Skip",
    "Table",
    "data_folder",
    "kdd99",
    "machine",
    "on_plar",
    "on_system",
]

MEASURES = ("PR", "SCE", "LCE", "CCE")
Row = dict[str, Any]
_SESSION: list[SparkEngine] = []


@dataclass(frozen=True)
class Table:
    """A table as every system gets it: rows of codes in memory, and plar's granules."""

    name: str
    X: Any
    y: Any
    granules: plar.Granules
    #: how it differs from the paper's
    scale: str

    @property
    def about(self) -> Row:
        """Name, shape and scale."""
        g = self.granules
        shape = {"rows": g.n_objects, "granules": len(g), "conditions": len(g.conditions), "decisions": g.n_decisions}
        return {"dataset": self.name, **shape, "scale": self.scale}


def table_of(name: str, granules: plar.Granules, scale: str, rows: Any = None) -> Table:
    """Rows of codes: all that the granules stand for, shuffled, or those of the granules that `rows` lists."""
    if rows is None:
        rows = shuffled(granules)
    X = np.column_stack([column[rows] for column in granules.columns])
    y = granules.decision_codes[rows]
    return Table(name, X, y, plar.granulate(X, y=y), scale)


def shuffled(granules: plar.Granules, chosen: Any = slice(None)) -> Any:
    """The granule of every row, in a random order."""
    rows = np.repeat(np.arange(len(granules))[chosen], granules.counts[chosen])
    return np.random.default_rng(0).permutation(rows)


@cache
def small(name: str) -> Table:
    """One of the nine datasets."""
    data_folder()
    return table_of(name, plar.granulate(datasets.load(name)), "as the paper's")


@cache
def kdd99(n: int) -> Table:
    """A sample of KDD99 with this many rows."""
    data_folder()
    granules = _granules("kdd99", lambda: plar.granulate(datasets.load("kdd99")))
    scale = f"{n:,} rows at random of the 10 % file, not 5,000,000"
    return table_of("KDD99", granules, scale, shuffled(granules)[:n])


@cache
def weka15360(n: int) -> Table:
    """Some granules of WEKA15360 with all their rows, about n: nearly all rows of a plain sample would be distinct."""
    granules = _granules("weka15360", lambda: plar.granulate(weka_file(), -1))
    order = np.random.default_rng(0).permutation(len(granules))
    chosen = order[: round(n * len(granules) / granules.n_objects)]
    scale = f"about {n:,} rows, not 15,360,000: {len(chosen):,} of 1,048,575 granules at random, with all their rows"
    return table_of("WEKA15360", granules, scale, shuffled(granules, chosen))


def _granules(name: str, make: Callable[[], plar.Granules]) -> plar.Granules:
    path = HERE / f"{name}-granules.parquet"
    if not path.exists():
        HERE.mkdir(exist_ok=True)
        make().save(path)
    return plar.Granules.open(path)


def session() -> Any:
    """One Spark session on all cores, its workers started and warm."""
    if not _SESSION:
        _SESSION.append(SparkEngine(master=f"local[{os.cpu_count()}]", conf=AS_OTHERS_DO))
        spark = _SESSION[0].spark()
        X, y = datasets.random_table(200, 3)
        with SparkSystem("warm", True, 8, spark) as system:
            for _ in range(3):
                plar.reduce(plar.granulate(X, y=y), engine=system)
    return _SESSION[0].spark()


def close() -> None:
    while _SESSION:
        _SESSION.pop().close()


def on_system(system: Any, table: Table, measure: str, most: int | None, tree: bool = False) -> Row:
    """Time one of the paper's systems; `most` candidates of each question at most, the rest extrapolated.

    Every Θ that is timed is checked against plar's.
    """
    expected = plar.reduce(table.granules, measure=measure)
    reset_peak(tree)
    sampled = Sampled(system, most)
    reduct = plar.reduce(table.granules, measure=measure, engine=sampled)
    assert (reduct.attributes, reduct.core, reduct.theta) == (expected.attributes, expected.core, expected.theta)
    return {
        **table.about,
        **result(system.name, reduct, sampled.seconds, peak_mb(tree)),
        "candidates": sampled.asked,
        "timed": sampled.timed,
    }


def on_plar(name: str, run: Callable[[], plar.Reduct], table: Table, repeat: int, tree: bool = False) -> Row:
    """Time plar itself: the fastest of several runs, each checked."""
    run()
    reset_peak(tree)
    times = []
    for _ in range(repeat):
        began = time.perf_counter()
        reduct = run()
        times.append(time.perf_counter() - began)
        expected = plar.reduce(table.granules, measure=reduct.measure)
        assert (reduct.attributes, reduct.core, reduct.theta) == (expected.attributes, expected.core, expected.theta)
    return {**table.about, **result(name, reduct, min(times), peak_mb(tree))}


def plar_local(table: Table, measure: str) -> Row:
    """Time plar on this machine, from the rows in memory."""
    return on_plar("plar local", lambda: plar.reduce(table.X, y=table.y, measure=measure), table, 3)


def plar_spark(table: Table, measure: str) -> Row:
    """Time plar on Spark, from a data frame that is made of the rows in memory."""
    import pyarrow as pa

    spark = session()
    columns = {f"x{j}": table.X[:, j].astype(np.int32) for j in range(table.X.shape[1])}
    rows = pa.table({**columns, "y": table.y.astype(np.int32)})

    def run() -> plar.Reduct:
        return plar.reduce(spark.createDataFrame(rows), "y", measure=measure, engine=SparkEngine(session=spark))

    return on_plar("plar on Spark", run, table, 2, tree=True)


def result(system: str, reduct: plar.Reduct, seconds: float, peak: float | None) -> Row:
    return {
        "system": system,
        "measure": reduct.measure,
        "seconds": round(seconds, 4),
        "peak_mb": peak and round(peak),
        "reduct": list(reduct.attributes),
        "size": len(reduct.attributes),
        "theta": reduct.theta,
    }


def show(row: Row) -> Row:
    """Print a row as soon as it is measured."""
    sampled = row.get("timed", 0) < row.get("candidates", 0)
    note = f"  from {row['timed']} of {row['candidates']} candidates" if sampled else ""
    words = [row.get(key, "") for key in ("dataset", "measure", "system")]
    size = f"size {row['size']}" if "size" in row else ""
    print(f"    {words[0]:<14} {words[1]:<4} {words[2]:<22} {row['seconds']:>10.3f} s  {size}{note}", flush=True)
    return row


# --- the machine ----------------------------------------------------------------------------------------------


def machine() -> Row:
    """The machine and the versions that the figures were measured with."""
    names = ("plar", "numpy", "numba", "polars", "pyspark", "pyarrow")
    versions = {"python": platform.python_version()}
    for name in names:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    model = ""
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cpu": model or platform.machine(),
        "cores": os.cpu_count(),
        "memory_gb": round(memory, 1),
        "system": platform.platform(),
        "versions": versions,
    }


def _processes(tree: bool) -> list[int]:
    """Ids of this process, optionally with all its descendants: the JVM and Python's workers."""
    processes = [os.getpid()]
    if tree:
        parents = {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        for process in processes:
            processes += [child for child, parent in parents.items() if parent == process]
    return processes


def reset_peak(tree: bool) -> None:
    """Reset the kernel's count of the peak memory."""
    for process in _processes(tree):
        with suppress(OSError):
            Path(f"/proc/{process}/clear_refs").write_text("5")


def peak_mb(tree: bool) -> float | None:
    """Peak memory of this process, or the sum of the peaks with its descendants; None if the kernel does not say."""
    total = 0
    for process in _processes(tree):
        with suppress(OSError):
            for line in Path(f"/proc/{process}/status").read_text().splitlines():
                total += int(line.split()[1]) if line.startswith("VmHWM") else 0
    return total / 1024 or None
