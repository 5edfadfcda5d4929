"""Rules that beat chance: for each decision, conditions are added while each says more than chance would.

A condition is added if it raises the share of the decision and matches a row of it that no rule has matched yet. Of
those, the one is taken that chance explains worst: the smallest tail of the hypergeometric distribution, exact and
without a seed, times the number of conditions that were tried. All rows count for every rule, so that each one can be
read by itself.

What chance says of a condition depends only on those before it, and not on the rules so far. So each beginning of a
rule is looked at once, and the conditions that beat chance after it are kept, best first; a rule takes the first of
them that matches a new row, and those that do not are never asked again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from plar.grouping.bit_sets import Words, as_words
from plar.options import RuleOptions
from plar.rule_search.coded_rule import AddRule, CodedRule, IsLate
from plar.rule_search.coded_table import CodedTable
from plar.rule_search.counting import Candidates, ConditionCounts
from plar.rule_search.kernels import as_good_as, beating_chance, have_common, log_tail, ties
from plar.rule_search.row_sets import RowSets, Share

#: kinds of rows: of other decisions, and of the decision
_OTHER = 0
_HIT = 1

#: conditions by their numbers in `CodedTable.conditions`, in the order in which they were added
Beginning: TypeAlias = tuple[int, ...]


@dataclass(slots=True)
class _Continuations:
    """What may follow a beginning of a rule.

    Parameters
    ----------
    n_candidates : int
        How many conditions tell the rows apart that the beginning matches.
    numbers : (n,) array
        Those that beat chance, best first.
    n_used_up : int
        How many of the first of them match no new row any more.
    """

    n_candidates: int
    numbers: NDArray[np.int32]
    n_used_up: int = 0


class TestedRules:
    """The search for the rules of one decision.

    Parameters
    ----------
    table : CodedTable
    decision : int
    options : RuleOptions
    row_sets : RowSets
        Those of the table, which the searches for all decisions share.
    """

    __test__ = False  # it is no test of pytest's

    def __init__(self, table: CodedTable, decision: int, options: RuleOptions, row_sets: RowSets) -> None:
        self._table = table
        self._decision = decision
        self._options = options
        self._row_sets = row_sets
        is_of_decision = table.decisions == decision
        self._kinds = np.where(is_of_decision, _HIT, _OTHER).astype(np.uint8)
        self._of_decision = as_words(is_of_decision)
        #: rows of the decision that no rule has matched yet
        self._new_rows = self._of_decision.copy()
        self._counts = ConditionCounts(table, 2)
        self._candidates = Candidates(table)
        self._continuations: dict[frozenset[int], _Continuations] = {}

    def find(self, add: AddRule, is_late: IsLate) -> bool:
        """Pass the rules on, one by one, until no condition beats chance; False if time was up before."""
        is_first = True
        while not is_late():
            grown = self._grow(is_first)
            if not grown:
                return True
            needed = self._without_idle(grown)
            p_value = max(self._p_value(needed[: n + 1], is_first) for n in range(len(needed)))
            matched = self._row_sets.matching(needed)
            conditions = tuple(self._table.conditions[number] for number in needed)
            counts = self._table.counts_by_decision(self._row_sets.rows(matched))
            add(CodedRule(conditions, self._decision, tuple(counts.tolist()), p_value))
            self._new_rows &= ~matched
            is_first = False
        return False

    def _grow(self, is_first: bool) -> Beginning:
        """Add conditions until the rule is pure, or until none that matches a new row beats chance."""
        grown: Beginning = ()
        new_rows = self._new_rows
        limit = self._options.max_conditions
        while limit is None or len(grown) < limit:
            number = self._best_after(grown, new_rows)
            if number is None:
                break
            if is_first and not grown and not self._beats_chance_of_all(number):
                break
            grown = (*grown, number)
            new_rows = new_rows & self._row_sets.of_condition(number)
        return grown

    def _best_after(self, beginning: Beginning, new_rows: Words) -> int | None:
        """The best condition after some others that matches one of the new rows which they match."""
        following = self._following(beginning)
        while following.n_used_up < len(following.numbers):
            number = int(following.numbers[following.n_used_up])
            if have_common(new_rows, self._row_sets.of_condition(number)):
                return number
            following.n_used_up += 1
        return None

    def _following(self, beginning: Beginning) -> _Continuations:
        """What may follow some conditions."""
        key = frozenset(beginning)  # what they match does not depend on their order
        following = self._continuations.get(key)
        if following is None:
            following = self._look_at(beginning)
            self._continuations[key] = following
        return following

    def _look_at(self, beginning: Beginning) -> _Continuations:
        """Count how often every condition holds among the rows that a beginning matches."""
        counts = self._counts
        counts.clear()
        counts.add(self._row_sets.rows(self._row_sets.matching(beginning)), self._kinds)
        n_hits = int(counts.totals[_HIT])
        n_rows = n_hits + int(counts.totals[_OTHER])
        of_conditions = counts.of_conditions()
        numbers, log_tails, n_candidates = beating_chance(
            of_conditions, n_rows, n_hits, self._options.min_support, self._options.alpha
        )
        order = np.argsort(log_tails, kind="stable")
        numbers = numbers[order]
        most_hits_first = np.lexsort((numbers, -of_conditions[numbers, _HIT], ties(log_tails[order])))
        return _Continuations(n_candidates, numbers[most_hits_first].astype(np.int32))

    def _beats_chance_of_all(self, number: int) -> bool:
        """Whether the first condition of all beats chance although it was chosen for one decision of several."""
        n_tried = self._n_candidates(()) * self._table.n_decisions
        return bool(self._log_tail((number,)) <= as_good_as(math.log(self._options.alpha / n_tried)))

    def _p_value(self, conditions: Beginning, is_first: bool) -> float:
        """The p-value of the last of some conditions: its tail times the number of conditions that were tried.

        For the first of all it is multiplied by the number of decisions too.
        """
        n_tried = self._n_candidates(conditions[:-1])
        if is_first and len(conditions) == 1:
            n_tried *= self._table.n_decisions
        return min(1.0, math.exp(self._log_tail(conditions)) * n_tried)

    def _n_candidates(self, beginning: Beginning) -> int:
        """How many conditions tell the rows apart that a beginning of a rule matches."""
        continuations = self._continuations.get(frozenset(beginning))
        if continuations is not None:
            return continuations.n_candidates
        conditions = [self._table.conditions[number] for number in beginning]
        return self._candidates.count(self._row_sets.rows(self._row_sets.matching(beginning)), conditions)

    def _log_tail(self, conditions: Beginning) -> float:
        """Ln of the tail of the last of some conditions among the rows that the others match."""
        among = self._count(conditions[:-1])
        matched = self._count(conditions)
        if matched.n_hits * among.n_rows <= matched.n_rows * among.n_hits:
            return 0.0
        return float(log_tail(among.n_rows, among.n_hits, matched.n_rows, matched.n_hits, math.inf))

    def _without_idle(self, grown: Beginning) -> Beginning:
        """Drop conditions without which the share is no lower: each in turn, until none of them can go."""
        needed = list(grown)
        of_all = self._count(grown)
        place = 0
        n_kept = 0
        without_each: list[Share] = []
        while len(needed) > 1 and n_kept < len(needed):
            if not without_each:
                without_each = self._row_sets.count_without_each(needed, self._of_decision)
            place %= len(needed)
            without = without_each[place]
            if without.n_hits * of_all.n_rows >= of_all.n_hits * without.n_rows:
                del needed[place]
                of_all = without
                without_each = []
                n_kept = 0
            else:
                place += 1
                n_kept += 1
        return tuple(needed)

    def _count(self, conditions: Beginning) -> Share:
        """How many rows meet some conditions."""
        return self._row_sets.count(self._row_sets.matching(conditions), self._of_decision)
