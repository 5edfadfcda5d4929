"""Polars' threads do not pass to a forked process, where polars would wait for them forever: that is refused."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from plar.errors import EngineFailed

__all__ = ["check_threads"]

#: how polars and what it is made of name the threads that work
_NAMES = ("polars-0", "async-executor", "tokio-rt-worker")
_running = False
_lost = False


def check_threads() -> None:
    """Refuse to use polars in a process that was forked from one in which it had threads."""
    if _lost:
        raise EngineFailed(
            "This process was forked from one that had used polars, whose threads it lacks, so it would wait forever. "
            "Start processes with the method 'spawn' or 'forkserver', or give them granules made before."
        )


def _look() -> None:
    global _running
    _running = False
    with suppress(OSError):
        for thread in Path("/proc/self/task").iterdir():
            with suppress(OSError):
                if (thread / "comm").read_text().startswith(_NAMES):
                    _running = True
                    return


def _begin() -> None:
    global _lost
    _lost = _lost or _running


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_look, after_in_child=_begin)
