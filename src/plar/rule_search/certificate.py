"""What certain and possible rules promise, looked up once more in the rows, without the counts of the search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plar.granules.granules import Granules
from plar.grouping.partition import class_numbers, distinct
from plar.results.rules import RuleCertificate
from plar.rule_search.coded_rule import CodedRule
from plar.rule_search.coded_table import CodedTable, Mask


def certify(table: CodedTable, concepts: Sequence[Mask], rules: Sequence[CodedRule]) -> RuleCertificate:
    """Look whether the rules of each decision describe its concept, and whether anything could be left out."""
    are_complete = True
    are_consistent = True
    are_conditions_needed = True
    are_rules_needed = True
    for decision, concept in enumerate(concepts):
        of_decision = [rule for rule in rules if rule.decision == decision]
        n_matching = np.zeros(len(table), np.int64)
        matched: list[Mask] = []
        for rule in of_decision:
            masks = [table.matches(condition) for condition in rule.conditions]
            n_met = np.sum(masks, axis=0, dtype=np.int64) if masks else np.zeros(len(table), np.int64)
            matched.append(n_met == len(masks))
            n_matching += matched[-1]
            are_consistent &= not (matched[-1] & ~concept).any()
            is_nearly_met = (n_met == len(masks) - 1) & ~concept
            are_conditions_needed &= all((is_nearly_met & ~mask).any() for mask in masks)
        are_complete &= bool((n_matching[concept] > 0).all())
        are_rules_needed &= all((mask & concept & (n_matching == 1)).any() for mask in matched)
    return RuleCertificate(are_complete, are_consistent, are_conditions_needed, are_rules_needed)


def concepts_of(granules: Granules, table: CodedTable, kind: str) -> list[Mask]:
    """The lower approximation of each decision, or for possible rules the upper one."""
    classes = class_numbers(*distinct(granules.coded, len(granules)))
    has_decision = np.zeros((int(classes.max(initial=0)) + 1, table.n_decisions), np.bool_)
    has_decision[classes, table.decisions] = True
    if kind == "certain":
        has_decision &= has_decision.sum(axis=1, keepdims=True) == 1
    return [has_decision[classes, decision] for decision in range(table.n_decisions)]
