"""One value, one spelling: whatever library or file a value comes from, it compares, is saved and merges alike."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import polars as pl
import pytest

import plar

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
ipc, parquet = pytest.importorskip("pyarrow.ipc"), pytest.importorskip("pyarrow.parquet")

BASE = 1_700_000_000
ZONE = "Europe/Berlin"


def ways(column: Any, folder: Path) -> Iterator[tuple[str, Any]]:
    """A table of one Arrow column and a decision, in everything that can hold it."""
    table = pa.table({"a": column, "d": [str(i % 2) for i in range(len(column))]})
    frame = pl.DataFrame(table)
    yield from {"pyarrow": table, "polars": frame, "lazy": frame.lazy()}.items()
    yield "arrow column", {"a": column, "d": table["d"]}
    yield "polars column", {"a": frame["a"], "d": frame["d"]}
    yield "pandas of Arrow types", table.to_pandas(types_mapper=pd.ArrowDtype)
    parquet.write_table(table, folder / "t.parquet")
    frame.write_parquet(folder / "p.parquet")
    with ipc.new_file(folder / "t.arrow", table.schema) as writer:
        writer.write_table(table)
    yield from ((name, folder / name) for name in ("t.parquet", "p.parquet", "t.arrow"))


def held(column: Any) -> Iterator[tuple[str, Any]]:
    """Those that cannot hold everything: pandas' own types, numpy and Python."""
    decision = [str(i % 2) for i in range(len(column))]
    yield "pandas", pa.table({"a": column, "d": decision}).to_pandas()
    yield "list", {"a": column.to_pylist(), "d": decision}
    if getattr(column.type, "tz", None) is None:
        yield "numpy", {"a": column.to_numpy(zero_copy_only=False), "d": decision}


def same(ways: Iterator[tuple[str, Any]], folder: Path, first: Any = None) -> Any:
    """All have one fingerprint, and so have their files, which merge as they do."""
    for name, data in ways:
        granules = plar.granulate(data, "d")
        first = granules if first is None else first
        assert granules.fingerprint() == first.fingerprint(), (name, granules.dictionaries, first.dictionaries)
        granules.save(folder / "g.parquet")
        stored = plar.granulate(folder / "g.parquet")
        assert stored.fingerprint() == first.fingerprint(), name
        assert len(stored.merge(first)) == len(first), name
    return first


def times(kind: Any, *values: int | None) -> Any:
    return pa.array([*values, values[0], None], kind)


@pytest.mark.parametrize(
    ("column", "all_hold"),
    [
        (times(pa.timestamp("ns"), BASE * 10**9 + 1, BASE * 10**9 + 2, 0), True),
        (times(pa.timestamp("ns", ZONE), BASE * 10**9 + 1, BASE * 10**9 + 2, 0), True),
        (times(pa.timestamp("us"), BASE * 10**6 + 1, BASE * 10**6 + 2, 0), True),
        (times(pa.timestamp("us", ZONE), BASE * 10**6 + 1, BASE * 10**6 + 2, 0), True),
        (times(pa.timestamp("ms"), BASE * 10**3 + 1, BASE * 10**3 + 2), True),
        (times(pa.timestamp("s", "UTC"), BASE, BASE + 1), True),
        (times(pa.timestamp("us"), 2**62, -(2**62), 0), False),
        (times(pa.timestamp("us", "Asia/Tokyo"), 2**62, -(2**62), 0), False),
        (times(pa.duration("ns"), 1, 2, -1), True),
        (times(pa.duration("us"), 1, 2**62, -(2**62)), True),
        (times(pa.duration("s"), 0, 2**42, -(2**42)), True),
        (times(pa.date32(), 1, 2, -1), True),
        (times(pa.date32(), 2**30, -(2**30), 0), False),
        (times(pa.time64("ns"), 1, 2, 0), False),
        (times(pa.time64("us"), 1, 2, 0), True),
        (times(pa.time32("s"), 1, 2, 0), True),
    ],
    ids=lambda given: str(given.type) if hasattr(given, "type") else "",
)
def test_times_are_exact_and_alike(tmp_path: Path, column: Any, all_hold: bool) -> None:
    first = same(ways(column, tmp_path), tmp_path)
    assert len(first.dictionaries[0]) == len(column) - 1
    if all_hold:
        same(held(column), tmp_path, first)


