"""The cheapest set that holds an attribute of every clause, with the reason why none is cheaper, in integers.

The search branches on an attribute: sets with it, sets without it. How cheap either can be is bounded by
weights of the clauses (a solution of the dual linear program): if for every attribute the weights of its
clauses add up to no more than its cost, then a set that hits all clauses costs at least the sum of all
weights. HiGHS proposes the weights in floating point; here they are rounded down to exact fractions, and only
these are used as bounds.
"""

from __future__ import annotations

import heapq
import math
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plar.reduct_search.hitting_set_search import NO_SET, TOO_MANY_NODES, as_bits, search_within

#: weights of the dual program are multiples of 1/720720, as most of its solutions are; otherwise of 1/2^40
_SCALES = 720_720, 1 << 40
#: clauses used for a bound when time is up
_FEW_CLAUSES = 300
#: a linear program has this much time for the least bound, even when time is up
_LEAST_SECONDS = 1.0
#: the bound of sets that can no longer hit some clause: more than any set costs
_IMPOSSIBLE = 1 << 100


@dataclass(slots=True)
class Node:
    """Sets that hold some attributes and not others: why none is cheaper than the bound, or how they are branched."""

    bound: int
    #: by clause, as multiples of 1/scale; empty if a clause can no longer be hit
    weights: tuple[tuple[int, int], ...] = ()
    scale: int = 1
    unhit: int | None = None
    #: the attribute that is branched on, the sets with it and those without
    attribute: int = -1
    branches: tuple[Node, Node] | None = None


class OpenNode(NamedTuple):
    """A node that is not branched yet; the one with the lowest bound is the first, then the one made first."""

    bound: int
    number: int
    node: Node
    taken: frozenset[int]
    left_out: frozenset[int]
    #: by attribute: its share in the fractional solution
    fractions: NDArray[np.float64]


class Solution(NamedTuple):
    """The cheapest set found, if any, and a lower bound for all sets with its tree."""

    attributes: frozenset[int] | None
    bound: int
    tree: Node


