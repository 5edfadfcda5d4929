"""Granules on a cluster in the columns layout: a shuffle turns pieces into blocks; the driver fetches columns of R."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from pyspark import RDD

from plar.chance.association import Association
from plar.engines.base import LeaveOneOut
from plar.engines.job_progress import Watch
from plar.engines.local import lanes
from plar.engines.local.engine import LocalEvaluation
from plar.engines.local.scoring import Scorer
from plar.engines.spark.block_files import StoredBlock, store
from plar.engines.spark.column_blocks import ColumnBlocks
from plar.engines.spark.column_groups import Share
from plar.engines.spark.columns_exchange import SentPartition, fetched, score_candidates
from plar.engines.spark.core import leave_one_out, rows_to_move
from plar.engines.spark.part_granules import remove_files
from plar.engines.spark.pieces import Cardinalities, Hashes, Piece, bare_granules, hashes
from plar.engines.spark.session import explained
from plar.engines.spark.stratification import ColumnsStratification, measure_candidates
from plar.granules.granules import Granules
from plar.grouping.partition import Array, Codes, Index, distinct
from plar.measures import Measure
from plar.runtime.spark_calls import spark_call
from plar.uncertainty.labels import label_granules
from plar.uncertainty.ranks import Ranks
from plar.uncertainty.strata import CrossTab

if TYPE_CHECKING:
    from plar.engines.spark.spark_granules import SparkGranules


class GatheredBlocks(ColumnBlocks):
    """Granules on a cluster: pieces are cut into columns, then shuffled into blocks."""

    def __init__(self, pieces: RDD[Piece], coding: Cardinalities, n_rows: int) -> None:
        super().__init__(pieces.context, coding, n_rows)
        cut = partial(_cut, coding=coding, shares=self.shares)
        parts = pieces.mapPartitionsWithIndex(cut).partitionBy(len(self.shares) + 1, int)
        self._blocks: RDD[Any] = parts.mapPartitionsWithIndex(partial(_assemble, shares=self.shares))
        self.stored = self._blocks.map(partial(store, token=self.token)).cache()
        try:
            with explained("lay the columns out"):
                reports: list[RowReport] = self.stored.filter(lambda record: isinstance(record, RowReport)).collect()
        except BaseException:
            self.stored.unpersist()
            remove_files(self.context, self.token)
            raise
        self.sizes = [len(report.decision_codes) for report in reports]
        self.decision_codes: Index = np.concatenate([report.decision_codes for report in reports])
        self.counts = np.concatenate([report.counts for report in reports])
        self.partition = _whole_partition([report.partition for report in reports])
        self.decisions_and_counts = self.context.broadcast((self.decision_codes, self.counts))
        #: rows of each piece that may become equal to others when a column of either half is left out
        keys = [np.concatenate([report.keys[half] for report in reports]) for half in (0, 1)]
        self.rows_to_move = rows_to_move(keys, self.partition, self.sizes)
        self.columns = FetchedColumns(self)

    def as_granules(self) -> Granules:
        """The granules, whose columns are fetched when they are looked up."""
        columns = cast(Sequence[Codes], self.columns)  # only ever looked up by attribute
        return bare_granules(columns, self.decision_codes, self.counts, self.coding)

    def remade(self) -> RDD[Any]:
        """Blocks from the pieces."""
        return self._blocks


class FetchedColumns(dict[int, Codes]):
    """Columns by attribute, fetched on first use and kept, as they are those of R."""

    def __init__(self, blocks: GatheredBlocks) -> None:
        self._blocks = blocks
        #: columns that the tasks sent along with the last scores
        self.offered: dict[int, Codes] = {}

    def fetch(self, attributes: Sequence[int]) -> None:
        """Fetch columns that are not here, in one job."""
        self.update({a: self.offered[a] for a in attributes if a in self.offered})
        missing = [a for a in attributes if a not in self]
        if missing:
            task = partial(fetched, attributes=frozenset(missing))
            self.update(self._blocks.run(task, missing, "fetch a column"))

    def __missing__(self, attribute: int) -> Codes:
        self.fetch([attribute])
        return self[attribute]


def laid_out(granules: SparkGranules) -> GatheredBlocks:
    """The columns layout of granules on a cluster, which is made once."""
    if granules.blocks is None:
        granules.blocks = GatheredBlocks(granules.pieces, granules.coding, len(granules))
    return granules.blocks


@spark_call
def stratified_columns(granules: SparkGranules, ranks: Ranks | None) -> ColumnsStratification:
    """The classes of granules on a cluster, in the columns layout."""
    blocks = laid_out(granules)
    return ColumnsStratification(blocks.as_granules(), blocks, blocks.columns, ranks)


class ColumnsEvaluation(LocalEvaluation):
    """U/R on the driver, candidates on the cluster; see `plar.engines.base.Evaluation`."""

    @spark_call
    def __init__(self, granules: SparkGranules, measure: Measure, watch: Watch | None) -> None:
        blocks = laid_out(granules)
        self._on_cluster = granules
        self._blocks_on_cluster = blocks
        self._fetched = blocks.columns
        here = blocks.as_granules()
        labels = label_granules(here, measure, blocks.partition)
        super().__init__(here, measure, labels=labels, watch=watch)

    @spark_call
    def leave_one_out(self, attributes: Sequence[int] | None = None) -> list[LeaveOneOut]:
        """Θ(D|B∖{a}) for every a of B: on the cluster for C, on the driver for R, whose columns are there."""
        if attributes is not None:
            self._fetched.fetch(attributes)
            return super().leave_one_out(attributes)
        return leave_one_out(self._on_cluster, self._measure, self.theta_all, self._blocks_on_cluster.rows_to_move)

    with_each = spark_call(LocalEvaluation.with_each)

    @spark_call
    def select(self, *attributes: int) -> int:
        """R ← R ∪ {a, …}; one job fetches the columns. Returns Θ(D|R)."""
        self._fetched.fetch(attributes)
        return super().select(*attributes)

    @spark_call
    def associations(self, candidates: Sequence[int]) -> list[Association]:
        """How strongly each candidate is associated with the decision, in one job."""
        measured, self._fetched.offered = measure_candidates(self._blocks_on_cluster, candidates, self._strata.rows())
        return [measured[a] for a in candidates]

    @spark_call
    def cross_tabs(self, candidates: Sequence[int]) -> Iterable[CrossTab]:
        """Cross-tabulate each candidate with the decisions; one job fetches the columns that are missing here."""
        self._fetched.fetch(candidates)
        tables = list(super().cross_tabs(candidates))
        # not in R yet, so not kept
        self._fetched.offered |= {a: self._fetched.pop(a) for a in candidates}
        return tables

    def _scored(self, wanted: set[int]) -> Iterable[tuple[int, int]]:
        blocks = self._blocks_on_cluster
        runs = self._runs_of_r()
        partition = SentPartition(self._now.order, self._now.starts, runs.begins, runs.first)
        granules = self._granules
        scorer = partial(Scorer, self._measure, granules.n_objects, granules.n_decisions)
        scores, self._fetched.offered = score_candidates(
            blocks, wanted, partition, scorer, self.watch, offer=blocks.offers
        )
        return scores


def _whole_partition(parts: Sequence[tuple[Index, Index]]) -> tuple[Index, Index]:
    """U/C of all pieces, classes of one row first, as in each piece."""
    first_rows = np.cumsum([0, *(len(order) for order, _ in parts[:-1])], dtype=np.uint32)
    order = np.concatenate([rows + first for (rows, _), first in zip(parts, first_rows, strict=True)])
    sizes = np.concatenate([np.diff(starts) for _, starts in parts])
    is_single = sizes == 1
    in_single = np.repeat(is_single, sizes)
    order = np.concatenate([order[in_single], order[~in_single]])
    sizes = np.concatenate([sizes[is_single], sizes[~is_single]])
    return order, np.append(0, np.cumsum(sizes)).astype(np.uint32)


# -- tasks -------------------------------------------------------------------------------------------------


class RowReport(NamedTuple):
    """What the driver needs to know about the rows of a piece."""

    decision_codes: Index
    counts: Array
    #: U/C
    partition: tuple[Index, Index]
    #: hashes of the half that stays when an attribute of the other half is left out
    keys: tuple[Hashes, Hashes]


#: number of a record that is a report and not a part of a block
_REPORT = -1


def _cut(
    number: int, pieces: Iterable[Piece], coding: Cardinalities, shares: list[list[Share]]
) -> Iterator[tuple[int, Any]]:
    """Cut a piece into its part of every block, and send the report on its rows to the last partition."""
    for piece in pieces:
        yield len(shares), (_REPORT, number, _report_on(piece, coding))
        for task, of_task in enumerate(shares):
            for block, share in enumerate(of_task):
                yield task, (block, number, [piece.column(coding, a) for a in share.group.attributes])


def _report_on(piece: Piece, coding: Cardinalities) -> RowReport:
    first, second = coding.halves
    return RowReport(
        decision_codes=piece.decision_codes,
        counts=piece.counts,
        partition=distinct(piece.coded(coding), piece.n_rows),
        keys=(hashes(piece, coding, second), hashes(piece, coding, first)),
    )


def _assemble(
    task: int, records: Iterable[tuple[int, Any]], shares: list[list[Share]]
) -> Iterator[StoredBlock | RowReport]:
    """Assemble each block from its parts, in the order of the pieces; the reports come in that order too."""
    parts: dict[int, dict[int, Any]] = {}
    for _, (block, number, part) in records:
        parts.setdefault(block, {})[number] = part
    for block in sorted(parts):
        of_block = parts.pop(block)
        in_order = [of_block[number] for number in sorted(of_block)]
        if block == _REPORT:
            yield from in_order
            continue
        columns = [np.concatenate(of_pieces) for of_pieces in zip(*in_order, strict=True)]
        share = shares[task][block]
        yield StoredBlock(share, [lanes.as_rows(columns)] if share.group.in_lanes else columns)
