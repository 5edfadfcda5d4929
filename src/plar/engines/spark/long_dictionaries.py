"""Dictionaries that are too long for the driver: the values of some codes are looked up on the cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import partial
from typing import Any, TypeAlias

from pyspark import RDD

from plar.coding.shown_values import first_in_order
from plar.engines.spark.session import explained

#: codes by value
CodeOf: TypeAlias = dict[Any, int]
#: stands for the name of the decision, whose columns have one dictionary together
DECISION = None


class LongDictionaries:
    """The dictionaries of some columns, in parts.

    Parameters
    ----------
    parts : RDD of lists of (place of the column, codes by value)
        A value may be in several parts.
    names : dict of int to str or None
        These columns by place; None stands for the decision.
    """

    def __init__(self, parts: RDD[list[tuple[int, CodeOf]]], names: dict[int, str | None]) -> None:
        self._parts = parts
        self._place_of = {name: place for place, name in names.items()}

    @property
    def has_decisions(self) -> bool:
        """Whether the dictionary of the decision is one of them."""
        return DECISION in self._place_of

    def first_values(self, name: str, codes: Collection[int], n: int) -> list[tuple[int, Any]]:
        """The first `n` of some values of a column, each with its code."""
        work = partial(_first_values, place=self._place_of[name], codes=frozenset(codes), n=n)
        with explained("look up the values"):
            return first_in_order(dict(self._parts.flatMap(work).collect()).items(), n)

    def decisions(self) -> list[Any]:
        """All decisions by their code, those of several columns as tuples."""
        work = partial(_all_values, place=self._place_of[DECISION])
        with explained("look up the decisions"):
            value_of = dict(self._parts.flatMap(work).distinct().collect())
        return [value_of[code] for code in range(len(value_of))]


def _first_values(
    part: Iterable[tuple[int, CodeOf]], place: int, codes: frozenset[int], n: int
) -> Iterator[tuple[int, Any]]:
    # a value that several parts of the task hold comes once
    value_of = {code: value for code, value in _all_values(part, place) if code in codes}
    yield from first_in_order(value_of.items(), n)


def _all_values(part: Iterable[tuple[int, CodeOf]], place: int) -> Iterator[tuple[int, Any]]:
    for j, code_of in part:
        if j == place:
            yield from ((code, value) for value, code in code_of.items())
