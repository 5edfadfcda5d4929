"""Tables that other libraries hold in memory: numpy, pandas and plain columns, coded without polars."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from plar.coding.codes import Column, encode_distinct, encode_matrix, encode_objects, encode_values
from plar.coding.series import encode_series
from plar.errors import TableError
from plar.parallel import in_threads

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "check_mapping",
    "encode_column",
    "encode_columns",
    "encode_labels",
    "label_name",
    "matrix_names",
    "number_labels",
    "to_polars",
]


def _column(data: Any, kind: str, place: int) -> Any:
    if kind == "numpy":
        return np.ascontiguousarray(data[:, place])
    return data.iloc[:, place] if kind == "pandas" else list(data.values())[place]


def encode_columns(
    data: Any, kind: str, names: Sequence[str], wanted: Sequence[str], na: tuple[str, ...]
) -> Iterable[Column]:
    """Code columns of an array, a pandas DataFrame or a mapping.

    Examples
    --------
    >>> [c.values for c in encode_columns({"a": [1, 1], "b": ["x", None]}, "mapping", ["a", "b"], ["b"], ())]
    [['x', None]]
    """
    at = {name: place for place, name in enumerate(names)}
    places = [at[name] for name in wanted]
    if kind == "numpy":
        return encode_matrix(data, places, na)
    if kind == "pandas":
        return _encode_frame(data, places, names, na)
    held = list(data.values())
    return in_threads(lambda j: encode_column(held[j], na, names[j]), places, len(held[0]))


def _encode_frame(frame: Any, places: Sequence[int], names: Sequence[str], na: tuple[str, ...]) -> Iterator[Column]:
    """Code columns of a pandas DataFrame, neighbours of one type together where it holds them as one matrix."""
    dtypes = list(frame.dtypes)
    for _, run in groupby(enumerate(places), key=lambda at: (dtypes[at[1]], at[1] - at[0])):
        own = [place for _, place in run]
        part = frame.iloc[:, own[0] : own[-1] + 1]
        matrix = part.to_numpy() if _is_one_block(part, dtypes[own[0]]) else None
        if matrix is not None:
            yield from encode_matrix(matrix, range(len(own)), na)
            continue
        columns = ((part.iloc[:, j], names[place]) for j, place in enumerate(own))
        yield from in_threads(lambda column: encode_column(column[0], na, column[1]), columns, len(frame))


def _is_one_block(part: Any, dtype: Any) -> bool:
    if not isinstance(dtype, np.dtype) or dtype.kind not in "biuf":
        return False
    first, last = (part.iloc[:, j].to_numpy().base for j in (0, -1))
    return first is not None and first is last


def encode_column(values: Any, na: tuple[str, ...], name: str) -> Column:
    """Code one column of any library.

    Examples
    --------
    >>> encode_column([3, 3.0, "3"], (), "x").values
    [3, '3']
    """
    root = type(values).__module__.partition(".")[0]
    if root == "pandas" and hasattr(values, "factorize"):
        return _encode_pandas(values, na, name)
    if root == "polars":
        return encode_series(values, na)
    if hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_c_stream__"):
        import polars as pl

        return encode_series(pl.Series(values), na)
    if isinstance(values, np.ndarray):
        return encode_values(values, na, name=name)
    return encode_objects(values, na, name=name)


def _encode_pandas(series: Any, na: tuple[str, ...], name: str) -> Column:
    if isinstance(series.dtype, np.dtype) and (series.dtype.kind in "biuf" or not series.dtype.isnative):
        return encode_values(series.to_numpy(), na, name=name)
    try:
        codes, values = series.factorize()
    except TypeError:
        return encode_objects(series, na, name=name)  # says which values cannot be compared
    lacking = codes < 0
    distinct = list(values)
    if lacking.any():
        codes = np.where(lacking, len(distinct), codes)
        distinct.append(None)
    return encode_distinct(codes, distinct, na=na)


def encode_labels(y: Any, na: tuple[str, ...]) -> Column:
    """Code the labels that are given beside a table."""
    if isinstance(y, (str, bytes, Mapping)) or not (hasattr(y, "__len__") or isinstance(y, Iterable)):
        raise TableError(f"y holds one label for each row, got {y!r:.60}. To name a column pass decision=.")
    if getattr(y, "ndim", 1) != 1 or hasattr(y, "columns"):
        shape = getattr(y, "shape", type(y).__name__)
        raise TableError(f"y must have one dimension, got shape {shape}. Pass one label for each row.")
    return encode_column(y, na, "y")


def label_name(y: Any, names: Sequence[str]) -> str:
    """Name of the labels: their own, or y, with underscores where the table has it already.

    Examples
    --------
    >>> label_name([0, 1], ["x", "y"])
    'y_'
    """
    given = getattr(y, "name", None)
    name = given if isinstance(given, str) and given else "y"
    while name in names:
        name += "_"
    return name


def number_labels(data: Any, kind: str) -> frozenset[int]:
    """Labels of columns that are ints, where a library has such."""
    labels = data.columns if kind == "pandas" else data if kind == "mapping" else ()
    return frozenset(int(v) for v in labels if isinstance(v, (int, np.integer)) and not isinstance(v, bool))


def matrix_names(data: np.ndarray[Any, Any]) -> tuple[str, ...]:
    """Names of the columns of a 2-D array: x0, x1, …."""
    if isinstance(data, np.ma.MaskedArray):
        raise TableError("A masked array has two kinds of missing. Fill it, e.g. with data.filled(np.nan).")
    if data.ndim != 2 or data.dtype.kind == "V":
        raise TableError(f"An array must have rows and columns, got shape {data.shape} of {data.dtype}. Reshape it.")
    return tuple(f"x{j}" for j in range(data.shape[1]))


def check_mapping(data: Mapping[Any, Any]) -> None:
    """Refuse what is no column, and columns of different lengths."""
    for name, column in data.items():
        if isinstance(column, (str, bytes)) or not hasattr(column, "__len__") or getattr(column, "ndim", 1) != 1:
            kind = type(column).__name__
            raise TableError(f"Column {str(name)!r} of the mapping is one {kind}. Pass a list or array of its values.")
    lengths = {str(name): len(column) for name, column in data.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name!r} {n}" for name, n in list(lengths.items())[:5])
        raise TableError(f"The columns differ in length: {shown}. Make them the same.")


def to_polars(data: Any, kind: str, names: Sequence[str], wanted: Sequence[str]) -> pl.DataFrame:
    """Columns in memory as a polars frame; what has no polars type is written as text.

    Examples
    --------
    >>> to_polars(np.array([[1, 2]]), "numpy", ["x0", "x1"], ["x1"]).rows()
    [(2,)]
    """
    import polars as pl

    series = []
    for name in wanted:
        values = _column(data, kind, list(names).index(name))
        try:
            made = pl.Series(name, values, strict=True)
        except (TypeError, ValueError, ImportError, pl.exceptions.PolarsError):
            made = pl.Series(name, [None], dtype=pl.Object)
        if made.dtype == pl.Object:
            made = pl.Series(name, [None if v is None else str(v) for v in values], dtype=pl.String)
        series.append(made)
    return pl.DataFrame(series)
