"""Tables in: any data that holds a decision table, with names, roles and the policy for missing values.

The data stay what and where they are; `DecisionTable.granulate` reads them, in a stream where it can.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from plar.bins import Bins, Cuts, Spec, parse_bins
from plar.coding.codes import Column
from plar.columns import (
    ColumnName,
    by_label,
    decision_names,
    missing_policy,
    resolve,
    resolve_all,
    roles_of,
    spellings,
)
from plar.errors import TableError
from plar.granules import Granules, open_granules
from plar.limits import check_memory
from plar.reading.frames import Roles, granulate_columns, granulate_source
from plar.reading.memory import encode_columns, encode_labels, label_name, number_labels
from plar.reading.opening import opened
from plar.reading.output import check_output
from plar.reading.source import Source
from plar.reading.spark import SparkRows
from plar.reading.taking import Taken, sink_columns, take_columns

__all__ = ["DecisionTable", "SparkRows", "as_table", "check_output", "open_granules", "read_table", "select_columns"]


@dataclass(frozen=True, slots=True, eq=False)
class DecisionTable:
    """A table whose columns have roles; what `read_table` returns and `reduce` takes.

    Parameters
    ----------
    source : object
        The data as given; a polars LazyFrame for a path.
    names : tuple of str
        All columns, in table order.
    conditions, decision : tuple of str
    weights : str or None
        Column of whole-number multiplicities.
    text : bool
        Values compare as written, blanks around them trimmed.
    missing : {"value", "drop", "error"}
    na : tuple of str
        Spellings of missing.
    kind : {"path", "pandas", "polars", "numpy", "arrow", "mapping", "spark"}
    reader : Source or None
        How polars reads the rows, for kinds that it reads.
    labels : Column or None
        The decision where it was given beside the data.
    bins : Bins or None
        How numbers become bins.
    decimal : {".", ","}
        The mark before the fraction of a number in text.
    header : bool
    separator : str or None
        How a file of text was asked to be read.
    path : str or None
        The file, glob or folder, as it was given.
    """

    source: Any
    names: tuple[str, ...]
    conditions: tuple[str, ...]
    decision: tuple[str, ...]
    weights: str | None
    text: bool
    missing: str
    na: tuple[str, ...]
    kind: str
    reader: Source | None = None
    labels: Column | None = None
    bins: Bins | None = None
    decimal: str = "."
    header: bool = True
    separator: str | None = None
    path: str | None = None

    def granulate(self) -> Granules:
        """Read the rows and return the distinct ones with their multiplicities.

        Examples
        --------
        >>> import numpy as np
        >>> as_table(np.array([[1, 0], [1, 0], [2, 1]]), -1).granulate().counts.tolist()
        [2, 1]
        """
        if self.kind == "spark":
            raise TableError("The rows are on a Spark cluster. Use engine='spark', or bring them here: .toPandas().")
        roles = Roles(self.conditions, self.decision, self.weights, self.missing, self.na, self.labels, self.bins)
        if self.reader is not None:
            granules = granulate_source(self.reader, roles)
        else:
            n_rows = len(self.source) if self.kind in ("numpy", "pandas") else 0
            check_memory("Coding the columns", n_rows * len(roles.used))  # a byte a cell at least
            granules = granulate_columns(partial(encode_columns, self.source, self.kind, self.names, na=self.na), roles)
        return replace(granules, names=self.names, text=self.text)

    def __repr__(self) -> str:
        """Tell the roles on one line, not the rows."""
        where = f"{self.kind} {self.reader.shown}" if self.reader is not None and self.reader.files else self.kind
        decision = ", ".join(map(repr, self.decision))
        return (
            f"<DecisionTable: {where}, {len(self.names)} columns, {len(self.conditions)} conditions, "
            f"decision {decision}>"
        )

    def select(self, names: Iterable[ColumnName], cuts: Mapping[str, Cuts] | None = None) -> Any:
        """Take columns, with all rows and their values as they are.

        Parameters
        ----------
        names : iterable of str or int
        cuts : mapping of str to tuple of float, optional
            Cut points of columns that come out as bin numbers; missing stays missing.

        Returns
        -------
        table of the same kind as the source
            Those columns in table order, then the decision where it is part of the table; for a path a polars
            DataFrame.

        Examples
        --------
        >>> import numpy as np
        >>> as_table(np.array([[1, 5, 0], [2, 6, 1]]), -1).select(["x1"])
        array([[5, 0],
               [6, 1]])
        """
        return take_columns(self._taken(names, cuts))

    def sink(
        self, names: Iterable[ColumnName], path: str | os.PathLike[str], cuts: Mapping[str, Cuts] | None = None
    ) -> None:
        """Write what `select` returns to a file, in a stream; its suffix says the format.

        The file appears whole or not at all, and never in place of the input.
        """
        sink_columns(self._taken(names, cuts), path)

    def _taken(self, names: Iterable[ColumnName], cuts: Mapping[str, Cuts] | None) -> Taken:
        """Columns to keep, in table order, then the decision where it is a column."""
        chosen = set(resolve_all(self.names, list(names), "attribute")) - set(self.decision)
        beside = () if self.labels is not None else self.decision
        kept = (*(name for name in self.names if name in chosen), *beside)
        return Taken(
            self.source,
            self.kind,
            self.reader,
            self.names,
            kept,
            self.text,
            {name: points for name, points in (cuts or {}).items() if name in chosen},
            self.na,
            self.decimal,
        )


def read_table(
    path: str | os.PathLike[str],
    decision: ColumnName | Sequence[ColumnName] | None = None,
    *,
    conditions: Sequence[ColumnName] | None = None,
    header: bool = True,
    separator: str | None = None,
    drop: ColumnName | Sequence[ColumnName] = (),
    missing: str = "value",
    na: str | Iterable[str] = (),
    bins: Spec | None = None,
    decimal: str = ".",
    weights: ColumnName | None = None,
) -> DecisionTable:
    r"""Open a file, or all files of a glob, as one decision table.

    Parameters
    ----------
    path : str or PathLike
        .csv .tsv .txt .data … (also .gz .zst), .parquet .arrow .feather .ndjson .arff, KEEL's .dat.
    decision : str, int or list of them
        The decision column by name or position; a KEEL file names its own.
    conditions : list of str or int, optional
        Default: every other column, in table order.
    header : bool
        Whether text begins with a line of names; without, columns are x0, x1, ….
    separator : str, optional
        The character between fields of text; by default what the first line shows.
    drop : str, int or list of them
        Columns to leave out.
    missing : {"value", "drop", "error"}
        Missing is a value of its own, or rows with missing values leave, or they are an error.
    na : str or list of str
        Further spellings of missing, e.g. "?".
    bins : str or mapping, optional
        How numbers become bins; see `plar.reduce`. In text, a column whose values are all written as numbers is one.
    decimal : {".", ","}
        The mark before the fraction of a number in text.
    weights : str or int, optional
        Column of whole-number multiplicities; 0 drops the row.

    Returns
    -------
    DecisionTable

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "t.csv")
    ...     _ = file.write_text("a,b,d\n1,x,0\n1,y,1\n")
    ...     read_table(file, "d").conditions
    ('a', 'b')
    """
    if not isinstance(path, (str, os.PathLike)):
        raise TableError(f"read_table takes a path, got {type(path).__name__}. Pass tables to reduce as they are.")
    return as_table(
        path,
        decision,
        conditions=conditions,
        drop=drop,
        missing=missing,
        na=na,
        bins=bins,
        decimal=decimal,
        weights=weights,
        header=header,
        separator=separator,
    )


def as_table(
    data: Any,
    decision: ColumnName | Sequence[ColumnName] | None = None,
    y: Any = None,
    *,
    conditions: Sequence[ColumnName] | None = None,
    drop: ColumnName | Sequence[ColumnName] = (),
    missing: str = "value",
    na: str | Iterable[str] = (),
    bins: Spec | None = None,
    decimal: str = ".",
    weights: ColumnName | None = None,
    header: bool = True,
    separator: str | None = None,
) -> DecisionTable:
    """Take any data as a decision table; options as of `read_table`.

    Parameters
    ----------
    data : path, glob, pandas or polars frame, Arrow table, 2-D array, mapping of columns or DecisionTable
        Anything with the Arrow stream protocol counts as an Arrow table.
    decision : str, int or list of them
        Where the columns of a pandas frame or a mapping are labelled by ints, an int that is a label means
        that label; else, as everywhere, a position.
    y : (n,) array_like
        The decision beside the data, in place of `decision`.

    Examples
    --------
    >>> as_table({"a": [1, 2], "d": [0, 1]}, "d").kind
    'mapping'
    """
    if isinstance(data, DecisionTable):
        _check_agrees(data, decision, y, conditions, drop, missing, na, weights, bins)
        return data
    source, names, kind, reader = opened(data, header, separator)
    labels = number_labels(source, kind)
    if labels:
        decision, conditions, drop, weights = (
            by_label(given, labels) for given in (decision, conditions, drop, weights)
        )
        if isinstance(bins, Mapping):
            bins = {by_label(name, labels): rule for name, rule in bins.items()}
    if decision is None and y is None and reader is not None:
        decision = reader.decision or None
    if kind == "spark" and y is not None:
        raise TableError("The rows are on a Spark cluster, so y= cannot lie beside them. Make it a column: decision=.")
    text = data.text if isinstance(data, SparkRows) else reader is not None and reader.text
    roles = decision, y, conditions, drop, missing, na, weights
    table = _table(source, names, kind, *roles, reader=reader, text=text)
    found = parse_bins(bins, names, table.conditions, table.decision, decimal)
    path = os.fspath(data) if isinstance(data, (str, os.PathLike)) else None
    return replace(table, bins=found, decimal=decimal, header=header, separator=separator, path=path)


def select_columns(
    data: Any,
    attributes: Sequence[str],
    decision: Sequence[str] = (),
    cuts: Mapping[str, Cuts] | None = None,
    *,
    na: Sequence[str] = (),
    decimal: str = ".",
) -> Any:
    """Take attributes of any table that has them, in table order, then the decision columns that it has.

    Those that have `cuts` come out as bin numbers; `na` and `decimal` say how they are written in text.

    Examples
    --------
    >>> select_columns({"b": [1], "a": [2], "d": [3]}, ["a", "b"], ["d"])
    {'b': [1], 'a': [2], 'd': [3]}
    """
    if isinstance(data, DecisionTable):
        return data.select(attributes, cuts)
    source, names, kind, reader = opened(data)
    kept = resolve_all(names, attributes, "attribute")
    there = tuple(name for name in decision if name in names)
    text = reader.text if reader is not None else False
    table = DecisionTable(source, names, kept, there, None, text, "value", tuple(na), kind, reader, decimal=decimal)
    return table.select(kept, cuts)


def _table(
    source: Any,
    names: tuple[str, ...],
    kind: str,
    decision: Any,
    y: Any,
    conditions: Any,
    drop: Any,
    missing: str,
    na: Any,
    weights: Any,
    *,
    reader: Source | None,
    text: bool,
) -> DecisionTable:
    policy, words = missing_policy(missing), spellings(na)
    if (decision is None) == (y is None):
        both = "Both decision and y are given" if y is not None else "No decision is given"
        raise TableError(f"{both}. Pass decision=, a column of the table, or y=, labels beside it.")
    labels = None
    if y is None:
        chosen = decision_names(names, decision)
        if not chosen:
            raise TableError("The list of decisions is empty. Name at least one column.")
        kept, weight = roles_of(names, chosen, conditions, drop, weights)
    else:
        labels = encode_labels(y, words)
        kept, weight = roles_of(names, (), conditions, drop, weights)
        chosen = (label_name(y, names),)
    return DecisionTable(source, names, kept, chosen, weight, text, policy, words, kind, reader, labels)


def _bins_of(table: DecisionTable, spec: Spec) -> Bins | None:
    return parse_bins(spec, table.names, table.conditions, table.decision, table.decimal)


def _check_agrees(
    table: DecisionTable,
    decision: Any,
    y: Any,
    conditions: Any,
    drop: Any,
    missing: str,
    na: Any,
    weights: Any,
    bins: Any,
) -> None:
    """Refuse options other than those that the table was made with."""
    names, words = table.names, spellings(na)
    contradicted = [
        ("decision", decision is not None and resolve_all(names, decision, "decision") != table.decision),
        ("y", y is not None),
        (
            "conditions",
            conditions is not None and resolve_all(names, conditions, "condition") != table.conditions,
        ),
        ("drop", any(name in table.conditions for name in resolve_all(names, drop, "column to drop"))),
        ("missing", missing not in ("value", table.missing)),
        ("na", bool(words) and set(words) != set(table.na)),
        ("weights", weights is not None and resolve(names, weights, "weights column") != table.weights),
        ("bins", bins is not None and _bins_of(table, bins) != table.bins),
    ]
    for option, differs in contradicted:
        if differs:
            raise TableError(f"The table was made with another {option}. Pass {option}= where it is made instead.")
