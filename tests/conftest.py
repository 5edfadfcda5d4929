"""Engines to run on, the folder of real data, and how Hypothesis behaves."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

pytest.register_assert_rewrite("support")

from support.environment import QUICK_START, TURNS, no_spark  # noqa: E402
from support.every_engine import ASKED, ENGINES  # noqa: E402

# random on purpose, with what it takes to repeat a failure printed; the machine may be slow, so no deadline
settings.register_profile(
    "plar",
    deadline=None,
    print_blob=True,
    max_examples=60 * TURNS,
    phases=set(Phase) - {Phase.explain},  # explaining a failure of a large table takes a minute
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("plar")


# jobs of some milliseconds are over before a JVM has compiled its code to the last
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# a shell that starts the tests in the background has them ignore Ctrl-C, and their children too
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def nothing_left_open() -> Iterator[None]:
    """Whatever a test leaves open in a cycle is collected, and so warned about, in that test and not in a later one.

    What was there before is frozen: only what the test has made is looked at, about 1 ms instead of 150.
    """
    gc.freeze()
    yield
    gc.collect()


@pytest.fixture(scope="session", params=ASKED)
def engine(request: pytest.FixtureRequest) -> Any:
    """An engine object; a test that takes it runs on all of them."""
    return ENGINES[request.param]()


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A Spark session on two cores of this machine, or a skip."""
    from plar.engines import SparkEngine

    if reason := no_spark():
        pytest.skip(reason)

    with SparkEngine(master="local[2]", conf=QUICK_START) as started:
        yield started.spark()


#: modules that make something costly once: a Spark session, a virtual environment, a browser
SHARED = ("test_install", "test_report_in_browser")


@pytest.hookimpl(tryfirst=True)  # xdist looks for the groups in this hook too
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where several processes share the work, tests that share something stay in one, and the longest go first."""
    for item in items:
        module = item.path.stem
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))
        elif module in SHARED:
            item.add_marker(pytest.mark.xdist_group(module))
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            # a random table may by chance be one that plar warns of, which is no failure
            for message in (
                ".*different in nearly every row",
                "The decision .* different numbers",
                "The decision is missing",
                "The target .* is (the same|different) in every row",
                "The numbers of",
            ):
                item.add_marker(pytest.mark.filterwarnings(f"ignore:{message}:plar.PlarWarning"))
    items.sort(key=lambda item: "spark" not in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder with the paper's datasets, or a skip."""
    folder = os.environ.get("PLAR_DATA")
    if not folder:
        pytest.skip("PLAR_DATA is not set: the folder with the paper's datasets")
    return Path(folder)


def pytest_unconfigure() -> None:
    """Let what was frozen be freed when Python ends: extensions written with nanobind report what is left then."""
    gc.unfreeze()
