"""The daemon that forks the Python workers of sessions that plar starts: it loads the kernels before it forks."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib.util import find_spec


def _without_zips() -> None:
    """Import pyspark from its folder, where there is one: every task looks through the zip files of the path again."""
    before = list(sys.path)
    sys.path[:] = [place for place in before if not place.endswith((".zip", ".jar"))]
    if find_spec("pyspark") is None or find_spec("py4j") is None:
        sys.path[:] = before
    sys.path_importer_cache.clear()


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a process that forks must have one thread
    _without_zips()
    from plar.engines.spark.warm import load_kernels

    with suppress(Exception):  # a kernel that cannot be loaded now is when it is needed, and says why
        load_kernels()
    from pyspark.daemon import manager

    manager()
