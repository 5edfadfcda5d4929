"""The Spark engine: the same reduct from a cluster, one job per iteration."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

from plar.bin_rules import Cuts
from plar.coding.series import not_flat
from plar.engines.base import Engine, Evaluation, GranuleHandle
from plar.engines.spark.binning import bin_rows
from plar.engines.spark.columns import ColumnsEvaluation
from plar.engines.spark.granulate import granulated_parcels, in_one_coding, in_pieces
from plar.engines.spark.handle import SparkGranules, hold
from plar.engines.spark.jobs import Watch, sent_once
from plar.engines.spark.reader import read_rows
from plar.engines.spark.rows import RowsEvaluation
from plar.engines.spark.session import check_session, explained, start_session
from plar.errors import ParameterError, unknown_name
from plar.granules import Granules
from plar.measures import Measure
from plar.options import ReadOptions
from plar.spark_calls import spark_call
from plar.tables import DecisionTable
from plar.tables.spark import SparkRows, select_places

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SparkEngine"]

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

    def __enter__(self) -> SparkEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the session that was started here; a given one runs on."""
        while self._shipped:
            self._shipped.pop()[1].unpersist()
        if self._own is not None:
            self._own.stop()
            self._own = None

    def spark(self) -> SparkSession:
        """The session that is used."""
        from pyspark.sql import SparkSession

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

    @property
    def reads_paths(self) -> bool:
        """Spark reads files where they are."""
        return True

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
        places = {name: j for j, name in enumerate(table.names)}
        _check_flat(frame, {name: places[name] for name in roles.used})
        with explained("read the table"):
            used = select_places(frame, [places[name] for name in roles.read])
            n = self.partitions or max(_parallelism(frame.sparkSession), used.rdd.getNumPartitions())
        if roles.bins is not None:
            used, cuts = bin_rows(used, roles, text=text)
        parcels = granulated_parcels(used, replace(roles, bins=None), text=text)
        pieces, coding, found, fingerprint = in_one_coding(parcels, roles.missing, int(n))
        lacking = {name: found[name] for name in roles.used if name in found}
        held = hold(pieces, coding, table.conditions, table.decision, table.names, lacking, fingerprint)
        held.cuts = cuts
        parcels.unpersist()
        return held

    def sample_values(self, table: DecisionTable, granules: Any, place: int) -> Iterable[Any]:
        """Values of a condition: all that this machine knows, or some from the cluster."""
        if isinstance(granules, SparkGranules):
            return _first_values(table.rows.data, table.names.index(granules.conditions[place]))
        return super().sample_values(table, granules, place)

    def release(self, granules: GranuleHandle) -> None:
        """Free the memory and disks of the cluster."""
        if isinstance(granules, SparkGranules):
            granules.unpersist()

    def open(self, granules: Granules | SparkGranules, measure: Measure, watch: Watch | None = None) -> Evaluation:
        """Prepare the granules for one search; those of this machine are shipped out."""
        held = granules if isinstance(granules, SparkGranules) else self._ship(granules)
        measure = sent_once(measure)
        columns = self.layout == "columns" or (self.layout == "auto" and len(held) <= _BROADCAST)
        if columns:
            return ColumnsEvaluation(held, measure, watch or self.watch)
        return RowsEvaluation(held, measure, watch or self.watch)

    def memory_need(self, granules: Granules) -> int:
        """Bytes that it takes here, beside the granules, to ship them out, as measured."""
        return 3 * granules.nbytes

    def _ship(self, granules: Granules) -> SparkGranules:
        for known in self._shipped:
            if known[0] is granules:
                self._shipped.remove(known)
                self._shipped.append(known)
                return known[1]
        held = _send(granules, self.spark(), self.partitions)
        self._shipped.append((granules, held))
        if len(self._shipped) > 2:
            self._shipped.pop(0)[1].unpersist()
        return held


@spark_call
def _send(granules: Granules, session: SparkSession, partitions: int | None) -> SparkGranules:
    cores = _parallelism(session)
    n = partitions or cores * -(-max(granules.nbytes, 1) // (_PIECE * cores))
    pieces, coding = in_pieces(granules, session.sparkContext, int(n))
    return hold(pieces, coding, granules.conditions, granules.decision, granules.names, granules.n_missing)


@spark_call
def _first_values(frame: DataFrame, place: int) -> Iterable[Any]:
    """Some values of a column, or one where its type says enough."""
    if frame.schema.fields[place].dataType.typeName() in ("float", "double", "decimal"):
        return [0.5]
    with explained("read the table"):
        rows = select_places(frame, [place]).head(100)
    return [row[0].strip() if isinstance(row[0], str) else row[0] for row in rows]


def _parallelism(session: SparkSession) -> int:
    return int(session.sparkContext.defaultParallelism)


def _check_flat(frame: DataFrame, places: Mapping[str, int]) -> None:
    from pyspark.sql.types import ArrayType, MapType, StructType, UserDefinedType

    for name, place in places.items():
        kind = frame.schema.fields[place].dataType
        if isinstance(kind, (ArrayType, MapType, StructType, UserDefinedType)):
            raise not_flat(name, kind.simpleString())
