"""From the words of a command to a table and an engine."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plar.cli.options import Computing, LongRun, TableOptions
from plar.cli.pipes import OUTPUTS, STREAM, suffix
from plar.columns import Word
from plar.errors import ParameterError, PlarError, TableError
from plar.options import ReadOptions

if TYPE_CHECKING:
    from plar.tables import DecisionTable

__all__ = ["as_words", "check_targets", "input_files", "open_engine", "open_table", "reading"]


@contextmanager
def open_engine(options: Computing) -> Iterator[Any]:
    """Make the engine of a command; a Spark session that it starts ends with it."""
    from plar.engines import as_engine

    if options.engine != "spark":
        if options.master or options.conf:
            raise ParameterError("--master and --conf are settings of Spark. Add --engine spark.")
        yield as_engine(options.engine, options.jobs)
        return
    if not os.environ.get("PLAR_DEBUG"):  # py4j logs every call that Ctrl-C breaks, with its traceback
        logging.getLogger().addHandler(logging.NullHandler())
    engine: Any = as_engine("spark")
    engine.master = options.master or (f"local[{options.jobs}]" if options.jobs else None)
    engine.conf = dict(_setting(word) for word in options.conf or ())
    with engine:
        yield engine


def check_targets(
    table: TableOptions,
    computing: Computing,
    long_run: LongRun,
    output: str | None,
    kind: str | None,
    report: str | None,
    as_json: bool,
) -> str:
    """Refuse what cannot be written, before any work is done; return the suffix of what goes to stdout."""
    from plar.files import check_place
    from plar.tables.output import check_output

    streams = ["--json"] * as_json + [
        f"{name} -" for name, path in (("-o", output), ("--report", report)) if path == STREAM
    ]
    if len(streams) > 1:
        raise TableError(f"{' and '.join(streams)} would both write to stdout. Give one of them a file.")
    if kind and output != STREAM:
        raise TableError("--output-format is for -o -; the name of a file says its format. Leave it out.")
    if output == STREAM and computing.engine == "spark":
        raise TableError("Spark cannot write to stdout. Name a place for -o that the cluster can write to.")
    _check_apart({"-o": output, "--report": report, "--checkpoint": long_run.checkpoint})
    if output and output != STREAM and computing.engine != "spark":
        check_output(output, input_files(table.file))
    if report:
        if find_spec("jinja2") is None:
            raise PlarError("A report needs jinja2, which is not installed. Try: pip install 'plar[report]'.")
        if report != STREAM:
            check_place(report, input_files(table.file))
    return suffix(kind, OUTPUTS)


def _check_apart(places: Mapping[str, str | None]) -> None:
    named = [(option, path) for option, path in places.items() if path and path != STREAM]
    for i, (option, path) in enumerate(named):
        for other, there in named[:i]:
            if os.path.realpath(path) == os.path.realpath(there):
                raise TableError(f"{other} and {option} both name {path!r}. Choose two names.")


def input_files(file: str) -> list[Path]:
    """The files that are read, as far as they are there."""
    from plar.files import find_files

    with suppress(TableError):  # said when they are read
        return find_files(file)
    return []


def _setting(word: str) -> tuple[str, str]:
    key, equals, value = word.partition("=")
    if not equals or not key:
        raise ParameterError(f"A setting of Spark is KEY=VALUE. Got {word!r}.")
    return key, value


def reading(options: TableOptions) -> ReadOptions:
    """How the table is read; words are held against the names of the columns when these are known."""
    return ReadOptions(
        decision=as_words(options.decision) or None,
        conditions=as_words(options.conditions) or None,
        drop=as_words(options.drop),
        header=options.header,
        separator=options.separator,
        decimal=options.decimal,
        encoding=options.encoding,
        numeric=as_words(options.numeric),
        na=tuple(options.na or ()),
        missing=options.missing,
        weights=None if options.weights is None else Word(options.weights),
        bins=_bins(options.bins),
    )


def open_table(options: TableOptions, engine: Any) -> DecisionTable:
    """Open the table of a command."""
    from plar.run import opened

    gc.enable()
    return opened(options.file, reading(options), engine)


def as_words(given: list[str] | None) -> list[Word]:
    """Columns as a shell says them."""
    return [Word(word) for word in given or ()]


def _bins(rules: list[str] | None) -> Any:
    """One rule for all columns, or a mapping: name=rule, name=cut,cut."""
    if not rules:
        return None
    if len(rules) == 1 and "=" not in rules[0]:
        return rules[0]
    found: dict[Word, str | list[float]] = {}
    for rule in rules:
        name, equals, value = rule.rpartition("=")
        if not equals or not name:
            raise TableError(
                f"--bins takes one rule for all columns, or NAME=RULE for each. Got {rule!r} among {rules}."
            )
        if name in found:
            raise TableError(f"--bins has two rules for {name!r}. Choose one.")
        cuts = _numbers(value)
        found[Word(name)] = value if cuts is None else cuts
    return found


def _numbers(text: str) -> list[float] | None:
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        return None
