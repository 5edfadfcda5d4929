"""Any data that hold a decision table: one class a kind, which names, codes, selects and writes its columns."""

from __future__ import annotations

from plar.input.tables.table import DecisionTable, open_table

__all__ = ["DecisionTable", "open_table"]
