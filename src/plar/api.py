"""What users call: from any table to core, Θ, significances and reduct."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any, TypeAlias

from plar.columns import column_list, resolve, spellings
from plar.engines import as_engine
from plar.engines.base import Engine, Held, Reader
from plar.errors import TableError, unknown_name
from plar.granules import Granules
from plar.measures import Measure, as_measure
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
    weights: Column | None = None,
    minimal: bool = False,
    n_jobs: int | None = None,
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
    engine : {"auto", "local", "spark"} or Engine
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
    weights : str or int, optional
        Column of whole-number multiplicities; 0 drops the row.
    minimal : bool
        Try to remove each attribute in the end, the last first. `include` stays.
    n_jobs : int, optional
        Threads of the local engine; by default all cores.
    progress : function of (phase, done, total), optional
    on_step : function of a Step, optional
        Called after every greedy step.

    Returns
    -------
    Reduct

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
    chosen_measure = as_measure(measure)
    options = Options(tuple(column_list(include)), epsilon, tolerance, max_attributes, minimal)
    if progress is not None and not callable(progress):
        raise TableError(f"The 'progress' parameter must be a function. Got {progress!r} instead.")
    seconds: dict[str, float] = {}
    prepared = _prepared(
        data, decision, y, conditions, engine, missing, na, weights, n_jobs, options.include, seconds, progress
    )
    with prepared as (chosen_engine, granules):
        return find_reduct(
            granules,
            chosen_measure,
            chosen_engine,
            options,
            seconds=seconds,
            source=_path_of(data),
            settings={
                "include": [granules.conditions[a] for a in granules.positions(options.include)],
                "epsilon": float(epsilon),
                "tolerance": float(tolerance),
                "max_attributes": None if max_attributes is None else int(max_attributes),
                "minimal": bool(minimal),
                **_reading(data, missing, na, weights),
            },
            progress=progress,
            on_step=on_step,
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
    weights: Column | None = None,
    n_jobs: int | None = None,
) -> tuple[str, ...]:
    """Find the attributes that no reduct can do without; parameters as of `reduce`.

    Examples
    --------
    >>> import plar
    >>> plar.core({"a": [0, 0, 1], "b": [0, 1, 0], "c": [0, 1, 0], "d": [0, 1, 1]}, "d")
    ('a',)
    """
    chosen_measure, options = as_measure(measure), Options(epsilon=epsilon)
    prepared = _prepared(data, decision, y, conditions, engine, missing, na, weights, n_jobs)
    with prepared as (chosen_engine, granules):
        evaluation = chosen_engine.open(granules, chosen_measure)
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
    weights: Column | None = None,
    n_jobs: int | None = None,
) -> float:
    """Compute Θ(D|B) of a subset B of the attributes; other parameters as of `reduce`.

    Examples
    --------
    >>> import plar
    >>> plar.theta({"a": [0, 0, 1], "d": ["Y", "N", "N"]}, ["a"], decision="d", measure="PR")
    -0.3333333333333333
    """
    chosen_measure, subset = as_measure(measure), column_list(attributes)
    prepared = _prepared(data, decision, y, conditions, engine, missing, na, weights, n_jobs, subset)
    with prepared as (chosen_engine, granules):
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
    prepared = _prepared(data, decision, y, conditions, engine, missing, na, weights, n_jobs, subset)
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
    weights: Column | None = None,
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
    granules: Any = _granulated(chosen, data, decision, y, conditions, missing, na, weights)
    made: Granules = granules
    return made


def _path_of(data: Any) -> str | None:
    """Where the table is, if it is in a file."""
    if isinstance(data, DecisionTable):
        files = data.reader.files if data.reader is not None else ()
        return ", ".join(map(str, files)) or None
    return os.fspath(data) if isinstance(data, (str, os.PathLike)) else None


def _reading(data: Any, missing: str, na: Any, weights: Column | None) -> dict[str, Any]:
    """How the rows were read, for the record; a DecisionTable says so itself."""
    if isinstance(data, DecisionTable):
        return {"missing": data.missing, "na": list(data.na), "weights": data.weights}
    return {"missing": missing, "na": list(spellings(na)), "weights": weights}


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
) -> Iterator[tuple[Engine, Held]]:
    """Engine and granules for one call; what the call itself started or put on a cluster ends with it."""
    chosen = as_engine(engine, n_jobs, data)
    made: Any = None
    try:
        granules = _granulated(
            chosen, data, decision, y, conditions, missing, na, weights, attributes, seconds=seconds, progress=progress
        )
        made = None if granules is data else granules
        yield chosen, granules
    finally:
        if hasattr(type(made), "unpersist"):
            made.unpersist()
        if chosen is not engine and hasattr(chosen, "close"):
            chosen.close()


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
    seconds: dict[str, float] | None = None,
    progress: Progress | None = None,
) -> Held:
    """Granulate any data; `attributes` that it does not have are refused before the work."""
    seconds = {} if seconds is None else seconds
    began = perf_counter()
    if progress:
        progress("read", 0, 0)
    if isinstance(data, (str, os.PathLike)):
        data = open_granules(data) or (engine.read(data) if isinstance(engine, Reader) else None) or data
    if hasattr(type(data), "with_roles"):  # granules, here or on a cluster
        granules: Held = data.with_roles(decision, conditions, y=y, weights=weights, missing=missing)
        seconds |= {"read": perf_counter() - began, "granulate": 0.0}
        return granules
    table = as_table(data, decision, y, conditions=conditions, missing=missing, na=na, weights=weights)
    for attribute in attributes:
        if resolve(table.names, attribute, "attribute") not in table.conditions:
            raise unknown_name("condition", attribute, table.conditions)
    seconds["read"] = perf_counter() - began
    began = perf_counter()
    if progress:
        progress("granulate", 0, 0)
    granules = engine.granulate(table) if table.kind == "spark" and isinstance(engine, Reader) else table.granulate()
    seconds["granulate"] = perf_counter() - began
    return granules
