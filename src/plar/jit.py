"""The one way in which plar compiles: numba without the GIL, cached on disk, with Python's types kept."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import ParamSpec, TypeVar, cast

import numba

__all__ = ["jit"]

P = ParamSpec("P")
R = TypeVar("R")


def jit(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` at its first call; later processes load it from numba's cache."""
    compiled = numba.njit(nogil=True, error_model="numpy")(function)
    with suppress(RuntimeError):  # neither the package's folder nor the user's can be written: every process compiles
        compiled.enable_caching()
    return cast(Callable[P, R], compiled)
