"""What single rules say in words, with cut points in the units of the data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from plar.coding.shown_values import shown_value
from plar.errors import printable
from plar.matching.condition import ABOVE, AT_MOST, Condition, ConditionValue
from plar.results.report.words import cut_digits, cut_words, shortened, visible

if TYPE_CHECKING:
    from plar.results.rules import Rule

#: what stands for a rule without conditions
ALWAYS: Final = "in every row"


class Part(NamedTuple):
    """What a rule asks of one column: that it has a value, or where its numbers are."""

    #: the lower end of an interval; empty without one
    low: str
    column: str
    #: what stands between the column and the value, or after the column if there is none
    relation: str
    value: str

    def text(self, longest: int | None = None) -> str:
        """The part in words, with names and values of at most so many characters.

        >>> Part("12", "age", "≤", "30").text(), Part("", "a long name", "is missing", "").text(longest=6)
        ('12 < age ≤ 30', 'a lo…e is missing')
        """
        column = _cut(self.column, longest)
        words = [f"{self.low} <", column] if self.low else [column]
        words.append(self.relation)
        if self.value:
            words.append(_cut(self.value, longest))
        return " ".join(words)


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
        self._digits = {column: cut_digits(numbers) for column, numbers in cuts.items()}

    def rule(self, rule: Rule) -> str:
        """The whole rule."""
        decision = self.decision(rule.decision)
        if not rule.conditions:
            return f"{ALWAYS} {decision}"
        return f"if {self.conditions(rule)} then {decision}"

    def conditions(self, rule: Rule) -> str:
        """What it asks for; two conditions on one column are an interval."""
        return " and ".join(part.text() for part in self.parts(rule)) or ALWAYS

    def parts(self, rule: Rule) -> list[Part]:
        """What it asks of each column."""
        by_column: dict[str, list[Condition]] = {}
        for condition in rule.conditions:
            by_column.setdefault(condition.column, []).append(condition)
        parts: list[Part] = []
        for column, conditions in by_column.items():
            parts += self._on_column(visible(column), conditions)
        return parts

    def decision(self, decision: ConditionValue) -> str:
        """A value of the decision."""
        return printable(shown_value(decision))

    def _on_column(self, name: str, conditions: Sequence[Condition]) -> list[Part]:
        """Conditions on one column, with the bounds of numbers joined."""
        if any(condition.is_presence for condition in conditions):
            return [Part("", name, "is not missing", "")]
        above = [condition for condition in conditions if condition.operator == ABOVE]
        at_most = [condition for condition in conditions if condition.operator == AT_MOST]
        parts = [self._equal(name, condition) for condition in conditions if not condition.is_ordered]
        low = self._cut_point(max(above, key=_number)) if above else ""
        high = self._cut_point(min(at_most, key=_number)) if at_most else ""
        if high:
            parts.append(Part(low, name, "≤", high))
        elif low:
            parts.append(Part("", name, ">", low))
        return parts

    def _equal(self, name: str, condition: Condition) -> Part:
        if condition.value is None:
            return Part("", name, "is missing", "")
        return Part("", name, "=", visible(shown_value(condition.value)))

    def _cut_point(self, condition: Condition) -> str:
        value = condition.value
        if isinstance(value, (int, float)):
            return cut_words(float(value), self._digits[condition.column])
        return visible(shown_value(value))


def rule_text(rule: Rule) -> str:
    """One rule in words."""
    return RuleWords([rule]).rule(rule)


def class_name(decision: ConditionValue) -> str:
    """A value of the target as tables name it; what is empty is quoted.

    >>> class_name("yes"), class_name(""), class_name(2.0), class_name(None)
    ('yes', "''", '2', 'missing')
    """
    return visible(shown_value(decision))


def _cut(text: str, longest: int | None) -> str:
    return text if longest is None else shortened(text, longest)


def _number(condition: Condition) -> float:
    return condition.number
