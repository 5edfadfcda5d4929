"""What an engine supplies. `plar.search.greedy` uses nothing else, so that every engine gives the same reduct."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol, Self

from plar.chance.association import Association
from plar.engines.clauses import ClauseFinder, LocalClauseFinder
from plar.engines.job_progress import Watch
from plar.engines.stratification import LocalStratification, Stratification
from plar.granules.granule_set import GranuleSet as GranuleSet
from plar.granules.granules import Granules
from plar.input.tables import DecisionTable
from plar.input.tables.source import Source
from plar.measures import Measure
from plar.options import ReadOptions
from plar.uncertainty.approximation import Approximation, approximate
from plar.uncertainty.ranks import Ranks
from plar.uncertainty.strata import CrossTab


class LeaveOneOut(NamedTuple):
    """Θ(D|B∖{a}), unnormalised, and whether it equals Θ(D|C), decided exactly."""

    theta: int
    equal: bool


class Evaluation(Protocol):
    """U/R for a growing R, empty at first. All Θ are unnormalised integers: Σ θ(E) over the classes E of U/B."""

    @property
    def theta_all(self) -> int:
        """Θ(D|C)."""

    @property
    def value_all(self) -> float:
        """Θ(D|C) as a number, from the counts themselves: under SCE the integers are rounded."""

    @property
    def theta(self) -> int:
        """Θ(D|R)."""

    @property
    def unsettled_objects(self) -> int:
        """Objects in classes of U/R that are not settled; 0 if and only if Θ(D|R) = Θ(D|C)."""

    @property
    def consistent(self) -> bool:
        """Whether every class of U/C is pure."""

    def leave_one_out(self, attributes: Sequence[int] | None = None) -> list[LeaveOneOut]:
        """Θ(D|B∖{a}) for every a of B, which is C, or the attributes given, with Θ(D|B) = Θ(D|C)."""

    def with_each(self, candidates: Sequence[int]) -> list[int]:
        """Θ(D|R∪{a}) for every candidate, in one pass over the data."""

    def select(self, *attributes: int) -> int:
        """R ← R ∪ {a, …}: refine U/R; returns Θ(D|R)."""

    def associations(self, candidates: Sequence[int]) -> list[Association]:
        """How strongly each candidate is associated with the decision within the classes of U/R."""

    def cross_tabs(self, candidates: Sequence[int]) -> Iterable[CrossTab]:
        """A table of each candidate's values against the decisions, within the classes of U/R."""


class Engine(ABC):
    """Where and how the evaluation is done. A new engine supplies `name` and `open`; the rest has defaults."""

    __slots__ = ()
    #: recorded in the result
    name: str
    #: called with the progress of each pass, if the engine reports any
    watch: Watch | None = None
    #: threads on this machine; None: all cores
    n_jobs: int | None = None
    #: whether the engine reads files where it runs
    reads_paths = False

    @abstractmethod
    def open(self, granules: Any, measure: Measure, watch: Watch | None = None) -> Evaluation:
        """Prepare the granules for one search; `watch`, if given, replaces the engine's own."""

    def clause_finder(self, granules: Any, measure: Measure) -> ClauseFinder:
        """Prepare to answer which sets of attributes preserve Θ, by default on this machine."""
        return LocalClauseFinder(granules, measure)

    def stratify(self, granules: Any, ranks: Ranks | None = None) -> Stratification:
        """Prepare to say how candidates go with the decision, or its ranks, by default on this machine."""
        return LocalStratification(granules, ranks)

    def approximate(self, granules: Any, attributes: Sequence[str], limit: int) -> Approximation:
        """The approximations of all decisions by some attributes, and up to `limit` contradictions; by default here."""
        is_whole = tuple(attributes) == granules.conditions
        return approximate(granules if is_whole else granules.coarsen(attributes), limit)

    def local_granules(self, granules: Any, attributes: Sequence[str]) -> Granules | None:
        """The granules over some attributes on this machine; None if they are too many for it."""
        local = granules if tuple(attributes) == granules.conditions else granules.coarsen(attributes)
        return local if isinstance(local, Granules) else None

    def read(self, path: str | os.PathLike[str], options: ReadOptions) -> Source | None:
        """Read a path where the engine runs; None if plar is to read it on this machine."""
        return None

    def granulate(self, table: DecisionTable) -> GranuleSet:
        """Granulate a table, by default on this machine."""
        return table.granulate()

    def sample_values(self, table: DecisionTable, granules: Any, name: str) -> Iterable[Any]:
        """Values of a condition or decision of a granulated table: all, or enough to judge their type."""
        values: Iterable[Any]
        if name in granules.conditions:
            values = granules.dictionaries[granules.conditions.index(name)]
        else:
            values = granules.decision_values[granules.decision.index(name)]
        return values

    def memory_need(self, granules: Granules) -> int | None:
        """Bytes that an evaluation needs beside the granules; None if unknown."""
        return None

    def release(self, granules: GranuleSet) -> None:  # noqa: B027 - a default
        """Free what `granulate` keeps outside this process."""

    def leave_to(self, granules: GranuleSet) -> None:
        """Close the engine; if it has started what the granules need, they close it when they are released."""
        self.close()

    def close(self) -> None:  # noqa: B027 - a default
        """Stop whatever the engine has started; leaving a ``with`` block does the same."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
