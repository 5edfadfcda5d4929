"""The result of `plar.check`: text, notebook, page, frame, files; names and values stay text."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import plar
from plar.results.check import Check, NeverSeen, from_dict
from plar.results.report.check_text import headline, news, summary
from plar.results.report.reproduce import check_call
from support.odd_names import MARKUP_DECISION, MARKUP_NAMES

pytestmark = pytest.mark.filterwarnings("ignore::plar.PlarWarning")

JANUARY = {
    "sky": ["sun", "rain"] * 40,
    "wind": [0, 0, 1, 1] * 20,
    "day": [1, 2, 3, 4, 5] * 16,
    "play": ["yes", "no"] * 40,
}
#: in February it is too windy for play, and there is snow
FEBRUARY = {
    "sky": ["sun", "rain", "sun", "snow"] * 20,
    "wind": [0, 0, 1, 1] * 20,
    "day": [1, 2, 3, 4, 5] * 16,
    "play": ["yes", "no", "no", "maybe"] * 20,
}
REDUCT = plar.reduce(JANUARY, "play")
SELECTION = plar.select(JANUARY, "play")
CHECKS = {
    "reduct stands": plar.check(REDUCT, JANUARY),
    "reduct": plar.check(REDUCT, FEBRUARY, seen=JANUARY),
    "selection stands": plar.check(SELECTION, JANUARY, seen=JANUARY),
    "selection": plar.check(SELECTION, {**JANUARY, "play": ["yes", "yes", "no", "no"] * 20}),
    "gone": plar.check(plar.select(JANUARY, "play", include=["day"]), {"day": JANUARY["day"], "play": JANUARY["play"]}),
}


def test_text() -> None:
    assert (
        str(CHECKS["reduct"])
        == """\
the reduct does not stand: its 1 column does not keep everything that all 3 columns say about 'play' in 80 new rows.

  column  p then   p now  says then  says now
  sky          –  <0.001          –    0.6931  1 new value

  says: how much the uncertainty left falls;
  p-value now: how often a shuffled target gives as much, given the columns before it

Two kinds of rows agree in the columns of the reduct (sky = sun), but not in
  'play':
  wind = 0: yes (4 rows)
  wind = 1: no (4 rows)
Adding wind mends it.

