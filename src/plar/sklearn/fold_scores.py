"""How an estimator scores with the first features of a path: found and fitted on some rows, scored on others."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_method_params

from plar.errors import ParameterError
from plar.sklearn.feature_selector import FeatureSelector

#: scores by the number of features
Scores = Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Trial:
    """An estimator to score with features found on the same rows as it is fitted on.

    `sizes` are the numbers of features to try; `fit_params` and `score_params` are metadata of all rows.
    """

    selector: FeatureSelector
    estimator: Any
    scorer: Callable[..., Any]
    sizes: range
    fit_params: Mapping[str, Any]
    score_params: Mapping[str, Any]

    def scores(self, X: Any, y: NDArray[Any], train: NDArray[np.intp], test: NDArray[np.intp]) -> Scores:
        """The score at each size; where fewer features are found, at their number and no further."""
        X_train = _safe_indexing(X, train)
        X_test = _safe_indexing(X, test)
        y_train = y[train]
        y_test = y[test]
        fit_params = _check_method_params(X, self.fit_params, indices=train)
        score_params = _check_method_params(X, self.score_params, indices=test)
        self.selector.fit(X_train, y_train)
        n_found = len(self.selector.selection_.columns)
        scores: dict[int, float] = {}
        for size in sorted({min(size, n_found) for size in self.sizes}):
            model = fitted(self.estimator, self.selector.first_columns(X_train, size), y_train, fit_params)
            score = self.scorer(model, self.selector.first_columns(X_test, size), y_test, **score_params)
            scores[size] = _checked(score, size)
        return scores


def fitted(estimator: Any, columns: Any, y: NDArray[Any], fit_params: Mapping[str, Any]) -> Any:
    """The estimator, fitted with these columns; without any, what predicts the shares of the classes, or the mean."""
    if columns.shape[1]:
        return clone(estimator).fit(columns, y, **fit_params)
    constant = DummyClassifier(strategy="prior") if is_classifier(estimator) else DummyRegressor()
    return constant.fit(columns, y)


def _checked(score: Any, size: int) -> float:
    """A score that is a number."""
    if not isinstance(score, Real) or not math.isfinite(score):
        raise ParameterError(f"scoring must give a number. Got {score!r:.60} with {size} features.")
    return float(score)


def cv_results(scores: Sequence[Scores]) -> dict[str, NDArray[Any]]:
    """The scores of all folds at every size; a fold that found fewer features keeps its last score.

    >>> results = cv_results([{1: 0.5, 2: 0.75}, {1: 0.5}])
    >>> results["n_features"], results["mean_test_score"], results["split1_test_score"]
    (array([1, 2]), array([0.5  , 0.625]), array([0.5, 0.5]))
    """
    first = max(min(fold) for fold in scores)
    longest = max(max(fold) for fold in scores)
    sizes = range(first, longest + 1)
    by_fold = np.array([[fold[min(size, max(fold))] for size in sizes] for fold in scores])
    results: dict[str, NDArray[Any]] = {"n_features": np.array(sizes)}
    results["mean_test_score"] = by_fold.mean(axis=0)
    results["std_test_score"] = by_fold.std(axis=0)
    for k, of_fold in enumerate(by_fold):
        results[f"split{k}_test_score"] = of_fold
    return results


def standard_errors(results: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
    """The standard error of each mean score; 0 if there is one fold."""
    n_folds = sum(name.startswith("split") for name in results)
    errors: NDArray[np.float64] = results["std_test_score"] / math.sqrt(max(n_folds - 1, 1))
    return errors


def fewest_within_one_error(results: Mapping[str, NDArray[Any]]) -> int:
    """The smallest number of features whose mean score is within one standard error of the best.

    >>> fewest_within_one_error(cv_results([{1: 0.7, 2: 0.9, 3: 0.9}, {1: 0.5, 2: 0.7, 3: 0.8}]))
    2
    """
    means = results["mean_test_score"]
    best = int(np.argmax(means))
    enough = means >= means[best] - standard_errors(results)[best]
    return int(results["n_features"][np.argmax(enough)])
