"""Names, numbers and sentences for people: what the report, the picture, the terminal and a notebook have in common."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from plar.chance.p_value import LEVEL
from plar.errors import printable

if TYPE_CHECKING:
    from plar.results.reduct import Reduct

#: characters of a name that are shown
LONGEST = 48

MEASURES = {
    "PR": "positive region, minus the share of rows whose decision is certain",
    "SCE": "Shannon's conditional entropy, in nats",
    "LCE": "Liang's conditional entropy",
    "CCE": "combination conditional entropy",
}


def visible(name: str) -> str:
    """Show a name from the data, with invisible characters and those that reverse text escaped."""
    return printable(name) if name.strip() else repr(name)


def shortened(name: str, longest: int = LONGEST) -> str:
    """Show a name, without its middle if it is long.

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
    """Write the numbers of one column with equal decimals: four digits for the largest, two for the smallest.

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
    r"""Write a share; 100 % and 0 % only if exact.

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


def p_words(p: float, level: float = LEVEL) -> str:
    """Write a p-value with two digits, or as many as needed to show on which side of the level it is.

    >>> p_words(1e-9), p_words(0.0018), p_words(0.0402), p_words(0.0501), p_words(1.0)
    ('<0.001', '0.0018', '0.04', '0.0501', '1')
    """
    least = min(0.001, level)
    shown = (f"{p:.{digits}g}" for digits in (2, 4, 17))
    return f"<{least:g}" if p < least else next(text for text in shown if (float(text) > level) == (p > level))


def level_of(found: Reduct) -> float:
    """The level that p-values are compared to."""
    return found.settings.get("alpha") or LEVEL


def p_values_of(found: Reduct) -> list[tuple[str, bool]]:
    """The p-value of each step in words, and whether chance does as well; no words in results of earlier versions."""
    known, level = [step.p_value for step in found.steps if step.p_value is not None], level_of(found)
    if len(known) < len(found.steps):
        return [("", False)] * len(found.steps)
    return [(p_words(p, level), p > level) for p in known]


def chance_words(found: Reduct) -> list[str]:
    """Say which steps beat chance, what was not tested, and how thin the table is; nothing for earlier versions.

    >>> import plar
    >>> for words in chance_words(plar.reduce({"a": [0, 0, 1], "b": [0, 1, 1], "d": [0, 1, 1]}, "d", start="empty")):
    ...     print(words)
    No step beats chance: a random decision would do as well.
    There are 1.5 rows for each combination of the chosen values.
    """
    if found.n_combinations is None or found.n_beyond_chance is None:
        return []
    words, n, left = [], len(found.steps), len(found.rejected)
    if n:
        words.append(_steps_and_chance(found.n_beyond_chance, [not by_chance for _, by_chance in p_values_of(found)]))
    if left:
        which = " left" if found.attributes else ""
        rest = f"{'None' if left > 2 else 'Neither'} of the {left:,} columns{which} beats"
        rest = f"The only column{which} does not beat" if left == 1 else rest
        words.append(f"{rest} chance at {level_of(found):g}.")
    parts = [row["part"] for row in chosen(found)]
    core, asked = parts.count("core"), parts.count("asked for")
    untested = [counted(core, "core column")] * bool(core)
    untested += [f"{asked:,} asked for" if core else f"{counted(asked, 'column')} asked for"] * bool(asked)
    if untested and found.bounds is None:
        words.append(f"Taken untested: {' and '.join(untested)}.")
    if found.cuts and (n or left):
        bins = found.settings.get("bins")
        seen = any("mdlp" in str(rule) for rule in (bins.values() if isinstance(bins, Mapping) else [bins]))
        too_small = ", whose cut points by mdlp depend on the decision: p-values are too small" if seen else ""
        words.append(f"What was tested is the binned table{too_small}.")
    if rows := per_combination(found):
        are = "is 1 row" if rows == "1" else f"are {rows} rows"
        words.append(f"There {are} for each combination of the chosen values.")
    return words


def bounds_words(found: Reduct) -> str:
    """Say what is proven about the size or cost of all reducts; empty unless the smallest was searched for.

    >>> import plar
    >>> bounds_words(plar.reduce({"a": [0, 0, 1], "b": [0, 1, 1], "d": [0, 1, 1]}, "d", search="smallest"))
    'Proven: no reduct has fewer columns.'
    """
    if found.bounds is None:
        return ""
    least, most = found.bounds
    asked = [name for name in ("include", "exclude") if found.settings.get(name)]
    none = f"no reduct{' with these limits' if asked else ''}"
    if found.settings.get("costs"):
        if least == most:
            return f"Cost {most:,}. Proven: {none} costs less."
        return f"Cost {most:,}, the least found. Proven: {none} costs less than {least:,}."
    if least == most:
        return f"Proven: {none} has fewer columns."
    return f"The fewest columns found. Proven: {none} has fewer than {least:,}."


