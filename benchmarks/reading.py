"""Reading tables against named references, whole processes, in one run; every row asserts its answer while it times.

    python benchmarks/reading.py               # all rows (make bench)
    python benchmarks/reading.py numpy parquet # some rows

Figures go to .bench/reading.json, and so do the files that are generated.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from statistics import mean, median

import numpy as np
from bars import HERE, PEER, Skip, best, data_folder, in_turn, process, report, run, timed_steps, weka_file

import plar
from plar import datasets
from plar.engines import LocalEngine
from plar.measures import SCE

PLAR = str(Path(sys.executable).parent / "plar")
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
reduct = plar.reduce(x, y=y)
print(time.perf_counter() - began, len(reduct.attributes), reduct.certificate.preserved)
"""


def numpy() -> None:
    for dtype in ("int8", "int64", "float64"):
        seconds: dict[str, list[float]] = {"F": [], "C": []}
        peaks, answers = [], set()
        for order in 5 * ("F", "C"):  # in turn, so that noise affects both
            _, peak, out = process(sys.executable, "-c", NUMPY, small_integers(".npy"), dtype, order, repeat=1)
            peaks.append(peak)
            seconds[order].append(float(out.split()[0]))
            answers.add(tuple(out.split()[1:]))
        assert len(answers) == 1
        assert answers.pop()[1] == "True"
        report(f"numpy 100,000 × 2,000 of {dtype}, reduce ({max(peaks):.0f} MB), C order : Fortran order",
               min(seconds["C"]), min(seconds["F"]), 1.5)  # fmt: skip


GRANULATE = "import plar; g = plar.granulate({path!r}, 'd'); assert (g.n_objects, len(g.conditions)) == (100000, 2000)"
READ = "import polars; assert polars.read_parquet({path!r}).shape == (100000, 2001)"


def parquet() -> None:
    path = small_integers(".parquet")
    ours, reading = GRANULATE.format(path=path), READ.format(path=path)
    (seconds, peak, _), (reference, _, _) = in_turn((sys.executable, "-c", ours), (sys.executable, "-c", reading))
    report(f"Parquet 100,000 × 2,000 of small integers, granulate ({peak:.0f} MB) : polars reads it",
           seconds, reference, 4)  # fmt: skip


TEXT = """
import sys, numpy as np
n, k = int(sys.argv[2]), int(sys.argv[3])
pick = np.random.default_rng(0)
names = [*(f"c{j}" for j in range(k)), "d"]
with open(sys.argv[1] + ".part", "wb") as file:
    file.write((",".join(names) + "\\n").encode())
    for low in range(0, n, 1000):
        rows = np.full((min(1000, n - low), 2 * k + 2), ord(","), np.uint8)
        rows[:, 0:-2:2] = pick.integers(48, 56, (len(rows), k), np.uint8)
        rows[:, -2] = pick.integers(97, 97 + int(sys.argv[4]), len(rows), np.uint8)
        rows[:, -1] = 10
        file.write(rows.tobytes())
"""


def wide_text(n: int, k: int, classes: int) -> str:
    """A CSV file of one-digit values and a decision."""
    path = HERE / f"wide_{n}_{k}.csv"
    if not path.exists():
        process(sys.executable, "-c", TEXT, str(path), str(n), str(k), str(classes), repeat=1)
        path.with_name(f"{path.name}.part").rename(path)
    return str(path)


STRINGS = "import polars; assert polars.read_csv({path!r}, infer_schema=False, n_rows={rows}).height == {rows}"


def csv_wide() -> None:
    path = wide_text(100_000, 2000, 8)
    command = (PLAR, "reduce", path, "-d", "d", "--json")
    strings = (sys.executable, "-c", STRINGS.format(path=path, rows=100_000))
    (ours, peak, out), (reference, theirs, _) = in_turn(command, strings)
    result = json.loads(out)
    assert (result["n_objects"], result["certificate"]["preserved"]) == (100_000, True)
    report(f"CSV 100,000 × 2,000, plar reduce ({peak:.0f} MB) : polars reads strings ({theirs:.0f} MB)",
           ours, reference, 0.4)  # fmt: skip
    report("CSV 100,000 × 2,000, plar reduce, peak memory : codes + 500 MB", peak, 191 + 500, 1, "MB")


def csv_sdss() -> None:
    path = wide_text(320_000, 5201, 17)
    command = (PLAR, "reduce", path, "-d", "d", "--max-attributes", "10", "--json")
    reference, _, _ = process(sys.executable, "-c", STRINGS.format(path=path, rows=32_000), repeat=1)
    ours, peak, out = process(*command, repeat=1)
    result = json.loads(out)
    assert result["n_objects"] == 320_000
    assert result["certificate"]["preserved"] or len(result["attributes"]) == 10
    report(f"CSV of SDSS shape, 3.3 GB, to ten attributes ({peak:.0f} MB) : polars reads a tenth, × 10",
           ours, 10 * reference, 0.4)  # fmt: skip


TALL = """
import sys, numpy as np, polars as pl
pick = np.random.default_rng(1)
rows = pick.integers(0, 12, (300_000, 13))[pick.integers(0, 300_000, 5_000_000)]
pl.DataFrame(rows, schema=[f"c{j}" for j in range(13)]).write_csv(sys.argv[1])
"""
GROUPED = """
import polars as pl
rows = pl.scan_csv({path!r}, infer_schema=False).group_by(pl.all()).len().collect(engine="streaming")
assert (rows["len"].sum(), 299_000 < rows.height <= 300_000) == (5_000_000, True)
"""
GRANULES = (
    "import plar; g = plar.granulate({path!r}, -1); assert g.n_objects == 5000000; assert 299000 < len(g) <= 300000"
)


