"""The one way in which plar compiles: numba without the GIL, cached on disk, with Python's types kept."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba.core.caching import FunctionCache
from numba.core.runtime import rtsys

P = ParamSpec("P")
R = TypeVar("R")


class _Cache(FunctionCache):  # type: ignore[misc]
    """numba's cache, which loads machine code without importing all that compiling would need: half of a short run."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


def jit(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` at its first call; later processes load it from numba's cache."""
    compiled = numba.njit(nogil=True, error_model="numpy")(function)
    with suppress(RuntimeError):  # neither the package's folder nor the user's can be written: every process compiles
        compiled._cache = _Cache(function)
    return cast(Callable[P, R], compiled)
