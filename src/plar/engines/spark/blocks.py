"""The columns layout: a block is some columns of all granules, and an iteration is one job without a shuffle.

The driver refines U/R and broadcasts its classes; every task scores its columns with the local kernels. Blocks are
files that the workers map into memory: reading them costs nothing, and a task depends on (block, U/R) alone.
`shipped` makes blocks from granules on this machine, `columns` from those on a cluster.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
from pyspark import RDD, SparkContext, SparkFiles

from plar.engines.job_progress import Watch
from plar.engines.local import lanes
from plar.engines.local.scoring import CandidatePass
from plar.engines.spark.partitions import Cardinalities
from plar.engines.spark.session import explained, on_one_machine, run_watched
from plar.engines.spark.warm import forget_zip_files
from plar.grouping.partition import Array, Codes, Index, Runs
from plar.runtime.spark_calls import spark_call


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


class StoredBlock(NamedTuple):
    """Columns of a group, 64 lanes or one array each, or their files, which are lost with their executor."""

    share: Share
    columns: Sequence[Array | str]


#: from so many cores on, not all work is dealt in advance
_MANY_CORES = 8
#: rows of groups for each core that take several times as long as starting a task
_MUCH = 1 << 20
#: columns are sent to the driver with the scores as long as one column per group adds up to at most this many rows
_OFFER = 1 << 22


class ColumnBlocks(ABC):
    """All granules in the columns layout; made once, for all measures."""

    #: blocks, in files
    stored: RDD[StoredBlock]
    #: classes and counts of all granules
    shared: Any

    def __init__(self, context: SparkContext, coding: Cardinalities, n_rows: int) -> None:
        self.context = context
        #: names of the blocks' files begin with it
        self.token = uuid4().hex
        self.groups = _groups(coding, n_rows, context.defaultParallelism)
        #: small columns come with the scores, which saves a job to fetch the chosen one; large groups are divided
        self.offers = len(self.groups) * n_rows <= _OFFER
        # every task that has a part of a group holds all of it, so a group is divided among few
        cores, n = context.defaultParallelism, len(self.groups)
        n_tasks = min(cores, n * (1 if self.offers else 2)) or 1
        # the slowest of many cores is far behind the others: a quarter of much work is for those that are done first
        late = cores >= _MANY_CORES and n >= 2 * cores and n * n_rows >= cores * _MUCH
        sizes = [3] * n_tasks + [1] * n_tasks if late else [1] * n_tasks
        #: what each task scores
        self.shares = _shares(self.groups, sizes, divide=not self.offers)

    @abstractmethod
    def remade(self) -> RDD[StoredBlock]:
        """Blocks rebuilt, for tasks that do not find their files."""

    def run(self, function: Any, attributes: Collection[int], doing: str, watch: Watch | None = None) -> list[Any]:
        """Run a function on the shares of these attributes; blocks whose files a task cannot see are rebuilt."""
        wanted = set(attributes)
        tasks = sorted({s.task for s in chain(*self.shares) if not wanted.isdisjoint(s.group.attributes)})
        if len(tasks) == len(self.shares):  # a partition without blocks may follow, but a whole RDD is faster to run
            tasks = list(range(self.stored.getNumPartitions()))
        task = partial(_answers, function=function, token=self.token)
        with explained(doing):
            done = run_watched(self.stored, task, tasks, watch, len(attributes))
            missing = sorted({place for place, answers in done if answers is None})
            if missing:
                done = [(place, answers) for place, answers in done if place not in missing]
                done += run_watched(self.remade(), task, missing, watch, len(attributes))
        return [answer for _, answers in done for answer in answers]

    def scored(
        self, wanted: set[int], now: tuple[Any, Runs], scorer: Any, watch: Watch | None, *, offer: bool
    ) -> tuple[Iterable[tuple[int, int]], dict[int, Codes]]:
        """Parts of Θ(D|R∪{a}), to be added up by candidate, over the rows still in U/R, in one job; columns on offer.

        U/R is given as a partition and its runs, whose weights the tasks have.
        """
        partition, runs = now
        arrays = partition.order, partition.starts, runs.begins, runs.first
        sent = _ArraysInFile(arrays) if on_one_machine(self.context) else self.context.broadcast(arrays)
        task = partial(
            _scores,
            shared=self.shared,
            now=sent,
            wanted=frozenset(wanted),
            scorer=scorer,
            token=uuid4(),
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
        with explained("free its memory"):
            self.stored.foreachPartition(partial(_remove, token=self.token))
        self.stored.unpersist()
        self.shared.destroy()


def _groups(coding: Cardinalities, n_rows: int, cores: int) -> list[Group]:
    few, others = lanes.lane_groups(coding.cardinalities, n_rows)
    # enough groups of single columns to keep every core busy
    size = max(1, min(lanes.LANES, -(-len(others) // cores)))
    found = [(tuple(group), True) for group in few]
    found += [(tuple(others[i : i + size]), False) for i in range(0, len(others), size)]
    return [
        Group(number, attributes, tuple(coding.cardinalities[a] for a in attributes), in_lanes)
        for number, (attributes, in_lanes) in enumerate(found)
    ]


def _shares(groups: list[Group], sizes: Sequence[int], *, divide: bool) -> list[list[Share]]:
    """Deal groups to tasks in proportion to their sizes; groups are divided for that if wished.

    >>> five = [Group(i, (i,), (2,), False) for i in range(5)]
    >>> for shares in _shares(five, [1, 1], divide=True):
    ...     print([(share.group.number, share.low, share.high, share.of) for share in shares])
    [(0, 0, 2, 2), (2, 0, 2, 2), (4, 0, 1, 2)]
    [(4, 1, 2, 2), (1, 0, 2, 2), (3, 0, 2, 2)]
    """
    n = len(sizes)
    if not divide:
        return [[Share(task, group) for group in groups[task::n]] for task in range(n)]
    # a line of groups, cheap and expensive ones mixed, is cut into one stretch per task
    line, of, ends = [group for i in range(n) for group in groups[i::n]], sum(sizes), [0, *accumulate(sizes)]
    dealt: list[list[Share]] = [[] for _ in sizes]
    for task, (begin, end) in enumerate(pairwise(ends)):
        for i, group in enumerate(line):
            low, high = (min(max(at * len(line) - i * of, 0), of) for at in (begin, end))
            if low < high:
                dealt[task].append(Share(task, group, low, high, of))
    return dealt


# -- tasks -------------------------------------------------------------------------------------------------


def store(block: Any, token: str) -> Any:
    """Write a block to files; anything else is returned unchanged."""
    if not isinstance(block, StoredBlock):
        return block
    return block._replace(columns=write(block.share.group, block.columns, token))


def write(group: Group, arrays: Sequence[Any], token: str) -> list[str]:
    """Write the columns of a group to files."""
    name = f"plar-{token}-{uuid4().hex}-{group.number}"
    paths = [str(Path(SparkFiles.getRootDirectory(), f"{name}-{k}.npy")) for k in range(len(arrays))]
    for path, array in zip(paths, arrays, strict=True):
        np.save(path, array)
    return paths


def _remove(records: Iterable[Any], token: str) -> None:
    """Remove the files of a task's blocks, and free what this worker keeps of them."""
    for record in records:
        for path in record.columns if isinstance(record, StoredBlock) else ():
            Path(str(path)).unlink(missing_ok=True)
    if _kept.token == token:
        _kept.clear()


