"""The first lines of a text file: the names of its columns, how rows are written, and where they begin.

Separator and quotes of delimited text are detected. WEKA's ARFF files, and the similar .dat files of KEEL, declare
their attributes.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from plar.errors import Given, TableError
from plar.files.find import Stamp, stamp_of, suffix_of
from plar.input.text.chunks import built_upon_ascii, open_bytes, read_head
from plar.input.text.dialect import Dialect
from plar.options import ReadOptions

_BINARY = [(b"PAR1", "a Parquet", ".parquet"), (b"ARROW1", "an Arrow", ".arrow")]
_SEPARATORS = ",;\t|"
_BLANK_LINES = 10_000
_QUOTED = r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\""""
_NAME = re.compile(rf"\s*({_QUOTED}|[^\s{{]+)\s*(.*)", re.DOTALL)
#: what is wrong with a CR that ends no line
LONE_CR = "a field without quotes holds a CR (carriage return). Quote the field, or convert the line ends to LF."
_TYPES = ("numeric", "real", "integer", "string", "date")


@dataclass(frozen=True, slots=True)
class Header:
    """What the first lines of a file show: the names, how rows are written, and where they begin."""

    names: tuple[str, ...]
    dialect: Dialect
    #: bytes and lines before the first row
    size: int
    lines: int
    decision: tuple[str, ...] = ()
    #: where the rows end; None: with the file
    end: int | None = None
    #: of the file when its header was read
    stamp: Stamp | None = None


def read_header(path: Path, kind: str, options: ReadOptions) -> Header:
    """Read the first lines of a file: delimited text, ARFF, or .dat, which is either."""
    encoding = options.encoding
    stamp = stamp_of(path)
    with open_bytes(path, encoding, stamp) as file:
        head = read_head(file, path)
        whole = False
        if not head:
            raise TableError(f"{str(path)!r} is empty. A table needs a header and rows.")
        _check_text(path, head, encoding)
        utf8 = encoding == "utf-8" or not built_upon_ascii(encoding)
        mark = len(codecs.BOM_UTF8) if utf8 and head.startswith(codecs.BOM_UTF8) else 0
        inside = "utf-8" if utf8 else encoding
        while True:
            lines = head[mark:]
            if kind == "arff" or (kind == "dat" and _begins_as_arff(lines)):
                header = _arff_header(lines, path, inside, whole=whole)
            else:
                header = _delimited_header(lines, path, options, inside)
            if header is not None:
                return replace(header, size=header.size + mark, stamp=stamp)
            if whole:
                raise _no_header(path, lines)
            longer_head = read_head(file, path, head)
            whole = len(longer_head) == len(head)
            head = longer_head
            if whole and not head.endswith(b"\n"):
                head += b"\n"


def _no_header(path: Path, head: bytes) -> TableError:
    if not head.strip():
        return TableError(f"{str(path)!r} holds blank lines only. A table needs a header and rows.")
    return TableError(f"{str(path)!r}: a quote in the first row is not closed. Check the quotes and line ends.")


def _check_text(path: Path, head: bytes, encoding: str) -> None:
    """Refuse a file that is not text, judging by its first bytes."""
    name = repr(str(path))
    for magic, kind, suffix in _BINARY:
        if head.startswith(magic):
            raise TableError(f"{name} is {kind} file, not text. Rename it to {suffix}.")
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and built_upon_ascii(encoding):
        raise TableError(f"{name} is UTF-16, not UTF-8. Pass ", Given("encoding", "utf-16"), ".")


def _separator_of(path: Path, line: str) -> str:
    """Separator of a text file, as its suffix or its first line shows."""
    if suffix_of(path)[0] in (".tsv", ".tab"):
        return "\t"
    outside = "".join(line.split('"')[::2])
    best = max(_SEPARATORS, key=outside.count)
    if outside.count(best):
        return best
    return " " if " " in outside.strip() else ","


