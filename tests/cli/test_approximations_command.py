"""`plar approximations`: what it prints and writes, and its refusals in one line."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import plar
from support.environment import EXAMPLES
from support.shell import PLAR, TABLE, run

PASSENGERS = str(EXAMPLES / "passengers.csv")
ASKED = ("approximations", TABLE, "-d", "x_wins", "-a", "0,1")


def test_text() -> None:
    done = run(*ASKED, "--contradictions", "2")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        f"{TABLE}: approximations of 'x_wins' (2 classes, 958 rows); 2 columns known\n"
        "  no row is certain: each equals a row of another decision in these columns\n"
        "\n"
        "  rows  certain  possible  undecided  accuracy  x_wins\n"
        "   332        0       958        958     0.000  negative\n"
        "   626        0       958        958     0.000  positive\n"
        "\n"
        "  certain: rows whose equals all have this decision; possible: rows of which some\n"
        "  equal has it; undecided: the difference; accuracy: certain as a share of possible\n"
        "\n"
        "  contradictions: 9 of 9 combinations of values, 958 rows; most rows first\n"
        "    162  positive 113 · negative 49\n"
        "         top_left = x, top_middle = x\n"
        "    149  positive 110 · negative 39\n"
        "         top_left = x, top_middle = o\n"
        "    and 7 more\n"
    )
    assert "contradictions:" not in run(*ASKED, "--contradictions", "0").stdout
    assert run(*ASKED).stdout.count("top_left = ") == 9


def test_json_is_the_result(tmp_path: Path) -> None:
    done = run(*ASKED, "--json")
    assert done.returncode == 0
    (tmp_path / "a.json").write_text(done.stdout)
    loaded = plar.load(tmp_path / "a.json")
    here = plar.approximations(TABLE, "x_wins", attributes=[0, 1])
    assert loaded.by_decision == here.by_decision
    assert loaded.largest_contradictions == here.largest_contradictions
    assert loaded.source == TABLE


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".ndjson"])
def test_the_marked_table(tmp_path: Path, suffix: str) -> None:
    output = tmp_path / f"marked{suffix}"
    done = run(*ASKED, "-o", str(output))
    assert (done.returncode, done.stderr) == (0, f"Wrote {output}.\n")
    readers: dict[str, Callable[[Path], pl.DataFrame]] = {
        ".csv": pl.read_csv,
        ".parquet": pl.read_parquet,
        ".ndjson": pl.read_ndjson,
    }
    expected = plar.approximations(TABLE, "x_wins", attributes=[0, 1]).mark(TABLE)
    assert readers[suffix](output).equals(expected)


def test_streams() -> None:
    table = b"a,d\n1,p\n1,q\n2,p\n"
    words = [PLAR, "approximations", "-", "-d", "d", "-o", "-"]
    done = subprocess.run(words, input=table, capture_output=True, check=True)
    assert done.stdout == (
        b"a,d,approximation,possible_decisions\n1,p,undecided,p | q\n1,q,undecided,p | q\n2,p,certain,p\n"
    )
    assert b"standard input: approximations of 'd'" in done.stderr


def test_columns_of_a_reduct(tmp_path: Path) -> None:
    plar.reduce(TABLE, "x_wins").save(tmp_path / "r.json")
    done = run("approximations", TABLE, "-d", "x_wins", "--reduct", str(tmp_path / "r.json"))
    assert "every row is certain" in done.stdout


def test_a_table_without_rows(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,d\n")
    done = run("approximations", "t.csv", "-d", "d", "-o", "m.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "there are no rows" in done.stdout
    assert (tmp_path / "m.csv").read_text() == "a,d,approximation,possible_decisions\n"


def test_refused_in_one_line(tmp_path: Path) -> None:
    rules = tmp_path / "a.json"
    plar.approximations(TABLE, "x_wins", attributes=[0]).save(rules)
    (tmp_path / "t.csv").write_text("a,d\n1,0\n")
    assert run("granulate", "t.csv", "-d", "d", "-o", "g.parquet", cwd=tmp_path).returncode == 0
    refused = {
        ("--attributes", "winds"): "Unknown column 'winds'",
        ("--reduct", str(rules)): "holds no chosen columns",
        ("-a", "0", "--reduct", str(rules)): "--attributes and --reduct both name columns",
        ("--contradictions", "-1"): "--contradictions is how many are shown",
        ("--contradictions", "3", "--json"): "--contradictions is for the text",
        ("--json", "-o", "-"): "would both write to stdout",
        ("-o", "m.txtx"): "m.txtx",
        ("-o", TABLE): "input",
        ("-o", "m.csv", "-e", "spark"): "The marked table is written by this machine",
    }
    for words, message in refused.items():
        done = run("approximations", TABLE, "-d", "x_wins", *words, cwd=tmp_path)
        assert done.returncode == 2, words
        assert done.stdout == "", words
        assert done.stderr.count("\n") == 1, done.stderr
        assert message in done.stderr, (words, done.stderr)
    done = run("approximations", "g.parquet", "-o", "m.csv", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "holds granules, not rows" in done.stderr
    assert not (tmp_path / "m.csv").exists()


def test_keys_are_warned_of() -> None:
    done = run("approximations", PASSENGERS, "-d", "survived")
    assert done.returncode == 0
    assert "different in nearly every row" in done.stderr
