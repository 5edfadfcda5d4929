"""The page of rules in a real browser: it is filtered, ordered and opened by mouse and keys, fits, and runs nothing."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator

import pytest

import plar
from plar.errors import printable
from plar.results.report.pages import rules_page
from plar.results.report.rule_facts import rules_by_class
from support.browser import Browser, logging_browser, luminance
from support.environment import EXAMPLES
from support.odd_names import MARKUP_NAMES
from support.reports import many_rules, markup_rules

pytest.importorskip("jinja2", reason="jinja2 is not installed: pip install 'plar[report]'")

#: the numbers of the rules that are seen, in their order on the page
SHOWN = (
    "return [...document.querySelectorAll('tr[data-rule]')]"
    ".filter(row => !row.hidden && !row.closest('section').hidden)"
    ".map(row => Number(row.cells[0].textContent))"
)
STATUS = "return document.getElementById('rule-status').textContent"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with logging_browser(tmp_path_factory.mktemp("rules")) as started:
        yield started


@pytest.fixture
def many() -> plar.Rules:
    return many_rules()


def write(browser: Browser, text: str) -> None:
    box = browser.driver.find_element("css selector", "#rule-find")
    box.clear()
    box.send_keys(text)


def choose(browser: Browser, menu: str, value: str) -> None:
    browser.click(f"#rule-{menu} option[value='{value}']")


def test_no_errors_and_no_requests(browser: Browser, many: plar.Rules) -> None:
    noise = plar.rules({"a": [0, 1, 2] * 40, "y": [0, 1] * 60}, "y")
    for rules in (many, markup_rules(), noise, plar.rules({"a": [0, 1], "y": ["b", "b"]}, "y")):
        browser.open(rules_page(rules))
        assert browser.console == []
        assert browser.requests == []
        assert browser.js("return [document.scripts.length, document.images.length]") == [2, 0]
        assert browser.js("return document.compatMode") == "CSS1Compat"


def test_hostile_names_and_values_are_shown_and_do_nothing(browser: Browser) -> None:
    from selenium.common.exceptions import NoAlertPresentException

    rules = markup_rules()
    for scripts in (False, True):
        browser.open(rules_page(rules, "plar rules '</pre><script>alert(3)</script>'"), scripts=scripts)
        with pytest.raises(NoAlertPresentException):
            _ = browser.driver.switch_to.alert.text
        browser.do("Emulation.setScriptExecutionDisabled", value=False)
        assert browser.js("return document.querySelectorAll('h1, i, img').length") == 1
    text = browser.js("return document.body.textContent")
    for name in MARKUP_NAMES[:3]:
        assert f"= {printable(name)}" in text
    options = browser.js("return [...document.querySelectorAll('#rule-class option')].map(o => o.textContent)")
    assert options == ["all", *(printable(str(name)) for name in rules.decisions)]
    write(browser, "<script>alert(1)")
    assert 0 < len(browser.js(SHOWN)) < len(rules)


def test_rules_are_found_by_column_and_value(browser: Browser, many: plar.Rules) -> None:
    browser.open(rules_page(many))
    assert browser.js(SHOWN) == list(range(len(many)))
    assert browser.js(STATUS) == f"{len(many)} rules."
    write(browser, "C1  c2")
    of_both = [
        number
        for number, rule in enumerate(many)
        if {"c1", "c2"} <= {condition.column for condition in rule.conditions}  # and not xc1
    ]
    assert browser.js(SHOWN) == of_both
    assert browser.js(STATUS) == f"{len(of_both)} of {len(many)} rules."
    write(browser, "no such column")
    assert browser.js(SHOWN) == []
    assert browser.js(STATUS) == "No rule fits."
    write(browser, " ")
    assert len(browser.js(SHOWN)) == len(many)


def test_a_word_is_found_within_a_name_but_not_within_a_word(browser: Browser) -> None:
    sex = ["male", "female"] * 60
    top_left = [i // 2 % 2 for i in range(120)]
    target = [f"{s}{t}" for s, t in zip(sex, top_left, strict=True)]
    rules = plar.rules({"sex": sex, "top_left": top_left, "y": target}, "y", kind="certain")
    browser.open(rules_page(rules))
    for word, n in (("male", 2), ("female", 2), ("ale", 0), ("left", 4), ("= 1", 2)):
        write(browser, word)
        assert len(browser.js(SHOWN)) == n, word


def test_a_class_is_chosen(browser: Browser, many: plar.Rules) -> None:
    browser.open(rules_page(many))
    for number, places in enumerate(rules_by_class(many)):
        choose(browser, "class", str(number))
        assert browser.js(SHOWN) == places
        heads = browser.js("return [...document.querySelectorAll('.of-class h3')].filter(h => h.offsetHeight).length")
        assert heads == 1
    write(browser, "xc1")
    assert len(browser.js(SHOWN)) == sum("xc1" in str(many[place]) for place in places)
    choose(browser, "class", "")
    assert len(browser.js(SHOWN)) == sum("xc1" in str(rule) for rule in many)


def test_rules_are_ordered(browser: Browser) -> None:
    rules = plar.rules(EXAMPLES / "passengers.csv", "survived")
    assert len({rule.confidence for rule in rules}) > 10
    browser.open(rules_page(rules))
    keys: dict[str, Callable[[plar.Rule], float]] = {
        "rows": lambda rule: -rule.n_matched,
        "right": lambda rule: -rule.confidence,
        "lift": lambda rule: -rule.lift,
        "p": lambda rule: rule.p_value or 0.0,
        "conditions": lambda rule: len({condition.column for condition in rule.conditions}),
        "": lambda rule: 0,
    }
    for value, key in keys.items():
        choose(browser, "order", value)
        expected = [i for places in rules_by_class(rules) for i in sorted(places, key=lambda i: key(rules[i]))]
        assert browser.js(SHOWN) == expected, value


def test_keys_alone_are_enough(browser: Browser, many: plar.Rules) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    def press(*keys: str) -> None:
        ActionChains(browser.driver).send_keys(*keys).perform()

    def focus() -> str:
        return str(browser.js("return document.activeElement.id || document.activeElement.tagName"))

    browser.open(rules_page(many))
    press(Keys.TAB)
    assert focus() == "rule-find"
    press("xc1")
    assert len(browser.js(SHOWN)) == sum("xc1" in str(rule) for rule in many)
    press(Keys.TAB)
    assert focus() == "rule-class"
    press("more")
    assert {str(many[number].decision) for number in browser.js(SHOWN)} == {"more"}
    press(Keys.TAB)
    assert focus() == "rule-order"
    press(Keys.TAB, Keys.TAB)
    assert focus() == "SUMMARY"
    press(Keys.ENTER)
    first = many[browser.js(SHOWN)[0]]
    shown = browser.js("return document.activeElement.parentElement.querySelector('ul').innerText")
    assert shown.split() == ["more", str(first.support)]


def test_what_a_screen_reader_is_told(browser: Browser, many: plar.Rules) -> None:
    browser.open(rules_page(many))
    nodes = browser.do("Accessibility.getFullAXTree")["nodes"]
    named = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if "role" in node]
    controls = ("button", "searchbox", "combobox", "table", "image", "region", "DisclosureTriangle")
    assert not [role for role, name in named if role in controls and not name]
    assert ("searchbox", "Find") in named
    assert ("combobox", "Class") in named
    assert ("heading", "y = few") in named
    assert any(role == "DisclosureTriangle" and name.startswith("by class: ") for role, name in named)
    assert browser.js("return document.getElementById('rule-status').getAttribute('role')") == "status"


def test_without_scripts_all_rules_are_there(browser: Browser, many: plar.Rules) -> None:
    browser.open(rules_page(many), scripts=False)
    browser.do("Emulation.setScriptExecutionDisabled", value=False)
    assert browser.js(SHOWN) == list(range(len(many)))
    assert browser.js("return document.getElementById('rule-tools').offsetHeight") == 0


def test_light_dark_and_paper(browser: Browser) -> None:
    page = rules_page(markup_rules())
    browser.open(page)
    back, text = luminance(browser)
    assert back > 240 > 60 > text
    browser.open(page, dark=True)
    back, text = luminance(browser)
    assert back < 40 < 200 < text
    browser.open(page, dark=True, media="print")
    back, text = luminance(browser)
    assert back > 240 > 60 > text
    assert browser.js("return [...document.querySelectorAll('.tools label')].some(e => e.offsetHeight)") is False


@pytest.mark.parametrize("width", [320, 375, 800, 1300])
def test_fits(browser: Browser, many: plar.Rules, width: int) -> None:
    for rules in (many, markup_rules(), plar.rules(EXAMPLES / "passengers.csv", "survived")):
        browser.open(rules_page(rules), width=width)
        assert browser.js("return document.documentElement.scrollWidth") <= width
        inner = browser.js(
            "return Math.max(...[...document.querySelectorAll('.box')].map(b => b.scrollWidth - b.clientWidth))"
        )
        has_long_names = rules is markup_rules()
        assert inner <= 0 or has_long_names, "a table is wider than its box"


def test_prints(browser: Browser, many: plar.Rules) -> None:
    browser.open(rules_page(many))
    pdf = base64.b64decode(browser.do("Page.printToPDF")["data"])
    assert pdf.startswith(b"%PDF")
    assert pdf.count(b"/Type /Page\n") > 3
