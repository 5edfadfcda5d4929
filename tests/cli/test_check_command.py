"""`plar check`: what it prints and writes, and its exit codes: 0 it stands, 3 it does not, 2 bad input."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path

import polars as pl
import pytest

import plar
from support.environment import PLAR
from support.shell import on_a_terminal, run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of two months, of which the second has another rule, and the results of the first."""
    place = tmp_path_factory.mktemp("months")
    for month, rule in (("january", "u"), ("february", "v")):
        pick = random.Random(month)
        t = [pick.choice("uvw") for _ in range(200)]
        s = [pick.choice("ab") for _ in range(200)]
        d = [
            "yes" if (letter == rule and month == "january") or other == "a" else "no"
            for letter, other in zip(t, s, strict=True)
        ]
        frame = pl.DataFrame({"t": t, "s": s, "d": d})
        frame.write_csv(place / f"{month}.csv")
        frame.write_parquet(place / f"{month}.parquet")
    for command in ("reduce", "select"):
        printed = run(command, "january.csv", "-d", "d", "--json", cwd=place)
        (place / f"{command}.json").write_text(printed.stdout)
    return place


@pytest.mark.parametrize("command", ["reduce", "select"])
def test_exit_codes(folder: Path, command: str) -> None:
    stands = run("check", f"{command}.json", "january.csv", cwd=folder)
    assert (stands.returncode, stands.stderr) == (0, "")
    assert stands.stdout.startswith(f"january.csv: the {'reduct' if command == 'reduce' else 'selection'} stands: ")
    result = plar.load(folder / f"{command}.json")
    for month in ("january", "february"):
        done = run("check", f"{command}.json", f"{month}.csv", "--seen", "january.parquet", cwd=folder)
        check = plar.check(result, folder / f"{month}.csv", seen=folder / "january.parquet")
        assert done.returncode == (0 if check.stands else 3)
        assert done.stdout == f"{month}.csv: {check}\n"
    if command == "select":
        assert done.returncode == 3


def test_json_page_and_file(folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "check.html"
    output = tmp_path / "check.json"
    words = ("check", "select.json", "february.csv", "--json", "--report", str(page), "-o", str(output))
    done = run(*words, cwd=folder)
    assert done.returncode == 3
    assert done.stderr == f"Wrote {page}.\nWrote {output}.\n"
    loaded = plar.load(output)
    assert json.loads(done.stdout) == json.loads(json.dumps(loaded.to_dict()))
    assert "plar check select.json february.csv --json" in page.read_text()
    quiet = run(*words, "--quiet", cwd=folder)
    assert (quiet.returncode, quiet.stderr) == (3, "")
    to_stdout = run("check", "select.json", "february.csv", "-o", "-", cwd=folder)
    assert to_stdout.returncode == 3
    assert json.loads(to_stdout.stdout)["kind"] == "check"
    assert "does not stand" in to_stdout.stderr


def test_stdin(folder: Path) -> None:
    for month in ("january", "february"):
        table = (folder / f"{month}.parquet").read_bytes()
        words = [PLAR, "check", "select.json", "-", "--format", "parquet"]
        done = subprocess.run(words, input=table, capture_output=True, cwd=folder, check=False)
        assert done.returncode == (0 if month == "january" else 3)
        assert done.stdout.startswith(b"standard input: the selection ")


def test_options_of_reading(folder: Path, tmp_path: Path) -> None:
    text = (folder / "january.csv").read_text()
    (tmp_path / "t.csv").write_text(text.replace(",", ";").replace("w;", "?;"), encoding="utf-16")
    words = ("check", str(folder / "select.json"), "t.csv", "--encoding", "utf-16", "--separator", "semicolon")
    done = run(*words, "--na", "?", "--missing", "drop", "--alpha", "0.01", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["n_rows"] == 200 - text.count("\nw,")
    assert said["alpha"] == 0.01
    assert said["settings"]["na"] == ["?"]


def test_refused_in_one_line(folder: Path, tmp_path: Path) -> None:
    plar.rules(folder / "january.csv", "d").save(tmp_path / "rules.json")
    (tmp_path / "t.csv").write_text("t,s\nu,a\n")
    (tmp_path / "other.csv").write_text("x,d\nu,yes\n")
    (tmp_path / "empty.csv").write_text("t,s,d\n")
    select = str(folder / "select.json")
    january = str(folder / "january.csv")
    refused = {
        (select, "no.csv"): "No such file: 'no.csv'",
        ("no.json", january): "Cannot read 'no.json'",
        (str(tmp_path / "rules.json"), january): "is neither a reduct nor a selection",
        (january, january): "it is not valid JSON",
        (select, "t.csv"): "Unknown decision 'd'",
        (select, "other.csv"): "The new rows have none of the columns of the selection",
        (select, "empty.csv"): "has a header and no rows",
        (select, january, "--alpha", "2"): "must be between 0 and 1",
        (select, january, "--seen", "other.csv"): "The table of --seen has none of the columns",
        (select, january, "--json", "-o", "-"): "would both write to stdout",
        (select, january, "--report", "page.pdf"): "A report is an HTML page",
        (select, january, "-o", january): "input",
        (select, january, "--bins", "auto"): "No such option",
        (select,): "Missing argument 'FILE'",
    }
    for words, message in refused.items():
        done = run("check", *words, cwd=tmp_path)
        assert done.returncode == 2, (words, done.stdout)
        assert done.stdout == "", words
        assert done.stderr.count("\n") == 1, done.stderr
        assert message in done.stderr, (words, done.stderr)


def test_progress_on_a_terminal(folder: Path) -> None:
    code, shown = on_a_terminal("check", str(folder / "reduce.json"), str(folder / "january.csv"), "-v")
    assert code == 0
    assert "200 rows" in shown
