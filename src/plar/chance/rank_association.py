"""How strongly a candidate goes with a decision of numbers: the statistic B, and its mean and variance by chance.

Within a class of N rows let c be the mid-ranks of the decisions less their mean there, m₂ = Σ c², m₄ = Σ c⁴, and T_v
the sum of c over the s_v rows of value v. B = Σ_v T_v²/s_v is what the values explain of m₂. With V values,
σ² = m₂/(N-1), g = Σ_v 1/s_v - V²/N, over all ways to match values and decisions:

    mean = (V-1)σ²
    variance = 2σ⁴(V-1)(N-V)/(N+1) + (N(N+1)g - 2(V-1)(N-V)) K / ((N-2)(N-3)),  K = m₄/(N-1) - 3m₂²/(N(N+1))

where the second term is for N > 3. Classes add up, without those in which B cannot vary. No result depends on the order
of rows, values or classes, to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plar.chance.association import INVERSES, Association, sort_first
from plar.chance.exact_sums import add_exactly, exact_sums, total_of
from plar.grouping.partition import Codes, Index, Ints, Runs, take_in_order
from plar.runtime.jit import borrowing, jit
from plar.runtime.parallel import in_threads
from plar.uncertainty.ranks import RunScores
from plar.uncertainty.strata import CrossTab, StratifiedRows

Floats = NDArray[np.float64]

# The sums, and where they are:
_STATISTIC = 0
_MEAN = 1
_VARIANCE = 2
_N_SUMS = 3

#: cells of several candidates that are measured in one go
_CELLS_TOGETHER = 1 << 18
#: weighted deviations are summed in two parts: this many low bits, and the rest
_LOW_BITS = 21
_LOW_MASK = (1 << _LOW_BITS) - 1
#: up to this many objects in all, one part holds any sum
_MAX_NARROW_OBJECTS = 1 << 30


class ScoredClasses(NamedTuple):
    """The rows of classes with their scores, and what all candidates need to know of each class."""

    weights: Ints
    #: by row: its weight times the score less the `centre` of its class; for very many objects in two parts
    low: Ints
    high: Ints
    #: by class, with a final end: its first row, and its first run
    begins: Index
    first: Index
    #: by run: its score, and its objects
    scores: Ints
    decided: Ints
    #: by class: objects, those of its rarest and of its most frequent score
    n_objects: Ints
    fewest: Ints
    most: Ints
    #: by class: the mean of the scores, rounded down, and what that leaves off
    centres: Ints
    remainders: Floats
    #: by class: m₂, m₄ and the largest c²
    squares: Floats
    fourths: Floats
    peaks: Floats
    #: by how much 1 of a score is to be multiplied
    unit: float


def scored_classes(runs: Runs, scores: RunScores) -> ScoredClasses:
    """What all candidates need to know of classes whose runs have these scores, in ascending order."""
    n_classes = len(runs.first) - 1
    n_rows = int(runs.begins[-1])
    is_wide = 0.5 / scores.unit > _MAX_NARROW_OBJECTS
    classes = ScoredClasses(
        weights=runs.weights,
        low=np.empty(n_rows, np.int64),
        high=np.empty(n_rows if is_wide else 0, np.int64),
        begins=runs.begins[runs.first],
        first=runs.first,
        scores=scores.scores,
        decided=np.empty(len(scores.scores), np.int64),
        n_objects=np.empty(n_classes, np.int64),
        fewest=np.empty(n_classes, np.int64),
        most=np.empty(n_classes, np.int64),
        centres=np.empty(n_classes, np.int64),
        remainders=np.empty(n_classes),
        squares=np.empty(n_classes),
        fourths=np.empty(n_classes),
        peaks=np.empty(n_classes),
        unit=scores.unit,
    )
    _describe(runs.begins, classes)
    return classes


def rank_association(table: CrossTab) -> Association:
    """Measure how a candidate goes with a decision of numbers, within classes.

    >>> values, places, counts = np.array([0, 1], np.uint8), np.array([0, 1], np.uint32), np.array([2, 2])
    >>> order, starts = np.array([0, 1], np.uint32), np.array([0, 2], np.uint32)
    >>> from plar.uncertainty.ranks import ranks_of
    >>> ranks = ranks_of(np.array([0.5, 7.0]), counts)
    >>> rank_association(CrossTab.of(values, places, counts, order, starts, 2, ranks))
    Association(statistic=0.25, mean=0.08333333333333333, variance=0.013888888888888892)
    """
    assert table.scores is not None
    classes = scored_classes(table.runs, table.scores)
    sums = exact_sums(_N_SUMS)
    _moments(table.values, classes, value_buffers(classes, table.n_values), sums)
    return _association_of(sums)


def rank_associations(columns: Sequence[tuple[Codes, int]], rows: StratifiedRows) -> list[Association]:
    """Measure how each of several candidates, as in `plar.chance.association.associations`, goes with the decision."""
    assert rows.scores is not None
    order = rows.order
    classes = scored_classes(rows.runs, rows.scores)
    n_together = max(1, _CELLS_TOGETHER // max(1, len(order)))
    batches = [columns[first : first + n_together] for first in range(0, len(columns), n_together)]

    def of_batch(batch: Sequence[tuple[Codes, int]]) -> list[Association]:
        buffers = value_buffers(classes, max(n_values for _, n_values in batch))
        values = np.empty(len(order), np.uint32)
        measured = []
        for codes, _ in batch:
            take_in_order(codes, order, values)
            sums = exact_sums(_N_SUMS)
            _moments(values, classes, buffers, sums)
            measured.append(_association_of(sums))
        return measured

    return list(chain.from_iterable(in_threads(of_batch, batches, len(columns) * len(order))))


def _association_of(sums: Ints) -> Association:
    return Association(total_of(sums[_STATISTIC]), total_of(sums[_MEAN]), total_of(sums[_VARIANCE]))


def rank_impurity(runs: Runs, scores: RunScores) -> float:
    """Σ m₂ of the classes: the largest B of any candidate."""
    total = exact_sums()
    for of_class in scored_classes(runs, scores).squares:
        add_exactly(total, of_class)
    return total_of(total)


class ValueBuffers(NamedTuple):
    """Buffers for the values of one class."""

    #: by value, reset to 0 after each class: objects, and the parts of the sum of their deviations
    by_value: Ints
    #: the values that occur, and their numbers of objects
    present: NDArray[np.uint32]
    sizes: Ints


def value_buffers(classes: ScoredClasses, n_values: int) -> ValueBuffers:
    """Allocate for the largest class."""
    largest = int(np.diff(classes.begins).max(initial=0)) + 1
    return ValueBuffers(np.zeros((n_values, 3), np.int64), np.empty(largest, np.uint32), np.empty(largest, np.int64))


# -- kernels ---------------------------------------------------------------------------------------------------


@borrowing
def n_scores_of(classes: ScoredClasses, c: int) -> np.int64:
    """How many different scores a class has."""
    return np.int64(classes.first[c + 1]) - np.int64(classes.first[c])


@jit
def _describe(run_begins: Index, classes: ScoredClasses) -> None:
    for c in range(len(classes.n_objects)):
        low = np.int64(classes.first[c])
        high = np.int64(classes.first[c + 1])
        n = np.int64(0)
        low_sum = np.int64(0)
        high_sum = np.int64(0)
        for run in range(low, high):
            n_decided = classes.weights[run_begins[run] : run_begins[run + 1]].sum()
            classes.decided[run] = n_decided
            n += n_decided
            low_sum += n_decided * (classes.scores[run] & _LOW_MASK)
            high_sum += n_decided * (classes.scores[run] >> _LOW_BITS)
        # the mean, by long division: no number here has more than 62 bits
        high_sum += low_sum >> _LOW_BITS
        high_mean = high_sum // n
        rest = ((high_sum - high_mean * n) << _LOW_BITS) + (low_sum & _LOW_MASK)
        low_mean = rest // n
        classes.n_objects[c] = n
        classes.fewest[c] = classes.decided[low:high].min()
        classes.most[c] = classes.decided[low:high].max()
        classes.centres[c] = (high_mean << _LOW_BITS) + low_mean
        classes.remainders[c] = np.float64(rest - low_mean * n) / np.float64(n)
        _describe_deviations(run_begins, classes, c)


@borrowing
def _describe_deviations(run_begins: Index, classes: ScoredClasses, c: int) -> None:
    is_wide = len(classes.high) > 0
    squares = 0.0
    fourths = 0.0
    peak = 0.0
    for run in range(np.int64(classes.first[c]), np.int64(classes.first[c + 1])):
        deviation = classes.scores[run] - classes.centres[c]
        for i in range(np.int64(run_begins[run]), np.int64(run_begins[run + 1])):
            weight = classes.weights[i]
            if is_wide:
                classes.low[i] = weight * (deviation & _LOW_MASK)
                classes.high[i] = weight * (deviation >> _LOW_BITS)
            else:
                classes.low[i] = weight * deviation
        square = ((np.float64(deviation) - classes.remainders[c]) * classes.unit) ** 2
        squares += np.float64(classes.decided[run]) * square
        fourths += np.float64(classes.decided[run]) * square * square
        peak = max(peak, square)
    classes.squares[c] = squares
    classes.fourths[c] = fourths
    classes.peaks[c] = peak


@borrowing
def count_values(values: Index, classes: ScoredClasses, c: int, buffers: ValueBuffers) -> int:
    """Add up the objects of a class and their deviations by value; return how many values there are."""
    by_value = buffers.by_value
    present = buffers.present
    is_wide = len(classes.high) > 0
    n_values = 0
    for i in range(np.int64(classes.begins[c]), np.int64(classes.begins[c + 1])):
        value = values[i]
        if by_value[value, 0] == 0:
            present[n_values] = value
            n_values += 1
        by_value[value, 0] += classes.weights[i]
        by_value[value, 1] += classes.low[i]
        if is_wide:
            by_value[value, 2] += classes.high[i]
    return n_values


@borrowing
def clear_values(n_values: int, buffers: ValueBuffers) -> None:
    """Reset the buffers after a class."""
    for t in range(n_values):
        value = buffers.present[t]
        buffers.by_value[value, 0] = 0
        buffers.by_value[value, 1] = 0
        buffers.by_value[value, 2] = 0


@borrowing
def rank_varies(n_values: int, classes: ScoredClasses, c: int, buffers: ValueBuffers) -> bool:
    """Whether B of a class depends on how its values and decisions are matched."""
    n = classes.n_objects[c]
    n_scores = n_scores_of(classes, c)
    if n_values in (1, n) or n_scores == 1:
        return False
    if n_scores > 2:
        return True
    by_value = buffers.by_value
    present = buffers.present
    if classes.fewest[c] == 1:  # one object differs from the others, whose values may all be of one size
        n_of_first_size = 0
        for t in range(n_values):
            n_of_first_size += by_value[present[t], 0] == by_value[present[0], 0]
        return bool(n_of_first_size < n_values)
    has_single = n_values == 2 and min(by_value[present[0], 0], by_value[present[1], 0]) == 1
    # whichever object has the value of its own, c² is the same if half of them have each score
    return not (has_single and 2 * classes.fewest[c] == n)


@borrowing
def _moments(values: Index, classes: ScoredClasses, buffers: ValueBuffers, sums: Ints) -> None:
    """Add up the statistic, mean and variance of all classes."""
    for c in range(len(classes.n_objects)):
        if n_scores_of(classes, c) < 2 or classes.n_objects[c] == 2:
            continue
        n_values = count_values(values, classes, c, buffers)
        if rank_varies(n_values, classes, c, buffers):
            _add_statistic(n_values, classes, c, buffers, sums)
            mean, variance = rank_moments(n_values, classes, c, buffers)
            add_exactly(sums[_MEAN], mean)
            add_exactly(sums[_VARIANCE], variance)
        clear_values(n_values, buffers)


@borrowing
def _add_statistic(n_values: int, classes: ScoredClasses, c: int, buffers: ValueBuffers, sums: Ints) -> None:
    by_value = buffers.by_value
    for t in range(n_values):
        value = buffers.present[t]
        size = np.float64(by_value[value, 0])
        low = by_value[value, 1]
        total = np.float64(low)
        if len(classes.high) > 0:
            high = by_value[value, 2] + (low >> _LOW_BITS)
            total = np.float64(high) * 2.0**_LOW_BITS + np.float64(low & _LOW_MASK)
        total = (total - size * classes.remainders[c]) * classes.unit
        add_exactly(sums[_STATISTIC], total * total / size)


@borrowing
def _spread(n_values: int, n_objects: np.int64, buffers: ValueBuffers) -> float:
    """N·g of a class."""
    n = np.float64(n_objects)
    v = np.float64(n_values)
    if n_objects < len(INVERSES):
        inverse_sum = np.int64(0)
        for t in range(n_values):
            inverse_sum += INVERSES[buffers.by_value[buffers.present[t], 0]]
        return n * (np.float64(inverse_sum) * 2.0**-50) - v * v
    # a sum of squares, in which nothing cancels; of sorted numbers, since a sum of floats depends on their order
    sort_sizes(n_values, buffers)
    spread = 0.0
    for t in range(n_values):
        size = np.float64(buffers.sizes[t])
        spread += (n - v * size) ** 2 / (n * size)
    return spread


@borrowing
def sort_sizes(n_values: int, buffers: ValueBuffers) -> None:
    """Write the numbers of objects of a class's values into the buffer, in ascending order."""
    for t in range(n_values):
        buffers.sizes[t] = buffers.by_value[buffers.present[t], 0]
    sort_first(buffers.sizes, n_values)


@borrowing
def rank_moments(n_values: int, classes: ScoredClasses, c: int, buffers: ValueBuffers) -> tuple[float, float]:
    """Mean and variance of B of one class."""
    n = np.float64(classes.n_objects[c])
    v = np.float64(n_values)
    spread = _spread(n_values, classes.n_objects[c], buffers)
    sigma = classes.squares[c] / (n - 1)
    mean = (v - 1) * sigma
    product = (v - 1) * (n - v)
    variance = 2 * sigma * sigma * product / (n + 1)
    if n > 3:
        excess = classes.fourths[c] / (n - 1) - 3 * classes.squares[c] * (classes.squares[c] / (n * (n + 1)))
        variance += ((n + 1) * spread - 2 * product) / ((n - 2) * (n - 3)) * excess
    return mean, max(variance, 0.0)
