"""The smallest reduct and all reducts: against all subsets of small tables, on real tables, in every way in."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plar
from plar import datasets
from plar.engines import LocalEngine
from support import oracle
from support.checkpoints import read_search
from support.environment import TIC_TAC_TOE, TURNS, nightly
from support.real import HERE, paper
from support.real import granules as granulated
from support.shell import run
from support.smallest import PROVEN, noise, proof_of
from support.strategies import Sample, large_tables, proportional_tables, small_tables

MEASURES = ("PR", "SCE", "LCE", "CCE")
BITS = {f"b{j}": [i >> j & 1 for i in range(16)] for j in range(4)}
XOR = {**BITS, "d": [(i ^ (i >> 1)) & 1 for i in range(16)]}


def preserving(table: oracle.Table, measure: str) -> list[frozenset[str]]:
    """Every set of attributes that preserves Θ, by the definitions."""
    C = table.conditions
    subsets = (s for k in range(len(C) + 1) for s in combinations(C, k))
    return [frozenset(s) for s in subsets if oracle.equal(table, s, C, measure)]


def minimal(sets: Sequence[frozenset[str]], keep: frozenset[str] = frozenset()) -> list[frozenset[str]]:
    return [s for s in sets if not any(s - {a} in sets for a in s - keep)]


@st.composite
def asked(draw: st.DrawFn, conditions: Sequence[str]) -> dict[str, Any]:
    costs = draw(st.dictionaries(st.sampled_from(conditions), st.sampled_from([1, 2, 3, 7, 10**6])))
    include = draw(st.lists(st.sampled_from(conditions), max_size=2, unique=True))
    exclude = draw(st.lists(st.sampled_from(conditions), max_size=2, unique=True))
    return {"costs": costs, "include": include, "exclude": [a for a in exclude if a not in include]}


def check(sample: Sample, measure: str, options: dict[str, Any]) -> None:
    table = sample.table()
    C, costs = table.conditions, options["costs"]
    include, exclude = frozenset(options["include"]), frozenset(options["exclude"])
    every = preserving(table, measure)
    allowed = [s for s in every if include <= s and not s & exclude]
    if not allowed:
        with pytest.raises(plar.ParameterError, match="in every reduct, and exclude= leaves that out"):
            plar.reduce(sample.frame(), **sample.roles, measure=measure, search="smallest", **options)
        return

    def rank(s: frozenset[str]) -> Any:
        return sum(costs.get(a, 1) for a in s), len(s), sorted(map(C.index, s))

    reduct = plar.reduce(sample.frame(), **sample.roles, measure=measure, search="smallest", **options)
    best = min(allowed, key=rank)
    assert reduct.attributes == tuple(sorted(best, key=C.index))
    assert reduct.complete
    assert reduct.certificate.preserved
    assert reduct.theta == reduct.theta_all
    assert reduct.bounds == (rank(best)[0],) * 2
    assert set(reduct.certificate.redundant) == {a for a in best if best - {a} in every}
    assert reduct.core == oracle.core(table, measure)
    assert proof_of(reduct).gap == 0
    assert plar.verify(proof_of(reduct), sample.frame(), **sample.roles)

    listed = plar.reducts(sample.frame(), **sample.roles, measure=measure, **options)
    expected = sorted(minimal(allowed, include), key=rank)
    assert [frozenset(one.attributes) for one in listed] == expected
    assert listed.complete
    assert listed.core == reduct.core
    assert [one.cost for one in listed] == [rank(s)[0] for s in expected]
    assert listed.frequencies == {a: sum(a in s for s in expected) / len(expected) for a in C}


@pytest.mark.parametrize("measure", MEASURES)
@given(st.data())
@settings(max_examples=40 * TURNS)
def test_against_all_subsets(measure: str, data: st.DataObject) -> None:
    sample = data.draw(st.one_of(small_tables(), proportional_tables(), large_tables(60)))
    check(sample, measure, data.draw(asked(sample.conditions)))


@nightly
@pytest.mark.parametrize("part", range(20))
def test_against_all_subsets_of_many_tables(part: int) -> None:
    for seed in range(100 * part, 100 * part + 100):
        pick = np.random.default_rng(seed)
        n, k = int(pick.integers(2, 40)), int(pick.integers(1, 8))
        values = pick.integers(0, pick.integers(2, 5), (n, k))
        told = values[:, : 1 + k // 2].sum(axis=1) % 3
        columns = {f"a{j}": values[:, j].tolist() for j in range(k)}
        columns["d"] = (told if seed % 2 else pick.integers(0, 3, n)).tolist()
        for measure in MEASURES:
            check(Sample(columns), measure, {"costs": {}, "include": [], "exclude": []})


def facts(reduct: plar.Reduct) -> tuple[Any, ...]:
    return reduct.attributes, proof_of(reduct).to_dict()


@pytest.mark.filterwarnings("ignore:The numbers of:plar.PlarWarning")
@pytest.mark.parametrize("name", [name for name in HERE if name not in ("digits", "sdss-like")])
def test_nothing_depends_on_threads_or_the_order_of_rows(name: str) -> None:
    granules = granulated(name)
    whole = plar.reduce(granules, search="smallest", measure="LCE")
    assert len(whole.attributes) <= len(plar.reduce(granules, measure="LCE", minimal=True).attributes)
    columns = dict(zip(granules.conditions, granules.columns, strict=True))
    shuffled = np.random.default_rng(0).permutation(len(granules))
    table = {
        **{a: [granules.dictionaries[j][c] for c in columns[a][shuffled]] for j, a in enumerate(granules.conditions)},
        "the decision": [granules.decision_values[0][c] for c in granules.decision_codes[shuffled]],
        "the count": granules.counts[shuffled],
    }
    again = plar.reduce(
        table, "the decision", weights="the count", search="smallest", measure="LCE", engine=LocalEngine(n_jobs=1)
    )
    assert again.attributes == whole.attributes
    ours, theirs = proof_of(whole), proof_of(again)
    assert (theirs.clauses, theirs.tree) == (ours.clauses, ours.tree)


#: smallest size (greedy's is up to one more), all reducts, and those of the smallest size, by LCE
REAL = {
    "mushroom": (3, 156, 3),
    "tic-tac-toe": (8, 9, 9),
    "dermatology": (6, None, None),
    "kr-vs-kp": (29, 4, 4),
    "breast": (4, 20, 8),
    "backup-large": (8, 22_606, 25),
    "shuttle": (4, 19, 19),
    "letter": (11, 61, 11),
    "ticdata2000": (22, None, None),
    "kdd99": (8, 607, 7),
}


@pytest.mark.filterwarnings("ignore:The numbers of:plar.PlarWarning")
@paper
@pytest.mark.parametrize("name", REAL)
def test_the_papers_tables(name: str) -> None:
    granules = plar.granulate(datasets.load(name))
    size, n, n_smallest = REAL[name]
    for measure in MEASURES if name != "ticdata2000" else ("SCE",):
        reduct = plar.reduce(granules, search="smallest", measure=measure)
        assert (len(reduct.attributes), reduct.bounds) == (size, (size, size))
        assert plar.verify(proof_of(reduct), granules)
        assert len(json.dumps(proof_of(reduct).to_dict())) < 10**6
    if n is not None:
        listed = plar.reducts(granules, measure="LCE")
        assert (len(listed), listed.sizes[size], listed.complete) == (n, n_smallest, True)
        assert listed[0].attributes == reduct.attributes


@pytest.mark.parametrize(
    "name",
    [
        *("tic-tac-toe example", "iris", "wine"),
        *(pytest.param(name, marks=paper) for name in ("tic-tac-toe", "breast", "shuttle", "letter")),
    ],
)
@pytest.mark.filterwarnings("ignore:The numbers of:plar.PlarWarning")
def test_all_functional_dependencies(name: str) -> None:
    """On a consistent table the reducts are the minimal sets that determine the decision, which Desbordante finds."""
    desbordante = pytest.importorskip("desbordante", reason="desbordante is not installed: its wheels are not for all")
    import pandas as pd

    granules = granulated(name)
    listed = plar.reducts(granules, measure="PR")
    assert plar.reduce(granules).consistent
    columns = [granules.columns[j] for j in range(len(granules.conditions))]
    frame = pd.DataFrame({f"x{j}": codes.astype(str) for j, codes in enumerate(columns)})
    frame["d"] = granules.decision_codes.astype(str)
    algorithm = desbordante.fd.algorithms.HyFD()
    algorithm.load_data(table=frame)
    algorithm.execute()
    n = len(columns)
    ours = {tuple(granules.conditions.index(a) for a in one.attributes) for one in listed}
    assert {tuple(fd.lhs_indices) for fd in algorithm.get_fds() if fd.rhs_index == n} == ours


# -- limits, files, options ------------------------------------------------------------------------------------


def test_ends_at_its_time_with_a_bound() -> None:
    table = noise(200, 60)
    reduct = plar.reduce(table, "d", search="smallest", time_limit=1)
    assert reduct.bounds is not None
    assert reduct.proof is not None
    assert 1 < reduct.bounds[0] < reduct.bounds[1] == len(reduct.attributes) < 20
    assert (reduct.complete, reduct.certificate.preserved, reduct.certificate.minimal) == (False, True, True)
    assert reduct.proof.gap == reduct.bounds[1] - reduct.bounds[0]
    assert plar.verify(proof_of(reduct), table)
    assert f"no reduct has fewer than {reduct.bounds[0]}" in str(reduct)
    none = plar.reduce(table, "d", search="smallest", time_limit=1e-9)
    assert not none.complete
    assert plar.verify(proof_of(none), table)


@pytest.mark.parametrize("function", [plar.reduce, plar.reducts])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"costs": {"b0": 0}}, "The cost of 'b0' must be a whole number from 1 to 1,000,000. Got 0."),
        ({"costs": {"b0": 1.5}}, "The cost of 'b0' must be"),
        ({"costs": ["b0"]}, "must be a mapping"),
        ({"costs": {"x": 2}}, "Unknown column 'x'"),
        ({"costs": {"b0": 2, 0: 3}}, "The 'costs' parameter names 'b0' twice."),
        ({"exclude": "x"}, "Unknown column 'x'"),
        ({"exclude": "b1"}, "'b1' is in every reduct, and exclude= leaves that out."),
        ({"include": "b0", "exclude": "b0"}, "'b0' is in include= and in exclude=. Choose one."),
    ],
)
def test_refusals(function: Callable[..., Any], options: dict[str, Any], message: str) -> None:
    if function is plar.reduce:
        options = {**options, "search": "smallest"}
    with pytest.raises(plar.PlarError) as refused:
        function(XOR, "d", **options)
    assert message in str(refused.value)


def test_more_refusals() -> None:
    own = plar.Measure("own", lambda counts: counts.sum() - counts.max(), lambda n: n)
    limits: dict[str, Any]
    for limits in ({"alpha": 0.05}, {"minimal": True}, {"start": "core"}, {"tolerance": 0.1}, {"max_attributes": 2}):
        with pytest.raises(plar.ParameterError, match="goes with search='greedy'"):
            plar.reduce(XOR, "d", search="smallest", **limits)
    for limits in ({"costs": {"b0": 2}}, {"exclude": "b0"}):
        with pytest.raises(plar.ParameterError, match="goes with search='smallest'"):
            plar.reduce(XOR, "d", **limits)
    with pytest.raises(plar.ParameterError, match="must be 'greedy' or 'smallest'"):
        plar.reduce(XOR, "d", search="best")
    with pytest.raises(plar.ParameterError, match="PR, SCE, LCE and CCE"):
        plar.reduce(XOR, "d", search="smallest", measure=own)
    with pytest.raises(plar.ParameterError, match="PR, SCE, LCE and CCE"):
        plar.reducts(XOR, "d", measure=own)
    for name in ("limit", "max_size"):
        limits = {name: 0}
        with pytest.raises(plar.ParameterError, match=f"The '{name}' parameter"):
            plar.reducts(XOR, "d", **limits)
    with pytest.raises(plar.ParameterError, match="Leave search= out"):
        plar.relevant(XOR, "d", search="smallest")  # type: ignore[call-arg]
    assert plar.reduce(XOR, "d", costs={}).proof is None


def test_resumes_with_the_clauses_found(tmp_path: Path) -> None:
    table, path = noise(80, 25), tmp_path / "c.json"
    whole = plar.reduce(table, "d", search="smallest")
    seen: list[tuple[str, int, int]] = []

    def stop(phase: str, done: int, total: int) -> None:
        seen.append((phase, done, total))
        if phase == "smallest" and done:
            raise KeyboardInterrupt

    with pytest.raises(plar.Interrupted) as interrupted:
        plar.reduce(table, "d", search="smallest", checkpoint=path, progress=stop)
    some = interrupted.value.result
    assert not some.complete
    assert plar.verify(proof_of(some), table)
    kept = read_search(path)["clauses"]
    assert len(kept) > 5
    again = plar.reduce(table, "d", search="smallest", checkpoint=path)
    assert (again.attributes, again.bounds) == (whole.attributes, whole.bounds)
    after = read_search(path)["clauses"]
    assert after[: len(kept)] == kept
    assert len({tuple(attributes) for attributes, _, _ in after}) == len(after)
    with pytest.raises(plar.TableError, match="is of another run: costs"):
        plar.reduce(table, "d", search="smallest", costs={"a0": 2}, checkpoint=path)


def test_results_are_saved_with_their_bounds(tmp_path: Path) -> None:
    reduct = plar.reduce(XOR, "d", search="smallest", costs={"b0": 3})
    reduct.save(tmp_path / "r.json")
    loaded = plar.load(tmp_path / "r.json")
    assert loaded == reduct
    assert (loaded.bounds, loaded.proof) == ((4, 4), None)
    old = {name: value for name, value in plar.reduce(XOR, "d").to_dict().items() if name != "bounds"}
    (tmp_path / "old.json").write_text(json.dumps(old))
    assert plar.load(tmp_path / "old.json").bounds is None


# -- engines, selectors, the shell -----------------------------------------------------------------------------


def test_spark_finds_the_same_proof(spark: Any) -> None:
    import polars as pl

    from plar.engines import SparkEngine

    table = pl.read_csv(TIC_TAC_TOE).head(60)
    frame = spark.createDataFrame(table.rows(), table.columns)
    engine = SparkEngine(session=spark, partitions=2)
    here, there = (
        plar.reduce(data, "x_wins", search="smallest", measure="PR", costs={"top_left": 2}, engine=where)
        for data, where in ((table, "local"), (frame, engine))
    )
    assert facts(there) == facts(here)
    assert plar.verify(proof_of(here), frame, engine=engine)


@nightly
def test_spark_in_all_ways(spark: Any) -> None:
    import polars as pl

    from plar.engines import SparkEngine

    table = pl.read_csv(TIC_TAC_TOE).head(300)
    frame, engine = spark.createDataFrame(table.rows(), table.columns), SparkEngine(session=spark, partitions=3)
    for measure in MEASURES:
        options: dict[str, Any] = {"search": "smallest", "measure": measure}
        here = plar.reduce(table, "x_wins", **options)
        assert facts(plar.reduce(frame, "x_wins", engine=engine, **options)) == facts(here)
        assert facts(plar.reduce(plar.granulate(table, "x_wins"), engine=engine, **options)) == facts(here)
        assert plar.verify(proof_of(here), frame, engine=engine)
    ours, theirs = (plar.reducts(data, "x_wins", max_size=7) for data in (table, frame))
    assert list(ours) == list(theirs)
    with pytest.raises(plar.ProofError, match="the values differ"):
        plar.verify(proof_of(here), spark.createDataFrame([("x", *row[1:]) for row in table.rows()], table.columns))


def test_long_dictionaries_stay_on_the_cluster(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from plar.engines.spark import granulate

    monkeypatch.setattr(granulate, "MAX_VALUES_OF_PART", 3)
    frame = spark.createDataFrame([(3 * i, i % 2, i % 2) for i in range(40)], ["many", "few", "d"])
    engine = plar.engines.SparkEngine(session=spark, layout="columns")
    with pytest.raises(plar.TableError, match=r"those of 'many' are too many for the driver\. Leave"):
        plar.reduce(frame, "d", search="smallest", engine=engine)


def test_selectors() -> None:
    from plar.sklearn import ReductSelector

    X, y = np.array([XOR[name] for name in BITS]).T, XOR["d"]
    selector = ReductSelector(search="smallest", costs={0: 5}, exclude=[3], time_limit=60).fit(X, y)
    assert selector.get_support().tolist() == [True, True, False, False]
    assert selector.reduct_.bounds == (6, 6)
    assert selector.reduct_.proof is not None
    with pytest.raises(plar.ParameterError, match="goes with search='smallest'"):
        ReductSelector(costs={0: 5}).fit(X, y)
    with pytest.raises(plar.PlarError, match="Unknown feature to exclude 'z'"):
        ReductSelector(search="smallest", exclude="z").fit(X, y)


def test_spark_ml(spark: Any, tmp_path: Path) -> None:
    from plar.spark import ReductSelector

    frame = spark.createDataFrame(list(zip(*XOR.values(), strict=True)), list(XOR))
    stage = ReductSelector(labelCol="d", search="smallest", costs={"b0": 5}, exclude=["b3"], timeLimit="5m")
    stage.save(str(tmp_path / "stage"))
    loaded = ReductSelector.load(str(tmp_path / "stage"))
    assert loaded.getCosts() == '{"b0": 5}'
    model = loaded.fit(frame)
    assert (model.selected, model.reduct.bounds) == (("b0", "b1"), (6, 6))


def test_what_json_says(tmp_path: Path) -> None:
    from importlib.resources import files

    from jsonschema import validate

    schema = json.loads(files("plar").joinpath("result.schema.json").read_text(encoding="utf-8"))
    reduct = plar.reduce(TIC_TAC_TOE, "x_wins", search="smallest", **PROVEN)
    validate(json.loads(json.dumps(reduct.to_dict())), schema)
    validate(json.loads(json.dumps(proof_of(reduct).to_dict())), schema["$defs"]["proof"])
    validate(json.loads("\n".join(plar.reducts(TIC_TAC_TOE, "x_wins").json_lines())), schema["$defs"]["reducts"])


def plar_says(*words: str, code: int = 0) -> tuple[str, str]:
    process = run(*words)
    assert process.returncode == code, process.stderr
    return process.stdout, process.stderr


def test_the_shell(tmp_path: Path) -> None:
    table, proof = str(TIC_TAC_TOE), str(tmp_path / "p.json")
    (tmp_path / "costs.csv").write_text("name,cost\ntop_left,3\n")
    asked = ["reduce", table, "-d", "x_wins", "--search", "smallest", "--exclude", "middle_middle"]
    told, _ = plar_says(*asked, "--costs", str(tmp_path / "costs.csv"), "--costs", "top_right=2", "--proof", proof)
    assert "Cost 11. Proven: no reduct with these limits costs less." in told
    told = plar_says("verify", proof, table)[0]
    assert told.startswith("Verified: of the 9 columns considered, the set {top_left, ")
    assert told.endswith("by SCE, and costs 11; no other set without middle_middle that does so costs less than 11.\n")
    changed = tmp_path / "changed.csv"
    changed.write_text(TIC_TAC_TOE.read_text().replace("\nx", "\no", 1))
    assert plar_says("verify", proof, str(changed), code=2)[1].startswith("Error: The proof is of another table")
    for words, said in [
        (["--costs", "top_left"], "Cannot read the costs 'top_left'"),
        (["--costs", "top_left=x"], "--costs takes a name and a whole number. Got 'top_left,x'"),
        (["--costs", "nothing=2"], "Unknown column 'nothing'"),
        (["--costs", "top_left,top_right=2"], "Unknown column 'top_left,top_right'"),
    ]:
        assert said in plar_says(*asked, *words, code=2)[1]
    refused = plar_says("reduce", table, "-d", "x_wins", "--proof", proof, code=2)[1]
    assert refused.startswith("Error: --proof is for --search smallest")
    listed = json.loads(plar_says("reducts", table, "-d", "x_wins", "--json", "--limit", "4")[0])
    assert (listed["count"], listed["complete"]) == (4, False)
    told, _ = plar_says("reducts", table, "-d", "x_wins", "--include", "top_left", "--report", str(tmp_path / "r.html"))
    assert told.startswith("8 reducts by SCE")
    page = (tmp_path / "r.html").read_text()
    assert "8 reducts" in page
    assert page.count("●") == 64


def test_the_shell_refuses_a_proof_of_another_measure(tmp_path: Path) -> None:
    """SCE too, which is the default of the other commands."""
    path = tmp_path / "p.json"
    proof_of(plar.reduce(TIC_TAC_TOE, "x_wins", search="smallest", measure="PR")).save(path)
    for asked in ("SCE", "gini"):
        said = plar_says("verify", str(path), str(TIC_TAC_TOE), "--measure", asked, code=2)[1]
        assert said == f"Error: The proof is of the measure PR, not of {asked!r}. Leave --measure out.\n"
    assert plar_says("verify", str(path), str(TIC_TAC_TOE), "-m", "pr")[0].startswith("Verified")
    assert plar_says("verify", str(path), str(TIC_TAC_TOE))[0].startswith("Verified")
