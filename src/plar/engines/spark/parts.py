"""Parts of a table that tasks read independently: byte ranges of text, row groups of Parquet, whole files otherwise.

A part is itself an opened table: a task granulates it with the readers of the local engine.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from pyspark import SparkContext

from plar.engines.spark.session import explained
from plar.errors import TableError
from plar.spark_calls import spark_call
from plar.tables.frames import FrameRows
from plar.tables.remote import RemoteFiles
from plar.tables.rows import Rows, Selection
from plar.tables.text import TextRows
from plar.text.ranges import can_be_divided, divided, scan_range
from plar.text.reader import TextFile

#: minimum and maximum bytes of a part
_LEAST, _MOST = 1 << 20, 1 << 26


def parts_of(rows: Rows, context: SparkContext) -> list[Rows]:
    """Divide a table into one part per core, or more if the parts would be large."""
    if isinstance(rows, RemoteFiles):
        return rows.parts()
    size = -(-sum(map(_size, rows.files)) // context.defaultParallelism)
    size = min(max(size, _LEAST), _MOST)
    if isinstance(rows, TextRows):
        return list(_text_parts(rows, context, size))
    assert isinstance(rows, FrameRows)
    return list(_typed_parts(rows, size))


def _size(file: Path) -> int:
    try:
        return os.stat(file).st_size
    except OSError as error:
        raise TableError(f"Cannot read {str(file)!r}: {error.strerror}. Check the file and its permissions.") from None


def _text_parts(rows: TextRows, context: SparkContext, size: int) -> Iterator[Rows]:
    """Split text files at row ends; small files share a part."""
    text: TextFile = rows.data
    dialect = text.headers[0].dialect
    headers = [[replace(header, dialect=dialect)] for header in text.headers]
    ranges = []
    for number, (file, header) in enumerate(zip(text.files, text.headers, strict=True)):
        end = _size(file)
        if end - header.size > 2 * size and can_be_divided(file, text.encoding):
            ends = [*range(header.size, end - size // 2, size), end]
            ranges += [(number, low, high) for low, high in pairwise(ends)]
    if ranges:
        scan = partial(_scan, files=text.files, dialect=dialect)
        with explained("read the table"):
            scans = context.parallelize(ranges, len(ranges)).map(scan).collect()
        for number in {number for number, _, _ in ranges}:
            own = [(low, high, found) for (n, low, high), found in zip(ranges, scans, strict=True) if n == number]
            headers[number] = divided(headers[number][0], own)
    every = [(file, header) for file, own in zip(text.files, headers, strict=True) for header in own]
    sizes = [(_size(file) if header.end is None else header.end) - header.size for file, header in every]
    for group in _packed(sizes, size):
        files = tuple(every[i][0] for i in group)
        part = replace(text, files=files, headers=tuple(every[i][1] for i in group))
        yield replace(rows, data=part, files=files)


def _scan(asked: tuple[int, int, int], files: Sequence[Path], dialect: Any) -> Any:
    number, low, high = asked
    return scan_range(files[number], low, high, dialect)


def _typed_parts(rows: FrameRows, size: int) -> Iterator[Rows]:
    """Split Parquet by row groups and Arrow by rows; a file in any other format is not split."""
    import polars as pl

    every: list[tuple[Any, Path]] = []
    sizes: list[int] = []
    for file, frame in zip(rows.files, rows.frames, strict=True):
        n_bytes = _size(file)
        ends = _row_ends(rows, file, frame, n_bytes, size) if rows.cells and n_bytes > 2 * size else []
        pieces = [frame.slice(low, high - low) for low, high in pairwise([0, *ends])] or [frame]
        every += [(piece, file) for piece in pieces]
        sizes += [n_bytes // len(pieces)] * len(pieces)
    for group in _packed(sizes, size):
        frames, files = zip(*(every[i] for i in group), strict=True)
        together = pl.concat(frames) if len(frames) > 1 else frames[0]
        yield replace(rows, data=together, files=tuple(dict.fromkeys(files)), frames=())


def _row_ends(rows: FrameRows, file: Path, frame: Any, n_bytes: int, size: int) -> list[int]:
    """Row numbers after which a file is split, about `size` bytes apart."""
    import polars as pl

    if file.suffix.lower() != ".parquet":
        n = int(rows.collect(frame.select(pl.len())).item())
        count = -(-n_bytes // size)
        return [n * k // count for k in range(1, count + 1)]
    from pyarrow.parquet import read_metadata

    metadata, ends, total, held = read_metadata(file), list[int](), 0, 0
    for number in range(metadata.num_row_groups):
        n = metadata.row_group(number).num_rows
        total, held = total + n, held + n
        if held * n_bytes >= size * metadata.num_rows or number == metadata.num_row_groups - 1:
            ends.append(total)
            held = 0
    return ends


def _packed(sizes: Sequence[int], size: int) -> Iterator[list[int]]:
    """Group neighbours of about `size` in all; a larger one is a group of its own."""
    group: list[int] = []
    held = 0
    for number, own in enumerate(sizes):
        if group and held + own > size + size // 2:
            yield group
            group, held = [], 0
        group.append(number)
        held += own
    if group:
        yield group


# -- tables out ------------------------------------------------------------------------------------------------


@spark_call
def write_parts(context: SparkContext, rows: Rows, selection: Selection, path: str | os.PathLike[str]) -> None:
    """Have a task write each part into a folder, which is complete once it holds _SUCCESS."""
    if "://" in os.fspath(path):
        raise TableError(
            f"Cannot write {os.fspath(path)!r} from here. Name a folder on a disk that all executors share."
        )
    folder = Path(path)
    suffix = "".join(folder.suffixes[-2:]) if folder.suffix in (".gz", ".zst") else folder.suffix
    try:
        folder.mkdir()
    except FileExistsError:
        raise TableError(f"{str(folder)!r} already exists and is not overwritten. Choose another name.") from None
    except OSError as error:
        raise TableError(f"Cannot write {str(folder)!r}: {error.strerror}. Choose another place.") from None
    try:
        parts = list(enumerate(parts_of(rows, context)))
        with explained(f"write {str(folder)!r}"):
            context.parallelize(parts, len(parts)).foreach(partial(_write, selection, str(folder), suffix))
        (folder / "_SUCCESS").touch()
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _write(selection: Selection, folder: str, suffix: str, part: tuple[int, Rows]) -> None:
    number, rows = part
    rows.sink(selection, Path(folder, f"part-{number:05d}{suffix}"))


def local_path(path: str | os.PathLike[str], context: SparkContext) -> tuple[str, bool]:
    """A local path or an address on another file system, and whether it is the latter."""
    text = os.fspath(path)
    if text.startswith("file:"):
        return "/" + text.removeprefix("file:").lstrip("/"), False
    if "://" in text:
        return text, True
    default = str(context._jsc.hadoopConfiguration().get("fs.defaultFS") or "file:///")
    if default.startswith("file:") or os.path.exists(text):
        return text, False
    return default.rstrip("/") + "/" + text.lstrip("/"), True
