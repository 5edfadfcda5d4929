"""The options of the commands, each defined once, and what Tab completes; a command names the groups it takes."""

from __future__ import annotations

import csv
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_type_hints

import typer

from plar.coding.column_names import ShellColumn
from plar.errors import ParameterError, TableError
from plar.files.write import WRITTEN
from plar.options import (
    CHECK_OPTIONS,
    DEFAULT_ALPHA,
    NO_NA,
    OPTIONS,
    POLICIES,
    RULE_OPTIONS,
    SELECT_OPTIONS,
    FormatKwargs,
    Heading,
    ReadOptions,
    RuleOptions,
    SearchOptions,
    SelectOptions,
    TextKwargs,
    shell_flag,
)

if TYPE_CHECKING:
    from plar.session.reporter import Reporter

ColumnList = list[ShellColumn] | None
Texts = list[str] | None
Text = str | None
#: what the reduced table can be written as
OUTPUTS = tuple(suffix[1:] for suffix in WRITTEN)
#: how shells write bins=None
_NO_RULE = "none"
#: shells evaluate what is offered to them, and names come from the data
_HARMLESS = re.compile(r"[\w @%+=.,/-]+")


def columns(context: typer.Context, incomplete: str) -> list[str]:
    """Offer the columns of the file on the command line, also for the last of a list a,b,c."""
    head, comma, last = incomplete.rpartition(",")
    names = [name for name in _names(context) if name.startswith(last) and _HARMLESS.fullmatch(name)]
    words = [head + comma + name for name in names]
    if os.environ.get("_PLAR_COMPLETE", "").endswith("_bash"):
        # bash takes the words as they are; zsh and fish quote them
        return [word.replace(" ", "\\ ") for word in words]
    return words


def _names(context: typer.Context) -> tuple[str, ...]:
    with suppress(Exception):  # whatever goes wrong, offer nothing
        from plar.files.find import format_of
        from plar.input.tables.table import open_source

        given = context.params
        # an option without its value, as here, keeps click from assigning the arguments
        file = Path(given["file"] or context.args[0])
        options = ReadOptions(header=not given.get("no_header"), separator=given.get("separator"))
        if "json" not in format_of(file, as_text=True):  # its columns are known only when all is read
            return open_source(file, options).names
    return ()


def shell_option(
    heading: Heading | None, help: str, *names: str, choices: tuple[str, ...] = (), metavar: str | None = None
) -> Any:
    """An option of the shell alone, with values that Tab offers."""

    def matching_choices(incomplete: str) -> list[str]:
        return [word for word in choices if word.lower().startswith(incomplete.lower())]

    completion = matching_choices if choices else None
    return typer.Option(*names, help=help, metavar=metavar, autocompletion=completion, rich_help_panel=heading)


def library_option(name: str, more: str = "", metavar: str | None = None) -> Any:
    """An option of the library; `more`: what only the shell has to say."""
    declared = OPTIONS[name]
    help = f"{declared.help} {more}" if more else declared.help
    return shell_option(declared.heading, help, *declared.flags, choices=declared.choices, metavar=metavar)


def library_flag(name: str) -> Any:
    """An option of the library that takes no value."""
    declared = OPTIONS[name]
    return shell_option(declared.heading, declared.help, shell_flag(name))


def library_columns(name: str, more: str = "As a,b,c. Repeatable.", metavar: str = "NAMES") -> Any:
    """An option of the library that names columns, which are looked up when the table is open."""
    declared = OPTIONS[name]
    return columns_option(declared.heading, f"{declared.help} {more}", *declared.flags, metavar=metavar)


def select_option(name: str, metavar: str) -> Any:
    """An option of `plar.select`."""
    declared = SELECT_OPTIONS[name]
    return shell_option(declared.heading, declared.help, shell_flag(name), choices=declared.choices, metavar=metavar)


def select_columns_option(name: str) -> Any:
    """An option of `plar.select` that names columns."""
    declared = SELECT_OPTIONS[name]
    return columns_option(declared.heading, f"{declared.help} As a,b,c. Repeatable.", shell_flag(name))


def rule_option(name: str, metavar: str) -> Any:
    """An option of `plar.rules`."""
    declared = RULE_OPTIONS[name]
    return shell_option(declared.heading, declared.help, shell_flag(name), choices=declared.choices, metavar=metavar)


