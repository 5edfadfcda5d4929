"""The Spark engine: the same reduct from a cluster, one job per iteration."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from numbers import Integral
from typing import Any, TypeVar

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, UserDefinedType

from plar.coding.series import not_flat
from plar.engines.base import Engine, Evaluation, GranuleSet
from plar.engines.clauses import ClauseFinder
from plar.engines.job_progress import Watch
from plar.engines.local import lanes
from plar.engines.local.engine import LocalEngine
from plar.engines.spark.approximation import approximate_on_cluster
from plar.engines.spark.clauses import SparkClauseFinder
from plar.engines.spark.columns_layout import ColumnsEvaluation, stratified_columns
from plar.engines.spark.cut_points import with_cut_points
from plar.engines.spark.distributed_tables import DistributedFiles, DistributedFrame, DistributedTable
from plar.engines.spark.file_parts import open_files, parts_of, write_parts
from plar.engines.spark.granulate import collected, granulate, ship
from plar.engines.spark.rows_layout import RowsEvaluation
from plar.engines.spark.session import (
    check_session,
    join_session,
    leave_session,
    running_session,
    sent_once,
    start_session,
)
from plar.engines.spark.shipped_columns import ShippedBlocks, ShippedEvaluation
from plar.engines.spark.spark_granules import SparkGranules
from plar.engines.spark.stratification import ColumnsStratification, RowsStratification
from plar.engines.spark.warm import warm_workers
from plar.engines.stratification import Stratification
from plar.errors import ParameterError, invalid, unknown_name
from plar.granules.granules import Granules
from plar.input.tables import DecisionTable
from plar.input.tables.source import RowSource, Source
from plar.input.tables.spark import ClusterSource, SharedFiles
from plar.measures import Measure
from plar.options import ReadOptions
from plar.runtime.parallel import usable_cores
from plar.runtime.spark_calls import spark_call
from plar.uncertainty.approximation import Approximation
from plar.uncertainty.ranks import Ranks

T = TypeVar("T")

_LAYOUTS = ("auto", "driver", "columns", "rows")
#: granules of up to this many bytes are evaluated on the driver
_MAX_BYTES_ON_DRIVER = 1 << 27
#: class ids of up to this many granules are broadcast
_MAX_ROWS_TO_BROADCAST = 1 << 24


@dataclass(eq=False)
class SparkEngine(Engine):
    """An Apache Spark cluster, or Spark on this machine.

    Parameters
    ----------
    session : SparkSession, optional
        Used as it is and left running. Default: the session of the data, else the one that runs in this
        process, else a new one, which `close` stops, as does leaving a ``with`` block.
    master : str, optional
        Where a new session runs; by default on this machine, "local[*]". A process has one session at a time:
        `master` and `conf` are refused while another one runs.
    partitions : int, optional
        Number of pieces that hold the distinct rows; by default the number of cores, or of partitions of the data.
        The result does not depend on it.
    layout : {"auto", "driver", "columns", "rows"}
        Where the distinct rows are kept: on the driver if they are small, because a job would take longer than a
        step; on the cluster by columns if their class ids can be broadcast, else by rows.
    conf : mapping, optional
        Settings of a new session, such as {"spark.executor.memory": "4g"}.
    watch : function of a JobProgress, optional
        Called with the progress of each pass over the candidates.
    """

    session: SparkSession | None = None
    master: str | None = None
    partitions: int | None = None
    layout: str = "auto"
    conf: Mapping[str, str] | None = None
    watch: Watch | None = None
    name = "spark"
    reads_paths = True
    #: a session that plar has started, until this engine leaves it
    _own_session: SparkSession | None = field(default=None, init=False, repr=False)
    #: the granules last shipped out, kept for further measures; and those of a certificate
    _shipped: list[tuple[Granules, ShippedBlocks | SparkGranules]] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.layout not in _LAYOUTS:
            raise unknown_name("layout", self.layout, _LAYOUTS)
        self._check_partitions()
        if self.master is not None and not isinstance(self.master, str):
            rule = "an address, such as 'local[2]' or 'spark://host:7077'"
            raise invalid("master", rule, self.master, or_none=True)
        if self.watch is not None and not callable(self.watch):
            raise invalid("watch", "a function", self.watch, or_none=True)
        self._check_conf()
        if self.session is not None:
            check_session(self.session)
            if self.master is not None or self.conf:
                raise ParameterError("A session already has its master and settings. Pass session, or master and conf.")

    def _check_partitions(self) -> None:
        n = self.partitions
        if n is None:
            return
        if not isinstance(n, Integral) or isinstance(n, bool) or n < 1:
            raise invalid("partitions", "an integer of at least 1", n, or_none=True)

    def _check_conf(self) -> None:
        if self.conf is None:
            return
        example = "such as {'spark.executor.memory': '4g'}"
        if not isinstance(self.conf, Mapping):
            raise invalid("conf", f"a mapping of settings, {example}", self.conf)
        for name, value in self.conf.items():
            if not isinstance(name, str) or not isinstance(value, (str, int, float)):
                raise ParameterError(
                    f"The 'conf' parameter must give settings by name, {example}. Got {name!r}: {value!r} instead."
                )

    def leave_to(self, granules: GranuleSet) -> None:
        """Leave a session that plar has started to the granules on its cluster; else close the engine."""
        if isinstance(granules, SparkGranules) and self._shares_session():
            granules.close_with(self)
        else:
            self.close()

    def _shares_session(self) -> bool:
        """Whether a session that plar has started, for this engine or another, runs at least until this one closes."""
        if self._own_session is None:
            running = running_session()
            if running is not None and join_session(running):
                self._own_session = running
        return self._own_session is not None

    def close(self) -> None:
        """Stop the session that was started here, unless granules on it are still in use; a given one keeps running."""
        while self._shipped:
            _, on_cluster = self._shipped.pop()
            on_cluster.unpersist()
        if self._own_session is not None:
            leave_session(self._own_session)
            self._own_session = None

    def spark(self) -> SparkSession:
        """The session in use."""
        if self.session is not None:
            return self.session
        if self._own_session is None:
            running = running_session()
            if running is not None and self.master is None and not self.conf:
                check_session(running)
                return running
            self._own_session = start_session(self.master, self.conf or {})
        return self._own_session

    @spark_call
    def read(self, path: str | os.PathLike[str], options: ReadOptions) -> Source:
        """Open files for the tasks to read; files of granules are read on this machine."""
        context = self.spark().sparkContext
        rows = open_files(path, options, context)
        return SharedFiles.open(rows, partial(write_parts, context)) if isinstance(rows, RowSource) else rows

    def granulate(self, table: DecisionTable) -> Granules | SparkGranules:
        """Granulate a table where its rows are: on the cluster, or on this machine."""
        return self._granulate(table) if isinstance(table.source, ClusterSource) else table.granulate()

    @spark_call
    def _granulate(self, table: DecisionTable) -> Granules | SparkGranules:
        rows = self._distributed(table)
        roles = table.roles
        warm_workers(rows.context)
        if roles.bins is not None or roles.decision_bins is not None:
            roles = with_cut_points(rows, roles, text=table.source.text)
        small = {"auto": _MAX_BYTES_ON_DRIVER, "driver": sys.maxsize}.get(self.layout, 0)
        by_columns = 0 if self.layout == "rows" else _MAX_ROWS_TO_BROADCAST
        return granulate(rows, table, roles, self.partitions, small=small, by_columns=by_columns)

    def _distributed(self, table: DecisionTable) -> DistributedTable:
        if isinstance(table.source, SharedFiles):
            context = self.spark().sparkContext
            return DistributedFiles(parts_of(table.source.data, context), context)
        frame: DataFrame = table.source.data
        check_session(frame.sparkSession)
        for name, column in zip(table.names, frame.schema.fields, strict=True):
            if name in table.roles.used and not _is_flat(column.dataType):
                raise not_flat(name, column.dataType.simpleString())
        return DistributedFrame(frame, table.names)

    @spark_call
    def local_granules(self, granules: Any, attributes: Sequence[str]) -> Granules | None:
        """The granules over some attributes, collected if they are small; None if they are not."""
        if not isinstance(granules, SparkGranules):
            return super().local_granules(granules, attributes)
        granules.check_usable()
        most_bytes = sys.maxsize if self.layout == "driver" else _MAX_BYTES_ON_DRIVER
        if tuple(attributes) == granules.conditions:
            return collected(granules, most_bytes)
        coarse = granules.coarsen(attributes)
        try:
            return collected(coarse, most_bytes)
        finally:
            granules.coarse.remove(coarse)
            coarse.unpersist()

    def sample_values(self, table: DecisionTable, granules: Any, name: str) -> Iterable[Any]:
        """Values of a column: all that this machine knows, or a sample."""
        if isinstance(granules, SparkGranules):
            return granules.samples.get(name, ())
        return super().sample_values(table, granules, name)

    def release(self, granules: GranuleSet) -> None:
        """Free the cluster's memory and disks."""
        if isinstance(granules, SparkGranules):
            granules.unpersist()

    def open(self, granules: Granules | SparkGranules, measure: Measure, watch: Watch | None = None) -> Evaluation:
        """Prepare the granules for one search; those on this machine are shipped out unless they are small."""
        if isinstance(granules, SparkGranules):
            granules.check_usable()
        context = self.spark().sparkContext
        watch = watch or self.watch
        if isinstance(granules, Granules) and self._stays(granules):
            return LocalEngine().open(granules, measure, watch)
        measure = sent_once(measure)
        by_columns = self.layout == "columns" or (self.layout == "auto" and len(granules) <= _MAX_ROWS_TO_BROADCAST)
        if isinstance(granules, SparkGranules):
            evaluation = ColumnsEvaluation if by_columns else RowsEvaluation
            return evaluation(granules, measure, watch)
        if by_columns:
            return ShippedEvaluation(granules, self._shipped_blocks(granules, context), measure, watch)
        return RowsEvaluation(self._shipped_granules(granules, context), measure, watch)

    def stratify(self, granules: Granules | SparkGranules, ranks: Ranks | None = None) -> Stratification:
        """Prepare to say how candidates go with the decision; granules on this machine are shipped unless small."""
        if isinstance(granules, SparkGranules):
            granules.check_usable()
        context = self.spark().sparkContext
        if isinstance(granules, Granules) and self._stays(granules):
            return super().stratify(granules, ranks)
        by_columns = self.layout == "columns" or (self.layout == "auto" and len(granules) <= _MAX_ROWS_TO_BROADCAST)
        if not by_columns:
            on_cluster = granules if isinstance(granules, SparkGranules) else self._shipped_granules(granules, context)
            return RowsStratification(on_cluster, ranks)
        if isinstance(granules, SparkGranules):
            return stratified_columns(granules, ranks)
        return ColumnsStratification(granules, self._shipped_blocks(granules, context), ranks=ranks)

    def clause_finder(self, granules: Granules | SparkGranules, measure: Measure) -> ClauseFinder:
        """Prepare the granules for questions about sets of attributes; those on this machine are queried here."""
        if not isinstance(granules, SparkGranules):
            return super().clause_finder(granules, measure)
        return spark_call(SparkClauseFinder)(granules, sent_once(measure))

    def approximate(self, granules: Granules | SparkGranules, attributes: Sequence[str], limit: int) -> Approximation:
        """The approximations of all decisions: granules on this machine are summed up here, in one pass."""
        if not isinstance(granules, SparkGranules):
            return super().approximate(granules, attributes, limit)
        granules.check_usable()
        return approximate_on_cluster(granules, attributes, limit)

    def memory_need(self, granules: Granules) -> int:
        """Bytes needed here, on top of the granules, to ship them out and to refine U/R."""
        if self._stays(granules):
            return LocalEngine().memory_need(granules)
        return len(granules) * (160 + lanes.LANES * usable_cores())

    def _stays(self, granules: Granules) -> bool:
        """Whether granules on this machine are evaluated here, because a job per step would take longer."""
        return self.layout == "driver" or (self.layout == "auto" and granules.nbytes <= _MAX_BYTES_ON_DRIVER)

    def _shipped_blocks(self, granules: Granules, context: SparkContext) -> ShippedBlocks:
        """Columns of granules on the cluster, which may be there already."""
        blocks = self._recall(granules, ShippedBlocks)
        if blocks is None:
            warm_workers(context)
            blocks = ShippedBlocks(granules, context)
            self._remember(granules, blocks)
        return blocks

    def _shipped_granules(self, granules: Granules, context: SparkContext) -> SparkGranules:
        """Rows of granules on the cluster, which may be there already."""
        on_cluster = self._recall(granules, SparkGranules)
        if on_cluster is None:
            warm_workers(context)
            on_cluster = ship(granules, context, self.partitions)
            self._remember(granules, on_cluster)
        return on_cluster

    def _recall(self, granules: Granules, kind: type[T]) -> T | None:
        """What was made of the same granules before, now the latest to be forgotten."""
        for place, (shipped, on_cluster) in enumerate(self._shipped):
            if shipped is granules and isinstance(on_cluster, kind):
                self._shipped.append(self._shipped.pop(place))
                return on_cluster
        return None

    def _remember(self, granules: Granules, on_cluster: ShippedBlocks | SparkGranules) -> None:
        """Keep what was shipped out for later, and free all but the last before it."""
        while len(self._shipped) > 1:
            _, oldest = self._shipped.pop(0)
            oldest.unpersist()
        self._shipped.append((granules, on_cluster))


def _is_flat(kind: DataType) -> bool:
    """Whether values of a type can be compared and passed to Python."""
    nested = isinstance(kind, (ArrayType, MapType, StructType, UserDefinedType))
    return not nested and kind.typeName() not in ("variant", "interval", "daytimeinterval", "yearmonthinterval")
