"""The Spark ML stages on a real Spark: they select what `plar.reduce` selects, alone, in pipelines, after loading."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.classification import DecisionTreeClassifier
from pyspark.ml.feature import StringIndexer
from pyspark.ml.tuning import ParamGridBuilder

import plar
import plar.spark
from plar.measures import Measure
from plar.options import ReadOptions, RunOptions, SearchOptions, param_name
from plar.session.session import Session
from plar.spark import ReductSelector, ReductSelectorModel
from support.comparing import facts
from support.environment import nightly, no_spark

pytestmark = pytest.mark.skipif(no_spark() is not None, reason=str(no_spark()))
INPUTS = ["a.b", "B", "b", "copy", "noise"]
#: every Param with a value other than its default
OPTIONS: dict[str, Any] = {
    "labelCol": "y",
    "inputCols": ["a.b", "b"],
    "weightCol": "w",
    "outputCol": "features",
    "measure": "PR",
    "include": ["b"],
    "epsilon": 0.25,
    "tolerance": 0.5,
    "maxAttributes": 3,
    "missing": "drop",
    "missingDecision": "error",
    "na": ["?"],
    "bins": {"b": "width:2"},
    "decisionBins": [1.5],
    "output": "bins",
    "minimal": True,
    "alpha": 0.05,
    "start": "core",
    "search": "smallest",
    "costs": '{"b": 3}',
    "exclude": ["noise"],
    "timeLimit": "90s",
    "layout": "rows",
    "partitions": 2,
}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """Names with a dot and names that differ in their case alone, text, missing values, numbers and weights."""
    rows = [(i, "xyz"[i % 3], i % 2, i // 6 % 2, [None, "u"][i % 2], i % 5 % 2, 1 + i % 2) for i in range(24)]
    frame = pd.DataFrame(rows, columns=["id", *INPUTS, "w"])
    frame["y"] = [f"{r[1]}{r[3]}" if r[2] else "even" for r in rows]
    return frame


@pytest.fixture(scope="module")
def data(spark: Any, table: pd.DataFrame) -> Any:
    columns = "id int, `a.b` string, B int, b int, copy string, noise int, w int, y string"
    spark.conf.set("spark.sql.caseSensitive", "true")  # to make the frame; the stages do without
    made = spark.createDataFrame(
        [tuple(row) for row in table.astype(object).where(table.notna(), None).itertuples(index=False)], columns
    )
    spark.conf.unset("spark.sql.caseSensitive")
    return made.coalesce(1)


@pytest.fixture(scope="module")
def model(data: Any) -> ReductSelectorModel:
    return ReductSelector(labelCol="y", inputCols=INPUTS, weightCol="w", partitions=1).fit(data)


def files(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file() and not file.name.startswith((".", "_"))]


def test_fit_selects_what_reduce_selects(model: ReductSelectorModel, table: pd.DataFrame) -> None:
    expected = plar.reduce(table, "y", conditions=INPUTS, weights="w")
    assert facts(model.reduct) == facts(expected)
    assert (model.selected, model.core) == (expected.attributes, expected.core)
    assert [step.attribute for step in model.reduct.steps] == [step.attribute for step in expected.steps]
    assert 0 < len(model.selected) < len(INPUTS)


@pytest.mark.filterwarnings("ignore:'id' is different in nearly every row:plar.PlarWarning")
def test_bins_decide_what_is_equal(data: Any, table: pd.DataFrame) -> None:
    inputs = ["id", "b", "noise"]
    cut = ReductSelector(labelCol="y", inputCols=inputs, bins={"id": "width:4"}, partitions=1).fit(data)
    assert facts(cut.reduct) == facts(plar.reduce(table, "y", conditions=inputs, bins={"id": "width:4"}))
    assert cut.transform(data).select(*cut.selected).collect() == data.select(*cut.selected).collect()


def test_transform_takes_away_what_was_not_selected(model: ReductSelectorModel, data: Any) -> None:
    out = model.transform(data)
    gone = set(INPUTS) - set(model.selected)
    assert out.columns == [name for name in data.columns if name not in gone]
    places = [j for j, name in enumerate(data.columns) if name not in gone]
    assert [tuple(row) for row in out.collect()] == [tuple(row[j] for j in places) for row in data.collect()]
    assert model.transformSchema(data.schema) == out.schema


def test_new_rows_need_the_selected_columns_only(spark: Any, model: ReductSelectorModel) -> None:
    columns = ["other", *model.selected]
    fresh = spark.createDataFrame([tuple(range(len(columns)))], columns)
    assert model.transform(fresh).columns == columns
    with pytest.raises(plar.TableError, match=f"no column '{model.selected[0]}'"):
        model.transform(fresh.select("other"))


#: what only one kind of search takes
OF_ONE_SEARCH: dict[str, dict[str, Any]] = {
    "greedy": {"epsilon": 0.25, "tolerance": 0.5, "max_attributes": 3, "minimal": True, "alpha": 0.05, "start": "core"},
    "smallest": {"costs": {"b": 3}, "exclude": ["noise"]},
}


@pytest.mark.parametrize("search", OF_ONE_SEARCH)
def test_every_param_reaches_the_search(
    spark: Any, model: ReductSelectorModel, monkeypatch: pytest.MonkeyPatch, search: str
) -> None:
    calls: list[tuple[Session, Measure, SearchOptions]] = []

    def find_reduct(*arguments: Any) -> plar.Reduct:
        calls.append(arguments)
        return model.reduct

    monkeypatch.setattr(plar.spark.selector, "find_reduct", find_reduct)
    other = "smallest" if search == "greedy" else "greedy"
    left_out = [param_name(option) for option in OF_ONE_SEARCH[other]]
    params = {name: value for name, value in OPTIONS.items() if name not in left_out} | {"search": search}
    fitted = ReductSelector(**params).fit(spark.range(1))
    [(session, measure, searching)] = calls
    engine: Any = session.engine
    assert (engine.session, engine.layout, engine.partitions) == (spark, "rows", 2)
    assert session.run_options == RunOptions(engine=engine, time_limit="90s")
    assert measure == plar.measures.PR
    reading = ReadOptions(
        decision="y",
        conditions=["a.b", "b"],
        weights="w",
        missing="drop",
        missing_decision="error",
        na=["?"],
        bins={"b": "width:2"},
        decision_bins=[1.5],
    )
    assert asdict(session._reading) == asdict(reading)
    assert searching == SearchOptions(include=["b"], search=search, **OF_ONE_SEARCH[search])
    copied = {param.name: fitted.getOrDefault(param) for param in fitted.params if fitted.isDefined(param)}
    assert {name: copied[name] for name in params} == params


def test_params_have_setters_getters_and_documents(spark: Any) -> None:
    selector, at_once = ReductSelector(), ReductSelector(**OPTIONS)
    assert {param.name for param in selector.params} == set(OPTIONS)
    for name, value in OPTIONS.items():
        word = name[0].upper() + name[1:]
        assert getattr(selector, f"set{word}")(value) is selector
        assert getattr(selector, f"get{word}")() == getattr(at_once, f"get{word}")() == value
        assert selector.getParam(name).doc
    assert not selector.setParams(weightCol=None).isDefined("weightCol")
    with pytest.raises(TypeError, match="keyword"):
        ReductSelector("y")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("labelCol", 1),
        ("inputCols", "a"),
        ("measure", plar.measures.as_measure("SCE")),
        ("epsilon", "0.1"),
        ("maxAttributes", 1.5),
        ("minimal", 1),
        ("partitions", "2"),
        ("bins", 3),
    ],
)
def test_params_refuse_other_types(spark: Any, name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f'param "{name}"'):
        ReductSelector(**{name: value})


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"measure": "gini"}, "Unknown measure 'gini'. Choose one of: PR, SCE, LCE, CCE."),
        ({"layout": "diagonal"}, "Unknown layout 'diagonal'. Choose one of: auto, driver, columns, rows."),
        ({"labelCol": "why"}, "Unknown decision 'why'."),
        ({"inputCols": ["B", "y"]}, "'y' is both a column to choose from and the decision. Choose one."),
        ({"inputCols": []}, "No column is left to choose from."),
    ],
)
def test_faults_are_told_in_one_line(data: Any, options: dict[str, Any], line: str) -> None:
    with pytest.raises(plar.PlarError) as fault:
        ReductSelector(**{"labelCol": "y", **options}).fit(data)
    assert str(fault.value).startswith(line)
    assert "\n" not in str(fault.value)


def test_estimator_is_saved_and_loaded(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "selector")
    selector = ReductSelector(**OPTIONS)
    selector.save(path)
    again = ReductSelector.load(path)
    assert again.uid == selector.uid
    assert again.extractParamMap() == selector.extractParamMap()
    with pytest.raises(Exception, match=r"(?i)already.exists"):
        selector.save(path)
    selector.setMaxAttributes(None).write().overwrite().save(path)
    assert not ReductSelector.load(path).isDefined("maxAttributes")
    with pytest.raises(plar.TableError, match=r"holds a ReductSelector, not a ReductSelectorModel"):
        ReductSelectorModel.load(path)


def test_model_is_saved_as_text_and_loaded(model: ReductSelectorModel, data: Any, tmp_path: Path) -> None:
    path = tmp_path / "model"
    model.save(str(path))
    again = ReductSelectorModel.load(str(path))
    assert again.reduct == model.reduct
    assert (again.uid, again.extractParamMap()) == (model.uid, model.extractParamMap())
    assert again.transform(data).collect() == model.transform(data).collect()
    with pytest.raises(Exception, match=r"(?i)already.exists"):
        model.save(str(path))
    model.write().overwrite().save(str(path))
    written = files(path)
    assert sorted(file.parent.name for file in written) == ["data", "metadata"]
    assert all(json.loads(file.read_text()) for file in written)


@pytest.fixture(scope="module")
def plain(data: Any) -> Any:
    """The same rows under names that Spark's own stages bear."""
    return data.toDF("id", "a", "p", "q", "copy", "noise", "w", "y")


