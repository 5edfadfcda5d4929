"""Rows on a Spark cluster: columns taken and tables written there; nothing here imports pyspark."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from plar.errors import TableError

__all__ = ["SparkRows", "select_places", "sink_rows"]


class SparkRows(NamedTuple):
    """Rows that are on a Spark cluster, and whether they are text, which compares as written."""

    frame: Any
    text: bool


def select_places(frame: Any, places: Sequence[int]) -> Any:
    """Take columns by position: names may hold dots, or differ in their case alone."""
    names = frame.columns
    numbered = frame.toDF(*(f"c{place}" for place in range(len(names))))
    return numbered.select(*(f"c{place}" for place in places)).toDF(*(names[place] for place in places))


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
