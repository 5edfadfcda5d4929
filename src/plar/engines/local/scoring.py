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
from plar.grouping.partition import Codes, Index, Runs, find_runs, in_order, split, weights_in_order
from plar.measures import OWN, PURE, Measure, f_table, log_anchors
from plar.uncertainty.labels import Labels


class Scorer:
    """A measure over rows that have a decision and a weight each."""

    def __init__(self, measure: Measure, n_objects: int, n_decisions: int) -> None:
        self.kind = measure.kind
        self.n_decisions = n_decisions
        self.own = _own_kernel(measure.name, measure.theta) if measure.kind == OWN else None
        table = f_table(measure.kind, n_objects)
        self.f = measure.kind, table, log_anchors() if n_objects >= len(table) else np.zeros((1, 2), np.uint64)

    def total(self, decision_codes: Index, counts: kernels.Words, order: Index, starts: Index) -> int:
        """Σ θ(E) over the classes E of a partition."""
        words = np.zeros(3, np.int64)
        if self.own is not None:
            self.own(decision_codes, counts, order, starts, np.zeros(self.n_decisions, np.int64), words)
        else:
            kernels.partition_theta(self.f, decision_codes, counts, order, starts, words)
        return kernels.add_words(words)

    def total_of_all(self, granules: Granules, labels: Labels) -> int:
        """Θ(D|C); for the pure classes, each a single granule, the four measures know θ in advance."""
        pure = labels.order[: labels.n_pure] if self.own is None else labels.order[:0]
        rest = labels.order[len(pure) :], labels.starts[len(pure) :] - np.uint32(len(pure))
        theta = self.total(granules.decision_codes, granules.counts, *rest)
        return theta - int(granules.counts[pure].sum()) if self.kind == PURE else theta


class Pass:
    """One pass over U/R, with classes ordered by decision: Θ(D|R∪{a}) of any candidate.

    Where the runs begin, and the first run of each class, can be given.
    """

    def __init__(
        self, scorer: Scorer, decision_codes: Index, counts: kernels.Words, order: Index, starts: Index, *runs: Index
    ) -> None:
        self._scorer = scorer
        #: a user's θ is evaluated column by column
        self.takes_blocks = scorer.own is None
        self._rows = decision_codes, counts
        self._order, self._starts = order, starts
        self.runs = Runs(weights_in_order(counts, order), *runs) if runs else find_runs(*self._rows, order, starts)
        self._weights, self._runs, self._class_runs = self.runs

    def ranges(self, n_tasks: int, n_jobs: int) -> list[slice]:
        """Cut the classes into ranges of about equally many rows, so that there are tasks for every thread."""
        n = 1 if n_tasks >= 2 * n_jobs or n_jobs == 1 else -(-2 * n_jobs // max(n_tasks, 1))
        parts = [self.part(i, i + 1, n) for i in range(n)]
        return [part for part in parts if part.stop - part.start > 1]

    def part(self, low: int, high: int, of: int) -> slice:
        """The classes from one fraction of the rows to another, as places of starts, the last of which is an end."""
        n_rows = int(self._starts[-1])
        first, last = np.searchsorted(self._starts, [low * n_rows // of, high * n_rows // of]).tolist()
        return slice(first, last + 1)

    def column(self, codes: Codes, n_values: int, part: slice = slice(None)) -> int:
        """Θ of a range of classes, split by a column; `codes` are by row, in any order of the rows."""
        s = self._scorer
        if s.own is not None:
            return self._own_column(codes, n_values, part)
        values, words = in_order(codes, self._order), np.zeros(3, np.int64)
        rows = values, self._weights, self._runs, self._class_runs[part]
        if s.kind == PURE:
            kernels.add_pure(*rows, n_values, words)
        else:
            kernels.add_cells(s.f, *rows, n_values, words)
        return kernels.add_words(words)

    def block(self, rows: lanes.Rows, n_values: int, room: lanes.Rows, part: slice = slice(None)) -> list[int]:
        """Θ of a range of classes, split by each of 64 columns of few values, given in any order of the rows."""
        s, words = self._scorer, np.zeros((lanes.LANES, 3), np.int64)
        runs = self._weights, self._runs, self._class_runs[part]
        lane_sums.add_block(s.f, rows, self._order, self._starts[part], *runs, n_values, words, lanes.scratch(), room)
        return [kernels.add_words(w) for w in words.tolist()]

    @property
    def room(self) -> int:
        """How many rows `block` needs room for."""
        return min(len(self._order), max(lane_sums.CHUNK, int(np.diff(self._starts).max())))

    def _own_column(self, codes: Codes, n_values: int, part: slice) -> int:
        starts = self._starts[part]
        order = self._order[starts[0] : starts[-1]]
        after = split([(codes, n_values)], np.arange(len(codes), dtype=np.uint32), order, starts - starts[0])
        total, rows = self._scorer.total, self._rows
        return total(*rows, after.order, after.starts) + total(*rows, after.gone, after.gone_starts)


@lru_cache(maxsize=64)
def _own_kernel(name: str, function: Callable[..., Any]) -> Callable[..., None]:
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

    def add(decision_codes: Index, counts: Any, order: Index, starts: Index, tally: Any, words: Any) -> None:
        for c in range(len(starts) - 1):
            for i in range(starts[c], starts[c + 1]):
                tally[decision_codes[order[i]]] += counts[order[i]]
            value = np.int64(theta(tally))
            words[0] += value & 0xFFFFFFFF
            words[1] += value >> 32
            for i in range(starts[c], starts[c + 1]):
                tally[decision_codes[order[i]]] = 0

    compiled: Callable[..., None] = numba.njit(nogil=True)(add)
    return compiled
