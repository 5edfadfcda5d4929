"""`plar.check` and `Reduct.update` beside steps of the plain search, in one run; every row asserts its answer.

    python benchmarks/check.py              # all rows (make bench)
    python benchmarks/check.py stands mends # some rows; QUICK=1: smaller tables

Each row prints plar's time, that of two plain steps, their ratio and the bar it must meet. The figures go to
.bench/check.json.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

from bars import report, run, timed_steps
from select_speed import planted

import plar
from plar.engines import LocalEngine
from plar.granules.granules import Granules
from plar.measures import SCE

#: of the reduct, which the table has among thousands
N_COLUMNS = 10


@cache
def table() -> tuple[Granules, plar.Reduct]:
    """SDSS shape, and its planted columns as a reduct that was chosen from all columns."""
    granules, causes = planted()
    names = [granules.conditions[a] for a in causes]
    reduct = plar.reduce(granules.coarsen(names))
    assert len(reduct.attributes) == N_COLUMNS
    return granules, replace(reduct, conditions=granules.conditions)


def beside_two_steps(work: str, check: Callable[[], float]) -> None:
    """Time a check in turn with ten plain steps, so that a noisy machine disturbs both; granules are at hand."""
    granules, _ = table()
    k = len(granules.conditions)
    check()  # kernels are compiled
    ratios: list[tuple[float, float, float]] = []
    for _ in range(3):
        evaluation = LocalEngine().open(granules, SCE)
        evaluation.with_each(range(k))  # the columns are laid out
        times, _ = timed_steps(evaluation, k, N_COLUMNS)
        del evaluation
        two_steps = 2 * sum(times) / len(times)
        seconds = check()
        ratios.append((seconds / two_steps, seconds, two_steps))
    _, ours, reference = min(ratios)
    report(f"SDSS shape, {work} : two plain steps", ours, reference, 1)


def stands() -> None:
    """All ten columns are needed, and keep everything."""
    granules, reduct = table()

    def check() -> float:
        result = plar.check(reduct, granules)
        assert result.stands
        assert len(result.replicating) == N_COLUMNS
        return result.seconds["check"]

    beside_two_steps("check of a reduct that stands", check)


def mends() -> None:
    """One of the ten is missing: two rows say why, and it is found again."""
    granules, reduct = table()
    lost = reduct.attributes[4]
    rest = tuple(name for name in reduct.attributes if name != lost)
    lacking = replace(reduct, attributes=rest)

    def check() -> float:
        result = plar.check(lacking, granules)
        assert not result.stands
        assert result.mending is not None
        assert len(result.mending.columns) == 1
        return result.seconds["check"] + result.seconds["mend"]

    beside_two_steps("check of a reduct that lacks a column, with what mends it", check)


def predicts() -> None:
    """A selection of the same columns."""
    granules, reduct = table()
    selection = plar.select(granules.coarsen(reduct.attributes))
    assert len(selection.columns) == N_COLUMNS

    def check() -> float:
        result = plar.check(selection, granules)
        assert result.stands
        return result.seconds["check"]

    beside_two_steps("check of a selection", check)


if __name__ == "__main__":
    run((stands, mends, predicts), "check.json")
