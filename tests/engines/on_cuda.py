"""Every kernel of the CUDA engine, against the oracle and the local engine; run under the simulator or on a GPU.

`tests/engines/test_cuda.py` runs this file under numba's simulator, `make test-gpu` on a GPU. The simulator takes
a thousandth of a second for every step of a kernel, so tables are tiny, and pieces of classes are made tiny with them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import cuda

import plar
from plar.engines import CudaEngine, LocalEngine
from plar.engines.cuda import columns as columns_module
from plar.engines.cuda import engine as engine_module
from plar.engines.cuda import hashing, kernels, partition, sorting
from plar.granules.granules import Granules
from plar.measures import MEASURES, as_measure
from support import oracle, selection
from support.environment import TURNS
from support.simulated_cuda import SIMULATED, run_block, simulator

#: names of the kernels that were launched
REACHED: set[str] = set()


@pytest.fixture(autouse=True, scope="module")
def tiny_pieces() -> Iterator[None]:
    """Cut classes of more than eight rows; note the kernels that the simulator runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine_module, "_MIN_PIECE_ROWS", 8)
        patch.setattr(engine_module, "_WAVES", 1000)
        if SIMULATED:
            kind: Any = type(kernels.clear)
            run = kind.__call__

            def noted(kernel: Any, *args: Any) -> Any:
                REACHED.add(kernel.fn.__qualname__)
                return run(kernel, *args)

            patch.setattr(kind, "__call__", noted)
            patch.setattr(simulator.BlockManager, "run", run_block)
        yield


def table(n: int, values: list[int], n_decisions: int, largest_weight: int, noise: float, seed: int) -> Granules:
    """Columns of so many values each, and a decision that the first three give away but for some noise."""
    pick = random.Random(seed)
    columns: dict[str, list[int]] = {f"a{j}": [pick.randrange(v) for _ in range(n)] for j, v in enumerate(values)}
    told = [sum(columns[f"a{j}"][i] for j in range(3)) % n_decisions for i in range(n)]
    columns["d"] = [pick.randrange(n_decisions) if pick.random() < noise else d for d in told]
    columns["w"] = [pick.randint(1, largest_weight) for _ in range(n)]
    return plar.granulate(columns, "d", weights="w")


def assert_same_primitives(granules: Granules, measure: str, order: list[int], memory: int | None = None) -> None:
    """Compare everything that an evaluation tells, while attributes are selected one by one."""
    ours = CudaEngine(memory=memory).open(granules, as_measure(measure))
    theirs = LocalEngine(n_jobs=1).open(granules, as_measure(measure))
    assert ours.theta_all == theirs.theta_all
    assert ours.consistent is theirs.consistent
    every = range(len(granules.conditions))
    assert ours.with_each(every[:1]) == theirs.with_each(every[:1])
    for attribute in order:
        assert (ours.theta, ours.unsettled_objects) == (theirs.theta, theirs.unsettled_objects)
        assert ours.with_each(every) == theirs.with_each(every)
        assert ours.select(attribute) == theirs.select(attribute)
    assert (ours.theta, ours.unsettled_objects) == (theirs.theta, theirs.unsettled_objects)
    assert ours.with_each(every) == theirs.with_each(every)
    assert ours.leave_one_out(order) == theirs.leave_one_out(order)


#: columns of few values, in groups of their own by number, and of many
VALUES = [2, 3, 2, 9, 1000]


@pytest.mark.parametrize(
    ("measure", "largest_weight", "noise"),
    [
        *((measure, 1, 0.3) for measure in (("PR", "LCE") if SIMULATED else MEASURES)),
        *((measure, 5, 0.0) for measure in (("SCE",) if SIMULATED else ("PR", "SCE"))),  # consistent
        *((measure, 1 << 16, 0.3) for measure in (("SCE", "CCE") if SIMULATED else MEASURES)),  # beyond the table of f
        *((measure, 1 << 34, 0.3) for measure in (("PR", "CCE") if SIMULATED else MEASURES)),  # beyond 32 bits
    ],
)
def test_primitives(measure: str, largest_weight: int, noise: float) -> None:
    granules = table(60, VALUES, 3, largest_weight, noise, seed=largest_weight)
    assert_same_primitives(granules, measure, [2, 3])


