"""Watch the memory while polars reads: it cannot be stopped, but the caller can give up waiting for it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from threading import Thread
from typing import TypeVar

from plar.limits import check_memory

__all__ = ["watched"]

T = TypeVar("T")
#: seconds between two looks
_TICK = 0.01


def watched(read: Callable[[], T]) -> T:
    """Read something in a thread; more memory than there is for it is a MemoryLimitExceeded.

    Examples
    --------
    >>> watched(lambda: 3)
    3
    """
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(read())
        except BaseException as error:
            done.set_exception(error)

    check_memory("Reading the table")
    Thread(target=run, daemon=True).start()  # of no pool: Python waits for those of pools when it ends
    while wait([done], _TICK).not_done:
        check_memory("Reading the table")
    return done.result()
