"""How candidates go with the decision within classes, on a cluster; see `plar.engines.stratification`.

In the columns layout the driver orders the rows by class and sends that order; every task measures the columns of its
blocks and answers with a few numbers each: one job, no shuffle. In the rows layout the pieces count (class, value,
decision), and the driver adds up their counts and measures. What an exact test needs then comes with the answers, as
far as it is small.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from pyspark import Broadcast

from plar.chance.association import Association
from plar.chance.statistic import association, associations, impurity
from plar.engines.spark.column_blocks import ColumnBlocks
from plar.engines.spark.column_groups import Share
from plar.engines.spark.columns_exchange import columns_of
from plar.engines.spark.pieces import Piece
from plar.engines.spark.rows_exchange import Cells, Key, TaskState, classes_in, counted, partition_counts
from plar.engines.spark.session import explained
from plar.granules.granules import Granules
from plar.grouping.factorize import factorized
from plar.grouping.partition import Array, Codes, Index, Runs, weights_in_order
from plar.measures import LCE
from plar.runtime.parallel import threads
from plar.runtime.spark_calls import spark_call
from plar.uncertainty.ranks import Ranks, RunScores
from plar.uncertainty.strata import CrossTab, Strata, StratifiedRows

if TYPE_CHECKING:
    from plar.engines.spark.columns_layout import FetchedColumns
    from plar.engines.spark.spark_granules import SparkGranules

#: cells, of all candidates and pieces, that the driver takes at a time
MAX_CELLS_AT_ONCE = 1 << 24
#: cells of tables that the driver keeps for exact tests
_MAX_CELLS_KEPT = 1 << 22


class SentRows(NamedTuple):
    """Rows in the order of the classes, and their runs, as tasks get them; they have the weights of the rows."""

    order: Index
    run_begins: Index
    first_runs: Index
    scores: RunScores | None


class ColumnsStratification:
    """Classes on the driver, candidates on the cluster.

    Parameters
    ----------
    granules : Granules
        With decisions and counts; the columns are looked up when classes are refined by them.
    blocks : ColumnBlocks
    columns : FetchedColumns, optional
        The columns of `granules`, if they are fetched from the cluster.
    ranks : Ranks, optional
        Those of a decision of numbers.
    """

    def __init__(
        self,
        granules: Granules,
        blocks: ColumnBlocks,
        columns: FetchedColumns | None = None,
        ranks: Ranks | None = None,
    ) -> None:
        self._strata = Strata(granules, ranks=ranks)
        self._blocks = blocks
        self._columns = columns
        #: the least excess of each candidate so far, without any column and beside each
        self._least_excess: dict[int, float] = {}

    @spark_call
    def select(self, *attributes: int) -> None:
        """R ← R ∪ {a, …}."""
        self._fetch(attributes)
        self._strata.select(*attributes)

    @spark_call
    def associations(self, candidates: Sequence[int], within: Sequence[int] | None = None) -> list[Association]:
        """How strongly each candidate is associated with the decision, in one job."""
        if not candidates:
            return []
        self._fetch(within or ())
        least_excess = {} if within is None else self._least_excess
        measured, offered = measure_candidates(self._blocks, candidates, self._strata.rows(within), least_excess)
        if self._columns is not None:
            self._columns.offered = offered
        if within is not None:
            self._least_excess = {a: _least(self._least_excess, a, measured[a]) for a in candidates}
        return [measured[a] for a in candidates]

    @spark_call
    def cross_tabs(self, candidates: Sequence[int], within: Sequence[int] | None = None) -> Iterable[CrossTab]:
        """A table of each candidate's values against the decisions; a job fetches the columns that are missing here."""
        self._fetch([*candidates, *(within or ())])
        return list(self._strata.cross_tabs(candidates, within))

    def impurity(self, within: Sequence[int] | None = None) -> float:
        """The most that a candidate's statistic could be."""
        self._fetch(within or ())
        return impurity(self._strata.rows(within))

    def _fetch(self, attributes: Sequence[int]) -> None:
        """Fetch columns that are not on the driver, in one job."""
        if self._columns is not None:
            self._columns.fetch(attributes)


