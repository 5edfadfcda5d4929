"""Put the help of every command into the documentation."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

MARK = "<!-- the help of every command -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the mark on a page by the help of every command."""
    return markdown.replace(MARK, command_reference()) if MARK in markdown else markdown


def command_reference() -> str:
    """A section for every command of `plar` with its ``--help``."""
    commands = re.findall(r"^  (\w+) ", help_of().partition("Commands:")[2], flags=re.M)
    sections = [f"## plar\n\n```text\n{help_of()}\n```\n"]
    sections += [f"## plar {command}\n\n```text\n{help_of(command)}\n```\n" for command in commands]
    return "\n".join(sections)


def help_of(*command: str) -> str:
    """The output of ``plar COMMAND --help``."""
    words = [str(Path(sys.executable).with_name("plar")), *command, "--help"]
    plain = {**os.environ, "COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"}
    return subprocess.run(words, env=plain, capture_output=True, text=True, check=True).stdout.strip()
