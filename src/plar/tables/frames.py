"""What polars holds or reads: its own frames, Arrow tables and files of typed columns.

A streaming group-by finds the distinct rows of narrow tables, so the memory follows the granules; wide ones are coded
column by column.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from plar.bins import NoNumber
from plar.coding.codes import Column
from plar.coding.series import encode_series, named, not_flat
from plar.coding.threads import check_threads
from plar.coding.weights import BadWeight, row_weights
from plar.errors import NoRows, TableError, reason_of
from plar.granules import Granules
from plar.limits import check_memory
from plar.parallel import in_threads
from plar.roles import Roles
from plar.tables.memory_guard import watched
from plar.tables.output import check_output, sink_frame
from plar.tables.rows import Rows, Selection, granulate_columns

if TYPE_CHECKING:
    import polars as pl

__all__ = ["ArrowRows", "FileRows", "FrameRows", "cut_frame", "open_frame", "run", "shown", "sink_cut"]

T = TypeVar("T")
_BLOCK_CELLS = 1 << 24
_WIDE = 200  # grouping by more columns than this is slower than coding each
_LEN = "\0len"


@dataclass(frozen=True, slots=True, eq=False)
class FrameRows(Rows):
    """A polars frame.

    Parameters
    ----------
    frame : polars.LazyFrame
        Every column, in table order.
    as_text : bool
        Values compare as written.
    """

    frame: pl.LazyFrame
    as_text: bool = False

    def __str__(self) -> str:
        """What it is."""
        return "polars"

    @property
    def text(self) -> bool:
        """Whether values compare as written."""
        return self.as_text

    @property
    def in_turn(self) -> bool:
        """Whether columns can be read one after another, always in the same order of rows."""
        return False

    def explain(self, error: BaseException) -> TableError:
        """Say why polars could not read the rows."""
        return TableError(f"Cannot read the table: {reason_of(error)}. Check the query that makes it.")

    def no_rows(self) -> NoRows:
        """Say that there is nothing to read."""
        return NoRows("The table has no rows. Add some.")

    def collect(self, query: pl.LazyFrame) -> pl.DataFrame:
        """Run a query on the frame."""
        return run(lambda: watched(lambda: query.collect(engine="streaming")), self.explain)

    def encode(self, names: Sequence[str], na: tuple[str, ...]) -> Iterable[Column]:
        """Code these columns, some at a time where they can be read so."""
        import polars as pl

        step = max(1, len(names))
        if self.in_turn:
            rows = int(self.collect(self.frame.select(pl.len())).item())
            step = max(64, _BLOCK_CELLS // max(rows, 1))  # each block costs a look at all names
        for low in range(0, len(names), step):
            block = self.collect(self.frame.select([named(name) for name in names[low : low + step]]))
            check_memory("Coding the columns", len(block) * (len(names) - low))  # a byte a cell at least
            yield from in_threads(partial(encode_series, na=na, text=self.text), block, len(block))

    def granulate(self, roles: Roles) -> Granules:
        """Group the rows, or code the columns."""
        import polars as pl

        schema = self.frame.collect_schema()
        for name in roles.used:
            if schema[name].is_nested():
                raise not_flat(name, schema[name])
        narrow = len(roles.used) <= _WIDE and pl.Object not in schema.values() and _LEN not in self.names
        if roles.labels is None and roles.bins is None and narrow:
            return self._grouped(roles)
        if self.in_turn:
            return granulate_columns(self, roles)
        # a query may give its rows in another order each time
        held = self.collect(self.frame.select([named(name) for name in roles.read]))
        return granulate_columns(FrameRows(held, self.names, held.lazy(), self.text), roles)

    def _grouped(self, roles: Roles) -> Granules:
        import polars as pl

        groups = self.collect(self.frame.group_by(named(*roles.read)).agg(pl.len().alias(_LEN)))
        if not len(groups):
            raise self.no_rows()
        counts = groups[_LEN].cast(int).to_numpy().astype(np.int64)
        columns = [encode_series(groups[name], roles.na, text=self.text) for name in roles.read]
        if roles.weights is not None:
            try:
                counts = row_weights(columns.pop(), counts)
            except BadWeight:  # whose row is known only where they are read in order
                for column in self.encode([roles.weights], ()):
                    row_weights(column, np.ones(len(column.codes), np.int64))
                raise
        named_columns = list(zip(roles.used, columns, strict=True))
        k = len(roles.conditions)
        return Granules.from_columns(
            named_columns[:k],
            named_columns[k:],
            counts,
            missing=roles.missing,
            grouped=roles.weights is None,
        )

    def select(self, selection: Selection) -> Any:
        """Take columns."""
        return cut_frame(self.data.select([named(name) for name in selection.kept]), selection, text=self.text)

    def sink(self, selection: Selection, path: str | os.PathLike[str]) -> None:
        """Write columns to a file, in a stream."""
        check_output(path, self.files)
        frame = self.frame.select([named(name) for name in selection.kept])
        sink_cut(frame, selection, path, text=self.text, explain=self.explain)


@dataclass(frozen=True, slots=True, eq=False)
class ArrowRows(FrameRows):
    """An Arrow table."""

    def __str__(self) -> str:
        """What it is."""
        return "arrow"

    def select(self, selection: Selection) -> Any:
        """Take columns."""
        import polars as pl

        table = self.data.select(list(selection.kept))
        for j, name in enumerate(selection.kept):
            if name in selection.cuts:
                table = table.set_column(j, name, selection.cut(pl.Series(table.column(j)), name).to_arrow())
        return table


@dataclass(frozen=True, slots=True, eq=False)
class FileRows(FrameRows):
    """Files of typed columns, which polars scans.

    Parameters
    ----------
    paths : tuple of Path
    columnar : bool
        Whether the files hold column after column.
    """

    paths: tuple[Path, ...] = ()
    columnar: bool = False

    def __str__(self) -> str:
        """What it is."""
        return f"path {shown(self.paths)}"

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that are read."""
        return self.paths

    @property
    def in_turn(self) -> bool:
        """Whether columns can be read one after another."""
        return self.columnar

    def explain(self, error: BaseException) -> TableError:
        """Say why polars could not read the files."""
        return TableError(
            f"Cannot read {shown(self.paths)}: {reason_of(error)}. The file is damaged or not what its name says."
        )

    def no_rows(self) -> NoRows:
        """Say that there is nothing to read."""
        return NoRows(f"{shown(self.paths)} {'has' if len(self.paths) == 1 else 'have'} no rows. Add some.")

    def select(self, selection: Selection) -> Any:
        """Read columns into a polars DataFrame."""
        frame = self.collect(self.frame.select([named(name) for name in selection.kept]))
        return cut_frame(frame, selection, text=self.text)


