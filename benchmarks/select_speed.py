"""`plar.select` against named references, in one run; every row asserts its answer while it times.

    python benchmarks/select_speed.py           # all rows (make bench)
    python benchmarks/select_speed.py sdss wide # some rows; QUICK=1: smaller tables

Each row prints plar's time, the reference's, their ratio and the bar it must meet. The figures go to
.bench/select_speed.json.
"""

from __future__ import annotations

import os
import sys
import time

import numpy as np
from bars import data_folder, in_turn, report, run, timed_steps

import plar
from plar import datasets
from plar.engines import LocalEngine
from plar.granules.granules import Granules
from plar.measures import SCE

QUICK = bool(os.environ.get("QUICK"))

READ = "import polars, sys; print(polars.read_csv(sys.argv[1], has_header=False).shape)"
SELECT = """
import sys, plar
selection = plar.select(sys.argv[1], -1, header=False, separator=",", na="?")
assert selection.complete and 30 <= len(selection.columns) < 41
print(len(selection.columns))
"""


def planted() -> tuple[Granules, list[int]]:
    """SDSS shape, where ten columns decide; they have two values, so that classes of nine still have rows."""
    n, k = (32_000, 1_200) if QUICK else (320_000, 5_201)
    x, _ = datasets.random_table(n, k, values=8, classes=2, seed=3)
    causes = np.arange(10) * (k // 10) + 3
    x[:, causes] //= 4
    y = x[:, causes].sum(axis=1) >= 5
    granules = Granules(
        conditions=tuple(f"x{j}" for j in range(k)),
        columns=tuple(x.T),
        dictionaries=(range(8),) * k,
        decision=("y",),
        decision_codes=y.astype(np.uint32),
        decision_values=(range(2),),
        counts=np.ones(n, np.int64),
        n_objects=n,
    )
    return granules, causes.tolist()


def sdss() -> None:
    """Ten columns, beside the steps of the plain search to the same ten; nothing is read or compiled meanwhile."""
    granules, causes = planted()
    k = len(granules.conditions)
    names = {granules.conditions[a] for a in causes}
    plar.select(granules, max_columns=1)
    ratios: list[tuple[float, float, float]] = []
    for _ in range(2):  # in turn, so that a noisy machine disturbs both
        evaluation = LocalEngine().open(granules, SCE)
        evaluation.with_each(range(k))  # the columns are laid out
        times, chosen = timed_steps(evaluation, k, 10)
        assert set(chosen) == set(causes)
        del evaluation
        selection = plar.select(granules, max_columns=10)
        seconds = selection.seconds["select"]
        assert set(selection.columns) == names, selection.columns
        ratios.append((seconds / sum(times), seconds, sum(times)))
    _, ours, reference = min(ratios)
    report("SDSS shape, select of ten columns : plain steps to the same ten", ours, reference, 3)


def wide() -> None:
    """1,500 rows of 800 noisy copies of a target, each noisy by itself: none makes another one redundant."""
    n, k, limit = 1_500, 800, 600
    pick = np.random.default_rng(5)
    y = pick.integers(0, 2, n)
    x = (pick.random((n, k)) < np.where(y[:, None] == 1, 0.62, 0.38)).astype(np.uint8)
    granules = plar.granulate(x, y=y)
    plar.select(granules, max_columns=2)
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        selection = plar.select(granules, max_columns=limit)
        seconds.append(time.perf_counter() - began)
        assert len(selection.columns) == limit
    report(f"1,500 × 800, select of {limit} columns : 5 s", min(seconds), 5, 1)


def kdd99() -> None:
    """A whole process, beside polars, which only reads the file."""
    path = str(data_folder() / "kddcup.data_10_percent.gz")
    (ours, peak, _), (reference, _, _) = in_turn(
        (sys.executable, "-c", SELECT, path), (sys.executable, "-c", READ, path)
    )
    report(f"KDD99 10 %, select, whole process ({peak:.0f} MB) : polars reads it", ours, reference, 3)


if __name__ == "__main__":
    run((kdd99, wide, sdss), "select_speed.json")
