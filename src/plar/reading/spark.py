"""Rows on a Spark cluster: columns taken and tables written there; nothing here imports pyspark."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from plar.bins import NUMBER, Cuts
from plar.errors import TableError
from plar.spark_calls import spark_call

__all__ = ["SparkRows", "bin_places", "number_of", "present", "select_places", "sink_rows"]


class SparkRows(NamedTuple):
    """Rows that are on a Spark cluster, and whether they are text, which compares as written."""

    frame: Any
    text: bool


def select_places(frame: Any, places: Sequence[int]) -> Any:
    """Take columns by position: names may hold dots, or differ in their case alone."""
    names = frame.columns
    numbered = frame.toDF(*(f"c{place}" for place in range(len(names))))
    return numbered.select(*(f"c{place}" for place in places)).toDF(*(names[place] for place in places))


def present(column: Any, kind: str, *, text: bool, na: Sequence[str]) -> Any:
    """Values of a column of this Spark type, null where they are missing; text without the blanks around it."""
    from pyspark.sql import functions as sql

    if kind in ("float", "double"):
        return sql.when(~sql.isnan(column), column)
    if kind != "string":
        return column
    words = [*na, *([""] if text else [])]
    value = sql.regexp_replace(column, r"(?U)^\s+|\s+$", "") if text else column
    return sql.when(~value.isin(words), value) if words else value


def number_of(column: Any, kind: str, *, text: bool, na: Sequence[str], decimal: str) -> Any:
    """Numbers of a column of this Spark type; null where they are missing, or are none."""
    from pyspark.sql import functions as sql

    value = present(column, kind, text=text, na=na)
    if kind != "string":
        return value.cast("double")
    if decimal == ",":
        value = sql.translate(value, ".,", "?.")
    return sql.when(value.rlike(NUMBER), value).cast("double")


def bin_places(frame: Any, cuts: Mapping[int, Cuts], *, text: bool, na: Sequence[str] = (), decimal: str = ".") -> Any:
    """Put bin numbers in the columns at these places, null where they are missing; what is no number fails."""
    from pyspark.sql import functions as sql

    if not cuts:
        return frame
    names, kinds = frame.columns, [f.dataType.typeName() for f in frame.schema.fields]
    numbered = frame.toDF(*(f"c{place}" for place in range(len(names))))
    columns = [numbered[f"c{place}"] for place in range(len(names))]
    for place, points in cuts.items():
        value, kind = columns[place], kinds[place]
        number = number_of(value, kind, text=text, na=na, decimal=decimal)
        odd = sql.raise_error(
            sql.concat(sql.lit(f"Column {names[place]!r} is cut into bins, and holds what is no number: "), value)
        )
        lacking = present(value, kind, text=text, na=na).isNull()
        bin_ = sql.when(number.isNotNull(), _tree(number, points, 0)).otherwise(sql.when(~lacking, odd.cast("int")))
        columns[place] = bin_.alias(f"c{place}")
    return numbered.select(*columns).toDF(*names)


def _tree(number: Any, cuts: Sequence[float], first: int) -> Any:
    """Bin by bisection: Spark has no function that searches sorted numbers."""
    from pyspark.sql import functions as sql

    if not cuts:
        return sql.lit(first)
    half = len(cuts) // 2
    upper = _tree(number, cuts[half + 1 :], first + half + 1)
    return sql.when(number <= sql.lit(cuts[half]), _tree(number, cuts[:half], first)).otherwise(upper)


@spark_call
def sink_rows(frame: Any, path: str | os.PathLike[str]) -> None:
    """Let Spark write a folder, which is whole when it holds _SUCCESS."""
    place = os.fspath(path)
    writers = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".ndjson": "json"}
    kind = writers.get(os.path.splitext(place.rstrip("/"))[1].lower())
    if kind is None:
        raise TableError(f"Spark cannot write {place!r}. Choose one of: {' '.join(writers)}.")
    writer = frame.write.mode("error")
    writer = writer.option("header", True) if kind == "csv" else writer
    try:
        writer.format(kind).save(place)
    except Exception as error:
        if "PATH_ALREADY_EXISTS" not in str(error):
            raise
        raise TableError(f"{place!r} exists, and Spark would not overwrite it. Choose another name.") from None
