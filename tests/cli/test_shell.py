"""plar in a shell: pipes, terminals of several widths, interrupts, and the Tab key in real shells."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import plar
from support.shell import PLAR, TABLE, on_a_terminal, run


def typed(command: list[str], dialogue: list[tuple[str, str]], folder: Path) -> None:
    """Type keys as a person does, and wait after each for what the terminal is to show."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.environ.update(HOME=str(folder), TERM="xterm", COLUMNS="200")
        os.execvp(command[0], command)
    try:
        for keys, expected in dialogue:
            os.write(terminal, keys.encode())
            shown, end = "", time.monotonic() + 300
            while expected not in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x07", "", shown):
                left = end - time.monotonic()
                assert left > 0, f"waited for {expected!r}, got {shown!r}"
                if select.select([terminal], [], [], left)[0]:
                    shown += os.read(terminal, 65536).decode(errors="replace")
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


def test_progress_on_a_terminal_and_silence_in_a_pipe() -> None:
    assert run("reduce", TABLE, "-d", "x_wins").stderr == ""
    code, shown = on_a_terminal("reduce", TABLE, "-d", "x_wins")
    assert code == 0
    assert any(word in shown for word in ("opening", "reading", "compiling", "core", "step", "checking"))


def test_interrupt_ends_with_130(tmp_path: Path) -> None:
    (tmp_path / "0.csv").write_text("a,b,d\n" + "\n".join(f"{i},{i % 7},{i % 3}" for i in range(1_000_000)) + "\n")
    for i in range(1, 50):  # more than is read before a signal comes, however busy the machine
        os.link(tmp_path / "0.csv", tmp_path / f"{i}.csv")
    code, shown = on_a_terminal("reduce", str(tmp_path / "*.csv"), "-d", "d", interrupt_at=b"reading")
    assert code == 130
    assert "Interrupted." in shown
    assert "Traceback" not in shown


