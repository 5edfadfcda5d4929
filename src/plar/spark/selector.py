"""Attribute reduction as a pipeline stage, computed on the cluster by the Spark engine."""
# ruff: noqa: N802  (Spark ML spells its names so)

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any, Self

from pyspark import keyword_only
from pyspark.ml import Estimator, Model
from pyspark.ml.feature import VectorAssembler
from pyspark.ml.linalg import VectorUDT
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import HasInputCols, HasLabelCol, HasWeightCol
from pyspark.ml.util import DefaultParamsReadable, DefaultParamsReader, DefaultParamsWritable, DefaultParamsWriter
from pyspark.sql.types import IntegerType, StructField, StructType

from plar.bins import Cuts
from plar.engines.spark import SparkEngine
from plar.errors import TableError
from plar.input.tables.table import select_columns
from plar.measures import as_measure
from plar.options import OPTIONS, ReadOptions, RunOptions, SearchOptions, param_name, wants_bins
from plar.reduct_search.find import find_reduct
from plar.results.reduct import Reduct, from_dict
from plar.session.session import Session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def _rule(value: Any) -> Any:
    if isinstance(value, (str, Mapping, list, tuple)):
        return value
    raise TypeError(f"Could not convert {value!r} to a rule of bins")


def _costs(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(dict(value))
    if not isinstance(json.loads(text), dict):
        raise TypeError(f"Could not convert {value!r} to costs by column")
    return text


#: the options of plar that are Params, and how their values are converted
_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "decision": TypeConverters.toString,
    "conditions": TypeConverters.toListString,
    "weights": TypeConverters.toString,
    "include": TypeConverters.toListString,
    "epsilon": TypeConverters.toFloat,
    "tolerance": TypeConverters.toFloat,
    "max_attributes": TypeConverters.toInt,
    "missing": TypeConverters.toString,
    "missing_decision": TypeConverters.toString,
    "na": TypeConverters.toListString,
    "bins": _rule,
    "decision_bins": _rule,
    "minimal": TypeConverters.toBoolean,
    "alpha": TypeConverters.toFloat,
    "start": TypeConverters.toString,
    "search": TypeConverters.toString,
    "costs": _costs,
    "exclude": TypeConverters.toListString,
    "time_limit": TypeConverters.toString,
}
#: Params of the stage itself: how their values are converted, and what they mean
_OF_THE_STAGE: dict[str, tuple[Callable[[Any], Any], str]] = {
    "measure": (TypeConverters.toString, "What is preserved: 'SCE', 'PR', 'LCE' or 'CCE'."),
    "outputCol": (
        TypeConverters.toString,
        "A vector of the selected columns, for stages that take one; if not set, none is made.",
    ),
    "output": (TypeConverters.toString, "What transform gives: 'values' as they are, or 'bins' where they were cut."),
    "layout": (
        TypeConverters.toString,
        "How granules lie on the cluster, which changes no result: 'auto', 'columns' or 'rows'.",
    ),
    "partitions": (
        TypeConverters.toInt,
        "Partitions of the granules, which change no result; if not set, by cores and data.",
    ),
}


