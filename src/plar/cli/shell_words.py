"""The library's messages in the words of the shell: options in place of Python's parameters."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Sequence

from plar.errors import NO_VALUE, Given, Parameter, Part, PythonOnly, one_line
from plar.options import NO_NA, OPTIONS, shell_flag

_NAMES = [*OPTIONS, "measure"]
_NAMES.remove("y")
_VALUE = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\[[^\]]*\]|\([^)]*\)|[\w.]*\w"""
#: name=value or name=, but neither a part of a quoted name nor a parameter of a class
_GIVEN = re.compile(rf"(?<![\w'\"])(?<!\w\()({'|'.join(_NAMES)})=({_VALUE})?")
_PARAMETER = re.compile(rf"[Tt]he '({'|'.join(_NAMES)})' parameter")
#: labels beside the table, which only Python has
_LABELS = re.compile(r",? or y=[^.]*")
#: an option is left out where a parameter is None
_NONE = re.compile(r"(--[\w-]+ must be) None(?:,| or)")
_TWICE = re.compile(r"(--[\w-]+(?: [^\s()]+)?) \(\1\)")


def line_of(message: Sequence[Part]) -> str:
    """Write a message of the library for the shell.

    >>> line_of(["Pass ", Given("drop", ["a b", "c"]), " or ", Given("separator"), "."])
    "Pass --drop 'a b' --drop c or --separator."
    >>> line_of([Parameter("alpha"), " must be ", PythonOnly("None or "), "a number"])
    '--alpha must be a number'
    """
    return one_line(in_shell("".join(_part(part) for part in message)))


def _part(part: Part) -> str:
    if isinstance(part, PythonOnly):
        return ""
    if isinstance(part, Parameter):
        return shell_flag(part.option)
    if not isinstance(part, Given):
        return part
    if part.value is NO_VALUE:
        return shell_flag(part.option)
    return option_with_value(part.option, part.value)


def in_shell(message: str) -> str:
    """Write a message of the library for the shell.

    >>> in_shell("The 'max_attributes' parameter goes with search='greedy'. Pass separator=, or drop=['a b', 'c'].")
    "--max-attributes goes with --search greedy. Pass --separator, or --drop 'a b' --drop c."
    >>> in_shell("Pass na=['?', -999], or na=().")
    "Pass --na '?' --na -999, or --na none."
    >>> in_shell("Take decision_bins=[1.5, 3] or engine='spark'; see LocalEngine(n_jobs=2).")
    'Take --decision-bins 1.5,3 or --engine spark; see LocalEngine(n_jobs=2).'
    """
    found = _LABELS.sub("", _NONE.sub(r"\1", _PARAMETER.sub(lambda match: shell_flag(match[1]), message)))
    return _TWICE.sub(r"\1", _GIVEN.sub(lambda match: _given(match[1], match[2]), found))


def _given(name: str, written: str | None) -> str:
    if not written:
        return shell_flag(name)
    try:
        value = ast.literal_eval(written)
    except (ValueError, SyntaxError):
        value = written.strip("[]()")
    return option_with_value(name, value)


def option_with_value(name: str, value: object) -> str:
    """An option and its value as the shell takes them."""
    if isinstance(value, bool):
        return shell_flag(name) if value else f"--no-{name}"
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    if name == "na":
        return " ".join(f"--na {shlex.quote(str(one))}" for one in values or [NO_NA])
    if not all(isinstance(one, str) for one in values):  # cut points
        values = [",".join(f"{one:g}" for one in values)]
    return " ".join(f"{shell_flag(name)} {shlex.quote(str(one))}" for one in values)
