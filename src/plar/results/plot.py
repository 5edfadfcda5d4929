"""A reduct as a picture, drawn with matplotlib."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from plar.errors import PlarError, invalid
from plar.results.report.words import chosen, counted, number, p_values_of, shortened, start_words, thetas

try:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator
except ImportError:
    raise PlarError("A plot needs matplotlib, which is not installed. Try: pip install 'plar[report]'.") from None

if TYPE_CHECKING:
    from plar.results.reduct import Reduct

#: the most columns in a picture
MAX_COLUMNS = 60
#: characters of a name in the picture
LONGEST_NAME = 28
#: names are never formulas
PLAIN = {"parse_math": False, "usetex": False}
#: inches of the curve
CURVE_HEIGHT = 3.6
CURVE_COLOUR = "#2f6db5"
CORE_COLOUR = "#c9781f"
LEVEL_COLOUR = "#2a8a57"
#: above the panel, at its right
LEGEND: dict[str, Any] = {
    "frameon": False,
    "fontsize": "small",
    "borderaxespad": 0.1,
    "loc": "lower right",
    "bbox_to_anchor": (1, 1),
}


class NotebookFigure(Figure):
    """A figure that pyplot does not know: nothing stays in memory, and Jupyter shows it without any magic."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=self.dpi)
        return file.getvalue()


def plot(reduct: Reduct, ax: Axes | Sequence[Axes] | None = None) -> Figure:
    """Draw how Θ(D|R) fell, and the gain of each chosen column; see `Reduct.plot`."""
    if ax is None:
        axes = _new_axes(min(len(reduct.attributes), MAX_COLUMNS))
    else:
        axes = [ax] if hasattr(ax, "plot") else list(ax)
    if len(axes) not in (1, 2):
        raise invalid("ax", "one Axes or two", len(axes))
    _draw_curve(reduct, axes[0])
    if len(axes) == 2:
        _draw_bars(reduct, axes[1])
    return cast(Figure, axes[0].figure)


def _new_axes(n_bars: int) -> list[Any]:
    """Two panels beside each other, on a new figure that is as high as the bars need; the curve stays low."""
    height = max(CURVE_HEIGHT, 1.2 + 0.2 * n_bars)
    figure = NotebookFigure(figsize=(11, height), layout="constrained")
    if height < 2 * CURVE_HEIGHT:
        return list(figure.subplots(1, 2))
    grid = figure.add_gridspec(2, 2, height_ratios=(CURVE_HEIGHT, height - CURVE_HEIGHT))
    return [figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[:, 1])]


def _draw_curve(reduct: Reduct, ax: Any) -> None:
    values = thetas(reduct)
    marker = {"marker": "o", "markersize": 5 if len(values) <= 30 else 2.5, "color": CURVE_COLOUR}
    ax.axhline(reduct.theta_all, color=LEVEL_COLOUR, linestyle="--", linewidth=1.2)
    ax.plot(range(len(values)), values, linewidth=1.8, **marker)
    hollow_steps = [k for k, p_value in enumerate(p_values_of(reduct), 1) if p_value.by_chance]
    if hollow_steps:
        ax.plot(
            hollow_steps,
            [values[k] for k in hollow_steps],
            linestyle="",
            label="no better than chance",
            markerfacecolor=ax.get_facecolor(),
            **marker,
        )
        ax.legend(handletextpad=0.1, **LEGEND)
    ax.annotate(
        f"Θ = {number(reduct.theta_all)} with all {counted(len(reduct.conditions), 'column')}",
        xy=(0.02, reduct.theta_all),
        xycoords=("axes fraction", "data"),
        xytext=(0, -4),  # below the level, where the curve never comes
        textcoords="offset points",
        va="top",
        color=LEVEL_COLOUR,
        fontsize="small",
        **PLAIN,
    )
    if reduct.steps:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    else:
        ax.set_xticks([0])
    ax.margins(y=0.12)
    ax.set_xlabel(start_words(reduct) if reduct.steps else "no step was needed")
    ax.set_ylabel(f"Θ of the chosen columns, measure {shortened(reduct.measure, LONGEST_NAME)}", **PLAIN)
    ax.set_title("Uncertainty left", loc="left", fontsize="medium")
    quiet(ax, "y")


def _draw_bars(reduct: Reduct, ax: Any) -> None:
    columns = chosen(reduct)[:MAX_COLUMNS]
    names = [shortened(column.name, LONGEST_NAME) for column in columns]
    gains = [column.gain or 0.0 for column in columns]
    edge_colours = [CORE_COLOUR if column.part == "core" else CURVE_COLOUR for column in columns]
    fill_colours = list(edge_colours)
    for i, column in enumerate(columns):
        if column.p_value.by_chance:
            fill_colours[i] = "none"
    ax.barh(range(len(columns)), gains, color=fill_colours, edgecolor=edge_colours, height=0.7)
    ax.set_yticks(range(len(columns)), names, fontsize="small", **PLAIN)
    ax.set_ylim(len(columns) - 0.4, -0.6)
    for i, column in enumerate(columns):
        if column.gain is None:
            why = "kept" if column.part == "kept" else "asked for"
            ax.annotate(why, (0, i), (4, 0), textcoords="offset points", va="center", fontsize="small")
    for label, colour in (("core", CORE_COLOUR), ("added step by step", CURVE_COLOUR)):
        if colour in edge_colours:
            ax.barh([0], [0], color=colour, label=label)
    if columns:
        ax.legend(ncols=2, **LEGEND)
    n_unshown = len(reduct.attributes) - len(columns)
    ax.set_xlabel(f"gain ({n_unshown:,} more columns are not shown)" if n_unshown else "gain")
    share = f"{len(reduct.attributes):,} of {counted(len(reduct.conditions), 'column')}"
    ax.set_title(f"{share} chosen", loc="left", fontsize="medium")
    quiet(ax, "x")


def quiet(ax: Any, axis: str) -> None:
    """Faint grid lines, and no frame."""
    ax.grid(axis=axis, color="0.5", alpha=0.25, linewidth=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
