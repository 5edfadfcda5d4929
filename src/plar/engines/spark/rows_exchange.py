"""What pieces and driver send each other in the rows layout, for classes of U/R that are spread over pieces.

After a column is selected, every piece describes its classes to the driver: their values on R, their labels and their
counts by decision. The driver merges those with equal values, numbers them, and sends the numbers with the next step.
In that step every piece counts (class, value, decision) of each candidate and sends the counts to the task that sums
those of the candidate; where they are many, to the task for the hash of the class and the value.

An example: one piece holds 3 rows of the class R = 0 with the decision 1, another 2 rows of it with the decision 0.
Both describe the class with the key (0,), and the driver gives it the number 0. For a candidate that is 1 in all
five rows the pieces send (class 0, value 1, decision 1, count 3) and (class 0, value 1, decision 0, count 2) to the
same task, which finds one class of U/(R∪{a}) with the counts 2 and 3. A class that one piece holds alone is not
numbered by the driver; there its number is (piece + 1) · 2³² + its position, which no other piece uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from plar.engines.local.scoring import Scorer
from plar.engines.spark.pieces import Cardinalities, Hashes, Piece, as_granules, bucket_rows
from plar.grouping.factorize import factorized
from plar.grouping.partition import Array, Codes, Index, Ints, class_numbers, distinct, smallest_codes
from plar.measures import ENTROPY, PURE, Measure
from plar.uncertainty.labels import label_granules

#: a candidate with at most this many spread cells is summed in one task
_MAX_CELLS_IN_ONE_TASK = 1 << 14

#: the values of a class of U/R on R
Key: TypeAlias = tuple[int, ...]
#: a label that is valid in all pieces
Label: TypeAlias = int | bytes | tuple[int, int]


class TaskState(NamedTuple):
    """What a task needs to know besides its piece."""

    coding: Cardinalities
    measure: Measure
    n_objects: int
    #: R
    selected: tuple[int, ...]
    #: a number for each spread class of U/R
    numbers: dict[Key, int]

    def scorer(self) -> Scorer:
        """The scorer that sums θ."""
        return Scorer(self.measure, self.n_objects, self.coding.n_decisions)


class SettledTheta(NamedTuple):
    """Θ(D|R) of classes of U/R, and how many objects are in those that are not settled."""

    theta: int
    unsettled_objects: int


class SplitClasses(NamedTuple):
    """The classes of U/R in one piece."""

    #: by class; None is the label of a class with several
    keys: list[Key]
    labels: list[Label | None]
    #: counts by class and decision
    class_of: Hashes
    decisions: Index
    counts: Ints


class Cells(NamedTuple):
    """Counts of a candidate by class, value and decision."""

    classes: Codes
    values: Index
    decisions: Index
    counts: Ints

    def rows(self, rows: Index) -> Cells:
        """Select counts by position."""
        return Cells(self.classes[rows], self.values[rows], self.decisions[rows], self.counts[rows])


def described(number: int, pieces: Iterable[Piece], state: TaskState) -> Iterator[SplitClasses]:
    """Describe the classes of a piece to the driver."""
    for piece in pieces:
        class_of, keys = classes_in(piece, state)
        labels = _class_labels(number, piece, state, class_of, len(keys))
        first, counts = counted(piece, state, class_of)
        yield SplitClasses(keys, labels, class_of[first], piece.decision_codes[first], counts)


def classes_in(piece: Piece, state: TaskState) -> tuple[Hashes, list[Key]]:
    """U/R in a piece: the class of every row, and the values of every class."""
    order, starts = distinct(piece.coded(state.coding, state.selected), piece.n_rows)
    class_of = class_numbers(order, starts)
    if not state.selected:
        return class_of, [()] * (len(starts) - 1)
    first = order[starts[:-1]]
    values = [piece.column(state.coding, a)[first].tolist() for a in state.selected]
    return class_of, list(zip(*values, strict=True))


def _class_labels(number: int, piece: Piece, state: TaskState, class_of: Hashes, n: int) -> list[Label | None]:
    """The label of each class, valid in all pieces; None for a class with several."""
    labels = label_granules(as_granules(piece, state.coding), state.measure)
    least = np.full(n, np.iinfo(np.uint32).max, np.uint32)
    largest = np.zeros(n, np.uint32)
    np.minimum.at(least, class_of, labels.labels)
    np.maximum.at(largest, class_of, labels.labels)
    n_decisions = state.coding.n_decisions

    def in_all_pieces(label: int) -> Label:
        if label < n_decisions or state.measure.kind == PURE:
            return label
        if state.measure.kind == ENTROPY:
            return labels.proportions[label - n_decisions]
        return number, label  # a class of U/C is never in two pieces

    return [in_all_pieces(a) if a == b else None for a, b in zip(least.tolist(), largest.tolist(), strict=True)]


def counted(piece: Piece, state: TaskState, class_of: Array) -> tuple[Index, Ints]:
    """The first row of every decision in every class, and the number of objects."""
    keys = class_of.astype(np.uint64) * np.uint64(state.coding.n_decisions) + piece.decision_codes
    cells, first = factorized(keys)
    return first, np.bincount(cells, piece.counts, len(first)).astype(np.int64)


def merge_spread(parts: Sequence[SplitClasses], state: TaskState) -> tuple[SettledTheta, dict[Key, int]]:
    """Θ of the spread classes and their unsettled objects, and a number for each class."""
    numbers: dict[Key, int] = {}
    labels_of: dict[int, set[Label | None]] = {}
    classes = []
    for part in parts:
        number_of = np.array([numbers.setdefault(key, len(numbers)) for key in part.keys], np.uint32)
        classes.append(number_of[part.class_of])
        for number, label in zip(number_of.tolist(), part.labels, strict=True):
            labels_of.setdefault(number, set()).add(label)
    class_of = np.concatenate(classes)
    decisions = np.concatenate([part.decisions for part in parts])
    counts = np.concatenate([part.counts for part in parts])
    objects = np.zeros(len(numbers), np.int64)
    np.add.at(objects, class_of, counts)
    unsettled = [number for number, labels in labels_of.items() if len(labels) > 1 or None in labels]
    theta = state.scorer().total(decisions, counts, *partition_counts(decisions, class_of))
    return SettledTheta(theta, sum(int(objects[number]) for number in unsettled)), numbers


def partition_counts(decisions: Index, *cells: Array) -> tuple[Index, Index]:
    """Partition counts that come in parts: `cells` together identify the class, which is ordered by decision."""
    order = np.lexsort((decisions, *cells))
    begins = np.zeros(len(order), np.bool_)
    begins[:1] = True
    for cell in cells:
        begins[1:] |= np.diff(cell[order].astype(np.int64)) != 0
    return order.astype(np.uint32), np.append(np.flatnonzero(begins), len(order)).astype(np.uint32)


def counted_cells(
    number: int, pieces: Iterable[Piece], state: TaskState, candidates: tuple[int, ...], n: int
) -> Iterator[tuple[int, tuple[int, Cells]]]:
    """Count (class, value, decision) for every candidate, and send the counts to the task that sums them."""
    coding = state.coding
    for piece in pieces:
        class_of, keys = classes_in(piece, state)
        numbers = _numbers_in_all_pieces(number, keys, state)
        for a in candidates:
            codes = piece.column(coding, a)
            n_values = coding.cardinalities[a]
            pairs, _ = factorized(class_of * np.uint64(n_values) + codes)
            first, counts = counted(piece, state, pairs)
            classes = numbers[class_of[first]]
            values = codes[first].astype(np.uint32)
            cells = Cells(classes, values, piece.decision_codes[first], counts)
            if len(state.numbers) * n_values * coding.n_decisions <= _MAX_CELLS_IN_ONE_TASK:
                yield a % n, (a, cells)
                continue
            pair_hashes: Hashes = classes.astype(np.uint64) * np.uint64(n_values) + values + np.uint64(a)
            for bucket, rows in bucket_rows(pair_hashes, n):
                yield bucket, (a, cells.rows(rows))


def _numbers_in_all_pieces(number: int, keys: list[Key], state: TaskState) -> Codes:
    """The number of each class; the classes of this piece alone get numbers that no other piece uses."""
    of_piece = (number + 1) << 32
    numbers = np.array([state.numbers.get(key, of_piece + i) for i, key in enumerate(keys)], np.uint64)
    return smallest_codes(numbers, int(numbers.max()) + 1)


def by_candidate(cells: Iterable[tuple[int, Cells]]) -> Iterator[tuple[int, Cells]]:
    """Concatenate the cells of every candidate."""
    parts: dict[int, list[Cells]] = {}
    for a, part in cells:
        parts.setdefault(a, []).append(part)
    for a, of_candidate in parts.items():
        yield a, Cells(*(np.concatenate(column) for column in zip(*of_candidate, strict=True)))


def scores_of_cells(cells: Iterable[tuple[int, Cells]], state: TaskState) -> Iterator[tuple[int, int]]:
    """Sum the counts of every candidate, and compute its Θ."""
    scorer = state.scorer()
    for a, summed in by_candidate(cells):
        partition = partition_counts(summed.decisions, summed.values, summed.classes)
        yield a, scorer.total(summed.decisions, summed.counts, *partition)
