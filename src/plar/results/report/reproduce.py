"""How to reproduce a result: a Python call and a shell command."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from plar.options import DECILES, DEFAULT_ALPHA, NO_NA, ReadOptions, RuleOptions, SearchOptions, SelectOptions
from plar.results.report.words import MEASURES

if TYPE_CHECKING:
    from plar.results.check import Check
    from plar.results.reduct import Change, Reduct
    from plar.results.rules import Rules
    from plar.results.selection import Selection

#: options of reading with their defaults
_READING = {field.name: field.default for field in fields(ReadOptions) if field.name not in ("decision", "y", "drop")}
#: options of the search with their defaults
_SEARCH = {field.name: field.default for field in fields(SearchOptions)}
_SELECT = {field.name: field.default for field in fields(SelectOptions)}
#: where `plar.select` has other defaults of reading, and other names
_SELECT_READING: Mapping[str, Any] = {"bins": "auto", "missing_decision": "drop"}
_SELECT_NAMES = {"decision_bins": "target_bins"}
_RULES: Mapping[str, Any] = {field.name: field.default for field in fields(RuleOptions)}
#: where `plar.rules` has other defaults of reading
_RULES_READING: Mapping[str, Any] = {"bins": DECILES, "missing_decision": "drop"}
#: how shells switch the bins of `plar.select` and `plar.rules` off
_NO_BINS = "none"
#: the longest call on one line
_WIDTH = 100


def python_call(reduct: Reduct, function: str = "reduce") -> str:
    """Write the call of `plar.reduce`, or of `plar.relevant`, that gives this result.

    >>> import plar
    >>> print(python_call(plar.reduce({"a": [0, 1], "d": [0, 1]}, "d", max_attributes=1)))
    import plar
    <BLANKLINE>
    table = ...  # the data: not read from a file
    r = plar.reduce(table, decision='d', measure='SCE', max_attributes=1)
    """
    if reduct.change is not None:
        return _update_call(reduct, reduct.change)
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
    return "\n".join([*lines, _call(f"r = plar.{function}", arguments)])


def _update_call(reduct: Reduct, change: Change) -> str:
    """Write the call of `Reduct.update` that gives this result."""
    names = ", ".join(map(repr, change.before))
    lines = ["import plar", "", f"old = ...  # the reduct of {names or 'no column'}: plar.load reads it from its file"]
    data = repr(reduct.source)
    if reduct.source is None:
        lines.append("table = ...  # the data: not read from a file")
        data = "table"
    arguments = [data]
    if reduct.settings.get("y"):
        lines.append("y = ...  # the labels, given beside the data")
        arguments.append("y=y")
    if not reduct.settings.get("minimal"):
        arguments.append("minimal=False")
    if reduct.measure not in MEASURES:
        lines.append(f"measure = ...  # the measure {reduct.measure!r}, which is not one of plar's")
        arguments.append("measure=measure")
    if reduct.engine != "local":
        arguments.append(f"engine={reduct.engine!r}")
    return "\n".join([*lines, _call("r = old.update", arguments)])


def select_call(selection: Selection) -> str:
    """Write the call of `plar.select` that gives this result.

    >>> import plar
    >>> print(select_call(plar.select({"a": [0, 0, 1, 1], "t": [0, 0, 1, 1]}, "t", max_columns=1)))
    import plar
    <BLANKLINE>
    table = ...  # the data: not read from a file
    s = plar.select(table, target='t', max_columns=1)
    """
    lines = ["import plar", ""]
    data = repr(selection.source)
    names = selection.target
    target = f"target={(names[0] if len(names) == 1 else list(names))!r}"
    if selection.settings.get("y"):
        lines.append("y = ...  # the target, given beside the data")
        target = "y=y"
    if selection.source is None:
        lines.append("table = ...  # the data: not read from a file")
        data = "table"
    arguments = [data, target]
    if selection.engine != "local":
        arguments.append(f"engine={selection.engine!r}")
    arguments += [f"{name}={value!r}" for name, value in changed_selection_settings(selection).items()]
    return "\n".join([*lines, _call("s = plar.select", arguments)])


def rules_call(rules: Rules) -> str:
    """Write the call of `plar.rules` that gives this result.

    >>> import plar
    >>> print(rules_call(plar.rules({"a": [0, 1] * 20, "d": [0, 1] * 20}, "d", kind="certain")))
    import plar
    <BLANKLINE>
    table = ...  # the data: not read from a file
    r = plar.rules(table, decision='d', kind='certain')
    """
    lines = ["import plar", ""]
    data = repr(rules.source)
    decision = f"decision={rules.decision[0]!r}"
    if rules.settings.get("y"):
        lines.append("y = ...  # the labels, given beside the data")
        decision = "y=y"
    if rules.source is None:
        lines.append("table = ...  # the data: not read from a file")
        data = "table"
    arguments = [data, decision]
    if rules.engine != "local":
        arguments.append(f"engine={rules.engine!r}")
    arguments += [f"{name}={value!r}" for name, value in changed_rule_settings(rules).items()]
    return "\n".join([*lines, _call("r = plar.rules", arguments)])


def check_call(check: Check) -> str:
    """Write the call of `plar.check` that gives this result, once the other result is loaded.

    >>> import plar
    >>> table = {"a": [0, 0, 1, 1], "t": [0, 0, 1, 1]}
    >>> print(check_call(plar.check(plar.reduce(table, "t"), table, alpha=0.01)))
    import plar
    <BLANKLINE>
    result = plar.load(...)  # the reduct that was checked
    table = ...  # the new rows: not read from a file
    c = plar.check(result, table, alpha=0.01)
    """
    lines = ["import plar", "", f"result = plar.load(...)  # the {check.checked} that was checked"]
    arguments = ["result", repr(check.source)]
    if check.source is None:
        lines.append("table = ...  # the new rows: not read from a file")
        arguments[1] = "table"
    if check.settings.get("y"):
        lines.append("y = ...  # the target, given beside them")
        arguments.append("y=y")
    if check.settings.get("seen"):
        arguments.append(f"seen={check.settings['seen']!r}")
    if check.alpha != DEFAULT_ALPHA:
        arguments.append(f"alpha={check.alpha!r}")
    if check.engine != "local":
        arguments.append(f"engine={check.engine!r}")
    return "\n".join([*lines, _call("c = plar.check", arguments)])


def _call(function: str, arguments: Sequence[str]) -> str:
    """A call on one line, or, if that is long, with an argument on each."""
    call = f"{function}({', '.join(arguments)})"
    if len(call) > _WIDTH:
        call = "\n".join([f"{function}(", *(f"    {argument}," for argument in arguments), ")"])
    return call


def changed_selection_settings(selection: Selection) -> dict[str, Any]:
    """The settings of a selection that differ from their defaults, by the names that `plar.select` has for them."""
    changed = _changed({**_SELECT, **_READING, **_SELECT_READING}, selection.settings)
    return {_SELECT_NAMES.get(name, name): value for name, value in changed.items()}


def changed_rule_settings(rules: Rules) -> dict[str, Any]:
    """The settings of rules that differ from their defaults, and the columns if they were chosen in any way."""
    settings = dict(rules.settings)
    if settings.get("alpha") is None:
        del settings["alpha"]
    conditions = settings.get("conditions")
    if conditions is not None and settings.get("attributes") is None:
        settings["attributes"] = list(rules.attributes)  # others were dropped
    if settings.get("attributes") == conditions:
        settings["conditions"] = None
    return _changed({"attributes": None, **_RULES, **_READING, **_RULES_READING}, settings)


def changed_settings(reduct: Reduct) -> dict[str, Any]:
    """The settings that differ from their defaults."""
    start = "core" if reduct.settings.get("alpha") is None else "empty"
    return _changed({**_READING, **_SEARCH, "start": start}, reduct.settings)


def _changed(defaults: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that differ from these defaults."""
    changed = {}
    for name, default in defaults.items():
        value = settings.get(name, default)
        # an empty value is a default too, but na=() is not
        if value != default and (name == "na" or value not in ([], (), {})):
            changed[name] = value
    return changed


