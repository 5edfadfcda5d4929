"""Classes of U/R that hold several decisions, and how a candidate's values meet the decisions within them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from plar.granules.granules import Granules
from plar.grouping.partition import Codes, Index, Ints, Runs, byte_groups, find_runs, in_order, smallest_codes, split
from plar.measures import LCE
from plar.uncertainty.labels import Labels, label_granules
from plar.uncertainty.ranks import Ranks, RunScores

#: rows, and where classes begin among them
Partition: TypeAlias = tuple[Index, Index]


def by_decision(decisions: Index) -> Index:
    """Rows in the order of their decisions."""
    codes = smallest_codes(decisions, int(decisions.max(initial=0)) + 1)  # smaller types are sorted faster
    return np.argsort(codes, kind="stable").astype(np.uint32)


class CrossTab(NamedTuple):
    """A candidate against the decision, within classes: rows are ordered by class, then by decision."""

    #: codes of the values, how many there may be, and the rows of each class and decision
    values: Index
    n_values: int
    runs: Runs
    #: those of the runs, if decisions are compared by rank
    scores: RunScores | None = None

    @staticmethod
    def of(
        values: Codes,
        decisions: Index,
        counts: Ints,
        order: Index,
        starts: Index,
        n_values: int,
        ranks: Ranks | None = None,
    ) -> CrossTab:
        """Make a table of columns by row, and of an order of the rows in which classes begin at `starts`.

        With ranks, decisions are places.
        """
        rows = StratifiedRows.of(decisions, counts, order, starts, ranks)
        return CrossTab(in_order(values, order), n_values, rows.runs, rows.scores)


class StratifiedRows(NamedTuple):
    """Rows of the classes of a partition, by class and then by decision."""

    order: Index
    runs: Runs
    #: those of the runs, if decisions are compared by rank
    scores: RunScores | None = None

    @staticmethod
    def of(decisions: Index, counts: Ints, order: Index, starts: Index, ranks: Ranks | None) -> StratifiedRows:
        """Find the runs of columns by row, in an order of the rows; with ranks, decisions are places."""
        runs = find_runs(decisions, counts, order, starts)
        scores = None if ranks is None else ranks.of_runs(decisions, order, runs.begins)
        return StratifiedRows(order, runs, scores)


class Strata:
    """The classes of U/R for a growing R that another attribute can still split, without those of a single decision.

    Nothing is computed until a table is asked for.

    Parameters
    ----------
    granules : Granules
    labels : Labels, optional
        Those of U/C: with them, classes that no attribute can split are left out too.
    ranks : Ranks, optional
        Those of a decision of numbers. Decisions of one rank are one decision.

    Examples
    --------
    >>> import plar
    >>> granules = plar.granulate({"a": [0, 0, 1], "b": [0, 1, 1], "d": [0, 1, 0]}, "d")
    >>> strata = Strata(granules, label_granules(granules, plar.measures.SCE))
    >>> strata.select(0)
    >>> [table.values.tolist() for table in strata.cross_tabs([1])]
    [[0, 1]]
    >>> [table.values.tolist() for table in strata.cross_tabs([0], within=[1])]
    [[1, 0]]
    """

    def __init__(self, granules: Granules, labels: Labels | None = None, ranks: Ranks | None = None) -> None:
        self._granules = granules
        self._ranks = ranks
        self._decisions = granules.decision_codes if ranks is None else ranks.places[granules.decision_codes]
        #: rows of U/C and where its classes begin
        self._by_all_conditions = None if labels is None else (labels.order, labels.starts)
        #: by row: a class all of whose rows have one key cannot be split, or has one decision
        self._keys: Index | None = None if labels is not None else self._decisions
        self._root: Partition | None = None
        self._partition: Partition | None = None
        self._new: list[int] = []

    def select(self, *attributes: int) -> None:
        """R ← R ∪ {a, …}."""
        self._new += attributes

    def rows(self, within: Sequence[int] | None = None) -> StratifiedRows:
        """The rows of the classes of U/R, or of U/`within`."""
        if within is None:
            order, starts = self._refined_by_new()
        else:
            order, starts = self._refined(self._undivided(), within)
        return StratifiedRows.of(self._decisions, self._granules.counts, order, starts, self._ranks)

    def cross_tabs(self, candidates: Iterable[int], within: Sequence[int] | None = None) -> Iterator[CrossTab]:
        """How the values of each candidate meet the decisions, within the classes of U/R, or of U/`within`."""
        order, runs, scores = self.rows(within)
        for a in candidates:
            values, n_values = self.column(a)
            yield CrossTab(in_order(values, order), n_values, runs, scores)

    def column(self, attribute: int) -> tuple[Codes, int]:
        """The codes of an attribute, and how many there may be."""
        return self._granules.columns[attribute], len(self._granules.dictionaries[attribute])

    def _refined_by_new(self) -> Partition:
        """U/R; what was selected since the last call refines it."""
        partition = self._undivided() if self._partition is None else self._partition
        self._partition = self._refined(partition, self._new)
        self._new = []
        return self._partition

    def _undivided(self) -> Partition:
        """U/∅, empty if no attribute can split its only class."""
        if self._root is None:
            if self._keys is None:
                # every impure class of U/C has its own label under LCE
                self._keys = label_granules(self._granules, LCE, self._by_all_conditions).labels
            order = by_decision(self._decisions)
            if (self._keys != self._keys[:1]).any():
                self._root = order, np.array([0, len(order)], np.uint32)
            else:
                self._root = order[:0], np.array([0], np.uint32)
        return self._root

    def _refined(self, partition: Partition, attributes: Sequence[int]) -> Partition:
        assert self._keys is not None
        for group in byte_groups(map(self.column, attributes)):
            order, starts = partition
            if len(order):
                partition = split(group, self._keys, order, starts)[:2]
        return partition
