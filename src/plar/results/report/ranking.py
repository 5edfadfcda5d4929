"""Every column of the table in one ranking: the chosen ones, what could stand in for them, and the rest."""

from __future__ import annotations

import math
from collections.abc import Container
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from plar.results.report.words import aligned, chosen

if TYPE_CHECKING:
    from plar.results.reduct import Reduct

#: why a column is not chosen, in the order of the ranking, and what a list of such columns is called
REASONS = {
    "core, left out": "core columns left out",
    "removed": "removed at the end",
    "same as": "same as a chosen column",
    "as good as": "as good as a chosen column",
    "not chosen": "not chosen",
    "not needed": "not needed",
    "chance": "no gain beyond chance",
    "excluded": "excluded",
    "no useful cut": "no useful cut found",
    "constant": "constant, so in no reduct",
}


@dataclass(frozen=True, slots=True)
class RankedColumn:
    """A column of the table, as the ranking shows it."""

    name: str
    #: why it is chosen, or one of `REASONS`
    role: str
    #: the chosen column that the role refers to
    of: str | None
    gain: float | None
    gain_text: str
    #: the gain in the first round
    first_gain: float | None
    first_gain_text: str
    #: its place in the table, from 1
    place: int
    n_values: int | None
    n_missing: int


class Role(NamedTuple):
    """Why a column is chosen or not, and the chosen column that this refers to."""

    name: str
    of: str | None = None


def ranked(reduct: Reduct) -> list[RankedColumn]:
    """All columns, best first: their role, the column that this role refers to, and their gains.

    >>> import plar
    >>> table = {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "copy": [1, 0, 1, 0], "c": [7, 7, 7, 7], "d": [0, 1, 1, 0]}
    >>> [(column.name, column.role, column.of) for column in ranked(plar.reduce(table, "d", equivalent=True))]
    [('a', 'core', None), ('b', 'step 1', None), ('copy', 'same as', 'b'), ('c', 'constant', None)]
    """
    first_gains = reduct.steps[0].candidates if reduct.steps else {}
    first_gain_texts = dict(zip(first_gains, aligned(list(first_gains.values())), strict=True))
    places = {name: place for place, name in enumerate(reduct.conditions, 1)}

    def ranked_column(name: str, role: Role, gain: float | None, gain_text: str) -> RankedColumn:
        return RankedColumn(
            name=name,
            role=role.name,
            of=role.of,
            gain=gain,
            gain_text=gain_text,
            first_gain=first_gains.get(name),
            first_gain_text=first_gain_texts.get(name, "–"),
            place=places[name],
            n_values=reduct.cardinalities.get(name),
            n_missing=reduct.missing.get(name, 0),
        )

    core: list[RankedColumn] = []
    added: list[RankedColumn] = []
    for column in chosen(reduct):
        role = Role(f"{column.part}, removable" if column.removable else column.part)
        group = core if column.part == "core" else added
        group.append(ranked_column(column.name, role, column.gain, column.gain_text))
    # what was added stays in the order of the steps, whose gains are not comparable
    core.sort(key=_falling_gain)

    role_order = {role: place for place, role in enumerate(REASONS)}
    gains = {**reduct.core_significances, **first_gains}
    rest = [ranked_column(name, role, None, "–") for name, role in _roles_of_the_rest(reduct).items()]
    rest.sort(key=lambda column: (role_order[column.role], -gains.get(column.name, 0.0)))
    return [*core, *added, *rest]


def _falling_gain(column: RankedColumn) -> float:
    """What sorts columns by falling gain, those of unknown gain first."""
    return -math.inf if column.gain is None else -column.gain


def _roles_of_the_rest(reduct: Reduct) -> dict[str, Role]:
    """Say why each of the other columns is not chosen."""
    chosen_names = set(reduct.attributes)
    same_as = _chosen_equals(reduct)
    as_good_as = {name: step.attribute for step in reduct.steps if step.attribute in chosen_names for name in step.ties}
    constant = {name for name, n_values in reduct.cardinalities.items() if n_values == 1}
    # a column has the first role that fits
    names_by_role: dict[str, Container[str]] = {
        "no useful cut": {name for name in constant if name in reduct.cuts},
        "constant": constant,
        "excluded": set(reduct.settings.get("exclude") or ()),
        "core, left out": set(reduct.core),
        "removed": {step.attribute for step in reduct.steps}.union(reduct.change.dropped if reduct.change else ()),
        "same as": same_as,
        "as good as": as_good_as,
        "chance": reduct.rejected,
    }
    otherwise = "not needed" if reduct.certificate.preserved else "not chosen"
    roles = {}
    for name in reduct.conditions:
        if name in chosen_names:
            continue
        role = next((role for role, names in names_by_role.items() if name in names), otherwise)
        of = None
        if role == "same as":
            of = same_as[name]
        elif role == "as good as":
            of = as_good_as[name]
        roles[name] = Role(role, of)
    return roles


def _chosen_equals(reduct: Reduct) -> dict[str, str]:
    """For each column that is equal to chosen ones, the first of these."""
    chosen_names = set(reduct.attributes)
    equals: dict[str, str] = {}
    for group in reduct.equivalent or ():
        first_chosen = next((name for name in group if name in chosen_names), None)
        if first_chosen is not None:
            equals |= dict.fromkeys(group, first_chosen)
    return equals
