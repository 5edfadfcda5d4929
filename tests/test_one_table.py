"""One random table through every kind of input and every engine: one fingerprint, one reduct.

Also its parts as files whose types differ, and as granules that are saved, opened and merged.
"""

from __future__ import annotations

import datetime as dt
import gzip
import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import reduce
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from conftest import ASKED, ENGINES, TURNS, nightly
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import plar
from plar.granules import Granules

pa = pytest.importorskip("pyarrow")
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


def check_one(ways: Iterator[tuple[str, Any]]) -> None:
    """All have the fingerprint of the first, and the same reduct on every engine."""
    first: tuple[Any, ...] | None = None
    engines = [ENGINES[name]() for name in ASKED]
    for name, data in ways:
        granules = plar.granulate(data, None if "granule" in name else -1)
        found = [plar.reduce(granules, engine=engine) for engine in engines]
        seen = (
            granules.fingerprint(),
            sorted(granules.counts.tolist()),
            granules.n_missing,
            {(one.core, one.attributes, one.theta, one.n_granules) for one in found},
        )
        first = seen if first is None else first
        assert seen == first, (name, granules.dictionaries)


FEWER = settings(max_examples=20 * TURNS, suppress_health_check=list(HealthCheck))


@FEWER
@given(tables(["word"]))
@pytest.mark.filterwarnings("ignore:One number is written")
def test_words(tmp_path_factory: pytest.TempPathFactory, columns: Columns) -> None:
    folder = tmp_path_factory.mktemp("words")

    def ways() -> Iterator[tuple[str, Any]]:
        yield from typed(columns, folder)
        yield from texts(columns, folder)
        yield from json_files(columns, folder)

    check_one(ways())


@FEWER
@given(tables())
def test_typed(tmp_path_factory: pytest.TempPathFactory, columns: Columns) -> None:
    check_one(typed(columns, tmp_path_factory.mktemp("typed")))


@FEWER
@given(tables(JSON))
def test_json(tmp_path_factory: pytest.TempPathFactory, columns: Columns) -> None:
    folder = tmp_path_factory.mktemp("json")

    def ways() -> Iterator[tuple[str, Any]]:
        yield "mapping", columns
        yield from json_files(columns, folder)

    check_one(ways())


@nightly
@settings(max_examples=TURNS, suppress_health_check=list(HealthCheck))
@given(tables(["word", "small", "wide", "float", "bool", "decimal"]))
def test_spark(tmp_path_factory: pytest.TempPathFactory, spark: Any, columns: Columns) -> None:
    path = tmp_path_factory.mktemp("spark") / "t.parquet"
    frame = pl.DataFrame(columns, infer_schema_length=None)
    frame.write_parquet(path)
    rows = spark.read.parquet(str(path))
    here, there = plar.reduce(frame, -1), plar.reduce(rows, -1)
    assert (there.core, there.attributes, there.theta) == (here.core, here.attributes, here.theta)
    assert plar.granulate(rows, -1).fingerprint() == plar.granulate(frame, -1).fingerprint()


# -- parts -------------------------------------------------------------------------------------------------

VALUES: list[Any] = [
    *(None, 0, 1, -1, 2**53, 2**53 + 1, 2**64, 10**400, True, 0.5, 1e300, float("inf"), "1", "x", "", b"x"),
    *(Decimal("0.5"), Decimal("1E+50"), Decimal("Infinity"), (1, "x"), 1j, dt.date(2026, 1, 1), dt.timedelta(1)),
    *(dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 1, tzinfo=dt.UTC), dt.time(1), "int 1", "'", "\ud800"),
]


