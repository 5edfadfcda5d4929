"""The columns layout: a block is some columns of all granules, and an iteration is one job without a shuffle.

The driver refines U/R and broadcasts its classes; every task scores its columns with the local kernels, and
depends on (block, U/R) alone. `shipped_columns` makes blocks from granules on this machine, `columns_layout` from
those on a cluster; `columns_exchange` is what driver and tasks send each other in a step.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, TypeAlias, TypeVar
from uuid import uuid4

from pyspark import RDD, Broadcast, SparkContext

from plar.engines.job_progress import Watch
from plar.engines.spark.block_files import FileLost, StoredBlock, opened, remove_files
from plar.engines.spark.column_groups import Share, column_groups, shares_of_tasks, task_sizes
from plar.engines.spark.pieces import Cardinalities
from plar.engines.spark.session import errors_in_parts, explained, run_watched
from plar.engines.spark.warm import forget_zip_files
from plar.errors import EngineFailed
from plar.grouping.partition import Array, Index
from plar.runtime.spark_calls import spark_call

T = TypeVar("T")

#: what a task does with its blocks, each given by its share and its columns
BlockTask: TypeAlias = Callable[[Iterator[tuple[Share, Sequence[Array]]]], Iterable[T]]
#: columns are sent to the driver with the scores as long as one column per group adds up to at most this many rows
_MAX_ROWS_ON_OFFER = 1 << 22


class ColumnBlocks(ABC):
    """All granules in the columns layout; made once, for all measures."""

    #: blocks, in files; records of other types may stand beside them
    stored: RDD[Any]
    #: decisions and counts of all granules
    decisions_and_counts: Broadcast[tuple[Index, Array]]

    def __init__(self, context: SparkContext, coding: Cardinalities, n_rows: int) -> None:
        self.context = context
        self.coding = coding
        #: names of the blocks' files begin with it
        self.token = uuid4().hex
        cores = context.defaultParallelism
        self.groups = column_groups(coding, n_rows, cores)
        #: small columns come with the scores, which saves a job to fetch the chosen one; large groups are divided
        self.offers = len(self.groups) * n_rows <= _MAX_ROWS_ON_OFFER
        sizes = task_sizes(len(self.groups), n_rows, cores, divide=not self.offers)
        #: what each task scores
        self.shares = shares_of_tasks(self.groups, sizes, divide=not self.offers)

    @abstractmethod
    def remade(self) -> RDD[Any]:
        """Blocks rebuilt, for tasks that do not find their files."""

    def run(
        self, function: BlockTask[T], attributes: Collection[int], doing: str, watch: Watch | None = None
    ) -> list[T]:
        """Run a function on the blocks of these attributes; blocks whose files a task cannot see are rebuilt."""
        wanted = set(attributes)
        tasks = sorted({s.task for s in chain(*self.shares) if not wanted.isdisjoint(s.group.attributes)})
        if len(tasks) == len(self.shares):  # a partition without blocks may follow, but a whole RDD is faster to run
            tasks = list(range(self.stored.getNumPartitions()))
        task = partial(_on_blocks, function=function)
        with explained(doing):
            results = run_watched(self.stored, task, tasks, watch, len(attributes))
            lost = sorted(number for number, answers in results if answers is None)
            if lost:
                results = [result for result in results if result[1] is not None]
                results += run_watched(self.remade(), task, lost, watch, len(attributes))
        all_answers: list[T] = []
        for _, answers in results:
            if answers is None:
                raise EngineFailed(
                    f"Spark could not {doing}: a task does not see its columns, although they were sent again. "
                    "Look for a full or slow disk on the executors."
                )
            all_answers += answers
        return all_answers

    @spark_call
    def unpersist(self) -> None:
        """Free the cluster's memory and files."""
        try:
            with explained("free its memory"):
                self.stored.foreachPartition(remove_files)
        finally:
            self.stored.unpersist()
            self.decisions_and_counts.destroy()


# -- tasks -------------------------------------------------------------------------------------------------


def _on_blocks(records: Iterable[Any], function: BlockTask[T]) -> list[tuple[int, list[T] | None]]:
    """Run a function on the blocks of a task; its results with the number of the task, or None if a file is lost."""
    forget_zip_files()
    blocks = (record for record in records if isinstance(record, StoredBlock))
    first = next(blocks, None)
    if first is None:
        return []
    try:
        with errors_in_parts():
            return [(first.share.task, list(function(opened(chain([first], blocks)))))]
    except FileLost:
        return [(first.share.task, None)]
