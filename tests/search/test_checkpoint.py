"""Runs that are killed go on where they were, and end as if nothing had been."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import plar
from plar.search.checkpoint import Journal
from support import oracle
from support.checkpoints import Counting, begun, table
from support.comparing import all_facts


@pytest.mark.parametrize("measure", oracle.MEASURES)
def test_goes_on_after_any_step(tmp_path: Path, measure: str) -> None:
    options: dict[str, Any] = {"measure": measure, "include": ["c2"], "minimal": True}
    whole = plar.reduce(table(), "d", **options)
    total = len(whole.steps)
    assert total >= 3
    for done in range(total):
        path = tmp_path / f"{done}.json"
        begun(path, done, **options)
        engine = Counting()
        new: list[plar.Step] = []
        told: list[tuple[str, int, int]] = []
        found = plar.reduce(
            table(),
            "d",
            checkpoint=path,
            engine=engine,
            on_step=new.append,
            progress=lambda *now, told=told: told.append(now),
            **options,
        )
        assert all_facts(found) == all_facts(whole)
        assert (engine.core, engine.passes) == (0, total - done)
        assert [step.attribute for step in new] == [step.attribute for step in whole.steps[done:]]
        assert ("resume", done, 0) in told
    assert {file.suffix for file in tmp_path.iterdir()} == {".json"}


def test_a_finished_run_is_not_repeated(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    whole = plar.reduce(table(), "d", checkpoint=path)
    before, engine = path.read_bytes(), Counting()
    assert all_facts(plar.reduce(table(), "d", checkpoint=path, engine=engine)) == all_facts(whole)
    assert (engine.core, engine.passes) == (0, 0)
    assert path.read_bytes() == before


def test_a_table_without_conditions_that_matter(tmp_path: Path) -> None:
    for data in ({"a": [1, 1], "d": [0, 0]}, {"a": [1, 2], "d": [0, 1]}):
        path = tmp_path / f"{data['d']}.json"
        first = plar.reduce(data, "d", checkpoint=path)
        assert (
            all_facts(plar.reduce(data, "d", checkpoint=path)) == all_facts(first) == all_facts(plar.reduce(data, "d"))
        )


def test_rows_codes_and_format_make_no_difference(tmp_path: Path) -> None:
    path, frame = tmp_path / "c.json", table()
    begun(path, 2, frame)
    text = path.read_bytes()
    mixed = frame.sample(fraction=1, shuffle=True, seed=1)
    frame.fill_null("").write_csv(tmp_path / "t.csv")
    mixed.write_parquet(tmp_path / "t.parquet")
    plar.granulate(mixed, "d").save(tmp_path / "g.parquet")
    weighted = frame.group_by(pl.all()).len("n")
    same: list[tuple[Any, dict[str, Any]]] = [
        (mixed, {}),
        (tmp_path / "t.csv", {}),
        (tmp_path / "t.parquet", {}),
        (tmp_path / "g.parquet", {}),
        (mixed.to_pandas(), {}),
        (weighted, {"weights": "n"}),
    ]
    whole = all_facts(plar.reduce(frame, "d"))
    for data, options in same:
        path.write_bytes(text)
        engine = Counting()
        found = all_facts(plar.reduce(data, "d", checkpoint=path, engine=engine, **options))
        assert {**found, "source": None, "settings": whole["settings"]} == whole
        assert (engine.core, engine.passes) == (0, len(whole["steps"]) - 2)


def test_values_equal_in_python_are_equal_here() -> None:
    def mark(values: list[Any]) -> Any:
        return plar.granulate({"a": values, "d": values}, "d", na=()).fingerprint()

    assert mark([1, "a", None]) == mark([1.0, None, "a"]) == mark([True, "a", float("nan")])
    different = [mark(values) for values in ([1, 2], ["1", "2"], [1, None], [1, ""], [1, 10**400], [1, float("inf")])]
    assert len(set(different)) == len(different)


def changed(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(c3=pl.when(pl.int_range(pl.len()) == 7).then(pl.lit("new")).otherwise(pl.col("c3")))


@pytest.mark.parametrize(
    ("change", "options", "said"),
    [
        (changed, {}, "the values of the table"),
        (lambda f: f.head(-1), {}, "objects 400 there, 399 now"),
        (lambda f: f.drop("c3"), {}, "the column 'c3' is missing now"),
        (lambda f: f.rename({"c3": "x"}), {}, "the column 'c3' is missing now; the column 'x' is new"),
        (lambda f: f.select(*reversed(f.columns)), {}, "the conditions are in another order"),
        (lambda f: f.rename({"d": "e"}), {"decision": "e"}, r"decision \['d'\] there, \['e'\] now"),
        (lambda f: f, {"measure": "PR"}, "measure 'SCE' there, 'PR' now"),
        (lambda f: f, {"include": "c5"}, r"include \[\] there, \['c5'\] now"),
        (lambda f: f, {"epsilon": 0.5}, "epsilon 0.0 there, 0.5 now"),
        (lambda f: f, {"tolerance": 0.1}, "tolerance 0.0 there, 0.1 now"),
        (lambda f: f, {"max_attributes": 4}, "max_attributes None there, 4 now"),
        (lambda f: f, {"minimal": True}, "minimal False there, True now"),
    ],
)
def test_another_run_is_refused(tmp_path: Path, change: Any, options: dict[str, Any], said: str) -> None:
    path = tmp_path / "c.json"
    begun(path, 1)
    before = path.read_bytes()
    with pytest.raises(plar.TableError, match=f"is of another run: {said}. Name another file") as refused:
        plar.reduce(change(table()), checkpoint=path, **{"decision": "d", **options})
    assert "\n" not in str(refused.value)
    assert path.read_bytes() == before


def test_other_cuts_are_refused(tmp_path: Path) -> None:
    data = {"a": list(range(30, 50)), "b": [i % 7 for i in range(20)], "d": [i // 7 % 2 for i in range(20)]}
    path = tmp_path / "c.json"
    first = plar.reduce(data, "d", bins="width:4", checkpoint=path)
    assert all_facts(plar.reduce(data, "d", bins="width:4", checkpoint=path)) == all_facts(first)
    with pytest.raises(plar.TableError, match="the cuts of 'a'"):
        plar.reduce(data, "d", bins="quantile:3", checkpoint=path)


def test_limits_threads_and_engine_may_change(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    begun(path, 1)
    found = plar.reduce(table(), "d", checkpoint=path, n_jobs=2, time_limit="1h", memory_limit="8GB")
    assert all_facts(found) == all_facts(plar.reduce(table(), "d"))


def _own(weight: int) -> plar.Measure:
    def theta(counts: Any) -> Any:
        return weight * (counts.sum() - counts.max())

    return plar.Measure("own", theta, normaliser=lambda n: n, drop_pure=True)


def test_another_theta_under_the_same_name_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    begun(path, 1, measure=_own(1))
    with pytest.raises(plar.TableError, match=r"does not fit: Θ is 0\.\d+ there, 0\.\d+ now"):
        plar.reduce(table(), "d", checkpoint=path, measure=_own(2))
    assert all_facts(plar.reduce(table(), "d", checkpoint=path, measure=_own(1))) == all_facts(
        plar.reduce(table(), "d", measure=_own(1))
    )


def test_damage_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    begun(path, 2)
    good, pick = path.read_bytes(), random.Random(5)
    state, checksum = json.loads(good)["state"], json.loads(good)["checksum"]

    def refused(text: bytes, said: str = "is damaged, or no checkpoint. Name another file, or delete") -> None:
        path.write_bytes(text)
        with pytest.raises(plar.TableError, match=said):
            Journal(path)

    for length in (0, 1, len(good) // 2, len(good) - 2):
        refused(good[:length])
    for text in (b"[]", b"{}", b"null", b"\xff\xfe", b'{"plar_checkpoint":4,"checksum":"","state":[]}', b"[" * 100_000):
        refused(text)
    refused(good.replace(b'"plar_checkpoint":4', b'"plar_checkpoint":5'), "has the version 5, this plar knows 4")
    for _ in range(300):
        place = pick.randrange(len(good))
        bad = bytearray(good)
        bad[place] ^= 1 << pick.randrange(8)
        path.write_bytes(bad)
        try:
            read = json.loads(bytes(bad))["state"]
        except (ValueError, KeyError):
            read = None
        if read == state and json.loads(bytes(bad)).get("checksum") == checksum:
            continue  # such as e for E in a number: it says the same
        refused(bytes(bad), "elete it to start over")


def test_a_place_that_cannot_be_written_is_told_at_once(tmp_path: Path) -> None:
    engine = Counting()
    for path, said in [
        (tmp_path, "is a directory"),
        (tmp_path / "no" / "c.json", "there is no folder"),
        (tmp_path / ("x" * 240), "File name too long"),
    ]:
        with pytest.raises(plar.TableError, match=said):
            plar.reduce(table(), "d", checkpoint=path, engine=engine)
    assert engine.core == 0


def test_other_engines_go_on(tmp_path: Path, engine: Any) -> None:
    path = tmp_path / "c.json"
    begun(path, 2)
    found = plar.reduce(table(), "d", checkpoint=path, engine=engine)
    assert all_facts(found) == all_facts(plar.reduce(table(), "d"))


def test_begun_here_ended_on_spark_and_back(tmp_path: Path, spark: Any) -> None:
    from plar.engines import SparkEngine

    path, frame = tmp_path / "c.json", table(100, 12)
    whole = plar.reduce(frame, "d")
    begun(path, len(whole.steps) - 1, frame)
    rows = spark.createDataFrame(frame.rows(), frame.columns).repartition(3)
    new: list[plar.Step] = []
    engine = SparkEngine(session=spark, layout="rows")
    found = plar.reduce(rows, "d", checkpoint=path, engine=engine, on_step=new.append)
    assert all_facts(found) == all_facts(whole)
    assert len(new) == 1
    # granules of this machine, shipped out; what Spark has written ends here
    with SparkEngine(session=spark, layout="columns") as other:
        assert all_facts(plar.reduce(frame, "d", checkpoint=path, engine=other)) == all_facts(whole)
    assert all_facts(plar.reduce(frame, "d", checkpoint=path)) == all_facts(whole)


def test_granules_on_spark_have_the_fingerprint_of_their_table(tmp_path: Path, spark: Any) -> None:
    from plar.engines import SparkEngine

    frame, engine = table(100, 12), SparkEngine(session=spark, layout="columns")
    granules: Any = plar.granulate(spark.createDataFrame(frame.rows(), frame.columns), "d", engine=engine)
    assert granules.fingerprint() == plar.granulate(frame, "d").fingerprint()
    with pytest.raises(plar.TableError, match="Pass the table itself with its conditions"):
        granules.coarsen(["c1", "c4"]).fingerprint()
    granules.unpersist()


# -- killed for real ---------------------------------------------------------------------------------------

CHILD = """
import json, os, pathlib, signal, sys, threading, time
import plar
from plar.engines import Engine, LocalEngine

