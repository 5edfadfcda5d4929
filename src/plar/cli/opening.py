"""From a command's options to a table, an engine and a place to write; stdin and stdout go through files."""

from __future__ import annotations

import gc
import logging
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from plar.cli.options import OUTPUTS, LongRun, Messages, Place, TableOptions, Writing
from plar.errors import ParameterError, PlarError, TableError, printable, unknown_name
from plar.files.find import SUFFIXES
from plar.options import ReadOptions, RunOptions

if TYPE_CHECKING:
    from plar.session.session import Session

#: how stdin and stdout are spelled
STREAM = "-"
#: what formats other than CSV begin with, and what to do about it
_SIGNATURES = (
    (re.compile(rb"PAR1"), "Parquet", "Add --format parquet."),
    (re.compile(rb"ARROW1"), "Arrow", "Add --format arrow."),
    (re.compile(rb"@relation", re.IGNORECASE), "ARFF", "Add --format arff."),
    (re.compile(rb"\{"), "JSON", "Add --format ndjson."),
    (re.compile(rb"\[\s*\{"), "JSON", "Add --format json."),
    (re.compile(rb"PK\x03\x04"), "a spreadsheet or a zip archive", "Add --format xlsx, or unzip it first."),
    (re.compile(rb"\x1f\x8b"), "gzip", "Decompress it first, with gunzip -c."),
    (re.compile(rb"\x28\xb5\x2f\xfd"), "zstd", "Decompress it first, with zstd -dc."),
)


@contextmanager
def session_of(
    table: TableOptions,
    place: Place | None = None,
    limits: LongRun | None = None,
    reading_of: Callable[[str, ReadOptions], ReadOptions] | None = None,
) -> Iterator[Session]:
    """The session of a command, whose table may be stdin; `reading_of` completes the options by what the file is."""
    from plar.session.session import Session

    place = place or Place()
    limits = limits or LongRun()
    run = RunOptions(memory_limit=limits.memory_limit, time_limit=limits.time_limit, checkpoint=limits.checkpoint)
    with spooled(table) as opened, _engine_of(place) as engine:
        run = replace(run, engine=engine, n_jobs=place.n_jobs if isinstance(engine, str) else None)
        reading = opened.reading()
        if reading_of is not None:
            reading = reading_of(opened.file, reading)
        gc.freeze()  # modules are not garbage, and looking through them takes 20 ms
        gc.enable()
        with Session(opened.file, reading, run, source=table.file) as session:
            yield session


@contextmanager
def _engine_of(place: Place) -> Iterator[object]:
    """The engine's name, or a Spark engine with its settings; a session that it starts ends with the command."""
    if place.engine != "spark":
        if place.master or place.conf:
            raise ParameterError("--master and --conf are settings of Spark. Add --engine spark.")
        yield place.engine
        return
    from plar.engines import as_engine
    from plar.runtime.parallel import check_jobs

    as_engine("spark")  # or it says what is missing here
    check_jobs(place.n_jobs)
    if place.master and place.n_jobs:
        raise ParameterError(f"--jobs is for this machine, but --master is {place.master!r}. Leave one out.")
    if not os.environ.get("PLAR_DEBUG"):  # py4j logs a traceback for every call that Ctrl-C breaks
        logging.getLogger().addHandler(logging.NullHandler())
    master = place.master
    if place.n_jobs:
        cores = "*" if place.n_jobs == -1 else place.n_jobs
        master = f"local[{cores}]"
    from plar.engines.spark import SparkEngine

    with SparkEngine(master=master, conf=dict(map(_setting, place.conf or ()))) as engine:
        yield engine


def _setting(word: str) -> tuple[str, str]:
    key, equals, value = word.partition("=")
    if not equals or not key:
        raise ParameterError(f"A setting of Spark is KEY=VALUE. Got {word!r}.")
    return key, value


@dataclass(frozen=True, slots=True)
class Targets:
    """Where a command writes what it finds."""

    as_json: bool
    writing: Writing
    report: str | None = None
    proof: str | None = None
    #: the result itself, as JSON
    result: str | None = None
    #: the option that has something else than text or JSON printed
    printed: str | None = None


@contextmanager
def shown(session: Session, messages: Messages) -> Iterator[None]:
    """Show the progress of what a session does meanwhile."""
    with messages.reporting() as reporter, session.reporting_to(reporter):
        yield


def check_targets(table: TableOptions, place: Place, targets: Targets, checkpoint: str | None = None) -> None:
    """Refuse what cannot be written, before any work is done."""
    output = targets.writing.output
    output_format = targets.writing.output_format
    places = {
        "-o": output or targets.result,
        "--report": targets.report,
        "--proof": targets.proof,
        "--checkpoint": checkpoint,
    }
    _check_streams(places, "--json" if targets.as_json else targets.printed)
    if output_format and output != STREAM:
        raise TableError("--output-format is for -o -; the suffix of a file says its format. Leave it out.")
    if output == STREAM and place.engine == "spark":
        raise TableError("Spark cannot write to stdout. Name a place for -o that the cluster can write to.")
    if targets.report and find_spec("jinja2") is None:
        raise PlarError("A report needs jinja2, which is not installed. Try: pip install 'plar[report]'.")
    _check_files(table, place, targets)
    stdout_suffix(targets.writing)  # refuses an unknown format


def discard_stdout() -> None:
    """Print nowhere from now on, since the reader is gone; Python is quiet when it closes stdout."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def stdout_suffix(writing: Writing) -> str:
    """The suffix that says the format of what -o - writes."""
    return _suffix(writing.output_format, OUTPUTS)


def _check_streams(places: Mapping[str, str | None], printed: str | None) -> None:
    """Refuse two things in one place; `printed` is the option that has something printed."""
    streams = [f"{option} -" for option, path in places.items() if path == STREAM]
    if printed:
        streams.insert(0, printed)
    if len(streams) > 1:
        raise TableError(f"{' and '.join(streams)} would both write to stdout. Give one of them a file.")
    files = {option: path for option, path in places.items() if path and path != STREAM}
    for (option, path), (other, other_path) in combinations(files.items(), 2):
        if os.path.realpath(path) == os.path.realpath(other_path):
            raise TableError(f"{option} and {other} both name {other_path!r}. Choose two names.")


def _check_files(table: TableOptions, place: Place, targets: Targets) -> None:
    """Refuse files that cannot be written, or that are input."""
    from plar.files.write import check_place
    from plar.input.tables.source import check_output
    from plar.results.report.pages import check_report_name

    inputs = input_files(table.file)
    output = targets.writing.output
    if output and output != STREAM and place.engine != "spark":
        check_output(output, inputs)
    for page in (targets.report, targets.proof, targets.result):
        if page and page != STREAM:
            check_place(page, inputs)
    if targets.report and targets.report != STREAM:
        check_report_name(targets.report)
    if targets.result and targets.result != STREAM:
        _check_rules_name(targets.result)


def _check_rules_name(path: str) -> None:
    """Refuse names of other formats; a name without a suffix is taken."""
    if Path(path).suffix.lower() not in ("", ".json"):
        raise TableError(
            f"Rules are written as JSON. Got {path!r}; name it .json. 'plar predict' writes tables of predictions."
        )


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
def spooled(options: TableOptions) -> Iterator[TableOptions]:
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
    for signature, kind, remedy in _SIGNATURES:
        if signature.match(start):
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
