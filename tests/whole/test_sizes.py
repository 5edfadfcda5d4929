"""Tables of unusual size, whose reducts are known by how they are made; and what is too large, which is refused."""

from __future__ import annotations

import gzip
import math
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import plar
from plar.input.text.chunks import MAX_LINE
from plar.input.text.reader import MAX_COLUMNS
from support import oracle
from support.comparing import assert_agrees


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_hundred_thousand_columns(tmp_path: Path, suffix: str) -> None:
    n = 100_000
    rows = np.arange(50)
    table = np.zeros((50, n + 1), np.uint8)
    table[:, 5] = table[:, 60_000] = rows % 2
    table[:, 50_000] = rows // 2 % 5
    table[:, n] = rows % 10
    frame = pl.DataFrame(table, schema=[*(f"c{j}" for j in range(n)), "d"])
    path = tmp_path / f"wide{suffix}"
    frame.write_csv(path) if suffix == ".csv" else frame.write_parquet(path)
    found = plar.reduce(path, "d", equivalent=True)
    assert (found.core, found.attributes) == (("c50000",), ("c50000", "c5"))
    assert found.steps[0].ties == ("c5", "c60000")
    assert found.certificate.minimal
    assert len(str(found)) < 2000
    assert ("c5", "c60000") in (found.equivalent or ())
    if suffix == ".parquet":
        found.save(tmp_path / "r.json")
        assert plar.load(tmp_path / "r.json") == found
        assert found.transform(path).columns == ["c5", "c50000", "d"]


