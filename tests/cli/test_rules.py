"""`plar rules` and `plar predict` through their real entry point."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import plar
from plar.cli import app
from plar.cli.shell_words import in_shell
from support.environment import ROOT
from support.shell import PLAR, on_a_terminal, run

#: columns that only number or name the rows
NAMES = ["PassengerId", "Name", "ticket"]
PASSENGERS = str(ROOT / "examples" / "passengers.csv")


@pytest.fixture(scope="module")
def rules() -> plar.Rules:
    return plar.rules(PASSENGERS, "survived")


@pytest.fixture(scope="module")
def saved(rules: plar.Rules, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("rules") / "rules.json"
    rules.save(path)
    return str(path)


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a command leaves behind is in this folder."""
    monkeypatch.chdir(tmp_path)
    yield
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_what_is_printed(rules: plar.Rules) -> None:
    done = run("rules", PASSENGERS, "-d", "survived")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{PASSENGERS}: {rules}\n"
    assert done.stdout.count("  if\n") == 2


def without_seconds(text: str) -> object:
    said = json.loads(text)
    del said["seconds"]
    said.pop("checksum", None)
    return said


def test_json_is_to_dict_and_what_is_saved(rules: plar.Rules, tmp_path: Path) -> None:
    done = run("rules", PASSENGERS, "-d", "survived", "--json", "-o", "r.json")
    assert (done.returncode, done.stderr) == (0, "Wrote r.json.\n")
    expected = without_seconds(json.dumps(rules.to_dict()))
    assert without_seconds(done.stdout) == expected
    assert without_seconds((tmp_path / "r.json").read_text()) == expected
    assert plar.load(tmp_path / "r.json").rules == rules.rules


def test_rules_to_stdout_and_the_summary_beside(rules: plar.Rules) -> None:
    done = run("rules", PASSENGERS, "-d", "survived", "-o", "-")
    assert without_seconds(done.stdout) == without_seconds(json.dumps(rules.to_dict()))
    assert done.stderr.startswith(f"{PASSENGERS}: {len(rules)} tested rules for 'survived'")


def test_the_query_is_of_a_table_named_as_the_file(rules: plar.Rules) -> None:
    done = run("rules", PASSENGERS, "-d", "survived", "--sql")
    assert done.stdout == rules.to_sql("passengers") + "\n"
    with closing(sqlite3.connect(":memory:")) as database:
        frame = pl.read_csv(PASSENGERS, infer_schema=False)
        columns = [f"{name} {'REAL' if name in ('age', 'fare') else 'TEXT'}" for name in frame.columns]
        database.execute(f"CREATE TABLE passengers ({', '.join(columns)})")
        database.executemany(f"INSERT INTO passengers VALUES ({', '.join('?' * frame.width)})", frame.rows())
        answer = database.execute(f"SELECT prediction FROM ({done.stdout}) AS p").fetchall()
    assert [prediction for (prediction,) in answer] == rules.predict(frame).tolist()
    piped = subprocess.run(
        [PLAR, "rules", "-", "-d", "survived", "--sql"],
        input=Path(PASSENGERS).read_bytes(),
        capture_output=True,
        check=True,
    )
    assert piped.stdout.decode() == rules.to_sql("t") + "\n"


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (["--kind", "certain"], {"kind": "certain"}),
        (["--kind", "possible", "--max-conditions", "2"], {"kind": "possible", "max_conditions": 2}),
        (["--alpha", "1e-6"], {"alpha": 1e-6}),
        (["--min-support", "100"], {"min_support": 100}),
        (["--attributes", "sex,class"], {"attributes": ["sex", "class"]}),
        (["-a", "sex", "-a", "class"], {"attributes": ["sex", "class"]}),
        (["--bins", "none"], {"bins": None}),
        (["--bins", "age=12,60"], {"bins": {"age": [12.0, 60.0]}}),
        (["--missing", "drop"], {"missing": "drop"}),
    ],
)
def test_options(words: list[str], asked: dict[str, object], capsys: pytest.CaptureFixture[str]) -> None:
    words = ["rules", PASSENGERS, "-d", "survived", "--json", "-q", "--drop", ",".join(NAMES), *words]
    app(words, standalone_mode=False)
    expected = plar.rules(PASSENGERS, "survived", drop=NAMES, **asked)  # type: ignore[arg-type]
    assert without_seconds(capsys.readouterr().out) == without_seconds(json.dumps(expected.to_dict()))


