"""Find cut points on the cluster: all numbers of a column meet in one task, not on the driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from plar.bins import Bins, Cuts, Rule, cut_columns, cut_decision, warn_left
from plar.coding.assemble import drop_missing, row_weights
from plar.coding.codes import Column, combine, union
from plar.engines.spark.session import explained
from plar.engines.spark.sources import Source
from plar.grouping.factorize import factorized
from plar.input.roles import Roles
from plar.input.tables.source import RowSource as TableSource
from plar.input.tables.source import encode_decision_and_weights

#: columns whose numbers meet in one task
_COLUMNS = 64


def with_cut_points(source: Source, roles: Roles, *, text: bool) -> Roles:
    """Replace binning rules with the cut points they give; with `text`, numbers are parsed from strings."""
    decimal = roles.decimal if text else None
    if roles.decision_bins is not None:
        with explained("count the decisions"):
            counted = source.run(_decisions, roles).collect()
        if not counted:
            return roles  # no rows; reported later
        cuts: dict[str, Cuts] = {}
        for name, parts in zip(roles.decision, zip(*counted, strict=True), strict=True):
            column, counts = union([part for part, _ in parts]), np.concatenate([counts for _, counts in parts])
            _, cuts[name] = cut_decision(column, name, roles.decision_bins, counts, decimal=decimal)
        roles = replace(roles, decision_cuts=cuts)
    if roles.bins is None:
        return roles
    given = {name: rule for name, rule in roles.bins.columns.items() if rule.given}
    wanted = [name for name in roles.conditions if not _rule(roles.bins, name).given]
    if wanted:
        n = -(-len(wanted) // _COLUMNS)
        numbers = source.run(partial(_numbers, wanted=wanted, n=n, decimal=decimal), roles).partitionBy(n, int)
        cut = partial(_cut, bins=roles.bins, decimal=decimal)
        with explained("count the numbers"):
            found = numbers.mapPartitions(cut).collect()
        order = {name: place for place, name in enumerate(roles.conditions)}
        found.sort(key=lambda one: order[one[0]])
        warn_left({name: odd for name, _, odd, _ in found if odd is not None})
        given |= {name: Rule("cuts", cuts=cuts) for name, cuts, _, _ in found if cuts is not None}
        roles = replace(roles, n_values={name: n for name, _, _, n in found})
    assert roles.bins is not None
    return replace(roles, bins=Bins(roles.bins.spec, columns=given))


def _rule(bins: Bins, name: str) -> Rule:
    """How a column is cut; one that is not cut gets an empty rule, so that it is never counted."""
    return bins.rule(name) or Rule("cuts")


def cuts_of(roles: Roles) -> dict[str, Cuts]:
    """Cut points of every column that has any."""
    columns = {} if roles.bins is None else {name: rule.cuts for name, rule in roles.bins.columns.items()}
    return {**roles.decision_cuts, **columns}


# -- tasks -------------------------------------------------------------------------------------------------


def _counted(rows: TableSource, roles: Roles) -> tuple[list[Column], Any]:
    """Decision columns of rows, and the weight of every row: 0 if it is dropped for a missing value."""
    beside = encode_decision_and_weights(rows, roles)
    counts = np.ones(len(beside[0].codes), np.int64)
    if roles.weights is not None:
        counts = row_weights(beside.pop(), counts)
    drop_missing(beside, roles.missing_decision, counts)
    if roles.missing == "drop":
        drop_missing(rows.encode(roles.conditions, roles.na), roles.missing, counts)
    return beside, counts


def _decisions(rows: TableSource, roles: Roles) -> Iterator[list[tuple[Column, Any]]]:
    """How often each value of each decision column occurs."""
    decision, counts = _counted(rows, roles)
    sizes = [(column, len(column.values)) for column in decision]
    yield [
        (Column(np.arange(n, dtype=np.uint32), column.values), np.bincount(column.codes, counts, n).astype(np.int64))
        for column, n in sizes
    ]


def _numbers(
    rows: TableSource, roles: Roles, wanted: Sequence[str], n: int, decimal: str | None
) -> Iterator[tuple[int, Any]]:
    """How often each value of a column occurs, per decision where the rule uses it."""
    assert roles.bins is not None
    decision, counts = _counted(rows, roles)
    for j, name in enumerate(roles.decision):
        if (rule := roles.decision_rule(name)) is not None:
            decision[j], _ = cut_decision(decision[j], name, rule, counts, decimal=decimal)
    classes, decided = combine(decision)
    labels = list(zip(*decided, strict=True))
    for place, (name, column) in enumerate(zip(wanted, rows.encode(wanted, roles.na), strict=True)):
        keys = column.codes.astype(np.uint64)
        by_class = _rule(roles.bins, name).method == "mdlp"
        pairs, first = factorized(keys * np.uint64(len(labels)) + classes if by_class else keys)
        weights = np.bincount(pairs, counts, len(first)).astype(np.int64)
        met = Column(column.codes[first], column.values), Column(classes[first] if by_class else pairs[:0], labels)
        yield place % n, (name, *met, weights)


def _cut(records: Iterable[tuple[int, Any]], bins: Bins, decimal: str | None) -> Iterator[tuple[str, Any, Any, int]]:
    """Cut every column by the numbers of all parts.

    Yields its name, its cuts or None, a value that is not a number if it has one, and how many different values it has.
    """
    parts: dict[str, list[Any]] = {}
    for _, (name, *part) in records:
        parts.setdefault(name, []).append(part)
    for name, found in parts.items():
        values, labels = (union([part[i] for part in found]) for i in (0, 1))
        classes = labels.codes if len(labels.codes) else np.zeros(len(values.codes), np.uint32)
        counts = np.concatenate([weights for *_, weights in found])
        cuts: dict[str, Cuts] = {}
        left: dict[str, str] = {}
        list(cut_columns([(name, values)], bins, classes, counts, cuts, left=left, decimal=decimal))
        yield name, cuts.get(name), left.get(name), len(values.values)
