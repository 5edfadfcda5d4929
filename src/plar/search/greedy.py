"""The greedy search: core, steps, certificate; engines supply Θ.

References
----------
PLAR, section 4: core by inner significance, then add the attribute of least Θ until the stop rule holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import partial
from time import perf_counter
from typing import NamedTuple

from plar.chance.p_value import adjusted_p_value, screened_p_value
from plar.engines.base import Evaluation, GranuleSet
from plar.engines.job_progress import JobProgress, Watch
from plar.errors import Interrupted
from plar.measures import OWN, Measure
from plar.options import SearchOptions
from plar.results.reduct import Certificate, Reduct, Step
from plar.runtime.parallel import ThreadTeam
from plar.search.base import Search
from plar.search.certificate import certify
from plar.search.checkpoint import Checkpoint
from plar.search.ties import best_first, tied
from plar.session.session import Session
from plar.session.warnings import warn_after

#: candidates that are tested against chance before all others are
_TESTS_AT_ONCE = 64


class Choice(NamedTuple):
    """The attribute to add, those that were as good, and its p-value if that is known already."""

    best: int
    ties: list[int]
    p_value: float | None


class GreedySearch(Search):
    """The greedy search: the core, then R as it grows, then what is proven about it."""

    def __init__(
        self, session: Session, measure: Measure, options: SearchOptions, checkpoint: Checkpoint | None = None
    ) -> None:
        super().__init__(session, measure, options, checkpoint)
        #: whether the greedy steps are running; only they stop at the deadline
        self._in_steps = False
        #: R: what the search begins with, and as far as it has grown
        self._first: list[int] = []
        self._chosen: list[int] = []
        #: U/R; None if its state is unknown
        self._evaluation: Evaluation | None = None
        #: what is never added
        self.excluded: frozenset[int] = frozenset()
        #: a thread to test a step in, while this one refines U/R
        self._tester = ThreadTeam(2)
        self._unsettled_objects = 0

    def run(self) -> Reduct:
        """Find core and reduct; on Ctrl-C, `Interrupted` brings the result so far."""
        self.prepare()
        reduct = self.find()
        warn_after(self.session, [(reduct.attributes, reduct.n_combinations)])
        return reduct

    def find(self, granules: GranuleSet | None = None) -> Reduct:
        """Find core and reduct of the opened table, or of granules made of it."""
        self._begin(self.find_core(granules))
        try:
            self._add_attributes()
            return self._certified()
        except KeyboardInterrupt:
            self._forget_current_step()
            raise Interrupted(self._certified()) from None

    @property
    def watch(self) -> Watch | None:
        """Who is told how far a pass is; at the deadline it ends the pass."""
        watch = super().watch
        if self.session.deadline == math.inf:
            return watch

        def stop_or_tell(job: JobProgress) -> None:
            if self._in_steps and perf_counter() >= self.session.deadline:
                raise _OutOfTime
            if watch is not None:
                watch(job)

        return stop_or_tell

    def _first_attributes(self) -> list[int]:
        """R before the first step: the core, then `include`; under a limit the core's most significant part."""
        core = self.core if self.options.begins == "core" else []
        if self.options.max_attributes is not None:
            core = self._most_significant(core, self.options.max_attributes - len(self.include))
        return core + sorted(self.include.difference(core))

    def _most_significant(self, core: Sequence[int], n_others: int) -> list[int]:
        """What is included of the core, and so many others of it whose loss would raise Θ most, in table order."""
        others = [a for a in core if a not in self.include]
        others.sort(key=lambda a: (-self.effects[a].theta, a))
        return sorted(self.include.intersection(core) | set(others[:n_others]))

    def _begin(self, evaluation: Evaluation) -> None:
        """Begin with the core, with `include`, and with the steps of the checkpoint."""
        self._first = self._first_attributes()
        self.checkpoint.check_steps(self.names_of(self._first))
        self._chosen = self._chosen_by_steps()
        if self._chosen:
            evaluation.select(*self._chosen)
        self._evaluation = evaluation
        self._unsettled_objects = evaluation.unsettled_objects
        self.checkpoint.check_end(self._value(evaluation), self._unsettled_objects)
        self.end_phase("core")

    def _chosen_by_steps(self) -> list[int]:
        """R: what the search began with, then what each finished step added."""
        return [*self._first, *self.granules.positions([step.attribute for step in self.checkpoint.steps])]

    def _value(self, evaluation: Evaluation) -> float:
        """Θ(D|R) as a number; if it equals Θ(D|C), exactly that number."""
        if evaluation.unsettled_objects == 0:
            return self.value_all
        return self.measure.value(evaluation.theta, self.granules.n_objects)

    def _add_attributes(self) -> None:
        """Add the attribute with the least Θ until the stop rule holds or a limit is reached."""
        evaluation = self._evaluation
        assert evaluation is not None
        steps = self.checkpoint.steps
        n_usable = len(self.granules.conditions) - len(self.excluded)
        max_attributes = min(self.options.max_attributes or math.inf, n_usable)
        self.reporter.phase("search", len(steps), self._unsettled_objects)
        self._in_steps = True
        with suppress(_OutOfTime):
            while True:
                self.complete = self._meets_stop_rule(evaluation)
                if self.complete or len(self._chosen) >= max_attributes or perf_counter() >= self.session.deadline:
                    break
                step = self._step(evaluation)
                if step is None:
                    self.complete = True
                    break
                self.checkpoint.add_step(step)
                self._chosen += self.granules.positions([step.attribute])
                self._unsettled_objects = step.active
                self.reporter.phase("search", len(steps), self._unsettled_objects)
                self.reporter.step(step)
        self.end_phase("search")

    def _meets_stop_rule(self, evaluation: Evaluation) -> bool:
        """Θ(D|R) = Θ(D|C), decided by labels; or nearly so, within the tolerance."""
        if evaluation.unsettled_objects == 0:
            return True
        if self.options.tolerance == 0:
            return False
        normaliser = self.measure.normaliser(self.granules.n_objects) or 1
        max_excess = Fraction(self.options.tolerance) * Fraction(normaliser)
        return evaluation.theta - evaluation.theta_all <= max_excess

    def _step(self, evaluation: Evaluation) -> Step | None:
        """Refine U/R by the best attribute; with alpha the best that beats chance, None if none does."""
        began = perf_counter()
        no_candidates = self.excluded.union(self._chosen)
        candidates = [a for a in range(len(self.granules.conditions)) if a not in no_candidates]
        theta_before = evaluation.theta
        theta_of = dict(zip(candidates, evaluation.with_each(candidates), strict=True))
        choice = self._choose(evaluation, theta_of)
        if choice is None:
            return None
        theta_after, p = self._refine(evaluation, choice, len(candidates))
        falls = [theta_before - theta_after]
        falls += [theta_before - theta for theta in theta_of.values()]
        gain, *gains = self.measure.significances(falls, self.granules.n_objects)
        return Step(
            attribute=self.granules.conditions[choice.best],
            theta=self._value(evaluation),
            significance=gain,
            ties=self.names_of(choice.ties),
            candidates=dict(zip(self.names_of(candidates), gains, strict=True)),
            active=evaluation.unsettled_objects,
            p_value=p,
            seconds=perf_counter() - began,
        )

    def _choose(self, evaluation: Evaluation, theta_of: Mapping[int, int]) -> Choice | None:
        """The best candidate; with alpha the best that beats chance, None if none does."""
        bound = self.measure.tie_bound(self.granules.n_objects)
        if self.options.alpha is None:
            ties = tied(theta_of, bound)
            return Choice(ties[0], ties, None)
        ranked = best_first(theta_of, bound)
        best, p_values = self._first_beyond_chance(evaluation, ranked, self.options.alpha)
        if best is None:
            self.rejected = {self.granules.conditions[a]: p_values[a] for a in theta_of}
            return None
        # those tested before it were no better than chance
        untested = {a: theta for a, theta in theta_of.items() if a == best or a not in p_values}
        return Choice(best, tied(untested, bound), p_values[best])

    def _refine(self, evaluation: Evaluation, choice: Choice, n_candidates: int) -> tuple[int, float]:
        """Add the chosen attribute to R, and test it meanwhile unless it was tested; Θ(D|R) and the p-value."""
        if choice.p_value is not None:
            return evaluation.select(choice.best), choice.p_value
        cross_tab = next(iter(evaluation.cross_tabs([choice.best])))
        tested = self._tester.start(partial(adjusted_p_value, cross_tab, n_candidates))
        theta = evaluation.select(choice.best)
        return theta, min(tested(), 1.0)

    def _first_beyond_chance(
        self, evaluation: Evaluation, candidates: Sequence[int], alpha: float
    ) -> tuple[int | None, dict[int, float]]:
        """The first candidate that beats chance, if one does, and the p-values up to it."""
        n = len(candidates)
        p_values: dict[int, float] = {}
        for batch in _batches(candidates):
            # one that probably beats chance needs its table anyway
            measured = evaluation.associations(batch) if len(batch) > 1 else [None]
            for a, of_candidate in zip(batch, measured, strict=True):
                screened = 0.0 if of_candidate is None else n * screened_p_value(of_candidate)
                if screened > alpha:
                    p_values[a] = min(screened, 1.0)
                    continue
                p_values[a] = min(adjusted_p_value(next(iter(evaluation.cross_tabs([a]))), n, alpha), 1.0)
                if p_values[a] <= alpha:
                    return a, p_values
                self._check_time()
            self._check_time()
        return None, p_values

    def _check_time(self) -> None:
        if perf_counter() >= self.session.deadline:
            raise _OutOfTime

    def _forget_current_step(self) -> None:
        """Keep only the finished steps: the current one was interrupted."""
        self._evaluation = None
        self._chosen = self._chosen_by_steps()
        if self.checkpoint.steps:
            self._unsettled_objects = self.checkpoint.steps[-1].active
        self.complete = self.complete or self._unsettled_objects == 0

    def _certified(self) -> Reduct:
        """Say what is proven about R."""
        self._in_steps = False
        self.reporter.phase("certificate", 0, len(self._chosen))
        certified = certify(
            self._chosen,
            self._evaluation,
            self._open_on,
            preserved=self._unsettled_objects == 0,
            all_needed=self._all_are_needed(),
            minimal=self.options.minimal,
            keep=self.include,
        )
        value = self.value_all
        if not certified.preserved:
            assert certified.of_chosen is not None
            value = certified.of_chosen.value_all
        self.end_phase("certificate")
        redundant = self.names_of(certified.redundant)
        return self.result_with(certified.chosen, value, Certificate(certified.preserved, redundant, not redundant))

    def _open_on(self, attributes: Sequence[int]) -> Evaluation:
        """An evaluation of the table with these conditions only."""
        coarse = self.granules.coarsen(self.names_of(attributes))
        return self.session.engine.open(coarse, self.measure, self.watch)

    def _all_are_needed(self) -> bool:
        """Whether all of R is in the core: if not even C preserves Θ without one, no part of C does."""
        return self.measure.kind != OWN and not any(self.effects[a].equal for a in self._chosen)


def _batches(candidates: Sequence[int]) -> Iterator[Sequence[int]]:
    """The first candidate alone, since it beats chance in most steps; then some; then all others."""
    for low, high in ((0, 1), (1, _TESTS_AT_ONCE), (_TESTS_AT_ONCE, len(candidates))):
        if candidates[low:high]:
            yield candidates[low:high]


class _OutOfTime(Exception):
    """The time limit stopped a pass."""
