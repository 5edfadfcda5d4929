"""Run Spark calls in a worker thread, so that Ctrl-C and time limits can cancel them.

An interrupt during a call from Python to the JVM would break the connection and leave the job running.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar
from uuid import uuid4

P = ParamSpec("P")
T = TypeVar("T")

#: between polls of a call, and between attempts to cancel it
_TICK_SECONDS = 0.2


class _Call(Future[T]):
    """A call that the caller's thread waits for."""

    #: called repeatedly by the waiting thread; an exception it raises cancels the call
    poll: Callable[[], None] | None = None


#: the call that this thread is running
_current_call: ContextVar[_Call[Any] | None] = ContextVar("current_call", default=None)


def spark_call(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function that calls Spark: it runs in a worker thread; an exception in the caller cancels its jobs."""

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        if _current_call.get() is not None:
            return function(*args, **kwargs)
        return _wait(partial(function, *args, **kwargs))

    return called


def _wait(function: Callable[[], T]) -> T:
    """Run a function in a thread; this one polls, and cancels the jobs if it is interrupted."""
    from pyspark import InheritableThread, SparkContext

    context = SparkContext._active_spark_context
    if context is None:  # the function starts it, or does not need it
        return function()
    call: _Call[T] = _Call()
    tag = f"plar-{uuid4()}"

    def work() -> None:
        _current_call.set(call)
        try:
            context.addJobTag(tag)
            call.set_result(function())
        except BaseException as error:
            call.set_exception(error)

    InheritableThread(target=copy_context().run, args=(work,), daemon=True).start()
    try:
        while wait([call], _TICK_SECONDS).not_done:
            if poll := call.poll:
                poll()
    except BaseException:
        while wait([call], _TICK_SECONDS).not_done:  # repeated: between two jobs there is nothing to cancel
            context.cancelJobsWithTag(tag)
        raise
    return call.result()


@contextmanager
def polled(poll: Callable[[], None]) -> Iterator[None]:
    """Have the thread that waits for this call run `poll` several times a second."""
    call = _current_call.get()
    if call is None:
        raise RuntimeError("This thread runs no Spark call.")
    call.poll = poll
    try:
        yield
    finally:
        call.poll = None
