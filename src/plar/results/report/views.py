"""A reduct as text for the terminal, and as a small table for a notebook, in the notebook's own colours."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING, Any

from plar.errors import printable
from plar.results.report.ranking import REASONS, ranked
from plar.results.report.words import (
    aligned,
    bounds_words,
    chance_words,
    chosen,
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

#: rows of a table; names in a list, and bins of a column
MOST, NAMES, BINS = 30, 5, 6
_CELL = "padding:.25em .9em;border-bottom:1px solid rgba(128,128,128,.3)"


def summary(reduct: Reduct) -> str:
    """Write what `print` shows."""
    certificate = reduct.certificate
    facts = [counted(reduct.n_objects, "row"), f"{reduct.n_granules:,} distinct"]
    facts += ["one class only: nothing to predict"] if reduct.n_decisions == 1 else []
    facts += ["consistent" if reduct.consistent else "inconsistent: some equal rows differ in the decision"]
    end = "" if reduct.complete else "; stopped before the goal was met"
    lost = f"Nothing is lost: the uncertainty left is that of all columns, Θ = {number(reduct.theta_all)}."
    if not certificate.preserved:
        lost = f"Uncertainty left: Θ = {number(reduct.theta)}; all columns together reach {number(reduct.theta_all)}."
    lines = [
        ", ".join(facts),
        f"{counted(len(reduct.conditions), 'column')} → {len(reduct.attributes):,}, measure {reduct.measure}{end}",
        "",
        f"core    {_listed(reduct.core)}",
        f"reduct  {_listed(reduct.attributes)}",
        *_importance(reduct),
        *_bins(reduct),
        *_not_chosen(reduct),
        "",
        lost,
        *chance_words(reduct),
    ]
    if reduct.bounds:
        lines.append(bounds_words(reduct))
    if certificate.redundant:
        why = "Kept though not needed" if reduct.bounds else "Individually removable (use --minimal)"
        lines.append(f"{why}: {_listed(certificate.redundant)}.")
    elif reduct.attributes:
        lines.append("Minimal: without any one of them something is lost.")
    elif certificate.preserved:
        lines.append(nothing_words(reduct))
    return "\n".join([*lines, f"{shown_seconds(sum(reduct.seconds.values()))}, engine {reduct.engine}"])


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(printable, names)) or "(empty)"


def _importance(reduct: Reduct) -> list[str]:
    """The chosen columns with the gain of each, and what was still uncertain after each step."""
    rows = chosen(reduct)
    steps = {step.attribute: step for step in reduct.steps}
    left = dict(zip(steps, aligned([step.theta for step in reduct.steps]), strict=True))
    cells = []
    for row in rows[:MOST]:
        step = steps.get(row["name"])
        ties = [name for name in step.ties if name != step.attribute] if step else []
        more = " …" if len(ties) > 3 else ""
        as_good = f"{_listed(ties[:3])}{more}" if ties else ""
        after = (left[row["name"]], f"{step.active:,}") if step else ("", "")
        p = row["p"][0] if step else ""
        cells.append((shortened(row["name"]), row["part"], row["written"], *after, p, as_good))
    heads = ("column", "chosen as", "gain", "Θ left", "undecided", "p-value", "as good")
    return _table(heads, cells, right=range(2, 6), more=len(rows) - MOST)


def _table(heads: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[int], more: int = 0) -> list[str]:
    """Lay out the columns that hold anything."""
    used = [k for k in range(len(heads)) if any(row[k].strip("–") for row in cells)]
    if not used:
        return []
    widths = {k: max(len(row[k]) for row in [heads, *cells]) for k in used}
    lines = [
        "  ".join(row[k].rjust(widths[k]) if k in right else row[k].ljust(widths[k]) for k in used).rstrip()
        for row in [heads, *cells]
    ]
    return ["", *(f"  {line}" for line in lines), *([f"  … and {more:,} more"] if more > 0 else [])]


def _bins(reduct: Reduct) -> list[str]:
    """The bins of the chosen columns."""
    cut = [row for row in chosen(reduct) if row["intervals"]]
    cells = []
    for row in cut[:MOST]:
        bins = row["intervals"]
        if len(bins) > BINS:
            bins = [*bins[:2], "…", f"{bins[-1]} ({len(bins)} bins)"]
        cells.append((shortened(row["name"]), " | ".join(bins)))
    return _table(("column", "bins"), cells, right=(), more=len(cut) - MOST)


def _not_chosen(reduct: Reduct) -> list[str]:
    """Why the other columns are not chosen, with the best of each kind."""
    cells = []
    for role, rows in _groups(reduct):
        names = [shortened(row["name"]) + (f" ({shortened(row['of'])})" if row["of"] else "") for row in rows[:NAMES]]
        more = f" and {len(rows) - NAMES:,} more" if len(rows) > NAMES else ""
        cells.append((REASONS[role], ", ".join(names) + more))
    return _table(("not chosen", "columns"), cells, right=())


def _groups(reduct: Reduct) -> list[tuple[str, list[dict[str, Any]]]]:
    rest = ranked(reduct)[len(reduct.attributes) :]
    return [(role, list(rows)) for role, rows in groupby(rest, key=lambda row: str(row["role"]))]


def notebook_table(reduct: Reduct) -> str:
    """Write the table as HTML; names are escaped."""
    has_p_values = any(p for p, _ in p_values_of(reduct))
    heads = ["#", "column", "chosen as", "gain", "values"]
    if has_p_values:
        heads.insert(4, "p-value")
    rows = [_row("th", *heads)]
    for i, row in enumerate(chosen(reduct)[:MOST], 1):
        gain = "" if row["significance"] is None else row["significance"]
        exact = f'<span title="{gain}">{escape(row["written"])}</span>'
        values = "–" if row["values"] is None else f"{row['values']:,}"
        cells = [str(i), _name(row["name"]), row["part"], exact, values]
        if has_p_values:
            cells.insert(4, escape(row["p"][0]))
        rows.append(_row("td", *cells))
    if len(reduct.attributes) > MOST:
        more = f"… and {len(reduct.attributes) - MOST:,} more"
        rows.append(f'<tr><td colspan="6" style="text-align:left;{_CELL}">{more}</td></tr>')
    alpha = reduct.settings.get("alpha")  # with it, the goal is to beat chance
    facts = [counted(reduct.n_objects, "row"), f"measure {escape(shortened(reduct.measure))}"]
    if alpha:
        facts.append(f"alpha {alpha:g}")
    if reduct.certificate.preserved:
        facts.append("nothing is lost")
    elif not alpha:
        facts.append("something is lost")
    facts.append("minimal" if reduct.certificate.minimal else "not minimal")
    rest = ", ".join(f"{REASONS[role]} ({len(rows):,})" for role, rows in _groups(reduct))
    words = [*chance_words(reduct), bounds_words(reduct), f"Not chosen: {rest}." if rest else ""]
    return (
        '<table style="border-collapse:collapse;font-variant-numeric:tabular-nums">'
        '<caption style="text-align:left;padding:.3em 0">'
        f"<b>{counted(len(reduct.conditions), 'column')} → {len(reduct.attributes):,}</b> for "
        f'{", ".join(map(_name, reduct.decision))}<br><span style="opacity:.7">{" · ".join(facts)}'
        f"{''.join(f'<br>{escape(line)}' for line in words if line)}</span></caption>"
        f"<thead>{rows[0]}</thead><tbody>{''.join(rows[1:])}</tbody></table>"
    )


def _name(name: str) -> str:
    return f'<bdi title="{escape(visible(name))}">{escape(shortened(name))}</bdi>'


def _row(tag: str, *cells: str) -> str:
    sides = ("right", "left", "left", "right", "right", "right")
    html = (f'<{tag} style="text-align:{a};{_CELL}">{text}</{tag}>' for a, text in zip(sides, cells, strict=False))
    return f"<tr>{''.join(html)}</tr>"
