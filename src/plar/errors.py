"""Errors and warnings: one line with the fault, the value, the choices and the remedy."""

from __future__ import annotations

import copyreg
import sys
import warnings
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

_LONGEST = 800  # characters of a message
_SHOWN = 100  # characters of a name in a list of choices


class PlarError(Exception):
    """Base of every error that plar raises on purpose: one printable line, whatever names and values it holds."""

    def __init__(self, message: object = "") -> None:
        line = printable(str(message))
        if len(line) > _LONGEST:  # what is wrong comes first, the remedy last
            line = f"{line[: _LONGEST // 2]} … {line[-(_LONGEST // 2 - 3) :]}"
        super().__init__(line)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by arguments and state, whatever the constructor of a subclass takes."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class PlarWarning(UserWarning):
    """plar continues, but the result may not be what was meant."""


class TableError(PlarError, ValueError):
    """The table, or what was asked of it, is invalid."""


class NoRows(TableError):
    """The table has no rows, or none is left."""


class NoDecision(TableError):
    """It is not said which column is the decision."""


class ParameterError(PlarError, ValueError):
    """An option has an invalid value, whatever the table."""


class UnknownNameError(PlarError, ValueError):
    """A column, measure or engine that does not exist."""


class EngineUnavailable(PlarError, ImportError):
    """The engine cannot run on this machine; the message says what to install."""


class MemoryLimitExceeded(TableError):
    """More memory is needed than the call may use, or than the machine has."""


class ProofError(PlarError, ValueError):
    """A proof that does not hold, or a file that is not a proof; the message says which line of it."""


class EngineFailed(PlarError, RuntimeError):
    """An engine failed while it was computing."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during `plar.reduce`, after the core was found; before, it is a plain KeyboardInterrupt.

    Its `reduct` is the result so far, with its certificate; of `plar.relevant` the layers so far, and of `plar.reducts`
    the reducts so far.
    """

    def __init__(self, reduct: Any) -> None:
        super().__init__(reduct)
        self.reduct = reduct


def unknown_name(kind: str, name: object, choices: Iterable[str]) -> UnknownNameError:
    """Make the error for a name that is not among `choices`, with the nearest ones suggested.

    >>> str(unknown_name("column", "colour", ["color", "size"]))
    "Unknown column 'colour'. Did you mean 'color'? Choose one of: color, size."
    """
    known = list(choices)
    near = []
    if len(known) <= 20_000 and len(str(name)) <= _SHOWN:
        near = get_close_matches(str(name), [one for one in known if len(one) <= _SHOWN], n=3, cutoff=0.6)
    hint = f" Did you mean {' or '.join(repr(n) for n in near)}?" if near else ""
    return UnknownNameError(f"Unknown {kind} {_short(repr(name))}.{hint} Choose one of: {shown_names(known)}.")


def shown_names(names: Sequence[str]) -> str:
    """The first names of a list, and how many there are.

    >>> shown_names(["a", "b"]), shown_names([f"x{j}" for j in range(100)])[-24:]
    ('a, b', 'x18, x19, … (100 in all)')
    """
    shown = [_short(name) for name in names[:20]]
    if len(names) > 20:
        shown.append(f"… ({len(names)} in all)")
    return ", ".join(shown)


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 10]}…{text[-9:]}"


def reason_of(error: BaseException) -> str:
    """The message of a library's error, as one line to put into ours."""
    name = type(error).__name__
    if name == "PanicException":  # a bug of polars: the message is about its own code
        return "its parts do not fit together"
    return (str(error).strip() or name).splitlines()[0].rstrip(".")


def warn(message: str) -> None:
    """Warn at the line outside plar that made the call."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in ("plar", "contextlib"):
        level, frame = level + 1, frame.f_back
    warnings.warn(printable(message), PlarWarning, stacklevel=level + 1)


def printable(text: str) -> str:
    """Escape what could break a line or control a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
