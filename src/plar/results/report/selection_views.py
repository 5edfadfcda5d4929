"""A selection as a small table for a notebook, in the notebook's own colours."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from plar.results.report.selected import UNTESTED, headline, lead, plain_list, reasons, selected
from plar.results.report.views import MAX_ROWS, html_name, html_row
from plar.results.report.words import counted

if TYPE_CHECKING:
    from plar.results.selection import Selection


def notebook_table(selection: Selection) -> str:
    """Write the table as HTML; names are escaped."""
    sides = ("right", "left", "right", "right", "left")
    rows = []
    for i, column in enumerate(selected(selection)[:MAX_ROWS], 1):
        share = escape(column.share_text)
        if column.share is not None:
            share = f'<span title="{column.share}">{share}</span>'
        beside = escape(plain_list(column.beside, 24)) or "–"
        if column.is_included:
            beside = UNTESTED
        rows.append(html_row("td", [str(i), html_name(column.name), share, escape(column.p_text), beside], sides))
    n_unshown = len(selection.columns) - MAX_ROWS
    if n_unshown > 0:
        rows.append(html_row("td", ["", f"… and {n_unshown:,} more"], sides))
    heading = f'<div style="max-width:60em;padding:.3em 0">{_heading(selection)}</div>'
    if not rows:
        return heading
    head = html_row("th", ["#", "column", "share", "p-value", "beside"], sides)
    style = "border-collapse:collapse;font-variant-numeric:tabular-nums"
    return f'{heading}<table style="{style}"><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table>'


def _heading(selection: Selection) -> str:
    """What stands above the table, as HTML."""
    properties = [counted(selection.n_rows, "row")]
    if selection.n_classes is not None:
        properties.append(counted(selection.n_classes, "class", "classes"))
    properties.append(f"alpha {selection.alpha:g}")
    lines = [" · ".join(properties), " ".join(lead(selection))]
    groups = reasons(selection)
    if groups:
        lines += [f"{reason.capitalize()}: {plain_list(names, 24, n_shown=6)}" for reason, names in groups.items()]
    lines += selection.notes
    shown = "<br>".join(escape(line) for line in lines if line)
    return f'<b>{escape(headline(selection))}</b><br><span style="opacity:.7">{shown}</span>'