@pytest.mark.parametrize("measure", ["PR", "SCE"])
def test_core(measure: str) -> None:
    granules = table(20, [2, 2, 2, 3], 2, 1, 0.2, seed=7)
    ours, theirs = (e.open(granules, as_measure(measure)) for e in (CudaEngine(), LocalEngine(n_jobs=1)))
    assert ours.leave_one_out() == theirs.leave_one_out()


@pytest.mark.parametrize("measure", ["PR", "SCE"])
def test_more_columns_than_memory(measure: str) -> None:
    """No block stays on the device: two places take turns."""
    granules = table(60, [2, 2, 3, 2, 3, 2, 9, 1000, 1000], 4, 3, 0.5, seed=3)
    n = len(granules)
    evaluation = CudaEngine(memory=8 * n).open(granules, as_measure(measure))
    blocks = evaluation._columns._blocks
    assert len(blocks) > 4
    assert all(block.data is None for block in blocks)
    assert_same_primitives(granules, measure, [1, 8], memory=8 * n)
    # and some that stay
    evaluation = CudaEngine(memory=13 * n).open(granules, as_measure(measure))
    assert {block.data is None for block in evaluation._columns._blocks} == {True, False}


def test_too_little_memory() -> None:
    granules = table(40, VALUES, 4, 3, 0.5, seed=3)
    with pytest.raises(plar.EngineUnavailable, match=r"needs at least 1 MB of GPU memory .* Use the engine 'local'\."):
        CudaEngine(memory=7).open(granules, as_measure("PR"))


def test_the_driver_runs_out_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY")

    granules = table(20, VALUES, 2, 1, 0.5, seed=1)
    evaluation = CudaEngine().open(granules, as_measure("LCE"))
    monkeypatch.setattr(cuda, "device_array", full)
    with pytest.raises(plar.EngineUnavailable, match="too little memory left"):
        evaluation.with_each([0, 1, 2])


def test_memory_beside_the_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    context = type(cuda.current_context())
    monkeypatch.setattr(context, "get_memory_info", lambda self: (1 << 20, 1 << 30))
    granules = table(20, VALUES, 2, 1, 0.5, seed=1)
    with pytest.raises(plar.EngineUnavailable, match=r"needs 512 MB of GPU memory beside .* 1 MB are free"):
        CudaEngine().open(granules, as_measure("LCE"))


@pytest.mark.parametrize("measure", oracle.MEASURES)
def test_one_object_and_one_class(measure: str) -> None:
    for columns in ({"a": [0], "d": [0]}, {"a": [0, 1, 0, 1], "b": [0, 0, 0, 0], "d": [1, 1, 1, 1]}):
        granules = plar.granulate(columns, "d")
        assert_same_primitives(granules, measure, list(range(len(columns) - 1)))


def test_nothing_asked() -> None:
    evaluation = CudaEngine().open(table(20, VALUES, 2, 1, 0.5, seed=1), as_measure("SCE"))
    assert evaluation.with_each([]) == []


def test_a_class_of_many_rows_in_many_pieces() -> None:
    """One decision in all rows but one: a run that goes through many pieces."""
    columns = {"a": [i % 2 for i in range(70)], "b": [i % 3 for i in range(70)], "d": [int(i == 69) for i in range(70)]}
    columns["w"] = [1 + i % 4 for i in range(70)]
    granules = plar.granulate({**columns, "id": list(range(70))}, "d", weights="w")
    for measure in ("PR", "SCE"):
        assert_same_primitives(granules, measure, [0])


@settings(max_examples=(4 if SIMULATED else 100) * TURNS)
@given(seed=st.integers(0, 2**32), measure=st.sampled_from(oracle.MEASURES))
def test_reduct_against_the_oracle(seed: int, measure: str) -> None:
    pick = random.Random(seed)
    n = pick.randint(1, 12 if SIMULATED else 200)
    names = [f"a{j}" for j in range(pick.randint(1, 3))]
    columns = {name: [pick.randrange(pick.choice([2, 2, 4])) for _ in range(n)] for name in names}
    columns["d"] = [pick.randrange(2) for _ in range(n)]
    expected = oracle.search(oracle.table(columns, "d"), measure)
    found = plar.reduce(columns, "d", measure=measure, engine=CudaEngine())
    assert (found.core, found.attributes) == (expected.core, expected.attributes)
    assert found.certificate.redundant == expected.redundant
    assert found.engine == "cuda"


