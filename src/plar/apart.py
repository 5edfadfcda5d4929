"""Calls to Spark in a thread of their own: whoever waits can leave, by Ctrl-C or for want of time.

An interrupt in the middle of a call from Python to the JVM breaks their connection and leaves the job running.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar
from uuid import uuid4

__all__ = ["apart", "looked_at"]

P = ParamSpec("P")
T = TypeVar("T")

#: seconds between two looks at a call, and between two tries to end it
_TICK = 0.2


class _Call(Future[Any]):
    """Work that somebody waits for."""

    #: what the one who waits does meanwhile; an exception of it ends the work
    look: Callable[[], None] | None = None


class _Here(threading.local):
    #: what this thread works for
    call: _Call | None = None


_here = _Here()


def apart(function: Callable[P, T]) -> Callable[P, T]:
    """Make a function that calls Spark work in a thread of its own; its jobs are cancelled if the caller leaves."""

    @wraps(function)
    def waited(*args: P.args, **kwargs: P.kwargs) -> T:
        if _here.call is not None:
            return function(*args, **kwargs)
        result: T = _wait(partial(function, *args, **kwargs))
        return result

    return waited


def _wait(function: Callable[[], Any]) -> Any:
    from pyspark import InheritableThread, SparkContext

    spark = SparkContext._active_spark_context
    if spark is None:  # which the function starts, or needs not
        return function()
    call, tag, context = _Call(), f"plar-{uuid4()}", copy_context()

    def work() -> None:
        _here.call = call
        try:
            spark.addJobTag(tag)
            call.set_result(context.run(function))
        except BaseException as error:
            call.set_exception(error)

    InheritableThread(target=work, daemon=True).start()
    try:
        while wait([call], _TICK).not_done:
            if look := call.look:
                look()
    except BaseException:
        while wait([call], _TICK).not_done:  # between two jobs there is nothing to cancel
            spark.cancelJobsWithTag(tag)
        raise
    return call.result()


@contextmanager
def looked_at(look: Callable[[], None]) -> Iterator[None]:
    """Let the one who waits look at this part of a call, a few times a second."""
    call = _here.call
    if call is None:
        raise RuntimeError("Nobody waits for this thread.")
    call.look = look
    try:
        yield
    finally:
        call.look = None
