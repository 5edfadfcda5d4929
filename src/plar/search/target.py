"""The target of `plar.select`: what it is taken for, and the ranks of one of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from plar.bins import Floats, NoNumber, as_numbers, is_quantity
from plar.coding.times import TICKS, times_as_numbers
from plar.engines.base import GranuleSet
from plar.errors import Given, ParameterError, TableError, printable
from plar.grouping.partition import Array
from plar.input.tables import DecisionTable
from plar.uncertainty.ranks import Ranks, ranks_of

#: more numbers than these are no classes if they have fewer rows than these, on average
_MOST_RARE_CLASSES = 10
_MIN_ROWS_PER_CLASS = 2


class Target(NamedTuple):
    """What the target is taken for."""

    #: of classes
    n_classes: int | None
    #: of numbers, and the different ones in ascending order, those of times in seconds
    ranks: Ranks | None = None
    numbers: Floats | None = None

    @property
    def kind(self) -> str:
        """One of the values of `target_type`."""
        return "classes" if self.ranks is None else "numbers"


def check_one_target(table: DecisionTable) -> None:
    """Refuse several target columns."""
    names = table.decision
    if len(names) > 1:
        raise TableError(
            f"select predicts one column, but {len(names)} targets are given: {', '.join(map(repr, names))}. "
            "Name one, or make one column of them."
        )


def target_of(table: DecisionTable, granules: GranuleSet, target_type: str) -> Target:
    """Take the target for classes or numbers, as asked for, or as its values say.

    Text, truth values and categories are classes. So are numbers, dates and times if there are few of them, each in
    several rows, or if they are codes; see `plar.bins.is_quantity`. Text that writes numbers or times counts as these.
    """
    [name] = granules.decision
    classes = Target(granules.n_decisions)
    if name in granules.cuts:
        _refuse_cut_numbers(name, target_type)
        return classes
    if target_type == "classes" or (target_type == "auto" and table.has_categorical_decision):
        return classes
    values = granules.decision_values[0]
    present = [value for value in values if value is not None]
    try:
        numbers = _as_numbers(present, name, table.options.decimal)
    except NoNumber as error:
        if target_type == "auto":
            return classes
        raise _not_numbers(name, error.value) from None
    if target_type == "auto" and not _is_quantity(numbers, values, granules):
        return classes
    if len(present) < len(values):
        raise TableError(
            f"Rows without the target {printable(name)!r} have no rank. Drop them, ",
            Given("missing_decision", "drop"),
            ", or take its values for classes, ",
            Given("target_type", "classes"),
            ".",
        )
    different = np.unique(numbers)
    shown = different.astype(np.float64) / (TICKS if different.dtype == object else 1)
    return Target(None, ranks_of(numbers, granules.class_sizes()), shown)


def _refuse_cut_numbers(name: str, target_type: str) -> None:
    """Refuse to rank what was cut."""
    if target_type == "numbers":
        raise ParameterError(
            Given("target_type", "numbers"),
            f" ranks the target {printable(name)!r}, and ",
            Given("target_bins"),
            " cuts it into classes. Leave one of them out.",
        )


def _as_numbers(values: Sequence[Any], name: str, decimal: str) -> Array:
    """The values as numbers to compare, times in ticks; NoNumber if some are neither."""
    kinds = set(map(type, values))
    if kinds == {str}:
        times = times_as_numbers(values)
        if times is not None:
            return np.array(times, object)
    if kinds == {int}:
        with suppress(OverflowError):
            return np.array(values, np.int64)  # exact, however large
    return as_numbers(values, name, decimal)


def _is_quantity(numbers: Array, values: Sequence[Any], granules: GranuleSet) -> bool:
    """Whether the numbers of all decisions that are not missing are a quantity, and not codes of classes.

    More than ten are, if on average they have fewer than two rows each, since as classes they could hardly be
    predicted; but not 0 … k-1 or 1 … k.
    """
    different, places = np.unique(numbers, return_inverse=True)
    is_present = np.array([value is not None for value in values])
    sizes = np.bincount(places, granules.class_sizes()[is_present])
    are_rare = len(different) > _MOST_RARE_CLASSES and sizes.sum() < _MIN_ROWS_PER_CLASS * len(different)
    if are_rare and not _are_consecutive(different):
        return True
    return is_quantity(different.tolist(), len(different), lambda: [int(n_rows) for n_rows in sizes])


def _are_consecutive(different: Array) -> bool:
    """Whether ascending numbers are 0 … k-1 or 1 … k."""
    first = different[0]
    return first in (0, 1) and bool((different == np.arange(len(different)) + first).all())


def _not_numbers(name: str, value: Any) -> TableError:
    """The error for a target that was to be ranked."""
    return TableError(
        f"The target {printable(name)!r} cannot be ranked: it holds {value!r}, which is not a number. Name it in ",
        Given("na"),
        " if it means missing, or take the values for classes, ",
        Given("target_type", "classes"),
        ".",
    )
