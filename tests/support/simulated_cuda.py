"""numba's simulator of a GPU, made faster."""

from __future__ import annotations

import threading
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numba.core import config

SIMULATED = bool(config.ENABLE_CUDASIM)
#: its module of kernels, where numba simulates
simulator: Any = import_module("numba.cuda.simulator.kernel") if SIMULATED else None


def run_block(self: Any, grid_point: Any, *args: Any) -> None:
    """Run a block with a barrier; the simulator's own way, polling its threads, takes several times as long."""
    places = list(np.ndindex(*self._block_dim))
    barrier = threading.Barrier(len(places))
    threads = [simulator.BlockThread(partial(self._f, *args), self, grid_point, place, False) for place in places]
    for thread in threads:
        thread.syncthreads = partial(barrier.wait, 60)
        thread.start()
    for thread in threads:
        thread.join()
    for thread in threads:
        if thread.exception:
            raise thread.exception[0].with_traceback(thread.exception[1])
