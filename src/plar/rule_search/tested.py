"""Rules that beat chance: for each decision, conditions are added while each says more than chance would.

A condition is added if it raises the share of the decision and matches a row of it that no rule has matched yet. Of
those, the one is taken that chance explains worst: the smallest tail of the hypergeometric distribution, exact and
without a seed, times the number of conditions that were tried. All rows count for every rule, so that each one can be
read by itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from plar.options import RuleOptions
from plar.rule_search.coded_rule import AddRule, CodedRule, IsLate
from plar.rule_search.coded_table import CodedCondition, CodedTable, Mask, Rows
from plar.rule_search.counting import ConditionCounts
from plar.rule_search.kernels import least_likely, log_tail

#: kinds of rows: of other decisions, and of the decision, those that some rule matches and the others
_OTHER = 0
_MATCHED = 1
_UNMATCHED = 2


class TestedRules:
    """The search for the rules of one decision.

    Parameters
    ----------
    table : CodedTable
    decision : int
    options : RuleOptions
    """

    __test__ = False  # it is no test of pytest's

    def __init__(self, table: CodedTable, decision: int, options: RuleOptions) -> None:
        self._table = table
        self._decision = decision
        self._options = options
        is_of_decision = table.decisions == decision
        self._kinds = np.where(is_of_decision, _UNMATCHED, _OTHER).astype(np.uint8)
        #: all rows, and those that the rule in hand matches
        self._of_all = ConditionCounts(table, 3)
        self._of_matched = ConditionCounts(table, 3)
        self._of_all.add(table.all_rows(), self._kinds)

    def find(self, add: AddRule, is_late: IsLate) -> bool:
        """Pass the rules on, one by one, until no condition beats chance; False if time was up before."""
        is_first = True
        while not is_late():
            grown = self._grow(is_first)
            if not grown:
                return True
            numbers = self._without_idle(list(grown))
            p_values = grown.values() if len(numbers) == len(grown) else self._p_values(numbers, is_first)
            conditions = self._conditions(numbers)
            rows = self._table.matching(conditions)
            counts = self._table.counts_by_decision(rows)
            add(CodedRule(conditions, self._decision, tuple(counts.tolist()), max(p_values)))
            self._note_matched(rows)
            is_first = False
        return False

    def _conditions(self, numbers: Sequence[int]) -> tuple[CodedCondition, ...]:
        return tuple(self._table.conditions[number] for number in numbers)

    def _grow(self, is_first: bool) -> dict[int, float]:
        """Add conditions until the rule is pure or none beats chance: their numbers, in order, with their p-values."""
        grown: dict[int, float] = {}
        counts = self._of_all
        rows: Rows | None = None
        limit = self._options.max_conditions
        while counts.totals[_OTHER] and (limit is None or len(grown) < limit):
            number, tail, n_candidates = least_likely(counts.of_conditions(), counts.totals, self._options.min_support)
            if number < 0:
                break
            p_value = self._adjusted(tail, n_candidates, is_first and not grown)
            if p_value > self._options.alpha:
                break
            grown[number] = p_value
            rows = self._table.matching(self._conditions([number]), rows)
            counts = self._counts_of(rows)
        return grown

    def _counts_of(self, rows: Rows) -> ConditionCounts:
        """The counts among some rows; valid until the next call."""
        counts = self._of_matched
        counts.clear()
        counts.add(rows, self._kinds)
        return counts

    def _adjusted(self, log_tail: float, n_candidates: int, is_first: bool) -> float:
        """A tail times the number of conditions that were tried; for the first of all, times that of decisions."""
        n_tried = n_candidates * (self._table.n_decisions if is_first else 1)
        return min(1.0, math.exp(log_tail) * n_tried)

    def _without_idle(self, numbers: list[int]) -> list[int]:
        """Drop conditions, in the order grown, without which the share of the decision is no lower."""
        masks = {number: self._table.matches(self._table.conditions[number]) for number in numbers}
        hits, matched = self._hits(masks, numbers)
        dropped = True
        while dropped:
            dropped = False
            for number in list(numbers):
                others = [other for other in numbers if other != number]
                new_hits, new_matched = self._hits(masks, others)
                if others and new_hits * matched >= hits * new_matched:
                    numbers = others
                    hits = new_hits
                    matched = new_matched
                    dropped = True
        return numbers

    def _hits(self, masks: Mapping[int, Mask], numbers: Sequence[int]) -> tuple[int, int]:
        """How many rows of the decision, and of all, meet some conditions."""
        is_met = np.ones(len(self._table), np.bool_)
        for number in numbers:
            is_met &= masks[number]
        weights = self._table.weights[is_met]
        hits = weights[self._table.decisions[is_met] == self._decision]
        return int(hits.sum()), int(weights.sum())

    def _p_values(self, numbers: Sequence[int], is_first: bool) -> list[float]:
        """The p-value of each condition among the rows that those before it match."""
        p_values: list[float] = []
        counts = self._of_all
        rows: Rows | None = None
        for number in numbers:
            of_conditions = counts.of_conditions()
            matched = of_conditions.sum(axis=1)
            n_rows = int(counts.totals.sum())
            n_candidates = int(((matched > 0) & (matched < n_rows)).sum())
            n_hits = n_rows - int(counts.totals[_OTHER])
            hits = int(matched[number] - of_conditions[number, _OTHER])
            tail = 0.0
            if hits * n_rows > int(matched[number]) * n_hits:
                tail = log_tail(n_rows, n_hits, int(matched[number]), hits, np.inf)
            p_values.append(self._adjusted(tail, n_candidates, is_first and not p_values))
            rows = self._table.matching(self._conditions([number]), rows)
            counts = self._counts_of(rows)
        return p_values

    def _note_matched(self, rows: Rows) -> None:
        """Some rule matches these rows."""
        fresh = rows[self._kinds[rows] == _UNMATCHED]
        self._of_all.add(fresh, self._kinds, -1)
        self._kinds[fresh] = _MATCHED
        self._of_all.add(fresh, self._kinds)
