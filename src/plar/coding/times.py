"""Times as text, spelled alike for every library and unit; and as numbers, of seconds.

Python's own end at microseconds and the year 9999, and pandas, numpy and polars disagree on theirs.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

_SECONDS = {"W": 604_800, "D": 86_400, "h": 3600, "m": 60, "s": 1}
_DIGITS = {"ms": 3, "us": 6, "ns": 9, "ps": 12, "fs": 15, "as": 18}
_MISSING = np.iinfo(np.int64).min
_EPOCH = dt.date(1970, 1, 1).toordinal()
_SECONDS_PER_DAY = _SECONDS["D"]
#: units of a second in which times are compared
TICKS = 10**18


class TimeCuts(tuple[float, ...]):
    """Cut points of times, in seconds, and the kind of times, as `kind_of_times` names it."""

    kind: str

    def __new__(cls, points: Iterable[float], kind: str = "point") -> Self:
        """Make a tuple that knows its kind."""
        cuts = super().__new__(cls, points)
        cuts.kind = kind
        return cuts

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle with the kind."""
        return TimeCuts, (tuple(self), self.kind)


# ISO 8601 as libraries write it: to the day or month, with a T or a blank before the time of day
_MINUTES = r"([0-5][0-9])(?::([0-5][0-9])(?:[.,]([0-9]{1,18}))?)?"
_HOUR = "([01][0-9]|2[0-3])"
_CLOCK = f"{_HOUR}:{_MINUTES}"
_ZONE = r"(Z|[+-][0-9]{2}(?::?[0-9]{2})?)"
_POINT = re.compile(rf"([0-9]{{4}}-[0-9]{{2}})(-[0-9]{{2}})?(?:(?<=-..-..)[T ]{_HOUR}(?::{_MINUTES})?{_ZONE}?)?")
_TIME_OF_DAY = re.compile(f"{_CLOCK}{_ZONE}?")
_SECONDS_OF_DURATION = r"([0-9]+)(?:[.]([0-9]{1,18}))?S"
_DURATION = re.compile(rf"(-)?P(?=.*[0-9])(?:([0-9]+)D)?(?:T(?:([0-9]+)H)?(?:([0-9]+)M)?(?:{_SECONDS_OF_DURATION})?)?")


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


# -- as numbers -------------------------------------------------------------------------------------------------


def times_as_numbers(texts: Sequence[str]) -> list[int] | None:
    """The times that texts write, all points in time, all times of day or all durations; None if some text is no such.

    They are exact, in units of 10^-18 seconds. Points in time count from 1970 on, in UTC if they have no zone.

    >>> times_as_numbers(["2024-02-29", "2024-02-29 00:00:01.5"]), times_as_numbers(["2024-02-29", "12:30"])
    ([1709164800000000000000000000, 1709164801500000000000000000], None)
    """
    for pattern, ticks_of in _KINDS_OF_TIMES.values():
        if texts and pattern.fullmatch(texts[0].strip()):
            return _ticks_of_each(texts, pattern, ticks_of)
    return None


def written_times(texts: Sequence[str | None]) -> NDArray[np.float64] | None:
    """The same times in seconds, each as the nearest float; None is missing, and NaN.

    >>> written_times(["1970-01-02", None, "1970-01-01T00:00:01.5"]), written_times(["1970-01-02", "12:00"])
    (array([8.64e+04,      nan, 1.50e+00]), None)
    """
    is_present = np.array([text is not None for text in texts])
    ticks = times_as_numbers([text for text in texts if text is not None])
    if ticks is None:
        return None
    seconds = np.full(len(texts), np.nan)
    seconds[is_present] = [number / TICKS for number in ticks]  # a quotient of whole numbers is rounded once
    return seconds


def kind_of_times(values: Sequence[Any]) -> str | None:
    """Whether values write points in time, times of day or durations; None if they do not, or there are none.

    >>> kind_of_times(["2024-02-29", None]), kind_of_times(["PT5S"]), kind_of_times(["5"]), kind_of_times([5])
    ('point', 'duration', None, None)
    """
    present = [value for value in values if value is not None]
    are_texts = all(isinstance(value, str) for value in present)
    if not present or not are_texts or times_as_numbers(present) is None:
        return None
    matching = (kind for kind, (pattern, _) in _KINDS_OF_TIMES.items() if pattern.fullmatch(present[0].strip()))
    return next(matching)


