"""Memory beside a pandas frame of 200,000 × 300: how much the peak exceeds the frame, in multiples of the codes.

`python benchmarks/memory.py [row …]`. Needs Linux, whose /proc tells and resets the peak.
"""

from __future__ import annotations

import sys

from bars import process, report, run

#: arguments: how, kind; prints the peak beyond the frame and the codes, in MB
PROGRAM = """
import sys
from pathlib import Path
import numpy as np, pandas as pd, plar
from plar.sklearn import ReductSelector

how, kind = sys.argv[1:]

def frame(rows, columns):
    values = np.random.default_rng(0).integers(0, 8, (columns, rows))
    names = [f"c{j}" for j in range(columns)]
    if kind == "int64":
        return pd.DataFrame(values.T, columns=names, copy=False)
    words = np.array([f"value {v}" for v in range(8)], object)
    return pd.DataFrame({name: pd.Series(words[row], dtype=kind) for name, row in zip(names, values)})

def find(x, y):
    return ReductSelector().fit(x, y).reduct_ if how == "fit" else plar.reduce(x, y=y)

def status(word):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(word)) / 1024

small = frame(10_000, 64)
find(small, small["c0"] == small["c7"])
x = frame(200_000, 300)
y = (x["c0"] == x["c7"]).to_numpy()
Path("/proc/self/clear_refs").write_text("5")
before = status("VmRSS")
reduct = find(x, y)
beyond = status("VmHWM") - before
assert reduct.certificate.preserved and len(reduct.attributes) == 10, reduct
assert reduct.attributes[:3] == ("c20", "c27", "c272"), reduct
print(beyond, x.size / 2**20)
"""


def _beside(how: str, kind: str, what: str) -> None:
    _, _, out = process(sys.executable, "-c", PROGRAM, how, kind, repeat=1)
    beyond, codes = (float(word) for word in out.split())
    report(f"200,000 × 300 {kind}, {what}: peak beyond the frame : codes", beyond, codes, 2, "MB")


def reduce_numbers() -> None:
    _beside("reduce", "int64", "plar.reduce")


def reduce_objects() -> None:
    _beside("reduce", "object", "plar.reduce")


def reduce_text() -> None:
    _beside("reduce", "str", "plar.reduce")


def reduce_categories() -> None:
    _beside("reduce", "category", "plar.reduce")


def fit_numbers() -> None:
    _beside("fit", "int64", "ReductSelector.fit")


def fit_text() -> None:
    _beside("fit", "str", "ReductSelector.fit")


if __name__ == "__main__":
    run((reduce_numbers, reduce_objects, reduce_text, reduce_categories, fit_numbers, fit_text), "memory.json")
