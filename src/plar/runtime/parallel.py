"""Work on all cores: numba, numpy and polars release the GIL."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from itertools import islice
from numbers import Integral
from typing import Any, TypeVar

from plar.errors import ParameterError

T = TypeVar("T")
#: below this many cells a task is too short for a thread
_SHARED = 1 << 15
#: threads that the caller asked for
_asked: ContextVar[int | None] = ContextVar("asked", default=None)


def check_jobs(n_jobs: Any) -> None:
    """Refuse what is not a number of threads."""
    if n_jobs is None:
        return
    is_whole = isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool)
    if not is_whole or (int(n_jobs) < 1 and n_jobs != -1):
        raise ParameterError(
            f"The 'n_jobs' parameter must be None or -1 for all cores, or 1 or more. Got {n_jobs!r} instead."
        )


@contextmanager
def threads(n_jobs: int | None) -> Iterator[None]:
    """Use this many threads within the block; -1: one per core; None: as many as an enclosing block says."""
    n_threads = _asked.get() if n_jobs is None else int(n_jobs)
    before = _asked.set(_all_cores() if n_threads == -1 else n_threads)
    try:
        yield
    finally:
        _asked.reset(before)


def usable_cores() -> int:
    """How many threads to use: as many as asked for, else as many as can run at a time."""
    return _asked.get() or _all_cores()


def _all_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_threads(function: Callable[[Any], T], tasks: Iterable[Any], cells: int) -> Iterator[T]:
    """Results of the tasks, in order, some computed at a time; with few `cells` a task is not worth a thread.

    Within a task nothing is divided again: threads of threads would be more than there are cores.
    """
    cores = usable_cores()
    if cores == 1 or cells < _SHARED:
        yield from map(function, tasks)
        return
    from concurrent.futures import ThreadPoolExecutor

    def run(task: Any) -> T:
        with threads(1):
            return function(task)

    pool = ThreadPoolExecutor(cores)
    try:
        # limits are context variables of the call
        started = (pool.submit(copy_context().run, run, task) for task in tasks)
        waiting = deque(islice(started, 2 * cores))
        while waiting:
            yield waiting.popleft().result()
            waiting.extend(islice(started, 1))
    finally:
        pool.shutdown(cancel_futures=True)
