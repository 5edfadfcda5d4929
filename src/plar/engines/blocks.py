"""The local engine's columns of few values, as blocks of 64 lanes that follow the order of U/R."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias, TypeVar

from plar.engines import lanes
from plar.granules import Granules
from plar.partition import Index

__all__ = ["Block", "Blocks", "InThreads", "lane_groups"]

T = TypeVar("T")
#: runs a function over tasks that read so many cells in all
InThreads: TypeAlias = Callable[[Callable[[Any], T], Sequence[Any], int], list[T]]

#: lanes pay from here on
_LEAST_COLUMNS, _LEAST_CELLS = 12, 1 << 17


@dataclass(slots=True)
class Block:
    """Up to 64 attributes, a lane each."""

    attributes: Sequence[int]
    n_values: int
    rows: lanes.Rows


def lane_groups(n_values: Sequence[int], n_rows: int, wanted: bool | None = None) -> tuple[list[list[int]], list[int]]:
    """Attributes that share a block of lanes, by default where it pays, and the others.

    Examples
    --------
    >>> lane_groups([2, 3, 50], n_rows=10, wanted=True)
    ([[0, 1]], [2])
    """
    few = [a for a, n in enumerate(n_values) if n <= lanes.MAX_VALUES]
    if wanted is None:
        wanted = len(few) >= _LEAST_COLUMNS and len(few) * n_rows >= _LEAST_CELLS
    if not wanted:
        return [], list(range(len(n_values)))
    # attributes of about as many values share a block, since it takes the time of the largest
    few.sort(key=n_values.__getitem__)
    others = [a for a, n in enumerate(n_values) if n > lanes.MAX_VALUES]
    return [few[i : i + lanes.LANES] for i in range(0, len(few), lanes.LANES)], others


class Blocks:
    """All blocks, brought into the order of U/R before they are read."""

    def __init__(self, granules: Granules, order: Index, wanted: bool | None, in_threads: InThreads[Any]) -> None:
        n_values = granules.cardinalities
        groups, _ = lane_groups(n_values, len(order), wanted)
        rooms: SimpleQueue[lanes.Rows] = SimpleQueue()

        def build(group: Sequence[int]) -> Block:
            # lanes beyond the group hold zeros, or codes of an earlier one; nobody reads their sums
            columns = _taken(rooms, lambda: lanes.columns_room(len(granules)))
            for k, a in enumerate(group):
                columns[k, : len(granules)] = granules.columns[a]
            rows = lanes.aligned(len(granules))
            lanes.interleave(columns, rows)
            rooms.put(columns)
            return Block(group, max(n_values[a] for a in group), rows)

        self.attributes = frozenset(a for group in groups for a in group)
        self._blocks: list[Block] = in_threads(build, groups, len(self.attributes) * len(granules))
        #: where each row of the present order stands in the blocks; None if the blocks are in that order
        self._places: Index | None = order
        #: memory to move the next block to, one piece per thread
        self._spare: SimpleQueue[lanes.Rows] = SimpleQueue()

    def moved(self, places: Index) -> None:
        """Note that row i of the new order is row places[i] of the last one."""
        self._places = places if self._places is None else self._places[places]

    def up_to_date(self, wanted: Set[int], selected: Set[int], in_threads: InThreads[Any]) -> list[Block]:
        """Bring the blocks into the present order, but for those that are all selected; give the wanted ones."""
        self._blocks = [b for b in self._blocks if not selected >= set(b.attributes)]
        places, self._places = self._places, None

        def move(block: Block) -> None:
            assert places is not None
            target = _taken(self._spare, lambda: lanes.aligned(len(places)))[: len(places)]
            lanes.permute(block.rows, places, target)
            self._spare.put(block.rows)
            block.rows = target

        if places is not None:
            in_threads(move, self._blocks, len(places) * lanes.LANES * len(self._blocks))
        return [b for b in self._blocks if not wanted.isdisjoint(b.attributes)]


def _taken(spare: SimpleQueue[lanes.Rows], make: Callable[[], lanes.Rows]) -> lanes.Rows:
    try:
        return spare.get_nowait()
    except Empty:
        return make()
