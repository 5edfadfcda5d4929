"""Any data that may be a table: what they are, and how polars reads them where it does."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from plar.columns import check_names
from plar.errors import TableError, reason_of
from plar.reading.memory import check_mapping, matrix_names
from plar.reading.readers import open_source
from plar.reading.source import Source
from plar.reading.spark import SparkRows

__all__ = ["opened"]


def opened(
    data: Any, header: bool = True, separator: str | None = None
) -> tuple[Any, tuple[str, ...], str, Source | None]:
    """Tell what the data are: what to keep, the names, the kind, and how polars reads it where it does."""
    if isinstance(data, (str, os.PathLike)):
        reader = open_source(data, header=header, separator=separator)
        return reader.frame, reader.names, "path", reader
    root = type(data).__module__.partition(".")[0]
    if isinstance(data, SparkRows) or (root == "pyspark" and hasattr(data, "sparkSession")):
        frame = data.frame if isinstance(data, SparkRows) else data
        return frame, check_names(frame.columns, "the Spark DataFrame"), "spark", None
    if isinstance(data, np.ndarray):
        return data, matrix_names(data), "numpy", None
    if root == "pandas" and hasattr(data, "iloc") and getattr(data, "ndim", 0) == 2:
        return data, check_names([str(label) for label in data.columns], "the DataFrame"), "pandas", None
    if isinstance(data, Mapping):
        check_mapping(data)
        return data, check_names([str(label) for label in data], "the mapping"), "mapping", None
    if hasattr(data, "collect_schema") or (hasattr(data, "__arrow_c_stream__") and root not in ("polars", "pandas")):
        return _opened_frame(data)
    raise TableError(
        f"Cannot take {type(data).__name__} as a table. Pass a path, a pandas or polars DataFrame, an Arrow "
        "table, a mapping of columns or a 2-D numpy array."
    )


def _opened_frame(data: Any) -> tuple[Any, tuple[str, ...], str, Source]:
    import polars as pl

    kind = "polars" if isinstance(data, (pl.DataFrame, pl.LazyFrame)) else "arrow"
    try:
        frame = data if kind == "polars" else pl.DataFrame(data)
        names = tuple(frame.collect_schema().names())
    except (pl.exceptions.PolarsError, TypeError, ValueError, OSError) as error:
        reason = reason_of(error)
        raise TableError(f"Cannot take {type(data).__name__} as a table: {reason}. Check its columns.") from None
    own = kind == "polars" or type(data).__name__ in ("Table", "RecordBatch")
    kept = data if own and hasattr(data, "select") else frame
    return kept, names, kind, Source(frame.lazy(), names, (), text=False)
