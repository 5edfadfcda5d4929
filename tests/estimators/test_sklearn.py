"""`plar.sklearn.ReductSelector` where its users work: frames, pipelines, grids, batches; and scikit-learn's checks."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import plar
from plar.sklearn import ReductSelector, RelevantSelector

N = 60
RNG = np.random.default_rng(0)
ODD = [1, "1", None, 2.5]  # 1 and "1" differ
#: y follows from text and gap; the others tell nothing more
FRAME = pd.DataFrame(
    {
        "text": RNG.choice(list("abc"), N),
        "category": pd.Categorical(RNG.choice(["x", "y"], N)),
        "gap": RNG.choice([0.5, np.nan, 2.0], N),
        "mixed": [ODD[k] for k in RNG.integers(0, 4, N)],
        "constant": 1,
        "whole": pd.array([None, *RNG.integers(0, 3, N - 1)], dtype="Int64"),
        "flag": RNG.random(N) < 0.5,
    }
)
Y = np.where((FRAME["text"] == "a") ^ FRAME["gap"].isna(), "p", "q")
CHOSEN = ["text", "gap"]


def as_polars(frame: pd.DataFrame) -> pl.DataFrame:
    columns = {name: [None if pd.isna(v) else v for v in frame[name]] for name in frame if name != "mixed"}
    made = pl.DataFrame(columns).with_columns(pl.col("category").cast(pl.Categorical))
    return made.insert_column(3, pl.Series("mixed", list(frame["mixed"]), dtype=pl.Object))


TABLES = {"pandas": FRAME, "polars": as_polars(FRAME), "numpy": FRAME.to_numpy(), "list": FRAME.to_numpy().tolist()}


@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [
        ReductSelector(),
        ReductSelector("PR", max_attributes=2, minimal=True),
        RelevantSelector(alpha=0.999),
    ]
)
def test_scikit_learn_s_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize(
    "labels",
    [
        Y,
        list(Y),
        Y == "p",
        (Y == "p").astype(int),
        (Y == "p") + 0.5,
        np.array(Y, object),
        pd.Series(Y, name="d"),
        pd.Series(Y).astype("category"),
        pl.Series(Y).cast(pl.Categorical),
    ],
    ids=["text", "list", "bool", "int", "float", "object", "pandas", "pandas category", "polars category"],
)
def test_any_table_and_any_labels(kind: str, labels: Any) -> None:
    selector = ReductSelector().fit(TABLES[kind], labels)
    assert selector.get_support(indices=True).tolist() == [0, 2]
    assert selector.reduct_.certificate.preserved


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
def test_what_comes_out(kind: str, output: str) -> None:
    selector = ReductSelector().set_output(transform=output).fit(TABLES[kind], Y)
    found = selector.transform(TABLES[kind])
    named = kind in ("pandas", "polars")
    assert selector.get_feature_names_out().tolist() == (CHOSEN if named else ["x0", "x2"])
    assert hasattr(selector, "feature_names_in_") == named
    assert selector.n_features_in_ == 7
    assert type(found).__module__.partition(".")[0] == ("numpy" if output == "default" else output)
    if output == kind == "pandas":
        pd.testing.assert_frame_equal(found, FRAME[CHOSEN])
    elif output == kind == "polars":
        assert found.equals(TABLES["polars"].select(CHOSEN))
    rows = found.rows() if output == "polars" else np.asarray(found).tolist()
    shown = [[None if pd.isna(v) else v for v in row] for row in rows]
    assert shown == [[None if pd.isna(v) else v for v in row] for row in FRAME[CHOSEN].to_numpy().tolist()]


#: a column, its type in pandas and its type in polars
TYPES: dict[str, tuple[Any, str, Any]] = {
    "int8": (np.arange(N, dtype=np.int8), "int8", pl.Int8),
    "uint64": (np.arange(N, dtype=np.uint64) + 2**63, "uint64", pl.UInt64),
    "float32": (np.arange(N, dtype=np.float32) / 2, "float32", pl.Float32),
    "bool": (np.arange(N) % 2 == 0, "bool", pl.Boolean),
    "text": ([f"t{i}" for i in range(N)], str(pd.Series(["t"]).dtype), pl.String),
    "category": (pd.Categorical([f"t{i % 7}" for i in range(N)]), "category", pl.Categorical),
    "int16 with gaps": (pd.array([None, *range(1, N)], dtype="Int16"), "Int16", pl.Int16),
    "large with gaps": (pd.array([None, *range(2**60 + 1, 2**60 + N)], dtype="Int64"), "Int64", pl.Int64),
    "float64 with gaps": ([None, *(i / 2 for i in range(1, N))], "float64", pl.Float64),
    "bool with gaps": (pd.array([None, *(i % 2 == 0 for i in range(1, N))], dtype="boolean"), "boolean", pl.Boolean),
    "text with gaps": ([None, *(f"t{i}" for i in range(1, N))], str(pd.Series(["t"]).dtype), pl.String),
}


def plain(values: Any) -> list[Any]:
    return [None if pd.isna(value) else value for value in values]


@pytest.mark.parametrize("selector", [ReductSelector, RelevantSelector])
@pytest.mark.filterwarnings("ignore:.*different in nearly every row:plar.PlarWarning")
@pytest.mark.filterwarnings("ignore:The numbers of:plar.PlarWarning")
def test_types_go_from_one_library_to_the_other(selector: Any) -> None:
    here = pd.DataFrame({name: column for name, (column, _, _) in TYPES.items()}, index=range(7, 7 + N))
    there = pl.DataFrame({n: pl.Series(plain(c), dtype=kind) for n, (c, _, kind) in TYPES.items()})
    for output in ("pandas", "polars"):
        for X in (here, there):
            found = selector(include=list(TYPES)).set_output(transform=output).fit(X, Y).transform(X)
            types = dict(found.schema) if output == "polars" else found.dtypes.astype(str).to_dict()
            assert types == {name: types_of[output == "polars"] for name, (_, *types_of) in TYPES.items()}
            for name, (column, *_) in TYPES.items():
                assert plain(found[name].to_list()) == plain(column)
        if output == "pandas":
            assert selector(include=list(TYPES)).set_output(transform=output).fit(here, Y).transform(here).index[0] == 7


@pytest.mark.filterwarnings("ignore:.*different in nearly every row:plar.PlarWarning")
@pytest.mark.filterwarnings("ignore:The numbers of:plar.PlarWarning")
def test_types_of_arrays_and_bins_in_other_libraries() -> None:
    X = np.array([[i, f"t{i % 3}", None if i % 5 else i / 2] for i in range(N)], object)
    how: dict[str, Any] = {"include": [0, 1, 2], "bins": {0: [9.5], 2: [9.5]}}
    polars = ReductSelector(**how).set_output(transform="polars").fit(X, Y).transform(X)
    assert polars.dtypes == [pl.Int64, pl.String, pl.Float64]
    pandas = ReductSelector(**how).set_output(transform="pandas").fit(X, Y).transform(X)
    assert pandas.dtypes.astype(str).tolist() == ["int64", str(pd.Series(["t"]).dtype), "float64"]
    assert plain(pandas["x2"]) == polars["x2"].to_list() == X[:, 2].tolist()
    narrow = np.arange(2 * N, dtype=np.float32).reshape(N, 2)
    assert (
        ReductSelector(include=[0]).set_output(transform="polars").fit(narrow, Y).transform(narrow).dtypes[0]
        == pl.Float32
    )
    bins = ReductSelector(output="bins", **how)
    frame = pd.DataFrame({"i": range(N), "t": X[:, 1], "f": X[:, 2].astype(float)})
    kinds: dict[str, set[Any]] = {
        "pandas": {"int64", "Int64", str(pd.Series(["t"]).dtype)},
        "polars": {pl.Int64, pl.Float64, pl.String},
    }
    for table in (X, frame, pl.from_pandas(frame)):
        for output, expected in kinds.items():
            found = clone(bins).set_output(transform=output).fit(table, Y).transform(table)
            types = set(found.dtypes) if output == "polars" else set(found.dtypes.astype(str)) - {"float64"}
            assert types <= expected
            columns = [found[name].to_list() for name in found.columns]
            assert plain(columns[0]) == [int(i > 9.5) for i in range(N)]
            assert plain(columns[2]) == [None if i % 5 else int(i / 2 > 9.5) for i in range(N)]


def test_types_are_kept_without_pyarrow() -> None:
    code = """
