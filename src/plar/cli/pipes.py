"""Standard input and output in place of files; both pass through a temporary file, which is gone in the end."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from plar.cli.options import TableOptions
from plar.errors import PlarError, TableError, unknown_name
from plar.formats import FORMATS

__all__ = ["INPUTS", "OUTPUTS", "STREAM", "spooled", "suffix", "written"]

#: how stdin and stdout are spelled
STREAM = "-"
OUTPUTS = tuple(suffix[1:] for known in FORMATS for suffix in known.written)
INPUTS = tuple(suffix[1:] for known in FORMATS for suffix in known.suffixes)


def suffix(given: str | None, choices: tuple[str, ...]) -> str:
    """Name a format as files do.

    Examples
    --------
    >>> suffix(None, INPUTS), suffix("Parquet", INPUTS)
    ('.csv', '.parquet')
    """
    kind = (given or "csv").lower()
    if kind not in choices:
        raise unknown_name("format", given, choices)
    return f".{kind}"


@contextmanager
def spooled(options: TableOptions) -> Iterator[TableOptions]:
    """Put what stdin holds into a file, if it is the table."""
    if options.file != STREAM:
        if options.format:
            raise TableError(f"--format is for stdin; the name {options.file!r} says the format. Leave it out.")
        yield options
        return
    end = suffix(options.format, INPUTS)
    if sys.stdin is None or sys.stdin.isatty():
        state = "closed" if sys.stdin is None else "a terminal"
        raise TableError(f"Standard input is {state}. Pipe a table into plar, or name a file.")
    with tempfile.TemporaryDirectory(prefix="plar-") as folder:
        path = Path(folder, f"stdin{end}")
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
        try:
            yield replace(options, file=str(path))
        except PlarError as error:
            words = [a.replace(repr(str(path)), "standard input") if isinstance(a, str) else a for a in error.args]
            error.args = tuple(words)
            raise


@contextmanager
def written(output: str, end: str) -> Iterator[str]:
    """Give a path to write to; what is meant for stdout goes there when it is whole."""
    if output != STREAM:
        yield output
        return
    with tempfile.TemporaryDirectory(prefix="plar-") as folder:
        path = Path(folder, f"stdout{end}")
        yield str(path)
        sys.stdout.flush()
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer, 1 << 20)
        sys.stdout.buffer.flush()
