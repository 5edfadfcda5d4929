"""Run the code of a page in the order of reading, and compare what it shows with what happens.

    python tests/support/run_page.py PAGE

All blocks of a page share one folder, in which examples/ is found, and the Python blocks one namespace.

- ``python``: what a ``text`` block right after it shows is what was printed; ``expression  # value`` has that value
  (of a numpy scalar: its Python number).
- ``console``: every command is run and prints what is shown. Those that change this machine or need another one are not
  run; of plar's own among them the options are checked.

In what is shown ``…`` stands for anything, seconds may be any, and blanks at the end of a line do not count.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

#: installs something, or is tested by a program of its own
NOT_RUN = ("pip ", "make ")
#: how a command says that it cannot be run here
ELSEWHERE = "# on a cluster"
SECONDS = re.compile(r"\d[\d.]* s\b")
VALUE = re.compile(r"""[-\d("'\[{<]|True|False|None""")


class Block(NamedTuple):
    """A fenced block: its language, text and line."""

    language: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    matches = re.finditer(r"^```(\w+)[^\n]*\n(.*?)^```", text, flags=re.M | re.S)
    return [Block(m[1], m[2], text.count("\n", 0, m.start()) + 2) for m in matches]


def same(shown: str, got: str) -> bool:
    """Whether what was got is what is shown."""
    shown, got = (
        "\n".join(line.rstrip() for line in SECONDS.sub("s", text).strip().splitlines()) for text in (shown, got)
    )
    return re.fullmatch(".*?".join(map(re.escape, shown.split("…"))), got, flags=re.S) is not None


def run_python(block: Block, page: str, names: dict[str, Any]) -> str:
    """Run a block; what it printed."""
    tree, lines = ast.parse(block.text), block.text.splitlines()
    ast.increment_lineno(tree, block.line - 1)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for statement in tree.body:
            if not isinstance(statement, ast.Expr):
                exec(compile(ast.Module([statement], []), page, "exec"), names)
                continue
            value = eval(compile(ast.Expression(statement.value), page, "eval"), names)
            end = lines[(statement.end_lineno or 0) - block.line].encode()[statement.end_col_offset or 0 :].decode()
            comment = end.partition("# ")[2]
            if VALUE.match(comment):
                value = value.item() if isinstance(value, np.generic) else value
                told = comment.partition(": ")[0] if ": " in comment and comment[0] not in "{<" else comment
                assert same(told, repr(value)), f"{page}:{statement.lineno}: shown {comment}, got {value!r}"
    return printed.getvalue()


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """Commands of a block, each with the output that is shown."""
    for part in re.split(r"^\$ ", block.text, flags=re.M)[1:]:
        command, _, shown = part.replace("\\\n", "\x00").partition("\n")
        yield command.replace("\x00", "\\\n"), shown


def check_options(command: str) -> None:
    """Whether plar has the options of a command that is not run."""
    _, name, *words = command.partition("#")[0].split()
    told = subprocess.check_output([sys.executable, "-m", "plar", name, "--help"], text=True)
    known = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", told))
    assert {word for word in words if word.startswith("-")} <= known, command


def run_console(block: Block, page: str) -> None:
    for command, shown in commands(block):
        if command.startswith(NOT_RUN):
            continue
        if command.endswith(ELSEWHERE):
            check_options(command)
            continue
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert done.returncode == 0, f"{page}:{block.line}: $ {command}\n{done.stdout}"
        if shown.strip():
            assert same(shown, done.stdout), f"{page}:{block.line}: $ {command}\n{done.stdout}"


def main() -> None:
    page = Path(sys.argv[1])
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = None
    for block in blocks(page):
        if block.language == "text" and printed is not None:
            assert same(block.text, printed), f"{page.name}:{block.line}: shown otherwise than printed:\n{printed}"
        printed = run_python(block, page.name, names) if block.language == "python" else None
        if block.language == "console":
            run_console(block, page.name)


if __name__ == "__main__":
    main()
