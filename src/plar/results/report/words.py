"""Names, numbers and sentences for people: what the report, the picture, the terminal and a notebook have in common."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from plar.errors import printable
from plar.options import DEFAULT_ALPHA

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
    if share > 99.9:
        return ">99.9\xa0%"
    if share < 0.1:
        return "<0.1\xa0%"
    return f"{share:.1f}\xa0%"


def counted(n: int, one: str, many: str | None = None) -> str:
    """Count things in words.

    >>> counted(1, "column"), counted(5201, "column"), counted(2, "class", "classes")
    ('1 column', '5,201 columns', '2 classes')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def bar(value: float | None, largest: float) -> str:
    """The width of a bar."""
    return f"{100 * value / largest:.1f}%" if value and largest > 0 and value > 0 else "0.0%"


def p_words(p: float, level: float = DEFAULT_ALPHA) -> str:
    """Write a p-value with two digits, or as many as needed to show on which side of the level it is.

    >>> p_words(1e-9), p_words(0.0018), p_words(0.0402), p_words(0.0501), p_words(1.0)
    ('<0.001', '0.0018', '0.04', '0.0501', '1')
    """
    least = min(0.001, level)
    shown = (f"{p:.{digits}g}" for digits in (2, 4, 17))
    return f"<{least:g}" if p < least else next(text for text in shown if (float(text) > level) == (p > level))


def level_of(reduct: Reduct) -> float:
    """The level that p-values are compared to."""
    return reduct.settings.get("alpha") or DEFAULT_ALPHA


def p_values_of(reduct: Reduct) -> list[tuple[str, bool]]:
    """The p-value of each step in words, and whether chance does as well; no words in results of earlier versions."""
    level = level_of(reduct)
    p_values = [step.p_value for step in reduct.steps if step.p_value is not None]
    if len(p_values) < len(reduct.steps):
        return [("", False)] * len(reduct.steps)
    return [(p_words(p, level), p > level) for p in p_values]


def chance_words(reduct: Reduct) -> list[str]:
    """Say which steps beat chance, what was not tested, and how thin the table is; nothing for earlier versions.

    >>> import plar
    >>> for words in chance_words(plar.reduce({"a": [0, 0, 1], "b": [0, 1, 1], "d": [0, 1, 1]}, "d", start="empty")):
    ...     print(words)
    No step beats chance: a random decision would do as well.
    There are 1.5 rows for each combination of the chosen values.
    """
    if reduct.n_combinations is None or reduct.n_beyond_chance is None:
        return []
    sentences = []
    if reduct.steps:
        beat = [not by_chance for _, by_chance in p_values_of(reduct)]
        sentences.append(_steps_and_chance(reduct.n_beyond_chance, beat))
    if reduct.rejected:
        sentences.append(_rejected_words(reduct))
    untested = _untested(reduct)
    if untested and reduct.bounds is None:
        sentences.append(f"Taken untested: {' and '.join(untested)}.")
    if reduct.cuts and (reduct.steps or reduct.rejected):
        sentences.append(_binned_words(reduct))
    rows = per_combination(reduct)
    if rows:
        are = "is 1 row" if rows == "1" else f"are {rows} rows"
        sentences.append(f"There {are} for each combination of the chosen values.")
    return sentences


def _rejected_words(reduct: Reduct) -> str:
    n = len(reduct.rejected)
    which = " left" if reduct.attributes else ""
    level = f"{level_of(reduct):g}"
    if n == 1:
        return f"The only column{which} does not beat chance at {level}."
    none = "Neither" if n == 2 else "None"
    return f"{none} of the {n:,} columns{which} beats chance at {level}."


def _untested(reduct: Reduct) -> list[str]:
    """The columns that were not tested, counted: the core, and those asked for."""
    parts = [row["part"] for row in chosen(reduct)]
    n_core = parts.count("core")
    n_asked_for = parts.count("asked for")
    untested = []
    if n_core:
        untested.append(counted(n_core, "core column"))
    if n_core and n_asked_for:
        untested.append(f"{n_asked_for:,} asked for")
    elif n_asked_for:
        untested.append(f"{counted(n_asked_for, 'column')} asked for")
    return untested


def _binned_words(reduct: Reduct) -> str:
    bins = reduct.settings.get("bins")
    rules = bins.values() if isinstance(bins, Mapping) else [bins]
    if any("mdlp" in str(rule) for rule in rules):  # p-values do not count that the cuts were chosen by the decision
        return (
            "What was tested is the binned table, whose cut points by mdlp depend on the decision: "
            "p-values are too small."
        )
    return "What was tested is the binned table."


def bounds_words(reduct: Reduct) -> str:
    """Say what is proven about the size or cost of all reducts; empty unless the smallest was searched for.

    >>> import plar
    >>> bounds_words(plar.reduce({"a": [0, 0, 1], "b": [0, 1, 1], "d": [0, 1, 1]}, "d", search="smallest"))
    'Proven: no reduct has fewer columns.'
    """
    if reduct.bounds is None:
        return ""
    least, most = reduct.bounds
    asked = [name for name in ("include", "exclude") if reduct.settings.get(name)]
    none = f"no reduct{' with these limits' if asked else ''}"
    if reduct.settings.get("costs"):
        if least == most:
            return f"Cost {most:,}. Proven: {none} costs less."
        return f"Cost {most:,}, the least found. Proven: {none} costs less than {least:,}."
    if least == most:
        return f"Proven: {none} has fewer columns."
    return f"The fewest columns found. Proven: {none} has fewer than {least:,}."


