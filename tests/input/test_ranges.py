"""Text files that are divided by bytes: whatever the ranges, the parts are the rows of the whole, with their lines."""

from __future__ import annotations

import gzip
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plar
from plar.input.text.ranges import can_be_divided, divided, scan_range
from plar.input.text.reader import TextFile, open_text
from plar.options import ReadOptions
from support.environment import TURNS

COMMA = ReadOptions(separator=",")
#: fields as they are written, with quotes of every kind, in quotes and outside
FIELDS = ["", "x", '5"', 'a""b', '"y"', '"a,b"', '"line\nline"', '"\n"', '"say ""so"""', '""', '"""\n"""', "é", " "]
rows = st.lists(st.tuples(*[st.sampled_from(FIELDS)] * 3).filter(lambda row: "".join(row).strip()), min_size=1)


def parts_of(path: Path, cuts: list[int]) -> list[TextFile]:
    """The file in parts, from ranges that begin at any bytes."""
    whole = open_text([path], "text", COMMA)
    header, size = whole.headers[0], path.stat().st_size
    ends = sorted({header.size, size, *(cut for cut in cuts if header.size < cut < size)})
    scans = [(low, high, scan_range(path, low, high, header.dialect)) for low, high in pairwise(ends)]
    return [TextFile(whole.files, (part,), whole.encoding) for part in divided(header, scans)]


def rows_of(text: TextFile) -> list[tuple[str | None, ...]]:
    """All rows, value by value."""
    columns = text.read(text.names, group=False, trim=False).columns
    return list(zip(*([column.values[code] for code in column.codes] for column in columns), strict=True))


@settings(max_examples=100 * TURNS)
@given(table=rows, cuts=st.lists(st.integers(0, 300), max_size=12), end=st.sampled_from(["\n", "\r\n"]))
def test_parts_are_the_rows_of_the_whole(
    tmp_path_factory: pytest.TempPathFactory, table: list[tuple[str, ...]], cuts: list[int], end: str
) -> None:
    path = tmp_path_factory.mktemp("ranges") / "t.csv"
    path.write_text(end.join(["a,b,c", *map(",".join, table), ""]), newline="")
    found = [row for part in parts_of(path, cuts) for row in rows_of(part)]
    assert found == rows_of(open_text([path], "text", COMMA))


def test_a_fault_has_its_line_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + '"x\ny",1\n' * 20 + "1,2,3\n")
    parts = parts_of(path, list(range(5, 160, 7)))
    assert len(parts) > 5
    with pytest.raises(plar.TableError, match=r"line 42: 3 fields where 2 are expected"):
        list(map(rows_of, parts))


def test_a_file_that_is_cut_short_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n")
    dialect = open_text([path], "text", COMMA).headers[0].dialect
    with pytest.raises(plar.TableError, match=r"it became shorter while it was being read"):
        scan_range(path, 0, 100, dialect)
    with pytest.raises(plar.TableError, match=r"Cannot read .*gone\.csv': No such file"):
        scan_range(tmp_path / "gone.csv", 0, 100, dialect)


def test_only_bytes_that_are_read_as_they_are_can_be_divided(tmp_path: Path) -> None:
    path, text = tmp_path / "t.csv", "a,b\n1,2\n"
    for data, encoding, expected in (
        (text.encode(), "utf-8", True),
        (text.encode("latin-1"), "latin-1", True),
        (text.encode("utf-16"), "utf-16", False),
        (gzip.compress(text.encode()), "utf-8", False),  # whatever its name
    ):
        path.write_bytes(data)
        assert can_be_divided(path, encoding) is expected
