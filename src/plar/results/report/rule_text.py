"""What a set of rules says in a terminal: one screen of it, the first rules of each class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Final

from plar.results.report.rule_facts import checks, lead, p_text, rules_by_class, share_out, unmatched_words
from plar.results.report.rule_words import ALWAYS, RuleWords, class_name
from plar.results.report.words import counted, percent, shortened

if TYPE_CHECKING:
    from plar.results.rules import Rules

#: characters of a line, unless a name is longer
_WIDTH: Final = 80
#: rules that are shown
_MOST_RULES: Final = 24
#: classes that are shown
_MOST_CLASSES: Final = 12
#: classes whose tables stand apart, each with a head
_CLASSES_APART: Final = 4
#: characters of a name or a value
_LONGEST: Final = 40


@dataclass(frozen=True, slots=True)
class _Line:
    """A rule in the table: its numbers, and what it asks for."""

    numbers: tuple[str, ...]
    parts: list[str]


@dataclass(frozen=True, slots=True)
class _Class:
    """A class with the rules that are shown."""

    title: str
    lines: list[_Line]
    n_more: int
    n_unmatched: int


def summary(rules: Rules) -> str:
    """The rules by class, with what is known of each."""
    lines = [headline(rules), *_certificate_lines(rules)]
    if len(rules):
        classes = _classes(rules)
        shown = classes[:_MOST_CLASSES]
        lines += _tables(rules, shown)
        lines += ["", *_rest(rules, classes), *(f"  {line}" for line in _legend(rules))]
    else:
        lines += _wrapped(" ".join(lead(rules)), "  ")
    lines += _note_lines(rules)
    return "\n".join(lines)


def headline(rules: Rules) -> str:
    """How many rules there are, of which kind, and for what."""
    target = ", ".join(rules.decision)
    n_rules = counted(len(rules), f"{rules.rule_kind} rule") if len(rules) else f"No {rules.rule_kind} rule"
    classes = counted(len(rules.decisions), "class", "classes")
    head = f"{n_rules} for {target!r} ({classes}, {counted(rules.n_objects, 'row')})"
    return head if rules.complete else f"{head}; stopped before all were found"


def _certificate_lines(rules: Rules) -> list[str]:
    """What certain and possible rules were checked for."""
    lines = checks(rules) if len(rules) else []
    sentences = "; ".join(line.claim for line in lines if line.holds)
    text = f"{sentences[:1].upper()}{sentences[1:]}." if sentences else ""
    for line in lines:
        if not line.holds:
            text += f" But {line.claim}."
            if not rules.certificate or line.claim.startswith("not every"):
                text += f" {line.meaning}"
    return _wrapped(text.strip(), "  ")


def _classes(rules: Rules) -> list[_Class]:
    """The classes that have rules, each with its first ones."""
    words = RuleWords(rules)
    target = shortened(rules.decision[0], _LONGEST)
    of_class = rules_by_class(rules)
    longest = share_out(sorted(map(len, of_class), reverse=True)[:_MOST_CLASSES], _MOST_RULES)
    classes = []
    for number, places in enumerate(of_class):
        if not places:
            continue
        lines = []
        for place in places[:longest]:
            rule = rules[place]
            numbers = (f"{rule.n_matched:,}", _percent(rule.support, rule.n_matched), p_text(rules, rule))
            parts = [part.text(_LONGEST) for part in words.parts(rule)]
            lines.append(_Line(numbers, parts or [ALWAYS]))
        size = rules.class_sizes[number]
        name = shortened(class_name(rules.decisions[number]), _LONGEST)
        title = f"{target} = {name}: {counted(size, 'row')}, {_percent(size, rules.n_objects)}"
        classes.append(_Class(title, lines, len(places) - len(lines), rules.unmatched[number]))
    return classes


def _tables(rules: Rules, classes: Sequence[_Class]) -> list[str]:
    """A table for each class, under heads of its own; of many classes one table under one head."""
    heads = _heads(rules)
    rows = [heads, *(line.numbers for of_class in classes for line in of_class.lines)]
    widths = [max(len(row[i]) for row in rows) if heads[i] else 0 for i in range(len(heads))]
    head = f"    {_aligned(heads, widths)}  if"
    are_apart = len(classes) <= _CLASSES_APART
    lines = [] if are_apart else ["", head]
    for of_class in classes:
        title = f"  {of_class.title}"
        if are_apart:
            lines += ["", title, head]
        else:
            lines.append(title)
        for line in of_class.lines:
            lines += _hanging(f"    {_aligned(line.numbers, widths)}  ", line.parts)
        lines += _after(of_class)
    return lines


def _heads(rules: Rules) -> tuple[str, ...]:
    """What is said of each rule: certain rules are all right, and only tested ones have p-values."""
    are_all_right = rules.rule_kind == "certain" and all(rule.confidence == 1 for rule in rules)
    has_p_values = any(rule.p_value is not None for rule in rules)
    return "rows", "" if are_all_right else "right", "p-value" if has_p_values else ""


def _after(of_class: _Class) -> list[str]:
    """What the table of a class does not show."""
    parts = []
    if of_class.n_more:
        parts.append(f"and {counted(of_class.n_more, 'more rule')}")
    if of_class.n_unmatched:
        match = "row that no rule matches" if of_class.n_unmatched == 1 else "rows that no rule matches"
        parts.append(f"{of_class.n_unmatched:,} {match}")
    return [f"    {'; '.join(parts)}"] if parts else []


def _rest(rules: Rules, classes: Sequence[_Class]) -> list[str]:
    """Which classes have no rule, and how many rules are not shown."""
    lines = []
    names = [shortened(class_name(rules.decisions[i]), _LONGEST) for i in _without_rules(rules)]
    if names:
        n_unshown = max(len(names) - _MOST_CLASSES, 0)
        more = f" and {n_unshown:,} more" if n_unshown else ""
        lines += _wrapped(f"No rule for {', '.join(names[:_MOST_CLASSES])}{more}.", "  ")
    if any(rules.unmatched):
        lines += _wrapped(unmatched_words(rules), "  ")
    n_shown = sum(len(of_class.lines) for of_class in classes[:_MOST_CLASSES])
    if n_shown < len(rules):
        n_classes = f" of {_MOST_CLASSES} of {len(classes):,} classes" if len(classes) > _MOST_CLASSES else ""
        lines.append(f"  Shown: {n_shown} of {len(rules):,} rules{n_classes}; the report has all.")
    return lines


def _without_rules(rules: Rules) -> list[int]:
    return [number for number, places in enumerate(rules_by_class(rules)) if not places]


def _percent(part: int, whole: int) -> str:
    """A share with a blank that can be searched for."""
    return percent(part, whole).replace("\xa0", " ")


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True) if width)


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
    _, right, p_value = _heads(rules)
    line = "rows: those that meet the conditions"
    if right:
        line += "; right: the share of them in this class"
    lines = [line]
    if p_value:
        lines.append("p-value: how likely chance explains a condition as well, of those tried")
    return lines


def _wrapped(text: str, indent: str = "") -> list[str]:
    return wrap(
        text,
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _note_lines(rules: Rules) -> list[str]:
    """What was done without being asked for."""
    lines = [""] if rules.notes else []
    for note in rules.notes:
        lines += wrap(note, _WIDTH, break_long_words=False, break_on_hyphens=False, subsequent_indent="  ")
    return lines
