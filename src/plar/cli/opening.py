"""From the words of a command to a table and an engine."""

from __future__ import annotations

import gc
import logging
import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from plar.cli.options import Computing, TableOptions
from plar.cli.pipes import OUTPUTS, STREAM, suffix
from plar.errors import ParameterError, PlarError, TableError

__all__ = ["as_list", "check_targets", "names_of", "open_engine", "open_table"]


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
    table: TableOptions, computing: Computing, output: str | None, kind: str | None, report: str | None, as_json: bool
) -> str:
    """Refuse what cannot be written, before any work is done; return the suffix of what goes to stdout."""
    from plar.reading.output import check_output, check_place

    streams = ["--json"] * as_json + [
        f"{name} -" for name, path in (("-o", output), ("--report", report)) if path == STREAM
    ]
    if len(streams) > 1:
        raise TableError(f"{' and '.join(streams)} would both write to stdout. Give one of them a file.")
    if kind and output != STREAM:
        raise TableError("--output-format is for -o -; the name of a file says its format. Leave it out.")
    if output == STREAM and computing.engine == "spark":
        raise TableError("Spark cannot write to stdout. Name a place for -o that the cluster can write to.")
    if output and output != STREAM and computing.engine != "spark":
        check_output(output, table.file)
    if report:
        if find_spec("jinja2") is None:
            raise PlarError("A report needs jinja2, which is not installed. Try: pip install 'plar[report]'.")
        if report != STREAM:
            check_place(report, table.file)
        if report == output:
            raise TableError(f"-o and --report both name {report!r}. Choose two names.")
    return suffix(kind, OUTPUTS)


def _setting(word: str) -> tuple[str, str]:
    key, equals, value = word.partition("=")
    if not equals or not key:
        raise ParameterError(f"A setting of Spark is KEY=VALUE. Got {word!r}.")
    return key, value


def open_table(options: TableOptions, engine: Any = None) -> Any:
    """Open a table, or a file of granules, which knows its decision itself."""
    from plar.reading.readers import open_source
    from plar.table import as_table, open_granules

    gc.enable()
    file, decision, conditions = options.file, options.decision, options.conditions
    granules = open_granules(file)
    if granules is not None:
        names = names_of(granules)
        return granules.with_roles(
            None if decision is None else [_column(word, names) for word in decision],
            None if conditions is None else as_list(conditions, names),
            drop=as_list(options.drop, names),
            weights=options.weights,
            missing=options.missing,
            na=tuple(options.na or ()),
            bins=_bins(options.bins, names),
            decimal=options.decimal,
        )
    header = not options.no_header
    between = None if options.separator is None else options.separator.replace("\\t", "\t")
    rows: Any = None if engine is None else engine.read(file, header=header, separator=between)
    source = None if rows is not None else open_source(file, header=header, separator=between)
    names = source.names if source is not None else tuple(rows.frame.columns)
    if decision is None and not (source and source.decision):
        raise TableError("No decision is given. Name it with --decision, or its position: --decision -1.")
    return as_table(
        file if rows is None else rows,
        None if decision is None else [_column(word, names) for word in decision],
        conditions=None if conditions is None else as_list(conditions, names),
        drop=as_list(options.drop, names),
        missing=options.missing,
        na=tuple(options.na or ()),
        bins=_bins(options.bins, names),
        decimal=options.decimal,
        weights=None if options.weights is None else _column(options.weights, names),
        header=header,
        separator=between,
    )


def _bins(rules: list[str] | None, names: Collection[str]) -> Any:
    """One rule for all columns, or a mapping: name=rule, name=cut,cut."""
    if not rules:
        return None
    if len(rules) == 1 and "=" not in rules[0]:
        return rules[0]
    found: dict[str | int, str | list[float]] = {}
    for rule in rules:
        name, equals, value = rule.rpartition("=")
        if not equals or not name:
            raise TableError(
                f"--bins takes one rule for all columns, or NAME=RULE for each. Got {rule!r} among {rules}."
            )
        column = _column(name, names)
        if column in found:
            raise TableError(f"--bins has two rules for {name!r}. Choose one.")
        cuts = _numbers(value)
        found[column] = value if cuts is None else cuts
    return found


def _numbers(text: str) -> list[float] | None:
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        return None


def names_of(data: Any) -> tuple[str, ...]:
    """All columns, to which positions refer."""
    names: tuple[str, ...] = data.names or (*data.conditions, *data.decision)
    return names


def _column(word: str, names: Collection[str]) -> str | int:
    """A position if it looks like a whole number and no column is called so, else a name."""
    return int(word) if re.fullmatch(r"-?\d+", word) and word not in names else word


def as_list(words: str | None, names: Collection[str]) -> list[str | int]:
    """Columns of a comma-separated list."""
    return [_column(word.strip(), names) for word in (words or "").split(",") if word.strip()]
