"""The options of the commands, each said once; a command names the groups that it takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, get_type_hints

import typer

from plar.cli.completion import column, columns, words

__all__ = ["Computing", "Epsilon", "Json", "LongRun", "MemoryLimit", "TableOptions", "Telling", "flat"]

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON; 'plar schema' describes it.")]
MemoryLimit = Annotated[
    str | None, typer.Option(metavar="SIZE", help="Give up, rather than take more memory than this, e.g. 2GB.")
]
Epsilon = Annotated[float, typer.Option(help="The core's least inner significance.")]


@dataclass(frozen=True, slots=True)
class TableOptions:
    """Which table, and how it is read."""

    file: Annotated[
        str,
        typer.Argument(
            help="A table, a glob of tables, a folder of Parquet files, or - for stdin: .csv .tsv .parquet .arff …"
        ),
    ]
    decision: Annotated[
        list[str] | None,
        typer.Option(
            "--decision",
            "-d",
            metavar="NAME",
            help="Decision column: a name, or a position such as 0 or -1. Repeatable.",
            autocompletion=column,
        ),
    ] = None
    conditions: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES",
            help="Columns to choose from, as a,b,c. Repeatable. Default: all others.",
            autocompletion=columns,
        ),
    ] = None
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="Columns to leave out, as a,b,c. Repeatable.", autocompletion=columns),
    ] = None
    header: Annotated[bool, typer.Option(" /--no-header", help="The first line is data; columns are x0, x1, …")] = True
    separator: Annotated[str | None, typer.Option(help="Between fields of text; default: found out.")] = None
    decimal: Annotated[str, typer.Option(metavar="MARK", help="Before the fraction of numbers in text: . or ,")] = "."
    encoding: Annotated[str, typer.Option(metavar="NAME", help="How text is encoded, e.g. latin-1.")] = "utf-8"
    numeric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES",
            help="Columns whose text compares as numbers, so that 1 is 1.0, as a,b,c. Repeatable.",
            autocompletion=columns,
        ),
    ] = None
    format: Annotated[
        str | None,
        typer.Option(
            help="What stdin holds: csv, tsv, ndjson, parquet, arff, arrow. Default: csv.",
            autocompletion=words("csv", "tsv", "ndjson", "parquet", "arff", "arrow"),
        ),
    ] = None
    missing: Annotated[
        str,
        typer.Option(
            help="Missing values: 'value' of their own, 'drop' the rows, 'error'.",
            autocompletion=words("value", "drop", "error"),
        ),
    ] = "value"
    na: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="A further spelling of missing, e.g. '?'. Repeatable.")
    ] = None
    bins: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE",
            help="Numbers into bins: quantile:10, width:10 or mdlp; or by column, age=quantile:10 income=1000,5000. "
            "Repeatable.",
            autocompletion=words("mdlp", "quantile:10", "width:10"),
        ),
    ] = None
    weights: Annotated[
        str | None, typer.Option(help="Column of whole-number multiplicities.", autocompletion=column)
    ] = None


@dataclass(frozen=True, slots=True)
class Computing:
    """What is computed, and where."""

    measure: Annotated[
        str,
        typer.Option("--measure", "-m", help="PR, SCE, LCE or CCE.", autocompletion=words("PR", "SCE", "LCE", "CCE")),
    ] = "SCE"
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            "-e",
            help="Where to compute: auto, local, spark, cuda; see 'plar engines'.",
            autocompletion=words("auto", "local", "spark", "cuda"),
        ),
    ] = "auto"
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="Spark's master, e.g. spark://host:7077. Default: this machine.")
    ] = None
    conf: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A setting of Spark, e.g. spark.executor.memory=4g. Repeatable."),
    ] = None
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", help="Threads. Default: all cores.")] = None


@dataclass(frozen=True, slots=True)
class LongRun:
    """What a long run may take, and where it is kept."""

    checkpoint: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Keep every step in this file; if it is there, go on from it."),
    ] = None
    time_limit: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="End with the best result so far after 90s, 10m, 2h, …"),
    ] = None
    memory_limit: MemoryLimit = None


@dataclass(frozen=True, slots=True)
class Telling:
    """What is said on stderr beside the result."""

    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no notes; only warnings and errors.")] = (
        False
    )
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Tell every step, in a pipe too.")] = False

    @property
    def progress(self) -> bool | None:
        """Whether progress is shown; None: on a terminal."""
        return False if self.quiet else self.verbose or None


def flat(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the fields of its dataclass parameters as parameters, which is what typer reads."""
    groups: dict[str, Any] = {}
    parameters: list[Parameter] = []
    for name, parameter in signature(command, eval_str=True).parameters.items():
        if not is_dataclass(parameter.annotation):
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))
            continue
        groups[name] = parameter.annotation
        hints = get_type_hints(parameter.annotation, include_extras=True)
        for field in fields(parameter.annotation):
            default = Parameter.empty if field.default is MISSING else field.default
            parameters.append(
                Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=hints[field.name])
            )

    @wraps(command)
    def call(**given: Any) -> None:
        made = {name: kind(**{f.name: given.pop(f.name) for f in fields(kind)}) for name, kind in groups.items()}
        command(**made, **given)

    call.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return call
