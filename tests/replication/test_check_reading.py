"""How new rows are read for a check: as the table of the result, cut as it was, and what becomes of other columns."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import plar

Table = dict[str, list[Any]]

pytestmark = pytest.mark.filterwarnings("ignore::plar.PlarWarning")


def people(n: int = 240, seed: int = 0) -> Table:
    """d follows from t and from whether x is above 50; z is noise."""
    pick = random.Random(seed)
    x = [round(pick.uniform(0, 100), 1) for _ in range(n)]
    t = [pick.choice("uvw") for _ in range(n)]
    z = [pick.choice("pqrs") for _ in range(n)]
    d = ["yes" if (number > 50) != (letter == "u") else "no" for number, letter in zip(x, t, strict=True)]
    return {"x": x, "t": t, "z": z, "d": d}


OLD = people()
NEW = people(seed=1)
REDUCT = plar.reduce(OLD, "d", bins={"x": [50.0]}, conditions=["x", "t", "z"])
SELECTION = plar.select(OLD, "d", bins={"x": [50.0]})


def changed(table: Table, **columns: list[Any] | None) -> Table:
    """A table with other columns; None for one that is gone."""
    new = {**table, **columns}
    return {name: values for name, values in new.items() if values is not None}


def facts(check: plar.Check) -> dict[str, Any]:
    beside = ("seconds", "source", "settings", "engine")
    return {name: value for name, value in check.to_dict().items() if name not in beside}


def test_what_is_checked_and_stands() -> None:
    assert set(REDUCT.attributes) == {"x", "t"} == set(SELECTION.columns)
    for result in (REDUCT, SELECTION):
        check = plar.check(result, NEW)
        assert check.stands
        assert check.cuts == {"x": (50.0,)}
        assert check.settings["bins"] == {"x": [50.0]}


@pytest.mark.parametrize("result", [REDUCT, SELECTION], ids=["reduct", "selection"])
def test_every_kind_of_table(tmp_path: Path, result: Any) -> None:
    expected = facts(plar.check(result, NEW, seen=OLD))
    frame = pl.DataFrame(NEW)
    frame.write_csv(tmp_path / "new.csv")
    frame.write_parquet(tmp_path / "new.parquet")
    result.save(tmp_path / "result.json")
    names = [name for name in ("x", "t", "z") if result is REDUCT or name != "z"]
    granules = plar.granulate(NEW, "d", conditions=names)
    cut = plar.granulate(NEW, "d", conditions=names, bins={"x": [50.0]})
    cut.save(tmp_path / "new.granules.parquet")
    tables = [
        pd.DataFrame(NEW),
        frame,
        frame.lazy(),
        frame.to_arrow(),
        tmp_path / "new.csv",
        tmp_path / "new.parquet",
        tmp_path / "new.granules.parquet",
        granules,
        cut,
        plar.read_table(tmp_path / "new.csv", "d"),
    ]
    old = plar.granulate(OLD, "d", conditions=["x", "t"])
    old.save(tmp_path / "old.parquet")
    for i, table in enumerate(tables):
        seen = [OLD, old, str(tmp_path / "old.parquet"), plar.granulate(OLD, "d", bins={"x": [50.0]})][i % 4]
        assert facts(plar.check(tmp_path / "result.json", table, seen=seen)) == expected, i


def test_cuts_are_those_of_the_result_however_they_were_found() -> None:
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=i % 90) for i in range(240)]
    old = changed(OLD, day=days)
    for bins in ("auto", "quantile:3", "mdlp"):
        reduct = plar.reduce(old, "d", bins=bins)
        later = changed(NEW, day=[day + dt.timedelta(days=31) for day in days], x=[x / 2 for x in NEW["x"]])
        check = plar.check(reduct, later)
        assert check.cuts == reduct.cuts
    by_number = plar.reduce(OLD, "x", conditions=["t", "z"], decision_bins="quantile:2")
    check = plar.check(by_number, NEW)
    assert check.cuts == by_number.cuts
    assert check.settings["decision_bins"] == list(by_number.cuts["x"])


def test_reading_is_that_of_the_result(tmp_path: Path) -> None:
    rows = zip(OLD["x"], OLD["t"], OLD["d"], strict=True)
    text = "".join(f"{str(x).replace('.', ',')};{t};{2 - (t == 'u')};{d}\n" for x, t, d in rows)
    (tmp_path / "old.txt").write_text(text, encoding="utf-16")
    reading: dict[str, Any] = {"header": False, "separator": ";", "decimal": ",", "encoding": "utf-16", "na": ["w"]}
    reduct = plar.reduce(tmp_path / "old.txt", 3, weights=2, bins={0: [50.0]}, missing="drop", **reading)
    check = plar.check(reduct, tmp_path / "old.txt")
    assert check.n_rows == reduct.n_objects < 2 * 240
    for name, value in reading.items():
        assert check.settings[name] == value
    assert (check.settings["weights"], check.settings["missing"]) == ("x2", "drop")


@pytest.mark.parametrize(
    ("option", "value", "text"),
    [
        ("header", False, "t,d\nu,p\nv,q\n"),
        ("separator", ",", "a;b;c;d,t,d\n1;2;3;4,u,p\n1;2;3;4,v,q\n"),
        ("decimal", ",", 'n;t;d\n"0,5";u;p\n"7,5";v;q\n'),
        ("encoding", "utf-16", "t,d\nu,p\nv,q\n"),
        ("numeric", ["t"], "t,d\n1,p\n01,q\n"),
        ("na", ["v"], "t,d\nu,p\nv,q\n,q\n"),
        ("missing", "drop", "t,d\nu,p\n,q\n"),
        ("missing_decision", "drop", "t,d\nu,p\nv,\n"),
        ("weights", "n", "n,t,d\n1,u,p\n3,v,q\n"),
    ],
)
def test_options_of_reading_that_are_given(tmp_path: Path, option: str, value: Any, text: str) -> None:
    old: Table = {"t": ["u", "v"] * 20, "d": ["p", "q"] * 20}
    new = tmp_path / "new.csv"
    new.write_text(text, encoding=value if option == "encoding" else "utf-8")
    result = plar.reduce(old, "d")
    if option == "header":
        result = plar.reduce({"x0": old["t"], "x1": old["d"]}, "x1")
    if option == "decimal":
        result = plar.reduce({"n": [0.5, 7.5] * 20, **old}, "d", bins={"n": [1.0]})

    def outcome(**reading: Any) -> Any:
        try:
            return facts(plar.check(result, new, **reading))
        except plar.PlarError as error:
            return str(error)

    with_option = outcome(**{option: value})
    assert isinstance(with_option, dict)
    assert with_option != outcome()


def test_columns_and_bins_are_not_options() -> None:
    for name in ("conditions", "drop", "bins", "decision_bins"):
        with pytest.raises(plar.ParameterError, match=rf"takes columns and cut points from the result\. Leave {name}="):
            plar.check(REDUCT, NEW, **{name: None})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"check\(\) got an unexpected keyword argument 'sen'\. Did you mean 'seen'"):
        plar.check(REDUCT, NEW, sen=OLD)  # type: ignore[call-arg]


def test_columns_that_are_gone() -> None:
    check = plar.check(REDUCT, changed(NEW, x=None))
    assert (check.stands, check.gone, check.conditions) == (False, ("x",), ("t", "z"))
    states = {one.column: (one.state, one.p_value, one.replicates) for one in check.columns}
    assert states["x"] == ("gone", None, False)
    assert states["t"][0] == "there"
    assert all("x" not in one.given for one in check.columns)

    beside = plar.check(REDUCT, changed(NEW, z=None))
    assert (beside.stands, beside.gone) == (True, ("z",))
    assert "1 other column of the old table is gone" in beside.notes[0]

    selection = plar.check(SELECTION, changed(NEW, t=None))
    assert not selection.stands
    assert selection.gone == ("t",)
    assert plar.check(SELECTION, changed(NEW, z=None)).stands

    for result in (REDUCT, SELECTION):
        with pytest.raises(plar.TableError, match=r"none of the columns of the (reduct|selection)"):
            plar.check(result, {"other": NEW["x"], "d": NEW["d"]})


def test_columns_of_another_type() -> None:
    texts = ["n/a?"] * 240
    for result in (REDUCT, SELECTION):
        check = plar.check(result, changed(NEW, x=texts))
        assert not check.stands
        [x] = [one for one in check.columns if one.column == "x"]
        assert (x.state, x.p_value, x.replicates) == ("another type", None, False)
        assert check.retyped == {"x": "text such as 'n/a?' where numbers were"}
        assert check.gone == ()
    uncut = plar.reduce(changed(OLD, t=[1] * 240), "d", conditions=["x"])
    check = plar.check(uncut, changed(NEW, x=[f"value {x}" for x in NEW["x"]]), seen=OLD)
    assert check.retyped == {"x": "text where numbers were"}
    assert check.columns[0].state == "there"
    # text that writes the same numbers is no other type, and no new value
    same = plar.check(uncut, changed(OLD, x=list(map(str, OLD["x"]))), seen=OLD)
    assert same.retyped == {}
    assert same.columns[0].new_values is not None
    assert same.columns[0].new_values.n == 0


def test_a_target_beside_the_table() -> None:
    conditions = changed(OLD, d=None)
    result = plar.select(conditions, y=OLD["d"], bins={"x": [50.0]})
    new = changed(NEW, d=None)
    expected = plar.check(result, new, y=NEW["d"])
    assert expected.stands
    assert facts(plar.check(result, changed(new, y=NEW["d"]))) == facts(expected)
    with pytest.raises(plar.ParameterError, match=r"The target 'y' was given beside the table .*, as y="):
        plar.check(result, new)
    assert plar.check(REDUCT, new, y=NEW["d"]).stands
    with pytest.raises(plar.UnknownNameError, match="Unknown decision 'd'"):
        plar.check(REDUCT, new)
    with pytest.raises(plar.TableError, match="is about the target d, and the new rows have t"):
        plar.check(REDUCT, plar.granulate(NEW, "t"))


def test_granules_that_were_cut_elsewhere() -> None:
    elsewhere = plar.granulate(NEW, "d", bins={"x": [40.0]})
    with pytest.raises(plar.TableError, match=r"not cut at the cut points that the reduct has for 'x'"):
        plar.check(REDUCT, elsewhere)
    with pytest.raises(plar.TableError, match=r"not cut at the cut points that the reduct has for 'x'"):
        plar.check(REDUCT, NEW, seen=elsewhere)
    uncut = plar.reduce(OLD, "d", conditions=["x", "t"])
    with pytest.raises(plar.TableError, match=r"not cut at the cut points that the reduct has for 'x'"):
        plar.check(uncut, elsewhere)
    by_number = plar.reduce(OLD, "x", conditions=["t", "z"], decision_bins=[50.0])
    with pytest.raises(plar.TableError, match=r"has for 'x'"):
        plar.check(by_number, plar.granulate(NEW, "x"))
    assert plar.check(by_number, plar.granulate(NEW, "x", decision_bins=[50.0])).cuts == {"x": (50.0,)}


def test_old_rows() -> None:
    new = changed(NEW, t=["new" if i % 4 == 0 else t for i, t in enumerate(NEW["t"])])
    without = plar.check(REDUCT, new)
    assert without.new_combinations is without.new_decisions is without.columns[0].new_values is None
    known = plar.check(SELECTION, new)
    by_name = {one.column: one.new_values for one in known.columns}
    assert by_name["t"] == plar.results.check.NeverSeen(1, 60, ("new",))
    assert by_name["x"] == plar.results.check.NeverSeen(0, 0, ())
    assert known.new_combinations is None

    check = plar.check(REDUCT, new, seen=changed(OLD, x=None))
    assert "The old rows lack x, so no combinations were compared." in check.notes
    assert check.new_combinations is None
    with pytest.raises(plar.TableError, match=r"The table of seen= has none of the columns"):
        plar.check(REDUCT, new, seen={"other": [1, 2], "d": [1, 2]})


def test_level() -> None:
    assert plar.check(SELECTION, NEW).alpha == 0.05
    strict = plar.select(OLD, "d", alpha=1e-6)
    assert plar.check(strict, NEW).alpha == 1e-6
    assert plar.check(strict, NEW, alpha=0.2).alpha == 0.2
    assert plar.check(plar.reduce(OLD, "d", alpha=0.01), NEW).alpha == 0.01
    with pytest.raises(plar.ParameterError, match="'alpha' parameter must be None or between 0 and 1"):
        plar.check(SELECTION, NEW, alpha=1)


def test_what_cannot_be_checked(tmp_path: Path) -> None:
    plar.rules(OLD, "d").save(tmp_path / "rules.json")
    for other in (plar.relevant(OLD, "d"), tmp_path / "rules.json", 3):
        with pytest.raises(plar.TableError, match="is neither a reduct nor a selection"):
            plar.check(other, NEW)  # type: ignore[arg-type]

    def theta(counts: Any) -> int:
        return int((counts**2).sum())

    mine = plar.Measure("mine", theta, lambda n: n * n)
    with pytest.raises(plar.ParameterError, match="by the measure 'mine', of which it has only the name"):
        plar.check(plar.reduce(OLD, "d", measure=mine, conditions=["t", "z"]), NEW)


def test_a_reduct_that_kept_less() -> None:
    part = plar.reduce(OLD, "d", bins={"x": [50.0]}, max_attributes=1)
    check = plar.check(part, OLD)
    assert (check.preserved_then, check.preserves, check.stands) == (False, False, False)
    assert "did not keep everything when it was found either" in check.notes[0]
    assert check.mending is not None


def test_untested_columns_of_a_selection() -> None:
    with_noise = plar.select(OLD, "d", bins={"x": [50.0]}, include=["z"])
    check = plar.check(with_noise, NEW)
    assert check.stands
    assert [one.role for one in check.columns] == ["included", "selected", "selected"]
    assert not check.columns[0].replicates
    nothing = plar.select({"z": OLD["z"], "d": OLD["d"]}, "d", include=["z"])
    assert plar.check(nothing, NEW).stands
    assert "no tested column" in plar.check(nothing, NEW).notes[0]


def test_time_limit() -> None:
    """The fewest columns found in no time mend the reduct too, and it is said that fewer may do."""
    random_bits = np.random.default_rng(0).integers(0, 2, (60, 40))
    old: Table = {f"a{j}": random_bits[:, j].tolist() for j in range(40)}
    reduct = plar.reduce({**old, "d": old["a0"]}, "d")
    target = np.random.default_rng(1).integers(0, 2, 60).tolist()
    check = plar.check(reduct, {**old, "d": target}, time_limit=0)
    assert check.mending is not None
    assert not check.mending.is_fewest
    mended = [*reduct.attributes, *check.mending.columns]
    assert plar.theta({**old, "d": target}, mended, decision="d") == check.theta_all


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_numbers_that_a_frame_holds_as_text(library: Any) -> None:
    """`select` cuts them, so they are cut at the same points again."""
    written = library({**OLD, "x": [str(number) for number in OLD["x"]]})
    selection = plar.select(written, "d")
    assert {"x", "t"} <= {*selection.columns}
    assert "x" in selection.cuts
    check = plar.check(selection, written)
    assert check.stands
    assert [one.p_value for one in check.columns] == [one.p_value for one in plar.check(selection, OLD).columns]
    broken = library({**OLD, "x": ["?", *(str(number) for number in OLD["x"][1:])]})
    assert not plar.check(selection, broken).stands
