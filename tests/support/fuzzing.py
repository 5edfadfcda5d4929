"""Damaged files of every format that plar reads, and what must come of each: a right result, or one clear line.

Only Arrow files may end the process: polars allocates whatever size they claim.

`PYTHONPATH=tests python tests/support/fuzzing.py FORMAT FIRST LAST` runs cases one by one in a process of its own,
telling each before it begins, so that whoever started it knows which one crashed or hung.
`tests/whole/test_damaged_files.py` does that.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

import plar
from plar.granules.granules import Granules
from support import oracle

Rows = Counter[tuple[Any, ...]]
#: keyword arguments of `plar.reduce`
Options = dict[str, Any]

#: address space for formats whose readers allocate what a file claims, so that the machine stays usable
MAX_BYTES = 8 << 30

NAMES = ("size", "colour", "déjà vu", "class")
COLOURS = ("red", "green", 'a "q"', "x, y", "", "naïve", "1.5", "true")


def table_of(pick: random.Random) -> list[tuple[Any, ...]]:
    """Rows of a number, a text, a number or nothing, and a class."""
    return [
        (pick.randrange(4), pick.choice(COLOURS), pick.choice([None, 0.5, 2.0]), pick.choice("yn"))
        for _ in range(pick.randint(1, 30))
    ]


# ---------------------------------------------------------------------------------------------- undamaged files


def as_csv(rows: Sequence[tuple[Any, ...]], pick: random.Random, separator: str = ",") -> bytes:
    text = io.StringIO(newline="")
    end = pick.choice(["\n", "\r\n"])
    writer = csv.writer(text, delimiter=separator, lineterminator=end)
    writer.writerows([NAMES, *rows])
    return text.getvalue().encode()


def as_blanks(rows: Sequence[tuple[Any, ...]], pick: random.Random) -> bytes:
    lines = [[name.replace(" ", "_") for name in NAMES]]
    lines += [[str(v).replace(" ", "_").replace('"', "") or "-" for v in row] for row in rows]
    return "".join((" " * pick.randint(1, 3)).join(line) + "\n" for line in lines).encode()


def as_ndjson(rows: Sequence[tuple[Any, ...]], pick: random.Random) -> bytes:
    ascii_only = pick.random() < 0.5
    objects = [dict(zip(NAMES, row, strict=True)) for row in rows]
    return "".join(json.dumps(o, ensure_ascii=ascii_only) + "\n" for o in objects).encode()


def as_arff(rows: Sequence[tuple[Any, ...]], pick: random.Random) -> bytes:
    head = "% made up\n@relation r\n@attribute size {0,1,2,3}\n@attribute colour string\n@attribute 'déjà vu' numeric\n"
    lines = [
        ",".join([str(a), "'" + b.replace("'", "") + "'" if pick.random() < 0.9 else "red", str(c or "?"), d])
        for a, b, c, d in rows
    ]
    return (head + "@attribute class {y,n}\n@data\n" + "\n".join(lines) + "\n").encode()


def as_keel(rows: Sequence[tuple[Any, ...]], pick: random.Random) -> bytes:
    head = "@relation r\n@attribute size integer [0, 3]\n@attribute flag {true, false}\n@attribute class {y, n}\n"
    lines = [f"{a}, {pick.choice(['true', 'false', '<null>'])}, {d}" for a, _, _, d in rows]
    return (head + "@inputs size, flag\n@outputs class\n@data\n" + "\n".join(lines) + "\n").encode()


def _frame(rows: Sequence[tuple[Any, ...]]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=list(NAMES), orient="row", infer_schema_length=None)


def as_parquet(rows: Sequence[tuple[Any, ...]], pick: random.Random) -> bytes:
    file = io.BytesIO()
    packed: Any = pick.choice(["uncompressed", "snappy", "zstd", "gzip", "lz4"])
    _frame(rows).write_parquet(file, compression=packed, row_group_size=pick.choice([None, 5]))
    return file.getvalue()


def as_arrow(rows: Sequence[tuple[Any, ...]], pick: random.Random) -> bytes:
    file = io.BytesIO()
    packed: Any = pick.choice(["uncompressed", "lz4", "zstd"])
    _frame(rows).write_ipc(file, compression=packed)
    return file.getvalue()


def _zstd(data: bytes) -> bytes:
    # a frame of raw blocks needs no compressor, and damages its readers no less
    blocks = [data[i : i + 400] for i in range(0, len(data), 400)]
    body = b"".join((len(b) << 3 | (i == len(blocks) - 1)).to_bytes(3, "little") + b for i, b in enumerate(blocks))
    return b"\x28\xb5\x2f\xfd\x00\x58" + body


def _written(write: Callable[[Path], object]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "made.parquet")
        write(path)
        return path.read_bytes()


def as_granules(rows: Sequence[tuple[Any, ...]], pick: random.Random) -> bytes:
    return _written(plar.granulate(_frame(rows), -1).save)


def as_reduct(rows: Sequence[tuple[Any, ...]], pick: random.Random) -> bytes:
    return _written(plar.reduce(_frame(rows), -1, measure=pick.choice(oracle.MEASURES)).save)


def as_rules(rows: Sequence[tuple[Any, ...]], pick: random.Random) -> bytes:
    return _written(plar.rules(_frame(rows), -1, kind=pick.choice(["tested", "certain", "possible"])).save)


# --------------------------------------------------------------------------------------------------- the damage


def damage(data: bytes, pick: random.Random, other: bytes) -> bytes:
    """A truncated, bit-flipped, spliced, repeated, zero-filled, shuffled or sown variant; sometimes several at once."""
    made = bytearray(data)
    for _ in range(pick.choice([1, 1, 1, 2, 4])):
        n = len(made)
        at = pick.randrange(n + 1)
        to = min(n, at + pick.choice([1, 2, 8, 64, n]))
        kind = pick.choice(["cut", "flip", "flip", "flip", "splice", "repeat", "zero", "sow", "sow", "number", "drop"])
        if kind == "cut":
            del made[at:]
        elif kind == "flip" and n:
            made[at % n] ^= 1 << pick.randrange(8)
        elif kind == "splice":
            made[at:] = other[pick.randrange(len(other) + 1) :]
        elif kind == "repeat":
            made[at:at] = made[at:to] * pick.choice([1, 2, 30])
        elif kind == "zero":
            made[at:to] = bytes(to - at)
        elif kind == "sow":
            made[at:at] = pick.choice(SEEDS)
        elif kind == "number" and n >= 8:  # lengths and offsets of binary formats
            made[at:to] = pick.choice([b"\xff", b"\x7f", b"\x80", b"\x01"]) * (to - at)
        else:
            del made[at:to]
    return bytes(made)


#: what readers trip over
SEEDS = (
    b"\n", b"\r", b"\r\n\r\n", b'"', b'""', b",", b",,,", b"\t", b"\0", b"\xff", b"\xc3", b"\xef\xbb\xbf", b"\x1b[2J",
    b"{", b"}", b"[[[[", b":", b"\\", b"'", b"%", b"@data\n", b"@attribute x {", b"null", b"1e999", b"-", b"NaN", b" ",
    "\u2028".encode(), "\u202e".encode(), b"9" * 40, b"A" * 3000,
)  # fmt: skip


# ---------------------------------------------------------------------- what an independent, simple reader says


def rows_of(granules: Granules) -> Rows:
    """The objects that granules stand for, as values."""
    found: Rows = Counter()
    for i in range(len(granules)):
        row = [d[c[i]] for c, d in zip(granules.columns, granules.dictionaries, strict=True)]
        row += [values[granules.decision_codes[i]] for values in granules.decision_values]
        found[tuple(row)] += int(granules.counts[i])
    return found


def present(value: Any) -> Any:
    """A value, None if it is a text that means missing."""
    return None if isinstance(value, str) and value in oracle.MISSING else value


def csv_rows(data: bytes, separator: str | None = None) -> tuple[list[str], Rows] | None:
    """What Python's csv module reads, as the documents say: values trimmed, blank lines no rows, some texts missing.

    None where quotes are not as RFC 4180 has them: polars drops those inside a quoted value, and nobody can say what is
    right.
    """
    text = data.decode("utf-8-sig")
    first = next(line for line in text.split("\n") if line.strip(" \r"))
    if separator is None:
        outside = "".join(first.split('"')[::2])
        separator = max(",;\t|", key=outside.count)
    try:
        table = list(csv.reader(io.StringIO(text, newline="\n"), delimiter=separator, strict=True))
    except csv.Error as error:
        if "new-line character" in str(error):
            raise AssertionError("a CR in a field without quotes was read") from None
        return None
    table = [[value.strip() for value in row] for row in table]
    table = [row for row in table if len(row) > 1 or any(row)]
    names = [name or f"x{j}" for j, name in enumerate(table[0])]
    assert all(len(row) == len(names) for row in table), "ragged rows were read"
    return names, Counter(tuple(map(present, row)) for row in table[1:])


def ndjson_rows(data: bytes, names: Sequence[str]) -> Rows | None:
    """What Python's json module reads: numbers by value; what a row does not have is missing, and the usual spellings.

    None where an object has a name twice, of which JSON does not say what it means.
    """
    found: Rows = Counter()
    for line in data.decode("utf-8-sig").split("\n"):
        if line.strip():
            pairs = json.loads(line, object_pairs_hook=list)
            row = dict(pairs)
            if len(row) < len(pairs):
                return None
            found[tuple(present(row.get(name)) for name in names)] += 1
    return found


def oracle_says(names: Sequence[str], rows: Rows) -> oracle.Outcome:
    """The search on these rows, the decision last."""
    table = oracle.Table(
        tuple(names[:-1]), tuple(row[:-1] for row in rows), tuple(row[-1] for row in rows), tuple(rows.values())
    )
    return oracle.search(table, "SCE")


# ------------------------------------------------------------------------------------------------- what to do


def read_table(path: Path, data: bytes) -> None:
    """Reduce the file as a table, and write the reduced one."""
    options: Options = {} if path.suffix == ".dat" else {"decision": -1}
    table = plar.read_table(path, **options)
    granules = table.granulate()
    found = plar.reduce(granules, n_jobs=1)
    assert (str(found).replace("\n", "") + repr(table)).isprintable(), "raw control characters"
    output = path.with_name("out.csv")
    try:
        table.sink(found.attributes, output)
        assert output.stat().st_size, "an empty output"
    finally:
        left = [file.name for file in path.parent.iterdir() if file.name not in (path.name, output.name)]
        output.unlink(missing_ok=True)
        assert not left, f"left behind: {left}"
    expected: tuple[Sequence[str], Rows] | None = None
    plain = gzip.decompress(data) if path.suffix == ".gz" else data
    if path.name.startswith(("t.csv", "t.tsv")) and path.suffix != ".zst":
        expected = csv_rows(plain, "\t" if ".tsv" in path.name else None)
    elif path.suffix == ".ndjson" and (objects := ndjson_rows(plain, table.names)) is not None:
        expected = table.names, objects
    if expected is not None:
        names, rows = expected
        assert list(table.names) == list(names), f"names {table.names} are not {names}"
        assert rows_of(granules) == rows, f"rows {rows_of(granules)} are not {rows}"
        right = oracle_says(names, rows)
        assert (found.core, found.attributes) == (right.core, right.attributes)


def read_granules(path: Path, data: bytes) -> None:
    """Open the granules and reduce them."""
    found = plar.reduce(Granules.open(path), n_jobs=1)
    str(found)


def read_reduct(path: Path, data: bytes) -> None:
    """Load the result, tell it and save it again."""
    found = plar.load(path)
    str(found), repr(found), json.dumps(found.to_dict())
    again = path.with_name("again.json")
    found.save(again)
    assert plar.load(again) == found
    again.unlink()


def read_rules(path: Path, data: bytes) -> None:
    """Load the rules, predict by them, and save them again."""
    rules = plar.load(path)
    str(rules), repr(rules), json.dumps(rules.to_dict()), rules.to_sql()
    assert len(rules.predict(pl.DataFrame({name: [None, None] for name in NAMES}))) == 2
    again = path.with_name("again.json")
    rules.save(again)
    assert plar.load(again) == rules
    again.unlink()


class Stop(Exception):
    """What ends a run in its middle."""


#: the table whose search is resumed: it takes several steps
RESUMED = pl.DataFrame(
    {f"a{j}": [(i >> j) & 1 for i in range(64)] for j in range(6)} | {"d": [(i * 37 % 64) % 5 for i in range(64)]}
)


def as_checkpoint(rows: Sequence[tuple[Any, ...]], pick: random.Random) -> bytes:
    left = pick.randint(1, 4)

    def stop(_: Any) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise Stop

    def run(path: Path) -> None:
        with suppress(Stop):
            plar.reduce(RESUMED, "d", conditions=[f"a{j}" for j in range(6)], max_attributes=5, epsilon=9.0,
                        n_jobs=1, checkpoint=path, on_step=stop)  # fmt: skip

    return _written(run)


def read_checkpoint(path: Path, data: bytes) -> None:
    """Resume the search; what comes of it is what comes of a search that was never ended."""
    asked: Options = {"decision": "d", "max_attributes": 5, "epsilon": 9.0, "n_jobs": 1}
    found = plar.reduce(RESUMED, checkpoint=path, **asked)
    whole = plar.reduce(RESUMED, **asked)
    assert found.attributes == whole.attributes
    assert [s.candidates for s in found.steps] == [s.candidates for s in whole.steps]


@dataclass(frozen=True)
class Format:
    """How its files are called and made, and what reads them."""

    name: str
    make: Callable[[Sequence[tuple[Any, ...]], random.Random], bytes]
    read: Callable[[Path, bytes], None] = read_table
    #: polars allocates whatever size a file claims, so a damaged one may end the process
    may_end_process: bool = False


FORMATS = {
    "csv": Format("t.csv", as_csv),
    "tsv": Format("t.tsv", lambda rows, pick: as_csv(rows, pick, "\t")),
    "blanks": Format("t.txt", as_blanks),
    "gzip": Format("t.csv.gz", lambda rows, pick: gzip.compress(as_csv(rows, pick), mtime=0)),
    "zstd": Format("t.csv.zst", lambda rows, pick: _zstd(as_csv(rows, pick))),
    "ndjson": Format("t.ndjson", as_ndjson),
    "arff": Format("t.arff", as_arff),
    "keel": Format("t.dat", as_keel),
    "parquet": Format("t.parquet", as_parquet),
    "arrow": Format("t.arrow", as_arrow, may_end_process=True),
    "feather": Format("t.feather", as_arrow, may_end_process=True),
    "granules": Format("g.parquet", as_granules, read_granules),
    "reduct": Format("r.json", as_reduct, read_reduct),
    "rules": Format("r.json", as_rules, read_rules),
    "checkpoint": Format("c.json", as_checkpoint, read_checkpoint),
}


def damaged(kind: str, number: int) -> bytes:
    """The bytes of a case; the first one of a format is not damaged."""
    pick = random.Random(f"{kind}/{number}")
    make = FORMATS[kind].make
    data = make(table_of(pick), pick)
    if number == 0:
        return data
    other = make(table_of(pick), pick)
    if kind in ("gzip", "zstd") and pick.random() < 0.5:  # damage under the compression
        inner = damage(as_csv(table_of(pick), pick), pick, as_csv(table_of(pick), pick))
        return gzip.compress(inner, mtime=0) if kind == "gzip" else _zstd(inner)
    return damage(data, pick, other)


def check(kind: str, number: int, folder: Path) -> str:
    """Run a case: 'right', 'refused' with the line, or 'FAILED' with what went wrong."""
    data = damaged(kind, number)
    path = folder / FORMATS[kind].name
    path.write_bytes(data)
    try:
        FORMATS[kind].read(path, data)
    except plar.PlarError as error:
        line = str(error)
        clear = line and line.isprintable() and len(line) < 1000 and type(error) is not plar.PlarError
        return f"refused {line}" if clear else f"FAILED the message is no clear line: {line!r}"
    except BaseException as error:
        if isinstance(error, (SystemExit, KeyboardInterrupt)):
            raise
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"FAILED {type(error).__name__}: {error} ({Path(last.filename).name}, line {last.lineno})".replace(
            "\n", " "
        )
    return "right"


def main(kind: str, first: int, last: int) -> None:
    """Tell each case before it begins, and what came of it."""
    if FORMATS[kind].may_end_process and sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))
    with tempfile.TemporaryDirectory() as folder:
        for number in range(first, last):
            print(f"case {number}", flush=True)
            print(check(kind, number, Path(folder)), flush=True)


if __name__ == "__main__":
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
