"""What README and docs say is what happens."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import no_spark

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), flags=re.M | re.S)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_python_blocks_run(page: Path) -> None:
    program = "\n".join(blocks(page, "python"))
    if "SparkEngine" in program and no_spark():
        pytest.skip(str(no_spark()))
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_readme_shows_what_the_demo_prints() -> None:
    plar = Path(sys.executable).parent / "plar"
    words = ["reduce", "examples/tic_tac_toe.csv", "--decision", "x_wins"]
    out = subprocess.check_output([plar, *words], cwd=ROOT, text=True)
    shown = blocks(ROOT / "README.md", "text")[0]
    *lines, seconds = out.splitlines()
    *shown_lines, shown_seconds = shown.splitlines()
    assert [line.rstrip() for line in lines] == [line.rstrip() for line in shown_lines]
    assert re.sub(r"[\d.]+ s", "s", seconds) == re.sub(r"[\d.]+ s", "s", shown_seconds)


def test_every_make_target_of_the_readme_exists() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), flags=re.M))
    assert set(re.findall(r"make (\w+)", (ROOT / "README.md").read_text())) <= targets


@pytest.mark.skipif(os.name == "nt", reason="the commands are for a Unix shell")
def test_console_commands_have_the_options_they_show() -> None:
    plar = Path(sys.executable).parent / "plar"
    helps: dict[str, str] = {}
    for block in blocks(ROOT / "README.md", "console"):
        for command, rest in re.findall(r"^\$ plar (\w+)(.*?)(?:#.*)?$", block, flags=re.M):
            if command not in helps:
                helps[command] = subprocess.check_output([plar, command, "--help"], text=True)
            for option in re.findall(r"(?<= )--?[a-z][a-z-]*", rest):
                assert option in helps[command], (command, option)
    assert set(helps) == {"reduce", "core", "theta", "granulate", "engines"}
