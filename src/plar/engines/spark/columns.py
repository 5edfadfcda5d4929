"""The columns layout: a block is some columns of all granules, and an iteration is one job without a shuffle.

The driver refines U/R and broadcasts its classes; every task scores its columns with the local kernels. Blocks lie in
files that are mapped into the memory of the workers: reading them costs nothing, and a task is a function of (block,
U/R) alone. Granules of this machine are written into such files once; those of a cluster are exchanged into blocks, and
the driver fetches the one column that was chosen.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from uuid import uuid4

import numpy as np
from pyspark import RDD, SparkContext, SparkFiles

from plar.engines import lanes
from plar.engines.base import Inner
from plar.engines.local import LocalEvaluation
from plar.engines.progress_hooks import Watch
from plar.engines.scoring import Pass, Scorer
from plar.engines.spark.core import Halves, leave_one_out, travellers
from plar.engines.spark.pieces import Coding, Hashes, Piece, bare_granules, hashes, itself
from plar.engines.spark.session import explained, run_watched
from plar.engines.spark.warm import forget_zip_files
from plar.granules import Granules
from plar.labels import label_granules
from plar.measures import Measure
from plar.parallel import in_threads, usable_cores
from plar.partition import Array, Codes, Index, distinct, in_halves
from plar.spark_calls import spark_call
from plar.strata import Table

if TYPE_CHECKING:
    from plar.engines.spark.handle import SparkGranules


#: columns are offered while there are at most this many rows in one column of every block
_OFFER = 1 << 22


class Group(NamedTuple):
    """Attributes whose columns lie together; in lanes where that pays, else column by column."""

    number: int
    attributes: tuple[int, ...]
    n_values: tuple[int, ...]
    in_lanes: bool


#: a group and its columns, 64 lanes or one array each; or the files that hold them, which are gone with their executor
Block: TypeAlias = tuple[Group, Sequence[Array | str]]


class ColumnBlocks(ABC):
    """All granules in the columns layout; made once, for all measures."""

    #: blocks, in files
    stored: RDD[Block]
    #: classes and counts of all granules
    shared: Any

    def __init__(self, context: SparkContext, coding: Coding, n_rows: int) -> None:
        self.context = context
        self.groups = _groups(coding, n_rows, context.defaultParallelism)
        self.group_of = {a: group for group in self.groups for a in group.attributes}
        self.n_tasks = min(context.defaultParallelism, len(self.groups)) or 1

    @abstractmethod
    def remade(self) -> RDD[Block]:
        """Blocks made again, for tasks that do not find their files."""

    def run(self, function: Any, attributes: Collection[int], doing: str, watch: Watch | None = None) -> list[Any]:
        """Run a function on the blocks of attributes; those whose files are not where the task is are made again."""
        tasks = sorted({self.group_of[a].number % self.n_tasks for a in attributes})
        task = partial(_answers, function=function, n=self.n_tasks)
        with explained(doing):
            done = run_watched(self.stored, task, tasks, watch, len(attributes))
            missing = sorted({place for place, answers in done if answers is None})
            if missing:
                done = [(place, answers) for place, answers in done if place not in missing]
                done += run_watched(self.remade(), task, missing, watch, len(attributes))
        return [answer for _, answers in done for answer in answers]

    def scored(
        self, wanted: set[int], now: tuple[Index, Index], scorer: Any, watch: Watch | None, *, offer: bool
    ) -> list[tuple[int, int, Codes | None]]:
        """Θ(D|R∪{a}), but for what has left, of candidates, in one job; U/R is given as (order, starts)."""
        sent = self.context.broadcast(now)
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
            return self.run(task, wanted, "score the candidates", watch)
        finally:
            sent.destroy()

    @spark_call
    def unpersist(self) -> None:
        """Let go of the cluster's memory and files."""
        self.stored.foreach(_remove)
        self.stored.unpersist()
        self.shared.destroy()


# -- granules of this machine ------------------------------------------------------------------------------


