"""The nearest peer on the same tables: scikit-rough, greedy by Shannon's entropy, in its own Python."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

import numpy as np
from common import HERE, PEER, Row, Skip, Table, data_folder, kdd99, plar_local, small, table_of

import plar
from plar import datasets
from plar.engines import LocalEngine
from plar.measures import SCE


def rows(quick: bool) -> Iterator[Row]:
    """All rows: core, reduct and certificate of plar beside a reduct of the peer, which has no core or certificate."""
    python = HERE / "skrough" / "bin" / "python"
    if not python.exists():
        raise Skip("scikit-rough is not installed in .bench/skrough; 'make paper' does it")
    for table in _tables(quick):
        yield plar_local(table, "SCE")
        path = HERE / "peer.npy"
        np.save(path, np.column_stack([table.X, table.y]))
        words = [str(python), "-W", "ignore", "-c", PEER, str(path), "1" if quick else "3"]
        seconds, attributes, peak, version = json.loads(subprocess.check_output(words, text=True))
        evaluation = LocalEngine().open(table.granules, SCE)
        evaluation.select(*attributes)
        yield {
            **table.about,
            "system": f"scikit-rough {version}",
            "measure": "SCE",
            "seconds": round(seconds, 4),
            "peak_mb": round(peak),
            "reduct": [table.granules.conditions[a] for a in attributes],
            "size": len(attributes),
            "preserved": evaluation.unsettled_objects == 0,
        }


def _tables(quick: bool) -> Iterator[Table]:
    data_folder()
    nine = [name for name in datasets.names() if name != "kdd99"]
    for name in nine[:5] if quick else nine:
        yield small(name)
    yield kdd99(10_000 if quick else 100_000)
    if not quick:
        X, y = datasets.random_table(100_000, 20, values=4, classes=3, seed=1)
        yield table_of("random", plar.granulate(X, y=y), "generated, not in the paper")
