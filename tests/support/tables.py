"""Tables for the tests: any data opened with the options of reading given by name."""

from __future__ import annotations

from typing import Any

from plar.input.tables import DecisionTable, open_table
from plar.options import ReadOptions

__all__ = ["as_table"]


def as_table(data: Any, decision: Any = None, y: Any = None, **reading: Any) -> DecisionTable:
    return open_table(data, ReadOptions(decision, y, **reading))
