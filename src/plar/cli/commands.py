"""What each command does: open the table, compute, print."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar, cast

import typer

import plar
from plar.cli.opening import (
    STREAM,
    Targets,
    check_targets,
    discard_stdout,
    input_files,
    session_of,
    shown,
    spooled,
    stdout_suffix,
    written,
)
from plar.cli.options import (
    FILE_HELP,
    CheckReading,
    ColumnList,
    Computing,
    Epsilon,
    Json,
    LongRun,
    MemoryLimit,
    Messages,
    OutputFormat,
    Place,
    ReductFile,
    RuleSearching,
    RuleTableOptions,
    Searching,
    SelectedWriting,
    Selecting,
    Smallest,
    StdinFormat,
    TableOptions,
    TargetTableOptions,
    Text,
    TextReading,
    TimeLimit,
    Writing,
    check_option,
    columns_option,
    library_columns,
    library_option,
    measure_option,
    search_options,
    shell_option,
)
from plar.coding.column_names import ShellColumn
from plar.errors import ParameterError, TableError, printable, saying_target, unknown_name
from plar.options import DEFAULT_ALPHA, CheckOptions, Columns, Heading, ListOptions, ReadOptions

if TYPE_CHECKING:
    from plar.session.session import Session

_WITH_JSON = "reduce, select, check, relevant, reducts, rules, approximations, core, theta or engines; or proof"
#: what `plar check` exits with if the result does not stand
DOES_NOT_STAND = 3
#: what the schema calls the answer of each command
_SCHEMAS = {
    "reduce": "reduct",
    "select": "selection",
    **{
        name: name
        for name in ("check", "relevant", "reducts", "rules", "approximations", "core", "theta", "engines", "proof")
    },
}
_ALPHA = "Take columns that beat chance at this level: how rarely an uninformative one may be taken."
_KNOWN = "The columns that are known (B). As a,b,c. Repeatable."
_GRANULES = "The Parquet file to write; - is stdout."
_SQL = "Print the rules as a query that predicts."
_APPROXIMATED = "The columns that are known (B); by default all. As a,b,c. Repeatable."
_CONTRADICTIONS = "Show so many contradictions, those with the most rows. Default: 10."
_MARKED = "Write the table with a column that says which rows are certain, and one of possible decisions; - is stdout."
_RULES_FILE = "Write the rules as JSON, for 'plar predict'; - is stdout."
_CHECKED = "What 'plar reduce --json' or 'plar select --json' printed, or a saved result."
_CHECK_FILE = "Write the check as JSON; - is stdout."
_PREDICTIONS = "Where the table with the predictions goes; its suffix says the format, and - is stdout."
_REPORT = "Write an HTML page that explains the result; - is stdout."
_PROOF = "Write the proof of --search smallest, for 'plar verify'; - is stdout."
_REDUCTS_REPORT = "Write an HTML page: which columns are in which reducts; - is stdout."
Result = TypeVar("Result", "plar.Reduct", "plar.Relevant", "plar.Selection")


def select(
    *,
    table: TargetTableOptions,
    selecting: Selecting,
    as_json: Json = False,
    report: Annotated[Text, shell_option(Heading.OUTPUT, _REPORT, metavar="FILE")] = None,
    writing: SelectedWriting,
    place: Place,
    long_run: LongRun,
    messages: Messages,
) -> None:
    """Select the columns that predict a target, the best first."""
    from plar.search.selection import SelectionSearch

    def find(session: Session) -> plar.Selection:
        return SelectionSearch(session, options).run()

    def write_pages(selection: plar.Selection) -> None:
        if report:
            with written(report, ".html", messages) as path:
                selection.report(path, command=_command())

    with saying_target():
        options = selecting.options()
        _find_and_print(find, table, place, messages, long_run, Targets(as_json, writing, report), write_pages)


def _command() -> str:
    """The command line, as the shell takes it."""
    return shlex.join(["plar", *sys.argv[1:]])


def reduce(
    *,
    table: TableOptions,
    computing: Computing,
    alpha: Annotated[float | None, library_option("alpha", metavar="LEVEL")] = None,
    searching: Searching,
    search: Annotated[str, library_option("search", metavar="KIND")] = "greedy",
    smallest: Smallest,
    as_json: Json = False,
    report: Annotated[Text, shell_option(Heading.OUTPUT, _REPORT, metavar="FILE")] = None,
    writing: Writing,
    proof: Annotated[Text, shell_option(Heading.OUTPUT, _PROOF, metavar="FILE")] = None,
    long_run: LongRun,
    messages: Messages,
) -> None:
    """Find columns that say as much about the decision as all of them: a reduct, and the core."""
    from plar.measures import as_measure
    from plar.reduct_search.find import find_reduct

    if proof and search != "smallest":
        raise ParameterError("--proof is for --search smallest; the greedy search proves no bound.")
    options = search_options(searching, smallest, search=search, alpha=alpha, equivalent=report is not None)

    def find(session: Session) -> plar.Reduct:
        return find_reduct(session, as_measure(computing.measure), options)

    def write_pages(reduct: plar.Reduct) -> None:
        if proof:
            assert reduct.proof is not None
            with written(proof, ".json", messages) as path:
                reduct.proof.save(path)
        if report:
            with written(report, ".html", messages) as path:
                reduct.report(path, command=_command())

    targets = Targets(as_json, writing, report, proof)
    _find_and_print(find, table, computing, messages, long_run, targets, write_pages)


def relevant(
    *,
    table: TableOptions,
    computing: Computing,
    alpha: Annotated[float, shell_option(Heading.SEARCH, _ALPHA, metavar="LEVEL")] = DEFAULT_ALPHA,
    searching: Searching,
    as_json: Json = False,
    report: Annotated[Text, shell_option(Heading.OUTPUT, _REPORT, metavar="FILE")] = None,
    writing: Writing,
    long_run: LongRun,
    messages: Messages,
) -> None:
    """Find all columns that say more about the decision than chance, in layers."""
    from plar.measures import as_measure
    from plar.search.relevance import Relevance

    options = search_options(searching, alpha=alpha)

    def find(session: Session) -> plar.Relevant:
        return Relevance(session, as_measure(computing.measure), options).run()

    def write_pages(relevant: plar.Relevant) -> None:
        if report:
            with written(report, ".html", messages) as path:
                relevant.report(path, command=_command())

    _find_and_print(find, table, computing, messages, long_run, Targets(as_json, writing, report), write_pages)


def reducts(
    *,
    table: TableOptions,
    computing: Computing,
    limit: Annotated[int, library_option("limit", metavar="N")] = 1_000_000,
    max_size: Annotated[int | None, library_option("max_size", metavar="N")] = None,
    include: Annotated[ColumnList, library_columns("include")] = None,
    smallest: Smallest,
    as_json: Json = False,
    report: Annotated[Text, shell_option(Heading.OUTPUT, _REDUCTS_REPORT, metavar="FILE")] = None,
    time_limit: TimeLimit = None,
    memory_limit: MemoryLimit = None,
    messages: Messages,
) -> None:
    """List all reducts of a table, the smallest first."""
    from plar.measures import as_measure
    from plar.reduct_search.all_reducts import AllReducts

    check_targets(table, computing, Targets(as_json, Writing(), report))
    options = search_options(Searching(include=include), smallest, search="smallest")
    limits = LongRun(time_limit=time_limit, memory_limit=memory_limit)
    interrupted = False
    with session_of(table, computing, limits) as session, shown(session, messages):
        try:
            listed = AllReducts(session, as_measure(computing.measure), options, ListOptions(limit, max_size)).run()
        except plar.Interrupted as stop:
            listed = stop.result
            interrupted = True
    for line in listed.json_lines() if as_json else [str(listed)]:
        print(line, file=sys.stderr if report == STREAM else sys.stdout)
    if interrupted:
        raise KeyboardInterrupt
    if report:
        sys.stdout.flush()
        with written(report, ".html", messages) as path:
            listed.report(path)


def verify(
    proof: Annotated[str, typer.Argument(metavar="PROOF", help="What 'plar reduce --search smallest --proof' wrote.")],
    table: TableOptions,
    computing: Computing,
    messages: Messages,
    measure: Annotated[
        Text, measure_option("Accept only a proof of this measure: PR, SCE, LCE or CCE. Default: any.")
    ] = None,
    memory_limit: MemoryLimit = None,
) -> None:
    """Check the proof of a smallest reduct against its table; exit 0 if every line of it holds."""
    from plar.verification.checker import as_for_proof, verify_in

    opened_proof = plar.Proof.open(proof)
    if measure is not None and measure.upper() != opened_proof.measure:
        raise ParameterError(
            f"The proof is of the measure {opened_proof.measure}, not of {measure!r}. Leave --measure out."
        )
    limits = LongRun(memory_limit=memory_limit)
    reading_of = partial(as_for_proof, opened_proof)
    with session_of(table, computing, limits, reading_of) as session, shown(session, messages):
        verify_in(session, opened_proof)
    if not messages.quiet:
        print(f"Verified: {_statement(opened_proof)}")


def _statement(proof: plar.Proof) -> str:
    """What a proof states, in full."""
    decision = ", ".join(map(printable, proof.decision))
    chosen = ", ".join(map(printable, proof.attributes))
    if proof.costs:
        cost = f"costs {proof.cost:,}"
        bound = f"costs less than {proof.lower_bound:,}"
    else:
        cost = f"has {proof.cost:,}"
        bound = f"has fewer than {proof.lower_bound:,}"
    limits = [f"with {printable(name)}" for name in proof.include]
    limits += [f"without {printable(name)}" for name in proof.exclude]
    which = f" {' and '.join(limits)}" if limits else ""
    considered = f"of the {len(proof.conditions):,} columns considered, the set {{{chosen}}}"
    return (
        f"{considered} says as much about {decision} as all of them by {proof.measure}, and {cost}; "
        f"no other set{which} that does so {bound}."
    )


def rules(
    *,
    table: RuleTableOptions,
    searching: RuleSearching,
    as_json: Json = False,
    sql: Annotated[bool, shell_option(Heading.OUTPUT, _SQL, "--sql")] = False,
    report: Annotated[Text, shell_option(Heading.OUTPUT, _REPORT, metavar="FILE")] = None,
    output: Annotated[Text, shell_option(Heading.OUTPUT, _RULES_FILE, "--output", "-o", metavar="FILE")] = None,
    place: Place,
    time_limit: TimeLimit = None,
    memory_limit: MemoryLimit = None,
    messages: Messages,
) -> None:
    """Find rules: what the values of the columns say about the decision."""
    from plar.rule_search.find import RuleSearch, reading_for_rules

    options = searching.options()
    attributes = _columns_known(searching.attributes, searching.reduct)
    if as_json and sql:
        raise ParameterError("--json and --sql would both write to stdout. Leave one out.")
    printed = "--sql" if sql else None
    check_targets(table, place, Targets(as_json, Writing(), report, result=output, printed=printed))

    def reading_of(_: str, reading: ReadOptions) -> ReadOptions:
        return reading_for_rules(reading, attributes)

    limits = LongRun(time_limit=time_limit, memory_limit=memory_limit)
    interrupted = False
    with session_of(table, place, limits, reading_of) as session, shown(session, messages):
        try:
            rules = RuleSearch(session, options, attributes).run()
        except plar.Interrupted as stop:
            rules = stop.result
            interrupted = True
    _print_text(_rules_text(rules, table, as_json=as_json, sql=sql), [report, output])
    if interrupted:
        raise KeyboardInterrupt
    if report:
        with written(report, ".html", messages) as path:
            rules.report(path, command=_command())
    if output:
        with written(output, ".json", messages) as path:
            rules.save(path)


def _rules_text(rules: plar.Rules, table: TableOptions, *, as_json: bool, sql: bool) -> str:
    """What is printed of rules."""
    if as_json:
        return json.dumps(rules.to_dict(), ensure_ascii=False)
    if sql:
        return rules.to_sql("t" if table.file == STREAM else Path(table.file).name.partition(".")[0] or "t")
    return f"{_source_of(table)}: {rules}"


def approximations(
    *,
    table: TableOptions,
    attributes: Annotated[ColumnList, columns_option(Heading.COLUMNS, _APPROXIMATED, "--attributes", "-a")] = None,
    reduct: ReductFile = None,
    contradictions: Annotated[int | None, shell_option(Heading.OUTPUT, _CONTRADICTIONS, metavar="N")] = None,
    as_json: Json = False,
    output: Annotated[Text, shell_option(Heading.OUTPUT, _MARKED, "--output", "-o", metavar="FILE")] = None,
    output_format: OutputFormat = None,
    place: Place,
    memory_limit: MemoryLimit = None,
    messages: Messages,
) -> None:
    """Say of every decision which rows have it for certain, which possibly, and which rows contradict each other."""
    from plar.input.tables.source import sink_frame
    from plar.results.report.approximation_text import SHOWN_CONTRADICTIONS, summary
    from plar.search.approximation import approximations_in

    writing = Writing(output, output_format)
    _check_approximations(table, place, Targets(as_json, writing), contradictions)
    columns = _columns_known(attributes, reduct)
    limits = LongRun(memory_limit=memory_limit)
    with session_of(table, place, limits) as session:
        with shown(session, messages):
            if output == STREAM:
                session.table.check_selectable()
            elif output:
                session.table.check_output(output)
            result = approximations_in(session, columns)
        session.release()
        if as_json:
            text = json.dumps(result.to_dict(), ensure_ascii=False)
        else:
            n_shown = SHOWN_CONTRADICTIONS if contradictions is None else contradictions
            text = f"{_source_of(table)}: {summary(result, n_shown)}"
        _print_text(text, [output])
        if output:
            with written(output, stdout_suffix(writing), messages) as path, shown(session, messages):
                session.reporter.phase("mark", 0, 0)
                sink_frame(result.mark(session.table).lazy(), path)


def _columns_known(attributes: ColumnList, file: str | None) -> Columns | None:
    """Columns that are named, or those of a result in a file; None for neither."""
    from plar.results.chosen_columns import chosen_columns

    if not file:
        return attributes
    if attributes:
        raise ParameterError("--attributes and --reduct both name columns. Leave one out.")
    result = plar.load(file)
    if not isinstance(result, (plar.Reduct, plar.Relevant, plar.Selection)):
        raise TableError(f"{file!r} holds no chosen columns. Make it with plar reduce, select or relevant --json.")
    return chosen_columns(result)


def _check_approximations(table: TableOptions, place: Place, targets: Targets, contradictions: int | None) -> None:
    """Refuse what cannot be done, before any work."""
    if contradictions is not None and contradictions < 0:
        raise ParameterError(f"--contradictions is how many are shown, from 0 on. Got {contradictions}.")
    if contradictions is not None and targets.as_json:
        raise ParameterError("--contradictions is for the text; --json has the thousand largest. Leave one out.")
    if targets.writing.output and place.engine == "spark":
        raise TableError(
            "The marked table is written by this machine. Leave --engine spark or -o out; in Python, "
            "Approximations.mark marks a Spark DataFrame on its cluster."
        )
    check_targets(table, place, targets)


def check(
    *,
    result: Annotated[str, typer.Argument(metavar="RESULT", help=_CHECKED)],
    file: Annotated[str, typer.Argument(metavar="FILE", help=FILE_HELP)],
    seen: Annotated[Text, check_option("seen", "FILE")] = None,
    alpha: Annotated[float | None, check_option("alpha", "LEVEL")] = None,
    reading: CheckReading,
    format: StdinFormat = None,
    as_json: Json = False,
    report: Annotated[Text, shell_option(Heading.OUTPUT, _REPORT, metavar="FILE")] = None,
    output: Annotated[Text, shell_option(Heading.OUTPUT, _CHECK_FILE, "--output", "-o", metavar="FILE")] = None,
    place: Place,
    time_limit: TimeLimit = None,
    memory_limit: MemoryLimit = None,
    messages: Messages,
) -> None:
    """Check on new rows whether a reduct or a selection still stands; exit 0 if it does, 3 if not, 2 for bad input."""
    from plar.replication.find import check_in
    from plar.replication.subject import first_reading, subject_of

    table = TableOptions(file, format=format)
    check_targets(table, place, Targets(as_json, Writing(), report, result=output))
    subject = subject_of(result)
    given = reading.given()
    options = CheckOptions(alpha, seen)

    def reading_of(opened: str, _: ReadOptions) -> ReadOptions:
        return first_reading(subject, opened, ReadOptions(**given), given)

    limits = LongRun(time_limit=time_limit, memory_limit=memory_limit)
    with session_of(table, place, limits, reading_of) as session, shown(session, messages):
        checked = check_in(session, subject, options, given)
    text = json.dumps(checked.to_dict(), ensure_ascii=False) if as_json else f"{_source_of(table)}: {checked}"
    _print_text(text, [report, output])
    if report:
        with written(report, ".html", messages) as path:
            checked.report(path, command=_command())
    if output:
        with written(output, ".json", messages) as path:
            checked.save(path)
    if not checked.stands:
        raise typer.Exit(DOES_NOT_STAND)


def predict(
    *,
    rules: Annotated[str, typer.Argument(metavar="RULES", help="What 'plar rules -o' wrote.")],
    file: Annotated[str, typer.Argument(metavar="FILE", help=FILE_HELP)],
    reading: TextReading,
    format: StdinFormat = None,
    output: Annotated[str, shell_option(Heading.OUTPUT, _PREDICTIONS, "--output", "-o", metavar="FILE")] = STREAM,
    output_format: OutputFormat = None,
    messages: Messages,
) -> None:
    """Predict the decision of new rows by rules: writes the table with the prediction and its probability."""
    from plar.input.tables.source import check_output
    from plar.results.prediction import PredictedTable

    table = TableOptions(file, format=format)
    writing = Writing(output, output_format)
    check_targets(table, Place(), Targets(as_json=False, writing=writing))
    if output != STREAM:
        check_output(output, [Path(rules)])
    loaded = plar.load(rules)
    if not isinstance(loaded, plar.Rules):
        raise TableError(f"{rules!r} holds no rules. Make them with plar rules -o.")
    with messages.reporting() as reporter, spooled(table) as opened:
        reporter.phase("predict", 0, 0)
        predicted = PredictedTable(loaded, opened.file, reading.given())
        with written(output, stdout_suffix(writing), messages) as path:
            predicted.sink(path)
    if predicted.n_known and not messages.quiet:
        share = f"{100 * predicted.n_right / predicted.n_known:.1f} %"
        print(f"{predicted.n_right:,} of {predicted.n_known:,} rows are predicted right: {share}.", file=sys.stderr)


def _write_nothing(result: plar.Reduct | plar.Relevant | plar.Selection) -> None:
    """What a command without pages of its own writes."""


def _find_and_print(
    find: Callable[[Session], Result],
    table: TableOptions,
    place: Place,
    messages: Messages,
    long_run: LongRun,
    targets: Targets,
    write_pages: Callable[[Result], None] = _write_nothing,
) -> None:
    """Find a result, print it, write its pages, and the reduced table last, so that a full disk loses no result."""
    check_targets(table, place, targets, long_run.checkpoint)
    output = targets.writing.output
    interrupted = False
    with session_of(table, place, long_run) as session:
        with shown(session, messages):
            if output == STREAM:
                session.table.check_selectable()
            elif output:
                session.table.check_output(output)
            try:
                result = find(session)
            except plar.Interrupted as stop:
                result = stop.result
                interrupted = True
        session.release()
        _print_result(result, table, targets)
        if long_run.checkpoint and (interrupted or (long_run.time_limit and not result.complete)):
            file = printable(long_run.checkpoint)
            print(f"The steps are saved in {file}; run the same command again to continue.", file=sys.stderr)
        if interrupted:
            raise KeyboardInterrupt
        write_pages(result)
        if output:
            with written(output, stdout_suffix(targets.writing), messages) as path, shown(session, messages):
                session.reporter.phase("write", 0, 0)
                columns = result.columns if isinstance(result, plar.Selection) else result.attributes
                session.table.sink(columns, path, result.cuts if targets.writing.output_bins else {})


def _print_result(result: plar.Reduct | plar.Relevant | plar.Selection, table: TableOptions, targets: Targets) -> None:
    """Print a result."""
    text = f"{_source_of(table)}: {result}"
    if targets.as_json:
        text = json.dumps(result.to_dict(), ensure_ascii=False)
    _print_text(text, (targets.writing.output, targets.report, targets.proof))


def _source_of(table: TableOptions) -> str:
    return "standard input" if table.file == STREAM else printable(table.file)


def _print_text(text: str, others: Sequence[str | None]) -> None:
    """Print on stdout, or on stderr if something else is written there."""
    try:
        print(text, flush=True, file=sys.stderr if STREAM in others else sys.stdout)
    except BrokenPipeError:
        if not any(others):
            raise
        discard_stdout()  # the reader is gone, but what is to be written into files is still wanted


def core(
    table: TableOptions,
    computing: Computing,
    messages: Messages,
    epsilon: Epsilon = 0.0,
    memory_limit: MemoryLimit = None,
    as_json: Json = False,
) -> None:
    """Find the core: the columns that are in every reduct, one per line."""
    from plar.measures import as_measure
    from plar.search.core import CoreSearch

    options = search_options(Searching(epsilon=epsilon))
    limits = LongRun(memory_limit=memory_limit)
    with session_of(table, computing, limits) as session, shown(session, messages):
        names = CoreSearch(session, as_measure(computing.measure), options).run()
    if as_json:
        _print_json({"core": names, "measure": computing.measure.upper()})
        return
    for name in names:
        print(printable(name))
    if not names and not messages.quiet:
        print("The core is empty.", file=sys.stderr)


def theta(
    *,
    attributes: Annotated[list[ShellColumn], columns_option(Heading.COLUMNS, _KNOWN, "--attributes", "-a")],
    table: TableOptions,
    computing: Computing,
    as_json: Json = False,
    memory_limit: MemoryLimit = None,
    messages: Messages,
) -> None:
    """Compute Θ(D|B), the uncertainty left when only some columns are known."""
    from plar.api import theta_in
    from plar.measures import as_measure

    limits = LongRun(memory_limit=memory_limit)
    with session_of(table, computing, limits) as session, shown(session, messages):
        names = session.table.columns(attributes)
        value = theta_in(session, as_measure(computing.measure), names)
    if as_json:
        _print_json({"theta": value, "attributes": names, "measure": computing.measure.upper()})
    else:
        print(value)


def granulate(
    table: TableOptions,
    messages: Messages,
    output: Annotated[str, shell_option(Heading.OUTPUT, _GRANULES, "--output", "-o", metavar="FILE")],
    memory_limit: MemoryLimit = None,
) -> None:
    """Write the distinct rows with their counts; every command takes this file in place of the table."""
    from plar.input.tables.source import check_output

    if output != STREAM:
        if not output.lower().endswith(".parquet"):
            raise TableError(f"Distinct rows are written as Parquet. Got {output!r}; name it .parquet.")
        check_output(output, input_files(table.file))
    limits = LongRun(memory_limit=memory_limit)
    with written(output, ".parquet", messages) as path, session_of(table, limits=limits) as session:
        with shown(session, messages):
            granules = cast("plar.Granules", session.keep_granules())
            granules.save(path)
        if not messages.quiet:
            print(f"{granules.n_objects:,} rows, {len(granules):,} distinct.", file=sys.stderr)


def engines(as_json: Json = False) -> None:
    """List the engines, and why some cannot be used here."""
    from plar.engines import ENGINES, why_unavailable

    reason_of = {name: why_unavailable(name) for name in ENGINES}
    if as_json:
        _print_json(reason_of)
        return
    for name, reason in reason_of.items():
        print(f"{name:<6} {ENGINES[name]:<26} {'ready' if reason is None else reason}")


def schema(
    command: Annotated[
        str | None, typer.Argument(metavar="COMMAND", help=f"Whose --json: {_WITH_JSON}. Default: all results.")
    ] = None,
) -> None:
    """Print the JSON Schema of what --json prints."""
    from importlib.resources import files

    whole = json.loads(files("plar").joinpath("result.schema.json").read_text(encoding="utf-8"))
    if command is not None:
        if command not in _SCHEMAS:
            raise unknown_name("command", command, _SCHEMAS)
        whole = _part_of_schema(whole, _SCHEMAS[command])
    print(json.dumps(whole, ensure_ascii=False, indent=1))


def _part_of_schema(whole: Mapping[str, Any], name: str) -> dict[str, Any]:
    """One of the definitions as a schema of its own, with those that it refers to."""
    definitions = whole["$defs"]
    needed: dict[str, Any] = {}
    unread = [name]
    while unread:
        part = definitions[unread.pop()]
        for other in re.findall(r"#/\$defs/(\w+)", json.dumps(part)):
            if other not in needed:
                needed[other] = definitions[other]
                unread.append(other)
    return {"$schema": whole["$schema"], **definitions[name], **({"$defs": needed} if needed else {})}


class HelpWords(NamedTuple):
    """What help says of a command: a line in the list of all commands, and an example at the end of its own help."""

    summary: str
    example: str


#: every command, in the order of the help
COMMANDS: dict[Callable[..., None], HelpWords] = {
    select: HelpWords(
        "Select the columns that predict a target.",
        "plar select examples/passengers.csv -d survived",
    ),
    reduce: HelpWords(
        "Find columns that say as much as all of them: a reduct.",
        "plar reduce examples/passengers.csv -d survived",
    ),
    check: HelpWords(
        "Check on new rows whether a result still stands.",
        "plar check selected.json examples/passengers.csv",
    ),
    relevant: HelpWords(
        "Find all columns that say more than chance.",
        "plar relevant examples/passengers.csv -d survived",
    ),
    reducts: HelpWords(
        "List all reducts, the smallest first.",
        "plar reducts examples/passengers.csv -d survived",
    ),
    core: HelpWords(
        "Find the core: the columns that are in every reduct.",
        "plar core examples/passengers.csv -d survived",
    ),
    theta: HelpWords(
        "Compute the uncertainty left when some columns are known.",
        "plar theta examples/passengers.csv -d survived -a sex,class",
    ),
    approximations: HelpWords(
        "Say which rows are certain, and which contradict others.",
        "plar approximations examples/passengers.csv -d survived -a sex,class",
    ),
    rules: HelpWords(
        "Find rules: what the columns say about the decision.",
        "plar rules examples/passengers.csv -d survived",
    ),
    predict: HelpWords(
        "Predict new rows by rules.",
        "plar predict rules.json examples/passengers.csv -o predicted.csv",
    ),
    verify: HelpWords(
        "Check the proof of a smallest reduct.",
        "plar verify proof.json examples/passengers.csv",
    ),
    granulate: HelpWords(
        "Write the distinct rows with their counts.",
        "plar granulate examples/passengers.csv -d survived -o g.parquet",
    ),
    engines: HelpWords(
        "List the engines, and why some cannot be used here.",
        "plar engines",
    ),
    schema: HelpWords(
        "Print the JSON Schema of what --json prints.",
        "plar schema > result.schema.json",
    ),
}


def _print_json(answer: Mapping[str, object]) -> None:
    print(json.dumps(answer, ensure_ascii=False))
