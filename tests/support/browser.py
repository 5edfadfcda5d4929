"""A real browser, for the pages that plar writes."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest


@contextmanager
def chromium(*words: str, capabilities: Mapping[str, Any] | None = None) -> Iterator[Any]:
    """A real browser without a window; skips where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: pip install 'plar[dev]'")
    binary = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("no Chromium with its driver here: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", *words):
        options.add_argument(word)
    for name, value in (capabilities or {}).items():
        options.set_capability(name, value)
    with webdriver.Chrome(options=options, service=webdriver.ChromeService(driver)) as started:
        yield started


class Browser:
    """Headless Chromium with one page at a time, and what it logs."""

    def __init__(self, driver: Any, folder: Path) -> None:
        self.driver, self.folder = driver, folder
        self.console: list[str] = []
        self.requests: list[str] = []

    def open(self, html: str, *, width: int = 1100, dark: bool = False, scripts: bool = True, media: str = "") -> None:
        file = self.folder / "page.html"
        file.write_text(html, encoding="utf-8")
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.do("Emulation.setDeviceMetricsOverride", **size)
        self.do("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self.do("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.driver.get("about:blank")
        self.driver.get_log("performance"), self.driver.get_log("browser")
        self.driver.get(file.as_uri())
        self.console = [entry["message"] for entry in self.driver.get_log("browser")]
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
        self.requests = [url for url in asked if url != file.as_uri()]

    def do(self, method: str, **parameters: Any) -> Any:
        return self.driver.execute_cdp_cmd(method, parameters)

    def js(self, code: str, *given: Any) -> Any:
        return self.driver.execute_script(code, *given)

    def cells(self, table: str, column: int) -> list[str]:
        texts: list[str] = self.js(
            "return [...document.querySelectorAll(`#${arguments[0]} tbody tr`)]"
            ".map(row => row.cells[arguments[1]].textContent)",
            table,
            column,
        )
        return texts

    def click(self, selector: str) -> None:
        self.driver.find_element("css selector", selector).click()


@contextmanager
def logging_browser(folder: Path) -> Iterator[Browser]:
    """A browser whose pages are written to a folder."""
    logged = {"goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
    with chromium(capabilities=logged) as started:
        yield Browser(started, folder)


def exact_numbers(html: str) -> str:
    """Exact numbers as Python writes them: JavaScript's have no .0."""
    return re.sub(r'title="([^"]*)"', lambda match: f'title="{float(match[1])}"', html)


def luminance(browser: Browser) -> tuple[float, float]:
    """Mean of red, green and blue, of the page's background and its text."""
    colours = browser.js("const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]")
    back, text = (np.mean([int(n) for n in re.findall(r"\d+", colour)[:3]]) for colour in colours)
    return float(back), float(text)
