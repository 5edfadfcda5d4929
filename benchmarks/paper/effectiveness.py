"""Table "effectiveness", and the figure of speed-ups over HAR: nine datasets, four measures, five systems."""

from __future__ import annotations

import json
from collections.abc import Iterator

from common import MEASURES, Row, data_folder, on_system, plar_local, session, small

from plar.baselines.sequential import FSPA, HAR
from plar.baselines.spark import SparkSystem


def rows(quick: bool) -> Iterator[Row]:
    """All rows; quick: only SCE, and a few candidates of each step."""
    expected = json.loads((data_folder() / "expected.json").read_text())
    for name in expected:
        table = small(name)
        conditions = [f"x{j}" for j in range(len(table.granules.conditions))]
        for measure in ("SCE",) if quick else MEASURES:
            for row in _systems(name, measure, quick):
                assert [conditions.index(a) for a in row["reduct"]] == expected[name][measure]["reduct"]
                yield row


def _systems(name: str, measure: str, quick: bool) -> Iterator[Row]:
    table = small(name)
    for sequential in (HAR(), FSPA()):
        yield on_system(sequential, table, measure, 3 if quick else None)
    yield plar_local(table, measure)
    most = 1 if quick else 8 if name == "ticdata2000" else None  # a thousand jobs a search
    for system, level in (("PLAR-DP", 1), ("PLAR", 8)):
        with SparkSystem(system, True, level, session()) as engine:
            yield on_system(engine, table, measure, most, tree=True)
