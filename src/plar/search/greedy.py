"""The greedy search: core, steps, certificate; engines supply Θ.

References
----------
PLAR, section 4: core by inner significance, then add the attribute of least Θ until the stop rule holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from heapq import heappop, heappush
from time import perf_counter
from typing import Any

from plar.chance.p_value import p_value
from plar.engines.base import Engine, Evaluation, GranuleSet, LeaveOneOut
from plar.engines.job_progress import JobProgress, Watch
from plar.errors import Interrupted
from plar.measures import OWN, Measure
from plar.options import Options
from plar.results.reduct import Certificate, Reduct, Step
from plar.runtime.parallel import in_threads, usable_cores
from plar.search.checkpoint import Checkpoint
from plar.session.progress import OnStep, Progress

#: candidates tested against chance at a time
_AT_ONCE = 64


@dataclass
class Search:
    """A search of a granulated table, greedy or for the smallest reduct: what it is given, and what both kinds find.

    What the journal has is not computed again. When `time.perf_counter` reaches the deadline, the search stops with
    what it has. `watch` is called with the progress of each pass, unless the engine has its own function for that.
    """

    granules: GranuleSet
    measure: Measure
    engine: Engine
    options: Options
    seconds: dict[str, float] = field(default_factory=dict)
    #: these two go into the result as they are
    source: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    progress: Progress | None = None
    #: called after every greedy step
    on_step: OnStep | None = None
    journal: Checkpoint = field(default_factory=Checkpoint)
    deadline: float = math.inf
    watch: Watch | None = None
    #: whether to find the conditions that carry the same information
    equivalent: bool = False
    complete: bool = False
    #: p-values of the candidates, once none of them beats chance
    rejected: dict[str, float] = field(default_factory=dict)
    #: when the phase began
    began: float = field(default_factory=perf_counter)

    def __post_init__(self) -> None:
        self.watch = self.engine.watch or self.watch

    def open(self) -> Evaluation:
        """Find the core, or take it from the journal."""
        granules, measure, options, names = self.granules, self.measure, self.options, self.granules.conditions
        self.include = frozenset(granules.positions(options.include))
        self.journal.begin(granules, measure, options.plain([names[a] for a in sorted(self.include)]))
        if self.journal.resumed:
            self.notify("resume", len(self.journal.steps), 0)
        self.notify("core", 0, len(names))
        evaluation = self.engine.open(granules, measure, self.watch)
        self.consistent, self.theta_all = evaluation.consistent, evaluation.value_all
        self.inner = self.journal.inner or evaluation.leave_one_out()
        self.journal.add_core(self.inner, evaluation.theta_all)
        if self.journal.resumed:
            self.journal.check_core(evaluation.theta_all, evaluation.theta)
        self.core = core_of(self.inner, evaluation.theta_all, measure, granules.n_objects, options.epsilon)
        rises = [self.inner[a].theta - evaluation.theta_all for a in self.core]
        found = measure.significances(rises, granules.n_objects)
        self.core_significances = dict(zip((names[a] for a in self.core), found, strict=True))
        return evaluation

    def notify(self, phase: str, done: int, total: int) -> None:
        """Report progress, if anybody listens."""
        if self.progress:
            self.progress(phase, done, total)

    def end(self, phase: str) -> None:
        """Note how long a phase took; the next one begins."""
        self.seconds[phase], self.began = perf_counter() - self.began, perf_counter()

    def result_with(self, chosen: Sequence[int], **facts: Any) -> Reduct:
        """The result of a search that chose some attributes."""
        granules, names, steps = self.granules, self.granules.conditions, tuple(self.journal.steps)
        equal = granules.equal_columns(_suspects(granules, steps)) if self.equivalent else None
        return Reduct(
            attributes=tuple(names[a] for a in chosen),
            core=tuple(names[a] for a in self.core),
            core_significances=self.core_significances,
            conditions=names,
            decision=granules.decision,
            measure=self.measure.name,
            engine=self.engine.name,
            theta_all=self.theta_all,
            complete=self.complete,
            consistent=self.consistent,
            steps=steps,
            n_objects=granules.n_objects,
            n_granules=len(granules),
            n_decisions=granules.n_decisions,
            cardinalities=dict(zip(names, granules.cardinalities, strict=True)),
            missing=granules.n_missing,
            cuts=dict(granules.cuts),
            equivalent=None if equal is None else tuple(tuple(names[a] for a in group) for group in equal),
            n_combinations=granules.n_combinations([names[a] for a in chosen]),
            source=self.source,
            settings=self.settings,
            seconds=self.seconds,
            rejected=self.rejected,
            **facts,
        )


def find_reduct(granules: GranuleSet, measure: Measure, engine: Engine, options: Options, **more: Any) -> Reduct:
    """Find core and reduct of a granulated table; on Ctrl-C, `Interrupted` brings the result so far.

    `more` are further fields of `Search`.
    """
    search = _Search(granules, measure, engine, options, **more)
    search.find_core()
    try:
        search.add_attributes()
        return search.certified()
    except KeyboardInterrupt:
        search.forget()
        raise Interrupted(search.certified()) from None


@dataclass
class _Search(Search):
    """The greedy search: the core, then R as it grows, then what is proven about it."""

    #: whether the greedy steps are running; only they stop at the deadline
    in_steps: bool = False
    #: its thread ends with the search
    pool: ThreadPoolExecutor = field(default_factory=partial(ThreadPoolExecutor, 1))

    def find_core(self) -> None:
        """Find the core and begin with it."""
        watch = self.watch

        def look(job: JobProgress) -> None:
            # stops a long pass at the deadline, if the engine reports progress
            if self.in_steps and perf_counter() >= self.deadline:
                raise _OutOfTime
            if watch is not None:
                watch(job)

        if self.deadline < math.inf:
            self.watch = look
        evaluation = self.open()
        first = self.core if self.options.begins == "core" else []
        self.start = _start(first, sorted(self.include), self.inner, self.options.max_attributes)
        self.journal.check_steps(self.granules.conditions[a] for a in self.start)
        if self.chosen:
            evaluation.select(*self.chosen)
        #: None if its state is unknown
        self.evaluation: Evaluation | None = evaluation
        self.unsettled_objects = evaluation.unsettled_objects
        self.journal.check_end(self._theta(evaluation), self.unsettled_objects)
        self.end("core")

    @property
    def chosen(self) -> list[int]:
        """R: what the search began with, then what each step added."""
        return [*self.start, *self.granules.positions([step.attribute for step in self.journal.steps])]

    def _theta(self, evaluation: Evaluation) -> float:
        # Θ(D|R) as a number; if it equals Θ(D|C), exactly that number
        return (
            self.measure.value(evaluation.theta, self.granules.n_objects)
            if evaluation.unsettled_objects
            else self.theta_all
        )

    def add_attributes(self) -> None:
        """Add the attribute with the least Θ until the stop rule holds or a limit is reached."""
        evaluation, steps = self.evaluation, self.journal.steps
        assert evaluation is not None
        chosen = set(self.chosen)
        limit = min(self.options.max_attributes or math.inf, len(self.granules.conditions))
        self.notify("search", len(steps), self.unsettled_objects)
        self.in_steps = True
        with suppress(_OutOfTime):
            while True:
                self.complete = self._is_complete(evaluation)
                if self.complete or len(chosen) >= limit or perf_counter() >= self.deadline:
                    break
                step = self._step(evaluation, chosen)
                if step is None:
                    self.complete = True
                    break
                self.journal.add_step(step)
                self.unsettled_objects = step.active
                self.notify("search", len(steps), self.unsettled_objects)
                if self.on_step:
                    self.on_step(step)
        self.end("search")

    def _is_complete(self, evaluation: Evaluation) -> bool:
        # the stop rule: Θ(D|R) = Θ(D|C), by labels; or within the tolerance
        tolerance = self.options.tolerance
        if evaluation.unsettled_objects == 0 or tolerance == 0:
            return evaluation.unsettled_objects == 0
        most = Fraction(float(tolerance)) * Fraction(self.measure.normaliser(self.granules.n_objects) or 1)
        return evaluation.theta - evaluation.theta_all <= most

    def _step(self, evaluation: Evaluation, chosen: set[int]) -> Step | None:
        # adds the best attribute to R and `chosen`; with alpha, the best of those that beat chance
        began = perf_counter()
        names = self.granules.conditions
        n = self.granules.n_objects
        measure = self.measure
        alpha = self.options.alpha
        candidates = [a for a in range(len(names)) if a not in chosen]
        before = evaluation.theta
        theta_of = dict(zip(candidates, evaluation.with_each(candidates), strict=True))
        bound = measure.tie_bound(n)
        if alpha is None:
            ties = _tied(theta_of, bound)
            best = ties[0]
            p = self._beside(partial(p_value, next(iter(evaluation.cross_tabs([best]))), len(candidates)))
        else:
            p_values = self._tested(evaluation, _best_first(theta_of, bound), alpha)
            best = next(reversed(p_values))
            p = partial(p_values.__getitem__, best)
            if p_values[best] > alpha:
                self.rejected = {names[a]: p_values[a] for a in candidates}
                return None
            # those tested before it were no better than chance
            ties = _tied({a: theta_of[a] for a in candidates if a == best or a not in p_values}, bound)
        chosen.add(best)
        thetas = [evaluation.select(best), *theta_of.values()]
        gain, *gains = measure.significances([before - theta for theta in thetas], n)
        return Step(
            attribute=names[best],
            theta=self._theta(evaluation),
            significance=gain,
            ties=tuple(names[a] for a in ties),
            candidates=dict(zip([names[a] for a in candidates], gains, strict=True)),
            active=evaluation.unsettled_objects,
            p_value=p(),
            seconds=perf_counter() - began,
        )

    def _beside(self, test: Callable[[], float]) -> Callable[[], float]:
        # starts a test in another thread, if there may be one, while this one refines U/R
        return test if usable_cores() == 1 else self.pool.submit(copy_context().run, test).result

    def _tested(self, evaluation: Evaluation, candidates: Sequence[int], alpha: float) -> dict[int, float]:
        # p-values in the order of the candidates, up to the first that beats chance
        test, found = partial(p_value, n_candidates=len(candidates), level=float(alpha)), dict[int, float]()
        for low in (0, *range(1, len(candidates), _AT_ONCE)):
            some = candidates[low : low + _AT_ONCE] if low else candidates[:1]
            for a, p in zip(
                some, in_threads(test, evaluation.cross_tabs(some), self.unsettled_objects if low else 0), strict=False
            ):
                found[a] = p
                if p <= alpha:
                    return found
                if perf_counter() >= self.deadline:
                    raise _OutOfTime
        return found

    def forget(self) -> None:
        """Keep only the finished steps: the current one was interrupted."""
        self.evaluation = None
        steps = self.journal.steps
        self.unsettled_objects = steps[-1].active if steps else self.unsettled_objects
        self.complete = self.complete or self.unsettled_objects == 0

    def certified(self) -> Reduct:
        """Say what is proven about R."""
        self.in_steps = False
        granules, measure, names, chosen = self.granules, self.measure, self.granules.conditions, self.chosen
        self.notify("certificate", 0, len(chosen))
        preserved = self.unsettled_objects == 0
        evaluation, places, theta = self.evaluation, {a: a for a in chosen}, self.theta_all
        if not preserved or evaluation is None:
            # redundancy then refers to Θ(D|R) itself
            coarse = granules.coarsen([names[a] for a in chosen])
            evaluation, places = self.engine.open(coarse, measure, self.watch), {a: i for i, a in enumerate(chosen)}
            theta = self.theta_all if preserved else evaluation.value_all
        # without one of these not even C preserves Θ, so no part of C does
        needed = {a for a in chosen if not self.inner[a].equal} if preserved and measure.kind != OWN else set()
        redundant = [] if needed.issuperset(chosen) else _redundant(evaluation, chosen, places)
        while self.options.minimal and (removable := [a for a in redundant if a not in self.include]):
            chosen.remove(removable[-1])
            redundant = _redundant(evaluation, chosen, places)
        self.end("certificate")
        certificate = Certificate(preserved, tuple(names[a] for a in redundant), not redundant)
        return self.result_with(chosen, theta=theta, certificate=certificate)


def core_of(
    inner: Sequence[LeaveOneOut], theta_all: int, measure: Measure, n_objects: int, epsilon: float
) -> list[int]:
    """Attributes whose inner significance exceeds ε; for ε = 0 those that are not exactly equal."""
    if epsilon == 0:
        return [a for a, found in enumerate(inner) if not found.equal]
    least = Fraction(float(epsilon)) * Fraction(measure.normaliser(n_objects) or 1)
    return [a for a, found in enumerate(inner) if not found.equal and found.theta - theta_all > least]


def _start(core: list[int], include: list[int], inner: Sequence[LeaveOneOut], limit: int | None) -> list[int]:
    """R before the first step: the core, then `include`; under a limit the core's most significant part."""
    in_core, included = set(core), set(include)
    room = None if limit is None else limit - len(include)
    best = sorted((a for a in core if a not in included), key=lambda a: (-inner[a].theta, a))[:room]
    return [*sorted({*best, *(a for a in include if a in in_core)}), *(a for a in include if a not in in_core)]


