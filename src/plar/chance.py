"""Whether an attribute says more about the decision than chance: a permutation test with exact moments.

Within each class of U/R, the values of the candidate and the decisions are matched at random. The statistic W is the
gain in Gini impurity (Goodman and Kruskal's τ, unnormalised); its mean and variance over all matchings are exact. No
result depends on the order of rows, values, decisions or classes, to the last bit, and nobody chooses a seed.

References
----------
Light and Margolin: An Analysis of Variance for Categorical Data (CATANOVA). Strasser and Weber: On the Asymptotic
Theory of Permutation Statistics. Besag and Clifford: Sequential Monte Carlo p-values.
"""

from __future__ import annotations

import math
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plar.coding.factorize import mix
from plar.jit import jit
from plar.parallel import in_threads, usable_cores
from plar.partition import Runs
from plar.strata import Table

#: p-values above this are chance, where the user names no other level
LEVEL: Final = 0.05
#: tables to draw at the least, and how often the statistic may be reached by one that does not beat chance
_DRAWS, _REACHED = 2_000, 10
#: the most that may be drawn to confirm one candidate, counted in cells of few objects
_CELLS = 10_000_000
#: where every cell expects so many objects, the gamma distribution is right even far out
_DENSE = 100_000
#: logarithms of binomials are good enough up to so many objects; above, so many can be drawn one by one
_MANY, _ONE_BY_ONE = 1 << 26, 1 << 12
#: draws of one task, and bits of a fraction in a sum of fixed point
_BATCH, _FRACTION = 1 << 10, 86

#: classes of up to so many objects are counted without rounding; of each such number, 2^50 over it
_SMALL = 4096
_INVERSE: Final = np.rint(2.0**50 / np.maximum(np.arange(_SMALL + 1), 1)).astype(np.int64)

_Ints = NDArray[np.int64]
_Floats = NDArray[np.float64]
_Words = NDArray[np.uint64]


class Association(NamedTuple):
    """W of a table, and its mean and variance over all ways to match values and decisions."""

    statistic: float
    mean: float
    variance: float


def association(table: Table) -> Association:
    """Measure how a candidate goes with the decision, within classes.

    Examples
    --------
    >>> values, decisions, counts = np.array([0, 1], np.uint8), np.array([0, 1], np.uint32), np.array([2, 2])
    >>> order, starts = np.array([0, 1], np.uint32), np.array([0, 2], np.uint32)
    >>> association(Table.of(values, decisions, counts, order, starts, 2))
    Association(statistic=2.0, mean=0.6666666666666666, variance=0.888888888888889)
    """
    moments, words = np.zeros((2, len(table.runs.first) - 1)), np.zeros((2, 2), np.uint64)
    _moments(table.values, table.runs, _rooms(table), _INVERSE, moments, words)
    gained, subtracted = ((int(high) << 64) + int(low) for low, high in words)
    statistic = math.ldexp(max(gained - subtracted, 0), -_FRACTION)
    mean, variance = (_ordered_sum(np.sort(terms)) for terms in moments)
    return Association(statistic, mean, variance)


def p_value(table: Table, n_candidates: int, level: float = LEVEL) -> float:
    """How likely a candidate reaches its W by chance, times the number of candidates; exact enough to compare to level.

    Three stages. Above the level it is the tail of the gamma distribution of that mean and variance, which only
    screens: where rare values meet rare decisions it is too small. Below, a bound that holds for any margins decides
    at once if it can. Else tables of the same margins are drawn until it is clear.
    """
    found = association(table)
    excess = found.statistic - found.mean
    if found.variance <= 0 or excess <= 1e-9 * found.mean:  # which is rounding
        return 1.0
    rate = found.mean / found.variance
    screened = n_candidates * _gamma_tail(found.mean * rate, found.statistic * rate)
    if screened > level:
        return min(screened, 1.0)
    bound = n_candidates * math.exp(-(excess**2) / (2 * (found.variance + excess)))
    if bound <= level:
        return bound
    if _margins_of(table)[2] >= _DENSE:
        return screened
    return min(_drawn(table, found.statistic, n_candidates, level, bound), 1.0)


