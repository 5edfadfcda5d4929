"""The options of the commands, each defined once, and what Tab completes; a command names the groups it takes."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from plar.coding.column_names import ShellColumn
from plar.errors import ParameterError, TableError
from plar.files.write import WRITTEN
from plar.options import NO_NA, POLICIES, ReadOptions

Columns = list[ShellColumn] | None
Texts = list[str] | None
Text = str | None
#: what the reduced table can be written as
OUTPUTS = tuple(suffix[1:] for suffix in WRITTEN)
#: shells evaluate what is offered to them, and names come from the data
_HARMLESS = re.compile(r"[\w @%+=.,/-]+")


def columns(context: typer.Context, incomplete: str) -> list[str]:
    """Offer the columns of the file on the command line, also for the last of a list a,b,c."""
    head, comma, last = incomplete.rpartition(",")
    found = [head + comma + name for name in _names(context) if name.startswith(last) and _HARMLESS.fullmatch(name)]
    bash = os.environ.get("_PLAR_COMPLETE", "").endswith("_bash")
    # bash takes the words as they are; zsh and fish quote them
    return [word.replace(" ", "\\ ") for word in found] if bash else found


def _names(context: typer.Context) -> tuple[str, ...]:
    with suppress(Exception):  # whatever goes wrong, offer nothing
        from plar.files.find import format_of
        from plar.input.tables.table import open_source

        given = context.params
        # an option without its value, as here, keeps click from assigning the arguments
        file = Path(given["file"] or context.args[0])
        options = ReadOptions(header=given.get("header", True), separator=given.get("separator"))
        if "json" not in format_of(file, as_text=True):  # its columns are known only when all is read
            return open_source(file, options).names
    return ()


def of(help: str, *names: str, choices: tuple[str, ...] = (), **more: Any) -> Any:
    """An option, with values that Tab offers."""

    def offered(incomplete: str) -> list[str]:
        return [word for word in choices if word.lower().startswith(incomplete.lower())]

    return typer.Option(*names, help=help, autocompletion=offered if choices else None, **more)


def of_columns(help: str, *names: str, metavar: str = "NAMES") -> Any:
    """An option that names columns, which are looked up when the table is open."""
    return typer.Option(*names, help=help, metavar=metavar, autocompletion=columns, parser=ShellColumn)


def of_measures(help: str) -> Any:
    """An option that names a measure."""
    return of(help, "--measure", "-m", choices=("PR", "SCE", "LCE", "CCE"))


Json = Annotated[bool, of("Print the result as JSON; 'plar schema' describes it.", "--json")]
MemoryLimit = Annotated[Text, of("Stop with an error rather than use more memory than this, e.g. 2GB.", metavar="SIZE")]
TimeLimit = Annotated[Text, of("Stop with the best result so far after 90s, 10m, 2h, …", metavar="TIME")]
Epsilon = Annotated[float, of("The core holds columns whose loss would raise Θ by more than this.")]

_FILE = "A table, a glob of tables, a folder of tables, or - for stdin: .csv .tsv .parquet .arff …"
_DECISION = "Decision (target) column: a name, or a position such as 0 or -1. Repeatable."
_SEPARATOR = "Between fields of text: a character, or comma, semicolon, tab, pipe, blank. Default: detected."
_NUMERIC = "Columns whose text compares as numbers, so that 1 is 1.0, as a,b,c. Repeatable."
_FORMATS = ("csv", "tsv", "ndjson", "parquet", "arff", "arrow")
_BINS = "Cut numbers into bins: quantile:10, width:10 or mdlp; or by column, age=quantile:10 income=9,50. Repeatable."
_DECISION_BINS = "Cut a decision of numbers into classes: quantile:4, width:4, or cut points 1.5,3."
_ENGINES = ("auto", "local", "spark", "cuda")
_ENGINE = "Where to compute: auto, local, spark, cuda; see 'plar engines'."
_CONDITIONS = "Columns to choose from, as a,b,c. Repeatable. Default: all others."
_FORMAT = "What stdin holds: csv, tsv, ndjson, parquet, arff, arrow. Default: csv."
_START = "Begin with the core, or with --include alone: core, empty. Default: core; with --alpha: empty."
_COSTS = "What columns cost: a CSV file of names and whole numbers, or name=3. Repeatable. Default: 1 each."
_CHECKPOINT = "Save every step in this file; if it exists, continue from it."
_OUTPUT = "Write the reduced table; its suffix says the format, - is stdout."
_OUTPUT_BINS = "Write bin numbers in place of the numbers that --bins cut."
_OUTPUT_FORMAT = "What -o - writes: csv, tsv, ndjson, parquet, arrow. Default: csv."
_NA = "What else means missing, beside NA, NaN, null, …: '?' or -999. Repeatable. 'none' switches all of these off."
_MISSING = "Missing values: a 'value' of their own, 'drop' their rows, or an 'error'."
_MISSING_DECISION = "Rows without a decision: a class of their own ('value'), 'drop' them, or an 'error'."


@dataclass(frozen=True, slots=True)
class TableOptions:
    """Which table, and how it is read."""

    file: Annotated[str, typer.Argument(help=_FILE)]
    decision: Annotated[Columns, of_columns(_DECISION, "--decision", "--target", "-d", metavar="NAME")] = None
    conditions: Annotated[Columns, of_columns(_CONDITIONS)] = None
    drop: Annotated[Columns, of_columns("Columns to leave out, as a,b,c. Repeatable.")] = None
    header: Annotated[bool, of("The first line is data; columns are x0, x1, …", " /--no-header")] = True
    separator: Annotated[Text, of(_SEPARATOR)] = None
    decimal: Annotated[str, of("Decimal mark of numbers in text: . or ,", metavar="MARK")] = "."
    encoding: Annotated[str, of("Encoding of text, e.g. latin-1.", metavar="NAME")] = "utf-8"
    numeric: Annotated[Columns, of_columns(_NUMERIC)] = None
    format: Annotated[Text, of(_FORMAT, choices=_FORMATS)] = None
    missing: Annotated[str, of(_MISSING, choices=POLICIES)] = "value"
    missing_decision: Annotated[str, of(_MISSING_DECISION, choices=POLICIES)] = "value"
    na: Annotated[Texts, of(_NA, metavar="TEXT")] = None
    bins: Annotated[Texts, of(_BINS, metavar="RULE", choices=("mdlp", "quantile:10", "width:10"))] = None
    decision_bins: Annotated[Text, of(_DECISION_BINS, metavar="RULE", choices=("quantile:4", "width:4"))] = None
    weights: Annotated[ShellColumn | None, of_columns("Column of whole-number row counts.", metavar="NAME")] = None

    def reading(self) -> ReadOptions:
        """How the table is read."""
        given = {field.name: getattr(self, field.name) for field in fields(ReadOptions) if field.name != "y"}
        asked = {name: value for name, value in given.items() if value not in (None, [])}
        cut = None if self.decision_bins is None else _rule(self.decision_bins)
        return ReadOptions(**{**asked, "na": _na(self.na), "bins": _bins(self.bins), "decision_bins": cut})


@dataclass(frozen=True, slots=True)
class Computing:
    """What is computed, and where."""

    measure: Annotated[str, of_measures("Measure of uncertainty: PR, SCE, LCE or CCE.")] = "SCE"
    engine: Annotated[str, of(_ENGINE, "--engine", "-e", choices=_ENGINES)] = "auto"
    master: Annotated[Text, of("Spark's master, e.g. spark://host:7077. Default: this machine.", metavar="URL")] = None
    conf: Annotated[
        Texts, of("A setting of Spark, e.g. spark.executor.memory=4g. Repeatable.", metavar="KEY=VALUE")
    ] = None
    jobs: Annotated[int | None, of("Threads of this machine. Default: all cores.", "--jobs", "-j")] = None


@dataclass(frozen=True, slots=True)
class Searching:
    """Where the search begins and when it stops."""

    include: Annotated[Columns, of_columns("Columns that the reduct must hold, as a,b. Repeatable.")] = None
    epsilon: Epsilon = 0.0
    tolerance: Annotated[float, of("Stop when Θ is at most this far above that of all columns.")] = 0.0
    max_attributes: Annotated[int | None, of("Stop at this many columns.")] = None
    minimal: Annotated[bool, of("In the end, remove columns that are individually removable.", "--minimal")] = False
    start: Annotated[Text, of(_START, choices=("core", "empty"))] = None

    def options(self) -> dict[str, Any]:
        """As `plar.reduce` takes them."""
        return {**asdict(self), "include": self.include or ()}


@dataclass(frozen=True, slots=True)
class Costs:
    """What the smallest reducts must not hold, and what columns cost."""

    exclude: Annotated[Columns, of_columns("Columns that the reduct must not hold, as a,b. Repeatable.")] = None
    costs: Annotated[Texts, of(_COSTS, metavar="COSTS")] = None

    def options(self) -> dict[str, Any]:
        """As `plar.reduce` takes them."""
        return {"exclude": self.exclude or (), "costs": _costs(self.costs)}


@dataclass(frozen=True, slots=True)
class LongRun:
    """What a long run may use, and where it is saved."""

    checkpoint: Annotated[Text, of(_CHECKPOINT, metavar="FILE")] = None
    time_limit: TimeLimit = None
    memory_limit: MemoryLimit = None


@dataclass(frozen=True, slots=True)
class Messages:
    """What is printed on stderr beside the result."""

    quiet: Annotated[bool, of("No progress, no notes; only warnings and errors.", "--quiet", "-q")] = False
    verbose: Annotated[bool, of("Print every step, in a pipe too.", "--verbose", "-v")] = False

    def shown(self) -> AbstractContextManager[Any]:
        """Show progress: on a terminal, or with --verbose anywhere."""
        from plar.session.progress import shown

        return shown(False if self.quiet else self.verbose or None)


@dataclass(frozen=True, slots=True)
class Writing:
    """Where the reduced table is written, and as what."""

    output: Annotated[Text, of(_OUTPUT, "--output", "-o")] = None
    output_format: Annotated[Text, of(_OUTPUT_FORMAT, choices=OUTPUTS)] = None
    output_bins: Annotated[bool, of(_OUTPUT_BINS, "--output-bins")] = False


def flat(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the dataclass parameters of a command by their fields, which is what typer reads.

    A field for which the command has its own parameter keeps its default.
    """
    declared = signature(command, eval_str=True).parameters
    own_names = {name for name, parameter in declared.items() if not is_dataclass(parameter.annotation)}
    groups: dict[str, Any] = {}
    parameters: list[Parameter] = []
    for name, parameter in declared.items():
        kind = parameter.annotation
        if not is_dataclass(kind):
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))
            continue
        groups[name], hints = kind, get_type_hints(kind, include_extras=True)
        for one in fields(kind):
            if one.name in own_names:
                continue
            default = Parameter.empty if one.default is MISSING else one.default
            parameters.append(Parameter(one.name, Parameter.KEYWORD_ONLY, default=default, annotation=hints[one.name]))

    @wraps(command)
    def call(**given: Any) -> None:
        made = {
            name: kind(**{f.name: given.pop(f.name) for f in fields(kind) if f.name not in own_names})
            for name, kind in groups.items()
        }
        command(**made, **given)

    call.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return call


