"""What --help says: options under headings, in few words, with an example that works."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from plar.options import Heading
from support.environment import ROOT
from support.shell import PLAR, run

COMMANDS = (
    *("select", "reduce", "check", "relevant", "reducts", "core", "theta", "approximations", "rules", "predict"),
    *("verify", "granulate", "engines", "schema"),
)


def help_of(*command: str, columns: int = 80) -> str:
    environment = {**os.environ, "COLUMNS": str(columns)}
    return subprocess.check_output([PLAR, *command, "--help"], env=environment, text=True)


def sections_of(text: str) -> dict[str, list[str]]:
    """The options under each heading, by their long names."""
    parts = re.split(r"^(\S.*):\n", text, flags=re.M)
    headings = parts[1::2]
    contents = parts[2::2]
    names = [re.findall(r"^  (?:-\w, )?(--[\w-]+)", content, flags=re.M) for content in contents]
    return dict(zip(headings, names, strict=True))


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the examples name."""
    folder = tmp_path_factory.mktemp("clone")
    (folder / "examples").symlink_to(ROOT / "examples")
    table = ("examples/passengers.csv", "-d", "survived")
    made = [
        run("reduce", *table, "--search", "smallest", "--proof", "proof.json", cwd=folder),
        run("rules", *table, "-o", "rules.json", cwd=folder),
    ]
    selected = run("select", *table, "--json", cwd=folder)
    (folder / "selected.json").write_text(selected.stdout)
    for done in (*made, selected):
        assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS)])
def test_the_example_works(command: tuple[str, ...], clone: Path) -> None:
    example = re.findall(r"^  Example: (.+)$", help_of(*command, columns=40), flags=re.M)
    assert len(example) == 1
    assert example[0].startswith(" ".join(("plar", *command)))
    environment = {**os.environ, "PATH": f"{Path(PLAR).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        example[0], shell=True, cwd=clone, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert command not in ((), ("select",)) or "Warning" not in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_stands_under_a_heading(command: str) -> None:
    sections = sections_of(help_of(command))
    headings = [heading for heading in sections if heading != "Arguments"]
    assert headings == [heading for heading in Heading if heading in sections]
    assert sections["Messages and help"][-1] == "--help"
    options = [option for section in sections.values() for option in section]
    assert len(options) == len(set(options))


def test_the_options_of_select() -> None:
    text = help_of("select")
    sections = sections_of(text)
    assert list(sections) == ["Arguments", *Heading]
    assert sections["Columns"][0] == "--target"
    assert sections["Columns"][3:] == ["--include", "--exclude", "--keep"]
    assert sections["What to find"] == ["--alpha", "--max-columns", "--given", "--target-type"]
    assert sections["Reading the table"][:2] == ["--bins", "--target-bins"]
    defaults = dict(
        re.findall(r"(--[\w-]+) [A-Z]+ (?:(?!  --).)*?\[default: (\w[\w.-]*)\]", " ".join(text.split("\n")))
    )
    shown = {name: default for name, default in defaults.items() if name in ("--bins", "--missing-decision", "--alpha")}
    assert shown == {"--bins": "auto", "--missing-decision": "drop", "--alpha": "0.05"}
    words = set(re.findall(r"[a-z]+", text.replace("--missing-decision", "").replace("--decision", "").lower()))
    assert not words & {"decision", "reduct", "reduced", "core"}


def test_the_headings_of_reduce() -> None:
    sections = sections_of(help_of("reduce"))
    assert list(sections) == ["Arguments", *Heading]
    assert sections["Columns"] == ["--decision", "--conditions", "--drop", "--include", "--exclude"]
    assert sections["What to find"][:3] == ["--measure", "--alpha", "--max-attributes"]
    assert sections["Reading the table"][:2] == ["--bins", "--decision-bins"]
    assert "--no-header" in sections["Reading the table"]
    assert sections["Output"][:3] == ["--json", "--report", "--output"]
    assert sections["Limits"] == ["--time-limit", "--memory-limit", "--checkpoint"]
    assert sections["Where to compute"] == ["--engine", "--jobs", "--master", "--conf"]
    assert sections["Messages and help"] == ["--quiet", "--verbose", "--help"]


@pytest.mark.parametrize("command", COMMANDS)
def test_no_default_or_type_reads_wrongly(command: str) -> None:
    text = " ".join(help_of(command).split())
    assert not re.search(r"default: (True|False|None)", text)
    assert not re.search(r"<\w+>|\{\w+\}| / --", text)


def test_the_program_lists_commands_before_options() -> None:
    text = help_of()
    sections = sections_of(text)
    assert list(sections) == ["Commands", "Options"]
    commands = text.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()
    assert [line.split()[0] for line in commands] == list(COMMANDS)
    assert all(line.endswith(".") and not line.endswith("..") for line in commands)
    assert run().stdout.split() == run("--help").stdout.split()


@pytest.mark.parametrize(("columns", "widest"), [(80, 80), (120, 100)])
@pytest.mark.parametrize("command", COMMANDS)
def test_lines_fit_and_are_plain_text(command: str, columns: int, widest: int) -> None:
    text = help_of(command, columns=columns)
    assert max(map(len, text.splitlines())) <= widest
    assert "\x1b" not in text
