"""What each command does: open, compute, tell."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

import typer

import plar
from plar.cli.opening import OUTPUTS, STREAM, check_targets, input_files, started, written
from plar.cli.options import (
    Columns,
    Computing,
    Epsilon,
    Json,
    LongRun,
    MemoryLimit,
    TableOptions,
    Telling,
    of,
    of_columns,
)
from plar.columns import Word
from plar.errors import TableError, printable, unknown_name

_WITH_JSON = "reduce, relevant, core, theta or engines"
_START = "Begin with the core, or with --include alone: core, empty. Default: core, with --alpha empty."
_OUTPUT_FORMAT = "What -o - writes: csv, tsv, ndjson, parquet, arrow. Default: csv."


def reduce(
    table: TableOptions,
    computing: Computing,
    telling: Telling,
    long_run: LongRun,
    include: Annotated[Columns, of_columns("Attributes that the reduct must hold, as a,b. Repeatable.")] = None,
    epsilon: Epsilon = 0.0,
    tolerance: Annotated[float, of("Stop when Θ(D|R) − Θ(D|C) is at most this.")] = 0.0,
    max_attributes: Annotated[int | None, of("Stop at this many attributes.")] = None,
    minimal: Annotated[bool, of("Try to remove each attribute in the end.", "--minimal")] = False,
    alpha: Annotated[float | None, of("Take only attributes that beat chance at this level, e.g. 0.05.")] = None,
    start: Annotated[str | None, of(_START, choices=("core", "empty"))] = None,
    as_json: Json = False,
    output: Annotated[
        str | None, of("Write the reduced table; its name says the format, - is stdout.", "--output", "-o")
    ] = None,
    output_format: Annotated[str | None, of(_OUTPUT_FORMAT, choices=OUTPUTS)] = None,
    report: Annotated[
        str | None, of("Write an HTML page that explains the result; - is stdout.", metavar="FILE")
    ] = None,
) -> None:
    """Find the core and a reduct of a table."""
    from plar.progress import shown, tell_resumed

    end = check_targets(table, computing, long_run, output, output_format, report, as_json)
    aside = STREAM in (output, report)
    with started(table, computing, long_run.memory_limit) as (opened, engine):
        with shown(telling.progress) as display:
            data = opened()
            if output:
                data.rows.check_output(f"stdout{end}" if output == STREAM else output)
            interrupted = False
            try:
                found = plar.reduce(
                    data,
                    measure=computing.measure,
                    engine=engine,
                    include=include or (),
                    epsilon=epsilon,
                    tolerance=tolerance,
                    max_attributes=max_attributes,
                    minimal=minimal,
                    alpha=alpha,
                    start=start,
                    equivalent=report is not None,
                    time_limit=long_run.time_limit,
                    checkpoint=long_run.checkpoint,
                    progress=display or (None if telling.quiet else tell_resumed),
                    on_step=display.on_step if display else None,
                )
            except plar.Interrupted as stop:
                found, interrupted = stop.reduct, True
        if table.file == STREAM:
            found = replace(found, source=STREAM)
        where = "standard input" if table.file == STREAM else printable(table.file)
        told = json.dumps(found.to_dict(), ensure_ascii=False) if as_json else f"{where}: {found}"
        print(told, flush=True, file=sys.stderr if aside else sys.stdout)
        if long_run.checkpoint and (interrupted or (long_run.time_limit and not found.complete)):
            kept = printable(long_run.checkpoint)
            print(f"The steps are kept in {kept}; the same command goes on.", file=sys.stderr)
        if interrupted:
            raise KeyboardInterrupt
        # after the result is told: it is not to be lost with a full disk
        if report:
            with written(report, ".html") as path:
                found.report(path, command=shlex.join(["plar", *sys.argv[1:]]))
            _tell_written(report, telling)
        if output:
            with shown(telling.progress) as display, written(output, end) as path:
                if display:
                    display("write", 0, 0)
                data.sink(found.attributes, path, found.cuts)
            _tell_written(output, telling)


def relevant(
    table: TableOptions,
    computing: Computing,
    telling: Telling,
    alpha: Annotated[float, of("How seldom an attribute that says nothing may be taken.")] = 0.05,
    include: Annotated[Columns, of_columns("Attributes that the first layer must hold, as a,b. Repeatable.")] = None,
    max_attributes: Annotated[int | None, of("The most attributes of a layer.")] = None,
    time_limit: Annotated[str | None, of("End with the layers found after 90s, 10m, 2h, …", metavar="TIME")] = None,
    memory_limit: MemoryLimit = None,
    as_json: Json = False,
) -> None:
    """Find all attributes that say more about the decision than chance, in layers."""
    from plar.progress import shown

    with started(table, computing, memory_limit) as (opened, engine), shown(telling.progress) as display:
        found = plar.relevant(
            opened(),
            alpha=alpha,
            measure=computing.measure,
            engine=engine,
            include=include or (),
            max_attributes=max_attributes,
            time_limit=time_limit,
            progress=display,
            on_step=display.on_step if display else None,
        )
    if as_json:
        _print_json(found.to_dict())
    else:
        print(f"{'standard input' if table.file == STREAM else printable(table.file)}: {found}")


def core(
    table: TableOptions, computing: Computing, telling: Telling, epsilon: Epsilon = 0.0, as_json: Json = False
) -> None:
    """Find the attributes that no reduct can do without, one per line."""
    from plar.progress import shown

    with started(table, computing) as (opened, engine), shown(telling.progress) as display:
        found = plar.core(opened(), measure=computing.measure, engine=engine, epsilon=epsilon, progress=display)
    if as_json:
        _print_json({"core": found, "measure": computing.measure.upper()})
    else:
        for name in found:
            print(printable(name))
        if not found and not telling.quiet:
            print("The core is empty.", file=sys.stderr)


def theta(
    table: TableOptions,
    computing: Computing,
    telling: Telling,
    attributes: Annotated[list[Word], of_columns("The subset B, as a,b,c. Repeatable.", "--attributes", "-a")],
    as_json: Json = False,
) -> None:
    """Compute Θ(D|B) of a subset of the attributes."""
    from plar.progress import shown

    with started(table, computing) as (opened, engine), shown(telling.progress) as display:
        data = opened()
        names = data.columns(attributes)
        value = plar.theta(data, names, measure=computing.measure, engine=engine, progress=display)
    if as_json:
        _print_json({"theta": value, "attributes": names, "measure": computing.measure.upper()})
    else:
        print(value)


def granulate(
    table: TableOptions,
    telling: Telling,
    output: Annotated[str, of("The Parquet file to write; - is stdout.", "--output", "-o")],
    memory_limit: MemoryLimit = None,
) -> None:
    """Write the distinct rows with their multiplicities; every command takes them in place of the table."""
    from plar.progress import shown
    from plar.tables.rows import check_output

    if output != STREAM:
        if not output.lower().endswith(".parquet"):
            raise TableError(f"Granules are written as Parquet. Got {output!r}; name it .parquet.")
        check_output(output, input_files(table.file))
    with started(table, memory_limit=memory_limit) as (opened, _), shown(telling.progress) as display:
        granules = plar.granulate(opened(), progress=display)
        with written(output, ".parquet") as path:
            granules.save(path)
    if not telling.quiet:
        print(f"{granules.n_objects:,} objects, {len(granules):,} granules.", file=sys.stderr, end=" ")
    _tell_written(output, telling)


def engines(as_json: Json = False) -> None:
    """List the engines, and why one cannot be used here."""
    from plar.engines import ENGINES, why_unavailable

    found = {name: why_unavailable(name) for name in ENGINES}
    if as_json:
        _print_json(found)
    else:
        for name, reason in found.items():
            print(f"{name:<6} {ENGINES[name]:<26} {'ready' if reason is None else reason}")


def schema(
    command: Annotated[str, typer.Argument(metavar="COMMAND", help=f"Whose --json: {_WITH_JSON}.")] = "reduce",
) -> None:
    """Print the JSON Schema of what --json prints."""
    from importlib.resources import files

    whole = json.loads(files("plar").joinpath("reduct.schema.json").read_text(encoding="utf-8"))
    known = {"reduce": whole, **{name: whole["$defs"][name] for name in ("relevant", "core", "theta", "engines")}}
    if command not in known:
        raise unknown_name("command", command, known)
    print(json.dumps({"$schema": whole["$schema"], **known[command]}, ensure_ascii=False, indent=1))


#: every command, with an example of its use
COMMANDS: dict[Callable[..., None], str] = {
    reduce: "plar reduce examples/tic_tac_toe.csv --decision x_wins",
    relevant: "plar relevant examples/tic_tac_toe.csv --decision x_wins",
    core: "plar core examples/tic_tac_toe.csv --decision x_wins --measure PR",
    theta: "plar theta examples/tic_tac_toe.csv --decision x_wins --attributes top_left,top_right",
    granulate: "plar granulate examples/tic_tac_toe.csv --decision x_wins -o granules.parquet",
    engines: "plar engines",
    schema: "plar schema > reduct.schema.json",
}


def _print_json(found: Any) -> None:
    print(json.dumps(found, ensure_ascii=False))


def _tell_written(output: str, telling: Telling) -> None:
    if not telling.quiet and output != STREAM:
        print(f"Wrote {printable(output)}.", file=sys.stderr)
