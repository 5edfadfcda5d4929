"""Spark calls can be cancelled: Ctrl-C and a time limit end a job in its middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import plar
from plar.runtime.spark_calls import polled, spark_call
from support.checkpoints import table
from support.clock import Clock
from support.comparing import all_facts
from support.environment import QUICK_START, TURNS, no_spark

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
#: seconds that the jobs below would take, and far more than their end should
LONG = 120.0


@spark_call
def wait_long(spark: Any) -> Any:
    return spark.sparkContext.parallelize(range(2), 2).map(lambda _: time.sleep(LONG)).collect()


@contextmanager
def interrupted_in_a_job(spark: Any, handler: Any) -> Iterator[None]:
    """Ctrl-C as soon as Spark runs a job."""

    def press() -> None:
        while not spark.sparkContext.statusTracker().getActiveJobsIds():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, handler)
    thread = threading.Thread(target=press)
    thread.start()
    try:
        yield
    finally:
        thread.join(LONG)
        signal.signal(signal.SIGINT, before)


def assert_idle(spark: Any) -> None:
    """No job is left, and the next one works."""
    until = time.monotonic() + LONG / 2
    while spark.sparkContext.statusTracker().getActiveJobsIds():
        assert time.monotonic() < until, "the job runs on"
        time.sleep(0.1)
    assert spark_call(spark.sparkContext.parallelize([1, 2], 2).sum)() == 3


@pytest.mark.parametrize("theirs", [True, False])
def test_ctrl_c_ends_a_job(spark: Any, theirs: bool, caplog: pytest.LogCaptureFixture) -> None:
    def as_pyspark_does(*_: Any) -> None:
        try:
            spark.sparkContext.cancelAllJobs()
        finally:
            raise KeyboardInterrupt

    handler = as_pyspark_does if theirs else signal.default_int_handler
    with interrupted_in_a_job(spark, handler), pytest.raises(KeyboardInterrupt):
        wait_long(spark)
    assert_idle(spark)
    assert not caplog.records  # py4j logs what breaks its connection


def test_a_poll_can_end_a_job(spark: Any) -> None:
    class Enough(Exception):
        pass

    looks: list[threading.Thread] = []

    def look() -> None:
        looks.append(threading.current_thread())
        if len(looks) == 3:
            raise Enough

    @spark_call
    def looked() -> None:
        with polled(look):
            wait_long(spark)

    with pytest.raises(Enough):
        looked()
    assert looks == [threading.main_thread()] * 3
    assert_idle(spark)


def test_results_errors_and_the_users_settings_pass(spark: Any) -> None:
    context = spark.sparkContext
    context.setJobDescription("mine")
    try:
        assert spark_call(lambda: context.getLocalProperty("spark.job.description"))() == "mine"
    finally:
        context.setJobDescription(None)
    threads = spark_call(lambda: (threading.current_thread(), spark_call(threading.current_thread)()))()
    assert threads[0] is threads[1] is not threading.current_thread()
    with pytest.raises(ZeroDivisionError):
        spark_call(lambda: 1 / 0)()
    with pytest.raises(RuntimeError, match="runs no Spark call"), polled(print):
        pass


@pytest.mark.parametrize("layout", ["columns", "rows"] if TURNS > 1 else ["rows"])
def test_a_time_limit_ends_a_pass_on_spark(spark: Any, layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark import SparkFiles

    from plar.engines import SparkEngine

    def slow(counts: Any) -> int:
        """θ that takes its time over large classes, as those of the first steps are."""
        total = counts.sum()
        x = total
        for _ in range(500_000_000 if 5 <= total < 60 else 0):
            x = x * 6364136223846793005 + 1442695040888963407
        return int(total - counts.max() + (x == 1))

    clock = Clock(monkeypatch)

    def watch(job: Any) -> None:
        clock.now = 10.0

    measure = plar.Measure("slow", slow, normaliser=lambda n: n)
    before, files = set(spark.sparkContext._jsc.getPersistentRDDs()), Path(SparkFiles.getRootDirectory())
    names = {path.name for path in files.iterdir()}
    with SparkEngine(session=spark, layout=layout, watch=watch) as engine:
        reduct = plar.reduce(table(100, 12), "d", measure=measure, engine=engine, time_limit=10)
    assert clock.now == 10
    assert set(spark.sparkContext._jsc.getPersistentRDDs()) <= before
    assert {path.name for path in files.iterdir()} == names
    assert (reduct.steps, reduct.complete) == ((), False)
    assert_idle(spark)


SLOW_STEPS = """
import os, sys, time
import plar.search.greedy
from plar.cli import main

step = plar.search.greedy.GreedySearch._step
def slow(search, evaluation):
    if len(search._chosen) == 2:
        from plar.runtime.spark_calls import spark_call
        from pyspark import SparkContext
        rows, begun = SparkContext.getOrCreate().parallelize([0], 1), os.environ["BEGUN"]
        spark_call(lambda: rows.map(lambda _: (open(begun, "w").close(), time.sleep(600))).count())()
    return step(search, evaluation)
plar.search.greedy.GreedySearch._step = slow
main()
"""


def test_ctrl_c_in_the_shell(tmp_path: Path) -> None:
    if reason := no_spark():
        pytest.skip(reason)
    path, checkpoint = tmp_path / "t.parquet", tmp_path / "c.json"
    table(100, 12).write_parquet(path)
    words = ["reduce", str(path), "-d", "d", "--json", "--checkpoint", str(checkpoint), "--engine", "spark"]
    words += ["--master", "local[1]", *(f"--conf={key}={value}" for key, value in QUICK_START.items())]
    # a session of its own, as a terminal gives: Ctrl-C reaches Python, the JVM and Python's workers
    child = subprocess.Popen(
        [sys.executable, "-c", SLOW_STEPS, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "BEGUN": str(tmp_path / "begun")},
    )
    while not (tmp_path / "begun").exists():  # a worker of Spark's makes it
        assert child.poll() is None, child.communicate()
        time.sleep(0.05)
    os.killpg(child.pid, signal.SIGINT)
    out, err = child.communicate(timeout=300)
    assert err == f"The steps are saved in {checkpoint}; run the same command again to continue.\nInterrupted.\n"
    assert child.returncode == 130
    result = json.loads(out)
    assert (len(result["steps"]), result["complete"]) == (2 - len(result["core"]), False)
    assert all_facts(plar.reduce(table(100, 12), "d", checkpoint=checkpoint)) == all_facts(
        plar.reduce(table(100, 12), "d")
    )
    with suppress(ProcessLookupError):
        for _ in range(600):
            os.killpg(child.pid, 0)
            time.sleep(0.1)
        pytest.fail("Spark is left behind")


def test_ctrl_c_while_spark_starts() -> None:
    from plar.engines.spark.session import _interrupts_later

    before = signal.getsignal(signal.SIGINT)
    with _interrupts_later() as pressed:
        signal.raise_signal(signal.SIGINT)
    assert pressed == [signal.SIGINT]
    assert signal.getsignal(signal.SIGINT) is before

    def elsewhere(done: Callable[[list[int]], None]) -> None:
        with _interrupts_later() as pressed:
            done(pressed)

    interrupts: list[list[int]] = []
    thread = threading.Thread(target=elsewhere, args=(interrupts.append,))
    thread.start()
    thread.join()
    assert interrupts == [[]]