def test_nullable_columns_of_pandas(tmp_path: Path) -> None:
    decision = ["0", "1", "0", "1"]
    kinds: list[tuple[list[Any], list[Any]]] = [
        ([True, False, None, True], ["boolean", object, "bool[pyarrow]"]),
        ([2**53, 2**53 + 1, None, 2**53], ["Int64", object, "int64[pyarrow]"]),
        ([2**63, 2**63 + 1, None, 0], ["UInt64", object, "uint64[pyarrow]"]),
        ([0.5, float("nan"), None, 0.5], ["Float64", object, "float64"]),
        (["x", "y", None, "x"], ["string", object, "string[pyarrow]"]),
    ]
    for values, dtypes in kinds:
        given = [pd.Series(values, dtype=object).astype(dtype) for dtype in dtypes]
        categories = list(dict.fromkeys(v for v in values if v is not None and v == v))
        given.append(pd.Series(pd.Categorical(values, categories=pd.Index(categories, dtype=dtypes[2]))))
        tables = [("mapping", {"a": values, "d": decision}), ("polars", pl.DataFrame({"a": values, "d": decision}))]
        tables += [(str(a.dtype), pd.DataFrame({"a": a, "d": decision})) for a in given]
        tables += [(f"column of {a.dtype}", {"a": a, "d": decision}) for a in given]
        first = same(iter(tables), tmp_path)
        assert len(first.dictionaries[0]) == len(categories) + 1


def test_masked_arrays_are_refused_wherever_they_are() -> None:
    from plar.sklearn import ReductSelector

    masked = np.ma.masked_array([0, 1, 1], [False, True, False])
    matrix = np.ma.masked_array([[0, 1], [1, 0], [1, 1]], [[False, True]] * 3)
    for refused in (
        lambda: plar.reduce({"a": masked, "d": [0, 1, 1]}, "d"),
        lambda: plar.reduce({"a": [0, 1, 1], "d": masked}, "d"),
        lambda: plar.reduce({"a": [0, 1, 1]}, y=masked),
        lambda: plar.reduce(matrix, -1),
        lambda: ReductSelector().fit(matrix, [0, 1, 1]),
        lambda: ReductSelector().fit([[0, 1], [1, 0], [1, 1]], masked),
        lambda: ReductSelector().fit([[0, 1], [1, 0], [1, 1]], [0, 1, 1]).transform(matrix),
    ):
        with pytest.raises(plar.PlarError, match="masked array"):
            refused()


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[1], [2]]),
        pa.array([[1], [2]], pa.list_(pa.int64(), 1)),
        pa.array([{"x": 1}, {"x": 2}]),
        pa.array([[("a", 1)], [("b", 1)]], pa.map_(pa.string(), pa.int64())),
        pa.array([Decimal("1.1"), Decimal("1.2")], pa.decimal256(50, 2)),
        pa.array([(1, 2, 3), (1, 2, 4)], pa.month_day_nano_interval()),
        pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])]),
    ],
    ids=lambda column: str(column.type)[:20],
)
def test_arrow_types_that_do_not_compare_are_refused_in_a_line(column: Any, tmp_path: Path) -> None:
    table = pa.table({"a": column, "d": [0, 1]})
    with ipc.new_file(tmp_path / "t.arrow", table.schema) as writer:
        writer.write_table(table)
    pandas = pd.DataFrame({"a": pd.Series(column, dtype=pd.ArrowDtype(column.type)), "d": [0, 1]})
    for data in (table, {"a": column, "d": [0, 1]}, pandas, tmp_path / "t.arrow"):
        with pytest.raises(plar.TableError) as caught:
            plar.reduce(data, "d")
        assert str(caught.value).isprintable()


def test_extension_types_compare_as_what_they_hold(tmp_path: Path) -> None:
    for kind, storage in [(pa.json_(), pa.array(["1", "2", None])), (pa.bool8(), pa.array([0, 1, None], pa.int8()))]:
        same(ways(pa.ExtensionArray.from_storage(kind, storage), tmp_path), tmp_path)


MIXED: list[list[Any]] = [
    [1, "1", None, 2.5],
    [True, 2, "True", b"x"],
    [Decimal("Infinity"), Decimal("-Infinity"), Decimal("1E+60")],
    [Decimal("1.10"), Decimal("1.1E-30"), Decimal(10) ** 40],
    [float("inf"), 10**400, -1],
    [2**64, -(2**64), 0.5],
    [(1, "a"), (1, "b"), None],
    [1 + 2j, 3, "3"],
    [dt.date(2026, 1, 1), "x", 3],
    [dt.datetime(2026, 1, 1), dt.time(1), dt.timedelta(1), None],
    [dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=9))), dt.datetime.max.replace(tzinfo=dt.UTC)],
    ["a\ud800", "a"],
]


