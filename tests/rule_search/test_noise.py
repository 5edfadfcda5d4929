"""Tables of pure noise: at most alpha of them give any rule."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

import plar
from support.environment import TURNS

ALPHA = 0.05
N_TABLES = 300 * TURNS


def noise(pick: random.Random, n_decisions: int) -> dict[str, list[Any]]:
    """Columns that know nothing of the decision: categories, numbers, and rare values."""
    n_rows = pick.choice([40, 100, 250])
    columns: dict[str, list[Any]] = {}
    for number in range(pick.choice([2, 5, 12])):
        n_values = pick.choice([2, 3, 8, 30])
        rarity = pick.choice([1, 2, 4])
        if pick.random() < 0.3:
            columns[f"a{number}"] = [pick.gauss(0, 1) for _ in range(n_rows)]
        else:
            columns[f"a{number}"] = [f"v{math.floor(n_values * pick.random() ** rarity)}" for _ in range(n_rows)]
    skew = pick.choice([1, 3])
    columns["d"] = [f"class {math.floor(n_decisions * pick.random() ** skew)}" for _ in range(n_rows)]
    return columns


@pytest.mark.parametrize("n_decisions", [2, 3, 5, 10])
def test_noise_seldom_gives_a_rule(n_decisions: int) -> None:
    pick = random.Random(n_decisions)
    n_with_rules = sum(
        any(rule.conditions for rule in plar.rules(noise(pick, n_decisions), "d", alpha=ALPHA)) for _ in range(N_TABLES)
    )
    standard_error = math.sqrt(ALPHA * (1 - ALPHA) / N_TABLES)
    assert n_with_rules / N_TABLES <= ALPHA + 3 * standard_error
