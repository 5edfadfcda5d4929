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
from plar.cli.completion import columns, words
from plar.cli.opening import as_words, check_targets, input_files, open_engine, open_table
from plar.cli.options import Computing, Epsilon, Json, LongRun, MemoryLimit, TableOptions, Telling
from plar.cli.pipes import OUTPUTS, STREAM, spooled, written
from plar.errors import TableError, printable, unknown_name

__all__ = ["COMMANDS"]


def reduce(
    table: TableOptions,
    computing: Computing,
    telling: Telling,
    long_run: LongRun,
    include: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES",
            help="Attributes that the reduct must hold, as a,b. Repeatable.",
            autocompletion=columns,
        ),
    ] = None,
    epsilon: Epsilon = 0.0,
    tolerance: Annotated[float, typer.Option(help="Stop when Θ(D|R) − Θ(D|C) is at most this.")] = 0.0,
    max_attributes: Annotated[int | None, typer.Option(help="Stop at this many attributes.")] = None,
    minimal: Annotated[bool, typer.Option("--minimal", help="Try to remove each attribute in the end.")] = False,
    as_json: Json = False,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="Write the reduced table; its name says the format, - is stdout."),
    ] = None,
    output_format: Annotated[
        str | None,
        typer.Option(
            help="What -o - writes: csv, tsv, ndjson, parquet, arrow. Default: csv.", autocompletion=words(*OUTPUTS)
        ),
    ] = None,
    report: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write an HTML page that explains the result; - is stdout.")
    ] = None,
) -> None:
    """Find the core and a reduct of a table."""
    from plar.limits import as_bytes, memory_limited
    from plar.progress import shown, tell_resumed

    end = check_targets(table, computing, long_run, output, output_format, report, as_json)
    aside = STREAM in (output, report)
    with (
        memory_limited(as_bytes(long_run.memory_limit)),
        spooled(table) as read,
        open_engine(computing) as engine,
    ):
        with shown(telling.progress) as display:
            data = open_table(read, engine)
            if output:
                data.rows.check_output(f"stdout{end}" if output == STREAM else output)
            found, interrupted = _reduced(
                data,
                measure=computing.measure,
                engine=engine,
                include=as_words(include),
                epsilon=epsilon,
                tolerance=tolerance,
                max_attributes=max_attributes,
                minimal=minimal,
                equivalent=report is not None,
                time_limit=long_run.time_limit,
                checkpoint=long_run.checkpoint,
                progress=display or (None if telling.quiet else tell_resumed),
                on_step=display.on_step if display else None,
            )
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


def _reduced(data: Any, **options: Any) -> tuple[plar.Reduct, bool]:
    """The result, or the one so far and that it was interrupted."""
    try:
        return plar.reduce(data, **options), False
    except plar.Interrupted as stop:
        return stop.reduct, True


def core(
    table: TableOptions, computing: Computing, telling: Telling, epsilon: Epsilon = 0.0, as_json: Json = False
) -> None:
    """Find the attributes that no reduct can do without, one per line."""
    from plar.progress import shown

    with spooled(table) as read, open_engine(computing) as engine, shown(telling.progress) as display:
        data = open_table(read, engine)
        found = plar.core(data, measure=computing.measure, engine=engine, epsilon=epsilon, progress=display)
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
    attributes: Annotated[
        list[str],
        typer.Option(
            "--attributes", "-a", metavar="NAMES", help="The subset B, as a,b,c. Repeatable.", autocompletion=columns
        ),
    ],
    as_json: Json = False,
) -> None:
    """Compute Θ(D|B) of a subset of the attributes."""
    from plar.progress import shown

    with spooled(table) as read, open_engine(computing) as engine, shown(telling.progress) as display:
        data = open_table(read, engine)
        names = data.columns(as_words(attributes))
        value = plar.theta(data, names, measure=computing.measure, engine=engine, progress=display)
    if as_json:
        _print_json({"theta": value, "attributes": names, "measure": computing.measure.upper()})
    else:
        print(value)


def granulate(
    table: TableOptions,
    telling: Telling,
    output: Annotated[str, typer.Option("--output", "-o", help="The Parquet file to write; - is stdout.")],
    memory_limit: MemoryLimit = None,
) -> None:
    """Write the distinct rows with their multiplicities; every command takes them in place of the table."""
    from plar.engines import as_engine
    from plar.limits import as_bytes, memory_limited
    from plar.progress import shown
    from plar.tables.output import check_output

    if output != STREAM:
        if not output.lower().endswith(".parquet"):
            raise TableError(f"Granules are written as Parquet. Got {output!r}; name it .parquet.")
        check_output(output, input_files(table.file))
    with (
        memory_limited(as_bytes(memory_limit)),
        spooled(table) as read,
        shown(telling.progress) as display,
    ):
        granules = plar.granulate(open_table(read, as_engine("local")), progress=display)
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
        return
    for name, reason in found.items():
        print(f"{name:<6} {ENGINES[name].about:<26} {'ready' if reason is None else reason}")


def schema(
    command: Annotated[
        str, typer.Argument(metavar="COMMAND", help="Whose --json: reduce, core, theta or engines.")
    ] = "reduce",
) -> None:
    """Print the JSON Schema of what --json prints."""
    from importlib.resources import files

    whole = json.loads(files("plar").joinpath("reduct.schema.json").read_text(encoding="utf-8"))
    parts = whole["$defs"]
    known = {"reduce": whole, **{name: parts[name] for name in ("core", "theta", "engines")}}
    if command not in known:
        raise unknown_name("command", command, known)
    found = known[command]
    print(json.dumps({"$schema": whole["$schema"], **found}, ensure_ascii=False, indent=1))


#: every command, with an example of its use
COMMANDS: dict[Callable[..., None], str] = {
    reduce: "plar reduce examples/tic_tac_toe.csv --decision x_wins",
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
