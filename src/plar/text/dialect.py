"""How the fields of a text file are written: separator, quotes, comments and names, detected in its first lines."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import numpy as np

from plar.errors import TableError
from plar.files import suffix_of
from plar.options import ReadOptions
from plar.text.tokens import BLANK, COMMENT, LINE_END, QUOTE, SEPARATOR, Marks

_SEPARATORS = ",;\t|"
_BLANK_LINES = 10_000


@dataclass(frozen=True, slots=True)
class Dialect:
    """How fields are separated."""

    #: one ASCII character; a blank means any run of blanks and tabs
    separator: str
    #: characters that may quote a value
    quotes: str = '"'
    #: what begins a comment, which extends to the end of the line; empty: no comments
    comment: str = ""
    #: as in ARFF: blanks may surround quotes, and a backslash escapes within them. Otherwise quotes are doubled
    padded: bool = False
    #: how a missing value is written, outside quotes
    missing: tuple[str, ...] = ()
    #: the same for the tokenizer
    marks: Marks = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Tabulate the role of each byte."""
        kinds = np.zeros(256, np.uint8)
        for marks, kind in [(" \t", BLANK), ("\n", LINE_END), (self.quotes, QUOTE), (self.comment, COMMENT)]:
            kinds[list(marks.encode())] |= kind
        if not self.runs:
            kinds[ord(self.separator)] = 0
        kinds[list(b" \t" if self.runs else self.separator.encode())] |= SEPARATOR
        ends = (self.separator + "\n" + ("\t" if self.runs else self.comment or "\n")).encode()
        words = np.array([end * 0x0101010101010101 for end in ends], np.uint64)
        object.__setattr__(self, "marks", Marks(kinds, words, self.runs, self.padded, self.multiline))

    @property
    def runs(self) -> bool:
        """Whether a run of blanks counts as one separator."""
        return self.separator == " "

    @property
    def multiline(self) -> bool:
        """Whether a value in quotes may hold line ends."""
        return not self.runs and not self.padded


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


def separator_of(path: Path, line: str) -> str:
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
        known = "UTF-8" if encoding == "utf-8" else encoding
        raise TableError(
            f"{str(path)!r}, line {number}: byte 0x{line[error.start]:02x} is not {known}. "
            "Pass its encoding, e.g. encoding='latin-1'."
        ) from None


def delimited_header(head: bytes, path: Path, options: ReadOptions, encoding: str) -> Header | None:
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
        raise TableError(f"{str(path)!r} ends its lines with CR alone. Convert it, e.g. with tr '\\r' '\\n'.")
    dialect = Dialect(options.separator or separator_of(path, first))
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
        raise TableError(f"{str(path)!r}, line {skip + 1}: {error}. Check the quotes and line ends.") from None
    names = tuple(f"x{j}" for j in range(len(cells)))
    if options.header:
        names = tuple(name.strip() or unnamed for name, unnamed in zip(cells, names, strict=True))
        skip += rows.line_num
    return Header(names, dialect, sum(len(line) + 1 for line in lines[:skip]), skip)
