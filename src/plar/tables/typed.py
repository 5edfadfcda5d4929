"""Files of typed columns: Parquet, Arrow, JSON and Excel, one or many as one table; only their types are read."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from plar.coding.series import named
from plar.errors import TableError
from plar.files import check_name, expanded
from plar.options import ReadOptions
from plar.tables.arrow_check import check_arrow
from plar.tables.frames import FrameRows, run
from plar.tables.json import JsonRows, is_array, json_order, json_schema, read_array, unmapped

if TYPE_CHECKING:
    import polars as pl

__all__ = ["open_typed", "other_columns"]

_NOTHING = "__HIVE_DEFAULT_PARTITION__"


def open_typed(path: str | os.PathLike[str], files: Sequence[Path], kind: str, options: ReadOptions) -> FrameRows:
    """Open files of one format; those of a folder or glob divided by the values of columns have these too."""
    import polars as pl

    frames: list[pl.LazyFrame] = []
    kind_of_rows = JsonRows if kind in ("json", "ndjson") else FrameRows
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
            raise TableError(other_columns(file, files[0]))
    together = frames[0]
    if len(frames) > 1:
        explain = kind_of_rows(None, (), tuple(files)).explain
        casts = run(partial(_common_types, files, frames), explain)
        together = pl.concat(
            [f.with_columns(named(n).cast(t) for n, t in casts.items() if f.collect_schema()[n] != t) for f in frames]
        )
    return kind_of_rows(together, names, tuple(files), columnar=kind in ("parquet", "ipc"))


def other_columns(file: Path, first: Path) -> str:
    """Say that files do not make one table."""
    return f"{str(file)!r} has other columns than {str(first)!r}. Give all files of the glob the same columns."


def _scan(file: Path, kind: str, options: ReadOptions) -> pl.LazyFrame:
    import polars as pl

    if kind == "parquet":
        return pl.scan_parquet(file, glob=False, hive_partitioning=False)
    if kind == "ipc":
        check_arrow(file)
        return pl.scan_ipc(file, glob=False, hive_partitioning=False)
    if kind == "excel":
        if find_spec("fastexcel") is None:
            raise TableError(f"{str(file)!r} needs fastexcel, which is not installed. Try: pip install 'plar[excel]'.")
        sheet: Any = pl.read_excel(file, has_header=options.header, infer_schema_length=None)
        return pl.LazyFrame(sheet)
    if is_array(file) and kind == "json":
        return read_array(file)
    schema = json_schema(file)
    return pl.scan_ndjson(unmapped(file), schema={name: schema[name] for name in json_order(file, tuple(schema))})


def _with_partitions(path: Path, files: Sequence[Path], frames: Sequence[pl.LazyFrame]) -> list[pl.LazyFrame]:
    """Add the columns by whose values the files are divided into folders, as Spark and others name them."""
    import polars as pl

    fixed = (
        len(path.parts) if path.is_dir() else next((i for i, p in enumerate(path.parts) if set(p) & set("*?[")), None)
    )
    if fixed is None or path.is_file():
        return list(frames)
    parts = [[part.partition("=") for part in file.parts[fixed:-1]] for file in files]
    told = [{unquote(name): unquote(value) for name, mark, value in own if mark} for own in parts]
    made = list(frames)
    for name in dict.fromkeys(name for columns in told for name in columns):
        if not all(name in columns for columns in told):
            raise TableError(
                f"Only some of the files that {str(path)!r} names lie in a folder {name}=…. Read them one at a time."
            )
        values = [None if columns[name] == _NOTHING else columns[name] for columns in told]
        whole = all(value is None or re.fullmatch("0|-?[1-9][0-9]{0,17}", value) for value in values)
        dtype = pl.Int64 if whole and any(values) else pl.String
        made = [
            frame if name in frame.collect_schema() else frame.with_columns(pl.lit(value).cast(dtype).alias(name))
            for frame, value in zip(made, values, strict=True)
        ]
    return made


def _common_types(files: Sequence[Path], frames: Sequence[pl.LazyFrame]) -> dict[str, Any]:
    """Types in which no value of any file is changed; where there is none the column is refused."""
    schemas = [frame.collect_schema() for frame in frames]
    found: dict[str, Any] = {}
    for name, first in schemas[0].items():
        types = [schema[name] for schema in schemas]
        if all(dtype == first for dtype in types):
            continue
        chosen = _common(types)
        if chosen is None or not all(_stays_exact(name, chosen, frame) for frame in frames):
            odd = next(i for i, dtype in enumerate(types) if dtype != first)
            raise TableError(
                f"Column {name!r} is {types[odd]} in {str(files[odd])!r} and {first} in {str(files[0])!r}. "
                "Write all in one type."
            )
        found[name] = chosen
    return found


def _common(types: Sequence[Any]) -> Any:
    import polars as pl

    known = [dtype for dtype in dict.fromkeys(types) if dtype != pl.Null]
    if len(known) == 1:
        return known[0]
    if all(dtype in (pl.String, pl.Categorical, pl.Enum) for dtype in known):
        return pl.String
    if all(dtype.is_integer() for dtype in known) and pl.UInt128 not in known:
        return pl.Int128 if {pl.UInt64, pl.Int128}.intersection(known) else pl.Int64
    if all(dtype.is_integer() or dtype.is_float() for dtype in known):
        return pl.Float64
    return None


def _stays_exact(name: str, chosen: Any, frame: pl.LazyFrame) -> bool:
    """Whether the whole numbers of a file stay what they are in a common type."""
    import polars as pl

    column, dtype = named(name), frame.collect_schema()[name]
    if chosen != pl.Float64 or not dtype.is_integer():
        return True
    there_and_back = column.cast(pl.Float64).cast(dtype, strict=False)
    return bool(frame.select(there_and_back.eq_missing(column).all()).collect().item())
