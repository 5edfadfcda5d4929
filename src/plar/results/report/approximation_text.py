"""What approximations say in words, and in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Final

from plar.coding.shown_values import shown_value
from plar.errors import printable
from plar.matching.condition import ConditionValue
from plar.results.report.words import counted, visible

if TYPE_CHECKING:
    from plar.results.approximations import Approximations, Contradiction

#: contradictions that are shown, and decisions
SHOWN_CONTRADICTIONS: Final = 10
_SHOWN_DECISIONS = 20
#: of a contradiction: its decisions that are shown, those with the most rows
_SHOWN_COUNTS = 5
#: and its values that are shown
_SHOWN_VALUES = 20
#: characters of a line, unless a word is longer
_WIDTH = 80


def summary(result: Approximations, n_contradictions: int = SHOWN_CONTRADICTIONS) -> str:
    """What is certain about each decision, and the largest contradictions, in a terminal."""
    lines = [f"{headline(result)}; {known(result)}", f"  {lead(result)}"]
    if result.by_decision:
        lines += ["", *_decision_lines(result), *_legend()]
    if result.n_contradictions and n_contradictions:
        lines += ["", *_contradiction_lines(result, n_contradictions)]
    for note in result.notes:
        lines += ["", *wrap(note, _WIDTH, break_long_words=False, break_on_hyphens=False, subsequent_indent="  ")]
    return "\n".join(lines)


def headline(result: Approximations) -> str:
    """What the result is about."""
    target = ", ".join(map(printable, result.decision))
    classes = counted(len(result.by_decision), "class", "classes")
    return f"approximations of {target!r} ({classes}, {counted(result.n_objects, 'row')})"


def known(result: Approximations) -> str:
    """By how many columns."""
    return f"{counted(len(result.attributes), 'column')} known"


def lead(result: Approximations) -> str:
    """The most important thing about the result."""
    if not result.n_objects:
        return "there are no rows"
    if not result.n_undecided:
        return "every row is certain: rows that are equal in these columns have the same decision"
    if not result.n_certain:
        return "no row is certain: each equals a row of another decision in these columns"
    share = f"{min(100 * result.quality, 99.9):.1f} %"  # not all, however few are undecided
    are = "is" if result.n_certain == 1 else "are"
    return (
        f"{counted(result.n_certain, 'row')} ({share}) {are} certain; "
        f"each of the other {result.n_undecided:,} equals a row of another decision"
    )


def _decision_lines(result: Approximations) -> list[str]:
    """A line for each decision."""
    heads = ("rows", "certain", "possible", "undecided", "accuracy")
    shown = result.by_decision[:_SHOWN_DECISIONS]
    rows = [
        (f"{one.n_rows:,}", f"{one.lower:,}", f"{one.upper:,}", f"{one.boundary:,}", f"{one.accuracy:.3f}")
        for one in shown
    ]
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    lines = [f"  {_aligned(heads, widths)}  {', '.join(map(printable, result.decision))}"]
    for one, row in zip(shown, rows, strict=True):
        lines.append(f"  {_aligned(row, widths)}  {visible(one.label)}")
    if len(result.by_decision) > _SHOWN_DECISIONS:
        lines.append(f"  and {len(result.by_decision) - _SHOWN_DECISIONS:,} more")
    return lines


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))


def _legend() -> list[str]:
    return [
        "",
        "  certain: rows whose equals all have this decision; possible: rows of which some",
        "  equal has it; undecided: the difference; accuracy: certain as a share of possible",
    ]


def _contradiction_lines(result: Approximations, n: int) -> list[str]:
    """The largest contradictions, each with its values."""
    kept = result.largest_contradictions[:n]
    n_rows = result.n_undecided
    lines = [
        f"  contradictions: {result.n_contradictions:,} of "
        f"{counted(result.n_classes, 'combination')} of values, {counted(n_rows, 'row')}; most rows first"
    ]
    width = max((len(f"{one.n_rows:,}") for one in kept), default=0)
    for one in kept:
        begin = f"    {one.n_rows:>{width},}  "
        lines += _filled(begin, counts_parts(result, one), " · ")
        lines += _filled(" " * len(begin), values_parts(result, one), ", ")
    n_unshown = result.n_contradictions - len(kept)
    if n_unshown:
        lines.append(f"    and {n_unshown:,} more")
    return lines


def counts_parts(result: Approximations, contradiction: Contradiction) -> list[str]:
    """Which decisions the rows of a contradiction have, and how many each: the most frequent first."""
    counts = sorted(contradiction.counts, key=lambda pair: -pair[1])
    parts = [f"{visible(result.by_decision[number].label)} {n_rows:,}" for number, n_rows in counts[:_SHOWN_COUNTS]]
    n_unshown = len(counts) - _SHOWN_COUNTS
    if n_unshown > 0:
        parts.append(f"{n_unshown:,} more")
    return parts


def values_parts(result: Approximations, contradiction: Contradiction) -> list[str]:
    """What the rows of a contradiction are equal in."""
    named = list(zip(result.attributes, contradiction.values, strict=True))
    parts = [_equal(name, value, is_cut=name in result.cuts) for name, value in named[:_SHOWN_VALUES]]
    n_unshown = len(named) - _SHOWN_VALUES
    if n_unshown > 0:
        parts.append(f"and {counted(n_unshown, 'more column')}")
    return parts


def _equal(name: str, value: ConditionValue, *, is_cut: bool) -> str:
    """A column and its value, or the bin that it is in."""
    shown = visible(shown_value(value))
    if not is_cut or value is None:
        return f"{visible(name)} = {shown}"
    if shown.startswith(("≤", ">")):
        return f"{visible(name)} {shown}"
    return f"{visible(name)} in {shown}"


def _filled(begin: str, parts: Sequence[str], between: str) -> list[str]:
    """Parts behind a beginning; lines break only between two of them, and go on below the first."""
    lines: list[str] = []
    line = begin
    is_first = True
    for part in parts:
        if is_first:
            line += part
        elif len(line) + len(between) + len(part) < _WIDTH:
            line += between + part
        else:
            lines.append(line + between.rstrip())
            line = " " * len(begin) + part
        is_first = False
    return [*lines, line] if parts else []
