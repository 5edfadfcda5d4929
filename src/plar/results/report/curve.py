"""The curve of Θ(D|R) as SVG, drawn without a library, in the colours of the page."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

from plar.results.report.words import counted, number, p_values_of, shortened, start_words, thetas

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
    low, high = min(*values, reduct.theta_all), max(*values, reduct.theta_all)
    if high == low:
        high = low + (abs(low) or 1.0)
    left, right, top, bottom = 62.0, width - 14.0, 18.0, height - 40.0

    def x(step: float) -> float:
        return left + (right - left) * step / max(1, len(values) - 1)

    def y(value: float) -> float:
        # the curve never falls below the level, so under it there is room for the label
        return bottom - 24 - (bottom - 24 - top) * (value - low) / (high - low)

    lines = [
        f'<line class="grid" x1="{left:g}" x2="{right:g}" y1="{y(t):.1f}" y2="{y(t):.1f}"/>'
        f'<text class="tick" x="{left - 10:g}" y="{y(t) + 4:.1f}" text-anchor="end">{number(t)}</text>'
        for t in ticks(low, high)
    ]
    every = max(1, math.ceil(len(values) * 34 / (right - left)))
    lines += [
        f'<text class="tick" x="{x(k):.1f}" y="{bottom + 18:g}" text-anchor="middle">{k}</text>'
        for k in range(0, len(values), every)
    ]
    lines.append(
        f'<text class="tick" x="{(left + right) / 2:g}" y="{height - 4:g}" text-anchor="middle">'
        f"{start_words(reduct)}</text>"
    )
    level = y(reduct.theta_all)
    lines.append(f'<line class="level" x1="{left:g}" x2="{right:g}" y1="{level:.1f}" y2="{level:.1f}"/>')
    lines.append(
        f'<text class="label" x="{left + 6:g}" y="{level + 17:.1f}">'
        f"with all {counted(len(reduct.conditions), 'column')}: Θ = {number(reduct.theta_all)}</text>"
    )
    points = [(x(k), y(value)) for k, value in enumerate(values)]
    lines.append(f'<polyline class="curve" points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in points)}"/>')
    radius = 4.5 if len(values) <= 30 else 2.5
    names = ["start", *(shortened(step.attribute) for step in reduct.steps)]
    p_values = [("", False), *p_values_of(reduct)]
    lines += [
        f'<circle class="{"dot chance" if by_chance else "dot"}" cx="{a:.1f}" cy="{b:.1f}" r="{radius}"><title>'
        f"{k}: {escape(name)}, Θ = {value!r}{f', p-value {escape(p)}' if p else ''}</title></circle>"
        for k, ((a, b), name, value, (p, by_chance)) in enumerate(zip(points, names, values, p_values, strict=True))
    ]
    fall = f"from {number(values[0])} to {number(values[-1])} in {counted(len(values) - 1, 'step')}"
    words = f"The uncertainty left, Θ, falls {fall}; with all columns it is {number(reduct.theta_all)}."
    return f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(words)}">{"".join(lines)}</svg>'
