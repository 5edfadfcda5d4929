"""The statistic that measures how a candidate goes with the decision: W for classes, B for the ranks of numbers.

Which one follows from the rows: those of ranks have scores. The modules for these are loaded where there are some.
"""

from __future__ import annotations

from collections.abc import Sequence

from plar.chance import association as classes
from plar.chance.association import Association
from plar.chance.candidates import associations as class_associations
from plar.grouping.partition import Codes
from plar.uncertainty.strata import CrossTab, Strata, StratifiedRows

#: columns that are here at a time: an engine may have packed them
_COLUMNS_AT_ONCE = 1 << 10


def association(table: CrossTab) -> Association:
    """Measure how a candidate goes with the decision, within classes of rows."""
    if table.scores is None:
        return classes.association(table)
    from plar.chance.rank_association import rank_association

    return rank_association(table)


def associations(columns: Sequence[tuple[Codes, int]], rows: StratifiedRows) -> list[Association]:
    """Measure how each of several candidates goes with the decision; several at a time, in threads.

    Candidates are given by their codes, and how many of these there may be.
    """
    if rows.scores is None:
        return class_associations(columns, rows)
    from plar.chance.rank_association import rank_associations

    return rank_associations(columns, rows)


def associations_within(
    strata: Strata, candidates: Sequence[int], within: Sequence[int] | None = None
) -> list[Association]:
    """Measure candidates within the classes of U/R, or of U/`within`; some columns at a time, if they must be unpacked.

    Examples
    --------
    >>> import plar
    >>> strata = Strata(plar.granulate({"a": [0, 1, 1], "b": [0, 1, 2], "d": [0, 1, 1]}, "d"))
    >>> [measured.mean for measured in associations_within(strata, [0, 1])]
    [0.6666666666666666, 0.0]
    """
    rows = strata.rows(within)
    measured: list[Association] = []
    for first in range(0, len(candidates), _COLUMNS_AT_ONCE):
        columns = [strata.column(a) for a in candidates[first : first + _COLUMNS_AT_ONCE]]
        measured += associations(columns, rows)
    return measured


def impurity(rows: StratifiedRows | CrossTab) -> float:
    """The most that a candidate's statistic could be: what is left to say about the decisions."""
    if rows.scores is None:
        return classes.impurity(rows.runs)
    from plar.chance.rank_association import rank_impurity

    return rank_impurity(rows.runs, rows.scores)
