"""Granules in place of a table: the rows are distinct already, and have their counts and their decision."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

from plar.bins import parse_bins
from plar.coding.codes import Column, recode
from plar.coding.column_names import decision_names, resolve_all, roles_of
from plar.coding.missing import MissingSpellings
from plar.errors import TableError
from plar.granules.granules import Granules
from plar.input.roles import Roles
from plar.input.tables.source import Selection, Source, assembled
from plar.input.text.numbers import written_number
from plar.options import ReadOptions


class GranuleSource(Source):
    """Granules, here or on a cluster."""

    kind = "granules"

    def assign(self, options: ReadOptions, coded_y: Column | None, label: str) -> Roles:
        """Choose among the conditions; options that come too late for granules are refused."""
        given = self.data
        for option in options.changed():
            if option in ("y", "weights", "na", "decision_bins"):
                raise TableError(
                    f"These are distinct rows with their counts, decision and missing values, so {option}= comes too "
                    f"late. Pass {option}= to granulate."
                )
        if options.decision is not None:
            beside = tuple(name for name in given.decision if name not in self.names)  # labels given as y
            found = decision_names((*self.names, *beside), options.decision)
            if found != given.decision:
                raise TableError(
                    f"The distinct rows were made for the decision {list(given.decision)}, not {list(found)}. "
                    "Granulate the table again for another decision."
                )
        wanted = given.conditions if options.conditions is None else options.conditions
        conditions, _ = roles_of(self.names, given.decision, wanted, options.drop, None)
        bins = parse_bins(options.bins, self.names, conditions, given.decision)
        numeric = resolve_all(self.names, options.numeric, "numeric column")
        return Roles(
            conditions=conditions,
            decision=given.decision,
            missing=options.missing,
            missing_decision=options.decision_policy,
            bins=bins,
            numeric=numeric,
            decimal=options.decimal,
        )

    def granulate(self, roles: Roles) -> Granules:
        if isinstance(self.data, Granules):
            return with_roles(self.data, roles)
        held: Granules = self.data.with_roles(roles)
        return held

    def encode(self, names: Sequence[str], na: MissingSpellings) -> Iterable[Column]:
        refused: Iterable[Column] = self.select(Selection(tuple(names)))
        return refused

    def select(self, selection: Selection) -> Any:
        """Refuse: the rows are gone."""
        where = repr(str(self.files[0])) if self.files else "The table"
        raise TableError(f"{where} holds granules, not rows. No columns can be selected from it.")

    def check_output(self, path: str | os.PathLike[str]) -> None:
        self.select(Selection(()))


def with_roles(granules: Granules, roles: Roles) -> Granules:
    """Granules over the conditions of these roles, with their policy for missing values and their bins."""
    made = granules if roles.conditions == granules.conditions else granules.coarsen(roles.conditions)
    if roles.bins is None and (set(roles.policies()) == {"value"} or not made.n_missing):
        return made
    for name in roles.bins.columns if roles.bins else ():
        if name in made.cuts:
            raise TableError(f"Column {name!r} is already cut into bins. Leave it out of bins.")
    conditions, decision = ([column for _, column in part] for part in made.named_columns())
    decimal = roles.decimal if made.text else None  # text in typed tables is not a number
    found = assembled(roles, lambda: conditions, decision, made.counts, decimal=decimal, cuts=made.cuts)
    return replace(found, names=made.names, text=made.text, n_rows=made.n_rows, profiles=made.profiles)


def as_numbers(granules: Granules, names: Collection[str], decimal: str) -> Granules:
    """Compare the text of some columns as numbers, so that 1, 1.0 and 01 are one value."""
    conditions, decision = (
        [(name, _numbers(column, name, decimal) if name in names else column) for name, column in part]
        for part in granules.named_columns()
    )
    kept: dict[str, Any] = {"names": granules.names, "cuts": granules.cuts, "text": granules.text}
    kept |= {"n_rows": granules.n_rows, "profiles": granules.profiles}
    return Granules.from_columns(conditions, decision, granules.counts, **kept)


def _numbers(column: Column, name: str, decimal: str) -> Column:
    values = [written_number(value, decimal) if isinstance(value, str) else value for value in column.values]
    for value, number in zip(column.values, values, strict=True):
        if number is None and value is not None:
            raise TableError(
                f"Column {name!r} is to compare as numbers, but holds {value!r}. Name it in na= if it means missing, "
                "or leave the column out of numeric="
            )
    return recode(column.codes, values)
