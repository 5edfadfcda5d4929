"""Tables that other libraries hold in memory: numpy, pandas and plain columns, coded without polars."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from plar.coding.codes import Column, encode_matrix
from plar.coding.column_names import check_names
from plar.coding.missing import MissingSpellings
from plar.coding.series import encode_column, is_categorical
from plar.errors import Given, TableError
from plar.input.tables.source import ColumnChoice, RowSource, sink_frame
from plar.runtime.lazy_polars import pl
from plar.runtime.parallel import in_threads


class _ArraySource(RowSource):
    """Columns in memory."""

    @abstractmethod
    def columns(self, names: Sequence[str]) -> Iterable[Any]:
        """These columns, as they are."""

    @property
    def n_rows(self) -> int:
        return max(map(len, self.columns(self.names[:1])), default=0)

    def is_categorical(self, name: str) -> bool:
        """Whether the library calls a column categorical."""
        return any(map(is_categorical, self.columns([name])))

    def encode(self, names: Sequence[str], na: MissingSpellings) -> Iterable[Column]:
        return _encode_each(zip(names, self.columns(names), strict=True), na, self.n_rows)

    def sink(self, selection: ColumnChoice, path: str | os.PathLike[str]) -> None:
        """Write columns to a file; values without a polars type are written as text."""
        sink_frame(self._as_polars(selection).lazy(), path)

    def to_frame(self) -> pl.DataFrame:
        """All columns and rows; values without a polars type as text."""
        return self._as_polars(ColumnChoice(self.names))

    def _as_polars(self, selection: ColumnChoice) -> pl.DataFrame:
        columns = zip(selection.names, self.columns(selection.names), strict=True)
        return pl.DataFrame([_as_series(name, selection.cut(column, name)) for name, column in columns])


def _as_series(name: str, values: Any) -> pl.Series:
    """A column as a Series; values without a polars type as text."""
    try:
        series = pl.Series(name, values, strict=True)
        if series.dtype != pl.Object:
            return series
    except (TypeError, ValueError, ImportError, pl.exceptions.PolarsError):
        pass
    return pl.Series(name, [None if value is None else str(value) for value in values], dtype=pl.String)


class MatrixSource(_ArraySource):
    """A 2-D numpy array, whose columns are x0, x1, …."""

    kind = "numpy"

    data: np.ndarray[Any, Any]

    @staticmethod
    def open(data: np.ndarray[Any, Any]) -> MatrixSource:
        """Accept an array with rows and columns."""
        check_unmasked(data, "A table")
        if data.ndim != 2 or data.dtype.kind == "V":
            raise TableError(f"A table has rows and columns. Got an array of shape {data.shape} of {data.dtype}.")
        return MatrixSource(data, tuple(f"x{j}" for j in range(data.shape[1])))

    def columns(self, names: Sequence[str]) -> Iterable[Any]:
        return (self.data[:, place] for place in self.places(names))

    def encode(self, names: Sequence[str], na: MissingSpellings) -> Iterable[Column]:
        """Code these columns, a block at a time."""
        return encode_matrix(self.data, self.places(names), na)

    def select(self, selection: ColumnChoice) -> Any:
        """Select columns, in a type that also holds their bins."""
        matrix = self.data[:, self.places(selection.names)]
        bins = {
            j: selection.cut(matrix[:, j], name) for j, name in enumerate(selection.names) if name in selection.cuts
        }
        if bins:
            matrix = matrix.astype(np.result_type(matrix.dtype, *(column.dtype for column in bins.values())))
            for j, column in bins.items():
                matrix[:, j] = column
        return matrix


class PandasSource(_ArraySource):
    """A pandas DataFrame."""

    kind = "pandas"

    @staticmethod
    def open(data: Any) -> PandasSource:
        """Accept a DataFrame; its labels are names."""
        names = check_names([str(label) for label in data.columns], "the DataFrame")
        return PandasSource(data, names, int_column_labels=_int_column_labels(data.columns))

    def columns(self, names: Sequence[str]) -> Iterable[Any]:
        return (self.data.iloc[:, place] for place in self.places(names))

    def encode(self, names: Sequence[str], na: MissingSpellings) -> Iterator[Column]:
        """Code these columns; neighbours of one type together if pandas holds them as one matrix."""
        dtypes = list(self.data.dtypes)

        def dtype_and_shift(position_and_place: tuple[int, int]) -> tuple[Any, int]:
            """Equal for neighbours in the frame of one type."""
            position, place = position_and_place
            return dtypes[place], place - position

        for (dtype, _), neighbours in groupby(enumerate(self.places(names)), key=dtype_and_shift):
            places = [place for _, place in neighbours]
            frame = self.data.iloc[:, places[0] : places[-1] + 1]
            if _is_one_block(frame, dtype):
                yield from encode_matrix(frame.to_numpy(), range(len(places)), na)
            else:
                named_columns = ((self.names[place], self.data.iloc[:, place]) for place in places)
                yield from _encode_each(named_columns, na, len(self.data))

    def select(self, selection: ColumnChoice) -> Any:
        frame = self.data.iloc[:, self.places(selection.names)]
        if selection.cuts:
            frame = frame.copy()
            for j, name in enumerate(selection.names):
                if name in selection.cuts:
                    frame.isetitem(j, selection.cut(frame.iloc[:, j], name))
        return frame


class MappingSource(_ArraySource):
    """Columns of any kind in a mapping, by name."""

    kind = "mapping"

    data: Mapping[Hashable, Any]

    @staticmethod
    def open(data: Mapping[Hashable, Any]) -> MappingSource:
        """Accept a mapping with columns of one length."""
        for label, column in data.items():
            _check_column(str(label), column)
        lengths = {str(label): len(column) for label, column in data.items()}
        if len(set(lengths.values())) > 1:
            shown = ", ".join(f"{name!r} {n}" for name, n in list(lengths.items())[:5])
            raise TableError(f"The columns differ in length: {shown}. Make them the same.")
        names = check_names([str(label) for label in data], "the mapping")
        return MappingSource(data, names, int_column_labels=_int_column_labels(data))

    def columns(self, names: Sequence[str]) -> Iterable[Any]:
        labels = self._labels()
        return (self.data[labels[name]] for name in names)

    def select(self, selection: ColumnChoice) -> dict[Hashable, Any]:
        labels = self._labels()
        return {labels[name]: selection.cut(self.data[labels[name]], name) for name in selection.names}

    def _labels(self) -> dict[str, Hashable]:
        """The key of each column by its name."""
        return {str(label): label for label in self.data}


def _check_column(name: str, column: Any) -> None:
    """Refuse what is not a list or an array of values."""
    is_sequence = hasattr(column, "__len__") and getattr(column, "ndim", 1) == 1
    if not is_sequence or isinstance(column, (str, bytes, set, frozenset, Mapping)):
        kind = f"one {type(column).__name__}, which has no rows"
        raise TableError(f"Column {name!r} of the mapping is {kind}. Pass a list or array of its values.")
    check_unmasked(column, f"Column {name!r}")


def _encode_each(named_columns: Iterable[tuple[str, Any]], na: MissingSpellings, n_rows: int) -> Iterable[Column]:
    def encode(named_column: tuple[str, Any]) -> Column:
        name, values = named_column
        return encode_column(values, na, name)

    return in_threads(encode, named_columns, n_rows)


def _int_column_labels(labels: Iterable[Hashable]) -> dict[Hashable, str]:
    """The names of columns that are labelled by ints, or by tuples, as in a MultiIndex."""
    kinds = (int, np.integer, tuple)
    return {label: str(label) for label in labels if isinstance(label, kinds) and not isinstance(label, bool)}


def check_unmasked(values: Any, what: str) -> None:
    """Refuse a masked array."""
    if isinstance(values, np.ma.MaskedArray):
        raise TableError(f"{what} is a masked array, which has two kinds of missing. Fill it: data.filled(np.nan).")


def _is_one_block(frame: Any, dtype: Any) -> bool:
    """Whether pandas holds these columns of one type as one matrix of numbers."""
    if not isinstance(dtype, np.dtype) or dtype.kind not in "biuf":
        return False
    first = frame.iloc[:, 0].to_numpy().base
    last = frame.iloc[:, -1].to_numpy().base
    return first is not None and first is last


def encode_y(y: Any, na: MissingSpellings) -> Column:
    """Code the labels given beside a table."""
    is_one_value = isinstance(y, (str, bytes, Mapping, set, frozenset))
    if is_one_value or not (hasattr(y, "__len__") or isinstance(y, Iterable)):
        raise TableError(
            f"y holds one label for each row, in order. Got {y!r:.60}. To name a column pass ", Given("decision"), "."
        )
    if getattr(y, "ndim", 1) != 1 or hasattr(y, "columns"):
        shape = getattr(y, "shape", type(y).__name__)
        raise TableError(f"y must have one dimension, got shape {shape}. Pass one label for each row.")
    check_unmasked(y, "y")
    return encode_column(y, na, "y")


def name_of_y(y: Any, names: Sequence[str]) -> str:
    """Name of the labels: their own, or y, with underscores if the table already has it."""
    name = getattr(y, "name", None)
    if not isinstance(name, str) or not name:
        name = "y"
    while name in names:
        name += "_"
    return name
