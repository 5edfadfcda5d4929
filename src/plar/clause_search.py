"""Clauses of a table, found as they are needed: what the searches for the smallest reduct and for all reducts share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from time import perf_counter

from plar.engines.oracle import Answer, Oracle, Question
from plar.errors import ParameterError
from plar.hitting_sets import HittingSets

#: chains of disjoint clauses searched at a time
_CHAINS = 8


class LimitReached(Exception):
    """A limit stopped the search."""


@dataclass
class ClauseSearch:
    """The clauses known so far, of the sets of attributes that hold `include` and nothing of `exclude`."""

    oracle: Oracle
    names: Sequence[str]
    costs: Sequence[int]
    include: frozenset[int]
    exclude: frozenset[int]
    deadline: float
    #: called with the new clauses
    keep: Callable[[Sequence[Answer]], None] = lambda answers: None
    #: each with the rows that prove it, in the order of the rows of `hitting.holds`
    answers: dict[tuple[int, ...], Answer] = field(default_factory=dict)
    #: seeds the orders in which the oracle adds attributes
    _turn: int = 0

    def __post_init__(self) -> None:
        self.hitting = HittingSets(self.costs, self.answers)
        both = sorted(self.include & self.exclude)
        if both:
            raise ParameterError(f"{self.names[both[0]]!r} is in 'include' and in 'exclude'. Choose one.")
        everything = range(len(self.names))
        missed = self.oracle.find([(set(everything) - self.exclude, everything)])[0] if self.exclude else None
        if missed is not None:
            listed = [repr(self.names[a]) for a in missed.attributes]
            needed = f"{listed[0]} is" if len(listed) == 1 else f"One of {', '.join(listed)} is"
            raise ParameterError(
                f"{needed} in every reduct, and 'exclude' leaves that out. Take it out of 'exclude', or out of the "
                "table with 'drop', which changes what is preserved."
            )

    def begin(self, core: Sequence[int]) -> None:
        """Find the clauses of the core, then others until the greedy set that hits them all preserves Θ."""
        everything = frozenset(range(len(self.names)))
        self._ask([(everything - {a}, range(len(self.names))) for a in core if (a,) not in self.answers])
        self.oracle.assume(self.include.union(core))
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
            answers = self._ask([(held, self._order()) for held in chains])
            chains = [held.union(one.attributes) for held, one in zip(chains, answers, strict=True) if one is not None]
        return True

    def look_at_each(self, candidates: Sequence[frozenset[int]]) -> None:
        """Ask for a clause that each set does not hit."""
        self._ask([(candidate, self._order()) for candidate in candidates])

    def check_time(self) -> None:
        """Stop the search at its deadline."""
        if perf_counter() >= self.deadline:
            raise LimitReached

    def _order(self) -> list[int]:
        self._turn += 1
        return Random(self._turn).sample(range(len(self.names)), len(self.names))

    def _ask(self, questions: Sequence[Question]) -> list[Answer | None]:
        answers = self.oracle.find(questions)
        new: dict[tuple[int, ...], Answer] = {}
        for one in answers:
            if one is not None and one.attributes not in self.answers:
                new.setdefault(one.attributes, one)
        self.answers |= new
        self.hitting.add(new)
        if new:
            self.keep(list(new.values()))
        return answers
