"""What the search for rules did without being asked for, in a line each; they are part of its result."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from plar.bins import Rule, leaves_as_they_are
from plar.granules.granules import Granules
from plar.input.tables import DecisionTable
from plar.results.report.selection_text import listed
from plar.search.selection_notes import n_dropped, on_cuts, on_dropped, on_index, on_rows, on_unread, unread

#: columns that are named in a note
_SHOWN = 4
#: what `auto` cuts
_AUTO = Rule("auto", text=True)


def notes_on(granules: Granules, table: DecisionTable, left_out: Collection[str]) -> list[str]:
    """The notes on a search: rows and columns that were left out, and columns that were cut."""
    cut = [name for name in granules.conditions if name in granules.cuts and name not in table.cut_before]
    notes = [
        on_rows(granules.n_without_decision),
        on_dropped(n_dropped(granules, table)),
        on_index(list(left_out), "attributes"),
        on_cuts(cut, table.settings()["bins"]),
        _on_uncut(list(_uncut(granules, table.options.decimal))),
        on_unread(list(unread(granules))),
    ]
    return [note for note in notes if note]


def _on_uncut(names: Sequence[str]) -> str:
    """Columns of many numbers that were not cut: rules about single ones say little."""
    if not names:
        return ""
    what = "1 column of numbers or dates was"
    if len(names) > 1:
        what = f"{len(names):,} columns of numbers or dates were"
    return f"{what} compared for equality, not cut: {listed(names, _SHOWN)} (option bins)."


def _uncut(granules: Granules, decimal: str) -> Iterator[str]:
    """The columns that are not cut, although `auto` would cut them."""
    for name, values in zip(granules.conditions, granules.dictionaries, strict=True):
        if name not in granules.cuts and not leaves_as_they_are(_AUTO, name, values, len(values), decimal):
            yield name
