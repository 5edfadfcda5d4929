"""Progress of a pass over the candidates, reported to a function while the pass runs."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from time import monotonic
from typing import NamedTuple, TypeAlias

#: seconds between two reports
_TICK = 0.1


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
        self._watch, self._total, self._candidates = watch, total, candidates
        self._began = self._reported = monotonic()
        self._lock = Lock()

    def add(self, tasks: int, best: tuple[str, float] | None = None) -> None:
        """Count some more tasks as done; `best` is the best candidate so far."""
        with self._lock:
            self.done += tasks
            now = monotonic()
            last = self.done >= self._total and self._reported > self._began  # what was reported ends at 100 %
            if self._watch is None or (now - self._reported < _TICK and not last):
                return
            self._reported = now
            left = (now - self._began) / self.done * (self._total - self.done) if self.done else None
            self._watch(JobProgress(self.done, self._total, self._candidates, best, left))
