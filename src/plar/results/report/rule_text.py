"""What rules say in words, and in a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Final

from plar.coding.shown_values import shown_value
from plar.errors import printable
from plar.matching.condition import ABOVE, AT_MOST, LOWEST, Condition, ConditionValue
from plar.results.report.words import counted

if TYPE_CHECKING:
    from plar.results.rules import Rule, Rules

#: what stands for a rule without conditions
ALWAYS: Final = "in every row"
#: characters of a line, unless a word is longer
_WIDTH = 80
#: rules of a decision that are shown
_SHOWN = 20
#: digits of cut points, or as many as distinguish them
_LEAST_DIGITS = 6
_MOST_DIGITS = 17


class RuleWords:
    """The words of rules, with as many digits of cut points as tell them apart.

    Parameters
    ----------
    rules : iterable of Rule
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        cuts: dict[str, set[float]] = {}
        for rule in rules:
            for condition in rule.conditions:
                if condition.is_ordered and not isinstance(condition.value, (str, type(None))):
                    cuts.setdefault(condition.column, set()).add(float(condition.value))
        self._digits = {column: _digits(numbers) for column, numbers in cuts.items()}

    def rule(self, rule: Rule) -> str:
        """The whole rule."""
        decision = self.decision(rule.decision)
        if not rule.conditions:
            return f"{ALWAYS} {decision}"
        return f"if {self.conditions(rule)} then {decision}"

    def conditions(self, rule: Rule) -> str:
        """What it asks for; two conditions on one column are an interval."""
        return " and ".join(self.parts(rule)) or ALWAYS

    def parts(self, rule: Rule) -> list[str]:
        """What it asks of each column."""
        by_column: dict[str, list[Condition]] = {}
        for condition in rule.conditions:
            by_column.setdefault(condition.column, []).append(condition)
        parts: list[str] = []
        for column, conditions in by_column.items():
            parts += self._on_column(printable(column), conditions)
        return parts

    def decision(self, decision: ConditionValue) -> str:
        """A value of the decision."""
        return printable(shown_value(decision))

    def _on_column(self, name: str, conditions: Sequence[Condition]) -> list[str]:
        """Conditions on one column, with the bounds of numbers joined."""
        if any(condition.value == LOWEST for condition in conditions):
            return [f"{name} is not missing"]
        above = [condition for condition in conditions if condition.operator == ABOVE]
        at_most = [condition for condition in conditions if condition.operator == AT_MOST]
        parts = [f"{name} = {self._value(condition)}" for condition in conditions if not condition.is_ordered]
        if above and at_most:
            low = self._value(max(above, key=_number))
            high = self._value(min(at_most, key=_number))
            return [*parts, f"{low} < {name} ≤ {high}"]
        if above:
            parts.append(f"{name} > {self._value(max(above, key=_number))}")
        if at_most:
            parts.append(f"{name} ≤ {self._value(min(at_most, key=_number))}")
        return parts

    def _value(self, condition: Condition) -> str:
        value = condition.value
        if condition.is_ordered and isinstance(value, (int, float)):
            return f"{float(value):.{self._digits[condition.column]}g}"
        return printable(shown_value(value))


def _number(condition: Condition) -> float:
    return condition.number


def _digits(numbers: set[float]) -> int:
    """How many digits tell numbers apart."""
    for digits in range(_LEAST_DIGITS, _MOST_DIGITS):
        if len({f"{number:.{digits}g}" for number in numbers}) == len(numbers):
            return digits
    return _MOST_DIGITS


def rule_text(rule: Rule) -> str:
    """One rule in words."""
    return RuleWords([rule]).rule(rule)


def summary(rules: Rules) -> str:
    """The rules by decision, with what is known of each, in a terminal."""
    words = RuleWords(rules)
    lines = [headline(rules), *_certificate_lines(rules)]
    for number, decision in enumerate(rules.decisions):
        lines += ["", *_lines_of(rules, words, number, decision)]
    if len(rules):
        lines += ["", *(f"  {line}" for line in _legend(rules))]
    lines += _note_lines(rules)
    return "\n".join(lines)


