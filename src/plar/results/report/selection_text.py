"""What a selection says in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Final

from plar.errors import printable
from plar.results.selection import NOT_SHOWN, REDUNDANT, UNDECIDED

if TYPE_CHECKING:
    from plar.results.selection import Selection

#: what the numbers of the table are
_LEGEND: Final = (
    "share: of what was left to say about the target, beyond chance;",
    "p-value: how often a shuffled target gives as much, beside the columns named",
)
#: columns that a line names before it says how many more there are
_SHOWN = 8
#: characters of a line, unless a name is longer
_WIDTH = 80


def summary(selection: Selection) -> str:
    """What was selected for which target, with which p-values, and why nothing else."""
    target = ", ".join(map(printable, selection.target))
    n_selected = f"{len(selection.columns):,} of {len(selection.conditions):,} columns"
    head = f"{n_selected} selected for {target!r} ({_facts(selection)})"
    if not selection.complete:
        head += "; stopped before all columns were decided"
    lines = [head, "", *_step_lines(selection), *_reason_lines(selection), *_note_lines(selection)]
    return "\n".join(lines)


def _facts(selection: Selection) -> str:
    """What the target was taken for, and how many rows have it."""
    rows = "1 row" if selection.n_rows == 1 else f"{selection.n_rows:,} rows"
    if selection.n_classes is None:
        return f"numbers, {rows}"
    return f"1 class, {rows}" if selection.n_classes == 1 else f"{selection.n_classes:,} classes, {rows}"


def _step_lines(selection: Selection) -> list[str]:
    """A table of the selected columns."""
    if not selection.columns:
        return [f"No column predicts it better than chance (alpha {selection.alpha:g})."]
    width = max(len("column"), *(len(printable(name)) for name in selection.columns))
    lines = [f"  {'column':<{width}}  share  p-value  beside"]
    lines += [f"  {printable(name):<{width}}  included without a test" for name in selection.included]
    for i, step in enumerate(selection.steps):
        begin = f"  {printable(step.column):<{width}}  {step.share:>5.3f}  {_shown_p(step.p_value):>7}  "
        above = selection.columns[: len(selection.included) + i]
        given = "all above" if len(above) > 2 and step.given == above else listed(step.given)
        lines += _hanging(begin, given or "–")
    if selection.steps:
        lines += ["", *(f"  {line}" for line in _LEGEND)]
    return lines


def _reason_lines(selection: Selection) -> list[str]:
    """What was not selected, by its reason."""
    alone = [name for name, rejection in selection.rejected.items() if not rejection.given]
    redundant = [name for name, rejection in selection.rejected.items() if rejection.given]
    undecided = [
        name
        for name in selection.conditions
        if name not in selection.columns and name not in selection.rejected and name not in selection.left_out
    ]
    groups = {NOT_SHOWN: alone, REDUNDANT: redundant, UNDECIDED: undecided}
    for name, reason in selection.left_out.items():
        groups.setdefault(reason, []).append(name)
    groups = {reason: names for reason, names in groups.items() if names}
    if not groups:
        return []
    width = max(map(len, ("not selected", *groups)))
    lines = ["", f"  {'not selected':<{width}}  columns"]
    for reason, names in groups.items():
        lines += _hanging(f"  {reason:<{width}}  ", listed(names))
    return lines


def _note_lines(selection: Selection) -> list[str]:
    """What was done without being asked for."""
    lines = [""] if selection.notes else []
    for note in selection.notes:
        lines += wrap(note, _WIDTH, break_long_words=False, break_on_hyphens=False, subsequent_indent="  ")
    return lines


def _shown_p(p_value: float) -> str:
    return "<0.001" if p_value < 0.001 else f"{p_value:.3f}"


def _hanging(begin: str, names: str) -> list[str]:
    """Lines of listed names behind a beginning, indented as much as that; none breaks within a name."""
    indent = " " * min(len(begin), _WIDTH - 20)
    lines = [begin]
    words = names.split(", ")
    for i, name in enumerate(words):
        word = name if i == len(words) - 1 else f"{name},"
        is_first = lines[-1] in (begin, indent)
        if not is_first and len(lines[-1]) + 1 + len(word) > _WIDTH:
            lines.append(indent)
            is_first = True
        lines[-1] += word if is_first else f" {word}"
    return lines


def listed(names: Sequence[str], n_shown: int = _SHOWN) -> str:
    """The first names, and how many more there are.

    >>> listed([f"x{i}" for i in range(10)])
    'x0, x1, x2, x3, x4, x5, x6, x7 and 2 more'
    """
    shown = ", ".join(map(printable, names[:n_shown]))
    return f"{shown} and {len(names) - n_shown:,} more" if len(names) > n_shown else shown
