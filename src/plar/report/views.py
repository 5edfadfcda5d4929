"""A reduct as text for the terminal, and as a small table for a notebook, in the notebook's own colours."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from plar.errors import printable
from plar.limits import shown_seconds
from plar.report.words import (
    bounds_words,
    chance_words,
    chosen,
    counted,
    nothing_words,
    p_values_of,
    shortened,
    visible,
)

if TYPE_CHECKING:
    from plar.reduct import Reduct

#: rows of the table
MOST = 30
_CELL = "padding:.25em .9em;border-bottom:1px solid rgba(128,128,128,.3)"


def summary(found: Reduct) -> str:
    """Write what `print` shows."""
    certificate = found.certificate
    facts = [f"{found.n_objects:,} objects", f"{found.n_granules:,} granules"]
    facts += ["one decision only: nothing to tell apart"] if found.n_classes == 1 else []
    facts += ["consistent" if found.consistent else "inconsistent: equal objects with different decisions"]
    end = "" if found.complete else "; stopped before the goal was met"
    told = "these attributes tell exactly as much as all of them together"
    if not certificate.preserved:
        less = "these attributes tell less than" if found.attributes else "without attributes less is known than with"
        told = f"{less} all of them together ({found.theta_all:.6g})"
    lines = [
        ", ".join(facts),
        f"{len(found.conditions):,} attributes → {len(found.attributes):,}, measure {found.measure}{end}",
        "",
        f"core    {_listed(found.core)}",
        f"reduct  {_listed(found.attributes)}",
        *_steps(found),
        "",
        f"Θ(D|R) = {found.theta:.6g}: {told}.",
        *chance_words(found, "attribute"),
        *[bounds_words(found, "attribute")] * bool(found.bounds),
    ]
    if certificate.redundant:
        why = "Kept though they are not needed" if found.bounds else "Individually removable (use --minimal)"
        lines.append(f"{why}: {_listed(certificate.redundant)}.")
    elif found.attributes:
        lines.append("Minimal: without any one of them something is lost.")
    elif certificate.preserved:
        lines.append(nothing_words(found, "attribute"))
    return "\n".join([*lines, f"{shown_seconds(sum(found.seconds.values()))}, engine {found.engine}"])


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(printable, names)) or "(empty)"


def _steps(found: Reduct) -> list[str]:
    if not found.steps:
        return []
    shown = [printable(step.attribute) for step in found.steps]
    p_values = [f"  {p:>8}" for p, _ in p_values_of(found)]
    width = max(9, *(len(name) for name in shown))
    title = "   p-value" if p_values else ""
    lines = ["", f"  step  {'attribute':<{width}}  significance        Θ(D|R)   still mixed{title}  ties"]
    for i, (name, step, p) in enumerate(zip(shown, found.steps, p_values or [""] * len(shown), strict=True), 1):
        ties = f"  {_listed(step.ties[1:4])}{' …' if len(step.ties) > 4 else ''}" if len(step.ties) > 1 else ""
        lines.append(
            f"{i:>6}  {name:<{width}}  {step.significance:>12.6g}  {step.theta:>12.6g}  {step.active:>12,}{p}{ties}"
        )
    return lines


def notebook_table(found: Reduct) -> str:
    """Write the table as HTML; names are escaped."""
    known = bool(p_values_of(found))
    rows = [_row("th", "#", "column", "chosen as", "significance", *["p-value"] * known, "values")]
    for i, row in enumerate(chosen(found)[:MOST], 1):
        gain = "" if row["significance"] is None else row["significance"]
        exact = f'<span title="{gain}">{escape(row["written"])}</span>'
        values = "–" if row["values"] is None else f"{row['values']:,}"
        p = [escape(row["p"][0])] * known
        rows.append(_row("td", str(i), _name(row["name"]), row["part"], exact, *p, values))
    if len(found.attributes) > MOST:
        more = f"… and {len(found.attributes) - MOST:,} more"
        rows.append(f'<tr><td colspan="6" style="text-align:left;{_CELL}">{more}</td></tr>')
    alpha = found.settings.get("alpha")  # with it, the goal is to beat chance
    facts = [
        counted(found.n_objects, "row"),
        f"measure {escape(shortened(found.measure))}",
        *([f"alpha {alpha:g}"] if alpha else []),
        *(["nothing is lost"] if found.certificate.preserved else [] if alpha else ["something is lost"]),
        "minimal" if found.certificate.minimal else "not minimal",
    ]
    return (
        '<table style="border-collapse:collapse;font-variant-numeric:tabular-nums">'
        '<caption style="text-align:left;padding:.3em 0">'
        f"<b>{counted(len(found.conditions), 'column')} → {len(found.attributes):,}</b> for "
        f'{", ".join(map(_name, found.decision))}<br><span style="opacity:.7">{" · ".join(facts)}'
        f"{''.join(f'<br>{words}' for words in [*chance_words(found), bounds_words(found)] if words)}</span></caption>"
        f"<thead>{rows[0]}</thead><tbody>{''.join(rows[1:])}</tbody></table>"
    )


def _name(name: str) -> str:
    return f'<bdi title="{escape(visible(name))}">{escape(shortened(name))}</bdi>'


def _row(tag: str, *cells: str) -> str:
    sides = ("right", "left", "left", "right", "right", "right")
    made = (f'<{tag} style="text-align:{a};{_CELL}">{text}</{tag}>' for a, text in zip(sides, cells, strict=False))
    return f"<tr>{''.join(made)}</tr>"
