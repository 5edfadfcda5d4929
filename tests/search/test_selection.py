"""`plar.select`: the rule, step by step, on every engine; what it promises; its options."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plar
from support.environment import TURNS
from support.selection import Measured, assert_by_the_rule, facts
from support.strategies import Sample, tables

Columns = dict[str, list[Any]]


def planted(n: int = 400, seed: int = 0) -> Columns:
    """A target of three bits, a noisy copy of one of them, noise, and an id."""
    pick = random.Random(seed)
    bits = {name: [pick.randrange(2) for _ in range(n)] for name in ("a", "b", "c")}
    copy = [bit if pick.random() < 0.8 else 1 - bit for bit in bits["b"]]
    noise = {f"noise{i}": [pick.randrange(4) for _ in range(n)] for i in range(6)}
    target = [a + 2 * b + 4 * c for a, b, c in zip(*bits.values(), strict=True)]
    return {"noise": noise.pop("noise0"), "copy": copy, **bits, **noise, "id": list(range(n)), "t": target}


# --------------------------------------------------------------------------------------------------------- the rule


@pytest.mark.filterwarnings("ignore:The target 'd' is:plar.PlarWarning")
@settings(max_examples=60 * TURNS)
@given(sample=tables(), alpha=st.sampled_from([0.01, 0.05, 0.3, 0.9]), data=st.data())
def test_by_the_rule(engine: Any, sample: Sample, alpha: float, data: st.DataObject) -> None:
    include = data.draw(st.lists(st.sampled_from(sample.conditions), max_size=2, unique=True))
    limit = data.draw(st.none() | st.integers(max(len(include), 1), 4))
    kind = data.draw(st.sampled_from(["each", "each", "all"]))
    roles = {"target": sample.roles["decision"], "weights": sample.roles["weights"]}
    rule: dict[str, Any] = {"alpha": alpha, "given": kind, "include": include, "max_columns": limit}
    selection = plar.select(
        sample.frame(),
        **roles,
        **rule,
        bins=None,
        keep=list(sample.conditions),
        missing_decision="value",
        engine=engine,
    )
    assert_by_the_rule(selection, sample, **rule)


@pytest.mark.parametrize("seed", range(10 * TURNS))
def test_by_the_rule_on_tables_in_which_much_is_selected(seed: int) -> None:
    pick = random.Random(seed)
    n = pick.choice([60, 200])
    causes = [[pick.randrange(pick.choice([2, 3])) for _ in range(n)] for _ in range(3)]
    columns: Columns = {}
    for j in range(9):
        cause = causes[j % 3]
        blur = pick.random()
        columns[f"c{j}"] = [pick.randrange(3) if pick.random() < blur else value for value in cause]
    columns["twin"] = columns["c0"]
    columns["d"] = [sum(values) for values in zip(*causes, strict=True)]
    if seed % 2:
        columns["w"] = [pick.randrange(4) for _ in range(n)]
    sample = Sample(columns)
    weights = "w" if seed % 2 else None
    for alpha in (0.05, 0.5):
        selection = plar.select(columns, "d", weights=weights, bins=None, alpha=alpha)
        assert_by_the_rule(selection, sample, alpha=alpha)
        assert selection.complete
        assert not ("c0" in selection.columns and "twin" in selection.columns)  # beside one the other says nothing


def test_what_was_planted() -> None:
    selection = plar.select(planted(), "t")
    assert set(selection.columns) == {"a", "b", "c"}
    assert selection.left_out == {"id": "one value per row"}
    assert selection.rejected["copy"].given == ("b",)
    assert {name for name, r in selection.rejected.items() if not r.given} >= {f"noise{i}" for i in range(1, 6)}
    assert selection.alone["b"] > selection.alone["copy"] > selection.alone["noise1"] >= 0


def test_shares_of_a_column_that_says_everything() -> None:
    """It says all that is left, but for what chance would say."""
    columns: Columns = {"same": [i % 4 for i in range(100)], "t": [i % 4 for i in range(100)]}
    selection = plar.select(columns, "t")
    table = Sample({"same": columns["same"], "d": columns["t"]}).table()
    assert selection.columns == ("same",)
    assert selection.steps[0].share == pytest.approx(float(Measured(table).excess([], "same")) / 75)


# ------------------------------------------------------------------------------------------------ what does not matter


def test_order_names_threads_and_weights_do_not_matter() -> None:
    columns = planted(300, 3)
    del columns["id"]
    first = plar.select(columns, "t", n_jobs=1)
    assert len(first.steps) >= 3
    assert facts(plar.select(columns, "t", n_jobs=2)) == facts(first)
    order = list(range(300))
    random.Random(4).shuffle(order)
    mixed = {name: [f"v{7919 * (values[i] + 1) % 9973}" for i in order] for name, values in columns.items()}
    named_otherwise = facts(plar.select(mixed, "t"))
    named_otherwise["by_values"] = facts(first)["by_values"]
    assert named_otherwise == facts(first)
    counted = pl.DataFrame(columns).group_by(pl.all()).len("w").sample(fraction=1, shuffle=True, seed=1)
    assert facts(plar.select(counted, "t", weights="w")) == facts(first)


def test_columns_are_nested() -> None:
    """With a limit, the first so many columns."""
    columns = planted(500, 5)
    everything = plar.select(columns, "t", alpha=0.2)
    for limit in range(1, len(everything.columns) + 1):
        some = plar.select(columns, "t", alpha=0.2, max_columns=limit)
        assert some.columns == everything.columns[:limit]
        assert [s.column for s in some.steps] == [s.column for s in everything.steps[:limit]]
        assert some.complete


# --------------------------------------------------------------------------------------------------------- the options


def test_include_exclude_and_keep() -> None:
    columns = planted()
    included = plar.select(columns, "t", include=["noise1"])
    assert included.columns[0] == "noise1"
    assert included.included == ("noise1",)
    assert set(included.columns) == {"noise1", "a", "b", "c"}
    excluded = plar.select(columns, "t", exclude=["b"])
    assert excluded.left_out["b"] == "excluded"
    assert "copy" in excluded.columns
    kept = plar.select(columns, "t", keep=["id"])
    assert "id" in kept.rejected
    assert kept.left_out == {}
    assert plar.select(columns, "t", include=["id"]).columns[0] == "id"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": None}, "alpha"),
        ({"alpha": 1.5}, "alpha"),
        ({"given": "some"}, "each, all"),
        ({"max_columns": 0}, "max_columns"),
        ({"max_columns": 1, "include": ["a", "b"]}, "max_columns"),
        ({"include": ["a"], "exclude": ["a"]}, "exclude"),
        ({"exclude": ["nothing"]}, "nothing"),
        ({"keep": ["nothing"]}, "nothing"),
    ],
)
def test_refused_in_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(plar.PlarError, match=message) as refused:
        plar.select(planted(50), "t", **options)
    assert "\n" not in str(refused.value)


def test_a_misspelt_option_is_refused_with_the_nearest() -> None:
    with pytest.raises(TypeError, match="max_columns"):
        plar.select(planted(50), "t", max_column=3)  # type: ignore[call-arg]


def test_time_is_up() -> None:
    selection = plar.select(planted(), "t", time_limit=1e-9)
    assert selection.columns == ()
    assert not selection.complete
    assert "stopped before" in str(selection)


def test_interrupted_with_the_columns_so_far() -> None:
    def stop(step: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(plar.Interrupted) as interrupted:
        plar.select(planted(), "t", on_step=stop)
    selection = interrupted.value.result
    assert isinstance(selection, plar.Selection)
    assert len(selection.columns) == 1
    assert not selection.complete


def test_progress_and_steps_are_told() -> None:
    steps: list[Any] = []
    phases: list[tuple[str, int, int]] = []
    selection = plar.select(planted(), "t", on_step=steps.append, progress=lambda *phase: phases.append(phase))
    assert tuple(steps) == selection.steps
    counts = [(done, left) for name, done, left in phases if name == "select"]
    assert counts[0] == (0, 10)
    assert [done for done, _ in counts] == sorted(done for done, _ in counts)


# ------------------------------------------------------------------------------------------------------- safe defaults


def test_numbers_are_compared_in_bins() -> None:
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=600)
    columns = {"x": numbers, "noise": rng.normal(size=600), "t": (numbers > 0.3).astype(int)}
    selection = plar.select(columns, "t")
    assert selection.columns == ("x",)
    assert len(selection.cuts["x"]) == 3
    assert plar.select(columns, "t", bins=None).columns == ()
    # handed on as they are
    assert selection.transform(pl.DataFrame(columns))["x"].to_list() == numbers.tolist()


def test_rows_without_a_target_are_dropped(tmp_path: Path) -> None:
    columns = planted()
    lacking = {**columns, "t": [None if i < 40 else value for i, value in enumerate(columns["t"])]}
    path = tmp_path / "lacking.csv"
    pl.DataFrame(lacking).write_csv(path)
    rest = {name: values[40:] for name, values in columns.items()}
    expected = plar.select(rest, "t")
    for data in (lacking, pl.DataFrame(lacking), pl.DataFrame(lacking).to_pandas(), path):
        selection = plar.select(data, "t")
        assert selection.columns == expected.columns
        assert selection.n_rows == 360


NOTHING_TO_PREDICT: dict[str, tuple[list[Any], str]] = {
    "one class": ([1] * 60, "The target 't' is the same in every row"),
    "no value": ([None] * 60, "No row has a value of the target 't'"),
    "different texts": ([f"v{i}" for i in range(60)], "The target 't' is different in every row"),
}


@pytest.mark.parametrize("case", NOTHING_TO_PREDICT)
def test_nothing_to_predict(engine: Any, case: str) -> None:
    """One warning, and an empty selection."""
    target, message = NOTHING_TO_PREDICT[case]
    columns: Columns = {"a": [i % 3 for i in range(60)], "b": [i % 2 for i in range(60)], "t": target}
    with pytest.warns(plar.PlarWarning, match=message) as caught:
        selection = plar.select(columns, "t", engine=engine)
    assert len(caught) == 1
    assert selection.columns == ()
    assert selection.complete
    assert str(selection).startswith("0 of 2 columns selected for 't'")
    assert selection.to_frame()["role"].to_list() == ["left out" if case == "no value" else "rejected"] * 2


# ---------------------------------------------------------------------------------------------------------- the result


def test_to_frame() -> None:
    columns = {**planted(), "constant": [1] * 400}
    selection = plar.select(columns, "t", include=["noise2"], exclude=["noise3"])
    frame = selection.to_frame()
    assert frame["column"].to_list() == [name for name in columns if name != "t"]
    roles = dict(zip(frame["column"], frame["role"], strict=True))
    assert [roles[name] for name in ("noise2", "a", "noise3", "constant", "id", "copy")] == [
        "included", "selected", "left out", "left out", "left out", "rejected",
    ]  # fmt: skip
    selected = frame.filter(pl.col("rank").is_not_null()).sort("rank")
    assert tuple(selected["column"]) == selection.columns
    reasons = dict(zip(frame["column"], frame["reason"], strict=True))
    assert reasons["copy"] == "says nothing more beside b"
    assert reasons["noise1"] == "not shown to beat chance"
    assert reasons["constant"] == "constant"
    assert frame["p_value"].null_count() == 4


def test_printed() -> None:
    text = str(plar.select(planted(), "t"))
    assert text.startswith("3 of 11 columns selected for 't' (8 classes, 400 rows)\n")
    assert "nothing more beside others  copy" in text
    assert not {"core", "reduct", "Θ"} & set(text.split())
