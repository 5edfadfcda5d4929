"""What a set of rules says of itself: its numbers, its text, its JSON; and that loading it needs little."""

from __future__ import annotations

import datetime as dt
import json
import pickle
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plar
from plar.results.rules import from_dict
from support.environment import TIC_TAC_TOE
from support.rule_samples import as_plain, random_table, rows_of

WEATHER: dict[str, Any] = {
    "outlook": ["sun", "sun", "rain", "rain"] * 8,
    "wind": ["no", "yes"] * 16,
    "play": ["yes", "yes", "yes", "no"] * 8,
}


@pytest.mark.filterwarnings("ignore::plar.PlarWarning")
@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["tested", "certain", "possible"]))
def test_the_numbers_of_rules(seed: int, kind: str) -> None:
    """Counted once more, row by row."""
    table = random_table(seed, 100)
    rules = plar.rules(table, "d", kind=kind, alpha=0.5)
    plain = as_plain(rules)
    rows = rows_of(table)
    decisions = list(rules.decisions)
    matching = [plain.matching(row) for row in rows]
    sizes = [table["d"].count(decision) for decision in decisions]
    assert rules.class_sizes == tuple(sizes)
    assert (rules.n_objects, sum(sizes)) == (100, 100)
    unmatched = [row["d"] for row, numbers in zip(rows, matching, strict=True) if not numbers]
    assert rules.unmatched == tuple(unmatched.count(decision) for decision in decisions)
    for number, rule in enumerate(rules):
        matched = [row["d"] for row, numbers in zip(rows, matching, strict=True) if number in numbers]
        counts = [matched.count(decision) for decision in decisions]
        place = decisions.index(rule.decision)
        assert rule.counts == tuple(counts)
        assert (rule.support, rule.n_matched) == (counts[place], len(matched))
        assert rule.confidence == counts[place] / len(matched)
        assert rule.coverage == counts[place] / sizes[place]
        assert Fraction(rule.lift) == Fraction(counts[place] * 100 / (len(matched) * sizes[place]))
        assert (rule.p_value is None) == (kind != "tested")
    assert rules.prior == tuple(plain.prior())
    # by decision, then by support
    order = [(decisions.index(rule.decision), -rule.support) for rule in rules]
    assert order == sorted(order)


def test_a_sequence_of_rules() -> None:
    rules = plar.rules(WEATHER, "play")
    assert [rules[i] for i in range(len(rules))] == list(rules) == list(rules.rules)
    assert rules[-1] in rules
    assert str(rules[0]) == "if outlook = rain and wind = yes then no"
    assert repr(rules) == f"<Rules: {len(rules)} tested rules for 'play'>"
    with pytest.raises(IndexError):
        rules[len(rules)]


def test_the_frame() -> None:
    rules = plar.rules(WEATHER, "play")
    frame = rules.to_frame()
    assert frame.columns == [
        *("rule", "text", "decision", "conditions", "support", "matched"),
        *("confidence", "coverage", "lift", "p_value"),
    ]
    assert frame["text"].to_list() == list(map(str, rules))
    for name, field in {"support": "support", "matched": "n_matched", "lift": "lift", "p_value": "p_value"}.items():
        assert frame[name].to_list() == [getattr(rule, field) for rule in rules]
    none = plar.rules({"a": [0, 1] * 8, "d": [0, 0, 0, 1] * 4}, "d").to_frame()
    assert (none.columns, len(none)) == (frame.columns, 0)
    certain = plar.rules(WEATHER, "play", kind="certain").to_frame()
    assert certain["p_value"].to_list() == [None] * len(certain)


def test_the_summary() -> None:
    lines = str(plar.rules(WEATHER, "play", kind="certain")).splitlines()
    assert lines[0] == "3 certain rules for 'play' (2 classes, 32 rows)"
    at = lines.index("  play = no: 8 rows, 25.0 %")
    assert lines[at + 2].endswith("  outlook = rain and wind = yes")
    assert max(map(len, lines)) <= 80


def test_intervals_in_words() -> None:
    x = [i / 8 for i in range(400)]
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=i) for i in range(400)]
    table = {"x": x, "d": ["in" if 10 < value <= 25 else "out" for value in x]}
    texts = list(map(str, plar.rules(table, "d", attributes=["x"])))
    assert any(" < x ≤ " in text for text in texts)
    texts = list(map(str, plar.rules({**table, "x": days}, "d", attributes=["x"])))
    assert "if 2024-04-29 < x ≤ 2024-06-08 then in" in texts or any("2024-" in text for text in texts)


