"""Limits of time and memory, and how much memory this process has and holds."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from numbers import Real
from pathlib import Path
from typing import Final

from plar.errors import MemoryLimitExceeded, ParameterError

__all__ = [
    "amount",
    "as_bytes",
    "as_seconds",
    "check_memory",
    "machine_memory",
    "memory_limited",
    "resident_memory",
    "shown_bytes",
    "shown_seconds",
]

_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_BYTES: Final = {unit: 1000**power for power, unit in enumerate(["", "K", "M", "G", "T"])}
_BINARY: Final = {f"{unit}I": 1024**power for power, unit in enumerate(["", "K", "M", "G", "T"]) if unit}
_AMOUNT: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([A-Za-z]*)")
_SPARE: Final = 1 << 30  # of what the machine has, left while polars grows: it takes so much in some tenths of a second
_UNLIMITED: Final = 1 << 60  # what cgroups say when there is no limit is about this, and more

#: the limit that the user has set for the call that runs now
_limit: ContextVar[int | None] = ContextVar("plar_memory_limit", default=None)


def as_seconds(given: object) -> float:
    """Take a time: seconds, or text such as "90s", "10m", "2h".

    Examples
    --------
    >>> as_seconds("10m"), as_seconds(1.5)
    (600.0, 1.5)
    """
    seconds = _with_unit(given, _SECONDS)
    if seconds is None:
        raise ParameterError(
            f"The 'time_limit' parameter must be seconds, or text such as '90s', '10m' or '2h'. Got {given!r} instead."
        )
    return seconds


def as_bytes(given: object) -> int | None:
    """Take a size: bytes, or text such as "500MB", "2GB", "1.5GiB".

    Examples
    --------
    >>> as_bytes("2GB"), as_bytes("1 KiB"), as_bytes(4096)
    (2000000000, 1024, 4096)
    """
    if given is None:
        return None
    text = given.upper().removesuffix("B") if isinstance(given, str) else given
    size = _with_unit(text, {**_BYTES, **_BINARY})
    if size is None or size < 1:
        raise ParameterError(
            f"The 'memory_limit' parameter must be bytes, or text such as '500MB' or '2GB'. Got {given!r} instead."
        )
    return int(size)


def _with_unit(given: object, units: dict[str, int]) -> float | None:
    """A number of 0 or more times its unit; None for anything else."""
    if isinstance(given, str):
        found = _AMOUNT.fullmatch(given.strip())
        unit = found and next((u for u in units if u == found[2] or u == found[2].lower()), None)
        return None if not found or unit is None else amount(float(found[1]) * units[unit])
    return amount(given)


def amount(given: object) -> float | None:
    """A finite number of 0 or more as a float; None for anything else.

    Examples
    --------
    >>> amount(3), amount(-1), amount("3"), amount(10**400)
    (3.0, None, None, None)
    """
    with suppress(OverflowError):
        if isinstance(given, Real) and not isinstance(given, bool) and 0 <= float(given) < math.inf:
            return float(given)
    return None


def shown_bytes(n: int) -> str:
    """Write a size as a person would.

    Examples
    --------
    >>> shown_bytes(999), shown_bytes(1_500_000), shown_bytes(23_000_000_000)
    ('999 bytes', '1.5 MB', '23 GB')
    """
    if n < 1000:
        return f"{n} bytes"
    power = min(int(math.log10(n * 1.0005) // 3), 4)  # 999,600 is 1 MB
    return f"{n / 1000**power:.3g} {'kMGT'[power - 1]}B"


def shown_seconds(seconds: float) -> str:
    """Write a time as a person would.

    Examples
    --------
    >>> shown_seconds(0.004), shown_seconds(0.194), shown_seconds(34.2), shown_seconds(200), shown_seconds(7_500)
    ('4 ms', '0.19 s', '34.2 s', '3 min 20 s', '2 h 5 min')
    """
    if seconds < 0.01:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600:,} h {whole % 3600 // 60} min"


def resident_memory() -> int:
    """Bytes that this process holds in memory, pages of files apart; 0 where the system does not say."""
    with suppress(OSError, ValueError, IndexError):
        _, resident, shared, *_ = map(int, Path("/proc/self/statm").read_text().split())
        return (resident - shared) * os.sysconf("SC_PAGE_SIZE")
    return 0


def machine_memory() -> int | None:
    """Bytes that this machine has, or its control groups let this process have; None where neither says."""
    found = [*_group_limits()]
    with suppress(OSError, ValueError, AttributeError):
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min((n for n in found if 0 < n < _UNLIMITED), default=None)


@cache
def _group_limits() -> tuple[int, ...]:
    """Limits of the control groups that this process is in, be it in a container or not, and of those above them."""
    found = []
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and "memory" not in controllers.split(","):
                continue
            top = Path("/sys/fs/cgroup/memory" if controllers else "/sys/fs/cgroup")
            file = "memory.limit_in_bytes" if controllers else "memory.max"
            group = top / path.lstrip("/")
            for folder in (group, *group.parents):
                with suppress(OSError, ValueError):  # "max" is no number, and in a container the path may be unknown
                    found.append(int((folder / file).read_text()))
                if folder == top:
                    break
    return tuple(found)


def _left_by_ulimit() -> list[int]:
    """What the limits on address space and data leave, which count what is mapped, be it used or not."""
    with suppress(OSError, ValueError, ImportError):
        import resource

        size, _, _, _, _, data, _ = (
            int(pages) * resource.getpagesize() for pages in Path("/proc/self/statm").read_text().split()
        )
        limits = [
            (resource.getrlimit(resource.RLIMIT_AS)[0], size),
            (resource.getrlimit(resource.RLIMIT_DATA)[0], data),
        ]
        return [limit - mapped for limit, mapped in limits if limit != resource.RLIM_INFINITY]
    return []


@contextmanager
def memory_limited(limit: int | None) -> Iterator[None]:
    """Make `check_memory` enforce a limit within this block."""
    token = _limit.set(limit)
    try:
        yield
    finally:
        _limit.reset(token)


def check_memory(doing: str, need: int = 0) -> bool:
    """Raise if this process holds, or is about to need, more than the call or the machine allows.

    Parameters
    ----------
    doing : str
        What the memory is for.
    need : int
        Bytes that it takes beyond what is held now.

    Returns
    -------
    bool
        Whether the user has set a limit.
    """
    limit, spare = _limit.get(), 0
    is_set = limit is not None
    if limit is not None:
        held = resident_memory()
    elif (limit := machine_memory()) is None:
        return False
    elif need:  # what is held now may be freed before
        held, limit = 0, min([limit, *_left_by_ulimit()])
    else:  # a little further on the kernel ends the process
        held, spare = resident_memory(), min(limit // 10, _SPARE)
    if held + need > limit - spare:
        taken = f"needs about {shown_bytes(need)} more" if need else f"holds {shown_bytes(held)} already"
        beside = f", {shown_bytes(held)} are held already" if need and held else ""
        known = (
            f"and the memory limit is {shown_bytes(limit)}" if is_set else f"but only {shown_bytes(limit)} is available"
        )
        raise MemoryLimitExceeded(
            f"{doing} {taken}{beside}, {known}. "
            "Choose fewer columns, use bins for numbers, raise the limit, or take the engine 'spark'."
        )
    return is_set
