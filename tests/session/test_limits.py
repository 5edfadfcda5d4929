"""Time, memory and Ctrl-C: runs end early, cleanly, with what they have."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import plar
from plar.engines import Engine, LocalEngine
from plar.errors import MemoryLimitExceeded
from plar.runtime.interrupts import SafeInterrupts
from plar.runtime.limits import (
    as_bytes,
    as_seconds,
    check_memory_used,
    machine_memory,
    memory_limited,
    resident_memory,
)
from plar.runtime.parallel import in_threads, threads, usable_cores
from support.checkpoints import table
from support.clock import Clock
from support.comparing import all_facts
from support.environment import PLAR

posix = pytest.mark.skipif(os.name == "nt", reason="signals and resource limits of Unix")


# -- time --------------------------------------------------------------------------------------------------


class Interrupting(Engine):
    """The local engine; what `act` does happens at the beginning of its n-th pass, or in the certificate."""

    name = "local"

    def __init__(self, act: Any, at: int | str) -> None:
        self.act, self.at, self.passes = act, at, 0

    def open(self, granules: Any, measure: Any, watch: Any = None) -> Any:
        evaluation: Any = LocalEngine(n_jobs=1).open(granules, measure)
        leave_one_out, with_each, select = evaluation.leave_one_out, evaluation.with_each, evaluation.select

        def act(now: int | str) -> None:
            if now == self.at:
                self.at = ""
                self.act()

        def core(attributes: Any = None) -> Any:
            act("core" if attributes is None else "certificate")
            return leave_one_out(attributes)

        def step(candidates: Any) -> Any:
            act(self.passes)
            self.passes += 1
            return with_each(candidates)

        def selected(*attributes: int) -> Any:
            found = select(*attributes)
            act(f"select {self.passes}")
            return found

        evaluation.leave_one_out, evaluation.with_each, evaluation.select = core, step, selected
        return evaluation


@pytest.mark.parametrize("measure", ["PR", "SCE"])
def test_time_limit_ends_with_the_best_so_far(measure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = table()
    whole = plar.reduce(frame, "d", measure=measure)
    assert len(whole.steps) >= 3
    for n in range(1, len(whole.steps) + 1):
        clock = Clock(monkeypatch)
        done: list[plar.Step] = []

        def on_step(step: plar.Step, clock: Clock = clock, done: list[Any] = done, n: int = n) -> None:
            done.append(step)
            clock.now = 60.0 if len(done) == n else 59.9

        found = plar.reduce(frame, "d", measure=measure, time_limit="1m", on_step=on_step)
        assert all_facts(found)["steps"] == all_facts(whole)["steps"][:n]
        assert found.complete is (n == len(whole.steps))
        assert found.core == whole.core
        check_certificate(found, frame, measure)


def check_certificate(found: plar.Reduct, frame: Any, measure: str) -> None:
    """Θ and the certificate of R, computed anew."""
    theta = plar.theta(frame, found.attributes, decision="d", measure=measure)
    assert found.theta == theta
    assert found.certificate.preserved is (theta == found.theta_all)
    without = {
        a: plar.theta(frame, [b for b in found.attributes if b != a], decision="d", measure=measure)
        for a in found.attributes
    }
    assert found.certificate.redundant == tuple(a for a in found.attributes if without[a] == theta)


def test_no_time_at_all_gives_the_core() -> None:
    frame = table()
    found = plar.reduce(frame, "d", time_limit=0, include=["c3"])
    assert found.steps == ()
    assert found.attributes == (*found.core, "c3")
    assert not found.complete
    check_certificate(found, frame, "SCE")
    small = plar.reduce({"a": [0, 1], "d": [0, 1]}, "d", time_limit=0)
    assert small.complete
    assert small.certificate.preserved


@pytest.mark.filterwarnings("ignore:The decision 'y' holds 50 different numbers:plar.PlarWarning")
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_long_pass_ends_in_the_middle(monkeypatch: pytest.MonkeyPatch, jobs: int) -> None:
    monkeypatch.setattr("plar.engines.job_progress._TICK_SECONDS", 0)
    clock = Clock(monkeypatch)
    seen: list[int] = []
    rng = np.random.default_rng(0)
    X = rng.integers(0, 200, (1_500, 1_000)).astype(np.uint8)

    def watch(job: Any) -> None:
        if job.best:  # a pass over the candidates, not the core
            seen.append(job.done)
            clock.now = 10.0 if len(seen) == 3 else 0.0

    y = rng.integers(0, 50, 1_500)
    found = plar.reduce(X, y=y, engine=LocalEngine(n_jobs=jobs, watch=watch), time_limit=10)
    assert seen == [1, 2, 3]
    assert found.steps == ()
    assert not found.complete


def test_a_time_limited_run_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    whole = plar.reduce(table(), "d")
    for _ in range(2):
        part = plar.reduce(table(), "d", time_limit=0, checkpoint=tmp_path / "c.json")
        assert not part.complete
    assert all_facts(plar.reduce(table(), "d", checkpoint=tmp_path / "c.json")) == all_facts(whole)


@pytest.mark.parametrize("bad", ["", "soon", "-1", -1, "5 weeks", True, float("nan"), float("inf"), [1]])
def test_a_bad_time_limit_is_refused(bad: Any) -> None:
    with pytest.raises(plar.ParameterError, match="The 'time_limit' parameter must be seconds"):
        plar.reduce({"a": [0, 1], "d": [0, 1]}, "d", time_limit=bad)


def test_spellings() -> None:
    assert [as_seconds(t) for t in (90, "90", "90s", "1.5m", "2h", ".5d", "0")] == [90, 90, 90, 90, 7200, 43200, 0]
    sizes = [as_bytes(t) for t in ("2GB", "2G", "2 gb", "1GiB", "0.5k", 7, "7", "7B", None)]
    assert sizes == [2 * 10**9] * 3 + [2**30, 500, 7, 7, 7, None]


# -- Ctrl-C ------------------------------------------------------------------------------------------------


def _interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("at", [0, 2, "select 2", "certificate"])
def test_ctrl_c_carries_the_result_so_far(at: int | str, tmp_path: Path) -> None:
    frame, path = table(), tmp_path / "c.json"
    whole = plar.reduce(frame, "d")
    with pytest.raises(plar.Interrupted) as stop:
        plar.reduce(frame, "d", engine=Interrupting(_interrupt, at), checkpoint=path)
    found = stop.value.result
    n = len(found.steps)
    assert n == {0: 0, 2: 2, "select 2": 1, "certificate": len(whole.steps)}[at]
    assert all_facts(found)["steps"] == all_facts(whole)["steps"][:n]
    assert found.complete is (at == "certificate")
    check_certificate(found, frame, "SCE")
    assert all_facts(plar.reduce(frame, "d", checkpoint=path)) == all_facts(whole)


def test_ctrl_c_before_the_core_is_known() -> None:
    with pytest.raises(KeyboardInterrupt) as stop:
        plar.reduce(table(), "d", engine=Interrupting(_interrupt, "core"))
    assert not isinstance(stop.value, plar.Interrupted)


CHILD = """
import sys, time
import plar.search.greedy
from plar.cli import main

