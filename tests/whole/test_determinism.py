"""The same bytes, whatever the threads, the order of the rows, the format of the file and the engine."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import plar
from plar.engines import LocalEngine
from support import oracle
from support.checkpoints import read_search
from support.environment import PLAR, TURNS

#: a decision with gaps is meant
pytestmark = pytest.mark.filterwarnings("ignore:The decision is missing:plar.PlarWarning")


def rows() -> pl.DataFrame:
    """Text with missing values, columns that are equal up to their values, ties and noise."""
    rng = np.random.default_rng(17)
    n = 500
    cells = {f"c{j}": rng.integers(0, 2 + j % 4, n) for j in range(16)}
    cells["copy"], cells["other"] = cells["c3"], 9 - cells["c7"]
    cells["d"] = (cells["c3"] + cells["c7"] * cells["c11"] + (rng.random(n) < 0.1)) % 4
    frame = pl.DataFrame({name: [f"v{v}" for v in column] for name, column in cells.items()})
    gaps = {name: rng.random(n) < 0.03 for name in ("c9", "c2", "c14", "d")}
    return frame.with_columns(
        pl.when(pl.Series(gap)).then(None).otherwise(pl.col(c)).alias(c) for c, gap in gaps.items()
    )


def said(text: str) -> str:
    """What --json prints, but for seconds, engine and source; the order of everything counts."""
    fields = json.loads(text)
    for name in ("seconds", "engine", "source"):
        assert name in fields
        fields[name] = None
    for step in fields["steps"]:
        step["seconds"] = None
    return json.dumps(fields, ensure_ascii=False)


def printed(reduct: plar.Reduct) -> str:
    return said(json.dumps(reduct.to_dict(), ensure_ascii=False))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder, frame = tmp_path_factory.mktemp("tables"), rows()
    mixed = [frame.sample(fraction=1, shuffle=True, seed=seed) for seed in (1, 2)]
    made = {}
    for name, one in [("first", frame), ("second", mixed[0]), ("third", mixed[1])]:
        made[f"{name}.csv"] = folder / f"{name}.csv"
        one.write_csv(made[f"{name}.csv"])
        made[f"{name}.parquet"] = folder / f"{name}.parquet"
        one.write_parquet(made[f"{name}.parquet"])
    return made


@pytest.mark.parametrize("measure", oracle.MEASURES)
def test_rows_threads_and_formats(files: dict[str, Path], measure: str) -> None:
    options: dict[str, Any] = {"measure": measure, "minimal": True}
    expected = printed(plar.reduce(files["first.csv"], "d", **options))
    result = json.loads(expected)
    assert len(result["missing"]) == 4
    for file in files.values():
        assert plar.reduce(file, "d", equivalent=True).equivalent == (("c3", "copy"), ("c7", "other"))
    assert any(len(step["ties"]) > 1 for step in result["steps"])
    for file in files.values():
        assert printed(plar.reduce(file, "d", **options)) == expected
    for jobs in (1, 2, 7):
        for lanes in (False, True):
            engine = LocalEngine(n_jobs=jobs, lanes=lanes)
            assert printed(plar.reduce(files["second.csv"], "d", engine=engine, **options)) == expected


def test_the_command_prints_the_same_bytes(files: dict[str, Path]) -> None:
    runs = [("first.csv", "1", "0"), ("second.parquet", "7", "1"), ("third.csv", "2", "2")]
    outputs = set()
    for name, jobs, seed in runs:
        words: list[Any] = [PLAR, "reduce", files[name], "--decision", "d", "--json", "--jobs", jobs]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        outputs.add(said(subprocess.check_output(words, text=True, env=environment)))
    assert outputs == {printed(plar.reduce(files["first.csv"], "d"))}


def test_engines(files: dict[str, Path], engine: Any) -> None:
    for measure in oracle.MEASURES:
        expected = printed(plar.reduce(files["first.csv"], "d", measure=measure))
        assert printed(plar.reduce(files["third.parquet"], "d", measure=measure, engine=engine)) == expected


@pytest.mark.parametrize("name", ["second.csv", "third.parquet"][: 1 + (TURNS > 1)])
def test_spark(files: dict[str, Path], spark: Any, name: str) -> None:
    from plar.engines import SparkEngine

    expected = printed(plar.reduce(files["first.csv"], "d", max_attributes=2))
    layout = "rows" if name.endswith("csv") else "columns"
    engine = SparkEngine(session=spark, layout=layout, partitions=3)
    assert printed(plar.reduce(files[name], "d", engine=engine, max_attributes=2)) == expected


def test_checkpoints_are_the_same_bytes(files: dict[str, Path], tmp_path: Path) -> None:
    contents: set[str] = set()
    for name, file in files.items():
        path = tmp_path / f"{name}.json"
        plar.reduce(file, "d", checkpoint=path, n_jobs=len(contents) + 1)
        search = read_search(path)
        for step in search["steps"]:
            step["seconds"] = None
        contents.add(json.dumps(search))
    assert len(contents) == 1