def spelled_seconds(seconds: float, kind: str) -> str | None:
    """Write seconds as the time of a kind that they stand for; None if there is no such time.

    >>> spelled_seconds(86_400.0, "point"), spelled_seconds(45_000.5, "clock"), spelled_seconds(-90.0, "duration")
    ('1970-01-02', '12:30:00.5', '-PT90S')
    """
    exact = Decimal(repr(seconds))
    if kind == "duration":
        return f"{'-' if exact < 0 else ''}PT{_plain(abs(exact))}S"
    days = int(exact // _SECONDS_PER_DAY)
    rest = exact - days * _SECONDS_PER_DAY
    if rest < 0:
        days -= 1
        rest += _SECONDS_PER_DAY
    minutes, second = divmod(rest, 60)
    hour, minute = divmod(int(minutes), 60)
    whole, point, fraction = _plain(second).partition(".")
    clock = f"{hour:02}:{minute:02}:{int(whole):02}{point}{fraction}"
    if kind == "clock":
        return clock if days == 0 else None
    try:
        day = dt.date.fromordinal(_EPOCH + days).isoformat()
    except (ValueError, OverflowError):
        return None
    return day if rest == 0 else f"{day}T{clock}"


def _plain(number: Decimal) -> str:
    """A number without an exponent, with at most as many digits as times are read with."""
    return _trimmed(f"{number:.18f}")


def is_time(text: str) -> bool:
    """Whether a text writes a time of one of these kinds.

    >>> is_time("2026-02-28"), is_time("2026-02-29"), is_time("23:59"), is_time("-PT90S"), is_time("2026")
    (True, False, True, True, False)
    """
    return times_as_numbers([text]) is not None


_TicksOf: TypeAlias = Callable[[re.Match[str]], int | None]


def _ticks_of_each(texts: Sequence[str], pattern: re.Pattern[str], ticks_of: _TicksOf) -> list[int] | None:
    """All times of one kind; None if a text is none."""
    times: list[int] = []
    for text in texts:
        match = pattern.fullmatch(text.strip())
        ticks = None if match is None else ticks_of(match)
        if ticks is None:
            return None
        times.append(ticks)
    return times


def _ticks_of_point(match: re.Match[str]) -> int | None:
    """Since 1970; None for a day that does not exist."""
    month, day, *clock = match.groups()
    try:
        days = dt.date.fromisoformat(month + (day or "-01")).toordinal() - _EPOCH
    except ValueError:
        return None
    return days * 86_400 * TICKS + _ticks_of_clock(*clock)


def _ticks_of_day(match: re.Match[str]) -> int:
    return _ticks_of_clock(*match.groups())


def _ticks_of_clock(
    hour: str | None, minute: str | None, second: str | None, fraction: str | None, zone: str | None
) -> int:
    """A time of day, in UTC if it has a zone."""
    seconds = int(hour or 0) * 3600 + int(minute or 0) * 60 + int(second or 0)
    if zone is not None and zone != "Z":
        offset = int(zone[1:3]) * 3600 + int(zone[3:].lstrip(":") or 0) * 60
        seconds += offset if zone[0] == "-" else -offset
    return seconds * TICKS + _ticks_of_fraction(fraction)


def _ticks_of_duration(match: re.Match[str]) -> int:
    minus, days, hours, minutes, seconds, fraction = match.groups()
    whole = 86_400 * int(days or 0) + 3600 * int(hours or 0) + 60 * int(minutes or 0) + int(seconds or 0)
    ticks = whole * TICKS + _ticks_of_fraction(fraction)
    return -ticks if minus else ticks


def _ticks_of_fraction(digits: str | None) -> int:
    return int((digits or "").ljust(18, "0"))


_KINDS_OF_TIMES: dict[str, tuple[re.Pattern[str], _TicksOf]] = {
    "point": (_POINT, _ticks_of_point),
    "clock": (_TIME_OF_DAY, _ticks_of_day),
    "duration": (_DURATION, _ticks_of_duration),
}
