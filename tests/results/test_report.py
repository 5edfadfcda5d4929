"""The report, the summary and the notebook view: what they say."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plar
from plar.results.reduct import from_dict
from plar.results.report.pages import page
from plar.results.report.ranking import ranked
from plar.results.report.reproduce import python_call, shell_command
from plar.results.report.words import chance_words, half_open, intervals
from support.environment import TIC_TAC_TOE
from support.odd_names import MARKUP_DECISION, MARKUP_NAMES, markup_table
from support.reports import markup_reduct, wide_reduct

pytest.importorskip("jinja2", reason="jinja2 is not installed: pip install 'plar[report]'")


@pytest.fixture
def hostile() -> plar.Reduct:
    return markup_reduct()


@pytest.fixture
def wide() -> plar.Reduct:
    return wide_reduct()


class Text(HTMLParser):
    """What a page says, and the tags that it is made of."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.words: list[str] = []
        self.feed(html.replace("<wbr>", ""))

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def told(reduct: plar.Reduct) -> str:
    return Text(page(reduct).split("<main>")[0]).text + Text(page(reduct).split("<main>")[1]).text


@pytest.mark.parametrize(
    ("table", "options", "words"),
    [
        ({"a": [0, 1], "b": [0, 1], "d": [0, 1]}, {}, ["1 of 2 columns is enough", "50.0 %", "a = b"]),
        (
            {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "d": [0, 1, 1, 0]},
            {},
            ["All 2 columns are needed", "2 columns belong"],
        ),
        ({"a": [0, 1], "d": [1, 1]}, {}, ["No column is chosen", "is the same in every row"]),
        (
            {"a": [0, 0], "d": [0, 1]},
            {},
            ["No column is chosen", "The table is inconsistent", "none says anything about d"],
        ),
        (
            {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "d": [0, 1, 1, 0]},
            {"max_attributes": 1},
            [
                "1 of 2 columns chosen, with a loss",
                "The search was stopped",
                "by the limit of 1 column",
                "core, left out",
            ],
        ),
        (
            {"a": [0, 1], "b": [0, 1], "d": [0, 1]},
            {"include": ["a", "b"]},
            ["Not minimal.", "--minimal", "asked for", "removable"],
        ),
        ({"a": [0, 1, None], "d": [0, 1, 1]}, {}, ["1, 1 cell", "The only column is needed"]),
    ],
    ids=["enough", "all needed", "one decision", "nothing told", "a loss", "asked for", "missing"],
)
def test_words(table: Mapping[str, Any], options: Mapping[str, Any], words: list[str]) -> None:
    text = told(plar.reduce(table, "d", equivalent=True, **options)).replace("\xa0", " ")
    for expected in words:
        assert expected in text


def steps_of(p_values: list[float | None], **changed: Any) -> plar.Reduct:
    """A reduct of steps with such p-values, of three rows for each combination."""
    names = tuple(f"c{j}" for j in range(len(p_values) + 1))
    reduct = plar.reduce({name: [0, 1] for name in names} | {"y": [0, 1]}, "y")
    steps = tuple(replace(reduct.steps[0], attribute=name, p_value=p) for name, p in zip(names, p_values, strict=False))
    return replace(reduct, steps=steps, attributes=names[:-1], n_objects=30, n_combinations=10, **changed)


