"""Random tables, and a table in every kind of input that can hold it."""

from __future__ import annotations

import datetime as dt
import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import strategies as st

import plar

pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
Columns = dict[str, list[Any]]
#: what text files hold, and everything else too; blanks around values are trimmed in text
WORDS = st.one_of(
    st.sampled_from(
        ["a", "b", "1", "1.0", "-0", "true", "nan", "NA", "?!", "x,y", 'q"q', "it's", "a b", "é🎉", "\\", "%"]
    ),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Z"]), min_size=1, max_size=4),
)
KINDS: dict[str, st.SearchStrategy[Any]] = {
    "word": WORDS,
    "small": st.integers(-3, 3),
    "wide": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(allow_nan=False),
    "finite": st.floats(allow_nan=False, allow_infinity=False),
    "bool": st.booleans(),
    "date": st.dates(),
    "time": st.datetimes(),
    "clock": st.times(),
    "span": st.timedeltas(dt.timedelta(-(10**5)), dt.timedelta(10**5)),
    "decimal": st.decimals(-9, 9, places=2),
}
#: those that JSON has
JSON = ("word", "small", "wide", "finite", "bool")


@st.composite
def tables(draw: st.DrawFn, kinds: Sequence[str] = tuple(KINDS)) -> Columns:
    """Up to five columns x0, x1, … of one kind each, with missing values; the last is the decision."""
    n = draw(st.integers(1, 12))
    columns: Columns = {}
    for j, kind in enumerate(draw(st.lists(st.sampled_from(kinds), min_size=2, max_size=5))):
        pool = draw(st.lists(KINDS[kind], min_size=1, max_size=3))
        columns[f"x{j}"] = draw(st.lists(st.sampled_from([*pool, *pool, None]), min_size=n, max_size=n))
    return columns


def rows_of(columns: Columns) -> list[tuple[Any, ...]]:
    return list(zip(*columns.values(), strict=True))


def quoted(value: str | None, mark: str = '"') -> str:
    """A value as CSV has it."""
    return "" if value is None else mark + value.replace(mark, 2 * mark) + mark


def arff(columns: Columns) -> str:
    def cell(value: str | None) -> str:
        return "?" if value is None else "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"

    head = ["@relation t", *(f"@attribute {name} string" for name in columns), "@data"]
    return "\n".join([*head, *(",".join(map(cell, row)) for row in rows_of(columns))]) + "\n"


def texts(columns: Columns, folder: Path) -> Iterator[tuple[str, Any]]:
    """A table of words as text files."""
    for suffix, mark in ((".csv", ","), (".tsv", "\t"), (".txt", ";")):
        lines = [mark.join(columns), *(mark.join(map(quoted, row)) for row in rows_of(columns))]
        text = ("\n".join(lines) + "\n").encode()
        (folder / f"t{suffix}").write_bytes(text)
        yield f"t{suffix}", folder / f"t{suffix}"
    packed = folder / "t.csv.gz"
    packed.write_bytes(gzip.compress((folder / "t.csv").read_bytes()))
    yield "t.csv.gz", packed
    pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String)).lazy().sink_csv(
        folder / "t.csv.zst", compression="zstd", check_extension=False
    )
    yield "t.csv.zst", folder / "t.csv.zst"
    (folder / "t.arff").write_text(arff(columns))
    yield "t.arff", folder / "t.arff"
    half = max(1, len(rows_of(columns)) // 2)
    for i, part in enumerate((rows_of(columns)[:half], rows_of(columns)[half:])):
        lines = [",".join(columns), *(",".join(map(quoted, row)) for row in part)]
        (folder / f"p{i}.csv").write_text("\n".join(lines if part else [*lines, lines[0]][:1]) + "\n")
    if half < len(rows_of(columns)):
        yield "p*.csv", folder / "p*.csv"


def json_files(columns: Columns, folder: Path) -> Iterator[tuple[str, Any]]:
    objects = [dict(zip(columns, row, strict=True)) for row in rows_of(columns)]
    (folder / "t.json").write_text(json.dumps(objects))
    (folder / "t.ndjson").write_text("\n".join(map(json.dumps, objects)))
    (folder / "t.jsonl.gz").write_bytes(gzip.compress((folder / "t.ndjson").read_bytes()))
    yield from ((name, folder / name) for name in ("t.json", "t.ndjson", "t.jsonl.gz"))


def typed(columns: Columns, folder: Path) -> Iterator[tuple[str, Any]]:
    """A table in everything that has types."""
    frame = pl.DataFrame(columns, infer_schema_length=None)
    arrow = frame.to_arrow()
    frame.write_parquet(folder / "t.parquet")
    frame.write_ipc(folder / "t.arrow")
    matrix = np.empty((len(frame), len(columns)), object)
    for j, column in enumerate(columns.values()):
        matrix[:, j] = column
    yield "polars", frame
    yield "lazy", frame.lazy()
    yield "mapping", columns
    yield "numpy", matrix
    yield "pyarrow", arrow
    yield "pandas, objects", pd.DataFrame({name: pd.Series(column, dtype=object) for name, column in columns.items()})
    yield "pandas, Arrow", arrow.to_pandas(types_mapper=pd.ArrowDtype)
    yield "pandas, categories", pd.DataFrame({name: pd.Categorical(column) for name, column in columns.items()})
    yield "mapping of Series", {name: frame[name] for name in columns}
    yield "Parquet", folder / "t.parquet"
    yield "Arrow", folder / "t.arrow"
    granules = plar.granulate(columns, -1)
    granules.save(folder / "g.parquet")
    yield "granules", granules
    yield "granule file", folder / "g.parquet"