@pytest.mark.parametrize("made_by", ["reduce", "select", "relevant"])
def test_columns_of_a_saved_result(made_by: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = getattr(plar, made_by)(PASSENGERS, "survived", drop=NAMES, bins="auto")
    result.save("chosen.json")
    app(["rules", PASSENGERS, "-d", "survived", "--json", "--reduct", "chosen.json"], standalone_mode=False)
    said = json.loads(capsys.readouterr().out)
    expected = plar.rules(PASSENGERS, "survived", attributes=result)
    assert said["attributes"] == list(expected.attributes)
    assert [rule["counts"] for rule in said["rules"]] == [list(rule.counts) for rule in expected]


def test_a_report(rules: plar.Rules, tmp_path: Path) -> None:
    done = run("rules", PASSENGERS, "-d", "survived", "--report", "r.html", "-q")
    assert (done.returncode, done.stderr) == (0, "")
    page = (tmp_path / "r.html").read_text()
    assert page.lower().startswith("<!doctype html>")
    assert "plar rules " in page


def test_a_time_limit() -> None:
    done = run("rules", PASSENGERS, "-d", "survived", "--time-limit", "0", "-o", "r.json")
    assert done.returncode == 0
    assert done.stdout.splitlines()[0].endswith("(2 classes, 900 rows); stopped before all were found")
    assert not plar.load("r.json").complete


def test_an_interrupt_prints_the_rules_so_far() -> None:
    draw = np.random.default_rng(0)
    columns = {f"a{j}": draw.integers(0, 9, 60_000) for j in range(30)}
    pl.DataFrame({**columns, "d": draw.integers(0, 2, 60_000)}).write_csv("noise.csv")
    words = ["rules", "noise.csv", "-d", "d", "--kind", "certain", "-o", "-"]
    code, shown = on_a_terminal(*words, interrupt_at=b"finding rules")
    assert code == 130
    assert "Traceback" not in shown
    assert "; stopped before all were found" in shown
    assert shown.rstrip().endswith("Interrupted.")


def test_a_reader_that_leaves(saved: str) -> None:
    """The files that were asked for are written, and nobody is told off."""
    for words in (["rules", PASSENGERS, "-d", "survived", "-o", "r.json"], ["predict", saved, PASSENGERS]):
        with subprocess.Popen([PLAR, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.close()
            assert process.stderr is not None
            assert b"Traceback" not in process.stderr.read()
        assert process.returncode == (0 if "rules" in words else 1)
    assert len(plar.load("r.json"))


# -- predict ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["p.csv", "p.parquet", "p.ndjson"])
def test_predictions_into_a_file(rules: plar.Rules, saved: str, tmp_path: Path, name: str) -> None:
    done = run("predict", saved, PASSENGERS, "-o", name)
    right = (rules.predict(PASSENGERS) == pl.read_csv(PASSENGERS)["survived"].to_numpy()).sum()
    assert done.stdout == ""
    assert done.stderr == f"Wrote {name}.\n{right} of 900 rows are predicted right: {right / 9:.1f} %.\n"
    path = tmp_path / name
    written = {
        ".csv": lambda: pl.read_csv(path, infer_schema=False),
        ".parquet": lambda: pl.read_parquet(path),
        ".ndjson": lambda: pl.read_ndjson(path),
    }[path.suffix]()
    whole = pl.read_csv(PASSENGERS, infer_schema=False)
    assert written.columns == [*whole.columns, "prediction", "probability"]
    assert written.select(whole.columns).equals(whole)
    assert written["prediction"].to_list() == rules.predict(PASSENGERS).tolist()
    shares = rules.predict_proba(PASSENGERS).max(axis=1)
    assert written["probability"].cast(pl.Float64).to_list() == pytest.approx(shares.tolist(), rel=1e-12)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_predictions_through_pipes(rules: plar.Rules, saved: str, tmp_path: Path, kind: str) -> None:
    frame = pl.read_csv(PASSENGERS, infer_schema=False).drop("survived")
    path = tmp_path / f"new.{kind}"
    if kind == "csv":
        frame.write_csv(path)
    else:
        frame.write_parquet(path)
    words = ["predict", saved, "-", *(["--format", kind] if kind != "csv" else []), "--output-format", "parquet"]
    done = subprocess.run([PLAR, *words], input=path.read_bytes(), capture_output=True, check=True)
    assert done.stderr == b""
    (tmp_path / "out.parquet").write_bytes(done.stdout)
    assert pl.read_parquet(tmp_path / "out.parquet")["prediction"].to_list() == rules.predict(PASSENGERS).tolist()


def test_rows_that_are_written_in_another_way(tmp_path: Path) -> None:
    numbers = [i / 10 for i in range(100)]
    pl.DataFrame({"x0": numbers, "d": ["low" if number < 5.2 else "high" for number in numbers]}).write_csv("t.csv")
    assert run("rules", "t.csv", "-d", "d", "-o", "r.json", "-q").returncode == 0
    (tmp_path / "new.csv").write_text("2,95|ä\n9,9|ö\n-9|ü\n", "latin-1")
    words = ["--decimal", ",", "--encoding", "latin-1", "--na", "-9", "--no-header", "--separator", "pipe"]
    done = run("predict", "r.json", "new.csv", *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split(",")[-2] for line in done.stdout.splitlines()[1:3]] == ["low", "high"]


def test_quiet(saved: str) -> None:
    done = run("predict", saved, PASSENGERS, "-q", "-o", "p.csv")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = run("rules", PASSENGERS, "-d", "survived", "-q", "-o", "r.json")
    assert done.stderr == ""


# -- what is refused ----------------------------------------------------------------------------------------------


def refused(*words: str) -> str:
    """The one line that a command is refused with."""
    with pytest.raises(plar.PlarError) as caught:
        app(words, standalone_mode=False)
    line = in_shell(caught.value.message)
    assert line.isprintable()
    return line


def test_what_is_refused_is_said_in_one_line(saved: str) -> None:
    for words in (["rules", PASSENGERS], ["predict", saved, "none.csv"]):
        done = run(*words)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"Error: {refused(*words)}\n"


def test_what_rules_refuses(saved: str) -> None:
    def said(*words: str) -> str:
        return refused("rules", PASSENGERS, "-d", "survived", *words)

    assert said("--kind", "maybe") == "--kind must be one of: tested, certain, possible. Got 'maybe' instead."
    assert said("--alpha", "2") == "--alpha must be between 0 and 1. Got 2.0 instead."
    assert said("--max-conditions", "0") == "--max-conditions must be at least 1. Got 0 instead."
    assert said("--min-support", "0") == "--min-support must be at least 1. Got 0 instead."
    assert said("--json", "--sql") == "--json and --sql would both write to stdout. Leave one out."
    assert said("--sql", "-o", "-") == ("--sql and -o - would both write to stdout. Give one of them a file.")
    assert said("--json", "--report", "-").startswith("--json and --report - would both write to stdout.")
    assert said("-a", "sex", "--reduct", "r.json") == "--attributes and --reduct both name columns. Leave one out."
    assert said("-a", "nope").startswith("Unknown column 'nope'. Choose one of: ")
    assert said("--reduct", "r.json") == "Cannot read 'r.json': No such file or directory."
    assert said("--reduct", saved).startswith(f"{saved!r} holds no chosen columns. ")
    assert said("-o", PASSENGERS) == f"{PASSENGERS!r} is the input. Choose another name for the output."
    assert said("-o", "r.csv") == (
        "Rules are written as JSON. Got 'r.csv'; name it .json. 'plar predict' writes tables of predictions."
    )
    assert said("-o", "r.html", "--report", "r.html") == "-o and --report both name 'r.html'. Choose two names."
    assert said("-d", "sex").startswith("Rules predict one column, but 2 decisions are given: 'survived', 'sex'.")
    assert refused("rules", PASSENGERS).startswith("No decision is given. Pass --decision, a column of the table.")


def test_what_predict_refuses(saved: str, tmp_path: Path) -> None:
    reduct = plar.reduce(PASSENGERS, "survived", drop=NAMES, bins="auto")
    reduct.save("reduct.json")
    pl.read_csv(PASSENGERS).drop("fare").write_csv("few.csv")
    plar.granulate(PASSENGERS, "survived").save("g.parquet")
    ndjson = tmp_path / "rules.ndjson"
    ndjson.write_bytes(Path(saved).read_bytes())

    assert refused("predict", "reduct.json", PASSENGERS) == (
        "'reduct.json' holds no rules. Make them with plar rules -o."
    )
    assert refused("predict", PASSENGERS, PASSENGERS).endswith("is not a saved result: it is not valid JSON.")
    assert refused("predict", "none.json", PASSENGERS) == "Cannot read 'none.json': No such file or directory."
    assert refused("predict", saved, "none.csv").startswith("No such file: 'none.csv'.")
    assert refused("predict", saved, "few.csv").startswith(
        "The table lacks columns that the rules look at: fare. It has: PassengerId, "
    )
    assert refused("predict", saved, "g.parquet") == (
        "These are distinct rows with their counts. Pass the table itself, whose rows are predicted."
    )
    assert refused("predict", saved, PASSENGERS, "-o", PASSENGERS).endswith("Choose another name for the output.")
    assert refused("predict", str(ndjson), PASSENGERS, "-o", str(ndjson)).endswith(
        "Choose another name for the output."
    )
    assert refused("predict", saved, PASSENGERS, "-o", "p.xyz").startswith("Unknown output format of 'p.xyz'.")
    assert refused("predict", saved, PASSENGERS, "--format", "csv").startswith("--format is for stdin;")
    (tmp_path / "odd.csv").write_text(Path(PASSENGERS).read_text().replace("1.23,", "cheap,"))
    assert refused("predict", saved, "odd.csv") == (
        "The rules compare column 'fare' by size, but it holds 'cheap', which is not a number. Correct it, or leave it "
        "empty if it is missing."
    )
    damaged = json.loads(Path(saved).read_text())
    damaged["rules"][0]["support"] += 1
    (tmp_path / "damaged.json").write_text(json.dumps(damaged))
    assert refused("predict", "damaged.json", PASSENGERS).startswith("'damaged.json' is not as it was saved:")
    assert not (tmp_path / "p.csv").exists()
