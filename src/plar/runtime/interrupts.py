"""Ctrl-C at a safe place: not in Python code that C code calls, which breaks on an exception or drops it.

In what numba's dispatcher calls, an exception becomes a SystemError; in a `__del__` it is printed and
forgotten; and an interrupted import of numba cannot be repeated.
What happens then is the searches' part: they turn it into `plar.Interrupted`, with the result so far.
"""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from _typeshed import TraceFunction

#: packages whose Python code is called by C code: numba's dispatcher, the callbacks of weak references
_FRAGILE: Final = frozenset({"numba", "llvmlite", "weakref", "_weakrefset"})
#: Python's import system, by its names before and after it is imported itself
_IMPORTING: Final = frozenset({"importlib", "_frozen_importlib", "_frozen_importlib_external"})
#: modules that an exception must not leave halfway, or a `with` block would not be entered or left
_ENTERING: Final = frozenset({__name__, "contextlib", "signal", "enum", "plar.session.session"})


class SafeInterrupts:
    """Within this block, Ctrl-C waits until fragile code is done; at the latest, it is raised when the block ends.

    Only in the main thread, where Python handles signals, and only in place of Python's own handler.
    """

    def __init__(self) -> None:
        self._is_active = False
        self._is_waiting = False
        #: where the interrupt is to be raised, if it waits
        self._safe_frame: FrameType | None = None
        #: a debugger's, which gets its place back
        self._tracer_before: TraceFunction | None = None

    def __enter__(self) -> None:
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._tracer_before = sys.gettrace()
            self._is_active = True
            signal.signal(signal.SIGINT, self._handle)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if not self._is_active:
            return
        if signal.getsignal(signal.SIGINT) == self._handle:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        was_waiting = self._is_waiting
        self._stop_waiting()
        if self._tracer_before is not None:
            sys.settrace(self._tracer_before)  # Python removes the tracer that raises
        is_interrupted = kind is not None and issubclass(kind, KeyboardInterrupt)
        if was_waiting and not is_interrupted:
            raise KeyboardInterrupt

    def _handle(self, _number: int, frame: FrameType | None) -> None:
        """Raise now, or when the interrupted code is back where it is safe."""
        safe_frame = _newest_safe(frame)
        self._stop_waiting()
        if safe_frame is frame:
            raise KeyboardInterrupt
        self._is_waiting = True
        self._safe_frame = safe_frame
        if safe_frame is not None:
            # As debuggers do it: before the next instruction of that function, Python calls `_raise_at_last`. At the
            # next line it might be too late: leaving a `with` block is a line, too, and would be skipped.
            safe_frame.f_trace = self._raise_at_last
            safe_frame.f_trace_lines = False
            safe_frame.f_trace_opcodes = True
            sys.settrace(_trace_no_other)

    def _raise_at_last(self, _frame: FrameType, _event: str, _argument: object) -> None:
        if self._is_waiting:
            self._stop_waiting()
            raise KeyboardInterrupt

    def _stop_waiting(self) -> None:
        self._is_waiting = False
        if self._safe_frame is not None:
            sys.settrace(self._tracer_before)
            self._safe_frame.f_trace = None
            self._safe_frame.f_trace_lines = True
            self._safe_frame.f_trace_opcodes = False
            self._safe_frame = None


def _trace_no_other(_frame: FrameType, _event: str, _argument: object) -> None:
    """Leave functions that are called meanwhile untraced."""


def _newest_safe(frame: FrameType | None) -> FrameType | None:
    """The innermost of the running functions that neither is fragile nor was called by one that is."""
    safe = frame
    importer: FrameType | None = None
    while safe is not None and safe.f_globals.get("__name__") in _ENTERING:
        safe = safe.f_back
    while frame is not None:
        package = str(frame.f_globals.get("__name__")).partition(".")[0]
        if package in _FRAGILE or frame.f_code.co_name == "__del__":
            safe = frame.f_back
            importer = None
        elif package in _IMPORTING:
            importer = frame.f_back
        elif package == "plar" and importer is not None:  # otherwise a script is imported that calls plar
            safe = importer
            importer = None
        frame = frame.f_back
    return safe
