"""What an engine supplies. `plar.search` uses nothing else, so that every engine gives the same reduct."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from plar.engines.progress_hooks import Watch
from plar.granules import Granules
from plar.measures import Measure
from plar.options import ReadOptions
from plar.tables import DecisionTable

__all__ = ["Engine", "Evaluation", "GranuleHandle", "Inner"]


class Inner(NamedTuple):
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
    def active(self) -> int:
        """Objects in classes of U/R that are not settled; 0 if and only if Θ(D|R) = Θ(D|C)."""

    @property
    def consistent(self) -> bool:
        """Whether every class of U/C is pure."""

    def without_each(self, attributes: Sequence[int] | None = None) -> list[Inner]:
        """Θ(D|B∖{a}) for every a of B, and whether it equals Θ(D|C).

        B is C, or the attributes given, which must have Θ(D|B) = Θ(D|C).
        """

    def with_each(self, candidates: Sequence[int]) -> list[int]:
        """Θ(D|R∪{a}) for every candidate, in one pass over the data."""

    def select(self, *attributes: int) -> int:
        """R ← R ∪ {a, …}: refine U/R; returns Θ(D|R)."""


class GranuleHandle(Protocol):
    """Granules on this machine or on a cluster, as the search sees them."""

    @property
    def conditions(self) -> tuple[str, ...]:
        """Names of the conditions."""

    @property
    def decision(self) -> tuple[str, ...]:
        """Names of the decision columns."""

    @property
    def names(self) -> tuple[str, ...]:
        """All columns of the table, to which positions refer."""

    @property
    def n_objects(self) -> int:
        """How many objects they stand for."""

    @property
    def n_classes(self) -> int:
        """Number of distinct decisions."""

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """Number of distinct values of each condition."""

    @property
    def n_missing(self) -> dict[str, int]:
        """How many objects lack a value, for each attribute and decision where some do."""

    @property
    def cuts(self) -> Mapping[str, tuple[float, ...]]:
        """Cut points of the conditions whose values are numbers of bins."""

    def __len__(self) -> int:
        """Number of granules."""

    def positions(self, attributes: Any) -> list[int]:
        """Positions of attributes among the conditions."""

    def fingerprint(self) -> tuple[int, int]:
        """Sums of hashes that follow the values and counts only."""

    def equal_columns(self, groups: Iterable[Sequence[int]]) -> list[list[int]]:
        """Conditions that are equal up to the names of their values, among those of each group."""

    def coarsen(self, attributes: Any) -> GranuleHandle:
        """Granules over some of the conditions."""


class Engine(ABC):
    """Where and how the evaluation is done. A new engine supplies `name` and `open`; the rest has defaults.

    Attributes
    ----------
    name : str
        Recorded in the result.
    watch : function of a JobProgress, or None
        Called with the progress of each pass, if the engine reports any.
    """

    __slots__ = ()
    name: str
    watch: Watch | None = None

    @abstractmethod
    def open(self, granules: Any, measure: Measure, watch: Watch | None = None) -> Evaluation:
        """Prepare the granules for one search; `watch`, if given, takes the place of the engine's own."""

    @property
    def reads_paths(self) -> bool:
        """Whether the engine reads files where it runs."""
        return False

    def read(self, path: str | os.PathLike[str], options: ReadOptions) -> Any:
        """Read a path where the engine runs; None if plar is to read it on this machine."""
        return None

    def granulate(self, table: DecisionTable) -> GranuleHandle:
        """Granulate a table, by default on this machine."""
        return table.granulate()

    def sample_values(self, table: DecisionTable, granules: Any, place: int) -> Iterable[Any]:
        """Values of the condition at a place of a table just granulated: all, or enough to judge their type."""
        values: Iterable[Any] = granules.dictionaries[place]
        return values

    def memory_need(self, granules: Granules) -> int | None:
        """Bytes that an evaluation takes beside the granules; None if unknown."""
        return None

    def release(self, granules: GranuleHandle) -> None:  # noqa: B027 - a default
        """Free what `granulate` keeps outside this process."""

    def close(self) -> None:  # noqa: B027 - a default
        """Stop whatever the engine has started."""
