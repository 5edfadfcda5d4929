"""The inner loops of the search for rules: counting how often conditions hold, and choosing one by the counts.

Counts are a matrix with a row for each value, or each condition, of all columns, one column after another, and a column
for each kind of row.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plar.grouping.bit_sets import Words
from plar.rule_search.coded_table import Counts, Mask, Rows
from plar.runtime.jit import jit

#: below this many, ln n! is summed up by the library
_FEW = 16
_LN_SQRT_2_PI = 0.5 * math.log(2 * math.pi)
#: logarithms of tails tie if they differ by no more than this, relative to them
_ROUNDING = 1e-11
#: terms below this share of their sum are not added
_NEGLIGIBLE = 1e-17
#: shares are added up in whole numbers of these parts of one; of 2^40 rows, the sum is below 2^63
_SHARE_UNITS = float(1 << 22)


@jit
def add_rows(
    codes: NDArray[np.unsignedinteger[Any]],
    first_values: NDArray[np.int64],
    rows: Rows,
    weights: Counts,
    kinds: NDArray[np.uint8],
    sign: int,
    counts: Counts,
) -> None:
    """Add some rows to the counts, each in the column of its kind; with the sign -1, take them out."""
    # unsigned indices need no check for being negative, which saves a third
    n_columns = np.uint64(codes.shape[1])
    for i in range(len(rows)):
        row = np.uint64(rows[i])
        kind = np.uint64(kinds[row])
        weight = sign * weights[row]
        for column in range(n_columns):
            counts[np.uint64(first_values[column]) + np.uint64(codes[row, column]), kind] += weight


@jit
def add_totals(rows: Rows, weights: Counts, kinds: NDArray[np.uint8], sign: int, totals: Counts) -> None:
    """Add the weights of some rows to the total of the kind of each."""
    for i in range(len(rows)):
        totals[kinds[rows[i]]] += sign * weights[rows[i]]


@jit
def stirling_error(n: float) -> float:
    """How much ln n! is above Stirling's formula, ln(n/e)^n + ln √(2πn)."""
    if n < _FEW:
        return math.lgamma(n + 1.0) - (n + 0.5) * math.log(n) + n - _LN_SQRT_2_PI
    square = n * n
    return (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - 1 / 1188 / square) / square) / square) / square) / n


@jit
def deviance(n: float, mean: float) -> float:
    """Compute n·ln(n/mean) + mean - n, without cancellation where n is near the mean."""
    difference = n - mean
    if abs(difference) >= 0.1 * (n + mean):
        return n * math.log(n / mean) - difference
    ratio = difference / (n + mean)
    total = difference * ratio
    term = 2.0 * n * ratio
    divisor = 1.0
    while True:
        term *= ratio * ratio
        divisor += 2.0
        longer = total + term / divisor
        if longer == total:
            return total
        total = longer


@jit
def log_binomial(hits: float, n: float, share: float, other_share: float) -> float:
    """Ln of the probability of so many hits in n draws, by Loader's formula, whose error does not grow with n."""
    misses = n - hits
    if hits == 0.0:
        return 0.0 if n == 0.0 else -deviance(n, n * other_share) - n * share
    if misses == 0.0:
        return -deviance(n, n * share) - n * other_share
    correction = stirling_error(n) - stirling_error(hits) - stirling_error(misses)
    spread = deviance(hits, n * share) + deviance(misses, n * other_share)
    return correction - spread + 0.5 * math.log(n / hits / misses) - _LN_SQRT_2_PI


@jit
def log_tail(n_rows: int, n_hits: int, n_matched: int, n_matched_hits: int, ceiling: float) -> float:
    """Ln P(K ≥ k) for the k hits among the matched rows, if they were drawn from all rows at random.

    The hits must be more than chance expects on average, and neither no rows nor all of them be matched. If the result
    is above the ceiling, it may be anything above.

    References
    ----------
    C. Loader: Fast and Accurate Computation of Binomial Probabilities, 2000.
    """
    n_others = n_rows - n_hits
    n_matched_others = n_matched - n_matched_hits
    share = n_matched / n_rows
    other_share = (n_rows - n_matched) / n_rows
    first = (
        log_binomial(float(n_matched_hits), float(n_hits), share, other_share)
        + log_binomial(float(n_matched_others), float(n_others), share, other_share)
        - log_binomial(float(n_matched), float(n_rows), share, other_share)
    )
    if first > ceiling:
        return first
    # terms relative to the first: each is the one before times a ratio
    total = 1.0
    term = 1.0
    hits = float(n_matched_hits)
    room = float(n_others - n_matched_others)
    while hits < n_hits and hits < n_matched and term > _NEGLIGIBLE * total:
        room += 1.0
        term *= (n_hits - hits) / (hits + 1.0) * (n_matched - hits) / room
        hits += 1.0
        total += term
    return min(first + math.log(total), 0.0)


