"""The local engine against named references, in one run; every row asserts its answer while it times.

    python benchmarks/local.py                 # all rows (make bench)
    python benchmarks/local.py with_each kdd99 # some rows

Each row prints plar's time, the reference's, their ratio and the bar it must meet. Figures go to .bench/local.json.
Files that are generated or too big for the repository live in .bench/.
"""

from __future__ import annotations

import json
import sys
import time
from functools import partial
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
from bars import best, data_folder, process, report, run, timed_steps

import plar
from plar import datasets
from plar.engines import LocalEngine
from plar.granules.granules import Granules
from plar.measures import SCE, exact_log

PLAR = str(Path(sys.executable).parent / "plar")


# --- against scikit-rough -------------------------------------------------------------------------------------


CLASSES = (1, 10, 100, 1_000, 4_000, 20_000, 100_000)


def bincount_ns(x: Any, y: Any) -> float:
    """Nanoseconds per cell of numpy.bincount(column * m + decision) over all columns, one thread."""
    m, decision = np.uint8(y.max() + 1), y.astype(np.int64)
    columns = x.T
    began = time.perf_counter()
    for column in columns:
        np.bincount(column * m + decision, minlength=136)
    return (time.perf_counter() - began) / float(x.size) * 1e9


def sdss(weighted: bool = False) -> tuple[Any, Any, Granules]:
    x, y = datasets.sdss_like()
    counts = np.random.default_rng(7).integers(1, 5, len(y)) if weighted else np.ones(len(y), np.int64)
    granules = Granules(
        conditions=tuple(f"x{j}" for j in range(x.shape[1])),
        columns=tuple(x.T),
        dictionaries=(range(8),) * x.shape[1],
        decision=("y",),
        decision_codes=y.astype(np.uint32),
        decision_values=(range(17),),
        counts=counts,
        n_objects=int(counts.sum()),
    )
    return x, y, granules


def with_classes(granules: Granules, n_classes: int) -> Granules:
    """Add an attribute with this many classes, each of several decisions, so that all stay unsettled."""
    rank = np.empty(len(granules), np.uint32)
    rank[np.argsort(granules.decision_codes, kind="stable")] = np.arange(len(granules), dtype=np.uint32)
    return Granules(
        conditions=(*granules.conditions, "cut"),
        columns=(*granules.columns, rank % np.uint32(n_classes)),
        dictionaries=(*granules.dictionaries, range(n_classes)),
        decision=granules.decision,
        decision_codes=granules.decision_codes,
        decision_values=granules.decision_values,
        counts=granules.counts,
        n_objects=granules.n_objects,
    )


def expected_theta(granules: Granules, by: tuple[int, ...]) -> int:
    """Θ of SCE straight from numpy.unique, for the assertion."""
    key = np.zeros(len(granules), np.int64)
    for j in by:
        key = key * (int(granules.columns[j].max()) + 1) + granules.columns[j]
    _, e_of = np.unique(key, return_inverse=True)
    _, d_of = np.unique(key * granules.n_decisions + granules.decision_codes, return_inverse=True)
    e, d = (np.bincount(of, weights=granules.counts).astype(np.int64) for of in (e_of, d_of))
    logs = {n: exact_log(n) for n in {*map(int, e), *map(int, d)}}
    return sum(n * logs[n] for n in map(int, e)) - sum(n * logs[n] for n in map(int, d))


def with_each() -> None:
    unweighted: dict[int, float] = {}
    for weighted in (False, True):
        x, y, base = sdss(weighted)
        reference = bincount_ns(x, y)
        for n_classes in CLASSES:
            granules = with_classes(base, n_classes)
            candidates = range(x.shape[1])
            evaluation = LocalEngine(n_jobs=1).open(granules, SCE)
            evaluation.select(x.shape[1])
            assert evaluation.unsettled_objects == granules.n_objects
            thetas = evaluation.with_each(candidates)
            for j in (0, 77):
                assert thetas[j] == expected_theta(granules, (j, x.shape[1]))
            ours = best(partial(evaluation.with_each, candidates), 2) / x.size * 1e9
            what = f"SDSS shape, with_each, {n_classes:>7,} classes"
            if weighted:
                report(f"{what}, weights 1–4 : without weights", ours, unweighted[n_classes], 2, "ns")
            else:
                unweighted[n_classes] = ours
                report(f"{what} : bincount", ours, reference, 0.6 if n_classes in (1_000, 4_000) else 0.35, "ns")


def iterations() -> None:
    unweighted = 0.0
    for weighted in (False, True):
        x, y, granules = sdss(weighted)
        reference = bincount_ns(x, y)
        # once before the clock runs: kernels loaded, memory of the machine under this one's at hand
        LocalEngine(n_jobs=1).open(granules, SCE).with_each(range(x.shape[1]))
        evaluation = LocalEngine(n_jobs=1).open(granules, SCE)
        times, chosen = timed_steps(evaluation, x.shape[1])
        assert evaluation.theta == expected_theta(granules, tuple(chosen))
        ours = mean(times) / x.size * 1e9
        if weighted:
            report("SDSS shape, five iterations, weights 1–4 : without weights", ours, unweighted, 2, "ns")
        else:
            unweighted = ours
            report("SDSS shape, mean of five whole iterations : bincount", ours, reference, 0.7, "ns")


MEMORY = """
import resource, sys, plar
from plar import datasets
x, y = datasets.sdss_like()
plar.reduce(x[:1000], y=y[:1000], max_attributes=2)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
reduct = plar.reduce(x, y=y, max_attributes=5)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert len(reduct.attributes) == 5
print((peak - before) / 1024, x.nbytes / 2**20, sum(reduct.seconds.values()))
"""


def memory() -> None:
    _, _, out = process(sys.executable, "-c", MEMORY, repeat=1)
    beyond, encoded, seconds = (float(word) for word in out.split())
    report(f"SDSS shape, plar.reduce from arrays ({seconds:.0f} s): peak beyond them : encoded columns + 120 MB",
           beyond, encoded + 120, 2.5, "MB")  # fmt: skip


# --- real tables ----------------------------------------------------------------------------------------------


def nine_datasets() -> None:
    expected = json.loads((data_folder() / "expected.json").read_text())
    tables = {name: plar.granulate(datasets.load(name)) for name in expected}

    def run() -> None:
        for name, granules in tables.items():
            for measure in ("PR", "SCE", "LCE", "CCE"):
                reduct = plar.reduce(granules, measure=measure)
                positions = [granules.conditions.index(a) for a in reduct.attributes]
                assert positions == expected[name][measure]["reduct"], (name, measure)

    run()
    reference, _, _ = process(sys.executable, "-c", "import sklearn.feature_selection")
    report("nine datasets × 4 measures, from granules : import sklearn.feature_selection", best(run, 3), reference, 1.5)


def growth() -> None:
    def seconds(rows: int, columns: int) -> float:
        x, y = datasets.sdss_like(rows, columns)
        evaluation = LocalEngine(n_jobs=1).open(plar.granulate(x, y=y), SCE)
        evaluation.select(10)
        evaluation.with_each(range(columns))
        times = [best(lambda: evaluation.with_each(range(columns)), 1) for _ in range(5)]
        return median(times)

    once = seconds(100_000, 512)
    report("growth: 200,000 × 512 : 100,000 × 512, one pass", seconds(200_000, 512), once, 2.3)
    report("growth: 100,000 × 1,024 : 100,000 × 512, one pass", seconds(100_000, 1_024), once, 2.3)


if __name__ == "__main__":
    run(
        (nine_datasets, growth, memory, iterations, with_each),
        "local.json",
    )
