"""Exact, fast attribute reduction (rough-set feature selection) for decision tables of any size.

>>> import plar
>>> plar.reduce({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "d": ["N", "Y", "N", "Y"]}, decision="d").attributes
('b',)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plar import datasets, engines, measures
    from plar.api import core, granulate, read_table, reduce, significance, theta
    from plar.errors import (
        EngineUnavailable,
        Interrupted,
        MemoryLimitExceeded,
        ParameterError,
        PlarError,
        PlarWarning,
        TableError,
        UnknownNameError,
    )
    from plar.granules import Granules
    from plar.measures import Measure
    from plar.reduct import Certificate, Reduct, Step, load
    from plar.tables import DecisionTable

__version__ = "0.1.0"

__all__ = [
    "Certificate",
    "DecisionTable",
    "EngineUnavailable",
    "Granules",
    "Interrupted",
    "Measure",
    "MemoryLimitExceeded",
    "ParameterError",
    "PlarError",
    "PlarWarning",
    "Reduct",
    "Step",
    "TableError",
    "UnknownNameError",
    "core",
    "datasets",
    "engines",
    "granulate",
    "load",
    "measures",
    "read_table",
    "reduce",
    "significance",
    "theta",
]

_HOMES = {
    "api": ("core", "granulate", "read_table", "reduce", "significance", "theta"),
    "errors": (
        "EngineUnavailable",
        "Interrupted",
        "MemoryLimitExceeded",
        "ParameterError",
        "PlarError",
        "PlarWarning",
        "TableError",
        "UnknownNameError",
    ),
    "granules": ("Granules",),
    "measures": ("Measure",),
    "reduct": ("Certificate", "Reduct", "Step", "load"),
    "tables": ("DecisionTable",),
}


def __getattr__(name: str) -> Any:
    # Names are fetched when they are first used: numba and polars take longer to import than most tables to reduce.
    if name in ("baselines", "bins", "datasets", "engines", "measures"):
        return import_module(f"plar.{name}")
    for module, names in _HOMES.items():
        if name in names:
            found = globals()[name] = getattr(import_module(f"plar.{module}"), name)
            return found
    raise AttributeError(f"module 'plar' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
