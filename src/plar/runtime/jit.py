"""How plar compiles: numba without the GIL, cached on disk, with Python's types kept."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba.core import event
from numba.core.caching import FunctionCache
from numba.core.runtime import rtsys

P = ParamSpec("P")
R = TypeVar("R")


class _CompileClock(event.TimingListener):  # type: ignore[misc]
    """Whether numba compiles now, and for how many seconds it has; compiling one kernel may compile another."""

    @property
    def running(self) -> bool:
        return bool(self._depth > 0)

    @property
    def seconds(self) -> float:
        return float(self.duration) if self.done else 0.0


clock = _CompileClock()
event.register("numba:compile", clock)


class _Cache(FunctionCache):  # type: ignore[misc]
    """numba's cache, but loading does not import what only compiling needs: that is half of a short run."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)
        # a type that an older plar compiled with may be gone: then it is compiled again
        with self._guard_against_spurious_io_errors(), suppress(AttributeError, ImportError):
            return self._load_overload(sig, target_context)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except (AttributeError, ImportError):  # the same: numba adds to what it has cached, which it cannot read
            self._cache_file.flush()
            super().save_overload(sig, data)


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Make `function` a part of each kernel that uses it, where a call would take too long."""
    return cast(Callable[P, R], numba.njit(nogil=True, error_model="numpy", inline="always")(function))


def jit(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` at its first call; later processes load it from numba's cache."""
    return _cached(function, numba.njit(nogil=True, error_model="numpy")(function))


def borrowing(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel that neither allocates nor returns arrays; helpers that take arrays must be alike, or `inlined`.

    References to its arrays are not counted, which in a loop that calls helpers takes longer than all the rest.
    """
    return _cached(function, numba.njit(nogil=True, error_model="numpy", _nrt=False)(function))


def _cached(function: Callable[P, R], compiled: Any) -> Callable[P, R]:
    with suppress(RuntimeError):  # if neither the package's folder nor the user's is writable, every process compiles
        compiled._cache = _Cache(function)
    return cast(Callable[P, R], compiled)
