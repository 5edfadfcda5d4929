"""Classes of U/R that hold several decisions, and how a candidate's values meet the decisions within them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from plar.granules.granules import Granules
from plar.grouping.partition import Codes, Index, Ints, Runs, byte_groups, find_runs, in_order, smallest_codes, split
from plar.measures import LCE
from plar.uncertainty.labels import Labels, label_granules


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

    @staticmethod
    def of(values: Codes, decisions: Index, counts: Ints, order: Index, starts: Index, n_values: int) -> CrossTab:
        """Make a table of columns by row, and of an order of the rows in which classes begin at `starts`."""
        return CrossTab(in_order(values, order), n_values, find_runs(decisions, counts, order, starts))


class Strata:
    """The classes of U/R for a growing R that another attribute can still split, without those of a single decision.

    A class of U/C that is not pure cannot be split further. Nothing is computed until a table is asked for.

    Examples
    --------
    >>> import plar
    >>> granules = plar.granulate({"a": [0, 0, 1], "b": [0, 1, 1], "d": [0, 1, 0]}, "d")
    >>> strata = Strata(granules, label_granules(granules, plar.measures.SCE))
    >>> strata.select(0)
    >>> [table.values.tolist() for table in strata.cross_tabs([1])]
    [[0, 1]]
    """

    def __init__(self, granules: Granules, labels: Labels) -> None:
        self._granules = granules
        self._by_all_conditions = (labels.order, labels.starts)
        self._partition: tuple[Index, Index] | None = None
        self._new: list[int] = []

    def select(self, *attributes: int) -> None:
        """R ← R ∪ {a, …}."""
        self._new += attributes

    def cross_tabs(self, candidates: Iterable[int]) -> Iterator[CrossTab]:
        """How the values of each candidate meet the decisions."""
        order, starts = self._refined()
        runs = find_runs(self._granules.decision_codes, self._granules.counts, order, starts)
        for a in candidates:
            values, n_values = self._column(a)
            yield CrossTab(in_order(values, order), n_values, runs)

    def _refined(self) -> tuple[Index, Index]:
        if self._partition is None:
            # every impure class of U/C has its own label under LCE
            self._labels = label_granules(self._granules, LCE, self._by_all_conditions).labels
            order = by_decision(self._granules.decision_codes)
            if (self._labels != self._labels[0]).any():
                self._partition = order, np.array([0, len(order)], np.uint32)
            else:  # no attribute can split the only class
                self._partition = order[:0], np.array([0], np.uint32)
        for group in byte_groups(map(self._column, self._new)):
            order, starts = self._partition
            if len(order):
                self._partition = split(group, self._labels, order, starts)[:2]
        self._new = []
        return self._partition

    def _column(self, attribute: int) -> tuple[Codes, int]:
        return self._granules.columns[attribute], len(self._granules.dictionaries[attribute])
