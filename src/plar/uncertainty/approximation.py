"""What the classes of U/B say about each decision: its lower and upper approximation, and the contradictory classes.

Granules over B are given in one piece or in several, with every class of U/B whole in one of them, as they are on a
cluster. Each piece is summed up where it is; only sums and the largest contradictory classes are put together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from plar.granules.granule_set import GranuleSet
from plar.granules.granules import Granules
from plar.grouping.partition import Index, distinct

T = TypeVar("T", covariant=True)
Counts: TypeAlias = NDArray[np.int64]

#: up to so many contradictory classes are sorted in one place
_SORTED_AT_ONCE = 10_000


class Contradiction(NamedTuple):
    """A class of U/B with several decisions."""

    #: of the attributes B
    values: tuple[Any, ...]
    n_objects: int
    #: codes of its decisions, and how many of its objects have each
    decisions: tuple[int, ...]
    counts: tuple[int, ...]


class Approximation(NamedTuple):
    """How many objects are in the approximations of each decision, by its code."""

    class_sizes: Counts
    lower: Counts
    upper: Counts
    #: of granules over B and the decision, of classes of U/B, and of those with several decisions
    n_granules: int
    n_classes: int
    n_contradictions: int
    #: the largest of these, by their objects, then by their values
    contradictions: list[Contradiction]


class ClassSums(NamedTuple):
    """What is known of the classes of a piece."""

    #: decisions that occur in it; how many objects have each, and are in its approximations
    decisions: NDArray[np.intp]
    class_sizes: Counts
    lower: Counts
    upper: Counts
    n_granules: int
    n_classes: int
    n_contradictions: int
    #: of the contradictory classes: how many there are of each size in objects, for the largest sizes
    n_of_size: dict[int, int]


class Contradictory(NamedTuple):
    """The classes of a piece that have several decisions."""

    granules: Granules
    #: granules, class by class, and where each class begins in them
    rows: Index
    starts: NDArray[np.intp]
    #: objects of each class
    sizes: Counts

    def codes(self, attribute: int, classes: NDArray[np.intp]) -> NDArray[np.int64]:
        """The value of an attribute in some classes."""
        first_rows = self.rows[self.starts[classes]]
        return self.granules.columns[attribute][first_rows].astype(np.int64)


class Ask(Protocol):
    """Apply a function to the contradictory classes of every piece; returns its results."""

    def __call__(self, function: Callable[[Contradictory], T], /) -> list[T]:
        """Apply it."""


def approximate(granules: Granules, limit: int) -> Approximation:
    """The approximations of all decisions from granules over B, and up to `limit` contradictions.

    Examples
    --------
    >>> import plar
    >>> granules = plar.granulate({"a": ["x", "x", "y"], "d": ["n", "p", "p"]}, "d")
    >>> approximate(granules, 1).lower.tolist(), approximate(granules, 1).upper.tolist()
    ([0, 1], [2, 3])
    """
    sums, contradictory = sum_classes(granules, limit)
    return put_together(granules, [sums], lambda function: [function(contradictory)], limit)


def sum_classes(granules: Granules, limit: int) -> tuple[ClassSums, Contradictory]:
    """Sum up the classes of U/B of a piece of granules over B."""
    order, starts = distinct(granules.coded, len(granules))
    # granules differ, so that a class has as many decisions as granules
    n_in_class = np.diff(starts)
    weights = granules.counts[order]
    sizes = np.add.reduceat(weights, starts[:-1].astype(np.intp)) if len(order) else weights
    is_mixed = n_in_class > 1
    is_mixed_row = np.repeat(is_mixed, n_in_class)
    contradictory = Contradictory(
        granules,
        rows=order[is_mixed_row],
        starts=np.append(0, np.cumsum(n_in_class[is_mixed])).astype(np.intp),
        sizes=sizes[is_mixed],
    )
    decisions = granules.decision_codes[order]
    by_decision = partial(sum_by_decision, n_decisions=granules.n_decisions)
    class_sizes = by_decision(decisions, weights)
    lower = by_decision(decisions[~is_mixed_row], weights[~is_mixed_row])
    upper = by_decision(decisions, np.repeat(sizes, n_in_class))
    present = np.flatnonzero(class_sizes)
    different_sizes, n_of_size = np.unique(contradictory.sizes, return_counts=True)
    largest = zip(different_sizes[-limit:].tolist(), n_of_size[-limit:].tolist(), strict=True)
    sums = ClassSums(
        decisions=present,
        class_sizes=class_sizes[present],
        lower=lower[present],
        upper=upper[present],
        n_granules=len(granules),
        n_classes=len(n_in_class),
        n_contradictions=len(contradictory.sizes),
        n_of_size=dict(largest),
    )
    return sums, contradictory


def sum_by_decision(decisions: Index, weights: Counts, n_decisions: int) -> Counts:
    """The sum of the weights of each decision: exact, as there are at most `MAX_OBJECTS`."""
    return np.bincount(decisions, weights, n_decisions).astype(np.int64)


def put_together(granules: GranuleSet, pieces: Sequence[ClassSums], ask: Ask, limit: int) -> Approximation:
    """The approximations from the sums of all pieces; `granules`, over B, have the values."""
    class_sizes = np.zeros(granules.n_decisions, np.int64)
    lower = np.zeros_like(class_sizes)
    upper = np.zeros_like(class_sizes)
    for sums in pieces:
        class_sizes[sums.decisions] += sums.class_sizes
        lower[sums.decisions] += sums.lower
        upper[sums.decisions] += sums.upper
    return Approximation(
        class_sizes=class_sizes,
        lower=lower,
        upper=upper,
        n_granules=sum(sums.n_granules for sums in pieces),
        n_classes=sum(sums.n_classes for sums in pieces),
        n_contradictions=sum(sums.n_contradictions for sums in pieces),
        contradictions=_largest(granules, pieces, ask, limit),
    )


# -- the largest contradictory classes ----------------------------------------------------------------------


class _TiedClasses(NamedTuple):
    """Some of the classes of one size: the first attributes have these codes, and the next, if given, one of those."""

    prefix: tuple[int, ...] = ()
    codes_of_next: frozenset[int] | None = None


class _CodedClass(NamedTuple):
    """A contradictory class."""

    codes: tuple[int, ...]
    n_objects: int
    decisions: tuple[int, ...]
    counts: tuple[int, ...]


def _largest(granules: GranuleSet, pieces: Sequence[ClassSums], ask: Ask, limit: int) -> list[Contradiction]:
    """The `limit` largest contradictory classes; among equally large ones, the first by their values."""
    n_of_size = Counter[int]()
    for sums in pieces:
        n_of_size.update(sums.n_of_size)
    if not n_of_size or not limit:
        return []
    least_size, n_larger = _least_size(n_of_size, limit)
    n_tied = n_of_size[least_size]
    tied = [_TiedClasses()]
    if n_larger + n_tied > _SORTED_AT_ONCE:
        tied = _first_tied(granules, ask, least_size, min(limit - n_larger, n_tied))
    coded_classes = [coded for of_piece in ask(partial(_collected, size=least_size, tied=tied)) for coded in of_piece]
    return _sorted(granules, coded_classes)[:limit]


def _least_size(n_of_size: Counter[int], limit: int) -> tuple[int, int]:
    """The size of the last of the `limit` largest classes, and how many are larger."""
    n_larger = 0
    for size in sorted(n_of_size, reverse=True):
        if n_larger + n_of_size[size] >= limit:
            return size, n_larger
        n_larger += n_of_size[size]
    return min(n_of_size), n_larger - n_of_size[min(n_of_size)]


def _first_tied(granules: GranuleSet, ask: Ask, size: int, n_wanted: int) -> list[_TiedClasses]:
    """Which of the classes of one size are the first by their values, decided attribute by attribute.

    The values of an attribute that are too far behind are left out, and those that are surely taken are settled, so
    that only the classes of one value are left for the next attribute.
    """
    settled: list[_TiedClasses] = []
    prefix: tuple[int, ...] = ()
    for attribute in range(len(granules.conditions)):
        n_of_code = Counter[int]()
        for of_piece in ask(partial(_count_codes, size=size, prefix=prefix)):
            n_of_code.update(of_piece)
        taken: list[int] = []
        for code, _ in granules.first_values(attribute, n_of_code.keys(), n_wanted):
            if n_of_code[code] > n_wanted:
                settled.append(_TiedClasses(prefix, frozenset(taken)))
                prefix = (*prefix, code)
                break
            taken.append(code)
            n_wanted -= n_of_code[code]
            if not n_wanted:
                return [*settled, _TiedClasses(prefix, frozenset(taken))]
    return settled


def _sorted(granules: GranuleSet, coded_classes: Sequence[_CodedClass]) -> list[Contradiction]:
    """Classes with their values: the largest first, then in the order of their values."""
    places_by_attribute: list[dict[int, int]] = []
    values_by_attribute: list[dict[int, Any]] = []
    for attribute in range(len(granules.conditions)):
        codes = {coded.codes[attribute] for coded in coded_classes}
        values = dict(granules.first_values(attribute, codes, len(codes)))
        values_by_attribute.append(values)
        places_by_attribute.append({code: place for place, code in enumerate(values)})

    def order(coded: _CodedClass) -> tuple[int, ...]:
        return -coded.n_objects, *(places[code] for places, code in zip(places_by_attribute, coded.codes, strict=True))

    return [
        Contradiction(
            tuple(values[code] for values, code in zip(values_by_attribute, coded.codes, strict=True)),
            coded.n_objects,
            coded.decisions,
            coded.counts,
        )
        for coded in sorted(coded_classes, key=order)
    ]


# -- what is asked of every piece ---------------------------------------------------------------------------


def _of_size(contradictory: Contradictory, size: int, prefix: Sequence[int]) -> NDArray[np.intp]:
    """The classes of a size whose first attributes have these codes."""
    classes = np.flatnonzero(contradictory.sizes == size)
    for attribute, code in enumerate(prefix):
        classes = classes[contradictory.codes(attribute, classes) == code]
    return classes


def _count_codes(contradictory: Contradictory, size: int, prefix: tuple[int, ...]) -> dict[int, int]:
    """How many of the classes of a size, with these codes of the first attributes, have each code of the next."""
    classes = _of_size(contradictory, size, prefix)
    codes, n_classes = np.unique(contradictory.codes(len(prefix), classes), return_counts=True)
    return dict(zip(codes.tolist(), n_classes.tolist(), strict=True))


def _collected(contradictory: Contradictory, size: int, tied: Sequence[_TiedClasses]) -> list[_CodedClass]:
    """All classes larger than a size, and those of this size that are asked for."""
    parts = [np.flatnonzero(contradictory.sizes > size)]
    for prefix, codes_of_next in tied:
        classes = _of_size(contradictory, size, prefix)
        if codes_of_next is not None:
            codes = contradictory.codes(len(prefix), classes)
            classes = classes[np.isin(codes, list(codes_of_next))]
        parts.append(classes)
    classes = np.concatenate(parts)
    n_attributes = len(contradictory.granules.columns)
    columns = [contradictory.codes(attribute, classes).tolist() for attribute in range(n_attributes)]
    codes_of_classes = zip(*columns, strict=True) if columns else [()] * len(classes)
    return [_coded_class(contradictory, c, codes) for c, codes in zip(classes.tolist(), codes_of_classes, strict=True)]


def _coded_class(contradictory: Contradictory, c: int, codes: tuple[int, ...]) -> _CodedClass:
    rows = contradictory.rows[contradictory.starts[c] : contradictory.starts[c + 1]]
    granules = contradictory.granules
    return _CodedClass(
        codes=codes,
        n_objects=int(contradictory.sizes[c]),
        decisions=tuple(granules.decision_codes[rows].tolist()),
        counts=tuple(granules.counts[rows].tolist()),
    )
