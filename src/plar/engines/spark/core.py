"""Θ(D|C∖{a}) for every attribute at once, exactly, in one job: rows that agree on half of C meet in one task.

To leave out an attribute of one half, the other half stays: rows that become equal agree on it. So only rows that
share a half with a row of another class of U/C have to meet; hashes find them (a collision only costs a transfer),
and the local engine's leave-one-out does the rest where they meet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from plar.engines.base import Inner
from plar.engines.local import LocalEvaluation
from plar.engines.spark.granulate import itself
from plar.engines.spark.pieces import Coding, Hashes, Piece, as_granules, dealt, hashes, joined_pieces
from plar.engines.spark.session import explained
from plar.measures import OWN, Measure
from plar.partition import Index, distinct, in_halves

if TYPE_CHECKING:
    from plar.engines.spark.handle import SparkGranules


Halves: TypeAlias = tuple[Sequence[int], Sequence[int]]
#: for each half, the rows of a piece that have to travel
Travellers: TypeAlias = tuple[Index, Index]
#: in a table of fewer cells all rows travel: finding out who has to would take longer
_FEW_CELLS = 1 << 22


def leave_one_out(held: SparkGranules, measure: Measure, theta_all: int) -> list[Inner]:
    """Leave out every condition, each alone."""
    coding, n = held.coding, len(held.sizes)
    attributes = range(len(coding.cardinalities))
    halves = in_halves(attributes, coding.cardinalities)
    send = partial(_send, coding=coding, halves=halves, n=n)
    if len(held) * len(attributes) <= _FEW_CELLS:
        moved = held.pieces.map(_everybody).flatMap(send)
    else:
        keys = held.pieces.mapPartitionsWithIndex(partial(_keys, coding=coding, halves=halves, n=n))
        shared = keys.partitionBy(n, itself).mapPartitions(_shared)
        travellers = shared.partitionBy(n, itself).mapPartitions(_gathered)
        moved = held.pieces.zip(travellers).flatMap(send)
    task = partial(_leave_out, coding=coding, halves=halves, measure=measure)
    with explained("find the core"):
        parts = moved.partitionBy(2 * n, itself).mapPartitions(task).collect()
    change, unequal = dict.fromkeys(attributes, 0), set()
    for a, difference, settled in parts:
        change[a] += difference
        if not settled:
            unequal.add(a)
    if measure.kind == OWN:
        unequal = {a for a in attributes if change[a]}
    return [Inner(theta_all + change[a], False) if a in unequal else Inner(theta_all, True) for a in attributes]


def _everybody(piece: Piece) -> tuple[Piece, Travellers]:
    rows = np.arange(piece.n_rows, dtype=np.uint32)
    return piece, (rows, rows)


def _keys(p: int, pieces: Iterable[Piece], coding: Coding, halves: Halves, n: int) -> Iterator[tuple[int, Any]]:
    """What a row has in each half, hashed, and its class of U/C."""
    for piece in pieces:
        order, starts = distinct(piece.coded(coding), piece.n_rows)
        numbers = np.empty(piece.n_rows, np.uint64)
        numbers[order] = np.repeat(np.arange(len(starts) - 1, dtype=np.uint64), np.diff(starts))
        numbers += np.uint64(p << 32)
        for half in (0, 1):
            if halves[half]:
                keys = hashes(piece, coding, halves[1 - half])
                for bucket, rows in dealt(keys, n):
                    yield bucket, (p, half, rows, keys[rows], numbers[rows])


def _shared(records: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
    """Rows that share a key with a row of another class of U/C, sent back to their piece."""
    parts = [part for _, part in records]
    for half in (0, 1):
        mine = [part for part in parts if part[1] == half]
        if not mine:
            continue
        keys: Hashes = np.concatenate([part[3] for part in mine])
        numbers: Hashes = np.concatenate([part[4] for part in mine])
        order = np.argsort(keys)
        firsts = np.flatnonzero(np.append(True, np.diff(keys[order]) != 0))
        by_key = numbers[order]
        mixed = np.minimum.reduceat(by_key, firsts) < np.maximum.reduceat(by_key, firsts)
        travels = np.empty(len(keys), np.bool_)
        travels[order] = np.repeat(mixed, np.diff(np.append(firsts, len(keys))))
        low = 0
        for p, _, rows, _, _ in mine:
            chosen = rows[travels[low : low + len(rows)]]
            low += len(rows)
            if len(chosen):
                yield p, (half, chosen)


def _gathered(records: Iterable[tuple[int, Any]]) -> Iterator[Travellers]:
    found: tuple[list[Index], list[Index]] = ([], [])
    for _, (half, rows) in records:
        found[half].append(rows)
    first, second = (np.concatenate([*rows, np.empty(0, np.uint32)]) for rows in found)
    yield first, second


def _send(joined: tuple[Piece, Travellers], coding: Coding, halves: Halves, n: int) -> Iterator[tuple[int, Piece]]:
    piece, travellers = joined
    for half, chosen in enumerate(travellers):
        if len(chosen) and halves[half]:
            some = piece.rows(np.sort(chosen))
            for bucket, rows in dealt(hashes(some, coding, halves[1 - half]), n):
                yield 2 * bucket + half, some.rows(rows)


def _leave_out(
    records: Iterable[tuple[int, Piece]], coding: Coding, halves: Halves, measure: Measure
) -> Iterator[tuple[int, int, bool]]:
    """By how much Θ changes here when an attribute is left out, and whether all classes stay settled."""
    met = list(records)
    if not met:
        return
    half = met[0][0] % 2
    evaluation = LocalEvaluation(as_granules(joined_pieces([piece for _, piece in met], coding), coding), measure)
    for a, (theta, settled) in evaluation.leave_out(halves[half], halves[1 - half]).items():
        if theta != evaluation.theta_all or not settled:
            yield a, theta - evaluation.theta_all, settled
