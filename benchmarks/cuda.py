"""The CUDA engine: times by CUDA events, medians, every answer asserted against the local engine.

    python benchmarks/cuda.py                   # all rows (needs an NVIDIA GPU and 16 GB of memory)
    python benchmarks/cuda.py with_each copying # some rows

Each row prints the time, the bar it must meet, and for kernels what they move in a second, beside the bandwidth that a
copy on the device reaches in the same run. Figures go to .bench/cuda.json.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from statistics import median
from typing import Any

import numpy as np
from bars import HERE
from local import CLASSES, with_classes
from local import sdss as make_sdss

sys.path.pop(0)  # in this folder the file itself would be taken for NVIDIA's package `cuda`
from numba import cuda

import plar
from plar import datasets
from plar.engines import CudaEngine, LocalEngine
from plar.engines.cuda.kernels import grid, interleave
from plar.granules.granules import Granules
from plar.measures import SCE, Measure

RESULTS: list[dict[str, Any]] = []
REPEAT = 20
#: 1.7 GB each
sdss = cache(make_sdss)


def report(work: str, ms: float, bar: float | None = None, moved: float = 0.0, note: str = "") -> None:
    """Print one row: milliseconds, the bar not to exceed, and bytes moved against the device's bandwidth."""
    met = None if bar is None else ms <= bar
    sign = {None: "    ", True: "  ok", False: "MISS"}[met]
    text = f"{sign}  {work:<72} {ms:10.3f} ms"
    text += f"  (bar ≤ {bar:.4g})" if bar is not None else ""
    if moved:
        speed = moved / ms / 1e6
        text += f"  {speed:7.1f} GB/s, {100 * speed / bandwidth():.0f} % of a copy"
    print(text + (f"  {note}" if note else ""), flush=True)
    RESULTS.append({"work": work, "ms": ms, "bar": bar, "met": met, "moved": moved, "note": note})


def timed(function: Callable[[], Any], repeat: int = REPEAT) -> float:
    """Median milliseconds between two events around a call, after a warm-up call."""
    function()
    times = []
    for _ in range(repeat):
        began, ended = cuda.event(), cuda.event()
        began.record()
        function()
        ended.record()
        ended.synchronize()
        times.append(cuda.event_elapsed_time(began, ended))
    return float(median(times))


@cache
def bandwidth() -> float:
    """GB per second of a copy on the device, reads and writes together."""
    source, target = (cuda.device_array(1 << 28, np.uint64) for _ in range(2))
    ms = timed(lambda: target.copy_to_device(source))
    return float(2 * source.nbytes / ms / 1e6)


def granules_of(x: Any, y: Any) -> Granules:
    """Granules with one row each."""
    return Granules(
        conditions=tuple(f"x{j}" for j in range(x.shape[1])),
        columns=tuple(x.T),
        dictionaries=tuple(range(int(column.max()) + 1) for column in x.T),
        decision=("y",),
        decision_codes=y.astype(np.uint32),
        decision_values=(range(int(y.max()) + 1),),
        counts=np.ones(len(y), np.int64),
        n_objects=len(y),
    )


def assert_same(granules: Granules, measure: Measure, by: int, candidates: Sequence[int], thetas: list[int]) -> None:
    """Compare Θ of candidates, after one attribute was selected, with the local engine's."""
    local = LocalEngine().open(granules, measure)
    local.select(by)
    assert local.with_each(candidates) == thetas


def with_each() -> None:
    bars = dict.fromkeys(CLASSES, 3.0) | {4_000: 10.0, 20_000: 8.0, 100_000: 4.0}
    n, n_columns = sdss()[0].shape
    candidates = range(n_columns)
    for weighted in (False, True):
        _, _, base = sdss(weighted)
        for n_classes in CLASSES:
            granules = with_classes(base, n_classes)
            evaluation = CudaEngine().open(granules, SCE)
            evaluation.select(n_columns)
            assert evaluation.unsettled_objects == granules.n_objects
            assert_same(granules, SCE, n_columns, candidates, evaluation.with_each(candidates))
            ms = timed(lambda e=evaluation: e.with_each(candidates))  # type: ignore[misc]
            what = f"SDSS shape, with_each, {n_classes:>7,} classes" + (", weights 1–4" if weighted else "")
            report(what, ms, None if weighted else bars[n_classes], n * n_columns)


