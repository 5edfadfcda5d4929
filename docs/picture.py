"""Draw docs/pictures/digits.svg: which pixels of 1,797 handwritten digits tell them apart, and how fast.

python docs/picture.py > docs/pictures/digits.svg
"""

from __future__ import annotations

from collections.abc import Iterator

from sklearn.datasets import load_digits

import plar

CELL, GAP, TOP, LEFT = 34, 3, 58, 20
CURVE, WIDTH, HEIGHT = 400, 370, 8 * (CELL + GAP) - GAP
INK, SOFT, TEAL, AMBER = "#263238", "#607d8b", "#00897b", "#ef6c00"


def drawing() -> str:
    """The picture as SVG."""
    digits = load_digits(as_frame=True)
    ink = (digits.data >= 8).astype(int)
    found = plar.reduce(ink, y=digits.target)
    parts = [*grid(found, ink.mean()), *curve(found)]
    label = f"{len(found.attributes)} of {len(found.conditions)} pixels tell 1,797 handwritten digits apart"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {CURVE + WIDTH + 24} {TOP + HEIGHT + 44}" role="img" '
        f'aria-label="{label}" font-family="system-ui, sans-serif" font-size="13">\n'
        f'<rect width="100%" height="100%" rx="8" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def grid(found: plar.Reduct, shade: dict[str, float]) -> Iterator[str]:
    """The pixels, as dark as they are inked, with the order in which they were chosen."""
    order = {name: number for number, name in enumerate(found.attributes, 1)}
    yield text(LEFT, 26, "64 pixels → 20, as good as all", INK, 'font-weight="600" font-size="15"')
    yield text(LEFT, 44, "numbered by choice; orange: the core, which nothing replaces", SOFT, 'font-size="11"')
    for number, name in enumerate(found.conditions):
        row, column = divmod(number, 8)
        x, y = LEFT + column * (CELL + GAP), TOP + row * (CELL + GAP)
        grey = 250 - round(70 * shade[name])
        colour = AMBER if name in found.core else TEAL if name in order else f"rgb({grey},{grey},{grey})"
        yield f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" rx="4" fill="{colour}"/>'
        if name in order:
            yield text(x + CELL / 2, y + CELL / 2 + 5, str(order[name]), "#fff", 'text-anchor="middle"')


def curve(found: plar.Reduct) -> Iterator[str]:
    """What is still unknown after each choice."""
    first = found.steps[0].theta + found.steps[0].significance
    thetas = [first, *(step.theta for step in found.steps)]
    across, down = WIDTH / (len(thetas) - 1), HEIGHT / first
    points = " ".join(f"{CURVE + i * across:.1f},{TOP + HEIGHT - theta * down:.1f}" for i, theta in enumerate(thetas))
    floor = TOP + HEIGHT
    yield text(CURVE, 26, "What is still unknown: Θ(D|R)", INK, 'font-weight="600" font-size="15"')
    yield text(CURVE, 44, "nats, after each choice; it ends at exactly what all 64 leave: 0", SOFT, 'font-size="11"')
    yield f'<path d="M{CURVE} {floor}H{CURVE + WIDTH}" stroke="#b0bec5"/>'
    yield f'<polygon points="{CURVE},{floor} {points} {CURVE + WIDTH},{floor}" fill="{TEAL}" opacity="0.12"/>'
    yield f'<polyline points="{points}" fill="none" stroke="{TEAL}" stroke-width="2.5"/>'
    for point in points.split():
        x, y = point.split(",")
        yield f'<circle cx="{x}" cy="{y}" r="3" fill="{TEAL}"/>'
    yield text(CURVE + 10, TOP + 8, f"{first:.2f} with the core alone", SOFT)
    for number in (1, 5, 10, 15, 20):
        yield text(CURVE + (number - 1) * across, floor + 18, str(number), SOFT, 'text-anchor="middle"')
    yield text(CURVE + WIDTH / 2, floor + 36, "pixels", SOFT, 'text-anchor="middle"')


def text(x: float, y: float, words: str, colour: str, more: str = "") -> str:
    """A piece of text."""
    return f'<text x="{x:g}" y="{y:g}" fill="{colour}" {more}>{words}</text>'


if __name__ == "__main__":
    print(drawing(), end="")
