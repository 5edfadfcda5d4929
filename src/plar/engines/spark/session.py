"""Spark sessions and jobs: start a session or use a given one, report progress, explain failures in one line."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.metadata import version
from time import monotonic
from typing import IO, Any, TypeVar

import pyspark
from pyspark import RDD, Accumulator, SparkConf, SparkContext, cloudpickle
from pyspark.sql import SparkSession

from plar import errors
from plar.engines.job_progress import JobProgress, Watch
from plar.errors import (
    NO_VALUE,
    EngineFailed,
    EngineUnavailable,
    Given,
    Parameter,
    ParameterError,
    Part,
    PlarError,
    PythonOnly,
    TableError,
    Term,
)
from plar.files.find import written_so_far
from plar.measures import OWN, Measure
from plar.runtime.limits import machine_memory
from plar.runtime.spark_calls import polled, spark_call

T = TypeVar("T")

#: module that forks the workers of sessions started here
DAEMON = "plar.spark_daemon"
#: how long a master may take to answer
_CONNECT_SECONDS = 10.0
#: begins the line of a task's traceback that holds plar's error in parts
_ERROR_LINE = "plar-error:"
#: parts of messages that are not plain text
_OPTION_PARTS: dict[str, Callable[..., Part]] = {kind.__name__: kind for kind in (Given, Parameter, PythonOnly, Term)}


def why_unavailable() -> str | None:
    """Say why this machine cannot start Spark: it needs Java, unless a JVM runs already."""
    if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:  # spark-submit sets it
        return None
    needed = 17 if int(pyspark.__version__.partition(".")[0]) >= 4 else 8
    remedy = "install a JDK, or set JAVA_HOME to one"
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if java is None or not os.path.exists(java):
        where = f"JAVA_HOME is {home!r}, which has no bin/java" if home else "no java was found"
        return f"needs Java {needed} or newer and {where}; {remedy}"
    try:
        number = _java_version(os.path.realpath(java))
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"needs Java {needed} or newer, and {java!r} does not run ({error}); {remedy}"
    if number is not None and number < needed:
        return f"needs Java {needed} or newer and {java!r} is Java {number}; {remedy}"
    return None


@lru_cache
def _java_version(java: str) -> int | None:
    """The version of a Java, None if it does not say; asking takes a tenth of a second."""
    printed = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
    number = re.search(r'version "(?:1\.)?(\d+)', printed)
    return int(number[1]) if number else None


def running_session() -> SparkSession | None:
    """The session of this thread, else that of this process; None if Spark does not run."""
    session = SparkSession.getActiveSession()
    if session is None and SparkContext._active_spark_context is not None:
        return SparkSession.builder.getOrCreate()  # threads that plar starts have no active session
    return session


#: how many engines use each session that plar has started, by its context
_engines_using: dict[SparkContext, int] = {}
_engines_lock = threading.Lock()


def join_session(session: SparkSession) -> bool:
    """Keep a session running until `leave_session`, if plar has started it; False if it is somebody else's."""
    with _engines_lock:
        context = session.sparkContext
        if context in _engines_using:
            _engines_using[context] += 1
        return context in _engines_using


def leave_session(session: SparkSession) -> None:
    """Stop a session that plar has started when the last engine leaves it."""
    with _engines_lock:
        context = session.sparkContext
        _engines_using[context] -= 1
        if not _engines_using[context]:
            del _engines_using[context]
            session.stop()


def start_session(master: str | None, conf: Mapping[str, Any]) -> SparkSession:
    """Start a new session."""
    conf = {name: str(value) for name, value in conf.items()}
    reason = why_unavailable()
    if reason:
        raise EngineUnavailable(f"The engine 'spark' {reason}.")
    master = master or conf.get("spark.master") or os.environ.get("MASTER") or "local[*]"
    _check_answers(master)
    running = running_session()
    if running is not None:
        check_session(running)
        raise ParameterError(
            f"A Spark session on {running.sparkContext.master!r} already runs in this process, and its settings cannot "
            "be changed. Pass session=SparkSession.active() in place of master and conf, or stop it first."
        )
    settings = {**_defaults(master), **conf}
    session = _new_session(master, settings)
    session.sparkContext.setLogLevel("OFF")
    if python := settings.get("spark.pyspark.python"):  # pyspark itself reads it from the environment only
        session.sparkContext.pythonExec = python
    with _engines_lock:
        _engines_using[session.sparkContext] = 1
    return session