class HittingSets:
    """Sets that hit all of some clauses, of which none should contain another one; each attribute has a cost."""

    def __init__(self, costs: Sequence[int], clauses: Collection[tuple[int, ...]] = ()) -> None:
        self.costs = costs
        #: whether a clause, by row, holds an attribute, by column
        self.holds = np.zeros((0, len(costs)), np.bool_)
        self.add(clauses)

    def add(self, clauses: Collection[tuple[int, ...]]) -> None:
        """Add clauses."""
        new = np.zeros((len(clauses), len(self.costs)), np.bool_)
        for row, clause in zip(new, clauses, strict=True):
            row[[*clause]] = True
        self.holds = np.concatenate([self.holds, new])

    def with_costs(self, costs: Sequence[int]) -> HittingSets:
        """The same clauses at other costs."""
        other = HittingSets(costs)
        other.holds = self.holds
        return other

    def not_hit(self, attributes: Collection[int]) -> NDArray[np.bool_]:
        """Which clauses a set does not hit."""
        return np.logical_not(self.holds[:, sorted(attributes)].any(axis=1))

    def cost(self, attributes: Collection[int]) -> int:
        """What a set costs."""
        return sum(self.costs[a] for a in attributes)

    def greedy(
        self, taken: frozenset[int], left_out: frozenset[int], fractions: NDArray[np.float64] | None = None
    ) -> frozenset[int]:
        """Take what hits most per cost, breaking ties by a fractional solution, until all clauses are hit."""
        holds = self.holds
        chosen = set(taken)
        unhit = self.not_hit(taken)
        costs = np.array(self.costs, float)
        if fractions is None:
            fractions = np.zeros(len(costs))
        barred = sorted(left_out)
        while unhit.any():
            hits = holds[unhit].sum(axis=0)
            worth = np.where(hits > 0, (hits + 1e-3 * fractions) / costs, -1)
            worth[barred] = -1
            best = int(worth.argmax())
            if worth[best] < 0:
                raise ValueError("No attribute that may be taken hits some clause.")
            chosen.add(best)
            unhit &= ~holds[:, best]
        # then leave out what is not needed, the dearest first
        times_hit = holds[:, sorted(chosen)].sum(axis=1)
        for a in sorted(chosen - taken, key=lambda a: (-self.costs[a], -a)):
            if (times_hit[holds[:, a]] > 1).all():
                chosen.remove(a)
                times_hit -= holds[:, a]
        return frozenset(chosen)

    def at_most(
        self, cost: int, taken: frozenset[int], left_out: frozenset[int], deadline: float
    ) -> frozenset[int] | None:
        """A set within a cost that holds `taken` but not `left_out`; None if there is none, or at the deadline."""
        rest = cost - self.cost(taken)
        if rest < 0:
            return None
        of_clause = as_bits(self.holds)
        of_attribute = as_bits(self.holds.T)
        depths = min(self.holds.shape) + 2
        unhit = np.zeros((depths, of_attribute.shape[1]), np.uint64)
        unhit[0] = as_bits(self.not_hit(taken))
        free = np.zeros((depths, of_clause.shape[1]), np.uint64)
        free[0] = as_bits(self._free(taken, left_out))
        chosen = np.zeros(depths, np.int64)
        n_chosen = search_within(of_clause, of_attribute, np.array(self.costs, np.int64), rest, unhit, free, chosen)
        if n_chosen == TOO_MANY_NODES:  # the linear program bounds them better
            return self.cheapest(taken, left_out, deadline, cost).attributes
        if n_chosen == NO_SET:
            return None
        return taken.union(chosen[:n_chosen].tolist())

    def cheapest(
        self, taken: frozenset[int], left_out: frozenset[int], deadline: float, at_most: int | None = None
    ) -> Solution:
        """Find the cheapest set that holds `taken` and not `left_out`; or any that costs `at_most` that much.

        If there is none, or at the deadline, the set is None; at the deadline the bound is that of the tree so far.
        """
        cheapest: frozenset[int] | None = None
        cost = _IMPOSSIBLE if at_most is None else at_most + 1
        enough = -1 if at_most is None else at_most
        root, fractions = self._bounded(taken, left_out, deadline)
        waiting = [OpenNode(root.bound, 0, root, taken, left_out, fractions)]
        n_nodes = 1
        out_of_time = False
        while waiting and waiting[0].bound < cost and cost > enough:
            first = waiting[0]
            candidate = self.greedy(first.taken, first.left_out, first.fractions)
            if self.cost(candidate) < cost:
                cheapest = candidate
                cost = self.cost(candidate)
                continue
            if perf_counter() >= deadline:
                out_of_time = True
                break
            heapq.heappop(waiting)
            for branch in self._branched(first, n_nodes, deadline):
                heapq.heappush(waiting, branch)
            n_nodes += 2
        least = min([cost, *(open_node.bound for open_node in waiting)])
        return Solution(None if out_of_time else cheapest, least, root)

    def _branched(self, parent: OpenNode, n_nodes: int, deadline: float) -> tuple[OpenNode, OpenNode]:
        """Branch a node on an attribute: the sets with it, and those without."""
        a = self._branching_attribute(parent)
        with_it = parent.taken | {a}
        without_it = parent.left_out | {a}
        left, left_fractions = self._bounded(with_it, parent.left_out, deadline)
        right, right_fractions = self._bounded(parent.taken, without_it, deadline)
        parent.node.attribute = a
        parent.node.branches = left, right
        return (
            OpenNode(left.bound, n_nodes, left, with_it, parent.left_out, left_fractions),
            OpenNode(right.bound, n_nodes + 1, right, parent.taken, without_it, right_fractions),
        )

    def _branching_attribute(self, parent: OpenNode) -> int:
        """The attribute whose share is closest to one half, then the one that hits most, then the first."""
        distance = np.minimum(parent.fractions, 1 - parent.fractions)
        distance[sorted(parent.taken | parent.left_out)] = -1
        hits = self.holds[self.not_hit(parent.taken)].sum(axis=0)
        order = np.lexsort((-np.arange(len(distance)), hits, np.round(distance, 6)))
        return int(order[-1])

    def _bounded(
        self, taken: frozenset[int], left_out: frozenset[int], deadline: float
    ) -> tuple[Node, NDArray[np.float64]]:
        """Bound the sets that hold some attributes and not others; also return a fractional solution."""
        holds = self.holds
        cost = self.cost(taken)
        fractions = np.zeros(len(self.costs))
        fractions[sorted(taken)] = 1
        clauses = np.flatnonzero(self.not_hit(taken))
        if not len(clauses):
            return Node(cost), fractions
        free = self._free(taken, left_out)
        can_be_hit = (holds[clauses] & free).any(axis=1)
        if not can_be_hit.all():
            return Node(_IMPOSSIBLE, unhit=int(clauses[~can_be_hit][0])), fractions
        if len(clauses) > _FEW_CLAUSES and perf_counter() >= deadline:  # some clauses give a bound too, and faster
            by_size = np.argsort(holds[clauses].sum(axis=1), kind="stable")
            clauses = clauses[by_size[:_FEW_CLAUSES]]
        attributes = np.flatnonzero(free & holds[clauses].any(axis=0))
        part = holds[np.ix_(clauses, attributes)]
        costs = [self.costs[a] for a in attributes.tolist()]
        part_fractions, weights = _relaxed(part, costs, deadline)
        fractions[attributes] = np.clip(part_fractions, 0, 1)
        best = Node(cost)
        for scale in _SCALES:
            whole = _rounded_down(part, costs, weights, scale)
            bound = cost - (-sum(whole) // scale)
            if bound > best.bound:
                nonzero = tuple((int(i), weight) for i, weight in zip(clauses, whole, strict=True) if weight)
                best = Node(bound, nonzero, scale)
            if bound >= math.ceil(cost + weights.sum() - 1e-6):
                break
        return best, fractions

    def _free(self, taken: frozenset[int], left_out: frozenset[int]) -> NDArray[np.bool_]:
        free = np.ones(len(self.costs), np.bool_)
        free[sorted(taken | left_out)] = False
        return free


def _relaxed(
    holds: NDArray[np.bool_], costs: Sequence[int], deadline: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Solve the linear program: fractions of the attributes, and weights of the clauses; not both if time is short."""
    if sys.modules.get("scipy", sys) is None:  # the command line hides scipy from numba
        del sys.modules["scipy"]
    from scipy.optimize import linprog  # takes longer to import than most tables take to reduce
    from scipy.sparse import csr_array

    limit = {"time_limit": max(deadline - perf_counter(), _LEAST_SECONDS)} if deadline < math.inf else {}
    clauses = csr_array(-holds.astype(float))
    solution = linprog(costs, A_ub=clauses, b_ub=-np.ones(len(holds)), method="highs", options=limit)
    if solution.x is None or solution.status != 0:
        return np.zeros(len(costs)), _packed(holds, costs)
    return solution.x, np.maximum(-solution.ineqlin.marginals, 0)


def _packed(holds: NDArray[np.bool_], costs: Sequence[int]) -> NDArray[np.float64]:
    """Weights without a linear program: each clause, smallest first, takes what its attributes have left."""
    weights = np.zeros(len(holds))
    left = np.array(costs, float)
    for i in np.argsort(holds.sum(axis=1), kind="stable"):
        weights[i] = left[holds[i]].min()
        left[holds[i]] -= weights[i]
    return weights


def _rounded_down(
    holds: NDArray[np.bool_], costs: Sequence[int], weights: NDArray[np.float64], scale: int
) -> list[int]:
    """Weights as whole multiples of 1/scale that exceed no attribute's cost."""
    whole = [int(w * scale + 1e-4) for w in weights.tolist()]
    for column, cost in zip(holds.T, costs, strict=True):
        clauses = np.flatnonzero(column).tolist()
        over = sum(whole[i] for i in clauses) - cost * scale
        for i in clauses:
            if over <= 0:
                break
            less = min(over, whole[i])
            whole[i] -= less
            over -= less
    return whole
