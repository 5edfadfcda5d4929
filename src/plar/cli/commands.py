"""What each command does: open the table, compute, print."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import typer

import plar
from plar.cli.opening import STREAM, check_targets, input_files, started, written
from plar.cli.options import (
    Columns,
    Computing,
    Costs,
    Epsilon,
    Json,
    LongRun,
    MemoryLimit,
    Messages,
    Searching,
    TableOptions,
    Text,
    TimeLimit,
    Writing,
    of,
    of_columns,
    of_measures,
)
from plar.coding.column_names import ShellColumn
from plar.errors import ParameterError, TableError, printable, unknown_name

_WITH_JSON = "reduce, relevant, reducts, core, theta or engines; or proof"
_PROOF = "Write the proof of --search smallest, for 'plar verify'; - is stdout."
_REDUCTS_REPORT = "Write an HTML page: which columns are in which reducts; - is stdout."
_SEARCH = "Add one column after another, or find the smallest set and prove it: greedy, smallest."


def reduce(
    table: TableOptions,
    computing: Computing,
    messages: Messages,
    long_run: LongRun,
    searching: Searching,
    costs: Costs,
    *,
    alpha: Annotated[float | None, of("Take only columns that beat chance at this level, e.g. 0.05.")] = None,
    search: Annotated[str, of(_SEARCH, choices=("greedy", "smallest"))] = "greedy",
    as_json: Json = False,
    writing: Writing,
    report: Annotated[Text, of("Write an HTML page that explains the result; - is stdout.", metavar="FILE")] = None,
    proof: Annotated[Text, of(_PROOF, metavar="FILE")] = None,
) -> None:
    """Find columns that say as much about the decision as all of them: a reduct, and the core."""
    if proof and search != "smallest":
        raise ParameterError("--proof is for --search smallest; the greedy search proves no bound.")
    options = {**searching.options(), **costs.options(), "search": search, "alpha": alpha}
    find = partial(plar.reduce, equivalent=report is not None, **options)
    with _found(find, table, computing, messages, long_run, as_json, writing, report, proof) as found:
        if proof:
            with written(proof, ".json", messages) as path:
                found.proof.save(path)
        if report:
            with written(report, ".html", messages) as path:
                found.report(path, command=shlex.join(["plar", *sys.argv[1:]]))


def relevant(
    table: TableOptions,
    computing: Computing,
    messages: Messages,
    long_run: LongRun,
    searching: Searching,
    *,
    alpha: Annotated[float, of("How rarely an uninformative column may be taken.")] = 0.05,
    as_json: Json = False,
    writing: Writing,
) -> None:
    """Find all columns that say more about the decision than chance, in layers."""
    find = partial(plar.relevant, alpha=alpha, **searching.options())
    with _found(find, table, computing, messages, long_run, as_json, writing):
        pass


def reducts(
    table: TableOptions,
    computing: Computing,
    messages: Messages,
    costs: Costs,
    limit: Annotated[int, of("The most reducts to list.", metavar="N")] = 1_000_000,
    max_size: Annotated[int | None, of("The most columns of a reduct.", metavar="N")] = None,
    include: Annotated[Columns, of_columns("Columns that each reduct must hold, as a,b. Repeatable.")] = None,
    time_limit: TimeLimit = None,
    memory_limit: MemoryLimit = None,
    as_json: Json = False,
    report: Annotated[Text, of(_REDUCTS_REPORT, metavar="FILE")] = None,
) -> None:
    """List all reducts of a table, the smallest first."""
    check_targets(table, computing, as_json, Writing(), report)
    asked: dict[str, Any] = {"limit": limit, "max_size": max_size, "include": include or (), "time_limit": time_limit}
    with started(table, computing, memory_limit) as (opened, engine), messages.shown() as display:
        asked |= {"measure": computing.measure, "engine": engine, "progress": display, **costs.options()}
        try:
            found, interrupted = plar.reducts(opened(), **asked), False
        except plar.Interrupted as stop:
            found, interrupted = stop.reduct, True
    for line in found.json_lines() if as_json else [str(found)]:
        print(line, file=sys.stderr if report == STREAM else sys.stdout)
    if interrupted:
        raise KeyboardInterrupt
    if report:
        sys.stdout.flush()
        with written(report, ".html", messages) as path:
            found.report(path)


def verify(
    proof: Annotated[str, typer.Argument(metavar="PROOF", help="What 'plar reduce --search smallest --proof' wrote.")],
    table: TableOptions,
    computing: Computing,
    messages: Messages,
    measure: Annotated[Text, of_measures("What the proof must be of: PR, SCE, LCE or CCE. Default: any.")] = None,
) -> None:
    """Check the proof of a smallest reduct against its table; exit 0 if every line of it holds."""
    given = plar.Proof.open(proof)
    if measure is not None and measure.upper() != given.measure:
        raise ParameterError(f"The proof is of the measure {given.measure}, not of {measure!r}. Leave --measure out.")
    with started(table, computing) as (opened, engine), messages.shown() as display:
        file, reading, _ = opened.args
        asked = {name: getattr(reading, name) for name in reading.changed()}
        plar.verify(given, file, engine=engine, progress=display, **asked)
    if not messages.quiet:
        print(f"Verified: {_statement(given)}")


def _statement(proof: plar.Proof) -> str:
    """What a proof states, in full."""
    decision, chosen = (", ".join(map(printable, names)) for names in (proof.decision, proof.attributes))
    size, bound = f"has {proof.cost:,}", f"has fewer than {proof.lower_bound:,}"
    if proof.costs:
        size, bound = f"costs {proof.cost:,}", f"costs less than {proof.lower_bound:,}"
    limits = [f"with {printable(name)}" for name in proof.include] + [f"without {printable(n)}" for n in proof.exclude]
    which = f" {' and '.join(limits)}" if limits else ""
    considered = f"of the {len(proof.conditions):,} columns considered, the set {{{chosen}}}"
    kept = f"says as much about {decision} as all of them by {proof.measure}, and {size}"
    return f"{considered} {kept}; no other set{which} that does so {bound}."


@contextmanager
def _found(
    find: Callable[..., Any],
    table: TableOptions,
    computing: Computing,
    messages: Messages,
    long_run: LongRun,
    as_json: bool,
    writing: Writing,
    report: str | None = None,
    proof: str | None = None,
) -> Iterator[Any]:
    """Find and print a result, hand it on, then write the table last, so that a full disk loses no result."""
    from plar.session.progress import print_resumed

    end = check_targets(table, computing, as_json, writing, report, proof, long_run.checkpoint)
    with started(table, computing, long_run.memory_limit) as (opened, engine):
        with messages.shown() as display:
            data = replace(opened(), path=table.file)  # - for stdin, wherever it was copied to
            if writing.output:
                data.check_output(f"stdout{end}" if writing.output == STREAM else writing.output)
            interrupted = False
            try:
                found = find(
                    data,
                    measure=computing.measure,
                    engine=engine,
                    time_limit=long_run.time_limit,
                    checkpoint=long_run.checkpoint,
                    progress=display or (None if messages.quiet else print_resumed),
                    on_step=display.on_step if display else None,
                )
            except plar.Interrupted as stop:
                found, interrupted = stop.reduct, True
        where = "standard input" if table.file == STREAM else printable(table.file)
        text = json.dumps(found.to_dict(), ensure_ascii=False) if as_json else f"{where}: {found}"
        print(text, flush=True, file=sys.stderr if STREAM in (writing.output, report, proof) else sys.stdout)
        if long_run.checkpoint and (interrupted or (long_run.time_limit and not found.complete)):
            file = printable(long_run.checkpoint)
            print(f"The steps are saved in {file}; run the same command again to continue.", file=sys.stderr)
        if interrupted:
            raise KeyboardInterrupt
        yield found
        if writing.output:
            with written(writing.output, end, messages) as path, messages.shown() as display:
                if display:
                    display("write", 0, 0)
                data.sink(found.attributes, path, found.cuts if writing.output_bins else {})


def core(
    table: TableOptions, computing: Computing, messages: Messages, epsilon: Epsilon = 0.0, as_json: Json = False
) -> None:
    """Find the core: the columns that are in every reduct, one per line."""
    with started(table, computing) as (opened, engine), messages.shown() as display:
        found = plar.core(opened(), measure=computing.measure, engine=engine, epsilon=epsilon, progress=display)
    if as_json:
        _print_json({"core": found, "measure": computing.measure.upper()})
    else:
        for name in found:
            print(printable(name))
        if not found and not messages.quiet:
            print("The core is empty.", file=sys.stderr)


def theta(
    table: TableOptions,
    computing: Computing,
    messages: Messages,
    attributes: Annotated[list[ShellColumn], of_columns("The columns B, as a,b,c. Repeatable.", "--attributes", "-a")],
    as_json: Json = False,
) -> None:
    """Compute Θ(D|B), the uncertainty left when only some columns are known."""
    with started(table, computing) as (opened, engine), messages.shown() as display:
        data = opened()
        names = data.columns(attributes)
        value = plar.theta(data, names, measure=computing.measure, engine=engine, progress=display)
    if as_json:
        _print_json({"theta": value, "attributes": names, "measure": computing.measure.upper()})
    else:
        print(value)


def granulate(
    table: TableOptions,
    messages: Messages,
    output: Annotated[str, of("The Parquet file to write; - is stdout.", "--output", "-o")],
    memory_limit: MemoryLimit = None,
) -> None:
    """Write the distinct rows with their counts; every command takes this file in place of the table."""
    from plar.input.tables.source import check_output

    if output != STREAM:
        if not output.lower().endswith(".parquet"):
            raise TableError(f"Distinct rows are written as Parquet. Got {output!r}; name it .parquet.")
        check_output(output, input_files(table.file))
    with written(output, ".parquet", messages) as path, started(table, memory_limit=memory_limit) as (opened, _):
        with messages.shown() as display:
            granules = plar.granulate(opened(), progress=display)
            granules.save(path)
        if not messages.quiet:
            print(f"{granules.n_objects:,} rows, {len(granules):,} distinct.", file=sys.stderr, end=" ")


def engines(as_json: Json = False) -> None:
    """List the engines, and why some cannot be used here."""
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
    parts = ("relevant", "reducts", "core", "theta", "engines", "proof")
    known = {"reduce": whole, **{name: whole["$defs"][name] for name in parts}}
    if command not in known:
        raise unknown_name("command", command, known)
    print(json.dumps({"$schema": whole["$schema"], **known[command]}, ensure_ascii=False, indent=1))


#: every command, with an example of its use
COMMANDS: dict[Callable[..., None], str] = {
    reduce: "plar reduce examples/tic_tac_toe.csv --decision x_wins",
    relevant: "plar relevant examples/tic_tac_toe.csv --decision x_wins",
    reducts: "plar reducts examples/tic_tac_toe.csv --decision x_wins",
    verify: "plar verify proof.json examples/tic_tac_toe.csv",
    core: "plar core examples/tic_tac_toe.csv --decision x_wins --measure PR",
    theta: "plar theta examples/tic_tac_toe.csv --decision x_wins --attributes top_left,top_right",
    granulate: "plar granulate examples/tic_tac_toe.csv --decision x_wins -o granules.parquet",
    engines: "plar engines",
    schema: "plar schema > reduct.schema.json",
}


def _print_json(found: Any) -> None:
    print(json.dumps(found, ensure_ascii=False))
