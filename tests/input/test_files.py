"""Files of odd names, cut short or left behind, and JSON that is none: read rightly, or refused in one line."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from backports import zstd

import plar
from plar.files.find import check_unchanged
from plar.input.text.chunks import Chunks

FRAME = pl.DataFrame({"a": [1, 2], "d": ["x", "y"]})


def write(path: Path, frame: pl.DataFrame = FRAME) -> Path:
    """The table in the format of the name; polars itself cannot write every name."""
    plain = path.with_name(f"plain{path.suffix}")
    writers: dict[str, Any] = {
        ".csv": frame.write_csv,
        ".parquet": frame.write_parquet,
        ".arrow": frame.write_ipc,
        ".ndjson": frame.write_ndjson,
        ".json": frame.write_json,
    }
    writers[path.suffix](plain)
    plain.rename(path)
    return path


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow", "ndjson", "json"])
def test_any_name_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("~", "~nobody", "a b%20c#d?e", "[1]*", "-", "é🎉", "new\nline", "\x1b[31m", "a:b\\c"):
        write(Path(f"{name}.{suffix}"))
        other = Path(name.replace("[1]*", "1x").replace("%20", " ") + f"x.{suffix}")
        write(other, pl.DataFrame({"other": [1]}))
        for path in (f"{name}.{suffix}", tmp_path / f"{name}.{suffix}"):
            assert plar.reduce(path, "d").attributes == ("a",)
            assert plar.reduce(path, "d", checkpoint=f"{name}.check").attributes == ("a",)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow", "ndjson", "json"])
def test_names_that_are_not_utf8(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"t\udcff.{suffix}")
    if suffix == "csv":
        assert plar.reduce(path, "d").attributes == ("a",)
    else:
        for given in (path, tmp_path / f"t*.{suffix}"):
            with pytest.raises(plar.TableError, match="is not UTF-8"):
                plar.reduce(given, "d")
    table = plar.read_table(write(tmp_path / "fine.csv"), "d")
    with pytest.raises(plar.TableError):
        table.sink(["a"], tmp_path / f"o\udcff.{suffix}")
    with pytest.raises(plar.TableError, match="is not UTF-8"):
        plar.granulate(FRAME, "d").save(tmp_path / "g\udcff.parquet")
    found = plar.reduce(FRAME, "d", checkpoint=tmp_path / "c\udcff.json")
    found.save(tmp_path / "r\udcff.json")
    assert plar.load(tmp_path / "r\udcff.json") == found
    assert not list(tmp_path.glob(".*"))


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="the system does not tell what is mapped")
@pytest.mark.parametrize("suffix", ["ndjson", "parquet", "arrow"])
def test_no_file_is_mapped_while_it_is_read(tmp_path: Path, suffix: str) -> None:
    """Cutting a mapped file short would end the process that reads it."""
    n = 200_000
    path = write(tmp_path / f"t.{suffix}", pl.DataFrame({"a": range(n), "d": ["x" * 40] * n}))
    frame: Any = plar.read_table(path, "d").source
    seen = []

    def look(batch: pl.DataFrame) -> pl.DataFrame:
        seen.append(str(path) in Path("/proc/self/maps").read_text())
        os.truncate(path, 1000)
        return batch

    with suppress(plar.TableError):
        frame.collect(frame.frame.map_batches(look, streamable=True).select(pl.len()))
    assert seen
    assert not any(seen)


@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
def test_an_arrow_file_cut_short_by_another_program_while_it_is_read(tmp_path: Path, compression: Any) -> None:
    n = 2_000_000
    path = tmp_path / "t.arrow"
    columns = {name: pl.Series(range(n)).hash(seed) % 20 for seed, name in enumerate("abd")}
    frame = pl.DataFrame(columns)
    frame.write_ipc(path, compression=compression)
    script = """
        import subprocess, sys
        import plar
        rows = plar.read_table(sys.argv[1], "d").source
        def cut(batch):
            subprocess.run(["truncate", "-s", "1000", sys.argv[1]], check=True)
            return batch
        groups = rows.frame.map_batches(cut, streamable=True).group_by(rows.names).len()
        try:
            found = rows.collect(groups)
            print(*(int((found[name] * found["len"]).sum()) for name in rows.names))
        except plar.TableError as error:
            print(error)
    """
    words = [sys.executable, "-W", "error", "-c", textwrap.dedent(script), str(path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    assert path.stat().st_size == 1000
    assert done.returncode == 0
    right = " ".join(str(frame[name].sum()) for name in frame.columns)
    # it depends on how far ahead polars reads
    assert done.stdout == f"{right}\n" or re.fullmatch(f"Cannot read {re.escape(repr(str(path)))}: .+\n", done.stdout)


def change_after_the_first_chunk(monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]) -> None:
    """Have a file changed while text is read: when a first part of it has been read, and before the next."""

    class Changed(Chunks):
        def next(self, chunk: Any) -> Any:
            filled = super().next(chunk)
            if filled is not None and filled.number == 0:
                change()
            return filled

    monkeypatch.setattr("plar.input.text.reader.Chunks", Changed)


@pytest.mark.parametrize("suffix", ["csv", "arff", "dat", "csv.gz", "csv.zst", "utf-16"])
def test_text_cut_short_by_another_program_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    n = 1_000_000
    declared = "@relation r\n@attribute a numeric\n@attribute d numeric\n@data\n"
    body = "".join(f"{i * 7919 % 1_000_003},{i % 3}\n" for i in range(n))
    text = (declared if suffix in ("arff", "dat") else "a,d\n") + body
    encoding = "utf-16" if suffix == "utf-16" else "utf-8"
    data = text.encode(encoding)
    path = tmp_path / ("t.csv" if suffix == "utf-16" else f"t.{suffix}")
    path.write_bytes(
        gzip.compress(data, 1) if suffix.endswith("gz") else zstd.compress(data) if suffix.endswith("zst") else data
    )
    size = path.stat().st_size
    change_after_the_first_chunk(monkeypatch, lambda: os.truncate(path, size * 3 // 4))
    with pytest.raises(plar.TableError, match=r"^Cannot read '[^']*': it became shorter while it was being read\."):
        plar.granulate(path, "d", encoding=encoding)


def test_rows_appended_while_text_is_read_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    n = 500_000
    path = tmp_path / "t.csv"
    path.write_text("a,d\n" + "".join(f"{i % 7},{i % 3}\n" for i in range(n)))

    def append() -> None:
        with path.open("a") as file:
            file.write("8,9\n" * 10 + "7")

    change_after_the_first_chunk(monkeypatch, append)
    table = plar.read_table(path, "d")
    granules = table.granulate()
    assert granules.n_objects == n
    assert len(granules) == 21
    assert table.select(["a"]).height == n


@pytest.mark.parametrize("suffix", ["csv", "ndjson"])
def test_a_longer_file_in_its_place_is_no_appended_one(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"t.{suffix}", pl.DataFrame({"a": range(100, 200), "d": [0, 1] * 50}))
    table = plar.read_table(path, "d")
    write(path, pl.DataFrame({"d": range(100, 300), "a": [0, 1] * 100}))  # rows of the same width
    for reading in (table.granulate, lambda: table.select(["a"])):
        with pytest.raises(plar.TableError, match=r"it was changed after it was opened"):
            reading()


def test_many_files_are_checked_once_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    n = 50
    for i in range(n):
        (tmp_path / f"t{i}.ndjson").write_text(f'{{"a": "x{i % 3}", "d": {i % 2}}}\n')
    checks: list[Path] = []

    def check(path: Path, *given: Any, **options: Any) -> None:
        checks.append(path)
        check_unchanged(path, *given, **options)

    monkeypatch.setattr("plar.input.tables.frames.check_unchanged", check)
    assert plar.granulate(tmp_path / "*.ndjson", "d").n_objects == n
    assert len(checks) <= 10 * n


def test_a_last_row_that_is_still_being_written_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,d\n1,x\n2,y")
    assert plar.granulate(path, "d").n_objects == 2  # whole, as far as anybody can tell
    table = plar.read_table(path, "d")
    with path.open("a") as file:
        file.write("es\n")
    with pytest.raises(plar.TableError, match=r"^Cannot read '[^']*': it is being written, and its last row was incom"):
        table.granulate()
    assert plar.granulate(path, "d").dictionaries == (["1", "2"],)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow", "ndjson"])
def test_a_file_changed_between_two_readings(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"t.{suffix}", pl.DataFrame({"a": range(1000), "d": ["x", "y"] * 500}))
    table = plar.read_table(path, "d")
    assert table.granulate().n_objects == 1000
    before = path.stat()
    output = tmp_path / f"o.{suffix}"
    readings: list[Callable[[], Any]] = [
        table.granulate,
        lambda: table.select(["a"]),
        lambda: table.sink(["a"], output),
    ]
    data = path.read_bytes()
    path.write_bytes(data[::-1])  # of the same size
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1_000_000_000))
    for reading in readings:
        with pytest.raises(plar.TableError, match=r"^Cannot read '[^']*': it was changed after it was opened\. Open"):
            reading()
    path.write_bytes(data[: data.index(b"\n") + 1] if suffix == "ndjson" else data[: len(data) // 2])
    for reading in readings:
        with pytest.raises(plar.TableError, match=r"^Cannot read '[^']*': it became shorter while it was being read\."):
            reading()
    assert not output.exists()


@pytest.mark.parametrize("environment", [{}, {"TMPDIR": os.devnull, "HOME": "/"}])
def test_arrow_files_where_polars_finds_no_place_for_its_cache(tmp_path: Path, environment: dict[str, str]) -> None:
    words = [sys.executable, "-m", "plar", "reduce", str(write(tmp_path / "t.arrow")), "-d", "d", "--json"]
    python_path = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, timeout=300, env=python_path | environment
    )
    assert done.returncode == 0
    assert "Error: " not in done.stderr  # polars' own panic may stand there
    assert json.loads(done.stdout)["attributes"] == ["a"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('\ufeff{"a":1,"d":0}', "begins with a byte order mark"),
        ("\n \n", "has no columns"),
        ('{"a":NaN,"d":0}', "NaN is not a number in JSON"),
        ('{"a":-Infinity,"d":0}', "-Infinity is not a number in JSON"),
        ('{"a":1e400,"d":0}', "1e400 is not a number in JSON"),
        (f'{{"a":{10**40},"d":0}}', "column 'a' has a whole number of 39 digits"),
        ('{"a":"\\ud800","d":0}', r"'\\ud800' has half a character"),
    ],
)
def test_json_that_is_none(tmp_path: Path, line: str, message: str) -> None:
    more = "" if not line.strip() else '{"a":"x","d":1}' if "ud800" in line else '{"a":2,"d":1}'
    for name, text in [
        ("t.ndjson", f"{line}\n{more}\n"),
        ("t.json", f"{line}\n{more}\n"),
        ("a.json", f"[{line},{more}]"),
    ]:
        path = tmp_path / name
        path.write_text(text if not text.startswith("[\ufeff") else "\ufeff[" + text[2:])
        if name == "a.json" and (not line.strip() or "NaN" in line or "Infinity" in line):
            continue  # an array is read by Python, which knows these
        if name == "a.json" and line.startswith("\ufeff"):
            assert plar.granulate(path, "d").dictionaries == ([1, 2],)
            continue
        with pytest.raises(plar.TableError, match=message) as caught:
            plar.granulate(path, "d")
        assert str(caught.value).count(str(path)) == 1


def test_python_s_own_numbers_in_arrays(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('[{"a":NaN,"d":0},{"a":Infinity,"d":1},{"a":null,"d":2},{"a":1,"d":3}]')
    assert set(plar.granulate(path, "d").dictionaries[0]) == {None, float("inf"), 1.0}


def test_json_characters_beyond_the_basic_plane(tmp_path: Path) -> None:
    path = tmp_path / "t.ndjson"
    path.write_text('{"a":"\\ud83d\\ude00","d":0}\n{"a":"\\\\ud800","d":1}\n')
    assert set(plar.granulate(path, "d").dictionaries[0]) == {"😀", "\\ud800"}


def test_whole_numbers_of_json_are_exact(tmp_path: Path) -> None:
    for values in ([2**64, 1], [2**63, -1], [2**126, -(2**126), 0], [2**53 + 1, 2**53], [2**53, 1.5]):
        rows = [{"a": value, "d": i} for i, value in enumerate(values)]
        (tmp_path / "t.json").write_text(json.dumps(rows))
        (tmp_path / "t.ndjson").write_text("\n".join(map(json.dumps, rows)))
        for name in ("t.json", "t.ndjson"):
            assert set(plar.granulate(tmp_path / name, "d").dictionaries[0]) == set(values)


def test_outputs_that_cannot_be_are_told_before_the_work_in_one_sentence(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv")
    for given in (["reduce", "-o", "x" * 240 + ".csv"], ["reduce", "--report", "x" * 240 + ".html"],
                  ["reduce", "--checkpoint", "x" * 240], ["granulate", "-o", "x" * 240 + ".parquet"],
                  ["reduce", "-o", str(path)], ["reduce", "--report", str(path)], ["granulate", "-o", "no/g.parquet"],
                  ["reduce", "-o", "."], ["reduce", "-o", "o.csv", "--checkpoint", "./o.csv"]):  # fmt: skip
        words = [sys.executable, "-m", "plar", given[0], str(path), "-d", "d", *given[1:]]
        done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert (done.returncode, done.stdout) == (2, ""), given
        assert done.stderr.count("\n") == 1
        assert ".." not in done.stderr.replace("'.", ""), done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["t.csv"]
