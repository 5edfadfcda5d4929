"""HAR and FSPA: one process, rows hashed by their values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any, Unpack

from plar.baselines.subsets import Judged, Subset, SubsetEvaluation, System, SystemOptions
from plar.granules.granules import Granules
from plar.measures import PURE, Measure
from plar.results.reduct import Reduct

#: tags by row, and the columns of codes
Universe = tuple[Sequence[int], Sequence[Sequence[int]]]


def har(data: Any, decision: Any = None, y: Any = None, **options: Unpack[SystemOptions]) -> Reduct:
    """Reduce a table with HAR, the sequential forward heuristic: Θ by hashing all rows, no granulation.

    Parameters
    ----------
    data, decision, y
        As in `plar.reduce`.
    **options
        Options of `plar.reduce`, such as measure (one of "SCE", "PR", "LCE", "CCE"), conditions, include,
        missing, na, weights and max_attributes.

    Returns
    -------
    Reduct
        That of `plar.reduce`, except for times and engine.

    Examples
    --------
    >>> from plar import baselines
    >>> table = {"a1": [0, 0, 0, 0, 0, 0, 1, 1], "a2": [0, 0, 0, 1, 1, 1, 0, 1], "D": list("YYNYYYNY")}
    >>> r = baselines.har(table, "D", measure="LCE")
    >>> r.core, r.theta, r.engine
    (('a1', 'a2'), 0.0625, 'HAR')
    """
    return HAR().reduce(data, decision, y, options)


def fspa(data: Any, decision: Any = None, y: Any = None, **options: Unpack[SystemOptions]) -> Reduct:
    """Reduce a table with FSPA: HAR, with the positive region dropped after every step.

    A pure class keeps its θ however it is split, so the candidates rank as before and the reduct is the same.
    Parameters and result are those of `har`.

    Examples
    --------
    >>> from plar import baselines
    >>> table = {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "c": [0, 1, 1, 0], "d": list("NYYY")}
    >>> baselines.fspa(table, "d").attributes == baselines.har(table, "d").attributes
    True
    """
    return FSPA().reduce(data, decision, y, options)


def classes_of(universe: Universe, subset: Subset) -> dict[tuple[int, ...], dict[int, int]]:
    """U/B by hashing: the values of each class and its counts by tag."""
    tags, columns = universe
    classes: dict[tuple[int, ...], dict[int, int]] = {}
    for (tag, *values), n in Counter(zip(tags, *(columns[a] for a in subset), strict=True)).items():
        classes.setdefault(tuple(values), {})[tag] = n
    return classes


class HAREvaluation(SubsetEvaluation):
    """Θ by hashing all rows."""

    def __init__(self, granules: Granules, measure: Measure) -> None:
        super().__init__(granules, measure)
        self._all: Universe = self._unrolled()

    def judge(self, subsets: Sequence[Subset]) -> list[Judged]:
        """Θ(D|B) of each of the subsets B."""
        return [self._judge_in(self._all, subset) for subset in subsets]

    def _judge_in(self, universe: Universe, subset: Subset) -> Judged:
        by_class = [self._theta_of(counts) for counts in classes_of(universe, subset).values()]
        theta = sum(judged.theta for judged in by_class)
        unsettled_objects = sum(judged.unsettled_objects for judged in by_class)
        return Judged(theta, unsettled_objects)


class FSPAEvaluation(HAREvaluation):
    """Θ by hashing the rows outside the positive region of R."""

    def __init__(self, granules: Granules, measure: Measure) -> None:
        super().__init__(granules, measure)
        self._rest = self._all
        self._n_dropped = 0

    def judge_finer(self, subsets: Sequence[Subset]) -> list[Judged]:
        """Θ(D|B) of subsets that hold R: of the rest, and of what was dropped."""
        theta_dropped = -self._n_dropped if self._measure.kind == PURE else 0
        judged = [self._judge_in(self._rest, subset) for subset in subsets]
        return [Judged(theta_dropped + theta, unsettled_objects) for theta, unsettled_objects in judged]

    def select(self, *attributes: int) -> int:
        """R ← R ∪ {a, …}, and drop the positive region."""
        theta = super().select(*attributes)
        tags, columns = self._rest
        impure = set()
        for values, counts in classes_of(self._rest, self._chosen).items():
            decisions = {tag % self._granules.n_decisions for tag in counts}
            if len(decisions) > 1:
                impure.add(values)
        keys = zip(*(columns[a] for a in self._chosen), strict=True)
        rest = [i for i, values in enumerate(keys) if values in impure]
        self._n_dropped += len(tags) - len(rest)
        self._rest = [tags[i] for i in rest], [[column[i] for i in rest] for column in columns]
        return theta


HAR = partial(System, "HAR", HAREvaluation)
FSPA = partial(System, "FSPA", FSPAEvaluation)
