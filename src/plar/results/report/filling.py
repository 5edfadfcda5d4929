"""Filling in the templates of pages: their style and script, their security policy, and data for the script."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from plar.errors import PlarError
from plar.results.report import words

#: values shown of a setting
MAX_SETTING_VALUES = 20


def filled(name: str, **values: Any) -> str:
    """Fill in a page; its Content-Security-Policy allows only this style and this script, by their hashes."""
    folder = files("plar.results.report")
    style = folder.joinpath("page.css").read_text(encoding="utf-8")
    script = folder.joinpath("page.js").read_text(encoding="utf-8")
    text = _template(name).render(
        version=version("plar"),
        words=words,
        style=style,
        script=script,
        style_hash=_content_hash(style),
        script_hash=_content_hash(script),
        **values,
    )
    return str(text)


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
    environment.filters.update(
        number=words.number,
        short=words.shortened,
        visible=words.visible,
        counted=words.counted,
        breakable=_breakable,
    )
    return environment.get_template(name)


def _content_hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def safe_json(data: Mapping[str, Any]) -> str:
    """Data for a script, as JSON that is safe between script tags."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    # so that nothing in it closes the tag or opens a comment
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _breakable(name: str) -> Any:
    """Let a browser break the line between the words of a name, and nowhere else."""
    from markupsafe import Markup, escape

    return Markup("<wbr>").join(map(escape, words.words_of(name)))


def shown_setting(value: Any) -> str:
    """A setting in words."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, (Mapping, list, tuple)):
        return words.shortened(str(value), 200)
    if isinstance(value, Mapping):
        items = [f"{words.visible(str(key))}: {item}" for key, item in value.items()]
    else:
        items = [words.shortened(str(item)) for item in value]
    shown = items[:MAX_SETTING_VALUES]
    if len(items) > MAX_SETTING_VALUES:
        shown.append(f"and {len(items) - MAX_SETTING_VALUES:,} more")
    return ", ".join(shown)
