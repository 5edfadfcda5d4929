"""The page, the notebook view and the text of rules: what they say, and that names and values stay text."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import plar
from plar.results.report import pages
from plar.results.report.pages import rules_page
from plar.results.report.reproduce import rules_call, rules_command
from plar.results.report.rule_facts import column_uses, rules_by_class
from plar.results.report.rule_words import RuleWords
from support.environment import TIC_TAC_TOE
from support.odd_names import MARKUP_DECISION, MARKUP_NAMES
from support.reports import many_rules, markup_rules
from support.shell import run

pytest.importorskip("jinja2", reason="jinja2 is not installed: pip install 'plar[report]'")

#: what only the theory says
THEORY = re.compile(r"\breducts?\b|Θ|granule|approximation", re.IGNORECASE)


class Text(HTMLParser):
    """The words and tags of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self._open = ""
        self.feed(page.replace("<wbr>", ""))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self._open = tag

    def handle_data(self, data: str) -> None:
        if self._open not in ("style", "script"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split()).replace("\xa0", " ")


def told(rules: plar.Rules) -> str:
    return Text(rules_page(rules)).text


def contradictory(**options: Any) -> plar.Rules:
    """Rules of a table in which only rows with a = 2 are certain of their class."""
    return plar.rules({"a": [0, 0, 1, 1, 2, 2] * 5, "y": ["p", "n", "p", "n", "n", "n"] * 5}, "y", **options)


def weather(**options: Any) -> plar.Rules:
    columns = {"wind": ["no", "yes"] * 40, "day": range(80), "rain": [0, 0, 1, 1] * 20, "same": ["x"] * 80}
    play = ["yes", "yes", "yes", "no"] * 20
    return plar.rules({**columns, "play": play}, "play", **options)


# ----------------------------------------------------------------------------------------------------------- the page


def test_the_page_of_tested_rules() -> None:
    rules = weather()
    text = told(rules)
    assert f"{len(rules)} rules for play" in text
    assert "Each condition says more about play than chance explains (exact test, alpha 0.05)." in text
    assert "wind = yes and rain = 1" in text
    assert "by class: 20 no 20" in text
    assert "Columns that no rule asks for (1) same" in text
    assert "Left out: one value per row (1) day" in text
    assert "1 column that only numbers or names the rows was left out: day (option attributes)." in text
    assert "plar.rules(table, decision='play')" in text
    assert "What was checked" not in text
    assert not THEORY.search(text)


def test_every_rule_is_on_the_page_with_its_numbers() -> None:
    rules = weather(alpha=0.5)
    words = RuleWords(rules)
    page = rules_page(rules)
    rows = re.findall(r"<tr data-rule>(.*?)</tr>", page, re.DOTALL)
    assert len(rows) == len(rules)
    for number, (row, rule) in enumerate(zip(rows, rules, strict=True)):
        text = Text(row).text
        counts = {rules.decisions[i]: n for i, n in enumerate(rule.counts) if n}
        assert text.startswith(f"{number} {words.conditions(rule)} by class: {rule.n_matched} ")
        for name, n in counts.items():
            assert f"{name} {n}" in text
        assert f'title="{rule.confidence}"' in row
        assert f'title="{rule.p_value}"' in row


