"""Results and checkpoints that somebody has written by hand: read rightly, or refused in one line."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import plar
from plar.files import checksum
from plar.reduct import from_dict
from plar.report import page

ODD: list[Any] = [
    None,
    True,
    -1,
    10**400,
    1.5,
    float("nan"),
    float("inf"),
    "x",
    [],
    [[]],
    {},
    {"a": {"b": [1]}},
    [None],
]
TABLE = {"a": [0, 0, 1, 1, 2], "b": [0.5, 1.5, 0.5, 1.5, 2.5], "c": [0, 1, 1, 0, 0], "d": [0, 1, 1, 0, 1]}
OPTIONS: dict[str, Any] = {"include": ["c"], "bins": {"b": [1.0, 2.0]}, "na": ["?"]}


def places(node: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every part of what JSON holds."""
    yield way
    for key in node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
        yield from places(node[key], (*way, key))


def forged(node: Any, way: tuple[Any, ...], value: Any) -> Any:
    """A copy with another value in one place."""
    if not way:
        return value
    made = copy.deepcopy(node)
    inner = made
    for key in way[:-1]:
        inner = inner[key]
    inner[way[-1]] = value
    return made


def test_forged_results() -> None:
    saved = json.loads(json.dumps(plar.reduce(TABLE, "d", **OPTIONS).to_dict()))
    accepted = 0
    for way in places(saved):
        for value in ODD:
            try:
                found = from_dict(forged(saved, way, value))
            except plar.TableError:
                continue
            accepted += 1
            assert str(found), (way, value)
            assert found._repr_html_(), (way, value)
            assert page(found), (way, value)
    assert 0 < accepted < 1000


def test_forged_checkpoints(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    table = {**TABLE, "a2": [0, 1, 2, 0, 1]}
    right = plar.reduce(table, "d", measure="PR", max_attributes=2, checkpoint=path, **OPTIONS)
    state = json.loads(path.read_text())["state"]
    assert state["steps"]
    for way in places(state):
        for value in ODD:
            some = json.dumps(forged(state, way, value), separators=(",", ":"))
            path.write_text(f'{{"plar_checkpoint":2,"checksum":"{checksum(some.encode())}","state":{some}}}')
            try:
                found = plar.reduce(table, "d", measure="PR", max_attributes=2, checkpoint=path, **OPTIONS)
            except plar.TableError:
                continue
            assert set(found.attributes) <= set(right.conditions), (way, value)
            assert str(found), (way, value)


@pytest.mark.parametrize("text", ["[" * 990 + "]" * 990, '{"a":' * 990 + "1" + "}" * 990, "[]", "3", '"x"', "null"])
def test_nested_and_other_json(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    for written in (text, f'{{"plar_checkpoint": 2, "checksum": "", "state": {text}}}'):
        path.write_text(written)
        with pytest.raises(plar.TableError):
            plar.load(path)
        with pytest.raises(plar.TableError):
            plar.reduce(TABLE, "d", checkpoint=path)


@pytest.mark.parametrize(
    "options",
    [
        {"tolerance": 10**400},
        {"epsilon": 10**400},
        {"checkpoint": b"x"},
        {"checkpoint": 3},
        {"on_step": 3},
        {"progress": True},
        {"memory_limit": 10**400},
        {"memory_limit": "9" * 400},
        {"time_limit": 10**400},
        {"time_limit": "soon"},
        {"max_attributes": 0},
        {"n_jobs": 0},
        {"engine": 3},
        {"measure": 3},
    ],
)
def test_parameters_of_no_sense(options: dict[str, Any]) -> None:
    with pytest.raises(plar.ParameterError) as caught:
        plar.reduce(TABLE, "d", **options)
    assert isinstance(caught.value, ValueError)
    assert not isinstance(caught.value, plar.TableError)


def test_paths_of_no_sense() -> None:
    found = plar.reduce(TABLE, "d")
    for path in (b"x", 3):
        with pytest.raises(plar.ParameterError, match="path must be text"):
            plar.load(path)  # type: ignore[arg-type]
        with pytest.raises(plar.ParameterError, match="path must be text"):
            found.save(path)  # type: ignore[arg-type]
