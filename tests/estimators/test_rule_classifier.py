"""`plar.sklearn.RuleClassifier`: the rules of `plar.rules` as a classifier, where users of scikit-learn work."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris, make_friedman1
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import plar
from plar.sklearn import FeatureSelector, FeatureSelectorCV, RuleClassifier

N = 240
RNG = np.random.default_rng(0)
ODD = [1, "1", None, 2.5]  # 1 and "1" differ
#: y follows from text, gap, size and day
FRAME = pd.DataFrame(
    {
        "id": np.arange(N),
        "text": RNG.choice(list("abc"), N),
        "category": pd.Categorical(RNG.choice(["x", "y"], N)),
        "gap": RNG.choice([0.5, np.nan, 2.0], N),
        "mixed": [ODD[k] for k in RNG.integers(0, 4, N)],
        "size": RNG.normal(size=N).round(3),
        "flag": RNG.random(N) < 0.5,
        "day": pd.date_range("2020-01-01", periods=N)[RNG.permutation(N)],
        "whole": pd.array([None, *RNG.integers(0, 3, N - 1)], dtype="Int64"),
        "yes": pd.array([None, *(RNG.random(N - 1) < 0.5)], dtype="boolean"),
        "word": pd.array([None, *RNG.choice(["u", "v"], N - 1)], dtype="string"),
    }
)
IS_P = (FRAME["text"] == "a") | FRAME["gap"].isna()
EARLY = np.where(IS_P, "p", np.where(FRAME["size"] > 0, "q", "r"))
Y = np.where(FRAME["day"] > "2020-07-01", "late", EARLY)
CODES = np.unique(Y, return_inverse=True)[1]


def as_polars(frame: pd.DataFrame) -> pl.DataFrame:
    columns = {name: [None if pd.isna(v) else v for v in frame[name]] for name in frame if name != "mixed"}
    table = pl.DataFrame(columns).with_columns(pl.col("category").cast(pl.Categorical))
    return table.insert_column(4, pl.Series("mixed", list(frame["mixed"]), dtype=pl.Object))


TABLES = {"pandas": FRAME, "polars": as_polars(FRAME), "numpy": FRAME.to_numpy(), "list": FRAME.to_numpy().tolist()}


def facts(rules: plar.Rules) -> dict[str, Any]:
    """All that a set of rules says of the rows, but for the time, and how the table came."""
    said = rules.to_dict()
    for name in ("seconds", "engine", "source", "settings"):
        del said[name]
    return said


def assert_consistent(model: RuleClassifier, X: Any, named: Any) -> None:
    """What the methods say of X goes together, and is what the rules say of the same rows with their names."""
    predictions = model.predict(X)
    shares = model.predict_proba(X)
    assert shares.shape == (len(predictions), len(model.classes_))
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(model.classes_[shares.argmax(axis=1)], predictions)
    assert predictions.dtype == model.classes_.dtype
    np.testing.assert_array_equal(model.rules_.predict_proba(named), shares)
    codes = np.searchsorted(model.classes_, predictions)
    assert model.rules_.predict(named).tolist() == [model.rules_.decisions[code] for code in codes]


@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [
        RuleClassifier(),
        RuleClassifier("certain"),
        RuleClassifier("possible", min_support=2),
        RuleClassifier(alpha=0.5, max_conditions=2, bins="quantile:3", missing="drop"),
    ]
)
def test_scikit_learn_s_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)


# -- tables -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TABLES)
def test_any_table(kind: str) -> None:
    expected = RuleClassifier().fit(FRAME, Y)
    model = RuleClassifier().fit(TABLES[kind], Y)
    assert is_classifier(model)
    is_named = kind in ("pandas", "polars")
    assert hasattr(model, "feature_names_in_") == is_named
    assert model.n_features_in_ == len(FRAME.columns)
    if is_named:
        assert facts(model.rules_) == facts(expected.rules_)
        assert_consistent(model, TABLES[kind], TABLES[kind])
    np.testing.assert_array_equal(model.predict(TABLES[kind]), expected.predict(FRAME))
    assert model.score(TABLES[kind], Y) == expected.score(FRAME, Y) > 0.8


@pytest.mark.parametrize("fitted_with", TABLES)
@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names")
def test_tables_of_other_libraries_have_the_same_columns_in_the_same_places(fitted_with: str, kind: str) -> None:
    model = RuleClassifier().fit(TABLES[fitted_with], Y)
    np.testing.assert_array_equal(model.predict(TABLES[kind]), model.predict(TABLES[fitted_with]))
    np.testing.assert_array_equal(model.predict_proba(TABLES[kind])[:3], model.predict_proba(TABLES[kind][:3]))
    assert model.explain(TABLES[kind][:3]).equals(model.explain(TABLES[fitted_with][:3]))


def test_columns_must_come_in_the_order_of_the_fit() -> None:
    model = RuleClassifier().fit(FRAME, Y)
    for X in (FRAME[FRAME.columns[::-1]], TABLES["polars"].select(reversed(FRAME.columns))):
        with pytest.raises(ValueError, match="Feature names must be in the same order"):
            model.predict(X)
    with pytest.raises(ValueError, match="yet now missing"):
        model.predict_proba(FRAME[["text"]])
    with pytest.raises(ValueError, match="X has 3 features, but RuleClassifier is expecting 11"):
        RuleClassifier().fit(TABLES["numpy"], Y).predict(TABLES["numpy"][:, :3])
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.explain(TABLES["numpy"][:1])


def test_labels_that_are_no_text_are_known_by_their_places() -> None:
    X = FRAME[["size", "gap"]].to_numpy()
    expected = RuleClassifier().fit(X, Y).predict(X)
    labels = [pd.RangeIndex(5, 7), pd.MultiIndex.from_tuples([("a", 1), ("a", 2)])]
    for columns in labels:
        frame = pd.DataFrame(X, columns=columns)
        model = RuleClassifier().fit(frame, Y)
        assert not hasattr(model, "feature_names_in_")
        np.testing.assert_array_equal(model.predict(frame), expected)
        np.testing.assert_array_equal(model.predict(X), expected)


def test_unseen_and_missing_values_meet_no_condition_that_asks_for_a_value() -> None:
    X = FRAME[["text", "category", "size", "day", "flag"]]
    model = RuleClassifier().fit(X, Y)
    assert {condition.column for rule in model.rules_ for condition in rule.conditions} == {"text", "size", "day"}
    unseen = pd.DataFrame(
        {
            "text": ["zebra", None],
            "category": [None, "new"],
            "size": [np.nan] * 2,
            "day": [pd.NaT] * 2,
            "flag": ["?"] * 2,
        }
    )
    for table in (unseen, pl.from_pandas(unseen)):
        assert model.explain(table)["rule"].to_list() == [None, None]
        assert model.predict(table).tolist() == ["p", "p"]  # which most rows have
        shares = (np.bincount(CODES) + 1) / (N + 4)
        np.testing.assert_allclose(model.predict_proba(table), [shares, shares], atol=1e-6)


def test_other_types_of_the_same_values() -> None:
    X = FRAME.drop(columns="mixed")
    model = RuleClassifier().fit(X, Y)
    expected = model.predict(X)
    as_text = X.astype(object).where(X.notna(), None).map(lambda value: value if value is None else str(value))
    others = [
        X.assign(size=X["size"].astype(object), text=X["text"].astype("category")),
        X.assign(size=X["size"].astype("Float64"), day=X["day"].astype(str), flag=X["flag"].astype("boolean")),
        X.convert_dtypes(),
        as_text,
    ]
    for table in others:
        np.testing.assert_array_equal(model.predict(table), expected)


def test_what_is_no_number_is_told() -> None:
    model = RuleClassifier().fit(FRAME[["size", "text"]], Y)
    with pytest.raises(plar.TableError, match="compare column 'size' by size, but it holds 'big', which is not a num"):
        model.predict(pd.DataFrame({"size": ["big"], "text": ["a"]}))


def test_missing_values_are_values_or_their_rows_are_ignored() -> None:
    gap = FRAME[["gap"]]
    y = np.where(gap["gap"].isna(), "none", "some")
    for X in (gap, pl.from_pandas(gap), gap.to_numpy()):
        model = RuleClassifier().fit(X, y)
        assert model.score(X, y) == 1
        assert any(condition.value is None for rule in model.rules_ for condition in rule.conditions)
        without = RuleClassifier(missing="drop").fit(X, y)
        assert without.classes_.tolist() == ["some"]
        assert without.rules_.n_objects == (y == "some").sum()
        assert without.predict(X).tolist() == ["some"] * N
    spelled = FRAME.assign(gap=gap["gap"].fillna(-999))
    model = RuleClassifier(na=-999).fit(spelled, Y)
    assert facts(model.rules_) == facts(RuleClassifier().fit(FRAME, Y).rules_)
    np.testing.assert_array_equal(model.predict(FRAME), model.predict(spelled))


def test_a_number_that_means_missing_is_still_the_number_of_a_class() -> None:
    assert RuleClassifier(na=[0, 1]).fit(FRAME, CODES + 2).classes_.tolist() == [2, 3, 4, 5]
    assert RuleClassifier(na=[0, 1]).fit(FRAME, Y).rules_.class_sizes == tuple(np.bincount(CODES))


def test_no_rows_in_a_frame_give_no_predictions() -> None:
    model = RuleClassifier().fit(FRAME, Y)
    for X in (FRAME[:0], TABLES["polars"][:0]):
        assert model.predict(X).shape == (0,)
        assert model.predict_proba(X).shape == (0, 4)
        assert model.explain(X).is_empty()


# -- classes ------------------------------------------------------------------------------------------------------

#: labels, the kinds that the type of `classes_` may be of, and the type of the decisions of the rules
LABELS: dict[str, tuple[Any, str, type]] = {
    "text": (Y, "U", str),
    "list": (Y.tolist(), "U", str),
    "object": (np.array(Y, object), "O", str),
    "numerals": (np.array(["9", "10", "-1", "007"])[CODES], "U", str),
    "bool": (Y == "p", "b", bool),
    "int": (5 - 3 * CODES, "i", int),
    "small int": (CODES.astype(np.int8), "i", int),
    "large uint": (CODES.astype(np.uint64) + np.uint64(2**63), "u", int),
    "float": (CODES * 2.0, "f", float),
    "float32": (CODES.astype(np.float32), "f", float),
    "date": (np.array(["2021-01-01", "2020-01-01", "1999-01-01", "2000-01-01"], "M8[s]")[CODES], "M", str),
    "pandas": (pd.Series(Y), "O", str),
    "pandas string": (pd.Series(Y, dtype="string"), "O", str),
    "pandas category": (pd.Series(Y).astype("category"), "O", str),
    "pandas category of ints": (pd.Series(CODES).astype("category"), "i", int),
    "pandas nullable int": (pd.Series(CODES + 2**60, dtype="Int64"), "i", int),
    "pandas nullable bool": (pd.Series(Y == "p", dtype="boolean"), "b", bool),
    "pandas array": (pd.array(CODES, dtype="Int8"), "i", int),
    "polars": (pl.Series(Y), "OU", str),
    "polars category": (pl.Series(Y).cast(pl.Categorical), "O", str),
    "polars bool": (pl.Series(Y == "p"), "b", bool),
}


@pytest.mark.parametrize("kind", LABELS)
def test_any_labels(kind: str) -> None:
    labels, kinds, decision_type = LABELS[kind]
    model = RuleClassifier().fit(FRAME, labels)
    values = np.array(labels.to_list() if hasattr(labels, "to_list") else labels)
    classes = np.unique(values)
    np.testing.assert_array_equal(model.classes_, classes)
    assert model.classes_.dtype.kind in kinds
    assert set(map(type, model.rules_.decisions)) == {decision_type}
    if kinds != "M":
        assert list(model.rules_.decisions) == classes.tolist()
    sizes = np.unique(values, return_counts=True)[1]
    assert model.rules_.class_sizes == tuple(sizes.tolist())
    assert_consistent(model, FRAME, FRAME)
    assert model.score(FRAME, values) > 0.8


def test_the_names_of_classes_do_not_matter() -> None:
    texts = RuleClassifier().fit(FRAME, Y)
    for names in (["9", "10", "-1", "007"], [3.0, 2.0, 1.0, 0.0], [False, True, True, True]):
        model = RuleClassifier().fit(FRAME, np.array(names)[CODES])
        if len(set(names)) == 4:
            expected = texts.predict_proba(FRAME)[:, np.argsort(np.array(names))]
            np.testing.assert_allclose(model.predict_proba(FRAME), expected, rtol=1e-12)


def test_ties_go_to_the_first_class() -> None:
    X = [["a"], ["b"]] * 20
    for y in (["10", "9"] * 20, [2, 1] * 20, [True, False] * 20):
        model = RuleClassifier(kind="certain", min_support=21).fit(X, y)
        assert len(model.rules_) == 0
        assert model.predict_proba(X[:1]).tolist() == [[0.5, 0.5]]
        assert model.predict(X[:2]).tolist() == [model.classes_[0]] * 2
        assert model.rules_.predict({"x0": ["a"]}).tolist() == [model.rules_.decisions[0]]


@pytest.mark.parametrize("name", [lambda k: k, lambda k: 7 * k - 3, lambda k: f"c{k}", lambda k: k / 1.0])
def test_many_classes(name: Any) -> None:
    cells = np.arange(3000) % 100
    X = np.column_stack([cells // 10, cells % 10, RNG.random(3000)])
    y = [name(k) for k in cells.tolist()]
    model = RuleClassifier().fit(X, y)
    assert len(model.classes_) == 100
    assert model.score(X, y) == 1
    assert_consistent(model, X, X)


def test_more_classes_than_a_quantity_may_have_are_no_quantity() -> None:
    y = np.arange(600) // 3 * 10
    assert len(RuleClassifier().fit(np.arange(600)[:, None] // 3, y).classes_) == 200


def test_one_class() -> None:
    model = RuleClassifier().fit(FRAME, ["all"] * N)
    assert model.classes_.tolist() == ["all"]
    assert [rule.conditions for rule in model.rules_] == [()]
    assert model.predict(FRAME[:2]).tolist() == ["all", "all"]
    assert model.predict_proba(FRAME[:2]).tolist() == [[1], [1]]


def test_noise_is_predicted_by_the_largest_class() -> None:
    rng = np.random.default_rng(5)
    X = rng.integers(0, 3, (60, 3))
    model = RuleClassifier(alpha=1e-6).fit(X, ["a"] * 20 + ["b"] * 40)
    assert len(model.rules_) == 0
    assert set(model.predict(X)) == {"b"}


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (make_friedman1(N, 5, random_state=0)[1], "Unknown label type: continuous"),
        (np.column_stack([CODES, CODES]), "y should be a 1d array"),
        (np.array([1, "1"], object)[(Y == "p").astype(int)], "y cannot be classes|Unknown label type"),
        (np.array(["1", 1], object)[(Y == "p").astype(int)], "y cannot be classes|Unknown label type"),
        (np.array(Y, "S"), "y cannot be classes: .*bytes"),
        ([None, *Y[1:]], "y contains"),
        ([np.nan, *[1.0] * (N - 1)], "y contains NaN"),
        (["NA", *Y[1:]], r"y contains 'NA', which means missing.*na=\(\)"),
        (pd.array([None, *CODES[1:]], dtype="Int64"), "y contains"),
        (Y[1:], "inconsistent"),
        (None, "RuleClassifier requires y"),
    ],
    ids=[
        "quantity", "two columns", "number and text", "text and number", "bytes", "None", "NaN", "NA", "pandas NA",
        "short", "none",
    ],
)  # fmt: skip
def test_odd_labels_are_refused(labels: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RuleClassifier().fit(FRAME, labels)


# -- the rules ----------------------------------------------------------------------------------------------------

OPTIONS: list[dict[str, Any]] = [
    {},
    {"alpha": 1e-6},
    {"kind": "certain"},
    {"kind": "possible", "min_support": 3},
    {"max_conditions": 1},
    {"bins": None},
    {"bins": {"size": "auto", "day": "quantile:3"}},
    {"bins": "width:3", "na": [2.0], "missing": "drop"},
    {"numeric": ["whole"], "n_jobs": 2},
]


@pytest.mark.filterwarnings("ignore:'id'.*different in nearly every row:plar.PlarWarning")
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_rules_are_those_of_plar_rules(options: dict[str, Any]) -> None:
    model = RuleClassifier(**options).fit(FRAME, pd.Series(Y, name="when"))
    expected = plar.rules(FRAME, y=pd.Series(Y, name="when"), **options)
    assert facts(model.rules_) == facts(expected)
    assert model.rules_.settings == expected.settings
    np.testing.assert_array_equal(model.predict(FRAME), expected.predict(FRAME))
    np.testing.assert_array_equal(model.predict_proba(FRAME), expected.predict_proba(FRAME))
    assert model.explain(FRAME[:5]).equals(expected.explain(FRAME[:5]))


@given(st.permutations(range(N)))
@settings(max_examples=5)
def test_the_order_of_the_rows_does_not_matter(order: list[int]) -> None:
    X = FRAME.drop(columns="id")
    model = RuleClassifier().fit(X, Y)
    shuffled = RuleClassifier().fit(X.iloc[order], Y[order])
    assert facts(shuffled.rules_) == facts(model.rules_)
    np.testing.assert_array_equal(shuffled.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(model.predict(X.iloc[order]), model.predict(X)[order])


@given(st.lists(st.integers(0, 3), min_size=N, max_size=N).filter(any))
@settings(max_examples=10)
def test_weights_are_repetitions(weights: list[int]) -> None:
    X = FRAME.drop(columns="id")
    repeated = RuleClassifier().fit(X.loc[np.repeat(X.index, weights)], np.repeat(Y, weights))
    for table in (X, as_polars(FRAME).drop("id")):
        weighted = RuleClassifier().fit(table, Y, sample_weight=weights)
        assert facts(weighted.rules_) == facts(repeated.rules_)
        np.testing.assert_array_equal(weighted.classes_, repeated.classes_)
        np.testing.assert_array_equal(weighted.predict_proba(table), repeated.predict_proba(X))


def test_a_class_of_weight_0_is_none() -> None:
    weights = np.where(Y == "p", 0, 2)
    for X in (FRAME, TABLES["numpy"]):
        model = RuleClassifier().fit(X, Y, sample_weight=weights)
        assert model.classes_.tolist() == ["late", "q", "r"]
        assert model.rules_.n_objects == weights.sum()
        assert set(model.predict(X)) <= {"late", "q", "r"}


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (0.5, "in whole numbers. Got 0.5"),
        (-np.ones(N), "Got -1"),
        (np.ones(N - 1), "shape"),
        (np.zeros(N), "non-zero"),
    ],
)
def test_odd_weights_are_refused(weights: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RuleClassifier().fit(FRAME, Y, sample_weight=weights)


def test_columns_with_the_names_of_y_and_of_the_weights() -> None:
    X = FRAME.rename(columns={"gap": "y", "flag": "sample_weight"})
    model = RuleClassifier(bins={"size": [0.0], -4: [1.6e9]}).fit(X, Y, sample_weight=np.ones(N))
    assert model.rules_.decision == ("y_",)
    assert model.rules_.attributes == tuple(name for name in X if name != "id")
    assert set(model.rules_.cuts) == {"size", "day"}
    assert model.predict(X).shape == (N,)


def test_after_the_time_limit_there_are_the_rules_so_far() -> None:
    model = RuleClassifier(time_limit=0).fit(FRAME, Y)
    assert not model.rules_.complete
    assert set(model.predict(FRAME)) == {"p"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "likely"}, "'kind' parameter"),
        ({"alpha": 0}, "'alpha' parameter"),
        ({"min_support": 0}, "'min_support' parameter"),
        ({"max_conditions": 0}, "'max_conditions' parameter"),
        ({"bins": "decile"}, "decile"),
        ({"bins": {"colour": [1.0]}}, "colour"),
        ({"missing": "skip"}, "'missing' parameter"),
        ({"missing": "error"}, "Missing values in 'gap'"),
        ({"na": True}, "na="),
        ({"numeric": "text"}, "'text' is to compare as numbers"),
        ({"numeric": iter(["text"])}, "'numeric' parameter is an iterator"),
        ({"engine": "abacus"}, "abacus"),
        ({"n_jobs": 0}, "'n_jobs' parameter"),
        ({"time_limit": "soon"}, "soon"),
    ],
)
def test_bad_parameters_are_refused_by_fit(options: dict[str, Any], message: str) -> None:
    with pytest.raises(plar.PlarError, match=message):
        RuleClassifier(**options).fit(FRAME, Y)


# -- where users of scikit-learn work -------------------------------------------------------------------------------


def test_not_fitted() -> None:
    for method in ("predict", "predict_proba", "explain"):
        with pytest.raises(NotFittedError):
            getattr(RuleClassifier(), method)(FRAME)


def test_clone_and_params() -> None:
    model = RuleClassifier("certain", bins="quantile:3", na=["?"]).fit(FRAME.drop(columns="id"), Y)
    assert clone(model).get_params() == model.get_params()
    assert not hasattr(clone(model), "rules_")
    assert clone(model).set_params(kind="tested", alpha=0.2).get_params()["alpha"] == 0.2


def test_a_saved_classifier_predicts_the_same_in_another_process(tmp_path: Path) -> None:
    X = FRAME.drop(columns="mixed")
    model = RuleClassifier().fit(X, Y)
    restored = pickle.loads(pickle.dumps(model))
    assert restored.rules_ == model.rules_
    np.testing.assert_array_equal(restored.predict_proba(X), model.predict_proba(X))
    joblib.dump(model, tmp_path / "model.joblib")
    X.to_pickle(tmp_path / "X.pickle")
    code = """