@pytest.mark.parametrize("values", MIXED, ids=str)
def test_files_of_any_values_merge_as_in_memory(tmp_path: Path, values: list[Any]) -> None:
    """Two tables that share some values, as granules in memory and in files, in every combination."""
    parts = [
        plar.granulate({"a": some, "d": [str(i) for i in range(len(some))]}, "d")
        for some in (values, values[1:] + values[:1], values[:1])
    ]
    for i, part in enumerate(parts):
        part.save(tmp_path / f"g{i}.parquet")
    files = [plar.granulate(tmp_path / f"g{i}.parquet") for i in range(len(parts))]
    for part, file in zip(parts, files, strict=True):
        assert file.dictionaries == part.dictionaries or set(file.dictionaries[0]) == set(part.dictionaries[0])
    whole = parts[0].merge(parts[1]).merge(parts[2])
    for merged in (
        files[0].merge(files[1]).merge(files[2]),
        parts[0].merge(files[1]).merge(parts[2]),
        plar.granulate(tmp_path / "g*.parquet"),
    ):
        assert merged.fingerprint() == whole.fingerprint()
        assert len(merged) == len(whole)
        assert set(merged.dictionaries[0]) == set(whole.dictionaries[0])


def test_values_that_no_file_holds_are_refused(tmp_path: Path) -> None:
    class Odd:
        def __repr__(self) -> str:
            return "odd"

    for value in (Odd(), frozenset([1]), ("a", Odd()), UUID(int=1), Enum("Some", "one two").one):  # type: ignore[attr-defined]
        granules = plar.granulate({"a": [value, None], "d": [0, 1]}, "d")
        with pytest.raises(plar.TableError, match=r"Column 'a' holds values of the type \w+, which no file can"):
            granules.save(tmp_path / "g.parquet")
    assert not list(tmp_path.iterdir())


def test_a_time_is_no_text() -> None:
    with pytest.raises(plar.TableError, match="'2026-01-01' as a time and as text"):
        plar.granulate({"a": [dt.date(2026, 1, 1), "2026-01-01"], "d": [0, 1]}, "d")


@pytest.mark.parametrize(
    ("column", "written"),
    [
        (times(pa.duration("ns"), 1, -(10**9)), ["PT0.000000001S", "-PT1S", "PT0.000000001S"]),
        (times(pa.date32(), 2**30, -1), ["2941775-04-07", "1969-12-31", "2941775-04-07"]),
        (pa.array([b"\xff", b"a", b"\xff", None]), ["ff", "61", "ff"]),
        (pa.ExtensionArray.from_storage(pa.json_(), pa.array(["1", "2", "1", None])), ["1", "2", "1"]),
    ],
    ids=lambda given: str(given.type) if hasattr(given, "type") else "",
)
def test_what_is_reduced_can_be_written(tmp_path: Path, column: Any, written: list[str]) -> None:
    parquet.write_table(pa.table({"a": column, "d": ["0", "1", "0", "1"]}), tmp_path / "t.parquet")
    table = plar.read_table(tmp_path / "t.parquet", "d")
    assert plar.reduce(table).attributes == ("a",)
    for name in ("o.csv", "o.tsv", "o.csv.gz", "o.ndjson", "o.parquet", "o.arrow"):
        table.sink(["a"], tmp_path / name)
        again = plar.granulate(tmp_path / name, "d")
        if name in ("o.parquet", "o.arrow"):
            assert again.fingerprint() == plar.granulate(table).fingerprint()
        else:
            assert set(again.dictionaries[0]) == {*written, None}


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
@pytest.mark.parametrize("order", ["C", "F"])
def test_small_integers_whose_first_rows_mislead(dtype: Any, order: Any) -> None:
    # the range of a column is guessed from its first rows
    limits = np.iinfo(dtype)
    matrix = np.random.default_rng(1).integers(limits.min, limits.max + 1, (3_000, 5)).astype(dtype)
    matrix[:200] = np.arange(1000).reshape(200, 5) % 7
    granules = plar.granulate(np.array(matrix, order=order), y=np.arange(3_000))
    for j, values in enumerate(granules.dictionaries):
        assert np.array_equal(np.array(values)[granules.columns[j]], matrix[:, j])
        assert len(set(values)) == len(values)
