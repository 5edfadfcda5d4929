"""The smallest reduct, or the cheapest one, with a proof: clauses are found as they are needed, until they prove it.

The clause finder is asked about the cheapest set that hits all clauses found so far. If it preserves Θ(D|C),
no cheaper set does; otherwise it returns further clauses. Among the cheapest sets, the result is the one with
the fewest attributes, then the first by position.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from plar.errors import Given, Interrupted, ParameterError
from plar.granules.fingerprint import fingerprint_text
from plar.measures import OWN, Measure
from plar.options import SearchOptions
from plar.reduct_search.clause_search import ClauseSearch, LimitReached
from plar.reduct_search.hitting_sets import Node
from plar.results.proof import Clause, Proof
from plar.results.reduct import Certificate, Reduct
from plar.session.session import Session
from plar.session.warnings import warn_after


class SmallestSearch(ClauseSearch):
    """The search for the cheapest reduct: the best set so far, and what is proven about all of them."""

    def __init__(self, session: Session, measure: Measure, options: SearchOptions) -> None:
        super().__init__(session, measure, options)
        if measure.kind == OWN:
            raise ParameterError(
                Given("search", "smallest"),
                f" supports the measures PR, SCE, LCE and CCE. Got {measure.name!r}; use ",
                Given("search", "greedy"),
                " for it.",
            )
        self.lower = 0
        #: why nothing costs less
        self.tree: Node | None = None

    def run(self) -> Reduct:
        """Find the cheapest reduct; at the deadline, and on Ctrl-C, it is the best one found, with what is proven."""
        self.begin()
        try:
            with suppress(LimitReached):
                self._search()
            reduct = self._result()
        except KeyboardInterrupt:
            raise Interrupted(self._result()) from None
        warn_after(self.session, [(reduct.attributes, reduct.n_combinations)])
        return reduct

    def prepare(self) -> None:
        """Granules without a fingerprint, which the proof needs, are refused before any work is done."""
        super().prepare()
        self.fingerprint = fingerprint_text(self.granules.fingerprint())

    def begin(self) -> None:
        """Find the core; the best set so far is all that may be held."""
        super().begin()
        #: the best set so far, which preserves Θ
        self.best = frozenset(range(self.n)) - self.exclude
        self.end_phase("core")

    def _search(self) -> None:
        """Find clauses until they prove the cheapest set."""
        self._report_bounds()
        self.find_first_clauses()
        candidate = self.hitting.greedy(self.include, self.exclude)
        if self.hitting.cost(candidate) < self.hitting.cost(self.best):  # it preserves Θ
            self.best = candidate
            self._report_bounds()
        self._prove(deadline=0.0)
        self._descend(self.costs)
        self._prove(deadline=self.session.deadline)
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
                self._report_bounds()

    def _at_most(
        self, most: int, costs: Sequence[int], taken: frozenset[int], left_out: frozenset[int]
    ) -> frozenset[int] | None:
        candidate = self.hitting.with_costs(costs).at_most(most, taken, left_out, self.session.deadline)
        self.check_time()
        return candidate

    def _prove(self, deadline: float) -> None:
        """Bound the cost of all sets that hit the clauses, as far as time allows."""
        solution = self.hitting.cheapest(self.include, self.exclude, deadline)
        self.lower = solution.bound
        self.tree = solution.tree
        self._report_bounds()
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

    def _report_bounds(self) -> None:
        self.reporter.phase("smallest", self.lower, self.hitting.cost(self.best))

    def _result(self) -> Reduct:
        """Say what was found, and what is proven about it."""
        self.checkpoint.flush()
        if self.tree is None:  # stopped before the first bound
            self._prove(deadline=0.0)
        if self.lower != self.hitting.cost(self.best):
            self._thin_out()
        self.complete = self.lower == self.hitting.cost(self.best)
        chosen = sorted(self.best)
        self.end_phase("search")
        self.reporter.phase("certificate", 0, len(chosen))
        removable = self.clause_finder.preserve([self.best - {a} for a in chosen])
        redundant = self.names_of([a for a, is_removable in zip(chosen, removable, strict=True) if is_removable])
        proof = self._proof()
        return self.result_with(
            chosen,
            theta=self.value_all,
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
        granules = self.granules
        assert self.tree is not None
        nodes, used = _flat(self.tree, granules.conditions)
        answers = list(self.answers.values())
        clauses: list[Clause] = []
        for answer in (answers[i] for i in used):
            other_values = tuple(answer.other[a] for a in answer.attributes)
            clauses.append(Clause(self.names_of(answer.attributes), answer.row, other_values))
        return Proof(
            **self.subject(),
            n_objects=granules.n_objects,
            fingerprint=self.fingerprint,
            cuts=dict(granules.cuts),
            attributes=self.names_of(sorted(self.best)),
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
