"""One random table through every kind of input and every engine: one fingerprint, one reduct.

Also its parts as files whose types differ, and as granules that are saved, opened and merged.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from decimal import Decimal
from functools import reduce
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import plar
from plar.granules.granules import Granules
from support.environment import TURNS, nightly
from support.every_engine import ASKED, ENGINES
from support.every_input import JSON, Columns, json_files, tables, texts, typed


def check_one(ways: Iterator[tuple[str, Any]]) -> None:
    """All have the fingerprint of the first, and the same reduct on every engine."""
    first: tuple[Any, ...] | None = None
    engines = [ENGINES[name]() for name in ASKED]
    for name, data in ways:
        granules = plar.granulate(data, None if "granule" in name else -1)
        reducts = [plar.reduce(granules, engine=engine) for engine in engines]
        seen = (
            granules.fingerprint(),
            sorted(granules.counts.tolist()),
            granules.n_missing,
            {(one.core, one.attributes, one.theta, one.n_granules) for one in reducts},
        )
        first = seen if first is None else first
        assert seen == first, (name, granules.dictionaries)


FEWER = settings(max_examples=20 * TURNS, suppress_health_check=list(HealthCheck))


@FEWER
@given(tables(["word"]))
@pytest.mark.filterwarnings("ignore:One number is written")
def test_words(tmp_path_factory: pytest.TempPathFactory, columns: Columns) -> None:
    folder = tmp_path_factory.mktemp("words")

    def ways() -> Iterator[tuple[str, Any]]:
        yield from typed(columns, folder)
        yield from texts(columns, folder)
        yield from json_files(columns, folder)

    check_one(ways())


@FEWER
@given(tables())
def test_typed(tmp_path_factory: pytest.TempPathFactory, columns: Columns) -> None:
    check_one(typed(columns, tmp_path_factory.mktemp("typed")))


@FEWER
@given(tables(JSON))
def test_json(tmp_path_factory: pytest.TempPathFactory, columns: Columns) -> None:
    folder = tmp_path_factory.mktemp("json")

    def ways() -> Iterator[tuple[str, Any]]:
        yield "mapping", columns
        yield from json_files(columns, folder)

    check_one(ways())


@nightly
@settings(max_examples=TURNS, suppress_health_check=list(HealthCheck))
@given(tables(["word", "small", "wide", "float", "bool", "decimal"]))
def test_spark(tmp_path_factory: pytest.TempPathFactory, spark: Any, columns: Columns) -> None:
    path = tmp_path_factory.mktemp("spark") / "t.parquet"
    frame = pl.DataFrame(columns, infer_schema_length=None)
    frame.write_parquet(path)
    rows = spark.read.parquet(str(path))
    here, there = plar.reduce(frame, -1), plar.reduce(rows, -1)
    assert (there.core, there.attributes, there.theta) == (here.core, here.attributes, here.theta)
    assert plar.granulate(rows, -1).fingerprint() == plar.granulate(frame, -1).fingerprint()


# -- parts -------------------------------------------------------------------------------------------------

VALUES: list[Any] = [
    *(None, 0, 1, -1, 2**53, 2**53 + 1, 2**64, 10**400, True, 0.5, 1e300, float("inf"), "1", "x", "", b"x"),
    *(Decimal("0.5"), Decimal("1E+50"), Decimal("Infinity"), (1, "x"), 1j, dt.date(2026, 1, 1), dt.timedelta(1)),
    *(dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 1, tzinfo=dt.UTC), dt.time(1), "int 1", "'", "\ud800"),
]


@FEWER
@given(st.data())
def test_granules_in_files_merge_as_in_memory(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("parts")
    cells = st.lists(st.tuples(*[st.sampled_from(VALUES)] * 3), min_size=1, max_size=6)
    parts = []
    for i, rows in enumerate(data.draw(st.lists(cells, min_size=2, max_size=4))):
        columns = {f"x{j}": list(column) for j, column in enumerate(zip(*rows, strict=True))}
        parts.append(plar.granulate(columns, -1))
        parts[-1].save(folder / f"g{i}.parquet")
    whole = reduce(Granules.merge, parts)
    files = [plar.granulate(folder / f"g{i}.parquet") for i in range(len(parts))]
    mixed = [data.draw(st.sampled_from(pair)) for pair in zip(parts, files, strict=True)]
    for merged in (plar.granulate(folder / "g*.parquet"), reduce(Granules.merge, mixed)):
        assert merged.fingerprint() == whole.fingerprint()
        assert sorted(merged.counts.tolist()) == sorted(whole.counts.tolist())
        assert plar.reduce(merged).attributes == plar.reduce(whole).attributes


TIME = dt.datetime(2026, 1, 1, 0, 0, 0, 1500)
TYPES: list[pl.Series] = [
    *(pl.Series([1, 2, None], dtype=kind) for kind in (pl.Int8, pl.Int64, pl.UInt8, pl.UInt64, pl.Int128)),
    *(pl.Series([2**53 + 1, 1, None], dtype=kind) for kind in (pl.Int64, pl.UInt64, pl.Int128, pl.UInt128)),
    *(pl.Series([0.5, 1.0, None], dtype=kind) for kind in (pl.Float32, pl.Float64)),
    pl.Series([2.0**53, 1e300]),
    *(pl.Series(["0.5", "1"]).cast(pl.Decimal(10, scale)) for scale in (1, 2)),
    *(pl.Series(["x", "1"], dtype=kind) for kind in (pl.String, pl.Categorical, pl.Enum(["1", "x"]))),
    pl.Series(["x", "y"], dtype=pl.Enum(["y", "x"])),
    *(pl.Series([True, False]), pl.Series([None, None]), pl.Series([b"x"]), pl.Series([dt.date(2026, 1, 1)])),
    *(pl.Series([TIME]).cast(pl.Datetime(unit)) for unit in ("ms", "us", "ns")),
    *(pl.Series([TIME]).dt.replace_time_zone(zone) for zone in ("UTC", "Europe/Rome")),
    *(pl.Series([dt.timedelta(1)]).cast(pl.Duration(unit)) for unit in ("ms", "us", "ns")),
    pl.Series([dt.time(1)]),
]


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_files_of_other_types_are_exact_or_refused(tmp_path: Path, suffix: str) -> None:
    """What is read is what the parts in memory are; in the nightly run in threes, too."""
    frames = [pl.DataFrame({"x": series, "d": range(len(series))}) for series in TYPES]
    known = [plar.granulate(frame, "d") for frame in frames]
    exact = refused = 0
    for size in (2, 3) if TURNS > 1 else (2,):
        for chosen in combinations(range(len(frames)), size):
            for i, one in enumerate(chosen):
                file = tmp_path / f"t{i}.{suffix}"
                frames[one].write_parquet(file) if suffix == "parquet" else frames[one].write_ipc(file)
            try:
                granules = plar.granulate(tmp_path / f"t*.{suffix}", "d")
            except plar.TableError:
                refused += 1
                continue
            whole = reduce(Granules.merge, (known[one] for one in chosen))
            assert granules.fingerprint() == whole.fingerprint(), [TYPES[one].dtype for one in chosen]
            exact += 1
    assert exact > 50
    assert refused > exact


@FEWER
@given(st.data())
def test_json_files_of_other_types_are_exact_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("json")
    pool: list[Any] = [None, 0, 1, 2**53 + 1, 2**63, 2**70, 0.5, 1e300, 2.0**53, True, "1", "x"]
    parts = data.draw(st.lists(st.lists(st.sampled_from(pool), min_size=1, max_size=4), min_size=1, max_size=3))
    for i, values in enumerate(parts):
        rows = [{"x": value, "d": j} for j, value in enumerate(values)]
        (folder / f"t{i}.ndjson").write_text("\n".join(map(json.dumps, rows)))
        (folder / f"t{i}.json").write_text(json.dumps(rows))
    whole = [plar.granulate({"x": values, "d": list(range(len(values)))}, "d") for values in parts]
    kinds = {type(v) if not isinstance(v, float) else int for values in parts for v in values if v is not None}
    for suffix in ("ndjson", "json"):
        try:
            granules = plar.granulate(folder / f"t*.{suffix}", "d")
        except plar.TableError:
            continue
        assert granules.fingerprint() == reduce(Granules.merge, whole).fingerprint()
        assert len(kinds) <= 1
