"""All attributes that beat chance: layers of chance reducts, the same from Python, the shell and scikit-learn."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from inspect import signature
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import polars as pl
import pytest

import plar
from plar.sklearn import ReductSelector, RelevantSelector
from support.signatures import default_of, options_of

# the id is there to be refused
pytestmark = pytest.mark.filterwarnings("ignore:'id' is different in nearly every row:plar.PlarWarning")

RNG = np.random.default_rng(5)
BITS = RNG.integers(0, 2, (600, 12))
#: three bits vote; one of them stands there twice, and another one but for some rows
TABLE: dict[str, Any] = {
    **{f"b{j}": BITS[:, j] for j in range(12)},
    "twice": 1 - BITS[:, 0],
    "nearly": BITS[:, 1] ^ (RNG.random(600) < 0.05),
    "id": np.arange(600),
    "d": np.where(BITS[:, :3].sum(axis=1) >= 2, "yes", "no"),
}


def test_layers_are_chance_reducts_of_what_is_left() -> None:
    found = plar.relevant(TABLE, "d")
    left = [name for name in TABLE if name != "d"]
    for layer in found.layers:
        alone = plar.reduce(TABLE, "d", conditions=left, alpha=0.05)
        assert (layer.attributes, layer.steps[0].p_value) == (alone.attributes, alone.steps[0].p_value)
        assert layer.conditions == tuple(left)
        left = [name for name in left if name not in layer.attributes]
    last = plar.reduce(TABLE, "d", conditions=left, alpha=0.05)
    assert (last.attributes, last.rejected) == ((), found.rejected)
    assert set(found.rejected) == set(left)
    assert found.attributes == tuple(name for layer in found.layers for name in layer.attributes)
    assert {"b0", "b1", "b2", "twice", "nearly"} <= set(found.attributes)
    assert "id" not in found.attributes
    assert found.complete


def test_nothing_is_relevant() -> None:
    found = plar.relevant({"a": [0, 1, 0, 1], "d": [0, 0, 1, 1]}, "d")
    assert (found.layers, found.attributes, found.rejected) == ((), (), {"a": 1.0})
    assert found.first.attributes == ()
    assert "0 of 1 columns beat chance" in str(found)


def test_include_and_limits() -> None:
    found = plar.relevant(TABLE, "d", include=["id"], max_attributes=2)
    assert "id" in found.layers[0].attributes
    assert all(len(layer.attributes) <= 2 for layer in found.layers)
    stopped = plar.relevant(TABLE, "d", time_limit=1e-9)
    assert not stopped.complete
    bad_levels: list[Any] = [None, 0, 1, "x"]
    for bad in bad_levels:
        with pytest.raises(plar.ParameterError, match="'alpha' parameter must be"):
            plar.relevant(TABLE, "d", alpha=bad)


def test_all_options_of_reduce() -> None:
    assert {*options_of(plar.reduce)} - {*options_of(plar.relevant)} == {"search", "costs", "exclude"}
    assert {*options_of(plar.relevant)} <= {*options_of(plar.reduce)}
    for option in signature(plar.relevant).parameters:
        if option not in ("alpha", "reading"):
            assert default_of(plar.relevant, option) == default_of(plar.reduce, option)
    assert plar.relevant(TABLE, "d", start="core").layers[0].core == plar.core(TABLE, "d")
    assert set(plar.core(TABLE, "d")) <= set(plar.relevant(TABLE, "d", start="core").layers[0].attributes)
    rough = plar.relevant(TABLE, "d", tolerance=0.6)
    assert rough.complete
    assert len(rough.layers[0].attributes) < 3
    # what a minimal layer gives up is taken up by the next ones
    whole, minimal = plar.relevant(TABLE, "d"), plar.relevant(TABLE, "d", minimal=True)
    assert set(minimal.attributes) == set(whole.attributes)
    assert plar.relevant(TABLE, "d", equivalent=True).layers[0].equivalent == (("b0", "twice"),)
    bad_options: dict[str, Any] = {"epsilon": -1, "checkpoint": 3, "progress": 3, "start": "x"}
    for name, value in bad_options.items():
        with pytest.raises(plar.PlarError):
            plar.relevant(TABLE, "d", **{name: value})
    with pytest.raises(
        TypeError, match=r"relevant\(\) got an unexpected keyword argument 'minimum'. Did you mean 'minimal'\?"
    ):
        plar.relevant(TABLE, "d", minimum=True)  # type: ignore[call-arg]


def test_a_minimal_layer_may_be_empty() -> None:
    # whom PR sees no gain in, one at a time
    table = {name: TABLE[name] for name in ("b0", "b3", "b4", "d")}
    found = plar.relevant(table, "d", measure="PR", minimal=True)
    assert (found.attributes, found.complete) == ((), True)


def test_substitutes_of_what_is_included() -> None:
    table = {"a": BITS[:, 0], "b": BITS[:, 0], "c": BITS[:, 5], "d": BITS[:, 0]}
    found = plar.relevant(table, "d", include="b")
    assert [layer.attributes for layer in found.layers] == [("b",), ("a",)]
    assert list(found.rejected) == ["c"]


def facts(found: plar.Relevant) -> Any:
    """All that a result says, but for the times."""
    said = found.to_dict()
    for layer in said["layers"]:
        del layer["seconds"]
        layer["steps"] = [{**step, "seconds": 0} for step in layer["steps"]]
    return said


@pytest.mark.parametrize("start", [None, "core"])
def test_goes_on_after_any_step(tmp_path: Path, start: str | None) -> None:
    options: dict[str, Any] = {"include": "b7", "minimal": True, "start": start}
    whole = plar.relevant(TABLE, "d", **options)
    total = sum(len(layer.steps) for layer in whole.layers)
    assert len(whole.layers) >= 2
    for done in range(1, total + 1):
        path, steps = tmp_path / f"{done}.json", list[plar.Step]()

        def stop(step: plar.Step, done: int = done, steps: list[plar.Step] = steps) -> None:
            steps.append(step)
            if len(steps) == done:
                raise KeyboardInterrupt

        with pytest.raises(plar.Interrupted) as interrupted:
            plar.relevant(TABLE, "d", checkpoint=path, on_step=stop, **options)
        some = interrupted.value.result
        assert not some.complete
        assert sum(len(layer.steps) for layer in some.layers) == done
        new: list[plar.Step] = []
        assert facts(plar.relevant(TABLE, "d", checkpoint=path, on_step=new.append, **options)) == facts(whole)
        assert len(new) == total - done
        before = path.read_bytes()
        assert facts(plar.relevant(TABLE, "d", checkpoint=path, **options)) == facts(whole)
        assert path.read_bytes() == before
    with pytest.raises(plar.TableError, match=r"alpha 0\.05 there, 0\.01 now"):
        plar.relevant(TABLE, "d", checkpoint=path, alpha=0.01, **options)
    # its first layer is a chance reduct
    first = plar.reduce(TABLE, "d", checkpoint=path, alpha=0.05, **options)
    assert first.attributes == whole.layers[0].attributes


def test_what_is_shown_and_taken() -> None:
    found = plar.relevant(TABLE, "d")
    assert (
        repr(found) == f"<Relevant: {len(found.attributes)} of 15 columns beat chance, in {len(found.layers)} layers>"
    )
    assert "layer 1" in str(found)
    assert "rejected; the smallest p-values" in str(found)
    frame = pl.DataFrame(TABLE)
    assert set(found.transform(frame).columns) == {*found.attributes, "d"}


def test_in_the_shell(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    pl.DataFrame(TABLE).write_csv(file)
    run = [sys.executable, "-m", "plar"]
    done = subprocess.run([*run, "relevant", str(file), "-d", "d", "--json"], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stderr.startswith("Warning: 'id' is different in nearly every row")
    assert done.stderr.count("\n") == 1
    told = json.loads(done.stdout)
    schema = subprocess.run([*run, "schema", "relevant"], capture_output=True, text=True, check=True).stdout
    whole = subprocess.run([*run, "schema"], capture_output=True, text=True, check=True).stdout
    jsonschema.validate(told, json.loads(schema))
    jsonschema.validate(told, json.loads(whole))
    found = plar.relevant(file, "d")
    assert tuple(told["attributes"]) == found.attributes
    assert told["rejected"] == found.rejected
    words = ["--drop", "id", "--start", "core", "-o", str(tmp_path / "o.csv"), "--checkpoint", str(tmp_path / "c.json")]
    done = subprocess.run([*run, "relevant", str(file), "-d", "d", *words], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, f"Wrote {tmp_path / 'o.csv'}.\n")
    assert done.stdout.startswith(f"{file}: {len(found.attributes)} of 14 columns beat chance at 0.05\n")
    assert set(pl.read_csv(tmp_path / "o.csv").columns) == {*found.attributes, "d"}
    piped = subprocess.run(
        [*run, "relevant", "-", "-d", "d", "--json"], input=file.read_text(), capture_output=True, text=True
    )
    assert {layer["source"] for layer in json.loads(piped.stdout)["layers"]} == {"-"}
    done = subprocess.run([*run, "relevant", str(file), "-d", "d", "--alpha", "2"], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "Error: --alpha must be between 0 and 1. Got 2.0 instead.\n"


def test_selectors() -> None:
    frame = pl.DataFrame(TABLE).to_pandas()
    X, y = frame.drop(columns="d"), frame["d"]
    found = plar.relevant(frame, "d")
    selector = RelevantSelector().fit(X, y)
    assert set(selector.get_feature_names_out()) == set(found.attributes)
    assert selector.relevant_.layers[0].attributes == found.layers[0].attributes
    places = {name: j for j, name in enumerate(X.columns)}
    assert all(selector.ranking_[places[name]] == 1 for name in found.layers[0].attributes)
    assert selector.ranking_[places["id"]] == len(found.layers) + 1
    assert all(selector.p_values_[places[name]] <= 0.05 for name in found.attributes)
    assert selector.p_values_[places["id"]] == found.rejected["id"]
    again = pickle.loads(pickle.dumps(selector))
    assert (again.transform(X) == selector.transform(X)).all()
    chance = ReductSelector(alpha=0.05).fit(X, y)
    assert set(chance.get_feature_names_out()) == set(found.layers[0].attributes)
    batches = RelevantSelector().partial_fit(X[:300], y[:300]).partial_fit(X[300:], y[300:])
    assert batches.relevant_.attributes == found.attributes