step, steps = plar.search.greedy.GreedySearch._step, []
def slow(*given):
    steps.append(given)
    if len(steps) == {wait_in}:
        print("step", file=sys.stderr, flush=True)
        time.sleep(600)
    return step(*given)
plar.search.greedy.GreedySearch._step = slow
if {certificate}:
    import plar.search.certificate
    def certificate(*given):
        print("certificate", file=sys.stderr, flush=True)
        time.sleep(600)
    plar.search.certificate.redundant_among = certificate
main()
"""


def command(tmp_path: Path, *words: str, wait_in: int = 0, certificate: bool = False) -> subprocess.Popen[str]:
    """`plar reduce` that waits for a signal in one of its steps."""
    table().write_csv(tmp_path / "t.csv")
    program = CHILD.format(wait_in=wait_in, certificate=certificate)
    words = ("reduce", str(tmp_path / "t.csv"), "--decision", "d", *words)
    return subprocess.Popen(
        [sys.executable, "-c", program, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def wait_for(child: subprocess.Popen[str], word: str) -> None:
    assert child.stderr is not None
    assert word in map(str.strip, child.stderr)


@posix
def test_ctrl_c_in_the_shell(tmp_path: Path) -> None:
    checkpoint = tmp_path / "c.json"
    output = tmp_path / "o.csv"
    words = ("--json", "--checkpoint", str(checkpoint), "-o", str(output))
    child = command(tmp_path, *words, wait_in=3)
    wait_for(child, "step")
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=300)
    assert child.returncode == 130
    found = json.loads(out)
    assert found["complete"] is False
    assert len(found["steps"]) == 2
    assert found["certificate"]["preserved"] is False
    assert f"The steps are saved in {checkpoint}; run the same command again to continue." in err
    assert err.endswith("Interrupted.\n")
    assert not output.exists()
    again = subprocess.run(
        [PLAR, "reduce", tmp_path / "t.csv", "-d", "d", *words], capture_output=True, text=True, check=True
    )
    assert again.stderr.startswith("Resuming from the checkpoint: core and 2 steps done.\n")
    whole = json.loads(json.dumps(plar.reduce(tmp_path / "t.csv", "d").to_dict()))
    assert json.loads(again.stdout)["attributes"] == list(whole["attributes"])
    assert output.exists()


@posix
def test_a_second_ctrl_c_ends_at_once(tmp_path: Path) -> None:
    child = command(tmp_path, wait_in=2, certificate=True)
    wait_for(child, "step")
    child.send_signal(signal.SIGINT)
    wait_for(child, "certificate")
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=300)  # the certificate alone would take 600 s
    assert (child.returncode, out) == (130, "")
    assert err.strip() == "Interrupted."


# What `reduct` of the exception is after Ctrl-C in each search, and the phase in which its steps are.
SEARCHES: dict[str, tuple[Any, dict[str, Any], str, type]] = {
    "reduce": (plar.reduce, {}, "search", plar.Reduct),
    "smallest": (plar.reduce, {"search": "smallest"}, "smallest", plar.Reduct),
    "relevant": (plar.relevant, {}, "search", plar.Relevant),
    "reducts": (plar.reducts, {}, "reducts", plar.Reducts),
}


class PressedAtItsEnd:
    """Python prints and drops what is raised in `__del__`."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("name", SEARCHES)
