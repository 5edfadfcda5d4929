"""What users call: from any table to core, Θ, significances and reduct."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any, TypeAlias

from plar.bins import Spec, written_spec
from plar.checkpoint import Journal
from plar.columns import column_list, resolve, spellings, written_name
from plar.engines import as_engine
from plar.engines.base import Engine, GranuleHandle, MadeGranules
from plar.errors import ParameterError, unknown_name
from plar.granules import Granules
from plar.id_columns import warn_id_columns
from plar.limits import as_bytes, as_seconds, check_memory, memory_limited, shown_bytes
from plar.measures import Measure, as_measure
from plar.progress import bytes_of, followed
from plar.reduct import Reduct
from plar.search import OnStep, Options, Progress, core_of, find_reduct
from plar.table import DecisionTable, as_table, open_granules

__all__ = ["core", "granulate", "reduce", "significance", "theta"]

#: a column by name, or by position (negative from the end)
Column: TypeAlias = str | int


def reduce(
    data: Any,
    decision: Column | Sequence[Column] | None = None,
    y: Any = None,
    *,
    conditions: Sequence[Column] | None = None,
    measure: str | Measure = "SCE",
    engine: str | Engine = "auto",
    include: Column | Iterable[Column] = (),
    epsilon: float = 0.0,
    tolerance: float = 0.0,
    max_attributes: int | None = None,
    missing: str = "value",
    na: str | Iterable[str] = (),
    bins: Spec | None = None,
    weights: Column | None = None,
    minimal: bool = False,
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
        Files: .csv .tsv .txt (also .gz .zst), .parquet .arrow .feather .ndjson .arff and KEEL's .dat.
    decision : str, int or list of them, optional
        The decision column by name or position; several are taken together.
    y : (n,) array_like, optional
        The decision beside the data, in place of `decision`.
    conditions : list of str or int, optional
        The columns to choose from; by default all others, in table order. Ties, core and reports follow their order.
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
    missing : {"value", "drop", "error"}
        Missing is a value of its own, or rows with missing values leave, or they are an error.
    na : str or list of str
        Further spellings of missing, for example "?".
    bins : "quantile:k", "width:k", "mdlp" or mapping, optional
        Numbers into bins: k bins of as many objects each, k bins of one width, or as many as tell the decision
        apart (Fayyad and Irani). A mapping names columns, each with one of these or with a list of cut points; else
        all conditions that hold numbers are cut. Default: every number is a value of its own.
    weights : str or int, optional
        Column of whole-number multiplicities; 0 drops the row.
    minimal : bool
        Try to remove each attribute in the end, the last first. `include` stays.
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

    Returns
    -------
    Reduct

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
    deadline = perf_counter() + (math.inf if time_limit is None else as_seconds(time_limit))
    chosen_measure = as_measure(measure)
    options = Options(tuple(column_list(include)), epsilon, tolerance, max_attributes, minimal)
    for name, given in (("progress", progress), ("on_step", on_step)):
        if given is not None and not callable(given):
            raise ParameterError(f"The {name!r} parameter must be a function. Got {given!r} instead.")
    seconds: dict[str, float] = {}
    asked = data, decision, y, conditions, engine, missing, na, weights, n_jobs, options.include, seconds
    journal = Journal(checkpoint)
    with (
        memory_limited(as_bytes(memory_limit)),
        followed(verbose, progress, on_step) as (tell, tell_step, display),
        _prepared(*asked, tell, bins=bins) as (chosen_engine, granules),
    ):
        if display:
            display.granulated(len(granules), granules.n_objects)
            display.estimated(*(_memory(chosen_engine, granules) or ()))
        return find_reduct(
            granules,
            chosen_measure,
            chosen_engine,
            options,
            seconds=seconds,
            source=_path_of(data),
            settings={
                **options.plain([granules.conditions[a] for a in granules.positions(options.include)]),
                **_reading(data, granules, y, missing, na, weights, bins),
                "conditions": list(granules.conditions) if _limited(data, conditions) else None,
            },
            progress=tell,
            on_step=tell_step,
            journal=journal,
            deadline=deadline,
            watch=display.watch if display else None,
            equivalent=equivalent,
        )


def core(
    data: Any,
    decision: Column | Sequence[Column] | None = None,
    y: Any = None,
    *,
    conditions: Sequence[Column] | None = None,
    measure: str | Measure = "SCE",
    engine: str | Engine = "auto",
    epsilon: float = 0.0,
    missing: str = "value",
    na: str | Iterable[str] = (),
    bins: Spec | None = None,
    weights: Column | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> tuple[str, ...]:
    """Find the attributes that no reduct can do without; parameters as of `reduce`.

    Examples
    --------
    >>> import plar
    >>> plar.core({"a": [0, 0, 1], "b": [0, 1, 0], "c": [0, 1, 0], "d": [0, 1, 1]}, "d")
    ('a',)
    """
    chosen_measure, options = as_measure(measure), Options(epsilon=epsilon)
    asked = data, decision, y, conditions, engine, missing, na, weights, n_jobs
    with (
        followed(False, progress, None) as (tell, _, display),
        _prepared(*asked, progress=tell, bins=bins) as (chosen_engine, granules),
    ):
        if tell:
            tell("core", 0, len(granules.conditions))
        watch = chosen_engine.watch or (display.watch if display else None)
        evaluation = chosen_engine.open(granules, chosen_measure, watch)
        found = core_of(
            evaluation.without_each(), evaluation.theta_all, chosen_measure, granules.n_objects, options.epsilon
        )
        return tuple(granules.conditions[a] for a in found)


def theta(
    data: Any,
    attributes: Column | Iterable[Column],
    decision: Column | Sequence[Column] | None = None,
    y: Any = None,
    *,
    conditions: Sequence[Column] | None = None,
    measure: str | Measure = "SCE",
    engine: str | Engine = "auto",
    missing: str = "value",
    na: str | Iterable[str] = (),
    bins: Spec | None = None,
    weights: Column | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> float:
    """Compute Θ(D|B) of a subset B of the attributes; other parameters as of `reduce`.

    Examples
    --------
    >>> import plar
    >>> plar.theta({"a": [0, 0, 1], "d": ["Y", "N", "N"]}, ["a"], decision="d", measure="PR")
    -0.3333333333333333
    """
    chosen_measure, subset = as_measure(measure), column_list(attributes)
    asked = data, decision, y, conditions, engine, missing, na, weights, n_jobs, subset
    with _prepared(*asked, progress=progress, bins=bins) as (chosen_engine, granules):
        return chosen_engine.open(granules.coarsen(subset), chosen_measure).value_all


def significance(
    data: Any,
    attributes: Column | Iterable[Column] = (),
    decision: Column | Sequence[Column] | None = None,
    y: Any = None,
    *,
    conditions: Sequence[Column] | None = None,
    measure: str | Measure = "SCE",
    engine: str | Engine = "auto",
    missing: str = "value",
    na: str | Iterable[str] = (),
    bins: Spec | None = None,
    weights: Column | None = None,
    n_jobs: int | None = None,
) -> dict[str, float]:
    """Compute the significance of every attribute relative to B: inner for its members, outer for the rest.

    Other parameters as of `reduce`.

    Examples
    --------
    >>> import plar
    >>> plar.significance({"a": [0, 0, 1], "b": [0, 1, 1], "d": ["Y", "N", "N"]}, ["a"], decision="d", measure="PR")
    {'a': 0.3333333333333333, 'b': 0.6666666666666666}
    """
    chosen_measure, subset = as_measure(measure), column_list(attributes)
    prepared = _prepared(data, decision, y, conditions, engine, missing, na, weights, n_jobs, subset, bins=bins)
    with prepared as (chosen_engine, granules):
        members = list(dict.fromkeys(granules.positions(subset)))
        evaluation = chosen_engine.open(granules, chosen_measure)
        if members:
            evaluation.select(*members)
        rest = [a for a in range(len(granules.conditions)) if a not in members]
        gains = {a: evaluation.theta - after for a, after in zip(rest, evaluation.with_each(rest), strict=True)}
        if members:
            within = chosen_engine.open(granules.coarsen([granules.conditions[a] for a in members]), chosen_measure)
            for a, found in zip(members, within.without_each(), strict=True):
                gains[a] = 0 if found.equal else found.theta - within.theta_all
        n = granules.n_objects
        return {name: chosen_measure.significance(gains[a], n) for a, name in enumerate(granules.conditions)}


def granulate(
    data: Any,
    decision: Column | Sequence[Column] | None = None,
    y: Any = None,
    *,
    conditions: Sequence[Column] | None = None,
    engine: str | Engine = "auto",
    missing: str = "value",
    na: str | Iterable[str] = (),
    bins: Spec | None = None,
    weights: Column | None = None,
    memory_limit: int | str | None = None,
    progress: Progress | None = None,
) -> Granules:
    """Turn a table into its distinct rows with multiplicities; parameters as of `reduce`.

    Every function of plar takes the result in place of the table, so that four measures cost one reading.

    Returns
    -------
    Granules
        With the Spark engine, SparkGranules: they stay on the cluster.

    Examples
    --------
    >>> import plar
    >>> g = plar.granulate({"a": [0, 0, 1], "d": ["Y", "Y", "N"]}, "d")
    >>> len(g), g.n_objects, g.counts.tolist()
    (2, 3, [2, 1])
    """
    chosen = as_engine(engine, None, data)
    asked = chosen, data, decision, y, conditions, missing, na, weights
    with memory_limited(as_bytes(memory_limit)):
        granules: Any = _granulated(*asked, bins=bins, progress=progress)
    made: Granules = granules
    return made


def _path_of(data: Any) -> str | None:
    """Where the table is, if it is in a file."""
    if isinstance(data, DecisionTable):
        return data.path
    return os.fspath(data) if isinstance(data, (str, os.PathLike)) else None


def _reading(
    data: Any, granules: GranuleHandle, y: Any, missing: str, na: Any, weights: Column | None, bins: Spec | None
) -> dict[str, Any]:
    """How the rows were read, for the record; a DecisionTable says so itself."""
    if isinstance(data, DecisionTable):
        spec = None if data.bins is None else data.bins.spec
        how: dict[str, Any] = {"missing": data.missing, "na": list(data.na), "weights": data.weights, "bins": spec}
        file = {"decimal": data.decimal, "header": data.header, "separator": data.separator}
        return {**how, **file, "y": data.labels is not None}
    weighted = None if weights is None else written_name(weights, granules.names)
    spec = written_spec(bins, granules.names)
    how = {"missing": missing, "na": list(spellings(na)), "weights": weighted, "bins": spec}
    return {**how, "decimal": ".", "header": True, "separator": None, "y": y is not None}


def _limited(data: Any, conditions: Any) -> bool:
    """Whether the conditions are not just all other columns, in table order."""
    if not isinstance(data, DecisionTable):
        return conditions is not None
    roles = {*data.decision, data.weights}
    return data.conditions != tuple(name for name in data.names if name not in roles)


@contextmanager
def _prepared(
    data: Any,
    decision: Any,
    y: Any,
    conditions: Any,
    engine: str | Engine,
    missing: str,
    na: str | Iterable[str],
    weights: Column | None,
    n_jobs: int | None,
    attributes: Iterable[Any] = (),
    seconds: dict[str, float] | None = None,
    progress: Progress | None = None,
    *,
    bins: Spec | None = None,
) -> Iterator[tuple[Engine, GranuleHandle]]:
    """Engine and granules for one call; what the call itself started or put on a cluster ends with it."""
    chosen = as_engine(engine, n_jobs, data)
    made: Any = None
    try:
        granules = _granulated(
            chosen,
            data,
            decision,
            y,
            conditions,
            missing,
            na,
            weights,
            attributes,
            bins=bins,
            seconds=seconds,
            progress=progress,
        )
        made = None if granules is data else granules
        if isinstance(made, Granules):
            granules = made = made.for_one_search()
        if memory := _memory(chosen, granules):
            coded, need = memory
            check_memory(f"The engine {chosen.name!r}, beside the coded table of {shown_bytes(coded)},", need)
        yield chosen, granules
    finally:
        if made is not None:
            chosen.release(made)
        if chosen is not engine:
            chosen.close()


def _memory(engine: Engine, granules: GranuleHandle) -> tuple[int, int] | None:
    """Bytes of the coded table, and those that the engine takes beside it; None where the table is elsewhere."""
    if not isinstance(granules, Granules):
        return None
    need = engine.memory_need(granules)
    return None if need is None else (granules.nbytes, need)


def _granulated(
    engine: Engine,
    data: Any,
    decision: Any,
    y: Any,
    conditions: Any,
    missing: str,
    na: str | Iterable[str],
    weights: Column | None,
    attributes: Iterable[Any] = (),
    *,
    bins: Spec | None = None,
    seconds: dict[str, float] | None = None,
    progress: Progress | None = None,
) -> GranuleHandle:
    """Granulate any data; `attributes` that it does not have are refused before the work."""
    seconds = {} if seconds is None else seconds
    began = perf_counter()
    if progress:
        progress("read", 0, 0)
    if isinstance(data, (str, os.PathLike)):
        data = open_granules(data) or engine.read(data) or data
    if issubclass(type(data), MadeGranules):
        granules: GranuleHandle = data.with_roles(
            decision, conditions, y=y, weights=weights, missing=missing, na=na, bins=bins
        )
        seconds |= {"read": perf_counter() - began, "granulate": 0.0}
        return granules
    table = as_table(data, decision, y, conditions=conditions, missing=missing, na=na, bins=bins, weights=weights)
    for attribute in attributes:
        if resolve(table.names, attribute, "attribute") not in table.conditions:
            raise unknown_name("condition", attribute, table.conditions)
    seconds["read"] = perf_counter() - began
    began = perf_counter()
    if progress:
        progress("granulate", 0, bytes_of(table.reader.files) if table.reader is not None else 0)
    granules = engine.granulate(table)
    if table.bins is None:
        warn_id_columns(engine, table, granules)
    seconds["granulate"] = perf_counter() - began
    return granules
