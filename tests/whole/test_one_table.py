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
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import plar
from plar.granules.granules import Granules
from support import oracle
from support.environment import TURNS, nightly
from support.every_engine import ASKED, ENGINES

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


# -- what means missing ------------------------------------------------------------------------------------

#: -999 as people give it, and as text files spell it
GIVEN: list[Any] = [
    *(-999, -999.0, "-999", "-999.0", "-9.99e2", [-999, "?"], Decimal("-999.00"), np.int16(-999), np.float32(-999)),
]
SPELLED = ["-999", "-999.0", "-999.00", "-9.99e2", "-0999"]
#: a column of numbers in which -999 occurs five times, and its decision
NUMBERS = [-999, 1, -999, 2, -999, 0, -999, 3, -999, -99]
DECISIONS = list("ababbababa")


def numbers_in_memory(n: int) -> Iterator[tuple[str, Any]]:
    """The column of numbers, n times, in every type that has them."""
    d = DECISIONS * n
    for kind in (pl.Int16, pl.Int32, pl.Int64, pl.Int128, pl.Float32, pl.Float64, pl.Decimal(9, 2)):
        frame = pl.DataFrame({"x": pl.Series(NUMBERS * n).cast(kind), "d": d})
        yield f"polars {kind}", frame
        if kind != pl.Int128:  # which Arrow does not have
            yield f"arrow {kind}", frame.to_arrow()
    spelled = pl.DataFrame({"x": [*SPELLED, "1", "2", "0", "3", "-99"] * n, "d": d})
    yield "polars text", spelled
    yield "polars categories", spelled.with_columns(pl.col("x").cast(pl.Categorical))
    yield "pandas text", spelled.to_pandas()
    for name in ("i2", "i4", "i8", "f2", "f4", "f8", "g", ">i4", "O"):
        array = np.array(NUMBERS * n, name)
        yield f"numpy {name}", {"x": array, "d": d}
        yield f"pandas {name}", pd.DataFrame({"x": array if name != "g" else array.astype(object), "d": d})
    for name in ("Int64", "Float32", "Float64", "category", "int64[pyarrow]", "float[pyarrow]"):
        yield f"pandas {name}", pd.DataFrame({"x": pd.Series(NUMBERS * n).astype(name), "d": d})
    yield "matrix", np.array([NUMBERS * n, [ord(letter) for letter in d]]).T
    yield "matrix of floats", np.array([NUMBERS * n, [ord(letter) for letter in d]], np.float32).T
    yield (
        "objects",
        {"x": [-999, 1, -999.0, 2, Decimal("-999"), 0, np.float32(-999), 3, np.int8(-99), "-999"] * n, "d": d},
    )


def numbers_in_files(folder: Path) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """The column of numbers in files of every format, with the options of reading."""
    frame = pl.DataFrame({"x": NUMBERS, "d": DECISIONS})
    frame.write_parquet(folder / "t.parquet")
    frame.with_columns(pl.col("x").cast(pl.Float64)).write_ipc(folder / "t.arrow")
    frame.with_columns(pl.col("x").cast(pl.Float64)).write_ndjson(folder / "t.ndjson")
    (folder / "t.json").write_text(frame.write_json())
    words = [*SPELLED, "1", "2", "0", "3", "-99"]
    lines = [f"{x},{d}" for x, d in zip(words, DECISIONS, strict=True)]
    (folder / "t.csv").write_text("\n".join(["x,d", *lines]))
    (folder / "t.arff").write_text(
        "\n".join(["@relation t", "@attribute x numeric", "@attribute d {a,b}", "@data", *lines])
    )
    (folder / "comma.csv").write_text("\n".join(["x;d", *(line.replace(",", ";").replace(".", ",") for line in lines)]))
    for name in ("t.parquet", "t.arrow", "t.ndjson", "t.json", "t.csv", "t.arff"):
        yield name, folder / name, {}
    yield "comma.csv", folder / "comma.csv", {"decimal": ","}


