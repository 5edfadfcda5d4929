"""The one walk of every public function: open the table → granulate it → compute → release what was taken for it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from plar.engines import as_engine
from plar.engines.base import Engine, GranuleHandle
from plar.errors import TableError
from plar.files import find_files
from plar.granule_files import holds_granules
from plar.granules import Granules
from plar.id_columns import warn_id_columns
from plar.limits import check_memory, shown_bytes
from plar.options import ReadOptions
from plar.progress import bytes_of
from plar.search import Progress
from plar.tables import DecisionTable, open_table
from plar.tables.table import with_roles

__all__ = ["Prepared", "granulated", "memory_of", "opened", "prepared"]


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """What a computation works on.

    Parameters
    ----------
    engine : Engine
    table : DecisionTable
    granules : GranuleHandle
    attributes : tuple of str
        Those that were asked for, by name.
    """

    engine: Engine
    table: DecisionTable
    granules: GranuleHandle
    attributes: tuple[str, ...]


def opened(data: Any, options: ReadOptions, engine: Engine) -> DecisionTable:
    """Open any data; a path where the engine reads it, but for granules, which are read here."""
    if isinstance(data, (str, os.PathLike)) and engine.reads_paths and not _names_granules(data):
        rows = engine.read(data, options)
        if rows is not None:
            return with_roles(rows, options, os.fspath(data))
    return open_table(data, options)


def _names_granules(path: str | os.PathLike[str]) -> bool:
    with suppress(TableError):  # a path that only a cluster knows
        return any(map(holds_granules, find_files(path)))
    return False


def granulated(
    table: DecisionTable, engine: Engine, *, seconds: dict[str, float], progress: Progress | None = None
) -> GranuleHandle:
    """Granulate a table where its rows are."""
    began = perf_counter()
    if progress:
        progress("granulate", 0, bytes_of(table.rows.files))
    granules = engine.granulate(table)
    if table.roles.bins is None and not table.is_granulated:
        warn_id_columns(engine, table, granules)
    seconds["granulate"] = perf_counter() - began
    return granules


@contextmanager
def prepared(
    data: Any,
    options: ReadOptions,
    engine: str | Engine,
    n_jobs: int | None = None,
    *,
    attributes: Any = (),
    seconds: dict[str, float] | None = None,
    progress: Progress | None = None,
) -> Iterator[Prepared]:
    """Engine and granules for one call; what the call itself started or put on a cluster ends with it.

    `attributes` that the table does not have are refused before the work.
    """
    chosen = as_engine(engine, n_jobs, data)
    seconds = {} if seconds is None else seconds
    made: Any = None
    try:
        began = perf_counter()
        if progress:
            progress("read", 0, 0)
        table = opened(data, options, chosen)
        wanted = table.columns(attributes)
        seconds["read"] = perf_counter() - began
        granules = granulated(table, chosen, seconds=seconds, progress=progress)
        made = None if granules is table.rows.data else granules
        if isinstance(made, Granules):
            granules = made = made.for_one_search()
        if memory := memory_of(chosen, granules):
            coded, need = memory
            check_memory(f"The engine {chosen.name!r}, beside the coded table of {shown_bytes(coded)},", need)
        yield Prepared(chosen, table, granules, wanted)
    finally:
        if made is not None:
            chosen.release(made)
        if chosen is not engine:
            chosen.close()


def memory_of(engine: Engine, granules: GranuleHandle) -> tuple[int, int] | None:
    """Bytes of the coded table, and those that the engine takes beside it; None where the table is elsewhere."""
    if not isinstance(granules, Granules):
        return None
    need = engine.memory_need(granules)
    return None if need is None else (granules.nbytes, need)
