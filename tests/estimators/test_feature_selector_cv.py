"""`plar.sklearn.FeatureSelectorCV`: the curve, the rule, and what is done with them."""

from __future__ import annotations

import math
import pickle
import statistics
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import plar
from plar.sklearn import FeatureSelector, FeatureSelectorCV
from plar.sklearn.fold_scores import cv_results, fewest_within_one_error

X, Y = load_breast_cancer(return_X_y=True, as_frame=True)
ARRAY = X.to_numpy()
NOISE = np.random.default_rng(0).integers(0, 3, (60, 3))
CLASSES = np.arange(60) % 2

EXPECTED_FAILURES = {
    "check_estimators_nan_inf": "NaN in features that are not selected does no harm; the estimator sees the others"
}


@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [
        FeatureSelectorCV(LogisticRegression()),
        FeatureSelectorCV(Ridge(), cv=3),
        FeatureSelectorCV(DecisionTreeClassifier(random_state=0), cv=2, min_columns=0),
    ],
    expected_failed_checks=lambda selector: (
        {} if sklearn.utils.get_tags(selector).input_tags.allow_nan else EXPECTED_FAILURES
    ),
)
@pytest.mark.filterwarnings(
    "ignore:The target 'y' is:plar.PlarWarning",
    "ignore:No feature was selected",
    "ignore:The least populated class",
    "ignore:The number of unique classes",
)
def test_scikit_learn_s_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("table", [X, ARRAY, pl.from_pandas(X)], ids=["pandas", "numpy", "polars"])
def test_the_curve_is_that_of_a_limit_on_the_columns(table: Any) -> None:
    cv = StratifiedKFold(4)
    selector = FeatureSelectorCV(GaussianNB(), cv=cv, scoring="roc_auc").fit(table, Y)
    results = selector.cv_results_
    assert results["n_features"].tolist() == [*range(1, len(selector.selection_.columns) + 1)]
    for k in (1, 2, 7):
        pipeline = make_pipeline(FeatureSelector(max_columns=k), GaussianNB())
        scores = cross_val_score(pipeline, ARRAY, Y, cv=cv, scoring="roc_auc")
        assert [results[f"split{fold}_test_score"][k - 1] for fold in range(4)] == scores.tolist()
        assert results["mean_test_score"][k - 1] == pytest.approx(scores.mean())
        assert results["std_test_score"][k - 1] == pytest.approx(scores.std())


def test_the_kind_of_target_is_decided_by_all_rows() -> None:
    data, y = load_diabetes(return_X_y=True)
    # 22 different numbers, of which each fold's training rows lack at least two
    coarse = np.floor(np.argsort(np.argsort(y)) / len(y) * 22)
    order = np.argsort(coarse, kind="stable")
    data = data[order]
    y = coarse[order] * 10
    selector = FeatureSelectorCV(Ridge(), cv=KFold(3)).fit(data, y)
    assert selector.selection_.target_type == "numbers"
    train, test = next(KFold(3).split(data))
    assert FeatureSelector().fit(data[train], y[train]).selection_.target_type == "classes"
    by_ranks = FeatureSelector(target_type="numbers", max_columns=1).fit(data[train], y[train])
    model = Ridge().fit(by_ranks.transform(data[train]), y[train])
    score = model.score(by_ranks.transform(data[test]), y[test])
    assert selector.cv_results_["split0_test_score"][0] == pytest.approx(score)


SCORES = st.integers(0, 8).map(lambda eighths: eighths / 8)


@given(st.integers(1, 5).flatmap(lambda n: st.lists(st.lists(SCORES, min_size=1, max_size=6), min_size=n, max_size=n)))
def test_the_smallest_number_within_one_standard_error(folds: list[list[float]]) -> None:
    results = cv_results([dict(enumerate(fold, 1)) for fold in folds])
    longest = max(map(len, folds))
    full = [fold + [fold[-1]] * (longest - len(fold)) for fold in folds]
    columns = [[fold[k] for fold in full] for k in range(longest)]
    means = [math.fsum(column) / len(folds) for column in columns]
    assert results["mean_test_score"].tolist() == pytest.approx(means)
    best = max(range(longest), key=lambda k: (means[k], -k))
    error = statistics.stdev(columns[best]) / math.sqrt(len(folds)) if len(folds) > 1 else 0.0
    selected = fewest_within_one_error(results)
    assert means[selected - 1] >= means[best] - error - 1e-12
    assert all(mean < means[best] - error + 1e-12 for mean in means[: selected - 1])


