"""Polars' threads do not exist in a forked process, where polars would wait for them forever: that is refused."""

from __future__ import annotations

import os

from plar.errors import EngineFailed

__all__ = ["check_threads"]

#: whether plar has used polars in this process, and in one that it was forked from
_used = _lost = False


def check_threads() -> None:
    """Note that polars is about to be used; refuse it in a process forked from one in which plar had used it."""
    global _used
    if _lost:
        raise EngineFailed(
            "This process was forked from one that had used polars, whose threads it lacks, so it would wait forever. "
            "Start processes with the method 'spawn' or 'forkserver', or give them granules made before."
        )
    _used = True


def _forked() -> None:
    global _lost
    _lost = _used


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
