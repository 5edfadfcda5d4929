"""The oracle on a cluster: rows that are equal on a set meet in one task, and the driver sees only clauses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from plar.engines.clauses import ClauseQuestion, FoundClause, RowClauseFinder, decisions_of, encoded, with_values
from plar.engines.spark.partitions import Cardinalities, GranulePartition, as_granules, concat_partitions, split_by_hash
from plar.engines.spark.session import explained
from plar.errors import TableError
from plar.granules.fingerprint import written
from plar.grouping.partition import Index
from plar.measures import Measure
from plar.runtime.spark_calls import spark_call
from plar.uncertainty.labels import label_granules

if TYPE_CHECKING:
    from plar.engines.spark.spark_granules import SparkGranules

#: sets per job: all rows are shuffled for each of them
_AT_ONCE = 16


class SparkClauseFinder:
    """Questions about sets of attributes of granules on a cluster; see `plar.engines.clauses.ClauseFinder`."""

    def __init__(self, held: SparkGranules, measure: Measure) -> None:
        self._held, self._measure = held, measure
        unknown = [name for name, values in zip(held.conditions, held.dictionaries, strict=True) if values is None]
        if unknown or not held.conditions:
            name = repr(unknown[0]) if unknown else "these granules"
            raise TableError(
                f"The smallest reduct, and all reducts, need the values of every column, but those of {name} are too "
                "many for the driver. Leave the column out, or cut its numbers into bins."
            )
        self._values: Sequence[Sequence[Any]] = [values or () for values in held.dictionaries]
        self._ranks = [_ranks(values) for values in self._values]

    def assume(self, attributes: Collection[int]) -> None:
        """Do nothing: rows are shuffled anew for each set."""

    @spark_call
    def preserve(self, sets: Sequence[Collection[int]]) -> list[bool]:
        """Whether each of the sets preserves Θ."""
        asked = [tuple(one) for one in sets]
        return [all(answers) for answers in self._ask(asked, lambda finder, i: finder.preserves(asked[i]))]

    @spark_call
    def find(self, questions: Sequence[ClauseQuestion]) -> list[FoundClause | None]:
        """For each set, a clause that it does not hit, or None if it preserves Θ."""
        asked = [(tuple(held), tuple(order)) for held, order in questions]
        ranks = self._held.pieces.context.broadcast(self._ranks)
        try:
            found = self._ask([held for held, _ in asked], lambda finder, i: finder.find_clause(*asked[i]), ranks)
        finally:
            ranks.destroy()
        return [self._first(answers, order) for answers, (_, order) in zip(found, asked, strict=True)]

    @spark_call
    def decisions(self, rows: Sequence[Sequence[bytes]]) -> list[dict[int, int]]:
        """How many objects of each decision have the values of a row."""
        coding, codes = self._held.coding, encoded(rows, self._values)

        def count(piece: GranulePartition) -> list[dict[int, int]]:
            return decisions_of(list(piece.coded(coding)), piece.decision_codes, piece.counts, codes)

        with explained("look rows up"):
            parts = self._held.pieces.map(count).collect()
        # rows with equal conditions are in one piece
        return [next((part[i] for part in parts if part[i]), {}) for i in range(len(rows))]

    def _ask(
        self, sets: Sequence[tuple[int, ...]], answer: Callable[[RowClauseFinder, int], Any], ranks: Any = None
    ) -> list[list[Any]]:
        """The tasks' answers for each set; each task answers for rows that may be equal on it.

        `ranks` are those of the values, as a broadcast, if the answer depends on them.
        """
        held, found = self._held, [list[Any]() for _ in sets]
        coding, n = held.coding, len(held.sizes)
        task = partial(_answers, n=n, coding=coding, measure=self._measure, ranks=ranks, answer=answer)
        numbered = list(enumerate(sets))
        for low in range(0, len(sets), _AT_ONCE):
            some = numbered[low : low + _AT_ONCE]
            records = held.pieces.flatMap(partial(_dealt_for_each, coding=coding, sets=some, n=n))
            with explained("look at sets of attributes"):
                for number, result in records.partitionBy(n, int).mapPartitions(task).collect():
                    found[number].append(result)
        return found

    def _first(self, answers: Sequence[FoundClause | None], order: Sequence[int]) -> FoundClause | None:
        """Pick the clause that the whole table would give: the first by its attributes, then by its rows."""
        ranks = self._ranks

        def key(found: FoundClause) -> Any:
            clause = set(found.attributes)
            rows = [[int(ranks[a][code]) for a, code in enumerate(row)] for row in (found.row, found.other)]
            return [a in clause for a in order], rows

        found = min((one for one in answers if one is not None), key=key, default=None)
        return None if found is None else with_values(found, self._values)


def _ranks(values: Sequence[Any]) -> Index:
    """Rank of each value among those of a column."""
    order = sorted(range(len(values)), key=lambda code: written(values[code]))
    return np.argsort(order).astype(np.uint32)


# -- tasks -------------------------------------------------------------------------------------------------


def _dealt_for_each(
    piece: GranulePartition, coding: Cardinalities, sets: Iterable[tuple[int, tuple[int, ...]]], n: int
) -> Iterator[tuple[int, GranulePartition]]:
    """Deal rows into buckets by their values on each of the sets, which come with their numbers."""
    for number, attributes in sets:
        for bucket, rows in split_by_hash(piece, coding, n, attributes):
            yield number * n + bucket, rows


def _answers(
    records: Iterable[tuple[int, GranulePartition]],
    n: int,
    coding: Cardinalities,
    measure: Measure,
    ranks: Any,
    answer: Callable[[RowClauseFinder, int], Any],
) -> Iterator[tuple[int, Any]]:
    """FoundClause for each set, by its number, from the rows of it that meet here."""
    met: dict[int, list[GranulePartition]] = {}
    for key, piece in records:
        met.setdefault(key // n, []).append(piece)
    for number, pieces in met.items():
        granules = as_granules(concat_partitions(pieces, coding), coding)
        labels = label_granules(granules, measure).labels
        finder = RowClauseFinder(granules.coded, labels, lambda a, codes: ranks.value[a][codes].tolist())
        yield number, answer(finder, number)
