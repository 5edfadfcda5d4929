"""Whether a candidate says more about the ranks of a decision than chance, where the first stage would accept it."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plar.chance.association import Association
from plar.chance.draws import drawn_p_value, seeded, uniform, wanted_draws
from plar.chance.exact_sums import add_exactly, exact_sums, total_of
from plar.chance.rank_association import (
    ScoredClasses,
    ValueBuffers,
    clear_values,
    count_values,
    n_scores_of,
    rank_moments,
    rank_varies,
    scored_classes,
    sort_sizes,
    value_buffers,
)
from plar.grouping.partition import Index, Ints
from plar.runtime.jit import borrowing, jit
from plar.uncertainty.strata import CrossTab

#: the most work to confirm one candidate, in objects drawn; and where the gamma distribution would do as well
_MAX_DRAWN: Final = 20_000_000
_MAX_DRAWN_IF_LIGHT: Final = 2_000_000
#: classes of more objects in all are not drawn, since each object takes memory
_MAX_OBJECTS: Final = 1 << 22
#: the ranks of a class are light-tailed if no c² is this many times their mean; for equally distant ranks it is 3
_LIGHT_PEAK = 4.0
#: of others, a value is frequent if it has this many times as many objects
_FREQUENT = 1000.0
#: the most skewness that classes of neither kind may add where the gamma distribution stands alone
_MAX_SKEWNESS = 0.02


class _Judged(NamedTuple):
    """What the margins say of the tail."""

    #: a bound on the p-value that holds for any margins
    bound: float
    #: a bound on the skewness of what does not follow the gamma distribution
    skewness: float


class _Size(NamedTuple):
    """How large the classes are in which B varies."""

    n_classes: int
    n_objects: int
    #: objects that are drawn for a table
    cost: int
    #: numbers that describe the margins
    n_numbers: int


def confirmed_by_ranks(
    table: CrossTab, measured: Association, screened: float, n_candidates: int, level: float
) -> float:
    """The p-value of B, times the number of candidates; `screened` is that of the first stage.

    A bound may decide at once. Otherwise tables with the same margins are drawn. If that would take long, the gamma
    distribution stands alone where ranks are light-tailed or no value is rare: there its tail is never much too small,
    and too large in small classes (in a million tables drawn for each of some margins of 30 to 300 objects, at 1 %,
    0.1 % and 0.01 %: up to 1.3 times too small).
    """
    assert table.scores is not None
    classes = scored_classes(table.runs, table.scores)
    buffers = value_buffers(classes, table.n_values)
    tail = judged(table.values, classes, buffers, measured)
    bound = n_candidates * tail.bound
    if bound <= level:
        return bound
    size = _size(table.values, classes, buffers)
    is_light = tail.skewness <= _MAX_SKEWNESS
    if is_light and size.cost * wanted_draws(n_candidates, level) > _MAX_DRAWN_IF_LIGHT:
        return screened
    if size.n_objects > _MAX_OBJECTS:
        return bound
    drawn = drawn_with(table.values, classes, buffers, measured, n_candidates, level)
    return bound if drawn is None else drawn


def drawn_with(
    values: Index,
    classes: ScoredClasses,
    buffers: ValueBuffers,
    measured: Association,
    n_candidates: int,
    level: float,
) -> float | None:
    """The p-value by tables with the same margins, times the number of candidates; None if there is no time for it."""
    size = _size(values, classes, buffers)
    margins = _margins_of(values, classes, buffers, size)
    urn = _urn_of(margins, size.n_classes, size.n_objects)
    least = measured.statistic / classes.unit / classes.unit * (1 - 1e-9)  # ties count, whatever the order of summation

    def draw(key: np.uint64, first: int, reached: NDArray[np.bool_]) -> None:
        _draw(margins, urn._replace(objects=urn.objects.copy()), least, key, first, reached)

    return drawn_p_value(draw, margins, max(size.cost, 1), _MAX_DRAWN, n_candidates, level)


def judged(values: Index, classes: ScoredClasses, buffers: ValueBuffers, measured: Association) -> _Judged:
    """Judge the tail by the margins.

    B can only reach b if for some value of some class T²/s reaches its part of b, however b is divided: here as the
    mean of B is. T is a sum of s numbers drawn without replacement, which Bernstein's inequality bounds (Hoeffding
    1963, section 6). And a class adds to the third moment at most its variance times the most it can add to B, m₂.
    """
    sums = exact_sums(2)
    _judge(values, classes, buffers, measured.statistic * (1 - 1e-9), measured.mean, sums)
    return _Judged(bound=min(total_of(sums[0]), 1.0), skewness=total_of(sums[1]) / measured.variance**1.5)


def _size(values: Index, classes: ScoredClasses, buffers: ValueBuffers) -> _Size:
    """Measure the classes in which B varies."""
    sizes = np.zeros(len(_Size._fields), np.int64)
    _measure_margins(values, classes, buffers, sizes)
    return _Size(*sizes.tolist())


def _margins_of(values: Index, classes: ScoredClasses, buffers: ValueBuffers, size: _Size) -> Ints:
    """The margins of the classes in which B varies, in an order that depends on nothing but the margins.

    Of each class: numbers of values and of different scores, objects by value in ascending order, scores in ascending
    order, and their objects.
    """
    flat = np.empty(size.n_numbers, np.int64)
    bounds = np.zeros(size.n_classes + 1, np.int64)
    _write_margins(values, classes, buffers, flat, bounds)
    of_classes = sorted(flat[low:high].tolist() for low, high in pairwise(bounds.tolist()))
    return np.array([number for of_class in of_classes for number in of_class], np.int64)


# -- kernels ---------------------------------------------------------------------------------------------------


@jit
def _judge(
    values: Index, classes: ScoredClasses, buffers: ValueBuffers, statistic: float, mean: float, sums: Ints
) -> None:
    """Add up the bounds of all values of all classes, and the third moments of the classes that need it."""
    for c in range(len(classes.n_objects)):
        n_values = count_values(values, classes, c, buffers)
        if rank_varies(n_values, classes, c, buffers):
            n = np.float64(classes.n_objects[c])
            sigma = classes.squares[c] / (n - 1)
            peak = classes.peaks[c] * n / classes.squares[c]
            rarest = n
            for t in range(n_values):
                size = np.float64(buffers.by_value[buffers.present[t], 0])
                rarest = min(rarest, size)
                part = (1 - size / n) * sigma / mean * statistic
                total = math.sqrt(size * part)
                few = min(size, n - size)
                scale = few * classes.squares[c] / n + math.sqrt(classes.peaks[c]) * total / 3
                add_exactly(sums[0], 2 * math.exp(-total * total / (2 * scale)))
            if peak > _LIGHT_PEAK and rarest < _FREQUENT * peak:
                _, variance = rank_moments(n_values, classes, c, buffers)
                add_exactly(sums[1], variance * classes.squares[c])
        clear_values(n_values, buffers)


@jit
def _measure_margins(values: Index, classes: ScoredClasses, buffers: ValueBuffers, sizes: Ints) -> None:
    """Add up the fields of a `_Size`."""
    for c in range(len(classes.n_objects)):
        n_values = count_values(values, classes, c, buffers)
        if rank_varies(n_values, classes, c, buffers):
            most = np.int64(0)
            for t in range(n_values):
                most = max(most, buffers.by_value[buffers.present[t], 0])
            n = classes.n_objects[c]
            sizes[0] += 1
            sizes[1] += n
            sizes[2] += min(n - most, n - classes.most[c] + n_values)
            sizes[3] += 2 + n_values + 2 * n_scores_of(classes, c)
        clear_values(n_values, buffers)


@jit
def _write_margins(values: Index, classes: ScoredClasses, buffers: ValueBuffers, flat: Ints, bounds: Ints) -> None:
    n_written = 0
    at = np.int64(0)
    for c in range(len(classes.n_objects)):
        n_values = count_values(values, classes, c, buffers)
        if rank_varies(n_values, classes, c, buffers):
            sort_sizes(n_values, buffers)
            low = np.int64(classes.first[c])
            high = np.int64(classes.first[c + 1])
            flat[at] = n_values
            flat[at + 1] = high - low
            at += 2
            flat[at : at + n_values] = buffers.sizes[:n_values]
            at += n_values
            flat[at : at + high - low] = classes.scores[low:high] - classes.centres[c]
            at += high - low
            flat[at : at + high - low] = classes.decided[low:high]
            at += high - low
            n_written += 1
            bounds[n_written] = at
        clear_values(n_values, buffers)


class _Urn(NamedTuple):
    """The objects that are drawn, and what is known of each class."""

    #: class by class: the score of each object, or where values are drawn the place of its value
    objects: Ints
    #: by class: numbers of values, scores and objects, then where its first size, score and number of objects of a
    #: score are, the place of the most frequent score, and whether scores are drawn for the values
    facts: Ints
    #: by class: the mean of the scores
    means: NDArray[np.float64]


# columns of `facts`
_N_VALUES = 0
_N_SCORES = 1
_N_OBJECTS = 2
_SIZES = 3
_SCORES = 4
_DECIDED = 5
_MODE = 6
_DRAWS_SCORES = 7
_N_FACTS = 8


def _urn_of(margins: Ints, n_classes: int, n_objects: int) -> _Urn:
    """Fill the urn."""
    urn = _Urn(np.empty(n_objects, np.int64), np.empty((n_classes, _N_FACTS), np.int64), np.empty(n_classes))
    _fill(margins, urn)
    return urn


@jit
def _fill(margins: Ints, urn: _Urn) -> None:
    at = np.int64(0)
    end = np.int64(0)
    for c in range(len(urn.facts)):
        n_values = margins[at]
        n_scores = margins[at + 1]
        sizes = margins[at + 2 : at + 2 + n_values]
        scores = margins[at + 2 + n_values : at + 2 + n_values + n_scores]
        decided = margins[at + 2 + n_values + n_scores : at + 2 + n_values + 2 * n_scores]
        n = sizes.sum()
        mode = decided.argmax()
        # whichever is less work
        draws_scores = n - sizes[n_values - 1] <= n - decided[mode] + n_values
        facts = urn.facts[c]
        facts[_N_VALUES] = n_values
        facts[_N_SCORES] = n_scores
        facts[_N_OBJECTS] = n
        facts[_SIZES] = at + 2
        facts[_SCORES] = facts[_SIZES] + n_values
        facts[_DECIDED] = facts[_SCORES] + n_scores
        facts[_MODE] = mode
        facts[_DRAWS_SCORES] = draws_scores
        urn.means[c] = np.float64((scores * decided).sum()) / np.float64(n)
        numbers = decided if draws_scores else sizes
        for i in range(len(numbers)):
            begin = end
            end += numbers[i]
            urn.objects[begin:end] = scores[i] if draws_scores else i
        at = facts[_DECIDED] + n_scores


@jit
def _draw(margins: Ints, urn: _Urn, least: float, key: np.uint64, first: int, reached: NDArray[np.bool_]) -> None:
    """Whether B of table number `first` and of the following ones reaches `least`; each has its own random numbers."""
    state = np.empty(1, np.uint64)
    sums = np.zeros(urn.facts[:, _N_VALUES].max(), np.int64)
    for t in range(len(reached)):
        state[0] = seeded(key, first + t)
        total = 0.0
        begin = np.int64(0)
        for c in range(len(urn.facts)):
            facts = urn.facts[c]
            end = begin + facts[_N_OBJECTS]
            objects = urn.objects[begin:end]
            if facts[_DRAWS_SCORES]:
                total += _with_drawn_scores(margins, facts, urn.means[c], objects, state)
            else:
                total += _with_drawn_values(margins, facts, urn.means[c], objects, sums, state)
            begin = end
        reached[t] = total >= least


@borrowing
def _drawn_object(objects: Ints, n_drawn: np.int64, state: NDArray[np.uint64]) -> np.int64:
    """Draw one of the objects that are left, which begin at `n_drawn`."""
    pick = n_drawn + np.int64(uniform(state) * np.float64(len(objects) - n_drawn))
    drawn = objects[pick]
    objects[pick] = objects[n_drawn]
    objects[n_drawn] = drawn
    return np.int64(drawn)


@borrowing
def _with_drawn_scores(margins: Ints, facts: Ints, mean: float, objects: Ints, state: NDArray[np.uint64]) -> float:
    """B of a class where each value but the last, which is the most frequent, draws the scores of its objects."""
    total = 0.0
    rest = 0.0
    n_drawn = np.int64(0)
    last = facts[_SIZES] + facts[_N_VALUES] - 1
    for v in range(facts[_SIZES], last):
        size = margins[v]
        drawn = np.int64(0)
        for _ in range(size):
            drawn += _drawn_object(objects, n_drawn, state)
            n_drawn += 1
        deviation = np.float64(drawn) - np.float64(size) * mean
        rest += deviation
        total += deviation * deviation / np.float64(size)
    return total + rest * rest / np.float64(margins[last])


@borrowing
def _with_drawn_values(
    margins: Ints, facts: Ints, mean: float, objects: Ints, sums: Ints, state: NDArray[np.uint64]
) -> float:
    """B of a class where the objects of each score but the most frequent draw their values."""
    n_drawn = np.int64(0)
    n_values = facts[_N_VALUES]
    sums[:n_values] = 0
    most_frequent = margins[facts[_SCORES] + facts[_MODE]]
    for j in range(facts[_N_SCORES]):
        if j != facts[_MODE]:
            deviation = margins[facts[_SCORES] + j] - most_frequent
            for _ in range(margins[facts[_DECIDED] + j]):
                sums[_drawn_object(objects, n_drawn, state)] += deviation
                n_drawn += 1
    total = 0.0
    for v in range(n_values):
        size = np.float64(margins[facts[_SIZES] + v])
        of_value = np.float64(sums[v]) + size * (np.float64(most_frequent) - mean)
        total += of_value * of_value / size
    return total
