"""The CUDA engine without a GPU: its own tests under numba's simulator, and what is said where it cannot run."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

import plar
from plar.engines import why_unavailable
from support.environment import ROOT, TESTS


def test_all_kernels_under_the_simulator() -> None:
    # a process of its own: numba looks for the simulator's variable when it is first imported
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(TESTS / "engines" / "on_cuda.py")]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert re.search(r"^\d+ passed in", done.stdout, flags=re.M), done.stdout


def test_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plar.engines.find_spec", lambda name: None)
    assert why_unavailable("cuda") == "needs numba_cuda (pip install 'plar[cuda]')"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("Error at driver init:\n\nno driver", "needs an NVIDIA GPU and its driver: Error at driver init: no driver"),
        (None, "needs CUDA's compiler library (pip install 'numba-cuda[cu13]')"),
    ],
)
def test_no_gpu_is_one_line(monkeypatch: pytest.MonkeyPatch, error: str | None, said: str) -> None:
    monkeypatch.setattr("numba.cuda.is_available", lambda: False)
    monkeypatch.setattr("numba.cuda.cuda_error", lambda: error)
    reason = why_unavailable("cuda")
    assert reason is not None
    assert said in reason
    assert "\n" not in reason
    with pytest.raises(plar.EngineUnavailable, match="Ready here: local") as refused:
        plar.reduce({"a": [0, 1], "d": [0, 1]}, "d", engine="cuda")
    assert said in str(refused.value)
    with pytest.raises(plar.EngineUnavailable, match="The engine 'cuda' ") as refused:
        plar.reduce({"a": [0, 1], "d": [0, 1]}, "d", engine=plar.engines.CudaEngine())
    assert said in str(refused.value)


@pytest.mark.parametrize("kind", [ImportError, RuntimeError])  # what numba-cuda raises where CUDA's libraries are not
def test_a_broken_installation_is_one_line(monkeypatch: pytest.MonkeyPatch, kind: type[Exception]) -> None:
    def broken(name: str) -> None:
        raise kind("no bindings:\n look elsewhere")

    monkeypatch.setattr("plar.engines.import_module", broken)
    said = "cannot be loaded: no bindings: look elsewhere"
    assert why_unavailable("cuda") == said
    with pytest.raises(plar.EngineUnavailable, match=f"The engine 'cuda' {said}"):
        plar.engines.CudaEngine()