def _new_session(master: str, settings: Mapping[str, str]) -> SparkSession:
    """Start a session; what a JVM that cannot start prints becomes one line."""
    conf = SparkConf().setMaster(master).setAppName("plar").setAll(list(settings.items()))
    jvm_starts = SparkContext._gateway is None
    with tempfile.TemporaryFile() as log:
        try:
            with _stderr_to(log) if jvm_starts else nullcontext(), quiet(), _interrupts_later() as interrupts:
                session = SparkSession.builder.config(conf=conf).getOrCreate()
        except Exception as error:
            reason = _reason(str(error), written_so_far(log).decode(errors="replace"))
            raise EngineUnavailable(
                f"Spark cannot start on {master!r}: {reason} Check the master and ", Given("conf"), "."
            ) from None
    if interrupts:
        session.stop()
        raise KeyboardInterrupt
    return session


def _defaults(master: str) -> dict[str, str]:
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.rdd.compress": "false",
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.daemon.module": DAEMON,
        # the JVM only schedules: its slower compiler would compete with the tasks and come too late
        "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1",
    }
    if master.startswith("local"):
        # tasks run on this machine, with this Python and without a network; the JVM must leave memory for the
        # Python workers
        settings |= {
            "spark.driver.memory": f"{min(16, max(1, (machine_memory() or 0) >> 32))}g",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.shuffle.compress": "false",
            "spark.broadcast.compress": "false",
            "spark.pyspark.python": os.environ.get("PYSPARK_PYTHON", sys.executable),
        }
    return settings


def _check_answers(master: str) -> None:
    """Refuse a standalone master that does not answer; Spark itself would keep trying for minutes."""
    if not master.startswith("spark://"):
        return
    reason = ""
    for place in master.removeprefix("spark://").split(","):
        host, _, port = place.rpartition(":")
        if not port.isdigit() or not host:
            raise ParameterError(f"The master {master!r} has no host and port. Write it as spark://host:7077.")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_SECONDS).close()
            return
        except OSError as error:
            reason = str(error.strerror or error)
    raise EngineUnavailable(
        f"The Spark master {master!r} does not answer ({reason}). Check the address and that the master is running."
    )


@contextmanager
def _interrupts_later() -> Iterator[list[int]]:
    """Defer Ctrl-C while a JVM starts: an exception now would leave the JVM running forever."""
    interrupts: list[int] = []
    if threading.current_thread() is not threading.main_thread():  # only that thread is interrupted
        yield interrupts
        return
    before = signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    try:
        yield interrupts
    finally:  # drop pyspark's handler, which calls the JVM from wherever this thread is; plar cancels its own jobs
        signal.signal(signal.SIGINT, before)


@contextmanager
def _stderr_to(log: IO[bytes]) -> Iterator[None]:
    """Redirect stderr, and that of a JVM started meanwhile, to a file."""
    sys.stderr.flush()
    before = os.dup(2)
    os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


def check_session(session: Any) -> None:
    """Refuse what is not a session, or one without RDDs."""
    if type(session).__module__.startswith("pyspark.sql.connect"):
        raise EngineUnavailable(
            "The engine 'spark' does not work through Spark Connect, which has no RDDs. Use a classic session, such as "
            "SparkSession.builder.master('spark://host:7077')."
        )
    if not isinstance(session, SparkSession):
        raise ParameterError(f"The 'session' parameter must be None or a SparkSession. Got {session!r} instead.")


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress pyspark's warnings about the versions of other packages."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        yield


@contextmanager
def explained(doing: str) -> Iterator[None]:
    """Turn Spark's page-long errors into one line."""
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith(("py4j", "pyspark")):
            raise
        raise _explanation(str(error), doing) from None


@contextmanager
def errors_in_parts() -> Iterator[None]:
    """In a task: add the parts of plar's errors to their tracebacks, all that the driver sees of them."""
    try:
        yield
    except PlarError as error:
        error.add_note(_written_in_parts(error))
        raise


def _written_in_parts(error: PlarError) -> str:
    kind = next(cls.__name__ for cls in type(error).__mro__ if cls.__module__ == errors.__name__)
    parts: list[str | list[object]] = []
    for part in error.message:
        if isinstance(part, str):
            parts.append(part)
        else:
            parts.append([type(part).__name__, *(value for value in part if value is not NO_VALUE)])
    return _ERROR_LINE + b64encode(json.dumps([kind, parts], default=str).encode()).decode()


