"""The result of `plar.relevant`: its table, file, picture and page; and the table of a reduct."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any

import pytest

import plar
from plar.results.report.pages import relevant_page
from support.odd_names import MARKUP_DECISION, MARKUP_NAMES, markup_table

pytest.importorskip("jinja2", reason="jinja2 is not installed: pip install 'plar[report]'")
pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'plar[report]'")

#: two bits, a copy of one, and a third that says nothing
BITS: dict[str, list[Any]] = {name: [i >> j & 1 for i in range(64)] for j, name in enumerate(["a", "b", "noise"])}
TABLE = {**BITS, "copy": BITS["a"], "d": [2 * a + b for a, b in zip(BITS["a"], BITS["b"], strict=True)]}
NOTHING = {"a": BITS["a"], "d": BITS["b"]}


def test_a_row_for_each_column() -> None:
    relevant = plar.relevant(TABLE, "d")
    frame = relevant.to_frame()
    assert frame.select("column", "layer", "rank", "role").rows() == [
        ("a", 1, 1, "relevant"),
        ("b", 1, 2, "relevant"),
        ("noise", None, None, "rejected"),
        ("copy", 2, 3, "relevant"),
    ]
    assert frame["p_value"].to_list()[2] == relevant.rejected["noise"]
    assert frame["reason"].to_list()[2] == "no better than a shuffled target"


def test_what_was_included_has_no_p_value() -> None:
    frame = plar.relevant(TABLE, "d", include=["noise"]).to_frame()
    assert frame.row(2)[3:] == ("included", None, None, "included without a test")


@pytest.mark.parametrize("table", [TABLE, NOTHING])
def test_a_result_survives_its_file(tmp_path: Path, table: dict[str, Any]) -> None:
    relevant = plar.relevant(table, "d")
    relevant.save(tmp_path / "r.json")
    assert plar.load(tmp_path / "r.json") == relevant
    saved = relevant.to_dict()
    for name in saved:
        if name != "kind":
            (tmp_path / "r.json").write_text(json.dumps({**saved, name: [{"odd": 1}]}))
            with pytest.raises(plar.TableError, match="is missing or does not fit"):
                plar.load(tmp_path / "r.json")
    (tmp_path / "r.json").write_text(json.dumps({**saved, "layers": [], "first": None}))
    with pytest.raises(plar.TableError, match="'first'"):
        plar.load(tmp_path / "r.json")


def test_reducts_survive_their_file(tmp_path: Path) -> None:
    reducts = plar.reducts(TABLE, "d", costs={"a": 3})
    reducts.save(tmp_path / "r.json")
    assert plar.load(tmp_path / "r.json").to_dict() == reducts.to_dict()
    (tmp_path / "r.json").write_text(json.dumps({**reducts.to_dict(), "reducts": [["z"]]}))
    with pytest.raises(plar.TableError, match="'reducts' is missing or does not fit"):
        plar.load(tmp_path / "r.json")


def test_the_picture_has_a_bar_for_each_column() -> None:
    relevant = plar.relevant(TABLE, "d")
    axes: Any = relevant.plot().axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b", "copy"]
    gains = [step.significance for layer in relevant.layers for step in layer.steps]
    assert [patch.get_width() for patch in axes.patches] == gains
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["layer 1", "layer 2"]
    assert axes.get_title(loc="left") == "3 of 4 columns beat chance"
    assert plar.relevant(NOTHING, "d").plot().axes[0].get_title(loc="left") == "No column beats chance"


def test_the_page() -> None:
    page = relevant_page(plar.relevant(TABLE, "d", include=["noise"]))
    assert "<h1>3 of 4 columns beat chance</h1>" in page
    assert "included without a test" in page
    call = "r = plar.relevant(table, decision='d', measure='SCE', include=['noise'], alpha=0.05)"
    assert escape(call).replace("&#x27;", "&#39;") in page


def test_names_do_not_become_tags() -> None:
    page = relevant_page(plar.relevant(markup_table(), MARKUP_DECISION, alpha=0.5), "</pre><script>alert(3)</script>")
    for name in (*MARKUP_NAMES[:6], MARKUP_DECISION, "<script>alert(3)"):
        assert name not in page.replace("<!doctype", "")


def test_the_table_of_a_reduct() -> None:
    columns = {**TABLE, "constant": [7] * 64}
    frame = plar.reduce(columns, "d", include=["noise"], equivalent=True).to_frame()
    assert frame.select("column", "rank", "role", "like").rows() == [
        ("a", 3, "selected", None),
        ("b", 1, "core", None),
        ("noise", 2, "included", None),
        ("copy", None, "same as", "a"),
        ("constant", None, "constant", None),
    ]
    assert [value is None for value in frame["p_value"]] == [False, True, True, True, True]
