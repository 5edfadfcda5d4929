"""Runs that are killed go on where they were, and end as if nothing had been."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import plar
from plar.errors import PlarError
from plar.search.checkpoint import Checkpoint
from support import oracle
from support.checkpoints import HEADER, Counting, begun, read_records, sealed, table, write_records
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
        calls: list[tuple[str, int, int]] = []
        reduct = plar.reduce(
            table(),
            "d",
            checkpoint=path,
            engine=engine,
            on_step=new.append,
            progress=lambda *now, calls=calls: calls.append(now),
            **options,
        )
        assert all_facts(reduct) == all_facts(whole)
        assert (engine.core, engine.passes) == (0, total - done)
        assert [step.attribute for step in new] == [step.attribute for step in whole.steps[done:]]
        assert ("resume", done, 0) in calls
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
        reduct = all_facts(plar.reduce(data, "d", checkpoint=path, engine=engine, **options))
        assert {**reduct, "source": None, "settings": whole["settings"]} == whole
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
    reduct = plar.reduce(table(), "d", checkpoint=path, n_jobs=2, time_limit="1h", memory_limit="8GB")
    assert all_facts(reduct) == all_facts(plar.reduce(table(), "d"))


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


# -- cut off and damaged -----------------------------------------------------------------------------------

#: all bits are needed, and all but the first have a copy, so that they take a step each
BITS = {f"a{j}": [i >> j & 1 for i in range(16)] for j in range(4)}
STEPPED: dict[str, Any] = {**BITS, **{f"b{j}": BITS[f"a{j}"] for j in (1, 2, 3)}, "d": [i % 7 % 3 for i in range(16)]}
#: the copies are a layer of their own
LAYERED: dict[str, Any] = {
    **{f"{name}{j}": [i >> j & 1 for i in range(16)] * 8 for name in "ab" for j in range(2)},
    "d": [i % 4 for i in range(16)] * 8,
}


def reduced(path: Path | None) -> dict[str, Any]:
    return all_facts(plar.reduce(STEPPED, "d", checkpoint=path))


def layered(path: Path | None) -> list[dict[str, Any]]:
    return [all_facts(layer) for layer in plar.relevant(LAYERED, "d", checkpoint=path).layers]


def smallest(path: Path | None) -> Any:
    reduct = plar.reduce(STEPPED, "d", search="smallest", checkpoint=path)
    return reduct.attributes, reduct.bounds, reduct.proof


@dataclass(frozen=True)
class Finished:
    """A search, its result, and the checkpoint that it leaves behind."""

    run: Callable[[Path | None], Any]
    result: Any
    text: bytes
    path: Path

    def resumed(self, text: bytes) -> Any:
        """The result with another checkpoint."""
        self.path.write_bytes(text)
        return self.run(self.path)


@pytest.fixture(scope="module", params=[reduced, layered, smallest])
def finished(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    path = tmp_path_factory.mktemp("finished") / "c.checkpoint"
    result = request.param(path)
    assert result == request.param(None)
    return Finished(request.param, result, path.read_bytes(), path)


def kinds(path: Path) -> list[str]:
    """What each line is; clauses count once, since the time decides over how many lines they are spread."""
    all_kinds = [kind for record in read_records(path) for kind in record]
    return [kind for i, kind in enumerate(all_kinds) if kind != "clauses" or "clauses" not in all_kinds[:i]]


def test_what_is_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "c.checkpoint"
    for run, expected in [
        (reduced, ["search", "core", "step", "step", "step"]),
        (layered, ["search", "core", "step", "step", "search", "core", "step", "step"]),
        (smallest, ["search", "core", "clauses"]),
    ]:
        run(path)
        assert kinds(path) == expected
        path.unlink()


@given(st.data())
def test_cut_off_anywhere(finished: Finished, data: st.DataObject) -> None:
    """What is gone is found again; the whole lines stay, and the file is whole afterwards."""
    length = data.draw(st.integers(len(HEADER), len(finished.text)))
    assert finished.resumed(finished.text[:length]) == finished.result
    end_of_whole_lines = finished.text.rfind(b"\n", 0, length) + 1
    assert finished.path.read_bytes().startswith(finished.text[:end_of_whole_lines])
    expected = kinds(finished.path)
    finished.path.write_bytes(finished.text)
    assert kinds(finished.path) == expected


@given(st.data())
def test_any_byte_may_be_another(finished: Finished, data: st.DataObject) -> None:
    """Either the search ends with the same result, or the file is refused, and stays as it is."""
    place = data.draw(st.integers(0, len(finished.text) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != finished.text[place]))
    damaged = finished.text[:place] + bytes([byte]) + finished.text[place + 1 :]
    # the last line, or what it becomes if it is joined with the one before
    may_resume = finished.text.count(b"\n", place) <= 2
    finished.path.write_bytes(damaged)
    if may_resume:
        with suppress(plar.TableError):
            assert finished.run(finished.path) == finished.result
            return
    with pytest.raises(plar.TableError, match="elete it to start over") as caught:
        finished.run(finished.path)
    assert "\n" not in str(caught.value)
    assert finished.path.read_bytes() == damaged


def refused(
    path: Path, text: bytes, said: str = "is damaged, or no checkpoint. Name another file, or delete it"
) -> None:
    path.write_bytes(text)
    with pytest.raises(plar.TableError, match=f"{said} to start over") as caught:
        Checkpoint(path)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == text


def test_only_the_last_line_may_be_damaged(finished: Finished) -> None:
    lines = finished.text.splitlines(keepends=True)
    for number in range(len(lines)):
        bad = lines[number].replace(b":", b";", 1)
        text = b"".join([*lines[:number], bad, *lines[number + 1 :]])
        if number == len(lines) - 1:
            assert finished.resumed(text) == finished.result
        else:
            refused(finished.path, text)
            refused(finished.path, b"".join([*lines[:number], bad, b"{"]))
    # lines that are left out, but for those at the end; or that come twice, or in another order
    for number in range(1, len(lines) - 1):
        if lines[number][47:].startswith(b'"core"'):
            refused(finished.path, b"".join([*lines[:number], *lines[number + 1 :]]))
            refused(finished.path, b"".join([*lines[:number], lines[number], *lines[number:]]))
            refused(finished.path, b"".join([*lines[: number - 1], lines[number], lines[number - 1]]))


def test_what_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.checkpoint"
    for text in (b"", b"a,b,d\n1,2,3\n", b"[]", b"{}", b"null\n", b"\xff\xfe", b"[" * 100_000, b"\n" + HEADER):
        refused(path, text)
    for text in (HEADER[:-1], HEADER[:5], HEADER.replace(b":", b": "), HEADER.replace(b"}", b',"x":1}')):
        refused(path, text)
    records: list[Any] = [{"x": 1}, {}, {"step": {}}, {"search": {}}, {"core": {"theta_all": 1, "theta_without": []}}]
    for record in records:
        refused(path, HEADER + sealed(record))


@pytest.mark.parametrize("version", [1, 4, 6, 12])
def test_other_versions_are_refused(tmp_path: Path, version: int) -> None:
    """Until version 4 the file was one JSON object."""
    for end in (b"}\n", b',"checksum":"","state":[]}\n', b',"state":['):
        text = b'{"plar_checkpoint":%d' % version + end
        refused(tmp_path / "c.checkpoint", text, f"has the version {version}, this plar knows 5. Delete it")


def test_a_step_after_which_the_file_goes_on_with_another_search(tmp_path: Path) -> None:
    """A run that ends in the first search cuts off what follows as soon as it finds something new."""
    path = tmp_path / "c.checkpoint"
    layered(path)
    records = read_records(path)
    write_records(path, [*records[:3], *records[4:]])
    first = plar.reduce(LAYERED, "d", alpha=0.05, checkpoint=path)
    assert len(first.steps) == 2
    assert kinds(path) == ["search", "core", "step", "step"]
    assert layered(path) == layered(None)


@contextmanager
def _files_up_to(n_bytes: int) -> Iterator[None]:
    """No file may grow beyond a size: the system then answers as if the disk were full."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.skipif(os.name == "nt", reason="Windows does not limit the size of files")
