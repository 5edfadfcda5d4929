"""Θ of partitions of rows, exactly: what the local engine's threads and the tasks of a cluster both compute."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numba
import numpy as np

from plar.engines.local import kernels, lane_sums, lanes
from plar.errors import TableError
from plar.granules.granules import Granules
from plar.grouping.partition import Codes, Index, Ints, Runs, find_runs, in_order, split, weights_in_order
from plar.measures import OWN, PURE, Measure, f_table, log_anchors
from plar.uncertainty.labels import Labels


class Scorer:
    """A measure over rows that have a decision and a weight each."""

    def __init__(self, measure: Measure, n_objects: int, n_decisions: int) -> None:
        self.kind = measure.kind
        self.n_decisions = n_decisions
        #: the kernel of a user's θ
        self.own_kernel = _compile_own(measure.name, measure.theta) if measure.kind == OWN else None
        table = f_table(measure.kind, n_objects)
        anchors = np.zeros((1, 2), np.uint64)
        if n_objects >= len(table):
            anchors = log_anchors()
        self.f: kernels.F = (measure.kind, table, anchors)

    def total(self, decision_codes: Index, counts: Ints, order: Index, starts: Index) -> int:
        """Σ θ(E) over the classes E of a partition."""
        sum3 = np.zeros(3, np.int64)
        if self.own_kernel is not None:
            tally = np.zeros(self.n_decisions, np.int64)
            self.own_kernel(decision_codes, counts, order, starts, tally, sum3)
        else:
            kernels.partition_theta(self.f, decision_codes, counts, order, starts, sum3)
        return kernels.as_int(sum3)

    def total_of_all(self, granules: Granules, labels: Labels) -> int:
        """Θ(D|C); for the pure classes, each a single granule, the four measures know θ in advance."""
        decision_codes = granules.decision_codes
        counts = granules.counts
        if self.own_kernel is not None:
            return self.total(decision_codes, counts, labels.order, labels.starts)
        n_pure = labels.n_pure
        impure_starts = labels.starts[n_pure:] - np.uint32(n_pure)
        theta = self.total(decision_codes, counts, labels.order[n_pure:], impure_starts)
        if self.kind == PURE:
            theta -= int(counts[labels.order[:n_pure]].sum())
        return theta


class CandidatePass:
    """One pass over U/R, with classes ordered by decision: Θ(D|R∪{a}) of any candidate.

    Where the runs begin, and the first run of each class, can be given, both or neither; see `Runs`.
    """

    def __init__(
        self,
        scorer: Scorer,
        decision_codes: Index,
        counts: Ints,
        order: Index,
        starts: Index,
        *,
        run_begins: Index | None = None,
        first_runs: Index | None = None,
    ) -> None:
        self._scorer = scorer
        #: a user's θ is evaluated column by column
        self.takes_blocks = scorer.own_kernel is None
        self._decision_codes = decision_codes
        self._counts = counts
        self._order = order
        self._starts = starts
        if run_begins is None or first_runs is None:
            self.runs = find_runs(decision_codes, counts, order, starts)
        else:
            self.runs = Runs(weights_in_order(counts, order), run_begins, first_runs)

    def ranges(self, n_tasks: int, n_jobs: int) -> list[slice]:
        """Cut the classes into ranges of about equally many rows, so that there are tasks for every thread."""
        n_ranges = 1
        if n_jobs > 1 and n_tasks < 2 * n_jobs:
            n_ranges = -(-2 * n_jobs // max(n_tasks, 1))
        ranges = [self.part(i, i + 1, n_ranges) for i in range(n_ranges)]
        return [part for part in ranges if part.stop - part.start > 1]

    def part(self, low: int, high: int, of: int) -> slice:
        """The classes from one fraction of the rows to another, as places of starts, the last of which is an end."""
        n_rows = int(self._starts[-1])
        first, last = np.searchsorted(self._starts, [low * n_rows // of, high * n_rows // of]).tolist()
        return slice(first, last + 1)

    def column(self, codes: Codes, n_values: int, part: slice = slice(None)) -> int:
        """Θ of a range of classes, split by a column; `codes` are by row, in any order of the rows."""
        scorer = self._scorer
        if scorer.own_kernel is not None:
            return self._own_column(codes, n_values, part)
        values = in_order(codes, self._order)
        weights, begins, first = self.runs
        sum3 = np.zeros(3, np.int64)
        if scorer.kind == PURE:
            kernels.add_pure(values, weights, begins, first[part], n_values, sum3)
        else:
            kernels.add_cells(scorer.f, values, weights, begins, first[part], n_values, sum3)
        return kernels.as_int(sum3)

    def block(
        self, rows: lanes.LaneMatrix, n_values: int, buffer: lanes.LaneMatrix, part: slice = slice(None)
    ) -> list[int]:
        """Θ of a range of classes, split by each of 64 columns of few values, given in any order of the rows."""
        weights, begins, first = self.runs
        sums3 = np.zeros((lanes.LANES, 3), np.int64)
        lane_sums.add_block(
            self._scorer.f,
            rows,
            self._order,
            self._starts[part],
            weights,
            begins,
            first[part],
            n_values,
            sums3,
            lanes.byte_counters(),
            buffer,
        )
        return [kernels.as_int(sum3) for sum3 in sums3.tolist()]

    @property
    def buffer_rows(self) -> int:
        """How many rows the buffer of `block` needs."""
        return min(len(self._order), max(lane_sums.CHUNK, int(np.diff(self._starts).max())))

    def _own_column(self, codes: Codes, n_values: int, part: slice) -> int:
        starts = self._starts[part]
        order = self._order[starts[0] : starts[-1]]
        by_row = np.arange(len(codes), dtype=np.uint32)
        after = split([(codes, n_values)], by_row, order, starts - starts[0])
        theta = self._scorer.total(self._decision_codes, self._counts, after.order, after.starts)
        return theta + self._scorer.total(self._decision_codes, self._counts, after.gone, after.gone_starts)


@lru_cache(maxsize=64)
def _compile_own(name: str, function: Callable[..., Any]) -> Callable[..., None]:
    """Compile the sum of a user's θ over the classes of a partition."""
    theta: Any = function if hasattr(function, "py_func") else numba.njit(function)
    try:
        theta.compile((numba.int64[::1],))
    except numba.core.errors.NumbaError as error:
        reason = next((line for line in str(error).splitlines() if line.strip()), "no reason given").strip()
        raise TableError(f"numba cannot compile the θ of measure {name!r}: {reason}") from error
    returned = theta.nopython_signatures[-1].return_type
    if not isinstance(returned, (numba.types.Integer, numba.types.Boolean)):
        raise TableError(
            f"The θ of measure {name!r} must return a whole number. It returns {returned}; scale it, round it, and "
            "divide by the scale in the normaliser."
        )

    def add(decision_codes: Index, counts: Ints, order: Index, starts: Index, tally: Ints, sum3: kernels.Sum3) -> None:
        for c in range(len(starts) - 1):
            for i in range(starts[c], starts[c + 1]):
                tally[decision_codes[order[i]]] += counts[order[i]]
            value = np.int64(theta(tally))
            sum3[0] += value & 0xFFFFFFFF
            sum3[1] += value >> 32
            for i in range(starts[c], starts[c + 1]):
                tally[decision_codes[order[i]]] = 0

    compiled: Callable[..., None] = numba.njit(nogil=True)(add)
    return compiled
