"""How plar gets faster with cores: threads, Spark on one machine, and a standalone cluster of one-core workers.

    python benchmarks/scaling.py                        # 1, 2, 4, … cores, as far as the machine has them
    python benchmarks/scaling.py --cores 2,16 --tables sdss,wide --kinds local,spark
    python benchmarks/scaling.py --draw                 # the chart, from the figures of the last run

Every measurement is a process of its own. `steps` are greedy steps on a table that is laid out: of the first search in
a session, of the second, and of the fourth, by which time the JVM has compiled its scheduler; `end to end` is a search
from a Parquet file. All must choose the same columns. Figures go to benchmarks/results/scaling.json, where they
replace those of the same table, engine and cores, and to docs/charts/scaling.svg.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from bars import HERE, ROOT, timed_steps

import plar
from plar import datasets
from plar.engines import LocalEngine, SparkEngine
from plar.measures import SCE

JSON = ROOT / "benchmarks" / "results" / "scaling.json"
CHART = ROOT / "docs" / "charts" / "scaling.svg"
KINDS = {"local": "threads", "spark": "Spark local[k]", "standalone": "Spark, k workers of one core"}
#: tables that are laid out, by rows and columns, and those that are read from a file
SHAPES = {"wide": (320_000, 2_000), "sdss": (320_000, 5_201)}
FILES = ("kdd99", "weka15360")


def clock() -> float:
    return time.perf_counter()


# -- one measurement, in a process of its own ------------------------------------------------------------------


@contextmanager
def standalone(k: int) -> Iterator[str]:
    """A master and so many workers of one core, each a process."""
    import pyspark

    home = Path(pyspark.__file__).parent
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    start = [str(home / "bin" / "spark-class")]
    master = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
    worker = ["org.apache.spark.deploy.worker.Worker", "--cores", "1", "--memory", "2g", "--webui-port", "0"]
    address = f"spark://127.0.0.1:{port}"
    running = []
    try:
        for command in (master, *[[*worker, address]] * k):
            running.append(subprocess.Popen(start + command, stderr=subprocess.DEVNULL, start_new_session=True))
            if command is master:
                wait_for(port)
        yield address
    finally:
        for process in reversed(running):
            process.terminate()
            process.wait()


def wait_for(port: int) -> None:
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    sys.exit("The master of the standalone cluster does not answer.")


@contextmanager
def engine_of(kind: str, k: int, layout: str) -> Iterator[Any]:
    if kind == "local":
        yield LocalEngine(n_jobs=k)
    elif kind == "spark":
        with SparkEngine(master=f"local[{k}]", layout=layout) as engine:
            yield engine
    else:
        with standalone(k) as address:
            conf = {
                "spark.driver.host": "127.0.0.1",
                "spark.pyspark.python": sys.executable,
                "spark.default.parallelism": str(k),
                "spark.scheduler.minRegisteredResourcesRatio": "1.0",
                "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
            }
            with SparkEngine(master=address, layout=layout, conf=conf) as engine:
                yield engine


def matrix(table: str) -> tuple[Any, Any]:
    rows, columns = SHAPES[table]
    paths = [HERE / f"scaling_{table}_{name}.npy" for name in ("x", "y")]
    if not all(path.exists() for path in paths):
        for path, array in zip(paths, datasets.sdss_like(rows, columns), strict=True):
            np.save(path, array)
    x, y = (np.load(path) for path in paths)
    return x, y


def measure_steps(table: str, kind: str, k: int) -> dict[str, Any]:
    """Steps of four searches in a session, beside what it takes to lay the table out."""
    x, y = matrix(table)
    granules = plar.granulate(x, y=y)
    del x
    began = clock()
    with engine_of(kind, k, "columns") as engine:
        if kind != "local":
            engine.spark().sparkContext.parallelize(range(k), k).count()
        start, began = clock() - began, clock()
        evaluation = engine.open(granules, SCE)
        ship = clock() - began
        began = clock()
        inner = evaluation.leave_one_out()
        core = clock() - began
        searches = [timed_steps(evaluation, len(granules.conditions))]
        for _ in range(3):
            again = engine.open(granules, SCE)
            if kind == "local":  # which lays a table out with each search
                again.with_each([0])
            searches.append(timed_steps(again, len(granules.conditions)))
    (first, chosen), (second, _), _, (warm, _) = searches
    assert all(same == chosen for _, same in searches)
    assert all(without.equal for without in inner)
    return {
        "start": start,
        "ship": ship,
        "core": core,
        "first": first,
        "second": second,
        "warm": warm,
        "chosen": chosen,
    }


def measure_file(table: str, kind: str, k: int) -> dict[str, Any]:
    """Whole searches from a Parquet file: the first in a process, and later ones."""
    path = HERE / f"{table}.parquet"
    with engine_of(kind, k, "auto") as engine:
        if kind != "local":
            engine.spark().sparkContext.parallelize(range(k), k).count()
        times, chosen = [], []
        for _ in range(4):
            began = clock()
            reduct = plar.reduce(path, -1, engine=engine)
            times.append(clock() - began)
            chosen = list(reduct.attributes)
    return {"cold": times[0], "warm": min(times[1:]), "chosen": chosen}


# -- all of them -----------------------------------------------------------------------------------------------


def measured(table: str, kind: str, k: int) -> dict[str, Any]:
    command = [sys.executable, "-W", "ignore", __file__, "--one", table, kind, str(k)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=True)
    row: dict[str, Any] = {"table": table, "kind": kind, "cores": k, **json.loads(ran.stdout.splitlines()[-1])}
    return row


def seconds(row: dict[str, Any]) -> float:
    """What is compared: a step or a search once the session is warm."""
    return float(np.mean(row["warm"] if "warm" in row else row["second"]))


def shown(row: dict[str, Any], one: float | None) -> str:
    gain = "" if one is None else f", {one / seconds(row):5.2f} × the fewest cores"
    if "second" in row:
        more = f"first search {mean(row['first']):.3f} s, second {mean(row['second']):.3f} s"
        more += f", core {row['core']:.2f} s, laid out in {row['ship']:.1f} s"
    else:
        more = f"cold {row['cold']:.2f} s"
    return f"{row['table']:<10} {row['kind']:<10} {row['cores']:>3} cores  {seconds(row):7.3f} s{gain}; {more}"


def fitted(results: list[dict[str, Any]]) -> dict[str, list[float]]:
    """The model of a step, seconds = cells · (a / cores + b) + job, by kind: a and b in ns, the job in ms."""
    lines = {}
    for kind in KINDS:
        own = [r for r in results if r["kind"] == kind and r["table"] in SHAPES]
        if len(own) < 5:
            continue
        cells = np.array([float(np.prod(SHAPES[r["table"]])) for r in own])
        cores = np.array([r["cores"] for r in own])
        terms = [cells / cores, cells] + ([np.ones(len(own))] if kind != "local" else [])
        weights = 1 / np.array([seconds(r) for r in own])  # so that all are fitted equally well
        a, b, *job = np.linalg.lstsq((np.array(terms) * weights).T, np.ones(len(own)), rcond=None)[0].tolist()
        lines[kind] = [1e9 * a, 1e9 * b, *(1e3 * j for j in job)]
    return lines


def show_model(results: list[dict[str, Any]]) -> None:
    for kind, (a, b, *job) in fitted(results).items():
        constant = f" + {job[0]:.0f} ms" if job else ""
        print(f"{KINDS[kind]}: a step takes cells · ({a:.3f} / cores + {b:.3f}) ns{constant}")


def draw(results: list[dict[str, Any]]) -> None:
    """Speed-up over the fewest cores, and what each core is worth."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    tables = list(dict.fromkeys(row["table"] for row in results))
    figure, axes = pyplot.subplots(2, len(tables), figsize=(3.4 * len(tables), 5.6), sharex=True, squeeze=False)
    for column, table in enumerate(tables):
        for kind, name in KINDS.items():
            own = sorted((r for r in results if (r["table"], r["kind"]) == (table, kind)), key=lambda r: r["cores"])
            if len(own) < 2:
                continue
            cores = [row["cores"] for row in own]
            gains = [seconds(own[0]) / seconds(row) for row in own]
            axes[0][column].plot(cores, gains, marker="o", label=name)
            axes[1][column].plot(cores, [g * cores[0] / n for g, n in zip(gains, cores, strict=True)], marker="o")
        for axis, label in ((axes[0][column], "speed-up"), (axes[1][column], "efficiency")):
            axis.set_xscale("log", base=2)
            axis.set_ylabel(label if not column else "")
            axis.xaxis.set_major_formatter("{x:.0f}")
            axis.grid(alpha=0.3)
            axis.set_ylim(bottom=0)
        rows, columns = SHAPES.get(table, (0, 0))
        axes[0][column].set_title(f"a step, {rows:,} × {columns:,}" if rows else f"{table}, end to end", fontsize=10)
        axes[1][column].set_xlabel("cores")
    lines = {line.get_label(): line for axis in axes[0] for line in axis.get_lines()}
    figure.legend(lines.values(), lines, loc="upper center", ncols=len(lines), frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 0.94))
    figure.savefig(CHART, metadata={"Date": None})


