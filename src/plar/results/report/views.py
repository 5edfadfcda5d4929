"""A reduct as text for the terminal, and as a small table for a notebook, in the notebook's own colours."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING

from plar.errors import printable
from plar.results.report.ranking import REASONS, RankedColumn, ranked
from plar.results.report.words import (
    aligned,
    bounds_words,
    chance_words,
    change_words,
    chosen,
    core_left_out,
    core_left_out_words,
    counted,
    nothing_words,
    number,
    p_values_of,
    shortened,
    visible,
)
from plar.runtime.limits import shown_seconds

if TYPE_CHECKING:
    from plar.results.reduct import Reduct

#: rows of a table
MAX_ROWS = 30
#: names in a list
MAX_NAMES = 5
#: bins of a column
MAX_BINS = 6
#: at which side cells are aligned
_SIDES = ("right", "left", "left", "right", "right", "right")
_CELL = "padding:.25em .9em;border-bottom:1px solid rgba(128,128,128,.3)"


def summary(reduct: Reduct) -> str:
    """Write what `print` shows."""
    return "\n".join(
        [
            *_head(reduct),
            "",
            *_names(reduct),
            *_importance(reduct),
            *_bins(reduct),
            *_not_chosen(reduct),
            "",
            *_proven(reduct),
            f"{shown_seconds(sum(reduct.seconds.values()))}, engine {reduct.engine}",
        ]
    )


def _head(reduct: Reduct) -> list[str]:
    """The table, and how many of its columns were chosen."""
    properties = [counted(reduct.n_objects, "row"), f"{reduct.n_granules:,} distinct"]
    if reduct.n_decisions == 1:
        properties.append("one class only: nothing to predict")
    if reduct.consistent:
        properties.append("consistent")
    else:
        properties.append("inconsistent: some equal rows differ in the decision")
    columns = f"{counted(len(reduct.conditions), 'column')} → {len(reduct.attributes):,}, measure {reduct.measure}"
    if not reduct.complete:
        columns += "; stopped before the goal was met"
    changes = [change_words(reduct)] if reduct.change is not None else []
    return [", ".join(properties), columns, *changes]


def _names(reduct: Reduct) -> list[str]:
    """The chosen columns, and above them the core, if it is a part of them."""
    lines = [f"reduct  {_listed(reduct.attributes)}"]
    if not core_left_out(reduct):
        lines.insert(0, f"core    {_listed(reduct.core)}")
    return lines


def _proven(reduct: Reduct) -> list[str]:
    """What is known about the chosen columns as a whole."""
    certificate = reduct.certificate
    theta_all = number(reduct.theta_all)
    if certificate.preserved:
        lines = [f"Nothing is lost: the uncertainty left is that of all columns, Θ = {theta_all}."]
    else:
        lines = [f"Uncertainty left: Θ = {number(reduct.theta)}; all columns together reach {theta_all}."]
    if core_left_out(reduct):
        lines.append(core_left_out_words(reduct))
    lines += chance_words(reduct)
    if reduct.bounds is not None:
        lines.append(bounds_words(reduct))
    if certificate.redundant:
        why = "Kept though not needed" if reduct.bounds else "Could go without a loss, one at a time (option 'minimal')"
        lines.append(f"{why}: {_listed(certificate.redundant)}.")
    elif reduct.attributes:
        lines.append("Minimal: without any one of them something is lost.")
    elif certificate.preserved:
        lines.append(nothing_words(reduct))
    return lines


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(printable, names)) or "(empty)"


def _importance(reduct: Reduct) -> list[str]:
    """The chosen columns with the gain of each, and what was still uncertain after each step."""
    columns = chosen(reduct)
    steps = {step.attribute: step for step in reduct.steps}
    theta_texts = dict(zip(steps, aligned([step.theta for step in reduct.steps]), strict=True))
    rows = []
    for column in columns[:MAX_ROWS]:
        theta = ""
        n_undecided = ""
        p_value = ""
        ties: list[str] = []
        step = steps.get(column.name)
        if step is not None:
            theta = theta_texts[column.name]
            n_undecided = f"{step.active:,}"
            p_value = column.p_value.text
            ties = [name for name in step.ties if name != step.attribute]
        as_good = _listed(ties[:3]) if ties else ""
        if len(ties) > 3:
            as_good += " …"
        name = shortened(column.name)
        rows.append((name, column.part, column.gain_text, theta, n_undecided, p_value, as_good))
    heads = ("column", "chosen as", "gain", "Θ left", "undecided", "p-value", "as good")
    return _table(heads, rows, numeric=range(2, 6), n_unshown=len(columns) - MAX_ROWS)


def _table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[int] = (), n_unshown: int = 0
) -> list[str]:
    """Lay out the columns that hold anything."""
    used = [k for k in range(len(heads)) if any(row[k].strip("–") for row in rows)]
    if not used:
        return []
    widths = {k: max(len(row[k]) for row in [heads, *rows]) for k in used}
    lines = [""]
    for row in [heads, *rows]:
        cells = [row[k].rjust(widths[k]) if k in numeric else row[k].ljust(widths[k]) for k in used]
        lines.append(f"  {'  '.join(cells).rstrip()}")
    if n_unshown > 0:
        lines.append(f"  … and {n_unshown:,} more")
    return lines


def _bins(reduct: Reduct) -> list[str]:
    """The bins of the chosen columns."""
    binned = [column for column in chosen(reduct) if column.intervals]
    rows = []
    for column in binned[:MAX_ROWS]:
        bins = column.intervals
        if len(bins) > MAX_BINS:
            bins = [*bins[:2], "…", f"{bins[-1]} ({len(bins)} bins)"]
        rows.append((shortened(column.name), " | ".join(bins)))
    return _table(("column", "bins"), rows, n_unshown=len(binned) - MAX_ROWS)


def _not_chosen(reduct: Reduct) -> list[str]:
    """Why the other columns are not chosen, with the best of each kind."""
    rows = []
    for role, columns in _groups(reduct):
        names = []
        for column in columns[:MAX_NAMES]:
            of = "" if column.of is None else f" ({shortened(column.of)})"
            names.append(shortened(column.name) + of)
        listed = ", ".join(names)
        if len(columns) > MAX_NAMES:
            listed += f" and {len(columns) - MAX_NAMES:,} more"
        rows.append((REASONS[role], listed))
    return _table(("not chosen", "columns"), rows)


def _groups(reduct: Reduct) -> list[tuple[str, list[RankedColumn]]]:
    """The columns that are not chosen, by their role."""
    rest = ranked(reduct)[len(reduct.attributes) :]
    return [(role, list(columns)) for role, columns in groupby(rest, key=lambda column: column.role)]


def notebook_table(reduct: Reduct) -> str:
    """Write the table as HTML; names are escaped."""
    has_p_values = any(p_value.text for p_value in p_values_of(reduct))
    heads = ["#", "column", "chosen as", "gain", "values"]
    if has_p_values:
        heads.insert(4, "p-value")
    rows = []
    for i, column in enumerate(chosen(reduct)[:MAX_ROWS], 1):
        exact_gain = "" if column.gain is None else column.gain
        gain = f'<span title="{exact_gain}">{escape(column.gain_text)}</span>'
        n_values = "–" if column.n_values is None else f"{column.n_values:,}"
        cells = [str(i), html_name(column.name), column.part, gain, n_values]
        if has_p_values:
            cells.insert(4, escape(column.p_value.text))
        rows.append(html_row("td", cells))
    n_unshown = len(reduct.attributes) - MAX_ROWS
    if n_unshown > 0:
        rows.append(f'<tr><td colspan="6" style="text-align:left;{_CELL}">… and {n_unshown:,} more</td></tr>')
    return (
        '<table style="border-collapse:collapse;font-variant-numeric:tabular-nums">'
        f'<caption style="text-align:left;padding:.3em 0">{_caption(reduct)}</caption>'
        f"<thead>{html_row('th', heads)}</thead><tbody>{''.join(rows)}</tbody></table>"
    )


def _caption(reduct: Reduct) -> str:
    """What stands above the table in a notebook, as HTML."""
    alpha = reduct.settings.get("alpha")  # with it, the goal is to beat chance
    properties = [counted(reduct.n_objects, "row"), f"measure {escape(shortened(reduct.measure))}"]
    if alpha:
        properties.append(f"alpha {alpha:g}")
    if reduct.certificate.preserved:
        properties.append("nothing is lost")
    elif not alpha:
        properties.append("something is lost")
    properties.append("minimal" if reduct.certificate.minimal else "not minimal")
    lines = [" · ".join(properties), *map(escape, chance_words(reduct))]
    if reduct.bounds is not None:
        lines.append(escape(bounds_words(reduct)))
    groups = _groups(reduct)
    if groups:
        not_chosen = ", ".join(f"{REASONS[role]} ({len(columns):,})" for role, columns in groups)
        lines.append(escape(f"Not chosen: {not_chosen}."))
    return (
        f"<b>{counted(len(reduct.conditions), 'column')} → {len(reduct.attributes):,}</b> for "
        f'{", ".join(map(html_name, reduct.decision))}<br><span style="opacity:.7">{"<br>".join(lines)}</span>'
    )


def html_name(name: str) -> str:
    """A name that may be long, and may hold anything."""
    return f'<bdi title="{escape(visible(name))}">{escape(shortened(name))}</bdi>'


def html_row(tag: str, cells: Sequence[str], sides: Sequence[str] = _SIDES) -> str:
    """A row of cells, each aligned at its side."""
    parts = []
    for side, cell in zip(sides, cells, strict=False):
        parts.append(f'<{tag} style="text-align:{side};{_CELL}">{cell}</{tag}>')
    return f"<tr>{''.join(parts)}</tr>"
