"""The laws of granules: coarsen, merge, subtract, save and open say the same about the same objects."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import plar
from plar.api import read_table
from plar.errors import PlarError, TableError, UnknownNameError
from plar.files.find import find_files
from plar.granules.granules import MAX_OBJECTS, Granules, granules_in
from support.tables import as_table

NAMES = ["a", "b", "c", "d"]


def rows_of(granules: Granules) -> Counter[tuple[Any, ...]]:
    found: Counter[tuple[Any, ...]] = Counter()
    for i in range(len(granules)):
        row = [d[c[i]] for c, d in zip(granules.columns, granules.dictionaries, strict=True)]
        row += [values[granules.decision_codes[i]] for values in granules.decision_values]
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


@given(tables, tables, st.randoms(use_true_random=False))
def test_subtract_takes_out_what_was_merged(one: list[tuple[Any, ...]], two: list[tuple[Any, ...]], pick: Any) -> None:
    rest, taken = granulate(one), granulate(two)
    for both in (rest.merge(taken), taken.merge(rest), granulate(pick.sample(one + two, len(one + two)))):
        left = both.subtract(granulate(pick.sample(two, len(two))))
        assert rows_of(left) == Counter(one)
        assert left.fingerprint() == rest.fingerprint()
        assert (left.n_objects, left.n_rows, left.n_missing) == (rest.n_objects, rest.n_rows, rest.n_missing)


@given(tables, tables)
def test_subtract_refuses_more_than_there_is(one: list[tuple[Any, ...]], two: list[tuple[Any, ...]]) -> None:
    there, taken = Counter(one), Counter(two)
    if taken < there:
        assert rows_of(granulate(one).subtract(granulate(two))) == there - taken
        return
    with pytest.raises(TableError, match="No row is left" if taken == there else "cannot be taken out"):
        granulate(one).subtract(granulate(two))


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
    refused: list[tuple[str | Path, str]] = [
        (plain, "holds no granules"),
        (text, "holds no granules"),
        (tmp_path / "none.parquet", "No such file"),
        (tmp_path / "n*.parquet", "No file matches"),
        (tmp_path, "matches granules and tables"),
        (tmp_path.parent, "is a directory"),
        ("", "The path is empty"),
    ]
    for path, message in refused:
        if Path(path).is_file():
            assert granules_in(path, find_files(path)) is None
        with pytest.raises(TableError, match=message):
            Granules.open(path)
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(TableError, match="is damaged"):
        Granules.open(damaged)
    pl.DataFrame({"a": [1]}).write_parquet(damaged, metadata={"plar": '{"version":4,"conditions":["b"]}'})
    with pytest.raises(TableError, match="is damaged"):
        Granules.open(damaged)
    pl.DataFrame({"a": [1]}).write_parquet(damaged, metadata={"plar": "no json"})
    with pytest.raises(TableError, match="is damaged"):
        Granules.open(damaged)
    roles = '{"version":4,"conditions":["a"],"decision":["d"],"count":"n","names":["a","d"],"spelled":[]}'
    pl.DataFrame({"a": [1], "d": [1], "n": [0]}).write_parquet(damaged, metadata={"plar": roles})
    with pytest.raises(TableError, match="counts below 1"):
        Granules.open(damaged)
    with pytest.raises(TableError, match="Cannot write"):
        granulate([(1, 2, 3, "p")]).save(tmp_path / "none" / "g.parquet")
    with pytest.raises(TableError, match="it is a directory"):
        granulate([(1, 2, 3, "p")]).save(tmp_path)


def test_refusals() -> None:
    granules = granulate([(1, 2, 3, "p"), (1, 2, 4, "q")])
    with pytest.raises(UnknownNameError, match="Unknown column 'e'"):
        granules.coarsen(["e"])
    with pytest.raises(UnknownNameError, match="Unknown column 4"):
        granules.coarsen([4])
    with pytest.raises(UnknownNameError, match="Unknown column 'd'"):
        granules.coarsen([3])
    for odd in (True, 1.5, None):
        with pytest.raises((TableError, UnknownNameError), match=f"column {odd}"):
            granules.positions([odd])  # type: ignore[list-item]
    with pytest.raises(TableError, match="merge takes Granules, got dict"):
        granules.merge({})  # type: ignore[arg-type]
    with pytest.raises(TableError, match=r"different conditions .*\['b', 'c'\]"):
        granules.merge(granules.coarsen(["a"]))
    with pytest.raises(TableError, match="the order differs"):
        granules.merge(granules.coarsen(["b", "a", "c"]))
    with pytest.raises(TableError, match="different decision"):
        granules.merge(as_table({"a": [1], "b": [1], "c": [1], "e": [1]}, "e").granulate())
    big = as_table({"a": [1], "w": [MAX_OBJECTS], "d": [1]}, "d", weights="w").granulate()
    with pytest.raises(TableError, match="above the limit"):
        big.merge(big)


def test_roles_of_granules() -> None:
    granules = granulate([(1, 2, 3, "p"), (1, 2, 4, "q")])
    assert as_table(granules).granulate() is granules
    assert as_table(granules, "d", conditions=["a", "b", "c"]).granulate() is granules
    assert as_table(granules, -1, conditions=["c", 0]).granulate().conditions == ("c", "a")
    refused: list[tuple[Any, Any, str]] = [
        ("a", None, "were made for the decision"),
        ("z", None, "Unknown decision 'z'"),
        (7, None, "Unknown decision 7"),
        (np.array([0, 1]), None, "pass it as y="),
        (None, "d", "both a column to choose from and the decision"),
        (None, [], "No column is left"),
        (None, ["a", "a"], "given twice"),
    ]
    for decision, conditions, message in refused:
        with pytest.raises(PlarError, match=message):
            as_table(granules, decision, conditions=conditions).granulate()


def test_options_of_granules() -> None:
    granules = as_table({"a": [1, 1, None], "b": [1, 2, 2], "d": [0, 1, 0]}, "d").granulate()
    assert as_table(granules, drop="a").granulate().conditions == ("b",)
    assert as_table(granules, missing="drop").granulate().n_objects == 2
    assert as_table(granules, drop=0, missing="error").granulate().n_objects == 3
    assert as_table(granules, missing="drop").granulate().names == ("a", "b", "d")
    refused: list[tuple[dict[str, Any], str]] = [
        ({"y": [1, 2, 3]}, "comes too late"),
        ({"weights": "a"}, "comes too late"),
        ({"missing": "error"}, r"Missing values in 'a' \(1\)"),
        ({"missing": "never"}, "'missing' parameter must be one of"),
        ({"drop": ["a", "b"]}, "No column is left"),
        ({"drop": "d"}, "both the decision and to be dropped"),
        ({"drop": "z"}, "Unknown column to drop 'z'"),
    ]
    for options, message in refused:
        with pytest.raises(PlarError, match=message):
            as_table(granules, **options).granulate()


def test_positions_are_those_of_the_table(tmp_path: Path) -> None:
    table = as_table({"d": [0, 1, 0], "a": [1, 2, 1], "w": [1, 1, 1], "b": [1, 1, 2]}, "d", weights="w")
    granules = table.granulate()
    assert granules.names == ("d", "a", "w", "b")
    granules.save(tmp_path / "g.parquet")
    for same in (
        granules,
        Granules.open(tmp_path / "g.parquet"),
        granules.merge(granules),
        granules.coarsen(["b", "a"]),
        as_table(granules, "d", missing="drop").granulate(),
    ):
        assert same.names == table.names
        assert same.coarsen(1).conditions == same.coarsen("a").conditions == ("a",)
        assert same.coarsen([*np.array([3, 3])]).conditions == ("b",)
        assert as_table(same, 0, conditions=[-1]).granulate().conditions == ("b",)
    labelled = as_table({"a": [1, 2], "b": [1, 1]}, y=[0, 1]).granulate()
    assert (labelled.names, as_table(labelled, "y", conditions=-1).granulate().conditions) == (("a", "b"), ("b",))
    assert as_table({"a": [1], "d": [1]}, "d").granulate().names == ("a", "d")


def test_granule_files_are_never_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    granules = granulate([(1, 2, 3, "p"), (1, 2, 4, "q")])
    granules.save(tmp_path / "q1.parquet")
    granules.save(tmp_path / "q2.PARQUET")
    for path, n_objects in [("~/q1.parquet", 2), (str(tmp_path / "q2.PARQUET"), 2), (str(tmp_path / "q*"), 4)]:
        for found in (granules_in(path, find_files(path)), Granules.open(path)):
            assert found is not None
            assert (len(found), found.n_objects) == (2, n_objects)
        with pytest.raises(TableError, match="holds granules, not rows"):
            read_table(path, "d")
    pl.DataFrame({"a": [1], "d": [1]}).write_parquet(tmp_path / "q3.parquet")
    with pytest.raises(TableError, match="matches granules and tables"):
        Granules.open(tmp_path / "q*")


@pytest.mark.parametrize("values", [[1, 2.5, None], [1, 2**53 + 1, 0.5], [True, 2, 0.5], [1, "1", None]])
def test_mixed_values_on_disk(tmp_path: Path, values: list[Any]) -> None:
    granules = as_table({"a": values, "d": [0] * 3}, "d").granulate()
    granules.save(tmp_path / "g.parquet")
    again = Granules.open(tmp_path / "g.parquet")
    assert again.cardinalities == granules.cardinalities
    if None in values and 2.5 in values:
        assert len(granules.merge(again)) == 3
        assert again.dictionaries == ([1.0, 2.5, None],)


def test_granules_show_on_one_line() -> None:
    granules = granulate([(1, 2, 3, "p"), (1, 2, 3, "p"), (1, 2, 4, "q")])
    assert repr(granules) == "<Granules: 2 distinct of 3 rows, 3 columns, decision 'd'>"


def test_one_class_one_row_and_many_granules(tmp_path: Path) -> None:
    one = as_table({"a": [1], "d": [1]}, "d").granulate()
    assert (len(one), one.n_decisions, one.cardinalities) == (1, 1, (1,))
    n = 3000
    rng = np.random.default_rng(1)
    matrix = rng.integers(0, 6, (n, 5))
    expected = Counter(map(tuple, matrix.tolist()))
    for data in (matrix, pl.DataFrame(matrix), pl.DataFrame(matrix).to_pandas()):
        assert rows_of(as_table(data, -1).granulate()) == expected
    pl.DataFrame(matrix).write_csv(tmp_path / "t.csv")
    granules = read_table(tmp_path / "t.csv", -1).granulate()
    assert rows_of(granules) == Counter({tuple(map(str, row)): k for row, k in expected.items()})


def test_no_flipped_bit_changes_granules_in_silence(tmp_path: Path) -> None:
    path = tmp_path / "g.parquet"
    granules = as_table({"a": [1, 2, 3], "b": ["x", "y", "0" * 32], "d": [0, 1, 0]}, "d").granulate()
    granules.save(path)
    whole, refused = path.read_bytes(), 0
    for i in range(0, len(whole), 5):
        path.write_bytes(whole[:i] + bytes([whole[i] ^ 1 << i % 8]) + whole[i + 1 :])
        try:
            again = Granules.open(path)
        except TableError:
            refused += 1
        else:
            assert (rows_of(again), again.names, again.cuts) == (rows_of(granules), granules.names, {})
    assert refused > 100
    path.write_bytes(whole)
    assert len(Granules.open(path)) == 3


def test_subtract_refuses_what_is_not_there() -> None:
    granules = granulate([(1, 2, 3, "p"), (1, 2, 3, "p"), (1, None, 4, "q")])
    refused: list[tuple[Granules, str]] = [
        (
            granulate([(1, 2, 3, "p")] * 3),
            "^The row with a = 1, b = 2, c = 3, d = p is there 2 times, so ",
        ),
        (
            granulate([(1, None, 4, "q")] * 2),
            "b = missing, c = 4, d = q is there once, so it cannot be taken out 2 ",
        ),
        (granulate([(7, 2, 3, "p")]), "a = 7, b = 2, c = 3, d = p is there 0 times, so it cannot be taken out once"),
        (granulate([(7, 2, 3, "p"), (8, 2, 3, "p")]), "cannot be taken out once, nor can 1 more. Subtract"),
        (granulate([("1", 2, 3, "p")]), "a = 1, b = 2, c = 3, d = p is there 0 times"),
        (granules, "No row is left: these are all rows"),
        (granules.coarsen(["a"]), r"different conditions cannot be subtracted: \['b', 'c'\]"),
        (granulate([(1, 2, 3, "p")], ["c", "d"]), "different conditions cannot be subtracted"),
        (as_table({"a": [1], "b": [1], "c": [1], "e": [1]}, "e").granulate(), "different decision cannot be subtract"),
    ]
    for other, message in refused:
        with pytest.raises(TableError, match=message) as raised:
            granules.subtract(other)
        assert "\n" not in str(raised.value)
    with pytest.raises(TableError, match="subtract takes Granules, got list"):
        granules.subtract([])  # type: ignore[arg-type]
    numbers = {"a": [0.5, 1.5, 2.5, 3.5], "d": [0, 1, 0, 1]}
    with pytest.raises(TableError, match="cut at different points cannot be subtracted"):
        as_table(numbers, "d").granulate().subtract(as_table(numbers, "d", bins={"a": [1.0]}).granulate())


def test_subtract_names_the_decision_of_a_wide_row() -> None:
    wide = as_table({**{f"a{j}": [0] for j in range(20)}, "d": ["p"]}, "d").granulate()
    other = as_table({**{f"a{j}": [0] for j in range(20)}, "d": ["q"]}, "d").granulate()
    with pytest.raises(TableError, match=r"a0 = 0, .*a6 = 0, d = q is there 0 times"):
        wide.subtract(other)


def test_subtract_is_what_granulating_the_rest_is() -> None:
    """All that granules know of their rows: sizes, missing values, columns that number the rows."""
    n = 60
    columns: dict[str, list[Any]] = {
        "id": list(range(n)),
        "cut": [i * 1.5 for i in range(n)],
        "a": [None if i % 7 == 0 else i % 3 for i in range(n)],
        "d": [None if i % 11 == 0 else i % 2 for i in range(n)],
    }
    keep = "value"

    def of(rows: range) -> Granules:
        part = {name: [column[i] for i in rows] for name, column in columns.items()}
        return as_table(part, "d", bins={"cut": [10.0, 50.0]}, missing_decision=keep).granulate()

    rest, first = of(range(25, n)), of(range(25))
    left = of(range(n)).subtract(first)
    assert rows_of(left) == rows_of(rest)
    assert left.fingerprint() == rest.fingerprint()
    for name in ("conditions", "decision", "names", "cuts", "n_objects", "n_rows", "n_without_decision", "n_missing"):
        assert getattr(left, name) == getattr(rest, name), name
    assert left.profiles == {"id": rest.profiles["id"]}
    assert [sorted(map(str, values)) for values in left.dictionaries] == [
        sorted(map(str, values)) for values in rest.dictionaries
    ]
    assert (left.n_decisions, sorted(left.class_sizes())) == (rest.n_decisions, sorted(rest.class_sizes()))
    keep = "drop"
    assert of(range(n)).subtract(of(range(25))).n_without_decision == of(range(25, n)).n_without_decision == 3


@pytest.mark.parametrize("measure", ["PR", "SCE"])
def test_subtracted_granules_are_searched_like_the_rest(measure: str) -> None:
    pick = np.random.default_rng(3)
    rows = [tuple(row) for row in pick.integers(0, 3, (80, 4)).tolist()]
    left = granulate(rows).subtract(granulate(rows[:50]))
    by_rest = plar.reduce(granulate(rows[50:]), measure=measure)
    by_left = plar.reduce(left, measure=measure)
    assert (by_left.attributes, by_left.theta, by_left.core) == (by_rest.attributes, by_rest.theta, by_rest.core)