def nothing_words(reduct: Reduct) -> str:
    """Say why nothing is chosen though nothing is lost."""
    decision = ", ".join(map(visible, reduct.decision))
    if reduct.n_decisions == 1:
        same = "falls into one class" if any(name in reduct.cuts for name in reduct.decision) else "is the same"
        return f"{decision} {same} in every row: there is nothing to predict."
    uncut = sum(name in reduct.cuts and not reduct.cuts[name] for name in reduct.conditions)
    if uncut and uncut == len(reduct.conditions):
        return f"The bins found no cut in any column, so none of them says anything about {decision}."
    no_cut = f"; the bins found no cut in {counted(uncut, 'column')}" if uncut else ""
    return f"No column is needed: none says anything about {decision}{no_cut}."


def _steps_and_chance(k: int, beat: list[bool]) -> str:
    """Say which steps beat chance: the first k do, step k + 1 does not, and `beat` says it of all."""
    n = len(beat)
    later = sum(beat[k + 1 :])
    as_well = "a random decision would do as well"
    first_k = f"{k:,} of {n:,} steps {_beat(k)} chance"
    later_ones = f"{counted(later, 'later step')} {_beat(later)} chance."
    if k == n:
        return _all_beat_chance(n)
    if not any(beat):
        return f"No step beats chance: {as_well}."
    if not k:
        return f"In step 1, {as_well}. {later_ones}"
    if later and k == 1:
        return f"The first of {n:,} steps beats chance; in step 2, {as_well}. {later_ones}"
    if later:
        return f"The first {first_k}; in step {k + 1:,}, {as_well}. {later_ones}"
    where = f"in step {n:,}" if k == n - 1 else f"from step {k + 1:,} on"
    return f"{first_k}; {where}, {as_well}."


def _all_beat_chance(n: int) -> str:
    if n == 1:
        return "The only step beats chance."
    if n == 2:
        return "Both steps beat chance."
    return f"All {n:,} steps beat chance."


def _beat(n: int) -> str:
    return "beats" if n == 1 else "beat"


def per_combination(reduct: Reduct) -> str:
    """Rows for each combination of the chosen values; empty if none are chosen, and for results of earlier versions."""
    if not reduct.n_combinations or not reduct.attributes:
        return ""
    rows, each = reduct.n_objects, reduct.n_combinations  # integers: a file may hold any size
    return f"{rows / each:.{int(rows != each)}f}" if rows < 10 * each else f"{rows // each:,}"


def chosen(reduct: Reduct) -> list[dict[str, Any]]:
    """The columns of the reduct: why each is there, and its gain: the loss without it (core), or when it was added.

    Columns count as core only if the search started with the core.

    >>> import plar
    >>> r = plar.reduce({"a": [0, 0, 1], "b": [0, 1, 1], "d": [0, 1, 1]}, "d", measure="PR", include=["a"])
    >>> [(row["name"], row["part"], row["written"]) for row in chosen(r)]
    [('b', 'core', '0.6667'), ('a', 'asked for', '–')]
    """
    steps = {step.attribute: f"step {i}" for i, step in enumerate(reduct.steps, 1)}
    asked = reduct.settings.get("include") or ()
    steps |= {name: "chosen" for name in reduct.attributes if reduct.bounds and name not in asked}
    core = {} if reduct.settings.get("start") == "empty" else reduct.core_significances
    parts = {**steps, **dict.fromkeys(core, "core")}
    gains = {**{step.attribute: step.significance for step in reduct.steps}, **core}
    p_values = dict(zip(steps, p_values_of(reduct), strict=False))
    gains = {name: gains[name] for name in reduct.attributes if name in gains}
    written = dict(zip(gains, aligned(list(gains.values())), strict=True))
    taken = set(reduct.attributes)
    groups = [(name, group) for group in reduct.equivalent or () for name in group if name in taken]
    same = {name: [other for other in group if other != name] for name, group in groups}
    redundant = set(reduct.certificate.redundant)
    return [
        {
            "name": name,
            "part": parts.get(name, "asked for"),
            "removable": name in redundant,
            "significance": gains.get(name),
            "written": written.get(name, "–"),
            "bar": bar(gains.get(name), max(gains.values(), default=0.0)),
            "p": p_values.get(name, ("–", False)),
            "values": reduct.cardinalities.get(name),
            "missing": reduct.missing.get(name, 0),
            "intervals": intervals(reduct.cuts[name]) if name in reduct.cuts else None,
            "same": same.get(name, []),
        }
        for name in reduct.attributes
    ]


def thetas(reduct: Reduct) -> list[float]:
    """Θ(D|R) of the core and what was asked for, then after every step."""
    start = reduct.steps[0].theta + reduct.steps[0].significance if reduct.steps else reduct.theta
    return [start, *(step.theta for step in reduct.steps)]


def start_words(reduct: Reduct) -> str:
    """Say what step 0 of the curve is."""
    parts = {row["part"] for row in chosen(reduct)}
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
