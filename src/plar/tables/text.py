"""Text files: CSV and its kin, ARFF and KEEL's .dat. Values compare as written, blanks around them trimmed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from plar.coding.codes import Column
from plar.coding.series import encode_series
from plar.errors import ParameterError
from plar.granules import Granules
from plar.options import ReadOptions
from plar.reading.frames import granulate_source
from plar.reading.readers import open_text
from plar.reading.source import Misread, Source
from plar.roles import Roles
from plar.tables.frames import cut_frame, shown, sink_cut
from plar.tables.output import check_output
from plar.tables.rows import Rows, Selection, granulate_columns

__all__ = ["TextRows"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class TextRows(Rows):
    """Rows of text files; `data` is what reads them."""

    @staticmethod
    def open(files: Sequence[Path], kind: str, options: ReadOptions) -> TextRows:
        """Open files of one format (text, arff, or dat: either), whose first lines tell the names."""
        if options.encoding != "utf-8":
            raise ParameterError(f"Text is read as UTF-8 only. Got encoding={options.encoding!r}; convert the file.")
        source = open_text(list(files), kind, header=options.header, separator=options.separator)
        return TextRows(source, source.names)

    def __str__(self) -> str:
        """What it is."""
        return f"path {shown(self.files)}"

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that are read."""
        found: tuple[Path, ...] = self.data.files
        return found

    @property
    def text(self) -> bool:
        """Values compare as written."""
        return True

    @property
    def declared(self) -> tuple[str, ...]:
        """What a KEEL file says its decision is."""
        found: tuple[str, ...] = self.data.decision
        return found

    def encode(self, names: Sequence[str], na: tuple[str, ...]) -> Iterable[Column]:
        """Code these columns."""
        frame = self._read(lambda source: source.collect(source.values(names)))
        return (encode_series(series, (*na, *self.data.na), text=True) for series in frame)

    def granulate(self, roles: Roles) -> Granules:
        """Read the rows and return the distinct ones."""
        return granulate_source(self.data, roles) if roles.bins is None else granulate_columns(self, roles)

    def select(self, selection: Selection) -> Any:
        """Read columns into a polars DataFrame."""
        frame = self._read(lambda source: source.collect(source.values(selection.kept)))
        return cut_frame(frame, selection, text=True)

    def sink(self, selection: Selection, path: str | os.PathLike[str]) -> None:
        """Write columns to a file, in a stream."""
        check_output(path, self.files)
        self._read(
            lambda source: sink_cut(source.values(selection.kept), selection, path, text=True, explain=source.explain)
        )

    def _read(self, read: Callable[[Source], T]) -> T:
        """Read; what turns out wrong gives way to a more careful reading."""
        source = self.data
        while True:
            try:
                return read(source)
            except Misread:
                if source.careful is None:
                    raise
                source = source.careful