def shell_command(reduct: Reduct, command: str = "reduce") -> str | None:
    """Write the command that gives this result; None if no command can, as for an update.

    >>> import plar
    >>> shell_command(plar.reduce("examples/tic_tac_toe.csv", "x_wins", include=["top_left"], minimal=True))
    'plar reduce examples/tic_tac_toe.csv --decision x_wins --measure SCE --include top_left --minimal'
    """
    if reduct.source is None or reduct.change is not None:
        return None
    if reduct.measure not in MEASURES or reduct.settings.get("y"):
        return None
    if NO_NA in (reduct.settings.get("na") or ()):  # which has another meaning there
        return None
    words = ["plar", command, reduct.source]
    for name in reduct.decision:
        words += ["--decision", name]
    words += ["--measure", reduct.measure]
    if reduct.engine != "local":
        words += ["--engine", reduct.engine]
    words += _option_words(changed_settings(reduct))
    return " ".join(map(_quoted, words))


def select_command(selection: Selection) -> str | None:
    """Write the command that gives this result; None if no command can.

    >>> import plar
    >>> select_command(plar.select("examples/tic_tac_toe.csv", "x_wins", include=["top_left"], given="all"))
    'plar select examples/tic_tac_toe.csv --target x_wins --given all --include top_left'
    """
    if selection.source is None or selection.settings.get("y"):
        return None
    if NO_NA in (selection.settings.get("na") or ()):
        return None
    words = ["plar", "select", selection.source]
    for name in selection.target:
        words += ["--target", name]
    if selection.engine != "local":
        words += ["--engine", selection.engine]
    words += _option_words(changed_selection_settings(selection))
    return " ".join(map(_quoted, words))


def rules_command(rules: Rules) -> str | None:
    """Write the command that gives this result; None if no command can.

    >>> import plar
    >>> rules_command(plar.rules("examples/tic_tac_toe.csv", "x_wins", kind="certain", max_conditions=3))
    'plar rules examples/tic_tac_toe.csv --decision x_wins --kind certain --max-conditions 3'
    """
    if rules.source is None or rules.settings.get("y"):
        return None
    if NO_NA in (rules.settings.get("na") or ()):
        return None
    words = ["plar", "rules", rules.source, "--decision", rules.decision[0]]
    if rules.engine != "local":
        words += ["--engine", rules.engine]
    words += _option_words(changed_rule_settings(rules))
    return " ".join(map(_quoted, words))


def _option_words(settings: Mapping[str, Any]) -> list[str]:
    """Options with their arguments, as a shell takes them."""
    words = []
    for name, value in settings.items():
        option = "--no-header" if name == "header" else "--" + name.replace("_", "-")
        if isinstance(value, bool):
            words.append(option)
            continue
        for argument in _arguments(name, value):
            words += [option, argument]
    return words


def _arguments(name: str, value: Any) -> list[str]:
    """What follows an option of the shell, which is given once for each."""
    if name == "costs":
        return [f"{column}={cost}" for column, cost in value.items()]
    if isinstance(value, Mapping):  # bins by column
        return [f"{column}={_rule(rule)}" for column, rule in value.items()]
    if name == "bins" and value is None:
        return [_NO_BINS]
    if name in ("decision_bins", "target_bins"):
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