@pytest.fixture(scope="module")
def selector() -> ReductSelector:
    return ReductSelector(inputCols=["a_index", "p", "q", "copy_index", "noise"], outputCol="features", partitions=1)


@pytest.fixture(scope="module")
def pipeline(selector: ReductSelector) -> Pipeline:
    text, numbers = ["y", "a", "copy"], ["label", "a_index", "copy_index"]
    indexer = StringIndexer(inputCols=text, outputCols=numbers, handleInvalid="keep")
    return Pipeline(stages=[indexer, selector, DecisionTreeClassifier()])


def test_pipeline_is_fitted_saved_and_loaded(
    pipeline: Pipeline, selector: ReductSelector, plain: Any, tmp_path: Path
) -> None:
    fitted: Any = pipeline.fit(plain)
    out = fitted.transform(plain)
    indexer, chosen, _ = fitted.stages
    rows = indexer.transform(plain).collect()
    indexed = pd.DataFrame([row.asDict() for row in rows])
    assert chosen.selected == plar.reduce(indexed, "label", conditions=selector.getInputCols()).attributes
    first = out.first()
    assert first.features.toArray().tolist() == [first[name] for name in chosen.selected]
    assert out.filter("prediction = label").count() == len(rows)  # nothing about the label is lost
    pipeline.write().overwrite().save(str(tmp_path / "pipeline"))
    fitted.save(str(tmp_path / "fitted"))
    again = Pipeline.load(str(tmp_path / "pipeline")).getStages()[1]
    assert again.extractParamMap() == selector.extractParamMap()
    loaded: Any = PipelineModel.load(str(tmp_path / "fitted"))
    assert loaded.stages[1].reduct == chosen.reduct
    assert loaded.transform(plain).select("prediction").collect() == out.select("prediction").collect()
    of_ours = [file for file in files(tmp_path) if any("ReductSelector" in part for part in file.parts)]
    assert len(of_ours) == 3
    assert all(json.loads(file.read_text()) for file in of_ours)


