"""What the page, the terminal and a notebook say of a set of rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from plar.results.report.rule_words import Part, RuleWords, class_name
from plar.results.report.words import bar_width, counted, p_words, percent, shortened, visible

if TYPE_CHECKING:
    from plar.results.rules import Rule, Rules

#: classes that are named among those that a rule matches
MAX_COUNTS: Final = 20


@dataclass(frozen=True, slots=True)
class Check:
    """A line of the certificate: what holds, or does not, and what that means."""

    holds: bool
    claim: str
    meaning: str


@dataclass(frozen=True, slots=True)
class ShownRule:
    """A rule, as tables show it."""

    #: its place among all rules, from 0
    number: int
    parts: list[Part]
    n_matched: int
    #: the rows that it matches by class, most first: name and number
    counts: list[tuple[str, int]]
    n_more_counts: int
    confidence: float
    right: str
    bar_width: str
    coverage_share: float
    coverage: str
    lift: float
    p_value: float | None
    p_text: str


@dataclass(frozen=True, slots=True)
class ShownClass:
    """A class with its rules, as the page shows it."""

    number: int
    name: str
    n_rows: int
    #: of all rows
    share: str
    #: where the share is on a bar
    share_mark: str
    n_rules: int
    rules: list[ShownRule]
    n_unmatched: int
    unmatched: str
    unmatched_bar: str


@dataclass(frozen=True, slots=True)
class ColumnUse:
    """How many rules ask for a column."""

    name: str
    n_rules: int
    share: str
    bar_width: str


def target_name(rules: Rules) -> str:
    """The column that is predicted, for a sentence."""
    return ", ".join(map(shortened, rules.decision))


def headline(rules: Rules) -> str:
    """How many rules there are, and for what."""
    kind = "" if rules.rule_kind == "tested" else f"{rules.rule_kind} "
    if len(rules):
        return f"{counted(len(rules), f'{kind}rule')} for {target_name(rules)}"
    yet = "" if rules.complete else " yet"
    return f"No {kind}rule for {target_name(rules)}{yet}"


def lead(rules: Rules) -> list[str]:
    """Say what kind of rules these are, and which rows they leave out, in sentences."""
    sentences = []
    if rules.rule_kind == "tested":
        sentences += _tested_words(rules)
    elif rules.rule_kind == "certain":
        sentences += _certain_words(rules)
    else:
        sentences += _possible_words(rules)
    if not rules.complete:
        sentences.append("The search was stopped, by its time limit or by hand, before all rules were found.")
    if len(rules):
        sentences.append(unmatched_words(rules))
    return sentences


def _tested_words(rules: Rules) -> list[str]:
    test = f"(exact test, alpha {rules.alpha:g})"
    if len(rules.decisions) == 1:
        return [f"{target_name(rules)} is the same in every row: {shortened(class_name(rules.decisions[0]))}."]
    if len(rules):
        return [f"Each condition says more about {target_name(rules)} than chance explains {test}."]
    if rules.complete:
        min_support = rules.settings.get("min_support", 1)
        which = f" that matches at least {min_support:,} rows of its class" if min_support > 1 else ""
        return [f"No condition{which} says more about {target_name(rules)} than chance explains {test}."]
    return []


def _certain_words(rules: Rules) -> list[str]:
    if len(rules):
        which = "whose class is certain: those that equal no row of another class"
        return [f"{_describe(rules)} the rows {which}."]
    if rules.complete and rules.certificate is not None and rules.certificate.complete:
        return ["No row is certain: each equals a row of another class in all columns."]
    return _none_within_limits(rules)


def _possible_words(rules: Rules) -> list[str]:
    if len(rules):
        which = "that may be of a class: those that equal a row of that class"
        return [f"{_describe(rules)} the rows {which}."]
    return _none_within_limits(rules)


def _none_within_limits(rules: Rules) -> list[str]:
    """Why there is no rule, if it is for what was asked."""
    limits = _limits(rules)
    return [f"Only rules {limits} were asked for, and there is none."] if rules.complete and limits else []


def _limits(rules: Rules) -> str:
    """Which rules were asked for, if not all."""
    min_support = rules.settings.get("min_support", 1)
    max_conditions = rules.settings.get("max_conditions")
    limits = []
    if min_support > 1:
        limits.append(f"of at least {min_support:,} rows of their class")
    if max_conditions is not None:
        limits.append(f"of at most {counted(max_conditions, 'condition')}")
    return " and ".join(limits)


def _describe(rules: Rules) -> str:
    return "It describes" if len(rules) == 1 else "They describe"


def unmatched_words(rules: Rules) -> str:
    """How many rows no rule matches, and for certain rules why."""
    n = sum(rules.unmatched)
    if not n:
        return "Every row is matched by a rule."
    is_all_certain = rules.certificate is not None and rules.certificate.complete
    why = ", since its class is not certain" if n == 1 else ", since their class is not certain"
    if rules.rule_kind != "certain" or not is_all_certain:
        why = ""
    return f"{n:,} of {counted(rules.n_objects, 'row')} {'is' if n == 1 else 'are'} matched by no rule{why}."


def checks(rules: Rules) -> list[Check]:
    """The certificate of certain and possible rules, line by line; of no rules only what is not trivial."""
    certificate = rules.certificate
    if certificate is None:
        return []
    is_certain = rules.rule_kind == "certain"
    lines = [_completeness(rules, certificate.complete, is_certain)]
    if not len(rules):
        return lines
    if is_certain:
        right = "no rule is wrong in this table"
        wrong = "some rule is wrong in this table"
        meaning = "The rows that a rule matches are all of its class, and so are those that equal them."
    else:
        right = "no rule matches a row that cannot be of its class"
        wrong = "some rule matches a row that cannot be of its class"
        meaning = "Every row that a rule matches equals a row of its class."
    lines.append(Check(certificate.consistent, right if certificate.consistent else wrong, meaning))
    needed = certificate.conditions_needed
    claim = "no condition can be dropped" if needed else "some condition can be dropped"
    lines.append(Check(needed, claim, "Without any one of its conditions, a rule would match other rows too."))
    needed = certificate.rules_needed
    claim = "no rule can be dropped" if needed else "some rule can be dropped"
    lines.append(Check(needed, claim, "Each is the only one of its class that matches some row."))
    return lines


def _completeness(rules: Rules, is_complete: bool, is_certain: bool) -> Check:
    """Whether all rows are matched that should be; if not, why."""
    which = "row whose class is certain" if is_certain else "row that may be of a class"
    meaning = "By a rule of its class." if is_certain else "By a rule of that class, for each class that it may have."
    if is_complete:
        return Check(True, f"every {which} is matched", meaning)
    why = "The search was stopped before all rules were found."
    limits = _limits(rules)
    if rules.complete and limits:
        why = f"Only rules {limits} were asked for."
    return Check(False, f"not every {which} is matched", why)


def shown_classes(rules: Rules, most: int) -> list[ShownClass]:
    """The classes, each with its first rules, of which there are at most so many in all."""
    words = RuleWords(rules)
    names = [class_name(decision) for decision in rules.decisions]
    of_class = rules_by_class(rules)
    longest = share_out([len(members) for members in of_class], most)
    classes = []
    for number, members in enumerate(of_class):
        size = rules.class_sizes[number]
        n_unmatched = rules.unmatched[number]
        classes.append(
            ShownClass(
                number=number,
                name=names[number],
                n_rows=size,
                share=percent(size, rules.n_objects),
                share_mark=bar_width(size, rules.n_objects),
                n_rules=len(members),
                rules=[_shown_rule(rules, place, words, number, names) for place in members[:longest]],
                n_unmatched=n_unmatched,
                unmatched=percent(n_unmatched, size),
                unmatched_bar=bar_width(n_unmatched, size),
            )
        )
    return classes


def rules_by_class(rules: Rules) -> list[list[int]]:
    """The places of the rules of each class."""
    class_of = {_key(decision): number for number, decision in enumerate(rules.decisions)}
    of_class: list[list[int]] = [[] for _ in rules.decisions]
    for place, rule in enumerate(rules):
        of_class[class_of[_key(rule.decision)]].append(place)
    return of_class


def _key(decision: object) -> tuple[type, object]:
    """What tells 1 from True."""
    return type(decision), decision


def share_out(sizes: Sequence[int], most: int) -> int:
    """The largest number such that so many of each group are at most `most` in all; at least 1.

    >>> share_out([100, 2, 30], 20), share_out([5, 5], 20), share_out([9] * 30, 20)
    (9, 5, 1)
    """
    longest = 1
    while longest < max(sizes, default=0) and sum(min(size, longest + 1) for size in sizes) <= most:
        longest += 1
    return longest


def _shown_rule(rules: Rules, place: int, words: RuleWords, number: int, names: Sequence[str]) -> ShownRule:
    rule = rules[place]
    counts = sorted(((-n, i) for i, n in enumerate(rule.counts) if n))
    return ShownRule(
        number=place,
        parts=words.parts(rule),
        n_matched=rule.n_matched,
        counts=[(names[i], -minus_n) for minus_n, i in counts[:MAX_COUNTS]],
        n_more_counts=max(len(counts) - MAX_COUNTS, 0),
        confidence=rule.confidence,
        right=percent(rule.support, rule.n_matched),
        bar_width=bar_width(rule.confidence, 1),
        coverage_share=rule.coverage,
        coverage=percent(rule.support, rules.class_sizes[number]),
        lift=rule.lift,
        p_value=rule.p_value,
        p_text=p_text(rules, rule),
    )


def p_text(rules: Rules, rule: Rule) -> str:
    """The p-value of a rule, so that it is seen on which side of the level it is."""
    return "" if rule.p_value is None else p_words(rule.p_value, rules.alpha or 1.0)


def column_uses(rules: Rules) -> list[ColumnUse]:
    """How many rules ask for each column, those of most rules first; columns that no rule asks for are not there."""
    n_rules = Counter(column for rule in rules for column in {condition.column for condition in rule.conditions})
    place_of = {name: place for place, name in enumerate(rules.attributes)}
    by_use = sorted(n_rules, key=lambda name: (-n_rules[name], place_of[name]))
    largest = max(n_rules.values(), default=0)
    return [
        ColumnUse(name, n_rules[name], percent(n_rules[name], len(rules)), bar_width(n_rules[name], largest))
        for name in by_use
    ]


def left_out_by_reason(rules: Rules) -> dict[str, list[str]]:
    """The columns that rules could not be about, by the reason."""
    groups: dict[str, list[str]] = {}
    for name, reason in rules.left_out.items():
        groups.setdefault(visible(reason), []).append(name)
    return groups
