"""What is told while a search runs: by the engine, to callbacks, and to a person."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import plar
from plar.engines import LocalEngine
from plar.engines import job_progress as progress_hooks
from plar.engines.job_progress import JobCounter, JobProgress
from plar.session.progress import Display
from support.shell import TABLE


def passes(told: list[JobProgress]) -> list[list[JobProgress]]:
    """What was told, cut where a pass begins."""
    cut: list[list[JobProgress]] = []
    for job in told:
        if not cut or cut[-1][-1].done >= job.done or cut[-1][-1].total != job.total:
            cut.append([])
        cut[-1].append(job)
    return cut


@pytest.mark.parametrize("lanes", [True, False])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_local_engine_tells_how_far_it_is(n_jobs: int, lanes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_hooks, "_TICK_SECONDS", 0.0)
    codes = np.random.default_rng(2).integers(0, 3, (6_000, 200))
    data = {f"a{j}": codes[:, j] for j in range(200)} | {"d": codes[:, :4].sum(axis=1) % 3}
    told: list[JobProgress] = []
    found = plar.reduce(data, "d", engine=LocalEngine(n_jobs, lanes, told.append))
    assert found.attributes == plar.reduce(data, "d").attributes
    cut = passes(told)
    assert len(cut) > len(found.steps)  # the core, the steps, the certificate
    for one in cut:
        assert one[-1].done == one[-1].total
        assert one[-1].seconds_left == 0
    best = [one[-1].best for one in cut if one[-1].best]
    assert [theta for _, theta in best] == [pytest.approx(step.theta) for step in found.steps]
    assert all(name in step.ties for (name, _), step in zip(best, found.steps, strict=True))


def test_steps_are_told_in_a_pipe_if_asked_for() -> None:
    program = f"import plar; plar.reduce({TABLE!r}, 'x_wins', verbose=%s)"
    said = {
        verbose: subprocess.run(
            [sys.executable, "-c", program % verbose], capture_output=True, text=True, check=True
        ).stderr
        for verbose in (False, True)
    }
    assert said[False] == ""
    lines = said[True].splitlines()
    assert lines[0].startswith("rows        26 kB read, 958 rows, 958 distinct, ")
    assert [line.split()[0] for line in lines] == ["rows", "memory", "core", *["step"] * 8, "checked"]
    assert "\x1b" not in said[True]


def test_verbose_and_callbacks_go_together(capsys: pytest.CaptureFixture[str]) -> None:
    phases: list[str] = []
    steps: list[str] = []
    plar.reduce(
        TABLE, "x_wins", verbose=True, progress=lambda phase, done, total: phases.append(phase),
        on_step=lambda step: steps.append(step.attribute),
    )  # fmt: skip
    assert phases == ["read", "granulate", "core", *["search"] * 9, "certificate"]
    assert len(steps) == 8
    assert f"step 1      {steps[0]}, " in capsys.readouterr().err


def test_a_line_says_share_time_left_and_rate() -> None:
    display = Display(lines=False)
    display.phase("search", 2, 958)
    assert (display.title, display.info, display.share) == ("step 3", "0:00, 958 rows undecided", None)
    display.job(JobProgress(5, 10, 200, ("a\x1b[31m", 0.25), 75.0))
    assert display.share == 0.5
    assert display.info == "50 %, 1:15 left, 100 of 200 columns, best so far a\\x1b[31m, Θ 0.25"


def test_what_is_reported_ends_at_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[JobProgress] = []
    now = iter([0.0, 0.15, 0.2, 0.21])
    monkeypatch.setattr(progress_hooks, "monotonic", now.__next__)
    tally = JobCounter(seen.append, 3, 30)
    for _ in range(3):
        tally.add(1)
    assert [job.done for job in seen] == [1, 3]


def test_compiling_is_called_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    from plar.runtime.jit import clock

    display = Display(lines=True)
    display.phase("core", 0, 9)
    assert display.title == "core"
    clock.on_start(None)
    try:
        assert (display.title, display.info) == ("compiling", "0:00, needed once after installation")
    finally:
        clock.on_end(None)
    assert display.title == "core"
