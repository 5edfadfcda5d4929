"""What all searches have in common: they begin with the core, keep a checkpoint, and end with a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from time import perf_counter
from typing import Any

from plar.engines.base import Evaluation, GranuleSet, LeaveOneOut
from plar.engines.job_progress import Watch
from plar.measures import Measure
from plar.options import SearchOptions
from plar.results.proof import Proof
from plar.results.reduct import Certificate, Reduct, Step
from plar.search.checkpoint import Checkpoint
from plar.session.session import Session
from plar.session.warnings import warn_before, warn_supervised_bins


class Search:
    """What the searches of a session's table share: first `prepare`, then `find_core`, then what each kind does.

    What the checkpoint has is not computed again.

    Parameters
    ----------
    session : Session
    measure : Measure
    options : SearchOptions
    checkpoint : Checkpoint, optional
        That of the session, if several searches share it.
    """

    def __init__(
        self, session: Session, measure: Measure, options: SearchOptions, checkpoint: Checkpoint | None = None
    ) -> None:
        self.session = session
        self.measure = measure
        self.options = options
        self.checkpoint = Checkpoint(session.run_options.checkpoint) if checkpoint is None else checkpoint
        self.reporter = session.reporter
        self.complete = False
        #: p-values of the candidates, once none of them beats chance
        self.rejected: dict[str, float] = {}

    # from `prepare` on
    granules: GranuleSet

    # from `find_core` on
    include: frozenset[int]
    consistent: bool
    #: Θ(D|C)
    value_all: float
    #: what leaving out each condition does
    effects: Sequence[LeaveOneOut]
    core: list[int]
    core_significances: dict[str, float]
    seconds: dict[str, float]
    phase_began: float

    def prepare(self) -> None:
        """Open the table, then read its rows; columns that it does not have are refused before they are read."""
        self.options = self.session.named(self.options)
        self.granules = self.session.granules
        warn_before(self.session)
        self.session.tell_size()
        if self.options.alpha is not None:
            warn_supervised_bins(self.session)

    def find_core(self, granules: GranuleSet | None = None) -> Evaluation:
        """Find the core of the table, or of granules made of it, or take it from the checkpoint."""
        if granules is not None:
            self.granules = granules
        self.seconds = self.session.take_seconds()
        self.phase_began = perf_counter()
        self._begin_checkpoint()
        self.reporter.phase("core", 0, len(self.granules.conditions))
        evaluation = self.session.engine.open(self.granules, self.measure, self.watch)
        self.consistent = evaluation.consistent
        self.value_all = evaluation.value_all
        self.effects = self._leave_one_out(evaluation)
        n_objects = self.granules.n_objects
        self.core = core_of(self.effects, evaluation.theta_all, self.measure, n_objects, self.options.epsilon)
        rises = [self.effects[a].theta - evaluation.theta_all for a in self.core]
        gains = self.measure.significances(rises, n_objects)
        self.core_significances = dict(zip(self.names_of(self.core), gains, strict=True))
        return evaluation

    def _begin_checkpoint(self) -> None:
        """Say in the checkpoint what is searched, or find there what an earlier run did."""
        self.include = frozenset(self.granules.positions(self.options.include))
        included = list(self.names_of(sorted(self.include)))
        self.checkpoint.begin(self.granules, self.measure, {**self.options.settings(), "include": included})
        if self.checkpoint.resumed:
            self.reporter.resumed(len(self.checkpoint.steps))

    def _leave_one_out(self, evaluation: Evaluation) -> Sequence[LeaveOneOut]:
        """The effect of leaving out each condition, computed or from the checkpoint."""
        effects = self.checkpoint.effects or evaluation.leave_one_out()
        if self.checkpoint.resumed:
            self.checkpoint.check_core(evaluation.theta_all, evaluation.theta)
        else:
            self.checkpoint.add_core(effects, evaluation.theta_all)
        return effects

    @property
    def watch(self) -> Watch | None:
        """Who is told how far a pass over the candidates is, if anybody is."""
        if self.session.engine.watch is not None:
            return self.session.engine.watch
        return self.reporter.job if self.reporter.watches_jobs else None

    def end_phase(self, phase: str) -> None:
        """Note how long a phase took; the next one begins."""
        now = perf_counter()
        self.seconds[phase] = now - self.phase_began
        self.phase_began = now

    def names_of(self, attributes: Sequence[int]) -> tuple[str, ...]:
        """Names of attributes given by their positions."""
        return tuple(self.granules.conditions[a] for a in attributes)

    def result_with(
        self,
        chosen: Sequence[int],
        theta: float,
        certificate: Certificate,
        bounds: tuple[int, int] | None = None,
        proof: Proof | None = None,
    ) -> Reduct:
        """The result of a search that chose some attributes."""
        granules = self.granules
        names = granules.conditions
        steps = tuple(self.checkpoint.steps)
        attributes = self.names_of(chosen)
        return Reduct(
            attributes=attributes,
            core=self.names_of(self.core),
            core_significances=self.core_significances,
            conditions=names,
            decision=granules.decision,
            measure=self.measure.name,
            engine=self.session.engine.name,
            theta=theta,
            theta_all=self.value_all,
            complete=self.complete,
            consistent=self.consistent,
            steps=steps,
            certificate=certificate,
            n_objects=granules.n_objects,
            n_granules=len(granules),
            n_decisions=granules.n_decisions,
            n_combinations=granules.n_combinations(attributes),
            cardinalities=dict(zip(names, granules.cardinalities, strict=True)),
            missing=granules.n_missing,
            cuts=dict(granules.cuts),
            equivalent=self._equivalent_columns(steps) if self.options.equivalent else None,
            source=self.session.table.path,
            settings=self._settings(),
            seconds=self.seconds,
            rejected=self.rejected,
            bounds=bounds,
            proof=proof,
        )

    def _settings(self) -> Mapping[str, Any]:
        """The options that the result depends on, as JSON has them."""
        settings = {**self.options.settings(), **self.session.table.settings()}
        if self.granules is not self.session.granules:
            settings["conditions"] = list(self.granules.conditions)
        return settings

    def _equivalent_columns(self, steps: Sequence[Step]) -> tuple[tuple[str, ...], ...]:
        """Groups of conditions that carry the same information."""
        groups = self.granules.equal_columns(_suspects(self.granules, steps))
        return tuple(self.names_of(group) for group in groups)


def core_of(
    effects: Sequence[LeaveOneOut], theta_all: int, measure: Measure, n_objects: int, epsilon: float
) -> list[int]:
    """Attributes whose inner significance exceeds ε; for ε = 0 those that are not exactly equal."""
    needed = [a for a, effect in enumerate(effects) if not effect.equal]
    if epsilon == 0:
        return needed
    threshold = Fraction(epsilon) * Fraction(measure.normaliser(n_objects) or 1)
    return [a for a in needed if effects[a].theta - theta_all > threshold]


def _suspects(granules: GranuleSet, steps: Sequence[Step]) -> list[list[int]]:
    """Groups of conditions that may be equal: as many values, and the same significance at first."""
    # a condition that was not a candidate of the first step was in R already; an equal column then has no gain
    first_gains = steps[0].candidates if steps else {}
    groups: dict[tuple[int, float], list[int]] = {}
    for a, (name, n_values) in enumerate(zip(granules.conditions, granules.cardinalities, strict=True)):
        if n_values == 1 and name in granules.cuts:  # the bins found no cut, which says nothing about the numbers
            continue
        groups.setdefault((n_values, first_gains.get(name, 0.0)), []).append(a)
    return [group for group in groups.values() if len(group) > 1]
