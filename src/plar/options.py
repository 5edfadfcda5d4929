"""How a table is read and searched, defined once for the public functions, the selectors and the command line."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from fractions import Fraction
from inspect import Parameter, signature
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from plar.coding.column_names import by_label
from plar.errors import ParameterError
from plar.runtime.limits import amount

if TYPE_CHECKING:
    from plar.coding.missing import MissingSpellings

P = ParamSpec("P")
R = TypeVar("R")
#: what happens to rows with missing values, the strictest last
POLICIES = ("value", "drop", "error")
#: the most that a column may cost
MAX_COST = 10**6
#: p-values above this level are taken for chance, unless `alpha` is given
DEFAULT_ALPHA = 0.05
#: how shells write na=()
NO_NA = "none"
_SEPARATORS = {"\\t": "\t", "tab": "\t", "blank": " ", "space": " ", "comma": ",", "semicolon": ";", "pipe": "|"}


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
    na: Any = None
    missing: str = "value"
    missing_decision: str = "value"
    weights: Any = None
    bins: Any = None
    decision_bins: Any = None

    def __post_init__(self) -> None:
        """Refuse what is invalid for any table."""
        for option in ("missing", "missing_decision"):
            policy = getattr(self, option)
            if policy not in POLICIES:
                choices = ", ".join(POLICIES)
                raise ParameterError(f"The {option!r} parameter must be one of: {choices}. Got {policy!r} instead.")
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

    @property
    def spellings(self) -> MissingSpellings:
        """What means missing, beside None, NaN and null."""
        from plar.coding.missing import MissingSpellings  # which needs numpy, as the shell's help does not

        return MissingSpellings.of(self.na, self.decimal)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> ReadOptions:
        """Pick the options from all parameters of a function."""
        return cls(**{field.name: given[field.name] for field in fields(cls)})

    def changed(self) -> list[str]:
        """Names of the options that differ from their defaults, in the order of the fields."""
        return [
            field.name
            for field in fields(self)
            if (value := getattr(self, field.name)) is not field.default and not _same(value, field.default)
        ]

    @property
    def decision_policy(self) -> str:
        """What happens to rows without a decision: the stricter of `missing` and `missing_decision`."""
        return max(self.missing, self.missing_decision, key=POLICIES.index)

    def by_label(self, labels: Mapping[Any, str]) -> ReadOptions:
        """Name the columns by the ints or tuples that are their labels; other ints stay positions."""
        if not labels:
            return self
        columns = ("decision", "conditions", "drop", "numeric", "weights")
        bins = self.bins
        if isinstance(bins, Mapping):
            bins = {by_label(name, labels): rule for name, rule in bins.items()}
        return replace(self, bins=bins, **{name: by_label(getattr(self, name), labels) for name in columns})


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asks of the search; see `plar.reduce`."""

    include: tuple[Any, ...] = ()
    epsilon: float = 0.0
    tolerance: float = 0.0
    max_attributes: int | None = None
    minimal: bool = False
    alpha: float | None = None
    start: str | None = None
    search: str = "greedy"
    costs: Mapping[Any, int] | None = None
    exclude: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        self._check_search()
        alpha = None if self.alpha is None else amount(self.alpha)
        if self.alpha is not None and (alpha is None or not 0 < alpha < 1):
            raise ParameterError(f"The 'alpha' parameter must be None or between 0 and 1. Got {self.alpha!r} instead.")
        if self.start not in (None, "core", "empty"):
            raise ParameterError(f"The 'start' parameter must be None, 'core' or 'empty'. Got {self.start!r} instead.")
        for name in ("epsilon", "tolerance"):
            value = getattr(self, name)
            if amount(value) is None:
                raise ParameterError(f"The {name!r} parameter must be a number, at least 0. Got {value!r} instead.")
        limit = self.max_attributes
        if limit is None:
            return
        if not isinstance(limit, Integral) or isinstance(limit, bool) or limit < 1:
            raise ParameterError(f"The 'max_attributes' parameter must be None or at least 1. Got {limit!r} instead.")
        if limit < len(set(self.include)):
            raise ParameterError(
                f"The 'max_attributes' parameter is {limit}, but include= alone has {len(set(self.include))} "
                "columns. Raise the limit or include fewer."
            )

    def _check_search(self) -> None:
        if self.search not in ("greedy", "smallest"):
            raise ParameterError(f"The 'search' parameter must be 'greedy' or 'smallest'. Got {self.search!r} instead.")
        others = ("epsilon", "tolerance", "max_attributes", "minimal", "alpha", "start")
        odd = ("costs", "exclude") if self.search == "greedy" else others
        if self.costs is not None and not isinstance(self.costs, Mapping):
            raise ParameterError(f"The 'costs' parameter must be a mapping of names to costs. Got {self.costs!r}.")
        for option in fields(Options):
            if option.name in odd and getattr(self, option.name) not in (option.default, None, {}):
                which = "'smallest'" if self.search == "greedy" else "'greedy'"
                more = " To leave columns out of the table, use drop=." if option.name == "exclude" else ""
                raise ParameterError(f"The {option.name!r} parameter goes with search={which}.{more}")
        for name, cost in (self.costs or {}).items():
            if not isinstance(cost, Integral) or isinstance(cost, bool) or not 1 <= cost <= MAX_COST:
                raise ParameterError(
                    f"The cost of {name!r} must be a whole number from 1 to {MAX_COST:,}. Got {cost!r}."
                )

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Options:
        """Pick the options from all parameters of a function."""
        return cls(**{field.name: given[field.name] for field in fields(cls)})

    def plain(self, include: list[str]) -> dict[str, Any]:
        """The options in Python's own types, with the names of the columns to include."""
        limit = None if self.max_attributes is None else int(self.max_attributes)
        numbers = {"epsilon": float(self.epsilon), "tolerance": float(self.tolerance), "max_attributes": limit}
        alpha = None if self.alpha is None else float(self.alpha)
        asked = {"include": include, **numbers, "minimal": bool(self.minimal), "alpha": alpha, "start": self.begins}
        costs = {str(name): int(cost) for name, cost in (self.costs or {}).items()}
        return {**asked, "search": self.search, "costs": costs, "exclude": list(self.exclude)}

    @property
    def begins(self) -> str:
        """What the search starts with: by default the core; with alpha nothing, since the core is not tested."""
        return self.start or ("core" if self.alpha is None else "empty")


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


def _spellings(na: Any) -> tuple[str, ...] | None:
    """The texts of `na`, numbers as Python writes them; None for the usual spellings alone.

    >>> _spellings("?"), _spellings([-999, " ? "]), _spellings(()), _spellings(None)
    (('?',), ('-999', '?'), (), None)
    """
    if na is None:
        return None
    is_list = isinstance(na, Iterable) and not isinstance(na, (str, bytes, bytearray, Mapping))
    words = tuple(na) if is_list else (na,)
    for word in words:
        if isinstance(word, (bool, Fraction)) or not isinstance(word, (str, Real, Decimal)):
            raise ParameterError(
                f"na= takes texts and numbers that mean missing, such as na=['?', -999]. Got {word!r} instead."
            )
    return tuple(str(word).strip() for word in words)


def _separator(given: Any) -> str | None:
    if given is None:
        return None
    mark = _SEPARATORS.get(given, given) if isinstance(given, str) else given
    if not isinstance(mark, str) or len(mark) != 1 or not mark.isascii() or mark in '"\n\r':
        raise ParameterError(f"The separator must be one ASCII character, got {given!r}. Choose , ; | tab or a blank.")
    return mark
