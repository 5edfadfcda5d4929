"""The curve of Θ(D|R) as SVG, drawn without a library, in the colours of the page."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

from plar.results.report.words import PValue, counted, number, p_values_of, shortened, start_words, thetas

if TYPE_CHECKING:
    from plar.results.reduct import Reduct


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Choose round numbers from `low` to `high`.

    >>> ticks(-1.0, 0.0)
    [-1.0, -0.8, -0.6, -0.4, -0.2, 0.0]
    """
    span = high - low
    if span <= 0:
        return [low]
    rough = span / most
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * m for m in (1, 2, 2.5, 5, 10) if unit * m >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 12) + 0.0 for k in range(first, math.floor(high / step + 1e-9) + 1)]


def curve(reduct: Reduct, width: int = 760, height: int = 300) -> str:
    """Draw Θ(D|R) after each step, and the level of Θ(D|C)."""
    values = thetas(reduct)
    low = min(*values, reduct.theta_all)
    high = max(*values, reduct.theta_all)
    if high == low:
        high = low + (abs(low) or 1.0)
    left = 62.0
    right = width - 14.0
    top = 18.0
    bottom = height - 40.0

    def x(step: float) -> float:
        return left + (right - left) * step / max(1, len(values) - 1)

    def y(value: float) -> float:
        # the curve never falls below the level, so under it there is room for the label
        return bottom - 24 - (bottom - 24 - top) * (value - low) / (high - low)

    lines = []
    for theta in ticks(low, high):
        lines.append(f'<line class="grid" x1="{left:g}" x2="{right:g}" y1="{y(theta):.1f}" y2="{y(theta):.1f}"/>')
        lines.append(_text("tick", f"{left - 10:g}", f"{y(theta) + 4:.1f}", number(theta), anchor="end"))
    steps_per_label = max(1, math.ceil(len(values) * 34 / (right - left)))
    for k in range(0, len(values), steps_per_label):
        lines.append(_text("tick", f"{x(k):.1f}", f"{bottom + 18:g}", str(k), anchor="middle"))
    lines.append(_text("tick", f"{(left + right) / 2:g}", f"{height - 4:g}", start_words(reduct), anchor="middle"))

    level = y(reduct.theta_all)
    level_words = f"with all {counted(len(reduct.conditions), 'column')}: Θ = {number(reduct.theta_all)}"
    lines.append(f'<line class="level" x1="{left:g}" x2="{right:g}" y1="{level:.1f}" y2="{level:.1f}"/>')
    lines.append(_text("label", f"{left + 6:g}", f"{level + 17:.1f}", level_words))

    points = [(f"{x(k):.1f}", f"{y(value):.1f}") for k, value in enumerate(values)]
    joined_points = " ".join(f"{px},{py}" for px, py in points)
    lines.append(f'<polyline class="curve" points="{joined_points}"/>')
    radius = 4.5 if len(values) <= 30 else 2.5
    names = ["start", *(shortened(step.attribute) for step in reduct.steps)]
    p_values = [PValue("", False), *p_values_of(reduct)]
    for k, (px, py) in enumerate(points):
        style = "dot chance" if p_values[k].by_chance else "dot"
        title = f"{k}: {escape(names[k])}, Θ = {values[k]!r}"
        if p_values[k].text:
            title += f", p-value {escape(p_values[k].text)}"
        lines.append(f'<circle class="{style}" cx="{px}" cy="{py}" r="{radius}"><title>{title}</title></circle>')

    fall = f"from {number(values[0])} to {number(values[-1])} in {counted(len(values) - 1, 'step')}"
    words = f"The uncertainty left, Θ, falls {fall}; with all columns it is {number(reduct.theta_all)}."
    return f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(words)}">{"".join(lines)}</svg>'


def _text(style: str, x: str, y: str, text: str, anchor: str = "") -> str:
    """A text of the picture; without an anchor it begins at its place."""
    at = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text class="{style}" x="{x}" y="{y}"{at}>{text}</text>'
