"""`FeatureSelectorCV`, which selects as many of the features that predict y as an estimator needs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import MetaEstimatorMixin, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import Bunch, get_tags
from sklearn.utils._metadata_requests import _raise_for_params, _routing_enabled
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from plar.bins import Spec
from plar.engines.base import Engine
from plar.errors import invalid
from plar.options import DEFAULT_ALPHA, Columns
from plar.results.selection import Selection
from plar.sklearn.base import TableSelector, is_series
from plar.sklearn.feature_selector import FeatureSelector
from plar.sklearn.fold_scores import Scores, Trial, cv_results, fewest_within_one_error, fitted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def _has(method: str) -> Callable[[FeatureSelectorCV], bool]:
    """Whether the estimator has a method; the fitted one, if there is one."""

    def check(selector: FeatureSelectorCV) -> bool:
        getattr(getattr(selector, "estimator_", selector.estimator), method)
        return True

    return check


class FeatureSelectorCV(MetaEstimatorMixin, TableSelector):  # type: ignore[misc]  # scikit-learn is not typed
    """Selects as many of the features that predict y as an estimator needs, by cross-validation.

    `FeatureSelector` finds features in an order, the best first. This class finds the order anew on the training rows
    of every fold, scores the estimator there with the first feature, the first two and so on, and keeps the smallest
    number whose mean score is within one standard error of the best. Then it selects that many of the features found
    on all rows, and fits the estimator with them. It takes one fit for each fold and number of features.

    It is used like `sklearn.feature_selection.RFECV`. The estimator gets the selected columns of X as they are, in an
    array or in a frame of the same library, and needs neither coefficients nor importances.

    Parameters
    ----------
    estimator : estimator
        What the features are for: a classifier, a regressor, or a pipeline that ends in one.
    cv : int, splitter or iterable, optional
        How rows are split: by default in 5 folds, stratified for a classifier.
    scoring : str or callable, optional
        What is to be high, such as "roc_auc"; by default what the estimator's `score` returns.
    min_columns : int
        Select at least this many features, if that many are found. With 0 it may select none, if a prediction without
        any, of the classes' shares or the mean, is as good.
    n_jobs : int, optional
        How many folds to work on at a time; -1 is one for each core. By default, or with 1, they come one by one; by
        default each of them is searched by all cores.
    time_limit : float or str, optional
        Limits the search for the features of each fold, and of all rows.
    alpha, given, max_columns, include, exclude, keep, bins, missing, na, numeric, target_type, target_bins, output
    engine
        As in `FeatureSelector`. The estimator gets what `transform` returns: bin numbers with ``output="bins"``.

    Attributes
    ----------
    cv_results_ : dict of arrays
        ``n_features``; ``mean_test_score`` and ``std_test_score`` at each of these numbers; ``split0_test_score`` and
        so on. The score of k features is that of ``FeatureSelector(max_columns=k)`` before the estimator: where fewer
        are found in a fold, it is scored with those.
    n_features_ : int
        How many features are selected.
    support_ : (n_features_in_,) array of bool
        Which these are.
    ranking_ : (n_features_in_,) array of int
        1 for the selected features, 2, 3, … for those that come after them in the order, and one shared last rank for
        all others.
    estimator_ : estimator
        Fitted with the selected features of all rows.
    selection_ : Selection
        What was found on all rows; the first `n_features_` of its columns are selected.
    selector_ : FeatureSelector
        What found them.
    scores_ : (n_features_in_,) array of float
        What each feature says about y by itself, as in `FeatureSelector`.
    classes_ : array
        Of a fitted classifier.
    n_features_in_ : int
    feature_names_in_ : (n_features_in_,) array of str
        Only if all columns of X have names that are str.

    Notes
    -----
    Whether y is classes or numbers is decided once, by all rows. The best of several mean scores is a little too good;
    for an honest one, score this class itself on other rows, as in ``cross_val_score(FeatureSelectorCV(model), X, y)``.

    Examples
    --------
    >>> from plar.sklearn import FeatureSelectorCV
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> selector = FeatureSelectorCV(GaussianNB()).fit(X, y)
    >>> selector.cv_results_["mean_test_score"].round(2).tolist()
    [0.92, 0.94, 0.96, 0.95, 0.95, 0.94, 0.94, 0.94, 0.94, 0.95, 0.95]
    >>> selector.n_features_, selector.get_feature_names_out().tolist()
    (3, ['worst radius', 'worst texture', 'worst concave points'])
    >>> selector.predict(X[:2])
    array([0, 0])
    """

    def __init__(
        self,
        estimator: Any,
        *,
        cv: Any = None,
        scoring: str | Callable[..., float] | None = None,
        min_columns: int = 1,
        alpha: float = DEFAULT_ALPHA,
        given: str = "each",
        max_columns: int | None = None,
        include: Columns = (),
        exclude: Columns = (),
        keep: Columns = (),
        bins: Spec | None = "auto",
        missing: str = "value",
        na: str | float | Iterable[str | float] | None = None,
        numeric: Columns = (),
        target_type: str = "auto",
        target_bins: str | Sequence[float] | None = None,
        output: str = "values",
        engine: str | Engine = "auto",
        n_jobs: int | None = None,
        time_limit: float | str | None = None,
    ) -> None:
        self.estimator = estimator
        self.cv = cv
        self.scoring = scoring
        self.min_columns = min_columns
        self.alpha = alpha
        self.given = given
        self.max_columns = max_columns
        self.include = include
        self.exclude = exclude
        self.keep = keep
        self.bins = bins
        self.missing = missing
        self.na = na
        self.numeric = numeric
        self.target_type = target_type
        self.target_bins = target_bins
        self.output = output
        self.engine = engine
        self.n_jobs = n_jobs
        self.time_limit = time_limit

    def fit(self, X: Any, y: Any, **params: Any) -> Self:
        """Find the features, and how many of them the estimator needs.

        Parameters
        ----------
        X : (n, k) array_like, pandas or polars DataFrame
        y : (n,) array_like
            Classes of any type, or numbers; none of them missing.
        **params
            ``groups`` for the splitter; where scikit-learn's metadata routing is enabled, also what the estimator's
            `fit`, the scorer and the splitter have requested. Features are found with every row counted once.
        """
        _raise_for_params({name: value for name, value in params.items() if name != "groups"}, self, "fit")
        self._check_min_columns()
        X, labels = self._checked_with_y(X, y, reset=True)
        if is_classifier(self.estimator):
            check_classification_targets(labels)
        routed = self._routed_to_fit(params)
        self.selector_ = self._new_selector().fit(X, y if is_series(y) else labels)
        self.cv_results_ = cv_results(self._scores_of_folds(X, labels, routed))
        self.n_features_ = fewest_within_one_error(self.cv_results_)
        self.support_ = self._get_support_mask()
        if not self.n_features_:
            warnings.warn("No feature was selected, so the prediction is the same for all rows.", stacklevel=2)
        columns = self.selector_.first_columns(X, self.n_features_)
        self.estimator_ = fitted(self.estimator, columns, labels, routed.estimator.fit)
        return self

    @available_if(_has("predict"))  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> Any:
        """Predict y of new rows by the selected features."""
        columns = self._checked_columns_of(X)
        return self.estimator_.predict(columns)

    @available_if(_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Predict the probability of each class."""
        columns = self._checked_columns_of(X)
        return self.estimator_.predict_proba(columns)

    @available_if(_has("predict_log_proba"))  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Any:
        """Predict the logarithm of the probability of each class."""
        columns = self._checked_columns_of(X)
        return self.estimator_.predict_log_proba(columns)

    @available_if(_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Any:
        """Compute the estimator's decision function."""
        columns = self._checked_columns_of(X)
        return self.estimator_.decision_function(columns)

    def score(self, X: Any, y: Any, **params: Any) -> float:
        """Score the fitted estimator on other rows by `scoring`.

        `params` go to the scorer, where scikit-learn's metadata routing is enabled.
        """
        _raise_for_params(params, self, "score")
        columns = self._checked_columns_of(X)
        score_params = process_routing(self, "score", **params).scorer.score if _routing_enabled() else {}
        return float(self._scorer()(self.estimator_, columns, y, **score_params))

    def plot(self, ax: Axes | None = None) -> Figure:
        """Draw the mean score by the number of features, and mark the best number and the selected one.

        Needs matplotlib. The band is one standard error wide on either side. Notebooks show the figure that is
        returned; pass `ax` to draw into a figure of your own.

        Examples
        --------
        >>> from plar.sklearn import FeatureSelectorCV
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> figure = FeatureSelectorCV(DecisionTreeClassifier(random_state=0)).fit(X, y).plot()
        >>> figure.axes[0].get_xlabel()
        'selected features'
        """
        check_is_fitted(self)
        from plar.sklearn.score_curve import draw

        label = self.scoring if isinstance(self.scoring, str) else "score"
        return draw(self.cv_results_, self.n_features_, label, ax)

    @property
    def selection_(self) -> Selection:
        """What was found on all rows; see the class."""
        return self.selector_.selection_

    @property
    def scores_(self) -> NDArray[np.float64]:
        """What each feature says about y by itself; see the class."""
        return self.selector_.scores_

    @property
    def ranking_(self) -> NDArray[np.intp]:
        """1 for the selected features; see the class."""
        if not self.selection_.columns:
            return self.selector_.ranking_
        return np.maximum(self.selector_.ranking_ - self.n_features_ + 1, 1)

    @property
    def classes_(self) -> Any:
        """The classes that the fitted estimator knows."""
        return self.estimator_.classes_

    def get_metadata_routing(self) -> MetadataRouter:
        """Say which metadata of `fit` and `score` go to the estimator, to the splitter and to the scorer."""
        router = MetadataRouter(owner=self)
        router.add(estimator=self.estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
        router.add(splitter=check_cv(self.cv), method_mapping=MethodMapping().add(caller="fit", callee="split"))
        of_scorer = MethodMapping().add(caller="fit", callee="score").add(caller="score", callee="score")
        router.add(scorer=self._scorer(), method_mapping=of_scorer)
        return router

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        of_estimator = get_tags(self.estimator)
        tags.estimator_type = of_estimator.estimator_type
        tags.classifier_tags = deepcopy(of_estimator.classifier_tags)
        tags.regressor_tags = deepcopy(of_estimator.regressor_tags)
        for of_kind in (tags.classifier_tags, tags.regressor_tags):
            if of_kind is not None:
                of_kind.poor_score = True  # in tables of few rows hardly anything beats chance
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_label = False
        tags.input_tags.allow_nan = of_estimator.input_tags.allow_nan
        return tags

    def _fitted(self) -> Selection:
        return self.selection_

    def _selected(self) -> Sequence[str]:
        return self.selection_.columns[: self.n_features_]

    def _check_min_columns(self) -> None:
        """Refuse what is no number of columns."""
        least = self.min_columns
        if not isinstance(least, Integral) or isinstance(least, bool) or int(least) < 0:
            raise invalid("min_columns", "a whole number, at least 0", least)
        most = self.max_columns
        if isinstance(most, Integral) and int(least) > int(most):
            raise invalid("min_columns", f"at most max_columns, which is {most}", least)

    def _new_selector(self) -> FeatureSelector:
        """A selector with the options of this one."""
        options = {name: getattr(self, name) for name in FeatureSelector().get_params()}
        return FeatureSelector(**options)

    def _sizes(self) -> range:
        """The numbers of features that may be selected."""
        n_found = len(self.selection_.columns)
        fewest = max(int(self.min_columns), len(self.selection_.included))
        return range(min(fewest, n_found), n_found + 1)

    def _scorer(self) -> Any:
        return check_scoring(self.estimator, scoring=self.scoring)

    def _routed_to_fit(self, params: dict[str, Any]) -> Any:
        """What goes to the estimator, the splitter and the scorer."""
        if _routing_enabled():
            return process_routing(self, "fit", **params)
        splitter = Bunch(split={"groups": params.get("groups")})
        return Bunch(estimator=Bunch(fit={}), splitter=splitter, scorer=Bunch(score={}))

    def _scores_of_folds(self, X: Any, y: NDArray[Any], routed: Any) -> list[Scores]:
        """The scores of every fold, by the number of features."""
        cv = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        folds = list(cv.split(X, y, **routed.splitter.split))
        if not folds:
            raise invalid("cv", "a splitter that gives at least one fold", self.cv)
        is_parallel = effective_n_jobs(self.n_jobs) > 1
        trial = Trial(
            selector=self._selector_of_folds(is_parallel),
            estimator=self.estimator,
            scorer=self._scorer(),
            sizes=self._sizes(),
            fit_params=routed.estimator.fit,
            score_params=routed.scorer.score,
        )
        if is_parallel:
            scores = Parallel(n_jobs=self.n_jobs)(delayed(trial.scores)(X, y, train, test) for train, test in folds)
            return list(scores)
        return [trial.scores(X, y, train, test) for train, test in folds]

    def _selector_of_folds(self, is_parallel: bool) -> FeatureSelector:
        """A selector that takes y for what all rows say it is, and finds no more than could be selected."""
        selector = self._new_selector()
        selection = self.selection_
        if self.target_bins is None:
            selector.target_type = selection.target_type
        selector.max_columns = max(len(selection.columns), 1)
        if is_parallel and self.engine in ("auto", "local"):
            selector.n_jobs = 1  # the folds share the cores
        return selector

    def _checked_columns_of(self, X: Any) -> Any:
        """The selected columns of any X, for the estimator."""
        check_is_fitted(self)
        return self.selector_.first_columns(self._checked(X, reset=False), self.n_features_)
