"""Tables that polars holds or reads: its own frames, Arrow tables and files of typed columns.

A streaming group-by finds the distinct rows of narrow tables, so memory grows with the granules only; wide
tables are coded column by column.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from plar.coding.assemble import BadWeight, row_weights
from plar.coding.codes import Column
from plar.coding.missing import NO_SPELLINGS, MissingSpellings
from plar.coding.series import check_threads, encode_series, named, not_flat
from plar.errors import NoRows, TableError, reason_of
from plar.files.find import Stamp, check_unchanged, shown_files
from plar.granules.granules import Granules
from plar.input.roles import Roles
from plar.input.tables.source import ColumnChoice, RowSource, assemble_granules, sink_frame
from plar.runtime.lazy_polars import pl
from plar.runtime.limits import check_memory, check_memory_used
from plar.runtime.parallel import in_threads, run_polled

if TYPE_CHECKING:
    import pyarrow
    from polars._typing import PolarsDataType

T = TypeVar("T")
#: grouping by more columns than this is slower than coding each
_MAX_COLUMNS_TO_GROUP = 200
#: at least so many columns are read at a time: each block scans all names
_MIN_COLUMNS_AT_A_TIME = 64
#: the column of the sizes of groups
_COUNT = "\0len"
_SECONDS_BETWEEN_CHECKS = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class FrameSource(RowSource):
    """A polars frame, or files of typed columns that polars scans; `data` is the frame.

    `cells` says that some columns at a time can be read, about so many cells, in the same order of rows each
    time; 0 if all must be read at once. `frames` holds one frame per file, in common types, and `stamps` what
    the files were when they were opened.
    """

    kind = "polars"
    #: whether rows may be appended to a file between opening and reading it
    may_grow: ClassVar[bool] = False

    data: pl.DataFrame | pl.LazyFrame
    cells: int = 0
    frames: tuple[pl.LazyFrame, ...] = ()
    stamps: tuple[Stamp | None, ...] = ()

    @property
    def frame(self) -> pl.LazyFrame:
        """Every column, in table order."""
        return self.data.lazy()

    @staticmethod
    def fault_of(files: Sequence[Path], error: BaseException) -> TableError:
        """The error that says why polars could not read these files, or a query of the user's if there are none."""
        if not files:
            return TableError(f"Cannot read the table: {reason_of(error)}. Check the query that makes it.")
        return TableError(
            f"Cannot read {shown_files(files)}: {reason_of(error)}. The file is damaged or not what its name says."
        )

    def explain(self, error: BaseException) -> TableError:
        """The error that says why polars could not read the rows."""
        try:
            self.check_unchanged()
        except TableError as change:
            return change
        return self.fault_of(self.files, error)

    def collect(self, query: pl.LazyFrame) -> pl.DataFrame:
        """Run a query on the frame, whose files must stay as they are."""
        self.check_unchanged()
        frame = self.run_query(query)
        self.check_unchanged()
        return frame

    def run_query(self, query: pl.LazyFrame) -> pl.DataFrame:
        """Run a query on the frame, or on one of its files."""

        def collect() -> pl.DataFrame:
            return query.collect(engine="streaming")

        return run(partial(_watched, collect), self.explain)

    def check_unchanged(self) -> None:
        """Refuse files that another program changed since they were opened."""
        for file, stamp in zip(self.files, self.stamps, strict=False):  # parts of files have none
            if stamp is not None:
                check_unchanged(file, stamp, may_grow=self.may_grow)

    def encode(self, names: Sequence[str], na: MissingSpellings) -> Iterable[Column]:
        """Code these columns, some at a time if they can be read that way."""
        step = max(1, len(names))
        if self.cells:
            n_rows = int(self.collect(self.frame.select(pl.len())).item())
            step = max(_MIN_COLUMNS_AT_A_TIME, self.cells // max(n_rows, 1))
        for low in range(0, len(names), step):
            block = self.collect(self.frame.select([named(name) for name in names[low : low + step]]))
            check_memory("Coding the columns", len(block) * (len(names) - low))  # at least a byte per cell
            yield from in_threads(partial(encode_series, na=na), block, len(block))

    def is_categorical(self, name: str) -> bool:
        """Whether polars calls a column categorical."""
        dtype = run(self.frame.collect_schema, self.explain)[name]
        return dtype in (pl.Categorical, pl.Enum)

    def granulate(self, roles: Roles) -> Granules:
        """Group the rows, or code the columns."""
        schema = run(self.frame.collect_schema, self.explain)
        for name in roles.used:
            if schema[name].is_nested():
                raise not_flat(name, schema[name])
        is_narrow = len(roles.used) <= _MAX_COLUMNS_TO_GROUP
        can_be_grouped = is_narrow and pl.Object not in schema.values() and _COUNT not in self.names
        needs_every_row = roles.coded_y is not None or roles.bins is not None or roles.decision_bins is not None
        if can_be_grouped and not needs_every_row:
            return self._grouped(roles)
        if self.cells:
            return RowSource.granulate(self, roles)
        # a query may return its rows in another order each time
        frame = self.collect(self.frame.select([named(name) for name in roles.read]))
        return RowSource.granulate(FrameSource(frame, self.names), roles)

    def _grouped(self, roles: Roles) -> Granules:
        groups = self.collect(self.frame.group_by(named(*roles.read)).agg(pl.len().alias(_COUNT)))
        if not len(groups):
            have = "have" if len(self.files) > 1 else "has"
            raise NoRows(f"{shown_files(self.files) or 'The table'} {have} no rows. Add some.")
        counts = groups[_COUNT].cast(int).to_numpy().astype(np.int64)
        columns = [encode_series(groups[name], roles.na) for name in roles.used]
        if roles.weights is not None:
            columns.append(encode_series(groups[roles.weights]))
        n_conditions = len(roles.conditions)
        conditions = columns[:n_conditions]
        decision_and_weights = columns[n_conditions:]
        try:
            return assemble_granules(roles, lambda: conditions, decision_and_weights, counts, grouped=True)
        except BadWeight:
            if roles.weights is not None:
                self._check_weights(roles.weights)
            raise

    def _check_weights(self, name: str) -> None:
        """Refuse a bad weight with its row, which is known only if the rows are read in order."""
        for column in self.encode([name], NO_SPELLINGS):
            row_weights(column, np.ones(len(column.codes), np.int64))

    def select(self, selection: ColumnChoice) -> Any:
        """Select columns; those of files as a polars DataFrame."""
        frame = self.data.select([named(name) for name in selection.names])
        if self.files:
            frame = self.collect(frame.lazy())
        if isinstance(frame, pl.DataFrame):
            return frame.with_columns(selection.cut(frame[name], name) for name in selection.cuts)
        return frame.with_columns(
            named(name).map_batches(partial(selection.cut, name=name), return_dtype=pl.Int64) for name in selection.cuts
        )

    def to_frame(self) -> pl.DataFrame:
        """All columns and rows, read at once: a query may return its rows in another order each time."""
        return self.collect(self.frame)

    def sink(self, selection: ColumnChoice, path: str | os.PathLike[str]) -> None:
        """Write columns to a file, streaming if none is cut into bins."""
        frame = self.frame.select([named(name) for name in selection.names])
        if selection.cuts:
            rows = self.collect(frame)
            frame = rows.lazy().with_columns(selection.cut(rows[name], name) for name in selection.cuts)
        self.check_unchanged()
        run(partial(sink_frame, frame, path, self.check_unchanged), self.explain)


@dataclass(frozen=True, slots=True, eq=False)
class ArrowSource(FrameSource):
    """An Arrow table; `data` is polars' view of it."""

    kind = "arrow"

    #: the Arrow table as given
    table: pyarrow.Table | pyarrow.RecordBatch = field(kw_only=True)

    def select(self, selection: ColumnChoice) -> pyarrow.Table | pyarrow.RecordBatch:
        table = self.table.select(list(selection.names))
        for j, name in enumerate(selection.names):
            if name in selection.cuts:
                table = table.set_column(j, name, selection.cut(pl.Series(table.column(j)), name).to_arrow())
        return table


def run(read: Callable[[], T], explain: Callable[[BaseException], TableError]) -> T:
    """Let polars read; explain its errors."""
    check_threads()
    try:
        return read()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        if isinstance(error, OSError) and error.filename is not None:  # about the output file
            raise
        raise explain(error) from None


def _watched(read: Callable[[], T]) -> T:
    """Let polars read in a thread: it cannot be stopped, but we can stop waiting if memory runs out."""
    check = partial(check_memory_used, "Reading the table")
    check()
    return run_polled(read, check, _SECONDS_BETWEEN_CHECKS)


def common_type(types: Sequence[PolarsDataType]) -> PolarsDataType | None:
    """A type that can hold the values of all these types, or None."""
    distinct = [dtype for dtype in dict.fromkeys(types) if dtype != pl.Null]
    if not distinct:
        return pl.Null
    if len(distinct) == 1:
        return distinct[0]
    if all(dtype in (pl.String, pl.Categorical, pl.Enum) for dtype in distinct):
        return pl.String
    if all(dtype.is_integer() for dtype in distinct) and pl.UInt128 not in distinct:
        needs_128_bits = pl.UInt64 in distinct or pl.Int128 in distinct
        return pl.Int128 if needs_128_bits else pl.Int64
    if all(dtype.is_integer() or dtype.is_float() for dtype in distinct):
        return pl.Float64
    return None


def open_frame(data: Any) -> FrameSource:
    """Accept a polars frame, or anything with the Arrow stream protocol."""
    try:
        frame = data if isinstance(data, (pl.DataFrame, pl.LazyFrame)) else pl.DataFrame(data)
        names = tuple(frame.collect_schema().names())
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, TypeError, ValueError, OSError) as error:
        panic = isinstance(error, pl.exceptions.PanicException)
        reason = "a column has a type that polars does not know" if panic else reason_of(error)
        raise TableError(f"Cannot take {type(data).__name__} as a table: {reason}. Check its columns.") from None
    is_arrow = frame is not data and type(data).__name__ in ("Table", "RecordBatch") and hasattr(data, "select")
    if is_arrow:
        return ArrowSource(frame, names, table=data)
    return FrameSource(frame, names)
