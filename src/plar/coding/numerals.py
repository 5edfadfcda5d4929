"""How numbers are written in text."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

#: how numbers are written in text, for Python, polars and Java alike
NUMBER = r"^[+-]?(?:[0-9]+[.]?[0-9]*|[.][0-9]+)(?:[eE][+-]?[0-9]+)?$"
COMMA_NUMBER = NUMBER.replace("[.]", "[,]")
_NUMBER = re.compile(NUMBER)


def pointed(text: str, decimal: str) -> str:
    """Text with a decimal point; where another mark is asked for, a point makes it not a number."""
    return text if decimal == "." else text.replace(".", "?").replace(decimal, ".")


def exact_number(text: str, decimal: str = ".") -> Decimal | None:
    """The number that a text writes, with all its digits; None if it is not a number.

    >>> exact_number("-9.990e2") == -999, exact_number("1,5", ","), exact_number("1.5", ","), exact_number("?")
    (True, Decimal('1.5'), None, None)
    """
    written = pointed(text, decimal)
    if not _NUMBER.fullmatch(written):
        return None
    try:
        return Decimal(written)
    except InvalidOperation:  # an exponent of more than 18 digits
        return None
