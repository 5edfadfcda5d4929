"""Time a slow system by a sample: of the candidates of each question some are timed and checked, plar answers for all.

A step of the paper's systems is one job per candidate, and jobs of one step cost about the same. So the time of a step
is that of a sample of its candidates, times how many more there are. Without a limit nothing is extrapolated.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from plar.baselines.subsets import Judged, SubsetEvaluation
from plar.chance.association import Association
from plar.engines import Engine, LocalEngine
from plar.engines.base import Evaluation, LeaveOneOut
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
        self.system = system
        self.most = most
        self.name: str = system.name
        #: as it would be with all candidates
        self.seconds = 0.0
        #: candidates that were timed, and all that were asked about
        self.timed = 0
        self.asked = 0

    def open(self, granules: Granules, measure: Measure, watch: Any = None) -> SampledEvaluation:
        """Open both."""
        began = time.perf_counter()
        evaluation = self.system.open(granules, measure)
        self.seconds += time.perf_counter() - began
        return SampledEvaluation(self, evaluation, LocalEngine().open(granules, measure))

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

    def __init__(self, clock: Sampled, system: SubsetEvaluation, truth: Evaluation) -> None:
        self._clock = clock
        self._system = system
        self._truth = truth
        self._chosen: tuple[int, ...] = ()
        self._candidates: set[int] = set()
        self.consistent = truth.consistent
        self.theta_all = truth.theta_all
        self.value_all = truth.value_all
        assert clock.ask(lambda: system.theta_all, 1, 1) == self.theta_all

    def associations(self, candidates: Sequence[int]) -> list[Association]:
        """Those of plar."""
        return self._truth.associations(candidates)

    def cross_tabs(self, candidates: Sequence[int]) -> Any:
        """The tables of plar."""
        return self._truth.cross_tabs(candidates)

    @property
    def theta(self) -> int:
        """Θ(D|R)."""
        return self._truth.theta

    @property
    def unsettled_objects(self) -> int:
        """Objects in classes of U/R that are not settled."""
        return self._truth.unsettled_objects

    def leave_one_out(self, attributes: Sequence[int] | None = None) -> list[LeaveOneOut]:
        """Θ(D|B∖{a}) for every a of B."""
        truth = self._truth.leave_one_out(attributes)
        all_attributes = tuple(range(len(truth))) if attributes is None else tuple(attributes)
        sample = spread(len(all_attributes), self._clock.most)
        subsets = [tuple(b for b in all_attributes if b != all_attributes[i]) for i in sample]
        if sample:
            answers = self._clock.ask(lambda: self._system.judge(subsets), len(sample), len(all_attributes))
            for i, judged in zip(sample, answers, strict=True):
                assert (judged.unsettled_objects == 0) == truth[i].equal
                assert truth[i].equal or judged.theta == truth[i].theta
        return truth

    def with_each(self, candidates: Sequence[int]) -> list[int]:
        """Θ(D|R∪{a}) for every candidate."""
        if not self._chosen:
            assert self._clock.ask(lambda: self._system.theta, 1, 1) == self.theta
        truth = self._truth.with_each(candidates)
        self._candidates = set(candidates)
        sample = spread(len(candidates), self._clock.most)
        subsets = [(*self._chosen, candidates[i]) for i in sample]
        answers = self._clock.ask(lambda: self._system.judge_finer(subsets), len(sample), len(candidates))
        assert [judged.theta for judged in answers] == [truth[i] for i in sample]
        return truth

    def select(self, *attributes: int) -> int:
        """R ← R ∪ {a, …}; returns Θ(D|R)."""
        theta = self._truth.select(*attributes)
        if attributes[0] in self._candidates:  # the system would know it, also where it was not timed
            self._system.judged[*self._chosen, attributes[0]] = Judged(theta, self.unsettled_objects)
        self._chosen = (*self._chosen, *attributes)
        self._candidates = set()
        assert self._clock.ask(lambda: self._system.select(*attributes)) == theta
        return theta
