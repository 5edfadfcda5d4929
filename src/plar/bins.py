"""Cutting numbers into bins: the `bins` option, where the cut points are, and which bin a number is in.

Cut points depend only on the multiset of (number, decision), not on the order of the rows or on what counted
them, so every engine and every format finds the same. Bin i is the interval (cut[i-1], cut[i]].

Dates, times and durations are numbers of seconds (`plar.coding.times.written_times`), as values and as text alike.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from plar.coding.assemble import Counts
from plar.coding.codes import Column, is_missing, sample_of
from plar.coding.column_names import NameIndex, resolve
from plar.coding.mdlp import mdlp_splits
from plar.coding.missing import NO_SPELLINGS, MissingSpellings
from plar.coding.numerals import COMMA_NUMBER, NUMBER, pointed
from plar.coding.series import encode_column
from plar.coding.times import TimeCuts, is_time, kind_of_times, written_times
from plar.errors import Given, Parameter, ParameterError, Part, PythonOnly, TableError, Term, unknown_name, warn
from plar.grouping.factorize import factorized
from plar.grouping.partition import Array, smallest_codes
from plar.runtime.lazy_polars import pl

#: what `bins` may be
Spec: TypeAlias = str | Mapping[Any, str | Sequence[float] | None]
Cuts: TypeAlias = tuple[float, ...]
Floats: TypeAlias = NDArray[np.float64]

_METHODS = ("auto", "auto:k", "quantile:k", "width:k", "mdlp")
_DECISION_METHODS = ("quantile:k", "width:k")
#: methods that cut no decision, and what is said of them
_WHY_NO_DECISION: dict[str, tuple[Part, ...]] = {
    "mdlp": ("would cut the ", Term("decision"), " by itself"),
    "auto": ("cuts only the columns that predict the ", Term("decision")),
}
_MAX_BINS = 1 << 16
#: bins of `auto` without a number
_QUARTILES = 4
#: `auto` takes at most this many different numbers for categories, and leaves them uncut
_MOST_CATEGORIES = 12
#: more different numbers are a quantity, unless they are codes from 0 or 1 on
MOST_DECISIONS = 20
_MAX_CODES = 100
_MIN_ROWS_PER_CODE = 3

_NUMBER = re.compile(NUMBER)
_DIGITS = frozenset("0123456789+-.eE")


@dataclass(frozen=True, slots=True)
class Rule:
    """How one column is cut: by a method, into `k` bins where it takes them, or at `cuts`."""

    method: str
    k: int = 0
    cuts: Cuts = ()
    #: whether a column of typed tables that holds nothing but written numbers is cut too, as in text files
    text: bool = field(default=False, repr=False)

    @property
    def given(self) -> bool:
        """Whether the cut points are known without the data."""
        return self.method == "cuts"

    @property
    def spec(self) -> str | list[float]:
        """The rule as the user writes it."""
        if self.given:
            return list(self.cuts)
        return f"{self.method}:{self.k}" if self.k else self.method


@dataclass(frozen=True, slots=True)
class Bins:
    """How the columns of a table are cut: `default` those that hold numbers, `columns` those that must hold them."""

    spec: str | dict[str, Any]
    default: Rule | None = None
    columns: Mapping[str, Rule] = field(default_factory=dict)

    def rule(self, name: str) -> Rule | None:
        """The rule for a condition, if it is to be cut."""
        return self.columns.get(name, self.default)


def parse_bins(spec: Any, names: Sequence[str], conditions: Sequence[str], decision: Sequence[str] = ()) -> Bins | None:
    """Parse the `bins` option; positions refer to `names`.

    >>> parse_bins({0: "quantile:4", "b": [0.5, 2]}, ["a", "b", "d"], ["a", "b"]).spec
    {'a': 'quantile:4', 'b': [0.5, 2.0]}
    """
    if spec is None:
        return None
    if isinstance(spec, str):
        return Bins(spec, default=_rule(spec))
    if not isinstance(spec, Mapping):
        _refuse_bare_number(spec, "bins")
        raise ParameterError(
            Parameter("bins"),
            f" must be one of {', '.join(_METHODS)}, or a mapping of columns to these or to lists of cut points. "
            f"Got {spec!r:.60} instead.",
        )
    rules: dict[str, Rule] = {}
    index = NameIndex(names)
    candidates = frozenset(conditions)
    for column, rule in spec.items():
        name = resolve(index, column, "column of bins")
        if name in decision:
            raise TableError(
                f"{name!r} is the ",
                Term("decision"),
                ", which ",
                Given("bins"),
                " does not cut. Use ",
                Given("decision_bins"),
                ".",
            )
        if name not in candidates:
            raise unknown_name("column of bins", name, conditions)
        if name in rules:
            raise TableError(f"The column of bins {name!r} is given twice. Name it once.")
        if rule is not None:
            rules[name] = _rule(rule)
    return Bins({name: rule.spec for name, rule in rules.items()}, columns=rules)


def parse_decision_bins(spec: Any) -> Rule | None:
    """Parse the `decision_bins` option; MDLP, which would need another decision, and `auto` are refused.

    >>> parse_decision_bins("quantile:4"), parse_decision_bins([1, 2.5])
    (Rule(method='quantile', k=4, cuts=()), Rule(method='cuts', k=0, cuts=(1.0, 2.5)))
    """
    rule = None if spec is None else _rule(spec, "decision_bins", _DECISION_METHODS)
    if rule is not None and rule.method in _WHY_NO_DECISION:
        raise ParameterError(
            Given("decision_bins", rule.method),
            " ",
            *_WHY_NO_DECISION[rule.method],
            ". Choose quantile:k, width:k or a list of cut points.",
        )
    return rule


def _rule(spec: Any, option: str = "bins", methods: Sequence[str] = _METHODS) -> Rule:
    _refuse_bare_number(spec, option)
    if not isinstance(spec, str):
        return Rule("cuts", cuts=_cut_points(spec, methods), text=True)
    method, _, number = spec.strip().partition(":")
    if method in ("auto", "mdlp") and not number:
        return Rule(method, text=method == "auto")
    if method not in ("auto", "quantile", "width"):
        raise unknown_name("bins", spec, methods)
    k = int(number) if number.isascii() and number.isdigit() and len(number) < 9 else 0
    if not 2 <= k <= _MAX_BINS:
        raise ParameterError(
            Given(option, spec),
            f" needs a number of bins from 2 to {_MAX_BINS}, such as {method + ':10'!r}. "
            f"Choose one of: {', '.join(methods)}.",
        )
    return Rule(method, k, text=method == "auto")


def _refuse_bare_number(spec: Any, option: str) -> None:
    """Refuse a number of bins without a method, which many expect to be enough."""
    text = str(spec).strip()
    if not isinstance(spec, (str, Integral)) or not text.isascii() or not text.isdigit():
        return
    k = text if len(text) < 9 and 2 <= int(text) <= _MAX_BINS else "10"
    raise ParameterError(
        Given(option, spec),
        f" does not say how to cut. For {k} bins of about equally many rows, "
        f"pass 'quantile:{k}'; for bins of equal width, 'width:{k}'. A cut point is written {int(text)}.0",
        PythonOnly(", in Python in a list"),
        ".",
    )


def _cut_points(spec: Any, methods: Sequence[str]) -> Cuts:
    """Cut points that the user gives."""
    if hasattr(spec, "__iter__") and not isinstance(spec, Mapping):
        points: list[Any] = list(spec)
        if all(isinstance(point, Real) and not isinstance(point, bool) for point in points):
            cuts = tuple(float(point) for point in points)
            if all(map(math.isfinite, cuts)) and all(a < b for a, b in pairwise(cuts)):
                return cuts
    raise ParameterError(
        f"Cut points are finite numbers in ascending order. Got {spec!r:.60}; "
        f"pass such a list, or one of: {', '.join(methods)}."
    )


# -- numbers and their bins -----------------------------------------------------------------------------------


class NoNumber(TableError):
    """A column to be cut holds a value that is not a number."""

    def __init__(self, value: Any, name: str) -> None:
        self.value = value
        self.column = name
        remedy: list[Part] = ["Name it in ", Given("na"), " if it means missing, or leave the column out of bins."]
        if _is_comma_number(value):
            remedy = ["Pass ", Given("decimal", ","), "."]
        super().__init__(
            f"Column {name!r} cannot be cut into bins: it holds {value!r}, which is not a number. ", *remedy
        )


def as_numbers(values: Sequence[Any], name: str, decimal: str | None) -> Floats:
    """Values as float64, NaN where they are missing; NoNumber names the first that is not a number.

    True and False are not numbers. Text can be one only if `decimal`, its decimal mark, is given; times, which are
    text by now, are numbers of seconds if all values are times.
    """
    kinds = set(map(type, values))
    if str in kinds and kinds <= {str, type(None)}:
        seconds = written_times(values)
        if seconds is not None:
            return seconds
    if kinds <= {int, float, type(None)}:
        with suppress(OverflowError):
            return np.array(values, np.float64)
    if decimal is not None and kinds == {str}:
        texts = [pointed(text.strip(), decimal) for text in values]
        if _DIGITS.issuperset("".join(texts)):  # with these characters, float() agrees with `NUMBER`
            with suppress(ValueError):
                numbers = np.array(list(map(float, texts)))
                if np.isfinite(numbers).all():
                    return numbers
    parsed = [_number(value, decimal) for value in values]
    if None in parsed:
        raise NoNumber(values[parsed.index(None)], name)
    return np.array(parsed, np.float64)


def _number(value: Any, decimal: str | None) -> float | None:
    if isinstance(value, str):
        text = pointed(value.strip(), decimal) if decimal is not None else ""
        number = float(text) if _NUMBER.match(text) else math.inf
        return None if math.isinf(number) else number
    if is_missing(value):
        return math.nan
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (Real, Decimal)):
        return None
    try:
        return float(value)
    except OverflowError:
        whole: Any = value
        return math.inf if whole > 0 else -math.inf


def are_numbers(values: Iterable[Any]) -> bool:
    """Whether values are numbers, by type or, in text, as written, judged by a thousand of them."""
    sample = sample_of(value for value in values if value is not None)
    return bool(sample) and all(map(_is_or_writes_number, sample))


def _is_or_writes_number(value: Any) -> bool:
    if isinstance(value, str):
        return bool(_NUMBER.match(value) or re.match(COMMA_NUMBER, value))
    return isinstance(value, (Real, Decimal)) and not isinstance(value, (bool, np.bool_))


def is_quantity(values: Iterable[Any], n_values: int, class_sizes: Callable[[], Sequence[int]]) -> bool:
    """Whether the values of a decision are a quantity, and not categories.

    Numbers are categories if there are at most 20 of them, or if they are exactly 0 … k-1 or 1 … k, with k up to
    100 and at least 3 rows each. `values` are all `n_values` of them, or, if they are many, some;
    `class_sizes` returns how many rows have each.

    >>> is_quantity(range(50), 50, lambda: [3] * 50), is_quantity([i / 2 for i in range(50)], 50, lambda: [3] * 50)
    (False, True)
    """
    if n_values <= MOST_DECISIONS or not are_numbers(values):
        return False
    if n_values > _MAX_CODES + 1:  # one may be missing
        return True
    sized = zip(values, class_sizes(), strict=True)
    decisions = [(_number(value, "."), n_rows) for value, n_rows in sized if value is not None]
    n_decisions = len(decisions)
    if n_decisions <= MOST_DECISIONS:
        return False
    numbers = {number for number, _ in decisions}
    consecutive = any(numbers == set(range(first, first + n_decisions)) for first in (0, 1))
    are_codes = consecutive and n_decisions <= _MAX_CODES and min(size for _, size in decisions) >= _MIN_ROWS_PER_CODE
    return not are_codes


def leaves_as_they_are(rule: Rule, name: str, values: Sequence[Any] | None, n_values: int, decimal: str) -> bool:
    """Whether a rule cuts nothing of a column, by its values, or some of them: `auto` if these are few, or words."""
    if rule.method != "auto" or values is None:
        return False
    if n_values <= _MOST_CATEGORIES:
        return True
    try:
        as_numbers(list(values), name, decimal)
    except NoNumber:
        return True
    return False


def place(numbers: Floats, cuts: Sequence[float]) -> NDArray[np.int64]:
    """Bin of every number, -1 for NaN."""
    bins = np.searchsorted(np.asarray(cuts, np.float64), numbers, side="left").astype(np.int64)
    bins[np.isnan(numbers)] = -1
    return bins


def bin_column(
    column: Column, name: str, rule: Rule, decision_codes: Array, counts: Counts, decimal: str | None
) -> tuple[Column, Cuts]:
    """Cut a coded column, given the decision and the count of each row; text is a number if `decimal` is given."""
    numbers = as_numbers(column.values, name, decimal)
    if rule.method == "mdlp":
        number_codes: Array = column.codes
        weights = counts
        if 2 * len(numbers) < len(number_codes):  # many rows share a number and a decision
            n_decisions = np.uint64(int(decision_codes.max(initial=0)) + 1)
            pairs, first = factorized(number_codes.astype(np.uint64) * n_decisions + decision_codes)
            number_codes = number_codes[first]
            decision_codes = decision_codes[first]
            weights = np.bincount(pairs, counts).astype(np.int64)
        cuts = find_cuts(rule, numbers[number_codes], weights, decision_codes)
    else:
        cuts = find_cuts(rule, numbers, np.bincount(column.codes, counts, len(numbers)).astype(np.int64))
    kind = kind_of_times(column.values)
    if kind is not None:
        cuts = TimeCuts(cuts, kind)
    bins, lut = np.unique(place(numbers, cuts), return_inverse=True)
    codes = smallest_codes(lut[column.codes], len(bins))
    return Column(codes, [None if b < 0 else b for b in bins.tolist()], merged=True), cuts


def cut_columns(
    columns: Iterable[tuple[str, Column]],
    bins: Bins,
    decision_codes: Array,
    counts: Counts,
    cuts: dict[str, Cuts],
    *,
    decimal: str,
    text: bool = False,
    left: dict[str, str] | None = None,
) -> Iterator[Column]:
    """Cut those columns that are to be cut and hold numbers, one by one; cut points go into `cuts`.

    Columns that have cut points already are left as they are, and so are constant ones, unless a rule names
    them, and those that `auto` does not cut. `text` says that the values are as written in a text file: then text can
    be a number, with this decimal mark, for every rule, else only for those that say so. Columns that look like numbers
    or times but are not cut go into `left`, each with a value that is neither; by default they are warned of.
    `decision_codes` and `counts` are those of every row.
    """
    not_cut: dict[str, str] = {} if left is None else left
    for name, column in columns:
        rule = bins.rule(name)
        if rule is not None and name not in cuts and not _has_few_values(rule, column, named=name in bins.columns):
            mark = decimal if text or rule.text else None
            try:
                binned, points = bin_column(column, name, rule, decision_codes, counts, mark)
                may_have_no_cut = rule.method != "auto" and (name in bins.columns or not _is_constant(column, counts))
                if points or may_have_no_cut:
                    column = binned
                    cuts[name] = points
            except NoNumber:
                odd = _odd_codes(column, counts, mark)
                least = min((column.values[code] for code in odd), key=str)
                if name in bins.columns:
                    raise NoNumber(least, name) from None
                looks_numeric = 2 * _n_rows(column, odd, counts) <= _n_present(column, counts)
                if mark and (looks_numeric or _is_comma_number(least)) and not _are_categories(rule, column, counts):
                    not_cut[name] = least
        yield column
    if left is None:
        warn_left(not_cut)


def _has_few_values(rule: Rule, column: Column, *, named: bool) -> bool:
    """Whether `auto` has nothing to look at: few values are left as they are, unless a column must hold numbers."""
    return rule.method == "auto" and not named and len(column.values) <= _MOST_CATEGORIES


def _odd_codes(column: Column, counts: Counts, decimal: str | None) -> list[int]:
    """Codes of the values that keep a column from being cut: no times where most are times, else no numbers."""
    sample = sample_of(value for value in column.values if value is not None)
    if 2 * sum(map(_writes_time, sample)) > len(sample):
        no_times = [code for code, value in enumerate(column.values) if value is not None and not _writes_time(value)]
        if no_times:
            return no_times
    return [code for code, value in enumerate(column.values) if _number(value, decimal) is None]


def _writes_time(value: Any) -> bool:
    return isinstance(value, str) and is_time(value)


def _n_rows(column: Column, codes: Sequence[int], counts: Counts) -> int:
    """How many objects have one of these codes."""
    return int(counts[np.isin(column.codes, codes)].sum())


def _n_present(column: Column, counts: Counts) -> int:
    """How many objects have a value."""
    return int(counts.sum()) - (0 if column.missing is None else _n_rows(column, [column.missing], counts))


def _is_constant(column: Column, counts: Counts) -> bool:
    return len(np.unique(column.codes[counts > 0])) < 2


def _are_categories(rule: Rule, column: Column, counts: Counts) -> bool:
    """Whether `auto` takes the numbers and times among the values, as they are written, for categories."""
    if rule.method != "auto":
        return False
    present = [column.values[code] for code in np.unique(column.codes[counts > 0])]
    return sum(_is_or_writes_number(value) or _writes_time(value) for value in present) <= _MOST_CATEGORIES


def cut_decision(column: Column, name: str, rule: Rule, counts: Counts, *, decimal: str | None) -> tuple[Column, Cuts]:
    """Cut a decision of numbers into bins; warn if all rows fall into one."""
    binned, cuts = bin_column(column, name, rule, np.zeros(len(counts), np.uint32), counts, decimal)
    if not cuts or len(binned.values) < 2:
        warn(
            Given("decision_bins", rule.spec),
            " puts all numbers of the ",
            Term("decision"),
            f" {name!r} into one class, so that there is nothing to predict. "
            "Take more bins, or cut points within its numbers: ",
            Given("decision_bins", [1.5, 3]),
            ".",
        )
    return binned, cuts


def _is_comma_number(value: Any) -> bool:
    return isinstance(value, str) and "," in value and re.match(COMMA_NUMBER, value) is not None


def warn_left(left: Mapping[str, str]) -> None:
    """Warn of columns of text that look like numbers but are not cut, each given with a value that is not a number."""
    if not left:
        return
    shown = ", ".join(f"{name!r} ({value!r})" for name, value in list(left.items())[:5])
    if len(left) > 5:
        shown += f" and {len(left) - 5} more"
    remedies: list[Part] = []
    n_comma_numbers = sum(map(_is_comma_number, left.values()))
    if n_comma_numbers:
        remedies += [" If commas are decimal marks, pass ", Given("decimal", ","), "."]
    if n_comma_numbers < len(left):
        remedies += [" If a value means missing, list it in ", Given("na"), "."]
    warn(f"Compared as text, because not all values are numbers: {shown}.", *remedies)


def apply(
    values: Any,
    cuts: Sequence[float],
    name: str = "",
    *,
    na: MissingSpellings = NO_SPELLINGS,
    decimal: str = ".",
    text: bool = False,
) -> Any:
    """The bins of one column, as the same kind of column; missing stays missing, in text files also if it is blank."""
    plain = isinstance(values, np.ndarray) and values.dtype.kind in "iuf" and values.dtype.itemsize <= 8
    if plain and not na.numbers:
        numbers = values.astype(np.float64)
    else:
        column = encode_column(values, na, name, text=text)
        numbers = as_numbers(column.values, name, decimal)[column.codes]
    bins = place(numbers, cuts)
    is_missing_bin = bins < 0
    root = type(values).__module__.partition(".")[0]
    if root == "polars":
        return pl.Series(values.name, bins).replace(-1, None)
    if root == "pandas" and hasattr(values, "index"):
        series = type(values)(bins, index=values.index, name=values.name)
        return series.where(~is_missing_bin) if is_missing_bin.any() else series
    if not isinstance(values, np.ndarray):
        return [None if b < 0 else b for b in bins.tolist()]
    if values.dtype.kind == "O":
        return np.array([None if b < 0 else b for b in bins.tolist()], object)
    smallest = np.min_scalar_type(len(cuts))
    array = bins.astype(np.promote_types(values.dtype, smallest) if values.dtype.kind in "biuf" else smallest)
    if is_missing_bin.any():
        array = array.astype(np.promote_types(array.dtype, np.float16))  # integers have no missing value
        array[is_missing_bin] = np.nan
    return array


def find_cuts(rule: Rule, numbers: Floats, counts: Counts, decision_codes: Array | None = None) -> Cuts:
    """Where to cut a column, given how many objects have each number, and for MDLP each number and decision.

    Numbers may come in any order and repeatedly. NaN and ±∞ are ignored.
    """
    if rule.given:
        return rule.cuts
    counted = np.isfinite(numbers) & (counts > 0)
    values, ranks = np.unique(numbers[counted] + 0.0, return_inverse=True)  # -0.0 + 0.0 is 0.0
    weights = counts[counted]
    if len(values) < 2:
        return ()
    if rule.method == "width":
        points = _width_points(values, rule.k)
    elif rule.method == "mdlp":
        decisions = np.zeros(len(ranks), np.int64) if decision_codes is None else decision_codes[counted]
        points = _mdlp_points(values, mdlp_splits(ranks, decisions, weights))
    else:
        sizes = np.bincount(ranks, weights).astype(np.int64)
        k = rule.k or _QUARTILES
        points = _auto_points(values, sizes, k) if rule.method == "auto" else _quantile_points(values, sizes, k)
    return tuple(np.unique(points[points < values[-1]]).tolist())


def _width_points(values: Floats, k: int) -> Floats:
    low = float(values[0])
    high = float(values[-1])
    # so that neither the range nor a point that is rounded up overflows
    scale = 4.0 if high - low > sys.float_info.max / 4 else 1.0
    return np.linspace(low / scale, high / scale, k + 1)[1:-1] * scale


def _quantile_points(values: Floats, sizes: Counts, k: int) -> Floats:
    """For j = 1 … k-1 the smallest value that at least j·n/k objects do not exceed: the inverse of the CDF."""
    upto = np.cumsum(sizes)
    n = int(upto[-1])
    k = min(k, n)  # from k = n on every value has its own bin
    return values[np.searchsorted(upto, [-(-j * n // k) for j in range(1, k)], side="left")]


def _auto_points(values: Floats, sizes: Counts, k: int) -> Floats:
    """None for few values; else the quantiles, and what gives each value of more than n/k objects a bin.

    Without such a value the quantiles differ, so there are k bins. Such a value is itself a quantile, unless it is the
    largest, so it adds at most one bin, by the cut point below it. There can be k - 1, so there are at most 2k - 1
    bins.
    """
    if len(values) <= _MOST_CATEGORIES:
        return values[:0]
    frequent = np.flatnonzero(k * sizes > sizes.sum())
    below = frequent[frequent > 0] - 1
    return np.concatenate([_quantile_points(values, sizes, k), values[frequent], values[below]])


def _mdlp_points(values: Floats, splits: NDArray[np.int64]) -> Floats:
    """Midway between the values at these ranks and the next; the value itself if there is no number between them."""
    below = values[splits]
    above = values[splits + 1]
    middle = below / 2 + above / 2
    return np.where(middle < above, middle, below)
