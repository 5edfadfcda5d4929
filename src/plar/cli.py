"""The command line: the library's words for the shell. Data and JSON go to stdout, messages to stderr.

What a command needs is imported when it runs, so that help is instant and an early Ctrl-C is caught.
"""

from __future__ import annotations

import gc
import json
import os
import re
import signal
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import plar
from plar.errors import EngineFailed, EngineUnavailable, PlarError, printable

if TYPE_CHECKING:
    from plar.search import Progress

__all__ = ["app", "main"]

app = typer.Typer(
    help="Attribute reduction (rough-set feature selection) for decision tables of any size.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

File = Annotated[str, typer.Argument(help="A table, or a glob of tables: .csv .tsv .parquet .arff .ndjson .gz …")]
Decision = Annotated[
    list[str] | None,
    typer.Option(
        "--decision", "-d", metavar="NAME", help="Decision column: a name, or a position such as 0 or -1. Repeatable."
    ),
]
Conditions = Annotated[str | None, typer.Option(help="Columns to choose from, as a,b,c. Default: all others.")]
Drop = Annotated[str | None, typer.Option(help="Columns to leave out, as a,b,c.")]
NoHeader = Annotated[bool, typer.Option("--no-header", help="The first line is data; columns are x0, x1, …")]
Separator = Annotated[str | None, typer.Option(help="Between fields of text; default: found out.")]
Missing = Annotated[str, typer.Option(help="Missing values: 'value' of their own, 'drop' the rows, 'error'.")]
Na = Annotated[
    list[str] | None, typer.Option(metavar="TEXT", help="A further spelling of missing, e.g. '?'. Repeatable.")
]
Weights = Annotated[str | None, typer.Option(help="Column of whole-number multiplicities.")]
MeasureName = Annotated[str, typer.Option("--measure", "-m", help="PR, SCE, LCE or CCE.")]
EngineName = Annotated[
    str, typer.Option("--engine", "-e", help="Where to compute: auto, local, spark, cuda; see 'plar engines'.")
]
Master = Annotated[
    str | None, typer.Option(metavar="URL", help="Spark's master, e.g. spark://host:7077. Default: this machine.")
]
Conf = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="A setting of Spark, e.g. spark.executor.memory=4g. Repeatable."),
]
Jobs = Annotated[int | None, typer.Option("--jobs", "-j", help="Threads. Default: all cores.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Epsilon = Annotated[float, typer.Option(help="The core's least inner significance.")]


@app.callback(invoke_without_command=True)
def _start(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False
) -> None:
    if version:
        print(f"plar {plar.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command(epilog="Example: plar reduce examples/tic_tac_toe.csv --decision x_wins")
def reduce(
    file: File,
    decision: Decision = None,
    measure: MeasureName = "SCE",
    engine: EngineName = "auto",
    master: Master = None,
    conf: Conf = None,
    conditions: Conditions = None,
    drop: Drop = None,
    no_header: NoHeader = False,
    separator: Separator = None,
    missing: Missing = "value",
    na: Na = None,
    weights: Weights = None,
    include: Annotated[str | None, typer.Option(help="Attributes that the reduct must hold, as a,b.")] = None,
    epsilon: Epsilon = 0.0,
    tolerance: Annotated[float, typer.Option(help="Stop when Θ(D|R) − Θ(D|C) is at most this.")] = 0.0,
    max_attributes: Annotated[int | None, typer.Option(help="Stop at this many attributes.")] = None,
    minimal: Annotated[bool, typer.Option("--minimal", help="Try to remove each attribute in the end.")] = False,
    jobs: Jobs = None,
    as_json: Json = False,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="Write the reduced table; its name says the format.")
    ] = None,
) -> None:
    """Find the core and a reduct of a table."""
    from plar.table import check_output

    if output and engine != "spark":
        check_output(output, file)
    with _engine(engine, master, conf, jobs) as chosen:
        with _progress(chosen) as show:
            data = _open(chosen, file, decision, conditions, drop, no_header, separator, missing, na, weights)
            if output and not isinstance(data, plar.DecisionTable):
                raise plar.TableError(f"{file!r} holds granules, not rows, so no table can be written to {output!r}.")
            found = plar.reduce(
                data,
                measure=measure,
                engine=chosen,
                include=_list(include, _names_of(data)),
                epsilon=epsilon,
                tolerance=tolerance,
                max_attributes=max_attributes,
                minimal=minimal,
                progress=show,
            )
        told = json.dumps(found.to_dict(), ensure_ascii=False) if as_json else f"{printable(file)}: {found}"
        print(told, flush=True)
        if output:  # after the result is told: it is not to be lost with a full disk
            with _progress() as show:
                if show:
                    show("write", 0, 0)
                data.sink(found.attributes, output)
            print(f"Wrote {output}.", file=sys.stderr)


@app.command(epilog="Example: plar core examples/tic_tac_toe.csv --decision x_wins --measure PR")
def core(
    file: File,
    decision: Decision = None,
    measure: MeasureName = "SCE",
    engine: EngineName = "auto",
    master: Master = None,
    conf: Conf = None,
    conditions: Conditions = None,
    drop: Drop = None,
    no_header: NoHeader = False,
    separator: Separator = None,
    missing: Missing = "value",
    na: Na = None,
    weights: Weights = None,
    epsilon: Epsilon = 0.0,
    jobs: Jobs = None,
    as_json: Json = False,
) -> None:
    """Find the attributes that no reduct can do without, one per line."""
    with _engine(engine, master, conf, jobs) as chosen:
        data = _open(chosen, file, decision, conditions, drop, no_header, separator, missing, na, weights)
        found = plar.core(data, measure=measure, engine=chosen, epsilon=epsilon)
    if as_json:
        print(json.dumps({"core": found, "measure": measure.upper()}, ensure_ascii=False))
    else:
        for name in found:
            print(printable(name))
        if not found:
            print("The core is empty.", file=sys.stderr)


@app.command(epilog="Example: plar theta examples/tic_tac_toe.csv --decision x_wins --attributes top_left,top_right")
def theta(
    file: File,
    attributes: Annotated[str, typer.Option("--attributes", "-a", help="The subset B, as a,b,c.")],
    decision: Decision = None,
    measure: MeasureName = "SCE",
    engine: EngineName = "auto",
    master: Master = None,
    conf: Conf = None,
    conditions: Conditions = None,
    drop: Drop = None,
    no_header: NoHeader = False,
    separator: Separator = None,
    missing: Missing = "value",
    na: Na = None,
    weights: Weights = None,
    jobs: Jobs = None,
    as_json: Json = False,
) -> None:
    """Compute Θ(D|B) of a subset of the attributes."""
    from plar.columns import resolve

    with _engine(engine, master, conf, jobs) as chosen:
        data = _open(chosen, file, decision, conditions, drop, no_header, separator, missing, na, weights)
        wanted = _list(attributes, _names_of(data))
        value = plar.theta(data, wanted, measure=measure, engine=chosen)
    names = [resolve(_names_of(data), a, "attribute") for a in wanted]
    found = {"theta": value, "attributes": names, "measure": measure.upper()}
    print(json.dumps(found, ensure_ascii=False) if as_json else value)


@app.command(epilog="Example: plar granulate examples/tic_tac_toe.csv --decision x_wins -o granules.parquet")
def granulate(
    file: File,
    output: Annotated[str, typer.Option("--output", "-o", help="The Parquet file to write.")],
    decision: Decision = None,
    conditions: Conditions = None,
    drop: Drop = None,
    no_header: NoHeader = False,
    separator: Separator = None,
    missing: Missing = "value",
    na: Na = None,
    weights: Weights = None,
) -> None:
    """Write the distinct rows with their multiplicities; every command takes them in place of the table."""
    from plar.table import check_output

    if not output.lower().endswith(".parquet"):
        raise plar.TableError(f"Granules are written as Parquet. Got {output!r}; name it .parquet.")
    check_output(output, file)
    data = _open(None, file, decision, conditions, drop, no_header, separator, missing, na, weights)
    with _progress() as show:
        if show:
            show("granulate", 0, 0)
        granules = plar.granulate(data)
        granules.save(output)
    print(f"{granules.n_objects} objects, {len(granules)} granules. Wrote {output}.", file=sys.stderr)


@app.command(epilog="Example: plar engines")
def engines(as_json: Json = False) -> None:
    """List the engines, and why one cannot be used here."""
    from plar.engines import ENGINES, why_unavailable

    found = {name: why_unavailable(name) for name in ENGINES}
    if as_json:
        print(json.dumps(found))
        return
    for name, reason in found.items():
        print(f"{name:<6} {ENGINES[name].about:<26} {'ready' if reason is None else reason}")


@contextmanager
def _engine(name: str, master: str | None, conf: list[str] | None, jobs: int | None) -> Iterator[Any]:
    """The engine of a command; a Spark session that it starts ends with it."""
    from plar.engines import as_engine

    if name != "spark":
        if master or conf:
            raise plar.TableError("--master and --conf are settings of Spark. Add --engine spark.")
        yield as_engine(name, jobs)
        return
    engine: Any = as_engine(name)
    engine.master = master or (f"local[{jobs}]" if jobs else None)
    engine.conf = dict(_setting(word) for word in conf or ())
    with engine:
        yield engine


def _setting(word: str) -> tuple[str, str]:
    key, equals, value = word.partition("=")
    if not equals or not key:
        raise plar.TableError(f"A setting of Spark is KEY=VALUE. Got {word!r}.")
    return key, value


def _open(
    engine: Any,
    file: str,
    decision: list[str] | None,
    conditions: str | None,
    drop: str | None,
    no_header: bool,
    separator: str | None,
    missing: str,
    na: list[str] | None,
    weights: str | None,
) -> Any:
    """Open a table, or a file of granules, which knows its decision itself."""
    from plar.reading.readers import open_source
    from plar.table import as_table, open_granules

    gc.enable()
    granules = open_granules(file)
    if granules is not None:
        names = _names_of(granules)
        return granules.with_roles(
            None if decision is None else [_column(word, names) for word in decision],
            None if conditions is None else _list(conditions, names),
            drop=_list(drop, names),
            weights=weights,
            missing=missing,
        )
    between = None if separator is None else separator.replace("\\t", "\t")
    rows: Any = engine.read(file, header=not no_header, separator=between) if hasattr(engine, "read") else None
    source = None if rows is not None else open_source(file, header=not no_header, separator=between)
    names = source.names if source is not None else tuple(rows.frame.columns)
    if decision is None and not (source and source.decision):
        raise plar.TableError("No decision is given. Name it with --decision, or its position: --decision -1.")
    return as_table(
        file if rows is None else rows,
        None if decision is None else [_column(word, names) for word in decision],
        conditions=None if conditions is None else _list(conditions, names),
        drop=_list(drop, names),
        missing=missing,
        na=tuple(na or ()),
        weights=None if weights is None else _column(weights, names),
        header=not no_header,
        separator=between,
    )


def _names_of(data: Any) -> tuple[str, ...]:
    names: tuple[str, ...] = data.names or (*data.conditions, *data.decision)
    return names


def _column(word: str, names: Collection[str]) -> str | int:
    """A position if it looks like a whole number and no column is called so, else a name."""
    return int(word) if re.fullmatch(r"-?\d+", word) and word not in names else word


def _list(words: str | None, names: Collection[str]) -> list[str | int]:
    return [_column(word.strip(), names) for word in (words or "").split(",") if word.strip()]


@contextmanager
def _progress(engine: Any = None) -> Iterator[Progress | None]:
    """Show what is going on, on a terminal only."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    words = {"read": "opening", "granulate": "reading and granulating", "write": "writing"}
    with Console(stderr=True).status("opening") as status:
        step = 1

        def show(phase: str, done: int, total: int) -> None:
            nonlocal step
            step = done + 1
            status.update(
                f"step {step}, {total:,} objects still mixed" if phase == "search" else words.get(phase, phase)
            )

        def watch(job: Any) -> None:
            best = f", Θ {job.best[1]:.6g} with {printable(job.best[0])} so far" if job.best else ""
            left = f", {job.seconds_left:.0f} s left" if job.seconds_left is not None else ""
            share = f"{100 * job.done // job.total} %"
            status.update(f"step {step}, {job.candidates:,} candidates, {share}{best}{left}")

        if hasattr(engine, "watch"):
            engine.watch = watch
        yield show


def main() -> None:
    """Run a command; exit 0 done, 1 the machine failed, 2 bad input or usage, 130 interrupted."""
    # Imports are most of a short run. numba would import scipy, if it is there, for BLAS routines that no kernel of
    # plar calls; and there is no garbage to collect among modules, neither while they load nor when they go.
    sys.modules.setdefault("scipy", None)  # type: ignore[arg-type]
    gc.disable()
    try:
        if app(standalone_mode=False) == 130:  # how typer reports an interrupt to its caller
            raise KeyboardInterrupt
        sys.stdout.flush()
    except (EngineFailed, EngineUnavailable) as error:
        _fail(f"Error: {error}", 1)
    except PlarError as error:
        _fail(f"Error: {error}", 2)
    except typer.TyperException as error:
        _fail(f"Error: {error.format_message()} See 'plar --help'.", 2)
    except (KeyboardInterrupt, typer.Abort):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _fail("Interrupted.", 130)
    except BrokenPipeError:
        # the reader has gone; nothing is to be said when Python closes stdout
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except MemoryError:
        _fail("Error: Out of memory. Choose fewer columns, or a machine with more of it.", 1)
    except OSError as error:
        where = f" {Path(error.filename)}" if error.filename else ""
        _fail(f"Error: {error.strerror or error}{where}.", 1)
    except Exception as error:
        if os.environ.get("PLAR_DEBUG"):
            raise
        _fail(f"Error: {type(error).__name__}: {error} This is a fault of plar; PLAR_DEBUG=1 shows where.", 1)
    finally:
        gc.freeze()


def _fail(message: str, code: int) -> None:
    print(printable(message), file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
