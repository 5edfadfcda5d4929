"""What users call: from any table to core, Θ, significances and reduct."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from plar.bin_rules import Spec
from plar.columns import ColumnName as Column
from plar.engines import as_engine
from plar.engines.base import Engine
from plar.errors import ParameterError, TableError
from plar.granules import Granules
from plar.guards import warn_many_numbers
from plar.limits import as_bytes, memory_limited
from plar.measures import Measure, as_measure
from plar.options import ReadOptions, shows_reading
from plar.progress import followed
from plar.reduct import Reduct
from plar.run import granulated, opened, prepared, searching
from plar.search import OnStep, Progress, core_of
from plar.search_options import Options
from plar.tables import DecisionTable, open_table

__all__ = ["core", "granulate", "read_table", "reduce", "significance", "theta"]


def reduce(
    data: Any,
    decision: Column | Sequence[Column] | None = None,
    y: Any = None,
    *,
    conditions: Sequence[Column] | None = None,
    drop: Column | Iterable[Column] = (),
    header: bool = True,
    separator: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    numeric: Column | Iterable[Column] = (),
    na: str | Iterable[str] = (),
    missing: str = "value",
    weights: Column | None = None,
    bins: Spec | None = None,
    decision_bins: str | Sequence[float] | None = None,
    measure: str | Measure = "SCE",
    engine: str | Engine = "auto",
    include: Column | Iterable[Column] = (),
    epsilon: float = 0.0,
    tolerance: float = 0.0,
    max_attributes: int | None = None,
    minimal: bool = False,
    alpha: float | None = None,
    start: str | None = None,
    search: str = "greedy",
    costs: Mapping[Column, int] | None = None,
    exclude: Column | Iterable[Column] = (),
    equivalent: bool = False,
    n_jobs: int | None = None,
    memory_limit: int | str | None = None,
    time_limit: float | str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    verbose: bool = False,
    progress: Progress | None = None,
    on_step: OnStep | None = None,
) -> Reduct:
    """Find the core and a reduct of a decision table.

    Parameters
    ----------
    data : path, glob, DataFrame (also Spark's), Arrow table, 2-D array, mapping of columns, DecisionTable or Granules
        Files: .csv .tsv .txt (also .gz .zst), .parquet .arrow .feather .ndjson .json .xlsx .arff and KEEL's .dat.
    decision : str, int or list of them, optional
        The decision column by name or position; several are taken together.
    y : (n,) array_like, optional
        The decision beside the data, in place of `decision`.
    conditions : list of str or int, optional
        The columns to choose from; by default all others, in table order. Ties, core and reports follow their order.
    drop : str, int or list of them
        Columns to leave out.
    header : bool
        Whether text files begin with a line of names; without, columns are x0, x1, ….
    separator : str, optional
        The character between fields of text; by default what the first line shows.
    decimal : {".", ","}
        The mark before the fraction of a number in text.
    encoding : str
        How text files are encoded, as Python names it.
    numeric : str, int or list of them
        Columns whose text compares as the numbers that it writes, so that 1, 1.0 and 01 are one value.
    na : str or list of str
        Further spellings of missing, for example "?".
    missing : {"value", "drop", "error"}
        Missing is a value of its own, or rows with missing values are dropped, or they are an error.
    weights : str or int, optional
        Column of whole-number multiplicities; 0 drops the row.
    bins : "quantile:k", "width:k", "mdlp" or mapping, optional
        Numbers into bins: k bins of as many objects each, k bins of one width, or as many as tell the decision
        apart (Fayyad and Irani). A mapping names columns, each with one of these or with a list of cut points; else
        all conditions that hold numbers are cut; in text, those whose values are all written as numbers. Default:
        every number is a value of its own.
    decision_bins : "quantile:k", "width:k" or list of cut points, optional
        Cut a decision of numbers into classes, as `bins` does conditions.
    measure : {"SCE", "PR", "LCE", "CCE"} or Measure
        What is preserved: SCE Shannon's conditional entropy, PR the positive region, LCE Liang's and
        CCE the combination conditional entropy.
    engine : {"auto", "local", "spark", "cuda"} or Engine
        Where it is computed; "auto" is Spark for a Spark DataFrame, else this machine. The result does not depend
        on it.
    include : list of str or int
        Attributes that the reduct must hold.
    epsilon : float
        The core holds the attributes of larger inner significance than this.
    tolerance : float
        Stop when Θ(D|R) − Θ(D|C) is at most this.
    max_attributes : int, optional
        Stop at this many attributes. If the core is larger, its most significant part is taken.
    minimal : bool
        Try to remove each attribute in the end, the last first. `include` stays.
    alpha : float, optional
        Take only attributes that beat chance at this level, 0.05 for example: each candidate is tested against random
        decisions within the rows that the chosen attributes do not tell apart, and its p-value is multiplied by the
        number of candidates. The search ends when none is left that does.
    start : {"core", "empty"}, optional
        What the search begins with, beside `include`: by default the core, and with `alpha` nothing, because the core
        knows nothing of chance.
    search : {"greedy", "smallest"}
        "smallest" finds a reduct of fewest attributes, or of least cost, and proves it: see `Reduct.proof`. It takes
        no `epsilon`, `tolerance`, `max_attributes`, `minimal`, `alpha` or `start`.
    costs : mapping of names to whole numbers from 1 to 1,000,000, optional
        What attributes cost, with ``search="smallest"``; the others cost 1. Of several cheapest reducts it is the one
        of fewest attributes, then the first by their positions; after a time limit it may be another one.
    exclude : list of str or int
        Attributes that the reduct must not hold, with ``search="smallest"``. They stay in the table: what is preserved
        is what all columns know of the decision.
    equivalent : bool
        Also find the conditions that carry the same information, for `Reduct.equivalent` and the report.
    n_jobs : int, optional
        Threads of the local engine; by default all cores.
    memory_limit : int or str, optional
        The most memory that this process may hold, in bytes or as "2GB". Above it, or by default where the engine
        needs more than the machine has, it ends with a plar.MemoryLimitExceeded before the memory is taken.
    time_limit : float or str, optional
        Seconds, or "90s", "10m", "2h". When they are over, the search ends after the core with the best result so far,
        which is not `complete`; its certificate is made after that.
    checkpoint : path, optional
        A file that keeps the core and every step as it is found. If it is there, the search goes on from it, on any
        engine, and ends with the same result; one of other data or options is refused.
    verbose : bool
        Show on stderr what goes on: a live line on a terminal, and a line for everything done.
    progress : function of (phase, done, total), optional
        Phases are read, granulate (total: bytes of the files), core (attributes), search (steps, objects still mixed)
        and certificate; resume (steps) if a checkpoint had some.
    on_step : function of a Step, optional
        Called after every greedy step, but for those that a checkpoint had.

    Raises
    ------
    Interrupted
        On Ctrl-C after the core: a KeyboardInterrupt with the result so far as its `reduct`.

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
    with searching(locals()) as prepared_search:
        return prepared_search.find(prepared_search.ready.granules, prepared_search.options)


@shows_reading
def core(
    data: Any,
    decision: Column | Sequence[Column] | None = None,
    y: Any = None,
    *,
    measure: str | Measure = "SCE",
    engine: str | Engine = "auto",
    epsilon: float = 0.0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    **reading: Any,
) -> tuple[str, ...]:
    """Find the attributes that no reduct can do without; parameters as of `reduce`.

    Examples
    --------
    >>> import plar
    >>> plar.core({"a": [0, 0, 1], "b": [0, 1, 0], "c": [0, 1, 0], "d": [0, 1, 1]}, "d")
    ('a',)
    """
    read, chosen_measure = ReadOptions(decision, y, **reading), as_measure(measure)
    options = Options(epsilon=epsilon)
    with (
        followed(False, progress, None) as (tell, _, display),
        prepared(data, read, engine, n_jobs, progress=tell) as ready,
    ):
        names = ready.granules.conditions
        warn_many_numbers(ready.engine, ready.table, ready.granules)
        if tell:
            tell("core", 0, len(names))
        watch = ready.engine.watch or (display.watch if display else None)
        search = ready.engine.open(ready.granules, chosen_measure, watch)
        n = ready.granules.n_objects
        found = core_of(search.without_each(), search.theta_all, chosen_measure, n, options.epsilon)
        return tuple(names[a] for a in found)


@shows_reading
def theta(
    data: Any,
    attributes: Column | Iterable[Column],
    *,
    decision: Column | Sequence[Column] | None = None,
    y: Any = None,
    measure: str | Measure = "SCE",
    engine: str | Engine = "auto",
    n_jobs: int | None = None,
    progress: Progress | None = None,
    **reading: Any,
) -> float:
    """Compute Θ(D|B) of a subset B of the attributes; other parameters as of `reduce`.

    Examples
    --------
    >>> import plar
    >>> plar.theta({"a": [0, 0, 1], "d": ["Y", "N", "N"]}, ["a"], decision="d", measure="PR")
    -0.3333333333333333
    """
    read, chosen_measure = ReadOptions(decision, y, **reading), as_measure(measure)
    with prepared(data, read, engine, n_jobs, attributes=attributes, progress=progress) as ready:
        return ready.engine.open(ready.granules.coarsen(ready.attributes), chosen_measure).value_all


@shows_reading
def significance(
    data: Any,
    attributes: Column | Iterable[Column] = (),
    *,
    decision: Column | Sequence[Column] | None = None,
    y: Any = None,
    measure: str | Measure = "SCE",
    engine: str | Engine = "auto",
    n_jobs: int | None = None,
    **reading: Any,
) -> dict[str, float]:
    """Compute the significance of every attribute relative to B: inner for its members, outer for the rest.

    Other parameters as of `reduce`.

    Examples
    --------
    >>> import plar
    >>> plar.significance({"a": [0, 0, 1], "b": [0, 1, 1], "d": ["Y", "N", "N"]}, ["a"], decision="d", measure="PR")
    {'a': 0.3333333333333333, 'b': 0.6666666666666666}
    """
    read, chosen_measure = ReadOptions(decision, y, **reading), as_measure(measure)
    with prepared(data, read, engine, n_jobs, attributes=attributes) as ready:
        chosen_engine, granules = ready.engine, ready.granules
        members = granules.positions(ready.attributes)
        evaluation = chosen_engine.open(granules, chosen_measure)
        if members:
            evaluation.select(*members)
        rest = [a for a in range(len(granules.conditions)) if a not in members]
        gains = {a: evaluation.theta - after for a, after in zip(rest, evaluation.with_each(rest), strict=True)}
        if members:
            within = chosen_engine.open(granules.coarsen(ready.attributes), chosen_measure)
            for a, inner in zip(members, within.without_each(), strict=True):
                gains[a] = 0 if inner.equal else inner.theta - within.theta_all
        found = chosen_measure.significances([gains[a] for a in sorted(gains)], granules.n_objects)
        return dict(zip(granules.conditions, found, strict=True))


@shows_reading
def granulate(
    data: Any,
    decision: Column | Sequence[Column] | None = None,
    y: Any = None,
    *,
    engine: str | Engine = "auto",
    memory_limit: int | str | None = None,
    progress: Progress | None = None,
    **reading: Any,
) -> Granules:
    """Turn a table into its distinct rows with multiplicities; parameters as of `reduce`.

    Every function of plar takes the result in place of the table, so that four measures cost one reading. With the
    Spark engine they are SparkGranules, which stay on the cluster.

    Examples
    --------
    >>> import plar
    >>> g = plar.granulate({"a": [0, 0, 1], "d": ["Y", "Y", "N"]}, "d")
    >>> len(g), g.n_objects, g.counts.tolist()
    (2, 3, [2, 1])
    """
    read, chosen = ReadOptions(decision, y, **reading), as_engine(engine, None, data)
    with memory_limited(as_bytes(memory_limit)):
        if progress:
            progress("read", 0, 0)
        table = opened(data, read, chosen)
        granules = granulated(table, chosen, seconds={}, progress=progress)
        if not isinstance(granules, Granules):  # whose values nobody knows later
            warn_many_numbers(chosen, table, granules)
        return cast(Granules, granules)


@shows_reading
def read_table(
    path: str | os.PathLike[str],
    decision: Column | Sequence[Column] | None = None,
    **reading: Any,
) -> DecisionTable:
    r"""Open a file, a folder of Parquet files, or all files of a glob, as one decision table.

    Parameters are those of `reduce`, which takes a path as well: this is for a table that is used more than once.

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
    table = open_table(path, ReadOptions(decision, **reading))
    if table.is_granulated:
        raise TableError(f"{os.fspath(path)!r} holds granules, not rows. Read it with plar.Granules.open.")
    return table
