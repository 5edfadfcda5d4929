"""The report shows names and values as text: none becomes a tag or an attribute."""

from __future__ import annotations

from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path

import pytest

import plar
from support.odd_names import NAMES, odd_table


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


@pytest.mark.skipif(find_spec("jinja2") is None, reason="the report needs jinja2")
@pytest.mark.parametrize(
    "first", ["<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "</script><b>", "\x1b[31m"]
)
def test_the_report_escapes(tmp_path: Path, first: str) -> None:
    pytest.importorskip("matplotlib", reason="the report needs matplotlib")
    names = [first, *(name for name in NAMES if name != first)]
    calm, page = _Page(), _Page()
    plar.reduce(odd_table([f"n_{j}" for j in range(len(names))]), "class", equivalent=True).report(
        tmp_path / "calm.html"
    )
    plar.reduce(odd_table(names), "class", equivalent=True).report(tmp_path / "r.html")
    calm.feed((tmp_path / "calm.html").read_text())
    text = (tmp_path / "r.html").read_text()
    page.feed(text)
    page.close()
    assert first not in text
    assert {tag for tag, _ in page.tags} <= {tag for tag, _ in calm.tags}, "names have become tags"
    assert [t for t, _ in page.tags].count("script") == [t for t, _ in calm.tags].count("script")
    assert not [a for _, given in page.tags for a in given if a.startswith("onerror")]


@pytest.mark.skipif(find_spec("jinja2") is None, reason="the report needs jinja2")
def test_the_other_reports_escape(tmp_path: Path) -> None:
    """Of select, relevant and rules, with every name selected and every value shown; and they survive their files."""
    names = [name for name in NAMES if name not in ("a,b", "y")]
    selection = plar.select(odd_table(names), "class", include=names[:40], bins=None, max_columns=40)
    relevant = plar.relevant(odd_table(names), "class", include=names[:40])
    rules = plar.rules(odd_table(names), "class", kind="possible")
    for result in (selection, relevant, rules):
        result.report(tmp_path / "r.html")
        page = _Page()
        page.feed((tmp_path / "r.html").read_text())
        page.close()
        tags = [tag for tag, _ in page.tags]
        assert tags.count("script") == 2
        assert "img" not in tags
        assert not [a for _, given in page.tags for a in given if a.startswith("on")]
        result.save(tmp_path / "r.json")
        assert plar.load(tmp_path / "r.json") == result
        assert result.to_frame().height == len(result if result is rules else names)
    for name in selection.columns:
        assert selection.shares(name)["rows"].sum() == 8
