"""All reducts of a table, the smallest first: minimal sets that hit all clauses, found together with the clauses.

The clause finder is asked about sets that hit the clauses known so far. One that does not preserve Θ(D|C)
yields further clauses; one that does is a reduct, because each of its attributes is the only one in some
clause. When all sets of a size preserve Θ, they are all the reducts of that size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from time import perf_counter
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from plar.coding.column_names import ColumnName
from plar.engines.base import Engine
from plar.errors import Interrupted, ParameterError
from plar.measures import OWN, Measure, as_measure
from plar.options import Columns, ListOptions, ReadingKwargs, ReadOptions, RunOptions, SearchOptions
from plar.reduct_search.clause_search import ClauseSearch, LimitReached
from plar.reduct_search.hitting_set_search import minimal_hitting_sets
from plar.results.reduct_list import Reducts
from plar.session.progress import reporting
from plar.session.reporter import Progress
from plar.session.session import Session
from plar.session.warnings import warn_after

__all__ = ["reducts"]

#: when more sets of a batch fail, the enumeration starts over, with their clauses
_FAILURES = 32
_NO_LIMIT = 1 << 62


def reducts(
    data: Any,
    decision: ColumnName | Sequence[ColumnName] | None = None,
    y: Any = None,
    *,
    measure: str | Measure = "SCE",
    limit: int | None = 1_000_000,
    max_size: int | None = None,
    include: Columns = (),
    exclude: Columns = (),
    costs: Mapping[ColumnName, int] | None = None,
    time_limit: float | str | None = None,
    engine: str | Engine = "auto",
    n_jobs: int | None = None,
    memory_limit: int | str | None = None,
    verbose: bool = False,
    progress: Progress | None = None,
    **reading: Unpack[ReadingKwargs],
) -> Reducts:
    """Find all reducts of a table; options of reading are those of `reduce`.

    Reducts here are minimal: none of their columns can be removed. There may be more of them than can be
    listed: they come by size, up to `limit` of them, `max_size` columns or the time limit.

    Parameters
    ----------
    limit : int, optional
        List at most this many reducts; None for no limit.
    max_size : int, optional
        List reducts of at most this many columns.
    include, exclude : list of str or int
        Columns to always include, needed or not, and columns to never include.
    costs : mapping of names to whole numbers, optional
        What columns cost, by which the reducts are sorted first. A limit still lists the smallest ones.
    time_limit : float or str, optional
        Seconds, or "90s", "10m", "2h".

    Raises
    ------
    Interrupted
        On Ctrl-C: a KeyboardInterrupt with the reducts so far as its `result`.

    Examples
    --------
    >>> import plar
    >>> listed = plar.reducts({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "c": [0, 1, 1, 0], "d": [0, 1, 2, 3]}, "d")
    >>> [reduct.attributes for reduct in listed], listed.complete
    ([('a', 'b'), ('a', 'c'), ('b', 'c')], True)
    """
    read = ReadOptions.of(reducts, decision, y, reading)
    options = SearchOptions(search="smallest", include=include, exclude=exclude, costs=costs)
    listing = ListOptions(limit, max_size)
    run = RunOptions(engine=engine, n_jobs=n_jobs, memory_limit=memory_limit, time_limit=time_limit)
    chosen_measure = as_measure(measure)
    with reporting(verbose, progress, None) as reporter, Session(data, read, run, reporter) as session:
        return AllReducts(session, chosen_measure, options, listing).run()


class AllReducts(ClauseSearch):
    """The search for all reducts: those of one size after another."""

    def __init__(self, session: Session, measure: Measure, options: SearchOptions, listing: ListOptions) -> None:
        super().__init__(session, measure, options)
        if measure.kind == OWN:
            raise ParameterError(f"plar.reducts supports the measures PR, SCE, LCE and CCE. Got {measure.name!r}.")
        self._limit = listing.limit or _NO_LIMIT
        self._max_size = listing.max_size or _NO_LIMIT
        self._members: list[NDArray[np.int32]] = []

    def run(self) -> Reducts:
        """Find the reducts; on Ctrl-C, `Interrupted` brings those found so far."""
        self.begin()
        try:
            with suppress(LimitReached):
                self._find_all()
        except KeyboardInterrupt:
            raise Interrupted(self._result()) from None
        result = self._result()
        if result:
            warn_after(self.session, [(result[0].attributes, None)])
        return result

    def _find_all(self) -> None:
        """Find them all, or as many as the limits allow."""
        size = len(set(self.core) - self.include)
        self.find_first_clauses()
        while not self.complete and size + len(self.include) <= self._max_size:
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
                        if len(self._members) >= self._limit:
                            raise LimitReached
                        seen.add(keys[i])
                        self._members.append(np.sort(np.concatenate([always, sets[i]])))
                self.reporter.phase("reducts", len(self._members), size + len(always))
                failed = [candidate for candidate, preserves in zip(candidates, passed, strict=True) if not preserves]
                self.add_clauses_for(failed[:_FAILURES])
                if len(failed) >= _FAILURES:
                    break
            if len(self.answers) == n_clauses:
                return is_last

    def _result(self) -> Reducts:
        """Say what was found."""
        costs = np.array(self.costs)

        def rank(member: NDArray[np.int32]) -> tuple[int, int, list[int]]:
            return int(costs[member].sum()), len(member), member.tolist()

        return Reducts(
            **self.subject(),
            core=self.names_of(self.core),
            complete=self.complete,
            members=tuple(sorted(self._members, key=rank)),
            seconds=perf_counter() - self.session.began,
        )
