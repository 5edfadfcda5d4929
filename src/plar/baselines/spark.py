"""SparkAR, PLAR-DP and PLAR: a Spark job for every Θ(D|B)."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from numbers import Integral
from operator import add
from typing import TYPE_CHECKING, Any

from plar.api import reduce
from plar.baselines.subsets import Judged, Subset, SubsetEvaluation
from plar.columns import ColumnName as Column
from plar.engines import SparkEngine, as_engine
from plar.engines.base import Engine
from plar.engines.progress_hooks import Watch
from plar.engines.spark.session import explained
from plar.errors import ParameterError
from plar.granules import Granules
from plar.measures import Measure
from plar.reduct import Reduct

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import SparkSession

__all__ = ["SparkSystem", "plar_dp", "plar_paper", "spark_ar"]

#: (tag, value, value, …), and how often
Row = tuple[tuple[int, ...], int]


def spark_ar(
    data: Any,
    decision: Column | Sequence[Column] | None = None,
    y: Any = None,
    *,
    measure: str | Measure = "SCE",
    session: SparkSession | None = None,
    **options: Any,
) -> Reduct:
    """Reduce a table with SparkAR: rows cached as an RDD, not granulated; each Θ is map, reduceByKey, sum.

    Parameters
    ----------
    data, decision, y
        As of `plar.reduce`, but for Spark DataFrames: the rows are shipped out from here.
    measure : {"SCE", "PR", "LCE", "CCE"}
    session : SparkSession, optional
        Default: the active one, else one of our own on this machine, stopped in the end.
    **options
        Others of `plar.reduce`, such as conditions, include, missing, na, weights and max_attributes.

    Returns
    -------
    Reduct
        That of `plar.reduce`, but for times and engine.

    References
    ----------
    J. Zhang, T. Li, Y. Pan: Parallel Large-Scale Attribute Reduction on Cloud Systems, system SparkAR.
    """
    return _reduced("SparkAR", session, False, 1, data, decision, y, measure=measure, **options)


def plar_dp(
    data: Any,
    decision: Column | Sequence[Column] | None = None,
    y: Any = None,
    *,
    measure: str | Measure = "SCE",
    session: SparkSession | None = None,
    **options: Any,
) -> Reduct:
    """Reduce a table with PLAR-DP: SparkAR after GrC initialisation, so that a job reads granules and not rows.

    Parameters
    ----------
    data, decision, y, measure, session, **options
        As of `spark_ar`.

    Returns
    -------
    Reduct

    References
    ----------
    J. Zhang, T. Li, Y. Pan: Parallel Large-Scale Attribute Reduction on Cloud Systems, system PLAR-DP.
    """
    return _reduced("PLAR-DP", session, True, 1, data, decision, y, measure=measure, **options)


def plar_paper(
    data: Any,
    decision: Column | Sequence[Column] | None = None,
    y: Any = None,
    *,
    measure: str | Measure = "SCE",
    model_parallelism: int = 8,
    session: SparkSession | None = None,
    **options: Any,
) -> Reduct:
    """Reduce a table with PLAR as the paper has it: PLAR-DP, with several candidates at once, each a Spark job.

    Parameters
    ----------
    data, decision, y, measure, session, **options
        As of `spark_ar`.
    model_parallelism : int
        How many candidates are evaluated at once.

    Returns
    -------
    Reduct

    References
    ----------
    J. Zhang, T. Li, Y. Pan: Parallel Large-Scale Attribute Reduction on Cloud Systems, algorithm PLAR.
    """
    return _reduced("PLAR", session, True, model_parallelism, data, decision, y, measure=measure, **options)


def _reduced(
    name: str, session: SparkSession | None, granulated: bool, model_parallelism: int, *data: Any, **options: Any
) -> Reduct:
    with SparkSystem(name, granulated, model_parallelism, session) as system:
        return reduce(*data, engine=system, **options)


@dataclass(eq=False)
class SparkSystem(Engine):
    """The engine of the three systems.

    Parameters
    ----------
    name : str
    granulated : bool
        Whether the RDD holds granules, or one row per object.
    model_parallelism : int
        How many jobs run at once.
    session : SparkSession, optional
    """

    name: str
    granulated: bool
    model_parallelism: int = 1
    session: SparkSession | None = None
    _engine: Any = field(default=None, init=False, repr=False)
    _cached: list[Any] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        level = self.model_parallelism
        if not isinstance(level, Integral) or isinstance(level, bool) or level < 1:
            raise ParameterError(f"The 'model_parallelism' parameter must be 1 or more. Got {level!r} instead.")

    def __enter__(self) -> SparkSystem:
        return self

    def __exit__(self, *_: object) -> None:
        while self._cached:
            self._cached.pop().unpersist()
        if self._engine is not None:
            self._engine.close()

    def open(self, granules: Granules, measure: Measure, watch: Watch | None = None) -> SparkEvaluation:
        """Ship the rows out, granulate them there if asked to, and cache them."""
        if self._engine is None:
            self._engine = as_engine("spark") if self.session is None else SparkEngine(session=self.session)
        evaluation = SparkEvaluation(granules, measure, self._engine.spark(), self)
        self._cached.append(evaluation.rows)
        return evaluation


class SparkEvaluation(SubsetEvaluation):
    """Θ by Spark jobs, `model_parallelism` at a time."""

    def __init__(self, granules: Granules, measure: Measure, session: SparkSession, system: SparkSystem) -> None:
        super().__init__(granules, measure)
        self.level = int(system.model_parallelism)
        tags, columns = self._unrolled()
        context = session.sparkContext
        n = context.defaultParallelism
        with explained("ship the rows out"):
            # exchanged once: every later task would else carry its part of the data along
            rows: RDD[Row] = context.parallelize([(row, 1) for row in zip(tags, *columns, strict=True)], n)
            self.rows = (rows.reduceByKey(add, n) if system.granulated else rows.repartition(n)).cache()
            self.rows.count()

    def judge(self, subsets: Sequence[Subset]) -> list[Judged]:
        """Θ(D|B) of each of the subsets B."""
        with explained("evaluate the candidates"):
            if self.level == 1:
                return [self._job(subset) for subset in subsets]
            with ThreadPoolExecutor(self.level) as workers:
                return list(workers.map(self._job, subsets))

    def _job(self, subset: Subset) -> Judged:
        theta_of = self._theta_of
        classes = self.rows.map(lambda row: (tuple(row[0][1 + a] for a in subset), {row[0][0]: row[1]}))
        judged = classes.reduceByKey(_together).values().map(theta_of)
        return judged.fold(Judged(0, 0), _sum)


def _together(counts: dict[int, int], more: dict[int, int]) -> dict[int, int]:
    for tag, n in more.items():
        counts[tag] = counts.get(tag, 0) + n
    return counts


def _sum(a: Judged, b: Judged) -> Judged:
    return Judged(a.theta + b.theta, a.active + b.active)
