"""A real browser, for the pages that plar writes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

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
