"""What means missing: the usual spellings and numbers given by na=, in every kind of input."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import plar
from support import oracle
from support.environment import TURNS
from support.every_input import Columns, json_files, rows_of, texts, typed

pd = pytest.importorskip("pandas")
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


@settings(max_examples=20 * TURNS, suppress_health_check=list(HealthCheck))
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
