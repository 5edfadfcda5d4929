"""Results as self-contained HTML pages: no network, light and dark, on a phone and on paper."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from plar.errors import PlarError, TableError
from plar.files.write import as_path, replacing
from plar.measures import MEASURES
from plar.results.report import words
from plar.results.report.curve import curve
from plar.results.report.ranking import ranked
from plar.results.report.reproduce import changed_settings, python_call, shell_command
from plar.runtime.limits import shown_bytes, shown_seconds

if TYPE_CHECKING:
    from plar.results.reduct import Reduct, Step
    from plar.results.reduct_list import Reducts

#: rows of a table shown initially
ROWS = 50
#: names shown of a list and of the runners-up, and values of a setting
NAMES, RUNNERS_UP, SETTINGS = 6, 3, 20
#: rows of a table of reducts, and columns of the matrix
REDUCTS, MATRIX = 100, 40
#: what the script knows of each column
_KEYS = ("place", "role", "of", "gain", "first", "values", "missing")


class Page(str):
    """The text of an HTML page; a notebook shows it in a frame.

    >>> Page("<!doctype html><p>text")
    <HTML page of 22 bytes>
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<HTML page of {shown_bytes(len(self.encode()))}>"

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{html.escape(self)}" style="width:100%;height:40em;border:0"></iframe>'


def check_name(path: str | os.PathLike[str]) -> None:
    """Refuse names of other formats; a name without a suffix is taken."""
    suffix = as_path(path).suffix
    if suffix.lower() not in ("", ".html", ".htm"):
        raise TableError(
            f"A report is an HTML page. Got {os.fspath(path)!r}; name it .html, or print it from a browser."
        )


def save_or_return(text: str, path: str | os.PathLike[str] | None) -> Page | None:
    """Write a page to a file, whole or not at all; without a path, return it."""
    if path is None:
        return Page(text)
    check_name(path)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return None


def page(reduct: Reduct, command: str | None = None) -> str:
    """Make the page of a reduct."""
    columns, inside = ranked(reduct), set(reduct.attributes)
    in_first_round = [row for row in columns if row["first"] is not None]
    settings = {"measure": reduct.measure, "engine": reduct.engine, **changed_settings(reduct)}
    groups = None if reduct.equivalent is None else [(group, set(group) & inside) for group in reduct.equivalent]
    return _filled(
        "page.html.j2",
        r=reduct,
        seconds=shown_seconds(sum(reduct.seconds.values())),
        data=_data(reduct, columns),
        wide=curve(reduct),
        narrow=curve(reduct, 340, 260),
        rejected=_rejected(reduct),
        steps=_steps(reduct),
        columns=columns[:ROWS],
        first_round=sorted(in_first_round, key=lambda row: (-row["first"], row["place"]))[:ROWS],
        groups=groups,
        removed=[step.attribute for step in reduct.steps if step.attribute not in inside],
        settings=[(name, _shown(value)) for name, value in settings.items()],
        python=python_call(reduct),
        shell=words.visible(command) if command else shell_command(reduct),
        rows=ROWS,
        names=NAMES,
    )


def reducts_page(reducts: Reducts) -> str:
    """Make the page of all reducts: how many of each size, how often each column is needed, which holds what."""
    shares = reducts.frequencies
    often = sorted(shares, key=lambda name: -shares[name])
    used = [name for name in often if shares[name]]
    most = max(reducts.sizes.values(), default=0)
    return _filled(
        "reducts.html.j2",
        reducts=reducts,
        seconds=shown_seconds(reducts.seconds),
        sizes=[(size, n, words.bar(n, most)) for size, n in reducts.sizes.items()],
        columns=[_share(name, shares[name], reducts) for name in often[:REDUCTS]],
        unshown=len(often) - REDUCTS,
        unused=[name for name in shares if not shares[name]],
        matrix=used[:MATRIX],
        left_out=len(used) - MATRIX,
        shown=[(i, member, set(member.attributes)) for i, member in enumerate(reducts[:REDUCTS], 1)],
    )


