"""Files of typed columns: Parquet, Arrow, JSON and Excel, one or several as one table; opening reads only the types."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from plar.coding.series import named
from plar.errors import TableError
from plar.files.find import check_name, expanded, stamp_of
from plar.input.tables.frames import FrameSource, common_type, run
from plar.input.tables.json import JsonSource, is_array, json_order, json_schema, json_source, read_array, unmapped
from plar.options import ReadOptions
from plar.runtime.lazy_polars import pl

if TYPE_CHECKING:
    from polars._typing import PolarsDataType

#: cells that are read at a time; of an Arrow file polars reads all columns whenever it reads some
_CELLS_AT_A_TIME = {"parquet": 1 << 24, "ipc": 1 << 26}
#: the name of a folder whose rows have no value
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


def open_typed(path: str | os.PathLike[str], files: Sequence[Path], kind: str, options: ReadOptions) -> FrameSource:
    """Open files of one format; those partitioned into folders by column values get these columns too."""
    stamps = tuple(map(stamp_of, files))
    source_class = JsonSource if kind in ("json", "ndjson") else FrameSource
    frames: list[pl.LazyFrame] = []
    for file in files:
        check_name(file)
        explain = partial(source_class.fault_of, (file,))
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
        explain = partial(source_class.fault_of, files)
        common_types = run(partial(_common_types, files, frames), explain)
        frames = [_cast(frame, common_types) for frame in frames]
    return source_class(
        pl.concat(frames),
        names,
        tuple(files),
        cells=_CELLS_AT_A_TIME.get(kind, 0),
        frames=tuple(frames),
        stamps=stamps,
    )


def _cast(frame: pl.LazyFrame, types: Mapping[str, PolarsDataType]) -> pl.LazyFrame:
    """A frame with columns of these types."""
    schema = frame.collect_schema()
    return frame.with_columns(named(name).cast(dtype) for name, dtype in types.items() if schema[name] != dtype)


def _scan(file: Path, kind: str, options: ReadOptions) -> pl.LazyFrame:
    if kind == "parquet":
        return pl.scan_parquet(file, glob=False, hive_partitioning=False)
    if kind == "ipc":
        return _scan_arrow(file)
    if kind == "excel":
        return _read_excel(file, options)
    if is_array(file) and kind == "json":
        return read_array(file)
    schema = json_schema(file)
    names = json_order(file, tuple(schema))
    return pl.scan_ndjson(json_source(file), schema={name: schema[name] for name in names})


def _read_excel(file: Path, options: ReadOptions) -> pl.LazyFrame:
    if find_spec("fastexcel") is None:
        raise TableError(f"{str(file)!r} needs fastexcel, which is not installed. Try: pip install 'plar[excel]'.")
    sheet = pl.read_excel(file, has_header=options.header, infer_schema_length=None)
    return pl.LazyFrame(sheet)


def _scan_arrow(file: Path) -> pl.LazyFrame:
    frame = pl.scan_ipc(unmapped(file), glob=False, hive_partitioning=False)
    try:
        frame.collect_schema()  # makes an empty folder for polars' cache
    except pl.exceptions.PanicException:  # there is no place for one
        return pl.scan_ipc(file, glob=False, hive_partitioning=False)
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
    if not is_folder:
        for place, part in enumerate(parts):
            if set(part) & set("*?["):
                return place
    return len(parts)


def partition_columns(folders: Sequence[Sequence[str]], path: str) -> list[dict[str, pl.Expr]]:
    """Columns of every file by the folders it is in, named column=value, as Spark and others write them."""
    values_of_files = [_values_of(folders_of_file) for folders_of_file in folders]
    columns: list[dict[str, pl.Expr]] = [{} for _ in folders]
    for name in dict.fromkeys(name for values in values_of_files for name in values):
        if not all(name in values for values in values_of_files):
            raise TableError(f"Only some files of {path!r} are in a folder {name}=…. Read them one at a time.")
        texts = [None if values[name] == _HIVE_NULL else values[name] for values in values_of_files]
        are_whole_numbers = all(text is None or re.fullmatch("0|-?[1-9][0-9]{0,17}", text) for text in texts)
        dtype = pl.Int64 if are_whole_numbers and any(texts) else pl.String
        for columns_of_file, text in zip(columns, texts, strict=True):
            columns_of_file[name] = pl.lit(text).cast(dtype).alias(name)
    return columns


def _values_of(folders: Sequence[str]) -> dict[str, str]:
    """The values that folders named column=value give."""
    values = {}
    for folder in folders:
        name, equals_sign, value = folder.partition("=")
        if equals_sign:
            values[unquote(name)] = unquote(value)
    return values


def with_partition(frame: pl.LazyFrame, columns: Mapping[str, pl.Expr]) -> pl.LazyFrame:
    """Add the columns of a file's folders, except those that it has itself."""
    schema = frame.collect_schema()
    return frame.with_columns(column for name, column in columns.items() if name not in schema)


def _common_types(files: Sequence[Path], frames: Sequence[pl.LazyFrame]) -> dict[str, PolarsDataType]:
    """Common types that change no value of any file; a column without one is refused."""
    schemas = [frame.collect_schema() for frame in frames]
    common_types: dict[str, PolarsDataType] = {}
    for name, first_type in schemas[0].items():
        types = [schema[name] for schema in schemas]
        if all(dtype == first_type for dtype in types):
            continue
        chosen = common_type(types)
        if chosen is None or not all(_stays_exact(name, chosen, frame) for frame in frames):
            odd = next(i for i, dtype in enumerate(types) if dtype != first_type)
            raise TableError(
                f"Column {name!r} is {types[odd]} in {str(files[odd])!r} and {first_type} in {str(files[0])!r}. "
                "Write them all in one type."
            )
        common_types[name] = chosen
    return common_types


def _stays_exact(name: str, chosen: PolarsDataType, frame: pl.LazyFrame) -> bool:
    """Whether the common type represents the whole numbers of a file exactly."""
    column = named(name)
    dtype = frame.collect_schema()[name]
    if chosen != pl.Float64 or not dtype.is_integer():
        return True
    there_and_back = column.cast(pl.Float64).cast(dtype, strict=False)
    return bool(frame.select(there_and_back.eq_missing(column).all()).collect().item())
