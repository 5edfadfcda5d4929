"""Tables in: any data that holds a decision table, with names, roles and the policy for missing values.

The data stay what and where they are; `DecisionTable.granulate` reads them, in a stream where it can.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from plar.coding.codes import Column
from plar.columns import (
    ColumnName,
    by_label,
    check_names,
    decision_names,
    missing_policy,
    resolve,
    resolve_all,
    roles_of,
    spellings,
)
from plar.errors import TableError
from plar.granules import Granules, open_granules
from plar.reading.frames import Roles, granulate_columns, granulate_source
from plar.reading.memory import (
    check_mapping,
    encode_columns,
    encode_labels,
    label_name,
    matrix_names,
    number_labels,
    to_polars,
)
from plar.reading.output import check_output, sink_frame
from plar.reading.readers import open_source
from plar.reading.source import Misread, Source
from plar.reading.spark import SparkRows, select_places, sink_rows

if TYPE_CHECKING:
    import polars as pl

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

    def granulate(self) -> Granules:
        """Read the rows and return the distinct ones with their multiplicities.

        Examples
        --------
        >>> as_table(np.array([[1, 0], [1, 0], [2, 1]]), -1).granulate().counts.tolist()
        [2, 1]
        """
        if self.kind == "spark":
            raise TableError("The rows are on a Spark cluster. Use engine='spark', or bring them here: .toPandas().")
        roles = Roles(self.conditions, self.decision, self.weights, self.missing, self.na, self.labels)
        if self.reader is not None:
            granules = granulate_source(self.reader, roles)
        else:
            wanted = [*roles.used, *([self.weights] if self.weights is not None else [])]
            coded = encode_columns(self.source, self.kind, self.names, wanted, self.na)
            granules = granulate_columns(coded, roles)
        return replace(granules, names=self.names)

    def __repr__(self) -> str:
        """Tell the roles on one line, not the rows."""
        where = f"{self.kind} {self.reader.shown}" if self.reader is not None and self.reader.files else self.kind
        decision = ", ".join(map(repr, self.decision))
        return (
            f"<DecisionTable: {where}, {len(self.names)} columns, {len(self.conditions)} conditions, "
            f"decision {decision}>"
        )

    def select(self, names: Iterable[ColumnName]) -> Any:
        """Take columns, with all rows and their values as they are.

        Parameters
        ----------
        names : iterable of str or int

        Returns
        -------
        table of the same kind as the source
            Those columns in table order, then the decision where it is part of the table; for a path a polars
            DataFrame.

        Examples
        --------
        >>> as_table(np.array([[1, 5, 0], [2, 6, 1]]), -1).select(["x1"])
        array([[5, 0],
               [6, 1]])
        """
        return _select(self, _kept(self, names))

    def sink(self, names: Iterable[ColumnName], path: str | os.PathLike[str]) -> None:
        """Write what `select` returns to a file, in a stream; its suffix says the format.

        The file appears whole or not at all, and never in place of the input.
        """
        import polars as pl

        kept = _kept(self, names)
        if self.kind == "spark":
            sink_rows(_select(self, kept), path)
            return
        reader = self.reader
        kind = check_output(path, reader.files if reader is not None else ())
        if reader is None:
            reader = Source(to_polars(self.source, self.kind, self.names, kept).lazy(), kept, (), text=False)
        while True:
            try:
                sink_frame(reader.values(kept), path, kind)
                return
            except Misread:
                reader = _careful(reader)
            except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
                fault = reader.explain(error)
                if not isinstance(fault, Misread):
                    raise fault from None
                reader = _careful(reader)


def _careful(reader: Source) -> Source:
    if reader.careful is None:
        raise TableError("The rows cannot be read.")
    return reader.careful


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
        _check_agrees(data, decision, y, conditions, drop, missing, na, weights)
        return data
    source, names, kind, reader = _opened(data, header, separator)
    labels = number_labels(source, kind)
    if labels:
        decision, conditions, drop, weights = (
            by_label(given, labels) for given in (decision, conditions, drop, weights)
        )
    if decision is None and y is None and reader is not None:
        decision = reader.decision or None
    if kind == "spark" and y is not None:
        raise TableError("The rows are on a Spark cluster, so y= cannot lie beside them. Make it a column: decision=.")
    text = data.text if isinstance(data, SparkRows) else reader is not None and reader.text
    roles = decision, y, conditions, drop, missing, na, weights
    return _table(source, names, kind, *roles, reader=reader, text=text)


def select_columns(data: Any, attributes: Sequence[str], decision: Sequence[str] = ()) -> Any:
    """Take attributes of any table that has them, in table order, then the decision columns that it has.

    Examples
    --------
    >>> select_columns({"b": [1], "a": [2], "d": [3]}, ["a", "b"], ["d"])
    {'b': [1], 'a': [2], 'd': [3]}
    """
    if isinstance(data, DecisionTable):
        return data.select(attributes)
    source, names, kind, opened = _opened(data)
    kept = resolve_all(names, attributes, "attribute")
    there = tuple(name for name in decision if name in names)
    text = opened.text if opened is not None else False
    table = DecisionTable(source, names, kept, there, None, text, "value", (), kind, opened)
    return table.select(kept)


# -- any data ----------------------------------------------------------------------------------------------


def _opened(
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
        reason = str(error).splitlines()[0].rstrip(".")
        raise TableError(f"Cannot take {type(data).__name__} as a table: {reason}. Check its columns.") from None
    own = kind == "polars" or type(data).__name__ in ("Table", "RecordBatch")
    kept = data if own and hasattr(data, "select") else frame
    return kept, names, kind, Source(frame.lazy(), names, (), text=False)


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


def _check_agrees(
    table: DecisionTable,
    decision: Any,
    y: Any,
    conditions: Any,
    drop: Any,
    missing: str,
    na: Any,
    weights: Any,
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
    ]
    for option, differs in contradicted:
        if differs:
            raise TableError(f"The table was made with another {option}. Pass {option}= where it is made instead.")


def _kept(table: DecisionTable, names: Iterable[ColumnName]) -> tuple[str, ...]:
    """Columns to keep, in table order, then the decision where it is a column."""
    chosen = set(resolve_all(table.names, list(names), "attribute")) - set(table.decision)
    beside = () if table.labels is not None else table.decision
    return (*(name for name in table.names if name in chosen), *beside)


def _select(table: DecisionTable, kept: tuple[str, ...]) -> Any:
    at = {name: place for place, name in enumerate(table.names)}
    places = [at[name] for name in kept]
    if table.kind == "numpy":
        return table.source[:, places]
    if table.kind == "pandas":
        return table.source.iloc[:, places]
    if table.kind == "mapping":
        by_name = {str(label): label for label in table.source}
        return {by_name[name]: table.source[by_name[name]] for name in kept}
    if table.kind == "path":
        return _read_values(table.reader, kept)
    if table.kind == "spark":
        return select_places(table.source, places)
    return table.source.select(list(kept))


def _read_values(reader: Source | None, kept: tuple[str, ...]) -> pl.DataFrame:
    while reader is not None:
        try:
            return reader.collect(reader.values(kept))
        except Misread:
            reader = reader.careful
    raise TableError("The rows cannot be read.")
