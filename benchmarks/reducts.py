"""The smallest reduct with its proof, and all reducts, against named references in one run; answers are asserted.

    python benchmarks/reducts.py               # all rows (make bench-reducts)
    python benchmarks/reducts.py letter noise  # some rows

Figures go to .bench/reducts.json.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from bars import Skip, best, data_folder, in_turn, report, run, weka_file

import plar
from plar import datasets

PLAR = str(Path(sys.executable).parent / "plar")
NINE = dict(zip(datasets.names()[:9], (3, 8, 6, 29, 4, 8, 4, 11, 22), strict=True))


def nine() -> None:
    data_folder()
    granules = {name: plar.granulate(datasets.load(name)) for name in NINE}
    plar.reduce(granules["breast"], search="smallest")
    total, largest = 0.0, 0
    for name, size in NINE.items():
        for measure in ("PR", "SCE", "LCE", "CCE"):
            began = time.perf_counter()
            reduct = plar.reduce(granules[name], search="smallest", measure=measure)
            total += time.perf_counter() - began
            assert reduct.bounds == (size, size), (name, measure)
            assert reduct.proof is not None
            assert plar.verify(reduct.proof, granules[name])
            largest = max(largest, len(json.dumps(reduct.proof.to_dict())))
    report("smallest of the nine datasets × 4 measures, proven : 30 s", total, 30, 1)
    report("the largest of their proofs : 1 MB", largest / 1e6, 1, 1, "MB")


ALL_KDD = """
import plar, sys
reducts = plar.reducts(sys.argv[1], -1, header=False, measure="LCE")
assert (len(reducts), reducts.complete, reducts.sizes[8]) == (607, True, 7)
"""


def kdd99() -> None:
    path = str(data_folder() / "kddcup.data_10_percent.gz")
    read = (sys.executable, "-c", f"import polars; assert polars.read_csv({path!r}, has_header=False).height == 494021")
    command = (PLAR, "reduce", path, "--no-header", "--decision", "-1", "--json", "--search", "smallest")
    (ours, peak, out), (reference, _, _) = in_turn(command, read)
    assert json.loads(out)["bounds"] == [8, 8]
    report(f"KDD99 10 %, smallest, whole process ({peak:.0f} MB) : polars reads it", ours, reference, 10)
    (ours, peak, _), (reference, _, _) = in_turn((sys.executable, "-c", ALL_KDD, path), read)
    report(f"KDD99 10 %, all 607, whole process ({peak:.0f} MB) : polars reads it", ours, reference, 30)


WEKA_COUNT = """
import polars as pl
frame = pl.scan_csv({path!r}, has_header=False, skip_rows={skip}, comment_prefix="%")
assert frame.group_by(pl.all()).agg(pl.len()).collect(engine="streaming").height == 1048575
"""


def weka15360() -> None:
    path = weka_file()
    with path.open() as lines:
        skip = next(i for i, line in enumerate(lines, 1) if line.strip().lower() == "@data")
    count = (sys.executable, "-c", WEKA_COUNT.format(path=str(path), skip=skip))
    command = (PLAR, "reduce", str(path), "--decision", "-1", "--json", "--search", "smallest")
    (ours, peak, out), (reference, _, _) = in_turn(command, count, repeat=1)
    result = json.loads(out)
    assert result["complete"]
    report(f"WEKA15360, smallest ({len(result['attributes'])}), whole process ({peak:.0f} MB) : polars counts its rows",
           ours, reference, 2)  # fmt: skip


def letter() -> None:
    """Desbordante searches for every right-hand side, and finds the same sets for ours."""
    try:
        import desbordante
    except ImportError:
        raise Skip("needs desbordante") from None
    path = data_folder() / "letter-recognition.data"
    sets = {}

    def ours() -> None:
        reducts = plar.reducts(path, 0, header=False, measure="LCE")
        sets["plar"] = {tuple(int(a[1:]) for a in one.attributes) for one in reducts}

    def theirs(name: str) -> None:
        algorithm = getattr(desbordante.fd.algorithms, name)()
        algorithm.load_data(table=(str(path), ",", False))
        algorithm.execute()
        sets[name] = {tuple(fd.lhs_indices) for fd in algorithm.get_fds() if fd.rhs_index == 0}

    ours()
    reference = min(best(lambda name=name: theirs(name), 2) for name in ("HyFD", "DFD"))  # type: ignore[misc]
    seconds = best(ours, 3)
    assert len(sets["plar"]) == 61
    assert sets["plar"] == sets["HyFD"] == sets["DFD"]
    report("Letter, all 61, from the file : the faster of Desbordante's HyFD and DFD", seconds, reference, 1)


def soybean() -> None:
    data_folder()
    granules = plar.granulate(datasets.load("backup-large"))
    assert len(plar.reducts(granules, measure="LCE")) == 22_606
    report("Soybean-large.test, all 22,606 : 2 s", best(lambda: plar.reducts(granules, measure="LCE"), 3), 2, 1)


PEAK = """
def reset_peak():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return peak()
def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM"))
"""
NOISE = (
    PEAK
    + """
import sys, time
import numpy as np, plar
rows, columns = map(int, sys.argv[1:])
pick = np.random.default_rng(0)
table = {**{f"a{j}": pick.integers(0, 3, rows) for j in range(columns)}, "d": pick.integers(0, 2, rows)}
plar.reduce({name: column[:20] for name, column in table.items()}, "d", search="smallest", time_limit=5)
began, before = time.perf_counter(), reset_peak()
reduct = plar.reduce(table, "d", search="smallest", time_limit=20)
seconds = time.perf_counter() - began
assert plar.verify(reduct.proof, table) and reduct.certificate.preserved
grown = peak() - before
print(seconds, *reduct.bounds, grown)
"""
)


def noise() -> None:
    for rows, columns in ((200, 60), (500, 200)):
        done = subprocess.run([sys.executable, "-c", NOISE, str(rows), str(columns)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        seconds, lower, upper, grown = map(float, done.stdout.split())
        assert 1 < lower <= upper
        report(f"noise {rows} × {columns}, time limit 20 s: {lower:.0f} to {upper:.0f}, {grown:.0f} MB more : 20 s",
               seconds, 20, 1.1)  # fmt: skip
        report(f"noise {rows} × {columns}, memory while it runs : 200 MB", grown, 200, 1, "MB")


SPARK = (
    PEAK
    + """
import time, plar
from plar import datasets
from plar.engines import SparkEngine
table = datasets.load("kdd99")
here = plar.reduce(table, search="smallest", measure="PR")
with SparkEngine(master="local[2]") as engine:
    granules = plar.granulate(table)
    plar.core(granules, measure="PR", engine=engine)
    began, before = time.perf_counter(), reset_peak()
    there = plar.reduce(granules, search="smallest", measure="PR", engine=engine)
    print(time.perf_counter() - began, peak() - before)
assert there.proof == here.proof
"""
)


def spark() -> None:
    """The same proof, while the driver holds clauses only."""
    data_folder()
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", SPARK], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    seconds, grown = map(float, done.stdout.split())
    report(f"KDD99 10 % on Spark local[2], smallest ({grown:.0f} MB more on the driver) : 120 s", seconds, 120, 1)


if __name__ == "__main__":
    run((nine, kdd99, weka15360, letter, soybean, noise, spark), "reducts.json")
