"""The library's messages in the words of the shell: options in place of Python's parameters."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from plar.errors import NO_VALUE, Given, Parameter, Part, PythonOnly
from plar.options import NO_NA, shell_flag


def in_shell(message: Sequence[Part]) -> str:
    """Write a message of the library for the shell.

    >>> in_shell(["Pass ", Given("drop", ["a b", "c"]), " or ", Given("separator"), "."])
    "Pass --drop 'a b' --drop c or --separator."
    >>> in_shell([Parameter("alpha"), " must be ", PythonOnly("None or "), "a number"])
    '--alpha must be a number'
    """
    return "".join(map(_spelled, message))


def _spelled(part: Part) -> str:
    if isinstance(part, PythonOnly):
        return ""
    if isinstance(part, Parameter):
        return shell_flag(part.option)
    if isinstance(part, Given):
        return _option(part)
    return str(part)


def _option(given: Given) -> str:
    """An option and its value, if it has one, as the shell takes them.

    >>> _option(Given("na", ["?", -999])), _option(Given("na", ())), _option(Given("header", False))
    ("--na '?' --na -999", '--na none', '--no-header')
    >>> _option(Given("decision_bins", [1.5, 3])), _option(Given("costs", {"a": 2}))
    ('--decision-bins 1.5,3', '--costs a=2')
    """
    flag = shell_flag(given.option)
    value = given.value
    if value is NO_VALUE:
        return flag
    if isinstance(value, bool):
        return flag if value else flag.replace("--", "--no-", 1)
    return " ".join(f"{flag} {_quoted(word)}" for word in _words(given.option, value))


def _quoted(word: str) -> str:
    """A word as the shell takes it; one without letters or digits is quoted in any case, so that it stands out.

    >>> _quoted("a"), _quoted("a b"), _quoted(",")
    ('a', "'a b'", "','")
    """
    quoted = shlex.quote(word)
    return f"'{word}'" if quoted == word and not any(map(str.isalnum, word)) else quoted


def _words(option: str, value: object) -> list[str]:
    """What stands behind each repetition of an option."""
    if isinstance(value, Mapping):
        return [f"{name}={number}" for name, number in value.items()]
    if not isinstance(value, (list, tuple)):
        return [str(value)]
    if option == "na":
        return [str(spelling) for spelling in value] or [NO_NA]
    if all(isinstance(name, str) for name in value):
        return list(value)
    return [",".join(map(str, value))]