def test_ctrl_c_is_not_lost_where_python_drops_exceptions(name: str) -> None:
    find, options, in_phase, kind = SEARCHES[name]
    phases: list[str] = []

    def progress(phase: str, done: int, total: int) -> None:
        if phase == in_phase and phase not in phases:
            phases.append(phase)
            PressedAtItsEnd()

    with pytest.raises(KeyboardInterrupt) as stop:
        find(table(), "d", progress=progress, **options)
    assert isinstance(stop.value, plar.Interrupted)
    assert isinstance(stop.value.result, kind)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert sys.gettrace() is None


PRESS = """
import signal, sys

places = []

def press(frame, event, argument):
    "Press Ctrl-C where the function to be interrupted begins, once."
    module = str(frame.f_globals.get("__name__"))
    if event == "call" and not places and (module, frame.f_code.co_name) == {place}:
        places.append(module)
        signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.setprofile(press)
"""
CALLED_TWICE = """
import plar

columns = {columns}
for place in (1, 2):
    try:
        found = plar.reducts(columns, "d")
    except KeyboardInterrupt as stop:
        print(type(stop).__name__, *places)
        sys.setprofile(None)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
print(len(found), found.complete)
"""
COLUMNS = {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "c": [0, 1, 1, 0], "d": [0, 1, 2, 3]}
#: called by numba's dispatcher, while a kernel is loaded, and while numba is imported
IN_NUMBA = [
    ("numba.core.serialize", "_numba_unpickle"),
    ("numba.core.caching", "_load_index"),
    ("llvmlite.binding.ffi", "__call__"),
]


@pytest.mark.parametrize("place", IN_NUMBA)
def test_ctrl_c_in_numba(place: tuple[str, str]) -> None:
    program = PRESS.format(place=place) + CALLED_TWICE.format(columns=COLUMNS)
    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert child.stderr == ""
    raised, numbers = child.stdout.splitlines()
    assert raised in (f"Interrupted {place[0]}", f"KeyboardInterrupt {place[0]}")
    assert numbers == "3 True"  # the next call is as good as any


@pytest.mark.parametrize("place", IN_NUMBA)
def test_ctrl_c_in_numba_in_the_shell(place: tuple[str, str], tmp_path: Path) -> None:
    pl.DataFrame(COLUMNS).write_csv(tmp_path / "t.csv")
    program = PRESS.format(place=place) + "from plar.cli import main\nmain()"
    words = ("reducts", tmp_path / "t.csv", "-d", "d")
    child = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, timeout=300, check=False
    )
    assert (child.returncode, child.stderr) == (130, "Interrupted.\n")


