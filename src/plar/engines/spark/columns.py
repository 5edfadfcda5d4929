"""The columns layout: a block is some columns of all granules, and an iteration is one job without a shuffle.

The driver refines U/R, for which it fetches the one column that was chosen, and broadcasts its classes; every task
scores its columns with the local kernels. Blocks lie in files beside the executor that made them and are mapped into
the memory of its workers: reading them costs nothing, and a task is a function of (block, U/R) alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from uuid import uuid4

import numpy as np
from pyspark import RDD, SparkFiles

from plar.engines import lanes
from plar.engines.base import Inner
from plar.engines.local import LocalEvaluation
from plar.engines.progress_hooks import Watch
from plar.engines.scoring import Pass, Scorer
from plar.engines.spark.core import leave_one_out
from plar.engines.spark.granulate import itself
from plar.engines.spark.pieces import Coding, Piece, bare_granules
from plar.engines.spark.session import explained, run_watched
from plar.labels import label_granules
from plar.measures import Measure
from plar.partition import Array, Codes, Index, distinct
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


class ColumnBlocks:
    """All granules in the columns layout; made once, for all measures."""

    def __init__(self, held: SparkGranules) -> None:
        coding, n = held.coding, len(held.sizes)
        self.groups = _groups(coding, len(held), n)
        self.group_of = {a: group for group in self.groups for a in group.attributes}
        self.n_tasks = min(n, len(self.groups)) or 1
        cut = held.pieces.mapPartitionsWithIndex(partial(_cut, coding=coding, groups=self.groups, n=self.n_tasks))
        parts = cut.partitionBy(self.n_tasks, itself)
        self.blocks: RDD[Block] = parts.mapPartitions(partial(_assemble, groups=self.groups))
        self.stored: RDD[Block] = self.blocks.map(_store).cache()
        with explained("lay the columns out"):
            self.stored.count()
            rows = held.pieces.map(partial(_row_facts, coding=coding)).collect()
        self.classes: Index = np.concatenate([classes for classes, *_ in rows])
        self.counts = np.concatenate([counts for _, counts, *_ in rows])
        self.partition = _whole_partition([(order, starts) for _, _, order, starts in rows])
        self.shared = held.pieces.context.broadcast((self.classes, self.counts))

    def fetch(self, attributes: Sequence[int]) -> dict[int, Codes]:
        """Columns of some attributes, in one job."""
        return dict(self.run(partial(_fetched, attributes=frozenset(attributes)), attributes, "fetch a column"))

    def run(self, function: Any, attributes: Collection[int], doing: str, watch: Watch | None = None) -> list[Any]:
        """Run a function on the blocks of attributes; those whose files are not where the task is are made again."""
        tasks = sorted({self.group_of[a].number % self.n_tasks for a in attributes})
        task = partial(_answers, function=function, n=self.n_tasks)
        with explained(doing):
            done = run_watched(self.stored, task, tasks, watch, len(attributes))
            missing = sorted({place for place, answers in done if answers is None})
            if missing:
                done = [(place, answers) for place, answers in done if place not in missing]
                done += run_watched(self.blocks, task, missing, watch, len(attributes))
        return [answer for _, answers in done for answer in answers]

    @spark_call
    def unpersist(self) -> None:
        """Let go of the cluster's memory and files."""
        self.stored.foreach(_remove)
        self.stored.unpersist()
        self.shared.destroy()


class _Fetched(dict[int, Codes]):
    """Columns by attribute, fetched when they are asked for and kept: they are those of R."""

    def __init__(self, blocks: ColumnBlocks) -> None:
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
            held.blocks = ColumnBlocks(held)
        self._held, self._column_blocks = held, held.blocks
        self._fetched = _Fetched(held.blocks)
        granules = bare_granules(self._fetched, held.blocks.classes, held.blocks.counts, held.coding)
        labels = label_granules(granules, measure, held.blocks.partition)
        super().__init__(granules, measure, labels=labels, watch=watch)

    @spark_call
    def without_each(self, attributes: Sequence[int] | None = None) -> list[Inner]:
        """Θ(D|B∖{a}) for every a of B: on the cluster for C, on the driver for R, whose columns it has."""
        if attributes is not None:
            self._fetched.fetch(attributes)
            return super().without_each(attributes)
        return leave_one_out(self._held, self._measure, self.theta_all)

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
            here |= self._column_blocks.fetch(away)
        fetched.offered = here
        tables = list(super().tables(candidates))
        for a in candidates:  # which are not in R yet
            fetched.pop(a, None)
        return tables

    def _scored(self, wanted: set[int]) -> Iterable[tuple[int, int]]:
        blocks, held = self._column_blocks, self._held
        now = held.pieces.context.broadcast((self._now.order, self._now.starts))
        task = partial(
            _scores,
            shared=blocks.shared,
            now=now,
            wanted=frozenset(wanted),
            scorer=partial(Scorer, self._measure, held.n_objects, held.n_classes),
            token=uuid4(),
            # small columns are offered with the scores, which saves the job that fetches the chosen one
            offer=len(blocks.groups) * len(held) <= _OFFER,
        )
        try:
            scores = blocks.run(task, wanted, "score the candidates", self.watch)
        finally:
            now.destroy()
        self._fetched.offered = {a: codes for a, _, codes in scores if codes is not None}
        return [(a, theta) for a, theta, _ in scores]


