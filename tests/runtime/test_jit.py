"""Kernels and their cache on disk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

KERNEL = """
from plar.runtime.jit import jit

@jit
def first(pair):
    return pair.first
"""
PAIRS = """
from typing import NamedTuple

class {name}(NamedTuple):
    first: int
    second: int
"""
CALL = "import pairs, kernel; print(kernel.first(pairs.{name}(3, 4)), len(kernel.first.stats.cache_hits))"


def test_a_cache_of_types_that_are_gone_is_begun_anew(tmp_path: Path) -> None:
    """As after an update of plar that renames a type, but does not change the kernel."""
    (tmp_path / "kernel.py").write_text(KERNEL)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    # compiled, loaded, compiled for the new type, loaded
    for name, n_loaded in [("Pair", 0), ("Pair", 1), ("Couple", 0), ("Couple", 1)]:
        (tmp_path / "pairs.py").write_text(PAIRS.format(name=name))
        call = [sys.executable, "-B", "-c", CALL.format(name=name)]
        done = subprocess.run(call, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.stderr == ""
        assert done.stdout == f"3 {n_loaded}\n"