@FEWER
@given(st.data())
def test_granules_in_files_merge_as_in_memory(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("parts")
    cells = st.lists(st.tuples(*[st.sampled_from(VALUES)] * 3), min_size=1, max_size=6)
    parts = []
    for i, rows in enumerate(data.draw(st.lists(cells, min_size=2, max_size=4))):
        columns = {f"x{j}": list(column) for j, column in enumerate(zip(*rows, strict=True))}
        parts.append(plar.granulate(columns, -1))
        parts[-1].save(folder / f"g{i}.parquet")
    whole = reduce(Granules.merge, parts)
    files = [plar.granulate(folder / f"g{i}.parquet") for i in range(len(parts))]
    mixed = [data.draw(st.sampled_from(pair)) for pair in zip(parts, files, strict=True)]
    for merged in (plar.granulate(folder / "g*.parquet"), reduce(Granules.merge, mixed)):
        assert merged.fingerprint() == whole.fingerprint()
        assert sorted(merged.counts.tolist()) == sorted(whole.counts.tolist())
        assert plar.reduce(merged).attributes == plar.reduce(whole).attributes


TIME = dt.datetime(2026, 1, 1, 0, 0, 0, 1500)
TYPES: list[pl.Series] = [
    *(pl.Series([1, 2, None], dtype=kind) for kind in (pl.Int8, pl.Int64, pl.UInt8, pl.UInt64, pl.Int128)),
    *(pl.Series([2**53 + 1, 1, None], dtype=kind) for kind in (pl.Int64, pl.UInt64, pl.Int128, pl.UInt128)),
    *(pl.Series([0.5, 1.0, None], dtype=kind) for kind in (pl.Float32, pl.Float64)),
    pl.Series([2.0**53, 1e300]),
    *(pl.Series(["0.5", "1"]).cast(pl.Decimal(10, scale)) for scale in (1, 2)),
    *(pl.Series(["x", "1"], dtype=kind) for kind in (pl.String, pl.Categorical, pl.Enum(["1", "x"]))),
    pl.Series(["x", "y"], dtype=pl.Enum(["y", "x"])),
    *(pl.Series([True, False]), pl.Series([None, None]), pl.Series([b"x"]), pl.Series([dt.date(2026, 1, 1)])),
    *(pl.Series([TIME]).cast(pl.Datetime(unit)) for unit in ("ms", "us", "ns")),
    *(pl.Series([TIME]).dt.replace_time_zone(zone) for zone in ("UTC", "Europe/Rome")),
    *(pl.Series([dt.timedelta(1)]).cast(pl.Duration(unit)) for unit in ("ms", "us", "ns")),
    pl.Series([dt.time(1)]),
]


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_files_of_other_types_are_exact_or_refused(tmp_path: Path, suffix: str) -> None:
    """What is read is what the parts in memory are; in the nightly run in threes, too."""
    frames = [pl.DataFrame({"x": series, "d": range(len(series))}) for series in TYPES]
    known = [plar.granulate(frame, "d") for frame in frames]
    exact = refused = 0
    for size in (2, 3) if TURNS > 1 else (2,):
        for chosen in combinations(range(len(frames)), size):
            for i, one in enumerate(chosen):
                file = tmp_path / f"t{i}.{suffix}"
                frames[one].write_parquet(file) if suffix == "parquet" else frames[one].write_ipc(file)
            try:
                found = plar.granulate(tmp_path / f"t*.{suffix}", "d")
            except plar.TableError:
                refused += 1
                continue
            whole = reduce(Granules.merge, (known[one] for one in chosen))
            assert found.fingerprint() == whole.fingerprint(), [TYPES[one].dtype for one in chosen]
            exact += 1
    assert exact > 50
    assert refused > exact


@FEWER
@given(st.data())
def test_json_files_of_other_types_are_exact_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("json")
    pool: list[Any] = [None, 0, 1, 2**53 + 1, 2**63, 2**70, 0.5, 1e300, 2.0**53, True, "1", "x"]
    parts = data.draw(st.lists(st.lists(st.sampled_from(pool), min_size=1, max_size=4), min_size=1, max_size=3))
    for i, values in enumerate(parts):
        rows = [{"x": value, "d": j} for j, value in enumerate(values)]
        (folder / f"t{i}.ndjson").write_text("\n".join(map(json.dumps, rows)))
        (folder / f"t{i}.json").write_text(json.dumps(rows))
    whole = [plar.granulate({"x": values, "d": list(range(len(values)))}, "d") for values in parts]
    kinds = {type(v) if not isinstance(v, float) else int for values in parts for v in values if v is not None}
    for suffix in ("ndjson", "json"):
        try:
            found = plar.granulate(folder / f"t*.{suffix}", "d")
        except plar.TableError:
            continue
        assert found.fingerprint() == reduce(Granules.merge, whole).fingerprint()
        assert len(kinds) <= 1
