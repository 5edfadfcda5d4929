"""A reduct as one self-contained HTML page: no network, light and dark, on a phone and on paper."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from plar.errors import PlarError
from plar.limits import shown_seconds
from plar.report.curve import curve
from plar.report.ranking import ranked
from plar.report.reproduce import changed_settings, python_call, shell_command
from plar.report.words import (
    LONGEST,
    MEASURES,
    aligned,
    bar,
    bounds_words,
    chance_words,
    chosen,
    counted,
    level_of,
    nothing_words,
    number,
    p_values_of,
    p_words,
    per_combination,
    percent,
    shortened,
    visible,
    words_of,
)

if TYPE_CHECKING:
    from plar.reduct import Reduct, Step

#: rows of a table shown initially
ROWS = 50
#: names shown of a list and of the runners-up, and values of a setting
NAMES, RUNNERS_UP, SETTINGS = 6, 3, 20
#: what the script knows of each column
_KEYS = ("place", "role", "of", "gain", "first", "values", "missing")


@cache
def template(name: str = "page.html.j2") -> Any:
    """A page to fill in; compiling it takes longer than all the rest, so it is kept."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise PlarError("A report needs jinja2, which is not installed. Try: pip install 'plar[report]'.") from None
    how: dict[str, Any] = {"autoescape": True, "undefined": StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    environment = Environment(loader=PackageLoader("plar.report", "."), **how)
    environment.filters.update(number=number, short=shortened, visible=visible, counted=counted, breakable=_breakable)
    return environment.get_template(name)


def page(found: Reduct, command: str | None = None) -> str:
    """Make the page."""
    here, whole = files("plar.report"), template()
    style, script = (here.joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    columns, dropped = ranked(found), len(found.conditions) - len(found.attributes)
    settings = {"measure": found.measure, "engine": found.engine, **changed_settings(found)}
    inside = set(found.attributes)
    groups = None if found.equivalent is None else [(group, set(group) & inside) for group in found.equivalent]
    made: str = whole.render(
        r=found,
        version=version("plar"),
        seconds=shown_seconds(sum(found.seconds.values())),
        style=style,
        script=script,
        style_hash=content_hash(style),
        script_hash=content_hash(script),
        data=_data(found, columns),
        wide=curve(found),
        narrow=curve(found, 340, 260),
        chosen=chosen(found),
        chance=chance_words(found),
        nothing=nothing_words(found),
        bounds=bounds_words(found),
        level=level_of(found),
        begins=found.settings.get("start", "core"),
        per_combination=per_combination(found),
        rejected=_rejected(found),
        steps=_steps(found),
        columns=columns[:ROWS],
        first_round=_first_round(found)[:ROWS],
        groups=groups,
        dropped=dropped,
        saved=percent(dropped, len(found.conditions)),
        removed=[step.attribute for step in found.steps if step.attribute not in inside],
        about=MEASURES.get(found.measure, "a measure of the user's own"),
        settings=[(name, _shown(value)) for name, value in settings.items()],
        python=python_call(found),
        shell=visible(command) if command else shell_command(found),
        rows=ROWS,
        names=NAMES,
        longest=LONGEST,
    )
    return made


def content_hash(text: str) -> str:
    """The name by which a Content-Security-Policy allows a script or a style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _data(found: Reduct, columns: list[dict[str, Any]]) -> str:
    """The contents of the sortable tables, as JSON that is safe between script tags."""
    data = {
        "names": [visible(name) for name in found.conditions],
        "columns": [[row[key] for key in _KEYS] for row in columns],
        "rounds": [[step.candidates.get(name) for name in found.conditions] for step in found.steps],
        "taken": [found.conditions.index(step.attribute) for step in found.steps],
    }
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    # so that nothing in it closes the tag or opens a comment
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _steps(found: Reduct) -> list[dict[str, Any]]:
    thetas = aligned([step.theta for step in found.steps])
    p_values = p_values_of(found) or [("", False)] * len(found.steps)
    passed = [_passed_over(step) if found.settings.get("alpha") else [] for step in found.steps]
    return [
        {
            "step": step,
            "theta": theta,
            "p": p,
            "passed": over,
            "ties": [name for name in step.ties if name != step.attribute],
            "next": _runners_up(step.candidates, {*step.ties, *over}),
        }
        for step, theta, p, over in zip(found.steps, thetas, p_values, passed, strict=True)
    ]


def _rejected(found: Reduct) -> list[tuple[str, str, float]]:
    """The remaining columns that came close to beating chance, the closest first."""
    near = sorted((p, name) for name, p in found.rejected.items() if p < 1)
    return [(name, p_words(p, level_of(found)), p) for p, name in near]


def _passed_over(step: Step) -> list[str]:
    """Candidates that would have been taken if they had beaten chance."""
    value = step.candidates[step.attribute]
    return [name for name, other in step.candidates.items() if other >= value and name not in step.ties]


def _runners_up(candidates: Mapping[str, float], left_out: set[str]) -> list[tuple[str, str, float]]:
    best = sorted((-value, name) for name, value in candidates.items() if name not in left_out and value)
    return [(name, number(-value), -value) for value, name in best[:RUNNERS_UP]]


def _first_round(found: Reduct) -> list[dict[str, Any]]:
    """The candidates of the first round, best first, as the page shows them initially."""
    if not found.steps:
        return []
    places = {name: k for k, name in enumerate(found.conditions, 1)}
    values = found.steps[0].candidates
    best = sorted(values, key=lambda name: (-values[name], places[name]))
    return [
        {
            "name": name,
            "place": places[name],
            "value": values[name],
            "written": text,
            "bar": bar(values[name], values[best[0]]),
            "taken": name == found.steps[0].attribute,
        }
        for name, text in zip(best, aligned([values[name] for name in best]), strict=True)
    ]


def _breakable(name: str) -> Any:
    """Let a browser break the line between the words of a name, and nowhere else."""
    from markupsafe import Markup, escape

    return Markup("<wbr>").join(map(escape, words_of(name)))


def _shown(value: Any) -> str:
    """A setting in words."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, (Mapping, list, tuple)):
        return shortened(str(value), 200)
    words = [shortened(str(item)) for item in value]
    if isinstance(value, Mapping):
        words = [f"{visible(str(key))}: {item}" for key, item in value.items()]
    more = [f"and {len(words) - SETTINGS:,} more"] if len(words) > SETTINGS else []
    return ", ".join(words[:SETTINGS] + more)