def check_option(name: str, metavar: str) -> Any:
    """An option of `plar.check`."""
    declared = CHECK_OPTIONS[name]
    return shell_option(declared.heading, declared.help, shell_flag(name), metavar=metavar)


def columns_option(heading: Heading | None, help: str, *names: str, metavar: str = "NAMES") -> Any:
    """An option that names columns, which are looked up when the table is open."""
    return typer.Option(
        *names, help=help, metavar=metavar, autocompletion=columns, parser=ShellColumn, rich_help_panel=heading
    )


def measure_option(help: str) -> Any:
    """An option that names a measure."""
    choices = ("PR", "SCE", "LCE", "CCE")
    return shell_option(Heading.SEARCH, help, "--measure", "-m", choices=choices, metavar="NAME")


Json = Annotated[bool, shell_option(Heading.OUTPUT, "Print the result as JSON; 'plar schema' describes it.", "--json")]
MemoryLimit = Annotated[Text, library_option("memory_limit", metavar="SIZE")]
TimeLimit = Annotated[Text, library_option("time_limit", metavar="TIME")]
Epsilon = Annotated[float, library_option("epsilon", metavar="X")]

FILE_HELP = "A table, a glob of tables, a folder of tables, or - for stdin: .csv .tsv .parquet .arff …"
_FORMATS = ("csv", "tsv", "ndjson", "json", "parquet", "arff", "arrow", "xlsx")
_FORMAT = f"What stdin holds: {', '.join(_FORMATS)}. Default: csv."
_NO_HEADER = "The first line is data; columns are x0, x1, …"
_BINS_BY_COLUMN = "Or by column: age=quantile:10, income=9,50. Repeatable."
_DECILES = "Here, auto cuts at deciles; 'none' cuts nothing."
_RULE_COLUMNS = "Columns that conditions may be about; by default all. As a,b,c. Repeatable."
_REDUCT = "The same columns as in a saved reduct, selection or list of relevant columns."
_NO_BINS = "'none' cuts nothing."
_AUTO = ("auto",)
_TARGET = "The column to predict: a name, or a position such as 0 or -1."
_TARGET_BINS = "Cut a target of numbers into classes: quantile:4, width:4, or cut points as 1.5,3."
_NO_TARGET = "Rows without a target: 'drop' them, a class of their own ('value'), or an 'error'."
_COSTS = "A CSV file of names and whole numbers, or name=3. Repeatable."
_MEASURE = "Measure of uncertainty: PR, SCE, LCE or CCE."
_MASTER = "Spark's master, e.g. spark://host:7077. Default: this machine."
_CONF = "A setting of Spark, e.g. spark.executor.memory=4g. Repeatable."
_QUIET = "Print nothing but the result, warnings and errors."
_OUTPUT = "Write the reduced table; its suffix says the format, - is stdout."
_SELECTED = "Write the selected columns and the target, uncut; the suffix says the format, - is stdout."
_OUTPUT_BINS = "Write bin numbers in place of the numbers that --bins cut."
_OUTPUT_FORMAT = "What -o - writes: csv, tsv, ndjson, parquet, arrow. Default: csv."


StdinFormat = Annotated[Text, shell_option(Heading.READING, _FORMAT, choices=_FORMATS, metavar="FORMAT")]
ReductFile = Annotated[Text, shell_option(Heading.COLUMNS, _REDUCT, "--reduct", metavar="FILE")]
OutputFormat = Annotated[Text, shell_option(Heading.OUTPUT, _OUTPUT_FORMAT, choices=OUTPUTS, metavar="FORMAT")]


