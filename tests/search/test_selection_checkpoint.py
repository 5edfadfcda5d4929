"""A run of `plar.select` that is killed goes on where it was, and ends as if nothing had been."""

from __future__ import annotations

import random
from base64 import b64encode
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import plar
from plar.chance.association import Association
from plar.engines import Engine, LocalEngine
from plar.engines.stratification import LocalStratification
from plar.uncertainty.ranks import Ranks
from support.checkpoints import HEADER, read_records, write_records
from support.selection import facts

ALPHA = 0.3


def table(n: int = 300) -> dict[str, list[int]]:
    """Several columns are selected in both parts, and a test by draws rejects one."""
    pick = random.Random(3)
    columns = {f"a{j}": [pick.randrange(3) for _ in range(n)] for j in range(4)}
    for j in range(4):
        columns[f"b{j}"] = [v if pick.random() < 0.6 else pick.randrange(3) for v in columns[f"a{j}"]]
    columns["rare"] = [int(i % 97 == 0) for i in range(n)]
    columns["noise"] = [pick.randrange(4) for _ in range(n)]
    columns["constant"] = [0] * n
    told = [sum(columns[f"a{j}"][i] for j in range(4)) for i in range(n)]
    columns["t"] = [t // 2 if pick.random() < 0.9 else 5 for t in told]
    return columns


def select(path: Path | None, data: Any = None, **options: Any) -> plar.Selection:
    everything = {"alpha": ALPHA, "include": ["b3"], **options}
    return plar.select(table() if data is None else data, "t", checkpoint=path, **everything)


class PowerFailure(Exception):
    """Nobody catches it."""


class Counting(Engine):
    """The local engine, which counts its passes over the candidates, and fails at one of them."""

    name = "local"

    def __init__(self, fail_at: int | None = None, error: type[BaseException] = PowerFailure) -> None:
        self.passes = 0
        self.fail_at = fail_at
        self.error = error

    def open(self, granules: Any, measure: Any, watch: Any = None) -> Any:
        return LocalEngine().open(granules, measure, watch)

    def stratify(self, granules: Any, ranks: Ranks | None = None) -> CountedStratification:
        return CountedStratification(granules, ranks, self)


class CountedStratification(LocalStratification):
    """See `Counting`."""

    def __init__(self, granules: Any, ranks: Ranks | None, engine: Counting) -> None:
        super().__init__(granules, ranks)
        self._engine = engine

    def associations(self, candidates: Sequence[int], within: Sequence[int] | None = None) -> list[Association]:
        if self._engine.passes == self._engine.fail_at:
            raise self._engine.error
        self._engine.passes += 1
        return super().associations(candidates, within)


def n_passes() -> int:
    engine = Counting()
    select(None, engine=engine)
    return engine.passes


@dataclass(frozen=True)
class Finished:
    """A whole run, and its checkpoint."""

    facts: dict[str, Any]
    text: bytes
    path: Path

    def resumed(self, text: bytes, **options: Any) -> dict[str, Any]:
        """What a run says that goes on from another text."""
        self.path.write_bytes(text)
        return facts(select(self.path, **options))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    path = tmp_path_factory.mktemp("finished") / "c.checkpoint"
    selection = select(path)
    assert facts(selection) == facts(select(None))
    assert len([step for step in selection.steps if len(step.given) > 1]) >= 2  # of the first part
    assert len(selection.steps) >= 4
    return Finished(facts(selection), path.read_bytes(), path)


def kinds(path: Path) -> list[str]:
    return [kind for record in read_records(path) for kind in record]


def test_what_is_in_the_file(finished: Finished) -> None:
    finished.path.write_bytes(finished.text)
    lines = kinds(finished.path)
    assert lines[:2] == ["search", "pass"]
    assert lines.count("pass") == n_passes()
    assert lines.count("step") == len(finished.facts["steps"])
    assert set(lines) == {"search", "pass", "test", "step"}


def test_goes_on_after_any_pass(tmp_path: Path, finished: Finished) -> None:
    total = n_passes()
    for done in range(total):
        path = tmp_path / f"{done}.checkpoint"
        before: list[Any] = []
        with pytest.raises(PowerFailure):
            select(path, engine=Counting(done), on_step=before.append)
        engine = Counting()
        after: list[Any] = []
        calls: list[tuple[str, int, int]] = []
        selection = select(
            path, engine=engine, on_step=after.append, progress=lambda *now, calls=calls: calls.append(now)
        )
        assert facts(selection) == finished.facts
        assert engine.passes == total - done
        # each step is told once, with the seconds that it took then
        assert (*before, *after) == selection.steps
        assert (("resume", len(before), 0) in calls) == (done > 0)


def test_a_target_of_numbers(tmp_path: Path) -> None:
    columns = table()
    pick = random.Random(8)
    numbers = {**columns, "t": [sum(columns[f"a{j}"][i] for j in range(4)) + pick.random() for i in range(300)]}
    whole = select(None, numbers)
    assert whole.target_type == "numbers"
    assert len(whole.steps) >= 2
    path = tmp_path / "c.checkpoint"
    for fail_at in (1, 2):
        with pytest.raises(PowerFailure):
            select(path, numbers, engine=Counting(fail_at))
        assert facts(select(path, numbers)) == facts(whole)
        path.unlink()


def test_a_finished_run_is_not_repeated(finished: Finished) -> None:
    engine = Counting()
    assert finished.resumed(finished.text, engine=engine) == finished.facts
    assert engine.passes == 0
    assert finished.path.read_bytes() == finished.text


def test_after_ctrl_c_and_after_the_time_limit(tmp_path: Path, finished: Finished) -> None:
    def stop(step: Any) -> None:
        raise KeyboardInterrupt

    path = tmp_path / "c.checkpoint"
    for n_steps in range(1, 4):
        with pytest.raises(plar.Interrupted) as interrupted:
            select(path, on_step=stop)
        selection = interrupted.value.result
        assert isinstance(selection, plar.Selection)
        assert [step.column for step in selection.steps] == [
            step["column"] for step in finished.facts["steps"][:n_steps]
        ]
    # no time is left: what was done before is there all the same
    late = select(path, time_limit=1e-9)
    assert not late.complete
    assert facts(late)["steps"] == finished.facts["steps"][:3]
    assert facts(select(path)) == finished.facts


def test_ctrl_c_in_any_pass(finished: Finished) -> None:
    """The columns so far; the shares alone are known after the first pass."""
    n_columns = []
    for fail_at in range(n_passes()):
        with pytest.raises(plar.Interrupted) as interrupted:
            select(None, engine=Counting(fail_at, KeyboardInterrupt))
        selection = interrupted.value.result
        assert isinstance(selection, plar.Selection)
        assert not selection.complete
        said = facts(selection)
        assert said["steps"] == finished.facts["steps"][: len(said["steps"])]
        assert said["columns"] == finished.facts["columns"][: 1 + len(said["steps"])]
        assert len(selection.alone) == (len(finished.facts["alone"]) if fail_at else 0)
        n_columns.append(len(said["columns"]))
    assert n_columns == sorted(n_columns)
    assert n_columns[-1] == len(finished.facts["columns"])


def test_rows_codes_and_format_make_no_difference(tmp_path: Path, finished: Finished) -> None:
    lines = finished.text.splitlines(keepends=True)
    begun = b"".join(lines[: len(lines) // 2])
    frame = pl.DataFrame(table())
    mixed = frame.sample(fraction=1, shuffle=True, seed=1)
    mixed.write_parquet(tmp_path / "t.parquet")
    for data in (mixed, tmp_path / "t.parquet", mixed.to_pandas()):
        engine = Counting()
        assert finished.resumed(begun, data=data, engine=engine) == finished.facts
        assert 0 < engine.passes < n_passes()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"alpha": 0.2}, r"alpha 0.3 there, 0.2 now"),
        ({"given": "all"}, "given 'each' there, 'all' now"),
        ({"max_columns": 4}, "max_columns None there, 4 now"),
        ({"include": ["b2"]}, r"include \['b3'\] there, \['b2'\] now"),
        ({"exclude": ["noise"]}, r"exclude \[\] there, \['noise'\] now; left_out .*"),
        ({"keep": ["noise"]}, r"keep \[\] there, \['noise'\] now"),
        ({"target_type": "classes"}, "target_type 'auto' there, 'classes' now"),
        ({"data": table(299)}, "objects 300 there, 299 now"),
        ({"data": {**table(), "a1": table()["a2"]}}, "the values of the table"),
        ({"data": {**table(), "more": table()["a2"]}}, "the column 'more' is new"),
    ],
)
def test_another_run_is_refused(finished: Finished, options: dict[str, Any], said: str) -> None:
    with pytest.raises(plar.TableError, match=f"is of another run: {said}. Name another file") as refused:
        finished.resumed(finished.text, **options)
    assert "\n" not in str(refused.value)
    assert finished.path.read_bytes() == finished.text