def measures() -> None:
    x, _, base = sdss()
    candidates = range(x.shape[1])
    for name in ("PR", "LCE", "CCE"):
        for n_classes in (1, 1_000, 100_000):
            measure = plar.measures.as_measure(name)
            granules = with_classes(base, n_classes)
            evaluation = CudaEngine().open(granules, measure)
            evaluation.select(x.shape[1])
            assert_same(granules, measure, x.shape[1], candidates, evaluation.with_each(candidates))
            ms = timed(lambda e=evaluation: e.with_each(candidates))  # type: ignore[misc]
            report(f"SDSS shape, with_each, {n_classes:>7,} classes, {name}", ms, None, x.size)


def iterations() -> None:
    _, _, granules = sdss()
    plar.reduce(granules, measure=SCE, engine=CudaEngine(), max_attributes=5)
    reduct = plar.reduce(granules, measure=SCE, engine=CudaEngine(), max_attributes=5)
    expected = plar.reduce(granules, measure=SCE, engine=LocalEngine(), max_attributes=5)
    assert facts(reduct) == facts(expected)
    for i, step in enumerate(reduct.steps):
        report(f"SDSS shape, whole iteration {i + 1}, host time included", 1e3 * step.seconds, 10.0)


def facts(reduct: plar.Reduct) -> dict[str, Any]:
    """Everything but the times and the engine."""
    fields = reduct.to_dict()
    for step in fields["steps"]:
        step.pop("seconds")
    return {name: value for name, value in fields.items() if name not in ("seconds", "engine")}


def copying() -> None:
    x, _, granules = sdss()
    rows = x.T
    target = cuda.device_array(rows.shape, np.uint8)
    whole = timed(lambda: target.copy_to_device(rows), 5)
    single = timed(lambda: [target[j].copy_to_device(column) for j, column in enumerate(granules.columns)], 3)
    speed = f"{x.size / whole / 1e6:.1f} GB/s"
    report("SDSS shape, copying the columns to the device, at once", whole, None, note=speed)
    report("SDSS shape, copying the columns to the device, one by one", single)
    plar.reduce(granules, measure=SCE, engine=CudaEngine(), max_attributes=10)
    times = []
    for _ in range(3):
        began = time.perf_counter()
        reduct = plar.reduce(granules, measure=SCE, engine=CudaEngine(), max_attributes=10)
        times.append(1e3 * (time.perf_counter() - began))
    assert facts(reduct) == facts(plar.reduce(granules, measure=SCE, engine=LocalEngine(), max_attributes=10))
    assert len(reduct.attributes) == 10
    phases = ", ".join(f"{phase} {1e3 * seconds:.0f}" for phase, seconds in reduct.seconds.items())
    note = f"{phases}; core of {len(reduct.core)}"
    report(
        "SDSS shape, granules in host memory → ten attributes, core, certificate", median(times), 4 * whole, note=note
    )


def gisette() -> None:
    granules = granules_of(*datasets.gisette_like())
    for engine in (CudaEngine(), LocalEngine()):
        plar.reduce(granules, measure=SCE, engine=engine)
        times = []
        for _ in range(3):
            began = time.perf_counter()
            reduct = plar.reduce(granules, measure=SCE, engine=engine)
            times.append(1e3 * (time.perf_counter() - began))
        if engine.name == "cuda":
            expected = facts(reduct)
        assert facts(reduct) == expected
        threads = f", {os.cpu_count()} threads" if engine.name == "local" else ""
        note = f"{len(reduct.attributes)} attributes, core of {len(reduct.core)}"
        report(
            f"Gisette shape, whole reduct with core and certificate, {engine.name}{threads}", median(times), note=note
        )