#: columns whose values JSON does not have, or has in another way
ODD_COLUMNS: dict[str, list[Any]] = {
    "decimals": [Decimal("1.50"), Decimal("2")] * 20,
    "bytes": [b"x", b"\xff"] * 20,
    "infinite": [float("inf"), 1.0] * 20,
    "large": [2**70, 1] * 20,
    "surrogates": ["\udcff", "x"] * 20,
    "blank": ["", " x"] * 20,
    "truth": [True, False] * 20,
    "times": [dt.datetime(2024, 1, 1, 12, 30, 0, 5), None] * 20,
    "durations": [dt.timedelta(seconds=90), dt.timedelta(0)] * 20,
    "mixed": [1, "1"] * 20,
}


@pytest.mark.filterwarnings("ignore::plar.PlarWarning")
@pytest.mark.parametrize("name", ODD_COLUMNS)
@pytest.mark.parametrize("role", ["condition", "decision"])
def test_values_that_json_lacks(tmp_path: Path, name: str, role: str) -> None:
    """Rules that are saved and loaded are the same, and predict the same."""
    values = ODD_COLUMNS[name]
    table = {"a": values, "d": ["p", "q"] * 20} if role == "condition" else {"a": ["x", "y"] * 20, "d": values}
    rules = plar.rules(table, "d", missing_decision="value", na=())
    assert len(rules) == 2
    assert from_dict(json.loads(json.dumps(rules.to_dict()))) == rules
    rules.save(tmp_path / "r.json")
    loaded = plar.load(tmp_path / "r.json")
    assert loaded == rules
    assert loaded.predict(table).tolist() == rules.predict(table).tolist()
    right = rules.predict(table).tolist()
    assert right[:2] == list(rules.decisions) or right[:2] == list(rules.decisions)[::-1]
    assert str(rules).isprintable() or "\n" in str(rules)
    assert rules.to_frame().height == 2


def test_json_says_everything(tmp_path: Path) -> None:
    rules = plar.rules(TIC_TAC_TOE, "x_wins", kind="possible", max_conditions=3, min_support=5)
    saved = rules.to_dict()
    assert saved["kind"] == "rules"
    assert {name for name in saved if name != "kind"} == set(rules.__dataclass_fields__)
    assert not rules.certificate or not rules.certificate.complete
    assert (saved["settings"]["kind"], saved["settings"]["min_support"], saved["rule_kind"]) == (
        "possible",
        5,
        "possible",
    )
    rules.save(tmp_path / "r.json")
    assert plar.load(tmp_path / "r.json") == rules
    assert pickle.loads(pickle.dumps(rules)) == rules


def test_loading_imports_little(tmp_path: Path) -> None:
    """Neither numba nor the search."""
    plar.rules(WEATHER, "play").save(tmp_path / "r.json")
    code = (
        "import sys, plar; rules = plar.load(sys.argv[1]); str(rules[0]), rules.to_sql(); "
        "names = 'numba', 'polars', 'pandas', 'pyarrow', 'sklearn', 'plar.rule_search'; "
        "print(*(name for name in names if name in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "r.json")], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("\n", "")


def test_names_of_columns() -> None:
    """Numbers as labels, and names that are not quite text."""
    frame = pd.DataFrame({0: ["x", "y"] * 20, 1: ["p", "q"] * 20})
    rules = plar.rules(frame, 1)
    assert rules.predict(frame[[0]]).tolist() == ["p", "q"] * 20
    odd = pl.DataFrame({"a\nb": ["x", "y"] * 20, "d\t": ["p", "q"] * 20})
    rules = plar.rules(odd, "d\t")
    assert str(rules[0]) == "if a\\nb = x then p"
    assert str(rules).startswith("2 tested rules for 'd\\t' (2 classes, 40 rows)\n")
    assert rules.predict(odd).tolist() == odd["d\t"].to_list()


def test_decisions_beside_the_table() -> None:
    X = np.array([[0], [1]] * 20)
    rules = plar.rules(X, y=["p", "q"] * 20)
    assert rules.decision == ("y",)
    assert rules.predict(X).tolist() == ["p", "q"] * 20
