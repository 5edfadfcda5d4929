"""Where things are, how long the tests may take, and what this machine has."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
TESTS = ROOT / "tests"
EXAMPLES = ROOT / "examples"
#: a table of nine columns and the decision x_wins
TIC_TAC_TOE = EXAMPLES / "tic_tac_toe.csv"
#: the command, as it is installed beside this Python
PLAR = str(Path(sys.executable).parent / "plar")

#: how much longer what is random goes on than in `make test`
TURNS = int(os.environ.get("PLAR_TEST_TURNS", "1"))

#: for a test that takes longer than it is worth every time
nightly = pytest.mark.skipif(TURNS == 1, reason="in the nightly run: it takes long")

#: all tests share a session, and some look at the stages that they ran: Spark forgets those beyond a thousand
QUICK_START = {"spark.sql.shuffle.partitions": "3", "spark.ui.retainedStages": "100000"}


def no_spark() -> str | None:
    """Why there is no Spark here."""
    from plar.engines import why_unavailable

    reason = why_unavailable("spark")
    return reason and f"the engine 'spark' {reason}"


def with_support(*folders: str, **variables: str) -> dict[str, str]:
    """The environment of a process that imports `support`, and files of these folders of tests/."""
    places = [str(TESTS), *(str(TESTS / folder) for folder in folders), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, places)), **variables}
