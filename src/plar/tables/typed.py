"""Files of typed columns: Parquet, Arrow, JSON and Excel, one or many as one table; only their types are read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from plar.coding.series import named
from plar.coding.threads import check_threads
from plar.errors import TableError
from plar.files import check_name, expanded
from plar.options import ReadOptions
from plar.tables.arrow_check import check_arrow
from plar.tables.frames import FileRows, run
from plar.tables.json import JsonRows, is_array, json_order, json_schema, read_array, unmapped

if TYPE_CHECKING:
    import polars as pl

__all__ = ["open_typed", "other_columns"]

_EXACT = 1 << 53  # whole numbers up to here are floats too
_NOTHING = "__HIVE_DEFAULT_PARTITION__"


def open_typed(path: str | os.PathLike[str], files: Sequence[Path], kind: str, options: ReadOptions) -> FileRows:
    """Open files of one format; those of a folder or glob divided by the values of columns have these too."""
    import polars as pl

    check_threads()
    frames: list[pl.LazyFrame] = []
    of_kind = JsonRows if kind in ("json", "ndjson") else FileRows
    for file in files:
        check_name(file)
        kept = of_kind(None, (), pl.LazyFrame(), paths=(file,))
        frame = run(lambda file=file: _scan(file, kind, options), kept.explain)  # type: ignore[misc]
        run(frame.collect_schema, kept.explain)
        frames.append(frame)
    if kind == "parquet":
        frames = _with_partitions(expanded(path), files, frames)
    names = tuple(frames[0].collect_schema().names())
    for file, frame in zip(files, frames, strict=True):
        if tuple(frame.collect_schema().names()) != names:
            raise TableError(other_columns(file, files[0]))
    together = frames[0]
    if len(frames) > 1:
        kept = of_kind(None, (), pl.LazyFrame(), paths=tuple(files))
        casts = run(lambda: _common_types(files, frames), kept.explain)
        together = pl.concat(
            [f.with_columns(named(n).cast(t) for n, t in casts.items() if f.collect_schema()[n] != t) for f in frames]
        )
    return of_kind(together, names, together, paths=tuple(files), columnar=kind in ("parquet", "ipc"))


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


# -- columns that the folders tell -------------------------------------------------------------------------


def _with_partitions(path: Path, files: Sequence[Path], frames: Sequence[pl.LazyFrame]) -> list[pl.LazyFrame]:
    """Add the columns by whose values the files are divided into folders, as Spark and others name them."""
    import polars as pl

    fixed = (
        len(path.parts) if path.is_dir() else next((i for i, p in enumerate(path.parts) if set(p) & set("*?[")), None)
    )
    if fixed is None or path.is_file():
        return list(frames)
    told = [[part.partition("=")[::2] for part in file.parts[fixed:-1] if "=" in part] for file in files]
    columns: dict[str, list[str | None]] = {}
    for pairs in told:
        for name, value in pairs:
            columns.setdefault(unquote(name), []).append(None if value == _NOTHING else unquote(value))
    made = list(frames)
    for name, values in columns.items():
        if len(values) < len(files):
            raise TableError(
                f"Only some of the files that {str(path)!r} names lie in a folder {name}=…. Read them one at a time."
            )
        whole = all(value is None or _is_whole(value) for value in values)
        dtype = pl.Int64 if whole and any(values) else pl.String
        made = [
            frame if name in frame.collect_schema() else frame.with_columns(pl.lit(value).cast(dtype).alias(name))
            for frame, value in zip(made, values, strict=True)
        ]
    return made


def _is_whole(text: str) -> bool:
    return text.lstrip("-").isdecimal() and str(int(text)) == text and abs(int(text)) < 1 << 62


# -- one type for all files --------------------------------------------------------------------------------


def _common_types(files: Sequence[Path], frames: Sequence[pl.LazyFrame]) -> dict[str, Any]:
    """Types in which no value of any file is changed; where there is none the column is refused."""
    schemas = [frame.collect_schema() for frame in frames]
    found: dict[str, Any] = {}
    for name, first in schemas[0].items():
        types = [schema[name] for schema in schemas]
        if all(dtype == first for dtype in types):
            continue
        chosen = _common(types)
        if chosen is None or not _is_exact(name, chosen, types, frames):
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


def _is_exact(name: str, chosen: Any, types: Sequence[Any], frames: Sequence[pl.LazyFrame]) -> bool:
    """Whether whole numbers that become floats are small enough for that."""
    import polars as pl

    if chosen != pl.Float64:
        return True
    small = (pl.Int8, pl.Int16, pl.Int32, pl.UInt8, pl.UInt16, pl.UInt32, pl.Float32, pl.Float64, pl.Null)
    for dtype, frame in zip(types, frames, strict=True):
        if dtype not in small:
            column = named(name)
            low, high = frame.select(column.min().alias("low"), column.max().alias("high")).collect().row(0)
            if low is not None and max(-low, high) > _EXACT:
                return False
    return True
