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
from plar.runtime.interrupts import SafeInterrupts

if TYPE_CHECKING:
    from plar import datasets, engines, measures
    from plar.api import (
        approximations,
        check,
        core,
        granulate,
        read_table,
        reduce,
        relevant,
        rules,
        select,
        significance,
        theta,
    )
    from plar.granules.granules import Granules
    from plar.input.tables import DecisionTable
    from plar.measures import Measure
    from plar.reduct_search.all_reducts import reducts
    from plar.results.approximations import Approximations
    from plar.results.check import Check
    from plar.results.loading import load
    from plar.results.proof import Proof
    from plar.results.reduct import Certificate, Reduct, Step
    from plar.results.reduct_list import Reducts
    from plar.results.relevant import Relevant
    from plar.results.rules import Condition, Rule, Rules
    from plar.results.selection import Selection
    from plar.verification.checker import verify

__version__ = "0.1.0"

__all__ = [
    "Approximations",
    "Certificate",
    "Check",
    "Condition",
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
    "Rule",
    "Rules",
    "Selection",
    "Step",
    "TableError",
    "UnknownNameError",
    "approximations",
    "check",
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
    "rules",
    "select",
    "significance",
    "theta",
    "verify",
]

#: the module of each public name
_HOMES = {
    "approximations": "api",
    "Approximations": "results.approximations",
    "check": "api",
    "Check": "results.check",
    "core": "api",
    "granulate": "api",
    "read_table": "api",
    "reduce": "api",
    "significance": "api",
    "theta": "api",
    "Certificate": "results.reduct",
    "Reduct": "results.reduct",
    "Step": "results.reduct",
    "load": "results.loading",
    "Relevant": "results.relevant",
    "relevant": "api",
    "rules": "api",
    "Condition": "results.rules",
    "Rule": "results.rules",
    "Rules": "results.rules",
    "select": "api",
    "Selection": "results.selection",
    "Proof": "results.proof",
    "verify": "verification.checker",
    "Reducts": "results.reduct_list",
    "reducts": "reduct_search.all_reducts",
    "Granules": "granules",
    "Measure": "measures",
    "DecisionTable": "input.tables",
}


def __getattr__(name: str) -> Any:
    # Names are imported on first use: numba and polars take longer to import than most tables to reduce.
    if name in ("baselines", "bins", "datasets", "engines", "measures"):
        with SafeInterrupts():
            return import_module(f"plar.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'plar' has no attribute {name!r}")
    with SafeInterrupts():
        member = getattr(import_module(f"plar.{_HOMES[name]}"), name)
    globals()[name] = member
    return member


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
