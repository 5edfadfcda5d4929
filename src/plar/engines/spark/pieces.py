"""Pieces: the granules that one task holds, as a few matrices of codes, and what tasks do with them.

Rows with equal conditions are always in one piece, so no class of U/C spans pieces and labels need no shuffle.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyspark import RDD

from plar.coding.assemble import merge_equal
from plar.granules.granules import Granules
from plar.grouping.factorize import mix
from plar.grouping.partition import Codes, Index, in_halves
from plar.runtime.jit import jit

Hashes = NDArray[np.uint64]

#: types of codes, a matrix for each; and how many values the codes of all but the last distinguish
_TYPES: tuple[type[np.unsignedinteger[Any]], ...] = (np.uint8, np.uint16, np.uint32)
_MOST_VALUES = (1 << 8, 1 << 16)


@dataclass(frozen=True)
class Cardinalities:
    """Number of values of every attribute, which determines where its codes are in a piece."""

    cardinalities: tuple[int, ...]
    n_decisions: int

    @cached_property
    def places(self) -> tuple[tuple[int, int], ...]:
        """Matrix and row of the matrix, by attribute."""
        n_rows = [0] * len(_TYPES)
        places = []
        for n in self.cardinalities:
            matrix = bisect_left(_MOST_VALUES, n)
            places.append((matrix, n_rows[matrix]))
            n_rows[matrix] += 1
        return tuple(places)

    @cached_property
    def halves(self) -> tuple[list[int], list[int]]:
        """Two halves of the attributes: to leave out one of either half keeps the other half whole."""
        return in_halves(range(len(self.cardinalities)), self.cardinalities)

    def of(self, attributes: Sequence[int]) -> Cardinalities:
        """Cardinalities of a subset of the attributes."""
        return Cardinalities(tuple(self.cardinalities[a] for a in attributes), self.n_decisions)


class Piece(NamedTuple):
    """The granules that one task holds."""

    #: codes of one, two and four bytes, a row of the matrix per attribute
    matrices: tuple[Codes, ...]
    decision_codes: Index
    counts: NDArray[np.int64]

    @property
    def n_rows(self) -> int:
        """Number of granules."""
        return len(self.counts)

    @property
    def nbytes(self) -> int:
        """Bytes of its codes, decisions and counts."""
        return sum(array.nbytes for array in (*self.matrices, self.decision_codes, self.counts))

    def column(self, coding: Cardinalities, attribute: int) -> Codes:
        """Codes of an attribute."""
        matrix, row = coding.places[attribute]
        codes: Codes = self.matrices[matrix][row]
        return codes

    def columns(self, coding: Cardinalities) -> tuple[Codes, ...]:
        """Codes of all attributes."""
        return tuple(self.column(coding, a) for a in range(len(coding.cardinalities)))

    def coded(self, coding: Cardinalities, attributes: Iterable[int] | None = None) -> Iterator[tuple[Codes, int]]:
        """Codes, and number of distinct codes, of some attributes; by default of all."""
        for a in range(len(coding.cardinalities)) if attributes is None else attributes:
            yield self.column(coding, a), coding.cardinalities[a]

    def rows(self, rows: NDArray[Any]) -> Piece:
        """Select granules by a mask or by position."""
        places = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        matrices = tuple(np.take(matrix, places, axis=1) for matrix in self.matrices)  # far faster than indexing
        return Piece(matrices, self.decision_codes[places], self.counts[places])


def pack_codes(
    columns: Iterable[NDArray[Any]], decision_codes: NDArray[Any], counts: NDArray[np.int64], coding: Cardinalities
) -> Piece:
    """Pack columns of codes into a piece.

    >>> coding = Cardinalities((2, 300), n_decisions=2)
    >>> piece = pack_codes([np.array([0, 1]), np.array([299, 0])], np.array([1, 0]), np.array([1, 1]), coding)
    >>> piece.column(coding, 1).tolist(), piece.matrices[1].dtype
    ([299, 0], dtype('uint16'))
    """
    n_columns = Counter(matrix for matrix, _ in coding.places)
    matrices = [np.empty((n_columns[number], len(counts)), dtype) for number, dtype in enumerate(_TYPES)]
    for (matrix, row), column in zip(coding.places, columns, strict=True):
        matrices[matrix][row] = column
    return Piece(tuple(matrices), decision_codes.astype(np.uint32, copy=False), counts)


def concat_pieces(pieces: Sequence[Piece], coding: Cardinalities) -> Piece:
    """Concatenate pieces."""
    if not pieces:
        no_rows = np.empty(0, np.int64)
        return pack_codes([no_rows] * len(coding.cardinalities), no_rows, no_rows, coding)
    if len(pieces) == 1:
        return pieces[0]
    matrices = zip(*(piece.matrices for piece in pieces), strict=True)
    return Piece(
        matrices=tuple(np.concatenate(same_type, axis=1) for same_type in matrices),
        decision_codes=np.concatenate([piece.decision_codes for piece in pieces]),
        counts=np.concatenate([piece.counts for piece in pieces]),
    )


def project(piece: Piece, coding: Cardinalities, attributes: Sequence[int]) -> Piece:
    """Keep only these attributes, and merge equal granules."""
    coarse = coding.of(attributes)
    columns = (piece.column(coding, a) for a in attributes)
    return merge_equal_granules(pack_codes(columns, piece.decision_codes, piece.counts, coarse), coarse)


def merge_equal_granules(piece: Piece, coding: Cardinalities) -> Piece:
    """Merge equal granules, in an order that depends on the rows alone: a lost piece is recomputed identically."""
    first, counts, _ = merge_equal(piece.coded(coding), [(piece.decision_codes, coding.n_decisions)], piece.counts)
    if first is not None:
        piece = piece.rows(first)._replace(counts=counts)
    return piece.rows(np.lexsort((piece.decision_codes, hashes(piece, coding))))


def as_granules(piece: Piece, coding: Cardinalities) -> Granules:
    """A piece in the form the local engine takes."""
    return bare_granules(piece.columns(coding), piece.decision_codes, piece.counts, coding)


def bare_granules(
    columns: Sequence[Codes], decision_codes: Index, counts: NDArray[np.int64], coding: Cardinalities
) -> Granules:
    """Granules without names and values."""
    return Granules(
        conditions=(),
        columns=columns,
        dictionaries=tuple(range(n) for n in coding.cardinalities),
        decision=(),
        decision_codes=decision_codes,
        decision_values=(range(coding.n_decisions),),
        counts=counts,
        n_objects=int(counts.sum()),
    )


@jit
def _add_hash(codes: Codes, key: np.uint64, sums: Hashes) -> None:
    for i in range(np.uint64(len(codes))):
        sums[i] += mix(np.uint64(codes[i]) + key)


def hashes(piece: Piece, coding: Cardinalities, attributes: Iterable[int] | None = None) -> Hashes:
    """Hash every granule on some attributes, by default all; equal values give equal hashes."""
    sums = np.zeros(piece.n_rows, np.uint64)
    for a in range(len(coding.cardinalities)) if attributes is None else attributes:
        # the keys of neighbouring attributes are further apart than any code
        _add_hash(piece.column(coding, a), np.uint64((a + 1) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF), sums)
    return sums


def bucket_rows(numbers: Hashes, n_buckets: int) -> Iterator[tuple[int, Index]]:
    """Split rows into buckets by their hashes; yields each bucket that is not empty, and its rows.

    >>> [(bucket, rows.tolist()) for bucket, rows in bucket_rows(np.array([5, 4, 7], np.uint64), 2)]
    [(0, [1]), (1, [0, 2])]
    """
    buckets = (numbers % np.uint64(n_buckets)).astype(np.uint16 if n_buckets <= 1 << 16 else np.uint32)
    order = np.argsort(buckets, kind="stable").astype(np.uint32)
    ends = np.cumsum(np.bincount(buckets, minlength=n_buckets)).tolist()
    for bucket, (low, high) in enumerate(pairwise([0, *ends])):
        if high > low:
            yield bucket, order[low:high]


def split_by_hash(
    piece: Piece, coding: Cardinalities, n: int, attributes: Iterable[int] | None = None
) -> Iterator[tuple[int, Piece]]:
    """Split granules into buckets by their values on some attributes, by default all."""
    for bucket, rows in bucket_rows(hashes(piece, coding, attributes), n):
        yield bucket, piece.rows(rows)


def concat_buckets(records: RDD[tuple[int, Piece]], coding: Cardinalities, partitions: int) -> RDD[Piece]:
    """Gather the granules of each bucket into one piece."""
    buckets = records.partitionBy(partitions, int).glom()
    return buckets.map(lambda bucket: concat_pieces([piece for _, piece in bucket], coding))


def shuffle_by_conditions(pieces: RDD[Piece], coding: Cardinalities, partitions: int) -> RDD[Piece]:
    """Bring granules with equal conditions together in one piece, and merge equal ones."""
    records = pieces.flatMap(lambda piece: split_by_hash(piece, coding, partitions))
    return concat_buckets(records, coding, partitions).map(lambda piece: merge_equal_granules(piece, coding))
