"""Granules on this machine in the columns layout: blocks are written once; the cluster only scores candidates."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from pyspark import RDD, SparkContext

from plar.engines.job_progress import Watch
from plar.engines.local import lanes
from plar.engines.local.engine import LocalEvaluation
from plar.engines.local.scoring import Scorer
from plar.engines.spark.blocks import ColumnBlocks, Group, StoredBlock, store, write
from plar.engines.spark.partitions import Cardinalities
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
        self._granules, self._sent = granules, list[Any]()
        self.shared = context.broadcast((granules.decision_codes, granules.counts))
        cells = len(granules) * lanes.LANES
        files = list(in_threads(lambda group: write(group, self._columns(group), self.token), self.groups, cells))
        dealt = [[StoredBlock(share, files[share.group.number]) for share in shares] for shares in self.shares]
        self.stored = context.parallelize(dealt, len(dealt)).flatMap(iter)
        self._files = files

    def _columns(self, group: Group) -> list[Array]:
        columns = [self._granules.columns[a] for a in group.attributes]
        return [lanes.as_rows(columns)] if group.in_lanes else columns

    def remade(self) -> RDD[StoredBlock]:
        """Broadcast the blocks, and use them from now on."""
        parts = []
        for task, shares in enumerate(self.shares):
            self._sent.append(
                self.context.broadcast([StoredBlock(share, self._columns(share.group)) for share in shares])
            )
            parts.append(self.context.parallelize([task], 1).flatMap(partial(_received, sent=self._sent[-1])))
        self.stored = self.context.union(parts).map(partial(store, token=self.token)).cache()
        return self.stored

    def unpersist(self) -> None:
        """Remove the local files as well."""
        super().unpersist()
        for path in chain.from_iterable(self._files):
            Path(path).unlink(missing_ok=True)
        for sent in self._sent:
            sent.destroy()


class ShippedEvaluation(LocalEvaluation):
    """U/R on this machine, candidates on the cluster; see `plar.engines.base.Evaluation`."""

    def __init__(self, granules: Granules, blocks: ShippedBlocks, measure: Measure, watch: Watch | None) -> None:
        super().__init__(granules, measure, usable_cores(), watch=watch)
        self._shipped = blocks

    with_each = spark_call(LocalEvaluation.with_each)

    def _scored(self, wanted: set[int]) -> Iterable[tuple[int, int]]:
        g = self._granules
        scorer = partial(Scorer, self._measure, g.n_objects, g.n_decisions)
        scores, _ = self._shipped.scored(wanted, (self._now, self._found_runs()), scorer, self.watch, offer=False)
        return scores


def _received(_: int, sent: Any) -> list[StoredBlock]:
    blocks: list[StoredBlock] = sent.value
    return blocks
