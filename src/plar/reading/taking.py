"""Columns of any table, taken out in the same kind of table, bin numbers in place of the numbers that are cut."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from plar.bins import Cuts, apply
from plar.coding.series import named
from plar.errors import TableError
from plar.reading.binning import bin_expression, check_numbers
from plar.reading.memory import to_polars
from plar.reading.output import check_output, sink_frame
from plar.reading.source import Misread, Source
from plar.reading.spark import bin_places, select_places, sink_rows

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Taken", "sink_columns", "take_columns"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Taken:
    """Which columns of what: data of a kind and their names, the columns to keep, and those of them to cut.

    `na` and `decimal` say how text is read where it is cut.
    """

    source: Any
    kind: str
    reader: Source | None
    names: Sequence[str]
    kept: tuple[str, ...]
    text: bool = False
    cuts: Mapping[str, Cuts] = field(default_factory=dict)
    na: tuple[str, ...] = ()
    decimal: str = "."

    @property
    def places(self) -> list[int]:
        """Where the columns stand in the table."""
        at = {name: place for place, name in enumerate(self.names)}
        return [at[name] for name in self.kept]


def take_columns(taken: Taken) -> Any:
    """Take them as they are; for a path they are read."""
    source, kept, cuts = taken.source, taken.kept, taken.cuts
    if taken.kind == "numpy":
        return _of_matrix(source, taken)
    if taken.kind == "pandas":
        frame = source.iloc[:, taken.places]
        if cuts:
            frame = frame.copy()
            for j, name in enumerate(kept):
                if name in cuts:
                    frame.isetitem(j, apply(frame.iloc[:, j], cuts[name], name))
        return frame
    if taken.kind == "mapping":
        by_name = {str(label): label for label in source}
        return {
            by_name[name]: apply(source[by_name[name]], cuts[name], name) if name in cuts else source[by_name[name]]
            for name in kept
        }
    if taken.kind == "spark":
        places = {place: cuts[name] for place, name in zip(taken.places, kept, strict=True) if name in cuts}
        frame = bin_places(source, places, text=taken.text, na=taken.na, decimal=taken.decimal)
        return select_places(frame, taken.places)
    if taken.kind == "path":
        return _read(taken.reader, lambda reader: reader.collect(_frame(reader, taken)))
    chosen = [named(name) for name in kept] if taken.kind == "polars" else list(kept)
    return _of_frame(source.select(chosen), taken)


def _of_matrix(matrix: Any, taken: Taken) -> Any:
    made = {
        j: apply(matrix[:, place], taken.cuts[name], name)
        for j, (name, place) in enumerate(zip(taken.kept, taken.places, strict=True))
        if name in taken.cuts
    }
    kept = matrix[:, taken.places]
    if made:
        kept = kept.astype(np.result_type(kept.dtype, *(column.dtype for column in made.values())))
        for j, column in made.items():
            kept[:, j] = column
    return kept


def _of_frame(frame: Any, taken: Taken) -> Any:
    """Cut columns of a polars frame or an Arrow table."""
    import polars as pl

    if not taken.cuts or taken.reader is None:
        return frame
    check_numbers(taken.reader, taken.cuts, taken.na, taken.decimal)
    if isinstance(frame, (pl.DataFrame, pl.LazyFrame)):
        return frame.with_columns(_cut(taken.reader, taken))
    for j, name in enumerate(taken.kept):
        if name in taken.cuts:
            column = apply(pl.Series(frame.column(j)), taken.cuts[name], name)
            frame = frame.set_column(j, name, column.to_arrow())
    return frame


def _cut(reader: Source, taken: Taken) -> list[pl.Expr]:
    return [bin_expression(reader, name, cuts, taken.na, taken.decimal) for name, cuts in taken.cuts.items()]


def _frame(reader: Source, taken: Taken) -> pl.LazyFrame:
    frame = reader.values(taken.kept)
    if taken.cuts:
        check_numbers(reader, taken.cuts, taken.na, taken.decimal)
        frame = frame.with_columns(_cut(reader, taken))
    return frame


def _read(reader: Source | None, read: Callable[[Source], T]) -> T:
    """Read; what turns out wrong gives way to a more careful reading."""
    while reader is not None:
        try:
            return read(reader)
        except Misread:
            reader = reader.careful
    raise TableError("The rows cannot be read.")


def sink_columns(taken: Taken, path: str | os.PathLike[str]) -> None:
    """Write them to a file, in a stream; its suffix says the format."""
    import polars as pl

    if taken.kind == "spark":
        sink_rows(take_columns(taken), path)
        return
    reader = taken.reader
    kind = check_output(path, reader.files if reader is not None else ())
    if reader is None:
        frame = to_polars(take_columns(taken), taken.kind, taken.kept, taken.kept)
        reader, taken = Source(frame.lazy(), taken.kept, (), text=False), replace(taken, cuts={})

    def write(reader: Source) -> None:
        try:
            sink_frame(_frame(reader, taken), path, kind)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            raise reader.explain(error) from None

    _read(reader, write)