def _drawn(table: Table, statistic: float, n_candidates: int, level: float, bound: float) -> float:
    """Draw tables with the same margins; the bound stands where that would take too long, or could not be exact."""
    margins, cells = _canonical_margins(table)
    most = int(min(max(_DRAWS, _REACHED * n_candidates / level), _CELLS / cells))
    reach = int(most * level / n_candidates)
    if reach < 1:
        return bound
    key = np.uint64(int.from_bytes(blake2b(margins.tobytes(), digest_size=8).digest(), "little"))
    least = statistic * (1 - 1e-9)  # equal tables count, whatever the order of their sums
    done = reached = 0
    while done < most - 1:
        size = min(_BATCH * usable_cores(), most - 1 - done)
        firsts = range(done, done + size, _BATCH)
        tasks = [(first, np.zeros(min(_BATCH, done + size - first), np.bool_)) for first in firsts]
        for _ in in_threads(lambda task: _draw(margins, least, key, *task), tasks, cells * _BATCH):
            pass
        hits = np.flatnonzero(np.concatenate([flags for _, flags in tasks]))
        if reached + len(hits) >= reach:
            return n_candidates * reach / (done + int(hits[reach - reached - 1]) + 1)
        done, reached = done + size, reached + len(hits)
    return n_candidates * (reached + 1) / most


def _canonical_margins(table: Table) -> tuple[_Ints, int]:
    """Margins of the classes that matter, in an order that they alone decide, and how much a draw takes.

    Class by class: how many values and decisions it has, the number of objects of each value, and of each decision, the
    largest last.
    """
    each, cells, _ = _margins_of(table)
    return np.array([number for margins in sorted(each) for number in margins], np.int64), cells


def _margins_of(table: Table) -> tuple[list[list[int]], int, float]:
    """Margins of each class that matters, how much a draw takes, and the fewest objects that a cell expects."""
    first = table.runs.first
    flat, bounds = np.empty(2 * (len(table.values) + len(first)), np.int64), np.empty_like(first)
    n, cells, expected = _margins(table.values, table.runs, _rooms(table), flat, bounds)
    return [flat[bounds[c] : bounds[c + 1]].tolist() for c in range(n)], int(cells), float(expected)


class _Rooms(NamedTuple):
    """Room for what is counted in one class."""

    #: by value, and 0 when the class is done: objects, those of one decision, sum of squares over the decisions (which
    #: is right for small classes only)
    by_value: _Ints
    of_decision: _Ints
    squares: _Ints
    #: values that are met, their numbers of objects, and those of the decisions
    met: NDArray[np.uint32]
    sizes: _Ints
    decided: _Ints


def _rooms(table: Table) -> _Rooms:
    largest = int(np.diff(table.runs.begins[table.runs.first]).max(initial=0)) + 1
    by_value, of_decision, squares = np.zeros((3, table.n_values), np.int64)
    sizes, decided = np.empty((2, largest), np.int64)
    return _Rooms(by_value, of_decision, squares, np.empty(largest, np.uint32), sizes, decided)


# -- kernels ---------------------------------------------------------------------------------------------------


@jit
def _gamma_tail(shape: float, x: float) -> float:
    """Upper tail of the gamma distribution, for x above its mean: a continued fraction, by Lentz's method.

    It stands for scipy's `gammaincc`, whose import takes as long as most searches.
    """
    b = x + 1 - shape
    d = 1 / b
    c, fraction, i, change = 1e300, d, 1.0, 0.0
    while abs(change - 1) > 1e-15 and i < 1e7:
        numerator = i * (shape - i)
        b += 2
        d, c = 1 / (numerator * d + b), b + numerator / c
        change = d * c
        fraction *= change
        i += 1
    return math.exp(shape * math.log(x) - x - math.lgamma(shape)) * fraction


