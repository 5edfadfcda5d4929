"""The four measures Θ(D|B) = Σ θ(E) in exact integers, and user-defined measures.

Three of the four have one form, with a convex f that is zero at 0 and 1:

    θ(E) = f(|E|) − Σ_j f(|D_j|)        SCE f(n) = n·L(n), L(n) = round(2^32·ln n)
                                        LCE f(n) = n(n − 1)
                                        CCE f(n) = n²(n − 1)

PR counts: θ(E) = −|E| if E is pure, else 0. Integers add up to the same sum in any order, so threads,
partitions and devices agree to the bit; dividing by the normaliser gives Θ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from functools import cache, lru_cache, partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from plar.errors import ParameterError, unknown_name

__all__ = ["CCE", "LCE", "MEASURES", "PR", "SCE", "Measure", "as_measure", "f_table", "log_anchors"]

Counts = NDArray[np.int64]

#: how a measure is computed: by counting pure classes, by one of the convex f, or by the user's function
PURE: Final = 0
ENTROPY: Final = 1
PAIRS: Final = 2
TRIPLES: Final = 3
OWN: Final = 4

#: SCE counts in units of 2^-32 nats
LOG_UNIT: Final = 1 << 32
#: f comes from a table up to here, and from one routine beyond it
TABLE_LIMIT: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Measure:
    """An evaluation function Θ(D|B) = Σ θ(E) / normaliser; lower is better.

    Parameters
    ----------
    name : str
    theta : function of (m,) int64 decision counts of one class, returning an int64
        Must be compilable by numba.
    normaliser : function of the number of objects
        What the integer sum is divided by.
    drop_pure : bool
        Whether a pure class keeps its θ however it is split, so that its rows can be dropped from the search.

    Examples
    --------
    The share of rows outside the majority of their class:

    >>> import plar
    >>> def minority(counts):
    ...     return counts.sum() - counts.max()
    >>> own = plar.Measure("minority", minority, normaliser=lambda n: n, drop_pure=True)
    >>> plar.theta({"a": [0, 0, 1], "d": ["Y", "N", "N"]}, ["a"], decision="d", measure=own)
    0.3333333333333333
    """

    name: str
    theta: Callable[[Counts], Any]
    normaliser: Callable[[int], float]
    drop_pure: bool = False
    kind: int = field(default=OWN, repr=False)

    def __post_init__(self) -> None:
        for name in ("theta", "normaliser"):
            function = getattr(self, name)
            if not callable(function):
                got = type(function).__name__
                raise ParameterError(f"The {name!r} of measure {self.name!r} must be a function. Got {got} instead.")

    def tie_bound(self, n_objects: int) -> int:
        """How far above the smallest Θ a candidate still ties: 0, for SCE the rounding of L."""
        return 2 * n_objects if self.kind == ENTROPY else 0

    def value(self, total: int, n_objects: int) -> float:
        """Θ as a number from its integer."""
        divisor = self.normaliser(n_objects)
        return total / divisor if divisor and total else 0.0

    def significances(self, changes: Iterable[int], n_objects: int) -> list[float]:
        """How much Θ changed, as numbers; the four measures never grow, though SCE's integers may, by rounding."""
        divisor = self.normaliser(n_objects)
        least = -math.inf if self.kind == OWN else 0
        return [change / divisor if divisor and change > least and change else 0.0 for change in changes]


def _pure(counts: Counts) -> int:
    size = counts.sum()
    return -int(size) if counts.max() == size else 0


def _convex(kind: int, counts: Counts) -> int:
    return f_of(kind, int(counts.sum())) - sum(f_of(kind, int(d)) for d in counts)


PR: Final = Measure("PR", _pure, lambda n: n, drop_pure=True, kind=PURE)
SCE: Final = Measure("SCE", partial(_convex, ENTROPY), lambda n: LOG_UNIT * n, drop_pure=True, kind=ENTROPY)
LCE: Final = Measure("LCE", partial(_convex, PAIRS), lambda n: n * n, drop_pure=True, kind=PAIRS)
CCE: Final = Measure("CCE", partial(_convex, TRIPLES), lambda n: n * n * (n - 1), drop_pure=True, kind=TRIPLES)
MEASURES: Final = {m.name: m for m in (PR, SCE, LCE, CCE)}


def as_measure(measure: str | Measure) -> Measure:
    """Look up a measure by name, in any case.

    Examples
    --------
    >>> as_measure("lce").name
    'LCE'
    >>> as_measure("gini")
    Traceback (most recent call last):
    plar.errors.UnknownNameError: Unknown measure 'gini'. Choose one of: PR, SCE, LCE, CCE.
    """
    if isinstance(measure, Measure):
        return measure
    if not isinstance(measure, str):
        raise ParameterError(f"The measure must be a name or a plar.Measure. Got {type(measure).__name__} instead.")
    if measure.upper() not in MEASURES:
        raise unknown_name("measure", measure, MEASURES)
    return MEASURES[measure.upper()]


@lru_cache(maxsize=1 << 14)
def exact_log(n: int, unit: int = LOG_UNIT) -> int:
    """L(n) = round(2^32·ln n), correctly rounded."""
    with localcontext() as context:
        context.prec = 50
        return int((Decimal(n).ln() * unit).to_integral_value())


def f_of(kind: int, n: int) -> int:
    """f(n) of a convex measure as a Python integer; the kernels compute the same."""
    if kind == PAIRS:
        return n * (n - 1)
    if kind == TRIPLES:
        return n * n * (n - 1)
    return n * exact_log(n) if n > 1 else 0


@cache
def log_anchors() -> NDArray[np.uint64]:
    """Ln 2 and ln 512 … ln 1023 in units of 2^-120, as high and low words, for the kernels beyond the table."""
    exact = [exact_log(q, 1 << 120) for q in (2, *range(512, 1024))]
    return np.array([divmod(value, 1 << 64) for value in exact], np.uint64)


@lru_cache(maxsize=8)
def _log_table(size: int) -> NDArray[np.int64]:
    scaled: NDArray[np.float64] = LOG_UNIT * np.log(np.maximum(np.arange(size), 1))
    table: NDArray[np.int64] = np.rint(scaled).astype(np.int64)
    # A float logarithm is accurate to about 2^-15 units, and differs between machines:
    # whatever is that close to a half is rounded from 50 digits.
    for n in np.flatnonzero(np.abs(scaled - np.floor(scaled) - 0.5) < 2.0**-12):
        table[n] = exact_log(int(n))
    return table


def f_table(kind: int, largest: int) -> NDArray[np.int64]:
    """f(0), f(1), … up to `largest` or the table's limit, whichever is smaller."""
    size = min(largest, TABLE_LIMIT) + 1
    n = np.arange(size, dtype=np.int64)
    if kind == ENTROPY:  # tables of logarithms come in powers of two, so that a few serve all
        return n * _log_table(min(1 << max(10, math.ceil(math.log2(size))), TABLE_LIMIT + 1))[:size]
    if kind == PURE:
        return n
    if kind == PAIRS:
        return n * (n - 1)
    return n * n * (n - 1)
