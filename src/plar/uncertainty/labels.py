"""Labels of the classes of U/C: what makes core, stop rule and certificate exact, whatever the engine.

Merging classes of U/C leaves Θ unchanged exactly when they carry one label: a pure class its decision; an
impure one, for PR the common label ``*``, for SCE its decision counts divided by their gcd, for LCE and CCE a
number of its own. So Θ(D|B) = Θ(D|C) if and only if every class of U/B carries one label, and no sum has to
be compared.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plar.granules.granules import Granules
from plar.grouping.partition import Index, distinct
from plar.measures import ENTROPY, OWN, PURE, Measure


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """U/C and its labels, by granule."""

    #: a class is *settled* when its granules share a label: then it no longer keeps Θ(D|B) above Θ(D|C)
    labels: Index
    #: When the granules of a class share a key, no refinement changes even its integer θ, and it can be dropped. The
    #: same array as `labels`, except under SCE: splitting a class into proportional parts keeps its θ, but may change
    #: the integer by rounding.
    drop_keys: Index
    #: U/C, the pure classes first, each a single granule
    order: Index
    starts: Index
    n_pure: int
    #: under SCE, what the labels of the impure classes stand for, in the order of their numbers
    proportions: tuple[bytes, ...] = ()

    @property
    def consistent(self) -> bool:
        """Whether every class of U/C is pure."""
        return self.n_pure == len(self.order)

    def value(self, granules: Granules, measure: Measure, theta: int) -> float:
        """Θ(D|C) as a number from its integer; under SCE from the counts, because the integer is rounded."""
        if measure.kind != ENTROPY or self.consistent:
            return measure.value(theta, granules.n_objects)
        return math.fsum(self.entropy_terms(granules.counts)) / granules.n_objects

    def entropy_terms(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """|D|·ln(|E|/|D|) for the decisions D of the impure classes E; their sum is |U|·SCE, since L is rounded."""
        starts = self.starts[self.n_pure :].astype(np.intp) - self.n_pure
        part = counts[self.order[self.n_pure :]].astype(np.float64)
        whole = np.repeat(np.add.reduceat(part, starts[:-1]), np.diff(starts)) if len(part) else part
        # Python's logarithm: numpy's may differ in its last bit from one processor to the next
        return part * np.fromiter(map(math.log, whole / part), np.float64, len(part))


def label_granules(granules: Granules, measure: Measure, partition: tuple[Index, Index] | None = None) -> Labels:
    """Partition the granules by all conditions, where that is not done yet, and label the classes.

    Examples
    --------
    >>> import plar
    >>> g = plar.granulate({"a": [0, 1, 1, 2, 2, 2, 2], "d": [0, 0, 1, 0, 0, 1, 1]}, "d")
    >>> of_sce = label_granules(g, plar.measures.SCE)
    >>> of_sce.consistent, len(set(of_sce.labels.tolist())), len(set(of_sce.drop_keys.tolist()))
    (False, 2, 3)
    """
    if partition is None and granules.consistent:
        partition = np.arange(len(granules), dtype=np.uint32), np.arange(len(granules) + 1, dtype=np.uint32)
    order, starts = partition or distinct(granules.coded, len(granules))
    sizes = np.diff(starts)
    n_pure = int((sizes == 1).sum())
    impure = order[n_pure:]
    base = np.uint32(granules.n_decisions)
    number = np.repeat(np.arange(len(sizes) - n_pure, dtype=np.uint32), sizes[n_pure:])
    drop_keys = granules.decision_codes.astype(np.uint32)
    drop_keys[impure] = base if measure.kind == PURE else base + number
    if measure.kind == OWN and not measure.drop_pure:
        drop_keys[order[:n_pure]] = base + np.uint32(len(impure)) + np.arange(n_pure, dtype=np.uint32)
    labels = drop_keys
    proportions: tuple[bytes, ...] = ()
    if measure.kind == ENTROPY and len(impure):
        labels = drop_keys.copy()
        numbers, proportions = _proportions(granules, impure, sizes[n_pure:])
        labels[impure] = base + numbers
    return Labels(labels, drop_keys, order, starts, n_pure, proportions)


def _proportions(granules: Granules, rows: Index, sizes: NDArray[Any]) -> tuple[Index, tuple[bytes, ...]]:
    """Number the classes, row by row, so that proportional counts share a number."""
    ends = np.cumsum(sizes.astype(np.intp))
    begins = np.append(0, ends[:-1])
    by_decision = rows[np.lexsort((granules.decision_codes[rows], np.repeat(begins, sizes)))]
    divisors = np.repeat(np.gcd.reduceat(granules.counts[by_decision], begins), sizes)
    keys = np.stack([granules.decision_codes[by_decision], granules.counts[by_decision] // divisors], axis=1)
    seen: dict[bytes, int] = {}
    numbers = [seen.setdefault(keys[b:e].tobytes(), len(seen)) for b, e in zip(begins, ends, strict=True)]
    return np.repeat(np.array(numbers, np.uint32), sizes), tuple(seen)
