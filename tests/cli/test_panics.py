"""Where polars panics over a damaged file, what plar says of it is the last line on stderr."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support import fuzzing


def test_a_panic_ends_in_one_line_of_plar(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    command = [sys.executable, "-m", "plar", "reduce", str(path), "--decision", "-1"]
    for number in (307, 584, 587):
        path.write_bytes(fuzzing.damaged("parquet", number))
        completed = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if "panicked" in completed.stderr:
            break
    else:
        pytest.skip("this polars does not panic over these files")
    assert completed.returncode == 2
    assert completed.stdout == ""
    assert completed.stderr.splitlines()[-1] == (
        f"Error: Cannot read {str(path)!r}: its parts do not fit together. "
        "The file is damaged or not what its name says."
    )