class _ArraysInFile:
    """Arrays of one step in a file that tasks on this machine map; a broadcast would copy them for each worker."""

    def __init__(self, arrays: Sequence[Index]) -> None:
        self._path = Path(SparkFiles.getRootDirectory(), f"plar-{uuid4().hex}")
        self._ends = list(accumulate(map(len, arrays)))
        with self._path.open("wb") as file:
            for array in arrays:
                file.write(array.data)

    @property
    def value(self) -> list[Index]:
        """The arrays; their pages are shared by all workers."""
        whole = np.memmap(self._path, np.uint32, "c")
        return [whole[begin:end] for begin, end in pairwise([0, *self._ends])]

    def destroy(self) -> None:
        """Remove the file."""
        self._path.unlink(missing_ok=True)


class _Kept:
    """What a worker keeps from one task to the next, of one table's blocks: other blocks, or their removal, free it."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Free everything."""
        self.token = ""
        #: files that are mapped into memory; every block has its own file names
        self.mapped: dict[str, Array] = {}
        #: the pass of the current iteration, shared by the tasks
        self.passes: dict[Any, CandidatePass] = {}
        #: a buffer for rows of a block, reused by later iterations: the first touch of fresh memory is slow
        self.room: lanes.LaneMatrix | None = None


_kept = _Kept()
_MOST_MAPPED = 4096
_MOST_ROOM = 1 << 28