class _ReductParams(HasLabelCol, HasInputCols, HasWeightCol, DefaultParamsReadable[Any], DefaultParamsWritable):
    """The options of `plar.reduce`, as Params with getters."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self) -> None:
        super().__init__()
        defaults = {name: p.default for name, p in signature(ReductSelector).parameters.items()}
        self._setDefault(**{name: value for name, value in defaults.items() if value is not None})

    def _set(self, **given: Any) -> Self:
        """Set Params; None means not set, since a saved null could not be loaded."""
        for name in [name for name, value in given.items() if value is None]:
            self.clear(self.getParam(name))
            del given[name]
        super()._set(**given)
        return self

    def _value(self, name: str) -> Any:
        """Value of a Param; None if it is neither set nor has a default."""
        return self.getOrDefault(name) if self.isDefined(name) else None

    @classmethod
    def read(cls) -> _Reader:
        """Make a reader."""
        return _Reader(cls)


class _Reader(DefaultParamsReader[Any]):
    """Reads a stage of its own class only; for a model also the Reduct."""

    def load(self, path: str) -> Any:
        """Read the stage saved there."""
        stage = super().load(path)
        if not isinstance(stage, self.cls):
            other = type(stage).__name__
            raise TableError(f"{path!r} holds a {other}, not a {self.cls.__name__}. Load it with {other}.load.")
        if isinstance(stage, ReductSelectorModel):
            place = os.path.join(path, "data")
            line = self.sparkSession.read.text(place).first()
            try:
                stage._reduct = from_dict(json.loads(line[0] if line else ""), repr(place))
            except json.JSONDecodeError:
                raise TableError(f"{place!r} is not a saved reduct: it is not valid JSON.") from None
        return stage


class _ModelWriter(DefaultParamsWriter):
    """Writes Params to metadata, like every stage, and the Reduct to data: a line of JSON each."""

    instance: ReductSelectorModel

    def saveImpl(self, path: str) -> None:
        """Write the model through Spark, to where Spark writes."""
        super().saveImpl(path)
        line = json.dumps(self.instance.reduct.to_dict())
        rows = self.sparkSession.createDataFrame([(line,)], "value string")
        rows.coalesce(1).write.text(os.path.join(path, "data"))


class ReductSelectorModel(_ReductParams, Model):
    """What `ReductSelector.fit` returns: drops the columns that were not selected.

    `transform` keeps all rows, the selected columns and every column that was not in inputCols (label,
    weights, ids), with their values, or bins (`output`), in table order. Rows that were ignored in the fit
    (missing="drop", weight 0) stay too. With outputCol it adds a vector of the selected columns, in the order
    of `selected`.

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
        """The selected columns: the core in the order of inputCols, then as selected."""
        return self.reduct.attributes

    @property
    def core(self) -> tuple[str, ...]:
        """The columns that nothing can replace."""
        return self.reduct.core

    def setOutputCol(self, value: str | None) -> ReductSelectorModel:
        """Set outputCol."""
        return self._set(outputCol=value)

    def transformSchema(self, schema: StructType) -> StructType:
        """Schema of what `transform` returns."""
        cuts = self._cuts()
        fields = [
            StructField(name, IntegerType()) if name in cuts else schema[name] for name in self._kept(schema.names)
        ]
        output = self._value("outputCol")
        return StructType([*fields, StructField(output, VectorUDT())] if output else fields)

    def _transform(self, dataset: DataFrame) -> DataFrame:
        options = ReadOptions(na=self.reduct.settings.get("na"))
        names = self._kept(dataset.columns)
        selected: DataFrame = select_columns(dataset, names, cuts=self._cuts(), options=options)
        output = self._value("outputCol")
        if not output:
            return selected
        return VectorAssembler(inputCols=list(self.selected), outputCol=output).transform(selected)

    def _cuts(self) -> dict[str, Cuts]:
        cuts = self.reduct.cuts if wants_bins(self._value("output")) else {}
        return {name: cuts[name] for name in self.selected if name in cuts}

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


