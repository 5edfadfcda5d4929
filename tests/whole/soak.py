"""Random tables, engines and options against the oracle for as long as asked: `make soak SECONDS=3600`.

Case i of seed s is always the same table and the same call:
`PYTHONPATH=tests python tests/whole/soak.py --seed s --case i` repeats it.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import sys
import tempfile
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import plar
from plar.engines import LocalEngine, why_unavailable
from support import oracle
from support.comparing import assert_agrees
from support.environment import QUICK_START, no_spark
from support.strategies import DECISION, WEIGHTS, Column, Sample

#: what RSS may grow by from the end of the warm-up to the end of the run
ALLOWANCE = 48 << 20
#: the part of the time after which everything has been compiled, loaded and used once
WARM_UP = 0.2
INPUTS = ("frame", "frame", "mapping", "csv", "csv.gz", "parquet", "ndjson", "granules")


def minority(counts: Any) -> int:
    """θ of a user: the objects that are not of the most frequent decision."""
    return int(counts.sum() - counts.max())


OWN = plar.Measure("minority", minority, normaliser=lambda n: n, drop_pure=True)
ORACLE_OWN = oracle.Custom(lambda counts: sum(counts) - max(counts), lambda n: n)


class Stop(Exception):
    """What ends a run in its middle, so that its checkpoint is taken up."""


# ------------------------------------------------------------------------------------------------ what to try


def sample_of(pick: random.Random) -> Sample:
    """A table: constant, duplicate, many-valued, telling and missing values, with noise and weights or without."""
    n, width = pick.choice([1, 5, 30, 120, 300]), pick.randint(1, 9)
    columns: dict[str, Column] = {}
    for j in range(width):
        values = pick.choice([1, 2, 2, 3, 5, 20, 2 * n])
        column: Column = [pick.randrange(values) for _ in range(n)]
        kind = pick.random()
        if kind < 0.15 and columns:
            column = list(pick.choice(list(columns.values())))
        elif kind < 0.3:
            column = [pick.choice(["red", "green", "blue", "?"]) for _ in range(n)]
        elif kind < 0.4:
            column = [pick.randrange(n) / 4 for _ in range(n)]
        if pick.random() < 0.2:
            column = [None if pick.random() < 0.1 else value for value in column]
        columns[f"a{j}"] = column
    causes = pick.sample(list(columns), k=pick.randint(0, min(3, width)))
    n_decisions, noise = pick.choice([1, 2, 3, 20]), pick.choice([0.0, 0.0, 0.05, 0.5])
    meaning: dict[Hashable, int] = {}
    told = [
        meaning.setdefault(tuple(columns[name][i] for name in causes), pick.randrange(n_decisions)) for i in range(n)
    ]
    columns[DECISION] = [pick.randrange(n_decisions) if pick.random() < noise else value for value in told]
    if pick.random() < 0.3:
        most = pick.choice([2, 1000, (1 << 40) // n])
        columns[WEIGHTS] = [1, *(pick.randint(0, most - 1) for _ in range(n - 1))]
    return Sample(columns)


def options_of(pick: random.Random, sample: Sample) -> dict[str, Any]:
    """Options of `plar.reduce` that the oracle knows."""
    chosen: dict[str, Any] = {}
    if pick.random() < 0.2:
        chosen["include"] = tuple(pick.sample(sample.conditions, k=pick.randint(1, min(2, len(sample.conditions)))))
    if pick.random() < 0.2:
        chosen["epsilon"] = pick.choice([1e-12, 0.01, 0.1, 0.25])
    if pick.random() < 0.2:
        chosen["tolerance"] = pick.choice([1e-12, 0.01, 0.125, 0.5])
    if pick.random() < 0.2:
        chosen["max_attributes"] = pick.randint(max(1, len(chosen.get("include", ()))), len(sample.conditions))
    if pick.random() < 0.3:
        chosen["minimal"] = True
    return chosen


@dataclass
class Case:
    """One call: a table, how it is handed over, where it is computed and what is asked."""

    sample: Sample
    given: str
    engine: str
    n_jobs: int
    measure: str
    options: dict[str, Any]
    reading: dict[str, Any] = field(default_factory=dict)
    #: the step after which the run is ended, to be resumed by another engine
    stop_after: int | None = None

    @property
    def words(self) -> list[str]:
        """What is tallied."""
        weights = ["weights"] if self.sample.weights else []
        resumed = ["checkpoint"] if self.stop_after is not None else []
        return [self.measure, self.given, *self.options, *self.reading, *weights, *resumed]


def case_of(seed: int, number: int, engines: tuple[str, ...]) -> Case:
    """Case `number` of a seed."""
    pick = random.Random(f"{seed}/{number}")
    sample = sample_of(pick)
    engine = "spark" if pick.random() < 0.02 else pick.choice(["local-lanes", "local-tables", "local"])
    if engine == "local" and "cuda" in engines:
        engine = "cuda"
    case = Case(
        sample,
        pick.choice(INPUTS),
        engine if engine in engines else "local",
        pick.choice([1, 2, 3]),
        pick.choice([*oracle.MEASURES] * 3 + ["own"]),
        options_of(pick, sample),
    )
    if pick.random() < 0.2:
        case.reading["missing"] = pick.choice(["drop", "error"])
    if pick.random() < 0.2:
        case.reading["na"] = "?"
    if pick.random() < 0.2:
        case.reading["bins"] = pick.choice(["width:3", "width:10", "quantile:4", "mdlp", "auto"])
    if pick.random() < 0.15:
        case.stop_after = pick.randint(1, 3)
    if case.engine == "cuda" and case.measure == "own":  # which it does not compute
        case.engine = "local"
    return case


# ------------------------------------------------------------------------------------------------- what is right


def prepared(case: Case, cuts: Mapping[str, tuple[float, ...]]) -> Sample | None:
    """The table as its options make it, by plain Python; None where no row is left or missing values are refused."""
    columns = dict(case.sample.columns)
    for name, column in columns.items():
        if case.reading.get("na") == "?":
            columns[name] = [None if value == "?" else value for value in column]
    names = [name for name in columns if name != WEIGHTS]
    weights = columns.get(WEIGHTS, [1] * len(case.sample))
    lacking = [any(columns[name][i] is None for name in names) for i in range(len(case.sample))]
    if case.reading.get("missing") == "error" and any(gone and w for gone, w in zip(lacking, weights, strict=True)):
        return None
    if case.reading.get("missing") == "drop":
        kept = [i for i, gone in enumerate(lacking) if not gone]
        columns = Sample(columns).take(kept).columns
        if not any(weights[i] for i in kept):
            return None
    for name, points in cuts.items():
        numbers: list[Any] = columns[name]
        columns[name] = [None if value is None else bisect_left(points, value) for value in numbers]
    return Sample(columns)


# -------------------------------------------------------------------------------------------------- running it


@contextmanager
def handed(case: Case, folder: Path) -> Iterator[tuple[Any, dict[str, Any]]]:
    """The table as it is given to plar, and the arguments that go with it."""
    roles = {**case.sample.roles, **case.reading}
    frame = case.sample.frame()
    path = folder / f"t.{case.given}"
    if case.given == "frame":
        yield frame, roles
        return
    if case.given == "mapping":
        yield case.sample.columns, roles
        return
    if case.given == "granules":
        path = folder / "g.parquet"
        plar.granulate(frame, **roles).save(path)
        yield str(path), {}
    elif case.given == "parquet":
        frame.write_parquet(path)
        yield path, roles
    elif case.given == "ndjson":
        frame.write_ndjson(path)
        yield path, roles
    else:
        frame.lazy().sink_csv(path, compression="gzip" if case.given == "csv.gz" else "uncompressed")
        yield path, roles
    path.unlink()


def reduced(case: Case, data: Any, roles: dict[str, Any], engines: Mapping[str, Any], folder: Path) -> plar.Reduct:
    """Run the case; under `stop_after` it is ended in its middle and resumed by an engine of this machine."""
    measure = OWN if case.measure == "own" else case.measure
    options = {**roles, **case.options, "measure": measure}
    engine = engines[case.engine](case.n_jobs)
    if case.stop_after is None:
        return plar.reduce(data, engine=engine, **options)
    checkpoint = folder / "c.json"
    seen = 0

    def stop(_: Any) -> None:
        nonlocal seen
        seen += 1
        if seen == case.stop_after:
            raise Stop

    try:
        try:
            return plar.reduce(data, engine=engine, checkpoint=checkpoint, on_step=stop, **options)
        except Stop:
            return plar.reduce(data, engine=LocalEngine(n_jobs=1), checkpoint=checkpoint, **options)
    finally:
        checkpoint.unlink(missing_ok=True)


def check(case: Case, engines: Mapping[str, Any], folder: Path) -> None:
    """Run a case and compare all that it says with the oracle."""
    cuts: Mapping[str, tuple[float, ...]] = {}
    try:
        with handed(case, folder) as (data, roles):
            reduct = reduced(case, data, roles, engines, folder)
            cuts = reduct.cuts
    except plar.TableError:
        if prepared(case, {}) is None:
            return
        raise
    sample = prepared(case, cuts)
    assert sample is not None, "rows with missing values went unnoticed"
    table = sample.table()
    measure = ORACLE_OWN if case.measure == "own" else case.measure
    assert_agrees(reduct, oracle.search(table, measure, **case.options), table, measure)


def engines_here(stack: ExitStack, spark: bool) -> dict[str, Any]:
    """Engines by name, each made for a number of threads; Spark's session is one for all."""
    made: dict[str, Any] = {
        "local": lambda jobs: LocalEngine(n_jobs=jobs),
        "local-lanes": lambda jobs: LocalEngine(n_jobs=jobs, lanes=True),
        "local-tables": lambda jobs: LocalEngine(n_jobs=jobs, lanes=False),
    }
    if why_unavailable("cuda") is None:
        from plar.engines import CudaEngine

        made["cuda"] = lambda jobs: CudaEngine()
    if spark and (reason := no_spark()):
        print(f"Without Spark: {reason}.", flush=True)
    elif spark:
        from plar.engines import SparkEngine

        engine = stack.enter_context(SparkEngine(master="local[2]", conf=QUICK_START))
        engine.spark()
        made["spark"] = lambda jobs: engine
    return made


