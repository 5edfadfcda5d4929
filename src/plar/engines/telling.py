"""How far a pass over the candidates is, for whoever watches."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from time import monotonic
from typing import Any, NamedTuple, TypeAlias

from plar.engines.base import Engine, Evaluation
from plar.measures import Measure

__all__ = ["JobProgress", "Tally", "Watch", "watched"]

#: seconds between two tellings
_TICK = 0.1


class JobProgress(NamedTuple):
    """How far a pass over the candidates is."""

    #: tasks
    done: int
    total: int
    candidates: int
    #: the best candidate so far and its Θ; None where no task knows a whole Θ
    best: tuple[str, float] | None
    seconds_left: float | None


Watch: TypeAlias = Callable[[JobProgress], None]


class Tally:
    """Tasks of a pass as they are done, told a few times a second; threads may share it.

    Examples
    --------
    >>> tally = Tally(print, total=2, candidates=100)
    >>> tally.add(1)
    >>> tally.done
    1
    """

    def __init__(self, watch: Watch, total: int, candidates: int) -> None:
        self.done = 0
        self._watch, self._total, self._candidates = watch, total, candidates
        self._began = self._told = monotonic()
        self._lock = Lock()

    def add(self, tasks: int, best: tuple[str, float] | None = None) -> None:
        """Note that some more tasks are done, and the best candidate now."""
        with self._lock:
            self.done += tasks
            now = monotonic()
            if now - self._told < _TICK:
                return
            self._told = now
            left = (now - self._began) / self.done * (self._total - self.done) if self.done else None
            self._watch(JobProgress(self.done, self._total, self._candidates, best, left))


def watched(engine: Engine, watch: Watch | None) -> Engine:
    """Let whatever an engine opens tell how far its passes are, if it can."""
    return engine if watch is None else _Watched(engine, watch)


class _Watched:
    def __init__(self, engine: Engine, watch: Watch) -> None:
        self._engine, self._watch, self.name = engine, watch, engine.name

    def open(self, granules: Any, measure: Measure) -> Evaluation:
        evaluation: Any = self._engine.open(granules, measure)
        if getattr(evaluation, "watch", self) is None:
            evaluation.watch = self._watch
        opened: Evaluation = evaluation
        return opened
