"""Random tables with columns of every type, and rules as the oracle of prediction takes them."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

from support.rule_prediction import RuleSet

Table = dict[str, list[Any]]


def random_table(seed: int, n_rows: int) -> Table:
    """Columns of every type, some values missing, and a decision that depends on some of them."""
    pick = random.Random(seed)
    start = dt.date(2024, 1, 1)

    def some(value: Any) -> Any:
        return None if pick.random() < 0.1 else value

    table: Table = {
        "size": [some(round(pick.gauss(0, 2), 2)) for _ in range(n_rows)],
        "whole": [some(pick.randrange(40)) for _ in range(n_rows)],
        "few": [some(pick.choice([0.0, 1.0, 2.5])) for _ in range(n_rows)],
        "colour": [some(pick.choice(["red", "it's", 'a "q"', "1", "1.0"])) for _ in range(n_rows)],
        "flag": [some(pick.random() < 0.5) for _ in range(n_rows)],
        "day": [some(start + dt.timedelta(days=pick.randrange(30))) for _ in range(n_rows)],
        "month": [some(dt.date(2024, pick.randrange(1, 5), 1)) for _ in range(n_rows)],
        "clock": [some(dt.time(pick.randrange(24), pick.choice([0, 30]))) for _ in range(n_rows)],
    }
    words = ["no", "yes", "it's", "é"][: pick.randint(2, 4)]
    for i in range(n_rows):
        cause = ((table["size"][i] or 0) > 0) + (table["colour"][i] == "red") * bool(table["flag"][i])
        is_noise = pick.random() < 0.1
        table.setdefault("d", []).append(pick.choice(words) if is_noise else words[cause % len(words)])
    return table


def rows_of(table: Table) -> list[dict[str, Any]]:
    """The rows of a table."""
    return [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]


def as_plain(rules: Any) -> RuleSet:
    """A result of `plar.rules` as plain data."""
    return RuleSet(
        [([(c.column, c.operator, c.value) for c in rule.conditions], rule.evidence) for rule in rules],
        rules.class_sizes,
    )