def test_a_million_values_in_several_columns() -> None:
    n = 1_000_000
    row = np.arange(n)
    table = {"low": row % 2, "first": row * 7919 % n, "second": row[::-1] + 2**40, "third": row / 3, "d": row // 2 % 2}
    with pytest.warns(plar.PlarWarning, match="'first' is different in nearly every row"):
        found = plar.reduce(table, "d", measure="LCE")
    # every other column tells d; `low` halves the classes, and so the pairs that d parts
    assert (found.core, found.attributes, found.theta) == ((), ("first",), 0.0)
    assert found.steps[0].ties == ("first", "second", "third")
    assert found.steps[0].candidates["low"] == 0.25
    assert (found.n_granules, found.n_decisions) == (n, 2)
    assert list(found.cardinalities.values()) == [2, n, n, n]


@pytest.mark.parametrize("measure", oracle.MEASURES)
def test_counts_beyond_32_bits(measure: str) -> None:
    columns = {
        "a": [0, 0, 1, 1, 2, 2],
        "b": [0, 1, 0, 1, 0, 1],
        "d": [0, 1, 1, 0, 0, 0],
        "w": [2**33, 2**33 + 1, 2**32 - 1, 2**38, 3, 2**39],
    }
    table = oracle.table(columns, "d", "w")
    assert table.n_objects > 2**39
    found = plar.reduce(columns, "d", weights="w", measure=measure)
    assert_agrees(found, oracle.search(table, measure), table, measure)
    assert found.core == ("a", "b")


def test_ten_thousand_decisions() -> None:
    row = np.arange(30_000)
    table = {"a": row % 100, "noise": row // 10_000, "b": row // 100 % 100, "d": row % 10_000}
    with pytest.warns(plar.PlarWarning, match="The decision 'd' holds 10,000 different numbers"):
        found = plar.reduce(table, "d")
    assert (found.core, found.attributes, found.theta) == (("a", "b"), ("a", "b"), 0.0)
    assert found.n_decisions == 10_000
    # of the hundred decisions that `a` leaves open each is as frequent
    assert plar.theta(table, ["a"], decision="d") == pytest.approx(math.log(100), rel=1e-9)
    assert plar.theta(table, [], decision="d", measure="LCE") == pytest.approx(1 - 1 / 10_000, rel=1e-12)


# ------------------------------------------------------------------------------------------------- too large

told = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell the memory held")


def refused(path: Path, most: int = 500 << 20) -> str:
    """The line that the command says, in little memory."""
    script = (
        "import re, sys\n"
        "from plar.cli import main\n"
        "sys.argv = ['plar', 'reduce', sys.argv[1], '--decision', '-1']\n"
        "try:\n    main()\n"
        "finally:\n    print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    held = int(done.stdout) << 10
    assert held < most, f"{held >> 20} MiB"
    return done.stderr


def packed(path: Path, head: bytes, filling: bytes, tail: bytes, size: int = 1 << 30) -> Path:
    """A gzip file of about a MB that unpacks to a GiB."""
    piece = gzip.compress(filling * ((1 << 24) // len(filling)))
    path.write_bytes(gzip.compress(head) + piece * (size >> 24) + gzip.compress(tail))
    assert path.stat().st_size < 4 << 20
    return path


@told
@pytest.mark.parametrize(
    ("head", "filling", "message"),
    [
        (b"", b"\0", "a line of more than 64 MiB"),
        (b"a,d\n1,2\n", b"x", "a line of more than 64 MiB"),
        (b"", b"\n", "begins with 10,000 blank lines"),
    ],
)
def test_gzip_bombs(tmp_path: Path, head: bytes, filling: bytes, message: str) -> None:
    assert message in refused(packed(tmp_path / "bomb.csv.gz", head, filling, b"\n1,2\n"))


def test_a_dull_gzip_file_is_no_bomb(tmp_path: Path) -> None:
    path = packed(tmp_path / "dull.csv.gz", b"a,d\n", b"0,0\n", b"1,1\n", size=1 << 25)
    found = plar.reduce(path, "d")
    assert (found.attributes, found.n_objects) == (("a",), (1 << 23) + 1)


@told
def test_absurd_headers(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"x" * (100 << 20) + b",d\n1,2\n")
    assert "a line of more than 64 MiB" in refused(path)
    path.write_text(",".join(f"c{j}" for j in range(1_000_000)) + "\n" + ",".join("1" * 1_000_000) + "\n")
    assert f"has 1,000,000 columns, and files may have {MAX_COLUMNS:,}" in refused(path)
    path.write_text('a,"' + "b" * 200_000 + '",d\n1,2,3\n')
    assert "field larger than field limit (131072)" in refused(path)
    assert MAX_LINE > 8 * MAX_COLUMNS


def test_deep_json(tmp_path: Path) -> None:
    for name in ("t.ndjson", "r.json"):
        (tmp_path / name).write_text("[" * 100_000)
    with pytest.raises(plar.TableError, match="not a saved reduct"):
        plar.load(tmp_path / "r.json")
    with pytest.raises(plar.TableError, match="line 1"):
        plar.reduce(tmp_path / "t.ndjson", -1)
    (tmp_path / "t.ndjson").write_text('{"a":' + "[" * 5000 + "]" * 5000 + ',"d":1}\n')
    with pytest.raises(plar.TableError):
        plar.reduce(tmp_path / "t.ndjson", "d")


@told
@pytest.mark.parametrize("compression", ["uncompressed", "zstd"])
def test_an_arrow_file_with_batches_beyond_its_end(tmp_path: Path, compression: Any) -> None:
    path = tmp_path / "t.arrow"
    labels = pl.Series(["x", "y"] * 500, dtype=pl.Categorical)
    pl.DataFrame({"a": range(1000), "d": labels}).write_ipc(path, compression=compression, record_batch_size=300)
    good = path.read_bytes()
    footer = len(good) - 10 - int.from_bytes(good[-10:-6], "little")
    blocks = []
    for place in range(footer, len(good) - 34):
        at, described, size = struct.unpack_from("<qixxxxq", good, place)
        if size > 0 and described > 0 and 0 < at < footer and good[at : at + 4] == b"\xff" * 4:
            blocks.append(place)
    assert len(blocks) == 5, "a dictionary and four batches"
    for place in (blocks[0], blocks[-1]):
        path.write_bytes(good[: place + 16] + (1 << 40).to_bytes(8, "little") + good[place + 24 :])
        assert "Cannot read" in refused(path)
