"""Ranks of a decision of numbers: what its rows are compared by, instead of classes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from plar.grouping.partition import Array, Index, Ints


class RunScores(NamedTuple):
    """The scores of rows that stand run by run: those of a run have one score."""

    #: by run
    scores: Ints
    #: by how much 1 of a score is to be multiplied
    unit: float


class Ranks(NamedTuple):
    """The mid-ranks of a decision of numbers over all objects, exact as whole numbers.

    A mid-rank divided by the number of objects, as `unit` does it, is what Bross (1958) calls a ridit: the share of the
    objects with a smaller number, plus half of those with the same.
    """

    #: by decision code: the place of its number among the different ones, in ascending order
    places: Index
    #: by place: twice the mid-rank, less the number of objects, so that the mean over all objects is 0
    scores: Ints
    unit: float

    def of_runs(self, places: Index, order: Index, begins: Index) -> RunScores:
        """The scores of runs, for places by row."""
        return RunScores(self.scores[places[order[begins[:-1]]]], self.unit)


def ranks_of(numbers: Array, sizes: Ints) -> Ranks:
    """Rank numbers, given for each decision code, of which so many objects have each; equal ones share a rank.

    >>> ranks_of(np.array([2.5, -1.0, 7.0, 2.5]), np.array([1, 4, 1, 2]))[:2]
    (array([1, 0, 2, 1], dtype=uint32), array([-4,  3,  7]))
    """
    different, places = np.unique(numbers, return_inverse=True)
    n_equal = np.zeros(len(different), np.int64)
    np.add.at(n_equal, places, sizes)
    n_objects = int(n_equal.sum())
    n_up_to = np.cumsum(n_equal)
    scores = n_up_to + (n_up_to - n_equal) - n_objects
    return Ranks(places.astype(np.uint32), scores, 0.5 / n_objects)