def test_params_come_from_a_grid(pipeline: Pipeline, selector: ReductSelector, plain: Any) -> None:
    grid = ParamGridBuilder().addGrid(selector.maxAttributes, [1, 2]).baseOn({selector.labelCol: "y"}).build()
    copies: list[Any] = [pipeline.copy(params).getStages()[1] for params in grid]
    assert [copy.getMaxAttributes() for copy in copies] == [1, 2]
    models = selector.copy().setInputCols(["a", "p", "q"]).setOutputCol(None).fit(plain, grid)
    assert [len(model.selected) for model in models] == [1, 2]
    assert [(model.getLabelCol(), model.getMaxAttributes()) for model in models] == [("y", 1), ("y", 2)]
    assert not selector.isSet("maxAttributes")


def test_without_pyspark_one_line_says_what_to_install() -> None:
    code = "import sys; sys.modules['pyspark'] = None; import plar.spark"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    said = "plar.errors.EngineUnavailable: plar.spark needs pyspark. Install it: pip install 'plar[spark]'."
    assert done.stderr.splitlines()[-1] == said


def test_what_means_missing(spark: Any, tmp_path: Path) -> None:
    rows = [(-999.0, "-999", "a"), (1.0, "1", "b"), (5.0, "NA", "b"), (-999.0, "5", "a")]
    kinds = ("int", "bigint", "float", "double", "decimal(9,2)", "string")
    cuts: Any = {"x": [2.0]}
    for na, missing in ((None, {"t": 1}), ([], {}), (["-999.0"], {"x": 2, "t": 2})):
        data = spark.createDataFrame(rows, "x double, t string, label string").coalesce(1)
        fitted = ReductSelector(na=na, include=["x"], bins=cuts, output="bins", partitions=1).fit(data)
        assert fitted.reduct.missing == missing
        path = str(tmp_path / f"model{len(missing)}")
        fitted.save(path)
        again = ReductSelectorModel.load(path)
        bins = [row["x"] for row in again.transform(data).collect()]
        assert bins == ([None, 0, 1, None] if na else [0, 0, 1, 0])
    # the model takes other types of numbers, too
    for kind in kinds:
        cast = data.withColumn("x", data.x.cast(kind))
        assert [row["x"] for row in again.transform(cast).collect()] == [None, 0, 1, None], kind


CONNECT = """
import sys
from pyspark.sql import SparkSession
import plar
from plar.spark import ReductSelector, ReductSelectorModel
spark = SparkSession.builder.remote("local[1]").getOrCreate()
names = sys.argv[2].split(",")
data = spark.createDataFrame([tuple(range(len(names)))], names)
try:
    ReductSelector(labelCol=names[0]).fit(data)
except plar.EngineUnavailable as error:
    print(error)
model = ReductSelectorModel.load(sys.argv[1])
print(*model.transform(data).columns, sep=",")
"""


@pytest.mark.skipif(find_spec("grpc") is None, reason="Spark Connect is not installed: pip install 'pyspark[connect]'")
@nightly
def test_through_spark_connect_models_work_and_fit_says_that_it_does_not(
    model: ReductSelectorModel, tmp_path: Path
) -> None:
    path = str(tmp_path / "model")
    model.save(path)
    names = ",".join(["other", *model.selected, *(set(INPUTS) - set(model.selected))])
    done = subprocess.run([sys.executable, "-c", CONNECT, path, names], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    fault, columns = done.stdout.splitlines()
    assert fault.startswith("The engine 'spark' does not work through Spark Connect")
    assert columns.split(",") == ["other", *model.selected]
