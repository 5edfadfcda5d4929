"""The approximations of decisions by granules on a cluster: every piece is summed up where it is.

Rows with equal conditions are in one piece, so its classes are whole. One job sums up the pieces, and a second brings
the largest contradictory classes to the driver; further ones only decide which of many equally large ones come first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from pyspark import StorageLevel

from plar.engines.spark.pieces import Cardinalities, Piece, as_granules
from plar.engines.spark.session import explained
from plar.runtime.spark_calls import spark_call
from plar.uncertainty.approximation import Approximation, ClassSums, Contradictory, put_together, sum_classes

if TYPE_CHECKING:
    from plar.engines.spark.spark_granules import SparkGranules

T = TypeVar("T")


@spark_call
def approximate_on_cluster(granules: SparkGranules, attributes: Sequence[str], limit: int) -> Approximation:
    """The approximations of all decisions by some attributes, with up to `limit` contradictions."""
    if tuple(attributes) == granules.conditions:
        return _approximate(granules, limit)
    coarse = granules.coarsen(attributes)
    try:
        return _approximate(coarse, limit)
    finally:
        granules.coarse.remove(coarse)
        coarse.unpersist()


def _approximate(granules: SparkGranules, limit: int) -> Approximation:
    """The approximations by all conditions of some granules."""
    sum_up = partial(_summed, coding=granules.coding, limit=limit)
    summed = granules.pieces.filter(lambda piece: piece.n_rows > 0).map(sum_up).persist(StorageLevel.MEMORY_AND_DISK)

    def ask(function: Callable[[Contradictory], T]) -> list[T]:
        with explained("look up the contradictions"):
            return summed.map(lambda of_piece: function(of_piece[1])).collect()

    try:
        with explained("sum up the classes"):
            sums = summed.map(lambda of_piece: of_piece[0]).collect()
        return put_together(granules, sums, ask, limit)
    finally:
        summed.unpersist()


def _summed(piece: Piece, coding: Cardinalities, limit: int) -> tuple[ClassSums, Contradictory]:
    """What is known of the classes of a piece, and those with several decisions, without the other rows."""
    sums, contradictory = sum_classes(as_granules(piece, coding), limit)
    of_classes = as_granules(piece.rows(contradictory.rows), coding)
    rows = np.arange(len(of_classes), dtype=np.uint32)
    return sums, contradictory._replace(granules=of_classes, rows=rows)
