"""The fewest columns with which a set preserves Θ(D|C) again: the search for the smallest reduct that includes it."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from time import perf_counter
from typing import Final

from plar.engines.base import GranuleSet
from plar.engines.clauses import FoundClause
from plar.measures import Measure
from plar.options import SearchOptions
from plar.reduct_search.clause_search import LimitReached
from plar.reduct_search.hitting_sets import HittingSets
from plar.reduct_search.smallest import SmallestSearch
from plar.results.check import Mending
from plar.session.session import Session

#: without a time limit a search takes no longer: few columns are found at once, and many may take for ever to prove
MOST_SECONDS: Final = 60.0


class MendingSearch(SmallestSearch):
    """The search for the fewest columns to add to a set that does not preserve Θ(D|C).

    The core, which costs as much as many checks, is not needed: clauses are asked for only where the set fails.
    """

    def __init__(self, session: Session, measure: Measure, granules: GranuleSet, attributes: Collection[int]) -> None:
        super().__init__(session, measure, SearchOptions(search="smallest"))
        self.granules = granules
        self.include = frozenset(attributes)
        self.exclude = frozenset()
        self.core = []
        self.n = len(granules.conditions)
        self.costs = [1] * self.n
        self.clause_finder = session.engine.clause_finder(granules, measure)
        self.answers = {}
        self.hitting = HittingSets(self.costs, [])
        self._turn = 0
        self.best = frozenset(range(self.n))

    def failing_clause(self) -> FoundClause | None:
        """Two rows that the set does not tell apart although it should, and what does; None if it preserves Θ(D|C)."""
        return self._ask([(self.include, range(self.n))])[0]

    def mend(self, clause: FoundClause) -> Mending:
        """Find the fewest columns; at the deadline those of the best set found, with what is proven.

        If a single column does it, it is one of those that tell two rows apart which the set does not.
        """
        alone = self._mending_alone(clause)
        if alone is not None:
            return Mending(self.names_of([alone]), 1)
        if self.session.run_options.time_limit is None:
            self.session.deadline = perf_counter() + MOST_SECONDS
        with suppress(LimitReached):
            self._search()
        if self.tree is None:  # stopped before the first bound
            self._prove(deadline=0.0)
        if self.lower != len(self.best):
            self._thin_out()
        added = sorted(self.best - self.include)
        return Mending(self.names_of(added), self.lower - len(self.include))

    def _mending_alone(self, clause: FoundClause) -> int | None:
        """The first column that is enough by itself; None if there is none."""
        self.clause_finder.assume(self.include)
        preserving = self.clause_finder.preserve([self.include | {a} for a in clause.attributes])
        return next((a for a, preserves in zip(clause.attributes, preserving, strict=True) if preserves), None)

    def find_first_clauses(self) -> None:
        """Find clauses until the greedy set that hits them all preserves Θ."""
        self.clause_finder.assume(self.include)
        while self.look(self.hitting.greedy(self.include, self.exclude)):
            pass
