"""`ReductSelector`, which selects features that carry all the information about y that X has."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from plar.api import find_reduct, gains_of
from plar.bins import Spec, parse_bins, parse_decision_bins
from plar.coding.column_names import NameIndex, check_names, column_list, resolve
from plar.coding.missing import NO_SPELLINGS, MissingSpellings
from plar.coding.series import encode_column
from plar.engines import as_engine
from plar.engines.base import Engine
from plar.errors import EngineUnavailable, Given, TableError
from plar.granules.granules import Granules
from plar.input.tables.arrays import check_unmasked
from plar.input.tables.source import Selection
from plar.input.tables.table import open_source, selectable
from plar.measures import Measure, as_measure
from plar.options import ReadOptions, RunOptions, SearchOptions, wants_bins
from plar.results.reduct import Reduct
from plar.session.session import Session
from plar.sklearn.other_library import in_library

try:
    from sklearn.base import BaseEstimator
    from sklearn.feature_selection import SelectorMixin
    from sklearn.utils import assert_all_finite, check_array, check_consistent_length
    from sklearn.utils._set_output import _get_output_config
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d, validate_data
except ImportError:
    raise EngineUnavailable("plar.sklearn needs scikit-learn 1.6 or later. Try: pip install 'plar[sklearn]'.") from None


def _fixed_bins(selector: ReductSelector) -> bool:
    bins = selector.bins
    fixed = bins is None or (isinstance(bins, Mapping) and not any(isinstance(a, str) for a in bins.values()))
    return fixed and not isinstance(selector.decision_bins, str)


class ReductSelector(SelectorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is not typed
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

    def transform(self, X: Any) -> Any:
        """Select the columns, as they are: an array, or the DataFrame that `set_output` asks for.

        The columns of a DataFrame keep their types, also in a DataFrame of another library.
        """
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        library = _library(X)
        reduct = self.reduct_
        options = ReadOptions(na=self.na)
        if not self.get_support().any():
            warnings.warn("No feature was selected: none of them says anything about y.", stacklevel=2)
            return np.empty((len(X), 0), float if library else X.dtype)
        source = open_source(X, options)
        # an array has other names than the fitted frame
        fitted_names = {source.names[j]: reduct.conditions[j] for j in self.get_support(indices=True)}
        known_cuts = reduct.cuts if wants_bins(self.output) else {}
        cuts = {name: known_cuts[fitted] for name, fitted in fitted_names.items() if fitted in known_cuts}
        selected = selectable(source).select(Selection(tuple(fitted_names), cuts, options.spellings))
        wanted = _get_output_config("transform", self)["dense"]
        if wanted == "default":
            return selected if library is None else check_array(selected, dtype=None, ensure_all_finite=False)
        is_uniform = library is None and selected.dtype != object
        return selected if library == wanted or is_uniform else in_library(selected, wanted)

    def inverse_transform(self, X: Any) -> NDArray[Any]:
        """Put selected columns back in their places, with zeros (empty text for text) in all others."""
        support = self.get_support()
        X = check_array(X, dtype=None, ensure_all_finite=False, ensure_min_features=0)
        if X.shape[1] != support.sum():
            raise TableError(f"X has {X.shape[1]} columns, but {support.sum()} were selected. Pass those.")
        whole = np.zeros((len(X), len(support)), X.dtype)
        whole[:, support] = X
        return whole

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.target_tags.required = True
        tags.target_tags.one_d_labels = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _get_support_mask(self) -> NDArray[np.bool_]:
        selected = set(self.reduct_.attributes)
        return np.array([name in selected for name in self.reduct_.conditions], np.bool_)

    def _places(self, names: Iterable[str]) -> list[int]:
        at = {name: place for place, name in enumerate(self.reduct_.conditions)}
        return [at[name] for name in names]

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """X after checking its names and number of columns; a frame as it is, anything else as an array."""
        check_unmasked(X, "X")
        frame = _library(X) is not None
        if frame:
            check_names([str(label) for label in X.columns], "X")
        return validate_data(self, X, dtype=None, ensure_all_finite=False, skip_check_array=frame, reset=reset)

    def _granulate(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Granules:
        """The distinct rows of X and y; bad parameters are refused before any work."""
        as_measure(self.measure)
        wants_bins(self.output)
        as_engine(self.engine, self.n_jobs)
        self._run_options()
        self._search_options(self.include, self.exclude, self.costs)
        if y is None:
            raise TableError("ReductSelector requires y to be passed, but the target y is None.")
        X = self._checked(X, reset=reset)
        y = _labels(y, ReadOptions(na=self.na).spellings)
        check_consistent_length(X, y)
        weights = None
        if sample_weight is not None:
            X, weights = _with_weights(X, _check_sample_weight(sample_weight, X))
        reading = ReadOptions(
            y=y,
            weights=weights,
            missing=self.missing,
            na=self.na,
            bins=self.bins,
            decision_bins=self.decision_bins,
            numeric=self.numeric,
        )
        with Session(X, reading, RunOptions(engine=self.engine, n_jobs=self.n_jobs)) as session:
            granules = cast(Granules, session.keep_granules())
        self._resolved(NameIndex(granules.conditions), self.include, "feature to include")
        return granules

    def _run_options(self) -> RunOptions:
        return RunOptions(engine=self.engine, n_jobs=self.n_jobs, time_limit=self.time_limit)

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

    def _session(self, granules: Granules) -> Session:
        """A session of granules that were made before."""
        return Session(granules, ReadOptions(missing=self.missing), self._run_options())

    def _result(self) -> tuple[Reduct, NDArray[np.float64]]:
        check_is_fitted(self)
        if self._reduct_and_scores is None:
            self._reduct_and_scores = self._search(self._granules)
        return self._reduct_and_scores

    def _search(self, granules: Granules) -> tuple[Reduct, NDArray[np.float64]]:
        """Find the reduct and the scores."""
        with self._session(granules) as session:
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
            with self._session(granules) as session:
                gains = gains_of(session, as_measure(self.measure), reduct.attributes)
            scores = gains | scores
        return np.array([scores[name] for name in reduct.conditions])


def _library(X: Any) -> str | None:
    """The library of a DataFrame that need not become an array."""
    root = type(X).__module__.partition(".")[0]
    return root if root in ("pandas", "polars") and getattr(X, "ndim", len(getattr(X, "shape", ()))) == 2 else None


def _labels(y: Any, na: MissingSpellings) -> NDArray[Any]:
    """Y as an array in which nothing is missing."""
    check_unmasked(y, "y")
    labels: NDArray[Any] = column_or_1d(y, warn=True)
    if labels.dtype.kind == "f":
        assert_all_finite(labels, input_name="y")
    spelled = encode_column(labels, na, "y")
    if spelled.missing is not None:
        if encode_column(labels, NO_SPELLINGS, "y").missing is not None:
            raise TableError("Input y contains NaN or None. Give every row a label, or leave those rows out.")
        label = labels[spelled.codes == spelled.missing].tolist()[0]
        raise TableError(
            f"Input y contains {label!r}, which means missing. Give those rows another label, leave them out, or "
            "change ",
            Given("na"),
            ": with ",
            Given("na", ()),
            " no text means missing.",
        )
    return labels


def _with_weights(X: Any, weights: NDArray[np.float64]) -> tuple[dict[str, Any], str]:
    """The columns of X, a column of weights beside them, and its name."""
    odd = weights[(weights < 0) | (weights != np.floor(weights))]
    if len(odd):
        raise TableError(f"sample_weight takes whole numbers: how often each row counts. Got {odd[0]:g}; scale it.")
    library = _library(X)
    names = [f"x{j}" for j in range(X.shape[1])] if library is None else [str(label) for label in X.columns]
    name = "sample_weight"
    while name in names:
        name += "_"
    columns = (X.iloc[:, j] if library == "pandas" else X[:, j] for j in range(X.shape[1]))
    return {**dict(zip(names, columns, strict=True)), name: weights.astype(np.int64)}, name
