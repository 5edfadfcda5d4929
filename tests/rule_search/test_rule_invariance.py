"""What must not change the rules: the order of rows, threads, names of values, and where the table comes from."""

from __future__ import annotations

import datetime as dt
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
from support.rule_tables import RuleSample, any_rule_tables, as_rules, rule_tables, said
from support.strategies import DECISION, WEIGHTS

pytestmark = [
    pytest.mark.filterwarnings("ignore:.* different in nearly every row:plar.PlarWarning"),
    pytest.mark.filterwarnings("ignore:The decision is missing in some rows:plar.PlarWarning"),
]

KINDS = st.sampled_from(["tested", "certain", "possible"])


@settings(max_examples=100 * TURNS)
@given(any_rule_tables(), KINDS, st.randoms(use_true_random=False))
def test_the_order_of_rows(sample: RuleSample, kind: str, pick: random.Random) -> None:
    n_rows = len(sample.columns[DECISION])
    order = pick.sample(range(n_rows), n_rows)
    shuffled = RuleSample({name: [column[i] for i in order] for name, column in sample.columns.items()}, sample.reading)
    assert said(shuffled.find(kind=kind, alpha=0.2)) == said(sample.find(kind=kind, alpha=0.2))


@settings(max_examples=60 * TURNS)
@given(rule_tables(), KINDS)
def test_weights_are_repeated_rows(sample: RuleSample, kind: str) -> None:
    weights = sample.columns.get(WEIGHTS, [1] * len(sample.columns[DECISION]))
    repeated = RuleSample(
        {
            name: [value for value, weight in zip(column, weights, strict=True) for _ in range(int(str(weight)))]
            for name, column in sample.columns.items()
            if name != WEIGHTS
        },
        sample.reading,
    )
    attributes = [name for name in repeated.columns if name != DECISION]  # else a column may number the rows of one
    of_repeated = said(repeated.find(kind=kind, attributes=attributes))
    with_weights = said(sample.find(kind=kind, attributes=attributes))
    assert {**of_repeated, "notes": None} == {**with_weights, "notes": None}  # weights of what is dropped are not read


@settings(max_examples=60 * TURNS)
@given(rule_tables(), KINDS)
def test_names_of_values(sample: RuleSample, kind: str) -> None:
    """Text is renamed so that its order stays; so are the decisions."""

    def renamed(value: Any) -> Any:
        return f"~ {value}é" if isinstance(value, str) and value != "10" else value

    other = RuleSample({name: list(map(renamed, column)) for name, column in sample.columns.items()}, sample.reading)
    ours = sample.find(kind=kind, alpha=0.2)
    theirs = other.find(kind=kind, alpha=0.2)
    for rule, expected in zip(as_rules(theirs), as_rules(ours), strict=True):
        assert rule.decision == renamed(expected.decision)
        assert rule.conditions == tuple((name, operator, renamed(v)) for name, operator, v in expected.conditions)
        assert rule.p_value == expected.p_value
    assert [rule.counts for rule in theirs] == [rule.counts for rule in ours]


@pytest.mark.parametrize("kind", ["tested", "certain", "possible"])
def test_the_unit_of_numbers(kind: str) -> None:
    """Numbers times four: the cut points are, and all else stays."""
    pick = random.Random(11)
    columns = {f"x{i}": [pick.choice([None, *[pick.gauss(0, 1)] * 9]) for _ in range(200)] for i in range(3)}
    decisions = [
        ["n", "y"][(a or 0) + pick.gauss(0, 0.5) > (b or 0)] for a, b, _ in zip(*columns.values(), strict=True)
    ]
    scaled = {name: [x if x is None else 4 * x for x in column] for name, column in columns.items()}
    ours = plar.rules({**columns, "d": decisions}, "d", kind=kind)
    theirs = plar.rules({**scaled, "d": decisions}, "d", kind=kind)
    assert len(ours) > 3
    for rule, expected in zip(theirs, ours, strict=True):
        assert (rule.counts, rule.p_value) == (expected.counts, expected.p_value)
        for condition, unscaled in zip(rule.conditions, expected.conditions, strict=True):
            assert (condition.column, condition.operator) == (unscaled.column, unscaled.operator)
            assert condition.value == (None if unscaled.value is None else 4 * float(str(unscaled.value)))