def nothing_words(found: Reduct) -> str:
    """Say why nothing is chosen though nothing is lost."""
    decision = ", ".join(map(visible, found.decision))
    if found.n_decisions == 1:
        same = "falls into one class" if any(name in found.cuts for name in found.decision) else "is the same"
        return f"{decision} {same} in every row: there is nothing to predict."
    uncut = sum(name in found.cuts and not found.cuts[name] for name in found.conditions)
    if uncut and uncut == len(found.conditions):
        return f"The bins found no cut in any column, so none of them says anything about {decision}."
    no_cut = f"; the bins found no cut in {counted(uncut, 'column')}" if uncut else ""
    return f"No column is needed: none says anything about {decision}{no_cut}."


def _steps_and_chance(k: int, beat: list[bool]) -> str:
    n, later = len(beat), sum(beat[k + 1 :])
    if k == n:
        return f"{'Both' if n == 2 else f'All {n:,}'} steps beat chance." if n > 1 else "The only step beats chance."
    if not any(beat):
        return "No step beats chance: a random decision would do as well."
    before = f"{k:,} of {n:,} steps {'beats' if k == 1 else 'beat'} chance; " if k else ""
    where = f"from step {k + 1:,} on" if not later and k < n - 1 else f"{'in' if k else 'In'} step {k + 1:,}"
    after = f" {counted(later, 'later step')} {'beats' if later == 1 else 'beat'} chance." if later else ""
    if later and k:
        before = f"The first {before}" if k > 1 else f"The first of {n:,} steps beats chance; "
    return f"{before}{where}, a random decision would do as well.{after}"


def per_combination(found: Reduct) -> str:
    """Rows for each combination of the chosen values; empty if none are chosen, and for results of earlier versions."""
    if not found.n_combinations or not found.attributes:
        return ""
    rows, each = found.n_objects, found.n_combinations  # integers: a file may hold any size
    return f"{rows / each:.{int(rows != each)}f}" if rows < 10 * each else f"{rows // each:,}"


def chosen(found: Reduct) -> list[dict[str, Any]]:
    """The columns of the reduct: why each is there, and its gain: the loss without it (core), or when it was added.

    Columns count as core only if the search started with the core.

    >>> import plar
    >>> r = plar.reduce({"a": [0, 0, 1], "b": [0, 1, 1], "d": [0, 1, 1]}, "d", measure="PR", include=["a"])
    >>> [(row["name"], row["part"], row["written"]) for row in chosen(r)]
    [('b', 'core', '0.6667'), ('a', 'asked for', '–')]
    """
    steps = {step.attribute: f"step {i}" for i, step in enumerate(found.steps, 1)}
    asked = found.settings.get("include") or ()
    steps |= {name: "chosen" for name in found.attributes if found.bounds and name not in asked}
    core = {} if found.settings.get("start") == "empty" else found.core_significances
    parts = {**steps, **dict.fromkeys(core, "core")}
    gains = {**{step.attribute: step.significance for step in found.steps}, **core}
    p_values = dict(zip(steps, p_values_of(found), strict=False))
    known = {name: gains[name] for name in found.attributes if name in gains}
    written = dict(zip(known, aligned(list(known.values())), strict=True))
    taken = set(found.attributes)
    groups = [(name, group) for group in found.equivalent or () for name in group if name in taken]
    same = {name: [other for other in group if other != name] for name, group in groups}
    redundant = set(found.certificate.redundant)
    return [
        {
            "name": name,
            "part": parts.get(name, "asked for"),
            "removable": name in redundant,
            "significance": known.get(name),
            "written": written.get(name, "–"),
            "bar": bar(known.get(name), max(known.values(), default=0.0)),
            "p": p_values.get(name, ("–", False)),
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


def intervals(cuts: Sequence[float]) -> list[str]:
    """Write the bins between cut points, with enough digits to distinguish these.

    >>> intervals([1.5, 2.0]), intervals([1000000.25, 1000000.5]), intervals([])
    (['≤ 1.5', '1.5 to 2', '> 2'], ['≤ 1000000.2', '1000000.2 to 1000000.5', '> 1000000.5'], ['all values'])
    """
    digits = next((k for k in range(6, 17) if len({f"{cut:.{k}g}" for cut in cuts}) == len(cuts)), 17)
    marks = [f"{cut:.{digits}g}".replace("-", "−") for cut in cuts]
    between = [f"{low} to {high}" for low, high in pairwise(marks)]
    return [f"≤ {marks[0]}", *between, f"> {marks[-1]}"] if marks else ["all values"]


#: a word of a name with the separators after it; longer words are cut
_WORD = re.compile(r"[^\s_/.\-]{1,18}[\s_/.\-]{0,18}|[\s_/.\-]{1,18}")


def words_of(name: str) -> list[str]:
    """Cut a name where a line may break: after a separator, else after 18 characters.

    >>> words_of("mean_radius/x y")
    ['mean_', 'radius/', 'x ', 'y']
    """
    return _WORD.findall(name)
