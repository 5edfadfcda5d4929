"""Approximations as a small table for a notebook, in the notebook's own colours."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from plar.results.report.approximation_text import headline, known, lead
from plar.results.report.views import MAX_ROWS, html_name, html_row
from plar.results.report.words import counted

if TYPE_CHECKING:
    from plar.results.approximations import Approximations

_SIDES = ("left", "right", "right", "right", "right", "right")


def notebook_table(result: Approximations) -> str:
    """Write the table as HTML; names and values are escaped."""
    rows = []
    for one in result.by_decision[:MAX_ROWS]:
        numbers = [one.n_rows, one.lower, one.upper, one.boundary]
        accuracy = f'<span title="{one.accuracy}">{one.accuracy:.3f}</span>'
        rows.append(html_row("td", [html_name(one.label), *(f"{n:,}" for n in numbers), accuracy], _SIDES))
    n_unshown = len(result.by_decision) - MAX_ROWS
    if n_unshown > 0:
        rows.append(html_row("td", [f"… and {n_unshown:,} more"], _SIDES))
    heading = f'<div style="max-width:60em;padding:.3em 0">{_heading(result)}</div>'
    if not rows:
        return heading
    target = html_name(", ".join(result.decision))
    head = html_row("th", [target, "rows", "certain", "possible", "undecided", "accuracy"], _SIDES)
    style = "border-collapse:collapse;font-variant-numeric:tabular-nums"
    return f'{heading}<table style="{style}"><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table>'


def _heading(result: Approximations) -> str:
    """What stands above the table, as HTML."""
    text = lead(result)
    lines = [known(result), f"{text[0].upper()}{text[1:]}."]
    if result.n_contradictions:
        combinations = counted(result.n_classes, "combination")
        lines.append(f"{result.n_contradictions:,} of {combinations} of values have several decisions.")
    lines += result.notes
    shown = "<br>".join(map(escape, lines))
    title = headline(result)
    return f'<b>{escape(f"{title[0].upper()}{title[1:]}")}</b><br><span style="opacity:.7">{shown}</span>'