class ShippedBlocks(ColumnBlocks):
    """Granules of this machine: every block is written once, to a file here, and read where this disk can be seen.

    Executors that do not see it get their blocks by broadcast, each task its own.
    """

    @spark_call
    def __init__(self, granules: Granules, context: SparkContext) -> None:
        coding = Coding(granules.cardinalities, granules.n_classes)
        super().__init__(context, coding, len(granules))
        self._granules, self._sent = granules, list[Any]()
        self.shared = context.broadcast((granules.classes, granules.counts))
        cells = len(granules) * lanes.LANES
        self._files = list(in_threads(lambda group: _store(self._block(group)), self.groups, cells))
        dealt = [self._files[task :: self.n_tasks] for task in range(self.n_tasks)]
        self.stored = context.parallelize(range(self.n_tasks), self.n_tasks).flatMap(lambda task: dealt[task])

    def _block(self, group: Group) -> Block:
        columns = [self._granules.columns[a] for a in group.attributes]
        return group, [lanes.as_rows(columns)] if group.in_lanes else columns

    def remade(self) -> RDD[Block]:
        """Blocks by broadcast, which from now on are the stored ones."""
        parts = []
        for task in range(self.n_tasks):
            blocks = [self._block(group) for group in self.groups[task :: self.n_tasks]]
            self._sent.append(self.context.broadcast(blocks))
            parts.append(self.context.parallelize([task], 1).flatMap(partial(_received, sent=self._sent[-1])))
        self.stored = self.context.union(parts).map(_store).cache()
        return self.stored

    def unpersist(self) -> None:
        """Let go of the files here, too."""
        super().unpersist()
        for block in self._files:
            _remove(block)
        for sent in self._sent:
            sent.destroy()


class ShippedEvaluation(LocalEvaluation):
    """Granules of this machine, candidates on the cluster; see `plar.engines.base.Evaluation`."""

    def __init__(self, granules: Granules, blocks: ShippedBlocks, measure: Measure, watch: Watch | None) -> None:
        super().__init__(granules, measure, usable_cores(), watch=watch)
        self._shipped = blocks

    with_each = spark_call(LocalEvaluation.with_each)

    def _scored(self, wanted: set[int]) -> Iterable[tuple[int, int]]:
        g, now = self._granules, self._now
        scorer = partial(Scorer, self._measure, g.n_objects, g.n_classes)
        scores = self._shipped.scored(wanted, (now.order, now.starts), scorer, self.watch, offer=False)
        return [(a, theta) for a, theta, _ in scores]


# -- granules of a cluster ---------------------------------------------------------------------------------


class GatheredBlocks(ColumnBlocks):
    """Granules of a cluster: pieces are cut into columns, and exchanged."""

    def __init__(self, pieces: RDD[Piece], coding: Coding, n_rows: int) -> None:
        super().__init__(pieces.context, coding, n_rows)
        halves = in_halves(range(len(coding.cardinalities)), coding.cardinalities)
        cut = partial(_cut, coding=coding, halves=halves, groups=self.groups, n=self.n_tasks)
        parts = pieces.mapPartitionsWithIndex(cut).partitionBy(self.n_tasks + 1, itself)
        self._blocks: RDD[Block] = parts.mapPartitions(partial(_assemble, groups=self.groups))
        self.stored = self._blocks.map(_store).cache()
        every = range(self.n_tasks + 1)  # the last one gets the facts
        with explained("lay the columns out"):
            rows: list[RowFacts] = self.context.runJob(self.stored, _only_facts, every)
        self.sizes = [len(fact.classes) for fact in rows]
        self.classes: Index = np.concatenate([fact.classes for fact in rows])
        self.counts = np.concatenate([fact.counts for fact in rows])
        self.partition = _whole_partition([(fact.order, fact.starts) for fact in rows])
        self.shared = self.context.broadcast((self.classes, self.counts))
        #: rows of each piece that may become equal to others when a column of either half is left out
        keys = [np.concatenate([fact.keys[half] for fact in rows]) for half in (0, 1)]
        self.travellers = travellers(keys, self.partition, self.sizes)
        self.columns = _Fetched(self)

    def remade(self) -> RDD[Block]:
        """Blocks from the pieces."""
        return self._blocks

    def fetch(self, attributes: Sequence[int]) -> dict[int, Codes]:
        """Columns of some attributes, in one job."""
        return dict(self.run(partial(_fetched, attributes=frozenset(attributes)), attributes, "fetch a column"))


