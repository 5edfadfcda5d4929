"""Draw the pictures of the documentation.

python docs/picture.py selection > docs/pictures/selection.svg
python docs/picture.py digits > docs/pictures/digits.svg
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import fmean

from sklearn.datasets import load_breast_cancer, load_digits

import plar

MEASURED = Path(__file__).parent.parent / "benchmarks" / "results" / "selection.json"
INK, SOFT, LINE, PALE, TEAL, AMBER = "#263238", "#607d8b", "#b0bec5", "#eceff1", "#00897b", "#ef6c00"
HEADING, SMALL = 'font-weight="600" font-size="15"', 'font-size="11"'


def selection() -> str:
    """Left: the columns that predict a diagnosis. Right: how a forest does on the columns of each selector."""
    table = load_breast_cancer(as_frame=True).frame
    selected = plar.select(table, "target")
    n_selected = len(selected.columns)
    label = (
        f"Left: {n_selected} of {len(selected.conditions)} measurements predict the diagnosis of 569 tumours. "
        "Right: accuracy of a random forest on the columns that plar, Boruta, mRMR, JMI and selectors of scikit-learn "
        "choose from tables with junk columns."
    )
    return svg(label, 960, 60 + ROW * max(n_selected, len(SHOWN) + 1) + 12, [*share_bars(selected), *measured_rows()])


#: height of a line
ROW = 27
#: the methods, by what the picture calls them
SHOWN = {
    "all": "all columns",
    "select": "plar select",
    "relevant": "plar relevant",
    "boruta": "Boruta",
    "mutual_info": "SelectKBest",
    "mrmr": "mRMR",
    "jmi": "JMI",
    "sequential": "SequentialFeatureSelector",
}


def share_bars(selected: plar.Selection) -> Iterator[str]:
    """What each selected column says beside those before it."""
    yield text(20, 26, f"{len(selected.conditions)} columns → {len(selected.columns)} that predict", INK, HEADING)
    yield text(20, 44, "share of what was left to say about the diagnosis, beyond chance", SOFT, SMALL)
    for number, step in enumerate(selected.steps):
        y = 56 + ROW * number
        yield text(172, y + 16, step.column, INK, 'text-anchor="end"')
        yield rect(182, y, 180, 20, PALE)
        yield rect(182, y, 180 * step.share, 20, TEAL)
        yield text(370, y + 16, f"{100 * step.share:.0f} %", INK)


def measured_rows() -> Iterator[str]:
    """Means over the tables with classes, junk added: columns, junk among them, accuracy; bars for the accuracy."""
    rows = [row for row in json.loads(MEASURED.read_text()) if row["target"] == "classes" and row["junk"]]
    n_tables = len({row["table"] for row in rows})
    yield text(450, 26, "A random forest on the chosen columns", INK, HEADING)
    yield text(
        450, 44, f"means over {n_tables} tables with six junk columns each, 5-fold cross-validation", SOFT, SMALL
    )
    for x, words in ((690, "columns"), (750, "junk"), (820, "accuracy")):
        yield text(x, 70, words, SOFT, f'{SMALL} text-anchor="end"')
    for number, (method, name) in enumerate(SHOWN.items()):
        of_method = [row for row in rows if row["method"] == method]
        columns, junk, score = (
            fmean(row[field] for row in of_method) for field in ("columns", "junk_columns", "score")
        )
        y = 78 + ROW * number
        is_ours = method in ("select", "relevant")
        yield text(450, y + 16, name, TEAL if is_ours else INK, 'font-weight="600"' if is_ours else "")
        yield text(690, y + 16, f"{columns:.0f}", INK, 'text-anchor="end"')
        yield text(750, y + 16, f"{junk:.1f}", INK, 'text-anchor="end"')
        yield text(820, y + 16, f"{score:.3f}", INK, 'text-anchor="end"')
        yield rect(830, y, 110, 20, PALE)
        yield rect(830, y, 110 * max(0.0, score - 0.5) / 0.5, 20, TEAL if is_ours else LINE)


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