def measure_candidates(
    blocks: ColumnBlocks,
    candidates: Sequence[int],
    rows: StratifiedRows,
    least_excess: Mapping[int, float] = MappingProxyType({}),
) -> tuple[dict[int, Association], dict[int, Codes]]:
    """Measure the candidates where their columns are, in one job; columns that are small come with the answers.

    These are of the candidates whose excess, or the least so far, is largest: they are likely to be asked for next.
    """
    sent = blocks.context.broadcast(SentRows(rows.order, rows.runs.begins, rows.runs.first, rows.scores))
    task = partial(
        _associations,
        decisions_and_counts=blocks.decisions_and_counts,
        rows=sent,
        wanted=frozenset(candidates),
        least_excess=dict(least_excess),
        offers=blocks.offers,
    )
    try:
        answers = blocks.run(task, candidates, "measure the candidates")
    finally:
        sent.destroy()
    measured = dict(chain.from_iterable(of_block for of_block, _ in answers))
    offered = dict(chain.from_iterable(columns for _, columns in answers))
    return measured, offered


class RowsStratification:
    """Classes and candidates on the cluster; with ranks, decisions are compared by these."""

    def __init__(self, granules: SparkGranules, ranks: Ranks | None = None) -> None:
        self._granules = granules
        self._ranks = ranks
        self._selected: tuple[int, ...] = ()
        #: of classes, given by their attributes, and a candidate
        self._tables: dict[tuple[tuple[int, ...], int], CrossTab] = {}
        self._n_cells_kept = 0
        self._impurities: dict[tuple[int, ...], float] = {}

    def select(self, *attributes: int) -> None:
        """R ← R ∪ {a, …}."""
        self._selected = (*self._selected, *attributes)

    @spark_call
    def associations(self, candidates: Sequence[int], within: Sequence[int] | None = None) -> list[Association]:
        """How strongly each candidate is associated with the decision; a job for every so many cells."""
        given = self._given(within)
        n_together = max(1, MAX_CELLS_AT_ONCE // max(1, len(self._granules)))
        measured: list[Association] = []
        for first in range(0, len(candidates), n_together):
            part = candidates[first : first + n_together]
            tables = self._counted_tables(part, given)
            measured += map(association, tables)
            self._impurities[given] = impurity(tables[0])
            for a, table in zip(part, tables, strict=True):
                self._keep(given, a, table)
        return measured

    @spark_call
    def cross_tabs(self, candidates: Sequence[int], within: Sequence[int] | None = None) -> Iterable[CrossTab]:
        """A table of each candidate's values against the decisions; one job counts those that are not here."""
        given = self._given(within)
        missing = [a for a in candidates if (given, a) not in self._tables]
        counted_now = dict(zip(missing, self._counted_tables(missing, given), strict=True)) if missing else {}
        return [counted_now[a] if a in counted_now else self._tables[given, a] for a in candidates]

    @spark_call
    def impurity(self, within: Sequence[int] | None = None) -> float:
        """The most that a candidate's statistic could be."""
        given = self._given(within)
        if given not in self._impurities:
            cells = self._counts([], given)[_NO_CANDIDATE]
            order, starts = partition_counts(cells.decisions, cells.classes)
            rows = StratifiedRows.of(cells.decisions, cells.counts, order, starts, self._ranks)
            self._impurities[given] = impurity(rows)
        return self._impurities[given]

    def _given(self, within: Sequence[int] | None) -> tuple[int, ...]:
        """The attributes of the classes."""
        return self._selected if within is None else tuple(within)

    def _keep(self, given: tuple[int, ...], a: int, table: CrossTab) -> None:
        """Keep a table, if there is room, for the exact test that may follow."""
        n_cells = len(table.values)
        if self._n_cells_kept + n_cells <= _MAX_CELLS_KEPT and (given, a) not in self._tables:
            self._tables[given, a] = table
            self._n_cells_kept += n_cells

    def _counted_tables(self, candidates: Sequence[int], given: tuple[int, ...]) -> list[CrossTab]:
        """The candidates' tables within the classes of U/`given`, in one job."""
        counts = self._counts(candidates, given)
        tables = []
        for a in candidates:
            cells = counts.pop(a)
            order, starts = partition_counts(cells.decisions, cells.classes)
            n_values = self._granules.coding.cardinalities[a]
            tables.append(
                CrossTab.of(cells.values, cells.decisions, cells.counts, order, starts, n_values, self._ranks)
            )
        return tables

    def _counts(self, candidates: Sequence[int], given: tuple[int, ...]) -> dict[int, Cells]:
        """Counts of each candidate by class, value and decision; without candidates, by class and decision."""
        granules = self._granules
        state = TaskState(granules.coding, LCE, granules.n_objects, given, {})
        task = partial(_counts_in, state=state, candidates=tuple(candidates))
        with explained("measure the candidates"):
            pieces = granules.pieces.filter(lambda piece: piece.n_rows > 0).map(task).collect()
        numbers: dict[Key, int] = {}
        parts: dict[int, list[Cells]] = {}
        for keys, counts in pieces:
            number_of = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.uint32)
            for a, cells in counts:
                decisions = cells.decisions if self._ranks is None else self._ranks.places[cells.decisions]
                in_all_pieces = cells._replace(classes=number_of[cells.classes], decisions=decisions)
                parts.setdefault(a, []).append(in_all_pieces)
        return {
            a: Cells(*(np.concatenate(column) for column in zip(*of_candidate, strict=True)))
            for a, of_candidate in parts.items()
        }


