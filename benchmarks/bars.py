"""What the benchmarks share: rows with a bar to meet, times, and files too big for the repository."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import plar

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / ".bench"
RESULTS: list[dict[str, Any]] = []
#: an installed package has its bytecode; a working copy must be allowed to write it
AS_INSTALLED = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
#: for sessions in which others are timed too: the JVM compiles as if plar had not started it
AS_OTHERS_DO = {"spark.driver.defaultJavaOptions": "-XX:+TieredCompilation"}

#: scikit-rough in its own Python: least seconds, attributes, peak MB and version, as JSON
PEER = """
import json, resource, sys, time
import numpy as np
from importlib.metadata import version
from skrough.algorithms.reducts import get_approx_reduct_greedy_heuristic
from skrough.disorder_measures import entropy
table = np.load(sys.argv[1])
x, y = table[:, :-1].astype(int), table[:, -1].astype(int)
find = lambda: get_approx_reduct_greedy_heuristic(x, y, entropy, 0.0, seed=0)[0]
find()
times = []
for _ in range(int(sys.argv[2])):
    began = time.perf_counter()
    result = find()
    times.append(time.perf_counter() - began)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([min(times), [int(a) for a in result.attrs], peak, version("scikit-rough")]))
"""


class Skip(Exception):
    """A row that cannot be measured here, with the reason."""


def report(work: str, ours: float, reference: float, bar: float, unit: str = "s", at_least: bool = False) -> None:
    """Print one row; `bar` is the ratio not to exceed, or with `at_least` the speed-up to reach."""
    ratio = reference / ours if at_least else ours / reference
    met = ratio >= bar if at_least else ratio <= bar
    RESULTS.append({"work": work, "ours": ours, "reference": reference, "ratio": ratio, "bar": bar, "met": met})
    sign = "≥" if at_least else "≤"
    print(f"{'  ok' if met else 'MISS'}  {work:<74} {ours:9.4g} {unit:<3} : {reference:9.4g} {unit:<3} "
          f"ratio {ratio:7.3f}  (bar {sign} {bar:g})", flush=True)  # fmt: skip


def best(function: Callable[[], Any], repeat: int = 5) -> float:
    """Fewest seconds of several calls, the one least disturbed by a noisy machine."""
    times = []
    for _ in range(repeat):
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
    return min(times)


def timed_steps(evaluation: Any, n_attributes: int, steps: int = 5) -> tuple[list[float], list[int]]:
    """Seconds of each of some greedy steps, and the attributes that they chose."""
    times: list[float] = []
    chosen: list[int] = []
    for _ in range(steps):
        began = time.perf_counter()
        candidates = [a for a in range(n_attributes) if a not in chosen]
        thetas = evaluation.with_each(candidates)
        chosen.append(candidates[thetas.index(min(thetas))])
        evaluation.select(chosen[-1])
        times.append(time.perf_counter() - began)
    return times, chosen


def process(*command: str, repeat: int = 3) -> tuple[float, float, str]:
    """Run a whole process several times: fewest seconds, largest peak memory in MB, output of the last run."""
    seconds, peak, out = [], 0.0, ""
    for _ in range(repeat):
        began = time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=AS_INSTALLED) as child:
            assert child.stdout is not None
            out = child.stdout.read()
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        seconds.append(time.perf_counter() - began)
        assert child.returncode == 0, command
        peak = max(peak, usage.ru_maxrss / 1024)
    return min(seconds), peak, out


def in_turn(ours: Sequence[str], reference: Sequence[str], repeat: int = 3) -> list[tuple[float, float, str]]:
    """Run two processes alternately, so that noise affects both; the first run, which compiles, is not counted."""
    process(*ours, repeat=1)
    runs = [[process(*command, repeat=1) for command in (ours, reference)] for _ in range(repeat)]
    return [
        (min(seconds), max(peaks), out[-1])
        for seconds, peaks, out in (zip(*own, strict=True) for own in zip(*runs, strict=True))
    ]


def data_folder() -> Path:
    """The folder of the paper's datasets."""
    folder = os.environ.get("PLAR_DATA")
    if not folder:
        raise Skip("PLAR_DATA is not set: the folder with the paper's datasets")
    return Path(folder)


def weka_jar() -> str:
    """WEKA, as Debian's package has it."""
    listed = ""
    if shutil.which("dpkg"):
        listed = subprocess.run(["dpkg", "-L", "weka"], capture_output=True, text=True).stdout
    jar = next((line for line in listed.splitlines() if line.endswith("/weka.jar")), None)
    if jar is None or shutil.which("java") is None:
        raise Skip("needs Java and Debian's package weka")
    return jar


def weka_file() -> Path:
    """WEKA15360, generated by WEKA unless it is already here."""
    path = HERE / "weka15360.arff"
    if not path.exists():
        maker = "weka.datagenerators.classifiers.classification.RDG1"
        part = path.with_suffix(".part")
        options = ["-S", "1", "-n", "15360000", "-a", "20", "-c", "10", "-o"]
        subprocess.run(["java", "-cp", weka_jar(), maker, *options, str(part)], check=True)
        part.rename(path)
    return path


def run(rows: Sequence[Callable[[], None]], results: str) -> None:
    """Run the rows that the command line names, by default all, and write the figures."""
    named = {row.__name__: row for row in rows}
    for name in sys.argv[1:]:
        if name not in named:
            sys.exit(f"Unknown row {name!r}. Choose one of: {', '.join(named)}.")
    HERE.mkdir(exist_ok=True)
    print(f"plar {plar.__version__}, {os.cpu_count()} cores; ours : reference")
    for name in sys.argv[1:] or named:
        try:
            named[name]()
        except Skip as reason:
            print(f"skip  {name}: {reason}", flush=True)
    (HERE / results).write_text(json.dumps(RESULTS, indent=1) + "\n")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{sum(r['met'] for r in RESULTS)} of {len(RESULTS)} bars met; peak memory here {peak:,.0f} MB")
