"""The kernels of the search: tails of the hypergeometric distribution, and how often conditions hold."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from plar.rule_search.coded_table import CodedTable, Rows
from plar.rule_search.counting import ConditionCounts
from plar.rule_search.kernels import log_tail
from support.environment import TURNS
from support.rule_tables import RuleSample, any_rule_tables
from support.rules import hypergeometric_tail, log_of
from support.tails import exact_log_tail

Margins = tuple[int, int, int, int]


def is_more_than_chance(margins: Margins) -> bool:
    n_rows, n_hits, n_matched, n_matched_hits = margins
    return n_matched_hits * n_rows > n_matched * n_hits


def small_margins() -> Iterator[Margins]:
    """All margins of up to ten rows whose hits are more than chance expects."""
    for n_rows in range(2, 11):
        for n_hits in range(1, n_rows):
            for n_matched in range(1, n_rows):
                for hits in range(max(0, n_hits + n_matched - n_rows), min(n_hits, n_matched) + 1):
                    if is_more_than_chance((n_rows, n_hits, n_matched, hits)):
                        yield n_rows, n_hits, n_matched, hits


def test_small_tails_are_those_of_the_definition() -> None:
    all_margins = list(small_margins())
    assert len(all_margins) > 300
    for margins in all_margins:
        assert log_tail(*margins, math.inf) == pytest.approx(log_of(hypergeometric_tail(*margins)), abs=1e-13)


def test_many_digits_agree_with_fractions() -> None:
    for margins in [(10, 4, 5, 3), (5_000, 40, 700, 20), (5_000, 2_500, 2_400, 1_500)]:
        assert float(exact_log_tail(*margins)) == pytest.approx(log_of(hypergeometric_tail(*margins)), rel=1e-13)


def random_margins(pick: random.Random) -> Margins | None:
    """Margins of up to 10^12 rows, or None where no number of hits is more than chance expects.

    The hits are as many as there can be, as few, any number, or some deviations above the mean.
    """

    def up_to(most: int) -> int:
        return min(most, round(10 ** pick.uniform(0, math.log10(most + 1))))

    n_rows = 2 + up_to(10 ** pick.choice([2, 4, 9, 12]))
    n_hits = max(1, up_to(n_rows - 1))
    n_matched = max(1, up_to(n_rows - 1))
    mean = n_hits * n_matched / n_rows
    deviation = math.sqrt(mean * (1 - n_hits / n_rows) * (1 - n_matched / n_rows))
    least = max(math.floor(mean) + 1, n_hits + n_matched - n_rows)
    most = min(n_hits, n_matched)
    if least > most:
        return None
    if deviation > 1e4:  # nearer to the mean there are millions of terms
        least = min(most, least + round(4 * deviation))
    above = round(mean + pick.uniform(0, 40) * deviation)
    hits = pick.choice([least, most, pick.randint(least, most), above])
    return n_rows, n_hits, n_matched, min(most, max(least, hits))


@pytest.mark.parametrize("seed", range(TURNS))
def test_tails_keep_their_digits_in_tables_of_any_size(seed: int) -> None:
    pick = random.Random(seed)
    n_large = 0
    for _ in range(600):
        margins = random_margins(pick)
        if margins is None or not is_more_than_chance(margins):
            continue
        expected = float(exact_log_tail(*margins))
        # those that differ by less than 1e-11 tie
        assert abs(log_tail(*margins, math.inf) - expected) <= 1e-11 * (1 - expected), margins
        n_large += margins[0] > 10**8
    assert n_large > 30


def test_the_hits_and_the_matched_rows_are_interchangeable() -> None:
    for n_rows, n_hits, n_matched, hits in small_margins():
        one_way = log_tail(n_rows, n_hits, n_matched, hits, math.inf)
        assert log_tail(n_rows, n_matched, n_hits, hits, math.inf) == pytest.approx(one_way, abs=1e-13)


def test_a_tail_below_the_ceiling_is_exact_and_one_above_is_above() -> None:
    for margins in small_margins():
        expected = log_tail(*margins, math.inf)
        for ceiling in (-6.0, -2.0, -0.5, expected):
            tail = log_tail(*margins, ceiling)
            if expected <= ceiling:
                assert tail == expected
            else:
                assert tail > ceiling


@settings(max_examples=100 * TURNS)
@given(any_rule_tables(), st.randoms(use_true_random=False))
def test_conditions_hold_as_often_as_masks_say(sample: RuleSample, pick: random.Random) -> None:
    table = CodedTable.of(sample.granulate())
    kinds = np.array([pick.randrange(3) for _ in range(len(table))], np.uint8)
    rows = np.flatnonzero([pick.random() < 0.7 for _ in range(len(table))]).astype(np.uint32)
    stays = np.array([pick.random() < pick.choice([0.2, 0.8]) for _ in rows], np.bool_)
    counts = ConditionCounts(table, 3)
    counts.add(rows, kinds)
    check_counts(counts, table, rows, kinds)
    other = ConditionCounts(table, 3)
    other.copy_from(counts)
    other.keep(rows, stays, kinds)
    check_counts(other, table, rows[stays], kinds)
    counts.add(rows[~stays], kinds, -1)
    check_counts(counts, table, rows[stays], kinds)
    counts.clear()
    check_counts(counts, table, rows[:0], kinds)


def check_counts(counts: ConditionCounts, table: CodedTable, rows: Rows, kinds: NDArray[np.uint8]) -> None:
    """Count once more, condition by condition."""
    of_kinds = [table.weights[rows[kinds[rows] == kind]].sum() for kind in range(3)]
    assert counts.totals.tolist() == of_kinds
    of_conditions = counts.of_conditions()
    for number, condition in enumerate(table.conditions):
        matching = table.matching([condition], rows)
        of_kinds = [table.weights[matching[kinds[matching] == kind]].sum() for kind in range(3)]
        assert of_conditions[number].tolist() == of_kinds
