"""What the notes of rules say of columns that were not compared as people may expect."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

import plar

N = 60
TABLE: dict[str, list[Any]] = {
    "few": [i % 5 for i in range(N)],
    "amount": [(7 * i) % 31 + 0.5 for i in range(N)],
    "day": [dt.date(2026, 1, 1) + dt.timedelta(days=(11 * i) % 29) for i in range(N)],
    "name": [f"name {i % 20}" for i in range(N)],
    "d": [i % 2 for i in range(N)],
}
KINDS = ["tested", "certain", "possible"]


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_that_are_compared_for_equality(kind: str) -> None:
    """They hardly ever say anything so, and who names the bins of one column may not expect it of the others."""

    def notes(bins: Any) -> tuple[str, ...]:
        return plar.rules(TABLE, "d", kind=kind, bins=bins).notes

    both = "2 columns of numbers or dates were compared for equality, not cut: amount, day (option bins)."
    one = "1 column of numbers or dates was compared for equality, not cut: day (option bins)."
    assert notes(None) == (both,)
    assert notes({"amount": [10.0]}) == (one,)
    assert notes("quantile:4") == ()
    assert notes("auto") == ("2 columns of numbers or dates were compared in decile bins: amount, day (option bins).",)
    assert one in str(plar.rules(TABLE, "d", kind=kind, bins={"amount": [10.0]})).replace("\n  ", " ")


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_and_dates_in_formats_that_are_not_read(kind: str) -> None:
    table = {
        "price": [f"1.{i % 20:03},50" for i in range(N)],
        "when": [f"{1 + i % 20:02}.01.2026" for i in range(N)],
        "d": TABLE["d"],
    }
    [note] = plar.rules(table, "d", kind=kind).notes
    assert note.startswith("price, when look like numbers or dates in a format that plar does not recognize, and were")
    assert plar.rules(table, "d", kind=kind, attributes=["price"]).notes[0].startswith("price looks like numbers")
    assert note in plar.select(table, "d").notes
