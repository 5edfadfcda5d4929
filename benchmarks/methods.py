"""The ways to select columns that `comparison.py` sets side by side: functions from training rows to columns."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from bars import HERE
from numpy.typing import NDArray

import plar

#: rows, the target, and how many columns to choose, for those that must be told; gives the places of the chosen columns
Selector = Callable[[Any, Any, int], list[int]]

#: scikit-learn's sequential search is not asked for more columns, since every one costs a fit for each that is left
MOST_SEQUENTIAL = 8
PEERS = HERE / "peers"


class Method(NamedTuple):
    """A way to select columns."""

    #: in the tables of the documentation
    words: str
    select: Selector
    #: whether it must be told how many columns to choose
    is_given_number: bool = False


def methods_for(is_numeric: bool, bins: str) -> dict[str, Method]:
    """All methods, for a target of numbers or of classes; `bins` is how the plain reduct cuts numbers."""
    peer = _Peers(is_numeric)
    told = f"the number of `select`, at most {MOST_SEQUENTIAL}"
    return {
        "all": Method("all columns", lambda x, y, k: list(range(x.shape[1]))),
        "select": Method("plar `FeatureSelector()`", _select),
        "alpha": Method("plar `ReductSelector(alpha=0.05)`", _reduce(is_numeric, bins="auto", alpha=0.05)),
        "relevant": Method("plar `RelevantSelector()`", _relevant(is_numeric)),
        "reduct": Method("plar `ReductSelector()`", _reduce(is_numeric, bins=bins, alpha=None)),
        "boruta": Method("Boruta", peer.boruta),
        "mutual_info": Method("`SelectKBest(mutual_info)`, the number of `select`", peer.mutual_info, True),
        "mrmr": Method("mRMR, the number of `select`", peer.mrmr, True),
        "jmi": Method("JMI, the number of `select`", jmi, True),
        "sequential": Method(f"`SequentialFeatureSelector(tree)`, {told}", peer.sequential, True),
    }


# -- plar ------------------------------------------------------------------------------------------------------


def _places(names: tuple[str, ...]) -> list[int]:
    """The columns of an array, by plar's names for them."""
    return sorted(int(name.removeprefix("x")) for name in names)


def _select(x: Any, y: Any, k: int) -> list[int]:
    return _places(plar.select(x, y=y).columns)


def _decision_bins(is_numeric: bool) -> str | None:
    """How a target of numbers is cut where only classes can be searched for."""
    return "quantile:4" if is_numeric else None


def _reduce(is_numeric: bool, bins: str, alpha: float | None) -> Selector:
    def select(x: Any, y: Any, k: int) -> list[int]:
        cut = _decision_bins(is_numeric)
        return _places(plar.reduce(x, y=y, bins=bins, alpha=alpha, decision_bins=cut).attributes)

    return select


def _relevant(is_numeric: bool) -> Selector:
    def select(x: Any, y: Any, k: int) -> list[int]:
        return _places(plar.relevant(x, y=y, bins="auto", decision_bins=_decision_bins(is_numeric)).attributes)

    return select


# -- others ----------------------------------------------------------------------------------------------------


class _Peers:
    """Selectors of other packages, with the seeds that they need."""

    def __init__(self, is_numeric: bool) -> None:
        self._is_numeric = is_numeric
        if str(PEERS) not in sys.path:
            sys.path.append(str(PEERS))

    def boruta(self, x: Any, y: Any, k: int) -> list[int]:
        """Boruta on trees of depth 5, which stops early."""
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

        kind = RandomForestRegressor if self._is_numeric else RandomForestClassifier
        forest = kind(max_depth=5, random_state=0)
        search = import_module("boruta").BorutaPy(forest, n_estimators="auto", random_state=0, early_stopping=True)
        return _of_mask(search.fit(x, y).support_)

    def mutual_info(self, x: Any, y: Any, k: int) -> list[int]:
        """The columns of the largest mutual information with the target, each by itself."""
        from sklearn.feature_selection import SelectKBest, mutual_info_classif, mutual_info_regression

        information = mutual_info_regression if self._is_numeric else mutual_info_classif
        return _of_mask(SelectKBest(lambda x, y: information(x, y, random_state=0), k=k).fit(x, y).get_support())

    def mrmr(self, x: Any, y: Any, k: int) -> list[int]:
        """Maximum relevance, minimum redundancy, by F statistics and correlations."""
        import pandas as pd

        package = import_module("mrmr")
        select = package.mrmr_regression if self._is_numeric else package.mrmr_classif
        chosen = select(X=pd.DataFrame(x), y=pd.Series(y), K=k, show_progress=False, n_jobs=1)
        return sorted(int(place) for place in chosen)

    def sequential(self, x: Any, y: Any, k: int) -> list[int]:
        """Forward steps, by the cross-validated score of a tree."""
        from sklearn.feature_selection import SequentialFeatureSelector
        from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

        kind = DecisionTreeRegressor if self._is_numeric else DecisionTreeClassifier
        n_columns = min(k, MOST_SEQUENTIAL)
        search = SequentialFeatureSelector(kind(random_state=0), n_features_to_select=n_columns, cv=3)
        return _of_mask(search.fit(x, y).get_support())


def _of_mask(mask: Any) -> list[int]:
    return np.flatnonzero(mask).tolist()


# -- JMI -------------------------------------------------------------------------------------------------------


def jmi(x: Any, y: Any, k: int) -> list[int]:
    """Joint mutual information, numbers in quartile bins: the largest Σ I((x, s); y) over the s chosen before.

    H. H. Yang and J. Moody: Data Visualization and Feature Selection: New Algorithms for Nongaussian Data, 1999.
    """
    columns = [_quartile_codes(column) for column in x.T]
    target = _quartile_codes(y)
    scores = np.array([_information(column, target) for column in columns])
    chosen = [int(scores.argmax())]
    scores = np.zeros(len(columns))
    while len(chosen) < min(k, len(columns)):
        newest = columns[chosen[-1]]
        for j, column in enumerate(columns):
            scores[j] += _information(_pair_codes(column, newest), target)
        scores[chosen] = -np.inf
        chosen.append(int(scores.argmax()))
    return sorted(chosen)


def _quartile_codes(values: Any) -> NDArray[np.int64]:
    """Codes of values, or of their quartiles if there are more than 12."""
    if len(np.unique(values)) > 12:
        values = np.searchsorted(np.unique(np.quantile(values, (0.25, 0.5, 0.75))), values)
    return np.asarray(np.unique(values, return_inverse=True)[1], np.int64)


def _pair_codes(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    return a * np.int64(b.max() + 1) + b


def _information(a: NDArray[np.int64], b: NDArray[np.int64]) -> float:
    """Mutual information, in nats."""
    return _entropy(a) + _entropy(b) - _entropy(_pair_codes(a, b))


def _entropy(codes: NDArray[np.int64]) -> float:
    counts = np.bincount(codes)
    shares = counts[counts > 0] / len(codes)
    return float(-(shares * np.log(shares)).sum())
