"""What each rule adds to a prediction, beside the others.

Rules overlap, and those that say the same would count twice if each added what it says by itself. So what they add is
fitted, rule by rule: among the rows that a rule matches, the shares of the decisions are compared with those that all
rules predict so far, and the rule adds the logarithm of their ratio. After a few rounds all rules together agree with
what each says of its rows, and a rule that says nothing new adds nothing. Models of maximum entropy are fitted so.

References
----------
J. Darroch, D. Ratcliff: Generalized iterative scaling for log-linear models, 1972.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np

from plar.results.rules import EVIDENCE_UNITS, prior_shares
from plar.rule_search.coded_rule import CodedRule
from plar.rule_search.coded_table import CodedCondition, CodedTable
from plar.rule_search.kernels import fit_rule
from plar.rule_search.row_sets import RowSets

#: what rules add to each decision, in millionths of a nat
Evidence: TypeAlias = list[tuple[int, ...]]

#: how often every rule is fitted
ROUNDS: Final = 5
#: rows of the prior that are added to those that a rule matches
SMOOTHING: Final = 10.0


def fit_evidence(table: CodedTable, row_sets: RowSets, rules: Sequence[CodedRule], rounds: int = ROUNDS) -> Evidence:
    """Fit what the rules add: those that match most rows come first, so that names of decisions change nothing."""
    class_sizes = table.counts_by_decision(table.all_rows()).tolist()
    prior = np.array(prior_shares(class_sizes))
    smoothing = SMOOTHING * prior
    evidence = np.zeros((len(rules), table.n_decisions), np.int64)
    shares = np.tile(prior, (len(table), 1)) if rules else np.empty((0, table.n_decisions))
    order = sorted(range(len(rules)), key=lambda number: _size(rules[number]))
    conditions = [row_sets.numbers(rule.conditions) for rule in rules]
    for _ in range(rounds):
        for number in order:
            members = row_sets.matching(conditions[number])
            observed = np.array(rules[number].counts) + smoothing
            fit_rule(members, table.weights, shares, observed, smoothing, EVIDENCE_UNITS, evidence[number])
    return [tuple(units) for units in evidence.tolist()]


def _size(rule: CodedRule) -> tuple[int, int, tuple[CodedCondition, ...]]:
    """What orders rules, those that match most rows first."""
    return -sum(rule.counts), -rule.support, rule.conditions
