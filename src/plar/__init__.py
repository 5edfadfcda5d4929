"""Exact, fast attribute reduction (rough-set feature selection) for decision tables of any size.

>>> import plar
>>> plar.reduce({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "d": ["N", "Y", "N", "Y"]}, decision="d").attributes
('b',)
"""

from __future__ import annotations

from plar import engines
from plar.api import core, granulate, reduce, significance, theta
from plar.errors import EngineUnavailable, PlarError, TableError, UnknownNameError
from plar.granules import Granules
from plar.measures import Measure
from plar.reduct import Certificate, Reduct, Step, load
from plar.table import DecisionTable, read_table

__version__ = "0.1.0"

__all__ = [
    "Certificate",
    "DecisionTable",
    "EngineUnavailable",
    "Granules",
    "Measure",
    "PlarError",
    "Reduct",
    "Step",
    "TableError",
    "UnknownNameError",
    "core",
    "engines",
    "granulate",
    "load",
    "read_table",
    "reduce",
    "significance",
    "theta",
]