def _tied(theta_of: Mapping[int, int], bound: int) -> list[int]:
    """The attributes whose Θ is within the bound of the smallest, in their order."""
    most = min(theta_of.values()) + bound
    return [a for a, theta in theta_of.items() if theta <= most]


def _best_first(theta_of: Mapping[int, int], bound: int) -> list[int]:
    """The attributes from best to worst: each is the first in the table of those that tie with the best one left."""
    by_theta = sorted(theta_of, key=theta_of.__getitem__)
    ranked: list[int] = []
    taken = set[int]()
    ties: list[int] = []
    entered = 0
    for best in by_theta:
        # what ties stays tied until it is taken, since the smallest Θ left only grows
        while best not in taken:
            while entered < len(by_theta) and theta_of[by_theta[entered]] <= theta_of[best] + bound:
                heappush(ties, by_theta[entered])
                entered += 1
            first = heappop(ties)
            taken.add(first)
            ranked.append(first)
    return ranked


def _redundant(evaluation: Evaluation, chosen: Sequence[int], places: Mapping[int, int]) -> list[int]:
    """Attributes that are individually removable."""
    inner = evaluation.leave_one_out([places[a] for a in chosen])
    return [a for a, found in zip(chosen, inner, strict=True) if found.equal]


def _suspects(granules: GranuleSet, steps: Sequence[Step]) -> list[list[int]]:
    """Groups of conditions that may be equal: as many values, and the same significance at first."""
    # a condition that was not a candidate of the first step was in R already; an equal column then has no gain
    first = steps[0].candidates if steps else {}
    groups: dict[tuple[int, float], list[int]] = {}
    for a, (name, n_values) in enumerate(zip(granules.conditions, granules.cardinalities, strict=True)):
        if n_values == 1 and name in granules.cuts:  # the bins found no cut, which says nothing about the numbers
            continue
        groups.setdefault((n_values, first.get(name, 0.0)), []).append(a)
    return [group for group in groups.values() if len(group) > 1]


class _OutOfTime(Exception):
    """The time limit stopped a pass."""
