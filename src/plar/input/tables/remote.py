"""Files on other file systems, such as hdfs://, s3:// and gs://: each is copied to this machine to be read."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path, PurePosixPath
from typing import Any

from plar.coding.codes import Column
from plar.coding.missing import MissingSpellings
from plar.errors import TableError
from plar.files.find import known_format
from plar.granules.granules import Granules
from plar.input.roles import Roles
from plar.input.tables.frames import FrameSource, common_type
from plar.input.tables.source import Selection, Source
from plar.input.tables.table import open_source
from plar.input.tables.typed import n_fixed, partition_columns, with_partition
from plar.options import ReadOptions
from plar.runtime.lazy_polars import pl


@dataclass(frozen=True, slots=True, eq=False)
class RemoteFiles(Source):
    """Files of one table; `data` are their paths on the fsspec file system, `types` the column types of the first.

    `partitions` has the columns of Parquet files that their folders name.
    """

    system: Any = None
    options: ReadOptions = field(default_factory=ReadOptions)
    types: Mapping[str, Any] = field(default_factory=dict)
    partitions: Mapping[str, Mapping[str, pl.Expr]] = field(default_factory=dict)

    @staticmethod
    def open(address: str, options: ReadOptions) -> RemoteFiles:
        """Find the file or files of an address, folder or glob; the first file gives the column names."""
        system, paths, folders = _find(address)
        partitions: dict[str, Mapping[str, pl.Expr]] = {}
        if all(known_format(Path(path)) == "parquet" for path in paths):
            partitions.update(zip(paths, partition_columns(folders, address), strict=True))
        found = RemoteFiles(tuple(paths), (), system=system, options=options, partitions=partitions)
        with found._copied(paths[0]) as rows:
            return replace(found, names=rows.names, text=rows.text, declared=rows.declared, types=_types(rows))

    def parts(self) -> list[Source]:
        """Each file as a part of its own."""
        return [replace(self, data=(path,)) for path in self.data]

    def granulate(self, roles: Roles) -> Granules:
        return reduce(Granules.merge, (rows.granulate(roles) for rows in self._each()))

    def encode(self, names: Sequence[str], na: MissingSpellings) -> Iterable[Column]:
        for rows in self._each():
            yield from rows.encode(names, na)

    def select(self, selection: Selection) -> Any:
        return pl.concat([rows.select(selection) for rows in self._each()])

    def _each(self) -> Iterator[Source]:
        for path in self.data:
            with self._copied(path) as rows:
                yield rows

    @contextmanager
    def _copied(self, path: str) -> Iterator[Source]:
        """Copy a file to this machine, for as long as it is being read."""
        with tempfile.TemporaryDirectory(prefix="plar-") as folder:
            copy = Path(folder, PurePosixPath(path).name)
            try:
                self.system.get_file(path, os.fspath(copy))
            except Exception as error:  # from any library that fsspec uses
                raise TableError(f"Cannot read {path!r}: {error}. Check the address and your permissions.") from None
            try:
                rows = self._with_partition(open_source(copy, self.options), path)
                self._check(rows, path)
                yield rows
            except TableError as error:
                error.args = tuple(str(part).replace(os.fspath(copy), path) for part in error.args)
                raise

    def _with_partition(self, rows: Source, path: str) -> Source:
        """Add the columns that the folders of a Parquet file name."""
        columns = self.partitions.get(path)
        if not columns or not isinstance(rows, FrameSource):
            return rows
        frame = with_partition(rows.frame, columns)
        return replace(rows, data=frame, names=tuple(frame.collect_schema().names()))

    def _check(self, rows: Source, path: str) -> None:
        if self.names and rows.names != self.names:
            raise TableError(
                f"{path!r} has different columns from {self.data[0]!r}. All files must have the same columns."
            )
        for name, dtype in _types(rows).items():
            if name in self.types and common_type([self.types[name], dtype]) is None:
                raise TableError(
                    f"Column {name!r} is {dtype} in {path!r} and {self.types[name]} in the first file. "
                    "Write them all in one type."
                )


def _types(rows: Source) -> dict[str, Any]:
    return dict(rows.frame.collect_schema()) if isinstance(rows, FrameSource) else {}


def _find(address: str) -> tuple[Any, list[str], list[list[str]]]:
    """The file system of an address, its files, and the folders of each below what all files share."""
    try:
        import fsspec
    except ImportError:
        raise TableError(f"{address!r} needs fsspec, which is not installed. Try: pip install fsspec.") from None
    fixed = 0
    try:
        system, path = fsspec.core.url_to_fs(address)
        if any(mark in path for mark in "*?["):
            matches = system.glob(path, detail=True)
            paths = [match for match, facts in matches.items() if facts["type"] != "directory"]
            fixed = n_fixed(_parts(path), is_folder=False)
        elif system.isdir(path):
            fixed = len(_parts(path))
            paths = [p for p in system.find(path) if not any(part[0] in "._" for part in _parts(p)[fixed:])]
        else:
            paths = [path] if system.exists(path) else []
            fixed = len(_parts(path))
    except Exception as error:  # from any library that fsspec uses
        raise TableError(f"Cannot look for {address!r}: {error}. Check the address.") from None
    if not paths:
        raise TableError(f"No file matches {address!r}. Check the address.")
    return system, sorted(paths), [_parts(p)[fixed:-1] for p in sorted(paths)]


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part]
