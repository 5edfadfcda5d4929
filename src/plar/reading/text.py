"""Lines and rows of text files as Python reads them, and what is wrong with them."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from plar.errors import TableError, reason_of
from plar.reading.watching import watched

__all__ = [
    "BLANK",
    "MAX_LINE",
    "TextFile",
    "audit",
    "byte_lines",
    "check_unpacked",
    "inspect",
    "text_lines",
    "text_rows",
    "wrong_length",
]

#: what a blank line is made of; a tab may be a separator
BLANK = " \r\n"
#: bytes of the longest line that is read: a header of some million names fits
MAX_LINE = 1 << 26
_SUSPECT = 100  # times that a table in text is larger than its gzip file at most, but for very dull ones
_ZSTD = b"\x28\xb5\x2f\xfd"
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class TextFile:
    """How the rows of one text file lie on its lines."""

    path: Path
    separator: str
    quote: str | None
    skip: int
    fields: int
    comment: str | None = None


def byte_lines(path: Path, limit: int | None = None) -> Iterator[bytes]:
    """Yield the lines of a file, decompressed, at most `limit` of them; one of absurd length is a TableError."""
    try:
        with path.open("rb") as file:
            start = file.read(4)
            file.seek(0)
            if start == _ZSTD:
                yield from _zstd_lines(path, limit)
            elif start[:2] == _GZIP:
                with gzip.open(file) as unpacked:
                    yield from islice(_short_lines(path, unpacked), limit)
            elif path.suffix.lower() in (".gz", ".zst") and start:
                raise TableError(f"{str(path)!r} is not compressed as its name says. Rename or compress it.")
            else:
                yield from islice(_short_lines(path, file), limit)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise TableError(f"Cannot read {str(path)!r}: {reason}. Check the file and its permissions.") from None


def _short_lines(path: Path, file: Any) -> Iterator[bytes]:
    for number, line in enumerate(iter(partial(file.readline, MAX_LINE + 1), b""), 1):
        if len(line) > MAX_LINE:
            raise TableError(_too_long(path, f"line {number}"))
        yield line


def _too_long(path: Path, where: str) -> str:
    return (
        f"{str(path)!r}, {where}: longer than {MAX_LINE >> 20} MiB, so it is no table. "
        "Check what the file holds; tables of so many columns can be passed as an array."
    )


def check_unpacked(path: Path) -> None:
    """Refuse a gzip file that unpacks into absurd lines, which polars would hold whole.

    Only one that packs as no table does is looked at: that costs a pass.
    """
    with suppress(OSError, EOFError, zlib.error), path.open("rb") as file:  # what is damaged is told by its reader
        if file.read(2) != _GZIP:
            return
        size = file.seek(-4, 2) + 4
        stated = int.from_bytes(file.read(4), "little")
        file.seek(0)
        with gzip.open(file) as unpacked:
            begun = len(unpacked.read(1 << 23))
            if stated < _SUSPECT * size and begun < _SUSPECT * file.tell():
                return
    run = 0
    with suppress(OSError, EOFError, zlib.error), gzip.open(path) as unpacked:
        for piece in iter(partial(unpacked.read, 1 << 20), b""):
            first = piece.find(b"\n")
            run += len(piece) if first < 0 else first
            if run > MAX_LINE:
                raise TableError(_too_long(path, "a line"))
            if first >= 0:
                run = len(piece) - 1 - piece.rfind(b"\n")


def _zstd_lines(path: Path, limit: int | None) -> Iterator[bytes]:
    import polars as pl

    try:
        batches = iter(pl.scan_lines(path, n_rows=limit, glob=False).collect_batches(chunk_size=100_000))
        while (batch := watched(partial(next, batches, None))) is not None:  # one line may unpack to any size
            for line in batch.to_series():
                yield f"{line}\n".encode()
    except pl.exceptions.PolarsError as error:
        raise TableError(f"Cannot read {str(path)!r}: {reason_of(error)}. Check the file.") from None


def _check_text(path: Path, start: bytes) -> None:
    """Refuse what is no text, by its first bytes."""
    name = repr(str(path))
    for magic, kind, suffix in [(b"PAR1", "a Parquet", ".parquet"), (b"ARROW1", "an Arrow", ".arrow")]:
        if start.startswith(magic):
            raise TableError(f"{name} is {kind} file, not text. Rename it to {suffix}.")
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise TableError(f"{name} is UTF-16, not UTF-8. Convert it, e.g. with iconv -f utf-16 -t utf-8.")


def text_lines(path: Path, limit: int | None = None) -> Iterator[str]:
    """Yield the lines as text; a line that is not UTF-8 is a TableError with its number."""
    for number, line in enumerate(byte_lines(path, limit), 1):
        if number == 1:
            _check_text(path, line[:6])
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise TableError(
                f"{str(path)!r}, line {number}: byte 0x{line[error.start]:02x} is not UTF-8. "
                "Convert the file, e.g. with iconv -f latin1 -t utf-8."
            ) from None


def audit(text: TextFile) -> int:
    """Compare the number of separators on every line; where quotes make that unsure, read as Python does."""
    import polars as pl

    line = pl.col("line")
    bare = line.str.strip_chars(BLANK)
    body = pl.scan_lines(text.path, glob=False).slice(text.skip)
    if text.comment:
        body = body.filter(~line.str.starts_with(text.comment))
    odd = line.str.count_matches(text.separator, literal=True) != text.fields - 1
    if text.quote:
        odd |= line.str.contains(text.quote, literal=True)
    try:
        blank, unsure = (
            body.select((bare == "").sum().alias("blank"), ((bare != "") & odd).any().alias("odd"))
            .collect(engine="streaming")
            .row(0)
        )
    except (pl.exceptions.PolarsError, OSError):
        return inspect(text)
    return inspect(text) if unsure else int(blank)


def text_rows(text: TextFile) -> Iterator[tuple[int, list[str], str]]:
    """Yield the rows as Python reads them: number of the first line, fields, lines; TableError where it cannot."""
    begun: list[int] = []
    lines: list[str] = []

    def numbered() -> Iterator[str]:
        for number, line in enumerate(text_lines(text.path), 1):
            if number > text.skip and not (text.comment and line.startswith(text.comment)):
                begun.append(number)
                lines.append(line)
                yield line

    quoting: dict[str, Any] = {"quoting": csv.QUOTE_NONE}
    if text.quote:
        quoting = {"quotechar": text.quote}
    reader = csv.reader(numbered(), delimiter=text.separator, strict=True, **quoting)
    while True:
        begun.clear()
        lines.clear()
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            where, reason = f"{str(text.path)!r}, line {begun[0] if begun else 1}", str(error).partition(" - ")[0]
            raise TableError(f"{where}: {reason}. Quote values as in RFC 4180, on both sides.") from None
        yield begun[0], row, "".join(lines)


def inspect(text: TextFile, *, quotes: bool = False) -> int:
    """Read row by row: TableError with the line of the first fault, else the number of blank lines.

    Python takes quotes inside a value, polars does not always; `quotes` makes them a fault.
    """
    cut = re.escape(text.separator)
    field = rf'(?:"(?:[^"]|"")*"|[^"{cut}]*)'
    well_quoted = re.compile(rf"{field}(?:{cut}{field})*")
    blank = 0
    for line, row, raw in text_rows(text):
        if quotes and text.quote and text.quote in raw and not well_quoted.fullmatch(raw.rstrip("\r\n")):
            raise TableError(
                f"{str(text.path)!r}, line {line}: a quote inside a value. "
                "Put quotes around the whole value, and double those in it."
            )
        if not any(value.strip() for value in row) and len(row) <= 1:
            blank += 1
        elif len(row) != text.fields:
            raise TableError(wrong_length(text.path, line, len(row), text.fields))
    return blank


def wrong_length(path: Path, line: int, found: int, expected: int) -> str:
    """Say that a row is ragged."""
    return (
        f"{str(path)!r}, line {line}: {found} field{'s' * (found != 1)} where {expected} are expected. "
        "Mend the line, or pass the right separator."
    )
