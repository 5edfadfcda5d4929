"""What an engine supplies. `plar.search` knows nothing else, so that every engine gives the same reduct."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from plar.measures import Measure
from plar.options import ReadOptions
from plar.tables import DecisionTable

__all__ = ["Engine", "Evaluation", "Held", "Inner", "Reader"]


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


class Held(Protocol):
    """Granules, wherever they are: what the search knows of them."""

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

    def coarsen(self, attributes: Any) -> Held:
        """Granules over some of the conditions."""


class Engine(Protocol):
    """Where and how the evaluation is done."""

    @property
    def name(self) -> str:
        """What a Reduct calls it."""

    def open(self, granules: Any, measure: Measure) -> Evaluation:
        """Hold the granules ready for one search."""


@runtime_checkable
class Reader(Protocol):
    """An engine that reads and granulates tables where they are."""

    def read(self, path: Any, options: ReadOptions) -> Any:
        """Take a path; None if it is to be read on this machine."""

    def granulate(self, table: DecisionTable) -> Held:
        """Granulate rows that are there."""