@dataclass(frozen=True, slots=True)
class TableOptions:
    """Which table, and how it is read."""

    file: Annotated[str, typer.Argument(metavar="FILE", help=FILE_HELP)]
    decision: Annotated[ColumnList, library_columns("decision", "Repeatable.", metavar="NAME")] = None
    conditions: Annotated[ColumnList, library_columns("conditions")] = None
    drop: Annotated[ColumnList, library_columns("drop")] = None
    bins: Annotated[Texts, library_option("bins", _BINS_BY_COLUMN, metavar="RULE")] = None
    decision_bins: Annotated[Text, library_option("decision_bins", "As 1.5,3.", metavar="RULE")] = None
    missing: Annotated[str, library_option("missing", metavar="RULE")] = "value"
    missing_decision: Annotated[str, library_option("missing_decision", metavar="RULE")] = "value"
    na: Annotated[Texts, library_option("na", "Repeatable. 'none' switches all of these off.", metavar="TEXT")] = None
    weights: Annotated[ShellColumn | None, library_columns("weights", "", metavar="NAME")] = None
    no_header: Annotated[bool, shell_option(Heading.READING, _NO_HEADER, "--no-header")] = False
    separator: Annotated[Text, library_option("separator", metavar="MARK")] = None
    decimal: Annotated[str, library_option("decimal", metavar="MARK")] = "."
    encoding: Annotated[str, library_option("encoding", metavar="NAME")] = "utf-8"
    numeric: Annotated[ColumnList, library_columns("numeric")] = None
    format: StdinFormat = None

    def reading(self) -> ReadOptions:
        """How the table is read."""
        return ReadOptions(
            decision=self.decision or None,
            conditions=self.conditions or None,
            drop=self.drop or (),
            header=not self.no_header,
            separator=self.separator,
            decimal=self.decimal,
            encoding=self.encoding,
            numeric=self.numeric or (),
            na=_na(self.na),
            missing=self.missing,
            missing_decision=self.missing_decision,
            weights=self.weights,
            bins=_bins(self.bins),
            decision_bins=None if self.decision_bins is None else _rule(self.decision_bins),
        )


@dataclass(frozen=True, slots=True)
class TargetTableOptions(TableOptions):
    """The same for `plar select`: its words, and its defaults."""

    decision: Annotated[
        ColumnList, columns_option(Heading.COLUMNS, _TARGET, "--target", "--decision", "-d", metavar="NAME")
    ] = None
    bins: Annotated[Texts, library_option("bins", f"{_BINS_BY_COLUMN} {_NO_BINS}", metavar="RULE")] = _AUTO  # type: ignore[assignment]
    decision_bins: Annotated[Text, shell_option(Heading.READING, _TARGET_BINS, "--target-bins", metavar="RULE")] = None
    missing_decision: Annotated[
        str, shell_option(Heading.READING, _NO_TARGET, "--missing-decision", choices=POLICIES, metavar="RULE")
    ] = "drop"


@dataclass(frozen=True, slots=True)
class Selecting:
    """What is selected; see `plar.select`."""

    include: Annotated[ColumnList, select_columns_option("include")] = None
    exclude: Annotated[ColumnList, select_columns_option("exclude")] = None
    keep: Annotated[ColumnList, select_columns_option("keep")] = None
    alpha: Annotated[float, select_option("alpha", "LEVEL")] = DEFAULT_ALPHA
    max_columns: Annotated[int | None, select_option("max_columns", "N")] = None
    given: Annotated[str, select_option("given", "WHICH")] = "each"
    target_type: Annotated[str, select_option("target_type", "TYPE")] = "auto"

    def options(self) -> SelectOptions:
        """The same as the library takes it."""
        return SelectOptions(
            alpha=self.alpha,
            given=self.given,
            max_columns=self.max_columns,
            include=self.include or (),
            exclude=self.exclude or (),
            keep=self.keep or (),
            target_type=self.target_type,
        )


@dataclass(frozen=True, slots=True)
class RuleTableOptions(TableOptions):
    """The same for `plar rules`: its defaults."""

    bins: Annotated[Texts, library_option("bins", f"{_BINS_BY_COLUMN} {_DECILES}", metavar="RULE")] = _AUTO  # type: ignore[assignment]
    missing_decision: Annotated[str, library_option("missing_decision", metavar="RULE")] = "drop"


@dataclass(frozen=True, slots=True)
class TextReading:
    """How new rows are written, where that is not as for the result."""

    na: Annotated[Texts, library_option("na", "Repeatable. 'none' switches all of these off.", metavar="TEXT")] = None
    no_header: Annotated[bool, shell_option(Heading.READING, _NO_HEADER, "--no-header")] = False
    separator: Annotated[Text, library_option("separator", metavar="MARK")] = None
    decimal: Annotated[Text, library_option("decimal", metavar="MARK")] = None
    encoding: Annotated[Text, library_option("encoding", metavar="NAME")] = None

    def given(self) -> TextKwargs:
        """The options that are given, as the library takes them; the others are those of the result."""
        reading: TextKwargs = {}
        if self.na is not None:
            reading["na"] = _na(self.na)
        if self.no_header:
            reading["header"] = False
        if self.separator is not None:
            reading["separator"] = self.separator
        if self.decimal is not None:
            reading["decimal"] = self.decimal
        if self.encoding is not None:
            reading["encoding"] = self.encoding
        return reading


