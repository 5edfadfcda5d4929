"""Text files: CSV and its variants, ARFF and KEEL's .dat. Values are compared as written, with blanks trimmed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from plar.coding.assemble import BadWeight, whole
from plar.coding.codes import Column
from plar.coding.missing import MissingSpellings
from plar.granules.granules import Granules
from plar.input.roles import Roles
from plar.input.tables.source import ColumnChoice, RowSource, assemble_granules
from plar.input.text.numbers import warn_of_spellings
from plar.input.text.reader import CodedRows, TextFile, open_text
from plar.options import ReadOptions
from plar.runtime.lazy_polars import pl


class TextSource(RowSource):
    """Rows of text files; `data` is their reader."""

    data: TextFile

    @staticmethod
    def open(files: Sequence[Path], kind: str, options: ReadOptions) -> TextSource:
        """Open files of one format (text, arff, or dat, which is either); their first lines give the names."""
        reader = open_text(files, kind, options)
        return TextSource(reader, reader.names, tuple(reader.files), text=True, declared_decision=reader.decision)

    def encode(self, names: Sequence[str], na: MissingSpellings) -> Iterable[Column]:
        """Code these columns, row by row."""
        return self.data.read(names, na, group=False).columns

    def granulate(self, roles: Roles) -> Granules:
        """Read the rows once and return the distinct ones."""
        rows = self.data.read(roles.used, roles.na, roles.weights, group=roles.coded_y is None)
        columns = rows.columns
        if roles.weights is not None:
            _check_weights(rows)
        if roles.bins is None:
            used = zip(roles.used, columns, strict=False)  # weights come after them
            warn_of_spellings({name: column.values for name, column in used if name not in roles.numeric})
        n_conditions = len(roles.conditions)
        conditions = deque(columns[:n_conditions])
        decision_and_weights = columns[n_conditions:]
        is_distinct = rows.distinct and not any(column.merged for column in columns)
        # bins need the rows without missing values first, so the conditions are requested twice
        read_twice = bool(roles.bins or roles.decision_bins) and roles.missing == "drop"
        columns.clear()

        def next_condition() -> Iterator[Column]:
            if read_twice:
                yield from conditions
            else:
                while conditions:
                    yield conditions.popleft()  # so that each can be freed when it is replaced

        granules = assemble_granules(
            roles, next_condition, decision_and_weights, rows.counts, text=True, grouped=is_distinct
        )
        if roles.bins is not None:
            values_of = zip(granules.conditions, granules.dictionaries, strict=True)
            numeric_names = {*roles.numeric, *granules.cuts}
            warn_of_spellings({name: values for name, values in values_of if name not in numeric_names})
        return granules

    def select(self, selection: ColumnChoice) -> pl.DataFrame:
        """Read columns into a polars DataFrame, as they are written."""
        if not selection.names:
            return pl.DataFrame()  # as polars returns for files of typed columns
        only_empty = MissingSpellings(frozenset([""]))
        columns = self.data.read(selection.names, only_empty, group=False, trim=False).columns
        series = []
        for name, column in zip(selection.names, columns, strict=True):
            values = pl.Series(name, column.values, dtype=pl.String).gather(column.codes)
            series.append(selection.cut(values, name, text=True))
        return pl.DataFrame(series)


def _check_weights(rows: CodedRows) -> None:
    """Refuse a weight that is not a whole number, with the line that it is first in; weights are the last column."""
    place = len(rows.columns) - 1
    for code, value in enumerate(rows.columns[place].values):
        if whole(value) is None:
            raise BadWeight(value, rows.where(place, code) + ",")
