"""Blocks of columns as files beside the executors: tasks map them into memory, so reading them costs nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
from pyspark import SparkFiles

from plar.engines.spark.column_groups import Group, Share
from plar.grouping.partition import Array

#: bytes; lanes of a row are within one cache line, and numba compiles anew for arrays that are not aligned
_ALIGNMENT = 64


class BlockFile(NamedTuple):
    """A file with the arrays of a block, each aligned to `_ALIGNMENT` bytes; it is lost with its executor."""

    path: str
    #: type and shape of each array
    arrays: tuple[tuple[str, tuple[int, ...]], ...]


class StoredBlock(NamedTuple):
    """Columns of a group: one array of 64 lanes or one array each, or the file that holds them."""

    share: Share
    columns: Sequence[Array] | BlockFile


class FileLost(Exception):
    """A task does not see the file of a block."""


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


def remove_files(records: Iterable[Any]) -> None:
    """Remove the files of a task's blocks."""
    for record in records:
        if isinstance(record, StoredBlock) and isinstance(record.columns, BlockFile):
            Path(record.columns.path).unlink(missing_ok=True)


def opened(blocks: Iterable[StoredBlock]) -> Iterator[tuple[Share, Sequence[Array]]]:
    """Map the blocks that are files; FileLost if a task does not see one."""
    for share, columns in blocks:
        if isinstance(columns, BlockFile):
            try:
                columns = _map(columns)
            except OSError:
                raise FileLost from None
        yield share, columns