@dataclass(frozen=True, slots=True)
class CheckReading(TextReading):
    """How new rows are read, where that is not as for the result."""

    missing: Annotated[Text, library_option("missing", metavar="RULE")] = None
    missing_decision: Annotated[Text, library_option("missing_decision", metavar="RULE")] = None
    weights: Annotated[ShellColumn | None, library_columns("weights", "", metavar="NAME")] = None
    numeric: Annotated[ColumnList, library_columns("numeric")] = None

    def given(self) -> FormatKwargs:
        """The options that are given, as the library takes them; the others are those of the result."""
        reading = cast(FormatKwargs, TextReading.given(self))
        if self.missing is not None:
            reading["missing"] = self.missing
        if self.missing_decision is not None:
            reading["missing_decision"] = self.missing_decision
        if self.weights is not None:
            reading["weights"] = self.weights
        if self.numeric:
            reading["numeric"] = self.numeric
        return reading


@dataclass(frozen=True, slots=True)
class RuleSearching:
    """Which rules are looked for; see `plar.rules`."""

    attributes: Annotated[ColumnList, columns_option(Heading.COLUMNS, _RULE_COLUMNS, "--attributes", "-a")] = None
    reduct: ReductFile = None
    kind: Annotated[str, rule_option("kind", "KIND")] = "tested"
    alpha: Annotated[float, rule_option("alpha", "LEVEL")] = DEFAULT_ALPHA
    min_support: Annotated[int, rule_option("min_support", "N")] = 1
    max_conditions: Annotated[int | None, rule_option("max_conditions", "N")] = None

    def options(self) -> RuleOptions:
        """The same as the library takes it."""
        return RuleOptions(
            kind=self.kind, alpha=self.alpha, min_support=self.min_support, max_conditions=self.max_conditions
        )


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is computed."""

    engine: Annotated[str, library_option("engine", metavar="NAME")] = "auto"
    n_jobs: Annotated[int | None, library_option("n_jobs", metavar="N")] = None
    master: Annotated[Text, shell_option(Heading.COMPUTING, _MASTER, metavar="URL")] = None
    conf: Annotated[Texts, shell_option(Heading.COMPUTING, _CONF, metavar="KEY=VALUE")] = None


@dataclass(frozen=True, slots=True)
class Computing(Place):
    """What is computed, and where."""

    measure: Annotated[str, measure_option(_MEASURE)] = "SCE"


@dataclass(frozen=True, slots=True)
class Searching:
    """Where the search begins and when it stops."""

    include: Annotated[ColumnList, library_columns("include")] = None
    max_attributes: Annotated[int | None, library_option("max_attributes", metavar="N")] = None
    minimal: Annotated[bool, library_flag("minimal")] = False
    tolerance: Annotated[float, library_option("tolerance", metavar="X")] = 0.0
    epsilon: Epsilon = 0.0
    start: Annotated[Text, library_option("start", metavar="WHERE")] = None


@dataclass(frozen=True, slots=True)
class Smallest:
    """What the smallest reducts must not hold, and what columns cost."""

    exclude: Annotated[ColumnList, library_columns("exclude")] = None
    costs: Annotated[Texts, library_option("costs", _COSTS, metavar="COSTS")] = None


def search_options(
    searching: Searching,
    smallest: Smallest | None = None,
    *,
    search: str = "greedy",
    alpha: float | None = None,
    equivalent: bool = False,
) -> SearchOptions:
    """What is searched for, as the library takes it."""
    smallest = smallest or Smallest()
    return SearchOptions(
        include=searching.include or (),
        epsilon=searching.epsilon,
        tolerance=searching.tolerance,
        max_attributes=searching.max_attributes,
        minimal=searching.minimal,
        alpha=alpha,
        start=searching.start,
        search=search,
        costs=_costs(smallest.costs),
        exclude=smallest.exclude or (),
        equivalent=equivalent,
    )


@dataclass(frozen=True, slots=True)
class LongRun:
    """What a long run may use, and where it is saved."""

    time_limit: TimeLimit = None
    memory_limit: MemoryLimit = None
    checkpoint: Annotated[Text, library_option("checkpoint", metavar="FILE")] = None


@dataclass(frozen=True, slots=True)
class Messages:
    """What is printed on stderr beside the result."""

    quiet: Annotated[bool, shell_option(Heading.HELP, _QUIET, "--quiet", "-q")] = False
    verbose: Annotated[bool, shell_option(Heading.HELP, "Print every step, in a pipe too.", "--verbose", "-v")] = False

    @contextmanager
    def reporting(self) -> Iterator[Reporter]:
        """Show progress, on a terminal or with --verbose anywhere; else only that a search is resumed."""
        from plar.session.progress import Display, ResumeNote
        from plar.session.reporter import SILENT

        if self.quiet:
            yield SILENT
        elif self.verbose or sys.stderr.isatty():
            with Display(lines=self.verbose) as display:
                yield display
        else:
            yield ResumeNote()


@dataclass(frozen=True, slots=True)
class Writing:
    """Where the reduced table is written, and as what."""

    output: Annotated[Text, shell_option(Heading.OUTPUT, _OUTPUT, "--output", "-o", metavar="FILE")] = None
    output_format: OutputFormat = None
    output_bins: Annotated[bool, shell_option(Heading.OUTPUT, _OUTPUT_BINS, "--output-bins")] = False


@dataclass(frozen=True, slots=True)
class SelectedWriting(Writing):
    """The same for `plar select`."""

    output: Annotated[Text, shell_option(Heading.OUTPUT, _SELECTED, "--output", "-o", metavar="FILE")] = None


def expand_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the dataclass parameters of a command by their fields, which is what typer reads.

    A field for which the command has its own parameter keeps its default.
    """
    declared = signature(command, eval_str=True).parameters
    own_names = {name for name, parameter in declared.items() if not is_dataclass(parameter.annotation)}
    groups: dict[str, type[Any]] = {}
    parameters: list[Parameter] = []
    for name, parameter in declared.items():
        group = parameter.annotation
        if not (isinstance(group, type) and is_dataclass(group)):
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))
            continue
        groups[name] = group
        hints = get_type_hints(group, include_extras=True)
        for option in fields(group):
            if option.name in own_names:
                continue
            default = Parameter.empty if option.default is MISSING else option.default
            annotation = hints[option.name]
            parameters.append(Parameter(option.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation))

    @wraps(command)
    def call(**values: Any) -> None:
        arguments: dict[str, Any] = {}
        for name, group in groups.items():
            options = [option.name for option in fields(group) if option.name not in own_names]
            arguments[name] = group(**{option: values.pop(option) for option in options})
        command(**arguments, **values)

    call.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return call


