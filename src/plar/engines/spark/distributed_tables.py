"""Where the rows of a table come from: parts of files, or the partitions of a DataFrame; tasks see both as tables."""

from __future__ import annotations

import os
import pickle
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from pyspark import RDD, SparkContext
from pyspark.sql import DataFrame

from plar.coding.assemble import BadWeight
from plar.engines.spark.session import errors_in_parts, explained, quiet
from plar.errors import NoRows
from plar.input.roles import Roles
from plar.input.tables.frames import FrameSource
from plar.input.tables.source import RowSource
from plar.input.tables.spark import plain, select_places
from plar.runtime.parallel import threads

#: what a task does with some rows of the table, given the roles of their columns; nothing if it raises NoRows
Work: TypeAlias = Callable[[RowSource, Roles], Iterator[Any]]

#: up to this many columns Spark groups the rows of a DataFrame first, so that fewer reach Python
_MAX_COLUMNS_TO_GROUP = 100
#: the column of their counts
_COUNT_NAME = "\0count"
#: a task takes about this many cells of a DataFrame at a time
_CELLS_PER_CHUNK = 1 << 24


class DistributedFiles:
    """Files, in parts that the tasks read."""

    #: whether a task can read a part again by itself
    can_be_read_again = True

    def __init__(self, parts: Sequence[RowSource], context: SparkContext) -> None:
        self._parts = parts
        self.context = context
        self.n_parts = len(parts)

    def run(self, work: Work, roles: Roles) -> RDD[Any]:
        """Run `work` on every part; cores that would be idle become extra threads."""
        n_threads = max(1, self.context.defaultParallelism // self.n_parts)
        task = partial(_on_part, work=work, roles=roles, n_threads=n_threads)
        return self.context.parallelize(self._parts, self.n_parts).flatMap(task)


class DistributedFrame:
    """A Spark DataFrame; its rows pass through the JVM."""

    can_be_read_again = False

    def __init__(self, frame: DataFrame, names: Sequence[str]) -> None:
        self._frame = frame
        self._names = names
        self.context = frame.sparkSession.sparkContext
        with explained("read the table"):
            self.n_parts = frame.rdd.getNumPartitions()

    def run(self, work: Work, roles: Roles) -> RDD[Any]:
        """Run `work` on every partition, some rows at a time."""
        names = list(roles.read)
        with explained("read the table"), quiet():
            used = self._used(names)
            if roles.weights is None and len(names) <= _MAX_COLUMNS_TO_GROUP:
                used = used.groupBy(*used.columns).count()
                roles = replace(roles, weights=_COUNT_NAME, weights_count_rows=True)
                names.append(_COUNT_NAME)
            task = partial(_on_batches, work=work, roles=roles, names=names)
            pickled: RDD[Any] = used.mapInArrow(task, "result binary").rdd
        return pickled.map(lambda row: pickle.loads(row[0]))  # pickled by a task of this run

    def _used(self, names: Sequence[str]) -> DataFrame:
        """The columns of these names, numbered, with their values as they compare."""
        used = select_places(self._frame, [self._names.index(name) for name in names])
        numbered = used.toDF(*(f"c{j}" for j in range(len(names))))
        # grouping by a collation would merge spellings and keep that of any row
        columns = [plain(numbered[field.name], field.dataType).alias(field.name) for field in numbered.schema.fields]
        return numbered.select(*columns)


#: all rows of a table, for the tasks of a cluster
DistributedTable: TypeAlias = DistributedFiles | DistributedFrame


def _on_part(source: RowSource, work: Work, roles: Roles, n_threads: int) -> Iterator[Any]:
    if "polars" not in sys.modules:  # which reads this once, on import
        os.environ.setdefault("POLARS_MAX_THREADS", str(n_threads))
    # the driver warns, for the whole table
    with errors_in_parts(), threads(n_threads), warnings.catch_warnings(action="ignore"):
        try:
            yield from work(source, roles)
        except NoRows:
            return  # other parts may have some
        except BadWeight as error:
            if ", line " in str(error):
                raise
            raise BadWeight(error.value, f"column {roles.weights!r}") from None  # row numbers are those of the part


def _on_batches(batches: Iterable[Any], work: Work, roles: Roles, names: Sequence[str]) -> Iterator[Any]:
    """Run `work` on the rows of a partition; its results are pickled."""
    import polars as pl
    import pyarrow as pa

    for chunk in _chunks(batches, len(names)):
        frame = pl.DataFrame(pa.Table.from_batches(chunk).rename_columns(names))
        for result in _on_part(FrameSource(frame, tuple(names)), work, roles, 1):
            yield pa.RecordBatch.from_pydict({"result": [pickle.dumps(result, 5)]})


def _chunks(batches: Iterable[Any], width: int) -> Iterator[list[Any]]:
    """Gather batches of `width` columns until there are enough cells."""
    chunk: list[Any] = []
    n_rows = 0
    for batch in batches:
        chunk.append(batch)
        n_rows += batch.num_rows
        if n_rows * width >= _CELLS_PER_CHUNK:
            yield chunk
            chunk = []
            n_rows = 0
    if n_rows:
        yield chunk