@jit
def count_conditions(
    of_values: Counts,
    first_values: NDArray[np.int64],
    n_present: NDArray[np.int64],
    is_cut: Mask,
    ends_at_cut: Mask,
    of_conditions: Counts,
) -> None:
    """From how often values occur, how often conditions hold, in the order of `CodedTable.conditions`."""
    n_kinds = of_values.shape[1]
    condition = 0
    for column in range(len(n_present)):
        begin = first_values[column]
        missing = begin + n_present[column]
        end = first_values[column + 1]
        n_equal = end - (missing if is_cut[column] else begin)
        for i in range(n_equal):
            of_conditions[condition + i] = of_values[end - n_equal + i]
        condition += n_equal
        n_cuts = 0
        for value in range(begin, missing):
            n_cuts += ends_at_cut[value]
        if is_cut[column] and n_cuts == 0 and n_equal > 0 and missing > begin:
            of_conditions[condition] = of_values[begin]
            condition += 1
            continue
        if n_cuts == 0:
            continue
        for kind in range(n_kinds):
            total = 0
            for value in range(begin, missing):
                total += of_values[value, kind]
            at_most = 0
            cut = condition
            for value in range(begin, missing):
                at_most += of_values[value, kind]
                if ends_at_cut[value]:
                    of_conditions[cut, kind] = at_most
                    of_conditions[cut + n_cuts, kind] = total - at_most
                    cut += 1
        condition += 2 * n_cuts


@jit
def as_good_as(log_tail: float) -> float:
    """The largest logarithm of a tail that is equal up to rounding."""
    return log_tail + _ROUNDING * (1.0 - log_tail) if log_tail <= 0.0 else log_tail


@jit
def beating_chance(
    of_conditions: Counts, n_rows: int, n_hits: int, min_support: int, alpha: float
) -> tuple[NDArray[np.int64], NDArray[np.float64], int]:
    """The numbers of the conditions that beat chance, ln of their tails, and how many conditions tell the rows apart.

    The kinds are rows of other decisions and rows of the decision, which are the hits. A condition beats chance if it
    raises the share of the hits, and its tail times the number of conditions that tell the rows apart is, up to
    rounding, at most alpha.
    """
    n_conditions = len(of_conditions)
    n_candidates = 0
    for condition in range(n_conditions):
        matched = of_conditions[condition, 0] + of_conditions[condition, 1]
        if 0 < matched < n_rows:
            n_candidates += 1
    numbers = np.empty(n_candidates, np.int64)
    log_tails = np.empty(n_candidates, np.float64)
    n_beating = 0
    ceiling = as_good_as(math.log(alpha / max(n_candidates, 1)))
    for condition in range(n_conditions):
        hits = of_conditions[condition, 1]
        matched = of_conditions[condition, 0] + hits
        if matched == 0 or matched == n_rows:
            continue
        if hits < min_support or float(hits) * n_rows <= float(matched) * n_hits:
            continue
        tail = log_tail(n_rows, n_hits, matched, hits, ceiling)
        if tail <= ceiling:
            numbers[n_beating] = condition
            log_tails[n_beating] = tail
            n_beating += 1
    return numbers[:n_beating], log_tails[:n_beating], n_candidates


@jit
def ties(log_tails: NDArray[np.float64]) -> NDArray[np.int64]:
    """For ordered logarithms of tails, the same number for those that are equal up to rounding."""
    groups = np.zeros(len(log_tails), np.int64)
    group = 0
    ceiling = as_good_as(log_tails[0]) if len(log_tails) else 0.0
    for i in range(1, len(log_tails)):
        if log_tails[i] > ceiling:
            group += 1
            ceiling = as_good_as(log_tails[i])
        groups[i] = group
    return groups


@jit
def have_common(some: Words, others: Words) -> bool:
    """Whether two sets have a member in common."""
    common = np.uint64(0)
    place = 0
    while common == np.uint64(0) and place < len(some):
        common = some[place] & others[place]
        place += 1
    return bool(common != np.uint64(0))