def test_a_full_disk_leaves_what_was_there(finished: Finished) -> None:
    lines = finished.text.splitlines(keepends=True)
    for number in range(1, len(lines)):
        before = b"".join(lines[:number])
        finished.path.write_bytes(before)
        with _files_up_to(len(before) + 20), pytest.raises(OSError, match="Cannot write") as caught:
            finished.run(finished.path)
        assert not isinstance(caught.value, PlarError)
        assert caught.value.filename == str(finished.path)
        assert finished.path.read_bytes().startswith(before)
        assert finished.run(finished.path) == finished.result
    finished.path.unlink()
    with _files_up_to(10), pytest.raises(OSError, match="Cannot write"):
        finished.run(finished.path)
    assert not finished.path.exists()


def test_a_file_that_is_gone_in_the_middle(tmp_path: Path) -> None:
    path = tmp_path / "c.checkpoint"
    with pytest.raises(plar.TableError, match=r"Cannot write .* No such file or directory"):
        plar.reduce(STEPPED, "d", checkpoint=path, on_step=lambda step: path.unlink())


def test_two_runs_with_one_file(tmp_path: Path) -> None:
    """The one that finds lines that are not its own ends; the other one, and the file, go on as if it had not been."""
    path = tmp_path / "c.checkpoint"
    others: list[plar.Reduct] = []

    def run_another(step: plar.Step) -> None:
        if not others:
            others.append(plar.reduce(STEPPED, "d", checkpoint=path))

    with pytest.raises(plar.TableError, match=r"was changed by somebody else: does another run use it\?"):
        plar.reduce(STEPPED, "d", checkpoint=path, on_step=run_another)
    engine = Counting()
    again = plar.reduce(STEPPED, "d", checkpoint=path, engine=engine)
    assert all_facts(again) == all_facts(others[0])
    assert (engine.core, engine.passes) == (0, 0)


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
    reduct = plar.reduce(table(), "d", checkpoint=path, engine=engine)
    assert all_facts(reduct) == all_facts(plar.reduce(table(), "d"))


