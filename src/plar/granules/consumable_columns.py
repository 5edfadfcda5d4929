"""Columns of granules for a single search, which an engine may overwrite, so that no cell is held twice."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plar.grouping.partition import Codes

#: returning less than this to the system is not worth it: other threads wait meanwhile
_MIN_BYTES_TO_RETURN = 1 << 28
#: fewer bytes of columns are kept: extracting them again costs more than their memory
_MIN_BYTES_TO_CONSUME = 1 << 25


def give_back_memory(freed: int) -> int:
    """Return these bytes to the system if they are many: glibc would keep them. The result is how many are left."""
    if freed < _MIN_BYTES_TO_RETURN:
        return freed
    with suppress(AttributeError, OSError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)
    return 0


class ConsumableColumns(Sequence[Codes]):
    """Columns that an engine may overwrite: it hands each in, and takes what it needs back out.

    Columns of fewer than `min_bytes` in all are kept.
    """

    def __init__(self, columns: Iterable[Codes], min_bytes: int = _MIN_BYTES_TO_CONSUME) -> None:
        all_columns = list(columns)
        self._columns: list[Codes | None] = [*all_columns]
        self._are_kept = sum(column.nbytes for column in all_columns) < min_bytes
        #: the matrix that holds a column, and which of its columns it is
        self._matrices: dict[int, tuple[NDArray[Any], int]] = {}
        self._freed_bytes = 0

    def lay_out(self, places: Sequence[int], matrix: NDArray[Any]) -> None:
        """Keep these columns as the first ones of a matrix, and free the originals."""
        if self._are_kept:
            return
        for lane, place in enumerate(places):
            self._matrices[place] = matrix, lane
            self._columns[place] = None
        # a race between threads may lose some bytes, which is harmless
        self._freed_bytes = give_back_memory(self._freed_bytes + matrix.nbytes)

    def __len__(self) -> int:
        return len(self._columns)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return tuple(self[i] for i in range(*place.indices(len(self))))
        column = self._columns[place]
        if column is not None:
            return column
        matrix, lane = self._matrices[place % len(self)]
        return np.ascontiguousarray(matrix[:, lane])
