"""The statistic that measures how a candidate goes with the decision: W for classes, B for the ranks of numbers.

Which one follows from the rows: those of ranks have scores.
"""

from __future__ import annotations

from collections.abc import Sequence

from plar.chance import association as classes
from plar.chance import candidates
from plar.chance.association import Association
from plar.chance.rank_association import rank_association, rank_associations, rank_impurity
from plar.grouping.partition import Codes
from plar.uncertainty.strata import CrossTab, StratifiedRows


def association(table: CrossTab) -> Association:
    """Measure how a candidate goes with the decision, within classes of rows."""
    return classes.association(table) if table.scores is None else rank_association(table)


def associations(columns: Sequence[tuple[Codes, int]], rows: StratifiedRows) -> list[Association]:
    """Measure how each of several candidates goes with the decision; several at a time, in threads.

    Candidates are given by their codes, and how many of these there may be.
    """
    return candidates.associations(columns, rows) if rows.scores is None else rank_associations(columns, rows)


def impurity(rows: StratifiedRows) -> float:
    """The most that a candidate's statistic could be: what is left to say about the decisions."""
    return classes.impurity(rows.runs) if rows.scores is None else rank_impurity(rows.runs, rows.scores)
