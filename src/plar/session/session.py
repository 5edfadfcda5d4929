"""What every public function does: choose the engine → open the table → granulate it → compute → release everything."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any, Self

from plar.coding.column_names import NameIndex, by_label, resolve
from plar.engines import as_engine
from plar.engines.base import Engine, GranuleSet
from plar.errors import Parameter, ParameterError, TableError
from plar.files.find import find_files
from plar.granules.granule_files import holds_granules
from plar.granules.granules import Granules
from plar.input.tables import DecisionTable, open_table
from plar.input.tables.table import with_roles
from plar.options import ReadOptions, RunOptions, SearchOptions, SelectOptions
from plar.runtime.interrupts import SafeInterrupts
from plar.runtime.limits import check_memory, memory_limited, shown_bytes
from plar.runtime.parallel import threads
from plar.session.reporter import SILENT, MemoryNeed, Reporter


class Session:
    """One call: its table, granules and engine, its limits, and who is told of its progress.

    It is a context manager, and sets threads and memory limit for all that the call does. What it starts or
    puts on a cluster is released at its end, an engine given as an object excepted.

    Parameters
    ----------
    data : any kind of table
    reading : ReadOptions
    run_options : RunOptions
    reporter : Reporter
    source : str, optional
        What results call the data, if not by their path.
    """

    def __init__(
        self,
        data: Any,
        reading: ReadOptions,
        run_options: RunOptions | None = None,
        reporter: Reporter = SILENT,
        source: str | None = None,
    ) -> None:
        self.run_options = run_options or RunOptions()
        self.reporter = reporter
        #: when the call began, and when a search stops with what it has, by `time.perf_counter`
        self.began = perf_counter()
        self.deadline = math.inf
        if self.run_options.time_limit is not None:
            self.deadline = self.began + self.run_options.time_limit
        self._data = data
        self._reading = reading
        self._source = source
        #: seconds by phase that no result has taken yet
        self._seconds: dict[str, float] = {}
        self._resources = ExitStack()
        self._table: DecisionTable | None = None
        self._granules: GranuleSet | None = None
        self._memory: MemoryNeed | None = None
        #: what ends with the session
        self._own_granules: GranuleSet | None = None
        self._owns_engine = False

    def __enter__(self) -> Self:
        """Choose the engine, and set the limits."""
        with ExitStack() as resources:
            resources.enter_context(SafeInterrupts())
            resources.enter_context(memory_limited(self.run_options.memory_limit))
            resources.callback(self._close_engine)
            resources.callback(self.release)
            self.engine: Engine = as_engine(self.run_options.engine, self.run_options.n_jobs, self._data)
            self._owns_engine = self.engine is not self.run_options.engine
            resources.enter_context(threads(self.engine.n_jobs))
            self._resources = resources.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        """Release what the session made, and put the limits back."""
        self._resources.__exit__(*error)

    @property
    def table(self) -> DecisionTable:
        """The table, opened when it is first asked for."""
        if self._table is None:
            began = perf_counter()
            self.reporter.phase("read", 0, 0)
            table = open_data(self._data, self._reading, self.engine)
            self._table = table if self._source is None else replace(table, path=self._source)
            self._seconds["read"] = perf_counter() - began
        return self._table

    def assign(self, options: ReadOptions) -> None:
        """Give the columns of the opened table their roles by other options, before its rows are read."""
        self._table = with_roles(self.table.source, options, self.table.path)

    @property
    def granules(self) -> GranuleSet:
        """The distinct rows of the table, read when they are first asked for; one search may consume them."""
        if self._granules is None:
            granules = self._granulate()
            if granules is not self.table.source.data:
                if isinstance(granules, Granules):
                    granules = granules.for_one_search()
                self._own_granules = granules
            self._memory = self._check_memory(granules)
            self._granules = granules
        return self._granules

    @contextmanager
    def reporting_to(self, reporter: Reporter) -> Iterator[None]:
        """Tell another reporter of the progress meanwhile."""
        before = self.reporter
        self.reporter = reporter
        try:
            yield
        finally:
            self.reporter = before

    def tell_size(self) -> None:
        """Tell the reporter how large the table is."""
        self.reporter.granulated(len(self.granules), self.granules.n_objects, self._memory)

    def keep_granules(self) -> GranuleSet:
        """The distinct rows, for a caller who releases them; with them goes what the session's engine has started."""
        granules = self._granulate()
        if granules is not self.table.source.data:
            self._own_granules = granules  # released here if what follows fails
        self.reporter.granulated(len(granules), granules.n_objects, memory=None)
        if self._owns_engine:
            self.engine.leave_to(granules)
        self._owns_engine = False
        self._own_granules = None
        return granules

    def release(self) -> None:
        """Free the granules, unless the caller gave them."""
        if self._own_granules is not None:
            self.engine.release(self._own_granules)
            self._own_granules = None

    def take_seconds(self) -> dict[str, float]:
        """The seconds by phase so far, for one result: of several searches, only the first has read the table."""
        seconds = self._seconds
        self._seconds = {}
        return seconds

    def named(self, options: SearchOptions) -> SearchOptions:
        """The options with names of columns in place of positions and labels; unknown ones are refused."""
        include = self.table.columns(options.include)
        options.check_limit(include)
        return replace(
            options,
            include=include,
            exclude=self.table.columns(options.exclude),
            costs=_costs_by_name(self.table, options.costs),
        )

    def named_to_select(self, options: SelectOptions) -> SelectOptions:
        """The same for the options of `plar.select`."""
        include = self.table.columns(options.include)
        options.check_limit(include)
        named = replace(
            options,
            include=include,
            exclude=self.table.columns(options.exclude),
            keep=self.table.columns(options.keep),
        )
        named.check_columns()
        return named

    def _close_engine(self) -> None:
        if self._owns_engine:
            self.engine.close()

    def _granulate(self) -> GranuleSet:
        table = self.table
        began = perf_counter()
        self.reporter.phase("granulate", 0, sum(map(_size_of, table.source.files)))
        granules = self.engine.granulate(table)
        self._seconds["granulate"] = perf_counter() - began
        return granules

    def _check_memory(self, granules: GranuleSet) -> MemoryNeed | None:
        """What a search on these granules needs, as far as that is known; an error if there is not as much."""
        if not isinstance(granules, Granules):
            return None
        need = self.engine.memory_need(granules)
        if need is None:
            return None
        coded = granules.nbytes
        check_memory(f"The engine {self.engine.name!r}, beside the coded table of {shown_bytes(coded)},", need)
        return MemoryNeed(coded_table=coded, engine=need)


