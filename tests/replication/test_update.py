"""`Reduct.update` against the oracle, on thousands of pairs of tables: what it keeps, adds and drops."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import plar
from plar.results.reduct import Change, from_dict
from plar.results.report.reproduce import python_call, shell_command
from plar.results.report.words import chance_words, chosen
from support import oracle
from support.check import Pair, pairs, stands, update
from support.comparing import facts


def change_of(reduct: plar.Reduct) -> Change:
    assert reduct.change is not None
    return reduct.change


def as_json(reduct: plar.Reduct) -> Any:
    return json.loads(json.dumps(reduct.to_dict()))


def reduce_old(pair: Pair, measure: str, engine: Any, **options: Any) -> plar.Reduct:
    return plar.reduce(pair.old.frame(), measure=measure, engine=engine, **pair.old.roles, **options)


@pytest.mark.parametrize("measure", oracle.MEASURES)
@given(pair=pairs(), data=st.data())
def test_update_is_what_the_rules_say(engine: Any, measure: str, pair: Pair, data: st.DataObject) -> None:
    minimal = data.draw(st.booleans())
    include = data.draw(st.lists(st.sampled_from(pair.old.conditions), max_size=1))
    alpha = data.draw(st.sampled_from([None, None, 0.05]))
    old = reduce_old(pair, measure, engine, include=include, alpha=alpha)
    new = old.update(pair.new.frame(), engine=engine, minimal=minimal)

    table = pair.new_table()
    keep = [name for name in include if name in pair.common]
    expected = update(table, old.attributes, measure, include=keep, minimal=minimal)
    assert new.attributes == expected.attributes
    assert change_of(new) == Change(old.attributes, expected.added, expected.dropped)
    assert tuple((step.attribute, tuple(step.ties)) for step in new.steps) == expected.steps
    assert (new.conditions, new.core) == (pair.common, oracle.core(table, measure))

    # what it promises, whatever the rules
    assert new.complete
    assert new.certificate.preserved
    assert stands(table, new.attributes, measure)
    assert set(keep) <= set(new.attributes)
    redundant = [a for a in new.attributes if stands(table, [b for b in new.attributes if b != a], measure)]
    assert list(new.certificate.redundant) == redundant
    if minimal:
        assert set(redundant) <= set(keep)
    there = [name for name in old.attributes if name in pair.common]
    if stands(table, there, measure):
        assert change_of(new).added == ()
        assert minimal or list(new.attributes) == there


@pytest.mark.parametrize("measure", oracle.MEASURES)
@given(pair=pairs(may_lose_columns=False), data=st.data())
def test_update_of_granules_that_grew_and_shrank(measure: str, pair: Pair, data: st.DataObject) -> None:
    """The same as of the rows themselves, whatever way the granules came about."""
    old = reduce_old(pair, measure, "local")
    old_granules = plar.granulate(pair.old.frame(), **pair.old.roles)
    new_granules = plar.granulate(pair.new.frame(), **pair.new.roles)
    both = old_granules.merge(new_granules)
    by_rows = old.update(pair.new.frame())
    by_granules = old.update(both.subtract(old_granules))
    assert facts(by_granules) == facts(by_rows) | {"missing": by_granules.to_dict()["missing"]}
    rows = data.draw(st.permutations(range(len(pair.new))))
    assert facts(old.update(pair.new.take(rows).frame())) == facts(by_rows)


@pytest.mark.parametrize("measure", oracle.MEASURES)
@given(pair=pairs(may_lose_columns=False))
def test_nothing_changes_on_the_same_rows(measure: str, pair: Pair) -> None:
    old = reduce_old(pair, measure, "local", minimal=True)
    new = old.update(pair.old.frame())
    assert new.attributes == old.attributes
    assert change_of(new) == Change(old.attributes, (), ())
    assert (new.theta, new.core, new.steps) == (old.theta, old.core, ())
    assert new.update(pair.old.frame()).attributes == old.attributes


def test_old_columns_stay_where_a_new_search_would_take_others() -> None:
    """Two columns say the same; the search takes the first, the update stays with the old one."""
    old_rows = {"a": [0, 0, 0, 1], "b": [0, 0, 1, 1], "c": [0, 1, 0, 1], "d": [0, 0, 1, 1]}
    new_rows = {"a": [0, 0, 1, 1], "b": [0, 0, 1, 1], "c": [0, 1, 0, 1], "d": [0, 0, 1, 1]}
    old = plar.reduce(old_rows, "d")
    assert (old.attributes, plar.reduce(new_rows, "d").attributes) == (("b",), ("a",))
    assert old.update(new_rows).attributes == ("b",)


def test_what_is_dropped_and_what_is_not() -> None:
    """First what was added last, and old columns last; nothing without `minimal`."""
    old = plar.reduce({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "c": [0, 1, 1, 0], "d": [0, 1, 2, 3]}, "d", minimal=True)
    assert old.attributes == ("a", "b")
    new_rows = {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "c": [5, 6, 7, 8], "d": [0, 0, 1, 1]}
    new = old.update(new_rows)
    assert (new.attributes, change_of(new)) == (("a",), Change(("a", "b"), (), ("b",)))
    assert new.certificate.minimal
    kept = old.update(new_rows, minimal=False)
    assert (kept.attributes, kept.certificate.redundant) == (("a", "b"), ("b",))
    assert change_of(kept) == Change(("a", "b"), (), ())


def test_columns_that_are_gone_and_columns_that_are_new() -> None:
    rows = {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "copy": [0, 0, 1, 1], "d": [0, 1, 2, 3]}
    old = plar.reduce(rows, "d", include=["a"])
    assert old.attributes == ("b", "a")
    without = {name: values for name, values in rows.items() if name != "a"} | {"key": [0, 1, 2, 3]}
    new = old.update(without)
    assert new.conditions == ("b", "copy")
    assert (new.attributes, change_of(new)) == (("b", "copy"), Change(("b", "a"), ("copy",), ("a",)))
    with pytest.raises(plar.TableError, match=r"None of the columns of the reduct is there: a, b, copy\. Pass "):
        old.update({"z": [1, 2], "d": [1, 2]})


def test_it_is_read_as_before(tmp_path: Path) -> None:
    """Text options, weights, cut points and the decision are those of the old reduct, unless others are given."""
    old_file, new_file = tmp_path / "old.csv", tmp_path / "new.csv"
    old_file.write_text("x;n;w;d\n1,5;?;2;a\n2,5;u;1;b\n3,5;u;1;b\n4,5;v;3;b\n")
    new_file.write_text("w;x;n;d\n1;1,0;u;a\n4;9,0;?;b\n2;3,2;v;a\n0;1,0;u;b\n")
    old = plar.reduce(
        old_file, "d", separator=";", decimal=",", na="?", weights="w", bins={"x": [2.0, 4.0]}, measure="LCE"
    )
    new = old.update(new_file)
    assert (new.n_objects, new.cuts, new.missing) == (7, {"x": (2.0, 4.0)}, {"n": 4})
    assert (new.measure, new.decision, new.settings["weights"]) == ("LCE", ("d",), "w")
    assert new.source == str(new_file)
    granules = plar.granulate(new_file, "d", separator=";", decimal=",", na="?", weights="w", bins={"x": [2.0, 4.0]})
    assert facts(old.update(granules)) == facts(new)
    table = plar.read_table(new_file, "d", separator=";", decimal=",", na="?", weights="w")
    assert facts(old.update(table)) == facts(new)
    assert old.update(new_file, weights=None).n_objects == 4
    uncut = plar.granulate(new_file, "d", separator=";", decimal=",", na="?", weights="w")
    assert facts(old.update(uncut, decimal=",")) == facts(new)
    cut_elsewhere = plar.granulate(new_file, "d", separator=";", decimal=",", bins={"x": [2.0]})
    with pytest.raises(plar.TableError, match=r"not cut at the cut points that the reduct has for 'x'\. "):
        old.update(cut_elsewhere)


def test_auto_bins_are_those_of_before() -> None:
    """Columns that had few values stay as they are, and dates are cut where they were."""
    pick = np.random.default_rng(1)
    days = np.datetime64("2024-01-01") + pick.integers(0, 300, 200)
    rows: dict[str, Any] = {"day": days, "x": pick.normal(size=200), "few": pick.integers(0, 3, 200)}
    rows["d"] = (rows["x"] > 0).astype(int) + rows["few"]
    old = plar.reduce(rows, "d", bins="auto")
    assert {"day", "x"} == set(old.cuts)
    later = {**rows, "day": days + np.timedelta64(100, "D"), "x": rows["x"] * 2}
    new = old.update(later)
    assert new.cuts == old.cuts
    assert facts(from_dict(as_json(old)).update(later)) == facts(new)


def test_a_saved_reduct_can_be_updated_and_its_update_saved(tmp_path: Path) -> None:
    pick = np.random.default_rng(2)
    rows = {f"a{j}": pick.integers(0, 3, 60).tolist() for j in range(6)} | {"d": pick.integers(0, 2, 60).tolist()}
    old = plar.reduce({name: values[:30] for name, values in rows.items()}, "d")
    old.save(tmp_path / "old.json")
    new = plar.load(tmp_path / "old.json").update(rows)
    assert facts(new) == facts(old.update(rows))
    assert change_of(new).added
    new.save(tmp_path / "new.json")
    again = plar.load(tmp_path / "new.json")
    assert again == new
    assert change_of(again) == change_of(new)
    assert old.change is None
    forged = {**new.to_dict(), "change": {"before": list(old.attributes), "added": [], "dropped": []}}
    with pytest.raises(plar.TableError, match="'change' is missing or does not fit"):
        from_dict(forged)


def test_it_is_said_what_changed() -> None:
    rows = {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "c": [0, 1, 1, 0], "d": [0, 0, 1, 1]}
    old = plar.reduce(rows, "d")
    new = old.update({**rows, "d": [0, 1, 2, 3]})
    assert "\nAn update of 1 column: added b.\n" in str(new)
    assert "An update of 1 column: added b." in str(new.report())
    assert [(c.name, c.part) for c in chosen(new)] == [("a", "kept"), ("b", "step 1")]
    assert "1 column kept was included without a test." in chance_words(new)
    assert new.to_frame().filter(pl.col("rank") == 1)["role"].to_list() == ["kept"]
    assert python_call(new).endswith("r = old.update(table)")
    assert "reduct of 'a': plar.load" in python_call(new)
    assert "minimal=False" in python_call(old.update(rows, minimal=False))
    assert shell_command(replace(new, source="rows.csv")) is None
    back = new.update(rows)
    assert "An update of 2 columns: dropped b." in str(back)
    assert back.to_frame().filter(pl.col("column") == "b")["role"].to_list() == ["removed"]
    assert "An update of 1 column: nothing changed." in str(back.update(rows))
    assert new.plot().axes[1].texts[0].get_text() == "kept"


def test_columns_that_were_excluded_stay_out() -> None:
    rows = {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "copy": [0, 0, 1, 1], "d": [0, 1, 2, 3]}
    old = plar.reduce(rows, "d", search="smallest", exclude=["a"])
    new = old.update({**rows, "b": [0, 1, 1, 0]})
    assert new.attributes == ("b", "copy")
    old_b = plar.reduce({**rows, "d": [0, 1, 0, 1]}, "d", search="smallest", exclude=["a"])
    assert old_b.attributes == ("b",)
    new_b = old_b.update(rows)
    assert (new_b.attributes, new_b.settings["exclude"], new_b.bounds) == (("b", "copy"), ["a"], None)


def test_measures_of_the_users() -> None:
    def minority(counts: Any) -> int:
        return int(sum(counts) - max(counts))

    own = plar.Measure("minority", minority, lambda n: n, drop_pure=True)
    rows = {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "d": [0, 1, 2, 3]}
    old = plar.reduce({**rows, "d": [0, 0, 1, 1]}, "d", measure=own)
    assert old.update(rows, measure=own).attributes == ("a", "b")
    with pytest.raises(plar.ParameterError, match=r"The measure 'minority' is not one of plar's\. Pass measure="):
        old.update(rows)
    with pytest.raises(plar.ParameterError, match=r"by the measure 'SCE', not 'minority'\. Leave measure="):
        plar.reduce(rows, "d").update(rows, measure=own)


def test_labels_beside_the_table() -> None:
    rows = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    old = plar.reduce(rows, y=[0, 0, 1, 1])
    assert old.attributes == ("x0",)
    assert old.update(rows, [0, 1, 2, 3]).attributes == ("x0", "x1")
    with pytest.raises(plar.ParameterError, match=r"The target 'y' was given beside the table of the reduct\. Pass "):
        old.update(rows)


def test_refusals_and_limits() -> None:
    rows = {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "d": [0, 1, 2, 3]}
    old = plar.reduce(rows, "d")
    with pytest.raises(TypeError, match=r"update\(\) got an unexpected keyword argument 'mesure'"):
        old.update(rows, mesure="PR")  # type: ignore[call-arg]
    with pytest.raises(plar.ParameterError, match="'missing' parameter must be one of"):
        old.update(rows, missing="never")
    with pytest.raises(plar.ParameterError, match=r"Reduct.update takes columns and cut points from .*Leave drop= out"):
        old.update(rows, drop="a")  # type: ignore[call-arg]
    with pytest.raises(plar.UnknownNameError, match="Unknown decision 'd'"):
        old.update({"a": [1, 2], "b": [1, 2]})
    late = plar.reduce({**rows, "d": [0, 0, 0, 0]}, "d").update({**rows, "b": [0, 0, 0, 0], "d": [0, 1, 0, 1]})
    assert (late.attributes, late.complete) == ((), True)
