"""Numbers in text: columns that compare as numbers, and columns that write one number in several ways."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from plar.coding.numerals import NUMBER, pointed
from plar.errors import Given, warn

_NUMBER = re.compile(NUMBER)
_WHOLE = re.compile(r"[+-]?[0-9]+")
_SHOWN_NAMES = 5
#: Python converts this many digits by default
_MAX_DIGITS = 4000


def written_number(text: str, decimal: str = ".") -> int | float | None:
    """The number that a text writes: integers exactly, others as the nearest float; None if it is not a number.

    >>> written_number("007"), written_number("1,50", ","), written_number("9007199254740993.0")
    (7, 1.5, 9007199254740993)
    """
    text = pointed(text, decimal)
    if not _NUMBER.fullmatch(text):
        return None
    whole = text.rstrip("0").rstrip(".") if "." in text else text
    if _WHOLE.fullmatch(whole) and len(whole) < _MAX_DIGITS:
        return int(whole)
    number = float(text)
    return number if math.isfinite(number) else None


def _twice(values: Sequence[str | None]) -> tuple[str, str] | None:
    """Two ways in which one number is written, in a column of numbers alone.

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
        number = written_number(value)
        if number is None:
            return None
        if seen.setdefault(number, value) != value:
            return seen[number], value
    return None


def warn_of_spellings(columns: Mapping[str, Sequence[Any]]) -> None:
    """Warn of columns, given by their values, that spell one number in several ways: as text these differ."""
    spellings = {name: pair for name, values in columns.items() if (pair := _twice(values))}
    if not spellings:
        return
    first = next(iter(spellings))
    spelling, other = spellings[first]
    names = ", ".join(map(repr, list(spellings)[:_SHOWN_NAMES]))
    if len(spellings) > _SHOWN_NAMES:
        names += f" and {len(spellings) - _SHOWN_NAMES} more"
    warn(
        f"One number is written in several ways in {names}, such as {spelling!r} and {other!r}: as text they are "
        "different values. To compare numbers, pass ",
        Given("numeric", first),
        ".",
    )
