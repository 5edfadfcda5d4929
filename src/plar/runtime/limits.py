"""Limits of time and memory, and how much memory this process has and uses."""

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

from plar.errors import MemoryLimitExceeded, ParameterError

_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_BYTES = {"": 1, "b": 1}
for _power, _unit in enumerate("kmgt", 1):
    _BYTES |= {_unit: 1000**_power, f"{_unit}b": 1000**_power, f"{_unit}i": 1024**_power, f"{_unit}ib": 1024**_power}
_AMOUNT: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([A-Za-z]*)")
_SPARE: Final = 1 << 30  # reserve while polars reads: it can take this much in some tenths of a second
_UNLIMITED: Final = 1 << 60  # cgroups report about this, or more, when there is no limit

#: the user's limit for the running call
_limit: ContextVar[int | None] = ContextVar("plar_memory_limit", default=None)


def as_seconds(given: object) -> float:
    """Take a time: seconds, or text such as "90s", "10m", "2h"."""
    rule = "'time_limit' parameter must be seconds, or text such as '90s', '10m' or '2h'"
    return _with_unit(given, _SECONDS, 0, rule)


def as_bytes(given: object) -> int | None:
    """Take a size: bytes, or text such as "500MB", "2GB", "1.5GiB"."""
    if given is None:
        return None
    return int(_with_unit(given, _BYTES, 1, "'memory_limit' parameter must be bytes, or text such as '500MB' or '2GB'"))


def _with_unit(given: object, units: Mapping[str, int], least: int, rule: str) -> float:
    number = given
    if isinstance(given, str) and (found := _AMOUNT.fullmatch(given.strip())):
        number = float(found[1]) * units.get(found[2].lower(), math.nan)
    value = amount(number)
    if value is None or value < least:
        raise ParameterError(f"The {rule}. Got {given!r} instead.")
    return value


def amount(given: object) -> float | None:
    """A finite number of 0 or more as a float; None for anything else."""
    with suppress(OverflowError):
        if isinstance(given, Real) and not isinstance(given, bool) and 0 <= float(given) < math.inf:
            return float(given)
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
    if seconds < 60:
        return f"{1000 * seconds:.0f} ms" if seconds < 0.01 else f"{seconds:.{2 if seconds < 10 else 1}f} s"
    whole = round(seconds)
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600:,} h {whole % 3600 // 60} min"


def resident_memory() -> int:
    """Bytes that this process holds in memory, without pages of files; 0 if the system does not say."""
    with suppress(OSError, ValueError, IndexError):
        _, resident, shared, *_ = map(int, Path("/proc/self/statm").read_text().split())
        return (resident - shared) * os.sysconf("SC_PAGE_SIZE")
    return 0


def machine_memory() -> int | None:
    """Bytes that this machine has, or that its control groups allow this process; None if unknown."""
    found = [*_group_limits()]
    with suppress(OSError, ValueError, AttributeError):
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min((n for n in found if 0 < n < _UNLIMITED), default=None)


@cache
def _group_limits() -> tuple[int, ...]:
    """Limits of the control groups of this process, in a container or not, and of their parents."""
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
                with suppress(OSError, ValueError):  # "max" is not a number, and in a container the path may be unknown
                    found.append(int((folder / file).read_text()))
                if folder == top:
                    break
    return tuple(found)


def _left_by_ulimit() -> list[int]:
    """What the limits on address space and data leave; they count what is mapped, used or not."""
    with suppress(OSError, ValueError, ImportError):
        import resource

        size, _, _, _, _, data, _ = map(int, Path("/proc/self/statm").read_text().split())
        pages = ((resource.RLIMIT_AS, size), (resource.RLIMIT_DATA, data))
        limits = [(resource.getrlimit(kind)[0], mapped * resource.getpagesize()) for kind, mapped in pages]
        return [limit - mapped for limit, mapped in limits if limit != resource.RLIM_INFINITY]
    return []


@contextmanager
def memory_limited(limit: int | None) -> Iterator[None]:
    """Make `check_memory` enforce a limit within this block; None leaves the limit of an enclosing block in force."""
    token = _limit.set(_limit.get() if limit is None else limit)
    try:
        yield
    finally:
        _limit.reset(token)


def check_memory(doing: str, need: int = 0) -> None:
    """Raise if this process holds, or with `need` would hold, more than the call or the machine allows."""
    limit, held, spare = _limit.get(), 0, 0
    known = "and the memory limit is {}"
    if limit is not None:
        held = resident_memory()
    elif (limit := machine_memory()) is None:
        return
    else:
        known = "but only {} is available"
        if need:  # what is held now may be freed by then
            limit = min([limit, *_left_by_ulimit()])
        else:  # beyond this the kernel kills the process
            held, spare = resident_memory(), min(limit // 10, _SPARE)
    if held + need <= limit - spare:
        return
    taken = f"needs about {shown_bytes(need)} more" if need else f"holds {shown_bytes(held)} already"
    beside = f", {shown_bytes(held)} are held already" if need and held else ""
    raise MemoryLimitExceeded(
        f"{doing} {taken}{beside}, {known.format(shown_bytes(limit))}. "
        "Choose fewer columns, use bins for numbers, raise the limit, or use engine='spark'."
    )
