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
from plar.input.tables.source import Selection, Source, assembled
from plar.input.text.numbers import warn_of_spellings
from plar.input.text.reader import CodedRows, open_text
from plar.options import ReadOptions
from plar.runtime.lazy_polars import pl


class TextSource(Source):
    """Rows of text files; `data` is their reader."""

    @staticmethod
    def open(files: Sequence[Path], kind: str, options: ReadOptions) -> TextSource:
        """Open files of one format (text, arff, or dat, which is either); their first lines give the names."""
        found = open_text(files, kind, options)
        return TextSource(found, found.names, tuple(found.files), text=True, declared=found.decision)

    def encode(self, names: Sequence[str], na: MissingSpellings) -> Iterable[Column]:
        """Code these columns, row by row."""
        found: list[Column] = self.data.read(names, na, group=False).columns
        return found

    def granulate(self, roles: Roles) -> Granules:
        """Read the rows once and return the distinct ones."""
        found: CodedRows = self.data.read(roles.used, roles.na, roles.weights, group=roles.coded_y is None)
        k, columns = len(roles.conditions), found.columns
        if roles.weights is not None:
            for code, value in enumerate(columns[-1].values):
                if whole(value) is None:
                    raise BadWeight(value, found.where(len(columns) - 1, code) + ",")
        if roles.bins is None:
            named = zip(roles.used, columns, strict=False)  # weights come after them
            warn_of_spellings({name: column.values for name, column in named if name not in roles.numeric})
        conditions, beside = deque(columns[:k]), columns[k:]
        distinct = found.distinct and not any(column.merged for column in columns)
        columns.clear()

        def given() -> Iterator[Column]:
            if (roles.bins or roles.decision_bins) and roles.missing == "drop":
                yield from conditions  # they are requested again
            else:
                while conditions:
                    yield conditions.popleft()  # so that each can be freed when it is replaced

        return assembled(roles, given, beside, found.counts, decimal=roles.decimal, grouped=distinct)

    def select(self, selection: Selection) -> pl.DataFrame:
        """Read columns into a polars DataFrame, as they are written."""
        if not selection.kept:
            return pl.DataFrame()  # as polars returns for files of typed columns
        found = self.data.read(selection.kept, MissingSpellings(frozenset([""])), group=False, trim=False).columns
        return pl.DataFrame(
            [
                selection.cut(pl.Series(name, column.values, dtype=pl.String).gather(column.codes), name, text=True)
                for name, column in zip(selection.kept, found, strict=True)
            ]
        )
