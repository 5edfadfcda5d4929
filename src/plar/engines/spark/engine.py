"""The Spark engine: the same reduct from a cluster, one job per iteration."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, MapType, StructType, UserDefinedType

from plar.bin_rules import Cuts
from plar.coding.series import not_flat
from plar.engines.base import Engine, Evaluation, GranuleHandle
from plar.engines.oracle import Oracle
from plar.engines.progress_hooks import Watch
from plar.engines.spark.columns import ColumnsEvaluation
from plar.engines.spark.granulate import bin_decision, bin_rows, granulated_parcels, in_one_coding, in_pieces
from plar.engines.spark.handle import SparkGranules
from plar.engines.spark.oracle import SparkOracle
from plar.engines.spark.reader import read_rows
from plar.engines.spark.rows import RowsEvaluation
from plar.engines.spark.session import check_session, explained, sent_once, start_session
from plar.errors import ParameterError, unknown_name
from plar.granules import Granules
from plar.measures import Measure
from plar.options import ReadOptions
from plar.spark_calls import spark_call
from plar.tables import DecisionTable
from plar.tables.spark import SparkRows, select_places

_LAYOUTS = ("auto", "columns", "rows")
#: up to this many granules their class ids are broadcast
_BROADCAST = 1 << 24
#: a piece of granules shipped out has about this many bytes; a task takes no more than four times that
_PIECE = 1 << 25


@dataclass(eq=False)
class SparkEngine(Engine):
    """An Apache Spark cluster, or Spark on this machine.

    Parameters
    ----------
    session : SparkSession, optional
        Used as it is and left running. Default: that of the data, else the active one, else one of our own, which
        `close`, or the end of a ``with``, stops.
    master : str, optional
        Where our own session runs; by default on this machine, "local[*]".
    partitions : int, optional
        Pieces that the granules are held in; by default as many as there are cores, or partitions of the data.
        The result does not depend on it.
    layout : {"auto", "columns", "rows"}
        How the granules are laid out: by columns while their class ids can be broadcast, by rows beyond.
    conf : mapping, optional
        Settings of our own session, such as {"spark.executor.memory": "4g"}.
    watch : function of a JobProgress, optional
        Called with the progress of each pass over the candidates.
    """

    session: SparkSession | None = None
    master: str | None = None
    partitions: int | None = None
    layout: str = "auto"
    conf: Mapping[str, str] = field(default_factory=dict)
    watch: Watch | None = None
    name = "spark"
    reads_paths = True
    _own: Any = field(default=None, init=False, repr=False)
    #: the granules last shipped out, so that further measures find them there; and those of a certificate
    _shipped: list[tuple[Granules, SparkGranules]] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.layout not in _LAYOUTS:
            raise unknown_name("layout", self.layout, _LAYOUTS)
        n = self.partitions
        if n is not None and (not isinstance(n, Integral) or isinstance(n, bool) or n < 1):
            raise ParameterError(f"The 'partitions' parameter must be None or 1 and more. Got {n!r} instead.")
        if self.conf is not None and not isinstance(self.conf, Mapping):
            raise ParameterError(f"The 'conf' parameter must be a mapping of settings. Got {self.conf!r} instead.")
        if self.session is not None:
            check_session(self.session)
            if self.master is not None or self.conf:
                raise ParameterError("A session has its master and settings already. Give session, or master and conf.")

    def close(self) -> None:
        """Stop the session that was started here; a given one runs on."""
        while self._shipped:
            self._shipped.pop()[1].unpersist()
        if self._own is not None:
            self._own.stop()
            self._own = None

    def spark(self) -> SparkSession:
        """The session that is used."""
        if self.session is not None:
            return self.session
        if self._own is None:
            active = SparkSession.getActiveSession()
            if active is not None and self.master is None and not self.conf:
                check_session(active)
                return active
            self._own = start_session(self.master, self.conf)
        session: SparkSession = self._own
        return session

    def read(self, path: str | os.PathLike[str], options: ReadOptions) -> SparkRows | None:
        """Let Spark read a path; None for formats that plar reads on this machine and ships out."""
        return spark_call(read_rows)(self.spark(), path, options)

    def granulate(self, table: DecisionTable) -> Granules | SparkGranules:
        """Granulate a table where its rows are: on the cluster, or on this machine."""
        return self._granulate(table) if isinstance(table.rows, SparkRows) else table.granulate()

    @spark_call
    def _granulate(self, table: DecisionTable) -> SparkGranules:
        frame: DataFrame = table.rows.data
        text, roles, cuts = table.rows.text, table.roles, dict[str, Cuts]()
        check_session(frame.sparkSession)
        for name, column in zip(table.names, frame.schema.fields, strict=True):
            nested = isinstance(column.dataType, (ArrayType, MapType, StructType, UserDefinedType))
            if nested and name in roles.used:
                raise not_flat(name, column.dataType.simpleString())
        with explained("read the table"):
            used = select_places(frame, [table.names.index(name) for name in roles.read])
            n = self.partitions or max(frame.sparkSession.sparkContext.defaultParallelism, used.rdd.getNumPartitions())
        if roles.decision_bins is not None:
            used, cuts = bin_decision(used, roles, text=text)
        if roles.bins is not None:
            used, found = bin_rows(used, roles, text=text)
            cuts |= found
        parcels = granulated_parcels(used, replace(roles, bins=None, decision_bins=None), text=text)
        try:
            pieces, coding, lacking, hashed, known = in_one_coding(parcels, roles, int(n))
            names = table.conditions, table.decision, table.names
            return SparkGranules(*names, pieces, coding, lacking, hashed, cuts, known)
        finally:
            parcels.unpersist()

    @spark_call
    def sample_values(self, table: DecisionTable, granules: Any, name: str) -> Iterable[Any]:
        """Values of a column: all that this machine knows, or some from the cluster; none of granules there."""
        if not isinstance(granules, SparkGranules):
            return super().sample_values(table, granules, name)
        if table.is_granulated:
            return ()
        frame, at = table.rows.data, table.names.index(name)
        if frame.schema.fields[at].dataType.typeName() in ("float", "double", "decimal"):
            return [0.5]  # the type says enough
        with explained("read the table"):
            values = [row[0] for row in select_places(frame, [at]).head(100)]
        return [value.strip() if isinstance(value, str) else value for value in values]

    def release(self, granules: GranuleHandle) -> None:
        """Free the memory and disks of the cluster."""
        if isinstance(granules, SparkGranules):
            granules.unpersist()

    def open(self, granules: Granules | SparkGranules, measure: Measure, watch: Watch | None = None) -> Evaluation:
        """Prepare the granules for one search; those of this machine are shipped out."""
        held = granules if isinstance(granules, SparkGranules) else self._ship(granules)
        measure = sent_once(measure)
        columns = self.layout == "columns" or (self.layout == "auto" and len(held) <= _BROADCAST)
        return (ColumnsEvaluation if columns else RowsEvaluation)(held, measure, watch or self.watch)

    def oracle(self, granules: Granules | SparkGranules, measure: Measure) -> Oracle:
        """Prepare the granules for questions about sets of attributes."""
        held = granules if isinstance(granules, SparkGranules) else self._ship(granules)
        return spark_call(SparkOracle)(held, sent_once(measure))

    def memory_need(self, granules: Granules) -> int:
        """Bytes that it takes here, beside the granules, to ship them out, as measured."""
        return 3 * granules.nbytes

    def _ship(self, granules: Granules) -> SparkGranules:
        found = next((held for known, held in self._shipped if known is granules), None)
        others = [one for one in self._shipped if one[0] is not granules]
        if found is None:
            found = _send(granules, self.spark(), self.partitions)
            for _, held in others[:-1]:
                held.unpersist()
        self._shipped = [*others[-1:], (granules, found)]
        return found


@spark_call
def _send(granules: Granules, session: SparkSession, partitions: int | None) -> SparkGranules:
    cores = session.sparkContext.defaultParallelism
    n = partitions or cores * -(-max(granules.nbytes, 1) // (_PIECE * cores))
    pieces, coding = in_pieces(granules, session.sparkContext, int(n))
    values = tuple(granules.dictionaries)
    facts = granules.conditions, granules.decision, granules.names
    return SparkGranules(*facts, pieces, coding, granules.n_missing, dictionaries=values)