def test_own_measures_are_refused() -> None:
    own = plar.Measure("minority", lambda counts: counts.sum() - counts.max(), lambda n: n)
    with pytest.raises(plar.ParameterError, match=r"computes PR, SCE, LCE and CCE\. Use the engine 'local'"):
        plar.reduce({"a": [0, 1], "d": [0, 1]}, "d", measure=own, engine=CudaEngine())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"device": -1}, "'device' of the engine must be a whole number from 0. Got -1"),
        ({"device": True}, "'device' of the engine"),
        ({"memory": 0}, "'memory' of the engine must be a whole number from 1. Got 0"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], said: str) -> None:
    with pytest.raises(plar.ParameterError, match=said):
        CudaEngine(**options)


def test_no_such_gpu() -> None:
    with pytest.raises(plar.EngineUnavailable, match="There is no GPU 99: the driver has"):
        CudaEngine(device=99).open(table(5, VALUES, 2, 1, 0.5, seed=1), as_measure("SCE"))


def test_larger_tables() -> None:
    """Several digits of the sort, many classes; on a GPU the whole range of class sizes."""
    rng = np.random.default_rng(5)
    n, cuts = (300, [40]) if SIMULATED else (60_000, [1, 7, 300, 9_000, 25_000])
    for n_cut in cuts:
        columns = [rng.integers(0, v, n).astype(np.uint8) for v in (8, 2, 30)]
        columns.append((rng.permutation(n) % n_cut).astype(np.uint32))
        granules = Granules(
            conditions=("a", "b", "c", "cut"),
            columns=tuple(columns),
            dictionaries=(range(8), range(2), range(30), range(n_cut)),
            decision=("d",),
            decision_codes=rng.integers(0, 5, n).astype(np.uint32),
            decision_values=(range(5),),
            counts=np.ones(n, np.int64),
            n_objects=n,
        )
        assert_same_primitives(granules, "SCE", [3])


def test_goes_on_from_a_checkpoint_of_the_local_engine(tmp_path: Path) -> None:
    granules = table(60, [2, 3, 4, 2, 3, 3], 3, 2, 0.1, seed=4)
    path = tmp_path / "c.json"
    whole = plar.reduce(granules, measure="LCE")
    plar.reduce(granules, measure="LCE", checkpoint=path, time_limit=0)
    found = plar.reduce(granules, measure="LCE", checkpoint=path, engine=CudaEngine())
    assert len(found.steps) > 0
    assert [(s.attribute, s.theta, s.ties, s.candidates) for s in found.steps] == [
        (s.attribute, s.theta, s.ties, s.candidates) for s in whole.steps
    ]
    assert (found.attributes, found.theta, found.certificate) == (whole.attributes, whole.theta, whole.certificate)


def test_select() -> None:
    """Candidates are measured on this machine; the columns are the same."""
    pick = random.Random(4)
    columns = {f"a{j}": [pick.randrange(3) for _ in range(200)] for j in range(5)}
    columns["d"] = [int(sum(columns[f"a{j}"][i] for j in range(3)) > 2) for i in range(200)]
    granules = plar.granulate(columns, "d")
    found = plar.select(granules, engine=CudaEngine())
    expected = plar.select(granules)
    assert len(found.columns) >= 2
    assert found.engine == "cuda"
    assert selection.facts(found) == selection.facts(expected)


@pytest.mark.skipif(not SIMULATED, reason="only the simulator tells which kernels it runs")
def test_every_kernel_was_reached() -> None:
    """The last test: all kernels of the modules, made by functions too, and device functions."""
    kind = type(kernels.clear)
    modules = (kernels, hashing, columns_module, sorting, partition)
    defined = {k.fn.__qualname__ for m in modules for k in vars(m).values() if isinstance(k, kind)}
    assert defined | {"cells_kernel.<locals>.cells"} <= REACHED
