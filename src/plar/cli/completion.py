"""What the Tab key offers; whatever goes wrong there, it offers nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import typer

__all__ = ["columns", "words"]

#: the shells evaluate what they are offered, and names come from the data
_HARMLESS = re.compile(r"[\w @%+=.,/-]+")


def words(*known: str) -> Callable[[str], list[str]]:
    """Offer the choices of an option."""
    return lambda incomplete: [word for word in known if word.lower().startswith(incomplete.lower())]


def columns(context: typer.Context, incomplete: str) -> list[str]:
    """Offer the columns of the file that is on the line already, for the end of a list a,b,c."""
    head, comma, last = incomplete.rpartition(",")
    found = [head + comma + name for name in _names(context) if name.startswith(last) and _HARMLESS.fullmatch(name)]
    bash = os.environ.get("_PLAR_COMPLETE", "").endswith("_bash")
    # which takes the words as they are; zsh and fish quote them
    return [word.replace(" ", "\\ ") for word in found] if bash else found


def _names(context: typer.Context) -> tuple[str, ...]:
    with suppress(Exception):
        from plar.formats import format_of
        from plar.options import ReadOptions
        from plar.tables.table import open_rows

        given = context.params
        # an option without its value, as here, keeps arguments from being told apart
        file = Path(given["file"] or context.args[0])
        options = ReadOptions(header=given.get("header", True), separator=given.get("separator"))
        if "json" not in format_of(file, as_text=True):  # whose columns are known when all is read
            return open_rows(file, options).names
    return ()
