"""The columns layout: a block is some columns of all granules, and an iteration is one job without a shuffle.

The driver refines U/R and broadcasts its classes; every task scores its columns with the local kernels. Blocks are
files that the workers map into memory: reading them costs nothing, and a task depends on (block, U/R) alone.
`shipped` makes blocks from granules on this machine, `columns` from those on a cluster.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar
from uuid import uuid4

import numpy as np
from pyspark import RDD, Broadcast, SparkContext, SparkFiles

from plar.engines.job_progress import Watch
from plar.engines.local import lanes
from plar.engines.local.scoring import CandidatePass, Scorer
from plar.engines.spark.partitions import Cardinalities
from plar.engines.spark.session import errors_in_parts, explained, run_watched
from plar.engines.spark.warm import forget_zip_files
from plar.grouping.partition import Array, Codes, Index
from plar.runtime.spark_calls import spark_call

T = TypeVar("T")


class Group(NamedTuple):
    """Attributes whose columns are stored together: in lanes where that pays, else column by column."""

    number: int
    attributes: tuple[int, ...]
    n_values: tuple[int, ...]
    in_lanes: bool


class Share(NamedTuple):
    """What a task scores of a group: all classes of U/R, or those from `low` to `high`, in `of`-ths of the rows."""

    task: int
    group: Group
    low: int = 0
    high: int = 1
    of: int = 1


class BlockFile(NamedTuple):
    """A file with the arrays of a block, each aligned to `_ALIGNMENT` bytes; it is lost with its executor."""

    path: str
    #: type and shape of each array
    arrays: tuple[tuple[str, tuple[int, ...]], ...]


class StoredBlock(NamedTuple):
    """Columns of a group: one array of 64 lanes or one array each, or the file that holds them."""

    share: Share
    columns: Sequence[Array] | BlockFile


class SentPartition(NamedTuple):
    """U/R and its runs as the tasks get them; they have the weights of the rows."""

    order: Index
    starts: Index
    run_begins: Index
    first_runs: Index


#: what a task does with its blocks, each given by its share and its columns
BlockTask: TypeAlias = Callable[[Iterator[tuple[Share, Sequence[Array]]]], Iterable[T]]
#: Θ by candidate, to be added up, and the columns on offer
Scores: TypeAlias = tuple[list[tuple[int, int]], list[tuple[int, Codes]]]

#: from so many cores on, not all work is dealt in advance
_MANY_CORES = 8
#: rows of groups for each core that take several times as long as starting a task
_MIN_ROWS_PER_CORE = 1 << 20
#: columns are sent to the driver with the scores as long as one column per group adds up to at most this many rows
_MAX_ROWS_ON_OFFER = 1 << 22
#: bytes; lanes of a row are within one cache line, and numba compiles anew for arrays that are not aligned
_ALIGNMENT = 64


class ColumnBlocks(ABC):
    """All granules in the columns layout; made once, for all measures."""

    #: blocks, in files; records of other types may stand beside them
    stored: RDD[Any]
    #: decisions and counts of all granules
    decisions_and_counts: Broadcast[tuple[Index, Array]]

    def __init__(self, context: SparkContext, coding: Cardinalities, n_rows: int) -> None:
        self.context = context
        #: names of the blocks' files begin with it
        self.token = uuid4().hex
        cores = context.defaultParallelism
        self.groups = _groups(coding, n_rows, cores)
        #: small columns come with the scores, which saves a job to fetch the chosen one; large groups are divided
        self.offers = len(self.groups) * n_rows <= _MAX_ROWS_ON_OFFER
        sizes = _task_sizes(len(self.groups), n_rows, cores, divide=not self.offers)
        #: what each task scores
        self.shares = _shares(self.groups, sizes, divide=not self.offers)

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
                results += run_watched(self.remade(), task, lost, watch, len(attributes))
        return [answer for _, answers in results if answers is not None for answer in answers]

    def scored(
        self,
        wanted: set[int],
        partition: SentPartition,
        scorer: Callable[[], Scorer],
        watch: Watch | None,
        *,
        offer: bool,
    ) -> tuple[Iterable[tuple[int, int]], dict[int, Codes]]:
        """Parts of Θ(D|R∪{a}), to be added up by candidate, and columns on offer, in one job over the rows in U/R."""
        sent = self.context.broadcast(partition)
        task = partial(
            _scores,
            decisions_and_counts=self.decisions_and_counts,
            partition=sent,
            wanted=frozenset(wanted),
            scorer=scorer,
            offer=offer,
        )
        try:
            answers = self.run(task, wanted, "score the candidates", watch)
        finally:
            sent.destroy()
        offered = {a: codes for _, columns in answers for a, codes in columns}
        return chain.from_iterable(scores for scores, _ in answers), offered

    @spark_call
    def unpersist(self) -> None:
        """Free the cluster's memory and files."""
        try:
            with explained("free its memory"):
                self.stored.foreachPartition(_remove_files)
        finally:
            self.stored.unpersist()
            self.decisions_and_counts.destroy()


