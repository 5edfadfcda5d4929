"""Table "Gisette" and figure of its speed-ups: five iterations by model parallelism level, SCE."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from common import Row, peak_mb, reset_peak, session
from sampled import spread

import plar
from plar import datasets
from plar.baselines.spark import SparkSystem
from plar.engines import LocalEngine, SparkEngine
from plar.measures import SCE

LEVELS = (1, 2, 4, 8, 16, 32, 64)
QUICK_LEVELS = (1, 8, 32)


def rows(quick: bool) -> Iterator[Row]:
    """All rows: five iterations of plar, then the paper's PLAR on a sample of their candidates."""
    shape, steps = ((600, 500), 2) if quick else ((6_000, 5_000), 5)
    X, y = datasets.gisette_like(*shape)
    granules = plar.granulate(X, y=y)
    scale = f"generated, {shape[0]:,} × {shape[1]:,}" + (", a hundredth of the paper's cells" if quick else "")
    about = {"dataset": "Gisette shape", "measure": "SCE", "rows": shape[0], "conditions": shape[1], "scale": scale}
    chosen: list[int] = []
    for name, engine in (("plar local", LocalEngine()), ("plar on Spark", SparkEngine(session=session()))):
        reset_peak(tree := name != "plar local")
        evaluation = engine.open(granules, SCE)
        evaluation.with_each([0])  # lays the columns out, once
        times, attributes = _iterations(evaluation, shape[1], steps)
        chosen = chosen or attributes
        assert attributes == chosen
        yield {**about, **_row(name, times, granules, chosen, tree), "level": None}
    with SparkSystem("PLAR", True, 1, session()) as system:
        reset_peak(True)
        held = system.open(granules, SCE)
        held.judge([(0,)] * 8)
        for level in QUICK_LEVELS if quick else LEVELS:
            n = max(6, level)
            times = [_sampled(held, granules, level, n, tuple(chosen[:i])) for i in range(steps)]
            row = _row("PLAR-DP" if level == 1 else "PLAR", times, granules, chosen, True)
            yield {
                **about,
                **row,
                "level": level,
                "timed": n * steps,
                "candidates": sum(shape[1] - i for i in range(steps)),
            }


def _row(name: str, times: list[float], granules: plar.Granules, chosen: list[int], tree: bool) -> Row:
    peak = peak_mb(tree)
    return {
        "system": name,
        "seconds": round(sum(times), 4),
        "iterations": [round(t, 4) for t in times],
        "peak_mb": peak and round(peak),
        "reduct": [granules.conditions[a] for a in chosen],
        "size": len(chosen),
    }


def _iterations(evaluation: Any, n: int, steps: int) -> tuple[list[float], list[int]]:
    times: list[float] = []
    chosen: list[int] = []
    for _ in range(steps):
        began = time.perf_counter()
        rest = [a for a in range(n) if a not in chosen]
        chosen.append(rest[int(np.argmin(evaluation.with_each(rest)))])
        evaluation.select(chosen[-1])
        times.append(time.perf_counter() - began)
    return times, chosen


def _sampled(held: Any, granules: plar.Granules, level: int, n: int, chosen: tuple[int, ...]) -> float:
    """Seconds of an iteration, from n of its candidates, each checked."""
    rest = [a for a in range(len(granules.conditions)) if a not in chosen]
    some = [rest[i] for i in spread(len(rest), n)]
    truth = LocalEngine().open(granules, SCE)
    if chosen:
        truth.select(*chosen)
    held.n_jobs = level
    began = time.perf_counter()
    answers = held.judge([(*chosen, a) for a in some])
    seconds = (time.perf_counter() - began) * len(rest) / len(some)
    assert [judged.theta for judged in answers] == truth.with_each(some)
    return seconds
