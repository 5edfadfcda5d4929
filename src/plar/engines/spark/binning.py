"""Bins of rows on a cluster: Spark counts the numbers of a column, the driver finds the cuts, Spark applies them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from plar.bin_rules import Bins, Cuts
from plar.bins import NoNumber, cut_columns, warn_left
from plar.coding.codes import combine
from plar.coding.series import encode_series
from plar.engines.spark.session import explained
from plar.roles import Roles
from plar.tables.spark import bin_places, number_of, present

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["bin_rows"]

_NUMBERS = ("byte", "short", "integer", "long", "float", "double", "decimal")
_WEIGHT = "w"


def bin_rows(frame: DataFrame, roles: Roles, *, text: bool) -> tuple[DataFrame, dict[str, Cuts]]:
    """Put bin numbers in place of numbers in a frame whose columns are `roles.read`, and tell where each is cut.

    The driver holds the distinct numbers of one column at a time, by decision where that matters. With `text`, values
    compare as written, blanks around them trimmed.
    """
    assert roles.bins is not None
    kinds = [f.dataType.typeName() for f in frame.schema.fields]
    counted = _counted(frame, roles, kinds, text)
    cuts: dict[str, Cuts] = {}
    left: dict[str, str] = {}
    for j, name in enumerate(roles.conditions):
        rule = roles.bins.rule(name)
        if rule is None:
            continue
        if kinds[j] not in _NUMBERS and not (text and kinds[j] == "string"):
            if name in roles.bins.columns:
                with explained("read the table"):
                    some = counted.filter(counted[f"c{j}"].isNotNull()).head()
                if some is not None:
                    raise NoNumber(some[j], name)
        elif rule.given and kinds[j] in _NUMBERS:
            cuts[name] = rule.cuts
        else:
            left |= _look(counted, roles, roles.bins, j, cuts, text)
    warn_left(left)
    places = {j: cuts[name] for j, name in enumerate(roles.conditions) if name in cuts}
    return bin_places(frame, places, text=text, na=roles.na, decimal=roles.decimal), cuts


def _counted(frame: DataFrame, roles: Roles, kinds: list[str], text: bool) -> DataFrame:
    """Rows that count, columns c0, c1, …, and how much each does."""
    from pyspark.sql import functions as sql

    numbered = frame.toDF(*(f"c{j}" for j in range(len(kinds))))
    if roles.missing == "drop":
        for j in range(len(roles.used)):
            numbered = numbered.filter(present(numbered[f"c{j}"], kinds[j], text=text, na=roles.na).isNotNull())
    if roles.weights is None:
        return numbered.withColumn(_WEIGHT, sql.lit(1))
    last = f"c{len(kinds) - 1}"
    # what is no weight is found where the rows are granulated
    weight = number_of(numbered[last], kinds[-1], text=True, na=(), decimal=".")
    return numbered.withColumn(_WEIGHT, sql.when(weight == sql.floor(weight), weight)).filter(f"{_WEIGHT} > 0")


def _look(counted: DataFrame, roles: Roles, bins: Bins, j: int, cuts: dict[str, Cuts], text: bool) -> dict[str, str]:
    """Count the values of a column, by decision for MDLP, and find its cuts; tells what keeps it from being cut."""
    import polars as pl
    from pyspark.sql import functions as sql

    name = roles.conditions[j]
    rule = bins.rule(name)
    by_class = len(roles.decision) if rule is not None and rule.method == "mdlp" else 0
    at = len(roles.conditions)
    keys = [f"c{j}", *(f"c{at + i}" for i in range(by_class))]
    with explained("count the numbers"):
        found: Any = counted.groupBy(*keys).agg(sql.sum(_WEIGHT).alias(_WEIGHT))
        groups = pl.DataFrame(found.toArrow() if hasattr(found, "toArrow") else found.toPandas())
    column, *decision = (encode_series(groups.to_series(i), roles.na, text=text) for i in range(len(keys)))
    counts = groups[_WEIGHT].cast(int).to_numpy().astype(np.int64)
    classes = combine(decision)[0] if decision else np.zeros(len(counts), np.uint32)
    left: dict[str, str] = {}
    decimal = roles.decimal if text else None
    list(cut_columns([(name, column)], bins, classes, counts, cuts, left=left, decimal=decimal))
    return left