def _error_in_parts(text: str) -> PlarError | None:
    """The error that a task wrote in parts. It is no pickle, because values in the data may imitate it."""
    lines = re.findall(rf"^{_ERROR_LINE}(\S+)$", text, re.MULTILINE)
    if not lines:
        return None
    try:
        kind, parts = json.loads(b64decode(lines[-1]))
        message = [part if isinstance(part, str) else _OPTION_PARTS[part[0]](*part[1:]) for part in parts]
        error_class = getattr(errors, kind)
        if not isinstance(error_class, type) or not issubclass(error_class, PlarError):
            return None
        return error_class(*message)
    except (ValueError, LookupError, TypeError, AttributeError):
        return None


def _explanation(text: str, doing: str) -> Exception:
    error = _error_in_parts(text)
    if error is not None:
        return error
    lines = re.findall(r"^plar\.[\w.]+\.(\w+): (.+)$", text, re.MULTILINE)
    if lines:
        kind, message = lines[-1]
        return getattr(errors, kind, TableError)(message)
    missing = re.search(r"ModuleNotFoundError: No module named '([\w.]+)'", text)
    if missing:
        return EngineUnavailable(
            f"The Spark executors have no {missing[1].partition('.')[0]!r}. Install plar {version('plar')} on every "
            "node (pip install 'plar[spark]'), or set PYSPARK_PYTHON before Spark starts, or spark.pyspark.python of a "
            "session that plar starts, to a Python that has it."
        )
    return EngineFailed(f"Spark could not {doing}: {_reason(text)}")


def _reason(text: str, log: str = "") -> str:
    """The most informative line of an error and a log."""
    logged = _lines(log)
    raised = _lines(text)
    causes = [line for line in logged + raised if line.startswith("Caused by: ")]
    exceptions = [line for line in logged + raised if re.match(r"[\w.$]*(Exception|Error)\b.*: ", line)]
    if causes:
        line = causes[-1].removeprefix("Caused by: ")
    else:
        line = [*exceptions, *raised, *logged, "no reason was given"][0]
    return line if line.endswith(".") else line + "."


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


# -- jobs --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Sent(Measure):
    """A measure that is unpickled to one object per worker, shared by all tasks, so that θ is compiled once."""

    #: the measure itself
    pickled: bytes = b""

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (self.pickled,)


@lru_cache(maxsize=8)
def _received(pickled: bytes) -> Measure:
    measure: Measure = pickle.loads(pickled)  # pickled by the driver of this run
    return measure


def sent_once(measure: Measure) -> Measure:
    """Prepare a user's measure for the tasks; they already have the built-in ones."""
    if measure.kind != OWN or isinstance(measure, _Sent):
        return measure
    dumps: Callable[[Measure], bytes] = cloudpickle.dumps
    return _Sent(
        name=measure.name,
        theta=measure.theta,
        normaliser=measure.normaliser,
        drop_pure=measure.drop_pure,
        kind=measure.kind,
        pickled=dumps(measure),
    )


@spark_call
def run_watched(
    rdd: RDD[Any],
    function: Callable[[Iterable[Any]], Iterable[T]],
    tasks: Sequence[int],
    watch: Watch | None = None,
    candidates: int = 0,
) -> list[T]:
    """Run a function on the records of some partitions; the waiting thread reports progress."""
    if watch is None:
        return _run(rdd, function, tasks)
    ended = rdd.context.accumulator(0)
    total = len(tasks)
    began = monotonic()

    def look() -> None:
        done = min(ended.value, total)  # a task that ran twice counts twice
        seconds_left = (monotonic() - began) / done * (total - done) if done else None
        watch(JobProgress(done, total, candidates, None, seconds_left))

    with polled(look):
        return _run(rdd, partial(_counted, function=function, ended=ended), tasks)


def _run(rdd: RDD[Any], function: Callable[[Iterable[Any]], Iterable[T]], tasks: Sequence[int]) -> list[T]:
    if len(tasks) < rdd.getNumPartitions():
        return list(rdd.context.runJob(rdd, function, tasks))
    return list(rdd.mapPartitions(function).collect())  # naming all tasks would take a call to the JVM each


def _counted(
    records: Iterable[Any], function: Callable[[Iterable[Any]], Iterable[T]], ended: Accumulator[int]
) -> Iterator[T]:
    yield from function(records)
    ended.add(1)