def resident() -> int:
    """Bytes of this process in memory."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@dataclass
class Tally:
    """What was tried and what came of it."""

    tables: int = 0
    cells: int = 0
    engines: Counter[str] = field(default_factory=Counter)
    options: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    memory: dict[str, int] = field(default_factory=dict)

    def add(self, case: Case) -> None:
        self.tables += 1
        self.cells += len(case.sample) * len(case.sample.columns)
        self.engines[case.engine] += 1
        self.options.update(case.words)

    def tell(self, seconds: float) -> None:
        """Print it."""
        listed = ", ".join(f"{name} {n:,}" for name, n in sorted(self.engines.items()))
        asked = ", ".join(f"{name} {n:,}" for name, n in sorted(self.options.items()))
        held = ", ".join(f"{when} {n >> 20} MiB" for when, n in self.memory.items())
        print(f"{seconds:,.0f} s: {self.tables:,} tables, {self.cells:,} cells, {len(self.failures)} failures")
        print(f"  engines: {listed}\n  asked: {asked}\n  memory: {held}", flush=True)


def soak(seconds: float, seed: int, first: int, last: int | None, spark: bool) -> int:
    """Run cases until the time is over; return the exit code."""
    tally, began = Tally(), time.monotonic()
    with ExitStack() as stack:
        engines = engines_here(stack, spark)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        tally.memory["at the start"] = resident()
        told, number = began, first
        while (now := time.monotonic()) - began < seconds and (last is None or number <= last):
            if now - told >= 60:
                tally.memory["now"] = resident()
                tally.tell(now - began)
                told = now
            if now - began >= WARM_UP * seconds and "after warm-up" not in tally.memory:
                tally.memory["after warm-up"] = resident()
            case = case_of(seed, number, tuple(engines))
            try:
                check(case, engines, folder)
            except Exception as error:
                what = (str(error).strip() or type(error).__name__).splitlines()[0]
                tally.failures.append(f"--seed {seed} --case {number}: {what}")
                print(f"FAILED --seed {seed} --case {number} ({case.engine}, {', '.join(case.words)}): {what}")
                if last is not None:
                    raise
            tally.add(case)
            number += 1
    tally.memory.pop("now", None)
    tally.memory["at the end"] = resident()
    tally.tell(time.monotonic() - began)
    if last is None:
        grown = tally.memory["at the end"] - tally.memory["after warm-up"]
        if grown > ALLOWANCE:
            tally.failures.append(f"memory grew by {grown >> 20} MiB after the warm-up")
    for failure in tally.failures:
        print(f"FAILED {failure}")
    print("failed" if tally.failures else "all agree with the oracle, memory flat")
    return 1 if tally.failures else 0


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="run this one alone, with the traceback of its failure")
    parser.add_argument("--no-spark", action="store_true")
    given = parser.parse_args()
    first = 0 if given.case is None else given.case
    return soak(given.seconds, given.seed, first, given.case, not given.no_spark)


if __name__ == "__main__":
    sys.exit(main())
