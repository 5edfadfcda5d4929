"""Tables that other libraries hold in memory: numpy, pandas and plain columns, coded without polars."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from plar.coding.codes import Column, encode_matrix
from plar.coding.column_names import check_names
from plar.coding.missing import MissingSpellings
from plar.coding.series import encode_column
from plar.errors import TableError
from plar.input.tables.source import Selection, Source, sink_frame
from plar.runtime.lazy_polars import pl
from plar.runtime.parallel import in_threads


class _ArraySource(Source):
    """Columns in memory."""

    @abstractmethod
    def columns(self, names: Sequence[str]) -> Iterable[Any]:
        """These columns, as they are."""

    @property
    def n_rows(self) -> int:
        return max(map(len, self.columns(self.names[:1])), default=0)

    def encode(self, names: Sequence[str], na: MissingSpellings) -> Iterable[Column]:
        return _encode_each(zip(names, self.columns(names), strict=True), na, self.n_rows)

    def sink(self, selection: Selection, path: str | os.PathLike[str]) -> None:
        """Write columns to a file; values without a polars type are written as text."""
        series = []
        for name, column in zip(selection.kept, self.columns(selection.kept), strict=True):
            values = selection.cut(column, name)
            try:
                made = pl.Series(name, values, strict=True)
            except (TypeError, ValueError, ImportError, pl.exceptions.PolarsError):
                made = pl.Series(name, [None], dtype=pl.Object)
            if made.dtype == pl.Object:
                made = pl.Series(name, [None if v is None else str(v) for v in values], dtype=pl.String)
            series.append(made)
        sink_frame(pl.DataFrame(series).lazy(), path)


class MatrixSource(_ArraySource):
    """A 2-D numpy array, whose columns are x0, x1, …."""

    kind = "numpy"

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

    def select(self, selection: Selection) -> Any:
        """Select columns, in a type that also holds their bins."""
        kept = self.data[:, self.places(selection.kept)]
        made = {j: selection.cut(kept[:, j], name) for j, name in enumerate(selection.kept) if name in selection.cuts}
        if made:
            kept = kept.astype(np.result_type(kept.dtype, *(column.dtype for column in made.values())))
            for j, column in made.items():
                kept[:, j] = column
        return kept


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
        dtypes, places = list(self.data.dtypes), self.places(names)
        for _, run in groupby(enumerate(places), key=lambda at: (dtypes[at[1]], at[1] - at[0])):
            own = [place for _, place in run]
            part = self.data.iloc[:, own[0] : own[-1] + 1]
            if _is_one_block(part, dtypes[own[0]]):
                yield from encode_matrix(part.to_numpy(), range(len(own)), na)
            else:
                named = ((self.names[place], self.data.iloc[:, place]) for place in own)
                yield from _encode_each(named, na, len(self.data))

    def select(self, selection: Selection) -> Any:
        frame = self.data.iloc[:, self.places(selection.kept)]
        if selection.cuts:
            frame = frame.copy()
            for j, name in enumerate(selection.kept):
                if name in selection.cuts:
                    frame.isetitem(j, selection.cut(frame.iloc[:, j], name))
        return frame


class MappingSource(_ArraySource):
    """Columns of any kind in a mapping, by name."""

    kind = "mapping"

    @staticmethod
    def open(data: Mapping[Any, Any]) -> MappingSource:
        """Accept a mapping with columns of one length."""
        for name, column in data.items():
            ordered = hasattr(column, "__len__") and getattr(column, "ndim", 1) == 1
            if not ordered or isinstance(column, (str, bytes, set, frozenset, Mapping)):
                kind = f"one {type(column).__name__}, which has no rows"
                raise TableError(f"Column {str(name)!r} of the mapping is {kind}. Pass a list or array of its values.")
            check_unmasked(column, f"Column {str(name)!r}")
        lengths = {str(name): len(column) for name, column in data.items()}
        if len(set(lengths.values())) > 1:
            shown = ", ".join(f"{name!r} {n}" for name, n in list(lengths.items())[:5])
            raise TableError(f"The columns differ in length: {shown}. Make them the same.")
        return MappingSource(
            data, check_names([str(label) for label in data], "the mapping"), int_column_labels=_int_column_labels(data)
        )

    def columns(self, names: Sequence[str]) -> Iterable[Any]:
        by_name = {str(label): label for label in self.data}
        return (self.data[by_name[name]] for name in names)

    def select(self, selection: Selection) -> Any:
        by_name = {str(label): label for label in self.data}
        return {by_name[name]: selection.cut(self.data[by_name[name]], name) for name in selection.kept}


def _encode_each(named: Iterable[tuple[str, Any]], na: MissingSpellings, n_rows: int) -> Iterable[Column]:
    return in_threads(lambda column: encode_column(column[1], na, column[0]), named, n_rows)


def _int_column_labels(labels: Iterable[Any]) -> dict[Any, str]:
    """The names of columns that are labelled by ints, or by tuples, as in a MultiIndex."""
    kinds = (int, np.integer, tuple)
    return {label: str(label) for label in labels if isinstance(label, kinds) and not isinstance(label, bool)}


def check_unmasked(values: Any, what: str) -> None:
    """Refuse a masked array."""
    if isinstance(values, np.ma.MaskedArray):
        raise TableError(f"{what} is a masked array, which has two kinds of missing. Fill it: data.filled(np.nan).")


def _is_one_block(part: Any, dtype: Any) -> bool:
    if not isinstance(dtype, np.dtype) or dtype.kind not in "biuf":
        return False
    first, last = (part.iloc[:, j].to_numpy().base for j in (0, -1))
    return first is not None and first is last


def encode_y(y: Any, na: MissingSpellings) -> Column:
    """Code the labels given beside a table."""
    whole = isinstance(y, (str, bytes, Mapping, set, frozenset))
    if whole or not (hasattr(y, "__len__") or isinstance(y, Iterable)):
        raise TableError(f"y holds one label for each row, in order. Got {y!r:.60}. To name a column pass decision=.")
    if getattr(y, "ndim", 1) != 1 or hasattr(y, "columns"):
        shape = getattr(y, "shape", type(y).__name__)
        raise TableError(f"y must have one dimension, got shape {shape}. Pass one label for each row.")
    check_unmasked(y, "y")
    return encode_column(y, na, "y")


def name_of_y(y: Any, names: Sequence[str]) -> str:
    """Name of the labels: their own, or y, with underscores if the table already has it."""
    given = getattr(y, "name", None)
    name = given if isinstance(given, str) and given else "y"
    while name in names:
        name += "_"
    return name