def test_what_is_selected_and_fitted() -> None:
    selector = FeatureSelectorCV(GaussianNB()).fit(X, Y)
    path = FeatureSelector().fit(X, Y)
    n = selector.n_features_
    assert selector.selection_.columns == path.selection_.columns
    assert 1 < n < len(path.selection_.columns)
    assert n == fewest_within_one_error(selector.cv_results_)
    names = [name for name in X if name in path.selection_.columns[:n]]
    assert X.columns[selector.support_].tolist() == selector.get_feature_names_out().tolist() == names
    assert selector.ranking_.tolist() == np.maximum(path.ranking_ - (n - 1), 1).tolist()
    assert (selector.ranking_ == 1).tolist() == selector.support_.tolist()
    np.testing.assert_array_equal(selector.scores_, path.scores_)
    model = GaussianNB().fit(X[names], Y)
    assert selector.estimator_.feature_names_in_.tolist() == names
    assert selector.classes_.tolist() == [0, 1]
    for method in ("predict", "predict_proba", "predict_log_proba"):
        np.testing.assert_array_equal(getattr(selector, method)(X), getattr(model, method)(X[names]))
    assert selector.score(X, Y) == model.score(X[names], Y)
    pd.testing.assert_frame_equal(selector.set_output(transform="pandas").transform(X), X[names])
    assert pickle.loads(pickle.dumps(selector)).predict(X).tolist() == selector.predict(X).tolist()


def test_sizes_begin_where_they_may() -> None:
    sizes = {
        FeatureSelectorCV(GaussianNB(), min_columns=4): [4, 5, 6],
        FeatureSelectorCV(GaussianNB(), min_columns=0): [0, 1, 2, 3, 4, 5, 6],
        FeatureSelectorCV(GaussianNB(), include=["mean area", 0]): [2, 3, 4, 5, 6],
    }
    for selector, expected in sizes.items():
        selector.set_params(max_columns=6).fit(X, Y)
        assert selector.cv_results_["n_features"].tolist() == expected
        assert selector.n_features_ in expected
    first = FeatureSelectorCV(GaussianNB(), min_columns=0, max_columns=1).fit(X, Y)
    share = Y.mean()
    assert first.cv_results_["mean_test_score"][0] == pytest.approx(share, abs=0.01)
    one = FeatureSelectorCV(GaussianNB(), min_columns=9, max_columns=9, alpha=1e-12).fit(X, Y)
    assert one.n_features_ == len(one.selection_.columns) < 9


def test_where_nothing_is_found_the_prediction_is_constant() -> None:
    for model, y in ((GaussianNB(), CLASSES), (Ridge(), CLASSES + 0.5)):
        with pytest.warns(UserWarning, match="No feature was selected, so the prediction is the same"):
            selector = FeatureSelectorCV(model).fit(NOISE, y)
        assert selector.n_features_ == 0
        assert selector.cv_results_["n_features"].tolist() == [0]
        assert len(set(selector.predict(NOISE).tolist())) == 1
    for table in (pd.DataFrame(NOISE), pl.DataFrame(NOISE)):
        with pytest.warns(UserWarning, match="No feature was selected"):
            selector = FeatureSelectorCV(model).fit(table, y)
        assert len(selector.predict(table)) == 60


def test_frames_of_any_columns_reach_the_estimator_as_they_are() -> None:
    rng = np.random.default_rng(1)
    n = 200
    colour = rng.choice(["red", "green", "blue"], n)
    frame = pd.DataFrame(
        {
            "row": range(n),
            "colour": pd.Categorical(colour),
            "text": rng.choice(["u", "v"], n),
            "gap": np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n)),
            "day": pd.date_range("2024-01-01", periods=n).to_numpy()[rng.permutation(n)],
        }
    )
    y = np.where((colour == "red") | (frame["text"] == "u"), "yes", "no")
    encoded = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")), remainder="passthrough"
    )
    model = make_pipeline(encoded, DecisionTreeClassifier(random_state=0))
    selector = FeatureSelectorCV(model).fit(frame, y)
    assert selector.get_feature_names_out().tolist() == ["colour", "text"]
    assert selector.score(frame, y) == 1
    assert "row" in selector.selection_.left_out
    as_polars = pl.from_pandas(frame)
    by_polars = FeatureSelectorCV(make_pipeline(OneHotEncoder(), DecisionTreeClassifier())).fit(as_polars, y)
    assert by_polars.predict(as_polars).tolist() == y.tolist()
    assert by_polars.set_output(transform="polars").transform(as_polars).columns == ["colour", "text"]


def test_bins_reach_the_estimator_if_they_come_out() -> None:
    selector = FeatureSelectorCV(GaussianNB(), output="bins").set_output(transform="pandas").fit(X, Y)
    assert set(np.unique(selector.transform(X))) == {0, 1, 2, 3}
    assert selector.score(X, Y) == selector.estimator_.score(selector.transform(X), Y)


def test_folds_side_by_side_give_the_same() -> None:
    one, both = (FeatureSelectorCV(GaussianNB(), cv=3, n_jobs=n).fit(X, Y) for n in (None, 2))
    for name, scores in one.cv_results_.items():
        np.testing.assert_array_equal(both.cv_results_[name], scores)


