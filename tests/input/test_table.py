"""Tables of every kind give the partition that plain Python gives; senseless requests are refused."""

from __future__ import annotations

import csv
import datetime as dt
import io
import math
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import plar
from plar.api import read_table
from plar.coding import series as series_coding
from plar.errors import ParameterError, PlarError, TableError, UnknownNameError
from plar.granules.granules import Granules
from plar.input.tables.source import check_output
from plar.input.tables.table import select_columns
from support import oracle
from support.tables import as_table

Rows = list[tuple[Any, ...]]


def rows_of(granules: Granules) -> Counter[tuple[Any, ...]]:
    found: Counter[tuple[Any, ...]] = Counter()
    for i in range(len(granules)):
        row = [d[c[i]] for c, d in zip(granules.columns, granules.dictionaries, strict=True)]
        row += [values[granules.decision_codes[i]] for values in granules.decision_values]
        found[tuple(row)] += int(granules.counts[i])
    return found


def check_dense(granules: Granules) -> None:
    for codes, values in zip(granules.columns, granules.dictionaries, strict=True):
        assert set(codes.tolist()) == set(range(len(values)))
        assert codes.dtype == (np.uint8 if len(values) <= 256 else np.uint16 if len(values) <= 65536 else np.uint32)
    assert set(granules.decision_codes.tolist()) == set(range(granules.n_decisions))
    assert granules.counts.min() > 0
    assert granules.counts.sum() == granules.n_objects
    assert granules.counts.dtype == np.int64
    assert granules.decision_codes.dtype == np.uint32


def partition(columns: Sequence[Sequence[Any]]) -> list[int]:
    """Sizes of the classes of equal rows, by plain Python."""
    return sorted(Counter(zip(*columns, strict=True)).values())


# -- Hypothesis: the same partition, whatever the way in ---------------------------------------------------


def value_strategies() -> dict[str, st.SearchStrategy[Any]]:
    return {
        "text": st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=3),
        "integer": st.integers(-3, 3),
        "wide": st.integers(-(2**63), 2**63 - 1),
        "float": st.sampled_from([0.0, -0.0, 1.5, math.inf, -1e300, 5e-324]),
        "bool": st.booleans(),
        "date": st.dates(),
        "time": st.datetimes(),
        "decimal": st.decimals(-9, 9, places=2),
    }


@st.composite
def typed_columns(draw: st.DrawFn) -> dict[str, list[Any]]:
    n = draw(st.integers(1, 12))
    kinds = draw(st.lists(st.sampled_from(sorted(value_strategies())), min_size=2, max_size=5))
    columns = {}
    for j, kind in enumerate(kinds):
        pool = draw(st.lists(value_strategies()[kind], min_size=1, max_size=3))
        columns[f"c{j}"] = draw(st.lists(st.sampled_from([*pool, None]), min_size=n, max_size=n))
    return columns


@given(typed_columns())
def test_typed_tables(tmp_path_factory: pytest.TempPathFactory, columns: dict[str, list[Any]]) -> None:
    expected = partition([[None if v in oracle.MISSING else v for v in column] for column in columns.values()])
    frame = pl.DataFrame(columns)
    folder = tmp_path_factory.mktemp("typed")
    frame.write_parquet(folder / "t.parquet")
    frame.write_ipc(folder / "t.arrow")
    for data in [
        frame,
        frame.lazy(),
        columns,
        frame.to_arrow(),
        pd.DataFrame({name: pd.Series(column, dtype=object) for name, column in columns.items()}),
        frame.to_pandas(),
        folder / "t.parquet",
        folder / "t.arrow",
    ]:
        granules = as_table(data, -1).granulate()
        assert sorted(granules.counts.tolist()) == expected, type(data)
        check_dense(granules)
    granules = as_table(frame, -1).granulate()
    granules.save(folder / "g.parquet")
    assert sorted(Granules.open(folder / "g.parquet").counts.tolist()) == expected


def as_text(value: str | None) -> str | None:
    return (value or "").strip() or None