@jit
def _ordered_sum(terms: _Floats) -> float:
    total = 0.0
    for term in terms:
        total += term
    return total


@jit
def _add(words: _Words, term: float) -> None:
    """Add a term of fixed point to a sum of two words, the lower one first."""
    scaled = term * 2.0 ** (_FRACTION - 64)
    high = np.uint64(scaled)
    low = np.uint64((scaled - np.float64(high)) * 2.0**64)
    words[0] += low
    words[1] += high + np.uint64(words[0] < low)


@jit
def _product(a: int, b: int) -> tuple[float, float]:
    """Multiply numbers up to 2^40 without rounding: a float, and what it lacks."""
    x, y = np.float64(a), np.float64(b)
    found = x * y
    a_high, b_high = np.float64(a >> 20 << 20), np.float64(b >> 20 << 20)
    a_low, b_low = x - a_high, y - b_high
    return found, ((a_high * b_high - found) + a_high * b_low + a_low * b_high) + a_low * b_low


@jit
def _deviation(k: int, size: int, own: int, n: int) -> float:
    """k·n − size·own, without rounding before the difference."""
    if n < 1 << 31:
        return np.float64(k * n - size * own)
    found, lack = _product(k, n)
    expected, expected_lack = _product(size, own)
    return (found - expected) + (lack - expected_lack)


@jit
def _count_class(values: Any, weights: _Ints, begins: Any, low: Any, high: Any, rooms: _Rooms) -> tuple[int, int]:
    """Count the objects of a class, given by its runs, by value and by decision; returns numbers of values, objects."""
    by_value, cells, squares = rooms.by_value, rooms.of_decision, rooms.squares
    met, decided = rooms.met, rooms.decided
    n, n_values = 0, 0
    for run in range(low, high):
        begin, end, before = np.int64(begins[run]), np.int64(begins[run + 1]), n
        for i in range(begin, end):
            cells[values[i]] += weights[i]
            n += weights[i]
        decided[run - low] = n - before
        # the objects of this decision go to those of their value: row by row, or value by value where these are fewer
        by_row = end - begin < len(cells)
        for at in range(begin if by_row else 0, end if by_row else len(cells)):
            value = np.int64(values[at]) if by_row else at
            k = cells[value]
            if k > 0:
                cells[value] = 0
                met[n_values] = value
                n_values += by_value[value] == 0
                by_value[value] += k
                squares[value] += k * k
    return n_values, n


@jit
def _moments(values: Any, runs: Runs, rooms: _Rooms, inverse: _Ints, moments: _Floats, words: _Words) -> None:
    """Mean and variance of each class, and W of all: two sums of fixed point, and one is to be subtracted."""
    by_value, squares, met, sizes, decided = rooms.by_value, rooms.squares, rooms.met, rooms.sizes, rooms.decided
    weights, begins, first = runs.weights, runs.begins, runs.first
    for c in range(len(first) - 1):
        low, high = np.int64(first[c]), np.int64(first[c + 1])
        n_decisions = high - low
        if n_decisions < 2:
            continue
        n_values, n = _count_class(values, weights, begins, low, high, rooms)
        if n_values > 1 and n < len(inverse):
            moments[0, c], moments[1, c] = _small_class(n_values, n_decisions, n, rooms, inverse, words)
        elif n_values > 1:
            for t in range(n_values):
                sizes[t] = by_value[met[t]]
            _add_statistic(values, weights, begins, low, n_decisions, n, rooms, words[0])
            _sort(sizes, n_values)
            _sort(decided, n_decisions)
            moments[0, c], moments[1, c] = _class_moments(sizes, n_values, decided, n_decisions, np.float64(n))
        for t in range(n_values):
            by_value[met[t]] = 0
            squares[met[t]] = 0


