"""Errors and warnings: one line with the fault, the value, the choices and the remedy.

A message that names options holds them as such (`Given`, `Parameter`, `PythonOnly`), so that the shell spells
them in its own words, and a call of `plar.select` says target where other functions say decision (`Term`).
"""

from __future__ import annotations

import copyreg
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from typing import Any, Final, NamedTuple, TypeAlias

_LONGEST = 800  # characters of a message
_SHOWN = 100  # characters of a name in a list of choices
#: packages between the caller's line and a warning
_ON_THE_WAY: Final = ("plar", "contextlib")


class _NoValue:
    """In place of the value of an option that is only named."""

    def __repr__(self) -> str:
        return "NO_VALUE"

    def __reduce__(self) -> str:
        """Pickle by name: there is one."""
        return "NO_VALUE"


NO_VALUE: Final = _NoValue()


class Given(NamedTuple):
    """An option in a message, with a value if it has one.

    >>> str(Given("drop")), str(Given("bins", "quantile:4"))
    ('drop=', "bins='quantile:4'")
    """

    option: str
    value: object = NO_VALUE

    def __str__(self) -> str:
        """The option as an argument in Python."""
        return f"{self.option}=" if self.value is NO_VALUE else f"{self.option}={self.value!r}"


class Parameter(NamedTuple):
    """An option as the subject of a message.

    >>> str(Parameter("alpha"))
    "The 'alpha' parameter"
    """

    option: str

    def __str__(self) -> str:
        """The option as documentation in Python calls it."""
        return f"The {self.option!r} parameter"


class PythonOnly(NamedTuple):
    """A part of a message that makes no sense in the shell, such as the choice of None."""

    text: str

    def __str__(self) -> str:
        """The text."""
        return self.text


class Term(NamedTuple):
    """A word in a message for which a call of `plar.select` may have a plainer one.

    >>> with saying_target():
    ...     worded([Term("decision"), Given("decision_bins")])
    ('target', Given(option='target_bins', value=NO_VALUE))
    """

    text: str

    def __str__(self) -> str:
        """The word of the theory."""
        return self.text


#: a part of a message; a plain text is the same for all
Part: TypeAlias = str | Given | Parameter | PythonOnly | Term

#: what words and options of the theory are in a call of `plar.select`
_TARGET_WORDS: Final = {
    "decision": "target",
    "decisions": "targets",
    "decision_bins": "target_bins",
    "condition": "column",
}
_says_target: ContextVar[bool] = ContextVar("says_target", default=False)


@contextmanager
def saying_target() -> Iterator[None]:
    """Say target instead of decision in the messages of this block."""
    token = _says_target.set(True)
    try:
        yield
    finally:
        _says_target.reset(token)


def worded(message: Sequence[Part]) -> tuple[Part, ...]:
    """A message in the words of the current call."""
    if not _says_target.get():
        return tuple(message)
    return tuple(map(_about_target, message))


def _about_target(part: Part) -> Part:
    if isinstance(part, Term):
        return _TARGET_WORDS.get(part.text, part.text)
    if isinstance(part, (Given, Parameter)):
        return part._replace(option=_TARGET_WORDS.get(part.option, part.option))
    return part


class PlarError(Exception):
    """Base of every error that plar raises on purpose: one printable line, whatever names and values it holds.

    >>> str(PlarError("y is given. Leave out ", Given("decision"), "."))
    'y is given. Leave out decision=.'
    """

    def __init__(self, *message: Part) -> None:
        #: the message in parts
        self.message = worded(message)
        super().__init__(one_line("".join(map(str, self.message))))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by arguments and state, whatever the constructor of a subclass takes."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class PlarWarning(UserWarning):
    """plar continues, but the result may not be what was meant."""

    def __init__(self, *message: Part) -> None:
        self.message = worded(message)
        super().__init__(printable("".join(map(str, self.message))))


class TableError(PlarError, ValueError):
    """The table, or what was asked of it, is invalid."""


class NoRows(TableError):
    """The table has no rows, or none is left."""


class AllRowsDropped(NoRows):
    """Every row was dropped for a missing value; `option` says which option dropped them."""

    def __init__(self, option: str) -> None:
        super().__init__("No row is left: all were dropped for a missing value. Pass ", Given(option, "value"), ".")
        self.option = option


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
    """Ctrl-C during a search that has something to show; before, it is a plain KeyboardInterrupt.

    Its `result` is the result so far: of `plar.reduce` once the core is found, with its certificate, of `plar.select`
    the columns so far, of `plar.relevant` the layers, and of `plar.reducts` the reducts.
    """

    def __init__(self, result: Any) -> None:
        super().__init__(result)
        self.result = result


def invalid(option: str, rule: str, value: object, remedy: str = "", *, or_none: bool = False) -> ParameterError:
    """Make the error for an option whose value breaks a rule.

    >>> str(invalid("alpha", "between 0 and 1", 7, or_none=True))
    "The 'alpha' parameter must be None or between 0 and 1. Got 7 instead."
    """
    none = PythonOnly("None or " if or_none else "")
    end = f" {remedy}" if remedy else ""
    return ParameterError(Parameter(option), " must be ", none, f"{rule}. Got {value!r} instead.{end}")


def unknown_name(kind: str, name: object, choices: Iterable[str]) -> UnknownNameError:
    """Make the error for a name that is not among `choices`, with the nearest ones suggested.

    >>> str(unknown_name("column", "colour", ["color", "size"]))
    "Unknown column 'colour'. Did you mean 'color'? Choose one of: color, size."
    """
    names = list(choices)
    near: list[str] = []
    if len(names) <= 20_000 and len(str(name)) <= _SHOWN:
        short_names = [choice for choice in names if len(choice) <= _SHOWN]
        near = get_close_matches(str(name), short_names, n=3, cutoff=0.6)
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    end = f" {_short(repr(name))}.{hint} Choose one of: {shown_names(names)}."
    return UnknownNameError("Unknown ", Term(kind), end)


def unknown_position(kind: str, position: object, names: Sequence[str]) -> UnknownNameError:
    """Make the error for a column that is given by a position beyond the last.

    >>> str(unknown_position("column", 7, ["color", "size"]))
    'Unknown column 7. Choose a position from 0 to 1, or from the end -1 to -2, or a name: color, size.'
    """
    last = len(names) - 1
    places = f"0 to {last}, or from the end -1 to {-len(names)}"
    return UnknownNameError(
        "Unknown ", Term(kind), f" {position}. Choose a position from {places}, or a name: {shown_names(names)}."
    )


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


def warn(*message: Part) -> None:
    """Warn at the line outside plar that made the call."""
    level = 1
    frame = sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _ON_THE_WAY:
        level += 1
        frame = frame.f_back
    warnings.warn(PlarWarning(*message), stacklevel=level + 1)


def one_line(text: str) -> str:
    """Make a message one printable line that is not too long: what is wrong comes first, the remedy last."""
    line = printable(text)
    if len(line) <= _LONGEST:
        return line
    return f"{line[: _LONGEST // 2]} … {line[-(_LONGEST // 2 - 3) :]}"


def printable(text: str) -> str:
    """Escape what could break a line or control a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
