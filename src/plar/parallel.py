"""Work on all cores: numba, numpy and polars release the GIL."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from itertools import islice
from typing import Any, TypeVar

T = TypeVar("T")
#: below this many cells a task is too short for a thread
_SHARED = 1 << 15
#: threads that the caller asked for
_asked: ContextVar[int | None] = ContextVar("asked", default=None)


@contextmanager
def threads(n: int | None) -> Iterator[None]:
    """Use this many threads within the block; None or -1: the default."""
    before = _asked.set(n if n and n > 0 else None)
    try:
        yield
    finally:
        _asked.reset(before)


def usable_cores() -> int:
    """How many threads to use: as many as asked for, else as many as can run at a time."""
    if asked := _asked.get():
        return asked
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_threads(function: Callable[[Any], T], tasks: Iterable[Any], cells: int) -> Iterator[T]:
    """Results of the tasks, in order, some computed at a time; with few `cells` a task is not worth a thread."""
    cores = usable_cores()
    if cores == 1 or cells < _SHARED:
        yield from map(function, tasks)
        return
    from concurrent.futures import ThreadPoolExecutor

    tasks, pool = iter(tasks), ThreadPoolExecutor(cores)
    try:
        # limits are context variables of the call
        started = (pool.submit(copy_context().run, function, task) for task in tasks)
        waiting = deque(islice(started, 2 * cores))
        while waiting:
            yield waiting.popleft().result()
            waiting.extend(islice(started, 1))
    finally:
        pool.shutdown(cancel_futures=True)
