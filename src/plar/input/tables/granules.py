"""Granules in place of a table: the rows are distinct already, and have their counts and their decision."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Protocol

from plar.bins import parse_bins
from plar.coding.codes import Column, recode
from plar.coding.column_names import decision_names, resolve_all, roles_of
from plar.errors import Given, TableError, Term
from plar.granules.granule_set import GranuleSet
from plar.granules.granules import Granules
from plar.input.roles import Roles
from plar.input.tables.source import Source, assemble_granules
from plar.input.text.numbers import written_number
from plar.options import ReadOptions


class ClusterGranules(GranuleSet, Protocol):
    """Granules on a cluster, which change their roles themselves."""

    def with_roles(self, roles: Roles) -> GranuleSet:
        """Granules over the conditions of these roles."""


class GranuleSource(Source):
    """Granules, here or on a cluster; no columns can be selected, since the rows are gone."""

    kind = "granules"

    data: Granules | ClusterGranules

    def assign(self, options: ReadOptions, coded_y: Column | None, y_name: str) -> Roles:
        """Choose among the conditions; options that come too late for granules are refused."""
        decision = self.data.decision
        for option in options.changed():
            if option in ("y", "weights", "na", "decision_bins"):
                raise TableError(
                    "These are distinct rows with their counts, ",
                    Term("decision"),
                    " and missing values, so ",
                    Given(option),
                    " comes too late. Pass the table itself, with that option.",
                )
        if options.decision is not None:
            labels_given_as_y = tuple(name for name in decision if name not in self.names)
            chosen_decision = decision_names((*self.names, *labels_given_as_y), options.decision)
            if chosen_decision != decision:
                raise TableError(
                    "The distinct rows were made for the ",
                    Term("decision"),
                    f" {list(decision)}, not {list(chosen_decision)}. Granulate the table again for another.",
                )
        candidates = self.data.conditions if options.conditions is None else options.conditions
        conditions, _ = roles_of(self.names, decision, candidates, options.drop, None)
        return Roles(
            conditions=conditions,
            decision=decision,
            missing=options.missing,
            missing_decision=options.decision_policy,
            bins=parse_bins(options.bins, self.names, conditions, decision),
            numeric=resolve_all(self.names, options.numeric, "numeric column"),
            decimal=options.decimal,
        )

    def granulate(self, roles: Roles) -> GranuleSet:
        if isinstance(self.data, Granules):
            return coarsened_to(self.data, roles)
        return self.data.with_roles(roles)


def coarsened_to(granules: Granules, roles: Roles) -> Granules:
    """Granules over the conditions of these roles, with their policy for missing values and their bins."""
    if roles.conditions != granules.conditions:
        granules = granules.coarsen(roles.conditions)
    if roles.bins is None:
        has_no_policy = set(roles.policies()) == {"value"}
        if has_no_policy or not granules.n_missing:
            return granules
    for name in roles.bins.columns if roles.bins else ():
        if name in granules.cuts:
            raise TableError(f"Column {name!r} is already cut into bins. Leave it out of ", Given("bins"), ".")
    named_conditions, named_decision = granules.named_columns()
    conditions = [column for _, column in named_conditions]
    decision = [column for _, column in named_decision]
    assembled = assemble_granules(
        roles, lambda: conditions, decision, granules.counts, text=granules.text, cuts=granules.cuts
    )
    return replace(
        assembled,
        names=granules.names,
        text=granules.text,
        n_rows=granules.n_rows,
        profiles=granules.profiles,
        n_without_decision=granules.n_without_decision + assembled.n_without_decision,
        categorical_decision=granules.categorical_decision,
    )


def compared_as_numbers(granules: Granules, names: Collection[str], decimal: str) -> Granules:
    """Compare the text of some columns as numbers, so that 1, 1.0 and 01 are one value."""
    conditions, decision = granules.named_columns()
    as_numbers = Granules.from_columns(
        _columns_as_numbers(conditions, names, decimal),
        _columns_as_numbers(decision, names, decimal),
        granules.counts,
        names=granules.names,
        cuts=granules.cuts,
        text=granules.text,
        n_rows=granules.n_rows,
        profiles=granules.profiles,
        n_without_decision=granules.n_without_decision,
    )
    return replace(as_numbers, categorical_decision=granules.categorical_decision)


def _columns_as_numbers(
    columns: Sequence[tuple[str, Column]], names: Collection[str], decimal: str
) -> list[tuple[str, Column]]:
    return [(name, column_as_numbers(column, name, decimal) if name in names else column) for name, column in columns]


def column_as_numbers(column: Column, name: str, decimal: str) -> Column:
    """Compare the text of a column as numbers."""
    numbers = [written_number(value, decimal) if isinstance(value, str) else value for value in column.values]
    for value, number in zip(column.values, numbers, strict=True):
        if number is None and value is not None:
            raise TableError(
                f"Column {name!r} is to compare as numbers, but holds {value!r}. Name it in ",
                Given("na"),
                " if it means missing, or leave the column out of ",
                Given("numeric"),
                ".",
            )
    return recode(column.codes, numbers)
