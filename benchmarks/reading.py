"""The way in against named references, whole processes, in one run; every row asserts its answer while it times.

    python benchmarks/reading.py               # all rows (make bench)
    python benchmarks/reading.py numpy parquet # some rows

Figures go to .bench/reading.json, and so do the files that are generated.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from statistics import mean, median

import numpy as np
from bars import HERE, PEER, Skip, best, process, report, run

import plar
from plar import datasets
from plar.engines import LocalEngine
from plar.measures import SCE

MAKE = """
import sys, numpy as np, polars as pl
table = np.random.default_rng(0).integers(0, 8, (2001, 100_000), np.int8)
np.save(sys.argv[1] + ".npy", table)
names = [*(f"x{j}" for j in range(2000)), "d"]
pl.DataFrame(dict(zip(names, table.astype(np.int64)))).write_parquet(sys.argv[1] + ".parquet")
"""


def small_integers(suffix: str) -> str:
    """A table of 100,000 × 2,000 of 8 values, and a decision, as an array of columns or a Parquet file."""
    path = HERE / "small_integers"
    if not path.with_suffix(".parquet").exists():  # made by another process: a child's peak begins with its parent's
        process(sys.executable, "-c", MAKE, str(path), repeat=1)
    return str(path.with_suffix(suffix))


NUMPY = """
import numpy as np, sys, time, plar
table = np.load(sys.argv[1])
x, y = np.array(table[:-1].T, dtype=sys.argv[2], order=sys.argv[3]), table[-1]
plar.reduce(x[:1000, :50], y=y[:1000], max_attributes=1)
began = time.perf_counter()
found = plar.reduce(x, y=y)
print(time.perf_counter() - began, len(found.attributes), found.certificate.preserved)
"""


def numpy() -> None:
    for dtype in ("int8", "int64", "float64"):
        seconds, peaks, answers = {}, {}, set()
        for order in ("F", "C"):
            command = (sys.executable, "-c", NUMPY, small_integers(".npy"), dtype, order)
            runs = [process(*command, repeat=1) for _ in range(3)]
            peaks[order] = max(peak for _, peak, _ in runs)
            seconds[order] = min(float(out.split()[0]) for *_, out in runs)
            answers |= {tuple(out.split()[1:]) for *_, out in runs}
        assert len(answers) == 1
        assert answers.pop()[1] == "True"
        report(f"numpy 100,000 × 2,000 of {dtype}, reduce ({peaks['C']:.0f} MB), C order : Fortran order",
               seconds["C"], seconds["F"], 1.5)  # fmt: skip


GRANULATE = "import plar; g = plar.granulate({path!r}, 'd'); assert (g.n_objects, len(g.conditions)) == (100000, 2000)"
READ = "import polars; assert polars.read_parquet({path!r}).shape == (100000, 2001)"


def parquet() -> None:
    path = small_integers(".parquet")
    ours, reading = GRANULATE.format(path=path), READ.format(path=path)
    process(sys.executable, "-c", ours, repeat=1)
    reference, _, _ = process(sys.executable, "-c", reading)
    seconds, peak, _ = process(sys.executable, "-c", ours)
    report(f"Parquet 100,000 × 2,000 of small integers, granulate ({peak:.0f} MB) : polars reads it",
           seconds, reference, 4)  # fmt: skip


BINS = """
import sys, time, warnings
import numpy as np, pandas as pd, plar
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
x = rng.normal(size=(200, 20_000))
frame = pd.DataFrame(x, columns=[f"x{j}" for j in range(x.shape[1])])
frame["d"] = (x[:, 3] + rng.normal(size=200) > 0).astype(int)
plar.reduce(frame.iloc[:, -50:], "d", bins="mdlp")
for bins in (None, "mdlp"):
    began = time.perf_counter()
    found = plar.reduce(frame, "d", bins=bins)
    print(time.perf_counter() - began, len(found.cuts), found.certificate.preserved)
"""


def bins() -> None:
    _, peak, out = process(sys.executable, "-c", BINS, repeat=1)
    without, cut = (line.split() for line in out.splitlines())
    assert without[1:] == ["0", "True"]
    assert cut[1:] == ["20000", "True"]
    report(
        f"pandas 200 × 20,000 floats, bins='mdlp' ({peak:.0f} MB) : without bins", float(cut[0]), float(without[0]), 10
    )


def first_step() -> None:
    x, y = datasets.sdss_like()
    granules = plar.granulate(x, y=y)
    LocalEngine().open(granules, SCE).with_each(range(x.shape[1]))  # kernels loaded
    evaluation, times, chosen = LocalEngine().open(granules.for_one_search(), SCE), [], []
    for _ in range(5):
        began = time.perf_counter()
        candidates = [a for a in range(x.shape[1]) if a not in chosen]
        thetas = evaluation.with_each(candidates)
        chosen.append(candidates[thetas.index(min(thetas))])
        evaluation.select(chosen[-1])
        times.append(time.perf_counter() - began)
    again = LocalEngine(n_jobs=1, lanes=False).open(granules.coarsen(chosen), SCE)
    assert again.theta_all == evaluation.theta
    report("SDSS shape, first step, all threads : mean of the next", times[0], mean(times[1:]), 3)


def scikit_rough() -> None:
    python = HERE / "skrough" / "bin" / "python"
    if not python.exists():
        raise Skip("scikit-rough is not installed in .bench/skrough; 'make bench' does it")
    x, y = datasets.random_table(100_000, 20, values=4, classes=3, seed=1)
    path = HERE / "peer.npy"
    np.save(path, np.column_stack([x, y]))
    times = []
    for _ in range(5):
        peer, attributes, *_ = json.loads(subprocess.check_output([str(python), "-c", PEER, str(path), "5"], text=True))
        found = plar.reduce(x, y=y)
        assert found.certificate.preserved
        assert len(found.attributes) <= len(attributes)
        times.append((peer / (ours := best(lambda: plar.reduce(x, y=y), 15)), ours, peer))
    for what, (_, ours, peer), bar in (("median", median_of(times), 12), ("least", min(times), 10)):
        report(f"100,000 × 20 from arrays, {what} of five : scikit-rough, no core", ours, peer, bar, at_least=True)


def median_of(times: list[tuple[float, float, float]]) -> tuple[float, float, float]:
    middle = median(ratio for ratio, *_ in times)
    return next(row for row in times if row[0] == middle)


if __name__ == "__main__":
    run((numpy, parquet, bins, scikit_rough, first_step), "reading.json")
