"""Warn about columns with nearly one value per row: a reduct of such a column alone means nothing."""

from __future__ import annotations

from itertools import islice

from plar.bins import looks_continuous
from plar.engines.base import Engine, GranuleHandle
from plar.errors import printable, warn
from plar.tables import DecisionTable

__all__ = ["warn_id_columns"]

_FEWEST_OBJECTS = 50
_SHARE = 0.9
_SHOWN = 5


def warn_id_columns(engine: Engine, table: DecisionTable, granules: GranuleHandle) -> None:
    """Warn where conditions that hold fractions have nearly as many values as there are objects.

    Examples
    --------
    >>> import plar, warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = plar.reduce({"size": [i + 0.5 for i in range(60)], "d": [0, 1] * 30}, "d")
    >>> str(caught[0].message)[:57]
    "Nearly every row has a value of its own in 'size': such a"
    """
    n = granules.n_objects
    if n < _FEWEST_OBJECTS:
        return
    many = [j for j, k in enumerate(granules.cardinalities) if k > _SHARE * n]
    found = [granules.conditions[j] for j in many if looks_continuous(engine.sample_values(table, granules, j))]
    if found:
        shown = ", ".join(f"'{printable(name)}'" for name in islice(found, _SHOWN))
        more = f" and {len(found) - _SHOWN} more columns" if len(found) > _SHOWN else ""
        warn(
            f"Nearly every row has a value of its own in {shown}{more}: such a column alone distinguishes all rows, "
            "and a reduct of it means nothing. Cut numbers into bins, bins='mdlp' (--bins mdlp), or leave them out."
        )
