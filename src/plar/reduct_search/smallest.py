"""The smallest reduct, or the cheapest one, with a proof: clauses are found as they are needed, until they prove it.

The oracle is asked about the cheapest set that hits all clauses found so far. If it preserves Θ(D|C), no cheaper set
does; otherwise the oracle returns further clauses. Among the cheapest sets, the result is the one with the fewest
attributes, then the first by position.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from plar.engines.base import Engine, GranuleSet
from plar.errors import Interrupted, ParameterError
from plar.granules.fingerprint import shown
from plar.measures import OWN, Measure
from plar.options import Options
from plar.reduct_search.clause_search import ClauseSearch, LimitReached
from plar.reduct_search.hitting_sets import Node
from plar.results.proof import Clause, Proof
from plar.results.reduct import Certificate, Reduct


def find_smallest(granules: GranuleSet, measure: Measure, engine: Engine, options: Options, **more: Any) -> Reduct:
    """Find the cheapest reduct of a granulated table; parameters are those of `plar.search.greedy.find_reduct`.

    At the deadline, and on Ctrl-C, it is the best one found, with what is proven about the others.
    """
    search = _Smallest(granules, measure, engine, options, **more)
    search.prepare()
    try:
        with suppress(LimitReached):
            search.run()
        return search.result()
    except KeyboardInterrupt:
        raise Interrupted(search.result()) from None


@dataclass
class _Smallest(ClauseSearch):
    """The search for the smallest: the best set so far, and what is proven about all of them."""

    lower: int = 0
    #: why nothing costs less
    tree: Node | None = None

    def prepare(self) -> None:
        """Find the core; the best set so far is all that may be held."""
        if self.measure.kind == OWN:
            raise ParameterError(
                f"search='smallest' supports the measures PR, SCE, LCE and CCE. Got {self.measure.name!r}; use "
                "search='greedy' for it."
            )
        self.fingerprint = shown(self.granules.fingerprint())  # needed for the proof
        super().prepare()
        #: the best set so far, which preserves Θ
        self.best = frozenset(range(self.n)) - self.exclude
        self.end("core")

    def run(self) -> None:
        """Find clauses until they prove the cheapest set."""
        self._print()
        self.begin()
        candidate = self.hitting.greedy(self.include, self.exclude)
        if self.hitting.cost(candidate) < self.hitting.cost(self.best):  # it preserves Θ
            self.best = candidate
            self._print()
        self._prove(deadline=0.0)
        self._descend(self.costs)
        self._prove(deadline=self.deadline)
        if len(set(self.costs)) > 1:
            # at equal cost the fewest attributes
            costs = [cost * (self.n + 1) + 1 for cost in self.costs]
            self._descend(costs)
            self._choose_first(costs)
        else:
            self._choose_first(self.costs)

    def _descend(self, costs: Sequence[int]) -> None:
        """Look for cheaper sets that hit all clauses until there are none; one that preserves Θ becomes the best."""
        while True:
            most = sum(costs[a] for a in self.best) - 1
            cheaper = self._at_most(most, costs, self.include, self.exclude)
            if cheaper is None:
                return
            if not self.look(cheaper):
                self.best = cheaper
                self._print()

    def _at_most(
        self, most: int, costs: Sequence[int], taken: frozenset[int], left_out: frozenset[int]
    ) -> frozenset[int] | None:
        candidate = self.hitting.with_costs(costs).at_most(most, taken, left_out, self.deadline)
        self.check_time()
        return candidate

    def _prove(self, deadline: float) -> None:
        """Bound the cost of all sets that hit the clauses, as far as time allows."""
        solution = self.hitting.cheapest(self.include, self.exclude, deadline)
        self.lower = solution.bound
        self.tree = solution.tree
        self._print()
        if deadline:
            self.check_time()

    def _choose_first(self, costs: Sequence[int]) -> None:
        """Among the sets as good as the best one, take the first by position."""
        most = sum(costs[a] for a in self.best)
        taken = self.include
        left_out = self.exclude
        for a in range(self.n):
            if taken == self.best:
                break
            while a not in self.best and a not in left_out:
                candidate = self._at_most(most, costs, taken | {a}, left_out)
                if candidate is None:
                    left_out |= {a}
                elif not self.look(candidate):
                    self.best = candidate
            taken |= self.best & {a}

    def _print(self) -> None:
        self.notify("smallest", self.lower, self.hitting.cost(self.best))

    def result(self) -> Reduct:
        """Say what was found, and what is proven about it."""
        names = self.granules.conditions
        self.journal.flush()
        if self.tree is None:  # stopped before the first bound
            self._prove(deadline=0.0)
        if self.lower != self.hitting.cost(self.best):
            self._thin_out()
        self.complete = self.lower == self.hitting.cost(self.best)
        chosen = sorted(self.best)
        self.end("search")
        self.notify("certificate", 0, len(chosen))
        removable = self.clause_finder.preserve([self.best - {a} for a in chosen])
        redundant = tuple(names[a] for a, gone in zip(chosen, removable, strict=True) if gone)
        proof = self._proof()
        return self.result_with(
            chosen,
            theta=self.theta_all,
            bounds=(proof.lower_bound, proof.cost),
            certificate=Certificate(True, redundant, not redundant),
            proof=proof,
        )

    def _thin_out(self) -> None:
        """Remove what the best set does not need, the most expensive and the last first."""
        size = len(self.best)
        while size:  # many at a time, then fewer
            falling = sorted(self.best - self.include, key=lambda a: (-self.costs[a], -a))
            for low in range(0, len(falling), size):
                fewer = self.best.difference(falling[low : low + size])
                if self.clause_finder.preserve([fewer])[0]:
                    self.best = fewer
            size //= 2

    def _proof(self) -> Proof:
        granules, names = self.granules, self.granules.conditions
        assert self.tree is not None
        nodes, used = _flat(self.tree, names)
        answers, clauses = list(self.answers.values()), []
        for answer in (answers[i] for i in used):
            named = tuple(names[a] for a in answer.attributes)
            clauses.append(Clause(named, answer.row, tuple(answer.other[a] for a in answer.attributes)))
        return Proof(
            **self.asked(),
            n_objects=granules.n_objects,
            fingerprint=self.fingerprint,
            cuts=dict(granules.cuts),
            attributes=tuple(names[a] for a in sorted(self.best)),
            cost=self.hitting.cost(self.best),
            lower_bound=self.lower,
            clauses=tuple(clauses),
            tree=tuple(nodes),
        )


def _flat(tree: Node, names: Sequence[str]) -> tuple[list[dict[str, Any]], list[int]]:
    """The nodes of a tree from the root on, and the clauses that they use, renumbered."""
    numbers: dict[int, int] = {}
    nodes: list[dict[str, Any]] = []
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if node.branches is not None:
            nodes.append({"attribute": names[node.attribute]})
            waiting += node.branches[::-1]
        elif node.unhit is not None:
            nodes.append({"unhit": numbers.setdefault(node.unhit, len(numbers))})
        else:
            weights = [[numbers.setdefault(i, len(numbers)), weight] for i, weight in node.weights]
            nodes.append({"scale": node.scale, "weights": weights})
    return nodes, list(numbers)