@pytest.mark.parametrize("na", GIVEN, ids=repr)
@pytest.mark.filterwarnings("ignore:One number is written")
def test_a_number_means_that_number_in_every_table(tmp_path: Path, na: Any) -> None:
    for n in (1, 150):  # more than a thousand rows are coded in another way
        for name, data in numbers_in_memory(n):
            assert set(plar.granulate(data, -1, na=na).n_missing.values()) == {5 * n}, name
    for name, path, options in numbers_in_files(tmp_path):
        assert plar.granulate(path, "d", na=na, **options).n_missing == {"x": 5}, name
        assert plar.reduce(path, "d", na=na, missing="drop", **options).n_objects == 5, name


@pytest.mark.parametrize("na", [-999, ["-999.0", "?"]], ids=repr)
def test_a_number_means_that_number_on_spark(tmp_path: Path, spark: Any, na: Any) -> None:
    from plar.engines import SparkEngine

    engine = SparkEngine(session=spark)
    columns = ["byte", "short", "int", "bigint", "float", "double", "decimal(9,2)", "string"]
    values = [-99 if kind == "byte" else -999 for kind in columns]
    frame = spark.createDataFrame([(-999, "a"), (-999, "b"), (1, "a"), (2, "b")], "x int, d string")
    for kind, value in zip(columns, values, strict=True):
        cast = frame.withColumn("x", (frame.x if value == -999 else frame.x / 10).cast(kind))
        asked = na if value == -999 else -99
        assert plar.granulate(cast, "d", na=asked).n_missing == {"x": 2}, kind
    # rows that are equal are counted before they reach plar: these counts are not -1, 1 or 2 of the table
    assert plar.granulate(frame, "d", na=[1, 2]).n_missing == {"x": 2}
    for name, path, options in numbers_in_files(tmp_path):
        if not name.endswith(".json"):
            assert plar.granulate(path, "d", na=na, engine=engine, **options).n_missing == {"x": 5}, name


NUMERIC = st.integers(-(2**62), 2**62) | st.integers(-1000, 1000)


@FEWER
@given(NUMERIC, st.integers(1, 3), st.sampled_from(["int", "str", "decimals", "exponent", "zeros"]))
@pytest.mark.filterwarnings("ignore:One number is written")
def test_no_other_number_is_missing(
    tmp_path_factory: pytest.TempPathFactory, number: int, step: int, spelled: str
) -> None:
    sign, digits = "-" if number < 0 else "", str(abs(number))
    na: Any = {
        "int": number,
        "str": str(number),
        "decimals": f"{number}.00",
        "exponent": f"{sign}{digits[0]}.{digits[1:]}e{len(digits) - 1}",
        "zeros": f"{sign}00{digits}",
    }[spelled]
    path = tmp_path_factory.mktemp("near") / "t.csv"
    near = [number, number + step, number - step]
    path.write_text("x,d\n" + "".join(f"{x},{d}\n" for x, d in zip([*near, f"{number}.0"], "abab", strict=True)))
    for data in (
        path,
        {"x": [*near, number], "d": list("abab")},
        pl.DataFrame({"x": [*near, number], "d": list("abab")}),
    ):
        assert plar.granulate(data, "d", na=na).n_missing == {"x": 2}
    exact = [x for x in near if int(float(x)) == x]
    if not exact:
        return
    floats = np.array([*exact, *exact], np.float64)
    expected = {"x": 2} if number in exact else {}
    assert plar.granulate({"x": floats, "d": [f"d{i}" for i in range(len(floats))]}, "d", na=na).n_missing == expected


def test_fractions_are_those_of_the_type() -> None:
    for kind in (np.float16, np.float32, np.float64):
        values = np.array([-999.9, -999.9, 0.1, 5], kind)
        for data in ({"x": values}, pd.DataFrame({"x": values}), pl.DataFrame({"x": values}), {"x": list(values)}):
            assert plar.granulate(data, y=[0, 1, 0, 1], na="-999.90").n_missing == {"x": 2}
            assert plar.granulate(data, y=[0, 1, 0, 1], na=-999.95 if kind != np.float16 else 7).n_missing == {}
    decimals = [Decimal("-999.9"), Decimal("-999.90"), Decimal("-999.91")]
    assert plar.granulate({"x": decimals}, y=[0, 1, 0], na=-999.9).n_missing == {"x": 2}
    infinite = [float("inf"), float("-inf"), 1e300]
    assert plar.granulate({"x": infinite}, y=[0, 1, 0], na=float("-inf")).n_missing == {"x": 1}


