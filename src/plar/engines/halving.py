"""Leave-one-out by halving, for every engine: |B| log |B| refinements give U/(B∖{a}) for every a of B."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

P = TypeVar("P")


def in_halves(attributes: Iterable[int], n_values: Sequence[int]) -> tuple[list[int], list[int]]:
    """Deal attributes into two halves, each with the many-valued ones first: they shrink a partition fastest."""
    falling = sorted(attributes, key=lambda a: -n_values[a])
    return falling[0::2], falling[1::2]


def without_each(
    attributes: Sequence[int], partition: P, refine: Callable[[P, Sequence[int]], P], is_final: Callable[[P], bool]
) -> Iterator[tuple[Sequence[int], P]]:
    """Yield groups of attributes, together all of them, and the partition without any single one of the group.

    `partition` is U/(B∖attributes). Where no attribute can change one any more, its attributes stay one group.

    Examples
    --------
    >>> found = without_each("abc", "", lambda partition, others: partition + "".join(others), lambda _: False)
    >>> [(a, "".join(sorted(others))) for a, others in found]
    [('a', 'bc'), ('c', 'ab'), ('b', 'ac')]
    """
    if len(attributes) < 2 or is_final(partition):
        yield attributes, partition
        return
    halves = attributes[0::2], attributes[1::2]
    for left_out, others in (halves, halves[::-1]):
        yield from without_each(left_out, refine(partition, others), refine, is_final)