@pytest.mark.filterwarnings("ignore:One number is written in several ways")
@given(
    st.integers(1, 3).flatmap(
        lambda k: st.lists(
            st.tuples(
                *[st.sampled_from(["a", " a", "a b", '"', ",", "x\ny", "", "?", "é", "1", "1.0", "%", "'"])] * (k + 1)
            ),
            min_size=1,
            max_size=12,
        )
    )
)
def test_text_tables(tmp_path_factory: pytest.TempPathFactory, rows: Rows) -> None:
    folder = tmp_path_factory.mktemp("text")
    names = [f"c{j}" for j in range(len(rows[0]))]
    expected = Counter(tuple(map(as_text, row)) for row in rows)
    for name, separator in [("t.csv", ","), ("t.tsv", "\t"), ("t.txt", ";")]:
        written = io.StringIO()
        csv.writer(written, delimiter=separator, lineterminator="\n").writerows([names, *rows])
        (folder / name).write_text(written.getvalue(), newline="")
        table = read_table(folder / name, -1, separator=separator)
        granules = table.granulate()
        assert rows_of(granules) == expected
        check_dense(granules)
        missing = Counter(tuple(None if v == "?" else v for v in row) for row in expected.elements())
        assert rows_of(read_table(folder / name, -1, separator=separator, na="?").granulate()) == missing
        kept = table.select(names[:-1])
        assert [tuple(map(as_text, row)) for row in kept.rows()] == [tuple(map(as_text, row)) for row in rows]