import sys
from importlib.machinery import PathFinder
class WithoutArrow(PathFinder):
    @classmethod
    def find_spec(cls, name, *more):
        return None if name.partition(".")[0] == "pyarrow" else super().find_spec(name, *more)
sys.meta_path = [WithoutArrow if finder is PathFinder else finder for finder in sys.meta_path]
import numpy as np, pandas as pd, polars as pl
from plar.sklearn import ReductSelector
X = pd.DataFrame({"i": np.arange(4, dtype=np.int8), "t": ["a", None, "b", "a"], "c": pd.Categorical(list("xyxy"))})
made = ReductSelector(include=["i", "t", "c"]).set_output(transform="polars").fit(X, [0, 1, 2, 3]).transform(X)
assert made.dtypes == [pl.Int8, pl.String, pl.Categorical], made.dtypes
assert made["t"].to_list() == ["a", None, "b", "a"]
back = ReductSelector(include=["i", "t", "c"]).set_output(transform="pandas").fit(made, [0, 1, 2, 3]).transform(made)
assert back.dtypes.astype(str).tolist() == X.dtypes.astype(str).tolist(), back.dtypes
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_inverse_transform_puts_columns_back_beside_zeros() -> None:
    X = np.array([[1.0, 5.0, np.nan], [2.0, 5.0, 3.0], [1.0, 5.0, 3.0], [2.0, 5.0, np.nan]])
    selector = ReductSelector().fit(X, [0, 1, 1, 0])
    back = selector.inverse_transform(selector.transform(X))
    np.testing.assert_array_equal(back, np.where([selector.get_support()], X, 0))
    with pytest.raises(ValueError, match="3 columns, but 1 were selected"):
        selector.inverse_transform(X)


