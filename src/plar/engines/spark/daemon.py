"""The daemon that forks the Python workers of sessions that plar starts: it loads the kernels before it forks."""

from __future__ import annotations

import os

if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a process that forks must have one thread
    from plar.engines.spark.warm import load_kernels

    load_kernels()
    from pyspark.daemon import manager

    manager()
