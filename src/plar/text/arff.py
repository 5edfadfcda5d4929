"""The header of WEKA's ARFF files and of the similar .dat files of KEEL: attributes are declared, then rows follow."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from plar.errors import TableError
from plar.text.dialect import Dialect, Header, decoded

_QUOTED = r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\""""
_NAME = re.compile(rf"\s*({_QUOTED}|[^\s{{]+)\s*(.*)", re.DOTALL)
_TYPES = ("numeric", "real", "integer", "string", "date")


def begins_as_arff(head: bytes) -> bool:
    r"""Whether a file begins as ARFF and KEEL files do, with @relation under comments.

    >>> begins_as_arff(b"% flowers\n@RELATION iris\n"), begins_as_arff(b"a b c\n")
    (True, False)
    """
    return _first_line(head.split(b"\n")).lower().startswith(b"@relation")


def _first_line(lines: Iterable[bytes]) -> bytes:
    """The first line that is neither blank nor a comment, if any."""
    return next((line for line in map(bytes.strip, lines) if line and not line.startswith(b"%")), b"")


def _unquote(text: str) -> str:
    text = text.strip()
    if len(text) > 1 and text[0] in "'\"" and text[-1] == text[0]:
        return re.sub(r"""\\(['"\\%])""", r"\1", text[1:-1])
    return text


def _name(declared: str, where: str) -> str:
    match = _NAME.fullmatch(declared)
    if not match or not match[2].strip():
        raise TableError(f"{where}: cannot read '@attribute {declared.strip()}'. Write @attribute name type.")
    name, kind = _unquote(match[1]), match[2].strip()
    if kind.startswith("{"):
        if "}" not in kind:
            raise TableError(f"{where}: the values of attribute {name!r} have no closing brace. Add it on that line.")
        return name
    word = re.match(r"[A-Za-z]*", kind)
    if not word or word[0].lower() not in _TYPES:
        known = ", ".join(_TYPES)
        raise TableError(f"{where}: unknown type {kind!r} of attribute {name!r}. Known: {{values}}, {known}.")
    return name


def arff_header(head: bytes, path: Path, encoding: str, *, whole: bool) -> Header | None:
    """Read the declarations; None if they, or the first row, may continue beyond `head`, unless that is `whole`."""
    names: list[str] = []
    outputs: tuple[str, ...] = ()
    lines = enumerate(head.split(b"\n")[:-1], 1)
    size = 0
    for number, line in lines:
        size += len(line) + 1
        text = decoded(line, path, number, encoding).strip()
        word, _, rest = re.sub(r"\s+", " ", text, count=1).partition(" ")
        word, where = word.lower(), f"{str(path)!r}, line {number}"
        if not text or text.startswith("%") or word in ("@relation", "@input", "@inputs"):
            continue
        if word == "@attribute":
            names.append(_name(rest, where))
        elif word in ("@output", "@outputs"):
            parts = re.findall(rf"(?:{_QUOTED}|[^,])+", rest)
            outputs = tuple(_unquote(part) for part in parts if part.strip())
        elif word == "@data":
            row = _first_line(line for _, line in lines)
            if not row and not whole:
                return None
            return Header(tuple(names), _dialect(row, len(names), path, outputs), size, number, outputs)
        else:
            raise TableError(f"{where}: {text[:40]!r} is not an ARFF declaration. Expected @attribute or @data.")
    if whole:
        raise TableError(f"{str(path)!r} has no @data line. Add it before the first row.")
    return None


def _dialect(row: bytes, n_attributes: int, path: Path, outputs: tuple[str, ...]) -> Dialect:
    if not n_attributes:
        raise TableError(f"{str(path)!r} declares no attribute. Add @attribute lines.")
    if row.startswith(b"{") and n_attributes > 1:
        raise TableError(f"{str(path)!r} has sparse rows. Convert them with WEKA's SparseToNonSparse.")
    separator = "\t" if b"\t" in row and b"," not in row else ","
    # KEEL, which names its outputs, also writes <null>
    return Dialect(separator, "'\"", "%", padded=True, missing=("?", "<null>") if outputs else ("?",))
