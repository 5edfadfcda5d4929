"""Files of typed columns: Parquet, Arrow, JSON and Excel, one or several as one table; opening reads only the types."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from io import FileIO
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from plar.coding.series import named
from plar.errors import TableError
from plar.files.find import check_name, expanded, stamp_of
from plar.input.tables.frames import FrameSource, common_type, run
from plar.input.tables.json import JsonSource, is_array, json_order, json_schema, json_source, read_array, unmapped
from plar.options import ReadOptions
from plar.runtime.lazy_polars import pl

#: constants of https://arrow.apache.org/docs/format/Columnar.html
_DICTIONARY = 2
_MAX_RATIO = (256, 33_000)  # highest compression ratios of LZ4 and Zstandard
_SPARE = 1 << 12
#: cells that are read at a time; of an Arrow file polars reads all columns whenever it reads some
_CELLS = {"parquet": 1 << 24, "ipc": 1 << 26}
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


def open_typed(path: str | os.PathLike[str], files: Sequence[Path], kind: str, options: ReadOptions) -> FrameSource:
    """Open files of one format; those partitioned into folders by column values get these columns too."""
    stamps = tuple(map(stamp_of, files))
    frames: list[pl.LazyFrame] = []
    kind_of_rows = JsonSource if kind in ("json", "ndjson") else FrameSource
    for file in files:
        check_name(file)
        explain = kind_of_rows(None, (), (file,)).explain
        frame = run(partial(_scan, file, kind, options), explain)
        run(frame.collect_schema, explain)
        frames.append(frame)
    if kind == "parquet":
        frames = _with_partitions(expanded(path), files, frames)
    names = tuple(frames[0].collect_schema().names())
    for file, frame in zip(files, frames, strict=True):
        if tuple(frame.collect_schema().names()) != names:
            raise TableError(
                f"{str(file)!r} has different columns from {str(files[0])!r}. All files must have the same columns."
            )
    if len(frames) > 1:
        explain = kind_of_rows(None, (), tuple(files)).explain
        casts = run(partial(_common_types, files, frames), explain)
        frames = [
            f.with_columns(named(n).cast(t) for n, t in casts.items() if f.collect_schema()[n] != t) for f in frames
        ]
    return kind_of_rows(
        pl.concat(frames), names, tuple(files), cells=_CELLS.get(kind, 0), frames=tuple(frames), stamps=stamps
    )


def _scan(file: Path, kind: str, options: ReadOptions) -> pl.LazyFrame:
    if kind == "parquet":
        return pl.scan_parquet(file, glob=False, hive_partitioning=False)
    if kind == "ipc":
        _check_arrow(file)
        return _scan_arrow(file)
    if kind == "excel":
        if find_spec("fastexcel") is None:
            raise TableError(f"{str(file)!r} needs fastexcel, which is not installed. Try: pip install 'plar[excel]'.")
        sheet: Any = pl.read_excel(file, has_header=options.header, infer_schema_length=None)
        return pl.LazyFrame(sheet)
    if is_array(file) and kind == "json":
        return read_array(file)
    schema = json_schema(file)
    return pl.scan_ndjson(json_source(file), schema={name: schema[name] for name in json_order(file, tuple(schema))})


def _scan_arrow(file: Path) -> pl.LazyFrame:
    scan = partial(pl.scan_ipc, glob=False, hive_partitioning=False)
    frame: pl.LazyFrame = scan(unmapped(file))
    try:
        frame.collect_schema()  # makes an empty folder for polars' cache
    except pl.exceptions.PanicException:  # there is no place for one
        return scan(file)
    return frame


def _with_partitions(path: Path, files: Sequence[Path], frames: Sequence[pl.LazyFrame]) -> list[pl.LazyFrame]:
    """Add the columns that partition the files into folders, if there are such columns."""
    if path.is_file():
        return list(frames)
    fixed = n_fixed(path.parts, is_folder=path.is_dir())
    columns = partition_columns([file.parts[fixed:-1] for file in files], str(path))
    return list(map(with_partition, frames, columns))


def n_fixed(parts: Sequence[str], *, is_folder: bool) -> int:
    """How many parts of a path all its files share: those of a folder, or those before a pattern."""
    wild = [] if is_folder else [i for i, part in enumerate(parts) if set(part) & set("*?[")]
    return wild[0] if wild else len(parts)


def partition_columns(folders: Sequence[Sequence[str]], path: str) -> list[dict[str, pl.Expr]]:
    """Columns of every file by the folders it is in, named column=value, as Spark and others write them."""
    parts = [[folder.partition("=") for folder in own] for own in folders]
    in_path = [{unquote(name): unquote(value) for name, mark, value in own if mark} for own in parts]
    columns: list[dict[str, pl.Expr]] = [{} for _ in folders]
    for name in dict.fromkeys(name for values in in_path for name in values):
        if not all(name in values for values in in_path):
            raise TableError(f"Only some files of {path!r} are in a folder {name}=…. Read them one at a time.")
        texts = [None if values[name] == _HIVE_NULL else values[name] for values in in_path]
        whole = all(text is None or re.fullmatch("0|-?[1-9][0-9]{0,17}", text) for text in texts)
        dtype = pl.Int64 if whole and any(texts) else pl.String
        for own, text in zip(columns, texts, strict=True):
            own[name] = pl.lit(text).cast(dtype).alias(name)
    return columns


def with_partition(frame: pl.LazyFrame, columns: Mapping[str, pl.Expr]) -> pl.LazyFrame:
    """Add the columns of a file's folders, except those that it has itself."""
    schema = frame.collect_schema()
    return frame.with_columns(column for name, column in columns.items() if name not in schema)


