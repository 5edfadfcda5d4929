"""Θ(D|C∖{a}) for every attribute at once, exactly, in one job: rows that agree on half of C meet in one task.

Leaving out an attribute of one half keeps the other half whole, so rows that become equal agree on that other
half. Only rows that share a half with a row of another class of U/C have to meet. Hashes find them (a
collision only costs a transfer), and the local engine's leave-one-out does the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyspark import RDD

from plar.engines.base import LeaveOneOut
from plar.engines.local.engine import LocalEvaluation
from plar.engines.spark.pieces import (
    Cardinalities,
    Hashes,
    Piece,
    as_granules,
    bucket_rows,
    concat_pieces,
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
    granules: SparkGranules, measure: Measure, theta_all: int, movers: Sequence[list[RowsToMove]] | None = None
) -> list[LeaveOneOut]:
    """Leave out each condition in turn; `movers` are the rows to send, by piece, if already found."""
    coding = granules.coding
    n = len(granules.sizes)
    attributes = range(len(coding.cardinalities))
    if movers is not None and not any(len(rows) for of_piece in movers for _, rows in of_piece):
        return [LeaveOneOut(theta_all, True) for _ in attributes]
    moved = _pieces_with_movers(granules, movers).flatMap(partial(_send, coding=coding, n=n))
    task = partial(_leave_out, coding=coding, measure=measure)
    with explained("find the core"):
        parts = moved.partitionBy(2 * n, int).mapPartitions(task).collect()
    change = dict.fromkeys(attributes, 0)
    unequal = set()
    for a, difference, is_settled in parts:
        change[a] += difference
        if not is_settled:
            unequal.add(a)
    if measure.kind == OWN:
        unequal = {a for a in attributes if change[a]}
    return [
        LeaveOneOut(theta_all + change[a], False) if a in unequal else LeaveOneOut(theta_all, True) for a in attributes
    ]


def _pieces_with_movers(
    granules: SparkGranules, movers: Sequence[list[RowsToMove]] | None
) -> RDD[tuple[Piece, list[RowsToMove]]]:
    """Each piece with its rows to send; a shuffle finds these if they are not given."""
    pieces = granules.pieces
    if movers is not None:
        return pieces.mapPartitionsWithIndex(partial(_with_movers, movers=movers))
    n = len(granules.sizes)
    keys = pieces.mapPartitionsWithIndex(partial(_keys, coding=granules.coding, n=n))
    by_key = keys.partitionBy(2 * n, int)
    by_piece = by_key.mapPartitions(_shared).partitionBy(n, int)
    return pieces.zip(by_piece.values().glom())


def rows_to_move(
    keys: Sequence[Hashes], partition: tuple[Index, Index], sizes: Sequence[int]
) -> list[list[RowsToMove]]:
    """Rows of each piece that share a key with a row of another class of U/C; `keys` are those of all rows, by half."""
    numbers = class_numbers(*partition)
    ends = np.cumsum(sizes)[:-1]
    movers: list[list[RowsToMove]] = [[] for _ in sizes]
    for half, of_half in enumerate(keys):
        for of_piece, moves in zip(movers, np.split(_meets_another(of_half, numbers), ends), strict=True):
            of_piece.append((half, np.flatnonzero(moves).astype(np.uint32)))
    return movers


def _meets_another(keys: Hashes, numbers: Hashes) -> NDArray[np.bool_]:
    """Whether each row shares its key with a row that has a different number."""
    order = np.argsort(keys)
    firsts = np.flatnonzero(np.append(True, np.diff(keys[order]) != 0))
    by_key = numbers[order]
    is_mixed = np.minimum.reduceat(by_key, firsts) < np.maximum.reduceat(by_key, firsts)
    meets = np.empty(len(keys), np.bool_)
    meets[order] = np.repeat(is_mixed, np.diff(np.append(firsts, len(keys))))
    return meets


class _HalfKeys(NamedTuple):
    """Rows of a piece, with the hash of one of their halves and the numbers of their classes of U/C."""

    piece: int
    rows: Index
    keys: Hashes
    numbers: Hashes


def _with_movers(
    number: int, pieces: Iterable[Piece], movers: Sequence[list[RowsToMove]]
) -> Iterator[tuple[Piece, list[RowsToMove]]]:
    for piece in pieces:
        yield piece, movers[number]


def _keys(number: int, pieces: Iterable[Piece], coding: Cardinalities, n: int) -> Iterator[tuple[int, _HalfKeys]]:
    """Hash each half of a row, and add the row's class of U/C."""
    for piece in pieces:
        numbers = class_numbers(*distinct(piece.coded(coding), piece.n_rows)) + np.uint64(number << 32)
        for half in (0, 1):
            if coding.halves[half]:
                keys = hashes(piece, coding, coding.halves[1 - half])
                for bucket, rows in bucket_rows(keys, n):
                    yield 2 * bucket + half, _HalfKeys(number, rows, keys[rows], numbers[rows])


def _shared(records: Iterable[tuple[int, _HalfKeys]]) -> Iterator[tuple[int, RowsToMove]]:
    """Rows that share a key with a row of another class of U/C, sent back to their piece."""
    parts = list(records)
    if not parts:
        return
    keys = np.concatenate([part.keys for _, part in parts])
    numbers = np.concatenate([part.numbers for _, part in parts])
    moves = _meets_another(keys, numbers)
    low = 0
    for bucket, part in parts:
        high = low + len(part.rows)
        yield part.piece, (bucket % 2, part.rows[moves[low:high]])
        low = high


def _send(
    piece_and_movers: tuple[Piece, list[RowsToMove]], coding: Cardinalities, n: int
) -> Iterator[tuple[int, Piece]]:
    piece, movers = piece_and_movers
    for half in (0, 1):
        of_half = [rows for side, rows in movers if side == half]
        if of_half and coding.halves[half]:
            moved = piece.rows(np.sort(np.concatenate(of_half)))
            for bucket, rows in split_by_hash(moved, coding, n, coding.halves[1 - half]):
                yield 2 * bucket + half, rows


def _leave_out(
    records: Iterable[tuple[int, Piece]], coding: Cardinalities, measure: Measure
) -> Iterator[tuple[int, int, bool]]:
    """How much Θ changes here when an attribute is left out, and whether all classes stay settled."""
    parts = list(records)
    if not parts:
        return
    half = parts[0][0] % 2
    piece = concat_pieces([part for _, part in parts], coding)
    evaluation = LocalEvaluation(as_granules(piece, coding), measure)
    for a, (theta, is_settled) in evaluation.leave_out(coding.halves[half], coding.halves[1 - half]).items():
        if theta != evaluation.theta_all or not is_settled:
            yield a, theta - evaluation.theta_all, is_settled