class ReductSelector(_ReductParams, Estimator["ReductSelectorModel"]):
    """Selects the columns that carry as much information about the label as all of them together.

    The parameters are those of `plar.reduce` under Spark ML's names, each with a getter and a setter; all are
    given by name, and one that is None is not set. Columns compare by value, so vectors and other nested
    types cannot be selected.

    Parameters
    ----------
    labelCol : str
        The decision.
    inputCols : list of str, optional
        The columns to choose from; by default all except label and weights. Leave ids out: an id identifies
        every row. Ties, core and trace follow their order.
    weightCol : str, optional
        Whole numbers: how often each row counts; 0 leaves it out of the fit.
    outputCol : str, optional
        A vector of the selected columns, which must be numbers, for the stages that take one.
    measure : {"SCE", "PR", "LCE", "CCE"}
    include : list of str
        Columns to always include.
    epsilon, tolerance : float
    maxAttributes : int, optional
    missing : {"value", "drop", "error"}
    missingDecision : {"value", "drop", "error"}
        What happens to rows without a label: a class of their own, dropped, or an error.
    na : list of str, optional
        Further texts and numbers that mean missing, beside the usual ones ("", "NA", "null", …); none at all
        if empty.
    bins : str or mapping, optional
        How numbers are compared in `fit`.
    decisionBins : str or list of float, optional
        Cut a label of numbers into classes.
    output : {"values", "bins"}
        Whether `transform` keeps the values as they are, or gives the numbers of their bins.
    minimal : bool
    alpha : float, optional
        Select only columns that beat chance at this level.
    start : {"core", "empty"}, optional
    search : {"greedy", "smallest"}
    costs : mapping of str to int, or its JSON, optional
    exclude : list of str
    timeLimit : str, optional
    layout : {"auto", "columns", "rows"}
    partitions : int, optional
        Options of `plar.engines.SparkEngine`; the result does not depend on them.

    Notes
    -----
    `fit` needs a classic Spark session, and refuses Spark Connect. `ReductSelectorModel.transform` works with either.
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
        missingDecision: str = "value",
        na: Sequence[str] | None = None,
        bins: str | Mapping[str, str] | None = None,
        decisionBins: str | Sequence[float] | None = None,
        output: str = "values",
        minimal: bool = False,
        alpha: float | None = None,
        start: str | None = None,
        search: str = "greedy",
        costs: str | Mapping[str, int] | None = None,
        exclude: Sequence[str] = (),
        timeLimit: str | None = None,
        layout: str = "auto",
        partitions: int | None = None,
    ) -> None:
        super().__init__()
        self._set(**self._input_kwargs)

    def setParams(self, **given: Any) -> ReductSelector:
        """Set the Params that are given."""
        return self._set(**given)

    def _fit(self, dataset: DataFrame) -> ReductSelectorModel:
        engine = SparkEngine(
            session=dataset.sparkSession, partitions=self._value("partitions"), layout=self._value("layout")
        )
        reading = ReadOptions(
            decision=self._value("labelCol"),
            conditions=self._value("inputCols"),
            weights=self._value("weightCol") or None,  # empty means none in Spark ML
            missing=self._value("missing"),
            missing_decision=self._value("missingDecision"),
            na=self._value("na"),
            bins=self._value("bins"),
            decision_bins=self._value("decisionBins"),
        )
        costs = self._value("costs")
        options = SearchOptions(
            include=self._value("include"),
            epsilon=self._value("epsilon"),
            tolerance=self._value("tolerance"),
            max_attributes=self._value("maxAttributes"),
            minimal=self._value("minimal"),
            alpha=self._value("alpha"),
            start=self._value("start"),
            search=self._value("search"),
            costs=json.loads(costs) if costs else None,
            exclude=self._value("exclude"),
        )
        run = RunOptions(engine=engine, time_limit=self._value("timeLimit"))
        with Session(dataset, reading, run) as session:
            reduct = find_reduct(session, as_measure(self._value("measure")), options)
        return self._copyValues(ReductSelectorModel(reduct)._resetUid(self.uid))


def _add_param(name: str, convert: Callable[[Any], Any], meaning: str) -> None:
    """Give both stages a Param and its getter, and the estimator its setter, under Spark ML's names."""
    word = name[0].upper() + name[1:]
    setattr(_ReductParams, name, Param(Params._dummy(), name, meaning, convert))
    setattr(_ReductParams, f"get{word}", lambda self: self.getOrDefault(name))
    setattr(ReductSelector, f"set{word}", lambda self, value: self._set(**{name: value}))


for _option, _convert in _CONVERTERS.items():
    _add_param(param_name(_option), _convert, OPTIONS[_option].help)
for _name, (_convert, _meaning) in _OF_THE_STAGE.items():
    _add_param(_name, _convert, _meaning)
