"""Parts of a table that tasks read independently: byte ranges of text, row groups of Parquet, whole files otherwise.

A part is itself an opened table: a task granulates it with the readers of the local engine.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
from pyspark import SparkContext

from plar.engines.spark.session import errors_in_parts, explained
from plar.errors import TableError
from plar.files.find import Stamp
from plar.input.tables.frames import FrameSource
from plar.input.tables.remote import RemoteFiles
from plar.input.tables.source import ColumnChoice, RowSource, Source
from plar.input.tables.table import open_source
from plar.input.tables.text import TextSource
from plar.input.text.headers import Header
from plar.input.text.ranges import Scan, can_be_divided, divided, scan_range
from plar.input.text.reader import TextFile
from plar.options import ReadOptions
from plar.runtime.spark_calls import spark_call

T = TypeVar("T")

_MIN_PART_BYTES = 1 << 20
_MAX_PART_BYTES = 1 << 26

#: consecutive byte ranges of a file, each with its scan
ScannedRanges: TypeAlias = list[tuple[int, int, Scan]]


def parts_of(source: RowSource, context: SparkContext) -> list[RowSource]:
    """Divide a table into one part per core, or more if the parts would be large."""
    if isinstance(source, RemoteFiles):
        return source.parts()
    size = -(-sum(map(_size, source.files)) // context.defaultParallelism)
    size = min(max(size, _MIN_PART_BYTES), _MAX_PART_BYTES)
    if isinstance(source, TextSource):
        return list(_text_parts(source, context, size))
    assert isinstance(source, FrameSource)
    return list(_typed_parts(source, size))


def _size(file: Path) -> int:
    try:
        return os.stat(file).st_size
    except OSError as error:
        raise TableError(f"Cannot read {str(file)!r}: {error.strerror}. Check the file and its permissions.") from None


def _of_any_copy(stamp: Stamp | None) -> Stamp | None:
    """The stamp without its time, which may differ between the machines' copies of a file."""
    return None if stamp is None else stamp._replace(modified=None)


def _text_parts(source: TextSource, context: SparkContext, size: int) -> Iterator[RowSource]:
    """Split text files at row ends; small files share a part."""
    text: TextFile = source.data
    dialect = text.headers[0].dialect
    scanned = _scanned(text, context, size)
    parts: list[tuple[Path, Header]] = []
    sizes: list[int] = []
    for file, header in zip(text.files, text.headers, strict=True):
        whole = replace(header, dialect=dialect, stamp=_of_any_copy(header.stamp))
        headers_of_file = divided(whole, scanned[file]) if file in scanned else [whole]
        for part in headers_of_file:
            end = _size(file) if part.end is None else part.end
            parts.append((file, part))
            sizes.append(end - part.size)
    for group in _packed(parts, sizes, size):
        files, headers = zip(*group, strict=True)
        yield replace(source, data=replace(text, files=files, headers=headers), files=files)


