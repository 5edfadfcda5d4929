"""`plar select` through its real entry point."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import polars as pl
import pytest

import plar
from support.environment import ROOT
from support.shell import PLAR, run

PASSENGERS = str(ROOT / "examples" / "passengers.csv")


def test_the_example_of_the_front_page() -> None:
    """The three causes that the script plants, and a reason for every other column."""
    done = run("select", PASSENGERS, "-d", "survived")
    assert done.returncode == 0
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0] == f"{PASSENGERS}: 3 of 10 columns selected for 'survived' (2 classes, 900 rows)"
    assert [line.split()[0] for line in lines[3:6]] == ["sex", "class", "age"]
    table = "\n".join(lines[6:])
    for reason, columns in {
        "not shown to beat chance": "siblings, cabin, embarked",
        "nothing more beside others": "fare",
        "one value per row": "PassengerId",
        "different in nearly every row": "Name, ticket",
    }.items():
        assert f"  {reason:<29}  {columns}\n" in table
    assert max(map(len, lines[1:])) <= 80


def test_the_example_is_what_its_script_writes(tmp_path: Path) -> None:
    script = ROOT / "examples" / "make_passengers.py"
    subprocess.run(["python", str(script), str(tmp_path / "again.csv")], check=True)
    assert (tmp_path / "again.csv").read_bytes() == Path(PASSENGERS).read_bytes()


def test_json_is_to_dict_but_for_seconds() -> None:
    said = json.loads(run("select", PASSENGERS, "--target", "survived", "--alpha", "0.2", "--json").stdout)
    library = json.loads(json.dumps(plar.select(PASSENGERS, "survived", alpha=0.2).to_dict()))
    for result in (said, library):
        del result["seconds"]
        for step in result["steps"]:
            del step["seconds"]
    assert said == library


@pytest.mark.parametrize("name", ["small.csv", "small.parquet"])
def test_the_selected_columns_are_written_uncut(tmp_path: Path, name: str) -> None:
    done = run("select", PASSENGERS, "-d", "survived", "-o", str(tmp_path / name))
    assert f"Wrote {tmp_path / name}." in done.stderr
    path = tmp_path / name
    small = pl.read_csv(path, infer_schema=False) if name.endswith("csv") else pl.read_parquet(path)
    whole = pl.read_csv(PASSENGERS, infer_schema=False)
    assert small.equals(whole.select("class", "sex", "age", "survived"))


def test_without_a_target_nothing_is_guessed() -> None:
    done = run("select", PASSENGERS)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("Error: No target is given. Pass --target, a column of the table. Columns: Passen")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-d", "sank"], "Unknown target 'sank'."),
        (["-d", "sex", "-d", "survived"], "predicts one column, but 2 targets are given: 'sex', 'survived'."),
        (["-d", "age", "--bins", "age=auto"], "'age' is the target, which --bins does not cut. Use --target-bins."),
        (["-d", "age", "--target-bins", "mdlp"], "--target-bins mdlp would cut the target by itself."),
        (["-d", "age", "--max-columns", "0"], "--max-columns must be at least 1. Got 0 instead."),
        (["-d", "age", "--target-type", "text"], "--target-type must be one of: auto, classes, numbers."),
        (["-d", "survived", "--exclude", "sank"], "Unknown column 'sank'."),
    ],
)
def test_errors_in_the_words_of_the_shell(words: list[str], message: str) -> None:
    done = run("select", PASSENGERS, *words)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_bins_are_switched_off_by_none() -> None:
    said = json.loads(run("select", PASSENGERS, "-d", "survived", "--bins", "none", "--json").stdout)
    assert said["cuts"] == {}
    assert said["settings"]["bins"] is None
    named = json.loads(run("select", PASSENGERS, "-d", "survived", "--bins", "age=12,60", "--json").stdout)
    assert named["cuts"] == {"age": [12.0, 60.0]}


def test_a_target_of_one_class_is_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,t\n" + "1,x\n2,x\n" * 20)
    done = run("select", str(path), "-d", "t")
    assert done.returncode == 0
    assert done.stderr == "Warning: The target 't' is the same in every row, so there is nothing to predict.\n"
    assert "0 of 1 columns selected" in done.stdout


def test_every_step_is_told_when_asked_for() -> None:
    done = run("select", PASSENGERS, "-d", "survived", "--verbose")
    told = [line.split() for line in done.stderr.splitlines() if line.startswith("column ")]
    assert [words[2] for words in told] == ["sex,", "class,", "age,"]


def test_an_interrupt_prints_what_is_selected(tmp_path: Path) -> None:
    """Ctrl-C after the first column."""
    path = tmp_path / "wide.csv"
    rows = 4000
    frame = pl.DataFrame(
        {f"c{j}": [(i * (2 * j + 3) // 7 + i // (j + 1)) % 5 for i in range(rows)] for j in range(400)}
    )
    frame.with_columns(t=pl.sum_horizontal("c0", "c5", "c9") % 7).write_csv(path)
    words = [PLAR, "select", str(path), "-d", "t", "--alpha", "0.9", "--verbose"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("column 1"):
                process.send_signal(signal.SIGINT)
                break
        rest = process.stderr.read()
        assert process.stdout is not None
        printed = process.stdout.read()
    assert process.returncode == 130
    assert "Interrupted." in rest
    assert "; stopped before all columns were decided" in printed
