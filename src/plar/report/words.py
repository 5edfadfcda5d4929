"""Names, numbers and sentences for people: what the report, the picture, the terminal and a notebook have in common."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from plar.errors import printable

if TYPE_CHECKING:
    from plar.reduct import Reduct

#: characters of a name that are shown
LONGEST = 48

MEASURES = {
    "PR": "positive region: minus the share of rows whose decision is certain",
    "SCE": "Shannon's conditional entropy, in nats",
    "LCE": "Liang's conditional entropy",
    "CCE": "combination conditional entropy",
}


def visible(name: str) -> str:
    """Show a name of the data with everything in it that cannot be seen, or that turns text around, escaped."""
    return printable(name) if name.strip() else repr(name)


def shortened(name: str, longest: int = LONGEST) -> str:
    """Show a name, its middle left out if it is long.

    >>> shortened("a" * 30 + "z" * 30, 21)
    'aaaaaaaaaaaaaa…zzzzzz'
    """
    shown = visible(name)
    if len(shown) <= longest:
        return shown
    tail = longest * 3 // 10
    return f"{shown[: longest - tail - 1]}…{shown[-tail:]}"


def number(value: float) -> str:
    """Write a number with four significant digits.

    >>> number(0.0604332), number(1234567), number(-0.5), number(0.0), number(2.5e-9)
    ('0.06043', '1,234,567', '−0.5', '0', '2.5e−09')
    """
    style = ",.0f" if float(value).is_integer() or abs(value) >= 1000 else ".4g"
    return f"{value + 0.0:{style}}".replace("-", "−")


def aligned(values: Sequence[float]) -> list[str]:
    """Write the numbers of one column with as many decimals each: four digits for the largest, two for the least.

    >>> aligned([0.1454073, 0.0057883, 0.0, 1e-9]), aligned([-1.0, -0.25])
    (['0.1454', '0.0058', '0', '<0.0001'], ['−1.000', '−0.250'])
    """
    sizes = [abs(value) for value in values if value]
    if not sizes:
        return ["0"] * len(values)
    most = 3 - math.floor(math.log10(max(sizes)))
    decimals = max(0, min(most + 2, 1 - math.floor(math.log10(min(sizes)))), most)
    if min(sizes) < 0.5 * 10.0**-decimals:
        decimals = max(0, most)
    return [_fixed(value, decimals) for value in values]


def _fixed(value: float, decimals: int) -> str:
    if value == 0:
        return "0"
    if abs(value) < 0.5 * 10.0**-decimals:
        return f"{'<' if value > 0 else '>−'}{10.0**-decimals:.{decimals}f}"
    return f"{value:,.{decimals}f}".replace("-", "−")


def percent(part: int, whole: int) -> str:
    r"""Write a share; never 100 % or 0 % where it is not so.

    >>> percent(5189, 5201), percent(1, 9), percent(0, 9), percent(9_999_999, 10_000_000)
    ('99.8\xa0%', '11.1\xa0%', '0\xa0%', '>99.9\xa0%')
    """
    if part in (0, whole):
        return "100\xa0%" if part else "0\xa0%"
    share = 100 * part / whole
    shown = ">99.9" if share > 99.9 else f"{share:.1f}" if share >= 0.1 else "<0.1"
    return f"{shown}\xa0%"


def counted(n: int, one: str, many: str | None = None) -> str:
    """Count things in words.

    >>> counted(1, "column"), counted(5201, "column"), counted(2, "class", "classes")
    ('1 column', '5,201 columns', '2 classes')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def bar(value: float | None, largest: float) -> str:
    """The width of a bar."""
    return f"{100 * value / largest:.1f}%" if value and largest > 0 and value > 0 else "0.0%"


def chosen(found: Reduct) -> list[dict[str, Any]]:
    """The columns of the reduct: why each is there, and its significance, inner for the core, else when selected.

    >>> import plar
    >>> r = plar.reduce({"a": [0, 0, 1], "b": [0, 1, 1], "d": [0, 1, 1]}, "d", measure="PR", include=["a"])
    >>> [(row["name"], row["part"], row["written"]) for row in chosen(r)]
    [('b', 'core', '0.6667'), ('a', 'asked for', '–')]
    """
    steps = {step.attribute: f"step {i}" for i, step in enumerate(found.steps, 1)}
    parts = {**steps, **dict.fromkeys(found.core, "core")}
    gains = {**{step.attribute: step.significance for step in found.steps}, **found.core_significances}
    known = {name: gains[name] for name in found.attributes if name in gains}
    written = dict(zip(known, aligned(list(known.values())), strict=True))
    same = {name: [other for other in group if other != name] for group in found.equivalent or () for name in group}
    return [
        {
            "name": name,
            "part": parts.get(name, "asked for"),
            "significance": known.get(name),
            "written": written.get(name, "–"),
            "bar": bar(known.get(name), max(known.values(), default=0.0)),
            "values": found.cardinalities.get(name),
            "missing": found.missing.get(name, 0),
            "intervals": intervals(found.cuts[name]) if name in found.cuts else None,
            "same": same.get(name, []),
        }
        for name in found.attributes
    ]


def thetas(found: Reduct) -> list[float]:
    """Θ(D|R) of the core and what was asked for, then after every step."""
    start = found.steps[0].theta + found.steps[0].significance if found.steps else found.theta
    return [start, *(step.theta for step in found.steps)]


def start_words(found: Reduct) -> str:
    """Say what step 0 of the curve is."""
    parts = {row["part"] for row in chosen(found)}
    start = [word for word in ("core", "asked for") if word in parts]
    return f"step (0: {' and what was '.join(start) or 'no column yet'})".replace("0: asked", "0: what was asked")


def intervals(cuts: Iterable[float]) -> list[str]:
    """Write the bins between cut points.

    >>> intervals([1.5, 2.0])
    ['up to 1.5', 'over 1.5 to 2', 'over 2']
    """
    marks = [f"{cut:.6g}".replace("-", "−") for cut in cuts]
    between = [f"over {low} to {high}" for low, high in pairwise(marks)]
    return [f"up to {marks[0]}", *between, f"over {marks[-1]}"] if marks else ["all values"]
