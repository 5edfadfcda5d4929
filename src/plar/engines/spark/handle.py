"""The handle of granules on a cluster: what the driver knows of them, and where they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from plar.coding.assemble import check_objects
from plar.coding.equal import MOST_VALUES, agreeing, alike, class_sums, settled, translation
from plar.coding.fingerprint import Fingerprint
from plar.columns import positions_of
from plar.engines.spark.granulate import exchanged
from plar.engines.spark.pieces import Coding, Piece, dealt, hashes, projected
from plar.engines.spark.session import explained
from plar.errors import TableError
from plar.roles import Roles
from plar.spark_calls import spark_call

if TYPE_CHECKING:
    from pyspark import RDD

    from plar.engines.spark.columns import ColumnBlocks

__all__ = ["SparkGranules", "hold"]

#: classes of columns that are compared at a time, whose sums come to the driver
_SUMS_AT_A_TIME = 1 << 20


@dataclass(eq=False)
class SparkGranules:
    """Granules of a table, in pieces on a cluster; every function of plar takes them in place of the table.

    Parameters
    ----------
    conditions, decision : tuple of str
    names : tuple of str
        All columns of the table.
    pieces : RDD of Piece
        One a partition.
    coding : Coding
    sizes : list of int
        Granules in each piece.
    n_objects : int
    n_missing : dict of str to int
        How many objects lack a value, for each attribute and decision where some do.
    hashed : two ints or None
        The fingerprint, where the values were seen.
    cuts : mapping of str to tuple of float
        Cut points of the conditions whose values are numbers of bins.
    """

    conditions: tuple[str, ...]
    decision: tuple[str, ...]
    names: tuple[str, ...]
    pieces: RDD[Piece]
    coding: Coding
    sizes: list[int]
    n_objects: int
    n_missing: dict[str, int]
    hashed: Fingerprint | None = None
    cuts: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    #: the columns layout, once an evaluation has asked for it
    blocks: ColumnBlocks | None = None
    #: what evaluations in the rows layout moved, and what was coarsened: it is freed together
    moved: list[RDD[Piece]] = field(default_factory=list)
    coarse: list[SparkGranules] = field(default_factory=list)

    def __repr__(self) -> str:
        """Tell the sizes on one line, not the values."""
        decision = ", ".join(map(repr, self.decision))
        return (
            f"<SparkGranules: {len(self)} for {self.n_objects} objects in {len(self.sizes)} pieces, "
            f"{len(self.conditions)} conditions, decision {decision}>"
        )

    def __len__(self) -> int:
        """Return the number of granules."""
        return sum(self.sizes)

    @property
    def n_classes(self) -> int:
        """Number of distinct decisions."""
        return self.coding.n_classes

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """Number of distinct values of each condition."""
        return self.coding.cardinalities

    def positions(self, attributes: str | int | Iterable[str | int]) -> list[int]:
        """Positions of attributes among the conditions; see `Granules.positions`."""
        return positions_of(attributes, self.conditions, self.names)

    def fingerprint(self) -> Fingerprint:
        """Sums of hashes that follow the values and counts only; see `Granules.fingerprint`."""
        if self.hashed is None:
            raise TableError(
                "A checkpoint needs the values of the table, and these granules on Spark have codes only. "
                "Pass the table itself with its conditions, not granules."
            )
        return self.hashed

    @spark_call
    def equal_columns(self, groups: Iterable[Sequence[int]]) -> list[list[int]]:
        """Conditions that are equal up to the names of their values; see `Granules.equal_columns`."""
        few = [a for group in groups for a in group if self.cardinalities[a] <= MOST_VALUES]
        found = alike(self._class_sums(few))
        pairs = [(group[0], b) for group in found for b in group[1:]]
        if not pairs:
            return []
        with explained("compare the columns"):
            books = self.pieces.map(partial(_translations, coding=self.coding, pairs=pairs)).collect()
        return settled(found, {pair: agreeing(book[i] for book in books) for i, pair in enumerate(pairs)})

    def _class_sums(self, attributes: Sequence[int]) -> Iterator[tuple[int, NDArray[np.uint64]]]:
        # in portions, because the sums of all classes of a column come to the driver
        ends = np.cumsum([self.cardinalities[a] for a in attributes]) // _SUMS_AT_A_TIME
        for _, portion in groupby(zip(ends.tolist(), attributes, strict=True), key=itemgetter(0)):
            some = [a for _, a in portion]
            with explained("compare the columns"):
                task = partial(_sums, coding=self.coding, attributes=some)
                parts = self.pieces.mapPartitionsWithIndex(task).collect()
            yield from ((a, reduce(np.add, [part[a] for part in parts])) for a in some)

    @spark_call
    def coarsen(self, attributes: str | int | Iterable[str | int]) -> SparkGranules:
        """G^(C∪D) → G^(P∪D) for P ⊆ C, on the cluster."""
        kept = self.positions(attributes)
        n = len(self.sizes)
        records = self.pieces.flatMap(partial(_deal_projected, coding=self.coding, attributes=kept, n=n))
        coding = self.coding.of(kept)
        conditions = tuple(self.conditions[a] for a in kept)
        lacking = {name: self.n_missing[name] for name in (*conditions, *self.decision) if name in self.n_missing}
        coarse = hold(exchanged(records, coding, n), coding, conditions, self.decision, self.names, lacking)
        coarse.cuts = {name: cuts for name, cuts in self.cuts.items() if name in conditions}
        self.coarse.append(coarse)
        return coarse

    def with_roles(self, roles: Roles) -> SparkGranules:
        """Granules over some of the conditions; see `Granules.with_roles`."""
        for option, given in [("missing", roles.missing != "value"), ("bins", roles.bins), ("numeric", roles.numeric)]:
            if given:
                raise TableError(f"The granules are made already. Pass {option}= where the table is granulated.")
        return self if roles.conditions == self.conditions else self.coarsen(roles.conditions)

    def unpersist(self) -> None:
        """Free the cluster's memory and disks; the granules are of no use any more."""
        while self.coarse:
            self.coarse.pop().unpersist()
        with suppress(Exception):  # a cluster that has gone has freed them
            if self.blocks is not None:
                self.blocks.unpersist()
            for rdd in (*self.moved, self.pieces):
                rdd.unpersist()


