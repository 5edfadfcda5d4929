"""The rule of `plar.select`, step by step, with exact excesses; only the p-values are plar's own, judged elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import plar
from plar.chance.association import association
from plar.chance.p_value import p_value, screened_p_value
from support import oracle
from support.cross_tabs import as_table, classes_of
from support.law_of_w import textbook

#: p-value, and beside which columns
Reason = tuple[float, tuple[str, ...]]


@dataclass
class Selected:
    """What the rule gives: the columns, p-value, adjusted p-value and set of each step, reasons, excesses."""

    columns: list[str]
    steps: list[tuple[str, float, float, tuple[str, ...]]] = field(default_factory=list)
    rejected: dict[str, Reason] = field(default_factory=dict)
    excesses: list[Fraction] = field(default_factory=list)
    shares: list[Fraction] = field(default_factory=list)


def excess(table: oracle.Table, given: Sequence[str], a: str) -> Fraction:
    """W minus its mean by chance, within the classes of U/given."""
    total = Fraction(0)
    for cells in classes_of(table, given, a):
        statistic, mean, _ = textbook(cells)
        total += statistic - mean
    return total


def impurity(table: oracle.Table, given: Sequence[str]) -> Fraction:
    """What is left to say: Σ (N − Σ n²/N) over the classes of U/given."""
    total = Fraction(0)
    for cells in classes_of(table, given, table.conditions[0]):
        decided = Counter[Any]()
        for (_, decision), n in cells.items():
            decided[decision] += n
        n_objects = sum(decided.values())
        if n_objects:
            total += n_objects - sum((Fraction(n * n, n_objects) for n in decided.values()), Fraction(0))
    return total


def screened(table: oracle.Table, given: Sequence[str], a: str) -> float:
    """The p-value of the first stage."""
    return screened_p_value(association(as_table(classes_of(table, given, a))))


def tested(table: oracle.Table, given: Sequence[str], a: str, n: int, alpha: float) -> float:
    """The p-value of all stages, times n."""
    return p_value(as_table(classes_of(table, given, a)), n, alpha)


def selected_by_the_rule(
    table: oracle.Table,
    alpha: float,
    given: str = "each",
    include: Sequence[str] = (),
    left_out: Collection[str] = (),
    max_columns: int | None = None,
) -> Selected:
    """Both parts."""
    counted = [row for row, weight in zip(table.rows, table.weights, strict=True) if weight]
    R = list(include)
    chosen = Selected(R)
    left = [
        a
        for j, a in enumerate(table.conditions)
        if a not in R and a not in left_out and len({row[j] for row in counted}) > 1
    ]
    m = len(left)

    def is_full() -> bool:
        return max_columns is not None and len(R) >= max_columns

    def take(a: str, p: float, adjusted: float, beside: Sequence[str], at_least: Fraction, of: Sequence[str]) -> None:
        whole = impurity(table, of)
        chosen.shares.append(at_least / whole if whole else Fraction(0))
        chosen.excesses.append(at_least)
        chosen.steps.append((a, p, adjusted, tuple(beside)))
        R.append(a)
        left.remove(a)

    def reject(a: str, p: float, beside: Sequence[str]) -> None:
        chosen.rejected[a] = (p, tuple(beside))
        left.remove(a)

    # first part
    while left and not is_full():
        n = len(left)
        excesses = {a: excess(table, R, a) for a in left}
        for a in sorted(left, key=lambda a: (-excesses[a], table.conditions.index(a))):
            adjusted = tested(table, R, a, n, alpha)
            if adjusted <= alpha:
                take(a, adjusted / n, adjusted, R, excesses[a], list(R))
                break
        else:
            if given == "all":
                for a in list(left):
                    reject(a, screened(table, R, a), R)
            break
    if given == "all":
        return chosen

    # second part
    for a in list(left):
        p = screened(table, [], a)
        if m * p > alpha:
            reject(a, p, [])
    sets: list[list[str]] = [[]]
    for b in list(R):
        sets.append([b])
        drop_redundant(table, left, [b], alpha, reject)
    while left and not is_full():
        least = {a: min((excess(table, B, a), i) for i, B in enumerate(sets)) for a in left}
        a = min(left, key=lambda a: (-least[a][0], table.conditions.index(a)))
        by_itself = tested(table, [], a, m, alpha)
        if by_itself > alpha:
            reject(a, by_itself / m, [])
            continue
        p_values = [screened(table, B, a) for B in sets]
        worst = sets[p_values.index(max(p_values))]
        p = by_itself / m
        if worst:
            p = tested(table, worst, a, 1, alpha)
            if p > alpha:
                reject(a, p, worst)
                continue
        at_least, i = least[a]
        take(a, p, by_itself, worst, at_least, sets[i])
        sets.append([a])
        drop_redundant(table, left, [a], alpha, reject)
    return chosen


def drop_redundant(table: oracle.Table, left: list[str], B: list[str], alpha: float, reject: Any) -> None:
    """Reject what says nothing within the classes of U/B."""
    for a in list(left):
        p = screened(table, B, a)
        if p > alpha:
            reject(a, p, B)


def facts(selection: plar.Selection) -> dict[str, Any]:
    """All that a selection says, but for the times, the engine and the path."""
    said = selection.to_dict()
    for name in ("seconds", "engine", "source", "settings"):
        said.pop(name)
    said["steps"] = [{name: value for name, value in step.items() if name != "seconds"} for step in said["steps"]]
    return said