def test_the_file_of_another_search_is_refused(tmp_path: Path, finished: Finished) -> None:
    path = tmp_path / "c.checkpoint"
    plar.reduce(table(), "t", bins="auto", checkpoint=path)
    with pytest.raises(plar.TableError, match=r"is of another run: search 'greedy' there, 'select' now. Name"):
        select(path)
    finished.path.write_bytes(finished.text)
    with pytest.raises(plar.TableError, match=r"is of another run: search 'select' there, 'greedy' now. Name"):
        plar.reduce(table(), "t", bins="auto", checkpoint=finished.path)


@given(st.data())
def test_cut_off_anywhere(finished: Finished, data: st.DataObject) -> None:
    """What is gone is found again; the whole lines stay, and the file is whole afterwards."""
    length = data.draw(st.integers(len(HEADER), len(finished.text)))
    assert finished.resumed(finished.text[:length]) == finished.facts
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
    with suppress(plar.TableError):
        assert finished.resumed(damaged) == finished.facts
        assert finished.text.count(b"\n", place) <= 2  # the last line, or what it becomes if it is joined with another
        return
    assert finished.path.read_bytes() == damaged


def forgeries(records: list[dict[str, Any]]) -> list[tuple[str, list[Any]]]:
    """Files with the right checksums that no search has written."""
    places = {kind: [i for i, record in enumerate(records) if kind in record] for kind in ("pass", "test", "step")}
    forged: list[tuple[str, list[Any]]] = []

    def add(what: str, kind: str, **changes: Any) -> None:
        i = places[kind][1]
        forged.append((what, [*records[:i], {kind: {**records[i][kind], **changes}}, *records[i + 1 :]]))

    numbers = np.ones((3, 3))
    for what, bad in (("too few", numbers), ("infinite", numbers * np.inf), ("negative", -numbers)):
        add(what, "pass", measured=b64encode(bad.astype("<f8").tobytes()).decode())
    add("no base64", "pass", measured="?" + records[places["pass"][1]]["pass"]["measured"])
    add("no text", "pass", measured=1)
    add("other classes", "pass", given=[0])
    add("another candidate", "test", candidate=9)
    add("other classes of a test", "test", given=[5, 1])
    add("a negative p-value", "test", adjusted=-0.5)
    add("another column", "step", column="noise")
    add("another share", "step", share=0.5)
    add("negative seconds", "step", seconds=-1.0)
    forged += [(f"without the second {kind}", records[: i[1]] + records[i[1] + 1 :]) for kind, i in places.items()]
    for kind, i in places.items():
        forged.append((f"the second {kind} twice", [*records[: i[1]], records[i[1]], *records[i[1] :]]))
    forged.append(("a line more", [*records, records[places["pass"][0]]]))
    forged.append(("a step of another search", [*records, {"core": {"theta_all": 1, "theta_without": []}}]))
    return forged