def _size_of(file: Path) -> int:
    """Bytes of a file; 0 if it is gone, which its reader reports."""
    with suppress(OSError):
        return file.stat().st_size
    return 0


def open_data(data: Any, options: ReadOptions, engine: Engine) -> DecisionTable:
    """Open any data; the engine reads paths if it can, except those of granules, which are read here."""
    if isinstance(data, (str, os.PathLike)) and engine.reads_paths:
        source = None if has_roles(data) else engine.read(data, options)
        if source is not None:
            return with_roles(source, options, os.fspath(data))
    return open_table(data, options)


def has_roles(data: Any) -> bool:
    """Whether data know their decision: granules, a path to files of them, or an opened table."""
    if isinstance(data, (str, os.PathLike)):
        with suppress(TableError):  # a path on the cluster
            return any(map(holds_granules, find_files(data)))
    return type(data).__name__ in ("Granules", "SparkGranules", "DecisionTable")


def _costs_by_name(table: DecisionTable, costs: Mapping[Any, int] | None) -> dict[str, int]:
    """What the columns of a table cost, each by its name."""
    names = NameIndex(table.names)
    cost_of: dict[str, int] = {}
    for column, cost in (costs or {}).items():
        name = resolve(names, by_label(column, table.source.int_column_labels), "column")
        if name in cost_of:
            raise ParameterError(Parameter("costs"), f" names {name!r} twice. Name it once.")
        cost_of[name] = cost
    table.columns(list(cost_of))  # only conditions have a cost
    return cost_of
