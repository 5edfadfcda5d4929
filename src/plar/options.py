"""How a table is read, defined once for the public functions, the selectors and the command line."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from inspect import Parameter, signature
from typing import Any, ParamSpec, TypeVar

from plar.columns import by_label
from plar.errors import ParameterError

P = ParamSpec("P")
R = TypeVar("R")
_SEPARATORS = {"\\t": "\t", "tab": "\t", "blank": " ", "space": " ", "comma": ","}


@dataclass(frozen=True, slots=True, eq=False)
class ReadOptions:
    """Options of reading; see `plar.reduce`. What can be checked without the table is checked here."""

    decision: Any = None
    y: Any = None
    conditions: Any = None
    drop: Any = ()
    header: bool = True
    separator: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"
    numeric: Any = ()
    na: Any = ()
    missing: str = "value"
    weights: Any = None
    bins: Any = None
    decision_bins: Any = None

    def __post_init__(self) -> None:
        """Refuse what is invalid for any table."""
        if self.missing not in ("value", "drop", "error"):
            raise ParameterError(f"Unknown missing policy {self.missing!r}. Choose one of: value, drop, error.")
        if self.decimal not in (".", ","):
            raise ParameterError(f"The 'decimal' parameter must be '.' or ','. Got {self.decimal!r} instead.")
        object.__setattr__(self, "na", _spellings(self.na))
        object.__setattr__(self, "separator", _separator(self.separator))
        try:
            found = codecs.lookup(self.encoding).name
        except (LookupError, TypeError):
            raise ParameterError(
                f"Unknown encoding {self.encoding!r}. Pass one of Python's, such as 'latin-1'."
            ) from None
        object.__setattr__(self, "encoding", found)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> ReadOptions:
        """Pick the options from all parameters of a function."""
        return cls(**{field.name: given[field.name] for field in fields(cls)})

    def changed(self) -> set[str]:
        """Names of the options that differ from their defaults."""
        return {
            field.name
            for field in fields(self)
            if (value := getattr(self, field.name)) is not field.default and not _same(value, field.default)
        }

    def by_label(self, labels: Collection[int]) -> ReadOptions:
        """Name the columns by the ints that are their labels; other ints stay positions."""
        if not labels:
            return self
        columns = ("decision", "conditions", "drop", "numeric", "weights")
        bins = self.bins
        if isinstance(bins, Mapping):
            bins = {by_label(name, labels): rule for name, rule in bins.items()}
        return replace(self, bins=bins, **{name: by_label(getattr(self, name), labels) for name in columns})


def shows_reading(function: Callable[P, R]) -> Callable[P, R]:
    """Show the options of reading, which a function takes as ``**reading``, in its signature."""
    own = signature(function)
    shown = {name: parameter for name, parameter in own.parameters.items() if name != "reading"}
    for field in fields(ReadOptions)[2:]:
        shown[field.name] = Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type)
    function.__signature__ = own.replace(parameters=list(shown.values()))  # type: ignore[attr-defined]
    return function


def wants_bins(output: Any) -> bool:
    """Whether columns that were cut are returned as bin numbers."""
    if output not in ("values", "bins"):
        raise ParameterError(f"The 'output' parameter must be 'values' or 'bins'. Got {output!r} instead.")
    return bool(output == "bins")


def _same(value: Any, default: Any) -> bool:
    if isinstance(value, (list, tuple)) and isinstance(default, tuple):
        return tuple(value) == default
    return type(value) is type(default) and bool(value == default)


def _spellings(na: Any) -> tuple[str, ...]:
    given = () if na is None else na
    words = (given,) if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
    for word in words:
        if not isinstance(word, str):
            raise ParameterError(f"na= takes spellings of missing as text. Got {word!r}; pass it as a str.")
    return tuple(word.strip() for word in words)


def _separator(given: Any) -> str | None:
    if given is None:
        return None
    mark = _SEPARATORS.get(given, given) if isinstance(given, str) else given
    if not isinstance(mark, str) or len(mark) != 1 or not mark.isascii() or mark in '"\n\r':
        raise ParameterError(f"The separator must be one ASCII character, got {given!r}. Choose , ; | tab or a blank.")
    return mark