def test_ranking_and_scores() -> None:
    # by hand: a alone tells 0 from the rest, b the rest apart; c copies b, and comes later in the table
    X = pd.DataFrame({"c": [0, 0, 1, 1], "b": [0, 0, 1, 1], "a": [0, 1, 0, 1], "z": [7, 7, 7, 7]})
    selector = ReductSelector(measure="PR").fit(X, [0, 1, 2, 3])
    assert selector.core_.tolist() == [2]
    assert selector.reduct_.core == ("a",)
    assert selector.ranking_.tolist() == [2, 3, 1, 3]
    assert selector.scores_.tolist() == [1, 1, 1, 0]
    assert selector.get_support().tolist() == [True, False, True, False]


def test_scores_without_a_round_are_those_with_respect_to_what_is_selected() -> None:
    X = pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1]})
    selector = ReductSelector(measure="PR", max_attributes=1).fit(X, [0, 1, 2, 3])
    assert selector.core_.tolist() == [0, 1]
    assert selector.ranking_.tolist() == [1, 2]
    assert selector.scores_.tolist() == [1, 1]
    held = ReductSelector(include=["z"]).fit(X.assign(z=5), [0, 1, 2, 3])
    assert held.ranking_.tolist() == [1, 1, 2]
    assert held.scores_[2] == 0
    assert held.scores_[:2] == pytest.approx([np.log(2), np.log(2)])


@pytest.mark.parametrize("options", [{"measure": "LCE"}, {"tolerance": 0.2}, {"max_attributes": 1}, {"minimal": True}])
def test_the_result_is_that_of_reduce(options: dict[str, Any]) -> None:
    found, expected = ReductSelector(**options).fit(FRAME, Y).reduct_, plar.reduce(FRAME, y=Y, **options)
    assert (found.attributes, found.core, found.theta) == (expected.attributes, expected.core, expected.theta)
    assert found.settings == expected.settings


@given(st.lists(st.integers(0, 3), min_size=N, max_size=N).filter(any))
@settings(max_examples=10)
def test_weights_are_repetitions(weights: list[int]) -> None:
    for X in (FRAME, TABLES["polars"], TABLES["numpy"]):
        weighted = ReductSelector().fit(X, Y, sample_weight=weights)
        repeated = ReductSelector().fit(FRAME.loc[np.repeat(FRAME.index, weights)], np.repeat(Y, weights))
        assert (weighted.get_support() == repeated.get_support()).all()
        assert weighted.reduct_.n_objects == sum(weights)
        np.testing.assert_allclose(weighted.scores_, repeated.scores_)


