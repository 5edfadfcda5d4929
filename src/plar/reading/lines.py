"""Text that polars' CSV reader cannot split: lines are taken whole and cut by a regular expression."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from plar.errors import TableError
from plar.reading.source import Source
from plar.reading.text import wrong_length

if TYPE_CHECKING:
    import polars as pl

__all__ = ["BLANKS", "LineFile", "line_source"]

#: fields between runs of blanks; double quotes hold blanks together
BLANKS = r'"(?:[^"]|"")*"|[^ \t"][^ \t]*'
_RAGGED = "\0ragged"


@dataclass(frozen=True, slots=True)
class LineFile:
    """A file, the lines before its first row, and a regular expression that matches each field of a line."""

    path: Path
    skip: int
    pattern: str


def _fields(file: LineFile, prepare: Callable[[pl.Expr], pl.Expr]) -> pl.LazyFrame:
    """Fields of every line that has some, as a list, with the line's number."""
    import polars as pl

    line = prepare(pl.col("line").str.strip_prefix("\ufeff").str.strip_chars())
    return (
        pl.scan_lines(file.path, row_index_name="number", row_index_offset=1, glob=False)
        .slice(file.skip)
        .with_columns(line)
        .filter(pl.col("line") != "")
        .select("number", pl.col("line").str.extract_all(file.pattern).alias("fields"))
    )


def line_source(
    files: Sequence[LineFile],
    names: Sequence[str],
    *,
    prepare: Callable[[pl.Expr], pl.Expr] = lambda line: line,
    value: Callable[[pl.Expr], pl.Expr] | None = None,
    decision: tuple[str, ...] = (),
) -> Source:
    """Open files line by line.

    Parameters
    ----------
    files : sequence of LineFile
    names : sequence of str
    prepare : function of an expression
        What is done to a line, blanks around it removed, before it is cut; an empty line is no row.
    value : function of an expression
        What is done to each field. Default: double quotes around it go.
    decision : tuple of str
    """
    import polars as pl

    clean = _unquoted if value is None else value
    fields = pl.col("fields")
    frames = [
        _fields(file, prepare).select(
            *(clean(fields.list.get(j, null_on_oob=True)).alias(name) for j, name in enumerate(names)),
            (fields.list.len() != len(names)).alias(_RAGGED),
        )
        for file in files
    ]
    return Source(
        frame=pl.concat(frames) if len(frames) > 1 else frames[0],
        names=tuple(names),
        files=tuple(file.path for file in files),
        text=True,
        ragged=_RAGGED,
        locate=partial(_first_ragged, tuple(files), len(names), prepare),
        decision=decision,
    )


def _unquoted(field: pl.Expr) -> pl.Expr:
    import polars as pl

    quoted = field.str.starts_with('"') & field.str.ends_with('"') & (field.str.len_bytes() > 1)
    return pl.when(quoted).then(field.str.slice(1, field.str.len_chars() - 2)).otherwise(field)


def _first_ragged(files: tuple[LineFile, ...], expected: int, prepare: Callable[[pl.Expr], pl.Expr]) -> TableError:
    import polars as pl

    length = pl.col("fields").list.len()
    for file in files:
        rows = _fields(file, prepare).select("number", length.alias("found"))
        odd = rows.filter(pl.col("found") != expected).head(1).collect()
        if len(odd):
            number, found = odd.row(0)
            return TableError(wrong_length(file.path, number, found, expected))
    return TableError(f"{str(files[0].path)!r}: rows differ in length. Mend the file.")