@pytest.mark.parametrize("kind", ["certain", "possible"])
def test_the_certificate_is_said_in_words(kind: str) -> None:
    rules = plar.rules(TIC_TAC_TOE, "x_wins", kind=kind)
    for text in (told(rules), Text(rules._repr_html_()).text, " ".join(str(rules).split())):
        claim = "Every row whose class is certain" if kind == "certain" else "Every row that may be of a class"
        assert f"{claim} is matched" in text
        assert re.search("[Nn]o condition can be dropped", text)
        assert re.search("[Nn]o rule can be dropped", text)
        assert not THEORY.search(text)
    assert 'class="no"' not in rules_page(rules)
    assert "p-value" not in told(rules)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"min_support": 20}, "Only rules of at least 20 rows of their class were asked for."),
        ({"max_conditions": 2}, "Only rules of at most 2 conditions were asked for."),
        (
            {"min_support": 2, "max_conditions": 1},
            "Only rules of at least 2 rows of their class and of at most 1 condition were asked for.",
        ),
        ({"time_limit": 1e-9}, "The search was stopped before all rules were found."),
    ],
)
def test_what_does_not_hold_is_said_with_its_reason(options: dict[str, Any], why: str) -> None:
    rules = plar.rules(TIC_TAC_TOE, "x_wins", kind="certain", **options)
    text = told(rules)
    assert f"Not every row whose class is certain is matched. {why}" in text
    assert '<li class="no">' in rules_page(rules)
    if len(rules):
        assert why in " ".join(str(rules).split())


def test_faults_of_a_certificate_are_named() -> None:
    wrong = plar.results.rules.RuleCertificate(True, False, False, False)
    for kind, claim in (("certain", "is wrong in this table"), ("possible", "cannot be of its class")):
        text = told(replace(contradictory(kind=kind), certificate=wrong))
        for words in (claim, "Some condition can be dropped", "Some rule can be dropped"):
            assert words in text


def test_what_no_rule_covers() -> None:
    rules = contradictory(kind="certain")
    text = told(rules)
    assert "20 of 30 rows are matched by no rule, since their class is not certain." in text
    assert "n 1 20 66.7 % 10 50.0 %" in text
    assert "p 0 10 33.3 % 10 100 %" in text
    assert "No rule for p ." in text
    assert "10 rows that no rule matches" in str(rules)
    assert "since their class is not certain" not in told(weather(alpha=1e-9))


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (
            plar.rules({"a": [0, 1, 2] * 40, "y": [0, 1] * 60}, "y"),
            "No condition says more about y than chance explains (exact test, alpha 0.05).",
        ),
        (contradictory(kind="certain", attributes=["a"], weights=None, min_support=20), "No certain rule for y"),
        (
            plar.rules(TIC_TAC_TOE, "x_wins", kind="certain", max_conditions=1),
            "Only rules of at most 1 condition were asked for, and there is none.",
        ),
        (
            plar.rules(TIC_TAC_TOE, "x_wins", kind="possible", max_conditions=1, min_support=7),
            "Only rules of at least 7 rows of their class and of at most 1 condition were asked for",
        ),
        (
            weather(min_support=1000),
            "No condition that matches at least 1,000 rows of its class says more about play than chance explains",
        ),
        (
            plar.rules({"a": [0, 0], "y": [0, 1]}, "y", kind="certain"),
            "No row is certain: each equals a row of another class in all columns.",
        ),
        (plar.rules({"a": [0, 1], "y": ["b", "b"]}, "y"), "y is the same in every row: b."),
        (replace(weather(alpha=1e-300), complete=False), "No rule for play yet"),
        (replace(weather(), complete=False), "The search was stopped, by its time limit or by hand"),
        (contradictory(kind="possible"), "They describe the rows that may be of a class"),
        (contradictory(kind="certain"), "It describes the rows whose class is certain"),
    ],
    ids=[
        "noise",
        "too few",
        "too long",
        "too long or too few",
        "too few for the test",
        "nothing certain",
        "one class",
        "stopped early",
        "stopped",
        "possible",
        "one rule",
    ],
)
def test_headline_and_lead(rules: plar.Rules, words: str) -> None:
    assert words in told(rules)
    assert words in Text(rules._repr_html_()).text


@pytest.mark.parametrize("kind", ["tested", "certain", "possible"])
def test_the_terminal_says_why_limits_leave_no_rule(kind: str) -> None:
    text = " ".join(str(plar.rules(TIC_TAC_TOE, "x_wins", kind=kind, min_support=1000)).split())
    assert text.startswith(f"No {kind} rule for 'x_wins' (2 classes, 958 rows) ")
    assert "at least 1,000 rows of " in text


