"""The columns that beat chance as a picture, drawn with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from plar.results.plot import (
    CORE_COLOUR,
    CURVE_COLOUR,
    LEGEND,
    LEVEL_COLOUR,
    LONGEST_NAME,
    MAX_COLUMNS,
    PLAIN,
    NotebookFigure,
    quiet,
)
from plar.results.report.layers import LayeredColumn, headline, layered
from plar.results.report.words import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from plar.results.relevant import Relevant

#: of the layers, in turn
COLOURS = (CURVE_COLOUR, CORE_COLOUR, LEVEL_COLOUR, "#8d72c4", "#7a7f87")


def plot(relevant: Relevant, ax: Axes | None = None) -> Figure:
    """Draw the gain of each column, layer by layer; see `Relevant.plot`."""
    columns = [column for column in layered(relevant) if column.layer is not None][:MAX_COLUMNS]
    axes: Any = ax
    if axes is None:
        figure = NotebookFigure(figsize=(8, 1.6 + 0.3 * max(len(columns), 2)), layout="constrained")
        axes = figure.subplots()
    for number in dict.fromkeys(column.layer for column in columns):
        assert number is not None
        _draw_layer(axes, columns, number)
    names = [shortened(column.name, LONGEST_NAME) for column in columns]
    axes.set_yticks(range(len(columns)), names, fontsize="small", **PLAIN)
    axes.set_ylim(max(len(columns), 1) - 0.4, -0.6)
    axes.set_xlim(0, 1.18 * max((column.gain or 0.0 for column in columns), default=0.0) or 1)
    if len(relevant.layers) > 1:
        axes.legend(ncols=min(len(relevant.layers), 5), **LEGEND)
    n_unshown = len(relevant.attributes) - len(columns)
    axes.set_xlabel(f"gain ({n_unshown:,} more columns are not shown)" if n_unshown else "gain")
    axes.set_title(headline(relevant), loc="left", fontsize="medium", **PLAIN)
    quiet(axes, "x")
    return cast("Figure", axes.figure)


def _draw_layer(axes: Any, columns: list[LayeredColumn], number: int) -> None:
    """Draw the bars of a layer, with their p-values."""
    places = [i for i, column in enumerate(columns) if column.layer == number]
    gains = [columns[i].gain or 0.0 for i in places]
    label = f"layer {number}" if number <= len(COLOURS) else None
    axes.barh(places, gains, color=COLOURS[(number - 1) % len(COLOURS)], height=0.66, label=label)
    for i, gain in zip(places, gains, strict=True):
        column = columns[i]
        text = column.reason
        if column.p_value is not None:
            text = f"p {column.p_text}" if column.p_text.startswith("<") else f"p = {column.p_text}"
        axes.annotate(text, (gain, i), (6, 0), textcoords="offset points", va="center", fontsize="small", color="0.4")