def test_a_waiting_ctrl_c_is_raised_at_the_end_of_the_block() -> None:
    names: dict[str, Any] = {"__name__": "numba.fragile", "SafeInterrupts": SafeInterrupts, "signal": signal}
    with pytest.raises(KeyboardInterrupt):
        exec("with SafeInterrupts():\n    signal.raise_signal(signal.SIGINT)\n    is_reached = True", names)
    assert names["is_reached"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_handler_of_the_caller_is_used() -> None:
    pressed: list[int] = []

    def handle(number: int, frame: Any) -> None:
        pressed.append(number)

    def progress(phase: str, done: int, total: int) -> None:
        if phase == "search" and not pressed:
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, handle)
    try:
        assert plar.reduce(table(), "d", progress=progress).complete
        assert signal.getsignal(signal.SIGINT) is handle
    finally:
        signal.signal(signal.SIGINT, before)
    assert pressed == [signal.SIGINT]


def test_a_debugger_gets_its_place_back() -> None:
    def trace(frame: Any, event: str, argument: Any) -> None:
        return None

    def progress(phase: str, done: int, total: int) -> None:
        if phase == "search":
            PressedAtItsEnd()

    sys.settrace(trace)
    try:
        with pytest.raises(plar.Interrupted):
            plar.reduce(table(), "d", progress=progress)
        tracer = sys.gettrace()
    finally:
        sys.settrace(None)
    assert tracer is trace


@posix
def test_time_limit_in_the_shell(tmp_path: Path) -> None:
    child = command(tmp_path, "--json", "--time-limit", "0s")
    out, _ = child.communicate(timeout=300)
    assert child.returncode == 0
    assert json.loads(out)["complete"] is False


# -- memory ------------------------------------------------------------------------------------------------


def test_the_engine_is_refused_before_its_memory_is_taken() -> None:
    rng = np.random.default_rng(1)
    granules = plar.granulate(rng.integers(0, 4, (20_000, 200)).astype(np.uint8), y=rng.integers(0, 2, 20_000))
    engine = LocalEngine(n_jobs=1)
    need, held = engine.memory_need(granules), resident_memory()
    assert need > sum(column.nbytes for column in granules.columns)
    said = (
        r"The engine 'local', beside the coded table of 4\.24 MB, needs about 10\.9 MB more, .* are held already, "
        r"and the memory limit is .*'spark'\.$"
    )
    with pytest.raises(MemoryLimitExceeded, match=said):
        plar.reduce(granules, engine=engine, memory_limit=held + need // 2)
    assert plar.reduce(granules, engine=engine, memory_limit=2 * (held + need), max_attributes=1).attributes


@pytest.mark.filterwarnings("ignore:The numbers of:plar.PlarWarning")
@pytest.mark.parametrize(
    ("n", "k", "values", "jobs"), [(60_000, 20, 4, 1), (60_000, 20, 4, 4), (4_000, 800, 3, 3), (30_000, 12, 5_000, 2)]
)
def test_the_estimate_is_about_what_is_taken(n: int, k: int, values: int, jobs: int) -> None:
    import tracemalloc

    rng = np.random.default_rng(2)
    X: Any = rng.integers(0, values, (n, k)).astype(np.uint16 if values > 256 else np.uint8)
    y = (X[:, 0] + X[:, 1] * X[:, 2] + (rng.random(n) < 0.2)) % 5
    granules = plar.granulate(X, y=y)
    engine = LocalEngine(n_jobs=jobs)
    plar.reduce(granules, engine=engine, max_attributes=1)  # kernels are loaded
    tracemalloc.start()
    try:
        plar.reduce(granules, engine=engine, max_attributes=4)
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 0.5 * taken < engine.memory_need(granules) < 3 * taken
    alone, columns = engine.memory_need(granules.for_one_search()), sum(column.nbytes for column in granules.columns)
    assert engine.memory_need(granules) - alone == (columns if values < 256 else 0)


LITTLE = """
import resource, sys
import numpy as np
import plar

rng = np.random.default_rng(0)
X, y = rng.integers(0, 4, (100_000, 200)).astype(np.uint8), rng.integers(0, 2, 100_000)
plar.reduce(X[:1000], y=y[:1000], n_jobs=1)  # everything is loaded
granules = plar.granulate(X, y=y)
kind, at = (resource.RLIMIT_AS, 0) if sys.argv[1] == "AS" else (resource.RLIMIT_DATA, 5)
with open("/proc/self/statm") as file:
    mapped = int(file.read().split()[at]) * resource.getpagesize()
resource.setrlimit(kind, (mapped + 20_000_000,) * 2)
try:
    plar.reduce(granules, n_jobs=1)
except plar.PlarError as error:
    print(error)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of Linux")
@pytest.mark.parametrize("kind", ["AS", "DATA"])
def test_ulimit_is_known_before_it_is_hit(kind: str) -> None:
    done = subprocess.run([sys.executable, "-c", LITTLE, kind], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.match(r"The engine 'local', .* needs about 54\.4 MB more, but only 20 MB is available\.", done.stdout)


def test_without_a_limit_only_the_hopeless_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = machine_memory()
    assert machine is not None
    assert machine > 1 << 28
    monkeypatch.setattr(LocalEngine, "memory_need", lambda self, granules: 2 * machine)
    with pytest.raises(
        MemoryLimitExceeded, match=r"The engine 'local', .* needs about .* more, but only .* is available"
    ):
        plar.reduce({"a": [0, 1], "d": [0, 1]}, "d")
    monkeypatch.setattr(LocalEngine, "memory_need", lambda self, granules: machine // 2)
    assert plar.reduce({"a": [0, 1], "d": [0, 1]}, "d").attributes == ("a",)


@pytest.mark.parametrize("kind", ["csv", "wide csv", "wide parquet", "numpy"])
def test_reading_stops_at_the_limit(tmp_path: Path, kind: str) -> None:
    rng = np.random.default_rng(3)
    n, k = (40_000, 20) if kind == "csv" else (4_000, 400)
    X = rng.integers(0, 1000, (n, k))
    frame = pl.DataFrame({**{f"c{j}": X[:, j] for j in range(k)}, "d": X[:, 0] % 2})
    data: Any = X if kind == "numpy" else tmp_path / f"t.{kind.split()[-1]}"
    if kind.endswith("csv"):
        frame.write_csv(data)
    elif kind.endswith("parquet"):
        frame.write_parquet(data)
    with pytest.raises(MemoryLimitExceeded, match=r"the memory limit is .*Choose fewer columns, use bins"):
        plar.granulate(data, -1, memory_limit=resident_memory() - (1 << 20))
    assert len(plar.granulate(data, -1, memory_limit="64GB")) == n


@pytest.mark.parametrize("bad", ["", "much", "-1", -1, 0, "2XB", True, float("inf")])
def test_a_bad_memory_limit_is_refused(bad: Any) -> None:
    with pytest.raises(plar.ParameterError, match="The 'memory_limit' parameter must be bytes"):
        plar.reduce({"a": [0, 1], "d": [0, 1]}, "d", memory_limit=bad)


@pytest.fixture
def group(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A control group whose processes have some memory together, after which the kernel kills them."""
    top, file = Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"
    if not (top / file).exists():
        top, file = Path("/sys/fs/cgroup"), "memory.max"
    made = top / f"plar-{os.getpid()}"
    try:
        made.mkdir()
        (made / file).write_text(str(getattr(request, "param", ROOM)))
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error.strerror}")
    yield made
    made.rmdir()