def larger_table() -> pl.DataFrame:
    """Enough cells for several threads: text, numbers and what is missing."""
    rng = np.random.default_rng(8)
    n_rows = 2_000
    columns: dict[str, Any] = {f"n{i}": rng.normal(size=n_rows).round(3) for i in range(4)}
    words = rng.integers(0, 4, (n_rows, 4))
    columns |= {f"t{i}": [["u", "v", "w", None][word] for word in words[:, i]] for i in range(4)}
    score = columns["n0"] + (words[:, 1] == 0) * (columns["n2"] > 0) + rng.normal(size=n_rows) / 2
    columns[DECISION] = [f"class {j}" for j in np.digitize(score, [-0.5, 0.3, 1.2])]
    return pl.DataFrame(columns)


@pytest.mark.parametrize("kind", ["tested", "certain", "possible"])
def test_threads(kind: str) -> None:
    frame = larger_table()
    one, two, seven = (said(plar.rules(frame, DECISION, kind=kind, n_jobs=n)) for n in (1, 2, 7))
    assert len(one["rules"]) > 20
    assert one == two == seven


@pytest.mark.parametrize("kind", ["tested", "certain"])
def test_where_the_table_comes_from(kind: str, tmp_path: Path) -> None:
    """A frame, files of text and Parquet, opened tables, granules, and a dict say the same."""
    frame = larger_table().head(700)
    frame.write_csv(tmp_path / "t.csv")
    frame.write_parquet(tmp_path / "t.parquet")
    expected = said(plar.rules(frame, DECISION, kind=kind))
    assert expected["rules"]
    X = frame.drop(DECISION)
    assert said(plar.rules(tmp_path / "t.csv", DECISION, kind=kind)) == expected
    assert said(plar.rules(tmp_path / "t.parquet", DECISION, kind=kind)) == expected
    assert said(plar.rules(frame.to_dict(as_series=False), DECISION, kind=kind)) == expected
    assert said(plar.rules(frame.lazy(), DECISION, kind=kind)) == expected
    assert said(plar.rules(plar.read_table(tmp_path / "t.csv", DECISION), kind=kind)) == expected
    beside = said(plar.rules(X, y=frame[DECISION].alias(DECISION), kind=kind))
    assert beside == expected
    granules = plar.granulate(frame, DECISION, bins="auto:10")
    granules.save(tmp_path / "t.granules")
    assert said(plar.rules(granules, kind=kind)) == {
        **expected,
        "notes": said(plar.rules(granules, kind=kind))["notes"],
    }
    assert said(plar.rules(tmp_path / "t.granules", kind=kind))["rules"] == expected["rules"]


def test_dates_are_cut_like_their_days() -> None:
    pick = random.Random(3)
    days = [pick.randrange(400) for _ in range(300)]
    decisions = ["late" if day > 200 or pick.random() < 0.1 else "early" for day in days]
    first = dt.date(2024, 1, 1)
    dates = [first + dt.timedelta(days=day) for day in days]
    of_days = plar.rules({"x": days, "d": decisions}, "d")
    of_dates = plar.rules({"x": dates, "d": decisions}, "d")
    assert len(of_days) > 1
    for rule, expected in zip(of_dates, of_days, strict=True):
        assert (rule.counts, rule.p_value) == (expected.counts, expected.p_value)
        points = [str(first + dt.timedelta(days=float(str(c.value)))) for c in expected.conditions]
        assert [c.value for c in rule.conditions] == points
        assert [c.operator for c in rule.conditions] == [c.operator for c in expected.conditions]


def test_an_order_of_columns_breaks_ties_only() -> None:
    """Equal columns: the first is taken, whatever it is called."""
    values = [0, 1] * 20
    for names in (["a", "b"], ["b", "a"]):
        table = dict.fromkeys(names, values) | {"d": values}
        for kind in ("tested", "certain", "possible"):
            rules = plar.rules(table, "d", kind=kind)
            assert {c.column for rule in rules for c in rule.conditions} == {names[0]}
