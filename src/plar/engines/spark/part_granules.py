"""The granules that a task makes from one part of the rows, with their own dictionaries, and a report on them.

Those made from a file are kept on the executor's disk for the next job; if they are lost, the part is read again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
from pyspark import RDD, SparkContext, SparkFiles, StorageLevel

from plar.coding.index_like import Profile
from plar.coding.times import TimeCuts
from plar.engines.spark.distributed_tables import DistributedTable
from plar.engines.spark.pieces import Hashes
from plar.engines.spark.session import errors_in_parts
from plar.granules.fingerprint import Fingerprint, row_hashes
from plar.granules.granules import Granules
from plar.input.roles import Roles
from plar.input.tables.granules import compared_as_numbers
from plar.input.tables.source import RowSource

#: from this many conditions on it pays to check whether parts share rows; the local readers then keep row order
WIDE_CONDITIONS = 256
#: how many values of a long dictionary the driver sees
_SAMPLE_VALUES = 100


class PartReport(NamedTuple):
    """What the driver needs to know about the granules of a part."""

    n_rows: int
    nbytes: int
    n_missing: dict[str, int]
    fingerprint: Fingerprint
    #: values of each condition and, last, of the decision, and whether they are complete
    values: list[tuple[Sequence[Any], bool]]
    #: for a wide table, a hash of each row's conditions
    keys: Hashes | None
    #: rows of the part, and profiles of its conditions, as in `Granules`
    n_rows_read: int
    profiles: Mapping[str, Profile]
    #: rows that were dropped because they have no decision, counted with their weights
    n_without_decision: int
    #: cut points of columns of times, which know their kind
    time_cuts: Mapping[str, TimeCuts]


@dataclass(frozen=True, eq=False)
class PartGranules:
    """Granules of one part of the rows. Their codes may be in a file; if it is missing, the rows are read again."""

    #: what the driver gets to know; the granules themselves if they are small
    report: PartReport | Granules
    granules: Granules
    roles: Roles
    source: RowSource | None = None
    path: str = ""

    def load(self, *, remove: bool = False) -> Granules:
        """Load the granules; `remove` deletes their file."""
        if self.source is None:
            return self.granules
        try:
            with open(self.path, "rb") as file:
                columns = tuple(np.load(file) for _ in self.granules.conditions)
                decision_codes = np.load(file)
                counts = np.load(file)
        except (OSError, EOFError, ValueError):
            with errors_in_parts():
                return _granulate(self.source, self.roles)
        if remove:
            Path(self.path).unlink(missing_ok=True)
        return replace(self.granules, columns=columns, decision_codes=decision_codes, counts=counts)


def granulate_parts(source: DistributedTable, roles: Roles, token: str, *, long: int, small: int) -> RDD[PartGranules]:
    """Granulate every part of the rows; of dictionaries with more than `long` values only a sample is reported.

    File names begin with the token. Granules of a part of a file within its share of `small` bytes are
    reported whole.
    """
    # where missing values are an error, the driver counts them all, then raises
    roles = replace(
        roles,
        missing=_counted(roles.missing),
        missing_decision=_counted(roles.missing_decision),
        is_part=True,
    )
    if source.can_be_read_again:
        work = partial(_granules_in_file, long=long, small=small // max(1, source.n_parts), token=token)
    else:  # a DataFrame may have more partitions than it says, and several parts in each
        work = partial(_granules_in_memory, long=long)
    return source.run(work, roles).persist(StorageLevel.MEMORY_AND_DISK)


def _counted(policy: str) -> str:
    """What tasks do with missing values: where they are an error they are values, to be counted."""
    return "value" if policy == "error" else policy


def report_on(granules: Granules, long: int) -> PartReport:
    """Make the report on the granules of a part; of dictionaries with more than `long` values it has a sample."""
    values = [(d, True) if len(d) <= long else (d[:_SAMPLE_VALUES], False) for d in dictionaries_of(granules)]
    # the fingerprint is always taken: only tasks see all values, and next to coding them it costs little
    return PartReport(
        n_rows=len(granules),
        nbytes=granules.nbytes,
        n_missing=granules.n_missing,
        fingerprint=granules.fingerprint(),
        values=values,
        keys=_keys(granules),
        n_rows_read=granules.n_rows,
        profiles=granules.profiles,
        n_without_decision=granules.n_without_decision,
        time_cuts={name: points for name, points in granules.cuts.items() if isinstance(points, TimeCuts)},
    )


def _keys(granules: Granules) -> Hashes | None:
    if len(granules.conditions) < WIDE_CONDITIONS:
        return None
    named = zip(granules.columns, zip(granules.conditions, granules.dictionaries, strict=True), strict=True)
    return row_hashes(((codes, [column]) for codes, column in named), len(granules))[:, 0]


def dictionaries_of(granules: Granules) -> list[Sequence[Any]]:
    """Values of the conditions and, last, of the decision."""
    return [*granules.dictionaries, list(zip(*granules.decision_values, strict=True))]


def remove_files(context: SparkContext, token: str) -> None:
    """Remove files of parts or blocks whose names begin with the token, after a failure."""

    def remove(_: int) -> None:
        for path in Path(SparkFiles.getRootDirectory()).glob(f"plar-{token}-*"):
            path.unlink(missing_ok=True)

    n = 2 * context.defaultParallelism  # so that every executor gets a task
    with suppress(Exception):  # the original failure is reported, not this one
        context.parallelize(range(n), n).foreach(remove)


# -- tasks -------------------------------------------------------------------------------------------------


def _granules_in_memory(source: RowSource, roles: Roles, long: int) -> Iterator[PartGranules]:
    granules = _granulate(source, roles)
    yield PartGranules(report_on(granules, long), granules, roles)


def _granules_in_file(source: RowSource, roles: Roles, long: int, small: int, token: str) -> Iterator[PartGranules]:
    granules = _granulate(source, roles)
    if granules.nbytes <= small:
        yield PartGranules(granules, granules, roles)
        return
    path = Path(SparkFiles.getRootDirectory(), f"plar-{token}-{uuid4().hex}")
    with path.open("wb") as file:
        for array in (*granules.columns, granules.decision_codes, granules.counts):
            np.save(file, array)
    no_rows = np.empty(0, np.uint32)
    without_rows = replace(granules, columns=(), decision_codes=no_rows, counts=no_rows.astype(np.int64))
    yield PartGranules(report_on(granules, long), without_rows, roles, source, str(path))


def _granulate(source: RowSource, roles: Roles) -> Granules:
    granules = source.granulate(roles)
    return compared_as_numbers(granules, roles.numeric, roles.decimal) if roles.numeric else granules
