"""Values of a column as people read them, and the order in which they expect them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from heapq import nsmallest
from numbers import Real
from typing import Any

from plar.coding.numerals import exact_number

#: what stands for the missing value
MISSING = "missing"


def shown_value(value: Any) -> str:
    """Write a value as in the data; whole numbers alike, whatever their type.

    >>> shown_value("high"), shown_value(3.0), shown_value(2.5), shown_value(True), shown_value(None)
    ('high', '3', '2.5', 'True', 'missing')
    """
    if value is None:
        return MISSING
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    return str(value)


def value_order(value: Any) -> tuple[int, float, str, str]:
    """What sorts values: numbers, in text too, by size; then text; then what is missing.

    >>> sorted([None, "b", "10", 9, "a"], key=value_order)
    [9, '10', 'a', 'b', None]
    """
    text = shown_value(value)
    kind = type(value).__name__
    if value is None:
        return 2, 0.0, text, kind
    number = exact_number(value) if isinstance(value, str) else value
    if not isinstance(number, (Real, Decimal)):
        return 1, 0.0, text, kind
    try:
        return 0, float(number), text, kind
    except OverflowError:
        return 0, -math.inf if text.startswith("-") else math.inf, text, kind


def first_in_order(coded: Iterable[tuple[int, Any]], n: int) -> list[tuple[int, Any]]:
    """The first `n` of some codes and their values, in the order of the values.

    >>> first_in_order([(0, "b"), (1, None), (2, "a")], 2)
    [(2, 'a'), (0, 'b')]
    """
    return nsmallest(n, coded, key=lambda code_and_value: value_order(code_and_value[1]))