def piped(words: list[str], content: bytes, **more: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([PLAR, *words], input=content, capture_output=True, timeout=300, check=False, **more)


def frame_as(kind: str) -> bytes:
    frame, buffer = pl.read_csv(TABLE), io.BytesIO()
    if kind == "arff":
        head = "".join(f"@attribute {name} {{x,o,b,positive,negative}}\n" for name in frame.columns)
        return f"@relation t\n{head}@data\n{frame.write_csv(include_header=False)}".encode()
    if kind == "tsv":
        return frame.write_csv(separator="\t").encode()
    write = {
        "csv": frame.write_csv,
        "ndjson": frame.write_ndjson,
        "parquet": frame.write_parquet,
        "arrow": frame.write_ipc,
    }
    write[kind](buffer)  # type: ignore[operator]
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["csv", "tsv", "ndjson", "parquet", "arrow", "arff"])
def test_a_table_from_stdin(kind: str, tmp_path: Path) -> None:
    words = ["reduce", "-", "-d", "-1", "--json", *(["--format", kind] if kind != "csv" else [])]
    done = piped(words, frame_as(kind), env={**os.environ, "TMPDIR": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["source"] == "-"
    assert found["attributes"] == list(plar.reduce(TABLE, decision="x_wins").attributes)
    left = [file for file in tmp_path.rglob("*") if file.is_file()]  # polars makes a folder for its cache
    assert left == []


def test_granules_through_a_pipe() -> None:
    granules = piped(["granulate", "-", "-d", "x_wins", "-o", "-"], Path(TABLE).read_bytes())
    assert b"958 rows, 958 distinct." in granules.stderr
    found = piped(["core", "-", "--format", "parquet", "--json"], granules.stdout)
    assert json.loads(found.stdout)["core"] == []


def test_what_is_wrong_with_stdin_is_said_and_nothing_stays(tmp_path: Path) -> None:
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    for content, said in [(b"", "standard input is empty"), (b"a,d\n1,2\n1\n", "standard input, line 3")]:
        done = piped(["reduce", "-", "-d", "d"], content, env=env)
        assert done.returncode == 2
        assert said in done.stderr.decode()
        assert len(done.stderr.splitlines()) == 1
        assert list(tmp_path.iterdir()) == []
    for kind in ("parquet", "arrow", "arff", "ndjson"):
        done = piped(["reduce", "-", "-d", "-1"], frame_as(kind), env=env)
        assert done.returncode == 2
        assert f"Add --format {kind}." in done.stderr.decode()
    done = piped(["reduce", "-", "-d", "d"], b'[\n  {"a": 1, "d": 0}\n]\n', env=env)
    assert (done.returncode, b"Add --format json." in done.stderr) == (2, True)
    code, shown = on_a_terminal("reduce", "-", "-d", "d", stdin_too=True)
    assert code == 2
    assert "Standard input is a terminal" in shown


@pytest.mark.parametrize("kind", ["csv", "tsv", "ndjson", "parquet", "arrow"])
def test_the_reduced_table_to_stdout(kind: str) -> None:
    words = ["reduce", TABLE, "-d", "x_wins", "-o", "-", *(["--output-format", kind] if kind != "csv" else [])]
    done = piped(words, b"")
    assert done.returncode == 0, done.stderr
    assert b"9 columns" in done.stderr
    again = piped(["reduce", "-", "-d", "x_wins", "--format", kind, "--json"], done.stdout)
    assert set(json.loads(again.stdout)["conditions"]) == set(plar.reduce(TABLE, "x_wins").attributes)


def test_a_table_may_be_called_as_stdout_is(tmp_path: Path) -> None:
    path = tmp_path / "stdout.csv"
    path.write_bytes(Path(TABLE).read_bytes())
    done = run("reduce", path.name, "-d", "x_wins", "-o", "-", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].endswith(",x_wins")


def test_quiet_and_verbose(tmp_path: Path) -> None:
    done = run("reduce", TABLE, "-d", "x_wins", "-q", "-o", str(tmp_path / "r.csv"))
    assert done.stderr == ""
    assert on_a_terminal("reduce", TABLE, "-d", "x_wins", "--quiet") == (0, "")
    told = run("reduce", TABLE, "-d", "x_wins", "-v").stderr.splitlines()
    assert [line.split()[0] for line in told] == ["rows", "memory", "core", *["step"] * 8, "checked"]
    assert "958 rows, 958 distinct" in told[0]
    assert told[3].startswith("step 1      middle_middle, ")


def test_a_terminal_is_left_clean(tmp_path: Path) -> None:
    """One live line: cut where the terminal ends, names as plain text, and gone in the end."""
    path = tmp_path / "t.parquet"
    codes = np.random.default_rng(5).integers(0, 3, (60_000, 150), dtype=np.uint8)
    names = [f"[red]\x1b[31m{j}" for j in range(150)]
    pl.DataFrame({name: codes[:, j] for j, name in enumerate(names)}).with_columns(
        d=(codes[:, :6].sum(axis=1) % 5).astype(np.uint8)
    ).write_parquet(path)
    for width in (80, 40):
        code, shown = on_a_terminal("reduce", str(path), "-d", "d", "-j", "1", width=width)
        assert code == 0
        assert "reading" in shown
        assert "step 1" in shown
        assert "\x1b[31m" not in shown
        bare = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
        assert max(len(line.rstrip()) for line in re.split(r"[\r\n]+", bare)) <= width
        assert shown.endswith("\x1b[1A\x1b[2K")  # up, and the line is gone


SHELLS = {
    "bash": "source s; COMP_WORDS=({words}); COMP_CWORD={last}; _plar_completion plar; "
    "printf '%s\\n' \"${{COMPREPLY[@]}}\"",
    "fish": "source s; complete --do-complete '{line}' | cut -f1",
}


def completed(shell: str, line: str, folder: Path) -> list[str]:
    """What Tab offers in a real shell."""
    words = line.split(" ")
    (folder / "s").write_text(script(shell))
    program = SHELLS[shell].format(line=line, words=" ".join(f"'{w}'" for w in words), last=len(words) - 1)
    env = {**os.environ, "PATH": f"{Path(PLAR).parent}:{os.environ['PATH']}", "HOME": str(folder)}
    done = subprocess.run([shell, "-c", program], cwd=folder, env=env, capture_output=True, text=True, timeout=300)
    assert done.stderr == ""
    return done.stdout.splitlines()


def script(shell: str) -> str:
    env = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    return subprocess.check_output([PLAR, "--show-completion", shell], env=env, text=True)


@pytest.fixture
def headed(tmp_path: Path) -> Path:
    (tmp_path / "t.csv").write_text("colour,cold,two words,$(touch evil)\\$(touch evil),d\n1,2,3,4,5\n")
    return tmp_path


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_completion_in_real_shells(shell: str, headed: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    assert {"reduce", "core", "theta"} <= set(completed(shell, "plar ", headed))
    assert completed(shell, "plar reduce t.csv --measure S", headed) == ["SCE"]
    assert sorted(completed(shell, "plar reduce t.csv -d col", headed)) == ["cold", "colour"]
    assert completed(shell, "plar reduce t.csv --conditions colour,d", headed) == ["colour,d"]
    assert "--decision" in completed(shell, "plar core --dec", headed)
    assert completed(shell, "plar reduce t.csv -d tw", headed) == ["two\\ words" if shell == "bash" else "two words"]
    completed(shell, "plar reduce t.csv -d ", headed)
    completed(shell, "plar reduce nowhere.csv -d ", headed)
    assert not (headed / "evil").exists()


def test_completion_in_zsh(headed: Path) -> None:
    """Its line editor wants a terminal, so a person's keys are sent to one."""
    if shutil.which("zsh") is None:
        pytest.skip("needs zsh")
    (headed / "_plar").write_text(script("zsh"))
    paths = f"PATH={Path(PLAR).parent}:$PATH; fpath=({headed} $fpath)"
    typed(
        ["zsh", "-f"],
        [
            (f"{paths}; PS1='re''ady> '; autoload -U compinit; compinit -u\r", "ready> "),
            ("plar reduce\t\t", "reduce "),  # typer's script is only loaded by the first
            ("t.csv -d colo\t", "colour "),
            ("-d tw\t", "two\\ words "),
            ("-d \t", "cold"),
        ],
        headed,
    )
    assert not (headed / "evil").exists()


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_streams(tmp_path: Path, closed: str) -> None:
    out = tmp_path / "o.csv"
    for words, code in ((f"reduce {TABLE} -d x_wins -o {out} --verbose", 0), (f"reduce {TABLE} -d nothing", 2)):
        done = subprocess.run(["sh", "-c", f"{PLAR} {words} {closed}"], capture_output=True, text=True, check=False)
        assert done.returncode == code, done
        assert "Traceback" not in done.stderr
    assert out.read_text() == plar.reduce(TABLE, "x_wins").transform(TABLE).write_csv()