def _filled(name: str, **values: Any) -> str:
    """Fill in a page; its Content-Security-Policy allows only this style and this script, by their hashes."""
    here = files("plar.results.report")
    style, script = (here.joinpath(file).read_text(encoding="utf-8") for file in ("page.css", "page.js"))
    hashes = {"style_hash": _content_hash(style), "script_hash": _content_hash(script)}
    common = {"version": version("plar"), "words": words, "style": style, "script": script, **hashes}
    return str(_template(name).render(**common, **values))


@cache
def _template(name: str) -> Any:
    """A page to fill in; compiling it takes longer than all the rest, so it is kept."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise PlarError("A report needs jinja2, which is not installed. Try: pip install 'plar[report]'.") from None
    environment = Environment(
        loader=PackageLoader("plar.results.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shown = {"number": words.number, "short": words.shortened, "visible": words.visible, "counted": words.counted}
    environment.filters.update(shown, breakable=_breakable)
    return environment.get_template(name)


def _content_hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _data(reduct: Reduct, columns: list[dict[str, Any]]) -> str:
    """The contents of the sortable tables, as JSON that is safe between script tags."""
    data = {
        "names": [words.visible(name) for name in reduct.conditions],
        "columns": [[row[key] for key in _KEYS] for row in columns],
        "rounds": [[step.candidates.get(name) for name in reduct.conditions] for step in reduct.steps],
        "taken": [reduct.conditions.index(step.attribute) for step in reduct.steps],
    }
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    # so that nothing in it closes the tag or opens a comment
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _steps(reduct: Reduct) -> list[dict[str, Any]]:
    thetas, p_values = words.aligned([step.theta for step in reduct.steps]), words.p_values_of(reduct)
    passed = [_passed_over(step, _tie_bound(reduct)) if reduct.settings.get("alpha") else [] for step in reduct.steps]
    return [
        {
            "step": step,
            "theta": theta,
            "p": p,
            "passed": over,
            "ties": [name for name in step.ties if name != step.attribute],
            "next": _runners_up(step.candidates, {*step.ties, *over}),
        }
        for step, theta, p, over in zip(reduct.steps, thetas, p_values, passed, strict=True)
    ]


def _rejected(reduct: Reduct) -> list[tuple[str, str, float]]:
    """The remaining columns that came close to beating chance, the closest first."""
    near = sorted((p, name) for name, p in reduct.rejected.items() if p < 1)
    return [(name, words.p_words(p, words.level_of(reduct)), p) for p, name in near]


def _passed_over(step: Step, tie_bound: float) -> list[str]:
    """Candidates that would have been taken if they had beaten chance."""
    least = max(step.candidates[name] for name in step.ties) - tie_bound
    return [name for name, gain in step.candidates.items() if gain >= least and name not in step.ties]


def _tie_bound(reduct: Reduct) -> float:
    """By how much the gains of two columns that tie may differ."""
    measure = MEASURES.get(reduct.measure)
    return 0.0 if measure is None else measure.value(measure.tie_bound(reduct.n_objects), reduct.n_objects)


def _runners_up(candidates: Mapping[str, float], left_out: set[str]) -> list[tuple[str, str, float]]:
    best = sorted((-value, name) for name, value in candidates.items() if name not in left_out and value)
    return [(name, words.number(-value), -value) for value, name in best[:RUNNERS_UP]]


def _breakable(name: str) -> Any:
    """Let a browser break the line between the words of a name, and nowhere else."""
    from markupsafe import Markup, escape

    return Markup("<wbr>").join(map(escape, words.words_of(name)))


def _shown(value: Any) -> str:
    """A setting in words."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, (Mapping, list, tuple)):
        return words.shortened(str(value), 200)
    shown = [words.shortened(str(item)) for item in value]
    if isinstance(value, Mapping):
        shown = [f"{words.visible(str(key))}: {item}" for key, item in value.items()]
    if len(shown) > SETTINGS:
        shown = [*shown[:SETTINGS], f"and {len(shown) - SETTINGS:,} more"]
    return ", ".join(shown)


def _share(name: str, share: float, reducts: Reducts) -> dict[str, Any]:
    """A column of the page of all reducts."""
    n_holding = round(share * len(reducts))
    part = ""
    if name in reducts.core:
        part = "core"
    elif reducts.complete and not n_holding:
        part = "in none"
    written = words.percent(n_holding, max(len(reducts), 1))
    return {"name": name, "share": share, "written": written, "held": n_holding, "part": part}
