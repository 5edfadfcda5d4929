"""The command line through its real entry point."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

import plar
from support.environment import ROOT
from support.shell import PLAR, TABLE, run

COMMANDS = ("reduce", "core", "theta", "granulate", "engines", "schema")


def ok(*words: str, cwd: Path | None = None) -> str:
    done = run(*words, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_reduce_says_what_the_library_finds() -> None:
    out = ok("reduce", TABLE, "--decision", "x_wins")
    found = plar.reduce(TABLE, decision="x_wins")
    assert f"reduct  {', '.join(found.attributes)}" in out
    assert "9 columns → 8" in out
    assert "Minimal" in out


@pytest.mark.parametrize("measure", ["PR", "SCE", "LCE", "CCE"])
def test_json_is_to_dict_but_for_seconds(measure: str) -> None:
    def plain(found: dict[str, object]) -> dict[str, object]:
        found.pop("seconds")
        for step in found["steps"]:  # type: ignore[attr-defined]
            step.pop("seconds")
        return found

    out = json.loads(ok("reduce", TABLE, "-d", "-1", "-m", measure, "--json"))
    library = json.loads(json.dumps(plar.reduce(TABLE, decision=-1, measure=measure).to_dict()))
    assert plain(out) == plain(library)


def test_options_reach_the_search() -> None:
    out = json.loads(
        ok("reduce", TABLE, "-d", "x_wins", "--conditions", "top_left,1,top_right,middle_left",
           "--include", "top_right", "--max-attributes", "2", "--jobs", "2", "--json")
    )  # fmt: skip
    assert out["conditions"] == ["top_left", "top_middle", "top_right", "middle_left"]
    assert "top_right" in out["attributes"]
    assert len(out["attributes"]) == 2
    assert out["complete"] is False


def test_positions_are_of_the_table_and_names_come_first(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("d,2019,b\nx,1,1\ny,2,1\n")
    found = json.loads(ok("reduce", str(path), "-d", "0", "--include", "2", "--json"))
    assert (found["conditions"], found["attributes"]) == (["2019", "b"], ["2019", "b"])
    assert json.loads(ok("reduce", str(path), "-d", "2019", "--json"))["decision"] == ["2019"]
    assert plar.reduce(str(path), 0, include=[2]).attributes == ("2019", "b")
    assert plar.theta(str(path), [1], decision=0) == 0.0


@pytest.mark.parametrize("name", ["r.csv", "r.tsv", "r.parquet", "r.feather", "r.ndjson", "r.csv.gz", "r.csv.zst"])
def test_output_in_the_format_its_name_says(name: str, tmp_path: Path) -> None:
    done = run("reduce", TABLE, "-d", "x_wins", "-o", str(tmp_path / name))
    assert done.returncode == 0, done.stderr
    assert "Wrote" in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == [name]
    again = json.loads(ok("reduce", str(tmp_path / name), "-d", "x_wins", "--json"))
    assert again["n_objects"] == 958
    assert set(again["attributes"]) == set(plar.reduce(TABLE, decision="x_wins").attributes)
    assert again["conditions"] == [c for c in pl.read_csv(TABLE).columns if c in again["attributes"]]


def test_a_full_disk_costs_the_file_and_not_the_result(tmp_path: Path) -> None:
    ok("reduce", TABLE, "-d", "x_wins")  # the kernels are on disk
    limit = (
        "import resource as r, os, sys; r.setrlimit(r.RLIMIT_FSIZE, (4096, 4096)); os.execv(sys.argv[1], sys.argv[1:])"
    )
    command = [sys.executable, "-c", limit, PLAR, "reduce", TABLE, "-d", "x_wins", "-o", str(tmp_path / "r.csv")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1
    assert "reduct  middle_middle" in done.stdout
    assert done.stderr.startswith("Error: Cannot write")
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_core_theta_granulate(tmp_path: Path) -> None:
    weather = tmp_path / "t.txt"
    weather.write_text("0 0 Y\n0 0 Y\n0 0 N\n0 1 Y\n0 1 Y\n0 1 Y\n1 0 N\n1 1 Y\n")
    plain = [str(weather), "--no-header", "-d", "-1"]
    assert ok("core", *plain).split() == ["x0", "x1"]
    assert json.loads(ok("core", *plain, "-m", "pr", "--json")) == {"core": ["x0", "x1"], "measure": "PR"}
    assert float(ok("theta", *plain, "-m", "LCE", "-a", "x1")) == 8 / 64
    assert json.loads(ok("theta", *plain, "-m", "PR", "-a", "0,1", "--json"))["theta"] == -5 / 8
    granules = tmp_path / "g.parquet"
    done = run("granulate", *plain, "-o", str(granules))
    assert (done.returncode, done.stdout) == (0, "")
    assert "8 rows, 5 distinct" in done.stderr
    assert ok("core", str(granules)).split() == ["x0", "x1"]
    assert json.loads(ok("reduce", str(granules), "--json"))["n_objects"] == 8


def test_engines_lists_them_with_reasons() -> None:
    assert "ready" in ok("engines").splitlines()[0]
    assert json.loads(ok("engines", "--json"))["local"] is None


def test_without_a_command_it_helps() -> None:
    assert "Usage: plar" in ok()


def test_version() -> None:
    assert ok("--version").strip() == f"plar {plar.__version__}"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_an_example_and_is_documented(command: str) -> None:
    assert f"Example: plar {command}" in ok(command, "--help")
    assert f"plar {command}" in (ROOT / "README.md").read_text()


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    files = {
        "empty.csv": b"",
        "header.csv": b"a,b,d\n",
        "ragged.csv": b"a,b,d\n1,2,3\n1,2\n4,5,6\n",
        "long.csv": b"a,b,d\n1,2,3\n1,2,3,4\n",
        "latin.csv": "a,d\nmüde,1\n".encode("latin-1"),
        "twice.csv": b"a,a,d\n1,2,3\n",
        "missing.csv": b"a,d\n1,x\n,y\n?,x\n",
        "weights.csv": b"a,w,d\n1,2,x\n2,-1,y\n",
        "halves.csv": b"a,w,d\n1,2.5,x\n2,1,y\n",
        "zeros.csv": b"a,w,d\n1,0,x\n2,0,y\n",
        "good.csv": b"colour,d\n1,x\n2,y\n",
        "only.csv": b"d\n1\n2\n",
        "table.xyz": b"a,d\n1,2\n",
        "table.dta": b"<stata_dta>",
        "cut.gz": b"\x1f\x8b\x08\x00\x00\x00",
        "cut.parquet": b"PAR1 cut off",
        "cut.arff": b"@relation x\n@attribute a {1,2}\n",
        "cut.ndjson": b'{"a": 1, "d": 2}\n{"a": 1, "d"\n',
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


BAD = [
    (("reduce", "nowhere.csv", "-d", "d"), ["nowhere.csv"]),
    (("reduce", "*.nothing", "-d", "d"), ["*.nothing"]),
    (("reduce", ".", "-d", "d"), ["Error: '.' is a directory, and not all"]),
    (("reduce", "s3://b/t.csv", "-d", "d"), ["'s3://b/t.csv'", "Pass --engine spark, or copy it to this machine."]),
    (("reduce", "empty.csv", "-d", "d"), ["empty.csv", "empty"]),
    (("reduce", "header.csv", "-d", "d"), ["header.csv", "no rows"]),
    (("reduce", "ragged.csv", "-d", "d"), ["ragged.csv", "line 3"]),
    (("reduce", "long.csv", "-d", "d"), ["long.csv", "line 3"]),
    (("reduce", "latin.csv", "-d", "d"), ["latin.csv", "UTF-8", "--encoding latin-1"]),
    (("reduce", "twice.csv", "-d", "d"), ["'a'", "twice", "or pass --no-header if the first line is a row."]),
    (("reduce", "good.csv", "-d", "e"), ["'e'", "colour, d"]),
    (("reduce", "good.csv", "-d", "7"), ["7"]),
    (("reduce", "good.csv", "-d", "d", "--conditions", "color"), ["'color'", "Did you mean 'colour'?"]),
    (("reduce", "good.csv", "-d", "d", "--conditions", "colour,d"), ["'d'", "column"]),
    (("reduce", "good.csv", "-d", "d", "--include", "color"), ["'color'", "colour"]),
    (("reduce", "good.csv"), ["Pass --decision, a column of the table. Columns: colour, d."]),
    (("reduce", "only.csv", "-d", "d"), ["column"]),
    (("reduce", "missing.csv", "-d", "d", "--missing", "error", "--na", "?"), ["'a'", "2", "Pass --missing value or"]),
    (("reduce", "missing.csv", "-d", "d", "--missing", "perhaps"), ["'perhaps'", "value, drop, error"]),
    (("reduce", "missing.csv", "-d", "d", "--missing", "drop", "--na", "?", "--na", "1"), ["row"]),
    (("reduce", "missing.csv", "-d", "d", "--na", "none", "--na", "?"), ["--na none", "alone", "['none', '?']"]),
    (("reduce", "weights.csv", "-d", "d", "--weights", "w"), ["-1", "w"]),
    (("reduce", "halves.csv", "-d", "d", "--weights", "w"), ["2.5", "w"]),
    (("reduce", "zeros.csv", "-d", "d", "--weights", "w"), ["row"]),
    (("reduce", "good.csv", "-d", "d", "--measure", "gini"), ["'gini'", "PR, SCE, LCE, CCE"]),
    (("reduce", "good.csv", "-d", "d", "--engine", "gpu"), ["'gpu'", "local"]),
    (("reduce", "good.csv", "-d", "d", "--master", "local[2]"), ["--master", "Add --engine spark"]),
    (("reduce", "good.csv", "-d", "d", "--engine", "spark", "--conf", "memory"), ["KEY=VALUE", "'memory'"]),
    (("reduce", "good.csv", "-d", "d", "-o", "good.csv"), ["good.csv"]),
    (("reduce", "good.csv", "-d", "d", "-o", "nowhere/r.csv"), ["nowhere"]),
    (("reduce", "good.csv", "-d", "d", "-o", "r.docx"), ["docx", ".parquet"]),
    (("reduce", "good.csv", "-d", "d", "-o", "-", "--json"), ["--json and -o -", "stdout"]),
    (("reduce", "good.csv", "-d", "d", "-o", "-", "--report", "-"), ["-o - and --report -", "stdout"]),
    (("reduce", "good.csv", "-d", "d", "-o", "-", "--output-format", "docx"), ["'docx'", "csv, tsv"]),
    (("reduce", "good.csv", "-d", "d", "-o", "r.csv", "--output-format", "csv"), ["--output-format", "-o -"]),
    (("reduce", "good.csv", "-d", "d", "--report", "good.csv"), ["good.csv", "input"]),
    (("reduce", "good.csv", "-d", "d", "--report", "nowhere/r.html"), ["nowhere"]),
    (("reduce", "good.csv", "-d", "d", "--report", "r.pdf"), ["HTML page", "'r.pdf'", ".html"]),
    (("reducts", "good.csv", "-d", "d", "--report", "r.pdf"), ["HTML page", "'r.pdf'", ".html"]),
    (("reduce", "good.csv", "-d", "d", "--format", "csv"), ["--format", "good.csv"]),
    (("reduce", "-", "-d", "d", "--format", "docx"), ["'docx'", "parquet"]),
    (("reduce", "good.csv", "-d", "d", "--bins", "round"), ["'round'", "mdlp"]),
    (("reduce", "good.csv", "-d", "d", "--bins", "4"), ["--bins 4", "'quantile:4'"]),
    (("reduce", "table.dta", "-d", "d"), ["table.dta", "pandas.read_stata(…)"]),
    (("reduce", "good.csv", "-d", "d", "--bins", "mdlp", "--bins", "colour=mdlp"), ["'mdlp'", "NAME=RULE"]),
    (("reduce", "good.csv", "-d", "d", "--bins", "colour=1.5", "--bins", "0=2,3"), ["'colour'", "twice"]),
    (("reduce", "good.csv", "-d", "d", "--bins", "mdlp", "--decimal", "x"), ["'x'", "decimal"]),
    (
        ("schema", "perform"),
        ["'perform'", "reduce, select, check, relevant, reducts, rules, approximations, core, theta, engines, proof"],
    ),
    (("reduce", "table.xyz", "-d", "d"), ["table.xyz", ".csv"]),
    (("reduce", "cut.gz", "-d", "d"), ["cut.gz"]),
    (("reduce", "cut.parquet", "-d", "d"), ["cut.parquet"]),
    (("reduce", "cut.arff", "-d", "a"), ["cut.arff"]),
    (("reduce", "cut.ndjson", "-d", "d"), ["cut.ndjson"]),
    (("reduce", "good.csv", "-d", "d", "--epsilon", "-1"), ["--epsilon must be", "-1"]),
    (("reduce", "good.csv", "-d", "d", "--tolerance", "nan"), ["tolerance"]),
    (("reduce", "good.csv", "-d", "d", "--max-attributes", "0"), ["--max-attributes must be", "0"]),
    (("reduce", "good.csv", "-d", "d", "--jobs", "0"), ["0"]),
    (("theta", "good.csv", "-d", "d", "-a", "color"), ["'color'", "colour"]),
    (("granulate", "good.csv", "-d", "d", "-o", "g.csv"), ["g.csv", ".parquet"]),
    (("reduce", "good.csv", "--what"), ["--what", "See 'plar reduce --help'."]),
    (("reduce",), ["FILE", "See 'plar reduce --help'."]),
    (("core", "good.csv", "-d", "d", "--epsilon", "x"), ["--epsilon", "See 'plar core --help'."]),
    (("reduce", "good.csv", "-d", "d", "--costs", "colour=2"), ["--costs goes with --search smallest."]),
    (
        ("reduce", "good.csv", "-d", "d", "--search", "smallest", "--costs", "colour=2", "--costs", "colour=3"),
        ["--costs has two costs for 'colour'. Choose one."],
    ),
    (
        ("core", "good.csv", "-d", "d", "--epsilon", "5%"),
        ["--epsilon takes a number. Got '5%'. See 'plar core --help'."],
    ),
    (
        ("reduce", "good.csv", "-d", "d", "--max-attributes=x"),
        ["--max-attributes takes a whole number. See 'plar reduce"],
    ),
    (("reduce", "good.csv", "-d"), ["'-d' requires an argument. See 'plar reduce --help'."]),
    (("reduce", "good.csv", "more.csv"), ["(more.csv). See 'plar reduce --help'."]),
    (("reduce", "good.csv", "-d", "d", "--max-attributes", "3", "--max-attributes", "x"), ["a whole number. See"]),
    (("selct", "good.csv"), ["Did you mean 'select'? See 'plar --help'."]),
    (("good.csv", "-d", "d"), ["To select columns of a file: plar select good.csv -d TARGET. See 'plar --help'."]),
    (("perform",), ["perform", "See 'plar --help'."]),
]


#: runs commands, each in a process of its own, that has loaded already what takes most of the time of a short one
FORKING = """
import json, os, sys, tempfile
import plar.cli, plar.session.session, plar.input.tables.source

