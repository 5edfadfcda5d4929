"""What the pages take from elsewhere: the help of every command, and parts of README and CHANGELOG."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

MARK = "<!-- the help of every command -->"
#: a whole file of the repository, or what it has between "<!-- PART -->" and "<!-- end of PART -->"
INCLUDE = re.compile(r"<!-- include ([\w.]+)(?: (\w+))? -->")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the marks on a page by what they ask for."""
    markdown = INCLUDE.sub(lambda match: included(match[1], match[2]), markdown)
    return markdown.replace(MARK, command_reference()) if MARK in markdown else markdown


def included(file: str, part: str | None) -> str:
    """A file of the repository, or a part of it, with its links as a page in docs/ needs them."""
    text = (Path(__file__).parent.parent / file).read_text(encoding="utf-8")
    if part is not None:
        text = text.partition(f"<!-- {part} -->")[2].partition(f"<!-- end of {part} -->")[0]
    return text.replace("](docs/", "](")


def command_reference() -> str:
    """A section for every command of `plar` with its ``--help``."""
    commands = re.findall(r"^  (\w+) ", help_of().partition("Commands:")[2], flags=re.M)
    sections = [f"## plar\n\n```text\n{help_of()}\n```\n"]
    sections += [f"## plar {command}\n\n```text\n{help_of(command)}\n```\n" for command in commands]
    return "\n".join(sections)


def help_of(*command: str) -> str:
    """The output of ``plar COMMAND --help``."""
    words = [str(Path(sys.executable).with_name("plar")), *command, "--help"]
    plain = {**os.environ, "COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1"}
    return subprocess.run(words, env=plain, capture_output=True, text=True, check=True).stdout.strip()
