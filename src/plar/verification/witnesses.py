"""Whether two rows of a table prove a clause; `plar.verify` asks it of a proof, a resumed search of its checkpoint."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import gcd
from typing import NamedTuple, TypeAlias

from plar.engines.clauses import ClauseFinder
from plar.measures import ENTROPY, PURE, Measure

#: of a class of U/C: its decision, what stands for all impure classes, its proportions, or its number
Label: TypeAlias = int | str | tuple[tuple[int, int], ...]


class Witnesses(NamedTuple):
    """The attributes of a clause, and the two rows that are said to prove it, spelled by `spell_json`."""

    attributes: Collection[int]
    row: tuple[bytes, ...]
    other: tuple[bytes, ...]


def first_false(clauses: Sequence[Witnesses], clause_finder: ClauseFinder, measure: Measure) -> tuple[int, str] | None:
    """The number of the first clause that its rows do not prove, and why; None if all hold.

    The rows must differ in exactly the attributes, be in the table, and have different labels.
    """
    for i, (attributes, row, other) in enumerate(clauses):
        differing = {a for a, (value, another) in enumerate(zip(row, other, strict=True)) if value != another}
        if not differing or differing != set(attributes):
            return i, "its rows do not differ in all columns"
    # many clauses share their rows
    rows = list(dict.fromkeys(row for clause in clauses for row in (clause.row, clause.other)))
    decisions = dict(zip(rows, clause_finder.decisions(rows), strict=True))
    for i, (_, row, other) in enumerate(clauses):
        first = decisions[row]
        second = decisions[other]
        if not first or not second:
            return i, "the table has no such row"
        if _label(measure, first, 2 * i) == _label(measure, second, 2 * i + 1):
            return i, "its two rows need not be separated"
    return None


def _label(measure: Measure, decisions: Mapping[int, int], number: int) -> Label:
    """The label of a class of U/C by its decisions; `number` where every impure class has its own."""
    if len(decisions) == 1:
        return next(iter(decisions))
    if measure.kind == PURE:
        return "*"
    if measure.kind == ENTROPY:
        divisor = gcd(*decisions.values())
        return tuple(sorted((d, n // divisor) for d, n in decisions.items()))
    return f"class {number}"
