"""Files that are refused: in little memory, whatever size they unpack to or claim, and without being kept open."""

from __future__ import annotations

import gzip
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import plar
from plar.input.text.chunks import MAX_LINE
from plar.input.text.reader import MAX_COLUMNS

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="the system does not tell the memory held"
)


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


@needs_proc
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
    reduct = plar.reduce(path, "d")
    assert (reduct.attributes, reduct.n_objects) == (("a",), (1 << 23) + 1)


@needs_proc
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
    with pytest.raises(plar.TableError, match="not a saved result"):
        plar.load(tmp_path / "r.json")
    with pytest.raises(plar.TableError, match="line 1"):
        plar.reduce(tmp_path / "t.ndjson", -1)
    (tmp_path / "t.ndjson").write_text('{"a":' + "[" * 5000 + "]" * 5000 + ',"d":1}\n')
    with pytest.raises(plar.TableError):
        plar.reduce(tmp_path / "t.ndjson", "d")


@needs_proc
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
