"""The pages in a real browser: they run no script of the data, load nothing, sort, fit and print."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any

import pytest

import plar
from plar.results.report.pages import page, relevant_page, selection_page
from plar.results.report.ranking import ranked
from plar.results.report.words import visible
from support.browser import Browser, exact_numbers, logging_browser, luminance
from support.environment import TIC_TAC_TOE
from support.odd_names import MARKUP_DECISION, markup_table
from support.reports import markup_reduct, markup_selection, wide_reduct, wide_selection

pytest.importorskip("jinja2", reason="jinja2 is not installed: pip install 'plar[report]'")


@pytest.fixture
def hostile() -> plar.Reduct:
    return markup_reduct()


@pytest.fixture
def wide() -> plar.Reduct:
    return wide_reduct()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with logging_browser(tmp_path_factory.mktemp("report")) as started:
        yield started


def test_the_browser_sees_what_a_bad_page_does(browser: Browser) -> None:
    browser.open("<script>console.error('told')</script><img src='http://127.0.0.1:9/'>")
    assert browser.requests == ["http://127.0.0.1:9/"]
    assert any("told" in line for line in browser.console)


def test_no_errors_and_no_requests(browser: Browser, hostile: plar.Reduct, wide: plar.Reduct) -> None:
    for reduct in (hostile, wide, plar.reduce({"a": [0, 1], "d": [0, 1]}, "d")):
        browser.open(page(reduct))
        assert browser.console == []
        assert browser.requests == []
        assert browser.js("return document.compatMode") == "CSS1Compat"


def test_policy_keeps_other_scripts_from_running(browser: Browser, hostile: plar.Reduct) -> None:
    browser.open(page(hostile).replace("</footer>", "</footer><script>window.ran = true</script><img src='x.png'>"))
    assert browser.js("return window.ran") is None
    assert len([line for line in browser.console if "Content Security Policy" in line]) == 2


def test_hostile_names_are_shown_and_do_nothing(browser: Browser, hostile: plar.Reduct) -> None:
    from selenium.common.exceptions import NoAlertPresentException

    for scripts in (False, True):
        browser.open(page(hostile, "plar reduce '</pre><script>alert(3)</script>'"), scripts=scripts)
        with pytest.raises(NoAlertPresentException):
            _ = browser.driver.switch_to.alert.text
        browser.do("Emulation.setScriptExecutionDisabled", value=False)
        assert browser.js("return [document.scripts.length, document.images.length]") == [2, 0]
        assert browser.js("return document.querySelectorAll('h1, i').length") == 1
        shown = browser.js(
            "return [...document.querySelectorAll('#columns-table tbody th')]"
            ".map(th => (th.querySelector('details > bdi') || th.querySelector('bdi')).textContent)"
        )
        assert shown == [visible(column.name) for column in ranked(hostile)]
        assert browser.js("return getComputedStyle(document.querySelector('bdi')).unicodeBidi") == "isolate"
    assert "<script>alert(1)</script>" in browser.cells("columns-table", 1)
    assert "</pre><script>alert(3)</script>" in browser.js("return document.querySelector('pre').textContent")
    browser.click("#columns-table details summary")
    assert browser.js("return document.querySelector('#columns-table details > bdi').innerText.length") == 10_000


def test_the_page_says_the_same_without_scripts(browser: Browser, hostile: plar.Reduct, wide: plar.Reduct) -> None:
    rows = "return ['candidates-table', 'columns-table'].map(id => document.getElementById(id).tBodies[0].innerHTML)"
    for reduct in (hostile, wide, plar.reduce(TIC_TAC_TOE, "x_wins", measure="PR")):
        seen = []
        for scripts in (False, True):
            browser.open(page(reduct), scripts=scripts)
            browser.do("Emulation.setScriptExecutionDisabled", value=False)
            seen.append([exact_numbers(re.sub(r"\s*\n\s*", "", html)) for html in browser.js(rows)])
        assert seen[0] == seen[1]


def test_columns_sort_by_number_and_by_name(browser: Browser, wide: plar.Reduct) -> None:
    browser.open(page(wide))
    sizes = [column.n_values or 0 for column in ranked(wide)]
    assert browser.cells("columns-table", 5) == [str(n) for n in sizes[:50]]
    for way, expected in (("descending", sorted(sizes, reverse=True)), ("ascending", sorted(sizes))):
        browser.click("#columns-table [data-sort=values]")
        assert browser.cells("columns-table", 5) == [str(n) for n in expected[:50]]
        states = browser.js(
            "return [...document.querySelectorAll('#columns-table th[aria-sort]')].map(h => h.ariaSort)"
        )
        assert states == ["none"] * 5 + [way] + ["none"] * 2
    browser.click("#columns-table [data-sort=name]")
    assert browser.cells("columns-table", 1)[:12] == [f"c{j}" for j in range(12)]


def test_all_rows_can_be_shown_and_searched(browser: Browser, wide: plar.Reduct) -> None:
    browser.open(page(wide))
    status = "return document.getElementById('columns-table-status').textContent"
    assert browser.js(status) == "The first 50 of 120."
    browser.click("[data-all=columns-table]")
    assert browser.cells("columns-table", 1) == [column.name for column in ranked(wide)]
    browser.click("#columns-table [data-sort=place]")
    browser.driver.find_element("css selector", "[data-find=columns-table]").send_keys("C11")
    assert browser.cells("columns-table", 1) == ["c11", *(f"c11{k}" for k in range(10))]
    assert browser.js(status) == "11 columns."


def test_candidates_of_every_round(browser: Browser, wide: plar.Reduct) -> None:
    browser.open(page(wide))
    browser.click("[data-all=candidates-table]")
    for k, step in enumerate(wide.steps):
        browser.js(
            "const s = document.getElementById('round'); s.value = arguments[0];s.dispatchEvent(new Event('change'))",
            k,
        )
        exact = browser.js(
            "return [...document.querySelectorAll('#candidates-table tbody tr')]"
            ".map(r => [r.querySelector('bdi').textContent, Number(r.cells[2].title)])"
        )
        assert dict(exact) == step.candidates
        assert [value for _, value in exact] == sorted(step.candidates.values(), reverse=True)
        chosen = browser.js("return document.querySelector('#candidates-table tr.taken bdi').textContent")
        assert chosen == step.attribute


def test_light_dark_and_paper(browser: Browser, hostile: plar.Reduct) -> None:
    back, text = luminance_of(browser, hostile)
    assert back > 240 > 60 > text
    back, text = luminance_of(browser, hostile, dark=True)
    assert back < 40 < 200 < text
    back, text = luminance_of(browser, hostile, dark=True, media="print")
    assert back > 240 > 60 > text
    assert browser.js("return [...document.querySelectorAll('.tools label, .all')].some(e => e.offsetHeight)") is False


def luminance_of(browser: Browser, reduct: plar.Reduct, **how: Any) -> tuple[float, float]:
    browser.open(page(reduct), **how)
    return luminance(browser)


def test_fits_a_phone(browser: Browser, hostile: plar.Reduct, wide: plar.Reduct) -> None:
    for reduct in (hostile, wide):
        browser.open(page(reduct), width=375)
        assert browser.js("return document.documentElement.scrollWidth") <= 375
        assert browser.js("return document.querySelector('.phone svg').clientWidth") > 300


def test_names_break_between_words_only(browser: Browser) -> None:
    table = {f"sensor_group/channel_{j}_temperature": [j % 2, 0, 1] for j in range(3)} | {"d": [0, 1, 2]}
    browser.open(page(plar.reduce(table, "d", include=[0, 1, 2])), width=375)
    pieces = browser.js(
        "const found = []; for (const name of document.querySelectorAll('tbody th bdi'))"
        "for (const text of name.childNodes) if (text.data) { const r = document.createRange();"
        "r.selectNode(text); found.push(r.getClientRects().length); } return found"
    )
    assert len(pieces) > 20
    assert set(pieces) == {1}


def test_bars_stand_beside_their_numbers(browser: Browser, wide: plar.Reduct) -> None:
    browser.open(page(wide), width=375)
    offsets = browser.js(
        "return [...document.querySelectorAll('td.wide svg')].map(bar => { const r = document.createRange();"
        "r.selectNodeContents(bar.closest('tr').querySelector('td.n[title]')); const n = r.getBoundingClientRect(),"
        "b = bar.getBoundingClientRect(); return Math.abs((n.top + n.bottom) / 2 - (b.top + b.bottom) / 2) })"
    )
    assert max(offsets) < 3


def test_prints(browser: Browser, wide: plar.Reduct) -> None:
    browser.open(page(wide))
    pdf = base64.b64decode(browser.do("Page.printToPDF")["data"])
    assert pdf.startswith(b"%PDF")
    assert pdf.count(b"/Type /Page\n") > 1


def test_accessible(browser: Browser, wide: plar.Reduct) -> None:
    browser.open(page(wide))
    nodes = browser.do("Accessibility.getFullAXTree")["nodes"]
    named = {(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if "role" in node}
    assert not [
        role for role, name in named if role in ("button", "searchbox", "combobox", "table", "image") and not name
    ]
    assert ("heading", "What is proven") in named
    assert ("button", "Values") in named


@pytest.fixture
def others() -> list[str]:
    """Pages of other results."""
    relevant = plar.relevant(markup_table(), MARKUP_DECISION, alpha=0.5)
    selections = [markup_selection(), markup_selection("numbers"), wide_selection()]
    return [relevant_page(relevant), *map(selection_page, selections)]


def test_other_pages_run_nothing_and_fit(browser: Browser, others: list[str]) -> None:
    for html in others:
        browser.open(html)
        assert browser.console == []
        assert browser.requests == []
        assert browser.js("return [document.scripts.length, document.images.length]") == [2, 0]
        browser.open(html, width=375)
        assert browser.js("return document.documentElement.scrollWidth") <= 375
        browser.open(html, dark=True)
        back, text = luminance(browser)
        assert back < 40 < 200 < text


def test_other_pages_say_the_same_without_scripts(browser: Browser, others: list[str]) -> None:
    for html in others:
        seen = []
        for scripts in (False, True):
            browser.open(html, scripts=scripts)
            browser.do("Emulation.setScriptExecutionDisabled", value=False)
            rows = browser.js("return document.getElementById('all-table').tBodies[0].innerHTML")
            seen.append(exact_numbers(re.sub(r"\s*\n\s*", "", rows)))
        assert seen[0] == seen[1]


def test_other_pages_are_sorted_and_searched(browser: Browser) -> None:
    selection = wide_selection()
    browser.open(selection_page(selection))
    browser.click("[data-all=all-table]")
    browser.click("#all-table [data-sort=value]")
    alone = sorted((-share, selection.conditions.index(name), name) for name, share in selection.alone.items())
    assert browser.cells("all-table", 1)[:3] == [name for _, _, name in alone[:3]]
    browser.driver.find_element("css selector", "[data-find=all-table]").send_keys("CAUSE")
    assert browser.cells("all-table", 1) == ["cause"]
