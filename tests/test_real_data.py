"""The nine real datasets of the paper and the example's table: the brute force's figures, exactly."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plar
from plar import datasets

NINE = [name for name in datasets.names() if name != "kdd99"]
EXAMPLES = Path(__file__).parent.parent / "examples"


@cache
def granules(name: str, folder: Path) -> plar.Granules:
    return plar.granulate(datasets.load(name, folder))


@pytest.mark.parametrize("measure", ["PR", "SCE", "LCE", "CCE"])
@pytest.mark.parametrize("name", NINE)
def test_nine_datasets(engine: Any, data_folder: Path, name: str, measure: str) -> None:
    expected = json.loads((data_folder / "expected.json").read_text())[name]
    table = granules(name, data_folder)
    assert table.n_objects == expected["rows"]
    assert len(table.conditions) == expected["conditions"]
    assert table.n_classes == expected["decisions"]

    reduct = plar.reduce(table, measure=measure, engine=engine)

    place = table.conditions.index
    figures = expected[measure]
    assert [place(a) for a in reduct.core] == figures["core"]
    assert [place(a) for a in reduct.attributes] == figures["reduct"]
    assert reduct.theta_all == pytest.approx(figures["theta_all"], rel=0, abs=1e-9)
    assert [step.theta for step in reduct.steps] == pytest.approx(figures["theta_steps"], rel=0, abs=1e-9)
    assert reduct.complete
    assert reduct.certificate.preserved


def test_kdd99_is_read(data_folder: Path) -> None:
    table = plar.granulate(datasets.load("kdd99", data_folder))
    assert (table.n_objects, len(table.conditions), table.n_classes) == (494_021, 41, 23)


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
    assert made.read_bytes() == (EXAMPLES / "tic_tac_toe.csv").read_bytes()


def test_example_table_is_the_uci_table(data_folder: Path) -> None:
    ours = (EXAMPLES / "tic_tac_toe.csv").read_text().splitlines()
    assert len(ours) == 959
    assert ours[1:] == (data_folder / "tic-tac-toe.data").read_text().splitlines()


def test_example_table_reduces_to_eight(engine: Any) -> None:
    for measure in ("PR", "SCE", "LCE", "CCE"):
        path = EXAMPLES / "tic_tac_toe.csv"
        reduct = plar.reduce(path, decision="x_wins", measure=measure, engine=engine)
        assert len(reduct.attributes) == 8
        assert reduct.core == ()
        assert reduct.consistent
