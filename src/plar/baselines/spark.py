"""SparkAR, PLAR-DP and PLAR: a Spark job for every Θ(D|B)."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from numbers import Integral
from operator import add
from typing import TYPE_CHECKING, Any, Unpack

from plar.baselines.subsets import Judged, Subset, SubsetEvaluation, System, SystemOptions
from plar.engines import as_engine
from plar.errors import invalid
from plar.granules.granules import Granules
from plar.measures import Measure
from plar.results.reduct import Reduct

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import SparkSession


def spark_ar(
    data: Any,
    decision: Any = None,
    y: Any = None,
    *,
    session: SparkSession | None = None,
    **options: Unpack[SystemOptions],
) -> Reduct:
    """Reduce a table with SparkAR: rows cached as an RDD, not granulated; each Θ is map, reduceByKey, sum.

    Parameters
    ----------
    data, decision, y, **options
        As in `har`, except Spark DataFrames: the rows are sent from here.
    session : SparkSession, optional
        Default: the one that runs in this process, else a new one on this machine, which is stopped at the end.

    Returns
    -------
    Reduct
        That of `plar.reduce`, except for times and engine.
    """
    return SparkSystem("SparkAR", False, 1, session).reduce(data, decision, y, options)


def plar_dp(
    data: Any,
    decision: Any = None,
    y: Any = None,
    *,
    session: SparkSession | None = None,
    **options: Unpack[SystemOptions],
) -> Reduct:
    """Reduce a table with PLAR-DP: SparkAR after GrC initialisation, so that a job reads granules and not rows.

    Parameters and result are those of `spark_ar`.
    """
    return SparkSystem("PLAR-DP", True, 1, session).reduce(data, decision, y, options)


def plar_paper(
    data: Any,
    decision: Any = None,
    y: Any = None,
    *,
    model_parallelism: int = 8,
    session: SparkSession | None = None,
    **options: Unpack[SystemOptions],
) -> Reduct:
    """Reduce a table with PLAR as in the paper: PLAR-DP, with several candidates at once, each a Spark job.

    Parameters
    ----------
    data, decision, y, session, **options
        As in `spark_ar`.
    model_parallelism : int
        How many candidates are evaluated at once.

    Returns
    -------
    Reduct
    """
    return SparkSystem("PLAR", True, model_parallelism, session).reduce(data, decision, y, options)


class SparkSystem(System):
    """The engine of the three systems, whose RDD holds granules or one row per object, some jobs at a time."""

    def __init__(
        self, name: str, granulated: bool, model_parallelism: int = 1, session: SparkSession | None = None
    ) -> None:
        n_jobs = model_parallelism
        if not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool) or n_jobs < 1:
            raise invalid("model_parallelism", "1 or more", n_jobs)
        self._engine: Any = None

        def evaluation(granules: Granules, measure: Measure) -> SparkEvaluation:
            if self._engine is None:
                from plar.engines.spark import SparkEngine

                self._engine = as_engine("spark") if session is None else SparkEngine(session=session)
            return SparkEvaluation(granules, measure, self._engine.spark(), granulated, int(n_jobs))

        super().__init__(name, evaluation)

    def close(self) -> None:
        """Free the cached rows, and stop the session that was started here."""
        super().close()
        if self._engine is not None:
            self._engine.close()


class SparkEvaluation(SubsetEvaluation):
    """Θ by Spark jobs, `n_jobs` at a time."""

    def __init__(
        self, granules: Granules, measure: Measure, session: SparkSession, granulated: bool, n_jobs: int
    ) -> None:
        from plar.engines.spark.session import explained

        super().__init__(granules, measure)
        self.n_jobs = n_jobs
        tags, columns = self._unrolled()
        context = session.sparkContext
        n_partitions = context.defaultParallelism
        with explained("ship the rows out"):
            # (tag, value, value, …) and a count; shuffled once, or every later task would carry its part along
            rows: RDD[Any] = context.parallelize([(row, 1) for row in zip(tags, *columns, strict=True)], n_partitions)
            shuffled = rows.reduceByKey(add, n_partitions) if granulated else rows.repartition(n_partitions)
            self.rows = shuffled.cache()
            self.rows.count()

    def judge(self, subsets: Sequence[Subset]) -> list[Judged]:
        """Θ(D|B) of each of the subsets B."""
        from plar.engines.spark.session import explained

        with explained("evaluate the candidates"), ThreadPoolExecutor(self.n_jobs) as workers:
            return list(workers.map(self._job, subsets))

    def close(self) -> None:
        """Free the cached rows."""
        self.rows.unpersist()

    def _job(self, subset: Subset) -> Judged:
        theta_of = self._theta_of
        classes = self.rows.map(lambda row: (tuple(row[0][1 + a] for a in subset), {row[0][0]: row[1]}))
        judged = classes.reduceByKey(_merge_counts).values().map(theta_of)
        return judged.fold(Judged(0, 0), _add)


def _add(a: Judged, b: Judged) -> Judged:
    return Judged(a.theta + b.theta, a.unsettled_objects + b.unsettled_objects)


def _merge_counts(counts: dict[int, int], others: dict[int, int]) -> dict[int, int]:
    for tag, n in others.items():
        counts[tag] = counts.get(tag, 0) + n
    return counts
