"""Figure of the time with and without GrC initialisation: PLAR on KDD99 and WEKA15360, four measures."""

from __future__ import annotations

from collections.abc import Iterator

from common import MEASURES, Row, kdd99, on_system, session, weka15360

from plar.baselines.spark import SparkSystem


def rows(quick: bool) -> Iterator[Row]:
    """All rows, at the scale of the distributed systems."""
    n, most = (10_000, 2) if quick else (200_000, 2)
    for make in (kdd99, weka15360):
        for measure in ("SCE",) if quick else MEASURES:
            for name, granulated in (("PLAR", True), ("PLAR without GrC", False)):
                with SparkSystem(name, granulated, 8, session()) as system:
                    yield on_system(system, make(n), measure, most, tree=True)
