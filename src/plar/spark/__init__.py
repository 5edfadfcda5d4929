"""Spark ML: `ReductSelector`, an Estimator, and `ReductSelectorModel`, what its fit returns."""

from __future__ import annotations

from plar.errors import EngineUnavailable

try:
    from plar.spark.selector import ReductSelector, ReductSelectorModel
except ModuleNotFoundError as error:
    missing = (error.name or "pyspark").partition(".")[0]
    raise EngineUnavailable(f"plar.spark needs {missing}. Install it: pip install 'plar[spark]'.") from None

__all__ = ["ReductSelector", "ReductSelectorModel"]