@jit
def _add_statistic(
    values: Any, weights: _Ints, begins: Any, low: Any, n_decisions: Any, n: int, rooms: _Rooms, words: _Words
) -> None:
    # the cell of value v and decision j adds (k − s·n_j/N)²/s, and all cells of j without an object n_j²·Σs/N²
    by_value, of_decision, decided = rooms.by_value, rooms.of_decision, rooms.decided
    square = np.float64(n) * np.float64(n)
    for j in range(n_decisions):
        begin, end, own, rest = np.int64(begins[low + j]), np.int64(begins[low + j + 1]), decided[j], n
        for i in range(begin, end):
            of_decision[values[i]] += weights[i]
        by_row = end - begin < len(of_decision)
        for at in range(begin if by_row else 0, end if by_row else len(of_decision)):
            value = np.int64(values[at]) if by_row else at
            k, size = of_decision[value], by_value[value]
            if k > 0:
                of_decision[value] = 0
                rest -= size
                deviation = _deviation(k, size, own, n)
                _add(words, deviation * deviation / square / np.float64(size))
        _add(words, np.float64(own) * np.float64(own) / square * np.float64(rest))


@jit
def _small_class(
    n_values: int, n_decisions: Any, n: int, rooms: _Rooms, inverse: _Ints, words: _Words
) -> tuple[float, float]:
    """The same as of other classes; whole numbers are exact and can be added in any order."""
    by_value, squares, met, decided = rooms.by_value, rooms.squares, rooms.met, rooms.decided
    unit, over = 2.0**-50, 0
    for t in range(n_values):
        size = by_value[met[t]]
        over += inverse[size]
        _add(words[0], np.float64(squares[met[t]]) / np.float64(size))
    pairs, triples, square = 0, 0, 0
    for j in range(n_decisions):
        own = decided[j]
        square += own * own
        pairs += own * (own - 1)
        triples += own * (own - 1) * (own - 1)
    _add(words[1], np.float64(square) / np.float64(n))
    count, size = np.float64(n), np.float64(n_values)
    two, h = count * (count - 1), np.float64(over) * unit
    apart = np.float64(n * n - square)
    mean, variance = (size - 1) * apart / two, 0.0
    if n > 2:
        spread, skew = h - size * size / count, np.float64(n * triples - pairs * pairs) / count
        variance = 4 * spread * skew / ((count - 1) * (count - 2) * (count - 2))
        if n > 3:
            se = (size - h) - (count - size) ** 2 / two - 2 * spread / (count - 2)
            sf = np.float64(pairs) * apart / two - 2 * skew / (count - 2)
            variance += 2 * se * sf / (count * (count - 3))
    return mean, max(variance, 0.0)


@jit
def _class_moments(sizes: _Ints, n_sizes: int, decided: _Ints, n_decisions: Any, n: float) -> tuple[float, float]:
    """Mean and variance of W of one class; the sizes in an order of their own, because the sums are of floats."""
    n_values, two = np.float64(n_sizes), n * (n - 1)
    pairs, apart, inverse, inner = 0.0, 0.0, 0.0, 0.0
    for j in range(n_decisions):
        own = np.float64(decided[j])
        pairs += own * (own - 1)
        apart += own * (n - own)
    for t in range(n_sizes):
        size = np.float64(sizes[t])
        inverse += 1 / size
        inner += (size - 1) / size
    mean, variance = (n_values - 1) * apart / two, 0.0
    if n > 2:
        spread, skew = inverse - n_values * n_values / n, 0.0
        for j in range(n_decisions):
            own = np.float64(decided[j])
            skew += own * (own - 1 - pairs / n) ** 2
        variance = 4 * spread * skew / ((n - 1) * (n - 2) ** 2)
        if n > 3:
            se = inner - (n - n_values) ** 2 / two - 2 * spread / (n - 2)
            sf = pairs * apart / two - 2 * skew / (n - 2)
            variance += 2 * se * sf / (n * (n - 3))
    return mean, max(variance, 0.0)