import joblib, pandas as pd
print(*joblib.load("model.joblib").predict(pd.read_pickle("X.pickle")))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == model.predict(X).tolist()


def test_saved_rules_predict_what_the_classifier_does(tmp_path: Path) -> None:
    X = FRAME.drop(columns="mixed")
    model = RuleClassifier().fit(X, np.array(["9", "10", "-1", "007"])[CODES])
    model.rules_.save(tmp_path / "rules.json")
    loaded = plar.load(tmp_path / "rules.json")
    assert isinstance(loaded, plar.Rules)
    assert loaded == model.rules_
    assert loaded.predict(X).tolist() == model.predict(X).tolist()


def test_in_pipelines_grids_and_other_estimators() -> None:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    names = np.array(["malignant", "benign"])[y]
    assert cross_val_score(RuleClassifier(), X, names, cv=3).mean() > 0.93
    pipe = make_pipeline(SelectKBest(k=10), RuleClassifier())
    assert cross_val_score(pipe, X, names, cv=3, scoring="roc_auc").mean() > 0.95
    pipe = make_pipeline(FeatureSelector().set_output(transform="pandas"), RuleClassifier())
    assert pipe.fit(X, names).score(X, names) > 0.93
    assert set(pipe[-1].feature_names_in_) < set(X)
    search = GridSearchCV(RuleClassifier(), {"alpha": [1e-200, 0.05], "bins": ["auto", "quantile:4"]}, cv=3).fit(
        X, names
    )
    assert search.best_params_["alpha"] == 0.05
    calibrated = CalibratedClassifierCV(RuleClassifier(), cv=3).fit(X, names)
    assert calibrated.score(X, names) > 0.93
    np.testing.assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1)


def test_the_fewest_features_for_it() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    selector = FeatureSelectorCV(RuleClassifier(), cv=3).fit(X, y)
    assert selector.score(X, y) > 0.9
    assert selector.classes_.tolist() == [0, 1, 2]
    assert selector.estimator_.rules_.attributes == tuple(selector.get_feature_names_out())


def test_arrays_need_no_polars() -> None:
    code = """
import sys
sys.modules["polars"] = None
import numpy as np
from plar.sklearn import RuleClassifier
X = np.arange(200).reshape(100, 2) % 7 / 7
y = X[:, 0] > 0.5
assert (RuleClassifier().fit(X, y).predict(X) == y).all()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
