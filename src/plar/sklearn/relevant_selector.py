"""`RelevantSelector`, which selects all features that say more about y than chance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from plar.bins import Spec
from plar.engines.base import Engine
from plar.granules.granules import Granules
from plar.measures import Measure, as_measure
from plar.options import DEFAULT_ALPHA
from plar.results.reduct import Reduct
from plar.results.relevant import Relevant
from plar.search.relevance import Relevance
from plar.sklearn.reduct_selector import ReductSelector


class RelevantSelector(ReductSelector):
    """Selects all features that say more about y than chance: `plar.relevant`.

    Parameters
    ----------
    alpha : float
        How rarely an uninformative feature may be selected.
    measure, engine, include, epsilon, tolerance, max_attributes, missing, na, bins, decision_bins, numeric, minimal
    start, output, n_jobs
        As in `ReductSelector`; `include` and `start` apply to the first layer, the limits to each.

    Attributes
    ----------
    relevant_ : Relevant
        The result of `plar.relevant`, with its layers.
    p_values_ : (n_features_in_,) array of float
        Those of the selected features when they were added (0 for `include`), those of the others at the end.
    ranking_ : (n_features_in_,) array of int
        The layer of each feature, from 1 on, and one shared last rank for all others.
    reduct_, core_, scores_
        Of the first layer; see `ReductSelector`.

    Examples
    --------
    >>> import numpy as np
    >>> from plar.sklearn import RelevantSelector
    >>> a, b = np.arange(200) % 2, np.arange(200) // 2 % 2
    >>> RelevantSelector().fit(np.column_stack([a, b, a]), a).ranking_
    array([1, 3, 2])
    """

    def __init__(
        self,
        measure: str | Measure = "SCE",
        *,
        engine: str | Engine = "auto",
        include: str | int | Iterable[str | int] = (),
        epsilon: float = 0.0,
        tolerance: float = 0.0,
        max_attributes: int | None = None,
        missing: str = "value",
        na: str | float | Iterable[str | float] | None = None,
        bins: Spec | None = None,
        decision_bins: str | Sequence[float] | None = None,
        numeric: str | int | Iterable[str | int] = (),
        minimal: bool = False,
        alpha: float = DEFAULT_ALPHA,
        start: str | None = None,
        output: str = "values",
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            measure,
            engine=engine,
            include=include,
            epsilon=epsilon,
            tolerance=tolerance,
            max_attributes=max_attributes,
            missing=missing,
            na=na,
            bins=bins,
            decision_bins=decision_bins,
            numeric=numeric,
            minimal=minimal,
            alpha=alpha,
            start=start,
            output=output,
            n_jobs=n_jobs,
        )

    @property
    def relevant_(self) -> Relevant:
        """The result of `plar.relevant`."""
        self._result()
        return self._layers

    @property
    def p_values_(self) -> NDArray[np.float64]:
        """The p-value of every feature; see the class."""
        p_values = dict(self.relevant_.rejected)
        for layer in self.relevant_.layers:
            p_values |= {step.attribute: step.p_value or 0.0 for step in layer.steps}
        return np.array([p_values.get(name, 0.0) for name in self.reduct_.conditions])

    @property
    def ranking_(self) -> NDArray[np.intp]:
        """The layer of every feature; see the class."""
        layers = self.relevant_.layers
        ranking = np.full(self.n_features_in_, len(layers) + 1)
        for number, layer in enumerate(layers, 1):
            ranking[self._places(layer.attributes)] = number
        return ranking

    def _selected(self) -> Iterable[str]:
        return self.relevant_.attributes

    def _search(self, granules: Granules) -> tuple[Reduct, NDArray[np.float64]]:
        with self._session_of(granules) as session:
            self._layers = Relevance(session, as_measure(self.measure), self._named_options(granules)).run()
        return self._recorded(self._layers.first), self._scores(self._layers.first, granules)