def test_forged_files_are_refused(finished: Finished, tmp_path: Path) -> None:
    finished.path.write_bytes(finished.text)
    path = tmp_path / "c.checkpoint"
    for what, records in forgeries(read_records(finished.path)):
        write_records(path, records)
        before = path.read_bytes()
        with pytest.raises(plar.TableError, match=r"is damaged, or no checkpoint. Name another file") as refused:
            select(path)
        assert "\n" not in str(refused.value), what
        assert path.read_bytes() == before, what


def test_two_runs_with_one_file(tmp_path: Path, finished: Finished) -> None:
    path = tmp_path / "c.checkpoint"
    others: list[plar.Selection] = []

    def run_another(step: Any) -> None:
        if not others:
            others.append(select(path))

    with pytest.raises(plar.TableError, match=r"was changed by somebody else: does another run use it\?"):
        select(path, on_step=run_another)
    engine = Counting()
    assert facts(select(path, engine=engine)) == facts(others[0]) == finished.facts
    assert engine.passes == 0


def test_a_place_that_cannot_be_written_is_told_at_once(tmp_path: Path) -> None:
    engine = Counting()
    with pytest.raises(plar.TableError, match="there is no folder"):
        select(tmp_path / "no" / "c.checkpoint", engine=engine)
    assert engine.passes == 0


def test_what_the_screen_says(finished: Finished, capsys: pytest.CaptureFixture[str]) -> None:
    n_steps = len(finished.facts["steps"])
    finished.resumed(finished.text, verbose=True)
    assert f"Resuming from the checkpoint: {n_steps} columns selected." in capsys.readouterr().err


def test_other_engines_go_on(finished: Finished, engine: Any) -> None:
    lines = finished.text.splitlines(keepends=True)
    assert finished.resumed(b"".join(lines[: len(lines) // 2]), engine=engine) == finished.facts


def test_begun_here_ended_on_spark_and_back(finished: Finished, spark: Any) -> None:
    from plar.engines import SparkEngine

    lines = finished.text.splitlines(keepends=True)
    frame = pl.DataFrame(table())
    rows = spark.createDataFrame(frame.rows(), frame.columns).repartition(3)
    for layout in ("rows", "columns"):
        engine = SparkEngine(session=spark, layout=layout)
        assert finished.resumed(b"".join(lines[: len(lines) // 2]), data=rows, engine=engine) == finished.facts
        # what Spark has written ends here
        text = finished.path.read_bytes()
        assert finished.resumed(text, engine=Counting(0)) == finished.facts