@pytest.mark.parametrize(
    ("p_values", "words"),
    [
        ([0.0], "The only step beats chance."),
        ([0.0, 0.05], "Both steps beat chance."),
        ([0.0] * 7, "All 7 steps beat chance."),
        ([0.06], "No step beats chance: none is better than with a shuffled target."),
        (
            [0.0] * 4 + [1.0] * 13,
            "4 of 17 steps beat chance; from step 5 on, they are no better than with a shuffled target.",
        ),
        ([0.0, 1.0], "1 of 2 steps beats chance; step 2 is no better than with a shuffled target."),
        ([1.0, 0.0], "Step 1 is no better than with a shuffled target. 1 later step beats chance."),
        (
            [0.0, 0.0, 1.0, 0.0, 1.0, 0.0],
            "The first 2 of 6 steps beat chance; step 3 is no better than with a shuffled target. "
            "2 later steps beat chance.",
        ),
    ],
)
def test_steps_and_chance(p_values: list[float | None], words: str) -> None:
    reduct = steps_of(p_values)
    assert chance_words(reduct) == [words, "There are 3.0 rows for each combination of the chosen values."]
    assert words in str(reduct)
    assert words in Text(reduct._repr_html_()).text
    assert words in told(reduct)


def test_results_of_earlier_versions_say_nothing_of_chance() -> None:
    old = steps_of([None, None])
    for reduct in (old, replace(old, n_combinations=None)):
        for shown in (str(reduct), reduct._repr_html_(), page(reduct).split("<script")[0].split("</style>")[1]):
            assert not re.search(r"chance|p-value|combination of", shown)


@pytest.mark.parametrize(
    ("bins", "words"),
    [
        ("quantile:2", "The p-values are for the binned columns."),
        ("auto", "The p-values are for the binned columns."),
        ("mdlp", "too small, since mdlp chose the cut points by the target."),
        ({"c0": "mdlp"}, "and too small, since mdlp"),
    ],
)
def test_bins_and_chance(bins: Any, words: str) -> None:
    assert words in told(steps_of([0.0], cuts={"c0": (0.5,)}, settings={"bins": bins}))


def test_alpha() -> None:
    reduct = plar.reduce(TIC_TAC_TOE, "x_wins", alpha=0.05)
    assert "Neither of the 2 columns left beats chance at 0.05." in str(reduct)
    text = told(reduct)
    for words in ("7 of 9 columns chosen Together they say less", "The goal was to beat chance.", "Every p-value is 1"):
        assert words in text
    assert "Something is lost" not in text
    assert "something is lost" not in reduct._repr_html_()
    near = replace(reduct, rejected={"middle_left": 0.0501, "middle_right": 1.0})
    assert "The smallest p-values: middle_left 0.0501 and 1 for all others." in told(near)


def test_what_was_not_tested() -> None:
    pair = {"a": [0, 0, 1, 1] * 9, "b": [0, 1, 0, 1] * 9, "c": [0, 1, 1] * 12, "d": [0, 1, 1, 0] * 9}
    assert "2 core columns and 1 asked for were included without a test." in told(plar.reduce(pair, "d", include=["c"]))
    nothing = plar.reduce(pair, "d", alpha=0.05)
    assert "None of the 3 columns beats chance at 0.05." in str(nothing)
    for words in ("No column beats chance", "The search did not begin with the core, since", "core, left out"):
        assert words in told(nothing)
    asked = plar.reduce(pair, "d", alpha=0.05, include=["a"])
    assert "1 column asked for was included without a test." in told(asked)


def test_a_core_that_is_left_out_is_not_called_irreplaceable() -> None:
    pair = {"a": [0, 0, 1, 1] * 9, "b": [0, 1, 0, 1] * 9, "d": [0, 1, 1, 0] * 9}
    share = "says something about d that all other columns together do not, however little."
    whole = plar.reduce(pair, "d")
    assert "core    a, b\nreduct  a, b\n" in str(whole)
    assert "2 columns that nothing can replace" in told(whole)
    nothing = plar.reduce(pair, "d", alpha=0.05)
    half = plar.reduce(pair, "d", max_attributes=1)
    for reduct, words, card in (
        (nothing, "Both core columns are left out: each", "2 columns, 2 left out"),
        (half, "1 of 2 core columns is left out: it", "2 columns, 1 left out"),
        (replace(nothing, core=("a",)), "The only core column is left out: it", "1 column, left out"),
    ):
        assert reduct.core
        assert "\ncore  " not in str(reduct)
        assert f"{words} {share}" in str(reduct)
        assert f"{words} {share}" in told(reduct)
        assert card in told(reduct)
        assert "nothing can replace" not in told(reduct)
    assert "this one loses some of it" in told(half)


