"""Files in: a path or glob in any known format becomes a lazy polars frame, with nothing read but its header.

Formats go by suffix, behind which text formats may also carry .gz or .zst:

====================================================  =================================================
.csv .tsv .tab .txt                                   text, one row a line
.data .data… .all .trn .tst .train .test .dat         the same, as the UCI repository names it
.arff .dat                                            WEKA's ARFF, KEEL's .dat (begins with @relation)
.ndjson .jsonl                                        one JSON object a line
.parquet .arrow .feather .ipc                         typed columns
====================================================  =================================================
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from plar.coding.series import named
from plar.coding.store import find_files, holds_granules
from plar.coding.threads import check_threads
from plar.columns import check_names
from plar.errors import TableError
from plar.reading.arff import arff_source, is_arff
from plar.reading.arrow import check_arrow
from plar.reading.lines import BLANKS, LineFile, line_source
from plar.reading.source import Source
from plar.reading.text import BLANK, TextFile, check_unpacked, is_json, text_lines

if TYPE_CHECKING:
    import polars as pl

__all__ = ["MAX_COLUMNS", "open_source", "separator_of", "suffix_of"]

_TEXT = (".csv", ".tsv", ".tab", ".txt", ".data", ".all", ".trn", ".tst", ".train", ".test")
_JSON = (".ndjson", ".jsonl")
_ARROW = (".arrow", ".feather", ".ipc")
_KNOWN = (*_TEXT, ".dat", ".arff", *_JSON, ".parquet", *_ARROW)
_SEPARATORS = ",;\t|"
_NAMED_SEPARATORS = {"\\t": "\t", "tab": "\t", "blank": " ", "space": " ", "comma": ","}
_HEADER_LINES = 10_000
_ORDERED = 16
#: columns that a table in a file may have
MAX_COLUMNS = 1 << 18


def suffix_of(path: Path) -> tuple[str, str]:
    """Suffix that tells the format, and the one of compression behind it.

    Examples
    --------
    >>> suffix_of(Path("Census.CSV.gz")), suffix_of(Path("t.parquet"))
    (('.csv', '.gz'), ('.parquet', ''))
    """
    last = path.suffix.lower()
    return (path.with_suffix("").suffix.lower(), last) if last in (".gz", ".zst") else (last, "")


def open_source(path: str | os.PathLike[str], *, header: bool = True, separator: str | None = None) -> Source:
    r"""Open a file, or all files of a glob as one table.

    Parameters
    ----------
    path : str or PathLike
        A file, or a glob whose files have the same columns; they follow each other in sorted order.
    header : bool
        Whether text files begin with a line of names; without, columns are x0, x1, ….
    separator : str, optional
        The character between fields of text files; a blank means any run of blanks. Default: a tab for .tsv,
        else the one of comma, semicolon, tab, bar and blank that the first line shows.

    Returns
    -------
    Source

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = Path(folder.name, "t.csv")
    >>> _ = file.write_text("a,d\n1,x\n")
    >>> open_source(file).names
    ('a', 'd')
    >>> folder.cleanup()
    """
    check_threads()
    files = find_files(path)
    kinds = {_kind(file, separator) for file in files}
    if len(kinds) > 1:
        raise TableError(f"{os.fspath(path)!r} matches files of different formats: {', '.join(sorted(kinds))}.")
    for file in files:
        _check_readable(file)
        if file.suffix.lower() == ".gz":
            check_unpacked(file)
    kind = kinds.pop()
    if kind == "dat":
        kind = "arff" if is_arff(files[0]) else "text"
    if kind == "text":
        source = _text_source(files, header, separator)
    elif kind == "arff":
        source = arff_source(files)
    else:
        for file in files if kind == "ipc" else ():
            check_arrow(file)
        source = _typed_source(files, _scanner(kind))
    _check_width(files[0], len(source.names))
    check_names(source.names, repr(str(files[0])))
    return source


def _check_width(path: Path, n_columns: int) -> None:
    if n_columns > MAX_COLUMNS:
        raise TableError(
            f"{str(path)!r} has {n_columns:,} columns, and files may have {MAX_COLUMNS:,}. "
            "Check its separator, divide its columns, or pass the table as an array."
        )


def _kind(path: Path, separator: str | None) -> str:
    suffix, packed = suffix_of(path)
    if suffix == ".dat":
        return "dat"
    if suffix == ".arff":
        return "arff"
    if suffix in _JSON:
        return "ndjson"
    if not packed and suffix == ".parquet":
        return "parquet"
    if not packed and suffix in _ARROW:
        return "ipc"
    if suffix in _TEXT or suffix.startswith(".data") or (separator and suffix not in _KNOWN):
        return "text"
    shown = suffix + packed or path.name
    raise TableError(
        f"Unknown format {shown!r} of {str(path)!r}. Known: {' '.join(_KNOWN)}, text also .gz .zst. "
        "Pass separator= to read it as text."
    )


def _check_readable(path: Path) -> None:
    try:
        with path.open("rb") as file:
            empty = not file.read(1)
    except OSError as error:
        raise TableError(f"Cannot read {str(path)!r}: {error.strerror}. Check its permissions.") from None
    if empty:
        raise TableError(f"{str(path)!r} is empty. A table needs a header and rows.")


def _scanner(kind: str) -> Callable[[Path], pl.LazyFrame]:
    import polars as pl

    if kind == "parquet":
        return lambda path: pl.scan_parquet(path, glob=False, hive_partitioning=False)
    if kind == "ipc":
        return lambda path: pl.scan_ipc(path, glob=False, hive_partitioning=False)
    # the first lines do not tell all columns and types, so all are looked at
    return lambda path: pl.scan_ndjson(path, infer_schema_length=None)


def _typed_source(files: list[Path], scan: Callable[[Path], pl.LazyFrame]) -> Source:
    import polars as pl

    frames, names = [], None
    for file in files:
        if holds_granules(file):
            raise TableError(f"{str(file)!r} holds granules, not rows. Read it with plar.Granules.open.")
        try:
            frame = scan(file)
            found = tuple(frame.collect_schema().names())
            if is_json(file) and len(found) > _ORDERED:
                found = _json_order(file, found)
                frame = frame.select([named(name) for name in found])
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            blank = Source(pl.LazyFrame(), (), (file,), text=False)
            raise blank.explain(error) from None
        if names is not None and found != names:
            raise TableError(_other_columns(file, files[0]))
        names = found
        frames.append(frame)
        _check_types(frame.collect_schema(), frames[0].collect_schema(), file, files[0])
    together = pl.concat(frames, how="vertical_relaxed") if len(frames) > 1 else frames[0]
    return Source(together, names or (), tuple(files), text=False)


def _json_order(path: Path, names: Sequence[str]) -> tuple[str, ...]:
    """Names as the first rows have them: polars keeps their order only where a row has few."""
    left, order = set(names), list[str]()
    with suppress(ValueError, RecursionError):  # which polars has read otherwise
        for line in text_lines(path, _HEADER_LINES):
            row = json.loads(line) if line.strip() else {}
            order += [name for name in row if name in left]
            left -= set(order)
            if not left:
                break
    return (*order, *sorted(left))


def _check_types(schema: pl.Schema, first: pl.Schema, file: Path, other: Path) -> None:
    """Refuse columns that hold, say, numbers in one file and text in another: nothing there compares by value."""
    import polars as pl

    text = (pl.String, pl.Categorical, pl.Enum)
    for name, dtype in schema.items():
        known = first[name]
        if dtype.base_type() == known.base_type() or pl.Null in (dtype, known):
            continue
        if not (dtype.is_numeric() and known.is_numeric()) and not (dtype in text and known in text):
            raise TableError(
                f"Column {name!r} is {dtype} in {str(file)!r} and {known} in {str(other)!r}. Write all in one type."
            )


def _other_columns(file: Path, first: Path) -> str:
    return f"{str(file)!r} has other columns than {str(first)!r}. Give all files of the glob the same columns."


def separator_of(path: Path, given: str | None, line: str) -> str:
    """Separator of a text file: the one given, or what its first line shows."""
    if given is not None:
        given = _NAMED_SEPARATORS.get(given, given)
        if len(given) != 1 or not given.isascii() or given in '"\n\r':
            raise TableError(f"The separator must be one ASCII character, got {given!r}. Choose , ; | tab or a blank.")
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
    with closing(text_lines(path, _HEADER_LINES)) as lines:
        return _layout_of(path, lines, header, separator)


def _layout_of(
    path: Path, lines: Iterator[str], header: bool, separator: str | None
) -> tuple[tuple[str, ...], TextFile]:
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