@jit
def _sort(numbers: _Ints, n: Any) -> None:
    """Sort the first n in place, by Shell's method: it compiles faster than others run."""
    gap = np.int64(1)
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            number, at = numbers[i], np.int64(i)
            while at >= gap and numbers[at - gap] > number:
                numbers[at] = numbers[at - gap]
                at -= gap
            numbers[at] = number
        gap //= 3


@jit
def _margins(values: Any, runs: Runs, rooms: _Rooms, flat: _Ints, bounds: Any) -> tuple[Any, Any, Any]:
    """Write the margins of the classes of several values and decisions; returns how many, and more of them."""
    by_value, squares, met, sizes, decided = rooms.by_value, rooms.squares, rooms.met, rooms.sizes, rooms.decided
    found, at, cells, expected = 0, np.int64(0), np.int64(0), np.inf
    bounds[0] = 0
    for c in range(len(runs.first) - 1):
        low, high = np.int64(runs.first[c]), np.int64(runs.first[c + 1])
        n_decisions = high - low
        n_values, n = _count_class(values, runs.weights, runs.begins, low, high, rooms)
        if n_values > 1 and n_decisions > 1:
            for t in range(n_values):
                sizes[t] = by_value[met[t]]
            _sort(sizes, n_values)
            _sort(decided, n_decisions)
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
            found += 1
            bounds[found] = at
        for t in range(n_values):
            by_value[met[t]] = 0
            squares[met[t]] = 0
    return found, cells, expected


@jit
def _cost(few: int, n: int) -> int:
    """What it takes to draw a cell of at most so many objects, of n in all; too much where that is inexact."""
    if n > _MANY:
        return 1 + few // 8 if few <= _ONE_BY_ONE else _CELLS
    return 1 + int(math.sqrt(few)) // 4


@jit
def _uniform(state: _Words) -> float:
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    return np.float64(mix(state[0]) >> np.uint64(11)) * 2.0**-53


@jit
def _draw(margins: _Ints, least: float, key: np.uint64, first: int, reached: Any) -> None:
    """Whether W of table number `first` and of those behind it reaches `least`; each has random numbers of its own."""
    state, left = np.empty(1, np.uint64), np.empty(len(margins), np.int64)
    for t in range(len(reached)):
        state[0] = mix(key + np.uint64(first + t))
        total, at = 0.0, 0
        while at < len(margins):
            n_values, n_decisions = margins[at], margins[at + 1]
            values, decided = at + 2, at + 2 + n_values
            at = decided + n_decisions
            n = 0
            for j in range(n_decisions):
                left[j] = margins[decided + j]
                n += left[j]
            pool_all = n
            for v in range(n_values):
                size = margins[values + v]
                need, pool = size, pool_all
                for j in range(n_decisions):
                    pool -= left[j]
                    k = need if pool == 0 else _hypergeometric(left[j], pool, need, state)
                    deviation = _deviation(k, size, margins[decided + j], n) / np.float64(n)
                    total += deviation * deviation / np.float64(size)
                    left[j] -= k
                    need -= k
                pool_all -= size
        reached[t] = total >= least


@jit
def _hypergeometric(good: int, bad: int, sample: int, state: _Words) -> int:
    """How many of a sample are good, by inversion from the mode outwards; one by one where few are."""
    if good == 0 or sample == 0:
        return 0
    if sample == good + bad:
        return good
    few = min(good, sample)
    if few <= 8 or (good + bad > _MANY and few <= _ONE_BY_ONE):
        # it is the same whether goods fall into the sample or members of the sample are good
        other, n, found = max(good, sample), good + bad, 0
        for _ in range(few):
            if _uniform(state) * np.float64(n) < np.float64(other):
                found += 1
                other -= 1
            n -= 1
        return found
    g, b, s = np.float64(good), np.float64(bad), np.float64(sample)
    mode = np.floor((s + 1) * (g + 1) / (g + b + 2))
    at_mode = math.exp(_log_choose(g, mode) + _log_choose(b, s - mode) - _log_choose(g + b, s))
    left = _uniform(state) - at_mode
    up, down, p_up, p_down = mode, mode, at_mode, at_mode
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
