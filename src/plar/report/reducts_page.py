"""All reducts as one HTML page: how many of each size, how often each column is needed, and which reduct holds what."""

from __future__ import annotations

from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from plar.limits import shown_seconds
from plar.report import content_hash, template
from plar.report.words import LONGEST, bar, percent

if TYPE_CHECKING:
    from plar.reduct_list import Reducts

#: rows of a table, and columns of the matrix, that are shown
_ROWS, _COLUMNS = 100, 40


def page(found: Reducts) -> str:
    """Make the page."""
    style = files("plar.report").joinpath("page.css").read_text(encoding="utf-8")
    shares = found.frequencies
    columns = [_column(name, share, found) for name, share in shares.items()]
    often = sorted(shares, key=lambda name: (-shares[name], found.conditions.index(name)))
    used = [name for name in often if shares[name]]
    most = max(found.sizes.values(), default=0)
    made: str = template("reducts.html.j2").render(
        found=found,
        version=version("plar"),
        seconds=shown_seconds(found.seconds),
        style=style,
        style_hash=content_hash(style),
        sizes=[(size, n, bar(n, most)) for size, n in found.sizes.items()],
        columns=sorted(columns, key=lambda row: -row["share"])[:_ROWS],
        unshown=len(columns) - _ROWS,
        unused=[name for name in shares if not shares[name]],
        matrix=used[:_COLUMNS],
        left_out=len(used) - _COLUMNS,
        shown=[(i, one, set(one.attributes)) for i, one in enumerate(found[:_ROWS], 1)],
        longest=LONGEST,
    )
    return made


def _column(name: str, share: float, found: Reducts) -> dict[str, Any]:
    held = round(share * len(found))
    part = "core" if name in found.core else "in none" if found.complete and not held else ""
    return {"name": name, "share": share, "written": percent(held, max(len(found), 1)), "held": held, "part": part}
