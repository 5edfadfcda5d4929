"""What every public function does: open the table → granulate it → compute → release its resources."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from plar.coding.column_names import NameIndex, by_label, resolve
from plar.engines import as_engine
from plar.engines.base import Engine, GranuleSet
from plar.errors import ParameterError, TableError
from plar.files.find import find_files
from plar.granules.granule_files import holds_granules
from plar.granules.granules import Granules
from plar.input.tables import DecisionTable, open_table
from plar.input.tables.table import with_roles
from plar.options import ReadOptions
from plar.runtime.interrupts import SafeInterrupts
from plar.runtime.limits import check_memory, shown_bytes
from plar.runtime.parallel import threads
from plar.session.progress import Progress


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """What a computation works on; `memory`: bytes of the coded table, and those that the engine needs in addition."""

    engine: Engine
    table: DecisionTable
    granules: GranuleSet
    attributes: tuple[str, ...]
    memory: tuple[int, int] | None


def opened(data: Any, options: ReadOptions, engine: Engine) -> DecisionTable:
    """Open any data; the engine reads paths if it can, except those of granules, which are read here."""
    if isinstance(data, (str, os.PathLike)) and engine.reads_paths:
        rows = None if is_granulated(data) else engine.read(data, options)
        if rows is not None:
            return with_roles(rows, options, os.fspath(data))
    return open_table(data, options)


def is_granulated(data: Any) -> bool:
    """Whether data are granules already, or a path to files of them."""
    if isinstance(data, (str, os.PathLike)):
        with suppress(TableError):  # a path on the cluster
            return any(map(holds_granules, find_files(data)))
    return type(data).__name__ in ("Granules", "SparkGranules")


def granulated(
    table: DecisionTable, engine: Engine, *, seconds: dict[str, float], progress: Progress | None = None
) -> GranuleSet:
    """Granulate a table where its rows are."""
    began = perf_counter()
    if progress:
        progress("granulate", 0, sum(os.stat(file).st_size for file in table.source.files))
    granules = engine.granulate(table)
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
    """Engine and granules for one call; what the call started or put on a cluster is released at its end.

    `attributes` that the table does not have are refused before any work.
    """
    with SafeInterrupts():
        chosen = as_engine(engine, n_jobs, data)
    seconds = {} if seconds is None else seconds
    made: Any = None
    try:
        with SafeInterrupts(), threads(chosen.n_jobs):
            began = perf_counter()
            if progress:
                progress("read", 0, 0)
            table = opened(data, options, chosen)
            wanted = table.columns(attributes)
            seconds["read"] = perf_counter() - began
            granules = granulated(table, chosen, seconds=seconds, progress=progress)
            made = None if granules is table.source.data else granules
            if isinstance(made, Granules):
                granules = made = made.for_one_search()
            memory = None
            if isinstance(granules, Granules) and (need := chosen.memory_need(granules)) is not None:
                memory = granules.nbytes, need
                check_memory(f"The engine {chosen.name!r}, beside the coded table of {shown_bytes(memory[0])},", need)
            yield Prepared(chosen, table, granules, wanted, memory)
    finally:
        if made is not None:
            chosen.release(made)
        if chosen is not engine:
            chosen.close()


def costs_by_name(table: DecisionTable, costs: Mapping[Any, int] | None) -> dict[str, int]:
    """What the columns of a table cost, each by its name."""
    names = NameIndex(table.names)
    cost_of: dict[str, int] = {}
    for given, cost in (costs or {}).items():
        name = resolve(names, by_label(given, table.source.int_column_labels), "column")
        if name in cost_of:
            raise ParameterError(f"The 'costs' parameter names {name!r} twice. Name it once.")
        cost_of[name] = cost
    table.columns(list(cost_of))  # only conditions have a cost
    return cost_of
