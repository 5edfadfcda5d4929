"""What the search for rules did without being asked for, in a line each; they are part of its result."""

from __future__ import annotations

from collections.abc import Collection

from plar.granules.granules import Granules
from plar.input.tables import DecisionTable
from plar.search.selection_notes import n_dropped, on_cuts, on_dropped, on_index, on_rows


def notes_on(granules: Granules, table: DecisionTable, left_out: Collection[str]) -> list[str]:
    """The notes on a search: rows and columns that were left out, and columns that were cut."""
    cut = [name for name in granules.conditions if name in granules.cuts and name not in table.cut_before]
    notes = [
        on_rows(granules.n_without_decision),
        on_dropped(n_dropped(granules, table)),
        on_index(list(left_out), "attributes"),
        on_cuts(cut, table.settings()["bins"]),
    ]
    return [note for note in notes if note]
