"""Exact, fast attribute reduction (rough-set feature selection) for decision tables of any size.

>>> import plar
>>> plar.reduce({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "d": ["N", "Y", "N", "Y"]}, decision="d").attributes
('b',)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from plar.errors import (
    EngineUnavailable,
    Interrupted,
    MemoryLimitExceeded,
    ParameterError,
    PlarError,
    PlarWarning,
    ProofError,
    TableError,
    UnknownNameError,
)
from plar.interrupts import SafeInterrupts

if TYPE_CHECKING:
    from plar import datasets, engines, measures
    from plar.all_reducts import reducts
    from plar.api import core, granulate, read_table, reduce, significance, theta
    from plar.granules import Granules
    from plar.measures import Measure
    from plar.proof import Proof
    from plar.reduct import Certificate, Reduct, Step, load
    from plar.reduct_list import Reducts
    from plar.relevance import Relevant, relevant
    from plar.tables import DecisionTable
    from plar.verification import verify

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
    "Proof",
    "ProofError",
    "Reduct",
    "Reducts",
    "Relevant",
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
    "reducts",
    "relevant",
    "significance",
    "theta",
    "verify",
]

_HOMES = {
    **dict.fromkeys(("core", "granulate", "read_table", "reduce", "significance", "theta"), "api"),
    **dict.fromkeys(("Certificate", "Reduct", "Step", "load"), "reduct"),
    **dict.fromkeys(("Relevant", "relevant"), "relevance"),
    **{"Proof": "proof", "verify": "verification", "Reducts": "reduct_list", "reducts": "all_reducts"},
    **{"Granules": "granules", "Measure": "measures", "DecisionTable": "tables"},
}


def __getattr__(name: str) -> Any:
    # Names are imported on first use: numba and polars take longer to import than most tables to reduce.
    if name in ("baselines", "bins", "datasets", "engines", "measures"):
        with SafeInterrupts():
            return import_module(f"plar.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'plar' has no attribute {name!r}")
    with SafeInterrupts():
        found = globals()[name] = getattr(import_module(f"plar.{_HOMES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
