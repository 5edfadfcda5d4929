"""All reducts: their limits, the list of them and its files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import plar
from support.environment import TIC_TAC_TOE
from support.smallest import noise


def test_lists_reducts_up_to_a_limit() -> None:
    table = noise(60, 20)
    whole = plar.reducts(table, "d", max_size=5)
    assert not whole.complete
    assert max(whole.sizes) == 5
    some = plar.reducts(table, "d", limit=10)
    assert (len(some), some.complete) == (10, False)
    assert set(some.sizes) <= {min(whole.sizes), min(whole.sizes) + 1}
    assert "at least 10 reducts by SCE; stopped before all were found" in str(some)
    assert not plar.reducts(noise(200, 60), "d", time_limit=0.5).complete
    wide = {f"a{j}": np.random.default_rng(j).integers(0, 2, 100) for j in range(120)}
    assert not plar.reducts({**wide, "d": np.arange(100) % 2}, "d", time_limit=1).complete


def test_diverse_frames_and_files(tmp_path: Path) -> None:
    table = {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "c": [0, 0, 1, 1], "e": [0, 1, 0, 1], "d": [0, 1, 2, 3]}
    reducts = plar.reducts(table, "d")
    assert [one.attributes for one in reducts] == [("a", "b"), ("a", "e"), ("b", "c"), ("c", "e")]
    assert [one.attributes for one in reducts.diverse(2)] == [("a", "b"), ("c", "e")]
    assert len(reducts.diverse(9)) == 4
    with pytest.raises(plar.ParameterError, match=r"at least 1\. Got 0"):
        reducts.diverse(0)
    assert reducts.sizes == {2: 4}
    assert set(reducts.frequencies.values()) == {0.5}
    assert [one.attributes for one in reducts[1:3]] == [("a", "e"), ("b", "c")]
    assert reducts[-1] == list(reducts)[-1]
    assert reducts.to_frame().rows()[0] == (2, 2, ["a", "b"])
    reducts.save(tmp_path / "r.json")
    assert json.loads((tmp_path / "r.json").read_text()) == json.loads(json.dumps(reducts.to_dict()))
    nothing = plar.reducts({"a": [0, 1], "d": [0, 0]}, "d")
    assert [one.attributes for one in nothing] == [()]
    assert nothing.diverse(1)[0].attributes == ()


def test_an_interrupted_list_is_kept() -> None:
    def stop(phase: str, done: int, total: int) -> None:
        if phase == "reducts" and done:
            raise KeyboardInterrupt

    with pytest.raises(plar.Interrupted) as interrupted:
        plar.reducts(TIC_TAC_TOE, "x_wins", progress=stop)
    assert (len(interrupted.value.result), interrupted.value.result.complete) == (9, False)
