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
        beside = escape(plain_list(column.beside, 24)) or "nothing"
        if column.is_included:
            beside = UNTESTED
        rows.append(html_row("td", [str(i), html_name(column.name), share, escape(column.p_text), beside], sides))
    n_unshown = len(selection.columns) - MAX_ROWS
    if n_unshown > 0:
        rows.append(html_row("td", ["", f"… and {n_unshown:,} more"], sides))
    table = (
        '<table style="border-collapse:collapse;font-variant-numeric:tabular-nums">'
        f'<caption style="text-align:left;padding:.3em 0">{_caption(selection)}</caption>'
    )
    if rows:
        table += f"<thead>{html_row('th', ['#', 'column', 'share', 'p-value', 'beside'], sides)}</thead>"
    return f"{table}<tbody>{''.join(rows)}</tbody></table>"


def _caption(selection: Selection) -> str:
    """What stands above the table, as HTML."""
    properties = [counted(selection.n_rows, "row")]
    if selection.n_classes is not None:
        properties.append(counted(selection.n_classes, "class", "classes"))
    properties.append(f"alpha {selection.alpha:g}")
    lines = [" · ".join(properties), " ".join(lead(selection))]
    groups = reasons(selection)
    if groups:
        not_selected = ", ".join(f"{reason} ({len(names):,})" for reason, names in groups.items())
        lines.append(f"Not selected: {not_selected}.")
    lines += selection.notes
    shown = "<br>".join(escape(line) for line in lines if line)
    return f'<b>{escape(headline(selection))}</b><br><span style="opacity:.7">{shown}</span>'
