"""Text files in: a lazy polars frame, with nothing read but the header."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

from plar.coding.threads import check_threads
from plar.columns import check_names
from plar.errors import TableError
from plar.formats import suffix_of
from plar.reading.arff import arff_source, is_arff
from plar.reading.lines import BLANKS, LineFile, line_source
from plar.reading.source import Source
from plar.reading.text import BLANK, TextFile, check_unpacked, text_lines

__all__ = ["MAX_COLUMNS", "open_text", "separator_of"]

_SEPARATORS = ",;\t|"
_HEADER_LINES = 10_000
#: columns that a table in a file may have
MAX_COLUMNS = 1 << 18


def open_text(files: list[Path], kind: str, *, header: bool = True, separator: str | None = None) -> Source:
    """Open files of text as one table.

    Parameters
    ----------
    files : list of Path
        They follow each other.
    kind : {"text", "arff", "dat"}
    header : bool
        Whether they begin with a line of names; without, columns are x0, x1, ….
    separator : str, optional
        The character between fields; a blank means any run of blanks. Default: a tab for .tsv, else the one of comma,
        semicolon, tab, bar and blank that the first line shows.
    """
    check_threads()
    for file in files:
        if file.suffix.lower() == ".gz":
            check_unpacked(file)
    arff = kind == "arff" or (kind == "dat" and is_arff(files[0]))
    source = arff_source(files) if arff else _text_source(files, header, separator)
    _check_width(files[0], len(source.names))
    check_names(source.names, repr(str(files[0])))
    return source


def _check_width(path: Path, n_columns: int) -> None:
    if n_columns > MAX_COLUMNS:
        raise TableError(
            f"{str(path)!r} has {n_columns:,} columns, and files may have {MAX_COLUMNS:,}. "
            "Check its separator, divide its columns, or pass the table as an array."
        )


def _other_columns(file: Path, first: Path) -> str:
    return f"{str(file)!r} has other columns than {str(first)!r}. Give all files of the glob the same columns."


def separator_of(path: Path, given: str | None, line: str) -> str:
    """Separator of a text file: the one given, or what its first line shows."""
    if given is not None:
        return given
    if suffix_of(path)[0] in (".tsv", ".tab"):
        return "\t"
    outside = "".join(line.split('"')[::2])
    best = max(_SEPARATORS, key=outside.count)
    if outside.count(best):
        return best
    return " " if " " in outside.strip() else ","


def _text_source(files: list[Path], header: bool, separator: str | None) -> Source:
    import polars as pl

    texts: list[TextFile] = []
    names = None
    for file in files:
        found, text = _layout(file, header, separator)
        if names is not None and found != names:
            raise TableError(_other_columns(file, files[0]))
        if texts and text.separator != texts[0].separator:
            raise TableError(f"{str(file)!r} has another separator than {str(files[0])!r}. Pass separator=.")
        names = found
        texts.append(text)
    names = names or ()
    if texts[0].separator == " ":
        return line_source([LineFile(text.path, text.skip, BLANKS) for text in texts], names)
    check_names(names, repr(str(files[0])))
    frames = [
        pl.scan_csv(
            text.path,
            has_header=False,
            schema=dict.fromkeys(names, pl.String),
            separator=text.separator,
            skip_lines=text.skip,
            glob=False,
        )
        for text in texts
    ]
    return Source(
        pl.concat(frames) if len(frames) > 1 else frames[0],
        names,
        tuple(files),
        text=True,
        texts=tuple(texts),
    )


def _layout(path: Path, header: bool, separator: str | None) -> tuple[tuple[str, ...], TextFile]:
    """Names of a text file, and how its rows lie."""
    lines = text_lines(path, _HEADER_LINES)
    first, skip = "", 0
    for first in lines:
        if first.strip(BLANK):
            break
        skip += 1
    if not first.strip(BLANK):
        only = f"begins with {skip:,} blank lines" if skip == _HEADER_LINES else "holds blank lines only"
        raise TableError(f"{str(path)!r} {only}. A table needs a header and rows.")
    if "\r" in first.rstrip("\r\n") and '"' not in first:
        raise TableError(f"{str(path)!r} ends its lines with CR alone. Convert it, e.g. with tr '\\r' '\\n'.")
    cut = separator_of(path, separator, first)

    def rest() -> Iterator[str]:
        yield first
        yield from lines

    if cut == " ":
        row, used = [f.strip('"') for f in re.findall(BLANKS, first.strip())], 1
    else:
        reader = csv.reader(rest(), delimiter=cut, strict=True)
        try:
            row, used = next(reader), reader.line_num
        except csv.Error as error:
            raise TableError(f"{str(path)!r}, line {skip + 1}: {error}. Check the quotes and line ends.") from None
    _check_width(path, len(row))
    names = tuple(f"x{j}" for j in range(len(row)))
    if header:
        names = tuple(name.strip() or unnamed for name, unnamed in zip(row, names, strict=True))
        skip += used
        for line in lines:
            if line.strip(BLANK):
                break
            skip += 1
    return names, TextFile(path, cut, '"', skip, len(names))
