"""Clauses found on a cluster: rows that are equal on a set meet in one task, and the driver sees only clauses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from pyspark import Broadcast

from plar.engines.clauses import ClauseQuestion, FoundClause, RowClauseFinder, decisions_of, encoded, with_values
from plar.engines.spark.pieces import (
    Cardinalities,
    Piece,
    as_granules,
    concat_pieces,
    split_by_hash,
)
from plar.engines.spark.session import explained
from plar.errors import TableError
from plar.granules.fingerprint import spell
from plar.grouping.partition import Index
from plar.measures import Measure
from plar.runtime.spark_calls import spark_call
from plar.uncertainty.labels import label_granules

if TYPE_CHECKING:
    from plar.engines.spark.spark_granules import SparkGranules

#: all rows are shuffled for each set
_SETS_PER_JOB = 16

T = TypeVar("T")
#: ranks of the values of each attribute, by code
ValueRanks: TypeAlias = list[Index]
#: how a task answers for the set of this number, given what finds clauses among the rows that meet there
Answer: TypeAlias = Callable[[RowClauseFinder, int], T]


class SparkClauseFinder:
    """Questions about sets of attributes of granules on a cluster; see `plar.engines.clauses.ClauseFinder`."""

    def __init__(self, granules: SparkGranules, measure: Measure) -> None:
        self._granules = granules
        self._measure = measure
        too_long = [
            name for name, values in zip(granules.conditions, granules.dictionaries, strict=True) if values is None
        ]
        if too_long or not granules.conditions:
            name = repr(too_long[0]) if too_long else "these granules"
            raise TableError(
                f"The smallest reduct, and all reducts, need the values of every column, but those of {name} are too "
                "many for the driver. Leave the column out, or cut its numbers into bins."
            )
        self._values: Sequence[Sequence[Any]] = [values or () for values in granules.dictionaries]
        self._ranks = [_ranks(values) for values in self._values]

    def assume(self, attributes: Collection[int]) -> None:
        """Do nothing: rows are shuffled anew for each set."""

    @spark_call
    def preserve(self, sets: Sequence[Collection[int]]) -> list[bool]:
        """Whether each of the sets preserves Θ."""
        attributes = [tuple(of_set) for of_set in sets]

        def preserves(finder: RowClauseFinder, number: int) -> bool:
            return finder.preserves(attributes[number])

        return [all(answers) for answers in self._ask(attributes, preserves)]

    @spark_call
    def find(self, questions: Sequence[ClauseQuestion]) -> list[FoundClause | None]:
        """For each set, a clause that it does not hit, or None if it preserves Θ."""
        sets = [tuple(attributes) for attributes, _ in questions]
        orders = [tuple(order) for _, order in questions]

        def find_clause(finder: RowClauseFinder, number: int) -> FoundClause | None:
            return finder.find_clause(sets[number], orders[number])

        ranks = self._granules.pieces.context.broadcast(self._ranks)
        try:
            answers = self._ask(sets, find_clause, ranks)
        finally:
            ranks.destroy()
        return [self._first(of_set, order) for of_set, order in zip(answers, orders, strict=True)]

    @spark_call
    def decisions(self, rows: Sequence[Sequence[bytes]]) -> list[dict[int, int]]:
        """How many objects of each decision have the values of a row."""
        coding = self._granules.coding
        codes = encoded(rows, self._values)

        def count(piece: Piece) -> list[dict[int, int]]:
            return decisions_of(list(piece.coded(coding)), piece.decision_codes, piece.counts, codes)

        with explained("look rows up"):
            parts = self._granules.pieces.map(count).collect()
        # rows with equal conditions are in one piece
        return [next((part[i] for part in parts if part[i]), {}) for i in range(len(rows))]

    def _ask(
        self, sets: Sequence[tuple[int, ...]], answer: Answer[T], ranks: Broadcast[ValueRanks] | None = None
    ) -> list[list[T]]:
        """The tasks' answers for each set; each task answers for rows that may be equal on it.

        `ranks` are those of the values, if the answer depends on them.
        """
        pieces = self._granules.pieces
        coding = self._granules.coding
        n = len(self._granules.sizes)
        task = partial(_answers, n=n, coding=coding, measure=self._measure, ranks=ranks, answer=answer)
        numbered = list(enumerate(sets))
        answers: list[list[T]] = [[] for _ in sets]
        for low in range(0, len(sets), _SETS_PER_JOB):
            sets_of_job = numbered[low : low + _SETS_PER_JOB]
            records = pieces.flatMap(partial(_split_for_each, coding=coding, sets=sets_of_job, n=n))
            with explained("look at sets of attributes"):
                for number, of_task in records.partitionBy(n, int).mapPartitions(task).collect():
                    answers[number].append(of_task)
        return answers

    def _first(self, answers: Sequence[FoundClause | None], order: Sequence[int]) -> FoundClause | None:
        """Pick the clause that the whole table would give: the first by its attributes, then by its rows."""

        def ranks_of(row: Sequence[int]) -> list[int]:
            return [int(self._ranks[a][code]) for a, code in enumerate(row)]

        def place(clause: FoundClause) -> tuple[list[bool], list[int], list[int]]:
            attributes = set(clause.attributes)
            return [a in attributes for a in order], ranks_of(clause.row), ranks_of(clause.other)

        clauses = [clause for clause in answers if clause is not None]
        if not clauses:
            return None
        return with_values(min(clauses, key=place), self._values)


def _ranks(values: Sequence[Any]) -> Index:
    """Rank of each value among those of a column."""
    order = sorted(range(len(values)), key=lambda code: spell(values[code]))
    return np.argsort(order).astype(np.uint32)


# -- tasks -------------------------------------------------------------------------------------------------


def _split_for_each(
    piece: Piece, coding: Cardinalities, sets: Iterable[tuple[int, tuple[int, ...]]], n: int
) -> Iterator[tuple[int, Piece]]:
    """Split rows into buckets by their values on each of the sets, which come with their numbers."""
    for number, attributes in sets:
        for bucket, rows in split_by_hash(piece, coding, n, attributes):
            yield number * n + bucket, rows


def _answers(
    records: Iterable[tuple[int, Piece]],
    n: int,
    coding: Cardinalities,
    measure: Measure,
    ranks: Broadcast[ValueRanks] | None,
    answer: Answer[T],
) -> Iterator[tuple[int, T]]:
    """Answer for each set, by its number, from the rows of it that meet here."""

    def rank(attribute: int, codes: Sequence[int]) -> list[int]:
        assert ranks is not None
        ranks_of_attribute: list[int] = ranks.value[attribute][codes].tolist()
        return ranks_of_attribute

    pieces_of: dict[int, list[Piece]] = {}
    for key, piece in records:
        pieces_of.setdefault(key // n, []).append(piece)
    for number, pieces in pieces_of.items():
        granules = as_granules(concat_pieces(pieces, coding), coding)
        labels = label_granules(granules, measure).labels
        yield number, answer(RowClauseFinder(granules.coded, labels, rank), number)