def _na(words: Texts) -> Texts:
    """What means missing; an empty list for nothing at all."""
    if not words or NO_NA not in words:
        return words or None
    if len(words) > 1:
        raise ParameterError(f"--na {NO_NA} says that no text means missing, so it goes alone. Got {words}.")
    return []


def _bins(rules: Texts) -> Any:
    """One rule for all columns, or a mapping: name=rule, name=cut,cut."""
    if not rules or (len(rules) == 1 and "=" not in rules[0]):
        return rules[0] if rules else None
    found: dict[ShellColumn, str | list[float]] = {}
    for rule in rules:
        name, equals, value = rule.rpartition("=")
        if not equals or not name:
            raise TableError(f"--bins takes one rule for all columns, or NAME=RULE for each. Got {rules}.")
        if name in found:
            raise TableError(f"--bins has two rules for {name!r}. Choose one.")
        found[ShellColumn(name)] = _rule(value)
    return found


def _costs(given: Texts) -> dict[ShellColumn, int] | None:
    """From name=3, or from a file of lines name,3."""
    found: dict[ShellColumn, int] = {}
    for text in given or ():
        name, equals, cost = text.rpartition("=")
        pairs = [[name, cost]] if equals else _read_costs(text)
        for pair in pairs:
            if len(pair) != 2 or not pair[1].strip().isdecimal():
                raise TableError(f"--costs takes a name and a whole number. Got {','.join(pair)!r} in {text!r}.")
            found[ShellColumn(pair[0].strip())] = int(pair[1])
    return found or None


def _read_costs(path: str) -> list[list[str]]:
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            lines = [line for line in csv.reader(file) if line]
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise TableError(f"Cannot read the costs {path!r}: {reason}. Give a CSV file, or name=3.") from None
    heading = lines and len(lines[0]) == 2 and lines[0][1].strip().isalpha()
    return lines[1:] if heading else lines


def _rule(text: str) -> str | list[float]:
    """A rule, or cut points: 1.5,3; a single whole number may be meant as a number of bins, and is refused later."""
    if text.strip().isdigit():
        return text
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        return text
