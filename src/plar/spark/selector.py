"""Attribute reduction as a stage of a pipeline, computed on the cluster by the Spark engine."""
# ruff: noqa: N802  (Spark ML spells its names so)

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyspark import keyword_only
from pyspark.ml import Estimator, Model
from pyspark.ml.feature import VectorAssembler
from pyspark.ml.linalg import VectorUDT
from pyspark.ml.util import DefaultParamsReadable, DefaultParamsReader, DefaultParamsWritable, DefaultParamsWriter
from pyspark.sql.types import StructField, StructType

from plar.api import reduce
from plar.engines.spark import SparkEngine
from plar.errors import TableError
from plar.reduct import Reduct, from_dict
from plar.spark.params import ReductParams
from plar.tables.table import select_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["ReductSelector", "ReductSelectorModel"]


class _Reader(DefaultParamsReader[Any]):
    """Reads a stage, and nothing but a stage of its own class."""

    def load(self, path: str) -> Any:
        """Read the stage that is saved there."""
        found = super().load(path)
        if not isinstance(found, self.cls):
            other = type(found).__name__
            raise TableError(f"{path!r} holds a {other}, not a {self.cls.__name__}. Load it with {other}.load.")
        return found


class _ModelReader(_Reader):
    """Reads Params, then the Reduct."""

    def load(self, path: str) -> ReductSelectorModel:
        """Read the model that is saved there."""
        model: ReductSelectorModel = super().load(path)
        model._reduct = _read_reduct(self.sparkSession, os.path.join(path, "data"))
        return model


class _ModelWriter(DefaultParamsWriter):
    """Writes Params to metadata, as every stage does, and the Reduct to data: a line of JSON each."""

    instance: ReductSelectorModel

    def saveImpl(self, path: str) -> None:
        """Write the model, through Spark, so that it lands where Spark writes."""
        super().saveImpl(path)
        line = json.dumps(self.instance.reduct.to_dict())
        rows = self.sparkSession.createDataFrame([(line,)], "value string")
        rows.coalesce(1).write.text(os.path.join(path, "data"))


def _read_reduct(session: SparkSession, path: str) -> Reduct:
    line = session.read.text(path).first()
    if line is None:
        raise TableError(f"{path!r} is empty. Save the model again.")
    try:
        return from_dict(json.loads(line[0]), repr(path))
    except ValueError:
        raise TableError(f"{path!r} is not a saved reduct: it is no valid JSON.") from None


class ReductSelectorModel(
    Model,
    ReductParams,
    DefaultParamsReadable["ReductSelectorModel"],
    DefaultParamsWritable,
):
    """What `ReductSelector.fit` returns: takes the conditions that were not selected away.

    `transform` keeps all rows, the selected conditions and every column that was no condition (label, weights, ids),
    with their values and in the order of the table. Rows that did not count in the fit (missing="drop", weight 0)
    stay too. With outputCol it adds a vector of the selected conditions, in the order of `selected`.

    Parameters
    ----------
    reduct : Reduct
        The result of `plar.reduce`; it holds the trace and the certificate.
    """

    def __init__(self, reduct: Reduct | None = None) -> None:
        super().__init__()
        self._reduct = reduct

    @property
    def reduct(self) -> Reduct:
        """The result, with its trace (`steps`) and certificate."""
        if self._reduct is None:
            raise TableError(
                "This model holds no reduct. Make one with ReductSelector.fit or ReductSelectorModel.load."
            )
        return self._reduct

    @property
    def selected(self) -> tuple[str, ...]:
        """The selected conditions: the core in the order of the conditions, then as selected."""
        return self.reduct.attributes

    @property
    def core(self) -> tuple[str, ...]:
        """The conditions that nothing can replace."""
        return self.reduct.core

    def setOutputCol(self, value: str) -> ReductSelectorModel:
        """Set outputCol."""
        return self._set(outputCol=value)

    def transformSchema(self, schema: StructType) -> StructType:
        """Schema of what `transform` returns."""
        fields = [schema[name] for name in self._kept(schema.names)]
        output = self._value(self.outputCol)
        return StructType([*fields, StructField(output, VectorUDT())] if output else fields)

    def _transform(self, dataset: DataFrame) -> DataFrame:
        kept: DataFrame = select_columns(dataset, self._kept(dataset.columns))
        output = self._value(self.outputCol)
        return VectorAssembler(inputCols=list(self.selected), outputCol=output).transform(kept) if output else kept

    def _kept(self, names: Sequence[str]) -> list[str]:
        lacking = [name for name in self.selected if name not in names]
        if lacking:
            raise TableError(
                f"The table has no column {lacking[0]!r}, which the model selected. Pass it on to the model."
            )
        gone = set(self.reduct.conditions).difference(self.selected)
        return [name for name in names if name not in gone]

    def write(self) -> _ModelWriter:
        """Make a writer; its `overwrite` and `session` are Spark's."""
        return _ModelWriter(self)

    @classmethod
    def read(cls) -> _ModelReader:
        """Make a reader."""
        return _ModelReader(cls)