table, checkpoint, log, result, die_at, notes_left, then_after = sys.argv[1:]
notes_left = int(notes_left)

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def note(*words):
    global notes_left
    with open(log, "a") as file:
        print(*words, file=file)
    notes_left -= 1
    if notes_left == 0:
        threading.Timer(float(then_after), die).start()

class Slow(Engine):
    name = "local"
    def open(self, granules, measure, watch=None):
        evaluation = LocalEngine(n_jobs=1).open(granules, measure)
        leave_one_out, with_each = evaluation.leave_one_out, evaluation.with_each
        def core(attributes=None):
            if attributes is None:
                note("core")
            time.sleep(0.02)
            return leave_one_out(attributes)
        def step(candidates):
            note("step", len(granules.conditions) - len(candidates))
            time.sleep(0.02)
            return with_each(candidates)
        evaluation.leave_one_out, evaluation.with_each = core, step
        return evaluation

writes, replace = 0, pathlib.Path.replace
def dying(self, target):
    global writes
    writes += str(target) == checkpoint
    if str(writes) == die_at:
        die()
    return replace(self, target)
pathlib.Path.replace = dying

note("run")
plar.reduce(table, "d", checkpoint=checkpoint, engine=Slow()).save(result)
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("how", ["at random", "before the rename"])
def test_kill_9(tmp_path: Path, how: str) -> None:
    frame = table(300, 12)
    frame.write_csv(tmp_path / "t.csv")
    names = [str(tmp_path / name) for name in ("t.csv", "c.json", "log", "r.json")]
    checkpoint, log, result = (Path(name) for name in names[1:])
    pick = random.Random(11)
    whole = plar.reduce(tmp_path / "t.csv", "d")
    known: list[int] = []  # steps in the checkpoint when each run began; -1: not even the core
    killed = 0

    for _ in range(40):
        state = json.loads(checkpoint.read_bytes())["state"][0] if checkpoint.exists() else None
        known.append(-1 if state is None else len(state["steps"]))
        # the third write of a run dies: so each gets two steps further
        die_at = "3" if how == "before the rename" else "never"
        # or some time after what it has noted, of which "run" is the first
        notes, then_after = (pick.randrange(2, 7), pick.random() * 0.05) if how == "at random" else (-1, 0)
        words = [*names, die_at, str(notes), str(then_after if killed else 0)]
        code = subprocess.run([sys.executable, "-c", CHILD, *words], check=False).returncode
        if code == 0:
            break
        assert code == -signal.SIGKILL
        killed += 1
    assert killed >= (2 if how == "before the rename" else 1)
    assert all_facts(plar.load(result)) == all_facts(whole)
    runs = [part.splitlines()[1:] for part in log.read_text().split("run")[1:]]
    assert len(runs) == len(known)
    for before, done in zip(known, runs, strict=True):
        if before < 0:
            continue
        # neither the core nor a finished step is done again
        assert "core" not in done
        assert all(int(line.split()[1]) >= before + len(whole.core) for line in done)
    # what a killed run was writing stays beside its target, under a hidden name of its own
    left = sorted(file.name for file in tmp_path.iterdir() if file.suffix != ".part")
    assert left == ["c.json", "log", "r.json", "t.csv"]
