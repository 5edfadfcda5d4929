"""How to get the same result again: a call for Python and a command for the shell."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from plar.report.words import MEASURES

if TYPE_CHECKING:
    from plar.reduct import Reduct

__all__ = ["python_call", "shell_command"]

#: settings with their defaults: those of reading a file, of the table, of the search
_FILE: dict[str, Any] = {"header": True, "separator": None, "decimal": ".", "encoding": "utf-8"}
_TABLE: dict[str, Any] = {
    "conditions": None,
    "missing": "value",
    "na": [],
    "bins": None,
    "numeric": [],
    "weights": None,
}
_SEARCH: dict[str, Any] = {
    "include": [],
    "epsilon": 0.0,
    "tolerance": 0.0,
    "max_attributes": None,
    "minimal": False,
}
#: the longest call on one line
_WIDTH = 100


def python_call(found: Reduct) -> str:
    """Write the call of `plar.reduce` that gives this result.

    Examples
    --------
    >>> import plar
    >>> print(python_call(plar.reduce({"a": [0, 1], "d": [0, 1]}, "d", max_attributes=1)))
    import plar
    <BLANKLINE>
    table = ...  # the data: they were not read from a file
    r = plar.reduce(table, decision='d', measure='SCE', max_attributes=1)
    """
    decision = found.decision[0] if len(found.decision) == 1 else list(found.decision)
    beside = found.settings.get("y")
    table = ["y=y" if beside else f"decision={decision!r}", *_keywords(found, _TABLE)]
    search = _keywords(found, _SEARCH)
    lines = ["import plar", ""]
    data = "table"
    if beside:
        lines.append("y = ...  # the labels: they were given beside the data")
    if found.source is None:
        lines.append("table = ...  # the data: they were not read from a file")
    else:
        data = repr(found.source)
        table += _keywords(found, _FILE)
    measure = repr(found.measure)
    if found.measure not in MEASURES:
        lines.append(f"measure = ...  # the measure {found.measure!r}, which is not one of plar's")
        measure = "measure"
    engine = [f"engine={found.engine!r}"] if found.engine != "local" else []
    lines.append(_call("r = plar.reduce", [data, *table, f"measure={measure}", *engine, *search]))
    return "\n".join(lines)


def _call(head: str, words: Iterable[str]) -> str:
    listed = list(words)
    call = f"{head}({', '.join(listed)})"
    return call if len(call) <= _WIDTH else "\n".join([f"{head}(", *(f"    {word}," for word in listed), ")"])


def _keywords(found: Reduct, defaults: Mapping[str, Any]) -> list[str]:
    return [f"{name}={value!r}" for name, value in _asked(found, defaults)]


def _asked(found: Reduct, defaults: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The settings that differ from their defaults."""
    for name, default in defaults.items():
        value = found.settings.get(name, default)
        if value != default and value not in ((), {}):
            yield name, value


def shell_command(found: Reduct) -> str | None:
    """Write the command that gives this result; None where no command can.

    Examples
    --------
    >>> import plar
    >>> shell_command(plar.reduce("examples/tic_tac_toe.csv", "x_wins", include=["top_left"], minimal=True))
    'plar reduce examples/tic_tac_toe.csv --decision x_wins --measure SCE --include top_left --minimal'
    """
    if found.source is None or found.measure not in MEASURES or found.settings.get("y"):
        return None
    words = ["plar", "reduce", found.source]
    for name in found.decision:
        words += ["--decision", name]
    words += ["--measure", found.measure]
    words += ["--engine", found.engine] if found.engine != "local" else []
    for name, value in _asked(found, {**_FILE, **_TABLE, **_SEARCH}):
        option = "--" + name.replace("_", "-")
        if name == "header":
            words.append("--no-header")
        elif value is True:
            words.append(option)
        elif name == "na":
            words += [word for spelling in value for word in (option, spelling)]
        elif isinstance(value, Mapping):  # bins by column
            words += [word for column, rule in value.items() for word in (option, f"{column}={_rule(rule)}")]
        elif isinstance(value, (list, tuple)):
            plain = all("," not in part and part == part.strip() and part for part in value)
            words += [option, ",".join(value)] if plain else [w for part in value for w in (option, part)]
        else:
            words += [option, str(value)]
    return " ".join(map(_quoted, words))


def _rule(rule: Any) -> str:
    return rule if isinstance(rule, str) else ",".join(map(repr, rule))


def _quoted(word: str) -> str:
    r"""Quote for a shell; what cannot be printed in bash's own way.

    Examples
    --------
    >>> print(_quoted("it's"), _quoted("a\x1bb'"))
    'it'"'"'s' $'a\x1bb\''
    """
    return shlex.quote(word) if word.isprintable() else "$'" + "".join(map(_escaped, word)) + "'"


def _escaped(c: str) -> str:
    if c in "\\'":
        return f"\\{c}"
    if c.isprintable():
        return c
    return f"\\x{ord(c):02x}" if c < "\x80" else f"\\U{ord(c):08x}"
