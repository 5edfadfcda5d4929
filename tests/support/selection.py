"""The rule of `plar.select`, step by step, with exact excesses; only the p-values are plar's own, judged elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pytest

import plar
from plar.chance.p_value import adjusted_p_value, screened_p_value
from plar.chance.statistic import association
from plar.uncertainty.strata import CrossTab
from support import oracle
from support.cross_tabs import as_table, classes_of
from support.law_of_b import Ridits, ridits_of, squares
from support.law_of_b import textbook as textbook_of_ranks
from support.law_of_w import Cells, textbook
from support.strategies import Sample

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


@dataclass(frozen=True)
class Measured:
    """A table whose target is classes, or, with ridits, numbers."""

    table: oracle.Table
    ridits: Ridits | None = None

    @staticmethod
    def by_ranks(table: oracle.Table) -> Measured:
        """Compare the target by its ranks over all rows."""
        return Measured(table, ridits_of(classes_of(table, [], table.conditions[0])))

    def excess(self, given: Sequence[str], a: str) -> Fraction:
        """The statistic minus its mean by chance, within the classes of U/given."""
        total = Fraction(0)
        for cells in classes_of(self.table, given, a):
            statistic, mean, _ = textbook(cells) if self.ridits is None else textbook_of_ranks(cells, self.ridits)
            total += statistic - mean
        return total

    def impurity(self, given: Sequence[str]) -> Fraction:
        """What is left to say in the classes of U/given: Σ (N − Σ n²/N), or the squared deviations of the ranks."""
        classes = classes_of(self.table, given, self.table.conditions[0])
        if self.ridits is None:
            return sum(map(gini, classes), Fraction(0))
        return sum((squares(cells, self.ridits) for cells in classes), Fraction(0))

    def screened(self, given: Sequence[str], a: str) -> float:
        """The p-value of the first stage."""
        return screened_p_value(association(self._cross_tab(given, a)))

    def tested(self, given: Sequence[str], a: str, n: int, alpha: float) -> float:
        """The p-value of all stages, times n."""
        return adjusted_p_value(self._cross_tab(given, a), n, alpha)

    def _cross_tab(self, given: Sequence[str], a: str) -> CrossTab:
        return as_table(classes_of(self.table, given, a), ranked=self.ridits is not None)


def gini(cells: Cells) -> Fraction:
    """N − Σ n²/N of a class."""
    decided = Counter[Any]()
    for (_, decision), n in cells.items():
        decided[decision] += n
    n_objects = sum(decided.values())
    if not n_objects:
        return Fraction(0)
    return n_objects - sum((Fraction(n * n, n_objects) for n in decided.values()), Fraction(0))


#: excesses tie that differ by at most this share of the rows, since they are floats
TIE_BOUND = Fraction(1, 1 << 40)


class TooClose(Exception):
    """Two excesses differ by just about the bound, so that rounding decides whether they tie."""


def best_first(excesses: Mapping[str, Fraction], n_objects: int) -> Iterator[str]:
    """The columns, given in table order, from best to worst: always the first of those that tie with the best left."""
    left = {a: excess / n_objects for a, excess in excesses.items()}
    while left:
        largest = max(left.values())
        if any(abs(largest - excess - TIE_BOUND) <= TIE_BOUND / 64 for excess in left.values()):
            raise TooClose
        first = next(a for a, excess in left.items() if largest - excess <= TIE_BOUND)
        del left[first]
        yield first


def selected_by_the_rule(
    table: oracle.Table,
    alpha: float,
    given: str = "each",
    include: Sequence[str] = (),
    left_out: Collection[str] = (),
    max_columns: int | None = None,
    ranked: bool = False,
) -> Selected:
    """Both parts; `ranked` says that the target is numbers, to be compared by their ranks."""
    measured = Measured.by_ranks(table) if ranked else Measured(table)
    counted = [row for row, weight in zip(table.rows, table.weights, strict=True) if weight]
    R = list(include)
    chosen = Selected(R)
    left = [
        a
        for j, a in enumerate(table.conditions)
        if a not in R and a not in left_out and len({row[j] for row in counted}) > 1
    ]
    m = len(left)
    n_objects = sum(table.weights)

    def is_full() -> bool:
        return max_columns is not None and len(R) >= max_columns

    def take(a: str, p: float, adjusted: float, beside: Sequence[str], at_least: Fraction, of: Sequence[str]) -> None:
        whole = measured.impurity(of)
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
        excesses = {a: measured.excess(R, a) for a in left}
        refused: dict[str, float] = {}
        for a in best_first(excesses, n_objects):
            adjusted = measured.tested(R, a, n, alpha)
            if adjusted <= alpha:
                take(a, adjusted / n, adjusted, R, excesses[a], list(R))
                break
            if n * measured.screened(R, a) <= alpha:  # all stages were needed to refuse it
                refused[a] = adjusted / n
        else:
            if given == "all":
                for a in list(left):
                    reject(a, refused.get(a, measured.screened(R, a)), R)
            break
    if given == "all":
        return chosen

    # second part
    for a in list(left):
        p = measured.screened([], a)
        if m * p > alpha:
            reject(a, p, [])
    sets: list[list[str]] = [[]]
    for b in list(R):
        sets.append([b])
        drop_redundant(measured, left, [b], alpha, reject)
    while left and not is_full():
        least = {a: min((measured.excess(B, a), i) for i, B in enumerate(sets)) for a in left}
        a = next(best_first({a: least[a][0] for a in left}, n_objects))
        by_itself = measured.tested([], a, m, alpha)
        if by_itself > alpha:
            reject(a, by_itself / m, [])
            continue
        p_values = [measured.screened(B, a) for B in sets]
        worst = sets[p_values.index(max(p_values))]
        p = by_itself / m
        if worst:
            p = measured.tested(worst, a, 1, alpha)
            if p > alpha:
                reject(a, p, worst)
                continue
        at_least, i = least[a]
        take(a, p, by_itself, worst, at_least, sets[i])
        sets.append([a])
        drop_redundant(measured, left, [a], alpha, reject)
    return chosen


def assert_by_the_rule(selection: plar.Selection, sample: Sample, **options: Any) -> None:
    """The same columns, p-values, sets and reasons, to the last bit; excesses and shares but for rounding."""
    try:
        expected = selected_by_the_rule(sample.table(), **options)
    except TooClose:
        return
    assert selection.columns == tuple(expected.columns)
    assert [(s.column, s.p_value, s.adjusted, s.given) for s in selection.steps] == expected.steps
    assert {name: (r.p_value, r.given) for name, r in selection.rejected.items()} == expected.rejected
    assert [s.excess for s in selection.steps] == pytest.approx([float(e) for e in expected.excesses], rel=1e-9)
    assert [s.share for s in selection.steps] == pytest.approx([float(share) for share in expected.shares], rel=1e-9)


def drop_redundant(measured: Measured, left: list[str], B: list[str], alpha: float, reject: Any) -> None:
    """Reject what says nothing within the classes of U/B."""
    for a in list(left):
        p = measured.screened(B, a)
        if p > alpha:
            reject(a, p, B)


def facts(selection: plar.Selection) -> dict[str, Any]:
    """All that a selection says, but for the times, the engine and the path."""
    said = selection.to_dict()
    for name in ("seconds", "engine", "source", "settings"):
        said.pop(name)
    said["steps"] = [{name: value for name, value in step.items() if name != "seconds"} for step in said["steps"]]
    return said