def test_weights_beside_a_column_of_that_name_and_positions_from_the_end() -> None:
    X = FRAME.rename(columns={"flag": "sample_weight"})
    selector = ReductSelector(include=[-1]).fit(X, Y, sample_weight=np.ones(N))
    assert selector.get_feature_names_out().tolist() == [*CHOSEN, "sample_weight"]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (0.5, "in whole numbers. Got 0.5"),
        (-np.ones(N), "Got -1"),
        (np.ones(N - 1), "shape"),
        (np.zeros(N), "non-zero"),
    ],
)
def test_odd_weights(weights: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ReductSelector().fit(FRAME, Y, sample_weight=weights)


def test_batches_count_as_if_they_had_come_at_once() -> None:
    batches = [slice(0, 25), slice(25, 26), slice(26, N)]
    for X in (FRAME, TABLES["polars"], TABLES["numpy"]):
        grown = ReductSelector()
        for part in batches:
            grown.partial_fit(X[part], Y[part], classes=["p", "q"], sample_weight=np.full(len(Y[part]), 2))
        whole = ReductSelector().fit(X, Y, sample_weight=np.full(N, 2))
        assert grown.reduct_.attributes == whole.reduct_.attributes
        assert grown.reduct_.n_objects == 2 * N
        np.testing.assert_array_equal(grown.scores_, whole.scores_)
        np.testing.assert_array_equal(grown.get_support(), whole.get_support())


def test_partial_fit_finds_the_reduct_anew_when_rows_come() -> None:
    selector = ReductSelector().partial_fit([[0, 0], [0, 1]], [0, 1])
    assert selector.get_support().tolist() == [False, True]
    restored = pickle.loads(pickle.dumps(selector))
    restored.partial_fit([[1, 0]], [2])
    assert restored.get_support().tolist() == [True, True]
    assert selector.get_support().tolist() == [False, True]


def test_partial_fit_says_what_it_cannot() -> None:
    with pytest.raises(plar.TableError, match="3, which is not among the classes"):
        ReductSelector().partial_fit([[0], [1]], [0, 3], classes=[0, 1])
    with pytest.raises(ValueError, match="X has 1 features, but ReductSelector is expecting 2"):
        ReductSelector().partial_fit([[0, 0], [0, 1]], [0, 1]).partial_fit([[0]], [0])
    with pytest.warns(UserWarning, match="fit kept no rows"):
        begun = ReductSelector().fit(FRAME, Y).partial_fit(FRAME[:30], Y[:30])
    assert begun.reduct_.n_objects == 30
    for bins in ("quantile:3", {"gap": "mdlp"}):
        assert not hasattr(ReductSelector(bins=bins), "partial_fit")
    assert hasattr(ReductSelector(bins={"gap": [1.5]}), "partial_fit")


@pytest.mark.parametrize("kind", ["pandas", "polars", "numpy"])
def test_bins(kind: str) -> None:
    numbers = np.array([[0.5, 7], [1.5, 7], [2.5, 7], [np.nan, 7], [9.0, 7]])
    X = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "numpy": np.array}[kind](
        numbers if kind == "numpy" else {"a": numbers[:, 0], "b": numbers[:, 1]}
    )
    if kind == "polars":
        X = X.with_columns(pl.col("a").fill_nan(None))
    y = [0, 0, 1, 2, 1]
    first = "x0" if kind == "numpy" else "a"
    cut = ReductSelector(bins={first: [2.0, 8.0]}, output="bins")
    at_once, grown = cut.fit(X, y), clone(cut).partial_fit(X[:2], y[:2]).partial_fit(X[2:], y[2:])
    for selector in (at_once, grown, clone(cut).set_output(transform="pandas").fit(X, y)):
        assert selector.reduct_.cuts == {first: (2.0, 8.0)}
        found = np.asarray(selector.transform(X), dtype=float).ravel()
        np.testing.assert_array_equal(found, [0, 0, 1, np.nan, 2])
    assert at_once.reduct_.settings["bins"] == {first: [2.0, 8.0]}
    assert at_once.get_support().tolist() == [True, False]


def test_clone_and_pickle() -> None:
    selector = ReductSelector("CCE", include=["flag"], na=["?"]).fit(FRAME, Y)
    restored = pickle.loads(pickle.dumps(selector))
    assert restored.reduct_ == selector.reduct_
    pd.testing.assert_frame_equal(
        restored.set_output(transform="pandas").transform(FRAME), FRAME[["text", "gap", "flag"]]
    )
    assert not hasattr(clone(selector), "reduct_")
    assert clone(selector).get_params() == selector.get_params()


def test_in_a_pipeline_a_column_transformer_and_a_grid() -> None:
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.integers(0, 3, (200, 6)), columns=list("abcdef")).astype({"a": "str", "b": "category"})
    X["size"] = rng.normal(size=200)
    y = np.where((X["a"] == "1") & (X["c"] > 0), "in", "out")
    names = list("abcdef")
    both = ColumnTransformer(
        [
            ("chosen", make_pipeline(ReductSelector(), OneHotEncoder(handle_unknown="ignore")), names),
            ("numbers", StandardScaler(), ["size"]),
        ]
    )
    model = make_pipeline(both, DecisionTreeClassifier(random_state=0)).fit(X, y)
    assert model.score(X, y) == 1
    assert both.named_transformers_["chosen"][0].get_feature_names_out().tolist() == ["a", "c"]
    selector = ReductSelector().set_output(transform="pandas")
    pipe = make_pipeline(selector, OneHotEncoder(handle_unknown="ignore"), DecisionTreeClassifier(random_state=0))
    grid = {
        "reductselector__measure": ["SCE", "PR", "LCE", "CCE"],
        "reductselector__max_attributes": [1, None],
        "reductselector__tolerance": [0.0, 0.3],
    }
    search = GridSearchCV(pipe, grid, cv=3).fit(X[names], y)
    assert search.best_score_ == 1
    assert search.best_params_["reductselector__max_attributes"] is None


