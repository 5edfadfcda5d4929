"""The result of `plar.select`: its table, file, picture, page and notebook view."""

from __future__ import annotations

import io
import json
import re
from dataclasses import fields, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import plar
from plar.results.report.pages import selection_page
from plar.results.report.reproduce import select_call, select_command
from support.odd_names import MARKUP_DECISION, MARKUP_NAMES
from support.reports import markup_selection, wide_selection, with_numbers

pytest.importorskip("jinja2", reason="jinja2 is not installed: pip install 'plar[report]'")
pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'plar[report]'")

#: what results of `plar.select` never say
THEORY = re.compile(r"\bcore\b|\breducts?\b|Θ|\bdecision\b", re.IGNORECASE)


def bits(n: int = 256) -> dict[str, list[Any]]:
    """Two bits, a copy of one, and a target that both together make."""
    a = [i & 1 for i in range(n)]
    b = [i >> 1 & 1 for i in range(n)]
    target = ["low" if x + y == 0 else "high" for x, y in zip(a, b, strict=True)]
    return {"a": a, "b": b, "copy": b, "noise": [i >> 2 & 1 for i in range(n)], "t": target}


class Text(HTMLParser):
    """The words and tags of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: list[str] = []
        self._open = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self._open = tag

    def handle_data(self, data: str) -> None:
        if self._open not in ("style", "script"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


# ------------------------------------------------------------------------------------------------------------- shares


def test_shares_of_a_column() -> None:
    shares = plar.select(bits(), "t").shares("a")
    assert shares.columns == ["value", "rows", "high", "low"]
    assert shares.rows() == [("0", 128, 0.5, 0.5), ("1", 128, 1.0, 0.0)]


def test_shares_of_other_columns_are_refused() -> None:
    selection = plar.select(bits(), "t")
    with pytest.raises(plar.UnknownNameError, match="Column 'noise' was not selected"):
        selection.shares("noise")
    with pytest.raises(plar.UnknownNameError, match="Unknown selected column 'nois'"):
        selection.shares("nois")


def test_classes_that_are_called_as_the_other_columns() -> None:
    selection = plar.select({"a": ["rows", "value", "\udcff"] * 30, "t": ["rows", "value", "\udcff"] * 30}, "t")
    assert selection.shares("a").columns == ["value", "rows", "rows_", "value_", "\\udcff"]
    assert selection.shares("a")["value"].to_list() == ["rows", "value", "\\udcff"]


# -------------------------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_a_result_survives_its_file(tmp_path: Path, kind: str) -> None:
    for i, selection in enumerate([markup_selection(kind), plar.select(bits(), "t", max_columns=1, bins={"a": [0.5]})]):
        selection.save(tmp_path / f"{i}.json")
        assert plar.load(tmp_path / f"{i}.json") == selection
        text = (tmp_path / f"{i}.json").read_text()
        (tmp_path / f"{i}.json").write_text(text.replace('"n_rows": ', '"n_rows": 1'))
        with pytest.raises(plar.TableError, match="its checksum does not match"):
            plar.load(tmp_path / f"{i}.json")


def test_every_field_that_does_not_fit_is_refused_in_one_line(tmp_path: Path) -> None:
    saved = plar.select(bits(), "t").to_dict()
    path = tmp_path / "s.json"
    names = [field.name for field in fields(plar.Selection)]
    for name in names:
        faults: list[dict[str, Any]] = [{**saved, name: object}, {key: saved[key] for key in saved if key != name}]
        for fault in faults:
            path.write_text(json.dumps(fault, default=lambda _: [{"odd": 1}]))
            with pytest.raises(plar.TableError, match="' is missing or does not fit") as refused:
                plar.load(path)
            assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"columns": ["a", "a"]}, "columns"),
        ({"columns": ["t", "b"]}, "columns"),
        ({"columns": ["b", "a"]}, "steps"),
        ({"rejected": {"a": {"p_value": 0.5, "given": []}}}, "rejected"),
        ({"left_out": {"z": "constant"}}, "left_out"),
        ({"by_values": {}}, "by_values"),
        ({"given": "some"}, "given"),
        ({"target_type": "auto"}, "target_type"),
        ({"settings": {"alpha": "x"}}, "alpha"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, wrong: dict[str, Any], name: str) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps({**plar.select(bits(), "t").to_dict(), **wrong}))
    with pytest.raises(plar.TableError, match=f"'{name}'"):
        plar.load(path)


def test_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    kinds: list[Any] = ["forest", 3, ["selection"], {}]
    for kind in kinds:
        (tmp_path / "s.json").write_text(json.dumps({"kind": kind}))
        with pytest.raises(plar.TableError, match=r"must be one of: .*relevant, rules, selection; or none"):
            plar.load(tmp_path / "s.json")


# ------------------------------------------------------------------------------------------------------------- picture


def drawn(figure: Any) -> int:
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=40)
    return len(file.getvalue())


def test_the_picture_has_a_bar_for_each_column() -> None:
    selection = plar.select(bits(), "t", include=["noise"])
    axes: Any = selection.plot().axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["noise", "a", "b"]
    assert [patch.get_width() for patch in axes.patches] == [0.0, *(step.share for step in selection.steps)]
    assert [text.get_text() for text in axes.texts] == ["included without a test", "p <0.001", "p <0.001"]
    assert axes.get_title(loc="left") == "3 of 4 columns selected for t"
    assert not THEORY.search(" ".join([axes.get_xlabel(), *(t.get_text() for t in axes.get_legend().get_texts())]))


def test_the_picture_of_odd_names_and_of_nothing() -> None:
    assert drawn(markup_selection().plot()) > 1000
    assert drawn(plar.select({"a": [0, 1] * 20, "t": [0, 0, 1, 1] * 10}, "t").plot()) > 1000


# ---------------------------------------------------------------------------------------------------------------- page


def test_the_page_says_what_was_selected_and_what_was_not() -> None:
    selection = replace(plar.select(bits(), "t", include=["noise"]), notes=("2 rows without a target were left out.",))
    text = Text(selection_page(selection)).text
    assert "3 of 4 columns predict t" in text
    assert "1 column was included without a test." in text
    assert "2 rows without a target were left out." in text
    assert "says nothing more beside b" in text
    assert "plar.select(table, target='t', include=['noise'])" in text
    assert "50.0 %" in text.replace("\xa0", " ")


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_words_of_the_theory_are_not_used(kind: str) -> None:
    selection = plar.select(bits(), "t", include=["noise"], max_columns=2)
    if kind == "numbers":
        selection = with_numbers(selection)
    for page in (selection_page(selection), selection._repr_html_(), str(selection)):
        assert not THEORY.search(Text(page).text)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_columns": 1}, "With the limit of 1 column, 2 other columns were not decided."),
        (
            {"time_limit": 1e-9},
            "The search was stopped, by its time limit or by hand, before all columns",
        ),
        ({"alpha": 1e-300}, "No column is better than chance (permutation test, alpha 1e-300)."),
    ],
)
def test_why_no_more_were_selected(options: dict[str, Any], words: str) -> None:
    selection = plar.select(bits(), "t", **options)
    assert words in Text(selection_page(selection)).text
    assert words in Text(selection._repr_html_()).text


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_names_and_values_do_not_become_tags(kind: str) -> None:
    selection = markup_selection(kind)
    assert len(selection.columns) > 5
    calm = with_numbers(plar.select(bits(), "t")) if kind == "numbers" else plar.select(bits(), "t")
    for page, calm_page in (
        (selection_page(selection, "plar select '</pre><script>'"), selection_page(calm)),
        (selection._repr_html_(), calm._repr_html_()),
    ):
        extra = {"details", "summary", "wbr", "span"}  # of long names and lists
        assert set(Text(page).tags) <= set(Text(calm_page).tags) | extra
        assert Text(page).tags.count("script") == Text(calm_page).tags.count("script")
        for name in (*MARKUP_NAMES[:6], MARKUP_DECISION):
            assert name not in page.replace("<!doctype", "")


def test_every_class_has_its_colour() -> None:
    table = {"a": [i % 30 for i in range(900)], "t": [f"class {i % 30}" for i in range(900)]}
    page = selection_page(plar.select(table, "t", bins=None))
    assert "21 others" in Text(page).text
    assert {f"c{k}" for k in range(10)} == set(re.findall(r'class="(c[0-9]+)"', page))


def test_the_report_is_written_whole(tmp_path: Path) -> None:
    wide_selection().report(tmp_path / "s.html", command="plar select wide.csv -d y")
    assert "plar select wide.csv -d y" in (tmp_path / "s.html").read_text()
    page = wide_selection().report()
    assert page is not None
    assert page.startswith("<!doctype html>")


def test_a_file_is_named_in_the_command(tmp_path: Path) -> None:
    path = tmp_path / "b.csv"
    pl.DataFrame(bits()).write_csv(path)
    selection = plar.select(path, "t", bins=None, exclude=["noise", "a"], target_bins=None, alpha=0.1)
    text = Text(selection_page(selection)).text
    assert f"plar select {path} --target t --alpha 0.1 --exclude noise,a --bins none" in text
    assert f"plar.select( {str(path)!r}, target='t', alpha=0.1, exclude=['noise', 'a'], bins=None, )" in text


def test_quartiles_are_drawn_on_one_scale() -> None:
    page = selection_page(markup_selection("numbers"))
    assert "lower quartile" in Text(page).text
    lefts = [float(x) for x in re.findall(r'<rect class="c0" x="([0-9.]+)%"', page)]
    assert lefts
    assert all(np.array(lefts) <= 99.5)
    assert "nan" not in page


def test_the_call_without_bins(tmp_path: Path) -> None:
    pl.DataFrame(bits()).write_csv(tmp_path / "t.csv")
    for none in (None, {}, {"a": None}):
        selection = plar.select(tmp_path / "t.csv", "t", bins=none)
        assert "bins=None" in select_call(selection)
        command = select_command(selection)
        assert command is not None
        assert "--bins none" in command