#: stands for the candidate where only classes and decisions are counted
_NO_CANDIDATE = -1


def _least(least_excess: Mapping[int, float], a: int, measured: Association) -> float:
    """The least excess of a candidate, including what was measured now."""
    return min(least_excess.get(a, math.inf), measured.statistic - measured.mean)


# -- tasks -------------------------------------------------------------------------------------------------

#: what a task says of a block: the associations of its candidates, and the column of the best
Measured: TypeAlias = tuple[list[tuple[int, Association]], list[tuple[int, Codes]]]


def _associations(
    blocks: Iterable[tuple[Share, Sequence[Array]]],
    decisions_and_counts: Broadcast[tuple[Index, Array]],
    rows: Broadcast[SentRows],
    wanted: frozenset[int],
    least_excess: Mapping[int, float],
    offers: bool,
) -> Iterator[Measured]:
    """Measure each block's candidates; of a group that several tasks hold, each measures a part of the columns.

    `offers` adds the column of the best one, which is likely to be selected.
    """
    _, counts = decisions_and_counts.value
    order, run_begins, first_runs, scores = rows.value
    stratified = StratifiedRows(order, Runs(weights_in_order(counts, order), run_begins, first_runs), scores)
    for share, arrays in blocks:
        group = share.group
        n_columns = len(group.attributes)
        mine = group.attributes[n_columns * share.low // share.of : n_columns * share.high // share.of]
        n_values = dict(zip(group.attributes, group.n_values, strict=True))
        columns: dict[int, Codes] = dict(columns_of(group, arrays, wanted.intersection(mine)))
        with threads(1):
            measured = associations([(codes, n_values[a]) for a, codes in columns.items()], stratified)
        of_block = dict(zip(columns, measured, strict=True))
        offered: list[tuple[int, Codes]] = []
        if offers and of_block:
            best = max(of_block, key=lambda a: (_least(least_excess, a, of_block[a]), -a))
            offered.append((best, columns[best]))
        yield list(of_block.items()), offered


def _counts_in(
    piece: Piece, state: TaskState, candidates: tuple[int, ...]
) -> tuple[list[Key], list[tuple[int, Cells]]]:
    """The classes of a piece, given by their values, and the counts of each candidate within them."""
    class_of, keys = classes_in(piece, state)
    counts = []
    for a in candidates or (_NO_CANDIDATE,):
        if a == _NO_CANDIDATE:
            codes: Codes = np.zeros(piece.n_rows, np.uint8)
            n_values = 1
        else:
            codes = piece.column(state.coding, a)
            n_values = state.coding.cardinalities[a]
        pairs, _ = factorized(class_of * np.uint64(n_values) + codes)
        first, n_objects = counted(piece, state, pairs)
        classes = class_of[first].astype(np.uint32)
        counts.append((a, Cells(classes, codes[first].astype(np.uint32), piece.decision_codes[first], n_objects)))
    return keys, counts
