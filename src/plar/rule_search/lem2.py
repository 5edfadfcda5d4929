"""LEM2: the fewest conditions and rules, as far as one pass finds them, that describe a set of rows exactly.

A rule takes one condition after another: of those that exclude some row outside the set, the one that holds for most
rows of the set that no rule matches yet; among ties the one that holds for the fewest rows of the table. Then
conditions go that are not needed, and in the end rules.

References
----------
J. Grzymala-Busse: LERS, a system for learning from examples based on rough sets, 1992.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plar.options import RuleOptions
from plar.rule_search.coded_rule import AddRule, CodedRule, IsLate
from plar.rule_search.coded_table import CodedCondition, CodedTable, Mask, Rows
from plar.rule_search.counting import ConditionCounts
from plar.rule_search.kernels import most_covering

#: kinds of rows: outside the set, and in it
_OUTSIDE = 0
_GOAL = 1


class _FoundRule(NamedTuple):
    """The conditions of a rule, and the rows of the concept that it matches."""

    conditions: tuple[CodedCondition, ...]
    covered: Rows


class Lem2:
    """The search for rules that match the rows of a set, its concept, and no others.

    Parameters
    ----------
    table : CodedTable
    decision : int
        What the rules say.
    concept : (n_rows,) array of bool
        The set: rows that agree in all columns are in it together, or not at all.
    options : RuleOptions
    """

    def __init__(self, table: CodedTable, decision: int, concept: Mask, options: RuleOptions) -> None:
        self._table = table
        self._decision = decision
        self._options = options
        self._kinds = np.where(concept, _GOAL, _OUTSIDE).astype(np.uint8)
        self._outside: Rows = np.flatnonzero(~concept).astype(np.uint32)
        #: rows of the concept that no rule matches yet
        self._uncovered = concept.copy()
        self._rules: list[_FoundRule] = []
        #: among all rows outside, and those of the goal
        self._of_all = ConditionCounts(table, 2)
        self._of_all.add(table.all_rows(), self._kinds)
        #: how many rows of the table each condition holds for
        self._sizes = self._of_all.of_conditions().sum(axis=1)
        self._of_matched = ConditionCounts(table, 2)

    def find(self, add: AddRule, is_late: IsLate) -> bool:
        """Pass the rules on, after Ctrl-C too; False if time was up before all rows of the concept were matched."""
        finished = True
        try:
            while self._uncovered.any():
                if is_late():
                    finished = False
                    break
                self._find_one()
        finally:
            for rule in self._needed_rules():
                counts = self._table.counts_by_decision(self._table.matching(rule.conditions))
                add(CodedRule(rule.conditions, self._decision, tuple(counts.tolist())))
        return finished

    def _find_one(self) -> None:
        """Add a rule; or, if it does not keep to the limits, give its rows up."""
        grown, goal = self._grow()
        conditions = self._needed_conditions(grown)
        matched = self._table.matching(conditions)
        covered = matched[self._kinds[matched] == _GOAL]
        limit = self._options.max_conditions
        is_too_long = limit is not None and len(conditions) > limit
        of_decision = covered[self._table.decisions[covered] == self._decision]
        is_too_small = int(self._table.weights[of_decision].sum()) < self._options.min_support
        if is_too_long or is_too_small:
            self._note_done(goal)
            return
        self._rules.append(_FoundRule(tuple(conditions), covered))
        self._note_done(covered[self._uncovered[covered]])

    def _grow(self) -> tuple[list[CodedCondition], Rows]:
        """Add conditions until no row outside meets them all; returns them with the rows of the goal that do."""
        conditions: list[CodedCondition] = []
        rows = np.concatenate([np.flatnonzero(self._uncovered).astype(np.uint32), self._outside])
        counts = self._of_matched
        counts.copy_from(self._of_all)
        while counts.totals[_OUTSIDE]:
            number = most_covering(counts.of_conditions(), counts.totals[_OUTSIDE], self._sizes)
            condition = self._table.conditions[number]
            conditions.append(condition)
            is_met = self._table.matches(condition, rows)
            counts.keep(rows, is_met, self._kinds)
            rows = rows[is_met]
        return conditions, rows

    def _needed_conditions(self, conditions: Sequence[CodedCondition]) -> list[CodedCondition]:
        """Drop conditions, in their order, without which the others still exclude all rows outside."""
        fails = [~self._table.matches(condition, self._outside) for condition in conditions]
        n_failed = np.sum(fails, axis=0, dtype=np.int64)
        needed: list[CodedCondition] = []
        for condition, of_condition in zip(conditions, fails, strict=True):
            if (of_condition & (n_failed == 1)).any():
                needed.append(condition)
            else:
                n_failed -= of_condition
        return needed

    def _note_done(self, rows: NDArray[np.uint32]) -> None:
        """No rule is looked for that matches these rows."""
        self._uncovered[rows] = False
        self._of_all.add(rows, self._kinds, -1)

    def _needed_rules(self) -> list[_FoundRule]:
        """The rules, in their order, without those whose rows others match; small rules go first."""
        n_matching = np.zeros(len(self._table), np.int64)
        for rule in self._rules:
            n_matching[rule.covered] += 1
        needed = set(range(len(self._rules)))
        for i in sorted(needed, key=lambda i: int(self._table.weights[self._rules[i].covered].sum())):
            covered = self._rules[i].covered
            if (n_matching[covered] > 1).all():
                n_matching[covered] -= 1
                needed.remove(i)
        return [self._rules[i] for i in sorted(needed)]
