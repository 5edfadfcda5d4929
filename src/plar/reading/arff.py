"""WEKA's ARFF and its cousin, KEEL's .dat: a header that declares the attributes, then rows.

Rows without quotes and blanks go through polars' CSV reader, nominal attributes as the enumerations that the
header declares; other files are cut line by line. A value that the header does not declare is a value
like any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from plar.errors import TableError
from plar.reading.lines import LineFile, line_source
from plar.reading.source import Source
from plar.reading.text import TextFile, text_lines

if TYPE_CHECKING:
    import polars as pl

__all__ = ["arff_source", "is_arff"]

_QUOTED = r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\""""
_NAME = re.compile(rf"\s*({_QUOTED}|[^\s{{]+)\s*(.*)", re.DOTALL)
_TYPES = ("numeric", "real", "integer", "string", "date")
_HEADER_LINES = 1 << 20
_SNIFFED = 1000
_PIECE = 1 << 17
_CAPITAL = re.compile("[TRUEFALS]")


@dataclass(frozen=True, slots=True)
class _Header:
    path: Path
    attributes: tuple[tuple[str, tuple[str, ...] | None], ...]  # name, and the values of a nominal one
    outputs: tuple[str, ...]
    skip: int
    sample: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.attributes)

    @property
    def separator(self) -> str:
        first = self.sample[0] if self.sample else ","
        return "\t" if "\t" in first.strip() and "," not in first else ","


def is_arff(path: Path) -> bool:
    """Whether a file begins as ARFF and KEEL files do, with @relation under comments."""
    for line in text_lines(path, _HEADER_LINES):
        text = line.strip()
        if text and not text.startswith("%"):
            return text.lower().startswith("@relation")
    return False


def _unquote(text: str) -> str:
    text = text.strip()
    if len(text) > 1 and text[0] in "'\"" and text[-1] == text[0]:
        return re.sub(r"""\\(['"\\%])""", r"\1", text[1:-1])
    return text


def _split(text: str) -> list[str]:
    """Cut a list at commas outside quotes."""
    return [_unquote(m) for m in re.findall(rf"(?:{_QUOTED}|[^,])+", text) if m.strip()]


def _attribute(declared: str, where: str) -> tuple[str, tuple[str, ...] | None]:
    match = _NAME.fullmatch(declared)
    if not match or not match[2].strip():
        raise TableError(f"{where}: cannot read '@attribute {declared.strip()}'. Write @attribute name type.")
    name, kind = _unquote(match[1]), match[2].strip()
    if kind.startswith("{"):
        if "}" not in kind:
            raise TableError(f"{where}: the values of attribute {name!r} have no closing brace. Add it on that line.")
        return name, tuple(dict.fromkeys(_split(kind[1 : kind.rindex("}")])))
    word = re.match(r"[A-Za-z]*", kind)
    if not word or word[0].lower() not in _TYPES:
        known = ", ".join(_TYPES)
        raise TableError(f"{where}: unknown type {kind!r} of attribute {name!r}. Known: {{values}}, {known}.")
    return name, None


def _read_header(path: Path) -> _Header:
    with closing(text_lines(path, _HEADER_LINES)) as lines:
        return _header_of(path, enumerate(lines, 1))


def _header_of(path: Path, lines: Iterator[tuple[int, str]]) -> _Header:
    attributes: list[tuple[str, tuple[str, ...] | None]] = []
    outputs: tuple[str, ...] = ()
    for number, line in lines:
        text = line.strip()
        word, _, rest = re.sub(r"\s+", " ", text, count=1).partition(" ")
        word, where = word.lower(), f"{str(path)!r}, line {number}"
        if not text or text.startswith("%") or word in ("@relation", "@input", "@inputs"):
            continue
        if word == "@attribute":
            attributes.append(_attribute(rest, where))
        elif word in ("@output", "@outputs"):
            outputs = tuple(_split(rest))
        elif word == "@data":
            skip, sample = _first_rows((n, s.strip()) for n, s in lines)
            return _Header(path, tuple(attributes), outputs, skip or number, sample)
        else:
            raise TableError(f"{where}: {text[:40]!r} is no ARFF declaration. Expected @attribute or @data.")
    raise TableError(f"{str(path)!r} has no @data line. Add it before the first row.")


def _first_rows(lines: Iterator[tuple[int, str]]) -> tuple[int, tuple[str, ...]]:
    """Lines before the first row, and the first rows."""
    skip, sample = 0, []
    for number, text in islice(lines, _HEADER_LINES):
        if text and not text.startswith("%"):
            skip = skip or number - 1
            sample.append(text)
            if len(sample) == _SNIFFED:
                break
    return skip, tuple(sample)


