"""Damaged files of every format: each ends in a right result or in one clear line, see fuzzing.py.

The cases of a format run in a process of their own. A crash or a hang of it names the case and is one failed test;
few Arrow files may end it.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from support import fuzzing
from support.environment import TURNS, with_support

CASES = 170 * TURNS
#: whose checksum lets no damage pass that matters
SEALED = ("checkpoint", "granules", "reduct", "rules")
#: seconds for one case before it counts as hung; the slowest takes far less
PATIENCE = 120
#: seconds for Python to start and to load plar
START = 300


def run(kind: str, first: int, last: int) -> dict[int, str]:
    """What came of each case."""
    command = [sys.executable, "-W", "ignore", str(Path(fuzzing.__file__)), kind, str(first), str(last)]
    with subprocess.Popen(
        command, env=with_support(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as worker:
        assert worker.stdout is not None
        outcomes: dict[int, str] = {}
        now, hung = first, False

        def give_up() -> None:
            nonlocal hung
            hung = True
            worker.kill()

        watch = threading.Timer(START, give_up)
        watch.start()
        for line in worker.stdout:
            watch.cancel()
            if line.startswith("case "):
                now = int(line.split()[1])
            else:
                outcomes[now] = line.rstrip("\n")
            watch = threading.Timer(PATIENCE, give_up)
            watch.start()
        watch.cancel()
        code = worker.wait()
    assert not hung, f"{kind}, case {now} hangs"
    if code != 0 and fuzzing.FORMATS[kind].may_end_process:
        outcomes[now] = f"ended its process with {code}"
        return outcomes | run(kind, now + 1, last)
    assert code == 0, f"{kind}, case {now} ended its process with {code}"
    return outcomes


@pytest.mark.parametrize("kind", fuzzing.FORMATS)
def test_damaged_files(kind: str) -> None:
    outcomes = run(kind, 0, CASES)
    assert len(outcomes) == CASES
    failed = {number: line for number, line in outcomes.items() if line.startswith("FAILED")}
    assert not failed, f"PYTHONPATH=tests python tests/support/fuzzing.py {kind} N N+1: {failed}"
    assert outcomes[0] == "right", "the undamaged file"
    # neither all refused nor all taken: then nothing would have been tried
    kinds = [line.split()[0] for line in outcomes.values()]
    assert kinds.count("refused") > 5
    assert kinds.count("ended") <= CASES // 100
    if kind not in SEALED:
        assert kinds.count("right") > 5


def test_there_are_enough_cases() -> None:
    assert CASES * len(fuzzing.FORMATS) >= 2000


def test_a_crash_and_a_hang_name_their_case(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "worker.py"
    script.write_text("import os, sys\nprint('case 0\\nright\\ncase 1', flush=True)\nos.abort()\n")
    monkeypatch.setattr(fuzzing, "__file__", str(script))
    with pytest.raises(AssertionError, match="csv, case 1 ended its process with -6"):
        run("csv", 0, 3)
    script.write_text("import time\nprint('case 0\\nright\\ncase 1', flush=True)\ntime.sleep(600)\n")
    monkeypatch.setattr(sys.modules[__name__], "PATIENCE", 1)
    with pytest.raises(AssertionError, match="csv, case 1 hangs"):
        run("csv", 0, 3)
