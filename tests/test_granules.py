"""The laws of granules: coarsen, refine, merge, save and open say the same about the same objects."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plar.errors import TableError, UnknownNameError
from plar.granules import MAX_OBJECTS, Granules
from plar.table import as_table, open_granules, read_table

NAMES = ["a", "b", "c", "d"]


def rows_of(granules: Granules) -> Counter[tuple[Any, ...]]:
    found: Counter[tuple[Any, ...]] = Counter()
    for i in range(len(granules)):
        row = [d[c[i]] for c, d in zip(granules.columns, granules.dictionaries, strict=True)]
        row += [values[granules.classes[i]] for values in granules.decision_values]
        found[tuple(row)] += int(granules.counts[i])
    assert len(found) == len(granules)
    return found


tables = st.lists(
    st.tuples(*[st.sampled_from([None, 0, 1, "x"])] * 3, st.sampled_from([None, "p", "q"])),
    min_size=1,
    max_size=20,
)


def granulate(rows: list[tuple[Any, ...]], decision: Any = "d") -> Granules:
    columns = dict(zip(NAMES, map(list, zip(*rows, strict=True)), strict=True))
    return as_table(columns, decision).granulate()


@given(tables)
def test_granules_are_the_distinct_rows(rows: list[tuple[Any, ...]]) -> None:
    granules = granulate(rows)
    assert rows_of(granules) == Counter(rows)
    assert granules.n_objects == len(rows)
    lacking = {
        name: sum(v is None for v in column) for name, column in zip(NAMES, zip(*rows, strict=True), strict=True)
    }
    assert granules.n_missing == {name: n for name, n in lacking.items() if n}


@given(tables, st.lists(st.sampled_from("abc"), unique=True))
def test_coarsen_is_granulating_fewer_columns(rows: list[tuple[Any, ...]], kept: list[str]) -> None:
    coarse = granulate(rows).coarsen(kept)
    assert coarse.conditions == tuple(kept)
    expected = Counter(tuple(row["abcd".index(name)] for name in [*kept, "d"]) for row in rows)
    assert rows_of(coarse) == expected
    assert rows_of(coarse.coarsen([])) == Counter((row[3],) for row in rows)


@given(tables, tables)
def test_merge_adds_up(one: list[tuple[Any, ...]], two: list[tuple[Any, ...]]) -> None:
    a, b = granulate(one), granulate(two)
    assert rows_of(a.merge(b)) == Counter(one) + Counter(two)
    assert rows_of(b.merge(a)) == rows_of(a.merge(b))
    assert a.merge(b).n_objects == len(one) + len(two)


@given(tables, st.permutations("abc"), st.integers(0, 3))
def test_refine_undoes_coarsen(rows: list[tuple[Any, ...]], order: list[str], kept: int) -> None:
    granules = granulate(rows)
    coarse = granules.coarsen(order[:kept])
    finer = coarse.refine(order[kept:], granules)
    assert finer.conditions == tuple(order)
    assert rows_of(finer) == rows_of(granules.coarsen(order))
    columns = dict(zip(NAMES, map(list, zip(*rows, strict=True)), strict=True))
    assert rows_of(coarse.refine(order, as_table(columns, "d"))) == rows_of(finer)


@given(tables, st.sampled_from(["d", ["d"], ["c", "d"]]))
def test_save_and_open(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[Any, ...]], decision: Any) -> None:
    path = tmp_path_factory.mktemp("granules") / "g.parquet"
    granules = granulate(rows, decision)
    granules.save(path)
    again = Granules.open(path)
    assert (again.conditions, again.decision, again.n_objects) == (
        granules.conditions,
        granules.decision,
        granules.n_objects,
    )
    assert sorted(again.counts.tolist()) == sorted(granules.counts.tolist())
    assert again.n_missing == granules.n_missing
    assert [p.name for p in path.parent.iterdir()] == ["g.parquet"]


def test_values_survive(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {"s": ["x", None, " y"], "i": [1, 2, 3], "f": [0.5, None, -1e300], "count": [True, False, None]}
    )
    granules = as_table(frame, "count").granulate()
    granules.save(tmp_path / "g.parquet")
    assert rows_of(Granules.open(tmp_path / "g.parquet")) == rows_of(granules)
    assert pl.read_parquet(tmp_path / "g.parquet").columns == ["s", "i", "f", "count", "count_"]
    Granules.open(tmp_path / "g.parquet").save(tmp_path / "g.parquet")
    assert rows_of(Granules.open(tmp_path / "g.parquet")) == rows_of(granules)


def test_nanoseconds_stay_apart(tmp_path: Path) -> None:
    times = pl.Series([1, 2, 2]).cast(pl.Datetime("ns"))
    granules = as_table(pl.DataFrame({"t": times, "d": [0, 0, 0]}), "d").granulate()
    granules.save(tmp_path / "g.parquet")
    assert sorted(Granules.open(tmp_path / "g.parquet").counts.tolist()) == [1, 2]
    assert len(granules.merge(granules)) == 2


def test_what_is_no_granule_file(tmp_path: Path) -> None:
    plain, damaged, text = tmp_path / "t.parquet", tmp_path / "g.parquet", tmp_path / "t.csv"
    pl.DataFrame({"a": [1], "d": [1]}).write_parquet(plain)
    granulate([(1, 2, 3, "p"), (1, 2, 4, "q")]).save(damaged)
    text.write_text("a,d\n1,2\n")
    for path in (plain, text, tmp_path / "none.parquet", tmp_path / "*.parquet", tmp_path):
        assert open_granules(path) is None
        with pytest.raises(TableError, match="holds no granules"):
            Granules.open(path)
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(TableError, match="is damaged"):
        Granules.open(damaged)
    pl.DataFrame({"a": [1]}).write_parquet(damaged, metadata={"plar": '{"version":1,"conditions":["b"]}'})
    with pytest.raises(TableError, match="is damaged"):
        Granules.open(damaged)
    pl.DataFrame({"a": [1]}).write_parquet(damaged, metadata={"plar": "no json"})
    with pytest.raises(TableError, match="is damaged"):
        Granules.open(damaged)
    roles = '{"version":1,"conditions":["a"],"decision":["d"],"count":"n"}'
    pl.DataFrame({"a": [1], "d": [1], "n": [0]}).write_parquet(damaged, metadata={"plar": roles})
    with pytest.raises(TableError, match="counts below 1"):
        Granules.open(damaged)
    with pytest.raises(TableError, match="Cannot write"):
        granulate([(1, 2, 3, "p")]).save(tmp_path / "none" / "g.parquet")
    with pytest.raises(TableError, match="it is a directory"):
        granulate([(1, 2, 3, "p")]).save(tmp_path)


def test_refusals() -> None:
    granules = granulate([(1, 2, 3, "p"), (1, 2, 4, "q")])
    with pytest.raises(UnknownNameError, match="Unknown condition 'e'"):
        granules.coarsen(["e"])
    with pytest.raises(UnknownNameError, match="Unknown condition 3"):
        granules.coarsen([3])
    with pytest.raises(TableError, match=r"different conditions .*\['b', 'c'\]"):
        granules.merge(granules.coarsen(["a"]))
    with pytest.raises(TableError, match="the order differs"):
        granules.merge(granules.coarsen(["b", "a", "c"]))
    with pytest.raises(TableError, match="different decision"):
        granules.merge(as_table({"a": [1], "b": [1], "c": [1], "e": [1]}, "e").granulate())
    with pytest.raises(TableError, match="is not the data"):
        granules.coarsen(["a"]).refine(["b"], granulate([(1, 2, 3, "p"), (2, 2, 4, "q")]))
    with pytest.raises(TableError, match="is not the data"):
        granules.coarsen(["a"]).refine(["b"], granulate([(1, 2, 3, "p")]))
    with pytest.raises(UnknownNameError, match="Unknown condition"):
        granules.coarsen(["a"]).refine(["z"], granules)
    big = as_table({"a": [1], "w": [MAX_OBJECTS], "d": [1]}, "d", weights="w").granulate()
    with pytest.raises(TableError, match="above the limit"):
        big.merge(big)


def test_roles_of_granules() -> None:
    granules = granulate([(1, 2, 3, "p"), (1, 2, 4, "q")])
    assert granules.with_roles() is granules
    assert granules.with_roles("d", ["a", "b", "c"]) is granules
    assert granules.with_roles(-1, ["c", 0]).conditions == ("c", "a")
    refused: list[tuple[Any, Any, str]] = [
        ("a", None, "were made for the decision"),
        ("z", None, "Unknown decision 'z'"),
        (7, None, "were made for the decision"),
        (None, [], "No condition is left"),
        (None, ["a", "a"], "given twice"),
    ]
    for decision, conditions, message in refused:
        with pytest.raises((TableError, UnknownNameError), match=message):
            granules.with_roles(decision, conditions)


def test_one_class_one_row_and_many_granules(tmp_path: Path) -> None:
    one = as_table({"a": [1], "d": [1]}, "d").granulate()
    assert (len(one), one.n_classes, one.cardinalities) == (1, 1, (1,))
    n = 3000
    rng = np.random.default_rng(1)
    matrix = rng.integers(0, 6, (n, 5))
    expected = Counter(map(tuple, matrix.tolist()))
    for data in (matrix, pl.DataFrame(matrix), pl.DataFrame(matrix).to_pandas()):
        assert rows_of(as_table(data, -1).granulate()) == expected
    pl.DataFrame(matrix).write_csv(tmp_path / "t.csv")
    granules = read_table(tmp_path / "t.csv", -1).granulate()
    assert rows_of(granules) == Counter({tuple(map(str, row)): k for row, k in expected.items()})