def main() -> None:
    powers = [1 << i for i in range(5) if 1 << i <= len(os.sched_getaffinity(0))]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cores", default=",".join(map(str, powers)))
    parser.add_argument("--tables", default=",".join([*SHAPES, *FILES]))
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--draw", action="store_true")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    HERE.mkdir(exist_ok=True)
    if given.draw:
        results = json.loads(JSON.read_text())["results"]
        show_model(results)
        draw(results)
        return
    if given.one:
        table, kind, k = given.one
        work = measure_steps if table in SHAPES else measure_file
        print(json.dumps(work(table, kind, int(k))))
        return
    results = json.loads(JSON.read_text())["results"] if JSON.exists() else []
    for table in given.tables.split(","):
        if table in FILES and not (HERE / f"{table}.parquet").exists():
            print(f"skip  {table}: .bench/{table}.parquet is made by benchmarks/spark.py")
            continue
        if table in SHAPES:
            matrix(table)
        for kind in given.kinds.split(","):
            fewest = None
            for k in map(int, given.cores.split(",")):
                row = measured(table, kind, k)
                print(shown(row, fewest), flush=True)
                fewest = fewest or seconds(row)
                same = {name: row[name] for name in ("table", "kind", "cores")}
                results = [r for r in results if not same.items() <= r.items()] + [row]
                JSON.write_text(json.dumps({"cores": os.cpu_count(), "results": results}, indent=1) + "\n")
        assert len({tuple(r["chosen"]) for r in results if r["table"] == table}) == 1, table
    show_model(results)
    draw(results)


if __name__ == "__main__":
    main()
