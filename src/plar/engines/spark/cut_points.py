"""Find cut points on the cluster: all numbers of a column meet in one task, not on the driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from plar.bins import Bins, Cuts, Rule, cut_columns, cut_decision, warn_left
from plar.coding.assemble import Counts, drop_missing, row_weights
from plar.coding.codes import Column, concat_columns, joint_codes
from plar.engines.spark.distributed_tables import DistributedTable
from plar.engines.spark.session import errors_in_parts, explained
from plar.grouping.factorize import factorized
from plar.input.roles import Roles
from plar.input.tables.source import RowSource, encode_decision_and_weights

#: columns whose numbers meet in one task
_COLUMNS_PER_TASK = 64


class CutColumn(NamedTuple):
    """What a task knows of a column once it has all its numbers."""

    name: str
    #: None if it is not cut
    cuts: Cuts | None
    #: a value that is not a number, if that is why it is not cut
    non_number: str | None
    #: without the missing one
    n_values: int


def with_cut_points(source: DistributedTable, roles: Roles, *, text: bool) -> Roles:
    """Replace binning rules with the cut points they give; with `text`, numbers are parsed from strings."""
    if roles.decision_bins is not None:
        decision_cuts = _decision_cuts(source, roles, roles.decision_bins, roles.decimal if text else None)
        if decision_cuts is None:
            return roles  # no rows; reported later
        roles = replace(roles, decision_cuts=decision_cuts)
    bins = roles.bins
    if bins is None:
        return roles
    rules = {name: rule for name, rule in bins.columns.items() if rule.given}
    uncut = [name for name in roles.conditions if not _rule(bins, name).given]
    if uncut:
        columns = _cut_columns(source, roles, bins, uncut, text=text)
        warn_left({column.name: column.non_number for column in columns if column.non_number is not None})
        for column in columns:
            if column.cuts is not None:
                rules[column.name] = Rule("cuts", cuts=column.cuts, text=_rule(bins, column.name).text)
        roles = replace(roles, n_values={column.name: column.n_values for column in columns})
    return replace(roles, bins=Bins(bins.spec, columns=rules))


def _decision_cuts(source: DistributedTable, roles: Roles, rule: Rule, decimal: str | None) -> dict[str, Cuts] | None:
    """Cut points of each decision column; None if there are no rows."""
    with explained("count the decisions"):
        parts = source.run(_decisions, roles).collect()
    if not parts:
        return None
    cuts: dict[str, Cuts] = {}
    for name, of_column in zip(roles.decision, zip(*parts, strict=True), strict=True):
        column = concat_columns([values for values, _ in of_column])
        counts = np.concatenate([counts for _, counts in of_column])
        _, cuts[name] = cut_decision(column, name, rule, counts, decimal=decimal)
    return cuts


def _cut_columns(
    source: DistributedTable, roles: Roles, bins: Bins, names: Sequence[str], *, text: bool
) -> list[CutColumn]:
    """Cut columns, each in a task that gets all its numbers; in the order of the conditions."""
    n_tasks = -(-len(names) // _COLUMNS_PER_TASK)
    count = partial(_numbers, names=names, n_tasks=n_tasks, text=text)
    numbers = source.run(count, roles).partitionBy(n_tasks, int)
    with explained("count the numbers"):
        columns: list[CutColumn] = numbers.mapPartitions(
            partial(_cut, bins=bins, decimal=roles.decimal, text=text)
        ).collect()
    place_of = {name: place for place, name in enumerate(roles.conditions)}
    return sorted(columns, key=lambda column: place_of[column.name])


def count_values(source: DistributedTable, roles: Roles, names: Sequence[str], *, text: bool) -> dict[str, int]:
    """How many different values columns have in all rows that are read, also in those that are dropped."""
    no_bins = Bins({})
    columns = _cut_columns(source, replace(roles, bins=no_bins), no_bins, names, text=text)
    return {column.name: column.n_values for column in columns}


def _rule(bins: Bins, name: str) -> Rule:
    """How a column is cut; one that is not cut gets an empty rule, so that it is never counted."""
    return bins.rule(name) or Rule("cuts")


def cuts_of(roles: Roles) -> dict[str, Cuts]:
    """Cut points of every column that has any."""
    columns = {} if roles.bins is None else {name: rule.cuts for name, rule in roles.bins.columns.items()}
    return {**roles.decision_cuts, **columns}


# -- tasks -------------------------------------------------------------------------------------------------


def _counted(source: RowSource, roles: Roles) -> tuple[list[Column], Counts]:
    """Decision columns of rows, and the weight of every row: 0 if it is dropped for a missing value."""
    decision = encode_decision_and_weights(source, roles)
    counts = np.ones(len(decision[0].codes), np.int64)
    if roles.weights is not None:
        weights = decision.pop()
        counts = row_weights(weights, counts)
    drop_missing(decision, roles.missing_decision, counts)
    if roles.missing == "drop":
        drop_missing(source.encode(roles.conditions, roles.na), roles.missing, counts)
    return decision, counts


def _decisions(source: RowSource, roles: Roles) -> Iterator[list[tuple[Column, Counts]]]:
    """How often each value of each decision column occurs."""
    decision, counts = _counted(source, roles)
    values_and_counts = []
    for column in decision:
        n = len(column.values)
        each = Column(np.arange(n, dtype=np.uint32), column.values)
        values_and_counts.append((each, np.bincount(column.codes, counts, n).astype(np.int64)))
    yield values_and_counts


class _Numbers(NamedTuple):
    """How often each value of a column occurs in a part: per decision, or with no decisions."""

    name: str
    values: Column
    decisions: Column
    counts: Counts


def _numbers(
    source: RowSource, roles: Roles, names: Sequence[str], n_tasks: int, text: bool
) -> Iterator[tuple[int, _Numbers]]:
    """How often each value of a column occurs, per decision where the rule uses it."""
    assert roles.bins is not None
    decision, counts = _counted(source, roles)
    for j, name in enumerate(roles.decision):
        if (rule := roles.decision_rule(name)) is not None:
            decision[j], _ = cut_decision(decision[j], name, rule, counts, decimal=roles.decimal if text else None)
    decision_codes, decision_values = joint_codes(decision)
    decisions = list(zip(*decision_values, strict=True))
    for place, (name, column) in enumerate(zip(names, source.encode(names, roles.na), strict=True)):
        keys = column.codes.astype(np.uint64)
        by_decision = _rule(roles.bins, name).method == "mdlp"
        if by_decision:
            keys = keys * np.uint64(len(decisions)) + decision_codes
        cells, first = factorized(keys)
        of_cells = decision_codes[first] if by_decision else decision_codes[:0]
        yield (
            place % n_tasks,
            _Numbers(
                name=name,
                values=Column(column.codes[first], column.values),
                decisions=Column(of_cells, decisions),
                counts=np.bincount(cells, counts, len(first)).astype(np.int64),
            ),
        )


def _cut(records: Iterable[tuple[int, _Numbers]], bins: Bins, decimal: str, text: bool) -> Iterator[CutColumn]:
    """Cut every column by the numbers of all parts."""
    parts: dict[str, list[_Numbers]] = {}
    for _, part in records:
        parts.setdefault(part.name, []).append(part)
    for name, of_column in parts.items():
        values = concat_columns([part.values for part in of_column])
        decisions = concat_columns([part.decisions for part in of_column])
        decision_codes = decisions.codes if len(decisions.codes) else np.zeros(len(values.codes), np.uint32)
        counts = np.concatenate([part.counts for part in of_column])
        cuts: dict[str, Cuts] = {}
        non_numbers: dict[str, str] = {}
        with errors_in_parts():
            named = [(name, values)]
            list(cut_columns(named, bins, decision_codes, counts, cuts, decimal=decimal, text=text, left=non_numbers))
        n_values = len(values.values) - (values.missing is not None)
        yield CutColumn(name, cuts.get(name), non_numbers.get(name), n_values)
