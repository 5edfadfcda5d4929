"""Figure of running times and table of speed-ups over HadoopAR: KDD99 and WEKA15360, four measures."""

from __future__ import annotations

from collections.abc import Iterator

from common import MEASURES, Row, close, kdd99, on_system, plar_local, plar_spark, session, weka15360

from plar.baselines.hadoop import HadoopAR
from plar.baselines.spark import SparkSystem


def rows(quick: bool) -> Iterator[Row]:
    """All rows. Tables are smaller than the paper's, and few candidates are timed, so that HadoopAR finishes."""
    n, most = (10_000, 1) if quick else (200_000, 2)
    tables = [make(n) for make in (kdd99, weka15360)]
    runs = [(table, measure) for table in tables for measure in (("SCE",) if quick else MEASURES)]
    close()  # so that Hadoop's memory is measured without Spark's
    for table, measure in runs:
        with HadoopAR() as hadoop:
            yield on_system(hadoop, table, measure, most, tree=True)
    for table, measure in runs:
        for name, granulated, level in (("SparkAR", False, 1), ("PLAR-DP", True, 1), ("PLAR", True, 8)):
            with SparkSystem(name, granulated, level, session()) as system:
                yield on_system(system, table, measure, most if level == 1 else 2 * most, tree=True)
        yield plar_spark(table, measure)
        yield plar_local(table, measure)
