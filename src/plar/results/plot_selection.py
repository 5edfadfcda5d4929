"""A selection as a picture, drawn with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from plar.results.plot import (
    CORE_COLOUR,
    CURVE_COLOUR,
    LEGEND,
    LONGEST_NAME,
    MAX_COLUMNS,
    PLAIN,
    NotebookFigure,
    quiet,
)
from plar.results.report.selected import selected
from plar.results.report.words import counted, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from plar.results.selection import Selection

#: by itself
ALONE_COLOUR = "0.6"


def plot(selection: Selection, ax: Axes | None = None) -> Figure:
    """Draw a bar for each selected column, and what it says by itself; see `Selection.plot`."""
    columns = selected(selection)[:MAX_COLUMNS]
    axes: Any = ax
    if axes is None:
        figure = NotebookFigure(figsize=(8, 1.6 + 0.3 * max(len(columns), 2)), layout="constrained")
        axes = figure.subplots()
    names = [shortened(column.name, LONGEST_NAME) for column in columns]
    shares = [column.share or 0.0 for column in columns]
    axes.barh(range(len(columns)), shares, color=CURVE_COLOUR, height=0.66, label="when it was selected")
    alone = [(column.alone, i) for i, column in enumerate(columns) if column.alone is not None]
    if alone:
        marks = [[place for place, _ in alone], [i for _, i in alone]]
        axes.plot(*marks, linestyle="", marker="|", markersize=11, markeredgewidth=2, color=ALONE_COLOUR, label="alone")
    _annotate(axes, selection, max([*shares, *(share for share, _ in alone)], default=0.0))
    axes.set_yticks(range(len(columns)), names, fontsize="small", **PLAIN)
    axes.set_ylim(max(len(columns), 1) - 0.4, -0.6)
    if columns:
        axes.legend(ncols=2, **LEGEND)
    n_unshown = len(selection.columns) - len(columns)
    more = f" ({n_unshown:,} more columns are not shown)" if n_unshown else ""
    axes.set_xlabel(f"share of what is left to say, beyond chance{more}")
    target = ", ".join(shortened(name, LONGEST_NAME) for name in selection.target)
    count = f"{len(selection.columns):,} of {counted(len(selection.conditions), 'column')}"
    axes.set_title(f"{count} selected for {target}", loc="left", fontsize="medium", **PLAIN)
    quiet(axes, "x")
    return cast("Figure", axes.figure)


def _annotate(axes: Any, selection: Selection, largest: float) -> None:
    """Write p-values behind the bars, and which columns were not tested."""
    axes.set_xlim(0, 1.18 * largest or 1)
    for i, column in enumerate(selected(selection)[:MAX_COLUMNS]):
        text = "included without a test"
        colour = CORE_COLOUR
        if not column.is_included:
            sign = "" if column.p_text.startswith("<") else "= "
            text = f"p {sign}{column.p_text}"
            colour = "0.4"
        end = max(column.share or 0.0, column.alone or 0.0)
        axes.annotate(text, (end, i), (6, 0), textcoords="offset points", va="center", fontsize="small", color=colour)
