"""The values of a column in groups: those of a group meet the same conditions."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plar.bins import NoNumber, as_numbers
from plar.coding.shown_values import shown_value
from plar.coding.times import kind_of_times, times_as_numbers
from plar.errors import TableError, printable
from plar.input.text.numbers import written_number
from plar.matching.condition import ABOVE, AT_MOST, Condition, ConditionValue

Groups = NDArray[np.uint32]
Truth = NDArray[np.bool_]

#: how programs write truth values
_TRUTH: Final = {"true": True, "false": False}
#: kinds of times in words
_TIMES: Final = {"point": "a point in time", "clock": "a time of day", "duration": "a duration"}


class GroupedValues(NamedTuple):
    """Values of a column by group."""

    #: the group of each value
    group_of: Groups
    #: which conditions the values of each group meet, (n_groups, n_conditions)
    holds: Truth


def group_values(column: str, conditions: Sequence[Condition], values: Sequence[Any], decimal: str) -> GroupedValues:
    """Put the values of a column into groups by the conditions that they meet.

    `decimal` is the decimal mark of numbers in text.

    >>> conditions = [Condition("a", "<=", 2), Condition("a", "=", None)]
    >>> grouped = group_values("a", conditions, [3, 1, None], ".")
    >>> grouped.holds[grouped.group_of].tolist()
    [[False, False], [True, False], [False, True]]
    """
    if any(condition.is_ordered for condition in conditions):
        return _by_size(column, conditions, values, decimal)
    return _by_equality(conditions, values, decimal)


def _by_equality(conditions: Sequence[Condition], values: Sequence[Any], decimal: str) -> GroupedValues:
    """A group for each value that is asked for, and one for all others."""
    asked = _AskedValues([condition.value for condition in conditions], decimal)
    group_of_places: dict[tuple[int, ...], int] = {}
    groups = [group_of_places.setdefault(asked.places(value), len(group_of_places)) for value in values]
    holds = np.zeros((len(group_of_places), len(conditions)), np.bool_)
    for places, group in group_of_places.items():
        holds[group, list(places)] = True
    return GroupedValues(np.array(groups, np.uint32), holds)


class _AskedValues:
    """The values that conditions ask for, and where to find among them what another table may hold in another type.

    A value that is asked for as it is means nothing else. Otherwise text is compared with values of other types, and
    these with text, by what they write, and times by when they are.
    """

    def __init__(self, values: Sequence[ConditionValue], decimal: str) -> None:
        self._decimal = decimal
        self._places_of: dict[ConditionValue, tuple[int, ...]] = {}
        #: by what they write: text, and values of other types
        self._texts: dict[Hashable, tuple[int, ...]] = {}
        self._others: dict[Hashable, tuple[int, ...]] = {}
        self._times: dict[Hashable, tuple[int, ...]] = {}
        for place, value in enumerate(values):
            _append(self._places_of, value, place)
            if isinstance(value, str):
                _append(self._texts, _written(value, decimal), place)
                time = _time(value)
                if time is not None:
                    _append(self._times, time, place)
            elif value is not None:
                _append(self._others, _written(value, decimal), place)

    def places(self, value: Any) -> tuple[int, ...]:
        """The numbers of the conditions that ask for a value."""
        places = self._places_of.get(value, ())
        if places or value is None:
            return places
        others = self._others if isinstance(value, str) else self._texts
        if others:
            places = others.get(_written(value, self._decimal), ())
        if not places and self._times and isinstance(value, str):
            places = self._times.get(_time(value), ())
        return places


def _append(places_of: dict[Any, tuple[int, ...]], value: Hashable, place: int) -> None:
    places_of[value] = (*places_of.get(value, ()), place)


def _written(value: Any, decimal: str) -> Hashable:
    """What a value is, whatever type holds it: a number, a truth value, or text."""
    if isinstance(value, str):
        number = written_number(value, decimal)
        return _TRUTH.get(value.lower(), value) if number is None else number
    if isinstance(value, bool):
        return value
    text = shown_value(value)
    number = written_number(text)
    return text if number is None else number


def _time(text: str) -> tuple[str, int] | None:
    """The kind of a time and when it is; None for other text."""
    kind = kind_of_times([text])
    ticks = times_as_numbers([text])
    return None if kind is None or ticks is None else (kind, ticks[0])


def _by_size(column: str, conditions: Sequence[Condition], values: Sequence[Any], decimal: str) -> GroupedValues:
    """Groups along the line of numbers: those below the first cut point, those equal to it, those between, and so on.

    The last group is what is missing.
    """
    numbers_of_conditions = [np.nan if condition.value is None else condition.number for condition in conditions]
    points = np.unique([number for number in numbers_of_conditions if not np.isnan(number)])
    missing = 2 * len(points) + 1
    groups = _places_by_size(points, _numbers(column, conditions, values, decimal), missing)
    holds = np.zeros((missing + 1, len(conditions)), np.bool_)
    for i, (condition, number) in enumerate(zip(conditions, numbers_of_conditions, strict=True)):
        equal = missing if condition.value is None else 2 * int(np.searchsorted(points, number)) + 1
        if condition.is_presence:
            holds[:missing, i] = True
        elif condition.operator == AT_MOST:
            holds[: equal + 1, i] = True
        elif condition.operator == ABOVE:
            holds[equal + 1 : missing, i] = True
        else:
            holds[equal, i] = True
    return GroupedValues(groups, holds)


def _places_by_size(points: NDArray[np.float64], numbers: NDArray[np.float64], missing: int) -> Groups:
    """Where numbers are among the points: at an odd place if equal to one, else at an even one."""
    below = np.searchsorted(points, numbers, side="left")
    not_above = np.searchsorted(points, numbers, side="right")
    groups = (below + not_above).astype(np.uint32)
    groups[np.isnan(numbers)] = missing
    return groups


def _numbers(column: str, conditions: Sequence[Condition], values: Sequence[Any], decimal: str) -> NDArray[np.float64]:
    """The values as numbers, or times in seconds, NaN where they are missing."""
    if all(condition.is_presence or condition.value is None for condition in conditions):
        return np.array([np.nan if value is None else 0.0 for value in values])
    asked = next((kind for condition in conditions if (kind := condition.kind_of_time) is not None), None)
    present = [value for value in values if value is not None]
    if all(kind_of_times([value]) == asked for value in present[:1]):
        with suppress(NoNumber):
            return as_numbers(values, column, decimal)
    odd = next(value for value in present if not _is_of_kind(value, asked, column, decimal))
    what = "a number" if asked is None else _TIMES[asked]
    raise TableError(
        f"The rules compare column {printable(column)!r} by size, but it holds {odd!r}, which is not {what}. "
        "Correct it, or leave it empty if it is missing."
    )


def _is_of_kind(value: Any, kind: str | None, column: str, decimal: str) -> bool:
    """Whether a value is a time of this kind, or if there is none a number."""
    if kind is not None or kind_of_times([value]) is not None:
        return kind_of_times([value]) == kind
    try:
        as_numbers([value], column, decimal)
    except NoNumber:
        return False
    return True
