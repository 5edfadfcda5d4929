"""An opened file: its rows, lazily, and what is wrong with them when they cannot be read."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plar.errors import TableError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["BLANK", "Misread", "Source", "TextFile", "byte_lines", "text_lines", "wrong_length"]

#: what a blank line is made of; a tab may be a separator
BLANK = " \r\n"
_ZSTD = b"\x28\xb5\x2f\xfd"
_GZIP = b"\x1f\x8b"


class Misread(TableError):
    """A fast reading does not fit the file; a careful one may."""


@dataclass(frozen=True, slots=True)
class TextFile:
    """How the rows of one text file lie on its lines."""

    path: Path
    separator: str
    quote: str | None
    skip: int
    fields: int
    comment: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """Rows of one file or several, as polars reads them.

    Parameters
    ----------
    frame : polars.LazyFrame
        Every column, in the order of the file.
    names : tuple of str
    files : tuple of Path
    text : bool
        Values compare as written.
    texts : tuple of TextFile
        Where polars splits rows itself, it fills short ones up in silence; `audit` looks at the lines then.
    ragged : str or None
        A further column of `frame` that is true in rows of a wrong length; `locate` finds the first.
    decision : tuple of str
        What the file itself says the decision is.
    na : tuple of str
        How the format spells a missing value.
    booleans : mapping
        Columns read as booleans, with what false and true are written as.
    suspect : str
        Characters that no value has if this fast reading is right.
    careful : Source or None
        A slower reading that takes what this one cannot.
    """

    frame: pl.LazyFrame
    names: tuple[str, ...]
    files: tuple[Path, ...]
    text: bool
    texts: tuple[TextFile, ...] = ()
    ragged: str | None = None
    locate: Callable[[], TableError] | None = None
    decision: tuple[str, ...] = ()
    na: tuple[str, ...] = ()
    booleans: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    suspect: str = ""
    careful: Source | None = None

    def collect(self, query: pl.LazyFrame) -> pl.DataFrame:
        """Run a query on the frame; a file that cannot be read is a TableError with the line at fault."""
        import polars as pl

        try:
            return query.collect(engine="streaming")
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            raise self.explain(error) from None

    def explain(self, error: BaseException) -> TableError:
        """Find the line that made polars fail."""
        if self.careful is not None:
            return Misread(str(error))
        try:
            for text in self.texts:
                _inspect(text)
            for file in self.files if self.text else ():
                deque(text_lines(file), maxlen=0)
        except TableError as fault:
            return fault
        shown = ", ".join(repr(str(f)) for f in self.files[:3]) + (", …" if len(self.files) > 3 else "")
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        if not self.files:
            return TableError(f"Cannot read the table: {reason}. Check the query that makes it.")
        return TableError(f"Cannot read {shown}: {reason}. The file is damaged or not what its name says.")

    def no_rows(self) -> TableError:
        """Say that there is nothing to read."""
        shown = ", ".join(repr(str(file)) for file in self.files[:3]) or "The table"
        return TableError(f"{shown} has no rows. Add some, or check whether the first line is a header.")

    def find_ragged(self) -> TableError:
        """Name the line of a row that the column `ragged` marks."""
        return self.locate() if self.locate else self.explain(TableError("rows differ in length"))

    def audit(self) -> int:
        """Check the length of every row, and return how many blank lines there are."""
        try:
            return sum(_audit(text) for text in self.texts)
        except TableError as error:
            raise self.explain(error) if self.careful is not None else error from None

    def values(self, names: Sequence[str]) -> pl.LazyFrame:
        """Columns with their values as written, without the rows of blank lines."""
        import polars as pl

        if self.ragged is not None and self.collect(self.frame.select(pl.col(self.ragged).any())).item():
            raise self.find_ragged()
        frame = self.frame
        if self.texts:
            last = pl.col(self.names[-1])
            gap = last.is_null() | pl.all_horizontal(pl.col(self.names).is_null())
            odd, wrong = self.collect(frame.select(gap.any(), self._misread(names).alias("misread"))).row(0)
            if wrong:
                raise Misread("the values hold quotes or comments")
            if odd and self.audit():
                frame = frame.filter(pl.any_horizontal(pl.col(self.names).is_not_null()))
        return frame.select(self.written(name) for name in names)

    def _misread(self, names: Sequence[str]) -> pl.Expr:
        """Whether some value shows that the fast reading is wrong."""
        import polars as pl

        schema = self.frame.collect_schema()
        written = [name for name in names if schema[name] == pl.String] if self.suspect else []
        if not written:
            return pl.lit(False)
        return pl.any_horizontal(pl.col(written).str.contains(f"[{self.suspect}]").any())

    def written(self, name: str) -> pl.Expr:
        """Return one column with its values as written."""
        import polars as pl

        if not self.text:
            return pl.col(name)
        if name in self.booleans:
            no, yes = self.booleans[name]
            column = pl.col(name).replace_strict({False: no, True: yes}, return_dtype=pl.String)
        else:
            column = pl.col(name).cast(pl.String)
        return column.replace(list(self.na), None) if self.na else column


def byte_lines(path: Path, limit: int | None = None) -> Iterator[bytes]:
    """Yield the lines of a file, decompressed; at most about `limit` where that saves work."""
    try:
        with path.open("rb") as file:
            start = file.read(4)
            file.seek(0)
            if start == _ZSTD:
                yield from _zstd_lines(path, limit)
            elif start[:2] == _GZIP:
                with gzip.open(file) as unpacked:
                    yield from unpacked
            elif path.suffix.lower() in (".gz", ".zst") and start:
                raise TableError(f"{str(path)!r} is not compressed as its name says. Rename or compress it.")
            else:
                yield from file
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise TableError(f"Cannot read {str(path)!r}: {reason}. Check the file and its permissions.") from None


def _zstd_lines(path: Path, limit: int | None) -> Iterator[bytes]:
    import polars as pl

    try:
        lines = pl.scan_lines(path, n_rows=limit, glob=False)
        for batch in lines.collect_batches(chunk_size=100_000):
            for line in batch.to_series():
                yield f"{line}\n".encode()
    except pl.exceptions.PolarsError as error:
        raise TableError(f"Cannot read {str(path)!r}: {str(error).splitlines()[0]}. Check the file.") from None


def text_lines(path: Path, limit: int | None = None) -> Iterator[str]:
    """Yield the lines as text; a line that is not UTF-8 is a TableError with its number."""
    for number, line in enumerate(byte_lines(path, limit), 1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise TableError(
                f"{str(path)!r}, line {number}: byte 0x{line[error.start]:02x} is not UTF-8. "
                "Convert the file, e.g. with iconv -f latin1 -t utf-8."
            ) from None


def _audit(text: TextFile) -> int:
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
        return _inspect(text)
    return _inspect(text) if unsure else int(blank)


def _inspect(text: TextFile) -> int:
    """Read row by row: TableError with the line of the first fault, else the number of blank lines."""
    begun: list[int] = []

    def numbered() -> Iterator[str]:
        for number, line in enumerate(text_lines(text.path), 1):
            if number > text.skip and not (text.comment and line.startswith(text.comment)):
                begun.append(number)
                yield line

    quoting: dict[str, Any] = {"quoting": csv.QUOTE_NONE}
    if text.quote:
        quoting = {"quotechar": text.quote}
    reader = csv.reader(numbered(), delimiter=text.separator, strict=True, **quoting)
    blank, where = 0, repr(str(text.path))
    while True:
        begun.clear()
        try:
            row = next(reader)
        except StopIteration:
            return blank
        except csv.Error as error:
            at = begun[0] if begun else 1
            raise TableError(f"{where}, line {at}: {error}. Quote values as in RFC 4180, on both sides.") from None
        if not any(value.strip() for value in row) and len(row) <= 1:
            blank += 1
        elif len(row) != text.fields:
            raise TableError(wrong_length(text.path, begun[0], len(row), text.fields))


def wrong_length(path: Path, line: int, found: int, expected: int) -> str:
    """Say that a row is ragged."""
    return (
        f"{str(path)!r}, line {line}: {found} field{'s' * (found != 1)} where {expected} are expected. "
        "Mend the line, or pass the right separator."
    )
