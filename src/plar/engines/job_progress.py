"""Progress of a pass over the candidates, reported to a function while the pass runs."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from time import monotonic
from typing import NamedTuple, TypeAlias

#: between two reports
_TICK_SECONDS = 0.1


class JobProgress(NamedTuple):
    """How far a pass over the candidates is."""

    #: tasks
    done: int
    total: int
    candidates: int
    #: the best candidate so far and its Θ; None if no task knows a whole Θ
    best: tuple[str, float] | None
    seconds_left: float | None


#: called repeatedly during a pass; an exception that it raises stops the pass
Watch: TypeAlias = Callable[[JobProgress], None]


class JobCounter:
    """Counts the tasks of a pass and reports a few times a second, if anybody listens; threads may share it."""

    def __init__(self, watch: Watch | None, total: int, candidates: int) -> None:
        self.done = 0
        self._watch = watch
        self._total = total
        self._candidates = candidates
        self._began = monotonic()
        self._reported = self._began
        self._lock = Lock()

    def add(self, tasks: int, best: tuple[str, float] | None = None) -> None:
        """Count some more tasks as done; `best` is the best candidate so far."""
        with self._lock:
            self.done += tasks
            if self._watch is None:
                return
            now = monotonic()
            # the last task is reported if any before it was: what is shown ends at 100 %
            is_last = self.done >= self._total and self._reported > self._began
            if now - self._reported < _TICK_SECONDS and not is_last:
                return
            self._reported = now
            seconds_left = None
            if self.done:
                seconds_left = (now - self._began) / self.done * (self._total - self.done)
            self._watch(JobProgress(self.done, self._total, self._candidates, best, seconds_left))
