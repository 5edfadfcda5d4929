"""Results to report on; made once."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

import plar
from plar.datasets import random_table
from plar.results.selection import QUARTILES
from support.odd_names import MARKUP_DECISION, MARKUP_NAMES, markup_table


@cache
def markup_reduct() -> plar.Reduct:
    """Of columns whose names a browser could take for tags."""
    return plar.reduce(markup_table(), MARKUP_DECISION, include=["<!--"], max_attributes=5, equivalent=True)


@cache
def wide_reduct() -> plar.Reduct:
    """Of 120 columns of 2 to 13 values: as text, 10 would come before 9."""
    cells, y = random_table(300, 120, values=252, classes=2)
    columns = {f"c{j}": cells[:, j] % (2 + j % 12) for j in range(120)}
    return plar.reduce({**columns, "y": y}, "y", equivalent=True)


@cache
def markup_selection(target_type: str = "classes") -> plar.Selection:
    """Of columns whose names, and values, a browser could take for tags; each says something about the target."""
    rng = np.random.default_rng(5)
    target = rng.integers(0, 4, 300)
    columns: dict[str, Any] = {}
    for j, name in enumerate(MARKUP_NAMES):
        blurred = np.where(rng.random(300) < 0.1 + 0.05 * j, rng.integers(0, 4, 300), target)
        columns[name] = [MARKUP_NAMES[value] for value in blurred]
    columns["<twin>"] = columns["<!--"]
    columns["noise"] = rng.integers(0, 3, 300).tolist()
    columns[MARKUP_DECISION] = [MARKUP_NAMES[value] for value in target]
    selection = plar.select(columns, MARKUP_DECISION, include=["noise"], alpha=0.5)
    return selection if target_type == "classes" else with_numbers(selection)


def with_numbers(selection: plar.Selection) -> plar.Selection:
    """The same as if the target were numbers, with quartiles in the place of shares."""
    by_values = {}
    for name, by_value in selection.by_values.items():
        values = [
            replace(value, numbers=(None,) * 3 if k == 1 else (-2.5 * k, k / 7, k + 1e6))
            for k, value in enumerate(by_value.values)
        ]
        by_values[name] = replace(by_value, heads=QUARTILES, values=tuple(values))
    return replace(selection, target_type="numbers", n_classes=None, by_values=by_values)


@cache
def wide_selection() -> plar.Selection:
    """Of 120 columns, of which one predicts the target."""
    cells, y = random_table(300, 120, values=252, classes=2)
    columns: dict[str, Any] = {f"c{j}": cells[:, j] % (2 + j % 12) for j in range(120)}
    return plar.select({**columns, "cause": y, "y": y}, "y")


@cache
def markup_rules() -> plar.Rules:
    """Of columns whose names and values, and of classes, that a browser could take for tags."""
    rng = np.random.default_rng(5)
    target = rng.integers(0, 3, 400)
    columns: dict[str, Any] = {}
    for name in MARKUP_NAMES:
        is_blurred = rng.random(400) < 0.3
        values = np.where(is_blurred, rng.integers(0, 3, 400), target)
        columns[name] = [MARKUP_NAMES[5 * value] for value in values]
    columns["constant"] = ["<b>"] * 400
    columns[MARKUP_DECISION] = [MARKUP_NAMES[value] for value in target]
    return plar.rules(columns, MARKUP_DECISION)


@cache
def many_rules() -> plar.Rules:
    """Some hundred certain rules, of three classes, and of columns of which one is the beginning of another."""
    rng = np.random.default_rng(1)
    columns: dict[str, Any] = {f"c{j}": rng.integers(0, 4, 900) for j in range(7)}
    columns["xc1"] = rng.integers(0, 4, 900)
    columns["y"] = np.array(["few", "more", "most"])[np.minimum(rng.integers(0, 6, 900), 2)]
    return plar.rules(columns, "y", kind="certain")
