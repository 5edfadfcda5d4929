"""A reduct as one self-contained HTML page: no network, light and dark, on a phone and on paper."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from importlib.resources import files
from itertools import chain
from typing import TYPE_CHECKING, Any

from plar.errors import PlarError
from plar.files import replacing
from plar.limits import shown_seconds
from plar.report.curve import curve
from plar.report.reproduce import python_call, shell_command
from plar.report.words import (
    LONGEST,
    MEASURES,
    aligned,
    counted,
    intervals,
    number,
    origins,
    percent,
    shortened,
    significances,
    visible,
)

if TYPE_CHECKING:
    from plar.reduct import Reduct, Step

__all__ = ["page", "write"]

#: rows of a table that are shown at first
ROWS = 50
#: names of a list that are shown, and of candidates that did not tie
NAMES, RUNNERS_UP = 6, 3


def write(found: Reduct, path: str | os.PathLike[str], command: str | None = None) -> None:
    """Write the page, whole or not at all."""
    text = page(found, command)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def page(found: Reduct, command: str | None = None) -> str:
    """Make the page.

    Examples
    --------
    >>> import plar
    >>> r = plar.reduce({"a<b": [0, 1, 2], "c": [1, 0, 0], "d": [0, 1, 1]}, "d")
    >>> "a<b" in page(r), "a&lt;b" in page(r)
    (False, True)
    """
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise PlarError("A report needs jinja2, which is not installed. Try: pip install 'plar[report]'.") from None
    environment = Environment(
        loader=PackageLoader("plar.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(number=number, short=shortened, visible=visible, counted=counted)
    style, script = (files("plar.report").joinpath(name).read_text(encoding="utf-8") for name in _PARTS)
    return environment.get_template("page.html.j2").render(
        r=found,
        version=version("plar"),
        seconds=shown_seconds(sum(found.seconds.values())),
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
        data=_json(_data(found)),
        wide=curve(found),
        narrow=curve(found, 340, 260),
        chosen=_chosen(found),
        steps=_steps(found),
        columns=_columns(found)[:ROWS],
        first_round=_first_round(found)[:ROWS],
        groups=_groups(found),
        dropped=len(found.conditions) - len(found.attributes),
        saved=percent(len(found.conditions) - len(found.attributes), len(found.conditions)),
        removed=[step.attribute for step in found.steps if step.attribute not in set(found.attributes)],
        about=MEASURES.get(found.measure, "a measure of the user's own"),
        settings=_settings(found),
        python=python_call(found),
        shell=visible(command) if command else shell_command(found),
        rows=ROWS,
        names=NAMES,
        longest=LONGEST,
    )


_PARTS = ("page.css", "page.js")


def _hash(text: str) -> str:
    """What a Content-Security-Policy calls a text that may run."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _json(data: Any) -> str:
    """JSON that can stand between script tags: nothing in it ends them or opens a comment."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _data(found: Reduct) -> dict[str, Any]:
    """What the tables that can be sorted hold, each name once."""
    names = [visible(name) for name in found.conditions]
    return {
        "names": names,
        "columns": [[row["part"], row["values"], row["missing"]] for row in _columns(found)],
        "rounds": [[step.candidates.get(name) for name in found.conditions] for step in found.steps],
        "taken": [found.conditions.index(step.attribute) for step in found.steps],
    }


def _columns(found: Reduct) -> list[dict[str, Any]]:
    parts = origins(found)
    left = dict.fromkeys(found.core, "core, left out") | {
        step.attribute: f"step {i}, left again" for i, step in enumerate(found.steps, 1)
    }
    return [
        {
            "name": name,
            "part": parts.get(name) or left.get(name, ""),
            "values": found.cardinalities.get(name),
            "missing": found.missing.get(name, 0),
        }
        for name in found.conditions
    ]


def _chosen(found: Reduct) -> list[dict[str, Any]]:
    parts, known, cuts = origins(found), significances(found), found.cuts
    written = dict(zip(known, aligned(list(known.values())), strict=True))
    largest = max(known.values(), default=0.0)
    same = {name: [other for other in group if other != name] for group in found.equivalent or () for name in group}
    return [
        {
            "name": name,
            "part": parts[name],
            "significance": known.get(name),
            "written": written.get(name),
            "bar": _bar(known.get(name), largest),
            "values": found.cardinalities.get(name),
            "missing": found.missing.get(name, 0),
            "intervals": intervals(cuts[name]) if name in cuts else None,
            "same": same.get(name, []),
        }
        for name in found.attributes
    ]


def _groups(found: Reduct) -> list[tuple[tuple[str, ...], set[str]]] | None:
    """Columns of the same information, and which of them are chosen; None where they were not asked for."""
    chosen = set(found.attributes)
    return None if found.equivalent is None else [(group, set(group) & chosen) for group in found.equivalent]


def _bar(value: float | None, largest: float) -> str:
    return f"{100 * value / largest:.1f}%" if value and largest > 0 and value > 0 else "0.0%"


def _steps(found: Reduct) -> list[dict[str, Any]]:
    gains = aligned([step.significance for step in found.steps])
    thetas = aligned([step.theta for step in found.steps])
    return [
        {
            "step": step,
            "significance": gain,
            "theta": theta,
            "ties": [name for name in step.ties if name != step.attribute],
            "next": _runners_up(step),
        }
        for step, gain, theta in zip(found.steps, gains, thetas, strict=True)
    ]


def _runners_up(step: Step) -> list[tuple[str, str, float]]:
    """The best of those that did not tie."""
    ties = set(step.ties)
    best = sorted((-value, name) for name, value in step.candidates.items() if name not in ties and value)
    return [(name, number(-value), -value) for value, name in best[:RUNNERS_UP]]


def _first_round(found: Reduct) -> list[dict[str, Any]]:
    """The candidates of the first round, the best first, as the page shows them before any click."""
    if not found.steps:
        return []
    order = {name: k for k, name in enumerate(found.conditions)}
    values = found.steps[0].candidates
    best = sorted(values, key=lambda name: (-values[name], order[name]))
    largest = max(values.values())
    written = aligned([values[name] for name in best])
    return [
        {
            "name": name,
            "place": order[name] + 1,
            "value": values[name],
            "written": text,
            "bar": _bar(values[name], largest),
            "taken": name == found.steps[0].attribute,
        }
        for name, text in zip(best, written, strict=True)
    ]


def _settings(found: Reduct) -> list[tuple[str, str]]:
    shown: Mapping[str, Any] = {"measure": found.measure, "engine": found.engine, **found.settings}
    return [(name, _shown(value)) for name, value in shown.items()]


def _shown(value: Any) -> str:
    if value is None or value in ([], (), {}):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return _few(f"{visible(str(key))}: {item}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return _few(shortened(str(item)) for item in value)
    return shortened(str(value), 200)


def _few(words: Iterable[str], most: int = 20) -> str:
    listed = list(words)
    more = [f"and {len(listed) - most:,} more"] if len(listed) > most else []
    return ", ".join(chain(listed[:most], more))
