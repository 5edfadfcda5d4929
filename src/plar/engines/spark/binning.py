"""Bins of rows on a cluster: Spark counts the numbers of a column, the driver finds the cuts, Spark applies them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from plar.bins import Bins, Cuts, NoNumber, Rule
from plar.engines.spark.session import explained
from plar.reading.binning import NumberPass, warn_left
from plar.reading.frames import Roles
from plar.reading.source import Source
from plar.reading.spark import bin_places, number_of, present

if TYPE_CHECKING:
    import polars as pl
    from pyspark.sql import DataFrame

__all__ = ["bin_rows"]

_NUMBERS = ("byte", "short", "integer", "long", "float", "double", "decimal")
_WEIGHT = "w"


def bin_rows(frame: DataFrame, roles: Roles, bins: Bins, *, text: bool) -> tuple[DataFrame, Roles]:
    """Put bin numbers in place of numbers; the roles then know the cuts.

    The driver holds the distinct numbers of one column at a time, by decision where that matters.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        Its columns are `roles.used`, then the weights where there are some.
    roles : Roles
    bins : Bins
    text : bool
        Values compare as written, blanks around them trimmed.
    """
    kinds = [f.dataType.typeName() for f in frame.schema.fields]
    counted = _counted(frame, roles, kinds, text)
    cuts: dict[str, Cuts] = {}
    left: dict[str, str] = {}
    for j, name in enumerate(roles.conditions):
        rule = bins.rule(name)
        if rule is None:
            continue
        if kinds[j] not in _NUMBERS and not (text and kinds[j] == "string"):
            if name in bins.columns:
                with explained("read the table"):
                    some = counted.filter(counted[f"c{j}"].isNotNull()).head()
                if some is not None:
                    raise NoNumber(some[j], name)
            continue
        if rule.given and kinds[j] in _NUMBERS:
            cuts[name] = rule.cuts
            continue
        found = _look(counted, replace(roles, bins=bins), j, rule, text)
        cuts |= found.cuts
        left |= found.left
    warn_left(left)
    places = {j: cuts[name] for j, name in enumerate(roles.conditions) if name in cuts}
    binned = bin_places(frame, places, text=text, na=roles.na, decimal=bins.decimal)
    return binned, replace(roles, bins=None, cuts=cuts)


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


def _look(counted: DataFrame, roles: Roles, j: int, rule: Rule, text: bool) -> NumberPass:
    """Count the values of a column, by decision for MDLP."""
    from pyspark.sql import functions as sql

    decision = roles.decision if rule.method == "mdlp" else ()
    at = len(roles.conditions)
    keys = [f"c{j}", *(f"c{at + i}" for i in range(len(decision)))]
    name = roles.conditions[j]
    with explained("count the numbers"):
        groups = _collected(counted.groupBy(*keys).agg(sql.sum(_WEIGHT).alias(_WEIGHT)))
    weight = _WEIGHT
    while weight in (name, *decision):
        weight += "_"
    groups.columns = [name, *decision, weight]
    source = Source(groups.lazy(), tuple(groups.columns), (), text=text)
    asked = replace(roles, conditions=(name,), decision=decision, weights=weight, missing="value")
    return NumberPass(source, asked, {name: rule}).run()


def _collected(frame: DataFrame) -> pl.DataFrame:
    import polars as pl

    rows: Any = frame.toArrow() if hasattr(frame, "toArrow") else frame.toPandas()
    return pl.DataFrame(rows)
