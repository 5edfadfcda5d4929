"""Granules on a cluster in the columns layout: a shuffle turns pieces into blocks; the driver fetches columns of R."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pyspark import RDD

from plar.engines.base import LeaveOneOut
from plar.engines.job_progress import Watch
from plar.engines.local import lanes
from plar.engines.local.engine import LocalEvaluation
from plar.engines.local.scoring import Scorer
from plar.engines.spark.blocks import ColumnBlocks, Share, StoredBlock, fetched, store
from plar.engines.spark.core import leave_one_out, rows_to_move
from plar.engines.spark.part_granules import remove_files
from plar.engines.spark.partitions import Cardinalities, GranulePartition, Hashes, bare_granules, hashes
from plar.engines.spark.session import explained
from plar.grouping.partition import Array, Codes, Index, distinct
from plar.measures import Measure
from plar.runtime.spark_calls import spark_call
from plar.uncertainty.labels import label_granules
from plar.uncertainty.strata import CrossTab

if TYPE_CHECKING:
    from plar.engines.spark.spark_granules import SparkGranules


class GatheredBlocks(ColumnBlocks):
    """Granules on a cluster: pieces are cut into columns, then shuffled into blocks."""

    def __init__(self, pieces: RDD[GranulePartition], coding: Cardinalities, n_rows: int) -> None:
        super().__init__(pieces.context, coding, n_rows)
        cut = partial(_cut, coding=coding, shares=self.shares)
        parts = pieces.mapPartitionsWithIndex(cut).partitionBy(len(self.shares) + 1, int)
        self._blocks: RDD[StoredBlock] = parts.mapPartitionsWithIndex(partial(_assemble, shares=self.shares))
        self.stored = self._blocks.map(partial(store, token=self.token)).cache()
        try:
            with explained("lay the columns out"):
                rows: list[Any] = self.stored.filter(lambda stored: isinstance(stored, RowReport)).collect()
        except BaseException:
            self.stored.unpersist()
            remove_files(self.context, self.token)
            raise
        self.sizes = [len(fact.decision_codes) for fact in rows]
        self.decision_codes: Index = np.concatenate([fact.decision_codes for fact in rows])
        self.counts = np.concatenate([fact.counts for fact in rows])
        self.partition = _whole_partition([fact.partition for fact in rows])
        self.shared = self.context.broadcast((self.decision_codes, self.counts))
        #: rows of each piece that may become equal to others when a column of either half is left out
        keys = [np.concatenate([fact.keys[half] for fact in rows]) for half in (0, 1)]
        self.rows_to_move = rows_to_move(keys, self.partition, self.sizes)
        self.columns = _Fetched(self)

    def remade(self) -> RDD[StoredBlock]:
        """Blocks from the pieces."""
        return self._blocks


class _Fetched(dict[int, Codes]):
    """Columns by attribute, fetched on first use and kept, as they are those of R."""

    def __init__(self, blocks: GatheredBlocks) -> None:
        self._blocks = blocks
        #: columns that the tasks sent along with the last scores
        self.offered: dict[int, Codes] = {}

    def fetch(self, attributes: Sequence[int]) -> None:
        """Fetch columns that are not here, in one job."""
        self.update({a: self.offered[a] for a in attributes if a in self.offered})
        if new := [a for a in attributes if a not in self]:
            self.update(self._blocks.run(partial(fetched, attributes=frozenset(new)), new, "fetch a column"))

    def __missing__(self, attribute: int) -> Codes:
        self.fetch([attribute])
        return self[attribute]


class ColumnsEvaluation(LocalEvaluation):
    """U/R on the driver, candidates on the cluster; see `plar.engines.base.Evaluation`."""

    @spark_call
    def __init__(self, held: SparkGranules, measure: Measure, watch: Watch | None) -> None:
        if held.blocks is None:
            held.blocks = GatheredBlocks(held.pieces, held.coding, len(held))
        self._held, self._gathered = held, held.blocks
        self._fetched = held.blocks.columns
        granules = bare_granules(self._fetched, held.blocks.decision_codes, held.blocks.counts, held.coding)
        labels = label_granules(granules, measure, held.blocks.partition)
        super().__init__(granules, measure, labels=labels, watch=watch)

    @spark_call
    def leave_one_out(self, attributes: Sequence[int] | None = None) -> list[LeaveOneOut]:
        """Θ(D|B∖{a}) for every a of B: on the cluster for C, on the driver for R, whose columns are there."""
        if attributes is not None:
            self._fetched.fetch(attributes)
            return super().leave_one_out(attributes)
        return leave_one_out(self._held, self._measure, self.theta_all, self._gathered.rows_to_move)

    with_each = spark_call(LocalEvaluation.with_each)

    @spark_call
    def select(self, *attributes: int) -> int:
        """R ← R ∪ {a, …}; one job fetches the columns. Returns Θ(D|R)."""
        self._fetched.fetch(attributes)
        return super().select(*attributes)

    @spark_call
    def cross_tabs(self, candidates: Sequence[int]) -> Iterable[CrossTab]:
        """Cross-tabulate each candidate with the decisions; one job fetches the columns that are missing here."""
        self._fetched.fetch(candidates)
        tables = list(super().cross_tabs(candidates))
        # not in R yet, so not kept
        self._fetched.offered = {a: self._fetched.pop(a) for a in candidates}
        return tables

    def _scored(self, wanted: set[int]) -> Iterable[tuple[int, int]]:
        held, blocks = self._held, self._gathered
        scorer = partial(Scorer, self._measure, held.n_objects, held.n_decisions)
        now = self._now, self._found_runs()
        scores, self._fetched.offered = blocks.scored(wanted, now, scorer, self.watch, offer=blocks.offers)
        return scores


def _whole_partition(parts: Sequence[tuple[Index, Index]]) -> tuple[Index, Index]:
    """U/C of all pieces, classes of one row first, as in each piece."""
    lows = np.cumsum([0, *(len(order) for order, _ in parts[:-1])], dtype=np.uint32)
    order = np.concatenate([own + low for (own, _), low in zip(parts, lows, strict=True)])
    sizes = np.concatenate([np.diff(starts) for _, starts in parts])
    single = sizes == 1
    of_single = np.repeat(single, sizes)
    sizes = np.concatenate([sizes[single], sizes[~single]])
    return np.concatenate([order[of_single], order[~of_single]]), np.append(0, np.cumsum(sizes)).astype(np.uint32)


# -- tasks -------------------------------------------------------------------------------------------------


class RowReport(NamedTuple):
    """What the driver needs to know about the rows of a piece."""

    decision_codes: Index
    counts: Array
    #: U/C
    partition: tuple[Index, Index]
    #: hashes of the half that stays when an attribute of the other half is left out
    keys: tuple[Hashes, Hashes]


def _cut(
    p: int, pieces: Iterable[GranulePartition], coding: Cardinalities, shares: list[list[Share]]
) -> Iterator[tuple[int, Any]]:
    """Cut a piece into its part of every block, and send the facts about its rows to the last partition."""
    for piece in pieces:
        keys = hashes(piece, coding, coding.halves[1]), hashes(piece, coding, coding.halves[0])
        facts = RowReport(piece.decision_codes, piece.counts, distinct(piece.coded(coding), piece.n_rows), keys)
        yield len(shares), (-1, p, facts)
        for task, own in enumerate(shares):
            for number, share in enumerate(own):
                yield task, (number, p, [piece.column(coding, a) for a in share.group.attributes])


def _assemble(task: int, records: Iterable[tuple[int, Any]], shares: list[list[Share]]) -> Iterator[Any]:
    """Assemble each block from its parts, in the order of the pieces; the facts come in that order too."""
    parts: dict[int, list[Any]] = {}
    for _, (number, p, held) in records:
        parts.setdefault(number, []).append((p, held))
    for number in sorted(parts):
        found = [held for _, held in sorted(parts.pop(number), key=lambda part: part[0])]
        if number < 0:
            yield from found
            continue
        columns = [np.concatenate(of_pieces) for of_pieces in zip(*found, strict=True)]
        share = shares[task][number]
        yield StoredBlock(share, [lanes.as_rows(columns)] if share.group.in_lanes else columns)
