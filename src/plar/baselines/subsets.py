"""What the six systems share: every question of the search is Θ(D|B) of some subset B, computed from scratch.

A row carries a *tag* in place of its decision: the decision together with the label of its class of U/C (see
`plar.uncertainty.labels`). So the counts by tag, which every system gathers by class of U/B, give both θ and
whether the class is settled, and a system needs nothing beyond the paper's "map to (B-vector, (decision,
count)), reduce by key, sum".
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from plar.api import reduce
from plar.chance.association import Association
from plar.chance.statistic import associations_within
from plar.coding.column_names import ColumnName
from plar.engines.base import Engine, LeaveOneOut
from plar.engines.job_progress import Watch
from plar.errors import TableError
from plar.granules.granules import Granules
from plar.measures import OWN, PURE, Measure, f_of
from plar.options import Columns, ReadingKwargs
from plar.results.reduct import Reduct
from plar.session.reporter import OnStep, Progress
from plar.uncertainty.labels import label_granules
from plar.uncertainty.strata import CrossTab, Strata

Subset = tuple[int, ...]
#: cells of rows in memory; one takes at least 8 bytes
_MAX_CELLS = 1 << 30


class SystemOptions(ReadingKwargs, total=False):
    """The options of `plar.reduce` that the systems take, by keyword."""

    measure: str | Measure
    include: Columns
    epsilon: float
    tolerance: float
    max_attributes: int | None
    minimal: bool
    alpha: float | None
    start: str | None
    search: str
    costs: Mapping[ColumnName, int] | None
    exclude: Columns
    equivalent: bool
    memory_limit: int | str | None
    time_limit: float | str | None
    checkpoint: str | os.PathLike[str] | None
    verbose: bool
    progress: Progress | None
    on_step: OnStep | None


class Judged(NamedTuple):
    """Θ(D|B) as an integer, and the objects in classes of U/B that are not settled; of one class or of all."""

    theta: int
    unsettled_objects: int


def judged_class(counts: Mapping[int, int], kind: int, n_decisions: int) -> Judged:
    """θ(E) from the counts of E by tag, which is label · n_decisions + decision; and |E| if E is not settled.

    >>> from plar.measures import PR
    >>> judged_class({0: 3}, PR.kind, 2), judged_class({0: 3, 3: 1}, PR.kind, 2)
    (Judged(theta=-3, unsettled_objects=0), Judged(theta=0, unsettled_objects=4))
    """
    size = sum(counts.values())
    if len(counts) == 1:
        return Judged(-size if kind == PURE else 0, 0)
    decisions: dict[int, int] = {}
    for tag, n in counts.items():
        decision = tag % n_decisions
        decisions[decision] = decisions.get(decision, 0) + n
    if kind == PURE:
        theta = -size if len(decisions) == 1 else 0
    else:
        theta = f_of(kind, size) - sum(f_of(kind, n) for n in decisions.values())
    settled = len({tag // n_decisions for tag in counts}) == 1
    return Judged(theta, 0 if settled else size)


class SubsetEvaluation(ABC):
    """U/R for a growing R; see `plar.engines.base.Evaluation`. A system supplies `judge`."""

    def __init__(self, granules: Granules, measure: Measure) -> None:
        if measure.kind == OWN:
            raise TableError(f"The paper's systems know PR, SCE, LCE and CCE, not {measure.name!r}. Use plar.reduce.")
        self._granules = granules
        self._measure = measure
        self._labels = label_granules(granules, measure)
        self._strata = Strata(granules, self._labels)
        self.consistent = self._labels.consistent
        self._theta_of = partial(judged_class, kind=measure.kind, n_decisions=granules.n_decisions)
        self._chosen: Subset = ()
        #: results for R, and for supersets of R
        self.judged: dict[Subset, Judged] = {}

    @abstractmethod
    def judge(self, subsets: Sequence[Subset]) -> list[Judged]:
        """Θ(D|B) of each of the subsets B."""

    def judge_finer(self, subsets: Sequence[Subset]) -> list[Judged]:
        """Θ(D|B) of subsets that hold R."""
        return self.judge(subsets)

    def close(self) -> None:  # noqa: B027 - a default
        """Stop what was started for it."""

    @cached_property
    def theta_all(self) -> int:
        """Θ(D|C)."""
        return self.judge([tuple(range(len(self._granules.conditions)))])[0].theta

    @property
    def value_all(self) -> float:
        """Θ(D|C) as a number."""
        return self._labels.value(self._granules, self._measure, self.theta_all)

    @property
    def theta(self) -> int:
        """Θ(D|R)."""
        return self._judged_now().theta

    @property
    def unsettled_objects(self) -> int:
        """Objects in classes of U/R that are not settled."""
        return self._judged_now().unsettled_objects

    def _judged_now(self) -> Judged:
        if self._chosen not in self.judged:
            self.judged[self._chosen] = self.judge_finer([self._chosen])[0]
        return self.judged[self._chosen]

    def leave_one_out(self, attributes: Sequence[int] | None = None) -> list[LeaveOneOut]:
        """Θ(D|B∖{a}) for every a of B, one by one."""
        if attributes is None:
            attributes = range(len(self._granules.conditions))
        subsets = [tuple(b for b in attributes if b != a) for a in attributes]
        effects = []
        for theta, unsettled_objects in self.judge(subsets):
            if unsettled_objects:
                effects.append(LeaveOneOut(theta, False))
            else:
                effects.append(LeaveOneOut(self.theta_all, True))
        return effects

    def with_each(self, candidates: Sequence[int]) -> list[int]:
        """Θ(D|R∪{a}) for every candidate, one by one."""
        subsets = [(*self._chosen, a) for a in candidates]
        judged = self.judge_finer(subsets)
        self.judged |= zip(subsets, judged, strict=True)
        return [theta for theta, _ in judged]

    def select(self, *attributes: int) -> int:
        """R ← R ∪ {a, …}; returns Θ(D|R)."""
        self._chosen = (*self._chosen, *attributes)
        self._strata.select(*attributes)
        self.judged = {self._chosen: self._judged_now()}
        return self.theta

    def associations(self, candidates: Sequence[int]) -> list[Association]:
        """How strongly each candidate is associated with the decision; the paper has no such test."""
        return associations_within(self._strata, candidates)

    def cross_tabs(self, candidates: Sequence[int]) -> Iterable[CrossTab]:
        """A table of each candidate's values against the decisions; the paper has no such test."""
        return self._strata.cross_tabs(candidates)

    def _unrolled(self) -> tuple[list[Any], list[list[Any]]]:
        """The table object by object, as the systems without granulation hold it: tags, and columns of codes.

        plar has read it granulated; rows are shuffled, so that equal ones are not adjacent.
        """
        g = self._granules
        cells = g.n_objects * (len(g.columns) + 1)
        if cells > _MAX_CELLS:
            raise TableError(
                f"The paper's systems hold every row: {cells} cells, above the limit {_MAX_CELLS}. "
                "Use plar.reduce, which holds distinct rows."
            )
        tags = self._labels.labels.astype(np.int64) * g.n_decisions + g.decision_codes
        objects = np.random.default_rng(0).permutation(np.repeat(np.arange(len(g)), g.counts))
        return tags[objects].tolist(), [column[objects].tolist() for column in g.columns]


class System(Engine):
    """The engine of the system with this name; leaving a ``with`` block closes its evaluations."""

    def __init__(self, name: str, evaluation: Callable[[Granules, Measure], SubsetEvaluation]) -> None:
        self.name = name
        self._evaluation = evaluation
        self._opened: list[SubsetEvaluation] = []

    def open(self, granules: Granules, measure: Measure, watch: Watch | None = None) -> SubsetEvaluation:
        """Prepare the rows for one search."""
        evaluation = self._evaluation(granules, measure)
        self._opened.append(evaluation)
        return evaluation

    def close(self) -> None:
        """Close the evaluations."""
        while self._opened:
            self._opened.pop().close()

    def reduce(self, data: Any, decision: Any, y: Any, options: SystemOptions) -> Reduct:
        """Reduce a table with this system, then close it."""
        with self:
            return reduce(data, decision, y, engine=self, **options)