class _Fetched(dict[int, Codes]):
    """Columns by attribute, fetched when they are asked for and kept: they are those of R."""

    def __init__(self, blocks: GatheredBlocks) -> None:
        self._blocks = blocks
        #: columns that came unasked, with the last scores
        self.offered: dict[int, Codes] = {}

    def fetch(self, attributes: Iterable[int]) -> None:
        self.update({a: self.offered[a] for a in attributes if a in self.offered})
        if new := [a for a in attributes if a not in self]:
            self.update(self._blocks.fetch(new))

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
        granules = bare_granules(self._fetched, held.blocks.classes, held.blocks.counts, held.coding)
        labels = label_granules(granules, measure, held.blocks.partition)
        super().__init__(granules, measure, labels=labels, watch=watch)

    @spark_call
    def without_each(self, attributes: Sequence[int] | None = None) -> list[Inner]:
        """Θ(D|B∖{a}) for every a of B: on the cluster for C, on the driver for R, whose columns it has."""
        if attributes is not None:
            self._fetched.fetch(attributes)
            return super().without_each(attributes)
        return leave_one_out(self._held, self._measure, self.theta_all, self._gathered.travellers)

    with_each = spark_call(LocalEvaluation.with_each)

    @spark_call
    def select(self, *attributes: int) -> int:
        """R ← R ∪ {a, …}, whose columns come in one job; returns Θ(D|R)."""
        self._fetched.fetch(attributes)
        return super().select(*attributes)

    @spark_call
    def tables(self, candidates: Sequence[int]) -> Iterable[Table]:
        """How the values of each candidate meet the decisions; columns that are not here come in one job."""
        fetched = self._fetched
        here = {a: codes for a, codes in (fetched.offered | fetched).items() if a in candidates}
        if away := [a for a in candidates if a not in here]:
            here |= self._gathered.fetch(away)
        fetched.offered = here
        tables = list(super().tables(candidates))
        for a in candidates:  # which are not in R yet
            fetched.pop(a, None)
        return tables

    def _scored(self, wanted: set[int]) -> Iterable[tuple[int, int]]:
        held, blocks, now = self._held, self._gathered, (self._now.order, self._now.starts)
        scorer = partial(Scorer, self._measure, held.n_objects, held.n_classes)
        # small columns are offered with the scores, which saves the job that fetches the chosen one
        offer = len(blocks.groups) * len(held) <= _OFFER
        scores = blocks.scored(wanted, now, scorer, self.watch, offer=offer)
        self._fetched.offered = {a: codes for a, _, codes in scores if codes is not None}
        return [(a, theta) for a, theta, _ in scores]


