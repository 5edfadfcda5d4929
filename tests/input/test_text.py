"""The reader of text files, against Python's csv module: any quotes, line ends, chunks and threads."""

from __future__ import annotations

import csv
import gzip
import io
import os
import random
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import plar
from plar.errors import TableError
from plar.input.text import chunks, reader, repeats, rows
from plar.input.text.reader import CodedRows, TextFile, open_text
from plar.options import ReadOptions
from plar.runtime.parallel import threads
from support.environment import TURNS

#: how many random files; the nightly run has 10,000
FILES = 250 if TURNS == 1 else 500 * TURNS

Row = tuple[str | None, ...]


def opened(*files: Path, **options: Any) -> TextFile:
    """Text files whose headers have been read."""
    return open_text(files, "text", ReadOptions(**options))


def rows_of(found: CodedRows) -> list[Row]:
    """Every row as often as it is there, in the order in which they were read where each is there once."""
    rows = zip(*([column.values[code] for code in column.codes] for column in found.columns), strict=True)
    return [row for row, n in zip(rows, found.counts.tolist(), strict=True) for _ in range(n)]


def expected(text: str, separator: str) -> tuple[list[str], list[Row]] | None:
    """What the csv module reads from lines that end in LF; None where it cannot, or where rows differ in length."""
    try:
        table = list(csv.reader(io.StringIO(text, newline="\n"), delimiter=separator, strict=True))
    except csv.Error:
        return None
    table = [row for row in table if len(row) > 1 or (row and row[0].strip(" \t"))]
    if not table or any(len(row) != len(table[0]) for row in table):
        return None
    names = [name.strip() or f"x{j}" for j, name in enumerate(table[0])]
    if len(set(names)) < len(names):
        return None
    return names, [tuple(value.strip() or None for value in row) for row in table[1:]]


def some_text(pick: random.Random, separator: str) -> str:
    """Rows of values with quotes where they belong, where they do not, and of every length."""
    width, end = pick.randint(2, 5), pick.choice(["\n", "\n", "\r\n"])

    def value() -> str:
        kind = pick.random()
        plain = pick.choice(["a", "b", "", " a ", "10", "a longer value", "exactly8", "naïve", "x" * 30, "-1.5e3"])
        if kind < 0.7:
            return plain
        if kind < 0.85:
            inner = pick.choice([plain, f"x{separator}y", 'q""q', "two\nlines", '""', "two\r\nlines", "a\rb", "a\r"])
            return f'"{inner}"'
        return pick.choice(['5"', 'a"b"c', "'", '"a" ', '"a"b', '"', "\\", "%", "\t", "\0"])

    names = [f"n{j}" for j in range(width)]
    lines = [separator.join(names)]
    for _ in range(pick.randint(1, 40)):
        lines.append(separator.join(value() if pick.random() < 0.3 else pick.choice("ab1") for _ in names))
        if pick.random() < 0.03:
            lines.append(pick.choice(["", "  ", "a" + separator]))
        if pick.random() < 0.01:
            lines[-1] += pick.choice(["\r", "\r\r", '"', "\rx", " \r"])
        if pick.random() < 0.005:
            lines[-1] = pick.choice(["\r", "x\ry"]) + lines[-1]
    return end.join(lines) + pick.choice(["", end, end + end])


