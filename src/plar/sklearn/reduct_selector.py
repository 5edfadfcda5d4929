"""`ReductSelector`, which selects features that carry all the information about y that X has."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, column_or_1d

from plar.api import gains_of
from plar.bins import Spec, parse_bins, parse_decision_bins
from plar.coding.column_names import NameIndex, column_list, resolve
from plar.engines.base import Engine
from plar.errors import TableError
from plar.granules.granules import Granules
from plar.measures import Measure, as_measure
from plar.options import ReadOptions, SearchOptions
from plar.reduct_search.find import find_reduct
from plar.results.reduct import Reduct
from plar.session.session import Session
from plar.sklearn.base import TableSelector


def _fixed_bins(selector: ReductSelector) -> bool:
    bins = selector.bins
    fixed = bins is None or (isinstance(bins, Mapping) and not any(isinstance(a, str) for a in bins.values()))
    return fixed and not isinstance(selector.decision_bins, str)


class ReductSelector(TableSelector):
    """Selects features that carry all the information about y that X has.

    The values of X are labels, not quantities: a feature separates two rows if its values differ. Text,
    categories, whole numbers and missing values are used, and passed on, as they are, from numpy, pandas and
    polars alike. Numbers with many values need `bins`.

    Parameters
    ----------
    measure : {"SCE", "PR", "LCE", "CCE"} or Measure
        What is preserved.
    missing : {"value", "drop", "error"}
        Missing is a value of its own, or rows with missing values are ignored in the fit, or they are an error.
    bins : "auto", "quantile:k", "width:k", "mdlp" or mapping, optional
        How numbers become bins.
    decision_bins : "quantile:k", "width:k" or list of cut points, optional
        Cut a y of numbers into classes.
    output : {"values", "bins"}
        What `transform` returns: the columns of X as they are; or, for those that were cut, bin numbers from 0.
    alpha : float, optional
        Select only features that beat chance at this level, for example 0.05; use this for prediction.
    search : {"greedy", "smallest"}
        Add one feature after another, or find the smallest set and prove it: `reduct_.proof`.
    costs : mapping of features to whole numbers, optional
        With ``search="smallest"``: what features cost, 1 by default.
    exclude : list of str or int
        With ``search="smallest"``: features that must not be selected.
    engine, include, epsilon, tolerance, max_attributes, na, numeric, minimal, start, time_limit, n_jobs
        As in `plar.reduce`, which also says more about the others.

    Attributes
    ----------
    reduct_ : Reduct
        The result of `plar.reduce`, with names, trace and certificate.
    core_ : (n_core,) array of int
        The columns of the core, ascending; `reduct_.core` has their names.
    ranking_ : (n_features_in_,) array of int
        1 for the selected part of the core, then 2, 3, … in the order of selection, and one shared last rank
        for all features that are not selected. No feature has rank 1 if the core is empty.
    scores_ : (n_features_in_,) array of float
        The gain of each feature. For the core: how much Θ(D|C) rises without it. For the other selected ones:
        how much they lowered Θ(D|R) when they were added. For the rest: their gain in the last round or, if
        they were in none, with respect to the selected features.
    n_features_in_ : int
    feature_names_in_ : (n_features_in_,) array of str
        Only if all columns of X have names that are str.

    Notes
    -----
    The result depends only on the data: there is no random state, and the order of the rows does not matter.

    `partial_fit` keeps the distinct rows with their counts, so that batches give the same result as all rows
    at once; the reduct is computed when it is first used. Bins that depend on the data need all rows at once,
    so `partial_fit` does not support them. `fit` keeps no rows: a `partial_fit` after it starts over, with a
    warning.

    Examples
    --------
    >>> import numpy as np
    >>> from plar.sklearn import ReductSelector
    >>> X = np.array([["sun", "hot", "dry"], ["sun", "mild", "dry"], ["rain", "hot", "wet"], ["rain", "mild", "wet"]])
    >>> y = ["out", "out", "in", "out"]
    >>> selector = ReductSelector().fit(X, y)
    >>> selector.get_support(), selector.ranking_, selector.core_
    (array([ True,  True, False]), array([2, 1, 3]), array([1]))
    >>> selector.transform(X)[0].tolist()
    ['sun', 'hot']
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
        alpha: float | None = None,
        start: str | None = None,
        search: str = "greedy",
        costs: Mapping[str | int, int] | None = None,
        exclude: str | int | Iterable[str | int] = (),
        time_limit: float | str | None = None,
        output: str = "values",
        n_jobs: int | None = None,
    ) -> None:
        self.measure = measure
        self.engine = engine
        self.include = include
        self.epsilon = epsilon
        self.tolerance = tolerance
        self.max_attributes = max_attributes
        self.missing = missing
        self.na = na
        self.bins = bins
        self.decision_bins = decision_bins
        self.numeric = numeric
        self.minimal = minimal
        self.alpha = alpha
        self.start = start
        self.search = search
        self.costs = costs
        self.exclude = exclude
        self.time_limit = time_limit
        self.output = output
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ReductSelector:
        """Find the features to select.

        Parameters
        ----------
        X : (n, k) array_like, pandas or polars DataFrame
        y : (n,) array_like
            Labels of any type, none of them missing.
        sample_weight : (n,) array_like of whole numbers, optional
            How often each row counts; 0 leaves it out.
        """
        granules = self._granulate(X, y, sample_weight, reset=True).for_one_search()
        self._granules: Any = None
        self._reduct_and_scores: tuple[Reduct, NDArray[np.float64]] | None = self._search(granules)
        return self

    @available_if(_fixed_bins)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> ReductSelector:
        """Add rows to those seen; the reduct of all of them is computed when it is used. Parameters are those of `fit`.

        `classes`, all possible labels, is optional; if given, a label of y that is not among them is refused.
        """
        before: Granules | None = getattr(self, "_granules", None)
        if before is None and self.__sklearn_is_fitted__():
            warnings.warn("fit kept no rows to add to, so partial_fit starts over.", stacklevel=2)
        granules = self._granulate(X, y, sample_weight, reset=before is None)
        if classes is not None:
            odd = set(granules.decision_values[0]).difference(column_or_1d(classes).tolist())
            if odd:
                raise TableError(f"y holds {min(odd, key=repr)!r}, which is not among the classes. Add it to them.")
        self._granules = granules if before is None else before.merge(granules)
        self._reduct_and_scores = None
        return self

    @property
    def reduct_(self) -> Reduct:
        """The result of `plar.reduce`; computed now if `partial_fit` came last."""
        return self._result()[0]

    @property
    def scores_(self) -> NDArray[np.float64]:
        """The gain of every feature; see the class."""
        return self._result()[1]

    @property
    def core_(self) -> NDArray[np.intp]:
        """The columns of the core."""
        return np.array(sorted(self._places(self.reduct_.core)), np.intp)

    @property
    def ranking_(self) -> NDArray[np.intp]:
        """The order in which the features were selected; see the class."""
        core = set(self.reduct_.core)
        selected = self.reduct_.attributes
        later = [name for name in selected if name not in core]
        ranking = np.full(self.n_features_in_, len(later) + 2)
        ranking[self._places(core.intersection(selected))] = 1
        ranking[self._places(later)] = range(2, len(later) + 2)
        return ranking

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_reduct_and_scores")

    def _selected(self) -> Iterable[str]:
        return self.reduct_.attributes

    def _fitted(self) -> Reduct:
        return self.reduct_

    def _granulate(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Granules:
        """The distinct rows of X and y; bad parameters are refused before any work."""
        as_measure(self.measure)
        self._search_options(self.include, self.exclude, self.costs)
        X, y = self._checked_with_y(X, y, reset=reset)
        table = self._table(X, y, self.decision_bins)
        self._resolved(NameIndex(table.conditions), self.include, "feature to include")
        with self._session(table, sample_weight) as session:
            return cast(Granules, session.keep_granules())

    def _search_options(
        self, include: Any, exclude: Any, costs: Mapping[str, int] | Mapping[str | int, int] | None
    ) -> SearchOptions:
        return SearchOptions(
            include=include,
            epsilon=self.epsilon,
            tolerance=self.tolerance,
            max_attributes=self.max_attributes,
            minimal=self.minimal,
            alpha=self.alpha,
            start=self.start,
            search=self.search,
            costs=costs,
            exclude=exclude,
        )

    @staticmethod
    def _resolved(names: NameIndex, columns: Any, kind: str) -> list[str]:
        return [resolve(names, column, kind) for column in column_list(columns)]

    def _named_options(self, granules: Granules) -> SearchOptions:
        """The options of the search, with the features by name."""
        names = NameIndex(granules.conditions)
        costs = self.costs and {resolve(names, column, "feature"): cost for column, cost in self.costs.items()}
        return self._search_options(
            self._resolved(names, self.include, "feature to include"),
            self._resolved(names, self.exclude, "feature to exclude"),
            costs,
        )

    def _session_of(self, granules: Granules) -> Session:
        """A session of granules that were made before."""
        return Session(granules, ReadOptions(missing=self.missing), self._run_options())

    def _result(self) -> tuple[Reduct, NDArray[np.float64]]:
        check_is_fitted(self)
        if self._reduct_and_scores is None:
            self._reduct_and_scores = self._search(self._granules)
        return self._reduct_and_scores

    def _search(self, granules: Granules) -> tuple[Reduct, NDArray[np.float64]]:
        """Find the reduct and the scores."""
        with self._session_of(granules) as session:
            reduct = find_reduct(session, as_measure(self.measure), self._named_options(granules))
        return self._recorded(reduct), self._scores(reduct, granules)

    def _recorded(self, reduct: Reduct) -> Reduct:
        """The result with the settings of its granules."""
        bins = parse_bins(self.bins, reduct.conditions, reduct.conditions)
        decision_bins = parse_decision_bins(self.decision_bins)
        na = ReadOptions(na=self.na).na
        settings = {
            **reduct.settings,
            "na": None if na is None else list(na),
            "y": True,
            "bins": None if bins is None else bins.spec,
            "decision_bins": None if decision_bins is None else decision_bins.spec,
        }
        return replace(reduct, settings=settings)

    def _scores(self, reduct: Reduct, granules: Granules) -> NDArray[np.float64]:
        scores = dict(reduct.steps[-1].candidates) if reduct.steps else {}
        scores |= {step.attribute: step.significance for step in reduct.steps} | dict(reduct.core_significances)
        if len(scores) < len(reduct.conditions):
            with self._session_of(granules) as session:
                gains = gains_of(session, as_measure(self.measure), reduct.attributes)
            scores = gains | scores
        return np.array([scores[name] for name in reduct.conditions])