def _na(words: Texts) -> Texts:
    """What means missing; an empty list for nothing at all."""
    if not words or NO_NA not in words:
        return words or None
    if len(words) > 1:
        raise ParameterError(f"--na {NO_NA} says that no text means missing, so it goes alone. Got {words}.")
    return []


def _bins(rules: Texts) -> str | dict[ShellColumn, str | list[float]] | None:
    """One rule for all columns, or a mapping: name=rule, name=cut,cut; none at all for 'none'."""
    if not rules or list(rules) == [_NO_RULE]:
        return None
    if len(rules) == 1 and "=" not in rules[0]:
        return rules[0]
    rule_of: dict[ShellColumn, str | list[float]] = {}
    for rule in rules:
        name, equals, value = rule.rpartition("=")
        if not equals or not name:
            raise TableError(f"--bins takes one rule for all columns, or NAME=RULE for each. Got {rules}.")
        if name in rule_of:
            raise TableError(f"--bins has two rules for {name!r}. Choose one.")
        rule_of[ShellColumn(name)] = _rule(value)
    return rule_of


def _costs(texts: Texts) -> dict[ShellColumn, int] | None:
    """From name=3, or from a file of lines name,3."""
    cost_of: dict[ShellColumn, int] = {}
    for text in texts or ():
        name, equals, cost = text.rpartition("=")
        pairs = [[name, cost]] if equals else _read_costs(text)
        for pair in pairs:
            if len(pair) != 2 or not pair[1].strip().isdecimal():
                raise TableError(f"--costs takes a name and a whole number. Got {','.join(pair)!r} in {text!r}.")
            column = ShellColumn(pair[0].strip())
            if column in cost_of:
                raise TableError(f"--costs has two costs for {str(column)!r}. Choose one.")
            cost_of[column] = int(pair[1])
    return cost_of or None


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
