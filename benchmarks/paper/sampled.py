"""Time a slow system by a sample: of the candidates of each question some are timed and checked, plar answers for all.

A step of the paper's systems is one job per candidate, and jobs of one step cost about the same. So the time of a step
is that of a sample of its candidates, times how many more there are. Without a limit nothing is extrapolated.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from plar.baselines.subsets import Judged, SubsetEvaluation
from plar.engines import Engine, LocalEngine
from plar.engines.base import LeaveOneOut
from plar.granules.granules import Granules
from plar.measures import Measure

__all__ = ["Sampled", "spread"]

T = TypeVar("T")


def spread(n: int, most: int | None) -> list[int]:
    """Choose up to `most` of n things, evenly."""
    return list(range(n)) if most is None or n <= most else [i * n // most for i in range(most)]


class Sampled(Engine):
    """An engine around one of the paper's systems.

    Parameters
    ----------
    system : engine of `plar.baselines`
    most : int, optional
        Candidates to time of each question.
    """

    def __init__(self, system: Any, most: int | None) -> None:
        self.system, self.most = system, most
        self.name: str = system.name
        #: as it would be with all candidates; how many were timed, and out of how many
        self.seconds, self.timed, self.asked = 0.0, 0, 0

    def open(self, granules: Granules, measure: Measure, watch: Any = None) -> SampledEvaluation:
        """Open both."""
        began = time.perf_counter()
        held = self.system.open(granules, measure)
        self.seconds += time.perf_counter() - began
        return SampledEvaluation(self, held, LocalEngine().open(granules, measure))

    def ask(self, question: Callable[[], T], timed: int = 0, asked: int = 0) -> T:
        """Time a question about so many of the candidates."""
        began = time.perf_counter()
        answer = question()
        self.seconds += (time.perf_counter() - began) * (asked / timed if timed else 1)
        self.timed += timed
        self.asked += asked
        return answer


class SampledEvaluation:
    """Answers of plar, for which the system was asked as well; see `plar.engines.base.Evaluation`."""

    def __init__(self, clock: Sampled, held: SubsetEvaluation, truth: Any) -> None:
        self._clock, self._held, self._truth = clock, held, truth
        self._chosen: tuple[int, ...] = ()
        self._candidates: set[int] = set()
        self.consistent: bool = truth.consistent
        self.theta_all: int = truth.theta_all
        self.value_all: float = truth.value_all
        assert clock.ask(lambda: held.theta_all, 1, 1) == self.theta_all

    def cross_tabs(self, candidates: Sequence[int]) -> Any:
        """The tables of plar."""
        return self._truth.cross_tabs(candidates)

    @property
    def theta(self) -> int:
        """Θ(D|R)."""
        theta: int = self._truth.theta
        return theta

    @property
    def unsettled_objects(self) -> int:
        """Objects in classes of U/R that are not settled."""
        n_objects: int = self._truth.unsettled_objects
        return n_objects

    def leave_one_out(self, attributes: Sequence[int] | None = None) -> list[LeaveOneOut]:
        """Θ(D|B∖{a}) for every a of B."""
        truth: list[LeaveOneOut] = self._truth.leave_one_out(attributes)
        every = tuple(range(len(truth))) if attributes is None else tuple(attributes)
        some = spread(len(every), self._clock.most)
        subsets = [tuple(b for b in every if b != every[i]) for i in some]
        if some:
            found = self._clock.ask(lambda: self._held.judge(subsets), len(some), len(every))
            for i, judged in zip(some, found, strict=True):
                assert (judged.unsettled_objects == 0) == truth[i].equal
                assert truth[i].equal or judged.theta == truth[i].theta
        return truth

    def with_each(self, candidates: Sequence[int]) -> list[int]:
        """Θ(D|R∪{a}) for every candidate."""
        if not self._chosen:
            assert self._clock.ask(lambda: self._held.theta, 1, 1) == self.theta
        truth: list[int] = self._truth.with_each(candidates)
        self._candidates = set(candidates)
        some = spread(len(candidates), self._clock.most)
        subsets = [(*self._chosen, candidates[i]) for i in some]
        found = self._clock.ask(lambda: self._held.judge_finer(subsets), len(some), len(candidates))
        assert [judged.theta for judged in found] == [truth[i] for i in some]
        return truth

    def select(self, *attributes: int) -> int:
        """R ← R ∪ {a, …}; returns Θ(D|R)."""
        theta: int = self._truth.select(*attributes)
        if attributes[0] in self._candidates:  # the system would know it, also where it was not timed
            self._held.judged[*self._chosen, attributes[0]] = Judged(theta, self.unsettled_objects)
        self._chosen, self._candidates = (*self._chosen, *attributes), set()
        assert self._clock.ask(lambda: self._held.select(*attributes)) == theta
        return theta