def shown(files: Sequence[Path]) -> str:
    """Names of files, for messages."""
    return ", ".join(repr(str(f)) for f in files[:3]) + (", …" if len(files) > 3 else "")


def run(read: Callable[[], T], explain: Callable[[BaseException], TableError]) -> T:
    """Let polars read; what it says when it cannot is explained."""
    import polars as pl

    check_threads()
    try:
        return read()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        if isinstance(error, OSError) and error.filename is not None:  # of the file that is written
            raise
        raise explain(error) from None


def cut_frame(frame: Any, selection: Selection, *, text: bool) -> Any:
    """Put bins in place of numbers in a frame of polars; those of a lazy one are found when it is read."""
    import polars as pl

    if isinstance(frame, pl.DataFrame):
        return frame.with_columns(selection.cut(frame[name], name, text=text) for name in selection.cuts)
    return frame.with_columns(
        named(name).map_batches(
            partial(selection.cut, name=name, text=text), return_dtype=pl.Int64, is_elementwise=True
        )
        for name in selection.cuts
    )


def sink_cut(
    frame: pl.LazyFrame,
    selection: Selection,
    path: str | os.PathLike[str],
    *,
    text: bool,
    explain: Callable[[BaseException], TableError],
) -> None:
    """Write a frame, with bins in place of numbers."""
    noted = _Noted(selection.kept, selection.cuts, selection.na, selection.decimal)
    try:
        run(lambda: sink_frame(cut_frame(frame, noted, text=text), path), explain)
    except NoNumber:
        raise noted.odd[0] from None


@dataclass(frozen=True, slots=True, eq=False)
class _Noted(Selection):
    """Keeps what is wrong with a column, which polars would tell in words of its own."""

    odd: list[NoNumber] = field(default_factory=list)

    def cut(self, values: Any, name: str, *, text: bool = False) -> Any:
        """A column as it is, or its bins."""
        try:
            return Selection.cut(self, values, name, text=text)
        except NoNumber as error:
            self.odd.append(error)
            raise


def open_frame(data: Any) -> FrameRows:
    """Take a polars frame, or anything with the Arrow stream protocol."""
    import polars as pl

    try:
        frame = data if isinstance(data, (pl.DataFrame, pl.LazyFrame)) else pl.DataFrame(data)
        names = tuple(frame.collect_schema().names())
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, TypeError, ValueError, OSError) as error:
        panic = isinstance(error, pl.exceptions.PanicException)
        reason = "a column has a type that polars does not know" if panic else reason_of(error)
        raise TableError(f"Cannot take {type(data).__name__} as a table: {reason}. Check its columns.") from None
    if frame is not data and type(data).__name__ in ("Table", "RecordBatch") and hasattr(data, "select"):
        return ArrowRows(data, names, frame.lazy())
    return FrameRows(frame, names, frame.lazy())