@given(st.data())
def test_matrices(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(["u1", "i1", "?", "i2", "u2", "i4", "i8", "u8", "f4", "f8", "U2", "O", "M8[s]"]))
    n, k = data.draw(st.integers(1, 12)), data.draw(st.integers(2, 4))
    pools: dict[str, list[Any]] = {
        "?": [True, False],
        "f4": [0.0, -0.0, math.nan, 1.5],
        "f8": [0.0, -0.0, math.nan, 1e300],
        "U2": ["a", "b ", ""],
        "O": [1, "1", None, 2.5, math.nan, (1, 2)],
        "M8[s]": [np.datetime64("2020-01-01"), np.datetime64("NaT", "s"), np.datetime64("1950-01-01")],
    }
    if dtype in pools:
        pool = pools[dtype]
    else:
        info = np.iinfo(dtype)
        pool = [info.min, info.max, 0, 1, info.max // 2]
    cells = data.draw(st.lists(st.sampled_from(range(len(pool))), min_size=n * k, max_size=n * k))
    matrix = np.empty((n, k), dtype=dtype)
    for place, cell in enumerate(cells):
        matrix[place // k, place % k] = pool[cell]
    if data.draw(st.booleans()):
        matrix = np.asfortranarray(matrix)

    def key(value: Any) -> Any:
        return None if value is None or value != value else value

    expected = partition([[key(v) for v in column] for column in zip(*matrix.tolist(), strict=True)])
    if dtype == "M8[s]":
        expected = partition([[str(v) for v in column] for column in matrix.T])
    granules = as_table(matrix, -1).granulate()
    assert granules.conditions == tuple(f"x{j}" for j in range(k - 1))
    assert sorted(granules.counts.tolist()) == expected
    check_dense(granules)


def test_many_byte_columns() -> None:
    rng = np.random.default_rng(5)
    for turned in (False, True):
        matrix = rng.integers(0, 200, (70, 600)).astype(np.uint8)
        matrix = np.asfortranarray(matrix) if turned else matrix
        matrix[35:] = matrix[:35]
        matrix[:, 3], matrix[:, 4] = matrix[:, 3] % 5, matrix[:, 4] % 5 * 50
        granules = as_table(matrix, 3, drop=[0, 599]).granulate()
        assert granules.counts.tolist() == [2] * 35
        check_dense(granules)
        for name, codes, values in zip(granules.conditions, granules.columns, granules.dictionaries, strict=True):
            assert np.array_equal(np.array(values)[codes], matrix[:35, int(name[1:])])


def test_strings_that_share_a_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    collided = np.zeros(4000, np.uint32), np.zeros(1, np.uint32)
    monkeypatch.setattr(series_coding, "factorized", lambda keys: collided)
    series = pl.Series(["b", None, "a", "b"] * 1000)
    codes, values = series_coding.encode_strings(series)
    assert [values[code] for code in codes] == series.to_list()
    assert len(values) == 3


def test_columns_of_many_values() -> None:
    n = 70_000
    frame = pl.DataFrame(
        {"a": range(n), "b": [i * 2**33 for i in range(n)], "s": [str(i) for i in range(n)], "d": [0] * n}
    )
    for data in (frame, frame.to_pandas(), frame.to_dict(as_series=False)):
        granules = as_table(data, "d").granulate()
        assert granules.cardinalities == (n, n, n)
        check_dense(granules)
    check_dense(as_table(frame["a", "b", "d"].to_numpy(), -1).granulate())


# -- kinds -------------------------------------------------------------------------------------------------

FRAME = pl.DataFrame({"b": [1, 1, 2], "a": ["x", "x", "y"], "d": [True, True, False]})


def test_every_kind_of_column() -> None:
    values: dict[str, pl.Series] = {
        "cat": pl.Series(["x", "y", None], dtype=pl.Categorical),
        "enum": pl.Series(["x", "y", None], dtype=pl.Enum(["y", "x", "z"])),
        "binary": pl.Series([b"x", b"y", None]),
        "duration": pl.Series([dt.timedelta(1), dt.timedelta(2), None]),
        "clock": pl.Series([dt.time(1), dt.time(2), None]),
        "ns": pl.Series([1, 2, None], dtype=pl.Int64).cast(pl.Datetime("ns")),
        "decimal": pl.Series([Decimal("1.10"), Decimal("2.20"), None]),
        "huge": pl.Series([2**100, -(2**100), None], dtype=pl.Int128),
        "f32": pl.Series([0.1, float("nan"), None], dtype=pl.Float32),
        "nothing": pl.Series([None, None, None]),
        "bool": pl.Series([True, False, None]),
    }
    classes = {"f32": 2, "nothing": 1}
    for name, series in values.items():
        frame = pl.DataFrame({name: pl.concat([series, series]), "d": [0] * 6})
        granules = as_table(frame, "d").granulate()
        assert len(granules) == classes.get(name, 3), name
        assert granules.n_missing[name] == {"f32": 4, "nothing": 6}.get(name, 2)
        check_dense(granules)
    everything = pl.DataFrame({**values, "d": [0, 0, 0]})
    assert len(as_table(everything, "d").granulate()) == 3
    for nested in ([[1], [2]], [{"k": 1}, {"k": 2}]):
        with pytest.raises(TableError, match=r"Column 'l' holds (List|Struct).*drop it"):
            as_table(pl.DataFrame({"l": nested, "d": [0, 1]}), "d").granulate()
    objects = pl.DataFrame({"o": pl.Series([1, "1", 1, None], dtype=pl.Object), "d": [0, 0, 0, 0]})
    assert rows_of(as_table(objects, "d").granulate()) == Counter({(1, 0): 2, ("1", 0): 1, (None, 0): 1})
    with pytest.raises(TableError, match=r"Cannot read the table: .*Check the query"):
        as_table(pl.LazyFrame({"a": ["x"], "d": [1]}).with_columns(pl.col("a").cast(int)), "d").granulate()


def test_pandas_oddities() -> None:
    frame = pd.DataFrame({"m": [1, "1", 1.0, None, (1, 2)], 7: pd.Categorical(["a", "b", "a", None, "a"]), "d": 0})
    granules = as_table(frame, "d").granulate()
    assert granules.conditions == ("m", "7")
    assert rows_of(granules) == Counter({(1, "a", 0): 2, ("1", "b", 0): 1, (None, None, 0): 1, ((1, 2), "a", 0): 1})
    assert as_table(frame, 2).decision == ("d",)
    with pytest.raises(TableError, match=r"Column names appear twice in the DataFrame: '7'"):
        as_table(pd.DataFrame([[1, 2, 3]], columns=[7, "7", "d"]), "d")
    with pytest.raises(TableError, match=r"Column 'l' holds values that cannot be compared"):
        as_table(pd.DataFrame({"l": [[1], [2]], "d": [0, 1]}), "d").granulate()
    nullable = pd.DataFrame({"i": pd.array([1, None, 1], dtype="Int64"), "d": [0, 1, 0]})
    assert rows_of(as_table(nullable, "d").granulate()) == Counter({(1, 0): 2, (None, 1): 1})


class Stream:
    """Something that knows the Arrow stream protocol, and nothing else."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


def test_select_keeps_kind_values_and_order() -> None:
    names = ["a", "b"]
    assert as_table(FRAME, "d").select(names).equals(FRAME)
    assert as_table(FRAME, "d").select(["a"]).columns == ["a", "d"]
    assert isinstance(as_table(FRAME.lazy(), "d").select(names), pl.LazyFrame)
    pandas = as_table(FRAME.to_pandas(), "d").select([-2])
    assert isinstance(pandas, pd.DataFrame)
    assert list(pandas.columns) == ["a", "d"]
    arrow = as_table(FRAME.to_arrow(), "d").select(["b"])
    assert isinstance(arrow, pa.Table)
    assert arrow.column_names == ["b", "d"]
    stream = as_table(Stream(FRAME.to_arrow()), "d")
    assert stream.granulate().n_objects == 3
    assert stream.select(["b"]).columns == ["b", "d"]
    matrix = np.arange(6).reshape(2, 3)
    assert as_table(matrix, 0).select(["x2"]).tolist() == [[2, 0], [5, 3]]
    assert as_table(matrix, y=[0, 1]).select(["x2"]).tolist() == [[2], [5]]
    assert as_table({"a": [1], "d": [2], "c": [3]}, "d").select(["c"]) == {"c": [3], "d": [2]}
    assert select_columns(FRAME, ["a"], ["gone"]).columns == ["a"]
    assert select_columns(as_table(FRAME, "d"), ["a"]).columns == ["a", "d"]
    with pytest.raises(UnknownNameError, match="Unknown column 'q'"):
        select_columns(FRAME, ["q"])


@pytest.mark.parametrize("suffix", ["csv", "arff", "csv.gz", "parquet", "arrow", "ndjson", "json"])
def test_nothing_selected_of_a_file(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t.{suffix}"
    frame = pl.DataFrame({"a": [1, 2], "b": [3, 4]})
    match suffix:
        case "arff":
            path.write_text("@relation r\n@attribute a numeric\n@attribute b numeric\n@data\n1,3\n2,4\n")
        case "csv.gz":
            frame.write_csv(path, compression="gzip")
        case "arrow":
            frame.write_ipc(path)
        case _:
            getattr(frame, f"write_{suffix}")(path)
    found = plar.reduce({"a": [1, 2], "b": [3, 4], "d": [0, 0]}, "d")
    assert found.attributes == ()
    assert found.transform(path).equals(pl.DataFrame())
    table = as_table(path, y=[0, 0])
    for output in ("o.csv", "o.ndjson", "o.parquet", "o.arrow", "o.tsv.gz"):
        table.sink([], tmp_path / output)
    assert (tmp_path / "o.csv").read_bytes() == b"\n"
    assert pl.read_parquet(tmp_path / "o.parquet").width == 0


def test_labels_beside_the_data(tmp_path: Path) -> None:
    matrix, labels = np.array([[1, 2], [1, 2], [3, 4]]), ["u", "u", "v"]
    expected = Counter({(1, 2, "u"): 2, (3, 4, "v"): 1})
    frame = pl.DataFrame(matrix, schema=["p", "q"])
    frame.write_parquet(tmp_path / "t.parquet")
    for data in (matrix, frame, frame.lazy(), frame.to_pandas(), frame.to_arrow(), tmp_path / "t.parquet"):
        for y in (
            labels,
            np.array(labels),
            pd.Series(labels),
            pl.Series(labels),
            pa.array(labels),
            tuple(labels),
        ):
            table = as_table(data, y=y)
            assert table.decision == ("y",)
            assert rows_of(table.granulate()) == expected
        with pytest.raises(TableError, match="y has 2 labels for 3 rows"):
            as_table(data, y=[0, 1]).granulate()
    (tmp_path / "t.csv").write_text("p,q\n1,2\n\n1,2\n3,4\n\n")
    assert rows_of(as_table(tmp_path / "t.csv", y=labels).granulate()) == Counter(
        {("1", "2", "u"): 2, ("3", "4", "v"): 1}
    )
    assert as_table(matrix, y=pd.Series(labels, name="kind")).decision == ("kind",)
    assert as_table(frame, y=pl.Series("p", labels)).decision == ("p_",)
    refused: list[tuple[dict[str, Any], str | None]] = [
        ({"y": [[1], [2], [3]]}, None),
        ({"y": np.ones((3, 1))}, "one dimension"),
        ({"y": "x0"}, "pass decision="),
        ({"y": labels, "decision": 0}, "Both decision and y"),
        ({}, "No decision is given"),
    ]
    for options, message in refused:
        with pytest.raises(TableError, match=message):
            as_table(matrix, **options).granulate()


@pytest.mark.parametrize("data", [pd.DataFrame(), pl.DataFrame(), {}, np.empty((0, 0)), pa.table({})], ids=type)
def test_tables_without_columns(data: Any) -> None:
    asked: list[dict[str, Any]] = [{"decision": "d"}, {"decision": 0}, {"decision": ["d", "e"]}, {"y": []}, {}]
    for options in asked:
        with pytest.raises(TableError, match=r"^The table has no columns\."):
            as_table(data, **options)


def test_no_decision_names_the_columns() -> None:
    with pytest.raises(TableError, match=r"No decision is given\. Pass decision=, .* Columns: p, q\.$"):
        as_table({"p": [1], "q": [2]})
    wide = pl.DataFrame({f"c{j}": [j] for j in range(30)})
    with pytest.raises(TableError, match=r" Columns: c0, c1, .*, c19, … \(30 in all\)\.$"):
        as_table(wide)


@pytest.mark.parametrize("function", [plar.significance, plar.theta])
def test_a_decision_that_was_taken_as_attributes(function: Any) -> None:
    expected = r"^No decision is given; 'd' was taken as attributes=\. If it is the decision, pass decision='d'\.$"
    with pytest.raises(TableError, match=expected):
        function(FRAME, "d")
    with pytest.raises(TableError, match=r"^No decision is given\. Pass decision="):
        function(FRAME, ["a"])


def test_columns_labelled_by_tuples() -> None:
    columns = pd.MultiIndex.from_tuples([("a", "b"), ("a", 1), ("w", "e"), ("d", "e")])
    frame = pd.DataFrame([[0, 0, 1, 0], [0, 1, 1, 1], [1, 1, 2, 0], [1, 1, 1, 0]], columns=columns)
    first, second, weights, decision = map(str, columns)
    for data in (frame, {label: frame[label].tolist() for label in columns}):
        for label in (("d", "e"), [("d", "e")], decision):
            table = as_table(data, label, weights=("w", "e"), drop=("a", 1))
            assert (table.conditions, table.decision, table.weights) == ((first,), (decision,), weights)
        assert as_table(data, ("d", "e"), conditions=[("a", 1), ("a", "b")]).conditions == (second, first)
        assert as_table(data, [("d", "e"), ("w", "e")]).decision == (decision, weights)
        assert as_table(data, (-1, decision.replace("d", "w"))).decision == (decision, weights)  # a list, as before
        cut = plar.reduce(data, ("d", "e"), bins={("a", "b"): [0.5]}, drop=[("w", "e")])
        assert set(cut.cuts) == {first}
        assert weights in plar.reduce(data, ("d", "e"), include=("w", "e")).attributes
        proven = plar.reduce(data, ("d", "e"), search="smallest", exclude=("w", "e"), costs={("a", 1): 3})
        assert proven.attributes == (first, second)
        assert proven.proof is not None
        assert proven.proof.cost == 4
        assert all(weights not in one.attributes for one in plar.reducts(data, ("d", "e"), exclude=("w", "e")))
        assert plar.theta(data, ("a", 1), decision=("d", "e")) == plar.theta(data, second, decision=decision)
        assert set(plar.significance(data, ("a", 1), decision=("d", "e"))) == {first, second, weights}
        kept = as_table(data, ("d", "e")).select(("a", 1))
        assert list(kept) == [("a", 1), ("d", "e")]


def test_what_is_no_table() -> None:
    for data, message in [
        ([[1, 2], [3, 4]], "Cannot take list as a table"),
        (np.arange(3), r"shape \(3,\)"),
        (np.ma.masked_array(np.ones((2, 2))), "masked"),
        (pd.Series([1]), "Cannot take Series"),
        (pl.Series([1]), "Cannot take Series"),
        ({"a": [1], "d": [1, 2]}, "differ in length"),
        (pa.table([[1], [2], [3]], names=["a", "a", "d"]), "Cannot take Table"),
        (3, "Cannot take int"),
    ]:
        with pytest.raises(TableError, match=message):
            as_table(data, -1)


# -- roles -------------------------------------------------------------------------------------------------


def test_roles_by_name_and_position() -> None:
    table = as_table(FRAME, -1, conditions=[1, "b"])
    assert (table.conditions, table.decision) == (("a", "b"), ("d",))
    assert as_table(FRAME, ["d", 0]).conditions == ("a",)
    assert as_table(FRAME, int(np.int64(2)), drop="a").conditions == ("b",)
    assert len(as_table(FRAME, ["a", "d"]).granulate().decision_values) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decision": "dd"}, r"Unknown decision 'dd'\. Did you mean 'd'\?"),
        ({"decision": 3}, "Unknown decision 3"),
        ({"decision": True}, "Unknown decision True"),
        ({"decision": 1.5}, "neither a name nor a position"),
        ({"decision": []}, "list of decisions is empty"),
        ({"decision": ["d", -1]}, "'d' is given twice"),
        ({"decision": "d", "conditions": ["q"]}, "Unknown column 'q'"),
        ({"decision": "d", "conditions": ["a", "a"]}, "'a' is given twice"),
        ({"decision": "d", "conditions": ["a", "d"]}, "'d' is both a column to choose from and the decision"),
        ({"decision": "d", "conditions": []}, "No column is left"),
        ({"decision": "d", "drop": ["a", "b"]}, "No column is left"),
        ({"decision": "d", "drop": "d"}, "'d' is both the decision and to be dropped"),
        ({"decision": "d", "drop": "z"}, "Unknown column to drop 'z'"),
        ({"decision": "d", "weights": "d"}, "both the decision and the weights"),
        ({"decision": "d", "weights": "b", "conditions": ["b"]}, "both a column to choose from and the weights"),
        ({"decision": "d", "weights": "w"}, "Unknown weights column 'w'"),
        ({"decision": "d", "missing": "maybe"}, "'missing' parameter must be one of: value, drop, error"),
        ({"decision": "d", "na": [True]}, "Got True"),
    ],
)
def test_senseless_requests(options: dict[str, Any], message: str) -> None:
    with pytest.raises(PlarError, match=message) as caught:
        as_table(FRAME, **options)
    assert "\n" not in str(caught.value)


def test_a_table_is_taken_as_it_is() -> None:
    table = as_table(FRAME, "d", missing="drop", na="?")
    assert as_table(table) is table
    assert as_table(table, -1, conditions=["b", "a"], missing="drop", na=["?"]) is table
    others: list[dict[str, Any]] = [
        {"decision": "a"},
        {"y": [1, 2, 3]},
        {"conditions": ["a"]},
        {"missing": "error"},
        {"weights": "b"},
    ]
    for options in others:
        with pytest.raises(TableError, match="was made with another"):
            as_table(table, **options)


# -- missing values and weights ----------------------------------------------------------------------------


def test_missing_values(tmp_path: Path) -> None:
    text = "a,b,d\n1,?,x\n, x ,x\n NA,x,x\n1,x,x\n"
    (tmp_path / "t.csv").write_text(text)
    options: dict[str, Any] = {"decision": "d", "na": ("?", "NA ")}
    typed = pl.DataFrame({"a": ["1", None, "NA", "1"], "b": ["?", "x", "x", "x"], "d": ["x"] * 4})
    for data in (
        tmp_path / "t.csv",
        typed,
        typed.to_pandas(),
        typed.to_numpy(),
        typed.to_dict(as_series=False),
    ):
        chosen = {**options, "decision": -1}
        value = as_table(data, **chosen).granulate()
        assert rows_of(value) == Counter({("1", None, "x"): 1, (None, "x", "x"): 2, ("1", "x", "x"): 1})
        assert sorted(value.n_missing.values()) == [1, 2]
        dropped = as_table(data, missing="drop", **chosen).granulate()
        assert rows_of(dropped) == Counter({("1", "x", "x"): 1})
        check_dense(dropped)
        with pytest.raises(TableError, match=r"Missing values in '(a|x0)' \(2\), '(b|x1)' \(1\)\. Pass missing="):
            as_table(data, missing="error", **chosen).granulate()
    with pytest.raises(TableError, match="No row is left"):
        as_table({"a": [None], "d": [1]}, "d", missing="drop").granulate()
    assert as_table({"a": [1], "u": [None], "d": [1]}, "d", drop="u", missing="error").granulate().n_objects == 1
    with pytest.raises(TableError, match=r"Missing values in 'd' \(1\)"):
        as_table({"a": [1, 1], "d": [1, None]}, "d", missing="error").granulate()
    with pytest.raises(TableError, match="no rows"):
        as_table(FRAME.clear(), "d").granulate()


def test_weights(tmp_path: Path) -> None:
    columns = {"a": ["x", "y", "x", "z"], "w": [2, 1, 3, 0], "d": [0, 1, 0, 1]}
    frame = pl.DataFrame(columns)
    frame.write_csv(tmp_path / "t.csv")
    for data in (
        frame,
        frame.to_pandas(),
        columns,
        frame.with_columns(pl.col("w").cast(float)),
        frame.to_arrow(),
    ):
        granules = as_table(data, "d", weights="w").granulate()
        assert granules.conditions == ("a",)
        assert rows_of(granules) == Counter({("x", 0): 5, ("y", 1): 1})
        check_dense(granules)
    text = as_table(tmp_path / "t.csv", "d", weights="w").granulate()
    assert rows_of(text) == Counter({("x", "0"): 5, ("y", "1"): 1})
    wide = pl.DataFrame({**{f"c{j}": [1, 2] for j in range(250)}, "w": [2**36, 1], "d": [0, 0]})
    assert as_table(wide, "d", weights="w").granulate().n_objects == 2**36 + 1


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, -3], "row 2 is -3"),
        ([1, 1.5], r"row 2 is 1\.5"),
        ([None, 1], "row 1 is None"),
        ([1.0, math.nan], "row 2 is (nan|None)"),
        ([1.0, math.inf], "row 2 is inf"),
        (["1", "many"], "row 2 is 'many'"),
        ([2**40, 1], "above the limit 1099511627776"),
        ([0, 0], "All weights are 0"),
        ([dt.date(2020, 1, 1)] * 2, "eights are whole numbers|row 1 is|weights 'w' are of type Date"),
    ],
)
def test_bad_weights(tmp_path: Path, weights: list[Any], message: str) -> None:
    frame = pl.DataFrame({"a": [1, 2], "w": weights, "d": [0, 1]}, strict=False)
    for data in (frame, frame.to_dict(as_series=False), frame.to_pandas()):
        with pytest.raises(TableError, match=message):
            as_table(data, "d", weights="w").granulate()
    frame.write_csv(tmp_path / "t.csv")
    message = message.replace("is -3", "is '-3'").replace(r"is 1\.5", r"is '1\.5'").replace("is inf", "is 'inf'")
    message = message.replace("is (nan|None)", "is 'NaN'").replace("row 1 is|", "line 2, is '2020|")
    message = message.replace("row 1 is", "line 2, is").replace("row 2 is", "line 3, is")
    with pytest.raises(TableError, match=message):
        as_table(tmp_path / "t.csv", "d", weights="w").granulate()


def test_bad_weights_of_text_have_their_line(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,w,d\n1,2,2\n\n\n2,x,3\n")
    with pytest.raises(TableError, match=r"t\.csv', line 5, is 'x'"):
        as_table(path, "d", weights="w").granulate()
    with pytest.raises(TableError, match=r"t\.csv', line 5, is 'x'"):
        as_table(path, y=[0, 1], weights="w").granulate()
    arrays: list[Any] = [np.arange(1000), pd.Series([1, 2]), [1, 2]]
    for weights in arrays:
        with pytest.raises(TableError, match=rf"The weights are a {type(weights).__name__}\. Pass the name") as caught:
            as_table(path, "d", weights=weights)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", [">i2", ">i4", ">i8", ">u4", ">f4", ">f8", ">M8[us]", ">m8[s]"])
def test_big_endian_arrays(kind: str) -> None:
    values = np.array([0, 256, 512, 1, 2], np.int64).astype(kind)
    ones = np.ones(5)
    for table in (
        as_table(np.arange(5)[:, None], y=values),
        as_table({"a": values, "d": ones}, "d"),
        as_table(np.column_stack([values, values]), -1),
        as_table(pd.DataFrame({"a": values, "d": ones}), "d"),
        as_table(np.arange(5)[:, None], y=values[::-1]),
    ):
        granules = table.granulate()
        assert len(granules) == 5
        check_dense(granules)


def test_na_of_enumerations() -> None:
    frame = pl.DataFrame({"a": ["x", "y", "?"], "d": ["p", "q", "q"]}, schema=dict.fromkeys("ad", pl.Enum([*"xy?pq"])))
    assert as_table(frame, "d", na="y", missing="drop").granulate().n_objects == 2
    assert rows_of(as_table(frame, "d", na=("y", "?")).granulate()) == Counter({("x", "p"): 1, (None, "q"): 2})


def test_whole_number_labels_win_over_positions() -> None:
    frame = pd.DataFrame({2019: [1, 2], 2020: [1, 1], 2021: [0, 1]})
    for data in (frame, {label: frame[label].to_list() for label in frame}):
        assert as_table(data, 2021).decision == ("2021",)
        assert as_table(data, -1, conditions=[*np.array([2020, 0])]).conditions == ("2020", "2019")
        assert as_table(data, 2021, drop=2019).conditions == ("2020",)
        assert as_table(data, 2021, weights=2020).weights == "2020"
    assert as_table(pd.DataFrame({1: [1], 0: [2]}), 0).decision == ("0",)


@pytest.mark.parametrize(
    "labels", [np.array([0, 1, 0, 1]), [0, 1, 0, 1], pd.Series([*"abab"]), pl.Series([0, 1, 1, 0]), ["p", "q", "p"]]
)
def test_labels_given_as_decision(labels: Any) -> None:
    with pytest.raises(TableError, match=r"pass it as y=") as caught:
        as_table(np.zeros((4, 2)), labels)
    assert "\n" not in str(caught.value)


def test_what_is_no_table_or_label() -> None:
    with pytest.raises(TableError, match="y must have one dimension"):
        as_table({"a": [1, 2]}, y=pl.DataFrame({"b": [1, 2]}))
    with pytest.raises(TableError, match="Column 'a' of the mapping is one int"):
        as_table({"a": 1, "d": 2}, "d")
    for na in (True, ["?", None], [b"?"], [("?", 1)], np.True_):
        with pytest.raises(ParameterError, match=r"na= takes texts and numbers that mean missing.* Got "):
            as_table({"a": [1], "d": [2]}, "d", na=na)
    for odd in (1.5, None, [1]):
        with pytest.raises(TableError, match="neither a name nor a position"):
            as_table({"a": [1], "d": [2]}, "d", conditions=[odd])


def test_tables_show_on_one_line(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b,d\n1,2,3\n")
    shown = repr(as_table(tmp_path / "t.csv", "d"))
    assert shown == f"<DecisionTable: path {str(tmp_path / 't.csv')!r}, 3 columns, 2 conditions, decision 'd'>"
    assert repr(as_table(np.eye(3), 0)) == "<DecisionTable: numpy, 3 columns, 2 conditions, decision 'x0'>"


# -- writing -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["r.csv", "r.tsv", "r.csv.gz", "r.csv.zst", "r.parquet", "r.arrow", "r.feather", "r.ndjson"]
)
def test_sink(tmp_path: Path, name: str) -> None:
    FRAME.write_csv(tmp_path / "in.csv")
    typed = pl.DataFrame({"a": ["x", "x", "y"], "d": [True, True, False]})
    for data in (
        tmp_path / "in.csv",
        FRAME,
        FRAME.lazy(),
        FRAME.to_pandas(),
        FRAME.to_arrow(),
        FRAME.to_dict(as_series=False),
    ):
        table = as_table(data, "d")
        table.sink(["a"], tmp_path / name)
        again = read_table(tmp_path / name, "d").select(["a"])
        expected = typed.cast(pl.String) if again.schema["d"] == pl.String else typed
        assert again.equals(expected)
    assert {p.name for p in tmp_path.iterdir()} == {"in.csv", name}
    as_table(np.array([[1, "x"], [2, "y"]], dtype=object), -1).sink(["x0"], tmp_path / name)
    assert read_table(tmp_path / name, -1).granulate().n_objects == 2


def test_sink_refuses(tmp_path: Path) -> None:
    FRAME.write_csv(tmp_path / "in.csv")
    table = read_table(tmp_path / "in.csv", "d")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "link.csv").symlink_to(tmp_path / "in.csv")
    for path, message in [
        (tmp_path / "in.csv", "is the input"),
        (tmp_path / "link.csv", "is the input"),
        (tmp_path / "r.xlsx", "Unknown output format"),
        (tmp_path / "r.parquet.gz", "Unknown output format"),
        (tmp_path / "folder.csv", "is a directory"),
        (tmp_path / "none" / "r.csv", "there is no folder"),
    ]:
        with pytest.raises(TableError, match=message):
            table.sink(["a"], path)
        with pytest.raises(TableError, match=message):
            check_output(path, [tmp_path / "in.csv"])
    (tmp_path / "bad.csv").write_text("a,b,d\n1,2,3\n1,2\n")
    with pytest.raises(TableError, match="line 3"):
        read_table(tmp_path / "bad.csv", "d").sink(["a"], tmp_path / "r.csv")
    assert not (tmp_path / "r.csv").exists()


@pytest.mark.parametrize("name", ["r.parquet", "r.csv", "r.arrow", "r.ndjson.gz", "granules.parquet"])
def test_full_disk(tmp_path: Path, name: str) -> None:
    # files of this process may not grow above 8 KiB, which fails as a full disk does
    code = (
        "import resource, sys\n"
        "import numpy as np, polars as pl\n"
        "from plar.options import ReadOptions\nfrom plar.input.tables import open_table\n"
        "table = open_table(pl.DataFrame({'a': np.random.default_rng(0).random(20000), 'd': 1}), ReadOptions('d'))\n"
        "table.granulate().fingerprint()  # compiled, and cached, before files are limited\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))\n"
        "try:\n"
        "    table.granulate().save(sys.argv[1]) if 'granules' in sys.argv[1] else table.sink(['a'], sys.argv[1])\n"
        "except OSError as error:\n"
        "    assert error.filename == sys.argv[1] and 'Cannot write (File too large)' in str(error), error\n"
        "else:\n"
        "    sys.exit('written')\n"
    )
    pytest.importorskip("resource", reason="limits of a process are POSIX's")
    subprocess.run([sys.executable, "-c", code, str(tmp_path / name)], check=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_sink_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(TableError, match="permission denied"):
        as_table(FRAME, "d").sink(["a"], tmp_path / "r.csv")


def test_arrays_need_no_polars() -> None:
    code = (
        "import sys; sys.modules['polars'] = None\n"
        "import numpy as np, plar.granules.granules, plar.coding.codes\n"
        "from plar.options import ReadOptions\nfrom plar.input.tables import open_table\n"
        "assert open_table(np.eye(3), ReadOptions(-1)).granulate().n_objects == 3\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
