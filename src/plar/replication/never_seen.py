"""What new rows have that no old row has: values, combinations of values, decisions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from plar.bins import are_numbers
from plar.coding.numerals import exact_number
from plar.coding.shown_values import MISSING, shown_value, value_order
from plar.coding.times import kind_of_times
from plar.granules.granules import Granules
from plar.grouping.partition import distinct
from plar.results.check import NeverSeen
from plar.results.report.words import half_open
from plar.results.selection import Selection

#: how many examples a result has
MAX_EXAMPLES: Final = 5

#: what values of two tables are compared by: text; None is missing
Key: TypeAlias = str | None


class OldRows(NamedTuple):
    """What is known of the rows that a result is about."""

    #: the values of columns, as far as all of them are known
    values: Mapping[str, Sequence[Any]]
    #: for each decision column its value by decision
    decisions: Sequence[Sequence[Any]] | None
    #: the rows over the columns of the result
    granules: Granules | None


def from_granules(granules: Granules) -> OldRows:
    """All that the old rows have, in their columns."""
    values = dict(zip(granules.conditions, granules.dictionaries, strict=True))
    return OldRows(values, granules.decision_values, granules)


def from_selection(selection: Selection) -> OldRows:
    """What a selection says of the values of its columns, where it has a line for each."""
    values: dict[str, Sequence[Any]] = {}
    for name, by_value in selection.by_values.items():
        if not by_value.values or by_value.n_others:
            continue
        words: list[Any] = [None if line.value == MISSING else line.value for line in by_value.values]
        if name in selection.cuts:
            number_of: dict[Any, Any] = {text: i for i, text in enumerate(half_open(selection.cuts[name]))}
            number_of[None] = None
            if not number_of.keys() >= set(words):  # intervals of times, whose cut points are numbers in a file
                continue
            words = [number_of[word] for word in words]
        values[name] = words
    return OldRows(values, None, None)


#: where nothing is known of the old rows
NOTHING_KNOWN: Final = OldRows({}, None, None)


def keys_of(old: Sequence[Any], new: Sequence[Any]) -> tuple[list[Key], list[Key]]:
    """What the values of two tables are compared by: numbers in text are numbers, if one table has them as numbers."""
    key = key_of if _holds_numbers(old) == _holds_numbers(new) else _key_by_number
    return list(map(key, old)), list(map(key, new))


def key_of(value: Any) -> Key:
    """What a value is compared by: how it is written."""
    return None if value is None else shown_value(value)


def _key_by_number(value: Any) -> Key:
    """The same, where 1.0 is 1 in text too."""
    number: Decimal | None = None
    if isinstance(value, str):
        number = exact_number(value)
    elif type(value) in (int, float) and math.isfinite(value):
        number = Decimal(repr(value))
    return key_of(value if number is None else number)


def _holds_numbers(values: Iterable[Any]) -> bool:
    """Whether there are values that are no text."""
    return any(value is not None and not isinstance(value, str) for value in values)


def new_values(old: Sequence[Any], values: Sequence[Any], sizes: NDArray[np.int64], words: Sequence[str]) -> NeverSeen:
    """Which of the values of a column are new; by code, they have `sizes` rows and are shown by `words`."""
    old_keys, keys = keys_of(old, values)
    known = set(old_keys)
    codes = [code for code, key in enumerate(keys) if sizes[code] and key not in known]
    return never_seen(codes, sizes, [value_order(value) for value in values], words)


def never_seen(
    codes: Iterable[int], sizes: Sequence[int] | NDArray[np.int64], orders: Sequence[Any], words: Sequence[str]
) -> NeverSeen:
    """Some new things, given by their codes: the examples are those of the most rows, in order of their values."""
    ranked = sorted(codes, key=lambda code: (-int(sizes[code]), orders[code]))
    examples = tuple(words[code] for code in ranked[:MAX_EXAMPLES])
    return NeverSeen(len(ranked), int(sum(int(sizes[code]) for code in ranked)), examples)


def sizes_of(granules: Granules, place: int) -> NDArray[np.int64]:
    """How many rows have each value of a column."""
    return np.bincount(granules.columns[place], granules.counts, len(granules.dictionaries[place])).astype(np.int64)


class NewCombinations(NamedTuple):
    """The combinations of values that no old row has."""

    n: int
    n_rows: int
    #: new rows that show the first of them, those of the most rows first
    examples: list[int]


def new_combinations(old: Granules, new: Granules) -> NewCombinations:
    """Compare the rows of two tables in all conditions of the new one, which the old one has too."""
    n_old = len(old)
    columns = []
    for name, codes, values in zip(new.conditions, new.columns, new.dictionaries, strict=True):
        place = old.conditions.index(name)
        code_of: dict[Key, int] = {}
        old_keys, new_keys = keys_of(old.dictionaries[place], values)
        of_old = np.array([code_of.setdefault(key, len(code_of)) for key in old_keys], np.uint32)
        of_new = np.array([code_of.setdefault(key, len(code_of)) for key in new_keys], np.uint32)
        columns.append((np.concatenate([of_old[old.columns[place]], of_new[codes]]), len(code_of)))
    n_rows = n_old + len(new)
    if columns:
        order, starts = distinct(columns, n_rows)
    else:
        order = np.arange(n_rows, dtype=np.uint32)
        starts = np.array([0, n_rows], np.uint32)
    first = np.minimum.reduceat(order, starts[:-1].astype(np.intp))
    counts = np.concatenate([np.zeros(n_old, np.int64), new.counts])
    sizes = np.add.reduceat(counts[order], starts[:-1].astype(np.intp))
    is_new = first >= n_old
    rows = (first[is_new] - n_old).tolist()
    of_rows = sizes[is_new].tolist()
    shown = sorted(zip(of_rows, rows, strict=True), key=lambda sized: (-sized[0], _order(new, sized[1])))
    return NewCombinations(len(rows), sum(of_rows), [row for _, row in shown[:MAX_EXAMPLES]])


def _order(granules: Granules, row: int) -> list[Any]:
    """What sorts rows by their values."""
    return [
        value_order(values[codes[row]]) for codes, values in zip(granules.columns, granules.dictionaries, strict=True)
    ]


def kind_of(values: Iterable[Any]) -> str | None:
    """What a column holds, in a word; None if it holds nothing."""
    present = [value for value in values if value is not None]
    if not present:
        return None
    if set(map(type, present)) == {bool}:
        return "truth values"
    if are_numbers(present):
        return "numbers"
    if all(isinstance(value, str) for value in present) and kind_of_times(present) is not None:
        return "times"
    return "text"
