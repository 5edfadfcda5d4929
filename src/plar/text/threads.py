"""Work that threads share."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

__all__ = ["in_threads", "usable_cores"]


def usable_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_threads(work: Callable[[Any], None], tasks: Sequence[Any], n_jobs: int) -> None:
    """Do every task, under the limits of the caller."""
    if n_jobs == 1 or len(tasks) == 1:
        for task in tasks:
            work(task)
        return
    with ThreadPoolExecutor(n_jobs) as pool:
        for future in [pool.submit(copy_context().run, work, task) for task in tasks]:
            future.result()