def _groups(coding: Coding, n_rows: int, n_pieces: int) -> list[Group]:
    few, others = lanes.lane_groups(coding.cardinalities, n_rows)
    # enough groups of single columns for every task
    size = max(1, min(lanes.LANES, -(-len(others) // n_pieces)))
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


def _row_facts(piece: Piece, coding: Coding) -> tuple[Index, Array, Index, Index]:
    return piece.classes, piece.counts, *distinct(piece.coded(coding), piece.n_rows)


def _cut(p: int, pieces: Iterable[Piece], coding: Coding, groups: list[Group], n: int) -> Iterator[tuple[int, Any]]:
    """Cut a piece into its part of every block."""
    for piece in pieces:
        for group in groups:
            yield group.number % n, (group.number, p, [piece.column(coding, a) for a in group.attributes])


def _assemble(records: Iterable[tuple[int, Any]], groups: list[Group]) -> Iterator[Block]:
    """Put the parts of each block together, in the order of the pieces."""
    parts: dict[int, list[Any]] = {}
    for _, (number, p, columns) in records:
        parts.setdefault(number, []).append((p, columns))
    for number in sorted(parts):
        group = groups[number]
        found = [columns for _, columns in sorted(parts.pop(number), key=lambda part: part[0])]
        columns = [np.concatenate(of_pieces) for of_pieces in zip(*found, strict=True)]
        yield group, [lanes.as_rows(columns)] if group.in_lanes else columns


def _store(block: Block) -> Block:
    group, arrays = block
    name = f"plar-{uuid4().hex}-{group.number}"
    paths = [str(Path(SparkFiles.getRootDirectory(), f"{name}-{k}.npy")) for k in range(len(arrays))]
    for path, array in zip(paths, arrays, strict=True):
        np.save(path, array)
    return group, paths


def _remove(stored: Block) -> None:
    for path in stored[1]:
        Path(str(path)).unlink(missing_ok=True)


def _answers(records: Iterable[Block], function: Any, n: int) -> Iterator[tuple[int, list[Any] | None]]:
    """Map files into memory and run the function; None where they are not."""
    for group, held in records:
        try:
            arrays = [np.load(array, mmap_mode="r") if isinstance(array, str) else array for array in held]
        except OSError:
            yield group.number % n, None
        else:
            yield group.number % n, list(function(group, arrays))


def _fetched(group: Group, arrays: Sequence[Array], attributes: frozenset[int]) -> Iterator[tuple[int, Codes]]:
    for k, a in enumerate(group.attributes):
        if a in attributes:
            yield a, np.ascontiguousarray(arrays[0][:, k] if group.in_lanes else arrays[k])


#: the pass of the present iteration, shared by the tasks of a worker
_present: dict[Any, tuple[Pass, Index, Any]] = {}


def _scores(
    group: Group, arrays: Any, shared: Any, now: Any, wanted: frozenset[int], scorer: Any, token: Any, offer: bool
) -> list[tuple[int, int, Codes | None]]:
    """Θ(D|R∪{a}), but for what has left, for the candidates of a block; the column of the best may be offered."""
    if token not in _present:
        _present.clear()
        classes, counts = shared.value
        order, starts = now.value
        over = Pass(scorer(), classes, counts, order, starts)
        _present[token] = over, order, lanes.aligned(len(order))
    over, order, room = _present[token]
    if group.in_lanes:
        lanes.permute(arrays[0], order, room)
        thetas = zip(group.attributes, over.block(room, max(group.n_values)), strict=False)
        scores = [(a, theta) for a, theta in thetas if a in wanted]
    else:
        columns = zip(group.attributes, arrays, group.n_values, strict=True)
        scores = [(a, over.column(codes, n)) for a, codes, n in columns if a in wanted]
    best = min(scores, key=lambda score: (score[1], score[0]))[0] if offer and scores else None
    offered = {} if best is None else dict(_fetched(group, arrays, frozenset([best])))
    return [(a, theta, offered.get(a)) for a, theta in scores]
