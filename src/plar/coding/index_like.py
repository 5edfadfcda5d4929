"""Columns that only number or name the rows: which columns those are, judged by their values before any are cut.

The rule, from 20 rows on, by rows and not by weights. A column is index-like if

- its name says so (rownames, index, Unnamed: 0) and at least 90 % of its values differ; or
- it has no name while other columns have one, and holds whole numbers or text, one value per row; or
- it holds consecutive whole numbers in any order, one per row, that begin at 0 or 1, or whose name is that of an id,
  but not of a year or time; or
- it holds text that is not a date, and at least 90 % of its values differ.

Fractions are never an index.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plar.coding.codes import Column, sample_of

#: no column of a smaller table is called an index
FEWEST_ROWS = 20
#: the least share of different values
_MIN_SHARE_OF_VALUES = 0.9
#: numbers that are looked at first for fractions
_FIRST_NUMBERS = 10
_MODULUS = 1 << 64

_WHOLE = re.compile(r"[+-]?[0-9]+(?:[.,]0*)?")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+[.,]?[0-9]*|[.,][0-9]+)(?:[eE][+-]?[0-9]+)?")
_MONTH = "(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[.]?"
_ZONE = "(?:z|[a-z]{3,4}|[+-][0-9]{2}:?[0-9]{2})"
_CLOCK = rf"[0-9]{{1,2}}:[0-9]{{2}}(?::[0-9]{{2}}(?:[.,][0-9]+)?)? ?(?:[ap][.]?m[.]?)? ?{_ZONE}?"
_DAY = "|".join(
    (
        r"[0-9]{4}[-/.][0-9]{1,2}(?:[-/.][0-9]{1,2})?",
        r"[0-9]{4}[- ]?(?:w[0-9]{1,2}(?:-?[1-7])?|q[1-4]|h[12])",
        r"[0-9]{1,2}[-/.][0-9]{1,2}[-/.](?:[0-9]{2}|[0-9]{4})",
        rf"(?:[a-z]{{3,9}},? )?[0-9]{{1,2}}[. -]+{_MONTH}[, -]+(?:[0-9]{{2}}|[0-9]{{4}})",
        rf"(?:[a-z]{{3,9}},? )?{_MONTH}[ -](?:[0-9]{{1,2}}[,]? )?(?:[0-9]{{2}}|[0-9]{{4}})",
    )
)
#: dates, times and durations, as ISO 8601 and people write them
_TIME = re.compile(
    rf"(?:{_DAY})(?:[t, ]+{_CLOCK}|[t ][0-9]{{2}}{_ZONE}?)?|{_CLOCK}|-?p(?:[0-9.]+[ymwd])*(?:t[0-9.hms]+)?",
    re.IGNORECASE,
)

_NAMES_ROWS = re.compile(
    r"row\W?_?(?:names?|index|id|num|number|no|nr)|index|unnamed: ?\d+|level_\d+|__index_level_\d+__", re.IGNORECASE
)
#: names that readers give to columns without one
_PLACEHOLDER = re.compile(r"(?:x|_c|column_)\d+")
_FIRST_PLACEHOLDERS = ("x0", "_c0", "column_0")
_ID = re.compile("id|ids|identifier|no|nr|num|number|row|rows|obs|observation|case|order|record|seq|sequence|serial")
_JOINED_ID = re.compile("(?:row|obs|case|rec|record|cust|customer|user|subject|patient|sample|item)(?:id|no|nr|num)")
_OF_TIME = re.compile("years?|yr|date|day|month|week|quarter|hour|minute|second|time|timestamp")


class Profile(NamedTuple):
    """What is known of the different values of a column in which nearly all differ; missing is not one of them."""

    #: "whole" numbers, "text", "time", or "other"
    kind: str
    n_values: int
    #: of whole numbers: the range, and the sums of the numbers and of their squares modulo 2^64
    low: int = 0
    high: int = 0
    total: int = 0
    squares: int = 0

    @property
    def consecutive(self) -> bool:
        """Whether these are all whole numbers of their range; by the sums, if no part repeats a number of its own."""
        n = self.n_values
        if self.kind != "whole" or self.high - self.low + 1 != n:
            return False
        total = _sum_up_to(self.high) - _sum_up_to(self.low - 1)
        squares = _squares_up_to(self.high) - _squares_up_to(self.low - 1)
        return self.total == total % _MODULUS and self.squares == squares % _MODULUS


def _sum_up_to(n: int) -> int:
    return n * (n + 1) // 2


def _squares_up_to(n: int) -> int:
    return n * (n + 1) * (2 * n + 1) // 6


def is_index_like(name: str, values: Sequence[Any], n_rows: int, *, unnamed: bool = False) -> bool:
    """Whether a column, given by its different values, only numbers or names the rows.

    `unnamed` says that it has no name while other columns have one.

    >>> is_index_like("", range(1, 101), 100), is_index_like("Year", range(1914, 2014), 100)
    (True, False)
    """
    profile = profile_of(values, n_rows)
    return profile is not None and numbers_rows(name, profile, n_rows, unnamed=unnamed)


def numbers_rows(name: str, profile: Profile, n_rows: int, *, unnamed: bool = False) -> bool:
    """The same, by the profile of a column."""
    if n_rows < FEWEST_ROWS or profile.n_values < _MIN_SHARE_OF_VALUES * n_rows:
        return False
    if _NAMES_ROWS.fullmatch(name.strip()) or profile.kind == "text":
        return True
    if profile.kind != "whole" or profile.n_values < n_rows:
        return False
    return unnamed or (profile.consecutive and (profile.low in (0, 1) or _is_id(name)))


def _is_id(name: str) -> bool:
    words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]
    is_time = any(map(_OF_TIME.fullmatch, words))
    return not is_time and any(_ID.fullmatch(word) or _JOINED_ID.fullmatch(word) for word in words)


def index_like(
    conditions: Iterable[str], names: Sequence[str], profiles: Mapping[str, Profile], n_rows: int
) -> dict[str, str]:
    """The conditions that only number or name the rows, and why; `names` are those of all columns, in table order."""
    candidates = [name for name in conditions if name in profiles]
    unnamed = _unnamed(names) if candidates else frozenset[str]()
    reasons: dict[str, str] = {}
    for name in candidates:
        profile = profiles[name]
        if numbers_rows(name, profile, n_rows, unnamed=name in unnamed):
            reasons[name] = "one value per row" if profile.n_values >= n_rows else "different in nearly every row"
    return reasons


def _unnamed(names: Sequence[str]) -> frozenset[str]:
    """Columns without a name while others have one: an empty name, or a placeholder that only the first column has."""
    empty = {name for name in names if not name.strip()}
    placeholders = [name for name in names if _PLACEHOLDER.fullmatch(name)]
    if len(placeholders) == 1 and names[0] in _FIRST_PLACEHOLDERS:
        empty.update(placeholders)
    return frozenset(empty) if len(empty) < len(names) else frozenset()


# -- profiles ---------------------------------------------------------------------------------------------------


def profiled(
    named: Iterable[tuple[str, Column]], n_rows: int, profiles: dict[str, Profile]
) -> Iterator[tuple[str, Column]]:
    """Pass columns through, and note the profiles of those that may be an index."""
    for name, column in named:
        profile = profile_of(column.values, n_rows)
        if profile is not None:
            profiles[name] = profile
        yield name, column


def profile_of(values: Sequence[Any], n_rows: int) -> Profile | None:
    """The profile of a column, given by its different values; None if it cannot be an index, as few columns can."""
    if len(values) < _MIN_SHARE_OF_VALUES * n_rows:
        return None
    present = [value for value in values if value is not None]
    types = set(map(type, present))
    if types == {float} and not all(map(float.is_integer, present[:_FIRST_NUMBERS])):  # a single fraction decides
        return None
    if types == {int} or types == {float}:
        return _profile_of_numbers(present)
    sample = sample_of(present)
    numbers = [value for value in sample if _is_number(value)]
    if 2 * len(numbers) > len(sample):
        return _profile_of_numbers(present) if all(map(_is_whole, numbers)) else None
    if types != {str}:
        return Profile("other", len(present))
    n_times = sum(map(looks_like_time, sample))
    return Profile("time" if 2 * n_times > len(sample) else "text", len(present))


def looks_like_time(text: str) -> bool:
    """Whether a text is a date, a time or a duration, as ISO 8601 or people write them.

    >>> looks_like_time("15.01.2023"), looks_like_time("Jan 5, 2023 5:00 pm"), looks_like_time("5 pm")
    (True, True, False)
    """
    return _TIME.fullmatch(text.strip()) is not None


def _is_number(value: Any) -> bool:
    if isinstance(value, str):
        return _NUMBER.fullmatch(value.strip()) is not None
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    if isinstance(value, str):
        return _WHOLE.fullmatch(value.strip()) is not None
    return isinstance(value, int) or (value == value and abs(value) != float("inf") and value == int(value))


def _profile_of_numbers(values: list[Any]) -> Profile | None:
    """The profile of values of which most are whole numbers; None if there are fractions."""
    try:
        whole = _as_integers(values)
    except OverflowError:  # too large to number rows
        return Profile("other", len(values))
    except ValueError:
        fractions = any(_is_number(value) and not _is_whole(value) for value in values)
        return None if fractions else Profile("other", len(values))
    unsigned = whole.view(np.uint64)  # whose sums wrap around
    low = int(whole.min())
    high = int(whole.max())
    return Profile("whole", len(values), low, high, int(unsigned.sum()), int((unsigned * unsigned).sum()))


def _as_integers(values: list[Any]) -> NDArray[np.int64]:
    kinds = set(map(type, values))
    if kinds == {int}:
        return np.array(values, np.int64)
    if kinds == {float}:
        numbers = np.array(values)
        if (np.abs(numbers) < _MODULUS / 4).all():
            whole = numbers.astype(np.int64)
            if np.array_equal(whole, numbers):
                return whole
        raise ValueError("fractions, or too large")
    if kinds == {str}:
        with suppress(ValueError):
            return np.array(list(map(int, values)), np.int64)
    return np.array(list(map(_as_int, values)), np.int64)


def _as_int(value: Any) -> int:
    if isinstance(value, str):
        digits, _, zeros = value.replace(",", ".").partition(".")
        if zeros.strip("0 "):
            raise ValueError(value)
        return int(digits)
    if not _is_number(value) or not _is_whole(value):
        raise ValueError(value)
    return int(value)


def merged_profiles(parts: Sequence[Mapping[str, Profile]], n_values: Mapping[str, int]) -> dict[str, Profile]:
    """The profiles of several tables taken together; a column that cannot be an index, or may be one or not, has none.

    `n_values` says how many different values columns have in all tables, as far as that is known.
    """
    in_all = [name for name in parts[0] if all(name in part for part in parts)]
    merged = ((name, _merged([part[name] for part in parts], n_values.get(name))) for name in in_all)
    return {name: profile for name, profile in merged if profile is not None}


def _merged(parts: Sequence[Profile], n_values: int | None) -> Profile | None:
    if len({part.kind for part in parts}) > 1:
        return None
    union = Profile(
        parts[0].kind,
        sum(part.n_values for part in parts),
        min(part.low for part in parts),
        max(part.high for part in parts),
        sum(part.total for part in parts) % _MODULUS,
        sum(part.squares for part in parts) % _MODULUS,
    )
    if union.consecutive:
        return union
    if n_values is not None:
        return union._replace(n_values=n_values)
    ranges = sorted((part.low, part.high) for part in parts)
    disjoint = all(before[1] < after[0] for before, after in pairwise(ranges))
    return union if disjoint and union.kind == "whole" else None
