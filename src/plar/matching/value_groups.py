"""The values of a column in groups: those of a group meet the same conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plar.bins import NoNumber, as_numbers
from plar.coding.shown_values import shown_value
from plar.errors import TableError, printable
from plar.input.text.numbers import written_number
from plar.matching.condition import ABOVE, AT_MOST, Condition, ConditionValue

Groups = NDArray[np.uint32]
Truth = NDArray[np.bool_]


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
    place_of = {condition.value: place for place, condition in enumerate(conditions)}
    shown_place_of = {shown_value(value): place for value, place in place_of.items() if value is not None}
    other = len(conditions)
    groups = np.full(len(values), other, np.uint32)
    for i, value in enumerate(values):
        place = place_of.get(value)
        if place is None and value is not None:
            place = _place_in_other_type(value, place_of, shown_place_of, decimal)
        if place is not None:
            groups[i] = place
    holds = np.zeros((other + 1, other), np.bool_)
    for condition_number, condition in enumerate(conditions):
        holds[place_of[condition.value], condition_number] = True
    return GroupedValues(groups, holds)


def _place_in_other_type(
    value: Any, place_of: Mapping[ConditionValue, int], shown_place_of: Mapping[str, int], decimal: str
) -> int | None:
    """Where a value is among those asked for, which one table may hold as text and another one as numbers."""
    if not isinstance(value, str):
        return shown_place_of.get(shown_value(value))
    number = written_number(value, decimal)
    if number is not None and number in place_of:
        return place_of[number]
    return shown_place_of.get(value)


def _by_size(column: str, conditions: Sequence[Condition], values: Sequence[Any], decimal: str) -> GroupedValues:
    """Groups along the line of numbers: those below the first cut point, those equal to it, those between, and so on.

    The last group is what is missing.
    """
    numbers_of_conditions = [np.nan if condition.value is None else condition.number for condition in conditions]
    points = np.unique([number for number in numbers_of_conditions if not np.isnan(number)])
    missing = 2 * len(points) + 1
    groups = _places_by_size(points, _numbers(column, values, decimal), missing)
    holds = np.zeros((missing + 1, len(conditions)), np.bool_)
    for i, (condition, number) in enumerate(zip(conditions, numbers_of_conditions, strict=True)):
        equal = missing if condition.value is None else 2 * int(np.searchsorted(points, number)) + 1
        if condition.operator == AT_MOST:
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


def _numbers(column: str, values: Sequence[Any], decimal: str) -> NDArray[np.float64]:
    """The values as numbers, or times in seconds, NaN where they are missing."""
    try:
        return as_numbers(values, column, decimal)
    except NoNumber as error:
        raise TableError(
            f"The rules compare column {printable(column)!r} by size, but it holds {error.value!r}, which is not a "
            "number. Correct it, or leave it empty if it is missing."
        ) from None
