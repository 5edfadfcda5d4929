"""The paper's six systems: all that each says is what plar says."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import plar
from plar import baselines
from plar.baselines import hadoop, sequential
from plar.measures import as_measure, exact_log
from support import oracle
from support.comparing import facts
from support.environment import TURNS, no_spark
from support.real import EVERYBODYS, HERE, granules
from support.strategies import Sample, unweighted_tables

System = Callable[..., plar.Reduct]
SEQUENTIAL: dict[str, System] = {"HAR": baselines.har, "FSPA": baselines.fspa}
ON_SPARK: dict[str, System] = {
    "SparkAR": baselines.spark_ar,
    "PLAR-DP": baselines.plar_dp,
    "PLAR": baselines.plar_paper,
}
SMALL = ["tic-tac-toe", "dermatology", "breast", "backup-large"]
if HERE is EVERYBODYS:
    SMALL = ["tic-tac-toe example", "wine", "breast_cancer", "sdss-like"]
#: a job takes a tenth of a second and more, so those systems get some columns of each small dataset, of which some
#: make it inconsistent, and each of them by one measure; and one of them by all
CASES = [*zip(SMALL, oracle.MEASURES, strict=True)]
needs_spark = pytest.mark.skipif(no_spark() is not None, reason=str(no_spark()))
needs_hadoop = pytest.mark.skipif(
    no_spark() is not None or shutil.which("javac") is None, reason=no_spark() or "HadoopAR needs javac"
)


def same(system: System, name: str, data: Any, **options: Any) -> plar.Reduct:
    reduct = system(data, **options)
    options = {k: v for k, v in options.items() if k not in ("session", "model_parallelism")}
    assert reduct.engine == name
    assert facts(reduct) == facts(plar.reduce(data, engine="local", **options))
    return reduct


@cache
def sample(name: str) -> plar.Granules:
    """The dataset; of the three large ones every k-th distinct row, which plain Python can bear in a test."""
    whole = granules(name)
    step = {"shuttle": 8, "letter": 5, "ticdata2000": 6}.get(name)
    if step is None:
        return whole
    return plar.granulate(np.column_stack(whole.columns)[::step], y=whole.decision_codes[::step])


@cache
def narrow(name: str) -> plar.Granules:
    whole = granules(name)
    return whole.coarsen(whole.conditions[:4])


@pytest.mark.parametrize("measure", oracle.MEASURES)
@pytest.mark.parametrize("name", HERE)
@pytest.mark.parametrize("system", SEQUENTIAL)
@pytest.mark.filterwarnings("ignore:The numbers of:plar.PlarWarning")
def test_real_tables(system: str, name: str, measure: str) -> None:
    same(SEQUENTIAL[system], system, sample(name), measure=measure)


@pytest.mark.parametrize("system", SEQUENTIAL)
@given(sample=unweighted_tables(), measure=st.sampled_from(oracle.MEASURES))
def test_any_table(system: str, sample: Sample, measure: str) -> None:
    same(SEQUENTIAL[system], system, sample.frame(), measure=measure, **sample.roles)


def kept(spark: Any) -> set[int]:
    """Numbers of the RDDs that the session keeps."""
    return set(spark.sparkContext._jsc.getPersistentRDDs())


@needs_spark
@pytest.mark.parametrize(
    ("system", "name", "measure"),
    [(system, *case) for j, system in enumerate(ON_SPARK) for case in (CASES if TURNS > 1 else CASES[j : j + 1])],
)
def test_on_spark(spark: Any, system: str, name: str, measure: str) -> None:
    before = kept(spark)
    same(ON_SPARK[system], system, narrow(name), measure=measure, session=spark)
    assert kept(spark) <= before


@needs_hadoop
@pytest.mark.parametrize(("name", "measure"), CASES if TURNS > 1 else CASES[:1])
def test_on_hadoop(name: str, measure: str) -> None:
    same(baselines.hadoop_ar, "HadoopAR", narrow(name), measure=measure)


@needs_hadoop
@pytest.mark.parametrize(("name", "measure"), CASES[2:])
def test_theta_in_java(name: str, measure: str) -> None:
    table, subsets = narrow(name), [(), (0, 2), (0, 1, 2, 3)]
    with hadoop.HadoopAR() as there, sequential.HAR() as here:
        judged = [system.open(table, as_measure(measure)).judge(subsets) for system in (there, here)]
    assert judged[0] == judged[1]


#: the classes of U/C with counts (1000, 1001), (2000, 2002) and (1001, 1002): the first two may merge, the third not
PROPORTIONAL = {
    "b": [0, 0, 0, 0, 1, 1],
    "a": [0, 0, 1, 1, 2, 2],
    "w": [1000, 1001, 2000, 2002, 1001, 1002],
    "d": [0, 1] * 3,
}


@pytest.mark.parametrize("system", SEQUENTIAL)
def test_equality_is_by_labels(system: str) -> None:
    reduct = same(SEQUENTIAL[system], system, PROPORTIONAL, decision="d", weights="w")
    assert reduct.attributes == ("b",)


@needs_spark
def test_equality_is_by_labels_on_spark(spark: Any) -> None:
    same(baselines.plar_paper, "PLAR", PROPORTIONAL, decision="d", weights="w", session=spark, model_parallelism=2)


@needs_hadoop
def test_equality_is_by_labels_on_hadoop() -> None:
    same(baselines.hadoop_ar, "HadoopAR", PROPORTIONAL, decision="d", weights="w")


def test_options_are_those_of_reduce() -> None:
    rng = np.random.default_rng(3)
    table = plar.granulate(rng.integers(0, 3, (120, 6)), y=rng.integers(0, 3, 120))
    for name, system in SEQUENTIAL.items():
        same(system, name, table, max_attributes=2)
        same(system, name, table, include=["x5"], tolerance=0.3, minimal=True, conditions=["x5", "x0", "x2", "x3"])


@needs_spark
def test_a_search_that_stops_early_on_spark(spark: Any) -> None:
    rng = np.random.default_rng(3)
    table = plar.granulate(rng.integers(0, 3, (120, 4)), y=rng.integers(0, 3, 120))
    before = kept(spark)
    same(baselines.plar_dp, "PLAR-DP", table, max_attributes=1, session=spark)
    assert kept(spark) <= before


def test_own_measures_are_refused() -> None:
    own = plar.Measure("own", lambda counts: counts.max(), normaliser=lambda n: n)
    with pytest.raises(plar.TableError, match=r"The paper's systems know PR, SCE, LCE and CCE, not 'own'\. Use plar"):
        baselines.har({"a": [0, 1], "d": [0, 1]}, "d", measure=own)


def test_more_rows_than_a_machine_can_hold() -> None:
    with pytest.raises(plar.TableError, match=r"hold every row: 8589934594 cells, above the limit"):
        baselines.har({"a": [0, 1], "d": [0, 1], "w": [1, 1 << 32]}, "d", weights="w")


@pytest.mark.parametrize("level", [0, True, "8", 1.5])
def test_model_parallelism_is_a_whole_number(level: Any) -> None:
    with pytest.raises(plar.ParameterError, match=r"'model_parallelism' parameter must be 1 or more\. Got"):
        baselines.plar_paper({"a": [0, 1], "d": [0, 1]}, "d", model_parallelism=level)


def test_no_jdk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run = partial(baselines.hadoop_ar, {"a": [0, 1], "d": [0, 1]}, "d")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(
        plar.EngineUnavailable, match=r"HadoopAR' needs a JDK and JAVA_HOME is .* which has no bin/java"
    ):
        run()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(plar.EngineUnavailable, match="HadoopAR' needs a JDK and no java was found; install one"):
        run()


@needs_hadoop
def test_a_job_that_fails() -> None:
    with pytest.raises(plar.PlarError, match=r"Hadoop could not evaluate a subset: .*nowhere"):
        baselines.hadoop_ar({"a": [0, 1], "d": [0, 1]}, "d", conf={"fs.defaultFS": "nowhere://n"})


LOGS = """
public class Logs {
  public static void main(String[] args) {
    for (String n : args) System.out.println(HadoopAR.log(Long.parseLong(n)));
  }
}
"""


@needs_hadoop
def test_logarithms_of_java(tmp_path: Path) -> None:
    numbers = [*range(1, 200), 1 << 20, (1 << 20) + 1, 999_999_937, 1 << 40]
    (tmp_path / "Logs.java").write_text(LOGS)
    java, classpath = hadoop._compiled()
    words = [java, "-cp", classpath, str(tmp_path / "Logs.java"), *map(str, numbers)]
    assert list(map(int, subprocess.check_output(words, text=True).split())) == [exact_log(n) for n in numbers]


def test_nothing_else_loads_them() -> None:
    code = (
        "import sys, plar, plar.api, plar.cli, plar.datasets, plar.engines.local.engine\n"
        "assert 'plar.baselines' not in sys.modules\n"
        "from plar import baselines\n"
        "assert 'pyspark' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
