"""What plar says when it cannot go on: one line with the fault, the value, the choices and the remedy."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = [
    "EngineFailed",
    "EngineUnavailable",
    "NoRows",
    "PlarError",
    "TableError",
    "UnknownNameError",
    "printable",
    "unknown_name",
]


class PlarError(Exception):
    """Base of every error that plar raises on purpose."""


class TableError(PlarError, ValueError):
    """The table, or what was asked of it, makes no sense."""


class NoRows(TableError):
    """The table has no rows, or none is left."""


class UnknownNameError(PlarError, ValueError):
    """A column, measure or engine that does not exist."""


class EngineUnavailable(PlarError, ImportError):
    """An engine that this machine cannot run; the message says what to install."""


class EngineFailed(PlarError, RuntimeError):
    """An engine that broke down while it worked."""


def unknown_name(kind: str, name: object, choices: Iterable[str]) -> UnknownNameError:
    """Make the error for a name that is not among `choices`, with the nearest ones suggested.

    Examples
    --------
    >>> str(unknown_name("measure", "gini", ["PR", "SCE", "LCE", "CCE"]))
    "Unknown measure 'gini'. Choose one of: PR, SCE, LCE, CCE."
    >>> str(unknown_name("column", "colour", ["color", "size"]))
    "Unknown column 'colour'. Did you mean 'color'? Choose one of: color, size."
    """
    known = list(choices)
    shown = known if len(known) <= 20 else [*known[:20], f"… ({len(known)} in all)"]
    near = get_close_matches(str(name), known, n=3, cutoff=0.6) if len(known) <= 20_000 else []
    hint = f" Did you mean {' or '.join(repr(n) for n in near)}?" if near else ""
    return UnknownNameError(f"Unknown {kind} {name!r}.{hint} Choose one of: {', '.join(shown)}.")


def printable(text: str) -> str:
    r"""Escape what could break a line or steer a terminal.

    Examples
    --------
    >>> print(printable("red \x1b[31m"))
    red \x1b[31m
    """
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
