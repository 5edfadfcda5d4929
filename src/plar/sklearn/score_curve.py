"""The mean score by the number of selected features, drawn with matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from plar.results.plot import CORE_COLOUR, CURVE_COLOUR, CURVE_HEIGHT, LEGEND, LEVEL_COLOUR, PLAIN, NotebookFigure
from plar.sklearn.fold_scores import standard_errors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: the most numbers of features that have a dot each
_MOST_DOTS = 30


def draw(results: Mapping[str, NDArray[Any]], n_selected: int, score_name: str, ax: Axes | None = None) -> Figure:
    """Draw the curve; see `FeatureSelectorCV.plot`."""
    from matplotlib.ticker import MaxNLocator

    axes: Any = ax
    if axes is None:
        axes = NotebookFigure(figsize=(7, CURVE_HEIGHT), layout="constrained").subplots()
    sizes = results["n_features"]
    means = results["mean_test_score"]
    errors = standard_errors(results)
    best = int(np.argmax(means))
    enough = means[best] - errors[best]
    dot = {"linestyle": "", "marker": "o"}
    axes.axhline(enough, color=LEVEL_COLOUR, linestyle="--", linewidth=1.2, label="one standard error below")
    axes.fill_between(sizes, means - errors, means + errors, color=CURVE_COLOUR, alpha=0.15, linewidth=0)
    axes.plot(sizes, means, color=CURVE_COLOUR, linewidth=1.8, marker="o" if len(sizes) <= _MOST_DOTS else "")
    circle = {**dot, "markersize": 11, "markerfacecolor": "none", "color": LEVEL_COLOUR}
    axes.plot(sizes[best], means[best], **circle, label=f"best: {sizes[best]}")
    score_there = means[sizes == n_selected]
    axes.plot([n_selected], score_there, **dot, color=CORE_COLOUR, markersize=8, label=f"selected: {n_selected}")
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], labels[::-1], ncols=3, handletextpad=0.4, **LEGEND)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.margins(y=0.12)
    axes.set_xlabel("selected features")
    axes.set_ylabel(f"mean {score_name}, {sum(name.startswith('split') for name in results)} folds", **PLAIN)
    axes.grid(axis="y", color="0.5", alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return cast("Figure", axes.figure)
