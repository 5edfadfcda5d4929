"""What granules on this machine and on a cluster have in common; the search needs nothing else of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from plar.bins import Cuts
from plar.granules.fingerprint import Fingerprint


class GranuleSet(Protocol):
    """The distinct rows over conditions and decision, with their multiplicities; see `Granules`."""

    @property
    def conditions(self) -> tuple[str, ...]:
        """The condition attributes, to which positions in the results of engines refer."""

    @property
    def decision(self) -> tuple[str, ...]:
        """The decision columns."""

    @property
    def names(self) -> tuple[str, ...]:
        """All columns of the table in its order, to which positions that users give refer."""

    @property
    def n_objects(self) -> int:
        """Rows of the table, each counted by its weight."""

    @property
    def n_rows(self) -> int:
        """Rows of the table, each counted once."""

    @property
    def n_decisions(self) -> int:
        """Number of distinct decisions."""

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """Number of distinct values of each condition."""

    @property
    def dictionaries(self) -> Sequence[Sequence[Any] | None]:
        """Values by code of each condition; None where only the cluster has them."""

    @property
    def decision_values(self) -> Sequence[Sequence[Any]]:
        """For each decision column its value by decision code."""

    @property
    def cuts(self) -> Mapping[str, Cuts]:
        """Cut points of the columns whose values are numbers of bins."""

    @property
    def text(self) -> bool:
        """Whether the values are as written in a text file, so that numbers are text too."""

    @property
    def n_without_decision(self) -> int:
        """Rows, each counted by its weight, that were dropped because they have no decision."""

    @property
    def categorical_decision(self) -> bool:
        """Whether the table declared its decision to be categories, whatever the values look like."""

    @property
    def index_like(self) -> Mapping[str, str]:
        """The conditions that only number or name the rows, and why."""

    @property
    def n_missing(self) -> Mapping[str, int]:
        """How many rows have no value, for each column and decision with missing values."""

    @property
    def n_missing_decisions(self) -> Mapping[str, int]:
        """How many rows have no value, for each decision with missing values."""

    def __len__(self) -> int:
        """Return the number of granules."""

    def class_sizes(self) -> NDArray[np.int64]:
        """How many objects have each decision."""

    def positions(self, attributes: str | int | Iterable[str | int]) -> list[int]:
        """Positions of attributes among the conditions; an int is a position in the table."""

    def first_values(self, attribute: int, codes: Collection[int], n: int) -> list[tuple[int, Any]]:
        """The first `n` of some values of a condition, each with its code, in the order that people expect."""

    def n_combinations(self, attributes: str | int | Iterable[str | int]) -> int:
        """How many combinations of values some attributes have: classes of U/P."""

    def equal_columns(self, groups: Iterable[Sequence[int]]) -> list[list[int]]:
        """Conditions that are equal up to the names of their values, among those of each group."""

    def fingerprint(self) -> Fingerprint:
        """Sums of hashes that depend on the values and counts, not on the order of the rows or their codes."""

    def coarsen(self, attributes: str | int | Iterable[str | int]) -> GranuleSet:
        """G^(C∪D) → G^(P∪D) for P ⊆ C: drop the other attributes and add up the counts."""
