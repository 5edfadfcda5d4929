"""The public functions: from any table to core, Θ, gains and reduct."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Unpack, cast

from plar.bins import Spec
from plar.coding.column_names import ColumnName
from plar.engines.base import Engine
from plar.errors import Given, NoDecision, ParameterError, TableError, saying_target
from plar.granules.granules import Granules
from plar.input.tables import DecisionTable, open_table
from plar.measures import Measure, as_measure
from plar.options import (
    DECILES,
    DEFAULT_ALPHA,
    CheckOptions,
    Columns,
    FormatKwargs,
    ReadingKwargs,
    ReadOptions,
    RuleOptions,
    RunOptions,
    SearchOptions,
    SelectOptions,
)
from plar.reduct_search.find import find_reduct
from plar.replication.find import check_in
from plar.replication.subject import first_reading, subject_of, without_columns
from plar.results.approximations import Approximations
from plar.results.check import Check
from plar.results.chosen_columns import chosen_columns
from plar.results.reduct import Reduct
from plar.results.relevant import Relevant
from plar.results.rules import Rules
from plar.results.selection import Selection
from plar.rule_search.find import RuleSearch, reading_for_rules
from plar.search.approximation import approximations_in
from plar.search.core import CoreSearch
from plar.search.relevance import Relevance
from plar.search.selection import SelectionSearch
from plar.session.progress import reporting
from plar.session.reporter import OnStep, Progress
from plar.session.session import Session

__all__ = [
    "approximations",
    "check",
    "core",
    "granulate",
    "read_table",
    "reduce",
    "relevant",
    "rules",
    "select",
    "significance",
    "theta",
]


def reduce(
    data: Any,
    decision: ColumnName | Sequence[ColumnName] | None = None,
    y: Any = None,
    *,
    conditions: Sequence[ColumnName] | None = None,
    drop: Columns = (),
    header: bool = True,
    separator: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    numeric: Columns = (),
    na: str | float | Iterable[str | float] | None = None,
    missing: str = "value",
    missing_decision: str = "value",
    weights: ColumnName | None = None,
    bins: Spec | None = None,
    decision_bins: str | Sequence[float] | None = None,
    measure: str | Measure = "SCE",
    engine: str | Engine = "auto",
    include: Columns = (),
    epsilon: float = 0.0,
    tolerance: float = 0.0,
    max_attributes: int | None = None,
    minimal: bool = False,
    alpha: float | None = None,
    start: str | None = None,
    search: str = "greedy",
    costs: Mapping[ColumnName, int] | None = None,
    exclude: Columns = (),
    equivalent: bool = False,
    n_jobs: int | None = None,
    memory_limit: int | str | None = None,
    time_limit: float | str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    verbose: bool = False,
    progress: Progress | None = None,
    on_step: OnStep | None = None,
) -> Reduct:
    """Select the columns that keep all information about the decision: the core and a reduct of a table.

    Parameters
    ----------
    data : path, glob, DataFrame (also Spark's), Arrow table, 2-D array, mapping of columns, DecisionTable or Granules
        Files: .csv .tsv .txt (also .gz .zst), .parquet .arrow .feather .ndjson .json .xlsx .arff and KEEL's .dat.
    decision : str, int or list of them, optional
        The decision (target) column by name or position, or by the tuple that a MultiIndex of pandas labels
        it with, as all columns; several are taken together.
    y : (n,) array_like, optional
        The decision beside the data, in place of `decision`.
    conditions : list of str or int, optional
        The columns to choose from; by default all others, in table order. Ties, core and reports follow their
        order.
    drop : str, int or list of them
        Columns to leave out.
    header : bool
        Whether text files begin with a line of names; without, columns are x0, x1, ….
    separator : str, optional
        The character between fields of text; by default what the first line shows.
    decimal : {".", ","}
        The decimal mark of numbers in text.
    encoding : str
        The encoding of text files, as Python names it.
    numeric : str, int or list of them
        Columns of text to compare as numbers, so that 1, 1.0 and 01 are one value.
    na : str, number or list of them, optional
        What else means missing, for example "?" or -999. A number means that number however it is written or
        stored: -999, -999.0, -9.99e2. The usual spellings mean missing in any case: an empty text, "NA",
        "N/A", "n/a", "NaN", "nan", "None", "NULL", "null", "<NA>" and the others that pandas knows. With
        ``na=()`` no spelling does: only None, NaN and null, and in text files an empty field.
    missing : {"value", "drop", "error"}
        Missing is a value of its own, or rows with missing values are dropped, or they are an error.
    missing_decision : {"value", "drop", "error"}
        The same for rows without a decision, where `missing` is not stricter. As a value they are a class of
        their own, with a warning.
    weights : str or int, optional
        Column of whole numbers: how often each row counts; 0 drops it.
    bins : "auto", "quantile:k", "width:k", "mdlp" or mapping, optional
        Cut numbers into bins: at the quartiles where there are more than 12 different ones ("auto"), k bins of
        equally many rows, k bins of equal width, or as many as separate the decision (MDLP, Fayyad and Irani).
        A mapping names columns, each with one of these or with a list of cut points; otherwise all columns of
        numbers are cut, in text those with nothing but numbers. Default: every number is a value of its own.
    decision_bins : "quantile:k", "width:k" or list of cut points, optional
        Cut a decision of numbers into classes, as `bins` cuts columns.
    measure : {"SCE", "PR", "LCE", "CCE"} or Measure
        What is preserved: SCE Shannon's conditional entropy, PR the positive region, LCE Liang's and
        CCE the combination conditional entropy.
    engine : {"auto", "local", "spark", "cuda"} or Engine
        Where to compute; "auto" is Spark for a Spark DataFrame, otherwise this machine. The result is the same.
    include : list of str or int
        Columns to always include.
    epsilon : float
        The core holds the columns whose loss would raise Θ by more than this (their inner significance).
    tolerance : float
        Stop when Θ(D|R) − Θ(D|C) is at most this.
    max_attributes : int, optional
        Stop at this many columns. If the core is larger, the part with the largest gains is taken.
    minimal : bool
        At the end, remove columns that can go without a loss, one by one, the last first. `include` stays.
    alpha : float, optional
        Take only columns that beat chance at this level, 0.05 for example: each candidate is tested against
        shuffled decisions among the rows that the chosen columns do not separate, and its p-value is
        multiplied by the number of candidates. Of those that beat chance, the one with the largest gain is
        taken; among ties, the first in the table. The search stops when no candidate beats chance.
    start : {"core", "empty"}, optional
        What the search starts with, beside `include`: by default the core; with `alpha` nothing, because the
        core is not tested against chance.
    search : {"greedy", "smallest"}
        "smallest" finds a reduct with the fewest columns, or of least cost, and proves it: see
        `Reduct.proof`. It takes no `epsilon`, `tolerance`, `max_attributes`, `minimal`, `alpha` or `start`.
    costs : mapping of names to whole numbers from 1 to 1,000,000, optional
        What columns cost, with ``search="smallest"``; the others cost 1. Among the cheapest reducts, the one
        with the fewest columns is chosen, then the first by position; after a time limit it may be another
        one.
    exclude : list of str or int
        Columns to never include, with ``search="smallest"``. They stay in the table: what is
        preserved is the information that all columns have about the decision.
    equivalent : bool
        Also find the columns that carry the same information, for `Reduct.equivalent` and the report.
    n_jobs : int, optional
        Threads of this machine; by default, or with -1, all cores. Polars, which reads typed files, has its
        own. The engine "spark" takes no number: its session has cores.
    memory_limit : int or str, optional
        The most memory that this process may use, in bytes or as "2GB"; by default what the machine has.
        Rather than exceed it, the call raises plar.MemoryLimitExceeded.
    time_limit : float or str, optional
        Seconds, or "90s", "10m", "2h". After that the search stops, though not before the core is found, with
        the best result so far, which is not `complete`; its certificate takes some more time.
    checkpoint : path, optional
        A file to save the core and every step in. If it exists, the search continues from it, on any engine, to the
        same result; a file of other data or options is refused.
    verbose : bool
        Show progress on stderr: a live line on a terminal, and a line for everything done.
    progress : function of (phase, done, total), optional
        Phases are read, granulate (total: bytes of the files), core (columns), search (steps, rows undecided) and
        certificate; resume (steps) if a checkpoint had some.
    on_step : function of a Step, optional
        Called after every greedy step, except those that a checkpoint had.

    Raises
    ------
    Interrupted
        On Ctrl-C after the core: a KeyboardInterrupt with the result so far as its `result`.

    Examples
    --------
    >>> import plar
    >>> table = {"outlook": ["sun", "sun", "rain", "rain"], "wind": [0, 1, 0, 1], "play": ["yes", "yes", "yes", "no"]}
    >>> r = plar.reduce(table, decision="play")
    >>> r.core, r.attributes, r.theta
    (('outlook', 'wind'), ('outlook', 'wind'), 0.0)

    References
    ----------
    J. Zhang, T. Li, Y. Pan: Parallel Large-Scale Attribute Reduction on Cloud Systems, algorithm PLAR.
    """
    read = ReadOptions(
        decision=decision,
        y=y,
        conditions=conditions,
        drop=drop,
        header=header,
        separator=separator,
        decimal=decimal,
        encoding=encoding,
        numeric=numeric,
        na=na,
        missing=missing,
        missing_decision=missing_decision,
        weights=weights,
        bins=bins,
        decision_bins=decision_bins,
    )
    options = SearchOptions(
        include=include,
        epsilon=epsilon,
        tolerance=tolerance,
        max_attributes=max_attributes,
        minimal=minimal,
        alpha=alpha,
        start=start,
        search=search,
        costs=costs,
        exclude=exclude,
        equivalent=equivalent,
    )
    run = RunOptions(
        engine=engine, n_jobs=n_jobs, memory_limit=memory_limit, time_limit=time_limit, checkpoint=checkpoint
    )
    chosen_measure = as_measure(measure)
    with reporting(verbose, progress, on_step) as reporter, Session(data, read, run, reporter) as session:
        return find_reduct(session, chosen_measure, options)


def relevant(
    data: Any,
    decision: ColumnName | Sequence[ColumnName] | None = None,
    y: Any = None,
    *,
    alpha: float = DEFAULT_ALPHA,
    measure: str | Measure = "SCE",
    include: Columns = (),
    epsilon: float = 0.0,
    tolerance: float = 0.0,
    max_attributes: int | None = None,
    minimal: bool = False,
    start: str | None = None,
    equivalent: bool = False,
    engine: str | Engine = "auto",
    n_jobs: int | None = None,
    memory_limit: int | str | None = None,
    time_limit: float | str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    verbose: bool = False,
    progress: Progress | None = None,
    on_step: OnStep | None = None,
    **reading: Unpack[ReadingKwargs],
) -> Relevant:
    """Find all columns that beat chance; parameters are those of `reduce`.

    `plar.reduce` with `alpha` leaves out what another column already says. Here the search is repeated
    without the columns found before, until nothing beats chance: first the needed columns, then their
    substitutes. Columns that are informative only together are not found, since each alone looks like chance.

    `include` and `start` apply to the first layer; `max_attributes`, `tolerance` and `minimal` to each of them. The
    checkpoint keeps all layers. On Ctrl-C, the `result` of the exception is a Relevant of the layers found.

    Examples
    --------
    >>> import plar
    >>> bits = [[i >> j & 1 for i in range(256)] for j in range(4)]
    >>> informative = plar.relevant({"a": bits[0], "copy": bits[0], "noise": bits[3], "d": bits[0]}, "d")
    >>> [layer.attributes for layer in informative.layers], informative.rejected
    ([('a',), ('copy',)], {'noise': 1.0})
    """
    read = ReadOptions.of(relevant, decision, y, _without_smallest(reading))
    options = SearchOptions(
        include=include,
        epsilon=epsilon,
        tolerance=tolerance,
        max_attributes=max_attributes,
        minimal=minimal,
        alpha=alpha,
        start=start,
        equivalent=equivalent,
    )
    run = RunOptions(
        engine=engine, n_jobs=n_jobs, memory_limit=memory_limit, time_limit=time_limit, checkpoint=checkpoint
    )
    chosen_measure = as_measure(measure)
    with reporting(verbose, progress, on_step) as reporter, Session(data, read, run, reporter) as session:
        return Relevance(session, chosen_measure, options).run()


def select(
    data: Any,
    target: ColumnName | None = None,
    y: Any = None,
    *,
    alpha: float = DEFAULT_ALPHA,
    given: str = "each",
    max_columns: int | None = None,
    include: Columns = (),
    exclude: Columns = (),
    keep: Columns = (),
    target_type: str = "auto",
    target_bins: str | Sequence[float] | None = None,
    engine: str | Engine = "auto",
    n_jobs: int | None = None,
    memory_limit: int | str | None = None,
    time_limit: float | str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    verbose: bool = False,
    progress: Progress | None = None,
    on_step: OnStep | None = None,
    **reading: Unpack[ReadingKwargs],
) -> Selection:
    """Select the columns that predict the target, the best first.

    Columns that only number or name the rows are left out, numbers and dates of many values are compared in bins, and
    rows without a target are dropped; the `notes` of the result say so. There is nothing random in it, and no number of
    columns to choose.

    Parameters
    ----------
    data : any table that `reduce` takes
    target : str or int, optional
        The column to predict, by name or position.
    y : (n,) array_like, optional
        The target beside the data.
    alpha : float
        The level of the tests: a table of pure noise gives any column at all in at most this share of cases.
    given : {"each", "all"}
        "all" takes columns that say something beside all selected ones together, which ends early, when hardly two rows
        agree in these. "each" then goes on with columns that say something beside each single one that is selected.
    max_columns : int, optional
        Select at most this many columns.
    include, exclude : list of str or int
        Columns to always include, without a test, and to never select.
    keep : list of str or int
        Columns to consider although they seem only to number or name the rows.
    target_type : {"auto", "classes", "numbers"}
        Whether the target is classes, or numbers, whose ranks are predicted. By default text, categories and truth
        values are classes, and so are numbers if there are at most 20 of them (of more than ten
        at least two rows each on average), or if they are 0 … k-1 or 1 … k, with k up to 100 and at least 3 rows each.
    target_bins : "quantile:k", "width:k" or list of cut points, optional
        Cut a target of numbers into classes.
    engine, n_jobs, memory_limit, time_limit, checkpoint, verbose, progress
        As for `reduce`. The phase "select" tells how many columns are selected, and how many candidates are left.
    on_step : function of a SelectionStep, optional
        Called after every column.
    **reading
        The options of `reduce` that say how a table is read. Other defaults here: ``bins="auto"``, which None switches
        off, and ``missing_decision="drop"``, which is about the target; `target_bins` stands for `decision_bins`.

    Raises
    ------
    Interrupted
        On Ctrl-C: a KeyboardInterrupt with the selection so far as its `result`.

    Examples
    --------
    >>> import plar
    >>> bits = [[i >> j & 1 for i in range(256)] for j in range(3)]
    >>> plar.select({"a": bits[0], "copy": bits[0], "noise": bits[2], "t": bits[0]}, "t").columns
    ('a',)
    """
    if "decision_bins" in reading:
        raise TypeError("select() got an unexpected keyword argument 'decision_bins'. Did you mean 'target_bins'?")
    defaults: ReadingKwargs = {"bins": "auto", "missing_decision": "drop"}
    with saying_target(), reporting(verbose, progress, on_step) as reporter:
        if isinstance(data, DecisionTable):
            data = data.with_defaults({name: value for name, value in defaults.items() if name not in reading})
            defaults = {}
        read = ReadOptions.of(select, target, y, {**defaults, **reading, "decision_bins": target_bins})
        options = SelectOptions(
            alpha=alpha,
            given=given,
            max_columns=max_columns,
            include=include,
            exclude=exclude,
            keep=keep,
            target_type=target_type,
        )
        run = RunOptions(
            engine=engine, n_jobs=n_jobs, memory_limit=memory_limit, time_limit=time_limit, checkpoint=checkpoint
        )
        with Session(data, read, run, reporter) as session:
            return SelectionSearch(session, options).run()


def rules(
    data: Any,
    decision: ColumnName | None = None,
    y: Any = None,
    *,
    kind: str = "tested",
    alpha: float = DEFAULT_ALPHA,
    attributes: Columns | Reduct | Relevant | Selection | None = None,
    min_support: int = 1,
    max_conditions: int | None = None,
    engine: str | Engine = "auto",
    n_jobs: int | None = None,
    memory_limit: int | str | None = None,
    time_limit: float | str | None = None,
    verbose: bool = False,
    progress: Progress | None = None,
    **reading: Unpack[ReadingKwargs],
) -> Rules:
    r"""Find rules: what the values of the columns say about the decision.

    A rule says: if these conditions hold, then this decision. Values are compared with ``=``, numbers and dates that
    were cut into bins with ``<=`` and ``>``. The rules predict the decision of new rows, each can be read and checked
    by itself, and there is nothing random in them.

    Parameters
    ----------
    data : any table that `reduce` takes
    decision : str or int, optional
        The column to predict, by name or position.
    y : (n,) array_like, optional
        The decision beside the data.
    kind : {"tested", "certain", "possible"}
        Tested rules are each more often right than chance explains, and are what predicts best. Certain rules describe
        the lower approximation of each decision exactly, with no condition and no rule to spare: they are
        never wrong in this table. Possible rules do the same for the upper approximation.
    alpha : float
        The level of the test: a table of pure noise gives any rule at all in at most this share of cases.
    attributes : list of str or int, Reduct, Relevant or Selection, optional
        The columns that conditions may be about, or the result that chose them. By default all, but for tested rules
        those that only number or name the rows.
    min_support : int
        Only rules that match at least this many rows of their decision.
    max_conditions : int, optional
        Only rules of at most this many conditions; an interval, such as ``3 < a <= 5``, counts as two.
    engine, n_jobs, memory_limit, time_limit, verbose, progress
        As for `reduce`. Rules are found on this machine, in threads; the engine reads the table. After the time
        limit, the result has the rules so far, and is not `complete`. The phase "rules" tells how many there are.
    **reading
        The options of `reduce` that say how a table is read. Other defaults here: ``bins="auto"``, which cuts numbers
        and dates of more than 12 values at their deciles (``bins=None`` compares all values for
        equality), and ``missing_decision="drop"``. With ``missing="value"`` a condition can say that a
        value is missing.

    Raises
    ------
    Interrupted
        On Ctrl-C: a KeyboardInterrupt with the rules so far as its `result`.

    Examples
    --------
    >>> import plar
    >>> temperatures = [36 + i / 10 for i in range(40)]
    >>> table = {"temperature": temperatures, "flu": ["yes" if t > 37.95 else "no" for t in temperatures]}
    >>> print(*plar.rules(table, "flu"), sep="\n")
    if temperature ≤ 37.9 then no
    if temperature > 37.9 then yes

    References
    ----------
    J. Grzymala-Busse: LERS, a system for learning from examples based on rough sets, 1992 (certain and possible rules).
    """
    defaults: ReadingKwargs = {"bins": DECILES, "missing_decision": "drop"}
    columns = chosen_columns(attributes)
    if isinstance(data, DecisionTable):
        data = data.with_defaults({name: value for name, value in defaults.items() if name not in reading})
        read = ReadOptions.of(rules, decision, y, reading)
    else:
        read = reading_for_rules(ReadOptions.of(rules, decision, y, {**defaults, **reading}), columns)
    options = RuleOptions(kind=kind, alpha=alpha, min_support=min_support, max_conditions=max_conditions)
    run = RunOptions(engine=engine, n_jobs=n_jobs, memory_limit=memory_limit, time_limit=time_limit)
    with reporting(verbose, progress, None) as reporter, Session(data, read, run, reporter) as session:
        return RuleSearch(session, options, columns).run()


def approximations(
    data: Any,
    decision: ColumnName | Sequence[ColumnName] | None = None,
    y: Any = None,
    *,
    attributes: Columns | Reduct | Relevant | Selection | None = None,
    engine: str | Engine = "auto",
    n_jobs: int | None = None,
    memory_limit: int | str | None = None,
    verbose: bool = False,
    progress: Progress | None = None,
    **reading: Unpack[ReadingKwargs],
) -> Approximations:
    """Compute what some columns B say for certain about each decision: its lower and upper approximation.

    Rows that are equal in B are one class. The lower approximation of a decision are the classes in which all rows have
    it, the upper one those in which some row has it; the rows between are undecided. Classes of several decisions are
    contradictions of the table.

    Parameters
    ----------
    data : any table that `reduce` takes
    decision, y
        As for `reduce`; each combination of several decision columns is a decision.
    attributes : list of str or int, Reduct, Relevant or Selection, optional
        The columns that are known (B), or the result that chose them; by default all, and none if the list is empty.
    engine, n_jobs, memory_limit, verbose, progress
        As for `reduce`. The classes are compared where the engine keeps them; rows on a cluster stay there.
    **reading
        The options of `reduce` that say how a table is read.

    Examples
    --------
    >>> import plar
    >>> table = {"fever": ["no", "high", "high", "high"], "flu": ["no", "yes", "yes", "no"]}
    >>> a = plar.approximations(table, "flu")
    >>> a.quality, a.decisions["yes"].lower, a.decisions["yes"].upper, a.decisions["no"].lower
    (0.25, 0, 3, 1)
    >>> a.contradictions().rows()
    [('high', 3, 1, 2)]

    References
    ----------
    Z. Pawlak: Rough Sets, International Journal of Computer and Information Sciences 11, 1982.
    """
    read = ReadOptions.of(approximations, decision, y, reading)
    run = RunOptions(engine=engine, n_jobs=n_jobs, memory_limit=memory_limit)
    columns = chosen_columns(attributes)
    with reporting(verbose, progress, None) as reporter, Session(data, read, run, reporter) as session:
        return approximations_in(session, columns)


def check(
    result: Reduct | Selection | str | os.PathLike[str],
    data: Any,
    y: Any = None,
    *,
    seen: Any = None,
    alpha: float | None = None,
    engine: str | Engine = "auto",
    n_jobs: int | None = None,
    memory_limit: int | str | None = None,
    time_limit: float | str | None = None,
    verbose: bool = False,
    progress: Progress | None = None,
    **reading: Unpack[FormatKwargs],
) -> Check:
    """Check on new rows whether the columns of a reduct or a selection still do their work.

    A reduct stands if its columns are there and keep everything that all columns say about the decision in the new
    rows. If not, the result has two rows that they do not tell apart, and the fewest columns that mend it. A selection
    stands if every selected column beats chance on the new rows too, given the columns that it was tested with.

    Parameters
    ----------
    result : Reduct, Selection or the path of a saved one
    data : any table that `reduce` takes
        The new rows. They are read once: the columns of the result that are there, cut at its cut points.
    y : (n,) array_like, optional
        The decision beside the new rows, if they do not have it as a column.
    seen : table, granules or the path of either, optional
        The old rows, of which only the chosen columns and the decision are needed: with them, values and combinations
        of values that no old row has are counted. A file that `plar granulate` wrote of these columns is enough.
        Without it, a selection knows the values of its columns where they are at most 50.
    alpha : float, optional
        The level of the p-values; by default that of the result, else 0.05. Each column is asked one question, so
        nothing is multiplied: of columns that only seemed to say something, this share replicates.
    engine, n_jobs, memory_limit, verbose, progress
        As for `reduce`.
    time_limit : float or str, optional
        After that the search for the fewest columns stops with the fewest found; by default after a minute. Nothing
        else takes long.
    **reading
        The options of `reduce` that say how a table is read, except those that choose or cut columns; by default as for
        the result.

    Examples
    --------
    >>> import plar
    >>> january = {"sky": ["sun", "rain"] * 20, "day": [*range(40)], "play": ["yes", "no"] * 20}
    >>> february = {"sky": ["sun", "rain"] * 20, "day": [*range(40)], "play": ["yes", "no", "no", "yes"] * 10}
    >>> selected = plar.select(january, "play")
    >>> plar.check(selected, january).stands, plar.check(selected, february).stands
    (True, False)
    """
    read = ReadOptions.of(check, None, y, without_columns(reading, "plar.check"))
    options = CheckOptions(alpha, seen)
    run = RunOptions(engine=engine, n_jobs=n_jobs, memory_limit=memory_limit, time_limit=time_limit)
    subject = subject_of(result)
    first = first_reading(subject, data, read, reading)
    with reporting(verbose, progress, None) as reporter, Session(data, first, run, reporter) as session:
        return check_in(session, subject, options, reading)


def _without_smallest(reading: ReadingKwargs) -> ReadingKwargs:
    """The options without those of the search for the smallest reduct, which are refused unless they say nothing."""
    others: dict[str, object] = dict(reading)
    says_nothing = {
        "search": others.pop("search", "greedy") == "greedy",
        "costs": others.pop("costs", None) in (None, {}),
        "exclude": others.pop("exclude", None) in (None, (), []),
    }
    for name, is_unused in says_nothing.items():
        if not is_unused:
            raise ParameterError("plar.relevant always searches greedily, layer by layer. Leave ", Given(name), " out.")
    return cast(ReadingKwargs, others)


def core(
    data: Any,
    decision: ColumnName | Sequence[ColumnName] | None = None,
    y: Any = None,
    *,
    measure: str | Measure = "SCE",
    epsilon: float = 0.0,
    engine: str | Engine = "auto",
    n_jobs: int | None = None,
    memory_limit: int | str | None = None,
    verbose: bool = False,
    progress: Progress | None = None,
    **reading: Unpack[ReadingKwargs],
) -> tuple[str, ...]:
    """Find the core: the columns that are in every reduct. Parameters are those of `reduce`.

    Examples
    --------
    >>> import plar
    >>> plar.core({"a": [0, 0, 1], "b": [0, 1, 0], "c": [0, 1, 0], "d": [0, 1, 1]}, "d")
    ('a',)
    """
    read = ReadOptions.of(core, decision, y, reading)
    options = SearchOptions(epsilon=epsilon)
    run = RunOptions(engine=engine, n_jobs=n_jobs, memory_limit=memory_limit)
    chosen_measure = as_measure(measure)
    with reporting(verbose, progress, None) as reporter, Session(data, read, run, reporter) as session:
        return CoreSearch(session, chosen_measure, options).run()


def theta(
    data: Any,
    attributes: Columns,
    *,
    decision: ColumnName | Sequence[ColumnName] | None = None,
    y: Any = None,
    measure: str | Measure = "SCE",
    engine: str | Engine = "auto",
    n_jobs: int | None = None,
    memory_limit: int | str | None = None,
    verbose: bool = False,
    progress: Progress | None = None,
    **reading: Unpack[ReadingKwargs],
) -> float:
    """Compute Θ(D|B), the uncertainty left when only the columns B are known. Other parameters are those of `reduce`.

    Examples
    --------
    >>> import plar
    >>> plar.theta({"a": [0, 0, 1], "d": ["Y", "N", "N"]}, ["a"], decision="d", measure="PR")
    -0.3333333333333333
    """
    read = ReadOptions.of(theta, decision, y, reading)
    run = RunOptions(engine=engine, n_jobs=n_jobs, memory_limit=memory_limit)
    chosen_measure = as_measure(measure)
    with (
        _no_decision_explained(attributes),
        reporting(verbose, progress, None) as reporter,
        Session(data, read, run, reporter) as session,
    ):
        return theta_in(session, chosen_measure, attributes)


def theta_in(session: Session, measure: Measure, attributes: Columns) -> float:
    """Θ(D|B) of some columns of a session's table."""
    names = session.table.columns(attributes)
    session.tell_size()
    return session.engine.open(session.granules.coarsen(names), measure).value_all


def significance(
    data: Any,
    attributes: Columns = (),
    *,
    decision: ColumnName | Sequence[ColumnName] | None = None,
    y: Any = None,
    measure: str | Measure = "SCE",
    engine: str | Engine = "auto",
    n_jobs: int | None = None,
    memory_limit: int | str | None = None,
    verbose: bool = False,
    progress: Progress | None = None,
    **reading: Unpack[ReadingKwargs],
) -> dict[str, float]:
    """Compute the gain of every column relative to B: how much Θ would rise without it, or fall with it.

    These are the inner significance of the members of B and the outer significance of the rest. Other
    parameters are those of `reduce`.

    Examples
    --------
    >>> import plar
    >>> plar.significance({"a": [0, 0, 1], "b": [0, 1, 1], "d": ["Y", "N", "N"]}, ["a"], decision="d", measure="PR")
    {'a': 0.3333333333333333, 'b': 0.6666666666666666}
    """
    read = ReadOptions.of(significance, decision, y, reading)
    run = RunOptions(engine=engine, n_jobs=n_jobs, memory_limit=memory_limit)
    chosen_measure = as_measure(measure)
    with (
        _no_decision_explained(attributes),
        reporting(verbose, progress, None) as reporter,
        Session(data, read, run, reporter) as session,
    ):
        return gains_of(session, chosen_measure, attributes)


def gains_of(session: Session, measure: Measure, attributes: Columns) -> dict[str, float]:
    """The gain of every column of a session's table relative to some of them."""
    names = session.table.columns(attributes)
    granules = session.granules
    session.tell_size()
    members = granules.positions(names)
    others = [a for a in range(len(granules.conditions)) if a not in members]
    evaluation = session.engine.open(granules, measure)
    if members:
        evaluation.select(*members)
    gains = dict.fromkeys(range(len(granules.conditions)), 0)
    for a, theta_with in zip(others, evaluation.with_each(others), strict=True):
        gains[a] = evaluation.theta - theta_with
    if members:
        within = session.engine.open(granules.coarsen(names), measure)
        for a, without in zip(members, within.leave_one_out(), strict=True):
            gains[a] = 0 if without.equal else without.theta - within.theta_all
    significances = measure.significances(list(gains.values()), granules.n_objects)
    return dict(zip(granules.conditions, significances, strict=True))


@contextmanager
def _no_decision_explained(attributes: Any) -> Iterator[None]:
    """If no decision is given, say what a single name was taken as: other functions take the decision in its place."""
    try:
        yield
    except NoDecision:
        if not isinstance(attributes, str):
            raise
        raise NoDecision(
            f"No decision is given; {attributes!r} was taken as attributes=. If it is the decision, pass ",
            Given("decision", attributes),
            ".",
        ) from None


def granulate(
    data: Any,
    decision: ColumnName | Sequence[ColumnName] | None = None,
    y: Any = None,
    *,
    engine: str | Engine = "auto",
    n_jobs: int | None = None,
    memory_limit: int | str | None = None,
    verbose: bool = False,
    progress: Progress | None = None,
    **reading: Unpack[ReadingKwargs],
) -> Granules:
    """Turn a table into its distinct rows with their counts; parameters are those of `reduce`.

    Every function of plar takes the result in place of the table, so that four measures cost one reading.
    With the Spark engine they stay on the cluster, as SparkGranules, unless they are small, until their
    `unpersist` or the end of a ``with`` block. A session that ``engine="spark"`` had to start stops with the
    last of them; at once if they are small.

    Examples
    --------
    >>> import plar
    >>> g = plar.granulate({"a": [0, 0, 1], "d": ["Y", "Y", "N"]}, "d")
    >>> len(g), g.n_objects, g.counts.tolist()
    (2, 3, [2, 1])
    """
    read = ReadOptions.of(granulate, decision, y, reading)
    run = RunOptions(engine=engine, n_jobs=n_jobs, memory_limit=memory_limit)
    with reporting(verbose, progress, None) as reporter, Session(data, read, run, reporter) as session:
        return cast(Granules, session.keep_granules())


def read_table(
    path: str | os.PathLike[str],
    decision: ColumnName | Sequence[ColumnName] | None = None,
    y: Any = None,
    **reading: Unpack[ReadingKwargs],
) -> DecisionTable:
    r"""Open a file, a folder of files in one format, or all files of a glob, as one decision table.

    Parameters are those of `reduce`, which takes a path as well; open a table here to use it more than once.

    Examples
    --------
    >>> import plar, tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "t.csv")
    ...     _ = file.write_text("a,b,d\n1,x,0\n1,y,1\n")
    ...     plar.read_table(file, "d").conditions
    ('a', 'b')
    """
    if not isinstance(path, (str, os.PathLike)):
        raise ParameterError(f"read_table takes a path, got {type(path).__name__}. Pass tables to reduce as they are.")
    table = open_table(path, ReadOptions.of(read_table, decision, y, reading))
    if table.is_granulated:
        raise TableError(f"{os.fspath(path)!r} holds granules, not rows. Read it with plar.Granules.open.")
    return table
