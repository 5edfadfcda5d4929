"""A report as text that a notebook shows as a page, and how it is written to a file."""

from __future__ import annotations

import os
from html import escape

from plar.errors import TableError
from plar.files import as_path, replacing
from plar.limits import shown_bytes


class Page(str):
    """The text of an HTML page; a notebook shows it in a frame.

    >>> Page("<!doctype html><p>text")
    <HTML page of 22 bytes>
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<HTML page of {shown_bytes(len(self.encode()))}>"

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self)}" style="width:100%;height:40em;border:0"></iframe>'


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
