"""What the documentation takes from the program itself: the help of every command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

MARK = "<!-- the help of every command -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the commands' own help where a page asks for it."""
    return markdown.replace(MARK, command_reference()) if MARK in markdown else markdown


def command_reference() -> str:
    """Every command of `plar` with what its ``--help`` prints."""
    commands = re.findall(r"^  (\w+) ", help_of().partition("Commands:")[2], flags=re.M)
    told = [f"## plar\n\n```text\n{help_of()}\n```\n"]
    told += [f"## plar {command}\n\n```text\n{help_of(command)}\n```\n" for command in commands]
    return "\n".join(told)


def help_of(*command: str) -> str:
    """What ``plar COMMAND --help`` prints."""
    words = [str(Path(sys.executable).with_name("plar")), *command, "--help"]
    plain = {**os.environ, "COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"}
    return subprocess.run(words, env=plain, capture_output=True, text=True, check=True).stdout.strip()
