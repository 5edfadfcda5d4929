"""Table "SDSS": seconds of one iteration over all candidates by the number of cores."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from common import MEASURES, Row, close, peak_mb, reset_peak

import plar
from plar import datasets
from plar.engines import LocalEngine, SparkEngine, as_engine, why_unavailable
from plar.measures import as_measure

REPEAT = 3


def rows(quick: bool) -> Iterator[Row]:
    """All rows: the second iteration, once an attribute is chosen; the core is empty at this shape."""
    granules = _table(quick)
    shape = len(granules), len(granules.conditions)
    scale = f"generated, {shape[0]:,} × {shape[1]:,}" + (", a hundredth of the paper's cells" if quick else "")
    about = {"dataset": "SDSS shape", "rows": shape[0], "conditions": shape[1], "scale": scale}
    cores = sorted({1, os.cpu_count() or 1})
    expected: dict[str, list[str]] = {}
    engines: list[tuple[str, int | None, Any]] = [("plar local", n, LocalEngine(n_jobs=n)) for n in cores]
    if why_unavailable("cuda") is None:
        engines.append(("plar cuda", None, as_engine("cuda")))
    for name, n, engine in engines:
        for row in _iterations(engine, granules, _measures(quick), tree=False):
            assert expected.setdefault(row["measure"], row["reduct"]) == row["reduct"]
            yield {**about, "system": name, "cores": n, **row}
    del granules, engines, engine
    close()  # a process of its own for each number of cores, and nothing beside it
    for n in cores:
        words = [sys.executable, "-W", "ignore", __file__, str(n), *(["quick"] if quick else [])]
        for row in json.loads(subprocess.check_output(words, text=True)):
            assert expected[row["measure"]] == row["reduct"]
            yield {**about, "system": "plar on Spark", "cores": n, **row}


def _measures(quick: bool) -> Sequence[str]:
    return ("SCE",) if quick else MEASURES


def _table(quick: bool) -> plar.Granules:
    X, y = datasets.sdss_like(32_000, 520) if quick else datasets.sdss_like()
    return plar.granulate(X, y=y)


def _iterations(engine: Any, granules: plar.Granules, measures: Sequence[str], tree: bool) -> Iterator[Row]:
    for measure in measures:
        yield _iteration(engine, granules, measure, tree)


def _iteration(engine: Any, granules: plar.Granules, measure: str, tree: bool) -> Row:
    reset_peak(tree)
    evaluation = engine.open(granules, as_measure(measure))
    every = list(range(len(granules.conditions)))
    first = int(np.argmin(evaluation.with_each(every)))
    evaluation.select(first)
    rest = [a for a in every if a != first]
    times = []
    for _ in range(REPEAT):
        began = time.perf_counter()
        thetas = evaluation.with_each(rest)
        times.append(time.perf_counter() - began)
    began = time.perf_counter()
    chosen = rest[int(np.argmin(thetas))]
    evaluation.select(chosen)
    seconds = min(times) + time.perf_counter() - began
    reduct = [granules.conditions[a] for a in (first, chosen)]
    peak = peak_mb(tree)
    row = {"measure": measure, "seconds": round(seconds, 4), "candidates": len(rest), "timed": len(rest)}
    return {**row, "peak_mb": peak and round(peak), "reduct": reduct, "size": len(reduct)}


if __name__ == "__main__":
    fast = "quick" in sys.argv
    with SparkEngine(master=f"local[{sys.argv[1]}]") as spark:
        print(json.dumps(list(_iterations(spark, _table(fast), _measures(fast), tree=True))))
