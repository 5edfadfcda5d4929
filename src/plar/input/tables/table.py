"""A decision table: rows of any kind, whose columns have roles. The data are neither converted nor moved."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from plar.bins import Cuts
from plar.coding.column_names import ColumnName, by_label, resolve_all
from plar.coding.series import is_categorical
from plar.errors import Given, TableError, Term, UnknownNameError, shown_names, unknown_name
from plar.files.find import find_files, format_of, on_disk
from plar.granules.granules import Granules, granules_in
from plar.input.roles import Roles
from plar.input.tables.arrays import MappingSource, MatrixSource, PandasSource, encode_y, name_of_y
from plar.input.tables.frames import open_frame
from plar.input.tables.granules import GranuleSource, compared_as_numbers
from plar.input.tables.source import ColumnChoice, Selectable, Source
from plar.input.tables.spark import SparkSource
from plar.input.tables.text import TextSource
from plar.input.tables.typed import open_typed
from plar.options import ReadOptions

TEXT_FORMATS = ("text", "arff", "dat")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DecisionTable:
    """A table whose columns have roles; what `plar.read_table` returns and every function of plar takes.

    `source` is the opened data; `roles` says which columns are conditions, decision and weights, and how values are
    treated; `options` are those it was read with, and `path` is the file, glob or folder as given. `has_classes` says
    that the decision is known to be classes, whatever its values look like.
    """

    source: Source
    roles: Roles
    options: ReadOptions
    path: str | None = None
    has_classes: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """All columns, in table order."""
        return self.source.names

    @property
    def conditions(self) -> tuple[str, ...]:
        """The columns to choose from."""
        return self.roles.conditions

    @property
    def decision(self) -> tuple[str, ...]:
        """The decision columns."""
        return self.roles.decision

    @property
    def weights(self) -> str | None:
        """Column of whole-number multiplicities."""
        return self.roles.weights

    @property
    def is_granulated(self) -> bool:
        """Whether the rows are already granules."""
        return isinstance(self.source, GranuleSource)

    def __repr__(self) -> str:
        """The roles on one line, without the rows."""
        sizes = f"{len(self.names)} columns, {len(self.conditions)} conditions"
        return f"<DecisionTable: {self.source}, {sizes}, decision {', '.join(map(repr, self.decision))}>"

    def granulate(self) -> Granules:
        """Read the rows and return the distinct ones with their multiplicities."""
        granules = self.source.granulate(self.roles)
        if not isinstance(granules, Granules):
            # only a table of granules on a cluster: they come back as they were given
            return cast(Granules, granules)
        if not self.is_granulated:
            granules = replace(
                granules,
                names=self.names,
                text=self.source.text,
                categorical_decision=self.has_categorical_decision,
            )
        if self.roles.numeric:
            granules = compared_as_numbers(granules, self.roles.numeric, self.roles.decimal)
        return granules

    @property
    def has_categorical_decision(self) -> bool:
        """Whether the only decision is declared to be categorical, whatever its values look like."""
        if self.has_classes:
            return True
        if self.roles.coded_y is not None:
            return is_categorical(self.options.y)
        if isinstance(self.source, GranuleSource):
            return self.source.data.categorical_decision
        return len(self.decision) == 1 and self.source.is_categorical(self.decision[0])

    @property
    def cut_before(self) -> Collection[str]:
        """The columns of granules that hold bins already."""
        return self.source.data.cuts if isinstance(self.source, GranuleSource) else ()

    def columns(self, given: Any, kind: str = "column") -> tuple[str, ...]:
        """Names of conditions given by name, label or position."""
        conditions = set(self.conditions)
        names = resolve_all(self.names, by_label(given, self.source.int_column_labels), kind)
        for name in names:
            if name in self.decision:
                choices = shown_names(self.conditions)
                raise UnknownNameError(f"Column {name!r} is the ", Term("decision"), f". Choose others: {choices}.")
            if name not in conditions:
                raise unknown_name("condition", name, self.conditions)
        return names

    def select(self, names: Iterable[ColumnName], cuts: Mapping[str, Cuts] | None = None) -> Any:
        """Select columns, with all rows and unchanged values, in the same kind of table; polars for a path.

        They come in table order, followed by the decision if it is part of the table.

        Columns with cut points in `cuts` come out as bin numbers; missing stays missing.

        Examples
        --------
        >>> import numpy as np
        >>> open_table(np.array([[1, 5, 0], [2, 6, 1]]), ReadOptions(-1)).select(["x1"])
        array([[5, 0],
               [6, 1]])
        """
        selection = self._selection(names, cuts)
        return selectable(self.source).select(selection)

    def sink(
        self, names: Iterable[ColumnName], path: str | os.PathLike[str], cuts: Mapping[str, Cuts] | None = None
    ) -> None:
        """Write what `select` returns to a file, in the format of its suffix.

        The file is written completely or not at all, and never replaces the input.
        """
        selection = self._selection(names, cuts)
        self.check_output(path)
        selectable(self.source).sink(selection, path)

    def check_selectable(self) -> None:
        """Refuse granules, of which no columns can be selected."""
        selectable(self.source)

    def check_output(self, path: str | os.PathLike[str]) -> None:
        """Refuse a place where `sink` could not write, before any work is done."""
        selectable(self.source).check_output(path)

    def _selection(self, names: Iterable[ColumnName], cuts: Mapping[str, Cuts] | None) -> ColumnChoice:
        decision = () if self.roles.coded_y is not None else self.decision
        return _selection(self.source, by_label(names, self.source.int_column_labels), decision, cuts, self.options)

    def settings(self) -> dict[str, Any]:
        """The requested options, with column names, as JSON values."""
        roles = self.roles
        options = self.options
        if isinstance(self.source, GranuleSource):
            all_conditions = self.source.data.conditions
        else:
            other_roles = {*roles.decision, roles.weights}
            all_conditions = tuple(name for name in self.names if name not in other_roles)
        return {
            "conditions": None if roles.conditions == all_conditions else list(roles.conditions),
            "missing": roles.missing,
            "missing_decision": options.missing_decision,
            "na": None if options.na is None else list(options.na),
            "weights": roles.weights,
            "bins": (roles.bins and roles.bins.spec) or None,
            "decision_bins": None if roles.decision_bins is None else roles.decision_bins.spec,
            "decimal": options.decimal,
            "header": bool(options.header),
            "separator": options.separator,
            "encoding": options.encoding,
            "numeric": list(roles.numeric),
            "y": roles.coded_y is not None,
        }

    def with_defaults(self, defaults: Mapping[str, Any]) -> DecisionTable:
        """The same data, with other defaults for the options that the table was made without."""
        given = self.options.changed()
        missing = {name: value for name, value in defaults.items() if name not in given}
        return with_roles(self.source, replace(self.options, **missing), self.path)

    def check_agrees(self, options: ReadOptions) -> None:
        """Refuse options that differ from those the table was made with."""
        for option in options.changed():
            if option == "y" or not self._agrees(replace(self.options, **{option: getattr(options, option)})):
                raise TableError(
                    f"The table was made with another {option}. Pass ", Given(option), " when making it instead."
                )

    def _agrees(self, options: ReadOptions) -> bool:
        """Whether these options say the same of the table as its own."""
        other = with_roles(self.source, options)
        return (other.decision, other.settings()) == (self.decision, self.settings())


def open_table(data: Any, options: ReadOptions) -> DecisionTable:
    """Open any data as a decision table.

    If the columns of a pandas frame or a mapping are labelled by ints, an int that is a label means that label;
    otherwise, as everywhere, it means a position. A tuple that is a label, as in a MultiIndex, means that column.

    >>> open_table({"a": [1, 2], "d": [0, 1]}, ReadOptions("d"))
    <DecisionTable: mapping, 2 columns, 1 conditions, decision 'd'>
    """
    if isinstance(data, DecisionTable):
        data.check_agrees(options)
        return data
    path = os.fspath(data) if isinstance(data, (str, os.PathLike)) else None
    return with_roles(open_source(data, options), options, path)


def with_roles(source: Source, options: ReadOptions, path: str | None = None) -> DecisionTable:
    """Give the columns of opened data their roles."""
    options = options.by_label(source.int_column_labels)
    if options.decision is None and options.y is None and source.declared_decision:
        options = replace(options, decision=list(source.declared_decision))
    coded_y = None
    y_name = "y"
    if options.decision is None and options.y is not None:
        coded_y = encode_y(options.y, options.spellings)
        y_name = name_of_y(options.y, source.names)
    return DecisionTable(source, source.assign(options, coded_y, y_name), options, path)


def open_source(data: Any, options: ReadOptions) -> Source:
    """Recognise the kind of data, and open them."""
    if isinstance(data, (str, os.PathLike)):
        return _open_path(data, options)
    if isinstance(data, Source):
        return data
    library = type(data).__module__.partition(".")[0]
    if isinstance(data, Granules) or type(data).__name__ == "SparkGranules":
        return GranuleSource(data, data.names)
    if library == "pyspark" and hasattr(data, "sparkSession"):
        return SparkSource.open(data)
    if isinstance(data, np.ndarray):
        return MatrixSource.open(data)
    if library == "pandas" and hasattr(data, "iloc") and getattr(data, "ndim", 0) == 2:
        return PandasSource.open(data)
    if isinstance(data, Mapping):
        return MappingSource.open(data)
    is_arrow = hasattr(data, "__arrow_c_stream__") and library not in ("polars", "pandas")
    if hasattr(data, "collect_schema") or is_arrow:
        return open_frame(data)
    raise TableError(
        f"Cannot take {type(data).__name__} as a table. Pass a path, a pandas or polars DataFrame, an Arrow "
        "table, a mapping of columns or a 2-D numpy array."
    )


def _open_path(path: str | os.PathLike[str], options: ReadOptions) -> Source:
    """Open a file, or all files of a glob or folder as one table, in sorted order."""
    files = [on_disk(file) for file in find_files(path)]
    granules = granules_in(path, files)  # looks at all files
    if granules is not None:
        return GranuleSource(granules, granules.names, tuple(files))
    kinds = {format_of(file, as_text=options.separator is not None) for file in files}
    if len(kinds) > 1:
        raise TableError(f"{os.fspath(path)!r} matches files of different formats: {', '.join(sorted(kinds))}.")
    kind = kinds.pop()
    if kind in TEXT_FORMATS:
        return TextSource.open(files, kind, options)
    return open_typed(path, files, kind, options)


def selectable(source: Source) -> Selectable:
    """Data whose columns are to be selected; granules are refused."""
    if isinstance(source, Selectable):
        return source
    where = repr(str(source.files[0])) if source.files else "The table"
    raise TableError(f"{where} holds granules, not rows. No columns can be selected from it.")


def _selection(
    source: Source, attributes: Any, decision: Sequence[str], cuts: Mapping[str, Cuts] | None, options: ReadOptions
) -> ColumnChoice:
    """Columns to keep, in table order, then the decision."""
    chosen = set(resolve_all(source.names, attributes, "column")) - set(decision)
    return ColumnChoice(
        names=(*(name for name in source.names if name in chosen), *decision),
        cuts={name: points for name, points in (cuts or {}).items() if name in chosen},
        na=options.spellings,
        decimal=options.decimal,
    )


def select_columns(
    data: Any,
    attributes: Sequence[str],
    decision: Sequence[str] = (),
    cuts: Mapping[str, Cuts] | None = None,
    options: ReadOptions | None = None,
) -> Any:
    """Select attributes of any table that has them, in table order, followed by the decision columns it has.

    Columns with cut points in `cuts` come out as bin numbers; the options say how text is parsed.
    """
    if isinstance(data, DecisionTable):
        return data.select(attributes, cuts)
    options = options or ReadOptions()
    source = open_source(data, options)
    decision = [name for name in decision if name in source.names]
    selection = _selection(source, attributes, decision, cuts, options)
    return selectable(source).select(selection)
