"""Every column of the table in one ranking: the chosen ones, what could stand in for them, and the rest."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator
from typing import TYPE_CHECKING, Any

from plar.results.report.words import aligned, chosen

if TYPE_CHECKING:
    from plar.results.reduct import Reduct

#: why a column is not chosen, in the order of the ranking, and what a list of such columns is called
REASONS = {
    "core, left out": "core columns left out",
    "removed": "removed in the end",
    "same as": "same as a chosen column",
    "as good as": "as good as a chosen column",
    "not chosen": "not chosen",
    "not needed": "not needed",
    "chance": "no gain beyond chance",
    "excluded": "excluded",
    "no useful cut": "no useful cut found",
    "constant": "constant, so in no reduct",
}


def ranked(reduct: Reduct) -> list[dict[str, Any]]:
    """All columns, best first: their role, the column that this role refers to, and their gains.

    >>> import plar
    >>> table = {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "copy": [1, 0, 1, 0], "c": [7, 7, 7, 7], "d": [0, 1, 1, 0]}
    >>> [(row["name"], row["role"], row["of"]) for row in ranked(plar.reduce(table, "d", equivalent=True))]
    [('a', 'core', None), ('b', 'step 1', None), ('copy', 'same as', 'b'), ('c', 'constant', None)]
    """
    first = reduct.steps[0].candidates if reduct.steps else {}
    written = dict(zip(first, aligned(list(first.values())), strict=True))
    order = list(REASONS)
    gains = {**reduct.core_significances, **first}
    rest = sorted(_not_chosen(reduct), key=lambda row: (order.index(row["role"]), -gains.get(row["name"], 0.0)))
    # the core by its gains; what was added stays in the order of the steps, whose gains are not comparable
    taken = sorted(_chosen(reduct), key=lambda row: -row["gain"] if row["role"].startswith("core") else math.inf)
    rows = [*taken, *rest]
    places = {name: place for place, name in enumerate(reduct.conditions, 1)}
    for row in rows:
        name = row["name"]
        row |= {"first": first.get(name), "first_written": written.get(name, "–"), "place": places[name]}
        row |= {"values": reduct.cardinalities.get(name), "missing": reduct.missing.get(name, 0)}
    return rows


def _chosen(reduct: Reduct) -> Iterator[dict[str, Any]]:
    for row in chosen(reduct):
        role = f"{row['part']}, removable" if row["removable"] else row["part"]
        gain = {"gain": row["significance"], "gain_written": row["written"]}
        yield {"name": row["name"], "role": role, "of": None, **gain}


def _not_chosen(reduct: Reduct) -> Iterator[dict[str, Any]]:
    """Say why each of the other columns is not chosen."""
    taken = set(reduct.attributes)
    groups = [(group, next((name for name in group if name in taken), None)) for group in reduct.equivalent or ()]
    same = {name: taken_name for group, taken_name in groups if taken_name is not None for name in group}
    tied = {name: step.attribute for step in reduct.steps if step.attribute in taken for name in step.ties}
    same_everywhere = {name for name, n_values in reduct.cardinalities.items() if n_values == 1}
    # a column has the first role that fits
    columns_of: dict[str, Container[str]] = {
        "no useful cut": {name for name in same_everywhere if name in reduct.cuts},
        "constant": same_everywhere,
        "excluded": set(reduct.settings.get("exclude") or ()),
        "core, left out": set(reduct.core),
        "removed": {step.attribute for step in reduct.steps},
        "same as": same,
        "as good as": tied,
        "chance": reduct.rejected,
    }
    rest = "not needed" if reduct.certificate.preserved else "not chosen"
    for name in reduct.conditions:
        if name not in taken:
            role = next((role for role, columns in columns_of.items() if name in columns), rest)
            of = None
            if role == "same as":
                of = same[name]
            elif role == "as good as":
                of = tied[name]
            yield {"name": name, "role": role, "of": of, "gain": None, "gain_written": "–"}