def headline(rules: Rules) -> str:
    """How many rules there are, of which kind, and for what."""
    target = ", ".join(map(printable, rules.decision))
    n_rules = counted(len(rules), f"{rules.rule_kind} rule")
    classes = counted(len(rules.decisions), "class", "classes")
    head = f"{n_rules} for {target!r} ({classes}, {counted(rules.n_objects, 'row')})"
    return head if rules.complete else f"{head}; stopped before all were found"


def _certificate_lines(rules: Rules) -> list[str]:
    """What certain and possible rules were checked for."""
    certificate = rules.certificate
    if certificate is None:
        return []
    checks = {
        "every row that they should match is matched": certificate.complete,
        "they match no other rows": certificate.consistent,
        "no condition can be dropped": certificate.conditions_needed,
        "no rule can be dropped": certificate.rules_needed,
    }
    return [f"  {'yes' if holds else 'no ':<3}  {what}" for what, holds in checks.items()]


def _lines_of(rules: Rules, words: RuleWords, number: int, decision: ConditionValue) -> list[str]:
    """The rules of one decision."""
    size = rules.class_sizes[number]
    share = f"{100 * size / rules.n_objects:.1f} %" if rules.n_objects else "–"
    target = printable(rules.decision[0])
    lines = [f"  {target} = {words.decision(decision)}: {counted(size, 'row')}, {share}"]
    of_decision = [rule for rule in rules if rule.decision == decision]
    if not of_decision:
        return [*lines, "    no rule"]
    rows = [(f"{rule.n_matched:,}", f"{100 * rule.confidence:.1f} %", _p_text(rule)) for rule in of_decision[:_SHOWN]]
    heads = ("rows", "right", "p-value" if rules.rule_kind == "tested" else "")
    widths = [max(len(head), *(len(row[i]) for row in rows)) for i, head in enumerate(heads)]
    lines.append(f"    {_aligned(heads, widths)}  if")
    for rule, row in zip(of_decision, rows, strict=False):
        lines += _hanging(f"    {_aligned(row, widths)}  ", words.parts(rule) or [ALWAYS])
    if len(of_decision) > _SHOWN:
        lines.append(f"    and {len(of_decision) - _SHOWN:,} more")
    if rules.unmatched[number]:
        n_unmatched = rules.unmatched[number]
        match = "row that no rule matches" if n_unmatched == 1 else "rows that no rule matches"
        lines.append(f"    {n_unmatched:,} {match}")
    return lines


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True) if width)


def _p_text(rule: Rule) -> str:
    if rule.p_value is None:
        return ""
    return "<0.001" if rule.p_value < 0.001 else f"{rule.p_value:.3f}"


def _hanging(begin: str, parts: Sequence[str]) -> list[str]:
    """Conditions behind a beginning; a line breaks between two of them if it can."""
    indent = " " * len(begin)
    lines: list[str] = []
    line = begin
    for i, part in enumerate(parts):
        word = part if i == len(parts) - 1 else f"{part} and"
        is_first = line in (begin, indent)
        if not is_first and len(line) + 1 + len(word) > _WIDTH:
            lines.append(line)
            line = indent
            is_first = True
        line += word if is_first else f" {word}"
    return [*lines, line]


def _legend(rules: Rules) -> list[str]:
    lines = ["rows: those that meet the conditions; right: the share of them with this decision"]
    if rules.rule_kind == "tested":
        lines.append("p-value: how likely chance explains a condition as well, of those tried")
    return lines


def _note_lines(rules: Rules) -> list[str]:
    """What was done without being asked for."""
    lines = [""] if rules.notes else []
    for note in rules.notes:
        lines += wrap(note, _WIDTH, break_long_words=False, break_on_hyphens=False, subsequent_indent="  ")
    return lines
