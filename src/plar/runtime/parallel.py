"""All threads that plar starts on purpose: numba, numpy and polars release the GIL, so threads share their work.

Nothing is divided twice: work that a task would share among threads is done by the thread that has the task,
or there would be as many threads as the square of the cores.
"""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from itertools import islice
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeVar

from plar.errors import invalid

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

A = TypeVar("A")
T = TypeVar("T")
#: below this many cells a task is too short for a thread of its own
MIN_SHARED_CELLS = 1 << 15
#: threads that the caller asked for
_n_threads: ContextVar[int | None] = ContextVar("_n_threads", default=None)
#: whether the running code is a task of several that run at a time
_in_task: ContextVar[bool] = ContextVar("_in_task", default=False)


def check_jobs(n_jobs: Any) -> None:
    """Refuse what is not a number of threads."""
    if n_jobs is None:
        return
    is_whole = isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool)
    if not is_whole or (int(n_jobs) < 1 and n_jobs != -1):
        raise invalid("n_jobs", "-1 for all cores, or 1 or more", n_jobs, or_none=True)


@contextmanager
def threads(n_jobs: int | None) -> Iterator[None]:
    """Use this many threads within the block; -1: one per core; None: as many as an enclosing block says."""
    if n_jobs is None:
        n_threads = _n_threads.get()
    elif n_jobs == -1:
        n_threads = _all_cores()
    else:
        n_threads = int(n_jobs)
    token = _n_threads.set(n_threads)
    try:
        yield
    finally:
        _n_threads.reset(token)


def usable_cores() -> int:
    """How many threads to use: as many as asked for, else as many as can run at a time; within a task, one."""
    if _in_task.get():
        return 1
    return _n_threads.get() or _all_cores()


def _all_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _as_task(function: Callable[[A], T], task: A) -> T:
    """Call the function; what it would share among threads, this one does alone."""
    token = _in_task.set(True)
    try:
        return function(task)
    finally:
        _in_task.reset(token)


def in_threads(
    function: Callable[[A], T],
    tasks: Iterable[A],
    cells: float = math.inf,
    stop: Callable[[], None] | None = None,
) -> Iterator[T]:
    """Results of the tasks, in order, several computed at a time; with few `cells` a task is not worth a thread.

    Results are computed as they are taken, or a little ahead, so that few are in memory. If a task fails or
    the caller is interrupted, the tasks that run are waited for; `stop`, if given, is called first, to tell
    them to return early.
    """
    cores = usable_cores()
    if cores == 1 or cells < MIN_SHARED_CELLS:
        yield from map(function, tasks)
        return
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(cores)
    try:
        # a copy of the context for each, since the limits of the call are context variables
        futures = (pool.submit(copy_context().run, _as_task, function, task) for task in tasks)
        waiting = deque(islice(futures, 2 * cores))
        while waiting:
            yield waiting.popleft().result()
            waiting.extend(islice(futures, 1))
    except BaseException:
        if stop is not None:
            stop()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


class ThreadTeam:
    """Threads that stay between many short rounds of tasks, one of them the caller's own; they stop with the team.

    Examples
    --------
    >>> team = ThreadTeam(2)
    >>> team.run(lambda number: number * number, [1, 2, 3])
    [1, 4, 9]
    """

    def __init__(self, n_threads: int, min_cells: int = 0) -> None:
        self.n_threads = n_threads
        #: rounds of fewer cells are not worth several threads
        self._min_cells = min_cells
        self._pool: ThreadPoolExecutor | None = None

    def run(
        self,
        function: Callable[[A], T],
        tasks: Sequence[A],
        cells: float = math.inf,
        note: Callable[[T], None] | None = None,
    ) -> list[T]:
        """Results of the tasks, in order; `note` is called with each in this thread, as they become known.

        After an exception, tasks that run in other threads are not waited for.
        """
        is_shared = self.n_threads > 1 and len(tasks) > 1 and cells >= self._min_cells and not _in_task.get()
        futures = [self._started(function, task) for task in tasks] if is_shared else []
        try:
            return self._results(function, tasks, futures, note or _ignore)
        finally:
            for future in futures:
                future.cancel()

    def start(self, function: Callable[[], T]) -> Callable[[], T]:
        """Run a function in another thread, and return one that waits for its result.

        With one thread to use, it runs when its result is asked for.

        >>> answer = ThreadTeam(2).start(lambda: 6 * 7)
        >>> answer()
        42
        """
        if self.n_threads == 1 or usable_cores() == 1:
            return function
        return self._threads().submit(copy_context().run, function).result

    def _started(self, function: Callable[[A], T], task: A) -> Future[T]:
        return self._threads().submit(copy_context().run, _as_task, function, task)

    def _threads(self) -> ThreadPoolExecutor:
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(self.n_threads - 1)
        return self._pool

    def _results(
        self, function: Callable[[A], T], tasks: Sequence[A], futures: Sequence[Future[T]], note: Callable[[T], None]
    ) -> list[T]:
        # This thread works too, from the last task on: to wait for another takes as long as a small task.
        last_results = deque[T]()
        n_noted = 0
        for i in reversed(range(len(tasks))):
            if not futures:
                result = function(tasks[i])
            elif futures[i].cancel():
                result = _as_task(function, tasks[i])
            else:  # another thread has it, and all before it
                break
            last_results.appendleft(result)
            note(result)
            while n_noted < min(i, len(futures)) and futures[n_noted].done():
                note(futures[n_noted].result())
                n_noted += 1
        first_results = [future.result() for future in futures[: len(tasks) - len(last_results)]]
        for result in first_results[n_noted:]:
            note(result)
        return [*first_results, *last_results]


def _ignore(_: object) -> None:
    """Do nothing."""


def run_polled(function: Callable[[], T], poll: Callable[[], None], seconds: float) -> T:
    """Run a function that nothing can stop; every few `seconds` call `poll`, whose exception leaves it running alone.

    >>> run_polled(lambda: 6 * 7, poll=lambda: None, seconds=0.01)
    42
    """
    from concurrent.futures import Future, wait
    from threading import Thread

    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=run, daemon=True).start()  # not of a pool: Python waits for pool threads at exit
    while wait([future], seconds).not_done:
        poll()
    return future.result()
