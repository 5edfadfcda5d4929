"""Parcels: what a task makes of one part of the rows, granules with dictionaries of their own, and what it tells of it.

A parcel of a file waits in a file beside the executor for the next job; where it is not found it is read again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from uuid import uuid4

import numpy as np
from pyspark import RDD, SparkContext, SparkFiles, StorageLevel

from plar.coding.fingerprint import Fingerprint, row_hashes
from plar.engines.spark.pieces import Hashes
from plar.engines.spark.sources import Source
from plar.errors import NoRows
from plar.granules import Granules
from plar.roles import Roles
from plar.tables.granules import as_numbers
from plar.tables.rows import Rows

#: from this many conditions on it pays to look whether parts have rows in common; local readers keep their order then
WIDE = 256
#: values of a long dictionary that the driver sees
_SAMPLE = 100


class Facts(NamedTuple):
    """What the driver has to know of a parcel."""

    n_rows: int
    n_missing: dict[str, int]
    fingerprint: Fingerprint
    #: values of conditions and, last, of the decision, and whether these are all
    values: list[tuple[Sequence[Any], bool]]
    #: of a wide table, a hash of each row's conditions
    keys: Hashes | None


@dataclass(frozen=True, eq=False)
class Parcel:
    """Granules of a part of the rows. Their codes may be in a file; where it is missing the rows are read again."""

    granules: Granules
    roles: Roles
    rows: Rows | None = None
    path: str = ""

    def load(self, *, remove: bool = False) -> Granules:
        """Take the granules out, for the last time if they are removed."""
        if self.rows is None:
            return self.granules
        try:
            with open(self.path, "rb") as file:
                *columns, classes, counts = (np.load(file) for _ in range(len(self.granules.conditions) + 2))
        except (OSError, EOFError, ValueError):
            return next(_granulate(self.rows, self.roles))
        if remove:
            Path(self.path).unlink(missing_ok=True)
        return replace(self.granules, columns=tuple(columns), classes=classes, counts=counts)


#: a parcel, and what is told of it: itself, where it is small
Told: TypeAlias = tuple[Facts | Granules, Parcel]


def make_parcels(source: Source, roles: Roles, token: str, *, long: int, small: int) -> RDD[Told]:
    """Granulate every part of the rows; dictionaries of more than `long` values are told in part.

    Names of files begin with the token. If all parcels are at most `small` bytes together, they are told themselves.
    """
    if roles.missing == "error":  # the driver counts them all, then says so
        roles = replace(roles, missing="value")
    name = token if source.can_be_read_again else ""
    work = partial(_parcels, long=long, small=small // max(1, source.n_parts), token=name)
    return source.run(work, roles).persist(StorageLevel.MEMORY_AND_DISK)


def facts_of(granules: Granules, long: int) -> Facts:
    """What the driver has to know of a parcel."""
    values = [(d, True) if len(d) <= long else (d[:_SAMPLE], False) for d in dictionaries_of(granules)]
    # taken here and always: only here are the values known, and beside the coding of them it costs little
    return Facts(len(granules), granules.n_missing, granules.fingerprint(), values, _keys(granules))


def _keys(granules: Granules) -> Hashes | None:
    if len(granules.conditions) < WIDE:
        return None
    named = zip(granules.columns, zip(granules.conditions, granules.dictionaries, strict=True), strict=True)
    return row_hashes(((codes, [column]) for codes, column in named), len(granules))[:, 0]


def dictionaries_of(granules: Granules) -> list[Sequence[Any]]:
    """Values of the conditions and, last, of the decision."""
    return [*granules.dictionaries, list(zip(*granules.decision_values, strict=True))]


def remove_files(context: SparkContext, token: str) -> None:
    """Remove the files of parcels whose names begin with the token, after something went wrong."""
    n = 2 * context.defaultParallelism  # so that every executor gets a task
    with suppress(Exception):  # what went wrong is told, not this
        context.parallelize(range(n), n).foreach(partial(_remove_here, token=token))


def _remove_here(_: int, token: str) -> None:
    for path in Path(SparkFiles.getRootDirectory()).glob(f"plar-{token}-*"):
        path.unlink(missing_ok=True)


# -- tasks -------------------------------------------------------------------------------------------------


def _parcels(rows: Rows, roles: Roles, long: int, small: int, token: str) -> Iterator[Told]:
    for granules in _granulate(rows, roles):
        told = granules if granules.nbytes <= small else facts_of(granules, long)
        if not token:
            yield told, Parcel(granules, roles)
            continue
        path = Path(SparkFiles.getRootDirectory(), f"plar-{token}-{uuid4().hex}")
        if told is not granules:
            with path.open("wb") as file:
                for array in (*granules.columns, granules.classes, granules.counts):
                    np.save(file, array)
        none = np.empty(0, np.uint32)
        bare = replace(granules, columns=(), classes=none, counts=none.astype(np.int64))
        yield told, Parcel(bare, roles, rows, str(path))


def _granulate(rows: Rows, roles: Roles) -> Iterator[Granules]:
    try:
        granules = rows.granulate(roles)
    except NoRows:
        return
    yield as_numbers(granules, roles.numeric, roles.decimal) if roles.numeric else granules
