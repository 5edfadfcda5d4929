"""Rules from their definitions: what they promise, the searches step by step, and their statistics.

Plain Python and exact numbers, nothing from plar. A set of rows is a whole number whose bits are the rows.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from support.oracle import Table

#: below every number, for the condition that there is one
LOWEST = -1.7976931348623157e308
#: logarithms of tails tie if they differ by no more than this, relative to them
ROUNDING = 1e-11

Condition = tuple[str, str, Any]
Rows = int


@dataclass(frozen=True)
class Rule:
    """Conditions, what they say, and how likely that is by chance, if it was tested."""

    conditions: tuple[Condition, ...]
    decision: Hashable
    p_value: float | None = None


@dataclass(frozen=True)
class Limits:
    """What the searches may be told."""

    min_support: int = 1
    max_conditions: int | None = None
    alpha: float = 0.05


@dataclass(frozen=True)
class Verdict:
    """What a brute-force look at all rows says about rules; by the names of the certificate."""

    complete: bool
    consistent: bool
    conditions_needed: bool
    rules_needed: bool


def order(value: Any) -> tuple[int, float, str]:
    """Numbers by their size, as text too; then other text; then what is missing."""
    if value is None:
        return 2, 0.0, ""
    try:
        return 0, float(value), str(value)
    except ValueError:
        return 1, 0.0, str(value)


@dataclass(frozen=True)
class RuleTable:
    """A table, and at which points its columns of numbers are cut."""

    table: Table
    cuts: Mapping[str, Sequence[float]]

    @property
    def everything(self) -> Rows:
        """All rows."""
        return (1 << len(self.table.rows)) - 1

    @cached_property
    def _digits(self) -> list[Rows]:
        """For each binary digit the rows whose weight has it."""
        n_digits = max(self.table.weights).bit_length()
        return [rows_where(weight >> digit & 1 for weight in self.table.weights) for digit in range(n_digits)]

    def size(self, rows: Rows) -> int:
        """How many rows these are, by their weights."""
        return sum((rows & of_digit).bit_count() << digit for digit, of_digit in enumerate(self._digits))

    def column(self, name: str) -> list[Any]:
        """The values of a column."""
        place = self.table.conditions.index(name)
        return [row[place] for row in self.table.rows]

    def bin_of(self, name: str, value: Any) -> Any:
        """The value, or in a column that is cut the number of cut points below it."""
        if value is None or name not in self.cuts:
            return value
        return sum(point < value for point in self.cuts[name])

    def meets(self, condition: Condition) -> Rows:
        """The rows that meet a condition."""
        name, operator, value = condition
        column = self.column(name)
        if operator == "=":
            return rows_where(cell == value for cell in column)
        if operator == "<=":
            return rows_where(cell is not None and cell <= value for cell in column)
        if operator == ">":
            return rows_where(cell is not None and cell > value for cell in column)
        raise ValueError(operator)

    def meet_all(self, conditions: Iterable[Condition]) -> Rows:
        """The rows that meet all conditions."""
        rows = self.everything
        for condition in conditions:
            rows &= self.meets(condition)
        return rows

    @cached_property
    def decisions(self) -> dict[Hashable, Rows]:
        """The rows with each decision, in the order of the decisions."""
        different = sorted(set(self.table.decisions), key=order)
        return {j: rows_where(decision == j for decision in self.table.decisions) for j in different}

    @cached_property
    def classes(self) -> list[Rows]:
        """The rows of each class of U/C: equal in all columns, or in the same bins."""
        classes: dict[tuple[Any, ...], Rows] = {}
        for number, row in enumerate(self.table.rows):
            key = tuple(self.bin_of(name, value) for name, value in zip(self.table.conditions, row, strict=True))
            classes[key] = classes.get(key, 0) | 1 << number
        return list(classes.values())

    def lower(self, decision: Hashable) -> Rows:
        """The rows of all classes in which every row has the decision."""
        return sum(rows for rows in self.classes if not rows & ~self.decisions[decision])

    def upper(self, decision: Hashable) -> Rows:
        """The rows of all classes in which some row has the decision."""
        return sum(rows for rows in self.classes if rows & self.decisions[decision])

    def concept(self, decision: Hashable, kind: str) -> Rows:
        """What certain or possible rules describe."""
        return {"certain": self.lower, "possible": self.upper}[kind](decision)

    @cached_property
    def candidates(self) -> dict[Condition, Rows]:
        """All conditions that a rule may have, with the rows that meet each, in the order in which ties are broken."""
        conditions = [condition for name in self.table.conditions for condition in self._conditions_on(name)]
        return {condition: self.meets(condition) for condition in conditions}

    def _conditions_on(self, name: str) -> list[Condition]:
        values = sorted(set(self.column(name)), key=order)
        if name not in self.cuts:
            return [(name, "=", value) for value in values]
        bins = sorted({self.bin_of(name, value) for value in values if value is not None})
        missing: list[Condition] = [(name, "=", None)] if None in values else []
        points = [self.cuts[name][number] for number in bins[:-1]]
        if missing and len(bins) == 1:
            return [*missing, (name, ">", LOWEST)]
        return [*missing, *((name, "<=", point) for point in points), *((name, ">", point) for point in points)]


def rows_where(is_met: Iterable[Any]) -> Rows:
    """The numbers of the true ones."""
    return sum(1 << number for number, met in enumerate(is_met) if met)


# -- what rules promise ------------------------------------------------------------------------------------------


def judge(table: RuleTable, rules: Sequence[Rule], kind: str) -> Verdict:
    """Look at all rows whether certain or possible rules are complete and consistent, with nothing to spare."""
    complete = True
    consistent = True
    conditions_needed = True
    rules_needed = True
    for decision in table.decisions:
        concept = table.concept(decision, kind)
        of_decision = [rule for rule in rules if rule.decision == decision]
        complete &= not concept & ~matched_by(table, of_decision)
        for number, rule in enumerate(of_decision):
            consistent &= not matched_by(table, [rule]) & ~concept
            for place in range(len(rule.conditions)):
                others = rule.conditions[:place] + rule.conditions[place + 1 :]
                conditions_needed &= bool(table.meet_all(others) & ~concept)
            other_rules = of_decision[:number] + of_decision[number + 1 :]
            rules_needed &= bool(concept & matched_by(table, [rule]) & ~matched_by(table, other_rules))
    return Verdict(complete, consistent, conditions_needed, rules_needed)


def matched_by(table: RuleTable, rules: Iterable[Rule]) -> Rows:
    """The rows that any of the rules matches."""
    rows = 0
    for rule in rules:
        rows |= table.meet_all(rule.conditions)
    return rows


# -- statistics --------------------------------------------------------------------------------------------------


def statistics(table: RuleTable, rule: Rule) -> dict[str, Any]:
    """The numbers of a rule, exact."""
    matched = table.meet_all(rule.conditions)
    of_decision = table.decisions[rule.decision]
    support = table.size(matched & of_decision)
    confidence = Fraction(support, table.size(matched))
    prior = Fraction(table.size(of_decision), table.size(table.everything))
    return {
        "counts": tuple(table.size(matched & rows) for rows in table.decisions.values()),
        "support": support,
        "confidence": confidence,
        "coverage": Fraction(support, table.size(of_decision)),
        "lift": confidence / prior,
    }


def unmatched(table: RuleTable, rules: Iterable[Rule]) -> tuple[int, ...]:
    """How many rows of each decision no rule matches."""
    matched = matched_by(table, rules)
    return tuple(table.size(rows & ~matched) for rows in table.decisions.values())


def in_order(table: RuleTable, rules: Sequence[Rule]) -> list[Rule]:
    """By decision, then by support, the largest first, then as found."""
    decisions = list(table.decisions)
    return sorted(rules, key=lambda rule: (decisions.index(rule.decision), -statistics(table, rule)["support"]))


# -- evidence ----------------------------------------------------------------------------------------------------


def evidence(table: RuleTable, rules: Sequence[Rule], n_rounds: int) -> list[tuple[int, ...]]:
    """What each rule adds to each decision beside the others, in millionths of a nat.

    Rule by rule, and in so many rounds, the decisions that are observed among the rows that a rule matches are compared
    with those that all rules predict so far, each after ten rows of the prior were added. Rules that match most rows
    come first, of these those of the largest support, then by their conditions.
    """
    class_sizes = [table.size(rows) for rows in table.decisions.values()]
    prior = [(size + 1) / (sum(class_sizes) + len(class_sizes)) for size in class_sizes]
    shares = [list(prior) for _ in table.table.rows]
    totals = [[0] * len(prior) for _ in rules]
    places = {condition: place for place, condition in enumerate(table.candidates)}

    def key(number: int) -> tuple[Any, ...]:
        numbers = statistics(table, rules[number])
        return -sum(numbers["counts"]), -numbers["support"], [places[c] for c in rules[number].conditions]

    in_turn = sorted(range(len(rules)), key=key)
    for _ in range(n_rounds):
        for rule, of_rule in [(rules[number], totals[number]) for number in in_turn]:
            members = table.meet_all(rule.conditions)
            rows = [row for row in range(len(shares)) if members >> row & 1]
            counts = statistics(table, rule)["counts"]
            factors = []
            for j, share in enumerate(prior):
                expected = math.fsum(table.table.weights[row] * shares[row][j] for row in rows)
                added = round(1_000_000 * math.log((counts[j] + 10 * share) / (expected + 10 * share)))
                of_rule[j] += added
                factors.append(math.exp(added / 1_000_000))
            for row in rows:
                products = [share * factor for share, factor in zip(shares[row], factors, strict=True)]
                shares[row] = [product / math.fsum(products) for product in products]
    return [tuple(of_rule) for of_rule in totals]


# -- LEM2 --------------------------------------------------------------------------------------------------------


def lem2(table: RuleTable, kind: str, limits: Limits) -> list[Rule]:
    """The rules of LEM2 for all decisions, in the order of a result."""
    rules = [rule for decision in table.decisions for rule in _lem2_of(table, decision, kind, limits)]
    return in_order(table, rules)


def _lem2_of(table: RuleTable, decision: Hashable, kind: str, limits: Limits) -> list[Rule]:
    concept = table.concept(decision, kind)
    outside = table.everything & ~concept
    uncovered = concept
    rules: list[Rule] = []
    while uncovered:
        conditions = _grow_lem2(table, uncovered, outside)
        goal = uncovered & table.meet_all(conditions)
        for condition in list(conditions):
            others = [other for other in conditions if other != condition]
            if not table.meet_all(others) & outside:
                conditions = others
        rule = Rule(tuple(conditions), decision)
        is_too_long = limits.max_conditions is not None and len(conditions) > limits.max_conditions
        if is_too_long or statistics(table, rule)["support"] < limits.min_support:
            uncovered &= ~goal
        else:
            rules.append(rule)
            uncovered &= ~table.meet_all(conditions)
    for rule in sorted(rules, key=lambda rule: table.size(table.meet_all(rule.conditions))):
        others_of_it = [other for other in rules if other is not rule]
        if not table.meet_all(rule.conditions) & ~matched_by(table, others_of_it):
            rules = others_of_it
    return rules


def _grow_lem2(table: RuleTable, goal: Rows, outside: Rows) -> list[Condition]:
    """Add the condition that holds for most rows of the goal and excludes one outside, until none of these is left."""
    conditions: list[Condition] = []
    while outside:
        useful = [(condition, rows) for condition, rows in table.candidates.items() if rows & goal and outside & ~rows]
        most = max(table.size(rows & goal) for _, rows in useful)
        ties = [(condition, rows) for condition, rows in useful if table.size(rows & goal) == most]
        best, best_rows = min(ties, key=lambda tie: table.size(tie[1]))  # of equals the first
        conditions.append(best)
        goal &= best_rows
        outside &= best_rows
    return conditions


# -- tested rules ------------------------------------------------------------------------------------------------


def beats_chance(table: RuleTable, limits: Limits) -> list[Rule]:
    """The tested rules of all decisions, in the order of a result."""
    if len(table.decisions) == 1:
        [decision] = table.decisions
        return [Rule((), decision)] if table.size(table.everything) >= limits.min_support else []
    rules = [rule for decision in table.decisions for rule in _tested_of(table, decision, limits)]
    return in_order(table, rules)


def _tested_of(table: RuleTable, decision: Hashable, limits: Limits) -> list[Rule]:
    of_decision = table.decisions[decision]
    fresh = of_decision
    rules: list[Rule] = []
    while True:
        grown = _grow_tested(table, of_decision, fresh, limits, is_first=not rules)
        if not grown:
            return rules
        conditions = without_idle(table, of_decision, list(grown))
        p_values = list(grown.values())
        if len(conditions) < len(grown):
            p_values = _p_values(table, of_decision, conditions, is_first=not rules)
        rules.append(Rule(tuple(conditions), decision, float(max(p_values))))
        fresh &= ~table.meet_all(conditions)


def _grow_tested(
    table: RuleTable, of_decision: Rows, fresh: Rows, limits: Limits, *, is_first: bool
) -> dict[Condition, Fraction]:
    """Add conditions, each with its p-value, until the rule is pure or none beats chance."""
    grown: dict[Condition, Fraction] = {}
    rows = table.everything
    while rows & ~of_decision and (limits.max_conditions is None or len(grown) < limits.max_conditions):
        tails = {
            condition: tail(table, of_decision, rows, of_condition)
            for condition, of_condition in table.candidates.items()
            if rows & of_condition & fresh
            and table.size(rows & of_condition & of_decision) >= limits.min_support
            and raises_share(table, of_decision, rows, of_condition)
        }
        if not tails:
            break
        least = min(tails.values())
        ties = [condition for condition in tails if is_tie(tails[condition], least)]
        best = max(ties, key=lambda condition: table.size(rows & table.candidates[condition] & of_decision))
        p_value = adjusted(table, least, rows, is_first=is_first and not grown)
        if not is_at_most(p_value, limits.alpha):
            break
        grown[best] = p_value
        rows &= table.candidates[best]
    return grown


def raises_share(table: RuleTable, of_decision: Rows, rows: Rows, of_condition: Rows) -> bool:
    """Whether the share of the decision is larger among the rows that meet the condition."""
    n_matched = table.size(rows & of_condition)
    hits = table.size(rows & of_condition & of_decision)
    return hits * table.size(rows) > n_matched * table.size(rows & of_decision)


def tail(table: RuleTable, of_decision: Rows, rows: Rows, of_condition: Rows) -> Fraction:
    """How likely so many rows of the decision would meet the condition, if those that do were drawn at random."""
    return hypergeometric_tail(
        table.size(rows),
        table.size(rows & of_decision),
        table.size(rows & of_condition),
        table.size(rows & of_condition & of_decision),
    )


def hypergeometric_tail(n_rows: int, n_hits: int, n_matched: int, n_matched_hits: int) -> Fraction:
    """P(K ≥ k) for the hits K among n of N rows, from the definition."""
    ways = sum(
        math.comb(n_hits, k) * math.comb(n_rows - n_hits, n_matched - k)
        for k in range(n_matched_hits, min(n_hits, n_matched) + 1)
    )
    return Fraction(ways, math.comb(n_rows, n_matched))


def log_of(share: Fraction) -> float:
    """Its logarithm, however small it is."""
    return math.log(share.numerator) - math.log(share.denominator)


def is_tie(share: Fraction, least: Fraction) -> bool:
    """Whether two tails are equal, up to the rounding that plar allows for."""
    return share == least or log_of(share) <= log_of(least) + ROUNDING * (1 - log_of(least))


def is_at_most(p_value: Fraction, alpha: float) -> bool:
    """Whether a p-value is at most alpha as it is written: 1/20 is at most 0.05."""
    return p_value <= Fraction(repr(alpha))


def adjusted(table: RuleTable, least: Fraction, rows: Rows, *, is_first: bool) -> Fraction:
    """A tail times the number of conditions that tell the rows apart, the first of all also times that of decisions."""
    n_candidates = sum(1 for of_condition in table.candidates.values() if rows & of_condition and rows & ~of_condition)
    n_tried = n_candidates * (len(table.decisions) if is_first else 1)
    return min(Fraction(1), least * n_tried)


def without_idle(table: RuleTable, of_decision: Rows, conditions: list[Condition]) -> list[Condition]:
    """Drop conditions in the order grown, again and again, while the share of the decision is no lower without one."""

    def share(some: Sequence[Condition]) -> Fraction:
        matched = table.meet_all(some)
        return Fraction(table.size(matched & of_decision), table.size(matched))

    n_before = 0
    while n_before != len(conditions):
        n_before = len(conditions)
        for condition in list(conditions):
            others = [other for other in conditions if other != condition]
            if others and share(others) >= share(conditions):
                conditions = others
    return conditions


def _p_values(
    table: RuleTable, of_decision: Rows, conditions: Sequence[Condition], *, is_first: bool
) -> list[Fraction]:
    """The p-value of each condition, given those before it."""
    p_values: list[Fraction] = []
    rows = table.everything
    for condition in conditions:
        of_condition = table.candidates[condition]
        least = Fraction(1)
        if raises_share(table, of_decision, rows, of_condition):
            least = tail(table, of_decision, rows, of_condition)
        p_values.append(adjusted(table, least, rows, is_first=is_first and not p_values))
        rows &= of_condition
    return p_values
