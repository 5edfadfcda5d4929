"""The daemon that forks the Python workers of sessions started by plar: it loads the kernels first."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib.util import find_spec


def _without_zips() -> None:
    """Import pyspark from its folder if there is one: every task rereads the zip files on the path."""
    before = list(sys.path)
    sys.path[:] = [place for place in before if not place.endswith((".zip", ".jar"))]
    if find_spec("pyspark") is None or find_spec("py4j") is None:
        sys.path[:] = before
    sys.path_importer_cache.clear()


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a process must be single-threaded to fork
    _without_zips()
    from plar.engines.spark.warm import load_kernels

    with suppress(Exception):  # a kernel that fails to load is loaded again when needed, and the error shows then
        load_kernels()
    from pyspark.daemon import manager

    manager()
