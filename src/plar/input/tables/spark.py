"""Rows on a Spark cluster: DataFrames, and files that its tasks read. Importing this module does not load pyspark."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal, Inexact, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from plar.coding.codes import Column
from plar.coding.column_names import check_names
from plar.coding.missing import MissingSpellings
from plar.coding.numerals import NUMBER
from plar.coding.times import written_times
from plar.errors import Given, TableError
from plar.files.write import output_format
from plar.granules.granules import Granules
from plar.input.roles import Roles, assign
from plar.input.tables.source import ColumnChoice, RowSource, Selectable
from plar.options import ReadOptions
from plar.runtime.spark_calls import spark_call

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructField

#: writes the columns of a selection of some rows into a folder
WriteParts: TypeAlias = Callable[[RowSource, ColumnChoice, str | os.PathLike[str]], None]

#: Spark's types of text, by name
_TEXT = ("string", "char", "varchar")
_WRITERS = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".ndjson": "json"}


class ClusterSource(Selectable):
    """Rows that only a cluster's tasks read."""

    def assign(self, options: ReadOptions, coded_y: Column | None, y_name: str) -> Roles:
        """Give the columns their roles; y= is refused."""
        if options.y is not None:
            raise TableError(
                "The rows are on a Spark cluster, so y= cannot be given separately. Add it as a column: ",
                Given("decision"),
                ".",
            )
        return assign(self.names, options)

    def granulate(self, roles: Roles) -> Granules:
        """Refuse: only the engine that runs on the cluster can."""
        raise TableError(
            "The rows are on a Spark cluster. Use ", Given("engine", "spark"), ", or collect them with .toPandas()."
        )


@dataclass(frozen=True, slots=True, eq=False)
class SharedFiles(ClusterSource):
    """Files that a cluster's tasks read directly; `data` are their rows, opened on this machine.

    `write` has the tasks write the columns of a selection into a folder.
    """

    data: RowSource
    write: WriteParts = field(kw_only=True)

    @staticmethod
    def open(rows: RowSource, write: WriteParts) -> SharedFiles:
        """Wrap files that are already opened."""
        return SharedFiles(
            data=rows,
            names=rows.names,
            files=rows.files,
            text=rows.text,
            int_column_labels=rows.int_column_labels,
            declared_decision=rows.declared_decision,
            write=write,
        )

    def is_categorical(self, name: str) -> bool:
        """Whether the files declare a column to be categorical."""
        return self.data.is_categorical(name)

    def select(self, selection: ColumnChoice) -> Any:
        """Read columns on this machine."""
        return self.data.select(selection)

    def sink(self, selection: ColumnChoice, path: str | os.PathLike[str]) -> None:
        """Have the tasks write a folder, one file per part; it is complete once it holds _SUCCESS."""
        self.write(self.data, selection, path)

    def check_output(self, path: str | os.PathLike[str]) -> None:
        """Refuse a format that cannot be written."""
        output_format(Path(path))


class SparkSource(ClusterSource):
    """A Spark DataFrame."""

    kind = "spark"

    @staticmethod
    def open(frame: DataFrame) -> SparkSource:
        """Wrap a DataFrame."""
        return SparkSource(frame, check_names(frame.columns, "the Spark DataFrame"))

    def assign(self, options: ReadOptions, coded_y: Column | None, y_name: str) -> Roles:
        """Give the columns their roles; their types say which are numbers."""
        roles = super().assign(options, coded_y, y_name)
        if roles.numeric:
            raise TableError(
                "A Spark DataFrame declares which columns are numbers, so drop ",
                Given("numeric"),
                " and cast the column.",
            )
        return roles

    def select(self, selection: ColumnChoice) -> DataFrame:
        """Select columns, on the cluster."""
        return select_places(self.data, self.places(selection.names), selection)

    @spark_call
    def sink(self, selection: ColumnChoice, path: str | os.PathLike[str]) -> None:
        """Let Spark write a folder, which is complete once it holds _SUCCESS."""
        folder = os.fspath(path)
        kind = _writer(path)
        writer = self.select(selection).write.mode("error").format(kind)
        if kind == "csv":
            writer = writer.option("header", True)
        try:
            writer.save(folder)
        except Exception as error:
            if "PATH_ALREADY_EXISTS" not in str(error):
                raise
            raise TableError(f"{folder!r} already exists and is not overwritten. Choose another name.") from None

    def check_output(self, path: str | os.PathLike[str]) -> None:
        """Refuse a format that Spark cannot write."""
        _writer(path)


def select_places(frame: DataFrame, places: Sequence[int], selection: ColumnChoice | None = None) -> DataFrame:
    """Select columns by position, cut as the selection says: names may contain dots, or differ only in case."""
    names = frame.columns
    fields = frame.schema.fields
    numbered = frame.toDF(*(f"c{place}" for place in range(len(names))))
    columns = []
    for place in places:
        column = numbered[f"c{place}"]
        if selection is not None and names[place] in selection.cuts:
            column = _binned(column, fields[place], selection)
        columns.append(column)
    return numbered.select(*columns).toDF(*(names[place] for place in places))


