"""The Spark engine. `granulate` makes pieces of granules; `columns_layout` and `rows_layout` are their two layouts."""

from __future__ import annotations

from plar.engines.spark.engine import SparkEngine
from plar.engines.spark.session import why_unavailable
from plar.engines.spark.spark_granules import SparkGranules

__all__ = ["SparkEngine", "SparkGranules", "why_unavailable"]
