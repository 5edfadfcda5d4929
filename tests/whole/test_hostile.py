"""Names and values that want to break the line, the terminal, the JSON, the page or the program: they never do."""

from __future__ import annotations

import ast
import json
import os
import pty
import subprocess
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import plar
from plar.errors import printable
from plar.input.tables.source import sink_frame
from support.environment import PLAR

SOURCE = Path(plar.__file__).parent
#: one name for each way to do harm; a null byte cannot stand in a file's name or on a command line
NAMES = [
    'quo"te', "apo'strophe", "new\nline", "re\rturn", "tab\tbed", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "bell\x07",
    "del\x7f", "c1\x9b31m",  "emoji 🎉👩‍👩‍👧", "ltr\u202eabc\u202c", "b\ufeffom", "zero\u200bwidth", "line\u2028sep",
    "long" * 2500, "e\u0301", "__proto__", "constructor", "<script>alert(1)</script>", "<img src=x onerror=alert(1)>",
    "a&amp;b",
    "{{7*7}}", "{% raw %}", "${7*7}", "=1+1", "-rf", "--decision", "@import", "%n%s", "../../etc/passwd", "count", "y",
    "count_", "nu\0ll", "a,b", "a;b", "\\", "\\x1b", "nan", "None", "0", "-1", "*", "[a]",
    "^.*$",
]  # fmt: skip


def table(names: Sequence[str] = NAMES) -> dict[str, list[Any]]:
    """Every column but the first two is constant but for its hostile values, so that those two are the reduct."""
    n = 8
    columns: dict[str, list[Any]] = {name: [names[j % len(names)]] * n for j, name in enumerate(names)}
    columns[names[0]] = [f"{names[i % 2 + 1]}{i % 2}" for i in range(n)]
    columns[names[1]] = [f"{names[i // 2 % 2 + 3]}{i // 2 % 2}" for i in range(n)]
    columns["class"] = [f"{names[5]}{i % 4}" for i in range(n)]
    return columns


def orders() -> list[list[str]]:
    """Each name is among the first two, which are told, at some time."""
    return [NAMES[2 * k :] + NAMES[: 2 * k] for k in range(len(NAMES) // 2 + 1)]


def plain(text: str) -> bool:
    """Whether nothing but lines of printable characters would reach a terminal."""
    return text.replace("\n", "").isprintable()


@pytest.mark.parametrize("names", orders(), ids=range(len(orders())))
def test_the_library_takes_any_name(tmp_path: Path, names: list[str]) -> None:
    columns = table(names)
    found = plar.reduce(columns, "class", include=[names[2]])
    assert set(found.core) == set(names[:2])
    assert plain(str(found))
    assert plain(repr(found))
    found.save(tmp_path / "r.json")
    assert plar.load(tmp_path / "r.json") == found
    assert json.loads((tmp_path / "r.json").read_text())["core"] == list(found.core)
    granules = plar.granulate(columns, "class")
    assert plain(repr(granules))
    granules.save(tmp_path / "g.parquet")
    again = plar.reduce(tmp_path / "g.parquet")
    assert (again.core, again.cardinalities) == (found.core, found.cardinalities)
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
    found = plar.reduce(columns, "class")
    assert found.attributes == (odd,)
    assert plain(str(found))
    str(found).encode()
    found.save(tmp_path / "r.json")
    assert plar.load(tmp_path / "r.json") == found
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
    pl.DataFrame(table(names)).write_csv(path)
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
    pl.DataFrame(table(["\x1b[31mred", "[bold]markup[/bold]", "\x07bell", "[/]", "%s", "e"])).write_csv(
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


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the system does not tell the open files")
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", 'a,"b"x,d\n1,2,3\n'),
        ("t.csv", "a,b\rc,d\n1,2\n"),
        ("t.csv", 'a,b,d\n1,"2"x,3\n' + "1,2,3\n" * 5000),
        ("t.csv", "a,d\n1,2\n1\n1,2\n"),
        ("t.csv", "a,d\n1,\udcff\n1,2\n"),
        ("t.arff", "@relation t\n@attribute a nonsense\n@data\n1\n"),
        ("t.arff", "@relation t\n@nonsense\n@data\n1\n"),
        ("t.ndjson", '{"a": 1, "d": 1}\n[]\n{"a": 1, "d": 1}\n'),
    ],
)
def test_a_refused_file_is_not_kept_open(tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / name
    path.write_text(content, errors="surrogateescape")
    with pytest.raises(plar.TableError) as kept:  # with the traceback, and so with every local variable on the way
        plar.reduce(path, -1)
    opened = [os.path.realpath(file) for file in Path("/proc/self/fd").iterdir()]
    assert os.path.realpath(path) not in opened, kept.value


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


@pytest.mark.skipif(find_spec("jinja2") is None, reason="the report needs jinja2")
@pytest.mark.parametrize(
    "first", ["<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "</script><b>", "\x1b[31m"]
)
def test_the_report_escapes(tmp_path: Path, first: str) -> None:
    pytest.importorskip("matplotlib", reason="the report needs matplotlib")
    names = [first, *(name for name in NAMES if name != first)]
    calm, page = _Page(), _Page()
    plar.reduce(table([f"n_{j}" for j in range(len(names))]), "class", equivalent=True).report(tmp_path / "calm.html")
    plar.reduce(table(names), "class", equivalent=True).report(tmp_path / "r.html")
    calm.feed((tmp_path / "calm.html").read_text())
    text = (tmp_path / "r.html").read_text()
    page.feed(text)
    page.close()
    assert first not in text
    assert {tag for tag, _ in page.tags} <= {tag for tag, _ in calm.tags}, "names have become tags"
    assert [t for t, _ in page.tags].count("script") == [t for t, _ in calm.tags].count("script")
    assert not [a for _, given in page.tags for a in given if a.startswith("onerror")]


# ------------------------------------------------------------------------------------------- nothing runs data


#: what turns data into running code; Spark's own workers get what this very run has made, and no file, that way
FORBIDDEN = {"pickle", "cPickle", "cloudpickle", "joblib", "marshal", "shelve", "dill"}
TRANSPORT = {"engines/spark/sources.py", "engines/spark/session.py"}


def dangerous(path: Path) -> list[str]:
    """Uses of pickle and its kin, of eval and exec, and of numpy's loaders of pickles."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            module = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            found += [name for name in module if name.partition(".")[0] in FORBIDDEN]
        elif isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Name) and called.id in ("eval", "exec", "compile", "__import__"):
                found.append(called.id)
            if isinstance(called, ast.Attribute) and called.attr in ("read_pickle", "unsafe_load"):
                found.append(called.attr)
            found += [
                "allow_pickle"
                for word in node.keywords
                if word.arg == "allow_pickle"
                and not (isinstance(word.value, ast.Constant) and word.value.value is False)
            ]
    return found


def test_nothing_loads_pickles_from_files() -> None:
    found = {str(path.relative_to(SOURCE)): dangerous(path) for path in SOURCE.rglob("*.py")}
    used = {name for name, what in found.items() if what}
    assert used <= TRANSPORT, {name: found[name] for name in used - TRANSPORT}


def test_the_look_for_pickles_sees_them(tmp_path: Path) -> None:
    for line in ("import pickle", "from joblib import load", "eval('1')", "np.load(f, allow_pickle=True)", "exec(x)"):
        (tmp_path / "m.py").write_text(line)
        assert dangerous(tmp_path / "m.py"), line
    (tmp_path / "m.py").write_text("import json\nnp.load(f, allow_pickle=False)")
    assert not dangerous(tmp_path / "m.py")
