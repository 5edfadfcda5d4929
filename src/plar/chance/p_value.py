"""Whether an attribute says more about the decision than chance: a permutation test with exact moments.

Within each class of U/R, the values of the candidate and the decisions are matched at random. The result is
the same on every machine, to the last bit, and there is no seed to choose.

References
----------
Light and Margolin: An Analysis of Variance for Categorical Data (CATANOVA). Strasser and Weber: On the Asymptotic
Theory of Permutation Statistics. Besag and Clifford: Sequential Monte Carlo p-values.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plar.chance.association import (
    Association,
    ClassBuffers,
    class_buffers,
    count_class,
    deviation_of,
    sort_first,
    varies,
)
from plar.chance.draws import drawn_p_value, seeded, uniform
from plar.chance.statistic import association
from plar.grouping.partition import Index, Ints, Runs
from plar.options import DEFAULT_ALPHA
from plar.runtime.jit import jit
from plar.uncertainty.strata import CrossTab

#: the most work to confirm one candidate, in cells of few objects
_MAX_CELLS: Final = 10_000_000
#: if every cell expects this many objects, the gamma distribution is right even far in the tail
_DENSE_CELL_OBJECTS = 100_000
#: logarithms of binomials are accurate up to this many objects
_MAX_LOG_OBJECTS = 1 << 26
#: above, this many objects can be drawn one by one
_MAX_SINGLE_OBJECTS = 1 << 12


class _Margins(NamedTuple):
    """What all tables that are drawn have in common."""

    #: of each class that matters: numbers of values and decisions, objects of each value, and of each decision, the
    #: largest last
    classes: list[list[int]]
    #: the cost of a draw
    cells: int
    #: the fewest objects that a cell expects
    expected: float


def adjusted_p_value(table: CrossTab, n_candidates: int, level: float = DEFAULT_ALPHA) -> float:
    """The probability that chance alone reaches a candidate's statistic, times the number of candidates.

    To be compared with the level; it may exceed 1.

    Three stages. The tail of the gamma distribution with that mean and variance is the answer if it is above
    the level; below it is only a screen, since it is too small where rare values meet rare decisions. Then a
    bound that holds for any margins may decide at once. Otherwise tables with the same margins are drawn
    until the answer is clear.
    """
    measured = association(table)
    screened = n_candidates * screened_p_value(measured)
    if screened > level:
        return screened
    if table.scores is None:
        return _confirmed(table, measured, screened, n_candidates, level)
    from plar.chance.rank_p_value import confirmed_by_ranks  # only a target of numbers needs it

    return confirmed_by_ranks(table, measured, screened, n_candidates, level)


def _confirmed(table: CrossTab, measured: Association, screened: float, n_candidates: int, level: float) -> float:
    """The p-value of W, times the number of candidates, where the first stage would accept."""
    statistic, mean, variance = measured
    excess = statistic - mean
    bound = n_candidates * math.exp(-(excess**2) / (2 * (variance + excess)))
    if bound <= level:
        return bound
    margins = _margins_of(table)
    if margins.expected >= _DENSE_CELL_OBJECTS:
        return screened
    return _drawn(margins, statistic, n_candidates, level, bound)


def screened_p_value(measured: Association) -> float:
    """The probability that chance alone reaches a statistic, if that has the gamma distribution of its moments.

    Right where it is large; too small, far in the tail, where rare values meet rare decisions.
    """
    statistic, mean, variance = measured
    if variance <= 0 or statistic - mean <= 1e-9 * mean:  # rounding
        return 1.0
    rate = mean / variance
    return float(min(_gamma_tail(mean * rate, statistic * rate), 1.0))


def _drawn(margins: _Margins, statistic: float, n_candidates: int, level: float, bound: float) -> float:
    """Draw tables with the same margins; keep the bound if that would take too long or could not be exact."""
    # in an order that depends on nothing but the margins
    flat = np.array([number for of_class in sorted(margins.classes) for number in of_class], np.int64)
    least = statistic * (1 - 1e-9)  # ties count, whatever the order of summation

    def draw(key: np.uint64, first: int, reached: NDArray[np.bool_]) -> None:
        _draw(flat, least, key, first, reached)

    drawn = drawn_p_value(draw, flat, margins.cells, _MAX_CELLS, n_candidates, level)
    return bound if drawn is None else drawn


def _margins_of(table: CrossTab) -> _Margins:
    first = table.runs.first
    flat = np.empty(2 * (len(table.values) + len(first)), np.int64)
    bounds = np.empty_like(first)
    n, cells, expected = _margins(table.values, table.runs, class_buffers(table.runs, table.n_values), flat, bounds)
    classes = [flat[bounds[c] : bounds[c + 1]].tolist() for c in range(n)]
    return _Margins(classes, int(cells), float(expected))


# -- kernels ---------------------------------------------------------------------------------------------------


@jit
def _gamma_tail(shape: float, x: float) -> float:
    """Upper tail of the gamma distribution, for x above its mean: a continued fraction, by Lentz's method.

    It replaces scipy's `gammaincc`, whose import takes as long as most searches.
    """
    b = x + 1 - shape
    d = 1 / b
    c = 1e300
    fraction = d
    i = 1.0
    change = 0.0
    while abs(change - 1) > 1e-15 and i < 1e7:
        numerator = i * (shape - i)
        b += 2
        d = 1 / (numerator * d + b)
        c = b + numerator / c
        change = d * c
        fraction *= change
        i += 1
    return math.exp(shape * math.log(x) - x - math.lgamma(shape)) * fraction


@jit
def _margins(
    values: Index, runs: Runs, buffers: ClassBuffers, flat: Ints, bounds: Index
) -> tuple[int, np.int64, float]:
    """Write the margins of the classes whose W varies; return how many, the cost of a draw, and the fewest expected."""
    by_value = buffers.by_value
    squares = buffers.squares
    present = buffers.present
    sizes = buffers.sizes
    decided = buffers.decided
    n_written = 0
    at = np.int64(0)
    cells = np.int64(0)
    expected = np.inf
    bounds[0] = 0
    for c in range(len(runs.first) - 1):
        low = np.int64(runs.first[c])
        high = np.int64(runs.first[c + 1])
        n_decisions = high - low
        n_values, n = count_class(values, runs.weights, runs.begins, low, high, buffers)
        if varies(n_values, n_decisions, n, buffers):
            for t in range(n_values):
                sizes[t] = by_value[present[t]]
            sort_first(sizes, n_values)
            sort_first(decided, n_decisions)
            expected = min(expected, np.float64(sizes[0]) * np.float64(decided[0]) / np.float64(n))
            flat[at], flat[at + 1] = n_values, n_decisions
            at += 2
            for t in range(n_values):
                flat[at + t] = sizes[t]
            at += n_values
            for j in range(n_decisions):
                flat[at + j] = decided[j]
            at += n_decisions
            for v in range(n_values - 1):
                for j in range(n_decisions - 1):
                    cells += _cost(min(sizes[v], decided[j]), n)
            n_written += 1
            bounds[n_written] = at
        for t in range(n_values):
            by_value[present[t]] = 0
            squares[present[t]] = 0
    return n_written, cells, expected


@jit
def _cost(few: int, n: int) -> int:
    """The cost of drawing a cell of at most this many objects out of n; prohibitive where it would be inexact."""
    if n > _MAX_LOG_OBJECTS:
        return 1 + few // 8 if few <= _MAX_SINGLE_OBJECTS else _MAX_CELLS
    return 1 + int(math.sqrt(few)) // 4


@jit
def _draw(margins: Ints, least: float, key: np.uint64, first: int, reached: NDArray[np.bool_]) -> None:
    """Whether W of table number `first` and of the following ones reaches `least`; each has its own random numbers."""
    state = np.empty(1, np.uint64)
    left = np.empty(len(margins), np.int64)
    for t in range(len(reached)):
        state[0] = seeded(key, first + t)
        total = 0.0
        at = 0
        while at < len(margins):
            n_values = margins[at]
            n_decisions = margins[at + 1]
            values = at + 2
            decided = at + 2 + n_values
            at = decided + n_decisions
            n = 0
            for j in range(n_decisions):
                left[j] = margins[decided + j]
                n += left[j]
            pool_all = n
            for v in range(n_values):
                size = margins[values + v]
                need = size
                pool = pool_all
                for j in range(n_decisions):
                    pool -= left[j]
                    k = need if pool == 0 else _hypergeometric(left[j], pool, need, state)
                    deviation = deviation_of(k, size, margins[decided + j], n) / np.float64(n)
                    total += deviation * deviation / np.float64(size)
                    left[j] -= k
                    need -= k
                pool_all -= size
        reached[t] = total >= least


@jit
def _hypergeometric(good: int, bad: int, sample: int, state: NDArray[np.uint64]) -> int:
    """How many of a sample are good, by inversion from the mode outwards; one by one if they are few."""
    if good == 0 or sample == 0:
        return 0
    if sample == good + bad:
        return good
    few = min(good, sample)
    if few <= 8 or (good + bad > _MAX_LOG_OBJECTS and few <= _MAX_SINGLE_OBJECTS):
        # symmetric in the goods and the sample
        other = max(good, sample)
        n = good + bad
        hits = 0
        for _ in range(few):
            if uniform(state) * np.float64(n) < np.float64(other):
                hits += 1
                other -= 1
            n -= 1
        return hits
    g = np.float64(good)
    b = np.float64(bad)
    s = np.float64(sample)
    mode = np.floor((s + 1) * (g + 1) / (g + b + 2))
    at_mode = math.exp(_log_choose(g, mode) + _log_choose(b, s - mode) - _log_choose(g + b, s))
    left = uniform(state) - at_mode
    up = mode
    down = mode
    p_up = at_mode
    p_down = at_mode
    while left >= 0 and (p_up > 0 or p_down > 0):
        p_up *= (g - up) * (s - up) / ((up + 1) * (b - s + up + 1))
        up += 1
        left -= p_up
        if left < 0:
            return int(up)
        p_down *= down * (b - s + down) / ((g - down + 1) * (s - down + 1))
        down -= 1
        left -= p_down
        if left < 0:
            return int(down)
    return int(mode)


@jit
def _log_choose(n: float, k: float) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