def in_group(group: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    enter = f'echo $$ > "{group}/cgroup.procs" && exec "$@"'
    # polars takes up to 200 MB a thread to read text
    few = {**os.environ, "POLARS_MAX_THREADS": "2"}
    return subprocess.run(["sh", "-c", enter, "sh", *map(str, words)], capture_output=True, text=True, env=few)


#: bytes that a run may have; those that are enough to read text
ROOM, LITTLE_ROOM = 700_000_000, 300_000_000


def large_table(folder: Path) -> tuple[int, int]:
    """Write a table of more than ten times the latter, one file by many names; return its rows and distinct rows."""
    words = [f"value {i} {'of a rather long text that says little ' * 50}" for i in range(10)]
    rows = [(i % 10, i * 7 // 10 % 10) for i in range(250)]
    block = "".join(f"{words[a]},{words[b]},{a % 2}{b % 3}\n" for a, b in rows).encode()
    with (folder / "0.csv").open("wb") as file:
        file.write(b"a,b,d\n")
        for _ in range(256):
            file.write(block)
    names = 10 * LITTLE_ROOM // (folder / "0.csv").stat().st_size + 1
    for i in range(1, names):
        os.link(folder / "0.csv", folder / f"{i}.csv")
    return names * 256 * len(rows), len(set(rows))


@pytest.mark.parametrize("group", [LITTLE_ROOM], indirect=True)
def test_a_table_ten_times_larger_than_its_control_group(tmp_path: Path, group: Path) -> None:
    n_rows, n_granules = large_table(tmp_path)
    done = in_group(group, PLAR, "reduce", tmp_path / "*.csv", "-d", "d", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert (found["n_objects"], found["n_granules"], found["attributes"]) == (n_rows, n_granules, ["a", "b"])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_table_too_large_for_its_control_group(tmp_path: Path, group: Path, kind: str) -> None:
    path, rng = tmp_path / f"t.{kind}", np.random.default_rng(5)
    frame = pl.DataFrame({f"c{j}": rng.integers(0, 1 << 62, 250_000) for j in range(36)})
    for some, file in ((frame.head(1000), tmp_path / f"small.{kind}"), (frame, path)):
        some.write_csv(file) if kind == "csv" else some.write_parquet(file)
    del frame
    # whatever is compiled, which takes memory too, is compiled before
    subprocess.run([PLAR, "reduce", tmp_path / f"small.{kind}", "-d", "c0"], check=True, capture_output=True)
    done = in_group(group, PLAR, "reduce", path, "-d", "c0")
    assert done.returncode == 2, "the kernel was faster"
    assert re.fullmatch(r"Error: .* but only 700 MB is available\. Choose fewer columns, .*\n", done.stderr)


def test_a_bomb_in_a_control_group(tmp_path: Path, group: Path) -> None:
    """A Zstandard file of 64 kB with a line of 2 GB: blocks that say how often a byte is repeated."""
    path = tmp_path / "t.csv.zst"
    begin, end = (((len(text) << 3) | last, text) for text, last in ((b"a,d\nx,", 0), (b"\n", 1)))
    blocks = [begin, *[((1 << 17) << 3 | 1 << 1, b"0")] * 16_000, end]
    body = b"".join(head.to_bytes(3, "little") + content for head, content in blocks)
    path.write_bytes(b"\x28\xb5\x2f\xfd\x00\x58" + body)
    done = in_group(group, PLAR, "reduce", path, "-d", "d")
    assert done.returncode == 2, "the kernel was faster"
    assert re.fullmatch(r"Error: .* has a line of more than 64 MiB, so it is not a table\. .*\n", done.stderr)


STREAMED = """
import json, resource, sys
import plar

plar.reduce(sys.argv[3], "d")  # everything is loaded
with open("/proc/self/status") as file:
    held = next(1024 * int(line.split()[1]) for line in file if line.startswith("VmData:"))
room = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_DATA, (held + room, held + room))
found = plar.reduce(sys.argv[1], "d", memory_limit=room)
print(json.dumps([found.n_objects, found.n_granules, found.attributes]))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="RLIMIT_DATA counts mappings on Linux only")
def test_a_table_ten_times_larger_than_its_data_limit(tmp_path: Path) -> None:
    # Polars takes some 300 MB to read text on one thread, however much there is; its allocator is told to give back
    # address space that it has no use for.
    small = tmp_path / "small.txt"
    small.write_text("a,b,d\nx,y,0\nx,z,1\n")
    n_rows, n_granules = large_table(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", STREAMED, str(tmp_path / "*.csv"), str(LITTLE_ROOM), str(small)],
        capture_output=True,
        text=True,
        env={**os.environ, "POLARS_MAX_THREADS": "1", "_RJEM_MALLOC_CONF": "retain:false,narenas:1"},
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [n_rows, n_granules, ["a", "b"]]


# -- nested calls --------------------------------------------------------------------------------------------


def test_a_call_within_a_call_keeps_its_limits() -> None:
    with memory_limited(1), memory_limited(None), pytest.raises(MemoryLimitExceeded):
        check_memory_used("This test")
    with threads(3), threads(None):
        assert usable_cores() == 3
        with threads(1):
            assert usable_cores() == 1
    everything = usable_cores()
    with threads(everything + 1), threads(-1):
        assert usable_cores() == everything


def test_a_callback_runs_under_the_limits_of_its_call() -> None:
    cores: list[int] = []
    plar.reduce(table(), "d", n_jobs=1, progress=lambda *_: cores.append(usable_cores()))
    assert set(cores) == {1}


def test_threads_start_no_threads_of_their_own() -> None:
    def cores_of_each(_: int) -> list[int]:
        return list(in_threads(lambda _: usable_cores(), range(4), 1 << 20))

    with threads(4):
        assert list(in_threads(cores_of_each, range(4), 1 << 20)) == [[1] * 4] * 4


def test_the_memory_limit_of_the_shell() -> None:
    words = ["reduce", "examples/tic_tac_toe.csv", "-d", "x_wins", "--memory-limit", "1MB"]
    run = subprocess.run([sys.executable, "-m", "plar", *words], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("Error: ")
    assert "the memory limit is 1 MB" in run.stderr