def test_what_chance_would_do_as_well_is_passed_over() -> None:
    table = {"id": range(60), "a": [0, 1] * 30, "d": [0, 1] * 29 + [1, 0]}
    with pytest.warns(plar.PlarWarning, match="'id' is different in nearly every row"):
        reduct = plar.reduce(table, "d", alpha=0.05)
    assert reduct.attributes == ("a",)
    assert "passed over: id" in told(reduct)
    # as good but for rounding: tested before a, as it comes first in the table
    step = replace(reduct.steps[0], candidates={"id": 0.5 - 2.0**-32, "a": 0.5})
    assert "passed over: id" in told(replace(reduct, steps=(step,)))
    worse = replace(step, candidates={"id": 0.5 - 2.0**-30, "a": 0.5})
    assert "passed over" not in told(replace(reduct, steps=(worse,))).replace("passed over are", "")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, ""),
        ({"start": "core"}, ""),
        ({"start": "empty"}, "--start empty"),
        ({"alpha": 0.05, "start": "empty"}, "--alpha 0.05"),
        ({"alpha": 0.01, "start": "core"}, "--alpha 0.01 --start core"),
    ],
)
def test_alpha_and_start_are_repeated_where_they_were_asked_for(options: dict[str, Any], words: str) -> None:
    reduct = plar.reduce(TIC_TAC_TOE, "x_wins", **options)
    assert (shell_command(reduct) or "").partition("--measure SCE")[2].strip() == words
    ran: dict[str, Any] = {}
    exec(python_call(reduct), ran)
    assert without_times(ran["r"]) == without_times(reduct)


def test_measure_of_the_users_own() -> None:
    own = plar.Measure("<b>minority", lambda counts: counts.sum() - counts.max(), normaliser=lambda n: n)
    reduct = plar.reduce({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "c": [0, 1, 0, 1], "d": [0, 1, 1, 1]}, "d", measure=own)
    html = page(reduct)
    assert "<b>minority" not in html
    assert "which is not one of plar&#39;s" in html


def test_every_column_has_a_role() -> None:
    rng = np.random.default_rng(2)
    table: dict[str, Any] = {f"noise{j}": rng.integers(0, 4, 200) for j in range(9)}
    table |= {"a": rng.integers(0, 2, 200), "b": rng.integers(0, 2, 200), "one": [7] * 200}
    table |= {"copy": 1 - table["a"], "d": table["a"] + table["b"] + (rng.random(200) < 0.1)}
    reduct = plar.reduce(table, "d", alpha=0.05, equivalent=True)
    roles = {column.name: (column.role, column.of) for column in ranked(reduct)}
    assert list(roles)[:2] == list(reduct.attributes)
    assert set(roles) == set(reduct.conditions)
    assert roles["copy"] == ("same as", "a")
    assert roles["one"] == ("constant", None)
    assert {roles[f"noise{j}"] for j in range(9)} == {("chance", None)}
    assert re.search(r"same as a chosen column +copy \(a\)", str(reduct))
    assert (
        "Not chosen: same as a chosen column (1), no gain beyond chance (9), constant"
        in Text(reduct._repr_html_()).text
    )


