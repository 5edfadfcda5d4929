"""The options of `plar.reduce` as Params of Spark ML, each with its type, its getter and what it means."""
# ruff: noqa: N802, N815  (Spark ML spells its names so)

from __future__ import annotations

from typing import Any, TypeVar

from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import HasInputCols, HasLabelCol, HasWeightCol

__all__ = ["ReductParams"]

P = TypeVar("P", bound="ReductParams")
R = TypeVar("R")

#: stands for the stage until there is one
_OWNER = Params._dummy()


class ReductParams(HasLabelCol, HasInputCols, HasWeightCol):
    """The options of `plar.reduce`, as Params."""

    labelCol: Param[str] = Param(_OWNER, "labelCol", "the decision", TypeConverters.toString)
    inputCols: Param[list[str]] = Param(
        _OWNER,
        "inputCols",
        "the conditions, which are the columns to choose from; if not set, all but label and weights. Ties, core and "
        "trace follow their order",
        TypeConverters.toListString,
    )
    weightCol: Param[str] = Param(
        _OWNER, "weightCol", "whole-number multiplicities; if not set, every row counts once", TypeConverters.toString
    )
    outputCol: Param[str] = Param(
        _OWNER,
        "outputCol",
        "a vector of the selected columns, for the stages that take one; if not set, none is made",
        TypeConverters.toString,
    )
    measure: Param[str] = Param(
        _OWNER, "measure", "what is preserved: 'SCE', 'PR', 'LCE' or 'CCE'", TypeConverters.toString
    )
    include: Param[list[str]] = Param(
        _OWNER, "include", "conditions that must be selected", TypeConverters.toListString
    )
    epsilon: Param[float] = Param(
        _OWNER,
        "epsilon",
        "the core holds the conditions of larger inner significance than this",
        TypeConverters.toFloat,
    )
    tolerance: Param[float] = Param(
        _OWNER, "tolerance", "stop when Θ(D|R) − Θ(D|C) is at most this", TypeConverters.toFloat
    )
    maxAttributes: Param[int] = Param(
        _OWNER, "maxAttributes", "stop at this many columns; if not set, at none", TypeConverters.toInt
    )
    missing: Param[str] = Param(
        _OWNER,
        "missing",
        "missing is a value of its own ('value'), or its rows do not count ('drop'), or it is an error ('error')",
        TypeConverters.toString,
    )
    na: Param[list[str]] = Param(_OWNER, "na", "further spellings of missing", TypeConverters.toListString)
    minimal: Param[bool] = Param(
        _OWNER, "minimal", "try to remove each selected column in the end", TypeConverters.toBoolean
    )
    layout: Param[str] = Param(
        _OWNER,
        "layout",
        "how the granules lie on the cluster: 'auto', 'columns' or 'rows'; the result does not depend on it",
        TypeConverters.toString,
    )
    partitions: Param[int] = Param(
        _OWNER,
        "partitions",
        "pieces that the granules are held in; if not set, by cores and data; the result does not depend on it",
        TypeConverters.toInt,
    )

    def __init__(self) -> None:
        super().__init__()
        self._setDefault(
            measure="SCE",
            include=[],
            epsilon=0.0,
            tolerance=0.0,
            missing="value",
            na=[],
            minimal=False,
            layout="auto",
        )

    def _set(self: P, **given: Any) -> P:
        """Set Params; None means not set, since a saved null could not be loaded."""
        for name in [name for name, value in given.items() if value is None]:
            self.clear(self.getParam(name))
            del given[name]
        super()._set(**given)
        return self

    def _value(self, param: Param[R]) -> R | None:
        """Value of a Param; None if it is neither set nor has a default."""
        return self.getOrDefault(param) if self.isDefined(param) else None

    def getOutputCol(self) -> str:
        """Value of outputCol."""
        return self.getOrDefault(self.outputCol)

    def getMeasure(self) -> str:
        """Value of measure."""
        return self.getOrDefault(self.measure)

    def getInclude(self) -> list[str]:
        """Value of include."""
        return self.getOrDefault(self.include)

    def getEpsilon(self) -> float:
        """Value of epsilon."""
        return self.getOrDefault(self.epsilon)

    def getTolerance(self) -> float:
        """Value of tolerance."""
        return self.getOrDefault(self.tolerance)

    def getMaxAttributes(self) -> int:
        """Value of maxAttributes."""
        return self.getOrDefault(self.maxAttributes)

    def getMissing(self) -> str:
        """Value of missing."""
        return self.getOrDefault(self.missing)

    def getNa(self) -> list[str]:
        """Value of na."""
        return self.getOrDefault(self.na)

    def getMinimal(self) -> bool:
        """Value of minimal."""
        return self.getOrDefault(self.minimal)

    def getLayout(self) -> str:
        """Value of layout."""
        return self.getOrDefault(self.layout)

    def getPartitions(self) -> int:
        """Value of partitions."""
        return self.getOrDefault(self.partitions)
