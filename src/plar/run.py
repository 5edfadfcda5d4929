"""What every public function does: open the table → granulate it → compute → release its resources."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from plar.checkpoint import Journal
from plar.columns import NameIndex, by_label, column_list, resolve
from plar.engines import as_engine
from plar.engines.base import Engine, GranuleHandle
from plar.errors import ParameterError, TableError
from plar.files import find_files
from plar.granule_files import holds_granules
from plar.granules import Granules
from plar.guards import warn_after, warn_before, warn_supervised_bins
from plar.interrupts import SafeInterrupts
from plar.limits import as_bytes, as_seconds, check_memory, memory_limited, shown_bytes
from plar.measures import as_measure
from plar.options import Options, ReadOptions
from plar.parallel import threads
from plar.progress import followed
from plar.reduct import Reduct
from plar.search import Progress, find_reduct
from plar.tables import DecisionTable, open_table
from plar.tables.table import with_roles


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """What a computation works on; `memory`: bytes of the coded table, and those that the engine needs in addition."""

    engine: Engine
    table: DecisionTable
    granules: GranuleHandle
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
) -> GranuleHandle:
    """Granulate a table where its rows are."""
    began = perf_counter()
    if progress:
        progress("granulate", 0, sum(os.stat(file).st_size for file in table.rows.files))
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
            made = None if granules is table.rows.data else granules
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
        name = resolve(names, by_label(given, table.rows.labels), "column")
        if name in cost_of:
            raise ParameterError(f"The 'costs' parameter names {name!r} twice. Name it once.")
        cost_of[name] = cost
    table.columns(list(cost_of))  # only conditions have a cost
    return cost_of


@dataclass(frozen=True, slots=True, eq=False)
class Searching:
    """A table that is ready to be searched, once or in parts."""

    ready: Prepared
    options: Options
    deadline: float
    seconds: dict[str, float]
    #: further arguments of `find_reduct`
    how: Mapping[str, Any]

    def find(self, granules: GranuleHandle, options: Options) -> Reduct:
        """Find the reduct of the granules, or of a part of their conditions."""
        settings = {**options.plain(list(options.include)), **self.ready.table.settings()}
        if granules is not self.ready.granules:
            settings["conditions"] = list(granules.conditions)
        seconds = self.seconds.copy()
        self.seconds.clear()  # reading is only counted once
        find = find_reduct
        if options.search == "smallest":  # its solver is imported only if needed
            from plar.smallest import find_smallest as find
        return find(granules, options=options, seconds=seconds, settings=settings, **self.how)

    def check(self, *results: Reduct) -> None:
        """Warn once of what makes the results meaningless."""
        chosen = [(result.attributes, result.n_combinations) for result in results]
        warn_after(self.ready.engine, self.ready.table, self.ready.granules, chosen)


@contextmanager
def searching(given: Mapping[str, Any]) -> Iterator[Searching]:
    """Prepare a search by the parameters of `plar.reduce`, which are checked before any work."""
    limit, progress, on_step, alpha = (given[name] for name in ("time_limit", "progress", "on_step", "alpha"))
    deadline = perf_counter() + (math.inf if limit is None else as_seconds(limit))
    measure, reading = as_measure(given["measure"]), ReadOptions.of(given)
    listed = {name: tuple(column_list(given[name])) for name in ("include", "exclude")}
    if isinstance(given["include"], tuple):  # it may be the label of one column, which only the table can tell
        listed["include"] = ()
    options = Options.of({**given, **listed})
    for name in ("progress", "on_step"):
        if given[name] is not None and not callable(given[name]):
            raise ParameterError(f"The {name!r} parameter must be a function. Got {given[name]!r} instead.")
    seconds: dict[str, float] = {}
    where, include = (given["data"], reading, given["engine"], given["n_jobs"]), given["include"]
    journal = Journal(given["checkpoint"])
    with (
        memory_limited(as_bytes(given["memory_limit"])),
        followed(given["verbose"], progress, on_step) as (notify, notify_step, display),
        prepared(*where, attributes=include, seconds=seconds, progress=notify) as ready,
    ):
        warn_before(ready.engine, ready.table, ready.granules)
        if alpha is not None:
            warn_supervised_bins(ready.table)
        if display:
            display.granulated(len(ready.granules), ready.granules.n_objects, ready.memory)
        how = {"measure": measure, "engine": ready.engine, "source": ready.table.path, "journal": journal}
        how |= {"deadline": deadline, "equivalent": given["equivalent"], "progress": notify, "on_step": notify_step}
        how["watch"] = display.watch if display else None
        exclude, costs = ready.table.columns(given["exclude"]), costs_by_name(ready.table, options.costs)
        options = replace(options, include=ready.attributes, exclude=exclude, costs=costs)
        yield Searching(ready, options, deadline, seconds, how)
