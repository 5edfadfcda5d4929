"""What options may be, whatever the table.

Each check takes the name of an option and its value, refuses the value or gives it back, in one spelling if it has
several.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Hashable, Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from typing import Any, Final

from plar.coding.column_names import column_list
from plar.errors import Given, Parameter, ParameterError, PythonOnly, invalid
from plar.runtime.limits import amount, as_bytes, as_seconds
from plar.runtime.parallel import check_jobs

#: the most that a column may cost
MAX_COST: Final = 10**6
_SEPARATORS: Final = {"\\t": "\t", "tab": "\t", "blank": " ", "space": " ", "comma": ",", "semicolon": ";", "pipe": "|"}


def one_of(*choices: str) -> Callable[[str, Any], Any]:
    """Make a check for one of some texts."""

    def check(name: str, value: Any) -> Any:
        if value not in choices:
            listed = ", ".join(choices)
            raise ParameterError(Parameter(name), f" must be one of: {listed}. Got {value!r} instead.")
        return value

    return check


def check_flag(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, Hashable) or value not in (True, False):
        raise invalid(name, "True or False", value)
    return bool(value)


def check_decimal(name: str, mark: Any) -> str:
    """A decimal mark."""
    if mark not in (".", ","):
        raise invalid(name, "'.' or ','", mark)
    return str(mark)


def check_encoding(_name: str, encoding: Any) -> str:
    """A text encoding, by Python's name for it."""
    try:
        return codecs.lookup(encoding).name
    except (LookupError, TypeError):
        raise ParameterError(f"Unknown encoding {encoding!r}. Pass one of Python's, such as 'latin-1'.") from None


def check_spellings(_name: str, na: Any) -> tuple[str, ...] | None:
    """The texts of `na`, numbers as Python writes them; None for the usual spellings alone.

    >>> check_spellings("na", "?"), check_spellings("na", [-999, " ? "]), check_spellings("na", ())
    (('?',), ('-999', '?'), ())
    """
    if na is None:
        return None
    is_list = isinstance(na, Iterable) and not isinstance(na, (str, bytes, bytearray, Mapping))
    words = tuple(na) if is_list else (na,)
    for word in words:
        if isinstance(word, (bool, Fraction)) or not isinstance(word, (str, Real, Decimal)):
            raise ParameterError(
                Given("na"), " takes texts and numbers that mean missing, such as ", Given("na", ["?", -999]),
                f". Got {word!r} instead.",
            )  # fmt: skip
    return tuple(str(word).strip() for word in words)


def check_separator(_name: str, separator: Any) -> str | None:
    """A character between fields."""
    if separator is None:
        return None
    mark = _SEPARATORS.get(separator, separator) if isinstance(separator, str) else separator
    if not isinstance(mark, str) or len(mark) != 1 or not mark.isascii() or mark in '"\n\r':
        raise ParameterError(
            f"The separator must be one ASCII character, got {separator!r}. Choose , ; | tab or a blank."
        )
    return mark


def check_amount(name: str, value: Any) -> float:
    """A number that is not negative."""
    checked_amount = amount(value)
    if checked_amount is None:
        raise invalid(name, "a number, at least 0", value)
    return checked_amount


def check_count(name: str, value: Any) -> int | None:
    """None, or a whole number from 1 on."""
    if value is None:
        return None
    if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < 1:
        raise invalid(name, "at least 1", value, or_none=True)
    return int(value)


def check_at_least_1(name: str, value: Any) -> int:
    """A whole number from 1 on."""
    if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < 1:
        raise invalid(name, "at least 1", value)
    return int(value)


def check_alpha(name: str, value: Any) -> float | None:
    """None, or a level of significance."""
    if value is None:
        return None
    level = amount(value)
    if level is None or not 0 < level < 1:
        raise invalid(name, "between 0 and 1", value, or_none=True)
    return level


def check_level(name: str, value: Any) -> float:
    """A level of significance."""
    level = amount(value)
    if level is None or not 0 < level < 1:
        raise invalid(name, "between 0 and 1", value)
    return level


def check_start(name: str, value: Any) -> Any:
    """None, or what the search begins with."""
    if value not in (None, "core", "empty"):
        raise ParameterError(
            Parameter(name), " must be ", PythonOnly("None, "), f"'core' or 'empty'. Got {value!r} instead."
        )
    return value


def check_search(name: str, value: Any) -> Any:
    """A kind of search."""
    if value not in ("greedy", "smallest"):
        raise invalid(name, "'greedy' or 'smallest'", value)
    return value


def check_costs(name: str, costs: Any) -> Any:
    """None, or costs by column."""
    if costs is not None and not isinstance(costs, Mapping):
        raise ParameterError(Parameter(name), f" must be a mapping of names to costs. Got {costs!r}.")
    for column, cost in (costs or {}).items():
        if not isinstance(cost, Integral) or isinstance(cost, bool) or not 1 <= int(cost) <= MAX_COST:
            raise ParameterError(f"The cost of {column!r} must be a whole number from 1 to {MAX_COST:,}. Got {cost!r}.")
    return costs


def check_columns(_name: str, columns: Any) -> Any:
    """Columns to look up in the table; a tuple may be the label of one column, which only the table can tell."""
    return columns if isinstance(columns, tuple) else tuple(column_list(columns))


def check_n_jobs(_name: str, n_jobs: Any) -> Any:
    """A number of threads."""
    check_jobs(n_jobs)
    return n_jobs


def check_time(_name: str, limit: Any) -> float | None:
    """None, or a time, in seconds."""
    return None if limit is None else as_seconds(limit)


def check_memory(_name: str, limit: Any) -> int | None:
    """None, or a size, in bytes."""
    return as_bytes(limit)
