"""A reduct as a picture, drawn with matplotlib."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from plar.errors import ParameterError, PlarError
from plar.results.report.words import chosen, counted, number, p_values_of, shortened, start_words, thetas

try:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator
except ImportError:
    raise PlarError("A plot needs matplotlib, which is not installed. Try: pip install 'plar[report]'.") from None

if TYPE_CHECKING:
    from plar.results.reduct import Reduct

#: the most columns in a picture, and characters of their names
MOST = 60
LONGEST = 28
#: names are never formulas
PLAIN = {"parse_math": False, "usetex": False}
#: inches of the curve
LOW = 3.6
CURVE_COLOUR = "#2f6db5"
CORE_COLOUR = "#c9781f"
LEVEL_COLOUR = "#2a8a57"
#: above the panel, at its right
LEGEND: dict[str, Any] = {"frameon": False, "fontsize": "small", "borderaxespad": 0.1}
LEGEND |= {"loc": "lower right", "bbox_to_anchor": (1, 1)}


class NotebookFigure(Figure):
    """A figure that pyplot does not know: nothing stays in memory, and Jupyter shows it without any magic."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=self.dpi)
        return file.getvalue()


def plot(reduct: Reduct, ax: Axes | Sequence[Axes] | None = None) -> Figure:
    """Draw how Θ(D|R) fell, and the gain of each chosen column; see `Reduct.plot`."""
    axes: list[Any]
    if ax is None:
        rows = min(len(reduct.attributes), MOST)
        height = max(LOW, 1.2 + 0.2 * rows)
        figure = NotebookFigure(figsize=(11, height), layout="constrained")
        if height < 2 * LOW:
            axes = list(figure.subplots(1, 2))
        else:
            grid = figure.add_gridspec(2, 2, height_ratios=(LOW, height - LOW))
            axes = [figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[:, 1])]
    else:
        axes = [ax] if hasattr(ax, "plot") else list(ax)
        if len(axes) not in (1, 2):
            raise ParameterError(f"The 'ax' parameter must be one Axes or two. Got {len(axes)} instead.")
    _curve(reduct, axes[0])
    if len(axes) == 2:
        _bars(reduct, axes[1])
    return cast(Figure, axes[0].figure)


def _curve(reduct: Reduct, ax: Any) -> None:
    values = thetas(reduct)
    marker: Any = {"marker": "o", "markersize": 5 if len(values) <= 30 else 2.5, "color": CURVE_COLOUR}
    ax.axhline(reduct.theta_all, color=LEVEL_COLOUR, linestyle="--", linewidth=1.2)
    ax.plot(range(len(values)), values, linewidth=1.8, **marker)
    hollow = [k for k, (_, by_chance) in enumerate(p_values_of(reduct), 1) if by_chance]
    if hollow:
        style = {"linestyle": "", "label": "chance does as well", "markerfacecolor": ax.get_facecolor(), **marker}
        ax.plot(hollow, [values[k] for k in hollow], **style)
        ax.legend(handletextpad=0.1, **LEGEND)
    label = f"Θ = {number(reduct.theta_all)} with all {counted(len(reduct.conditions), 'column')}"
    below = {"xytext": (0, -4), "textcoords": "offset points", "va": "top"}  # where the curve never comes
    at = {"xy": (0.02, reduct.theta_all), "xycoords": ("axes fraction", "data"), **below}
    ax.annotate(label, color=LEVEL_COLOUR, fontsize="small", **at, **PLAIN)
    if reduct.steps:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    else:
        ax.set_xticks([0])
    ax.margins(y=0.12)
    ax.set_xlabel(start_words(reduct) if reduct.steps else "no step was needed")
    ax.set_ylabel(f"Θ of the chosen columns, measure {shortened(reduct.measure, LONGEST)}", **PLAIN)
    ax.set_title("Uncertainty left", loc="left", fontsize="medium")
    _quiet(ax, "y")


def _bars(reduct: Reduct, ax: Any) -> None:
    rows = chosen(reduct)[:MOST]
    colours = [CORE_COLOUR if row["part"] == "core" else CURVE_COLOUR for row in rows]
    filled = ["none" if row["p"][1] else colour for row, colour in zip(rows, colours, strict=True)]
    gains = [row["significance"] or 0.0 for row in rows]
    ax.barh(range(len(rows)), gains, color=filled, edgecolor=colours, height=0.7)
    ax.set_yticks(range(len(rows)), [shortened(row["name"], LONGEST) for row in rows], fontsize="small", **PLAIN)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    for place, row in enumerate(rows):
        if row["significance"] is None:
            at = {"xytext": (4, 0), "textcoords": "offset points", "va": "center"}
            ax.annotate("asked for", (0, place), fontsize="small", **at)
    for label, colour in (("core", CORE_COLOUR), ("added step by step", CURVE_COLOUR)):
        if colour in colours:
            ax.barh([0], [0], color=colour, label=label)
    if rows:
        ax.legend(ncols=2, **LEGEND)
    n_left_out = len(reduct.attributes) - len(rows)
    ax.set_xlabel(f"gain ({n_left_out:,} more columns are not shown)" if n_left_out else "gain")
    share = f"{len(reduct.attributes):,} of {counted(len(reduct.conditions), 'column')}"
    ax.set_title(f"{share} chosen", loc="left", fontsize="medium")
    _quiet(ax, "x")


def _quiet(ax: Any, axis: str) -> None:
    """Faint grid lines, and no frame."""
    ax.grid(axis=axis, color="0.5", alpha=0.25, linewidth=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