def test_columns_are_counted_once_for_each_rule() -> None:
    rules = plar.rules({"a": range(200), "y": [int(50 < i <= 120) for i in range(200)]}, "y", attributes=["a"])
    assert any(len(rule.conditions) == 2 for rule in rules)
    [use] = column_uses(rules)
    assert (use.name, use.n_rules, use.share) == ("a", len(rules), "100\xa0%")


def test_intervals_are_in_the_units_of_the_data() -> None:
    days = np.arange("2024-01-01", "2024-10-27", dtype="M8[D]")
    data = {"day": days, "amount": np.arange(300) * 10_000.0, "y": [int(90 < i <= 210) for i in range(300)]}
    for rules in (plar.rules(data, "y", attributes=["day"]), plar.rules(data, "y", attributes=["amount"])):
        for text in (told(rules), str(rules), Text(rules._repr_html_()).text):
            assert re.search(r"2024-\d\d-\d\d < day ≤ 2024-\d\d-\d\d|\d{6} < amount ≤ \d{7}", text)
            assert "e+06" not in text


def test_missing_and_empty_values_are_told_apart() -> None:
    values = [None, "missing", "", " "] * 30
    rules = plar.rules({"a": values, "y": [0, 1, 2, 3] * 30}, "y", na=(), missing="value")
    texts = {str(rule).removeprefix("if ").rpartition(" then")[0] for rule in rules}
    assert texts == {"a is missing", "a = missing", "a = ''", "a = ' '"}
    assert "a = ' '" in told(rules)


