"""A search that breaks down and leaves a checkpoint behind; and what stands in one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import plar
from plar.engines import Engine, LocalEngine
from plar.files.write import checksum

HEADER = b'{"plar_checkpoint":5}\n'


def table(n: int = 400, k: int = 14, seed: int = 3) -> pl.DataFrame:
    """Text with missing values and noise; its reducts take several steps."""
    rng = np.random.default_rng(seed)
    cells = rng.integers(0, 3, (n, k))
    decision = (cells[:, 1] + cells[:, 4] * cells[:, 5] + (rng.random(n) < 0.1)) % 3
    columns = {f"c{j}": [None if v == 2 and j % 5 == 0 else f"v{v}" for v in cells[:, j]] for j in range(k)}
    return pl.DataFrame({**columns, "d": [f"class {v}" for v in decision]})


class Counting(Engine):
    """The local engine, counting what is asked of it; it breaks down at one of its passes."""

    name = "local"

    def __init__(self, break_at: int | None = None) -> None:
        self.core, self.passes, self.break_at = 0, 0, break_at

    def open(self, granules: Any, measure: Any, watch: Any = None) -> Any:
        evaluation: Any = LocalEngine(n_jobs=1).open(granules, measure)
        leave_one_out, with_each = evaluation.leave_one_out, evaluation.with_each

        def core(attributes: Any = None) -> Any:
            self.core += attributes is None
            return leave_one_out(attributes)

        def step(candidates: Any) -> Any:
            if self.passes == self.break_at:
                raise RuntimeError("power failure")
            self.passes += 1
            return with_each(candidates)

        evaluation.leave_one_out, evaluation.with_each = core, step
        return evaluation


def begun(path: Path, steps: int, data: Any = None, **options: Any) -> None:
    """Leave a checkpoint of some steps behind."""
    data = table() if data is None else data
    with pytest.raises(RuntimeError, match="power failure"):
        plar.reduce(data, "d", checkpoint=path, engine=Counting(steps), **options)


def sealed(record: Any) -> bytes:
    """A line with the right checksum, which whoever forges can compute."""
    text = json.dumps(record, separators=(",", ":"))
    if not isinstance(record, dict):
        return f"{text}\n".encode()
    return f'{{"checksum":"{checksum(text.encode())}",{text[1:]}\n'.encode()


def write_records(path: Path, records: Sequence[Any]) -> None:
    path.write_bytes(HEADER + b"".join(map(sealed, records)))


def read_records(path: Path) -> list[dict[str, Any]]:
    """What the lines say; all of them must be whole."""
    header, *lines = path.read_bytes().splitlines(keepends=True)
    assert header == HEADER
    records = []
    for line in lines:
        record = json.loads(line)
        del record["checksum"]
        assert line == sealed(record)
        records.append(record)
    return records


def read_search(path: Path) -> dict[str, Any]:
    """The only search in a checkpoint: its data, options, theta_all, inner, steps and clauses."""
    search, core, *rest = read_records(path)
    return {
        **search["search"],
        **core["core"],
        "steps": [record["step"] for record in rest if "step" in record],
        "clauses": [clause for record in rest for clause in record.get("clauses", ())],
    }


def write_search(path: Path, search: dict[str, Any]) -> None:
    """Write what `read_search` reads, changed perhaps."""
    records = [{"search": {"data": search["data"], "options": search["options"]}}]
    records.append({"core": {"theta_all": search["theta_all"], "theta_without": search["theta_without"]}})
    records += [{"step": step} for step in search["steps"]]
    if search["clauses"]:
        records.append({"clauses": search["clauses"]})
    write_records(path, records)
