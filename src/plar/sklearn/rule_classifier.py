"""`RuleClassifier`, which predicts classes by rules that people can read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from plar.bins import Spec
from plar.coding.codes import Column
from plar.engines.base import Engine
from plar.errors import TableError, reason_of
from plar.grouping.partition import smallest_codes
from plar.input.tables.table import DecisionTable
from plar.matching.condition import ConditionValue, plain_value
from plar.options import DEFAULT_ALPHA, Columns, ReadOptions, RuleOptions
from plar.results.rules import Rules
from plar.rule_search.find import RuleSearch, reading_for_rules
from plar.runtime.parallel import threads
from plar.sklearn.base import TableEstimator, columns_by_name, is_series

if TYPE_CHECKING:
    import polars


class RuleClassifier(ClassifierMixin, TableEstimator):  # type: ignore[misc]  # scikit-learn is not typed
    """Predicts classes by rules that people can read: `plar.rules`.

    A rule says: if these conditions hold, then this class. The rules that match a row add what each says to the shares
    of the classes among all rows, and the class that has most is predicted. Text, categories, dates and missing values
    are used as they are, from numpy, pandas and polars alike; numbers are compared with cut points, in their own units.
    There is nothing random in it.

    Parameters
    ----------
    kind : {"tested", "certain", "possible"}
        Tested rules are each more often right than chance explains, and are what predicts best. Certain rules describe
        exactly the rows whose class follows from their values, and possible rules the rows that a class is possible
        for, with no condition and no rule to spare.
    alpha : float
        The level of the tests: in at most this share of tables of pure noise there is any rule at all.
    min_support : int
        Only rules that match at least this many rows of their class.
    max_conditions : int, optional
        Only rules of at most this many conditions.
    bins : "auto", "quantile:k", "width:k", "mdlp" or mapping, optional
        How numbers are cut: at the deciles where there are more than 12 different ones ("auto"); see `plar.reduce`.
        None compares every number as a value of its own.
    missing : {"value", "drop", "error"}
        A condition can say that a value is missing, or rows with missing values are ignored in the fit, or they are an
        error.
    na : str, number or list of them, optional
        What else means missing, such as "?" or -999; see `plar.reduce`.
    numeric : list of str or int
        Features of text to compare as numbers, so that 1, 1.0 and 01 are one value.
    engine : {"auto", "local", "spark", "cuda"} or Engine
        What reads the table; rules are found on this machine, and are the same.
    n_jobs : int, optional
        Threads of this machine; by default, or with -1, all cores.
    time_limit : float or str, optional
        Seconds, or "90s", "10m", "2h", after which the search stops with the rules so far.

    Attributes
    ----------
    rules_ : Rules
        The result of `plar.rules`: what each rule asks, its counts, the report, SQL, and `save`. Its decisions are in
        the order of `classes_`.
    classes_ : (n_classes,) array
        The classes, sorted; without those whose rows do not count, for a weight of 0 or for missing values.
    n_features_in_ : int
    feature_names_in_ : (n_features_in_,) array of str
        Only if all columns of X have names that are str.

    See Also
    --------
    FeatureSelector : Selects the few features that predict y.

    Notes
    -----
    The result depends only on the data: there is no random state, and the order of the rows does not matter. Columns
    that only number or name the rows are left out of tested rules; `rules_.left_out` has them. A value that no row of
    the fit had meets no condition that asks for a value. `predict_proba` ranks the classes; for calibrated
    probabilities, use `sklearn.calibration.CalibratedClassifierCV`.

    Examples
    --------
    >>> from plar.sklearn import RuleClassifier
    >>> from sklearn.datasets import load_iris
    >>> iris = load_iris(as_frame=True)
    >>> species = iris.target_names[iris.target]
    >>> model = RuleClassifier().fit(iris.data, species)
    >>> print(model.rules_[0])
    if petal length (cm) ≤ 1.7 then setosa
    >>> model.predict(iris.data[:2]).tolist(), round(model.score(iris.data, species), 2)
    (['setosa', 'setosa'], 0.94)
    """

    def __init__(
        self,
        kind: str = "tested",
        *,
        alpha: float = DEFAULT_ALPHA,
        min_support: int = 1,
        max_conditions: int | None = None,
        bins: Spec | None = "auto",
        missing: str = "value",
        na: str | float | Iterable[str | float] | None = None,
        numeric: Columns = (),
        engine: str | Engine = "auto",
        n_jobs: int | None = None,
        time_limit: float | str | None = None,
    ) -> None:
        self.kind = kind
        self.alpha = alpha
        self.min_support = min_support
        self.max_conditions = max_conditions
        self.bins = bins
        self.missing = missing
        self.na = na
        self.numeric = numeric
        self.engine = engine
        self.n_jobs = n_jobs
        self.time_limit = time_limit

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the rules.

        Parameters
        ----------
        X : (n, k) array_like, pandas or polars DataFrame
        y : (n,) array_like
            Classes of any type, none of them missing.
        sample_weight : (n,) array_like of whole numbers, optional
            How often each row counts; 0 leaves it out. A weight of 5 is five observations, as if the row were there
            five times: weights that only stress some rows, or those of a bootstrap, make p-values meaningless.
        """
        options = self._options()
        X, labels = self._checked_with_y(X, y, reset=True)
        classes, first_rows, codes = _distinct(labels)
        table = self._table(X, y if is_series(y) else labels)
        shown_classes = _shown_labels(table, first_rows)
        with self._session(_by_class_number(table, codes, len(classes)), sample_weight) as session:
            rules = RuleSearch(session, options).run()
        class_numbers = np.array(rules.decisions, np.intp)
        self.classes_ = classes[class_numbers]
        self.rules_ = _with_decisions(rules, [shown_classes[number] for number in class_numbers.tolist()])
        self._column_names = table.names
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of every row; of equals, the first."""
        best = self.predict_proba(X).argmax(axis=1)
        predictions: NDArray[Any] = self.classes_[best]
        return predictions

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """How likely each row has each class, in the order of `classes_`; every row adds up to 1."""
        rows = self._rows(X)
        with threads(self.n_jobs):
            shares: NDArray[np.float64] = self.rules_.predict_proba(rows)
        return shares

    def explain(self, X: Any) -> polars.DataFrame:
        """The rules that match each row, and what they add to the class that is predicted; see `Rules.explain`.

        Examples
        --------
        >>> from plar.sklearn import RuleClassifier
        >>> X, y = [["sun"], ["rain"]] * 20, ["walk", "bus"] * 20
        >>> RuleClassifier().fit(X, y).explain([["rain"]]).select("row", "prediction", "rule", "text").rows()
        [(0, 'bus', None, ''), (0, 'bus', 0, 'x0 = rain')]
        """
        rows = self._rows(X)
        return self.rules_.explain(rows)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = self.kind == "certain"  # such rules are silent on rows that contradict
        return tags

    def _rows(self, X: Any) -> Any:
        """The columns of any X, which are known by their places, by the names that they have in the rules."""
        check_is_fitted(self)
        return columns_by_name(self._checked(X, reset=False), self._column_names)

    def _options(self) -> RuleOptions:
        """Which rules are looked for."""
        return RuleOptions(
            kind=self.kind,
            alpha=self.alpha,
            min_support=self.min_support,
            max_conditions=self.max_conditions,
        )

    def _reading(self, y: Any, bins_of_y: str | Sequence[float] | None) -> ReadOptions:
        return reading_for_rules(super()._reading(y, bins_of_y), attributes=None)


def _distinct(labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp], NDArray[np.intp]]:
    """The classes, sorted, the first row of each, and the number of each row's class."""
    try:
        check_classification_targets(labels)
        classes, first_rows, codes = np.unique(labels, return_index=True, return_inverse=True)
    except TypeError as error:
        raise TableError(
            f"y cannot be classes: {reason_of(error)}. Make its labels values of one type, such as text: y.astype(str)."
        ) from None
    return classes, first_rows, codes


def _shown_labels(table: DecisionTable, rows: Iterable[int]) -> list[ConditionValue]:
    """The labels of some rows, as rules have them."""
    coded = table.roles.coded_y
    assert coded is not None
    return [plain_value(coded.values[coded.codes[row]]) for row in rows]


def _by_class_number(table: DecisionTable, codes: NDArray[np.intp], n_classes: int) -> DecisionTable:
    """The table with the number of each row's class for its label, so that the rules keep the order of the classes."""
    numbers = Column(smallest_codes(codes, n_classes), range(n_classes))
    return replace(table, roles=replace(table.roles, coded_y=numbers), has_classes=True)


def _with_decisions(rules: Rules, decisions: Sequence[ConditionValue]) -> Rules:
    """The rules with other names for their decisions, which are given in the same order."""
    name_of = dict(zip(rules.decisions, decisions, strict=True))
    renamed = tuple(replace(rule, decision=name_of[rule.decision]) for rule in rules.rules)
    return replace(rules, rules=renamed, decisions=tuple(decisions))
