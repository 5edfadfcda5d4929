"""Everybody's tables against the oracle; the nine real datasets of the paper: the brute force's figures, exactly."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plar
from plar import datasets
from support import oracle
from support.comparing import assert_agrees
from support.environment import EXAMPLES, TIC_TAC_TOE
from support.real import EVERYBODYS, NINE_BY_MEASURE, granules, judged, paper


@pytest.mark.filterwarnings("ignore:The numbers of:plar.PlarWarning")
@pytest.mark.parametrize("measure", oracle.MEASURES)
@pytest.mark.parametrize("name", EVERYBODYS)
def test_everybodys_tables(engine: Any, name: str, measure: str) -> None:
    table, expected = judged(name, measure)
    assert_agrees(plar.reduce(granules(name), measure=measure, engine=engine), expected, table, measure)


def test_they_are_of_many_kinds() -> None:
    outcomes = [judged(name, "SCE")[1] for name in EVERYBODYS]
    assert {outcome.consistent for outcome in outcomes} == {True, False}
    assert {bool(outcome.core) for outcome in outcomes} == {True, False}


@pytest.mark.filterwarnings("ignore:The numbers of:plar.PlarWarning")
@pytest.mark.parametrize(("name", "measure"), NINE_BY_MEASURE)
def test_nine_datasets(engine: Any, data_folder: Path, name: str, measure: str) -> None:
    expected = json.loads((data_folder / "expected.json").read_text())[name]
    table = granules(name)
    assert table.n_objects == expected["rows"]
    assert len(table.conditions) == expected["conditions"]
    assert table.n_decisions == expected["decisions"]

    reduct = plar.reduce(table, measure=measure, engine=engine)

    place = table.conditions.index
    figures = expected[measure]
    assert [place(a) for a in reduct.core] == figures["core"]
    assert [place(a) for a in reduct.attributes] == figures["reduct"]
    assert reduct.theta_all == pytest.approx(figures["theta_all"], rel=0, abs=1e-9)
    assert [step.theta for step in reduct.steps] == pytest.approx(figures["theta_steps"], rel=0, abs=1e-9)
    assert reduct.complete
    assert reduct.certificate.preserved


@paper
def test_kdd99_is_read(data_folder: Path) -> None:
    table = plar.granulate(datasets.load("kdd99", data_folder))
    assert (table.n_objects, len(table.conditions), table.n_decisions) == (494_021, 41, 23)


def test_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLAR_DATA", raising=False)
    with pytest.raises(plar.TableError, match="Set the environment variable PLAR_DATA"):
        datasets.load("mushroom")


def test_generators_repeat_themselves() -> None:
    for make in (datasets.random_table, datasets.sdss_like, datasets.gisette_like):
        (X, y), (again, same), (other, _) = (make(300, 50, 8, 5, seed=s) for s in (1, 1, 2))
        assert X.dtype == y.dtype == np.uint8
        assert X.flags.f_contiguous
        assert np.array_equal(X, again)
        assert np.array_equal(y, same)
        assert not np.array_equal(X, other)


def test_generators_refuse_nonsense() -> None:
    with pytest.raises(plar.TableError, match=r"'values' parameter must be at least 1 and at most 256\. Got 300"):
        datasets.sdss_like(10, 10, values=300)
    with pytest.raises(plar.TableError, match=r"'n' parameter must be at least 1\. Got 0"):
        datasets.random_table(0)


def test_sdss_like_has_structure() -> None:
    X, y = datasets.sdss_like(n=5_000, attributes=100)
    outer = plar.significance(X, y=y, measure="SCE")
    best = sorted(outer, key=lambda name: outer[name], reverse=True)[:3]
    assert {int(name[1:]) % 20 for name in best} == {10}


def test_example_script_reproduces_its_table(tmp_path: Path) -> None:
    made = tmp_path / "made.csv"
    subprocess.run([sys.executable, EXAMPLES / "make_tic_tac_toe.py", made], check=True)
    assert made.read_bytes() == (TIC_TAC_TOE).read_bytes()


@paper
def test_example_table_is_the_uci_table(data_folder: Path) -> None:
    ours = (TIC_TAC_TOE).read_text().splitlines()
    assert len(ours) == 959
    assert ours[1:] == (data_folder / "tic-tac-toe.data").read_text().splitlines()


def test_example_table_reduces_to_eight(engine: Any) -> None:
    for measure in ("PR", "SCE", "LCE", "CCE"):
        path = TIC_TAC_TOE
        reduct = plar.reduce(path, decision="x_wins", measure=measure, engine=engine)
        assert len(reduct.attributes) == 8
        assert reduct.core == ()
        assert reduct.consistent