def _common_types(files: Sequence[Path], frames: Sequence[pl.LazyFrame]) -> dict[str, Any]:
    """Common types that change no value of any file; a column without one is refused."""
    schemas = [frame.collect_schema() for frame in frames]
    found: dict[str, Any] = {}
    for name, first in schemas[0].items():
        types = [schema[name] for schema in schemas]
        if all(dtype == first for dtype in types):
            continue
        chosen = common_type(types)
        if chosen is None or not all(_stays_exact(name, chosen, frame) for frame in frames):
            odd = next(i for i, dtype in enumerate(types) if dtype != first)
            raise TableError(
                f"Column {name!r} is {types[odd]} in {str(files[odd])!r} and {first} in {str(files[0])!r}. "
                "Write them all in one type."
            )
        found[name] = chosen
    return found


def _stays_exact(name: str, chosen: Any, frame: pl.LazyFrame) -> bool:
    """Whether the common type represents the whole numbers of a file exactly."""
    column, dtype = named(name), frame.collect_schema()[name]
    if chosen != pl.Float64 or not dtype.is_integer():
        return True
    there_and_back = column.cast(pl.Float64).cast(dtype, strict=False)
    return bool(frame.select(there_and_back.eq_missing(column).all()).collect().item())


# -- Arrow files that claim impossible sizes would crash the process ----------------------------------------------


def _check_arrow(path: Path) -> None:
    """Refuse a file with a batch beyond its end, or a buffer that cannot unpack to its size: polars allocates it."""
    with path.open("rb", buffering=0) as file:  # not mapped either
        try:
            damaged = _overstates(file)
        except (struct.error, ValueError):  # polars will report it
            damaged = False
    if damaged:
        raise TableError(
            f"Cannot read {str(path)!r}: a part of it claims an impossible size. "
            "The file is damaged or not what its name says."
        )


def _overstates(file: FileIO) -> bool:
    end = file.seek(0, os.SEEK_END) - 10
    size = _number(_part(file, end, 4), "<i", 0)
    data = _part(file, end - size, size)
    footer = _follow(data, 0)
    blocks = []
    for slot in (2, 3):  # dictionaries, recordBatches
        at, n_blocks = _vector(data, _field(data, footer, slot))
        blocks += list(struct.iter_unpack("<qixxxxq", data[at : at + 24 * n_blocks]))
    if any(min(block) < 0 or sum(block) > end for block in blocks):  # offset, length of the message, of its buffers
        return True
    return any(_batch_overstates(file, _part(file, at, size), at + size) for at, size, _ in blocks)


def _batch_overstates(file: FileIO, data: bytes, body: int) -> bool:
    """The same of one batch, by the message that describes it and the position of its buffers."""
    message = _follow(data, 8 if data.startswith(b"\xff\xff\xff\xff") else 4)
    batch = _follow(data, _field(data, message, 2))
    if _number(data, "<B", _field(data, message, 1)) == _DICTIONARY:
        batch = _follow(data, _field(data, batch, 1))
    packed = _field(data, batch, 3)
    if not packed:
        return False
    codec = _field(data, _follow(data, packed), 0)
    most = _MAX_RATIO[_number(data, "<b", codec) == 1 if codec else 0]
    buffers, n_buffers = _vector(data, _field(data, batch, 2))
    for at, size in struct.iter_unpack("<qq", data[buffers : buffers + 16 * n_buffers]):
        if size > 0 and not -1 <= _number(_part(file, body + at, 8), "<q", 0) <= most * size + _SPARE:
            return True
    return False


def _part(file: FileIO, at: int, size: int) -> bytes:
    if at < 0 or not 0 <= size <= os.fstat(file.fileno()).st_size:
        raise ValueError("not in the file")
    file.seek(at)
    return file.read(size)


def _number(data: bytes, kind: str, at: int) -> int:
    return int(struct.unpack_from(kind, data, at)[0])


def _follow(data: bytes, at: int) -> int:
    return at + _number(data, "<I", at)


def _field(data: bytes, table: int, slot: int) -> int:
    """Position of a field of a table, 0 if it is absent."""
    known = table - _number(data, "<i", table)
    if 4 + 2 * slot >= _number(data, "<H", known):
        return 0
    offset = _number(data, "<H", known + 4 + 2 * slot)
    return table + offset if offset else 0


def _vector(data: bytes, at: int) -> tuple[int, int]:
    """Position of the first entry of a vector, and the number of entries."""
    place = _follow(data, at) if at else 0
    return place + 4, _number(data, "<I", place) if at else 0
