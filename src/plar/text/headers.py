"""The first bytes of a text file: what kind of text it is, and its header."""

from __future__ import annotations

import codecs
from dataclasses import replace
from pathlib import Path

from plar.errors import TableError
from plar.text.arff import arff_header, begins_as_arff
from plar.text.chunks import built_upon_ascii, open_bytes, read_head
from plar.text.dialect import Header, delimited_header

_OTHERS = [(b"PAR1", "a Parquet", ".parquet"), (b"ARROW1", "an Arrow", ".arrow")]


def read_header(path: Path, kind: str, header: bool, separator: str | None, encoding: str) -> Header:
    """Read the header of one file; parameters as of `plar.text.reader.open_text`."""
    suffix = (path.with_suffix("") if path.suffix.lower() in (".gz", ".zst") else path).suffix.lower()
    with open_bytes(path, encoding) as file:
        head, whole, found = read_head(file, path), False, None
        if not head:
            raise TableError(f"{str(path)!r} is empty. A table needs a header and rows.")
        _check_text(path, head, encoding)
        utf8 = encoding == "utf-8" or not built_upon_ascii(encoding)
        mark = len(codecs.BOM_UTF8) if utf8 and head.startswith(codecs.BOM_UTF8) else 0
        inside = "utf-8" if utf8 else encoding
        while True:
            lines = head[mark:]
            if kind == "arff" or (kind == "dat" and begins_as_arff(lines)):
                found = arff_header(lines, path, inside, whole=whole)
            else:
                found = delimited_header(lines, path, suffix, header=header, separator=separator, encoding=inside)
            if found is not None:
                return replace(found, size=found.size + mark)
            if whole:
                raise _no_header(path, lines)
            more = read_head(file, path, head)
            whole = len(more) == len(head)
            head = more + b"\n" if whole and not more.endswith(b"\n") else more


def _no_header(path: Path, head: bytes) -> TableError:
    if not head.strip():
        return TableError(f"{str(path)!r} holds blank lines only. A table needs a header and rows.")
    return TableError(f"{str(path)!r}: a quote of the first row is not closed. Check the quotes and line ends.")


def _check_text(path: Path, head: bytes, encoding: str) -> None:
    """Refuse what is no text, by its first bytes."""
    name = repr(str(path))
    for magic, kind, suffix in _OTHERS:
        if head.startswith(magic):
            raise TableError(f"{name} is {kind} file, not text. Rename it to {suffix}.")
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and built_upon_ascii(encoding):
        raise TableError(f"{name} is UTF-16, not UTF-8. Pass encoding='utf-16' (--encoding utf-16).")
