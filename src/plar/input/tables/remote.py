"""Files on other file systems, such as hdfs://, s3:// and gs://: each is copied to this machine to be read."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple, Protocol

from plar.coding.codes import Column
from plar.coding.missing import MissingSpellings
from plar.errors import TableError
from plar.files.find import known_format
from plar.granules.granules import Granules
from plar.input.roles import Roles
from plar.input.tables.frames import FrameSource, common_type
from plar.input.tables.source import ColumnChoice, RowSource, Source
from plar.input.tables.table import open_source, selectable
from plar.input.tables.typed import n_fixed, partition_columns, with_partition
from plar.options import ReadOptions
from plar.runtime.lazy_polars import pl

if TYPE_CHECKING:
    from polars._typing import PolarsDataType


class FileSystem(Protocol):
    """What is used of fsspec's AbstractFileSystem."""

    def get_file(self, rpath: str, lpath: str) -> None:
        """Copy a file to this machine."""


@dataclass(frozen=True, slots=True, eq=False)
class RemoteFiles(RowSource):
    """Files of one table; `data` are their paths on the fsspec file system, `types` the column types of the first.

    `partitions` has the columns of Parquet files that their folders name.
    """

    data: tuple[str, ...]
    system: FileSystem = field(kw_only=True)
    options: ReadOptions = field(default_factory=ReadOptions)
    types: Mapping[str, PolarsDataType] = field(default_factory=dict)
    partitions: Mapping[str, Mapping[str, pl.Expr]] = field(default_factory=dict)

    @staticmethod
    def open(address: str, options: ReadOptions) -> RemoteFiles:
        """Find the file or files of an address, folder or glob; the first file gives the column names."""
        listing = _list_files(address)
        partitions: dict[str, Mapping[str, pl.Expr]] = {}
        if all(known_format(Path(path)) == "parquet" for path in listing.paths):
            columns = partition_columns(listing.folders, address)
            partitions.update(zip(listing.paths, columns, strict=True))
        files = RemoteFiles(tuple(listing.paths), (), system=listing.system, options=options, partitions=partitions)
        with files._copied(files.data[0]) as first:
            return replace(
                files,
                names=first.names,
                text=first.text,
                declared_decision=first.declared_decision,
                types=_types(first),
            )

    def parts(self) -> list[RowSource]:
        """Each file as a part of its own."""
        return [replace(self, data=(path,)) for path in self.data]

    def granulate(self, roles: Roles) -> Granules:
        return reduce(Granules.merge, (_granulated(source, roles) for source in self._each()))

    def encode(self, names: Sequence[str], na: MissingSpellings) -> Iterable[Column]:
        for source in self._each():
            rows = selectable(source)
            assert isinstance(rows, RowSource)
            yield from rows.encode(names, na)

    def select(self, selection: ColumnChoice) -> pl.DataFrame:
        frames: list[pl.DataFrame] = [selectable(source).select(selection) for source in self._each()]
        return pl.concat(frames)

    def _each(self) -> Iterator[Source]:
        for path in self.data:
            with self._copied(path) as source:
                yield source

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
                source = self._with_partition(open_source(copy, self.options), path)
                self._check(source, path)
                yield source
            except TableError as error:
                _name_original(error, os.fspath(copy), path)
                raise

    def _with_partition(self, source: Source, path: str) -> Source:
        """Add the columns that the folders of a Parquet file name."""
        columns = self.partitions.get(path)
        if not columns or not isinstance(source, FrameSource):
            return source
        frame = with_partition(source.frame, columns)
        return replace(source, data=frame, names=tuple(frame.collect_schema().names()))

    def _check(self, source: Source, path: str) -> None:
        """Refuse a file whose columns or types do not go with those of the first."""
        if self.names and source.names != self.names:
            raise TableError(
                f"{path!r} has different columns from {self.data[0]!r}. All files must have the same columns."
            )
        for name, dtype in _types(source).items():
            if name in self.types and common_type([self.types[name], dtype]) is None:
                raise TableError(
                    f"Column {name!r} is {dtype} in {path!r} and {self.types[name]} in the first file. "
                    "Write them all in one type."
                )


def _granulated(source: Source, roles: Roles) -> Granules:
    granules = source.granulate(roles)
    assert isinstance(granules, Granules)  # files hold no others
    return granules


def _name_original(error: TableError, copy: str, path: str) -> None:
    """Have an error about the copy of a file name the file itself."""
    error.message = tuple(part.replace(copy, path) if isinstance(part, str) else part for part in error.message)
    error.args = (str(error).replace(copy, path),)


def _types(source: Source) -> dict[str, PolarsDataType]:
    return dict(source.frame.collect_schema()) if isinstance(source, FrameSource) else {}


class _FileListing(NamedTuple):
    """The files of an address."""

    system: FileSystem
    paths: list[str]
    #: the folders of each file below what all files share
    folders: list[list[str]]


def _list_files(address: str) -> _FileListing:
    try:
        import fsspec
    except ImportError:
        raise TableError(f"{address!r} needs fsspec, which is not installed. Try: pip install fsspec.") from None
    n_shared = 0
    try:
        system, path = fsspec.core.url_to_fs(address)
        if any(mark in path for mark in "*?["):
            matches = system.glob(path, detail=True)
            paths = [match for match, info in matches.items() if info["type"] != "directory"]
            n_shared = n_fixed(_parts(path), is_folder=False)
        elif system.isdir(path):
            n_shared = len(_parts(path))
            paths = [file for file in system.find(path) if not _is_metadata(_parts(file)[n_shared:])]
        else:
            paths = [path] if system.exists(path) else []
            n_shared = len(_parts(path))
    except Exception as error:  # from any library that fsspec uses
        raise TableError(f"Cannot look for {address!r}: {error}. Check the address.") from None
    if not paths:
        raise TableError(f"No file matches {address!r}. Check the address.")
    paths.sort()
    return _FileListing(system, paths, [_parts(file)[n_shared:-1] for file in paths])


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part]


def _is_metadata(parts: Sequence[str]) -> bool:
    """Whether a file, or a folder that it is in, begins with . or _."""
    return any(part[0] in "._" for part in parts)
