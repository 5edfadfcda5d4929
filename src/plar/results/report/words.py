"""Names, numbers and sentences for people: what the report, the picture, the terminal and a notebook have in common.

What only the report says stands in its templates, `*.html.j2` beside this file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from plar.coding.times import TimeCuts, spelled_seconds
from plar.errors import printable
from plar.options import DEFAULT_ALPHA

if TYPE_CHECKING:
    from plar.results.reduct import Reduct

#: characters of a name that are shown
LONGEST = 48
#: columns that a sentence about an update names
MOST_CHANGES = 10
#: digits of cut points, or as many as distinguish them
_LEAST_DIGITS = 6
_MOST_DIGITS = 17
#: cut points between these are written without an exponent
_SMALLEST_PLAIN = 1e-4
_LARGEST_PLAIN = 1e15

MEASURES = {
    "PR": "positive region, minus the share of rows whose decision is certain",
    "SCE": "Shannon's conditional entropy, in nats",
    "LCE": "Liang's conditional entropy",
    "CCE": "combination conditional entropy",
}


class PValue(NamedTuple):
    """The p-value of a step in words, and whether the step is no better than chance."""

    text: str
    by_chance: bool


@dataclass(frozen=True, slots=True)
class ChosenColumn:
    """A column of the reduct, as tables show it."""

    name: str
    #: why it is there: "core", "step 3", "asked for", "kept" in an update, or "chosen" with others as a whole
    part: str
    removable: bool
    gain: float | None
    gain_text: str
    bar_width: str
    p_value: PValue
    n_values: int | None
    n_missing: int
    #: the bins, if it was cut
    intervals: list[str]
    #: columns with the same information
    same: list[str]


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
    for_largest = 3 - math.floor(math.log10(max(sizes)))
    for_smallest = 1 - math.floor(math.log10(min(sizes)))
    decimals = max(0, for_largest, min(for_largest + 2, for_smallest))
    if min(sizes) < 0.5 * 10.0**-decimals:
        decimals = max(0, for_largest)
    return [_fixed(value, decimals) for value in values]


def _fixed(value: float, decimals: int) -> str:
    if value == 0:
        return "0"
    if abs(value) < 0.5 * 10.0**-decimals:
        smallest_shown = f"{10.0**-decimals:.{decimals}f}"
        return f"<{smallest_shown}" if value > 0 else f">−{smallest_shown}"
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


def counted(n: int, singular: str, plural: str | None = None) -> str:
    """Count things in words.

    >>> counted(1, "column"), counted(5201, "column"), counted(2, "class", "classes")
    ('1 column', '5,201 columns', '2 classes')
    """
    if n == 1:
        return f"1 {singular}"
    return f"{n:,} {plural or singular + 's'}"


def bar_width(value: float | None, largest: float) -> str:
    """The width of a bar, as a share of that of the largest value."""
    if value is None or value <= 0 or largest <= 0:
        return "0.0%"
    return f"{100 * value / largest:.1f}%"


def p_words(p: float, level: float = DEFAULT_ALPHA) -> str:
    """Write a p-value with two digits, or as many as needed to show on which side of the level it is.

    >>> p_words(1e-9), p_words(0.0018), p_words(0.0402), p_words(0.0501), p_words(1.0)
    ('<0.001', '0.0018', '0.04', '0.0501', '1')
    """
    smallest_shown = min(0.001, level)
    if p < smallest_shown:
        return f"<{smallest_shown:g}"
    for digits in (2, 4):
        text = f"{p:.{digits}g}"
        if (float(text) > level) == (p > level):
            return text
    return f"{p:.17g}"


def level_of(reduct: Reduct) -> float:
    """The level that p-values are compared to."""
    return reduct.settings.get("alpha") or DEFAULT_ALPHA


def p_values_of(reduct: Reduct) -> list[PValue]:
    """The p-value of each step; without a text in results of earlier versions."""
    level = level_of(reduct)
    p_values = [step.p_value for step in reduct.steps if step.p_value is not None]
    if len(p_values) < len(reduct.steps):
        return [PValue("", False)] * len(reduct.steps)
    return [PValue(p_words(p, level), p > level) for p in p_values]


def chance_words(reduct: Reduct) -> list[str]:
    """Say which steps beat chance, what was not tested, and how thin the table is; nothing for earlier versions.

    >>> import plar
    >>> for words in chance_words(plar.reduce({"a": [0, 0, 1], "b": [0, 1, 1], "d": [0, 1, 1]}, "d", start="empty")):
    ...     print(words)
    No step beats chance: none is better than with a shuffled target.
    There are 1.5 rows for each combination of the chosen values.
    """
    if reduct.n_combinations is None or reduct.n_beyond_chance is None:
        return []
    sentences = []
    if reduct.steps:
        beats_chance = [not p_value.by_chance for p_value in p_values_of(reduct)]
        sentences.append(_steps_and_chance(reduct.n_beyond_chance, beats_chance))
    if reduct.rejected:
        sentences.append(_rejected_words(reduct))
    if reduct.bounds is None:
        sentences += _untested_words(reduct)
    if reduct.cuts and (reduct.steps or reduct.rejected):
        sentences.append(_binned_words(reduct))
    n_rows = per_combination(reduct)
    if n_rows == "1":
        sentences.append("There is 1 row for each combination of the chosen values.")
    elif n_rows:
        sentences.append(f"There are {n_rows} rows for each combination of the chosen values.")
    return sentences


def _rejected_words(reduct: Reduct) -> str:
    n = len(reduct.rejected)
    which = " left" if reduct.attributes else ""
    level = f"{level_of(reduct):g}"
    if n == 1:
        return f"The only column{which} does not beat chance at {level}."
    none = "Neither" if n == 2 else "None"
    return f"{none} of the {n:,} columns{which} beats chance at {level}."


def _untested_words(reduct: Reduct) -> list[str]:
    """Say how many columns were included without a test: the core, and those asked for; nothing if there are none."""
    parts = [column.part for column in chosen(reduct)]
    n_core = parts.count("core")
    groups = [counted(n_core, "core column")] if n_core else []
    n_untested = n_core
    for why in ("kept", "asked for"):
        n = parts.count(why)
        if n:
            groups.append(f"{n:,} {why}" if groups else f"{counted(n, 'column')} {why}")
        n_untested += n
    if not groups:
        return []
    verb = "was" if n_untested == 1 else "were"
    *first, last = groups
    listed = f"{', '.join(first)} and {last}" if first else last
    return [f"{listed} {verb} included without a test."]


def _binned_words(reduct: Reduct) -> str:
    bins = reduct.settings.get("bins")
    rules = bins.values() if isinstance(bins, Mapping) else [bins]
    if any("mdlp" in str(rule) for rule in rules):
        return "The p-values are for the binned columns, and too small, since mdlp chose the cut points by the target."
    return "The p-values are for the binned columns."


def change_words(reduct: Reduct) -> str:
    """Say what an update changed; empty if this is no update.

    >>> import plar
    >>> old = plar.reduce({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "d": [0, 0, 1, 1]}, "d")
    >>> change_words(old.update({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "d": [0, 1, 1, 1]}))
    'An update of 1 column: added b.'
    """
    if reduct.change is None:
        return ""
    changes = []
    for verb, names in (("added", reduct.change.added), ("dropped", reduct.change.dropped)):
        if names:
            shown = ", ".join(map(shortened, names[:MOST_CHANGES]))
            changes.append(f"{verb} {shown}{' …' if len(names) > MOST_CHANGES else ''}")
    what = " and ".join(changes) if changes else "nothing changed"
    return f"An update of {counted(len(reduct.change.before), 'column')}: {what}."


def bounds_words(reduct: Reduct) -> str:
    """Say what is proven about the size or cost of all reducts; empty unless the smallest was searched for.

    >>> import plar
    >>> bounds_words(plar.reduce({"a": [0, 0, 1], "b": [0, 1, 1], "d": [0, 1, 1]}, "d", search="smallest"))
    'Proven: no reduct has fewer columns.'
    """
    if reduct.bounds is None:
        return ""
    least, most = reduct.bounds
    has_limits = reduct.settings.get("include") or reduct.settings.get("exclude")
    none = "no reduct with these limits" if has_limits else "no reduct"
    if reduct.settings.get("costs"):
        if least == most:
            return f"Cost {most:,}. Proven: {none} costs less."
        return f"Cost {most:,}, the least found. Proven: {none} costs less than {least:,}."
    if least == most:
        return f"Proven: {none} has fewer columns."
    return f"The fewest columns found. Proven: {none} has fewer than {least:,}."


def core_left_out(reduct: Reduct) -> list[str]:
    """The core columns that are not chosen, as with `alpha` or a limit."""
    chosen_names = set(reduct.attributes)
    return [name for name in reduct.core if name not in chosen_names]


def core_left_out_words(reduct: Reduct) -> str:
    """Say how much of the core is not chosen, and what that means; empty if all of it is chosen.

    >>> import plar
    >>> table = {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "d": ["x", "y", "z", "z"]}
    >>> core_left_out_words(plar.reduce(table, "d", max_attributes=1))
    '1 of 2 core columns is left out: it says something about d that all other columns together do not, however little.'
    """
    n_core = len(reduct.core)
    n_left_out = len(core_left_out(reduct))
    if not n_left_out:
        return ""
    if n_core == 1:
        which = "The only core column is"
    elif n_left_out == n_core:
        which = "Both core columns are" if n_core == 2 else f"All {n_core:,} core columns are"
    else:
        which = f"{n_left_out:,} of {n_core:,} core columns {'is' if n_left_out == 1 else 'are'}"
    each = "it" if n_left_out == 1 else "each"
    decision = ", ".join(map(visible, reduct.decision))
    return (
        f"{which} left out: {each} says something about {decision} that all other columns together do not, "
        "however little."
    )


def nothing_words(reduct: Reduct) -> str:
    """Say why nothing is chosen though nothing is lost."""
    decision = ", ".join(map(visible, reduct.decision))
    if reduct.n_decisions == 1:
        is_binned = any(name in reduct.cuts for name in reduct.decision)
        same = "falls into one class" if is_binned else "is the same"
        return f"{decision} {same} in every row: there is nothing to predict."
    n_uncut = sum(name in reduct.cuts and not reduct.cuts[name] for name in reduct.conditions)
    if n_uncut and n_uncut == len(reduct.conditions):
        return f"The bins found no cut in any column, so none of them says anything about {decision}."
    no_cut = f"; the bins found no cut in {counted(n_uncut, 'column')}" if n_uncut else ""
    return f"No column is needed: none says anything about {decision}{no_cut}."


def _steps_and_chance(k: int, beats_chance: list[bool]) -> str:
    """Say which steps beat chance: the first k do, step k + 1 does not, and `beats_chance` says it of all."""
    n = len(beats_chance)
    n_later = sum(beats_chance[k + 1 :])
    no_better = "no better than with a shuffled target"
    some_later = f"{counted(n_later, 'later step')} {_beat(n_later)} chance"
    if k == n:
        return _all_beat_chance(n)
    if k == 0 and n_later == 0:
        return "No step beats chance: none is better than with a shuffled target."
    if k == 0:
        return f"Step 1 is {no_better}. {some_later}."
    if n_later and k == 1:
        return f"The first of {n:,} steps beats chance; step 2 is {no_better}. {some_later}."
    if n_later:
        return f"The first {k:,} of {n:,} steps beat chance; step {k + 1:,} is {no_better}. {some_later}."
    if k == n - 1:
        return f"{k:,} of {n:,} steps {_beat(k)} chance; step {n:,} is {no_better}."
    return f"{k:,} of {n:,} steps {_beat(k)} chance; from step {k + 1:,} on, they are {no_better}."


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
    # integers: a file may hold any size
    if reduct.n_objects >= 10 * reduct.n_combinations:
        return f"{reduct.n_objects // reduct.n_combinations:,}"
    if reduct.n_objects == reduct.n_combinations:
        return "1"
    return f"{reduct.n_objects / reduct.n_combinations:.1f}"


def chosen(reduct: Reduct) -> list[ChosenColumn]:
    """The columns of the reduct: why each is there, and its gain: the loss without it (core), or when it was added.

    Columns count as core only if the search started with the core.

    >>> import plar
    >>> r = plar.reduce({"a": [0, 0, 1], "b": [0, 1, 1], "d": [0, 1, 1]}, "d", measure="PR", include=["a"])
    >>> [(column.name, column.part, column.gain_text) for column in chosen(r)]
    [('b', 'core', '0.6667'), ('a', 'asked for', '–')]
    """
    parts = _parts(reduct)
    gains = _gains(reduct)
    gain_texts = dict(zip(gains, aligned(list(gains.values())), strict=True))
    largest = max(gains.values(), default=0.0)
    p_values = {step.attribute: p for step, p in zip(reduct.steps, p_values_of(reduct), strict=True)}
    equal_columns = _equal_columns(reduct)
    redundant = set(reduct.certificate.redundant)
    return [
        ChosenColumn(
            name=name,
            part=parts.get(name, "asked for"),
            removable=name in redundant,
            gain=gains.get(name),
            gain_text=gain_texts.get(name, "–"),
            bar_width=bar_width(gains.get(name), largest),
            p_value=p_values.get(name, PValue("–", False)),
            n_values=reduct.cardinalities.get(name),
            n_missing=reduct.missing.get(name, 0),
            intervals=intervals(reduct.cuts[name]) if name in reduct.cuts else [],
            same=equal_columns.get(name, []),
        )
        for name in reduct.attributes
    ]


def _parts(reduct: Reduct) -> dict[str, str]:
    """Why the columns were chosen, except those that were asked for."""
    parts = {step.attribute: f"step {i}" for i, step in enumerate(reduct.steps, 1)}
    include = reduct.settings.get("include") or ()
    if reduct.change is not None:
        parts |= {name: "kept" for name in reduct.change.before if name not in include}
    if reduct.bounds is not None:
        parts |= {name: "chosen" for name in reduct.attributes if name not in include}
    return {**parts, **dict.fromkeys(_core_gains(reduct), "core")}


def _gains(reduct: Reduct) -> dict[str, float]:
    """The gains of the chosen columns that have one."""
    gains = {step.attribute: step.significance for step in reduct.steps}
    gains |= _core_gains(reduct)
    return {name: gains[name] for name in reduct.attributes if name in gains}


def _core_gains(reduct: Reduct) -> Mapping[str, float]:
    """The gains of the core, if the search started with it."""
    return {} if reduct.settings.get("start") == "empty" else reduct.core_significances


def _equal_columns(reduct: Reduct) -> dict[str, list[str]]:
    """The columns that each chosen one is equal to."""
    chosen_names = set(reduct.attributes)
    equal_columns = {}
    for group in reduct.equivalent or ():
        for name in group:
            if name in chosen_names:
                equal_columns[name] = [other for other in group if other != name]
    return equal_columns


def thetas(reduct: Reduct) -> list[float]:
    """Θ(D|R) of the core and what was asked for, then after every step."""
    start = reduct.steps[0].theta + reduct.steps[0].significance if reduct.steps else reduct.theta
    return [start, *(step.theta for step in reduct.steps)]


def start_words(reduct: Reduct) -> str:
    """Say what step 0 of the curve is."""
    parts = {column.part for column in chosen(reduct)}
    if reduct.change is not None:
        return "step (0: core and old columns)"
    if {"core", "asked for"} <= parts:
        return "step (0: core and what was asked for)"
    if "core" in parts:
        return "step (0: core)"
    if "asked for" in parts:
        return "step (0: what was asked for)"
    return "step (0: no column yet)"


def intervals(cuts: Sequence[float]) -> list[str]:
    """Write the bins between cut points, with enough digits to distinguish these.

    >>> intervals([1.5, 2.0]), intervals([1000000.25, 1000000.5]), intervals([])
    (['≤ 1.5', '1.5 to 2', '> 2'], ['≤ 1000000.2', '1000000.2 to 1000000.5', '> 1000000.5'], ['all values'])
    """
    if not cuts:
        return ["all values"]
    marks = [mark.replace("-", "−") for mark in _marks(cuts)]
    between = [f"{low} to {high}" for low, high in pairwise(marks)]
    return [f"≤ {marks[0]}", *between, f"> {marks[-1]}"]


def half_open(cuts: Sequence[float]) -> list[str]:
    """Write the same bins as a program may read them.

    >>> half_open([-1.5, 2.0, 7.25]), half_open([])
    (['≤ -1.5', '(-1.5, 2]', '(2, 7.25]', '> 7.25'], ['all values'])
    """
    if not cuts:
        return ["all values"]
    marks = _marks(cuts)
    between = [f"({low}, {high}]" for low, high in pairwise(marks)]
    return [f"≤ {marks[0]}", *between, f"> {marks[-1]}"]


def _marks(cuts: Sequence[float]) -> list[str]:
    """Cut points, with as many digits as distinguish them; those of times as times."""
    if isinstance(cuts, TimeCuts):
        return [spelled_seconds(cut, cuts.kind) or f"{cut:g}" for cut in cuts]
    digits = cut_digits(cuts)
    return [cut_words(cut, digits) for cut in cuts]


def cut_digits(cuts: Collection[float]) -> int:
    """How many digits distinguish cut points, at least six."""
    for digits in range(_LEAST_DIGITS, _MOST_DIGITS):
        if len({f"{cut:.{digits}g}" for cut in cuts}) == len(cuts):
            return digits
    return _MOST_DIGITS


def cut_words(cut: float, digits: int) -> str:
    """Write a cut point with so many digits, or more where it would need an exponent.

    >>> cut_words(1014292.46, 6), cut_words(0.00012345, 6), cut_words(1e-9, 6), cut_words(-7.0, 6)
    ('1014292', '0.00012345', '1e-09', '-7')
    """
    text = f"{cut:.{digits}g}"
    if "e" in text and _SMALLEST_PLAIN <= abs(cut) < _LARGEST_PLAIN:
        return f"{cut:.0f}"
    return text


#: a word of a name with the separators after it; longer words are cut
_WORD = re.compile(r"[^\s_/.\-]{1,18}[\s_/.\-]{0,18}|[\s_/.\-]{1,18}")


def words_of(name: str) -> list[str]:
    """Cut a name where a line may break: after a separator, else after 18 characters.

    >>> words_of("mean_radius/x y")
    ['mean_', 'radius/', 'x ', 'y']
    """
    return _WORD.findall(name)
