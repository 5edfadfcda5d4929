"""Remake the paper's tables and figures (make paper), or some of them, then the page that shows them.

    python benchmarks/paper/run.py                   # all, under an hour on 2 cores
    python benchmarks/paper/run.py --quick sdss grc  # smaller, fewer measures, fewer candidates

Figures go to benchmarks/results/ as JSON, of a quick run to benchmarks/results/quick/.
"""

from __future__ import annotations

import argparse
import json
import time
from datetime import UTC, datetime
from typing import Any

import common
import distributed
import effectiveness
import gisette
import grc
import peers
import render
import sdss

TABLES: dict[str, Any] = {
    "effectiveness": effectiveness,
    "distributed": distributed,
    "grc": grc,
    "gisette": gisette,
    "peers": peers,
    "sdss": sdss,
}


def main() -> None:
    """Run what the command line names, by default all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", help=f"of {', '.join(TABLES)}; by default all")
    parser.add_argument("--quick", action="store_true", help="under five minutes")
    given = parser.parse_args()
    for name in given.tables:
        if name not in TABLES:
            parser.error(f"Unknown table {name!r}. Choose one of: {', '.join(TABLES)}.")
    folder = render.RESULTS / "quick" if given.quick else render.RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    wanted = given.tables or list(TABLES)
    start = time.perf_counter()
    for i, name in enumerate(wanted, 1):
        print(f"[{i}/{len(wanted)}] {name}, {time.perf_counter() - start:.0f} s so far", flush=True)
        began = time.perf_counter()
        try:
            rows = [common.show(row) for row in TABLES[name].rows(given.quick)]
        except common.Skip as reason:
            print(f"    skipped: {reason}", flush=True)
            continue
        made = {
            "table": name,
            "quick": given.quick,
            "date": datetime.now(UTC).date().isoformat(),
            "seconds": round(time.perf_counter() - began, 1),
            "machine": common.machine(),
            "rows": rows,
        }
        (folder / f"{name}.json").write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n")
    common.close()
    render.main()
    print(f"{time.perf_counter() - start:.0f} s in all; see {render.PAGE.relative_to(render.ROOT)}")


if __name__ == "__main__":
    main()
