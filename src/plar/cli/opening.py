"""From a command's options to a table, an engine and a place to write; stdin and stdout go through files."""

from __future__ import annotations

import gc
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plar.cli.options import OUTPUTS, Computing, Messages, TableOptions, Writing
from plar.errors import ParameterError, PlarError, TableError, printable, unknown_name
from plar.files.find import SUFFIXES

if TYPE_CHECKING:
    from plar.input.tables import DecisionTable

#: how stdin and stdout are spelled
STREAM = "-"
#: what formats other than CSV begin with, and what to do about it
_SIGNATURES = {
    b"PAR1": ("Parquet", "Add --format parquet."),
    b"ARROW1": ("Arrow", "Add --format arrow."),
    b"@relation": ("ARFF", "Add --format arff."),
    b"{": ("JSON", "Add --format ndjson."),
    b"[{": ("JSON", "Add --format json."),
    b"PK\x03\x04": ("a spreadsheet or a zip archive", "Add --format xlsx, or unzip it first."),
    b"\x1f\x8b": ("gzip", "Decompress it first, with gunzip -c."),
    b"\x28\xb5\x2f\xfd": ("zstd", "Decompress it first, with zstd -dc."),
}


@contextmanager
def started(
    table: TableOptions, computing: Computing | None = None, memory_limit: str | None = None
) -> Iterator[tuple[partial[DecisionTable], Any]]:
    """Give a function that opens a command's table, and its engine; a Spark session that it starts ends with it."""
    from plar.engines import as_engine
    from plar.runtime.limits import as_bytes, memory_limited
    from plar.runtime.parallel import check_jobs
    from plar.session.session import opened

    options = computing or Computing()
    with memory_limited(as_bytes(memory_limit)), _spooled(table) as read, ExitStack() as stack:
        engine: Any = as_engine(options.engine, None if options.engine == "spark" else options.jobs)
        if options.engine == "spark":
            if not os.environ.get("PLAR_DEBUG"):  # py4j logs a traceback for every call that Ctrl-C breaks
                logging.getLogger().addHandler(logging.NullHandler())
            check_jobs(options.jobs)
            if options.master and options.jobs:
                raise ParameterError(f"--jobs is for this machine, but --master is {options.master!r}. Leave one out.")
            cores = "*" if options.jobs in (None, -1) else options.jobs
            engine.master = options.master or (f"local[{cores}]" if options.jobs else None)
            engine.conf = dict(map(_setting, options.conf or ()))
            stack.enter_context(engine)
        elif options.master or options.conf:
            raise ParameterError("--master and --conf are settings of Spark. Add --engine spark.")
        gc.freeze()  # modules are not garbage, and looking through them takes 20 ms
        gc.enable()
        yield partial(opened, read.file, read.reading(), engine), engine


def _setting(word: str) -> tuple[str, str]:
    key, equals, value = word.partition("=")
    if not equals or not key:
        raise ParameterError(f"A setting of Spark is KEY=VALUE. Got {word!r}.")
    return key, value


def check_targets(
    table: TableOptions,
    computing: Computing,
    as_json: bool,
    writing: Writing,
    report: str | None,
    proof: str | None = None,
    checkpoint: str | None = None,
) -> str:
    """Refuse what cannot be written, before any work is done; return the suffix of what goes to stdout."""
    from plar.files.write import check_place
    from plar.input.tables.source import check_output
    from plar.results.report import check_name

    output, kind = writing.output, writing.output_format
    places = {"-o": output, "--report": report, "--proof": proof, "--checkpoint": checkpoint}
    streams = ["--json"] * as_json + [f"{name} -" for name, path in places.items() if path == STREAM]
    if len(streams) > 1:
        raise TableError(f"{' and '.join(streams)} would both write to stdout. Give one of them a file.")
    if kind and output != STREAM:
        raise TableError("--output-format is for -o -; the suffix of a file says its format. Leave it out.")
    if output == STREAM and computing.engine == "spark":
        raise TableError("Spark cannot write to stdout. Name a place for -o that the cluster can write to.")
    for (one, path), (other, there) in combinations(places.items(), 2):
        if path and there and path != STREAM and os.path.realpath(path) == os.path.realpath(there):
            raise TableError(f"{one} and {other} both name {there!r}. Choose two names.")
    if report and find_spec("jinja2") is None:
        raise PlarError("A report needs jinja2, which is not installed. Try: pip install 'plar[report]'.")
    files = input_files(table.file)
    if output and output != STREAM and computing.engine != "spark":
        check_output(output, files)
    for place in (report, proof):
        if place and place != STREAM:
            check_place(place, files)
    if report and report != STREAM:
        check_name(report)
    return _suffix(kind, OUTPUTS)


def input_files(file: str) -> list[Path]:
    """The input files that exist."""
    from plar.files.find import find_files

    with suppress(TableError):  # reported when they are read
        return find_files(file)
    return []


def _suffix(given: str | None, choices: tuple[str, ...]) -> str:
    """Name a format as files do."""
    kind = (given or "csv").lower()
    if kind not in choices:
        raise unknown_name("format", given, choices)
    return f".{kind}"


@contextmanager
def _spooled(options: TableOptions) -> Iterator[TableOptions]:
    """Copy stdin into a file, if it is the table."""
    if options.file != STREAM:
        if options.format:
            raise TableError(f"--format is for stdin; the suffix of {options.file!r} says the format. Leave it out.")
        yield options
        return
    end = _suffix(options.format, tuple(suffix[1:] for suffix in SUFFIXES))
    if sys.stdin.isatty():
        raise TableError("Standard input is a terminal. Pipe a table into plar, or name a file.")
    with tempfile.TemporaryDirectory(prefix="plar-") as folder:
        path = Path(folder, f"stdin{end}")
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
        if options.format is None:
            _check_text(path)
        try:
            yield replace(options, file=str(path))
        except PlarError as error:
            error.message = tuple(
                part.replace(repr(str(path)), "standard input") if isinstance(part, str) else part
                for part in error.message
            )
            raise


def _check_text(path: Path) -> None:
    """Refuse what is clearly not CSV, and say which option reads it."""
    with path.open("rb") as file:
        start = file.read(64).lstrip()
    for signature, (kind, remedy) in _SIGNATURES.items():
        if start[: len(signature)].lower() == signature.lower():
            raise TableError(f"Standard input looks like {kind}, and is read as CSV. {remedy}")


@contextmanager
def written(output: str, end: str, messages: Messages) -> Iterator[str]:
    """Give a path to write to; for stdout a temporary file, which is copied there when it is complete."""
    if output != STREAM:
        yield output
        if not messages.quiet:
            print(f"Wrote {printable(output)}.", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory(prefix="plar-") as folder:
        path = Path(folder, f"stdout{end}")
        yield str(path)
        sys.stdout.flush()
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer, 1 << 20)
        sys.stdout.buffer.flush()
