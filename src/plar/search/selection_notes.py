"""What `plar.select` did without being asked for, in a line each; they are part of its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plar.engines.base import GranuleSet
from plar.results.selection import listed

#: a column that says this share of all there is to say may be the target in disguise
SHARE_OF_A_LEAK = 0.99
#: columns that a note names before it says how many more there are
_SHOWN = 4


def notes_on(granules: GranuleSet, bins: object, left_out: Mapping[str, str], alone: Mapping[str, float]) -> list[str]:
    """The notes on a search: rows and columns that were left out, columns that were cut, and what may leak the target.

    `bins` is the option, `left_out` says why columns are no candidates, and `alone` what each candidate says by itself.
    """
    index_like = [name for name in granules.index_like if name in left_out and left_out[name] != "excluded"]
    notes = [
        _on_rows(granules.n_without_decision),
        _on_index(index_like),
        _on_cuts([name for name in granules.conditions if name in granules.cuts and name not in left_out], bins),
        _on_leaks([name for name, share in alone.items() if share >= SHARE_OF_A_LEAK]),
    ]
    return [note for note in notes if note]


def _on_rows(n: int) -> str:
    if not n:
        return ""
    return "1 row without a target was left out." if n == 1 else f"{n:,} rows without a target were left out."


def _on_index(names: Sequence[str]) -> str:
    if not names:
        return ""
    what = "1 column that only numbers or names the rows was"
    if len(names) > 1:
        what = f"{len(names):,} columns that only number or name the rows were"
    return f"{what} left out: {listed(names, _SHOWN)} (option keep)."


def _on_cuts(names: Sequence[str], bins: object) -> str:
    if not names or bins != "auto":
        return ""
    what = "1 column of numbers or dates was"
    if len(names) > 1:
        what = f"{len(names):,} columns of numbers or dates were"
    return f"{what} compared in quartile bins: {listed(names, _SHOWN)} (option bins)."


def _on_leaks(names: Sequence[str]) -> str:
    if not names:
        return ""
    if len(names) == 1:
        return f"{listed(names)} alone says nearly everything about the target: does it leak it? (option exclude)"
    return f"{listed(names, _SHOWN)} each say nearly everything about the target: do they leak it? (option exclude)"
