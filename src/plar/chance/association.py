"""How strongly a candidate is associated with the decision: the statistic W, and its mean and variance by chance.

W is the gain in Gini impurity (Goodman and Kruskal's τ, unnormalised). No result depends on the order of
rows, values, decisions or classes, to the last bit.

A class whose W is the same however values and decisions are matched counts nothing: it would add one constant to W
and to the mean, and the gamma distribution that stands for W has no room for a constant.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plar.grouping.partition import Index, Ints, Runs
from plar.runtime.jit import jit
from plar.uncertainty.strata import CrossTab

#: fractional bits in the high word of a fixed-point sum
_HIGH_BITS = 20
#: fractional bits in its low word
_LOW_BITS = 52
_LOW_MASK = (1 << _LOW_BITS) - 1
#: variances below the unit of a high word are added up apart, with this many bits more
_TINY_BITS = 30

# The fixed-point sums, and where they are:
#: what W gains
GAINED = 0
#: what is subtracted from it
_SUBTRACTED = 1
#: its mean
_MEAN = 2
#: its variance
_VARIANCE = 3
#: variances too small for that
_TINY_VARIANCE = 4
N_SUMS = 5

#: classes of up to this many objects are counted without rounding
_MAX_SMALL_CLASS = 4096
#: 2^50 divided by each number of objects of a small class
INVERSES: Final = np.rint(2.0**50 / np.maximum(np.arange(_MAX_SMALL_CLASS + 1), 1)).astype(np.int64)


class Association(NamedTuple):
    """W of a table, and its mean and variance over all ways to match values and decisions."""

    statistic: float
    mean: float
    variance: float

    @property
    def excess(self) -> float:
        """What a candidate says beyond chance."""
        return self.statistic - self.mean


def association(table: CrossTab) -> Association:
    """Measure how a candidate goes with the decision, within classes.

    Examples
    --------
    >>> values, decisions, counts = np.array([0, 1], np.uint8), np.array([0, 1], np.uint32), np.array([2, 2])
    >>> order, starts = np.array([0, 1], np.uint32), np.array([0, 2], np.uint32)
    >>> association(CrossTab.of(values, decisions, counts, order, starts, 2))
    Association(statistic=2.0, mean=0.6666666666666666, variance=0.888888888888889)
    """
    sums = np.zeros((N_SUMS, 2), np.int64)
    _moments(table.values, table.runs, class_buffers(table.runs, table.n_values), INVERSES, sums)
    return _association_of(sums)


def associations_of(sums: Ints) -> list[Association]:
    """The numbers in the fixed-point sums of several candidates."""
    high = sums[:, :, 0]
    low = sums[:, :, 1]
    carried = low[:, GAINED] - low[:, _SUBTRACTED]
    gain_high = high[:, GAINED] - high[:, _SUBTRACTED] + (carried >> _LOW_BITS)
    gain_low = np.where(gain_high < 0, 0, carried & _LOW_MASK)
    gain_high = np.maximum(gain_high, 0)
    columns = [
        _as_floats(gain_high, gain_low),
        _as_floats(high[:, _MEAN], low[:, _MEAN]),
        _as_floats(high[:, _VARIANCE], low[:, _VARIANCE]),
    ]
    measured = [Association(*numbers) for numbers in zip(*columns, strict=True)]
    # the others would be rounded twice
    is_wide = (high[:, :_TINY_VARIANCE] >= 1 << 53).any(axis=1) | sums[:, _TINY_VARIANCE].any(axis=1)
    for i in np.flatnonzero(is_wide).tolist():
        measured[i] = _association_of(sums[i])
    return measured


def _as_floats(high: Ints, low: Ints) -> list[float]:
    """Sums of two words as numbers, rounded once if the high word fits a float."""
    numbers = high.astype(np.float64) * 2.0**_LOW_BITS + low.astype(np.float64)
    floats: list[float] = (numbers * 2.0 ** -(_HIGH_BITS + _LOW_BITS)).tolist()
    return floats


def _association_of(sums: Ints) -> Association:
    """The numbers in fixed-point sums."""
    gained, subtracted, mean, variance, tiny_variance = ((high << _LOW_BITS) + low for high, low in sums.tolist())
    return Association(
        statistic=_as_float(max(gained - subtracted, 0) << _TINY_BITS),
        mean=_as_float(mean << _TINY_BITS),
        variance=_as_float((variance << _TINY_BITS) + tiny_variance),
    )


def impurity(runs: Runs) -> float:
    """Gini impurity of the decisions within classes, times the number of objects: the largest W of any candidate."""
    sums = np.zeros((N_SUMS, 2), np.int64)
    _add_impurity(runs.weights, runs.begins, runs.first, sums)
    return _association_of(sums).statistic


def _as_float(number: int) -> float:
    return math.ldexp(number, -_HIGH_BITS - _LOW_BITS - _TINY_BITS)


class ClassBuffers(NamedTuple):
    """Buffers for the counts of one class."""

    #: by value, reset to 0 after each class: objects, those of one decision, sum of squares over the decisions (correct
    #: for small classes only)
    by_value: Ints
    of_decision: Ints
    squares: Ints
    #: values that occur, their numbers of objects, and those of the decisions
    present: NDArray[np.uint32]
    sizes: Ints
    decided: Ints


def class_buffers(runs: Runs, n_values: int) -> ClassBuffers:
    """Allocate for the largest class of a table."""
    largest = int(np.diff(runs.begins[runs.first]).max(initial=0)) + 1
    by_value, of_decision, squares = np.zeros((3, n_values), np.int64)
    sizes, decided = np.empty((2, largest), np.int64)
    return ClassBuffers(by_value, of_decision, squares, np.empty(largest, np.uint32), sizes, decided)


# -- kernels ---------------------------------------------------------------------------------------------------


@jit
def add_term(sums: Ints, which: int, term: float) -> None:
    """Add a term to a fixed-point sum, which does not depend on the order of its terms."""
    scaled = term * 2.0**_HIGH_BITS
    high = np.int64(scaled)
    low = sums[which, 1] + np.int64((scaled - np.float64(high)) * 2.0**_LOW_BITS)
    sums[which, 0] += high + (low >> _LOW_BITS)
    sums[which, 1] = low & _LOW_MASK


@jit
def _add_moments(sums: Ints, mean: float, variance: float) -> None:
    add_term(sums, _MEAN, mean)
    if variance >= 2.0**-_HIGH_BITS:
        add_term(sums, _VARIANCE, variance)
    elif variance > 0:
        add_term(sums, _TINY_VARIANCE, variance * 2.0**_TINY_BITS)


@jit
def _product(a: int, b: int) -> tuple[float, float]:
    """Multiply numbers up to 2^40 without rounding: a float and its error."""
    x = np.float64(a)
    y = np.float64(b)
    product = x * y
    a_high = np.float64(a >> 20 << 20)
    b_high = np.float64(b >> 20 << 20)
    a_low = x - a_high
    b_low = y - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


@jit
def deviation_of(k: int, size: int, n_decided: int, n: int) -> float:
    """k·n − size·n_decided, without rounding before the difference."""
    if n < 1 << 31:
        return np.float64(k * n - size * n_decided)
    observed, observed_error = _product(k, n)
    expected, expected_error = _product(size, n_decided)
    return (observed - expected) + (observed_error - expected_error)


@jit
def count_class(
    values: Index, weights: Ints, begins: Index, low: np.int64, high: np.int64, buffers: ClassBuffers
) -> tuple[int, int]:
    """Count the objects of a class, given by its runs, by value and by decision; return numbers of values, objects."""
    by_value = buffers.by_value
    cells = buffers.of_decision
    squares = buffers.squares
    present = buffers.present
    decided = buffers.decided
    n = 0
    n_values = 0
    for run in range(low, high):
        begin = np.int64(begins[run])
        end = np.int64(begins[run + 1])
        before = n
        for i in range(begin, end):
            cells[values[i]] += weights[i]
            n += weights[i]
        decided[run - low] = n - before
        # add this decision's objects to their values: row by row, or value by value if those are fewer
        by_row = end - begin < len(cells)
        for at in range(begin if by_row else 0, end if by_row else len(cells)):
            value = np.int64(values[at]) if by_row else at
            k = cells[value]
            if k > 0:
                cells[value] = 0
                present[n_values] = value
                n_values += by_value[value] == 0
                by_value[value] += k
                squares[value] += k * k
    return n_values, n


@jit
def _add_impurity(weights: Ints, begins: Index, first: Index, sums: Ints) -> None:
    """Add Σ n_j·(N − n_j)/N of every class, whose decisions have n_j objects each."""
    for c in range(len(first) - 1):
        low = np.int64(first[c])
        high = np.int64(first[c + 1])
        n = weights[begins[low] : begins[high]].sum()
        for run in range(low, high):
            n_decided = weights[begins[run] : begins[run + 1]].sum()
            add_term(sums, GAINED, np.float64(n_decided) * (np.float64(n - n_decided) / np.float64(n)))


@jit
def add_moments_of_each(values: Index, runs: Runs, buffers: ClassBuffers, inverses: Ints, sums: Ints) -> None:
    """Add up the moments of candidates whose values are the rows of an array."""
    for i in range(len(values)):
        _moments(values[i], runs, buffers, inverses, sums[i])


@jit
def varies(n_values: int, n_decisions: np.int64, n: int, buffers: ClassBuffers) -> bool:
    """Whether W of a class depends on how its values and decisions are matched."""
    by_value = buffers.by_value
    present = buffers.present
    decided = buffers.decided
    if n_values in (1, n) or n_decisions in (1, n) or n == 2:
        return False
    if n_decisions == 2 and min(decided[0], decided[1]) == 1:  # an object of its own, among values of one size
        n_of_first_size = 0
        for t in range(n_values):
            n_of_first_size += by_value[present[t]] == by_value[present[0]]
        return bool(n_of_first_size < n_values)
    if n_values == 2 and min(by_value[present[0]], by_value[present[1]]) == 1:  # the same the other way round
        n_of_first_number = 0
        for j in range(n_decisions):
            n_of_first_number += decided[j] == decided[0]
        return bool(n_of_first_number < n_decisions)
    return True


@jit
def _moments(values: Index, runs: Runs, buffers: ClassBuffers, inverses: Ints, sums: Ints) -> None:
    """Add up the statistic, mean and variance of all classes."""
    by_value = buffers.by_value
    squares = buffers.squares
    present = buffers.present
    sizes = buffers.sizes
    decided = buffers.decided
    weights = runs.weights
    begins = runs.begins
    first = runs.first
    for c in range(len(first) - 1):
        low = np.int64(first[c])
        high = np.int64(first[c + 1])
        n_decisions = high - low
        if n_decisions < 2:
            continue
        begin = np.int64(begins[low])
        if np.int64(begins[high]) - begin == 2 and weights[begin] + weights[begin + 1] == 2:
            # by far the most common class: two objects of two decisions, whose W cannot vary
            continue
        n_values, n = count_class(values, weights, begins, low, high, buffers)
        w_varies = varies(n_values, n_decisions, n, buffers)
        if w_varies and n < len(inverses):
            add_small_class(n_values, n_decisions, n, buffers, inverses, sums)
        elif w_varies:
            for t in range(n_values):
                sizes[t] = by_value[present[t]]
            _add_statistic(values, weights, begins, low, n_decisions, n, buffers, sums)
            sort_first(sizes, n_values)
            sort_first(decided, n_decisions)
            add_large_class(sizes, n_values, decided, n_decisions, np.float64(n), sums)
        for t in range(n_values):
            by_value[present[t]] = 0
            squares[present[t]] = 0


@jit
def _add_statistic(
    values: Index,
    weights: Ints,
    begins: Index,
    low: np.int64,
    n_decisions: np.int64,
    n: int,
    buffers: ClassBuffers,
    sums: Ints,
) -> None:
    # the cell of value v and decision j adds (k − s·n_j/N)²/s, and all cells of j without an object n_j²·Σs/N²
    by_value = buffers.by_value
    of_decision = buffers.of_decision
    decided = buffers.decided
    square = np.float64(n) * np.float64(n)
    for j in range(n_decisions):
        begin = np.int64(begins[low + j])
        end = np.int64(begins[low + j + 1])
        n_decided = decided[j]
        rest = n
        for i in range(begin, end):
            of_decision[values[i]] += weights[i]
        by_row = end - begin < len(of_decision)
        for at in range(begin if by_row else 0, end if by_row else len(of_decision)):
            value = np.int64(values[at]) if by_row else at
            k = of_decision[value]
            size = by_value[value]
            if k > 0:
                of_decision[value] = 0
                rest -= size
                deviation = deviation_of(k, size, n_decided, n)
                add_term(sums, GAINED, deviation * deviation / square / np.float64(size))
        add_term(sums, GAINED, np.float64(n_decided) * np.float64(n_decided) / square * np.float64(rest))


@jit
def add_small_class(
    n_values: int, n_decisions: np.int64, n: int, buffers: ClassBuffers, inverses: Ints, sums: Ints
) -> None:
    """W, mean and variance of a small class, in whole numbers, which are exact in any order of summation."""
    by_value = buffers.by_value
    squares = buffers.squares
    present = buffers.present
    decided = buffers.decided
    unit = 2.0**-50
    inverse_sum = 0
    for t in range(n_values):
        size = by_value[present[t]]
        inverse_sum += inverses[size]
        add_term(sums, GAINED, np.float64(squares[present[t]]) / np.float64(size))
    pairs = 0
    triples = 0
    square = 0
    for j in range(n_decisions):
        n_decided = decided[j]
        square += n_decided * n_decided
        pairs += n_decided * (n_decided - 1)
        triples += n_decided * (n_decided - 1) * (n_decided - 1)
    add_term(sums, _SUBTRACTED, np.float64(square) / np.float64(n))
    count = np.float64(n)
    size = np.float64(n_values)
    two = count * (count - 1)
    h = np.float64(inverse_sum) * unit
    unequal_pairs = np.float64(n * n - square)
    mean = (size - 1) * unequal_pairs / two
    variance = 0.0
    if n > 2:
        spread = h - size * size / count
        skew = np.float64(n * triples - pairs * pairs) / count
        variance = 4 * spread * skew / ((count - 1) * (count - 2) * (count - 2))
        if n > 3:
            se = (size - h) - (count - size) ** 2 / two - 2 * spread / (count - 2)
            sf = np.float64(pairs) * unequal_pairs / two - 2 * skew / (count - 2)
            variance += 2 * se * sf / (count * (count - 3))
    _add_moments(sums, mean, variance)


@jit
def add_large_class(sizes: Ints, n_sizes: int, decided: Ints, n_decisions: np.int64, n: float, sums: Ints) -> None:
    """Mean and variance of W of one class; sizes are sorted, because float sums depend on the order."""
    n_values = np.float64(n_sizes)
    two = n * (n - 1)
    pairs = 0.0
    unequal_pairs = 0.0
    inverse = 0.0
    inner = 0.0
    for j in range(n_decisions):
        n_decided = np.float64(decided[j])
        pairs += n_decided * (n_decided - 1)
        unequal_pairs += n_decided * (n - n_decided)
    for t in range(n_sizes):
        size = np.float64(sizes[t])
        inverse += 1 / size
        inner += (size - 1) / size
    mean = (n_values - 1) * unequal_pairs / two
    variance = 0.0
    if n > 2:
        spread = inverse - n_values * n_values / n
        skew = 0.0
        for j in range(n_decisions):
            n_decided = np.float64(decided[j])
            skew += n_decided * (n_decided - 1 - pairs / n) ** 2
        variance = 4 * spread * skew / ((n - 1) * (n - 2) ** 2)
        if n > 3:
            se = inner - (n - n_values) ** 2 / two - 2 * spread / (n - 2)
            sf = pairs * unequal_pairs / two - 2 * skew / (n - 2)
            variance += 2 * se * sf / (n * (n - 3))
    _add_moments(sums, mean, variance)


@jit
def sort_first(numbers: Ints, n: int | np.int64) -> None:
    """Sort the first n in place, by Shell's method, which compiles quickly."""
    gap = np.int64(1)
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            number = numbers[i]
            at = np.int64(i)
            while at >= gap and numbers[at - gap] > number:
                numbers[at] = numbers[at - gap]
                at -= gap
            numbers[at] = number
        gap //= 3