def csv_tall() -> None:
    path = HERE / "tall.csv"
    if not path.exists():
        process(sys.executable, "-c", TALL, str(path), repeat=1)
    command = (sys.executable, "-c", GRANULES.format(path=str(path)))
    (ours, peak, _), (reference, theirs, _) = in_turn(command, (sys.executable, "-c", GROUPED.format(path=str(path))))
    report(f"CSV 5 million × 13, granulate ({peak:.0f} MB) : polars groups and counts ({theirs:.0f} MB)",
           ours, reference, 0.6)  # fmt: skip


def kdd99() -> None:
    path = str(data_folder() / "kddcup.data_10_percent.gz")
    read = f"import polars; assert polars.read_csv({path!r}, has_header=False).shape == (494021, 42)"
    command = (PLAR, "reduce", path, "--no-header", "--decision", "-1", "--json")
    (ours, peak, out), (reference, _, _) = in_turn(command, (sys.executable, "-c", read), repeat=5)
    result = json.loads(out)
    assert result["n_objects"] == 494_021
    assert result["certificate"]["preserved"]
    report(f"KDD99 10 %, plar reduce, whole process ({peak:.0f} MB) : polars reads it", ours, reference, 2)


WEKA_COUNT = """
import polars as pl
frame = pl.scan_csv({path!r}, has_header=False, skip_rows={skip}, comment_prefix="%")
frame = frame.group_by(pl.all()).agg(pl.len())
assert frame.collect(engine="streaming").height == 1048575
"""


def weka15360() -> None:
    path = weka_file()
    with path.open() as lines:
        skip = next(i for i, line in enumerate(lines, 1) if line.strip().lower() == "@data")
    command = (PLAR, "reduce", str(path), "--decision", "-1", "--json")
    count = (sys.executable, "-c", WEKA_COUNT.format(path=str(path), skip=skip))
    (ours, peak, out), (reference, _, _) = in_turn(command, count)
    result = json.loads(out)
    assert (result["n_objects"], result["n_granules"]) == (15_360_000, 1_048_575)
    assert result["consistent"]
    assert result["certificate"]["preserved"]
    report("WEKA15360, plar reduce, whole process : polars counts its distinct rows", ours, reference, 0.5)
    report("WEKA15360, plar reduce, peak memory : 1 GB", peak, 1024, 1, "MB")


def tic_tac_toe() -> None:
    command = (PLAR, "reduce", "examples/tic_tac_toe.csv", "--decision", "x_wins", "--json")
    (ours, _, out), (reference, _, _) = in_turn(command, (sys.executable, "-c", "import numba, polars"), repeat=9)
    assert len(json.loads(out)["attributes"]) == 8
    report("plar reduce tic_tac_toe.csv, second run, whole process : import numba, polars", ours, reference, 1.5)


BINS = """
import sys, time, warnings
import numpy as np, pandas as pd, plar
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
x = rng.normal(size=(200, 20_000))
frame = pd.DataFrame(x, columns=[f"x{j}" for j in range(x.shape[1])])
frame["d"] = (x[:, 3] + rng.normal(size=200) > 0).astype(int)
plar.reduce(frame.iloc[:, -50:], "d", bins="mdlp")
data = frame
if len(sys.argv) > 1:
    data = sys.argv[1]
    frame.to_csv(data, index=False)
for bins in (None, "mdlp"):
    began = time.perf_counter()
    reduct = plar.reduce(data, "d", bins=bins)
    print(time.perf_counter() - began, len(reduct.cuts), reduct.certificate.preserved)
"""


def bins() -> None:
    for kind, place in (("pandas", ()), ("CSV", (str(HERE / "floats.csv"),))):
        _, peak, out = process(sys.executable, "-c", BINS, *place, repeat=1)
        without, cut = (line.split() for line in out.splitlines())
        assert without[1:] == ["0", "True"]
        assert cut[1:] == ["20000", "True"]
        report(f"{kind} 200 × 20,000 floats, bins='mdlp' ({peak:.0f} MB) : without bins",
               float(cut[0]), float(without[0]), 10)  # fmt: skip


def first_step() -> None:
    x, y = datasets.sdss_like()
    granules = plar.granulate(x, y=y)
    LocalEngine().open(granules, SCE).with_each(range(x.shape[1]))  # kernels loaded
    evaluation = LocalEngine().open(granules.for_one_search(), SCE)
    times, chosen = timed_steps(evaluation, x.shape[1])
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
        reduct = plar.reduce(x, y=y)
        assert reduct.certificate.preserved
        assert len(reduct.attributes) <= len(attributes)
        times.append((peer / (ours := best(lambda: plar.reduce(x, y=y), 15)), ours, peer))
    for what, (_, ours, peer), bar in (("median", median_of(times), 12), ("least", min(times), 10)):
        report(f"100,000 × 20 from arrays, {what} of five : scikit-rough, no core", ours, peer, bar, at_least=True)


def median_of(times: list[tuple[float, float, float]]) -> tuple[float, float, float]:
    middle = median(ratio for ratio, *_ in times)
    return next(row for row in times if row[0] == middle)


if __name__ == "__main__":
    text = (csv_wide, csv_sdss, csv_tall, kdd99, weka15360, tic_tac_toe)
    run((*text, numpy, parquet, bins, scikit_rough, first_step), "reading.json")