def _groups(coding: Cardinalities, n_rows: int, cores: int) -> list[Group]:
    in_lanes, others = lanes.lane_groups(coding.cardinalities, n_rows)
    # enough groups of single columns to keep every core busy
    size = max(1, min(lanes.LANES, -(-len(others) // cores)))
    one_by_one = [others[i : i + size] for i in range(0, len(others), size)]
    return [
        Group(number, tuple(attributes), tuple(coding.cardinalities[a] for a in attributes), number < len(in_lanes))
        for number, attributes in enumerate(in_lanes + one_by_one)
    ]


def _task_sizes(n_groups: int, n_rows: int, cores: int, *, divide: bool) -> list[int]:
    """How much of the work each task gets, in proportion; where `divide`, a group may be divided among tasks."""
    # every task that has a part of a group holds all of it, so a group is divided among few
    most = n_groups * 2 if divide else n_groups
    n_tasks = min(cores, most) or 1
    is_much = n_groups >= 2 * cores and n_groups * n_rows >= cores * _MIN_ROWS_PER_CORE
    if cores < _MANY_CORES or not is_much:
        return [1] * n_tasks
    # the slowest of many cores is far behind the others: a quarter of much work is for those that are done first
    return [3] * n_tasks + [1] * n_tasks


def _shares(groups: list[Group], sizes: Sequence[int], *, divide: bool) -> list[list[Share]]:
    """Deal groups to tasks in proportion to their sizes; groups are divided for that if wished.

    >>> five = [Group(i, (i,), (2,), False) for i in range(5)]
    >>> for shares in _shares(five, [1, 1], divide=True):
    ...     print([(share.group.number, share.low, share.high, share.of) for share in shares])
    [(0, 0, 2, 2), (2, 0, 2, 2), (4, 0, 1, 2)]
    [(4, 1, 2, 2), (1, 0, 2, 2), (3, 0, 2, 2)]
    """
    n_tasks = len(sizes)
    if not divide:
        return [[Share(task, group) for group in groups[task::n_tasks]] for task in range(n_tasks)]
    # a line of groups, cheap and expensive ones mixed, is cut into one stretch per task
    line = [group for i in range(n_tasks) for group in groups[i::n_tasks]]
    total = sum(sizes)
    dealt = []
    for task, (begin, end) in enumerate(pairwise([0, *accumulate(sizes)])):
        shares = []
        for i, group in enumerate(line):
            # in `total`-ths of a group, the stretch goes from begin·len(line) to end·len(line)
            low = min(max(begin * len(line) - i * total, 0), total)
            high = min(max(end * len(line) - i * total, 0), total)
            if low < high:
                shares.append(Share(task, group, low, high, total))
        dealt.append(shares)
    return dealt


# -- files of blocks ---------------------------------------------------------------------------------------


def store(record: Any, token: str) -> Any:
    """Write a block to a file; any other record is returned unchanged."""
    if not isinstance(record, StoredBlock) or isinstance(record.columns, BlockFile):
        return record
    return record._replace(columns=write(record.share.group, record.columns, token))


def write(group: Group, arrays: Sequence[Array], token: str) -> BlockFile:
    """Write the columns of a group to a file."""
    path = Path(SparkFiles.getRootDirectory(), f"plar-{token}-{uuid4().hex}-{group.number}")
    with path.open("wb") as file:
        for array in arrays:
            file.seek(_aligned(file.tell()))
            file.write(np.ascontiguousarray(array).data)
    return BlockFile(str(path), tuple((array.dtype.str, array.shape) for array in arrays))


def _map(file: BlockFile) -> list[Array]:
    """Map the arrays of a block into memory."""
    whole = np.asarray(np.memmap(file.path, np.uint8, "c"))  # numba compiles anew for arrays that are read-only
    arrays: list[Array] = []
    begin = 0
    for kind, shape in file.arrays:
        array: Array = np.ndarray(shape, kind, whole, begin)
        arrays.append(array)
        begin = _aligned(begin + array.nbytes)
    return arrays


def _aligned(position: int) -> int:
    return -(-position // _ALIGNMENT) * _ALIGNMENT


def _remove_files(records: Iterable[Any]) -> None:
    """Remove the files of a task's blocks."""
    for record in records:
        if isinstance(record, StoredBlock) and isinstance(record.columns, BlockFile):
            Path(record.columns.path).unlink(missing_ok=True)


# -- tasks -------------------------------------------------------------------------------------------------


class _FileLost(Exception):
    """A task does not see the file of a block."""


def _on_blocks(records: Iterable[Any], function: BlockTask[T]) -> list[tuple[int, list[T] | None]]:
    """Run a function on the blocks of a task; its results with the number of the task, or None if a file is lost."""
    forget_zip_files()
    blocks = (record for record in records if isinstance(record, StoredBlock))
    first = next(blocks, None)
    if first is None:
        return []
    try:
        with errors_in_parts():
            return [(first.share.task, list(function(_opened(chain([first], blocks)))))]
    except _FileLost:
        return [(first.share.task, None)]


def _opened(blocks: Iterable[StoredBlock]) -> Iterator[tuple[Share, Sequence[Array]]]:
    for share, columns in blocks:
        if isinstance(columns, BlockFile):
            try:
                columns = _map(columns)
            except OSError:
                raise _FileLost from None
        yield share, columns


def fetched(
    blocks: Iterable[tuple[Share, Sequence[Array]]], attributes: Collection[int]
) -> Iterator[tuple[int, Codes]]:
    """Yield the columns of some attributes; of a divided group, the first task does."""
    for share, arrays in blocks:
        if share.low == 0:
            yield from _columns(share.group, arrays, attributes)


def _columns(group: Group, arrays: Sequence[Array], attributes: Collection[int]) -> Iterator[tuple[int, Codes]]:
    for k, a in enumerate(group.attributes):
        if a in attributes:
            yield a, np.ascontiguousarray(arrays[0][:, k] if group.in_lanes else arrays[k])


def _scores(
    blocks: Iterable[tuple[Share, Sequence[Array]]],
    decisions_and_counts: Broadcast[tuple[Index, Array]],
    partition: Broadcast[SentPartition],
    wanted: frozenset[int],
    scorer: Callable[[], Scorer],
    offer: bool,
) -> Iterator[Scores]:
    """Θ(D|R∪{a}) of each block's candidates over the rows still in U/R; `offer` adds the column of the best one."""
    decision_codes, counts = decisions_and_counts.value
    scoring = CandidatePass(scorer(), decision_codes, counts, *partition.value)
    buffer: lanes.LaneMatrix | None = None
    for share, arrays in blocks:
        group = share.group
        classes = scoring.part(share.low, share.high, share.of)
        if classes.stop - classes.start == 1:  # no class begins there
            continue
        if group.in_lanes and scoring.takes_blocks:
            if buffer is None:
                buffer = lanes.aligned(scoring.buffer_rows)
            thetas = scoring.block(arrays[0], max(group.n_values), buffer, classes)
            scores = [(a, theta) for a, theta in zip(group.attributes, thetas, strict=False) if a in wanted]
        else:
            n_values = dict(zip(group.attributes, group.n_values, strict=True))
            columns = _columns(group, arrays, wanted)
            scores = [(a, scoring.column(codes, n_values[a], classes)) for a, codes in columns]
        offered: list[tuple[int, Codes]] = []
        if offer and scores:
            best, _ = min(scores, key=lambda score: (score[1], score[0]))
            offered = list(_columns(group, arrays, [best]))
        yield scores, offered
