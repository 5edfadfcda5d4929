"""What a user meets in the first ten minutes: words that are checked, results that can be read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plar
from plar.engines import LocalEngine

TABLE = {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "d": ["N", "Y", "N", "N"]}


def lost(counts: Any) -> Any:
    return counts.sum() - counts.max()


def gini(counts: Any) -> Any:
    return 1 - ((counts / counts.sum()) ** 2).sum()


def opaque(counts: Any) -> Any:
    return open(counts)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            lambda: plar.reduce(TABLE, "d", engine="gpu"),
            "Unknown engine .gpu.. Choose one of: auto, local",
        ),
        (lambda: plar.reduce(TABLE, "d", engine=LocalEngine), "name or an engine with its options"),  # type: ignore[arg-type]
        (lambda: plar.reduce(TABLE, "d", engine=None), "name or an engine with its options"),  # type: ignore[arg-type]
        (lambda: plar.reduce(TABLE, "d", engine=LocalEngine(), n_jobs=2), "Pass n_jobs to the engine itself"),
        (lambda: plar.reduce(TABLE, "d", n_jobs=0), "'n_jobs' parameter must be None or -1"),
        (lambda: plar.reduce(TABLE, "d", n_jobs="2"), "'n_jobs' parameter must be None or -1"),  # type: ignore[arg-type]
        (lambda: plar.reduce(TABLE, "d", measure=3), "must be a name or a plar.Measure"),  # type: ignore[arg-type]
        (lambda: plar.reduce(TABLE, "d", epsilon=-0.1), "'epsilon' parameter must be"),
        (lambda: plar.reduce(TABLE, "d", tolerance="1"), "'tolerance' parameter must be"),  # type: ignore[arg-type]
        (lambda: plar.reduce(TABLE, "d", max_attributes=True), "'max_attributes' parameter must be"),
        (lambda: plar.reduce(TABLE, "d", include=["a", "b"], max_attributes=1), "include= alone has 2"),
        (lambda: plar.reduce(TABLE, "d", include="e"), "Unknown column 'e'"),
        (lambda: plar.reduce(TABLE, "d", include="d"), "Column 'd' is the decision. Choose others"),
        (lambda: plar.reduce(TABLE, "d", progress=True), "'progress' parameter must be a function"),  # type: ignore[arg-type]
        (lambda: plar.theta(TABLE, ["e"], decision="d"), "Unknown column 'e'"),
        (lambda: plar.Measure("m", 3, lambda n: n), "'theta' of measure 'm' must be a function"),  # type: ignore[arg-type]
        (lambda: plar.reduce(TABLE, "d", measure=plar.Measure("g", gini, lambda n: n)), "must return a whole number"),
        (lambda: plar.reduce(TABLE, "d", measure=plar.Measure("o", opaque, lambda n: n)), "numba cannot compile"),
        (lambda: plar.load("nowhere.json"), "nowhere.json"),
    ],
)
def test_wrong_words_are_one_clear_line(wrong: Callable[[], object], said: str) -> None:
    with pytest.raises(plar.PlarError, match=said) as error:
        wrong()
    assert "\n" not in str(error.value)


def test_numpy_numbers_are_numbers() -> None:
    reduct = plar.reduce(TABLE, "d", max_attributes=np.int64(1), epsilon=np.float32(0), n_jobs=-1)  # type: ignore[arg-type]
    assert len(reduct.attributes) == 1
    assert plar.theta(TABLE, [np.int64(1)], decision="d") == plar.theta(TABLE, "b", decision="d")  # type: ignore[list-item]


def test_no_significance_is_negative() -> None:
    """Splitting counts 11·(3, 5) into 4·(3, 5) and 7·(3, 5) changes nothing, but for rounding."""
    table = {"a": [0, 0, 1, 1], "d": [0, 1, 0, 1], "w": [12, 20, 21, 35]}
    assert plar.significance(table, decision="d", weights="w") == {"a": 0.0}
    reduct = plar.reduce(table, "d", weights="w")
    assert (reduct.attributes, reduct.complete, reduct.consistent) == ((), True, False)


def test_a_result_reads_well() -> None:
    reduct = plar.reduce(TABLE, "d")
    assert repr(reduct) == "<Reduct: 2 of 2 columns by SCE, preserved, minimal>"
    assert "reduct  a, b" in str(reduct)
    alone = str(plar.reduce({"a": [0, 1], "d": [1, 1]}, "d"))
    assert "one class only" in alone
    assert "reduct  (empty)" in alone
    assert "all columns together reach 0." in str(plar.reduce(TABLE, "d", max_attributes=1))


def test_a_result_survives_its_file(tmp_path: Path) -> None:
    reduct = plar.reduce(TABLE, "d")
    reduct.save(tmp_path / "r.json")
    assert plar.load(tmp_path / "r.json") == reduct
    text = (tmp_path / "r.json").read_text()
    (tmp_path / "r.json").write_text(text.replace('"n_objects": 4', '"n_objects": 5'))
    with pytest.raises(plar.TableError, match=r"is not as it was saved: .* remove the checksum\.$"):
        plar.load(tmp_path / "r.json")
    assert [p.name for p in tmp_path.iterdir()] == ["r.json"]
    (tmp_path / "bad.json").write_text('{"attributes": 3}')
    with pytest.raises(plar.TableError, match="is not a saved reduct"):
        plar.load(tmp_path / "bad.json")
    with pytest.raises(plar.TableError, match="Cannot write"):
        reduct.save(tmp_path / "nowhere" / "r.json")


def test_progress_and_steps_are_told() -> None:
    phases: list[str] = []
    steps: list[plar.Step] = []
    reduct = plar.reduce(
        TABLE, "d", epsilon=9, progress=lambda phase, done, total: phases.append(phase), on_step=steps.append
    )
    assert list(dict.fromkeys(phases)) == ["read", "granulate", "core", "search", "certificate"]
    assert tuple(steps) == reduct.steps
    assert len(steps) == 2


def test_own_measure_with_a_compiled_function() -> None:
    import numba

    by_name = plar.reduce(TABLE, "d", measure=plar.Measure("lost", lost, lambda n: n, drop_pure=True))
    compiled = plar.reduce(TABLE, "d", measure=plar.Measure("lost", numba.njit(lost), lambda n: n, drop_pure=True))
    assert by_name.attributes == compiled.attributes == ("a", "b")


def test_results_saved_with_equivalent_columns_still_load(tmp_path: Path) -> None:
    reduct = plar.reduce({**TABLE, "copy": TABLE["a"]}, "d", equivalent=True)
    assert reduct.equivalent == (("a", "copy"),)
    assert "equivalent" not in reduct.to_dict()
    (tmp_path / "r.json").write_text(json.dumps({**reduct.to_dict(), "equivalent": [["a", "copy"]]}))
    assert plar.load(tmp_path / "r.json").equivalent == reduct.equivalent