sky has 1 value never seen before, in 20 rows (25.0\xa0%): snow.
20 rows (25.0\xa0%) have 1 combination of values never seen before, of 3.
The target has 1 value never seen before, in 20 rows (25.0\xa0%): maybe."""
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "reduct stands",
            "the reduct stands: its 1 column keeps everything that all 3 columns say about 'play' in 80 new rows",
        ),
        ("selection stands", "the selection stands: the only column selected for 'play' beats chance in 80 new rows"),
        (
            "selection",
            "the selection does not stand: 0 of 1 column selected for 'play' beat chance in 80 new rows; "
            "sky (p = 1) no longer does",
        ),
        (
            "gone",
            "the selection does not stand: 0 of 1 column selected for 'play' beat chance in 80 new rows; sky is gone",
        ),
    ],
)
def test_headlines(name: str, said: str) -> None:
    assert headline(CHECKS[name]) == said


def test_repr_and_frame() -> None:
    check = CHECKS["reduct"]
    assert repr(check) == "<Check: the reduct does not stand on 80 rows>"
    assert repr(CHECKS["reduct stands"]) == "<Check: the reduct stands on 80 rows>"
    frame = check.to_frame()
    assert frame.select("column", "role", "state", "replicates", "new_values", "new_rows").rows() == [
        ("sky", "core", "there", True, 1, 20)
    ]
    assert frame.schema["p_value_then"] == pl.Float64
    assert plar.check(plar.reduce({"a": [1, 2], "d": [1, 1]}, "d"), {"a": [1], "d": [1]}).to_frame().shape == (0, 10)


@pytest.mark.parametrize("name", CHECKS)
def test_files(tmp_path: Path, name: str) -> None:
    check = CHECKS[name]
    check.save(tmp_path / "c.json")
    loaded = plar.load(tmp_path / "c.json")
    assert loaded == check == pickle.loads(pickle.dumps(check)) == copy.deepcopy(check)
    assert summary(loaded) == summary(check)
    assert json.loads((tmp_path / "c.json").read_text())["kind"] == "check"
    with pytest.raises(FrozenInstanceError):
        check.stands = True  # type: ignore[misc]


@pytest.mark.parametrize(
    "change",
    [
        {"stands": True},
        {"checked": "rules"},
        {"preserves": None},
        {"witness": None},
        {"mending": {"columns": ["sky"], "at_least": 1}},
        {"mending": {"columns": ["wind"], "at_least": 2}},
        {"gone": ["wind"]},
        {"n_rows": -1},
        {"new_combinations": {"n": 3, "n_rows": 2, "examples": []}},
        {"theta": None},
        {"columns": []},
        {"intervals": {"wind": ["a"]}},
        {"alpha": "0.05"},
        {"settings": {"na": 3}},
    ],
)
def test_what_cannot_be(change: dict[str, Any]) -> None:
    saved = json.loads(json.dumps(CHECKS["reduct"].to_dict()))
    assert from_dict(saved) == CHECKS["reduct"]
    if "columns" in change:
        change = {"columns": saved["columns"] * 2}
    with pytest.raises(plar.TableError, match=r"^The mapping is not a saved check: '\w+' is missing or does not fit"):
        from_dict({**saved, **change})


def test_news() -> None:
    check = CHECKS["reduct stands"]
    assert news(check) == []
    many = NeverSeen(7, 40, ("a", "b", "c", "d", "e"))
    told = news(replace(check, new_combinations=many, new_decisions=many))
    assert told == [
        "40 rows (50.0\xa0%) have 7 combinations of values never seen before, of 2.",
        "The target has 7 values never seen before, in 40 rows (50.0\xa0%): a, b, c and 4 more.",
    ]


def test_limits_of_the_text() -> None:
    """A result of many columns is cut short."""
    wide = {f"a{j}": [i >> j & 1 for i in range(256)] for j in range(8)}
    columns = {f"{name}-{k}": values for name, values in wide.items() for k in range(12)}
    reduct = plar.reduce(
        {**columns, "d": list(range(256))}, "d", include=[f"a{j}-{k}" for j in range(8) for k in range(12)]
    )
    text = str(plar.check(reduct, {**columns, "d": list(range(256))}))
    assert "  … and 56 more" in text


def test_how_to_repeat_it(tmp_path: Path) -> None:
    pl.DataFrame(FEBRUARY).write_parquet(tmp_path / "f.parquet")
    check = plar.check(SELECTION, tmp_path / "f.parquet", seen=tmp_path / "f.parquet", alpha=0.01)
    call = check_call(check)
    names: dict[str, Any] = {}
    SELECTION.save(tmp_path / "s.json")
    exec(call.replace("plar.load(...)", f"plar.load({str(tmp_path / 's.json')!r})"), names)
    again = {**names["c"].to_dict(), "seconds": None}
    assert again == {**check.to_dict(), "seconds": None}
    assert "y = ..." in check_call(plar.check(REDUCT, JANUARY, y=JANUARY["play"]))


def markup() -> Check:
    """A check of names and values that would be markup."""
    names = MARKUP_NAMES[:3]
    old = {name: ["<i>a</i>", "<i>b</i>"] * 20 for name in names[:1]} | {names[1]: [0, 0, 1, 1] * 10}
    reduct = plar.reduce({**old, MARKUP_DECISION: ["<b>", "&"] * 20}, MARKUP_DECISION)
    new = {
        **old,
        names[0]: ["<i>a</i>", "<script>alert(1)</script>"] * 20,
        MARKUP_DECISION: ["<b>", "&", "&", "<u>"] * 10,
    }
    return plar.check(reduct, new, seen={**old, MARKUP_DECISION: ["<b>", "&"] * 20})


@pytest.mark.parametrize("check", [*CHECKS.values(), markup()], ids=[*CHECKS, "markup"])
def test_pages(tmp_path: Path, check: Check) -> None:
    pytest.importorskip("jinja2", reason="jinja2 is not installed: pip install 'plar[report]'")
    text = check.report(command="plar check <r.json> t.csv")
    assert text is not None
    assert "plar check &lt;r.json&gt; t.csv" in text
    for markup_of_a_value in ("<i>", "<script>", "<u>"):
        assert markup_of_a_value not in text.partition("<body>")[2]
    check.report(tmp_path / "c.html")
    assert (tmp_path / "c.html").read_text().startswith("<!doctype html>")
    assert ("Why it does not keep everything" in text) == (check.preserves is False)
    with pytest.raises(plar.TableError, match=r"A report is an HTML page"):
        check.report(tmp_path / "c.pdf")


@pytest.mark.parametrize("check", [*CHECKS.values(), markup()], ids=[*CHECKS, "markup"])
def test_notebook(check: Check) -> None:
    view = check._repr_html_()
    assert view.count("<tr>") == len(check.columns) + 1
    for markup_of_a_value in ("<i>", "<script>", "<u>"):
        assert markup_of_a_value not in view