def forget_removed() -> None:
    """Free what this worker keeps of blocks whose files have been removed; not every worker had a task in that."""
    path = next(iter(_kept.mapped), None)
    if path is not None and not os.path.exists(path):
        _kept.clear()


def _map(path: str) -> Array:
    """Map a file into memory; it stays mapped for the next steps."""
    if path not in _kept.mapped:
        if len(_kept.mapped) >= _MOST_MAPPED:
            _kept.mapped.clear()
        _kept.mapped[path] = np.load(path, mmap_mode="c")  # numba compiles anew for arrays that are read-only
    return _kept.mapped[path]


def _answers(records: Iterable[Any], function: Any, token: str) -> list[tuple[int, list[Any] | None]]:
    """Map the files of a task's blocks into memory and run the function on each; None if a file is missing."""
    forget_zip_files()
    forget_removed()
    if _kept.token != token:
        _kept.clear()
        _kept.token = token
    answers: dict[int, list[Any]] = {}
    for share, held in (record for record in records if isinstance(record, StoredBlock)):
        try:
            arrays = [_map(array) if isinstance(array, str) else array for array in held]
        except OSError:
            return [(share.task, None)]
        answers.setdefault(share.task, []).extend(function(share, arrays))
    return list(answers.items())


def fetched(share: Share, arrays: Sequence[Array], attributes: Collection[int]) -> Iterable[tuple[int, Codes]]:
    """Yield the columns of some attributes; of a divided group, the first task does."""
    return () if share.low else _columns(share.group, arrays, attributes)


def _columns(group: Group, arrays: Sequence[Array], attributes: Collection[int]) -> Iterator[tuple[int, Codes]]:
    for k, a in enumerate(group.attributes):
        if a in attributes:
            yield a, np.ascontiguousarray(arrays[0][:, k] if group.in_lanes else arrays[k])


def _room(n_rows: int) -> lanes.LaneMatrix:
    room = _kept.room
    if room is None or len(room) < n_rows:
        room = lanes.aligned(n_rows)
    _kept.room = room if room.nbytes <= _MOST_ROOM else None
    return room[:n_rows]


def _scores(
    share: Share, arrays: Any, shared: Any, now: Any, wanted: frozenset[int], scorer: Any, token: Any, offer: bool
) -> list[tuple[list[tuple[int, int]], list[tuple[int, Codes]]]]:
    """Θ(D|R∪{a}) of a share's candidates over the rows still in U/R; `offer` adds the column of the best one."""
    if token not in _kept.passes:
        _kept.passes.clear()
        classes, counts = shared.value
        _kept.passes[token] = CandidatePass(scorer(), classes, counts, *now.value)
    scoring, group = _kept.passes[token], share.group
    part = scoring.part(share.low, share.high, share.of)
    if part.stop - part.start == 1:  # no class begins there
        return []
    if group.in_lanes and scoring.takes_blocks:
        thetas = zip(
            group.attributes,
            scoring.block(arrays[0], max(group.n_values), _room(scoring.buffer_rows), part),
            strict=False,
        )
        scores = [(a, theta) for a, theta in thetas if a in wanted]
    else:
        n_values = {a: n for a, n in zip(group.attributes, group.n_values, strict=True) if a in wanted}
        columns = _columns(group, arrays, n_values)
        scores = [(a, scoring.column(codes, n_values[a], part)) for a, codes in columns]
    best = [min(scores, key=lambda score: (score[1], score[0]))[0]] if offer and scores else []
    return [(scores, list(_columns(group, arrays, best)))]
