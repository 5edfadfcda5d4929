"""What is wrong with a command line, in one line."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from itertools import pairwise

import typer

from plar.cli.commands import COMMANDS

_COMMAND_NAMES = frozenset(command.__name__ for command in COMMANDS)
#: what the parser says of words that are no numbers, and what an option takes instead
_KINDS_OF_NUMBERS = {"a valid number": "a number", "a valid integer": "a whole number"}


def usage_message(error: typer.TyperException, words: Sequence[str]) -> str:
    """Say what is wrong, and whose help to read; `words` are those of the command line after `plar`."""
    message = _number_message(error, words) or error.format_message()
    if message[-1] not in ".?!":
        message += "."
    return f"{message} {_file_as_command(words)}See '{_command(error, words)} --help'."


def _command(error: typer.TyperException, words: Sequence[str]) -> str:
    """The command that was given; the parser does not always know."""
    context = getattr(error, "ctx", None)
    if context is not None:
        return str(context.command_path)
    return f"plar {words[0]}" if words and words[0] in _COMMAND_NAMES else "plar"


def _number_message(error: typer.TyperException, words: Sequence[str]) -> str | None:
    """What is said of an option whose word is no number."""
    said = str(getattr(error, "message", ""))
    kind = next((ours for theirs, ours in _KINDS_OF_NUMBERS.items() if theirs in said), None)
    flags = getattr(getattr(error, "param", None), "opts", None)
    if kind is None or not flags:
        return None
    given = [word for flag, word in pairwise(words) if flag in flags]
    if len(given) == 1:
        return f"{flags[0]} takes {kind}. Got {given[0]!r}."
    return f"{flags[0]} takes {kind}."


def _file_as_command(words: Sequence[str]) -> str:
    """What to do with a file in the place of a command."""
    if not words or words[0] in _COMMAND_NAMES or not os.path.isfile(words[0]):
        return ""
    return f"To select columns of a file: plar select {shlex.quote(words[0])} -d TARGET. "
