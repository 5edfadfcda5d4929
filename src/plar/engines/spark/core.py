"""Θ(D|C∖{a}) for every attribute at once, exactly, in one job: rows that agree on half of C meet in one task.

Leaving out an attribute of one half keeps the other half whole, so rows that become equal agree on that other half.
Only rows that share a half with a row of another class of U/C have to meet. Hashes find them (a collision only costs
a transfer), and the local engine's leave-one-out does the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from plar.engines.base import LeaveOneOut
from plar.engines.local.engine import LocalEvaluation
from plar.engines.spark.partitions import (
    Cardinalities,
    GranulePartition,
    Hashes,
    as_granules,
    bucket_rows,
    concat_partitions,
    hashes,
    split_by_hash,
)
from plar.engines.spark.session import explained
from plar.grouping.partition import Index, class_numbers, distinct
from plar.measures import OWN, Measure

if TYPE_CHECKING:
    from plar.engines.spark.spark_granules import SparkGranules


#: a half, and the rows of a piece that have to be sent for it
RowsToMove: TypeAlias = tuple[int, Index]


def leave_one_out(
    held: SparkGranules, measure: Measure, theta_all: int, known: Sequence[list[RowsToMove]] | None = None
) -> list[LeaveOneOut]:
    """Leave out each condition in turn; `known` are the rows to send, by piece, if already found."""
    coding, n = held.coding, len(held.sizes)
    attributes = range(len(coding.cardinalities))
    if known is not None:
        if not any(len(rows) for own in known for _, rows in own):
            return [LeaveOneOut(theta_all, True) for _ in attributes]
        joined = held.pieces.mapPartitionsWithIndex(lambda p, pieces: ((piece, known[p]) for piece in pieces))
    else:
        keys = held.pieces.mapPartitionsWithIndex(partial(_keys, coding=coding, n=n))
        found = keys.partitionBy(2 * n, int).mapPartitions(_shared).partitionBy(n, int).values().glom()
        joined = held.pieces.zip(found)
    moved = joined.flatMap(partial(_send, coding=coding, n=n))
    task = partial(_leave_out, coding=coding, measure=measure)
    with explained("find the core"):
        parts = moved.partitionBy(2 * n, int).mapPartitions(task).collect()
    change, unequal = dict.fromkeys(attributes, 0), set()
    for a, difference, settled in parts:
        change[a] += difference
        if not settled:
            unequal.add(a)
    if measure.kind == OWN:
        unequal = {a for a in attributes if change[a]}
    return [
        LeaveOneOut(theta_all + change[a], False) if a in unequal else LeaveOneOut(theta_all, True) for a in attributes
    ]


def rows_to_move(
    keys: Sequence[Hashes], partition: tuple[Index, Index], sizes: Sequence[int]
) -> list[list[RowsToMove]]:
    """Rows of each piece that share a key with a row of another class of U/C; `keys` are those of all rows, by half."""
    numbers, ends = class_numbers(*partition), np.cumsum(sizes)[:-1]
    found: list[list[RowsToMove]] = [[] for _ in sizes]
    for half, own in enumerate(keys):
        for p, part in enumerate(np.split(_meets_another(own, numbers), ends)):
            found[p].append((half, np.flatnonzero(part).astype(np.uint32)))
    return found


def _meets_another(keys: Hashes, numbers: Hashes) -> NDArray[np.bool_]:
    """Whether each row shares its key with a row that has a different number."""
    order = np.argsort(keys)
    firsts = np.flatnonzero(np.append(True, np.diff(keys[order]) != 0))
    by_key = numbers[order]
    mixed = np.minimum.reduceat(by_key, firsts) < np.maximum.reduceat(by_key, firsts)
    found = np.empty(len(keys), np.bool_)
    found[order] = np.repeat(mixed, np.diff(np.append(firsts, len(keys))))
    return found


def _keys(p: int, pieces: Iterable[GranulePartition], coding: Cardinalities, n: int) -> Iterator[tuple[int, Any]]:
    """Hash each half of a row, and add the row's class of U/C."""
    for piece in pieces:
        numbers = class_numbers(*distinct(piece.coded(coding), piece.n_rows)) + np.uint64(p << 32)
        for half in (0, 1):
            if coding.halves[half]:
                keys = hashes(piece, coding, coding.halves[1 - half])
                for bucket, rows in bucket_rows(keys, n):
                    yield 2 * bucket + half, (p, rows, keys[rows], numbers[rows])


def _shared(records: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, RowsToMove]]:
    """Rows that share a key with a row of another class of U/C, sent back to their piece."""
    met = list(records)
    if not met:
        return
    keys, numbers = (np.concatenate([part[i] for _, part in met]) for i in (2, 3))
    travels = _meets_another(keys, numbers)
    low = 0
    for bucket, (p, rows, _, _) in met:
        yield p, (bucket % 2, rows[travels[low : low + len(rows)]])
        low += len(rows)


def _send(
    joined: tuple[GranulePartition, list[RowsToMove]], coding: Cardinalities, n: int
) -> Iterator[tuple[int, GranulePartition]]:
    piece, movers = joined
    for half in (0, 1):
        chosen = [rows for side, rows in movers if side == half]
        if chosen and coding.halves[half]:
            some = piece.rows(np.sort(np.concatenate(chosen)))
            for bucket, rows in split_by_hash(some, coding, n, coding.halves[1 - half]):
                yield 2 * bucket + half, rows


def _leave_out(
    records: Iterable[tuple[int, GranulePartition]], coding: Cardinalities, measure: Measure
) -> Iterator[tuple[int, int, bool]]:
    """How much Θ changes here when an attribute is left out, and whether all classes stay settled."""
    met = list(records)
    if not met:
        return
    half = met[0][0] % 2
    evaluation = LocalEvaluation(as_granules(concat_partitions([piece for _, piece in met], coding), coding), measure)
    for a, (theta, settled) in evaluation.leave_out(coding.halves[half], coding.halves[1 - half]).items():
        if theta != evaluation.theta_all or not settled:
            yield a, theta - evaluation.theta_all, settled
