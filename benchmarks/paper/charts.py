"""Bar and line charts as SVG, on logarithmic axes, in colours that can be read on white and on black."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

__all__ = ["bars", "lines"]

#: of middle lightness, told apart also by those who see no red or green
COLOURS = ("#d55e00", "#0090d0", "#b07aa1", "#00a078", "#a08000", "#808890")
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 860, 230, 64, 46, 34
STYLE = (
    "<style>text{font:12px sans-serif;fill:#57606a}.title{font-weight:bold}.grid{stroke:#8b949e;stroke-opacity:.35}"
    "@media(prefers-color-scheme:dark){text{fill:#b1bac4}}</style>"
)


class _Axis:
    """A logarithmic axis from one power of ten to another."""

    def __init__(self, values: Sequence[float]) -> None:
        self.low = math.floor(math.log10(min(values)))
        self.high = max(self.low + 1, math.ceil(math.log10(max(values))))

    def place(self, value: float) -> float:
        return (math.log10(value) - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        every = -(-(self.high - self.low) // 6)
        return [10.0**k for k in range(self.low, self.high + 1, every)]


def bars(panels: Mapping[str, Mapping[str, Mapping[str, float]]], unit: str) -> str:
    """Draw panels of groups of bars: title → group → series → value; all panels share the axis and the series."""
    values = [v for groups in panels.values() for each in groups.values() for v in each.values()]
    series = list(dict.fromkeys(s for groups in panels.values() for each in groups.values() for s in each))
    axis = _Axis(values)
    parts = [_legend(series)]
    for i, (title, groups) in enumerate(panels.items()):
        top = i * HEIGHT + TOP
        parts += _frame(title, axis, top, unit)
        base, room = HEIGHT - TOP - BOTTOM, (WIDTH - LEFT - 10) / len(groups)
        width = 0.8 * room / len(series)
        for g, (group, each) in enumerate(groups.items()):
            x = LEFT + (g + 0.1) * room
            middle = x + 0.4 * room
            parts.append(f'<text x="{middle:.1f}" y="{top + base + 16}" text-anchor="middle">{escape(group)}</text>')
            for s, name in enumerate(series):
                if name in each:
                    tall = max(1.0, axis.place(each[name]) * base)
                    parts.append(
                        f'<rect x="{x + s * width:.1f}" y="{top + base - tall:.1f}" width="{width:.1f}" '
                        f'height="{tall:.1f}" fill="{COLOURS[s]}"><title>{escape(group)}, {escape(name)}: '
                        f"{each[name]:.4g} {escape(unit)}</title></rect>"
                    )
    return _whole(parts, len(panels) * HEIGHT + 10)


def lines(title: str, series: Mapping[str, Mapping[int, float]], unit: str, below: str) -> str:
    """Draw lines: series → position → value; the positions are equally far apart."""
    axis = _Axis([v for points in series.values() for v in points.values()])
    places = sorted({x for points in series.values() for x in points})
    base, room = HEIGHT - TOP - BOTTOM, (WIDTH - LEFT - 10) / len(places)
    parts = [_legend(list(series)), *_frame(title, axis, TOP, unit)]
    at = {x: LEFT + (i + 0.5) * room for i, x in enumerate(places)}
    for x, place in at.items():
        parts.append(f'<text x="{place:.1f}" y="{TOP + base + 16}" text-anchor="middle">{x}</text>')
    parts.append(f'<text x="{WIDTH - 10}" y="{TOP + base + 31}" text-anchor="end">{escape(below)}</text>')
    for s, (name, points) in enumerate(series.items()):
        dots = [(at[x], TOP + base - axis.place(v) * base, v) for x, v in sorted(points.items())]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in dots)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[s]}" stroke-width="2"/>')
        parts += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{COLOURS[s]}"><title>{escape(name)}: {v:.4g} '
            f"{escape(unit)}</title></circle>"
            for x, y, v in dots
        ]
    return _whole(parts, HEIGHT + 14)


def _legend(series: Sequence[str]) -> str:
    parts, x = [], LEFT
    for s, name in enumerate(series):
        parts.append(f'<rect x="{x}" y="6" width="11" height="11" fill="{COLOURS[s]}"/>')
        parts.append(f'<text x="{x + 15}" y="16">{escape(name)}</text>')
        x += 34 + 7 * len(name)
    return "".join(parts)


def _frame(title: str, axis: _Axis, top: int, unit: str) -> list[str]:
    base = HEIGHT - TOP - BOTTOM
    parts = [f'<text class="title" x="{LEFT}" y="{top - 8}">{escape(title)}, {escape(unit)}</text>']
    for tick in axis.ticks():
        y = top + base - axis.place(tick) * base
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - 10}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:,g}</text>')
    return parts


def _whole(parts: Sequence[str], height: int) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">'
    return "\n".join([head, STYLE, *parts, "</svg>"]) + "\n"
