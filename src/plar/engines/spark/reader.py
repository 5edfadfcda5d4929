"""Files that Spark reads itself: CSV, Parquet and JSON, in folders and globs, on any file system that it reaches."""

from __future__ import annotations

import csv
import json
import os
import re
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from plar.columns import check_names
from plar.engines.spark.session import explained
from plar.errors import TableError
from plar.files import known_format, suffix_of
from plar.options import ReadOptions
from plar.tables.spark import SparkRows, select_places
from plar.text.dialect import separator_of


def read_rows(session: SparkSession, path: str | os.PathLike[str], options: ReadOptions) -> SparkRows | None:
    """Let Spark read a path; None for formats that plar reads on this machine instead.

    Values of text compare as written. The format of a folder is that of its name or of its first file.
    """
    place = os.fspath(path)
    with explained(f"read {place!r}"):
        file = _one_file(session, place)
        kind, packed = known_format(file), suffix_of(file)[1]
        try:
            if kind == "parquet":
                return SparkRows.open(session.read.parquet(place))
            if packed == ".zst":
                return None
            if kind in ("ndjson", "json"):
                return SparkRows.open(_json(session, place))
            if kind == "text" or (kind is None and options.separator):
                return _text(session, place, suffix_of(file)[0], options)
        except AnalysisException as error:
            if "PATH_NOT_FOUND" in str(error):
                raise TableError(f"No file matches {place!r}. Check the path, as Spark sees it.") from None
            if "UNABLE_TO_INFER_SCHEMA" in str(error):
                raise TableError(f"{place!r} holds no rows that Spark can read. Check the files.") from None
            raise
    return None


def _first_line(session: SparkSession, place: str) -> str | None:
    row = session.read.text(place).filter("trim(value) != ''").head()
    return None if row is None else row[0]


def _text(session: SparkSession, place: str, suffix: str, options: ReadOptions) -> SparkRows | None:
    line = _first_line(session, place)
    if line is None:
        raise TableError(f"{place!r} is empty. A table needs a header and rows.")
    line = line.lstrip("\ufeff")
    mark = separator_of(suffix, options.separator, line)
    if mark == " ":
        return None
    row = next(csv.reader([line], delimiter=mark))
    names = tuple(name.strip() if options.header and name.strip() else f"x{j}" for j, name in enumerate(row))
    check_names(names, repr(place))
    settings = {"sep": mark, "quote": '"', "escape": '"', "mode": "FAILFAST", "encoding": options.encoding}
    columns = ", ".join(f"c{j} string" for j in range(len(names)))
    frame = session.read.schema(columns).options(header=options.header, **settings).csv(place)
    return SparkRows.open(frame.toDF(*names), text=True)


def _json(session: SparkSession, place: str) -> Any:
    """JSON by lines, with the columns in the order of the first line; Spark sorts them."""
    line = _first_line(session, place)
    frame = session.read.option("mode", "FAILFAST").json(place)
    try:
        keys = list(json.loads(line)) if line is not None else []
    except ValueError as error:
        raise TableError(f"{place!r} does not hold one JSON object a line: {error}.") from None
    places = {name: j for j, name in enumerate(frame.columns)}
    order = [*(places[key] for key in keys if key in places), *(places[name] for name in places if name not in keys)]
    return select_places(frame, order)


def _one_file(session: SparkSession, place: str) -> Path:
    """A file whose name tells the format: this one, one of the folder, or one that a glob means."""
    name = Path(re.sub(r"[*?\]})]+$", "", place.rstrip("/")))
    jvm: Any = session.sparkContext._jvm
    if known_format(name) is not None or jvm is None:
        return name
    where = jvm.org.apache.hadoop.fs.Path(place)
    system = where.getFileSystem(session.sparkContext._jsc.hadoopConfiguration())
    for status in system.globStatus(where) or []:
        for file in system.listStatus(status.getPath()) if status.isDirectory() else [status]:
            if not file.getPath().getName().startswith(("_", ".")):
                return Path(file.getPath().getName())
    return name
