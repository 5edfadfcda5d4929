"""Times as text, spelled alike for every library and unit.

Python's own end at microseconds and the year 9999, and pandas, numpy and polars disagree on theirs.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any

import numpy as np

_SECONDS = {"W": 604_800, "D": 86_400, "h": 3600, "m": 60, "s": 1}
_DIGITS = {"ms": 3, "us": 6, "ns": 9, "ps": 12, "fs": 15, "as": 18}
_MISSING = np.iinfo(np.int64).min


def spelled_times(ticks: Iterable[int], dtype: np.dtype[Any], zone: str = "") -> list[str | None]:
    """Spell times of a numpy type; `zone` is appended to points in time.

    >>> spelled_times([1500, 0], np.dtype("M8[ms]")), spelled_times([1500], np.dtype("m8[ms]"))
    (['1970-01-01T00:00:01.5', '1970-01-01T00:00:00'], ['PT1.5S'])
    """
    ticks = list(ticks)
    unit, step = np.datetime_data(dtype)
    if dtype.kind == "m" and (unit in _SECONDS or unit in _DIGITS):
        return [_duration(tick * step, unit) if tick != _MISSING else None for tick in ticks]
    times = np.array(ticks, np.int64).view(dtype)
    written = np.datetime_as_string(times) if dtype.kind == "M" else times.astype(str)  # months have no seconds
    return [None if text == "NaT" else _trimmed(text) + zone for text in written.tolist()]


def spelled_time(value: Any) -> Any:
    """Spell a time of Python or pandas; anything else is returned unchanged.

    >>> spelled_time(dt.datetime(2026, 1, 2, 3, tzinfo=dt.timezone(dt.timedelta(hours=1)))), spelled_time(3)
    ('2026-01-02T02:00:00Z', 3)
    """
    if isinstance(value, dt.timedelta) and not hasattr(value, "asm8"):
        return _duration(value // dt.timedelta(microseconds=1), "us")
    if isinstance(value, dt.time):
        return _trimmed(value.isoformat()) if value.tzinfo is None else value.isoformat()
    if not isinstance(value, (dt.date, dt.timedelta)):
        return value
    zone = "Z" if getattr(value, "tzinfo", None) is not None else ""
    time: Any = getattr(value, "asm8", value)  # of pandas: in UTC
    if isinstance(time, dt.datetime):
        time = np.datetime64(time.replace(tzinfo=None), "us") - np.timedelta64(time.utcoffset() or 0, "us")
    elif isinstance(time, dt.date):
        time = np.datetime64(time, "D")
    return spelled_times([int(time.view(np.int64))], time.dtype, zone)[0]


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _duration(ticks: int, unit: str) -> str:
    """As ISO 8601 writes seconds."""
    sign = "-" if ticks < 0 else ""
    if unit in _SECONDS:
        return f"{sign}PT{abs(ticks) * _SECONDS[unit]}S"
    n_digits = _DIGITS[unit]
    seconds, fraction = divmod(abs(ticks), 10**n_digits)
    return f"{sign}PT{_trimmed(f'{seconds}.{fraction:0{n_digits}}')}S"
