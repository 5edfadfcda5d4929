"""Limits of time and memory, and how much memory this process has and uses.

Limits of memory are enforced here. A limit of time is the session's `deadline`: the searches look at it after every
step, and hand over what they have.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from numbers import Real
from pathlib import Path
from typing import Final

from plar.errors import Given, MemoryLimitExceeded, invalid


def _bytes_by_unit() -> dict[str, int]:
    bytes_of = {"": 1, "b": 1}
    for power, letter in enumerate("kmgt", 1):
        for suffix in ("", "b"):
            bytes_of[f"{letter}{suffix}"] = 1000**power
            bytes_of[f"{letter}i{suffix}"] = 1024**power
    return bytes_of


_SECONDS_OF_UNIT: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_BYTES_OF_UNIT: Final = _bytes_by_unit()
_AMOUNT: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([A-Za-z]*)")
#: left free while polars reads: it can take this much in some tenths of a second
_MAX_SPARE_BYTES: Final = 1 << 30
#: cgroups report about this, or more, when there is no limit
_UNLIMITED_BYTES: Final = 1 << 60

#: the user's limit for the running call
_memory_limit: ContextVar[int | None] = ContextVar("plar_memory_limit", default=None)


def as_seconds(limit: object) -> float:
    """Take a time: seconds, or text such as "90s", "10m", "2h"."""
    seconds = _in_units(limit, _SECONDS_OF_UNIT)
    if seconds is None:
        raise invalid("time_limit", "seconds, or text such as '90s', '10m' or '2h'", limit)
    return seconds


def as_bytes(limit: object) -> int | None:
    """Take a size: bytes, or text such as "500MB", "2GB", "1.5GiB"; None for no limit."""
    if limit is None:
        return None
    size = _in_units(limit, _BYTES_OF_UNIT)
    if size is None or size < 1:
        raise invalid("memory_limit", "bytes, or text such as '500MB' or '2GB'", limit)
    return int(size)


def _in_units(limit: object, units: Mapping[str, int]) -> float | None:
    """A number, or a text of a number and a unit, as a number of 0 or more; None for anything else."""
    if not isinstance(limit, str):
        return amount(limit)
    match = _AMOUNT.fullmatch(limit.strip())
    unit = units.get(match[2].lower()) if match else None
    if match is None or unit is None:
        return None
    return amount(float(match[1]) * unit)


def amount(value: object) -> float | None:
    """A finite number of 0 or more as a float; None for anything else."""
    with suppress(OverflowError):
        if isinstance(value, Real) and not isinstance(value, bool) and 0 <= float(value) < math.inf:
            return float(value)
    return None


def shown_bytes(n: int) -> str:
    """Write a size as a person would.

    >>> shown_bytes(999), shown_bytes(1_500_000), shown_bytes(23_000_000_000)
    ('999 bytes', '1.5 MB', '23 GB')
    """
    if n < 1000:
        return f"{n} bytes"
    power = min(int(math.log10(n * 1.0005) // 3), 4)  # 999,600 is 1 MB
    return f"{n / 1000**power:.3g} {'kMGT'[power - 1]}B"


def shown_seconds(seconds: float) -> str:
    """Write a time as a person would.

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
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60} min"


def resident_memory() -> int:
    """Bytes that this process holds in memory, without pages of files; 0 if the system does not say."""
    with suppress(OSError, ValueError, IndexError):
        _, resident, shared, *_ = map(int, Path("/proc/self/statm").read_text().split())
        return (resident - shared) * os.sysconf("SC_PAGE_SIZE")
    return 0


def machine_memory() -> int | None:
    """Bytes that this machine has, or that its control groups allow this process; None if unknown."""
    limits = list(_group_limits())
    with suppress(OSError, ValueError, AttributeError):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min((limit for limit in limits if 0 < limit < _UNLIMITED_BYTES), default=None)


@cache
def _group_limits() -> tuple[int, ...]:
    """Limits of the control groups of this process, in a container or not, and of their parents."""
    limits = []
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and "memory" not in controllers.split(","):
                continue
            if controllers:  # version 1
                top = Path("/sys/fs/cgroup/memory")
                file = "memory.limit_in_bytes"
            else:
                top = Path("/sys/fs/cgroup")
                file = "memory.max"
            group = top / path.lstrip("/")
            for folder in (group, *group.parents):
                with suppress(OSError, ValueError):  # "max" is not a number, and in a container the path may be unknown
                    limits.append(int((folder / file).read_text()))
                if folder == top:
                    break
    return tuple(limits)


def _left_by_ulimit() -> list[int]:
    """What the limits on address space and data leave; they count what is mapped, used or not."""
    with suppress(OSError, ValueError, ImportError):
        import resource

        size, _, _, _, _, data, _ = map(int, Path("/proc/self/statm").read_text().split())
        bytes_left = []
        for kind, pages in ((resource.RLIMIT_AS, size), (resource.RLIMIT_DATA, data)):
            limit, _ = resource.getrlimit(kind)
            if limit != resource.RLIM_INFINITY:
                bytes_left.append(limit - pages * resource.getpagesize())
        return bytes_left
    return []


@contextmanager
def memory_limited(limit: int | None) -> Iterator[None]:
    """Enforce a limit on memory within this block; None leaves the limit of an enclosing block in force."""
    token = _memory_limit.set(_memory_limit.get() if limit is None else limit)
    try:
        yield
    finally:
        _memory_limit.reset(token)


def check_memory(doing: str, need: int) -> None:
    """Raise if this process and `need` more bytes would exceed the limit of the call, or `need` alone the machine."""
    limit = _memory_limit.get()
    if limit is not None:
        resident = resident_memory()
        if resident + need > limit:
            beside = f", {shown_bytes(resident)} are held already" if resident else ""
            problem = f"{doing} needs about {shown_bytes(need)} more{beside}"
            raise _exceeded(f"{problem}, and the memory limit is {shown_bytes(limit)}")
        return
    machine = machine_memory()
    if machine is None:
        return
    available = min([machine, *_left_by_ulimit()])
    if need > available:  # what is held now may be freed by then
        problem = f"{doing} needs about {shown_bytes(need)} more"
        raise _exceeded(f"{problem}, but only {shown_bytes(available)} is available")


def check_memory_used(doing: str) -> None:
    """Raise if this process has more than the limit of the call, or nearly all that the machine has."""
    limit = _memory_limit.get()
    if limit is not None:
        resident = resident_memory()
        if resident > limit:
            raise _exceeded(
                f"{doing} holds {shown_bytes(resident)} already, and the memory limit is {shown_bytes(limit)}"
            )
        return
    machine = machine_memory()
    if machine is None:
        return
    resident = resident_memory()
    spare = min(machine // 10, _MAX_SPARE_BYTES)  # beyond that the kernel kills the process
    if resident > machine - spare:
        raise _exceeded(f"{doing} holds {shown_bytes(resident)} already, but only {shown_bytes(machine)} is available")


def _exceeded(problem: str) -> MemoryLimitExceeded:
    remedy = "Choose fewer columns, use bins for numbers, raise the limit, or use "
    return MemoryLimitExceeded(f"{problem}. {remedy}", Given("engine", "spark"), ".")