@pytest.fixture(params=[None, 64], ids=["usual sizes", "tiny sizes"])
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The usual sizes, or chunks, blocks and limits of distinct rows so small that even small files have many."""
    if request.param:
        monkeypatch.setattr(chunks, "_CHUNK_BYTES", request.param)
        monkeypatch.setattr(chunks, "_HEAD_BYTES", 16)
        monkeypatch.setattr(reader, "_BYTES_PER_THREAD", request.param)
        monkeypatch.setattr(rows, "_DISTINCT_BYTES", request.param)
        monkeypatch.setattr(rows, "_MIN_DISTINCT_BYTES", request.param)
        monkeypatch.setattr(repeats, "_ROWS_ON_TRIAL", 8)
        monkeypatch.setattr(rows, "_MIN_ROWS_PER_CALL", 3)
        monkeypatch.setattr(rows, "_CELLS_PER_CALL", 1)
        monkeypatch.setattr(rows, "_CELLS_PER_BLOCK", 1)
    return request.param


def test_random_files_are_read_as_python_reads_them(tmp_path: Path, sizes: Any) -> None:
    pick = random.Random(20261116)
    read = refused = 0
    for number in range(FILES):
        separator = pick.choice(",,;|\t")
        text = some_text(pick, separator)
        path = tmp_path / "t.csv"
        path.write_bytes(text.encode())
        right = expected(text, separator)
        for n_jobs, group in product((1, 3), (False, True)):
            if right is None or not right[1]:
                with pytest.raises(TableError), threads(n_jobs):
                    opened(path, separator=separator).read(["n0"], group=group)
                refused += 1
                continue
            table = opened(path, separator=separator)
            with threads(n_jobs):
                found = table.read(table.names, group=group)
            assert list(table.names) == right[0], (number, text)
            if group:
                assert Counter(rows_of(found)) == Counter(right[1]), (number, text)
                assert (
                    not found.distinct
                    or len(set(rows_of(found))) == len(found.counts)
                    or any(column.merged for column in found.columns)
                )
            else:
                assert rows_of(found) == right[1], (number, text)
            for column in found.columns:
                assert set(column.codes.tolist()) == set(range(len(column.values))), (number, text)
            read += 1
    assert read > FILES
    assert refused > FILES / 10


def test_threads_and_sizes_change_nothing(tmp_path: Path, sizes: Any) -> None:
    pick = random.Random(3)
    table_rows = [
        [pick.choice(["x", "yy", "a long value", ""]), str(pick.randrange(400)), pick.choice("01")] for _ in range(3000)
    ]
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress("\n".join(map(",".join, [["a", "b", "d"], *table_rows])).encode()))
    table, several = opened(path), []
    for n_jobs in (1, 2, 5):
        with threads(n_jobs):
            several.append(table.read(table.names))
    for found in several:
        # values in the order in which they appear
        assert [c.values for c in found.columns] == [c.values for c in several[0].columns]
        assert Counter(rows_of(found)) == Counter(tuple(v or None for v in row) for row in table_rows)
    with threads(5):
        found = table.read(["d", "b"], group=False)
    assert rows_of(found) == [(row[2], row[1]) for row in table_rows]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("1,2\n1,2,3\n1\n", "line 3: 3 fields where 2 are expected"),
        ('1,2\n"a\nb",2\n1,"2"x\n', "line 5: ',' expected after a closing quote"),
        ('1,2\n1,"2\n3,4\n', "line 3: a quote is not closed"),
        ("1,2\n" * 999 + "1\n" + "1,2\n" * 999 + "1,2,3\n", "line 1001: 1 field where 2"),
        ("1,2\n" * 500 + "1,\xff\n", None),
    ],
)
def test_the_first_fault_is_told_with_its_line(tmp_path: Path, sizes: Any, rows: str, message: str | None) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,d\n" + rows.encode("latin-1"))
    for n_jobs in (1, 4):
        with pytest.raises(TableError, match=message or "line 502: byte 0xff is not UTF-8"), threads(n_jobs):
            opened(path).read(["a", "d"])


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16", "utf-16-le", "shift_jis", "utf-32"]
)
def test_encodings(tmp_path: Path, encoding: str) -> None:
    word = "日本" if encoding == "shift_jis" else "naïve"
    path = tmp_path / "t.csv"
    path.write_bytes(f"a,{word}\n{word},1\nx,2\n".encode(encoding))
    table = opened(path, encoding=encoding)
    assert table.names == ("a", word)
    assert rows_of(table.read(table.names)) == [(word, "1"), ("x", "2")]
    with pytest.raises(plar.ParameterError, match="Unknown encoding 'klingon'"):
        plar.read_table(path, "a", encoding="klingon")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are counted as Linux tells them")
def test_a_glob_of_more_files_than_can_be_open(tmp_path: Path) -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    paths = [tmp_path / f"t{j:03}.csv" for j in range(150)]
    for j, path in enumerate(paths):
        path.write_text(f"a,d\n{j},x\n")
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 40, hard))
    try:
        with threads(2):
            assert len(opened(*paths).read(["a", "d"]).counts) == 150
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_byte_order_mark_is_one_at_the_beginning_only(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("\ufeffa,d\n\ufeff1,x\n", encoding="utf-8")
    table = opened(path)
    assert table.names == ("a", "d")
    assert rows_of(table.read(table.names)) == [("\ufeff1", "x")]


def test_as_many_threads_read_as_were_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,d\n" + "1,x\n2,y\n" * 1000)
    monkeypatch.setattr(reader, "_BYTES_PER_THREAD", 1)
    started, work = [], TextFile._work

    def noted(self: TextFile, wanted: list[int], group: bool, n_jobs: int) -> Any:
        started.append(n_jobs)
        return work(self, wanted, group, n_jobs)

    monkeypatch.setattr(TextFile, "_work", noted)
    for n_jobs in (1, 3):
        assert plar.reduce(path, "d", n_jobs=n_jobs).attributes == ("a",)
    assert started == [1, 3]


def test_equal_rows_of_different_lines_are_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # whole lines are compared first, and their rows only in the end; past 256 values codes take more bytes
    monkeypatch.setattr(chunks, "_CHUNK_BYTES", 1 << 13)
    pick = random.Random(4)
    drawn = [(str(pick.randrange(4 if i < 10_000 else 400)), str(pick.randrange(2))) for i in range(20_000)]
    path = tmp_path / "t.csv"
    path.write_bytes("".join(["a,d\n", *(f"{a},{d}" + pick.choice(("\n", "\r\n")) for a, d in drawn)]).encode())
    granules = plar.granulate(path, "d")
    (values,), (decisions,) = granules.dictionaries, granules.decision_values
    each = zip(granules.columns[0].tolist(), granules.decision_codes.tolist(), granules.counts.tolist(), strict=True)
    assert {(values[v], decisions[d]): n for v, d, n in each} == Counter(drawn)
    assert len(granules) == len(set(drawn))
