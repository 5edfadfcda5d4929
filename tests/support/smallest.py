"""The smallest reduct for the tests: its proof, and a table that takes long."""

from __future__ import annotations

from typing import Any

import numpy as np

import plar


def proof_of(reduct: plar.Reduct) -> plar.Proof:
    assert reduct.proof is not None
    return reduct.proof


def noise(rows: int, columns: int) -> dict[str, Any]:
    pick = np.random.default_rng(1)
    return {**{f"a{j}": pick.integers(0, 3, rows) for j in range(columns)}, "d": pick.integers(0, 2, rows)}


PROVEN: dict[str, Any] = {"costs": {"top_left": 2, "bottom_right": 3}, "include": ["top_right"]}
