"""What README and docs say is what happens."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

import plar
from support import run_page
from support.browser import chromium
from support.environment import ROOT, no_spark
from support.run_page import blocks

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
WITH_CODE = [page for page in PAGES if any(block.language in ("python", "console") for block in blocks(page))]


def shown_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.skipif(os.name == "nt", reason="the commands are for a Unix shell")
@pytest.mark.parametrize("page", WITH_CODE, ids=shown_name)
def test_code_runs_and_shows_what_happens(page: Path, tmp_path: Path) -> None:
    code = "\n".join(block.text for block in blocks(page) if block.language == "python")
    if "SparkEngine" in code and no_spark():
        pytest.skip(str(no_spark()))
    for package in ("sklearn", "matplotlib"):
        if find_spec(package) is None and (package in code or (package == "matplotlib" and ".plot(" in code)):
            pytest.skip(f"needs {package}")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    numba_cuda = "ignore:The 'generic' unit for NumPy timedelta:DeprecationWarning"  # when it is imported
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", numba_cuda, run_page.__file__, page],
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.mark.parametrize("name", ["selection", "digits"])
def test_a_picture_is_what_its_program_draws(name: str) -> None:
    pytest.importorskip("sklearn", reason="needs scikit-learn, for its tables")
    drawn = subprocess.check_output([sys.executable, "-W", "error", "docs/picture.py", name], cwd=ROOT, text=True)
    assert drawn == (ROOT / "docs" / "pictures" / f"{name}.svg").read_text()


def test_the_comparison_is_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    comparison = importlib.import_module("comparison")
    scores = comparison.measured()
    for name, every_table in comparison.PAGES.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        assert comparison.written(text, scores, every_table) == text


def test_the_figures_of_rules_are_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    benchmark = importlib.import_module("rules")
    text = benchmark.PAGE.read_text(encoding="utf-8")
    assert benchmark.written(text, benchmark.measured()) == text


def test_every_make_target_of_the_readme_exists() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    assert set(re.findall(r"make ([\w-]+)", (ROOT / "README.md").read_text())) <= targets


def test_the_readme_states_what_is_declared() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    classifiers = "\n".join(declared["classifiers"])
    pythons = ", ".join(re.findall(r"Python :: (3\.\d+)", classifiers))
    status = re.search(r"Status :: \d - (\w+)", classifiers)
    assert status is not None
    line = f"Version {plar.__version__} ({status[1].lower()}) · Python {pythons} · {declared['license']} · typed"
    assert line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert f"version: {plar.__version__}" in (ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"])
def test_links_lead_somewhere(page: str) -> None:
    """Those of the pages in docs/ are checked when they are built."""
    links = re.findall(r"\]\(([^)\s]+)\)", (ROOT / page).read_text(encoding="utf-8"))
    assert not [link for link in links if "://" not in link and not (ROOT / link.partition("#")[0]).exists()]


#: built once, also where tests run side by side
on_the_site = pytest.mark.xdist_group("site")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages, built as `make docs` does; where the system lets us, with the network cut off.

    Never with ``--quiet``: it keeps ``--strict`` from seeing warnings.
    """
    if find_spec("mkdocs") is None:
        pytest.skip("needs mkdocs (pip install 'plar[docs]')")
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    cut_off = ["unshare", "--net"]
    if os.name == "posix" and subprocess.run([*cut_off, "true"], capture_output=True).returncode == 0:
        build = [*cut_off, *build]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@on_the_site
def test_pages_fetch_nothing_from_elsewhere(site: Path) -> None:
    """Links lead elsewhere; scripts, styles, fonts, pictures and frames do not."""
    pages = list(site.rglob("*.html"))
    assert len(pages) >= len(PAGES) - 1  # all but README
    for page in pages:
        text = page.read_text(encoding="utf-8")
        fetched = re.findall(
            r"<(?:script|img|iframe|source|video|audio|embed|object)\b[^>]*?(?:src|data)=\"?([^\s\">]+)", text
        )
        fetched += re.findall(r"<link\b[^>]*?href=\"?([^\s\">]+)", text)
        assert fetched
        assert not [address for address in fetched if re.match(r"(https?:)?//", address)], page
    for style in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", style.read_text(encoding="utf-8")), style


@on_the_site
def test_reference_names_all_that_is_public(site: Path) -> None:
    import plar

    told = "".join(page.read_text(encoding="utf-8") for page in (site / "reference").glob("*.html"))
    for name in plar.__all__:
        if name not in ("datasets", "engines", "measures"):
            assert re.search(rf'id="plar\.([\w.]+\.)?{name}"', told), name


@on_the_site
def test_command_reference_is_the_programs_own(site: Path) -> None:
    told = (site / "reference" / "cli.html").read_text(encoding="utf-8")
    help_text = subprocess.check_output([sys.executable, "-m", "plar", "--help"], text=True)
    commands = re.findall(r"^  (\w+) ", help_text.partition("Commands:")[2], flags=re.M)
    assert commands
    for command in commands:
        assert f">plar {command}<" in told


@on_the_site
def test_search_works_from_disk(site: Path) -> None:
    with chromium("--window-size=1200,800") as browser:
        wait = importlib.import_module("selenium.webdriver.support.wait").WebDriverWait
        browser.get((site / "howto" / "gpu.html").as_uri())
        field = browser.find_element("css selector", "input.md-search__input")
        field.click()
        field.send_keys("glossary")
        script = "return [...document.querySelectorAll('.md-search-result__item h1')].map(title => title.textContent)"
        titles = wait(browser, 60).until(lambda _: browser.execute_script(script))
    assert "Glossary" in titles