def test_true_is_no_number_and_weights_are_not_missing(tmp_path: Path) -> None:
    for flags in ([True, False, True], np.array([True, False, True])):
        assert plar.granulate({"x": flags}, y=list("aba"), na=[0, 1]).n_missing == {}
    path = tmp_path / "t.csv"
    path.write_text("x,w,d\n1,1,a\n2,1,b\n1,5,a\n")
    columns = {"x": [1, 2, 1], "w": [1, 1, 5], "d": list("aba")}
    for data in (path, columns, pl.DataFrame(columns), np.array([[1, 1, 0], [2, 1, 4], [1, 5, 0]])):
        for bins in (None, "width:2"):
            granules = plar.granulate(data, -1, weights=1, na=1, bins=bins)
            assert (granules.n_objects, list(granules.n_missing.values())) == (7, [6])


@pytest.mark.parametrize("word", sorted(oracle.MISSING))
def test_the_usual_spellings_are_missing_in_every_table(tmp_path: Path, word: str) -> None:
    columns: Columns = {
        "x": [word, "u", word, "v", "?"],
        "y": ["1", "2", "3", word, "5"],
        "d": [word, "a", "b", "a", "b"],
    }

    def ways() -> Iterator[tuple[str, Any]]:
        yield from ((name, data) for name, data in typed(columns, tmp_path) if "granule" not in name)
        yield from texts(columns, tmp_path)
        yield from json_files(columns, tmp_path)

    for name, data in ways():
        assert list(plar.granulate(data, -1).n_missing.values()) == [2, 1, 1], name
        assert list(plar.granulate(data, -1, na="?").n_missing.values()) == [3, 1, 1], name
        as_text = plar.granulate(data, -1, na=())
        empty_in_text = (
            not word and "Path" in type(data).__name__ and not name.endswith(("json", ".jsonl.gz", "Parquet"))
        )
        assert bool(as_text.n_missing) == (empty_in_text and name != "Arrow"), name
    # pandas is the judge of what is usual
    read = pd.read_csv(tmp_path / "t.csv")
    assert read["x"].isna().sum() == 2
    granules = plar.granulate({"x": columns["x"]}, y=columns["d"])
    assert granules.n_missing == {"x": 2, "y": 1}
    with pytest.warns(plar.PlarWarning, match="1 row without 'y'"):
        assert plar.reduce({"x": columns["x"]}, y=columns["d"]).missing == {"x": 2, "y": 1}


def test_the_usual_spellings_on_spark(tmp_path: Path, spark: Any) -> None:
    from plar.engines import SparkEngine

    words = sorted(oracle.MISSING)
    columns: Columns = {"x": [*words, "u", "?"], "d": [*("ab" * len(words))[: len(words)], "NA", "b"]}
    frame = spark.createDataFrame(rows_of(columns), "x string, d string")
    pl.DataFrame(columns).write_parquet(tmp_path / "t.parquet")
    pl.DataFrame(columns).write_csv(tmp_path / "t.csv", quote_style="always")
    engine = SparkEngine(session=spark)
    for data in (frame, tmp_path / "t.parquet", tmp_path / "t.csv"):
        assert plar.granulate(data, "d", engine=engine).n_missing == {"x": len(words), "d": 1}
        assert plar.granulate(data, "d", na="?", engine=engine).n_missing == {"x": len(words) + 1, "d": 1}
        off = plar.granulate(data, "d", na=(), engine=engine)
        assert off.n_missing == ({"x": 1} if data == tmp_path / "t.csv" else {})


def test_granule_files_keep_texts_that_would_mean_missing(tmp_path: Path) -> None:
    granules = plar.granulate({"x": ["NA", None, "", "u"], "d": [0, 1, 2, 3]}, "d", na=())
    granules.save(tmp_path / "g.parquet")
    for data in (tmp_path / "g.parquet", granules):
        assert plar.reduce(data).missing == {"x": 1}
        assert plar.reduce(data).cardinalities["x"] == 4
