"""What a new user does: install plar into an empty environment, and run it on files as they come."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from support.environment import ROOT

#: a, b and c of 40 objects, and a decision that a and b tell
ROWS = [(i % 4, i % 5, i // 7, "yes" if (i % 4) * (i % 5) > 3 else "no") for i in range(40)]


def install(python: Path, *packages: str) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python)]
    command = [*pip, "install", "--quiet", "--no-compile", *packages]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode and ("No matching distribution" in done.stderr or "connection" in done.stderr.lower()):
        pytest.skip(f"pip cannot reach an index: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that holds plar, and what it asks for, alone."""
    folder = tmp_path_factory.mktemp("empty")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    programs = folder / ("Scripts" if sys.platform == "win32" else "bin")
    install(programs / "python", str(ROOT))
    return programs


def run(venv: Path, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([venv / "plar", *words], cwd=cwd, capture_output=True, text=True, timeout=300, check=False)


def reduced(venv: Path, *words: str, cwd: Path) -> dict[str, object]:
    done = run(venv, "reduce", *words, "--json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    fields: dict[str, object] = json.loads(done.stdout)
    assert fields["n_objects"] == 40
    return fields


def python(venv: Path, program: str, cwd: Path) -> str:
    done = subprocess.run([venv / "python", "-c", program], cwd=cwd, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_one_process_runs_all_tests_of_this_file(request: pytest.FixtureRequest) -> None:
    """Where several share the tests, pytest-xdist keeps groups together by the names of the tests."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        pytest.skip("only one process runs the tests")
    assert request.node.nodeid.endswith("@test_install")


def test_it_brings_what_it_needs_and_no_more(venv: Path, tmp_path: Path) -> None:
    there = (
        "import importlib.util as u; print(*[m for m in ('pandas', 'pyarrow', 'pyspark', 'sklearn') if u.find_spec(m)])"
    )
    assert python(venv, there, tmp_path) == ""
    assert run(venv, "--version", cwd=tmp_path).stdout.startswith("plar ")
    assert "ready" in run(venv, "engines", cwd=tmp_path).stdout
    schema = json.loads(run(venv, "schema", cwd=tmp_path).stdout)
    assert schema["title"] == "Results of plar"


def test_a_gzipped_csv_with_spaces_in_its_names(venv: Path, tmp_path: Path) -> None:
    lines = ["first name,last name,house number,is home", *(",".join(map(str, row)) for row in ROWS)]
    with gzip.open(tmp_path / "my table.csv.gz", "wt") as file:
        file.write("\n".join(lines) + "\n")
    result = reduced(venv, "my table.csv.gz", "--decision", "is home", cwd=tmp_path)
    assert result["attributes"] == ["first name", "last name"]


def test_a_csv_as_excel_writes_it(venv: Path, tmp_path: Path) -> None:
    lines = ["größe;preis;lage;ja", *(f"{a},5;{b},25;{c};{d}" for a, b, c, d in ROWS)]
    (tmp_path / "excel.csv").write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode() + b"\r\n")
    result = reduced(venv, "excel.csv", "-d", "ja", cwd=tmp_path)
    assert result["attributes"] == ["größe", "preis"]
    done = run(venv, "reduce", "excel.csv", "-d", "ja", "--bins", "preis=quantile:3", cwd=tmp_path)
    assert done.returncode == 2
    assert "--decimal ','" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    binned = reduced(venv, "excel.csv", "-d", "ja", "--bins", "preis=1,3", "--decimal", ",", cwd=tmp_path)
    assert binned["cuts"] == {"preis": [1.0, 3.0]}


def test_a_folder_of_parquet_files(venv: Path, tmp_path: Path) -> None:
    folder = tmp_path / "table.parquet"
    folder.mkdir()
    frame = pl.DataFrame(ROWS, schema=["a", "b", "c", "d"], orient="row")
    frame[:25].write_parquet(folder / "part-00000.snappy.parquet")
    frame[25:].write_parquet(folder / "part-00001.snappy.parquet")
    for name in ("_SUCCESS", ".part-00000.snappy.parquet.crc"):
        (folder / name).write_bytes(b"")
    assert reduced(venv, "table.parquet", "-d", "d", cwd=tmp_path)["attributes"] == ["a", "b"]


def test_an_arff_as_weka_writes_it(venv: Path, tmp_path: Path) -> None:
    head = """@relation 'my table-weka.filters.unsupervised.attribute.Remove-R1'

@attribute 'first one' numeric
@attribute b {0,1,2,3,4}
@attribute c numeric
@attribute class {yes,no}

@data
"""
    (tmp_path / "weka.arff").write_text(head + "\n".join(",".join(map(str, row)) for row in ROWS) + "\n\n")
    assert reduced(venv, "weka.arff", "-d", "class", cwd=tmp_path)["attributes"] == ["first one", "b"]


def test_a_polars_frame_with_categoricals(venv: Path, tmp_path: Path) -> None:
    program = f"""
import plar, polars as pl
f = pl.DataFrame({ROWS!r}, schema=["a", "b", "c", "d"], orient="row")
f = f.with_columns(pl.col("a").cast(pl.String).cast(pl.Categorical), pl.col("d").cast(pl.Enum(["no", "yes"])))
r = plar.reduce(f, decision="d")
print(*r.attributes, r.transform(f).schema["a"])
"""
    assert python(venv, program, tmp_path) == "a b Categorical"


def test_pandas_frames(venv: Path, tmp_path: Path) -> None:
    """Mixed types in a column, and a large frame."""
    install(venv / "python", "pandas")
    program = f"""
import numpy as np, pandas as pd, plar
f = pd.DataFrame({ROWS!r}, columns=["a", "b", "c", "d"])
f["a"] = [v if v else "none" for v in f["a"]]
f["b"] = [float(v) if v % 2 else v for v in f["b"]]
r = plar.reduce(f, decision="d")
print(*r.attributes, list(r.transform(f)["a"][:2]))
big = pd.DataFrame(np.random.default_rng(1).integers(0, 4, (200_000, 300), dtype=np.int8))
big["d"] = big[0] + big[1] * big[2]
print(*sorted(plar.reduce(big, decision="d", measure="PR").attributes))
"""
    assert python(venv, program, tmp_path).splitlines() == ["a b ['none', 1]", "0 1 2"]