def plain(value: SparkColumn, kind: DataType) -> SparkColumn:
    """Text by its characters, whatever collation or length its column declares; other values as they are."""
    from pyspark.sql.types import StringType

    return value.cast(StringType()) if kind.typeName() in _TEXT else value


def _binned(value: SparkColumn, field: StructField, selection: ColumnChoice) -> SparkColumn:
    """Replace values with bin numbers, null if missing; a value that is not a number fails."""
    from pyspark.sql import functions as sql

    kind = field.dataType.typeName()
    value = plain(value, field.dataType)
    is_missing = value.isin(_missing_numbers(field.dataType, selection.na))
    number = _seconds(value, kind)
    if kind in ("float", "double"):
        is_missing = sql.isnan(value) | is_missing
    elif kind in _TEXT:
        pointed = sql.translate(value, ".,", "?.") if selection.decimal == "," else value
        number = sql.coalesce(sql.when(pointed.rlike(NUMBER), pointed).cast("double"), _written_seconds(value))
        # compared as doubles, which is what bins do
        missing_numbers = [float(missing) for missing in selection.na.numbers]
        is_missing_number = sql.coalesce(number.isin(missing_numbers), sql.lit(False))
        is_missing = value.isin(list(selection.na.texts)) | is_missing_number
    message = sql.lit(f"Column {field.name!r} is cut into bins, but holds a non-number: ")
    refused = sql.raise_error(sql.concat(message, value)).cast("int")
    bin_number = sql.when(number.isNotNull(), _bisected(number, selection.cuts[field.name], 0)).otherwise(refused)
    return sql.when(value.isNotNull() & ~is_missing, bin_number)


def _seconds(value: SparkColumn, kind: str) -> SparkColumn:
    """A time as seconds, the nearest double to exact decimals; other values as numbers."""
    from pyspark.sql import functions as sql

    if kind == "date":
        return (sql.unix_date(value).cast("bigint") * 86_400).cast("double")
    if kind == "timestamp":
        return (sql.unix_micros(value).cast("decimal(20,0)") * sql.lit(Decimal("0.000001"))).cast("double")
    if kind == "timestamp_ntz":  # its parts do not depend on the session's time zone
        whole = (
            sql.unix_date(value.cast("date")).cast("bigint") * 86_400 + sql.hour(value) * 3600 + sql.minute(value) * 60
        )
        return (whole.cast("decimal(20,0)") + sql.date_part(sql.lit("SECOND"), value)).cast("double")
    return value.cast("double")


def _written_seconds(value: SparkColumn) -> SparkColumn:
    """The seconds of times in text; null for other text."""
    from pyspark.sql import functions as sql

    # with Arrow, Spark would ask for pandas, and warn of newer versions of it
    return sql.udf(_seconds_of_text, "double", useArrow=False)(value)


def _seconds_of_text(text: str | None) -> float | None:
    seconds = written_times([text])
    return None if seconds is None else float(seconds[0])


def _missing_numbers(kind: DataType, na: MissingSpellings) -> list[Any]:
    """Those of the numbers that mean missing which a Spark type has."""
    from pyspark.sql import functions as sql
    from pyspark.sql.types import DecimalType

    name = kind.typeName()
    if name in ("float", "double"):
        return list(na.floats(np.dtype(np.float32 if name == "float" else np.float64)))
    if isinstance(kind, DecimalType):
        decimals = [_fitted(number, kind.precision, kind.scale) for number in na.numbers]
        return [sql.lit(f"{number:f}").cast(kind) for number in decimals if number is not None]
    if name in ("byte", "short", "integer", "long"):
        integers = [_fitted(number, 19, 0) for number in na.numbers]
        return [int(number) for number in integers if number is not None and abs(number) < 1 << 63]
    return []


def _fitted(number: Decimal, precision: int, scale: int) -> Decimal | None:
    """A number with this many digits, `scale` of them behind the point; None if it has more."""
    try:
        return Context(prec=precision, traps=[Inexact, InvalidOperation]).quantize(number, Decimal(1).scaleb(-scale))
    except (Inexact, InvalidOperation):
        return None


def _bisected(number: SparkColumn, cuts: Sequence[float], first: int) -> SparkColumn:
    """The bin of a number, by bisection: Spark has no function that searches a sorted array."""
    from pyspark.sql import functions as sql

    if not cuts:
        return sql.lit(first)
    half = len(cuts) // 2
    lower = _bisected(number, cuts[:half], first)
    upper = _bisected(number, cuts[half + 1 :], first + half + 1)
    return sql.when(number <= sql.lit(cuts[half]), lower).otherwise(upper)


def _writer(path: str | os.PathLike[str]) -> str:
    """Spark's name for the format of a folder, by the folder's suffix."""
    folder = os.fspath(path)
    suffix = os.path.splitext(folder.rstrip("/"))[1].lower()
    if suffix not in _WRITERS:
        raise TableError(f"Spark cannot write {folder!r}. Choose one of: {' '.join(_WRITERS)}.")
    return _WRITERS[suffix]
