"""Reducts to report on; made once."""

from __future__ import annotations

from functools import cache

import plar
from plar.datasets import random_table
from support.odd_names import MARKUP_DECISION, markup_table


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