def test_groups_and_metadata() -> None:
    groups = np.arange(len(Y)) // 100
    selector = FeatureSelectorCV(GaussianNB(), cv=GroupKFold(3), max_columns=2).fit(X, Y, groups=groups)
    folds = list(GroupKFold(3).split(X, Y, groups))
    by_hand = FeatureSelectorCV(GaussianNB(), cv=folds, max_columns=2).fit(X, Y)
    np.testing.assert_array_equal(selector.cv_results_["mean_test_score"], by_hand.cv_results_["mean_test_score"])
    weights = np.where(Y == 1, 5.0, 1.0)
    with pytest.raises(ValueError, match="sample_weight"):
        FeatureSelectorCV(GaussianNB()).fit(X, Y, sample_weight=weights)
    with sklearn.config_context(enable_metadata_routing=True):
        model = GaussianNB().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        weighted = FeatureSelectorCV(model, max_columns=2, cv=folds).fit(X, Y, sample_weight=weights)
        columns = weighted.get_feature_names_out()
        expected = GaussianNB().fit(X[columns], Y, weights)
        np.testing.assert_array_equal(weighted.predict_proba(X), expected.predict_proba(X[columns]))
        assert weighted.score(X, Y, sample_weight=weights) == expected.score(X[columns], Y, weights)
        train, test = folds[0]
        first = [weighted.selector_.selection_.columns[0]]
        assert first[0] in X
        in_fold = FeatureSelector(max_columns=1).fit(X.iloc[train], Y.iloc[train]).get_feature_names_out()
        model_of_fold = GaussianNB().fit(X.iloc[train][in_fold], Y.iloc[train], weights[train])
        score = model_of_fold.score(X.iloc[test][in_fold], Y.iloc[test], weights[test])
        assert weighted.cv_results_["split0_test_score"][0] == score


def test_methods_are_those_of_the_estimator() -> None:
    selector = FeatureSelectorCV(Ridge())
    assert hasattr(selector, "predict")
    assert not hasattr(selector, "predict_proba")
    assert hasattr(FeatureSelectorCV(LogisticRegression()), "decision_function")
    assert sklearn.base.is_regressor(selector)
    assert sklearn.base.is_classifier(FeatureSelectorCV(GaussianNB()))
    assert clone(selector).get_params(deep=True)["estimator__alpha"] == 1.0


def test_in_a_grid_and_in_cross_validation() -> None:
    grid = {"alpha": [1e-3, 0.05], "estimator__var_smoothing": [1e-9, 0.5]}
    search = GridSearchCV(FeatureSelectorCV(GaussianNB(), cv=2), grid, cv=2).fit(X, Y)
    assert search.best_params_["estimator__var_smoothing"] == 1e-9
    assert search.best_score_ > 0.9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_columns": -1}, "'min_columns' parameter must be a whole number, at least 0"),
        ({"min_columns": 2.5}, "'min_columns' parameter"),
        ({"min_columns": 4, "max_columns": 3}, "at most max_columns, which is 3"),
        ({"scoring": lambda model, X, y: float("nan")}, "scoring must give a number. Got nan with 1 features"),
        ({"scoring": lambda model, X, y: "good"}, "Got 'good'"),
        ({"cv": []}, "at least one fold"),
        ({"scoring": "beauty"}, "beauty"),
        ({"alpha": 7}, "'alpha' parameter"),
        ({"n_jobs": 0}, "'n_jobs' parameter"),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else "",
)
def test_bad_parameters_are_refused_by_fit(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FeatureSelectorCV(GaussianNB(), **options).fit(X, Y)


def test_a_classifier_is_given_classes() -> None:
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        FeatureSelectorCV(GaussianNB()).fit(X, X["mean area"])
    with pytest.raises(plar.TableError, match="requires y"):
        FeatureSelectorCV(GaussianNB()).fit(X, None)


def test_plot() -> None:
    figure_module = pytest.importorskip("matplotlib.figure")
    selector = FeatureSelectorCV(GaussianNB(), scoring="f1").fit(X, Y)
    figure = selector.plot()
    axes: Any = figure.axes[0]
    sizes = selector.cv_results_["n_features"]
    means = selector.cv_results_["mean_test_score"]
    _, curve, best, selected = axes.lines
    np.testing.assert_array_equal(curve.get_xydata(), np.column_stack([sizes, means]))
    top = int(np.argmax(means))
    assert best.get_xydata().tolist() == [[sizes[top], means[top]]]
    assert selected.get_xdata() == [selector.n_features_]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("selected features", "mean f1, 5 folds")
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert f"selected: {selector.n_features_}" in labels
    mine = figure_module.Figure().subplots()
    assert selector.plot(ax=mine) is mine.figure
    shown: Any = selector.plot()
    assert shown._repr_png_().startswith(b"\x89PNG")
