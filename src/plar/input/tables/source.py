"""The interface of every kind of table; `plar.input.tables.table` chooses the class for the data."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from plar.bins import Cuts, apply, cut_columns, cut_decision
from plar.coding.assemble import Counts, drop_missing, row_weights
from plar.coding.codes import Column, joint_codes
from plar.coding.index_like import Profile, profiled
from plar.coding.missing import NO_SPELLINGS, MissingSpellings
from plar.coding.series import encode_series, named
from plar.errors import TableError
from plar.files.find import check_name, shown_files, suffix_of
from plar.files.write import check_place, output_format, replacing
from plar.granules.granule_set import GranuleSet
from plar.granules.granules import Granules
from plar.input.roles import Roles, assign
from plar.options import ReadOptions
from plar.runtime.lazy_polars import pl
from plar.runtime.limits import check_memory, check_memory_used

#: what polars calls the compression of a suffix
_COMPRESSIONS: dict[str, Literal["uncompressed", "gzip", "zstd"]] = {"": "uncompressed", ".gz": "gzip", ".zst": "zstd"}


@dataclass(frozen=True, slots=True, eq=False)
class ColumnChoice:
    """Columns to select, in this order, and cut points for some of them; `na` and `decimal` as when reading."""

    names: tuple[str, ...]
    cuts: Mapping[str, Cuts] = field(default_factory=dict)
    na: MissingSpellings = NO_SPELLINGS
    decimal: str = "."

    def cut(self, values: Any, name: str, *, text: bool = False) -> Any:
        """A column as it is, or its bins."""
        if name not in self.cuts:
            return values
        return apply(values, self.cuts[name], name, na=self.na, decimal=self.decimal, text=text)


@dataclass(frozen=True, slots=True, eq=False)
class Source(ABC):
    """Opened data of one kind: only the names, in table order, have been read.

    `data` is as given, or what reads it. `text` says that values compare as written, with blanks around them
    trimmed, `int_column_labels` are the names of columns that a library labels by ints or tuples, and
    `declared_decision` is the decision that the data themselves declare.
    """

    kind: ClassVar[str] = ""

    data: Any
    names: tuple[str, ...]
    files: tuple[Path, ...] = ()
    text: bool = False
    int_column_labels: Mapping[Hashable, str] = field(default_factory=dict)
    declared_decision: tuple[str, ...] = ()

    def __str__(self) -> str:
        """A short name for messages."""
        return f"path {shown_files(self.files)}" if self.files else self.kind

    def places(self, names: Sequence[str]) -> list[int]:
        """Where these columns are in the table."""
        place_of = {name: place for place, name in enumerate(self.names)}
        return [place_of[name] for name in names]

    def assign(self, options: ReadOptions, coded_y: Column | None, y_name: str) -> Roles:
        """Give the columns their roles."""
        return assign(self.names, options, coded_y, y_name)

    def is_categorical(self, name: str) -> bool:
        """Whether a column is declared to hold categories, whatever its values look like."""
        return False

    @abstractmethod
    def granulate(self, roles: Roles) -> GranuleSet:
        """Read the rows and return the distinct ones with their counts."""


class Selectable(Source):
    """Data whose columns can be selected, with all rows."""

    @abstractmethod
    def select(self, selection: ColumnChoice) -> Any:
        """Select columns, as the same kind of table."""

    def sink(self, selection: ColumnChoice, path: str | os.PathLike[str]) -> None:
        """Write what `select` returns."""
        sink_frame(self.select(selection).lazy(), path)

    def check_output(self, path: str | os.PathLike[str]) -> None:
        """Refuse a place where `sink` could not write."""
        check_output(path, self.files)


class RowSource(Selectable):
    """Rows that this machine reads."""

    @property
    def n_rows(self) -> int:
        """A lower bound on the number of rows, as far as known."""
        return 0

    @abstractmethod
    def encode(self, names: Sequence[str], na: MissingSpellings) -> Iterable[Column]:
        """Code these columns one after another; may be called again."""

    def to_frame(self) -> pl.DataFrame:
        """All columns and rows, with their values as they are."""
        return pl.DataFrame(self.select(ColumnChoice(self.names)))

    def granulate(self, roles: Roles) -> Granules:
        """Read the rows and return the distinct ones with their counts; by default, code one column after another."""
        if self.n_rows:
            check_memory("Coding the columns", self.n_rows * len(roles.used))  # at least a byte per cell
        else:
            check_memory_used("Reading the table")
        decision_and_weights = encode_decision_and_weights(self, roles)
        decision = decision_and_weights[0] if roles.coded_y is None else roles.coded_y
        counts = np.ones(len(decision.codes), np.int64)
        return assemble_granules(roles, lambda: self.encode(roles.conditions, roles.na), decision_and_weights, counts)


def encode_decision_and_weights(source: RowSource, roles: Roles) -> list[Column]:
    """Code the decision, if it is in the table, and the weights, which are numbers whatever `na` says."""
    columns = list(source.encode(roles.used[len(roles.conditions) :], roles.na))
    if roles.weights is not None:
        columns += source.encode([roles.weights], NO_SPELLINGS)
    return columns


def assemble_granules(
    roles: Roles,
    conditions: Callable[[], Iterable[Column]],
    decision_and_weights: Iterable[Column],
    counts: Counts,
    *,
    text: bool = False,
    grouped: bool = False,
    cuts: Mapping[str, Cuts] | None = None,
) -> Granules:
    """Make granules of coded columns, with numbers cut into bins if asked for.

    `conditions` codes them one after another, and is called again only to find rows without missing values
    for bins. The decision is among `decision_and_weights` if it is in the table. `grouped` says that the rows
    are distinct. `text` says that values are as written, so that text, which in typed tables is not a number, can be
    cut. `cuts` are those of columns that hold bins already.
    """
    n_rows = int(counts.sum())
    decision = list(_check_lengths(decision_and_weights, roles.coded_y))
    if roles.weights is not None:
        weights = decision.pop()
        counts = row_weights(weights, counts)
        if roles.weights_count_rows:
            n_rows = int(counts.sum())
    if roles.coded_y is not None:
        decision = [roles.coded_y]
    columns = _check_lengths(conditions(), roles.coded_y)
    has_bins = roles.bins is not None or roles.decision_bins is not None
    counts_to_cut = _without_dropped_rows(roles, conditions, decision, counts) if has_bins else counts
    decision, decision_cuts = _cut_decisions(roles, decision, counts_to_cut, roles.decimal if text else None)
    # both are complete once the columns are taken, which are coded one after another
    all_cuts = {**(cuts or {}), **decision_cuts}
    profiles: dict[str, Profile] = {}
    # an index is recognised by its values before they are cut, and before rows are dropped
    named_columns = profiled(zip(roles.conditions, columns, strict=True), n_rows, profiles)
    if roles.bins is not None:
        decision_codes, _ = joint_codes(decision)
        cut = cut_columns(
            named_columns, roles.bins, decision_codes, counts_to_cut, all_cuts, decimal=roles.decimal, text=text
        )
        named_columns = zip(roles.conditions, cut, strict=True)
    return Granules.from_columns(
        named_columns,
        zip(roles.decision, decision, strict=True),
        counts,
        policies=roles.policies(),
        grouped=grouped and roles.weights is None and not has_bins,
        cuts=all_cuts,
        n_rows=n_rows,
        profiles=profiles,
        may_be_empty=roles.is_part,
    )


def _cut_decisions(
    roles: Roles, decision: Sequence[Column], counts: Counts, decimal: str | None
) -> tuple[list[Column], dict[str, Cuts]]:
    """The decision columns, those that have a rule cut into bins, and the cut points of these."""
    columns = []
    cuts: dict[str, Cuts] = {}
    for name, column in zip(roles.decision, decision, strict=True):
        rule = roles.decision_rule(name)
        if rule is None:
            columns.append(column)
            continue
        binned, cuts[name] = cut_decision(column, name, rule, counts, decimal=decimal)
        columns.append(binned)
    return columns, cuts


def _without_dropped_rows(
    roles: Roles, conditions: Callable[[], Iterable[Column]], decision: Sequence[Column], counts: Counts
) -> Counts:
    """The counts by which cut points are found: 0 for rows that are dropped for a missing value."""
    counts = counts.copy()
    drop_missing(decision, roles.missing_decision, counts)
    if roles.missing == "drop":
        drop_missing(_check_lengths(conditions(), roles.coded_y), roles.missing, counts)
    return counts


def _check_lengths(columns: Iterable[Column], coded_y: Column | None) -> Iterator[Column]:
    """Pass columns through; y, if it is given, must have as many labels."""
    for column in columns:
        n_rows = len(column.codes)
        if coded_y is not None and len(coded_y.codes) != n_rows:
            raise TableError(f"y has {len(coded_y.codes)} labels for {n_rows} rows. Pass one label for each row.")
        yield column


# -- output: rows stream from a lazy frame to a file in the format of its suffix --------------------------------


def check_output(path: str | os.PathLike[str], inputs: Sequence[Path] = ()) -> None:
    """Refuse an output that cannot be written, or is one of the inputs, before any work is done."""
    output_format(Path(path))
    check_name(Path(path))
    check_place(path, inputs)


def sink_frame(
    frame: pl.LazyFrame, path: str | os.PathLike[str], check_input: Callable[[], None] | None = None
) -> None:
    """Write a lazy frame; polars' errors pass through, and no partial file is left, also if `check_input` raises."""
    kind = output_format(Path(path))
    suffix, compression_suffix = suffix_of(Path(path))
    compression = _COMPRESSIONS[compression_suffix]
    with replacing(path) as temporary:
        check_name(temporary)
        if kind == "parquet":
            frame.sink_parquet(temporary)
        elif kind == "ipc":
            frame.sink_ipc(temporary)
        elif kind == "ndjson":
            _as_text(frame).sink_ndjson(temporary, compression=compression, check_extension=False)
        else:
            separator = "\t" if suffix == ".tsv" else ","
            _as_text(frame).sink_csv(temporary, separator=separator, compression=compression, check_extension=False)
        if check_input is not None:
            check_input()


def _as_text(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Bytes in hexadecimal, and dates and durations as plar spells them: polars cannot write all of them."""
    columns = []
    for name, dtype in frame.collect_schema().items():
        if isinstance(dtype, pl.BaseExtension):
            columns.append(named(name).to_physical())
        elif dtype == pl.Binary:
            columns.append(named(name).bin.encode("hex"))
        elif dtype in (pl.Date, pl.Duration):
            columns.append(named(name).map_batches(_spelled, return_dtype=pl.String, is_elementwise=True))
    return frame.with_columns(columns)


def _spelled(series: pl.Series) -> pl.Series:
    """Dates or durations as text."""
    column = encode_series(series)
    return pl.Series(series.name, column.values, dtype=pl.String).gather(column.codes)