def _groups(coding: Coding, n_rows: int, cores: int) -> list[Group]:
    few, others = lanes.lane_groups(coding.cardinalities, n_rows)
    # enough groups of single columns for every core
    size = max(1, min(lanes.LANES, -(-len(others) // cores)))
    found = [(tuple(group), True) for group in few]
    found += [(tuple(others[i : i + size]), False) for i in range(0, len(others), size)]
    return [
        Group(number, attributes, tuple(coding.cardinalities[a] for a in attributes), in_lanes)
        for number, (attributes, in_lanes) in enumerate(found)
    ]


def _whole_partition(parts: Sequence[tuple[Index, Index]]) -> tuple[Index, Index]:
    """U/C of all pieces, those that are alone first, as in each piece."""
    singles, others, sizes, low = [], [], [], 0
    for order, starts in parts:
        widths = np.diff(starts)
        n_alone = int((widths == 1).sum())
        moved = order + np.uint32(low)
        singles.append(moved[:n_alone])
        others.append(moved[n_alone:])
        sizes.append(widths[n_alone:])
        low += len(order)
    alone = np.concatenate(singles)
    every = np.concatenate([np.ones(len(alone), np.uint32), *sizes])
    return np.concatenate([alone, *others]), np.append(0, np.cumsum(every)).astype(np.uint32)


# -- tasks -------------------------------------------------------------------------------------------------


class RowFacts(NamedTuple):
    """What the driver has to know of the rows of a piece."""

    classes: Index
    counts: Array
    #: U/C
    order: Index
    starts: Index
    #: hashes of what stays when an attribute of either half is left out
    keys: tuple[Hashes, Hashes]


def _cut(
    p: int, pieces: Iterable[Piece], coding: Coding, halves: Halves, groups: list[Group], n: int
) -> Iterator[tuple[int, Any]]:
    """Cut a piece into its part of every block, and tell the facts of its rows, to the last partition."""
    for piece in pieces:
        keys = hashes(piece, coding, halves[1]), hashes(piece, coding, halves[0])
        facts = RowFacts(piece.classes, piece.counts, *distinct(piece.coded(coding), piece.n_rows), keys)
        yield n, (-1, p, facts)
        for group in groups:
            yield group.number % n, (group.number, p, [piece.column(coding, a) for a in group.attributes])


def _assemble(records: Iterable[tuple[int, Any]], groups: list[Group]) -> Iterator[Any]:
    """Put the parts of each block together, in the order of the pieces; facts come in that order, too."""
    parts: dict[int, list[Any]] = {}
    for _, (number, p, held) in records:
        parts.setdefault(number, []).append((p, held))
    for number in sorted(parts):
        found = [held for _, held in sorted(parts.pop(number), key=lambda part: part[0])]
        if number < 0:
            yield from found
            continue
        group = groups[number]
        columns = [np.concatenate(of_pieces) for of_pieces in zip(*found, strict=True)]
        yield group, [lanes.as_rows(columns)] if group.in_lanes else columns


def _only_facts(records: Iterable[Any]) -> list[RowFacts]:
    return [record for record in records if isinstance(record, RowFacts)]


def _store(block: Any) -> Any:
    """Write a block into files; facts stay as they are."""
    if isinstance(block, RowFacts):
        return block
    group, arrays = block
    name = f"plar-{uuid4().hex}-{group.number}"
    paths = [str(Path(SparkFiles.getRootDirectory(), f"{name}-{k}.npy")) for k in range(len(arrays))]
    for path, array in zip(paths, arrays, strict=True):
        np.save(path, array)
    return group, paths


def _received(_: int, sent: Any) -> list[Block]:
    blocks: list[Block] = sent.value
    return blocks


def _remove(stored: Any) -> None:
    for path in () if isinstance(stored, RowFacts) else stored[1]:
        Path(str(path)).unlink(missing_ok=True)


#: the blocks that a worker has mapped last: their files, which all have names of their own
_mapped: dict[str, Array] = {}
_MOST_MAPPED = 4096


def _map(path: str) -> Array:
    """Map a file into memory; it stays mapped for the next steps."""
    if path not in _mapped:
        if len(_mapped) >= _MOST_MAPPED or not all(map(os.path.exists, list(_mapped)[:1])):
            _mapped.clear()  # of blocks that are gone
        _mapped[path] = np.load(path, mmap_mode="r")
    return _mapped[path]


def _answers(records: Iterable[Block], function: Any, n: int) -> Iterator[tuple[int, list[Any] | None]]:
    """Map files into memory and run the function; None where they are not."""
    forget_zip_files()
    for group, held in records:
        try:
            arrays = [_map(array) if isinstance(array, str) else array for array in held]
        except OSError:
            yield group.number % n, None
        else:
            yield group.number % n, list(function(group, arrays))


def _fetched(group: Group, arrays: Sequence[Array], attributes: frozenset[int]) -> Iterator[tuple[int, Codes]]:
    for k, a in enumerate(group.attributes):
        if a in attributes:
            yield a, np.ascontiguousarray(arrays[0][:, k] if group.in_lanes else arrays[k])


#: the pass of the present iteration, shared by the tasks of a worker
_present: dict[Any, tuple[Pass, Index]] = {}
#: room for the rows of a block, kept from one iteration to the next: memory that was never touched is slow
_rooms: list[lanes.Rows] = []
_MOST_ROOM = 1 << 28


def _room(n_rows: int) -> lanes.Rows:
    if not _rooms or len(_rooms[0]) < n_rows:
        _rooms[:] = [lanes.aligned(n_rows)]
    return _rooms[0][:n_rows] if _rooms[0].nbytes <= _MOST_ROOM else _rooms.pop()


def _scores(
    group: Group, arrays: Any, shared: Any, now: Any, wanted: frozenset[int], scorer: Any, token: Any, offer: bool
) -> list[tuple[int, int, Codes | None]]:
    """Θ(D|R∪{a}), but for what has left, for the candidates of a block; the column of the best may be offered."""
    if token not in _present:
        _present.clear()
        classes, counts = shared.value
        order, starts = now.value
        over = Pass(scorer(), classes, counts, order, starts)
        _present[token] = over, order
    over, order = _present[token]
    if group.in_lanes:
        room = _room(len(order))
        lanes.permute(arrays[0], order, room)
        thetas = zip(group.attributes, over.block(room, max(group.n_values)), strict=False)
        scores = [(a, theta) for a, theta in thetas if a in wanted]
    else:
        columns = zip(group.attributes, arrays, group.n_values, strict=True)
        scores = [(a, over.column(codes, n)) for a, codes, n in columns if a in wanted]
    best = min(scores, key=lambda score: (score[1], score[0]))[0] if offer and scores else None
    offered = {} if best is None else dict(_fetched(group, arrays, frozenset([best])))
    return [(a, theta, offered.get(a)) for a, theta in scores]