for line in sys.stdin:
    words, folder = json.loads(line)
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.chdir(folder)
                for number, file in enumerate((open(os.devnull), out, err)):
                    os.dup2(file.fileno(), number)
                sys.argv = ["plar", *words]
                plar.cli.main()
                code = 0
            except SystemExit as end:
                code = end.code or 0
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0)
        err.seek(0)
        print(json.dumps([code, out.read(), err.read()]), flush=True)
"""


@pytest.fixture(scope="module")
def fork() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-W", "ignore", "-c", FORKING]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        yield server


def run_in_fork(fork: subprocess.Popen[str], *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """As `run`, in a tenth of the time."""
    assert fork.stdin is not None
    assert fork.stdout is not None
    fork.stdin.write(json.dumps([words, str(cwd)]) + "\n")
    fork.stdin.flush()
    return subprocess.CompletedProcess(words, *json.loads(fork.stdout.readline()))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked on Unix")
@pytest.mark.parametrize(("words", "said"), BAD, ids=[" ".join(words) for words, _ in BAD])
def test_bad_input_is_one_line_and_exit_2(
    words: tuple[str, ...], said: list[str], bad: Path, fork: subprocess.Popen[str]
) -> None:
    before = {p: p.read_bytes() for p in bad.iterdir()}
    done = run_in_fork(fork, *words, cwd=bad)
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert done.stderr.startswith("Error: ")
    assert not done.stderr.endswith("..\n")
    for word in said:
        assert word in done.stderr
    assert {p: p.read_bytes() for p in bad.iterdir()} == before


def test_one_class_and_inconsistency_are_no_errors(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("a,d\n1,x\n2,x\n")
    found = json.loads(ok("reduce", str(tmp_path / "one.csv"), "-d", "d", "--json"))
    assert (found["attributes"], found["complete"]) == ([], True)
    (tmp_path / "two.csv").write_text("a,d\n1,x\n1,y\n2,y\n")
    assert "inconsistent" in ok("reduce", str(tmp_path / "two.csv"), "-d", "d")


def test_names_cannot_steer_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('"\x1b[31mred",d\n1,x\n2,y\n')
    out = ok("reduce", str(tmp_path / "t.csv"), "-d", "d")
    assert "\x1b" not in out
    assert "\\x1b[31mred" in out


def test_a_reader_that_leaves_early_is_no_traceback() -> None:
    with subprocess.Popen([PLAR, "reduce", TABLE, "-d", "x_wins", "--json"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:  # fmt: skip
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_a_reader_that_leaves_early_loses_no_file(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    command = [PLAR, "reduce", TABLE, "-d", "x_wins", "--report", str(page), "-q"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert page.read_text().rstrip().endswith("</html>")


def test_bins_by_rule_and_by_column(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("age,a=b,d\n" + "".join(f"{i + 20},{i * 3},{int(i > 9)}\n" for i in range(20)))
    found = json.loads(ok("reduce", str(path), "-d", "d", "--bins", "mdlp", "--json"))
    assert found["cuts"]["age"] == [29.5]
    by_column = ("--bins", "age=quantile:4", "--bins", "a=b=10,20.5")
    found = json.loads(ok("reduce", str(path), "-d", "d", *by_column, "--json"))
    assert found["settings"]["bins"] == {"age": "quantile:4", "a=b": [10.0, 20.5]}
    assert found["cuts"]["a=b"] == [10.0, 20.5]
    library = plar.reduce(path, "d", bins={"age": "quantile:4", "a=b": [10.0, 20.5]})
    assert found["attributes"] == list(library.attributes)


def test_warnings_are_one_line_and_leave_json_alone(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pl.DataFrame({"x": [i / 7 for i in range(200)], "d": [i % 2 for i in range(200)]}).write_parquet(path)
    done = run("reduce", str(path), "-d", "d", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["attributes"] == ["x"]
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith("Warning: ")
    assert "bins" in done.stderr


@pytest.mark.parametrize("command", ["reduce", "relevant", "reducts", "verify", "core", "theta", "granulate"])
def test_the_decision_is_also_called_target(command: str, tmp_path: Path) -> None:
    assert "-d, --decision, --target NAME" in " ".join(ok(command, "--help").split())
    first, more = {
        "verify": ([str(tmp_path / "proof.json")], []),
        "theta": ([], ["-a", "top_left"]),
        "granulate": ([], ["-o", str(tmp_path / "g.parquet")]),
        "reducts": ([], ["--limit", "1"]),
    }.get(command, ([], []))
    if command == "verify":
        ok("reduce", TABLE, "-d", "x_wins", "--search", "smallest", "--proof", first[0])
    ok(command, *first, TABLE, "--target", "x_wins", *more)


def test_a_report(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    page = tmp_path / "r.html"
    done = run("reduce", TABLE, "-d", "x_wins", "--report", str(page))
    assert done.returncode == 0, done.stderr
    assert "9 columns" in done.stdout
    assert f"Wrote {page}." in done.stderr
    assert "plar reduce" in page.read_text()
    done = run("reduce", TABLE, "-d", "x_wins", "--report", "-")
    assert done.stdout.lower().startswith("<!doctype html>")
    assert "9 columns" in done.stderr
