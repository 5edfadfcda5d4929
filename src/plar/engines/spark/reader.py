"""Files that Spark reads itself: CSV, Parquet and JSON, in folders and globs, on any file system that it reaches."""

from __future__ import annotations

import csv
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plar.columns import check_names
from plar.engines.spark.session import explained
from plar.errors import TableError
from plar.formats import known_format, suffix_of
from plar.options import ReadOptions
from plar.tables.spark import SparkRows, select_places
from plar.text.dialect import separator_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["read_rows"]


def read_rows(session: SparkSession, path: str | os.PathLike[str], options: ReadOptions) -> SparkRows | None:
    """Let Spark read a path; None for formats that plar reads on this machine instead.

    Values of text compare as written. The format of a folder is that of its name or of its first file.
    """
    place, header = os.fspath(path), options.header
    file = _one_file(session, place)
    kind, packed = known_format(file), suffix_of(file)[1]
    if kind == "parquet":
        with explained(f"read {place!r}"):
            return SparkRows.open(_found(lambda: session.read.parquet(place), place))
    if kind in ("ndjson", "json") and packed != ".zst":
        with explained(f"read {place!r}"):
            return SparkRows.open(_json(session, place))
    if packed == ".zst" or kind not in ("text", None) or (kind is None and not options.separator):
        return None
    with explained(f"read {place!r}"):
        first = _found(lambda: session.read.text(place), place).filter("trim(value) != ''").head()
    if first is None:
        raise TableError(f"{place!r} is empty. A table needs a header and rows.")
    line = first[0].lstrip("\ufeff")
    mark = separator_of(suffix_of(file)[0], options.separator, line)
    if mark == " ":
        return None
    row = next(csv.reader([line], delimiter=mark))
    names = tuple(name.strip() if header and name.strip() else f"x{j}" for j, name in enumerate(row))
    check_names(names, repr(place))
    with explained(f"read {place!r}"):
        frame = (
            session.read.schema(", ".join(f"c{j} string" for j in range(len(names))))
            .option("sep", mark)
            .option("header", header)
            .option("quote", '"')
            .option("escape", '"')
            .option("mode", "FAILFAST")
            .option("encoding", options.encoding)
            .csv(place)
        )
        return SparkRows.open(frame.toDF(*names), text=True)


def _json(session: SparkSession, place: str) -> Any:
    """JSON by lines, with the columns in the order of the first line; Spark sorts them."""
    first = _found(lambda: session.read.text(place), place).filter("trim(value) != ''").head()
    frame = session.read.option("mode", "FAILFAST").json(place)
    try:
        keys = list(json.loads(first[0])) if first is not None else []
    except ValueError as error:
        raise TableError(f"{place!r} does not hold one JSON object a line: {error}.") from None
    places = {name: j for j, name in enumerate(frame.columns)}
    order = [*(places[key] for key in keys if key in places), *(places[name] for name in places if name not in keys)]
    return select_places(frame, order)


def _one_file(session: SparkSession, place: str) -> Path:
    """A file whose name tells the format: this one, one of the folder, or one that a glob means."""
    name = Path(re.sub(r"[*?\]})]+$", "", place.rstrip("/")))
    if known_format(name) is not None:
        return name
    jvm = session.sparkContext._jvm
    if jvm is None:
        return name
    with explained(f"find {place!r}"):
        where = jvm.org.apache.hadoop.fs.Path(place)
        system = where.getFileSystem(session.sparkContext._jsc.hadoopConfiguration())
        found = system.globStatus(where) or []
        for status in found:
            inside = system.listStatus(status.getPath()) if status.isDirectory() else [status]
            for file in inside:
                if not file.getPath().getName().startswith(("_", ".")):
                    return Path(file.getPath().getName())
    return name


def _found(read: object, place: str) -> DataFrame:
    from pyspark.errors import AnalysisException

    try:
        frame: DataFrame = read()  # type: ignore[operator]
        return frame
    except AnalysisException as error:
        if "PATH_NOT_FOUND" in str(error):
            raise TableError(f"No file matches {place!r}. Check the path, as Spark sees it.") from None
        if "UNABLE_TO_INFER_SCHEMA" in str(error):
            raise TableError(f"{place!r} holds no rows that Spark can read. Check the files.") from None
        raise
