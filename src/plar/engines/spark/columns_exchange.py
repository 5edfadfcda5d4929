"""What driver and tasks send each other in the columns layout.

A step is one job, U/R one way and Θ of each candidate back: the classes of U/R that can still be split are broadcast,
every task scores the columns of its blocks with the local kernels, and answers with a few numbers, and with the column
of its best candidate where columns are small.
The rows layout, for tables with too many rows to send, has its own in `rows_exchange`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple, TypeAlias

import numpy as np
from pyspark import Broadcast

from plar.engines.job_progress import Watch
from plar.engines.local import lanes
from plar.engines.local.scoring import CandidatePass, Scorer
from plar.engines.spark.column_blocks import ColumnBlocks
from plar.engines.spark.column_groups import Group, Share
from plar.grouping.partition import Array, Codes, Index

#: Θ by candidate, to be added up, and the columns on offer
BlockAnswer: TypeAlias = tuple[list[tuple[int, int]], list[tuple[int, Codes]]]


class SentPartition(NamedTuple):
    """U/R and its runs as the tasks get them; they have the weights of the rows."""

    order: Index
    starts: Index
    run_begins: Index
    first_runs: Index


def score_candidates(
    blocks: ColumnBlocks,
    wanted: set[int],
    partition: SentPartition,
    scorer: Callable[[], Scorer],
    watch: Watch | None,
    *,
    offer: bool,
) -> tuple[Iterable[tuple[int, int]], dict[int, Codes]]:
    """Parts of Θ(D|R∪{a}), to be added up by candidate, and columns on offer, in one job over the rows in U/R."""
    sent = blocks.context.broadcast(partition)
    task = partial(
        _scores,
        decisions_and_counts=blocks.decisions_and_counts,
        partition=sent,
        wanted=frozenset(wanted),
        scorer=scorer,
        offer=offer,
    )
    try:
        answers = blocks.run(task, wanted, "score the candidates", watch)
    finally:
        sent.destroy()
    offered = {a: codes for _, columns in answers for a, codes in columns}
    return chain.from_iterable(scores for scores, _ in answers), offered


# -- tasks -------------------------------------------------------------------------------------------------


def fetched(
    blocks: Iterable[tuple[Share, Sequence[Array]]], attributes: Collection[int]
) -> Iterator[tuple[int, Codes]]:
    """Yield the columns of some attributes; of a divided group, the first task does."""
    for share, arrays in blocks:
        if share.low == 0:
            yield from columns_of(share.group, arrays, attributes)


def columns_of(group: Group, arrays: Sequence[Array], attributes: Collection[int]) -> Iterator[tuple[int, Codes]]:
    """The columns of some attributes of a block."""
    for k, a in enumerate(group.attributes):
        if a in attributes:
            yield a, np.ascontiguousarray(arrays[0][:, k] if group.in_lanes else arrays[k])


def _scores(
    blocks: Iterable[tuple[Share, Sequence[Array]]],
    decisions_and_counts: Broadcast[tuple[Index, Array]],
    partition: Broadcast[SentPartition],
    wanted: frozenset[int],
    scorer: Callable[[], Scorer],
    offer: bool,
) -> Iterator[BlockAnswer]:
    """Θ(D|R∪{a}) of each block's candidates over the rows still in U/R; `offer` adds the column of the best one."""
    decision_codes, counts = decisions_and_counts.value
    sent = partition.value
    scoring = CandidatePass(
        scorer(),
        decision_codes,
        counts,
        sent.order,
        sent.starts,
        run_begins=sent.run_begins,
        first_runs=sent.first_runs,
    )
    buffer: lanes.LaneMatrix | None = None
    for share, arrays in blocks:
        group = share.group
        classes = scoring.part(share.low, share.high, share.of)
        if classes.stop - classes.start == 1:  # no class begins there
            continue
        if group.in_lanes and scoring.takes_blocks:
            if buffer is None:
                buffer = lanes.aligned(scoring.buffer_rows)
            thetas = scoring.block(arrays[0], max(group.n_values), buffer, classes)
            scores = [(a, theta) for a, theta in zip(group.attributes, thetas, strict=False) if a in wanted]
        else:
            n_values = dict(zip(group.attributes, group.n_values, strict=True))
            columns = columns_of(group, arrays, wanted)
            scores = [(a, scoring.column(codes, n_values[a], classes)) for a, codes in columns]
        offered: list[tuple[int, Codes]] = []
        if offer and scores:
            best, _ = min(scores, key=lambda score: (score[1], score[0]))
            offered = list(columns_of(group, arrays, [best]))
        yield scores, offered
