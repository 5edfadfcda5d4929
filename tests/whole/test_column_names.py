"""Any text can be the name of a column: messages stay one printable line, and nothing reaches a terminal raw."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import plar
from plar.errors import printable
from plar.input.tables.source import sink_frame
from support.environment import PLAR
from support.odd_names import NAMES, odd_table


def orders() -> list[list[str]]:
    """Each name is among the first two, which are told, at some time."""
    return [NAMES[2 * k :] + NAMES[: 2 * k] for k in range(len(NAMES) // 2 + 1)]


def plain(text: str) -> bool:
    """Whether nothing but lines of printable characters would reach a terminal."""
    return text.replace("\n", "").isprintable()


@pytest.mark.parametrize("names", orders(), ids=range(len(orders())))
def test_the_library_takes_any_name(tmp_path: Path, names: list[str]) -> None:
    columns = odd_table(names)
    reduct = plar.reduce(columns, "class", include=[names[2]])
    assert set(reduct.core) == set(names[:2])
    assert plain(str(reduct))
    assert plain(repr(reduct))
    reduct.save(tmp_path / "r.json")
    assert plar.load(tmp_path / "r.json") == reduct
    assert json.loads((tmp_path / "r.json").read_text())["core"] == list(reduct.core)
    granules = plar.granulate(columns, "class")
    assert plain(repr(granules))
    granules.save(tmp_path / "g.parquet")
    again = plar.reduce(tmp_path / "g.parquet")
    assert (again.core, again.cardinalities) == (reduct.core, reduct.cardinalities)
    frame = pl.DataFrame(columns)
    for suffix in (".csv", ".parquet", ".ndjson", ".arrow"):
        path = tmp_path / f"t{suffix}"
        sink_frame(frame.lazy(), path)
        opened = plar.read_table(path, "class")
        # text is trimmed
        assert opened.names == tuple(name.strip() if suffix == ".csv" else name for name in columns)
        assert plain(repr(opened))
        assert len(plar.reduce(opened).attributes) == 2


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_messages_are_one_printable_line(tmp_path: Path, name: str) -> None:
    columns = {name: [1, 2], "other": [None, 1], "class": [0, 1]}
    faults = [
        lambda: plar.reduce(columns, "nowhere"),
        lambda: plar.reduce(columns, "class", include=[name + "?"]),
        lambda: plar.reduce(columns, "class", measure=name),
        lambda: plar.reduce(columns, "class", missing="error"),
        lambda: plar.reduce({name: [1.5, -1], "class": [0, 1]}, "class", weights=name),
        lambda: plar.reduce({name: [[1], [2]], "class": [0, 1]}, "class"),
        lambda: plar.reduce(columns, name, conditions=[name]),
        lambda: plar.reduce(pl.DataFrame({name: [{"x": 1}], "d": [1]}), "d"),
        lambda: plar.reduce(tmp_path / (name.replace("\0", "").replace("/", "")[:200] + ".csv"), "d"),
        lambda: plar.reduce(columns, "class", engine=name),
    ]
    fault: Callable[[], object]
    for fault in faults:
        with pytest.raises(plar.PlarError) as caught:
            fault()
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) <= 800


@pytest.mark.parametrize("name", ["\0odd", "\0len", "\0bad", "\0word0"])
def test_names_that_plar_uses_itself(tmp_path: Path, name: str) -> None:
    columns = {name: [0, 1], "b": [0, 0], "class": [0, 1]}
    assert plar.reduce(columns, "class").attributes == (name,)
    for file in (tmp_path / "t.csv", tmp_path / "t.parquet"):
        frame = pl.DataFrame(columns)
        frame.write_csv(file) if file.suffix == ".csv" else frame.write_parquet(file)
        assert plar.reduce(file, "class").attributes == (name,)


def test_lone_surrogates(tmp_path: Path) -> None:
    """Python can hold them, files in UTF-8 cannot."""
    odd = "a\ud800"
    columns = {odd: [0, 1], "b": [0, 0], "class": [0, 1]}
    reduct = plar.reduce(columns, "class")
    assert reduct.attributes == (odd,)
    assert plain(str(reduct))
    str(reduct).encode()
    reduct.save(tmp_path / "r.json")
    assert plar.load(tmp_path / "r.json") == reduct
    with pytest.raises(plar.PlarError) as caught:
        plar.granulate(columns, "class").save(tmp_path / "g.parquet")
    assert str(caught.value).isprintable()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["r.json"]
    (tmp_path / "t.ndjson").write_text('{"a\\ud800": 1, "d": 1}\n')
    assert plain(str(plar.reduce(tmp_path / "t.ndjson", "d")))


def run(*words: str, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([PLAR, *words], capture_output=True, cwd=cwd, timeout=300, check=False)


def test_the_command_prints_no_raw_control_byte(tmp_path: Path) -> None:
    names = [name for name in NAMES if "\0" not in name]
    path = tmp_path / "odd\x1b[31m\u202e 'n\"\n<b>.csv"
    pl.DataFrame(odd_table(names)).write_csv(path)
    done = run("reduce", path.name, "-d", "class", "--include", "=1+1", "-o", "out\x1b[2J.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert plain(done.stdout.decode())
    assert plain(done.stderr.decode())
    assert (tmp_path / "out\x1b[2J.csv").exists()
    told = json.loads(run("reduce", path.name, "-d", "class", "--json", cwd=tmp_path).stdout)
    assert told["conditions"] == [name.strip() for name in names]
    core = run("core", path.name, "-d", "class", cwd=tmp_path)
    assert plain(core.stdout.decode())
    assert core.stdout.decode().splitlines() == [printable(name) for name in names[:2]]
    for words in (
        ("reduce", path.name, "-d", "nowhere\x1b[31m"),
        ("reduce", "nowhere\x1b[31m\n.csv", "-d", "x"),
        ("reduce", path.name, "-d", "class", "-o", "out.\x1b[31m"),
        ("theta", path.name, "-d", "class", "-a", "\x1b[31m"),
        ("granulate", path.name, "-d", "class", "-o", "\x1b[31m"),
        ("reduce", path.name, "-d", "class", "--measure", "\x1b[31m\n"),
    ):
        failed = run(*words, cwd=tmp_path)
        assert failed.returncode == 2, words
        line = failed.stderr.decode()
        assert line.count("\n") == 1, line
        assert plain(line), line


def test_progress_on_a_terminal_is_plain(tmp_path: Path) -> None:
    """What a terminal gets beside the program's own control sequences has none of the data's."""
    pl.DataFrame(odd_table(["\x1b[31mred", "[bold]markup[/bold]", "\x07bell", "[/]", "%s", "e"])).write_csv(
        tmp_path / "t.csv"
    )
    ours, theirs = pty.openpty()
    command = [PLAR, "reduce", "t.csv", "-d", "class"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, cwd=tmp_path) as running:
        os.close(theirs)
        seen = b""
        try:
            while piece := os.read(ours, 4096):
                seen += piece
        except OSError:  # the end of a terminal
            pass
        assert running.stdout is not None
        assert plain(running.stdout.read().decode())
        assert running.wait(timeout=300) == 0, seen
    os.close(ours)
    assert b"\x1b[31mred" not in seen
    assert b"\x07" not in seen
