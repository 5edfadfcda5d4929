"""A reduct as a notebook shows it: a small table, without a library, in the notebook's own colours."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from plar.report.words import aligned, counted, origins, shortened, significances, visible

if TYPE_CHECKING:
    from plar.reduct import Reduct

__all__ = ["notebook_table"]

#: rows of the table
MOST = 30
_CELL = "padding:.25em .9em;border-bottom:1px solid rgba(128,128,128,.3)"
_DIM = "opacity:.7"


def notebook_table(found: Reduct) -> str:
    """Write the table as HTML; names are escaped.

    Examples
    --------
    >>> import plar
    >>> html = notebook_table(plar.reduce({"<i>": [0, 1], "d": [0, 1]}, "d"))
    >>> "<i>" in html, "&lt;i&gt;" in html
    (False, True)
    """
    parts, known = origins(found), significances(found)
    written = dict(zip(known, aligned(list(known.values())), strict=True))
    rows = [
        _row(
            "td",
            (str(i), "right"),
            (_name(name), "left"),
            (parts[name], "left"),
            (f'<span title="{known.get(name, "")}">{escape(written.get(name, "–"))}</span>', "right"),
            (f"{found.cardinalities[name]:,}" if name in found.cardinalities else "–", "right"),
        )
        for i, name in enumerate(found.attributes[:MOST], 1)
    ]
    if len(found.attributes) > MOST:
        more = f"… and {len(found.attributes) - MOST:,} more"
        rows.append(f'<tr><td colspan="5" style="text-align:left;{_CELL}">{more}</td></tr>')
    head = _row(
        "th", ("#", "right"), ("column", "left"), ("chosen as", "left"), ("significance", "right"), ("values", "right")
    )
    return (
        '<table style="border-collapse:collapse;font-variant-numeric:tabular-nums">'
        f'<caption style="text-align:left;padding:.3em 0">{_caption(found)}</caption>'
        f"<thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"
    )


def _caption(found: Reduct) -> str:
    certificate = found.certificate
    facts = [
        counted(found.n_objects, "row"),
        f"measure {escape(shortened(found.measure))}",
        "nothing is lost" if certificate.preserved else "something is lost",
        "minimal" if certificate.minimal else "not minimal",
    ]
    decision = ", ".join(map(_name, found.decision))
    return (
        f"<b>{counted(len(found.conditions), 'column')} → {len(found.attributes):,}</b> for {decision}<br>"
        f'<span style="{_DIM}">{" · ".join(facts)}</span>'
    )


def _name(name: str) -> str:
    return f'<bdi title="{escape(visible(name))}">{escape(shortened(name))}</bdi>'


def _row(tag: str, *cells: tuple[str, str]) -> str:
    made = (f'<{tag} style="text-align:{side};{_CELL}">{text}</{tag}>' for text, side in cells)
    return f"<tr>{''.join(made)}</tr>"
