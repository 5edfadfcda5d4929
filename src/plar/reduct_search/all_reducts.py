"""All reducts of a table, the smallest first: minimal sets that hit all clauses, found together with the clauses.

The oracle is asked about sets that hit the clauses known so far. One that does not preserve Θ(D|C) yields further
clauses; one that does is a reduct, because each of its attributes is the only one in some clause. When all sets of a
size preserve Θ, they are all the reducts of that size.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from numbers import Integral
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plar.coding.column_names import ColumnName as Column
from plar.engines.base import Engine
from plar.errors import Interrupted, ParameterError
from plar.measures import OWN, Measure, as_measure
from plar.options import Options, ReadOptions, shows_reading
from plar.reduct_search.clause_search import ClauseSearch, LimitReached
from plar.reduct_search.hitting_set_search import minimal_hitting_sets
from plar.results.reduct_list import Reducts
from plar.runtime.limits import as_bytes, as_seconds, memory_limited
from plar.session.progress import Progress, followed
from plar.session.session import costs_by_name, prepared
from plar.session.warnings import warn_after, warn_before

__all__ = ["reducts"]

#: when more sets of a batch fail, the enumeration starts over, with their clauses
_FAILURES = 32
_NO_LIMIT = 1 << 62


@shows_reading
def reducts(
    data: Any,
    decision: Column | Sequence[Column] | None = None,
    y: Any = None,
    *,
    measure: str | Measure = "SCE",
    limit: int | None = 1_000_000,
    max_size: int | None = None,
    include: Column | Iterable[Column] = (),
    exclude: Column | Iterable[Column] = (),
    costs: Mapping[Column, int] | None = None,
    time_limit: float | str | None = None,
    engine: str | Engine = "auto",
    n_jobs: int | None = None,
    memory_limit: int | str | None = None,
    verbose: bool = False,
    progress: Progress | None = None,
    **reading: Any,
) -> Reducts:
    """Find all reducts of a table; options of reading are those of `reduce`.

    Reducts here are minimal: none of their columns can be removed. There may be more of them than can be listed: they
    come by size, up to `limit` of them, `max_size` columns or the time limit.

    Parameters
    ----------
    limit : int, optional
        The most reducts to list; None for no limit.
    max_size : int, optional
        The most columns of a reduct.
    include, exclude : list of str or int
        Columns that each reduct must hold, needed or not, and those that none may hold.
    costs : mapping of names to whole numbers, optional
        What columns cost, by which the reducts are sorted first. A limit still lists the smallest ones.
    time_limit : float or str, optional
        Seconds, or "90s", "10m", "2h".

    Raises
    ------
    Interrupted
        On Ctrl-C: a KeyboardInterrupt with the reducts so far as its `reduct`.

    Examples
    --------
    >>> import plar
    >>> found = plar.reducts({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "c": [0, 1, 1, 0], "d": [0, 1, 2, 3]}, "d")
    >>> [one.attributes for one in found], found.complete
    ([('a', 'b'), ('a', 'c'), ('b', 'c')], True)
    """
    began = perf_counter()
    read = ReadOptions(decision, y, **reading)
    chosen = as_measure(measure)
    deadline = began + (math.inf if time_limit is None else as_seconds(time_limit))
    Options(search="smallest", costs=costs)  # checks the costs
    for name, value in (("limit", limit), ("max_size", max_size)):
        if value is not None and (not isinstance(value, Integral) or isinstance(value, bool) or value < 1):
            raise ParameterError(f"The {name!r} parameter must be None or at least 1. Got {value!r} instead.")
    if chosen.kind == OWN:
        raise ParameterError(f"plar.reducts supports the measures PR, SCE, LCE and CCE. Got {chosen.name!r}.")
    with (
        memory_limited(as_bytes(memory_limit)),
        followed(verbose, progress, None) as (notify, _, display),
        prepared(data, read, engine, n_jobs, attributes=include, progress=notify) as ready,
    ):
        warn_before(ready.engine, ready.table, ready.granules)
        priced = costs_by_name(ready.table, costs)
        excluded = ready.table.columns(exclude)
        search = _AllReducts(
            ready.granules,
            chosen,
            ready.engine,
            Options(search="smallest", include=ready.attributes, exclude=excluded, costs=priced),
            limit=limit or _NO_LIMIT,
            max_size=max_size or _NO_LIMIT,
            progress=notify,
            watch=display.watch if display else None,
            deadline=deadline,
            began=began,
        )
        search.prepare()
        try:
            search.run()
        except KeyboardInterrupt:
            raise Interrupted(search.result()) from None
        result = search.result()
        if result:
            warn_after(ready.engine, ready.table, ready.granules, [(result[0].attributes, None)])
        return result


@dataclass
class _AllReducts(ClauseSearch):
    """One search: reducts of one size after another."""

    limit: int = _NO_LIMIT
    max_size: int = _NO_LIMIT
    members: list[NDArray[np.int32]] = field(default_factory=list)

    def run(self) -> None:
        """Find them all, or as many as the limits allow."""
        size = len(set(self.core) - self.include)
        with suppress(LimitReached):
            self.begin()
            while not self.complete and size + len(self.include) <= self.max_size:
                self.complete = self._find_all_of(size)
                size += 1

    def _find_all_of(self, size: int) -> bool:
        """Find the reducts with this many columns beside `include`; return whether there are no larger ones."""
        seen = set[bytes]()
        always = np.array(sorted(self.include), np.int32)
        while True:
            missed = self.hitting.holds[self.hitting.not_hit(self.include)]
            missed[:, sorted(self.exclude)] = False
            n_clauses = len(self.answers)
            is_last = False
            for sets, larger in minimal_hitting_sets(missed, size):
                self.check_time()
                is_last = not larger
                if not len(sets):
                    continue
                keys = [row.tobytes() for row in sets]
                new = [i for i, key in enumerate(keys) if key not in seen]
                candidates = [self.include.union(sets[i].tolist()) for i in new]
                passed = self.clause_finder.preserve(candidates)
                for i, preserves in zip(new, passed, strict=True):
                    if preserves:
                        if len(self.members) >= self.limit:
                            raise LimitReached
                        seen.add(keys[i])
                        self.members.append(np.sort(np.concatenate([always, sets[i]])))
                self.notify("reducts", len(self.members), size + len(always))
                failed = [candidate for candidate, preserves in zip(candidates, passed, strict=True) if not preserves]
                self.add_clauses_for(failed[:_FAILURES])
                if len(failed) >= _FAILURES:
                    break
            if len(self.answers) == n_clauses:
                return is_last

    def result(self) -> Reducts:
        """Say what was found."""
        names = self.granules.conditions
        costs = np.array(self.costs)

        def rank(member: NDArray[np.int32]) -> tuple[int, int, list[int]]:
            return int(costs[member].sum()), len(member), member.tolist()

        return Reducts(
            **self.asked(),
            core=tuple(names[a] for a in self.core),
            complete=self.complete,
            members=tuple(sorted(self.members, key=rank)),
            seconds=perf_counter() - self.began,
        )
