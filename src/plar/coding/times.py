"""Times as text, spelled alike for every library and unit.

Python's own end at microseconds and the year 9999, and pandas, numpy and polars disagree on theirs.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

_SECONDS = {"W": 604_800, "D": 86_400, "h": 3600, "m": 60, "s": 1}
_DIGITS = {"ms": 3, "us": 6, "ns": 9, "ps": 12, "fs": 15, "as": 18}
_MISSING = np.iinfo(np.int64).min

_DATE = r"([0-9]{4})-([0-9]{2})(?:-([0-9]{2}))?"
_CLOCK = r"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]{1,18}))?)?"
_ZONE = "(Z|[+-][0-9]{2}(?::?[0-9]{2})?)"
#: units of a second, and the day from which days are counted
_TICKS = 10**18
_EPOCH = dt.date(1970, 1, 1).toordinal()
#: points in time, times of a day and durations, as ISO 8601 writes them
_POINT = re.compile(f"{_DATE}(?:[T ]{_CLOCK}{_ZONE}?)?")
_TIME_OF_DAY = re.compile(f"{_CLOCK}{_ZONE}?")
_DURATION = re.compile(r"(-?)PT([0-9]+)(?:[.]([0-9]{1,18}))?S")


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


def times_as_numbers(texts: Sequence[str]) -> list[int] | None:
    """Times that texts write, all of one kind, as numbers to compare; None if some text is no such time.

    >>> times_as_numbers(["2024-02-29", "2024-02-29 00:00:01.5"]), times_as_numbers(["2024-02-29", "12:30"])
    ([1709164800000000000000000000, 1709164801500000000000000000], None)
    """
    for number_of in (_point_in_time, _time_of_day, _length):
        numbers = list(map(number_of, texts[:1]))
        if None not in numbers:
            numbers = list(map(number_of, texts))
            return None if None in numbers else [number for number in numbers if number is not None]
    return None


def _point_in_time(text: str) -> int | None:
    match = _POINT.fullmatch(text)
    if match is None:
        return None
    year, month, day, *clock = match.groups()
    try:
        days = dt.date(int(year), int(month), int(day or 1)).toordinal() - _EPOCH
    except ValueError:
        return None
    return days * 86_400 * _TICKS + _ticks(*clock)


def _time_of_day(text: str) -> int | None:
    match = _TIME_OF_DAY.fullmatch(text)
    return None if match is None else _ticks(*match.groups())


def _length(text: str) -> int | None:
    match = _DURATION.fullmatch(text)
    if match is None:
        return None
    sign, seconds, fraction = match.groups()
    ticks = int(seconds) * _TICKS + int((fraction or "").ljust(18, "0"))
    return -ticks if sign else ticks


def _ticks(hour: str | None, minute: str | None, second: str | None, fraction: str | None, zone: str | None) -> int:
    """A time of a day in units of 10^-18 seconds, in UTC if it has a zone."""
    seconds = int(hour or 0) * 3600 + int(minute or 0) * 60 + int(second or 0)
    if zone is not None and zone != "Z":
        offset = int(zone[1:3]) * 3600 + int(zone[3:].lstrip(":") or 0) * 60
        seconds += offset if zone[0] == "-" else -offset
    return seconds * _TICKS + int((fraction or "").ljust(18, "0"))
