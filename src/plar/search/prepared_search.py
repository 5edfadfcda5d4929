"""A search by the parameters of `plar.reduce`: checked, opened, ready to run once or in parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from plar.coding.column_names import column_list
from plar.engines.base import GranuleSet
from plar.errors import ParameterError
from plar.measures import as_measure
from plar.options import Options, ReadOptions
from plar.results.reduct import Reduct
from plar.runtime.limits import as_bytes, as_seconds, memory_limited
from plar.search.checkpoint import Checkpoint
from plar.session.progress import followed
from plar.session.session import Prepared, costs_by_name, prepared
from plar.session.warnings import warn_after, warn_before, warn_supervised_bins


@dataclass(frozen=True, slots=True, eq=False)
class Searching:
    """A table that is ready to be searched, once or in parts."""

    ready: Prepared
    options: Options
    deadline: float
    seconds: dict[str, float]
    #: further arguments of `find_reduct`
    how: Mapping[str, Any]

    def find(self, finder: Callable[..., Reduct], granules: GranuleSet, options: Options) -> Reduct:
        """Find the reduct of the granules, or of a part of their conditions."""
        settings = {**options.plain(list(options.include)), **self.ready.table.settings()}
        if granules is not self.ready.granules:
            settings["conditions"] = list(granules.conditions)
        seconds = self.seconds.copy()
        self.seconds.clear()  # reading is only counted once
        return finder(granules, options=options, seconds=seconds, settings=settings, **self.how)

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
    journal = Checkpoint(given["checkpoint"])
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