def test_begun_here_ended_on_spark_and_back(tmp_path: Path, spark: Any) -> None:
    from plar.engines import SparkEngine

    path, frame = tmp_path / "c.json", table(100, 12)
    whole = plar.reduce(frame, "d")
    begun(path, len(whole.steps) - 1, frame)
    rows = spark.createDataFrame(frame.rows(), frame.columns).repartition(3)
    new: list[plar.Step] = []
    engine = SparkEngine(session=spark, layout="rows")
    reduct = plar.reduce(rows, "d", checkpoint=path, engine=engine, on_step=new.append)
    assert all_facts(reduct) == all_facts(whole)
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
import os, signal, sys, threading, time
import plar
import plar.search.checkpoint_file
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

lines, write_from = 0, plar.search.checkpoint_file.write_from
def dying(path, position, text, size):
    global lines
    lines += 1
    if str(lines) == die_at:
        write_from(path, position, text[: len(text) // 2], size)
        die()
    return write_from(path, position, text, size)
plar.search.checkpoint_file.write_from = dying

note("run")
plar.reduce(table, "d", checkpoint=checkpoint, engine=Slow()).save(result)
"""


def _whole_steps(path: Path) -> int:
    """How many steps can be read; -1: not even the core."""
    if not path.exists():
        return -1
    checkpoint = path.with_name("copy")
    checkpoint.write_bytes(path.read_bytes()[: path.read_bytes().rfind(b"\n") + 1])
    lines = kinds(checkpoint)
    checkpoint.unlink()
    return lines.count("step") if "core" in lines else -1


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("moment", ["at random", "in a line"])
def test_kill_9(tmp_path: Path, moment: str) -> None:
    frame = table(300, 12)
    frame.write_csv(tmp_path / "t.csv")
    names = [str(tmp_path / name) for name in ("t.csv", "c.json", "log", "r.json")]
    checkpoint, log, result = (Path(name) for name in names[1:])
    pick = random.Random(11)
    whole = plar.reduce(tmp_path / "t.csv", "d")
    known: list[int] = []  # steps in the checkpoint when each run began; -1: not even the core
    killed = 0

    for _ in range(40):
        known.append(_whole_steps(checkpoint))
        # the third line of a run is its last: so each gets two lines further
        die_at = "3" if moment == "in a line" else "never"
        # or some time after what it has noted, of which "run" is the first
        notes, then_after = (pick.randrange(2, 7), pick.random() * 0.05) if moment == "at random" else (-1, 0)
        words = [*names, die_at, str(notes), str(then_after if killed else 0)]
        code = subprocess.run([sys.executable, "-c", CHILD, *words], check=False).returncode
        if code == 0:
            break
        assert code == -signal.SIGKILL
        killed += 1
    assert killed >= (2 if moment == "in a line" else 1)
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
