"""A session: what it opens once, whom it owns, and calls side by side."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, ClassVar

import pytest

import plar
from plar.engines import LocalEngine
from plar.options import ReadOptions, RunOptions
from plar.session.session import Session

TABLE = {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "d": ["x", "y", "y", "y"]}


class Closing(LocalEngine):
    """The local engine, which counts how often it is closed and what it releases."""

    __slots__ = ()
    closed: ClassVar[list[str]] = []
    released: ClassVar[list[object]] = []

    def close(self) -> None:
        self.closed.append("close")

    def release(self, granules: object) -> None:
        self.released.append(granules)


@pytest.fixture
def closing(monkeypatch: pytest.MonkeyPatch) -> type[Closing]:
    """What `engine="local"` makes."""
    Closing.closed.clear()
    Closing.released.clear()
    monkeypatch.setattr("plar.engines.local.LocalEngine", Closing)
    return Closing


def test_a_table_is_opened_and_granulated_once() -> None:
    with Session(TABLE, ReadOptions("d")) as session:
        assert session.table is session.table
        assert session.granules is session.granules


def test_its_own_engine_is_closed_and_another_one_is_not(closing: type[Closing]) -> None:
    with Session(TABLE, ReadOptions("d"), RunOptions(engine="local")) as session:
        granules = session.granules
    assert (closing.closed, closing.released) == (["close"], [granules])
    with Session(TABLE, ReadOptions("d"), RunOptions(engine=Closing())) as session:
        granules = session.granules
    assert closing.closed == ["close"]
    assert closing.released[1:] == [granules]


def test_what_the_caller_gave_is_not_released(closing: type[Closing]) -> None:
    granules = plar.granulate(TABLE, "d", engine=LocalEngine())
    with Session(granules, ReadOptions(), RunOptions(engine="local")) as session:
        assert session.granules is granules
    assert closing.released == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_engine_that_cannot_be_left_is_closed(
    closing: type[Closing], monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    def leave_to(*_: object) -> None:
        raise error

    monkeypatch.setattr(Closing, "leave_to", leave_to)
    with pytest.raises(error), Session(TABLE, ReadOptions("d"), RunOptions(engine="local")) as session:
        session.keep_granules()
    assert closing.closed == ["close"]
    assert len(closing.released) == 1


def test_calls_in_other_threads_need_not_wait() -> None:
    inner: list[Any] = []

    def call_in_a_thread(phase: str, _done: int, _total: int) -> None:
        if phase == "granulate" and not inner:
            thread = threading.Thread(target=lambda: inner.append(plar.core(TABLE, "d")))
            thread.start()
            thread.join(60)
            assert not thread.is_alive(), "it waits for this call"

    assert plar.core(TABLE, "d", progress=call_in_a_thread) == inner[0]


def test_a_file_that_is_gone_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,d\n1,2\n")
    table = plar.read_table(path, "d")
    path.unlink()
    with pytest.raises(plar.TableError, match=r"t\.csv"):
        plar.reduce(table)


def test_too_many_columns_to_include_are_refused_before_any_work() -> None:
    with pytest.raises(plar.ParameterError, match="include= alone has 2 columns"):
        plar.reduce("there is no such file.csv", "d", include=["a", "b"], max_attributes=1)
