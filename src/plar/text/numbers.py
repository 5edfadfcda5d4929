"""Numbers in text: columns that are compared as numbers, and those that write one number in several ways."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from plar.coding.codes import Column
from plar.errors import TableError, warn
from plar.partition import smallest_codes

__all__ = ["as_numeric", "warn_of_spellings"]

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"[+-]?[0-9]+")
_SHOWN = 5


def _number(text: str, decimal: str) -> int | float | None:
    """The number that is written; whole ones exactly, others as the nearest float; None if it is none."""
    if decimal != ".":
        text = text.replace(".", "?").replace(decimal, ".")
    if not _NUMBER.fullmatch(text):
        return None
    return int(text) if _WHOLE.fullmatch(text) and len(text) < 1000 else float(text)


def as_numeric(column: Column, decimal: str, name: str, where: Callable[[int], str]) -> Column:
    """Turn text into numbers, so that values compare as such; `where` tells the place of a code, for messages.

    Examples
    --------
    >>> column = Column(np.array([0, 1, 2, 3], np.uint8), ["1", "1.0", "01", None])
    >>> found = as_numeric(column, ".", "a", str)
    >>> found.codes.tolist(), found.values
    ([0, 0, 0, 1], [1, None])
    """
    places: dict[Any, int] = {}
    lut = np.empty(len(column.values), np.uint32)
    for code, value in enumerate(column.values):
        number = None if value is None else _number(value, decimal)
        if number is None and value is not None:
            raise TableError(
                f"{where(code)}: {value!r} in column {name!r} is no number, though the column compares as numbers. "
                "Name it in na= if it means missing, or leave the column out of numeric=."
            )
        lut[code] = places.setdefault(number, len(places))
    if len(places) == len(lut):
        return Column(column.codes, list(places), column.merged)
    return Column(smallest_codes(lut[column.codes], len(places)), list(places), merged=True)


def _twice(values: Sequence[str | None]) -> tuple[str, str] | None:
    """Two ways in which one number is written, in a column of numbers alone.

    Examples
    --------
    >>> _twice(["1", "2", "1.0"]), _twice(["1", "x", "1.0"]), _twice(["1", "2"])
    (('1', '1.0'), None, None)
    """
    written = [value for value in values if value is not None]
    try:
        if len(set(map(float, written))) == len(written):
            return None
    except ValueError:
        return None
    seen: dict[int | float, str] = {}
    for value in written:
        number = _number(value, ".")
        if number is None:
            return None
        if seen.setdefault(number, value) != value:
            return seen[number], value
    return None


def warn_of_spellings(columns: Mapping[str, Column]) -> None:
    """Warn of columns that write one number in several ways, which are different values as text."""
    found = {name: ways for name, column in columns.items() if (ways := _twice(column.values))}
    if not found:
        return
    first, (one, other) = next(iter(found.items()))
    names = ", ".join(map(repr, list(found)[:_SHOWN])) + (f" and {len(found) - _SHOWN} more" * (len(found) > _SHOWN))
    warn(
        f"One number is written in several ways in {names}, such as {one!r} and {other!r}: as text they are different "
        f"values. To compare numbers, pass numeric={first!r} (--numeric {first})."
    )
