"""Numbers into bins: what is asked for, where the cuts lie, and which bin a number is in.

Cuts depend on the multiset of (number, decision) alone, not on the order of the rows or on who counted them, so every
engine and every format finds the same. Bin i is the interval (cut[i-1], cut[i]].
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import islice, pairwise
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from plar.coding.codes import Column
from plar.coding.mdlp import mdlp_splits
from plar.columns import resolve, written_name
from plar.errors import TableError, unknown_name
from plar.partition import Array, smallest_codes

__all__ = [
    "COMMA_NUMBER",
    "NUMBER",
    "Bins",
    "Cuts",
    "NoNumber",
    "Rule",
    "Spec",
    "apply",
    "as_numbers",
    "bin_column",
    "find_cuts",
    "looks_continuous",
    "parse_bins",
    "place",
    "written_spec",
]

#: what `bins` may be
Spec: TypeAlias = str | Mapping[Any, str | Sequence[float] | None]
Cuts: TypeAlias = tuple[float, ...]
Floats: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]

_METHODS = ("quantile:k", "width:k", "mdlp")
_MOST_BINS = 1 << 16
#: how numbers are written in text, for Python, polars and Java alike
NUMBER = r"^[+-]?(?:[0-9]+[.]?[0-9]*|[.][0-9]+)(?:[eE][+-]?[0-9]+)?$"
COMMA_NUMBER = NUMBER.replace("[.]", "[,]")
_NUMBER = re.compile(NUMBER)
_DIGITS = frozenset("0123456789+-.eE")


class NoNumber(TableError):
    """A column to be cut holds a value that is no number."""

    def __init__(self, value: Any, name: str = "") -> None:
        remedy = "Name it in na= if it means missing, or leave the column out of bins."
        if isinstance(value, str) and "," in value and re.match(COMMA_NUMBER, value):
            remedy = "Pass decimal=',' to plar.read_table (--decimal ,)."
        super().__init__(f"Column {name!r} cannot be cut into bins: it holds {value!r}, which is no number. {remedy}")
        self.value = value


@dataclass(frozen=True, slots=True)
class Rule:
    """How one column is cut: by a method, into `k` bins where it takes them, or at `cuts`."""

    method: str
    k: int = 0
    cuts: Cuts = ()

    @property
    def given(self) -> bool:
        """Whether the cuts are known without a look at the data."""
        return self.method == "cuts"


@dataclass(frozen=True, slots=True)
class Bins:
    """How the columns of a table are cut.

    Parameters
    ----------
    spec : str or dict
        As it was asked for, in what JSON can hold.
    default : Rule or None
        For every condition that holds numbers.
    columns : mapping of str to Rule
        For conditions that were named, which must hold numbers.
    decimal : {".", ","}
        The mark before the fraction of a number in text.
    """

    spec: str | dict[str, Any]
    default: Rule | None = None
    columns: Mapping[str, Rule] = field(default_factory=dict)
    decimal: str = "."

    def rule(self, name: str) -> Rule | None:
        """How a condition is cut, if it is."""
        return self.columns.get(name, self.default)


def parse_bins(
    spec: Any, names: Sequence[str], conditions: Sequence[str], decision: Sequence[str] = (), decimal: str = "."
) -> Bins | None:
    """Understand what is asked for, or say what is wrong with it.

    Parameters
    ----------
    spec : {"quantile:k", "width:k", "mdlp"}, mapping or None
    names : sequence of str
        All columns of the table, to which positions refer.
    conditions, decision : sequence of str
    decimal : {".", ","}

    Examples
    --------
    >>> parse_bins({0: "quantile:4", "b": [0.5, 2]}, ["a", "b", "d"], ["a", "b"]).spec
    {'a': 'quantile:4', 'b': [0.5, 2.0]}
    """
    if decimal not in (".", ","):
        raise TableError(f"The 'decimal' parameter must be '.' or ','. Got {decimal!r} instead.")
    if spec is None:
        return None
    if isinstance(spec, str):
        return Bins(spec, default=_rule(spec), decimal=decimal)
    if not isinstance(spec, Mapping):
        raise TableError(
            f"The 'bins' parameter must be one of {', '.join(_METHODS)}, or a mapping of columns to these or to "
            f"lists of cut points. Got {spec!r:.60} instead."
        )
    rules: dict[str, Rule] = {}
    for given, asked in spec.items():
        name = resolve(names, given, "column of bins")
        if name in decision:
            raise TableError(f"{name!r} is the decision, and bins cut conditions only. Cut it before, as a new column.")
        if name not in conditions:
            raise unknown_name("condition of bins", name, conditions)
        if name in rules:
            raise TableError(f"The column of bins {name!r} is given twice. Name it once.")
        if asked is not None:
            rules[name] = _rule(asked)
    return Bins(
        {name: list(r.cuts) if r.given else _written(r) for name, r in rules.items()}, columns=rules, decimal=decimal
    )


def written_spec(spec: Spec | None, names: Sequence[str]) -> str | dict[str, Any] | None:
    """Return a spec as JSON can hold it, with the names of its columns.

    Examples
    --------
    >>> written_spec({0: "mdlp", "b": (1, 2)}, ["a", "b"])
    {'a': 'mdlp', 'b': [1.0, 2.0]}
    """
    if spec is None or isinstance(spec, str):
        return spec
    return {
        written_name(name, names): asked if asked is None or isinstance(asked, str) else list(map(float, asked))
        for name, asked in spec.items()
    }


def _written(rule: Rule) -> str:
    return f"{rule.method}:{rule.k}" if rule.k else rule.method


def _rule(asked: Any) -> Rule:
    if not isinstance(asked, str):
        return Rule("cuts", cuts=_given_cuts(asked))
    method, _, number = asked.strip().partition(":")
    if method == "mdlp" and not number:
        return Rule(method)
    if method not in ("quantile", "width"):
        raise unknown_name("bins", asked, _METHODS)
    k = int(number) if number.isascii() and number.isdigit() and len(number) < 9 else 0
    if not 2 <= k <= _MOST_BINS:
        raise TableError(
            f"bins={asked!r} needs a number of bins from 2 to {_MOST_BINS}, such as {method + ':10'!r}. "
            f"Choose one of: {', '.join(_METHODS)}."
        )
    return Rule(method, k)


def _given_cuts(asked: Any) -> Cuts:
    listed: list[Any] = list(asked) if hasattr(asked, "__iter__") and not isinstance(asked, Mapping) else [None]
    fine = all(isinstance(cut, Real) and not isinstance(cut, bool) for cut in listed)
    cuts = tuple(float(cut) for cut in listed) if fine else ()
    if not fine or not all(map(math.isfinite, cuts)) or any(a >= b for a, b in pairwise(cuts)):
        raise TableError(
            f"Cut points are finite numbers in ascending order. Got {asked!r:.60}; "
            f"pass such a list, or one of: {', '.join(_METHODS)}."
        )
    return cuts


# -- numbers -----------------------------------------------------------------------------------------------


def as_numbers(values: Sequence[Any], *, decimal: str | None = None) -> Floats:
    """Values as float64, NaN where they are missing; NoNumber names the first that is no number.

    Parameters
    ----------
    values : sequence
        None is missing. True and False are no numbers.
    decimal : str, optional
        Text counts as well where it is written as a finite number with this mark before the fraction.

    Examples
    --------
    >>> as_numbers([1, None, Decimal("2.5")]), as_numbers(["1,5"], decimal=",")
    (array([1. , nan, 2.5]), array([1.5]))
    """
    kinds = set(map(type, values))
    if kinds <= {int, float, type(None)}:
        with suppress(OverflowError):
            return np.array(values, np.float64)
    if decimal is not None and kinds == {str}:
        texts = [text.strip() if decimal == "." else _pointed(text.strip()) for text in values]
        if _DIGITS.issuperset("".join(texts)):  # of which Python makes numbers as `NUMBER` does, or none
            with suppress(ValueError):
                numbers = np.array(list(map(float, texts)))
                if np.isfinite(numbers).all():
                    return numbers
    found = np.empty(len(values))
    for i, value in enumerate(values):
        found[i] = _number(value, decimal)
    return found


def _number(value: Any, decimal: str | None) -> float:
    if value is None:
        return math.nan
    if isinstance(value, str):
        text = value.strip()
        number = math.inf
        if decimal is not None and _NUMBER.match(text if decimal == "." else _pointed(text)):
            number = float(_pointed(text) if decimal != "." else text)
        if math.isinf(number):
            raise NoNumber(value)
        return number
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (Real, Decimal)):
        try:
            if value != value:
                return math.nan
        except TypeError:  # pandas.NA has no truth value
            return math.nan
        raise NoNumber(value)
    try:
        return float(value)
    except OverflowError:
        whole: Any = value
        return math.inf if whole > 0 else -math.inf


def _pointed(text: str) -> str:
    """Text with a comma for its mark, with a point instead; a point in it makes it no number."""
    return text.replace(".", "?").replace(",", ".")


def looks_continuous(values: Iterable[Any]) -> bool:
    """Whether values are numbers with fractions, by type or, in text, as written; the first thousand tell.

    Examples
    --------
    >>> looks_continuous([1.0, None, 2.5]), looks_continuous(["1.5", "2"]), looks_continuous(["1", "2"])
    (True, True, False)
    """
    some = [value for value in islice(values, 1000) if value is not None]
    kinds = set(map(type, some))
    if not some or not all(issubclass(kind, str) for kind in kinds):
        return bool(some) and all(issubclass(kind, (float, np.floating, Decimal)) for kind in kinds)
    numbers = all(_NUMBER.match(value) or re.match(COMMA_NUMBER, value) for value in some)
    return numbers and any(mark in value for value in some for mark in ".,")


def place(numbers: Floats, cuts: Sequence[float]) -> NDArray[np.int64]:
    """Bin of every number, -1 for NaN.

    Examples
    --------
    >>> place(np.array([1.0, 1.5, 9.0, np.nan]), (1.0, 2.0)).tolist()
    [0, 1, 2, -1]
    """
    found = np.searchsorted(np.asarray(cuts, np.float64), numbers, side="left").astype(np.int64)
    found[np.isnan(numbers)] = -1
    return found


def bin_column(
    column: Column, rule: Rule, classes: Array, counts: Counts, *, decimal: str | None = None
) -> tuple[Column, Cuts]:
    """Cut a coded column, whose rows have these classes and count so much.

    Examples
    --------
    >>> column = Column(np.array([0, 1, 2, 2], np.uint8), [7.5, None, 2])
    >>> cut, cuts = bin_column(column, Rule("quantile", 2), np.zeros(4, np.uint8), np.ones(4, np.int64))
    >>> cuts, [cut.values[code] for code in cut.codes]
    ((2.0,), [1, None, 0, 0])
    """
    numbers = as_numbers(column.values, decimal=decimal)
    cuts = rule.cuts
    if not rule.given:
        by_value = np.bincount(column.codes, counts, len(numbers)).astype(np.int64)  # exact below 2^53
        if rule.method == "mdlp":
            known = np.isfinite(numbers) & (by_value > 0)
            at = np.full(len(numbers), -1)
            values, at[known] = np.unique(numbers[known] + 0.0, return_inverse=True)
            cuts = _cuts(rule, values, at[column.codes], counts, classes)
        else:
            cuts = find_cuts(rule, numbers, by_value)
    found, lut = np.unique(place(numbers, cuts), return_inverse=True)
    codes = smallest_codes(lut[column.codes], len(found))
    return Column(codes, [None if b < 0 else b for b in found.tolist()], merged=True), cuts


def apply(values: Any, cuts: Sequence[float], name: str = "") -> Any:
    """Bins of one column, in the same kind of column; missing stays missing.

    Parameters
    ----------
    values : (n,) array, Series of pandas or polars, or list
    cuts : sequence of float
        As in `Reduct.cuts`.
    name : str
        The column's name, for messages.

    Returns
    -------
    array of the same type, Series of whole numbers, or list

    Examples
    --------
    >>> apply(np.array([0.5, np.nan, 3.0]), (1.0, 2.0)), apply([0.5, None, 3], (1.0, 2.0))
    (array([ 0., nan,  2.]), [0, None, 2])
    """
    root = type(values).__module__.partition(".")[0]
    try:
        if root == "polars":
            import polars as pl

            found = place(_of_polars(values), cuts)
            return pl.Series(values.name, found).replace(-1, None)
        if root == "pandas" and hasattr(values, "index"):
            found = place(as_numbers(values.tolist()), cuts)
            return type(values)(found, index=values.index, name=values.name, dtype="Int64").mask(found < 0)
        if not isinstance(values, np.ndarray):
            return [None if b < 0 else b for b in place(as_numbers(list(values)), cuts).tolist()]
        if values.dtype.kind in "iuf" and values.dtype.itemsize <= 8:
            found = place(values.astype(np.float64), cuts)
        else:
            found = place(as_numbers(values.tolist()), cuts)
    except NoNumber as error:
        raise NoNumber(error.value, name) from None
    if values.dtype.kind == "O":
        return np.array([None if b < 0 else b for b in found.tolist()], object)
    made = found.astype(np.promote_types(values.dtype, np.min_scalar_type(len(cuts))))
    if made.dtype.kind == "f":
        made[found < 0] = np.nan
    return made


def _of_polars(series: Any) -> Floats:
    """Numbers of a polars Series, NaN where it is null."""
    import polars as pl

    dtype = series.dtype
    if not dtype.is_numeric():
        return as_numbers(series.to_list())
    if dtype.is_decimal() or dtype in (pl.Int128, pl.UInt128):
        series = series.cast(pl.String)  # whose digits are rounded once
    numbers: Floats = series.cast(pl.Float64).fill_null(math.nan).to_numpy()
    return numbers


# -- cuts --------------------------------------------------------------------------------------------------


def find_cuts(rule: Rule, numbers: Floats, counts: Counts, classes: Array | None = None) -> Cuts:
    """Where to cut a column, from how many objects have each number, for MDLP by decision.

    Parameters
    ----------
    rule : Rule
    numbers : (n,) array of float64
        In any order, and as often as one likes. NaN and ±∞ do not count.
    counts : (n,) array of int64
        How many objects have the number (and the class).
    classes : (n,) array of int, optional

    Examples
    --------
    >>> ages = np.array([20.0, 30.0, 40.0, 50.0])
    >>> find_cuts(Rule("quantile", 2), ages, np.array([1, 1, 1, 1])), find_cuts(Rule("width", 3), ages, np.ones(4, int))
    ((30.0,), (30.0, 40.0))
    """
    if rule.given:
        return rule.cuts
    known = np.isfinite(numbers) & (counts > 0)
    values, at = np.unique(numbers[known] + 0.0, return_inverse=True)  # -0.0 + 0.0 is 0.0
    weights = counts[known].astype(np.int64)
    return _cuts(rule, values, at, weights, np.zeros(len(at), np.int64) if classes is None else classes[known])


def _cuts(rule: Rule, values: Floats, at: Array, counts: Counts, classes: Array) -> Cuts:
    """Cuts between sorted values, from how many objects have which, by rank and class."""
    if len(values) < 2:
        return ()
    if rule.method == "width":
        found = _width(values, rule.k)
    elif rule.method == "quantile":
        found = _quantile(values, _sums(at, counts, len(values)), rule.k)
    else:
        low = mdlp_splits(at, classes, counts)
        if not len(low):
            return ()
        below, above = values[low], values[low + 1]
        middle = below / 2 + above / 2
        found = np.where(middle < above, middle, below)
    return tuple(np.unique(found[found < values[-1]]).tolist())


def _sums(at: Array, counts: Counts, n: int) -> Counts:
    sums = np.zeros(n, np.int64)
    np.add.at(sums, at, counts)
    return sums


def _width(values: Floats, k: int) -> Floats:
    low, high = float(values[0]), float(values[-1])
    if math.isinf(high - low):
        return np.linspace(low / 2, high / 2, k + 1)[1:-1] * 2
    return np.linspace(low, high, k + 1)[1:-1]


def _quantile(values: Floats, counts: Counts, k: int) -> Floats:
    """For j = 1 … k-1 the smallest value that at least j·n/k objects do not exceed: the inverse of the CDF."""
    upto = np.cumsum(counts)
    n = int(upto[-1])
    k = min(k, n)  # from k = n on every value is cut off
    wanted = np.array([-(-j * n // k) for j in range(1, k)], np.int64)
    return values[np.searchsorted(upto, wanted, side="left")]