@pytest.mark.parametrize(
    "options",
    [
        {"measure": "gini"},
        {"engine": "abacus"},
        {"include": ["colour"]},
        {"include": 7},
        {"epsilon": -1},
        {"tolerance": "0"},
        {"max_attributes": 0},
        {"missing": "skip"},
        {"missing": "error"},
        {"na": True},
        {"bins": {"gap": [2.0, 1.0]}},
        {"bins": {"colour": [1.0]}},
        {"n_jobs": 0},
    ],
    ids=str,
)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_bad_parameters_are_refused_by_fit(options: dict[str, Any], method: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011  (the messages are plar's, and tested there)
        getattr(ReductSelector(**options), method)(FRAME, Y)
    assert isinstance(caught.value, plar.PlarError)


@pytest.mark.parametrize(
    "labels",
    [
        [None, *Y[1:]],
        [np.nan, *[1.0] * (N - 1)],
        [np.inf, *[1.0] * (N - 1)],
        pd.array([None, *[1] * (N - 1)], dtype="Int64"),
        pd.Series([pd.NA, *Y[1:]], dtype=object),
        pl.Series([None, *Y[1:]]),
        np.column_stack([Y, Y]),
        Y[1:],
        None,
        "text",
    ],
    ids=["None", "NaN", "infinite", "pandas NA", "object NA", "polars null", "two columns", "short", "none", "name"],
)
def test_odd_labels_are_refused(labels: Any) -> None:
    with pytest.raises(ValueError, match=r"y contains|y should be|inconsistent|requires y"):
        ReductSelector().fit(FRAME, labels)


def test_labels_that_mean_missing_are_refused() -> None:
    X = np.array([["NA", "u"], ["x", "v"], ["x", "u"]])
    assert ReductSelector().fit(X, [0, 1, 0]).reduct_.missing == {"x0": 1}
    assert ReductSelector(na=()).fit(X, ["NA", "b", "c"]).reduct_.missing == {}
    with pytest.raises(plar.TableError, match=r"y contains 'NA', which means missing.*na=\(\)"):
        ReductSelector().fit(X, ["NA", "b", "c"])
    with pytest.raises(plar.TableError, match="y contains -1, which means missing"):
        ReductSelector(na=-1).fit(X, [-1, 1, 1])


def test_a_quantity_for_y_is_told() -> None:
    with pytest.warns(UserWarning, match="The decision 'y' holds 60 different numbers"):
        ReductSelector().fit(FRAME, np.linspace(0, 1, N))


def test_odd_tables_are_refused() -> None:
    with pytest.raises(TypeError, match="Sparse data was passed for X, but dense data is required"):
        ReductSelector().fit(coo_array(np.eye(3)), [0, 1, 0])
    twice = pd.DataFrame([[0, 1], [1, 1]], columns=["a", "a"])
    for weights in (None, [1, 1]):
        with pytest.raises(plar.TableError, match="appear twice"):
            ReductSelector().fit(twice, [0, 1], sample_weight=weights)
    fitted = ReductSelector().fit(FRAME, Y)
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.transform(FRAME[FRAME.columns[::-1]])
    with pytest.raises(ValueError, match="X has 3 features"):
        ReductSelector().fit(TABLES["numpy"], Y).transform(TABLES["numpy"][:, :3])


@pytest.mark.parametrize("kind", ["pandas", "polars", "numpy"])
@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
def test_nothing_to_select_is_told(kind: str, output: str) -> None:
    selector = ReductSelector().set_output(transform=output).fit(TABLES[kind], ["same"] * N)
    with pytest.warns(UserWarning, match="No feature was selected"):
        assert selector.transform(TABLES[kind]).shape == (N, 0)


def test_without_scikit_learn_it_says_what_to_install() -> None:
    code = "import sys; sys.modules['sklearn'] = None\nimport plar.sklearn"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "EngineUnavailable: plar.sklearn needs scikit-learn 1.6 or later. Try: pip install" in done.stderr
