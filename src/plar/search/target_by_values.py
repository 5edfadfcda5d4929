"""How the target goes with the values of the selected columns: what `Selection.shares` shows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from plar.bins import Floats
from plar.coding.shown_values import first_in_order, shown_value, value_order
from plar.engines.base import GranuleSet
from plar.engines.stratification import Stratification
from plar.grouping.partition import Runs
from plar.results.report.words import half_open
from plar.results.selection import QUARTILES, TargetAtValue, TargetByValue
from plar.uncertainty.strata import CrossTab

#: values of a column that have a line of their own
MAX_VALUES = 50
#: classes of the target that have a number of their own
MAX_CLASSES = 10

Counts = NDArray[np.int64]
#: a group of rows for each row
Groups = NDArray[np.uint8]


class TargetSummary(Protocol):
    """What is said of the target in a group of rows."""

    heads: tuple[str, ...]

    def numbers(self, groups: Groups, n_groups: int, runs: Runs) -> list[tuple[float | None, ...]]:
        """A number for each head and group; rows are ordered by decision."""


def target_by_values(
    granules: GranuleSet, strata: Stratification, selected: Sequence[int], numbers: Floats | None
) -> dict[str, TargetByValue]:
    """The target by the values of each selected column; without values where the target is the same in all rows.

    Of a target of numbers, `numbers` are the different ones in ascending order.
    """
    if not selected:
        return {}
    if granules.n_decisions < 2 or (numbers is not None and len(numbers) < 2):
        return {granules.conditions[a]: TargetByValue((), (), 0) for a in selected}
    target: TargetSummary = ClassShares(granules) if numbers is None else Quartiles(numbers)
    tables = zip(selected, strata.cross_tabs(selected, ()), strict=True)
    return {granules.conditions[a]: _by_values(granules, a, cross_tab, target) for a, cross_tab in tables}


def _by_values(granules: GranuleSet, a: int, cross_tab: CrossTab, target: TargetSummary) -> TargetByValue:
    """A line for each of the most frequent values of a column, and one for the others, if there are any."""
    sizes = np.bincount(cross_tab.values, cross_tab.runs.weights, cross_tab.n_values).astype(np.int64)
    shown = _most_frequent(granules, a, sizes)
    group_of = np.full(cross_tab.n_values, len(shown), np.uint8)
    group_of[[code for code, _ in shown]] = np.arange(len(shown), dtype=np.uint8)
    names = [_value_name(value, granules.cuts.get(granules.conditions[a])) for _, value in shown]
    rows = [int(sizes[code]) for code, _ in shown]
    n_others = int((sizes > 0).sum()) - len(shown)
    if n_others:
        names.append("1 other value" if n_others == 1 else f"{n_others:,} other values")
        rows.append(int(sizes.sum()) - sum(rows))
    numbers = target.numbers(group_of[cross_tab.values], len(names), cross_tab.runs)
    lines = zip(names, rows, numbers, strict=True)
    return TargetByValue(target.heads, tuple(TargetAtValue(*line) for line in lines), n_others)


def _most_frequent(granules: GranuleSet, a: int, sizes: Counts) -> list[tuple[int, Any]]:
    """The most frequent values of a column with their codes, in the order of the values; of equal ones the first."""
    codes = np.flatnonzero(sizes)
    if len(codes) > MAX_VALUES:
        least = np.partition(sizes[codes], len(codes) - MAX_VALUES)[len(codes) - MAX_VALUES]
        more_frequent = codes[sizes[codes] > least].tolist()
        as_frequent = codes[sizes[codes] == least].tolist()
        taken = granules.first_values(a, as_frequent, MAX_VALUES - len(more_frequent))
        taken += granules.first_values(a, more_frequent, len(more_frequent))
        return first_in_order(taken, len(taken))
    return granules.first_values(a, codes.tolist(), len(codes))


def _value_name(value: Any, cuts: Sequence[float] | None) -> str:
    """A value in words: the interval, if it is the number of a bin."""
    return shown_value(value) if value is None or cuts is None else half_open(cuts)[value]


class ClassShares:
    """The share of each class; of many classes those that are most frequent, and all others together."""

    def __init__(self, granules: GranuleSet) -> None:
        values = list(zip(*granules.decision_values, strict=True))
        orders = [tuple(map(value_order, value)) for value in values]
        sizes = granules.class_sizes()
        codes = sorted(range(len(values)), key=lambda code: (-sizes[code], orders[code]))
        n_others = 0 if len(codes) <= MAX_CLASSES else len(codes) - MAX_CLASSES + 1
        shown = sorted(codes[: len(codes) - n_others], key=orders.__getitem__)
        cuts = [granules.cuts.get(name) for name in granules.decision]
        heads = [", ".join(map(_value_name, values[code], cuts)) for code in shown]
        if n_others:
            heads.append(f"{n_others:,} others")
        self.heads = tuple(heads)
        #: by decision code
        self._head_of = np.full(len(values), len(shown), np.uint8)
        self._head_of[shown] = np.arange(len(shown), dtype=np.uint8)

    def numbers(self, groups: Groups, n_groups: int, runs: Runs) -> list[tuple[float | None, ...]]:
        """The share of each class among the rows of each group."""
        n_heads = len(self.heads)
        heads = np.repeat(self._head_of, np.diff(runs.begins))
        cells = groups.astype(np.uint16) * np.uint16(n_heads) + heads
        counts = np.bincount(cells, runs.weights, n_groups * n_heads).reshape(n_groups, n_heads)
        shares = counts / counts.sum(axis=1, keepdims=True)
        return [tuple(of_group) for of_group in shares.tolist()]


class Quartiles:
    """The quartiles of a target of numbers.

    Parameters
    ----------
    numbers : (n,) array
        The different ones, in ascending order.
    """

    heads: tuple[str, ...] = QUARTILES

    def __init__(self, numbers: Floats) -> None:
        #: by run: those of a target of numbers are in the order of the numbers
        self._numbers = numbers

    def numbers(self, groups: Groups, n_groups: int, runs: Runs) -> list[tuple[float | None, ...]]:
        """The quartiles in each group; None where they are not finite."""
        numbers = np.repeat(self._numbers, np.diff(runs.begins))
        order = np.argsort(groups, kind="stable")
        ends = np.cumsum(np.bincount(groups, minlength=n_groups))
        quartiles: list[tuple[float | None, ...]] = []
        for begin, end in pairwise([0, *ends.tolist()]):
            of_group = order[begin:end]
            quartiles.append(_quartiles(numbers[of_group], np.cumsum(runs.weights[of_group])))
        return quartiles


def _quartiles(numbers: Floats, upto: Counts) -> tuple[float | None, ...]:
    """The quartiles of sorted numbers, `upto` of which are not behind each; between two numbers in proportion."""
    if not len(numbers):
        return (None, None, None)
    last = int(upto[-1]) - 1
    quartiles: list[float | None] = []
    for quarter in (1, 2, 3):
        place, rest = divmod(last * quarter, 4)
        below, above = numbers[np.searchsorted(upto, [place, min(place + 1, last)], side="right")].tolist()
        value = below if rest == 0 or below == above else below * (1 - rest / 4) + above * (rest / 4)
        quartiles.append(value if math.isfinite(value) else None)
    return tuple(quartiles)
