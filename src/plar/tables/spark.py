"""Rows on a Spark cluster: columns taken and tables written there; nothing here imports pyspark."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plar.bin_rules import Cuts
from plar.bins import NUMBER
from plar.coding.codes import Column
from plar.columns import check_names
from plar.errors import TableError
from plar.options import ReadOptions
from plar.roles import Roles, assign
from plar.spark_calls import spark_call
from plar.tables.rows import Rows, Selection

_WRITERS = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".ndjson": "json"}


@dataclass(frozen=True, slots=True, eq=False)
class SparkRows(Rows):
    """Rows that are on a Spark cluster; `data` is their DataFrame."""

    kind = "spark"

    @staticmethod
    def open(frame: Any, *, text: bool = False) -> SparkRows:
        """Take a DataFrame."""
        return SparkRows(frame, check_names(frame.columns, "the Spark DataFrame"), text=text)

    def assign(self, options: ReadOptions, labels: Column | None, label: str) -> Roles:
        """Give the columns their roles; labels cannot lie beside them."""
        if options.y is not None:
            raise TableError(
                "The rows are on a Spark cluster, so y= cannot lie beside them. Make it a column: decision=."
            )
        roles = assign(self.names, options)
        if roles.numeric:
            raise TableError("Spark compares text as it is written, so numeric= cannot be given. Cast the column.")
        return roles

    def encode(self, names: Sequence[str], na: tuple[str, ...]) -> Iterable[Column]:
        """Refuse: they are coded on the cluster."""
        raise TableError("The rows are on a Spark cluster. Use engine='spark', or bring them here: .toPandas().")

    def select(self, selection: Selection) -> Any:
        """Take columns, on the cluster."""
        places = selection.places(self.names)
        cuts = {at: selection.cuts[n] for at, n in zip(places, selection.kept, strict=True) if n in selection.cuts}
        frame = bin_places(self.data, cuts, text=self.text, na=selection.na, decimal=selection.decimal)
        return select_places(frame, places)

    @spark_call
    def sink(self, selection: Selection, path: str | os.PathLike[str]) -> None:
        """Let Spark write a folder, which is whole when it holds _SUCCESS."""
        place, kind = os.fspath(path), _writer(path)
        writer = self.select(selection).write.mode("error").format(kind)
        try:
            (writer.option("header", True) if kind == "csv" else writer).save(place)
        except Exception as error:
            if "PATH_ALREADY_EXISTS" not in str(error):
                raise
            raise TableError(f"{place!r} exists, and Spark would not overwrite it. Choose another name.") from None

    def check_output(self, path: str | os.PathLike[str]) -> None:
        """Refuse a format that Spark does not write."""
        _writer(path)


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


def _writer(path: str | os.PathLike[str]) -> str:
    place = os.fspath(path)
    kind = _WRITERS.get(os.path.splitext(place.rstrip("/"))[1].lower())
    if kind is None:
        raise TableError(f"Spark cannot write {place!r}. Choose one of: {' '.join(_WRITERS)}.")
    return kind