class ReductSelector(
    Estimator["ReductSelectorModel"],
    ReductParams,
    DefaultParamsReadable["ReductSelector"],
    DefaultParamsWritable,
):
    """Selects the columns that tell as much about the label as all of them together.

    The parameters are those of `plar.reduce` under Spark ML's names; all are given by name, and one that is None is
    not set. Columns compare by value, so vectors and other nested types cannot be conditions.

    Parameters
    ----------
    labelCol : str
        The decision.
    inputCols : list of str, optional
        The conditions, which are the columns to choose from; by default all but label and weights. Leave ids out: an
        id tells every row apart. Ties, core and trace follow their order.
    weightCol : str, optional
        Whole-number multiplicities; 0 leaves the row out of the fit.
    outputCol : str, optional
        A vector of the selected columns, which are then numbers, for the stages that take one.
    measure : {"SCE", "PR", "LCE", "CCE"}
    include : list of str
        Conditions that must be selected.
    epsilon, tolerance : float
    maxAttributes : int, optional
    missing : {"value", "drop", "error"}
    na : list of str
    minimal : bool
    layout : {"auto", "columns", "rows"}
    partitions : int, optional
        These two are of `plar.engines.SparkEngine`; the result does not depend on them.

    Notes
    -----
    `fit` needs a classic Spark session; through Spark Connect it says so. `ReductSelectorModel.transform` needs none.
    """

    _input_kwargs: dict[str, Any]

    @keyword_only
    def __init__(
        self,
        *,
        labelCol: str = "label",
        inputCols: Sequence[str] | None = None,
        weightCol: str | None = None,
        outputCol: str | None = None,
        measure: str = "SCE",
        include: Sequence[str] = (),
        epsilon: float = 0.0,
        tolerance: float = 0.0,
        maxAttributes: int | None = None,
        missing: str = "value",
        na: Sequence[str] = (),
        minimal: bool = False,
        layout: str = "auto",
        partitions: int | None = None,
    ) -> None:
        super().__init__()
        self._set(**self._input_kwargs)

    @keyword_only
    def setParams(
        self,
        *,
        labelCol: str = "label",
        inputCols: Sequence[str] | None = None,
        weightCol: str | None = None,
        outputCol: str | None = None,
        measure: str = "SCE",
        include: Sequence[str] = (),
        epsilon: float = 0.0,
        tolerance: float = 0.0,
        maxAttributes: int | None = None,
        missing: str = "value",
        na: Sequence[str] = (),
        minimal: bool = False,
        layout: str = "auto",
        partitions: int | None = None,
    ) -> ReductSelector:
        """Set the Params that are given."""
        return self._set(**self._input_kwargs)

    def setLabelCol(self, value: str) -> ReductSelector:
        """Set labelCol."""
        return self._set(labelCol=value)

    def setInputCols(self, value: Sequence[str] | None) -> ReductSelector:
        """Set inputCols."""
        return self._set(inputCols=value)

    def setWeightCol(self, value: str | None) -> ReductSelector:
        """Set weightCol."""
        return self._set(weightCol=value)

    def setOutputCol(self, value: str | None) -> ReductSelector:
        """Set outputCol."""
        return self._set(outputCol=value)

    def setMeasure(self, value: str) -> ReductSelector:
        """Set measure."""
        return self._set(measure=value)

    def setInclude(self, value: Sequence[str]) -> ReductSelector:
        """Set include."""
        return self._set(include=value)

    def setEpsilon(self, value: float) -> ReductSelector:
        """Set epsilon."""
        return self._set(epsilon=value)

    def setTolerance(self, value: float) -> ReductSelector:
        """Set tolerance."""
        return self._set(tolerance=value)

    def setMaxAttributes(self, value: int | None) -> ReductSelector:
        """Set maxAttributes."""
        return self._set(maxAttributes=value)

    def setMissing(self, value: str) -> ReductSelector:
        """Set missing."""
        return self._set(missing=value)

    def setNa(self, value: Sequence[str]) -> ReductSelector:
        """Set na."""
        return self._set(na=value)

    def setMinimal(self, value: bool) -> ReductSelector:
        """Set minimal."""
        return self._set(minimal=value)

    def setLayout(self, value: str) -> ReductSelector:
        """Set layout."""
        return self._set(layout=value)

    def setPartitions(self, value: int | None) -> ReductSelector:
        """Set partitions."""
        return self._set(partitions=value)

    def _fit(self, dataset: DataFrame) -> ReductSelectorModel:
        engine = SparkEngine(
            session=dataset.sparkSession, partitions=self._value(self.partitions), layout=self.getLayout()
        )
        reduct = reduce(
            dataset,
            self.getLabelCol(),
            conditions=self._value(self.inputCols),
            weights=self._value(self.weightCol) or None,  # empty means none in Spark ML
            measure=self.getMeasure(),
            engine=engine,
            include=self.getInclude(),
            epsilon=self.getEpsilon(),
            tolerance=self.getTolerance(),
            max_attributes=self._value(self.maxAttributes),
            missing=self.getMissing(),
            na=self.getNa(),
            minimal=self.getMinimal(),
        )
        return self._copyValues(ReductSelectorModel(reduct)._resetUid(self.uid))

    @classmethod
    def read(cls) -> _Reader:
        """Make a reader."""
        return _Reader(cls)
