"""What means missing, beside None, NaN and null: texts, and numbers however they are written or stored."""

from __future__ import annotations

import re
from collections.abc import Iterable, Set
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from numbers import Integral, Real
from typing import Any

import numpy as np

from plar.coding.numerals import exact_number

#: texts that mean missing unless na=() is given: those of pandas.read_csv
USUAL_SPELLINGS = frozenset(
    [
        *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
        *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
    ]
)
#: numbers as Python writes them, which are not numbers in text
_INFINITIES = ("inf", "-inf")


@dataclass(frozen=True, slots=True)
class MissingSpellings:
    """Texts and numbers that mean missing; `decimal` is the decimal mark of numbers in text.

    Whole numbers and decimals are compared exactly, fractions as the nearest number that a float type has.
    """

    texts: frozenset[str] = frozenset()
    numbers: frozenset[Decimal] = frozenset()
    decimal: str = "."

    @staticmethod
    def of(words: Iterable[str] | None, decimal: str = ".") -> MissingSpellings:
        """The usual spellings, with further ones; an empty list means none at all.

        >>> na = MissingSpellings.of(["?", "-999"])
        >>> na.among({"NA", "?", "-999.0", "-99"}) == {"NA", "?", "-999.0"}, na.has(-999), na.has(True)
        (True, True, False)
        """
        further = None if words is None else frozenset(words)
        if further is not None and not further:
            return MissingSpellings(decimal=decimal)
        texts = USUAL_SPELLINGS | (further or frozenset())
        numbers = {Decimal(word) for word in texts if word in _INFINITIES}
        # a number in na= may have either mark: Python and shells write a point
        for mark in {".", decimal}:
            numbers.update(number for word in texts if (number := exact_number(word, mark)) is not None)
        return MissingSpellings(texts, frozenset(numbers), decimal)

    def among(self, texts: Set[str]) -> set[str]:
        """Those of some texts that mean missing."""
        spellings = set(self.texts.intersection(texts))
        if self.numbers:
            alike = filter(_same_digits(self.numbers).fullmatch, texts)
            spellings.update(text for text in alike if exact_number(text, self.decimal) in self.numbers)
        return spellings

    def has(self, value: Any) -> bool:
        """Whether a value that is not text equals one of the numbers; True and False are not numbers."""
        if not self.numbers or isinstance(value, (bool, np.bool_)) or not isinstance(value, (Real, Decimal)):
            return False
        if isinstance(value, (float, np.floating)):
            return float(value) in self.floats(np.result_type(value))
        # numpy's integers do not compare with Decimals
        return (int(value) if isinstance(value, Integral) else value) in self.numbers

    def floats(self, dtype: np.dtype[Any]) -> frozenset[float]:
        """The numbers that a float type has: whole ones exactly, fractions as the nearest."""
        return _rounded(self.numbers, dtype)


#: nothing but None, NaN and null is missing
NO_SPELLINGS = MissingSpellings()


@lru_cache(maxsize=256)
def _same_digits(numbers: frozenset[Decimal]) -> re.Pattern[str]:
    """What the texts of some numbers look like, wherever the point is: few others need to be converted."""
    digits = {"".join(map(str, number.as_tuple().digits)).strip("0") for number in numbers if number.is_finite()}
    written = "|".join("[.,]?".join(of_number) for of_number in sorted(digits))
    return re.compile(rf"[+-]?[0.,]*+(?:{written})[0.,]*+(?:[eE][+-]?[0-9]+)?")


@lru_cache(maxsize=256)
def _rounded(numbers: frozenset[Decimal], dtype: np.dtype[Any]) -> frozenset[float]:
    rounded = set()
    for number in numbers:
        with np.errstate(over="ignore"):
            nearest = float(dtype.type(float(number)))
        if nearest == number or (number != number.to_integral_value() and np.isfinite(nearest)):
            rounded.add(nearest)
    return frozenset(rounded)
