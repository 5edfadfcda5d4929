"""How to reproduce a result: a Python call and a shell command."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from plar.options import NO_NA, ReadOptions, SearchOptions
from plar.results.report.words import MEASURES

if TYPE_CHECKING:
    from plar.results.reduct import Reduct

#: settings with their defaults: those of reading, and of the search
_READING = {field.name: field.default for field in fields(ReadOptions) if field.name not in ("decision", "y", "drop")}
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
    data, measure = repr(reduct.source), repr(reduct.measure)
    decision = f"decision={(reduct.decision[0] if len(reduct.decision) == 1 else list(reduct.decision))!r}"
    if reduct.settings.get("y"):
        lines.append("y = ...  # the labels, given beside the data")
        decision = "y=y"
    if reduct.source is None:
        lines.append("table = ...  # the data: not read from a file")
        data = "table"
    if reduct.measure not in MEASURES:
        lines.append(f"measure = ...  # the measure {reduct.measure!r}, which is not one of plar's")
        measure = "measure"
    asked = changed_settings(reduct)
    reading, search = ([f"{name}={asked[name]!r}" for name in asked if name in part] for part in (_READING, _SEARCH))
    engine = [f"engine={reduct.engine!r}"] if reduct.engine != "local" else []
    words = [data, decision, *reading, f"measure={measure}", *engine, *search]
    call = f"r = plar.reduce({', '.join(words)})"
    if len(call) > _WIDTH:
        call = "\n".join(["r = plar.reduce(", *(f"    {word}," for word in words), ")"])
    return "\n".join([*lines, call])


def changed_settings(reduct: Reduct) -> dict[str, Any]:
    """The settings that differ from their defaults."""
    start = "core" if reduct.settings.get("alpha") is None else "empty"
    defaults = {**_READING, **_SEARCH, "start": start}
    asked = {name: reduct.settings.get(name, default) for name, default in defaults.items()}
    changed = {name: value for name, value in asked.items() if value != defaults[name]}
    # an empty value is a default too, but na=() is not
    return {name: value for name, value in changed.items() if name == "na" or value not in ([], (), {})}


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
    words += ["--engine", reduct.engine] if reduct.engine != "local" else []
    for name, value in changed_settings(reduct).items():
        option = "--no-header" if name == "header" else "--" + name.replace("_", "-")
        if isinstance(value, bool):
            words.append(option)
            continue
        values = [str(value)]
        if name == "costs":
            values = [f"{column}={cost}" for column, cost in value.items()]
        elif isinstance(value, Mapping):  # bins by column
            rules = {name: rule if isinstance(rule, str) else ",".join(map(repr, rule)) for name, rule in value.items()}
            values = [f"{column}={rule}" for column, rule in rules.items()]
        elif name == "decision_bins" and not isinstance(value, str):
            values = [",".join(map(repr, value))]
        elif name == "na":
            values = list(value) or [NO_NA]
        elif isinstance(value, (list, tuple)):
            joined = all("," not in part and part == part.strip() and part for part in value)
            values = [",".join(value)] if joined else list(value)
        for part in values:
            words += [option, part]
    return " ".join(map(_quoted, words))


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
