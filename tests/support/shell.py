"""plar as a person calls it in a shell."""

from __future__ import annotations

import subprocess
from pathlib import Path

from support.environment import PLAR, TIC_TAC_TOE

__all__ = ["PLAR", "TABLE", "run"]

TABLE = str(TIC_TAC_TOE)


def run(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The command with these words; what it wrote, and its exit code."""
    return subprocess.run([PLAR, *words], capture_output=True, text=True, cwd=cwd, timeout=300, check=False)