def hold(
    pieces: RDD[Piece],
    coding: Coding,
    conditions: tuple[str, ...],
    decision: tuple[str, ...],
    names: tuple[str, ...],
    n_missing: dict[str, int],
    fingerprint: Fingerprint | None = None,
) -> SparkGranules:
    """Make the pieces, keep them in the cluster's memory and disks, and learn their sizes."""
    from pyspark import StorageLevel

    pieces = pieces.persist(StorageLevel.MEMORY_AND_DISK)
    with explained("granulate the table"):
        sizes = pieces.map(_size).collect()
    n_objects = sum(objects for _, objects in sizes)
    check_objects(n_objects)
    rows = [n for n, _ in sizes]
    return SparkGranules(conditions, decision, names, pieces, coding, rows, n_objects, n_missing, fingerprint)


def _size(piece: Piece) -> tuple[int, int]:
    return piece.n_rows, int(piece.counts.sum())


def _sums(index: int, pieces: Iterable[Piece], coding: Coding, attributes: list[int]) -> Iterator[dict[int, Any]]:
    for piece in pieces:
        columns = ((a, piece.column(coding, a), coding.cardinalities[a]) for a in attributes)
        yield dict(class_sums(columns, first_row=index + 1 << 40))


def _translations(piece: Piece, coding: Coding, pairs: list[tuple[int, int]]) -> list[Any]:
    return [translation(piece.column(coding, a), piece.column(coding, b), coding.cardinalities[a]) for a, b in pairs]


def _deal_projected(piece: Piece, coding: Coding, attributes: list[int], n: int) -> Any:
    coarse = projected(piece, coding, attributes)
    for bucket, rows in dealt(hashes(coarse, coding.of(attributes)), n):
        yield bucket, coarse.rows(rows)
