"""Granules on this machine in the columns layout: blocks are written once; the cluster only scores candidates."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from pyspark import RDD, Broadcast, SparkContext

from plar.engines.job_progress import Watch
from plar.engines.local import lanes
from plar.engines.local.engine import LocalEvaluation
from plar.engines.local.scoring import Scorer
from plar.engines.spark.block_files import StoredBlock, store, write
from plar.engines.spark.column_blocks import ColumnBlocks
from plar.engines.spark.column_groups import Group
from plar.engines.spark.columns_exchange import SentPartition, score_candidates
from plar.engines.spark.pieces import Cardinalities
from plar.granules.granules import Granules
from plar.grouping.partition import Array
from plar.measures import Measure
from plar.runtime.parallel import in_threads, usable_cores
from plar.runtime.spark_calls import spark_call


class ShippedBlocks(ColumnBlocks):
    """Granules on this machine: every block is written once, to a local file, and read by executors that see this disk.

    Executors that do not see it get their blocks by broadcast, each task only its own.
    """

    @spark_call
    def __init__(self, granules: Granules, context: SparkContext) -> None:
        coding = Cardinalities(granules.cardinalities, granules.n_decisions)
        super().__init__(context, coding, len(granules))
        self._granules = granules
        #: blocks of tasks that do not see this disk
        self._sent: list[Broadcast[list[StoredBlock]]] = []
        cells = len(granules) * lanes.LANES
        #: by number of the group
        self._files = list(in_threads(lambda group: write(group, self._columns(group), self.token), self.groups, cells))
        blocks_of_tasks = [
            [StoredBlock(share, self._files[share.group.number]) for share in shares] for shares in self.shares
        ]
        self.stored = context.parallelize(blocks_of_tasks, len(blocks_of_tasks)).flatMap(iter)
        self.decisions_and_counts = context.broadcast((granules.decision_codes, granules.counts))

    def _columns(self, group: Group) -> list[Array]:
        columns = [self._granules.columns[a] for a in group.attributes]
        return [lanes.as_rows(columns)] if group.in_lanes else columns

    def remade(self) -> RDD[Any]:
        """Broadcast the blocks, and use them from now on."""
        parts = []
        for task, shares in enumerate(self.shares):
            sent = self.context.broadcast([StoredBlock(share, self._columns(share.group)) for share in shares])
            self._sent.append(sent)
            parts.append(self.context.parallelize([task], 1).flatMap(partial(_received, sent=sent)))
        self.stored = self.context.union(parts).map(partial(store, token=self.token)).cache()
        return self.stored

    def unpersist(self) -> None:
        """Remove the local files as well."""
        try:
            super().unpersist()
        finally:
            for file in self._files:
                Path(file.path).unlink(missing_ok=True)
            for sent in self._sent:
                sent.destroy()


class ShippedEvaluation(LocalEvaluation):
    """U/R on this machine, candidates on the cluster; see `plar.engines.base.Evaluation`."""

    def __init__(self, granules: Granules, blocks: ShippedBlocks, measure: Measure, watch: Watch | None) -> None:
        super().__init__(granules, measure, usable_cores(), watch=watch)
        self._shipped = blocks

    with_each = spark_call(LocalEvaluation.with_each)

    def _scored(self, wanted: set[int]) -> Iterable[tuple[int, int]]:
        granules = self._granules
        runs = self._runs_of_r()
        partition = SentPartition(self._now.order, self._now.starts, runs.begins, runs.first)
        scorer = partial(Scorer, self._measure, granules.n_objects, granules.n_decisions)
        scores, _ = score_candidates(self._shipped, wanted, partition, scorer, self.watch, offer=False)
        return scores


def _received(_: int, sent: Broadcast[list[StoredBlock]]) -> list[StoredBlock]:
    return sent.value
