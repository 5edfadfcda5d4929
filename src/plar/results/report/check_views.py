"""A check as a small table for a notebook, in the notebook's own colours, and as a page."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from plar.results.report import check_text, words
from plar.results.report.check_text import column_lines, headline, mending_words, news
from plar.results.report.filling import filled, shown_setting
from plar.results.report.reproduce import check_call
from plar.results.report.views import MAX_ROWS, html_name, html_row
from plar.results.report.words import counted
from plar.runtime.limits import shown_seconds

if TYPE_CHECKING:
    from plar.results.check import Check

_SIDES = ("left", "right", "right", "right", "right", "left")
#: columns of the result that a page shows
_PAGE_ROWS = 500
_NAMES = 6


def notebook_table(check: Check) -> str:
    """Write the table as HTML; names and values are escaped."""
    rows = []
    for line in column_lines(check)[:MAX_ROWS]:
        numbers = [line.p_then, line.p_now, line.gain_then, line.gain_now]
        cells = [html_name(line.name), *map(escape, numbers), escape(line.remark)]
        rows.append(html_row("td", cells, _SIDES))
    n_unshown = len(check.columns) - MAX_ROWS
    if n_unshown > 0:
        rows.append(html_row("td", [f"… and {n_unshown:,} more"], _SIDES))
    heading = f'<div style="max-width:60em;padding:.3em 0">{_heading(check)}</div>'
    if not rows:
        return heading
    head = html_row("th", ["column", "p then", "p now", "says then", "says now", ""], _SIDES)
    style = "border-collapse:collapse;font-variant-numeric:tabular-nums"
    return f'{heading}<table style="{style}"><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table>'


def _heading(check: Check) -> str:
    """What stands above the table, as HTML."""
    lines = [f"{counted(check.n_rows, 'new row')} · {counted(check.n_rows_then, 'row')} then · alpha {check.alpha:g}"]
    lines += [line for line in (mending_words(check), *news(check), *check.notes) if line]
    shown = "<br>".join(map(escape, lines))
    return f'<b>{escape(capitalized(headline(check)))}</b><br><span style="opacity:.7">{shown}</span>'


def capitalized(sentence: str) -> str:
    """A sentence with a capital letter; the others stay."""
    return f"{sentence[:1].upper()}{sentence[1:]}"


def check_page(check: Check, command: str | None = None) -> str:
    """Make the page of a check."""
    title, _, said = headline(check).partition(": ")
    settings = {"engine": check.engine, "alpha": check.alpha}
    return filled(
        "check.html.j2",
        c=check,
        headline=capitalized(title),
        lead=f"{capitalized(said)}.",
        columns=column_lines(check)[:_PAGE_ROWS],
        facts=check.columns[:_PAGE_ROWS],
        news=news(check),
        same="" if check.witness is None else check_text.agreeing(check),
        witness=[] if check.witness is None else check_text.witness_rows(check),
        mending=mending_words(check),
        seconds=shown_seconds(sum(check.seconds.values())),
        settings=[(name, shown_setting(value)) for name, value in settings.items()],
        python=check_call(check),
        shell=words.visible(command) if command else "",
        rows=_PAGE_ROWS,
        names=_NAMES,
    )
