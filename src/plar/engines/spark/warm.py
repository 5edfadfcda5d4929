"""Warm up worker processes before they are needed: import plar and load its kernels, on all cores at once.

Sessions that plar starts fork their workers from a daemon that has already done this (`plar.spark_daemon`);
in other sessions a task on every core does it. Kernels missing from numba's cache are compiled by one process
per machine.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from weakref import WeakSet
from zipimport import zipimporter

import numba
import numpy as np
from pyspark import SparkContext

from plar.engines.local import lanes
from plar.engines.local.engine import LocalEvaluation
from plar.engines.local.scoring import CandidatePass, Scorer
from plar.engines.spark.pieces import (
    Cardinalities,
    as_granules,
    bucket_rows,
    concat_pieces,
    hashes,
    merge_equal_granules,
    pack_codes,
)
from plar.engines.spark.session import DAEMON, explained
from plar.measures import MEASURES

#: contexts whose workers are warm
_warm: WeakSet[SparkContext] = WeakSet()


def warm_workers(context: SparkContext) -> None:
    """Have every worker load what it will need, once per session; workers that plar's daemon forks have it already."""
    if context in _warm or context.getConf().get("spark.python.daemon.module") == DAEMON:
        return
    n = context.defaultParallelism
    with explained("prepare its workers"):
        context.parallelize(range(n), n).foreach(lambda _: load_kernels())
    _warm.add(context)


def forget_zip_files() -> None:
    """Drop Python's cached importers of zip files: pyspark makes them all reread before every task."""
    for place, importer in list(sys.path_importer_cache.items()):
        if isinstance(importer, zipimporter):
            sys.path_importer_cache.pop(place, None)


def load_kernels() -> None:
    """Load all kernels that tasks use, by running them on tables of a few rows."""
    forget_zip_files()
    _once_per_machine(_run_all_kernels)
    gc.collect()
    gc.freeze()  # pyspark collects garbage after every task, and would scan everything loaded here


def _run_all_kernels() -> None:
    for n_values in (3, 300, 70_000):
        _run_kernels(n_values)


def _run_kernels(n_values: int) -> None:
    n = 16
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (8, n))
    codes[0, :3] = 0, 1, n_values - 1
    coding = Cardinalities((n_values, *[3] * 7), 2)
    piece = pack_codes(codes, rng.integers(0, 2, n).astype(np.uint32), np.ones(n, np.int64), coding)
    list(bucket_rows(hashes(piece, coding), 2))
    piece = merge_equal_granules(concat_pieces([piece, piece], coding), coding)
    granules = as_granules(piece, coding)
    for measure in MEASURES.values():
        evaluation = LocalEvaluation(granules, measure)
        evaluation.leave_one_out()
        evaluation.select(1)
        scorer = Scorer(measure, granules.n_objects, granules.n_decisions)
        order = np.argsort(granules.decision_codes, kind="stable").astype(np.uint32)
        starts = np.array([0, len(order)], np.uint32)
        scoring = CandidatePass(scorer, granules.decision_codes, granules.counts, order, starts)
        for a in (0, 2):
            scoring.column(granules.columns[a], coding.cardinalities[a])
        scoring.block(lanes.as_rows([granules.columns[a] for a in range(1, 8)]), 3, lanes.aligned(len(order)))


def _once_per_machine(compile_all: Callable[[], None]) -> None:
    """Let the first process on a machine compile; the others wait, then load what it has compiled."""
    versions = "|".join([__file__, numba.__version__, np.__version__])
    key = blake2b(versions.encode(), digest_size=8).hexdigest()
    user = os.getuid() if hasattr(os, "getuid") else 0
    mark = Path(tempfile.gettempdir(), f"plar-kernels-{user}-{key}")
    done = mark.with_suffix(".done")
    with suppress(ImportError, OSError):  # Windows has no such lock, and the folder may not be writable
        import fcntl

        with mark.open("a") as lock:
            if not done.exists():
                fcntl.flock(lock, fcntl.LOCK_EX)  # released if the process dies
                if not done.exists():
                    compile_all()
                    done.touch()
                    return
    compile_all()
