"""What the searches for reducts have found so far, kept in a file, so that a killed run can resume.

There is one line with the core, and one per step; the search for the smallest reduct has lines of clauses in place of
steps. `plar.search.checkpoint_file` has the format, `plar.search.selection_checkpoint` what `plar.select` keeps.

On resuming, whatever is cheap to check is checked: clauses by their two rows, the last Θ and the rows still undecided
by the table, and the rest by what is possible at all. A core or a step that is wrong but possible is not noticed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from time import monotonic
from typing import Any

from plar.engines.base import GranuleSet, LeaveOneOut
from plar.engines.clauses import FoundClause
from plar.errors import TableError
from plar.measures import OWN, Measure
from plar.results.reduct import Step
from plar.search.checkpoint_file import CheckpointFile, Core, SavedSearch

_SECONDS_BETWEEN_CLAUSES = 1.0
#: Θ of the four measures never rises, but for rounding
_THETA_SLACK = 1e-9


class Checkpoint:
    """The core and the steps of one or several searches, as they are found; without a path, in memory only.

    An existing file is read; `begin` then checks that it belongs to the search.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        #: the effect of leaving out each condition, once known
        self.effects: list[LeaveOneOut] | None = None
        self.steps: list[Step] = []
        #: for the smallest reduct
        self.clauses: list[FoundClause] = []
        self._file = CheckpointFile(path)
        #: what the file has of the current search
        self._saved: SavedSearch | None = None
        self._n_written_clauses = 0
        self._last_clauses_at = 0.0

    @property
    def resumed(self) -> bool:
        """Whether the core, and perhaps more, was found by an earlier run."""
        return self._saved is not None and self._saved.core is not None

    def begin(self, granules: GranuleSet, measure: Measure, options: Mapping[str, Any]) -> None:
        """Describe the next search, and take what the file has of it; a file of another search is refused."""
        self.effects = None
        self.steps = []
        self.clauses = []
        self._measure = measure
        self._n_objects = granules.n_objects
        self._options = {"measure": _name_of(measure), **options}
        self._conditions = tuple(granules.conditions)
        self._n_written_clauses = 0
        self._saved = self._file.begin(granules, self._options)
        if self._saved is not None:
            self._take(self._saved)

    def _take(self, saved: SavedSearch) -> None:
        """Continue after what the file has of a search."""
        if saved.core is not None:
            self.effects = saved.core.effects()
        self.steps = saved.steps
        self.clauses = list(saved.clauses.values())
        self._n_written_clauses = len(self.clauses)

    def damaged(self) -> TableError:
        """The error for a file that does not hold what a search writes."""
        return self._file.damaged()

    def add_core(self, effects: Sequence[LeaveOneOut], theta_all: int) -> None:
        """Save the effect of leaving out each condition."""
        self.effects = list(effects)
        core = Core(theta_all, tuple(None if effect.equal else effect.theta for effect in effects))
        self._append("core", core)

    def check_core(self, theta_all: int, theta_none: int) -> None:
        """Refuse another Θ(D|C) than here, and effects that are impossible by it and by the Θ of no condition."""
        assert self._saved is not None
        assert self._saved.core is not None
        self._check(self._saved.core.theta_all, theta_all)
        bound = self._measure.tie_bound(self._n_objects)
        least = theta_all - bound if bound else theta_all + 1
        for theta, equal in self.effects or ():
            is_possible = theta != theta_all if self._measure.kind == OWN else least <= theta <= theta_none + bound
            if not equal and not is_possible:
                raise self.damaged()

    def check_steps(self, start: Iterable[str]) -> None:
        """Refuse steps that no search can have taken if it began with these conditions."""
        if not self.resumed:
            return
        options = self._options
        remaining = dict.fromkeys(self._conditions)
        max_attributes = options["max_attributes"] or len(remaining)
        min_remaining = len(remaining) - max_attributes
        for name in start:
            del remaining[name]
        slack = math.inf if self._measure.kind == OWN else _THETA_SLACK
        unsettled_objects = self._n_objects
        theta = math.inf
        for step in self.steps:
            goes_on = unsettled_objects > 0 and len(remaining) > min_remaining
            is_better = 0 <= step.active <= unsettled_objects and step.theta <= theta + slack
            if not goes_on or not is_better or not _fits(step, remaining, options["alpha"]):
                raise self.damaged()
            del remaining[step.attribute]
            unsettled_objects = step.active
            theta = step.theta

    def check_end(self, theta: float, unsettled_objects: int) -> None:
        """Refuse a file whose steps lead to another Θ(D|R) here, or leave other rows undecided."""
        if self.resumed and self.steps:
            self._check(self.steps[-1].theta, theta)
            if self.steps[-1].active != unsettled_objects:
                raise self.damaged()

    def add_step(self, step: Step) -> None:
        """Save a step."""
        self.steps.append(step)
        self._append("step", step)

    def _append(self, kind: str, record: Core | Step) -> None:
        if self._file.path is not None:
            self._file.append((kind, asdict(record)))

    def add_clauses(self, clauses: Iterable[FoundClause]) -> None:
        """Save clauses of the search for the smallest reduct."""
        if self._file.path is None:
            return
        self.clauses += clauses
        if monotonic() >= self._last_clauses_at + _SECONDS_BETWEEN_CLAUSES:
            self.flush()

    def flush(self) -> None:
        """Write the new clauses; during the search only once a second, since each write waits for the disk."""
        new = self.clauses[self._n_written_clauses :]
        if new and self._file.path is not None:
            self._file.append(("clauses", new))
            self._n_written_clauses = len(self.clauses)
        self._last_clauses_at = monotonic()

    def _check(self, there: float, here: float) -> None:
        if there != here:  # same data: a user's θ has changed under its name, or plar has
            reason = (
                f"does not fit: Θ is {there} there, {here} now, so the measure is another one of that name. Delete it"
            )
            raise self._file.refusal(reason)


def _name_of(measure: Measure) -> str:
    return f"{measure.name} (own)" if measure.kind == OWN else measure.name


def _fits(step: Step, remaining: Mapping[str, None], alpha: float | None) -> bool:
    """Whether a step can have chosen from the remaining conditions, in table order."""
    ties = set(step.ties)
    max_p_value = 1 if alpha is None else alpha
    return (
        list(step.candidates) == list(remaining)
        and list(step.ties) == [name for name in remaining if name in ties]
        and step.ties[:1] == (step.attribute,)
        and step.p_value is not None
        and 0 <= step.p_value <= max_p_value
        and step.seconds >= 0
    )
