"""Run by test_spark.py in a process of its own: a cluster of two executors, each a process, and one of them is killed.

Prints one JSON object: what differs from the local engine, and how many executors were killed.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np

import plar
from plar.engines import SparkEngine
from support import selection
from support.comparing import facts
from support.environment import QUICK_START


def executors() -> list[int]:
    """Process ids of this cluster's executors."""
    pids = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                command = (process / "cmdline").read_bytes()
            except OSError:
                continue
            if b"CoarseGrainedExecutorBackend" in command and f"@127.0.0.1:{PORT}".encode() in command:
                pids.append(int(process.name))
    return sorted(pids)


killed: list[int] = []


def minority(counts: Any) -> Any:
    return counts.sum() - counts.max()


def kill_one(job: Any) -> None:
    """Kill an executor in the middle of an iteration, once."""
    if not killed and job.done < job.total:
        killed.append(executors()[0])
        os.kill(killed[0], signal.SIGKILL)


def main() -> None:
    """Compare both layouts with the local engine, then kill."""
    global PORT
    rng = np.random.default_rng(1)
    small = plar.granulate(rng.integers(0, 3, (300, 8)), y=rng.integers(0, 3, 300))
    # a measure of one's own is compiled by every worker, so that the first iteration takes a while
    own = plar.Measure("minority", minority, normaliser=lambda n: n, drop_pure=True)
    X = rng.integers(0, 4, (10_000, 1_200)).astype(np.uint8)
    large = plar.granulate(X, y=(X[:, 3] + X[:, 700] * X[:, 1_100] + (rng.random(10_000) < 0.2)) % 4)
    planted = large.coarsen([*large.conditions[:20], "x700", "x1100"])
    differs = []
    with SparkEngine(master="local-cluster[2,1,1024]", conf=QUICK_START) as engine:
        PORT = str(engine.spark().sparkContext.getConf().get("spark.driver.port"))
        for layout, measure in (("columns", "LCE"), ("rows", "CCE")):
            engine.layout = layout
            on_cluster = plar.reduce(small, measure=measure, engine=engine, max_attributes=2)
            if facts(on_cluster) != facts(plar.reduce(small, measure=measure, max_attributes=2)):
                differs.append(f"{layout} {measure}")
            selected = selection.facts(plar.select(planted, engine=engine))
            if not selected["columns"] or selected != selection.facts(plar.select(planted)):
                differs.append(f"select in {layout}")
        engine.layout = "columns"
        engine.partitions = 10
        engine.watch = kill_one
        expected = facts(plar.reduce(large, measure=own, max_attributes=2))
        if facts(plar.reduce(large, measure=own, engine=engine, max_attributes=2)) != expected:
            differs.append("after the kill")
    print(json.dumps({"differs": differs, "killed": len(killed)}))


PORT = ""
if __name__ == "__main__":
    main()
