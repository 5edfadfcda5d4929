"""How candidates go with the decision within classes of rows: what `plar.select` asks of an engine, and nothing else.

The classes are those of U/R for a growing R, or of U/B for any attributes B.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from plar.chance.association import Association
from plar.chance.statistic import associations_within, impurity
from plar.granules.granules import Granules
from plar.uncertainty.ranks import Ranks
from plar.uncertainty.strata import CrossTab, Strata


class Stratification(Protocol):
    """The classes of U/R for a growing R, empty at first; `within`, if given, are attributes in the place of R."""

    def select(self, *attributes: int) -> None:
        """R ← R ∪ {a, …}."""

    def associations(self, candidates: Sequence[int], within: Sequence[int] | None = None) -> list[Association]:
        """How strongly each candidate is associated with the decision within the classes, and how much is chance."""

    def cross_tabs(self, candidates: Sequence[int], within: Sequence[int] | None = None) -> Iterable[CrossTab]:
        """A table of each candidate's values against the decisions, within the classes."""

    def impurity(self, within: Sequence[int] | None = None) -> float:
        """The most that a candidate's statistic could be: what is left to say about the decisions in the classes."""


class LocalStratification:
    """The classes on this machine; see `Stratification`. With ranks, decisions are compared by these."""

    def __init__(self, granules: Granules, ranks: Ranks | None = None) -> None:
        self._strata = Strata(granules, ranks=ranks)

    def select(self, *attributes: int) -> None:
        """R ← R ∪ {a, …}."""
        self._strata.select(*attributes)

    def associations(self, candidates: Sequence[int], within: Sequence[int] | None = None) -> list[Association]:
        """How strongly each candidate is associated with the decision, in one pass over the candidates."""
        return associations_within(self._strata, candidates, within)

    def cross_tabs(self, candidates: Sequence[int], within: Sequence[int] | None = None) -> Iterable[CrossTab]:
        """A table of each candidate's values against the decisions."""
        return self._strata.cross_tabs(candidates, within)

    def impurity(self, within: Sequence[int] | None = None) -> float:
        """The most that a candidate's statistic could be."""
        return impurity(self._strata.rows(within))
