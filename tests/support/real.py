"""Tables to try: everybody's (the example's, scikit-learn's, generated), and the paper's nine where PLAR_DATA is set.

Everybody's are written as CSV and read by plar; the oracle gets the same rows without plar.
"""

from __future__ import annotations

import csv
import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plar
from plar import datasets
from support import oracle
from support.environment import TIC_TAC_TOE

#: tables of scikit-learn: how many values a column is cut into, if it is, and how many rows and columns are taken
_SKLEARN: dict[str, tuple[int | None, int, int]] = {
    "iris": (None, 150, 4),
    "wine": (4, 178, 13),
    "breast_cancer": (2, 569, 10),  # inconsistent
    "digits": (None, 400, 64),
}
_GENERATED = {
    "random": lambda: datasets.random_table(200, 6, 3, 3),  # inconsistent, all of it core
    "sdss-like": lambda: datasets.sdss_like(400, 24, 4, 5),
}
EVERYBODYS = ["tic-tac-toe example", *_SKLEARN, *_GENERATED]

paper = pytest.mark.skipif(
    not os.environ.get("PLAR_DATA"), reason="PLAR_DATA is not set: the folder with the paper's datasets"
)
PAPERS = [name for name in datasets.names() if name != "kdd99"]
HERE = EVERYBODYS if not os.environ.get("PLAR_DATA") else PAPERS  # for systems that are slow, one kind is enough
#: without the paper's files one skip, not one for each
NINE_BY_MEASURE: list[Any] = [(name, measure) for name in PAPERS for measure in oracle.MEASURES]
if HERE is EVERYBODYS:
    NINE_BY_MEASURE = [pytest.param("the paper's nine", "all measures", marks=paper)]


def _cut(column: Any, values: int) -> Any:
    return np.searchsorted(np.unique(np.quantile(column, np.arange(1, values) / values)), column, side="right")


@cache
def rows(name: str) -> list[list[str]]:
    """The header and the rows of one of everybody's tables; the decision comes last."""
    if name not in (*_SKLEARN, *_GENERATED):
        with TIC_TAC_TOE.open(newline="") as file:
            return list(csv.reader(file))
    if name in _GENERATED:
        X, y = _GENERATED[name]()
    else:
        bundled = pytest.importorskip("sklearn.datasets", reason="needs scikit-learn, for its tables")
        values, n, k = _SKLEARN[name]
        X, y = getattr(bundled, f"load_{name}")(return_X_y=True)
        X, y = X[:n, :k], y[:n]
        X = X if values is None else np.apply_along_axis(_cut, 0, X, values)
    header = [*(f"x{j}" for j in range(X.shape[1])), "d"]
    return [header, *([*map(str, row), str(d)] for row, d in zip(X.tolist(), y.tolist(), strict=True))]


@cache
def granules(name: str) -> plar.Granules:
    if name in PAPERS:
        return plar.granulate(datasets.load(name))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        with path.open("w", newline="") as file:
            csv.writer(file).writerows(rows(name))
        return plar.granulate(path, -1)


@cache
def judged(name: str, measure: str) -> tuple[oracle.Table, oracle.Outcome]:
    """One of everybody's tables as the oracle has it, and what the oracle finds in it."""
    header, *body = rows(name)
    table = oracle.table(dict(zip(header, map(list, zip(*body, strict=True)), strict=True)), header[-1])
    return table, oracle.search(table, measure)
