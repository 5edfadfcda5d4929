"""Every format from real files, and every way in which a file can be wrong."""

from __future__ import annotations

import gzip
import os
import re
import struct
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from backports import zstd

from plar.api import read_table
from plar.errors import ParameterError, TableError
from plar.granules.granules import Granules
from plar.input.tables.table import open_source
from plar.input.text.chunks import Chunk
from plar.input.text.rows import Worker
from plar.options import ReadOptions

ROWS = [("a", "x", "0"), ("b", "x", "1"), ("a", "x", "0")]


def write(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def rows_of(granules: Granules) -> Counter[tuple[Any, ...]]:
    """The objects that granules stand for, as values."""
    found: Counter[tuple[Any, ...]] = Counter()
    for i in range(len(granules)):
        row = [d[c[i]] for c, d in zip(granules.columns, granules.dictionaries, strict=True)]
        row += [values[granules.decision_codes[i]] for values in granules.decision_values]
        found[tuple(row)] += int(granules.counts[i])
    return found


def read(path: Path, decision: Any = -1, **options: Any) -> Counter[tuple[Any, ...]]:
    return rows_of(read_table(path, decision, **options).granulate())


def body(separator: str, header: str = "a b d", end: str = "\n") -> str:
    lines = [separator.join(header.split())] if header else []
    return "".join(line + end for line in [*lines, *(separator.join(row) for row in ROWS)])


@pytest.mark.parametrize(
    ("name", "separator"),
    [
        ("t.csv", ","),
        ("t.txt", ";"),
        ("t.data", "|"),
        ("t.tsv", "\t"),
        ("t.tab", "\t"),
        ("t.txt", " "),
        ("t.trn", "  "),
    ],
)
def test_text_with_any_separator(tmp_path: Path, name: str, separator: str) -> None:
    for end in ("\n", "\r\n"):
        path = write(tmp_path, name, body(separator, end=end))
        assert open_source(path, ReadOptions()).names == ("a", "b", "d")
        assert read(path, "d") == Counter(ROWS)
        assert read(write(tmp_path, name, "\ufeff" + body(separator, end=end)), "d") == Counter(ROWS)
        headless = write(tmp_path, name, "\ufeff" + body(separator, header="", end=end))
        assert open_source(headless, ReadOptions(header=False)).names == ("x0", "x1", "x2")
        assert read(headless, header=False) == Counter(ROWS)


def test_given_separator_reads_unknown_suffixes(tmp_path: Path) -> None:
    path = write(tmp_path, "t.weird", body("^"))
    assert read(path, "d", separator="^") == Counter(ROWS)
    assert read(write(tmp_path, "t.csv", body("\t")), "d", separator="\\t") == Counter(ROWS)


def test_blanks_around_and_between(tmp_path: Path) -> None:
    path = write(tmp_path, "t.trn", '  a   x 0 \nb\t x 1\n\n a x 0\n"a b" x 1')
    assert read(path, header=False) == Counter([*ROWS, ("a b", "x", "1")])
    with pytest.raises(TableError, match=r"line 3: 2 fields where 3 are expected"):
        read(write(tmp_path, "t.trn", "a x 0\n\nb x\n"), header=False)


def test_quoted_fields(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", '"a ""q""","b\nc",d\n"x,y","1\n2",0\n"x,y","1\n2",0\nz,"",1\n')
    assert open_source(path, ReadOptions()).names == ('a "q"', "b\nc", "d")
    assert read(path) == Counter({("x,y", "1\n2", "0"): 2, ("z", None, "1"): 1})


def test_compressed(tmp_path: Path) -> None:
    packed = write(tmp_path, "t.csv.gz", gzip.compress(body(",").encode()))
    assert read(packed, "d") == Counter(ROWS)
    zst = tmp_path / "t.csv.zst"
    pl.DataFrame(ROWS, schema=["a", "b", "d"], orient="row").lazy().sink_csv(zst, compression="zstd")
    assert read(zst, "d") == Counter(ROWS)
    arff = write(tmp_path, "t.arff.gz", gzip.compress(ARFF.encode()))
    assert read(arff) == ARFF_ROWS
    lines = write(tmp_path, "t.ndjson.gz", gzip.compress(b'{"a":1,"d":"x"}\n{"a":1,"d":"x"}\n'))
    assert read(lines) == Counter({(1, "x"): 2})


def test_typed_formats(tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": [1, 2, 1, None], "b": [0.5, float("nan"), 0.5, None], "d": ["x", "y", "x", "y"]})
    frame.write_parquet(tmp_path / "t.parquet")
    frame.write_ipc(tmp_path / "t.arrow")
    frame.write_ipc(tmp_path / "t.feather")
    expected = Counter({(1, 0.5, "x"): 2, (2, None, "y"): 1, (None, None, "y"): 1})
    for name in ("t.parquet", "t.arrow", "t.feather"):
        assert read(tmp_path / name) == expected
    frame.with_columns(b=pl.col("b").fill_nan(None)).write_ndjson(tmp_path / "t.ndjson")
    assert read(tmp_path / "t.ndjson") == expected


def test_ndjson_looks_at_every_line(tmp_path: Path) -> None:
    path = write(tmp_path, "t.jsonl", '{"a":1,"d":0}\n' * 3000 + '{"a":1.5,"d":0,"late":true}\n')
    assert open_source(path, ReadOptions()).names == ("a", "d", "late")
    assert sum(read(path, "d").values()) == 3001


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (b'{"a":"1","d":0}', "line 3: column 'a' has text after a number"),
        (b'{"a":true,"d":0}', "line 3: column 'a' has true or false after a number"),
        (b'{"a":[1],"d":0}', "line 3: column 'a' has a list after a number"),
        (b'{"a":{"b":1},"d":0}', "Column 'a' holds Struct"),
        (b"{a:1}", "line 3: Expecting property name"),
        (b"[1]", r"line 3: '\[1\]' is not an object"),
        (b'{"a":"\xe9","d":0}', "line 3: byte 0xe9 is not UTF-8"),
    ],
)
def test_bad_lines_of_ndjson(tmp_path: Path, second: bytes, message: str) -> None:
    path = write(tmp_path, "t.ndjson", b'{"a":1,"d":0}\n\n' + second + b'\n{"a":2,"d":0}\n')
    with pytest.raises(TableError, match=message) as caught:
        read_table(path, "d").granulate()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["*", "^s.*$"])
def test_names_of_fractions_in_ndjson_are_not_patterns(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, "t.ndjson", f'{{"{name}":1.5,"s":"x","d":1}}\n{{"{name}":2.5,"s":"y","d":0}}\n')
    assert read(path) == Counter({(1.5, "x", 1): 1, (2.5, "y", 0): 1})


def test_ndjson_columns_that_are_not_used_may_be_mixed(tmp_path: Path) -> None:
    path = write(tmp_path, "t.ndjson", '{"a":"\\"z\\":1","d":0,"z":1}\n{"a":null,"d":1,"z":"1"}\n')
    assert read(path, "d", drop="z") == Counter({('"z":1', 0): 1, (None, 1): 1})
    with pytest.raises(TableError, match="column 'z' has text after a number"):
        read(path, "d")


def test_globs_follow_in_order_and_agree(tmp_path: Path) -> None:
    write(tmp_path, "p2.csv", "a,d\n3,x\n")
    write(tmp_path, "p1.csv", "a,d\n1,x\n2,y\n")
    table = read_table(tmp_path / "p*.csv", "d")
    assert table.select(["a"])["a"].to_list() == ["1", "2", "3"]
    assert table.granulate().n_objects == 3
    write(tmp_path, "p3.csv", "a,e\n3,x\n")
    with pytest.raises(TableError, match=r"p3\.csv' has different columns from .*p1\.csv"):
        read_table(tmp_path / "p*.csv", "d")
    with pytest.raises(TableError, match="No file matches"):
        read_table(tmp_path / "q*.csv", "d")
    pl.DataFrame({"a": [1], "d": [1]}).write_parquet(tmp_path / "p1.parquet")
    pl.DataFrame({"a": [1.5], "d": [1]}).write_parquet(tmp_path / "p2.parquet")
    assert read_table(tmp_path / "p*.parquet", "d").granulate().n_objects == 2
    pl.DataFrame({"a": ["1"], "d": [1]}).write_parquet(tmp_path / "p2.parquet")
    with pytest.raises(TableError, match=r"Column 'a' is String in .*p2\.parquet' and Int64 in .*p1\.parquet'"):
        read_table(tmp_path / "p*.parquet", "d")
    with pytest.raises(TableError, match="different formats"):
        read_table(tmp_path / "p1.*", "d")


ARFF = """% a comment with 'quotes
@RELATION 'some thing'
@attribute plain {no,yes}
@ATTRIBUTE flag {false, true}
@attribute size NUMERIC
@attribute class {c0,'c 1'}

@DATA
% a comment
no,true,1,c0
no,true,1,c0

yes,false,?,c0
% the end
"""
ARFF_ROWS = Counter({("no", "true", "1", "c0"): 2, ("yes", "false", None, "c0"): 1})


def test_arff(tmp_path: Path) -> None:
    for text in (ARFF, ARFF.replace("\n", "\r\n"), ARFF + "\n\n"):
        assert read(write(tmp_path, "t.arff", text)) == ARFF_ROWS
    spaced = ARFF.replace("no,true,1,c0", "no, true ,1,\tc0", 1)
    assert read(write(tmp_path, "t.arff", spaced)) == ARFF_ROWS
    assert read(write(tmp_path, "t.arff", ARFF.replace("yes,false,?", "yes,false,? "))) == ARFF_ROWS


def test_arff_that_needs_care_from_some_line_on(tmp_path: Path) -> None:
    many = ARFF + "no,true,1,c0\n" * 3000
    base = ARFF_ROWS + Counter({("no", "true", "1", "c0"): 3000})
    for line, row in [
        ("yes,true,2,'c 1'", ("yes", "true", "2", "c 1")),
        ("?,?,?,?", (None, None, None, None)),
        ("yes,true,'a\\'b, c',c0", ("yes", "true", "a'b, c", "c0")),
        ('yes, "true" ,"\\"",c0', ("yes", "true", '"', "c0")),
        ("yes,true,'?',c0", ("yes", "true", "?", "c0")),
        ("undeclared,true,1,c0", ("undeclared", "true", "1", "c0")),
        ("yes,true,7,c0 % why", ("yes", "true", "7", "c0")),
        ("yes,true,7 % why", None),
        ("  % indented", None),
    ]:
        path = write(tmp_path, "t.arff", many + line + "\n")
        if row is not None:
            assert read(path) == base + Counter([row]), line
        elif "indented" in line:
            assert read(path) == base
        else:
            with pytest.raises(TableError, match=r"line 3015: 3 fields where 4 are expected"):
                read(path)


def test_arff_values_come_back_as_written(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, "t.arff", ARFF), "class")
    assert table.select(["flag", "size"]).rows() == [
        ("true", "1", "c0"),
        ("true", "1", "c0"),
        ("false", None, "c0"),
    ]
    late = read_table(write(tmp_path, "t.arff", ARFF + "no,true,1,c0\n" * 2000 + "no,true,'1 %','c 1'\n"), "class")
    assert late.select(["flag"]).rows()[-1] == ("true", "c 1")
    assert late.select(["size"]).rows()[-1] == ("1 %", "c 1")
    late.sink(["size"], tmp_path / "r.csv")
    assert read_table(tmp_path / "r.csv", "class").select(["size"]).rows()[-1] == ("1 %", "c 1")
    quoted = read_table(write(tmp_path, "t.arff", ARFF + "no,true,'1 %','c 1'\n"), "class")
    assert quoted.select(["size"]).rows()[-1] == ("1 %", "c 1")


def test_arff_sparse_and_malformed(tmp_path: Path) -> None:
    head, _, _ = ARFF.partition("% a comment\nno")
    for text, message in [
        (head + "{1 true, 3 c0}\n", "sparse rows"),
        (head, "no rows"),
        ("@relation r\n@attribute a {x\n@data\n", "line 2: .*closing brace"),
        ("@relation r\n@attribute a relational\n@data\nx\n", "line 2: unknown type 'relational'"),
        ("@relation r\n@attribute\n@data\nx\n", "line 2: cannot read"),
        ("@relation r\n@attribute a {x}\n", "no @data line"),
        ("@relation r\n@nonsense a {x}\n@data\n", "line 2: .* is not an ARFF declaration"),
        ("@relation r\n@data\n", "declares no attribute"),
        ("@relation r\n@attribute a {x}\n@attribute a {x}\n@data\nx,x\n", "'a'"),
        (ARFF + "no,true,1\n", "line 15: 3 fields where 4 are expected"),
        (ARFF + "no,true,1,c0,c0\n", "line 15: 5 fields where 4 are expected"),
    ]:
        with pytest.raises(TableError, match=message):
            read(write(tmp_path, "t.arff", text))
    with pytest.raises(TableError, match="No decision is given"):
        read_table(write(tmp_path, "t.arff", ARFF))


def test_keel(tmp_path: Path) -> None:
    text = (
        "@relation iris\n@attribute SepalLength real [4.3, 7.9]\n@attribute Colour{red, blue}\n"
        "@attribute Class {setosa, virginica}\n@inputs SepalLength, Colour\n@outputs Class\n@data\n"
        "5.1, red, setosa\n5.1, red, setosa\n<null>, blue, virginica\n"
    )
    path = write(tmp_path, "iris.dat", text)
    table = read_table(path)
    assert (table.conditions, table.decision) == (("SepalLength", "Colour"), ("Class",))
    assert rows_of(table.granulate()) == Counter({("5.1", "red", "setosa"): 2, (None, "blue", "virginica"): 1})
    assert read_table(path, "Colour").conditions == ("SepalLength", "Class")
    assert read(write(tmp_path, "plain.dat", body(" ")), "d") == Counter(ROWS)


@pytest.mark.parametrize("used", [None, ["a"]])
def test_ragged_rows_name_the_line(tmp_path: Path, used: list[str] | None) -> None:
    for rows, message in [
        ("1,2,3\n1,2\n", "line 3: 2 fields where 3 are expected"),
        ("1,2,3\n\n1,2,3,4\n", "line 4: 4 fields where 3 are expected"),
        ("1,2,3\n1,2,3,\n", "line 3: 4 fields"),
        ("1,2\n", "line 2: 2 fields"),
        ("1,2,3,4\n", "line 2: 4 fields"),
        ('1,"2\n2",3\n1,2\n', "line 4: 2 fields"),
        ('1,2,3\n1,"2,3\n', "line 3: "),
        ('1,2,3\n1,"2"x,3\n', "line 3: "),
        ("1,2,3\n" * 5000 + "1\n" + "1,2,3\n" * 5000, "line 5002: 1 field where 3"),
        ("1,2,3\n" * 5000 + "1,2,3,4\n" + "1,2,3\n" * 5000, "line 5002: 4 fields"),
    ]:
        path = write(tmp_path, "t.csv", "a,b,d\n" + rows)
        with pytest.raises(TableError, match=message):
            read(path, "d", conditions=used)
        with pytest.raises(TableError, match=message):
            read_table(path, "d").select(["a"])


def test_blank_lines_are_no_rows_but_empty_values_are(tmp_path: Path) -> None:
    text = "a,d,z\n\n1,x,\n,,\n\n  \n1,x,\n,,\n\n"
    path = write(tmp_path, "t.csv", text)
    assert read(path, "d") == Counter({("1", None, "x"): 2, (None, None, None): 2})
    assert read(path, "d", conditions=["a"]) == Counter({("1", "x"): 2, (None, None): 2})
    path = write(tmp_path, "t.csv", "a,w,d\n1,2,x\n\n3,4,y\n\n")
    assert read(path, "d", weights="w") == Counter({("1", "x"): 2, ("3", "y"): 4})
    path = write(tmp_path, "t.csv", "a,d,w\n1,x,2\n\n3,y,4\n")
    assert read(path, "d", weights="w") == Counter({("1", "x"): 2, ("3", "y"): 4})
    assert read_table(path, "d").select(["a"]).rows() == [("1", "x"), ("3", "y")]


def test_wide_text(tmp_path: Path) -> None:
    names = [f"c{j}" for j in range(300)]
    lines = [
        ",".join(names),
        ",".join(" a" * 300),
        ",".join("a" for _ in names),
        ",".join(["b", *[""] * 299]),
    ]
    lines[1] = ",".join([" a"] * 300)
    path = write(tmp_path, "w.csv", "\n".join([*lines, "", ""]))
    granules = read_table(path, -1).granulate()
    assert sorted(granules.counts.tolist()) == [1, 2]
    assert granules.dictionaries[0] == ["a", "b"]
    assert granules.n_missing == dict.fromkeys(names[1:], 1)
    path = write(tmp_path, "w.csv", "\n".join([*lines, "a,b"]))
    with pytest.raises(TableError, match="line 5: 2 fields where 300"):
        read_table(path, -1).granulate()
    weighted = read_table(
        write(tmp_path, "w.csv", "\n".join([lines[0], *["7," + ",".join("a" * 299)] * 2])), -1, weights=0
    )
    assert weighted.granulate().n_objects == 14


def test_wide_parquet(tmp_path: Path) -> None:
    frame = pl.DataFrame({f"c{j}": [j, j, 1] for j in range(300)})
    frame.write_parquet(tmp_path / "w.parquet")
    assert sorted(read_table(tmp_path / "w.parquet", 0).granulate().counts.tolist()) == [1, 2]


def test_duplicate_names(tmp_path: Path) -> None:
    with pytest.raises(
        TableError, match=r"appear twice in .*: 'a'\. Rename them, or pass header=False if the first line"
    ):
        open_source(write(tmp_path, "t.csv", "a,b,a\n1,2,3\n"), ReadOptions())
    declared = "@relation r\n@attribute a numeric\n@attribute a numeric\n@data\n1,2\n"
    with pytest.raises(TableError, match=r"appear twice in .*: 'a'\. Rename them\.$"):
        open_source(write(tmp_path, "t.arff", declared), ReadOptions())
    with pytest.raises(TableError, match="appear twice"):
        open_source(write(tmp_path, "t.txt", "a b a\n1 2 3\n"), ReadOptions())
    assert open_source(write(tmp_path, "t.csv", ",b\n1,2\n"), ReadOptions()).names == ("x0", "b")


def test_not_utf8_names_the_line(tmp_path: Path) -> None:
    for name, text, line in [
        ("t.csv", b"a,d\n1,x\n\xff,y\n", 3),
        ("t.csv", b"a,\xff\n1,x\n", 1),
        ("t.txt", b"a d\n1 x\n\xff y\n", 3),
        ("t.arff", b"@relation r\n@attribute a string\n@attribute b {x}\n@data\nx,x\n\xff,x\n", 6),
        ("t.arff", ARFF.encode() + b"\xff,true,1,c0\n", 15),
        ("t.csv.gz", gzip.compress(b"a,d\n1,x\n\xff,y\n"), 3),
    ]:
        with pytest.raises(TableError, match=rf"line {line}: byte 0xff is not UTF-8\. Pass its encoding"):
            read_table(write(tmp_path, name, text), -1).granulate()


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for name, content, message in [
        ("t.csv", b"", "is empty"),
        ("t.csv", b"\n\n", "blank lines only"),
        ("t.parquet", b"PAR1 junk", "Cannot read"),
        ("t.arrow", b"junk", "Cannot read"),
        ("t.ndjson", b'{"a":1,"d":1}\n{"a":}\n', "line 2: Expecting value"),
        ("t.csv.gz", b"a,d\n1,2\n", "not compressed as its name says"),
        ("t.csv.gz", gzip.compress(os.urandom(5000).hex().encode() + b"\n")[:2000], "Cannot read"),
        ("t.csv.zst", b"a,d\n1,2\n", "not compressed as its name says"),
        ("t.docx", b"x", "Unknown format '.docx'.*Known: .csv"),
        ("noname", b"x", "Unknown format"),
        ("t.parquet.gz", b"x", "files of .parquet are not read compressed. Decompress it first."),
        ("t.csv", b"a,d\r1,2\r", "ends its lines with CR alone"),
        ("t.csv", b"PAR1\x15\x04", "is a Parquet file, not text"),
        ("t.csv", b"ARROW1\0\0", "is an Arrow file, not text"),
        ("t.csv", "a,d\n1,2\n".encode("utf-16"), "is UTF-16, not UTF-8"),
        ("t.csv", b'a,b,d\n1,2,3\n"a" x,2,3\n', "line 3: ',' expected after"),
    ]:
        with pytest.raises(TableError, match=message) as caught:
            read_table(write(tmp_path, name, content), 0).granulate()
        assert "\n" not in str(caught.value)
    with pytest.raises(TableError, match=r"No such file: 'nowhere\.csv'"):
        read_table("nowhere.csv", 0)
    with pytest.raises(TableError, match="is a directory"):
        read_table(tmp_path, 0)
    with pytest.raises(ParameterError, match="one ASCII character"):
        read_table(write(tmp_path, "t.csv", body(",")), 0, separator="::")
    with pytest.raises(TableError, match="The path is empty"):
        read_table("", 0)
    for text in ("a,d\n", "a,d\n\n  \n"):
        with pytest.raises(TableError, match=r"t\.csv' has a header and no rows"):
            read_table(write(tmp_path, "t.csv", text), "d").granulate()


def test_blank_lines_are_no_rows(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, "t.csv", "a,b,d\n1,2,3\n   \n\n2,2,4\n"), "d")
    assert table.granulate().n_objects == 2
    assert table.select(["a"]).rows() == [("1", "3"), ("2", "4")]
    table.sink(["a"], tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text() == "a,d\n1,3\n2,4\n"
    lacking = read_table(write(tmp_path, "t.csv", "a,b,d\n1,2,3\n\n,,\n"), "d")
    assert lacking.granulate().n_objects == 2
    assert lacking.select(["a"]).rows() == [("1", "3"), (None, None)]


def test_quotes_inside_a_value_are_as_python_reads_them(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", 'a,b,c,d\n"bolt, M3",5",7",x\n5" disk,2,3,"y"\n')
    assert read(path, "d") == Counter([("bolt, M3", '5"', '7"', "x"), ('5" disk', "2", "3", "y")])


def test_na_of_nominal_attributes(tmp_path: Path) -> None:
    path = write(tmp_path, "t.arff", "@relation r\n@attribute a {x,y}\n@attribute d {p,q}\n@data\nx,p\ny,q\n")
    assert read(path, "d", na="y", missing="drop") == Counter({("x", "p"): 1})


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("above", [1, 2000])
@pytest.mark.parametrize("odd", ["True", "TRUE", "tRUE", "FALSE"])
def test_truth_values_are_as_written(tmp_path: Path, odd: str, above: int, packed: bool) -> None:
    head = "@relation r\n@attribute a {false,true}\n@attribute d {false,true}\n@data\n"
    text = head + "true,true\n" * above + f"{odd},true\nfalse,false\n"
    path = write(tmp_path, "t.arff.gz" if packed else "t.arff", gzip.compress(text.encode()) if packed else text)
    assert read(path) == Counter({("true", "true"): above, (odd, "true"): 1, ("false", "false"): 1})
    assert read_table(path, "d").select(["a"])["a"].to_list() == ["true"] * above + [odd, "false"]


def test_truncated_gzip(tmp_path: Path) -> None:
    packed = gzip.compress(("a,d\n" + "".join(f"{i * 7919 % 10007},{i}\n" for i in range(20000))).encode())
    with pytest.raises(TableError, match="Cannot read"):
        read_table(write(tmp_path, "t.csv.gz", packed[: len(packed) // 2]), "d").granulate()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", body(","))
    path.chmod(0)
    with pytest.raises(TableError, match="Permission denied"):
        read_table(path, 0)


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="the system does not tell what was read")
@pytest.mark.parametrize("left", ["after the header", "at a fault", "at an interrupt"])
@pytest.mark.parametrize("suffix", ["arff", "csv"])
def test_who_leaves_a_file_early_does_not_read_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, left: str
) -> None:
    head = "@relation t\n@attribute a numeric\n@attribute d {x,y}\n@data\n" if suffix == "arff" else "a,d\n"
    first = "1,x,1\n" if left == "at a fault" else "1,x\n"
    path = write(tmp_path, f"t.{suffix}", head + first + "1,x\n" * (16 << 20))
    read(write(tmp_path, f"small.{suffix}", head + "1,x\n"))  # also loads whatever else a run reads

    def bytes_read() -> int:
        return int(Path("/proc/self/io").read_text().split()[1])

    before = bytes_read()
    if left == "after the header":
        read_table(path, "d")
    elif left == "at a fault":
        with pytest.raises(TableError, match="3 fields where 2 are expected"):
            read(path)
    else:
        of_worker = Worker.read

        def interrupted(worker: Worker, chunk: Chunk) -> bool:
            if chunk.number == 2:
                raise KeyboardInterrupt
            return of_worker(worker, chunk)

        monkeypatch.setattr(Worker, "read", interrupted)
        with pytest.raises(KeyboardInterrupt):
            read(path)
    assert bytes_read() - before < path.stat().st_size // 4


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("row", "named"),
    [
        ("x\ry,2,3", 4),
        ("1,\r,3", 4),
        ("\r1,2,3", 4),
        ("1,2\r,3", 4),
        ('"x\ry"\r,2,3', 4),
        ('"two\nlines",2,x\ry', 5),
        ("1,2,3\r4,5,6", 4),
    ],
)
def test_a_cr_in_a_field_without_quotes(tmp_path: Path, row: str, named: int, end: str) -> None:
    rows = ["a,b,d", '"x\ry","\r",3', "1,2,3", row, "1,2,3", ""]
    fault = (
        rf"t\.csv', line {named}: a field without quotes holds a CR \(carriage return\)\. Quote the field, or convert"
    )
    path = write(tmp_path, "t.csv", end.join(rows).encode())
    for decision in ("a", "b", "d"):  # whatever is read
        with pytest.raises(TableError, match=fault):
            read_table(path, decision, drop=[name for name in "ab" if name != decision][:1]).granulate()
    with pytest.raises(TableError, match=fault):
        read_table(path, "d").select(["a"])
    del rows[3]
    assert read(write(tmp_path, "t.csv", end.join(rows).encode())) == Counter(
        {("x\ry", None, "3"): 1, ("1", "2", "3"): 2}
    )


def test_a_cr_in_other_text(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"line 1: a field without quotes holds a CR"):
        open_source(write(tmp_path, "t.csv", b"a\rb,d\n1,2\n"), ReadOptions())
    with pytest.raises(TableError, match=r"line 1: a field without quotes holds a CR"):
        open_source(write(tmp_path, "t.csv", b'a\rb,"d"\n1,2\n'), ReadOptions())
    with pytest.raises(TableError, match=r"line 2: a field without quotes holds a CR"):
        read(write(tmp_path, "t.txt", b"a d\n1\r 2\n"))
    arff = "@relation r\n@attribute a string\n@attribute d string\n@data\n'x\\'\ry', 1 % a \r comment\n"
    assert read(write(tmp_path, "t.arff", arff.encode())) == Counter({("x'\ry", "1"): 1})
    with pytest.raises(TableError, match=r"t\.arff', line 6: a field without quotes holds a CR"):
        read(write(tmp_path, "t.arff", (arff + "x\ry,1\n").encode()))
    # several CRs before the LF are one line end, as in the csv module
    path = write(tmp_path, "t.csv", b'a,d\r\r\n1,2\r\r\n\r\r\n"1","2"\r\r\n')
    assert read_table(path, "d").select(["a"]).rows() == [("1", "2")] * 2


@pytest.mark.parametrize(
    "suffix", ["xls", "ods", "dta", "sav", "sas7bdat", "orc", "avro", "h5", "pkl", "npy", "sqlite", "xml", "dta.gz"]
)
def test_formats_that_other_libraries_read(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path, f"t.{suffix}", b"\0")
    with pytest.raises(
        TableError, match=rf"plar does not read .* files, such as '.*t\.{suffix}'\. Read it with"
    ) as caught:
        read(path)
    named = re.findall(r"(pandas|polars|numpy)\.(\w+)\(…\)", str(caught.value))
    assert len(named) == 1
    assert callable(getattr(import_module(named[0][0]), named[0][1]))
    assert "separator" not in str(caught.value)
    path.write_text("a\td\n1\t2\n")  # what some programs save under such a name
    if "." not in suffix:
        assert read(path, separator="tab") == Counter({("1", "2"): 1})


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("t.rds", "Save it from R"),
        ("t.RData", "Save it from R"),
        ("t.zip", "Unpack it"),
        ("t.csv.bz2", "Decompress it first; text may be .gz or .zst"),
    ],
)
def test_formats_that_must_be_converted(tmp_path: Path, name: str, remedy: str) -> None:
    with pytest.raises(TableError, match=remedy):
        read(write(tmp_path, name, b"\0"))


@pytest.mark.parametrize("scheme", ["s3", "gs", "hdfs", "abfss", "https"])
@pytest.mark.parametrize("inside", ["b/t.csv", "b/*.csv"])
def test_addresses_without_spark(scheme: str, inside: str) -> None:
    with pytest.raises(
        TableError, match=rf"'{scheme}://b/.*' is on another file system.* Pass engine='spark', or copy"
    ):
        read_table(f"{scheme}://{inside}", "d")
    with pytest.raises(TableError, match="Pass the path without file://"):
        read_table("file:///t.csv", "d")


def test_folders_without_tables(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"^'.*' is a directory, and it holds no files\. .*\*\.csv'\.$"):
        read_table(tmp_path, "d")
    write(tmp_path, "t.md", "a")
    with pytest.raises(TableError, match=r"^'.*' is a directory, and not all it holds are files in .*\*\.csv'\.$"):
        read_table(tmp_path, "d")


def test_separators_by_name(tmp_path: Path) -> None:
    for name, mark in {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|", "blank": " ", "space": " "}.items():
        path = write(tmp_path, "t.txt", f"a{mark}d\n1{mark}2\n")
        assert read(path, separator=name) == Counter({("1", "2"): 1})


@pytest.mark.parametrize("suffix", ["csv", "ndjson"])
@pytest.mark.parametrize("magic", [0x184D2A50, 0x184D2A5F])
def test_zstd_that_begins_with_a_frame_to_be_skipped(tmp_path: Path, suffix: str, magic: int) -> None:
    text = b"a,d\n1,2\n3,4\n" if suffix == "csv" else b'{"a":"1","d":"2"}\n{"a":"3","d":"4"}\n'
    frame = struct.pack("<II", magic, 3) + b"abc"  # as RFC 8878 defines it
    for data in (frame + zstd.compress(text), frame * 2 + zstd.compress(text[:14]) + frame + zstd.compress(text[14:])):
        assert read(write(tmp_path, f"t.{suffix}.zst", data)) == Counter([("1", "2"), ("3", "4")])
