"""Threads share work, in order and under the caller's limits, and nothing is divided twice."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from plar.errors import MemoryLimitExceeded
from plar.runtime.limits import check_memory_used, memory_limited
from plar.runtime.parallel import ThreadTeam, in_threads, run_polled, threads, usable_cores

Divide = Callable[[Callable[[int], object], list[int]], list[object]]


def by_iterator(function: Callable[[int], object], tasks: list[int]) -> list[object]:
    return list(in_threads(function, tasks))


def by_team(function: Callable[[int], object], tasks: list[int]) -> list[object]:
    return ThreadTeam(usable_cores()).run(function, tasks)


both = pytest.mark.parametrize("divide", [by_iterator, by_team])


@both
@pytest.mark.parametrize("n_threads", [1, 3])
def test_results_are_in_order(divide: Divide, n_threads: int) -> None:
    with threads(n_threads):
        assert divide(lambda task: task * task, list(range(50))) == [n * n for n in range(50)]
        assert divide(lambda task: task, []) == []


@both
@pytest.mark.parametrize("inner", [by_iterator, by_team])
def test_nested_work_runs_in_the_thread_of_its_task(divide: Divide, inner: Divide) -> None:
    def names(_: int) -> set[object]:
        with threads(4):  # as an engine with threads of its own asks
            assert usable_cores() == 1
            return {*inner(lambda _: threading.get_ident(), [1, 2, 3]), threading.get_ident()}

    with threads(4):
        each = divide(names, [1, 2, 3])
    assert all(isinstance(idents, set) and len(idents) == 1 for idents in each)


def test_a_single_task_may_be_divided() -> None:
    team = ThreadTeam(3)
    meet = threading.Barrier(2, timeout=10)

    def outer(_: int) -> int:
        return len(team.run(lambda _: meet.wait(), [1, 2]))

    assert team.run(outer, [1]) == [2]


@both
def test_tasks_run_under_the_limits_of_the_call(divide: Divide) -> None:
    with threads(2), memory_limited(1), pytest.raises(MemoryLimitExceeded):
        divide(lambda _: check_memory_used("This test"), [1, 2, 3, 4])


@both
def test_an_error_of_a_task_is_the_error_of_all(divide: Divide) -> None:
    def fail(task: int) -> int:
        if task == 2:
            raise ValueError("two")
        return task

    with threads(3), pytest.raises(ValueError, match="two"):
        divide(fail, [1, 2, 3])


def test_others_are_told_to_stop() -> None:
    stopped = threading.Event()

    def work(task: int) -> None:
        if task == 0:
            raise ValueError
        assert stopped.wait(10)

    with threads(2), pytest.raises(ValueError):  # noqa: PT011 - the task's own
        list(in_threads(work, [0, 1], stop=stopped.set))


def test_results_are_noted_in_the_calling_thread() -> None:
    noted: list[tuple[int, int]] = []
    ThreadTeam(3).run(lambda task: task, range(20), note=lambda task: noted.append((task, threading.get_ident())))
    assert sorted(task for task, _ in noted) == list(range(20))
    assert {ident for _, ident in noted} == {threading.get_ident()}


def test_few_cells_are_not_worth_a_thread() -> None:
    with threads(4):
        idents = set(in_threads(lambda _: threading.get_ident(), range(9), cells=10))
    idents |= set(ThreadTeam(4, min_cells=11).run(lambda _: threading.get_ident(), range(9), cells=10))
    assert idents == {threading.get_ident()}


@pytest.mark.parametrize("n_threads", [1, 2])
def test_start(n_threads: int) -> None:
    team = ThreadTeam(2)
    with threads(n_threads):
        idents = [team.start(threading.get_ident)() for _ in range(3)]
    assert (idents[0] == threading.get_ident()) is (n_threads == 1)
    assert len(set(idents)) == 1  # the thread stays
    assert ThreadTeam(1).start(threading.get_ident)() == threading.get_ident()


def test_a_poll_ends_the_wait() -> None:
    release = threading.Event()

    def poll() -> None:
        raise MemoryLimitExceeded("enough")

    began = time.monotonic()
    with pytest.raises(MemoryLimitExceeded, match="enough"):
        run_polled(lambda: release.wait(60), poll, 0.01)
    assert time.monotonic() - began < 30
    release.set()
    with pytest.raises(ZeroDivisionError):
        run_polled(lambda: 1 // 0, lambda: None, 0.01)