def decoded(line: bytes, path: Path, number: int, encoding: str) -> str:
    """Decode a line, or a value that begins on it; a TableError names the line if that fails."""
    try:
        return line.decode(encoding)
    except UnicodeDecodeError as error:
        shown = "UTF-8" if encoding == "utf-8" else encoding
        raise TableError(
            f"{str(path)!r}, line {number}: byte 0x{line[error.start]:02x} is not {shown}. Pass its encoding, e.g. ",
            Given("encoding", "latin-1"),
            ".",
        ) from None


def _delimited_header(head: bytes, path: Path, options: ReadOptions, encoding: str) -> Header | None:
    """Read the names of a delimited file; None if its first row may continue beyond `head`."""
    lines = head.split(b"\n")[:-1]
    skip = next((i for i, line in enumerate(lines) if line.strip(b" \r\t")), len(lines))
    if skip >= _BLANK_LINES:
        raise TableError(f"{str(path)!r} begins with {_BLANK_LINES:,} blank lines. A table needs a header and rows.")
    if skip == len(lines):
        return None
    texts = (decoded(line, path, skip + i, encoding) for i, line in enumerate(lines[skip:], 1))
    first = next(texts)
    if "\r" in first.rstrip("\r") and '"' not in first:
        if skip == len(lines) - 1:
            raise TableError(f"{str(path)!r} ends its lines with CR alone. Convert it, e.g. with tr '\\r' '\\n'.")
        raise TableError(f"{str(path)!r}, line {skip + 1}: {LONE_CR}")
    dialect = Dialect(options.separator or _separator_of(path, first))
    line = first.replace("\t", " ").strip() if dialect.runs else first + "\n"
    rows = csv.reader(
        chain([line], (text + "\n" for text in texts)),
        delimiter=dialect.separator,
        skipinitialspace=dialect.runs,
        strict=True,
    )
    try:
        cells = next(rows)
    except csv.Error as error:
        if "unexpected end of data" in str(error):
            return None
        reason = LONE_CR if "new-line character" in str(error) else f"{error}. Check the quotes and line ends."
        raise TableError(f"{str(path)!r}, line {skip + 1}: {reason}") from None
    names = tuple(f"x{j}" for j in range(len(cells)))
    if options.header:
        names = tuple(name.strip() or unnamed for name, unnamed in zip(cells, names, strict=True))
        skip += rows.line_num
    return Header(names, dialect, sum(len(line) + 1 for line in lines[:skip]), skip)


# -- ARFF and KEEL --------------------------------------------------------------------------------------------


def _begins_as_arff(head: bytes) -> bool:
    r"""Whether a file begins as ARFF and KEEL files do, with @relation under comments.

    >>> _begins_as_arff(b"% flowers\n@RELATION iris\n"), _begins_as_arff(b"a b c\n")
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
    name = _unquote(match[1])
    kind = match[2].strip()
    if kind.startswith("{"):
        if "}" not in kind:
            raise TableError(f"{where}: the values of attribute {name!r} have no closing brace. Add it on that line.")
        return name
    word = re.match(r"[A-Za-z]*", kind)
    if not word or word[0].lower() not in _TYPES:
        types = ", ".join(_TYPES)
        raise TableError(f"{where}: unknown type {kind!r} of attribute {name!r}. Known: {{values}}, {types}.")
    return name


def _arff_header(head: bytes, path: Path, encoding: str, *, whole: bool) -> Header | None:
    """Read the declarations; None if they, or the first row, may continue beyond `head`, unless that is `whole`."""
    names: list[str] = []
    outputs: tuple[str, ...] = ()
    lines = enumerate(head.split(b"\n")[:-1], 1)
    size = 0
    for number, line in lines:
        size += len(line) + 1
        text = decoded(line, path, number, encoding).strip()
        word, _, rest = re.sub(r"\s+", " ", text, count=1).partition(" ")
        word = word.lower()
        where = f"{str(path)!r}, line {number}"
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
