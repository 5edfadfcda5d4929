"""Draw the pictures of the documentation.

python docs/picture.py selection > docs/pictures/selection.svg
python docs/picture.py digits > docs/pictures/digits.svg
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from sklearn.datasets import load_breast_cancer, load_digits

import plar

MEASURED = Path(__file__).parent.parent / "benchmarks" / "results" / "selection.json"
INK, SOFT, LINE, PALE, TEAL, AMBER = "#263238", "#607d8b", "#b0bec5", "#eceff1", "#00897b", "#ef6c00"
HEADING, SMALL = 'font-weight="600" font-size="15"', 'font-size="11"'


def selection() -> str:
    """Left: 30 columns become a few. Right: how a forest predicts on the columns of each selector, and the seconds."""
    table = load_breast_cancer(as_frame=True).frame
    reduct = plar.reduce(table, decision="target", bins="mdlp")
    label = f"{len(reduct.attributes)} of {len(reduct.conditions)} columns determine the diagnosis of all 569 tumours"
    return svg(label, 960, 330, [*falling_bars(reduct), *measured_rows()])


def falling_bars(reduct: plar.Reduct) -> Iterator[str]:
    """The uncertainty that is left after each column, as a share of what there was."""
    first = reduct.steps[0].theta + reduct.steps[0].significance
    steps = [("no column", first), *((f"+ {step.attribute}", step.theta) for step in reduct.steps)]
    yield text(20, 26, f"{len(reduct.conditions)} columns → {len(reduct.attributes)}, nothing lost", INK, HEADING)
    yield text(20, 44, "uncertainty left about the diagnosis; numbers cut by MDLP", SOFT, SMALL)
    for number, (name, theta) in enumerate(steps):
        y, wide = 60 + 31 * number, 180 * theta / first
        share = 100 * theta / first
        yield text(172, y + 16, name, INK, 'text-anchor="end"')
        yield rect(182, y, 180, 22, PALE)
        yield rect(182, y, wide, 22, TEAL)
        yield text(370, y + 16, f"{share:.0f} %" if share >= 1 or not theta else f"{share:.1f} %", INK)


def measured_rows() -> Iterator[str]:
    """Columns, accuracy and seconds of every selector; the seconds as bars on a logarithmic scale."""
    rows = [row for row in json.loads(MEASURED.read_text()) if row["table"] == "breast_cancer" and not row["junk"]]
    names = {
        "all": "all columns",
        "reduct": "plar, reduct",
        "alpha": "plar, alpha=0.05",
        "relevant": "plar, relevant",
        "mutual_info": "SelectKBest",
        "sequential": "SequentialFeatureSelector",
        "boruta": "Boruta",
    }
    yield text(450, 26, "A random forest on the chosen columns", INK, HEADING)
    yield text(450, 44, "3-fold cross-validation; bars: seconds to choose, logarithmic", SOFT, SMALL)
    for x, words in ((666, "columns"), (734, "accuracy"), (800, "seconds")):
        yield text(x, 76, words, SOFT, f'{SMALL} text-anchor="end"')
    for number, row in enumerate(sorted(rows, key=lambda row: list(names).index(row["method"]))):
        y, ours = 86 + 33 * number, row["method"] in ("reduct", "alpha", "relevant")
        yield text(450, y + 16, names[row["method"]], TEAL if ours else INK, 'font-weight="600"' if ours else "")
        yield text(666, y + 16, f"{row['columns']:.0f}", INK, 'text-anchor="end"')
        yield text(734, y + 16, f"{row['accuracy']:.3f}", INK, 'text-anchor="end"')
        if row["method"] != "all":
            wide = 130 * (math.log10(row["seconds"]) + 2.2) / 3.4
            yield text(800, y + 16, f"{row['seconds']:.2g}", INK, 'text-anchor="end"')
            yield rect(810, y, wide, 22, TEAL if ours else LINE)


CELL, GAP, TOP, LEFT = 34, 3, 58, 20
CURVE, WIDTH, HEIGHT = 400, 370, 8 * (CELL + GAP) - GAP


def digits() -> str:
    """Which pixels of 1,797 handwritten digits tell them apart, and how the uncertainty falls."""
    table = load_digits(as_frame=True)
    ink = (table.data >= 8).astype(int)
    reduct = plar.reduce(ink, y=table.target)
    label = f"{len(reduct.attributes)} of {len(reduct.conditions)} pixels tell 1,797 handwritten digits apart"
    return svg(label, CURVE + WIDTH + 24, TOP + HEIGHT + 44, [*grid(reduct, ink.mean()), *curve(reduct)])


def grid(reduct: plar.Reduct, shade: dict[str, float]) -> Iterator[str]:
    """The pixels, as dark as they are inked, with the order in which they were chosen."""
    order = {name: number for number, name in enumerate(reduct.attributes, 1)}
    yield text(LEFT, 26, "64 pixels → 20, nothing lost", INK, HEADING)
    yield text(LEFT, 44, "numbered in the order of choice; orange: irreplaceable (the core)", SOFT, SMALL)
    for number, name in enumerate(reduct.conditions):
        row, column = divmod(number, 8)
        x, y = LEFT + column * (CELL + GAP), TOP + row * (CELL + GAP)
        grey = 250 - round(70 * shade[name])
        yield rect(
            x, y, CELL, CELL, AMBER if name in reduct.core else TEAL if name in order else f"rgb({grey},{grey},{grey})"
        )
        if name in order:
            yield text(x + CELL / 2, y + CELL / 2 + 5, str(order[name]), "#fff", 'text-anchor="middle"')


def curve(reduct: plar.Reduct) -> Iterator[str]:
    """The uncertainty that is left after each choice."""
    first = reduct.steps[0].theta + reduct.steps[0].significance
    thetas = [first, *(step.theta for step in reduct.steps)]
    across, down = WIDTH / (len(thetas) - 1), HEIGHT / first
    points = " ".join(f"{CURVE + i * across:.1f},{TOP + HEIGHT - theta * down:.1f}" for i, theta in enumerate(thetas))
    floor = TOP + HEIGHT
    yield text(CURVE, 26, "Uncertainty left about the digit", INK, HEADING)
    yield text(CURVE, 44, "nats, by the number of pixels; it ends at exactly what all 64 leave: 0", SOFT, SMALL)
    yield f'<path d="M{CURVE} {floor}H{CURVE + WIDTH}" stroke="{LINE}"/>'
    yield f'<polygon points="{CURVE},{floor} {points} {CURVE + WIDTH},{floor}" fill="{TEAL}" opacity="0.12"/>'
    yield f'<polyline points="{points}" fill="none" stroke="{TEAL}" stroke-width="2.5"/>'
    for point in points.split():
        x, y = point.split(",")
        yield f'<circle cx="{x}" cy="{y}" r="3" fill="{TEAL}"/>'
    yield text(CURVE + 10, TOP + 8, f"{first:.2f} with the core alone", SOFT)
    for number in (1, 5, 10, 15, 20):
        yield text(CURVE + (number - 1) * across, floor + 18, str(number), SOFT, 'text-anchor="middle"')
    yield text(CURVE + WIDTH / 2, floor + 36, "pixels", SOFT, 'text-anchor="middle"')


def svg(label: str, width: float, height: float, parts: Iterable[str]) -> str:
    """A picture of these parts on white."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{label}" font-family="system-ui, sans-serif" font-size="13">\n'
        '<rect width="100%" height="100%" rx="8" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def rect(x: float, y: float, width: float, height: float, colour: str) -> str:
    """A filled rectangle."""
    return f'<rect x="{x:g}" y="{y:g}" width="{width:.4g}" height="{height:g}" rx="4" fill="{colour}"/>'


def text(x: float, y: float, words: str, colour: str, more: str = "") -> str:
    """A piece of text."""
    return f'<text x="{x:g}" y="{y:g}" fill="{colour}" {more}>{words}</text>'


PICTURES: dict[str, Callable[[], str]] = {"selection": selection, "digits": digits}

if __name__ == "__main__":
    print(PICTURES[sys.argv[1]](), end="")
