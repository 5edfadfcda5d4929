"""The picture of a reduct: what it shows, and that names are only names."""

from __future__ import annotations

import io
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import plar
from plar.datasets import random_table
from support.environment import TIC_TAC_TOE

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'plar[report]'")

PAIR = {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "c": [0, 0, 0, 0], "d": [0, 1, 1, 0]}


def drawn(figure: Any) -> int:
    """Size of the picture as PNG; drawing it is what reveals bad text."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=40)
    assert file.getvalue().startswith(b"\x89PNG")
    return len(file.getvalue())


def test_curve_starts_before_the_first_step_and_ends_at_the_level_of_all() -> None:
    reduct = plar.reduce(TIC_TAC_TOE, "x_wins")
    axes: Any = reduct.plot().axes
    left, right = axes
    level, curve, by_chance = left.get_lines()
    assert list(curve.get_xdata()) == list(range(len(reduct.steps) + 1))
    assert curve.get_ydata()[0] == pytest.approx(plar.theta(TIC_TAC_TOE, [], decision="x_wins"), abs=1e-9)
    assert curve.get_ydata()[-1] == level.get_ydata()[0] == reduct.theta_all
    assert list(by_chance.get_xdata()) == [8]
    assert [text.get_text() for text in left.get_legend().get_texts()] == ["no better than chance"]
    assert [patch.get_facecolor()[3] for patch in right.patches[:8]] == [1.0] * 7 + [0.0]
    assert "Θ = 0 with all 9 columns" in [text.get_text() for text in left.texts]
    assert [label.get_text() for label in right.get_yticklabels()] == list(reduct.attributes)
    bars = [patch.get_width() for patch in right.patches[: len(reduct.attributes)]]
    assert bars == [step.significance for step in reduct.steps]


def test_earlier_versions_knew_nothing_of_chance() -> None:
    reduct = plar.reduce(TIC_TAC_TOE, "x_wins")
    left: Any = replace(reduct, steps=tuple(replace(step, p_value=None) for step in reduct.steps)).plot().axes[0]
    assert len(left.get_lines()) == 2
    assert left.get_legend() is None


def test_core_is_marked_and_shows_its_inner_significance() -> None:
    reduct = plar.reduce(PAIR, "d", measure="PR")
    assert reduct.core == ("a", "b")
    right: Any = reduct.plot().axes[1]
    assert [patch.get_width() for patch in right.patches[:2]] == [1.0, 1.0]
    (legend,) = right.get_legend().get_texts()
    assert legend.get_text().startswith("core")


def test_names_that_look_like_formulas_or_steer_terminals_are_only_text() -> None:
    names = ["$x$", "$\\frac{1", "_^{", "line\nbreak", "\x1b[31m", "a" * 500, "", "100 %", "\u202etxt"]
    cells = np.eye(len(names), dtype=int)
    reduct = plar.reduce({**dict(zip(names, cells, strict=True)), "d": range(len(names))}, "d", max_attributes=9)
    figure = reduct.plot()
    assert drawn(figure) > 1000
    labels = [label.get_text() for label in figure.axes[1].get_yticklabels()]
    assert "$x$" in labels
    assert "line\\nbreak" in labels
    assert max(map(len, labels)) < 30


def test_many_columns_stay_readable() -> None:
    cells, y = random_table(400, 80, values=2, classes=2)
    reduct = plar.reduce(cells, y=y, include=range(70))
    figure = reduct.plot()
    assert drawn(figure) > 1000
    right = figure.axes[1]
    assert len(right.get_yticklabels()) == 60
    assert "10 more columns are not shown" in right.get_xlabel()


@pytest.mark.parametrize(
    "table",
    [{"a": [0, 1], "d": [1, 1]}, {"a": [0, 0], "d": [0, 1]}, {"a": [0, 1], "b": [0, 1], "d": [0, 1]}],
    ids=["one decision", "nothing helps", "one column"],
)
@pytest.mark.parametrize("measure", ["PR", "SCE"])
def test_trivial_tables_can_be_drawn(table: dict[str, list[int]], measure: str) -> None:
    assert drawn(plar.reduce(table, "d", measure=measure).plot()) > 1000


def test_a_notebook_shows_it_by_itself() -> None:
    figure: Any = plar.reduce(PAIR, "d").plot()
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_axes_of_the_user_are_used() -> None:
    from matplotlib.figure import Figure

    reduct = plar.reduce(PAIR, "d")
    figure = Figure()
    one = figure.subplots()
    assert reduct.plot(one) is figure
    assert one.get_title(loc="left") == "Uncertainty left"
    two = Figure()
    assert reduct.plot(two.subplots(2, 1)) is two
    with pytest.raises(plar.ParameterError, match="must be one Axes or two"):
        reduct.plot([])


def test_without_the_library_one_line_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = sys.modules['matplotlib.figure'] = sys.modules['jinja2'] = None\n"
        "import plar\n"
        "r = plar.reduce({'a': [0, 1], 'd': [0, 1]}, 'd')\n"
        "assert '<table' in r._repr_html_()\n"
        "for act in (r.plot, lambda: r.report('never.html')):\n"
        "    try: act()\n"
        "    except plar.PlarError as error: print(error)\n"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.splitlines() == [
        "A plot needs matplotlib, which is not installed. Try: pip install 'plar[report]'.",
        "A report needs jinja2, which is not installed. Try: pip install 'plar[report]'.",
    ]
