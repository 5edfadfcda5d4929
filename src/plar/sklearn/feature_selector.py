"""`FeatureSelector`, which selects the few features that predict y."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from plar.bins import Spec
from plar.engines.base import Engine
from plar.input.tables.table import DecisionTable
from plar.options import DEFAULT_ALPHA, Columns, SelectOptions
from plar.results.selection import Selection
from plar.search.selection import SelectionSearch
from plar.sklearn.base import TableSelector, is_series


class FeatureSelector(TableSelector):
    """Selects the few features that predict y, for classification and regression: `plar.select`.

    A feature is selected if it says more about y than a shuffled y would let it seem, beside each feature that was
    selected before. There is no number of features to choose, and nothing random. Features that only number or name
    the rows are left out. Text, categories, dates and missing values are used, and passed on, as they are, from
    numpy, pandas and polars alike; numbers are compared in bins, and passed on uncut.

    Parameters
    ----------
    alpha : float
        The level of the tests: in at most this share of tables of pure noise any feature at all is selected. Raise it,
        to 0.2 for example, if the table is small and its signals are weak.
    given : {"each", "all"}
        "all" takes features that say something beside all selected ones together, which ends early, when hardly two
        rows agree in these. "each" then goes on with features that say something beside each single selected one.
    max_columns : int, optional
        Select at most this many features: the first so many that would be selected without a limit.
    include, exclude : list of str or int
        Features to always select, without a test, and to never select, by name or position.
    keep : list of str or int
        Features to consider although they seem only to number or name the rows.
    bins : "auto", "quantile:k", "width:k", "mdlp" or mapping, optional
        How numbers are compared: at the quartiles where there are more than 12 different ones ("auto"); see
        `plar.reduce`. None compares every number as a value of its own.
    missing : {"value", "drop", "error"}
        Missing is a value of its own, or rows with missing values are ignored in the fit, or they are an error.
    na : str, number or list of them, optional
        What else means missing, such as "?" or -999; see `plar.reduce`.
    numeric : list of str or int
        Features of text to compare as numbers, so that 1, 1.0 and 01 are one value.
    target_type : {"auto", "classes", "numbers"}
        Whether y is classes, or numbers, whose ranks are predicted. By default text, categories and truth values are
        classes, and so are numbers if there are at most 20 different ones (of more than ten at least two
        rows each on average), or if they are 0 … k-1 or 1 … k, with k up to 100 and at least 3 rows each.
    target_bins : "quantile:k", "width:k" or list of cut points, optional
        Cut a y of numbers into classes.
    output : {"values", "bins"}
        What `transform` returns: the columns of X as they are; or, for those that were cut, bin numbers from 0.
    engine : {"auto", "local", "spark", "cuda"} or Engine
        Where to compute; the result is the same.
    n_jobs : int, optional
        Threads of this machine; by default, or with -1, all cores.
    time_limit : float or str, optional
        Seconds, or "90s", "10m", "2h", after which the search stops with the features so far.

    Attributes
    ----------
    selection_ : Selection
        The result of `plar.select`: the selected features in their order and why, and the reason for every other one.
    ranking_ : (n_features_in_,) array of int
        1, 2, 3, … for the selected features in their order, those of `include` first, and one shared last rank for all
        others.
    scores_ : (n_features_in_,) array of float
        What each feature says about y by itself, as a share of what there is to say, from 0 to 1. NaN for those that
        were no candidates: included, excluded, constant or index-like.
    n_features_in_ : int
    feature_names_in_ : (n_features_in_,) array of str
        Only if all columns of X have names that are str.

    See Also
    --------
    FeatureSelectorCV : Chooses how many of them are enough for an estimator.

    Notes
    -----
    The result depends only on the data: there is no random state, and the order of the rows does not matter. The tests
    take rows as independent of each other; with repeated rows of one subject, or a series in time, p-values are too
    small.

    Examples
    --------
    >>> from plar.sklearn import FeatureSelector
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> selector = FeatureSelector().set_output(transform="pandas").fit(X, y)
    >>> selector.selection_.columns[:3]
    ('worst radius', 'worst concave points', 'worst texture')
    >>> selector.transform(X).shape
    (569, 11)

    In a pipeline features are selected anew on the training rows of every fold:

    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.pipeline import make_pipeline
    >>> scores = cross_val_score(make_pipeline(FeatureSelector(), GaussianNB()), X, y)
    >>> round(float(scores.mean()), 2)
    0.94
    """

    def __init__(
        self,
        alpha: float = DEFAULT_ALPHA,
        *,
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the features to select.

        Parameters
        ----------
        X : (n, k) array_like, pandas or polars DataFrame
        y : (n,) array_like
            Classes of any type, or numbers; none of them missing.
        sample_weight : (n,) array_like of whole numbers, optional
            How often each row counts; 0 leaves it out. A weight of 5 is five observations, as if the row were there
            five times: weights that only stress some rows, or those of a bootstrap, make p-values meaningless.
        """
        options = self._options()
        X, labels = self._checked_with_y(X, y, reset=True)
        table = self._table(X, y if is_series(y) else labels, self.target_bins)
        named_options = _by_name(options, table)
        with self._session(table, sample_weight) as session:
            self.selection_ = SelectionSearch(session, named_options).run()
        return self

    @property
    def ranking_(self) -> NDArray[np.intp]:
        """The order in which the features were selected; see the class."""
        columns = self.selection_.columns
        ranking = np.full(self.n_features_in_, max(len(columns), 1) + 1)
        ranking[self._places(columns)] = range(1, len(columns) + 1)
        return ranking

    @property
    def scores_(self) -> NDArray[np.float64]:
        """What each feature says about y by itself; see the class."""
        alone = self.selection_.alone
        return np.array([alone.get(name, np.nan) for name in self.selection_.conditions])

    def first_columns(self, X: Any, n: int) -> Any:
        """The first n selected columns of an array or frame as they are, in the same kind of table and in table order.

        Examples
        --------
        >>> from plar.sklearn import FeatureSelector
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> FeatureSelector().fit(X, y).first_columns(X[:2], 1)
        array([[1.4],
               [1.4]])
        """
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        if not n:
            return np.empty((len(X), 0))
        support = np.zeros(self.n_features_in_, np.bool_)
        support[self._places(self.selection_.columns[:n])] = True
        return self._take(X, support)

    def _fitted(self) -> Selection:
        return self.selection_

    def _selected(self) -> Sequence[str]:
        return self.selection_.columns

    def _options(self) -> SelectOptions:
        """What is selected, as far as it can be checked without the table."""
        return SelectOptions(
            alpha=self.alpha,
            given=self.given,
            max_columns=self.max_columns,
            include=self.include,
            exclude=self.exclude,
            keep=self.keep,
            target_type=self.target_type,
        )


def _by_name(options: SelectOptions, table: DecisionTable) -> SelectOptions:
    """The options with the features by name, found before weights stand beside them."""
    return replace(
        options,
        include=table.columns(options.include),
        exclude=table.columns(options.exclude),
        keep=table.columns(options.keep),
    )
