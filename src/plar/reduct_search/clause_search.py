"""Clauses of a table, found as they are needed: what the searches for the smallest reduct and for all reducts share."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from time import perf_counter
from typing import Any, TypedDict

from plar.engines.clauses import ClauseQuestion, FoundClause
from plar.errors import Given, ParameterError
from plar.granules.fingerprint import spell_json
from plar.reduct_search.hitting_sets import HittingSets
from plar.search.base import Search
from plar.verification.witnesses import Witnesses, first_false

#: chains of disjoint clauses searched at a time
_CHAINS = 8


class Subject(TypedDict):
    """What a search is about: fields that `Proof` and `Reducts` share."""

    measure: str
    conditions: tuple[str, ...]
    decision: tuple[str, ...]
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    costs: dict[str, int]


class LimitReached(Exception):
    """A limit stopped the search."""


class ClauseSearch(Search):
    """A search that finds clauses as it needs them, of the sets that hold `include` and nothing of `exclude`."""

    def begin(self) -> None:
        """Open the table, find the core, which every reduct holds, and take the clauses that the checkpoint has."""
        self.prepare()
        self.find_core()
        names = self.granules.conditions
        costs = self.options.costs or {}
        self.n = len(names)
        self.exclude = frozenset(self.granules.positions(self.options.exclude))
        self.costs = [int(costs.get(name, 1)) for name in names]
        self.clause_finder = self.session.engine.clause_finder(self.granules, self.measure)
        saved = self.checkpoint.clauses
        self._check_saved(saved)
        #: by clause, in the order of the rows of `hitting.holds`
        self.answers = {answer.attributes: answer for answer in saved}
        self.hitting = HittingSets(self.costs, self.answers)
        #: seeds the orders in which the clause finder adds attributes
        self._turn = 0
        self._check_exclude()

    def _check_saved(self, saved: Sequence[FoundClause]) -> None:
        """Refuse a checkpoint unless two rows of the table prove each of its clauses, and the core fits them."""
        spelled_rows: dict[str, tuple[bytes, ...]] = {}

        def spell(row: tuple[Any, ...]) -> tuple[bytes, ...]:
            # many clauses share their rows
            key = repr(row)
            if key not in spelled_rows:
                spelled_rows[key] = tuple(map(spell_json, row))
            return spelled_rows[key]

        clauses = [Witnesses(attributes, spell(row), spell(other)) for attributes, row, other in saved]
        if clauses and first_false(clauses, self.clause_finder, self.measure) is not None:
            raise self.checkpoint.damaged()
        alone = {answer.attributes[0] for answer in saved if len(answer.attributes) == 1}
        if not alone.issubset(self.core):
            raise self.checkpoint.damaged()

    def _check_exclude(self) -> None:
        names = self.granules.conditions
        both = sorted(self.include & self.exclude)
        if both:
            raise ParameterError(
                f"{names[both[0]]!r} is in ", Given("include"), " and in ", Given("exclude"), ". Choose one."
            )
        if not self.exclude:
            return
        everything = range(self.n)
        missed = self.clause_finder.find([(set(everything) - self.exclude, everything)])[0]
        if missed is not None:
            listed = [repr(names[a]) for a in missed.attributes]
            needed = f"{listed[0]} is" if len(listed) == 1 else f"One of {', '.join(listed)} is"
            raise ParameterError(
                f"{needed} in every reduct, and ",
                Given("exclude"),
                " leaves that out. Take it out of ",
                Given("exclude"),
                ", or out of the table with ",
                Given("drop"),
                ", which changes what is preserved.",
            )

    def find_first_clauses(self) -> None:
        """Find the clauses of the core, then others until the greedy set that hits them all preserves Θ."""
        everything = frozenset(range(self.n))
        needed = self._ask([(everything - {a}, range(self.n)) for a in self.core if (a,) not in self.answers])
        if None in needed:  # the core of a checkpoint need not be that of the table
            raise self.checkpoint.damaged()
        self.clause_finder.assume(self.include.union(self.core))
        while self.look(self.hitting.greedy(self.include, self.exclude)):
            pass

    def look(self, candidate: frozenset[int]) -> bool:
        """Ask for clauses that a set does not hit; there are none if it preserves Θ.

        After each clause its attributes are added to the set, so that the clauses of a chain are disjoint.
        """
        self.check_time()
        first = self._ask([(candidate, self._order())])[0]
        if first is None:
            return False
        chains = [candidate.union(first.attributes), *[candidate] * (_CHAINS - 1)]
        while chains:
            self.check_time()
            clauses = self._ask([(chain, self._order()) for chain in chains])
            chains = [
                chain.union(clause.attributes)
                for chain, clause in zip(chains, clauses, strict=True)
                if clause is not None
            ]
        return True

    def add_clauses_for(self, candidates: Sequence[frozenset[int]]) -> None:
        """Ask for a clause that each set does not hit."""
        self._ask([(candidate, self._order()) for candidate in candidates])

    def subject(self) -> Subject:
        """What the search is about, as its result and its proof say it."""
        names = self.granules.conditions
        return {
            "measure": self.measure.name,
            "conditions": names,
            "decision": self.granules.decision,
            "include": self.names_of(sorted(self.include)),
            "exclude": self.names_of(sorted(self.exclude)),
            "costs": {name: cost for name, cost in zip(names, self.costs, strict=True) if cost != 1},
        }

    def check_time(self) -> None:
        """Stop the search at its deadline."""
        if perf_counter() >= self.session.deadline:
            raise LimitReached

    def _order(self) -> list[int]:
        self._turn += 1
        return Random(self._turn).sample(range(self.n), self.n)

    def _ask(self, questions: Sequence[ClauseQuestion]) -> list[FoundClause | None]:
        answers = self.clause_finder.find(questions)
        new: dict[tuple[int, ...], FoundClause] = {}
        for answer in answers:
            if answer is not None and answer.attributes not in self.answers:
                new.setdefault(answer.attributes, answer)
        self.answers |= new
        self.hitting.add(new)
        if new:
            self.checkpoint.add_clauses(new.values())
        return answers
