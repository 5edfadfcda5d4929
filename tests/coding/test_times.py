"""Times as numbers: against Python's own datetimes and fractions."""

from __future__ import annotations

import datetime as dt
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plar.coding.times import is_time, spelled_time, spelled_times, written_times

EPOCH = dt.datetime(1970, 1, 1)
ZONES = st.none() | st.timedeltas(dt.timedelta(hours=-23), dt.timedelta(hours=23)).map(
    lambda offset: dt.timezone(dt.timedelta(minutes=offset // dt.timedelta(minutes=1)))
)


def seconds(span: dt.timedelta) -> float:
    """The nearest float: a fraction is rounded once."""
    return float(Fraction(span // dt.timedelta(microseconds=1), 10**6))


def written(text: str) -> float:
    numbers = written_times([text])
    assert numbers is not None, text
    return float(numbers[0])


@given(st.datetimes(dt.datetime(2, 1, 1), dt.datetime(9998, 1, 1)), ZONES)
def test_points_in_time(time: dt.datetime, zone: dt.timezone | None) -> None:
    expected = seconds(time - (zone.utcoffset(None) if zone else dt.timedelta()) - EPOCH)
    aware = time.replace(tzinfo=zone)
    for text in (aware.isoformat(), aware.isoformat(" "), f" {aware.isoformat()} ", spelled_time(aware)):
        assert written(text) == expected


@given(st.dates())
def test_days(day: dt.date) -> None:
    assert written(day.isoformat()) == 86_400.0 * (day.toordinal() - EPOCH.toordinal())
    assert written(f"{day:%Y-%m}".zfill(7)) == written(day.replace(day=1).isoformat())


@given(st.times())
def test_times_of_day(time: dt.time) -> None:
    expected = seconds(dt.datetime.combine(dt.date.min, time) - dt.datetime.min)
    assert written(time.isoformat()) == expected
    assert written(time.strftime("%H:%M")) == 3600 * time.hour + 60 * time.minute


@given(st.timedeltas(dt.timedelta(-(10**5)), dt.timedelta(10**5)))
def test_durations(span: dt.timedelta) -> None:
    assert written(spelled_time(span)) == seconds(span)


def test_other_durations_of_iso() -> None:
    assert [written(text) for text in ("P1D", "PT1H", "-PT2M", "P1DT1H1M1.5S")] == [86_400, 3600, -120, 90_061.5]


def test_nanoseconds() -> None:
    ticks = [1_600_000_000_123_456_789, -1, 0]
    texts = spelled_times(ticks, np.dtype("M8[ns]"))
    numbers = written_times(texts)
    assert numbers is not None
    assert numbers.tolist() == [float(Fraction(tick, 10**9)) for tick in ticks]


@pytest.mark.parametrize(
    "text",
    [
        *("", "2020", "20200101", "2020-13", "2020-02-30", "2020-1-1", "2020-01-01T", "24:00", "12:60"),
        *("2020-01T10:00", "2020-01-01 10:00 UTC", "01.02.2020", "1/2/2020", "P", "PT"),
        *("P1Y", "2020-W01", "now", "0000-01"),
    ],
)  # fmt: skip
def test_what_is_no_time(text: str) -> None:
    assert not is_time(text)
    assert written_times(["2020-01-01", text]) is None
    assert written_times([text, "2020-01-01"]) is None


def test_all_values_are_of_one_kind_or_missing() -> None:
    numbers = written_times([None, "1970-01-02", None])
    assert numbers is not None
    assert math.isnan(numbers[0])
    assert numbers[1] == 86_400
    assert written_times([None]) is None
    assert written_times(["10:00", "2020-01-01"]) is None
    assert written_times(["2020-01-01", "2020-01-01T10:00", "2020-01"]) is not None