def arff_source(paths: Sequence[Path]) -> Source:
    """Open ARFF or KEEL files that declare the same attributes."""
    headers = [_read_header(path) for path in paths]
    first = headers[0]
    for header in headers:
        if not header.attributes:
            raise TableError(f"{str(header.path)!r} declares no attribute. Add @attribute lines.")
        if header.names != first.names:
            raise TableError(
                f"{str(header.path)!r} declares other attributes than {str(first.path)!r}. Read them singly."
            )
        if header.sample and header.sample[0].startswith("{") and len(header.names) > 1:
            raise TableError(f"{str(header.path)!r} has sparse rows. Convert them, with WEKA's SparseToNonSparse.")
    careful = _careful(headers)
    sample = [line for header in headers for line in header.sample]
    if any(mark in line for line in sample for mark in "'\"%"):
        return careful
    if len({header.separator for header in headers}) > 1:
        return careful
    if any(" " in line for line in sample):
        return _fast(headers, {}, careful)
    nominal = _categories(headers)
    enums = _fast(headers, nominal, careful)
    booleans = {name for name, values in nominal.items() if sorted(values) == ["false", "true"]}
    if not booleans or any("?" in line or _CAPITAL.search(line) for line in sample):
        return enums
    if any(header.path.suffix.lower() in (".gz", ".zst") for header in headers):
        return enums  # unpacked twice, rows would not be read faster
    return replace(_fast(headers, nominal, enums, booleans), doubt=partial(_any_capital, headers))


def _any_capital(headers: Iterable[_Header]) -> bool:
    """Whether some row of files that are not packed has a capital letter of True or False."""
    return any(_has_capital(header) for header in headers)


def _has_capital(header: _Header) -> bool:
    with header.path.open("rb") as file:
        for _ in range(header.skip):
            file.readline()
        begun = b""  # of a line that ends in the next piece
        for piece in iter(lambda: file.read(_PIECE), b""):
            # one look at bytes is far faster than one at lines, so lines are made only where there is a capital
            if (np.frombuffer(piece, np.uint8) - np.uint8(65) < 26).any():
                rows = (
                    line for line in (begun + piece).decode(errors="replace").splitlines() if line.lstrip()[:1] != "%"
                )
                if any(_CAPITAL.search(row) for row in rows):
                    return True
            begun = piece[piece.rfind(b"\n") + 1 :]
    return False


def _categories(headers: Iterable[_Header]) -> dict[str, list[str]]:
    """Values of the nominal attributes, over all files."""
    found: dict[str, list[str]] = {}
    for header in headers:
        for name, values in header.attributes:
            if values is not None:
                found[name] = list(dict.fromkeys([*found.get(name, []), *values]))
    return found


def _fast(
    headers: Sequence[_Header],
    nominal: dict[str, list[str]],
    careful: Source,
    booleans: Iterable[str] = (),
) -> Source:
    """Read with polars' CSV reader.

    A column declared {false,true} is read as booleans, the fastest. That would take True and TRUE for true, so it
    holds only where no row has such letters, which `Source.doubt` looks up.
    """
    import polars as pl

    schema: dict[str, Any] = dict.fromkeys(headers[0].names, pl.String)
    for name, values in nominal.items():
        schema[name] = pl.Enum(list(dict.fromkeys([*values, *_missing(headers)])))
    spelled = {}
    for name in booleans:
        schema[name] = pl.Boolean
        spelled[name] = (nominal[name][0], nominal[name][1])
        if nominal[name][0].lower() == "true":
            spelled[name] = spelled[name][::-1]
    separator = headers[0].separator
    frames = [
        pl.scan_csv(
            header.path,
            has_header=False,
            schema=schema,
            separator=separator,
            quote_char=None,
            comment_prefix="%",
            skip_lines=header.skip,
            glob=False,
        )
        for header in headers
    ]
    return replace(
        careful,
        frame=pl.concat(frames) if len(frames) > 1 else frames[0],
        texts=tuple(TextFile(h.path, separator, None, h.skip, len(h.names), "%") for h in headers),
        ragged=None,
        locate=None,
        na=_missing(headers),
        booleans=spelled,
        suspect="'\"%",
        careful=careful,
    )


def _missing(headers: Iterable[_Header]) -> tuple[str, ...]:
    # KEEL, which names its outputs, also writes <null>
    return ("?", "<null>") if any(header.outputs for header in headers) else ("?",)


def _careful(headers: Sequence[_Header]) -> Source:
    missing = list(_missing(headers))

    def value(field: pl.Expr) -> pl.Expr:
        import polars as pl

        bare = field.str.strip_chars()
        quoted = bare.str.contains(rf"^(?:{_QUOTED})$")
        inside = bare.str.slice(1, bare.str.len_chars() - 2).str.replace_all(r"""\\(['"\\%])""", "$1")
        return pl.when(quoted).then(inside).otherwise(bare.replace([*missing, ""], None))

    def prepare(line: pl.Expr) -> pl.Expr:
        uncommented = rf"""^((?:{_QUOTED}|[^'"%])*)%.*$"""
        return line.str.replace(uncommented, "$1").str.strip_chars()

    files = []
    for header in headers:
        cut = header.separator
        pattern = rf"[^\S{cut}]*(?:{_QUOTED})[^\S{cut}]*|[^{cut}]*"
        files.append(LineFile(header.path, header.skip, pattern))
    outputs = tuple(dict.fromkeys(name for header in headers for name in header.outputs))
    return line_source(files, headers[0].names, prepare=prepare, value=value, decision=outputs)
