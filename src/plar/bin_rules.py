"""The `bins` option: which columns are cut into bins, and by which rule."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from numbers import Real
from typing import Any, TypeAlias

from plar.columns import resolve
from plar.errors import ParameterError, TableError, unknown_name

#: what `bins` may be
Spec: TypeAlias = str | Mapping[Any, str | Sequence[float] | None]
Cuts: TypeAlias = tuple[float, ...]

_METHODS = ("quantile:k", "width:k", "mdlp")
_MOST_BINS = 1 << 16


@dataclass(frozen=True, slots=True)
class Rule:
    """How one column is cut: by a method, into `k` bins where it takes them, or at `cuts`."""

    method: str
    k: int = 0
    cuts: Cuts = ()

    @property
    def given(self) -> bool:
        """Whether the cut points are known without the data."""
        return self.method == "cuts"

    @property
    def spec(self) -> str | list[float]:
        """The rule as the user writes it."""
        return list(self.cuts) if self.given else f"{self.method}:{self.k}" if self.k else self.method


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
        raise ParameterError(
            f"The 'bins' parameter must be one of {', '.join(_METHODS)}, or a mapping of columns to these or to "
            f"lists of cut points. Got {spec!r:.60} instead."
        )
    rules: dict[str, Rule] = {}
    for given, asked in spec.items():
        name = resolve(names, given, "column of bins")
        if name in decision:
            raise TableError(f"{name!r} is the decision, which bins= does not cut. Use decision_bins=.")
        if name not in conditions:
            raise unknown_name("column of bins", name, conditions)
        if name in rules:
            raise TableError(f"The column of bins {name!r} is given twice. Name it once.")
        if asked is not None:
            rules[name] = _rule(asked)
    return Bins({name: rule.spec for name, rule in rules.items()}, columns=rules)


def parse_decision_bins(spec: Any) -> Rule | None:
    """Parse the `decision_bins` option; MDLP is refused, because it would need another decision.

    >>> parse_decision_bins("quantile:4"), parse_decision_bins([1, 2.5])
    (Rule(method='quantile', k=4, cuts=()), Rule(method='cuts', k=0, cuts=(1.0, 2.5)))
    """
    rule = None if spec is None else _rule(spec)
    if rule is not None and rule.method == "mdlp":
        raise ParameterError(
            "decision_bins='mdlp' would cut the decision by itself. Choose quantile:k, width:k or a list of cut points."
        )
    return rule


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
        raise ParameterError(
            f"bins={asked!r} needs a number of bins from 2 to {_MOST_BINS}, such as {method + ':10'!r}. "
            f"Choose one of: {', '.join(_METHODS)}."
        )
    return Rule(method, k)


def _given_cuts(asked: Any) -> Cuts:
    listed: list[Any] = list(asked) if hasattr(asked, "__iter__") and not isinstance(asked, Mapping) else [None]
    fine = all(isinstance(cut, Real) and not isinstance(cut, bool) for cut in listed)
    cuts = tuple(float(cut) for cut in listed) if fine else ()
    if not fine or not all(map(math.isfinite, cuts)) or any(a >= b for a, b in pairwise(cuts)):
        raise ParameterError(
            f"Cut points are finite numbers in ascending order. Got {asked!r:.60}; "
            f"pass such a list, or one of: {', '.join(_METHODS)}."
        )
    return cuts