def test_columns_without_a_cut_are_neither_constant_nor_equal(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    target = rng.integers(0, 2, 300)
    table: dict[str, Any] = {"x": rng.normal(size=300) + 4 * target, "n1": rng.normal(size=300)}
    table |= {"n2": rng.normal(size=300), "same": ["s"] * 300, "again": [7.5] * 300, "d": target}
    reduct = plar.reduce(table, "d", bins="mdlp", equivalent=True)
    assert reduct.cuts["n1"] == reduct.cuts["n2"] == ()
    assert reduct.equivalent == (("same", "again"),)
    reduct.save(tmp_path / "r.json")
    for result in (reduct, plar.load(tmp_path / "r.json")):
        roles = {column.name: column.role for column in ranked(result)}
        assert roles == {
            "x": "core",
            "n1": "no useful cut",
            "n2": "no useful cut",
            "same": "constant",
            "again": "constant",
        }
        assert re.search(r"no useful cut found +n1, n2\n", str(result))
        assert re.search(r"constant, so in no reduct +same, again\n", str(result))
        assert "no useful cut found (2), constant, so in no reduct (2)" in Text(result._repr_html_()).text
        assert "no useful cut" in told(result)
    # all numbers on one side of the given points
    given = plar.reduce(table, "d", bins={"x": [2.0], "n1": [99.0], "n2": [99.0]}, equivalent=True)
    assert given.equivalent == (("same", "again"),)
    assert {column.role for column in ranked(given) if column.name in ("n1", "n2")} == {"no useful cut"}


def test_the_core_is_ranked_by_gain() -> None:
    rng = np.random.default_rng(6)
    bits = {name: rng.integers(0, 2, 400) for name in ("rare", "often", "half")}
    bits["rare"] = (rng.random(400) < 0.05).astype(int)
    target = np.where(bits["rare"], 2, bits["often"]) + 4 * (bits["half"] & (rng.random(400) < 0.9))
    table = {**bits, "noise": rng.integers(0, 3, 400), "d": target}
    for options in ({}, {"max_attributes": 1}):
        given: dict[str, Any] = options
        reduct = plar.reduce(table, "d", **given)
        gains = reduct.core_significances
        by_gain = sorted(gains, key=lambda name: -gains[name])
        assert tuple(by_gain) != reduct.core
        shown = [column.name for column in ranked(reduct) if column.name in gains]
        assert shown == by_gain
        steps = [step.attribute for step in reduct.steps]
        assert [column.name for column in ranked(reduct) if column.role.startswith("step")] == steps


def test_the_gain_of_the_core_is_shown_in_the_terminal() -> None:
    reduct = plar.reduce({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "d": [0, 1, 1, 0]}, "d")
    assert re.search(r"column  chosen as +gain\n  a +core +0.6931\n  b +core +0.6931\n", str(reduct))


def test_without_a_path_the_page_is_returned() -> None:
    reduct = plar.reduce({"a": [0, 1], "d": [0, 1]}, "d")
    shown: Any = reduct.report()
    assert shown == page(reduct)
    assert shown._repr_html_().startswith('<iframe srcdoc="&lt;!doctype html')
    assert repr(shown).startswith("<HTML page of ")
    assert "reduct" in str(plar.reducts({"a": [0, 1], "d": [0, 1]}, "d").report())


def test_settings_are_those_that_were_changed() -> None:
    html = page(plar.reduce({"a": [0, 1], "d": [0, 1]}, "d", max_attributes=1))
    shown = re.findall(r"<dt><code>(\w+)</code></dt>", html)
    assert shown == ["measure", "engine", "max_attributes"]


def test_bins_are_shown_as_intervals() -> None:
    reduct = plar.reduce({"a": [1.0, 2.0, 3.0, 4.0], "d": [0, 0, 1, 1]}, "d", bins={"a": [1.5, 2.5]})
    text = told(reduct)
    for interval in ("≤ 1.5 | 1.5 to 2.5 | > 2.5", "All columns, ranked"):
        assert interval in text


def test_cut_points_have_no_exponent_that_nobody_reads() -> None:
    assert intervals([20190801.0, 20201215.0]) == ["≤ 20190801", "20190801 to 20201215", "> 20201215"]
    assert half_open([1_234_567.4, 1e9]) == ["≤ 1234567", "(1234567, 1000000000]", "> 1000000000"]
    assert half_open([1e-7, 1e18]) == ["≤ 1e-07", "(1e-07, 1e+18]", "> 1e+18"]
    assert half_open([0.00012345]) == ["≤ 0.00012345", "> 0.00012345"]


def test_report_of_a_saved_reduct_is_the_same(tmp_path: Path, hostile: plar.Reduct) -> None:
    hostile.save(tmp_path / "r.json")
    plar.load(tmp_path / "r.json").report(tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == page(replace(hostile, equivalent=None))


def test_report_is_written_whole_or_not_at_all(tmp_path: Path, hostile: plar.Reduct) -> None:
    with pytest.raises(plar.TableError, match="Cannot write"):
        hostile.report(tmp_path / "no folder" / "r.html")
    with pytest.raises(plar.TableError, match="is a directory"):
        hostile.report(tmp_path)
    with pytest.raises(plar.TableError, match=r"'r\.pdf'; name it \.html"):
        hostile.report("r.pdf")
    hostile.report(tmp_path / "r.html")
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]


def without_times(reduct: plar.Reduct) -> Any:
    told = json.loads(json.dumps(reduct.to_dict()))
    return {**told, "seconds": {}, "steps": [{**step, "seconds": 0} for step in told["steps"]]}


@pytest.mark.parametrize(
    "reading", [{}, {"header": False, "separator": ";", "decimal": ","}], ids=["plain", "read_table"]
)
def test_the_command_and_the_call_give_the_same_reduct(tmp_path: Path, reading: dict[str, Any]) -> None:
    names = ["the $HOME", "b c", "'q'", "w\x1b[1m", "y", "unused"]
    rows: list[list[Any]] = [[i % 3, i % 5, "?" if i % 7 == 0 else i % 2, 1 + i % 2, i % 4, i] for i in range(60)]
    between = reading.get("separator", ",")
    file = tmp_path / "it's a table.csv"
    file.write_text("\n".join(between.join(map(str, row)) for row in [names, *rows][bool(reading) :]), encoding="utf-8")
    if reading:
        names = [f"x{j}" for j in range(6)]
    *conditions, weights, decision, _ = names
    table: Any = {
        "conditions": conditions,
        "na": "?",
        "missing": "drop",
        "weights": weights,
        "bins": {names[1]: [1.5, 2.5]},
    }
    search: Any = {"measure": "LCE", "include": [names[2]], "max_attributes": 2, "minimal": True}
    search |= {"alpha": 0.2, "start": "core"} if reading else {}
    if reading:
        reduct = plar.reduce(plar.read_table(file, decision, **table, **reading), **search)
    else:
        reduct = plar.reduce(file, decision, **table, **search)
    blocks = re.findall(r"<pre><code>(.*?)</code></pre>", page(reduct), re.DOTALL)
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
    assert without_times(from_dict(json.loads(done.stdout))) == without_times(reduct)
    assert without_times(ran["r"]) == without_times(reduct)


def test_the_command_line_can_give_its_own_command(hostile: plar.Reduct) -> None:
    assert "<code>plar reduce &#39;&lt;b&gt;&#39; --x</code>" in page(hostile, "plar reduce '<b>' --x")


def test_notebook_table_is_small_and_inert(hostile: plar.Reduct, wide: plar.Reduct) -> None:
    shown = Text(hostile._repr_html_())
    assert shown.tags == {"table", "caption", "thead", "tbody", "tr", "th", "td", "b", "br", "span", "bdi"}
    assert f"18 columns → 5 for {MARKUP_DECISION}" in shown.text
    everything = plar.reduce(markup_table(), MARKUP_DECISION, include=list(MARKUP_NAMES))._repr_html_()
    for name in MARKUP_NAMES[:9]:
        assert name in Text(everything).words
    many = plar.reduce({f"c{j}": [j % 2, 0] for j in range(40)} | {"y": [0, 1]}, "y", include=range(40))
    assert "… and 10 more" in Text(many._repr_html_()).text
