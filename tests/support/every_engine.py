"""Every engine on which the tests run, by name."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from plar.engines import Engine


def _local(lanes: bool) -> Any:
    from plar.engines import LocalEngine

    return LocalEngine(n_jobs=2, lanes=lanes)


def _cuda() -> Any:
    from plar.engines import CudaEngine

    return CudaEngine()


class CudaStreamed(Engine):
    """The CUDA engine with memory for two blocks of columns at a time: all others are sent for every pass."""

    name = "cuda"

    def open(self, granules: Any, measure: Any, watch: Any = None) -> Any:
        from plar.engines import CudaEngine

        return CudaEngine(memory=8 * len(granules)).open(granules, measure)


#: every engine must give the same answers; a new one is added here
ENGINES: dict[str, Callable[[], Any]] = {
    "local-tables": lambda: _local(lanes=False),
    "local-lanes": lambda: _local(lanes=True),
    "cuda": _cuda,
    "cuda-streamed": CudaStreamed,
}
#: those that every machine has, unless others are asked for (make test-gpu)
ASKED = os.environ.get("PLAR_TEST_ENGINES", "local-tables,local-lanes").split(",")
