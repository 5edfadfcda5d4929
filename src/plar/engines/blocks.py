"""The local engine's columns of few values, as blocks of 64 lanes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias, TypeVar

from plar.coding.consumable_columns import ConsumableColumns
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
    """All blocks, in the order of the granules; rows are brought into the order of U/R as they are read."""

    def __init__(self, granules: Granules, wanted: bool | None, in_threads: InThreads[Any]) -> None:
        n_values, columns = granules.cardinalities, granules.columns
        groups, _ = lane_groups(n_values, len(granules), wanted)

        def build(group: Sequence[int]) -> Block:
            # lanes beyond the group hold zeros; nobody reads their sums
            rows = lanes.as_rows([columns[a] for a in group])
            if isinstance(columns, ConsumableColumns):
                columns.lay_out(group, rows)
            return Block(group, max(n_values[a] for a in group), rows)

        self.attributes = frozenset(a for group in groups for a in group)
        self._blocks: list[Block] = in_threads(build, groups, len(self.attributes) * len(granules))
        #: room for the rows of a block, one piece per thread
        self._spare: SimpleQueue[lanes.Rows] = SimpleQueue()

    def wanted(self, attributes: Set[int]) -> list[Block]:
        """Blocks that hold one of the attributes."""
        return [block for block in self._blocks if not attributes.isdisjoint(block.attributes)]

    @contextmanager
    def ordered(self, block: Block, order: Index, low: int, high: int) -> Iterator[lanes.Rows]:
        """Rows of a block in the order of U/R, of which only those from `low` to `high` are there."""
        try:
            room = self._spare.get_nowait()
        except Empty:
            room = lanes.aligned(len(order))
        lanes.permute(block.rows, order[low:high], room[low:high])
        yield room
        self._spare.put(room)