@jit
def n_bits(word: np.uint64) -> np.int64:
    """How many bits of a word are set: sums of two, four and eight bits, then of all bytes."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@jit
def weigh(word: np.uint64, place: int, weights: Counts, is_weighted: bool) -> np.int64:
    """The weights of the rows in one word of a set, which is at a place in it."""
    if not is_weighted:
        return n_bits(word)
    total = np.int64(0)
    while word != np.uint64(0):
        others = word & (word - np.uint64(1))
        lowest = n_bits((word ^ others) - np.uint64(1))
        total += weights[64 * place + lowest]
        word = others
    return total


@jit
def rows_of(members: Words) -> Rows:
    """The numbers of the rows of a set."""
    n_rows = np.int64(0)
    for place in range(len(members)):
        n_rows += n_bits(members[place])
    rows = np.empty(n_rows, np.uint32)
    n = 0
    for place in range(len(members)):
        word = members[place]
        while word != np.uint64(0):
            others = word & (word - np.uint64(1))
            rows[n] = 64 * place + n_bits((word ^ others) - np.uint64(1))
            n += 1
            word = others
    return rows


@jit
def mark_present(
    codes: NDArray[np.unsignedinteger[Any]],
    first_values: NDArray[np.int64],
    rows: Rows,
    n_possible: NDArray[np.int64],
    is_present: NDArray[np.int64],
) -> None:
    """Mark, with 1, the values that some rows have; `n_possible` says how many values of each column there may be.

    Most columns have shown all of them after a few rows.
    """
    for column in range(codes.shape[1]):
        n_unseen = n_possible[column]
        i = 0
        while i < len(rows) and n_unseen > 0:
            value = first_values[column] + np.int64(codes[rows[i], column])
            n_unseen -= 1 - is_present[value]
            is_present[value] = 1
            i += 1


@jit
def count_rows(members: Words, of_decision: Words, weights: Counts, is_weighted: bool) -> tuple[np.int64, np.int64]:
    """How many rows of a set have the decision, and how many rows it has."""
    n_hits = np.int64(0)
    n_rows = np.int64(0)
    for place in range(len(members)):
        word = members[place]
        if word != np.uint64(0):
            n_hits += weigh(word & of_decision[place], place, weights, is_weighted)
            n_rows += weigh(word, place, weights, is_weighted)
    return n_hits, n_rows


@jit
def count_without_each(sets: NDArray[np.uint64], of_decision: Words, weights: Counts, is_weighted: bool) -> Counts:
    """For each of at least two sets, the rows of the decision, and all rows, that are in all others."""
    n_sets, n_words = sets.shape
    counts = np.zeros((n_sets, 2), np.int64)
    in_all_counts = np.zeros(2, np.int64)
    for place in range(n_words):
        in_all = ~np.uint64(0)
        in_all_but_one = np.uint64(0)
        for i in range(n_sets):
            of_set = sets[i, place]
            in_all_but_one = (in_all_but_one & of_set) | (in_all & ~of_set)
            in_all &= of_set
        hits = of_decision[place]
        if in_all != np.uint64(0):
            in_all_counts[0] += weigh(in_all & hits, place, weights, is_weighted)
            in_all_counts[1] += weigh(in_all, place, weights, is_weighted)
        if in_all_but_one == np.uint64(0):
            continue
        for i in range(n_sets):
            only_without = in_all_but_one & ~sets[i, place]
            if only_without != np.uint64(0):
                counts[i, 0] += weigh(only_without & hits, place, weights, is_weighted)
                counts[i, 1] += weigh(only_without, place, weights, is_weighted)
    for i in range(n_sets):
        counts[i] += in_all_counts
    return counts


@jit
def fit_rule(
    members: Words,
    weights: Counts,
    shares: NDArray[np.float64],
    observed: NDArray[np.float64],
    smoothing: NDArray[np.float64],
    units: int,
    evidence: Counts,
) -> None:
    """Add to the evidence of a rule what its rows lack to the shares of the decisions observed among them.

    The rule matches the members of a set. `shares` has, for each row, those that all rules together predict, and is
    brought up to date; `evidence` is in so many units a nat. Shares are added up in whole numbers, so that the sums do
    not depend on the order of the rows.
    """
    n_decisions = len(evidence)
    sums = np.zeros(n_decisions, np.int64)
    for place in range(len(members)):
        word = members[place]
        while word != np.uint64(0):
            others = word & (word - np.uint64(1))
            row = 64 * place + n_bits((word ^ others) - np.uint64(1))
            for decision in range(n_decisions):
                sums[decision] += weights[row] * np.int64(shares[row, decision] * _SHARE_UNITS + 0.5)
            word = others
    factors = np.empty(n_decisions)
    for decision in range(n_decisions):
        expected = sums[decision] / _SHARE_UNITS + smoothing[decision]
        added = round(units * math.log(observed[decision] / expected))
        evidence[decision] += added
        factors[decision] = math.exp(added / units)
    for place in range(len(members)):
        word = members[place]
        while word != np.uint64(0):
            others = word & (word - np.uint64(1))
            row = 64 * place + n_bits((word ^ others) - np.uint64(1))
            total = 0.0
            for decision in range(n_decisions):
                shares[row, decision] *= factors[decision]
                total += shares[row, decision]
            for decision in range(n_decisions):
                shares[row, decision] /= total
            word = others


@jit
def most_covering(of_conditions: Counts, n_outside: int, sizes: Counts) -> int:
    """The condition of LEM2: it holds for most rows of the goal; among ties for the fewest rows of the table.

    The kinds are rows outside the concept, some of which it must exclude, and rows of the goal. The number is -1 if
    there is no such condition.
    """
    best = -1
    best_covered = 0
    for condition in range(len(of_conditions)):
        covered = of_conditions[condition, 1]
        if covered == 0 or of_conditions[condition, 0] == n_outside:
            continue
        if covered > best_covered or (covered == best_covered and sizes[condition] < sizes[best]):
            best = condition
            best_covered = covered
    return best
