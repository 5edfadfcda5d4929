"""How to reproduce a result: a Python call and a shell command."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from plar.options import NO_NA, ReadOptions, SearchOptions
from plar.results.report.words import MEASURES

if TYPE_CHECKING:
    from plar.results.reduct import Reduct

#: options of reading with their defaults
_READING = {field.name: field.default for field in fields(ReadOptions) if field.name not in ("decision", "y", "drop")}
#: options of the search with their defaults
_SEARCH = {field.name: field.default for field in fields(SearchOptions)}
#: the longest call on one line
_WIDTH = 100


def python_call(reduct: Reduct) -> str:
    """Write the call of `plar.reduce` that gives this result.

    >>> import plar
    >>> print(python_call(plar.reduce({"a": [0, 1], "d": [0, 1]}, "d", max_attributes=1)))
    import plar
    <BLANKLINE>
    table = ...  # the data: not read from a file
    r = plar.reduce(table, decision='d', measure='SCE', max_attributes=1)
    """
    lines = ["import plar", ""]
    data = repr(reduct.source)
    measure = repr(reduct.measure)
    decision = repr(reduct.decision[0] if len(reduct.decision) == 1 else list(reduct.decision))
    target = f"decision={decision}"
    if reduct.settings.get("y"):
        lines.append("y = ...  # the labels, given beside the data")
        target = "y=y"
    if reduct.source is None:
        lines.append("table = ...  # the data: not read from a file")
        data = "table"
    if reduct.measure not in MEASURES:
        lines.append(f"measure = ...  # the measure {reduct.measure!r}, which is not one of plar's")
        measure = "measure"
    settings = changed_settings(reduct)
    arguments = [data, target]
    arguments += [f"{name}={value!r}" for name, value in settings.items() if name in _READING]
    arguments.append(f"measure={measure}")
    if reduct.engine != "local":
        arguments.append(f"engine={reduct.engine!r}")
    arguments += [f"{name}={value!r}" for name, value in settings.items() if name in _SEARCH]
    call = f"r = plar.reduce({', '.join(arguments)})"
    if len(call) > _WIDTH:
        call = "\n".join(["r = plar.reduce(", *(f"    {argument}," for argument in arguments), ")"])
    return "\n".join([*lines, call])


def changed_settings(reduct: Reduct) -> dict[str, Any]:
    """The settings that differ from their defaults."""
    start = "core" if reduct.settings.get("alpha") is None else "empty"
    defaults = {**_READING, **_SEARCH, "start": start}
    changed = {}
    for name, default in defaults.items():
        value = reduct.settings.get(name, default)
        # an empty value is a default too, but na=() is not
        if value != default and (name == "na" or value not in ([], (), {})):
            changed[name] = value
    return changed


def shell_command(reduct: Reduct) -> str | None:
    """Write the command that gives this result; None if no command can.

    >>> import plar
    >>> shell_command(plar.reduce("examples/tic_tac_toe.csv", "x_wins", include=["top_left"], minimal=True))
    'plar reduce examples/tic_tac_toe.csv --decision x_wins --measure SCE --include top_left --minimal'
    """
    if reduct.source is None or reduct.measure not in MEASURES or reduct.settings.get("y"):
        return None
    if NO_NA in (reduct.settings.get("na") or ()):  # which has another meaning there
        return None
    words = ["plar", "reduce", reduct.source]
    for name in reduct.decision:
        words += ["--decision", name]
    words += ["--measure", reduct.measure]
    if reduct.engine != "local":
        words += ["--engine", reduct.engine]
    for name, value in changed_settings(reduct).items():
        option = "--no-header" if name == "header" else "--" + name.replace("_", "-")
        if isinstance(value, bool):
            words.append(option)
            continue
        for argument in _arguments(name, value):
            words += [option, argument]
    return " ".join(map(_quoted, words))


def _arguments(name: str, value: Any) -> list[str]:
    """What follows an option of the shell, which is given once for each."""
    if name == "costs":
        return [f"{column}={cost}" for column, cost in value.items()]
    if isinstance(value, Mapping):  # bins by column
        return [f"{column}={_rule(rule)}" for column, rule in value.items()]
    if name == "decision_bins":
        return [_rule(value)]
    if name == "na":
        return list(value) or [NO_NA]
    if isinstance(value, (list, tuple)):
        can_be_joined = all(part and "," not in part and part == part.strip() for part in value)
        return [",".join(value)] if can_be_joined else list(value)
    return [str(value)]


def _rule(rule: str | Sequence[float]) -> str:
    """A rule of binning, or cut points."""
    return rule if isinstance(rule, str) else ",".join(map(repr, rule))


def _quoted(word: str) -> str:
    r"""Quote for a shell; unprintable characters as bash writes them.

    >>> print(_quoted("it's"), _quoted("a\x1bb'"))
    'it'"'"'s' $'a\x1bb\''
    """
    return shlex.quote(word) if word.isprintable() else "$'" + "".join(map(_escaped, word)) + "'"


def _escaped(c: str) -> str:
    if c.isprintable():
        return f"\\{c}" if c in "\\'" else c
    return f"\\x{ord(c):02x}" if c < "\x80" else f"\\U{ord(c):08x}"