def _scanned(text: TextFile, context: SparkContext, size: int) -> dict[Path, ScannedRanges]:
    """Have the tasks scan large files in ranges of bytes, to find where rows end."""
    dialect = text.headers[0].dialect
    ranges: list[tuple[Path, int, int]] = []
    for file, header in zip(text.files, text.headers, strict=True):
        end = _size(file)
        if end - header.size > 2 * size and can_be_divided(file, text.encoding):
            ends = [*range(header.size, end - size // 2, size), end]
            ranges += [(file, low, high) for low, high in pairwise(ends)]
    scanned: dict[Path, ScannedRanges] = {}
    if not ranges:
        return scanned

    def scan(of_file: tuple[Path, int, int]) -> Scan:
        with errors_in_parts():
            return scan_range(*of_file, dialect)

    with explained("read the table"):
        scans = context.parallelize(ranges, len(ranges)).map(scan).collect()
    for (file, low, high), scan_of_range in zip(ranges, scans, strict=True):
        scanned.setdefault(file, []).append((low, high, scan_of_range))
    return scanned


def _typed_parts(source: FrameSource, size: int) -> Iterator[RowSource]:
    """Split Parquet by row groups and Arrow by rows; a file in any other format is not split."""
    import polars as pl

    stamps = dict(zip(source.files, map(_of_any_copy, source.stamps), strict=True))
    parts: list[tuple[Any, Path]] = []
    sizes: list[int] = []
    for file, frame in zip(source.files, source.frames, strict=True):
        n_bytes = _size(file)
        slices = [frame]
        if source.cells and n_bytes > 2 * size:
            ends = _row_ends(source, file, frame, n_bytes, size)
            slices = [frame.slice(low, high - low) for low, high in pairwise([0, *ends])] or [frame]
        parts += [(part, file) for part in slices]
        sizes += [n_bytes // len(slices)] * len(slices)
    for group in _packed(parts, sizes, size):
        frames, files = zip(*group, strict=True)
        data = pl.concat(frames) if len(frames) > 1 else frames[0]
        distinct_files = tuple(dict.fromkeys(files))
        stamps_of_part = tuple(stamps[file] for file in distinct_files)
        yield replace(source, data=data, files=distinct_files, frames=(), stamps=stamps_of_part)


def _row_ends(source: FrameSource, file: Path, frame: Any, n_bytes: int, size: int) -> list[int]:
    """Row numbers after which a file is split, about `size` bytes apart: in Parquet, where a row group ends."""
    import polars as pl
    from pyarrow.parquet import read_metadata

    n_parts = -(-n_bytes // size)
    if file.suffix.lower() != ".parquet":
        n = int(source.collect(frame.select(pl.len())).item())
        return [n * k // n_parts for k in range(1, n_parts + 1)]
    metadata = read_metadata(file)
    groups = range(metadata.num_row_groups)
    group_ends = np.cumsum([0, *(metadata.row_group(number).num_rows for number in groups)])
    wanted = [metadata.num_rows * k // n_parts for k in range(1, n_parts + 1)]
    ends: list[int] = np.unique(group_ends[np.searchsorted(group_ends, wanted)]).tolist()
    return ends


def _packed(parts: Sequence[T], sizes: Sequence[int], size: int) -> Iterator[list[T]]:
    """Group neighbours of about `size` in all; a larger one is a group of its own."""
    group: list[T] = []
    group_size = 0
    for part, part_size in zip(parts, sizes, strict=True):
        if group and group_size + part_size > size + size // 2:
            yield group
            group = []
            group_size = 0
        group.append(part)
        group_size += part_size
    if group:
        yield group


# -- tables out ------------------------------------------------------------------------------------------------


@spark_call
def write_parts(
    context: SparkContext, source: RowSource, selection: ColumnChoice, path: str | os.PathLike[str]
) -> None:
    """Have a task write each part into a folder, which is complete once it holds _SUCCESS."""
    if "://" in os.fspath(path):
        raise TableError(
            f"Cannot write {os.fspath(path)!r} from here. Name a folder on a disk that all executors share."
        )
    folder = Path(path)
    suffix = "".join(folder.suffixes[-2:]) if folder.suffix in (".gz", ".zst") else folder.suffix

    def write(part: tuple[int, RowSource]) -> None:
        number, of_part = part
        with errors_in_parts():
            of_part.sink(selection, folder / f"part-{number:05d}{suffix}")

    try:
        folder.mkdir()
    except FileExistsError:
        raise TableError(f"{str(folder)!r} already exists and is not overwritten. Choose another name.") from None
    except OSError as error:
        raise TableError(f"Cannot write {str(folder)!r}: {error.strerror}. Choose another place.") from None
    try:
        parts = list(enumerate(parts_of(source, context)))
        with explained(f"write {str(folder)!r}"):
            context.parallelize(parts, len(parts)).foreach(write)
        (folder / "_SUCCESS").touch()
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def open_files(path: str | os.PathLike[str], options: ReadOptions, context: SparkContext) -> Source:
    """Open local files, or those at an address on another file system, such as Hadoop's default one."""
    text = os.fspath(path)
    if text.startswith("file:"):
        return open_source("/" + text.removeprefix("file:").lstrip("/"), options)
    if "://" not in text:
        default = str(context._jsc.hadoopConfiguration().get("fs.defaultFS") or "file:///")
        if default.startswith("file:") or os.path.exists(text):
            return open_source(text, options)
        text = default.rstrip("/") + "/" + text.lstrip("/")
    return RemoteFiles.open(text, options)