def many_values() -> None:
    rng = np.random.default_rng(3)
    n = 320_000
    y = rng.integers(0, 1_000, n)
    for n_values, kind, n_columns in (
        (16, np.uint8, 256),
        (48, np.uint8, 256),
        (256, np.uint8, 64),
        (65_536, np.uint16, 64),
    ):
        x = np.asfortranarray(rng.integers(0, n_values, (n, n_columns)).astype(kind))
        for n_classes in (1, 4_000):
            granules = with_classes(granules_of(x, y), n_classes)
            evaluation = CudaEngine().open(granules, SCE)
            evaluation.select(n_columns)
            candidates = range(n_columns)
            assert_same(granules, SCE, n_columns, candidates, evaluation.with_each(candidates))
            ms = timed(lambda e=evaluation, c=candidates: e.with_each(c), 5)  # type: ignore[misc]
            what = f"320,000 × {n_columns}, {n_values:,} values, 1,000 decisions, {n_classes:,} classes"
            report(what, ms, None, x.nbytes)


def larger_than_memory() -> None:
    x, _, granules = sdss()
    evaluation = CudaEngine(memory=x.nbytes // 4).open(granules, SCE)
    expected = LocalEngine().open(granules, SCE).with_each(range(x.shape[1]))
    assert evaluation.with_each(range(x.shape[1])) == expected
    ms = timed(lambda: evaluation.with_each(range(x.shape[1])), 3)
    report("SDSS shape, with_each, a quarter of the columns may stay on the device", ms, None, x.size)


def parts() -> None:
    """Time what is not a pass over the columns: laying out, refining."""
    x, _, base = sdss()
    n, width = len(x), 64
    columns, target = (
        cuda.to_device(np.ascontiguousarray(x.T[:width]).reshape(-1)),
        cuda.device_array(n * 16, np.uint32),
    )
    ms = timed(lambda: interleave[grid(n * 16, 128)](columns, n, width, target, 16, 0))
    report(f"laying out {width} columns as lanes", ms, None, 2 * n * width)
    for n_classes in CLASSES:
        granules = with_classes(base, n_classes)
        evaluation = CudaEngine().open(granules, SCE)
        evaluation.select(x.shape[1])
        local = LocalEngine().open(granules, SCE)
        local.select(x.shape[1])
        lanes, now = evaluation._columns._blocks[0], evaluation._now
        ms = timed(lambda e=evaluation, b=lanes: e._lane_sums(b, b.data, 0))  # type: ignore[misc]
        report(f"cells and merge alone, {n_classes:>7,} classes", ms, None, x.size)
        ms = timed(lambda e=evaluation, b=now: e._refined(b, [77]))  # type: ignore[misc]
        assert evaluation.select(77) == local.select(77)
        assert evaluation.unsettled_objects == local.unsettled_objects
        report(f"refining {n_classes:>7,} classes of 320,000 rows by one column", ms)
    refinery = evaluation._refinery
    ms = timed(lambda: refinery._sorter.sorted(n, 8))
    report("sorting 320,000 keys by 8 bits: count, prefix sums, move", ms, None, 32 * n)
    ms = timed(lambda: refinery._sorter.scan(refinery._marked, n + 1))
    report("prefix sums of two arrays of 320,000", ms, None, 48 * n)


ROWS: dict[str, Callable[[], None]] = {
    f.__name__: f for f in (with_each, measures, iterations, copying, gisette, many_values, larger_than_memory, parts)
}


def main() -> None:
    HERE.mkdir(exist_ok=True)
    names = sys.argv[1:] or list(ROWS)
    unknown = [name for name in names if name not in ROWS]
    if unknown:
        sys.exit(f"Unknown row {unknown[0]!r}. Choose one of: {', '.join(ROWS)}.")
    gpu = cuda.get_current_device()
    name = gpu.name.decode() if isinstance(gpu.name, bytes) else gpu.name
    print(f"plar {plar.__version__}, {name}, a copy moves {bandwidth():.0f} GB/s, {os.cpu_count()} cores")
    for row in names:
        ROWS[row]()
    (HERE / "cuda.json").write_text(json.dumps(RESULTS, indent=1) + "\n")
    judged = [r["met"] for r in RESULTS if r["met"] is not None]
    print(f"{sum(judged)} of {len(judged)} bars met")


if __name__ == "__main__":
    main()