def test_of_too_many_rules_each_class_has_its_first(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = many_rules()
    monkeypatch.setattr(pages, "MAX_RULES", 100)
    monkeypatch.setattr(pages, "MAX_CLASSES", 2)
    page = rules_page(rules)
    n_shown = page.count("<tr data-rule>")
    assert 97 <= n_shown <= 100
    assert f"The first rules of each class, {n_shown} of {len(rules)}" in Text(page).text
    assert "1 more are not shown" in Text(page).text
    firsts = [places[0] for places in rules_by_class(rules)]
    numbers = [int(n) for n in re.findall(r'<tr data-rule><td class="n dim aux">(\d+)</td>', page)]
    assert set(firsts) <= set(numbers)


def test_a_page_of_hundreds_of_rules_is_no_book() -> None:
    rules = many_rules()
    assert len(rules) > 300
    page = rules_page(rules)
    assert page.count("<tr data-rule>") == len(rules)
    assert len(page) < 1500 * len(rules) + 50_000


def test_classes_that_are_equal_in_python_are_not_one() -> None:
    rules = plar.rules({"a": [0, 1] * 20, "y": [0, 1] * 20}, "y")
    mixed = replace(rules, decisions=(1, True), rules=tuple(replace(r, decision=bool(r.decision)) for r in rules[:0]))
    assert rules_by_class(mixed) == [[], []]


# ------------------------------------------------------------------------------------------------- names stay text


def test_names_and_values_do_not_become_tags() -> None:
    rules = markup_rules()
    assert len({condition.column for rule in rules for condition in rule.conditions}) > 8
    calm = weather()
    for page, calm_page in (
        (rules_page(rules, "plar rules '</pre><script>'"), rules_page(calm)),
        (rules._repr_html_(), calm._repr_html_()),
    ):
        extra = {"details", "summary", "wbr", "span"}  # of long names and lists
        shown = Text(page)
        assert set(shown.tags) <= set(Text(calm_page).tags) | extra
        assert shown.tags.count("script") == Text(calm_page).tags.count("script")
        assert not [name for name, _ in shown.attributes if name.startswith("on")]
        for name in (*MARKUP_NAMES[:6], MARKUP_DECISION):
            assert name not in page.replace("<!doctype", "")
        assert "\x1b" not in page
        assert "\u202e" not in page


def test_nothing_is_loaded_from_elsewhere() -> None:
    for rules in (markup_rules(), many_rules(), contradictory(kind="possible")):
        shown = Text(rules_page(rules))
        assert not {"img", "link", "iframe", "object", "embed", "base", "form"} & set(shown.tags)
        assert not [value for name, value in shown.attributes if name in ("src", "href", "action", "style")]
        [policy] = [value for name, value in shown.attributes if name == "content" and "default-src" in (value or "")]
        assert policy is not None
        assert policy.startswith("default-src 'none'; style-src 'sha256-")
        assert "unsafe" not in policy


def test_a_terminal_is_not_steered() -> None:
    text = str(markup_rules())
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert max(map(len, text.splitlines())) < 200


# ----------------------------------------------------------------------------------------------------- the notebook


def test_the_notebook_table_shows_rules_of_every_class() -> None:
    rules = many_rules()
    text = Text(rules._repr_html_()).text
    assert f"{len(rules)} certain rules for y" in text
    assert f"… and {len(rules) - 30} more" in text
    for decision in rules.decisions:
        assert text.count(f" {decision} ") >= 10
    assert set(Text(rules._repr_html_()).tags) == {
        "div", "b", "br", "span", "table", "thead", "tbody", "tr", "th", "td", "bdi",
    }  # fmt: skip
    assert "<table" not in plar.rules({"a": [0, 0], "y": [0, 1]}, "y", kind="certain")._repr_html_()


# ----------------------------------------------------------------------------------------------------- the terminal


def test_hundreds_of_rules_are_one_screen() -> None:
    rules = many_rules()
    text = str(rules)
    assert len(text.splitlines()) <= 50
    assert f"Shown: 24 of {len(rules)} rules; the report has all." in text
    for decision in rules.decisions:
        assert f"y = {decision}: " in text


def test_many_classes_are_one_screen() -> None:
    classes = np.arange(900) % 30
    rules = plar.rules({"a": classes, "b": classes // 2, "y": [f"class {c}" for c in classes]}, "y", bins=None)
    text = str(rules)
    assert len(text.splitlines()) <= 60
    assert re.search(r"Shown: \d+ of \d+ rules of 12 of 30 classes; the report has all\.", text)
    assert text.count("rows  right") == 1


def test_lines_break_between_conditions() -> None:
    text = str(plar.rules(TIC_TAC_TOE, "x_wins", kind="certain"))
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert not [line for line in lines if re.match(r" +(and|=)\b", line) or line.endswith("=")]
    assert "    rows  if\n" in text
    assert "\xa0" not in text


def test_one_row_is_not_some_rows() -> None:
    rules = plar.rules({"a": [0, 0, 1, 2], "y": ["p", "n", "n", "p"]}, "y", kind="certain")
    assert "1 rows" not in str(rules) + told(rules) + Text(rules._repr_html_()).text


# ------------------------------------------------------------------------------------------------- command and call


def without_times(rules: plar.Rules) -> dict[str, Any]:
    return {**rules.to_dict(), "seconds": {}}


READINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "attributes": {"attributes": ["b c", "'q'"], "kind": "certain"},
    "conditions": {"conditions": ["'q'", "the $HOME", "number"], "kind": "possible"},
    "both": {"conditions": ["the $HOME", "b c", "'q'"], "attributes": ["b c"], "missing": "drop"},
    "options": {
        "alpha": 0.2,
        "min_support": 3,
        "max_conditions": 2,
        "na": "?",
        "weights": "w\x1b[1m",
        "bins": {"b c": [1.5, 2.5]},
        "decision_bins": "quantile:2",
    },
    "no bins": {"bins": None, "missing_decision": "value", "kind": "certain", "max_conditions": 1},
}


@pytest.mark.parametrize("reading", READINGS.values(), ids=READINGS)
def test_the_command_and_the_call_give_the_same_rules(tmp_path: Path, reading: dict[str, Any]) -> None:
    names = ["number", "the $HOME", "b c", "'q'", "w\x1b[1m", "y"]
    rows: list[list[Any]] = [
        [i // 3, i % 3, i % 5, "?" if i % 7 == 0 else i % 2, 1 + i % 2, i % 3 + i % 5] for i in range(90)
    ]
    file = tmp_path / "it's a table.csv"
    file.write_text("\n".join(",".join(map(str, row)) for row in [names, *rows]), encoding="utf-8")
    rules = plar.rules(file, "y", **reading)
    blocks = re.findall(r"<pre><code>(.*?)</code></pre>", rules_page(rules), re.DOTALL)
    shell, call = ("".join(Text(code).words) for code in blocks)
    done = subprocess.run(
        ["bash", "-c", shell.replace("plar", '"$PYTHON" -m plar', 1) + " --json"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHON": sys.executable},
    )
    ran: dict[str, Any] = {}
    exec(call, ran)
    shown = json.loads(done.stdout)
    expected = json.loads(json.dumps(without_times(rules)))
    for again in ({**shown, "seconds": {}}, json.loads(json.dumps(without_times(ran["r"])))):
        assert {**again, "settings": {}} == {**expected, "settings": {}}


def test_columns_that_were_dropped_stay_dropped(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    pl.DataFrame({"n": range(40), "a": [0, 1] * 20, "b": [0, 1] * 20, "y": [0, 1] * 20}).write_csv(file)
    for options in ({"drop": ["b"]}, {"attributes": ["n", "a", "b"]}, {"conditions": ["n", "a", "b"], "bins": None}):
        rules = plar.rules(file, "y", **options)
        ran: dict[str, Any] = {}
        exec(rules_call(rules), ran)
        assert ran["r"].rules == rules.rules
        assert ran["r"].attributes == rules.attributes


def test_what_no_command_can_say() -> None:
    table = {"a": [0, 1] * 20, "y": [0, 1] * 20}
    assert rules_command(plar.rules(table, "y")) is None
    y = plar.rules(TIC_TAC_TOE, y=[0, 1] * 479)
    assert rules_command(y) is None
    assert "y = ...  # the labels" in rules_call(y)
    assert rules_command(plar.rules(TIC_TAC_TOE, "x_wins", na=["none"])) is None


# ----------------------------------------------------------------------------------------------------------- the files


def test_the_report_is_written_whole(tmp_path: Path) -> None:
    weather().report(tmp_path / "r.html", command="plar rules weather.csv -d play")
    assert "plar rules weather.csv -d play" in (tmp_path / "r.html").read_text()
    with pytest.raises(plar.TableError, match="HTML page"):
        weather().report(tmp_path / "r.pdf")
    page = weather().report()
    assert page is not None
    assert page.startswith("<!doctype html>")


def test_the_report_of_saved_rules_is_the_same(tmp_path: Path) -> None:
    for i, rules in enumerate((markup_rules(), contradictory(kind="possible"))):
        rules.save(tmp_path / f"{i}.json")
        assert rules_page(plar.load(tmp_path / f"{i}.json")) == rules_page(rules)


def test_the_shell_writes_the_report(tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    words = ("rules", TIC_TAC_TOE, "-d", "x_wins", "--kind", "certain", "--report")
    done = run(*map(str, words), str(path))
    assert done.stderr == f"Wrote {path}.\n"
    assert "24 certain rules for 'x_wins'" in done.stdout
    page = path.read_text(encoding="utf-8")
    assert "24 certain rules for x_wins" in Text(page).text
    assert f"plar rules {TIC_TAC_TOE} -d x_wins --kind certain --report {path}" in Text(page).text
    done = run(*map(str, words), "-")
    assert done.stdout.startswith("<!doctype html>")
    assert "24 certain rules for 'x_wins'" in done.stderr
