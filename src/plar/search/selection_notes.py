"""What `plar.select` did without being asked for, in a line each; they are part of its result."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from plar.engines.base import GranuleSet
from plar.errors import printable
from plar.input.tables import DecisionTable
from plar.options import DECILES
from plar.results.report.selection_text import listed

#: a column that says this share of all there is to say may be the target in disguise
SHARE_OF_A_LEAK = 0.99
#: what bins of `auto` are called
_AUTO_BINS = {"auto": "quartile", DECILES: "decile"}
#: columns that a note names before it says how many more there are
_SHOWN = 4
#: amounts with marks between thousands, or with a unit: 1,234.56 or 1.234,56; $5, 5 €, 12.3%
_AMOUNT = re.compile(
    r"[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?|[-+]?[1-9]\d{0,2}(\.\d{3})+,\d+"
    r"|[-+]?[$€£¥] ?[\d.,]*\d|[-+]?\d[\d.,]* ?[$€£¥%]"
)
_MONTH = (
    "(jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?"
    "|aug(ust)?|sept?(ember)?|oct(ober)?|nov(ember)?|dec(ember)?)"
)
#: dates: 15.01.2023, 1/15/23; 05-Jan-2023; Jan 5, 2023; all with or without a time
_DATE = re.compile(
    rf"(\d{{1,2}}([./-])\d{{1,2}}\2\d{{4}}|\d{{1,2}}/\d{{1,2}}/\d{{2}}|\d{{1,2}}[ -]{_MONTH}[., -]+(\d{{4}}|\d{{2}})"
    rf"|{_MONTH}\.? \d{{1,2}},? \d{{4}})( \d{{1,2}}:\d{{2}}(:\d{{2}})?)?",
    re.IGNORECASE,
)


def notes_on(
    granules: GranuleSet,
    table: DecisionTable,
    left_out: Mapping[str, str],
    alone: Mapping[str, float],
    selected: Sequence[str],
) -> list[str]:
    """The notes on a search: rows and columns that were left out, columns that were cut, and what may be wrong.

    `left_out` says why columns are no candidates, and `alone` what each candidate says by itself.
    """
    n_values_of = dict(zip(granules.conditions, granules.cardinalities, strict=True))
    considered = [name for name in granules.conditions if left_out.get(name) != "excluded"]
    index_like = [name for name in granules.index_like if name in left_out and left_out[name] != "excluded"]
    cut_now = granules.cuts.keys() - table.cut_before
    cut = [name for name in considered if name in cut_now and name not in left_out]
    notes = [
        on_rows(granules.n_without_decision),
        on_dropped(n_dropped(granules, table)),
        on_index(index_like, "keep"),
        on_cuts(cut, table.settings()["bins"]),
        on_unread([name for name in unread(granules) if left_out.get(name) != "excluded"]),
        *(_on_rare_values(name, n_values_of[name], granules.n_objects) for name in selected),
        _on_leaks([name for name, share in alone.items() if share >= SHARE_OF_A_LEAK]),
    ]
    return [note for note in notes if note]


def n_dropped(granules: GranuleSet, table: DecisionTable) -> int:
    """Rows that were dropped for a missing value alone; not known where rows have weights."""
    if table.roles.missing != "drop" or table.weights is not None or table.is_granulated:
        return 0
    return granules.n_rows - granules.n_objects - granules.n_without_decision


def on_dropped(n: int) -> str:
    """Rows that were left out for a missing value."""
    if n <= 0:
        return ""
    what = "1 row with a missing value was" if n == 1 else f"{n:,} rows with missing values were"
    return f"{what} left out (option missing)."


def on_rows(n: int) -> str:
    """Rows that were left out because they have no target."""
    if not n:
        return ""
    return "1 row without a target was left out." if n == 1 else f"{n:,} rows without a target were left out."


def on_index(names: Sequence[str], option: str) -> str:
    """Columns that were left out because they identify rows; the option takes them all the same."""
    if not names:
        return ""
    what = "1 column that only numbers or names the rows was"
    if len(names) > 1:
        what = f"{len(names):,} columns that only number or name the rows were"
    return f"{what} left out: {listed(names, _SHOWN)} (option {option})."


def on_cuts(names: Sequence[str], bins: object) -> str:
    """Columns that were cut by `auto`."""
    kind = _AUTO_BINS.get(str(bins))
    if not names or kind is None:
        return ""
    what = "1 column of numbers or dates was"
    if len(names) > 1:
        what = f"{len(names):,} columns of numbers or dates were"
    return f"{what} compared in {kind} bins: {listed(names, _SHOWN)} (option bins)."


def on_unread(names: Sequence[str]) -> str:
    """Columns that `unread` finds."""
    if not names:
        return ""
    look = "looks" if len(names) == 1 else "look"
    were = "was" if len(names) == 1 else "were"
    return (
        f"{listed(names, _SHOWN)} {look} like numbers or dates in a format that plar does not recognize, and {were} "
        "compared as text. It reads 1234.56 and 2023-01-15."
    )


def unread(granules: GranuleSet) -> Iterator[str]:
    """The uncut columns whose values people would read as amounts, or as dates, though plar reads them as text.

    Dictionaries that only a cluster has are not looked at.
    """
    for name, values in zip(granules.conditions, granules.dictionaries, strict=True):
        if values is None or name in granules.cuts:
            continue
        texts = [value for value in values if value is not None and value != ""]
        if len(texts) > 1 and (_all_match(_AMOUNT, texts) or _all_match(_DATE, texts)):
            yield name


def _all_match(pattern: re.Pattern[str], values: Sequence[object]) -> bool:
    return all(isinstance(value, str) and pattern.fullmatch(value.strip()) for value in values)


def _on_rare_values(name: str, n_values: int, n_rows: int) -> str:
    if 2 * n_values <= n_rows:
        return ""
    return (
        f"{printable(name)} has {n_values:,} different values in {n_rows:,} rows: it only helps with values seen "
        "before (option exclude)."
    )


def _on_leaks(names: Sequence[str]) -> str:
    if not names:
        return ""
    if len(names) == 1:
        return f"{listed(names)} alone determines the target almost completely: does it leak it? (option exclude)"
    return f"{listed(names, _SHOWN)} each determine the target almost completely: do they leak it? (option exclude)"
