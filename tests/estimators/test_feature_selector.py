"""`plar.sklearn.FeatureSelector`: what `plar.select` finds, where users of scikit-learn work."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, make_friedman1
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import plar
from plar.sklearn import FeatureSelector, ReductSelector
from support.selection import facts

N = 240
RNG = np.random.default_rng(0)
ODD = [1, "1", None, 2.5]  # 1 and "1" differ
#: y follows from text, gap and size
FRAME = pd.DataFrame(
    {
        "id": np.arange(N),
        "text": RNG.choice(list("abc"), N),
        "category": pd.Categorical(RNG.choice(["x", "y"], N)),
        "gap": RNG.choice([0.5, np.nan, 2.0], N),
        "mixed": [ODD[k] for k in RNG.integers(0, 4, N)],
        "constant": 1,
        "size": RNG.normal(size=N).round(3),
        "flag": RNG.random(N) < 0.5,
    }
)
Y = np.where((FRAME["text"] == "a") | FRAME["gap"].isna(), "p", np.where(FRAME["size"] > 0, "q", "r"))
SELECTED = ["text", "gap", "size"]
PLACES = [1, 3, 6]


def as_polars(frame: pd.DataFrame) -> pl.DataFrame:
    columns = {name: [None if pd.isna(v) else v for v in frame[name]] for name in frame if name != "mixed"}
    table = pl.DataFrame(columns).with_columns(pl.col("category").cast(pl.Categorical))
    return table.insert_column(4, pl.Series("mixed", list(frame["mixed"]), dtype=pl.Object))


TABLES = {"pandas": FRAME, "polars": as_polars(FRAME), "numpy": FRAME.to_numpy(), "list": FRAME.to_numpy().tolist()}


@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [FeatureSelector(), FeatureSelector(0.5, given="all", max_columns=2, bins="quantile:3")]
)
@pytest.mark.filterwarnings("ignore:The target 'y' is:plar.PlarWarning", "ignore:No feature was selected")
def test_scikit_learn_s_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize(
    "labels",
    [
        Y,
        list(Y),
        np.unique(Y, return_inverse=True)[1] + 0.5,
        np.array(Y, object),
        pd.Series(Y, name="d"),
        pd.Series(Y).astype("category"),
        pl.Series(Y).cast(pl.Categorical),
    ],
    ids=["text", "list", "float", "object", "pandas", "pandas category", "polars category"],
)
def test_any_table_and_any_classes(kind: str, labels: Any) -> None:
    selector = FeatureSelector().fit(TABLES[kind], labels)
    assert selector.get_support(indices=True).tolist() == PLACES
    assert selector.selection_.target_type == "classes"


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
def test_what_comes_out(kind: str, output: str) -> None:
    selector = FeatureSelector().set_output(transform=output).fit(TABLES[kind], Y)
    selected = selector.transform(TABLES[kind])
    is_named = kind in ("pandas", "polars")
    assert selector.get_feature_names_out().tolist() == (SELECTED if is_named else ["x1", "x3", "x6"])
    assert hasattr(selector, "feature_names_in_") == is_named
    assert selector.n_features_in_ == len(FRAME.columns)
    if output == kind == "pandas":
        pd.testing.assert_frame_equal(selected, FRAME[SELECTED])
    elif output == kind == "polars":
        assert selected.equals(TABLES["polars"].select(SELECTED))
    rows = selected.rows() if output == "polars" else np.asarray(selected).tolist()
    shown = [[None if pd.isna(v) else v for v in row] for row in rows]
    assert shown == [[None if pd.isna(v) else v for v in row] for row in FRAME[SELECTED].to_numpy().tolist()]


OPTIONS: list[dict[str, Any]] = [
    {},
    {"alpha": 0.2},
    {"given": "all"},
    {"max_columns": 1},
    {"include": ["flag"]},
    {"exclude": ["text"]},
    {"keep": ["id"]},
    {"bins": "width:3", "na": [2.0], "missing": "drop"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_result_is_that_of_select(options: dict[str, Any]) -> None:
    selection = FeatureSelector(**options).fit(FRAME, Y).selection_
    expected = plar.select(FRAME, y=Y, **options)
    assert facts(selection) == facts(expected)
    assert selection.settings == expected.settings


def test_ranking_scores_and_reasons() -> None:
    selector = FeatureSelector(include=["flag"], exclude=["category"]).fit(FRAME, Y)
    columns = selector.selection_.columns
    assert columns[0] == "flag"
    expected = [columns.index(name) + 1 if name in columns else len(columns) + 1 for name in FRAME]
    assert selector.ranking_.tolist() == expected
    scores = dict(zip(FRAME, selector.scores_.tolist(), strict=True))
    assert {name for name in scores if np.isnan(scores[name])} == {"id", "constant", "category"}
    assert scores["text"] == plar.select(FRAME, y=Y).alone["text"]
    assert set(selector.selection_.left_out) == {"id", "constant", "category"}


def test_y_keeps_its_name_and_may_be_declared_to_be_classes() -> None:
    X, y = make_friedman1(300, 8, random_state=0)
    numbers = pd.Series(y.round(1), name="size")
    assert numbers.nunique() > 20
    selection = FeatureSelector().fit(X, numbers).selection_
    assert (selection.target, selection.target_type) == (("size",), "numbers")
    for categorical in (numbers.astype("category"), pl.Series("size", numbers.astype(str)).cast(pl.Categorical)):
        assert FeatureSelector().fit(X, categorical).selection_.target_type == "classes"


def test_regression_by_ranks() -> None:
    X, y = make_friedman1(1000, 40, random_state=0)
    selector = FeatureSelector().fit(X, y)
    assert selector.selection_.target_type == "numbers"
    assert selector.get_support(indices=True).tolist() == [0, 1, 2, 3, 4]
    # only the order of y counts
    assert facts(FeatureSelector().fit(X, np.exp(y)).selection_)["steps"] == facts(selector.selection_)["steps"]


@pytest.mark.filterwarnings("ignore:The target 'y' is:plar.PlarWarning")
@given(st.lists(st.integers(0, 3), min_size=N, max_size=N).filter(any))
@settings(max_examples=10)
def test_weights_are_repetitions(weights: list[int]) -> None:
    X = FRAME.drop(columns="id")
    repeated = FeatureSelector(keep=["text"]).fit(X.loc[np.repeat(X.index, weights)], np.repeat(Y, weights))
    for table in (X, as_polars(FRAME).drop("id")):
        weighted = FeatureSelector(keep=["text"]).fit(table, Y, sample_weight=weights)
        assert weighted.selection_.n_rows == sum(weights)
        assert weighted.selection_.columns == repeated.selection_.columns
        np.testing.assert_array_equal(weighted.scores_, repeated.scores_)


def test_positions_are_those_of_the_table_where_weights_stand_beside_it() -> None:
    X = FRAME.rename(columns={"flag": "sample_weight"})
    options: dict[str, Any] = {"include": [-1], "exclude": [-7], "bins": {-2: [0.0]}}
    selector = FeatureSelector(**options)
    for weights in (None, np.ones(N)):
        selection = selector.fit(X, Y, sample_weight=weights).selection_
        assert selection.included == ("sample_weight",)
        assert selection.left_out["text"] == "excluded"
        assert selection.cuts == {"size": (0.0,)}


def test_weights_beside_an_array_give_its_columns_no_names() -> None:
    numbers = np.arange(100, 200)[:, None] ** 2  # which would be an index if the others had names
    y = numbers.ravel() > numbers.mean()
    for weights in (None, np.ones(100)):
        assert FeatureSelector().fit(numbers, y, sample_weight=weights).get_support().all()


def test_index_like_columns_are_left_out_of_arrays_and_frames() -> None:
    rows = np.arange(N)
    X = np.column_stack([rows, FRAME["size"]])
    y = rows > N // 2
    for table, index in ((X, "x0"), (pd.DataFrame(X, columns=["nr", "size"]), "nr")):
        with pytest.warns(UserWarning, match="No feature was selected"):
            FeatureSelector().fit(table, y).transform(table)
        assert index in FeatureSelector().fit(table, y).selection_.left_out
        assert FeatureSelector(keep=[0]).fit(table, y).get_support().tolist() == [True, False]


@pytest.mark.parametrize("kind", ["pandas", "polars", "numpy"])
def test_numbers_come_out_uncut_or_as_bins(kind: str) -> None:
    X = FRAME[["size", "gap"]]
    table = {"pandas": X, "polars": pl.from_pandas(X), "numpy": X.to_numpy()}[kind]
    name = "x0" if kind == "numpy" else "size"
    selector = FeatureSelector(include=[0]).fit(table, Y)
    cuts = selector.selection_.cuts[name]
    np.testing.assert_array_equal(np.asarray(selector.transform(table), float)[:, 0], X["size"])
    bins = clone(selector).set_params(output="bins").fit(table, Y).transform(table)
    np.testing.assert_array_equal(np.asarray(bins, float)[:, 0], np.searchsorted(cuts, X["size"]))


def test_dates_are_candidates_and_come_out_as_they_are() -> None:
    days = pd.Series(pd.date_range("2020-01-01", periods=N, freq="D")).sample(frac=1, random_state=0)
    X = pd.DataFrame(
        {"day": days.to_numpy(), "written": days.dt.strftime("%Y-%m-%d").to_numpy(), "flag": FRAME["flag"]}
    )
    y = np.where(X["day"] > "2020-05-01", "late", "early")
    for table in (X, pl.from_pandas(X)):
        selector = FeatureSelector(max_columns=1).set_output(transform="pandas").fit(table, y)
        assert selector.get_feature_names_out().tolist() == ["day"]
        assert selector.transform(table)["day"].to_list() == X["day"].to_list()
        assert FeatureSelector(exclude=["day"]).fit(table, y).get_feature_names_out().tolist() == ["written"]


def test_columns_without_a_common_type_come_out_as_objects() -> None:
    X = pd.DataFrame({"size": FRAME["size"], "day": pd.date_range("2020-01-01", periods=N)})
    words = pl.from_pandas(X).with_columns(word=pl.lit("a"))
    for table in (X, X.convert_dtypes(), words):
        selector = FeatureSelector(include=["size", "day", *table.columns[2:]]).fit(table, Y)
        selected = selector.transform(table)
        assert selected.dtype == object
        np.testing.assert_array_equal(selected[:, 0].astype(float), X["size"])
    with pytest.raises(ValueError, match="0 sample"):
        FeatureSelector(include=["size", "day"]).fit(X, Y).transform(X[:0])


def test_columns_that_can_be_read_only_once_are_refused() -> None:
    for name in ("include", "exclude", "keep"):
        selector = FeatureSelector().set_params(**{name: iter(["size"])})
        with pytest.raises(plar.ParameterError, match=f"The '{name}' parameter is an iterator"):
            selector.fit(FRAME, Y)
    with pytest.raises(plar.ParameterError, match="'include' parameter is an iterator"):
        ReductSelector(include=iter(["size"])).fit(FRAME, Y)


def test_none_is_selected() -> None:
    noise = np.random.default_rng(0).integers(0, 3, (60, 4))
    selector = FeatureSelector(exclude=[0, 1, 2, 3]).fit(noise, np.arange(60) % 2)
    assert selector.ranking_.tolist() == [2, 2, 2, 2]


def test_clone_pickle_and_back() -> None:
    selector = FeatureSelector(0.1, include=["flag"], na=["?"]).fit(FRAME, Y)
    restored = pickle.loads(pickle.dumps(selector))
    assert restored.selection_ == selector.selection_
    assert clone(selector).get_params() == selector.get_params()
    assert not hasattr(clone(selector), "selection_")
    X = FRAME[["size", "flag"]].to_numpy(float)
    selected = FeatureSelector(exclude=["x1"]).fit(X, Y)
    np.testing.assert_array_equal(selected.inverse_transform(X[:, :1]), X * [1, 0])


def test_in_a_pipeline_and_a_grid() -> None:
    model = make_pipeline(
        FeatureSelector().set_output(transform="pandas"),
        OneHotEncoder(handle_unknown="ignore"),
        DecisionTreeClassifier(random_state=0),
    )
    X = FRAME.drop(columns=["mixed", "size"])
    y = np.where(FRAME["text"] == "a", "p", "q")
    search = GridSearchCV(model, {"featureselector__alpha": [1e-12, 0.05]}, cv=3).fit(X, y)
    assert search.best_score_ == 1
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    all_features = cross_val_score(GaussianNB(), X, y).mean()
    assert cross_val_score(make_pipeline(FeatureSelector(), GaussianNB()), X, y).mean() > all_features


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0}, "'alpha' parameter"),
        ({"given": "some"}, "'given' parameter"),
        ({"max_columns": 0}, "'max_columns' parameter"),
        ({"max_columns": 1, "include": [0, 1]}, "include= alone has 2 columns"),
        ({"include": ["colour"]}, "colour"),
        ({"exclude": [17]}, "17"),
        ({"include": ["flag"], "exclude": [-1]}, "'flag' is in include= and in exclude="),
        ({"keep": ["colour"]}, "colour"),
        ({"bins": "quartile"}, "quartile"),
        ({"bins": {"colour": [1.0]}}, "colour"),
        ({"missing": "skip"}, "'missing' parameter"),
        ({"missing": "error"}, "Missing values in 'gap'"),
        ({"na": True}, "na="),
        ({"numeric": "text"}, "'text' is to compare as numbers"),
        ({"target_type": "ranks"}, "'target_type' parameter"),
        ({"target_type": "numbers"}, "cannot be ranked"),
        ({"output": "codes"}, "'output' parameter"),
        ({"engine": "abacus"}, "abacus"),
        ({"n_jobs": 0}, "'n_jobs' parameter"),
        ({"time_limit": "soon"}, "soon"),
    ],
    ids=str,
)
def test_bad_parameters_are_refused_by_fit(options: dict[str, Any], message: str) -> None:
    with pytest.raises(plar.PlarError, match=message):
        FeatureSelector(**options).fit(FRAME, Y)


@pytest.mark.parametrize(
    "labels",
    [[None, *Y[1:]], [np.nan, *[1.0] * (N - 1)], pl.Series([None, *Y[1:]]), ["NA", *Y[1:]], Y[1:], None],
    ids=["None", "NaN", "polars null", "NA", "short", "none"],
)
def test_odd_labels_are_refused(labels: Any) -> None:
    with pytest.raises(ValueError, match=r"y contains|inconsistent|FeatureSelector requires y"):
        FeatureSelector().fit(FRAME, labels)
