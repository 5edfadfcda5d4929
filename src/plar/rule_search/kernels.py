"""The inner loops of the search for rules: counting how often conditions hold, and choosing one by the counts.

Counts are a matrix with a row for each value, or each condition, of all columns, one column after another, and a column
for each kind of row.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plar.rule_search.coded_table import Counts, Mask, Rows
from plar.runtime.jit import jit

#: terms below this share of their sum are not added
_NEGLIGIBLE = 1e-17


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
    n_columns = codes.shape[1]
    for i in range(len(rows)):
        row = rows[i]
        kind = kinds[row]
        weight = sign * weights[row]
        for column in range(n_columns):
            counts[first_values[column] + np.int64(codes[row, column]), kind] += weight


@jit
def log_factorial(n: int) -> float:
    """The natural logarithm of n!."""
    return math.lgamma(n + 1.0)


@jit
def log_tail(n_rows: int, n_hits: int, n_matched: int, n_matched_hits: int, ceiling: float) -> float:
    """Ln P(K ≥ k) for the k hits among the matched rows, if they were drawn from all rows at random.

    The hits must be more than chance expects on average. If the result is above the ceiling, it may be anything above.
    """
    n_others = n_rows - n_hits
    n_matched_others = n_matched - n_matched_hits
    first = (
        log_factorial(n_hits)
        - log_factorial(n_matched_hits)
        - log_factorial(n_hits - n_matched_hits)
        + log_factorial(n_others)
        - log_factorial(n_matched_others)
        - log_factorial(n_others - n_matched_others)
        - log_factorial(n_rows)
        + log_factorial(n_matched)
        + log_factorial(n_rows - n_matched)
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
def least_likely(of_conditions: Counts, totals: Counts, min_support: int) -> tuple[int, float, int]:
    """The condition that chance explains worst, ln of its tail, and how many conditions tell the rows apart.

    The kinds are rows of other decisions, rows of the decision that some rule matches, and those that none matches. A
    condition must match one of the last, and raise the share of the decision. Ties go to the larger support, then
    to the first. The number is -1 if there is no such condition.
    """
    n_hits = totals[1] + totals[2]
    n_rows = totals[0] + n_hits
    share = n_hits / n_rows
    best = -1
    best_tail = np.inf
    best_hits = 0
    n_candidates = 0
    for condition in range(len(of_conditions)):
        others = of_conditions[condition, 0]
        new_hits = of_conditions[condition, 2]
        hits = of_conditions[condition, 1] + new_hits
        matched = others + hits
        if matched == 0 or matched == n_rows:
            continue
        n_candidates += 1
        if new_hits == 0 or hits < min_support or hits / matched <= share:
            continue
        tail = log_tail(n_rows, n_hits, matched, hits, best_tail)
        if tail < best_tail or (tail == best_tail and hits > best_hits):
            best = condition
            best_tail = tail
            best_hits = hits
    return best, best_tail, n_candidates


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
